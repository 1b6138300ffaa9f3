"""What a limit of memory leaves out of a text model, and what it rules out."""

from __future__ import annotations

from typing import Any

import numpy as np

from textnb.bayes.event_model import EventModel
from textnb.bayes.features import Presence
from textnb.bayes.forms import LinearForm
from textnb.bayes.known import check_event_model
from textnb.bayes.pruning import Pruned
from textnb.bayes.statistics import is_auto
from textnb.errors import ParameterError, quantity
from textnb.runtime.sizes import byte_size
from textnb.text.limited import Dropped, select_within
from textnb.text.term_counts import TermCounts
from textnb.text.vocabulary import Limits

_LEAST = 1 << 20


def check_memory_limit(memory: Any, model: EventModel, given: bool) -> None:
    """Raises ParameterError for what is no limit, or for settings that it does not go with."""
    if memory is None:
        return
    if isinstance(memory, (bool, np.bool_)) or not isinstance(memory, (int, np.integer)) or (
            not _LEAST <= memory < 2**63):
        raise ParameterError.out_of_range(
            "memory_limit", f"None, a size such as '500M', or a number of bytes from {_LEAST} "
            "(1 MiB) to 2**63 - 1", memory)
    if given:
        raise ParameterError.naming(
            "a given vocabulary is not limited: leave {memory_limit} at None")
    if not model.from_counts:
        raise ParameterError.naming(
            "{model} keeps the matrix of all documents, which {memory_limit} can't bound: use "
            "MultinomialNB, BernoulliNB or ComplementNB, or limit the terms by {min_df}",
            model=model.name)
    check_event_model(model, "what memory_limit leaves out")
    if not model.bounds_pruning:
        raise ParameterError.naming(
            "{memory_limit} bounds what the terms that it leaves out can change, and {model} does "
            "not say: limit the terms by {min_df} or {max_features}", model=model.name)
    if model.class_weight is not None:
        raise ParameterError.naming(
            "{memory_limit} bounds what the terms that it leaves out can change, and knows no "
            "bound under {class_weight}: limit the terms by {min_df} or {max_features}, or leave "
            "{class_weight} at None")
    if is_auto(model.l):
        raise ParameterError.naming(
            "{l='auto'} keeps the matrix of all documents, which {memory_limit} can't bound: give "
            "{l} as a number, such as the estimator_.l_ of a model that was fitted with "
            "{l='auto'} on a sample")
    if np.ndim(model.l):
        raise ParameterError.naming(
            "{memory_limit} chooses the terms, so {l} can't have one value for each: give one "
            "number for {l}")


def byte_words(size: int) -> str:
    """A number of bytes for people, in the units of `byte_size`.

    Examples
    --------
    >>> byte_words(1), byte_words(5242880), byte_words(1600)
    ('1 byte', '5.0 MiB', '1.6 KiB')
    """
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return quantity(size, "byte")


def memory_size(value: Any, name: str = "memory_limit") -> Any:
    """A limit of memory, as `byte_size`: 1 MiB or more.

    Examples
    --------
    >>> memory_size("500M")
    524288000
    """
    return byte_size(name, value, _LEAST)


def check_unpruned(pruned: Pruned | None, what: str) -> None:
    """Raises ParameterError where counts were left out that ``what`` would need."""
    if pruned is not None:
        raise ParameterError.naming(
            "{terms} left out of this model by {memory_limit}, so {what} can't be exact; fit "
            "all documents at once, or without the limit",
            terms=quantity(pruned.terms, "term", "was", "were"), what=what)


def drop_rare_terms(
    statistics: TermCounts, memory: int, limits: Limits
) -> tuple[TermCounts, Dropped | None]:
    """The statistic of the terms that fit, and what was left out."""
    keep, dropped = select_within(statistics, memory, limits)
    return statistics.select(keep), dropped


def describe_pruning(
    dropped: Dropped | None, model: EventModel, form: LinearForm, kept: TermCounts,
    limits: Limits,
) -> Pruned | None:
    """What was left out, and what that can change in a fitted model."""
    if dropped is None:
        return None
    missing, most = dropped.missing, limits.max_features
    if most is not None and len(kept.terms) >= most:
        # The most frequent terms are there, and it would have no others.
        missing = np.zeros_like(missing)
    # The bounds are of a term's counts, or of its presence.
    form.features.check((Presence,), "bounds of what memory_limit leaves out")
    of_classes = [(kept.counts, missing)] if not kept.counts.is_multilabel else (
        (kept.counts.against_rest(k), of_label) for k, of_label in enumerate(missing))
    bounds = [model.pruning_bounds(counts, of_class, dropped.at_most, all_missing=most is None)
              for counts, of_class in of_classes]
    # A label's scores are those of its two classes: the bounds are those of the worst.
    effect = (None if None in found else max(found) for found in zip(*bounds, strict=True))
    return Pruned(dropped.terms, dropped.occurrences, dropped.at_most, *effect)
