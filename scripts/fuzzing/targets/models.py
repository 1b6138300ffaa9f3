"""Model files and bundles, with right checksums: refused, or the same model for every reader."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl

import textnb
from fuzzing.harness import Finding, make_folder, one_in
from fuzzing.mutations import NUMBERS, change, change_value
from tests.storage.conftest import FRAME, MODELS, many_classes
from tests.storage.members import built, signed
from textnb.errors import ModelFileError, ParameterError, SourceError, TextnbError
from textnb.export.verify import Verified
from textnb.files.blocks import DIGESTS, DOCUMENT, array_header
from textnb.files.require import Unsupported
from textnb.filter.mailfilter import MailFilter
from textnb.filter.quick import QuickFilter
from textnb.learning.fitting import learn_more
from textnb.storage.add_document import ModelToExtend
from textnb.storage.document import EXACT_LIMIT
from textnb.storage.layout import DOCUMENT_KEYS, INDEX_STEP, OPTIONAL_PREFIX, TYPES
from textnb.storage.terms_reader import TermsReader
from textnb.storage.textmodel import load_fitted, save_fitted
from textnb.storage.version2 import stated_checksum

WITHIN = ["textnb.storage", "textnb.files", "textnb.filter", "textnb.export.archive",
          "textnb.export.verify", "textnb.learning", "textnb.models", "textnb.bayes"]
ABOUT = "model files and bundles whose values were changed, with right checksums"
LONGEST = 150_000
_SUMS = "SHA256SUMS"
_TEXTS = ["free money lunch offer free", "", "hello friend c1w1 c0w0 at the meeting"]
_MAX_BYTES = 1 << 28
_ESCAPES = ["\\ud800", "\\uD800", "\\uDBFF\\udc00", "\\u0041", "\\n"]


_folder = cache(make_folder)


# Of its own for the temporary files of the package.
_temporary_folder = cache(make_folder)


def seeds() -> list[bytes]:
    path, bundle, found = _folder() / "seed.textnb", _folder() / "seed.zip", []
    for fit in MODELS.values():
        model: Any = fit()
        model.save(path)
        found.append(path.read_bytes())
    without_spam = FRAME.with_columns(pl.col("label").replace("spam", "ad"))
    for fitted in (
            textnb.TextClassifier(textnb.BernoulliNB()).fit(FRAME),
            textnb.TextClassifier(textnb.MultinomialNB(l="auto")).fit(without_spam),
            textnb.TextClassifier(textnb.NBLinear(idf=False)).fit(FRAME).partial_fit(FRAME),
            # A sample that may become larger, and more terms than one entry of the index is for.
            textnb.TextClassifier(textnb.NBLinear(idf=False)).fit(FRAME, keep_sample=9),
            textnb.TextClassifier().fit(many_classes(3)),
            # The last terms are in another block than the first ones.
            textnb.TextClassifier().fit(FRAME.with_columns(
                text=pl.col("text") + " " + pl.lit(" ".join(f"{n:060}" for n in range(1400)))))):
        fitted.save(path)
        found.append(path.read_bytes())
    model = textnb.TextClassifier(textnb.ComplementNB()).fit(FRAME)
    model.set_calibration(textnb.Calibration(2.0, 0.5, 10, "held-out rows"))
    model.set_decision(textnb.Decision({"spam": 1.0, "ham": -1.0}, "spam", {})).save(path)
    found.append(path.read_bytes())
    textnb.export_model(model, bundle, "json")
    # What was chosen before is stale after it.
    model.partial_fit(FRAME).save(path)
    return [*found, path.read_bytes(), *[bundle.read_bytes()] * 4]


def mutate(data: bytes, random: Random) -> bytes:
    if random.random() < 0.05:
        changed = change(data, random)
        return bytes(signed(changed)) if random.random() < 0.7 else changed
    if random.random() < 0.02:
        # Checksums are at the end.
        return data[:-200] + change(data[-200:], random)
    try:
        return (_mutate_bundle if _SUMS.encode() in data else _mutate_model)(data, random)
    except (Exception, pl.exceptions.PanicException):
        # It was changed so that it can't be taken apart any more, by errors of many types.
        return change(data, random)


def _mutate_model(data: bytes, random: Random) -> bytes:
    members = _members(data)
    document = json.loads(members[DOCUMENT])
    if "since_fit" in document and random.random() < 0.1:
        document["since_fit"] = {name: random.choice([-1, 0, 1])
                                 for name in ("learned", "forgotten")}
    elif random.random() < 0.75:
        _change_slightly(document, members, random)
    elif random.random() < 0.55:
        document = change_value(document, random)
    else:
        name = random.choice([*document["arrays"]])
        entry, member = document["arrays"][name], f"{name}.npy"
        kind, shape = entry["type"], entry["shape"]
        array = _changed_array(_array(document, members, name), random)
        if random.random() < 0.9:
            document["arrays"][name] = {"type": array.dtype.str, "shape": [*array.shape]}
        if random.random() < 0.9:
            kind, shape = array.dtype.str, [*array.shape]
        members[member] = array_header(kind, shape) + array.tobytes()
        if random.random() < 0.03:
            del members[member], document["arrays"][name]
        elif random.random() < 0.03:
            members[f"{name}x.npy"] = members[member]
            document["arrays"][f"{name}x"] = document["arrays"][name]
    # JSON has no infinity, and readers make it of large numbers.
    text = json.dumps(document).replace("Infinity", "1e999")
    if random.random() < 0.05:
        # Other ways to write characters, at the end of a string before the types of arrays.
        ends = [end.start() for end in re.finditer(
            r'(?<=\w)"(?=[,}\]])', text.partition('"arrays"')[0])]
        if ends:
            at = random.choice(ends)
            text = text[:at] + random.choice(_ESCAPES) + text[at:]
    members[DOCUMENT] = text.encode()
    if random.random() < 0.05:
        name = random.choice([*members])
        members[name] = change(members[name], random)
    return bytes(built(members))


def _change_slightly(
    document: dict[str, Any], members: dict[str, bytes], random: Random
) -> None:
    """Change a value so that most files are still of a model, which every reader then reads."""
    if "totals/counts" in document["arrays"] and random.random() < 0.03:
        # Sums of all counts may be too large, even for 64 bits.
        values = np.full_like(_array(document, members, "counts/values"), random.choice(
            [2**31, 2**53, 2**61, 2**62, 2**63 - 1]), dtype="<i8")
        classes = _array(document, members, "counts/classes")
        with np.errstate(invalid="ignore"):
            sums = np.bincount(classes, values, len(document["classes"]["labels"])).astype("<i8")
        _put(document, members, "counts/values", values)
        _put(document, members, "totals/counts", sums)
        return
    names = [name for name, entry in document["arrays"].items() if 0 not in entry["shape"]
             and not re.match(r"terms/(bytes|documents|kept)|index/|totals/|.*/ends", name)]
    if names and random.random() < 0.5:
        name = random.choice(names)
        array = _array(document, members, name).copy()
        if array.dtype == np.int32 and random.random() < 0.2:
            # The numbers at which 32 bits are too few.
            array = array.astype("<i8")
            array.reshape(-1)[random.randrange(array.size)] = 2**31 - random.randrange(2)
        flat = array.reshape(-1)
        at, other = random.randrange(len(flat)), random.randrange(len(flat))
        if random.random() < 0.5:
            flat[[at, other]] = flat[[other, at]]
        else:
            flat[at] = flat[at] + 1 if flat.dtype.kind in "iu" else random.choice(
                [flat[at] * 1.25] * 4 + [float("nan")])
        _put(document, members, name, array)
        return
    of_model = {name: value for name, value in document.items()
                if name not in ("arrays", "layers", "version")}
    holder, key = random.choice([*_places(of_model)])
    value = holder[key]
    holder[key] = (random.choice(holder) if isinstance(value, str) else
                   not value if isinstance(value, bool) else
                   random.choice([value + 1, value * 2, max(0, value - 1)]))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """The places of all numbers in a JSON value, and of texts in lists."""
    for key, each in (value.items() if isinstance(value, dict) else
                      enumerate(value) if isinstance(value, list) else ()):
        if isinstance(each, int | float) or (isinstance(each, str) and isinstance(value, list)):
            yield value, key
        yield from _places(each)


def _array(document: dict[str, Any], members: dict[str, bytes], name: str) -> Any:
    kind, shape = document["arrays"][name]["type"], document["arrays"][name]["shape"]
    content = members[f"{name}.npy"][len(array_header(kind, shape)):]
    return np.frombuffer(content, kind).reshape(shape)


def _put(document: dict[str, Any], members: dict[str, bytes], name: str, array: Any) -> None:
    document["arrays"][name] = {"type": array.dtype.str, "shape": [*array.shape]}
    members[f"{name}.npy"] = array_header(array.dtype.str, array.shape) + array.tobytes()


def _members(data: bytes) -> dict[str, bytes]:
    """The members of a model file, which are stored, without the digests."""
    members, at = {}, 0
    while data[at:at + 4] == b"PK\x03\x04":
        size, _, n_name, n_extra = struct.unpack_from("<IIHH", data, at + 18)
        start = at + 30 + n_name + n_extra
        members[data[at + 30:at + 30 + n_name].decode()] = data[start:start + size]
        at = start + size
    members.pop(DIGESTS, None)
    return members


def _changed_array(array: Any, random: Random) -> Any:
    flat = array.reshape(-1).copy()
    at = random.randrange(len(flat)) if len(flat) else 0
    if len(flat) and random.random() < 0.2:
        # What is numbered from 0 has its limit there.
        at = int(flat.argmax())
    match random.randrange(8):
        case 0 | 1 | 2 if len(flat):
            values = [*NUMBERS[:-1], flat[random.randrange(len(flat))], float("nan"), float("inf"),
                      0.5, -0.0]
            if np.isfinite(flat[at]):
                values += [int(flat[at]) + 1] * 9
            if flat.dtype.kind == "f":
                values += [float("nan"), float("inf"), -float("inf")] * 5
            with np.errstate(all="ignore"):
                flat[at] = np.array(random.choice(values)).astype(flat.dtype)
        case 3 if len(flat):
            flat = np.delete(flat, at)
        case 4 if len(flat):
            flat = np.insert(flat, at, flat[at])
        case 5 if len(flat):
            other = random.randrange(len(flat))
            flat[[at, other]] = flat[[other, at]]
        case 6:
            with np.errstate(all="ignore"):
                flat = flat.astype(random.choice([*TYPES]))
        case _:
            return array.reshape(random.choice([(-1,), (1, -1), (-1, 1)]))
    rows = array.shape[0]
    return flat if array.ndim == 1 or not rows or len(flat) % rows else flat.reshape(rows, -1)


def _mutate_bundle(data: bytes, random: Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if name != _SUMS}
    name = random.choice([name for name in members if name != "README.md"])
    if name.endswith(".json") and random.random() < 0.9:
        members[name] = json.dumps(change_value(json.loads(members[name]), random)).encode()
    elif name.endswith(".parquet") and random.random() < 0.5:
        table = pl.read_parquet(io.BytesIO(members[name]))
        column = random.choice(table.columns)
        values = table[column].to_list()
        if random.random() < 0.5:
            # Most of these are still values that a bundle may have.
            at, other = random.choices(range(len(values)), k=2)
            values[at], values[other] = values[other], values[at]
        else:
            values = change_value(values, random)
        changed = pl.Series(column, values, strict=False)
        buffer = io.BytesIO()
        (table.with_columns(changed) if len(changed) == len(table) else table.drop(column)
         ).write_parquet(buffer)
        members[name] = buffer.getvalue()
    else:
        members[name] = change(members[name], random)
    if random.random() < 0.05:
        del members[name]
    elif random.random() < 0.05:
        members[name + random.choice(["x", "\x1b[1m", "\u202e"])] = members.pop(name)
    elif random.random() < 0.05:
        members[random.choice(["../", "a/", "a/../../"]) + name] = members[name]
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n"
                   for name, content in members.items())
    if random.random() < 0.1:
        # With the checksums of before, it is to be refused.
        name = random.choice([*members])
        members[name] = change(members[name], random)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in {**members, _SUMS: sums.encode()}.items():
            # Without compression, it would be longer than an input may be, and be cut.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 1)
    return buffer.getvalue()


def check(data: bytes) -> None:
    # Made first, so as not to be within the other one.
    _folder()
    others, tempfile.tempdir = tempfile.tempdir, str(_temporary_folder())
    before = len(os.listdir("/proc/self/fd"))
    try:
        _check(data)
    finally:
        tempfile.tempdir = others
    # (After a finding, its trace holds the readers.)
    if (after := len(os.listdir("/proc/self/fd"))) > before:
        raise Finding("a file stays open", after - before)
    if left := os.listdir(_temporary_folder()):
        raise Finding("files are left of a bundle", left)


def _check(data: bytes) -> None:
    random = Random(zlib.crc32(data))
    if _SUMS.encode() in data:
        _check_bundle(data)
        return
    path = _folder() / "model.textnb"
    path.write_bytes(data)
    model = _answer_or_refusal(lambda: textnb.load(path, max_bytes=_MAX_BYTES))
    checksum = _answer_or_refusal(lambda: stated_checksum(path))
    if model is None:
        _answer_or_refusal(lambda: QuickFilter(str(path), min_learned=0).close())
        return
    if checksum is None:
        raise Finding("a model that is loaded states no checksum")
    if signed(data) != data:
        raise Finding("a model with a wrong checksum is loaded")
    labels = model.classes_.tolist()
    if labels != sorted(set(labels)):
        raise Finding("classes are not sorted, or come twice", labels)
    repr(model)
    _check_codes(data, len(labels))
    if one_in(8, random):
        _check_archive(data)
    if isinstance(model, textnb.TableClassifier):
        rows: Any = pl.DataFrame({name: [0.5, 7.0] for name in model.features_})
    else:
        rows = _rows(model.fitted_.settings)
        if model.fitted_.counts is not None and sum(
                model.fitted_.counts.values.tolist()) >= EXACT_LIMIT:
            raise Finding("counts are too large to add", model.fitted_.counts.values)
        if one_in(2, random):
            try:
                _check_readers(model, path, random)
            except TextnbError as error:
                raise Finding("a reader refuses what is loaded", error) from error
    try:
        answers = model.predict_joint_log_proba(rows)
    except TextnbError:
        return
    if one_in(6, random):
        try:
            _check_saved(model, rows, answers, data)
            if isinstance(model, textnb.TextClassifier) and one_in(4, random):
                _check_exported(model)
        except TextnbError as error:
            raise Finding("a model that was loaded can't be saved and loaded", error) from error


def _rows(settings: Any) -> pl.DataFrame:
    lists = settings.tokenizer.token_columns
    return pl.DataFrame({name: [text.split() for text in _TEXTS] if lists is True or (
        lists and name in lists) else _TEXTS for name in settings.columns})


def _check_codes(data: bytes, n_classes: int) -> None:
    """Documents are counted from 0; the classes of counts, weights and rows are of the model.

    No string is half a character, or this is an error that no reader raises.
    """
    members = _members(data)
    document = json.loads(members[DOCUMENT])
    json.dumps(document, ensure_ascii=False).encode()
    numbers = [*document["classes"]["documents"], *(document.get("since_fit") or {}).values()]
    if min(numbers) < 0:
        raise Finding("a model that is loaded has a count below 0", numbers)
    for name in document["arrays"]:
        if name.endswith("/classes"):
            codes = _array(document, members, name)
            if len(codes) and not 0 <= codes.min() <= codes.max() < n_classes:
                raise Finding("a model that is loaded has a code of no class", name)


def _check_archive(data: bytes) -> None:
    """Other programs read the file: it is a ZIP of arrays."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if (name := archive.testzip()) is not None:
            raise Finding("a member has a wrong CRC-32", name)
    with np.load(io.BytesIO(data)) as arrays:
        for name, entry in json.loads(_members(data)[DOCUMENT])["arrays"].items():
            if (arrays[name].dtype.str, [*arrays[name].shape]) != (entry["type"], entry["shape"]):
                raise Finding("an array is not of its declared type and shape", name)


def _answer_or_refusal(call: Any) -> Any:
    """What a call gives; None if it refuses its file by one readable line."""
    try:
        return call()
    except (ModelFileError, SourceError) as error:
        if len(str(error)) > 2000 or not str(error).isprintable():
            raise Finding("a refusal is no readable line", repr(str(error))) from error
    except (Unsupported, ParameterError):
        # Of a model that is no filter of mail.
        pass
    return None


def _check_readers(model: textnb.TextClassifier, path: Path, random: Random) -> None:
    """The reader of single terms and that of one document do as the whole model does."""
    fitted, form = model.fitted_, model.linear_form()
    if not fitted.terms.is_sorted() or fitted.terms.n_unique() < len(fitted.terms):
        raise Finding("terms are not sorted, or come twice", fitted.terms)
    try:
        with TermsReader(path) as reader:
            terms = fitted.terms.to_list()
            own = dict(zip(terms, np.asarray(form.weights), strict=True))
            # Also the first and the last terms between two entries of the index.
            wanted = {*random.sample(terms, min(len(terms), 20)), *terms[::INDEX_STEP],
                      *terms[INDEX_STEP - 1::INDEX_STEP]}
            # The last one first, so that a reader goes back.
            last = reader.weights(terms[-1:])
            weights = reader.weights([*wanted, "", "absent from all", "\U0010ffff"])
            intercept = reader.intercept
    except Unsupported:
        return
    if sorted(weights) != sorted(wanted | ({"", "absent from all", "\U0010ffff"} & {*terms})):
        raise Finding("the reader of terms has other terms", f"{sorted(weights)} of {wanted}")
    pairs = [*((weights[term], own[term]) for term in weights), (intercept, form.intercept),
             *((last[term], own[term]) for term in last)]
    if not all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in pairs):
        raise Finding("the reader of terms has other weights", pairs)
    try:
        with QuickFilter(str(path), min_learned=0) as quick:
            whole = MailFilter.of_model(str(path), fitted, min_learned=0)
            for text in (*fitted.terms[-1:], _TEXTS[0]):
                message = b"Subject: hello\n\n" + text.encode()
                verdict, other = quick.judge(message), whole.judge(message)
    except (Unsupported, ParameterError):
        pass
    else:
        if verdict.status != other.status or not np.isclose(
                verdict.log_odds, other.log_odds, rtol=1e-9, atol=1e-9):
            raise Finding("the filters differ", f"{verdict} and {other}")
    if one_in(3, random) or fitted.sample is not None:
        _check_learning(fitted, path, random)


def _check_learning(fitted: Any, path: Path, random: Random) -> None:
    """One document that is learned by the quick way gives the file of the other way."""
    quick, slow = path.with_suffix(".quick"), path.with_suffix(".slow")
    is_quick = True
    row = _rows(fitted.settings)[random.randrange(len(_TEXTS))]
    label = random.choice(fitted.classes.tolist())
    try:
        ModelToExtend(path).add(row.row(0, named=True), label, quick)
    except Unsupported:
        is_quick = False
    try:
        save_fitted(learn_more(fitted, fitted.settings, row.with_columns(
            pl.Series(fitted.settings.label, [label]))), slow)
    except TextnbError:
        # Of a model that learns from all documents at once.
        if not is_quick:
            return
        raise
    if is_quick and quick.read_bytes() != slow.read_bytes():
        # The quick way keeps the order of keys that no release writes.
        save_fitted(load_fitted(quick), quick)
        if quick.read_bytes() != slow.read_bytes():
            raise Finding("a document is learned otherwise", path)


def _check_saved(model: Any, rows: pl.DataFrame, answers: Any, data: bytes) -> None:
    """A model that is saved has all that was loaded, and is the same when it is loaded again."""
    path, other = _folder() / "saved.textnb", _folder() / "again.textnb"
    model.save(path)
    if lost := [*_lost(data, path.read_bytes())]:
        raise Finding("a model that was loaded is saved without something", lost)
    names: tuple[str, ...] = ()
    if isinstance(model, textnb.TextClassifier):
        names = ("calibration", "decision", "since_fit", "pruned", "chosen_l")
        calibration = textnb.Calibration(2.0, 0.5, 10, "held-out rows")
        # A model of lists of labels refuses it.
        with suppress(ParameterError):
            model.set_calibration(calibration)
    model.save(path)
    again = textnb.load(path)
    for name in names:
        one, two = (getattr(each.fitted_, name) for each in (model, again))
        if repr(one) != repr(two):
            raise Finding(f"a saved model has another {name}", f"{one} and {two}")
    if not np.array_equal(again.predict_joint_log_proba(rows), answers, equal_nan=True):
        raise Finding("a saved model answers otherwise")
    again.save(other)
    if other.read_bytes() != path.read_bytes():
        raise Finding("a saved model has other bytes when it is saved again")


def _check_exported(model: Any) -> None:
    """A bundle has the weights of its model, to the last bit."""
    path = _folder() / "exported.zip"
    try:
        textnb.export_model(model, path, "json")
    except TextnbError:
        # Some models have no linear form, and some numbers no place in a bundle.
        return
    form = model.linear_form()
    with zipfile.ZipFile(path) as archive:
        weights = pl.read_parquet(io.BytesIO(archive.read("weights.parquet")))
    own, told = dict(zip(form.terms, form.weights.tolist(), strict=True)), {
        term: [*row] for term, *row in weights.drop("words", strict=False).iter_rows()}
    if own != told:
        raise Finding("a bundle has other weights", f"{told} for {own}")


def _lost(data: bytes, saved: bytes) -> Iterator[str]:
    """What a model file has and the file of the model that was loaded from it lacks."""
    (one, members), (two, others) = ((json.loads(each[DOCUMENT]), each) for each in (
        _members(data), _members(saved)))
    for name in one["arrays"]:
        if name not in two["arrays"]:
            # Readers ignore optional ones that they do not know.
            if not name.startswith(OPTIONAL_PREFIX):
                yield name
        else:
            array, again = _array(one, members, name), _array(two, others, name)
            # Sums of logarithms follow from counts, and may have other last bits in a file.
            if not (np.array_equal(array, again, equal_nan=True) or (
                    name.startswith("totals/") and np.allclose(array, again, rtol=1e-11, atol=0))):
                yield name
    # Readers ignore other keys, and those of what was pruned that they do not know.
    compared = DOCUMENT_KEYS - {"textnb", "arrays", "pruned"}
    places: list[tuple[tuple[str, ...], Any, Any]] = [
        ((name,), one[name], two.get(name)) for name in compared & one.keys()]
    while places:
        key, value, other = places.pop()
        if isinstance(value, dict):
            places += [((*key, name), each, other.get(name) if isinstance(other, dict) else other)
                       for name, each in value.items()]
        # A key that is missing is the default. Some models have nothing learned beside arrays,
        # however that is written.
        elif value != other and value is not None and key[:2] != ("estimator", "learned"):
            yield f"{key}: {value!r} is {other!r}"


def _check_bundle(data: bytes) -> None:
    path = _folder() / "bundle.zip"
    path.write_bytes(data)
    try:
        verified = textnb.verify_export(path, max_bytes=_MAX_BYTES)
        repr(verified)
        with zipfile.ZipFile(path) as archive:
            _check_golden(verified, archive)
            for line in archive.read(_SUMS).decode().splitlines():
                digest, _, name = line.partition("  ")
                if hashlib.sha256(archive.read(name)).hexdigest() != digest:
                    raise Finding("a bundle with a wrong checksum is read", name)
    except (ModelFileError, SourceError, textnb.ExportError) as error:
        if not str(error).isprintable():
            raise Finding("a refusal is no readable line", repr(str(error))) from error


def _check_golden(verified: Verified, archive: zipfile.ZipFile) -> None:
    """The golden rows of a bundle have the scores that its weights and its file add up to."""
    golden, weights = (pl.read_parquet(io.BytesIO(archive.read(f"{name}.parquet")))
                       for name in ("golden", "weights"))
    form, export = (json.loads(archive.read(f"{name}.json")) for name in ("form", "model"))
    if any(each.get(name) is not None for each in (form, export) for name in ("above", "positive")):
        return
    of_term, of_file = ({row[0]: row[1:] for row in weights.rows()},
                        dict(zip(export["terms"], export["weights"], strict=True)))
    for tokens, scores, label in golden.select("tokens", "scores", "label").iter_rows():
        # A file that does not pass may have anything for a number.
        own, *engines = ([b + math.fsum(weight[k] for token in tokens or ()
                                        if (weight := table.get(token)))
                          for k, b in enumerate(each["intercept"])]
                         for table, each in ((of_term, form), (of_file, export))
                         if each is form or verified.passed)
        size = 1 + max(map(abs, [*own, *form["intercept"]]))
        if not np.allclose(own, scores, rtol=0, atol=3e-6 * size):
            raise Finding("golden rows have other scores than weights", f"{own} and {scores}")
        if not all(np.allclose(each, scores, rtol=0, atol=3e-6 * size) for each in engines):
            raise Finding("a file passes that gives other scores", f"{engines} and {scores}")
        best, second = sorted(own)[-1:-3:-1]
        if label is not None and best - second > 3e-6 * size and (
                form["classes"]["labels"][int(np.argmax(own))] != label):
            raise Finding("golden rows have another label", f"{own} and {label}")
