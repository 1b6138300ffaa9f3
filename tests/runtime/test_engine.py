"""Faults of the system are reported as such: no file is called damaged because of them."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from textnb import ModelFileError, TextClassifier
from textnb.errors import EngineError, TextnbError
from textnb.files.require import reading_errors
from textnb.frames.failures import naming_source
from textnb.runtime import engine
from textnb.runtime.engine import engine_failure, polars_works

ROOT = str(Path(__file__).parents[2])
ROWS = pl.DataFrame({
    "text": ["cheap pills", "see you at noon"] * 10, "label": ["spam", "ham"] * 10})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine")
    TextClassifier().fit(ROWS).save(folder / "m.textnb")
    ROWS.write_csv(folder / "rows.csv")
    return folder


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("verb", "code"), [
    ("describe m.textnb", 1), ("predict m.textnb rows.csv", 1), ("train rows.csv -o n.textnb", 1),
    ("predict m.textnb rows.csv --read on_unreadable=skip", 1),
    ("filter m.textnb --maildir rows.csv", 3)])
def test_polars_refuses_its_environment(folder, verb, code):
    ran = subprocess.run(
        [sys.executable, "-m", "textnb", *verb.split()], cwd=folder, capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": ROOT, "POLARS_MAX_THREADS": "0", "RUST_BACKTRACE": "0"})
    assert ran.returncode == code, ran.stderr
    assert "error: Polars can't work with POLARS_MAX_THREADS='0' (" in ran.stderr
    assert "Unset it, or make it a number of 1 or more" in ran.stderr
    for words in ("sound", "can't read", "Traceback"):
        assert words not in ran.stderr
    assert not (folder / "n.textnb").exists()


NO_LIBRARY = ImportError("libz.so: failed to map segment from shared object", path="z.so")
WITHIN = ImportError("please read pages of advice")
WITHIN.__cause__ = NO_LIBRARY


@pytest.mark.parametrize(("fault", "reason"), [
    (RuntimeError("can't start new thread"), "can't start new thread"),
    (NO_LIBRARY, "failed to map segment"), (WITHIN, "failed to map segment")])
def test_the_file_is_not_blamed(fault, reason):
    message = rf"too little to work: .*{reason}.*ulimit -u"
    with pytest.raises(EngineError, match=message), reading_errors("m.textnb"):
        raise fault


def test_a_panic_is_the_files_fault_while_polars_works(monkeypatch):
    panic = pl.exceptions.PanicException("no such thing")
    assert polars_works()
    for other in (panic, EngineError("known"), ValueError("of the file")):
        assert engine_failure(other) is None
    with pytest.raises(ModelFileError, match="is not a sound"), reading_errors("m.textnb"):
        raise panic
    monkeypatch.setattr(engine, "polars_works", lambda: False)
    for block in (reading_errors("m.textnb"), naming_source("rows.csv"), naming_source(object())):
        with pytest.raises(EngineError, match=r"Polars can't work \(no such thing\)"), block:
            raise panic
    monkeypatch.setenv("POLARS_MAX_THREADS", "4")
    assert "POLARS_MAX_THREADS" not in str(engine_failure(panic))
    monkeypatch.setenv("POLARS_MAX_THREADS", "-1")
    assert "POLARS_MAX_THREADS='-1'" in str(engine_failure(panic))


def test_its_place_among_errors():
    assert issubclass(EngineError, (TextnbError, RuntimeError))
    assert not issubclass(EngineError, ValueError)
