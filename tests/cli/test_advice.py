"""What a failure advises: on the command line its options, and not Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import Run
from textnb.errors import (
    DataError,
    ImpossibleRowError,
    Mention,
    ModelFileError,
    ParameterError,
    SchemaError,
    SourceError,
    TextnbError,
    VocabularyError,
)

PYTHON = ("predict(", "pass ", "frame", "=...", "partial_fit", "Tokenizer(", ", encoding=")


def test_the_command_line_has_its_own_advice(run: Run, folder: Path) -> None:
    Path("mail.csv").write_text("text,label\nfree money,spam\nnoon,ham\n")
    Path("more.csv").write_text("text,label\nfree money,news\n")
    Path("null.csv").write_text("text,label\nfree money,spam\nnoon,\n")
    Path("short.csv").write_text("text,label\na b,spam\nc,ham\n")
    Path("mail.what").write_text("x")
    for label in ("a", "b"):
        (folder / "older" / label).mkdir(parents=True)
        (folder / "older" / label / "1.txt").write_bytes(b"caf\xe9 noon")
    run("train", "mail.csv", "-o", "m.textnb").checked()
    cases = {
        ("predict", "m.textnb", "none.csv"): "no such file or folder: 'none.csv'\n",
        ("update", "m.textnb", "more.csv"): "say --new-class NAME for each that is new\n",
        ("train", "null.csv", "-o", "n.textnb"): "--where 'label IS NOT NULL'\n",
        ("train", "mail.what", "-o", "n.textnb"): "Say it with --read format=csv, say\n",
        ("train", "mail.csv", "--text", "txt", "-o", "n.textnb"):
            "say which with --text of textnb train\n",
        ("train", "short.csv", "-o", "n.textnb"): "shorten the list\n",
        ("train", "mail.csv", "--min-df", "2", "-o", "n.textnb"): "lower --min-df or raise",
        ("train", "older", "-o", "n.textnb"): "try --read encoding=latin-1\n",
    }
    for arguments, advice in cases.items():
        ran = run(*arguments).checked(1)
        assert advice in ran.err
        assert [word for word in PYTHON if word in ran.err] == []


@pytest.mark.parametrize(("error", "python", "command"), [
    (SourceError.not_found("x"), "pass a list", None),
    (DataError.unseen_labels(["a"], ["b"]), "pass classes=['a']", "--new-class"),
    (DataError.null_label("kind", 3), "frame.filter(", "--where 'kind IS NOT NULL'"),
    (SchemaError.wrong_type("text", "text", "String", "Int64"), "frame.with_columns",
     "in the query"),
    (SchemaError.column_exists("predicted"), "frame.drop", None),
    (VocabularyError.no_tokens("x", 2), "Tokenizer(pattern=r'[", "--set 'pattern=["),
    (ImpossibleRowError.rows([1], 1), "predict a frame", "textnb predict"),
    (ModelFileError.too_large("m", 9, 8), "max_bytes=9", "textnb.load('m', max_bytes=9)")])
def test_python_has_its_own(error: TextnbError, python: str, command: str | None) -> None:
    assert python in str(error)
    assert command is None or command in error.command_line
    assert command is None or command not in str(error)
    assert textnb.TextnbError("plain").command_line == "plain"


def test_a_message_names_settings_as_data() -> None:
    error = ParameterError.naming(
        "{l='auto'} and {limit} of {n:,} documents: give {l} as a number, not {text!r}",
        limit=Mention("min_df", "2"), n=1200, text="binary=True")
    assert str(error) == ("l='auto' and min_df=2 of 1,200 documents: give l as a number, not "
                          "'binary=True'")
    write = {"l": "--l", "min_df": "--min-df", "binary": "--binary"}
    told = error.message(lambda setting: f"{write[setting.name]} {setting.value}".rstrip())
    assert told == ("--l 'auto' and --min-df 2 of 1,200 documents: give --l as a number, not "
                    "'binary=True'")
    again = pickle.loads(pickle.dumps(error))
    assert again.message(lambda setting: setting.name.upper()).startswith("L and MIN_DF of")


def test_settings_are_options_on_the_command_line(run: Run, folder: Path) -> None:
    Path("mail.csv").write_text("text,min_df must be,label\nfree money,one,spam\nnoon,two,ham\n")
    train = ("train", "mail.csv", "-o", "m.textnb")
    cases = {
        (*train, "--l", "auto", "--memory-limit", "2M"):
            "--l auto keeps the matrix of all documents, which --memory-limit can't bound",
        (*train, "--model", "complement", "--set", "norm=true", "--l", "auto"):
            "which --set norm=true does not allow: give --l as a number, or --set norm=false",
        (*train, "--min-df", "-1"): "--min-df must be a count",
        (*train, "--min-df", "9", "--set", "max_df=2"):
            "--set max_df=2 of 2 documents is fewer than --min-df 9",
        (*train, "--stop-words", "words.txt", "--analyzer", "char"):
            "--stop-words is for words: it needs --analyzer word; got --analyzer char",
        (*train, "--read", "subfolders=true"):
            "--read subfolders is for a Maildir, and mail.csv is not one. If it holds mail, say "
            "--read format=mail"}
    Path("words.txt").write_text("free\n")
    for arguments, message in cases.items():
        assert message in run(*arguments).err
    # The names of columns and the values of options are not settings.
    ran = run(*train, "--text", "min_df must be").checked()
    ran = run(*train, "--label", "binary=True").checked(1)
    assert "no column 'binary=True'" in ran.err
    run(*train).checked()
    ran = run("test", "m.textnb", "mail.csv", "--read", "format=binary=True").checked(2)
    assert "--read format: unknown value 'binary=True'; choose one of" in ran.err
    ran = run("predict", "m.textnb", "mail.csv", "--top-k", "-1").checked(2)
    assert "Invalid value for '--top-k': -1 is not in the range x>=0" in ran.err


def test_advice_for_the_verb_at_hand(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mail.csv").write_text("text,label\nfree money,spam\nnoon,ham\n")
    run("train", "mail.csv", "-o", "m.textnb").checked()

    def fails(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr("textnb.storage.textmodel.fit_from_file", fails)
    ran = run("describe", "m.textnb").checked(1)
    assert "memory ran out while m.textnb was read" in ran.err
    assert "train it with fewer terms (--memory-limit of textnb train)" in ran.err


def test_labels_of_any_kind_have_weights(run: Run, tmp_path: Path) -> None:
    rows = pl.DataFrame({"text": ["good film", "bad film"] * 5, "label": ["a.b", "c"] * 5})
    rows.write_csv(tmp_path / "dots.csv")
    rows.with_columns(label=pl.Series([1, 2] * 5)).write_parquet(tmp_path / "numbers.parquet")
    for name, setting in (("dots.csv", 'class_weight."a.b"=3'),
                          ("numbers.parquet", "class_weight.1=3")):
        run("train", str(tmp_path / name), "-o", str(tmp_path / "m.textnb"),
            "--set", setting).checked()
    twice = ["--set", "class_weight.c=3", "--set", "class_weight=balanced"]
    assert "given twice" in run("train", str(tmp_path / "dots.csv"), "-o",
                                str(tmp_path / "n.textnb"), *twice).checked(2).err
    hidden = run("train", str(tmp_path / "dots.csv"), "-o", str(tmp_path / "n.textnb"), "--read",
                 ".storage_options.aws_secret=TOPSECRET").checked(2).err
    assert "TOPSECRET" not in hidden
