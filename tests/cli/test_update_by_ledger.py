"""`textnb update --ledger`: each message is learned once."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import finished, start
from tests.filter.models import counts, ledger_of
from tests.messages import spam_messages
from textnb import TextClassifier, load, scan_mail
from textnb.filter import ledger as ledgers
from textnb.filter.by_ledger import keys_of
from textnb.filter.ledger import Ledger, message_key
from textnb.learning.fitted import fitted_text_model
from textnb.mail.columns import message_columns
from textnb.storage import version2

ROWS = pl.DataFrame({"body": ["cheap pills", "see you at noon"] * 20,
                     "label": ["spam", "ham"] * 20})
NEW = b"Message-ID: <1@a>\nSubject: New\n\nbrand new watches\n"


class ProcessEnd(BaseException):
    """Simulates the end of the process."""


@pytest.fixture
def model(folder):
    path = folder / "m.textnb"
    TextClassifier(text="body").fit(ROWS).save(path)
    (folder / "new.eml").write_bytes(NEW)
    return path


def test_labels_of_a_list_have_no_order(run, folder):
    rows = pl.DataFrame({"text": ["corn wheat", "oil", "gold"] * 5,
                         "label": [["wheat", "corn"], ["oil"], []] * 5})
    TextClassifier().fit(rows).save("m.textnb")
    rows[:1].write_parquet("new.parquet")
    options = ("m.textnb", "new.parquet", "--ledger")
    assert "1 document judged rightly" in run("update", *options, "--on-error").checked().err
    assert "1 document learned\n" in run("update", *options).checked().err
    rows[:1].with_columns(label=pl.col("label").list.reverse()).write_parquet("new.parquet")
    assert "changed nothing" in run("update", *options).checked().err


def test_a_message_is_learned_once_and_forgotten_without_its_class(run, model):
    before = model.read_bytes()
    ran = run("update", model, "new.eml", "--as", "spam", "--ledger").checked()
    assert "1 document learned\n" in ran.err
    once = model.read_bytes()
    stored = Path("m.textnb.ledger").read_bytes()
    assert all(word not in stored for word in (b"watches", b"1@a", b"New"))
    assert Path("m.textnb.ledger").stat().st_mode & 0o777 == 0o600
    # The ledger is there now, and is used without the option.
    again = run("update", model, "new.eml", "--as", "spam").checked()
    assert "1 document learned before, or twice in the input: changed nothing" in again.err
    assert model.read_bytes() == once
    corrected = run("update", model, "new.eml", "--as", "ham").checked()
    assert "learned as another class before: corrected" in corrected.err
    assert counts(model) == {"ham": 21, "spam": 20}
    Path("box").mkdir()
    Path("box/new.eml").write_bytes(b"Received: by a third host\n" + NEW)
    Path("box/other.eml").write_bytes(NEW.replace(b"1@a", b"2@a"))
    ran = run("forget", model, "box", "--read", "format=mail", "--where",
              "message_id = '<1@a>'").checked()
    assert "1 document forgotten" in ran.err
    assert model.read_bytes() == before
    assert "1 document not in the ledger: left" in run("forget", model, "new.eml").checked().err
    assert model.read_bytes() == before


def test_a_message_that_is_not_in_the_ledger_is_forgotten_with_as(run, model):
    before = model.read_bytes()
    run("update", model, "new.eml", "--as", "spam").checked()
    assert not Path("m.textnb.ledger").exists()
    run("forget", model, "new.eml", "--as", "spam", "--ledger").checked()
    assert model.read_bytes() == before


def test_rows_without_an_id_are_known_by_their_texts(run, model):
    ROWS.head(4).write_parquet("rows.parquet")
    pl.DataFrame({"body": ["cheap pills"], "label": ["ham"]}).write_parquet("other.parquet")
    ran = run("update", model, "rows.parquet", "other.parquet", "--ledger").checked()
    assert "2 documents learned\n" in ran.err
    assert "3 documents learned before" in ran.err
    # If rows have the same text, the class of the last one counts.
    assert counts(model) == {"ham": 22, "spam": 20}


def test_updates_by_ledger_equal_updates_without(run, model):
    rows = spam_messages(300).rename({"text": "body"}).unique("body", maintain_order=True)
    rows.write_parquet("rows.parquet")
    run("update", model, "rows.parquet", "-o", "plain.textnb").checked()
    run("update", model, "rows.parquet", "--ledger").checked()
    assert model.read_bytes() == Path("plain.textnb").read_bytes()
    # Rows that the model classifies correctly are not learned.
    ran = run("update", model, "rows.parquet", "--on-error").checked()
    assert f"{rows.height} documents learned before" in ran.err
    more = spam_messages(400).rename({"text": "body"}).tail(100).filter(
        ~pl.col("body").is_in(rows["body"].implode())).unique("body", maintain_order=True)
    more.write_parquet("more.parquet")
    wrong = (load(model).predict(more)["predicted"] != more["label"]).sum()
    ran = run("update", model, "more.parquet", "--on-error").checked()
    assert f"{more.height - wrong} documents judged rightly: not learned" in ran.err
    with Ledger(model) as ledger:
        assert len(ledger) == rows.height + wrong


def test_update_and_the_server_use_the_same_key(folder):
    for label in ("ham", "spam"):
        (folder / label).mkdir()
        (folder / label / "new.eml").write_bytes(NEW)
    fitted = fitted_text_model(TextClassifier(text=["subject", "body", "tokens"]).fit(
        scan_mail(folder, tokens=True)))
    rows = scan_mail(folder / "spam", tokens=True).collect()
    texts, parsed = message_columns(NEW, fitted.columns, fitted.token_columns)
    assert keys_of(fitted, rows) == [message_key(parsed.message_id, texts)]


def test_a_ledger_of_which_the_disk_does_not_tell_stops_an_update(run, model, monkeypatch):
    before, genuine = model.read_bytes(), os.lstat

    def fail(path, **options):
        if os.fspath(path).endswith(".ledger"):
            raise OSError(5, "Input/output error")
        return genuine(path, **options)

    monkeypatch.setattr(os, "lstat", fail)
    ran = run("update", model, "new.eml", "--as", "spam").checked(1)
    assert "m.textnb.ledger: Input/output error" in ran.err
    assert model.read_bytes() == before


def test_a_ledger_belongs_to_one_file(run, model):
    message = ("new.eml", "--as", "spam")
    ran = run("update", model, *message, "--ledger", "-o", "b.textnb").checked(2)
    assert "leave out --output, or --ledger" in ran.err
    run("update", model, *message, "--ledger").checked()
    run("update", model, *message, "-o", "b.textnb").checked()
    ran = run("update", "b.textnb", *message, "-o", model).checked(2)
    assert "m.textnb has a ledger" in ran.err
    run("update", "none.textnb", *message, "--ledger").checked(1)
    assert not Path("none.textnb.ledger").exists()


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("place", "name"), [
    (version2, "write"), (ledgers, "keep_owner"), (os, "replace"), (ledgers, "sync_rename"),
    (Ledger, "settle")])
@pytest.mark.parametrize("message", ["new.eml", "new.mbox"])
def test_model_and_ledger_agree_if_the_process_ends(
    run, model, monkeypatch, message, place, name, before
):
    Path("new.mbox").write_bytes(b"From a@b Mon Nov  2 10:00:00 2026\n" + NEW)
    shutil.copy(model, "expected.textnb")
    run("update", "expected.textnb", message, "--as", "spam").checked()
    command, call = ("update", model, message, "--as", "spam", "--ledger"), getattr(place, name)

    def end_process(*arguments, **more):
        if not before:
            call(*arguments, **more)
        raise ProcessEnd

    with monkeypatch.context() as patch:
        patch.setattr(place, name, end_process)
        with pytest.raises(ProcessEnd):
            run(*command)
    run(*command).checked()
    assert model.read_bytes() == Path("expected.textnb").read_bytes()
    assert ledger_of(model) == (1, [])


def test_one_message_is_learned_without_polars(model):
    rows = pl.DataFrame({"body": ["cheap brand pills", "see you at noon", "see brand"] * 20,
                         "tokens": [["a"], ["b", "c"], ["c"]] * 20,
                         "label": ["spam", "ham", "eggs"] * 20})
    TextClassifier(text=["body", "tokens"]).fit(rows).save("m.textnb")
    shutil.copy("m.textnb", "slow.textnb")
    Path("box.mbox").write_bytes(b"From a@b Mon Nov  2 10:00:00 2026\n" + NEW)
    finished(start("update", "slow.textnb", "box.mbox", "--as", "spam", "--ledger")).checked()
    # Check for the ledger's module, because some versions of filelock import sqlite3 themselves.
    code = ("import sys; from textnb.cli.main import app\n"
            "for name, *words in (['plain.textnb'], ['m.textnb', '--ledger'], ['m.textnb']):\n"
            "    try: app(['update', name, 'new.eml', '--as', 'spam', *words])\n"
            "    except SystemExit: pass\n"
            "    print('textnb.filter.ledger' in sys.modules, 'polars' in sys.modules)")
    shutil.copy("m.textnb", "plain.textnb")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False False", "True False", "True False"]
    assert "1 document learned\n" in done.stderr
    assert "changed nothing" in done.stderr
    assert Path("m.textnb").read_bytes() == Path("slow.textnb").read_bytes()
    learned = []
    for name in ("m.textnb", "slow.textnb"):
        with sqlite3.connect(f"{name}.ledger") as database:
            learned.append(database.execute("SELECT id, class FROM learned").fetchall())
        database.close()
    assert learned[0] == learned[1]


def test_changes_of_a_server_are_applied_before_an_update(run, model):
    with Ledger(model) as ledger:
        ledger.add(b"1", "ham", b"\n\nsee you\n")
    run("update", model, "new.eml", "--as", "spam").checked()
    assert counts(model) == {"ham": 21, "spam": 21}


def test_lists_of_labels_have_a_ledger_too(run, folder):
    rows = pl.DataFrame({"text": ["ab b", "cd d", "ef f"], "label": [["a", "b"], ["a"], []]})
    rows.write_parquet("rows.parquet")
    run("train", "rows.parquet", "-o", "m.textnb").checked()
    before = Path("m.textnb").read_bytes()
    more = ("m.textnb", "rows.parquet")
    assert "3 documents learned" in run("update", *more, "--ledger").checked().err
    assert "changed nothing" in run("update", *more).checked().err
    assert "3 documents forgotten" in run("forget", *more).checked().err
    assert Path("m.textnb").read_bytes() == before
