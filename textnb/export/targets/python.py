"""The target of one Python file that needs only the standard library."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import Program, TargetAnswers, TargetRows
from textnb.export.targets.embedded import embed_json, fill_template
from textnb.export.targets.program import run_program


class Python(Program):
    """One Python file: a module, and a program from lines of JSON to lines of JSON."""

    name = "python"
    suffix = ".py"
    needs = "Python 3.8 or newer"

    def write(self, bundle: Bundle, path: Path) -> None:
        text = fill_template("python.txt", bundle,
                             DATA=embed_json(bundle, with_words=bundle.reads == "text"))
        path.write_text(text, "ascii", newline="\n")

    def usage(self, bundle: Bundle) -> str:
        return program_usage("python model.py", bundle)

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        # -I: nothing from the environment or the current folder is imported.
        return score_with_program([sys.executable, "-I", str(path)], bundle, rows)


def program_usage(command: str, bundle: Bundle) -> str:
    """Say how to use a program that reads and writes lines of JSON."""
    row = {"text": "a text", "terms": "a list of tokens", "features": "a list of numbers"}[
        bundle.reads]
    if bundle.reads == "text" and len(bundle.columns) > 1:
        row = "an object with a text for each column"
    label = "labels" if bundle.is_multilabel else "label"
    return (f"    {command} < rows.ndjson > answers.ndjson\n\n"
            f"A line of `rows.ndjson` is JSON: {row}. A line of `answers.ndjson` is an object "
            f"with `{label}` and `scores`. The file is a module too, and its first lines say what "
            "it has.")


def score_with_program(command: Sequence[str], bundle: Bundle, rows: TargetRows) -> TargetAnswers:
    """Score rows with a program that reads a JSON value per line and writes an object per line."""
    lines = "".join(json.dumps(value) + "\n" for value in _row_values(bundle, rows))
    # Without the option, the program answers only with scores and labels.
    if len(bundle.answers) > 1:
        command = [*command, "--answers", ",".join(bundle.answers)]
    output = run_program(command, lines.encode("ascii"))
    try:
        answers = [json.loads(line) for line in output.splitlines()]
        return TargetAnswers.of(
            bundle, [answer["scores"] for answer in answers],
            [answer["labels" if bundle.is_multilabel else "label"] for answer in answers],
            [answer["probabilities"] for answer in answers]
            if "probability" in bundle.answers else None,
            [answer["decision"] for answer in answers] if bundle.gives_decisions else None)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ExportError(f"the engine's answers can't be read: {error}") from None


def _row_values(bundle: Bundle, rows: TargetRows) -> Iterator[Any]:
    """The value of each row, which is written as a line of JSON."""
    if bundle.reads == "features":
        return iter(rows.features.tolist())
    if bundle.reads == "terms":
        return iter(rows.tokens.to_list())
    if rows.documents.width > 1:
        return rows.documents.iter_rows(named=True)
    return iter(rows.documents.to_series().to_list())
