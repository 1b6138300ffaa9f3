"""A warning names the user's line; the log says what was learned, and asks for no handler."""

import logging
import subprocess
import sys
import warnings

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import GaussianNB, NBLinear, NBLogisticRegression, TableClassifier, TextClassifier
from textnb.evaluation.held_out import HeldOut

# Of 3,000 words about as many come once in a class and in the other too.
ROWS = pl.DataFrame({
    "text": [" ".join(f"w{n * place * 7919 % 3001}" for place in range(1, 12)) for n in range(300)],
    "label": ["x" if n % 2 else "y" for n in range(300)]})
FOUR = pl.DataFrame({"text": ["aa", "aa bb", "bb", "cc"], "label": ["x", "x", "y", "y"]})
FIVE = pl.DataFrame({"text": ["aa", "bb", "aa", "bb", "aa bb"], "label": ["x"] * 4 + ["y"]})
UNKNOWN = HeldOut(np.array(["x", "y"]), np.log([[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]]),
                  np.array([0, 1, -1]), np.ones(3), "5 folds")


@pytest.mark.parametrize("call", [
    lambda: textnb.held_out(TextClassifier().fit(ROWS), ROWS),
    lambda: textnb.evaluate(TextClassifier().fit(ROWS), ROWS),
    lambda: textnb.fit_calibration(UNKNOWN),
    lambda: textnb.calibrate(
        TextClassifier().fit(FOUR).partial_fit(["dd"], ["z"], classes=["z"]),
        pl.concat([FOUR, pl.DataFrame({"text": ["dd"], "label": ["z"]})])),
    lambda: TextClassifier().fit(["aa bb", "bb"], ["x", "x"]),
    lambda: TextClassifier().partial_fit(["aa bb", "bb"], ["x", "x"]),
    lambda: TextClassifier().fit(["aa bb", "bb"], ["x", "y"]).predict(["zz"] * 200),
    lambda: textnb.cross_validate(TextClassifier(), FIVE, folds=3)])
def test_a_warning_names_the_line_that_called(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    for warning in caught:
        assert warning.filename == __file__
        assert warning.lineno in {line for *_, line in call.__code__.co_lines()}


def run_script(code, folder):
    (folder / "script.py").write_text(code, "utf-8")
    return subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True,
                          timeout=120, check=True)


def test_a_warning_names_the_line_of_a_script(tmp_path):
    """That of a load too, and as the default filters show it."""
    ran = run_script("""import textnb
rows = {"text": [" ".join(f"w{n * place * 7919 % 3001}" for place in range(1, 12))
                 for n in range(300)],
        "label": ["x" if n % 2 else "y" for n in range(300)]}
model = textnb.TextClassifier().fit(rows)
textnb.evaluate(model, rows)
textnb.held_out(model, rows)
textnb.TextClassifier().fit(["aa"], ["x"]).save("m")
textnb.load("m")
""", tmp_path)
    lines = [line.split(": ")[0].rpartition(":")[2] for line in ran.stderr.splitlines()
             if "script.py:" in line]
    assert lines == ["6", "7", "8", "9"], ran.stderr


def test_what_is_learned_is_logged_at_info(caplog):
    caplog.set_level(logging.INFO, "textnb")
    documents = pl.DataFrame({"text": ["aa bb", "cc", "aa"], "label": ["x", "y", "x"]})
    model = TextClassifier().fit(documents)
    model.partial_fit(documents)
    model.forget(documents.head(1))
    TextClassifier(NBLogisticRegression()).fit(documents)
    for options in ({}, {"keep_sample": 9}):
        linear = TextClassifier(NBLinear(idf=False)).fit(documents, **options)
        linear.partial_fit(documents).forget(documents)
    TableClassifier(GaussianNB()).fit(pl.DataFrame(
        {"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0], "label": ["x", "x", "y"]}))
    parts = [record.getMessage().split("; ") for record in caplog.records]
    assert [what for what, _ in parts] == [
        "fit: MultinomialNB, 3 documents, 3 terms, 2 classes",
        "partial_fit: MultinomialNB, 6 documents, 3 terms, 2 classes",
        "forget: MultinomialNB, 5 documents, 3 terms, 2 classes",
        "fit: NBLogisticRegression, 3 documents, 3 terms, 2 classes",
        *[f"{verb}: NBLinear, {n} documents, 4 terms, 2 classes"
          for verb, n in (("fit", 3), ("partial_fit", 6), ("forget", 3))] * 2,
        "fit: GaussianNB, 3 rows, 2 features, 2 classes"]
    assert all(seconds.endswith(" s") for _, seconds in parts)
    assert all(record.levelno == logging.INFO for record in caplog.records)


@pytest.mark.slow
def test_nothing_is_said_unless_asked_and_no_handler_is_added(tmp_path):
    ran = run_script("""import logging, textnb
textnb.TextClassifier().fit(['aa', 'bb'], ['x', 'y'])
names = [n for n in logging.root.manager.loggerDict if n.startswith('textnb')]
print(len(names) > 0, [h for n in names for h in logging.getLogger(n).handlers])
""", tmp_path)
    assert (ran.stdout, ran.stderr) == ("True []\n", "")
