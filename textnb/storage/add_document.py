"""Adds one document to a model file without Polars; the file has the bytes that Polars would write.

    tokens in plain Python -> positions among the sorted terms -> arrays with new terms and counts

The whole file is read, checked and written again. If it has anything that this module does not
know, `Unsupported` names it, and the caller loads the model and learns the document with Polars.
The variable ``document`` is the file's JSON document, and ``contents`` is what it says, checked.
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
from textnb.storage.document import EXACT_LIMIT, OPTIONAL_SETTINGS, WEIGHT_SETTINGS, TextDocument
from textnb.storage.layout import TEXT_ARRAYS, check_arrays
from textnb.storage.terms_reader import known_document, tokens_of
from textnb.text.plan import add_missing_settings
from textnb.text.utf8 import begins_of, is_ascending

_OCCURRENCES = "terms/occurrences"
# The array of weights that are stored completely. This module refuses files of sparse weights.
_WEIGHTS = "weights"
# Arrays of models with limits on terms, or of lists of labels: files that have one are refused.
_REFUSED_ARRAYS = {"terms/documents", "terms/kept", "terms/total"}
# Settings that limit or weight terms, and the values with which they have no effect.
_NO_LIMITS = {"min_df": 1, "max_df": 1.0, "max_features": None, "vocabulary": None,
              **dict.fromkeys(name for name in OPTIONAL_SETTINGS if name not in WEIGHT_SETTINGS)}
# If a sum is below this, the counts of one document can be added to it, and it stays exact.
_MAX_SUM = EXACT_LIMIT - (1 << 20)


@dataclass(frozen=True)
class UpdateSummary:
    """What is reported of a model after a document was added.

    Attributes
    ----------
    n_classes, n_terms : int
    calibration : Calibration or None
    decision : Decision or None
        Both are marked as stale, unless the weights stay as they were.
    since_fit : SinceFit or None
        The documents counted since the fit, if the weights stay as they were.
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
        The text columns that hold lists of tokens.
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
            sizes = check_arrays(
                file.arrays, TEXT_ARRAYS, contents.array_conditions, contents.sizes)
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
    ) -> UpdateSummary:
        """Write the model that has also learned this document.

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
        # If the weights do not come from counts, they stay as they were, and the file counts, for
        # each term, the documents that hold it.
        contents, keeps_weights = self._contents, not self._contents.model.from_counts
        counts_presence = keeps_weights or (
            contents.model.presence_above(contents.settings["binary"]) is not None)
        with reading_errors(self._path):
            document, arrays = version2.read(self._path, MAX_BYTES)
            if document != self._document:
                raise Unsupported("a file that is written while it is read")
            _check_contents(document, arrays, counts_presence)
            check_derived(document, contents.model, contents.l, arrays, _within_limits(arrays))
        class_code = self.labels.index(label)
        document["classes"]["documents"][class_code] += 1
        basic = _add_counts(arrays, sorted(counts.items()), class_code, counts_presence,
                            adds_terms=not keeps_weights)
        summary = (_note_learned if keeps_weights else _mark_stale)(
            document, contents, len(basic["terms/ends"]))
        document["textnb"] = __version__
        # `write` adds these again.
        for name in ("format", "version", "requires", "arrays"):
            del document[name]
        version2.write(target, document, stored_arrays(
            document, contents.model, contents.l, basic, _within_limits(basic)))
        return summary


def _unsupported_reason(document: Mapping[str, Any], contents: TextDocument) -> str:
    """What the file has that this module does not know, in words; empty if it knows everything."""
    settings, model = contents.settings, contents.model
    if any(settings[name] != value or type(settings[name]) is not type(value)
           for name, value in _NO_LIMITS.items()):
        return "limits on terms, or weights of classes"
    # Settings are missing that did not exist when the file was written.
    if set(add_missing_settings(settings["tokenizer"])) != set(settings["tokenizer"]):
        return "a tokenizer of an earlier version"
    if not model.from_counts and not (
            model.can_count_without_refit and _WEIGHTS in contents.array_conditions):
        return "weights that a document changes, or many classes"
    if model.from_counts and "sums of counts" not in contents.array_conditions:
        return "the smoothing"
    # Presence above another number than 0 does not follow from the counts of this module.
    if model.presence_above(settings["binary"]) not in (None, 0.0):
        return "binarize"
    # Loading the model and saving it drops an array that the model does not need.
    needed = {name for name, array in TEXT_ARRAYS.items()
              if array.is_needed(contents.array_conditions)}
    has_refused_array = document["arrays"].keys() - (needed - _REFUSED_ARRAYS)
    if has_refused_array or "sample" in document or "pruned" in document:
        return "an array, or what the document has"
    return "" if contents.sizes["classes"] > 1 and "rows" not in document["classes"] else (
        "a single class, or sample weights")


def _check_contents(document: Mapping[str, Any], arrays: Arrays, counts_presence: bool) -> None:
    """Make the checks of terms and counts that loading a model makes."""
    text = arrays["terms/bytes"]
    documents = np.array(document["classes"]["documents"], dtype=np.int64)
    ends = check_ends(arrays["terms/ends"], len(text), "terms")
    text.tobytes().decode("utf-8")
    starts = begins_of(ends)[ends > begins_of(ends)]
    # In UTF-8, only the later bytes of a character begin with the bits 10.
    require(bool(((text[starts] & 0xC0) != 0x80).all()), "a term is not UTF-8")
    require(0 < len(ends) < 2**31 and is_ascending(text, ends), "terms are not sorted")
    check_counts(arrays, documents, of_documents=counts_presence, max_sum=_MAX_SUM)
    require(int(documents.sum()) < _MAX_SUM, "documents are too many to add")
    if _WEIGHTS in arrays:
        check_weights(arrays[_WEIGHTS])


def _within_limits(arrays: Arrays) -> NDArray[np.bool_]:
    """Which terms are within the limits: all, as files with limits are refused."""
    return np.ones(len(arrays["terms/ends"]), dtype=np.bool_)


def _add_counts(
    arrays: Arrays, counts: list[tuple[bytes, int]], class_code: int, counts_presence: bool, *,
    adds_terms: bool,
) -> dict[str, NDArray[Any]]:
    """Add the counts of one document to the arrays of terms and counts.

    Parameters
    ----------
    arrays : mapping of str to array
    counts : list of (term, count)
        The number of occurrences of each term in the document, sorted by term.
    class_code : int
        The class of the document.
    counts_presence : bool
        Whether a term counts once per document.
    adds_terms : bool
        Whether terms that the file does not have are added.

    Returns
    -------
    dict of str to array
        The arrays of terms and counts, from which `stored_arrays` derives the others.
    """
    terms, occurrences = [term for term, _ in counts], np.array(
        [count for _, count in counts], dtype=np.int64)
    ends, n_terms = arrays["terms/ends"].astype(np.int64), len(arrays["terms/ends"])
    text, begins = arrays["terms/bytes"].tobytes(), begins_of(ends)

    def term_at(position: int) -> bytes:
        return text[begins[position]:ends[position]]

    # Where each term is among the sorted terms, or where it must be inserted.
    positions = np.array([bisect_left(range(n_terms), term, key=term_at) for term in terms],
                         dtype=np.int64)
    is_known = np.array([position < n_terms and term_at(position) == term
                         for position, term in zip(positions, terms, strict=True)], dtype=np.bool_)
    increments = np.ones(len(terms), dtype=np.int64) if counts_presence else occurrences
    if not adds_terms:
        terms = [term for term, known in zip(terms, is_known, strict=True) if known]
        # From here on, all terms are known.
        positions, occurrences = positions[is_known], occurrences[is_known]
        increments, is_known = increments[is_known], is_known[is_known]
    classes, values = arrays["counts/classes"], arrays["counts/values"].astype(np.int64)
    # The first axis of these ends has one item; in earlier releases, one for each period of time.
    counts_per_term = np.diff(arrays["counts/ends"][0].astype(np.int64), prepend=0)
    # Counts are sorted by a key, of term and class. The count of a new term is inserted before the
    # counts of the term that is at its position, which begin with class 0.
    n_classes = int(classes.max(initial=class_code)) + 1
    keys = np.repeat(np.arange(n_terms) * n_classes, counts_per_term) + classes
    keys_of_terms = positions * n_classes + np.where(is_known, class_code, 0)
    cells = np.searchsorted(keys, keys_of_terms)
    # -1 stands for the key after the last one, which no term has.
    has_cell = is_known & (np.append(keys, -1)[cells] == keys_of_terms)
    values[cells[has_cell]] += increments[has_cell]
    counts_per_term[positions[is_known & ~has_cell]] += 1
    new_terms = [term for term, known in zip(terms, is_known, strict=True) if not known]
    lengths, new_positions = np.array([*map(len, new_terms)], dtype=np.int64), positions[~is_known]
    term_arrays = {
        "terms/bytes": np.insert(
            arrays["terms/bytes"], np.repeat(np.append(begins, len(text))[new_positions], lengths),
            np.frombuffer(b"".join(new_terms), dtype=np.uint8)),
        "terms/ends": narrow(np.cumsum(np.insert(ends - begins, new_positions, lengths)))}
    if _OCCURRENCES in arrays:
        totals = arrays[_OCCURRENCES].astype(np.int64)
        totals[positions[is_known]] += occurrences[is_known]
        term_arrays[_OCCURRENCES] = narrow(np.insert(totals, new_positions, occurrences[~is_known]))
    return {
        **term_arrays,
        "counts/ends": narrow(np.cumsum(np.insert(counts_per_term, new_positions, 1)))[None, :],
        "counts/classes": np.insert(classes, cells[~has_cell], class_code),
        "counts/values": narrow(np.insert(values, cells[~has_cell], increments[~has_cell])),
        **({_WEIGHTS: arrays[_WEIGHTS]} if _WEIGHTS in arrays else {})}


def _note_learned(document: dict[str, Any], contents: TextDocument, n_terms: int) -> UpdateSummary:
    """Count a document that was learned after the weights were fitted."""
    since_fit = document.setdefault("since_fit", {"learned": 0, "forgotten": 0})
    since_fit["learned"] += 1
    # "layers" comes after "since_fit", as in `textnb.storage.textmodel.pack_text`.
    document["layers"] = document.pop("layers")
    return UpdateSummary(contents.sizes["classes"], n_terms, since_fit=SinceFit(**since_fit))


def _mark_stale(document: dict[str, Any], contents: TextDocument, n_terms: int) -> UpdateSummary:
    """Mark the calibration and the decision as stale: they were chosen before this document."""
    calibration, decision = contents.calibration, contents.decision
    if calibration is not None:
        calibration = calibration.as_stale(LEARNED_SINCE)
        document["calibration"] = calibration.to_dict()
    if decision is not None:
        decision = decision.as_stale(LEARNED_SINCE)
        document["decision"] = decision.to_dict()
    return UpdateSummary(contents.sizes["classes"], n_terms, calibration, decision)
