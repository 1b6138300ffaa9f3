"""The scikit-learn estimator of texts: parameters, and a frozen `Fitted` that `fit` replaces.

    fit, partial_fit, forget, +     textnb.learning
    predict, scores, top, explain   textnb.scoring
    save                            textnb.storage
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.counts import Counts
from textnb.bayes.decision import Decision
from textnb.bayes.forms import Floats, LinearForm
from textnb.bayes.pruned import Pruned
from textnb.classifiers.texts import (
    advice_on_setting,
    asks_for_search,
    check_fit_options,
    check_parameters_unchanged,
    require_estimator,
    resolve_text_model,
    term_settings_to_change,
)
from textnb.errors import ParameterError
from textnb.frames.batches import Progress
from textnb.frames.indicator import check_indicator, split_indicator
from textnb.frames.scan import check_columns
from textnb.frames.sizes import size_of
from textnb.learning import fitting
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import RowWeights
from textnb.learning.merging import merge
from textnb.learning.parameters import DEFAULTS
from textnb.learning.settings import ColumnSettings, LimitSettings
from textnb.learning.text_settings import TextSettings, text_columns_of
from textnb.learning.unlabelled import check_vectors
from textnb.models.base import Model
from textnb.models.protocol import MissingAttributeError, Parameters, check_fitted, unfitted
from textnb.runtime.progress import show_progress
from textnb.runtime.settings import check_parameter_names
from textnb.scoring import texts
from textnb.scoring.columns import Answers
from textnb.scoring.explain import Explanation, LabelExplanation
from textnb.scoring.texts import Rows, Text
from textnb.storage.textmodel import save_fitted
from textnb.text.coverage import BlankTexts
from textnb.text.matrix import CountMatrix
from textnb.text.tokens import Tokenizer


@check_parameter_names
@dataclass(eq=False, repr=False)
class TextClassifier(LimitSettings, ColumnSettings, Parameters):
    r"""A classifier of texts: it learns from a table of documents, and answers with a table.

    Parameters
    ----------
    estimator : model of texts, its kind such as "nblinear", or "auto"
        The model on counts, which is cloned. `MultinomialNB` (if not given), `BernoulliNB` and
        `ComplementNB` learn by counting, in bounded memory; `TfidfComplementNB`, `NBLinear` and
        `NBLogisticRegression` need the matrix of all documents. "auto" lets `fit` choose the model,
        the tokenizer and ``min_df`` as `tune` does, and keep it as ``tuned_``.
    text : str or sequence of str
        Name of the text column, or names of several.
    label : str
        The label column: strings, integers, booleans, categories; or lists of them (multi-label).
    tokenizer : Tokenizer, optional
        By default words, ``Tokenizer()``. For `NBLinear` also words of one letter, "!" and "?", and
        pairs: ``Tokenizer(pattern=r"[\p{L}\p{M}\p{N}_]+", keep=["punctuation"],
        ngram_range=(1, 2))``; but columns of tokens stay as they are.
    min_df, max_df : int or float
        Keep terms in at least / at most this number of documents (int), or share of them (float).
    max_features : int, optional
        Keep this number of the most frequent terms; ties go to the term that sorts first.
    vocabulary : sequence of str, optional
        Count only these terms; the limits above must then have their defaults.
    binary : bool
        Count a term once per document.
    memory_limit : int or str, optional
        Bytes, or a size such as ``"500M"``, for the terms and their counts, beside other memory. If
        they do not fit, counts go to temporary files, and in the end the rarest terms are left out,
        as few as possible (``pruned_``). All other counts are exact. A model that learns more later
        counts left-out terms from 0 again: a count is too low by at most ``pruned_.at_most``.
        `count` and `partial_fit` can exceed the limit while they count.
    subwords : (int, int), optional
        For `NBLinear`: share weights among words that have subwords in common, of this number of
        characters. It helps where texts are short and classes many. By default (4, 4), but none if
        a tokenizer is given, with lists of labels, without ``idf``, or with an ``l`` per term.
    sharing : float in [0, 2], optional
        Weight of subwords. By default 5.5 / √(different words of a row), at most 1.6; 0 if more
        than 10,000 rows have more than 100 words each.
    vectors : table, path or "wordllama", optional
        For `NBLinear`: share weights among words with similar vectors, if labels are few. A table
        of ``term`` and ``vector`` (lists of numbers), a text file of word2vec, GloVe or fastText,
        safetensors beside a ``tokenizer.json``, or wordllama's (``pip install 'textnb[vectors]'``).
    vector_weight : float in [0, 2], optional
        By default 5.5 / √(different words of a row), at most 1.6; 1.5 for vectors of ``unlabelled``
        texts; less if classes have more than 250 rows; from 500 rows on, chosen by held-out rows.
    lexicon : int, optional
        At most this number of words that X lacks, by default 20,000, get weights, by vectors or
        subwords. They are words of ``unlabelled`` texts, or else the first of the vectors.

    Attributes
    ----------
    classes_ : (n_classes,)
    vocabulary_ : list of str
        Sorted, one term per column.
    estimator_ : the fitted model on counts
    calibration_, decision_ : Calibration or None, Decision or None
        See `set_calibration` and `set_decision`.
    pruned_ : Pruned or None
        What `memory_limit` left out: the number of ``terms``, their ``occurrences``, and how often
        each of them occurs ``at_most``.
    has_separate_labels_ : bool
        Whether labels were beside a table: to tables in memory, answers are arrays. Not in files.
    statistics_ : Counts
        Counts of all terms, also of terms outside the limits (except `memory_limit`). They add and
        subtract. Models whose weights are fitted, such as `NBLinear`, have none.

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

    estimator: Model | str | None = None
    tokenizer: Tokenizer | None = field(default=None, kw_only=True)
    vocabulary: Sequence[str] | None = field(default=None, kw_only=True)

    @classmethod
    def _advice_on(cls, name: str) -> str:
        return advice_on_setting(cls, name)

    def fit(
        self, X: Rows, y: ArrayLike | None = None, *, sample_weight: RowWeights = None,
        warm_start: bool = False, keep_sample: int | None = None, unlabelled: Rows | None = None,
        progress: Progress | bool | None = None,
    ) -> Self:
        """Learn from labelled documents, in one pass and in bounded memory.

        With ``l="auto"`` the documents are read twice, and the matrix of their counts is kept while
        ``l`` is chosen as in `smoothing_path` (but ``max_features`` chooses from all documents).

        Parameters
        ----------
        X : table, path, or sequence of str
            A table with the text and label columns (see `textnb.scan`), or the texts themselves;
            lists of tokens in place of texts: see ``token_columns`` of `Tokenizer`.
        y : array (n_documents,), optional
            Labels, if X does not hold them: of texts, or of a table in memory. Labels of a table
            that are passed separately, as by scikit-learn, also make `predict` return an array.
            Of several labels per document: lists, or scikit-learn's indicator matrix of 0 and 1, as
            an array, a sparse one or a table; `predict` then returns such a matrix.
        sample_weight : str or array (n_documents,), optional
            A column of the table, or an array for texts or a table in memory: >= 0, not all 0.
            Counts are then float64, and `fit` keeps the matrix of all documents; limits on terms
            ignore weights. Such a model can learn more and be added, up to rounding, but can't
            forget or leave documents out; ``l="auto"`` and `memory_limit` are refused.
        warm_start : bool
            For `NBLinear`: begin from the weights that the model has, if any, to reach the optimum
            sooner. X holds all documents, old and new.
        keep_sample : int, optional
            For `NBLinear` without ``idf``: keep the terms, not the text, of at most this many
            documents, of which the model is least sure. `partial_fit` and `forget` then refit the
            weights on these and the new documents; otherwise they only count.
        unlabelled : table, path, or sequence of str, optional
            Texts without labels, such as those to be classified. Unless ``vectors`` are given, they
            are learned from these texts: words of similar texts have similar vectors, and share
            weights. So the most frequent words that X lacks get weights too.
        progress : callable or bool, optional
            Called with the number of rows of each batch; or True for a line in a terminal or a
            notebook that names what is being done.

        Raises
        ------
        DataError
            If there are no rows, a label is null, or no term is left; with ``l="auto"``, also if
            there is one class, or no class has two documents.

        Warns
        -----
        UnknownTermsWarning
            If most terms will hardly occur again, as in a language without spaces.
        EmptyTextWarning
            If rows have no text in any text column: null, empty, or white space alone.
        """
        is_search = asks_for_search(self.estimator)
        check_fit_options(is_search, warm_start, keep_sample, unlabelled)
        y, indicator = split_indicator(y)
        with show_progress(progress, "training", lambda: size_of(X)) as advance:
            if is_search:
                from textnb.selection.automatic import fit_by_search

                parameters = {name: getattr(self, name) for name in DEFAULTS}
                # A search fits many models, and itself tells the line how far it has come.
                self.tuned_ = fit_by_search(parameters, X, y, sample_weight,
                                            progress=None if progress is True else advance)
                self._fitted = self.tuned_.fitted
            else:
                settings = self.text_settings()
                check_vectors(settings, unlabelled)
                blank = BlankTexts(settings.columns)
                self._fitted = fitting.fit(
                    settings, X, y, sample_weight=sample_weight, keep_sample=keep_sample,
                    unlabelled=unlabelled, progress=advance, blank=blank,
                    start=getattr(self, "_fitted", None) if warm_start else None)
                blank.warn()
                # The result of an earlier search is not of this model.
                self.__dict__.pop("tuned_", None)
        self._fitted = replace(self._fitted, indicator=indicator)
        return self

    def partial_fit(
        self, X: Rows, y: ArrayLike | None = None, classes: Iterable[Any] | None = None, *,
        sample_weight: RowWeights = None, progress: Progress | None = None,
    ) -> Self:
        """Learn from more documents; the model is that of one `fit` on all of them, to the bit.

        Parameters
        ----------
        X, y, sample_weight, progress
            As in `fit`.
        classes : iterable, optional
            Classes that may occur beside known ones; by default, those of the first call.

        Raises
        ------
        DataError
            If a label was not announced, or is new to `NBLinear`; the model stays as it was.
        ParameterError
            If the model learns from all rows at once; for ``sample_weight`` of `NBLinear`.
        """
        fitted = self._fitted_for("learning more") if hasattr(self, "_fitted") else None
        y, indicator = (split_indicator(y) if fitted is None
                        else check_indicator(fitted.indicator, y))
        if fitted is None and indicator is not None and classes is None:
            classes = indicator.labels
        settings = self.text_settings() if fitted is None else fitted.settings
        blank = BlankTexts(settings.columns)
        self._fitted = replace(fitting.learn_more(
            fitted, settings, X, y, classes, sample_weight=sample_weight, progress=progress,
            blank=blank), indicator=indicator)
        blank.warn()
        return self

    def forget(
        self, X: Rows, y: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Forget documents: the model is that of one `fit` without them, to the bit.

        Raises
        ------
        DataError
            If the model can't have learned some of the documents; the model then stays as it was.
        """
        fitted = self._fitted_for("forgetting")
        y, indicator = check_indicator(fitted.indicator, y)
        self._fitted = replace(fitting.forget(fitted, X, y, progress=progress), indicator=indicator)
        return self

    def __add__(self, other: TextClassifier) -> TextClassifier:
        """The model of both models' documents, as one `fit` on all of them would give it.

        Its calibration and decision are those of the first model that has them, and are stale.
        """
        if not isinstance(other, TextClassifier):
            return NotImplemented
        merged = unfitted(self)
        merged._fitted = merge(self._fitted_for("adding"), other._fitted_for("adding"))
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, counts and settings, completely or not at all. See `textnb.load`.

        Raises
        ------
        ParameterError
            If parameters were changed since `fit`: they do not match what was learned.
        """
        save_fitted(self._fitted_for("saving"), path)

    def count(
        self, X: Rows, y: ArrayLike | None = None, *, progress: Progress | None = None
    ) -> Counts:
        """Count documents: `fit_statistics` learns from the counts, or from sums of them.

        The model stays as it was. All terms are counted: `memory_limit` applies only when
        `fit_statistics` learns from the sum.
        """
        fitted = self._fitted_for("counting") if hasattr(self, "_fitted") else None
        settings = self.text_settings() if fitted is None else fitted.settings
        return fitting.count(settings, X, y, progress=progress)

    def fit_statistics(self, statistics: Counts) -> Self:
        """Learn from counts: the model is that of one `fit` on the documents, to the bit.

        Parameters
        ----------
        statistics : Counts
            From `count` with the same settings. ``l="auto"`` stays as an earlier fit chose it.
        """
        l = self._fitted.chosen_l if hasattr(self, "_fitted") else None
        self._fitted = fitting.fit_from_counts(self.text_settings(), statistics, l=l)
        return self

    @classmethod
    def of(cls, fitted: Fitted) -> Self:
        """The classifier of a fitted model, such as a file holds."""
        model = cls(unfitted(fitted.model), **fitted.settings.classifier_parameters)
        model._fitted = fitted
        return model

    def predict(
        self, X: Rows, *, probability: bool = False, scores: bool = False, explain: int = 0,
        top: int = 0, known_terms: bool = False, progress: Progress | None = None,
    ) -> Any:
        """The most probable class of each document, or (multi-label) its probable labels.

        Parameters
        ----------
        X : table, path, or sequence of str
            A table is a Polars DataFrame or LazyFrame, a pandas DataFrame, a PyArrow Table, a
            DuckDB relation, a dict of columns or a list of dicts.
        probability : bool
            Add ``probability``, P(predicted | text); and ``calibrated``, true, if the model is
            calibrated (see `set_calibration`).
        scores : bool
            Add ``scores``, a struct of the raw score of each class: ``w · x + b`` as of
            `linear_form` and exports, never calibrated. Of naive Bayes it is log P(text, class),
            base e.
        explain : int
            Add ``explanation``, the N terms that say most for or against the predicted class,
            compared with the runner-up: a list of (term, count, contribution), and one entry
            with a null term for all others. Columns ``runner_up``, ``score`` and ``intercept`` are
            added too: ``score = intercept + Σ contribution`` is the score of ``predicted`` less
            that of ``runner_up``: log-odds, or a margin (`ComplementNB`, ``loss="hinge"``).
        top : int
            Add ``top``, the K most probable classes, best first: a list of (class,
            probability); and ``calibrated`` likewise.
        known_terms : bool
            Add ``known_terms``, how many terms of the text the model knows, with repetitions; if 0,
            the answer rests on no term.
        progress : callable, optional
            Called with the number of rows of each batch that was scored.

        Returns
        -------
        table of the same kind as X
            Every column of the input, ``predicted``, the columns above, and ``decision`` if the
            model has one (see `set_decision`): a class, or null for "unsure". A row that no class
            can have produced (``l = 0``) has nulls. A pandas DataFrame keeps its index and its
            types, a PyArrow Table its types. A path gives a LazyFrame; a DuckDB relation a PyArrow
            Table; a dict of columns and a list of dicts a Polars DataFrame. Multi-label,
            ``predicted`` and ``probability`` are lists, ``scores`` the labels' log-odds (their
            margins if scores are not log-probabilities), and ``explanation`` a list with the
            ``score``, ``intercept`` and ``explanation`` of each predicted ``label``.
        ndarray (n_documents,), or a list of lists (multi-label), or a matrix if y was one
            For a sequence of str, and for a Series. Also for a table in memory, if labels were
            passed separately, ``fit(frame, y)``: scikit-learn does so, and its scorers and searches
            expect an array from `predict`. If the model has a decision, the array holds the
            decisions, with None for "unsure". With further columns it is a table with the texts.

        Raises
        ------
        SchemaError
            If the text column is missing, or a column of the input has the name of an answer.
        ImpossibleRowError
            If an array is returned, and a row is impossible under every class.

        Warns
        -----
        UnknownTermsWarning
            If many texts hold no known term.
        EmptyTextWarning
            If rows have no text in any text column. Of a lazy frame, the logger "textnb" reports
            both when the frame is collected.
        """
        answers = Answers(probability, scores, explain, top, known_terms)
        return texts.predict(self.fitted_, X, answers, progress)

    def predict_joint_log_proba(self, X: Rows) -> Floats:
        """The raw scores, as ``predict(..., scores=True)``: float64 (n_documents, n_classes).

        They are ``w · x + b`` as of `linear_form` and exports, never calibrated. Of naive Bayes it
        is log P(text, class), base e; of linear models a margin.
        """
        return texts.joint_scores(self.fitted_, X)

    def predict_log_proba(self, X: Rows) -> Floats:
        """log P(class | text), base e, calibrated if the model is: (n_documents, n_classes)."""
        return texts.log_probabilities(self.fitted_, X)

    def predict_proba(self, X: Rows) -> Floats:
        """P(class | text), calibrated if the model is: float64 (n_documents, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Rows) -> Floats:
        """Log-odds of the second of two classes; else scores of all classes, or of labels.

        They are calibrated if the model is, so that they fit `predict_proba`; else they are margins
        if the model's scores are not log-probabilities. `predict_joint_log_proba` gives the raw
        scores of exports, ``w · x + b``.

        Returns
        -------
        float64 (n_documents,) for two classes, (n_documents, n_classes) for more
            Base e; above 0 if the second class is predicted.

        Raises
        ------
        ImpossibleRowError
            If a row is impossible under every class.
        """
        return texts.decision_values(self.fitted_, X)

    def score(self, X: Rows, y: ArrayLike | None = None, sample_weight: RowWeights = None) -> float:
        """Accuracy, against ``y`` or the label column; of lists, all labels must be right.

        If the model has a decision, the answers are the decisions, and "unsure" is wrong.
        ``sample_weight`` is as for `fit`; beside ``y``, it is an array.
        """
        return texts.accuracy(self.fitted_, X, y, sample_weight)

    def transform(self, X: Rows) -> CountMatrix:
        """Counts of the vocabulary's terms: csr_array of int64 (n_documents, n_terms)."""
        return texts.term_counts(self.fitted_, X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The terms, one per column of `transform`: object (n_terms,).

        Parameters
        ----------
        input_features : ignored
            For scikit-learn. Tokens do not depend on the name of a column.
        """
        return np.array(self.vocabulary_, dtype=object)

    def linear_form(self) -> LinearForm:
        """Classes, terms, weights (terms x classes) and intercept: everything for scoring."""
        return self.fitted_.linear_form()

    def top(self, k: int = 20, label: Any = None) -> pl.DataFrame:
        """The terms that distinguish each class best, from the counts.

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
            ``class``, ``term``, ``count`` in the class, ``weight`` (log base e), ``z`` (null if
            weights rank), and ``measure``, "z" or "weight": the column by which rows are sorted,
            highest first.
        """
        return texts.top(self.fitted_, k, label)

    def plot_terms(self, k: int = 12, label: Any = None) -> Any:
        """Draw the terms of `top` as bars, a panel per class: an Altair chart.

        Raises
        ------
        ParameterError
            Without Altair: ``pip install 'textnb[report]'``.
        """
        from textnb.runtime.charts import terms_chart

        return terms_chart(self.top(k, label))

    def explain(self, text: Text, k: int = 20, labels: Sequence[Any] | None = None) -> pl.DataFrame:
        """Explain one text: `predict(..., explain=k)` for it, with one row per entry.

        Parameters
        ----------
        text : str, list of str, or mapping of str to these
            A text (or tokens) of the first text column, or texts by column; others are empty.
        k : int
            Terms to show.
        labels : sequence of labels, optional
            Multi-label: the labels to explain. The default is all that are predicted, or the one
            that is nearest to its threshold if none is.

        Returns
        -------
        DataFrame
            ``part`` ("intercept", "term", or "other terms"), ``term``, ``count``,
            ``contribution``. The contributions add up to the score of ``predicted`` less that
            of ``runner_up``, which are in every row: log-odds if the model's scores are
            log-probabilities, else a margin. If no term is known there is only an intercept.
            Multi-label, each label has such rows. In place of ``predicted`` and ``runner_up`` they
            have ``label``, ``predicted`` (whether the label is), ``score`` (the sum of its
            contributions, not calibrated) and ``threshold``.
        """
        return texts.explanation(self.fitted_, text, k, labels)

    def highlight(
        self, text: Text, k: int = 20, labels: Sequence[Any] | None = None
    ) -> Explanation | LabelExplanation:
        """Explain one text for a reader: a notebook shows the text with its words coloured.

        Parameters
        ----------
        text, labels
            As in `explain`.
        k : int
            Terms in the table; the words are coloured by all terms.

        Returns
        -------
        Explanation, or multi-label LabelExplanation

        Raises
        ------
        ImpossibleRowError
            If no class can have produced the text (``l = 0``).
        """
        return texts.highlight(self.fitted_, text, k, labels)

    def set_calibration(self, calibration: Calibration | None) -> Self:
        """Divide scores by a temperature before they become probabilities; None removes it.

        Where documents have lists of labels, each label's probability is a sigmoid of its score.

        The most probable class stays the same. A decision that was chosen on other probabilities is
        kept and marked stale: see `Decision.stale`. `partial_fit`, `forget` and ``+`` mark both
        as stale, and `fit` removes both.
        """
        self._fitted = self.fitted_.with_calibration(calibration)
        return self

    def set_decision(self, decision: Decision | None) -> Self:
        """Answer by thresholds, in a column ``decision`` of predictions; None removes them.

        Where documents have lists of labels, the thresholds choose ``predicted`` itself: see
        `textnb.bayes.decision.choose_labels`.

        Raises
        ------
        ParameterError
            If the thresholds are not for the model's classes, or were chosen from calibrated scores
            and the model is not calibrated, or the other way round.
        """
        self._fitted = self.fitted_.with_decision(decision)
        return self

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of the estimator or tokenizer by names such as ``estimator__l``.

        They apply from the next `fit` on. Until then `predict` answers as before, and methods that
        would mix them with what was learned (`save`, `partial_fit`, ...) raise an error.

        Raises
        ------
        ParameterError
            If the tokenizer has no such setting, or it is out of its range.
        ValueError
            If there is no such parameter.
        """
        prefix = "tokenizer__"
        tokenizer_parameters = {name.removeprefix(prefix): parameters.pop(name)
                                for name in list(parameters) if name.startswith(prefix)}
        if tokenizer_parameters:
            tokenizer = parameters.get("tokenizer", self.tokenizer)
            if tokenizer is None:
                defaults = term_settings_to_change(
                    parameters.get("estimator", self.estimator), tokenizer_parameters)
                tokenizer = defaults["tokenizer"]
                parameters.setdefault("subwords", self.subwords or defaults["subwords"])
            if not isinstance(tokenizer, Tokenizer):
                raise ParameterError.out_of_range("tokenizer", "a Tokenizer", tokenizer)
            # Tokenizers are frozen, and even the default one is shared: make another one.
            parameters["tokenizer"] = tokenizer.with_params(**tokenizer_parameters)
        # None stands for the default model: replace it, so that its parameters can be set.
        if any(name.startswith("estimator__") for name in parameters):
            parameters["estimator"] = require_estimator(parameters.get("estimator", self.estimator))
        return super().set_params(**parameters)

    def check_unchanged(self, action: str) -> None:
        """Raise ParameterError if parameters were changed since `fit`.

        Parameters
        ----------
        action : str
            The action that is not possible then, as the subject of a sentence.
        """
        self._fitted_for(action)

    @property
    def fitted_(self) -> Fitted:
        """The result of `fit` and its parameters, as one frozen value."""
        check_fitted(self)
        return self._fitted

    @property
    def estimator_(self) -> Any:
        fitted = self.fitted_
        if fitted.is_multilabel:
            raise MissingAttributeError.multilabel("estimator_")
        # A pair: the fitted state at the last use, and the estimator that was made from it.
        cached = getattr(self, "_cached_estimator", None)
        if cached is None or cached[0] is not fitted:
            cached = self._cached_estimator = fitted, unfitted(fitted.model).set_learned(
                fitted.learned)
        return cached[1]

    @property
    def vocabulary_(self) -> list[str]:
        """The terms, sorted, one per column."""
        terms: list[str] = self.fitted_.terms.to_list()
        return terms

    @property
    def statistics_(self) -> Counts:
        fitted = self.fitted_
        if fitted.statistics is None:
            raise AttributeError(f"{fitted.model.name} keeps no counts that add")
        return fitted.statistics

    @property
    def classes_(self) -> NDArray[Any]:
        return self.fitted_.classes

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
    def has_separate_labels_(self) -> bool:
        return self.fitted_.has_separate_labels

    def input_columns(self, frame: pl.LazyFrame) -> list[str]:
        """The columns that are read; SchemaError if the frame lacks one."""
        tokens = self._fitted.token_columns if hasattr(self, "_fitted") else ()
        check_columns(frame, text=self.text_columns, tokens=tokens)
        return self.text_columns

    @property
    def text_columns(self) -> list[str]:
        """The text columns, one or several; after `fit`, those of the fit."""
        if hasattr(self, "_fitted"):
            return self._fitted.columns
        return text_columns_of(self.text, self.label)

    @property
    def label_column(self) -> str:
        """The label column; after `fit`, the one of the fit."""
        return self._fitted.label if hasattr(self, "_fitted") else self.label

    def text_settings(self) -> TextSettings:
        """The current parameters, checked and copied; ParameterError for ``estimator="auto"``."""
        parameters = {name: getattr(self, name) for name in DEFAULTS}
        return TextSettings.of(resolve_text_model(self.estimator), **parameters)

    def _fitted_for(self, action: str) -> Fitted:
        """The fitted state, after a check that no parameter was changed since."""
        fitted, cached = self.fitted_, getattr(self, "_cached_estimator", None)
        estimator = None if cached is None or cached[0] is not fitted else cached[1]
        check_parameters_unchanged(self, fitted.settings, estimator, action)
        return fitted

    def __repr__(self) -> str:
        fitted = getattr(self, "_fitted", None)
        return super().__repr__() + ("" if fitted is None else f", fitted: {fitted.summary}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
