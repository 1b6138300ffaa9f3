"""Plant faults in a copy of the package, one at a time: a target is to find each within a minute.

`soak` is a target, too: `scripts/soak` runs for a minute.

On a busy machine, a minute is up to three times as long.

    PYTHONPATH=scripts:. python -m fuzzing.planted TARGET [NUMBER ...]

`planted/TARGET.toml` has the faults: what each is, a file, and a text in it with its replacement.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from fuzzing import harness

FOLDER = Path(__file__).with_name("planted")
SECONDS = 60
_SAID = re.compile(r" wrong: |ERROR: |runtime error: ")
# What a run prints that came to its end.
_ENDED = re.compile(r"^(finding: tests/|\| seconds \|)", re.MULTILINE)


def names() -> list[str]:
    """What faults are planted for."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def faults_of(name: str) -> list[dict[str, str]]:
    """The faults of a target."""
    faults: list[dict[str, str]] = tomllib.loads(
        (FOLDER / f"{name}.toml").read_text("utf-8"))["fault"]
    return faults


def main(name: str, numbers: list[int]) -> None:
    faults = faults_of(name)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="textnb-fuzz-", dir=harness.in_memory()) as folder:
        root = Path(folder)
        for part in ("textnb", "scripts", "tests"):
            shutil.copytree(harness.ROOT / part, root / part)
        for number, fault in enumerate(faults, start=1):
            if numbers and number not in numbers:
                continue
            file = root / fault["file"]
            source = file.read_text("utf-8")
            if source.count(fault["old"]) != 1:
                sys.exit(f"fault {number} of {name}: {fault['file']} does not have its text once")
            file.write_text(source.replace(fault["old"], fault["new"]), "utf-8")
            busy = os.getloadavg()[0] / (os.cpu_count() or 1)
            seconds = SECONDS * min(max(1.0, busy), 3.0)
            module = ["fuzzing.soak"] if name == "soak" else ["fuzzing", name, "--until-found"]
            ran = subprocess.run(
                [sys.executable, "-m", *module, "--seconds", f"{seconds:.0f}"], cwd=root,
                env={**os.environ, "PYTHONPATH": "scripts:."}, capture_output=True,
                text=True, errors="replace", check=False)
            file.write_text(source, "utf-8")
            if ran.returncode and not _ENDED.search(ran.stdout):
                sys.exit(f"fault {number} of {name} does not let the target begin: {ran.stdout}"
                         f"{ran.stderr}")
            lines = ran.stdout.strip().splitlines()
            begin = re.match(f"{name}: (.* inputs)", lines[0])
            # The kernel and the sanitizers write more after it.
            what = next(filter(_SAID.search, lines), lines[-1])
            print(f"{number:>2} {fault['about']}: "
                  f"{f'after {begin[1]}: ' if begin and ran.returncode else ''}"
                  f"{what[:100] if ran.returncode else 'missed'}", flush=True)
            missed += not ran.returncode
    sys.exit(missed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=names())
    parser.add_argument("number", nargs="*", type=int, help="of a fault; all by default")
    arguments = parser.parse_args()
    main(arguments.target, arguments.number)
