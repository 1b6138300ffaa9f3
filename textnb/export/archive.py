"""A bundle on disk: a folder or a ZIP archive of it, which is written whole or not at all.

`textnb.export.bundle` lists the files of a bundle, and what each holds.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision
from textnb.bayes.features import FeatureMap, presence_map
from textnb.bayes.forms import LinearForm
from textnb.errors import ExportError, SourceError
from textnb.export import golden
from textnb.export.bundle import ANSWERS, Bundle, expand_to_two_classes
from textnb.export.portable import WORDS_FIELDS
from textnb.export.readme import README_MARK
from textnb.files.archive import (
    MAX_BYTES,
    SUMS,
    check_sums,
    pack_folder,
    read_labels,
    read_table,
    to_lists,
    unpack_folder,
    write_document,
    write_labels,
)
from textnb.files.cleanup import cleanup
from textnb.files.replace import (
    real_path,
    remove_folder,
    replace_file,
    replace_folder,
    report_write_errors,
)
from textnb.files.require import read_document, reading_errors, require
from textnb.runtime import __version__
from textnb.storage.document import refuse_unknown
from textnb.text.tokens import Tokenizer

# Version 2 added feature maps beyond presence, and version 3 added lists of labels. A bundle is
# written in the lowest version that can hold it, so that older releases can read it.
FORMAT, VERSION = "textnb-bundle", 3
# The form and the tokenizer, the weights, example rows with the model's answers, and tables of the
# characters of words.
FORM, WEIGHTS, GOLDEN, CHARACTERS = (
    "form.json", "weights.parquet", "golden.parquet", "characters.json")
# The names of the bundle's own files; `SUMS` is the file of checksums.
_OWN_FILES = {FORM, WEIGHTS, GOLDEN, CHARACTERS, SUMS}
# The names of all files that a target writes begin with this.
_TARGET_PREFIX = "model."
# The names in `FORM`, in its classes, and in `CHARACTERS`: what is not known may change answers.
_FORM_NAMES = (
    "format", "version", "textnb", "target", "reads", "classes", "positive", "intercept", "above",
    "features", "multilabel", "tokenizer", "columns", "calibration", "decision", "answers",
    "trained", "pruned", "precision")
_CLASSES_NAMES = ("type", "labels")
_CHARACTERS_NAMES = (
    "members", "least", "stop_words", "ngram_range", "unspaced", "replacements", "lowercase",
    "unspaced_sizes", "normalize", "accents", "kept", "analyzer", "columns", "prefixes", "escaped")
# Not among `_OWN_FILES`, because a user's own README may be in the folder.
README = "README.md"
# The endings of files that C compilers write beside the source.
_OBJECT_SUFFIXES = (".o", ".obj")


def write_tables(
    bundle: Bundle, folder: Path, target: str, pruned: Mapping[str, Any] | None = None,
    precision: Mapping[str, Any] | None = None,
) -> None:
    """Write the bundle's own files; the target's file and the checksums come later.

    Parameters
    ----------
    bundle : Bundle
    folder : Path
    target : str
        The name of the target.
    pruned : mapping, optional
        The report of `textnb.export.reduce.keep_top`, if only some terms are exported.
    precision : mapping, optional
        The report of `textnb.export.reduce.round_weights`, if weights are rounded.
    """
    version = 3 if bundle.is_multilabel else 2 if bundle.needs_feature_map else 1
    form = write_document(FORMAT, version, {
        "textnb": __version__,
        "target": target, "reads": bundle.reads,
        "classes": write_labels(bundle.labels),
        "positive": bundle.positive,
        "intercept": bundle.intercept.tolist(),
        "above": bundle.presence_above,
        **({} if version == 1 else {"features": bundle.form.features.to_dict()}),
        **({"multilabel": True} if bundle.is_multilabel else {}),
        "tokenizer": None if bundle.tokenizer is None else bundle.tokenizer.to_dict(),
        "columns": list(bundle.columns),
        "calibration": None if bundle.calibration is None else bundle.calibration.to_dict(),
        "decision": None if bundle.decision is None else to_json(bundle.decision.to_dict()),
        **({"answers": list(bundle.answers)} if len(bundle.answers) > 1 else {}),
        "trained": to_json(bundle.provenance or {}),
        "pruned": None if pruned is None else dict(pruned),
        **({} if precision is None else {"precision": dict(precision)}),
    })
    (folder / FORM).write_text(form, "utf-8")
    _write_parquet(weights_table(bundle), folder / WEIGHTS)
    _write_parquet(golden.table(bundle), folder / GOLDEN)
    if bundle.reads != "features":
        try:
            words = bundle.words(executes=WORDS_FIELDS)
        except ExportError:
            # Tables of characters can't describe this tokenizer.
            return
        (folder / CHARACTERS).write_text(json.dumps(words.to_dict(), ensure_ascii=True), "utf-8")


def weights_table(bundle: Bundle) -> pl.DataFrame:
    """Make ``weights.parquet``: ``term`` or ``feature``, ``words`` of n-grams, and the weights.

    Weights are float32 if all of them are exact in it.
    """
    terms = pl.Series("feature" if bundle.reads == "features" else "term", bundle.terms, pl.String)
    table = terms.to_frame()
    if bundle.tokenizer is not None and bundle.tokenizer.joins_words:
        table = table.with_columns(bundle.tokenizer.split_all(terms).alias("words"))
    names = ["w"] if bundle.positive is not None else [str(k) for k in range(len(bundle.labels))]
    weights: NDArray[Any] = bundle.weights
    with np.errstate(over="ignore"):
        rounded = weights.astype(np.float32)
    if np.array_equal(rounded, weights):
        weights = rounded
    return table.with_columns(
        [pl.Series(name, weights[:, k]) for k, name in enumerate(names)])


def _write_parquet(table: pl.DataFrame, path: Path) -> None:
    # Python writes the file, because it raises OSError if that fails. An error of Polars would not
    # say whether the write failed.
    content = io.BytesIO()
    table.write_parquet(content)
    path.write_bytes(content.getbuffer())


@contextmanager
def replace_bundle(path: Path) -> Iterator[Path]:
    """Open a temporary folder, whose files replace ``path`` at the end: a folder or a ``.zip``.

    Raises
    ------
    SourceError
        If ``path`` is not a bundle, or can't be written.
    """
    if str(path) == "-":
        raise SourceError.unwritable(path, "an export is not written to standard output: name a "
                                           "path (./- for a file named -)")
    target = real_path(path)
    if not target.parent.is_dir():
        raise SourceError.unwritable(path, f"there is no folder {str(target.parent)!r}")
    is_archive = path.suffix == ".zip"
    if target == Path.cwd():
        raise SourceError("can't write a bundle in place of the current folder; name a folder")
    if target.exists() and (reason := _why_not_replaceable(target, is_archive)):
        raise SourceError.unwritable(path, reason)
    if not is_archive:
        with replace_folder(path) as folder:
            yield folder
        return
    with report_write_errors(path):
        temporary = Path(tempfile.mkdtemp(prefix="textnb-"))
        with cleanup(partial(remove_folder, temporary)):
            yield temporary
            with replace_file(path) as file:
                pack_folder(temporary, file)


@contextmanager
def open_bundle(path: Path, max_bytes: int = MAX_BYTES) -> Iterator[Path]:
    """Open the folder of a bundle after a check of its checksums; an archive is unpacked.

    Raises
    ------
    ModelFileError
        If the bundle is truncated, changed, of a later version, or larger than ``max_bytes``.
    SourceError
        If there is no bundle.
    """
    if not path.exists():
        raise SourceError(f"no such bundle: {str(path)!r}")
    if not path.is_dir() and not path.is_file():
        raise SourceError.unreadable(str(path), "it is a device or a pipe")
    with tempfile.TemporaryDirectory(prefix="textnb-") as temporary:
        folder = path if path.is_dir() else Path(temporary)
        with reading_errors(str(path), "bundle"):
            if not path.is_dir():
                unpack_folder(path, folder, max_bytes)
            check_sums(folder, str(path), max_bytes, (FORM, WEIGHTS, GOLDEN), _may_lack_checksum)
        yield folder


def read(folder: Path, name: str, max_bytes: int = MAX_BYTES) -> tuple[Bundle, dict[str, Any]]:
    """Read the bundle of an open folder, and its ``form.json``; errors call the bundle ``name``.

    Raises
    ------
    ModelFileError
        If a value is missing, of another type, out of range or not finite.
    """
    with reading_errors(name, "bundle"):
        form = read_document(
            (folder / FORM).read_bytes(), name, FORM, FORMAT, VERSION, kind="bundle")
        refuse_unknown(name, f"the name in {FORM}", form, _FORM_NAMES)
        refuse_unknown(name, "the name of classes", form["classes"], _CLASSES_NAMES)
        weights = read_table((folder / WEIGHTS).read_bytes(), name, max_bytes)
        if (folder / CHARACTERS).exists():
            # textnb only checks this file: other systems read it, to split texts.
            with reading_errors(name, "bundle", CHARACTERS):
                characters = json.loads((folder / CHARACTERS).read_bytes())
                require(isinstance(characters, dict), "it is no JSON object")
                refuse_unknown(name, f"the name in {CHARACTERS}", characters, _CHARACTERS_NAMES)
        return _read_bundle(form, weights), form


def _read_bundle(form: Mapping[str, Any], table: pl.DataFrame) -> Bundle:
    classes = read_labels(form["classes"])
    labels = classes.tolist()
    require(len(set(labels)) == len(labels), "its labels have duplicates")
    positive, reads = form["positive"], form["reads"]
    require(isinstance(form["target"], str), "its target is not a name")
    require(all(type(value) in (int, float) for value in form["intercept"]),
            "its intercepts are not numbers")
    require(reads in ("text", "terms", "features"), f"it reads {reads!r}")
    weight_columns = [str(k) for k in range(len(labels))] if positive is None else ["w"]
    terms = table["feature" if reads == "features" else "term"]
    require(terms.dtype == pl.String and not terms.null_count() and terms.is_unique().all(),
            "its terms are not distinct strings")
    weights = np.column_stack([table[name].cast(pl.Float64, strict=True).to_numpy()
                               for name in weight_columns]).astype(np.float64)
    intercept = np.array(form["intercept"], dtype=np.float64)
    require(intercept.shape == (len(weight_columns),), "its intercepts are not one per output")
    require(bool(np.isfinite(weights).all() and np.isfinite(intercept).all()),
            "a weight is not finite")
    above, tokenizer = form["above"], form["tokenizer"]
    require(above is None or (type(above) in (int, float) and 0 <= above < float("inf")),
            "above must be null or a finite number >= 0")
    is_multilabel = form["version"] > 2
    require(is_multilabel == (form.get("multilabel") is True),
            "its version and multilabel do not match")
    features = presence_map(above)
    if form["version"] > 1:
        features = FeatureMap.from_dict(form["features"])
        require(features.presence_above == above, "above is not that of its feature map")
    require(reads == "features" or tokenizer is not None, "it has no tokenizer")
    if positive is not None:
        require(len(labels) == 2 and positive in labels, "its positive class is not one of two")
        weights, intercept = expand_to_two_classes(labels, positive, weights[:, 0], intercept[0])
    columns = form["columns"]
    require(isinstance(columns, list) and all(isinstance(name, str) for name in columns)
            and len(columns) > 0, "its columns are not names")
    return Bundle(
        LinearForm(classes, weights, intercept, tuple(terms.to_list()), features,
                   link="sigmoid" if is_multilabel else "softmax"),
        reads, tokenizer=None if tokenizer is None else Tokenizer.from_file(tokenizer),
        columns=tuple(columns), positive=positive, provenance=form["trained"],
        # Calibration and decision may be absent or null.
        calibration=None if form.get("calibration") is None else Calibration.from_dict(
            form["calibration"]),
        decision=None if form.get("decision") is None else Decision.from_dict(form["decision"]),
        answers=_read_answers(form))


def _read_answers(form: Mapping[str, Any]) -> tuple[str, ...]:
    """The answers of the target's file; only scores if ``form.json`` does not say."""
    answers = form.get("answers", ["scores"])
    require(isinstance(answers, list) and answers[:1] == ["scores"]
            and all(name in ANSWERS for name in answers), "its answers are unknown")
    require("decision" not in answers or bool(form.get("decision") or form.get("multilabel")),
            "its answers include a decision, but it has none")
    return tuple(answers)


def to_json(value: Any) -> Any:
    """Convert to values that JSON can hold; others, such as infinity, become strings."""
    return to_lists(value, _to_json_scalar)


def _to_json_scalar(value: Any) -> Any:
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    return value if isinstance(value, (str, int, type(None))) else str(value)


def _why_not_replaceable(target: Path, is_archive: bool) -> str:
    """Why a path can't be replaced; "" if it is an empty folder or a bundle without other files."""
    if is_archive or not target.is_dir():
        is_safe = is_archive and _is_bundle(target)
    else:
        names = {path.name for path in target.iterdir()}
        bundle_files = _OWN_FILES | {README} if _has_bundle_readme(target) else _OWN_FILES
        extra = sorted(name for name in names - bundle_files if not name.startswith(_TARGET_PREFIX))
        if FORM in names and extra:
            return (f"beside the earlier export it holds {extra[0]!r}, which would be lost; move "
                    "that elsewhere, or choose another path")
        is_safe = not names or (not extra and _is_bundle(target))
    return "" if is_safe else "it is there and is not a bundle; remove it or choose another path"


def _has_bundle_readme(folder: Path) -> bool:
    try:
        return (folder / README).read_text("utf-8").startswith(README_MARK)
    except (OSError, ValueError):
        return False


def _is_bundle(path: Path) -> bool:
    """Whether a folder or an archive has a ``form.json`` of this format."""
    try:
        if path.is_dir():
            content = (path / FORM).read_bytes()
        else:
            with zipfile.ZipFile(path) as archive:
                content = archive.read(FORM)
        form = json.loads(content)
    except (zipfile.BadZipFile, KeyError, OSError, RuntimeError, ValueError):
        return False
    return isinstance(form, dict) and form.get("format") == FORMAT


def _may_lack_checksum(name: str) -> bool:
    """Whether a file is no part of the bundle: a user compiled it in the folder, or added it."""
    name = name.casefold()
    return name.endswith(_OBJECT_SUFFIXES) or not (
        name.startswith(_TARGET_PREFIX) or name in map(str.casefold, _OWN_FILES))
