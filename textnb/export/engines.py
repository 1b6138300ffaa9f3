"""One bundle in every engine that is installed: what each answers, and how fast."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textnb.bayes.forms import Floats
from textnb.errors import ExportError, ModelFileError, first_line
from textnb.export import archive
from textnb.export.answers import give_answers
from textnb.export.bundle import Bundle, Reads
from textnb.export.targets.base import (
    EngineMissing,
    Target,
    TargetRows,
    WriterMissing,
    check_target_knows,
)
from textnb.export.targets.known import TARGETS, target_of
from textnb.export.verify import Verified, compare, prepare, read_golden
from textnb.export.write import bundle_path, model_file
from textnb.files.archive import MAX_BYTES, reading_errors

# Of fewer rows, the time is that of loading.
_LEAST_ROWS = 500


@dataclass(frozen=True)
class EngineReport:
    """What one engine gave for the rows of a bundle.

    Attributes
    ----------
    target : str
    verified : Verified or None
        None where it did not run.
    reason : str
        Why it did not run: the engine is not installed, it failed, or the target can't give the
        model's exact scores.
    is_missing : bool
        Whether the engine is not installed.
    bytes : int or None
        The size of the target's file.
    load_seconds : float or None
        From its start to the answer for one row.
    rows_per_second : float or None
        Of the rows after the first; None for fewer than 500 rows.
    """

    target: str
    verified: Verified | None = None
    reason: str = ""
    is_missing: bool = False
    bytes: int | None = None
    load_seconds: float | None = None
    rows_per_second: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the engine ran, and gave a wrong answer or none."""
        if self.verified is None:
            return bool(self.bytes) and not self.is_missing
        return not self.verified.passed

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        found = self.verified
        return {
            "target": self.target, "passed": None if found is None else found.passed,
            "reason": self.reason, "reads": None if found is None else found.reads,
            "rows": None if found is None else found.rows,
            "wrong_scores": None if found is None else len(found.wrong_scores),
            "wrong_labels": None if found is None else len(found.wrong_labels),
            "largest_difference": None if found is None else found.largest_difference,
            "answers": None if found is None else list(found.answers),
            "wrong_probabilities": None if found is None else len(found.wrong_probabilities),
            "wrong_decisions": None if found is None else len(found.wrong_decisions),
            "largest_error": None if found is None else found.largest_error,
            "rows_per_second": self.rows_per_second, "load_seconds": self.load_seconds,
            "bytes": self.bytes}


def verify_engines(
    path: str | Path, rows: Any = None,
    engines: Sequence[str] | None = None, max_bytes: int = MAX_BYTES, *,
    progress: Callable[[str], None] | None = None,
) -> list[EngineReport]:
    """Score rows by a bundle's model in several engines.

    The file of the bundle's own target is run as it is; for each other target a file is written
    first. A target that splits no texts is given their tokens.

    Parameters
    ----------
    path : path
        A bundle (folder or ``.zip``), or a target's file with its bundle in the same folder.
    rows : table, path or sequence of texts, optional
        With the columns that the model reads; the golden rows by default.
    engines : sequence of str, optional
        Names of targets; all by default.
    max_bytes : int
        Refuse a bundle that declares more bytes than this.
    progress : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    list of EngineReport
        One per target, in the order of ``textnb export --help``, or in that of ``engines``.

    Raises
    ------
    ParameterError
        If there is no target of a name.
    ModelFileError
        If the bundle is damaged.

    Examples
    --------
    >>> from textnb import TextClassifier, export_model
    >>> model = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     exported = export_model(model, f"{folder}/film", to="python")
    ...     for report in verify_engines(exported.path, engines=["python", "json"]):
    ...         print(report.target, report.verified.reads, report.verified.passed)
    python text True
    json terms True
    """
    tell = progress or (lambda step: None)
    targets = [target_of(name, "engines") for name in (TARGETS if engines is None else engines)]
    tell("reading the bundle")
    path = Path(path)
    single = path.is_file() and path.suffix != ".zip"
    with (archive.open_bundle(bundle_path(path) if single else path, max_bytes) as folder,
          tempfile.TemporaryDirectory(prefix="textnb-") as temporary):
        bundle, form = archive.read(folder, str(path), max_bytes)
        if rows is not None:
            inputs, scores, _ = prepare(bundle, rows, 0.0)
        else:
            with reading_errors(str(path), "bundle", archive.GOLDEN):
                inputs, scores, _ = read_golden(bundle, folder, str(path), max_bytes)
        reports = []
        for target in targets:
            tell(f"scoring by {target.name}")
            place = Path(temporary) / target.name
            place.mkdir()
            own = folder if target.name == form["target"] else None
            if own and target.suffix and not (own / model_file(target)).is_file():
                raise ModelFileError.damaged(
                    str(path), f"{model_file(target)} is missing", "bundle")
            reports.append(_report(target, bundle, own, place, inputs, scores))
    return reports


def _report(
    target: Target, bundle: Bundle, own: Path | None, place: Path, inputs: TargetRows,
    scores: Floats,
) -> EngineReport:
    size = None
    try:
        bundle, file = _written(target, bundle, own, place)
        others = [file.with_suffix(ending) for ending in getattr(target, "companions", ())]
        size = sum(part.stat().st_size for part in (
            file if target.suffix else file.with_name(archive.WEIGHTS), *others) if part.exists())
        x = inputs.features if inputs.counts is None else inputs.counts
        assert x is not None
        expected = bundle.expected_labels(scores, x, target.tolerance)
        started = time.perf_counter()
        compare(target, bundle, file, inputs.head(1), scores[:1], expected[:1])
        loaded = time.perf_counter()
        found = compare(target, bundle, file, inputs, scores, expected)
        ended = time.perf_counter()
    except (EngineMissing, WriterMissing) as error:
        return EngineReport(target.name, None, str(error), True, size)
    except ExportError as error:
        return EngineReport(target.name, None, first_line(error).removeprefix(f"{target.name}: "),
                            False, size)
    further = ended - loaded - (loaded - started)
    rate = (len(expected) - 1) / further if len(expected) >= _LEAST_ROWS and further > 0 else None
    return EngineReport(target.name, found, "", False, size, loaded - started, rate)


def _written(
    target: Target, bundle: Bundle, own: Path | None, place: Path
) -> tuple[Bundle, Path]:
    """The bundle as a target reads it, and the target's file; ExportError if it can't."""
    check_target_knows(target, bundle)
    if own is not None:
        return bundle, own / model_file(target)
    bundle = give_answers(bundle, target)
    # A target that can't split these texts may still read their tokens.
    possible: list[Reads] = ["text", "terms"] if bundle.reads == "text" else [bundle.reads]
    reads = [how for how in possible if how in target.reads]
    if not reads:
        raise ExportError(f"it reads {' or '.join(target.reads)}")
    file = place / model_file(target)
    try:
        return _write(target, replace(bundle, reads=reads[0]), file), file
    except ExportError:
        if len(reads) == 1:
            raise
    return _write(target, replace(bundle, reads=reads[1]), file), file


def _write(target: Target, bundle: Bundle, file: Path) -> Bundle:
    archive.write_tables(bundle, file.parent, target.name)
    target.write(bundle, file)
    return bundle
