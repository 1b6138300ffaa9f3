"""The verb train: it learns a model from labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, progress
from textnb.cli.inputs import (
    LabelledInput,
    Quiet,
    TextColumns,
    check_apart,
    classes_in_words,
    count_malformed,
    features_in_words,
    first_of,
    reading,
    rows,
)
from textnb.cli.options import TypedOptions, every_model, option, verb
from textnb.cli.words import as_option
from textnb.errors import quantity
from textnb.learning.settings import MAIL_OPTIONS, ColumnSettings, LimitSettings
from textnb.models.known import table_models, text_models
from textnb.runtime.settings import declared, setting
from textnb.text.token_settings import TokenSettings
from textnb.workflow.options import LearnOptions, TrainOptions

if TYPE_CHECKING:
    from textnb.workflow.train import Trained


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TokenOptions(TokenSettings):
    """Tokens."""

    sklearn_tokens: bool = setting(
        False, "The tokens of scikit-learn's CountVectorizer.", under="set")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Kind:
    """Model."""

    model: str = option(f"Of texts: {', '.join(text_models())}. Of feature tables: "
                        f"{', '.join(table_models())}. Mail is learned by {MAIL_OPTIONS}, "
                        "unless an option of text, tokens, limits or model is given.",
                        default="multinomial", metavar="KIND")


_Every: Any = every_model(Kind)


class ModelOptions(_Every):
    """Model."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainOutput(Quiet):
    """Output."""

    output: str = setting(
        help="Model file to write.", names=("--output", "-o"), metavar="FILE")


@verb
def train(
    typed: TypedOptions, source: LabelledInput, columns: ColumnSettings, tokens: TokenOptions,
    kind: ModelOptions, limits: LimitSettings, learning: LearnOptions, done: TrainOutput,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    from textnb.cli.settings import check_options, model_settings
    from textnb.files.replace import check_model_target
    from textnb.workflow.train import check_training, for_mail

    check_model_target(done.output)
    check_apart(source.input, done.output)
    check_options(kind.model, typed)
    parameters = model_settings(kind.model, typed)
    options = for_mail(TrainOptions(
        kind=kind.model, parameters=parameters, tokenizer=_tokenizer(typed), columns=columns,
        limits=limits, learning=learning), typed, source.input, source.format)
    check_training(options)
    if not options.is_texts:
        _train_table(options, source, done)
        return
    _train_texts(options, source, done)
    if options.is_for_mail and not done.quiet:
        note(f"mail is learned by {MAIL_OPTIONS}; any of these options asks for another model")


def _tokenizer(typed: TypedOptions) -> dict[str, Any]:
    """The settings of the tokenizer that were typed."""
    names = {field.name for field, _ in declared(TokenOptions)}
    found = {name: value for name, value in typed.items() if name in names}
    return found | ({"sklearn": True} if found.pop("sklearn_tokens", False) else {})


def _train_texts(options: TrainOptions, source: LabelledInput, done: TrainOutput) -> None:
    from textnb.errors import VocabularyError
    from textnb.storage.textmodel import save_fitted
    from textnb.workflow.train import train

    text: Any = options.columns.text
    frame = rows(source.input, source, text, options.columns.label)
    counted, note_count = count_malformed(frame, text)
    texts = TextColumns(counted, text)
    documents: list[int] = []
    with (reading(source.input, frame, source.where),
          progress("training", "learned from", done.quiet) as advance):
        def count_rows(rows: int) -> None:
            documents.append(rows)
            advance(rows)

        try:
            trained = train(options, texts.frame, count_rows)
        except VocabularyError:
            texts.warn_of_empty()
            raise
    note_count.refuse_unreadable()
    save_fitted(trained.model, done.output)
    if done.quiet:
        return
    note_count(source.input)
    texts.warn_of_empty()
    without = texts.textless(sum(documents))
    if without:
        note(f"note: {quantity(without, 'row', 'holds', 'hold')} no text (null, empty or white "
             "space alone): learned in the shares of the classes, without terms")
    _describe(trained, done.output)


def _describe(trained: Trained, output: str) -> None:
    fitted = trained.model
    learned = quantity(len(fitted.terms), "term")
    if fitted.chosen_l is not None:
        learned += f", l = {fitted.chosen_l:g} (chosen by leave-one-out)"
    if fitted.learned.n_iter is not None:
        learned += f", {fitted.model.iterations}: {fitted.learned.n_iter}"
    if fitted.calibration is not None:
        learned += (f", temperature {fitted.calibration.temperature:.3g} (chosen on "
                    f"{quantity(fitted.calibration.documents, 'held-out document')})")
    if fitted.pruned is not None:
        note(fitted.pruned.describe())
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
    note(f"{classes_in_words(fitted)}, {learned} -> {output}")


def _train_table(options: TrainOptions, source: LabelledInput, done: TrainOutput) -> None:
    import numpy as np

    from textnb.workflow.train import train

    names, label = options.learning.features, options.columns.label
    frame = rows(source.input, source, None, label, None if names is None else list(names))
    counted, note_count = count_malformed(frame, None)
    with (reading(source.input, frame, source.where),
          progress("training", "learned from", done.quiet, "row") as advance):
        classifier = train(options, counted, advance).model
    classifier.save(done.output)
    if done.quiet:
        return
    note_count(source.input)
    left_out = [name for name in frame.collect_schema().names()
                if name not in classifier.features_ and name != label]
    if names is None and left_out:
        note(f"left out, because they do not hold numbers: {first_of(left_out)}; see --features")
    fitted = classifier.estimator_
    if getattr(fitted, "cv_accuracy_", None) is not None:
        note(f"chosen: alpha {fitted.alpha_:g}, gamma {fitted.gamma_:g}, cross-validated accuracy "
             f"{float(np.nanmax(fitted.cv_accuracy_)):.4f}")
    note(f"{quantity(len(classifier.classes_), 'class')}, {features_in_words(classifier)} "
         f"-> {done.output}")
