"""The pages that are read off the program: its commands, the keys of jobs, what is gone, the rooms.

They are written into `docs/generated` when the pages are built, and are not kept.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME_OF_TABLE = re.compile(r"^\| `([\w.]+)` \|", flags=re.M)
ROOMS = {
    "errors": "the exceptions",
    "runtime": "threads, forks, memory", "files": "whole files, locks",
    "mail": "one message", "frames": "rows in and out", "text": "tokens to counts",
    "bayes": "the mathematics", "models": "a class per model",
    "learning": "documents to statistics",
    "scoring": "answers as columns",
    "storage": "the model file", "selection": "folds, the search for settings",
    "classifiers": "TextClassifier, TableClassifier",
    "evaluation": "metrics, validation", "report": "the HTML report",
    "export": "weights for other systems", "engines": "Spark",
    "filter": "the mail filter, at once and over a socket",
    "workflow": "steps of work, and jobs", "cli": "the command line",
}


def write_generated_pages(docs: Path) -> None:
    """Write every generated page below ``docs/generated``."""
    folder = docs / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "commands.md").write_text(commands_page(), "utf-8")
    (folder / "jobs.md").write_text(jobs_page(), "utf-8")
    (folder / "from_0_1.md").write_text(from_0_1_page(), "utf-8")
    (folder / "api").mkdir(exist_ok=True)
    for name in names_of_reference():
        (folder / "api" / f"textnb.{name}.rst").write_text(name_page(name), "utf-8")
    (folder / "rooms.svg").write_text(rooms_picture(), "utf-8")
    (folder / "explained.html").write_text(explained_text(), "utf-8")


def names_of_reference() -> list[str]:
    """The names in the tables of the reference, below ``textnb``."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    return NAME_OF_TABLE.findall(page)


def named(name: str) -> object:
    """What a name of the reference means."""
    *path, last = name.split(".")
    return getattr(importlib.import_module(".".join(["textnb", *path])), last)


def summary(name: str) -> str:
    """The first paragraph of a name's docstring, as Markdown: what its line in the table says."""
    text = inspect.getdoc(named(name)) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("``", "`")


def name_page(name: str) -> str:
    """The page of a name: all that its docstrings say."""
    *path, last = name.split(".")
    kind = "autoclass" if isinstance(named(name), type) else "autofunction"
    title = last if path else f"textnb.{last}"
    return (f"{title}\n{'=' * len(title)}\n\n"
            f".. currentmodule:: {'.'.join(['textnb', *path])}\n\n.. {kind}:: {last}\n")


def with_links(page: str) -> str:
    """The reference with a link for each name. A clone has no generated pages to link to."""
    names = "\n".join(f"../generated/api/textnb.{name}" for name in NAME_OF_TABLE.findall(page))
    linked = NAME_OF_TABLE.sub(r"| [`\1`](../generated/api/textnb.\1.rst) |", page)
    return f"{linked}\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def with_both_themes(page: str) -> str:
    """A page that shows each picture of the report in the reader's theme."""
    return re.sub(r"^!\[(.*)\]\((\S*/pictures/\w+)\.png\)$", lambda found: "\n".join(
        f"```{{image}} {found[2]}{ending}.png\n:alt: {found[1]}\n:class: only-{theme}\n```\n"
        for theme, ending in (("light", ""), ("dark", "-dark"))), page, flags=re.M)


def commands_page() -> str:
    """Each verb with its help text, as the program prints it, in the groups of ``textnb help``."""
    from textnb.cli.main import GROUPS

    parts = ["# The command line\n"]
    for group, verbs in GROUPS.items():
        parts += [f"\n## {group.capitalize()}\n"]
        parts += [f"\n### textnb {verb}\n\n```text\n{help_text(verb)}\n```\n" for verb in verbs]
    return "".join(parts)


def explained_text() -> str:
    """A text as a notebook shows it, its words coloured."""
    from textnb import MultinomialNB, TextClassifier
    from textnb.workflow.samples import news

    model = TextClassifier(MultinomialNB(l="auto")).fit(news(900))
    return model.highlight(news(2, seed=1)["text"][0])._repr_html_()


def help_text(verb: str) -> str:
    """What ``textnb VERB --help-all`` prints, or ``--help`` where that is all; no line scrolls."""
    from textnb.cli.main import command_of

    option = "--help-all" if getattr(command_of(verb), "rare", None) else "--help"
    code = "from textnb.cli.main import app; app(prog_name='textnb')"
    done = subprocess.run(
        [sys.executable, "-c", code, verb, option], capture_output=True, text=True, check=True,
        env={**os.environ, "COLUMNS": "76", "TERM": "dumb", "NO_COLOR": "1"})
    return done.stdout.strip("\n")


def from_0_1_page() -> str:
    """What each old spelling is now: the tables by which the program answers it."""
    from textnb.runtime import removed

    verbs: dict[tuple[str, str], list[str]] = {}
    for (verb, option), advice in removed.OPTIONS.items():
        verbs.setdefault((option, advice), []).append(verb)
    tables = {
        "Options": {f"{', '.join(names)}: `{option}`": advice
                    for (option, advice), names in verbs.items()},
        "Names of `textnb` in Python": removed.NAMES,
        "Settings of classifiers, in Python and in `[model]` of jobs": removed.SETTINGS,
        "Keys of jobs": removed.KEYS,
        "Targets of exports": removed.TARGETS}
    parts = ["# From 0.1\n\nWhat 0.1, or an earlier state of 0.2, had and this release has not. "
             "The program answers each old spelling with the same words, for one release. What "
             "else changed is in [the changelog](../changelog.md).\n"]
    for title, entries in tables.items():
        parts.append(f"\n## {title}\n\n| old | now |\n|---|---|\n")
        parts += [f"| {old if '`' in old else f'`{old}`'} | {_as_cell(advice)} |\n"
                  for old, advice in entries.items()]
    return "".join(parts)


def _as_cell(text: str) -> str:
    """An advice in a cell, with what is typed marked as code."""
    typed = r"--[a-z][\w-]*(?: (?:\"[^\"]*\"|'[^']*'|[\w.]+=\S+))?|textnb\.[\w.]+\w"
    return re.sub(f"({typed})", r"`\1`", text).replace("|", "\\|")


def jobs_page() -> str:
    """Each section of a job's file: its keys, their types and defaults."""
    from textnb.learning.settings import ColumnSettings, LimitSettings
    from textnb.models.known import all_models
    from textnb.workflow.job import SECTIONS
    from textnb.workflow.options import LearnOptions, TokenOptions

    parts = ["# Keys of a job\n\nA key that is not listed is an error. `output` is the folder to "
             "write.\n"]
    for name, section in SECTIONS.items():
        parts.append(f"\n## `{'[[exports]]' if name == 'exports' else f'[{name}]'}`\n\n")
        if name != "model":
            parts += [inspect.cleandoc(section.__doc__ or ""), "\n\n", *_keys_of(section)]
            continue
        parts += ["`kind` is the model, and beside it stand that model's own settings.\n\n",
                  *_keys_of(ColumnSettings, LimitSettings, LearnOptions)]
        titles = {"[model.tokenizer]": TokenOptions} | {
            f'[model] with kind = "{kind}"': group for kind, group in all_models().items()}
        for title, group in titles.items():
            parts += [f"\n### `{title}`\n\n", *_keys_of(group)]
    return "".join(parts)


def _keys_of(*groups: type) -> list[str]:
    """A table of the settings of some groups."""
    from dataclasses import MISSING

    from textnb.runtime.settings import setting_fields, type_of

    rows = ["| key | type | default | meaning |\n|---|---|---|---|\n"]
    for group in groups:
        for field, facts in setting_fields(group):
            kind = type_of(field).removesuffix(" | None")
            kind = " or ".join(f'`"{choice}"`' for choice in facts.choices) or (
                _TYPES.get(kind, kind))
            default = "required" if field.default is MISSING else f"`{field.default!r}`"
            rows.append(f"| `{field.name}` | {kind} | {default} | "
                        f"{facts.help.replace('|', ', ')}"
                        f"{'' if facts.is_option else ' No option of `textnb train`.'} |\n")
    return rows


# Types of settings in words, where their names do not say what a file has.
_TYPES = {
    "CountOrShare": "int or float", "NumberOrAuto": "float or `\"auto\"`", "Size": "int or str",
    "Columns": "str or list[str]", "Names": "list[str]", "Words": "list[str]",
    "Kinds": "list[str]", "Prefixes": "bool or list[str]", "LowerCase": "bool or str",
    "Pair": "two ints", "Costs": "two floats", "Grid": "list[float] or `\"auto\"`",
    "Label": "str or int or bool", "Storage": "table", "Place": "str", "FileName": "str",
    "TableName": "str", "Numbers": "float or list[float]", "Priors": "list[float]",
    "Weights": "table or `\"balanced\"`", "Segmenter": "str"}


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
    """A square for each room that imports another one; all lie below the diagonal."""
    rooms = [room for layer in order() for room in layer]
    found, cell, left, top = arrows(), 30, 300, 100
    size = cell * len(rooms)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + size + 10} '
             f'{top + size + 10}" role="img" font-family="sans-serif" font-size="13">',
             "<title>Which room imports which: each row only rooms above it</title>",
             f'<rect width="{left + size + 10}" height="{top + size + 10}" fill="#ffffff"/>']
    for n, room in enumerate(rooms):
        x, y = left + n * cell, top + n * cell
        name = escape(room) + ("" if room == "errors" else "/")
        does = escape(ROOMS[room])
        parts.append(f'<text x="10" y="{y + 20}" font-weight="bold">{name}</text>'
                     f'<text x="100" y="{y + 20}" fill="#4a5568">{does}</text>'
                     f'<text transform="translate({x + 20} {top - 8}) rotate(-60)">{name}</text>'
                     f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" fill="#dfe3ea"/>')
        for m, target in enumerate(rooms):
            if count := found[room, target]:
                parts.append(
                    f'<rect x="{left + m * cell}" y="{y}" width="{cell}" height="{cell}" '
                    f'fill="#1f4e9c" fill-opacity="{min(0.15 + count / 25, 0.75):.2f}"/>'
                    f'<text x="{left + m * cell + cell / 2}" y="{y + 20}" text-anchor="middle" '
                    f'font-size="11">{count}</text>')
    lines = [f'<path d="M {left} {top + n * cell} h {size} M {left + n * cell} {top} v {size}" '
             'stroke="#c5ccd8"/>' for n in range(len(rooms) + 1)]
    return "\n".join([*parts, *lines, "</svg>\n"])
