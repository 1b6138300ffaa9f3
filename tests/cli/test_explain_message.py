"""textnb explain of a mail message: what textnb filter makes of it, term by term."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.cli.conftest import Run
from tests.filter.models import ESTIMATORS
from textnb import Calibration, MailFilter, NBLinear, TextClassifier, Tokenizer

ROWS = pl.DataFrame({
    "subject": ["cheap pills", "lunch", "you won", "café minutes"] * 5,
    "body": ["buy cheap pills now", "see you at noon", "a prize, a prize", "of the meeting"] * 5,
    "x-mailer": ["bulk", "mutt", "bulk", None] * 5,
    "label": ["spam", "ham"] * 10})
MESSAGE = (b"From a@b Mon Jan  1 00:00:00 2024\r\nSubject: =?utf-8?q?caf=C3=A9?= pills\r\n"
           b"X-Mailer: bulk\r\nContent-Type: text/html; charset=latin-1\r\n\r\n"
           b"<p>Buy <b>cheap</b> pr&eacute;fix&nbsp;prize<script>noon noon noon</script>\r\n")


def told(run: Run, *arguments: object, **settings: Any) -> Any:
    return json.loads(run("explain", *arguments, "--format", "json", **settings).checked().out)


@pytest.fixture
def model(folder: Path) -> str:
    TextClassifier(text=["subject", "body"]).fit(ROWS).save("m.textnb")
    TextClassifier().fit(ROWS.rename({"body": "text"})).save("text.textnb")
    return "m.textnb"


@pytest.mark.parametrize("estimator", [*ESTIMATORS, NBLinear()], ids=repr)
@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("columns", [["subject", "body"], ["body", "x-mailer"], "body"], ids=str)
def test_the_score_is_the_filters(run, folder, estimator, calibrated, columns):
    tokenizer = Tokenizer(field_prefix=["subject"]) if "subject" in columns else Tokenizer()
    model = TextClassifier(estimator, text=columns, tokenizer=tokenizer).fit(ROWS)
    if calibrated:
        model.set_calibration(Calibration(3.0))
    model.save("m.textnb")
    found = told(run, "m.textnb", "-", input=MESSAGE)
    judge = MailFilter.load("m.textnb")
    verdict = judge.judge(MESSAGE)
    sign = 1 if found["predicted"] == "spam" else -1
    uncalibrated = replace(judge, calibration=None).judge(MESSAGE).log_odds
    assert sign * found["score"] == pytest.approx(uncalibrated, abs=1e-9)
    assert sum(part["contribution"] for part in found["parts"]) == pytest.approx(found["score"])
    assert found["filter"] == {
        "status": verdict.status, "spam": "spam", "log_odds": verdict.log_odds,
        "calibrated": calibrated, "reason": verdict.reason}
    assert abs(verdict.log_odds - uncalibrated) > 1e-6 or not calibrated
    # The same as the filter prints.
    judged = run("filter", "m.textnb", input=MESSAGE)
    assert judged.out == f"{verdict.status} {found['filter']['log_odds']:.6f}\n"
    last = run("explain", "m.textnb", "-", input=MESSAGE).checked().out.splitlines()[-1]
    assert last.startswith(f"filter: {verdict.status}, log-odds of spam {verdict.log_odds:.3f}")
    assert ("calibrated; the terms above add up to the score before it" in last) == calibrated


def test_files_are_messages(run: Run, model: str) -> None:
    expected = told(run, model, "-", input=MESSAGE)
    for name, content in (("a.eml", MESSAGE), ("with space.eml", MESSAGE),
                          ("b.eml.gz", gzip.compress(MESSAGE))):
        Path(name).write_bytes(content)
        assert told(run, model, name) == expected
    Path("one.mbox").write_bytes(MESSAGE)
    assert told(run, model, "one.mbox")["filter"] == expected["filter"]
    Path("two.mbox").write_bytes((MESSAGE + b"\r\n") * 2)
    for name, message in (("two.mbox", "it holds 2 messages"),
                          ("none.eml", "no such message file: 'none.eml'"), ("-", "it is empty")):
        assert message in run("explain", model, name, input=b"").checked(1).err


def test_every_file_is_a_message_for_a_model_of_mail(run: Run, model: str) -> None:
    expected = told(run, model, "-", input=MESSAGE)
    Path("cur").mkdir()
    for name in ("cur/1.host:2,S", "message"):
        Path(name).write_bytes(MESSAGE)
        ran = run("explain", model, name, "--format", "json").checked()
        assert json.loads(ran.out)["filter"] == expected["filter"]
        assert "is read as a message; --no-message" in ran.err
        ran = run("explain", model, name, "--no-message", "--format", "json").checked()
        assert "filter" not in json.loads(ran.out)
        assert "read as a message" not in ran.err
    ran = run("explain", "text.textnb", "message", "--format", "json").checked()
    assert "filter" not in json.loads(ran.out)
    assert "the name of a file, which --message reads" in ran.err


def test_what_is_no_message_is_a_text(run: Run, model: str) -> None:
    """A model of plain texts, a column, and who says so."""
    pills = told(run, model, "cheap pills")
    assert "filter" not in pills
    for arguments in (["--no-message"], ["--column", "subject"]):
        assert told(run, model, "-", *arguments, input=b"cheap pills") == pills
    assert told(run, model, "cheap pills, from a.eml", "--no-message")["known"] == 2
    run("explain", model, "-", "--column", "subject", "--message", input=MESSAGE).checked(2)
    raw = b"Subject: pills\n\ncheap prize"
    assert "filter" not in told(run, "text.textnb", "-", input=raw)
    judged = MailFilter.load("text.textnb").judge(raw)
    assert told(run, "text.textnb", "-", "--message", input=raw)["filter"]["log_odds"] == (
        judged.log_odds)


def test_models_without_spam_and_malformed_messages(run: Run, folder: Path) -> None:
    rows = ROWS.with_columns(pl.col("label").replace({"spam": "news", "ham": "private"}))
    TextClassifier(text="body").fit(rows).save("m.textnb")
    raw = b"Date: soon\n\ncheap pills"
    found = told(run, "m.textnb", "-", input=raw)
    assert (found["filter"], found["errors"]) == (None, ["bad date: soon"])
    ran = run("explain", "m.textnb", "-", input=raw).checked()
    assert "filter:" not in ran.out
    assert "the message is malformed: bad date: soon" in ran.err
