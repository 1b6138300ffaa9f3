"""A form as one Java class without dependencies: ``Model.java``, and its data in ``Model.bin``."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from textnb.bayes.features import Step
from textnb.errors import ExportError
from textnb.export.bundle import ANSWERS, Bundle
from textnb.export.targets.base import EVERY, RANKS, EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.c_data import pack
from textnb.export.targets.embedded import fill_template
from textnb.export.targets.program import run_program
from textnb.export.targets.python import score_with_program
from textnb.text.casing import TURKIC

# Java's arrays hold no more bytes.
_MOST = 2**31 - 16


class Java:
    """One class that reads the data of the C program; it is also a program, as in `Python`."""

    name: ClassVar[str] = "java"
    suffix: ClassVar[str] = ".java"
    stem: ClassVar[str] = "Model"
    companions: ClassVar[tuple[str, ...]] = (".bin",)
    reads: ClassVar[tuple[str, ...]] = ("text", "terms", "features")
    tolerance: ClassVar[float] = 1e-9
    steps: ClassVar[tuple[type[Step], ...]] = EVERY
    decides: ClassVar[tuple[str, ...]] = RANKS
    answers: ClassVar[tuple[str, ...]] = ANSWERS
    needs: ClassVar[str] = "a JDK, 11 or newer (javac and java)"

    def write(self, bundle: Bundle, path: Path) -> None:
        data = pack(bundle)
        if len(data) > _MOST:
            raise ExportError(f"{len(data):,} bytes are more than an array of Java holds; keep "
                              "fewer terms (--top), or use --to c")
        strings = all(isinstance(label, str) for label in bundle.labels)
        # A string literal in JSON is one in Java.
        replaced = "".join(f".replace({json.dumps(old)}, {json.dumps(new)})"
                           for old, new in TURKIC)
        columns = json.dumps(list(bundle.columns if bundle.reads == "text" else []))[1:-1]
        source = fill_template("java.txt", bundle, STRINGS=str(strings).lower(), TURKIC=replaced,
                               COLUMNS=columns)
        path.write_text(source, "ascii", newline="\n")
        path.with_suffix(".bin").write_bytes(data)

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        java = _find("java")
        with tempfile.TemporaryDirectory(prefix="textnb-") as folder:
            compile_class(path, Path(folder))
            return score_with_program(
                [java, "-cp", folder, "Model", str(path.with_suffix(".bin"))], bundle, rows)


def compile_class(path: Path, folder: Path) -> None:
    """Compile a ``Model.java`` for Java 11, where a warning is an error.

    Raises
    ------
    EngineMissing
        If there is no ``javac``.
    """
    compiler = _find("javac")
    for name, content in _compiled(path.read_text("ascii"), compiler).items():
        (folder / name).write_bytes(content)


# Models of one version differ in their data, and hardly in their source.
@lru_cache(maxsize=4)
def _compiled(source: str, compiler: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="textnb-") as own:
        # The compiler wants the name of the class, which the file may have lost.
        file = Path(own, "Model.java")
        file.write_text(source, "ascii")
        run_program([compiler, "--release", "11", "-Xlint:all", "-Werror", "-d", own, str(file)])
        return {found.name: found.read_bytes() for found in Path(own).glob("*.class")}


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise EngineMissing(f"there is no {program}: install a JDK, 11 or newer (Debian: "
                            "openjdk-17-jdk-headless)")
    return found
