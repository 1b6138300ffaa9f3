"""The cards, the registry, and the stored copies they describe."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import polars as pl
import pytest

import corpora
from corpora.card import Card
from textnb.errors import ParameterError

NAMES = sorted(corpora.CARDS)
README = Path(corpora.__file__).with_name("README.md").read_text(encoding="utf-8")


def stored(name: str) -> pl.LazyFrame:
    try:
        return corpora.load(name)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def counts(frame: pl.LazyFrame, column: str) -> dict[object, int]:
    return dict(frame.group_by(column).len().collect().iter_rows())


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_corpus_is_what_its_card_says(name: str) -> None:
    card, frame = corpora.CARDS[name], stored(name)
    assert counts(frame, "label") == dict(card.class_rows)
    assert frame.select(pl.len()).collect().item() == card.rows
    if card.splits:
        assert counts(frame, "split") == dict(card.splits)
    else:
        assert "split" not in frame.collect_schema()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mnist"])
def test_every_stored_label_and_text_is_there(name: str) -> None:
    frame = stored(name)
    schema = frame.collect_schema()
    assert [schema["label"], schema["text"]] == [pl.String(), pl.String()]
    assert frame.select(pl.col("label", "text").null_count()).collect().row(0) == (0, 0)


def test_stored_pixels_have_their_width() -> None:
    schema = stored("mnist").collect_schema()
    assert schema["pixels"] == pl.Array(pl.UInt8, 784)
    assert "text" not in schema


def test_stored_ag_news_text_is_title_and_description() -> None:
    frame = stored("ag_news").filter(pl.col("title").is_not_null())
    joined = pl.concat_str("title", "description", separator=" ")
    assert frame.select((pl.col("text") == joined).all()).collect().item()


def test_stored_mail_is_byte_exact() -> None:
    frame = stored("spamassassin").collect()
    assert all(
        text.encode("latin-1") == raw for text, raw in frame.select("text", "raw").iter_rows()
    )
    assert dict(frame.group_by("folder").len().iter_rows()) == {
        "easy-ham-1": 2_500, "easy-ham-2": 1_400, "hard-ham-1": 250, "spam-1": 500, "spam-2": 1_396,
    }
    assert frame.select("folder", "name").is_duplicated().sum() == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_complete(name: str) -> None:
    card = corpora.CARDS[name]
    assert card.name == name
    for text in (card.title, card.source, card.citation, card.licence, card.notes):
        assert text.strip()
    assert card.source.startswith("http")
    assert card.figures
    assert all(0 < value < 1 for value in card.figures.values())
    assert len(card.classes) > 1
    assert f"| `{name}` | {card.rows:,}; {len(card.classes)} | `{card.stored}` |" in README


def test_a_card_does_not_change() -> None:
    card = corpora.CARDS["r8"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.name = "r52"  # type: ignore[misc]


def test_splits_that_contradict_the_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="add up to 3 rows, the classes to 2"):
        Card(
            name="x", title="x", source="x", citation="x", licence="x", stored="x",
            class_rows={"a": 1, "b": 1}, splits={"train": 3},
        )


def test_classes_are_sorted() -> None:
    assert corpora.CARDS["mnist"].classes == tuple(range(10))
    assert corpora.CARDS["ag_news"].classes == ("Business", "Sci/Tech", "Sports", "World")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_variable_is_named(
    name: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv("TEXTNB_CORPORA", raising=False)
    else:
        monkeypatch.setenv("TEXTNB_CORPORA", value)
    assert not corpora.available(name)
    with pytest.raises(FileNotFoundError, match=f"'{name}'.* TEXTNB_CORPORA is not set; "):
        corpora.load(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_stored_copy_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEXTNB_CORPORA", str(tmp_path))
    assert not corpora.available(name)
    with pytest.raises(FileNotFoundError) as caught:
        corpora.load(name)
    message = str(caught.value)
    assert corpora.CARDS[name].stored in message
    assert str(tmp_path) in message
    assert "TEXTNB_CORPORA" in message


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_published_form_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        corpora.load(name, path=tmp_path / "nowhere")


@pytest.mark.parametrize("call", [corpora.load, corpora.available])
def test_an_unknown_name_is_answered_with_the_known_ones(call: object) -> None:
    assert callable(call)
    with pytest.raises(ParameterError, match="'newsgroup' - did you mean 'newsgroups'"):
        call("newsgroup")
