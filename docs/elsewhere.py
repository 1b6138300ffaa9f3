"""Names of other projects that docstrings use, and where their pages are.

Sphinx reads them as intersphinx reads an inventory, and needs no network for it.
"""

from __future__ import annotations

import zlib
from pathlib import Path

PAGES = {
    "https://docs.python.org/3/": {
        "collections.abc.Sequence": "library/collections.abc.html#collections.abc.Sequence",
        "collections.abc.Mapping": "library/collections.abc.html#collections.abc.Mapping",
        "collections.abc.Iterable": "library/collections.abc.html#collections.abc.Iterable",
        "pathlib.Path": "library/pathlib.html#pathlib.Path"},
    "https://docs.pola.rs/api/python/stable/": {
        "polars.DataFrame": "reference/dataframe/index.html",
        "polars.LazyFrame": "reference/lazyframe/index.html",
        "polars.Series": "reference/series/index.html",
        "polars.Expr": "reference/expressions/index.html"},
    "https://numpy.org/doc/stable/": {
        "numpy.ndarray": "reference/generated/numpy.ndarray.html"},
    "https://docs.scipy.org/doc/scipy/": {
        "scipy.sparse.csr_array": "reference/generated/scipy.sparse.csr_array.html"}}
# What docstrings say for them. Python's own types are left as they are: numpydoc would look for
# labels of Python's pages.
WORDS = {
    **{name: name for name in ("bool", "int", "float", "str", "bytes", "dict", "list", "tuple",
                               "set", "object", "callable", "None", "True", "False")},
    **{name.rpartition(".")[2]: name for names in PAGES.values() for name in names},
    "array": "numpy.ndarray", "path": "pathlib.Path", "sequence": "collections.abc.Sequence",
    "mapping": "collections.abc.Mapping", "iterable": "collections.abc.Iterable"}


def inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory for each project, and return what intersphinx is to read."""
    found = {}
    for address, names in PAGES.items():
        project = address.split("/")[2].removeprefix("docs.").partition(".")[0]
        lines = "".join(f"{name} py:class 1 {page} -\n" for name, page in names.items())
        file = folder / f"{project}.inv"
        file.write_bytes(
            f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
            "# The remainder of this file is compressed using zlib.\n".encode()
            + zlib.compress(lines.encode()))
        found[project] = address, str(file)
    return found
