"""A bundle on disk: a folder, or the same folder as one ZIP archive, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.forms import LinearForm
from textnb.errors import (
    ExportError,
    ModelFileError,
    ParameterError,
    SourceError,
    first_line,
)
from textnb.export import golden
from textnb.export.bundle import Bundle
from textnb.files.parquet import ENGINE_ERRORS, decode, memory_needed
from textnb.files.replace import replacing, replacing_folder, writing
from textnb.text.tokens import Tokenizer

FORMAT, VERSION = "textnb-bundle", 1
FORM, WEIGHTS, GOLDEN, CHARACTERS, SUMS = (
    "form.json", "weights.parquet", "golden.parquet", "characters.json", "SHA256SUMS")
MAX_BYTES = 8 << 30
_KINDS = {"string": str, "integer": int, "boolean": bool}
_TIME = (1980, 1, 1, 0, 0, 0)


def write_tables(
    bundle: Bundle, folder: Path, target: str, pruned: Mapping[str, Any] | None = None
) -> None:
    """The bundle's own files, all but the target's and the checksums."""
    form = {
        "format": FORMAT, "version": VERSION, "textnb": version("textnb"),
        "target": target, "reads": bundle.reads,
        "classes": {"type": _type(bundle.labels), "labels": bundle.labels},
        "positive": bundle.positive,
        "intercept": bundle.intercept.tolist(),
        "above": bundle.above,
        "tokenizer": None if bundle.tokenizer is None else bundle.tokenizer.to_dict(),
        "columns": list(bundle.columns),
        "calibration": None if bundle.calibration is None else bundle.calibration.to_dict(),
        "decision": None if bundle.decision is None else plain(bundle.decision.to_dict()),
        "trained": plain(bundle.about or {}),
        "pruned": None if pruned is None else dict(pruned),
    }
    text = json.dumps(form, ensure_ascii=False, allow_nan=False, indent=1)
    (folder / FORM).write_text(text, "utf-8")
    weights_table(bundle).write_parquet(folder / WEIGHTS)
    golden.table(bundle).write_parquet(folder / GOLDEN)
    if bundle.reads == "text":
        try:
            words = bundle.words
        except ExportError:
            return  # a target that runs any tokenizer needs no table of characters
        lower = words.lower
        (folder / CHARACTERS).write_text(json.dumps({
            "members": words.members, "least": words.least, "stop_words": words.stop_words,
            "ngram_range": words.ngram_range,
            "lowercase": None if lower is None else {
                "mapping": lower.mapping, "cased": lower.cased, "ignorable": lower.ignorable},
        }, ensure_ascii=True), "utf-8")


def weights_table(bundle: Bundle) -> pl.DataFrame:
    """``weights.parquet``: ``term`` (or ``feature``), ``words`` of n-grams, and the weights."""
    first = "feature" if bundle.reads == "features" else "term"
    table = pl.DataFrame({first: pl.Series(bundle.terms, dtype=pl.String)})
    tokenizer = bundle.tokenizer
    if tokenizer is not None and tokenizer.analyzer == "word" and tokenizer.ngram_range[1] > 1:
        table = table.with_columns(pl.Series(
            "words", [tokenizer.split_terms(term) for term in bundle.terms],
            dtype=pl.List(pl.String)))
    names = ["w"] if bundle.positive is not None else [str(k) for k in range(len(bundle.labels))]
    return table.with_columns(
        [pl.Series(name, bundle.weights[:, k]) for k, name in enumerate(names)])


def seal(folder: Path) -> None:
    """Write the checksums, in the form that ``sha256sum --check`` reads."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
             for path in sorted(folder.iterdir()) if path.name != SUMS]
    (folder / SUMS).write_text("".join(lines), "utf-8")


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """A folder that takes the place of ``path`` once it is whole: a folder, or a ``.zip`` of it.

    Raises
    ------
    SourceError
        If something is there that is no bundle, or can't be written.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise SourceError.unwritable(path, f"there is no folder {str(target.parent)!r}")
    archived = path.suffix == ".zip"
    if target == Path.cwd():
        raise SourceError("can't write a bundle in place of the current folder; name a folder")
    if target.exists() and not (_is_archive(target) if archived else _is_folder(target)):
        raise SourceError.unwritable(
            path, "it is there and is no bundle; remove it or choose another path")
    if not archived:
        with replacing_folder(path) as folder:
            yield folder
        return
    with writing(path), tempfile.TemporaryDirectory(prefix="textnb-") as temporary:
        yield Path(temporary)
        with replacing(path) as file:
            _pack(Path(temporary), file)


@contextmanager
def opened(path: Path, max_bytes: int = MAX_BYTES) -> Iterator[Path]:
    """The folder of a bundle, checked byte by byte; an archive's is unpacked for the while.

    Raises
    ------
    ModelFileError
        If the bundle is truncated, changed, of a later version, or larger than ``max_bytes``.
    SourceError
        If there is none.
    """
    if not path.exists():
        raise SourceError(f"no such bundle: {str(path)!r}")
    if not path.is_dir() and not path.is_file():
        raise SourceError.unreadable(str(path), "it is a device or a pipe")
    with tempfile.TemporaryDirectory(prefix="textnb-") as temporary:
        folder = path
        if not path.is_dir():
            folder = Path(temporary)
            _unpack(path, folder, max_bytes)
        _check_sums(folder, str(path), max_bytes)
        yield folder


def read(folder: Path, name: str, max_bytes: int = MAX_BYTES) -> tuple[Bundle, dict[str, Any]]:
    """The bundle of an opened folder, and its ``form.json``.

    Raises
    ------
    ModelFileError
        If a value is missing, of another type, out of range or not finite.
    """
    try:
        form = json.loads((folder / FORM).read_text("utf-8"))
        if (form["format"] != FORMAT or type(form["version"]) is not int
                or form["version"] < 1):
            raise ModelFileError.damaged(name, f"{FORM} is not of format {FORMAT!r}", "bundle")
        if form["version"] > VERSION:
            raise ModelFileError.from_the_future(name, form["version"], VERSION)
        return _bundle(form, read_table(folder / WEIGHTS, name, max_bytes)), form
    except ModelFileError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError,
            ParameterError, ExportError, OSError, *ENGINE_ERRORS) as error:
        reason = first_line(error)[:300]
        raise ModelFileError.damaged(name, reason, "bundle") from error


def read_table(path: Path, name: str, max_bytes: int) -> pl.DataFrame:
    """A Parquet table whose unpacked size is within the limit."""
    content = path.read_bytes()
    needed = memory_needed(content)
    if needed > max_bytes:
        raise ModelFileError.too_large(name, needed, max_bytes)
    return decode(content)


def _bundle(form: Mapping[str, Any], table: pl.DataFrame) -> Bundle:
    kind, labels = form["classes"]["type"], form["classes"]["labels"]
    _require(all(type(label) is _KINDS[kind] for label in labels) and len(labels) > 0,
             "its labels are not of their type")
    _require(len(set(labels)) == len(labels), "its labels are not each once")
    _require(kind != "integer" or all(-2**63 <= label < 2**63 for label in labels),
             "a label is beyond 64 bits")
    positive, reads = form["positive"], form["reads"]
    _require(isinstance(form["target"], str), "its target is not a name")
    _require(all(type(value) in (int, float) for value in form["intercept"]),
             "its intercepts are not numbers")
    _require(reads in ("text", "terms", "features"), f"it reads {reads!r}")
    first = "feature" if reads == "features" else "term"
    names = [str(k) for k in range(len(labels))] if positive is None else ["w"]
    terms = table[first]
    _require(terms.dtype == pl.String and not terms.null_count() and terms.is_unique().all(),
             "its terms are not strings, each once")
    weights = np.column_stack([table[name].cast(pl.Float64, strict=True).to_numpy()
                               for name in names]).astype(np.float64)
    intercept = np.array(form["intercept"], dtype=np.float64)
    _require(intercept.shape == (len(names),), "its intercepts are not one per output")
    _require(bool(np.isfinite(weights).all() and np.isfinite(intercept).all()),
             "a weight is not finite")
    above, tokenizer = form["above"], form["tokenizer"]
    _require(above is None or (type(above) in (int, float) and 0 <= above < float("inf")),
             "above is no number")
    _require(reads == "features" or tokenizer is not None, "it has no tokenizer")
    if positive is not None:
        _require(len(labels) == 2 and positive in labels, "its positive class is not one of two")
        # The other class scores 0: the difference is w·x + b.
        k = labels.index(positive)
        weights = np.column_stack([weights[:, 0] * (k == j) for j in range(2)])
        intercept = np.array([intercept[0] * (k == j) for j in range(2)])
    columns = form["columns"]
    _require(isinstance(columns, list) and all(isinstance(name, str) for name in columns)
             and len(columns) > 0, "its columns are not names")
    classes: NDArray[Any] = np.array(labels, dtype=object if kind == "string" else _KINDS[kind])
    return Bundle(
        LinearForm(classes, weights, intercept, tuple(terms.to_list()), above), reads,
        None if tokenizer is None else Tokenizer.from_dict(tokenizer), tuple(columns), positive,
        form["trained"], *_choices(form))


def _choices(form: Mapping[str, Any]) -> tuple[Calibration | None, Decision | None]:
    """Where they were chosen: a bundle may lack them, or hold null."""
    calibration, decision = form.get("calibration"), form.get("decision")
    return (None if calibration is None else Calibration.from_dict(calibration),
            None if decision is None else Decision.from_dict(decision))


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(what)


def _type(labels: list[Any]) -> str:
    return next(name for name, kind in _KINDS.items() if type(labels[0]) is kind)


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _is_folder(target: Path) -> bool:
    """Whether a folder is empty, or a bundle and nothing else."""
    if not target.is_dir():
        return False
    names = {path.name for path in target.iterdir()}
    own = {FORM, WEIGHTS, GOLDEN, CHARACTERS, SUMS}
    if not names:
        return True
    if FORM not in names or any(name not in own and not name.startswith("model.")
                                for name in names):
        return False
    return _is_form((target / FORM).read_bytes())


def _is_archive(target: Path) -> bool:
    if not target.is_file():
        return False
    try:
        with zipfile.ZipFile(target) as archive:
            return _is_form(archive.read(FORM))
    except (zipfile.BadZipFile, KeyError, OSError, RuntimeError, ValueError):
        return False


def _is_form(content: bytes) -> bool:
    try:
        form = json.loads(content)
    except ValueError:
        return False
    return isinstance(form, dict) and form.get("format") == FORMAT


def _pack(folder: Path, file: Any) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(path.name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def _unpack(path: Path, folder: Path, max_bytes: int) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            total = sum(entry.file_size for entry in entries)
            if total > max_bytes or len(entries) > 16:
                raise ModelFileError.too_large(str(path), total, max_bytes)
            for entry in entries:
                # A name with a path in it could write elsewhere.
                if os.path.basename(entry.filename) != entry.filename or entry.filename in (
                        "", ".", ".."):
                    raise ModelFileError.damaged(
                        str(path), f"it holds a member named {entry.filename!r}", "bundle")
                with archive.open(entry) as packed, (folder / entry.filename).open("wb") as file:
                    # Not more than was declared, whatever the data unpack to.
                    file.write(packed.read(entry.file_size))
    except ModelFileError:
        raise
    except OSError as error:
        raise SourceError.unreadable(str(path), error.strerror or error) from error
    except Exception as error:
        # Each of ZIP's methods of packing has errors of its own.
        raise ModelFileError.damaged(str(path), str(error), "bundle") from error


def _check_sums(folder: Path, name: str, max_bytes: int) -> None:
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_file():
            raise ModelFileError.damaged(name, f"{path.name} is not a plain file", "bundle")
    sums = folder / SUMS
    if not sums.is_file() or sums.stat().st_size > 1 << 16:
        raise ModelFileError.damaged(name, f"it has no {SUMS}", "bundle")
    declared = {}
    for line in sums.read_text("utf-8", "replace").splitlines():
        digest, _, member = line.partition("  ")
        declared[member] = digest
    there = {path.name for path in folder.iterdir() if path.name != SUMS}
    lost = sorted({FORM, WEIGHTS, GOLDEN, *declared} - there)
    if lost:
        raise ModelFileError.damaged(name, f"{lost[0]} is missing", "bundle")
    needed = sum((folder / member).stat().st_size for member in declared)
    if needed > max_bytes:
        raise ModelFileError.too_large(name, needed, max_bytes)
    for member, digest in declared.items():
        with (folder / member).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise ModelFileError.damaged(
                    name, f"the checksum of {member} differs: bytes were changed or lost",
                    "bundle")
    unnamed = sorted(there - set(declared))
    if unnamed:
        raise ModelFileError.damaged(name, f"{SUMS} does not name {unnamed[0]}", "bundle")
