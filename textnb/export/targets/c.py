"""A form as a C99 program without dependencies: ``model.c``, ``model.h``, and its data."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import EngineMissing, Program, TargetAnswers, TargetRows
from textnb.export.targets.c_data import pack
from textnb.export.targets.embedded import fill_template
from textnb.export.targets.program import run_program

# Larger data are a file: of 4 MB, gcc takes 1.3 s and 155 MB of memory, clang 0.5 s and 200 MB.
_EMBEDDED = 4 << 20


class C(Program):
    """Functions in C99 that read one block of bytes and allocate nothing.

    The block is in ``model.c``, or in ``model.bin`` if it is larger than a compiler likes.
    """

    name = "c"
    suffix = ".c"
    companions = (".h", ".bin")
    needs = "a C compiler"

    def write(self, bundle: Bundle, path: Path) -> None:
        data = pack(bundle)
        embedded = len(data) <= _EMBEDDED
        source = fill_template("c.txt", bundle, DATA=_data(data if embedded else b""))
        path.write_text(source, "ascii", newline="\n")
        path.with_suffix(".h").write_text(
            fill_template("c_header.txt", bundle), "ascii", newline="\n")
        if not embedded:
            path.with_suffix(".bin").write_bytes(data)

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        with tempfile.TemporaryDirectory(prefix="textnb-") as folder:
            program = compile_program(path, Path(folder))
            output = run_program(
                [str(program), bundle.reads if bundle.reads != "text" else "whole",
                 str(path.with_suffix(".bin"))], b"".join(_records(bundle, rows)))
        answers = read_answers(bundle, output)
        labels = (bundle.labels_of(answers["chosen"]) if bundle.is_multilabel
                  else bundle.labels_at(answers["label"].tolist()))
        return TargetAnswers.of(bundle, answers["scores"], labels, answers["probabilities"],
                                bundle.labels_at(answers["decision"].tolist()))


def read_answers(bundle: Bundle, output: bytes) -> NDArray[Any]:
    """The records that the program of `C.run` writes."""
    n = len(bundle.intercept)
    kind = np.dtype([("label", "i4"), ("decision", "i4"), ("scores", "f8", (n,)),
                     ("probabilities", "f8", (len(bundle.labels),)),
                     ("chosen", "u1", (n if bundle.is_multilabel else 0,))])
    if len(output) % kind.itemsize:
        raise ExportError("the engine's answers can't be read: the last is not whole")
    return np.frombuffer(output, kind)


def compile_program(path: Path, folder: Path, options: Sequence[str] = ("-O3",)) -> Path:
    """Compile a ``model.c`` with the program of `C.run`.

    Raises
    ------
    EngineMissing
        If there is no C compiler: ``$CC``, or ``cc``.
    """
    compiler = os.environ.get("CC") or "cc"
    found = shutil.which(compiler)
    if found is None:
        raise EngineMissing(f"there is no C compiler {compiler!r}: install one (Debian: gcc and "
                            "libc6-dev), or name yours in CC")
    main, program = folder / "run.c", folder / "run"
    template = resources.files(__package__).joinpath("templates", "c_run.txt")
    main.write_text(template.read_text("utf-8"), "ascii")
    run_program([found, "-std=c99", *options, "-I", str(path.parent), str(main), str(path), "-o",
                 str(program), "-lm"])
    return program


def _records(bundle: Bundle, rows: TargetRows) -> Iterator[bytes]:
    if bundle.reads == "features":
        for row in rows.features:
            yield struct.pack("=2Q", 0, row.nbytes) + row.astype("=f8").tobytes()
        return
    inputs: Iterable[Sequence[str | None]] = (
        rows.documents.iter_rows() if bundle.reads == "text"
        else (value or [] for value in rows.tokens.to_list()))
    for value in inputs:
        strings = [string or "" for string in value]
        encoded = [string.encode() for string in strings]
        whole = b"".join(encoded)
        yield struct.pack(f"={2 + len(encoded)}Q", len(encoded), len(whole),
                          *map(len, encoded)) + whole


def _data(data: bytes) -> str:
    head = "const void *textnb_embedded(size_t *size) {\n"
    if not data:
        return f"{head}    *size = 0;\n    return NULL;\n}}"
    # A machine whose numbers are big-endian finds no model here, and reads a file.
    numbers = [f"0x{value:x}" for value in np.frombuffer(data, "<u8").tolist()]
    lines = ",\n".join(",".join(numbers[at:at + 8]) for at in range(0, len(numbers), 8))
    return (f"static const uint64_t embedded[] = {{\n{lines}\n}};\n\n{head}"
            "    *size = sizeof embedded;\n    return embedded;\n}")
