"""Changes the counts of a model whose weights, learned from rows, stay as they are."""

from __future__ import annotations

from dataclasses import replace

from textnb.bayes.learned import SinceFit
from textnb.errors import DataError, ParameterError
from textnb.learning.documents import LabelledBatches, check_known, count_documents
from textnb.learning.fitted import Fitted, check_one_label
from textnb.text.vocabulary import Limits


def count_beside(fitted: Fitted, documents: LabelledBatches, forget: bool = False) -> Fitted:
    """The model with documents counted, or removed again; its weights stay as they are.

    Only terms that have weights are counted: the next fit learns the others.

    Raises
    ------
    ParameterError
        If its counts have sample weights.
    DataError
        If a class is not known, or not all the documents to forget can have been learned.
    """
    check_one_label(fitted, "counting beside weights")
    if fitted.counts.class_count.dtype.kind != "i":
        raise weights_not_exact()
    # The statistic of such a model is the documents that hold a term.
    spec = replace(documents.spec, limits=Limits(), presence_above=0.0, binary=True)
    of_documents = count_documents(replace(documents, spec=spec))
    check_known(of_documents.classes.tolist(), fitted.classes.tolist())
    more, since = of_documents.over(fitted.terms).as_columns(), fitted.since_fit or SinceFit()
    if forget:
        counts = fitted.counts - more
        since = replace(since, forgotten=since.forgotten + of_documents.documents)
    else:
        counts = fitted.counts + more
        since = replace(since, learned=since.learned + of_documents.documents)
    if not counts.class_count.all():
        raise DataError("every document of a class would be forgotten, but the weights would keep "
                        "the class: fit again without it; the model is unchanged")
    return replace(fitted, learned=replace(fitted.learned, counts=counts), since_fit=since)


def weights_not_exact() -> ParameterError:
    return ParameterError("counts with sample weights are sums of real numbers, from which "
                          "documents can't be subtracted exactly: fit again without them")
