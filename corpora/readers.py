"""The published forms that several corpora share: lines, CSV records, a folder per class.

Plain Python on purpose: a corpus is read once, and a wrong byte must be reported with its line,
which a vectorised reader doesn't know.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from pathlib import Path

import polars as pl

from corpora.card import Label
from textnb.errors import SourceError
from textnb.frames.scan import scan


def decoded(file: Path, encoding: str = "utf-8") -> str:
    """Read a text file; a byte that is not in the encoding is reported with its line."""
    data = file.read_bytes()
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError.unreadable(
            str(file), f"line {line}: byte 0x{data[error.start]:02x} is not {encoding}"
        ) from error


def tab_separated(file: Path, labels: Collection[Label]) -> pl.DataFrame:
    """Read lines `label<TAB>text`: no header, no quoting, a further tab belongs to the text."""
    # Not splitlines(): it also breaks at U+0085 and form feeds, which occur inside messages.
    lines = decoded(file).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise SourceError.unreadable(str(file), "it is empty")
    pairs = []
    for number, line in enumerate(lines, start=1):
        label, tab, text = line.removesuffix("\r").partition("\t")
        if not tab:
            raise SourceError.unreadable(
                str(file), f"line {number}: expected label<TAB>text, got {line[:60]!r}"
            )
        pairs.append((known_label(file, number, label, labels), text))
    return pl.DataFrame(pairs, schema={"label": pl.String, "text": pl.String}, orient="row")


def csv_records(file: Path, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (last line, fields) for each record of a CSV file, all of the same width."""
    # newline="" leaves line ends inside quoted fields as they are; utf-8-sig drops a BOM.
    reader = csv.reader(io.StringIO(decoded(file, "utf-8-sig"), newline=""), strict=True)
    count = 0
    try:
        for fields in reader:
            if len(fields) != width:
                raise SourceError.unreadable(
                    str(file),
                    f"line {reader.line_num}: expected {width} fields, got {len(fields)}",
                )
            count += 1
            yield reader.line_num, fields
    except csv.Error as error:
        raise SourceError.unreadable(str(file), f"line {reader.line_num}: {error}") from error
    if not count:
        raise SourceError.unreadable(str(file), "it is empty")


def known_label(file: Path, line: int, label: str, labels: Collection[Label]) -> str:
    """Return `label` if it is one of the corpus's; say where it stands if it isn't."""
    if label not in labels:
        raise SourceError.unreadable(
            str(file), f"line {line}: unknown label {label[:60]!r}; expected one of "
            f"{', '.join(sorted(map(str, labels)))}"
        )
    return label


def class_folders(
    folder: Path, labels: Collection[Label], encoding: str, ignored: Collection[str] = ()
) -> pl.LazyFrame:
    """Scan a folder with one sub-folder per class: columns label, text, path; by path."""
    wanted = sorted(map(str, labels))
    expected = ", ".join(wanted)
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {folder}; expected the class folders {expected} in it")
    found = {
        entry.name
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.name.startswith(".")
    }
    for problem, names in (
        ("no class folder", set(wanted) - found),
        ("unknown class folder", found - set(wanted) - set(ignored)),
    ):
        if names:
            raise SourceError.unreadable(
                str(folder), f"{problem} {', '.join(sorted(names))}; expected {expected}"
            )
    # The format is said because readmes and lists lie beside the class folders.
    rows = scan(folder, format="folder", encoding=encoding)
    return rows.filter(~pl.col("label").is_in(list(ignored))) if ignored else rows


def file_name() -> pl.Expr:
    """Return the last part of the column `path`."""
    return pl.col("path").str.extract(r"([^/\\]+)$")
