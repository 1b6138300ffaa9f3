"""The cards, the registry, and the stored copies they describe."""

import dataclasses
from pathlib import Path

import polars as pl
import pytest

import corpora
from corpora.card import Card
from textnb.errors import ParameterError

NAMES = sorted(corpora.CARDS)
README = Path(corpora.__file__).with_name("README.md").read_text(encoding="utf-8")
every_corpus = pytest.mark.parametrize("name", NAMES)


def stored(name):
    try:
        return corpora.load(name)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def counts(frame, column):
    return dict(frame.group_by(column).len().collect().iter_rows())


@every_corpus
def test_a_stored_corpus_is_what_its_card_says(name):
    card, frame = corpora.CARDS[name], stored(name)
    schema = frame.collect_schema()
    assert counts(frame, "label") == dict(card.class_rows)
    assert frame.select(pl.len()).collect().item() == card.rows
    assert ("split" in schema) == bool(card.splits)
    if card.splits:
        assert counts(frame, "split") == dict(card.splits)
    if name == "mnist":
        assert schema["pixels"] == pl.Array(pl.UInt8, 784)
        assert "text" not in schema
    else:
        assert [schema["label"], schema["text"]] == [pl.String(), pl.String()]
        assert frame.select(pl.col("label", "text").null_count()).collect().row(0) == (0, 0)


def test_stored_ag_news_text_is_title_and_description():
    frame = stored("ag_news").filter(pl.col("title").is_not_null())
    joined = pl.concat_str("title", "description", separator=" ")
    assert frame.select((pl.col("text") == joined).all()).collect().item()


def test_stored_mail_is_byte_exact():
    frame = stored("spamassassin").collect()
    assert all(text.encode("latin-1") == raw
               for text, raw in frame.select("text", "raw").iter_rows())
    assert counts(frame.lazy(), "folder") == {
        "easy-ham-1": 2_500, "easy-ham-2": 1_400, "hard-ham-1": 250, "spam-1": 500, "spam-2": 1_396}
    assert frame.select("folder", "name").is_duplicated().sum() == 0


@every_corpus
def test_a_card_is_complete(name):
    card = corpora.CARDS[name]
    assert card.name == name
    for text in (card.title, card.source, card.citation, card.licence, card.notes):
        assert text.strip()
    assert card.source.startswith("http")
    assert card.figures
    assert all(0 < value < 1 for value in card.figures.values())
    assert len(card.classes) > 1
    assert list(card.classes) == sorted(card.classes)
    assert f"| `{name}` | {card.rows:,}; {len(card.classes)} | `{card.stored}` |" in README


def test_a_card_does_not_change_and_its_splits_add_up():
    with pytest.raises(dataclasses.FrozenInstanceError):
        corpora.CARDS["r8"].name = "r52"  # type: ignore[misc]
    with pytest.raises(ValueError, match="add up to 3 rows, the classes to 2"):
        Card(name="x", title="x", source="x", citation="x", licence="x", stored="x",
             class_rows={"a": 1, "b": 1}, splits={"train": 3})


@every_corpus
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_variable_is_named(name, value, monkeypatch):
    if value is None:
        monkeypatch.delenv("TEXTNB_CORPORA", raising=False)
    else:
        monkeypatch.setenv("TEXTNB_CORPORA", value)
    assert not corpora.available(name)
    with pytest.raises(FileNotFoundError, match=f"'{name}'.* TEXTNB_CORPORA is not set; "):
        corpora.load(name)


@every_corpus
def test_a_missing_copy_or_published_form_is_named(name, monkeypatch, tmp_path):
    monkeypatch.setenv("TEXTNB_CORPORA", str(tmp_path))
    assert not corpora.available(name)
    with pytest.raises(FileNotFoundError) as caught:
        corpora.load(name)
    for word in (corpora.CARDS[name].stored, str(tmp_path), "TEXTNB_CORPORA"):
        assert word in str(caught.value)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        corpora.load(name, path=tmp_path / "nowhere")


@pytest.mark.parametrize("call", [corpora.load, corpora.available])
def test_an_unknown_name_raises_an_error_with_a_suggestion(call):
    with pytest.raises(ParameterError, match="'newsgroup' - did you mean 'newsgroups'"):
        call("newsgroup")
