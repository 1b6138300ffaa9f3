r"""Where Python and the engine disagree on a character, over all of Unicode.

The engine's regular expressions, lower-casing and normalisation each follow some version of
Unicode, and so does the running Python. They may differ on characters that one of them does not
know yet, and on no other: so scikit-learn's tokens are ours on any text of older characters.
Between Python 3.11 and the engine they are 55 in lower-casing and 9,392 in what a word is made of.
"""

import random
import re
import unicodedata
from collections.abc import Callable

import polars as pl
import pytest

from tests.text.plain_tokens import CHARACTERS, differing, foreign, in_python, ranges
from textnb.runtime.unicode import normalize
from textnb.text.characters import COMBINING
from textnb.text.plan import WHITE
from textnb.text.tokens import SKLEARN_WORD, WORD

Python = Callable[[str], object]

# The characters that differ between Unicode 14 (Python 3.11) and the engine, in hexadecimal.
LOWERCASE = "1c89 a7cb-a7cc a7ce a7d2 a7d4 a7da a7dc 10d50-10d65 16ea0-16eb8"
LETTERS = """1c89-1c8a a7cb-a7cd a7da-a7dc 105c0-105f3 10d4a-10d65 10d6f-10d85 10ec2-10ec4
    1123f-11240 11380-11389 1138b 1138e 11390-113b5 113b7 113d1 113d3 11bc0-11be0 11f02 11f04-11f10
    11f12-11f33 1342f 13441-13446 13460-143fa 16100-1611d 16d40-16d6c 18cff 1b132 1b155 1df25-1df2a
    1e030-1e06d 1e4d0-1e4eb 1e5d0-1e5ed 1e5f0 2b739 2ebf0-2ee5d 31350-323af"""
MARKS = """897 cf3 ece 10d69-10d6d 10efc-10eff 11241 113b8-113c0 113c2 113c5 113c7-113ca 113cc-113d0
    113d2 113e1-113e2 11f00-11f01 11f03 11f34-11f3a 11f3e-11f42 11f5a 13440 13447-13455 1611e-1612f
    1e08f 1e4ec-1e4ef 1e5ee-1e5ef"""
DIGITS = """10d40-10d49 116d0-116e3 11bf0-11bf9 11f50-11f59 16130-16139 16d70-16d79 1ccf0-1ccf9
    1e4f0-1e4f9 1e5f1-1e5fa"""
NUMBERS = f"{DIGITS} 1d2c0-1d2d3"
CAPITAL_SIGMA = f"""{LOWERCASE} ece 10efd-10eff 11241 11f00-11f01 11f36-11f3a 11f40 11f42
    13439-13440 13447-13455 1e030-1e06d 1e08f 1e4eb-1e4ef"""
DECOMPOSED = "105c9 105e4 11383 11385 1138e 11391 113c5 113c7-113c8 16121-16128 16d68-16d6a"
COMPATIBLE = "a7f1 1ccd6-1ccf9 1e030-1e06d"
ORDERED = """897 1acf-1add 1ae0-1aeb 10d69-10d6d 10efa-10efb 10efd-10eff 113ce-113d0
    11f41-11f42 1612f 1e08f 1e4ec-1e4ef 1e5ee-1e5ef 1e6e3 1e6e6 1e6ee-1e6ef 1e6f5"""


def matched(pattern):
    """Whether Python's and the engine's regular expression match a character."""
    python = re.compile(pattern)
    return (lambda c: python.fullmatch(c) is not None,
            lambda c: c.str.contains(rf"^(?:{pattern})$"))


def category(major):
    return (lambda c: unicodedata.category(c)[0] == major,
            lambda c: c.str.contains(rf"^\p{{{major}}}$"))


def normalized(form, template="{}"):
    return (lambda c: unicodedata.normalize(form, template.replace("{}", c)),
            lambda c: pl.format(template, *[c] * template.count("{}")).str.normalize(form))


AMONG_MARKS = "q{}\u0323\u0301{}"
WORDS = f"{LETTERS} {NUMBERS}"
QUESTIONS = {
    "str.lower": (str.lower, lambda c: c.str.to_lowercase(), LOWERCASE),
    # A capital sigma is ς at the end of a word and σ elsewhere: what is before and after counts.
    "str.lower of sigma": (lambda c: f"A{c}Σ{c}".lower(),
                           lambda c: pl.format("A{}Σ{}", c, c).str.to_lowercase(), CAPITAL_SIGMA),
    "str.isspace": (str.isspace, lambda c: c.str.contains(f"[{WHITE}]"), ""),
    r"Python's \s": (matched(r"\s")[0], lambda c: c.str.contains(f"[{WHITE}]"), ""),
    r"\d": (*matched(r"\d"), DIGITS),
    r"Python's \w": (matched(r"\w")[0],
                     lambda c: c.str.contains(SKLEARN_WORD.removesuffix("{2,}")), WORDS),
    "letters": (*category("L"), LETTERS),
    "marks": (*category("M"), MARKS),
    "numbers": (*category("N"), NUMBERS),
    "combining classes": (lambda c: unicodedata.combining(c) > 0,
                          lambda c: c.str.contains(COMBINING), ""),
    "NFC": (*normalized("NFC"), ""),
    "NFD": (*normalized("NFD"), DECOMPOSED),
    "NFKC": (*normalized("NFKC"), COMPATIBLE),
    "NFKD": (*normalized("NFKD"), f"{DECOMPOSED} {COMPATIBLE}"),
    "NFC among marks": (*normalized("NFC", AMONG_MARKS), ORDERED),
    "NFKD among marks": (*normalized("NFKD", AMONG_MARKS), f"{DECOMPOSED} {COMPATIBLE} {ORDERED}"),
}


def codes(listing):
    found = set()
    for item in listing.split():
        first, _, last = item.partition("-")
        found |= set(range(int(first, 16), int(last or first, 16) + 1))
    return sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_they_differ_on_new_characters_alone(question):
    python, engine, known = QUESTIONS[question]
    found = differing(python, engine)
    older = [code for code in found if chr(code) not in foreign()]
    assert older == [], f"differ on characters that both know: {ranges(older)}"
    if unicodedata.unidata_version == "14.0.0":
        assert found == codes(known), f"{len(found)} characters differ: {ranges(found)}"


@pytest.mark.slow
def test_the_engines_own_word_and_space_are_others():
    r"""Why the patterns are spelt out: the engine's \w has marks and lacks fractions, and \s lacks
    the separators U+001C to U+001F."""
    python, engine = matched(r"\w")
    found = set(map(chr, differing(python, engine)))
    assert {"\u0301", "ि", "²", "½", "\u200d", "‿"} <= found
    characters = pl.DataFrame({"c": CHARACTERS})
    spelt_out = r"^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]$"
    assert characters.filter(
        pl.col("c").str.contains(r"^\w$") != pl.col("c").str.contains(spelt_out)).height == 0
    assert ranges(differing(*matched(r"\s"))) == "1c-1f"


@pytest.mark.slow
def test_default_words_are_scikit_learns_where_there_are_no_marks():
    known = [c for c in CHARACTERS if c not in foreign()]
    default, sklearn = in_python(WORD), re.compile(r"(?u)\b\w\w+\b")
    texts = {c: f"ab{c}cd e{c}" for c in known}
    other = [c for c, text in texts.items() if default.findall(text) != sklearn.findall(text)]
    assert {unicodedata.category(c) for c in other} == {"Mn", "Mc", "Me"}


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normal_forms_are_pythons(form):
    rng = random.Random(0)
    marks = [char for char in map(chr, range(0x110000)) if unicodedata.combining(char)]
    # Characters that are decomposed to marks, alone and on letters, and ordinary ones.
    others = "\u0344\u0f73\u0f75\uff9e\uff9f\xb4\u1ffe\xe9\u1ead\uac01\U0001f600\u2500a1 \n"
    for _ in range(300):
        text = "a" * 1000 + "".join(
            rng.choice(marks if rng.random() < 0.97 else others) for _ in range(200))
        assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("marks", ["\u0301\u0316", "\uff9e\u0301", "\u0f73\u0316"])
def test_many_marks_on_a_letter_are_put_in_order(marks):
    # In linear time: Python's own function would take longer than a test may.
    text = normalize("NFKC", "a" + marks * 500_000)
    assert text[-9:] == normalize("NFKC", "a" + marks * 100)[-9:]
