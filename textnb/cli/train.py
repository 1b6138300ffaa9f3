"""The verb train: it learns a model from labelled rows.

The docstring of a class of options is the title of its group in ``--help``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note
from textnb.cli.evidence import note_blank
from textnb.cli.inputs import (
    LabelledInput,
    NewModel,
    first_names,
    note_columns_without_text,
    open_input,
    work_on,
)
from textnb.cli.options import TypedOptions, option, verb, with_model_settings
from textnb.cli.words import train_option
from textnb.errors import TextnbError, VocabularyError
from textnb.learning.settings import MAIL_OPTIONS, ColumnSettings, LimitSettings, mail_recipe
from textnb.models.known import table_models, text_models
from textnb.workflow.models import classes_of, save_model
from textnb.workflow.options import LearnOptions, TokenOptions

if TYPE_CHECKING:
    from textnb.workflow.rows import Rows

# A note recommends NBLinear instead of a new model that counts, if there are `_MIN_ROWS` rows or
# more and the model's accuracy is below `_HIGH_ACCURACY`. On 1,000 rows of eight corpora, NBLinear
# on pairs of words is 0.6 points worse to 27 better; on 200 short messages, up to 9 worse.
_HIGH_ACCURACY, _MIN_ROWS = 0.99, 1_000


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Kind:
    """Model."""

    model: str = option(f"Of texts: {', '.join(text_models())}. Of feature tables: "
                        f"{', '.join(table_models())}. Mail is learned by {MAIL_OPTIONS}, "
                        "unless an option of text, tokens, limits or model is given.",
                        default="multinomial", metavar="KIND", python_name="kind")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainOutput(NewModel):
    """Output."""

    checks_accuracy: bool = option(
        "Then read the rows once more, and say how many of them a model of all others answers "
        "rightly, where the model learns by counting.", "--check/--no-check", default=True)


_KindAndSettings: Any = with_model_settings(Kind)


# Type checkers take a class statement for a type, but not what a function returns.
class ModelOptions(_KindAndSettings):
    """Model."""


@verb
def train(
    typed: TypedOptions, rows: LabelledInput, columns: ColumnSettings, tokens: TokenOptions,
    kind: ModelOptions, limits: LimitSettings, learning: LearnOptions, output: TrainOutput,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    from textnb.cli.summary import training_lines
    from textnb.filter.verdict import SPAM
    from textnb.frames.scan import is_mail
    from textnb.workflow.train import check_training, make_train_options, train, use_mail_defaults

    output.check(rows.input, *filter(None, (learning.unlabelled, limits.vectors)))
    # `mail_recipe` has the default settings for mail; it is empty if the user sets one of them.
    has_own_settings = "model" not in typed and not mail_recipe(typed)
    if has_own_settings and not output.quiet and is_mail(rows.input, rows.format):
        note("note: an option of text, tokens, limits or model is given, so that mail is not "
             f"learned by {MAIL_OPTIONS}")
    training = use_mail_defaults(
        make_train_options(kind.model, typed), typed, rows.input, rows.format)
    check_training(training)
    table = open_input(rows.input, rows, training.columns.text if training.is_for_texts else None,
                       columns.label, learning.features, counts_texts=True)
    batch_sizes: list[int] = []
    with work_on(table, "training", "learned from", output.quiet,
                 "document" if training.is_for_texts else "row", phase="reading") as advance:
        def count_rows(number: int) -> None:
            batch_sizes.append(number)
            advance(number)

        try:
            trained = train(training, table.frame, count_rows)
        except VocabularyError:
            note_columns_without_text(table)
            raise
    table.refuse_unreadable()
    save_model(trained.model, output.output)
    if output.quiet:
        return
    note_columns_without_text(table)
    n_rows = sum(batch_sizes)
    if n_blank := table.n_without_text(n_rows):
        from textnb.text.coverage import CONSEQUENCE_IN_FIT

        note_blank(n_blank, n_rows, consequence=CONSEQUENCE_IN_FIT)
    left_out = [] if training.is_for_texts or learning.features else [
        name for name in table.frame.collect_schema().names()
        if name not in (*trained.model.features_, columns.label)]
    if left_out:
        note(f"left out, because they do not hold numbers: {first_names(left_out)}; see --features")
    *lines, summary = training_lines(trained)
    note(*lines, f"{summary} -> {output.output}")
    if learning.spam_class is None and is_mail(rows.input, rows.format) and (
            SPAM not in classes_of(trained.model)):
        classes = list(map(str, classes_of(trained.model)))
        # A model of more than two classes is not a spam filter: its classes must be joined.
        note(f"note: no class is called {SPAM}, which textnb filter looks for. " + (
            f"Train with --classes '{SPAM}=PATTERN,...', and others so, whose patterns match "
            f"{first_names(classes)}" if len(classes) > 2 else
            f"Name one of {first_names(classes)} with its --spam-class, or train with --classes "
            f"'{SPAM}=PATTERN,...', whose patterns match these names"))
    if training.is_for_mail:
        note(f"mail is learned by {MAIL_OPTIONS}; any of these options asks for another model")
    if output.checks_accuracy and training.is_for_texts:
        try:
            _check_accuracy(trained.model, table, n_rows, typed)
        except TextnbError as error:
            raise error.add_prefix(f"{output.output} is written, but was not checked: ") from error
    elif "checks_accuracy" in typed and output.checks_accuracy:
        note("note: not checked: a model of feature tables has no leave-one-out here")


def _check_accuracy(fitted: Any, table: Rows, n_rows: int, typed: TypedOptions) -> None:
    """Note the leave-one-out accuracy of a new model, and if another is usually more accurate.

    A model of lists of labels is checked only on request, as its rows are collected in memory.
    """
    from textnb.evaluation.leave_one_out import check_leave_one_out, leave_one_out

    accuracy, is_asked = None, "checks_accuracy" in typed
    try:
        check_leave_one_out(fitted)
    except TextnbError as error:
        if is_asked:
            note(f"note: not checked by leave-one-out: {error.message(train_option)}")
    else:
        if is_asked or not fitted.is_multilabel:
            with work_on(table, "checking", "checked", quiet=False) as advance:
                accuracy = leave_one_out(fitted, table.frame, progress=advance).accuracy
            note(f"leave-one-out {'subset ' if fitted.is_multilabel else ''}accuracy "
                 f"{accuracy:.4f} (one more pass; --no-check leaves it out)")
    in_memory = fitted.settings.memory_limit is None
    if fitted.model.from_counts and in_memory and "model" not in typed and (
            n_rows >= _MIN_ROWS) and (accuracy is None or accuracy < _HIGH_ACCURACY):
        note("usually more accurate: --model nblinear (no update, forget, merge)")
