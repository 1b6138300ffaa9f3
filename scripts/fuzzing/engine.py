"""The process that mutates and checks: `python -m fuzzing.engine TARGET FOLDER`, as libFuzzer.

With atheris, inputs that reach new edges of the package are mutated further. Without it, all inputs
are mutated seeds.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from random import Random

from fuzzing import harness

try:
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:
    atheris = None
# One of so many mutations is libFuzzer's own, which knows what the package compared bytes with.
_OF_LIBFUZZER = 5
# One of so many begins with a seed again.
_OF_SEEDS = 3
# Inputs after which the process is asked for its memory.
_OF_MEMORY = 100


def main(name: str, folder: Path, options: list[str]) -> None:
    warnings.simplefilter("ignore")
    # What the target imports is instrumented, so it says itself what that is to be.
    with nullcontext() if atheris is None else atheris.instrument_imports(
            include=harness.constant(name, "WITHIN", ["textnb"])):
        target = harness.load(name)
        seeds = target.seeds()
    judge = harness.Judge(target.check)
    size = max(harness.longest(target), *map(len, seeds))
    (folder / harness.CURRENT).write_bytes(bytes(8 + size))
    with (folder / harness.CURRENT).open("r+b") as file:
        current = mmap.mmap(file.fileno(), 0)
    recent, top = list[bytes](), 0

    def check(data: bytes) -> None:
        nonlocal top
        # If the process dies, this is what it died of.
        current[:8 + len(data)] = len(data).to_bytes(8, "little") + data
        note(data, judge.problem(data))
        recent.append(data)
        if len(recent) == _OF_MEMORY:
            # Asking for each would take as long as some checks.
            if (now := harness.peak()) > top + harness.LITTLE:
                top = now
                for each in recent:
                    note(each, judge.memory_problem(each))
            recent.clear()

    def note(data: bytes, problem: harness.Problem | None) -> None:
        if problem is not None:
            if data in seeds and harness.is_of_check(problem):
                print("the check itself fails for an input that was not changed:", problem.text,
                      sep="\n", file=sys.stderr, flush=True)
                os._exit(1)
            digest = hashlib.sha256(problem.what.encode()).hexdigest()[:12]
            path = folder / "findings" / digest
            if not path.exists() or path.stat().st_size > len(data):
                path.write_bytes(data)
                path.with_suffix(".txt").write_text(problem.text)
            if os.environ.get(harness.UNTIL_FOUND):
                os._exit(1)

    if atheris is None:
        print("engine: random", file=sys.stderr)
        for seed in seeds:
            check(seed)
        _run_random(target, check, options)
        return
    print("engine: atheris", file=sys.stderr)
    for seed in seeds:
        (folder / "corpus" / hashlib.sha256(seed).hexdigest()).write_bytes(seed)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        random = Random(seed)
        if not random.randrange(_OF_SEEDS):
            # What has reached new edges is mostly refused, and changes of it are too.
            data = random.choice(seeds)
        elif not random.randrange(_OF_LIBFUZZER):
            return bytes(atheris.Mutate(data, max_size))
        return bytes(target.mutate(data, random)[:max_size])

    atheris.Setup([sys.argv[0], *options], check, custom_mutator=mutate)
    atheris.Fuzz()


def _run_random(target: harness.Target, check: Callable[[bytes], None], options: list[str]) -> None:
    settings = dict(re.findall(r"-(\w+)=(\S+)", " ".join(options)))
    end, number = time.monotonic() + float(settings["max_total_time"]), 0
    for data in harness.inputs(target, 1 << 60, int(settings["seed"])):
        check(data)
        number += 1
        if time.monotonic() > end:
            break
    print(f"#{number} DONE cov: 0 rss: {harness.peak() >> 20}Mb", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
