"""A job's file: TOML, checked key by key before anything is read.

    output           the folder to write, relative to the job's file, as all paths are
    [input]          rows to learn from and to test on
    [model]          the model's kind, its settings, its tokenizer or features
    [validation]     folds or leave-one-out, before the test
    [calibration]    a temperature, by leave-one-out
    [decision]       a threshold, with a guarantee, by costs, or a reject option
    [test]           measures on the test rows, and the report
    [terms]          the most distinctive terms of each class
    [predictions]    rows with their predictions
    [[exports]]      weights for other systems
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from textnb.errors import ParameterError
from textnb.export.targets.known import target_of, target_of_path
from textnb.frames.cloud import is_url
from textnb.frames.sinks import ENDINGS
from textnb.jobs.models import model_of, tokenizer_of
from textnb.learning.memory_limit import check_memory_limit, memory_size
from textnb.learning.settings import (
    ColumnSettings,
    LimitSettings,
    foreign_settings,
    mail_recipe,
)
from textnb.models.known import all_models, import_offered, table_models, text_models
from textnb.runtime.settings import declared, type_of
from textnb.text.token_settings import TokenSettings
from textnb.text.vocabulary import Limits

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# Files that every job writes, in addition to those that it names.
RESERVED = ("model.textnb", "metrics.json", "validation.json", "run.json")


def _substitute_variables(value: Any) -> Any:
    """Replace ``${NAME}`` and ``${NAME:-default}`` in a path by variables of the environment."""
    if not isinstance(value, str):
        return value
    if "\0" in value:
        raise ValueError("a path without the character NUL")

    def found(match: re.Match[str]) -> str:
        name, default = match.groups()
        known = os.environ.get(name) or default
        if known is None:
            raise ValueError(f"the environment variable {name} is not set; set it, or write "
                             f"${{{name}:-default}}")
        return known

    return _VARIABLE.sub(found, value)


def _file_name(value: Any) -> Any:
    if isinstance(value, str) and (not value or Path(value).name != value or value in RESERVED
                                   or value.startswith(".") or "\0" in value):
        raise ValueError(f"a name in the output folder, without folders, and none of "
                         f"{', '.join(RESERVED)}")
    return value


def _table_name(value: Any) -> Any:
    if isinstance(value, str) and Path(value).suffix.lower() not in ENDINGS:
        raise ValueError(f"an ending of {', '.join(ENDINGS)}; got {value!r}")
    return value


def _options(value: Any) -> Any:
    """Storage options; errors do not repeat them, as they may be secrets."""
    if not isinstance(value, dict) or not all(
            isinstance(option, (str, bool, int, float)) for option in value.values()):
        raise ValueError("a table of strings and numbers, such as { aws_region = \"eu-west-1\" }")
    return {key: _substitute_variables(option) for key, option in value.items()}


def _target(value: Any) -> Any:
    if isinstance(value, str):
        target_of(value)
    return value


def _memory(value: Any) -> Any:
    return memory_size(value)


Where = Annotated[str, BeforeValidator(_substitute_variables)]
FileName = Annotated[str, BeforeValidator(_file_name)]
Share = Annotated[float, Field(gt=0.0, lt=1.0)]


class Section(BaseModel):
    """A table of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# Keys of the input by which a row has several labels.
_OF_LISTS = ("label_separator", "label_columns")


class Input(Section):
    """The rows. Without ``test`` and ``test_where``, the share ``hold_out`` of them is the test.

    Whether a row is held out depends on a checksum of its text, so that copies are on one side.
    ``label_separator`` is the character between the labels of a row, of which it then may have
    several; Parquet and NDJSON may hold lists. ``label_columns`` are columns in place of the label
    column, each of which says whether a row has the label of its name.
    """

    train: Where
    train_where: str | None = None
    test: Where | None = None
    test_where: str | None = None
    hold_out: Share = 0.2
    format: str | None = None
    encoding: str = "utf-8"
    separator: str | None = None
    label_separator: str | None = None
    label_columns: Annotated[list[str], Field(min_length=1)] | None = None
    storage_options: Annotated[dict[str, Any], BeforeValidator(_options)] | None = None


def _section_keys(*groups: type) -> dict[str, Any]:
    """The declared settings of some groups as keys of a section."""
    found: dict[str, Any] = {}
    for group in groups:
        hints = get_type_hints(group)
        for field, facts in declared(group):
            kind = hints[field.name]
            if facts.choices:
                kind = Literal[(*facts.choices, *(() if field.default is not None else (None,)))]
            found[field.name] = (Annotated[kind, BeforeValidator(_READ.get(
                type_of(field).removesuffix(" | None"), _as_it_is))], field.default)
    return found


def _as_it_is(value: Any) -> Any:
    return value


def _count_or_share(value: Any) -> Any:
    if type(value) not in (int, float):
        raise ValueError(f"it must be a count (2) or a share of documents (0.01); got {value!r}")
    return value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# Types that TOML writes differently from Python.
_READ = {"Size": _memory, "CountOrShare": _count_or_share, "Pair": _tuple, "Words": _tuple,
         "Kinds": _tuple, "Prefixes": _tuple}
_Tokenizer: Any = create_model(
    "Tokenizer", __base__=Section, __doc__="How texts are cut into tokens; ``sklearn`` for those "
    "of scikit-learn's CountVectorizer.", sklearn=(bool, False), **_section_keys(TokenSettings))
_Declared: Any = create_model(
    "Declared", __config__=ConfigDict(extra="allow", strict=True, frozen=True),
    **_section_keys(ColumnSettings, LimitSettings))


class Model(_Declared):
    """The model. Keys that are not listed are settings of its kind, as below."""

    kind: str = "multinomial"
    tokenizer: _Tokenizer = Field(default_factory=_Tokenizer)
    features: list[str] | None = None

    @model_validator(mode="after")
    def _check(self) -> Model:
        import_offered(self.kind)
        if self.kind not in all_models():
            raise ParameterError.unknown_choice("kind", self.kind, all_models())
        for name in sorted(self.model_fields_set & foreign_settings(self.kind)):
            others = text_models() if self.kind in table_models() else table_models()
            raise ValueError(f"{name} belongs to the kinds {', '.join(others)}; kind is "
                             f"{self.kind!r}")
        model = model_of(self.kind, self.parameters)
        if model.of_terms:
            tokenizer_of(self.tokens).expr(self.columns or ["text"])
            Limits(self.min_df, self.max_df, self.max_features)
            check_memory_limit(self.memory_limit, model, given=False)
            if not self.columns or len(set(self.columns)) < len(self.columns):
                raise ValueError("text must be a column, or several different ones")
        if self.label in (self.columns if model.of_terms else self.features or ()):
            raise ValueError(f"the label column {self.label!r} is also one that is read")
        if self.label in ("predicted", "decision"):
            raise ValueError(f"label {self.label!r} is the name of an answer: rename the column")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """Settings of the estimator."""
        return dict(self.model_extra or {})

    @property
    def tokens(self) -> dict[str, Any]:
        """Settings of the tokenizer that the file has."""
        return dict(self.tokenizer.model_dump(exclude_unset=True))

    @property
    def kind_of_rows(self) -> Literal["texts", "tables"]:
        """The kind of rows that the model reads."""
        return "tables" if self.kind in table_models() else "texts"

    @property
    def columns(self) -> list[str]:
        """Text columns."""
        return [self.text] if isinstance(self.text, str) else self.text


class Validation(Section):
    """Measures on training rows, each of which a model scores that has not learned it."""

    method: Literal["folds", "leave-one-out"] = "folds"
    folds: Annotated[int, Field(ge=2)] = 5
    groups: str | None = None
    time: str | None = None
    seed: int = 0

    @model_validator(mode="after")
    def _check(self) -> Validation:
        of_folds = sorted(self.model_fields_set & {"folds", "groups", "time", "seed"})
        if self.method == "leave-one-out" and of_folds:
            raise ValueError(f"{of_folds[0]} goes with the method 'folds'")
        if self.groups is not None and self.time is not None:
            raise ValueError("groups and time exclude each other")
        return self


class Calibration(Section):
    """Calibrated probabilities, by a temperature that leave-one-out chooses."""

    length_aware: bool = True


class Decision(Section):
    """When a class is answered: by a guarantee, costs, a precision, or a least probability.

    Of lists of labels, ``by`` (the best F1 of each label, or of all pairs), a precision, or costs
    choose a threshold for each label, always by folds; at least and at most so many labels are
    predicted for each row.
    """

    positive: str | int | bool | None = None
    max_false_positive_rate: Share | None = None
    max_false_negative_rate: Share | None = None
    confidence: Share = 0.95
    costs: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    min_precision: Share | None = None
    min_probability: Share | None = None
    by: Literal["f1", "micro-f1"] | None = None
    at_least: Annotated[int, Field(ge=0)] = 0
    at_most: Annotated[int, Field(ge=1)] | None = None
    scored: Literal["leave-one-out", "folds"] = "leave-one-out"

    @model_validator(mode="after")
    def _check(self) -> Decision:
        ways = ("max_false_positive_rate", "costs", "min_precision", "min_probability", "by")
        named = [name for name in ways if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"give one of {', '.join(ways)}; got {' and '.join(named) or 'none'}")
        way = named[0]
        # Costs may be of lists of labels; `check_labels` knows.
        if way == ways[0] and self.positive is None:
            raise ValueError(f"{way} is about one class: name it with positive")
        if way in ways[2:] and self.positive is not None:
            raise ValueError(f"{way} is for all classes: leave out positive")
        if self.max_false_negative_rate is not None and way != ways[0]:
            raise ValueError("max_false_negative_rate goes with max_false_positive_rate")
        return self


class Test(Section):
    """Measures on the test rows."""

    positive: str | int | bool | None = None
    report: FileName | None = None


class Terms(Section):
    """The k most distinctive terms of each class."""

    k: Annotated[int, Field(ge=1)] = 20
    file: FileName = "terms.csv"


class Predictions(Section):
    """Rows with their predictions: the rows of ``input``, or the test rows."""

    input: Where | None = None
    where: str | None = None
    format: str | None = None
    file: Annotated[FileName, BeforeValidator(_table_name)] = "predictions.parquet"
    probability: bool = True
    scores: bool = False
    top: Annotated[int, Field(ge=0)] = 0
    explain: Annotated[int, Field(ge=0)] = 0


class Export(Section):
    """Weights for another system, verified on golden rows unless ``verify`` is false.

    Without ``to``, the ending of ``file`` names the system.
    """

    to: Annotated[str | None, BeforeValidator(_target)] = None
    file: FileName
    positive: str | int | bool | None = None
    reads: Literal["text", "terms"] | None = None
    top: Annotated[int, Field(ge=1)] | None = None
    verify: bool = True

    @model_validator(mode="after")
    def _check_target(self) -> Export:
        if self.to is None:
            target_of_path(self.file)
        return self


class Job(Section):
    """A whole job, as its file describes it."""

    output: Where
    input: Input
    model: Model = Field(default_factory=Model)
    validation: Validation | None = None
    calibration: Calibration | None = None
    decision: Decision | None = None
    test: Test = Field(default_factory=Test)
    terms: Terms | None = None
    predictions: Predictions | None = None
    exports: list[Export] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _learn_mail(cls, values: Any) -> Any:
        """Put in the settings of mail, where the input is mail and the file has no others."""
        source, model = (values.get("input"), values.get("model", {})) if isinstance(
            values, dict) else (None, None)
        if not isinstance(source, dict) or not isinstance(model, dict) or (
                source.get("format") != "mail"):
            return values
        recipe = mail_recipe(model)
        kind = {"kind": recipe.pop("model")} if recipe else {}
        return {**values, "model": {**model, **kind, **recipe}}

    @model_validator(mode="after")
    def _check(self) -> Job:
        if self.model.kind_of_rows == "tables":
            for name, value in {
                    **{f"[{name}]": getattr(self, name) for name in (
                        "validation", "calibration", "decision", "terms")},
                    **{f"input.{name}": getattr(self.input, name) for name in _OF_LISTS}}.items():
                if value is not None:
                    raise ValueError(
                        f"{name} is for models of texts; model.kind is {self.model.kind!r}")
        if all(getattr(self.input, name) is not None for name in _OF_LISTS):
            raise ValueError("input.label_columns and input.label_separator exclude each other")
        self._check_left_out()
        places = [self.input.train, self.input.test, self.predictions and self.predictions.input]
        if self.input.storage_options and not any(place and is_url(place) for place in places):
            raise ValueError("input.storage_options are for URLs, such as s3://bucket/key; the job "
                             "names none")
        names = [name for export in self.exports
                 for name in (export.file, f"{export.file}.bundle.zip")]
        names += [*RESERVED]
        names += [part.file for part in (self.terms, self.predictions) if part is not None]
        names += [self.test.report] if self.test.report else []
        # Some file systems do not distinguish upper from lower case.
        names = [name.casefold() for name in names]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two outputs have the name {twice[0]!r}")
        return self

    def _check_left_out(self) -> None:
        """Check that the model allows leave-one-out, where a section asks for it."""
        of_lists = any(getattr(self.input, name) is not None for name in _OF_LISTS)
        if of_lists or (self.decision is not None and self.decision.by is not None):
            return  # lists of labels are scored by folds
        sections = [name for name, asks in (
            ("calibration", self.calibration is not None),
            ("validation", self.validation is not None
             and self.validation.method == "leave-one-out"),
            ("decision", self.decision is not None and self.decision.scored == "leave-one-out"
             and self.decision.min_probability is None)) if asks]
        if not sections:
            return
        model = model_of(self.model.kind, self.model.parameters)
        obstacle = model.obstacle_to_leaving_out
        key = "model.max_features" if self.model.max_features is not None else (
            None if obstacle is None else f"model.{obstacle}")
        if obstacle == "kind":
            key = f"model.kind = {self.model.kind!r}"
        if key is not None:
            raise ValueError(f"[{sections[0]}] leaves rows out by subtraction, which {key} does "
                             "not allow" + ("" if sections[0] == "calibration" else ": use folds"))
