"""Reads a model file as a fitted classifier."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from textnb.files.archive import MAX_BYTES, reading_errors
from textnb.storage.archive import is_table_model, read_archive

if TYPE_CHECKING:
    from textnb.estimators.table import TableClassifier
    from textnb.estimators.text import TextClassifier


def load(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES
) -> TextClassifier | TableClassifier:
    """Read a model file. Nothing in it is executed.

    Parameters
    ----------
    path : path
    max_bytes : int
        A file whose contents would take more memory than this is refused.

    Returns
    -------
    TextClassifier or TableClassifier
        It is fitted: its weights are derived from the stored statistics, with the same bits.

    Raises
    ------
    ModelFileError
        If the file is truncated, changed, of a later format version, or declares too much.
    SourceError
        If it can't be opened.
    """
    name = os.fspath(path)
    manifest, tables = read_archive(path, max_bytes)
    # Imported where they are used: each kind of model needs others.
    if is_table_model(manifest):
        from textnb.estimators.table import TableClassifier
        from textnb.estimators.table_file import unpack_table

        table = unpack_table(name, manifest, tables, max_bytes)
        with reading_errors(name):
            return TableClassifier.from_file(*table)
    from textnb.estimators.text import TextClassifier
    from textnb.storage.textmodel import unpack_text

    return TextClassifier.of(unpack_text(name, manifest, tables, max_bytes))
