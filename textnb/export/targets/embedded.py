"""A model as data inside source code: one JSON text that can't end the literal around it.

The JSON is ASCII, and has no quotes other than its own double quotes, no backtick, dollar or
less-than sign. So no term or label can end the literal, in any language, or an HTML script.
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
from textnb.export.portable import WORDS_FIELDS
from textnb.export.targets.packed import pack_weights
from textnb.runtime import __version__

# From characters that could end a literal or a script to their JSON escapes. In JSON, these
# characters only occur inside strings.
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in map(ord, "'`$<")}
# The first line of a part of a template, such as `#[text terms]`, `//[features]` or `--[one]`.
# The part is used for bundles that have one of these tags, see `_tags`.
_TAGS_LINE = re.compile(r"^(?:#|//|--)\[([a-z ]+)\]\n", re.M)
# "within": n-grams of characters that are within words.
_ANALYZER_TAGS = {"word": "words", "char": "characters", "char_wb": "within"}
_PLACEHOLDER = re.compile(r"@([A-Z]+)@")


def fill_template(template: str, bundle: Bundle, **texts: str) -> str:
    """Choose the parts of a template that fit a bundle, and replace placeholders by texts.

    The text ``NAME`` replaces ``@NAME@``. Two texts are added: ``VERSION``, and ``UNPACK``, the
    Python code that reads packed weights. Placeholders inside texts are not replaced.
    """
    templates = resources.files(__package__).joinpath("templates")
    # The text before the first line of tags, and then tags and text of each part in turn.
    first, *parts = _TAGS_LINE.split(templates.joinpath(template).read_text("utf-8"))
    tags = _tags(bundle)
    source = first + "".join(text for tags_of_part, text in zip(
        parts[::2], parts[1::2], strict=True) if not tags.isdisjoint(tags_of_part.split()))
    texts |= {"VERSION": __version__,
              "UNPACK": templates.joinpath("unpack.txt").read_text("utf-8").rstrip("\n")}
    # Not replaced one after another, because the texts may look like placeholders. Every second
    # piece is the name of one.
    pieces = _PLACEHOLDER.split(source)
    if unknown := set(pieces[1::2]) - set(texts):
        raise ValueError(f"{template} has @{min(unknown)}@: give fill_template a text of that name")
    pieces[1::2] = [texts[name] for name in pieces[1::2]]
    return "".join(pieces)


def _tags(bundle: Bundle) -> set[str]:
    """The tags of a bundle, which choose parts of templates."""
    # "mapped": the program must execute a feature map. "one": a row has one class.
    tags = {"all", bundle.reads, "mapped" if bundle.needs_feature_map else "simple",
            "labels" if bundle.is_multilabel else "one"}
    if bundle.gives_decisions:
        # "decidedtext": parts for decisions on texts that the program splits.
        tags |= {"decided", "decidedtext"} if bundle.reads == "text" else {"decided"}
    tokenizer = bundle.tokenizer
    if bundle.reads != "text" or tokenizer is None:
        return tags
    tags.add(_ANALYZER_TAGS[tokenizer.analyzer])
    if tokenizer.analyzer != "char":
        # Whether there are tokens other than words.
        tags.add("kept" if tokenizer.keep else "unkept")
    if tokenizer.normalize or tokenizer.strip_accents:
        tags.add("decomposed")
    if len(bundle.columns) > 1 or tokenizer.field_prefix:
        return tags | {"fields",
                       "fieldwords" if tokenizer.analyzer == "word" else "fieldcharacters"}
    return tags | {"field"}


def embed_json(
    bundle: Bundle, *, with_words: bool = False, by_output: bool = False,
    columns: Sequence[str] | None = None,
) -> str:
    """Write the bundle as JSON. Weights of terms are packed by `pack_weights`.

    Weights of features are not packed: a line has the weights of one feature; with ``by_output``,
    of one output: a column of weights. With ``with_words``, the JSON has what ``characters.json``
    has: how texts are split. ``columns`` are the columns of the input, if it needs them.
    """
    center, intercept = bundle.center_and_intercept()
    head: dict[str, Any] = {
        "classes": bundle.labels,
        "binary": None if bundle.positive is None else [bundle.positive, bundle.negative],
        "above": bundle.presence_above, "intercept": intercept.tolist(),
        "center": None if center is None else center.tolist(),
    }
    if bundle.needs_feature_map:
        # The weights of idf are packed with the terms.
        head["steps"] = [{name: value for name, value in step.items() if name != "weights"}
                         for step in bundle.form.features.to_dict()["steps"]]
    if bundle.is_multilabel:
        # The minimum and the maximum number of labels of a row: any if the decision has no limit.
        limits = {} if bundle.decision is None else bundle.decision.ranks
        head["thresholds"] = bundle.thresholds.tolist()
        head["ranks"] = [limits.get("at_least", 0), limits.get("at_most", len(bundle.labels))]
    # What the program can answer with in addition to labels.
    head["answers"] = list(bundle.answers)
    head["calibration"] = None if bundle.calibration is None else {
        name: getattr(bundle.calibration, name)
        for name in ("link", "temperature", "length_exponent", "shift", "sigmoids")}
    if bundle.decision is not None and not bundle.is_multilabel:
        # JSON has no infinity: inf (the class is never an answer) becomes null, and -inf the
        # lowest float.
        head["least"] = [None if value == inf else float(max(value, -sys.float_info.max))
                         for value in bundle.min_log_odds]
    if columns is not None:
        head["columns"] = list(columns)
    if with_words:
        # The programs of all templates implement these settings.
        head["words"] = bundle.words(executes=WORDS_FIELDS).to_dict()
    if bundle.reads != "features":
        idf = {} if bundle.idf is None else {"idf": bundle.idf}
        return _write_json({**head, "packed": pack_weights(bundle.terms, bundle.weights, **idf)})
    weights = (bundle.weights.T if by_output else bundle.weights).tolist()
    terms, rows = (",\n".join(map(_write_json, values)) for values in (bundle.terms, weights))
    # Without its last character, a brace, the object of the head is still open.
    return f'{_write_json(head)[:-1]},"terms":[\n{terms}\n],"weights":[\n{rows}\n]}}'


def _write_json(value: Any) -> str:
    """Write a value as JSON that can't end the literal around it."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_JSON_ESCAPES)
