"""The layout of a model file: its arrays, and the keys of its model.json.

    of texts    terms/            the UTF-8 of the sorted terms, one after the other, and where
                                  each ends; for each term, the numbers of its documents and of
                                  its occurrences, its count over all documents, and a bit that
                                  says whether it is within the limits
                index/            every 256th term, to find a term without reading all of them
                counts/           the counts that are not 0, term by term, and their classes
                totals/           sums over all terms, which the weight of each term depends on
                weights           if counts don't determine them: all, or those that are not 0
                optional/sample/  learned rows, from which weights are fitted again
    of tables   means, scatter    per class: means, and sums of squares or the lower triangle of
                                  sums of products, row by row
                rows/             the rows of a model that keeps its data

All readers and writers of model files use these tables. The checks here need only the declared
types and shapes of arrays, so they come before any array is read. Neither NumPy nor Polars is
imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from textnb.files.require import require

# The index has every term whose number is a multiple of this.
INDEX_STEP = 256
# The kinds of classifiers.
TEXT_KIND, TABLE_KIND = "TextClassifier", "TableClassifier"
# The entry of ``requires`` in files of models of lists of labels: a reader must know it.
MULTILABEL = "multilabel"
# A reader may ignore an array with this prefix that it does not know.
OPTIONAL_PREFIX = "optional/"
# Types of arrays, as NumPy writes them, with their codes in `struct`.
TYPES = {"|u1": "B", "<u2": "H", "<i4": "i", "<i8": "q", "<f8": "d"}
_BYTES, _INTEGERS, _CLASS_CODES = ("|u1",), ("<i4", "<i8"), ("|u1", "<u2", "<i4")
_COUNTS, _FLOATS = ("<i4", "<i8", "<f8"), ("<f8",)


class Array(NamedTuple):
    """An array of a model file.

    Attributes
    ----------
    name : str
    types : tuple of str
        The types that it may have.
    shape : tuple of str
        The names of its sizes. In all arrays of a file, a size of the same name is the same number;
        "1" is always 1.
    condition : str
        A file has the array if this holds, see `TextDocument.array_conditions`; "" always holds.
    may_be_absent : bool
        Whether a file may lack it even if the condition holds.
    may_be_extra : bool
        Whether a file may have it even if the condition does not hold.
    """

    name: str
    types: tuple[str, ...]
    shape: tuple[str, ...]
    condition: str = ""
    may_be_absent: bool = False
    may_be_extra: bool = False

    def is_needed(self, conditions: Collection[str]) -> bool:
        """Whether a file has it for which these conditions hold."""
        return not self.condition or self.condition in conditions


# The arrays of a model of texts, in the order in which they are stored. Small ones come first, as a
# reader of single terms reads all of them. "few weights" stores only the weights that are not 0.
# The sums "absent" and "norms" are of logarithms: of the probability that a term is absent, for
# BernoulliNB, and of a term's share of the counts of all other classes, for ComplementNB.
TEXT_ARRAYS = {array.name: array for array in (
    Array("index/bytes", _BYTES, ("bytes of the index",)),
    Array("index/ends", _INTEGERS, ("entries",)),
    Array("totals/counts", ("<i8",), ("classes",), "sums of counts"),
    Array("totals/absent", _FLOATS, ("classes",), "sums of absent"),
    Array("totals/norms", _FLOATS, ("classes",), "sums of norms"),
    Array("terms/bytes", _BYTES, ("bytes",)),
    Array("terms/ends", _INTEGERS, ("terms",)),
    Array("terms/documents", _INTEGERS, ("terms",), "limits on documents", may_be_extra=True),
    Array("terms/occurrences", _INTEGERS, ("terms",), "presence", may_be_extra=True),
    Array("terms/total", _COUNTS, ("terms",), "lists of labels"),
    Array("counts/ends", _INTEGERS, ("1", "terms")),
    Array("counts/classes", _CLASS_CODES, ("counts",)),
    Array("counts/values", _COUNTS, ("counts",)),
    Array("weights", _FLOATS, ("terms", "classes"), "weights"),
    Array("weights/ends", _INTEGERS, ("terms",), "few weights"),
    Array("weights/classes", _CLASS_CODES, ("weights",), "few weights"),
    Array("weights/values", _FLOATS, ("weights",), "few weights"),
    Array("optional/sample/ends", _INTEGERS, ("rows",), "sample"),
    Array("optional/sample/classes", _CLASS_CODES, ("rows",), "sample"),
    Array("optional/sample/columns", _INTEGERS, ("cells",), "sample"),
    Array("optional/sample/counts", _INTEGERS, ("cells",), "sample", may_be_absent=True),
    Array("terms/kept", _BYTES, ("bytes of bits",), "limits", may_be_absent=True),
)}
# The arrays of a model of feature tables.
TABLE_ARRAYS = {array.name: array for array in (
    Array("means", _FLOATS, ("classes", "features"), "moments"),
    Array("scatter", _FLOATS, ("classes", "products"), "moments"),
    Array("rows/classes", ("<i4",), ("rows",), "rows"),
    Array("rows/values", _FLOATS, ("rows", "features"), "rows"),
)}
# The keys of the model.json of a model of texts.
DOCUMENT_KEYS = frozenset((
    "format", "version", "textnb", "kind", "estimator", "settings", "classes", "layers",
    "requires", "arrays", "intercept", "calibration", "decision", "l", "pruned", "since_fit",
    "sample"))
_CALIBRATION_KEYS = frozenset((
    "temperature", "length_exponent", "documents", "method", "shift", "link", "stale", "sigmoids"))
_DECISION_KEYS = frozenset(("thresholds", "positive", "evidence", "stale", "at_least", "at_most"))
# The keys of each entry that was chosen for a fitted model.
CHOICE_KEYS = {"calibration": _CALIBRATION_KEYS, "decision": _DECISION_KEYS}
# The sizes that follow from the number of terms: one item for so many terms.
_TERMS_PER_ITEM = {"entries": INDEX_STEP, "bytes of bits": 8}


def check_arrays(
    declared: Mapping[str, Any], known: Mapping[str, Array], conditions: Collection[str],
    sizes: Mapping[str, int],
) -> dict[str, int]:
    """Check the types and shapes of all arrays, and that no array is missing.

    Parameters
    ----------
    declared : mapping of str to (type, shape, ...)
        The arrays that the document declares, by name; further values are not read.
    known : mapping of str to Array
        `TEXT_ARRAYS` or `TABLE_ARRAYS`.
    conditions : collection of str
        The conditions (`Array.condition`) that hold for the file.
    sizes : mapping of str to int
        The sizes that the document states.

    Returns
    -------
    dict of str to int
        All sizes, by name.

    Raises
    ------
    ValueError
        If an array is missing, not known, or not of its type or shape.
    """
    for name in declared:
        require(name in known or name.startswith(OPTIONAL_PREFIX),
                f"it has an array {name!r}, which is not known")
    size_of = {"1": 1, **sizes}
    for name, array in known.items():
        is_required = array.is_needed(conditions)
        if name not in declared:
            require(not is_required or array.may_be_absent,
                    f"it has no array {name!r}, and needs one")
            continue
        require(is_required or array.may_be_extra,
                f"it has an array {name!r}, which is not one of its model")
        type_, shape = declared[name][:2]
        require(type_ in array.types and len(shape) == len(array.shape) and all(
            size_of.setdefault(size, n) == n for size, n in zip(array.shape, shape, strict=True)),
            f"the array {name!r} is not of its type and shape")
    for size, n_terms in _TERMS_PER_ITEM.items():
        # The division rounds up.
        require(size not in size_of or size_of[size] == -(-size_of["terms"] // n_terms),
                f"it does not have as many {size} as its terms have")
    return size_of
