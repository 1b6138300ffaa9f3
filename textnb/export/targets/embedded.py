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
from textnb.export.targets.packed import pack_weights
from textnb.runtime import __version__

# Characters that could end a literal or a script. In JSON they occur inside strings only.
_INERT = {code: f"\\u{code:04x}" for code in map(ord, "'`$<")}
_LARGEST = sys.float_info.max
# The fields of `Words` that the templates execute.
_EXECUTES = ("member", "min_length", "lowercase", "ngram_range", "stop_words", "sizes",
             "replacements", "kinds", "analyzer", "normalize", "accents", "columns", "prefixes",
             "escaped")
# The head of a part of a template, such as `#[text terms]` or `//[features]`. The part is used for
# these inputs, for forms with `simple` feature maps (presence at most) or `mapped` ones (all
# others), for texts of which more than words is `kept`, or not (`unkept`), for n-grams of
# `words`, of the `characters` of a text or of those `within` words, for texts whose characters are
# `decomposed`, of one `field`, or of several or with prefixes (`fields`), or for answers that are
# `one` class or a list of `labels`, and of one class also by a decision (`decided`).
_PART = re.compile(r"^(?:#|//)\[([a-z ]+)\]\n", re.M)
_ANALYZERS = {"word": "words", "char": "characters", "char_wb": "within"}
_MARK = re.compile(r"@([A-Z]+)@")


def fill_template(template: str, bundle: Bundle, **texts: str) -> str:
    """Choose the parts of a template that fit a bundle, and replace its ``@MARKS@``.

    Parameters
    ----------
    template : str
        Name of a file in the folder of templates.
    bundle : Bundle
    **texts : str
        A text for each mark but ``@VERSION@``, and ``@UNPACK@``, which reads packed weights in
        Python. Marks inside these texts are not replaced.
    """
    templates = resources.files(__package__).joinpath("templates")
    whole = templates.joinpath(template).read_text("utf-8")
    first, *parts = _PART.split(whole)
    simple = bundle.form.features.is_simple
    own = {"all", bundle.reads, "simple" if simple else "mapped",
           "labels" if bundle.is_multilabel else "one"}
    if bundle.gives_decisions:
        own |= {"decided", "decidedtext"} if bundle.reads == "text" else {"decided"}
    if bundle.reads == "text" and bundle.tokenizer is not None:
        own.add(_ANALYZERS[bundle.tokenizer.analyzer])
        if bundle.tokenizer.analyzer != "char":
            own.add("kept" if bundle.tokenizer.keep else "unkept")
        if bundle.tokenizer.normalize or bundle.tokenizer.strip_accents:
            own.add("decomposed")
        fields = len(bundle.columns) > 1 or bundle.tokenizer.field_prefix
        words = bundle.tokenizer.analyzer == "word"
        own |= {"fields", "fieldwords" if words else "fieldcharacters"} if fields else {"field"}
    source = first + "".join(text for tags, text in zip(parts[::2], parts[1::2], strict=True)
                             if own & set(tags.split()))
    texts |= {"VERSION": __version__,
              "UNPACK": templates.joinpath("unpack.txt").read_text("utf-8").rstrip("\n")}
    pieces = _MARK.split(source)
    pieces[1::2] = [texts[mark] for mark in pieces[1::2]]
    return "".join(pieces)


def embed_json(
    bundle: Bundle, *, words: bool = False, by_output: bool = False,
    columns: Sequence[str] | None = None,
) -> str:
    """Write the bundle as JSON: of texts as `packed` does, of features one to a line.

    Parameters
    ----------
    bundle : Bundle
    words : bool
        Include what ``characters.json`` holds of how texts are split.
    by_output : bool
        Write the weights of features output by output, not one feature after the other.
    columns : sequence of str, optional
        The columns of the input.
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
        # `at_most` is the number of labels where the decision says nothing.
        ranks = {} if bundle.decision is None else bundle.decision.ranks
        head["thresholds"] = bundle.thresholds.tolist()
        head["ranks"] = [ranks.get("at_least", 0), ranks.get("at_most", len(bundle.labels))]
    head["answers"] = list(bundle.answers)
    head["calibration"] = None if bundle.calibration is None else {
        name: getattr(bundle.calibration, name)
        for name in ("link", "temperature", "length_exponent", "shift", "sigmoids")}
    if bundle.decision is not None and not bundle.is_multilabel:
        # Null if a class is never an answer.
        head["least"] = [None if value == inf else float(max(value, -_LARGEST))
                         for value in bundle.min_odds]
    if columns is not None:
        head["columns"] = list(columns)
    if words:
        head["words"] = bundle.words(_EXECUTES).to_dict()
    if bundle.reads != "features":
        idf = {} if bundle.idf is None else {"idf": bundle.idf}
        return _inert({**head, "packed": pack_weights(bundle.terms, bundle.weights, **idf)})
    weights = (bundle.weights.T if by_output else bundle.weights).tolist()
    return (_inert(head)[:-1] + ',"terms":[\n' + ",\n".join(map(_inert, bundle.terms))
            + '\n],"weights":[\n' + ",\n".join(map(_inert, weights)) + "\n]}")


def _inert(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_INERT)
