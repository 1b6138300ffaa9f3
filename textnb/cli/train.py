"""The verb train: it learns a model from labelled rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, progress
from textnb.cli.inputs import (
    InputOptions,
    LabelOptions,
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
from textnb.errors import quantity
from textnb.learning.settings import (
    FALSE_POSITIVES,
    MAIL_OPTIONS,
    ColumnSettings,
    LimitSettings,
    mail_recipe,
)
from textnb.models.known import table_models, text_models
from textnb.runtime.settings import setting
from textnb.text.token_settings import TokenSettings

if TYPE_CHECKING:
    from textnb.learning.fitted import Fitted


@dataclass(kw_only=True)
class Features:
    """Input."""

    features: str | None = option(
        "Feature columns, such as x1,x2.  [default: all numeric ones]", metavar="X,X")
    weight: str | None = option(
        "Column of weights of the documents.", is_common=False, python="sample_weight")


@dataclass(kw_only=True)
class TrainInput(ColumnSettings, Features, LabelOptions, InputOptions):
    """Input."""


@dataclass(frozen=True, kw_only=True)
class TokenOptions(TokenSettings):
    """Tokens."""

    sklearn_tokens: bool = setting(
        False, "The tokens of scikit-learn's CountVectorizer.", is_common=False)


@dataclass(kw_only=True)
class Kind:
    """Model."""

    model: str = option(f"Of texts: {', '.join(text_models())}. Of feature tables: "
                        f"{', '.join(table_models())}. Mail is learned by {MAIL_OPTIONS}, "
                        "unless an option of text, tokens, limits or model is given.",
                        default="multinomial", metavar="KIND")


_Every: Any = every_model(Kind)


class ModelOptions(_Every):
    """Model."""


@dataclass(kw_only=True)
class TrainOutput(Quiet):
    """Output."""

    output: str = setting(
        help="Model file to write.", names=("--output", "-o"), metavar="FILE")
    warm_start: str | None = option(
        "Model file (nblinear) from whose weights the solver begins: it ends sooner where rows "
        "are nearly those of that model.", is_common=False, metavar="MODEL", default=None)
    keep_sample: int | None = option(
        "Keep the terms, not the text, of the N documents that the model is least sure of "
        "(nblinear --no-idf, as for mail): update and forget then refit the weights. Only the "
        "owner may read the file.", metavar="N")


@dataclass(kw_only=True)
class Threshold:
    """Threshold."""

    false_positives: float | None = option(
        "Choose a threshold, such that at most this share of what is not spam is taken for spam "
        "(nblinear, two classes); 0 for none.  "
        f"[default: {FALSE_POSITIVES:g} for mail without --model and the like]", metavar="N")
    confidence: float = option("Confidence of that guarantee.", default=0.95, is_common=False)
    spam_class: str | None = option("Class that is spam.  [default: spam]", metavar="CLASS")


@verb
def train(
    typed: TypedOptions, source: TrainInput, tokens: TokenOptions, kind: ModelOptions,
    limits: LimitSettings, cutoff: Threshold, done: TrainOutput,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    from textnb.cli import settings
    from textnb.errors import ParameterError
    from textnb.files.replace import check_model_target

    check_model_target(done.output)
    check_apart(source.input, done.output)
    recipe = _recipe_of(typed, source)
    if recipe:
        typed = TypedOptions({**typed, **recipe})
        source, kind = replace(source, text=recipe["text"]), replace(kind, model=recipe["model"])
    settings.check_options(kind.model, typed)
    cutoff = _check_threshold(cutoff, kind.model, bool(recipe))
    if kind.model in table_models() and done.warm_start is not None:
        raise ParameterError("--warm-start is for --model nblinear")
    if kind.model in table_models() and done.keep_sample is not None:
        raise ParameterError("--keep-sample is for --model nblinear")
    if kind.model in table_models():
        _train_table(typed, source, kind.model, done)
        return
    _train_texts(typed, source, tokens, kind, limits, cutoff, done)
    if recipe and not done.quiet:
        note(f"mail is learned by {MAIL_OPTIONS}; any of these options asks for another model")


def _recipe_of(typed: TypedOptions, source: TrainInput) -> dict[str, Any]:
    """The settings of mail, if the input is mail and nobody typed others; else none."""
    recipe = mail_recipe(typed)
    if not recipe:
        return {}
    from textnb.frames.scan import is_mail

    return recipe if is_mail(source.input, source.format) else {}


def _check_threshold(cutoff: Threshold, model: str, is_default: bool) -> Threshold:
    """The threshold that is to be chosen, if any; ParameterError where it can't be."""
    from textnb.errors import ParameterError

    rate = cutoff.false_positives
    if rate is None:
        if not is_default and cutoff != Threshold():
            raise ParameterError("--spam-class and --confidence go with --false-positives")
        rate = FALSE_POSITIVES if is_default else 0.0
    kinds = [kind for kind, known in text_models().items() if known.scores_left_out]
    if rate and model not in kinds:
        raise ParameterError(f"--false-positives is for --model {', '.join(kinds)}, which scores "
                             "documents by models of others as it learns; for other models, use "
                             "textnb threshold")
    if not 0 < cutoff.confidence < 1:
        raise ParameterError.out_of_range("--confidence", "above 0 and below 1", cutoff.confidence)
    if not 0 <= rate < 1:
        raise ParameterError.out_of_range("--false-positives", "a share from 0 to 1", rate)
    return replace(cutoff, false_positives=rate or None)


def _decide(fitted: Fitted, cutoff: Threshold, is_asked: bool) -> tuple[Fitted, list[str]]:
    """The model with its threshold, and words on it; they say why there is none."""
    if cutoff.false_positives is None:
        return fitted, []
    # Imported here, as they take SciPy.
    from textnb.cli.evidence import decision_words
    from textnb.cli.settings import as_label
    from textnb.errors import TextnbError
    from textnb.evaluation.decisions import decide_by_fit
    from textnb.filter.verdict import SPAM

    try:
        spam = as_label(cutoff.spam_class or SPAM, fitted.classes, "--spam-class")
        fitted = decide_by_fit(fitted, spam, cutoff.false_positives, confidence=cutoff.confidence)
    except TextnbError as error:
        if is_asked:
            raise
        return fitted, [f"note: no threshold was chosen: log-odds above 0 decide. {error}"]
    assert fitted.decision is not None
    unit = "log-odds" if fitted.calibration else fitted.model.difference_name
    return fitted, list(decision_words(fitted.decision, unit))


def _train_texts(
    typed: TypedOptions, source: TrainInput, tokens: TokenOptions, kind: Any, limits: LimitSettings,
    cutoff: Threshold, done: TrainOutput,
) -> None:
    from textnb.cli import settings
    from textnb.errors import VocabularyError
    from textnb.learning.fitting import check_start, fit
    from textnb.learning.memory_limit import memory_size
    from textnb.learning.text_settings import TextSettings
    from textnb.storage.textmodel import load_fitted, save_fitted

    text: Any = source.text
    parameters = {
        **vars(limits), "text": text, "label": source.label,
        "tokenizer": settings.tokenizer(tokens, typed),
        "memory_limit": memory_size(limits.memory_limit, "--memory-limit")}
    model = settings.model_of(kind.model, typed)
    text_settings = TextSettings.of(model, **parameters)
    start = None
    if done.warm_start is not None:
        start = load_fitted(done.warm_start)
        check_start(text_settings, start)
    frame = rows(source.input, source, text, source.label)
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
                         left_out=cutoff.false_positives is not None,
                         keep_sample=done.keep_sample, progress=count_rows)
        except VocabularyError:
            texts.warn_of_empty()
            raise
    note_count.refuse_unreadable()
    fitted, words = _decide(fitted, cutoff, "false_positives" in typed or "spam_class" in typed)
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
        learned += f", {fitted.model.iterations}: {fitted.learned.n_iter}"
    if fitted.calibration is not None:
        learned += (f", temperature {fitted.calibration.temperature:.3g} (chosen on "
                    f"{quantity(fitted.calibration.documents, 'held-out document')})")
    if fitted.pruned is not None:
        note(fitted.pruned.describe())
    for line in words:
        note(line)
    note(f"{classes_in_words(fitted)}, {learned} -> {done.output}")


def _train_table(typed: TypedOptions, source: TrainInput, model: str, done: TrainOutput) -> None:
    import numpy as np

    from textnb.classifiers.table import TableClassifier
    from textnb.cli import settings

    names = None if source.features is None else source.features.split(",")
    classifier = TableClassifier(
        settings.model_of(model, typed), features=names, label=source.label)
    frame = rows(source.input, source, None, source.label, names)
    counted, note_count = count_malformed(frame, None)
    with (reading(source.input, frame, source.where),
          progress("training", "learned from", done.quiet, "row") as advance):
        classifier.fit(counted, progress=advance)
    classifier.save(done.output)
    if done.quiet:
        return
    note_count(source.input)
    left_out = [name for name in frame.collect_schema().names()
                if name not in classifier.features_ and name != source.label]
    if source.features is None and left_out:
        note(f"left out, because they do not hold numbers: {first_of(left_out)}; see --features")
    fitted = classifier.estimator_
    if getattr(fitted, "cv_accuracy_", None) is not None:
        note(f"chosen: alpha {fitted.alpha_:g}, gamma {fitted.gamma_:g}, cross-validated accuracy "
             f"{float(np.nanmax(fitted.cv_accuracy_)):.4f}")
    note(f"{quantity(len(classifier.classes_), 'class')}, {features_in_words(classifier)} "
         f"-> {done.output}")
