"""The pages that are read off the program: its commands, the keys of jobs, and the rooms.

They are written into `docs/generated` when the pages are built, and are not kept.
"""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
import types
import typing
from collections import Counter
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = {
    "errors": "the exceptions", "stopping": "interrupts", "notebook": "HTML of results",
    "threads": "numbers of threads", "parquet": "checked Parquet", "memory": "free memory",
    "frames": "rows in", "text": "tokens to counts", "bayes": "the mathematics",
    "store": "one archive", "terms": "tables of terms", "answers": "answers as columns",
    "insight": "why an answer", "sinks": "rows out", "manifest": "the file's JSON",
    "modelfile": "models of texts", "scorer": "texts to scores", "mailfilter": "one verdict",
    "tablefile": "models of tables", "classifier": "fit and predict",
    "runtime": "threads, interrupts", "files": "atomic files, locks, archives",
    "mail": "one message", "learning": "documents to statistics", "scoring": "answers as columns",
    "storage": "the model file", "estimators": "scikit-learn's interface",
    "evaluation": "metrics, validation", "report": "the HTML report",
    "export": "weights for other systems", "engines": "Spark", "pipeline": "jobs in TOML",
    "jobs": "jobs in TOML", "filter": "the mail filter", "cli": "the command line",
}


def write_generated_pages(docs: Path) -> None:
    """Write every generated page below ``docs/generated``."""
    folder = docs / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "commands.md").write_text(commands_page(), "utf-8")
    (folder / "jobs.md").write_text(jobs_page(), "utf-8")
    (folder / "rooms.svg").write_text(rooms_picture(), "utf-8")


def commands_page() -> str:
    """Each verb with its help text, as the program prints it."""
    from typer.main import get_command

    from textnb.cli.main import app

    verbs = sorted(getattr(get_command(app), "commands", {}))
    parts = ["# The command line\n"]
    for verb in verbs:
        parts += [f"\n## textnb {verb}\n\n```text\n{_help(verb)}\n```\n"]
    return "".join(parts)


def _help(verb: str) -> str:
    code = "import sys; from textnb.cli.main import app; sys.argv[0] = 'textnb'; app()"
    done = subprocess.run(
        [sys.executable, "-c", code, verb, "--help"], capture_output=True, text=True, check=True,
        env={**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
    return done.stdout.strip("\n")


def jobs_page() -> str:
    """Each section of a job's file: its keys, their types and defaults."""
    from textnb.jobs.configuration import Job

    parts = ["# Keys of a job\n\nA key that is not listed is an error.\n"]
    for name, field in Job.model_fields.items():
        section = _section(field.annotation)
        if section is None:
            parts.append(f"\n## {name}\n\n{_type(field.annotation)}, {_default(field)}.\n")
            continue
        parts.append(f"\n## [{name}]\n\n{inspect.cleandoc(section.__doc__ or '')}\n\n"
                     "| key | type | default |\n|---|---|---|\n")
        parts += [f"| `{key}` | {_type(inner.annotation)} | {_default(inner)} |\n"
                  for key, inner in section.model_fields.items()]
    return "".join(parts)


def _section(annotation: object) -> type | None:
    for kind in (annotation, *typing.get_args(annotation)):
        for inner in (kind, *typing.get_args(kind)):
            if isinstance(inner, type) and hasattr(inner, "model_fields"):
                return inner
    return None


def _type(annotation: object) -> str:
    """A type in words: without validators, and with ``or`` between alternatives."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is type(None):
        return "none"
    if origin is typing.Annotated:
        return _type(inner[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_type, inner))
    if origin is typing.Literal:
        return " or ".join(f"`{value!r}`" for value in inner)
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(_type, inner))}]"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _default(field: object) -> str:
    if field.is_required():  # type: ignore[attr-defined]
        return "required"
    return f"`{field.get_default(call_default_factory=True)!r}`"  # type: ignore[attr-defined]


def order() -> tuple[tuple[str, ...], ...]:
    """The order of rooms, from the test that holds imports to it."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ORDER":
            return tuple(ast.literal_eval(node.value))
    raise LookupError("tests/test_layers.py has no ORDER")


def arrows() -> Counter[tuple[str, str]]:
    """How many modules of a room import another room."""
    found: Counter[tuple[str, str]] = Counter()
    for path in (ROOT / "textnb").rglob("*.py"):
        room = path.relative_to(ROOT / "textnb").with_suffix("").parts[0]
        if room == "__init__":
            continue
        targets = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = node.module if isinstance(node, ast.ImportFrom) else None
            if name and name.startswith("textnb."):
                targets.add(name.split(".")[1])
        found.update((room, target) for target in targets - {room})
    return found


def rooms_picture() -> str:
    """The rooms from the first to the last, and an arrow for each import between two."""
    width, height, gap = 170, 44, 66
    layers = order()
    place = {room: (30 + column * (width + 24), 20 + row * gap)
             for row, layer in enumerate(layers) for column, room in enumerate(layer)}
    total = 20 + len(layers) * gap
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {total}" role="img" '
             'font-family="sans-serif" font-size="13">',
             "<title>The rooms of the package, each importing only those above it</title>"]
    for (room, target), count in sorted(arrows().items()):
        if room in place and target in place:
            (x1, y1), (x2, y2) = place[room], place[target]
            bend = 620 + 6 * (list(place).index(room) % 20)
            parts.append(
                f'<path d="M {x1 + width} {y1 + height / 2} C {bend} {y1}, {bend} {y2}, '
                f'{x2 + width} {y2 + height / 2}" fill="none" stroke="#8a94a6" '
                f'stroke-opacity="0.35" stroke-width="{min(1 + count / 4, 4)}"/>')
    for room, (x, y) in place.items():
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
                     'fill="#f3f5f9" stroke="#4a5568"/>'
                     f'<text x="{x + 10}" y="{y + 18}" font-weight="bold">{escape(room)}/</text>'
                     f'<text x="{x + 10}" y="{y + 35}" font-size="11" fill="#4a5568">'
                     f'{escape(ROOMS.get(room, ""))}</text>')
    return "\n".join([*parts, "</svg>\n"])
