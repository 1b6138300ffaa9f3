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
        A file whose contents would take more memory than this is refused.
    segmenter : callable, optional
        The function that splits texts, of a model that has learned with ``Tokenizer(segmenter=)``.
        Without it the model reads lists of tokens: a file names the function and never imports it.

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
    ParameterError
        If there is a segmenter and the model has another one, or none.
    """
    name = os.fspath(path)
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
