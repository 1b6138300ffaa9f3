"""Imports flow one way. The order is read here, and every import in the package is held to it."""

import ast
import json
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from textnb.runtime.native import KERNEL, load_usable

PACKAGE = "textnb"
ROOT = Path(__file__).parents[1] / PACKAGE

# A place imports only places of an earlier group: not of its own group, not of a later one.
ORDER = (
    ("errors",), ("runtime",), ("files", "mail"), ("bayes",), ("models",), ("frames", "text"),
    ("learning",), ("scoring",), ("storage",), ("selection",), ("classifiers",), ("evaluation",),
    ("report",), ("export",), ("engines",), ("filter",), ("workflow",), ("cli",))
RANK = {place: rank for rank, places in enumerate(ORDER) for place in places}

# scikit-learn is for what judges models. All other rooms run without it; what a function of theirs
# imports is loaded when it is called.
SKLEARN = ("selection", "evaluation", "report", "engines")
# Modules that others import inside functions: rows of matrices are checked by scikit-learn, and a
# transformer is one of its own.
BY_SKLEARN = ("models.matrices", "models.log_count_ratio")
# Imports modules of its own room, the last one, by the names in its table of verbs.
BY_NAME = ("cli.main",)
# Draws the line of progress, by Rich, for Python too.
LIVE = "runtime.progress"
# Polars and scipy.sparse meet here alone; others name the type of its matrices, `CountMatrix`.
MATRICES = "text.matrix"
LONGEST_MODULE = 600
# One class whose methods are a line or three: what is long is the documentation of the interface.
LONGER = {"classifiers.text": 709}


def sources():
    """Module name (``text.tokens``; ``text.__init__`` for a package) to source."""
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text("utf-8")
            for path in sorted(ROOT.rglob("*.py"))}


@cache
def tree_of(source):
    return ast.parse(source)


def place(module):
    return module.split(".")[0]


def imports(module, source, modules):
    """Absolute names of what a module imports anywhere in it: functions and type checks too.

    ``from textnb.text import tokens`` is ``textnb.text.tokens`` if that is a module.
    """
    package = [PACKAGE, *module.split(".")[:-1]]
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            home = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                whole = f"{home}.{alias.name}"
                inside = whole.removeprefix(f"{PACKAGE}.")
                yield whole if inside in modules or f"{inside}.__init__" in modules else home
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in ("import_module", "__import__"):
                yield f"{name}()"


def violations(modules):
    """Every way in which the modules break the order."""
    found = []
    inside: dict[str, dict[str, set[str]]] = {}
    for module, source in modules.items():
        # The package's names, and ``python -m textnb``, which is the command line.
        if module in ("__init__", "__main__"):
            continue
        if place(module) not in RANK:
            found.append(f"{module}: the place {place(module)!r} is not in the order")
            continue
        targets = set(imports(module, source, modules))
        found += _foreign(module, targets)
        if "sklearn" in loaded_at_import(source) and not (
                place(module) in SKLEARN or module in BY_SKLEARN):
            found.append(f"{module}: imports sklearn at its top, which only "
                         f"{', '.join(SKLEARN)} may")
        for target in sorted(targets):
            if target == PACKAGE:
                found.append(f"{module}: imports the public names instead of their home")
            elif target.endswith("()") and module in BY_NAME:
                continue
            elif target.endswith("()"):
                found.append(f"{module}: imports by {target}, which no check can follow")
            elif target.startswith(f"{PACKAGE}."):
                target = target.removeprefix(f"{PACKAGE}.")
                if place(target) == place(module):
                    # A package's name is its __init__, which may import what is in it.
                    target += ".__init__" if f"{target}.__init__" in modules else ""
                    inside.setdefault(place(module), {}).setdefault(module, set()).add(target)
                elif RANK.get(place(target), len(ORDER)) >= RANK[place(module)]:
                    found.append(f"{module}: imports {target}, which is not before it")
    for name, graph in inside.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as cycle:
            found.append(f"{name}: its modules import each other: {' -> '.join(cycle.args[1])}")
    return found


def loaded_at_import(source):
    """Top-level names of what a module imports as soon as it is imported itself."""
    found: set[str] = set()
    nodes: list[ast.AST] = list(tree_of(source).body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.split(".")[0])
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
    return found


def _foreign(module, targets):
    found = []
    roots = {target.split(".")[0] for target in targets}
    sparse = any(target.startswith("scipy.sparse") for target in targets)
    if place(module) == "bayes" and "polars" in roots:
        found.append(f"{module}: imports polars, and bayes holds the mathematics alone")
    if place(module) in ("frames", "text") and "scipy" in roots and module != "text.matrix":
        found.append(f"{module}: imports scipy, which is text.matrix's alone here")
    if "polars" in roots and sparse and module != MATRICES:
        found.append(f"{module}: polars and scipy.sparse meet outside {MATRICES}")
    if place(module) != "cli" and roots & {"rich", "click"} and module != LIVE:
        found.append(f"{module}: imports the command line's libraries")
    return found


def beyond_reexports(source):
    """Statements of an ``__init__`` that do more than name what is elsewhere."""
    allowed_functions = {"__getattr__", "__dir__", "_modules_of_names"}

    def fine(node):
        match node:
            case ast.Import() | ast.ImportFrom():
                return True
            case ast.Expr(value=ast.Constant(value=str())):
                return True
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return name in ("__all__", "__version__") and isinstance(
                    value, ast.Constant | ast.List)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=[]):
                return all(isinstance(inner, ast.ImportFrom) for inner in body)
            case ast.FunctionDef(name=name):
                return name in allowed_functions
        return False

    return [ast.unparse(node) for node in tree_of(source).body if not fine(node)]


def test_imports_flow_one_way():
    assert violations(sources()) == []


@pytest.mark.parametrize(("module", "source", "expected"), [
    ("bayes.bad", "from textnb.text.tokens import Tokenizer", "text.tokens, which is not before"),
    ("bayes.bad", "import textnb.text.tokens", "text.tokens, which is not before"),
    ("text.bad", "from ..frames import scan", "frames.scan, which is not before"),
    ("errors", "from .classifiers import load", "classifiers.load, which is not before"),
    ("files.bad", "from textnb import classifiers", "classifiers, which is not before"),
    ("learning.bad", "def f():\n    from textnb.scoring.scorer import score_frame",
     "scoring.scorer, which is not before"),
    ("scoring.bad", "if TYPE_CHECKING:\n    import textnb.storage.textmodel",
     "storage.textmodel, which is not before"),
    ("cli.bad", "from textnb import load", "imports the public names"),
    ("cli.bad", "from importlib import import_module\nimport_module('x')", "no check can follow"),
    ("cli.bad", "__import__('textnb.classifiers')", "no check can follow"),
    ("helpers", "import json", "'helpers' is not in the order"),
    ("bayes.bad", "import polars.selectors as cs", "imports polars"),
    ("text.bad", "from scipy import sparse", "imports scipy"),
    ("frames.bad", "import scipy.sparse as sp", "imports scipy"),
    ("storage.bad", "import polars as pl\nimport scipy.sparse as sp", "meet outside text.matrix"),
    ("bayes.bad", "from sklearn.base import clone", "imports sklearn at its top"),
    ("learning.bad", "try:\n    import sklearn.svm\nexcept ImportError:\n    pass",
     "imports sklearn at its top"),
    ("evaluation.bad", "from rich.table import Table", "command line's libraries")])
def test_the_check_sees_a_bad_import(module, source, expected):
    # The names of the others are enough; what they import is not asked.
    others = dict.fromkeys(sources(), "")
    found = violations({**others, module: source})
    assert [line for line in found if line.startswith(f"{module}: ") and expected in line] != []


@pytest.mark.parametrize(("cycle", "told"), [
    ({"text.one": "from textnb.text.two import x", "text.two": "from . import one"},
     "text.one -> text.two -> text.one"),
    ({"text.__init__": "from textnb.text.one import x", "text.one": "from textnb.text import y"},
     "text.__init__ -> text.one -> text.__init__"),
    ({"text.one": "def f():\n    import textnb.text.one"}, "text.one -> text.one")])
def test_the_check_sees_a_cycle_inside_a_package(cycle, told):
    assert violations(cycle) == [f"text: its modules import each other: {told}"]


def test_the_check_allows_what_flows_down():
    good = {"cli.good": "import textnb.classifiers\nfrom textnb.text import tokens\nimport rich",
            "bayes.forms": "", "text.tokens": "", "classifiers.__init__": "",
            "bayes.better": "def f():\n    from sklearn.svm import _liblinear",
            "evaluation.good": "from sklearn.base import clone",
            "bayes.good": "from .forms import LinearForm\nimport scipy.sparse as sp"}
    assert violations(good) == []


def filters_of_warnings(source):
    """The names by which a module changes what becomes of warnings in the whole process."""
    names = {"catch_warnings", "simplefilter", "filterwarnings", "resetwarnings", "showwarning"}
    return {node.attr for node in ast.walk(tree_of(source))
            if isinstance(node, ast.Attribute) and node.attr in names} | {
            alias.name for node in ast.walk(tree_of(source)) if isinstance(node, ast.ImportFrom)
            for alias in node.names if alias.name in names}


def test_the_library_leaves_the_filters_of_warnings_alone():
    """Two threads that each change and restore them may leave the change behind for good."""
    # The command owns its process.
    assert {module: names for module, source in sources().items()
            if (names := filters_of_warnings(source)) and module != "cli.console"} == {}


@pytest.mark.parametrize("source", [
    "import warnings as w\nw.simplefilter('ignore')", "from warnings import catch_warnings"])
def test_the_check_sees_a_change_of_filters(source):
    assert len(filters_of_warnings(source)) == 1


def test_init_files_only_reexport():
    inits = {module: source for module, source in sources().items()
             if module.split(".")[-1] == "__init__"}
    assert len(inits) > 5
    assert {module: more for module, source in inits.items()
            if (more := beyond_reexports(source))} == {}


@pytest.mark.parametrize("statement", [
    "def load(path):\n    return path", "x = 1", "__all__ = list(a)", "class A:\n    pass",
    "print('hello')", "for x in ():\n    pass", "if TYPE_CHECKING:\n    x = 1",
    "if x:\n    from a import b",
])
def test_the_check_sees_work_in_an_init_file(statement):
    assert len(beyond_reexports(f'"""Names."""\nfrom a import b\n{statement}\n')) == 1


def test_modules_are_short_and_have_names_that_say_something():
    lengths = {module: source.count("\n") for module, source in sources().items()}
    limits = {**dict.fromkeys(lengths, LONGEST_MODULE), **LONGER}
    assert [f"{module} has {n} lines, more than {limits[module]} (LONGEST_MODULE, LONGER)"
            for module, n in lengths.items() if n > limits[module]] == []
    names = {part for module in lengths for part in module.split(".")}
    assert names & {"util", "utils", "helpers", "common", "misc"} == set()


def loaded(code):
    """Top-level modules that are in memory after some code ran in a fresh interpreter."""
    ending = "\nimport sys, json; print('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code + ending], capture_output=True, text=True,
                          check=True, timeout=60)
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


HELP = """
import sys
from textnb.cli.main import app
sys.argv = {argv}
try:
    app()
except SystemExit as done:
    assert not done.code, done.code
"""


@pytest.mark.sweep(4)
@pytest.mark.parametrize(("code", "absent", "present"), [
    ("import textnb; dir(textnb)", "sklearn polars scipy numpy rich click", "textnb"),
    ("import textnb; textnb.Tokenizer", "sklearn scipy", "textnb"),
    ("import textnb; textnb.TextClassifier", "sklearn scipy", "polars"),
    # What the check would see if it failed
    ("import textnb; textnb.LogCountRatio", "", "sklearn scipy"),
    *((HELP.format(argv=["textnb", *arguments.split()]), "sklearn polars scipy numpy rich", "click")
      for arguments in ("--help", "--version", "train --help", "predict --help", "run --help",
                        "filter --help", "export --help"))])
def test_what_is_imported_loads_what_it_needs(code, absent, present):
    modules = loaded(code)
    assert modules & set(absent.split()) == set()
    assert set(present.split()) <= modules


def test_a_feature_table_needs_no_scikit_learn(tmp_path):
    path = str(tmp_path / "model")
    assert "sklearn" not in loaded(f"""
import polars as pl
from textnb import (GaussianNB, LinearDiscriminantAnalysis, NearestCentroid,
                    QuadraticDiscriminantAnalysis, RegularizedDiscriminantAnalysis,
                    TableClassifier, load)
rows = pl.DataFrame({{"x": [1, 2, 4, 7, 8, 6], "y": [1, 0, 2, 4, 9, 6], "label": list("aaabbb")}})
for model in (GaussianNB(class_weight="balanced"), LinearDiscriminantAnalysis(shrinkage="auto"),
              QuadraticDiscriminantAnalysis(), RegularizedDiscriminantAnalysis(alpha=[0, 1], cv=3),
              NearestCentroid()):
    TableClassifier(model).fit(rows).save({path!r})
    again = load({path!r})
    again.predict(rows, probability=True)
    again.predict(rows.select("x", "y").to_numpy())
    again.score(rows)
""")


@pytest.mark.slow
@pytest.mark.skipif(
    bool(load_usable(KERNEL).reason), reason="the way that is drawn is that of the kernel")
def test_a_row_goes_down_the_rooms_as_the_page_says():
    path = str(ROOT.parent / "scripts" / "way")
    loader = SourceFileLoader("way", path)
    way: Any = module_from_spec(spec_from_file_location("way", path, loader=loader))
    loader.exec_module(way)
    assert way.page() == way.PAGE.read_text("utf-8"), "scripts/way --write draws it anew"
    rooms: list[str] = []
    for line in way.draw():
        if not line.startswith(" "):
            rooms = []
            continue
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        rooms[depth:] = [place(line.split()[1].replace("/", "."))]
        assert [RANK[room] for room in rooms] == sorted(
            (RANK[room] for room in rooms), reverse=True), line
