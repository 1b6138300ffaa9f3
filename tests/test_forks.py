"""A process that was forked after Polars had worked says so at once; before, it just works."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV

import textnb
from textnb import MultinomialNB, TextClassifier
from textnb.errors import ForkError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# The parent does some things in turn, and after each a child of its own does another: what that
# raises, or "answered". A child that hangs is ended by its alarm (14), and the parent by the time
# limit of the test.
_FORKED = """
import json, os, signal, sys, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of each fork beside threads
import polars as pl
import textnb
texts, labels = ["aa bb", "cc dd", "aa", "cc"], ["x", "y", "x", "y"]
frame = pl.DataFrame({"text": texts, "label": labels})
model = None
for before, after in json.loads(sys.argv[1]):
    exec(before)
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code:
            sys.exit(f"{after}: {code}")
        continue
    signal.alarm(30)
    try:
        exec(after)
        print("answered", flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
"""
FIT = "model = textnb.TextClassifier().fit(frame)"
IMPORTS = ["from textnb import *", "textnb.TextClassifier()",
           "import textnb.report.page, textnb.export.write, textnb.workflow.run",
           "import textnb.filter.mailfilter, textnb.cli.main"]


def forked(*turns):
    """What the children say of which each is forked after what stands beside it."""
    done = subprocess.run([sys.executable, "-c", _FORKED, json.dumps(turns)], capture_output=True,
                          text=True, check=False, timeout=100,
                          env={**os.environ, "TEXTNB_KERNEL": "off"})
    assert done.returncode == 0, (done.returncode, done.stderr)
    answers = done.stdout.splitlines()
    assert len(answers) == len(turns), done.stdout
    return answers


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.textnb"
    TextClassifier(text="body").fit(pl.DataFrame({
        "body": ["aa", "bb"] * 10, "label": ["spam", "ham"] * 10})).save(path)
    return path


def test_a_child_of_a_process_that_worked_says_so(path):
    children = [
        FIT, "model.predict(frame)", "model.predict(texts)", "model.fit(texts, labels)",
        "model.partial_fit(frame)", "model.top(2)", "textnb.Tokenizer().tokens('aa bb')",
        "textnb.evaluate(model, frame)", "model.save('never-written')",
        "textnb.scan(frame, text='text').collect()", "textnb.Tokenizer(pattern='[a-z]+')",
        f"textnb.load({str(path)!r})", f"textnb.MailFilter.load({str(path)!r})"]
    matrices = "import numpy as np; textnb.MultinomialNB().fit(np.eye(2), [0, 1])"
    *answers, of_matrices = forked((FIT, children[0]), *(("", child) for child in children[1:]),
                                   ("", matrices))
    for child, answer in zip(children, answers, strict=True):
        assert answer.startswith(
            "ForkError this process was forked from one in which Polars"), child
        assert "multiprocessing.get_context('spawn')" in answer, child
    assert of_matrices == "answered", "estimators of matrices ask nothing of Polars"
    assert issubclass(ForkError, (textnb.TextnbError, RuntimeError))


@pytest.mark.slow
def test_a_child_of_a_process_that_only_imported_works(path):
    child = ("pid = os.fork()\nif pid: os.waitpid(pid, 0); os._exit(0)\n" + FIT)
    load = (f"textnb.load({str(path)!r})", f"textnb.MailFilter.load({str(path)!r})")
    *before, after = forked(*(("", each) for each in (*load, child)), (FIT, child))
    assert before == ["answered"] * 3
    assert after.startswith("ForkError"), "a grandchild"
    parent = f"{FIT}\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\n{FIT}"
    assert forked((parent, "1")) == ["answered"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs names of threads")
@pytest.mark.parametrize("parents", [
    pytest.param(["; ".join(IMPORTS)], id="together"),
    pytest.param(["", *IMPORTS], id="in turn", marks=pytest.mark.slow)])
def test_a_query_of_the_caller_is_noticed(parents):
    # And a child after imports alone works, whatever they were.
    child = f"{FIT}; model.predict(frame); model.predict(texts)"
    *answers, last = forked(*((parent, child) for parent in parents), (
        "pl.LazyFrame({'a': [1]}).select(pl.col('a').sum()).collect()", FIT))
    assert dict(zip(parents, answers, strict=True)) == dict.fromkeys(parents, "answered")
    assert last.startswith("ForkError")


@pytest.mark.slow
def test_processes_of_joblib_are_no_forks():
    model = TextClassifier().fit(["aa", "bb"] * 6, ["x", "y"] * 6)
    search = GridSearchCV(TextClassifier(MultinomialNB()), {"estimator__l": [0.5, 1.0]}, cv=2,
                          n_jobs=2)
    search.fit(["aa", "bb"] * 6, np.array(["x", "y"] * 6))
    assert search.best_score_ == 1.0
    assert model.predict(["aa"]).tolist() == ["x"]
