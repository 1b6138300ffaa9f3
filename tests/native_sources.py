"""Sources that Cython compiles, as Python runs them."""

import importlib.util
from pathlib import Path

import numpy as np

import textnb


def source(path):
    """A module from its source in the package, whether it was compiled or not."""
    spec = importlib.util.spec_from_file_location(
        f"uncompiled_{Path(path).stem}", Path(textnb.__file__).parent / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_views(function):
    """Arrays as memoryviews: their bounds are checked, and too large elements are an error."""
    def view(value):
        return memoryview(value) if isinstance(value, np.ndarray) else value

    return lambda *arguments, **named: function(
        *map(view, arguments), **{name: view(value) for name, value in named.items()})
