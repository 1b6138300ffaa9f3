"""Model files: there and back, and hostile ones whose checksums are right."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.storage.conftest import FRAME
from tests.storage.members import (
    arrays_of,
    built,
    document_of,
    members_of,
    signed,
    with_array,
    with_value,
)
from tests.storage.test_weights import SPARSE, some_texts
from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MailFilter,
    ModelFileError,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    PlugInBayes,
    SourceError,
    TableClassifier,
    TextClassifier,
    Tokenizer,
)

REFUSED = (ModelFileError, SourceError)
MUTATIONS = examples(210)
NUMBERS = pl.DataFrame({"x": np.arange(12.0), "y": np.arange(12.0) ** 2 % 7,
                        "label": ["a", "b", "c"] * 4})
MODELS: dict[str, Callable[[], Any]] = {
    "multinomial": lambda: TextClassifier(min_df=2).fit(FRAME),
    "bernoulli": lambda: TextClassifier(
        BernoulliNB(l=0.5), tokenizer=Tokenizer(ngram_range=(1, 2))).fit(FRAME),
    "complement": lambda: TextClassifier(
        ComplementNB(norm=True), max_features=6, binary=True).fit(FRAME),
    "linear": lambda: TextClassifier(NBLogisticRegression()).fit(FRAME),
    "few weights": lambda: TextClassifier(NBLinear()).fit(some_texts(3)),
    "weighted": lambda: TextClassifier(MultinomialNB(class_weight="balanced")).fit(
        FRAME, sample_weight=np.arange(1.0, 6.0)),
    "gaussian": lambda: TableClassifier(GaussianNB()).fit(NUMBERS),
    "lda": lambda: TableClassifier(LinearDiscriminantAnalysis()).fit(NUMBERS),
    "plugin": lambda: TableClassifier(PlugInBayes()).fit(NUMBERS),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("version2")
    for name, fit in MODELS.items():
        fit().save(folder / name)
    return {name: (folder / name).read_bytes() for name in MODELS}


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Any]:
    def from_bytes(content: bytes, **settings: int) -> Any:
        path = tmp_path / "given.textnb"
        path.write_bytes(content)
        return textnb.load(path, **settings)

    return from_bytes


def scores(model: Any) -> bytes:
    """Every score of some rows, to the bit."""
    if isinstance(model, TableClassifier):
        return model.predict_joint_log_proba(NUMBERS).tobytes()
    form = model.linear_form()
    return b"".join([form.weights.tobytes(), form.intercept.tobytes(),
                     "\n".join(model.vocabulary_).encode()])


def refused_or(read: Callable[[], Any]) -> Any:
    """What is read; None where the file is refused, in one line."""
    try:
        return read()
    except REFUSED as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert len(refusal) < 2000
    return None


def refused(load: Callable[..., Any], content: bytes, match: str = "is not a sound") -> None:
    with pytest.raises(ModelFileError, match=match) as caught:
        load(content)
    assert len(str(caught.value)) < 2000
    assert str(caught.value).isprintable()


# What is read


@pytest.mark.parametrize("name", MODELS)
def test_it_comes_back_to_the_bit(
    name: str, files: dict[str, bytes], load: Callable[..., Any], tmp_path: Path
) -> None:
    model = load(files[name])
    assert scores(model) == scores(MODELS[name]())
    model.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == files[name]
    assert built(members_of(files[name])) == files[name] == signed(files[name])


# What a reader must know


def test_a_later_version_says_upgrade(load: Callable[..., Any], files: dict[str, bytes]) -> None:
    content = files["multinomial"]
    later = content.replace(b"textnb-model 2 sha256:", b"textnb-model 3 sha256:")
    refused(load, later, "has format version 3; this textnb reads up to 2. Upgrade with")
    refused(load, with_value(content, ("version",), 3), "has format version 3")
    refused(load, with_value(content, ("version",), 1), "is not of version 2")


def test_a_feature_that_is_not_known_is_refused(
    load: Callable[..., Any], files: dict[str, bytes]
) -> None:
    refused(load, with_value(files["linear"], ("requires",), ["buckets", "ages"]),
            "was written by a newer textnb: it has the feature 'ages', the feature "
            "'buckets', which this one does not know. Upgrade")
    for value in (None, "x", [1], {}, ...):
        refused(load, with_value(files["linear"], ("requires",), value))
    for layers in (0, 2, True, 1.0, None, "1", ...):
        refused(load, with_value(files["bernoulli"], ("layers",), layers))


def test_a_model_that_counts_by_periods_is_refused(
    load: Callable[..., Any], files: dict[str, bytes], tmp_path: Path
) -> None:
    # An earlier state of 0.2 wrote them.
    content = with_value(files["multinomial"], ("settings", "period"), "month")
    refused(load, content, r"counts by periods of time, .* Train the model again, without them$")
    with pytest.raises(ModelFileError, match="counts by periods"):
        MailFilter.load(tmp_path / "given.textnb")


def test_what_is_optional_may_be_left_unread(
    load: Callable[..., Any], files: dict[str, bytes]
) -> None:
    for name in ("multinomial", "gaussian"):
        content = with_array(files[name], "optional/notes", np.arange(5))
        assert scores(load(content)) == scores(load(files[name]))
        refused(load, with_array(files[name], "notes", np.arange(5)), "it has no array 'notes'")


# Values that are wrong, under right checksums


def last(array: np.ndarray[Any, Any], value: float) -> np.ndarray[Any, Any]:
    changed = array.copy()
    changed.reshape(-1)[-1] = value
    return changed


CHANGES: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
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
ARRAYS = [(model, name) for model, names in {
    "multinomial": ("index/bytes", "index/ends", "totals/counts", "terms/bytes", "terms/ends",
                    "terms/documents", "terms/kept", "counts/ends", "counts/classes",
                    "counts/values"),
    "bernoulli": ("totals/absent", "totals/counts", "counts/values"),
    "complement": ("totals/norms", "terms/kept"),
    "linear": ("weights", "terms/ends"), "weighted": ("counts/values",),
    "few weights": ("weights/ends", "weights/classes", "weights/values"),
    "gaussian": ("means", "scatter"), "lda": ("means", "scatter"),
    "plugin": ("rows/classes", "rows/values")}.items() for name in names]


@pytest.mark.parametrize(("model", "name"), ARRAYS, ids=str)
def test_no_change_of_an_array_gives_another_answer(
    model: str, name: str, load: Callable[..., Any], files: dict[str, bytes]
) -> None:
    """Refused, but where it says the same, or where it is what was learned."""
    content = files[model]
    array = arrays_of(content)[name]
    refused(load, with_array(content, name, None))
    # Counts, weights and moments may be others; sums and places may not.
    free = ("counts/values", "weights", *SPARSE, "means", "scatter", "rows/classes", "rows/values",
            "terms/bytes", "terms/documents", "counts/classes")
    outcomes = {}
    for what, change in CHANGES.items():
        changed = change(array)
        if changed.tobytes() == array.tobytes() and changed.shape == array.shape:
            continue
        model = refused_or(partial(load, with_array(content, name, changed)))
        if model is not None:
            outcomes[what] = scores(model)
    for what in ("shorter", "longer", "none", "nan", "another shape", "inf"):
        assert what not in outcomes
    if name not in free:
        assert outcomes == {}


@pytest.mark.parametrize("terms", [
    ["aa", "bb", "bb", "cc"], ["bb", "aa", "cc", "dd"], ["aa", "cc", "bb", "dd"],
    [b"aa", b"b\xff", b"cc", b"dd"], [b"aa", b"\xc3", b"\xa9a", b"zz"],
    [b"aa", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xf4\x90\x80\x80"], ["", "", "a", "b"]],
    ids=str)
def test_terms_that_are_not_sorted_strings_are_refused(
    terms: list[Any], load: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "four"
    TextClassifier().fit(["aa bb", "cc dd"], ["x", "y"]).save(path)
    raw = [term if isinstance(term, bytes) else term.encode() for term in terms]
    whole = np.frombuffer(b"".join(raw), np.uint8)
    ends = np.cumsum([len(term) for term in raw]).astype("<i4")
    content = path.read_bytes()
    for name, array in (("terms/bytes", whole), ("terms/ends", ends),
                        ("index/bytes", whole[:len(raw[0])]), ("index/ends", ends[:1])):
        content = with_array(content, name, array)
    refused(load, content)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ["multinomial", "gaussian"])
def test_values_of_the_document(
    name: str, load: Callable[..., Any], files: dict[str, bytes]
) -> None:
    """Each value of the document in turn: a refusal, or a model that works."""
    values = (..., None, [], {}, 7, -1, 0.5, "x", True, 10**400, [None], [[1]])
    document = document_of(files[name])
    paths = [(key,) for key in document] + [
        (key, inner) for key, value in document.items() if isinstance(value, dict)
        for inner in value] + [("arrays", array, key) for array in document["arrays"]
                               for key in ("type", "shape")]
    for path in paths:
        for value in values:
            model = refused_or(partial(load, with_value(files[name], path, value)))
            assert model is None or scores(model)


def test_an_error_shows_no_control_characters(
    load: Callable[..., Any], files: dict[str, bytes]
) -> None:
    for path in (("estimator", "parameters", "\x1b[2J"), ("settings", "a\nb"), ("arrays", "\r")):
        refused(load, with_value(files["linear"], path, {"type": "<i4", "shape": [1]}),
                "is not a sound" if path[0] == "arrays" else "newer textnb")


@pytest.mark.parametrize("shape", [
    [2**61], [2**40, 2**40], [0], [-1], [10**30], [1.0], [True], ["1"], [], [1, 1, 1], None, 5])
def test_shapes_are_seen_before_memory_is_taken(
    shape: Any, load: Callable[..., Any], files: dict[str, bytes]
) -> None:
    content = with_value(files["multinomial"], ("arrays", "terms/ends", "shape"), shape)
    refused(load, content, "no known type and shape|not of its size")


def test_many_classes_of_few_terms_are_not_spread_out(
    load: Callable[..., Any], files: dict[str, bytes]
) -> None:
    content = files["multinomial"]
    labels = [f"{n:06}" for n in range(200_000)]
    content = with_value(content, ("classes", "labels"), labels)
    content = with_value(content, ("classes", "documents"), [1] * 200_000)
    content = with_array(content, "totals/counts", np.zeros(200_000, "<i8"))
    with pytest.raises(ModelFileError):
        load(content, max_bytes=1 << 22)


def test_the_limit_is_what_is_asked_for(
    load: Callable[..., Any], files: dict[str, bytes]
) -> None:
    with pytest.raises(ModelFileError, match=r"load it with max_bytes=\d+"):
        load(files["multinomial"], max_bytes=1000)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The bytes with some changed, lost or added, and checksums made anew."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at, kind = rng.randrange(len(changed)), rng.random()
        if kind < 0.4:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            changed[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        elif kind < 0.8:
            number = rng.choice([-1, 2**31 - 1, 0, 1])
            changed[at:at + 4] = number.to_bytes(4, "little", signed=True)
        elif kind < 0.9:
            del changed[at:at + rng.randrange(1, 9)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(changed)


@pytest.mark.parametrize("name", MODELS)
def test_a_mutated_file_is_read_or_refused(
    name: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    """Members, whose checksums are all right; and the file as a whole."""
    rng, path = random.Random(name), tmp_path / "mutated.textnb"
    members = members_of(files[name])
    read = 0
    for number in range(max(2, MUTATIONS // len(MODELS))):
        if number % 3:
            member = rng.choice(list(members))
            path.write_bytes(built({**members, member: mutated(members[member], rng)}))
        else:
            path.write_bytes(signed(mutated(files[name], rng)))
        began = time.perf_counter()
        model = refused_or(partial(textnb.load, path))
        if model is not None:
            read += 1
            assert not np.isnan(np.frombuffer(scores(model)[:8 * 4])).any()
            # What is written again is read again.
            model.save(tmp_path / "again")
            assert scores(textnb.load(tmp_path / "again")) == scores(model)
        assert time.perf_counter() - began < 30
    assert read < max(2, MUTATIONS // len(MODELS)), "no mutation was seen"
