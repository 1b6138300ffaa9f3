"""The verb threshold: it chooses from which score on a class is answered, and when "unsure" is.

The docstring of a class of options is the title of its group in ``--help``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textnb.cli.console import note, out
from textnb.cli.inputs import ChosenOutput, LabelledRowOptions, ModelFile, open_input_for, work_on
from textnb.cli.options import TypedOptions, argument, option, option_of, verb
from textnb.workflow.options import DecideOptions

if TYPE_CHECKING:
    from textnb.bayes.decision import Decision
    from textnb.evaluation.novelty import Novelty
    from textnb.learning.fitted import Fitted


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ThresholdInput(LabelledRowOptions):
    """Input."""

    input: str | None = argument(
        "Labelled rows that MODEL has not learned (except with --scored): a file, glob, "
        "folder, URL, or - for standard input.", None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ThresholdOutput(ChosenOutput):
    """Output."""

    clear: bool = option("Remove the thresholds.", default=False)


@verb
def threshold(
    typed: TypedOptions, file: ModelFile, rows: ThresholdInput, options: DecideOptions,
    output: ThresholdOutput,
) -> None:
    """Choose the scores from which a class is answered, and keep them in the model."""
    from textnb.cli import evidence
    from textnb.cli.summary import threshold_lines
    from textnb.files.lock import lock_path
    from textnb.storage.textmodel import load_fitted, save_fitted

    _check(typed, rows, options, output)
    target = output.target(file.model, rows.input)
    with lock_path(target):
        fitted = load_fitted(file.model)
        decision, novelty = None, None
        if not output.clear:
            decision, novelty = _decide(fitted, rows, options, output.quiet)
        if not output.dry_run:
            fitted = fitted.with_decision(decision)
            save_fitted(fitted, target)
    evidence.note_stale(fitted)
    _note_filter(fitted, decision)
    evidence.note_unverified(novelty, output.quiet)
    if decision is None:
        if not output.quiet:
            note(f"the model answers with the most probable class -> {target}")
        return
    if output.write_json_if_asked(decision.to_dict):
        return
    out(*threshold_lines(fitted.with_decision(decision)))


def _decide(
    fitted: Fitted, rows: ThresholdInput, options: DecideOptions, quiet: bool
) -> tuple[Decision, Novelty | None]:
    """Make the decision, and find out whether its rows are new."""
    from textnb.workflow.decide import check_decision, decide, scores_of

    options.check_labels(is_multilabel=fitted.is_multilabel)
    if rows.input is None:
        # The goal is a probability, or a limit on the number of labels.
        return decide(fitted, scores=None, options=options), None
    # An error is raised before rows are read, which takes long.
    check_decision(fitted, options)
    table = open_input_for(fitted, rows.input, rows, fitted.label)
    with work_on(table, "scoring", "scored", quiet) as advance:
        scores = scores_of(fitted, table.frame, options.scored, progress=advance)
    return decide(fitted, scores, options), None if fitted.is_multilabel else scores.novelty


def _check(
    typed: TypedOptions, rows: ThresholdInput, options: DecideOptions, output: ThresholdOutput
) -> None:
    """Raise ParameterError unless options name one goal or --clear, and rows if it needs them."""
    from textnb.errors import ParameterError

    if output.clear:
        unneeded = sorted(set(typed) - {"model", "clear", "output", "quiet"})
        if unneeded:
            name = option_of(unneeded[0], ThresholdInput, DecideOptions, ThresholdOutput)
            raise ParameterError("--clear removes thresholds: it goes with MODEL (and --output), "
                                 f"not with {name}")
        return
    # New limits on the number of labels (--at-least, --at-most) alone leave the thresholds as they
    # are, and need no rows.
    typed_options = DecideOptions.__dataclass_fields__.keys() & typed.keys()
    if rows.input is None and options.label_limits and typed_options <= options.label_limits.keys():
        return
    if rows.input is None and options.needs_rows:
        raise ParameterError("thresholds are chosen on labelled rows: name an INPUT, or --clear")
    options.check()
    if rows.input is not None and not options.needs_rows:
        raise ParameterError("--min-probability needs no rows: leave out INPUT")


def _note_filter(fitted: Fitted, decision: Decision | None) -> None:
    """Note if a decision leaves it open to `textnb filter` which class is spam."""
    from textnb.filter.verdict import SPAM, default_spam

    if decision is not None and default_spam(fitted.classes.tolist(), decision.positive) is None:
        note(f"note: this decision is for {decision.positive}, and the model has a class {SPAM}: "
             f"textnb filter now needs --spam-class {SPAM} (or thresholds for --class {SPAM})")
