"""What a model file holds: its arrays, and the names of its document.

    of texts    index/, terms/    UTF-8 of the sorted terms, one after the other, where each ends,
                                  and every 256th of them, to find one without reading all
                terms/...         of each term: documents, occurrences, counts over all documents,
                                  and a bit: whether it is within the limits
                counts/...        the counts that are not 0, term by term, and their classes
                totals/...        sums over all terms, which the weight of one of them needs
                weights           of a model that keeps them: all, or those that are not 0
                optional/sample   learned rows, from which weights are refitted
    of tables   means, scatter    means, and sums of squares or the lower triangle, row by row
                rows/...          the rows of a model that keeps its data

The reader of whole files, that of single terms, that which adds one message, and models of feature
tables are views of this. What is checked here needs the declared types and shapes alone, before any
array is read. Neither NumPy nor Polars is imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from textnb.files.require import require

# The terms of the index.
INDEX_STEP = 256
# What a file of a model of lists of labels requires of its reader.
MULTILABEL = "multilabel"
# A reader that does not know an array with this prefix may ignore it.
OPTIONAL = "optional/"
# Types of arrays, with their codes in `struct`.
TYPES = {"|u1": "B", "<u2": "H", "<i4": "i", "<i8": "q", "<f8": "d"}
_BYTES, _INTEGERS, _CODES = ("|u1",), ("<i4", "<i8"), ("|u1", "<u2", "<i4")
_COUNTS, _NUMBERS = ("<i4", "<i8", "<f8"), ("<f8",)


class Array(NamedTuple):
    """An array of a model file.

    Attributes
    ----------
    name : str
    types : tuple of str
        The types that it may have.
    shape : tuple of str
        The names of its sizes; arrays with a size of one name must agree in it.
    when : str
        The condition for a file to have it; "" if all have it.
    may_be_absent, may_be_more : bool
        Whether a file may lack it even if the condition holds, or have it even if it does not.
    """

    name: str
    types: tuple[str, ...]
    shape: tuple[str, ...]
    when: str = ""
    may_be_absent: bool = False
    may_be_more: bool = False


# In the order in which they are stored. Small ones come first: a reader of single terms needs all
# of them.
TEXT = {array.name: array for array in (
    Array("index/bytes", _BYTES, ("bytes of the index",)),
    Array("index/ends", _INTEGERS, ("entries",)),
    Array("totals/counts", ("<i8",), ("classes",), "sums of counts"),
    Array("totals/absent", _NUMBERS, ("classes",), "sums of absent"),
    Array("totals/norms", _NUMBERS, ("classes",), "sums of norms"),
    Array("terms/bytes", _BYTES, ("bytes",)),
    Array("terms/ends", _INTEGERS, ("terms",)),
    Array("terms/documents", _INTEGERS, ("terms",), "limits on documents", may_be_more=True),
    Array("terms/occurrences", _INTEGERS, ("terms",), "presence", may_be_more=True),
    Array("terms/total", _COUNTS, ("terms",), "lists of labels"),
    Array("counts/ends", _INTEGERS, ("1", "terms")),
    Array("counts/classes", _CODES, ("counts",)),
    Array("counts/values", _COUNTS, ("counts",)),
    Array("weights", _NUMBERS, ("terms", "classes"), "weights"),
    Array("weights/ends", _INTEGERS, ("terms",), "few weights"),
    Array("weights/classes", _CODES, ("weights",), "few weights"),
    Array("weights/values", _NUMBERS, ("weights",), "few weights"),
    Array("optional/sample/ends", _INTEGERS, ("rows",), "sample"),
    Array("optional/sample/classes", _CODES, ("rows",), "sample"),
    Array("optional/sample/columns", _INTEGERS, ("cells",), "sample"),
    Array("optional/sample/counts", _INTEGERS, ("cells",), "sample", may_be_absent=True),
    Array("terms/kept", _BYTES, ("bytes of bits",), "limits", may_be_absent=True),
)}
TABLE = {array.name: array for array in (
    Array("means", _NUMBERS, ("classes", "features"), "moments"),
    Array("scatter", _NUMBERS, ("classes", "products"), "moments"),
    Array("rows/classes", ("<i4",), ("rows",), "rows"),
    Array("rows/values", _NUMBERS, ("rows", "features"), "rows"),
)}
# Names of the document of a model of texts.
DOCUMENT = frozenset((
    "format", "version", "textnb", "kind", "estimator", "settings", "classes", "layers",
    "requires", "arrays", "intercept", "calibration", "decision", "l", "pruned", "since_fit",
    "sample"))
_CALIBRATION_FIELDS = frozenset((
    "temperature", "length_exponent", "documents", "method", "shift", "link", "stale", "sigmoids"))
_DECISION_FIELDS = frozenset(("thresholds", "positive", "evidence", "stale", "at_least", "at_most"))
CHOICES = {"calibration": _CALIBRATION_FIELDS, "decision": _DECISION_FIELDS}
# Sizes that follow from the number of terms, and the number of terms that share each item.
_TERMS_PER_ITEM = {"entries": INDEX_STEP, "bytes of bits": 8}


def check_arrays(
    declared: Mapping[str, Any], known: Mapping[str, Array], facts: Collection[str],
    sizes: Mapping[str, int],
) -> dict[str, int]:
    """Check the types and shapes of all arrays, and that no array is missing.

    Parameters
    ----------
    declared : mapping of str to (type, shape)
        By the name of the array.
    known : mapping of str to Array
        `TEXT` or `TABLE`.
    facts : collection of str
        The conditions (`Array.when`) that hold for the file.
    sizes : mapping of str to int
        The sizes that the document states.

    Returns
    -------
    dict of str to int
        All sizes.

    Raises
    ------
    ValueError
        If an array is missing, not known, or not of its type or shape.
    """
    for name in declared:
        require(name in known or name.startswith(OPTIONAL), f"it has no array {name!r}")
    size_of = {"1": 1, **sizes}
    for name, array in known.items():
        is_required = not array.when or array.when in facts
        if name not in declared:
            require(not is_required or array.may_be_absent,
                    f"it has no array {name!r}, and needs one")
            continue
        require(is_required or array.may_be_more,
                f"it has an array {name!r}, which is not one of its model")
        type_, shape = declared[name][:2]
        require(type_ in array.types and len(shape) == len(array.shape) and all(
            size_of.setdefault(size, n) == n for size, n in zip(array.shape, shape, strict=True)),
            f"the array {name!r} is not of its type and shape")
    for size, each in _TERMS_PER_ITEM.items():
        require(size not in size_of or size_of[size] == -(-size_of["terms"] // each),
                f"it does not have as many {size} as its terms have")
    return size_of
