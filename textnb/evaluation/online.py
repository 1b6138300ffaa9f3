"""Judge documents in order, and learn each block after it was judged: the order of a mailbox.

    block 0 -> learn
    block 1 -> judge by the model of block 0 -> learn
    block 2 -> judge by the model of blocks 0 and 1 -> learn ...

The setting and its measures come from the TREC spam track: G. V. Cormack, T. R. Lynam (2005), TREC
2005 spam track overview. Delayed and partial feedback come from TREC 2006 and 2007.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.counts import Counts
from textnb.bayes.forms import Floats
from textnb.bayes.labels import NO_LABELS, Labels
from textnb.errors import DataError, ParameterError, quantity
from textnb.evaluation.decisions import scores_at_threshold
from textnb.evaluation.folds import Recipe, ScoresByModels
from textnb.evaluation.held_out import HeldOut
from textnb.evaluation.roc import check_positive, roc
from textnb.frames.batches import Progress
from textnb.frames.failures import naming_source
from textnb.frames.names import check_name
from textnb.learning.documents import labels_of
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import count, fit_from_counts
from textnb.runtime.settings import is_number, is_whole
from textnb.selection.splits import time_order

if TYPE_CHECKING:
    from textnb.classifiers.text import TextClassifier

# The share of ham that may be called spam when the rate of missed spam is measured. In the TREC
# spam track, hm% is the per cent of misclassified ham, here .1, and sm% that of misclassified spam.
HAM_SHARE = 0.001
# The numbers of bootstrap samples, and of parts of the curve.
_N_SAMPLES, _N_PARTS = 200, 10
Interval = tuple[float, float]


@dataclass(frozen=True)
class OnlineResult:
    """Measures of one class, such as spam, over documents that were judged in order.

    Attributes
    ----------
    held : HeldOut
        The scores, in order; ``folds`` are the blocks.
    positive : label
    roca : float
        1-ROCA%: see `HeldOut.roca`.
    missed_at_share : float
        Per cent of the positive documents that are missed if 0.1 % of the others are called
        positive: sm% at hm% = .1.
    false_positives, false_negatives : float
        Per cent of the other documents that are called positive (hm%), and of the positive
        documents that are not (sm%): at log-odds 0, or at the thresholds of the models.
    roca_interval, missed_interval : (float, float)
        95 % intervals, from 200 bootstrap samples of the documents.
    curve : DataFrame
        A row per tenth of the documents: the number of ``documents`` that were judged up to its
        end, the number of documents ``learned`` by the model that judged the last of them, and
        ``roca``, ``false_positives`` and ``false_negatives`` of the tenth, null if it has only
        positive documents, or none.
    """

    held: HeldOut
    positive: Any
    roca: float
    missed_at_share: float
    false_positives: float
    false_negatives: float
    roca_interval: Interval
    missed_interval: Interval
    curve: pl.DataFrame

    def __repr__(self) -> str:
        return (f"OnlineResult({quantity(len(self.held), 'document')}, {self.positive!r}: 1-ROCA "
                f"{self.roca:.4f} %, {self.missed_at_share:.2f} % missed at "
                f"{100 * HAM_SHARE:g} % false positives)")

    def to_dict(self) -> dict[str, Any]:
        """All measures, JSON-ready; without the scores."""
        return {"method": self.held.method, "positive": self.positive,
                "documents": len(self.held), "roca": self.roca,
                "roca_interval": list(self.roca_interval),
                "missed_at_share": self.missed_at_share,
                "missed_interval": list(self.missed_interval), "share": HAM_SHARE,
                "false_positives": self.false_positives,
                "false_negatives": self.false_negatives, "curve": self.curve.to_dicts()}


def validate_online(
    model: TextClassifier | Fitted, frame: Any, positive: Any = None, *, time: str | None = None,
    block: int = 100, delay: int = 0, feedback: float = 1.0, seed: int = 0,
    max_false_positive_rate: float | None = None, progress: Progress | None = None,
) -> OnlineResult | HeldOut:
    """Judge documents in order, each block by a model of those before it.

    If sums of counts determine the model, it learns each block after it was judged. Other models
    (`NBLinear`, ``l="auto"``) are fitted again for each block: choose larger blocks for them.

    Parameters
    ----------
    model : TextClassifier
        The settings. It need not be fitted, and is not changed.
    frame : DataFrame, LazyFrame or path
        With the model's text and label columns. It is collected in memory.
    positive : label, optional
        The class whose errors are measured against all others; by default "spam". Must be None for
        lists of labels, all of which are measured.
    time : str, optional
        Column that gives the order of the documents; by default they come in the frame's order.
    block : int
        The number of documents that are judged by the same model. The first block is learned and
        not judged; it is longer if it lacks a class or, for lists of labels, has no label.
    delay : int
        The number of documents that come between a document and the time at which it is learned.
    feedback : float
        The share of the documents that are learned at all: in (0, 1].
    seed : int
        Determines which documents are learned.
    max_false_positive_rate : float, optional
        Each model chooses the threshold that limits the false positives to this share, on its
        out-of-fold scores of the documents that it learned, as ``textnb train`` does for mail; with
        too few documents, the threshold is 0. Thresholds are subtracted from scores, which makes
        the margins of models easier to compare: fitted apart, they have no common zero.
    progress : callable, optional
        Called with the number of documents of each block.

    Returns
    -------
    OnlineResult, or `HeldOut` if documents have lists of labels

    Raises
    ------
    ParameterError
        If a setting is out of range, ``positive`` is not a class, or the model's fit makes no
        out-of-fold scores (`NBLinear` does), which ``max_false_positive_rate`` needs.
    DataError
        If there are no rows, only one class, a label or time is null, or nothing is left to judge.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> frame = pl.DataFrame({"text": ["cheap pills", "see you", "pills", "you and me"] * 5,
    ...                       "label": ["spam", "ham"] * 10})
    >>> result = validate_online(TextClassifier(), frame, block=4)
    >>> len(result.held), result.roca, result.false_negatives
    (16, 0.0, 0.0)
    """
    _check_settings(block, delay, feedback)
    recipe = Recipe.of(
        model, "validate_online", with_scores_left_out=max_false_positive_rate is not None)
    names, label = recipe.settings.columns, recipe.settings.label
    with naming_source(frame):
        time_columns = [] if time is None else [time]
        for name in time_columns:
            check_name(name, "time")
        rows = recipe.scan(frame, time).select(
            *dict.fromkeys([*names, label, *time_columns])).collect()
        if not rows.height:
            raise DataError.no_rows("the input")
        # Before rows are sorted, so that an error names the number of a row in the frame.
        labels = labels_of(rows[label])
        if time is not None:
            rows = rows[time_order(rows[time], time)]
            labels = labels_of(rows[label])
        rows = rows.select(*names, label)
        if labels.is_multilabel:
            for name, value in (("positive", positive),
                                ("max_false_positive_rate", max_false_positive_rate)):
                if value is not None:
                    raise ParameterError.multilabel("a class of validation in order", name)
        else:
            positive = check_positive(
                labels.classes.tolist(), "spam" if positive is None else positive)
        has_feedback = np.random.default_rng(seed).random(rows.height) < feedback
        held, n_learned = _judge_blocks(
            recipe, rows, labels, has_feedback, block, delay, progress,
            None if max_false_positive_rate is None else lambda fitted: scores_at_threshold(
                fitted, positive, max_false_positive_rate))
    return held if labels.is_multilabel else measure_online(held, positive, n_learned)


def _check_settings(block: Any, delay: Any, feedback: Any) -> None:
    if not is_whole(block) or block < 1:
        raise ParameterError.out_of_range("block", "an int >= 1", block)
    if not is_whole(delay) or delay < 0:
        raise ParameterError.out_of_range("delay", "an int >= 0", delay)
    if not is_number(feedback) or not 0.0 < feedback <= 1.0:
        raise ParameterError.out_of_range("feedback", "a share above 0 and up to 1", feedback)


def _judge_blocks(
    recipe: Recipe, rows: pl.DataFrame, labels: Labels, has_feedback: NDArray[np.bool_], block: int,
    delay: int, progress: Progress | None, thresholds_of: Callable[[Fitted], Floats] | None,
) -> tuple[HeldOut, NDArray[np.int64]]:
    """Score the blocks after the first.

    Returns the scores, and for each document how many the model that scored it had learned.
    ``thresholds_of`` gives what is subtracted from the scores of a model: (n_classes,).
    """
    learn, n_seen = _learner(recipe), 0
    first = _first_to_judge(labels, has_feedback, block, delay)
    scores = ScoresByModels(
        labels.of_rows(np.arange(rows.height) >= first), calibrates=False, decides=True)
    blocks = np.arange(rows.height - first) // block
    n_learned = []
    for start in range(first, rows.height, block):
        end = max(0, start - delay)
        new, past = (rows[begin:end].filter(pl.Series(has_feedback[begin:end]))
                     for begin in (n_seen, 0))
        fitted, n_seen = learn(new, past), end
        batch = rows[start:start + block].select(recipe.settings.columns)
        scores.score(fitted, np.arange(batch.height) + (start - first), batch,
                     None if thresholds_of is None else thresholds_of(fitted))
        n_learned.append(past.height)
        if progress is not None:
            progress(batch.height)
    held = scores.held_out(_method(has_feedback, block, delay, thresholds_of is not None), blocks)
    return held, np.array(n_learned)[blocks]


def _method(has_feedback: NDArray[np.bool_], block: int, delay: int, with_thresholds: bool) -> str:
    return ", ".join([
        f"online, blocks of {block:,}", *([f"delay {delay:,}"] if delay else []),
        *([f"feedback on {has_feedback.mean():.1%}"] if not has_feedback.all() else []),
        *(["each model's own threshold"] if with_thresholds else [])])


def _learner(recipe: Recipe) -> Callable[[pl.DataFrame, pl.DataFrame], Fitted]:
    """Make a function that fits a model of all past documents.

    It takes the documents that are new since its last call, and all past ones, and uses only those
    that it needs.
    """
    if not recipe.from_counts:
        return lambda _, rows: recipe.fit(rows)
    # The sum of all counts so far, in a list that each call of `learn` changes.
    settings, total = recipe.settings, list[Counts]()

    def learn(new: pl.DataFrame, _: pl.DataFrame) -> Fitted:
        if new.height:
            counts = count(settings, new)
            total[:] = [total[0] + counts] if total else [counts]
        return fit_from_counts(settings, total[0])

    return learn


def _first_to_judge(labels: Labels, has_feedback: NDArray[np.bool_], block: int, delay: int) -> int:
    """The number of the first document to judge: the model has learned all classes, or a label."""
    if not len(labels.classes):
        raise DataError(NO_LABELS)
    is_usable = has_feedback[labels.rows]
    # The labels that are learned, and the first document with each of them.
    codes, positions = np.unique(labels.codes[is_usable], return_index=True)
    documents = labels.rows[is_usable][positions]
    min_labels = 1 if labels.is_multilabel else max(2, len(labels.classes))
    if len(codes) < min_labels:
        problem = "have no label" if labels.is_multilabel else "lack a class"
        raise DataError(f"the documents that are learned {problem}: there is nothing to judge by")
    last_needed, need = ((documents.min(), "a label") if labels.is_multilabel
                         else (documents.max(), "every class"))
    # The end of the block that holds this document, and then the delay.
    first = max(block, -(-(int(last_needed) + 1) // block) * block) + delay
    if first >= len(labels):
        raise DataError(f"all {len(labels):,} documents are needed before {need} was learned "
                        "once: give more of them, smaller blocks or a shorter delay")
    return first


def measure_online(
    held: HeldOut, positive: Any, learned: NDArray[np.int64] | None = None
) -> OnlineResult:
    """Measure the scores of documents that were judged in order or by folds.

    For the curve, ``learned`` is how many documents the model that judged each document had
    learned: (n_documents,).
    """
    if learned is None:
        learned = np.zeros(len(held), dtype=np.int64)
    is_spam, scores = held.against_rest(positive)
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(_N_SAMPLES):
        sample = rng.integers(len(is_spam), size=len(is_spam))
        labels, values = is_spam[sample], scores[sample]
        if labels.any() and not labels.all():
            samples.append((roc(labels, values).area_above, _miss_rate(values, labels)))
    (low, missed_low), (high, missed_high) = np.percentile(
        np.array(samples), [2.5, 97.5], axis=0).tolist()
    return OnlineResult(
        held, positive, held.roca(positive), _miss_rate(scores, is_spam),
        *_error_rates(scores, is_spam), (low, high), (missed_low, missed_high),
        _curve(scores, is_spam, learned))


def _miss_rate(scores: Floats, is_spam: NDArray[np.bool_]) -> float:
    """Per cent of spam below the lowest threshold that at most `HAM_SHARE` of ham is above."""
    ham_scores = np.sort(scores[~is_spam])[::-1]
    n_allowed = int(HAM_SHARE * len(ham_scores))
    threshold = ham_scores[n_allowed] if n_allowed < len(ham_scores) else -np.inf
    return float((scores[is_spam] <= threshold).mean() * 100.0)


def _error_rates(scores: Floats, is_spam: NDArray[np.bool_]) -> tuple[float, float]:
    """Per cent of ham that scores above 0, and of spam that scores at most 0."""
    return (float((scores[~is_spam] > 0.0).mean() * 100.0),
            float((scores[is_spam] <= 0.0).mean() * 100.0))


def _curve(scores: Floats, is_spam: NDArray[np.bool_], learned: NDArray[np.int64]) -> pl.DataFrame:
    """The ``curve`` of `OnlineResult`."""
    rows = []
    for part in np.array_split(np.arange(len(scores)), min(_N_PARTS, len(scores))):
        row: dict[str, Any] = {"documents": int(part[-1]) + 1, "learned": int(learned[part[-1]])}
        if is_spam[part].any() and not is_spam[part].all():
            wrong, missed = _error_rates(scores[part], is_spam[part])
            row |= {"roca": roc(is_spam[part], scores[part]).area_above, "false_positives": wrong,
                    "false_negatives": missed}
        rows.append(row)
    return pl.DataFrame(rows, schema={
        "documents": pl.Int64, "learned": pl.Int64, "roca": pl.Float64,
        "false_positives": pl.Float64, "false_negatives": pl.Float64})
