"""Makes a command from the function of a verb, and its options from fields of dataclasses.

The parameters of a verb's function are dataclasses. Each is a group of options, and its fields are
the options. The function gets an instance of each, with defaults for options that were not typed::

    @dataclass(frozen=True, kw_only=True)
    class Source:
        '''Input.'''

        input: str = argument("File of rows.")
        where: str | None = option("Use the rows for which this SQL condition holds.")

    @verb
    def show(source: Source) -> None: ...

The first line of a class's docstring is the title of its group in the help text. The types that a
field may have are in `textnb.cli.words`.

A setting with `Setting.key_of` is not an option of its own: a key option, such as ``--read`` or
``--set``, takes it as KEY=VALUE. ``--help read`` shows what the keys of ``--read`` mean.
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

from textnb.cli.console import BAD_DATA, BAD_USAGE, report_failure, run_guarded
from textnb.cli.stream import FAILED
from textnb.cli.words import as_option, is_flag, is_repeated, toml_of, value_of
from textnb.errors import Mention, ParameterError
from textnb.learning.settings import LimitSettings
from textnb.models.known import all_models
from textnb.runtime.removed import OPTIONS as REMOVED
from textnb.runtime.removed import removal_message
from textnb.runtime.settings import Setting, setting, setting_fields, type_of
from textnb.text.token_settings import TokenSettings

HELP_SETTINGS = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
# Settings of models that are options of their own (l, the smoothing); the others are typed as
# --set NAME=VALUE.
_OPTIONS_OF_MODELS = ("l",)
# For the type of an option: its type in click, and what help shows for a value. Others are text.
# Types such as "Pair" are those of `textnb.runtime.settings`.
_CLICK_TYPES = {"int": click.INT, "float": click.FLOAT}
_METAVARS = {"int": "N", "float": "N", "Pair": "N,N", "CountOrShare": "N", "NumberOrAuto": "N",
             "Numbers": "N"}
# The maximum width of the column of names in help texts, in characters.
_MAX_NAME_WIDTH = 28


class TypedOptions(dict[str, Any]):
    """The values of the options that were typed, by the names of their fields."""


def option(help: str, *names: str, default: Any = None, **info: Any) -> Any:
    """A field that is an option; ``info`` are further attributes of a `Setting`."""
    return setting(default, help, names=names, **info)


def argument(help: str, default: Any = MISSING) -> Any:
    """A field that is a positional argument; it is required if it has no default."""
    return setting(default, help, is_argument=True)


def verb(function: Callable[..., None]) -> click.Command:
    """A decorator: it makes a command, which reports a failure as one line and an exit code."""
    return _command(Command, function)


def judging_verb(function: Callable[..., None]) -> click.Command:
    """A decorator: it makes a command whose exit code is its answer, or `FAILED` on any failure."""
    return _command(JudgingCommand, function)


def _command(kind: type[Command], function: Callable[..., None]) -> click.Command:
    """Make a command of a kind from the function of a verb."""
    hints = get_type_hints(function)
    hints.pop("return")
    groups = [hint for hint in hints.values() if hint is not TypedOptions]
    options = _options_of(groups)

    def write_setting(setting: Mention) -> str:
        if setting.name in options:
            return as_option(setting, *options[setting.name])
        train_options = _options_of([LimitSettings, TokenSettings])
        if setting.name in train_options:
            # This verb does not have the option: the user must train the model again with it.
            return f"{as_option(setting, *train_options[setting.name])} of textnb train"
        return str(setting)

    def run(**typed: Any) -> None:
        def work() -> None:
            values = TypedOptions(_typed_values(groups, typed))
            function(*(values if hint is TypedOptions else _make_group(hint, values)
                       for hint in hints.values()))

        run_guarded(work, kind.exit_codes, write_setting)

    return kind(function.__name__, groups, run, function.__doc__ or "")


def _options_of(groups: list[type]) -> dict[str, tuple[str, bool]]:
    """By the name that errors use for a setting: its option, and whether that takes a value."""
    return {name: (name_of(field, info), bool(info.key_of) or not is_flag(type_of(field)))
            for group in groups for field, info in setting_fields(group)
            if not info.is_argument and info.is_option
            for name in {field.name, info.python_name or field.name}}


def _typed_values(groups: list[type], typed: dict[str, Any]) -> dict[str, Any]:
    """The values of the options that were typed, from ``typed``, which click returns."""
    values = {}
    for group in groups:
        for field, info in setting_fields(group):
            value = typed.get(field.name)
            # click returns () for an option that may be repeated, and was not typed.
            if value is None or value == () or info.key_of:
                continue
            name = name_of(field, info)
            if info.choices and value not in info.choices:
                raise ParameterError.unknown_choice(name, value, info.choices)
            values[field.name] = value_of(type_of(field), name, value)
    for key_option in key_options_of(groups):
        if words := typed.get(key_option):
            values |= _key_values(groups, key_option, words)
    return values


def key_options_of(groups: list[type]) -> list[str]:
    """The names of the options that take settings as KEY=VALUE."""
    return [*dict.fromkeys(info.key_of for group in groups for _, info in setting_fields(group)
                           if info.key_of and info.is_option)]


def _group_of_keys(groups: list[type], key_option: str) -> type:
    """One group of all settings that a key option takes; its name is that of the option."""
    # A dictionary, because several groups may have the same setting.
    return make_dataclass(key_option, {
        field.name: (field.name, type_of(field), setting(field.default, **vars(info)))
        for group in groups for field, info in setting_fields(group)
        if info.key_of == key_option and info.is_option}.values(), kw_only=True)


def _key_values(groups: list[type], key_option: str, words: Iterable[str]) -> dict[str, Any]:
    """The values of settings that were typed as KEY=VALUE."""
    from textnb.workflow.toml import Table, set_key

    group, option = _group_of_keys(groups, key_option), f"--{key_option}"
    table, options = Table(name="", values={}, lines={}), _options_of(groups)
    keys: set[tuple[str, ...]] = set()
    for number, word in enumerate(words, start=1):
        if "=" not in word:
            raise ParameterError(f"{option} must be KEY=VALUE; the {number}. one is not (it is not "
                                 "shown, as it may be a secret)")
        # A tuple of the key's parts, such as ("class_weight", "spam").
        key = set_key(table.values, word, option)
        # A key may be given once, and not beside a part of it: "a" and "a.b" contradict each other.
        if any(key[:len(other)] == other or other[:len(key)] == key for other in keys):
            raise ParameterError(f"{option} {'.'.join(key)} is given twice")
        keys.add(key)
        # An option with the key as its name, which the user may mean.
        match = next((name for field, (name, _) in options.items() if not name.startswith(option)
                      and key[0] in (field, name.strip("-").replace("-", "_"))), None)
        if match is not None and not hasattr(group, key[0]):
            raise ParameterError(f"{option} {key[0]}: it is an option of its own, {match}")
    settings = table.fill(group, table.values, (option,))
    table.raise_faults()
    return {name: getattr(settings, name) for name in table.values}


def _make_group(group: type, values: TypedOptions) -> Any:
    return group(**{field.name: values[field.name] for field, _ in setting_fields(group)
                    if field.name in values})


def name_of(field: Field[Any], info: Setting) -> str:
    """The name of an option, as errors write it: the long one, if it has one."""
    if info.is_argument:
        return field.name.upper()
    if info.key_of:
        return f"--{info.key_of} {field.name}"
    names = [name for name in info.names if name.startswith("--")] or [*info.names]
    # Of the two names of a flag, such as --message/--no-message, the first.
    return (names or [f"--{field.name.replace('_', '-')}"])[0].split("/")[0]


def option_of(name: str, *groups: type) -> str:
    """The long name of the option of a field, which one of the groups has."""
    return next(name_of(field, info) for group in groups for field, info in setting_fields(group)
                if field.name == name)


class Command(click.Command):
    """A command whose help text shows its options by group: the common ones, or all of them."""

    # The exit codes for bad data, for bad usage, and for a closed pipe as output.
    exit_codes = BAD_DATA, BAD_USAGE, 0

    def __init__(
        self, name: str, groups: list[type], callback: Callable[..., None], help: str
    ) -> None:
        params: list[click.Parameter] = []
        self.groups = groups
        # The title of the group of each parameter, by the parameter's name.
        self.titles: dict[str, str] = {}
        # The name of each argument, and its help text.
        self.arguments: list[tuple[str, str]] = []
        # The names of parameters that only --help-all shows.
        self.rare: set[str] = set()
        for group in groups:
            for field, info in sorted(setting_fields(group), key=partial(_help_rank, group)):
                if info.is_argument:
                    is_list = type_of(field) == "list[str]"
                    params.append(click.Argument([field.name], nargs=-1 if is_list else 1,
                                                 required=field.default is MISSING))
                    self.arguments.append((params[-1].make_metavar(None), info.help))  # type: ignore[arg-type]  # click does not read the context
                elif info.is_option and not info.key_of:
                    params.append(_make_option(field, info))
                    self.titles[field.name] = _title(group)
                    self.rare |= set() if info.is_common else {field.name}
        for key_option in key_options_of(groups):
            params.append(_make_key_option(key_option, _group_of_keys(groups, key_option)))
            # Help shows the option in the group that has most of its settings.
            titles = Counter(_title(group) for group in groups
                             for _, info in setting_fields(group) if info.key_of == key_option)
            self.titles[key_option] = titles.most_common(1)[0][0]
        if self.rare:
            params.append(click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                callback=_show_all, help="Show all options and exit."))
        super().__init__(name, callback=callback, params=params, help=help,
                         context_settings=dict(HELP_SETTINGS))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for word, topic in pairwise(args):
            if word == "--help" and topic in key_options_of(self.groups):
                _show_keys(ctx, _group_of_keys(self.groups, topic))
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name, verb = error.option_name, str(ctx.info_name)
            if (verb, name) in REMOVED:
                raise click.UsageError(removal_message(name, REMOVED[verb, name]), ctx) from None
            if verb == "train" and _is_for_python(name):
                raise click.UsageError(f"{name} is a setting that only Python and jobs "
                                       "(textnb run) have", ctx) from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": self.arguments}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            is_hidden = param.name in self.rare and not ctx.meta.get("textnb.all")
            if record is None or is_hidden or isinstance(param, click.Argument):
                continue
            sections.setdefault(self.titles.get(param.name or "", "Help"), []).append(record)
        # The options that show help come last.
        sections["Help"] = sections.pop("Help")
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=_MAX_NAME_WIDTH)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Let usage errors of the block begin with ``error: `` as all others do, not ``Error: ``.

    An output that can't be written, such as help on a full disk, is such an error, too.
    """
    try:
        yield
    except BrokenPipeError:
        # click ends the command.
        raise
    except OSError as error:
        raise report_failure(error, BAD_DATA) from None
    except click.ClickException as error:
        error.show = partial(_show_error, error.show)  # type: ignore[method-assign]
        raise


def _show_error(show: Callable[..., None], file: IO[str] | None = None) -> None:
    """Write an error by ``show`` of click, but with ``error: `` at its beginning."""
    text = StringIO()
    show(text)
    click.echo(re.sub("^Error: ", "error: ", text.getvalue(), flags=re.M),
               file=sys.stderr if file is None else file, nl=False)


class JudgingCommand(Command):
    """A command whose usage errors do not exit with 2, which means "unsure" for a filter."""

    exit_codes = FAILED, FAILED, FAILED

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except Exception as error:
            if getattr(error, "exit_code", None):
                error.exit_code = FAILED  # type: ignore[attr-defined]  # of click's exceptions
            raise


def _help_rank(group: type, declaration: tuple[Field[Any], Setting]) -> int:
    """The rank in the help text: arguments, then options of the group, then of its base classes."""
    field, info = declaration
    if info.is_argument:
        return -1
    return next(rank for rank, base in enumerate(group.__mro__)
                if field.name in vars(base).get("__annotations__", {}))


def _title(group: type) -> str:
    return (group.__doc__ or "Options.").splitlines()[0].rstrip(".")


def _make_key_option(key_option: str, group: type) -> click.Option:
    """Make the option that takes the settings of a group as KEY=VALUE."""
    names = ", ".join(field.name for field, _ in setting_fields(group))
    words = [f"{field.name}={choice}" for field, info in setting_fields(group)
             for choice in info.choices or ("",)]
    return click.Option(
        [key_option, f"--{key_option}"], multiple=True, metavar="KEY=VALUE",
        shell_complete=_completer(words),
        help=f"{names}; repeat it for several. --help {key_option} says what they mean.")


def _show_keys(ctx: click.Context, group: type) -> None:
    """Show the meaning of the settings that an option takes as KEY=VALUE, and exit."""
    records = []
    for field, info in setting_fields(group):
        choices = f" ({_alternatives(info.choices)})" if info.choices else ""
        default = "none" if field.default is None else toml_of(field.default)
        records.append((field.name, f"{info.help}{choices}  [default: {default}]"))
    formatter = ctx.make_formatter()
    with formatter.section(f"--{group.__name__} KEY=VALUE, the value as in TOML, or a string"):
        formatter.write_dl(records, col_max=_MAX_NAME_WIDTH)
    click.echo(formatter.getvalue().rstrip("\n"))
    ctx.exit()


def _make_option(field: Field[Any], info: Setting) -> click.Option:
    """Make the option of a setting, as click needs it."""
    names = info.names or (f"--{field.name.replace('_', '-')}",)
    help = info.help
    if info.choices:
        help = f"{help.rstrip('.')}: {_alternatives(info.choices)}."
    if default := _default_text(field.default, names):
        help = f"{help}  [default: {default}]"
    # What only an option with a value has, and a flag lacks.
    type_, value_info = type_of(field), dict[str, Any]()
    if not is_flag(type_):
        base_type = type_.removesuffix(" | None")
        value_info = {
            "metavar": info.metavar or _METAVARS.get(base_type, "TEXT"),
            "type": (_CLICK_TYPES.get(base_type, click.STRING) if info.minimum is None
                     else click.IntRange(min=info.minimum))}
    # For click the default is None, which means that the option was not typed.
    return click.Option(
        [field.name, *names], help=help, is_flag=is_flag(type_) or None,
        multiple=is_repeated(type_), **value_info,
        **({"required": True} if field.default is MISSING else {"default": None}),
        shell_complete=_completer(info.choices) if info.choices else None)


def _alternatives(choices: tuple[str, ...]) -> str:
    return " or ".join([", ".join(choices[:-1]), choices[-1]] if choices[1:] else choices)


def _default_text(default: Any, names: tuple[str, ...]) -> str:
    """A default as a user would type it; empty if there is none."""
    if isinstance(default, bool):
        # Two names, such as --check/--no-check; a flag with one name is off by default.
        two_names = next((name for name in names if "/" in name), "")
        return two_names.split("/")[0].removeprefix("--") if default else ""
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return "" if default is None or default is MISSING else str(default)


def _completer(words: Iterable[str]) -> Any:
    """A function with which a shell completes one of these words."""
    return lambda ctx, param, incomplete: [
        CompletionItem(word) for word in words if word.startswith(incomplete)]


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta["textnb.all"] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _is_for_python(name: str) -> bool:
    """Whether a model or the tokenizer has this option as a setting of Python and jobs alone."""
    groups: list[type] = [TokenSettings, *all_models().values()]
    return any(f"--{field.name.replace('_', '-')}" == name and not info.is_option
               for group in groups for field, info in setting_fields(group))


def with_model_settings(group: type) -> type:
    """Make a group of the options of ``group`` and the settings of all kinds of models.

    The help text of each setting names the kinds that have it, and the default of a kind if that
    differs from the first kind's.
    """
    kinds: dict[str, list[str]] = {}
    options: dict[str, tuple[Field[Any], Setting]] = {}
    for kind, model in all_models().items():
        for field, info in setting_fields(model):
            if info.is_option:
                first, _ = options.setdefault(field.name, (field, info))
                default = "" if field.default == first.default else f": {field.default}"
                kinds.setdefault(field.name, []).append(kind + default)
    fields = [(name, type_of(field), setting(field.default, **{
        **vars(info), "help": f"{info.help.rstrip('.')} ({', '.join(kinds[name])}).",
        "key_of": "" if name in _OPTIONS_OF_MODELS else "set"}))
        for name, (field, info) in options.items()]
    settings = make_dataclass("Settings", fields, kw_only=True, frozen=True, eq=False, repr=False)
    return make_dataclass(group.__name__, [], bases=(group, settings), kw_only=True,
                          frozen=True, eq=False, repr=False)
