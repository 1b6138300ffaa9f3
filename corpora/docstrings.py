"""A topic corpus that needs no download: which library does a docstring come from?

The docstrings of the installed numpy, scipy, scikit-learn and polars, cleaned of the names by
which a text would give its library away. The same installed versions give the same bytes.

    python -m corpora.docstrings OUTPUT.parquet
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import polars as pl

LIBRARIES = {"numpy": "numpy", "polars": "polars", "scipy": "scipy", "sklearn": "scikit-learn"}

# Tests, vendored code and build machinery: their docstrings are not the library's own topic.
SKIPPED_PARTS = frozenset({"tests", "test", "testutils", "conftest", "setup", "externals"})

# Deprecated as a whole; importing them warns, and numpy.distutils even patches the process. The
# deprecated stubs inside scipy need no list: they own no object, they only forward by name.
DEPRECATED = frozenset({"numpy.core", "numpy.distutils", "numpy.matlib", "scipy.misc", "scipy.odr"})

# Plug-ins of other tools, and with a side effect: parametric loads a profile into hypothesis.
PLUGINS = frozenset({"numpy.typing.mypy_plugin", "polars.testing.parametric"})

MIN_CHARACTERS = 40

# A directive's line and the indented block below it; or its bare name within a sentence.
_VERSION_DIRECTIVE = re.compile(
    r"^([ \t]*)\.\.[ \t]*(?:version(?:added|changed|removed)|deprecated)::[^\n]*"
    r"(?:\n(?:\1[ \t]+[^\n]*|[ \t]*(?=\n\1[ \t]+\S)))*"
    r"|\(?\*?version(?:added|changed|removed):[^\n]*",
    re.MULTILINE | re.IGNORECASE,
)
# SciPy draws random numbers at import and prints them in examples, under the comment `may vary`:
# prompt lines, then the lines of output up to a blank line or the next prompt.
_EXAMPLE = re.compile(
    r"^(?P<prompt>[ \t]*>>>[^\n]*\n(?:[ \t]*\.\.\.[^\n]*\n)*)"
    r"(?P<output>(?:(?![ \t]*>>>)[^\n]*\S[^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_GIVE_AWAY = re.compile(
    # Long names go wherever they stand (to_numpy, numpydoc); aliases only as whole words.
    r"(?:numpy|scipy|polars|sklearn|scikits?(?:[-_ .]?learn)?|(?<![^\W_])(?:np|pl|sp)(?![^\W_]))"
    # ... and the dot goes with them inside a dotted path, not at the end of a sentence.
    r"(?:\.(?=\w))?",
    re.IGNORECASE,
)


def build() -> pl.DataFrame:
    """Build the corpus from the installed libraries.

    Returns
    -------
    DataFrame
        Columns `name` (qualified), `label` (numpy, polars, scikit-learn or scipy), `text` and
        `split` (train, test), sorted by name. No text occurs twice.

    Notes
    -----
    A text that is found under several labels is dropped everywhere; one that is found several
    times under one label keeps its alphabetically first name. About a quarter is test, chosen by
    a SHA-256 hash of the name, so a name stays on its side when libraries are upgraded.
    """
    with warnings.catch_warnings():
        # Touching every public object of four libraries touches deprecated ones too.
        warnings.simplefilter("ignore")
        # All modules are imported before any is read: a few add names to others on import, and
        # scipy a section to the docstring of numpy.sinc.
        modules = {library: list(_modules(library)) for library in LIBRARIES}
        texts = {
            name: (label, text)
            for library, label in LIBRARIES.items()
            for name, text in _docstrings(library, modules[library])
        }
    rows = [(name, label, text, split_of(name)) for name, (label, text) in sorted(texts.items())]
    schema = dict.fromkeys(("name", "label", "text", "split"), pl.String)
    return (
        pl.DataFrame(rows, schema=schema, orient="row")
        .filter(pl.col("label").n_unique().over("text") == 1)
        .unique("text", keep="first", maintain_order=True)
    )


def split_of(name: str) -> str:
    """Return the side, train or test, on which a qualified name stands for good.

    Examples
    --------
    >>> split_of("numpy.abs"), split_of("numpy.all")
    ('train', 'test')
    """
    digest = hashlib.sha256(name.encode()).digest()
    return "test" if digest[0] < 64 else "train"


def clean(docstring: str) -> str:
    """Remove indentation, version directives, varying output and every name of a library.

    Examples
    --------
    >>> clean("Like `numpy.sort`, see np.lexsort.")
    'Like `sort`, see lexsort.'
    """
    text = _VERSION_DIRECTIVE.sub("", inspect.cleandoc(docstring))
    text = _EXAMPLE.sub(_without_varying_output, text)
    # Removing a name can join the halves of another one (nunumpympy): repeat until none is left.
    while _GIVE_AWAY.search(text):
        text = _GIVE_AWAY.sub("", text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _without_varying_output(example: re.Match[str]) -> str:
    return example["prompt"] if "may vary" in example["output"] else example[0]


def _docstrings(library: str, modules: Iterable[ModuleType]) -> Iterator[tuple[str, str]]:
    for module in modules:
        for name, item in _public(module, library):
            for qualified, docstring in _documented(f"{module.__name__}.{name}", item, library):
                text = clean(docstring)
                if len(text) >= MIN_CHARACTERS:
                    yield qualified, text


def _modules(name: str) -> Iterator[ModuleType]:
    """Yield a public module and its public submodules, at every depth."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        # Part of a library may need a package that isn't installed, and some releases keep shared
        # libraries that are no modules beside modules. But a module of the four libraries that
        # can't be found means a broken installation, which must not be hidden.
        if isinstance(error, ModuleNotFoundError) and error.name is not None and (
                error.name.partition(".")[0] in LIBRARIES):
            raise
        return
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", [])):
        child = f"{name}.{found.name}"
        if found.name.startswith("_") or found.name in SKIPPED_PARTS:
            continue
        if child not in DEPRECATED | PLUGINS:
            yield from _modules(child)


def _public(module: ModuleType, library: str) -> Iterator[tuple[str, object]]:
    """Yield the public functions and classes that a module holds and its library defines."""
    # vars(), not getattr(): the __getattr__ of deprecated modules forwards to the real ones.
    held = vars(module)
    announced = held.get("__all__")
    for name in sorted(held):
        if name.startswith("_") or (announced is not None and name not in announced):
            continue
        item = held[name]
        if not callable(item) or not isinstance(getattr(item, "__name__", None), str):
            continue
        # Without an announcement a module's imports look like its own; only `__module__` tells.
        # With one, a compiled function may lack `__module__`, and re-exports are meant.
        home = getattr(item, "__module__", None)
        if home == module.__name__ or (
            announced is not None and (home is None or _belongs(home, library))
        ):
            yield name, item


def _documented(name: str, item: object, library: str) -> Iterator[tuple[str, str]]:
    """Yield (qualified name, docstring) of a function, or of a class and its methods."""
    docstring = getattr(item, "__doc__", None)
    if isinstance(docstring, str):
        yield name, docstring
    if not isinstance(item, type):
        return
    seen: set[str] = set()
    for base in item.__mro__:
        if not _belongs(base.__module__, library):
            continue  # what a class has from the standard library says nothing of its topic
        for method in sorted(vars(base)):
            if method.startswith("_") or method in seen:
                continue
            seen.add(method)
            held = vars(base)[method]
            docstring = getattr(held, "__doc__", None)
            if inspect.isroutine(inspect.unwrap(held)) and isinstance(docstring, str):
                yield f"{name}.{method}", docstring


def _belongs(module: str, library: str) -> bool:
    return module.partition(".")[0] == library


def main(arguments: list[str] | None = None) -> int:
    """Write the corpus to a Parquet file."""
    parser = argparse.ArgumentParser(prog="python -m corpora.docstrings", description=__doc__)
    parser.add_argument("output", type=Path, metavar="OUTPUT.parquet")
    output: Path = parser.parse_args(arguments).output
    if not output.parent.is_dir():
        parser.error(f"no folder {output.parent} to write {output.name} to")
    frame = build()
    # Under another name first: a reader never sees half a file.
    unfinished = output.with_name(f".{output.name}.unfinished")
    frame.write_parquet(unfinished)
    unfinished.replace(output)
    print(f"{frame.height:,} docstrings written to {output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
