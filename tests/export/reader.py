"""A reader of bundles that does what the page on file formats says of ``characters.json``."""

import json
import re
from collections.abc import Mapping
from typing import Any

Described = Mapping[str, Any]
AMOUNT = r"[0-9]+(?:[.,][0-9]+)*"


def read(path):
    """Read the file, with its ranges of characters as classes of regular expressions."""
    described: dict[str, Any] = json.loads(path.read_text("utf-8"))
    ranges = [(described, ("members", "unspaced")),
              (described["lowercase"], ("cased", "ignorable")),
              (described.get("accents"), ("dropped",)),
              (described.get("kept"), ("letters", "letters_or_numbers", "emoji"))]
    for table, names in ranges:
        for name in names if table else ():
            table[name] = _class(table[name])
    for name in ("normalize", "accents"):
        if table := described.get(name):
            table["marks"] = _class([ends for *ends, _ in table["classes"]])
            table["classes"] = {chr(code): number for first, last, number in table["classes"]
                                for code in range(first, last + 1)}
    return described


def _class(ranges):
    inner = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
    return f"[{inner}]" if inner else "(?!)"


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
        text = re.sub(accents["dropped"], "", _decompose(accents, text))
    return text


def _decompose(table, text):
    def parts(character):
        s = ord(character) - 0xAC00
        if not 0 <= s < 11172:
            return str(table["mapping"].get(character, character))
        tail = chr(0x11A7 + s % 28) if s % 28 else ""
        return chr(0x1100 + s // 588) + chr(0x1161 + s % 588 // 28) + tail

    return re.sub(f"{table['marks']}+", lambda run: "".join(
        sorted(run[0], key=table["classes"].__getitem__)), "".join(map(parts, text)))


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
    ignorable = table["ignorable"]
    cased = f"(?!{ignorable}){table['cased']}"
    # A sigma at the end of a word.
    text = re.sub(f"({cased}{ignorable}*)Σ(?!{ignorable}*{cased})", r"\1ς", text)
    return "".join(table["mapping"].get(character, character)
                   for character in text.replace("Σ", "σ"))


def _split(described, text):
    members = described["members"]
    least, most = described["ngram_range"]
    if described.get("analyzer") == "char":
        whole = re.sub(f"(?:(?!{members})[\\s\\S]){{2,}}", " ", text)
        return [whole[at:at + n] for n in range(least, most + 1)
                for at in range(len(whole) - n + 1)]
    if described.get("analyzer") == "char_wb":
        words = [f" {run} " for run in re.findall(f"{members}+", text)]
        return [word for word in words if len(word) < least] + [
            word[at:at + n] for word in words for n in range(least, most + 1)
            for at in range(len(word) - n + 1)]
    return _words(described, text)


def _words(described, text):
    kept, unspaced = described.get("kept", {"kinds": []}), described["unspaced"]
    letter, name, emoji = map(kept.get, ("letters", "letters_or_numbers", "emoji"))
    kinds = {"emoji": emoji, "punctuation": "[!?]", "abbreviations": rf"(?:{letter}\.){{2,}}",
             "symbols": rf"{letter}{name}*(?:\+\+|#)|[$€£¥]{AMOUNT}|{AMOUNT}%"}
    pattern = "|".join([
        *(expression for kind, expression in kinds.items() if kind in kept["kinds"]),
        f"(?P<stretch>{unspaced}+)",
        f"(?:(?!{unspaced}){described['members']}){{{described['least']},}}"])
    found: list[str] = []
    for match in re.finditer(pattern, text):
        if (stretch := match["stretch"]) is None:
            found.append(match[0])
        else:
            found += [stretch[at:at + size] for at in range(len(stretch))
                      for size in described.get("unspaced_sizes", [2])
                      if at + size <= len(stretch)] or [stretch]
    return found
