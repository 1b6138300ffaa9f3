"""Turns the text that a user types for an option into a value of the option's type, and back.

Types such as "Prefixes" are those of `textnb.runtime.settings`.
"""

from __future__ import annotations

import shlex
from typing import Any

from textnb.errors import Mention, ParameterError, SourceError


def is_flag(type_name: str) -> bool:
    """Whether an option of a type takes no value."""
    return type_name in ("bool", "bool | None", "Prefixes", "LowerCase")


def is_repeated(type_name: str) -> bool:
    """Whether an option of a type may be given several times."""
    return type_name.removesuffix(" | None") in ("list[str]", "Columns", "ClassPatterns")


def value_of(type_name: str, option: str, text: Any) -> Any:
    """Convert the text typed for an option to the option's type.

    Parameters
    ----------
    type_name : str
        The option's type, as its dataclass writes it.
    option : str
        The option's name, for errors.
    text : str, bool, int, float or tuple of str
        What click returns: a bool for a flag, a tuple for an option that may be repeated.

    Raises
    ------
    ParameterError
        If the text can't be converted.
    SourceError
        If it names a file that can't be read.
    """
    match type_name.removesuffix(" | None"):
        case ("str" | "bool" | "int" | "float" | "Label" | "Place" | "Prefixes" | "LowerCase"
              | "Size"):
            return text
        case "list[str]":
            return list(text)
        case "ClassPatterns":
            return tuple(text)
        case "Columns":
            return text[0] if len(text) == 1 else list(text)
        case "Names":
            return tuple(text.split(","))
        case "Pair":
            return _numbers(option, "two numbers, such as 1,2", int, text, length=2)
        case "Costs":
            return _numbers(option, "two numbers, such as 10,1", float, text, length=2)
        case "Grid":
            return text if text == "auto" else _numbers(
                option, "numbers, such as 1,0.1,0.01, or auto", float, text)
        case "CountOrShare":
            return _count_or_share(option, text)
        case "NumberOrAuto":
            return _number_or_auto(option, text)
        case "Kinds":
            return tuple(part.strip() for part in text.split(","))
        case "Words":
            return _read_lines(text)
    raise TypeError(f"{option} has the type {type_name}, which the command line can't read")


def train_option(setting: Mention) -> str:
    """The option of ``textnb train`` for a setting that a message names."""
    return as_option(setting, f"--{setting.name.replace('_', '-')}", takes_value=True)


def as_option(setting: Mention, option: str, takes_value: bool) -> str:
    """What a user types on the command line for a setting that a message names.

    Parameters
    ----------
    setting : Mention
    option : str
        The setting's option, or "--set KEY" if it is a key of --set.
    takes_value : bool
        Whether the option takes a value; if not, it is a flag.

    Examples
    --------
    >>> as_option(Mention("l", "'auto'"), "--l", takes_value=True)
    '--l auto'
    >>> as_option(Mention("binary", "False"), "--binary", takes_value=False)
    'no --binary'
    >>> as_option(Mention("pattern", "r'[a-z]'"), "--set pattern", takes_value=True)
    "--set 'pattern=[a-z]'"
    """
    # The value is written as in Python: strings have quotes, and patterns are raw strings.
    value = setting.value.removeprefix("r'").strip("'")
    if not value:
        return option
    if " " in option:
        option, _, key = option.partition(" ")
        value = value.lower() if value in ("True", "False") else value
        return f"{option} {shlex.quote(f'{key}={value}')}"
    if value == "None" or (value == "False" and not takes_value):
        return f"no {option}"
    return f"{option} {value}" if takes_value else option


def toml_of(value: Any) -> str:
    """A value as it is typed after ``KEY=``: as in TOML, but strings without quotes.

    Examples
    --------
    >>> toml_of(False), toml_of("presence"), toml_of([0.5, 1.0]), toml_of({"spam": 2.0})
    ('false', 'presence', '[0.5, 1.0]', '{spam = 2.0}')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(repr, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {item}" for key, item in value.items()) + "}"
    return str(value)


def _numbers(
    option: str, expected: str, convert: type, text: str, length: int | None = None
) -> tuple[Any, ...]:
    """Convert numbers with commas between them; ``length`` is how many there must be."""
    try:
        numbers = tuple(convert(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or (length is not None and len(numbers) != length):
        raise ParameterError.out_of_range(option, expected, text)
    return numbers


def _count_or_share(option: str, text: str) -> int | float:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise ParameterError.out_of_range(option, "a count (2) or a share of documents (0.01)", text)


def _number_or_auto(option: str, text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise ParameterError.out_of_range(option, "a number, or auto", text) from None


def _read_lines(path: str) -> tuple[str, ...]:
    try:
        with open(path, encoding="utf-8") as file:
            return tuple(line.strip() for line in file if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError.unreadable(path, error) from None
