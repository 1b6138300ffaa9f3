"""Verbs by which a model leaves for another system: export, verify, describe."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from textnb.cli.console import as_json, note, out, steps, verb
from textnb.cli.evidence import note_stale
from textnb.cli.inputs import (
    Encoding,
    Format,
    InputFormat,
    Model,
    Query,
    Quiet,
    StorageOption,
    Where,
    check_format,
    reading,
    rows,
    text_columns,
)


@verb
def export(
    model: Model,
    output: Annotated[str, typer.Option(
        "--output", "-o", help="Folder to make, .zip, or file of the target's own ending.")],
    to: Annotated[str | None, typer.Option(
        help="json, parquet, csv, npz, liblinear, onnx, sql-duckdb, sql-postgres, sql-sqlite, "
             "python, javascript or polars.  [default: by the output's ending]")] = None,
    positive: Annotated[str | None, typer.Option(
        help="Of two classes: one w and b, above 0 where this class wins.")] = None,
    input: Annotated[str | None, typer.Option(
        help="text (the target splits it) or terms (it is given tokens).  "
             "[default: what the target can do]")] = None,
    top: Annotated[int | None, typer.Option(
        help="Keep the N terms that can move a decision most.")] = None,
    max_bytes: Annotated[str | None, typer.Option(
        help="Keep as many terms as a file of this size holds, such as 500K or 5M.")] = None,
    check: Annotated[str | None, typer.Option(
        help="File of texts on which decisions that pruning flips are counted.")] = None,
    storage_option: StorageOption = None,
    query: Query = None,
    quiet: Quiet = False,
) -> None:
    """Write a model for another system: weights, tokenizer, and golden rows to prove it."""
    from textnb.cli.settings import as_label
    from textnb.errors import ParameterError
    from textnb.estimators.load import load
    from textnb.export.targets.known import target_of_path
    from textnb.export.write import export_model
    from textnb.frames.cloud import shown
    from textnb.learning.memory_limit import byte_size

    if input not in (None, "text", "terms"):
        raise ParameterError.unknown_choice("--input", input, ("text", "terms"))
    if check is None and (query is not None or storage_option):
        raise ParameterError("--query and --storage-option are for the rows of --check: name them")
    size = None if max_bytes is None else byte_size("--max-bytes", max_bytes)
    if to is None:
        to = target_of_path(output).name
    classifier = load(model)
    label = None if positive is None else as_label(positive, classifier.classes_)
    frame = None if check is None else rows(
        check, None, None, "utf-8", text_columns(classifier), None, storage=storage_option,
        query=query)
    reads: Any = input
    with reading(check or model), steps("exporting", quiet) as progress:
        exported = export_model(classifier, output, to, positive=label, reads=reads, top=top,
                                max_bytes=size, check=frame, progress=progress)
    note_stale(classifier)
    if quiet:
        return
    pruned = exported.pruned
    if pruned is not None and not pruned["dropped"]:
        note(f"all {pruned['kept']:,} terms are kept")
    elif pruned is not None:
        note(f"{pruned['kept']:,} terms kept, {pruned['dropped']:,} left out: each token of those "
             f"moves the difference of two scores by at most {pruned['worst_per_token']:.4g}")
        if "rows" in pruned:
            note(f"{pruned['flipped']:,} of {pruned['rows']:,} rows of {shown(check or '')} are "
                 "decided otherwise (largest change of a difference of scores: "
                 f"{pruned['largest_difference']:.4g})")
    chosen = [name for name in ("calibration", "decision")
              if getattr(classifier, f"{name}_", None) is not None]
    if pruned is not None and pruned["dropped"] and chosen:
        note(f"note: the model's {' and '.join(chosen)} held with all terms: what is exported has "
             "none")
    elif "decision" in chosen:
        # A target's answer is the most probable class, by the sign of a score where there is one.
        note("note: the model has a decision: its thresholds are in form.json, and not in what the "
             "target answers" + ("" if positive is None else
                                 f": {positive} wins where its score is above 0"))
    what = {"text": "texts", "terms": "tokens", "features": "features"}[exported.reads]
    beside = f" (and {output}.bundle.zip, which proves it)" if exported.single else ""
    note(f"{exported.target}, scores {what} -> {output}{beside}")


@verb
def verify(
    path: Annotated[str, typer.Argument(help="Bundle, or the file of a target beside its bundle.")],
    input: Annotated[str | None, typer.Argument(
        help="File of rows to compare on, instead of the golden rows.")] = None,
    format: Format = "text",
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    query: Query = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Run golden rows through the real engine and compare; exit code 1 on any difference."""
    from textnb.errors import ParameterError
    from textnb.export.verify import verify_export

    check_format(format)
    if input is None and (query is not None or storage_option):
        raise ParameterError("--query and --storage-option are for the rows of INPUT: name them")
    frame = None if input is None else rows(
        input, where, input_format, encoding, None, None, storage=storage_option, query=query)
    with reading(input or path), steps("verifying", quiet) as progress:
        found = verify_export(path, frame, progress=progress)
    if format == "json":
        out(as_json({"target": found.target, "reads": found.reads, "rows": found.rows,
                     "largest_difference": found.largest_difference, "passed": found.passed,
                     "tolerance": found.tolerance, "wrong_scores": found.wrong_scores,
                     "wrong_labels": [{"row": row, "expected": want, "got": got}
                                      for row, want, got in found.wrong_labels]}))
    else:
        for row in found.wrong_scores:
            out(f"row {row}: a score differs by more than {found.tolerance:g}")
        for row, want, got in found.wrong_labels:
            out(f"row {row}: label {got!r}, expected {want!r}")
        out(f"{found.target}: {found.rows:,} rows, largest difference of a score "
            f"{found.largest_difference:.3g}, {len(found.wrong_labels)} labels differ")
    if not found.passed:
        raise typer.Exit(1)


@verb
def describe(model: Model, format: Format = "text") -> None:
    """Show what a receiver of a model must know."""
    from textnb.cli.tables import show_description
    from textnb.estimators.load import load
    from textnb.export.describe import describe_model

    check_format(format)
    described = describe_model(load(model))
    if format == "json":
        out(as_json(described))
    else:
        show_description(described)
