"""A bundle: a linear form, the tokenizer of its input, and golden rows that verify it.

    form.json         classes, intercepts, tokenizer, calibration, decision, provenance
    weights.parquet   one row per term or feature, one column per class, or one ``w``
    golden.parquet    documents, their tokens, and the scores and labels that they must get
    characters.json   how texts are split: the characters of words, their lower case, and so on
    model.*           the target's own file, if it needs more than the files above
    README.md         how the bundle is used
    SHA256SUMS        a checksum of each file

Nothing in a bundle is executed when it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.classes import known_class
from textnb.bayes.decision import Decision, choose_labels, label_thresholds
from textnb.bayes.features import Center, Idf, Length, Presence, Step, Sublinear
from textnb.bayes.forms import Floats, LinearForm, RequiredTermsForm
from textnb.bayes.sparse_weights import SparseWeights
from textnb.errors import ExportError, ParameterError, quantity
from textnb.export.portable import Words, words_of
from textnb.learning.fitted import fitted_text_model_or_none
from textnb.text.matrix import CountMatrix, Vocabulary, csr_of_codes
from textnb.text.tokens import Tokenizer, refuse_subclass

Reads = Literal["text", "terms", "features"]
# What a target's file may answer with in addition to labels.
ANSWERS = ("scores", "probability", "decision")
# The maximum number of weights of an export: it writes all of them, which is 1 GiB at 8 bytes each.
_MAX_WEIGHTS = 1 << 27
# Feature maps change counts before weights multiply them. These are the steps of such a map that a
# bundle can have, by what it reads. A target may support fewer.
_STEPS_OF_COUNTS: tuple[type[Step], ...] = (Presence, Sublinear, Idf, Length)
STEPS: Mapping[Reads, tuple[type[Step], ...]] = {
    "text": _STEPS_OF_COUNTS, "terms": _STEPS_OF_COUNTS, "features": (Presence, Center)}


@dataclass(frozen=True, eq=False)
class Bundle:
    """An exported model.

    Attributes
    ----------
    form : LinearForm
        With finite weights; ``terms`` holds the terms of texts, or the names of features.
    reads : {"text", "terms", "features"}
        The input of the target: texts, which it splits itself, lists of tokens, or numbers.
    tokenizer : Tokenizer or None
        None for features.
    columns : tuple of str
        The text columns, or the names of features.
    positive : label or None
        If given, the form has two classes and is exported as one ``w`` and ``b``; this class is
        predicted if ``w·x + b > 0``.
    provenance : mapping
        The estimator, its parameters, documents per class, and log priors (base e).
    calibration : Calibration or None
        Applied to probabilities, not to scores.
    decision : Decision or None
        For lists of labels, targets predict by the decision. For one class per row, they predict
        the most probable class, and give the decision as well if ``answers`` has it.
    answers : tuple of {"scores", "probability", "decision"}
        What the target's file answers with.
    """

    form: LinearForm
    reads: Reads
    tokenizer: Tokenizer | None
    columns: tuple[str, ...]
    positive: Any = None
    provenance: Mapping[str, Any] | None = None
    calibration: Calibration | None = None
    decision: Decision | None = None
    answers: tuple[str, ...] = ("scores",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "form", _with_dense_weights(self.form))
        form = self.form
        if form.terms is None or len(form.terms) != len(form.weights):
            raise ExportError("the form has no names for its weights")
        # A `RequiredTermsForm` is for weights of -inf, which l = 0 gives.
        if isinstance(form, RequiredTermsForm) or not np.isfinite(form.weights).all():
            raise ExportError(_infinite_weights_message(form))
        if type(form) is not LinearForm:
            raise ExportError(f"a {type(form).__name__} is more than weights and intercepts, "
                              "and a bundle can't hold it")
        try:
            form.features.check(STEPS[self.reads], f"an export that reads {self.reads}")
        except ParameterError as error:
            raise ExportError(str(error)) from None
        if self.is_multilabel and not np.isfinite(form.intercept).all():
            label = self.labels[int(np.argmin(np.isfinite(form.intercept)))]
            raise ExportError(f"every document has the label {label!r}, or none, hence an infinite "
                              "intercept, which other systems can't hold; drop the label")
        if not np.isfinite(form.intercept).all():
            raise ExportError("a class has prior 0, hence an infinite intercept, which other "
                              "systems can't hold; drop the class, or train with priors above 0")
        if self.positive is not None and self.is_multilabel:
            raise ParameterError.multilabel("one w and b", "positive")
        if self.positive is not None:
            if len(self.labels) != 2:
                raise ParameterError.naming_settings(
                    "{positive} is for a model of two classes, and this has {number}: leave it "
                    "out, and each class has its weights", number=len(self.labels))
            # Raises an error if it is not one of the two.
            form.binary(self.positive)
        if self.decision is not None:
            self.decision.check_classes(self.labels)

    @cached_property
    def labels(self) -> list[Any]:
        """The classes, in the order of the columns: str, int or bool."""
        labels: list[Any] = self.form.classes.tolist()
        return labels

    @property
    def is_multilabel(self) -> bool:
        """Whether documents have lists of labels, and not one class each."""
        return self.form.link == "sigmoid"

    @property
    def needs_feature_map(self) -> bool:
        """Whether a target must know the feature map: the steps between counts and scores.

        It need not if the only steps are presence and centering: `presence_above` says what
        presence is, and the `intercept` is for features that are not centered.
        """
        return any(type(s) not in (Presence, Center) for s in self.form.features.steps)

    @property
    def gives_decisions(self) -> bool:
        """Whether answers have a column ``decision``; never for lists of labels."""
        return "decision" in self.answers and not self.is_multilabel

    @property
    def needs_length(self) -> bool:
        """Whether probabilities need the length of each row: the sum of its mapped values."""
        return (len(self.answers) > 1 and self.calibration is not None
                and bool(self.calibration.length_exponent))

    @property
    def min_log_odds(self) -> list[float]:
        """The threshold of each class by the decision, on log-odds; it may be infinite."""
        assert self.decision is not None
        return [self.decision.thresholds[label] for label in self.labels]

    def labels_at(self, indices: Iterable[int | None]) -> list[Any]:
        """The classes at some indices; None if the index is None or negative."""
        return [None if k is None or k < 0 else self.labels[k] for k in indices]

    def labels_of(self, mask: Iterable[ArrayLike]) -> list[list[Any]]:
        """Convert the rows of a boolean matrix (n_rows, n_labels) to lists of labels."""
        return [[self.labels[k] for k in np.flatnonzero(row)] for row in mask]

    @property
    def thresholds(self) -> Floats:
        """For lists of labels, the threshold of each label: float64 (n_labels,).

        Infinite thresholds become the lowest and the highest finite float: no score is beyond them.
        """
        thresholds: Floats = np.nan_to_num(label_thresholds(self.labels, self.decision))
        return thresholds

    @property
    def terms(self) -> tuple[str, ...]:
        assert self.form.terms is not None
        return self.form.terms

    @property
    def presence_above(self) -> float | None:
        """The number above which a count becomes 1, and else 0; None if the form uses counts."""
        return self.form.features.presence_above

    @property
    def idf(self) -> Floats | None:
        """The inverse document frequency of each term, (n_terms,); None if the form has none."""
        return next((s.weights for s in self.form.features.steps if isinstance(s, Idf)), None)

    @property
    def splitter(self) -> Tokenizer:
        """The tokenizer; ExportError if the bundle reads features."""
        if self.tokenizer is None:
            raise ExportError("this form reads numbers, not texts")
        return self.tokenizer

    def words(self, executes: Collection[str]) -> Words:
        """How a target splits texts into words.

        Raises
        ------
        ExportError
            If words are not runs of characters, or need a field of `Words` that the target does not
            execute.
        """
        return words_of(self.splitter.plan(), self.columns).executed_by(executes)

    @cached_property
    def weights(self) -> Floats:
        """The weights, a column per class, or ``w`` as the only column: (n_terms, n_outputs)."""
        if self.positive is None:
            return np.asarray(self.form.weights)
        return self.form.binary(self.positive)[0][:, None]

    @cached_property
    def intercept(self) -> Floats:
        """The intercepts to use if features are not centered first: float64 (n_outputs,)."""
        if self.positive is None:
            return self.form.uncentered().intercept
        return np.array([self.form.binary(self.positive)[1]])

    def center_and_intercept(self) -> tuple[Floats | None, Floats]:
        """The center to subtract from features (or None), and the intercepts for centered features.

        Features far from zero lose fewer digits if they are centered before they are weighted.
        """
        center, intercept = self.form.features.center, self.form.intercept
        if center is None:
            return None, self.intercept
        if self.positive is None:
            return center, intercept
        k = self.labels.index(self.positive)
        difference: Floats = intercept[[k]] - intercept[[1 - k]]
        return center, difference

    @property
    def negative(self) -> Any:
        """The other class of a binary form."""
        return next(label for label in self.labels if label != self.positive)

    def scores(self, rows: CountMatrix | Floats) -> Floats:
        """Compute the scores that a target must give: float64 (n_rows, n_outputs)."""
        scores = self.form.scores(rows)
        if self.positive is None:
            return scores
        k = self.labels.index(self.positive)
        return (scores[:, k] - scores[:, 1 - k])[:, None]

    def decide(self, scores: Floats) -> list[Any]:
        """Choose labels: the first class with the highest score, or by the sign of one score.

        For lists of labels: the labels that the decision chooses, see `choose_labels`.
        """
        if self.is_multilabel:
            return self.labels_of(choose_labels(scores, self.labels, self.decision))
        if self.positive is not None:
            return [self.positive if score > 0 else self.negative for score in scores[:, 0]]
        return self.labels_at(scores.argmax(axis=1).tolist())

    def find_ties(self, scores: Floats, rows: CountMatrix | Floats, tolerance: float
                  ) -> NDArray[np.bool_]:
        """Find the rows whose label rounding may change: bool (n_rows,).

        These are rows whose two best scores are equal within a tolerance. For lists of labels, they
        are rows in which a score equals its threshold. If the decision has ``at_least`` or
        ``at_most`` k labels, they are also rows whose k-th highest margin (score - threshold)
        equals the next one. A row without known terms is never a tie, as its scores are exactly the
        intercepts.
        """
        if self.is_multilabel:
            margins = scores - self.thresholds
            distance = np.abs(margins).min(axis=1)
            ordered = -np.sort(-margins, axis=1)
            for limit in (self.decision.ranks.values() if self.decision else ()):
                if limit < margins.shape[1]:
                    distance = np.minimum(distance, ordered[:, limit - 1] - ordered[:, limit])
        elif scores.shape[1] == 1:
            distance = np.abs(scores[:, 0])
        else:
            ordered = np.sort(scores, axis=1)
            distance = ordered[:, -1] - ordered[:, -2]
        # Each of the two scores may be wrong by the tolerance; 4 in place of 2 leaves room.
        ties: NDArray[np.bool_] = (
            distance <= 4 * tolerance * np.maximum(1.0, np.abs(scores).max(axis=1)))
        if not isinstance(rows, np.ndarray):
            ties &= np.diff(rows.indptr) > 0
        return ties

    def expected_labels(self, scores: Floats, rows: CountMatrix | Floats, tolerance: float
                        ) -> list[Any]:
        """The labels that a target must give; None if rounding decides (see `find_ties`)."""
        return [None if tie else label for label, tie in zip(
            self.decide(scores), self.find_ties(scores, rows, tolerance), strict=True)]

    def tokens(self, documents: pl.DataFrame) -> pl.Series:
        """Split documents by the tokenizer: a Series of List(String)."""
        return documents.select(self.splitter.expr(list(self.columns)).alias("tokens"))["tokens"]

    @property
    def token_columns(self) -> list[str]:
        """The text columns that hold lists of tokens."""
        return self.splitter.columns_of_tokens(self.columns)

    def counts(self, documents: pl.DataFrame) -> CountMatrix:
        """Count the terms in documents: (n_rows, n_terms)."""
        return self._vocabulary.counts(documents, list(self.columns))

    def count_tokens(self, tokens: pl.Series) -> CountMatrix:
        """Count the terms in lists of tokens, List(String): (n_rows, n_terms)."""
        all_tokens = tokens.explode(empty_as_null=False, keep_nulls=False)
        columns = all_tokens.replace_strict(
            pl.Series(self.terms, dtype=pl.String),
            pl.Series(range(len(self.terms)), dtype=pl.Int64), default=-1,
            return_dtype=pl.Int64).to_numpy()
        rows = np.repeat(np.arange(len(tokens)), tokens.list.len().cast(pl.Int64).to_numpy())
        is_known = columns >= 0
        n_known_tokens = np.bincount(rows[is_known], minlength=len(tokens))
        # Equal tokens of a row are added up.
        return csr_of_codes(n_known_tokens, columns[is_known], len(self.terms))

    def select(self, mask: NDArray[np.bool_]) -> Bundle:
        """A bundle with the terms that a mask selects."""
        indices = np.flatnonzero(mask)
        form = replace(self.form, weights=self.form.weights[indices],
                       terms=tuple(self.terms[t] for t in indices),
                       features=self.form.features.select(indices))
        # Calibration and decision are valid only with all terms, so they are dropped. But lists of
        # labels need thresholds: their decision stays, and is marked as stale.
        decision = (self.decision.as_stale("terms were left out")
                    if self.is_multilabel and self.decision is not None else None)
        return replace(self, form=form, calibration=None, decision=decision,
                       answers=tuple(name for name in self.answers if name != "decision"))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.splitter, pl.Series(self.terms, dtype=pl.String))


def bundle_of(model: Any, reads: Reads | None = None, positive: Any = None) -> Bundle:
    """Make the bundle of a fitted classifier.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
    reads : {"text", "terms"}, optional
        For a model of texts: whether the target splits texts itself.
    positive : label, optional
        One of two classes: the answer where the score is above 0.

    Raises
    ------
    ExportError
        If the form is not linear or has infinite weights.
    """
    fitted = fitted_text_model_or_none(model)
    # The parameters of a classifier can be changed after its fit, and the export is of the fit.
    if model is not fitted:
        model.check_unchanged("exporting")
    try:
        form = model.linear_form()
    except ParameterError as error:
        raise ExportError(f"{error}; what can be exported has one weight per feature and class: "
                          "LinearDiscriminantAnalysis, NearestCentroid, "
                          "GaussianNB(shared_variance=True)") from None
    if positive is not None:
        positive = known_class(form.classes.tolist(), positive)
    # Leave out the part of the scores that all classes share: it decides nothing, and its weights
    # are large.
    form = form.discriminant
    if fitted is None:
        if reads not in (None, "features"):
            raise ParameterError(f"a model of feature tables reads features, not {reads}")
        names = tuple(model.feature_names_)
        return Bundle(replace(form, terms=names), "features", tokenizer=None, columns=names,
                      positive=positive, provenance=provenance(model))
    columns, tokenizer = tuple(fitted.columns), fitted.settings.tokenizer
    try:
        refuse_subclass(tokenizer, "an export")
    except ParameterError as error:
        raise ExportError(str(error)) from None
    # Replace a segmenter (a function) by its name, as in a file: the target reads tokens then.
    tokenizer = Tokenizer.from_dict(tokenizer.to_dict())
    return Bundle(form, reads or "text", tokenizer, columns, positive,
                  provenance(model), fitted.calibration, fitted.decision)


def expand_to_two_classes(
    labels: Sequence[Any], positive: Any, w: Floats, b: float
) -> tuple[Floats, Floats]:
    """The weights and intercepts of two classes whose scores differ by w·x + b.

    The weights and the intercept of the negative class are 0.
    """
    is_positive = np.array([float(label == positive) for label in labels])
    return w[:, None] * is_positive, b * is_positive


def provenance(model: Any) -> dict[str, Any]:
    """The estimator, its parameters, documents per class, and log priors (None if it has none).

    Nothing in it is from the texts of the training rows.
    """
    fitted = fitted_text_model_or_none(model)
    if fitted is None:
        return _table_provenance(model.estimator_)
    log_prior = (None if fitted.is_multilabel
                 else fitted.model_with_chosen_l.class_log_prior(fitted.counts))
    # The number that ``l="auto"`` chose.
    chosen = {} if fitted.chosen_l is None else {"chosen": {"l": fitted.chosen_l}}
    return {"estimator": {"name": fitted.model.name,
                          "parameters": fitted.model.get_params(deep=False),
                          **chosen},
            "documents": fitted.counts.class_count.tolist(),
            "log_prior": None if log_prior is None else log_prior.tolist()}


def _table_provenance(estimator: Any) -> dict[str, Any]:
    statistics = getattr(estimator, "statistics_", None)
    counts = getattr(estimator, "class_count_", getattr(statistics, "class_count", []))
    log_prior = getattr(estimator, "class_log_prior_", None)
    if log_prior is None and hasattr(estimator, "priors_"):
        log_prior = np.log(estimator.priors_)
    return {"estimator": {"name": type(estimator).__name__,
                          "parameters": estimator.get_params(deep=False)},
            "documents": np.asarray(counts).tolist(),
            "log_prior": None if log_prior is None else np.asarray(log_prior).tolist()}


def _with_dense_weights(form: LinearForm) -> LinearForm:
    """The same form with an array of weights; ExportError if it is too large."""
    if not isinstance(form.weights, SparseWeights):
        return form
    n_terms, n_classes = form.weights.shape
    n_weights = n_terms * n_classes
    if n_weights > _MAX_WEIGHTS:
        raise ExportError(
            f"{quantity(n_classes, 'class')} and {quantity(n_terms, 'term')} are {n_weights:,} "
            f"weights, and an export, which writes each of them, has at most {_MAX_WEIGHTS:,}; "
            "train with fewer terms (max_features, min_df) or classes")
    return replace(form, weights=np.asarray(form.weights))


def _infinite_weights_message(form: LinearForm) -> str:
    cells = np.argwhere(~np.isfinite(form.weights))
    example = f" (the first is {form.terms[cells[0][0]]!r})" if len(cells) and form.terms else ""
    return (f"{len(cells)} weights are infinite{example}: with l = 0, or one that small, a term "
            "that was never seen in a class rules it out, which other systems can't hold; train "
            "with l > 0, such as 0.01")
