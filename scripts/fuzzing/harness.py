"""What a run does: an engine mutates inputs, a target checks each, and findings are made small.

    seeds ──> mutate ──> check ──> finding ──> the smallest input with it, in tests/fuzz/TARGET/
       ^        │
       └────────┴── inputs that reach new edges of the package

The engine is a process of its own, as it may die. Its standard error is that of libFuzzer.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import hashlib
import importlib
import os
import pkgutil
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any, NamedTuple, Protocol

from fuzzing import targets
from textnb.errors import TextnbError

ROOT = Path(__file__).parents[2]
# What makes a child find these modules and the package.
FIND_MODULES = {"PYTHONPATH": f"{ROOT / 'scripts'}{os.pathsep}{ROOT}"}
# The environment's variable that ends an engine with its first finding.
UNTIL_FOUND = "TEXTNB_FUZZ_UNTIL_FOUND"
# A file in the engine's folder: the size of its input, in eight bytes, and the input.
CURRENT = "current"
FINDINGS = ROOT / "tests" / "fuzz"
# CPU seconds of one input at most; of one that is too quick to compare with others; and of one at
# most before there are others.
_HANGS, _QUICK, _SLOW = 20.0, 0.5, 5.0
# Seconds that an input may take, and a run beyond its time.
_STUCK = 300
# An input takes too much if it takes this many times what others of its size take.
_TIMES = 50
# Bytes of an input.
_LONGEST = 200_000
# libFuzzer ends the engine's process without its clean-up, so its folders lie in that of the run.
_OF_RUN = "TEXTNB_FUZZ_FOLDER"
# Bytes of memory that are too few to compare.
LITTLE = 64 << 20
# The place of an error that was raised outside of the package.
_NOWHERE = "(not in textnb)"
_STATUS = re.compile(r"#(\d+)\s+(?:\w+\s+)+cov: (\d+) .*?(?:rss: (\d+)Mb|$)")


class Finding(BaseException):
    """A check found a fault. It is no Exception, as neither the package nor a check may catch it.

    Parameters
    ----------
    what : str
        The same for all inputs with this fault.
    more : object
        Facts about this input.
    """

    def __init__(self, what: str, more: object = "") -> None:
        super().__init__(": ".join(filter(None, [what, str(more)])))
        self.what = what


class Target(Protocol):
    """A module of `fuzzing.targets`. One that is compiled has ``build`` instead of the functions.

    ``build(folder)`` compiles into a folder and returns the command, to which libFuzzer's options
    and the folder ``corpus`` are added. ``check`` returns the number of bytes that it worked on, if
    that is not the input's size. ``WITHIN`` names the packages whose edges count, and
    ``LONGEST`` is the size of the largest input. ``pieces(data)``, if there is one, cuts an input
    into parts that can be left out.
    """

    ABOUT: str

    def seeds(self) -> list[bytes]: ...

    def mutate(self, data: bytes, random: Random) -> bytes: ...

    def check(self, data: bytes) -> int | None: ...


class Problem(NamedTuple):
    """What is wrong with an input, by a name that other inputs with the fault share."""

    what: str
    text: str


class Run(NamedTuple):
    """What a run did."""

    engine: str
    inputs: int
    cpu_seconds: float
    edges: list[tuple[int, int]]
    memory_mb: int
    findings: dict[str, str]
    is_interrupted: bool


class Chance:
    """Whether checks that take long run for some inputs only; those of a finding run for each."""

    is_sampling = True


def one_in(number: int, random: Random) -> bool:
    """True for one of so many inputs."""
    # What is drawn after it must be the same when a finding is run again.
    return not random.randrange(number) or not Chance.is_sampling


def longest(target: Any) -> int:
    """The bytes of an input at most."""
    return getattr(target, "LONGEST", _LONGEST)


def seconds(text: str) -> float:
    """The value of an option, for `argparse`."""
    with suppress(ValueError):
        if 1.0 <= (number := float(text)) < 1e7:
            return number
    raise argparse.ArgumentTypeError(f"must be a number of seconds, 1 or more; got {text!r}")


def require_compiler(name: str, package: str) -> None:
    """Exit with what to install if a compiler is missing."""
    if shutil.which(name) is None:
        sys.exit(f"this needs {name}: apt-get install {package}")


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM and Ctrl-C end a script without a traceback, after it has cleaned up."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        sys.exit("interrupted")


def names() -> list[str]:
    """The names of all targets."""
    return sorted(module.name for module in pkgutil.iter_modules(targets.__path__))


def constant(name: str, variable: str, default: Any = None) -> Any:
    """A constant of a target's module, which is read without an import."""
    source = Path(targets.__path__[0], f"{name}.py").read_text("utf-8")
    return next((ast.literal_eval(node.value) for node in ast.parse(source).body
                 if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == variable),
                default)


def load(name: str) -> Any:
    """The module of a target."""
    return importlib.import_module(f"fuzzing.targets.{name}")


class Judge:
    """Checks inputs of a target, with a limit of time; and of memory, if it is asked.

    Parameters
    ----------
    check : callable
    """

    def __init__(self, check: Callable[[bytes], int | None]) -> None:
        self._check = check
        # By the number of bits of a size: CPU seconds of an input, and inputs so far.
        self._usual: dict[int, tuple[float, int]] = {}
        # Whether an input is checked now, and when the alarm was set: that takes as long as some
        # checks, so it is not set for each.
        self._is_checking, self._set_at = False, -_HANGS
        signal.signal(signal.SIGPROF, self._end_hang)

    def problem(self, data: bytes) -> Problem | None:
        """What is wrong with an input."""
        found, seconds, size = self._run(data)
        bits = size.bit_length()
        usual, n = self._usual.get(bits, (0.0, 0))
        limit = max(_QUICK, _TIMES * usual) if n > 20 else _SLOW
        if found is None and seconds > limit:
            # What is done once, such as an import, is not the input's.
            seconds = min(seconds, *(self._run(data)[1] for _ in range(2)))
            if seconds > limit:
                found = Problem("slow", f"{seconds:.3f} s of CPU time, and {usual:.5f} s is usual "
                                        f"for {size} bytes")
        self._usual[bits] = usual + (seconds - usual) / min(n + 1, 1000), n + 1
        return found

    def memory_problem(self, data: bytes) -> Problem | None:
        """Whether an input takes too much memory."""
        start = _resident(reset=True)
        size = self._run(data)[2]
        if (taken := _resident() - start) > LITTLE + _TIMES * size:
            return Problem("memory", f"{taken >> 20} MB for {size} bytes")
        return None

    def _run(self, data: bytes) -> tuple[Problem | None, float, int]:
        found, size, began = None, None, time.process_time()
        if began - self._set_at > _HANGS / 10:
            self._set_at = began
            signal.setitimer(signal.ITIMER_PROF, _HANGS)
        self._is_checking = True
        try:
            size = self._check(data)
        except TextnbError:
            pass
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # A panic of Polars is not an Exception.
            found = Problem(_what(error), "".join(traceback.format_exception(error)))
        finally:
            self._is_checking = False
        return found, time.process_time() - began, len(data) if size is None else size

    def _end_hang(self, number: int, frame: object) -> None:
        if self._is_checking:
            raise Finding("hangs", f"{_HANGS} s of CPU time")


def run(name: str, seconds: float, seed: int, until_found: bool = False) -> Run:
    """Run a target, and keep the smallest input of each finding in tests/fuzz.

    ``until_found`` ends the run with the first finding, which is kept as it is.
    """
    target = load(name)
    is_compiled = hasattr(target, "build")
    if is_compiled:
        require_compiler("clang", "clang libclang-rt-14-dev")
    kept_in = FINDINGS / name if (FINDINGS / name).exists() else FINDINGS
    if not os.access(kept_in, os.W_OK):
        sys.exit(f"findings could not be kept: {kept_in} can't be written")
    with tempfile.TemporaryDirectory(prefix="textnb-fuzz-", dir=in_memory()) as temporary:
        folder = Path(temporary)
        for part in ("corpus", "findings"):
            (folder / part).mkdir()
        command = (target.build(folder) if is_compiled
                   else [sys.executable, "-m", "fuzzing.engine", name, temporary])
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            [*command, f"-artifact_prefix={folder}/findings/", f"-max_total_time={int(seconds)}",
             f"-seed={seed}", "-rss_limit_mb=4096", f"-max_len={longest(target)}",
             # A check in Python has a limit of its own.
             f"-timeout={20 if is_compiled else _STUCK}", "-len_control=0",
             "-print_final_stats=1", "-close_fd_mask=0", f"-report_slow_units={_STUCK}",
             str(folder / "corpus")],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace",
            # The trace of a panic that is expected would take most of the time.
            env={"POLARS_MAX_THREADS": "1", **os.environ, "RUST_BACKTRACE": "0", **FIND_MODULES,
                 UNTIL_FOUND: "1" if until_found else "", _OF_RUN: temporary,
                 # What the package copies is removed when its process ends.
                 "TMPDIR": temporary})
        assert process.stderr is not None
        # One that waits for a lock of a damaged heap does not hear libFuzzer's alarm either.
        watch = Timer(seconds + _STUCK, process.kill)
        watch.daemon = True
        watch.start()
        lines, edges = list[str](), list[tuple[int, int]]()
        engine, memory, inputs = "libFuzzer" if is_compiled else "", 0, 0
        is_interrupted, said = False, time.monotonic()
        try:
            for line in process.stderr:
                lines = [*lines[-200:], line]
                if line.startswith("engine: "):
                    engine = line.split()[1]
                if status := _STATUS.match(line):
                    inputs, memory = int(status[1]), int(status[3] or memory)
                    if not edges or edges[-1][1] != int(status[2]):
                        edges.append((inputs, int(status[2])))
                    if time.monotonic() > said + 60:
                        said = time.monotonic()
                        print(f"{inputs:,} inputs", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            is_interrupted = True
            print("interrupted", file=sys.stderr)
            process.kill()
        finally:
            process.stderr.close()
        code = process.wait()
        watch.cancel()
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not is_compiled:
            # libFuzzer does not know of what an engine in Python died.
            found, died = folder / "findings", list[Path]()
            if code == -signal.SIGKILL and not is_interrupted:
                died = [found / "killed"]
            elif not until_found:
                died = [*found.glob("crash-*")]
            for path in died:
                content = (folder / CURRENT).read_bytes()
                path.write_bytes(content[8:8 + int.from_bytes(content[:8], "little")])
        findings = {}
        for path in sorted((folder / "findings").iterdir()):
            if path.suffix != ".txt":
                about = path.with_suffix(".txt")
                text = about.read_text() if about.exists() else "".join(lines[-100:])
                if not until_found and is_compiled:
                    _shorten(command, path)
                kept, text = _keep(name, target, path.read_bytes(), text, not until_found)
                findings[str(kept.relative_to(ROOT))] = text
        # libFuzzer ends with a code of its own after a finding.
        if not is_interrupted and code > 0 and not findings:
            sys.exit(f"the engine ended with {code}: {''.join(lines)}")
        if not inputs and not findings:
            sys.exit("no input was tried")
        if not is_interrupted and code < 0:
            findings[f"the engine ended with {code}"] = "".join(lines)
    used = [ended.ru_utime - began.ru_utime, ended.ru_stime - began.ru_stime]
    return Run(engine, inputs, sum(used), _few([*edges, (inputs, edges[-1][1] if edges else 0)]),
               memory, findings, is_interrupted)


def _shorten(command: list[str], path: Path) -> None:
    """Let libFuzzer make a finding of compiled code as small as it can."""
    subprocess.run([*command, "-minimize_crash=1", "-max_total_time=20",
                    f"-exact_artifact_path={path}", str(path)], capture_output=True, check=False)


def _keep(
    name: str, target: Any, data: bytes, text: str, makes_small: bool
) -> tuple[Path, str]:
    """Write an input with a fault, made as small as can be, to its folder of tests/fuzz.

    Returns the file, and what is wrong with the small input, or ``text`` of the large one.
    """
    if makes_small and not hasattr(target, "build"):
        warnings.simplefilter("ignore")
        Chance.is_sampling, judge = False, Judge(target.check)
        # What is opened or imported once is not the input's.
        judge.problem(target.seeds()[0])

        def problem_of(data: bytes) -> Problem | None:
            return judge.problem(data) or judge.memory_problem(data)

        if (first := problem_of(data)) is None:
            text = f"not reproduced when it was tried again:\n{text}"
        else:
            text = first.text

            def is_one(data: bytes) -> bool:
                nonlocal text
                problem = problem_of(data)
                if problem is None or problem.what != first.what:
                    return False
                text = problem.text
                return True

            data = smallest(data, getattr(target, "pieces", None), is_one)
    folder = FINDINGS / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:12]
    path.write_bytes(data)
    return path, text


def smallest(
    data: bytes, pieces: Callable[[bytes], list[bytes]] | None, is_one: Callable[[bytes], bool],
    seconds: float = 20.0,
) -> bytes:
    """Leave out parts of an input, larger ones first, as long as it has its fault."""
    end = time.process_time() + seconds
    for cut in (pieces, lambda data: [data[i:i + 1] for i in range(len(data))]):
        if cut is None:
            continue
        parts = cut(data)
        size = len(parts) // 2
        while size and time.process_time() < end:
            at = 0
            while at < len(parts) and time.process_time() < end:
                fewer = [*parts[:at], *parts[at + size:]]
                if is_one(b"".join(fewer)):
                    parts = fewer
                else:
                    at += size
            size //= 2
        data = b"".join(parts)
    return data


def inputs(target: Any, number: int, seed: int) -> Iterator[bytes]:
    """Mutated seeds, without coverage, of a target that is not compiled."""
    random, pool = Random(seed), target.seeds()
    for _ in range(number):
        data = random.choice(pool)
        for _ in range(random.choice([1, 1, 2, 4])):
            data = target.mutate(data, random)[:longest(target)]
        yield data


def is_of_check(problem: Problem) -> bool:
    """Whether a check itself failed, and no code of the package."""
    return problem.what.endswith(_NOWHERE)


def _what(error: BaseException) -> str:
    if isinstance(error, Finding):
        return error.what
    place = next((f"{Path(frame.filename).name}:{frame.name}"
                  for frame in reversed(traceback.extract_tb(error.__traceback__))
                  if "/textnb/" in frame.filename), _NOWHERE)
    return f"{type(error).__name__} {place}"


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _resident(reset: bool = False) -> int:
    """The peak of memory since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+)", status)[0]) << 10


def in_memory() -> str | None:
    """A folder in memory, if there is one; that of the run, in its engine's process."""
    return os.environ.get(_OF_RUN) or ("/dev/shm" if Path("/dev/shm").is_dir() else None)


def make_folder() -> Path:
    """Make a folder, in memory if it can be, that is removed when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="textnb-fuzz-", dir=in_memory())
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _few(edges: list[tuple[int, int]], number: int = 20) -> list[tuple[int, int]]:
    """Some points of a curve: at powers of a number of inputs, and the last."""
    points: list[tuple[int, int]] = []
    for at, count in edges[:-1]:
        if not points or at > points[-1][0] * 1.5:
            points.append((at, count))
    return [*points[-number:], *edges[-1:]]
