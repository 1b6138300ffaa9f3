"""The target of one Python file that needs only the standard library."""

from __future__ import annotations

import sys
from pathlib import Path

from textnb.export.bundle import Bundle
from textnb.export.targets.base import Program, TargetAnswers, TargetRows
from textnb.export.targets.embedded import embed_json, fill_template
from textnb.export.targets.program import program_usage, score_with_program


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
