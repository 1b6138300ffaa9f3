"""The docstring corpus: clean, without duplicates, the same every time."""

import doctest
import hashlib
import importlib
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import polars as pl
import pytest

from corpora import docstrings

ROOT = Path(docstrings.__file__).parents[1]


@pytest.fixture(scope="module")
def frame():
    return docstrings.build()


@pytest.mark.slow
def test_the_table(frame):
    assert frame.schema == dict.fromkeys(("name", "label", "text", "split"), pl.String)
    assert frame.null_count().row(0) == (0, 0, 0, 0)
    assert set(frame["label"]) == {"numpy", "scipy", "scikit-learn", "polars"}
    assert all(rows > 500 for rows in frame["label"].value_counts()["count"])
    assert frame["name"].to_list() == sorted(set(frame["name"]))
    assert all(len(text) >= 40 for text in frame["text"])
    assert frame["text"].n_unique() == frame.height


@pytest.mark.slow
def test_one_library_alone_is_read():
    """A quick test; the slow ones read all four."""
    modules = list(docstrings._modules("polars"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        texts = dict(docstrings._docstrings("polars", modules))
    assert len(texts) > 500
    assert "rows" in texts["polars.DataFrame.filter"]
    assert not [name for name, text in texts.items() if "polars" in text.lower()]
    assert not [name for name in texts if any(part.startswith("_") for part in name.split("."))]


@pytest.mark.slow
def test_names_are_well_known_and_neither_private_nor_vendored(frame):
    known = {
        "numpy.linalg.norm": "numpy",  # a dispatched function
        "numpy.spacing": "numpy",  # a universal function
        "numpy.random.Generator.normal": "numpy",  # a compiled method
        "polars.DataFrame.filter": "polars",  # a method
        "scipy.fft.fft": "scipy",  # a multimethod
        "scipy.special.gamma": "scipy",  # a universal function that knows no module
        "scipy.special.logsumexp": "scipy",  # a function
        "sklearn.naive_bayes.MultinomialNB": "scikit-learn",  # a class
        "sklearn.model_selection.GridSearchCV.predict": "scikit-learn",  # behind a descriptor
    }
    labels = dict(frame.select("name", "label").iter_rows())
    assert {name: labels.get(name) for name in known} == known
    parts = {part for name in labels for part in name.split(".")}
    assert not [part for part in parts if part.startswith("_")]
    assert not parts & {"tests", "conftest", "externals", "testutils"}
    unwanted = ("numpy.core.", "numpy.distutils.", "scipy.odr.", "polars.testing.parametric.")
    assert not [name for name in labels if name.startswith(unwanted)]


@pytest.mark.slow
@pytest.mark.parametrize("give_away", [
    "numpy", "scipy", "sklearn", r"scikit", "polars", "versionadded", "versionchanged",
    r"(?:^|\W)np\W", r"(?:^|\W)pl\W", r"\bnp\.", r"\bpl\.", r"\.\. *deprecated::"])
def test_no_text_contains_the_name_of_its_library(frame, give_away):
    matches = frame.filter(pl.col("text").str.contains(f"(?im){give_away}"))
    assert matches["name"].to_list() == []


def test_texts_in_two_libraries_are_dropped_and_duplicates_get_the_first_name(monkeypatch):
    shared, own = "shared by two libraries " * 2, "known to a single library " * 2
    texts: dict[str, list[tuple[str, str]]] = {
        "numpy": [("numpy.b", own), ("numpy.a", own), ("numpy.c", shared)],
        "sklearn": [("sklearn.a", shared)], "scipy": [("scipy.b", own.upper())], "polars": []}
    monkeypatch.setattr(docstrings, "_docstrings", lambda library, modules: iter(texts[library]))
    filters = list(warnings.filters)
    assert docstrings.build()["name"].to_list() == ["numpy.a", "scipy.b"]
    assert list(warnings.filters) == filters


@pytest.mark.slow
def test_the_split_follows_from_the_name(frame):
    tests = {name for name in frame["name"]
             if int(hashlib.sha256(name.encode()).hexdigest()[:2], 16) < 64}
    assert set(frame.filter(pl.col("split") == "test")["name"]) == tests
    assert set(frame["split"]) == {"train", "test"}
    assert 0.22 < len(tests) / frame.height < 0.28
    assert docstrings.split_of("numpy.abs") == "train"
    assert docstrings.split_of("numpy.all") == "test"


@pytest.mark.slow
def test_the_command_writes_the_same_bytes_under_any_hash_seed(frame, tmp_path):
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    frame.write_parquet(here)
    # Some docstrings are generated at import, so the test needs a second process.
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "corpora.docstrings", str(there)],
        cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "12345"}, capture_output=True, text=True,
        check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == f"{frame.height:,} docstrings written to {there}\n"
    assert there.read_bytes() == here.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["here.parquet", "there.parquet"]


def test_the_command_refuses_a_missing_folder(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        docstrings.main([str(tmp_path / "nowhere" / "out.parquet")])
    assert caught.value.code == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(("docstring", "expected"), [
    ("See numpy.linalg.norm and NumPy.", "See linalg.norm and ."),
    (">>> np.sort(pl.col('a'))", ">>> sort(col('a'))"),
    ("to_numpy, numpydoc, NP-hard, snp.x, npz", "to_, doc, -hard, snp.x, npz"),
    ("nunumpympy", ""),
    ("scikit-learn, Scikit_learn, scikit learn, sklearn.svm, scikits", ", , , svm,"),
    ("A.\n\n    .. versionadded:: 1.2\n       More.\n\n       And more.\n\n    B.", "A.\n\nB."),
    ("A.\n\n    x : int\n\n        .. versionchanged:: 2\n\n    B.", "A.\n\nx : int\n\nB."),
    ("A.\n\n..  deprecated:: 1\n\nB.", "A.\n\nB."),
    ("A (*versionadded: 1.3.0*)", "A"),
    (">>> f()\narray([1,\n  2])  # may vary\n\n>>> g()\n3", ">>> f()\n\n>>> g()\n3"),
    (">>> f()\n1  # may vary\n>>> if g:\n...     i\n3", ">>> f()\n>>> if g:\n...     i\n3"),
    ("Results may vary.", "Results may vary.")])
def test_cleaning(docstring, expected):
    assert docstrings.clean(docstring) == expected


@pytest.mark.parametrize(("failure", "is_hidden"), [
    # The module needs a package that is not installed
    (ModuleNotFoundError("No module named 'torch'", name="torch"), True),
    (ImportError("Required package 'torch' not installed."), True),
    # The installation is broken
    (ModuleNotFoundError("No module named 'numpy._core'", name="numpy._core"), False),
    (RuntimeError("CPU dispatcher tracer already initialized"), False)])
def test_an_import_error_is_ignored_only_if_a_package_is_not_installed(
    failure, is_hidden, monkeypatch
):
    genuine = importlib.import_module

    def import_module(name, package=None):
        if name == "numpy.fft":
            raise failure
        return genuine(name, package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    if is_hidden:
        names = [module.__name__ for module in docstrings._modules("numpy")]
        assert "numpy.linalg" in names
        assert "numpy.fft" not in names
    else:
        with pytest.raises(type(failure), match=re.escape(str(failure))):
            list(docstrings._modules("numpy"))


def test_the_examples_in_docstrings_hold():
    result = doctest.testmod(docstrings)
    assert result.attempted > 0
    assert result.failed == 0
