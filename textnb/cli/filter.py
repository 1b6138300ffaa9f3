"""The verb filter: it judges one message, or the new messages of a Maildir.

Exit codes are those of bogofilter: 0 spam, 1 ham, 2 unsure, 3 error.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from textnb.cli.console import note, out
from textnb.cli.inputs import ModelFile, Results
from textnb.cli.options import judging_verb, option, usage_errors
from textnb.cli.stream import FAILED, Stream
from textnb.cli.verdicts import (
    EXIT_CODES,
    TIMEOUT_SECONDS,
    answer_one,
    judging_settings,
    notes_on,
    verdict_as_dict,
)
from textnb.filter.verdict import MIN_LEARNED, Verdict
from textnb.workflow.results import as_json

if TYPE_CHECKING:
    from textnb.filter.mailfilter import MailFilter


# Kinds of messages of a Maildir that get no verdict; the summary counts them.
_BEFORE, _GONE, _FAILED = "judged before", "gone meanwhile", "could not be judged or filed"


# The docstring of a class of options is their heading in --help.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class VerdictOptions:
    """Verdict."""

    spam_class: str | None = option(
        "Class that is spam.  [default: the class of the model's decision, else spam; none if "
        "the decision is for another class and there is a class spam]",
        metavar="CLASS")
    spam_cutoff: float | None = option(
        "Judge as spam from this probability on, instead of by the model's decision.")
    ham_cutoff: float | None = option(
        "With --spam-cutoff: judge as ham up to this probability, and as unsure between the two.")
    min_learned: int = option(
        "Answer unsure if the model has learned fewer messages of spam, or of the rest.",
        default=MIN_LEARNED, minimum=0)

    def settings(self) -> dict[str, Any]:
        """The arguments of `MailFilter.load`."""
        return judging_settings(
            self.spam_class, self.spam_cutoff, self.ham_cutoff, self.min_learned)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OneVerdict(VerdictOptions):
    """Verdict."""

    timeout: float | None = option(
        "Seconds after which judging one message fails, including the time to read it (but not "
        "with --passthrough, which needs all of it); 0 is no limit.  "
        f"[default: {TIMEOUT_SECONDS:.0f}]")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MaildirOptions:
    """Maildir."""

    maildir: str | None = option(
        "File the messages in new/ of this Maildir instead of reading one.", metavar="FOLDER")
    spam_folder: str | None = option(
        "Where --maildir files spam: a folder of the Maildir.  [default: .Spam]")
    unsure_folder: str | None = option(
        "Where --maildir files messages that are unsure.  [default: they stay in new/]")
    dry_run: bool = option("With --maildir: list the verdicts, and file nothing.", default=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FilterOutput(Results):
    """Output."""

    passthrough: bool = option(
        "Write the message with a header X-Textnb-Status, otherwise byte for byte as it came; if "
        "judging fails, without it. One that the sender forged gets another name.",
        "--passthrough", "-p", default=False)
    exit_zero: bool = option(
        "Exit with 0 for every verdict, for mail systems to which another code is a failure; an "
        "error is still 3.", "--exit-zero", "-e", default=False)


@judging_verb
def filter_mail(
    file: ModelFile, options: OneVerdict, maildir: MaildirOptions, output: FilterOutput
) -> None:
    """Judge one message from standard input: exit code 0 spam, 1 ham, 2 unsure, 3 error."""
    from textnb.errors import ParameterError

    model, settings = file.model, options.settings()
    if maildir.spam_folder == "":
        raise ParameterError.out_of_range("--spam-folder", "the name of a folder", "")
    if maildir.maildir is not None:
        for name, present in (("--passthrough", output.passthrough),
                              ("--exit-zero", output.exit_zero),
                              ("--timeout", options.timeout is not None)):
            if present:
                raise ParameterError(f"{name} is for one message; --maildir files many")
        _file_messages(model, settings, maildir.maildir, maildir, output.results_format)
        return
    for name, value in (("--dry-run", maildir.dry_run), ("--spam-folder", maildir.spam_folder),
                        ("--unsure-folder", maildir.unsure_folder)):
        if value:
            raise ParameterError(f"{name} belongs to --maildir")

    def judge(message: bytes) -> Verdict:
        return _load(model, settings).judge(message)

    stream = click.get_current_context().find_object(Stream) or Stream()
    raise click.exceptions.Exit(answer_one(
        stream, judge, note, passthrough=output.passthrough, exit_zero=output.exit_zero,
        results_format=output.results_format, timeout=options.timeout))


def _load(model: str, settings: dict[str, Any]) -> MailFilter:
    from textnb.filter.mailfilter import MailFilter

    return MailFilter.load(model, **settings)


def _file_messages(
    model: str, settings: dict[str, Any], maildir: str, options: MaildirOptions, format: str,
) -> None:
    """Judge the new messages of a Maildir, and move them into the folders of their verdicts."""
    from textnb.errors import SourceError, first_line, printable
    from textnb.filter.judged_messages import JudgedMessages, judge_key
    from textnb.filter.maildir import (
        MessageMoved,
        file_message,
        new_messages,
        read_content,
        subfolder,
    )
    from textnb.mail.message import MAX_MESSAGE
    from textnb.storage.version2 import stated_checksum

    signals_received = _watch_signals()
    folders = {"spam": subfolder(maildir, options.spam_folder or ".Spam"),
               "unsure": None if options.unsure_folder is None else subfolder(
                   maildir, options.unsure_folder)}
    # A message that was judged with the same key, and stayed in new/, is not judged again. The key
    # is made before the model is read: if the model is replaced meanwhile, the key is of the old
    # model, and all messages are judged again next time.
    key = judge_key(stated_checksum(model), {**settings, "files": sorted(
        status for status, folder in folders.items() if folder is not None)})
    mail_filter = _load(model, settings)
    judged_messages = JudgedMessages(maildir, key)
    counts, reasons = dict.fromkeys((*EXIT_CODES, _BEFORE, _GONE, _FAILED), 0), set()
    try:
        try:
            paths, skipped = new_messages(maildir)
        except OSError as error:
            raise SourceError.unreadable(
                printable(os.path.join(maildir, "new")), error.strerror or error) from None
        for path in paths:
            if signals_received:
                break
            if path in judged_messages:
                counts[_BEFORE] += 1
                continue
            try:
                # One byte more than the maximum shows that a message is too long.
                verdict = mail_filter.judge(read_content(path, MAX_MESSAGE + 1))
                target = folders.get(verdict.status)
                if options.dry_run:
                    pass
                elif target is None:
                    judged_messages.add(path)
                else:
                    file_message(path, target)
            except MessageMoved:
                counts[_GONE] += 1
                continue
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                # A message that fails stays in its place, and the others are judged. BaseException,
                # because a panic of Polars is not an Exception.
                counts[_FAILED] += 1
                reason = getattr(error, "strerror", None) or first_line(error)
                note(printable(f"note: {path} stays where it is: {reason}"))
                continue
            counts[verdict.status] += 1
            reasons.add(verdict.reason)
            answer = {"path": path, **verdict_as_dict(verdict),
                      "filed": None if options.dry_run else target}
            out(as_json(answer) if format == "json"
                else f"{verdict.status} {verdict.log_odds:.6f} {printable(path)}")
    finally:
        try:
            judged_messages.save()
        except (OSError, SourceError) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            note("note: the messages judged now will be judged again, as they can't be noted: "
                 f"{reason}")
    if signals_received:
        note("interrupted; what was filed stays where it was put")
        raise click.exceptions.Exit(FAILED)
    note(", ".join(f"{number:,} {kind}" for kind, number in (counts | skipped).items()
                   if number or kind in EXIT_CODES))
    note(*notes_on(sorted(reasons)))
    if counts[_FAILED]:
        raise click.exceptions.Exit(FAILED)


def _watch_signals() -> list[int]:
    """Start to collect the signals that ask to stop; return the list to which they are added.

    They raise no exception, which could get lost in a callback.
    """
    signals_received: list[int] = []
    # Without a stream, another program calls the verb, and handles signals itself.
    if click.get_current_context().find_object(Stream) is not None:
        for number in (signal.SIGINT, signal.SIGTERM):
            # A command that is started with a signal ignored (nohup) keeps ignoring it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, frame: signals_received.append(number))
    return signals_received


# A group with one verb, so that usage is shown as "textnb filter ..." as it is for all verbs.
group = click.Group(name="textnb", commands={"filter": filter_mail})


def run(arguments: Sequence[str], stream: Stream) -> int:
    """Run the verb, and return its exit code."""
    try:
        # The verb finds the stream as the object of its context.
        with (usage_errors(), group.make_context("textnb", [*arguments], obj=stream) as context):
            group.invoke(context)
        code = 0
    except click.exceptions.Exit as exit:
        code = exit.exit_code
    except click.ClickException as error:
        error.show()
        return FAILED
    # Flushed here, so that a failure to write the output is an error of this verb.
    if sys.stdout is not None:
        sys.stdout.flush()
    return code
