"""Whether documents have changed since a model's thresholds were chosen.

    reference, recent -> answers, labels, errors, unknown words, scores -> measures -> verdict

A measure has drifted if the difference is both large and more than chance: its population stability
index [1]_ is at least 0.2, and a test rejects that both samples are of one distribution. The test
is that of Kolmogorov and Smirnov for numbers and chi-squared for categories. The level of all tests
together is 0.01 (Bonferroni), so of samples without drift one in a hundred gives an alarm at most.
Errors are rare, which makes their index small: their difference is large if their share among
recent documents is at least 1.5 times as high.

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
from textnb.frames.failures import reading
from textnb.frames.scan import scan
from textnb.learning.fitted import Fitted, check_texts

# The level of all tests together, and the smallest index of a large difference; of errors, the
# smallest ratio of their shares.
LEVEL, LARGE, _MORE_ERRORS = 0.01, 0.2, 1.5
# With fewer documents in either sample, there is no verdict.
MIN_DOCUMENTS = 50
AGAIN, SAME, TOO_FEW = "choose again", "nothing drifted", "too few documents to tell"
_BINS = 10


@dataclass(frozen=True, eq=False)
class Sample:
    """A model's answers to a set of documents, and what is unknown to it.

    Attributes
    ----------
    answers : int64 (n_documents,)
        Index of the most probable class; -1 if every class is impossible. For lists of labels, the
        most probable label that is predicted; -1 if there is none.
    scores : float64 (n_documents,)
        Log-odds, base e, of the most probable class or label; without the model's calibration.
    unknown : float64 (n_documents,)
        The share of the tokens that are not terms of the model; NaN for a document without tokens.
    labels : int64 (n_documents,) or None
        Index of each label among the classes; -1 for an unknown one. For a list of labels, the one
        that the model finds the most probable; -1 if it knows none of them.
    wrong : bool (n_documents,) or None
        Whether the answer is not the label, or the labels that are predicted not those of the list.
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
        cls, held: HeldOut, tokens: ArrayLike, unknown: ArrayLike, labelled: bool = True
    ) -> Sample:
        """The sample of scores, numbers of all tokens, and of those that are unknown.

        ``held.actual`` has no meaning if the documents are not ``labelled``.
        """
        numbers = np.asarray(tokens, dtype=np.float64)
        share = np.full(len(numbers), np.nan)
        np.divide(unknown, numbers, out=share, where=numbers > 0)
        answers, labels, scores = held.predicted, held.actual, held.scores
        if held.link == "sigmoid":
            answers, labels = _best(scores, answers), _best(scores, labels)
        else:
            scores = held.odds
        return cls(answers, scores.max(axis=1), share,
                   *((labels, ~held.right) if labelled else ()))


def _best(scores: Floats, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The column of the highest score among those of a mask; -1 if the mask has none."""
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
        Of the test that both samples are of one distribution.
    reference, recent : mapping of str to float
        Shares of the classes, or the median and the upper tenth.
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
        """The names of what has drifted."""
        return [measure.name for measure in self.measures if measure.drifted]

    @property
    def verdict(self) -> str:
        """"choose again", "nothing drifted", or "too few documents to tell"."""
        if min(self.reference_documents, self.recent_documents) < MIN_DOCUMENTS:
            return TOO_FEW
        return AGAIN if self.drifted else SAME

    @property
    def visible(self) -> float:
        """The smallest Kolmogorov-Smirnov distance that is more than chance.

        Smaller differences of unknown words or scores can't be seen on so few documents.
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


def drift(
    model: Any, recent: Any, reference: Any, *, progress: Progress | None = None
) -> Drift:
    """Tell whether recent documents differ from those that thresholds were chosen on.

    A threshold or calibration says something about documents like those that it was chosen on.
    Compared are the shares of the answers, the shares of words that the model does not know, and
    the scores; where both have labels, also their shares, and the errors. Where documents have
    lists of labels, each stands for its most probable label, and an answer is wrong if not all
    labels of the list, and no others, are predicted.

    Parameters
    ----------
    model : TextClassifier
        Fitted.
    recent, reference : DataFrame, LazyFrame or path
        With the model's text columns; labels are optional. The model has learned neither: of rows
        that it has learned, no words are unknown.
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
    return compare(sample_of(fitted, reference, progress), sample_of(fitted, recent, progress),
                   fitted.classes.tolist(), fitted.is_multilabel)


def check_model(model: Any) -> Fitted:
    """The fitted state of a model whose answers can drift.

    Raises
    ------
    ParameterError
        If it is not a model of texts, or has a single class.
    """
    fitted = check_texts(model)
    if len(fitted.classes) < 2 and not fitted.is_multilabel:
        raise ParameterError("the model has a single class, so its answers can't drift: train it "
                             "on documents of two classes or more")
    return fitted


def sample_of(fitted: Fitted, frame: Any, progress: Progress | None = None) -> Sample:
    """The sample of a table, whose label column is optional."""
    tokens: list[NDArray[np.int64]] = []
    known: list[NDArray[Any]] = []
    lengths = fitted.settings.tokenizer.expr(fitted.columns).list.len().cast(pl.Int64)

    def count(rows: pl.DataFrame, counts: SparseRows) -> None:
        known.append(counts.sum(axis=1))
        tokens.append(rows.select(n=lengths)["n"].to_numpy())

    with reading(frame):
        labelled = fitted.label in scan(
            frame, text=fitted.columns, tokens=fitted.token_columns).collect_schema()
    held = score_held_out(fitted, frame, progress, count, labelled)
    if held.novelty is not None:
        held.novelty.warn()
    numbers = np.concatenate(tokens)
    return Sample.of(held, numbers, numbers - np.concatenate(known), labelled)


def compare(
    reference: Sample, recent: Sample, classes: Sequence[Any], of_lists: bool = False
) -> Drift:
    """Compare two samples of the same model, which may be one of lists of labels."""
    names = {UNKNOWN: "(none)" if of_lists else "(other)",
             **{code: str(label) for code, label in enumerate(classes)}}
    comparisons = []
    if len(reference) and len(recent):
        comparisons = [_compare_categories("answers", reference.answers, recent.answers, names)]
        if reference.labels is not None and recent.labels is not None:
            comparisons.append(_compare_categories(
                "labels", reference.labels, recent.labels, names))
        if reference.wrong is not None and recent.wrong is not None:
            comparisons.append(_compare_categories(
                "errors", reference.wrong.astype(np.int64), recent.wrong.astype(np.int64),
                {0: "right", 1: "wrong"}))
        for name, pair in (("unknown words", (reference.unknown, recent.unknown)),
                           ("scores", (reference.scores, recent.scores))):
            old, new = (values[~np.isnan(values)] for values in pair)
            if len(old) and len(new):
                comparisons.append(_compare_numbers(name, old, new))
    enough = min(len(reference), len(recent)) >= MIN_DOCUMENTS
    level = LEVEL / max(1, len(comparisons))
    return Drift(
        tuple(replace(measure, drifted=enough and measure.p_value < level and _is_large(measure))
              for measure in comparisons),
        len(reference), len(recent))


def _is_large(measure: DriftMeasure) -> bool:
    if measure.name == "errors":
        before = measure.reference.get("wrong", 0.0)
        return measure.recent.get("wrong", 0.0) >= _MORE_ERRORS * before
    return measure.index >= LARGE


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

    reference, recent = (np.nan_to_num(values) for values in (reference, recent))
    p = float(ks_2samp(reference, recent, method="asymp").pvalue)
    edges = np.unique(np.quantile(reference, np.arange(1, _BINS) / _BINS))
    # Each edge is a bin of its own, as many documents may have that value: an odd number of bins.
    counts = [np.bincount(np.searchsorted(edges, values) + np.searchsorted(edges, values, "right"),
                          minlength=2 * len(edges) + 1) for values in (reference, recent)]
    old, new = ({"median": float(np.median(values)),
                 "upper tenth": float(np.quantile(values, 0.9))} for values in (reference, recent))
    return DriftMeasure(name, stability_index(*counts), p, old, new)


def stability_index(reference: ArrayLike, recent: ArrayLike) -> float:
    """The population stability index of two vectors of counts.

    Half a document is added to each count, so that an empty bin does not make the difference
    infinite.

    Examples
    --------
    >>> round(stability_index([500, 500], [500, 500]), 3)
    0.0
    >>> round(stability_index([500, 500], [800, 200]), 3)
    0.415
    """
    old, new = (np.asarray(counts, dtype=np.float64) + 0.5 for counts in (reference, recent))
    used = (old > 0.5) | (new > 0.5)
    old, new = old[used] / old[used].sum(), new[used] / new[used].sum()
    return float(((new - old) * np.log(new / old)).sum())
