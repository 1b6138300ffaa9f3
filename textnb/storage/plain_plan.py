"""The tokens of one document by the settings of a model file, in plain Python.

The file was not checked as a whole, so that an unknown setting or value is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textnb.errors import ParameterError, first_line
from textnb.storage.terms_reader import Unsupported
from textnb.text.plain import plain_tokens
from textnb.text.plan import Plan
from textnb.text.planning import plan_of, with_missing

# Characters of a document. Polars tokenizes more of them faster, even with its import.
_LONGEST = 1 << 20
_MOST_WORDS = 32


def text_columns(text: Any) -> list[str]:
    """The text columns."""
    names = [text] if isinstance(text, str) else text
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise Unsupported("text columns without names")
    return names


def plan_of_settings(settings: Any) -> Plan:
    """The plan of a tokenizer from settings that nobody has checked yet."""
    least, most = settings["ngram_range"]
    if (type(least), type(most)) != (int, int) or not 1 <= least <= most <= _MOST_WORDS:
        raise Unsupported(f"ngram_range={(least, most)!r}")
    for name in ("stop_words", "field_prefix", "token_columns"):
        value = settings[name] if name in settings else with_missing(settings)[name]
        if type(value) is not bool and not (
                isinstance(value, list) and all(isinstance(word, str) for word in value)):
            raise Unsupported(f"{name}={value!r}")
    if settings.get("segmenter") is not None and type(settings["segmenter"]) is not str:
        raise Unsupported("a segmenter without a name")
    try:
        return plan_of({name: tuple(value) if isinstance(value, list) else value
                        for name, value in with_missing(settings).items()})
    except (ParameterError, TypeError, ValueError, AttributeError) as error:
        raise Unsupported(f"the tokenizer: {first_line(error)}") from None


def tokens_of(plan: Plan, texts: Mapping[str, str | Sequence[str] | None]) -> list[str]:
    """The tokens of a document's text columns, in the order of the texts.

    A column of tokens has a list of them.
    """
    lengths = (len(text) if isinstance(text, str) else sum(map(len, text or ()))
               for text in texts.values())
    if sum(lengths) > _LONGEST:
        raise Unsupported("a long message")
    try:
        tokens = plain_tokens(plan, texts)
    except ParameterError as error:
        raise Unsupported(f"the tokenizer: {first_line(error)}") from None
    if tokens is None:
        raise Unsupported("a character that Python may read differently from Polars")
    return tokens
