"""Every tokenizer in every target that splits texts: the model's answers, or a refusal by name."""

import ast
import unicodedata
from dataclasses import fields
from functools import cache

import polars as pl
import pytest

import textnb
from tests.docs.test_pages import ROOT
from tests.export import reader, tables
from tests.export.run import agree, checked
from tests.export.tables import LONG, PLANS, SPLITTING, TEXTS, frame_of, frame_of_plan, random_texts
from textnb import BernoulliNB, ExportError, MultinomialNB, TextClassifier, Tokenizer, export_model
from textnb.export.bundle import bundle_of
from textnb.export.characters import decomposition
from textnb.export.golden import _FIXED_TEXTS, _SYMBOL_TEXTS
from textnb.export.targets.known import TARGETS

# What a target says of the plans that it refuses.
NO_COMPOSITION = dict.fromkeys(("nfc", "nfkc", "char_wb nfc tr"), "composes characters")
NO_SYMBOL_TEXTS = dict.fromkeys(("kept", "kept symbols", "prefixes"), "keep=")
REFUSALS: dict[str, dict[str, str]] = {
    "sql-clickhouse": NO_COMPOSITION, "sql-duckdb": NO_COMPOSITION, "sql-postgres": NO_COMPOSITION,
    "sql-sqlite": {**NO_COMPOSITION, **NO_SYMBOL_TEXTS}}
FORMS = {"classes": MultinomialNB(l=0.1), "presence": BernoulliNB(l=0.1),
         "feature map": textnb.TfidfComplementNB(), "lists of labels": MultinomialNB(l=0.1)}
# Plans that differ from others in a number or a class of characters alone.
VARIANTS = {"triples", "az", "whole", "as is", "pairs as is", "least 1", "ascii", "capitals",
            "kept, other stretches", "letters", "marks", "kept alone", "accents marks",
            "accents stop", "nfkd", "char 3", "char tr", "char accents"}
every_plan = pytest.mark.parametrize("plan", [
    pytest.param(plan, marks=pytest.mark.slow if plan in VARIANTS else ()) for plan in PLANS])
TEXTS_TO_SPLIT = [*_FIXED_TEXTS, *_SYMBOL_TEXTS, *TEXTS, *LONG[:5], "".join(filter(None, TEXTS)),
                  "1." * 300 + "a" * 300 + "++"]


@cache
def trained(plan, form='classes'):
    return tables.learned_by_plan(plan, FORMS[form], lists=form == "lists of labels")


def test_every_setting_of_texts_has_a_plan():
    default = Tokenizer().to_dict()
    tried = {name for tokenizer in PLANS.values() for name, value in tokenizer.to_dict().items()
             if value != default[name]}
    missing = {field.name for field in fields(Tokenizer)} - {"token_columns", "segmenter"} - tried
    assert not missing, f"add plans with {missing} to PLANS in tests/export/tables.py"


@pytest.mark.sweep(12, 100)
@every_plan
@pytest.mark.parametrize("to", SPLITTING)
def test_texts_get_the_models_answers_or_the_plan_is_refused(to, plan, tmp_path):
    bundle = bundle_of(trained(plan), "text")
    refusal = REFUSALS.get(to, {}).get(plan)
    if refusal is not None:
        with pytest.raises(ExportError, match=refusal):
            TARGETS[to].write(bundle, tmp_path / "model")
        assert not list(tmp_path.iterdir())
        return
    agree(to, bundle, frame_of_plan(plan, [*TEXTS_TO_SPLIT, *random_texts(300)]), tmp_path)


@pytest.mark.sweep(8)
@every_plan
def test_scripts_of_a_plan_are_written_without_an_engine(plan, tmp_path):
    for name in tables.SQL:
        if plan not in REFUSALS[name]:
            TARGETS[name].write(bundle_of(trained(plan), "text"), tmp_path / name)
            assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.parametrize("plan", [
    "char 1-2", "char 3", "char tr", "char_wb", "char_wb as is", "default", "tr", "kept",
    "stop characters", "other stretches", "kept alone", "kept, other stretches"])
@pytest.mark.parametrize("to", ["python", "javascript", "c"])
def test_ten_thousand_random_texts(to, plan, tmp_path):
    agree(to, bundle_of(trained(plan), "text"), frame_of_plan(plan, random_texts(10_000)), tmp_path)


@cache
def of_every_character(lowercase):
    """A bundle that learned all of Unicode between letters, around sigmas, and apart; and rows."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = ["".join(f"a{c}Σ{c}b {c} " for c in characters[at:at + 64])
             for at in range(0, len(characters), 64)]
    tokenizer = Tokenizer(lowercase=lowercase, pattern=r"[\w\p{M}]{1,}")
    model = TextClassifier(tokenizer=tokenizer).fit(frame_of(texts, ["a", "b"]))
    return bundle_of(model, "text"), frame_of(texts)


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, "tr"])
@pytest.mark.parametrize("to", ["python", "javascript", "c"])
def test_every_character_is_split_and_lowered(to, lowercase, tmp_path):
    agree(to, *of_every_character(lowercase), tmp_path)


@pytest.mark.sweep(2, 36)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("plan", ["accents", "char 1-2", "one prefix"])
@pytest.mark.parametrize("to", SPLITTING)
def test_golden_rows_of_other_forms(to, plan, form, tmp_path):
    path = export_model(trained(plan, form), tmp_path / "out", to, reads="text").path
    assert checked(path).passed
    assert checked(path, frame_of_plan(plan, random_texts(100))).passed


@pytest.mark.parametrize("tokenizer", tables.NOT_PORTABLE)
@pytest.mark.parametrize("to", [to for to in SPLITTING if to != "polars"])
def test_a_pattern_of_more_than_one_class_is_refused(to, tokenizer, tmp_path):
    model = TextClassifier(tokenizer=tokenizer).fit(["ab-bc film", "ax-by film"], ["x", "y"])
    with pytest.raises(ExportError, match=f"{to}.*not a run of one class.*--input terms"):
        export_model(model, tmp_path / "out", to, reads="text")
    assert not list(tmp_path.iterdir())


@pytest.mark.sweep(3)
@pytest.mark.parametrize("to", [to for to in SPLITTING if to != "polars"])
def test_of_a_tokenizer_that_it_cannot_run_a_target_reads_tokens_and_says_so(to, tmp_path):
    tokens = pl.DataFrame({"text": [["a", "b"], ["c", "d"]] * 15, "label": ["x", "y"] * 15})
    other = TextClassifier(tokenizer=tables.NOT_PORTABLE[0])
    for name, model in (("lists", TextClassifier().fit(tokens)),
                        ("pattern", other.fit(["ab-bc film", "ax-by film"], ["x", "y"]))):
        result = export_model(model, tmp_path / name, to)
        assert result.reads == "terms"
        assert result.why_tokens.startswith(f"{to}: ")
        assert checked(result.path).passed


@pytest.mark.sweep(6)
@every_plan
def test_a_reader_of_the_page_makes_the_models_terms(plan, tmp_path):
    # Of a target that reads tokens: its receiver may split texts by the tables all the same.
    folder = export_model(trained(plan), tmp_path / "out", "json").path
    described = reader.read(folder / "characters.json")
    golden = pl.read_parquet(folder / "golden.parquet")
    names = [name for name in golden.columns if name.startswith("text")]
    rows = golden.filter(pl.int_range(pl.len()) != len(_FIXED_TEXTS) - 1)
    assert described.get("columns", ["text"]) == tables.COLUMNS.get(plan, ["text"])
    for *texts, tokens in rows.select(*names, "tokens").iter_rows():
        assert sorted(reader.terms(described, texts)) == sorted(tokens)


def _worked_examples():
    page = (ROOT / "docs" / "reference" / "format.md").read_text("utf-8")
    table = page.partition("| settings | text | terms |")[2].partition("\n\n")[0]
    return [(settings, text, terms) for settings, text, terms in (
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in table.splitlines()[2:])]


@pytest.mark.parametrize(("settings", "text", "terms"), _worked_examples())
def test_the_examples_of_the_page(settings, text, terms, tmp_path):
    tokenizer = eval(f"Tokenizer({settings})", {"Tokenizer": Tokenizer})
    text, expected = ast.literal_eval(text), ast.literal_eval(terms)
    frame = pl.DataFrame({"text": [text, text], "label": ["a", "b"]})
    model = TextClassifier(tokenizer=tokenizer).fit(frame)
    tokens = frame.select(tokenizer.expr("text")).to_series().to_list()[0]
    described = reader.read(export_model(model, tmp_path / "out", "json").path / "characters.json")
    assert sorted(tokens) == sorted(expected) == sorted(reader.terms(described, [text]))


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_tables_say_what_polars_does(form):
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
