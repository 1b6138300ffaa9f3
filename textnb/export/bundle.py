"""A bundle: a linear form, the tokenizer of its input, and golden rows that verify it.

    form.json         classes, intercepts, tokenizer, calibration, decision, provenance
    weights.parquet   one row per term or feature, one column per class, or one ``w``
    golden.parquet    documents, their tokens, and the scores and labels that they must get
    characters.json   how texts are split: the characters of words, their lower case, and so on
    model.*           the target's own file, if it needs more than these tables
    README.md         how it is used, for people
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
from textnb.bayes.decision import Decision, choose_labels, label_thresholds
from textnb.bayes.features import Center, Idf, Length, Presence, Step, Sublinear
from textnb.bayes.forms import Floats, LinearForm, RequiredTermsForm
from textnb.bayes.sparse_weights import SparseWeights
from textnb.errors import ExportError, ParameterError, quantity
from textnb.export.portable import Words, portable
from textnb.learning.fitted import fitted_texts
from textnb.text.matrix import CountMatrix, Vocabulary, merge_tokens
from textnb.text.tokens import Tokenizer, check_exact

Reads = Literal["text", "terms", "features"]
# The possible answers of a target's file. Labels are always among them.
ANSWERS = ("scores", "probability", "decision")
# The maximum number of weights of an export, which writes each of them: 1 GiB, at 8 bytes each.
_MAX_WEIGHTS = 1 << 27
# The steps of feature maps that a bundle can have, by what it reads. A target may support fewer.
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
        Text columns; for features, their names.
    positive : label or None
        If given, the form has two classes and is exported as one ``w`` and ``b``; this class is
        predicted if ``w·x + b > 0``.
    provenance : mapping
        The estimator, its parameters, documents per class, and log priors (base e).
    calibration : Calibration or None
        Applied to probabilities, not to scores.
    decision : Decision or None
        For lists of labels, targets predict with it. For one class per row, they predict the most
        probable class, and add the decision if ``answers`` has it.
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
    answers: tuple[str, ...] = ANSWERS[:1]

    def __post_init__(self) -> None:
        object.__setattr__(self, "form", _with_dense_weights(self.form))
        form = self.form
        if form.terms is None or len(form.terms) != len(form.weights):
            raise ExportError("the form has no names for its weights")
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
                raise ParameterError.naming(
                    "{positive} is for a model of two classes, and this has {number}: leave it "
                    "out, and each class has its weights", number=len(self.labels))
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
    def gives_decisions(self) -> bool:
        """Whether answers have a column ``decision``; never for lists of labels."""
        return "decision" in self.answers and not self.is_multilabel

    @property
    def needs_length(self) -> bool:
        """Whether probabilities need the sum of the values that were scored in each row."""
        return (len(self.answers) > 1 and self.calibration is not None
                and bool(self.calibration.length_exponent))

    @property
    def min_odds(self) -> list[float]:
        """The minimum log-odds of each class by the decision, which may be infinite."""
        assert self.decision is not None
        return [self.decision.thresholds[label] for label in self.labels]

    def labels_at(self, places: Iterable[int | None]) -> list[Any]:
        """The classes at some indices; None if the index is None or negative."""
        return [None if k is None or k < 0 else self.labels[k] for k in places]

    def labels_of(self, chosen: Iterable[ArrayLike]) -> list[list[Any]]:
        """Convert the rows of a boolean matrix (n_rows, n_labels) to lists of labels."""
        return [[self.labels[k] for k in np.flatnonzero(row)] for row in chosen]

    @property
    def thresholds(self) -> Floats:
        """The threshold of each label, for lists of labels: float64 (n_labels,).

        All are finite: infinite ones are the smallest and largest float, below and above every
        score.
        """
        thresholds: Floats = np.nan_to_num(label_thresholds(self.labels, self.decision))
        return thresholds

    @property
    def terms(self) -> tuple[str, ...]:
        assert self.form.terms is not None
        return self.form.terms

    @property
    def above(self) -> float | None:
        """The number that counts are compared with: 1 above it, else 0; None for plain counts."""
        return self.form.features.presence_above

    @property
    def idf(self) -> Floats | None:
        """The inverse document frequency of each term, (n_terms,); None if the form has none."""
        return next((s.weights for s in self.form.features.steps if isinstance(s, Idf)), None)

    @property
    def splitter(self) -> Tokenizer:
        """The tokenizer of a form of texts or tokens."""
        if self.tokenizer is None:
            raise ExportError("this form reads numbers, not texts")
        return self.tokenizer

    def words(self, executes: Collection[str]) -> Words:
        """How a target splits texts into words.

        Raises
        ------
        ExportError
            If words are not runs of characters, or need a field of `Words` that is not among those
            that the target executes.
        """
        return portable(self.splitter.plan(), self.columns).executed_by(executes)

    @cached_property
    def weights(self) -> Floats:
        """The weights: a column per class, or ``w`` alone: float64 (n_terms, n_outputs)."""
        if self.positive is None:
            return np.asarray(self.form.weights)
        return self.form.binary(self.positive)[0][:, None]

    @cached_property
    def intercept(self) -> Floats:
        """The intercepts for features that are not centered: float64 (n_outputs,)."""
        if self.positive is None:
            return self.form.uncentered().intercept
        return np.array([self.form.binary(self.positive)[1]])

    def center_and_intercept(self) -> tuple[Floats | None, Floats]:
        """The center that is subtracted from features (or None), and the intercepts after that.

        Subtraction keeps the digits of features far from zero.
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

        For lists of labels: a list of the labels whose scores are above their thresholds.
        """
        if self.is_multilabel:
            return self.labels_of(choose_labels(scores, self.labels, self.decision))
        if self.positive is not None:
            return [self.positive if score > 0 else self.negative for score in scores[:, 0]]
        return self.labels_at(scores.argmax(axis=1).tolist())

    def find_ties(self, scores: Floats, rows: CountMatrix | Floats, tolerance: float
                  ) -> NDArray[np.bool_]:
        """Mask of the rows whose two best scores are equal within a tolerance: (n_rows,).

        For lists of labels: whose score of a label equals its threshold, or where the last label
        that the decision's ``ranks`` allow and the next one have equal scores. Rounding decides the
        answers to these rows. A row without known terms is not among them, as its scores are
        exactly the intercepts.
        """
        if self.is_multilabel:
            excess = scores - self.thresholds
            margin = np.abs(excess).min(axis=1)
            ordered = -np.sort(-excess, axis=1)
            # Rounding may exchange the labels on both sides of the last rank.
            for rank in (self.decision.ranks.values() if self.decision else ()):
                if rank < excess.shape[1]:
                    margin = np.minimum(margin, ordered[:, rank - 1] - ordered[:, rank])
        elif scores.shape[1] == 1:
            margin = np.abs(scores[:, 0])
        else:
            ordered = np.sort(scores, axis=1)
            margin = ordered[:, -1] - ordered[:, -2]
        ties: NDArray[np.bool_] = (
            margin <= 4 * tolerance * np.maximum(1.0, np.abs(scores).max(axis=1)))
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
        flat = tokens.explode(empty_as_null=False, keep_nulls=False)
        columns = flat.replace_strict(
            pl.Series(self.terms, dtype=pl.String),
            pl.Series(range(len(self.terms)), dtype=pl.Int64), default=-1,
            return_dtype=pl.Int64).to_numpy()
        row = np.repeat(np.arange(len(tokens)), tokens.list.len().cast(pl.Int64).to_numpy())
        is_known = columns >= 0
        lengths = np.bincount(row[is_known], minlength=len(tokens))
        return merge_tokens(lengths, columns[is_known], len(self.terms))

    def select(self, mask: NDArray[np.bool_]) -> Bundle:
        """A bundle with the terms that a mask selects."""
        places = np.flatnonzero(mask)
        form = replace(self.form, weights=self.form.weights[places],
                       terms=tuple(self.terms[t] for t in places),
                       features=self.form.features.select(places))
        # Calibration and decision are valid only with all terms, so they are dropped. Lists of
        # labels need thresholds, so they keep the decision, as stale.
        decision = self.decision if self.is_multilabel else None
        return replace(self, form=form, calibration=None, decision=decision and decision.as_stale(
            "terms were left out"), answers=tuple(
            name for name in self.answers if name != "decision"))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.splitter, pl.Series(self.terms, dtype=pl.String))


def bundle_of(
    model: Any, reads: Reads | None = None, positive: Any = None
) -> Bundle:
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
    fitted = fitted_texts(model)
    if model is not fitted:
        model.check_unchanged("exporting")
    try:
        form = model.linear_form()
    except ParameterError as error:
        raise ExportError(f"{error}; what can be exported has one weight per feature and class: "
                          "LinearDiscriminantAnalysis, NearestCentroid, "
                          "GaussianNB(shared_variance=True)") from None
    if positive is not None:
        positive = _form_label(form, positive)
    # The part of the scores that all classes share has large weights and decides nothing.
    form = form.discriminant
    if fitted is None:
        if reads not in (None, "features"):
            raise ParameterError(f"a model of feature tables reads features, not {reads}")
        names = tuple(model.feature_names_)
        form = replace(form, terms=names)
        return Bundle(form, "features", None, names, positive, provenance(model))
    columns, tokenizer = tuple(fitted.columns), fitted.settings.tokenizer
    try:
        check_exact(tokenizer, "an export")
    except ParameterError as error:
        raise ExportError(str(error)) from None
    # As a file holds it: of a segmenter, only the name. The receiver is given its tokens.
    tokenizer = Tokenizer.from_dict(tokenizer.to_dict())
    return Bundle(form, reads or "text", tokenizer, columns, positive,
                  provenance(model), fitted.calibration, fitted.decision)


def two_columns(
    labels: Sequence[Any], positive: Any, w: Floats, b: float
) -> tuple[Floats, Floats]:
    """The weights and intercepts of two classes; those of the negative class are 0.

    So the difference of the two scores is w·x + b.
    """
    is_positive = np.array([float(label == positive) for label in labels])
    return w[:, None] * is_positive, b * is_positive


def _form_label(form: LinearForm, positive: Any) -> Any:
    """The form's class that equals a label, as a Python value that JSON can hold."""
    value = positive.item() if isinstance(positive, np.generic) else positive
    for label in form.classes.tolist():
        if type(label) is type(value) and label == value:
            return label
    if isinstance(positive, str) and form.classes.dtype.kind in "bi":
        raise ParameterError(f"positive={positive!r} is a string, and the classes are "
                             f"{', '.join(map(repr, form.classes.tolist()[:5]))}: give one of them")
    raise ParameterError.unknown_choice("positive", positive, form.classes.tolist())


def provenance(model: Any) -> dict[str, Any]:
    """The estimator, its parameters, and the number of documents; no text of the training rows.

    A model of lists of labels has no priors of classes.
    """
    fitted = fitted_texts(model)
    if fitted is None:
        return _table_provenance(model.estimator_)
    log_prior = (None if fitted.is_multilabel
                 else fitted.solved_model.class_log_prior(fitted.counts))
    chosen = {} if fitted.chosen_l is None else {"chosen": {"l": fitted.chosen_l}}
    return {"estimator": {"name": fitted.model.name,
                          "parameters": fitted.model.get_params(deep=False),
                          **chosen},
            "documents": fitted.counts.class_count.tolist(),
            "log_prior": None if log_prior is None else log_prior.tolist()}


def _table_provenance(estimator: Any) -> dict[str, Any]:
    learned = getattr(estimator, "statistics_", None)
    counts = getattr(estimator, "class_count_", getattr(learned, "class_count", []))
    log_prior = getattr(estimator, "class_log_prior_", None)
    if log_prior is None and hasattr(estimator, "priors_"):
        log_prior = np.log(estimator.priors_)
    return {"estimator": {"name": type(estimator).__name__,
                          "parameters": estimator.get_params(deep=False)},
            "documents": np.asarray(counts).tolist(),
            "log_prior": None if log_prior is None else np.asarray(log_prior).tolist()}


def _with_dense_weights(form: LinearForm) -> LinearForm:
    """The same form, as targets write it; ExportError if it has too many weights for that."""
    if not isinstance(form.weights, SparseWeights):
        return form
    terms, classes = form.weights.shape
    if terms * classes > _MAX_WEIGHTS:
        raise ExportError(
            f"{quantity(classes, 'class')} and {quantity(terms, 'term')} are {terms * classes:,} "
            f"weights, and an export, which writes each of them, has at most {_MAX_WEIGHTS:,}; "
            "train with fewer terms (max_features, min_df) or classes")
    return replace(form, weights=np.asarray(form.weights))


def _infinite_weights_message(form: LinearForm) -> str:
    where = np.argwhere(~np.isfinite(form.weights))
    example = f" (the first is {form.terms[where[0][0]]!r})" if len(where) and form.terms else ""
    return (f"{len(where)} weights are infinite{example}: with l = 0, or one that small, a term "
            "that was never seen in a class rules it out, which other systems can't hold; train "
            "with l > 0, such as 0.01")
