"""The verb mail: it makes a table of mail, and lists what is malformed in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textnb.cli.console import note, out, progress
from textnb.cli.inputs import Quiet, Results, Tables
from textnb.cli.options import argument, option, verb
from textnb.errors import ParameterError, printable, quantity
from textnb.workflow.options import MailOptions

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MailInput(MailOptions):
    """Input."""

    source: str = argument(
        "Message file, mbox, Maildir, folder of these, folder per class, tar archive, glob, or - "
        "for a message on standard input.")
    header: list[str] | None = option(
        "Add a column for this header; repeat it for several.", metavar="NAME",
        python_name="headers")
    tokens: bool = option(
        "Add a column with the tokens of the default model: words, and tokens for headers, links, "
        "MIME parts.", default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MailOutput(Quiet, Results, Tables):
    """Output."""

    output: str | None = option(
        "File to write, by its ending, or - for standard output.  [default: -, or nothing with "
        "--errors]", "--output", "-o", metavar="FILE")
    errors: bool = option(
        "List the messages that are malformed, and how many of each kind.", default=False)


@verb
def mail(input: MailInput, output: MailOutput) -> None:
    """Write mail as a table, a row per message; malformed messages too, with what is wrong."""
    import polars as pl

    from textnb.frames import sinks
    from textnb.frames.batches import collect_batches
    from textnb.frames.failures import naming_source
    from textnb.frames.mail import scan_mail

    path, target = input.source, output.output
    errors, output_format = output.errors, output.output_format
    if not errors and output.results_format != "text":
        raise ParameterError("--format is for --errors; for the table, see --output-format")
    if target is None and (not errors or output_format is not None):
        target = "-"
    if errors and target == "-":
        raise ParameterError("--errors and the table can't both go to standard output; give "
                             "--output a file")
    if target is not None:
        output.check_table(target, path)
    with naming_source(path):
        frame = scan_mail(path, headers=input.header or [], subfolders=input.subfolders,
                          tokens=input.tokens)
    # It begins with an empty table, which gives the columns if there is no batch.
    malformed = [pl.DataFrame(schema={"path": pl.String, "errors": pl.List(pl.String)})]
    with naming_source(path), progress(
            "reading", "read", output.quiet, "message", target=target) as advance:

        def add_errors(batch: pl.DataFrame) -> pl.DataFrame:
            malformed.append(batch.select("path", "errors").filter(pl.col("errors").list.len() > 0))
            advance(batch.height)
            return batch

        if target is None:
            # Small batches, so that the progress is shown often.
            for batch in collect_batches(frame.select("path", "errors"), 512):
                add_errors(batch)
        else:
            frame = frame.map_batches(add_errors, schema=frame.collect_schema(), streamable=True)
            sinks.write(frame, target, output_format, safe_csv=output.safe_csv)
    # Polars may deliver batches in another order.
    messages = pl.concat(malformed).sort("path")
    if errors:
        _show_errors(messages, output)
    elif not output.quiet and messages.height:
        note(f"note: {quantity(messages.height, 'message', 'is', 'are')} malformed; --errors "
             "lists them")


def _show_errors(malformed: pl.DataFrame, output: MailOutput) -> None:
    """Show what is malformed in each message, and how many have each kind of error."""
    import polars as pl

    from textnb.cli.tables import frame_table, show
    from textnb.frames.mail import mail_errors

    kinds = mail_errors(malformed)
    if output.write_json_if_asked(kinds.to_dicts):
        return
    for path, errors in malformed.with_columns(pl.col("errors").list.join("; ")).iter_rows():
        out(printable(f"{path}: {errors}"))
    show(frame_table(kinds.drop("paths")))
