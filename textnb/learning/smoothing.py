"""The choice of the smoothing parameter from documents, each left out in turn."""

from __future__ import annotations

from textnb.bayes.choice import GRID, choose_l
from textnb.bayes.counts import Counts
from textnb.bayes.label_form import check_labels
from textnb.learning.documents import LabelledBatches
from textnb.learning.leave_one_out import LeaveOneOutReader
from textnb.learning.text_settings import TextSettings


def choose_smoothing(
    settings: TextSettings, statistics: Counts, documents: LabelledBatches
) -> float:
    """The ``l`` that ``l="auto"`` stands for, from the documents that were counted.

    Parameters
    ----------
    settings : TextSettings
    statistics : Counts
        Of these documents.
    documents : LabelledBatches
    """
    terms, limits, model = settings.with_column(statistics).terms, settings.limits, settings.model
    fixed = settings.vocabulary is not None or limits.max_features is not None
    given = terms if fixed else None
    if statistics.is_multilabel:
        check_labels(model, len(terms), 1.0)
    reader = LeaveOneOutReader.of(model, statistics, limits, given, settings.binary)
    return choose_l(reader.leave_out(documents, GRID), model.scores_are_log_probabilities)
