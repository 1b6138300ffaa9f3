"""The kernel and the expressions give the same bits, whatever the texts are."""

import os
import random
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings

import textnb
from tests.text import cases
from tests.text.cases import ANY_TEXTS, DOCUMENTS, TOKENIZERS, assert_same_matrix, frame_of
from tests.tiers import examples
from textnb import BernoulliNB, TextClassifier, Tokenizer
from textnb.errors import DataError, ParameterError, VocabularyError
from textnb.frames.batches import batches
from textnb.runtime import native
from textnb.runtime.native import KERNEL, PACKAGES, Build, load_compiled
from textnb.text import compiled, counting, matrix
from textnb.text.character_class import CharacterClass
from textnb.text.compiled import describe_engine, reason_for_expressions, usable_kernel
from textnb.text.counting import CountSpec
from textnb.text.counts import count_by_label
from textnb.text.matrix import Vocabulary, count_matrix
from textnb.text.plan import WHITE
from textnb.text.termtable import TermTable
from textnb.text.vocabulary import Limits

if load_compiled(KERNEL).kernel is None and os.environ.get("TEXTNB_REQUIRE_KERNEL") != "1":
    pytest.skip(f"there is no compiled kernel: {load_compiled(KERNEL).reason}",
                allow_module_level=True)

WORDS = ["the", "cat", "été", "हिन्दी", "x", "longer_than_seven", "9"]


@cache
def every_character():
    """All code points but surrogates, and their characters."""
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    return codes, pl.Series([chr(code) for code in codes])


def both(run):
    """The outcome by the kernel, and by expressions."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for kernel in ("on", "off"):
            patch.setenv("TEXTNB_KERNEL", kernel)
            found.append(cases.outcome(run))
    return found


class OwnTokenizer(Tokenizer):
    """A subclass with an expression of its own, of which no plan tells."""

    def expr(self, text):
        return super().expr(text).list.eval(pl.element().filter(pl.element().str.len_chars() < 9))


def long_texts():
    draw = random.Random(5)
    parts = ["ab", "é", "हिन्दी", "x", "  ", "\n", "cat", "日本語", "-"]
    # Longer than what is looked at at a time
    return ["".join(draw.choices(parts, k=60_000)), "a" * 100_000,
            "é" * 50_000 + " " + "b" * 70_000, "日本語" * 20_000, "word " * 20_000, "end"]


def rows_of_all_lengths(terms):
    draw = random.Random(terms)
    return [" ".join(f"w{draw.randrange(terms)}" for _ in range(length))
            for length in [0, 1, 23, 24, 25, 26, 4000, *range(2, 400, 19), 1]]


def words_that_begin_and_end_anywhere():
    return [before * offset + word * length + after
            for before in " é" for word in ("a", "ß") for after in ("", " ", "한")
            for offset in range(18) for length in range(18)]


# Texts, and the tokenizers that count them.
CASES = {
    **{f"rows of all lengths, {terms} terms": (
        lambda terms=terms: rows_of_all_lengths(terms), ["default"])
       for terms in (1, 2, 600, 9000)},
    # Nothing need stand between a word of two letters and a character of such a script.
    "words that nothing parts": (
        lambda: ["ab好" * 30_000, "a好" * 30_000, "好" * 60_000, "ab好" * 3], ["default"]),
    "words anywhere": (words_that_begin_and_end_anywhere,
                       ["default", "ASCII", "three letters", "one letter"]),
    "long texts": (long_texts, ["default", "pairs", "characters", "within words"]),
}


class TestEquality:
    @pytest.mark.sweep(10)
    @pytest.mark.parametrize("name", [*TOKENIZERS, "own code"])
    # `test_uncompiled.py` compares both on others.
    @settings(deadline=None, max_examples=examples(45))
    @given(texts=ANY_TEXTS, unseen=ANY_TEXTS)
    @example(texts=DOCUMENTS, unseen=[*DOCUMENTS, "unseen, words \U0001f642", "a\\ b a\x01b"])
    def test_counts_of_any_text(self, name, texts, unseen):
        """Also where expressions find the words, and the kernel counts them."""
        tokenizer = TOKENIZERS.get(name, OwnTokenizer(ngram_range=(1, 2)))
        assert bool(reason_for_expressions(tokenizer)) == (name not in cases.COMPILED)
        frame, rest = (cases.two_columns(tokenizer, each) for each in (texts, unseen))
        cases.assert_same_counts(both, tokenizer, frame, rest)

    @pytest.mark.sweep(3)
    @pytest.mark.parametrize("case", CASES)
    def test_counts_of_particular_texts(self, case):
        make, names = CASES[case]
        frame = frame_of(make())
        for name in names:
            cases.assert_same_counts(both, TOKENIZERS[name], frame, frame)

    @pytest.mark.parametrize("terms", [1, 2, 600, 9000])
    def test_rows_of_more_columns_are_sorted(self, terms, monkeypatch):
        monkeypatch.setattr(matrix, "_MAX_UNSORTED_COLUMNS", 0)
        frame = frame_of(rows_of_all_lengths(terms))
        cases.assert_same_counts(both, TOKENIZERS["default"], frame, frame)

    @pytest.mark.parametrize("name", ["default", "pairs", "within words", "stop words"])
    @pytest.mark.parametrize("above", [None, 0.0, 1.0, 1.5, -1.0, np.inf])
    @pytest.mark.parametrize("frequency", [False, True])
    def test_sums_per_class(self, name, above, frequency):
        draw = random.Random(3)
        texts = [" ".join(draw.choices(WORDS, k=draw.randrange(12))) for _ in range(400)]
        frame = frame_of([*texts, None, ""],
                         label=[f"class {draw.randrange(5)}" for _ in range(402)])
        one, other = both(lambda: count_by_label(
            batches(frame, ["text"], max_rows=37), CountSpec(
                TOKENIZERS[name], "text", "label", Limits(min_df=1 + frequency), above)))
        assert one.terms.equals(other.terms)
        assert one.equals(other)
        assert one.class_count.dtype == one.values.dtype == np.int64
        for part in ("document_frequency", "occurrences"):
            left, right = getattr(one, part), getattr(other, part)
            assert (left is None) == (right is None)
            if left is not None:
                assert left.dtype == right.dtype == np.int64
                assert np.array_equal(left, right)

    @pytest.mark.parametrize("limits", [
        Limits(min_df=2), Limits(max_df=2), Limits(max_df=0.4), Limits(max_features=3),
        Limits(min_df=2, max_features=2), Limits(min_df=5)])
    def test_limits(self, limits):
        texts = ["ab cd ef gh ij", "ab cd ef gh", "cd ab", None, "cd ef gh ij ab"]
        for name in ("default", "pairs", "three to four"):
            assert_same_matrix(*both(lambda name=name: count_matrix(
                [frame_of(texts)], TOKENIZERS[name], "text", limits)))

    @pytest.mark.parametrize("members", ["\\w", r"\p{L}\p{M}\p{N}_", "a-z'", WHITE, "\\d"])
    def test_every_code_point_is_in_the_class_that_the_engine_has_it_in(self, members):
        codes, characters = every_character()
        listed = characters.str.contains(f"^(?s:[{members}])$")
        every = np.frombuffer(characters.str.join("").item().encode(), np.uint8)
        assert np.array_equal(CharacterClass(members).of(every)[codes] != 0, listed.to_numpy())

    @pytest.mark.parametrize("character", [
        "\0", "\x7f", "\x80", "\u07ff", "\u0800", "\u2fff", "\u3000", "\ud7ff", "\uffff",
        "\U00010000", "\U0010ffff"])
    def test_the_class_reaches_as_far_as_the_text(self, character):
        own = CharacterClass(r"\p{L}")
        expected = pl.Series([character]).str.contains(r"^\p{L}$").item()
        for text in (f"a{character}", f"a{character}" * 1_100_000):
            found = own.of(np.frombuffer(text.encode(), np.uint8))
            assert (found[ord("a")], found[ord(character)]) == (1, expected)
        frame = frame_of([f"ab{character}cd", "x"])
        assert_same_matrix(*both(lambda: count_matrix([frame], Tokenizer(), "text")))

    @pytest.mark.parametrize("corpus_name", [
        "sms_spam", "bbc_news", "r8", "indicnews_bengali", "20newsgroups", "ag_news_subset"])
    @pytest.mark.parametrize(("name", "every"), [
        ("default", 1), ("scikit-learn", 1), ("pairs", 8), ("within words", 8)])
    def test_real_corpora(self, corpus_name, name, every, corpus):
        frame = corpus(corpus_name).select("text").collect().gather_every(every)
        assert_same_matrix(*both(
            lambda: count_matrix(batches(frame, ["text"]), TOKENIZERS[name], "text")))

    @pytest.mark.parametrize(("terms", "name"), [([], "ab"), (["ab"], "xx")])
    def test_the_first_stranger_is_named(self, terms, name):
        known, frame = pl.Series(terms, dtype=pl.String), frame_of(["ab zz", "yy xx zz", "ab"] * 40)
        one, other = both(lambda: Vocabulary(Tokenizer(), known).count_known_terms(frame, "text"))
        assert one == other == (DataError, f"term '{name}' was never learned")

    @pytest.mark.parametrize("above", [None, 0.0])
    def test_counts_that_outgrow_their_type(self, above, monkeypatch):
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        frame = frame_of(["a b b", "b", None, "a a c"] * 50, label=[0, 1, 1, 2] * 50)

        def counted():
            return count_by_label(batches(frame, ["text"], max_rows=7), CountSpec(
                Tokenizer(r"\w+"), "text", "label", presence_above=above)).feature_count

        whole = counted()
        monkeypatch.setattr(counting, "_MAX_INT32", 20)
        grown = counted()
        assert np.array_equal(grown, whole)
        assert grown.dtype == whole.dtype == np.int64


class TestCollisions:
    """Words that were chosen to meet in a table do so for one secret, and for no other."""

    SECRET = np.array([3**39, 3**40, 11**18, 5**25], dtype=np.uint64)
    OTHER = np.array([3**37, 5**27, 13**17, 7**20], dtype=np.uint64)

    @staticmethod
    def table(secret=None):
        return TermTable(usable_kernel(), Tokenizer(r"\w+"), secret)

    @staticmethod
    def places(words, secret, bits):
        """Where short words go: the formula of the table, in Python's integers."""
        first, second, third = (int(value) for value in secret[:3])
        found = []
        for word in words:
            key = int.from_bytes(word.encode(), "little") | len(word) + 1 << 56
            mixed = (key ^ first) * second % 2**64
            found.append((mixed ^ mixed >> 32) * third % 2**64 >> 64 - bits)
        return found

    def longest_run(self, words, secret):
        table = self.table(secret)
        table.add_terms(pl.Series(words))
        taken = "".join("x" if code else " " for code in table._table.arrays()[0][1::2])
        return max(map(len, taken.split()))

    def test_the_table_is_not_slower_for_them(self):
        draw = random.Random(0)
        words = sorted({"".join(draw.choices("abcdefghijklmnop", k=7)) for _ in range(150_000)})
        places = self.places(words, self.SECRET, 32)
        attack = [words[at] for at in np.argsort(places)[:1000]]
        assert self.longest_run(attack, self.SECRET) >= 1000
        assert self.longest_run(attack, self.OTHER) < 100
        secrets = [self.table().hash_keys for _ in range(2)]
        assert not np.array_equal(*secrets)
        assert max(self.longest_run(attack, secret) for secret in secrets) < 100

    def test_they_are_told_apart_all_the_same(self):
        words = sorted({f"{prefix}{number:07}" for number in range(300)
                        for prefix in ("", "abcdefg", "abcdefgabcdefg")})
        # With such a secret all long words have the key of their last bytes.
        table = self.table(np.array([1, 1, 1, 0], dtype=np.uint64))
        codes = table.add_terms(pl.Series(words))
        assert len(set(codes.tolist())) == len(words)
        assert table.strings(codes).to_list() == words
        found, ends = table.look_up(frame_of([*words, "abcdefg0000300"]), "text")
        assert found.tolist() == [*codes.tolist(), -1]
        assert ends.tolist() == list(range(1, len(words) + 2))


class TestChoice:
    @pytest.mark.parametrize("name", TOKENIZERS)
    def test_expressions_find_the_words_of_other_tokenizers_and_the_reason_is_said(self, name):
        reason = reason_for_expressions(TOKENIZERS[name])
        assert describe_engine(TOKENIZERS[name]).startswith("the compiled kernel") == (reason == "")
        if name not in cases.BY_EXPRESSIONS:
            assert reason == ""
        elif "pattern=" in repr(TOKENIZERS[name]):
            assert re.match(r"the pattern .* is not a run of one class of characters$", reason)
        else:
            assert re.match("the kernel does not know (token_columns|segmenter)=", reason)

    def test_without_a_kernel_expressions_are_run(self, monkeypatch):
        monkeypatch.delenv("TEXTNB_KERNEL", raising=False)
        monkeypatch.setattr(
            native, "load_compiled", lambda package: Build(None, "it was not compiled"))
        assert reason_for_expressions(Tokenizer()) == "it was not compiled"
        assert count_matrix([frame_of(["ab"])], Tokenizer(), "text")[1].to_list() == ["ab"]
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        with pytest.raises(ParameterError, match=r"TEXTNB_KERNEL=on, but .* it was not compiled; "):
            count_matrix([frame_of(["ab"])], Tokenizer(), "text")

    @pytest.mark.parametrize("value", ["true", "auto", "ON", "0"])
    def test_the_setting_is_on_or_off(self, value, monkeypatch):
        monkeypatch.setenv("TEXTNB_KERNEL", value)
        with pytest.raises(ParameterError, match=f"TEXTNB_KERNEL: unknown value '{value}'"):
            TextClassifier().fit(["ab", "cd"], ["x", "y"])
        monkeypatch.setenv("TEXTNB_KERNEL", "")
        assert usable_kernel() is load_compiled(KERNEL).kernel

    def test_a_table_that_failed_is_not_used_again(self):
        tables = compiled.Tables(usable_kernel(), Tokenizer())
        with pytest.raises(MemoryError), tables.take():
            raise MemoryError
        for _ in range(2):
            with tables.take() as (number, _):
                assert number == 1


# What is done to a module: its source, its extension, and the reason that is given.
CHANGES = {
    "none": (None, None, "^$"),
    "other line ends": (lambda source: source.replace(b"\n", b"\r\n"), None, "^$"),
    "stale": (lambda source: source + b"# changed\n", None,
              "^it was compiled from another {}.py: install textnb again"),
    # Not even imported: without Cython it could not be.
    "absent": (None, Path.unlink, "^it was not compiled when textnb was installed"),
    "damaged": (None, lambda file: file.write_bytes(b"not an extension"),
                "^it can't be loaded: "),
}


class TestBuild:
    """What was built from other sources, or not at all, is not taken for the kernel."""

    @pytest.mark.parametrize("name", PACKAGES[KERNEL])
    @pytest.mark.parametrize("change", CHANGES)
    def test_the_reason_is_said(self, change, name, tmp_path):
        own = Path(textnb.__file__).parent
        for folder in ("textnb", "textnb/text", "textnb/runtime"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "__init__.py").touch()
        shutil.copy(own / "runtime/native.py", tmp_path / "textnb/runtime")
        folder = tmp_path / "textnb/text/native"
        shutil.copytree(own / "text/native", folder)
        edit, damage, reason = CHANGES[change]
        if edit:
            source = folder / f"{name}.py"
            source.write_bytes(edit(source.read_bytes()))
        for extension in folder.glob(f"{name}.*.so") if damage else ():
            damage(extension)
        # Cython is not imported.
        program = ("import sys; sys.modules.update(cython=None, Cython=None); "
                   "from textnb.runtime.native import KERNEL, load_compiled; "
                   "print(load_compiled(KERNEL).reason)")
        ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True,
                             text=True, check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
        assert re.search(reason.format(name), ran.stdout.strip())


class TestClassifier:
    FRAME = frame_of(["good film été", "bad film", "so good", None, "İ bad bad"],
                     label=["pos", "neg", "pos", "pos", "neg"])

    @pytest.mark.sweep(2)
    @pytest.mark.parametrize("texts", [
        ["good film"], ["GOOD", "", "BAD film film"], ["été good"], ["İ"], ["\x00 bad"], []])
    def test_a_few_texts_are_answered_as_in_a_frame(self, texts, monkeypatch):
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        for name in cases.COMPILED:
            model = TextClassifier(BernoulliNB(), tokenizer=TOKENIZERS[name])
            try:
                model.fit(self.FRAME)
            except VocabularyError:
                continue
            answered = model.predict(frame_of([*texts]), scores=True)
            scores = model.predict_joint_log_proba(texts)
            assert np.array_equal(scores, answered["scores"].struct.unnest().to_numpy())
            assert model.predict(texts).tolist() == answered["predicted"].to_list()

    def test_a_lone_surrogate_is_refused(self, monkeypatch):
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        model = TextClassifier().fit(self.FRAME)
        with pytest.raises(DataError, match="surrogate"):
            model.predict(["good \ud800"])
