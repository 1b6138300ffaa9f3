"""Chooses the terms that get a column: by limits on documents, by number, or from a list.

Columns are in the order of the sorted terms (by code point), so that they do not depend on the
order of rows, on chunks or on threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from textnb.errors import Mention, ParameterError, VocabularyError, quantity
from textnb.runtime.settings import COUNT, CountOrShare, check_settings, setting
from textnb.runtime.unicode import unicode_errors

# NumPy and Polars are imported where terms are chosen: a filter checks `Limits` without them.
if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from textnb.bayes.counts import Counts


@dataclass(frozen=True)
class Limits:
    """Limits on terms, with the same meaning as in scikit-learn's `CountVectorizer`.

    Parameters
    ----------
    min_df, max_df : int or float
        The minimum and maximum number of documents (int), or share of the documents (float in
        [0, 1]), in which a term occurs.
    max_features : int or None
        Keep this number of terms, those of the highest total counts; ties go to the smaller term.

    Examples
    --------
    >>> import numpy as np
    >>> terms = ["a", "b", "c", "d"]
    >>> df, total = np.array([1, 2, 3, 3]), np.array([9, 5, 5, 3])
    >>> Limits(min_df=2, max_features=2).select(4, df, total, documents=3).tolist()
    [False, True, True, False]
    """

    min_df: CountOrShare = 1
    max_df: CountOrShare = 1.0
    max_features: int | None = setting(None, range=COUNT)

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def need_document_frequency(self) -> bool:
        """Whether ``min_df`` or ``max_df`` may leave terms out."""
        allows_rare = self.min_df == 0.0 or (isinstance(self.min_df, Integral) and self.min_df == 1)
        allows_frequent = self.max_df == 1.0 and not isinstance(self.max_df, Integral)
        return not (allows_rare and allows_frequent)

    def bounds(self, documents: int) -> tuple[float, float]:
        """The minimum and maximum number of documents that hold a term.

        Raises
        ------
        ParameterError
            If ``max_df`` asks for fewer documents than ``min_df``.
        """
        min_documents = _number_of(self.min_df, documents)
        max_documents = _number_of(self.max_df, documents)
        if max_documents < min_documents:
            raise ParameterError.naming_settings(
                "{max_documents} of {documents} is fewer than {min_documents}: no term can be "
                "within both",
                max_documents=Mention("max_df", repr(self.max_df)),
                documents=quantity(documents, "document"),
                min_documents=Mention("min_df", repr(self.min_df)))
        return min_documents, max_documents

    def within(self, counts: Counts) -> NDArray[np.bool_]:
        """`select` for the terms of counts."""
        return self.select(counts.n_features, counts.document_frequency, counts.total_occurrences,
                           counts.documents)

    def select(
        self, n_terms: int, document_frequency: NDArray[np.int64] | None, total: NDArray[Any],
        documents: int,
    ) -> NDArray[np.bool_]:
        """A mask of the terms that are within the limits.

        Parameters
        ----------
        n_terms : int
        document_frequency : int64 (n_terms,), or None
            The number of documents that hold each term; None if the limits do not need it.
        total : (n_terms,)
            The number of occurrences of each term.
        documents : int
            The number of all documents.

        Raises
        ------
        VocabularyError
            If no term is within the limits.
        ParameterError
            If ``max_df`` asks for fewer documents than ``min_df``.
        """
        import numpy as np

        keep = np.ones(n_terms, dtype=np.bool_)
        if document_frequency is not None:
            min_documents, max_documents = self.bounds(documents)
            keep &= (document_frequency >= min_documents) & (document_frequency <= max_documents)
        if self.max_features is not None and keep.sum() > self.max_features:
            terms = np.flatnonzero(keep)
            # A stable sort, so that of terms with equal totals the smaller one comes first.
            order = np.argsort(-total[terms], kind="stable")
            keep[terms[order[self.max_features:]]] = False
        if not keep.any():
            raise VocabularyError.all_pruned(n_terms, self.min_df, self.max_df, documents)
        return keep


def _number_of(limit: int | float, documents: int) -> float:
    """A limit as a number of documents."""
    return float(limit) if isinstance(limit, Integral) else float(limit) * documents


def vocabulary_series(terms: Sequence[str] | pl.Series) -> pl.Series:
    """A user's vocabulary as sorted terms.

    Raises
    ------
    ParameterError
        If it is empty, or holds something other than strings, or a term twice.
    """
    import polars as pl

    expected = "vocabulary must be a list of strings"
    if isinstance(terms, (str, bytes, Mapping)):
        raise ParameterError(f"{expected}; got {type(terms).__name__}")
    try:
        terms = terms if isinstance(terms, pl.Series) else list(terms)
        with unicode_errors(terms, "term"):
            series = (terms if isinstance(terms, pl.Series)
                      else pl.Series("term", terms, dtype=pl.String, strict=True))
        if series.dtype != pl.String:
            raise TypeError(f"got {series.dtype}")
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise ParameterError(f"{expected}: {str(error).splitlines()[0][:200]}") from None
    if series.is_empty() or series.null_count():
        raise ParameterError("vocabulary must hold one term or more, and no null")
    ordered = series.sort().alias("term")
    duplicates = ordered.filter(ordered == ordered.shift(1))
    if len(duplicates):
        raise ParameterError(f"vocabulary holds {duplicates[0]!r} more than once")
    return ordered
