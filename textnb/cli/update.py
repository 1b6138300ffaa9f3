"""Verbs for a model at work: update, forget, merge, diff."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textnb.cli.console import as_json, note, out, progress, verb
from textnb.cli.evidence import note_stale
from textnb.cli.inputs import (
    Encoding,
    Format,
    Input,
    InputFormat,
    Model,
    ModelOutput,
    OnUnreadable,
    Query,
    Quiet,
    StorageOption,
    Subfolders,
    Where,
    check_apart,
    check_format,
    features_of,
    reading,
    rows,
    text_columns,
    text_model,
    unit_of,
)

if TYPE_CHECKING:
    import polars as pl

    from textnb.estimators.table import TableClassifier
    from textnb.estimators.text import TextClassifier

As = Annotated[str | None, typer.Option(
    "--as", help="The class of all rows, where the input has no label column.")]


@verb
def update(
    model: Model,
    input: Input,
    output: ModelOutput = None,
    given: As = None,
    new_class: Annotated[list[str] | None, typer.Option(
        "--new-class", help="A label that the model does not know yet; repeat it for several."),
    ] = None,
    on_error: Annotated[bool, typer.Option(
        "--on-error", help="Learn only the rows that the model misjudges. Its counts are then no "
                           "sample of the rows: priors and probabilities lean towards the hard "
                           "ones.")] = False,
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    on_unreadable: OnUnreadable = "raise",
    subfolders: Subfolders = False,
    query: Query = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Learn more labelled rows: the model is that of one training on all of them."""
    from textnb.errors import ParameterError
    from textnb.estimators.load import load
    from textnb.estimators.text import TextClassifier
    from textnb.evaluation.mistakes import mistakes
    from textnb.files.lock import locked
    from textnb.files.replace import check_target

    check_target(output or model)
    check_apart(input, output or model)
    with locked(model if output is None else output):
        classifier = load(model)
        frame = _labelled(classifier, input, given, where, input_format, encoding,
                          storage_option, query, on_unreadable, subfolders)
        known = classifier.classes_.tolist()
        classes = [_typed(name, known) for name in new_class or []] or None
        if on_error:
            if not isinstance(classifier, TextClassifier):
                raise ParameterError("--on-error is for models of texts")
            with reading(input):
                # Collected, as the rows are judged by the model that is about to change.
                wrong = mistakes(classifier, frame).collect()
            frame = wrong.lazy()
            if not wrong.height:
                note("no row was misjudged: nothing to learn, and the model is unchanged")
                if output is not None:
                    classifier.save(output)
                return
        with (reading(input),
              progress("learning", "learned from", quiet, unit_of(classifier)) as advance):
            classifier.partial_fit(frame, classes=classes, progress=advance)
        classifier.save(output or model)
    if not quiet:
        note(f"{len(classifier.classes_)} classes, {_size(classifier)} -> {output or model}")
    note_stale(classifier)


@verb
def forget(
    model: Model,
    input: Input,
    output: ModelOutput = None,
    given: As = None,
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    on_unreadable: OnUnreadable = "raise",
    subfolders: Subfolders = False,
    query: Query = None,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Take rows out again that were learned: the model is that of a training without them."""
    from textnb.files.lock import locked
    from textnb.files.replace import check_target

    check_target(output or model)
    check_apart(input, output or model)
    with locked(model if output is None else output):
        classifier = text_model(model)
        frame = _labelled(classifier, input, given, where, input_format, encoding,
                          storage_option, query, on_unreadable, subfolders)
        with (reading(input),
              progress("forgetting", "forgot", quiet, unit_of(classifier)) as advance):
            classifier.forget(frame, progress=advance)
        classifier.save(output or model)
    if not quiet:
        note(f"{len(classifier.classes_)} classes, {_size(classifier)} -> {output or model}")
    note_stale(classifier)


@verb
def merge(
    models: Annotated[list[str], typer.Argument(help="Model files of the same settings.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Model file to write.")],
    quiet: Quiet = False,
) -> None:
    """Add models: the result is that of one training on the documents of all."""
    from textnb.errors import ParameterError
    from textnb.files.replace import check_target

    if len(models) < 2:
        raise ParameterError("merge adds two models or more: textnb merge A B -o C")
    check_target(output)
    total = text_model(models[0])
    for path in models[1:]:
        more = text_model(path)
        try:
            total = total + more
        except ParameterError as error:
            raise ParameterError(f"{models[0]} and {path}: {error}") from None
    total.save(output)
    note_stale(total)
    if not quiet:
        documents = int(total.statistics_.documents)
        note(f"{documents:,} documents, {len(total.classes_)} classes, {_size(total)} -> {output}")


@verb
def diff(
    a: Annotated[str, typer.Argument(help="Model file.")],
    b: Annotated[str, typer.Argument(help="Model file, say after an update.")],
    input: Annotated[str | None, typer.Argument(
        help="Rows that both judge: which decisions are flipped.")] = None,
    k: Annotated[int, typer.Option("-k", help="Terms per class.")] = 10,
    format: Format = "text",
    where: Where = None,
    input_format: InputFormat = None,
    storage_option: StorageOption = None,
    query: Query = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Show how two models differ: classes, terms that moved most, decisions that are flipped."""
    from textnb.cli.tables import frame_table, show
    from textnb.errors import ParameterError
    from textnb.evaluation.comparison import compare_models

    check_format(format)
    first, second = text_model(a), text_model(b)
    frame = None
    if input is not None:
        columns = [*dict.fromkeys([*first.text_columns, *second.text_columns])]
        frame = rows(input, where, input_format, encoding, columns, None,
                     storage=storage_option, query=query)
    elif where is not None or query is not None or storage_option:
        raise ParameterError("--where, --query and --storage-option are for the rows of INPUT: "
                             "name one")
    with reading(input or a):
        result = compare_models(first, second, frame, k=k)
    if format == "json":
        out(as_json(result.to_dict()))
        return
    show(frame_table(result.classes, title="documents and shares of the classes"))
    for (name,), group in result.terms.group_by("class", maintain_order=True):
        show(frame_table(group.drop("class"), title=f"terms that moved most: {name}"))
    out(f"{result.terms_gained:,} terms gained, {result.terms_lost:,} lost")
    if input is None:
        return
    flips = int(result.flipped["documents"].sum())
    share = f" ({flips / result.documents:.2%})" if result.documents else ""
    out(f"{flips:,} of {result.documents:,} decisions flipped{share}")
    if flips:
        show(frame_table(result.flipped))
        show(frame_table(result.examples, title="some of them"))


def _labelled(
    classifier: TextClassifier | TableClassifier, input: str, given: str | None,
    where: str | None, input_format: str | None, encoding: str, storage: list[str] | None,
    query: str | None, on_unreadable: str, subfolders: bool,
) -> pl.LazyFrame:
    """The input's rows with labels of the model's type: their own, or the class that was given."""
    import polars as pl

    from textnb.errors import ParameterError, SchemaError
    from textnb.frames.texts import labels_as

    label = classifier.label
    known = classifier.classes_.tolist()
    try:
        frame = rows(input, where, input_format, encoding, text_columns(classifier),
                     label if given is None else None, features_of(classifier), storage=storage,
                     query=query, on_error=on_unreadable, subfolders=subfolders)
    except SchemaError as error:
        if "(the label column)" not in str(error):
            raise
        raise SchemaError(f"{str(error).partition('. Say which')[0]}; where all rows are of one "
                          "class, say --as CLASS") from None
    dtype = pl.Series(known).dtype
    if given is not None and label in frame.collect_schema():
        raise ParameterError(f"--as is for rows without labels, and the input has a column "
                             f"{label!r}: leave --as away, or choose the rows with --where and "
                             "write them without that column")
    if given is not None:
        return frame.with_columns(pl.lit(_typed(given, known), dtype=dtype).alias(label))
    return frame.with_columns(labels_as(label, frame, dtype).alias(label))


def _typed(name: str, known: list[Any]) -> Any:
    """A label that was typed, in the type of the labels that are known."""
    from textnb.errors import ParameterError

    if isinstance(known[0], bool):
        if name.lower() in ("true", "false"):
            return name.lower() == "true"
        raise ParameterError.out_of_range("a label of this model", "true or false", name)
    if isinstance(known[0], int):
        if not re.fullmatch(r"-?[0-9]{1,19}", name) or not -2**63 <= int(name) < 2**63:
            raise ParameterError.out_of_range(
                "a label of this model", "an integer of 64 bits", name)
        return int(name)
    return name


def _size(classifier: Any) -> str:
    if text_columns(classifier) is not None:
        return f"{len(classifier.vocabulary_):,} terms"
    return f"{len(classifier.feature_names_):,} features"
