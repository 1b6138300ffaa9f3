"""Arrays that no model has, under right checksums.

The target `models` of `scripts/fuzz` changes documents, arrays and bytes at random.
"""

from itertools import accumulate

import numpy as np
import pytest

from tests.storage.conftest import MODELS, scores
from tests.storage.members import arrays_of, built, members_of, signed, with_array
from textnb import TextClassifier


def last(array, value):
    return at(-1, value)(array)


def at(place, value):
    """A function that gives an array with other values at a place."""

    def change(array):
        changed = array.copy()
        changed.reshape(-1)[place] = value
        return changed

    return change


CHANGES = {
    "absent": lambda a: None,
    "shorter": lambda a: a.reshape(-1)[:-1], "longer": lambda a: np.append(a, a.reshape(-1)[-1:]),
    "none": lambda a: a.reshape(-1)[:0], "reversed": lambda a: a.reshape(-1)[::-1].copy(),
    "negative": lambda a: last(a, -1 if a.dtype.kind != "u" else 255),
    "most": lambda a: last(a, np.iinfo(a.dtype).max if a.dtype.kind in "iu" else 1e300),
    "one more": lambda a: last(a, a.reshape(-1)[-1] + 1),
    "zero": lambda a: last(a, 0 if a.reshape(-1)[-1] else 1),
    "another type": lambda a: a.astype("<f8" if a.dtype.kind != "f" else "<i4"),
    "another shape": lambda a: a[None, :] if a.ndim == 1 else a.reshape(-1),
    "nan": lambda a: last(a.astype("<f8"), float("nan")),
    "inf": lambda a: last(a.astype("<f8"), float("inf")),
}
# What was learned may be something else; sums, and places of other values, may not.
FREE = {
    "terms/bytes": {"one more", "zero"}, "terms/documents": {"one more"},
    "terms/occurrences": {"absent", "reversed", "most", "one more", "zero"},
    "counts/classes": {"reversed", "zero"}, "counts/values": {"reversed", "most", "one more"},
    "weights": {"negative", "most", "one more", "zero"},
    "weights/values": {"reversed", "negative", "most", "one more"},
    "terms/total": {"most", "one more"},
    "optional/sample/classes": {"reversed", "one more", "zero"},
    "optional/sample/columns": {"one more", "zero"},
    "optional/sample/counts": {"absent", "reversed", "most", "one more"},
    "means": {"negative", "one more", "zero"}, "scatter": {"one more", "zero"},
    "rows/classes": {"reversed"}, "rows/values": {"negative", "most", "one more", "zero"},
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", MODELS)
def test_a_changed_array_is_refused_unless_it_may_have_been_learned(
    name, files, load_or_none
):
    accepted = {}
    for array, values in arrays_of(files[name]).items():
        for what, change in CHANGES.items():
            changed = change(values)
            if changed is not None and changed.shape == values.shape and (
                    changed.tobytes() == values.tobytes()):
                continue
            model = load_or_none(with_array(files[name], array, changed))
            if model is not None:
                assert scores(model)
                accepted.setdefault(array, set()).add(what)
    assert {array: changes for array, changes in accepted.items()
            if not changes <= FREE.get(array, set())} == {}


SHAPE = "is not of its type and shape"
NOT_ITS = "which is not one of its model"
# A file, an array, its change, and words of the error.
DAMAGED = [
    *(("sample", "optional/sample/ends", change, "the ends of its sample do not ascend")
      for change in (at(0, -1), at(0, 2**31 - 1), at(-1, 0))),
    ("sample", "optional/sample/ends", lambda a: a[:-1], SHAPE),
    ("sample", "optional/sample/ends", lambda a: a[None, :], SHAPE),
    *(("sample", f"optional/sample/{name}", lambda a: a.astype(float), SHAPE)
      for name in ("ends", "classes", "columns", "counts")),
    ("sample", "optional/sample/classes", at(0, 2), "not of the model's classes"),
    ("sample", "optional/sample/classes", at(slice(None), 0), "not of the model's classes"),
    ("sample", "optional/sample/columns", at(0, -1), "holds no term of the model"),
    ("sample", "optional/sample/columns", at(-1, 2**31 - 1), "holds no term of the model"),
    ("sample", "optional/sample/columns", at(slice(None), 0), "do not ascend"),
    ("sample", "optional/sample/columns", lambda a: a[:-1], "do not ascend to their length|shape"),
    ("sample", "optional/sample/counts", at(0, 0), "a count of its sample is not above 0"),
    ("sample", "optional/sample/counts", at(0, -1), "a count of its sample is not above 0"),
    ("sample", "optional/sample/counts", lambda a: a + np.int64(2**31),
     "a count of its sample is not above 0"),
    ("few weights", "weights/ends", lambda a: a[::-1].copy(), "the ends of its weights do not"),
    ("few weights", "weights/ends", lambda a: a + 1, "the ends of its weights do not ascend"),
    ("few weights", "weights/ends", at(slice(0, 9), 9), "are not sorted"),
    ("few weights", "weights/classes", at(0, 3), "one of its weights is of no class"),
    ("few weights", "weights/values", lambda a: a[:-1], SHAPE),
    ("few weights", "weights/values", lambda a: np.ones((1, len(a))), SHAPE),
    ("few weights", "weights/values", at(0, np.nan), "a weight is not finite"),
    ("few weights", "weights/values", at(0, 0.0), "a weight that is stored is 0"),
    ("sample", "counts/values", at(0, 99), "a term is in more documents than there are"),
    ("weights", "weights", at(0, np.inf), "a weight is not finite"),
    ("weights", "weights", np.transpose, SHAPE),
    ("weights", "weights/ends", lambda _: np.arange(9, dtype="<i4"), NOT_ITS),
    ("few weights", "totals/counts", lambda _: np.zeros(3, "<i8"), NOT_ITS),
    ("multinomial", "terms/total", lambda _: np.zeros(9, "<i4"), NOT_ITS),
    ("multinomial", "notes", lambda _: np.arange(5), "it has an array 'notes', which is not known"),
]


@pytest.mark.parametrize(("name", "array", "change", "words"), DAMAGED)
def test_what_is_wrong_with_an_array_is_said(name, array, change, words, files, assert_refused):
    values = arrays_of(files[name]).get(array)
    assert_refused(with_array(files[name], array, change(values)), words)


@pytest.mark.parametrize(("name", "count", "words"), [
    # Of a Bernoulli model: 1 - p would be below 0.
    *(("bernoulli", count, "sound") for count in (4, 1000, 2**62, 2**63 - 1)),
    *((name, count, "counts are too large to add") for name in ("multinomial", "complement")
      for count in (2**62, 2**63 - 1))])
def test_counts_that_documents_can_not_have_are_refused(name, count, words, files, assert_refused):
    """Each count is replaced, and sums of them are right where they fit."""
    classes = arrays_of(files[name])["counts/classes"]
    content = with_array(files[name], "counts/values", np.full(classes.shape, count))
    assert_refused(with_array(content, "totals/counts", count * np.bincount(classes)), words)


def test_an_array_that_is_optional_may_be_left_unread(files, load):
    for name in ("multinomial", "gaussian"):
        content = with_array(files[name], "optional/notes", np.arange(5))
        assert scores(load(content)) == scores(load(files[name]))


@pytest.mark.parametrize("terms", [
    [b"aa", b"bb", b"bb", b"cc"], [b"bb", b"aa", b"cc", b"dd"], [b"aa", b"cc", b"bb", b"dd"],
    [b"aa", b"b\xff", b"cc", b"dd"], [b"aa", b"\xc3", b"\xa9a", b"zz"],
    [b"aa", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xf4\x90\x80\x80"], [b"", b"", b"a", b"b"]],
    ids=str)
def test_terms_that_are_not_sorted_strings_are_refused(terms, assert_refused, tmp_path):
    path = tmp_path / "four"
    TextClassifier().fit(["aa bb", "cc dd"], ["x", "y"]).save(path)
    whole = np.frombuffer(b"".join(terms), np.uint8)
    ends = np.array([*accumulate(map(len, terms))], "<i4")
    content = path.read_bytes()
    for name, array in (("terms/bytes", whole), ("terms/ends", ends),
                        ("index/bytes", whole[:len(terms[0])]), ("index/ends", ends[:1])):
        content = with_array(content, name, array)
    assert_refused(content)


def test_a_file_is_rebuilt_byte_by_byte(files):
    """So that what other tests change is all that differs."""
    for content in files.values():
        assert built(members_of(content)) == content == signed(content)
