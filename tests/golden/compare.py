"""Compare the bits of answers with those of another checkout.

    python -m tests.golden.compare OTHER

Each checkout's package answers in a process of its own, with the cells of this one. Compared are
the answers of every model and of the model as it is loaded again. Names after OTHER choose cells.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import textnb

from .cells import all_cells
from .record import flatten

ROOT = Path(__file__).parents[2]


def write(path: Path, prefixes: tuple[str, ...]) -> None:
    """Keep all answers of the package that is imported; floats as their bits."""
    warnings.simplefilter("ignore")
    answers: dict[str, Any] = {"package": str(Path(textnb.__file__).parents[1])}
    for cell in (cell for cell in all_cells() if cell.name.startswith(prefixes or "")):
        found = cell.compute()
        try:
            cell.fit().save(path.with_suffix(".textnb"))
            loaded = cell.compute(textnb.load(path.with_suffix(".textnb")))
        # Not every cell has a model that can be saved.
        except (textnb.TextnbError, AttributeError):
            loaded = {}
        again = {f"{name}, loaded": value for name, value in loaded.items()}
        for name, value in {**found, **again}.items():
            exact, numbers = flatten(value)
            answers[f"{cell.name}: {name}"] = exact, np.array(numbers).tobytes()
    path.write_bytes(pickle.dumps(answers))


def answers_of(checkout: Path, prefixes: list[str], folder: Path) -> dict[str, Any]:
    path = folder / "answers"
    subprocess.run([sys.executable, "-m", "tests.golden.compare", "--write", path, *prefixes],
                   cwd=folder, check=True,
                   env={**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{folder}"})
    answers: dict[str, Any] = pickle.loads(path.read_bytes())
    if answers.pop("package") != str(checkout):
        sys.exit(f"the package that was imported is not that of {checkout}")
    return answers


def main(other: Path, prefixes: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="textnb-") as name:
        # The other checkout has cells of its own, which must not come first.
        (Path(name) / "tests").symlink_to(ROOT / "tests")
        before, now = (answers_of(checkout, prefixes, Path(name))
                       for checkout in (other.resolve(), ROOT))
    differ = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    for name in differ:
        print(f"{name} differs")
    print(f"{len({*before, *now}):,} answers, {len(differ):,} differ")
    sys.exit(bool(differ))


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        write(Path(sys.argv[2]), tuple(sys.argv[3:]))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
