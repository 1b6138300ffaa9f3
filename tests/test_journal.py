"""What is told to the logger of the package, and that nothing else is done to it."""

from __future__ import annotations

import logging
import subprocess
import sys

import polars as pl
import pytest

from textnb import GaussianNB, NBLogisticRegression, TableClassifier, TextClassifier

DOCUMENTS = pl.DataFrame({"text": ["aa bb", "cc", "aa"], "label": ["x", "y", "x"]})
TABLE = pl.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0], "label": ["x", "x", "y"]})


def test_what_is_learned_is_told_at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "textnb")
    model = TextClassifier().fit(DOCUMENTS)
    model.partial_fit(DOCUMENTS)
    model.forget(DOCUMENTS.head(1))
    TextClassifier(NBLogisticRegression()).fit(DOCUMENTS)
    TableClassifier(GaussianNB()).fit(TABLE)
    said = [record.getMessage().split("; ") for record in caplog.records]
    assert [what for what, _ in said] == [
        "fit: MultinomialNB, 3 documents, 3 terms, 2 classes",
        "partial_fit: MultinomialNB, 6 documents, 3 terms, 2 classes",
        "forget: MultinomialNB, 5 documents, 3 terms, 2 classes",
        "fit: NBLogisticRegression, 3 documents, 3 terms, 2 classes",
        "fit: GaussianNB, 3 rows, 2 features, 2 classes"]
    assert all(seconds.endswith(" s") for _, seconds in said)
    assert all(record.levelno == logging.INFO for record in caplog.records)
    names = [name for name in logging.root.manager.loggerDict if name.startswith("textnb")]
    assert [handler for name in names for handler in logging.getLogger(name).handlers
            if handler is not caplog.handler] == []


@pytest.mark.slow
def test_nothing_is_told_unless_asked_and_no_handler_is_added() -> None:
    code = ("import logging, textnb\n"
            "textnb.TextClassifier().fit(['aa', 'bb'], ['x', 'y'])\n"
            "names = [n for n in logging.root.manager.loggerDict if n.startswith('textnb')]\n"
            "print([h for n in names for h in logging.getLogger(n).handlers])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
