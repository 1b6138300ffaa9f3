"""How Sphinx builds these pages: `scripts/docs`, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from elsewhere import WORDS, inventories
from generate import with_both_themes, with_links, write_generated_pages

import textnb
from textnb.runtime import __version__

project = "textnb"
author = "The textnb developers"
release = __version__
# The footer.
copyright = f"2026, {author}: textnb {__version__}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.intersphinx",
              "sphinx.ext.viewcode", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "textnb"
# Prompts are not copied, and neither is what a command prints.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
# A name in backticks is a link, where there is such a name.
default_role = "py:obj"
html_static_path = ["static"]
html_css_files = ["scroll.css"]
# A link to a heading of another page: [text](page.md#heading).
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True}
# Members are shown by autodoc, with all that they say.
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {**WORDS, **{name: f"textnb.{name}" for name in textnb.__all__}}
numpydoc_xref_ignore = "all"
# A formula is set as such: ```math, as in a clone.
myst_fence_as_directive = ["math"]

write_generated_pages(Path(__file__).parent)
intersphinx_mapping = inventories(Path(__file__).parent / "generated")


def is_skipped(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what a class has from scikit-learn, Python or its fields: the page is of textnb."""
    function = getattr(member, "fget", member)
    home = getattr(function, "__module__", None) or ""
    # A function that a class merely refers to is none of its methods.
    own = "." in getattr(function, "__qualname__", ".")
    return None if home.startswith("textnb") and own else True


def complete(app: Any, document: str, source: list[str]) -> None:
    """Add to a page what it can't have in a clone."""
    source[0] = with_both_themes(source[0])
    if document == "reference/api":
        source[0] = with_links(source[0])


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("source-read", complete)
    app.connect("autodoc-skip-member", is_skipped)
