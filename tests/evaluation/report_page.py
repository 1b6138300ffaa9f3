"""How tests read the page of a report, and what holds for every page."""

import re
from itertools import pairwise

import numpy as np
import polars as pl
from selectolax.lexbor import LexborHTMLParser

from textnb import Decision, TextClassifier

FILMS = pl.DataFrame({
    "text": ["good film", "good plot", "bad film", "bad plot", "good bad", "plot"],
    "label": ["pos", "pos", "neg", "neg", "pos", "neg"]})
# Uniform priors and one term per document: "good" is pos, "bad" neg, and "so" neither.
GOOD_OR_BAD = pl.DataFrame({"text": ["good", "bad"], "label": ["pos", "neg"]})
# Log-odds of pos are n log 2 for n times "good": 3 of them reach log 8.
DECIDED = TextClassifier().fit(GOOD_OR_BAD).set_decision(
    Decision({"neg": 0.0, "pos": float(np.log(7.9))}, positive="pos"))
TO_DECIDE = pl.DataFrame({
    "text": ["good good good", "good good good", "good", "good good", "bad"],
    "label": ["pos", "neg", "pos", "neg", "neg"]})
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LOADING = {"script", "img", "iframe", "object", "embed", "link", "base", "form", "image", "use",
           "foreignobject", "animate", "set", "audio", "video"}


def parsed(path):
    return LexborHTMLParser(path.read_text("utf-8"))


def text_of(tree, selector):
    return [" ".join(node.text().split()) for node in tree.css(selector)]


def joined(tree, selector):
    return " ".join(text_of(tree, selector))


def rows_of(tree, caption):
    """The body of the table of that caption."""
    tables = [table for table in tree.css("table")
              if " ".join(table.css_first("caption").text().split()) == caption]
    assert len(tables) == 1
    return [[" ".join(cell.text().split()) for cell in row.css("th, td")]
            for row in tables[0].css("tbody tr")]


def tiles_of(tree):
    return dict(zip(text_of(tree, ".tiles dt"), text_of(tree, ".tiles .figure"), strict=True))


def check_inert(tree):
    """Nothing on the page runs, loads, or leads away from it."""
    assert {node.tag for node in tree.root.traverse()} & LOADING == set()
    for node in tree.root.traverse():
        for name, value in node.attributes.items():
            assert not name.startswith("on"), (node.tag, name)
            assert name not in ("src", "srcset", "xlink:href", "action", "formaction")
            assert name != "href" or (value or "").startswith("#")
            assert "url(" not in (value or "")
    styles = "".join(node.text() for node in tree.css("style"))
    assert "url(" not in styles
    assert "@import" not in styles
    policy = tree.css_first("meta[http-equiv]")
    assert policy.attributes["http-equiv"] == "Content-Security-Policy"
    assert policy.attributes["content"] == POLICY


def check_accessible(tree):
    """What a screen reader needs, and a small screen: a shadow where a table or chart scrolls."""
    [wide] = re.findall(r"^\.chart, \.scroll \{(.*?)\}", tree.css_first("style").text(),
                        flags=re.M | re.S)
    assert "overflow-x: auto" in wide
    assert "no-repeat local" in wide
    assert tree.css_first("html").attributes["lang"] == "en"
    assert tree.css_first("title").text().strip()
    assert [len(tree.css(name)) for name in ("main", "header", "footer", "nav", "h1")] == [1] * 5
    levels = [int(node.tag[1]) for node in tree.css("h1, h2, h3, h4")]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [node.attributes["id"] for node in tree.css("[id]")]
    assert len(ids) == len(set(ids))
    for node in tree.css("[href]"):
        assert (node.attributes["href"] or "")[1:] in ids
    for node in tree.css("section"):
        assert node.attributes["aria-labelledby"] in ids
    for figure in tree.css("figure"):
        drawn = figure.css_first("[role=img]")
        assert drawn.attributes["aria-label"]
        svg = drawn.css_first("svg").attributes
        assert svg.get("viewbox") or svg["viewBox"]
        assert figure.css_first("figcaption").text().strip()
        assert figure.css("details table tbody tr")
    for table in tree.css("table"):
        assert table.css_first("caption").text().strip()
        assert all(cell.attributes.get("scope") in ("row", "col") for cell in table.css("th"))
        assert all(row.css_matches("th[scope=row]") for row in table.css("tbody tr"))
