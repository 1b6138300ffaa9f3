"""What words share, as the settings say: subwords, which are parts of words, and vectors.

    terms of labelled rows -> their subwords and vectors, and a weight for either kind -> Sharing
    words of unlabelled texts, or of the table of vectors -> words that share something with terms
    -> columns without counts in the matrix of the labelled rows

So a word that no labelled row has gets a weight in the `LinearForm`, and so in files, explanations
and exports, but no counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from textnb.bayes.features import count_by_column, weigh_by_column
from textnb.errors import ParameterError
from textnb.frames.failures import naming_source
from textnb.learning.documents import DocumentTermMatrix
from textnb.learning.fitted import Fitted
from textnb.learning.parameters import TABLE
from textnb.learning.settings import UNLABELLED
from textnb.learning.text_settings import TextSettings
from textnb.learning.unlabelled import collect_words, open_unlabelled, tokenize_words
from textnb.runtime.caller import warn_caller
from textnb.text.matrix import CountMatrix, choose_columns

if TYPE_CHECKING:
    from textnb.bayes.forms import Floats
    from textnb.bayes.sharing import Sharing, TermVectors
    from textnb.learning.vectors import WordVectors

# With fewer rows, the choice of a weight of vectors by left-out rows would be chance.
_MIN_ROWS = 500
# For each new word that may be added, this number of words is tried: subwords of all words would
# take too much memory.
_WORDS_TRIED_PER_ADDED = 5


def share_weights(
    settings: TextSettings, rows: DocumentTermMatrix, unlabelled: Any
) -> tuple[TextSettings, DocumentTermMatrix, Sharing | None]:
    """Choose the weight of vectors, add columns for new words, and find out what words share.

    Parameters
    ----------
    settings : TextSettings
    rows : DocumentTermMatrix
    unlabelled : table, path or sequence of str, optional
        Texts with new words; without them, the new words are the first of a table of vectors.

    Returns
    -------
    settings : TextSettings
        With the weight of vectors.
    rows : DocumentTermMatrix
        With a column without counts for each new word.
    sharing : Sharing or None
        What the terms of the columns share; None if they share nothing.

    Raises
    ------
    ParameterError
        If unlabelled texts would change nothing.
    """
    with naming_source(unlabelled):
        texts = None if unlabelled is None else open_unlabelled(settings, unlabelled)
        new_words = None if texts is None else collect_words(settings, texts)
        settings, vectors = _find_vectors(settings, rows, new_words, texts)
    if vectors is not None:
        settings = _choose_weight(settings, rows, vectors)
        if not settings.parameters["vector_weight"]:
            vectors = None
    if new_words is None and vectors is not None and settings.vocabulary is None:
        new_words = tokenize_words(settings, vectors.words)
    wide_rows = rows if new_words is None else _add_terms(settings, rows, new_words, vectors)
    sharing = _sharing_of_rows(settings, wide_rows, vectors)
    if sharing is None and new_words is not None:
        if settings.parameters["vectors"] is None:
            raise ParameterError.naming_settings(
                "{unlabelled} texts change nothing: there are fewer than 20 with words that "
                "several have, and the labelled words share no parts")
        return settings, rows, None
    return settings, wide_rows, sharing


def sharing_of(
    settings: TextSettings, terms: pl.Series, counts: CountMatrix, weights: Floats | None = None,
    vectors: WordVectors | None = None,
) -> Sharing | None:
    """What the terms of rows share, as the settings say; None if they share nothing.

    Parameters
    ----------
    settings : TextSettings
    terms : Series of String
    counts : csr_array (n_rows, n_terms)
    weights : float64 (n_rows,), optional
        The weights of the rows.
    vectors : WordVectors, optional
    """
    # Imported here, as it imports SciPy.
    from textnb.bayes.sharing import Sharing

    parameters, sharing = settings.parameters, None
    if parameters["subwords"] is not None:
        rows_with_term, n_rows = (
            (count_by_column(counts), float(counts.shape[0])) if weights is None else
            (weigh_by_column(counts, weights), float(weights.sum())))
        sharing = Sharing.of_words(
            terms.to_list(), parameters["subwords"], rows_with_term, n_rows,
            weight=parameters["sharing"], prefixes=_prefixes(settings))
    if vectors is None or not parameters["vector_weight"]:
        return sharing
    if sharing is None:
        sharing = Sharing.without_subwords(len(terms))
    return replace(sharing, vectors=_term_vectors(settings, terms, vectors),
                   vector_weight=float(parameters["vector_weight"]))


def _sharing_of_rows(
    settings: TextSettings, rows: DocumentTermMatrix, vectors: WordVectors | None
) -> Sharing | None:
    """What the terms of labelled rows share."""
    return sharing_of(settings, rows.terms, rows.counts, rows.weights, vectors)


def _prefixes(settings: TextSettings) -> list[str]:
    """The prefixes of terms that name their text columns."""
    return settings.tokenizer.plan().prefixes(settings.columns)


def _words(settings: TextSettings, terms: pl.Series) -> pl.Series:
    """The word of each term, without the prefix of its column; null for an n-gram of words."""
    from textnb.bayes.sharing import without_prefixes

    words = pl.Series(without_prefixes(terms.to_list(), _prefixes(settings)), dtype=pl.String)
    return words.set(words.str.contains(" ", literal=True), None)


def _find_vectors(
    settings: TextSettings, rows: DocumentTermMatrix, new_words: pl.Series | None,
    texts: pl.LazyFrame | None,
) -> tuple[TextSettings, WordVectors | None]:
    """The settings with the kind of vectors, and the vectors of labelled and new words.

    ``texts`` are the unlabelled texts, and ``new_words`` their words; None without such texts.
    Without a table of vectors, vectors are learned from the unlabelled texts.
    """
    from textnb.learning.vectors import read_vectors, vectors_of_texts

    setting = settings.parameters["vectors"]
    if setting is None or _is_named(setting, UNLABELLED):
        if texts is None:
            # Fits in cross-validation, and new fits of a loaded model, get no unlabelled texts.
            return settings if setting is None else settings.without_unlabelled_vectors(), None
        weight = settings.parameters["vector_weight"]
        vectors = vectors_of_texts(settings, texts) if setting or weight != 0 else None
        if vectors is None and weight:
            raise ParameterError.naming_settings(
                "{unlabelled} texts are too few to learn vectors from: give 20 or more, or no "
                "{vector_weight}")
        return (settings if vectors is None else settings.with_unlabelled_vectors()), vectors
    if _is_named(setting, TABLE):
        raise ParameterError("the vectors of this model came from a table, which its file does "
                             "not hold: set vectors to the table again, to fit it")
    terms = rows.terms if new_words is None else pl.concat([rows.terms, new_words])
    words = _words(settings, terms).drop_nulls().unique(maintain_order=True)
    # Without unlabelled texts, the new words are the first words of the vectors.
    n_first = settings.max_new_words if new_words is None else 0
    return settings, read_vectors(setting, words, n_first=n_first)


def _is_named(setting: Any, name: str) -> bool:
    """Whether the setting is this name, and not a table, whose ``==`` would compare cells."""
    return isinstance(setting, str) and setting == name


def _term_vectors(
    settings: TextSettings, terms: pl.Series, vectors: WordVectors
) -> TermVectors | None:
    """The vectors of terms, centered; None if no term has one."""
    from textnb.bayes.sharing import TermVectors

    # For each term, the row of its word among the vectors; null if its word has none.
    rows = pl.DataFrame({"word": _words(settings, terms)}).join(
        pl.DataFrame({"word": vectors.words}).with_row_index("row"), on="word", how="left",
        maintain_order="left")["row"]
    columns = rows.is_not_null().arg_true().to_numpy().astype(np.int64)
    if not len(columns):
        return None
    return TermVectors.centered(columns, vectors.values[rows.drop_nulls().to_numpy()], len(terms))


def _choose_weight(
    settings: TextSettings, rows: DocumentTermMatrix, vectors: WordVectors
) -> TextSettings:
    """The settings with a weight of vectors, which is chosen for the rows if none was set."""
    from textnb.bayes.linear import choose_vector_weight
    from textnb.bayes.sharing import (
        WEIGHT_OF_OWN_VECTORS,
        mean_words_per_row,
        reduce_for_rows,
        weight_for_row_length,
    )

    if _term_vectors(settings, rows.terms, vectors) is None:
        warn_caller("no word of the labelled texts has a vector: these change nothing. Take "
                    "vectors of their language")
        return settings.with_vector_weight(0.0)
    if settings.parameters["vector_weight"] is not None:
        return settings
    n_rows = rows.counts.shape[0]
    mean_words = mean_words_per_row(rows.terms.to_list(), count_by_column(rows.counts), n_rows)
    # Own vectors are learned from the unlabelled texts. The more labelled rows a class has, the
    # less vectors add to them.
    is_own = _is_named(settings.parameters["vectors"], UNLABELLED)
    weight = WEIGHT_OF_OWN_VECTORS if is_own else weight_for_row_length(mean_words)
    settings = settings.with_vector_weight(
        reduce_for_rows(weight, n_rows / len(rows.labels.classes)))
    sharing = _sharing_of_rows(settings, rows, vectors)
    if n_rows < _MIN_ROWS or sharing is None or not sharing.has_vectors:
        return settings
    return settings.with_vector_weight(choose_vector_weight(
        settings.model, rows.counts, rows.labels, rows.weights, settings.binary, sharing))


def _add_terms(
    settings: TextSettings, rows: DocumentTermMatrix, new_words: pl.Series,
    vectors: WordVectors | None,
) -> DocumentTermMatrix:
    """The matrix with a column for each new word with a vector or a subword of a labelled word.

    ``max_features`` limits the labelled and the new words together.
    """
    # Imported here, as it imports SciPy.
    from textnb.bayes.subwords import subword_matrix

    max_added = settings.max_new_words
    max_tried = _WORDS_TRIED_PER_ADDED * max_added
    new_words = new_words.filter(~new_words.is_in(rows.terms.implode())).head(max_tried)
    is_candidate = np.zeros(len(new_words), dtype=np.bool_)
    if vectors is not None:
        has_vector = _words(settings, new_words).is_in(vectors.words.implode())
        is_candidate |= has_vector.fill_null(False).to_numpy()
    if (lengths := settings.parameters["subwords"]) is not None:
        # The space stands for an n-gram of words, which has no subwords.
        words = _words(settings, pl.concat([rows.terms, new_words])).fill_null(" ").to_list()
        subwords = subword_matrix(words, *lengths)
        is_known = np.bincount(subwords[:len(rows.terms)].indices, minlength=subwords.shape[1]) > 0
        is_candidate |= subwords[len(rows.terms):] @ is_known.astype(np.float64) > 0
    if (limit := settings.limits.max_features) is not None:
        max_added = max(0, min(max_added, limit - len(rows.terms)))
    new_terms = new_words.filter(pl.Series(is_candidate)).head(max_added)
    terms = pl.concat([rows.terms, new_terms]).sort()
    columns = terms.search_sorted(rows.terms).to_numpy().astype(np.int32)
    return replace(rows, terms=terms, counts=choose_columns(rows.counts, columns, len(terms)))


def n_words_without_counts(fitted: Fitted) -> int:
    """How many terms occur in no labelled row; 0 if words share nothing."""
    settings = fitted.settings
    # If rows were forgotten since the fit, a word without counts may have been in labelled rows.
    if (not settings.shares_weights or settings.vocabulary is not None
            or fitted.since_fit is not None):
        return 0
    return int((fitted.counts.total_counts == 0).sum())


def subword_weight(fitted: Fitted) -> float | None:
    """The weight of subwords in the fit.

    None without subwords, or if counts have changed since the fit: then it is not known any more.
    """
    parameters, counts = fitted.settings.parameters, fitted.counts
    if parameters["subwords"] is None:
        return None
    if parameters["sharing"] is not None:
        return float(parameters["sharing"])
    if fitted.since_fit is not None:
        return None
    # Imported here, as it imports SciPy.
    from textnb.bayes.sharing import default_subword_weight

    return default_subword_weight(fitted.terms.to_list(), counts.total_counts, float(counts.n_rows))
