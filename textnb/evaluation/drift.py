"""Whether documents have changed since a model's thresholds were chosen.

    reference, recent -> answers, labels, errors, unknown words, scores -> measures -> verdict

A measure has drifted if the difference is both large and more than chance: its population stability
index [1]_ is at least 0.2, and a test rejects that both samples are of one distribution. The test
is Kolmogorov-Smirnov for numbers and chi-squared for categories. The level of all tests together is
0.01 (Bonferroni): at most one in a hundred samples without drift gives an alarm. Errors are rare,
which makes their index small, so their difference is large if their share among recent documents is
at least 1.5 times their share in the reference.

References
----------
.. [1] B. Yurdakul, J. Naranjo (2020). Statistical properties of the population stability index.
   Journal of Risk Model Validation 14(4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import ParameterError, quantity
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.labelled import score_held_out
from textnb.evaluation.novelty import UNKNOWN
from textnb.frames.batches import Progress
from textnb.frames.failures import naming_source
from textnb.frames.kinds import select_columns
from textnb.frames.scan import scan
from textnb.learning.fitted import Fitted, fitted_text_model

# The significance level of all tests together; the minimum stability index of a large difference,
# and the minimum ratio of the shares of errors.
LEVEL, _MIN_INDEX, _MIN_ERROR_RATIO = 0.01, 0.2, 1.5
# With fewer documents in either sample, there is no verdict.
_MIN_DOCUMENTS = 50
# The verdicts.
AGAIN, SAME, TOO_FEW = "choose again", "nothing drifted", "too few documents to tell"
# Numbers are counted in this many bins, each of which has a tenth of the reference.
_N_BINS = 10


@dataclass(frozen=True, eq=False)
class Sample:
    """A model's answers to a set of documents, and their shares of unknown words.

    Attributes
    ----------
    answers : int64 (n_documents,)
        Index of the most probable class; -1 if every class is impossible. For lists of labels, the
        most probable label that is predicted; -1 if there is none.
    scores : float64 (n_documents,)
        Log-odds, base e, of the most probable class or label; not calibrated.
    unknown : float64 (n_documents,)
        The share of the tokens that are not terms of the model; NaN for a document without tokens.
    labels : int64 (n_documents,) or None
        Index of each label among the classes; -1 for an unknown label. For a list of labels, the
        label that the model finds the most probable; -1 if it knows none of them.
    wrong : bool (n_documents,) or None
        Whether the answer differs from the label, or the predicted labels from the list.
    """

    answers: NDArray[np.int64]
    scores: Floats
    unknown: Floats
    labels: NDArray[np.int64] | None = None
    wrong: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.answers)

    @classmethod
    def of(
        cls, held: HeldOut, n_tokens: ArrayLike, n_unknown: ArrayLike, labelled: bool = True
    ) -> Sample:
        """Make a sample from scores and from each document's numbers of tokens and unknown tokens.

        ``held.actual`` has no meaning if the documents are not ``labelled``.
        """
        totals = np.asarray(n_tokens, dtype=np.float64)
        share = np.full(len(totals), np.nan)
        np.divide(n_unknown, totals, out=share, where=totals > 0)
        answers, labels, scores = held.predicted, held.actual, held.scores
        if held.is_multilabel:
            answers, labels = _best_of_mask(scores, answers), _best_of_mask(scores, labels)
        else:
            scores = held.odds
        return cls(answers, scores.max(axis=1), share, *((labels, ~held.right) if labelled else ()))


def _best_of_mask(scores: Floats, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each row, the column with the highest score of those in the mask; -1 if it has none."""
    best = np.where(mask, scores, -np.inf).argmax(axis=1)
    return np.where(mask.any(axis=1), best, UNKNOWN).astype(np.int64)


@dataclass(frozen=True)
class DriftMeasure:
    """The difference of two samples in one respect.

    Attributes
    ----------
    name : str
        "answers", "labels", "errors", "unknown words" or "scores".
    index : float
        The population stability index, over classes or tenths of the reference.
    p_value : float
        The p-value of the test that both samples are of one distribution.
    reference, recent : mapping of str to float
        Shares of the classes, or the median and the 90th percentile ("upper tenth").
    drifted : bool
        Whether the difference is large and more than chance.
    """

    name: str
    index: float
    p_value: float
    reference: dict[str, float]
    recent: dict[str, float]
    drifted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True)
class Drift:
    """Whether documents have changed.

    Attributes
    ----------
    measures : tuple of DriftMeasure
    reference_documents, recent_documents : int

    Examples
    --------
    >>> result = Drift((), 20, 4000)
    >>> result.verdict
    'too few documents to tell'
    """

    measures: tuple[DriftMeasure, ...]
    reference_documents: int
    recent_documents: int

    def __repr__(self) -> str:
        return (f"Drift({self.verdict}: {quantity(self.recent_documents, 'document')} against "
                f"{self.reference_documents:,})")

    @property
    def drifted(self) -> list[str]:
        """The names of the measures that have drifted."""
        return [measure.name for measure in self.measures if measure.drifted]

    @property
    def verdict(self) -> str:
        """"choose again", "nothing drifted", or "too few documents to tell"."""
        if min(self.reference_documents, self.recent_documents) < _MIN_DOCUMENTS:
            return TOO_FEW
        return AGAIN if self.drifted else SAME

    @property
    def visible(self) -> float:
        """The smallest Kolmogorov-Smirnov distance that is more than chance.

        Smaller differences of unknown words or scores can't be seen on so few documents. In the
        asymptotic test of n and m documents, it is sqrt(-log(level / 2) / 2 * (n + m) / (n m)).
        """
        n, m = self.reference_documents, self.recent_documents
        if not (n and m):
            return 1.0
        level = LEVEL / max(1, len(self.measures))
        return min(1.0, math.sqrt(-math.log(level / 2) / 2 * (n + m) / (n * m)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"verdict": self.verdict, "drifted": self.drifted,
                "reference_documents": self.reference_documents,
                "recent_documents": self.recent_documents, "visible": self.visible,
                "measures": [measure.to_dict() for measure in self.measures]}


def drift(model: Any, recent: Any, reference: Any, *, progress: Progress | None = None) -> Drift:
    """Tell whether recent documents differ from those that thresholds were chosen on.

    A threshold or calibration is valid for documents like those that it was chosen on. Answers, the
    shares of words that the model does not know, and scores are compared; if both sets of documents
    have labels, also labels and errors. A list of labels counts as its most probable label, and an
    answer is right if exactly the labels of the list are predicted.

    Parameters
    ----------
    model : TextClassifier
        Fitted.
    recent, reference : DataFrame, LazyFrame or path
        With the model's text columns; labels are optional. The model must have learned neither, as
        learned rows have no unknown words.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    Drift

    Raises
    ------
    ParameterError
        If the model has a single class.
    DataError
        If there are no rows.

    Warns
    -----
    LearnedRowsWarning
        If the model has probably learned labelled rows.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> model = TextClassifier().fit(["cash prize", "see you"], ["spam", "ham"])
    >>> old = pl.DataFrame({"text": ["cash now", "see me", "prize", "you"] * 50})
    >>> new = pl.DataFrame({"text": ["crypto cash", "brand new words", "you", "prize"] * 50})
    >>> drift(model, new, old)
    Drift(choose again: 200 documents against 200)
    >>> drift(model, new, old).drifted
    ['unknown words', 'scores']
    >>> drift(model, old.head(100), old).verdict
    'nothing drifted'
    """
    fitted = check_model(model)
    return compare_samples(
        sample_of(fitted, reference, progress), sample_of(fitted, recent, progress),
        fitted.classes.tolist(), fitted.is_multilabel)


def check_model(model: Any) -> Fitted:
    """The fitted state of a model whose answers can drift.

    Raises
    ------
    ParameterError
        If it is not a model of texts, or has a single class.
    """
    fitted = fitted_text_model(model)
    if len(fitted.classes) < 2 and not fitted.is_multilabel:
        raise ParameterError("the model has a single class, so its answers can't drift: train it "
                             "on documents of two classes or more")
    return fitted


def sample_of(fitted: Fitted, frame: Any, progress: Progress | None = None) -> Sample:
    """Score a table, whose label column is optional, for its sample."""
    n_tokens: list[NDArray[np.int64]] = []
    n_known_tokens: list[NDArray[Any]] = []
    lengths = fitted.settings.tokenizer.expr(fitted.columns).list.len().cast(pl.Int64)

    def count(rows: pl.DataFrame, counts: SparseRows) -> None:
        n_known_tokens.append(counts.sum(axis=1))
        n_tokens.append(rows.select(n=lengths)["n"].to_numpy())

    with naming_source(frame):
        labelled = fitted.label in scan(
            select_columns(frame, [*fitted.columns, fitted.label]), text=fitted.columns,
            tokens=fitted.token_columns).collect_schema()
    held = score_held_out(fitted, frame, progress, watch=count, labelled=labelled)
    if held.novelty is not None:
        held.novelty.warn()
    totals = np.concatenate(n_tokens)
    return Sample.of(held, totals, totals - np.concatenate(n_known_tokens), labelled)


def compare_samples(
    reference: Sample, recent: Sample, classes: Sequence[Any], of_lists: bool = False
) -> Drift:
    """Compare two samples of answers of one model, with lists of labels or single ones."""
    # The names of answers and labels by their index: see `Sample`.
    names, unknown = dict(enumerate(map(str, classes))), "(none)" if of_lists else "(other)"
    while unknown in names.values():
        unknown = f"({unknown})"
    names = {UNKNOWN: unknown, **names}
    measures = []
    if len(reference) and len(recent):
        measures = [_compare_categories("answers", reference.answers, recent.answers, names)]
        if reference.labels is not None and recent.labels is not None:
            measures.append(_compare_categories("labels", reference.labels, recent.labels, names))
        if reference.wrong is not None and recent.wrong is not None:
            measures.append(_compare_categories(
                "errors", reference.wrong.astype(np.int64), recent.wrong.astype(np.int64),
                {0: "right", 1: "wrong"}))
        for name, pair in (("unknown words", (reference.unknown, recent.unknown)),
                           ("scores", (reference.scores, recent.scores))):
            old, new = (values[~np.isnan(values)] for values in pair)
            if len(old) and len(new):
                measures.append(_compare_numbers(name, old, new))
    has_enough = min(len(reference), len(recent)) >= _MIN_DOCUMENTS
    # Bonferroni: the tests share the level.
    level = LEVEL / max(1, len(measures))
    return Drift(
        tuple(replace(measure, drifted=has_enough and measure.p_value < level
                      and _is_large(measure)) for measure in measures),
        len(reference), len(recent))


def _is_large(measure: DriftMeasure) -> bool:
    if measure.name == "errors":
        reference_share = measure.reference.get("wrong", 0.0)
        return measure.recent.get("wrong", 0.0) >= _MIN_ERROR_RATIO * reference_share
    return measure.index >= _MIN_INDEX


def _compare_categories(
    name: str, reference: NDArray[np.int64], recent: NDArray[np.int64], names: dict[int, str]
) -> DriftMeasure:
    # Imported here, as SciPy's statistics take long to load.
    from scipy.stats import chi2_contingency

    codes = [code for code in names if (reference == code).any() or (recent == code).any()]
    counts = np.array([[int((values == code).sum()) for code in codes]
                       for values in (reference, recent)])
    p = 1.0 if len(codes) < 2 else float(chi2_contingency(counts).pvalue)
    shares = counts / counts.sum(axis=1, keepdims=True)
    old, new = ({names[code]: float(share) for code, share in zip(codes, row, strict=True)}
                for row in shares)
    return DriftMeasure(name, stability_index(*counts), p, old, new)


def _compare_numbers(name: str, reference: Floats, recent: Floats) -> DriftMeasure:
    from scipy.stats import ks_2samp

    # Infinite scores become the largest numbers, as quantiles between infinities are NaN.
    reference, recent = (np.nan_to_num(values) for values in (reference, recent))
    p = float(ks_2samp(reference, recent, method="asymp").pvalue)
    edges = np.unique(np.quantile(reference, np.arange(1, _N_BINS) / _N_BINS))
    # Many documents may have the value of an edge, so each edge is a bin of its own: the sum of the
    # two positions is odd at an edge, and even between edges.
    counts = [np.bincount(np.searchsorted(edges, values) + np.searchsorted(edges, values, "right"),
                          minlength=2 * len(edges) + 1) for values in (reference, recent)]
    old, new = ({"median": float(np.median(values)),
                 "upper tenth": float(np.quantile(values, 0.9))} for values in (reference, recent))
    return DriftMeasure(name, stability_index(*counts), p, old, new)


def stability_index(reference: ArrayLike, recent: ArrayLike) -> float:
    """The population stability index of two vectors of counts, one count per bin.

    It is Σ (b - a) log(b / a) over the bins, whose shares of the counts are a and b. Half a
    document is added to each count, so that an empty bin does not make the index infinite.

    Examples
    --------
    >>> round(stability_index([500, 500], [500, 500]), 3)
    0.0
    >>> round(stability_index([500, 500], [800, 200]), 3)
    0.415
    """
    old, new = (np.asarray(counts, dtype=np.float64) + 0.5 for counts in (reference, recent))
    is_filled = (old > 0.5) | (new > 0.5)
    old, new = old[is_filled] / old[is_filled].sum(), new[is_filled] / new[is_filled].sum()
    return float(((new - old) * np.log(new / old)).sum())
