"""A process that was forked after Polars had worked says so at once; before, it just works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV

import textnb
from textnb import ForkError, MultinomialNB, TextClassifier

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# The parent does one thing, and its child another: what it raises, or "answered". A child that
# hangs is ended by its alarm (14), and the parent by the test's own limit.
_FORKED = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of each fork beside threads
import polars as pl
import textnb
texts, labels = ["aa bb", "cc dd", "aa", "cc"], ["x", "y", "x", "y"]
frame = pl.DataFrame({"text": texts, "label": labels})
model = None
exec(sys.argv[1])
pid = os.fork()
if pid:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
signal.alarm(30)
try:
    exec(sys.argv[2])
    print("answered", flush=True)
except Exception as error:
    print(type(error).__name__, error, flush=True)
os._exit(0)
"""
FIT = "model = textnb.TextClassifier().fit(frame)"


def forked(parent: str, child: str) -> str:
    done = subprocess.run([sys.executable, "-c", _FORKED, parent, child], capture_output=True,
                          text=True, check=False, timeout=100,
                          env={**os.environ, "TEXTNB_KERNEL": "off"})
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.strip()


@pytest.mark.sweep(3)
@pytest.mark.parametrize("child", [
    FIT, "model.predict(frame)", "model.predict(texts)", "model.fit(texts, labels)",
    "model.partial_fit(frame)", "model.top(2)", "textnb.Tokenizer().tokens('aa bb')",
    "textnb.evaluate(model, frame)", "model.save('never-written')",
    "textnb.scan(frame, text='text').collect()",
    "textnb.Tokenizer(pattern='[a-z]+')"])
def test_a_child_of_a_process_that_worked_says_so(child: str) -> None:
    answer = forked(FIT, child)
    assert answer.startswith("ForkError this process was forked from one in which Polars")
    assert "multiprocessing.get_context('spawn')" in answer


@pytest.mark.slow
def test_files_are_not_read_either(tmp_path: Path) -> None:
    path = tmp_path / "model.textnb"
    TextClassifier(text="body").fit(pl.DataFrame({
        "body": ["aa", "bb"] * 10, "label": ["spam", "ham"] * 10})).save(path)
    for child in (f"textnb.load({str(path)!r})", f"textnb.MailFilter.load({str(path)!r})"):
        assert forked(FIT, child).startswith("ForkError")
        assert forked("", child) == "answered"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs names of threads")
def test_a_query_of_the_caller_is_noticed() -> None:
    assert forked("pl.LazyFrame({'a': [1]}).select(pl.col('a').sum()).collect()", FIT
                  ).startswith("ForkError")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("parent", [
    "", "from textnb import *", "textnb.TextClassifier()",
    "import textnb.report.page, textnb.export.write, textnb.jobs.run",
    "import textnb.filter.mailfilter, textnb.cli.main"])
def test_a_child_after_import_works(parent: str) -> None:
    assert forked(parent, f"{FIT}; model.predict(frame); model.predict(texts)") == "answered"


def test_estimators_of_matrices_work_in_any_child() -> None:
    assert forked(FIT, "import numpy as np; textnb.MultinomialNB().fit(np.eye(2), [0, 1])"
                  ) == "answered"


@pytest.mark.slow
def test_a_grandchild_and_the_parent() -> None:
    child = ("pid = os.fork()\nif pid: os.waitpid(pid, 0); os._exit(0)\n" + FIT)
    assert forked(FIT, child).startswith("ForkError")
    assert forked("", child) == "answered"
    parent = f"{FIT}\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\n{FIT}"
    assert forked(parent, "1") == "answered"


_POOL = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore")
import textnb

def work(text):
    try:
        return model.predict([text]).tolist()
    except textnb.ForkError as error:
        return "refused"

model = None
if __name__ == "__main__":
    model = textnb.TextClassifier().fit(["aa bb", "cc dd"], ["x", "y"])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map_async(work, ["aa", "cc"]).get(60))
"""


def test_a_pool_of_forks_says_so(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(_POOL)
    done = subprocess.run([sys.executable, tmp_path / "pool.py"], capture_output=True, text=True,
                          check=False, timeout=100)
    assert (done.stdout.strip(), done.returncode) == ("['refused', 'refused']", 0), done.stderr


def test_processes_of_joblib_are_no_forks() -> None:
    model = TextClassifier().fit(["aa", "bb"] * 6, ["x", "y"] * 6)
    search = GridSearchCV(TextClassifier(MultinomialNB()), {"estimator__l": [0.5, 1.0]}, cv=2,
                          n_jobs=2)
    search.fit(["aa", "bb"] * 6, np.array(["x", "y"] * 6))
    assert search.best_score_ == 1.0
    assert model.predict(["aa"]).tolist() == ["x"]


def test_its_error_is_public() -> None:
    assert issubclass(ForkError, textnb.TextnbError)
    assert issubclass(ForkError, RuntimeError)
