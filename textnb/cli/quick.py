"""`textnb filter` for one message, in the time that the interpreter takes to start.

It reads the common options without the parser of options, and judges by `textnb.filter.quick`. An
option, a model or a message that it does not know it leaves to `textnb.cli.filter`, which knows all
of them and reports what is wrong. Where both can answer, they give the same answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from textnb.cli.stream import Stream
from textnb.cli.verdicts import (
    CODES,
    LONGEST_SECONDS,
    TIMEOUT_SECONDS,
    log_odds_of,
    notes_on,
    status_line,
    verdict_as_dict,
)
from textnb.errors import TextnbError
from textnb.runtime.stderr import tell

_FLAGS = {"-p": "passthrough", "--passthrough": "passthrough", "-e": "exit_zero",
          "--exit-zero": "exit_zero"}
_NUMBERS = {"--spam-cutoff": "spam_cutoff", "--ham-cutoff": "ham_cutoff", "--timeout": "timeout"}
_TEXTS = {"--spam-class": "spam_class", "--format": "format"}
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,20})?|\.[0-9]{1,20}")
_COUNT = re.compile(r"[0-9]{1,9}")


class Options:
    """The options of one command that this module knows."""

    def __init__(self) -> None:
        self.model = ""
        self.flags: set[str] = set()
        self.numbers: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        self.min_learned = 10


def options_of(arguments: Sequence[str]) -> Options | None:
    """The options of ``filter MODEL ...``; None if this module does not know one of them.

    Examples
    --------
    >>> options_of(["filter", "m.textnb", "-ep", "--timeout=5"]).numbers
    {'timeout': 5.0}
    >>> options_of(["filter", "m.textnb", "--maildir", "Mail"])
    """
    if not arguments or arguments[0] != "filter":
        return None
    options = Options()
    words = iter(arguments[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if word in _FLAGS:
            options.flags.add(_FLAGS[word])
        elif word in ("-pe", "-ep"):
            options.flags |= {"passthrough", "exit_zero"}
        elif name in _NUMBERS or name in _TEXTS or name == "--min-learned":
            value = value if equals else next(words, "")
            if not _set_value(options, name, value):
                return None
        elif word.startswith("-") or not word or options.model:
            return None
        else:
            options.model = word
    return options if options.model and _is_allowed(options) else None


def answer(arguments: Sequence[str], stream: Stream) -> int | None:
    """Judge one message, and return the exit code; None if this module does not know all of it."""
    options = options_of(arguments)
    if options is None:
        return None
    # Imported here, so that an unknown option does not pay for these imports.
    from textnb.files.require import Unsupported
    from textnb.filter.quick import QuickFilter

    try:
        message = stream.message()
        stream.limit(options.numbers.get("timeout", TIMEOUT_SECONDS))
        cutoffs = log_odds_of(*(
            options.numbers.get(name) for name in ("spam_cutoff", "ham_cutoff")))
        with QuickFilter(options.model, spam=options.texts.get("spam_class"),
                         least_learned=options.min_learned, cutoffs=cutoffs) as judge:
            verdict, judging = judge.judge(message), judge.judging
    except (Unsupported, TextnbError):
        # The full command reports what is wrong.
        return None
    code = 0 if "exit_zero" in options.flags else CODES[verdict.status]
    at: int | None = None
    if "passthrough" in options.flags:
        at, text = status_line(message, verdict)
    elif options.texts.get("format") == "json":
        if not math.isfinite(verdict.log_odds):
            return None
        shown = json.dumps(verdict_as_dict(verdict), ensure_ascii=False, allow_nan=False)
        text = f"{shown}\n".encode("utf-8", "backslashreplace")
    else:
        text = f"{verdict.status} {verdict.log_odds:.6f}\n".encode()
    for line in notes_on(judging, [verdict.reason]):
        tell(line)
    stream.answer(text, at)
    return code


def _set_value(options: Options, name: str, value: str) -> bool:
    """Set the value of an option; return whether this module understands it."""
    if name == "--min-learned":
        if not _COUNT.fullmatch(value):
            return False
        options.min_learned = int(value)
    elif name in _NUMBERS:
        if not _NUMBER.fullmatch(value):
            return False
        options.numbers[_NUMBERS[name]] = float(value)
    else:
        if not value or value.startswith("-"):
            return False
        options.texts[_TEXTS[name]] = value
    return True


def _is_allowed(options: Options) -> bool:
    """Whether the options go together; if not, the full command says why."""
    json_wanted = options.texts.get("format", "text") == "json"
    return (options.texts.get("format", "text") in ("text", "json")
            and not (json_wanted and "passthrough" in options.flags)
            and options.numbers.get("timeout", 0.0) <= LONGEST_SECONDS)
