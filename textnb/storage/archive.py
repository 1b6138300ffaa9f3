"""The model file: a document and tables <-> arrays in checked blocks (`textnb.storage.version2`).

Nothing in a file is code. A file is written under another name and then renamed, so that it is
whole or absent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import polars as pl

from textnb.errors import ModelFileError
from textnb.files.archive import MAX_BYTES, reading_errors
from textnb.files.blocks import FORMAT, VERSION, Blocks
from textnb.runtime.forks import check_fork
from textnb.storage import version2
from textnb.storage.row_sample import SAMPLE
from textnb.storage.tablearrays import table_array_names, table_arrays, table_tables
from textnb.storage.textarrays import (
    check_derived,
    text_array_names,
    text_arrays,
    text_tables,
)

__all__ = ["FORMAT", "VERSION", "is_table_model", "read_archive", "stated_checksum",
           "write_archive"]


def write_archive(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]
) -> None:
    """Write a model's document and its tables, whole or not at all.

    Parameters
    ----------
    path : path
    manifest : mapping
        JSON-ready; the format, its version and the arrays are added.
    tables : mapping of str to DataFrame
    """
    check_fork(works=True)
    if is_table_model(manifest):
        version2.write(path, manifest, table_arrays(manifest, tables))
    else:
        # Rows are private, as the mail is.
        version2.write(path, *text_arrays(manifest, tables), for_owner=SAMPLE in manifest)


def read_archive(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """The document and tables of a model file, after checking every byte.

    Parameters
    ----------
    path : path
    max_bytes : int
        A file that declares more than this in memory is refused.

    Returns
    -------
    manifest : dict
    tables : dict of str to DataFrame

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, of a later version, or declares too much.
    SourceError
        If there is no such file or it can't be opened.
    """
    name = os.fspath(path)
    check_fork(works=True)
    document, arrays = version2.read(path, max_bytes, _array_names)
    with reading_errors(name):
        if is_table_model(document):
            return document, table_tables(document, arrays)
        if "period" in document["settings"]:
            raise ModelFileError(f"{name} counts by periods of time, which this textnb no longer "
                                 "does. Train the model again, without them")
        tables = text_tables(document, arrays)
        check_derived(document, arrays)
        return document, tables


def stated_checksum(path: str | os.PathLike[str]) -> str:
    """The checksum that a model file states at its end.

    Raises
    ------
    ModelFileError
        If the file's version is not known.
    SourceError
        If there is no such file or it can't be read.
    """
    name = os.fspath(path)
    with reading_errors(name), version2.open_file(name) as descriptor:
        return Blocks(descriptor, name).checksum


def is_table_model(document: Mapping[str, Any]) -> bool:
    """Whether a document is that of a model of feature tables."""
    return document.get("kind") == "TableClassifier"


def _array_names(document: dict[str, Any]) -> Any:
    return table_array_names(document) if is_table_model(document) else text_array_names(document)
