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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.calibration import LEARNED_SINCE, Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.learned import SinceFit
from textnb.files.archive import MAX_BYTES
from textnb.files.require import Unsupported, reading_errors, require
from textnb.runtime import __version__
from textnb.storage import version2
from textnb.storage.arithmetic import (
    Arrays,
    check_counts,
    check_derived,
    check_ends,
    check_weights,
    narrow,
    stored_arrays,
)
from textnb.storage.document import EXACT, OPTIONAL, WEIGHT_SETTINGS, TextDocument
from textnb.storage.layout import TEXT, check_arrays
from textnb.storage.terms_reader import known_document, tokens_of
from textnb.text.plan import with_missing
from textnb.text.utf8 import begins_of, is_ascending

_OCCURRENCES = "terms/occurrences"
# Weights of two classes; files with other weights are left to the full command.
_WEIGHTS = "weights"
# Arrays of files that this module refuses.
_REFUSED = {"terms/documents", "terms/kept", "terms/total"}
# Settings that limit or weight terms, and the values with which they have no effect.
_WITHOUT_LIMITS = {"min_df": 1, "max_df": 1.0, "max_features": None, "vocabulary": None,
                   **dict.fromkeys(name for name in OPTIONAL if name not in WEIGHT_SETTINGS)}
# Room for the counts of one document below the largest sum.
_MAX_SUM = EXACT - (1 << 20)


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
        with reading_errors(self._path), version2.ModelFile(self._path) as file:
            self._document = file.document
            self._contents = contents = known_document(self._path, self._document)
            sizes = check_arrays(file.arrays, TEXT, contents.facts, contents.sizes)
            contents.model.check(sizes["terms"], sizes["classes"])
            if reason := _unsupported_reason(self._document, contents):
                raise Unsupported(reason)
            self.labels: list[Any] = self._document["classes"]["labels"]
            self.columns, self.label = contents.columns, self._document["settings"]["label"]
            self.lists = [name for name, is_list in zip(
                self.columns, contents.plan.hold_tokens(self.columns), strict=True) if is_list]

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
        counts = Counter(token.encode("utf-8") for token in tokens_of(self._contents.plan, texts))
        # A model whose weights stay counts, beside them, the documents that hold a term.
        contents, beside_weights = self._contents, not self._contents.model.from_counts
        presence = beside_weights or (
            contents.model.presence_above(contents.settings["binary"]) is not None)
        with reading_errors(self._path):
            document, arrays = version2.read(self._path, MAX_BYTES)
            if document != self._document:
                raise Unsupported("a file that is written while it is read")
            _check(document, arrays, presence)
            check_derived(document, contents.model, contents.l, arrays, _every_term(arrays))
        code = self.labels.index(label)
        document["classes"]["documents"][code] += 1
        basic = _with_counts(
            arrays, sorted(counts.items()), code, presence, takes_new=not beside_weights)
        updated = (_count_since_fit if beside_weights else _mark_stale)(
            document, contents, len(basic["terms/ends"]))
        document["textnb"] = __version__
        for name in ("format", "version", "requires", "arrays"):
            del document[name]
        version2.write(target, document, stored_arrays(
            document, contents.model, contents.l, basic, _every_term(basic)))
        return updated


def _unsupported_reason(document: Mapping[str, Any], contents: TextDocument) -> str:
    """What of a file's document this module does not know, in words; empty if it knows all."""
    settings, model = contents.settings, contents.model
    if any(settings[name] != value or type(settings[name]) is not type(value)
           for name, value in _WITHOUT_LIMITS.items()):
        return "limits on terms, or weights of classes"
    if set(with_missing(settings["tokenizer"])) != set(settings["tokenizer"]):
        return "a tokenizer of an earlier version"
    if not model.from_counts and not (model.counts_beside_weights and _WEIGHTS in contents.facts):
        return "weights that a document changes, or many classes"
    if model.from_counts and "sums of counts" not in contents.facts:
        return "the smoothing"
    if model.presence_above(settings["binary"]) not in (None, 0.0):
        return "binarize"
    if _REFUSED & set(document["arrays"]) or "sample" in document or "pruned" in document or any(
            name not in TEXT for name in document["arrays"]):
        return "an array, or what the document has"
    return "" if contents.sizes["classes"] > 1 and "rows" not in document["classes"] else (
        "a single class, or sample weights")


def _check(document: Mapping[str, Any], arrays: Arrays, presence: bool) -> None:
    """Make the checks of terms and counts that loading a model makes."""
    text = arrays["terms/bytes"]
    documents = np.array(document["classes"]["documents"], dtype=np.int64)
    ends = check_ends(arrays["terms/ends"], len(text), "terms")
    text.tobytes().decode("utf-8")
    starts = begins_of(ends)[ends > begins_of(ends)]
    require(bool(((text[starts] & 0xC0) != 0x80).all()), "a term is not UTF-8")
    require(0 < len(ends) < 2**31 and is_ascending(text, ends), "terms are not sorted")
    check_counts(arrays, documents, max_sum=_MAX_SUM)
    require(int(documents.sum()) < _MAX_SUM, "documents are too many to add")
    require(not presence or bool(
        (arrays["counts/values"] <= documents[arrays["counts/classes"]]).all()),
            "a term is in more documents than there are")
    if _WEIGHTS in arrays:
        check_weights(arrays[_WEIGHTS])


def _every_term(arrays: Arrays) -> NDArray[np.bool_]:
    """Which terms are kept: all, as these files have no limits."""
    return np.ones(len(arrays["terms/ends"]), dtype=np.bool_)


def _with_counts(
    arrays: Arrays, counts: list[tuple[bytes, int]], code: int, presence: bool, *,
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
    terms, times = [term for term, _ in counts], np.array(
        [times for _, times in counts], dtype=np.int64)
    ends, n_terms = arrays["terms/ends"].astype(np.int64), len(arrays["terms/ends"])
    text, begins = arrays["terms/bytes"].tobytes(), begins_of(ends)

    def term_at(place: int) -> bytes:
        return text[begins[place]:ends[place]]

    # Where each term is, or belongs, among the sorted terms.
    places = np.array([bisect_left(range(n_terms), term, key=term_at) for term in terms],
                      dtype=np.int64)
    known = np.array([place < n_terms and term_at(place) == term
                      for place, term in zip(places, terms, strict=True)], dtype=np.bool_)
    to_add = np.ones(len(terms), dtype=np.int64) if presence else times
    if not takes_new:
        terms = [term for term, is_known in zip(terms, known, strict=True) if is_known]
        places, times, to_add, known = places[known], times[known], to_add[known], known[known]
    classes, values = arrays["counts/classes"], arrays["counts/values"].astype(np.int64)
    per_term = np.diff(arrays["counts/ends"][0].astype(np.int64), prepend=0)
    # Counts are sorted by term and class; those of a new term come before those of the term that is
    # at its place.
    n_classes = int(classes.max(initial=code)) + 1
    keys = np.repeat(np.arange(n_terms) * n_classes, per_term) + classes
    keys_of_terms = places * n_classes + np.where(known, code, 0)
    cells = np.searchsorted(keys, keys_of_terms)
    has_cell = known & (np.append(keys, -1)[cells] == keys_of_terms)
    values[cells[has_cell]] += to_add[has_cell]
    per_term[places[known & ~has_cell]] += 1
    new = [term for term, is_known in zip(terms, known, strict=True) if not is_known]
    lengths, new_places = np.array(list(map(len, new)), dtype=np.int64), places[~known]
    of_terms = {
        "terms/bytes": np.insert(
            arrays["terms/bytes"], np.repeat(np.append(begins, len(text))[new_places], lengths),
            np.frombuffer(b"".join(new), dtype=np.uint8)),
        "terms/ends": narrow(np.cumsum(np.insert(ends - begins, new_places, lengths)))}
    if _OCCURRENCES in arrays:
        occurrences = arrays[_OCCURRENCES].astype(np.int64)
        occurrences[places[known]] += times[known]
        of_terms[_OCCURRENCES] = narrow(np.insert(occurrences, new_places, times[~known]))
    return {
        **of_terms,
        "counts/ends": narrow(np.cumsum(np.insert(per_term, new_places, 1)))[None, :],
        "counts/classes": np.insert(classes, cells[~has_cell], code),
        "counts/values": narrow(np.insert(values, cells[~has_cell], to_add[~has_cell])),
        **({_WEIGHTS: arrays[_WEIGHTS]} if _WEIGHTS in arrays else {})}


def _count_since_fit(document: dict[str, Any], contents: TextDocument, n_terms: int) -> Updated:
    """Note that a document was learned which the weights do not know."""
    since = document.setdefault("since_fit", {"learned": 0, "forgotten": 0})
    since["learned"] += 1
    # After the choices, as in `textnb.storage.textmodel.pack_text`.
    document["layers"] = document.pop("layers")
    return Updated(contents.sizes["classes"], n_terms, since_fit=SinceFit(**since))


def _mark_stale(document: dict[str, Any], contents: TextDocument, n_terms: int) -> Updated:
    """Mark the calibration and the decision as stale: they were chosen before this document."""
    calibration, decision = contents.calibration, contents.decision
    if calibration is not None:
        calibration = calibration.as_stale(LEARNED_SINCE)
        document["calibration"] = calibration.to_dict()
    if decision is not None:
        decision = decision.as_stale(LEARNED_SINCE)
        document["decision"] = decision.to_dict()
    return Updated(contents.sizes["classes"], n_terms, calibration, decision)
