"""textnb filter of one message: its verdict is the exit code, and the message is passed on."""

import json

import pytest

from tests.cli.conftest import finished
from tests.cli.test_filter_failures import started
from tests.filter.models import MESSAGES, ROWS, fitted, saved
from textnb import Calibration, Decision
from textnb.cli.quick import options_of

SPAM, HAM, OTHER = (b"Subject: a\n\ncheap pills\n", b"Subject: a\n\nthe noon meeting\n",
                    b"Subject: a\n\nunheard words\n")


@pytest.fixture
def model(folder):
    return saved(folder / "mail.textnb")


@pytest.mark.parametrize(("message", "code", "status"), [
    (SPAM, 0, "spam"), (HAM, 1, "ham"), (OTHER, 2, "unsure")])
def test_the_verdict_is_the_exit_code(run, model, message, code, status):
    ran = run("filter", model, input=message).checked(code)
    name, odds = ran.out.split()
    assert name == status
    assert (float(odds) > 0) == (status == "spam")
    assert ("no word of the message was learned" in ran.err) == (code == 2)
    assert run("filter", model, "--exit-zero", input=message).checked(0).out == ran.out
    told = json.loads(run("filter", model, "--format", "json", input=message).out)
    assert told["status"] == status
    assert set(told) == {
        "status", "log_odds", "measure", "probability", "calibrated", "reason", "errors",
        "since_fit"}


@pytest.mark.parametrize(("options", "code"), [
    (["--spam-cutoff", "0.99999999"], 1),
    (["--spam-cutoff", "0.99999999", "--ham-cutoff", "0.01"], 2),
    (["--spam-class", "ham"], 1), (["--min-learned", "13"], 2), (["--min-learned", "12"], 0)])
def test_options_of_the_verdict_arrive(run, model, options, code):
    run("filter", model, *options, input=SPAM).checked(code)


def test_a_decision_for_ham_is_no_filter_of_ham(run, model):
    ROWS.write_parquet("rows.parquet")
    choose = ("threshold", model, "rows.parquet", "--costs", "1,1", "--class")
    assert "textnb filter now needs --spam-class spam" in run(*choose, "ham").checked().err
    refused = run("filter", model, input=SPAM).checked(3)
    assert refused.out == ""
    assert "Say which of them is filtered out (--spam-class spam)" in refused.err
    judged = run("filter", model, "--spam-class", "spam", input=SPAM).checked(0)
    assert judged.out.startswith("spam")
    assert "--spam-class" not in run(*choose, "spam").checked().err


def test_what_is_stale_is_noted_when_the_model_is_written_and_described(run, model):
    decision = Decision({"ham": 0.0, "spam": 0.0}, "spam")
    fitted().set_decision(decision).set_calibration(Calibration(2.0)).save(model)
    ROWS.write_parquet("rows.parquet")
    written = run("update", model, "rows.parquet").checked()
    shown = " ".join(run("describe", model).checked().out.split())
    for part in ("calibration", "decision"):
        assert written.err.count(f"the model's {part} is stale: ") == 1
    assert shown.count("stale") == 2
    # Not at each message.
    for words in ([], ["--timeout", "9"]):
        judged = run("filter", model, *words, input=SPAM)
        assert (judged.code, judged.out.split()[0], judged.err) == (0, "spam", "")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--format", "xml"], "unknown value 'xml'; choose one of text, json"),
    (["--spam-class", "junk"], "no class 'junk'"),
    (["--spam-cutoff", "2"], "--spam-cutoff must be a probability between 0 and 1"),
    (["--spam-cutoff", "0.4", "--ham-cutoff", "0.6"], "--ham-cutoff 0.6 is above"),
    (["--ham-cutoff", "0.1"], "--ham-cutoff goes with --spam-cutoff"),
    (["--min-learned", "x"], "'x' is not a valid integer"),
    (["--min-learned", "-5"], "Invalid value for '--min-learned': -5 is not in the range x>=0."),
    (["--timeout", "inf"], "--timeout must be seconds from 0"),
    (["--timeout", "nan"], "--timeout must be seconds from 0"),
    (["--timeout", "-1"], "--timeout must be seconds from 0"),
    (["-p", "--format", "json"], "--passthrough writes the message"),
    (["--dry-run"], "--dry-run belongs to --maildir"),
    (["--spam-folder", ".Spam"], "--spam-folder belongs to --maildir"),
    (["--unsure-folder", ".U"], "--unsure-folder belongs to --maildir"),
    (["--maildir", "nowhere"], "it is no Maildir"),
    (["--maildir", ".", "--passthrough"], "--passthrough is for one message"),
    (["--maildir", ".", "--exit-zero"], "--exit-zero is for one message"),
    (["--maildir", ".", "--timeout", "9"], "--timeout is for one message"),
    (["--maildir", ".", "--spam-folder", ""], "--spam-folder must be the name of a folder")])
def test_what_can_not_be_done_is_3(run, model, arguments, message):
    ran = run("filter", model, *arguments, input=SPAM).checked(3)
    assert (ran.out, message in ran.err) == ("", True), ran.err


def test_what_is_no_model_of_mail_is_3(run, folder):
    rows = ROWS.select("label", words=ROWS["body"].str.split(" "))
    saved(folder / "words.textnb", rows=rows, text="words")
    ran = run("filter", "words.textnb", input=SPAM).checked(3)
    assert ran.out == ""
    assert "of mail only 'attachments', 'errors' and 'tokens' are lists" in ran.err


# The quick way, and the long one


QUICK = """verdict = entry._verdict
def judge(arguments, stream):
    code = verdict(arguments, stream)
    heavy = {'numpy', 'polars', 'click', 'sklearn', 'pydantic'} & set(sys.modules)
    assert not heavy, heavy
    return code
entry._verdict = judge"""


@pytest.mark.sweep(4)
@pytest.mark.parametrize("message", [MESSAGES[0], MESSAGES[1], MESSAGES[7]])
@pytest.mark.parametrize("arguments", [
    [], ["-p"], ["-e", "--format", "json"], ["-ep", "--timeout", "30"],
    ["--spam-cutoff", "0.99", "--ham-cutoff=0.2", "--min-learned", "1"]], ids=str)
def test_the_program_answers_quickly_as_the_verb_does(run, model, arguments, message):
    quick = finished(started(QUICK, model, *arguments), message)
    whole = run("filter", model, *arguments, input=message)
    assert (quick.code, quick.err) == (whole.code, whole.err)
    if "json" in arguments:
        first, second = json.loads(quick.out), json.loads(whole.out)
        for name in ("log_odds", "probability"):
            assert first.pop(name) == pytest.approx(second.pop(name), rel=1e-9)
        assert first == second
    else:
        assert quick.out == whole.out
    if "-p" in arguments:
        line, _, rest = quick.out.partition("\n")
        assert (line.startswith("X-Textnb-Status: "), rest) == (True, message.decode())


@pytest.mark.parametrize(("words", "known"), [
    ("filter m", True), ("filter m -p", True), ("filter -ep m", True),
    ("filter m --passthrough --exit-zero", True), ("filter m --spam-cutoff=.5", True),
    ("filter m --min-learned 0", True), ("filter", False), ("filter m n", False),
    ("-p filter m", False), ("filter m --maildir M", False), ("filter m --dry-run", False),
    ("filter m --help", False), ("filter m --timeout", False), ("filter m --timeout nan", False),
    ("filter m --timeout -1", False), ("filter m --min-learned=x", False),
    ("filter m --format xml", False), ("filter m -- x", False), ("filter m --spam x", False),
    ("filter m -pq", False), ("filter m --passthrough=1", False),
    ("filter m --spam-class", False), ("mail", False), ("", False)])
def test_options_that_the_quick_way_knows(words, known):
    assert (options_of(words.split()) is not None) == known
    assert options_of([*words.split(), ""]) is None
