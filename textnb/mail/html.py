"""HTML as a message shows it: its words, a line per block, and where its links and images lead.

    html ─> without attributes ─> tree ─> words; where the tree would be too large, tags are cut out

A target is put into the text between two marks before the tree is built, so that those of
comments, scripts and heads are left out as their words are, and all are in the order of the text.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from textnb.mail.charset_guess import replace_surrogates
from textnb.mail.charsets import Notes, note

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

# A tree of more tags takes long if they are nested. Formatting elements that are never closed take
# gigabytes: each paragraph opens all of them again (HTML, "reconstruct the active formatting
# elements"). So these are removed before the tree is built; they separate no words. Those that
# `_TAG` does not recognise remain: their number times that of all tags is limited (200 MB).
MAX_TAGS = 20_000
_MAX_REOPENED = 500_000
_FORMATTING = frozenset({"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike",
                         "strong", "tt", "u"})
_INLINE = _FORMATTING | {"abbr", "acronym", "bdi", "bdo", "blink", "cite", "del", "dfn", "img",
                         "ins", "kbd", "label", "mark", "o:p", "q", "ruby", "samp", "span", "sub",
                         "sup", "var", "wbr"}
_TAG = re.compile(
    r"""<(/?)([a-zA-Z][a-zA-Z0-9:]*+)(?:[\s/](?:[^<>"']++|"[^"<>]*+"|'[^'<>]*+')*)?>""")
_ODD_FORMATTING = re.compile(rf"<(?:{'|'.join(sorted(_FORMATTING))})[\s/>]", re.I)
# The parser compares a tag's attributes with each other: quadratic in their number.
_LONG_TAG = re.compile(r"<[a-zA-Z][^\s<>/]*+[\s/\"'][^<]{4000}")
_MARKUP = re.compile(r"(<!--|--!?>|</?(?:script|style)\b[^<>]*+>|<[/!?a-zA-Z][^<>]*+>)", re.I)
_LONG_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")

# By tag, its attributes and what they hold: the target of a link, an image, or words.
_LINK, _IMAGE, _WORDS = "L", "I", "W"
_TARGETS = {
    "a": {"href": _LINK}, "area": {"href": _LINK, "alt": _WORDS}, "form": {"action": _LINK},
    "img": {"src": _IMAGE, "alt": _WORDS}, "input": {"src": _IMAGE, "alt": _WORDS},
    "body": {"background": _IMAGE}, "table": {"background": _IMAGE}, "td": {"background": _IMAGE},
}
_ATTRIBUTE = re.compile(
    r"""([^\s"'<>/=]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'<>]++))?""")
_IGNORED = re.compile(r"[\t\r\n]+")
# Tags with "<" or ">" in a value, which only the tree can recognise.
_ODD_TARGETS = re.compile(rf"<(?:{'|'.join(_TARGETS)})[\s/]", re.I)
# Noncharacters (Unicode, section 23.7): no text has them.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARKED_URL = re.compile(f"{_OPEN}([{_LINK}{_IMAGE}])([^{_OPEN}{_CLOSE}]*+){_CLOSE}")
_MARKS = re.compile(f"[{_OPEN}{_CLOSE}]")
# Browsers take no longer addresses, and nobody reads a page of more targets.
MAX_TARGETS, MAX_TARGET = 2000, 2048


class Html(NamedTuple):
    """What HTML shows: ``text``, and the targets of ``links`` and ``images`` as they stand."""

    text: str
    links: list[str]
    images: list[str]


def read_html(html: str, notes: Notes, tags: int = MAX_TAGS, targets: int = MAX_TARGETS) -> Html:
    """The words that HTML shows, a line per block, and its targets: no scripts, styles, comments.

    An image's description (``alt``) is words.

    Parameters
    ----------
    html : str
    notes : list of str
    tags : int
        With more tags than this, no tree is built, and tags are cut out as they stand.
    targets : int
        How many targets are read at most.
    """
    html = html.replace("\0", "")
    if _OPEN in html or _CLOSE in html:
        html = _MARKS.sub("", html)
    reduced = _TAG.sub(_simplify_tag, html)
    count = reduced.count("<")
    if (count > tags or _LONG_TAG.search(reduced)
            or count * len(_ODD_FORMATTING.findall(reduced)) > _MAX_REOPENED):
        note(notes, "HTML too large or too deep to build, its tags cut out")
        text = _text_between_tags(reduced)
    else:
        text = _text_of_tree(reduced)
    all_targets: list[tuple[str, str]] = []
    if _OPEN in text or _CLOSE in text:
        all_targets = _MARKED_URL.findall(text)
        # The remaining marks were written as entities, or were cut out with a part of their tag.
        text = _MARKS.sub("", _MARKED_URL.sub("", text))
    if len(all_targets) > targets:
        note(notes, f"targets of links and images beyond {MAX_TARGETS} not read")
        del all_targets[targets:]
    lines = (" ".join(line.split()) for line in replace_surrogates(text).splitlines())
    links, images = ([replace_surrogates(target) for kind, target in all_targets if kind == wanted]
                     for wanted in (_LINK, _IMAGE))
    return Html("\n".join(line for line in lines if line), links, images)


def _simplify_tag(tag: re.Match[str]) -> str:
    """The tag without attributes, or nothing if it only formats; its targets before it, in marks.

    A tag that separates words begins a new line.
    """
    closing, name = tag.groups()
    name = name.lower()
    before = after = ""
    if name in _TARGETS and not closing:
        attributes = _ATTRIBUTE.findall(tag[0], len(name) + 1)
        if attributes:
            marks, after = _mark_targets(name, attributes)
            before = entities.escape(marks)
    if name in _FORMATTING:
        return before
    line = "" if name in _INLINE else "\n"
    # Before these tags, marks would be text outside of the body or of a cell, which changes the
    # tree.
    return (f"{line}<{closing}{name}>{before}{after}" if name in ("body", "td") else
            f"{before}{line}<{closing}{name}>{after}")


def _mark_targets(name: str, attributes: Iterable[tuple[str, str | None]]) -> tuple[str, str]:
    """A tag's targets, each with its kind and between marks, and the words that the tag shows."""
    kinds, marks, words = _TARGETS[name], "", ""
    seen: set[str] = set()
    for attribute, value in attributes:
        attribute = attribute.lower()
        kind = kinds.get(attribute)
        # Of attributes of one name, browsers take the first.
        if kind is None or attribute in seen:
            continue
        seen.add(attribute)
        value = (value or "").strip()
        if value[:1] in ("'", '"'):
            value = value[1:-1].strip()
        if not value:
            continue
        if kind is _WORDS:
            words = f" {value} "
        elif target := _target(value):
            marks += f"{_OPEN}{kind}{target}{_CLOSE}"
    return marks, words


def _target(value: str) -> str:
    """A target without characters that browsers ignore and without the data of a ``data:`` URL."""
    # Cut it generously, so that no entity within the limit is cut in half.
    target = entities.unescape(value[:4 * MAX_TARGET]) if "&" in value else value
    if not target.isprintable():
        target = _IGNORED.sub("", target)
    target = target[:MAX_TARGET]
    return target[:target.find(",") + 1] if target[:5].lower() == "data:" else target


def _text_of_tree(html: str) -> str:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        tree = LexborHTMLParser(html)
        tree.strip_tags(["script", "style", "head"])
        if _ODD_TARGETS.search(html):
            _mark_odd(tree)
        top = tree.body or tree.root
    except (SelectolaxError, ValueError, RuntimeError):
        return _text_between_tags(html)
    return "" if top is None else top.text(separator="")


def _mark_odd(tree: LexborHTMLParser) -> None:
    """Put marks into the tree for the tags that only the tree recognises."""
    for node in tree.css(",".join(_TARGETS)):
        text = "".join(_mark_targets(node.tag or "", node.attributes.items()))
        if text:
            node.insert_before(text)


def _text_between_tags(html: str) -> str:
    """The text between tags, in one pass."""
    # The comment, script or style whose text is left out.
    texts, inside = [], ""
    for place, piece in enumerate(_MARKUP.split(html)):
        markup = place % 2 == 1
        if not markup:
            if not inside:
                texts.append(piece)
        elif inside == "<!--":
            inside = "" if piece.startswith("--") else inside
        elif inside:
            inside = "" if piece.lower().startswith(f"</{inside}") else inside
        elif piece == "<!--":
            inside = piece
        elif opened := re.match(r"<(script|style)\b", piece, re.I):
            inside = opened[1].lower()
    return entities.unescape(_LONG_NUMBER.sub("\ufffd", "".join(texts)))
