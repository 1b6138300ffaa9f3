"""A warning names the user's line, whatever way led into the package."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import TextClassifier
from textnb.evaluation.held_out import HeldOut

# Of 3,000 words about as many come once in a class and in the other too.
ROWS = pl.DataFrame({
    "text": [" ".join(f"w{n * place * 7919 % 3001}" for place in range(1, 12)) for n in range(300)],
    "label": ["x" if n % 2 else "y" for n in range(300)]})


def held_out() -> None:
    textnb.held_out(TextClassifier().fit(ROWS), ROWS)


def evaluate() -> None:
    textnb.evaluate(TextClassifier().fit(ROWS), ROWS)


def calibration() -> None:
    scores = np.log(np.array([[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]]))
    textnb.fit_calibration(HeldOut(
        np.array(["x", "y"]), scores, np.array([0, 1, -1]), np.ones(3), "5 folds"))


def calibrate() -> None:
    rows = pl.DataFrame({"text": ["aa", "aa bb", "bb", "cc"], "label": ["x", "x", "y", "y"]})
    model = TextClassifier().fit(rows)
    textnb.calibrate(model.partial_fit(["dd"], ["z"], classes=["z"]), pl.concat(
        [rows, pl.DataFrame({"text": ["dd"], "label": ["z"]})]))


def one_class() -> None:
    TextClassifier().fit(["aa bb", "bb"], ["x", "x"])


def one_class_by_batches() -> None:
    TextClassifier().partial_fit(["aa bb", "bb"], ["x", "x"])


def unknown_terms() -> None:
    TextClassifier().fit(["aa bb", "bb"], ["x", "y"]).predict(["zz"] * 200)


def folds() -> None:
    rows = pl.DataFrame({"text": ["aa", "bb", "aa", "bb", "aa bb"], "label": ["x"] * 4 + ["y"]})
    textnb.cross_validate(TextClassifier(), rows, folds=3)


@pytest.mark.parametrize("call", [
    held_out, evaluate, calibration, calibrate, one_class, one_class_by_batches, unknown_terms,
    folds])
def test_it_names_the_line_that_called(call: Callable[[], None]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    lines, first = inspect.getsourcelines(call)
    assert caught
    for warning in caught:
        assert warning.filename == __file__
        assert first <= warning.lineno < first + len(lines)


def test_at_the_top_of_a_script(tmp_path: Path) -> None:
    """The warning of a load too, and as the default filters show it."""
    script = tmp_path / "script.py"
    script.write_text("""import textnb
rows = {"text": [" ".join(f"w{n * place * 7919 % 3001}" for place in range(1, 12))
                 for n in range(300)],
        "label": ["x" if n % 2 else "y" for n in range(300)]}
model = textnb.TextClassifier().fit(rows)
textnb.evaluate(model, rows)
textnb.held_out(model, rows)
textnb.TextClassifier().fit(["aa"], ["x"]).save("m")
textnb.load("m")
""", "utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = [line.split(": ")[0].rpartition(":")[2] for line in done.stderr.splitlines()
             if line.startswith(str(script))]
    assert found == ["6", "7", "8", "9"], done.stderr
