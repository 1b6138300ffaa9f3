"""Updating the counts of a model whose weights, learned from rows, stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textnb.bayes.counts import Counts, weights_not_exact
from textnb.bayes.learned import SinceFit
from textnb.errors import DataError, listing
from textnb.learning.documents import LabelledBatches, check_type, count_documents
from textnb.learning.fitted import Fitted, check_one_label
from textnb.text.vocabulary import Limits


def update_counts(fitted: Fitted, documents: LabelledBatches, forget: bool = False) -> Fitted:
    """The model with documents added to its counts, or subtracted; its weights stay as they are.

    Only terms that have weights are counted; others get weights at the next fit.

    Parameters
    ----------
    fitted : Fitted
        A model of one label per document.
    documents : LabelledBatches
    forget : bool
        Whether to subtract the documents.

    Raises
    ------
    ParameterError
        If the model's counts have sample weights.
    DataError
        If a class is not known, or the model can't have learned some of the documents to forget.
    """
    check_one_label(fitted, "counting beside weights")
    # Without sample weights, documents are counted as integers.
    if fitted.counts.class_count.dtype.kind != "i":
        raise weights_not_exact()
    # The counts of such a model are numbers of documents with each term.
    spec = replace(documents.spec, limits=Limits(), presence_above=0.0, binary=True)
    all_terms = count_documents(replace(documents, spec=spec))
    check_has_weights(all_terms.classes.tolist(), fitted, forget)
    known_terms, since = all_terms.over(fitted.terms).as_columns(), fitted.since_fit or SinceFit()
    if forget:
        counts = fitted.counts - known_terms
        since = replace(since, forgotten=since.forgotten + all_terms.documents)
    else:
        counts = fitted.counts + known_terms
        since = replace(since, learned=since.learned + all_terms.documents)
    check_keeps_classes(counts)
    return replace(fitted, learned=replace(fitted.learned, counts=counts), since_fit=since)


def check_has_weights(labels: list[Any], fitted: Fitted, forget: bool = False) -> None:
    """Raise DataError for labels that the model's weights, which stay, are not for."""
    known = fitted.classes.tolist()
    check_type(labels, known)
    unknown = sorted(set(labels) - set(known))
    if unknown and forget:
        raise DataError.never_learned(f"class {unknown[0]!r} was never learned")
    if unknown:
        raise DataError.with_advice(
            f"the weights of {fitted.model.name} are for the classes {listing(known)}, and not for "
            f"{listing(unknown)}, which only a new fit adds: ", "fit it again on all documents",
            "textnb train learns it from all documents")


def check_keeps_classes(counts: Counts) -> None:
    """Raise DataError if a class has no documents left."""
    if not counts.class_count.all():
        raise DataError("every document of a class would be forgotten, but the weights would keep "
                        "the class: fit again without it; the model is unchanged")
