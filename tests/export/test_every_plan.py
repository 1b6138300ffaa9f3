"""Every tokenizer in every target that splits texts: the model's answers, or a refusal by name."""

from __future__ import annotations

import ast
import random
import unicodedata
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from tests.docs.test_pages import ROOT
from tests.export import reader
from tests.export.test_targets import checked
from textnb import (
    BernoulliNB,
    ExportError,
    MultinomialNB,
    TextClassifier,
    TfidfComplementNB,
    Tokenizer,
    export_model,
)
from textnb.export.characters import Form, decomposition
from textnb.export.golden import _KEPT, _WRITTEN
from textnb.export.targets.known import TARGETS

# Marks in and out of order, some of them of Unicode 15 and later.
MARKS = [*map(chr, (0x300, 0x301, 0x308, 0x316, 0x323, 0x327, 0x328, 0x334, 0x345, 0x5B0, 0x64B,
                    0x93C, 0x94D, 0xE38, 0x302A, 0x3099, 0x1D165, 0x897, 0x10EFD, 0x1E4EC,
                    0x1E4EE, 0x1E4EF))]
PIECES = [
    *MARKS, *"aaBeosßİIıΣς'é_01:\\ \t\n\x1c\x85\u3000\u200b\ufeff\0", "ΑΣ", "e\u0301",
    "中", "文", "あ", "ก", "か\u3099", "ﾊﾟ", "각", "가", "힣", "\u1100\u1161", "\u11a8",
    "ﬁ", "\ufdfa", "½", "㎒", "𝐁", "𝚺",
    "Ⅷ", "①", "ǭ", "ṩ", "\u0344", "\u0958", "\U0001d160", "豈", "\u212b", "كِتـاب", "I\u0307", "😀",
    "\U0010ffff", "word", "The", "the", "C++", "$5.50", "10%", "U.S.", "!", "  "]
PLANS = {
    "pairs": Tokenizer(ngram_range=(1, 2)),
    "tr": Tokenizer(lowercase="tr", ngram_range=(1, 2)),
    "stop words": Tokenizer(stop_words=("The", "word", "é"), ngram_range=(1, 2)),
    "kept": Tokenizer(keep=("emoji", "symbols", "abbreviations", "punctuation")),
    "kept alone": Tokenizer(keep=("emoji", "punctuation"), ngram_range=(1, 2), lowercase="tr"),
    "accents": Tokenizer(strip_accents="unicode", ngram_range=(1, 2)),
    "accents ascii tr": Tokenizer(strip_accents="ascii", lowercase="tr"),
    "accents marks": Tokenizer(strip_accents="marks", lowercase=False, pattern=r"\w+"),
    "accents stop": Tokenizer(strip_accents="unicode", stop_words=("Thé",), pattern=r"\w+"),
    "nfc": Tokenizer(normalize="NFC", pattern=r"\w+"),
    "nfd": Tokenizer(normalize="NFD", pattern=r"\w+"),
    "nfkc": Tokenizer(normalize="NFKC", strip_accents="unicode", keep=("symbols",)),
    "nfkd": Tokenizer(normalize="NFKD", lowercase=False, ngram_range=(1, 2)),
    "char 1-2": Tokenizer(analyzer="char", ngram_range=(1, 2)),
    "char accents": Tokenizer(analyzer="char", ngram_range=(2, 3), strip_accents="marks"),
    "char_wb": Tokenizer(analyzer="char_wb", ngram_range=(2, 4)),
    "char_wb nfc tr": Tokenizer(analyzer="char_wb", ngram_range=(5, 6), normalize="NFC",
                                lowercase="tr"),
    "char_wb ascii": Tokenizer(analyzer="char_wb", ngram_range=(3, 6), strip_accents="ascii"),
    "columns": Tokenizer(ngram_range=(1, 2)),
    "prefixes": Tokenizer(ngram_range=(1, 3), field_prefix=True, keep=("symbols", "punctuation")),
    "one prefix": Tokenizer(field_prefix=("body",), stop_words=("the", "word"), lowercase="tr",
                            strip_accents="unicode"),
    "one column's prefix": Tokenizer(field_prefix=True, ngram_range=(1, 2)),
    "char prefixes": Tokenizer(analyzer="char", ngram_range=(1, 2), field_prefix=("body",)),
    "char_wb prefixes": Tokenizer(analyzer="char_wb", ngram_range=(2, 4), field_prefix=True),
}
COLUMNS = {plan: ["title"] if plan == "one column's prefix" else ["title", "body", "the_'third\""]
           for plan in PLANS if "column" in plan or "prefix" in plan}
EXACT = sorted(name for name, target in TARGETS.items()
               if "text" in target.reads and name != "onnx")
# What a target says of the plans that it refuses.
NO_COMPOSITION = dict.fromkeys(("nfc", "nfkc", "char_wb nfc tr"), "composes characters")
NO_KEPT = dict.fromkeys(("kept", "prefixes"), "keep=")
REFUSALS: dict[str, dict[str, str]] = {
    "python": {}, "javascript": {}, "polars": {}, "c": {}, "sql-clickhouse": NO_COMPOSITION,
    "sql-duckdb": NO_COMPOSITION, "sql-postgres": NO_COMPOSITION,
    "sql-sqlite": {**NO_COMPOSITION, **NO_KEPT}}


def hostile(rows: int, seed: int = 0) -> list[str | None]:
    draw = random.Random(seed)
    return [None, "", *("".join(draw.choices(PIECES, k=draw.randrange(1, 20)))
                        for _ in range(rows - 2))]


def rows_of(plan: str, texts: list[str | None]) -> pl.DataFrame:
    """A row per text; with several columns, each has the texts of other rows."""
    names = COLUMNS.get(plan, ["text"])
    return pl.DataFrame({name: texts[shift:] + texts[:shift] for shift, name in enumerate(names)},
                        schema=dict.fromkeys(names, pl.String))


FORMS = {"presence": BernoulliNB(l=0.1), "feature map": TfidfComplementNB(),
         "lists of labels": MultinomialNB(l=0.1)}


@cache
def trained(plan: str, form: str = "") -> TextClassifier:
    # Without the character NUL, as no term with it can be in PostgreSQL.
    texts = [text and text.replace("\0", "")
             for text in (*_WRITTEN[:-1], *_KEPT[:-1], *hostile(300, seed=1))]
    rows = rows_of(plan, texts + texts[::-1])
    labels = pl.Series([("a", "b", "c")[n % 3] for n in range(len(rows))])
    if form == "lists of labels":
        lists = [(["a", "b"], ["b"], [])[n % 3] for n in range(len(rows))]
        labels = pl.Series(lists, dtype=pl.List(pl.String))
    names = rows.columns if rows.width > 1 else rows.columns[0]
    return TextClassifier(FORMS.get(form, MultinomialNB(l=0.1)), tokenizer=PLANS[plan],
                          text=names).fit(rows.with_columns(label=labels))


@pytest.mark.sweep(10, 72)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("to", EXACT)
def test_hostile_texts_get_the_models_answers(to: str, plan: str, tmp_path: Path) -> None:
    model = trained(plan)
    refusal = REFUSALS[to].get(plan)
    if refusal is not None:
        with pytest.raises(ExportError, match=refusal):
            export_model(model, tmp_path / "out", to, reads="text")
        return
    path = export_model(model, tmp_path / "out", to, reads="text").path
    # With the texts of golden rows: an engine that starts anew, or compiles, takes seconds.
    texts = [*_WRITTEN, *_KEPT, *hostile(300)]
    found = checked(path, rows_of(plan, texts))
    assert (found.rows, found.wrong_scores, found.wrong_labels) == (len(texts), [], [])


@pytest.mark.sweep(4, 27)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("plan", ["accents", "char 1-2", "one prefix"])
@pytest.mark.parametrize("to", EXACT)
def test_other_forms(to: str, plan: str, form: str, tmp_path: Path) -> None:
    if plan in REFUSALS[to]:
        plan = "pairs"
    path = export_model(trained(plan, form), tmp_path / "out", to, reads="text").path
    assert checked(path).passed
    assert checked(path, rows_of(plan, hostile(100))).passed


@pytest.mark.parametrize("plan", PLANS)
def test_a_reader_of_the_page_makes_the_models_terms(plan: str, tmp_path: Path) -> None:
    # Of a target that reads tokens: its receiver may split texts by the tables all the same.
    folder = export_model(trained(plan), tmp_path / "out", "json").path
    described = reader.read(folder / "characters.json")
    golden = pl.read_parquet(folder / "golden.parquet")
    names = [name for name in golden.columns if name.startswith("text")]
    rows = golden.filter(pl.int_range(pl.len()) != len(_WRITTEN) - 1)
    assert described.get("columns", ["text"]) == COLUMNS.get(plan, ["text"])
    for *texts, tokens in rows.select(*names, "tokens").iter_rows():
        assert sorted(reader.terms(described, texts)) == sorted(tokens)


def _worked_examples() -> list[tuple[str, str, str]]:
    page = (ROOT / "docs" / "reference" / "format.md").read_text("utf-8")
    table = page.partition("| settings | text | terms |")[2].partition("\n\n")[0]
    return [(settings, text, terms) for settings, text, terms in (
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in table.splitlines()[2:])]


@pytest.mark.parametrize(("settings", "text", "terms"), _worked_examples())
def test_the_examples_of_the_page(settings: str, text: str, terms: str, tmp_path: Path) -> None:
    tokenizer = eval(f"Tokenizer({settings})", {"Tokenizer": Tokenizer})
    text, expected = ast.literal_eval(text), ast.literal_eval(terms)
    frame = pl.DataFrame({"text": [text, text], "label": ["a", "b"]})
    model = TextClassifier(tokenizer=tokenizer).fit(frame)
    tokens = frame.select(tokenizer.expr("text")).to_series().to_list()[0]
    described = reader.read(
        export_model(model, tmp_path / "out", "json").path / "characters.json")
    assert sorted(tokens) == sorted(expected) == sorted(reader.terms(described, [text]))


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_tables_say_what_polars_does(form: Form) -> None:
    table = decomposition(form)
    assert ("\uac00" in table.mapping, "\u1100\u1161" in table.pairs) == (False, False)
    texts = pl.Series([*table.mapping, *table.pairs])
    expected = {**table.mapping, **table.pairs}
    apart = "NFKD" if "K" in form else "NFD"
    for text, whole, split in zip(texts, texts.str.normalize("NFC"), texts.str.normalize(apart),
                                  strict=True):
        assert expected[text] == (whole if len(text) == 2 else split)
    # A version of Unicode may add marks, and changes none.
    own = {chr(code): unicodedata.combining(chr(code)) for code in range(0x20000)
           if unicodedata.combining(chr(code)) and chr(code) not in table.mapping}
    assert own.items() <= table.classes.items()
