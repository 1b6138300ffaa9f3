"""Learning more and forgetting, by refitting weights on the sample of rows that a model keeps.

    sample + new rows -> refitted weights -> margins -> the rows with the lowest margins: the sample

The margin of a row is the score of its class less the highest score of another class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import LEARNED_SINCE
from textnb.bayes.counts import Counts
from textnb.bayes.labels import Labels
from textnb.bayes.learned import SinceFit, WarmStart
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import DataError, Mention, ParameterError, VocabularyError
from textnb.learning.beside_weights import check_has_weights, check_keeps_classes
from textnb.learning.documents import LabelledBatches, document_term_matrix
from textnb.learning.fitted import Fitted, check_one_label, keep_choices
from textnb.learning.leave_one_out import find_columns
from textnb.learning.row_sample import RowSample
from textnb.learning.text_settings import TextSettings
from textnb.runtime.settings import is_whole
from textnb.text.matrix import CountMatrix, Vocabulary
from textnb.text.vocabulary import Limits

# The maximum number of rows in a sample. The check of a model file allows no more.
MAX_ROWS = 2**31 - 1


def check_keep_sample(settings: TextSettings, max_rows: Any, has_weights: bool) -> None:
    """Raise ParameterError if a fit with these settings can't keep a sample of its rows.

    ``has_weights`` says whether the rows have sample weights.
    """
    if not (is_whole(max_rows) and 2 <= max_rows <= MAX_ROWS):
        raise ParameterError.out_of_range("keep_sample", f"an int from 2 to {MAX_ROWS}", max_rows)
    model = settings.model
    if model.from_counts:
        raise ParameterError.naming_settings(
            "{keep_sample} is for models whose weights are learned from rows; " + model.name
            + " learns from counts, and is updated exactly without it")
    if not model.can_count_without_refit:
        raise ParameterError.naming_settings(
            "{keep_sample} is for NBLinear without {idf}, as mail has it by default; this model "
            "can't learn more")
    for name in ("subwords", "vectors"):
        if settings.parameters[name] is not None:
            raise ParameterError.naming_settings(
                "{keep_sample} and {shared} exclude each other", shared=Mention(name))
    if has_weights:
        raise ParameterError.naming_settings("{keep_sample} and {sample_weight} exclude each other")


def add_sample(fitted: Fitted, counts: CountMatrix, labels: Labels, max_rows: int) -> Fitted:
    """The model, with a sample of the rows that it was fitted to, at most ``max_rows`` of them."""
    check_one_label(fitted, "a sample of rows for updates", "keep_sample")
    return replace(fitted, sample=RowSample.of(
        int(max_rows), _apply_presence(fitted.settings, counts), labels.codes, fitted.form))


def warm_start_from(start: Fitted, terms: pl.Series) -> WarmStart:
    """The weights of a model, from which a solver can start to learn these terms."""
    return WarmStart(start.form, find_columns(terms, start.terms))


def learn_more_rows(fitted: Fitted, documents: LabelledBatches) -> Fitted:
    """The model with more documents: its weights are refitted on its sample and on these.

    New terms get weights too, unless the settings have a vocabulary or limits on terms.
    """
    sample = _sample(fitted)
    new, terms, codes, counts = _read_rows(fitted, documents, forget=False)
    # The columns of the model's terms among all terms.
    new_columns = _columns_of(fitted.terms, terms)
    statistics = fitted.counts.widened(new_columns, len(terms)) + counts
    old = sample.with_columns(new_columns, len(terms)).rows
    rows = SparseRows(
        np.concatenate([old.data, new.data]), np.concatenate([old.indices, new.indices]),
        np.concatenate([old.indptr, old.indptr[-1] + new.indptr[1:]]), len(terms))
    return _refit(fitted, replace(
        fitted, vocabulary=Vocabulary(fitted.settings.tokenizer, terms),
        learned=replace(fitted.learned, counts=statistics)), rows,
        np.concatenate([sample.codes, codes]))


def forget_rows(fitted: Fitted, documents: LabelledBatches) -> Fitted:
    """The model without documents: their counts are subtracted, and its weights refitted.

    Documents that are not in the sample do not change the weights. ``since_fit`` counts them.
    """
    rows, _, codes, counts = _read_rows(fitted, documents, forget=True)
    statistics = fitted.counts - counts
    check_keeps_classes(statistics)
    sample, n_missing = _sample(fitted).without(rows, codes)
    if len(np.unique(sample.codes)) < len(fitted.classes):
        raise DataError("the sample would hold no document of a class, from which weights could "
                        "be learned: fit again without these documents; the model is unchanged")
    since = fitted.since_fit or SinceFit()
    since = replace(since, forgotten=since.forgotten + n_missing)
    # Terms that no document has any more are dropped, if they were not given or limited.
    is_kept: NDArray[np.bool_] = np.ones(len(fitted.terms), dtype=np.bool_)
    if _learns_new_terms(fitted.settings):
        is_kept = statistics.total_counts > 0
        is_kept[sample.rows.indices] = True
    # The new column of each term that stays; no row of the sample has a term that is dropped.
    sample = sample.with_columns(np.cumsum(is_kept) - 1, int(is_kept.sum()))
    return _refit(fitted, replace(
        fitted, since_fit=since if since.documents else None, vocabulary=Vocabulary(
            fitted.settings.tokenizer, fitted.terms.filter(pl.Series(is_kept))),
        learned=replace(fitted.learned, counts=statistics.select(is_kept))),
        sample.rows, sample.codes)


def _refit(before: Fitted, fitted: Fitted, rows: SparseRows, codes: NDArray[np.int64]) -> Fitted:
    """The model with weights that are learned from these rows, and a sample of them.

    ``fitted`` has the new counts and terms, and ``before`` the weights from which the solver
    starts.
    """
    learned = fitted.model.learn_rows(
        rows.to_csr(), Labels.of_codes(before.classes, codes), binary=fitted.settings.binary,
        start=warm_start_from(before, fitted.terms), statistics=fitted.counts)
    return keep_choices(before, replace(
        fitted, learned=learned,
        sample=RowSample.of(_sample(before).max_rows, rows, codes, learned.form)), LEARNED_SINCE)


def _sample(fitted: Fitted) -> RowSample:
    """The sample, without which these functions are not called."""
    assert fitted.sample is not None
    return fitted.sample


def _learns_new_terms(settings: TextSettings) -> bool:
    """Whether every term of a document gets a weight, not only given or limited terms."""
    return settings.vocabulary is None and settings.limits == Limits()


def _read_rows(
    fitted: Fitted, documents: LabelledBatches, forget: bool
) -> tuple[SparseRows, pl.Series, NDArray[np.int64], Counts]:
    """The rows of documents, the terms of their columns, their class indices, and their counts.

    The terms are the model's, and also the documents' if the model learns new ones.
    """
    # Imported here, as it imports SciPy. It counts the documents of each class that hold a term.
    from textnb.bayes.ratio import document_statistics

    learns_new_terms = not forget and _learns_new_terms(fitted.settings)
    documents = replace(documents, frames=list(documents.frames), spec=replace(
        documents.spec, limits=Limits()))
    try:
        matrix = document_term_matrix(documents, None if learns_new_terms else fitted.terms)
    except VocabularyError:
        # None of the documents has a token.
        matrix = document_term_matrix(documents, fitted.terms)
    labels = matrix.labels
    check_has_weights(labels.classes.tolist(), fitted, forget=forget)
    terms = fitted.terms
    if learns_new_terms:
        terms = pl.concat([terms, matrix.terms]).unique().sort().alias(terms.name)
    columns = _columns_of(matrix.terms, terms)
    statistics = document_statistics(matrix.counts, labels).widened(columns, len(terms))
    rows = _apply_presence(fitted.settings, matrix.counts)
    return (SparseRows(rows.data, columns[rows.indices], rows.indptr, len(terms)), terms,
            labels.among(fitted.classes).codes, statistics)


def _columns_of(terms: pl.Series, all_terms: pl.Series) -> NDArray[np.int64]:
    """The index of each term in sorted terms, which include all of them."""
    return all_terms.search_sorted(terms).to_numpy().astype(np.int64)


def _apply_presence(settings: TextSettings, counts: CountMatrix) -> SparseRows:
    """The counts, or 1 for each of them if the model only uses the presence of terms."""
    data = counts.data if settings.presence_above is None else np.ones_like(counts.data)
    return SparseRows(data, counts.indices, counts.indptr, counts.shape[1])
