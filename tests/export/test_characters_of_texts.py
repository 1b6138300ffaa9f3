"""N-grams of characters in programs: each target's real engine against the model."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.export.test_targets import checked, exported
from textnb import BernoulliNB, MultinomialNB, TextClassifier, Tokenizer, export_model
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


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=NAMES)
def test_a_reader_of_the_bundle_makes_the_same_tokens(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    # `_read` does what the format's page says, and nothing else.
    export_model(trained(tokenizer), tmp_path / "out", "python")
    described = json.loads((tmp_path / "out" / "characters.json").read_text("utf-8"))
    golden = pl.read_parquet(tmp_path / "out" / "golden.parquet")
    for text, tokens in golden.select("text", "tokens").iter_rows():
        assert sorted(_read(described, text or "")) == sorted(tokens)


def _read(described: dict[str, Any], text: str) -> list[str]:
    member = {chr(code) for first, last in described["members"]
              for code in range(first, last + 1)}.__contains__
    for old, new in described["replacements"]:
        text = text.replace(old, new)
    lower = described["lowercase"]
    if lower is not None:
        cased, ignorable = ({chr(code) for first, last in lower[name]
                             for code in range(first, last + 1)} for name in ("cased", "ignorable"))

        def sigma(at: int) -> str:
            sides = [[c for c in side if c not in ignorable][:1]
                     for side in (text[:at][::-1], text[at + 1:])]
            before, after = (bool(side) and side[0] in cased for side in sides)
            return "ς" if before and not after else "σ"

        text = "".join(sigma(at) if c == "Σ" else lower["mapping"].get(c, c)
                       for at, c in enumerate(text))
    least, most = described["ngram_range"]
    runs: list[str] = []
    for place, character in enumerate(text):
        if not place or member(character) != member(text[place - 1]):
            runs.append("")
        runs[-1] += character
    if described["analyzer"] == "char":
        pieces = ["".join(" " if len(run) > 1 and not member(run[0]) else run for run in runs)]
    else:
        pieces = [f" {run} " for run in runs if member(run[0])]
    short = [piece for piece in pieces
             if described["analyzer"] == "char_wb" and len(piece) < least]
    return short + [piece[at:at + n] for piece in pieces for n in range(least, most + 1)
                    for at in range(len(piece) - n + 1)]


@pytest.mark.parametrize("to", KNOWING)
def test_chinese_reviews(to: str, corpus: Any, tmp_path: Path) -> None:
    rows = corpus("zh_hotel").collect()
    train, test = (rows.filter(pl.int_range(pl.len()) % 5 != 0),
                   rows.filter(pl.int_range(pl.len()) % 5 == 0))
    model = TextClassifier(MultinomialNB(), tokenizer=TOKENIZERS[0], min_df=3).fit(train)
    found = checked(exported(model, tmp_path / "out", to), test)
    assert (found.rows, found.wrong_scores, found.wrong_labels) == (test.height, [], [])
