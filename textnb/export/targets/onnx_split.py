"""The splitting of texts by ONNX: one character that separates words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from textnb.errors import ExportError
from textnb.text.expressions import stop_tokens
from textnb.text.plan import Escape, Matches, NGrams, Plan, Splitting, StopWords, TokenColumns

# `[^x]+`: one character separates words. StringSplit can match no other pattern.
_SEPARATED = re.compile(r"\[\^([^\\\[\]^]|\\[tnr]|\\[!-/:;=?@\[-`{-~])\]\+")
_ESCAPES = {r"\t": "\t", r"\n": "\n", r"\r": "\r"}


@dataclass(frozen=True)
class Split:
    """A plan that the operator StringSplit can execute.

    Attributes
    ----------
    separator : str
        The character that separates words.
    ngram_range : (int, int)
    stops : frozenset of str
        Words to drop before n-grams are made.
    """

    separator: str
    ngram_range: tuple[int, int]
    stops: frozenset[str]


def split_of(plan: Plan, columns: Sequence[str]) -> Split:
    r"""Convert a plan to a separator that StringSplit can use.

    Raises
    ------
    ExportError
        If it can't make the plan's words; the message has the reason and an alternative.

    Examples
    --------
    >>> from textnb.text.tokens import Tokenizer
    >>> split_of(Tokenizer(pattern=r"[^\t]+", lowercase=False).plan(), ["text"]).separator
    '\t'
    """
    if len(columns) > 1:
        raise _beyond_split(f"several text columns ({', '.join(columns)})")
    separator, ngrams = None, NGrams(1, 1)
    # Steps are sorted so that the first refusal is one that a user can act on: escapes follow from
    # other settings.
    for step in sorted(plan.steps, key=lambda step: (
            not isinstance(step, TokenColumns), not isinstance(step, Splitting),
            isinstance(step, Escape))):
        match step:
            case Matches(pattern=pattern) if found := _SEPARATED.fullmatch(pattern):
                separator = _ESCAPES.get(found[1], found[1][-1])
            case StopWords():
                pass
            case Escape(characters=" "):
                # The graph joins the words of n-grams by the separator, and need not escape it.
                pass
            case NGrams():
                ngrams = step
            case _:
                raise _beyond_split(step.setting)
    assert separator is not None, "a plan splits texts"
    return Split(separator, (ngrams.least, ngrams.most), stop_tokens(plan))


def _beyond_split(reason: str) -> ExportError:
    return ExportError(f"{reason}: ONNX can only split one text at one character; export "
                       "for tokens that you make yourself (--input terms), or train with "
                       'Tokenizer(pattern=r"[^ ]+", lowercase=False)')


def unused_character(terms: tuple[str, ...]) -> str:
    r"""Find a character that is in no term: the unit separator, another control, or a private one.

    Examples
    --------
    >>> unused_character(("a", "b")), unused_character(("a", "\x1f"))
    ('\x1f', '\x1e')
    """
    used = set().union(*terms)
    controls = [code for code in range(0x1f, 0, -1) if chr(code) not in "\t\n\r"]
    for code in (*controls, *range(0xE000, 0xF900), *range(0xF0000, 0x110000)):
        if chr(code) not in used:
            return chr(code)
    raise ExportError("every control and private-use character is in some term: none is left to "
                      "separate tokens")


def join_tokens(tokens: pl.Series, separator: str) -> pl.Series:
    """Join the tokens of each row, without tokens that hold the separator, as they are unknown."""
    element = pl.element()
    kept = element.filter(~element.str.contains(separator, literal=True))
    return tokens.to_frame("tokens").select(
        pl.col("tokens").list.eval(kept).list.join(separator))["tokens"]
