"""A fitted text classifier as one frozen value, which threads read once and `fit` replaces whole.

    TextSettings   what `fit` was asked for: checked, and copied from the classifier's parameters
    Fitted         those settings, and what `fit` made of them
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.forms import LinearForm
from textnb.bayes.pruning import Pruned
from textnb.bayes.statistics import is_auto
from textnb.errors import ParameterError
from textnb.estimators.changes import check_unchanged, copied
from textnb.estimators.event_estimator import check_reading
from textnb.estimators.naive_bayes import MultinomialNB
from textnb.estimators.texts import text_estimators
from textnb.learning.memory_limit import check_memory_limit, limited, memory_size, pruned_of
from textnb.learning.terms import TermStatistics
from textnb.runtime.caller import warn_caller
from textnb.runtime.memory import clear_memory_errors
from textnb.scoring.scorer import Scorer
from textnb.storage.manifest import TEXT_SETTINGS
from textnb.text.limited import Dropped
from textnb.text.matrix import Vocabulary
from textnb.text.tokens import Tokenizer
from textnb.text.vocabulary import Limits, given_vocabulary

LEARNED_SINCE = "the model has learned or forgotten documents since"
OTHER_CLASSES = ("the classes have changed: the decision, whose thresholds were for others, is "
                 "dropped")

@dataclass(frozen=True, eq=False)
class TextSettings:
    """What `fit` is asked for; a later change of the classifier's parameters does not reach it.

    Attributes
    ----------
    parameters : dict
        The classifier's, without its estimator: what a model file keeps.
    estimator : EventEstimator
        Not fitted; the one by default where none was given.
    columns : list of str
        The text columns.
    limits : Limits
    given : polars.Series or None
        The sorted terms of a given vocabulary.
    """

    parameters: dict[str, Any]
    estimator: Any
    columns: list[str]
    limits: Limits
    given: pl.Series | None

    @classmethod
    def of(cls, model: Any) -> TextSettings:
        """Those of a classifier's parameters, checked.

        Raises
        ------
        ParameterError
            If one is out of its range, or two exclude each other.
        """
        estimator = estimator_of(model.estimator)
        parameters = {name: copied(getattr(model, name)) for name in TEXT_SETTINGS}
        tokenizer, binary = parameters["tokenizer"], parameters["binary"]
        if not isinstance(tokenizer, Tokenizer):
            raise ParameterError.out_of_range("tokenizer", "a Tokenizer", tokenizer)
        if not isinstance(binary, (bool, np.bool_)):
            raise ParameterError.out_of_range("binary", "True or False", binary)
        limits = Limits(*(parameters[name] for name in ("min_df", "max_df", "max_features")))
        vocabulary = parameters["vocabulary"]
        parameters["memory_limit"] = memory_size(parameters["memory_limit"])
        check_memory_limit(parameters["memory_limit"], estimator, vocabulary is not None)
        if vocabulary is not None and limits != Limits():
            raise ParameterError("a given vocabulary is not limited: leave min_df, max_df and "
                                 "max_features at their defaults")
        columns = columns_of(parameters["text"], parameters["label"])
        # A tokenizer that does not fit the columns says so here.
        tokenizer.expr(columns)
        return cls(parameters, estimator, columns, limits,
                   None if vocabulary is None else given_vocabulary(vocabulary))

    @property
    def tokenizer(self) -> Tokenizer:
        tokenizer: Tokenizer = self.parameters["tokenizer"]
        return tokenizer

    @property
    def label(self) -> str:
        return str(self.parameters["label"])

    @property
    def binary(self) -> bool:
        return bool(self.parameters["binary"])

    @property
    def memory_limit(self) -> int | None:
        memory = self.parameters["memory_limit"]
        return None if memory is None else int(memory)

    @property
    def counts(self) -> bool:
        """Whether the estimator learns from counts alone, which add."""
        counts: bool = self.estimator.learns_from_counts
        return counts

    @property
    def presence_above(self) -> float | None:
        """The count above which a term counts as present; None where occurrences count."""
        above: float | None = self.estimator.presence_above(self.binary)
        return above

    def with_column(self, statistics: TermStatistics) -> TermStatistics:
        """The counts of the terms that get a column."""
        if self.given is not None:
            return statistics.over(self.given)
        statistics.check_terms(self.tokenizer.pattern)
        return statistics.within(self.limits)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What `fit` made, and what it was fitted with.

    Attributes
    ----------
    settings : TextSettings
    estimator : EventEstimator
        Fitted.
    scorer : Scorer
        Vocabulary, form, calibration and decision.
    statistics : TermStatistics or None
        Counts of all terms that were seen; None for an estimator that learns from all rows.
    pruned : Pruned or None
    labels_beside : bool
        Whether labels came beside a table and not in it.
    """

    settings: TextSettings
    estimator: Any
    scorer: Scorer
    statistics: TermStatistics | None = None
    pruned: Pruned | None = None
    labels_beside: bool = False

    @property
    def classes(self) -> NDArray[Any]:
        return self.scorer.form.classes

    @property
    def form(self) -> LinearForm:
        return self.scorer.form

    @property
    def terms(self) -> pl.Series:
        return self.scorer.vocabulary.terms

    @property
    def calibration(self) -> Calibration | None:
        return self.scorer.calibration

    @property
    def decision(self) -> Decision | None:
        return self.scorer.decision

    @property
    def chosen_l(self) -> float | None:
        """What ``l="auto"`` stands for; None where l was given."""
        return self.estimator.l_ if is_auto(self.settings.estimator.l) else None

    def answering_with(
        self, calibration: Calibration | None, decision: Decision | None
    ) -> Fitted:
        """The same with another calibration and decision."""
        return replace(self, scorer=replace(
            self.scorer, calibration=calibration, decision=decision))

    def check_unchanged(self, model: Any, what: str) -> None:
        """Raises ParameterError where the classifier's parameters are no longer those of `fit`.

        Parameters
        ----------
        model : TextClassifier
        what : str
            What can't be done then, as the subject of a sentence.
        """
        now = {**{name: getattr(model, name) for name in self.settings.parameters},
               "estimator": MultinomialNB() if model.estimator is None else model.estimator}
        # The limit that was fitted is bytes, also where it was set as a size in words.
        now = {**now, "memory_limit": memory_size(now.get("memory_limit"))}
        check_unchanged({**self.settings.parameters, "estimator": self.settings.estimator}, now,
                        self.estimator, what)


def fit_from_counts(
    settings: TextSettings, statistics: TermStatistics, *, l: float | None = None,
    dropped: Dropped | None = None, before: Fitted | None = None, labels_beside: bool = False,
) -> Fitted:
    """The model of counts: the vocabulary is chosen from them, and the form derived.

    Parameters
    ----------
    settings : TextSettings
    statistics : TermStatistics
    l : float, optional
        What was chosen, where the estimator's ``l`` is "auto".
    dropped : Dropped, optional
        What a memory limit has left out already.
    before : Fitted, optional
        The model that learned more, or forgot: its choices are kept, and marked stale.
    labels_beside : bool
        Whether the labels of a first fit came beside a table.
    """
    size = len(statistics.counts.classes), len(statistics.terms)
    with clear_memory_errors(lambda: size):
        return _fit_from_counts(settings, statistics, l, dropped, before, labels_beside)


def _fit_from_counts(
    settings: TextSettings, statistics: TermStatistics, l: float | None, dropped: Dropped | None,
    before: Fitted | None, labels_beside: bool,
) -> Fitted:
    if settings.memory_limit is not None and dropped is None:
        statistics, dropped = limited(statistics, settings.memory_limit, settings.limits)
    chosen = settings.with_column(statistics)
    estimator = clone(settings.estimator)
    estimator.presence_above(settings.binary)
    estimator.check_settings(len(chosen.terms), len(chosen.counts.classes))
    if l is None and before is not None:
        l = before.chosen_l
    estimator.fit_statistics(chosen.counts, l=l)
    classes = estimator.classes_.tolist()
    if len(classes) == 1:
        warn_caller(f"only one class, {classes[0]!r}: every document will be given it")
    calibration = None if before is None else before.calibration
    decision = None if before is None else before.decision
    if calibration is not None:
        calibration = calibration.as_stale(LEARNED_SINCE)
    if decision is not None:
        decision = decision.as_stale(LEARNED_SINCE)
    if decision is not None and set(decision.thresholds) != set(classes):
        warn_caller(OTHER_CLASSES)
        decision = None
    return Fitted(settings, estimator,
                  scorer_of(settings, estimator, chosen.terms, calibration, decision), statistics,
                  pruned_of(dropped, estimator, chosen, settings.limits),
                  labels_beside if before is None else before.labels_beside)


def scorer_of(
    settings: TextSettings, estimator: Any, terms: pl.Series,
    calibration: Calibration | None = None, decision: Decision | None = None,
) -> Scorer:
    """What scores documents by a fitted estimator of the terms' counts."""
    form = estimator.linear_form()
    if settings.binary:
        form = form.of_presence()
    return Scorer(Vocabulary(settings.tokenizer, terms), form,
                  pl.Series("label", form.classes.tolist()), list(settings.columns), calibration,
                  decision)


def estimator_of(given: Any) -> Any:
    """A copy of the estimator of a classifier of texts, not fitted.

    Raises
    ------
    ParameterError
        If it is none that learns from counts of terms.
    """
    if isinstance(given, type):
        raise ParameterError(
            f"estimator must be a model, and {given.__name__} is its class: {given.__name__}()")
    estimator = MultinomialNB() if given is None else clone(given)
    model = getattr(estimator, "event_model_type", None)
    if model is None or not model.of_terms:
        *names, last = text_estimators()
        raise ParameterError(f"estimator must be {', '.join(names)} or {last}; got "
                             f"{type(estimator).__name__}")
    check_reading(estimator)
    return estimator


def columns_of(text: Any, label: Any) -> list[str]:
    """The text columns, one or several.

    Raises
    ------
    ParameterError
        If they are no names of different columns, or the label's is among them.
    """
    columns = [text] if isinstance(text, str) else (
        list(text) if isinstance(text, (list, tuple)) else [])
    if not columns or not all(isinstance(name, str) for name in columns) or (
            len(set(columns)) < len(columns)):
        raise ParameterError.out_of_range("text", "a column, or several different ones", text)
    if not isinstance(label, str) or label in columns:
        raise ParameterError.out_of_range("label", "a column that is no text column", label)
    return columns
