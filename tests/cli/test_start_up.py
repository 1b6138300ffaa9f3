"""What a command imports is part of the time that its user waits."""

import json
import subprocess
import sys

import polars as pl
import pytest

from tests.cli.conftest import MAIL, PROGRAM
from textnb import NBLinear, TextClassifier, export_model
from textnb.runtime.native import KERNEL, load_compiled

# A second or more, for nothing that these verbs need.
HEAVY = {"sklearn", "scipy.stats", "pandas"}
# Less, but most of what a small training takes.
NEEDLESS = HEAVY | {"scipy", "pydantic", "rich", "charset_normalizer", "numpy.random"}
CALLS = """
train mail.parquet -o new.textnb
train mail.parquet -o new.textnb --l auto
train mail.parquet -o new.textnb --no-check --model multinomial
train mail.parquet -o new.textnb --no-check --model bernoulli
train mail.parquet -o new.textnb --no-check --model complement
predict m.textnb mail.parquet --probability --explain 2 -o answers.parquet
test m.textnb mail.parquet --positive spam
top m.textnb
explain m.textnb free
describe m.textnb
update m.textnb mail.parquet
update m.textnb mail.parquet --on-error
forget m.textnb some.parquet
merge m.textnb learned.textnb -o sum.textnb
export m.textnb -o bundle --to python
verify exported
threshold m.textnb mail.parquet --class spam --costs 10,1
threshold learned.textnb mail.parquet --class spam --costs 10,1 --scored leave-one-out
threshold m.textnb --clear
calibrate learned.textnb mail.parquet -o new.textnb
calibrate linear.textnb three.parquet -o new.textnb
calibrate learned.textnb mail.parquet --held-out -o new.textnb
diff m.textnb learned.textnb mail.parquet
validate learned.textnb mail.parquet --folds 2 --positive spam
validate learned.textnb mail.parquet --leave-one-out
validate learned.textnb mail.parquet --smoothing 1,0.1
validate learned.textnb three.parquet --online --set block=2
duplicates mail.parquet
run job.toml
run job.toml --check
""".strip().splitlines()
JOB = """
output = "out"
[input]
train = "three.parquet"
[validation]
folds = 2
[calibration]
[decision]
min_probability = 0.6
[test]
positive = "spam"
[terms]
[predictions]
explain = 2
[[exports]]
file = "spam.sql"
to = "sql-sqlite"
"""


@pytest.fixture
def folder(tmp_path):
    """A model, its rows, and an export of it."""
    MAIL.write_parquet(tmp_path / "mail.parquet")
    MAIL.head(2).write_parquet(tmp_path / "some.parquet")
    model = TextClassifier().fit(MAIL)
    for name in ("m.textnb", "learned.textnb"):
        model.save(tmp_path / name)
    rows = pl.concat([MAIL] * 3)
    TextClassifier(NBLinear()).fit(rows).save(tmp_path / "linear.textnb")
    rows.write_parquet(tmp_path / "three.parquet")
    (tmp_path / "job.toml").write_text(JOB)
    export_model(model, tmp_path / "exported", to="python")
    return tmp_path


# Verbs in turn, and the modules that are loaded after each. What no verb before it loaded, a verb
# loads by itself if it needs it.
IN_TURN = """
import json, sys
from textnb.cli import entry

def leave(done):
    raise done

entry._end = leave
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    code = 0
    try:
        entry.main()
    except SystemExit as end:
        code = end.code
    print("loaded:", json.dumps([code, *sys.modules]), file=sys.stderr)
"""


def imported(folder, *calls):
    """The modules that are loaded after each of some calls of the command, in one process."""
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN, json.dumps([call.split() for call in calls])], cwd=folder,
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loaded = [json.loads(line.removeprefix("loaded: ")) for line in done.stderr.splitlines()
             if line.startswith("loaded: ")]
    assert [code or 0 for code, *_ in loaded] == [0] * len(calls), done.stderr
    return [set(modules) for _, *modules in loaded]


@pytest.mark.slow
def test_no_command_imports_what_is_heavy(folder):
    # LIBLINEAR comes with scikit-learn: this one shows that the check sees it.
    *loaded, last = imported(folder, *CALLS, "train mail.parquet -o new.textnb --model nblr")
    assert {call: HEAVY & modules for call, modules in zip(CALLS, loaded, strict=True)
            if HEAVY & modules} == {}
    assert "sklearn" in last


def test_a_filter_imports_nothing_heavy(folder):
    # By itself, as it ends its process.
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *PROGRAM[1:], "filter", "m.textnb"], cwd=folder,
        capture_output=True, input="Subject: free money\n\nnow\n", text=True, timeout=120)
    # Its code says what it thinks of the message.
    assert done.returncode < 3, done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()
              if line.startswith("import time:")}
    assert "textnb" in loaded
    assert not HEAVY & loaded


def test_a_filter_imports_nothing_that_can_fail_before_it_catches_errors():
    program = ("import functools, importlib, os, sys\nbefore = {*sys.modules}\n"
               "from textnb.cli import entry\nprint(*sorted({*sys.modules} - before))")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert set(done.stdout.split()) - {"__future__"} == {
        "textnb", "textnb.cli", "textnb.cli.entry", "textnb.runtime", "textnb.runtime.forks"}


@pytest.mark.skipif(load_compiled(KERNEL).kernel is None,
                    reason="without the kernel SciPy multiplies")
@pytest.mark.parametrize(("calls", "allowed"), [
    # Tables on the terminal are drawn by Rich.
    (CALLS[2:5], set()), (CALLS[5:10], {"rich"})], ids=["learning", "answers"])
def test_neither_learning_nor_answers_import_what_they_do_not_need(folder, calls, allowed):
    first, *others = imported(folder, *calls)
    assert not NEEDLESS & first
    assert [(NEEDLESS - allowed) & modules for modules in others] == [set()] * len(others)


def run_main(code, *arguments, folder):
    """The command after some code ran in its process."""
    program = f"import sys\nfrom textnb.cli import entry\n{code}\nentry.main()"
    return subprocess.run([sys.executable, "-c", program, *arguments], cwd=folder, text=True,
                          capture_output=True, timeout=120)


def test_cycles_are_not_looked_for_while_libraries_are_imported(folder):
    code = "import gc\ngc.callbacks.append(lambda phase, info: print(phase, file=sys.stderr))"
    assert run_main(code, "--version", folder=folder).stderr == ""
    done = run_main(code, "train", "mail.parquet", "-o", "new.textnb", "-q", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "code"), [
    (["describe", "m.textnb"], 0), (["describe", "nowhere.textnb"], 1), (["describe"], 2)])
def test_the_end_is_quick_and_whole(arguments, code, folder):
    ending = ("import atexit\natexit.register(lambda: open('at_exit', 'w').write('done'))\n"
            "class Slow:\n    def __del__(self): open('taken_apart', 'w').close()\n"
            "sys.slow = Slow()")
    done = run_main(ending, *arguments, folder=folder)
    expected = run_main("", *arguments, folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (code, expected.stdout, expected.stderr)
    assert (folder / "at_exit").read_text() == "done"
    assert not (folder / "taken_apart").exists()
