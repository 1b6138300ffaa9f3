"""Every setting is declared once: the command line, jobs and Python agree with the declaration."""

import re
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from pathlib import Path

import click
import pytest

import textnb
from tests.frames.writing import FORMATS
from textnb import ParameterError, TextClassifier, Tokenizer
from textnb.cli.inputs import KINDS_OF_INPUT, OUTPUT_FORMATS
from textnb.cli.main import VERBS, command_of
from textnb.cli.options import name_of
from textnb.cli.train import ModelOptions
from textnb.cli.words import is_flag
from textnb.export.targets.known import TARGETS
from textnb.frames import sinks
from textnb.frames.formats import ENDINGS, ROW_FORMATS
from textnb.frames.scan import scan
from textnb.learning.settings import ColumnSettings, LimitSettings, TokenSettings
from textnb.models.known import all_models, registered_models, table_models, text_models
from textnb.runtime.settings import setting_fields, type_of
from textnb.workflow.job import read_job
from textnb.workflow.options import INPUT_FORMATS, LearnOptions, TokenOptions
from textnb.workflow.options import TARGETS as OFFERED_TARGETS

PAGES = Path(__file__).parents[1] / "docs" / "how-to"
# Of a classifier, what is an object or comes from Python alone.
OBJECTS = {"estimator", "tokenizer", "vocabulary"}


def declared_defaults(*groups):
    """By name, with the types that tell 1 from 1.0 and from True."""
    return {field.name: (type(field.default), field.default)
            for group in groups for field, _ in setting_fields(group)}


def fit(**settings):
    return TextClassifier().set_params(**settings).fit(["a word"], ["x"])


def test_the_classifier_has_what_the_command_line_has():
    declared_names = {field.name for group in (ColumnSettings, LimitSettings)
                      for field in fields(group)}
    assert declared_names == {*TextClassifier().get_params(deep=False)} - OBJECTS


def test_the_kinds_are_those_of_the_registry():
    built_in = [model for model in registered_models() if model.__module__.startswith("textnb.")]
    assert {model.__name__ for model in built_in} <= set(textnb.__all__)
    assert list(all_models()) == [*text_models(), *table_models()]
    assert list(all_models()) == [model.kind for model in built_in if model.kind]
    assert all(facts.help for model in built_in for _, facts in setting_fields(model))


def test_the_tokenizer_agrees_and_a_field_that_is_not_declared_is_seen():
    @dataclass(frozen=True)
    class Longer(Tokenizer):
        least_length: int = 2

    defaults = {name: (type(each.default), each.default)
                for name, each in signature(Longer).parameters.items()
                if each.kind is not Parameter.VAR_KEYWORD}
    assert defaults == {**declared_defaults(TokenSettings), "least_length": (int, 2)}


def test_the_job_agrees():
    tokens = declared_defaults(TokenOptions)
    assert tokens.pop("sklearn") == (bool, False)
    assert tokens == declared_defaults(TokenSettings)
    # A model's own settings stand beside these.
    keys = [*declared_defaults(ColumnSettings, LimitSettings, LearnOptions), "kind", "tokenizer"]
    assert len(keys) == len(set(keys))
    for model in all_models().values():
        assert not set(keys) & declared_defaults(model).keys()


def test_the_command_line_agrees():
    options = {param.name: param for param in command_of("train").params}
    models = list(all_models().values())
    for group in (ColumnSettings, TokenSettings, LimitSettings, *models):
        for field, facts in setting_fields(group):
            if not facts.is_option:
                continue
            if facts.key_of or (group in models and field.name != "l"):
                assert field.name in (options[facts.key_of or "set"].help or "")
                continue
            option = options[field.name]
            assert isinstance(option, click.Option)
            assert name_of(field, facts) in option.opts
            assert option.is_flag is is_flag(type_of(field))
            # What was not typed has the default of the declaration.
            assert option.default is None
    for typed in (ColumnSettings(), TokenOptions(), LimitSettings(), ModelOptions()):
        for field, facts in setting_fields(type(typed)):
            assert facts.is_argument or getattr(typed, field.name) == field.default


@pytest.mark.parametrize(("name", "value"), [
    ("min_df", 0), ("max_df", -1), ("max_features", 0), ("memory_limit", 5),
    ("ngram_range", [2, 1]), ("analyzer", "words"), ("pattern", "("), ("normalize", "nfc"),
    ("strip_accents", "all")])
def test_python_and_jobs_refuse_the_same_values(name, value, tmp_path):
    of_tokens = name in declared_defaults(TokenSettings)
    with pytest.raises(ParameterError):
        fit(**{"tokenizer__" * of_tokens + name: value})
    path = tmp_path / "job.toml"
    path.write_text('output = "out"\ninput.train = "x.csv"\n')
    key = f"model.tokenizer.{name}" if of_tokens else f"model.{name}"
    with pytest.raises(ParameterError, match=name):
        read_job(path, [f"{key}={value!r}"])


def test_what_is_offered_is_what_there_is(tmp_path):
    own = {name for name, target in TARGETS.items()
           if type(target).__module__.startswith("textnb.")}
    assert set(OFFERED_TARGETS) == own
    assert OUTPUT_FORMATS == sinks.FORMATS
    (tmp_path / "x").touch()
    with pytest.raises(ParameterError) as refused:
        scan(tmp_path / "x", format="none such")
    known = set(re.findall(r"\b[a-z]+\b", str(refused.value).partition("choose one of")[2]))
    assert known == set(INPUT_FORMATS), "what --help offers, and scan reads"
    page = (PAGES / "exports.md").read_text("utf-8")
    table = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert not [name for name in TARGETS if not any(f"`{name}`" in cell for cell in table)]


def test_a_format_of_rows_is_said_and_tested_wherever_formats_are():
    page = (PAGES / "command_line.md").read_text("utf-8").partition("## What can be read")[2]
    places = {
        "the docstring of textnb/frames/scan.py": scan.__doc__,
        "KINDS_OF_INPUT of textnb/cli/inputs.py": KINDS_OF_INPUT,
        "the table of docs/how-to/command_line.md": page.partition("\n\nErrors")[0],
        "FORMATS of tests/frames/writing.py": "".join(f".{ending}" for ending in FORMATS)}
    for format in ROW_FORMATS:
        names = [rf"\b{format}", *(re.escape(name) for name, of in ENDINGS.items() if of == format)]
        missing = [place for place, text in places.items()
                   if not re.search(rf"({'|'.join(names)})\b", text, re.I)]
        assert not missing, f"{format} is not in {', nor in '.join(missing)}"


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_the_same_in_both_lists(verb):
    command = command_of(verb)
    assert (command.help or "").splitlines()[0] == VERBS[verb][1]
    # Every option has a help text, and stands in a group.
    assert all(param.help for param in command.params if isinstance(param, click.Option))
