"""The command line: thin verbs over the library.

Results go to standard output, progress and notes to standard error. Exit codes: 0 success, 1 bad
data (the file or row is named), 2 bad usage; `filter` and `drift` have codes of their own.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import click

from textnb.cli.options import HELP_SETTINGS, Command, key_options_of, usage_errors
from textnb.errors import suggestion

# The groups of verbs in `textnb help`, in order. Each verb has its module in `textnb.cli`, with
# ":function" if the function has another name than the verb. Its line in the help repeats the first
# line of the function's docstring, so that help imports no module of a verb.
GROUPS = {
    "learn": {
        "train": ("train", "Learn a classifier from labelled rows and write its model file."),
        "tune": ("tune",
            "Search for the settings that classify labelled rows best, and train a model with "
            "them."),
        "run": ("run",
            "Run a job: train, validate, calibrate, decide, test, report, predict, export in one "
            "go."),
        "update": ("update",
            "Learn more labelled rows: the model equals one that is trained on all rows."),
        "forget": ("update",
            "Forget rows: the model equals one that is trained without them."),
        "merge": ("update",
            "Add models: the result equals one model that is trained on all their documents."),
        "samples": ("samples",
            "Write small example files: news, mail and numbers, with which the documentation "
            "works."),
    },
    "judge": {
        "predict": ("predict",
            "Write the input with a column for the predicted class, in order."),
        "test": ("test:run_test",
            "Score labelled rows: accuracy, and precision, recall and F1 per class."),
        "validate": ("validate",
            "Cross-validate a model's settings: its tokenizer, limits and estimator are fitted "
            "again."),
        "calibrate": ("calibrate",
            "Fit a temperature, so that probabilities mean what they say, and keep it in the "
            "model."),
        "threshold": ("threshold",
            "Choose the scores from which a class is answered, and keep them in the model."),
    },
    "examine": {
        "describe": ("export", "Show a model's settings, classes and guarantees."),
        "mistakes": ("predict",
            "Write the labelled rows that the model misjudges: number (from 0), answer, what "
            "misled it."),
        "next": ("predict:next_rows",
            "Write the rows to label next, the most useful first: number (from 0), answer, and "
            "why."),
        "top": ("predict", "Show the terms that distinguish each class best."),
        "explain": ("predict", "Show what decides one text, or one mail message, term by term."),
        "diff": ("update",
            "Show how two models differ: classes, terms that moved most, decisions that change."),
        "drift": ("drift",
            'Tell whether mail or other documents have changed: exit code 3 for "choose again".'),
        "audit": ("audit",
            "Find wrong labels, leaks, duplicates, and rows and classes that can't be learned "
            "well."),
        "relabel": ("audit",
            "Write the rows with the labels of a review, and correct a model that has learned "
            "them."),
        "duplicates": ("duplicates",
            "Count the rows of TEST whose text, or nearly the same text, is also in TRAIN."),
    },
    "export": {
        "export": ("export",
            "Write a model for another system: weights, tokenizer, and golden rows to prove it."),
        "verify": ("export",
            "Run golden rows through the real engine and compare; exit code 1 on any difference."),
    },
    "mail": {
        "mail": ("mail",
            "Write mail as a table, a row per message; malformed messages too, with what is "
            "wrong."),
        "filter": ("filter:filter_mail",
            "Judge one message from standard input: exit code 0 spam, 1 ham, 2 unsure, 3 error."),
        "serve": ("serve",
            "Judge messages over a socket, in the protocol of SpamAssassin's spamd."),
    },
}
VERBS = {verb: entry for group in GROUPS.values() for verb, entry in group.items()}


def command_of(verb: str) -> click.Command | None:
    """The command of a verb; its module is imported only now."""
    if verb not in VERBS:
        return None
    module, _, function = VERBS[verb][0].partition(":")
    command: click.Command = getattr(import_module(f"textnb.cli.{module}"), function or verb)
    return command


class Verbs(click.Group):
    """The verbs by name, each imported when it is called."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with usage_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with usage_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_of(cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            # The user wants help, so it goes to standard output; but a verb is missing: bad usage.
            click.echo(ctx.get_help())
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "help":
            if args == ["help"] and not ctx.resilient_parsing:
                click.echo(ctx.get_help())
                ctx.exit()
            args = _help_arguments(ctx, args[1:])
        name = args[0]
        if name not in VERBS and not name.startswith("-") and not ctx.resilient_parsing:
            hint = suggestion(name, [*VERBS, "help"]) or "; textnb help lists all"
            ctx.fail(f"No such command {name!r}{hint}")
        if name == "train":
            _import_model(args[1:])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The same width for all names, so that the lines of all groups are aligned.
        width = max(map(len, VERBS))
        for group, verbs in GROUPS.items():
            with formatter.section(group.capitalize()):
                formatter.write_dl([(verb.ljust(width), line) for verb, (_, line) in verbs.items()])


def _help_arguments(ctx: click.Context, words: list[str]) -> list[str]:
    """Translate the words after ``help``, VERB TOPIC..., to the arguments VERB --help TOPIC..."""
    # "help read" and "help set" show these topics of `train`, which has both.
    verb, *topics = ["train", *words] if words[:1] in (["read"], ["set"]) else words or [""]
    command = command_of(verb)
    known_topics = key_options_of(command.groups) if isinstance(command, Command) else []
    if command is not None and not set(topics) <= set(known_topics) and not ctx.resilient_parsing:
        ctx.fail(f"textnb help {verb} has no topic {topics[0]!r}"
                 + (f": it has {' and '.join(known_topics)}" if known_topics else ""))
    return [verb, "--help", *topics]


def _import_model(args: list[str]) -> None:
    """Import the model that ``--model`` names: its settings are options of the command."""
    from textnb.models.known import import_model

    # The kind follows --model after "=", or as the next argument.
    for arg, next_arg in pairwise([*args, ""]):
        option, _, kind = arg.partition("=")
        if option == "--model":
            import_model(kind or next_arg)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import platform
    from importlib.metadata import version

    from textnb.runtime import __version__
    from textnb.runtime.native import KERNEL, load_compiled

    compiled = load_compiled(KERNEL)
    kernel = ("with the compiled kernel" if compiled.kernel is not None
              else f"without the compiled kernel: {compiled.reason}")
    click.echo(f"textnb {__version__} (Python {platform.python_version()}, Polars "
               f"{version('polars')}, {kernel})")
    ctx.exit()


app = Verbs(
    name="textnb", context_settings=dict(HELP_SETTINGS),
    params=[click.Option(["--version", "-V"], is_flag=True, is_eager=True, expose_value=False,
                         callback=_show_version, help="Show the version and exit.")],
    help="Text classification from a table of documents: train, test, predict, explain.",
    epilog="textnb help VERB shows the options of a verb. "
           "TEXTNB_KERNEL=off in the environment reads texts without the compiled kernel, with the "
           "same results, more slowly; --version says whether it is there.",
)
