"""A frame in, a frame out: tokenizer, vocabulary, statistic and form in one estimator.

    fit:      frame -> batches -> token codes -> TermStatistics -> limits -> estimator's form
    predict:  frame -> token codes -> CSR -> form -> the same frame with its answers
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import polars as pl
from numpy.typing import ArrayLike
from sklearn.base import clone

from textnb.bayes.choice import chosen_l
from textnb.bayes.statistics import is_auto
from textnb.errors import DataError, ParameterError
from textnb.estimators.answering import TextAnswers
from textnb.estimators.base import DiscreteNB
from textnb.estimators.fitted import Fitted, TextSettings, fit_from_counts, scorer_of
from textnb.estimators.journal import logged
from textnb.estimators.merging import check_alike, with_choices
from textnb.estimators.naive_bayes import MultinomialNB
from textnb.estimators.ratio import NBLogisticRegression
from textnb.estimators.scoring import Rows
from textnb.frames.batches import Progress, batches
from textnb.frames.kinds import converted, narrowed
from textnb.frames.scan import reading, scan
from textnb.frames.texts import (
    is_table,
    labels_beside_table,
    rows_in_memory,
    table_of_texts,
    with_labels,
)
from textnb.frames.weights import weight_column, with_weights
from textnb.learning.documents import (
    Corpus,
    announced_labels,
    check_complete,
    check_known,
    counted,
    counted_within,
    weighed,
)
from textnb.learning.leave_one_out import LeavingOut
from textnb.learning.memory_limit import check_unpruned
from textnb.learning.terms import TermStatistics
from textnb.runtime.memory import clear_memory_errors
from textnb.storage.archive import write_archive
from textnb.storage.manifest import Choices
from textnb.storage.textmodel import Weighed, pack_text
from textnb.text.coverage import warn_of_lone_terms
from textnb.text.limited import Dropped
from textnb.text.tokens import Tokenizer

Weight = str | ArrayLike | None


class TextClassifier(TextAnswers):
    """A naive Bayes classifier of documents in a table.

    Parameters
    ----------
    estimator : MultinomialNB, BernoulliNB, ComplementNB or NBLogisticRegression, optional
        The model on counts; `MultinomialNB()` if not given. It is cloned. The first three learn in
        bounded memory; the last needs the matrix of all documents.
    text : str or sequence of str
        Name of the text column, or names of several.
    label : str
        Name of the label column: strings, integers, booleans or categories.
    tokenizer : Tokenizer
    min_df, max_df : int or float
        Keep terms that occur in at least / at most so many documents (int), or such a share of
        them (float).
    max_features : int, optional
        Keep the most frequent terms; ties go to the smaller term.
    vocabulary : sequence of str, optional
        Count these terms alone; the limits above must then be left alone.
    binary : bool
        Count a term once per document.
    memory_limit : int or str, optional
        Bytes, or a size such as ``"500M"``, for the terms and their counts, beside what the process
        takes otherwise. Where they do not fit, counts go to temporary files meanwhile, and in the
        end the rarest terms are left out: all that occur no more than so often, as few as need be.
        What is kept has its exact counts, and depends on the documents alone; ``pruned_`` tells
        what was left out and how much that can change. Such a model can't learn more or forget; and
        `count`, as `partial_fit`, takes what its documents need.

    Attributes
    ----------
    classes_ : (n_classes,)
    vocabulary_ : list of str
        Sorted, one term per column.
    estimator_ : the fitted model on counts
    calibration_ : Calibration or None
        See `set_calibration`.
    decision_ : Decision or None
        See `set_decision`.
    pruned_ : Pruned or None
        What `memory_limit` left out: ``terms``, ``occurrences``, ``at_most``, and the most that
        log-odds can differ for that: ``intercept``, ``per_kept_term``, ``per_pruned_term``.
    labels_beside_ : bool
        Whether labels came beside a table and not in it: `predict` then answers tables in memory by
        arrays. It is no part of a model file.
    statistics_ : TermStatistics
        Counts of all terms, those outside the limits too (but for `memory_limit`): it is what adds
        and subtracts.
        `NBLogisticRegression` has none.

    Examples
    --------
    >>> import polars as pl
    >>> from textnb import MultinomialNB
    >>> train = pl.DataFrame({
    ...     "text": ["Chinese Beijing Chinese", "Chinese Chinese Shanghai", "Chinese Macao",
    ...              "Tokyo Japan Chinese"],
    ...     "label": ["yes", "yes", "yes", "no"]})
    >>> model = TextClassifier(MultinomialNB(l=1.0)).fit(train)
    >>> model.predict(["Chinese Chinese Chinese Tokyo Japan"]).tolist()
    ['yes']
    >>> lazy = model.predict(pl.LazyFrame({"text": ["Tokyo"]}), probability=True)
    >>> lazy.collect().row(0)
    ('Tokyo', 'no', 0.5090909090909091)
    """

    def __init__(
        self,
        estimator: DiscreteNB | NBLogisticRegression | None = None,
        *,
        text: str | Sequence[str] = "text",
        label: str = "label",
        tokenizer: Tokenizer = Tokenizer(),
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        vocabulary: Sequence[str] | None = None,
        binary: bool = False,
        memory_limit: int | str | None = None,
    ):
        self.estimator = estimator
        self.text = text
        self.label = label
        self.tokenizer = tokenizer
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.vocabulary = vocabulary
        self.binary = binary
        self.memory_limit = memory_limit

    def fit(
        self, X: Rows, y: ArrayLike | None = None, *, sample_weight: Weight = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from labelled documents, in one pass and in bounded memory.

        With ``l="auto"`` the documents are read twice, and the matrix of their counts is kept while
        ``l`` is chosen as `smoothing_path` does, by leave-one-out. (With ``max_features`` the terms
        stay those of all documents meanwhile.)

        Parameters
        ----------
        X : table, path, or sequence of str
            A table with the text and label columns (see `textnb.scan`), or the texts themselves.
        y : array (n_documents,), optional
            Labels, where X does not hold them: of texts, or beside a table in memory. Beside a
            table, as scikit-learn passes them, they also settle how `predict` answers a table.
        sample_weight : str or array (n_documents,), optional
            A column of the table, or weights beside texts or a table in memory: >= 0, not all 0.
            Counts are then float64, and the matrix of all documents is kept meanwhile; limits on
            terms do not weigh. Such a model learns more and adds, to rounding, but can't forget or
            leave documents out; ``l="auto"`` and `memory_limit` are refused.
        progress : callable, optional
            Called with the number of rows of each batch that was counted.

        Raises
        ------
        DataError
            If there are no rows, a label is null, or no term is left; with ``l="auto"``, also if
            there is one class, or no class has two documents.

        Warns
        -----
        UnknownTermsWarning
            If most of what was counted will not be met again: words were taken for a language that
            has no spaces between them, or too few documents or terms are left.
        """
        started = time.perf_counter()
        settings = TextSettings.of(self)
        read = [*settings.columns, *([] if y is not None else [settings.label])]
        X = converted(X, [*read, *([sample_weight] if isinstance(sample_weight, str) else [])])
        beside = labels_beside_table(X, y)
        if settings.counts:
            learned, dropped = self._count_within(settings, X, y, sample_weight, progress)
            auto = is_auto(settings.estimator.l)
            l = self._choose(settings, learned, X, y) if auto else None
            self._fitted = fit_from_counts(
                settings, learned, l=l, dropped=dropped, labels_beside=beside)
            _warn_of_lone_terms(self._fitted, int(learned.counts.feature_count.sum()),
                                learned.documents)
            return logged(self, "fit", started)
        with clear_memory_errors(), reading(X):
            rows = weighed(self._corpus(settings, X, y, progress, sample_weight),
                           settings.limits, settings.given, settings.binary)
        with clear_memory_errors(lambda: (len(set(rows.labels.tolist())), len(rows.terms))):
            estimator = clone(settings.estimator).fit(
                rows.counts, rows.labels, sample_weight=rows.weights)
        self._fitted = Fitted(settings, estimator, scorer_of(settings, estimator, rows.terms),
                              labels_beside=beside)
        _warn_of_lone_terms(self._fitted, int(estimator.statistics_.feature_count.sum()),
                            len(rows.labels))
        return logged(self, "fit", started)

    def partial_fit(
        self, X: Rows, y: ArrayLike | None = None, classes: Iterable[Any] | None = None, *,
        sample_weight: Weight = None, progress: Progress | None = None,
    ) -> Self:
        """Learn from more documents; the model is that of one `fit` on all of them, to the bit.

        Parameters
        ----------
        X, y, sample_weight, progress
            As in `fit`.
        classes : iterable, optional
            Announces classes. Without, the first batch announces its own.

        Raises
        ------
        DataError
            If a label was not announced; the model is then as it was.
        ParameterError
            If terms were left out for the model's `memory_limit`.
        """
        started = time.perf_counter()
        fitted = self._unchanged("learning more")
        settings = TextSettings.of(self) if fitted is None else fitted.settings
        check_unpruned(None if fitted is None else fitted.pruned, "learning more")
        announced = announced_labels(classes)
        more = self._counts(settings, X, y, progress, sample_weight)
        total = more
        if fitted is not None or announced:
            known = [*([] if fitted is None else fitted.classes.tolist()), *announced]
            check_known(more.counts.classes.tolist(), known)
        if fitted is not None and fitted.statistics is not None:
            total = fitted.statistics + more
        if announced:
            total = replace(total, counts=total.counts.with_classes(announced))
        self._fitted = fit_from_counts(
            settings, total, before=fitted, labels_beside=labels_beside_table(X, y))
        return logged(self, "partial_fit", started)

    def forget(
        self, X: Rows, y: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Take documents out again: the model is that of one `fit` without them, to the bit.

        Raises
        ------
        DataError
            If the documents can't all have been learned; the model is then as it was.
        """
        started = time.perf_counter()
        fitted = self._adding("forgetting")
        check_unpruned(fitted.pruned, "forgetting")
        if self.statistics_.has_weights:
            raise ParameterError("counts with sample weights are sums of real numbers, from which "
                                 "documents can't be subtracted exactly: fit again without them")
        rest = self.statistics_ - self._counts(fitted.settings, X, y, progress)
        if not rest.documents:
            raise DataError("every document would be forgotten and no model would be left; "
                            "the model is unchanged")
        self._fitted = fit_from_counts(fitted.settings, rest, before=fitted)
        return logged(self, "forget", started)

    def __add__(self, other: TextClassifier) -> TextClassifier:
        """The model of both models' documents, as one `fit` on all of them would give it.

        Its calibration and decision are those of the first of the two that has any, marked stale.
        """
        mine, theirs = self._adding("adding"), other._adding("adding")
        chosen = check_alike(mine, theirs)
        merged: TextClassifier = clone(self)
        total = fit_from_counts(mine.settings, self.statistics_ + other.statistics_, l=chosen)
        merged._fitted = with_choices(mine, theirs, total)
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: counts and settings, whole or not at all. See `textnb.load`.

        Raises
        ------
        ParameterError
            If parameters were set since `fit`: the file would hold them beside counts that were
            learned under others.
        """
        fitted = self.fitted_
        fitted.check_unchanged(self, "saving")
        learned = (Weighed(fitted.estimator, fitted.terms) if fitted.statistics is None
                   else fitted.statistics)
        choices = Choices(fitted.calibration, fitted.decision, fitted.chosen_l, fitted.pruned)
        write_archive(path, *pack_text(
            fitted.settings.parameters, fitted.estimator, learned, choices))

    def count(
        self, X: Rows, y: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> TermStatistics:
        """What `fit` would learn from the documents, as counts that add and subtract.

        The model is left as it was; `fit_statistics` learns from counts, or sums of them. All
        terms are counted: `memory_limit` is for sums, not for their parts.
        """
        fitted = self._unchanged("counting")
        settings = TextSettings.of(self) if fitted is None else fitted.settings
        return self._counts(settings, X, y, progress)

    def fit_statistics(self, statistics: TermStatistics) -> Self:
        """Learn from counts: the model is that of one `fit` on the documents, to the bit.

        Parameters
        ----------
        statistics : TermStatistics
            As `count` gives them, of a classifier of the same settings.
        """
        settings = TextSettings.of(self)
        l = self._fitted.chosen_l if hasattr(self, "_fitted") else None
        self._fitted = fit_from_counts(settings, statistics, l=l)
        return self

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of the estimator or tokenizer as ``estimator__l`` and such.

        They hold from the next `fit` on. Until then `predict` answers as before, and what would
        mix them with what was learned (`save`, `partial_fit`, ...) is refused.

        Raises
        ------
        ParameterError
            If the tokenizer has no such setting, or it is out of its range.
        ValueError
            If there is no such parameter.
        """
        prefix = "tokenizer__"
        nested = {name.removeprefix(prefix): parameters.pop(name)
                  for name in list(parameters) if name.startswith(prefix)}
        if nested:
            tokenizer = parameters.get("tokenizer", self.tokenizer)
            if not isinstance(tokenizer, Tokenizer):
                raise ParameterError.out_of_range("tokenizer", "a Tokenizer", tokenizer)
            # Tokenizers are frozen and shared, the default one too: this classifier gets another.
            parameters["tokenizer"] = tokenizer.with_params(**nested)
        # Settings of the model by default, which None stands for: it takes None's place.
        if parameters.get("estimator", self.estimator) is None and any(
                name.startswith("estimator__") for name in parameters):
            parameters["estimator"] = MultinomialNB()
        return super().set_params(**parameters)

    def check_unchanged(self, what: str) -> None:
        """Raises ParameterError where parameters were set since `fit`.

        Parameters
        ----------
        what : str
            What can't be done then, as the subject of a sentence.
        """
        self.fitted_.check_unchanged(self, what)

    def _unchanged(self, what: str) -> Fitted | None:
        """The fitted state, where there is one, once its settings are seen to be those of now."""
        fitted = self._fitted if hasattr(self, "_fitted") else None
        if fitted is not None:
            fitted.check_unchanged(self, what)
        return fitted

    def _adding(self, what: str) -> Fitted:
        fitted = self.fitted_
        fitted.check_unchanged(self, what)
        if fitted.statistics is None:
            raise ParameterError(f"{type(fitted.estimator).__name__} learns from all documents at "
                                 "once; it can't be added to or forget")
        return fitted

    def _counts(
        self, settings: TextSettings, X: Rows, y: ArrayLike | None, progress: Progress | None,
        sample_weight: Weight = None,
    ) -> TermStatistics:
        if not settings.counts:
            raise ParameterError(f"{type(settings.estimator).__name__} learns from all documents "
                                 "at once: fit (textnb train) it on all of them")
        with reading(X):
            return counted(self._corpus(settings, X, y, progress, sample_weight),
                           settings.limits, settings.presence_above, settings.binary)

    def _count_within(
        self, settings: TextSettings, X: Rows, y: ArrayLike | None, sample_weight: Weight,
        progress: Progress | None,
    ) -> tuple[TermStatistics, Dropped | None]:
        if sample_weight is not None and is_auto(settings.estimator.l):
            raise ParameterError("l='auto' leaves out one document at a time, and knows no "
                                 "weights: give l as a number, or no sample_weight")
        if sample_weight is not None and settings.memory_limit is not None:
            raise ParameterError("sample_weight keeps the matrix of all documents, which "
                                 "memory_limit can't bound: leave one of them out")
        if settings.memory_limit is None:
            return self._counts(settings, X, y, progress, sample_weight), None
        with reading(X):
            return counted_within(self._corpus(settings, X, y, progress), settings.limits,
                                  settings.presence_above, settings.binary, settings.memory_limit)

    def _choose(
        self, settings: TextSettings, statistics: TermStatistics, X: Rows, y: ArrayLike | None
    ) -> float:
        """The ``l`` that ``l="auto"`` stands for, from the documents that were counted."""
        terms, limits = settings.with_column(statistics).terms, settings.limits
        fixed = settings.given is not None or limits.max_features is not None
        leaving = LeavingOut.of(
            settings.estimator, statistics, limits, terms if fixed else None, settings.binary)
        with reading(X):
            return chosen_l(leaving.whole,
                            list(leaving.rows(self._corpus(settings, X, y, None))),
                            settings.estimator.scores_are_log_probabilities)

    @classmethod
    def restored(
        cls, parameters: dict[str, Any], learned: TermStatistics | Weighed, choices: Choices
    ) -> Self:
        """The classifier that a model file describes."""
        model = cls(**parameters)
        settings = TextSettings.of(model)
        if isinstance(learned, TermStatistics):
            check_complete(learned, settings.limits, settings.presence_above, settings.binary)
            fitted = fit_from_counts(settings, learned, l=choices.l)
        else:
            fitted = Fitted(settings, learned.estimator,
                            scorer_of(settings, learned.estimator, learned.terms))
        model._fitted = replace(fitted, pruned=choices.pruned)
        return model.set_calibration(choices.calibration).set_decision(choices.decision)

    def _corpus(
        self, settings: TextSettings, X: Rows, y: ArrayLike | None, progress: Progress | None,
        sample_weight: Weight = None,
    ) -> Corpus:
        columns, label = settings.columns, settings.label
        weight = weight_column(X, sample_weight, [*columns, label])
        more = [sample_weight] if isinstance(sample_weight, str) else []
        frame = with_weights(_labelled(settings, X, y, more), sample_weight, weight)
        frame = frame.select([*columns, label, *([] if weight is None else [weight])])
        return Corpus(batches(frame, columns, progress=progress), settings.tokenizer, columns,
                      label, weight)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _warn_of_lone_terms(fitted: Fitted, tokens: int, documents: int) -> None:
    settings = fitted.settings
    # Weighted counts do not tell which terms were met once.
    counts = fitted.estimator.statistics_
    if settings.given is None and counts.class_count.dtype.kind == "i":
        warn_of_lone_terms(
            fitted.terms, counts.feature_count.sum(axis=0), tokens,
            documents, settings.tokenizer.analyzer == "word")


def _labelled(
    settings: TextSettings, X: Rows, y: ArrayLike | None, more: list[str]
) -> pl.LazyFrame | pl.DataFrame:
    """The texts, their labels, and more columns of the table."""
    text, label = settings.columns, settings.label
    if not is_table(X):
        if y is None:
            raise ParameterError("y is needed where X is a sequence of texts")
        return with_labels(table_of_texts(X, text), y, label)
    if y is None:
        return scan(narrowed(X, [*text, label, *more]), text=text, label=label)
    frame = rows_in_memory(narrowed(X, [*text, *more]), label)
    scan(frame, text=text)
    return with_labels(frame, y, label)
