"""The description of a model for people who receive it."""

from __future__ import annotations

from typing import Any

import numpy as np

from textnb.bayes.label_form import model_of_label
from textnb.export.archive import to_json
from textnb.export.bundle import provenance
from textnb.files.blocks import VERSION as MODEL_FILE_VERSION
from textnb.learning.fitted import Fitted, fitted_text_model_or_none
from textnb.learning.parameters import to_json_value
from textnb.learning.settings import MAIL_OPTIONS, is_mail_recipe
from textnb.learning.sharing import n_words_without_counts, subword_weight
from textnb.runtime import __version__
from textnb.text.compiled import describe_engine


def describe_model(model: Any) -> dict[str, Any]:
    """Describe a fitted classifier in values that JSON can hold.

    Parameters
    ----------
    model : TextClassifier or TableClassifier

    Returns
    -------
    dict
        For all models: ``kind``, ``estimator``, ``parameters``, ``scores`` (whether they are
        log-probabilities), ``classes`` (label, rows, prior), ``training_rows``, ``reads``
        (columns), ``format`` (the version of the model file) and ``textnb`` (the release).

        For models of tables: ``features``, their number.

        For models of texts: ``vocabulary`` (number of terms), ``tokens`` (their number in
        training), ``limits``, ``pruned``, ``tokenizer``, ``read_by`` (the compiled kernel of this
        installation, or expressions and why), ``since_fit`` (documents that were learned and
        forgotten after the weights were fitted, which the answers ignore), ``calibration`` and
        ``decision`` (None if there is none).

        Only for some models of texts: ``chosen`` (the value that ``l="auto"`` chose);
        ``multilabel`` (true for lists of labels: the rows of a label are those that have it, and
        its prior is against the rows without it); ``recipe`` (the default of mail);
        ``unlabelled_words`` (number of terms that no labelled row holds); ``subwords`` and
        ``sharing`` (if words share weights: the lengths of subwords, and how much subwords weigh);
        ``vectors`` and ``vector_weight`` (the origin of word vectors, and how much they weigh);
        ``sample`` (the number of ``rows`` from which weights are refitted, and ``most``, their
        maximum).

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> card = describe_model(TextClassifier().fit(["good film", "bad film"], ["pos", "neg"]))
    >>> card["estimator"], card["vocabulary"], card["training_rows"]
    ('MultinomialNB', 3, 2)
    """
    training = to_json(provenance(model))
    # A `Fitted` itself can be described, too.
    fitted = fitted_text_model_or_none(model)
    class_rows, log_prior = training["documents"], training["log_prior"]
    if fitted is not None and fitted.is_multilabel:
        log_prior = _label_log_priors(fitted)
    labels = (model.classes_ if fitted is None else fitted.classes).tolist()
    # `to_json` writes -inf as a string.
    priors = [None] * len(labels) if log_prior is None else np.exp(
        [float(value) for value in log_prior]).tolist()
    scores_are_logs = (model.estimator_ if fitted is None else fitted.model
                       ).scores_are_log_probabilities
    card: dict[str, Any] = {
        "kind": "TextClassifier" if model is fitted else type(model).__name__,
        "estimator": training["estimator"]["name"],
        "parameters": training["estimator"]["parameters"],
        "scores": ("log-probabilities" if scores_are_logs
                   else "no log-probabilities: their differences are margins"),
        "classes": [{"label": label, "rows": count, "prior": prior} for label, count, prior
                    in zip(labels, class_rows or [None] * len(labels), priors, strict=True)],
        "training_rows": sum(class_rows) if class_rows else None,
    }
    if fitted is None:
        card |= {"reads": list(model.features_), "features": len(model.feature_names_)}
    else:
        settings = fitted.settings
        if fitted.is_multilabel:
            card |= {"scores": ("log-odds" if scores_are_logs else "margins")
                     + " of each label against the rest", "multilabel": True,
                     "training_rows": int(fitted.counts.n_rows)}
        if fitted.chosen_l is not None:
            card["chosen"] = {"l": fitted.chosen_l}
        card |= {
            "reads": settings.columns,
            **({"recipe": f"the default of mail ({MAIL_OPTIONS})"} if is_mail_recipe({
                "text": settings.parameters["text"], "model": fitted.model.kind,
                **fitted.model.get_params(deep=False)}) else {}),
            "vocabulary": len(fitted.terms),
            **({"unlabelled_words": n} if (n := n_words_without_counts(fitted)) else {}),
            "tokens": int(fitted.counts.total_counts.sum()),
            "limits": {name: settings.parameters[name] for name in (
                "min_df", "max_df", "max_features", "binary", "memory_limit")},
            **({} if settings.parameters["subwords"] is None else {
                "subwords": settings.parameters["subwords"], "sharing": subword_weight(fitted)}),
            **({} if settings.parameters["vectors"] is None else {
                "vectors": to_json_value(settings.parameters["vectors"]),
                "vector_weight": settings.parameters["vector_weight"]}),
            "pruned": None if fitted.pruned is None else fitted.pruned.to_dict(),
            "tokenizer": settings.tokenizer.to_dict(),
            "read_by": describe_engine(settings.tokenizer),
            "since_fit": None if fitted.since_fit is None else fitted.since_fit.to_dict(),
            **({} if fitted.sample is None else {"sample": {
                "rows": len(fitted.sample.codes), "most": fitted.sample.max_rows}}),
            "calibration": (None if fitted.calibration is None
                            else fitted.calibration.to_dict()),
            "decision": None if fitted.decision is None else to_json(fitted.decision.to_dict()),
        }
    return {**card, "format": MODEL_FILE_VERSION, "textnb": __version__}


def _label_log_priors(fitted: Fitted) -> list[float] | None:
    """The log prior of each label against documents without it; None for a model without priors."""
    # Select one term: priors need no terms, only numbers of documents.
    counts, model = fitted.counts.select(np.array([0])), fitted.model_with_chosen_l
    priors = [model_of_label(model, counts.classes, k).class_log_prior(counts.against_rest(k))
              for k in range(len(counts.classes))]
    # The first of the two classes is the documents without the label, the second those with it.
    return None if any(prior is None for prior in priors) else [
        float(prior[1]) for prior in priors if prior is not None]
