"""The verbs audit, which finds what is wrong with labelled rows, and relabel, which corrects it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, out
from textnb.cli.inputs import (
    LabelledInput,
    Quiet,
    Results,
    SafeCsv,
    check_table,
    open_input,
    work_on,
)
from textnb.cli.options import option, verb
from textnb.errors import DataError, ParameterError, TextnbError, quantity
from textnb.runtime.settings import Columns, setting
from textnb.workflow.options import AuditOptions

if TYPE_CHECKING:
    from textnb.evaluation.audit import Audit


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TextAndLabel:
    """Columns."""

    text: Columns = option("Text column; repeat it for several.", default="text")
    label: str = option("Label column.", default="label")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TestRows:
    """Input."""

    test: str | None = option("Test rows, which should share no text with INPUT.", metavar="FILE")
    test_where: str | None = option(
        "Use those for which this SQL condition holds; without --test, rows of INPUT.",
        is_common=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditOutput(Quiet, Results):
    """Output."""

    output: str | None = option("File, by its ending, for all findings.", "--output", "-o",
                                metavar="FILE")
    show: int = option("Findings of each kind to show.", default=5, minimum=0)


@verb
def audit(
    rows: LabelledInput, test: TestRows, columns: TextAndLabel, options: AuditOptions,
    output: AuditOutput,
) -> None:
    """Find wrong labels, leaks, duplicates, and rows and classes that can't be learned well."""
    from textnb.evaluation.audit import audit
    from textnb.frames import sinks
    from textnb.workflow.rows import check_storage_options, options_for

    options.check()
    if output.output is not None:
        check_table(output.output, rows.input, test.test)
    check_storage_options(rows, rows.input, test.test)
    table = open_input(rows.input, options_for(rows.input, rows), columns.text, columns.label)
    test_rows = None
    # With --test-where alone, the test rows are rows of INPUT.
    if test.test is not None or test.test_where is not None:
        source = rows.input if test.test is None else test.test
        test_rows = open_input(source, replace(options_for(source, rows), where=test.test_where),
                               columns.text, columns.label, where_option="--test-where")
    with work_on(table, "auditing", "audited", output.quiet) as advance:
        result = audit(table.frame, test=None if test_rows is None else test_rows.frame,
                       text=columns.text, label=columns.label, model=options.model,
                       near=options.near, progress=advance)
    if output.output is not None:
        sinks.write(result.findings.lazy(), output.output)
    if not output.write_json_if_asked(result.to_dict):
        _show(result, output.show)
    # Raises an error if there are findings of a kind that --fail-on names.
    result.check(options.fail_on or ())


def _show(result: Audit, limit: int) -> None:
    """Show up to ``limit`` findings of each kind, and then how many there are of each."""
    import polars as pl

    from textnb.cli.summary import audit_lines
    from textnb.cli.tables import frame_table, show

    for (kind,), findings in result.findings.group_by("finding", maintain_order=True):
        shown = findings.drop("finding").head(limit)
        if shown.height:
            title = str(kind) if shown.height == findings.height else (
                f"{kind}, {shown.height} of {findings.height:,}")
            not_empty = shown.select(name for name in shown.columns if shown[name].count())
            # Lists of labels become texts.
            show(frame_table(
                not_empty.with_columns(pl.col(pl.List(pl.String)).list.join("; ")), title))
    out(*audit_lines(result))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Review:
    """Review."""

    reviewed: str = setting(
        help="File with the columns row (numbered from 0, as audit does) and the new label, in the "
        "label's column or in suggested.", names=("--from",), metavar="FILE")
    model: str | None = option(
        "Model file that has learned INPUT, replaced by one that forgets and learns exactly the "
        "rows that change.", metavar="MODEL")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RelabelOutput(SafeCsv, Quiet):
    """Output."""

    output: str = setting(help="File for the corrected rows, by its ending.",
                          names=("--output", "-o"), metavar="FILE")


@verb
def relabel(
    rows: LabelledInput, columns: TextAndLabel, review: Review, output: RelabelOutput
) -> None:
    """Write the rows with the labels of a review, and correct a model that has learned them."""
    from textnb.frames import sinks
    from textnb.frames.failures import naming_source
    from textnb.frames.scan import scan_table
    from textnb.workflow.one_message import has_ledger
    from textnb.workflow.relabel import relabel, relearn
    from textnb.workflow.update import change_model

    check_table(output.output, rows.input, review.reviewed, review.model, safe_csv=output.safe_csv)
    if review.model is not None and has_ledger(review.model):
        raise ParameterError("--model is changed by its ledger: textnb update learns messages as "
                             "another class, and forgets them first")
    table = open_input(rows.input, rows, columns.text, columns.label)
    with naming_source(review.reviewed):
        # The labels of a CSV file stay as they are written: 02 is not 2, and True is not true.
        reviewed = scan_table(review.reviewed, []).collect()
    with table.naming_source():
        all_rows = table.frame.collect()
        try:
            correction = relabel(all_rows, reviewed, columns.label)
        except DataError as error:
            raise error.add_prefix(f"{review.reviewed}: ") from None
    table.refuse_unreadable()

    def write() -> None:
        sinks.write(correction.rows.lazy(), output.output, safe_csv=output.safe_csv)

    if review.model is None:
        write()
    else:
        from textnb.filter.by_ledger import Changes

        # The beginning of the error if the model can't be written: it says if the rows were.
        about_rows = ""

        # `change_model` calls this with the model of the file; the ledger is None here.
        def change(model: Any, ledger: Any) -> Changes:
            nonlocal about_rows
            changes = Changes(fitted=relearn(model, correction))
            write()
            about_rows = f"{output.output} is written: "
            return changes

        try:
            change_model(review.model, target=review.model, change=change, with_ledger=False,
                         texts_only=True)
        except TextnbError as error:
            raise error.add_prefix(about_rows) from error
    if not output.quiet:
        for name in correction.new_labels:
            note(f"note: no row had the label {name!r} before")
        about_model = "" if review.model is None else f", and {review.model} has learned them"
        note(f"{quantity(correction.before.height, 'row')} of {all_rows.height:,} relabelled -> "
             f"{output.output}{about_model}")
