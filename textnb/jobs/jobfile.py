"""A job's file as a checked `Job`: TOML, with some keys set from outside."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from textnb.errors import ParameterError, SourceError, first_line, suggestion
from textnb.jobs.configuration import Job
from textnb.runtime.gone import KEYS, gone


def read_job(path: str | os.PathLike[str], settings: Iterable[str] = ()) -> Job:
    """Read and check a job's file, with some keys set from outside.

    Parameters
    ----------
    path : path
        TOML.
    settings : iterable of str
        ``key=value``: the key with dots between its parts (``model.l=0.1``,
        ``exports.0.to=json``), the value as in TOML; any other value is a string.

    Raises
    ------
    ParameterError
        If a key is unknown or its value is not what is expected; the key is named.
    SourceError
        If the file can't be read, or is no TOML.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except (ValueError, RecursionError) as error:
        raise SourceError.unreadable(name, f"it is no TOML: {first_line(error)}") from None
    except OSError as error:
        raise SourceError.unreadable(name, error.strerror) from None
    for setting in settings:
        _set_key(values, setting)
    try:
        job = Job.model_validate(values)
    except ValidationError as error:
        raise ParameterError(f"{name}: {_describe_errors(error)}") from None
    return _resolve_paths(job, Path(path).resolve().parent)


def _set_key(values: dict[str, Any], setting: str) -> None:
    key, found, text = setting.partition("=")
    parts = key.strip().split(".")
    if not found or not all(parts):
        raise ParameterError.out_of_range("--set", "key=value, such as model.l=0.1", setting)
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"--set {key}: {first_line(error)}") from None
    place: Any = values
    for part, following in pairwise(parts):
        place = _entry_of(place, part, [] if _is_index(following) else {}, setting)
    _entry_of(place, parts[-1], value, setting, replace=True)


def _entry_of(place: Any, part: str, value: Any, setting: str, replace: bool = False) -> Any:
    if isinstance(place, list) and _is_index(part):
        if int(part) == len(place):
            place.append({} if value == [] else value)
        elif int(part) > len(place):
            raise ParameterError(f"--set {setting}: there are {len(place)} entries, counted from 0")
        elif replace:
            place[int(part)] = value
        return place[int(part)]
    if not isinstance(place, dict):
        raise ParameterError(f"--set {setting}: there is no table that could hold {part!r}")
    if replace:
        place[part] = value
    return place.setdefault(part, value)


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) < 6


def _describe_errors(error: ValidationError) -> str:
    """List every wrong key, what was expected there, and what came."""
    lines = []
    for problem in error.errors():
        # Pydantic puts the types of a union into the path; they are no keys of the file.
        keys = [str(part) for part in problem["loc"]
                if not (isinstance(part, str) and part in _TYPES)]
        key = ".".join(keys) or "the job"
        advice = KEYS.get(".".join(part for part in keys if not _is_index(part)))
        if problem["type"] == "extra_forbidden" and advice is not None:
            lines.append(gone(key, advice))
        elif problem["type"] == "extra_forbidden":
            known = _keys_of(keys[:-1])
            near = suggestion(keys[-1], known)
            lines.append(f"{key}: no such key{near}; the keys there are {', '.join(known)}")
        elif problem["type"] == "missing":
            lines.append(f"{key}: it is missing")
        elif problem["type"] == "value_error":
            lines.append(_describe_fault(keys, problem["ctx"]["error"]))
        else:
            reason = problem["msg"]
            lines.append(f"{key}: {reason[0].lower()}{reason[1:]}; got {problem['input']!r:.200}")
    return "\n  ".join(dict.fromkeys(lines))


def _describe_fault(keys: list[str], fault: ValueError) -> str:
    """A validator's message after the key; it does not repeat the name of a key."""
    setting = fault.setting if isinstance(fault, ParameterError) else None
    if isinstance(fault, ParameterError) and setting is not None and (
            setting in keys[-1:] or setting in _keys_of(keys)):
        whole = keys if setting in keys[-1:] else [*keys, setting]
        return f"{'.'.join(whole)}: {fault.without_setting}"
    return f"{'.'.join(keys) or 'the job'}: {fault}"


_TYPES = {"str", "int", "float", "bool", "list[str]", "constrained-int", "constrained-float"}


def _keys_of(path: list[str]) -> list[str]:
    section: Any = Job
    for part in path:
        if _is_index(part):
            continue
        annotation = section.model_fields[part].annotation
        section = next((kind for kind in _section_types(annotation)), section)
    return list(section.model_fields)


def _section_types(annotation: Any) -> Iterable[type[BaseModel]]:
    for part in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield part


def _resolve_paths(job: Job, folder: Path) -> Job:
    """Make the paths of a job, which are relative to its file, absolute."""
    def place(where: str | None) -> str | None:
        if where is None or where == "-" or "://" in where:
            return where
        return str(folder / Path(where).expanduser())

    update: Mapping[str, Any] = {
        "output": place(job.output),
        "input": job.input.model_copy(update={
            "train": place(job.input.train), "test": place(job.input.test)})}
    if job.predictions is not None:
        update = {**update, "predictions": job.predictions.model_copy(
            update={"input": place(job.predictions.input)})}
    return job.model_copy(update=dict(update))
