"""N-grams of characters in programs: each target's real engine against the model."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.export.test_targets import checked, exported
from textnb import BernoulliNB, MultinomialNB, TextClassifier, Tokenizer
from textnb.export.golden import _KEPT, _WRITTEN

KNOWING = ["python", "javascript", "c"]
TOKENIZERS = [
    Tokenizer(analyzer="char", ngram_range=(1, 2)), Tokenizer(analyzer="char", ngram_range=(3, 3)),
    Tokenizer(analyzer="char", ngram_range=(1, 4), lowercase="tr"),
    Tokenizer(analyzer="char_wb", ngram_range=(2, 4)),
    Tokenizer(analyzer="char_wb", ngram_range=(5, 6), lowercase=False)]
NAMES = ["char 1-2", "char 3", "char 1-4 tr", "char_wb 2-4", "char_wb 5-6"]
# White space of Unicode and of str.split, capitals that change, marks, other planes, no characters.
PIECES = [
    *" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u2028\u2029\u202f\u205f\u3000",
    "\u200b", "\ufeff", "\u180e", "\0", "a", "B", "ß", "İ", "I", "ı", "Σ", "ΑΣ", "ς", "\u0301",
    "\xad", "'", "é", "e\u0301", "中", "文", "好", "あ", "ก", "😀", "👩\u200d👧", "𐐀", "Ꙁ", "Ა",
    "\ue000", "\U0010ffff", "word", "Word", "  ", "\r\n", "\\", '"', "`", "${x}", "</script>"]


def hostile(rows: int, seed: int = 0) -> list[str | None]:
    draw = random.Random(seed)
    return [None, "", *("".join(draw.choices(PIECES, k=draw.randrange(1, 24)))
                        for _ in range(rows - 2))]


def trained(tokenizer: Tokenizer, estimator: Any = None) -> TextClassifier:
    texts = pl.Series([*_WRITTEN[:-1], *_KEPT[:-1], *hostile(300, seed=1)], dtype=pl.String)
    frame = pl.DataFrame({"text": texts}).with_columns(
        label=pl.Series([("a", "b", "c")[n % 3] for n in range(len(texts))]))
    return TextClassifier(estimator or MultinomialNB(l=0.1), tokenizer=tokenizer).fit(frame)


@pytest.mark.sweep(5, 15)
@pytest.mark.parametrize("rows", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=NAMES)
@pytest.mark.parametrize("to", KNOWING)
def test_hostile_texts(to: str, tokenizer: Tokenizer, rows: int, tmp_path: Path) -> None:
    path = exported(trained(tokenizer), tmp_path / "out", to)
    assert checked(path).passed
    found = checked(path, pl.DataFrame({"text": hostile(rows)}, schema={"text": pl.String}))
    assert found.reads == "text"
    assert (found.rows, found.wrong_scores, found.wrong_labels) == (rows, [], [])


@pytest.mark.parametrize("to", KNOWING)
def test_presence_of_characters(to: str, tmp_path: Path) -> None:
    model = trained(TOKENIZERS[0], BernoulliNB(l=0.1))
    assert checked(exported(model, tmp_path / "out", to)).passed


@pytest.mark.parametrize("to", KNOWING)
def test_chinese_reviews(to: str, corpus: Any, tmp_path: Path) -> None:
    rows = corpus("zh_hotel").collect()
    train, test = (rows.filter(pl.int_range(pl.len()) % 5 != 0),
                   rows.filter(pl.int_range(pl.len()) % 5 == 0))
    model = TextClassifier(MultinomialNB(), tokenizer=TOKENIZERS[0], min_df=3).fit(train)
    found = checked(exported(model, tmp_path / "out", to), test)
    assert (found.rows, found.wrong_scores, found.wrong_labels) == (test.height, [], [])
