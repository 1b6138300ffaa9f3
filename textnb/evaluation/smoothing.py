"""The smoothing path: losses and accuracy for each ``l``, from counting documents once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from textnb.bayes.choice import GRID, SmoothingResult, best_smoothing, measure_path
from textnb.bayes.forms import Floats
from textnb.bayes.labels import Labels
from textnb.bayes.leave_one_out import LeftOut
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import ParameterError, quantity
from textnb.evaluation.labelled import score_held_out
from textnb.evaluation.labels import no_known_label
from textnb.evaluation.leave_one_out import LEAVING_OUT, model_that_counts, open_leave_one_out
from textnb.evaluation.novelty import UNKNOWN
from textnb.frames.batches import Progress
from textnb.frames.failures import naming_source
from textnb.learning.fitted import Fitted, check_one_label, fitted_text_model
from textnb.runtime import notebook
from textnb.runtime.settings import is_number

if TYPE_CHECKING:
    from textnb.classifiers.text import TextClassifier


@dataclass(frozen=True, eq=False)
class SmoothingPath:
    """Losses and accuracy for each ``l``, on documents that the models had not learned.

    Attributes
    ----------
    table : DataFrame
        A row per ``l``, ascending: ``l``; ``log_loss``, the mean of -log P(label | document), base
        e; ``accuracy``; ``temperature``, the one with the lowest loss; ``calibrated_log_loss``, the
        loss of softmax(scores / temperature); and its ``standard_error``. Losses are infinite if a
        document is impossible under its own class (``l`` = 0); temperature and error are then null.
    best : float
        The largest ``l`` whose calibrated log loss is within one standard error of the lowest, or
        is below log((n + 2) / (n + 1)): by Laplace's rule, n documents can't show a smaller loss.
        For ComplementNB, whose scores are not log-probabilities, the largest ``l`` with the highest
        accuracy. ``l="auto"`` chooses the same value from the default grid.
    method : str
        "leave-one-out"; with ``test``, as in `HeldOut`.
    documents, excluded : int
        All documents, and those that are left out of the losses: the only document of a class, and
        documents with a label that is not one of the model's classes.
    """

    table: pl.DataFrame
    best: float
    method: str
    documents: int
    excluded: int

    def __repr__(self) -> str:
        return (f"SmoothingPath(best l = {self.best:.4g} of {self.table.height:,}, "
                f"{quantity(self.documents, 'document')}, {self.method})")

    def _repr_html_(self) -> str:
        return notebook.box(repr(self), notebook.frame_table(
            self.table, "Losses and accuracy for each l"))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {"best": self.best, "method": self.method, "documents": self.documents,
                "excluded": self.excluded, "path": self.table.to_dicts()}


def smoothing_path(
    model: TextClassifier | Fitted, frame: Any = None, grid: Iterable[float] | None = None, *,
    test: Any = None, progress: Progress | None = None,
) -> SmoothingPath:
    """Compute losses and accuracy for a grid of ``l``, from one reading of the documents.

    Parameters
    ----------
    model : TextClassifier
        Fitted, of a model that learns by counting; its own ``l`` has no effect.
    frame : DataFrame, LazyFrame or path
        The documents that the model has learned: each is scored without itself, as
        `leave_one_out` does. The matrix of their counts is kept in memory meanwhile.
    grid : iterable of float, optional
        Values >= 0. The default is 17 values from 0.001 to 10, four per factor of ten.
    test : DataFrame, LazyFrame or path, optional
        Documents that the model has not learned, instead of ``frame``.
    progress : callable, optional
        Called with the number of rows of each batch that was read.

    Raises
    ------
    DataError
        As `leave_one_out`; or if there is one class, or no document with a known class.
    ParameterError
        As `leave_one_out`; or if neither or both of ``frame`` and ``test`` are given, or the grid
        is not a list of numbers.

    Warns
    -----
    LearnedRowsWarning
        If the model has probably learned most of the rows of ``test``.

    Notes
    -----
    Naive Bayes treats the words of a document as independent, and is overconfident about long
    documents, right or wrong. A few documents then determine the log loss without calibration: on
    AG News and 20 Newsgroups, the ``l`` with the lowest leave-one-out log loss is 10 and 0.56, and
    its accuracy on the test set is 0.011 and 0.010 below the accuracy of the best of 1, 0.1 and
    0.01. A separate temperature for each ``l`` [1]_ removes this effect, and the one standard error
    rule [2]_ reduces the effect of near-duplicates among the documents. The accuracy of ``best`` on
    test data, minus the accuracy of the best of 1, 0.1 and 0.01:

    ============= ============= =========== ============
    corpus        MultinomialNB BernoulliNB ComplementNB
    ============= ============= =========== ============
    SMS Spam      -0.0002       -0.0029     +0.0007
    BBC News      -0.0045       -0.0018     -0.0018
    R8            -0.0005       -0.0009     0.0000
    20 Newsgroups -0.0023       +0.0072     -0.0023
    AG News       -0.0022       +0.0009     -0.0014
    IMDB          +0.0052       +0.0025     -0.0033
    ============= ============= =========== ============

    The first two rows are means over five folds; the other corpora have a test set.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
       networks. ICML, section 4.2.
    .. [2] L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone (1984). Classification and
       regression trees, Wadsworth, section 3.4.3.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> train = pl.DataFrame({"text": ["aa aa", "aa bb", "bb", "bb aa"] * 5,
    ...                       "label": ["x", "x", "y", "y"] * 5})
    >>> path = smoothing_path(TextClassifier().fit(train), train, [0.1, 1.0])
    >>> path.table.select("l", "accuracy").rows(), path.best
    ([(0.1, 0.75), (1.0, 0.75)], 1.0)
    """
    fitted = fitted_text_model(model, LEAVING_OUT if test is None else None)
    if test is not None:
        check_one_label(fitted, "a smoothing path of other documents")
    counting_model = model_that_counts(fitted)
    values = _check_grid(GRID if grid is None else grid)
    if (frame is None) == (test is None):
        raise ParameterError("give either frame, the documents that were learned, or test, other "
                             "documents: one of them")
    if test is None:
        # The model's own l has no effect, and may be an array that does not fit.
        with_any_l = replace(counting_model, l=1.0)
        reader, documents = open_leave_one_out(fitted, frame, with_any_l, progress)
        with naming_source(frame):
            path = measure_path(reader.leave_out(documents, values), values)
        n_documents, method = reader.statistics.documents, "leave-one-out"
    else:
        counts: list[SparseRows] = []
        held = score_held_out(fitted, test, progress, watch=lambda _, rows: counts.append(rows))
        if held.novelty is not None:
            held.novelty.warn()
        has_known_label = held.actual != UNKNOWN
        if not has_known_label.any():
            raise no_known_label(held.labels[0], fitted.labels)
        labels, n_documents, method = (
            Labels.of_codes(fitted.classes, held.actual), len(held), held.method)
        left_out = (LeftOut(_score(fitted, counts, l), labels, has_known_label, held.lengths)
                    for l in values)
        path = measure_path(left_out, values)
    best = best_smoothing(path, counting_model.scores_are_log_probabilities)
    # `rows` is the number of documents that losses include, the same for every l.
    return SmoothingPath(_table(path), best, method, documents=n_documents,
                         excluded=n_documents - path[0].rows)


def _check_grid(grid: Iterable[Any]) -> list[float]:
    """The values of a valid grid, ascending."""
    expected = "one or more different finite numbers >= 0"
    if isinstance(grid, (str, bytes)) or not isinstance(grid, Iterable):
        raise ParameterError.out_of_range("grid", expected, grid)
    values = list(grid)
    if (not values or not all(is_number(l) and np.isfinite(l) and l >= 0 for l in values)
            or len(set(values)) < len(values)):
        raise ParameterError.out_of_range("grid", expected, values)
    return sorted(float(l) for l in values)


def _score(fitted: Fitted, counts: list[SparseRows], l: float) -> Floats:
    """The scores of documents, from their counts, by the model with another ``l``."""
    form = replace(fitted.model, l=l).learn_counts(
        fitted.counts, binary=fitted.settings.binary).form
    return np.concatenate([form.scores(batch) for batch in counts])


def _table(path: list[SmoothingResult]) -> pl.DataFrame:
    return pl.DataFrame([asdict(result) for result in path]).with_columns(
        pl.col("temperature", "standard_error").fill_nan(None)
    ).select("l", "log_loss", "accuracy", "calibrated_log_loss", "standard_error", "temperature")
