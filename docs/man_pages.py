"""Man pages of the commands that a mail system's administrator runs, from the program's own help.

    python docs/man_pages.py

writes them into ``docs/man``; the wheel installs them into ``share/man/man1``. They are in the
repository, because a build of the wheel has no dependencies that the program could run with.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

FOLDER = Path(__file__).parent / "man"
# Of the last change that users should read about.
DATE = "2026-11-23"
# All others have `textnb VERB --help-all`.
VERBS = ("filter", "serve")
# What the help does not say: a section's title, and its text in roff.
MORE = {
    "": [("EXIT STATUS", """\
.TP
0
Success.
.TP
1
Bad data; the error names the file or the row.
.TP
2
Bad usage.
.PP
.B textnb filter
has its own."""), ("SEE ALSO", """\
.BR textnb\\-filter (1),
.BR textnb\\-serve (1).
.B textnb VERB \\-\\-help\\-all
shows all options of the others.""")],
    "filter": [("EXIT STATUS", """\
With
.BR \\-\\-exit\\-zero ,
0 for every verdict.
.TP
0
Spam.
.TP
1
Ham.
.TP
2
Unsure: neither.
.TP
3
Any failure. With
.B \\-\\-passthrough
the message has been written even so."""), ("EXAMPLES", """\
A rule of
.BR procmail (1)
that marks each message:
.PP
.nf
:0fw
| textnb filter spam.textnb \\-\\-passthrough \\-\\-exit\\-zero
.fi"""), ("SEE ALSO", ".BR textnb (1),\n.BR textnb\\-serve (1)")],
    "serve": [("SIGNALS", """\
.TP
SIGHUP
Start new workers, one after the other. A worker whose successor can't
read a model stays.
.TP
SIGTERM, SIGINT
Answer the requests that were taken, for 10 seconds at most, and end."""), ("FILES", """\
.TP
.I $RUNTIME_DIRECTORY/textnb.sock
The default socket, of mode 0660: clients of its owner and its group
may connect.
.TP
.I MODEL
Once it is replaced, it judges from the next message on.
.TP
.I MODEL.ledger
With
.BR \\-\\-allow\\-tell :
what clients have told, of mode 0600."""), ("EXAMPLES", """\
.nf
textnb serve spam.textnb \\-\\-listen /run/textnb/textnb.sock
spamc \\-U /run/textnb/textnb.sock < message.eml
.fi"""), ("SEE ALSO", ".BR textnb (1),\n.BR textnb\\-filter (1),\n.BR spamc (1)")],
}


class Roff(click.HelpFormatter):
    """Writes the help of a command as the body of a man page."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self.write(f".SH SYNOPSIS\n.B {escaped(prog)}\n{wrapped(args)}")

    def write_paragraph(self) -> None:
        """Paragraphs are separated where they are written."""

    def write_text(self, text: str) -> None:
        paragraphs = re.split(r"\n\s*\n", text.strip())
        self.write(".PP\n".join(map(wrapped, paragraphs)))

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        for name, text in rows:
            self.write(f".TP\n.B {escaped(name.rstrip())}\n{wrapped(text)}")

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        self.write(f".SS {name}\n")
        yield


def escaped(text: str) -> str:
    """Text that roff shows as it is; a line must not begin with its control characters."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


def wrapped(text: str) -> str:
    return escaped("\n".join(textwrap.wrap(
        text, 72, break_on_hyphens=False, break_long_words=False))) + "\n"


def page(verb: str = "") -> str:
    """The man page of a verb, or of the program."""
    from textnb.cli.main import VERBS, app, command_of

    command = command_of(verb) if verb else app
    assert command is not None
    context = click.Context(
        command, info_name=f"textnb {verb}".rstrip(), **command.context_settings)
    context.meta["textnb.all"] = True
    name, roff = f"textnb-{verb}".rstrip("-"), Roff()
    says = re.split("[,:.]", VERBS[verb][1])[0] if verb else "Text classification and mail filter"
    roff.write(f'.\\" Written by docs/man_pages.py.\n'
               f".TH {escaped(name.upper())} 1 {DATE} textnb\n"
               f".SH NAME\n{escaped(name)} \\- {escaped(says[0].lower() + says[1:])}\n")
    command.format_usage(context, roff)
    roff.write(".SH DESCRIPTION\n")
    command.format_help_text(context, roff)
    roff.write(".SH OPTIONS\n")
    command.format_options(context, roff)
    if command.epilog:
        roff.write(".SH ENVIRONMENT\n")
        command.format_epilog(context, roff)
    for title, text in MORE[verb]:
        roff.write(f".SH {title}\n{text}\n")
    return roff.getvalue()


def pages() -> dict[Path, str]:
    """What each file should be."""
    return {FOLDER / f"{f'textnb-{verb}'.rstrip('-')}.1": page(verb) for verb in ("", *VERBS)}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, "utf-8")
