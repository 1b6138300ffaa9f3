"""TOML as dataclasses of options: each key is checked, and each error names its key and line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field
from difflib import get_close_matches
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from textnb.errors import ParameterError, SourceError, first_line
from textnb.frames.cloud import hide_secrets
from textnb.learning.memory_limit import memory_size
from textnb.runtime.removed import KEYS, SETTINGS, removal_message
from textnb.runtime.settings import Setting, check_json, declared, type_of

T = TypeVar("T")
Key = tuple[str, ...]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TABLE = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]")
_ENTRY = re.compile(r"""\s*([A-Za-z0-9_."' -]+?)\s*=""")
# The URL of a database in a file whose path is relative.
_DATABASE = re.compile(r"((?:sqlite|duckdb)(?:\+\w+)?:///)(?!/|:memory:|file:)(.+)", re.I)
# Names of at least this similarity are suggested.
_NEAR = 0.75


def read_toml(path: str | os.PathLike[str], settings: Iterable[str] = ()) -> Table:
    """Read a file, and set some of its keys from outside.

    Parameters
    ----------
    path : path
    settings : iterable of str
        ``key=value``: the key with dots between its parts (``model.l=0.1``,
        ``exports.0.to=json``), the value as in TOML; any other value is a string.

    Raises
    ------
    SourceError
        If the file can't be read.
    ParameterError
        If it is not TOML, or a setting is not ``key=value``, or has no place in the file.
    """
    name = hide_secrets(os.fspath(path))
    try:
        text = Path(path).read_bytes().decode("utf-8")
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # As any other fault of what it says: bad usage, not bad data.
        raise ParameterError(f"{name}: it is not TOML: {first_line(error)}") from None
    except OSError as error:
        raise SourceError.unreadable(name, error.strerror) from None
    set_keys = {set_key(values, setting) for setting in settings}
    return Table(name, values, _lines_of(text), set_keys, Path(path).resolve().parent)


@dataclass
class Table:
    """The values of a file, and their faults.

    Attributes
    ----------
    name : str
    values : dict
    lines : dict of tuple of str to int
        The lines of keys.
    set_keys : set of tuple of str
        Keys that were set from outside.
    folder : Path, optional
        The folder to which paths are relative.
    tables : dict of str to list of str
        For each key, the tables that may have it.
    faults : list of (tuple of str, str)
        Keys, and what is wrong with each.
    """

    name: str
    values: dict[str, Any]
    lines: dict[Key, int] = field(default_factory=dict)
    set_keys: set[Key] = field(default_factory=set)
    folder: Path | None = None
    tables: dict[str, list[str]] = field(default_factory=dict)
    faults: list[tuple[Key, str]] = field(default_factory=list)

    def fault(self, key: Key, words: str) -> None:
        """Note what is wrong with a key."""
        self.faults.append((key, words))

    def check(self, key: Key, call: Callable[[], T], *within: tuple[Key, type]) -> T | None:
        """Call a function, and note its error at the setting that it names, or else at a key.

        ``within`` has types of options, each with the key of the table that has its settings.
        """
        try:
            return call()
        except ParameterError as error:
            name = error.setting
            for place, group in within:
                if name is not None and name in {each.name for each, _ in declared(group)}:
                    self.fault((*place, name), error.without_setting)
                    return None
            self.fault(key, error.without_setting if name in key[-1:] else str(error))
        except ValueError as error:
            self.fault(key, str(error))
        return None

    def refuse(self) -> None:
        """Raise ParameterError with all faults, if there are any."""
        if self.faults:
            lines = [f"{self._place(key)}{_in_words(key)}: {words}" for key, words in self.faults]
            name = f"{self.name}: " if self.name else ""
            raise ParameterError(name + "\n  ".join(dict.fromkeys(lines)))

    def _place(self, key: Key) -> str:
        while key and key not in self.lines and key not in self.set_keys:
            key = key[:-1]
        return f"line {self.lines[key]}: " if key and key not in self.set_keys else ""

    def fill(self, group: type[T], values: Any, key: Key) -> T | None:
        """Options of a group from a table of the file; faults are noted."""
        before = len(self.faults)
        settings = self.read_settings(values, key, group)
        if settings is None and not isinstance(values, dict):
            return None
        for each, _ in declared(group):
            if each.default is MISSING and each.default_factory is MISSING and (
                    each.name not in values):
                self.fault((*key, each.name), "it is missing")
        if settings is None or len(self.faults) > before:
            return None
        options = group(**settings)
        check = getattr(options, "check", None)
        if check is not None:
            self.check(key, check, (key, group))
        return options

    def read_settings(self, values: Any, key: Key, *groups: type) -> dict[str, Any] | None:
        """The settings of groups in a table of the file; None if a fault was noted."""
        if not isinstance(values, dict):
            # Its contents are not shown, as they may be secrets.
            self.fault(key, f"it must be a table, and it is {_KINDS.get(type(values), 'a value')}")
            return None
        settings, before = {}, len(self.faults)
        known = {each.name: (group, each, facts) for group in groups
                 for each, facts in declared(group)}
        for name, value in values.items():
            if name in known:
                settings[name] = self.check((*key, name), partial(
                    _value, *known[name], value, self.folder))
            else:
                self.unknown((*key, name), *groups)
        return None if len(self.faults) > before else settings

    def unknown(self, key: Key, *groups: type) -> None:
        """Note a key that no group has."""
        name, known = key[-1], [each.name for group in groups for each, _ in declared(group)]
        place = ".".join(part for part in key if not _is_index(part))
        advice = KEYS.get(place) or (SETTINGS.get(name) if key[0] == "model" else None)
        if advice:
            self.fault(key, removal_message("it", advice))
        elif name in self.tables:
            self.fault(key, f"no such key there; it belongs in {' or '.join(self.tables[name])}")
        else:
            near = _similar(name, {
                each.name: [word.split("/")[0].strip("-").replace("-", "_")
                            for word in facts.names]
                for group in groups for each, facts in declared(group)})
            elsewhere = [] if near else _similar(name, dict.fromkeys(self.tables, ()))
            suggestion = " or ".join([*map(repr, near), *(
                f"{each!r} of {' or '.join(self.tables[each])}" for each in elsewhere)])
            self.fault(key, f"no such key{f' - did you mean {suggestion}?' if suggestion else ''}; "
                            f"the keys there are {', '.join(known)}")


# Values of TOML in words.
_KINDS = {str: "a text", list: "a list", int: "a number", float: "a number", bool: "true or false"}


def _similar(name: str, keys: Mapping[str, Sequence[str]]) -> list[str]:
    """The keys that were probably meant: by their options, a part of the name, or its letters."""
    return [key for key, options in keys.items()
            if name in options or name.removesuffix("s") in key.split("_")][:3] or (
        get_close_matches(name, keys, n=1, cutoff=_NEAR))


def _in_words(key: Key) -> str:
    """A key of a file, or one that an option sets: ``--read separator``."""
    option = [part for part in key[:1] if part.startswith("--")]
    return " ".join([*option, ".".join(key[len(option):])]).strip() or "the job"


def _value(group: type, each: Field[Any], facts: Setting, value: Any, folder: Path | None) -> Any:
    """A TOML value as the setting's Python value; raise ValueError or ParameterError if wrong."""
    kind = type_of(each).removesuffix(" | None")
    if kind in READERS:
        value = READERS[kind](value)
    if kind == "Place" and folder is not None and value not in facts.packages:
        return place_in(folder, value)
    check_json(group, {each.name: value})
    if facts.minimum is not None and value is not None and value < facts.minimum:
        raise ParameterError.out_of_range(each.name, f"{facts.minimum} or more", value)
    if type(value) is int and kind in ("float", "Numbers", "NumberOrAuto"):
        return float(value)
    # TOML has arrays where Python has tuples.
    return tuple(value) if isinstance(value, list) and kind not in ("Columns", "Numbers") else value


def place_in(folder: Path, place: str) -> str:
    """A path, or the URL of a database in a file, which is relative to a folder.

    Examples
    --------
    >>> place_in(Path("/jobs"), "sqlite:///news.db"), place_in(Path("/jobs"), "s3://bucket/rows")
    ('sqlite:////jobs/news.db', 's3://bucket/rows')
    """
    if database := _DATABASE.fullmatch(place):
        return f"{database[1]}{folder / database[2]}"
    return place if place == "-" or "://" in place else str(folder / Path(place).expanduser())


def substitute_variables(value: Any) -> Any:
    """Replace ``${NAME}`` and ``${NAME:-default}`` in a path by variables of the environment."""
    if not isinstance(value, str):
        # The value is not shown, as it may be a list of URLs with their passwords.
        raise ValueError("must be a path or URL")
    if "\0" in value:
        raise ValueError("a path without the character NUL")

    def variable(match: re.Match[str]) -> str:
        name, default = match.groups()
        replacement = os.environ.get(name) or default
        if replacement is None:
            raise ValueError(f"the environment variable {name} is not set; set it, or write "
                             f"${{{name}:-default}}")
        return replacement

    if not (place := _VARIABLE.sub(variable, value)):
        # It would be the folder to which paths are relative.
        raise ValueError("must be a path or URL; it is empty")
    return place


def _storage(value: Any) -> Any:
    """Storage options; errors do not repeat them, as they may be secrets."""
    if not isinstance(value, dict) or not all(
            isinstance(option, (str, bool, int, float)) for option in value.values()):
        raise ValueError("a table of strings and numbers, such as { aws_region = \"eu-west-1\" }")
    return {key: substitute_variables(option) if isinstance(option, str) else option
            for key, option in value.items()}


def _names(value: Any) -> Any:
    return value.split(",") if isinstance(value, str) else value


def _numbers(value: Any) -> Any:
    try:
        return [float(part) for part in value.split(",")] if "," in value else value
    except (TypeError, ValueError):
        return value


def _number_or_auto(value: Any) -> Any:
    if isinstance(value, list):
        raise ValueError("must be one number here; only Python can give one per term")
    return value


def _weights(value: Any) -> Any:
    return {label: float(weight) if type(weight) is int else weight
            for label, weight in value.items()} if isinstance(value, dict) else value


# The functions that read values of types that TOML writes differently from Python, or that are
# checked first.
READERS: dict[str, Callable[[Any], Any]] = {
    "Size": memory_size, "Storage": _storage, "Place": substitute_variables,
    "Names": _names, "Kinds": _names, "Numbers": _numbers, "NumberOrAuto": _number_or_auto,
    "Weights": _weights}


def _lines_of(text: str) -> dict[Key, int]:
    """The line of each key that begins a line."""
    lines: dict[Key, int] = {}
    table: Key = ()
    # The number of the last table [[name]], by name.
    last: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if (header := _TABLE.match(line)) and (parts := _parts_of(header[2])):
            table = parts
            if header[1]:
                last[header[2]] = last.get(header[2], -1) + 1
                table = (*table, str(last[header[2]]))
            lines.setdefault(table, number)
        elif entry := _ENTRY.match(line):
            lines.setdefault((*table, *_parts_of(entry[1])), number)
    return lines


def set_key(values: dict[str, Any], setting: str, option: str = "--set") -> Key:
    """Set a key of nested tables to a value, both from ``key=value``; return the key.

    Examples
    --------
    >>> values = {}
    >>> set_key(values, "model.l=0.1")
    ('model', 'l')
    >>> set_key(values, "model.binary=True")
    ('model', 'binary')
    >>> values
    {'model': {'l': 0.1, 'binary': True}}
    """
    key, equals, text = setting.partition("=")
    parts = _parts_of(key) if equals and "\n" not in key else ()
    if not parts:
        raise ParameterError(f"{option} must be key=value (it is not shown, as it may be a secret)")
    try:
        value = text if "\n" in text else tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        if text.strip()[:1] == '"' == text.strip()[-1:]:
            raise ParameterError(f"{option} {key}: a backslash begins an escape of TOML within "
                                 "double quotes: write single quotes, or none") from None
        # Accept Python's spelling, which errors of settings use.
        value = {"True": True, "False": False}.get(text.strip(), text)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{option} {key}: {first_line(error)}") from None
    place: Any = values
    for part, following in pairwise(parts):
        # Labels may be numbers; the exports of a job are the one list of tables.
        new: Any = [] if part == "exports" and _is_index(following) else {}
        place = _entry_of(place, part, new, f"{option} {key}")
    _entry_of(place, parts[-1], value, f"{option} {key}", replace=True)
    return tuple(parts)


def _parts_of(key: str) -> Key:
    """The parts of a key as TOML reads it, with quotes around parts with dots; empty if invalid."""
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return ()
    parts = []
    while isinstance(table, dict) and len(table) == 1:
        part, table = next(iter(table.items()))
        parts.append(part)
    return tuple(parts)


def _entry_of(place: Any, part: str, value: Any, key: str, replace: bool = False) -> Any:
    if isinstance(place, list) and _is_index(part):
        if int(part) == len(place):
            place.append({} if value == [] else value)
        elif int(part) > len(place):
            raise ParameterError(f"{key}: there are {len(place)} entries, counted from 0")
        elif replace:
            place[int(part)] = value
        return place[int(part)]
    if not isinstance(place, dict):
        raise ParameterError(f"{key}: there is no table that could hold {part!r}")
    if replace:
        place[part] = value
    return place.setdefault(part, value)


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) < 6
