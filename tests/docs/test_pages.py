"""The code in the documentation runs, and prints what it says.

A page's Python blocks share one namespace; its console blocks run in the same folder, in order.
Below a line ``$ command`` stands what it prints: all lines, some of them after a line ``...``, or
nothing where the output is not shown. A block of language ``text`` is not run. A block with a name
of a file behind its language (````toml job.toml````) is written to that file, for later blocks.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import finished, run_here

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
         *sorted(path for path in (ROOT / "docs").rglob("*.md")
                 if not {"generated", "_build"} & set(path.parts))]
SAMPLES = "textnb samples ."
RUN = {"python", "console"}
KNOWN = RUN | {"text", "math", "toml", "yaml", "json", "sql", "bash", "c", "rust", "javascript",
               "{eval-rst}", "{toctree}", "{figure}", "{image}", "{note}", "{include}", "{raw}"}


class Block(NamedTuple):
    """A fenced block: its language, its text, the line on which the text begins, and its file."""

    language: str
    text: str
    line: int
    file: str = ""


class Command(NamedTuple):
    """A command of a console block, and the lines that stand below it."""

    line: str
    shown: str


def blocks(page):
    for found in re.finditer(r"^```([^\n]*)\n(.*?)^```$", page, flags=re.M | re.S):
        language, _, rest = found[1].strip().partition(" ")
        # ```{image} takes a path as its argument: that is no block of a file.
        yield Block(language, found[2], page[:found.start(2)].count("\n"),
                    "" if language.startswith("{") else rest)


def commands(block):
    parts = re.split(r"^\$ ", block, flags=re.M)[1:]
    cut = [re.match(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, flags=re.S) for part in parts]
    return [Command(found[1], found[2].strip("\n")) for found in cut if found is not None]


def needs(page):
    """Modules without which a page is not run: ``<!-- needs: duckdb -->``."""
    found = re.search(r"^<!-- needs: (.+) -->$", page, flags=re.M)
    return found[1].split() if found else []


def promised(block):
    """What a block says that it prints: ``print(1 + 1)  # 2``."""
    return re.findall(r"^print\(.*\) +# ([\[({'\"\d-].*|True|False|None)$", block, flags=re.M)


def holds(printed, shown):
    """Whether lines were printed; ``...`` stands for anything, line breaks too."""
    flat = "\n".join(line.rstrip() for line in printed.strip("\n").split("\n"))
    pattern = ".*?".join(re.escape(part) for part in shown.split("..."))
    return re.search(rf"(?:^|\n){pattern}(?:\n|$)", flat, flags=re.S) is not None


def run_command(command, folder, page):
    """Run a command in a shell, or in this process if there is nothing for a shell to do."""
    if re.fullmatch(r"textnb [^|<>&;$*`]*", command.line):
        with chdir(folder):
            done = run_here(*shlex.split(command.line.replace("\\\n", ""), comments=True)[1:])
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = finished(subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command.line], cwd=folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}))
    printed = done.out + done.err
    assert done.code == 0, f"{page}: {command.line}\n{printed}"
    assert not command.shown or holds(printed, command.shown), (
        f"{page}: {command.line}\n--- printed\n{printed}\n--- shown\n{command.shown}")


def run_python(block, namespace, page):
    if ">>> " in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, namespace, page, page, block.line)
        report: list[str] = []
        done = doctest.DocTestRunner(verbose=False).run(test, out=report.append, clear_globs=False)
        namespace.update(test.globs)
        assert done.failed == 0, "".join(report)
    else:
        # Blank lines in front, so that a traceback names the line of the page.
        exec(compile("\n" * block.line + block.text, page, "exec"), namespace)


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    """The files that pages work with: most begin with the command, which is run once."""
    folder = tmp_path_factory.mktemp("samples")
    run_command(Command(SAMPLES, ""), folder, "samples")
    return folder


every_page = pytest.mark.parametrize("path", [path for path in PAGES if path.exists()],
                                     ids=lambda path: str(path.relative_to(ROOT)))


@pytest.mark.sweep(1)
@every_page
def test_the_code_of_a_page_runs(path, samples, tmp_path, monkeypatch, capsys):
    page, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
    for module in needs(page):
        if find_spec(module) is None:
            pytest.skip(f"could not import {module!r}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text, "utf-8")
        elif block.language == "python":
            run_python(block, namespace, name)
            printed = capsys.readouterr().out
            assert [line for line in promised(block.text) if not holds(printed, line)] == []
        elif block.language == "console":
            for command in commands(block.text):
                if command.line.split("#")[0].strip() == SAMPLES:
                    shutil.copytree(samples, tmp_path, dirs_exist_ok=True)
                else:
                    run_command(command, tmp_path, name)


@every_page
def test_the_blocks_of_a_page_have_a_known_language(path):
    languages = {block.language for block in blocks(path.read_text("utf-8"))}
    assert languages - KNOWN == set(), "what can't run is `text`, or of a language of KNOWN"


def test_a_block_that_is_wrong_is_seen():
    assert promised("x = 1  # one\nprint(x)  # 1\nprint(2)  # two\n") == ["1"]
    assert holds("1\n1 [1, 1, 1]\n", "1 [1, 1, ...]")
    assert not holds("1\n1 [1, 2, 1]\n", "1 [1, 1, ...]")
    assert commands("$ a \\\n  b\nc\nd\n$ e\n") == [Command("a \\\n  b", "c\nd"), Command("e", "")]
    with pytest.raises(AssertionError, match="printed"):
        run_command(Command("echo one", "two"), Path(), "page")
    for line in ("false", "textnb train --no-such"):
        with pytest.raises(AssertionError, match=line):
            run_command(Command(line, ""), Path(), "page")


def test_a_page_lists_all_that_refuses_lists_of_labels():
    from textnb.errors import ONE_LABEL
    from textnb.export.targets.known import TARGETS
    from textnb.models.known import MODELS

    models = [model.name for model in MODELS if model.of_terms and not model.learns_labels]
    targets = [name for name, target in TARGETS.items() if "labels" not in target.decides]
    first = [f"- models ({', '.join(f'`{name}`' for name in models)}): they compare classes.",
             "- models of feature tables (`TableClassifier`): a row has one class.",
             f"- export targets ({', '.join(f'`{name}`' for name in targets)}): they answer with "
             "one class."]
    page = (ROOT / "docs/how-to/topics.md").read_text("utf-8")
    listed = page.rpartition("by:\n\n")[2].splitlines()
    assert listed[:3] == first
    # The page adds where a user meets each.
    assert [re.sub(r" \(.*?\): ", ": ", line) for line in listed[3:]] == [
        f"- {what}: {why}." for what, why in ONE_LABEL.items()]
