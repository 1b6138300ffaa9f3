"""Adds one document to a model file, without Polars, and with the same bytes as with it.

    tokens in plain Python -> places among the sorted terms -> arrays with the new terms and counts

The whole file is read, checked and written again. Anything in it that this module does not know is
refused by name with `Unsupported`: the caller then loads the model and learns the document.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import LEARNED_SINCE, Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.since_fit import SinceFit
from textnb.files.archive import MAX_BYTES, reading_errors
from textnb.files.blocks import Blocks
from textnb.files.require import require
from textnb.storage import version2
from textnb.storage.arithmetic import (
    check_counts,
    check_terms,
    narrow,
    stored_arrays,
)
from textnb.storage.document_check import check_text_document
from textnb.storage.plain_plan import plan_of_settings, text_columns, tokens_of
from textnb.storage.terms_reader import Unsupported
from textnb.storage.totals import TOTALS, smoothing
from textnb.text.byte_keys import begins_of, is_ascending
from textnb.text.planning import with_missing

_BASIC = ("terms/bytes", "terms/ends", "counts/ends", "counts/classes", "counts/values")
_OCCURRENCES = "terms/occurrences"
# Weights of two classes; other files the full command reads.
_WEIGHTS = "weights"
_ARRAYS = {*_BASIC, _OCCURRENCES, _WEIGHTS, "index/bytes", "index/ends", *TOTALS}
_DOCUMENT = {"format", "version", "textnb", "kind", "estimator", "settings", "classes", "layers",
             "requires", "arrays", "calibration", "decision", "l", "intercept", "since_fit"}
# Settings that limit or weight terms, and the values with which they have no effect.
_WITHOUT_LIMITS = {"min_df": 1, "max_df": 1.0, "max_features": None, "vocabulary": None,
                   "memory_limit": None, "class_weight": None}
_PARAMETERS = {"MultinomialNB": {"l", "fit_prior", "class_prior"},
               "BernoulliNB": {"l", "fit_prior", "class_prior", "binarize"},
               "ComplementNB": {"l", "fit_prior", "class_prior", "norm"},
               "NBLinear": {"l", "C", "loss", "power", "tf", "idf", "unit_length", "tol",
                            "max_iter", "held_out"}}
_BESIDE_WEIGHTS = "NBLinear"
_LABELS = {"string": str, "integer": int, "boolean": bool}
_EXACT = 2**53


@dataclass(frozen=True)
class Updated:
    """A model after a document was added.

    Attributes
    ----------
    n_classes, n_terms : int
    calibration : Calibration or None
    decision : Decision or None
        Both are marked as stale, unless the weights stay as they were.
    since_fit : SinceFit or None
        Documents counted beside weights, where these stay.
    """

    n_classes: int
    n_terms: int
    calibration: Calibration | None = None
    decision: Decision | None = None
    since_fit: SinceFit | None = None


class ModelToExtend:
    """A model file to which a document can be added.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    labels : list
        The classes.
    columns : list of str
        The text columns.
    lists : list of str
        Those of them that hold lists of tokens.
    label : str
        The name of the label column.

    Raises
    ------
    Unsupported
        If it has anything that this module does not know.
    ModelFileError, SourceError
        See `textnb.load`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        with reading_errors(self._path), version2.open_file(self._path) as descriptor:
            self._document = Blocks(descriptor, self._path).document()
            why = _why_unknown(self._document)
            if not why:
                check_text_document(self._path, self._document)
        if why:
            raise Unsupported(why)
        settings = self._document["settings"]
        self.labels: list[Any] = self._document["classes"]["labels"]
        self.columns, self.label = text_columns(settings["text"]), settings["label"]
        self._plan = plan_of_settings(settings["tokenizer"])
        self.lists = [name for name, is_list in zip(
            self.columns, self._plan.hold_tokens(self.columns), strict=True) if is_list]

    def add(
        self, texts: Mapping[str, str | Sequence[str] | None], label: Any,
        target: str | os.PathLike[str],
    ) -> Updated:
        """Write the model that has learned one document more.

        Parameters
        ----------
        texts : mapping of str to str, list of str or None
            The text columns.
        label : label
            One of the classes.
        target : path
            The file to write; it may be the one that was read.
        """
        counts = Counter(token.encode("utf-8") for token in tokens_of(self._plan, texts))
        with reading_errors(self._path):
            document, arrays = version2.read(self._path, MAX_BYTES, lambda _: _ARRAYS)
            if document != self._document:
                raise Unsupported("a file that is written while it is read")
            _check(document, arrays)
        code = self.labels.index(label)
        document["classes"]["documents"][code] += 1
        beside = _has_weights(document)
        basic = _with_counts(
            arrays, sorted(counts.items()), code, _counts_presence(document), not beside)
        updated = (_count_since_fit if beside else _mark_stale)(
            document, len(self.labels), len(basic["terms/ends"]))
        document["textnb"] = version("textnb")
        for name in ("format", "version", "requires", "arrays"):
            del document[name]
        kept = None if beside else np.ones(updated.n_terms, dtype=np.bool_)
        version2.write(target, document, stored_arrays(document, basic, kept))
        return updated


def _why_unknown(document: dict[str, Any]) -> str:
    """The part of a file's document that this module does not know; empty if it knows all."""
    estimator, settings, classes = (
        document["estimator"], document["settings"], document["classes"])
    name, parameters = estimator["name"], estimator["parameters"]
    if not set(document) <= _DOCUMENT or document["layers"] != 1 or (
            document["kind"] != "TextClassifier"):
        return "what the document has"
    if name not in _PARAMETERS or set(parameters) != _PARAMETERS[name]:
        return f"the estimator {name!r}"
    if any(settings.get(setting, value) != value or type(settings.get(setting, value)) is not type(
            value) for setting, value in _WITHOUT_LIMITS.items()):
        return "limits on terms, or weights of classes"
    if set(settings) - set(_WITHOUT_LIMITS) != {"text", "label", "tokenizer", "binary"} or type(
            settings["binary"]) is not bool or type(settings["label"]) is not str:
        return "a setting"
    if set(with_missing(settings["tokenizer"])) != set(settings["tokenizer"]):
        return "a tokenizer of an earlier version"
    has_weights = name == _BESIDE_WEIGHTS
    if any(part in where for part, where in (
            ("intercept", document), (_WEIGHTS, document["arrays"]))) != has_weights or (
            "since_fit" in document and not has_weights):
        return "weights"
    if has_weights:
        if parameters["idf"] is not False or "rows" in classes or (
                _WEIGHTS not in document["arrays"]):
            return "inverse document frequencies, sample weights, or many classes"
    elif (parameters["l"] == "auto") != ("l" in document) or smoothing(document) is None:
        return "the smoothing"
    if not settings["binary"] and name == "BernoulliNB" and not _is_zero(parameters["binarize"]):
        return "binarize"
    if set(document["arrays"]) - _ARRAYS:
        return "an array"
    labels, documents = classes["labels"], classes["documents"]
    kind = _LABELS[classes["type"]]
    require(set(classes) == {"type", "labels", "documents"} and len(labels) == len(documents)
            and all(type(one) is kind for one in labels) and sorted(set(labels)) == labels,
            "its labels are not sorted, or not of their type")
    require(all(type(n) is int and n >= 0 for n in documents) and sum(documents) < _EXACT - 1,
            "documents per class are not counts")
    return "" if len(labels) > 1 else "a single class"


def _is_zero(value: Any) -> bool:
    return type(value) in (int, float) and value == 0


def _has_weights(document: Mapping[str, Any]) -> bool:
    return bool(document["estimator"]["name"] == _BESIDE_WEIGHTS)


def _counts_presence(document: Mapping[str, Any]) -> bool:
    return bool(document["settings"]["binary"]
                or document["estimator"]["name"] in ("BernoulliNB", _BESIDE_WEIGHTS))


def _check(document: Mapping[str, Any], arrays: version2.Arrays) -> None:
    """Make the checks of terms and counts that loading a model makes."""
    for name in _BASIC:
        require(name in arrays, f"it has no array {name!r}")
    text = arrays["terms/bytes"]
    ends = check_terms(text, arrays["terms/ends"])
    text.tobytes().decode("utf-8")
    starts = begins_of(ends)[ends > begins_of(ends)]
    require(bool(((text[starts] & 0xC0) != 0x80).all()), "a term is not UTF-8")
    require(is_ascending(text, ends), "terms are not sorted")
    check_counts(arrays, len(ends), len(document["classes"]["labels"]))
    values = arrays["counts/values"]
    require(values.dtype.kind == "i" and int(values.sum(dtype=np.int64)) < _EXACT - (1 << 20),
            "counts are not integers, or too large to add")
    most = np.array(document["classes"]["documents"], dtype=np.int64)
    require(not _counts_presence(document)
            or bool((values <= most[arrays["counts/classes"]]).all()),
            "a term is in more documents than there are")
    if _has_weights(document):
        weights, intercept = arrays[_WEIGHTS], np.array(document["intercept"], dtype=np.float64)
        require(weights.shape == (len(ends), len(document["classes"]["labels"]))
                and weights.dtype.kind == "f" and bool(np.isfinite(weights).all())
                and intercept.shape == weights.shape[1:] and bool(np.isfinite(intercept).all()),
                "weights are not one finite number per class and term")
    occurrences = arrays.get(_OCCURRENCES)
    require(occurrences is None or (
        occurrences.shape == ends.shape and occurrences.dtype.kind == "i"
        and bool((occurrences >= 0).all())
        and int(occurrences.sum(dtype=np.float64)) < _EXACT - (1 << 20)),
        f"{_OCCURRENCES} is not one count per term")


def _with_counts(
    arrays: version2.Arrays, counts: list[tuple[bytes, int]], code: int, presence: bool,
    takes_new: bool,
) -> dict[str, NDArray[Any]]:
    """The terms and counts of a file with those of one document of a class.

    Parameters
    ----------
    arrays : mapping of str to array
    counts : list of (term, count)
        The occurrences in the document, sorted by term.
    code : int
        The class.
    presence : bool
        Whether a term counts once per document.
    takes_new : bool
        Whether terms are added that the file does not have.
    """
    text, ends = arrays["terms/bytes"].tobytes(), arrays["terms/ends"].astype(np.int64)
    counts_ends = arrays["counts/ends"][0].astype(np.int64)
    classes, values = arrays["counts/classes"], arrays["counts/values"].astype(np.int64)
    begins, counts_begins = begins_of(ends), begins_of(counts_ends)
    per_term = counts_ends - counts_begins
    new: list[tuple[int, bytes]] = []
    # Places in the old arrays, ascending, and the counts to insert before them.
    added: list[tuple[int, int]] = []
    occurrences = arrays.get(_OCCURRENCES, np.zeros(len(ends))).astype(np.int64)
    place = 0
    for term, times in counts:
        count = 1 if presence else times
        place = bisect_left(
            range(len(ends)), term, place, key=lambda at: text[begins[at]:ends[at]])
        if place < len(ends) and text[begins[place]:ends[place]] == term:
            occurrences[place] += times
        elif not takes_new:
            continue
        else:
            new.append((place, term))
            added.append((int(counts_ends[place - 1]) if place else 0, count))
            continue
        first, last = int(counts_begins[place]), int(counts_ends[place])
        at = bisect_left(classes[first:last].tolist(), code) + first
        if at < last and classes[at] == code:
            values[at] += count
        else:
            added.append((at, count))
            per_term[place] += 1
    places, pieces, at = [place for place, _ in new], [], 0
    for place, term in new:
        before = int(begins[place]) if place < len(ends) else len(text)
        pieces += [text[at:before], term]
        at = before
    lengths = np.insert(ends - begins, places, [len(term) for _, term in new])
    of_document = dict(counts)
    more = {} if _OCCURRENCES not in arrays else {_OCCURRENCES: narrow(np.insert(
        occurrences, places, [of_document[term] for _, term in new]))}
    return {
        "terms/bytes": np.frombuffer(b"".join([*pieces, text[at:]]), dtype=np.uint8),
        "terms/ends": narrow(np.cumsum(lengths)),
        **more,
        "counts/ends": narrow(np.cumsum(np.insert(per_term, places, 1)))[None, :],
        "counts/classes": np.insert(classes, [at for at, _ in added], code),
        "counts/values": narrow(np.insert(
            values, [at for at, _ in added], [count for _, count in added])),
        **({_WEIGHTS: arrays[_WEIGHTS]} if _WEIGHTS in arrays else {})}


def _count_since_fit(document: dict[str, Any], n_classes: int, n_terms: int) -> Updated:
    """Note that a document was learned which the weights do not know."""
    since = document.setdefault("since_fit", {"learned": 0, "forgotten": 0})
    since["learned"] += 1
    # Where the reader of whole files writes it.
    document["layers"] = document.pop("layers")
    return Updated(n_classes, n_terms, since_fit=SinceFit(**since))


def _mark_stale(document: dict[str, Any], n_classes: int, n_terms: int) -> Updated:
    """Mark the calibration and the decision as stale: they were chosen before this document."""
    calibration, decision = None, None
    if document.get("calibration") is not None:
        calibration = Calibration.from_dict(document["calibration"]).as_stale(LEARNED_SINCE)
        document["calibration"] = calibration.to_dict()
    if document.get("decision") is not None:
        decision = Decision.from_dict(document["decision"]).as_stale(LEARNED_SINCE)
        decision.check_classes(document["classes"]["labels"])
        document["decision"] = decision.to_dict()
    return Updated(n_classes, n_terms, calibration, decision)
