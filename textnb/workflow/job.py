"""A job's file: TOML, checked key by key before anything is read.

    output           the folder to write, relative to the job's file, as all paths are
    [input]          rows to learn from and to test on
    [audit]          what is wrong with the rows to learn from, before anything is learned
    [model]          the model's kind, its settings, its tokenizer or features
    [validation]     by folds, by leave-one-out, in order or for values of l, before the test
    [calibration]    a temperature, from scores of left-out rows
    [decision]       a threshold, with a guarantee, by costs, or a reject option
    [test]           measures on the test rows, and the report
    [terms]          the most distinctive terms of each class
    [predictions]    rows with their predictions
    [[exports]]      weights for other systems

A section has the options of its step, by the names of their fields, and says where results go.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

from textnb.errors import Mention, ParameterError
from textnb.export.targets.known import target_of, target_of_path
from textnb.frames.conditions import check_condition
from textnb.frames.sinks import ENDINGS, SEPARATORS
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.models.known import all_models
from textnb.runtime.settings import Place, Range, is_number, setting, setting_fields
from textnb.workflow.options import (
    AuditOptions,
    CalibrateOptions,
    DecideOptions,
    ExportOptions,
    LabelledOptions,
    LearnOptions,
    PredictOptions,
    TermsOptions,
    TestOptions,
    TokenOptions,
    TrainOptions,
    ValidateOptions,
)
from textnb.workflow.rows import check_storage_options
from textnb.workflow.toml import READERS, Key, Table, read_toml
from textnb.workflow.train import (
    check_belongs,
    check_training,
    make_train_options,
    model_class,
    model_of,
    use_mail_defaults,
)

# Files that every job writes, in addition to those that it names.
RESERVED = ("model.textnb", "metrics.json", "validation.json", "run.json")
# Types of keys: the name of a file in the output folder, and of one that holds a table.
FileName = str
TableName = str
_SHARE_RANGE = Range("above 0 and below 1", lambda v: is_number(v) and 0 < v < 1)
# The groups of settings of [model] that models of all kinds have.
COMMON_GROUPS = (ColumnSettings, LimitSettings, LearnOptions)


def _file_name(value: Any) -> Any:
    if not isinstance(value, str) or not value or Path(value).name != value or (
            value in RESERVED or value.startswith(".") or "\0" in value):
        raise ValueError(f"a name in the output folder, without folders, and none of "
                         f"{', '.join(RESERVED)}")
    return value


def _table_name(value: Any) -> Any:
    if Path(_file_name(value)).suffix.lower() not in ENDINGS:
        raise ValueError(f"an ending of {', '.join(ENDINGS)}; got {value!r}")
    return value


# `Table` checks a value by the function that has the name of the key's type.
READERS.update(FileName=_file_name, TableName=_table_name)


def _safe_csv_setting() -> Any:
    return setting(False, "Put an apostrophe before each text of a CSV file that a spreadsheet "
                          "could take for a formula.")


def _check_safe_csv(safe_csv: bool, format: str) -> None:
    if safe_csv and format not in SEPARATORS:
        raise ParameterError.naming_settings("{safe_csv} is for .csv and .tsv files")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Input(LabelledOptions):
    """The rows. Without ``test`` and ``test_where``, the test is on the share ``hold_out`` of them.

    Whether a row is held out depends on a checksum of its text or features, so that copies are on
    one side.
    """

    train: Place = setting(help="Rows to learn from: anything that textnb train reads.")
    train_where: str | None = setting(None, "Learn only from rows that meet this SQL condition.")
    test: Place | None = setting(None, "Rows to test on.  [default: those of train]")
    test_where: str | None = setting(None, "Test only on rows that meet this SQL condition.")
    hold_out: float = setting(0.2, "Share of the rows that is held out.", range=_SHARE_RANGE)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Audit(AuditOptions):
    """What is wrong with the rows to learn from; findings that ``fail_on`` names end the job."""

    file: TableName = setting("audit.csv", "File of findings to write, by its ending.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Test(TestOptions):
    """Measures on the test rows."""

    report: FileName | None = setting(None, "HTML page: charts, terms, mistakes.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Terms(TermsOptions):
    """The k most distinctive terms of each class."""

    file: TableName = setting("terms.csv", "File to write, by its ending.")
    safe_csv: bool = _safe_csv_setting()

    @property
    def file_format(self) -> str:
        return ENDINGS[Path(self.file).suffix.lower()]

    def check(self) -> None:
        """Raise ParameterError if ``safe_csv`` is set, and the file is neither CSV nor TSV."""
        _check_safe_csv(self.safe_csv, self.file_format)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Predictions(PredictOptions):
    """Rows with their predictions: the rows of ``input``, or the test rows."""

    input: Place | None = setting(None, "Rows to predict.  [default: the test rows]")
    where: str | None = setting(None, "Predict only rows that meet this SQL condition.")
    format: str | None = setting(None, "Format of the input, if its name does not tell.")
    file: TableName = setting("predictions.parquet", "File to write, by its ending.")
    probability: bool = setting(True, "Add the probability of the predicted class.")
    safe_csv: bool = _safe_csv_setting()

    def check(self) -> None:
        """Raise ParameterError if the file can't hold the answers."""
        format = ENDINGS[Path(self.file).suffix.lower()]
        _check_safe_csv(self.safe_csv, format)
        self.check_format(format)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Export(ExportOptions):
    """Weights for another system; without ``to``, the ending of ``file`` names the system."""

    file: FileName = setting(help="File or folder to write.")
    verify: bool = setting(True, "Run the golden rows through the real engine, and compare.")

    def check(self) -> None:
        """Raise ParameterError if there is no such system."""
        if self.to is None:
            target_of_path(self.file)
        else:
            target_of(self.to)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Job:
    """A whole job, as its file describes it."""

    output: Place
    input: Input
    audit: Audit | None = None
    model: TrainOptions = field(default_factory=TrainOptions)
    validation: ValidateOptions | None = None
    calibration: CalibrateOptions | None = None
    decision: DecideOptions | None = None
    test: Test = field(default_factory=Test)
    terms: Terms | None = None
    predictions: Predictions | None = None
    exports: tuple[Export, ...] = ()


# The options of each section.
SECTIONS: dict[str, type] = {
    "input": Input, "audit": Audit, "model": TrainOptions, "validation": ValidateOptions,
    "calibration": CalibrateOptions, "decision": DecideOptions, "test": Test, "terms": Terms,
    "predictions": Predictions, "exports": Export}


def as_key(setting: Mention, section: str = "model") -> str:
    """The key of a job for a setting that a message names, while the job works on a section.

    Examples
    --------
    >>> as_key(Mention("min_df")), as_key(Mention("binary", "True"))
    ('model.min_df', 'model.binary = true')
    >>> as_key(Mention("pattern", "r'x'")), as_key(Mention("classes"), "test")
    ("model.tokenizer.pattern = 'x'", 'input.classes')
    """
    name, all_groups = setting.name, _groups()
    key = "model.kind" if name == "kind" else name
    # Several sections may have a setting of this name: the one that the job works on comes first.
    for each in dict.fromkeys([section, "model", *all_groups]):
        names: dict[str, str] = {}
        for group in all_groups[each]:
            names |= {field.name: field.name for field in fields(group)}
            # Errors name a setting by its name in Python.
            names |= {info.python_name: field.name for field, info in setting_fields(group)
                      if info.python_name}
        if name in names:
            key = f"{each}.{names[name]}"
            break
    # A string of TOML in single quotes is raw without the prefix r.
    value = setting.value.removeprefix("r") if setting.value[:2] == "r'" else setting.value
    # TOML has no None: the key is left out.
    if value in ("", "None"):
        return f"no {key}" if value else key
    if value in ("True", "False"):
        return f"{key} = {value.lower()}"
    return f"{key} = {value!r}" if value.isidentifier() else f"{key} = {value}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Output:
    """The key ``output``, which is in no table."""

    output: Place

    def check(self) -> None:
        """Raise ParameterError for a URL, which is not shown, as it may hold a password."""
        if "://" in self.output:
            raise ParameterError.naming_settings(
                "{output} must be a folder on this machine, not a URL")
        if self.output == "-":
            raise ParameterError.naming_settings(
                "{output} must be a folder, not standard output: write ./- for a folder named -")


def read_job(path: str | os.PathLike[str], settings: Iterable[str] = ()) -> Job:
    """Read and check a job's file, with some keys set from outside.

    Parameters
    ----------
    path : path
    settings : iterable of str
        As for `read_toml`.

    Raises
    ------
    ParameterError
        If the file is not TOML, a key is unknown or its value is not what is expected; the key is
        named, and its line.
    SourceError
        If the file can't be read.
    """
    table = read_toml(path, settings)
    table.tables = _tables()
    values = {"input": {}, **table.values}
    sections: dict[str, Any] = {
        name: table.fill(group, values[name], (name,)) for name, group in SECTIONS.items()
        if name in values and name not in ("model", "exports")}
    # The defaults of [model] depend on [input].
    if "model" in values or sections["input"] is not None:
        sections["model"] = _model(table, values.get("model", {}), sections["input"])
    if "exports" in values:
        sections["exports"] = _exports(table, values["exports"])
    for name in values.keys() - SECTIONS.keys() - {"output"}:
        table.add_unknown_key((name,), Job)
    output = table.fill(_Output, {name: value for name, value in values.items()
                                  if name == "output"}, ())
    table.raise_faults()
    assert output is not None
    job = Job(output=output.output, **sections)
    _check(job, table)
    table.raise_faults()
    return job


def _groups() -> dict[str, list[type]]:
    """The groups of settings that each table of a job may have."""
    return {**{name: [group] for name, group in SECTIONS.items()},
            "model": [*COMMON_GROUPS, *all_models().values()], "model.tokenizer": [TokenOptions]}


def _tables() -> dict[str, list[str]]:
    """For each key, the tables that may have it, as a file writes them."""
    tables: dict[str, list[str]] = {}
    for table, groups in _groups().items():
        for name in dict.fromkeys(each.name for group in groups for each in fields(group)):
            tables.setdefault(name, []).append(
                "[[exports]]" if table == "exports" else f"[{table}]")
    return tables


def _exports(table: Table, values: Any) -> Any:
    if not isinstance(values, list):
        table.add_fault(("exports",), "it must be a list of tables: [[exports]]")
        return ()
    return tuple(table.fill(Export, each, ("exports", str(number)))
                 for number, each in enumerate(values))


def _model(table: Table, values: Any, input: Input | None) -> Any:
    """[model]: settings of columns, limits and learning, together with those of its kind."""
    key: Key = ("model",)
    if not isinstance(values, dict):
        # `read_settings` notes that [model] must be a table.
        return table.read_settings(values, key)
    kind = values.get("kind", "multinomial")
    model = table.note_errors((*key, "kind"), lambda: model_class(kind))
    if model is None:
        return None
    for name in values:
        table.note_errors((*key, name), partial(check_belongs, kind, name))
    # A key with a fault is not read again, so that it gets no second fault.
    excluded = {"kind", "tokenizer", *(faulty[-1] for faulty, _ in table.faults if faulty)}
    settings = table.read_settings(
        {name: value for name, value in values.items() if name not in excluded},
        key, *COMMON_GROUPS, model)
    tokens = table.read_settings(values.get("tokenizer", {}), (*key, "tokenizer"), TokenOptions)
    if settings is None or tokens is None or input is None or table.faults:
        return None
    settings = {name: value for name, value in {**settings, "tokenizer": tokens}.items()
                if name in values}
    options = use_mail_defaults(
        make_train_options(kind, settings), {*values}, input.train, input.format)
    table.note_errors(key, lambda: check_training(options), ((*key, "tokenizer"), TokenOptions),
                      *((key, group) for group in (*COMMON_GROUPS, model)))
    return options


def _check(job: Job, table: Table) -> None:
    """Note faults of keys that are valid each by itself."""
    if not job.model.is_for_texts:
        keys: list[Key] = [
            (name,) for name in ("audit", "validation", "calibration", "decision", "terms")
            if getattr(job, name) is not None]
        if job.input.has_label_lists:
            keys.append(("input", "label_separator" if job.input.label_columns is None
                         else "label_columns"))
        for key in keys:
            table.add_fault(key, f"it is for models of texts; model.kind is {job.model.kind!r}")
    sources = [job.input.train, job.input.test,
               None if job.predictions is None else job.predictions.input]
    table.note_errors(("input",), lambda: check_storage_options(job.input, *sources),
                      (("input",), Input))
    for section, name, condition in (
            ("input", "train_where", job.input.train_where),
            ("input", "test_where", job.input.test_where),
            ("predictions", "where", getattr(job.predictions, "where", None))):
        if condition is not None:
            table.note_errors((section, name), partial(check_condition, condition, "the condition"))
    (_check_left_out if job.model.learning.weight is None else _check_weighted)(job, table)
    # Some file systems do not distinguish upper from lower case.
    names = [name.casefold() for export in job.exports
             for name in (export.file, f"{export.file}.bundle.zip")] + [*RESERVED]
    names += [part.file.casefold() for part in (job.audit, job.terms, job.predictions)
              if part is not None]
    names += [job.test.report.casefold()] if job.test.report else []
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        table.add_fault((), f"two outputs have the name {twice[0]!r}")


def _check_weighted(job: Job, table: Table) -> None:
    """Note a section that scores rows of the training set by models without these rows."""
    validation, decision = job.validation, job.decision
    others = "choose it by other rows: textnb {} takes them"
    for name, scores_them, advice in (
            ("calibration", job.calibration is not None, others.format("calibrate --held-out")),
            ("validation", validation is not None and (
                validation.leave_one_out or validation.smoothing is not None), "use folds"),
            ("decision", decision is not None and decision.min_probability is None,
             others.format("threshold"))):
        if scores_them:
            table.add_fault((name,), "models that lack some rows of the training set would not "
                                     f"have the weights of model.weight: {advice}")


def _check_left_out(job: Job, table: Table) -> None:
    """Note a section that scores rows of the training set, if the model does not allow it."""
    decision = job.decision
    by = None if decision is None else decision.by
    if not job.model.is_for_texts or job.input.has_label_lists or by is not None:
        return  # The option ``by`` is for lists of labels too, which are scored by folds.
    model = model_of(job.model.kind, job.model.parameters)
    sections = [name for name, subtracts in (
        ("calibration", job.calibration is not None and model.from_counts),
        ("validation", job.validation is not None and job.validation.leave_one_out),
        ("decision", decision is not None and decision.scored != "folds"
         and decision.min_probability is None)) if subtracts]
    # A parameter's name, or "kind" for the model itself; None if rows can be left out.
    obstacle = model.obstacle_to_leaving_out
    if not sections or not (obstacle or job.model.limits.max_features is not None):
        return
    key = "max_features" if job.model.limits.max_features is not None else obstacle
    value = f" = {job.model.kind!r}" if key == "kind" else ""
    advice = "" if sections[0] == "calibration" else ": use folds"
    table.add_fault((sections[0],), "it leaves rows out by subtraction, which "
                                    f"model.{key}{value} does not allow{advice}")


def settings_of(options: Any) -> dict[str, Any]:
    """The settings of a job, or of a section, that are not their defaults."""
    if isinstance(options, TrainOptions):
        settings = {"kind": options.kind, **options.parameters}
        for group in (options.columns, options.limits, options.learning):
            settings |= settings_of(group)
        return settings | ({"tokenizer": options.tokenizer} if options.tokenizer else {})
    settings = {}
    for each in fields(options):
        value = getattr(options, each.name)
        if each.name == "exports" and isinstance(value, tuple):
            value = [*map(settings_of, value)]
        elif is_dataclass(value):
            value = settings_of(value)
        # An empty section that may be left out says that its step runs.
        if value != each.default and (value not in ({}, [], ()) or each.default is None):
            settings[each.name] = value
    return settings
