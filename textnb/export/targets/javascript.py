"""A form as one ES module, for browsers and Node."""

from __future__ import annotations

import shutil
from pathlib import Path

from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import EngineMissing, Program, TargetAnswers, TargetRows
from textnb.export.targets.embedded import embed_json, fill_template
from textnb.export.targets.program import program_usage, score_with_program

# JavaScript rounds larger integers, and its engine V8 can't hold longer strings or larger Maps.
_MAX_INTEGER = 2**53 - 1
_MAX_CHARACTERS = 2**29 - 24
_MAX_TERMS = 2**24


class JavaScript(Program):
    """One ES module without dependencies, which is also a program for Node, as in `Python`."""

    name = "javascript"
    suffix = ".mjs"
    needs = "Node 18 or newer, or a browser"

    def write(self, bundle: Bundle, path: Path) -> None:
        for label in bundle.labels:
            if isinstance(label, int) and abs(label) > _MAX_INTEGER:
                raise ExportError.naming_settings(
                    "label {label} is beyond 2**53 - 1, where JavaScript's numbers are no longer "
                    "exact; make labels strings and train again, or use {to='python'}", label=label)
        # A quoted string, which engines read several times as fast as a template literal; a
        # backslash at the end of a line continues it.
        data = embed_json(bundle, with_words=bundle.reads == "text")
        string_body = data.replace("\\", r"\\").replace("\n", "\\\n")
        text = fill_template("javascript.txt", bundle, DATA=string_body)
        if len(text) > _MAX_CHARACTERS or len(bundle.terms) > _MAX_TERMS:
            raise ExportError.naming_settings(
                "{terms:,} terms in {size:,} characters are more than a JavaScript engine holds in "
                "one file; keep fewer ({top}), or use {to='json'}", terms=len(bundle.terms),
                size=len(text))
        path.write_text(text, "ascii", newline="\n")

    def usage(self, bundle: Bundle) -> str:
        return program_usage("node model.mjs", bundle)

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        node = shutil.which("node")
        if node is None:
            raise EngineMissing("Node is not installed: https://nodejs.org")
        return score_with_program([node, str(path)], bundle, rows)
