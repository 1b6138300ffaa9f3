"""The export of a model: a bundle for one target, on disk."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from textnb.errors import ExportError, ParameterError, SourceError, quantity
from textnb.export import archive, prune
from textnb.export.answers import decided, give_answers
from textnb.export.bundle import ANSWERS, Bundle, Reads, bundle_of
from textnb.export.precision import (
    Precision,
    as_precisions,
    check_precision,
    margins,
    round_weights,
    row_errors,
)
from textnb.export.rows import open_rows
from textnb.export.targets.base import Target, check_target_knows
from textnb.export.targets.known import TARGETS, target_of, target_of_path
from textnb.files.replace import check_target, replace_file
from textnb.learning.fitted import fitted_texts
from textnb.runtime.sizes import byte_size


def model_file(target: Target) -> str:
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
        ``kept``, ``dropped``, ``worst_per_token``; with ``check``, also what `Exported.checked`
        has.
    weights : int
        The number of terms, or features, that have weights.
    size : int
        The bytes of the file, or of all files of the bundle.
    answers : tuple of {"scores", "probability", "decision"}
        What the target's file answers with.
    precision : dict or None
        Of rounded weights: ``kind``, and ``worst_per_token``, the most by which one token can
        change the difference of two scores, or the score of a label.
    checked : dict or None
        With ``check``: ``rows``, ``flipped`` (rows that get another label), ``decisions`` (rows
        that get another answer of the model's decision; None if the export has none),
        ``largest_difference`` of a difference of scores, and ``within``: rows whose label is no
        further ahead than the bound of their terms, so that weights alone do not say that it stays.
    """

    path: Path
    target: str
    reads: str
    single: bool = False
    pruned: dict[str, Any] | None = None
    weights: int = 0
    size: int = 0
    answers: tuple[str, ...] = ANSWERS[:1]
    precision: dict[str, Any] | None = None
    checked: dict[str, Any] | None = None


def export_model(
    model: Any, path: str | Path, to: str | None = None, *, positive: Any = None,
    reads: Reads | None = None, answers: str | None = None, top: int | None = None,
    max_bytes: int | str | None = None, precision: Precision | None = None,
    check: Any = None,
    progress: Callable[[str], None] | None = None,
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
        Whether the target splits texts itself or reads their tokens. By default, the first of these
        that the target can do.
    answers : {"scores", "probability", "decision"}, optional
        What the target's file must be able to answer with. Without it, the file answers with all
        that the target and the model have.
    top : int, optional
        Keep this many terms, those that can change a decision most.
    max_bytes : int or str, optional
        Keep as many terms as a file of this size holds: bytes, or a size such as ``"5M"``.
        Without ``precision``, also the precision with which one token can change least.
    precision : {"float64", "float32", "int8"}, optional
        Round the weights: see `textnb.export.precision`. By default they are as they are.
    check : table, path or sequence of texts, optional
        Rows on which to count the decisions that pruning and rounding change.
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
    tell = progress or (lambda step: None)
    if top is not None and max_bytes is not None:
        raise ParameterError.naming("give {top} or {max_bytes}, not both")
    most = byte_size("max_bytes", max_bytes)
    tell("collecting weights and golden rows")
    whole = bundle_of(model, _choose_input(target, model, reads), positive)
    path = Path(path)
    single = bool(target.suffix) and path.suffix == target.suffix
    if path.suffix in {each.suffix for each in TARGETS.values()} - {"", target.suffix}:
        own = model_file(target) if target.suffix else "several files"
        raise ParameterError(f"{path.name!r} is the name of another target's file, and "
                             f"{target.name} writes {own}: name a folder, or a file with that "
                             "ending")
    if single and (others := getattr(target, "companions", ())):
        raise ExportError(f"{target.name}: a model is several files ({target.suffix}, "
                          f"{', '.join(others)}): write them to a folder, or to a .zip, not to "
                          f"{path.name!r}")
    if single:
        check_target(path)
        check_target(bundle_path(path))
        if path.exists() and not bundle_path(path).exists():
            raise SourceError(f"can't write {str(path)!r}: it is there and has no bundle beside "
                              "it, so it is no export; remove it or choose another path")
    whole = give_answers(whole, target, answers)
    bundle, report, rounding = _reduce(whole, target, top, most, precision, tell)
    if answers == "probability" and whole.calibration is not None and bundle.calibration is None:
        raise ExportError(f"{target.name}: the model's calibration held with all terms: keep them, "
                          "or export without answers='probability'")
    bundle = give_answers(bundle, target, answers)
    checked = None
    if check is not None:
        if report is None and rounding is None:
            raise ParameterError.naming(
                "{check} counts the decisions that pruning or rounding flips: give {top}, "
                "{max_bytes} or {precision} too")
        checked = _compare_decisions(whole, bundle, check, tell)
        if report is not None:
            report |= checked
    with ExitStack() as stack:
        # The file is replaced after the bundle, so that a failure changes neither.
        file = stack.enter_context(replace_file(path)) if single else None
        with archive.replace_bundle(bundle_path(path) if single else path) as folder:
            tell("writing weights and golden rows")
            archive.write_tables(bundle, folder, target.name, report, rounding)
            tell(f"writing {quantity(len(bundle.weights), 'weight')} for {target.name}")
            _write(target, bundle, folder)
            tell("sealing the bundle")
            archive.seal(folder)
            if file is not None:
                with (folder / model_file(target)).open("rb") as written:
                    shutil.copyfileobj(written, file)
    return Exported(
        path, target.name, bundle.reads, single, report, len(bundle.weights), _file_size(path),
        bundle.answers, rounding, checked)


def _file_size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def bundle_path(path: Path) -> Path:
    """The path of the bundle of a target's single file."""
    return path.with_name(f"{path.name}.bundle.zip")


def _choose_input(target: Target, model: Any, reads: str | None) -> Any:
    texts = fitted_texts(model, multilabel=True)
    dense = texts is None
    if reads is not None and (reads == "features") != dense:
        raise ParameterError.unknown_choice(
            "reads", reads, ["features"] if dense else ["text", "terms"])
    if reads is None and texts is not None and hasattr(target, "reading"):
        # The target can split the texts of some tokenizers only, and chooses by the tokenizer.
        settings = texts.settings
        return target.reading(settings.tokenizer, settings.columns)
    if reads is None:
        possible = [name for name in target.reads if (name == "features") == dense]
        reads = possible[0] if possible else "features"
    if reads not in target.reads:
        what = "is given the tokens, not texts" if reads == "text" else f"reads no {reads}"
        raise ExportError(f"{target.name}: it {what}; it reads {' or '.join(target.reads)}")
    return reads


def _write(target: Target, bundle: Bundle, folder: Path) -> None:
    check_target_knows(target, bundle)
    try:
        target.write(bundle, folder / model_file(target))
    except ExportError as error:
        message = str(error)
        if error.refuses_tokenizer and "terms" in target.reads:
            message += ("; export the form for tokens that you make yourself (--input terms), or "
                        "train with a portable tokenizer, such as the default")
        raise ExportError(f"{target.name}: {message}") from None


def _reduce(
    whole: Bundle, target: Target, top: int | None, max_bytes: int | None,
    precision: Precision | None, tell: Callable[[str], None],
) -> tuple[Bundle, dict[str, Any] | None, dict[str, Any] | None]:
    """Round weights and leave out terms; a size alone chooses the precision of least change."""
    check_precision(precision)
    found, least, failure = None, math.inf, None
    for kind in as_precisions(precision, max_bytes is not None and whole.reads != "features"):
        try:
            rounded, rounding = round_weights(whole, kind)
            bundle, report = _prune(rounded, target, top, max_bytes, tell)
        except ExportError as error:
            failure = failure or error
            continue
        worst = max((part["worst_per_token"] for part in (report, rounding) if part), default=0.0)
        if worst < least:
            found, least = (bundle, report, rounding), worst
        if not worst:
            break
    if found is None:
        assert failure is not None
        raise failure
    return found


def _prune(
    bundle: Bundle, target: Target, top: int | None, max_bytes: int | None,
    tell: Callable[[str], None],
) -> tuple[Bundle, dict[str, Any] | None]:
    if top is not None:
        return prune.keep_top(bundle, top)
    if max_bytes is None:
        return bundle, None

    def size(smaller: Bundle) -> int:
        tell(f"trying {quantity(len(smaller.weights), 'term')}")
        with tempfile.TemporaryDirectory(prefix="textnb-") as folder:
            if not target.suffix:
                path = Path(folder) / archive.WEIGHTS
                archive.weights_table(smaller).write_parquet(path)
                return path.stat().st_size
            _write(target, smaller, Path(folder))
            return _file_size(Path(folder))

    return prune.keep_bytes(bundle, max_bytes, size)


def _compare_decisions(
    whole: Bundle, pruned: Bundle, rows: Any,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Count the rows that get another answer when terms are left out, or weights are rounded."""
    compared = flipped = within = others = 0
    decides = not whole.is_multilabel and None not in (whole.decision, pruned.decision)
    # In the terms of the model, those that are left out have weights of 0.
    less_weights = np.zeros(whole.weights.shape)
    place = {term: row for row, term in enumerate(whole.terms)}
    less_weights[[place[term] for term in pruned.terms]] = pruned.weights
    largest = 0.0
    for batch in open_rows(whole, rows).collect_batches(
            chunk_size=4096, maintain_order=True, lazy=True):
        tell(f"comparing decisions, {quantity(compared, 'row')}")
        counts = whole.counts(batch)
        full, less = whole.scores(counts), pruned.scores(pruned.counts(batch))
        bound = row_errors(whole, less_weights, counts)
        within += int((margins(whole, full) <= bound).sum())
        before, after = whole.decide(full), pruned.decide(less)
        if decides:
            others += int((decided(whole, full, counts)
                           != decided(pruned, less, pruned.counts(batch))).sum())
        compared += batch.height
        flipped += sum(a != b for a, b in zip(before, after, strict=True))
        largest = max(largest, float(prune.spread(whole, full - less).max(initial=0.0)))
    return {"rows": compared, "flipped": flipped, "decisions": others if decides else None,
            "largest_difference": largest, "within": within}
