"""From labelled texts to a fitted model: learn, learn more, forget.

    texts and labels -> batches -> Counts -> terms within limits -> model -> Fitted

Each function returns a new `Fitted` and does not change its arguments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import polars as pl
from numpy.typing import ArrayLike

from textnb.bayes.calibration import LEARNED_SINCE
from textnb.bayes.choice import GRID, choose_l
from textnb.bayes.counts import Counts, weights_not_exact
from textnb.bayes.label_form import check_learns_labels
from textnb.bayes.learned import Learned
from textnb.bayes.statistics import is_auto
from textnb.errors import DataError, ParameterError
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import naming_source
from textnb.frames.kinds import convert_table, select_columns
from textnb.frames.scan import check_columns, scan
from textnb.frames.texts import (
    is_table,
    labels_are_separate,
    rows_in_memory,
    table_of_texts,
    with_labels,
)
from textnb.frames.token_columns import ListOfTokens
from textnb.frames.weights import named_columns, weight_column, with_weights
from textnb.learning.beside_weights import check_has_weights, update_counts
from textnb.learning.documents import (
    DocumentTermMatrix,
    LabelledBatches,
    announced_labels,
    check_known,
    count_documents,
    document_term_matrix,
)
from textnb.learning.fitted import Fitted, keep_choices
from textnb.learning.journal import log_learned
from textnb.learning.leave_one_out import LeaveOneOutReader
from textnb.learning.refitting import (
    add_sample,
    check_keep_sample,
    forget_rows,
    learn_more_rows,
    warm_start_from,
)
from textnb.learning.sharing import share_weights
from textnb.learning.text_settings import TextSettings
from textnb.learning.unlabelled import check_unlabelled
from textnb.models.base import Model
from textnb.runtime.caller import warn_caller
from textnb.runtime.memory import explaining_memory_errors
from textnb.runtime.progress import Size, current_progress
from textnb.text.counts import check_complete
from textnb.text.coverage import BlankTexts, warn_of_terms_seen_once
from textnb.text.limited import count_within, keep_within
from textnb.text.matrix import Vocabulary

RowWeights = str | ArrayLike | None
Result = TypeVar("Result")


def fit(
    settings: TextSettings, X: Any, y: ArrayLike | None = None, *, sample_weight: RowWeights = None,
    start: Fitted | None = None, left_out: bool = False, keep_sample: int | None = None,
    unlabelled: Any = None, progress: Progress | None = None, blank: BlankTexts | None = None,
) -> Fitted:
    """Learn from labelled texts: see `TextClassifier.fit`.

    Parameters
    ----------
    settings : TextSettings
    X, y, sample_weight, progress
        As in `TextClassifier.fit`.
    start : Fitted, optional
        A model from whose weights the solver begins.
    left_out : bool
        Keep out-of-fold scores of all documents in ``learned.left_out``, if the model
        `scores_left_out`.
    keep_sample : int, optional
        Keep this number of rows, from which weights are refitted: see `textnb.learning.refitting`.
    unlabelled : table, path, or sequence of str, optional
        Texts whose words get weights too: see `textnb.learning.unlabelled`.
    blank : BlankTexts, optional
        Counts the rows without a text.
    """
    started = time.perf_counter()
    if keep_sample is not None:
        check_keep_sample(settings, keep_sample, sample_weight is not None)
        if unlabelled is not None:
            raise ParameterError.naming_settings(
                "{keep_sample} and {unlabelled} exclude each other")
    if unlabelled is not None:
        check_unlabelled(settings)
    if start is not None:
        check_start(settings, start)
    columns = [*settings.columns, *([] if y is not None else [settings.label])]
    X = convert_table(X, [*columns, *named_columns(sample_weight)])

    def read(settings: TextSettings) -> LabelledBatches:
        return labelled_batches(settings, X, y, sample_weight, progress, blank)

    def learn(settings: TextSettings) -> tuple[Fitted, int, int]:
        """The model, and the numbers of tokens and documents that it was learned from."""
        if settings.model.from_counts:
            _check_weights(settings, sample_weight)
            with naming_source(X):
                statistics = _count(settings, read(settings))
            l = _choose_l(settings, statistics, X, y) if is_auto(settings.model.l) else None
            fitted = fit_from_counts(settings, statistics, l=l)
            return fitted, int(statistics.total_counts.sum()), statistics.documents
        with explaining_memory_errors(), naming_source(X):
            rows = document_term_matrix(read(settings), settings.vocabulary)
        return _fit_rows(settings, rows, start, left_out, keep_sample, unlabelled)

    fitted, n_tokens, n_documents = _learn_by_column_types(settings, learn)
    fitted = replace(fitted, has_separate_labels=labels_are_separate(X, y))
    # Counts with sample weights, which are not integers, do not show which terms occurred once.
    if settings.vocabulary is None and fitted.counts.class_count.dtype.kind == "i":
        warn_of_terms_seen_once(
            fitted.terms, fitted.counts.total_counts, n_tokens, n_documents,
            # In scripts without spaces, a phrase is one term unless the tokenizer splits it.
            phrases_are_words=not fitted.settings.tokenizer.splits_unspaced)
    _log("fit", started, fitted)
    return fitted


def learn_more(
    fitted: Fitted | None, settings: TextSettings, X: Any, y: ArrayLike | None = None,
    classes: Iterable[Any] | None = None, *, sample_weight: RowWeights = None,
    progress: Progress | None = None, blank: BlankTexts | None = None,
) -> Fitted:
    """Learn from more texts: see `TextClassifier.partial_fit`.

    Parameters
    ----------
    fitted : Fitted or None
        What was learned before.
    settings : TextSettings
        The settings of ``fitted``, or of a new model if that is None.
    X, y, classes, sample_weight, progress
        As in `TextClassifier.partial_fit`.
    blank : BlankTexts, optional
        Counts the rows without a text.
    """
    started = time.perf_counter()
    announced = announced_labels(classes)
    # A model whose weights are learned from rows keeps its weights while its counts change, or is
    # refitted on the sample of rows that it has.
    if fitted is not None and fitted.model.can_count_without_refit:
        if sample_weight is not None:
            raise ParameterError.naming_settings(
                "{sample_weight}: {model} learns more only from documents without weights; fit it "
                "again on all documents", model=fitted.model.name)
        check_has_weights(announced, fitted)
        learn = update_counts if fitted.sample is None else learn_more_rows
        with naming_source(X):
            updated = learn(
                fitted, labelled_batches(settings, X, y, progress=progress, blank=blank))
        _log("partial_fit", started, updated)
        return updated

    def count_more(settings: TextSettings) -> tuple[TextSettings, Counts]:
        return settings, count(
            settings, X, y, sample_weight=sample_weight, progress=progress, blank=blank)

    if fitted is None:
        settings, statistics = _learn_by_column_types(settings, count_more)
        if classes is not None:
            check_known(statistics.classes.tolist(), announced)
    else:
        _, more = count_more(settings)
        fitted.counts.check_same_kind(more)
        check_known(more.classes.tolist(), [*fitted.classes.tolist(), *announced])
        statistics = require_counts(fitted) + more
    if announced:
        statistics = statistics.with_classes(announced)
    updated = fit_from_counts(settings, statistics, before=fitted)
    if fitted is None:
        updated = replace(updated, has_separate_labels=labels_are_separate(X, y))
    _log("partial_fit", started, updated)
    return updated


def forget(
    fitted: Fitted, X: Any, y: ArrayLike | None = None, *, progress: Progress | None = None
) -> Fitted:
    """Forget texts: see `TextClassifier.forget`."""
    started = time.perf_counter()
    if fitted.model.can_count_without_refit:
        remove = partial(update_counts, forget=True) if fitted.sample is None else forget_rows
        with naming_source(X):
            updated = remove(fitted, labelled_batches(fitted.settings, X, y, progress=progress))
        _log("forget", started, updated)
        return updated
    statistics = require_counts(fitted)
    if statistics.has_weights:
        raise weights_not_exact()
    remaining = statistics - count(fitted.settings, X, y, progress=progress)
    if not remaining.documents:
        raise DataError("every document would be forgotten and no model would be left; "
                        "the model is unchanged")
    updated = fit_from_counts(fitted.settings, remaining, before=fitted)
    _log("forget", started, updated)
    return updated


def count(
    settings: TextSettings, X: Any, y: ArrayLike | None = None, *, sample_weight: RowWeights = None,
    progress: Progress | None = None, blank: BlankTexts | None = None,
) -> Counts:
    """Count texts as `fit` does: the counts add and subtract."""
    if not settings.model.from_counts:
        raise _not_additive_error(settings.model)
    with naming_source(X):
        return count_documents(labelled_batches(
            settings, X, y, sample_weight, progress, blank))


def require_counts(fitted: Fitted) -> Counts:
    """The counts of all terms; ParameterError for a model that learns from all rows at once."""
    if fitted.statistics is None:
        raise _not_additive_error(fitted.model)
    return fitted.statistics


def fit_from_counts(
    settings: TextSettings, statistics: Counts, *, l: float | None = None,
    before: Fitted | None = None,
) -> Fitted:
    """Fit a model to counts: choose the vocabulary, and derive the weights.

    If the counts are of lists of labels, each label is learned against the rows without it.

    Parameters
    ----------
    settings : TextSettings
    statistics : Counts
    l : float, optional
        The smoothing that was chosen, if the model's ``l`` is "auto".
    before : Fitted, optional
        The model before it learned more or forgot; its calibration and decision are kept, as stale.
    """
    shape = len(statistics.classes), statistics.n_features
    with explaining_memory_errors(lambda: shape):
        if settings.memory_limit is not None:
            statistics = keep_within(statistics, settings.memory_limit)
        counts, model = settings.select_terms(statistics), settings.model
        # Called for its error: the model, with its parameters, may not be for terms of texts.
        model.presence_above(settings.binary)
        model.check(counts.n_features, len(counts.classes))
        if l is None and before is not None:
            l = before.chosen_l
        learned = model.learn_counts(counts.as_columns(), l=l, binary=settings.binary)
        classes = learned.form.classes.tolist()
        if len(classes) == 1 and not learned.counts.is_multilabel:
            warn_caller(f"only one class, {classes[0]!r}: every document will be given it")
        fitted = Fitted(
            settings, Vocabulary(settings.tokenizer, counts.terms), learned, statistics)
        if before is None:
            return fitted
        fitted = replace(fitted, has_separate_labels=before.has_separate_labels)
        return keep_choices(before, fitted, LEARNED_SINCE)


def fit_from_file(settings: TextSettings, counts: Counts, l: float | None) -> Fitted:
    """Fit a model to the counts of a file.

    Raises
    ------
    DataError
        If counts that the settings need are missing, or contradict each other.
    """
    check_complete(counts, settings.count_spec)
    return fit_from_counts(settings, counts, l=l)


def fit_from_weights(settings: TextSettings, terms: pl.Series, learned: Learned) -> Fitted:
    """Make a model of weights that were learned from rows."""
    return Fitted(settings, Vocabulary(settings.tokenizer, terms), learned,
                  calibration=learned.calibration, decision=learned.decision)


def labelled_batches(
    settings: TextSettings, X: Any, y: ArrayLike | None = None, sample_weight: RowWeights = None,
    progress: Progress | None = None, blank: BlankTexts | None = None,
) -> LabelledBatches:
    """The texts and labels of a table, or of sequences, in batches.

    ``blank`` counts the rows without a text as they are read.

    Raises
    ------
    ParameterError
        If labels are lists, and the model is for one label per document.
    """
    columns, label = settings.columns, settings.label
    weight = weight_column(X, sample_weight, [*columns, label])
    rows = labelled_rows(settings, X, y, named_columns(sample_weight))
    frame = with_weights(rows, sample_weight, weight)
    frame = frame.select([*columns, label, *([] if weight is None else [weight])])
    has_lists = isinstance(frame.lazy().collect_schema()[label], pl.List)
    if has_lists and not settings.model.learns_labels:
        raise ParameterError.model_of_one_label(settings.model.name)
    frames = batches(frame, columns, progress=progress)
    return LabelledBatches(
        frames if blank is None else blank.count_while_reading(frames), settings.count_spec, weight)


def labelled_rows(
    settings: TextSettings, X: Any, y: ArrayLike | None, others: Sequence[str] = (),
) -> pl.LazyFrame | pl.DataFrame:
    """The texts, their labels, and other columns of the table: ``others`` names them."""
    text, label = settings.columns, settings.label
    if not is_table(X):
        if y is None:
            raise ParameterError("y is needed where X is a sequence of texts")
        return with_labels(table_of_texts(X, text, settings.token_columns), y, label)
    if y is None:
        return scan(select_columns(X, [*text, label, *others]), text=text, label=label,
                    tokens=settings.token_columns)
    frame = rows_in_memory(select_columns(X, [*text, *others]), label)
    check_columns(frame.lazy(), text=text, tokens=settings.token_columns)
    return with_labels(frame, y, label)


def _learn_by_column_types(
    settings: TextSettings, learn: Callable[[TextSettings], Result]
) -> Result:
    """Learn; if a text column holds lists of tokens, set ``token_columns`` and learn again.

    Types of columns are checked before any row is read, so no work is done twice.
    """
    try:
        return learn(settings)
    except ListOfTokens as error:
        if settings.tokenizer.token_columns is not False:
            raise
        columns = error.columns
    return learn(settings.with_token_columns(columns))


def _fit_rows(
    settings: TextSettings, rows: DocumentTermMatrix, start: Fitted | None, left_out: bool,
    keep_sample: int | None, unlabelled: Any,
) -> tuple[Fitted, int, int]:
    """The model that learns from rows, and the numbers of their tokens and documents."""
    if rows.labels.is_multilabel:
        # Subwords do not help with lists of labels.
        settings = settings.without_default_subwords()
    with explaining_memory_errors(lambda: (len(rows.labels.classes), len(rows.terms))):
        settings, rows, sharing = share_weights(settings, rows, unlabelled)
        options: dict[str, Any] = {}
        if start is not None:
            options["start"] = warm_start_from(start, rows.terms)
        if left_out and settings.model.scores_left_out:
            options["left_out"] = True
        if sharing is not None:
            options["sharing"] = sharing
        learned = settings.model.learn_rows(
            rows.counts, rows.labels, rows.weights, binary=settings.binary, **options)
    fitted = fit_from_weights(settings, rows.terms, learned)
    if keep_sample is not None:
        fitted = add_sample(fitted, rows.counts, rows.labels, keep_sample)
    return fitted, int(learned.counts.values.sum()), len(rows.labels)


def check_start(settings: TextSettings, start: Fitted) -> None:
    """Raise ParameterError if a model's solver can't begin from the weights of another one."""
    name = settings.model.name
    if settings.model.from_counts:
        raise ParameterError.with_advice(
            f"a warm start is for models with a solver, and {name} has none; it learns more, and "
            "forgets, exactly: ", "partial_fit, forget", "textnb update, textnb forget")
    if not settings.model.starts_warm:
        raise ParameterError(f"a warm start is for NBLinear; {name} begins anew each time")
    if start.model.name != name:
        raise ParameterError(f"a warm start begins from the weights of {name}; got those of "
                             f"{start.model.name}")


def _not_additive_error(model: Model) -> ParameterError:
    """The error if counts alone are not enough to learn more, forget or add models."""
    problem = f"{model.name} learns from all documents at once: "
    if not model.starts_warm:
        return ParameterError.with_advice(
            problem, "fit it on all of them", "textnb train learns it from all of them")
    return ParameterError.with_advice(
        problem, "fit(documents, warm_start=True), with all documents that it shall have learned, "
        "begins from its weights", "textnb train --warm-start MODEL, with all documents that it "
        "shall have learned, begins from its weights")


def _check_weights(settings: TextSettings, sample_weight: RowWeights) -> None:
    if sample_weight is not None and is_auto(settings.model.l):
        raise ParameterError.naming_settings(
            "{l='auto'} leaves out one document at a time, and knows no weights: give {l} as a "
            "number, or no {sample_weight}")
    if sample_weight is not None and settings.memory_limit is not None:
        raise ParameterError.naming_settings(
            "{sample_weight} keeps the matrix of all documents, which {memory_limit} can't bound: "
            "leave one of them out")


def _count(settings: TextSettings, documents: LabelledBatches) -> Counts:
    """Counts of all terms, or of those within the limit of memory."""
    if settings.memory_limit is None:
        return count_documents(documents)
    return count_within(documents.frames, documents.spec, settings.memory_limit)


def _choose_l(settings: TextSettings, statistics: Counts, X: Any, y: ArrayLike | None) -> float:
    """The ``l`` that ``l="auto"`` stands for, from the documents that were counted."""
    terms, limits, model = settings.select_terms(statistics).terms, settings.limits, settings.model
    if statistics.is_multilabel:
        # Any ``l`` above 0 fits lists of labels, and only such are tried.
        check_learns_labels(model, len(terms), l=1.0)
    # A given vocabulary, and the most frequent terms, are not chosen again without a document.
    is_fixed = settings.vocabulary is not None or limits.max_features is not None
    reader = LeaveOneOutReader(model, statistics, limits, fixed_terms=terms if is_fixed else None,
                               binary=settings.binary)
    progress = current_progress()
    progress.begin("choosing l", Size(statistics.documents))
    with naming_source(X):
        left_out = reader.leave_out(
            labelled_batches(settings, X, y, progress=progress.advance), smoothing=GRID)
        return choose_l(left_out, probabilistic=model.scores_are_log_probabilities)


def _log(verb: str, started: float, fitted: Fitted) -> None:
    log_learned(verb, started, lambda: fitted.summary)
