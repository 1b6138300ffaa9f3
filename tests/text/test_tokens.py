"""The tokenizer against a plain one in Python, and each of its promises by itself."""

import pickle
import re
from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text import plain_tokens as oracle
from tests.tiers import examples
from textnb import Tokenizer
from textnb.errors import ParameterError, TextnbError
from textnb.text.expressions import separators, split_expr, unspaced_class
from textnb.text.token_settings import LONGEST_NGRAM, WORD
from textnb.text.tokens import SKLEARN_WORD

# Patterns that Python can read too, and whether their words are free of space, colon, backslash.
PATTERNS = {
    WORD: True,
    SKLEARN_WORD: True,
    r"[\p{L}\p{M}\p{N}_]+": True,
    r"[\p{L}\p{M}']{3,}": True,
    r"[a-z0-9]+": True,
    r"[A-z']{2,}": True,
    r"[^,]+": False,
    r"[^\n ]+": False,
    r"[\p{L}\p{M}]+(?:['’\-][\p{L}\p{M}]+)*": False,
    r"(?:[\p{L}]{2,3}|[\p{N}\\: ]+)": False,
}
PIECES = [
    "\0", "\t", "\n", "\r\n", "\x0b", "\x1c", "\x1f", " ", "  ", "\x85", "\xa0", "\u2028", "\u200b",
    "\u200c", "\u200d", "\ufeff", "\u0301", "e\u0301", "\u0327\u0301", "é", "ﬁ", "ß", "ẞ", "İ", "ı",
    "Σ", "ΟΔΟΣ", "ΑΣ Α", "ΑΣ\u0301", "Σ'Α", "Ǆ", "Å", "가", "각", "हिन्दी", "বাংলা", "ไทย", "क्‍ष", "१२",
    "²", "Ⅷ", "⅓", "𝒳", "𐐀", "👩\u200d🔬", "'", "’", "-", "_", ",", ":", "\\", "\\ ", "\\:", ", ",
    "don't", "The", "cat", "new york", "a", "A1", "0", "\uffff", "\U0010ffff", "x" * 70,
    "\u4e00", "\u4e00\u4e01", "\u30fc", "\u304b\u3099", "\uff8a\uff9f", "\U00020000", "USB\u7ebf",
]


@st.composite
def texts(draw):
    """Any text of characters that Python and the engine both know, rich in awkward ones."""
    anything = st.characters(exclude_categories=["Cs", "Cn"]).filter(
        lambda c: c not in oracle.foreign())
    pieces = draw(st.lists(st.one_of(st.sampled_from(PIECES), st.text(anything, max_size=8)),
                           max_size=12))
    return "".join(pieces)


documents = st.lists(texts(), max_size=6)
patterns = st.sampled_from(sorted(PATTERNS))
ngram_ranges = st.tuples(st.integers(1, 4), st.integers(0, 3)).map(lambda n: (n[0], sum(n)))
normalizations = st.sampled_from([None, "NFC", "NFD", "NFKC", "NFKD"])
accents = st.sampled_from([None, "unicode", "ascii", "marks"])
lowercases = st.sampled_from([True, False, "tr"])


def listed(tokenizer, columns):
    """The tokens of each row."""
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return frame.select(tokenizer.expr(list(columns)).alias("tokens"))["tokens"].to_list()


def expected(tokenizer, columns):
    plain = PATTERNS[tokenizer.pattern]
    return [oracle.terms(dict(zip(columns, row, strict=True)), tokenizer.to_dict(), plain=plain)
            for row in zip(*columns.values(), strict=True)]


def fast(tokenizer, texts):
    """The tokens by the cheap split, once short ones are dropped."""
    found = separators(tokenizer.plan())
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    rows = frame.select(t=split_expr(tokenizer.plan(), "text"))["t"]
    return [row.filter(found.are_words(row)).to_list() for row in rows]


class TestAgainstThePlainTokenizer:
    @settings(deadline=None, max_examples=examples(120))
    @given(documents, patterns, lowercases, ngram_ranges, normalizations, accents,
           st.lists(st.sampled_from(PIECES), max_size=3))
    def test_words(
        self, texts, pattern, lowercase, ngram_range, normalize, strip_accents, stop_words
    ):
        tokenizer = Tokenizer(
            pattern, lowercase=lowercase, ngram_range=ngram_range, normalize=normalize,
            strip_accents=strip_accents, stop_words=tuple(stop_words))
        columns = {"text": [*texts, None]}
        assert listed(tokenizer, columns) == expected(tokenizer, columns)

    @settings(deadline=None, max_examples=examples(100))
    @given(documents, st.sampled_from(["char", "char_wb"]), lowercases, ngram_ranges,
           normalizations, accents)
    def test_characters(self, texts, analyzer, lowercase, ngram_range, normalize, strip_accents):
        tokenizer = Tokenizer(analyzer=analyzer, lowercase=lowercase, ngram_range=ngram_range,
                              normalize=normalize, strip_accents=strip_accents)
        columns = {"text": [*texts, None]}
        assert ([Counter(row) for row in listed(tokenizer, columns)]
                == [Counter(row) for row in expected(tokenizer, columns)])

    @settings(deadline=None, max_examples=examples(100))
    @given(st.lists(st.tuples(texts(), texts(), texts()), max_size=4), patterns, ngram_ranges,
           st.sampled_from(["word", "char", "char_wb"]),
           st.one_of(st.booleans(), st.lists(st.sampled_from(["a", "b", "Ç_1"]), unique=True)))
    def test_several_columns(self, rows, pattern, ngram_range, analyzer, field_prefix):
        tokenizer = Tokenizer(pattern, ngram_range=ngram_range, analyzer=analyzer,
                              field_prefix=field_prefix)
        columns = {
            name: [row[at] for row in rows] for at, name in enumerate(["a", "b", "Ç_1"])}
        found, wanted = listed(tokenizer, columns), expected(tokenizer, columns)
        if analyzer == "word":
            assert found == wanted
        assert [Counter(row) for row in found] == [Counter(row) for row in wanted]

    @pytest.mark.parametrize("word", ["x" * 300_000, "\u0301" * 100_000, "ا" * 100_000])
    def test_very_long_words(self, word):
        text = f"{word} {word}"
        assert Tokenizer().tokens(text) == [word, word]
        assert fast(Tokenizer(), [text]) == [[word, word]]
        assert Tokenizer(ngram_range=(2, 2)).tokens(text) == [text]


class TestCheapSplit:
    ACCEPTED = (
        WORD, SKLEARN_WORD, r"\w+", r"\w{3,}", r"[\w]{2,}", r"[\w']+", r"[\d]+", r"[a-z]+",
        r"[A-z]{2,}", r"[A-Za-z0-9_]{2,}", r"[\p{Lu}\p{Nd}]{1,}", r"\b\w\w+\b", r"(?u)\b\w\w+\b",
        r"[\p{L}\p{M}']{4,}",
    )
    REFUSED = (
        r"[^,]+", r"\S+", r"cat|dog", r"[\p{L}]{2,5}", r"[a-z]{2}", r"[a-z]", r"\w", r"\w\w+",
        r"\b\w+\b", r"(?i)[a-z]+", r"[\p{L} ]+", r"[\p{L}:]+", r"[\p{L}\\]+", r"[\p{L}-]+",
        r"[\p{L}.]+", r"\p{L}+", r"[\p{Greek}]+", r"[\s]+", r"[a-z]+|\d", r"[\P{L}]+", r"[[a-z]]+",
    )

    def test_runs_of_one_class_are_accepted_and_other_patterns_refused(self):
        assert [pattern for pattern in self.ACCEPTED + self.REFUSED
                if separators(Tokenizer(pattern).plan()) is not None] == [*self.ACCEPTED]
        for pattern in self.REFUSED:
            with pytest.raises(ParameterError, match="does not end in runs of characters"):
                split_expr(Tokenizer(pattern).plan(), "text")
        for changed in ({"ngram_range": (1, 2)}, {"ngram_range": (2, 2)}, {"analyzer": "char"},
                        {"analyzer": "char_wb"}, {"stop_words": ("the",)}, {"field_prefix": True},
                        {"field_prefix": ("text",)}):
            assert separators(Tokenizer(**changed).plan()) is None

    def test_the_separators_and_the_shortest_run(self):
        assert separators(Tokenizer(r"[\p{L}']{3,}").plan()) == (
            r"[^\p{L}' ]+", 3, unspaced_class(r"\p{L}'"))
        assert separators(Tokenizer(r"\w+", unspaced="whole").plan()) == (r"[^\w ]+", 1, "")
        assert separators(Tokenizer(r"[a-z]+").plan()) == (r"[^a-z ]+", 1, "")
        assert separators(Tokenizer(r"(?u)\b\w\w+\b").plan()) == (
            r"[^\w ]+", 2, unspaced_class(r"\w"))

    @settings(deadline=None, max_examples=examples(120))
    @given(documents, st.sampled_from(ACCEPTED), lowercases, normalizations, accents)
    def test_it_equals_the_matches(self, texts, pattern, lowercase, normalize, strip_accents):
        tokenizer = Tokenizer(pattern, lowercase=lowercase, normalize=normalize,
                              strip_accents=strip_accents)
        assert fast(tokenizer, texts) == listed(tokenizer, {"text": [*texts]})

    @pytest.mark.slow
    def test_it_equals_the_matches_on_every_character(self):
        texts = [f"x{c}yy{c}{c} {c}" for c in oracle.CHARACTERS]
        for pattern in (WORD, SKLEARN_WORD, r"\b\w\w+\b"):
            tokenizer = Tokenizer(pattern)
            frame = pl.DataFrame({"text": texts})
            least, alone = (separators(tokenizer.plan()) or ("", 0, ""))[1:]
            both = frame.select(
                "text", fast=split_expr(tokenizer.plan(), "text").list.eval(
                    pl.element().filter((pl.element().str.len_chars() >= least)
                                        | pl.element().str.contains(alone))),
                slow=tokenizer.expr("text"))
            assert both.filter(pl.col("fast") != pl.col("slow")).rows() == []


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
    @given(texts(), patterns, ngram_ranges)
    def test_splitting_a_term_of_any_text(self, text, pattern, ngram_range):
        tokenizer = Tokenizer(pattern, ngram_range=ngram_range)
        grams = [words for _, words in oracle.ngrams("text", text, tokenizer.to_dict())]
        assert [tokenizer.split_terms(term) for term in tokenizer.tokens(text)] == grams

    def test_longest(self):
        words = [f"w{n}" for n in range(LONGEST_NGRAM + 1)]
        tokenizer = Tokenizer(ngram_range=(LONGEST_NGRAM, LONGEST_NGRAM))
        assert tokenizer.tokens(" ".join(words)) == [" ".join(words[:-1]), " ".join(words[1:])]
        assert tokenizer.tokens(" ".join(words[:5])) == []


class TestMeaning:
    def test_scikit_learns_tokens_are_what_is_left_between_marks(self):
        text = "বাংলা ভাষায় लेखन cafe\u0301s"
        shreds = re.findall(r"(?u)\b\w\w+\b", text)
        assert Tokenizer.sklearn().tokens(text) == shreds == ["खन", "cafe"]

    def test_sklearn_takes_other_settings(self):
        assert Tokenizer.sklearn() == Tokenizer(SKLEARN_WORD, unspaced="whole")
        assert Tokenizer.sklearn(lowercase=False, pattern="a+") == Tokenizer(
            "a+", lowercase=False, unspaced="whole")


class TestStoring:
    CHANGED = (
        {"pattern": r"\w+"}, {"lowercase": False}, {"ngram_range": (1, 2)}, {"analyzer": "char"},
        {"normalize": "NFKC"}, {"strip_accents": "ascii"}, {"stop_words": ("a", "the")},
        {"field_prefix": True}, {"field_prefix": ("subject",)},
    )

    @pytest.mark.parametrize("changed", [{}, *CHANGED])
    def test_there_and_back(self, changed):
        tokenizer = Tokenizer(**changed)
        settings = tokenizer.to_dict()
        assert Tokenizer.from_dict(settings) == tokenizer
        assert {type(value) for value in settings.values()} <= {str, bool, list, type(None)}
        assert eval(repr(tokenizer), {"Tokenizer": Tokenizer}) == tokenizer
        assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer

    def test_every_setting_is_stored(self):
        assert Tokenizer().to_dict() == {
            "pattern": WORD, "lowercase": True, "ngram_range": [1, 1], "analyzer": "word",
            "normalize": None, "strip_accents": None, "stop_words": [], "field_prefix": False,
            "unspaced": "pairs", "keep": [], "token_columns": False,
            "segmenter": None}

    def test_equality_and_hash(self):
        all_of_them = [Tokenizer(), *(Tokenizer(**changed) for changed in self.CHANGED)]
        assert len(set(all_of_them)) == len(all_of_them)
        assert Tokenizer(ngram_range=[1, 2]) == Tokenizer(ngram_range=(1, 2))
        assert hash(Tokenizer(stop_words=["a"])) == hash(Tokenizer(stop_words=("a",)))


# What a setting does, an example each: the settings, a text, its tokens.
EXAMPLES = {
    "stop words are tokenised": (
        {"stop_words": ["Don't", "THE"]}, "The dog and the cat don't, DON'T sleep",
        ["dog", "and", "cat", "sleep"]),
    "stop words of the pattern": ({"pattern": r"[\p{L}']+", "stop_words": ["Don't"]},
                                  "I don't don t", ["i", "don", "t"]),
    "stop words are lower-cased": ({"stop_words": ["CAFÉ"]}, "Café café cafe", ["cafe"]),
    "stop words lose accents": ({"stop_words": ["CAFÉ"], "strip_accents": "unicode"},
                                "Café cafe bar", ["bar"]),
    "stop words are normalised": ({"stop_words": ["cafe\u0301"], "normalize": "NFC"}, "café bar",
                                  ["bar"]),
    "stop words keep their case": ({"stop_words": ["The"], "lowercase": False}, "The the",
                                   ["the"]),
    "stop words go before n-grams": ({"stop_words": ["of"], "ngram_range": (1, 2)},
                                     "house of cards", ["house", "cards", "house cards"]),
    "stop words go before the prefix": ({"stop_words": ["of"], "field_prefix": True},
                                        "house of cards", ["text:house", "text:cards"]),
    "a stop word without a token": ({"stop_words": ["a", "!"]}, "a cat!", ["cat"]),
    "stop words alone": ({"stop_words": ["the", "cat"], "ngram_range": (1, 2)}, "the cat", []),
    "Bengali": ({}, "বাংলা ভাষায় লেখা সংবাদ", ["বাংলা", "ভাষায়", "লেখা", "সংবাদ"]),
    "Hindi": ({}, "यह हिन्दी का वाक्य है।", ["यह", "हिन्दी", "का", "वाक्य", "है"]),
    "Telugu": ({}, "తెలుగు తల్లి", ["తెలుగు", "తల్లి"]),
    "marks": ({}, "cafe\u0301 naïve", ["cafe\u0301", "naïve"]),
    "a joiner parts words": ({}, "কখ\u200dগঘ", ["কখ", "গঘ"]),
    "a joiner in the pattern": ({"pattern": r"[\p{L}\p{M}\x{200d}]+"}, "কখ\u200dগঘ",
                                ["কখ\u200dগঘ"]),
    # ANGSTROM SIGN: normalised to å by NFC before it is lower-cased.
    "NFC": ({"pattern": ".", "normalize": "NFC", "lowercase": False}, "\u212b", ["\u00c5"]),
    "NFC before lower case": ({"pattern": ".", "normalize": "NFC"}, "\u212b", ["\u00e5"]),
    # A compatibility capital that NFKD makes stays a capital.
    "accents go after lower case": ({"pattern": ".", "strip_accents": "unicode"}, "ℌ", ["H"]),
    "words that hold spaces": ({"pattern": "[^,]+", "ngram_range": (1, 3)}, "new york,city",
                               [r"new\ york", "city", r"new\ york city"]),
    "spaces that are escaped": ({"pattern": "[^,]+", "ngram_range": (1, 3)}, "new,york city",
                                ["new", r"york\ city", r"new york\ city"]),
    "a backslash is escaped": ({"pattern": "[^,]+", "ngram_range": (1, 3)}, "a\\,b",
                               ["a\\\\", "b", "a\\\\ b"]),
    "a short word parts no neighbours": ({"ngram_range": (2, 2)}, "cat a dog", ["cat dog"]),
    "a prefix of the only column": ({"field_prefix": True}, "a cat", ["text:cat"]),
    **{f"no group in {pattern}": ({"pattern": pattern}, "(a)", tokens) for pattern, tokens in (
        (r"[(]a", ["(a"]), (r"\(a\)", ["(a)"]), (r"(?:a|b)", ["a"]), (r"(?i)A", ["a"]),
        (r"(?i:A)", ["a"]), (r"[()]", ["(", ")"]))},
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name):
    settings, text, tokens = EXAMPLES[name]
    assert Tokenizer(**settings).tokens(text) == tokens


def test_terms_that_are_not_ngrams_are_not_split():
    assert Tokenizer(ngram_range=(1, 2)).split_terms("new york") == ["new", "york"]
    assert Tokenizer(r"[^,]+").split_terms("new york") == ["new york"]
    assert Tokenizer(analyzer="char", ngram_range=(3, 3)).split_terms("w y") == ["w y"]


MAIL = pl.DataFrame({"subject": ["Free money", None, "", "lone"],
                     "body": ["get it free", "plain text", None, ""]})


@pytest.mark.parametrize(("settings", "columns", "tokens"), [
    ({}, ["body", "subject"],
     [["get", "it", "free", "free", "money"], ["plain", "text"], [], ["lone"]]),
    ({"ngram_range": (2, 2)}, ["subject", "body"],
     [["free money", "get it", "it free"], ["plain text"], [], []]),
    ({"field_prefix": True}, ["subject", "body"],
     [["subject:free", "subject:money", "body:get", "body:it", "body:free"]]),
    ({"field_prefix": ["subject"], "ngram_range": (1, 2)}, ["subject", "body"],
     [["subject:free", "subject:money", "subject:free subject:money",
       "get", "it", "free", "get it", "it free"]]),
], ids=["in their order", "no n-gram crosses", "prefixes", "a prefix"])
def test_columns(settings, columns, tokens):
    found = MAIL.select(t=Tokenizer(**settings).expr(columns))["t"].to_list()
    assert found[:len(tokens)] == tokens


def test_a_prefix_and_a_colon_in_the_text_do_not_collide():
    frame = pl.DataFrame({"subject": ["free"], "body": [r"subject:free subject\:free"]})
    tokens = frame.select(t=Tokenizer(r"\S+", field_prefix=["subject"]).expr(
        ["subject", "body"]))["t"].to_list()[0]
    assert tokens == ["subject:free", r"subject\:free", r"subject\\\:free"]


@pytest.mark.parametrize("changed", [
    {}, {"ngram_range": (1, 3)}, {"analyzer": "char"}, {"analyzer": "char_wb"},
    {"stop_words": ["the"]}, {"strip_accents": "ascii"}], ids=str)
def test_a_text_without_words_is_an_empty_list(changed):
    tokenizer = Tokenizer(**changed)
    rows = listed(tokenizer, {"text": [None, "", "\n\t "]})
    assert rows[:2] == [[], []]
    assert not any(token.strip() for token in rows[2])
    for texts in ([], [None, None]):
        frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
        tokens = frame.select(tokenizer.expr("text"))["text"]
        assert tokens.dtype == pl.List(pl.String)
        assert tokens.to_list() == [[]] * len(texts)


NO_EXPRESSION = "is not a valid regular expression"
# Settings that are none, and what is said of them.
WRONG = [
    *(({"pattern": pattern}, NO_EXPRESSION) for pattern in (
        "[a", "(?:a", "a{2,1}", r"\p{Nonsense}", "*a", "a{9999999}")),
    *(({"pattern": pattern}, r"not a valid regular|capturing group")
      for pattern in (r"a(?=b)", r"a(?!b)", r"(a|b)\1")),
    *(({"pattern": pattern}, "no lookaround") for pattern in (r"(?<=a)b", r"(?<!a)b")),
    *(({"pattern": pattern}, r"capturing group.*write \(\?:\.\.\.\) instead") for pattern in (
        "(a)", "a(b|c)d", "(?P<word>a)", "(?<word>a)", "[(](a)")),
    *(({"pattern": pattern}, "matches the empty string") for pattern in (
        "", "a*", "a?", "a|", "(?:)", "^", "$", r"\w{0,}", r"\B", r"\b", "(?m)^", r"(?:\b|a)")),
    *(({"pattern": value}, "pattern must be a string") for value in (None, 3, b"a", ["a"], 1.5)),
    *(({"ngram_range": value}, r"ngram_range must be .* got") for value in (
        (0, 1), (2, 1), (1, LONGEST_NGRAM + 1), (1,), (1, 2, 3), (1.0, 2), (True, 1), "12", 2,
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
    ({"segmenter": 5}, "a function from a text to its tokens"),
    ({"segmenter": ""}, "or its name; got ''"),
    ({"segmenter": oracle.segment, "analyzer": "char"}, "needs analyzer='word'"),
    ({"segmenter": oracle.segment, "token_columns": True}, "no token_columns"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG,
                         ids=lambda value: str(value).split(" at 0x")[0])
def test_a_setting_that_is_none_is_named(settings, message):
    with pytest.raises(ParameterError, match=message):
        Tokenizer(**settings)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: Tokenizer(lowercase="no"), TextnbError, "lowercase"),
    (lambda: Tokenizer(lowercase="no"), ValueError, "lowercase"),
    (lambda: Tokenizer.from_dict({"lower_case": True}), ParameterError, "no setting 'lower_case'"),
    (lambda: Tokenizer.from_dict({"ngram_range": [2, 1]}), ParameterError, "ngram_range must be"),
    (lambda: setattr(Tokenizer(), "lowercase", False), AttributeError, "lowercase"),
    (lambda: Tokenizer(field_prefix=["title"]).expr("text"), ParameterError,
     r"field_prefix names 'title'.*\['text'\]"),
    *((lambda name=name: Tokenizer(field_prefix=True).expr(name), ParameterError,
       "can't be a field prefix: rename it") for name in ("the text", "a:b", "a\\b"))])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert pl.DataFrame({"a:b": ["cat"]}).select(Tokenizer().expr("a:b")).item().to_list() == [
        "cat"]
