"""What a fitted classifier of texts answers: predictions, scores, terms, explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.forms import Floats, LinearForm, log_posterior
from textnb.bayes.parameters import SmoothingName
from textnb.bayes.pruning import Pruned
from textnb.bayes.statistics import check_int64
from textnb.errors import DataError, ParameterError
from textnb.estimators.base import margins
from textnb.estimators.fitted import Fitted, columns_of
from textnb.estimators.scoring import (
    Rows,
    answered_frame,
    coverage_of,
    explained,
    joint_scores,
    labels_of,
    matrices,
    possible_scores,
    posterior_scores,
    row_of,
)
from textnb.frames.batches import Progress
from textnb.frames.kinds import in_kind_of, in_memory, narrowed
from textnb.frames.scan import reading, scan
from textnb.frames.texts import is_table, labels_as
from textnb.learning.terms import TermStatistics
from textnb.scoring.columns import Answers
from textnb.scoring.explain import Explanation, explanation_table, top_terms
from textnb.scoring.scorer import Watch
from textnb.text.coverage import TermCoverage
from textnb.text.matrix import stacked
from textnb.text.spans import pieces_of

RECALIBRATED = "the model's calibration has changed since"


class TextAnswers(SmoothingName, ClassifierMixin, BaseEstimator):
    """What a classifier of texts answers from its fitted state, which each method reads once."""

    text: str | Sequence[str]
    label: str
    _fitted: Fitted

    @property
    def fitted_(self) -> Fitted:
        """What `fit` made, and the settings that it was fitted with: one frozen value."""
        check_is_fitted(self)
        return self._fitted

    @property
    def classes_(self) -> NDArray[Any]:
        return self.fitted_.classes

    @property
    def estimator_(self) -> Any:
        return self.fitted_.estimator

    @property
    def calibration_(self) -> Calibration | None:
        return self.fitted_.calibration

    @property
    def decision_(self) -> Decision | None:
        return self.fitted_.decision

    @property
    def pruned_(self) -> Pruned | None:
        return self.fitted_.pruned

    @property
    def labels_beside_(self) -> bool:
        return self.fitted_.labels_beside

    @property
    def statistics_(self) -> TermStatistics:
        statistics = self.fitted_.statistics
        if statistics is None:
            raise AttributeError(f"{type(self.estimator_).__name__} keeps no counts that add")
        return statistics

    def predict(
        self, X: Rows, *, probability: bool = False, scores: bool = False, explain: int = 0,
        top: int = 0, progress: Progress | None = None,
    ) -> Any:
        """The most probable class of each document.

        Parameters
        ----------
        X : table, path, or sequence of str
            A table is a Polars DataFrame or LazyFrame, a pandas DataFrame, a PyArrow Table, a
            DuckDB relation, a dict of columns or a list of dicts.
        probability : bool
            Add ``probability``, P(predicted | text); and ``calibrated``, true, if the model is
            (see `set_calibration`).
        scores : bool
            Add ``scores``, a struct of log P(text, class), base e.
        explain : int
            Add ``explanation``, the N terms that speak most for or against the predicted
            class, against the runner-up: a list of (term, count, contribution), and one entry
            whose term is null for all other terms. ``score = intercept + Σ contribution`` is how
            far ``predicted`` is above ``runner_up``: log-odds where scores are log-probabilities,
            else a margin (`ComplementNB`, ``loss="hinge"``); all are columns.
        top : int
            Add ``top``, the K most probable classes, best first: a list of (class,
            probability); and ``calibrated`` likewise.
        progress : callable, optional
            Called with the number of rows of each batch that was scored.

        Returns
        -------
        table of the kind that came
            Every column of the input, ``predicted``, those asked for, and ``decision`` where the
            model has one (see `set_decision`): a class, or null for "unsure". A row that no class
            can have produced (``l = 0``) has nulls. A pandas DataFrame keeps its index and its
            types, a PyArrow Table its types. A path gives a LazyFrame; a DuckDB relation a PyArrow
            Table; a dict of columns and a list of dicts a Polars DataFrame.
        ndarray (n_documents,)
            For a sequence of str, a Series too. And for a table in memory where no column is asked
            for, if `fit` had its labels beside a table, ``fit(frame, y)``: scikit-learn passes them
            so, and its scorers and searches expect an array from `predict`.

        Raises
        ------
        SchemaError
            If the text column is missing, or a column of an answer's name is there.
        ImpossibleRowError
            Where an array is answered, and a row is impossible under every class.

        Warns
        -----
        UnknownTermsWarning
            Where many texts hold no known term. For a lazy frame the logger "textnb" tells it, when
            the frame is collected.
        """
        fitted = self.fitted_
        asked = bool(probability or scores or explain or top)
        if not is_table(X):
            if asked:
                raise ParameterError("probability, scores, explain and top add columns: pass a "
                                     "frame, e.g. pl.DataFrame({'text': texts})")
            return labels_of(fitted, X)
        if fitted.labels_beside and not asked and in_memory(X):
            predicted = labels_of(fitted, X)
            if progress is not None:
                progress(len(predicted))
            return predicted
        answers = Answers(bool(probability), bool(scores), explain, top)
        coverage, eager = coverage_of(fitted), in_memory(X)
        frame = answered_frame(
            fitted, X, answers, progress, coverage.add, None if eager else coverage.log)
        answered = in_kind_of(X, frame, fitted.settings.columns)
        if eager:
            coverage.warn()
        return answered

    def answered(
        self, X: Any, answers: Answers | None = None, progress: Progress | None = None,
        watch: Watch | None = None, done: Callable[[], None] | None = None,
    ) -> pl.LazyFrame:
        """As `predict` of a table, always lazy, and without a word on terms that are not known.

        Parameters
        ----------
        X : DataFrame, LazyFrame or path
        answers : Answers, optional
        progress : callable, optional
            As in `predict`.
        watch : callable, optional
            Called with each batch of rows and the csr_array of its known terms, from several
            threads.
        done : callable, optional
            Called each time that all rows were answered.
        """
        return answered_frame(self.fitted_, X, answers or Answers(), progress, watch, done)

    def coverage(self) -> TermCoverage:
        """A count of the texts of which this model knows no term, to be added to."""
        return coverage_of(self.fitted_)

    def used_counts(self, counts: sp.csr_array) -> sp.csr_array:
        """Counts of known terms as the weights meet them: presence, where that is what counts."""
        return self.fitted_.form.used(counts)

    def predict_joint_log_proba(self, X: Rows) -> Floats:
        """log P(text, class), base e: float64 (n_documents, n_classes)."""
        return joint_scores(self.fitted_, X)

    def predict_log_proba(self, X: Rows) -> Floats:
        """log P(class | text), base e, calibrated if the model is: (n_documents, n_classes)."""
        return log_posterior(possible_scores(posterior_scores(self.fitted_, X)))

    def predict_proba(self, X: Rows) -> Floats:
        """P(class | text), calibrated if the model is: float64 (n_documents, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Rows) -> Floats:
        """Log-odds of the second class for two, scores of all classes for more.

        Returns
        -------
        float64 (n_documents,) for two classes, (n_documents, n_classes) for more
            Base e, calibrated if the model is; above 0 where the second class is predicted.

        Raises
        ------
        ImpossibleRowError
            Where a row is impossible under every class.
        """
        return margins(possible_scores(posterior_scores(self.fitted_, X)))

    def set_calibration(self, calibration: Calibration | None) -> Self:
        """Divide scores by a temperature wherever probabilities are given; None takes it away.

        The most probable class stays the same. A decision is kept and marked stale, where it was
        chosen on other probabilities: see `Decision.stale`. `partial_fit`, `forget` and ``+`` mark
        both likewise, and `fit` drops both.
        """
        fitted = self.fitted_
        if calibration is not None and not isinstance(calibration, Calibration):
            raise ParameterError.out_of_range("calibration", "a Calibration, or None", calibration)
        decision = fitted.decision
        if decision is not None and calibration != fitted.calibration:
            decision = decision.as_stale(RECALIBRATED)
        self._fitted = fitted.answering_with(calibration, decision)
        return self

    def set_decision(self, decision: Decision | None) -> Self:
        """Answer by thresholds, in a column ``decision`` of predictions; None takes them away.

        Raises
        ------
        ParameterError
            If the thresholds are not those of the model's classes, or were chosen on scores that
            were calibrated where the model is not, or the other way round.
        """
        fitted = self.fitted_
        if decision is not None:
            if not isinstance(decision, Decision):
                raise ParameterError.out_of_range("decision", "a Decision, or None", decision)
            decision.check_classes(fitted.classes.tolist())
            scaled, asked = fitted.calibration is not None, decision.evidence.get("calibrated")
            # What is stale is known not to hold for these scores.
            if isinstance(asked, bool) and asked != scaled and not decision.stale:
                raise ParameterError(
                    f"the thresholds were chosen on scores that were {'' if asked else 'not '}"
                    f"calibrated, and the model is {'' if scaled else 'not '}calibrated: choose "
                    "them with calibration=model.calibration_")
        self._fitted = fitted.answering_with(fitted.calibration, decision)
        return self

    def scored(
        self, rows: pl.DataFrame, watch: Watch | None = None
    ) -> tuple[Floats, Floats]:
        """Scores of a batch of rows, and the counts that were scored in each.

        ``watch`` is called with the rows and the csr_array of their known terms.

        Returns
        -------
        scores : float64 (n_rows, n_classes)
            Joint log-probabilities, base e, not calibrated.
        lengths : float64 (n_rows,)
        """
        fitted = self.fitted_
        counts = fitted.scorer.vocabulary.counts(rows, fitted.settings.columns)
        if watch is not None:
            watch(rows, counts)
        return fitted.form.scores(counts), fitted.scorer.lengths(counts)

    def score(self, X: Rows, y: ArrayLike | None = None) -> float:
        """Accuracy, against ``y`` or the label column."""
        fitted = self.fitted_
        if y is not None:
            check_int64(y)
            predicted, actual = labels_of(fitted, X), np.asarray(y)
            if actual.shape != predicted.shape:
                raise DataError(f"{len(predicted)} documents and labels of shape {actual.shape}: "
                                "there must be one label per document")
            return float(np.mean(predicted == actual))
        if not is_table(X):
            raise ParameterError("y is needed where X is a sequence of texts")
        label, scorer = fitted.settings.label, fitted.scorer
        columns = fitted.settings.columns
        frame = scan(narrowed(X, [*columns, label]), text=columns, label=label)
        with reading(X):
            answered = scorer.frame(frame, Answers()).select(
                (pl.col("predicted") == labels_as(label, frame, scorer.labels.dtype))
                .fill_null(False).mean()).collect()
        return float(answered.item())

    def transform(self, X: Rows) -> sp.csr_array:
        """Counts of the vocabulary's terms: csr_array of int64 (n_documents, n_terms)."""
        fitted = self.fitted_
        counts = stacked(list(matrices(fitted, X)), len(fitted.terms))
        if fitted.settings.binary:
            counts.data[:] = 1
        return counts

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The terms, one per column of `transform`: object (n_terms,).

        Parameters
        ----------
        input_features : ignored
            For scikit-learn: what a text becomes does not depend on a column's name.
        """
        return np.array(self.vocabulary_, dtype=object)

    def linear_form(self) -> LinearForm:
        """Classes, terms, weights (terms x classes) and intercept: all that scoring needs."""
        fitted = self.fitted_
        return fitted.form.named(tuple(fitted.terms.to_list()))

    @property
    def vocabulary_(self) -> list[str]:
        """The terms, sorted, one per column."""
        terms: list[str] = self.fitted_.terms.to_list()
        return terms

    def top(self, k: int = 20, label: Any = None) -> pl.DataFrame:
        """The terms that tell each class best, from the counts.

        `MultinomialNB` and `ComplementNB` rank terms by the z-score of their log-odds in the class
        against all other classes, with the whole corpus as informative Dirichlet prior (Monroe,
        Colaresi and Quinn 2008, eq. 22: `textnb.bayes.keyness.dirichlet_z`); `BernoulliNB` by the
        z-score of the log-odds of two shares of documents (`textnb.bayes.keyness.proportion_z`).
        `NBLogisticRegression`, and any model of one class, rank terms by weight: the score for the
        class less the mean of the scores for the others (for two classes, log θ+ - log θ-).

        Parameters
        ----------
        k : int
            Terms per class.
        label : optional
            One class only.

        Returns
        -------
        DataFrame
            ``class``, ``term``, ``count`` in the class, ``weight`` (log base e), ``z`` (null where
            weights rank), and ``measure``, "z" or "weight": what the rows are ranked by, highest
            first.
        """
        fitted = self.fitted_
        return top_terms(fitted.estimator, fitted.form.weights, fitted.terms,
                         fitted.scorer.labels, k, label)

    def explain(
        self, text: str | Mapping[str, str], k: int = 20
    ) -> pl.DataFrame:
        """What decides one text: `predict(..., explain=k)` for it, one row per entry.

        Parameters
        ----------
        text : str, or mapping of str to str
            Of the first text column, or of several by their names; others are empty.
        k : int
            Terms to show.

        Returns
        -------
        DataFrame
            ``part`` ("intercept", "term", or "other terms"), ``term``, ``count``,
            ``contribution``. The contributions sum to how far ``predicted`` is above
            ``runner_up``, which stand in every row: log-odds where the model's scores are
            log-probabilities, else a margin. An intercept alone says that no term is known.
        """
        fitted = self.fitted_
        return explanation_table(
            explained(fitted, row_of(fitted, text), k), fitted.scorer.labels.dtype)

    def highlight(self, text: str | Mapping[str, str], k: int = 20) -> Explanation:
        """What decides one text, to look at: in a notebook, the text with its words coloured.

        Parameters
        ----------
        text : str, or mapping of str to str
            As in `explain`.
        k : int
            Terms in its table; the words are coloured by all terms.

        Returns
        -------
        Explanation

        Raises
        ------
        ImpossibleRowError
            If no class can have produced the text (``l = 0``).
        """
        fitted = self.fitted_
        columns, tokenizer = fitted.settings.columns, fitted.settings.tokenizer
        frame = row_of(fitted, text)
        row = explained(fitted, frame, k)
        tokens = frame.select(tokenizer.expr(columns).list.len()).item()
        whole = explained(fitted, frame, max(k, int(tokens)))["explanation"] if tokens else []
        pieces, _ = pieces_of(tokenizer, columns, frame.row(0, named=True),
                              {entry["term"]: entry["contribution"] for entry in whole})
        known = sum(entry["count"] for entry in whole)
        estimator = fitted.estimator
        nothing = "" if known else (
            f"no term of the text is known ({tokens:,} in it): the answer rests on "
            f"{estimator.without_terms}")
        score = row["intercept"] + sum(entry["contribution"] for entry in row["explanation"])
        return Explanation(
            row["predicted"], row["runner_up"], float(score), estimator.difference_name,
            explanation_table(row, fitted.scorer.labels.dtype), int(tokens), known, nothing, pieces)

    def input_columns(self, frame: pl.LazyFrame) -> list[str]:
        """The columns that are read; SchemaError where the frame lacks one."""
        scan(frame, text=self.text_columns)
        return self.text_columns

    @property
    def text_columns(self) -> list[str]:
        """The text columns, one or several: those of `fit`, once there was one."""
        if hasattr(self, "_fitted"):
            return list(self._fitted.settings.columns)
        return columns_of(self.text, self.label)

    @property
    def label_column(self) -> str:
        """The label column: that of `fit`, once there was one."""
        return self._fitted.settings.label if hasattr(self, "_fitted") else self.label
