"""Checks that parameters were not changed after `fit`.

A fitted model predicts with the parameters of `fit`, even if they were changed later. Saving,
learning more, adding and exporting raise an error then, which names the changed parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from textnb.errors import ParameterError
from textnb.learning.parameters import to_json_value

# Parameters for which 1, a number of documents, differs from 1.0, a share of them.
_COUNTS_OR_SHARES = ("min_df", "max_df")


def check_unchanged(
    fitted: Mapping[str, Any], current: Mapping[str, Any], estimator: Any, action: str
) -> None:
    """Raise ParameterError if parameters are no longer those of `fit`.

    Parameters
    ----------
    fitted, current : mapping of str to value
        A classifier's parameters, with its estimator: at `fit`, and now.
    estimator : estimator
        The fitted estimator, whose own parameters may have been changed, too.
    action : str
        What is refused then, as the subject of the error's sentence.
    """
    changed = _changes(fitted, current) + [
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
    fitted: Mapping[str, Any], current: Mapping[str, Any], prefix: str = ""
) -> list[tuple[str, Any, Any]]:
    """The name of each changed parameter, with its value at `fit` and its current value."""
    changed: list[tuple[str, Any, Any]] = []
    for name, before in fitted.items():
        after: Any = current.get(name)
        full_name = f"{prefix}{name}"
        if name == "token_columns" and after is False:
            # Not a change: `fit` itself replaces False, according to the types of the columns.
            continue
        if _has_parameters(before) and type(before) is type(after):
            changed += _changes(before.get_params(deep=False), after.get_params(deep=False),
                                f"{full_name}__")
        elif not _is_same(before, after, compare_types=name in _COUNTS_OR_SHARES):
            changed.append((full_name, before, after))
    return changed


def _has_parameters(value: Any) -> bool:
    """Whether a value is an estimator or a tokenizer, whose parameters are compared one by one."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def _is_same(before: Any, after: Any, *, compare_types: bool) -> bool:
    """Whether values are equal; with ``compare_types``, 1 differs from 1.0."""
    if before is after:
        return True
    if compare_types and isinstance(before, float) != isinstance(after, float):
        return False
    if isinstance(before, pl.Expr) or isinstance(after, pl.Expr):
        # `==` between Polars expressions makes another expression instead of comparing them.
        return (isinstance(before, pl.Expr) and isinstance(after, pl.Expr)
                and bool(before.meta.eq(after)))
    if _has_parameters(before) or _has_parameters(after):
        return False
    return bool(to_json_value(before) == to_json_value(after))


def _abbreviate(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
