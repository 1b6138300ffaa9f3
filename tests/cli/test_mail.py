"""The verb mail, and mail as the input of the others."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Run, files_in
from tests.quick import judge
from textnb import MailFilter, TextClassifier, load, scan
from textnb.mail.tokens import mail_tokens
from textnb.storage.textmodel import load_fitted


@pytest.fixture
def box(folder: Path) -> Path:
    """Mail of two classes; one message is malformed."""
    for name, content in {
        "ham/1.eml": b"Subject: Minutes\nX-Mailer: m\n\nof the meeting",
        "ham/2.eml": b"Subject: Lunch\nDate: soon\n\nat noon",
        "spam/1.eml": b"Subject: Free\n\nfree offer",
        "spam/2.eml": b"Subject: Free\n\nfree money",
    }.items():
        path = folder / "mail" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Path("mail")


def test_a_table(run: Run, box: Path) -> None:
    ran = run("mail", box, "-o", "mail.parquet", "--header", "x-mailer").checked()
    assert ran.err.startswith("read 4 messages in ")
    assert ran.err.endswith("note: 1 message is malformed; --errors lists them\n")
    table = pl.read_parquet("mail.parquet")
    assert table.select("label", "subject", "x-mailer").rows() == [
        ("ham", "Minutes", "m"), ("ham", "Lunch", None), ("spam", "Free", None),
        ("spam", "Free", None)]
    lines = run("mail", box, "-q").checked().out.splitlines()
    assert [json.loads(line)["subject"] for line in lines] == ["Minutes", "Lunch", "Free", "Free"]


def test_tokens_are_the_same_from_everywhere(run: Run, box: Path, folder: Path) -> None:
    raw = (folder / "mail/spam/1.eml").read_bytes()
    expected = mail_tokens(raw)
    assert {"subject:free", "free", "offer"} <= set(expected)
    (folder / "box.mbox").write_bytes(b"From a@b.org Sat Jan  3 01:05:34 1996\n" + raw + b"\n")
    (folder / "Maildir/cur").mkdir(parents=True)
    (folder / "Maildir/cur/1:2,S").write_bytes(raw)
    for source in ("mail/spam/1.eml", "box.mbox", "Maildir"):
        out = run("mail", source, "--tokens", "-q").checked().out
        assert json.loads(out)["tokens"] == expected
    assert json.loads(run("mail", "-", "--tokens", input=raw).checked().out)["tokens"] == expected
    run("mail", box, "--tokens", "-o", "mail.parquet").checked()
    assert pl.read_parquet("mail.parquet")["tokens"].to_list()[2] == expected
    assert "tokens" not in json.loads(run("mail", "-", input=raw).checked().out)


def test_a_model_of_tokens(run: Run, box: Path) -> None:
    run("train", box, "--read", "format=mail", "--text", "tokens", "-o", "m.textnb",
        "--binary").checked()
    model = load("m.textnb")
    assert isinstance(model, TextClassifier)
    assert "subject:free" in model.vocabulary_
    run("predict", "m.textnb", box, "--read", "format=mail", "-o", "p.csv").checked()
    assert pl.read_csv("p.csv")["predicted"].to_list() == ["ham", "ham", "spam", "spam"]


def test_a_filter_judges_and_learns_tokens(run: Run, box: Path, folder: Path) -> None:
    raw = (folder / "mail/spam/1.eml").read_bytes()
    run("train", box, "--read", "format=mail", "--text", "tokens", "-o", "m.textnb").checked()
    ran = run("filter", "m.textnb", "--min-learned", "1", input=raw)
    assert ran.out.startswith("spam ")
    quick = judge("m.textnb", raw, least_learned=1)
    whole = MailFilter.load("m.textnb", least_learned=1).judge(raw)
    assert quick.log_odds == pytest.approx(whole.log_odds, rel=1e-12)
    explained = json.loads(
        run("explain", "m.textnb", "mail/spam/1.eml", "--format", "json").checked().out)
    assert explained["filter"]["log_odds"] == pytest.approx(whole.log_odds)
    assert "subject:free" in json.dumps(explained)
    run("update", "m.textnb", "mail/ham/1.eml", "--as", "spam", "-o", "one.textnb").checked()
    (folder / "again").mkdir()
    (folder / "again/1.eml").write_bytes((folder / "mail/ham/1.eml").read_bytes())
    run("update", "m.textnb", "again", "--as", "spam", "-o", "all.textnb").checked()
    assert Path("one.textnb").read_bytes() == Path("all.textnb").read_bytes()


def test_lists_that_mail_does_not_have_are_named(run: Run, box: Path, folder: Path) -> None:
    rows = pl.DataFrame({"words": [["a"], ["b"]] * 10, "label": ["spam", "ham"] * 10})
    TextClassifier(text="words").fit(rows).save("m.textnb")
    ran = run("filter", "m.textnb", input=b"Subject: a\n\na")
    assert ran.code == 3
    assert "of mail only 'attachments', 'errors' and 'tokens' are lists" in ran.err


def test_update_learns_the_folder_that_is_named(run: Run, folder: Path) -> None:
    for place, text in (("cur", "noon"), ("new", "lunch"), (".Spam/cur", "pills"),
                        (".Spam/new", "offer")):
        (folder / "Mail" / place).mkdir(parents=True, exist_ok=True)
        (folder / "Mail" / place / "1").write_bytes(f"Subject: x\n\n{text}".encode())
    TextClassifier(text="body").fit(pl.DataFrame(
        {"body": ["money", "minutes"], "label": ["spam", "ham"]})).save("m.textnb")

    def learned(*arguments: str) -> list[str]:
        run("update", "m.textnb", "Mail", "--as", "ham", "-o", "new.textnb", *arguments).checked()
        fitted = load("new.textnb")
        assert isinstance(fitted, TextClassifier)
        return fitted.vocabulary_

    assert learned() == ["lunch", "minutes", "money", "noon"]
    assert learned("--read", "subfolders=true") == ["lunch", "minutes", "money", "noon", "offer",
    "pills"]
    for verb, more in (("forget", ["--as", "ham", "-o", "old.textnb"]),
                       ("predict", ["-o", "p.csv"])):
        run(verb, "new.textnb", "Mail", "--read", "subfolders=true", *more).checked()
    assert pl.read_csv("p.csv").height == 4
    assert len(run("mail", "Mail", "-q").checked().out.splitlines()) == 2
    assert len(run("mail", "Mail", "-q", "--read",
    "subfolders=true").checked().out.splitlines()) == 4


def test_lists_are_text_in_csv(run: Run, box: Path) -> None:
    run("mail", box, "-o", "mail.csv").checked()
    assert pl.read_csv("mail.csv")["errors"].to_list()[1] == "bad date: soon"


def test_errors(run: Run, box: Path) -> None:
    lines = run("mail", box, "--errors").checked().out.splitlines()
    assert lines[0] == "mail/ham/2.eml: bad date: soon"
    assert "bad date" in lines[-2]
    assert lines[-2].split()[-2] == "1"
    found = json.loads(run("mail", box, "--errors", "--format", "json").checked().out)
    assert found == [{"error": "bad date", "messages": 1, "paths": ["mail/ham/2.eml"]}]
    ran = run("mail", box, "--errors", "-o", "mail.ndjson").checked()
    assert ran.out.startswith("mail/ham/2.eml: ")
    assert pl.read_ndjson("mail.ndjson").height == 4


def test_standard_input(run: Run, folder: Path) -> None:
    ran = run("mail", "-", input=b"Subject: x\n\nBody").checked()
    assert json.loads(ran.out)["body"] == "Body"


@pytest.mark.parametrize(("args", "code", "said"), [
    (["nowhere"], 1, "no such file or folder"),
    (["mail", "--errors", "-o", "-"], 2, "can't both go to standard output"),
    (["mail", "--errors", "--output-format", "csv"], 2, "can't both go to standard output"),
    (["mail", "--format", "json"], 2, "--format is for --errors"),
    (["mail", "--errors", "--format", "jsn"], 2, "did you mean 'json'"),
    (["mail", "--header", "a b"], 2, "names of headers"),
    (["mail", "-o", "x.xyz"], 2, "can't tell the output format"),
])
def test_what_goes_wrong_is_one_line(
    run: Run, box: Path, args: list[str], code: int, said: str
) -> None:
    ran = run("mail", *args).checked(code)
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert said in ran.err
    assert files_in(Path()) == ["mail"]


def test_a_model_of_mail(run: Run, box: Path) -> None:
    run("train", box, "--text", "subject", "--text", "body", "--text", "x-mailer",
        "--set", "field_prefix=true", "--read", "format=mail", "-o", "spam.textnb").checked()
    assert "subject:free" in run("top", "spam.textnb").checked().out
    assert "accuracy 1.0000" in run("test", "spam.textnb", box).checked().out
    message = b"Subject: Free\n\nmoney"
    ran = run("predict", "spam.textnb", "-", "--read", "format=mail", input=message).checked()
    assert json.loads(ran.out)["predicted"] == "spam"
    os.remove("spam.textnb")
    run("train", box, "-o", "spam.textnb").checked()
    assert "minutes" in run("top", "spam.textnb").checked().out


@pytest.fixture
def classes(folder: Path) -> Path:
    """A folder per class of messages, and one that can't be read (its packed bytes break off)."""
    for label, text in (("ham", "lunch at noon"), ("spam", "cheap pills")):
        (folder / "classes" / label).mkdir(parents=True)
        for number in range(3):
            (folder / "classes" / label / f"{number}.eml").write_text(f"Subject: {text}\n\n{text}")
    return folder / "classes"


def test_a_message_that_can_not_be_read_is_not_learned_as_empty(run: Run, classes: Path) -> None:
    model, broken = classes.parent / "m.textnb", classes / "ham" / "a.eml"
    arguments = ["--read", "format=mail", "--text", "body"]
    run("train", classes, *arguments, "-o", model).checked()
    run("update", model, classes, "--read", "format=mail").checked()
    before = model.read_bytes()
    broken.symlink_to("nowhere")
    for call in (["train", classes, *arguments, "-o", model],
                 ["update", model, classes, "--read", "format=mail"],
                 ["forget", model, classes, "--read", "format=mail"]):
        refused = run(*call).checked(1)
        assert f"{broken}" in refused.err.replace("'", "")
        assert "No model was written" in refused.err
        assert model.read_bytes() == before
    # One that is malformed alone is learned, and noted by all three.
    broken.unlink()
    broken.write_bytes(b"Subject: x\nDate: soon\n\nlunch at noon")
    for verb in ("update", "forget"):
        assert "1 message is malformed" in run(
            verb, model, classes, "--read", "format=mail").checked().err
    assert model.read_bytes() == before


def test_messages_that_cannot_be_read_are_left_out(run: Run, box: Path) -> None:
    broken = box / "ham" / "3.eml.gz"
    broken.write_bytes(gzip.compress(b"Subject: Late\n\n" + os.urandom(30_000))[:20_000])
    skip = ("--read", "on_unreadable=skip")
    run("train", box, "-o", "m.textnb").checked(1)
    for call in (("train", box, "-o", "m.textnb"), ("update", "m.textnb", box, "-o", "n.textnb"),
                 ("predict", "m.textnb", box, "-o", "answers.parquet"), ("test", "m.textnb", box)):
        ran = run(*call, *skip).checked()
        assert "left out 1 of 5 files:\n" in ran.err
        assert "mail/ham/3.eml.gz: Compressed file ended" in ran.err
    assert load_fitted("m.textnb").counts.class_count.sum() == 4
    assert pl.read_parquet("answers.parquet")["subject"].to_list() == [
        "Minutes", "Lunch", "Free", "Free"]
    with pytest.warns(UserWarning, match=r"1 of 5 files could not be read and were left out: .*gz"):
        assert scan(str(box), text="text", on_error="skip").collect().height == 4


def test_headers_that_no_message_has(run: Run, box: Path) -> None:
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
