"""How Sphinx builds these pages: `scripts/docs`, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate import write_generated_pages

project = "textnb"
author = "The textnb developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "textnb"
html_static_path: list[str] = []
# A link to a heading of another page: [text](page.md#heading).
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = True
numpydoc_show_inherited_class_members = False
numpydoc_class_members_toctree = False

write_generated_pages(Path(__file__).parent)
