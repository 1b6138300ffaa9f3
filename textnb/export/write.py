"""The export of a model: a bundle for one target, on disk.

A bundle has the target's file, the weights as data, golden rows (examples with the model's answers,
by which an export is verified), a README and checksums.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from textnb.errors import ExportError, ParameterError, SourceError, quantity
from textnb.export import archive
from textnb.export.bundle import ANSWERS, Bundle, Reads, bundle_of
from textnb.export.readme import readme
from textnb.export.reduce import Precision, keep_top, round_weights
from textnb.export.targets.base import Target
from textnb.export.targets.known import (
    TARGETS,
    check_target_knows,
    target_of,
    target_of_path,
    targets_that_give,
)
from textnb.files.archive import write_sums
from textnb.files.replace import check_target, replace_file, report_write_errors
from textnb.learning.fitted import fitted_text_model_or_none


def model_file_name(target: Target) -> str:
    """The name of a target's file in a bundle."""
    return f"model{target.suffix}"


@dataclass(frozen=True)
class Exported:
    """The result of an export.

    Attributes
    ----------
    path : Path
    target : str
    reads : {"text", "terms", "features"}
    single : bool
        Whether ``path`` is the target's file, and its bundle is in the same folder.
    pruned : dict or None
        The numbers of terms ``kept`` and ``dropped`` because of ``top``.
    weights : int
        The number of terms or features; each has a weight per output.
    size : int
        The bytes of the file, or of all files of the bundle.
    answers : tuple of {"scores", "probability", "decision"}
        What the target's file answers with.
    precision : dict or None
        How weights were rounded: ``kind`` and ``worst_per_token``, as
        `textnb.export.reduce.round_weights` describes them.
    why_tokens : str
        Why the target reads tokens and can't split the model's texts; empty if it reads texts, or
        if tokens were asked for.
    """

    path: Path
    target: str
    reads: str
    single: bool = False
    pruned: dict[str, Any] | None = None
    weights: int = 0
    size: int = 0
    answers: tuple[str, ...] = ("scores",)
    precision: dict[str, Any] | None = None
    why_tokens: str = ""


def export_model(
    model: Any, path: str | Path, to: str | None = None, *, positive: Any = None,
    reads: Reads | None = None, answers: str | None = None, top: int | None = None,
    precision: Precision = "float64", progress: Callable[[str], None] | None = None,
) -> Exported:
    """Write a fitted classifier for another system.

    Parameters
    ----------
    model : TextClassifier or TableClassifier
        With a linear form and finite weights.
    path : path
        A new folder, or a ``.zip`` archive, for the bundle. With the target's own ending
        (``spam.sql``), the target's file; the bundle is then written next to it
        (``spam.sql.bundle.zip``).
    to : str, optional
        The target; ``textnb export --help`` lists them. By default, the ending of the path decides.
    positive : label, optional
        One of two classes: export one ``w`` and ``b``, with scores above 0 for this class.
    reads : {"text", "terms"}, optional
        Whether the target splits texts itself or reads their tokens. By default it splits texts if
        it can do so for the model's tokenizer. If it can't, it reads tokens, and ``why_tokens`` of
        the result has the reason.
    answers : {"scores", "probability", "decision"}, optional
        An answer that the target's file must give; ExportError if it can't. The file gives all
        answers that the target and the model have, with or without this parameter.
    top : int, optional
        Keep only this many terms: those that can change a decision most.
    precision : {"float64", "float32", "int8"}
        Round the weights: see `textnb.export.reduce`. The default does not round.
    progress : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    Exported

    Raises
    ------
    ExportError
        If the target can't give the model's exact scores; the message has the reason and an
        alternative.
    SourceError
        If the path can't be written.

    Examples
    --------
    >>> import tempfile
    >>> from textnb import TextClassifier, export_model, verify_export
    >>> model = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     exported = export_model(model, f"{folder}/film", to="python")
    ...     found = verify_export(exported.path)
    >>> found.target, found.wrong_labels, found.largest_difference < 1e-12
    ('python', [], True)
    """
    target = target_of_path(path) if to is None else target_of(to)

    def write(reads: Reads | None) -> Exported:
        with report_write_errors(path):
            return _export(model, Path(path), target, positive, reads, answers, top, precision,
                           progress or (lambda step: None))

    try:
        return write(reads)
    except ExportError as error:
        if reads is not None or not error.refuses_tokenizer or "terms" not in target.reads:
            raise
        why_tokens = str(error)
    return replace(write("terms"), why_tokens=why_tokens)


def _export(
    model: Any, path: Path, target: Target, positive: Any, reads: Reads | None,
    answers: str | None, top: int | None, precision: Precision, report: Callable[[str], None],
) -> Exported:
    report("collecting weights and golden rows")
    full_bundle = bundle_of(model, _choose_reads(target, model, reads), positive)
    single = bool(target.suffix) and path.suffix == target.suffix
    _check_path(path, target, single)
    bundle, rounding_report = round_weights(full_bundle, precision)
    bundle, pruned = (bundle, None) if top is None else keep_top(bundle, top)
    if (answers == "probability" and full_bundle.calibration is not None
            and bundle.calibration is None):
        raise ExportError(f"{target.name}: the model's calibration held with all terms: keep them, "
                          "or export without answers='probability'")
    bundle = give_answers(bundle, target, answers)
    with ExitStack() as stack:
        # The file is replaced last, after the bundle: if the bundle fails, neither is changed.
        file = stack.enter_context(_replace_after_bundle(path)) if single else None
        with archive.replace_bundle(bundle_path(path) if single else path) as folder:
            report("writing weights and golden rows")
            archive.write_tables(bundle, folder, target.name, pruned, rounding_report)
            report(f"writing {quantity(len(bundle.weights), 'weight')} for {target.name}")
            _write_target_file(target, bundle, folder)
            (folder / archive.README).write_text(readme(bundle, target), "utf-8")
            report("sealing the bundle")
            write_sums(folder)
            if file is not None:
                with (folder / model_file_name(target)).open("rb") as source:
                    shutil.copyfileobj(source, file)
    return Exported(
        path, target.name, bundle.reads, single=single, pruned=pruned, weights=len(bundle.weights),
        size=_size(path), answers=bundle.answers, precision=rounding_report)


def _size(path: Path) -> int:
    """The number of bytes of an export on disk: of a file, or of all files of a folder."""
    try:
        return sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))
    except OSError as error:
        raise SourceError(f"{str(path)!r} is written, but its size can't be read: "
                          f"{error.strerror or error}") from error


def _check_path(path: Path, target: Target, single: bool) -> None:
    """Raise an error if the bundle, or the target's single file, can't have this path."""
    if path.suffix in {other.suffix for other in TARGETS.values()} - {"", target.suffix}:
        files = model_file_name(target) if target.suffix else "several files"
        raise ParameterError(f"{path.name!r} is the name of another target's file, and "
                             f"{target.name} writes {files}: name a folder, or a file with that "
                             "ending")
    if single and target.companions:
        raise ExportError(f"{target.name}: a model is several files ({target.suffix}, "
                          f"{', '.join(target.companions)}): write them to a folder, or to a .zip, "
                          f"not to {path.name!r}")
    if single:
        check_target(path)
        check_target(bundle_path(path))
        if path.exists() and not bundle_path(path).exists():
            raise SourceError(f"can't write {str(path)!r}: it is there and has no bundle beside "
                              "it, so it is not an export; remove it or choose another path")


@contextmanager
def _replace_after_bundle(path: Path) -> Iterator[IO[bytes]]:
    """Open a target's single file to write; if it can't be replaced, the error names the bundle.

    The bundle is replaced first, so the error says that it is written.
    """
    bundle_is_replaced = False
    try:
        with replace_file(path) as file:
            yield file
            bundle_is_replaced = True
    except SourceError as error:
        if not bundle_is_replaced:
            raise
        raise error.add_prefix(f"{str(bundle_path(path))!r} is written: ") from error


def give_answers(bundle: Bundle, target: Target, answer: str | None = None) -> Bundle:
    """The bundle with the answers that a target gives for it.

    Raises
    ------
    ExportError
        If ``answer`` is not one of them, because the target or the model does not have it.
    """
    if answer is not None and answer not in ANSWERS:
        raise ParameterError.unknown_choice("answers", answer, ANSWERS)
    if answer == "decision" and bundle.is_multilabel:
        raise ExportError.naming_settings(
            "{target}: lists of labels have no decision beside the labels, which are those that "
            "the thresholds choose: leave out {answers='decision'}", target=target.name)
    if answer is not None and answer not in target.answers:
        raise ExportError(f"{target.name}: it answers with {' and '.join(target.answers)}, and not "
                          f"with {answer}; export to one of {targets_that_give(answer)}")
    has_decision = bundle.decision is not None and not bundle.is_multilabel
    if answer == "decision" and not has_decision:
        raise ExportError(f"{target.name}: the model has no decision, or it held with all terms "
                          "alone: choose thresholds (textnb threshold), and keep all terms")
    return replace(bundle, answers=tuple(
        name for name in target.answers if name != "decision" or has_decision))


def bundle_path(path: Path) -> Path:
    """The path of the bundle of a target's single file."""
    return path.with_name(f"{path.name}.bundle.zip")


def _choose_reads(target: Target, model: Any, reads: str | None) -> Any:
    """What the target reads: ``reads``, or the first that is possible for the model."""
    fitted = fitted_text_model_or_none(model)
    choices = ("features",) if fitted is None else ("text", "terms")
    if reads is not None and reads not in choices:
        raise ParameterError.unknown_choice("reads", reads, choices)
    if reads is None:
        reads = next((name for name in target.reads if name in choices), choices[-1])
        if reads == "text" and fitted is not None and not target.splits(
                fitted.settings.tokenizer, fitted.settings.columns):
            reads = "terms"
    if reads not in target.reads:
        problem = "is given the tokens, not texts" if reads == "text" else f"reads no {reads}"
        raise ExportError(f"{target.name}: it {problem}; it reads {' or '.join(target.reads)}")
    return reads


def _write_target_file(target: Target, bundle: Bundle, folder: Path) -> None:
    check_target_knows(target, bundle)
    try:
        target.write(bundle, folder / model_file_name(target))
    except ExportError as error:
        message = f"{target.name}: {error}"
        if not error.refuses_tokenizer:
            raise error.add_prefix(f"{target.name}: ") from None
        if "terms" in target.reads:
            message += ("; export the form for tokens that you make yourself (--input terms), or "
                        "train with a portable tokenizer, such as the default")
        raise ExportError.for_tokenizer(message) from None
