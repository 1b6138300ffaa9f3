"""Reads TOML into dataclasses of options: each key is checked, and errors name key and line."""

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
from textnb.runtime import removed
from textnb.runtime.settings import Setting, check_json, setting_fields, type_of

T = TypeVar("T")
Key = tuple[str, ...]
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TABLE_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]")
_ENTRY_START = re.compile(r"""\s*([A-Za-z0-9_."' -]+?)\s*=""")
# The URL of a database that is a file with a relative path.
_RELATIVE_DATABASE = re.compile(r"((?:sqlite|duckdb)(?:\+\w+)?:///)(?!/|:memory:|file:)(.+)", re.I)
# The minimum similarity (`difflib`) of a name that is suggested.
_MIN_SIMILARITY = 0.75


def read_toml(path: str | os.PathLike[str], settings: Iterable[str] = ()) -> Table:
    """Read a file, and set some of its keys from outside.

    Parameters
    ----------
    path : path
    settings : iterable of str
        Keys to set, as ``key=value``: the key with dots between its parts (``model.l=0.1``,
        ``exports.0.to=json``), and a value of TOML. Any other value is a string.

    Raises
    ------
    SourceError
        If the file can't be read.
    ParameterError
        If the file is not TOML, or a setting is not ``key=value`` or does not fit into its tables.
    """
    name = hide_secrets(os.fspath(path))
    try:
        # Some editors put a byte order mark before the text.
        text = Path(path).read_bytes().decode("utf-8-sig")
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Like any other fault in the file: bad usage, not bad data.
        raise ParameterError(f"{name}: it is not TOML: {first_line(error)}") from None
    except OSError as error:
        raise SourceError.unreadable(name, error.strerror) from None
    outside_keys = {set_key(values, setting) for setting in settings}
    return Table(name, values, _lines_of(text), outside_keys, Path(path).resolve().parent)


@dataclass
class Table:
    """The values of a file, and their faults, of which all are reported together.

    Attributes
    ----------
    name : str
        The name of the file, for errors.
    values : dict
    lines : dict of tuple of str to int
        The number of each key's line.
    outside_keys : set of tuple of str
        Keys that were not set in the file but, for example, by ``--set``.
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
    outside_keys: set[Key] = field(default_factory=set)
    folder: Path | None = None
    tables: dict[str, list[str]] = field(default_factory=dict)
    faults: list[tuple[Key, str]] = field(default_factory=list)

    def add_fault(self, key: Key, fault: str) -> None:
        """Note what is wrong with a key."""
        self.faults.append((key, fault))

    def note_errors(self, key: Key, call: Callable[[], T], *within: tuple[Key, type]) -> T | None:
        """Call a function. Note its error at the setting that the error names, or else at ``key``.

        ``within`` has the keys of tables in which to look for the setting, each with the type of
        the table's options.
        """
        try:
            return call()
        except ParameterError as error:
            name = error.setting
            for table_key, group in within:
                if name is not None and name in {each.name for each, _ in setting_fields(group)}:
                    self.add_fault((*table_key, name), error.without_setting)
                    return None
            self.add_fault(key, error.without_setting if name in key[-1:] else str(error))
        except ValueError as error:
            self.add_fault(key, str(error))
        return None

    def raise_faults(self) -> None:
        """Raise ParameterError with all faults, if there are any."""
        if self.faults:
            lines = [f"{self._line_of(key)}{_in_words(key)}: {fault}" for key, fault in self.faults]
            prefix = f"{self.name}: " if self.name else ""
            raise ParameterError(prefix + "\n  ".join(dict.fromkeys(lines)))

    def _line_of(self, key: Key) -> str:
        """The line of a key, or of the table that lacks it, as "line 3: "; empty if set outside."""
        while key and key not in self.lines and key not in self.outside_keys:
            key = key[:-1]
        # The file may have a key of a table that was set from outside.
        is_outside = any(key[:size] in self.outside_keys for size in range(len(key) + 1))
        return f"line {self.lines[key]}: " if key and not is_outside else ""

    def fill(self, group: type[T], values: Any, key: Key) -> T | None:
        """Make a group's options from a table of the file; None if a fault was noted."""
        n_faults_before = len(self.faults)
        settings = self.read_settings(values, key, group)
        if settings is None and not isinstance(values, dict):
            return None
        for each, _ in setting_fields(group):
            if each.default is MISSING and each.default_factory is MISSING and (
                    each.name not in values):
                self.add_fault((*key, each.name), "it is missing")
        if settings is None or len(self.faults) > n_faults_before:
            return None
        options = group(**settings)
        check = getattr(options, "check", None)
        if check is not None:
            self.note_errors(key, check, (key, group))
        return options

    def read_settings(self, values: Any, key: Key, *groups: type) -> dict[str, Any] | None:
        """Read the settings of groups from a table of the file; None if a fault was noted."""
        if not isinstance(values, dict):
            # Its contents are not shown, as they may be secrets.
            kind = _TYPES.get(type(values), "a value")
            self.add_fault(key, f"it must be a table, and it is {kind}")
            return None
        settings, n_faults_before = {}, len(self.faults)
        known = {each.name: (group, each, details) for group in groups
                 for each, details in setting_fields(group)}
        for name, value in values.items():
            if name in known:
                settings[name] = self.note_errors((*key, name), partial(
                    _read_value, *known[name], value, self.folder))
            else:
                self.add_unknown_key((*key, name), *groups)
        return None if len(self.faults) > n_faults_before else settings

    def add_unknown_key(self, key: Key, *groups: type) -> None:
        """Note that no group has a key, with a suggestion."""
        name, known = key[-1], [each.name for group in groups for each, _ in setting_fields(group)]
        path = ".".join(part for part in key if not _is_index(part))
        # What to write instead of keys and settings of earlier releases.
        hint = removed.KEYS.get(path) or (removed.SETTINGS.get(name) if key[0] == "model" else None)
        if hint:
            self.add_fault(key, removed.removal_message("it", hint))
        elif name in self.tables:
            tables = " or ".join(self.tables[name])
            self.add_fault(key, f"no such key there; it belongs in {tables}")
        else:
            # Users may also write the name that the key has as an option.
            similar = _similar(name, {
                each.name: [word.split("/")[0].strip("-").replace("-", "_")
                            for word in details.names]
                for group in groups for each, details in setting_fields(group)})
            elsewhere = [] if similar else _similar(name, dict.fromkeys(self.tables, ()))
            names = " or ".join([*map(repr, similar), *(
                f"{each!r} of {' or '.join(self.tables[each])}" for each in elsewhere)])
            suggestion = f" - did you mean {names}?" if names else ""
            self.add_fault(
                key, f"no such key{suggestion}; the keys there are {', '.join(known)}")


# The types of TOML's values in words.
_TYPES = {str: "a text", list: "a list", int: "a number", float: "a number", bool: "true or false"}


def _similar(name: str, keys: Mapping[str, Sequence[str]]) -> list[str]:
    """The keys that may be meant: they have that option, that word, or a similar name.

    ``keys`` has the names of each key's options. At most three keys are returned.
    """
    return [key for key, options in keys.items()
            if name in options or name.removesuffix("s") in key.split("_")][:3] or (
        get_close_matches(name, keys, n=1, cutoff=_MIN_SIMILARITY))


def _in_words(key: Key) -> str:
    """A key as users write it: ``model.l`` in a file, or ``--read separator`` of an option."""
    option = [part for part in key[:1] if part.startswith("--")]
    return " ".join([*option, ".".join(key[len(option):])]).strip() or "the job"


def _read_value(
    group: type, each: Field[Any], details: Setting, value: Any, folder: Path | None
) -> Any:
    """Convert a TOML value to the setting's type; raise ValueError or ParameterError if wrong."""
    kind = type_of(each).removesuffix(" | None")
    if kind in READERS:
        value = READERS[kind](value)
    # Some settings of a path also accept the name of a package, which is not relative to a folder.
    if kind == "Place" and folder is not None and value not in details.packages:
        return place_in(folder, value)
    # Checks type, choices and range, as for a value from a model file.
    check_json(group, {each.name: value})
    if details.minimum is not None and value is not None and value < details.minimum:
        raise ParameterError.out_of_range(each.name, f"{details.minimum} or more", value)
    if type(value) is int and kind in ("float", "Numbers", "NumberOrAuto"):
        return float(value)
    # TOML has arrays where Python has tuples.
    return tuple(value) if isinstance(value, list) and kind not in ("Columns", "Numbers") else value


def place_in(folder: Path, place: str) -> str:
    """Make a path, or the URL of a database in a file, absolute: it is relative to a folder.

    Examples
    --------
    >>> place_in(Path("/jobs"), "sqlite:///news.db"), place_in(Path("/jobs"), "s3://bucket/rows")
    ('sqlite:////jobs/news.db', 's3://bucket/rows')
    >>> place_in(Path("/jobs"), "~of nobody/rows.csv")
    '/jobs/~of nobody/rows.csv'
    """
    if database := _RELATIVE_DATABASE.fullmatch(place):
        return f"{database[1]}{folder / database[2]}"
    if place == "-" or "://" in place:
        return place
    # `Path.expanduser` raises for the home of a user who is not known; a shell leaves it as it is.
    return str(folder / os.path.expanduser(place))


def substitute_variables(value: Any) -> Any:
    """Replace ``${NAME}`` and ``${NAME:-default}`` in a path by environment variables."""
    if not isinstance(value, str):
        # The value is not shown, as it may be a list of URLs with their passwords.
        raise ValueError("must be a path or URL")
    if "\0" in value:
        raise ValueError("a path without the character NUL")

    def value_of(match: re.Match[str]) -> str:
        name, default = match.groups()
        replacement = os.environ.get(name) or default
        if replacement is None:
            raise ValueError(f"the environment variable {name} is not set; set it, or write "
                             f"${{{name}:-default}}")
        return replacement

    if not (place := _VARIABLE.sub(value_of, value)):
        # An empty path would be the folder to which paths are relative.
        raise ValueError("must be a path or URL; it is empty")
    return place


def _storage(value: Any) -> Any:
    """Read storage options; errors do not repeat them, as they may be secrets."""
    if not isinstance(value, dict) or not all(
            isinstance(option, (str, bool, int, float)) for option in value.values()):
        raise ValueError("a table of strings and numbers, such as { aws_region = \"eu-west-1\" }")
    return {key: substitute_variables(option) if isinstance(option, str) else option
            for key, option in value.items()}


def _names(value: Any) -> Any:
    """Split names in one string; other values are returned as they are, and checked later."""
    return value.split(",") if isinstance(value, str) else value


def _numbers(value: Any) -> Any:
    """Split numbers in one string, as `_names` does."""
    try:
        return [float(part) for part in value.split(",")] if "," in value else value
    except (TypeError, ValueError):
        return value


def _number_or_auto(value: Any) -> Any:
    if isinstance(value, list):
        raise ValueError("must be one number here; only Python can give one per term")
    return value


def _weights(value: Any) -> Any:
    """Make integers among the weights of labels floats."""
    return {label: float(weight) if type(weight) is int else weight
            for label, weight in value.items()} if isinstance(value, dict) else value


# By type, the functions that check values of TOML or convert them to those that Python uses.
READERS: dict[str, Callable[[Any], Any]] = {
    "Size": memory_size, "Storage": _storage, "Place": substitute_variables,
    "Names": _names, "Kinds": _names, "Numbers": _numbers, "NumberOrAuto": _number_or_auto,
    "Weights": _weights}


def _lines_of(text: str) -> dict[Key, int]:
    """The numbers of lines that begin with a key, or with the header of a table, by the key."""
    lines: dict[Key, int] = {}
    table: Key = ()
    # The index of the last table [[name]], by name.
    last_index: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if (header := _TABLE_HEADER.match(line)) and (parts := _parts_of(header[2])):
            table = parts
            if header[1]:
                last_index[header[2]] = last_index.get(header[2], -1) + 1
                table = (*table, str(last_index[header[2]]))
            lines.setdefault(table, number)
        elif entry := _ENTRY_START.match(line):
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
        # A string in double quotes, which is not valid.
        if text.strip()[:1] == '"' == text.strip()[-1:]:
            raise ParameterError(f"{option} {key}: a backslash begins an escape of TOML within "
                                 "double quotes: write single quotes, or none") from None
        # Accept Python's spelling, which errors of settings use.
        value = {"True": True, "False": False}.get(text.strip(), text)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{option} {key}: {first_line(error)}") from None
    container: Any = values
    for part, following in pairwise(parts):
        # Only exports are a list of tables. A number elsewhere is a label, as in class_weight.1.
        empty: Any = [] if part == "exports" and _is_index(following) else {}
        container = _get_or_add(container, part, empty, f"{option} {key}")
    _get_or_add(container, parts[-1], value, f"{option} {key}", replace=True)
    return tuple(parts)


def _parts_of(key: str) -> Key:
    """The parts of a key, which TOML may put in quotes; empty if the key is not valid."""
    try:
        # TOML makes a table of each part: {"model": {"l": 0}} for model.l.
        table: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return ()
    parts = []
    while isinstance(table, dict) and len(table) == 1:
        part, table = next(iter(table.items()))
        parts.append(part)
    return tuple(parts)


def _get_or_add(container: Any, part: str, value: Any, key: str, replace: bool = False) -> Any:
    """Get an entry of a table or list; it is ``value`` if it is new, or if ``replace`` is true."""
    if isinstance(container, list) and _is_index(part):
        if int(part) == len(container):
            container.append(value)
        elif int(part) > len(container):
            raise ParameterError(f"{key}: there are {len(container)} entries, counted from 0")
        elif replace:
            container[int(part)] = value
        return container[int(part)]
    if not isinstance(container, dict):
        raise ParameterError(f"{key}: there is no table that could hold {part!r}")
    if replace:
        container[part] = value
    return container.setdefault(part, value)


def _is_index(part: str) -> bool:
    """Whether a part of a key is an index of a list; longer numbers are none, such as labels."""
    return part.isascii() and part.isdigit() and len(part) < 6
