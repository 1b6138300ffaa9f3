"""A form as data inside source code: one JSON text that is inert in every language.

The JSON is ASCII. Its only quotes are its own double quotes, and it holds no backtick, dollar or
less-than sign: so no term or label can end the literal around it, or an HTML script around that.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from importlib import resources
from math import inf
from typing import Any

from textnb.export.bundle import Bundle
from textnb.export.portable import FIELDS
from textnb.export.targets.packed import pack_weights
from textnb.runtime import __version__

# Characters that could end a literal or a script. In JSON they occur inside strings only.
_INERT = {code: f"\\u{code:04x}" for code in map(ord, "'`$<")}
# The first line of a part of a template, such as `#[text terms]` or `//[features]`. The part is for
# bundles that have one of these tags, see `_tags`.
_PART = re.compile(r"^(?:#|//)\[([a-z ]+)\]\n", re.M)
_ANALYZERS = {"word": "words", "char": "characters", "char_wb": "within"}
_MARK = re.compile(r"@([A-Z]+)@")


def fill_template(template: str, bundle: Bundle, **texts: str) -> str:
    """Choose the parts of a template that fit a bundle, and replace its ``@MARKS@``.

    There is a text for each mark but ``@VERSION@``, and ``@UNPACK@``, which reads packed weights in
    Python. Marks inside these texts are not replaced.
    """
    templates = resources.files(__package__).joinpath("templates")
    first, *parts = _PART.split(templates.joinpath(template).read_text("utf-8"))
    tags = _tags(bundle)
    source = first + "".join(text for tags_of_part, text in zip(
        parts[::2], parts[1::2], strict=True) if not tags.isdisjoint(tags_of_part.split()))
    texts |= {"VERSION": __version__,
              "UNPACK": templates.joinpath("unpack.txt").read_text("utf-8").rstrip("\n")}
    pieces = _MARK.split(source)
    pieces[1::2] = [texts[mark] for mark in pieces[1::2]]
    return "".join(pieces)


def _tags(bundle: Bundle) -> set[str]:
    """The tags of a bundle: parts of templates that have one of them are used for it."""
    # A simple feature map is at most presence.
    tags = {"all", bundle.reads, "simple" if bundle.form.features.is_simple else "mapped",
            "labels" if bundle.is_multilabel else "one"}
    if bundle.gives_decisions:
        tags |= {"decided", "decidedtext"} if bundle.reads == "text" else {"decided"}
    tokenizer = bundle.tokenizer
    if bundle.reads != "text" or tokenizer is None:
        return tags
    tags.add(_ANALYZERS[tokenizer.analyzer])
    if tokenizer.analyzer != "char":
        # Whether tokens of other kinds than words are kept.
        tags.add("kept" if tokenizer.keep else "unkept")
    if tokenizer.normalize or tokenizer.strip_accents:
        tags.add("decomposed")
    if len(bundle.columns) > 1 or tokenizer.field_prefix:
        return tags | {"fields",
                       "fieldwords" if tokenizer.analyzer == "word" else "fieldcharacters"}
    return tags | {"field"}


def embed_json(
    bundle: Bundle, *, words: bool = False, by_output: bool = False,
    columns: Sequence[str] | None = None,
) -> str:
    """Write the bundle as JSON: weights of terms as `packed` does, those of features one to a line.

    With ``words``, it has what ``characters.json`` says of how texts are split, and with
    ``columns``, the columns of the input. With ``by_output``, a line has the weights of one output,
    not those of one feature.
    """
    center, intercept = bundle.center_and_intercept()
    head: dict[str, Any] = {
        "classes": bundle.labels,
        "binary": None if bundle.positive is None else [bundle.positive, bundle.negative],
        "above": bundle.above, "intercept": intercept.tolist(),
        "center": None if center is None else center.tolist(),
    }
    if not bundle.form.features.is_simple:
        head["steps"] = [{name: value for name, value in step.items() if name != "weights"}
                         for step in bundle.form.features.to_dict()["steps"]]
    if bundle.is_multilabel:
        # Without `at_most` in the decision, it is the number of labels.
        ranks = {} if bundle.decision is None else bundle.decision.ranks
        head["thresholds"] = bundle.thresholds.tolist()
        head["ranks"] = [ranks.get("at_least", 0), ranks.get("at_most", len(bundle.labels))]
    head["answers"] = list(bundle.answers)
    head["calibration"] = None if bundle.calibration is None else {
        name: getattr(bundle.calibration, name)
        for name in ("link", "temperature", "length_exponent", "shift", "sigmoids")}
    if bundle.decision is not None and not bundle.is_multilabel:
        # Null if a class is never an answer.
        head["least"] = [None if value == inf else float(max(value, -sys.float_info.max))
                         for value in bundle.min_odds]
    if columns is not None:
        head["columns"] = list(columns)
    if words:
        head["words"] = bundle.words(FIELDS).to_dict()
    if bundle.reads != "features":
        idf = {} if bundle.idf is None else {"idf": bundle.idf}
        return _inert_json({**head, "packed": pack_weights(bundle.terms, bundle.weights, **idf)})
    weights = (bundle.weights.T if by_output else bundle.weights).tolist()
    return (_inert_json(head)[:-1] + ',"terms":[\n' + ",\n".join(map(_inert_json, bundle.terms))
            + '\n],"weights":[\n' + ",\n".join(map(_inert_json, weights)) + "\n]}")


def _inert_json(value: Any) -> str:
    """Write a value as JSON that can't end a literal around it."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_INERT)
