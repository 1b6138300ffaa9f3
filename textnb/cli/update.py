"""The verbs that change a model, or compare two: update, forget, merge, diff.

The docstring of a class of options is the title of its group in ``--help``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, out, progress
from textnb.cli.evidence import note_stale
from textnb.cli.inputs import (
    KINDS_OF_INPUT,
    LabelledRowOptions,
    ModelFile,
    ModelOutput,
    NewModel,
    Results,
    RowOptions,
    describe_size,
    is_in_input,
    note_malformed,
    open_input,
    total_size,
    unit_of,
)
from textnb.cli.options import argument, option, verb
from textnb.errors import ParameterError, quantity
from textnb.workflow.one_message import learn_message, uses_ledger
from textnb.workflow.options import UpdateOptions

if TYPE_CHECKING:
    from textnb.filter.by_ledger import Changes
    from textnb.workflow.rows import Rows

_NOTHING_NEW = "learned before, or twice in the input: changed nothing"
# The maximum number of classes that diff shows as text; JSON has all.
_MAX_CLASSES = 20


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelledRows(LabelledRowOptions):
    """Input."""

    as_class: str | None = option("Class of all rows, for an input without a label column.",
                                  "--as", metavar="CLASS")
    inputs: list[str] = argument(f"{KINDS_OF_INPUT} Several are read one after the other.")


def check_named_once(inputs: list[str], counted: str) -> None:
    """Raise ParameterError for an input that is named twice, also by its folder or a glob."""
    paths: set[str] = set()
    # Folders and globs.
    groups = [input for input in inputs if not os.path.isfile(input)]
    for input in inputs:
        path = os.path.realpath(input)
        if path in paths or any(is_in_input(input, each) for each in groups if each != input):
            raise ParameterError(f"{input} is named twice, and its {counted} would count twice: "
                                 "name it once")
        paths.add(path)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LedgerOption:
    """Ledger."""

    ledger: bool = option(
        "Keep a ledger in MODEL.ledger, as textnb serve does: no message is learned twice, and one "
        "that is learned as another class is forgotten first. Once the file is there, it is used "
        "without this option.", default=False)


@verb
def update(
    file: ModelFile, rows: LabelledRows, options: UpdateOptions, ledger: LedgerOption,
    output: ModelOutput,
) -> None:
    """Learn more labelled rows: the model equals one that is trained on all rows."""
    target = output.target(file.model, *rows.inputs)
    check_named_once(rows.inputs, "rows")
    with_ledger = uses_ledger(file.model, output.output, ledger.ledger)
    options.check(with_ledger=with_ledger)
    # One message can be learned without Polars, unless it has to be judged first.
    if not (options.new_class or options.on_error) and _learn_message(
            file.model, rows, output, target, with_ledger):
        return
    from textnb.workflow import update as steps

    changes = _change(file.model, rows, output, target, with_ledger, "learning", "learned from",
                      partial(steps.update, options=options))
    if options.on_error and not with_ledger and not changes.n_learned:
        note("no row was misjudged: nothing to learn, and the model is unchanged")


@verb
def forget(file: ModelFile, rows: LabelledRows, ledger: LedgerOption, output: ModelOutput) -> None:
    """Forget rows: the model equals one that is trained without them."""
    from textnb.workflow import update as steps

    target = output.target(file.model, *rows.inputs)
    check_named_once(rows.inputs, "rows")
    _change(file.model, rows, output, target, uses_ledger(file.model, output.output, ledger.ledger),
            "forgetting", "forgot", steps.forget, forgets=True)


def _learn_message(
    model: str, rows: LabelledRows, output: ModelOutput, target: str, with_ledger: bool
) -> bool:
    """Learn one message without importing Polars; return False if that is not possible."""
    from textnb.files.lock import lock_path

    if rows.as_class is None or len(rows.inputs) > 1:
        return False
    with lock_path(target):
        start = time.monotonic()
        summary = learn_message(model, rows.inputs[0], rows, rows.as_class, target,
                                with_ledger=with_ledger)
    if summary is None:
        return False
    # The ledger says that the model has already learned the message as this class.
    if summary == "known":
        if not output.quiet:
            note(f"1 document {_NOTHING_NEW}")
        return True
    if not output.quiet:
        seconds = time.monotonic() - start
        note(f"learned from 1 document in {seconds:.2f} s ({1 / max(seconds, 1e-9):,.0f}/s)")
        if with_ledger:
            note("1 document learned")
        note(f"{quantity(summary.n_classes, 'class')}, {quantity(summary.n_terms, 'term')} -> "
             f"{target}")
    note_stale(summary)
    return True


def _change(
    model: str, rows: LabelledRows, output: ModelOutput, target: str, with_ledger: bool,
    activity: str, past_tense: str, step: Callable[..., Changes], *, forgets: bool = False,
) -> Changes:
    """Change a model file, and note the result.

    Parameters
    ----------
    model, target : str
        The file to read, and the one to write.
    rows : LabelledRows
    output : ModelOutput
    with_ledger : bool
        Whether the ledger of the model changes with it.
    activity, past_tense : str
        The verb for the progress, such as "learning" and "learned from".
    step : callable
        `update` or `forget` of `textnb.workflow.update`.
    forgets : bool
        Whether it is `forget`. With a ledger, the rows then need no labels.
    """
    from textnb.workflow.rows import labelled_rows
    from textnb.workflow.update import change_model

    inputs: list[Rows] = []

    def change(model: Any, ledger: Any) -> Changes:
        inputs.extend(labelled_rows(
            model, input, rows, rows.as_class, where=rows.where, note=note,
            may_lack_labels=forgets and with_ledger) for input in rows.inputs)
        with progress(activity, past_tense, output.quiet, unit_of(model),
                      size=lambda: total_size(inputs)) as advance:
            return step(model, inputs, ledger=ledger, progress=advance)

    # Models of feature tables can't forget.
    changes = change_model(model, target, change, with_ledger=with_ledger, texts_only=forgets)
    if not output.quiet:
        for table in inputs:
            note_malformed(table)
        for number, outcome in () if not with_ledger else (
                (changes.n_learned, "learned"),
                (changes.n_relearned, "learned as another class before: corrected"),
                (changes.n_forgotten, "forgotten"),
                (changes.n_known, _NOTHING_NEW),
                (changes.n_right, "judged rightly: not learned"),
                (changes.n_unknown, "not in the ledger: left as it is; --as CLASS forgets what was "
                                "learned without it")):
            if number:
                note(f"{quantity(number, 'document')} {outcome}")
        note(f"{describe_size(changes.fitted)} -> {target}")
    note_stale(changes.fitted)
    return changes


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelFiles:
    """Models."""

    models: list[str] = argument("Model files of the same settings.")


@verb
def merge(files: ModelFiles, output: NewModel) -> None:
    """Add models: the result equals one model that is trained on all their documents."""
    from textnb.learning import merging
    from textnb.learning.fitting import require_counts
    from textnb.storage.textmodel import load_fitted, save_fitted

    models, target = files.models, output.output
    if len(models) < 2:
        raise ParameterError("merge adds two models or more: textnb merge A B -o C")
    check_named_once(models, "documents")
    output.check()
    total = load_fitted(models[0])
    for path in models[1:]:
        other = load_fitted(path)
        try:
            total = merging.merge(total, other)
        except ParameterError as error:
            raise ParameterError(f"{models[0]} and {path}: {error.command_line}") from None
    save_fitted(total, target)
    note_stale(total)
    if not output.quiet:
        documents = require_counts(total).documents
        note(f"{quantity(documents, 'document')}, {describe_size(total)} -> {target}")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TwoModels(RowOptions):
    """Input."""

    a: str = argument("Model file.")
    b: str = argument("Model file, for example the same model after an update.")
    input: str | None = argument("Rows on which the decisions of both are compared.", None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DiffOutput(Results):
    """Output."""

    k: int = option("Terms per class.", "-k", default=10)


@verb
def diff(models: TwoModels, output: DiffOutput) -> None:
    """Show how two models differ: classes, terms that moved most, decisions that change."""
    import polars as pl

    from textnb.cli.tables import frame_table, note_infinite, show
    from textnb.evaluation.comparison import compare_models
    from textnb.storage.textmodel import load_fitted

    input = models.input
    first, second = (load_fitted(path) for path in (models.a, models.b))
    frame = None
    if input is not None:
        columns = [*dict.fromkeys([*first.columns, *second.columns])]
        frame = open_input(input, models, columns).frame
    elif not models.are_defaults:
        raise ParameterError("--where and --read are for the rows of INPUT: name one")
    from textnb.frames.failures import naming_source

    with naming_source(input or models.a):
        result = compare_models(first, second, frame, k=output.k)
    if output.write_json_if_asked(result.to_dict):
        return
    classes, title = result.classes, "documents and shares of the classes"
    if classes.height > _MAX_CLASSES:
        title += f", the {_MAX_CLASSES} of {classes.height:,} that drifted most"
        classes = classes.sort(pl.col("drift").abs(), descending=True, nulls_last=True,
                               maintain_order=True).head(_MAX_CLASSES)
    show(frame_table(classes, title=title))
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
