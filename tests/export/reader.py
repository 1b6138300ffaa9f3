"""A reader of bundles that does what the page on file formats says of ``characters.json``."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

Described = Mapping[str, Any]


def read(path):
    """Read the file, with its ranges as sets of characters."""
    described: dict[str, Any] = json.loads(path.read_text("utf-8"))
    ranges = [(described, ("members", "unspaced")),
              (described["lowercase"], ("cased", "ignorable")),
              (described.get("accents"), ("dropped",)),
              (described.get("kept"), ("letters", "letters_or_numbers", "emoji"))]
    for table, names in ranges:
        for name in names if table else ():
            table[name] = _characters(tuple(map(tuple, table[name])))
    for name in ("normalize", "accents"):
        if table := described.get(name):
            table["classes"] = {chr(code): number for first, last, number in table["classes"]
                                for code in range(first, last + 1)}
    return described


@cache
def _characters(ranges):
    return frozenset(chr(code) for first, last in ranges for code in range(first, last + 1))


def terms(described, texts):
    """The terms of a row: its texts are those of the columns, in order."""
    found = []
    prefixes = described.get("prefixes", [""])
    for text, prefix in zip(texts, prefixes, strict=True):
        words = _split(described, _clean(described, text or ""))
        words = [word for word in words if word not in described["stop_words"]]
        if described.get("escaped"):
            words = [re.sub(f"([{re.escape(described['escaped'])}\\\\])", r"\\\1", word)
                     for word in words]
        words = [prefix + word for word in words]
        if "analyzer" not in described:
            least, most = described["ngram_range"]
            words = [" ".join(words[i:i + n]) for n in range(least, most + 1)
                     for i in range(len(words) - n + 1)]
        found += words
    return found


def _clean(described, text):
    if normalize := described.get("normalize"):
        text = _decompose(normalize, text)
        if normalize["pairs"]:
            text = _compose(normalize, text)
    for old, new in described["replacements"]:
        text = text.replace(old, new)
    if lower := described["lowercase"]:
        text = _lower(lower, text)
    if accents := described.get("accents"):
        text = "".join(c for c in _decompose(accents, text) if c not in accents["dropped"])
    return text


def _decompose(table, text):
    def parts(character):
        s = ord(character) - 0xAC00
        if not 0 <= s < 11172:
            return str(table["mapping"].get(character, character))
        tail = chr(0x11A7 + s % 28) if s % 28 else ""
        return chr(0x1100 + s // 588) + chr(0x1161 + s % 588 // 28) + tail

    classes = table["classes"]
    done: list[str] = []
    run: list[str] = []
    for character in [*"".join(map(parts, text)), None]:
        if character in classes:
            run.append(str(character))
            continue
        done += sorted(run, key=classes.__getitem__)
        run = []
        if character is not None:
            done.append(character)
    return "".join(done)


def _compose(table, text):
    def pair(a, b):
        lead, vowel, tail = ord(a) - 0x1100, ord(b) - 0x1161, ord(b) - 0x11A7
        if 0 <= lead < 19 and 0 <= vowel < 21:
            return chr(0xAC00 + 588 * lead + 28 * vowel)
        s = ord(a) - 0xAC00
        if 0 <= s < 11172 and s % 28 == 0 and 0 < tail < 28:
            return chr(ord(a) + tail)
        found: str | None = table["pairs"].get(a + b)
        return found

    classes = table["classes"]
    done: list[str] = []
    starter: int | None = None
    for character in text:
        number = classes.get(character, 0)
        if starter is not None:
            between = [classes.get(other, 0) for other in done[starter + 1:]]
            joined = pair(done[starter], character)
            if joined and not any(other == 0 or other >= number for other in between):
                done[starter] = joined
                continue
        if number == 0:
            starter = len(done)
        done.append(character)
    return "".join(done)


def _lower(table, text):
    cased, ignorable = table["cased"], table["ignorable"]

    def sigma(at):
        before = [c for c in reversed(text[:at]) if c not in ignorable][:1]
        after = [c for c in text[at + 1:] if c not in ignorable][:1]
        is_final = before and before[0] in cased and not (after and after[0] in cased)
        return "ς" if is_final else "σ"

    return "".join(sigma(at) if c == "Σ" else table["mapping"].get(c, c)
                   for at, c in enumerate(text))


def _split(described, text):
    members, unspaced = described["members"], described["unspaced"]
    least, most = described["ngram_range"]
    runs: list[str] = []
    for place, character in enumerate(text):
        if not place or (character in members) != (text[place - 1] in members):
            runs.append("")
        runs[-1] += character
    if described.get("analyzer") == "char":
        whole = "".join(" " if len(run) > 1 and run[0] not in members else run for run in runs)
        return [whole[at:at + n] for n in range(least, most + 1)
                for at in range(len(whole) - n + 1)]
    if described.get("analyzer") == "char_wb":
        words = [f" {run} " for run in runs if run[0] in members]
        return [word for word in words if len(word) < least] + [
            word[at:at + n] for word in words for n in range(least, most + 1)
            for at in range(len(word) - n + 1)]
    return _words(described, text, members, unspaced)


def _words(described, text, members, unspaced):
    kept = described.get("kept", {"kinds": []})
    letters, names, emoji = (kept.get(name, frozenset()) for name in (
        "letters", "letters_or_numbers", "emoji"))

    def run(at, characters, without=frozenset()):
        while at < len(text) and text[at] in characters and text[at] not in without:
            at += 1
        return at

    def amount(at):
        found = re.compile("[0-9]+([.,][0-9]+)*").match(text, at)
        return found.end() if found else at

    def find_kept(at):
        """The end of what is kept at a place, or the place."""
        if "emoji" in kept["kinds"] and text[at] in emoji:
            return at + 1
        if "punctuation" in kept["kinds"] and text[at] in "!?":
            return at + 1
        if "abbreviations" in kept["kinds"]:
            end = at
            while end + 1 < len(text) and text[end] in letters and text[end + 1] == ".":
                end += 2
            if end > at + 2:
                return end
        if "symbols" in kept["kinds"]:
            end = run(at, names) if text[at] in letters else at
            if end > at and text.startswith("++", end):
                return end + 2
            if end > at and text.startswith("#", end):
                return end + 1
            if text[at] in "$€£¥" and amount(at + 1) > at + 1:
                return amount(at + 1)
            if amount(at) > at and text.startswith("%", amount(at)):
                return amount(at) + 1
        return at

    found: list[str] = []
    at = 0
    while at < len(text):
        end = find_kept(at)
        if end > at:
            found.append(text[at:end])
        elif text[at] in unspaced:
            end = run(at, unspaced)
            found += [text[i:i + size] for i in range(at, end)
                      for size in described.get("unspaced_sizes", [2])
                      if i + size <= end] or [text[at]]
        elif text[at] in members:
            end = run(at, members, unspaced)
            if end - at >= described["least"]:
                found.append(text[at:end])
            elif kept["kinds"]:
                end = at + 1
        at = max(end, at + 1)
    return found
