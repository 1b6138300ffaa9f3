"""The verb that learns a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from textnb.cli.console import note, progress, verb
from textnb.cli.inputs import (
    Encoding,
    Input,
    InputFormat,
    OnUnreadable,
    Query,
    Quiet,
    StorageOption,
    Subfolders,
    Where,
    check_apart,
    reading,
    rows,
    unit_of,
    watched,
)

if TYPE_CHECKING:
    from textnb.estimators.table import TableClassifier
    from textnb.estimators.text import TextClassifier


@verb
def train(
    context: typer.Context,
    input: Input,
    output: Annotated[str, typer.Option("--output", "-o", help="Model file to write.")],
    model: Annotated[str, typer.Option(
        help="Of texts: multinomial, bernoulli, complement, nblr. Of feature tables: gaussian, "
             "lda, qda, rda, centroid.")] = "multinomial",
    label: Annotated[str, typer.Option(help="Label column.")] = "label",
    text: Annotated[list[str] | None, typer.Option(
        help="Text column; repeat it for several.  [default: text]")] = None,
    l: Annotated[str, typer.Option(
        "--l", help="Smoothing parameter: a number, or auto, chosen by leave-one-out "
                    "(multinomial, bernoulli, complement).")] = "1.0",
    fit_prior: Annotated[bool, typer.Option(
        "--fit-prior/--uniform-prior", help="Priors from the classes' shares, or equal.")] = True,
    class_weight: Annotated[list[str] | None, typer.Option(
        help="balanced, or label=weight, repeated: what rows of a class count for (multinomial, "
             "bernoulli, complement, nblr, gaussian).")] = None,
    weight: Annotated[str | None, typer.Option(
        help="Column of weights of the documents.")] = None,
    norm: Annotated[bool, typer.Option(
        "--norm", help="Normalise the weights (complement).")] = False,
    C: Annotated[float, typer.Option(
        "--C", help="Inverse strength of regularisation (nblr).")] = 1.0,
    beta: Annotated[float, typer.Option(help="Interpolation of the weights (nblr).")] = 1.0,
    loss: Annotated[str, typer.Option(
        help="log, logistic regression, or hinge, a linear SVM (nblr).")] = "log",
    tol: Annotated[float | None, typer.Option(
        help="End at this tolerance, if --max-iter is not reached before (nblr).")] = None,
    max_iter: Annotated[int, typer.Option(help="Most passes over the rows (nblr).")] = 5,
    early_stopping: Annotated[bool, typer.Option(
        "--early-stopping", help="As many passes, --max-iter at most, as do best on a tenth of the "
                                 "rows, held out for that (nblr).")] = False,
    ngrams: Annotated[str, typer.Option(help="Shortest and longest n-gram, e.g. 1,2.")] = "1,1",
    analyzer: Annotated[str, typer.Option(help="word, char or char_wb.")] = "word",
    pattern: Annotated[str | None, typer.Option(
        help="Regular expression of a token (Rust syntax).")] = None,
    sklearn_tokens: Annotated[bool, typer.Option(
        "--sklearn-tokens", help="The tokens of scikit-learn's CountVectorizer.")] = False,
    lowercase: Annotated[bool, typer.Option(help="Lower-case the text first.")] = True,
    normalize: Annotated[str | None, typer.Option(help="NFC, NFD, NFKC or NFKD.")] = None,
    strip_accents: Annotated[str | None, typer.Option(help="unicode or ascii.")] = None,
    stop_words: Annotated[str | None, typer.Option(
        help="UTF-8 file of stop words, one per line.")] = None,
    field_prefix: Annotated[bool, typer.Option(
        "--field-prefix", help="Write each column's name before its tokens.")] = False,
    min_df: Annotated[str, typer.Option(
        help="Keep terms in at least so many documents (2) or such a share (0.01).")] = "1",
    max_df: Annotated[str, typer.Option(
        help="Keep terms in at most so many documents or such a share.")] = "1.0",
    max_features: Annotated[int | None, typer.Option(
        help="Keep the N most frequent terms.")] = None,
    binary: Annotated[bool, typer.Option(
        "--binary", help="Count a term once per document.")] = False,
    memory_limit: Annotated[str | None, typer.Option(
        help="Bytes for the terms and their counts, such as 500M or 2G, 1M or more: the rarest "
             "terms are left out until the rest fits.")] = None,
    features: Annotated[str | None, typer.Option(
        help="Feature columns, such as x1,x2.  [default: all numeric ones]")] = None,
    shrinkage: Annotated[str | None, typer.Option(
        help="Number in [0, 1] or auto (lda, qda).")] = None,
    alpha: Annotated[str | None, typer.Option(
        help="Share of each class's own covariance; several, such as 0.1,0.5, are chosen among by "
             "cross-validation (rda).")] = None,
    gamma: Annotated[str | None, typer.Option(
        help="Share of the covariance's shape against a sphere; several as for alpha (rda).",
    )] = None,
    var_smoothing: Annotated[float, typer.Option(
        help="Share of the largest variance added to all (gaussian).")] = 1e-9,
    shared_variance: Annotated[bool, typer.Option(
        "--shared-variance", help="One variance per feature for all classes (gaussian).")] = False,
    allow_singular: Annotated[bool, typer.Option(
        "--allow-singular", help="Use the pseudo-inverse of a singular covariance.")] = False,
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    on_unreadable: OnUnreadable = "raise",
    subfolders: Subfolders = False,
    query: Query = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    import numpy as np

    from textnb.cli import settings
    from textnb.estimators.text import TextClassifier
    from textnb.files.replace import check_target
    from textnb.jobs.models import TABLES
    from textnb.learning.memory_limit import memory_size

    check_target(output)
    check_apart(input, output)
    given = settings.given(context)
    settings.check_options(model, given)
    classifier: TextClassifier | TableClassifier
    if model in TABLES:
        from textnb.estimators.table import TableClassifier

        names = None if features is None else features.split(",")
        classifier = TableClassifier(
            settings.table_estimator(model, given), features=names, label=label)
        frame = rows(input, where, input_format, encoding, None, label, names,
                     storage=storage_option, query=query, on_error=on_unreadable,
                     subfolders=subfolders)
    else:
        columns = text or ["text"]
        classifier = TextClassifier(
            settings.text_estimator(model, given),
            text=columns[0] if len(columns) == 1 else columns, label=label,
            tokenizer=settings.tokenizer(
                sklearn_tokens, pattern=pattern, lowercase=lowercase, analyzer=analyzer,
                ngram_range=settings.ngram_range(ngrams), normalize=normalize,
                strip_accents=strip_accents, stop_words=settings.stop_words(stop_words),
                field_prefix=field_prefix),
            min_df=settings.limit("--min-df", min_df), max_df=settings.limit("--max-df", max_df),
            max_features=max_features, binary=binary,
            memory_limit=None if memory_limit is None else memory_size(memory_limit))
        frame = rows(input, where, input_format, encoding, columns, label,
                     storage=storage_option, query=query, on_error=on_unreadable,
                     subfolders=subfolders)
    seen, tell = watched(frame, None if model in TABLES else text or ["text"])
    with (reading(input),
          progress("training", "learned from", quiet, unit_of(classifier)) as advance):
        if isinstance(classifier, TextClassifier):
            classifier.fit(seen, sample_weight=weight, progress=advance)
        else:
            classifier.fit(seen, progress=advance)
    classifier.save(output)
    if quiet:
        return
    tell(input)
    if isinstance(classifier, TextClassifier):
        learned = f"{len(classifier.vocabulary_):,} terms"
        if l == "auto":
            learned += f", l = {classifier.estimator_.l_:g} (chosen by leave-one-out)"
        if hasattr(classifier.estimator_, "n_iter_"):
            learned += f", {_passes(classifier.estimator_)}"
        if classifier.pruned_ is not None:
            note(classifier.pruned_.told())
    else:
        learned = (f"{len(classifier.feature_names_):,} features "
                   f"({_some(classifier.features_)})")
        left_out = [name for name in frame.collect_schema().names()
                    if name not in classifier.features_ and name != label]
        if features is None and left_out:
            note(f"left out, as they hold other than numbers: {_some(left_out)}; see --features")
        chosen = classifier.estimator_.learned_settings().get("chosen")
        if model == "rda" and chosen:
            accuracy = classifier.estimator_.cv_accuracy_
            note(f"chosen: alpha {chosen[0]:g}, gamma {chosen[1]:g}"
                 + ("" if accuracy is None else
                    f", cross-validated accuracy {float(np.nanmax(accuracy)):.4f}"))
    note(f"{len(classifier.classes_)} classes, {learned} -> {output}")


def _passes(estimator: Any) -> str:
    if not estimator.early_stopping:
        return f"passes: {estimator.n_iter_}"
    accuracy = max(estimator.validation_scores_.values())
    return f"passes: {estimator.n_iter_} (accuracy on held-out rows {accuracy:.4f})"


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
