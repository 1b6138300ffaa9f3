"""Options that several verbs share (a model, rows, output), and functions that read the rows.

The docstring of a class of options is the title of its group in ``--help``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from glob import has_magic
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, out, progress
from textnb.cli.options import argument, option
from textnb.errors import ParameterError, SourceError, printable, quantity, suggestion
from textnb.runtime.settings import setting
from textnb.workflow.models import AnyModel, classes_of, features_of, predicts_lists, text_columns
from textnb.workflow.options import LabelledOptions, ReadOptions
from textnb.workflow.results import as_json

if TYPE_CHECKING:
    from textnb.runtime.progress import Size
    from textnb.workflow.rows import Rows

# The formats that `textnb.frames` writes. A test compares the two lists: help must not import it.
OUTPUT_FORMATS = ("parquet", "ipc", "csv", "tsv", "ndjson")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelFile:
    """Model."""

    model: str = argument("Model file.")


_WHERE_HELP = "Use the rows for which this SQL condition holds, e.g. \"split = 'test'\"."
KINDS_OF_INPUT = (
    "Parquet, IPC, CSV, TSV, NDJSON or .txt file, mail (.eml, .mbox, Maildir), glob, folder, "
    "folder per class, URL (s3://...), Delta or Iceberg table, database with --read query=..., or "
    "- for standard input.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RowOptions(ReadOptions):
    """Input."""

    where: str | None = option(_WHERE_HELP)

    @property
    def are_defaults(self) -> bool:
        """Whether no option on how to read the rows is given."""
        return all(getattr(self, each.name) == each.default for each in fields(RowOptions))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelledRowOptions(LabelledOptions):
    """Input."""

    where: str | None = option(_WHERE_HELP)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InputRows(RowOptions):
    """Input."""

    input: str = argument(KINDS_OF_INPUT)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelledInput(LabelledRowOptions):
    """Input."""

    input: str = argument(KINDS_OF_INPUT)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Quiet:
    """Output."""

    quiet: bool = option("Print only results: no progress, notes or summary.",
                         "--quiet", "-q", default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Results:
    """Output."""

    results_format: str = option("Format of the results.", "--format", default="text",
                                 choices=("text", "json"), metavar="FORMAT")

    def write_json_if_asked(self, result: Callable[[], Any]) -> bool:
        """Write a result as JSON if that is the format; return whether it is."""
        if self.results_format == "json":
            out(as_json(result()))
        return self.results_format == "json"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class QuietResults(Quiet, Results):
    """Output."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NewModel(Quiet):
    """Output."""

    output: str = setting(help="Model file to write.", names=("--output", "-o"), metavar="FILE")

    def check(self, *inputs: str) -> None:
        """Raise ParameterError or SourceError if the file can't be written."""
        check_target(self.output, *inputs)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModelOutput(Quiet):
    """Output."""

    output: str | None = option(
        "Model file to write.  [default: MODEL itself, replaced]", "--output", "-o",
        metavar="FILE")

    def target(self, model: str, *inputs: str | None) -> str:
        """The file to write; ParameterError or SourceError if it can't be written."""
        target = model if self.output is None else self.output
        check_target(target, *inputs)
        return target


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChosenOutput(ModelOutput, Results):
    """Output."""

    # For the verbs that choose a calibration or thresholds.
    dry_run: bool = option("Show what it would choose, and write nothing.", default=False)

    def target(self, model: str, *inputs: str | None) -> str:
        """The file to write; ParameterError or SourceError if it can't be written."""
        if self.dry_run and self.output is not None:
            raise ParameterError("--dry-run writes nothing: leave out --output")
        return super().target(model, *inputs)


def check_target(output: str, *inputs: str | None) -> None:
    """Raise ParameterError or SourceError for a model file that can't be written."""
    from textnb.files.replace import check_model_target

    check_model_target(output)
    check_apart(output, *inputs)


def check_table(
    output: str, *inputs: str | None, format: str | None = None, safe_csv: bool = False,
    advice: str = "name the file with one of them",
) -> str:
    """The format of a table to write; ParameterError if it is unknown, or an input is replaced.

    ``format`` is the one that the user chose, if any. The error for an unknown ending lists the
    known ones, and ends with ``advice``.
    """
    from textnb.frames.sinks import output_format

    check_apart(output, *inputs)
    return output_format(output, format, safe_csv=safe_csv, advice=advice)


def check_apart(output: str, *inputs: str | None, option: str = "--output") -> None:
    """Raise ParameterError for an output that would replace one of its inputs."""
    if any(input is not None and is_in_input(output, input) for input in inputs):
        raise ParameterError(f"{option} {output} is also what is read; give it another name")


def is_in_input(path: str, input: str) -> bool:
    """Whether a file is an input, or one of the files of a folder or glob that is an input."""
    if is_same_file(input, path) or not os.path.exists(path):
        return is_same_file(input, path)
    if os.path.isdir(input):
        return _is_in_folder(path, input)
    if os.path.exists(input) or not has_magic(input) or "://" in input:
        return False
    from textnb.frames.paths import expand_glob

    return any(is_in_input(path, match) for match in expand_glob(input))


def _is_in_folder(path: str, folder: str) -> bool:
    """Whether a file in a folder is read, as rows, text or mail, if the folder is the input."""
    from textnb.frames.files import files_inside
    from textnb.frames.formats import ROW_FORMATS, format_of
    from textnb.mail.mailboxes import is_maildir

    *parents, name = os.path.relpath(os.path.realpath(path), os.path.realpath(folder)).split(os.sep)
    if any(part.startswith(".") for part in (*parents, name)):
        return False
    if is_maildir(folder):
        return parents in (["cur"], ["new"])
    if not parents:
        return True
    try:
        # Folders beside files of rows are not read, and those beside messages are.
        return not any(format_of(file) in ROW_FORMATS for file in files_inside(folder))
    except SourceError:
        # Messages may have any name.
        return True


def is_same_file(path: str, other: str) -> bool:
    """Whether two paths lead to the same file; standard input and output ("-") are not files."""
    return "-" not in (path, other) and os.path.exists(path) and os.path.exists(other) and (
        os.path.samefile(path, other))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SafeCsv:
    """Output."""

    safe_csv: bool = option(
        "Put an apostrophe before each text of a CSV or TSV file that a spreadsheet could take "
        "for a formula: one that begins with = + - @, a tab or a line break.", default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tables(SafeCsv):
    """Output."""

    output_format: str | None = option(
        f"{', '.join(OUTPUT_FORMATS[:-1])} or {OUTPUT_FORMATS[-1]}.  "
        "[default: by the output's ending]", metavar="FORMAT")

    def check_table(self, output: str, *inputs: str | None) -> str:
        """Call the function `check_table` with these options."""
        return check_table(output, *inputs, format=self.output_format, safe_csv=self.safe_csv,
                           advice="or say --output-format")


def open_input(
    input: str, options: RowOptions | LabelledRowOptions, text: Any, label: str | None = None,
    features: Any = None, where_option: str = "--where", *, counts_texts: bool = False,
) -> Rows:
    """Open the rows of an input, and check that they have the columns that a step reads.

    Parameters
    ----------
    input : str
        Path, glob, URL, or "-".
    options : RowOptions or LabelledRowOptions
    text : str, list of str or None
        The text columns; None for a feature table.
    label : str, optional
        The label column, if rows must have labels.
    features : list of str, optional
        The feature columns; by default all with numbers.
    where_option : str
        The option that has the condition on rows, for errors about it.
    counts_texts : bool
        Whether to count rows without text.
    """
    from textnb.workflow.rows import open_rows

    return open_rows(input, options, text, label, features, where=options.where,
                     option=where_option, counts_texts=counts_texts, note=note)


def open_input_for(
    model: AnyModel, input: str, options: RowOptions | LabelledRowOptions,
    label: str | None = None, where_option: str = "--where",
) -> Rows:
    """Open the rows of an input with the columns that a model reads, and the label column."""
    return open_input(input, options, text_columns(model), label, features_of(model), where_option)


@contextmanager
def work_on(
    rows: Rows, activity: str, past_tense: str, quiet: bool, unit: str = "document",
    phase: str = "", target: str | None = None,
) -> Iterator[Callable[[int], None]]:
    """Show the progress of the block, which reads the rows; then note malformed messages.

    Parameters are those of `progress`, whose function for numbers of rows is yielded. Errors of the
    block name the source of the rows.
    """
    with rows.naming_source(), progress(
            activity, past_tense, quiet, unit, phase=phase, size=rows.size,
            target=target) as advance:
        yield advance
    if not quiet:
        note_malformed(rows)


def total_size(tables: Sequence[Rows]) -> Size | None:
    """The total number of rows of several tables; None if one number is not known."""
    from textnb.runtime.progress import Size

    sizes = [size for table in tables if (size := table.size()) is not None]
    return None if len(sizes) < len(tables) else Size(
        sum(size.rows for size in sizes), all(size.is_exact for size in sizes))


def note_malformed(rows: Rows) -> None:
    """Note how many messages are malformed, if the rows are mail."""
    if rows.malformed:
        note(f"note: {quantity(len(rows.malformed), 'message', 'is', 'are')} malformed; textnb "
             f"mail {shlex.quote(rows.source)} --errors lists what is wrong")


def note_columns_without_text(rows: Rows) -> None:
    """Warn of text columns that are empty in all rows: in mail, a header's name may be wrong."""
    from textnb.frames.mail import COLUMNS, header_names
    from textnb.mail.columns import TOKENS

    # All but the first one, "label", which only mail in folders per class has.
    is_mail = set(COLUMNS[1:]) <= set(rows.frame.collect_schema())
    for name in rows.columns_without_text:
        if is_mail and name not in (*COLUMNS, TOKENS, "text"):
            hint = suggestion(name.lower(), header_names(rows.frame))
            note(f"warning: no message has a header {printable(name)!r}{printable(hint)}")
        elif rows.has_several_texts:
            note(f"warning: the column {printable(name)!r} holds no text in any row")


def describe_size(model: AnyModel) -> str:
    """The number of classes or labels, and of terms; or of features, with their columns."""
    classes = quantity(len(classes_of(model)), "label" if predicts_lists(model) else "class")
    if text_columns(model) is None:
        return (f"{classes}, {quantity(len(model.feature_names_), 'feature')} "
                f"({first_names(model.features_)})")
    pruned = "" if model.pruned is None else f" ({model.pruned.describe()})"
    return f"{classes}, {quantity(len(model.terms), 'term')}{pruned}"


def first_names(names: Sequence[str]) -> str:
    """The first eight names as a string, with ", ..." if there are more."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def unit_of(classifier: AnyModel) -> str:
    """The noun for one row: "document" for a model of texts, else "row"."""
    return "document" if text_columns(classifier) is not None else "row"
