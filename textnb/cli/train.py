"""The verb train: it learns a model from labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note
from textnb.cli.inputs import (
    LabelledInput,
    NewModel,
    first_of,
    note_columns_without_text,
    rows,
    size_words,
    work_on,
)
from textnb.cli.options import TypedOptions, every_model, option, verb
from textnb.cli.words import as_option
from textnb.errors import VocabularyError, quantity
from textnb.learning.settings import MAIL_OPTIONS, ColumnSettings, LimitSettings
from textnb.models.known import table_models, text_models
from textnb.workflow.models import save_model
from textnb.workflow.options import LearnOptions, TokenOptions

if TYPE_CHECKING:
    from textnb.workflow.train import Trained


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
    typed: TypedOptions, source: LabelledInput, columns: ColumnSettings, tokens: TokenOptions,
    kind: ModelOptions, limits: LimitSettings, learning: LearnOptions, done: NewModel,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    from textnb.workflow.train import check_training, for_mail, train, training_of

    done.check(source.input)
    options = for_mail(training_of(kind.model, typed), typed, source.input, source.format)
    check_training(options)
    table = rows(source.input, source, options.columns.text if options.is_texts else None,
                 columns.label, learning.features, counts_texts=True)
    documents: list[int] = []
    with work_on(table, "training", "learned from", done.quiet,
                 "document" if options.is_texts else "row") as advance:
        def count_rows(rows: int) -> None:
            documents.append(rows)
            advance(rows)

        try:
            trained = train(options, table.frame, count_rows)
        except VocabularyError:
            note_columns_without_text(table)
            raise
    table.refuse_unreadable()
    save_model(trained.model, done.output)
    if done.quiet:
        return
    note_columns_without_text(table)
    if without := table.textless(sum(documents)):
        note(f"note: {quantity(without, 'row', 'holds', 'hold')} no text (null, empty or white "
             "space alone): learned in the shares of the classes, without terms")
    learned = _describe_texts(trained) if options.is_texts else ""
    if not options.is_texts:
        _describe_table(trained.model, table.frame.collect_schema().names())
    note(f"{size_words(trained.model)}{learned} -> {done.output}")
    if options.is_for_mail:
        note(f"mail is learned by {MAIL_OPTIONS}; any of these options asks for another model")


def _describe_texts(trained: Trained) -> str:
    """What was chosen as a model was trained; of its threshold there are notes."""
    fitted = trained.model
    learned = ""
    if fitted.chosen_l is not None:
        learned += f", l = {fitted.chosen_l:g} (chosen by leave-one-out)"
    if fitted.learned.n_iter is not None:
        learned += f", {fitted.model.iterations}: {fitted.learned.n_iter}"
    if fitted.calibration is not None:
        learned += (f", temperature {fitted.calibration.temperature:.3g} (chosen on "
                    f"{quantity(fitted.calibration.documents, 'held-out document')})")
    if trained.without_threshold is not None:
        why = trained.without_threshold.message(
            lambda setting: as_option(setting, f"--{setting.name.replace('_', '-')}", True))
        note(f"note: no threshold was chosen: log-odds above 0 decide. {why}")
    elif fitted.decision is not None:
        # Imported here, as it takes SciPy.
        from textnb.cli.evidence import decision_words

        unit = "log-odds" if fitted.calibration else fitted.model.difference_name
        for line in decision_words(fitted.decision, unit):
            note(line)
    return learned


def _describe_table(model: Any, columns: list[str]) -> None:
    """What was chosen as a table's model was trained, and columns that are left out, as notes."""
    import numpy as np

    left_out = [name for name in columns if name not in (*model.features_, model.label)]
    if model.features is None and left_out:
        note(f"left out, because they do not hold numbers: {first_of(left_out)}; see --features")
    fitted = model.estimator_
    if getattr(fitted, "cv_accuracy_", None) is not None:
        note(f"chosen: alpha {fitted.alpha_:g}, gamma {fitted.gamma_:g}, cross-validated accuracy "
             f"{float(np.nanmax(fitted.cv_accuracy_)):.4f}")
