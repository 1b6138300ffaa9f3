"""Options as fields of frozen dataclasses, and commands made of verbs' functions.

A verb is a function whose parameters are dataclasses: each is a group of options, and its fields
are the options. The function gets an instance of each; options that were not typed have defaults::

    @dataclass(frozen=True, kw_only=True)
    class Source:
        '''Input.'''

        input: str = argument("File of rows.")
        where: str | None = option("Use the rows for which this SQL condition holds.")

    @verb
    def show(source: Source) -> None: ...

The first line of a class is the title of its group in the help text. `textnb.cli.words` knows the
types that a field may have.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, make_dataclass
from functools import partial
from io import StringIO
from itertools import pairwise
from typing import IO, Any, get_type_hints

import click
from click.shell_completion import CompletionItem

from textnb.cli.console import BAD_DATA, BAD_USAGE, run_guarded
from textnb.cli.stream import FAILED
from textnb.cli.words import as_option, is_flag, is_repeated, toml_of, value_of
from textnb.errors import Mention, ParameterError
from textnb.learning.settings import LimitSettings
from textnb.models.known import all_models
from textnb.runtime.removed import OPTIONS, removal_message
from textnb.runtime.settings import Setting, declared, setting, type_of
from textnb.text.token_settings import TokenSettings

WIDTH = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
# Settings of models that are options; the others are typed as --set NAME=VALUE.
_OPTIONS_OF_MODELS = ("l",)
# By the type of an option: its type in click, and what help shows for a value. Others are texts.
_NUMBERS = {"int": click.INT, "float": click.FLOAT}
_METAVARS = {"int": "N", "float": "N", "Pair": "N,N", "CountOrShare": "N", "NumberOrAuto": "N",
             "Numbers": "N"}


class TypedOptions(dict[str, Any]):
    """The values of the options that were typed, by the names of their fields."""


def option(help: str, *names: str, default: Any = None, **facts: Any) -> Any:
    """A field that is an option of the command line."""
    return setting(default, help, names=names, **facts)


def argument(help: str, default: Any = MISSING) -> Any:
    """A field that is an argument of the command line; without a default it is required."""
    return setting(default, help, is_argument=True)


def verb(function: Callable[..., None]) -> click.Command:
    """A command whose failures are one line on standard error and an exit code."""
    return _command(Command, function)


def judging_verb(function: Callable[..., None]) -> click.Command:
    """A command whose exit code is its answer: every failure is `FAILED`."""
    return _command(JudgingCommand, function)


def _command(kind: type[Command], function: Callable[..., None]) -> click.Command:
    hints = get_type_hints(function)
    hints.pop("return")
    groups = [hint for hint in hints.values() if hint is not TypedOptions]
    options = _options_of(groups)

    def write(setting: Mention) -> str:
        if setting.name in options:
            return as_option(setting, *options[setting.name])
        of_train = _options_of([LimitSettings, TokenSettings])
        if setting.name in of_train:
            # Only `train` has it, so advice that names it is for the model's next training.
            return f"{as_option(setting, *of_train[setting.name])} of textnb train"
        return str(setting)

    def run(**texts: Any) -> None:
        def work() -> None:
            values = TypedOptions(_values(groups, texts))
            function(*(values if hint is TypedOptions else _of_group(hint, values)
                       for hint in hints.values()))

        run_guarded(work, kind.codes, write)

    return kind(function.__name__, groups, run, function.__doc__ or "")


def _options_of(groups: list[type]) -> dict[str, tuple[str, bool]]:
    """The options of groups by the names in errors: name, and whether it takes a value."""
    return {name: (name_of(field, facts), bool(facts.under) or not is_flag(type_of(field)))
            for group in groups for field, facts in declared(group)
            if not facts.is_argument and facts.is_option
            for name in {field.name, facts.python or field.name}}


def _values(groups: list[type], texts: dict[str, Any]) -> dict[str, Any]:
    """The values of the options that were typed."""
    values = {}
    for group in groups:
        for field, facts in declared(group):
            value = texts.get(field.name)
            if value is None or value == () or facts.under:
                continue
            name = name_of(field, facts)
            if facts.choices and value not in facts.choices:
                raise ParameterError.unknown_choice(name, value, facts.choices)
            values[field.name] = value_of(type_of(field), name, value)
    for under in topics_of(groups):
        if words := texts.get(under):
            values |= _set_values(groups, under, words)
    return values


def topics_of(groups: list[type]) -> list[str]:
    """The options that take settings as KEY=VALUE."""
    return [*dict.fromkeys(facts.under for group in groups for _, facts in declared(group)
                           if facts.under and facts.is_option)]


def _group_under(groups: list[type], under: str) -> type:
    """The settings that one option takes as KEY=VALUE, as one group."""
    return make_dataclass(under, {
        field.name: (field.name, type_of(field), setting(field.default, **vars(facts)))
        for group in groups for field, facts in declared(group)
        if facts.under == under and facts.is_option}.values(), kw_only=True)


def _set_values(groups: list[type], under: str, words: Iterable[str]) -> dict[str, Any]:
    """The values of settings that were typed as KEY=VALUE."""
    from textnb.workflow.toml import Table, set_key

    group, option, table = _group_under(groups, under), f"--{under}", Table("", {}, {})
    names = _options_of(groups)
    keys: set[tuple[str, ...]] = set()
    for number, word in enumerate(words, start=1):
        if "=" not in word:
            raise ParameterError(f"{option} must be KEY=VALUE; the {number}. one is not (it is not "
                                 "shown, as it may be a secret)")
        key = set_key(table.values, word, option)
        if any(key[:len(before)] == before or before[:len(key)] == key for before in keys):
            raise ParameterError(f"{option} {'.'.join(key)} is given twice")
        keys.add(key)
        other = next((name for field, (name, _) in names.items() if not name.startswith(option)
                      and key[0] in (field, name.strip("-").replace("-", "_"))), None)
        if other is not None and not hasattr(group, key[0]):
            raise ParameterError(f"{option} {key[0]}: it is an option of its own, {other}")
    options = table.fill(group, table.values, (option,))
    table.refuse()
    return {name: getattr(options, name) for name in table.values}


def _of_group(group: type, values: TypedOptions) -> Any:
    return group(**{field.name: values[field.name] for field, _ in declared(group)
                    if field.name in values})


def name_of(field: Field[Any], facts: Setting) -> str:
    """An option's long name, as errors write it."""
    if facts.is_argument:
        return field.name.upper()
    if facts.under:
        return f"--{facts.under} {field.name}"
    names = [name for name in facts.names if name.startswith("--")]
    return (names or [f"--{field.name.replace('_', '-')}"])[0].split("/")[0]


def option_of(name: str, *groups: type) -> str:
    """The option of a field of one of the groups, as errors write it."""
    return next(name_of(field, facts) for group in groups for field, facts in declared(group)
                if field.name == name)


class Command(click.Command):
    """A command whose help text shows its options by group: all of them, or the common ones."""

    # The exit codes for bad data, for bad usage, and for output whose reader has closed it.
    codes = BAD_DATA, BAD_USAGE, 0

    def __init__(
        self, name: str, groups: list[type], callback: Callable[..., None], help: str
    ) -> None:
        params: list[click.Parameter] = []
        self.groups = groups
        # The title of the group of each parameter, by the parameter's name.
        self.titles: dict[str, str] = {}
        self.arguments: list[tuple[str, str]] = []
        self.rare: set[str] = set()
        for group in groups:
            for field, facts in sorted(declared(group), key=partial(_rank, group)):
                if facts.is_argument:
                    is_list = type_of(field) == "list[str]"
                    params.append(click.Argument([field.name], nargs=-1 if is_list else 1,
                                                 required=field.default is MISSING))
                    self.arguments.append((params[-1].make_metavar(None), facts.help))  # type: ignore[arg-type]  # click does not read the context
                elif facts.is_option and not facts.under:
                    params.append(_option(field, facts))
                    self.titles[field.name] = _title(group)
                    self.rare |= set() if facts.is_common else {field.name}
        for under in topics_of(groups):
            params.append(_option_of_settings(under, _group_under(groups, under)))
            # The option is in the group that has most of its settings.
            titles = Counter(_title(group) for group in groups
                             for _, facts in declared(group) if facts.under == under)
            self.titles[under] = titles.most_common(1)[0][0]
        if self.rare:
            params.append(click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                callback=_show_all, help="Show all options and exit."))
        super().__init__(name, callback=callback, params=params, help=help,
                         context_settings=dict(WIDTH))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for word, under in pairwise(args):
            if word == "--help" and under in topics_of(self.groups):
                _show_settings(ctx, _group_under(self.groups, under))
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name, verb = error.option_name, str(ctx.info_name)
            if (verb, name) in OPTIONS:
                raise click.UsageError(removal_message(name, OPTIONS[verb, name]), ctx) from None
            if verb == "train" and _is_not_option(name):
                raise click.UsageError(f"{name} is a setting that only Python and jobs "
                                       "(textnb run) have", ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": self.arguments}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            hidden = param.name in self.rare and not ctx.meta.get("textnb.all")
            if record is None or hidden or isinstance(param, click.Argument):
                continue
            sections.setdefault(self.titles.get(param.name or "", "Help"), []).append(record)
        # The options that show help come last.
        sections["Help"] = sections.pop("Help")
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=28)


@contextmanager
def usage_errors() -> Iterator[None]:
    """A context in which errors of usage are written as all others are: ``error: ...``."""
    try:
        yield
    except click.ClickException as error:
        error.show = partial(_show_error, error.show)  # type: ignore[method-assign]
        raise


def _show_error(show: Callable[..., None], file: IO[str] | None = None) -> None:
    text = StringIO()
    show(text)
    click.echo(re.sub("^Error: ", "error: ", text.getvalue(), flags=re.M),
               file=sys.stderr if file is None else file, nl=False)


class JudgingCommand(Command):
    """A command whose usage errors do not exit with 2, which would mean "unsure"."""

    codes = FAILED, FAILED, FAILED

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except Exception as error:
            if getattr(error, "exit_code", None):
                error.exit_code = FAILED  # type: ignore[attr-defined]  # of click's exceptions
            raise


def _rank(group: type, declaration: tuple[Field[Any], Setting]) -> int:
    """A group's own options come before those of its bases; arguments keep their order."""
    field, facts = declaration
    if facts.is_argument:
        return -1
    return next(rank for rank, base in enumerate(group.__mro__)
                if field.name in vars(base).get("__annotations__", {}))


def _title(group: type) -> str:
    return (group.__doc__ or "Options.").splitlines()[0].rstrip(".")


def _option_of_settings(under: str, group: type) -> click.Option:
    """The option that takes the settings of a group as KEY=VALUE."""
    names = ", ".join(field.name for field, _ in declared(group))
    words = [f"{field.name}={choice}" for field, facts in declared(group)
             for choice in facts.choices or ("",)]
    return click.Option(
        [under, f"--{under}"], multiple=True, metavar="KEY=VALUE",
        shell_complete=_completion(words),
        help=f"{names}; repeat it for several. --help {under} says what they mean.")


def _show_settings(ctx: click.Context, group: type) -> None:
    """Show the meaning of the settings that an option takes as KEY=VALUE."""
    records = []
    for field, facts in declared(group):
        choices = f" ({_alternatives(facts.choices)})" if facts.choices else ""
        default = "none" if field.default is None else toml_of(field.default)
        records.append((field.name, f"{facts.help}{choices}  [default: {default}]"))
    formatter = ctx.make_formatter()
    with formatter.section(f"--{group.__name__} KEY=VALUE, the value as in TOML, or a string"):
        formatter.write_dl(records, col_max=28)
    click.echo(formatter.getvalue().rstrip("\n"))
    ctx.exit()


def _option(field: Field[Any], facts: Setting) -> click.Option:
    names = facts.names or (f"--{field.name.replace('_', '-')}",)
    help = facts.help
    if facts.choices:
        help = f"{help.rstrip('.')}: {_alternatives(facts.choices)}."
    if default := _default_text(field.default, names):
        help = f"{help}  [default: {default}]"
    kind, of_value = type_of(field), dict[str, Any]()
    if not is_flag(kind):
        plain = kind.removesuffix(" | None")
        of_value = {
            "metavar": facts.metavar or _METAVARS.get(plain, "TEXT"),
            "type": (_NUMBERS.get(plain, click.STRING) if facts.minimum is None
                     else click.IntRange(min=facts.minimum))}
    return click.Option(
        [field.name, *names], help=help, is_flag=is_flag(kind) or None, multiple=is_repeated(kind),
        **({"required": True} if field.default is MISSING else {"default": None}), **of_value,
        shell_complete=_completion(facts.choices) if facts.choices else None)


def _alternatives(choices: tuple[str, ...]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if choices[1:] else choices)


def _default_text(default: Any, names: tuple[str, ...]) -> str:
    """A default as a user would type it; empty if there is none."""
    if isinstance(default, bool):
        yes_or_no = next((name for name in names if "/" in name), "")
        return yes_or_no.split("/")[0].removeprefix("--") if default else ""
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return "" if default is None or default is MISSING else str(default)


def _completion(words: Iterable[str]) -> Any:
    """The function by which a shell completes one of some words."""
    return lambda ctx, param, incomplete: [
        CompletionItem(word) for word in words if word.startswith(incomplete)]


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta["textnb.all"] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _is_not_option(name: str) -> bool:
    """Whether models or tokenizers have a setting of this name that is not an option."""
    groups: list[type] = [TokenSettings, *all_models().values()]
    return any(f"--{field.name.replace('_', '-')}" == name and not facts.is_option
               for group in groups for field, facts in declared(group))


def every_model(group: type) -> type:
    """A group of options, and with them the settings of all kinds of models.

    The help text of each setting names the kinds that have it, and the default of a kind where it
    differs from the first kind's.
    """
    kinds: dict[str, list[str]] = {}
    options: dict[str, tuple[Field[Any], Setting]] = {}
    for kind, model in all_models().items():
        for field, facts in declared(model):
            if facts.is_option:
                first, _ = options.setdefault(field.name, (field, facts))
                default = "" if field.default == first.default else f": {field.default}"
                kinds.setdefault(field.name, []).append(kind + default)
    fields = [(name, type_of(field), setting(field.default, **{
        **vars(facts), "help": f"{facts.help.rstrip('.')} ({', '.join(kinds[name])}).",
        "under": "" if name in _OPTIONS_OF_MODELS else "set"}))
        for name, (field, facts) in options.items()]
    settings = make_dataclass("Settings", fields, kw_only=True, frozen=True, eq=False, repr=False)
    return make_dataclass(group.__name__, [], bases=(group, settings), kw_only=True,
                          frozen=True, eq=False, repr=False)
