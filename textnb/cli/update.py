"""The verbs that change a model, or compare two: update, forget, merge, diff."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.by_ledger import (
    KNOWN,
    LedgerOption,
    change_by_ledger,
    collected,
    note_changes,
    uses_ledger,
)
from textnb.cli.console import note, out, progress
from textnb.cli.evidence import note_stale
from textnb.cli.inputs import (
    Inputs,
    ModelFile,
    ModelOutput,
    Quiet,
    Results,
    RowOptions,
    classes_in_words,
    count_malformed,
    features_in_words,
    reading,
    rows,
    unit_of,
)
from textnb.cli.options import argument, option, verb
from textnb.cli.words import parse_label
from textnb.errors import quantity
from textnb.runtime.settings import setting
from textnb.workflow.models import (
    AnyModel,
    any_model,
    classes_of,
    features_of,
    holds_lists,
    save_model,
    text_columns,
)
from textnb.workflow.results import as_json

if TYPE_CHECKING:
    import polars as pl

    from textnb.filter.by_ledger import Changes
    from textnb.filter.ledger import Ledger
    from textnb.learning.fitted import Fitted


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelledRows(Inputs):
    """Input."""

    as_class: str | None = option("Class of all rows, for an input without a label column.",
                               "--as", metavar="CLASS")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LearningOptions:
    """Learning."""

    new_class: list[str] | None = option(
        "A label that the model does not know yet; repeat it for several.", metavar="CLASS")
    on_error: bool = option(
        "Learn only the rows that the model misjudges. Then its counts are no sample of the rows: "
        "priors and probabilities lean towards the hard ones.", default=False)
    within: float | None = option(
        "With --on-error: learn rows, too, that are judged rightly by less than this log-odds "
        "above the least that the answer needs.", metavar="MARGIN")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChangedModel(Quiet, ModelOutput):
    """Output."""


@verb
def update(
    file: ModelFile, source: LabelledRows, how: LearningOptions, kept: LedgerOption,
    done: ChangedModel,
) -> None:
    """Learn more labelled rows: the model is that of one training on all rows."""
    from textnb.errors import ParameterError
    from textnb.files.lock import lock_path

    target = done.target(file.model)
    source.check(target)
    if how.within is not None and not how.on_error:
        raise ParameterError("--within goes with --on-error")
    by_ledger = uses_ledger(file.model, done.output, kept.ledger)
    if by_ledger and how.within is not None:
        raise ParameterError("--within does not go with a ledger, by which only mistakes are "
                             "chosen: leave it out")
    with lock_path(target):
        is_plain = not (how.new_class or how.on_error)
        if is_plain and _add_message(file.model, source, done, target, by_ledger):
            return
    if by_ledger:
        _update_by_ledger(file.model, source, how, done)
        return
    with lock_path(target):
        from textnb.evaluation.evaluate import mistakes
        from textnb.learning.fitting import learn_more

        model = any_model(file.model)
        is_text = text_columns(model) is not None
        tables = [_Table(model, source, input) for input in source.inputs]
        known = classes_of(model).tolist()
        classes = [parse_label(name, type(known[0])) for name in how.new_class or []] or None
        if how.on_error:
            if not is_text:
                raise ParameterError("--on-error is for models of texts")
            for table in tables:
                with table.reading():
                    # Collected now: the model that judges the rows is about to change.
                    table.frame = mistakes(
                        model, table.frame, within=how.within).collect().lazy()
            tables = [table for table in tables if table.frame.collect().height]
            if not tables:
                note("no row was misjudged: nothing to learn, and the model is unchanged")
                if done.output is not None:
                    save_model(model, target)
                return
        with progress("learning", "learned from", done.quiet, unit_of(model)) as advance:
            for table in tables:
                with table.reading():
                    model = (learn_more(model, model.settings, table.frame, classes=classes,
                                        progress=advance)
                             if is_text else
                             model.partial_fit(table.frame, classes=classes, progress=advance))
        for table in tables:
            table.malformed.refuse_unreadable()
        save_model(model, target)
    if not done.quiet:
        for table in tables:
            table.malformed(table.input)
        note(f"{classes_in_words(model)}, {_size(model)} -> {target}")
    note_stale(model)


def _add_message(
    model: str, source: LabelledRows, done: ChangedModel, target: str, by_ledger: bool
) -> bool:
    """Learn one message without Polars; whether that was possible."""
    import time

    from textnb.cli.one_message import add_message, add_message_by_ledger

    if source.as_class is None or len(source.inputs) > 1:
        return False
    started, message = time.monotonic(), (model, source.inputs[0], source, source.as_class)
    updated = add_message_by_ledger(*message) if by_ledger else add_message(*message, target)
    if updated is None:
        return False
    if updated == "known":
        if not done.quiet:
            note(f"1 document {KNOWN}")
        return True
    if not done.quiet:
        seconds = time.monotonic() - started
        note(f"learned from 1 document in {seconds:.2f} s ({1 / max(seconds, 1e-9):,.0f}/s)")
        if by_ledger:
            note("1 document learned")
        note(f"{quantity(updated.n_classes, 'class')}, {quantity(updated.n_terms, 'term')} -> "
             f"{target}")
    note_stale(updated)
    return True


def _update_by_ledger(
    model: str, source: LabelledRows, how: LearningOptions, done: ChangedModel
) -> None:
    from textnb.filter.by_ledger import learn
    from textnb.scoring.texts import predict_lazily

    def change(fitted: Fitted, ledger: Ledger, rows: pl.DataFrame) -> Changes:
        known = fitted.classes.tolist()
        classes = [parse_label(name, type(known[0])) for name in how.new_class or []] or None

        def answer(rows: pl.DataFrame) -> list[Any]:
            found = predict_lazily(fitted, rows.select(fitted.columns)).collect()
            return found["predicted" if fitted.decision is None else "decision"].to_list()

        with progress("learning", "learned from", done.quiet) as advance:
            return learn(fitted, ledger, rows, classes, answer=answer if how.on_error else None,
                         progress=advance)

    _note(change_by_ledger(model, lambda fitted: _collect(
        [_Table(fitted, source, input) for input in source.inputs], fitted, done.quiet), change),
        model, done.quiet)


def _forget_by_ledger(model: str, source: LabelledRows, done: ChangedModel) -> None:
    from textnb.filter.by_ledger import forget

    def change(fitted: Fitted, ledger: Ledger, rows: pl.DataFrame) -> Changes:
        with progress("forgetting", "forgot", done.quiet) as advance:
            return forget(fitted, ledger, rows, progress=advance)

    _note(change_by_ledger(model, lambda fitted: _collect(
        [_Table(fitted, source, input, may_lack_labels=True) for input in source.inputs], fitted,
        done.quiet), change), model, done.quiet)


def _collect(tables: list[_Table], fitted: Fitted, quiet: bool) -> pl.DataFrame:
    import polars as pl

    parts = []
    for table in tables:
        with table.reading():
            parts.append(collected(table.frame, fitted))
        table.malformed.refuse_unreadable()
        if not quiet:
            table.malformed(table.input)
    return pl.concat(parts, how="diagonal")


def _note(found: Changes, model: str, quiet: bool) -> None:
    if not quiet:
        note_changes(found)
        note(f"{quantity(len(found.fitted.classes), 'class')}, {_size(found.fitted)} -> {model}")
    note_stale(found.fitted)


@verb
def forget(
    file: ModelFile, source: LabelledRows, kept: LedgerOption, done: ChangedModel
) -> None:
    """Take learned rows out again: the model is that of a training without them."""
    from textnb.files.lock import lock_path
    from textnb.learning import fitting
    from textnb.storage.textmodel import load_fitted, save_fitted

    target = done.target(file.model)
    source.check(target)
    if uses_ledger(file.model, done.output, kept.ledger):
        _forget_by_ledger(file.model, source, done)
        return
    with lock_path(target):
        rest = load_fitted(file.model)
        tables = [_Table(rest, source, input) for input in source.inputs]
        with progress("forgetting", "forgot", done.quiet) as advance:
            for table in tables:
                with table.reading():
                    rest = fitting.forget(rest, table.frame, progress=advance)
        for table in tables:
            table.malformed.refuse_unreadable()
        save_fitted(rest, target)
    if not done.quiet:
        for table in tables:
            table.malformed(table.input)
        note(f"{classes_in_words(rest)}, {_size(rest)} -> {target}")
    note_stale(rest)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelFiles:
    """Models."""

    models: list[str] = argument("Model files of the same settings.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NewModel(Quiet):
    """Output."""

    output: str = setting(help="Model file to write.", names=("--output", "-o"), metavar="FILE")


@verb
def merge(files: ModelFiles, done: NewModel) -> None:
    """Add models: the result is that of one training on the documents of all."""
    from textnb.errors import ParameterError
    from textnb.files.replace import check_model_target
    from textnb.learning import merging
    from textnb.learning.fitting import counts_that_add
    from textnb.storage.textmodel import load_fitted, save_fitted

    models, output = files.models, done.output
    if len(models) < 2:
        raise ParameterError("merge adds two models or more: textnb merge A B -o C")
    check_model_target(output)
    total = load_fitted(models[0])
    for path in models[1:]:
        more = load_fitted(path)
        try:
            total = merging.merge(total, more)
        except ParameterError as error:
            raise ParameterError(f"{models[0]} and {path}: {error.command_line}") from None
    save_fitted(total, output)
    note_stale(total)
    if not done.quiet:
        documents = counts_that_add(total).documents
        note(f"{quantity(documents, 'document')}, {classes_in_words(total)}, "
             f"{_size(total)} -> {output}")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TwoModels(RowOptions):
    """Input."""

    a: str = argument("Model file.")
    b: str = argument("Model file, for example the same model after an update.")
    input: str | None = argument("Rows on which the decisions of both are compared.", None)


# Classes of a comparison that text shows; JSON has them all.
_SHOWN = 20


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DiffOutput(Results):
    """Output."""

    k: int = option("Terms per class.", "-k", default=10)


@verb
def diff(source: TwoModels, shown: DiffOutput) -> None:
    """Show how two models differ: classes, terms that moved most, decisions that change."""
    import polars as pl

    from textnb.cli.tables import frame_table, note_infinite, show
    from textnb.errors import ParameterError
    from textnb.evaluation.comparison import compare_models
    from textnb.storage.textmodel import load_fitted

    input = source.input
    first, second = (load_fitted(path) for path in (source.a, source.b))
    frame = None
    if input is not None:
        columns = [*dict.fromkeys([*first.columns, *second.columns])]
        frame = rows(input, source, columns)
    elif source.where is not None or source.query is not None or source.storage_options:
        raise ParameterError("--where and --read are for the rows of INPUT: "
                             "name one")
    with reading(input or source.a):
        result = compare_models(first, second, frame, k=shown.k)
    if shown.results_format == "json":
        out(as_json(result.to_dict()))
        return
    many = result.classes.height > _SHOWN
    most = f", the {_SHOWN} of {result.classes.height:,} that drifted most" if many else ""
    classes = result.classes.sort(
        pl.col("drift").abs(), descending=True, nulls_last=True, maintain_order=True).head(
            _SHOWN) if many else result.classes
    show(frame_table(classes, title=f"documents and shares of the classes{most}"))
    terms = result.terms.filter(pl.col("class").is_in(classes["class"].implode()))
    for (name,), group in terms.group_by("class", maintain_order=True):
        show(frame_table(group.drop("class"), title=f"terms that moved most: {name}"))
    note_infinite(terms)
    out(f"{quantity(result.terms_gained, 'term')} gained, {result.terms_lost:,} lost")
    if input is None:
        return
    share = f" ({result.differing / result.documents:.2%})" if result.documents else ""
    out(f"{result.differing:,} of {result.documents:,} decisions flipped{share}")
    if result.differing:
        show(frame_table(result.flipped))
        show(frame_table(result.examples, title="some of them"))


class _Table:
    """The labelled rows of one input.

    Attributes
    ----------
    input : str
    frame : LazyFrame
    malformed : MalformedMail
    """

    def __init__(
        self, model: AnyModel, source: LabelledRows, input: str, *, may_lack_labels: bool = False,
    ) -> None:
        self.input, self._where = input, source.where
        self.frame, self.malformed = count_malformed(
            _labelled_rows(model, source, input, may_lack_labels), text_columns(model))

    def reading(self) -> AbstractContextManager[None]:
        """A context in which errors name the input."""
        return reading(self.input, self.frame, self._where)


def _labelled_rows(
    model: AnyModel, source: LabelledRows, input: str, may_lack_labels: bool = False
) -> pl.LazyFrame:
    """The input's rows with labels of the model's type: their own, or the class of ``--as``.

    With ``may_lack_labels``, rows without a label column and without ``--as`` have none.
    """
    import polars as pl

    from textnb.errors import ParameterError, SchemaError
    from textnb.frames.texts import labels_as

    column, label = model.label, source.as_class
    known = classes_of(model).tolist()
    try:
        frame = rows(input, source, text_columns(model),
                     column if label is None else None, features_of(model))
    except SchemaError as error:
        if error.missing_role != "label":
            raise
        if may_lack_labels:
            return rows(input, source, text_columns(model))
        raise SchemaError(f"{error.problem}; where all rows are of one class, say "
                          "--as CLASS") from None
    dtype = pl.Series(known).dtype
    if label is not None and column in frame.collect_schema():
        raise ParameterError(f"--as is for rows without labels, and the input has a column "
                             f"{column!r}: leave out --as, or choose the rows with --where and "
                             "write them without that column")
    is_multilabel = holds_lists(model)
    if label is not None:
        one = pl.lit(parse_label(label, type(known[0])), dtype=dtype)
        return frame.with_columns(
            (pl.concat_list(one) if is_multilabel else one).alias(column))
    if isinstance(frame.collect_schema()[column], pl.List):
        # What learns compares with the model.
        return frame.with_columns(pl.col(column).cast(pl.List(dtype)) if is_multilabel else column)
    return frame.with_columns(labels_as(column, frame, dtype).alias(column))


def _size(model: AnyModel) -> str:
    if text_columns(model) is not None:
        pruned = "" if model.pruned is None else f" ({model.pruned.describe()})"
        return quantity(len(model.terms), "term") + pruned
    return features_in_words(model)
