"""A frame in, a frame out: tokenizer, vocabulary, statistic and form in one estimator.

    fit:      frame -> batches -> token codes -> TermStatistics -> limits -> estimator's form
    predict:  frame -> token codes -> CSR -> form -> the same frame with its answers
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from textnb.bayes.base import DiscreteNB
from textnb.bayes.choice import chosen_l
from textnb.bayes.discrete import CategoricalNB, MultinomialNB
from textnb.bayes.ratio import NBLogisticRegression
from textnb.bayes.statistics import is_auto
from textnb.classifier.answering import LEARNED_SINCE, OTHER_CLASSES, Rows, TextAnswers
from textnb.classifier.journal import logged
from textnb.classifier.learning import (
    Corpus,
    announced_labels,
    check_complete,
    check_known,
    check_reading,
    counted,
    counted_within,
    presence_above,
    weighed,
)
from textnb.classifier.leaving_out import LeavingOut
from textnb.classifier.limiting import check_memory_limit, check_unpruned, limited, pruned_of
from textnb.classifier.merging import carry_choices, check_alike
from textnb.errors import DataError, ParameterError
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
from textnb.manifest import TEXT_SETTINGS, Choices
from textnb.modelfile import TextEstimator, Weighed, pack_text
from textnb.scorer import Scorer
from textnb.store import write_archive
from textnb.terms import TermStatistics
from textnb.text.coverage import warn_of_lone_terms
from textnb.text.limited import Dropped
from textnb.text.matrix import Vocabulary
from textnb.text.tokens import Tokenizer
from textnb.text.vocabulary import Limits, given_vocabulary


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
    memory_limit : int, optional
        Bytes for the terms and their counts, beside what the process takes otherwise. Where they do
        not fit, counts go to temporary files meanwhile, and in the end the rarest terms are left
        out: all that occur no more than so often, as few as need be. What is kept has its exact
        counts, and depends on the documents alone; ``pruned_`` tells what was left out and how much
        that can change. Such a model can't learn more or forget; and `count`, as `partial_fit`,
        takes what its documents need.

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
        estimator: TextEstimator | None = None,
        *,
        text: str | Sequence[str] = "text",
        label: str = "label",
        tokenizer: Tokenizer = Tokenizer(),
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        vocabulary: Sequence[str] | None = None,
        binary: bool = False,
        memory_limit: int | None = None,
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
        self, X: Rows, y: ArrayLike | None = None, *, progress: Progress | None = None
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
        estimator = self._model()
        X = converted(X, [*self.text_columns, *([] if y is not None else [self.label])])
        if isinstance(estimator, DiscreteNB):
            learned, dropped = self._count_within(X, y, progress)
            l = self._choose(learned, X, y) if is_auto(estimator.l) else None
            self._settle(learned, anew=True, l=l, dropped=dropped)
            if self.vocabulary is None:
                self._warn_of_lone_terms(int(learned.total.sum()), learned.documents)
            self.labels_beside_ = labels_beside_table(X, y)
            return logged(self, "fit", started)
        given = None if self.vocabulary is None else given_vocabulary(self.vocabulary)
        with reading(X):
            rows = weighed(self._corpus(X, y, progress), self._limits(), given, self.binary)
        estimator.fit(rows.counts, rows.labels)
        if hasattr(self, "statistics_"):
            del self.statistics_
        self._equip(estimator, rows.terms, anew=True)
        if self.vocabulary is None:
            self._warn_of_lone_terms(
                int(estimator.statistics_.feature_count.sum()), len(rows.labels))
        self.labels_beside_ = labels_beside_table(X, y)
        return logged(self, "fit", started)

    def _warn_of_lone_terms(self, tokens: int, documents: int) -> None:
        warn_of_lone_terms(
            self._scorer.vocabulary.terms, self.estimator_.statistics_.feature_count.sum(axis=0),
            tokens, documents, self.tokenizer.analyzer == "word", stacklevel=3)

    def partial_fit(
        self, X: Rows, y: ArrayLike | None = None, classes: Iterable[Any] | None = None, *,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from more documents; the model is that of one `fit` on all of them, to the bit.

        Parameters
        ----------
        X, y, progress
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
        check_unpruned(getattr(self, "pruned_", None), "learning more")
        announced = announced_labels(classes)
        first = not hasattr(self, "estimator_")
        more = self._count(X, y, progress)
        if hasattr(self, "statistics_") or announced:
            known = [*(self.classes_.tolist() if hasattr(self, "classes_") else []), *announced]
            check_known(more.counts.classes.tolist(), known)
        total = self.statistics_ + more if hasattr(self, "statistics_") else more
        if announced:
            total = replace(total, counts=total.counts.with_classes(announced))
        self._settle(total)
        if first:
            self.labels_beside_ = labels_beside_table(X, y)
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
        check_is_fitted(self)
        self._check_adds()
        check_unpruned(self.pruned_, "forgetting")
        rest = self.statistics_ - self._count(X, y, progress)
        if not rest.documents:
            raise DataError("every document would be forgotten and no model would be left; "
                            "the model is unchanged")
        return logged(self._settle(rest), "forget", started)

    def __add__(self, other: TextClassifier) -> TextClassifier:
        """The model of both models' documents, as one `fit` on all of them would give it.

        Its calibration and decision are those of the first of the two that has any, marked stale.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        self._check_adds()
        chosen = check_alike(self, other)
        merged: TextClassifier = clone(self)
        merged._settle(self.statistics_ + other.statistics_, l=chosen)
        carry_choices(self, other, merged)
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: counts and settings, whole or not at all. See `textnb.load`."""
        check_is_fitted(self)
        settings = {name: getattr(self, name) for name in TEXT_SETTINGS}
        learned: TermStatistics | Weighed
        if isinstance(self.estimator_, NBLogisticRegression):
            learned = Weighed(self.estimator_, self._scorer.vocabulary.terms)
        else:
            learned = self.statistics_
        estimator = self.estimator_
        choices = Choices(self.calibration_, self.decision_,
                          estimator.l_ if is_auto(estimator.l) else None, self.pruned_)
        write_archive(path, *pack_text(settings, self.estimator_, learned, choices))

    def count(
        self, X: Rows, y: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> TermStatistics:
        """What `fit` would learn from the documents, as counts that add and subtract.

        The model is left as it was; `fit_statistics` learns from counts, or sums of them. All
        terms are counted: `memory_limit` is for sums, not for their parts.
        """
        return self._count(X, y, progress)

    def fit_statistics(self, statistics: TermStatistics) -> Self:
        """Learn from counts: the model is that of one `fit` on the documents, to the bit.

        Parameters
        ----------
        statistics : TermStatistics
            As `count` gives them, of a classifier of the same settings.
        """
        return self._settle(statistics, anew=True)

    def _check_adds(self) -> None:
        if not isinstance(self.estimator_, DiscreteNB):
            raise ParameterError(f"{type(self.estimator_).__name__} learns from all documents at "
                                 "once; it can't be added to or forget")

    def _count(self, X: Rows, y: ArrayLike | None, progress: Progress | None) -> TermStatistics:
        estimator = self._model()
        if not isinstance(estimator, DiscreteNB):
            raise ParameterError(f"{type(estimator).__name__} learns from all documents at "
                                 "once: fit (textnb train) it on all of them")
        with reading(X):
            return counted(self._corpus(X, y, progress), self._limits(),
                           presence_above(estimator, self.binary), self.binary)

    def _count_within(
        self, X: Rows, y: ArrayLike | None, progress: Progress | None
    ) -> tuple[TermStatistics, Dropped | None]:
        if self.memory_limit is None:
            return self._count(X, y, progress), None
        estimator, limits = self._model(), self._limits()
        with reading(X):
            return counted_within(self._corpus(X, y, progress), limits,
                                  presence_above(estimator, self.binary), self.binary,
                                  int(self.memory_limit))

    def _choose(self, statistics: TermStatistics, X: Rows, y: ArrayLike | None) -> float:
        """The ``l`` that ``l="auto"`` stands for, from the documents that were counted."""
        terms, limits = self._columns_of(statistics).terms, self._limits()
        held = self.vocabulary is not None or limits.max_features is not None
        estimator = self._model()
        leaving = LeavingOut.of(
            estimator, statistics, limits, terms if held else None, self.binary)
        with reading(X):
            return chosen_l(leaving.whole, list(leaving.rows(self._corpus(X, y, None))))

    def _columns_of(self, statistics: TermStatistics) -> TermStatistics:
        """The counts of the terms that get a column."""
        if self.vocabulary is not None:
            return statistics.over(given_vocabulary(self.vocabulary))
        statistics.check_terms(self.tokenizer.pattern)
        return statistics.within(self._limits())

    def _settle(
        self, statistics: TermStatistics, anew: bool = False, l: float | None = None,
        dropped: Dropped | None = None,
    ) -> Self:
        """Choose the vocabulary from the counts, and let the estimator derive its form."""
        if self.memory_limit is not None and dropped is None:
            statistics, dropped = limited(statistics, int(self.memory_limit), self._limits())
        chosen = self._columns_of(statistics)
        estimator = self._model()
        presence_above(estimator, self.binary)
        estimator.check_settings(len(chosen.terms), len(chosen.counts.classes))
        if l is None and is_auto(estimator.l):
            # What was chosen once is kept.
            l = getattr(getattr(self, "estimator_", None), "l_", None)
        estimator.fit_statistics(chosen.counts, l=l)
        classes = estimator.classes_.tolist()
        if len(classes) == 1:
            warnings.warn(f"only one class, {classes[0]!r}: every document will be given it",
                          stacklevel=3)
        self.statistics_ = statistics
        self._equip(estimator, chosen.terms, anew)
        self.pruned_ = pruned_of(dropped, estimator, chosen, self._limits())
        return self

    def _equip(self, estimator: TextEstimator, terms: pl.Series, anew: bool = False) -> Self:
        # A tokenizer that does not fit the columns says so here.
        self.tokenizer.expr(self.text_columns)
        self.estimator_, self.classes_ = estimator, estimator.classes_
        self._form = estimator.linear_form()
        if self.binary:
            self._form = replace(self._form, presence_above=0.0)
        calibration = None if anew else getattr(self, "calibration_", None)
        decision = None if anew else getattr(self, "decision_", None)
        if calibration is not None:
            calibration = calibration.as_stale(LEARNED_SINCE)
        if decision is not None:
            decision = decision.as_stale(LEARNED_SINCE)
        classes = self.classes_.tolist()
        if decision is not None and set(decision.thresholds) != set(classes):
            warnings.warn(OTHER_CLASSES, stacklevel=4)
            decision = None
        self.calibration_, self.decision_, self.pruned_ = calibration, decision, None
        self._scorer = Scorer(Vocabulary(self.tokenizer, terms), self._form,
                              pl.Series("label", classes), list(self.text_columns),
                              calibration, decision)
        return self

    @classmethod
    def restored(
        cls, settings: dict[str, Any], learned: TermStatistics | Weighed, choices: Choices
    ) -> Self:
        """The classifier that a model file describes."""
        model = cls(**settings)._restored(learned, choices.l)
        model.pruned_ = choices.pruned
        return model.set_calibration(choices.calibration).set_decision(choices.decision)

    def _restored(self, learned: TermStatistics | Weighed, l: float | None) -> Self:
        if isinstance(learned, TermStatistics):
            above = presence_above(self._model(), self.binary)
            check_complete(learned, self._limits(), above, self.binary)
            return self._settle(learned, l=l)
        return self._equip(learned.estimator, learned.terms)

    def _model(self) -> Any:
        estimator = MultinomialNB() if self.estimator is None else clone(self.estimator)
        if (not isinstance(estimator, (DiscreteNB, NBLogisticRegression))
                or isinstance(estimator, CategoricalNB)):
            raise ParameterError(
                "estimator must be MultinomialNB, BernoulliNB, ComplementNB or "
                f"NBLogisticRegression; got {type(estimator).__name__}")
        check_reading(estimator)
        return estimator

    def _limits(self) -> Limits:
        if not isinstance(self.binary, (bool, np.bool_)):
            raise ParameterError.out_of_range("binary", "True or False", self.binary)
        limits = Limits(self.min_df, self.max_df, self.max_features)
        check_memory_limit(self.memory_limit, self._model(), self.vocabulary is not None)
        if self.vocabulary is not None and limits != Limits():
            raise ParameterError("a given vocabulary is not limited: leave min_df, max_df and "
                                 "max_features at their defaults")
        return limits

    def _corpus(self, X: Rows, y: ArrayLike | None, progress: Progress | None) -> Corpus:
        frame = self._labelled(X, y).select([*self.text_columns, self.label])
        return Corpus(batches(frame, self.text_columns, progress=progress), self.tokenizer,
                      self.text_columns, self.label)

    def _labelled(self, X: Rows, y: ArrayLike | None) -> pl.LazyFrame | pl.DataFrame:
        if not is_table(X):
            if y is None:
                raise ParameterError("y is needed where X is a sequence of texts")
            return with_labels(table_of_texts(X, self.text_columns), y, self.label)
        if y is None:
            read = [*self.text_columns, self.label]
            return scan(narrowed(X, read), text=self.text_columns, label=self.label)
        frame = rows_in_memory(narrowed(X, self.text_columns), self.label)
        scan(frame, text=self.text_columns)
        return with_labels(frame, y, self.label)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
