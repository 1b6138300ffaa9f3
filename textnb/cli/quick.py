"""A fast path of `textnb filter` for one message: it imports little, so that it starts quickly.

It reads the common options without the full parser, and judges by `textnb.filter.quick`. If it does
not support an option, a kind of model or a message, `textnb.cli.filter` does the work. That also
reports all errors. If both can answer, their answers are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from textnb.cli.stream import Stream
from textnb.cli.verdicts import answer_one, judging_settings
from textnb.errors import TextnbError
from textnb.filter.verdict import Verdict
from textnb.runtime.stderr import write_to_stderr

# The keyword arguments of `answer_one` that each flag sets to True.
_FLAGS = {"-p": ["passthrough"], "--passthrough": ["passthrough"], "-e": ["exit_zero"],
          "--exit-zero": ["exit_zero"], "-pe": ["passthrough", "exit_zero"],
          "-ep": ["passthrough", "exit_zero"]}
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,20})?|\.[0-9]{1,20}")
# For each option with a value: its keyword argument, the values that this module reads, their type.
_VALUE_OPTIONS: dict[str, tuple[str, re.Pattern[str], Callable[[str], Any]]] = {
    "--spam-cutoff": ("spam_cutoff", _NUMBER, float),
    "--ham-cutoff": ("ham_cutoff", _NUMBER, float), "--timeout": ("timeout", _NUMBER, float),
    "--spam-class": ("spam_class", re.compile("[^-].*", re.DOTALL), str),
    "--format": ("results_format", re.compile("text|json"), str),
    "--min-learned": ("min_learned", re.compile("[0-9]{1,9}"), int)}
# The arguments of `judging_settings`; the other options are those of `answer_one`.
_JUDGING_FIELDS = ("spam_class", "spam_cutoff", "ham_cutoff", "min_learned")


def options_of(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The options of ``filter MODEL ...``; None if this module does not support one of them.

    Examples
    --------
    >>> options_of(["filter", "m.textnb", "-ep", "--timeout=5"])
    {'model': 'm.textnb', 'passthrough': True, 'exit_zero': True, 'timeout': 5.0}
    >>> options_of(["filter", "m.textnb", "--maildir", "Mail"])
    """
    if not arguments or arguments[0] != "filter":
        return None
    options: dict[str, Any] = {}
    words = iter(arguments[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if word in _FLAGS:
            options.update(dict.fromkeys(_FLAGS[word], True))
        elif name in _VALUE_OPTIONS:
            field, pattern, type_ = _VALUE_OPTIONS[name]
            value = value if equals else next(words, "")
            if not pattern.fullmatch(value):
                return None
            options[field] = type_(value)
        elif word.startswith("-") or not word or "model" in options:
            return None
        else:
            options["model"] = word
    return options if "model" in options else None


def answer(arguments: Sequence[str], stream: Stream) -> int | None:
    """Judge one message, and return the exit code; None if the full command must do it."""
    options = options_of(arguments)
    if options is None:
        return None
    # Imported here: not needed if the full command answers.
    from textnb.files.require import Unsupported
    from textnb.filter.quick import QuickFilter

    model = options.pop("model")
    settings = {name: options.pop(name) for name in _JUDGING_FIELDS if name in options}

    def judge(message: bytes) -> Verdict:
        with QuickFilter(model, **judging_settings(**settings)) as mail_filter:
            return mail_filter.judge(message)

    try:
        return answer_one(stream, judge, write_to_stderr, **options)
    except (Unsupported, TextnbError):
        # The full command reports what is wrong.
        return None
