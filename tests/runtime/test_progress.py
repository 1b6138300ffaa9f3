"""The line of progress: what it says in few columns and in many, and what work tells it."""

from io import StringIO

import polars as pl
import pytest
from rich.console import Console

import textnb
from textnb import NBLinear, ParameterError, TextClassifier, Tokenizer, cross_validate, tune
from textnb.bayes import linear_solver
from textnb.runtime.native import SOLVER, load_usable
from textnb.runtime.progress import (
    Line,
    LiveLine,
    Size,
    current_progress,
    live_line,
    muted,
    showing,
)

ROWS = pl.DataFrame({
    "text": [f"{'abc'[row % 3]}{row % 7} w{row % 11}" for row in range(120)],
    "label": ["xyz"[row % 3] for row in range(120)]})


class Recorder(Line):
    """Keeps what it is told."""

    def __init__(self):
        self.phases = []

    def begin(self, phase, size=None, unit="row", seconds=None):
        self.phases.append([phase, None if size is None else (size.rows, unit), 0, []])

    def advance(self, number):
        self.phases[-1][2] += number

    def step(self, words):
        self.phases[-1][3].append(words)


def told(work):
    shown = Recorder()
    with showing(shown):
        shown.begin("reading")
        work(lambda rows: shown.advance(rows))
    return shown.phases


def text_after(seconds, width, *calls):
    """What a line says some seconds after calls, each of which is made a second after the last."""
    now = [0.0]
    shown = LiveLine("training", lambda: now[0])
    for name, *arguments in calls:
        getattr(shown, name)(*arguments)
        now[0] += 1.0
    now[0] += seconds - 1.0
    return shown.text(width)


READ = ("begin", "reading", Size(1_000)), ("advance", 250)
TRIALS = ("begin", "", Size(16), "trial"), ("step", "best 0.9127, now nblinear power=0.25"), (
    "advance", 4)


@pytest.mark.parametrize(("seconds", "width", "calls", "expected"), [
    (1, 80, READ, "training: reading  25%  250 of 1,000 rows, 250/s  0:02, 0:02 left"),
    # A step that takes long does not make the time that is left longer.
    (3, 80, READ, "training: reading  25%  250 of 1,000 rows, 250/s  0:04"),
    (1, 60, READ, "training: reading  25%  250 of 1,000 rows  0:02, 0:02 left"),
    (1, 40, READ, "training: reading  25%  0:02, 0:02 left"),
    (1, 20, READ, "…  25%  0:02, 0:02 left"),
    (1, 80, [("begin", "reading", Size(200, is_exact=False)), *READ[1:]],
     "training: reading  99%  250 rows, 250/s  0:02"),
    (1, 80, [("begin", "reading", Size(500, is_exact=False)), *READ[1:]],
     "training: reading  50%  250 of about 500 rows, 250/s  0:02"),
    (1, 80, [("begin", "reading", Size(200)), *READ[1:]],
     "training: reading  250 rows, 250/s  0:02"),
    (1, 80, [("begin", "", None, "document"), ("advance", 1)], "training  1 document  0:02"),
    (1, 80, [("begin", "", Size(9), "class"), ("advance", 1)],
     "training  11%  1 of 9 classes  0:02, 0:07 left"),
    (1, 80, [("begin", "reading"), *READ[1:]], "training: reading  250 rows, 250/s  0:02"),
    (70, 80, [("begin", "fitting"), ("step", "pass 3 of at most 100")],
     "training: fitting, pass 3 of at most 100  1:11"),
    (1, 120, TRIALS, "training: best 0.9127, now nblinear power=0.25  25%  4 of 16 trials  0:03, "
                     "0:05 left"),
    # The numbers stay where the step is cut.
    (1, 75, TRIALS, "training: best 0.9127, now nblinear …  25%  4 of 16 trials  0:03, 0:05 left"),
    (5, 80, [("begin", "", None, "trial", 60.0)], "training  8%  0:05, 0:55 left")], ids=str)
def test_what_a_line_says(seconds, width, calls, expected):
    assert text_after(seconds, width, *calls) == expected


def test_what_is_printed_first_erases_the_line():
    console = Console(file=StringIO(), width=40, force_terminal=True)
    with live_line("tuning", console):
        assert "tuning" in console.file.getvalue()
        console.print("a trial")
    assert "\r\x1b[2Ka trial\n" in console.file.getvalue()


def test_nobody_is_told_where_no_line_is_shown():
    assert type(current_progress()) is Line

    def work(advance):
        with muted():
            current_progress().begin("unseen")

    assert told(work) == [["reading", None, 0, []]]


def test_a_solver_tells_its_passes_and_classes(monkeypatch):
    monkeypatch.setattr(linear_solver, "_MIN_DESCENT_VALUES", 0)
    monkeypatch.setattr("textnb.bayes.linear.even_blocks", lambda size, most: [
        range(k, k + 1) for k in range(size)])
    phases = told(lambda advance: TextClassifier(NBLinear()).fit(ROWS, progress=advance))
    assert [phase for phase, *_ in phases] == [
        "reading", "building the matrix", "preparing rows", "fitting", "preparing to calibrate",
        "calibrating"]
    assert phases[0][2] == 120
    assert phases[3][1:3] == [(3, "class"), 3]
    solver = "pass 1 of at most 100" if load_usable(SOLVER).kernel else "step 1 of at most 100"
    assert phases[3][3].count(solver) == 3
    lists = ROWS.with_columns(pl.concat_list("label"))
    phases = told(lambda advance: TextClassifier(NBLinear()).fit(lists, progress=advance))
    assert next(size for phase, size, *_ in phases if phase == "fitting") == (3, "label")
    # Rows that cost much, for which descent goes on: its passes are counted to their end.
    monkeypatch.setattr(linear_solver._Problem, "is_near", lambda self, descent, tol: False)
    costly = NBLinear(C=10.0, max_iter=20)
    two = ROWS.filter(pl.col("label") != "z")
    phases = told(lambda advance: TextClassifier(costly, tokenizer=Tokenizer()).fit(
        two, progress=advance))
    if load_usable(SOLVER).kernel:
        passes = [words for words in phases[3][3] if words.startswith("pass ")]
        assert passes[:100] == [f"pass {number} of at most 100" for number in range(1, 101)]


@pytest.mark.parametrize(("work", "expected"), [
    (lambda advance: TextClassifier(textnb.MultinomialNB(l="auto")).fit(ROWS, progress=advance),
     [["reading", None, 120, []], ["choosing l", (120, "row"), 120, []]]),
    (lambda advance: cross_validate(TextClassifier(NBLinear()), ROWS, progress=advance),
     [["reading", None, 120, []], ["fitting", (5, "fold"), 5, []],
      ["scoring", (120, "row"), 120, []]]),
    (lambda advance: cross_validate(TextClassifier(), ROWS, progress=advance),
     [["reading", None, 120, []], ["scoring", (120, "row"), 120, []]])])
def test_work_that_reads_twice_or_fits_several_tells_its_phases(work, expected):
    assert told(work) == expected


def test_a_search_tells_its_trials():
    phases = {phase: rest for phase, *rest in told(lambda advance: tune(ROWS, trials=3))}
    size, done, steps = phases[""]
    assert (size, done) == ((3, "trial"), 3)
    assert steps[0] == "nblinear"
    assert steps[1] == "best 0.9375, now nblinear ngram_range=(1, 1)"
    assert {"comparing the best with the defaults", "judging on new rows",
            "learning from all rows"} < {*phases}


@pytest.mark.parametrize(("work", "shown"), [
    (lambda **given: tune(ROWS, trials=1, **given), "tuning"),
    (lambda **given: TextClassifier().fit(ROWS, **given), "training")])
def test_a_line_in_python_is_asked_for(work, shown, capsys, monkeypatch):
    for terminal, progress in (("0", True), ("1", False), ("1", None)):
        monkeypatch.setenv("TTY_COMPATIBLE", terminal)
        work(progress=progress)
        assert capsys.readouterr().err == ""
    work(progress=True)
    assert shown in capsys.readouterr().err
    with pytest.raises(ParameterError, match="progress must be a callable, True or False; got 1"):
        work(progress=1)
