"""``TextClassifier(estimator="auto")``: a classifier whose `fit` searches for its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from textnb.errors import ParameterError
from textnb.frames.batches import Progress
from textnb.frames.kinds import convert_table
from textnb.frames.texts import labels_are_separate
from textnb.learning.fitting import labelled_rows
from textnb.learning.parameters import DEFAULTS, to_json_value
from textnb.learning.text_settings import TextSettings
from textnb.models.multinomial import MultinomialNB
from textnb.selection.search import Tuned, search


def fit_by_search(
    parameters: Mapping[str, Any], X: Any, y: Any, sample_weight: Any, progress: Progress | None
) -> Tuned:
    """Search for settings, with the default number of trials.

    Parameters
    ----------
    parameters : mapping
        The parameters of the classifier, apart from ``estimator``.
    X, y, sample_weight, progress
        As in `TextClassifier.fit`.

    Returns
    -------
    Tuned
        The model with the best settings, and the trials.

    Raises
    ------
    ParameterError
        If there are sample weights, or a parameter is set that the search chooses.
    """
    if sample_weight is not None:
        raise ParameterError("estimator='auto' does not support sample_weight: leave it out, or "
                             "give an estimator")
    text, label = parameters["text"], parameters["label"]
    # As JSON, values that are equal compare equal, such as a tuple and a list.
    changed = [name for name, default in DEFAULTS.items() if name not in ("text", "label")
               and to_json_value(parameters[name]) != to_json_value(default)]
    if changed:
        raise ParameterError(f"estimator='auto' also chooses the tokenizer and the limits: leave "
                             f"{', '.join(changed)} at the default, or give an estimator")
    # These settings only say which columns to read: the search chooses all others.
    settings = TextSettings.of(MultinomialNB(), text=text, label=label)
    has_separate_labels = labels_are_separate(X, y)
    columns = [*settings.columns, *([] if y is not None else [label])]
    rows = labelled_rows(settings, convert_table(X, columns), y)

    def advance(trial: dict[str, Any]) -> None:
        if progress is not None:
            progress(trial["documents"])

    result = search(rows, text=text, label=label, progress=advance)
    return replace(result, fitted=replace(result.fitted, has_separate_labels=has_separate_labels))
