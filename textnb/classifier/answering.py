"""What a fitted classifier of texts answers: predictions, scores, terms, explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from textnb.answers import Answers
from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.forms import Floats, LinearForm, log_posterior
from textnb.bayes.statistics import check_int64
from textnb.errors import DataError, ImpossibleRowError, ParameterError
from textnb.frames.batches import Progress, batches
from textnb.frames.kinds import in_kind_of, in_memory, narrowed
from textnb.frames.scan import Source, reading, scan
from textnb.frames.texts import is_table, labels_as, table_of_texts
from textnb.insight import Explanation, explanation_table, top_terms
from textnb.scorer import Scorer, Watch
from textnb.text.coverage import TermCoverage
from textnb.text.matrix import stacked
from textnb.text.spans import pieces_of
from textnb.text.tokens import Tokenizer
from textnb.threads import in_threads

Texts = Sequence[str | None] | NDArray[Any] | pl.Series
Rows = Source | Texts
LEARNED_SINCE = "the model has learned or forgotten documents since"
MERGED_SINCE = "it was chosen for one of the models that were added"
RECALIBRATED = "the model's calibration has changed since"
OTHER_CLASSES = ("the classes have changed: the decision, whose thresholds were for others, is "
                 "dropped")
# So few texts are scored without a frame, which would take longer than they do.
_FEW = 16


class TextAnswers(ClassifierMixin, BaseEstimator):
    """Prediction for a classifier of texts that has its columns, its form and its scorer."""

    text: str | Sequence[str]
    label: str
    tokenizer: Tokenizer
    binary: bool
    classes_: NDArray[Any]
    estimator_: Any
    calibration_: Calibration | None
    decision_: Decision | None
    _form: LinearForm
    _scorer: Scorer

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
            Add ``explanation``, the so many terms that speak most for or against the predicted
            class, against the runner-up: a list of (term, count, contribution), and one entry
            whose term is null for all other terms. ``score = intercept + Σ contribution`` is how
            far ``predicted`` is above ``runner_up``: log-odds where scores are log-probabilities,
            else a margin (`ComplementNB`, ``loss="hinge"``); all are columns.
        top : int
            Add ``top``, the so many most probable classes, best first: a list of (class,
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
        check_is_fitted(self)
        asked = bool(probability or scores or explain or top)
        if not is_table(X):
            if asked:
                raise ParameterError("probability, scores, explain and top add columns: pass a "
                                     "frame, e.g. pl.DataFrame({'text': texts})")
            return self._predicted_array(X)
        if getattr(self, "labels_beside_", False) and not asked and in_memory(X):
            predicted = self._predicted_array(X)
            if progress is not None:
                progress(len(predicted))
            return predicted
        answers = Answers(bool(probability), bool(scores), explain, top)
        coverage, eager = self.coverage(), in_memory(X)
        frame = self.answered(X, answers, progress, coverage.add, None if eager else coverage.log)
        answered = in_kind_of(X, frame, self.text_columns)
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
        check_is_fitted(self)
        return self._scorer.frame(
            scan(narrowed(X, self.text_columns), text=self.text_columns), answers or Answers(),
            progress, watch, done)

    def coverage(self) -> TermCoverage:
        """A count of the texts of which this model knows no term, to be added to."""
        return TermCoverage(self.text_columns, self.tokenizer.analyzer == "word")

    def used_counts(self, counts: sp.csr_array) -> sp.csr_array:
        """Counts of known terms as the weights meet them: presence, where that is what counts."""
        return self._form.used(counts)

    def predict_joint_log_proba(self, X: Rows) -> Floats:
        """log P(text, class), base e: float64 (n_documents, n_classes)."""
        check_is_fitted(self)
        return self._joint(X)

    def _joint(self, X: Rows, watch: Watch | None = None) -> Floats:
        return np.concatenate([
            np.empty((0, len(self.classes_))),
            *(self._form.scores(rows) for rows in self._matrices(X, watch))])

    def predict_log_proba(self, X: Rows) -> Floats:
        """log P(class | text), base e, calibrated if the model is: (n_documents, n_classes)."""
        check_is_fitted(self)
        parts = [np.empty((0, len(self.classes_)))]
        for rows in self._matrices(X):
            parts.append(self._scorer.posterior_scores(rows, self._form.scores(rows)))
        scores = np.concatenate(parts)
        self._check_possible(scores)
        return log_posterior(scores)

    def predict_proba(self, X: Rows) -> Floats:
        """P(class | text), calibrated if the model is: float64 (n_documents, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def set_calibration(self, calibration: Calibration | None) -> Self:
        """Divide scores by a temperature wherever probabilities are given; None takes it away.

        The most probable class stays the same. A decision is kept and marked stale, where it was
        chosen on other probabilities: see `Decision.stale`. `partial_fit`, `forget` and ``+`` mark
        both likewise, and `fit` drops both.
        """
        check_is_fitted(self)
        if calibration is not None and not isinstance(calibration, Calibration):
            raise ParameterError.out_of_range("calibration", "a Calibration, or None", calibration)
        if self.decision_ is not None and calibration != self.calibration_:
            self.decision_ = self.decision_.as_stale(RECALIBRATED)
        self.calibration_ = calibration
        self._scorer = replace(self._scorer, calibration=calibration, decision=self.decision_)
        return self

    def set_decision(self, decision: Decision | None) -> Self:
        """Answer by thresholds, in a column ``decision`` of predictions; None takes them away.

        Raises
        ------
        ParameterError
            If the thresholds are not those of the model's classes, or were chosen on scores that
            were calibrated where the model is not, or the other way round.
        """
        check_is_fitted(self)
        if decision is not None:
            if not isinstance(decision, Decision):
                raise ParameterError.out_of_range("decision", "a Decision, or None", decision)
            decision.check_classes(self.classes_.tolist())
            scaled, asked = self.calibration_ is not None, decision.evidence.get("calibrated")
            # What is stale is known not to hold for these scores.
            if isinstance(asked, bool) and asked != scaled and not decision.stale:
                raise ParameterError(
                    f"the thresholds were chosen on scores that were {'' if asked else 'not '}"
                    f"calibrated, and the model is {'' if scaled else 'not '}calibrated: choose "
                    "them with calibration=model.calibration_")
        self.decision_ = decision
        self._scorer = replace(self._scorer, decision=decision)
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
        check_is_fitted(self)
        counts = self._scorer.vocabulary.counts(rows, self.text_columns)
        if watch is not None:
            watch(rows, counts)
        return self._form.scores(counts), self._scorer.lengths(counts)

    def score(self, X: Rows, y: ArrayLike | None = None) -> float:
        """Accuracy, against ``y`` or the label column."""
        check_is_fitted(self)
        if y is not None:
            check_int64(y)
            predicted, actual = self._predicted_array(X), np.asarray(y)
            if actual.shape != predicted.shape:
                raise DataError(f"{len(predicted)} documents and labels of shape {actual.shape}: "
                                "there must be one label per document")
            return float(np.mean(predicted == actual))
        if not is_table(X):
            raise ParameterError("y is needed where X is a sequence of texts")
        read = [*self.text_columns, self.label]
        frame = scan(narrowed(X, read), text=self.text_columns, label=self.label)
        with reading(X):
            answered = self._scorer.frame(frame, Answers()).select(
                (pl.col("predicted") == labels_as(self.label, frame, self._scorer.labels.dtype))
                .fill_null(False).mean()).collect()
        return float(answered.item())

    def transform(self, X: Rows) -> sp.csr_array:
        """Counts of the vocabulary's terms: csr_array of int64 (n_documents, n_terms)."""
        check_is_fitted(self)
        counts = stacked(list(self._matrices(X)), len(self._scorer.vocabulary))
        if self.binary:
            counts.data[:] = 1
        return counts

    def linear_form(self) -> LinearForm:
        """Classes, terms, weights (terms x classes) and intercept: all that scoring needs."""
        check_is_fitted(self)
        return self._form.named(tuple(self.vocabulary_))

    @property
    def vocabulary_(self) -> list[str]:
        """The terms, sorted, one per column."""
        check_is_fitted(self)
        terms: list[str] = self._scorer.vocabulary.terms.to_list()
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
        check_is_fitted(self)
        return top_terms(self.estimator_, self._form.weights, self._scorer.vocabulary.terms,
                         self._scorer.labels, k, label)

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
        return explanation_table(self._explained(self._row_of(text), k), self._scorer.labels.dtype)

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
        frame = self._row_of(text)
        row = self._explained(frame, k)
        tokens = frame.select(self.tokenizer.expr(self.text_columns).list.len()).item()
        whole = self._explained(frame, max(k, int(tokens)))["explanation"] if tokens else []
        pieces, _ = pieces_of(self.tokenizer, self.text_columns, frame.row(0, named=True),
                              {entry["term"]: entry["contribution"] for entry in whole})
        known = sum(entry["count"] for entry in whole)
        estimator = self.estimator_
        nothing = "" if known else (
            f"no term of the text is known ({tokens:,} in it): the answer rests on "
            f"{estimator.without_terms}")
        score = row["intercept"] + sum(entry["contribution"] for entry in row["explanation"])
        return Explanation(
            row["predicted"], row["runner_up"], float(score), estimator.difference_name,
            explanation_table(row, self._scorer.labels.dtype), int(tokens), known, nothing, pieces)

    def _row_of(self, text: str | Mapping[str, str]) -> pl.DataFrame:
        """One text as a row of the text columns."""
        names = self.text_columns
        texts = {names[0]: text} if isinstance(text, str) else dict(text)
        for name in texts:
            if name not in names:
                raise ParameterError.unknown_choice("text column", name, names)
        return pl.DataFrame({name: [texts.get(name, "") or ""] for name in names},
                            schema=dict.fromkeys(names, pl.String))

    def _explained(self, frame: pl.DataFrame, k: int) -> dict[str, Any]:
        if type(k) is not int or k < 1:
            raise ParameterError.out_of_range("k", "an int >= 1", k)
        row = self.predict(frame, explain=k).row(0, named=True)
        if row["predicted"] is None:
            raise ImpossibleRowError.rows([0], 1)
        return dict(row)

    def input_columns(self, frame: pl.LazyFrame) -> list[str]:
        """The columns that are read; SchemaError where the frame lacks one."""
        scan(frame, text=self.text_columns)
        return self.text_columns

    @property
    def text_columns(self) -> list[str]:
        """The text columns, one or several."""
        columns = [self.text] if isinstance(self.text, str) else (
            list(self.text) if isinstance(self.text, (list, tuple)) else [])
        if not columns or not all(isinstance(name, str) for name in columns) or (
                len(set(columns)) < len(columns)):
            raise ParameterError.out_of_range("text", "a column, or several different ones",
                                              self.text)
        if not isinstance(self.label, str) or self.label in columns:
            raise ParameterError.out_of_range("label", "a column that is no text column",
                                              self.label)
        return columns

    def _matrices(self, X: Rows, watch: Watch | None = None) -> Iterator[sp.csr_array]:
        if isinstance(X, list) and len(X) <= _FEW and all(type(text) is str for text in X) and (
                len(self.text_columns) == 1):
            rows = self._scorer.vocabulary.counts_of_few(X)
            if rows is not None:
                yield rows
                return
        frame = (scan(narrowed(X, self.text_columns), text=self.text_columns) if is_table(X)
                 else table_of_texts(X, self.text_columns))

        def counted(batch: pl.DataFrame) -> sp.csr_array:
            counts = self._scorer.vocabulary.counts(batch, self.text_columns)
            if watch is not None:
                watch(batch, counts)
            return counts

        with reading(X):
            yield from in_threads(
                counted, batches(frame.select(self.text_columns), self.text_columns))

    def _predicted_array(self, X: Rows) -> NDArray[Any]:
        coverage = self.coverage()
        labels: NDArray[Any] = self.classes_[
            self._possible(X, coverage.add).argmax(axis=1)]
        coverage.warn(stacklevel=3)
        return labels

    def _possible(self, X: Rows, watch: Watch | None = None) -> Floats:
        scores = self._joint(X, watch)
        self._check_possible(scores)
        return scores

    def _check_possible(self, scores: Floats) -> None:
        impossible = np.flatnonzero(np.isneginf(scores).all(axis=1))
        if len(impossible):
            raise ImpossibleRowError.rows(impossible[:5].tolist(), len(impossible))
