"""Verification that a target gives the model's scores: golden rows in the real engine.

Golden rows are examples in a bundle, with the model's answers. An answer that rounding could change
is null there, and the engine's answer is then not compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.forms import Floats
from textnb.errors import (
    ExportError,
    ModelFileError,
    SchemaError,
    TextnbError,
    first_line,
    quantity,
)
from textnb.export import archive, golden
from textnb.export.bundle import Bundle
from textnb.export.targets.base import EngineMissing, Target, TargetRows
from textnb.export.targets.known import TARGETS, check_target_knows
from textnb.export.write import bundle_path, model_file_name
from textnb.files.archive import MAX_BYTES, read_table
from textnb.files.require import reading_errors, require
from textnb.frames.features import feature_columns, feature_names
from textnb.frames.scan import scan, scan_table
from textnb.frames.texts import is_table, table_of_texts
from textnb.runtime.removed import TARGETS as REMOVED_TARGETS
from textnb.runtime.removed import removal_message

# The maximum difference between probabilities that count as equal.
_MAX_PROBABILITY_ERROR = 1e-9


@dataclass(frozen=True)
class Verified:
    """The comparison of an engine's answers with the model's.

    Attributes
    ----------
    target : str
    reads : str
    rows : int
    largest_difference : float
        The largest absolute difference of a score.
    tolerance : float
        The maximum difference of a score that is not wrong: absolute for scores up to 1, relative
        for larger ones.
    wrong_scores : list of int
        Rows with a score that differs by more than the tolerance.
    wrong_labels : list of tuple
        (row, expected, got), where the last two are labels or lists of labels. Rows where rounding
        decides are left out: their two best scores, or a score and its threshold, are nearly equal.
    answers : tuple of {"scores", "probability", "decision"}
        What was compared.
    largest_error : float
        The largest absolute difference of a probability.
    wrong_probabilities : list of int
        Rows with a probability that differs by more than 1e-9, or the tolerance if it is larger.
    wrong_decisions : list of tuple
        (row, expected, got), where the last two are lists of one label, or empty for unsure. Rows
        where rounding decides are left out.
    """

    target: str
    reads: str
    rows: int
    largest_difference: float
    tolerance: float
    wrong_scores: list[int] = field(default_factory=list)
    wrong_labels: list[tuple[int, Any, Any]] = field(default_factory=list)
    answers: tuple[str, ...] = ("scores",)
    largest_error: float = 0.0
    wrong_probabilities: list[int] = field(default_factory=list)
    wrong_decisions: list[tuple[int, Any, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        n_wrong = (len(self.wrong_scores) + len(self.wrong_labels) + len(self.wrong_probabilities)
                   + len(self.wrong_decisions))
        outcome = "passed" if self.passed else "failed"
        return (f"Verified({self.target}, {quantity(self.rows, 'row')}, {outcome}, {n_wrong:,} "
                f"differ, largest difference {self.largest_difference:.3g})")

    @property
    def passed(self) -> bool:
        """Whether no score, label, probability or decision is wrong."""
        return not (self.wrong_scores or self.wrong_labels or self.wrong_probabilities
                    or self.wrong_decisions)


def verify_export(
    path: str | Path, rows: Any = None,
    max_bytes: int = MAX_BYTES, *, progress: Callable[[str], None] | None = None,
) -> Verified:
    """Run golden rows, or your own rows, in the engine of a bundle's target.

    Parameters
    ----------
    path : path
        A bundle (folder or ``.zip``), or a target's file with its ``.bundle.zip`` in the same
        folder.
    rows : table, path or sequence of texts, optional
        With the text columns (or features) that the model reads.
    max_bytes : int
        Refuse a bundle that declares more bytes than this.
    progress : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    Verified

    Raises
    ------
    ModelFileError
        If the bundle is damaged, or the target's file differs from the one in its bundle.
    ExportError
        If the engine is not installed, or fails.
    """
    report = progress or (lambda step: None)
    report("reading the bundle")
    path = Path(path)
    is_single_file = path.is_file() and path.suffix != ".zip"
    bundle_file = bundle_path(path) if is_single_file else path
    if not bundle_file.exists() and is_single_file:
        raise ExportError(f"{path} has no golden rows beside it ({bundle_file.name}); verify the "
                          "bundle, or export again")
    with archive.open_bundle(bundle_file, max_bytes) as folder:
        bundle, form = archive.read(folder, str(path), max_bytes)
        name = form["target"]
        if name in REMOVED_TARGETS:
            raise ExportError(removal_message(f"the target {name}", REMOVED_TARGETS[name]))
        if name not in TARGETS:
            raise ModelFileError.damaged(str(path), f"its target {name!r} is unknown", "bundle")
        target = TARGETS[name]
        file = folder / model_file_name(target)
        if target.suffix and not file.is_file():
            raise ModelFileError.damaged(str(path), f"{file.name} is missing", "bundle")
        if is_single_file and path.read_bytes() != file.read_bytes():
            raise ModelFileError.damaged(
                str(path), f"it is not the file of its bundle, {bundle_file.name}", "bundle")
        if rows is not None:
            inputs, scores = read_rows(bundle, rows)
        else:
            with reading_errors(str(path), "bundle", archive.GOLDEN):
                inputs, scores = read_golden(bundle, folder, str(path), max_bytes)
        check_target_knows(target, bundle)
        report(f"scoring {quantity(len(inputs), 'row')} by {target.name}")
        try:
            return compare(target, bundle, file, inputs, scores)
        except EngineMissing as error:
            raise ExportError(f"{target.name}: {error}") from None


def read_golden(
    bundle: Bundle, folder: Path, name: str, max_bytes: int
) -> tuple[TargetRows, Floats]:
    """Read the golden rows and their scores; check that the weights give the stored answers.

    Errors call the bundle ``name``.
    """
    table = read_table((folder / archive.GOLDEN).read_bytes(), name, max_bytes)
    scores = np.array(table["scores"].to_list(), dtype=np.float64)
    require(scores.shape == (table.height, len(bundle.intercept)) and table.height > 0
            and bool(np.isfinite(scores).all()),
            "its scores are not finite numbers, one per row and output")
    if bundle.reads == "features":
        rows = TargetRows(np.array(table["features"].to_list(), dtype=np.float64))
    else:
        names = list(bundle.columns)
        documents = table.select(
            pl.col("text" if len(names) == 1 else f"text:{name}").alias(name) for name in names)
        rows = TargetRows(bundle.count_tokens(table["tokens"]), documents, table["tokens"])
    # The intercept includes the center of features. If it is large, scores lose digits, so the
    # tolerance grows with it. Rounding moves scores by less than 1e-6, and a wrong weight by more.
    magnitude = np.maximum(1.0, np.abs(scores)) + np.abs(bundle.intercept).max()
    require(bool((np.abs(bundle.scores(rows.values) - scores) <= 1e-6 * magnitude).all()),
            f"{archive.WEIGHTS} and {archive.FORM} give other scores")
    answers = {column.name: column for column in golden.answer_columns(
        bundle, scores, rows.values)}
    # Bundles of older releases have only labels.
    optional_answers = {"probability", "decision"} & set(table.columns)
    for answer in ("labels" if bundle.is_multilabel else "label", *optional_answers):
        require(answer in answers and _are_equal(table[answer], answers[answer]),
                f"{archive.FORM} gives another {answer}")
    return rows, scores


def _are_equal(stored: pl.Series, computed: pl.Series) -> bool:
    """Whether stored answers equal those computed from the scores.

    A null equals anything: it is in place of an answer that rounding could change.
    """
    if computed.dtype == pl.List(pl.Float64):
        numbers, expected = (np.array(answers.to_list(), dtype=np.float64)
                             for answers in (stored, computed))
        return numbers.shape == expected.shape and bool(
            (np.abs(numbers - expected) <= _MAX_PROBABILITY_ERROR).all())
    return all(answer is None or expected is None or answer == expected
               for answer, expected in zip(stored.to_list(), computed.to_list(), strict=True))


def read_rows(bundle: Bundle, rows: Any) -> tuple[TargetRows, Floats]:
    """Read the caller's rows, and compute the scores that a target must give."""
    frame = _open_rows(bundle, rows).collect()
    inputs = (TargetRows(frame.cast(pl.Float64).to_numpy()) if bundle.reads == "features"
              else golden.target_rows(bundle, frame))
    return inputs, bundle.scores(inputs.values)


def _open_rows(bundle: Bundle, rows: Any) -> pl.LazyFrame:
    """Select the columns that a bundle reads, from a table, a path or a sequence of texts."""
    columns = list(bundle.columns)
    try:
        if bundle.reads == "features":
            lazy = scan_table(_with_elements(rows, columns), columns)
            # Raises an error if a column is missing or not numeric.
            feature_columns(lazy, columns)
        elif is_table(rows):
            lazy = scan(rows, text=columns, tokens=bundle.token_columns)
        else:
            lazy = table_of_texts(rows, columns, bundle.token_columns).lazy()
    except SchemaError as error:
        if error.missing_role is None:
            raise
        # The usual error advises an option that names columns, which an export does not have.
        raise SchemaError(f"{error.problem}. An export reads the columns of its model: rename "
                          "yours") from None
    return lazy.select(columns)


def _with_elements(rows: Any, columns: Collection[str]) -> Any:
    """A table whose Arrays also have columns of their elements, which are the features."""
    whole, elements = scan_table(rows, []), list[pl.Expr]()
    schema = whole.collect_schema()
    for column, dtype in schema.items():
        names = feature_names(whole, [column]) if isinstance(dtype, pl.Array) else []
        elements += [pl.col(column).reshape((-1, len(names))).arr.get(k).alias(name)
                     for k, name in enumerate(names) if name in columns and name not in schema]
    return whole.with_columns(elements) if elements else rows


def compare(
    target: Target, bundle: Bundle, file: Path, rows: TargetRows, scores: Floats
) -> Verified:
    """Compare an engine's answers with the model's.

    ``file`` is the target's file, which the engine runs, and ``scores`` are the model's scores.

    Raises
    ------
    EngineMissing
        If the engine is not installed.
    ExportError
        If the engine fails.
    """
    try:
        answers = target.run(bundle, file, rows)
    except (EngineMissing, TextnbError, OSError):
        raise
    except Exception as error:
        # Each engine has its own types of errors.
        reason = first_line(error)[:300]
        raise ExportError(f"{target.name}: the engine failed: {reason}") from error
    if answers.scores.shape != scores.shape:
        raise ExportError(f"{target.name}: the engine answered "
                          f"{quantity(answers.scores.shape[0], 'row')} of "
                          f"{answers.scores.shape[1]} scores; expected {scores.shape[0]} of "
                          f"{scores.shape[1]}")
    score_errors = np.abs(answers.scores - scores)
    # The negation makes NaN wrong, too.
    is_wrong = ~(score_errors <= target.tolerance * np.maximum(1.0, np.abs(scores)))
    labels = bundle.decide(answers.scores) if answers.labels is None else answers.labels
    expected = bundle.expected_labels(scores, rows.values, target.tolerance)
    probability_errors, wrong_decisions = np.zeros((len(scores), 1)), []
    if "probability" in bundle.answers:
        probabilities = golden.probabilities(bundle, scores, rows.values)
        if answers.probabilities is None or answers.probabilities.shape != probabilities.shape:
            raise ExportError(f"{target.name}: the engine gave no probability for each class")
        probability_errors = np.abs(answers.probabilities - probabilities)
    if bundle.gives_decisions:
        expected_decisions = golden.decisions(bundle, scores, rows.values, target.tolerance)
        wrong_decisions = _differing_answers(
            target, "decision", expected_decisions, answers.decisions or [])
    return Verified(
        target.name, bundle.reads, rows=len(expected), tolerance=target.tolerance,
        largest_difference=float(score_errors.max(initial=0.0)),
        wrong_scores=_rows_with_any(is_wrong),
        wrong_labels=_differing_answers(target, "label", expected, labels),
        answers=bundle.answers, largest_error=float(probability_errors.max(initial=0.0)),
        wrong_probabilities=_rows_with_any(
            ~(probability_errors <= max(_MAX_PROBABILITY_ERROR, target.tolerance))),
        wrong_decisions=wrong_decisions)


def _rows_with_any(mask: NDArray[np.bool_]) -> list[int]:
    rows: list[int] = np.flatnonzero(mask.any(axis=1)).tolist()
    return rows


def _differing_answers(
    target: Target, kind: str, expected: list[Any], answers: list[Any]
) -> list[tuple[int, Any, Any]]:
    """(row, expected, answer) of each wrong answer; if None is expected, no answer is wrong."""
    if len(answers) != len(expected):
        raise ExportError(f"{target.name}: the engine answered {quantity(len(answers), kind)} of "
                          f"{quantity(len(expected), 'row')}")
    pairs = enumerate(zip(expected, answers, strict=True))
    return [(row, expected_answer, answer) for row, (expected_answer, answer) in pairs
            if expected_answer is not None and _with_type(expected_answer) != _with_type(answer)]


def _with_type(answer: Any) -> Any:
    """A label, or each label of a list, together with its type: True equals 1 otherwise."""
    return [*map(_with_type, answer)] if isinstance(answer, list) else (type(answer), answer)
