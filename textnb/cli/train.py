"""The verb train: it learns a model from labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textnb.cli.console import note
from textnb.cli.evidence import note_blank
from textnb.cli.inputs import (
    LabelledInput,
    NewModel,
    first_of,
    note_columns_without_text,
    open_input,
    work_on,
)
from textnb.cli.options import TypedOptions, every_model, option, verb
from textnb.errors import VocabularyError
from textnb.learning.settings import MAIL_OPTIONS, ColumnSettings, LimitSettings, mail_recipe
from textnb.models.known import table_models, text_models
from textnb.workflow.models import save_model
from textnb.workflow.options import LearnOptions, TokenOptions


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Kind:
    """Model."""

    model: str = option(f"Of texts: {', '.join(text_models())}. Of feature tables: "
                        f"{', '.join(table_models())}. Mail is learned by {MAIL_OPTIONS}, "
                        "unless an option of text, tokens, limits or model is given.",
                        default="multinomial", metavar="KIND", python="kind")


_Every: Any = every_model(Kind)


class ModelOptions(_Every):
    """Model."""


@verb
def train(
    options: TypedOptions, rows: LabelledInput, columns: ColumnSettings, tokens: TokenOptions,
    kind: ModelOptions, limits: LimitSettings, learning: LearnOptions, output: NewModel,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    from textnb.cli.summary import training_lines
    from textnb.frames.scan import is_mail
    from textnb.workflow.train import check_training, for_mail, train, training_of

    output.check(rows.input)
    if not (output.quiet or "model" in options or mail_recipe(options)) and is_mail(
            rows.input, rows.format):
        note("note: an option of text, tokens, limits or model is given, so that mail is not "
             f"learned by {MAIL_OPTIONS}")
    training = for_mail(training_of(kind.model, options), options, rows.input, rows.format)
    check_training(training)
    table = open_input(rows.input, rows, training.columns.text if training.is_texts else None,
                       columns.label, learning.features, counts_texts=True)
    documents: list[int] = []
    with work_on(table, "training", "learned from", output.quiet,
                 "document" if training.is_texts else "row") as advance:
        def count_rows(number: int) -> None:
            documents.append(number)
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
    rows_read = sum(documents)
    if blank := table.textless(rows_read):
        from textnb.text.coverage import LEARNED_BLANK

        note_blank(blank, rows_read, LEARNED_BLANK)
    left_out = [] if training.is_texts or learning.features else [
        name for name in table.frame.collect_schema().names()
        if name not in (*trained.model.features_, columns.label)]
    if left_out:
        note(f"left out, because they do not hold numbers: {first_of(left_out)}; see --features")
    *lines, size = training_lines(trained)
    for line in lines:
        note(line)
    note(f"{size} -> {output.output}")
    if training.is_for_mail:
        note(f"mail is learned by {MAIL_OPTIONS}; any of these options asks for another model")
