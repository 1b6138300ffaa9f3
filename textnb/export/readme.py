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

# The first line, by which a bundle's README is told from a user's own.
README_MARK = "<!-- Written by textnb with this bundle, and replaced with it. -->\n"
# The maximum number of classes or columns to name.
_MAX_NAMES = 20


def readme(bundle: Bundle, target: Target) -> str:
    """Make the text of ``README.md`` for a bundle and the target whose file is in it."""
    file = f"model{target.suffix}" if target.suffix else "weights.parquet"
    term = "feature" if bundle.reads == "features" else "term"
    label_column = "labels" if bundle.is_multilabel else "label"
    classes = "labels, any number per document" if bundle.is_multilabel else "classes"
    return f"""\
{README_MARK}# A classifier for {target.name}

It has {len(bundle.labels):,} {classes} ({_list_names(bundle.labels)}) and
{quantity(len(bundle.terms), term)}. textnb {__version__} wrote it.

## Input

{_input(bundle)}

## Use

{target.usage(bundle) or f"`{file}` is for {target.name} (it needs {target.needs})."}

## What comes out

{_answers(bundle)}

## Files

| file | holds |
|---|---|
| `{file}` | what {target.name} runs or reads |
| `form.json` | classes, intercepts, how texts are split, calibration, decision, provenance |
| `weights.parquet` | a row per {term}, in the order of the model |
| `golden.parquet` | made-up rows, with the scores and labels that each must get |
| `SHA256SUMS` | a checksum of each file: `sha256sum --check SHA256SUMS` |

## Check

With textnb installed, the golden rows run through the real engine, and every difference is named:

    textnb verify .

This needs {target.needs}. In a system of your own, score the rows of `golden.parquet`, and
compare with its `scores` (to {target.tolerance:g}) and its `{label_column}`.
"""


def code(value: Any) -> str:
    """A value as code in Markdown, on one line, whatever characters it has."""
    text = " ".join(str(value).split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _list_names(values: list[Any]) -> str:
    n_more = len(values) - _MAX_NAMES
    more = f" and {n_more:,} more" if n_more > 0 else ""
    return ", ".join(map(code, values[:_MAX_NAMES])) + more


def _input(bundle: Bundle) -> str:
    columns = _list_names(list(bundle.columns))
    token_columns = [] if bundle.tokenizer is None else bundle.token_columns
    origin = origin_of_tokens(bundle.splitter, token_columns) if token_columns else ""
    if origin:
        origin = f" {origin[0].upper()}{origin[1:]}."
    match bundle.reads:
        case "text":
            # The receiver must know the type of columns of tokens.
            content = _describe_columns(bundle).replace("tokens", "tokens (`List(String)`)", 1)
            return (f"{content[0].upper()}{content[1:]}, of "
                    f"{quantity(len(bundle.columns), 'column')}: {columns}. A missing "
                    f"{'one' if token_columns else 'text'} counts as an empty one.{origin}")
        case "terms":
            return ("The tokens of each document, known or not, as often as they occur. "
                    "`tokenizer` in `form.json` says how the model makes them from "
                    f"{_describe_columns(bundle)} ({columns}); `tokens` in `golden.parquet` has "
                    f"examples.{origin}")
        case "features":
            return f"{quantity(len(bundle.columns), 'finite number')} per row: {columns}."


def _describe_columns(bundle: Bundle) -> str:
    """What the text columns hold."""
    columns = bundle.token_columns
    if len(columns) == len(bundle.columns):
        return "lists of tokens"
    return f"texts, and lists of tokens in {_list_names(columns)}" if columns else "texts"


def origin_of_tokens(tokenizer: Tokenizer, columns: Sequence[str]) -> str:
    """What makes the lists of tokens in some columns; "" if only the user knows."""
    if tokenizer.segmenter is not None:
        return f"the function {code(tokenizer.segmenter)} makes these lists from texts"
    # The name of the column that the command writes.
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
    value = "value" if bundle.reads == "features" else "count"
    mapping = (f", with each {value} mapped as `form.json` says"
               if bundle.needs_feature_map or bundle.presence_above is not None else "")
    sentences = [f"{scores} A score is intercept + Σ {value} × weight{mapping}."]
    if "probability" in bundle.answers:
        sentences.append("Probabilities are calibrated." if bundle.calibration is not None
                         else "Probabilities are not calibrated, and often too near 0 and 1.")
    if bundle.gives_decisions:
        sentences.append("The decision is the class whose threshold the model reaches; it is empty "
                         "where the model is unsure.")
    return " ".join(sentences)
