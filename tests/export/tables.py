"""What the targets are run on: texts, names, tokenizers, estimators and labels; and the targets."""

import random
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import textnb
from textnb import BernoulliNB, MultinomialNB, NBLogisticRegression, TextClassifier, Tokenizer
from textnb.export.golden import _FIXED_TEXTS, _SYMBOL_TEXTS
from textnb.export.targets.known import TARGETS

SQL = ["sql-duckdb", "sql-postgres", "sql-sqlite", "sql-clickhouse"]
# Targets that split texts by any portable plan; ONNX splits at one character alone.
SPLITTING = [name for name, target in TARGETS.items()
             if "text" in target.reads and name != "onnx"]
# Targets that give probabilities and decisions too.
ANSWERING = [name for name, target in TARGETS.items() if "decision" in target.answers]
# The same sums in the same order as the model's: every bit is the model's, so ties fall alike. Not
# of logarithms, which languages round differently.
EXACT = {"python", "javascript", "c"}
INPUTS = [(to, reads) for to, target in TARGETS.items() for reads in target.reads
          if reads != "features"]

# Terms, labels and names of columns that look like code, numbers or separators.
HOSTILE = [
    "__proto__", "constructor", "toString", "hasOwnProperty", "1", "01", "-0", "1e5", "NaN", "null",
    "NULL", "True", "a'b", "'", "'''", '"""', '"', "\\", "\\'''", "\\u0027", "\\.", "\\N", "$$",
    "${alert(1)}", "`", "</script><!--", "/* */", "\u2028\u2029", "\x85", "\ufeff", "\u00a0",
    "\n\r\t", "\t", "\x1e\x1f", "\x7f", "@DATA@", "@TOKENS@", "%s{}", "?1", ":x", ":'x'", "|", ",",
    "'''); import os; os.abort() #", "''); DROP TABLE textnb_weights; --", "E'\\''", "a b", "a  b",
    "\r\n.quit", "COPY textnb_weights (term, w0) FROM stdin;",
    "a\nCOPY textnb_weights (term, w0) FROM stdin;\n1\n\\.\n", "😀", "é", "ß", "İ", "*", "^a$"]
WITH_NUL = ["\0", "a\0b"]

TEXTS: list[str | None] = [
    None, "", " ", "\t\n\r\x0b\x0c\x1c\x85\u2028\u2029\ufeff", "good GOOD gOOd film",
    "The cat sat, the CAT sat.", "the the the the cat cat", "unknown-words-only?!",
    "a b c I x 1 22 _ __", "snake_case __x__", "0 12 ١٢٣ ½ ²³ Ⅷ",
    "it's 'quoted' \"twice\" '' \\back\\ `tick` ${x} </script> \\.",
    "back\\slash \\' \\\\ \\u0000 \\n", "tab\tand\nline\r\nends\x0b\x0c\x85\u2028here",
    "nul\0in a\0\0cat \x01\x7f \ue000\U000f0000\U0010ffff",
    "İstanbul İ I\u0307 ıI Iİ DİYARBAKIR ı iİ", "ΟΔΟΣ", "Σ", "ΣΣ ΣΣΣ", "ΑΣ.Β", "ΑΣ.", "ΑΣ'",
    "'Σ ΑΣ ΣΑ Α'Σ ΑΣ\u0301Β ΑΣ\u0301 Α\u0301Σ.", "ΣΣΣ.Σ'ΣaΣ1 1Σ", "ͅΣ ʰΣ ᾼΣ ΑΣͅ ΑΣʰ",
    "Α\u0301Σ\u0301", "Α\u00adΣ\u00adΑ ΑΣ\u200b 1Σ 😀Σ Σ😀 𐐀Σ aΣ𐐀", "ΧΑΟΣ ΧΑΟΣΧΑΟΣ.ΧΑΟΣ",
    "Ⓐ Ⓑ ⓐΣ KELVIN K Å ẞ ß ǅ ŉ ﬁ Ꙁ Ა Ꭰ ꭰ Ɜ \ua7cb \ua7dc",
    "cafe\u0301 café CAFÉ \u0301\u0301 naïve", "हिन्दी में पाठ", "中文文本 日本語 한국어",
    "USB线A 房间很好，好 x好_ ﾊﾟｿｺﾝーﾞ か\u3099き ไทยก่ab မြန်မာ ខ្មែរ",
    "\x01中\x02国\x03 中国\x03:中|国| \x02 好",
    "中Σ Σ中 ΑΣ中 ΑΣ\u0e48Α 𠀀一x々𠀀 中\u200d国 ｱＡ亜 ー",
    "emoji 😀 👩‍👩‍👧 🇩🇪 x😀y 𝐁𝐨𝐥𝐝 ＦＵＬＬ ｗｉｄｅ 𝔘𝔫𝔦 𐐀𐐁 𐐨",
    "DROP TABLE documents; -- '); \\. :var $1 %s {x}", "don't l'été rock'n'roll", "w" * 5000,
    "\ufeffbom \u200bzero\u200b \u00adsoft\u00adhy"]
_PICK = random.Random(1)
LONG: list[str | None] = [
    "good film " * 300, "x" * 100_000, "É" * 3000, "Xσ " + "ΑΣ" * 1000, " ".join(HOSTILE),
    "".join(_PICK.choices("ΑΒΣ. '", k=20_000)), "".join(_PICK.choices(" ,.;aBcD'\n", k=20_000)),
    "".join(chr(_PICK.randrange(0x4E00, 0x5200)) for _ in range(7000)),
    "".join(chr(_PICK.randrange(0x80, 0xD7FF)) for _ in range(3000)), "Σ" * 5000, "." * 20_000]

# Marks in and out of order, some of them of Unicode 15 and later.
MARKS = [*map(chr, (0x300, 0x301, 0x308, 0x316, 0x323, 0x327, 0x328, 0x334, 0x345, 0x5B0, 0x64B,
                    0x93C, 0x94D, 0xE38, 0x302A, 0x3099, 0x1D165, 0x897, 0x10EFD, 0x1E4EC,
                    0x1E4EE, 0x1E4EF))]
# White space of Unicode and of str.split, capitals that change, other planes, no characters.
PIECES = [
    *MARKS, *"aaBeosßİIıΣς'é_01:\\ \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\xad\0",
    *"\u1680\u180e\u2000\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff",
    "ΑΣ", "e\u0301", "中", "文", "好", "あ", "ก", "\u0e35\u0e48", "ខ្មែ",
    "က\u103a", "か\u3099", "ﾊﾟ", "각", "가", "힣", "\u1100\u1161",
    # The ends of the ranges of jamo, and what is beyond.
    "가\u11a7", "\u1112\u1175\u11c2", "가\u11c3", "\u1113\u1161", "\u1100\u1176",
    "\u11a8", "ﬁ", "\ufdfa", "½", "㎒", "𝐁", "𝚺", "𐐀", "Ꙁ", "Ა", "Ⅷ", "①", "ǭ", "ṩ", "\u0344",
    "\u0958", "\U0001d160", "豈", "\u212b", "كِتـاب", "I\u0307", "😀", "👩\u200d👧", "\ue000",
    "\U0010ffff", "word", "Word", "The", "the", "C++", "$5.50", "10%", "U.S.", "!", "  ", "\r\n",
    '"', "`", "${x}", "</script>"]


@cache
def random_texts(rows, seed=0):
    """Texts that are put together from the pieces."""
    draw = random.Random(seed)
    return [None, "", *("".join(draw.choices(PIECES, k=draw.randrange(1, 22)))
                        for _ in range(rows - 2))]


ALL_KINDS = ("emoji", "symbols", "abbreviations", "punctuation")
PLANS = {
    "default": Tokenizer(), "sklearn": Tokenizer.sklearn(),
    "pairs": Tokenizer(ngram_range=(1, 2)), "triples": Tokenizer(ngram_range=(2, 3)),
    "tr": Tokenizer(lowercase="tr", ngram_range=(1, 2)),
    "az": Tokenizer(pattern="[a-z]+", lowercase="az"),
    "stop words": Tokenizer(stop_words=("The", "word", "é", "ΟΔΟΣ", "it's", "İstanbul", "GOOD"),
                            ngram_range=(1, 2)),
    "other stretches": Tokenizer(unspaced="pairs", ngram_range=(1, 2),
                                 stop_words=("\u4e2d\u6587",)),
    "stop characters": Tokenizer(stop_words=("\u4e2d\u6587", "\u597d"), pattern=r"\w+"),
    "whole": Tokenizer(unspaced="whole"), "as is": Tokenizer(lowercase=False),
    "pairs as is": Tokenizer(lowercase=False, ngram_range=(1, 2), stop_words=("The",)),
    "least 1": Tokenizer(pattern=r"[\p{L}\p{M}\p{N}_]+"), "w": Tokenizer(pattern=r"\w+"),
    "ascii": Tokenizer(pattern="[a-z']+"), "three": Tokenizer(pattern="[a-zA-Z']{3,}"),
    "capitals": Tokenizer(pattern="[A-Z]+", lowercase=False),
    "letters": Tokenizer(pattern=r"[\p{L}]{3,}"), "digits": Tokenizer(pattern=r"[\d]+"),
    "marks": Tokenizer(pattern=r"[\p{M}i]+"), "backslashes": Tokenizer(pattern="[A-z]+"),
    "long": Tokenizer(pattern=r"[a-z]{1200,}"),
    "kept": Tokenizer(keep=ALL_KINDS),
    "kept alone": Tokenizer(keep=("emoji", "punctuation"), ngram_range=(1, 2), lowercase="tr"),
    "kept, other stretches": Tokenizer(keep=("emoji",), unspaced="pairs"),
    "kept symbols": Tokenizer(keep=("symbols",), unspaced="whole", ngram_range=(1, 2)),
    "accents": Tokenizer(strip_accents="unicode", ngram_range=(1, 2)),
    "accents ascii tr": Tokenizer(strip_accents="ascii", lowercase="tr"),
    "accents marks": Tokenizer(strip_accents="marks", lowercase=False, pattern=r"\w+"),
    "accents stop": Tokenizer(strip_accents="unicode", stop_words=("Thé",), pattern=r"\w+"),
    "nfc": Tokenizer(normalize="NFC", pattern=r"\w+"),
    "nfd": Tokenizer(normalize="NFD", pattern=r"\w+"),
    "nfkc": Tokenizer(normalize="NFKC", strip_accents="unicode", keep=("symbols",)),
    "nfkd": Tokenizer(normalize="NFKD", lowercase=False, ngram_range=(1, 2)),
    "char 1-2": Tokenizer(analyzer="char", ngram_range=(1, 2)),
    "char 3": Tokenizer(analyzer="char", ngram_range=(3, 3)),
    "char tr": Tokenizer(analyzer="char", ngram_range=(1, 4), lowercase="tr"),
    "char accents": Tokenizer(analyzer="char", ngram_range=(2, 3), strip_accents="marks"),
    "char_wb": Tokenizer(analyzer="char_wb", ngram_range=(2, 4)),
    "char_wb as is": Tokenizer(analyzer="char_wb", ngram_range=(5, 6), lowercase=False),
    "char_wb nfc tr": Tokenizer(analyzer="char_wb", ngram_range=(5, 6), normalize="NFC",
                                lowercase="tr"),
    "char_wb ascii": Tokenizer(analyzer="char_wb", ngram_range=(3, 6), strip_accents="ascii"),
    "columns": Tokenizer(ngram_range=(1, 2)),
    "prefixes": Tokenizer(ngram_range=(1, 3), field_prefix=True, keep=("symbols", "punctuation")),
    "one prefix": Tokenizer(field_prefix=("body",), stop_words=("the", "word"), lowercase="tr",
                            strip_accents="unicode"),
    "one column's prefix": Tokenizer(field_prefix=True, ngram_range=(1, 2)),
    "char prefixes": Tokenizer(analyzer="char", ngram_range=(1, 2), field_prefix=("body",)),
    "char_wb prefixes": Tokenizer(analyzer="char_wb", ngram_range=(2, 4), field_prefix=True),
}
# The text columns of a plan, some of them with names of columns of the SQL scripts.
COLUMNS = {plan: ["title"] if plan == "one column's prefix" else ["field", "body", "the_'third\""]
           for plan in PLANS if "column" in plan or "prefix" in plan}
NOT_PORTABLE = [
    Tokenizer(pattern=r"[^,'\"]+"), Tokenizer(pattern=r"[^,\n]+", ngram_range=(1, 3)),
    Tokenizer(pattern=r"[^\s\x00]+", stop_words=("GOOD", "\\back\\"), ngram_range=(2, 2)),
    Tokenizer(pattern=r"a\w+|b\w+"), Tokenizer(pattern=r"terms|\w+-\w+")]
# What ONNX can split by itself.
SPACED = Tokenizer(pattern=r"[^ ]+", lowercase=False)

ESTIMATORS: dict[str, dict[str, Any]] = {
    "multinomial": {"estimator": MultinomialNB(l=0.1)}, "bernoulli": {"estimator": BernoulliNB()},
    "above 1": {"estimator": BernoulliNB(binarize=1.0)}, "binary": {"binary": True},
    "complement": {"estimator": textnb.ComplementNB()},
    "regression": {"estimator": NBLogisticRegression()}}
LABELS: dict[str, list[Any]] = {
    "strings": ["'''\\", "n'e\"g\n${x}`</script>", "sö-so 😀\u2028"], "bools": [True, False],
    "integers": [-3, 2**53 - 1, 0]}


def frame_of(texts, labels=()):
    """A column of texts, and of the labels in turn."""
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    if not labels:
        return frame
    return frame.with_columns(
        label=pl.Series([labels[row % len(labels)] for row in range(len(texts))]))


def trained(labels, estimator=None, **settings):
    """A model of the texts, some of which are in two classes."""
    texts = [*TEXTS, *LONG[:5]]
    return TextClassifier(estimator, **settings).fit(frame_of(texts + texts[::2], labels))


def table_of(names, center=0.0, classes='xyz'):
    """Sixty rows of features, and their classes."""
    labels = np.arange(60) % len(classes)
    values = np.random.default_rng(2).normal(size=(60, len(names)))
    frame = pl.DataFrame(3 * values + 2 * labels[:, None] + center, schema=names)
    return frame.with_columns(y=pl.Series([classes[k] for k in labels]))


def frame_of_plan(plan, texts):
    """A row per text; with several columns, each has the texts of other rows."""
    names = COLUMNS.get(plan, ["text"])
    return pl.DataFrame({name: texts[shift:] + texts[:shift] for shift, name in enumerate(names)},
                        schema=dict.fromkeys(names, pl.String))


def learned_by_plan(plan, estimator, lists=False):
    """A model whose texts are split by a plan, of three classes or of lists of labels."""
    # Without the character NUL, as no term with it can be in PostgreSQL.
    texts = [text and text.replace("\0", "")
             for text in (*_FIXED_TEXTS[:-1], *_SYMBOL_TEXTS[:-1], *TEXTS,
                          *random_texts(300, seed=1))]
    rows = frame_of_plan(plan, texts + texts[::-1])
    kinds: Any = (["a", "b"], ["b"], []) if lists else ("a", "b", "c")
    labels = pl.Series("label", [kinds[n % 3] for n in range(len(rows))],
                       dtype=pl.List(pl.String) if lists else pl.String)
    names = rows.columns if rows.width > 1 else rows.columns[0]
    return TextClassifier(estimator, tokenizer=PLANS[plan], text=names).fit(
        rows.with_columns(labels))
