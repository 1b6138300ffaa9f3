"""Let each call by which a command reads and writes its files fail, be cut short, or kill it.

{commands}

Each command runs once in peace; then again for each of its calls and each fault that the call may
have. Afterwards every file must be the old or the new one, the exit code and the message must say
which, and the command must succeed when it is run again: each message is then learned once. (What
would add to a model twice is run again only if nothing was written.) What succeeded must have been
synced, for a loss of power. The exit code is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import atexit
import errno
import json
import mmap
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, suppress
from ctypes import CDLL
from importlib import import_module
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any, NamedTuple

from fuzzing import harness, pages
from textnb.cli.main import VERBS
from textnb.errors import TextnbError

# The layout of `struct plan` in faults.c.
_HEAD, _FOLDER, _CALL, _CALLS = struct.Struct("<4q"), 480, struct.Struct("<16s240s240sq"), 16384
_SIZE = _HEAD.size + _FOLDER + _CALL.size * _CALLS
_MODEL, _LEDGER, _NEXT = "m.textnb", "m.textnb.ledger", "m.textnb.ledger.next"
# Names of temporary files, which nobody removes after a kill.
_TEMPORARY = re.compile(r"\..*\.tmp|tmp.*|textnb-.*|[a-z0-9_]{8}")
_WORK = ("open create read write fsync ftruncate close mkdir rename exchange link unlink rmdir "
         "chmod chown lock mmap")
_LOOKS = "stat access opendir readdir"
_ALL = f"{_WORK} {_LOOKS}"
# What a call may do instead of its work, and the calls that may. (To be killed at a look is to be
# killed at the next work.)
FAULTS = {
    "ENOSPC": (errno.ENOSPC, "create write fsync ftruncate mkdir rename exchange link"),
    "EIO": (errno.EIO, _ALL), "EIO ever after": (1000 + errno.EIO, _ALL),
    "EACCES": (errno.EACCES, "stat access opendir"),
    "ENOMEM": (errno.ENOMEM, "stat access opendir"),
    "EINTR": (errno.EINTR, "open create read write fsync ftruncate close lock"),
    "short": (-1, "read write"), "kill": (-2, _WORK)}
_STAYING = ("ENOSPC", "EIO ever after")
# What may be wrong with a run.
WRONG = ("half_written", "lost", "unclear", "left")
_MESSAGES = {f"{n}.eml": b"Message-ID: <%d@a>\n\nnew%d: %s\n" % (n, n, words)
             for n, words in enumerate((b"cheap pills", b"a cheap prize", b"meeting at noon"))}
_ROWS = [f"{text},{label},{number}" for number, (text, label) in enumerate([
    ("cheap pills now", "spam"), ("see you at noon", "ham"), ("a cheap prize", "spam"),
    ("minutes of the meeting", "ham")] * 8)]
_HEADER = "body,label,message_id"
_FILES = {
    **_MESSAGES, **{f"Mail/new/{name}": message for name, message in _MESSAGES.items()},
    "Mail/cur/seen.eml": b"seen", "Mail/tmp/part.eml": b"part",
    "rows.csv": "\n".join([_HEADER, *_ROWS, ""]).encode(),
    "more.csv": "\n".join([_HEADER, *(f"{row}more" for row in _ROWS[:6]), ""]).encode(),
    "review.csv": b"row,label\n0,ham\n5,spam\n",
    "job.toml": b'output = "job"\ninput = {train = "rows.csv", test = "more.csv"}\n'
                b'model.text = "body"\npredictions.file = "answers.csv"\n'}
# A command's words, or a function.
Command = str | Callable[[], None]


class Call(NamedTuple):
    """A call that touched the folder: paths in it, and the result or minus the error."""

    name: str
    path: str
    to: str
    result: int


class Outcome(NamedTuple):
    """How a command ended: its code (minus the signal), its files, what it wrote to its standard
    output and error, and its calls."""

    code: int
    files: dict[str, Any]
    answer: str = ""
    said: str = ""
    calls: list[Call] = []  # noqa: RUF012 - it is not changed
    # The folders of each message.
    filed: dict[bytes, set[str]] = {}  # noqa: RUF012 - it is not changed


# Commands


def tell() -> None:
    """A worker of `textnb serve` is told what a message is."""
    import socket

    from textnb.filter.protocol import Refused, Request
    from textnb.filter.service import Counters, Settings, counters_size
    from textnb.filter.worker import Worker

    shared, client = os.memfd_create("counters"), socket.socketpair()[0]
    os.truncate(shared, counters_size(1))
    worker = Worker(Settings(model=_MODEL, workers=1, tellers=[os.getuid()]), Counters(shared, 1))
    request = Request("TELL", (1, 5), headers={"set": "local", "message-class": "spam"})
    try:
        with suppress(Refused):
            worker._reply(request, _MESSAGES["0.eml"], client)
            return
        # The client tries again: a failure that is over must not stay.
        worker._reply(request, _MESSAGES["0.eml"], client)
    except Refused as refused:
        raise TextnbError(f"still {refused}") from None


def learn() -> None:
    """The learner of `textnb serve` learns what it was told."""
    from textnb.filter import learner

    learner.learn(_MODEL)


def serve() -> None:
    """`textnb serve --allow-tell` is told three messages, learns them, and ends."""
    from benchmarks.served import ask

    # Its processes are waited for here if it is killed: PR_SET_CHILD_SUBREAPER.
    CDLL(None).prctl(36, 1)
    server = subprocess.Popen(
        # -P: no modules are looked for in the folder whose calls fail.
        [sys.executable, "-P", "-m", "textnb", "serve", _MODEL, "--listen", "socket", "--workers",
         "1", "--allow-tell", str(os.getuid()), "--learn-seconds", "0.1"], stderr=subprocess.PIPE)
    lines, told, end = list[bytes](), set[str](), time.monotonic() + 30
    reader = Thread(target=lambda: lines.extend(server.stderr or []), daemon=True)
    reader.start()
    while server.poll() is None and time.monotonic() < end and sum(
            json.loads(line)["messages"] for line in [*lines]
            if b'"event": "learned"' in line) < len(_MESSAGES):
        for name in {*_MESSAGES} - told:
            # The socket is not there at first, and a client tries again after a failure.
            with suppress(OSError):
                _, answer = ask("socket", "TELL", _MESSAGES[name],
                                "Message-class: spam\r\nSet: local\r\n")
                told |= {name} if b" 0 EX_OK" in answer else set()
                # What was learned before is learned no more.
                end = min(end, time.monotonic() + 5)
        time.sleep(0.05)
    server.terminate()
    with suppress(ChildProcessError):
        while os.wait():
            pass
    reader.join()
    print(b"".join(lines).decode(), f"confirmed: {len(told)}", file=sys.stderr, flush=True)
    if len(told) < len(_MESSAGES):
        raise TextnbError(f"{_MODEL} was not told all")


_BY_LEDGER = f"update {_MODEL} 1.eml --as ham --ledger"
# Each with what runs before it.
COMMANDS: dict[str, tuple[Command, ...]] = {
    "train": ("train rows.csv --text body -o new.textnb",),
    "train again": (f"train rows.csv --text body -o {_MODEL} --l 0.5",),
    "update": (f"update {_MODEL} more.csv",),
    "update by ledger": (f"update {_MODEL} more.csv", _BY_LEDGER),
    "update of a message": (f"update {_MODEL} 0.eml --as spam",),
    "message by ledger": (f"update {_MODEL} 0.eml --as spam", _BY_LEDGER),
    "forget": (f"forget {_MODEL} more.csv",),
    "relabel": (f"relabel rows.csv --text body --from review.csv --model {_MODEL} "
                "-o corrected.csv",),
    "export": (f"export {_MODEL} --to python -o bundle",
               f"export {_MODEL} --to python --top 5 -o bundle"),
    "export zip": (f"export {_MODEL} --to json -o bundle.zip",),
    "export file": (f"export {_MODEL} --to python -o model.py",
                    f"export {_MODEL} --to python --top 5 -o model.py"),
    "predict": (f"predict {_MODEL} more.csv -o answers.csv",),
    "predict parquet": (f"predict {_MODEL} more.csv -o answers.parquet",),
    "new job": ("run job.toml --set output=out/job",),
    "job": ("run job.toml", "run job.toml --set model.l=0.1"),
    "filter": (f"filter {_MODEL} --exit-zero",),
    "maildir": (f"filter {_MODEL} --maildir Mail",),
    "tell": (tell, _BY_LEDGER), "learn": (learn, _BY_LEDGER, tell), "serve": (serve,)}
# Run again, they learn or forget once more.
_ADDING = ("update", "update of a message", "forget", "relabel")


# Running


class Shared:
    """The plan that the commands share with this process: see `struct plan` in faults.c."""

    def __init__(self, file: str) -> None:
        with open(file, "r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), _SIZE)

    def run(self, does: Command, folder: Path, at: int = -1, action: int = 0) -> Outcome:
        """Run a command, with a fault at one of its calls."""
        self._memory[_HEAD.size:_HEAD.size + _FOLDER] = os.fsencode(folder).ljust(_FOLDER, b"\0")
        _HEAD.pack_into(self._memory, 0, 1, 0, at, action)
        code, answer, said = in_child(does, folder)
        _, number, *_ = _HEAD.unpack_from(self._memory)
        _HEAD.pack_into(self._memory, 0, 0, 0, -1, 0)
        assert number <= _CALLS, f"{number} calls are too many to note"
        rows = [_CALL.unpack_from(self._memory, _HEAD.size + _FOLDER + n * _CALL.size)
                for n in range(number)]
        return Outcome(code, states(folder), answer, said, [
            Call._make([*(text.split(b"\0")[0].decode() for text in texts), result])
            for *texts, result in rows], folders_of_mail(folder))


def folders_of_mail(folder: Path) -> dict[bytes, set[str]]:
    found: dict[bytes, set[str]] = {}
    for path in (folder / "Mail").rglob("*.eml"):
        found.setdefault(path.read_bytes(), set()).add(str(path.parent.relative_to(folder)))
    return found


def in_child(does: Command, folder: Path) -> tuple[int, str, str]:
    """Run a command in a child of this process; its exit code, or minus its signal, and what it
    wrote to its standard output and error."""
    with (tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as answer,
          tempfile.TemporaryFile() as said):
        source.write(_MESSAGES["0.eml"])
        source.seek(0)
        child = os.fork()
        if not child:
            try:
                # The temporary folder is the parent's.
                atexit._clear()
                os.chdir(folder)
                # What is written for a moment is on the disk that is full, too.
                os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
                for file, number in ((source, 0), (answer, 1), (said, 2)):
                    os.dup2(file.fileno(), number)
                signal.alarm(60)
                if callable(does):
                    does()
                    os._exit(0)
                from textnb.cli.entry import main

                sys.argv = ["textnb", *does.split()]
                main()
            except TextnbError as error:
                os.write(2, f"error: {error}".encode())
                os._exit(1)
            finally:
                os.write(2, traceback.format_exc().encode())
                os._exit(99)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (answer, said):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return code, texts[0], texts[1]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


def states(folder: Path) -> dict[str, Any]:
    """What is in a folder, by the names that are replaced as a whole."""
    found: dict[str, Any] = {}
    for path in sorted([*folder.iterdir(), *folder.glob("out/*")]):
        name = str(path.relative_to(folder))
        if path.name == "Mail":
            # A message may be in two folders for a moment, and must not be in none.
            found[path.name] = {file.read_bytes() for file in path.rglob("*.eml")}
        elif path.name == _LEDGER:
            # To open it would change it: its log is written into it.
            with tempfile.TemporaryDirectory() as copies:
                for part in folder.glob(f"{_LEDGER}*"):
                    shutil.copy(part, copies)
                with closing(sqlite3.connect(Path(copies, _LEDGER))) as database:
                    # A kill can leave one without tables, which the next command makes.
                    has_tables = database.execute("SELECT 1 FROM sqlite_master").fetchone()
                    found[path.name] = [
                        sorted(database.execute(f"SELECT id, class FROM {table}"))
                        if has_tables else [] for table in ("learned", "pending")]
        elif path.is_dir() and path.name != "out":
            found[name] = contents(path)
        elif path.is_file() and not path.name.startswith(f"{_LEDGER}-"):
            found[name] = path.read_bytes()
    return found


def prepare(folder: Path, before: tuple[Command, ...]) -> None:
    """Write the files that commands read, and run what comes before one."""
    for name, content in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    for does in (f"train rows.csv --text body -o {_MODEL}", *before):
        code, _, said = in_child(does, folder)
        assert code == 0, (does, said)


# Judging


def unsynced(calls: list[Call], before: set[str]) -> Iterator[str]:
    """What a loss of power could take back, though the command has succeeded.

    ``before`` has the paths that were there when it began.
    """
    dirty, linked, exchanged = set[str](), dict[str, str](), dict[str, str]()
    # Names that are not in their folder yet, after a loss of power.
    new = set[str]()
    for call in calls:
        # Without the names of judged messages, these are judged again.
        if call.result < 0 or call.path.endswith(" (deleted)") or ".textnb-judged" in call.path:
            continue
        # SQLite cuts its log only to empty it. If that is taken back, it says the same once more.
        is_removed = call.name == "unlink" or (
            call.name == "ftruncate" and call.path.endswith("-wal"))
        if call.name in ("write", "ftruncate") and not (is_removed or call.path.endswith("-shm")):
            dirty.add(call.path)
        elif call.name in ("create", "mkdir") and call.path not in before:
            new.add(call.path)
        elif call.name in ("rename", "exchange"):
            for path in sorted(dirty):
                if path == call.path or path.startswith(f"{call.path}/"):
                    yield f"{path} is moved to {call.to} before it is synced"
            new = {path for path in new if path != call.path} | {call.to}
            if call.name == "exchange":
                exchanged[call.path] = call.to
        elif call.name == "link":
            linked[call.path] = call.to
            new.add(call.to)
        elif is_removed and call.path.removesuffix("-wal") in dirty - {call.path}:
            yield f"{call.path} is removed before its database is synced"
        elif call.name == "unlink" and linked.get(call.path) in new and not _is_temporary(
                call.path):
            yield f"{call.path} is removed before {linked[call.path]} is synced"
        elif call.name in ("unlink", "rmdir") and any(
                to in new and f"{call.path}/".startswith(f"{path}/")
                for path, to in exchanged.items()):
            yield f"{call.path} is removed before the new {[*exchanged.values()]} is synced"
        elif call.name == "fsync" and call.path.endswith("-wal") and new & before:
            yield f"{call.path} tells of {sorted(new & before)} before its folder is synced"
        elif call.name == "fsync":
            new = {path for path in new if os.path.dirname(path) != call.path}
        if is_removed or call.name in ("fsync", "rename"):
            dirty.discard(call.path)
        if call.name in ("unlink", "rmdir"):
            new.discard(call.path)
    # A ledger is what its log says, until that is removed.
    yield from (f"{path} is not synced" for path in sorted(dirty - {_LEDGER})
                if not _is_temporary(path))
    # A new model that is not moved over the old one is made again from the ledger.
    yield from (f"the folder of {path} is not synced" for path in sorted(new - {_NEXT})
                if not _is_temporary(path))


def _is_temporary(path: str) -> bool:
    return any(map(_TEMPORARY.fullmatch, path.split("/")))


def is_model(content: bytes | None) -> bool:
    """Whether a server that was not told all has written a whole model."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, _MODEL).write_bytes(content or b"")
        code, *_ = in_child(f"describe {_MODEL}", Path(folder))
    return code == 0


def problems(
    fault: str, call: Call, failure: int, before: Outcome, after: Outcome, now: Outcome,
    again: Outcome | None, paths: set[str],
) -> Iterator[tuple[str, str]]:
    """What is wrong with a run: its kind, and words. ``paths`` were there when it began."""
    known = {**before.files, **after.files}
    old, new = ([name for name in known if now.files.get(name) == one.files.get(name)
                 and before.files.get(name) != after.files.get(name)] for one in (before, after))
    confirmed = re.search("confirmed: ([0-9])", now.said)
    for name in known:
        if now.files.get(name) not in (before.files.get(name), after.files.get(name)) and not (
                confirmed and (name == _LEDGER or is_model(now.files.get(name)))):
            yield "half_written", f"{name} is neither the old nor the new one"
    noted = {id for table in now.files.get(_LEDGER, ()) for id, _ in table}
    if confirmed and int(confirmed[1]) > len(noted):
        yield "lost", "what was confirmed is not in the ledger"
    if fault == "kill" and now.code == -signal.SIGKILL:
        pass
    elif now.code == after.code:
        if old and not confirmed:
            yield "lost", f"succeeded, and did not write {old}"
        if now.answer != after.answer:
            yield "lost", "succeeded, and did not write the answer"
        if now.filed != after.filed:
            yield "lost", "succeeded, and did not file the messages"
        # A server that could not learn a message keeps it in its ledger.
        if '"not learned"' not in now.said:
            for words in {*unsynced(now.calls, paths)} - {*unsynced(after.calls, paths)}:
                yield "lost", words
    elif now.code != failure or ("error: still" in now.said and fault not in _STAYING):
        yield "unclear", f"ended with {now.code}"
    elif not any(name in now.said for name in names_of(
            "" if fault in _STAYING else call.path or call.to, known)):
        yield "unclear", f"the message does not name {call.path}"
    elif {*new} - {_LEDGER} and " is written" not in now.said and not confirmed:
        yield "unclear", f"failed, and does not say that {new} is written"
    if "Traceback" in now.said:
        yield "unclear", "it shows a traceback"
    others = sorted({*now.files} - {*known} - {_NEXT})
    # If a lock fails, its empty file stays; the next process that locks it removes it.
    if others and fault not in ("kill", "EIO ever after") and call.name not in (
            "unlink", "rmdir", "lock") and not call.path.endswith("-lock"):
        yield "left", f"{others} stays"
    if again is not None:
        names = [name for name in {**again.files, **known} if not _is_temporary(name)
                 and again.files.get(name) != after.files.get(name)]
        if names or again.code != after.code:
            yield "lost", f"run again, it ends with {again.code}, {names} differ: {again.said!r}"


def names_of(path: str, known: Iterable[str]) -> set[str]:
    """The words of which a message has one, if a call failed: the name in its path, or any."""
    names = {*map(os.path.basename, known)}
    # Where the engine reads and writes at a time, it does not say which of both failed.
    return ({name for name in names if name in path} or names) | {"the input or write"}


def cases_of(
    calls: list[Call], kinds: Collection[str], limit: int | None, once: bool = False
) -> list[tuple[str, int, Call]]:
    """Each fault at each of some calls; or ``limit`` of them, as many of each kind of fault and
    call, as far as there are. With ``once``, each call has one fault and one kill."""
    cases = [(fault, at, call) for fault, (_, names) in FAULTS.items()
             for at, call in enumerate(calls) if call.name in names.split()
             and call.name in (kinds or _ALL.split())]
    if once:
        Random(1).shuffle(cases)
        cases = [*{(at, fault == "kill"): (fault, at, call) for fault, at, call in cases}.values()]
    if limit is not None:
        counts = Counter[tuple[str, str]]()
        Random(1).shuffle(cases)
        cases.sort(key=lambda case: counts.update([kind := (case[0], case[2].name)])
                   or counts[kind])
    return cases[:limit]


def try_command(
    name: str, shared: Shared, root: Path, kinds: Collection[str] = (), limit: int | None = None,
    once: bool = False,
) -> dict[str, Any]:
    """Run a command in peace, and with each fault at each of its calls, or with some of them."""
    (does, *first), template, folder = COMMANDS[name], root / name, root / "work"
    prepare(template, tuple(first))
    before, unchanged = Outcome(0, states(template)), contents(template)
    paths = {str(path.relative_to(template)) for path in template.rglob("*")}

    def run(fault: str, at: int) -> Outcome:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder)
        return shared.run(does, folder, at, FAULTS[fault][0])

    after, counts, found = run("EIO", -1), Counter[str](), dict[str, str]()
    assert after.code == 0, after
    assert after.calls, after
    for fault, at, call in cases_of(after.calls, kinds, limit, once):
        now, again = run(fault, at), None
        is_same = contents(folder) == unchanged or now[:2] == after[:2]
        if not is_same and (name not in _ADDING or now.files == before.files):
            again = shared.run(does, folder)
        counts["kills" if fault == "kill" else "errors"] += 1
        failure = 3 if str(does).startswith("filter") else 1
        for kind, words in problems(fault, call, failure, before, after, now, again, paths):
            counts[kind] += 1
            found.setdefault(f"{kind}: {fault} of {call.name}: {words}", (
                f"call {at}: {call.path} {call.to}; code {now.code}: {now.said[-300:]!r}"))
    for words in unsynced(after.calls, paths):
        counts["lost"] += 1
        found[f"lost: {words}"] = "in peace"
    return {"command": name, "calls": len(after.calls),
            "cases": len(cases_of(after.calls, kinds, None)), "found": found, **{
                kind: counts[kind] for kind in ("errors", "kills", *WRONG)}}


def main() -> None:
    listed = "\n".join(f"    {name:<20} {does.__doc__ if callable(does) else does}"
                       for name, (does, *_) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="scripts/faults", description=(__doc__ or "").format(commands=listed),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="all of them by default")
    parser.add_argument("--call", action="append", choices=_ALL.split(), metavar="CALL",
                        help="a kind of calls to try, such as stat; repeat it for several; all of "
                             "them by default")
    parser.add_argument("--cases", type=int, metavar="N",
                        help="faults to try with each command, a random sample of each kind; all "
                             "of them by default")
    parser.add_argument("--once", action="store_true",
                        help="let each call fail once, by a fault that is drawn at random, and be "
                             "killed once; each possible fault by default")
    parser.add_argument("--record", action="store_true",
                        help="add the figures to docs/tried/faults.json and the page What was "
                             "tried")
    arguments = parser.parse_args()
    if arguments.cases is not None and arguments.cases < 1:
        parser.error("--cases must be 1 or more")
    if arguments.record and arguments.call:
        parser.error("--record is for all kinds of calls: leave out --call")
    if arguments.record:
        pages.check("faults")
    harness.require_compiler("cc", "gcc libc6-dev")
    for command in arguments.command:
        if command not in COMMANDS:
            parser.error(f"there is no command {command!r}: see --help")
    with tempfile.TemporaryDirectory(prefix="textnb-faults-") as name:
        if "FAULTS" not in os.environ:
            # Once more, with the library before libc.
            library, plan = f"{name}/faults.so", f"{name}/plan"
            source = Path(__file__).with_suffix(".c")
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"],
                           check=True)
            Path(plan).write_bytes(bytes(_SIZE))
            sys.exit(subprocess.run(
                [sys.executable, "-m", "fuzzing.faults", *sys.argv[1:]], check=False,
                # Whole paths, as commands run in another folder.
                env={**os.environ, **harness.FIND_MODULES, "FAULTS": plan, "LD_PRELOAD": library,
                     "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}).returncode)
        # Imported once, and not in each child. Some versions of filelock try a folder then.
        for module in ("filelock", "textnb.filter.worker", "textnb.filter.learner",
                       "textnb.text.native.rows", "textnb.workflow.run", *(
                f"textnb.cli.{module.partition(':')[0]}" for module, *_ in VERBS.values())):
            import_module(module)
        shared, is_wrong = Shared(os.environ["FAULTS"]), False
        for command in dict.fromkeys(arguments.command or COMMANDS):
            row = try_command(command, shared, Path(name).resolve(), arguments.call or (),
                              arguments.cases, arguments.once)
            if arguments.command and not row["cases"]:
                parser.error(f"{command} makes no such call")
            found = row.pop("found")
            print(f"{command}: {row['calls']} calls, {row['errors'] + row['kills']:,} of "
                  f"{row['cases']:,} possible faults tried, "
                  + ", ".join(f"{row[kind]} {kind.replace('_', '-')}" for kind in WRONG), *(
                      f"    {words}\n        {more}" for words, more in found.items()),
                  sep="\n", flush=True)
            is_wrong |= bool(found)
            if arguments.record:
                from benchmarks.__main__ import machine

                pages.add("faults", {**row, "cpu": machine()["cpu"]})
    sys.exit(is_wrong)


if __name__ == "__main__":
    with harness.stoppable():
        main()
