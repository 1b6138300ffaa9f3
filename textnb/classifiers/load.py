"""Reads a model file as a fitted classifier."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from textnb.errors import ParameterError
from textnb.files.archive import MAX_BYTES
from textnb.files.require import reading_errors
from textnb.storage.textmodel import is_table_model, read_model, unpack_text

if TYPE_CHECKING:
    from textnb.classifiers.table import TableClassifier
    from textnb.classifiers.text import TextClassifier


def load(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES,
    segmenter: Callable[[str], Iterable[str]] | None = None,
) -> TextClassifier | TableClassifier:
    """Read a model file. Nothing in it is executed.

    Parameters
    ----------
    path : path
    max_bytes : int
        Files whose contents would take more memory are refused.
    segmenter : callable, optional
        The function that splits texts, for a model that was fitted with ``Tokenizer(segmenter=)``.
        The file only has its name, and nothing is imported: without the function, the model reads
        lists of tokens.

    Returns
    -------
    TextClassifier or TableClassifier
        Fitted, with the bits of the model that was saved.

    Raises
    ------
    ModelFileError
        If the file is truncated, damaged, of a later format version, or larger than ``max_bytes``.
    SourceError
        If it can't be opened.
    ParameterError
        If ``segmenter`` is given, but the model was fitted with another one, or with none.
    """
    name = os.fspath(path)
    # The JSON of the file, and its arrays by name.
    document, arrays = read_model(path, max_bytes)
    # Imported here, because each kind of model needs other modules.
    if is_table_model(document):
        if segmenter is not None:
            raise ParameterError(f"{name} is a model of feature tables, and has no segmenter")
        from textnb.classifiers.table import TableClassifier
        from textnb.storage.table_file import unpack_table

        settings, names, estimator = unpack_table(name, document, arrays, max_bytes)
        with reading_errors(name):
            return TableClassifier(**settings).set_fitted(
                estimator, list(settings["features"]), names)
    from textnb.classifiers.text import TextClassifier

    fitted = unpack_text(name, document, arrays, max_bytes)
    return TextClassifier.of(fitted if segmenter is None else fitted.with_segmenter(segmenter))
