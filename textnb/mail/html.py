"""HTML as a message shows it: its words, a line per block, and where its links and images lead.

    html ─> tags without attributes ─> tree ─> text
                                    └> (if the tree would be too large) text between tags

Before the tree is built, the target of each link and image is put into the text between two marks.
So targets in comments, scripts and heads are left out as the words there are, and targets have the
order of the text.
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

# The maximum number of tags: a tree of more nested tags takes long to build.
MAX_TAGS = 20_000
# Each paragraph opens all formatting elements again that are not closed (HTML, "reconstruct the
# active formatting elements"), which can take gigabytes. So formatting tags are removed before the
# tree is built; they separate no words. Those that `_TAG` does not match remain, so their number
# times the number of all tags is limited, to a tree of about 200 MB.
_MAX_REOPENED_TAGS = 500_000
_FORMATTING_TAGS = frozenset({"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small",
                              "strike", "strong", "tt", "u"})
_INLINE_TAGS = _FORMATTING_TAGS | {
    "abbr", "acronym", "bdi", "bdo", "blink", "cite", "del", "dfn", "img", "ins", "kbd", "label",
    "mark", "o:p", "q", "ruby", "samp", "span", "sub", "sup", "var", "wbr"}
_TAG = re.compile(
    r"""<(/?)([a-zA-Z][a-zA-Z0-9:]*+)(?:[\s/](?:[^<>"']++|"[^"<>]*+"|'[^'<>]*+')*)?>""")
_UNPARSED_FORMATTING_TAG = re.compile(rf"<(?:{'|'.join(sorted(_FORMATTING_TAGS))})[\s/>]", re.I)
# The parser compares all attributes of a tag with each other, in time quadratic in their number.
_LONG_TAG = re.compile(r"<[a-zA-Z][^\s<>/]*+[\s/\"'][^<]{4000}")
# What is cut out if no tree is built.
_MARKUP = re.compile(r"(<!--|--!?>|</?(?:script|style)\b[^<>]*+>|<[/!?a-zA-Z][^<>]*+>)", re.I)
# No character has such a number, and Python refuses to convert longer ones.
_LONG_CHARACTER_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")

# The attributes of each tag that hold the target of a link, the target of an image, or words.
_LINK, _IMAGE, _WORDS = "L", "I", "W"
_TARGET_ATTRIBUTES = {
    "a": {"href": _LINK}, "area": {"href": _LINK, "alt": _WORDS}, "form": {"action": _LINK},
    "img": {"src": _IMAGE, "alt": _WORDS}, "input": {"src": _IMAGE, "alt": _WORDS},
    "body": {"background": _IMAGE}, "table": {"background": _IMAGE}, "td": {"background": _IMAGE},
}
_ATTRIBUTE = re.compile(
    r"""([^\s"'<>/=]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'<>]++))?""")
_IGNORED_IN_URLS = re.compile(r"[\t\r\n]+")
# `_TAG` does not match tags with "<" or ">" in a value, so they remain with their attributes.
_UNPARSED_TARGET_TAG = re.compile(rf"<(?:{'|'.join(_TARGET_ATTRIBUTES)})[\s/]", re.I)
# The marks around a target: noncharacters (Unicode, section 23.7), which no text needs.
_START, _END = "\ufdd0", "\ufdd1"
_MARKED_TARGET = re.compile(f"{_START}([{_LINK}{_IMAGE}])([^{_START}{_END}]*+){_END}")
_MARKS = re.compile(f"[{_START}{_END}]")
# The maximum length of a target is that of browsers; nobody reads a page with more targets.
MAX_TARGETS, MAX_TARGET_LENGTH = 2000, 2048


class Html(NamedTuple):
    """The text that HTML shows, and the targets of its links and images, as they are written."""

    text: str
    links: list[str]
    images: list[str]


def read_html(
    html: str, notes: Notes, max_tags: int = MAX_TAGS, max_targets: int = MAX_TARGETS
) -> Html:
    """The text and targets of HTML without its scripts, styles and comments, a line per block.

    The text includes descriptions of images (``alt``). If there are more tags than ``max_tags``, no
    tree is built, and all tags are cut out.
    """
    html = html.replace("\0", "")
    if _START in html or _END in html:
        html = _MARKS.sub("", html)
    reduced = _TAG.sub(_simplify_tag, html)
    n_tags = reduced.count("<")
    if (n_tags > max_tags or _LONG_TAG.search(reduced)
            or n_tags * len(_UNPARSED_FORMATTING_TAG.findall(reduced)) > _MAX_REOPENED_TAGS):
        note(notes, "HTML too large or too deep to build, its tags cut out")
        text = _text_between_tags(reduced)
    else:
        text = _text_of_tree(reduced)
    targets: list[tuple[str, str]] = []
    if _START in text or _END in text:
        targets = _MARKED_TARGET.findall(text)
        # Marks that remain were entities in the HTML, or a part of their tag was cut out.
        text = _MARKS.sub("", _MARKED_TARGET.sub("", text))
    if len(targets) > max_targets:
        note(notes, f"targets of links and images beyond {MAX_TARGETS} not read")
        del targets[max_targets:]
    lines = (" ".join(line.split()) for line in replace_surrogates(text).splitlines())
    links, images = ([replace_surrogates(target) for mark, target in targets if mark == kind]
                     for kind in (_LINK, _IMAGE))
    return Html("\n".join(line for line in lines if line), links, images)


def _simplify_tag(tag: re.Match[str]) -> str:
    """The marked targets of a tag, the tag without attributes, and the words that it shows.

    A formatting tag itself is removed. A tag that separates words begins a new line.
    """
    slash, name = tag.groups()
    name = name.lower()
    targets = words = ""
    if name in _TARGET_ATTRIBUTES and not slash:
        # The search starts after "<" and the name.
        attributes = _ATTRIBUTE.findall(tag[0], len(name) + 1)
        if attributes:
            targets, words = _read_attributes(name, attributes)
            targets = entities.escape(targets)
    if name in _FORMATTING_TAGS:
        return targets
    line_end = "" if name in _INLINE_TAGS else "\n"
    # Before these tags, targets would be text outside of the body or of a cell, which changes the
    # tree.
    return (f"{line_end}<{slash}{name}>{targets}{words}" if name in ("body", "td") else
            f"{targets}{line_end}<{slash}{name}>{words}")


def _read_attributes(name: str, attributes: Iterable[tuple[str, str | None]]) -> tuple[str, str]:
    """A tag's targets, each with its kind between two marks, and the words that the tag shows."""
    kinds, targets, words = _TARGET_ATTRIBUTES[name], "", ""
    seen: set[str] = set()
    for attribute, value in attributes:
        attribute = attribute.lower()
        kind = kinds.get(attribute)
        # If a tag has an attribute twice, browsers take the first.
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
        elif target := _clean_target(value):
            targets += f"{_START}{kind}{target}{_END}"
    return targets, words


def _clean_target(value: str) -> str:
    """A target without characters that browsers ignore and without the data of a ``data:`` URL."""
    # More than the limit, so that no entity within it is cut in half.
    target = entities.unescape(value[:4 * MAX_TARGET_LENGTH]) if "&" in value else value
    if not target.isprintable():
        target = _IGNORED_IN_URLS.sub("", target)
    target = target[:MAX_TARGET_LENGTH]
    return target[:target.find(",") + 1] if target[:5].lower() == "data:" else target


def _text_of_tree(html: str) -> str:
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    try:
        tree = LexborHTMLParser(html)
        tree.strip_tags(["script", "style", "head"])
        if _UNPARSED_TARGET_TAG.search(html):
            _mark_unparsed(tree)
        root = tree.body or tree.root
    except (SelectolaxError, ValueError, RuntimeError):
        return _text_between_tags(html)
    return "" if root is None else root.text(separator="")


def _mark_unparsed(tree: LexborHTMLParser) -> None:
    """Put the targets and words of the tags that still have attributes into the tree."""
    for node in tree.css(",".join(_TARGET_ATTRIBUTES)):
        text = "".join(_read_attributes(node.tag or "", node.attributes.items()))
        if text:
            node.insert_before(text)


def _text_between_tags(html: str) -> str:
    """The text between tags, in one pass."""
    # `inside` is "<!--", "script" or "style" between its beginning and its end, else empty.
    texts, inside = [], ""
    # `split` puts each piece of markup between two texts.
    for number, piece in enumerate(_MARKUP.split(html)):
        is_markup = number % 2 == 1
        if not is_markup:
            if not inside:
                texts.append(piece)
        elif inside == "<!--":
            inside = "" if piece.startswith("--") else inside
        elif inside:
            inside = "" if piece.lower().startswith(f"</{inside}") else inside
        elif piece == "<!--":
            inside = piece
        elif match := re.match(r"<(script|style)\b", piece, re.I):
            inside = match[1].lower()
    return entities.unescape(_LONG_CHARACTER_NUMBER.sub("\ufffd", "".join(texts)))
