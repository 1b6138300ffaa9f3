"""A form as data inside source code: one JSON text that is inert in any language.

The JSON is ASCII without quotes, backticks, dollar and less-than signs but its own double quotes,
so that no term or label can end the literal that holds it, nor an HTML script around that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import resources
from importlib.metadata import version
from itertools import chain
from typing import Any

from textnb.export.bundle import Bundle
from textnb.export.characters import Ranges
from textnb.export.portable import Words

# What could end a literal or a script; all of them occur inside JSON's strings alone.
_INERT = {code: f"\\u{code:04x}" for code in map(ord, "'`$<")}
# What a part of a template is for, as in `#[text terms]` or `//[features]`: inputs, or `simple` and
# `mapped` (feature maps of presence or less, and others).
_PART = re.compile(r"^(?:#|//)\[([a-z ]+)\]\n", re.M)
_MARK = re.compile(r"@([A-Z]+)@")


def source(template: str, bundle: Bundle, **texts: str) -> str:
    """A template for what the bundle reads and its feature map, its ``@MARKS@`` replaced by texts.

    Parameters
    ----------
    template : str
        Name of a file in the folder of templates.
    bundle : Bundle
    **texts : str
        What stands for each mark but ``@VERSION@``. They are not read as templates themselves.
    """
    whole = resources.files(__package__).joinpath("templates", template).read_text("utf-8")
    first, *parts = _PART.split(whole)
    simple = bundle.form.features.is_simple
    own = {"all", bundle.reads, "simple" if simple else "mapped"}
    kept = first + "".join(text for tags, text in zip(parts[::2], parts[1::2], strict=True)
                           if own & set(tags.split()))
    texts["VERSION"] = version("textnb")
    pieces = _MARK.split(kept)
    pieces[1::2] = [texts[mark] for mark in pieces[1::2]]
    return "".join(pieces)


def data(
    bundle: Bundle, *, words: bool = False, by_output: bool = False,
    columns: Sequence[str] | None = None,
) -> str:
    """The bundle as JSON, one term or feature to a line.

    Parameters
    ----------
    bundle : Bundle
    words : bool
        With the characters that make words.
    by_output : bool
        Weights output by output instead of term by term.
    columns : sequence of str, optional
        Columns that are read.
    """
    center, intercept = bundle.centered()
    weights = (bundle.weights.T if by_output else bundle.weights).tolist()
    head: dict[str, Any] = {
        "classes": bundle.labels,
        "binary": None if bundle.positive is None else [bundle.positive, bundle.negative],
        "above": bundle.above, "intercept": intercept.tolist(),
        "center": None if center is None else center.tolist(),
    }
    if not bundle.form.features.is_simple:
        head["steps"] = bundle.form.features.to_dict()["steps"]
    if columns is not None:
        head["columns"] = list(columns)
    if words:
        head["words"] = _words(bundle.words)
    return (_inert(head)[:-1] + ',"terms":[\n' + ",\n".join(map(_inert, bundle.terms))
            + '\n],"weights":[\n' + ",\n".join(map(_inert, weights)) + "\n]}")


def _words(words: Words) -> dict[str, Any]:
    lower = words.lower
    return {
        "members": _flat(words.members), "unspaced": _flat(words.unspaced), "least": words.least,
        "sizes": list(words.ngram_range),
        "stop_words": list(words.stop_words),
        "lower": None if lower is None else lower.mapping,
        "cased": [] if lower is None else _flat(lower.cased),
        "ignorable": [] if lower is None else _flat(lower.ignorable),
    }


def _flat(ranges: Ranges) -> list[int]:
    return list(chain.from_iterable(ranges))


def _inert(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_INERT)
