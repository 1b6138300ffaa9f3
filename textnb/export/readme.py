"""The README of a bundle: what its receiver must know, without textnb and its documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textnb.errors import quantity
from textnb.export.bundle import Bundle
from textnb.export.targets.base import Target
from textnb.mail.columns import TOKENS
from textnb.runtime import __version__
from textnb.text.tokens import Tokenizer

# The first line, which a user's own README does not have.
MARK = "<!-- Written by textnb with this bundle, and replaced with it. -->\n"
# The maximum number of classes or columns to name.
_NAMED = 20


def readme(bundle: Bundle, target: Target) -> str:
    """Make the text of ``README.md`` for a bundle and the target whose file is in it."""
    name = f"model{target.suffix}" if target.suffix else "weights.parquet"
    row = "feature" if bundle.reads == "features" else "term"
    label = "labels" if bundle.is_multilabel else "label"
    kind = "labels, any number per document" if bundle.is_multilabel else "classes"
    parts = [f"""\
{MARK}# A classifier for {target.name}

It has {len(bundle.labels):,} {kind} ({_enumerate(bundle.labels)}) and
{quantity(len(bundle.terms), row)}. textnb {__version__} wrote it.

## Input

{_input(bundle)}

## Use

{target.usage(bundle) or f"`{name}` is for {target.name} (it needs {target.needs})."}

## What comes out

{_answers(bundle)}
""", f"""
## Files

| file | holds |
|---|---|
| `{name}` | what {target.name} runs or reads |
| `form.json` | classes, intercepts, how texts are split, calibration, decision, provenance |
| `weights.parquet` | a row per {row}, in the order of the model |
| `golden.parquet` | made-up rows, with the scores and labels that each must get |
| `SHA256SUMS` | a checksum of each file: `sha256sum --check SHA256SUMS` |

## Check

With textnb installed, the golden rows run through the real engine, and every difference is named:

    textnb verify .

This needs {target.needs}. In a system of your own, score the rows of `golden.parquet`, and
compare with its `scores` (to {target.tolerance:g}) and its `{label}`.
"""]
    return "".join(parts)


def code(value: Any) -> str:
    """A value as code in Markdown, on one line, whatever characters it has."""
    text = " ".join(str(value).split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _enumerate(values: list[Any]) -> str:
    more = len(values) - _NAMED
    return ", ".join(map(code, values[:_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def _input(bundle: Bundle) -> str:
    columns = _enumerate(list(bundle.columns))
    lists = [] if bundle.tokenizer is None else bundle.token_columns
    origin = origin_of_tokens(bundle.splitter, lists) if lists else ""
    origin = origin and f" {origin[0].upper()}{origin[1:]}."
    match bundle.reads:
        case "text":
            kinds = _kinds(bundle).replace("tokens", "tokens (`List(String)`)", 1)
            return (f"{kinds[0].upper()}{kinds[1:]}, of "
                    f"{quantity(len(bundle.columns), 'column')}: {columns}. A missing "
                    f"{'one' if lists else 'text'} counts as an empty one.{origin}")
        case "terms":
            return ("The tokens of each document, known or not, as often as they occur. "
                    "`tokenizer` in `form.json` says how the model makes them from "
                    f"{_kinds(bundle)} ({columns}); `tokens` in `golden.parquet` has examples."
                    f"{origin}")
        case "features":
            return f"{quantity(len(bundle.columns), 'finite number')} per row: {columns}."


def _kinds(bundle: Bundle) -> str:
    """What the text columns hold."""
    lists = bundle.token_columns
    if len(lists) == len(bundle.columns):
        return "lists of tokens"
    return f"texts, and lists of tokens in {_enumerate(lists)}" if lists else "texts"


def origin_of_tokens(tokenizer: Tokenizer, columns: Sequence[str]) -> str:
    """What makes the lists of tokens in some columns; "" if only the user knows."""
    if tokenizer.segmenter is not None:
        return f"the function {code(tokenizer.segmenter)} makes these lists from texts"
    if TOKENS in columns:
        return "`textnb mail --tokens` writes those of mail"
    return ""


def _answers(bundle: Bundle) -> str:
    if bundle.positive is not None:
        scores = (f"One score: the label is {code(bundle.positive)} if it is above 0, and else "
                  f"{code(bundle.negative)}.")
    elif bundle.is_multilabel:
        scores = ("A score per label, in the order of `form.json`; a document has the labels whose "
                  "scores are above their thresholds.")
    else:
        scores = ("A score per class, in the order of `form.json`; the label is the first class "
                  "with the highest score.")
    counts = "value" if bundle.reads == "features" else "count"
    parts = [f"{scores} A score is intercept + Σ {counts} × weight"
             + ("" if bundle.form.features.is_simple and bundle.above is None
                else f", with each {counts} mapped as `form.json` says") + "."]
    if "probability" in bundle.answers:
        parts.append("Probabilities are calibrated." if bundle.calibration is not None
                     else "Probabilities are not calibrated, and often too near 0 and 1.")
    if bundle.gives_decisions:
        parts.append("The decision is the class whose threshold the model reaches; it is empty "
                     "where the model is unsure.")
    return " ".join(parts)
