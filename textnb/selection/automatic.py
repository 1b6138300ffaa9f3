"""``TextClassifier(estimator="auto")``: a classifier whose `fit` searches for its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from textnb.bayes.counts.multinomial import Multinomial
from textnb.errors import ParameterError
from textnb.frames.batches import Progress
from textnb.frames.kinds import convert_table
from textnb.frames.texts import labels_beside_table
from textnb.learning.fitting import labelled_rows
from textnb.learning.parameters import DEFAULTS, plain
from textnb.learning.text_settings import TextSettings
from textnb.selection.search import Tuned, search

AUTO = "auto"


def check_warm_start(warm_start: Any, estimator: Any, keep_sample: Any = None) -> None:
    """Raises ParameterError for what is no truth value, and for a search, which begins anew.

    A search keeps no sample of rows either.
    """
    if not isinstance(warm_start, (bool, np.bool_)):
        raise ParameterError.out_of_range(
            "warm_start", "True or False; a model of a file is loaded first, "
            "textnb.load(path).fit(documents, warm_start=True)", warm_start)
    if warm_start and isinstance(estimator, str) and estimator == AUTO:
        raise ParameterError("a search for settings has no warm start")
    if keep_sample is not None and isinstance(estimator, str) and estimator == AUTO:
        raise ParameterError("keep_sample is for NBLinear, and not for estimator='auto'")


def fit_by_search(
    parameters: Mapping[str, Any], X: Any, y: Any, sample_weight: Any, progress: Progress | None
) -> Tuned:
    """Search for settings with the default budget.

    Parameters
    ----------
    parameters : mapping
        The parameters of the classifier, apart from ``estimator``.
    X, y, sample_weight, progress
        As in `TextClassifier.fit`.

    Raises
    ------
    ParameterError
        If there are sample weights, or parameters that the search would choose are set.
    """
    if sample_weight is not None:
        raise ParameterError("estimator='auto' does not support sample_weight: leave it out, or "
                             "give an estimator")
    text, label = parameters["text"], parameters["label"]
    changed = [name for name, default in DEFAULTS.items() if name not in ("text", "label")
               and plain(parameters[name]) != plain(default)]
    if changed:
        raise ParameterError(f"estimator='auto' also chooses the tokenizer and the limits: leave "
                             f"{', '.join(changed)} at the default, or give an estimator")
    # Rows are read by the names of columns alone; the search chooses all other settings.
    settings = TextSettings.of(Multinomial(), text=text, label=label)
    labels_beside = labels_beside_table(X, y)
    columns = [*settings.columns, *([] if y is not None else [label])]
    rows = labelled_rows(settings, convert_table(X, columns), y, multilabel=True)

    def advance(trial: dict[str, Any]) -> None:
        if progress is not None:
            progress(trial["documents"])

    result = search(rows, text=text, label=label, progress=advance)
    return replace(result, fitted=replace(result.fitted, labels_beside=labels_beside))
