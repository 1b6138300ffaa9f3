"""The verb train: it learns a model from labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, progress
from textnb.cli.evidence import note_periods
from textnb.cli.inputs import (
    InputOptions,
    LabelOptions,
    Quiet,
    TextColumns,
    check_apart,
    classes_in_words,
    count_malformed,
    reading,
    rows,
)
from textnb.cli.options import TypedOptions, every_model, option, verb
from textnb.errors import quantity
from textnb.learning.settings import (
    TABLE_MODELS,
    TEXT_MODELS,
    AgeingSettings,
    ColumnSettings,
    LimitSettings,
    TokenSettings,
    setting,
)

if TYPE_CHECKING:
    from textnb.bayes.event_model import Learned


@dataclass(frozen=True, kw_only=True)
class Features:
    """Input."""

    features: str | None = option(
        "Feature columns, such as x1,x2.  [default: all numeric ones]", metavar="X,X")
    weight: str | None = option(
        "Column of weights of the documents.", is_common=False, python="sample_weight")


@dataclass(frozen=True, kw_only=True)
class TrainInput(ColumnSettings, Features, LabelOptions, InputOptions):
    """Input."""


@dataclass(frozen=True, kw_only=True)
class TokenOptions(TokenSettings):
    """Tokens."""

    sklearn_tokens: bool = setting(
        False, "The tokens of scikit-learn's CountVectorizer.", is_common=False)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Model."""

    model: str = option(f"Of texts: {', '.join(TEXT_MODELS)}. Of feature tables: "
                        f"{', '.join(TABLE_MODELS)}.", default="multinomial", metavar="KIND")


_Every: Any = every_model(Kind)


class ModelOptions(_Every):
    """Model."""


@dataclass(frozen=True, kw_only=True)
class TrainOutput(Quiet):
    """Output."""

    output: str = setting(
        help="Model file to write.", names=("--output", "-o"), metavar="FILE")
    warm_start: str | None = option(
        "Model file (nblinear) from whose weights the solver begins: it ends sooner where rows "
        "are nearly those of that model.", is_common=False, metavar="MODEL", default=None)


@verb
def train(
    typed: TypedOptions, source: TrainInput, tokens: TokenOptions, kind: ModelOptions,
    limits: LimitSettings, ageing: AgeingSettings, done: TrainOutput,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    from textnb.cli import settings
    from textnb.errors import ParameterError
    from textnb.files.replace import check_model_target

    check_model_target(done.output)
    check_apart(source.input, done.output)
    settings.check_options(kind.model, typed)
    if kind.model in TABLE_MODELS and done.warm_start is not None:
        raise ParameterError("--warm-start is for --model nblinear")
    if kind.model in TABLE_MODELS:
        _train_table(typed, source, kind.model, done)
    else:
        _train_texts(typed, source, tokens, kind, limits, ageing, done)


def _train_texts(
    typed: TypedOptions, source: TrainInput, tokens: TokenOptions, kind: Any, limits: LimitSettings,
    ageing: AgeingSettings, done: TrainOutput,
) -> None:
    from textnb.cli import settings
    from textnb.errors import VocabularyError
    from textnb.learning.fitting import check_start, fit
    from textnb.learning.memory_limit import memory_size
    from textnb.learning.text_settings import TextSettings
    from textnb.storage.textmodel import load_fitted, save_fitted

    text: Any = source.text or "text"
    parameters = {
        "text": text, "label": source.label, "tokenizer": settings.tokenizer(tokens, typed),
        "min_df": limits.min_df, "max_df": limits.max_df, "max_features": limits.max_features,
        "binary": limits.binary,
        "memory_limit": memory_size(limits.memory_limit, "--memory-limit"), **vars(ageing)}
    model = settings.text_model(kind.model, typed)
    text_settings = TextSettings.of(model, **parameters)
    start = None
    if done.warm_start is not None:
        start = load_fitted(done.warm_start)
        check_start(text_settings, start)
    frame = rows(source.input, source, text, source.label, multilabel=True)
    counted, note_count = count_malformed(frame, text)
    texts = TextColumns(counted, text)
    documents: list[int] = []
    with (reading(source.input, frame, source.where),
          progress("training", "learned from", done.quiet) as advance):
        def count_rows(rows: int) -> None:
            documents.append(rows)
            advance(rows)

        try:
            fitted = fit(text_settings, texts.frame, sample_weight=source.weight, start=start,
                         progress=count_rows)
        except VocabularyError:
            texts.warn_of_empty()
            raise
    note_count.refuse_unreadable()
    save_fitted(fitted, done.output)
    if done.quiet:
        return
    note_count(source.input)
    texts.warn_of_empty()
    without = texts.textless(sum(documents))
    if without:
        note(f"note: {quantity(without, 'row', 'holds', 'hold')} no text (null, empty or white "
             "space alone): learned in the shares of the classes, without terms")
    learned = quantity(len(fitted.terms), "term")
    if fitted.chosen_l is not None:
        learned += f", l = {fitted.chosen_l:g} (chosen by leave-one-out)"
    if fitted.learned.n_iter is not None:
        learned += f", {_passes(fitted.model.iterations, fitted.learned)}"
    if fitted.calibration is not None:
        learned += (f", temperature {fitted.calibration.temperature:.3g} (chosen on "
                    f"{quantity(fitted.calibration.documents, 'held-out document')})")
    if fitted.pruned is not None:
        note(fitted.pruned.describe())
    note_periods(fitted)
    note(f"{classes_in_words(fitted)}, {learned} -> {done.output}")


def _train_table(typed: TypedOptions, source: TrainInput, model: str, done: TrainOutput) -> None:
    import numpy as np

    from textnb.cli import settings
    from textnb.estimators.table import TableClassifier

    names = None if source.features is None else source.features.split(",")
    classifier = TableClassifier(
        settings.table_estimator(model, typed), features=names, label=source.label)
    frame = rows(source.input, source, None, source.label, names)
    counted, note_count = count_malformed(frame, None)
    with (reading(source.input, frame, source.where),
          progress("training", "learned from", done.quiet, "row") as advance):
        classifier.fit(counted, progress=advance)
    classifier.save(done.output)
    if done.quiet:
        return
    note_count(source.input)
    learned = (f"{quantity(len(classifier.feature_names_), 'feature')} "
               f"({_some(classifier.features_)})")
    left_out = [name for name in frame.collect_schema().names()
                if name not in classifier.features_ and name != source.label]
    if source.features is None and left_out:
        note(f"left out, because they do not hold numbers: {_some(left_out)}; see --features")
    chosen = classifier.estimator_.learned_settings().get("chosen")
    if model == "rda" and chosen:
        accuracy = classifier.estimator_.cv_accuracy_
        note(f"chosen: alpha {chosen[0]:g}, gamma {chosen[1]:g}"
             + ("" if accuracy is None else
                f", cross-validated accuracy {float(np.nanmax(accuracy)):.4f}"))
    note(f"{quantity(len(classifier.classes_), 'class')}, {learned} -> {done.output}")


def _passes(what: str, learned: Learned) -> str:
    if learned.validation_scores is None:
        return f"{what}: {learned.n_iter}"
    accuracy = max(learned.validation_scores.values())
    return f"{what}: {learned.n_iter} (accuracy on held-out rows {accuracy:.4f})"


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
