"""Every setting is declared once: the command line, jobs and Python agree with the declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import click
import pytest

import textnb
from textnb import ParameterError, TextClassifier, Tokenizer
from textnb.cli.inputs import OUTPUT_FORMATS
from textnb.cli.main import VERBS, command_of
from textnb.cli.options import Command, name_of
from textnb.cli.train import ModelOptions
from textnb.cli.words import is_flag
from textnb.export.targets.known import TARGETS
from textnb.frames import sinks
from textnb.frames.scan import scan
from textnb.learning.settings import (
    ColumnSettings,
    LimitSettings,
    TokenSettings,
)
from textnb.models.known import all_models, registered_models, table_models, text_models
from textnb.runtime.settings import declared, type_of
from textnb.workflow.job import read_job
from textnb.workflow.options import INPUT_FORMATS, LearnOptions, TokenOptions
from textnb.workflow.options import TARGETS as OFFERED_TARGETS

# Of a classifier, what is an object or comes from Python alone.
OBJECTS = {"estimator", "tokenizer", "vocabulary"}
# A value of each kind of setting that is not allowed, where types do not say it.
WRONG = {"min_df": 0, "max_df": -1, "max_features": 0, "memory_limit": 5, "ngram_range": (2, 1),
         "analyzer": "words", "pattern": "(", "normalize": "nfc", "strip_accents": "all"}


def defaults_of(function: Any) -> dict[str, Any]:
    return {name: each.default for name, each in signature(function).parameters.items()
            if each.kind is not Parameter.VAR_KEYWORD}


def declared_defaults(*groups: type) -> dict[str, Any]:
    return {field.name: field.default for group in groups for field, _ in declared(group)}


def disagreements(declaration: Mapping[str, Any], actual: Mapping[str, Any]) -> set[str]:
    """Names that one of the two lacks, or whose defaults differ in value or type."""
    return {name for name in declaration.keys() | actual.keys()
            if name not in declaration or name not in actual
            or declaration[name] != actual[name]
            or type(declaration[name]) is not type(actual[name])}


def test_the_classifier_has_what_the_command_line_has() -> None:
    declared_names = {field.name for group in (ColumnSettings, LimitSettings)
                      for field in fields(group)}
    assert declared_names == {*defaults_of(TextClassifier)} - OBJECTS


def test_the_kinds_are_those_of_the_registry() -> None:
    built_in = [model for model in registered_models() if model.__module__.startswith("textnb.")]
    assert {model.__name__ for model in built_in} <= set(textnb.__all__)
    assert list(all_models()) == [*text_models(), *table_models()]
    assert list(all_models()) == [model.kind for model in built_in if model.kind]
    assert all(facts.help for model in built_in for _, facts in declared(model))


def test_a_field_that_is_not_declared_is_seen() -> None:
    @dataclass(frozen=True)
    class Longer(Tokenizer):
        least_length: int = 2

    assert disagreements(declared_defaults(TokenSettings), defaults_of(Longer)) == {"least_length"}


def test_the_job_agrees() -> None:
    tokens = declared_defaults(TokenOptions)
    assert tokens.pop("sklearn") is False
    assert tokens == declared_defaults(TokenSettings)
    # A model's own settings stand beside these.
    keys = [*declared_defaults(ColumnSettings, LimitSettings, LearnOptions), "kind", "tokenizer"]
    assert len(keys) == len(set(keys))
    for model in all_models().values():
        assert not set(keys) & declared_defaults(model).keys()


def test_the_command_line_agrees() -> None:
    command = command_of("train")
    assert isinstance(command, Command)
    offered = {param.name: param for param in command.params}
    for group in (ColumnSettings, TokenSettings, LimitSettings, *all_models().values()):
        for field, facts in declared(group):
            if not facts.is_option:
                continue
            if facts.under or (group in all_models().values() and field.name != "l"):
                assert field.name in (offered[facts.under or "set"].help or "")
                continue
            option = offered[field.name]
            assert isinstance(option, click.Option)
            assert name_of(field, facts) in option.opts
            assert option.is_flag is is_flag(type_of(field))
            # What was not typed has the default of the declaration.
            assert option.default is None
    typed = ColumnSettings(), TokenOptions(), LimitSettings(), ModelOptions()
    for group in typed:
        for field, facts in declared(type(group)):
            assert facts.is_argument or getattr(group, field.name) == field.default


@pytest.mark.parametrize("name", WRONG)
def test_each_refuses_what_the_others_refuse(name: str, tmp_path: Path) -> None:
    def use(setting: dict[str, Any]) -> None:
        if name in declared_defaults(TokenSettings):
            Tokenizer(**setting)
        else:
            TextClassifier(**setting).fit(["a word"], ["x"])

    with pytest.raises(ParameterError):
        use({name: WRONG[name]})
    value = list(WRONG[name]) if isinstance(WRONG[name], tuple) else WRONG[name]
    path = tmp_path / "job.toml"
    path.write_text('output = "out"\ninput.train = "x.csv"\n')
    key = f"model.tokenizer.{name}" if name in declared_defaults(TokenSettings) else f"model.{name}"
    with pytest.raises(ParameterError, match=name):
        read_job(path, [f"{key}={value!r}"])


def test_what_is_offered_is_what_there_is(tmp_path: Path) -> None:
    own = {name for name, target in TARGETS.items()
           if type(target).__module__.startswith("textnb.")}
    assert set(OFFERED_TARGETS) == own
    assert OUTPUT_FORMATS == sinks.FORMATS
    (tmp_path / "x").touch()
    with pytest.raises(ParameterError) as told:
        scan(tmp_path / "x", format="none such")
    for name in INPUT_FORMATS:
        assert name in str(told.value)


def test_the_page_of_exports_names_every_target() -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "exports.md").read_text("utf-8")
    table = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert not [name for name in TARGETS if not any(f"`{name}`" in cell for cell in table)]


def test_python_takes_sizes_as_the_command_line_does(tmp_path: Path) -> None:
    words, number = (TextClassifier(memory_limit=limit).fit(["one word", "two words"], ["x", "y"])
                     for limit in ("1.5M", 3 << 19))
    words.save(tmp_path / "words")
    number.save(tmp_path / "number")
    assert (tmp_path / "words").read_bytes() == (tmp_path / "number").read_bytes()
    assert words.get_params()["memory_limit"] == "1.5M"
    for wrong in ("5X", "", "1K"):
        with pytest.raises(ParameterError, match="memory_limit must be"):
            TextClassifier(memory_limit=wrong).fit(["a word"], ["x"])


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_the_same_in_both_lists(verb: str) -> None:
    command = command_of(verb)
    assert command is not None
    assert (command.help or "").splitlines()[0] == VERBS[verb][1]
    # Every option has a help text, and stands in a group.
    assert all(param.help for param in command.params if isinstance(param, click.Option))
