"""The charts of a report as SVG, drawn without a browser or a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree

from textnb.errors import ParameterError
from textnb.report.data import Curve
from textnb.runtime.charts import INSTALL, LINE_COLOURS

# If a label has fewer documents, its curve has too few steps to be read.
_MIN_DOCUMENTS = 20
_SVG = "http://www.w3.org/2000/svg"
# The elements and attributes that a chart needs. No others may be in the page.
_ELEMENTS = {"svg", "g", "path", "rect", "line", "text", "tspan"}
_ATTRIBUTES = {
    "viewBox", "width", "height", "x", "y", "x2", "y2", "d", "transform", "fill", "fill-opacity",
    "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-miterlimit",
    "stroke-linecap", "stroke-linejoin", "opacity", "text-anchor", "font-size", "font-weight"}
_SHAPES = {f"{{{_SVG}}}{name}" for name in ("path", "rect", "line")}


def check_installed() -> None:
    """Raise ParameterError if libraries for a report are missing."""
    missing = [name for name in ("altair", "jinja2", "vl_convert") if find_spec(name) is None]
    if missing:
        raise ParameterError(f"a report needs {', '.join(missing)}: {INSTALL}")
    # Each of them may lack one of its own dependencies.
    try:
        import altair
        import jinja2
        import vl_convert
    except ImportError as error:
        raise ParameterError(f"a report needs {error.name or 'more libraries'}: {INSTALL}"
                             ) from error
    del altair, jinja2, vl_convert


def select_curves(curves: Sequence[Curve]) -> list[Curve]:
    """Select the curves with the lowest average precision, as many as a chart has colours.

    Curves of labels with few documents come last.
    """
    return sorted(curves, key=lambda curve: (
        curve.documents < _MIN_DOCUMENTS, curve.average_precision))[:len(LINE_COLOURS)]


def draw(chart: Any) -> str:
    """Draw a chart as an SVG element that scales with the page, with its text escaped."""
    import vl_convert

    specification = chart.to_dict()
    # The page's background, which may be dark, stays visible.
    specification["config"]["background"] = "transparent"
    # The data are in the specification, so no address needs to be loaded.
    return clean(vl_convert.vegalite_to_svg(specification, allowed_base_urls=[]))


def clean(svg: str) -> str:
    """Remove attributes that charts do not need from an SVG: ids, classes, links and handlers.

    Raises
    ------
    ValueError
        If it has an element that charts do not have.
    """
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    _prune(root)
    width, height = (float(root.attrib.pop(name)) for name in ("width", "height"))
    root.set("style", f"max-width:{width:.0f}px")
    root.set("viewBox", f"0 0 {width:g} {height:g}")
    for name, value in (("aria-hidden", "true"), ("focusable", "false")):
        root.set(name, value)
    text = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    # Two decimals are enough for coordinates, which are inside of tags.
    return re.sub(r"(\.\d{2})\d+(?=[^<>]*>)", r"\1", text)


def _prune(element: ElementTree.Element) -> None:
    """Remove attributes that charts do not need, and invisible or empty elements, inside too."""
    name = element.tag.removeprefix(f"{{{_SVG}}}")
    if name not in _ELEMENTS:
        raise ValueError(f"a chart has no element {name!r}")
    element.attrib = {key: value for key, value in element.attrib.items() if key in _ATTRIBUTES}
    for child in list(element):
        if _is_invisible(child):
            element.remove(child)
            continue
        _prune(child)
        if child.tag == f"{{{_SVG}}}g" and not len(child):
            element.remove(child)


def _is_invisible(element: ElementTree.Element) -> bool:
    # Vega puts a shape behind each group of marks, and one in front of it.
    is_hidden = element.get("display") == "none" or element.get("opacity") == "0"
    role = element.get("class", "")
    return is_hidden or (element.tag in _SHAPES and role in ("background", "foreground"))
