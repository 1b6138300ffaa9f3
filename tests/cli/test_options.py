"""Options: each is converted to its type, and those of train become settings of the model."""

from dataclasses import MISSING, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, assert_same_file
from textnb import MultinomialNB, TableClassifier, TextClassifier, Tokenizer
from textnb.cli import main
from textnb.cli.main import VERBS, command_of
from textnb.cli.options import TypedOptions, name_of, verb
from textnb.models.known import all_models, table_models
from textnb.runtime.settings import setting_fields, type_of
from textnb.workflow.options import TokenOptions

# Per type of an option: a word, and its value. Only values within the option's range are tried.
EXAMPLES = {
    "str": [("free", "free")], "Label": [("spam", "spam")], "Place": [("a/b", "a/b")],
    "int": [("7", 7)], "float": [("0.25", 0.25)], "Size": [("3M", "3M")],
    "list[str]": [(["a", "b"], ["a", "b"])], "Columns": [(["a", "b"], ["a", "b"]), ("a", "a")],
    "Names": [("x,y", ("x", "y"))], "Pair": [("1,2", (1, 2))], "Costs": [("10,1", (10.0, 1.0))],
    "Grid": [("1,0.1", (1.0, 0.1)), ("auto", "auto")], "CountOrShare": [("2", 2), ("0.3", 0.3)],
    "NumberOrAuto": [("auto", "auto"), ("0.25", 0.25)],
    "Numbers": [("0.25", 0.25), ("0,1", [0.0, 1.0])], "LowerCase": [("tr", "tr")],
    "Prefixes": [("true", True)], "Kinds": [("symbols,emoji", ("symbols", "emoji"))],
    "Words": [("stop.txt", ("at", "you", "日本"))], "Weights": [("balanced", "balanced")],
    "ClassPatterns": [(["a=x*,y", "b=z"], ("a=x*,y", "b=z"))],
}


@pytest.fixture
def stop_words(folder):
    (folder / "stop.txt").write_text("at\n\n  you \n日本\n", "utf-8")


def options_of(*groups):
    """The declared options of some groups."""
    return [(field, facts) for group in groups for field, facts in setting_fields(group)
            if facts.is_option and not facts.is_argument]


def examples(field, facts):
    """The words for an option, each with the value that they are converted to."""
    kind = type_of(field).removesuffix(" | None")
    if kind == "Storage":
        return [(["--read", f"{field.name}.aws_region=x"], {"aws_region": "x"})]
    if kind == "bool" and not facts.key_of:
        names = facts.names or [name_of(field, facts)]
        return [([spelling], not off) for name in names
                for off, spelling in enumerate(name.split("/"))]
    if kind == "bool":
        values = [(str(not field.default).lower(), not field.default)]
    elif facts.choices:
        values = [(choice, choice) for choice in facts.choices if choice != field.default]
    else:
        values = [(typed, value) for typed, value in EXAMPLES[kind] if value != field.default
                  and (facts.range is None or facts.range.holds(value))]
    return [(words, value) for typed, value in values for words in spellings(field, facts, typed)]


def spellings(field, facts, typed):
    """The ways to give an option a value, or several values in turn."""
    if facts.key_of:
        return [[f"--{facts.key_of}", f"{field.name}={typed}"]]
    values = [typed] if isinstance(typed, str) else typed
    return [[word for value in values for word in (name, value)]
            for name in facts.names or [name_of(field, facts)]]


def required(name):
    """The required arguments and options of a verb, each with a value."""
    return [word for group in command_of(name).groups for field, facts in setting_fields(group)
            if field.default is MISSING
            for word in (["x"] if facts.is_argument else [name_of(field, facts), "x"])]


@pytest.fixture
def values_of_call(run, monkeypatch):
    """Run a verb with some options, and return the values that its function is called with."""

    def call(name, *words):
        values = {}

        def probe(options, *given):
            values.update({name: getattr(group, name) for group in given
                           for name in options if hasattr(group, name)})

        groups = command_of(name).groups
        probe.__name__, probe.__annotations__ = name, {
            "options": TypedOptions, **dict(enumerate(groups)), "return": None}
        with monkeypatch.context() as patch:
            patch.setattr(main, "command_of", lambda _: verb(probe))
            run(name, *required(name), *words).checked()
        return values

    return call


@pytest.mark.parametrize("name", VERBS)
def test_every_option_of_a_verb_is_read_as_its_type_says(name, values_of_call, stop_words):
    for field, facts in options_of(*command_of(name).groups):
        for words, value in examples(field, facts):
            # repr also compares the types of the values and of their items.
            assert repr(values_of_call(name, *words)[field.name]) == repr(value), words


@pytest.mark.parametrize("name", VERBS)
def test_an_invalid_value_of_an_option_is_a_usage_error(name, run):
    for field, facts in options_of(*command_of(name).groups):
        kind = type_of(field).removesuffix(" | None")
        wrong = ["none such"] if facts.choices else []
        wrong += ["few"] if kind in ("int", "float") else []
        wrong += [] if facts.minimum is None else [str(facts.minimum - 1)]
        for value in wrong:
            option, *_ = words = spellings(field, facts, value)[-1]
            ran = run(name, *required(name), *words).checked(3 if name == "filter" else 2)
            assert ran.out == ""
            assert f"{option} {field.name}" if facts.key_of else option in ran.err
            assert value in ran.err


MODELS = all_models()
# Each is typed as KEY=VALUE after --set, except --l.
SETTINGS = [(kind, field, replace(facts, key_of="" if field.name == "l" else "set"))
            for kind, model in MODELS.items() for field, facts in options_of(model)]


@pytest.fixture
def tables(folder):
    """Texts for models of texts, and two features for models of feature tables."""
    MAIL.with_columns(subject=pl.lit("about lunch")).write_parquet("texts.parquet")
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(24, 2)) + np.repeat([[0.0, 0.0], [4.0, 2.0]], 12, axis=0)
    pl.DataFrame(rows, schema=["x", "y"], orient="row").with_columns(
        label=pl.Series(["a"] * 12 + ["b"] * 12)).write_parquet("features.parquet")


def train(run, kind, *words):
    """A model of a kind that was trained with some words."""
    rows = "features.parquet" if kind in table_models() else "texts.parquet"
    run("train", rows, "-o", "m.textnb", "--model", kind, *words).checked()
    return textnb.load("m.textnb")


@pytest.mark.parametrize("kind", MODELS)
def test_without_settings_a_model_is_that_of_the_library(kind, run, tables):
    train(run, kind)
    if kind in table_models():
        model = TableClassifier(MODELS[kind]()).fit("features.parquet")
    else:
        model = TextClassifier(MODELS[kind]()).fit("texts.parquet")
    assert_same_file("m.textnb", model)


@pytest.mark.sweep(14)
@pytest.mark.parametrize(("kind", "field", "facts"), SETTINGS, ids=[
    f"{kind}-{field.name}" for kind, field, _ in SETTINGS])
def test_set_changes_a_setting_of_the_model(kind, field, facts, run, tables):
    for words, value in examples(field, facts):
        assert repr(getattr(train(run, kind, *words).estimator, field.name)) == repr(value)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("kind", MODELS)
def test_a_setting_that_a_model_does_not_have_is_refused(kind, run, tables):
    own = {field.name for field, _ in options_of(MODELS[kind])}
    for _, field, facts in SETTINGS:
        if field.name not in own:
            words, _ = examples(field, facts)[0]
            ran = run("train", "texts.parquet", "-o", "m.textnb", "--model", kind, *words)
            assert f"error: {name_of(field, facts)} belongs to --model " in ran.checked(2).err
    assert not Path("m.textnb").exists()


# Options whose type depends on the word, or which are not one setting of the model.
OF_TEXTS = [
    ([], {}), (["--text", "subject"], {"text": "subject"}),
    (["--text", "subject", "--text", "text"], {"text": ["subject", "text"]}),
    (["--label", "split"], {"label": "split"}), (["--l", "0"], {"estimator__l": 0.0}),
    (["--ngrams", "2,2"], {"tokenizer__ngram_range": (2, 2)}),
    (["--min-df", "2", "--set", "max_df=3"], {"min_df": 2, "max_df": 3}),
    (["--min-df", "0.3", "--set", "max_df=0.9"], {"min_df": 0.3, "max_df": 0.9}),
    (["--max-features", "4", "--binary"], {"max_features": 4, "binary": True}),
    (["--memory-limit", "3M"], {"memory_limit": 3 << 20}),
    (["--set", "sklearn=true"], {"tokenizer__pattern": Tokenizer.sklearn().pattern,
                                 "tokenizer__unspaced": "whole"}),
    *([words, {f"tokenizer__{field.name}": tuple(sorted(value)) if field.name == "keep" else value}]
      for field, facts in options_of(TokenOptions) if field.name != "sklearn"
      for words, value in examples(field, facts)),
]


@pytest.mark.parametrize(("words", "settings"), OF_TEXTS, ids=lambda value: (
    "_".join(value) if isinstance(value, list) else ""))
def test_options_of_texts_reach_the_model(words, settings, run, tables, stop_words):
    parameters = train(run, "multinomial", *words).get_params()
    # A tokenizer that has its defaults is not given.
    tokenizer = parameters["tokenizer"] and Tokenizer()
    expected = {**TextClassifier(MultinomialNB(), tokenizer=tokenizer).get_params(), **settings,
                "estimator": parameters["estimator"], "tokenizer": parameters["tokenizer"]}
    assert parameters == expected
    assert {name: type(value) for name, value in parameters.items()} == {
        name: type(value) for name, value in expected.items()}


@pytest.mark.parametrize(("where", "documents"), [
    ("split = 'train'", 4), ("id > 3 AND label = 'ham' OR id = 9", 3), ("text LIKE '%lunch%'", 4)])
def test_a_condition_chooses_rows(where, documents, run, tables):
    model = train(run, "multinomial", "--where", where)
    assert model.estimator_.class_count_.sum() == documents
