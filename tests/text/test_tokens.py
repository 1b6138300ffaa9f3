"""The tokenizer against a plain one in Python, and each of its promises by itself."""

import pickle
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text import cases
from tests.text import plain_tokens as oracle
from tests.text.cases import EXECUTORS, TOKENIZERS, Refusal, assert_same_terms, by_expressions
from tests.tiers import examples
from textnb import Tokenizer
from textnb.errors import ParameterError, TextnbError
from textnb.text.characters import KINDS
from textnb.text.expressions import separators_of, split_expr, unspaced_class
from textnb.text.matrix import count_matrix
from textnb.text.plain import plain_tokens
from textnb.text.token_settings import MAX_NGRAM_LENGTH, WORD
from textnb.text.tokens import SKLEARN_WORD

# Patterns that Python can read too.
PATTERNS = [
    WORD, SKLEARN_WORD, r"[\p{L}\p{M}\p{N}_]+", r"[\p{L}\p{M}']{3,}", r"[a-z0-9]+", r"[A-z']{2,}",
    r"[^,]+", r"[^\n ]+", r"[\p{L}\p{M}]+(?:['’\-][\p{L}\p{M}]+)*",
    r"(?:[\p{L}]{2,3}|[\p{N}\\: ]+)"]
# Patterns that are runs of one class of characters, and others.
RUNS = [
    WORD, SKLEARN_WORD, r"\w+", r"\w{3,}", r"[\w]{2,}", r"[\w']+", r"[\d]+", r"[a-z]+",
    r"[A-z]{2,}", r"[A-Za-z0-9_]{2,}", r"[\p{Lu}\p{Nd}]{1,}", r"\b\w\w+\b", r"(?u)\b\w\w+\b",
    r"[\p{L}\p{M}']{4,}",
    r"[\p{Mn}\p{Mc}\p{Me}\p{Nl}\p{No}\p{Lt}\p{Lm}\p{Lo}\p{Ll}a-z_]+"]
NO_RUNS = [
    r"[^,]+", r"\S+", r"cat|dog", r"[\p{L}]{2,5}", r"[a-z]{2}", r"[a-z]", r"\w", r"\w\w+",
    r"\b\w+\b", r"(?i)[a-z]+", r"[\p{L} ]+", r"[\p{L}:]+", r"[\p{L}\\]+", r"[\p{L}-]+",
    r"[\p{L}.]+", r"\p{L}+", r"[\p{Greek}]+", r"[\s]+", r"[a-z]+|\d", r"[\P{L}]+", r"[[a-z]]+"]
PIECES = [
    "\0", "\t", "\n", "\r\n", "\x0b", "\x1c", "\x1f", " ", "  ", "\x85", "\xa0", "\u2028", "\u200b",
    "\u200c", "\u200d", "\ufeff", "\u0301", "e\u0301", "\u0327\u0301", "é", "ﬁ", "ß", "ẞ", "İ", "ı",
    "Σ", "ΟΔΟΣ", "ΑΣ Α", "ΑΣ\u0301", "Σ'Α", "Ǆ", "Å", "가", "각", "हिन्दी", "বাংলা", "ไทย", "क्‍ष", "१२",
    "²", "Ⅷ", "⅓", "𝒳", "𐐀", "👩\u200d🔬", "'", "’", "-", "_", ",", ":", "\\", "\\ ", "\\:", ", ",
    "don't", "The", "cat", "new york", "a", "A1", "0", "\uffff", "\U0010ffff", "x" * 70,
    "\u4e00", "\u4e00\u4e01", "\u30fc", "\u304b\u3099", "\uff8a\uff9f", "\U00020000", "USB\u7ebf"]
OF_KINDS = ["c", "C", "ab", "1", "5", ".", ",", "+", "++", "#", "$", "€", "%", "!", "?", " ", "_",
            "é", "线", "好", "ไ", "😀", "❤\ufe0f", "u.s.", ":", "\\"]


@st.composite
def any_text(draw):
    """Characters that Python and the engine both know, rich in awkward ones."""
    anything = st.characters(exclude_categories=["Cs", "Cn"]).filter(
        lambda c: c not in oracle.foreign())
    pieces = st.sampled_from(PIECES) | st.text(anything, max_size=8)
    return "".join(draw(st.lists(pieces, max_size=12)))


# Of emoji, the oracle knows those of these texts.
texts_of_kinds = st.lists(st.sampled_from(OF_KINDS), max_size=12).map("".join)
ngram_ranges = st.tuples(st.integers(1, 4), st.integers(0, 3)).map(lambda n: (n[0], sum(n)))
cleaning = st.fixed_dictionaries({
    "lowercase": st.sampled_from([True, False, "tr"]),
    "normalize": st.sampled_from([None, "NFC", "NFD", "NFKC", "NFKD"]),
    "strip_accents": st.sampled_from([None, "unicode", "ascii", "marks"])})


@st.composite
def any_tokenizer(draw, columns):
    """Settings that go together, and that the oracle knows."""
    changed = {**draw(cleaning), "ngram_range": draw(ngram_ranges), "field_prefix": draw(
        st.booleans() | st.lists(st.sampled_from(columns), unique=True))}
    kind = draw(st.sampled_from(["words", "words", "kinds", "char", "char_wb"]))
    if kind in ("char", "char_wb"):
        return Tokenizer(analyzer=kind, **changed)
    changed["unspaced"] = draw(st.sampled_from(["pairs", "whole"]))
    if kind == "kinds":
        kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, unique=True))
        if "emoji" in kinds and changed["strip_accents"] == "ascii":
            changed["strip_accents"] = None
        return Tokenizer(keep=tuple(kinds), **changed)
    return Tokenizer(
        draw(st.sampled_from(PATTERNS)), **changed,
        stop_words=tuple(draw(st.lists(st.sampled_from(PIECES), max_size=3))))


def terms_by(name, tokenizer, columns):
    """What an executor finds; None if it refuses the tokenizer."""
    try:
        return EXECUTORS[name](tokenizer, columns)
    except Refusal:
        return None


class TestAnyText:
    @settings(deadline=None, max_examples=examples(250))
    @given(st.data(), st.sampled_from([["text"], ["text"], ["a", "b", "Ç_1"]]))
    def test_every_executor_finds_the_terms_of_the_plain_tokenizer(self, data, names):
        tokenizer = data.draw(any_tokenizer(names))
        texts = texts_of_kinds if tokenizer.keep else any_text() | texts_of_kinds
        rows = data.draw(st.lists(
            st.tuples(*[st.none() | texts for _ in names]), min_size=1, max_size=6))
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        wanted = cases.by_the_oracle(tokenizer, columns)
        assert_same_terms(by_expressions(tokenizer, columns), wanted,
                          in_order=tokenizer.analyzer == "word")
        for name in ("separators", "plain Python", "compiled kernel") if len(names) == 1 else (
                "plain Python", "compiled kernel"):
            found = terms_by(name, tokenizer, columns)
            if found is not None:
                # Noncharacters are unassigned for ever: plain Python answers no text with them.
                answered = [row for row in range(len(rows)) if found[row] is not None]
                assert_same_terms(
                    [found[row] for row in answered], [wanted[row] for row in answered],
                    in_order=tokenizer.analyzer == "word" and name != "compiled kernel")

    @settings(deadline=None, max_examples=examples(200))
    @given(st.lists(any_text() | texts_of_kinds, min_size=1, max_size=6), st.sampled_from(RUNS),
           cleaning,
           st.lists(st.sampled_from(KINDS), unique=True), st.sampled_from(["pairs", "whole"]))
    def test_runs_of_any_class_are_found_as_the_pattern_matches_them(
        self, texts, pattern, cleaned, kinds, unspaced
    ):
        if "emoji" in kinds:
            cleaned = {**cleaned, "strip_accents": None}
        tokenizer = Tokenizer(pattern, **cleaned, keep=tuple(kinds), unspaced=unspaced)
        columns = {"text": texts}
        wanted = by_expressions(tokenizer, columns)
        if not kinds:
            assert cases.by_separators(tokenizer, columns) == wanted
        assert [tokens if row is None else row for row, tokens in zip(
            EXECUTORS["plain Python"](tokenizer, columns), wanted, strict=True)] == wanted

    @pytest.mark.parametrize("word", ["x" * 300_000, "\u0301" * 100_000, "ا" * 100_000])
    def test_very_long_words(self, word):
        columns = {"text": [f"{word} {word}"]}
        assert by_expressions(Tokenizer(), columns) == [[word, word]]
        assert cases.by_separators(Tokenizer(), columns) == [[word, word]]
        assert by_expressions(Tokenizer(ngram_range=(2, 2)), columns) == [[f"{word} {word}"]]


class TestCheapSplit:
    def test_runs_of_one_class_are_accepted_and_other_patterns_refused(self):
        assert [pattern for pattern in RUNS + NO_RUNS
                if separators_of(Tokenizer(pattern).plan()) is not None] == RUNS
        for pattern in NO_RUNS:
            with pytest.raises(ParameterError, match="does not end in runs of characters"):
                split_expr(Tokenizer(pattern).plan(), "text")
        for name in ("pairs", "pairs alone", "characters", "within words", "stop words", "prefixed",
                     "prefixed pairs"):
            assert separators_of(TOKENIZERS[name].plan()) is None

    @pytest.mark.parametrize(("pattern", "unspaced", "found"), [
        (r"[\p{L}']{3,}", "pairs", (r"[^\p{L}' ]+", 3, unspaced_class(r"\p{L}'"))),
        (r"\w+", "whole", (r"[^\w ]+", 1, "")), (r"[a-z]+", "pairs", (r"[^a-z ]+", 1, "")),
        (r"(?u)\b\w\w+\b", "pairs", (r"[^\w ]+", 2, unspaced_class(r"\w")))])
    def test_the_separators_and_the_shortest_run(self, pattern, unspaced, found):
        assert separators_of(Tokenizer(pattern, unspaced=unspaced).plan()) == found

    @pytest.mark.slow
    @pytest.mark.parametrize("pattern", [WORD, SKLEARN_WORD, r"\b\w\w+\b"])
    def test_it_equals_the_matches_on_every_character(self, pattern):
        columns = {"text": [" ".join(f"x{c}yy{c}{c} {c}" for c in oracle.CHARACTERS)]}
        assert cases.by_separators(Tokenizer(pattern), columns) == by_expressions(
            Tokenizer(pattern), columns)


class TestNgrams:
    # Words of the patterns below may hold any of these.
    awkward = st.text(st.sampled_from("ab\\ :é\n"), min_size=1, max_size=5)

    @settings(deadline=None, max_examples=examples(150))
    @given(st.lists(awkward, max_size=6), ngram_ranges, st.booleans())
    def test_splitting_a_term_gives_its_words_back(self, words, ngram_range, field_prefix):
        """So two n-grams that differ never share a string."""
        tokenizer = Tokenizer(r"[^,]+", ngram_range=ngram_range, field_prefix=field_prefix,
                              lowercase=False)
        prefix = "text:" if field_prefix else ""
        least, most = ngram_range
        grams = [[prefix + word for word in words[at:at + n]]
                 for n in range(least, most + 1) for at in range(len(words) - n + 1)]
        terms = tokenizer.tokens(",".join(words))
        if most == 1 and field_prefix:
            # A word alone is stored with its escapes: see the examples below.
            assert len(set(terms)) == len({tuple(gram) for gram in grams})
        else:
            assert [tokenizer.split_terms(term) for term in terms] == grams

    @settings(deadline=None, max_examples=examples(100))
    @given(any_text(), st.sampled_from(PATTERNS), ngram_ranges)
    def test_splitting_a_term_of_any_text(self, text, pattern, ngram_range):
        tokenizer = Tokenizer(pattern, ngram_range=ngram_range)
        grams = [words for _, words in oracle.ngrams("text", text, tokenizer.to_dict())]
        assert [tokenizer.split_terms(term) for term in tokenizer.tokens(text)] == grams

    @pytest.mark.parametrize(("tokenizer", "term", "words"), [
        (Tokenizer(ngram_range=(1, 2)), "new york", ["new", "york"]),
        (Tokenizer(r"[^,]+"), "new york", ["new york"]),
        (Tokenizer(analyzer="char", ngram_range=(3, 3)), "w y", ["w y"])])
    def test_terms_that_are_not_ngrams_are_not_split(self, tokenizer, term, words):
        assert tokenizer.split_terms(term) == words

    def test_longest(self):
        words = [f"w{n}" for n in range(MAX_NGRAM_LENGTH + 1)]
        tokenizer = Tokenizer(ngram_range=(MAX_NGRAM_LENGTH, MAX_NGRAM_LENGTH))
        assert tokenizer.tokens(" ".join(words)) == [" ".join(words[:-1]), " ".join(words[1:])]
        assert tokenizer.tokens(" ".join(words[:5])) == []


class TestStoring:
    @pytest.mark.parametrize("name", [
        name for name, tokenizer in TOKENIZERS.items() if not tokenizer.segmenter])
    def test_there_and_back(self, name):
        tokenizer = TOKENIZERS[name]
        stored = tokenizer.to_dict()
        assert Tokenizer.from_dict(stored) == tokenizer
        assert {type(value) for value in stored.values()} <= {str, bool, list, type(None)}
        assert eval(repr(tokenizer), {"Tokenizer": Tokenizer}) == tokenizer
        assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer

    def test_every_setting_is_stored(self):
        assert Tokenizer().to_dict() == {
            "pattern": WORD, "lowercase": True, "ngram_range": [1, 1], "analyzer": "word",
            "normalize": None, "strip_accents": None, "stop_words": [], "field_prefix": False,
            "unspaced": "both", "keep": [], "token_columns": False,
            "segmenter": None}

    def test_equality_and_hash(self):
        assert len(set(TOKENIZERS.values())) == len(TOKENIZERS)
        assert Tokenizer(ngram_range=[1, 2]) == Tokenizer(ngram_range=(1, 2))
        assert hash(Tokenizer(stop_words=["a"])) == hash(Tokenizer(stop_words=("a",)))
        assert Tokenizer(keep=["punctuation", "emoji"]) == Tokenizer(keep=("emoji", "punctuation"))
        assert Tokenizer(keep=None).keep == ()

    def test_sklearn_takes_other_settings(self):
        assert Tokenizer.sklearn() == TOKENIZERS["scikit-learn"]
        assert Tokenizer.sklearn(lowercase=False, pattern="a+") == Tokenizer(
            "a+", lowercase=False, unspaced="whole")


EVERY_KIND = {"keep": KINDS}
MATCHES = {"pattern": "[^,]+", "ngram_range": (1, 3)}
# What settings do, an example each: the settings, a text, its tokens.
EXAMPLES = [
    # Stop words are tokenised and cleaned as texts; they go before n-grams and prefixes.
    ({"stop_words": ["Don't", "THE"]}, "The dog and the cat don't, DON'T sleep",
     ["dog", "and", "cat", "sleep"]),
    ({"pattern": r"[\p{L}']+", "stop_words": ["Don't"]}, "I don't don t", ["i", "don", "t"]),
    ({"stop_words": ["CAFÉ"]}, "Café café cafe", ["cafe"]),
    ({"stop_words": ["CAFÉ"], "strip_accents": "unicode"}, "Café cafe bar", ["bar"]),
    ({"stop_words": ["cafe\u0301"], "normalize": "NFC"}, "café bar", ["bar"]),
    ({"stop_words": ["The"], "lowercase": False}, "The the", ["the"]),
    ({"stop_words": ["of"], "ngram_range": (1, 2)}, "house of cards",
     ["house", "cards", "house cards"]),
    ({"stop_words": ["of"], "field_prefix": True}, "house of cards", ["text:house", "text:cards"]),
    ({"stop_words": ["a", "!"]}, "a cat!", ["cat"]),
    ({"stop_words": ["the", "cat"], "ngram_range": (1, 2)}, "the cat", []),
    # Marks belong to words; a joiner parts them, unless the pattern has it.
    ({}, "বাংলা ভাষায় লেখা সংবাদ", ["বাংলা", "ভাষায়", "লেখা", "সংবাদ"]),
    ({}, "यह हिन्दी का वाक्य है।", ["यह", "हिन्दी", "का", "वाक्य", "है"]),
    ({}, "తెలుగు తల్లి", ["తెలుగు", "తల్లి"]), ({}, "cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
    ({}, "কখ\u200dগঘ", ["কখ", "গঘ"]),
    ({"pattern": r"[\p{L}\p{M}\x{200d}]+"}, "কখ\u200dগঘ", ["কখ\u200dগঘ"]),
    # ANGSTROM SIGN: normalised to å by NFC before it is lower-cased.
    ({"pattern": ".", "normalize": "NFC", "lowercase": False}, "\u212b", ["\u00c5"]),
    ({"pattern": ".", "normalize": "NFC"}, "\u212b", ["\u00e5"]),
    # A compatibility capital that NFKD makes stays a capital.
    ({"pattern": ".", "strip_accents": "unicode"}, "ℌ", ["H"]),
    # Spaces and backslashes of words are escaped where n-grams join them.
    (MATCHES, "new york,city", [r"new\ york", "city", r"new\ york city"]),
    (MATCHES, "new,york city", ["new", r"york\ city", r"new york\ city"]),
    (MATCHES, "a\\,b", ["a\\\\", "b", "a\\\\ b"]),
    ({"ngram_range": (2, 2)}, "cat a dog", ["cat dog"]),
    ({"field_prefix": True}, "a cat", ["text:cat"]),
    # Parentheses that capture nothing
    *(({"pattern": pattern}, "(a)", tokens) for pattern, tokens in (
        (r"[(]a", ["(a"]), (r"\(a\)", ["(a)"]), (r"(?:a|b)", ["a"]), (r"(?i)A", ["a"]),
        (r"(?i:A)", ["a"]), (r"[()]", ["(", ")"]))),
    # Characters of scripts without spaces and their pairs; a character alone once
    *(({"unspaced": "both"}, text, tokens) for text, tokens in (
        ("房间很", ["房", "房间", "间", "间很", "很"]), ("好 a 很", ["好", "很"]),
        ("USB线A4纸好", ["usb", "线", "a4", "纸", "纸好", "好"]),
        ("データ", ["デ", "デー", "ー", "ータ", "タ"]), ("か\u3099き", ["か", "か\u3099", "\u3099",
                                                           "\u3099き", "き"]),
        ("ที่", ["ท", "ที", "\u0e35", "\u0e35\u0e48", "\u0e48"]),
        ("ខ្មែរ", ["ខ", "ខ្", "្", "្ម", "ម", "មែ", "ែ", "ែរ", "រ"]),
        ("好:很|好\x01很", ["好", "很", "好", "很"]), ("𠀀一", ["𠀀", "𠀀一", "一"]))),
    # N-grams join characters as words, and no pairs.
    ({"unspaced": "both", "ngram_range": (1, 2)}, "good房间, 好",
     ["good", "房", "间", "好", "good 房", "房 间", "间 好"]),
    ({"unspaced": "both", "ngram_range": (2, 2), "keep": ["symbols"]}, "房间c++",
     ["房 间", "间 c++"]),
    # A stop word drops pairs, or a character alone.
    ({"unspaced": "both", "stop_words": ["不过", "的"]}, "不过的好",
     ["不", "过", "过的", "的好", "好"]),
    ({"unspaced": "both", "stop_words": ["不过", "的"], "ngram_range": (1, 2)}, "不过的",
     ["不", "过", "不 过"]),
    # Pairs of characters
    *(({"unspaced": "pairs"}, text, tokens) for text, tokens in (
        ("房间很好", ["房间", "间很", "很好"]), ("好", ["好"]), ("好 a 很", ["好", "很"]),
        ("USB线A4纸", ["usb", "线", "a4", "纸"]), ("x好_", ["好"]),
        ("コーヒー", ["コー", "ーヒ", "ヒー"]), ("ﾊﾟｿ", ["ﾊﾟ", "ﾟｿ"]), ("人々", ["人々"]),
        ("ไทย", ["ไท", "ทย"]), ("한국어 텍스트", ["한국어", "텍스트"]),
        ("好:很|好\x01很", ["好", "很", "好", "很"]), ("𠀀一", ["𠀀一"]))),
    ({"pattern": r"[\p{L}]{4,}", "ngram_range": (1, 2), "unspaced": "pairs"}, "good bad房间, 好",
     ["good", "房间", "好", "good 房间", "房间 好"]),
    ({"pattern": "[^ ]+"}, "房间很 好", ["房间很", "好"]),
    # Other tokens than words
    *((EVERY_KIND, text, tokens) for text, tokens in (
        ("C++ and C#", ["c++", "and", "c#"]), ("the U.S. army", ["the", "u.s.", "army"]),
        ("$5, €3.50: 10%!", ["$5", "€3.50", "10%", "!"]), ("wow!!?", ["wow", "!", "!", "?"]),
        ("❤️😀x", ["❤", "😀"]), ("线c++好!", ["线", "c++", "好", "!"]), ("end. A b.", ["end"]),
        ("a_b++", ["a_b"]), ("1++ $x 5 %", []))),
]


@pytest.mark.parametrize(("changed", "text", "tokens"), EXAMPLES)
def test_an_example_in_every_executor(changed, text, tokens):
    tokenizer = Tokenizer(**changed)
    assert tokenizer.tokens(text) == tokens
    for name in EXECUTORS:
        found = terms_by(name, tokenizer, {"text": [text]})
        assert_same_terms(found or [tokens], [tokens], in_order=name != "compiled kernel")


def test_scikit_learns_tokens_are_what_is_left_between_marks():
    text = "বাংলা ভাষায় लेखन cafe\u0301s"
    shreds = re.findall(r"(?u)\b\w\w+\b", text)
    assert Tokenizer.sklearn().tokens(text) == shreds == ["खन", "cafe"]


@pytest.mark.parametrize("pattern", [r"\w{2,}", "[b-c]+", "[0-9]{3,}"])
@pytest.mark.parametrize("piece", ["a", "1", "1.", "a.", "+#", "$", "\u4e00", "a1"])
def test_plain_python_reads_a_long_text_in_one_pass(pattern, piece):
    # If each place looked at the rest, it would take longer than a test may.
    plan = Tokenizer(pattern, keep=KINDS).plan()
    assert plain_tokens(plan, {"text": piece * (100_000 // len(piece))}) is not None


MAIL = {"subject": ["Free money", None, "", "lone"],
        "body": ["get it free", "plain text", None, ""]}


@pytest.mark.parametrize(("changed", "columns", "tokens"), [
    # In the order of the columns
    ({}, ["body", "subject"],
     [["get", "it", "free", "free", "money"], ["plain", "text"], [], ["lone"]]),
    # No n-gram crosses columns.
    ({"ngram_range": (2, 2)}, ["subject", "body"],
     [["free money", "get it", "it free"], ["plain text"], [], []]),
    ({"field_prefix": True}, ["subject", "body"],
     [["subject:free", "subject:money", "body:get", "body:it", "body:free"]]),
    ({"field_prefix": ["subject"], "ngram_range": (1, 2)}, ["subject", "body"],
     [["subject:free", "subject:money", "subject:free subject:money",
       "get", "it", "free", "get it", "it free"]])])
def test_several_columns(changed, columns, tokens):
    for name in ("expressions", "plain Python", "Polars code"):
        found = EXECUTORS[name](Tokenizer(**changed), {name: MAIL[name] for name in columns})
        assert found[:len(tokens)] == tokens


def test_a_prefix_and_a_colon_in_the_text_do_not_collide():
    tokenizer = Tokenizer(r"\S+", field_prefix=["subject"])
    columns = {"subject": ["free"], "body": [r"subject:free subject\:free"]}
    assert by_expressions(tokenizer, columns) == [
        ["subject:free", r"subject\:free", r"subject\\\:free"]]


@pytest.mark.parametrize("name", ["default", "three to four", "characters", "within words",
                                  "stop words", "to ASCII"])
def test_a_text_without_words_is_an_empty_list(name):
    tokenizer = TOKENIZERS[name]
    rows = by_expressions(tokenizer, {"text": [None, "", "\n\t "]})
    assert rows[:2] == [[], []]
    assert not any(token.strip() for token in rows[2])
    for texts in ([], [None, None]):
        frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
        tokens = frame.select(tokenizer.expr("text"))["text"]
        assert tokens.dtype == pl.List(pl.String)
        assert tokens.to_list() == [[]] * len(texts)


NO_EXPRESSION = "is not a valid regular expression"
# Settings that no tokenizer has, and what is said of them.
WRONG = [
    *(({"pattern": pattern}, NO_EXPRESSION) for pattern in (
        "[a", "(?:a", "(", "a{2,1}", r"\p{Nonsense}", "*a", "a{9999999}")),
    *(({"pattern": pattern}, r"not a valid regular|capturing group")
      for pattern in (r"a(?=b)", r"a(?!b)", r"(a|b)\1")),
    *(({"pattern": pattern}, "no lookaround") for pattern in (r"(?<=a)b", r"(?<!a)b")),
    *(({"pattern": pattern}, r"capturing group.*write \(\?:\.\.\.\) instead") for pattern in (
        "(a)", "a(b|c)d", "(?P<word>a)", "(?<word>a)", "[(](a)")),
    *(({"pattern": pattern}, "matches the empty string") for pattern in (
        "", "a*", "a?", "a|", "(?:)", "^", "$", r"\w{0,}", r"\B", r"\b", "(?m)^", r"(?:\b|a)")),
    *(({"pattern": value}, "pattern must be a string") for value in (None, 3, b"a", ["a"], 1.5)),
    *(({"ngram_range": value}, r"ngram_range must be .* got") for value in (
        (0, 1), (2, 1), (1, MAX_NGRAM_LENGTH + 1), (1,), (1, 2, 3), (1.0, 2), (True, 1), "12", 2,
        None, {1, 2}, ("1", "2"), (-1, 1))),
    *(({name: value}, f"{name}: unknown value .*choose one of")
      for name in ("analyzer", "normalize", "strip_accents")
      for value in ("Word", 3, True, ["word"], b"NFC")),
    ({"analyzer": "charwb"}, "did you mean 'char_wb'"),
    *(({"lowercase": value}, "lowercase must be True, False, 'tr'")
      for value in (None, 1, "yes", 0)),
    *(({name: value}, f"{name} must be .*a list of strings")
      for name in ("stop_words", "field_prefix")
      for value in ("english", ["a", 1], [None], b"the", 5)),
    *(({"analyzer": analyzer, "stop_words": ("the",)},
       f"analyzer='word'; got analyzer='{analyzer}'") for analyzer in ("char", "char_wb")),
    ({"unspaced": "words"}, "unspaced"), ({"keep": ("smileys",)}, "keep"),
    *(({"keep": ("emoji",), **changed}, "keep") for changed in (
        {"analyzer": "char"}, {"pattern": "[^ ]+"}, {"strip_accents": "ascii"})),
    ({"token_columns": True, "analyzer": "char"}, r"token_columns is for words.*'char'"),
    ({"segmenter": 5}, "None or a hashable function from a text to its tokens"),
    ({"segmenter": ""}, "or its name; got ''"),
    ({"segmenter": oracle.segment, "analyzer": "char"}, "needs analyzer='word'"),
    ({"segmenter": oracle.segment, "token_columns": True}, "no token_columns"),
]


@pytest.mark.parametrize(("changed", "message"), WRONG,
                         ids=lambda value: str(value).split(" at 0x")[0])
def test_a_setting_that_no_tokenizer_has_is_named(changed, message):
    with pytest.raises(ParameterError, match=message):
        Tokenizer(**changed)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: Tokenizer(lowercase="no"), TextnbError, "lowercase"),
    (lambda: Tokenizer(lowercase="no"), ValueError, "lowercase"),
    (lambda: Tokenizer.from_dict({"lower_case": True}), ParameterError, "no setting 'lower_case'"),
    (lambda: Tokenizer.from_dict({"ngram_range": [2, 1]}), ParameterError, "ngram_range must be"),
    (lambda: setattr(Tokenizer(), "lowercase", False), AttributeError, "lowercase"),
    (lambda: Tokenizer(field_prefix=["title"]).expr("text"), ParameterError,
     r"field_prefix names 'title'.*\['text'\]"),
    (lambda: count_matrix([pl.DataFrame({"b": ["a"]})], Tokenizer(field_prefix=["a"]), "b"),
     ParameterError, r"field_prefix names 'a'.*\['b'\]"),
    *((lambda name=name: Tokenizer(field_prefix=True).expr(name), ParameterError,
       "can't be a field prefix: rename it") for name in ("the text", "a:b", "a\\b")),
    (lambda: Tokenizer(segmenter=lambda text: [1]).tokens("a"), ParameterError,
     "must make strings of a text; got"),
    (lambda: Tokenizer(segmenter=lambda text: 5).tokens("a"), ParameterError,
     "must make strings of a text; got 5"),
    (lambda: Tokenizer(segmenter=lambda text: "a b").tokens("a"), ParameterError,
     "must make strings of a text; got 'a b'"),
    *((lambda pattern=pattern: plain_tokens(Tokenizer(pattern).plan(), {"text": "\u0378"}),
       ParameterError, "pattern=.*plain Python does not run this step")
      for pattern in ("[^,]+", r"\S+", "a|b"))])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_any_column_is_read_without_a_prefix():
    assert by_expressions(Tokenizer(), {"a:b": ["cat"]}) == [["cat"]]
