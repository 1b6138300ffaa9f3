r"""The tokenizer written a second time, slow and plain: Python's re and unicodedata, no Polars.

    text -> normalize -> lowercase -> strip accents
         -> words -> stop words -> escapes and field prefix -> n-grams

It takes the settings as `Tokenizer.to_dict` writes them. Python and the engine know different
versions of Unicode: `foreign` holds the characters of which they may not think alike.
"""

import re
import sys
import unicodedata
from functools import cache
from itertools import groupby, pairwise, takewhile

import polars as pl

# Scripts without spaces, by names of characters; and the marks that Japanese scripts share.
_SCRIPTS = re.compile(
    r"(HALFWIDTH |COMBINING |VERTICAL )?(CJK (UNIFIED|COMPATIBILITY) IDEOGRAPH|HIRAGANA|KATAKANA"
    r"|THAI|LAO|KHMER|MYANMAR|IDEOGRAPHIC(?! ANNOTATION| TALLY)|HANGZHOU|KANA REPEAT|MASU MARK"
    r"|HENTAIGANA|OLD CHINESE|VIETNAMESE ALTERNATE)")

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]


def ranges(codes):
    """Code points as sorted hexadecimal ranges.

    >>> ranges([3, 1, 2, 17])
    '1-3 11'
    """
    found = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return " ".join(f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in found)


def differing(python, engine):
    """The code points on which a function of Python and an expression of the engine disagree."""
    answers = pl.DataFrame({"c": CHARACTERS}).select(engine(pl.col("c"))).to_series().to_list()
    return [ord(c) for c, answer in zip(CHARACTERS, answers, strict=True) if python(c) != answer]


@cache
def foreign():
    """The characters that Python or the engine leaves unassigned, so that they may differ there.

    Noncharacters are left out: no version of Unicode will ever assign them.
    """
    characters = pl.Series(CHARACTERS)
    engine = characters.filter(characters.str.contains(r"^\p{Cn}$")).to_list()
    python = [c for c in CHARACTERS if unicodedata.category(c) == "Cn"]
    never = {chr(code) for code in range(0xFDD0, 0xFDF0)} | {
        chr(plane << 16 | 0xFFFE | last) for plane in range(17) for last in (0, 1)}
    return frozenset({*engine, *python} - never)


@cache
def in_python(pattern):
    r"""A pattern of the engine as one of Python; of the properties, [\p{L}\p{M}\p{N}] are known."""
    # Python's \w has no marks and all of category N: there is no plain translation.
    assert not re.search(r"\\w|\\p\{(?![LMN]\})", pattern), pattern
    return re.compile(re.sub(r"\\p\{([LMN])\}", lambda found: _category(found[1]), pattern))


@cache
def _category(major):
    codes = [ord(c) for c in CHARACTERS if unicodedata.category(c)[0] == major]
    return re.sub(r"[0-9a-f]+", lambda found: f"\\U{int(found[0], 16):08x}",
                  ranges(codes)).replace(" ", "")


def terms(columns, settings, *, plain):
    """The terms of one document, in order (in some order for characters).

    Parameters
    ----------
    columns : mapping of str to str, list of str, or None
        The text columns of the document, by name; those of tokens as lists.
    settings : mapping
        As `Tokenizer.to_dict`.
    plain : bool
        Whether the pattern can match neither space, colon nor backslash.
    """
    return [joined(*gram, settings, plain=plain)
            for name, text in columns.items() for gram in ngrams(name, text, settings)]


def ngrams(name, text, settings):
    """The n-grams of one column: the field's prefix, and the words, or one run of characters."""
    field, lists = settings["field_prefix"], settings["token_columns"]
    prefix = f"{name}:" if field is True or (field and name in field) else ""
    least, most = settings["ngram_range"]
    if lists is True or (lists and name in lists):
        words = _words_of_tokens(text or [], settings)
    elif settings["segmenter"]:
        words = _words_of_tokens(segment(text or ""), settings)
    else:
        assert text is None or isinstance(text, str)
        text = cleaned(text or "", settings)
        if settings["analyzer"] == "char":
            return [(prefix, [gram]) for gram in _characters(text, least, most)]
        if settings["analyzer"] == "char_wb":
            return [(prefix, [gram]) for gram in _characters_in_words(text, least, most)]
        words = kept_and_words(text, settings) if settings["keep"] else _words(text, settings)
    return [(prefix, words[at:at + n])
            for n in range(least, most + 1) for at in range(len(words) - n + 1)]


def segment(text):
    """A segmenter of a user, which every setting of this name means here."""
    return text.split(" ")


def _words_of_tokens(tokens, settings):
    stops = {cleaned(stop, settings) for stop in settings["stop_words"]}
    return [word for token in tokens if token is not None
            and (word := cleaned(token, settings)) and word not in stops]


def _words(text, settings):
    splits = settings["unspaced"] != "whole" and _least(settings["pattern"]) is not None

    def find(text, settings):
        return (with_stretches(text, settings) if splits
                else in_python(settings["pattern"]).findall(text))

    stops = {word for stop in settings["stop_words"]
             for word in find(cleaned(stop, settings), {**settings, "unspaced": "pairs"})}
    return [word for word in find(text, settings) if word not in stops]


def _of_stretch(stretch, settings):
    """The tokens of a stretch of a script without spaces."""
    pairs = [first + second for first, second in pairwise(stretch)]
    if settings["unspaced"] == "pairs":
        return pairs or [stretch]
    if tuple(settings["ngram_range"]) != (1, 1):
        return [*stretch]
    both = [token for character, pair in zip(stretch, pairs, strict=False)
            for token in (character, pair)]
    return [*both, stretch[-1]]


def kept_and_words(text, settings):
    """Words of the default pattern and what is kept, character by character."""
    splits, at, words = settings["unspaced"] != "whole", 0, []
    while at < len(text):
        kept = next(filter(None, (_kept(kind, text[at:]) for kind in settings["keep"])), "")
        run = kept or "".join(takewhile(_in_word, text[at:]))
        if not kept and splits and run:
            run = "".join(next(groupby(run, key=is_unspaced))[1])
        if run and not kept and splits and is_unspaced(run[0]):
            words += _of_stretch(run, settings)
        elif kept or len(run) > 1:
            words.append(run)
        at += len(run) or 1
    return words


def _in_word(character):
    return unicodedata.category(character)[0] in "LMN" or character == "_"


def _kept(kind, text):
    """What a kind keeps at the beginning of a text; empty for nothing."""
    def spaced(c, categories):
        return unicodedata.category(c)[0] in categories and not is_unspaced(c)

    if kind == "emoji":
        return text[0] if "\U0001f300" <= text[0] <= "\U0001faff" or text[0] == "\u2764" else ""
    if kind == "punctuation":
        return text[0] if text[0] in "!?" else ""
    if kind == "abbreviations":
        size = 0
        while size + 1 < len(text) and spaced(text[size], "L") and text[size + 1] == ".":
            size += 2
        return text[:size] if size > 2 else ""
    name = "".join(takewhile(lambda c: spaced(c, "LN"), text))
    for sign in ("++", "#"):
        if name and spaced(name[0], "L") and text[len(name):].startswith(sign):
            return name + sign
    amount = re.match(r"[$\u20ac\u00a3\u00a5][0-9]+([.,][0-9]+)*|[0-9]+([.,][0-9]+)*%", text)
    return amount[0] if amount else ""


def _least(pattern):
    """The shortest run of a class with properties; None for other patterns."""
    run = re.fullmatch(r"\[[^\]]*\\p[^\]]*\](\+|\{(\d+),\})", pattern)
    return run and int(run[2] or 1)


def with_stretches(text, settings):
    """Words, and the tokens of scripts without spaces."""
    least, words = _least(settings["pattern"]), []
    for run in in_python(re.sub(r"\{\d+,\}$", "+", settings["pattern"])).findall(text):
        for unspaced, stretch in groupby(run, key=is_unspaced):
            piece = "".join(stretch)
            if unspaced:
                words += _of_stretch(piece, settings)
            elif len(piece) >= least:
                words.append(piece)
    return words


@cache
def is_unspaced(character):
    return bool(_SCRIPTS.match(unicodedata.name(character, "")))


def joined(prefix, words, settings, *, plain):
    """An n-gram as the one string by which it is stored."""
    special = ""
    if settings["analyzer"] == "word" and settings["ngram_range"][1] > 1 and not plain:
        special += "\\ "
    if settings["field_prefix"] and not (plain and settings["analyzer"] == "word"):
        special += "\\:"
    return " ".join(
        prefix + "".join("\\" + c if c in special else c for c in word) for word in words)


def cleaned(text, settings):
    if settings["normalize"] is not None:
        text = unicodedata.normalize(settings["normalize"], text)
    if settings["lowercase"] in ("tr", "az"):
        text = re.sub("I(?!\u0307)", "\u0131", re.sub("\u0130|I\u0307", "i", text))
    if settings["lowercase"]:
        text = text.lower()
    if settings["strip_accents"] is not None:
        text = unicodedata.normalize("NFKD", text)
    if settings["strip_accents"] == "ascii":
        text = "".join(c for c in text if c < "\x80")
    if settings["strip_accents"] == "unicode":
        text = text.replace("\u0640", "")
    if settings["strip_accents"] in ("unicode", "marks"):
        text = "".join(c for c in text if not unicodedata.combining(c))
    return text


def _characters(text, least, most):
    """White space of two characters or more counts as one space."""
    text = re.sub(r"\s\s+", " ", text)
    return [text[at:at + n] for n in range(least, most + 1) for at in range(len(text) - n + 1)]


def _characters_in_words(text, least, most):
    """N-grams of each word between two spaces; one shorter than the shortest counts once."""
    found = []
    for word in text.split():
        padded = f" {word} "
        if len(padded) < least:
            found.append(padded)
        found += [padded[at:at + n]
                  for n in range(least, most + 1) for at in range(len(padded) - n + 1)]
    return found
