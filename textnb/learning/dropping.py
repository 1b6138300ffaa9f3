"""Drops old periods of a model that counts by periods of time."""

from __future__ import annotations

from datetime import date

from textnb.errors import ParameterError
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import fit_from_counts


def drop_before(fitted: Fitted, day: date) -> Fitted:
    """Drop the periods that end before a day: the model is that of a fit without them.

    Raises
    ------
    ParameterError
        If the model does not count by periods.
    DataError
        If no period would be left.
    """
    ageing = fitted.settings.ageing
    if fitted.layers is None or ageing is None:
        raise ParameterError.with_advice(
            "the model does not count by periods of time, so none can be dropped: ",
            "fit one with TextClassifier(time='date', period='month')",
            "train one with textnb train --time date --period month")
    first = ageing.start_of(day)
    rest = fitted.layers.keep(lambda start: start >= first)
    return fit_from_counts(fitted.settings, rest, before=fitted)
