"""The public names, their documentation, and every example in it."""

import ast
import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import textnb
from textnb import errors
from textnb.models.known import all_models
from textnb.runtime.native import PACKAGES
from textnb.runtime.removed import NAMES

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"

SURFACE = textnb.__all__
ERRORS = [name for name in SURFACE if name.endswith(("Error", "Warning"))]
DOCUMENTED = [name for name in SURFACE if name not in ERRORS]
# The names that people begin with
BEGINNERS = {"TextClassifier", "MultinomialNB", "BernoulliNB", "ComplementNB", "CategoricalNB",
             "Tokenizer", "scan", "evaluate"}


# Sources that Cython compiles need it where it did not; all other modules import without any extra.
KERNEL = tuple(f"{package}.{name}" for package, names in PACKAGES.items() for name in names)
# Examples that need an extra to run: its packages.
EXAMPLES = {"textnb.report.page.write_report": ("altair", "jinja2", "vl_convert")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Those that users install.
EXTRAS = {name: requirements for name, requirements in PROJECT["optional-dependencies"].items()
          if name not in ("test", "check", "docs")}


def module_names():
    package = ROOT / "textnb"
    paths = (path.relative_to(ROOT).with_suffix("") for path in sorted(package.rglob("*.py")))
    return [".".join(path.parts).removesuffix(".__init__") for path in paths]


def needs_cython(name):
    """Whether a source of the kernel was not compiled, and Cython is not there to run it."""
    spec = find_spec(name)
    return name in KERNEL and str(spec and spec.origin).endswith(".py") and not find_spec("cython")


def examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for name in module_names() if not needs_cython(name)
            for test in finder.find(importlib.import_module(name)) if test.examples]


# The surface


def test_there_are_few_names_and_those_that_are_promised():
    models = {model.__name__ for model in all_models().values()
              if model.__module__.startswith("textnb.")}
    assert models <= set(SURFACE), "each model is a public name: add it to textnb/__init__.pyi"
    others = set(SURFACE) - models
    assert len(others) <= 51, "rare names stay in their modules: import them from there"
    assert dir(textnb) == SURFACE
    promised = (
        "TextClassifier TableClassifier Tokenizer load LinearForm export_model verify_export "
        "cross_validate leave_one_out calibrate choose_threshold find_duplicates scan scan_mail "
        "MailFilter tune write_report MultinomialNB BernoulliNB ComplementNB CategoricalNB "
        "TfidfComplementNB NBLinear NBLogisticRegression LogCountRatio GaussianNB "
        "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis RegularizedDiscriminantAnalysis "
        "NearestCentroid PlugInBayes")
    assert set(promised.split()) <= set(SURFACE)
    assert (ROOT / "textnb" / "py.typed").is_file()


@pytest.mark.parametrize("name", SURFACE)
def test_a_public_name_resolves_to_its_home(name):
    value = getattr(textnb, name)
    assert value.__name__ == name
    home = textnb._modules_of_names()[name]
    # A package gives what its modules hold.
    assert value.__module__ == home or value.__module__.startswith(f"{home}.")
    assert value is getattr(importlib.import_module(home), name)
    assert value is getattr(textnb, name)


def test_the_stub_is_what_the_program_reads():
    stub = (ROOT / "textnb" / "__init__.pyi").read_text("utf-8")
    typed = {alias.name: (node.module, alias.asname) for node in ast.parse(stub).body
             if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == {name: (home, name) for name, home in textnb._modules_of_names().items()} | {
        "__version__": ("textnb.runtime", "__version__")}
    assert len(typed) == stub.count("\nfrom ")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'textnb' has no attribute 'Classifier'"):
        textnb.Classifier  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Classifier'"):
        exec("from textnb import Classifier")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_gone_says_what_to_use_instead(name):
    assert name not in SURFACE
    assert not hasattr(textnb, name)
    with pytest.raises(AttributeError, match=re.escape(NAMES[name])):
        getattr(textnb, name)
    with pytest.raises(ImportError, match=re.escape(NAMES[name])):
        exec(f"from textnb import {name}")


# Documentation


def sections(doc):
    """A numpydoc docstring's sections; what comes first is under the empty name."""
    parts = re.split(r"^(\w[\w ]*)\n(-+)\n", inspect.cleandoc(doc), flags=re.M)
    for title, line in zip(parts[1::3], parts[2::3], strict=True):
        assert len(title) == len(line), f"{title} is underlined by {line}"
    return {"": parts[0], **dict(zip(parts[1::3], parts[3::3], strict=True))}


def described(section):
    """The names that a section defines: ``a, b : type``."""
    heads = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", section, flags=re.M)
    return {name for head in heads for name in head.split(", ")}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_public_name_is_documented(name):
    value: Any = getattr(textnb, name)
    parts = sections(value.__doc__)
    summary = parts[""].splitlines()[0]
    assert summary.endswith((".", "``."))
    told = described(parts.get("Parameters", "")) | described(parts.get("Attributes", ""))
    assert set(inspect.signature(value).parameters) - told == set()
    assert set(parts) <= {"", "Parameters", "Attributes", "Returns", "Raises", "Examples", "Notes",
                          "References", "See Also", "Warns"}
    if name in BEGINNERS:
        assert ">>> " in parts["Examples"]


def test_the_check_sees_a_parameter_that_is_not_described():
    text = "Do.\n\n    Parameters\n    ----------\n    a, b : int\n        About c : that.\n    d\n"
    assert described(sections(text)["Parameters"]) == {"a", "b", "d"}


@pytest.mark.parametrize("name", [name for name in DOCUMENTED
                                  if inspect.isclass(getattr(textnb, name))])
def test_a_public_method_is_documented(name):
    kind = getattr(textnb, name)
    own = {attribute: value for attribute, value in inspect.getmembers(kind, inspect.isroutine)
           if not attribute.startswith("_") and value.__module__.startswith("textnb.")}
    assert own
    # An override of a documented method is documented by it.
    silent = [attribute for attribute in own if not inspect.getdoc(getattr(kind, attribute))]
    assert silent == []


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_an_example_in_a_docstring_is_true(test):
    for package in EXAMPLES.get(test.name, ()):
        pytest.importorskip(package, reason="needs textnb[report]")
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    done = runner.run(test, out=report.append)
    assert done.attempted == len(test.examples)
    assert done.failed == 0, "".join(report)


def test_the_changelog_has_the_version():
    newest = re.search(r"^## (\S+)", CHANGELOG.read_text("utf-8"), flags=re.M)
    assert newest is not None
    assert newest[1] == textnb.__version__
    assert f"\nversion: {newest[1]}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


# Errors


def drawn():
    """The tree at the top of errors.py: name -> (bases, meaning)."""
    lines = [line[4:] for line in (errors.__doc__ or "").splitlines() if line.startswith("    ")]
    tree: dict[str, tuple[tuple[str, ...], str]] = {}
    path: list[str] = []
    for line in lines:
        match = re.fullmatch(r"(?P<branch>[│├└─ ]*)(?P<name>\w+)(?: \((?P<extra>[\w, ]+)\))?"
                             r"(?: {2,}(?P<meaning>\S.*))?", line)
        assert match is not None, line
        depth = len(match["branch"]) // 4
        path = [*path[:depth], match["name"]]
        bases = [path[-2]] if depth else [] if match["extra"] else ["Exception"]
        bases += match["extra"].split(", ") if match["extra"] else []
        tree[match["name"]] = tuple(bases), match["meaning"] or ""
    return tree


def test_the_errors_are_those_of_the_drawing():
    classes = {name: kind for name, kind in vars(errors).items()
               if inspect.isclass(kind) and issubclass(kind, Exception)
               and kind.__module__ == errors.__name__}
    assert {name: tuple(base.__name__ for base in kind.__bases__)
            for name, kind in classes.items()} == {name: bases for name, (bases, _) in
                                                   drawn().items()}
    assert set(drawn()) >= set(ERRORS)


@pytest.mark.parametrize("name", [
    name for name in drawn() if name not in ("TextnbError", "TextnbWarning")])
def test_an_error_means_what_the_drawing_says(name):
    doc, meaning = getattr(errors, name).__doc__, drawn()[name][1]
    assert doc.splitlines()[0] == f"{meaning[0].upper()}{meaning[1:]}."


IMPORTS = """
import importlib, json, sys
modules, absent = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(absent))
refused = {}
for name in modules:
    try:
        importlib.import_module(name)
    except ImportError as error:
        refused[name] = str(error)
print(json.dumps(refused))
"""


def brought_by(*requirements):
    """Distributions that are installed for these requirements and for those of textnb."""
    lines = [*PROJECT["dependencies"], *requirements]
    for line in lines:  # What these require is found on the way.
        requirement = Requirement(line)
        with suppress(PackageNotFoundError):
            for other in distribution(requirement.name).requires or ():
                marker = Requirement(other).marker
                if other not in lines and (marker is None or any(
                        marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras))):
                    lines.append(other)
    return {canonicalize_name(Requirement(line).name) for line in lines}


@pytest.mark.parametrize("extra", [
    "", *(pytest.param(name, marks=pytest.mark.slow) for name in (*EXTRAS, "as installed"))])
def test_every_module_imports(extra):
    """With one extra alone, without a warning: a module that needs another one must name it."""
    hidden = set() if extra == "as installed" else (
        brought_by(*chain(*EXTRAS.values())) - brought_by(*EXTRAS.get(extra, ())))
    absent = [module for module, owners in packages_distributions().items()
              if hidden.issuperset(map(canonicalize_name, owners))]
    asked = json.dumps([module_names(), absent])
    done = subprocess.run([sys.executable, "-W", "error", "-c", IMPORTS, asked],
                          capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(json.loads(done.stdout)) == {name for name in KERNEL if needs_cython(name)}
