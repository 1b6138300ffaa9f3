"""Checks that parameters were not changed after `fit`.

`predict`, and everything else that reads a fitted model, uses the parameters of `fit`. Saving,
learning more, adding and exporting would mix them with the new ones, so they raise an error with
the names of the parameters that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from textnb.errors import ParameterError
from textnb.learning.parameters import to_json_value

# Parameters whose type matters: 1 is a count of documents, and 1.0 a share of them.
_TYPED = ("min_df", "max_df")


def check_unchanged(
    fitted: Mapping[str, Any], now: Mapping[str, Any], estimator: Any, action: str
) -> None:
    """Raise ParameterError if parameters are no longer those of `fit`.

    Parameters
    ----------
    fitted, now : mapping of str to value
        A classifier's parameters, with its estimator: those of `fit`, and the present ones.
    estimator : estimator
        The fitted estimator, whose parameters may have changed, too.
    action : str
        The action that is not possible then, as the subject of a sentence.
    """
    changed = _changes(fitted, now) + [
        (f"estimator_.{name.removeprefix('estimator__')}", before, after)
        for name, before, after in _changes(
            {"estimator": fitted["estimator"]}, {"estimator": estimator})]
    if not changed:
        return
    listed = "; ".join(f"{name} from {_abbreviate(before)} to {_abbreviate(after)}"
                       for name, before, after in changed)
    name, before, _ = changed[0]
    raise ParameterError(
        f"{action} goes with the settings that the model was fitted with, and these were changed "
        f"since: {listed}. Call fit again to use the new ones, or set back what was changed "
        f"({name}={_abbreviate(before)})")


def _changes(
    fitted: Mapping[str, Any], now: Mapping[str, Any], part: str = ""
) -> list[tuple[str, Any, Any]]:
    changed: list[tuple[str, Any, Any]] = []
    for name, before in fitted.items():
        after: Any = now.get(name)
        whole = f"{part}{name}"
        if name == "token_columns" and after is False:
            # `fit` sets it by the types of the columns.
            continue
        if _has_parameters(before) and type(before) is type(after):
            changed += _changes(before.get_params(deep=False), after.get_params(deep=False),
                                f"{whole}__")
        elif not _same(before, after, typed=name in _TYPED):
            changed.append((whole, before, after))
    return changed


def _has_parameters(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _same(before: Any, after: Any, *, typed: bool) -> bool:
    if before is after:
        return True
    if typed and isinstance(before, float) != isinstance(after, float):
        return False
    if isinstance(before, pl.Expr) or isinstance(after, pl.Expr):
        # `==` between selectors makes an expression, and compares nothing.
        return (isinstance(before, pl.Expr) and isinstance(after, pl.Expr)
                and bool(before.meta.eq(after)))
    if _has_parameters(before) or _has_parameters(after):
        return False
    return bool(to_json_value(before) == to_json_value(after))


def _abbreviate(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
