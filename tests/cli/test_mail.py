"""The verb mail, and mail as the input of the others."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.filter.models import ESTIMATORS
from tests.frames.writing import write_files
from tests.mail.conftest import FROM
from tests.quick import judge
from textnb import Calibration, MailFilter, NBLinear, TextClassifier, Tokenizer, load
from textnb.mail.tokens import mail_tokens
from textnb.storage.textmodel import load_fitted

FORMAT = ("--read", "format=mail")


@pytest.fixture
def box(folder):
    """Mail of two classes; one message is malformed."""
    return write_files(Path("mail"), {
        "ham/1.eml": "Subject: Minutes\nX-Mailer: m\n\nof the meeting",
        "ham/2.eml": "Subject: Lunch\nDate: soon\n\nat noon",
        "spam/1.eml": "Subject: Free\n\nfree offer", "spam/2.eml": "Subject: Free\n\nfree money"})


# The verb


def test_a_table(run, box):
    ran = run("mail", box, "-o", "mail.parquet", "--header", "x-mailer").checked()
    assert ran.err.startswith("read 4 messages in ")
    assert ran.err.endswith("note: 1 message is malformed; --errors lists them\n")
    assert pl.read_parquet("mail.parquet").select("label", "subject", "x-mailer").rows() == [
        ("ham", "Minutes", "m"), ("ham", "Lunch", None), ("spam", "Free", None),
        ("spam", "Free", None)]
    lines = run("mail", box, "-q").checked().out.splitlines()
    assert [json.loads(line)["subject"] for line in lines] == ["Minutes", "Lunch", "Free", "Free"]
    # Lists are text in CSV.
    run("mail", box, "-o", "mail.csv").checked()
    assert pl.read_csv("mail.csv")["errors"].to_list()[1] == "bad date: soon"


def test_tokens_are_the_same_from_everywhere(run, box):
    raw = (box / "spam/1.eml").read_bytes()
    expected = mail_tokens(raw)
    assert {"subject:free", "free", "offer"} <= set(expected)
    Path("box.mbox").write_bytes(FROM + raw + b"\n")
    Path("Maildir/cur").mkdir(parents=True)
    Path("Maildir/cur/1:2,S").write_bytes(raw)
    for source in ("mail/spam/1.eml", "box.mbox", "Maildir", "-"):
        out = run("mail", source, "--tokens", "-q", input=raw).checked().out
        assert json.loads(out)["tokens"] == expected
    run("mail", box, "--tokens", "-o", "mail.parquet").checked()
    assert pl.read_parquet("mail.parquet")["tokens"].to_list()[2] == expected
    plain = json.loads(run("mail", "-", input=raw).checked().out)
    assert (plain["body"], "tokens" in plain) == ("free offer", False)


def test_errors(run, box):
    lines = run("mail", box, "--errors").checked().out.splitlines()
    assert lines[0] == "mail/ham/2.eml: bad date: soon"
    assert "bad date" in lines[-2]
    assert lines[-2].split()[-2] == "1"
    found = json.loads(run("mail", box, "--errors", "--format", "json").checked().out)
    assert found == [{"error": "bad date", "messages": 1, "paths": ["mail/ham/2.eml"]}]
    ran = run("mail", box, "--errors", "-o", "mail.ndjson").checked()
    assert ran.out.startswith("mail/ham/2.eml: ")
    assert pl.read_ndjson("mail.ndjson").height == 4


# Models of mail


def test_a_model_of_columns_and_headers(run, box):
    run("train", box, "--text", "subject", "--text", "body", "--text", "x-mailer",
        "--set", "field_prefix=true", *FORMAT, "-o", "spam.textnb").checked()
    assert "subject:free" in run("top", "spam.textnb").checked().out
    assert "accuracy 1.0000" in run("test", "spam.textnb", box).checked().out
    message = b"Subject: Free\n\nmoney"
    ran = run("predict", "spam.textnb", "-", *FORMAT, input=message).checked()
    assert json.loads(ran.out)["predicted"] == "spam"
    os.remove("spam.textnb")
    run("train", box, "-o", "spam.textnb").checked()
    assert "minutes" in run("top", "spam.textnb").checked().out


def test_a_filter_judges_tokens_and_explains_them(run, box):
    raw = (box / "spam/1.eml").read_bytes()
    run("train", box, *FORMAT, "--text", "tokens", "-o", "m.textnb").checked()
    ran = run("filter", "m.textnb", "--min-learned", "1", input=raw)
    assert ran.out.startswith("spam ")
    quick = judge("m.textnb", raw, min_learned=1)
    whole = MailFilter.load("m.textnb", min_learned=1).judge(raw)
    assert quick.log_odds == pytest.approx(whole.log_odds, rel=1e-12)
    explained = json.loads(
        run("explain", "m.textnb", "mail/spam/1.eml", "--format", "json").checked().out)
    assert explained["filter"]["log_odds"] == pytest.approx(whole.log_odds)
    assert "subject:free" in json.dumps(explained)


def test_headers_that_no_message_has(run, box):
    train = ("train", box, "-o", "m.textnb", "--text")
    ran = run(*train, "subject", "--text", "X-Mailr", "--text", "list-id").checked()
    assert "warning: no message has a header 'X-Mailr' - did you mean 'x-mailer'?\n" in ran.err
    assert "warning: no message has a header 'list-id'\n" in ran.err
    assert "warning" not in run(*train, "x-mailer", "--text", "body").checked().err
    assert "no message has a header 'x-mailr'" in run(*train, "x-mailr").checked(1).err
    assert "no message" not in run(*train, "x-mailr", "--text", "body", "-q").checked().err
    # A column of a table may be empty, too.
    Path("rows.csv").write_text("text,note,label\nfree money,,spam\nnoon,\" \",ham\n")
    ran = run("train", "rows.csv", "-o", "m.textnb", "--text", "text", "--text", "note").checked()
    assert "warning: the column 'note' holds no text in any row\n" in ran.err


def test_subfolders_are_read_if_they_are_asked_for(run, folder):
    write_files(folder / "Mail", {f"{place}/1": f"Subject: x\n\n{text}" for place, text in (
        ("cur", "noon"), ("new", "lunch"), (".Spam/cur", "pills"), (".Spam/new", "offer"))})
    TextClassifier(text="body").fit(pl.DataFrame(
        {"body": ["money", "minutes"], "label": ["spam", "ham"]})).save("m.textnb")
    known = ["lunch", "minutes", "money", "noon"]
    for options, words, number in (([], known, 2),
                                   (["--read", "subfolders=true"], [*known, "offer", "pills"], 4)):
        run("update", "m.textnb", "Mail", "--as", "ham", "-o", "new.textnb", *options).checked()
        assert load("new.textnb").vocabulary_ == words
        run("mail", "Mail", "-o", "mail.csv", *options).checked()
        assert pl.read_csv("mail.csv").height == number


# Messages that can't be read


def test_a_message_that_can_not_be_read_is_not_learned_as_empty(run, box):
    broken = box / "ham" / "3.eml"
    train = ("train", box, *FORMAT, "--text", "body", "-o", "m.textnb")
    run(*train).checked()
    update, forget = (("update", "m.textnb", box, *FORMAT), ("forget", "m.textnb", box, *FORMAT))
    run(*update).checked()
    before = Path("m.textnb").read_bytes()
    broken.symlink_to("nowhere")
    for call in (train, update, forget):
        refused = run(*call).checked(1)
        assert f"{broken}" in refused.err.replace("'", "")
        assert "No model was written" in refused.err
        assert Path("m.textnb").read_bytes() == before
    # One that is malformed alone is learned, and noted by all three.
    broken.unlink()
    for call in (update, forget):
        assert "1 message is malformed" in run(*call).checked().err
    assert Path("m.textnb").read_bytes() == before


def test_messages_that_can_not_be_read_are_left_out(run, box):
    broken = box / "ham" / "3.eml.gz"
    broken.write_bytes(gzip.compress(b"Subject: Late\n\n" + os.urandom(30_000))[:20_000])
    run("train", box, "-o", "m.textnb").checked(1)
    for call in (("train", box, "-o", "m.textnb"), ("update", "m.textnb", box, "-o", "n.textnb"),
                 ("predict", "m.textnb", box, "-o", "answers.parquet"), ("test", "m.textnb", box)):
        ran = run(*call, "--read", "on_unreadable=skip").checked()
        assert "left out 1 of 5 files:\n" in ran.err
        assert "mail/ham/3.eml.gz: Compressed file ended" in ran.err
    assert load_fitted("m.textnb").counts.class_count.sum() == 4
    assert pl.read_parquet("answers.parquet")["subject"].to_list() == [
        "Minutes", "Lunch", "Free", "Free"]


# A message is explained as textnb filter judges it, term by term

ROWS = pl.DataFrame({
    "subject": ["cheap pills", "lunch", "you won", "café minutes"] * 5,
    "body": ["buy cheap pills now", "see you at noon", "a prize, a prize", "of the meeting"] * 5,
    "x-mailer": ["bulk", "mutt", "bulk", None] * 5,
    "label": ["spam", "ham"] * 10})
MESSAGE = (b"From a@b Mon Jan  1 00:00:00 2024\r\nSubject: =?utf-8?q?caf=C3=A9?= pills\r\n"
           b"X-Mailer: bulk\r\nContent-Type: text/html; charset=latin-1\r\n\r\n"
           b"<p>Buy <b>cheap</b> pr&eacute;fix&nbsp;prize<script>noon noon noon</script>\r\n")


def told(run, *arguments, **settings):
    return json.loads(run("explain", *arguments, "--format", "json", **settings).checked().out)


@pytest.fixture
def model(folder):
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
    # In the sign of the contributions, which are for the class that is named.
    assert last.startswith(f"filter: {verdict.status}, log-odds of {found['predicted']} "
                           f"{sign * verdict.log_odds:.3f}")
    assert ("calibrated; the terms above add up to the score before it" in last) == calibrated


def test_files_are_messages(run, model):
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


def test_every_file_is_a_message_for_a_model_of_mail(run, model):
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


def test_what_is_no_message_is_a_text(run, model):
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


def test_models_without_spam_and_malformed_messages(run, folder):
    rows = ROWS.with_columns(pl.col("label").replace({"spam": "news", "ham": "private"}))
    TextClassifier(text="body").fit(rows).save("m.textnb")
    raw = b"Date: soon\n\ncheap pills"
    found = told(run, "m.textnb", "-", input=raw)
    assert (found["filter"], found["errors"]) == (None, ["bad date: soon"])
    ran = run("explain", "m.textnb", "-", input=raw).checked()
    assert "filter:" not in ran.out
    assert "the message is malformed: bad date: soon" in ran.err


# Classes in several folders


@pytest.fixture
def corpus(box):
    sources = {"easy-ham-1": "ham/1.eml", "hard-ham-1": "ham/2.eml", "spam-1": "spam/1.eml",
               "spam-2": "spam/2.eml"}
    return write_files(Path("corpus"), {
        f"{place}/1.eml": (box / source).read_bytes() for place, source in sources.items()})


CLASSES = ("--classes", "ham=easy-ham-*,hard-ham-*", "--classes", "spam=spam-*")


def test_folders_are_named_as_classes_by_patterns(run, box, corpus):
    settings = ("--model", "nblinear", "--text", "tokens", "-o", "m.textnb")
    ran = run("train", corpus, *CLASSES, *settings).checked()
    assert ("2 classes" in ran.err, "is called spam" in ran.err) == (True, False)
    model = Path("m.textnb").read_bytes()
    run("train", box, *settings).checked()
    assert Path("m.textnb").read_bytes() == model
    for verb in ("test", "threshold"):
        more = ("--class", "spam", "--costs", "1,1") if verb == "threshold" else ()
        run(verb, "m.textnb", corpus, *CLASSES, *more).checked()
    # Without patterns, each folder is a class.
    ran = run("train", corpus, *settings).checked()
    assert "4 classes" in ran.err
    assert "no class is called spam, which textnb filter looks for. Train with --classes" in ran.err
    assert "--spam-class" not in ran.err
    # By the default of mail, which chooses a threshold.
    ran = run("train", corpus, "-o", "m.textnb").checked()
    assert ("decide. the threshold of a filter is for two classes; got 4. Make them two with "
            "--classes spam=PATTERN,...") in ran.err
    assert ("did you mean" in ran.err, "--spam-class" in ran.err) == (False, False)
    ran = run("train", corpus, *CLASSES, "--classes", "spam=junk*", "-o", "m.textnb").checked()
    assert "note: no label matches 'spam=junk*'\n" in ran.err
    assert "say which class they are with --classes ham=PATTERN,..." in run(
        "test", "m.textnb", corpus).checked(1).err
    assert "is called spam" not in run("train", corpus, *settings, "-q").checked().err


@pytest.mark.parametrize(("patterns", "code", "said"), [
    (["ham=easy*", "spam=spam-*"], 1, "no pattern of --classes matches the label 'hard-ham-1'"),
    (["spam=spam-*"], 1, "matches the labels 'easy-ham-1', 'hard-ham-1': add them to a class"),
    (["ham=*-1", "spam=spam-*"], 1, "'spam-1' matches --classes of two classes, 'ham' and 'spam'"),
    *((words, 2, "--classes must be CLASS=PATTERN,...") for words in (
        ["ham"], ["=ham-*"], ["ham="], ["ham=a,,b"]))])
def test_patterns_that_do_not_fit_are_refused(run, corpus, patterns, code, said):
    words = [word for pattern in patterns for word in ("--classes", pattern)]
    ran = run("train", corpus, *words, "-o", "m.textnb").checked(code)
    assert said in ran.err
    assert not Path("m.textnb").exists()
    # Rows that a condition leaves out need no class.
    if patterns == ["ham=easy*", "spam=spam-*"]:
        run("train", corpus, *words, "--where", "label != 'hard-ham-1'", "-o", "m").checked()
        ran = run("update", "m", corpus, *words, "--as", "spam").checked(2)
        assert "--classes is for rows with labels, and --as for rows without" in ran.err
