"""The command line: thin verbs over the library.

Results go to standard output, progress and notes to standard error. Exit codes: 0 success, 1 bad
data (the file or row is named), 2 bad usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from textnb.cli import leaving, signals
from textnb.cli.console import as_json, leave_interrupted, note, out, progress, verb
from textnb.cli.inputs import (
    Encoding,
    Format,
    Input,
    InputFormat,
    Model,
    Quiet,
    Where,
    features_of,
    reading,
    rows,
    text_columns,
    text_model,
)

if TYPE_CHECKING:
    import polars as pl

    from textnb.classifier.table import TableClassifier
    from textnb.classifier.text import TextClassifier

app = typer.Typer(
    name="textnb", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Text classification from a table of documents: train, test, predict, explain.",
)

@app.callback()
def common(
    version: Annotated[bool, typer.Option(
        "--version", is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Text classification from a table of documents: train, test, predict, explain."""
    if version:
        from importlib.metadata import version as installed

        out(f"textnb {installed('textnb')}")
        raise typer.Exit


@app.command()
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
    l: Annotated[float, typer.Option("--l", help="Smoothing parameter.")] = 1.0,
    fit_prior: Annotated[bool, typer.Option(
        "--fit-prior/--uniform-prior", help="Priors from the classes' shares, or equal.")] = True,
    norm: Annotated[bool, typer.Option(
        "--norm", help="Normalise the weights (complement).")] = False,
    C: Annotated[float, typer.Option(
        "--C", help="Inverse strength of regularisation (nblr).")] = 1.0,
    beta: Annotated[float, typer.Option(help="Interpolation of the weights (nblr).")] = 1.0,
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
        help="Keep the so many most frequent terms.")] = None,
    binary: Annotated[bool, typer.Option(
        "--binary", help="Count a term once per document.")] = False,
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
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    import numpy as np

    from textnb.classifier.text import TextClassifier
    from textnb.cli import settings
    from textnb.store import check_target

    check_target(output)
    _check_apart(input, output)
    given = settings.given(context)
    settings.check_options(model, given)
    classifier: TextClassifier | TableClassifier
    if model in settings.TABLE_MODELS:
        from textnb.classifier.table import TableClassifier

        names = None if features is None else features.split(",")
        classifier = TableClassifier(
            settings.table_estimator(model, given), features=names, label=label)
        frame = rows(input, where, input_format, encoding, None, label, names)
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
            max_features=max_features, binary=binary)
        frame = rows(input, where, input_format, encoding, columns, label)
    with (reading(input),
          progress("training", "learned from", quiet, _rows_of(classifier)) as advance):
        classifier.fit(frame, progress=advance)
    classifier.save(output)
    if quiet:
        return
    if isinstance(classifier, TextClassifier):
        learned = f"{len(classifier.vocabulary_):,} terms"
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


@app.command("test")
@verb
def run_test(
    model: Model,
    input: Input,
    positive: Annotated[str | None, typer.Option(
        help="Also show the rates and the area under the ROC of this class against the rest.",
    )] = None,
    format: Format = "text",
    where: Where = None,
    input_format: InputFormat = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Score labelled rows: accuracy, and precision, recall and F1 per class."""
    from textnb.classifier.load import load
    from textnb.cli.settings import as_label, check_format
    from textnb.cli.tables import show_evaluation, show_rates
    from textnb.evaluation.metrics import evaluate, evaluate_roc

    check_format(format)
    classifier = load(model)
    frame = rows(input, where, input_format, encoding, text_columns(classifier), classifier.label,
                 features_of(classifier))
    with reading(input), progress("testing", "tested", quiet, _rows_of(classifier)) as advance:
        result = evaluate(classifier, frame, progress=advance)
    if result.unknown_labels:
        note("note: the model does not know the labels "
             f"{', '.join(map(repr, result.unknown_labels))}; their rows count as errors")
    if result.impossible:
        note(f"note: {result.impossible} rows are impossible under every class (l = 0) and count "
             "as errors")
    answer = result.to_dict()
    if positive is not None:
        label = as_label(positive, classifier.classes_)
        with reading(input):
            answer["roc_auc"] = evaluate_roc(classifier, frame, label).auc
        answer["rates"] = result.rates(label).to_dict()
    if format == "json":
        out(as_json(answer))
        return
    show_evaluation(result)
    if positive is not None:
        show_rates(positive, answer["rates"], answer["roc_auc"])


@app.command()
@verb
def predict(
    model: Model,
    input: Input,
    output: Annotated[str, typer.Option(
        "--output", "-o", help="File to write, by its ending, or - for standard output.")] = "-",
    probability: Annotated[bool, typer.Option(
        help="Add the probability of the predicted class.")] = False,
    scores: Annotated[bool, typer.Option(
        help="Add the score of every class: log P(row, class), up to what classes share.")] = False,
    explain: Annotated[int, typer.Option(
        help="Add the so many terms that decided most.")] = 0,
    output_format: Annotated[str | None, typer.Option(
        help="parquet, ipc, csv, tsv or ndjson.  [default: by the output's ending]")] = None,
    where: Where = None,
    input_format: InputFormat = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Write the input with a column for the predicted class, in order."""
    import polars as pl

    from textnb.classifier.load import load
    from textnb.classifier.text import TextClassifier
    from textnb.cli import outputs
    from textnb.errors import ParameterError

    outputs.output_format(output, output_format)
    _check_apart(model, output)
    classifier = load(model)
    options: dict[str, Any] = {"probability": probability, "scores": scores}
    if isinstance(classifier, TextClassifier):
        options["explain"] = explain
    elif explain:
        raise ParameterError("--explain is for models of texts; this is one of feature tables")
    frame = rows(input, where, input_format, encoding, text_columns(classifier), None,
                 features_of(classifier))
    impossible = 0

    def count_impossible(predicted: pl.Series) -> pl.Series:
        nonlocal impossible
        impossible += predicted.null_count()
        return predicted

    with reading(input), progress(
            "predicting", "predicted", quiet, _rows_of(classifier)) as advance:
        answered = classifier.predict(frame, progress=advance, **options)
        counted = answered.with_columns(pl.col("predicted").map_batches(
            count_impossible, return_dtype=answered.collect_schema()["predicted"],
            is_elementwise=True))
        outputs.write(counted, output, output_format)
    if impossible:
        note(f"note: {impossible} rows are impossible under every class (l = 0) and have no "
             "prediction")


@app.command()
@verb
def top(
    model: Model,
    label: Annotated[str | None, typer.Option(
        "--class", "-c", help="One class only.")] = None,
    k: Annotated[int, typer.Option("-k", help="Terms per class.")] = 20,
    format: Format = "text",
) -> None:
    """Show the terms that speak most for each class."""
    from textnb.cli.settings import as_label, check_format
    from textnb.cli.tables import frame_table, show

    check_format(format)
    classifier = text_model(model)
    terms = classifier.top(k, None if label is None else as_label(label, classifier.classes_))
    if format == "json":
        out(as_json(terms.to_dicts()))
        return
    for (name,), group in terms.group_by("class", maintain_order=True):
        show(frame_table(group.drop("class"), title=str(name)))


@app.command()
@verb
def explain(
    model: Model,
    text: Annotated[str, typer.Argument(help="The text, or - for standard input.")],
    k: Annotated[int, typer.Option("-k", help="Terms to show.")] = 20,
    format: Format = "text",
) -> None:
    """Show what decides one text, term by term."""
    import signal
    import sys

    from textnb.cli.settings import check_format
    from textnb.cli.tables import frame_table, plain, show
    from textnb.errors import SourceError

    check_format(format)
    if text == "-":
        if sys.stdin is None:
            raise SourceError.unreadable("standard input", "it is closed")
        signal.siginterrupt(signal.SIGINT, True)
        try:
            text = sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise SourceError.unreadable("standard input", f"it is not UTF-8: {error}") from None
    elif not text.isprintable():
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    table = text_model(model).explain(text, k)
    predicted, runner_up = table.select("predicted", "runner_up").row(0)
    parts = table.drop("predicted", "runner_up")
    score = float(parts["contribution"].sum())
    if format == "json":
        out(as_json({"predicted": predicted, "runner_up": runner_up, "score": score,
                     "parts": parts.to_dicts()}))
        return
    show(frame_table(parts))
    against = ("" if runner_up is None
               else f", against {plain(str(runner_up))} by {score:.3f} (log-odds)")
    out(f"{plain(str(predicted))}{against}")


app.command("export")(leaving.export)
app.command("verify")(leaving.verify)
app.command("describe")(leaving.describe)


def _check_apart(given: str, output: str) -> None:
    """An output may not take the place of what it is made from."""
    import os

    from textnb.errors import ParameterError

    if os.path.exists(output) and os.path.exists(given) and os.path.samefile(given, output):
        raise ParameterError(f"--output {output} is also what is read; give it another name")


def _rows_of(classifier: TextClassifier | TableClassifier) -> str:
    return "documents" if text_columns(classifier) is not None else "rows"


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def main() -> None:
    """Entry point of the ``textnb`` command."""
    signals.listen(leave_interrupted)
    app()
