"""What a command imports is part of the time that its user waits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import MAIL, PROGRAM
from textnb import TextClassifier
from textnb.text.native.kernel import build

# A second or more, for nothing that these verbs need.
HEAVY = {"sklearn", "scipy.stats", "pandas"}
# Less, but most of what a small training takes.
NEEDLESS = HEAVY | {"scipy", "pydantic", "rich", "charset_normalizer", "numpy.random"}
VERBS = {
    "train": ["train", "mail.parquet", "-o", "new.textnb"],
    "train --l auto": ["train", "mail.parquet", "-o", "new.textnb", "--l", "auto"],
    "predict": ["predict", "m.textnb", "mail.parquet", "--probability", "--explain", "2",
                "-o", "answers.parquet"],
    "test": ["test", "m.textnb", "mail.parquet", "--positive", "spam"],
    "top": ["top", "m.textnb"],
    "explain": ["explain", "m.textnb", "free lunch"],
    "filter": ["filter", "m.textnb"],
    "update": ["update", "m.textnb", "mail.parquet"],
    "update --on-error": ["update", "m.textnb", "mail.parquet", "--on-error"],
    "forget": ["forget", "m.textnb", "some.parquet"],
    "merge": ["merge", "m.textnb", "m.textnb", "-o", "sum.textnb"],
    "export": ["export", "m.textnb", "-o", "bundle", "--to", "python"],
    "verify": ["verify", "exported"],
    "describe": ["describe", "m.textnb"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, its rows, and an export of it."""
    from textnb import export_model

    MAIL.write_parquet(tmp_path / "mail.parquet")
    MAIL.head(2).write_parquet(tmp_path / "some.parquet")
    model = TextClassifier().fit(MAIL)
    model.save(tmp_path / "m.textnb")
    export_model(model, tmp_path / "exported", to="python")
    return tmp_path


def imported(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command loads."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *PROGRAM[1:], *arguments], cwd=folder,
        capture_output=True, input="Subject: free money\n\nnow\n", text=True, timeout=120)
    # A filter says by its code what it thinks of a message.
    assert done.returncode == 0 or (arguments[0] == "filter" and done.returncode < 3), done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()
              if line.startswith("import time:")}
    assert "textnb" in loaded
    return loaded


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_imports_nothing_heavy(verb: str, folder: Path) -> None:
    assert not HEAVY & imported(folder, *VERBS[verb])


@pytest.mark.skipif(build().kernel is None, reason="without the kernel SciPy merges tokens")
@pytest.mark.parametrize("model", ["multinomial", "bernoulli", "complement"])
def test_learning_imports_neither_scipy_nor_rich(model: str, folder: Path) -> None:
    loaded = imported(folder, "train", "mail.parquet", "-o", "new.textnb", "--model", model)
    assert not NEEDLESS & loaded


@pytest.mark.skipif(build().kernel is None, reason="without the kernel SciPy multiplies")
@pytest.mark.parametrize("verb", ["predict", "test", "top", "explain", "describe"])
def test_answers_do_not_import_scipy(verb: str, folder: Path) -> None:
    # Tables on the terminal are drawn by Rich.
    allowed = set() if verb == "predict" else {"rich"}
    assert not (NEEDLESS - allowed) & imported(folder, *VERBS[verb])


def test_the_check_sees_what_is_heavy(folder: Path) -> None:
    # LIBLINEAR comes with scikit-learn.
    assert "sklearn" in imported(
        folder, "train", "mail.parquet", "-o", "new.textnb", "--model", "nblr")
