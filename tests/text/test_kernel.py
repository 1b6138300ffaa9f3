"""The compiled path and the expressions give the same bits, whatever the texts are."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tests.tiers import examples
from textnb import BernoulliNB, MultinomialNB, TextClassifier, Tokenizer
from textnb.errors import DataError, ParameterError, VocabularyError
from textnb.frames.batches import batches
from textnb.text import compiled, counting
from textnb.text.compiled import WORTH_LOADING, loops_for, possible
from textnb.text.counts import count_by_label
from textnb.text.matrix import Vocabulary, count_matrix
from textnb.text.plan import WHITE
from textnb.text.termtable import TermTable, _class_table
from textnb.text.vocabulary import Limits

pytest.importorskip("numba", reason="the compiled path needs Numba: pip install 'textnb[fast]'")

T = TypeVar("T")
SERVED = {
    "default": Tokenizer(),
    "scikit-learn": Tokenizer.sklearn(),
    "one letter": Tokenizer(r"\w+", lowercase=False),
    "ASCII": Tokenizer("[a-z']{3,}"),
    "pairs": Tokenizer(ngram_range=(1, 2)),
    "pairs alone": Tokenizer(ngram_range=(2, 2)),
    "three to four": Tokenizer(ngram_range=(3, 4)),
    "stop words": Tokenizer(stop_words=("the", "a b", "ÉTÉ"), ngram_range=(1, 3)),
    "normal form": Tokenizer(normalize="NFKC", strip_accents="unicode"),
    "to ASCII": Tokenizer(strip_accents="ascii"),
    "characters": Tokenizer(analyzer="char", ngram_range=(1, 3)),
    "within words": Tokenizer(analyzer="char_wb", ngram_range=(2, 4)),
    "longer than words": Tokenizer(analyzer="char_wb", ngram_range=(6, 7)),
}
NOT_SERVED = [Tokenizer(r"[\p{L}']{2,}|[\p{N}]+"), Tokenizer("[^,]+"),
              Tokenizer(field_prefix=True), Tokenizer(r"\d+(?:\.\d+)?")]
# The last before the surrogates and the first behind, the last of all; one, two, three and four
# bytes; marks, joiners and what folds; NUL; white space of many kinds; unassigned.
ODD = "\x00\x1c\x85\xa0  　﻿​‍़्ँ́İıßſKſςΣͅ🙂‿_-'09٣Ⅷ一힣퟿￾𐐀𝒜𠀀󠀁􏿿\U00050000"
DOCUMENTS: list[str | None] = [
    "The cat's 2 naïve हिन्दी cats!", None, "", "the THE cat_9 été ÉTÉ", ODD, "\x00\x00 a\x00b ab",
    "x" * 7 + " " + "x" * 8 + " " + "x" * 14 + " " + "x" * 15, "sevenab sevenabc", "a b  c\t\nd"]


def frame_of(texts: list[str | None], **columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"text": texts, **columns}, schema_overrides={"text": pl.String})


def both(run: Callable[[], T]) -> tuple[T, T]:
    """What comes out compiled, and by expressions; an error by its type and words."""
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for kernel in ("on", "off"):
            patch.setenv("TEXTNB_KERNEL", kernel)
            try:
                found.append(run())
            except (DataError, VocabularyError) as error:
                found.append((type(error), str(error)))
    return found[0], found[1]


def assert_same_matrix(one: Any, other: Any) -> None:
    if isinstance(one, tuple) and isinstance(one[0], type):
        assert one == other
        return
    (rows, terms), (own, names) = one, other
    assert terms.equals(names)
    assert terms.name == names.name
    assert_same_rows(rows, own)


def assert_same_rows(rows: sp.csr_array, own: sp.csr_array) -> None:
    assert rows.shape == own.shape
    for part in ("indptr", "indices", "data"):
        left, right = getattr(rows, part), getattr(own, part)
        assert left.dtype == right.dtype
        assert np.array_equal(left, right)
    assert rows.has_canonical_format


def table_of(tokenizer: Tokenizer, secret: Any = None) -> TermTable:
    found = loops_for(tokenizer, WORTH_LOADING)
    assert found is not None
    return TermTable(found, tokenizer, secret)


TEXTS = st.lists(
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    | st.text(st.sampled_from(ODD + "aab  \nthe"), max_size=60), max_size=8)


class TestEquality:
    @pytest.mark.parametrize("name", SERVED)
    @settings(deadline=None, max_examples=examples(60))
    @given(texts=TEXTS)
    @example(texts=DOCUMENTS)
    def test_matrices_of_any_text(self, name: str, texts: list[str | None]) -> None:
        tokenizer = SERVED[name]
        assert possible(tokenizer)
        assert_same_matrix(*both(lambda: count_matrix([frame_of(texts)], tokenizer, "text")))

    @pytest.mark.parametrize("name", SERVED)
    @settings(deadline=None, max_examples=examples(30))
    @given(texts=TEXTS, unseen=TEXTS)
    @example(texts=DOCUMENTS, unseen=[*DOCUMENTS, "unseen words 🙂"])
    def test_look_up_in_a_vocabulary(
        self, name: str, texts: list[str | None], unseen: list[str | None]
    ) -> None:
        """Words outside of it are passed over; n-grams of known words may be outside too."""
        tokenizer = SERVED[name]
        listed = frame_of(texts).select(tokenizer.expr("text").explode())["text"]
        terms = listed.drop_nulls().unique().sort().gather_every(2)
        assert_same_rows(*both(
            lambda: Vocabulary(tokenizer, terms).counts(frame_of(unseen), "text")))

    def test_terms_that_no_text_can_hold(self) -> None:
        terms = pl.Series(sorted(["", " ", "a  b", "ab cd", "don't", "Upper", "ab", "x", "cd  ab"]))
        for name in ("default", "pairs", "pairs alone", "within words"):
            rows, own = both(lambda name=name: Vocabulary(SERVED[name], terms).counts(
                frame_of(["ab cd  ab don't Upper x", "cd ab"]), "text"))
            assert_same_rows(rows, own)
            assert rows.nnz > 0

    @pytest.mark.parametrize("name", ["default", "pairs", "within words", "stop words"])
    @pytest.mark.parametrize("above", [None, 0.0, 1.0, 1.5, -1.0, np.inf])
    @pytest.mark.parametrize("frequency", [False, True])
    def test_sums_per_class(self, name: str, above: float | None, frequency: bool) -> None:
        draw = random.Random(3)
        words = ["the", "cat", "été", "हिन्दी", "x", "longer_than_seven", "9"]
        texts = [" ".join(draw.choices(words, k=draw.randrange(12))) for _ in range(400)]
        frame = frame_of([*texts, None, ""],
                         label=[f"class {draw.randrange(5)}" for _ in range(402)])
        one, other = both(lambda: count_by_label(
            batches(frame, ["text"], rows=37), SERVED[name], "text", "label",
            presence_above=above, document_frequency=frequency))
        assert one.terms.equals(other.terms)
        assert one.labels.equals(other.labels)
        for part in ("class_count", "feature_count", "document_frequency", "occurrences"):
            left, right = getattr(one, part), getattr(other, part)
            assert (left is None) == (right is None)
            if left is not None:
                assert left.dtype == right.dtype == np.int64
                assert np.array_equal(left, right)

    @pytest.mark.parametrize("name", ["default", "pairs alone", "characters"])
    def test_several_text_columns(self, name: str) -> None:
        frame = pl.DataFrame({"title": ["ab cd", None, "ef"], "body": ["gh", "ab", None]})
        columns = ["title", "body"]
        assert_same_matrix(*both(lambda: count_matrix([frame], SERVED[name], columns)))

    @pytest.mark.parametrize("limits", [
        Limits(min_df=2), Limits(max_df=2), Limits(max_df=0.4), Limits(max_features=3),
        Limits(min_df=2, max_features=2), Limits(min_df=5)])
    @pytest.mark.parametrize("name", ["default", "pairs", "three to four"])
    def test_limits(self, name: str, limits: Limits) -> None:
        texts: list[str | None] = ["ab cd ef gh ij", "ab cd ef gh", "cd ab", None, "cd ef gh ij ab"]
        assert_same_matrix(*both(
            lambda: count_matrix([frame_of(texts)], SERVED[name], "text", limits)))

    def test_texts_longer_than_what_is_looked_at_at_a_time(self) -> None:
        draw = random.Random(5)
        parts = ["ab", "é", "हिन्दी", "x", "  ", "\n", "cat", "日本語", "-"]
        texts: list[str | None] = [
            "".join(draw.choices(parts, k=60_000)), "a" * 200_000,
            "é" * 100_000 + " " + "b" * 70_000, "日本語" * 40_000, "word " * 30_000, "end"]
        for name in ("default", "pairs", "characters", "within words"):
            assert_same_matrix(*both(
                lambda name=name: count_matrix([frame_of(texts)], SERVED[name], "text")))

    @pytest.mark.parametrize("members", ["\\w", r"\p{L}\p{M}\p{N}_", "a-z'", WHITE, "\\d"])
    def test_every_code_point_is_in_the_class_that_the_engine_has_it_in(self, members: str) -> None:
        codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
        listed = pl.Series([chr(code) for code in codes]).str.contains(f"^(?s:[{members}])$")
        assert np.array_equal(_class_table(members)[codes] != 0, listed.to_numpy())

    @pytest.mark.parametrize("name", [
        "sms_spam", "bbc_news", "r8", "indicnews_bengali", "20newsgroups", "ag_news_subset"])
    def test_real_corpora(self, name: str, corpus: Callable[[str], pl.LazyFrame]) -> None:
        frame = corpus(name).select("text").collect()
        for kind in ("default", "scikit-learn"):
            assert_same_matrix(*both(lambda kind=kind: count_matrix(
                batches(frame, ["text"]), SERVED[kind], "text")))
        some = frame.gather_every(8)
        for kind in ("pairs", "within words"):
            assert_same_matrix(*both(lambda kind=kind: count_matrix(
                batches(some, ["text"]), SERVED[kind], "text")))


    @pytest.mark.parametrize("terms", [1, 2, 600, 9000])
    def test_rows_of_all_lengths(self, terms: int) -> None:
        draw = random.Random(terms)
        texts = [" ".join(f"w{draw.randrange(terms)}" for _ in range(length))
                 for length in [0, 1, 23, 24, 25, 26, 4000, *range(2, 400, 19), 1]]
        assert_same_matrix(*both(lambda: count_matrix([frame_of(texts)], Tokenizer(), "text")))
        vocabulary = pl.Series(sorted({f"w{number}" for number in range(0, terms, 3)}))
        assert_same_rows(*both(
            lambda: Vocabulary(Tokenizer(), vocabulary).counts(frame_of(texts), "text")))

    def test_words_that_begin_and_end_anywhere(self) -> None:
        texts = [before * offset + word * length + after
                 for before in " é" for word in ("a", "ß") for after in ("", " ", "한")
                 for offset in range(18) for length in range(18)]
        for tokenizer in (Tokenizer(), Tokenizer(r"[a-zß]+"), Tokenizer(r"\w{3,}")):
            assert_same_matrix(*both(
                lambda tokenizer=tokenizer: count_matrix([frame_of(texts)], tokenizer, "text")))


    @pytest.mark.parametrize("terms", [[], ["ab"]])
    def test_the_first_stranger_is_named(self, terms: list[str]) -> None:
        known, frame = pl.Series(terms, dtype=pl.String), frame_of(["ab zz", "yy xx zz", "ab"] * 40)
        one, other = both(lambda: Vocabulary(Tokenizer(), known).counts_of_known(frame, "text"))
        name = "ab" if not terms else "xx"
        assert one == other == (DataError, f"term '{name}' was never learned")


class TestOrder:
    def test_neither_batches_nor_threads_nor_rows_show(self, monkeypatch: Any) -> None:
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        draw = random.Random(1)
        texts = [" ".join(f"w{draw.randrange(500)}" for _ in range(20)) for _ in range(600)]
        whole = count_matrix([frame_of([*texts])], SERVED["pairs"], "text")
        for rows in (7, 101, 599):
            assert_same_matrix(count_matrix(
                batches(frame_of([*texts]), rows=rows), SERVED["pairs"], "text"), whole)
        order = draw.sample(range(600), 600)
        shuffled, terms = count_matrix(
            batches(frame_of([texts[at] for at in order]), rows=50), SERVED["pairs"], "text")
        assert_same_matrix((sp.csr_array(shuffled[np.argsort(order)]), terms), whole)


class TestSums:
    @pytest.mark.parametrize("above", [None, 0.0])
    def test_counts_that_outgrow_their_type(
        self, above: float | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        frame = frame_of(["a b b", "b", None, "a a c"] * 50, label=[0, 1, 1, 2] * 50)

        def counted() -> Any:
            return count_by_label(batches(frame, ["text"], rows=7), Tokenizer(r"\w+"), "text",
                                  "label", presence_above=above).feature_count

        whole = counted()
        monkeypatch.setattr(counting, "_MOST_32", 20)
        grown = counted()
        assert np.array_equal(grown, whole)
        assert grown.dtype == whole.dtype == np.int64


class TestCollisions:
    """Words that were chosen to meet in a table do so for one secret, and for no other."""

    SECRET = np.array([3**39, 3**40, 11**18, 5**25], dtype=np.uint64)
    OTHER = np.array([3**37, 5**27, 13**17, 7**20], dtype=np.uint64)

    @staticmethod
    def places(words: list[str], secret: np.ndarray[Any, Any], bits: int) -> list[int]:
        """Where short words go: the formula of the table, in Python's integers."""
        first, second, third = (int(value) for value in secret[:3])
        found = []
        for word in words:
            key = int.from_bytes(word.encode(), "little") | len(word) + 1 << 56
            mixed = (key ^ first) * second % 2**64
            found.append((mixed ^ mixed >> 32) * third % 2**64 >> 64 - bits)
        return found

    def longest_run(self, words: list[str], secret: np.ndarray[Any, Any]) -> int:
        table = table_of(Tokenizer(r"\w+"), secret)
        table.hold(pl.Series(words))
        taken = "".join("x" if code else " " for code in table._table[0][1::2])
        return max(map(len, taken.split()))

    def test_the_table_is_not_slower_for_them(self) -> None:
        draw = random.Random(0)
        words = sorted({"".join(draw.choices("abcdefghijklmnop", k=7)) for _ in range(150_000)})
        places = self.places(words, self.SECRET, 32)
        attack = [words[at] for at in np.argsort(places)[:1000]]
        assert self.longest_run(attack, self.SECRET) >= 1000
        assert self.longest_run(attack, self.OTHER) < 100
        tables = [table_of(Tokenizer(r"\w+")) for _ in range(2)]
        assert not np.array_equal(tables[0].secret, tables[1].secret)
        assert max(self.longest_run(attack, table.secret) for table in tables) < 100

    def test_they_are_told_apart_all_the_same(self) -> None:
        words = sorted({f"{prefix}{number:07}" for number in range(300)
                        for prefix in ("", "abcdefg", "abcdefgabcdefg")})
        # With such a secret all long words have the key of their last bytes.
        table = table_of(Tokenizer(r"\w+"), np.array([1, 1, 1, 0], dtype=np.uint64))
        codes = table.hold(pl.Series(words))
        assert len(set(codes.tolist())) == len(words)
        assert table.strings(codes).to_list() == words
        found, ends = table.found(frame_of([*words, "abcdefg0000300"]), "text")
        assert found.tolist() == [*codes.tolist(), -1]
        assert ends.tolist() == list(range(1, len(words) + 2))


class TestChoice:
    @pytest.mark.parametrize("tokenizer", NOT_SERVED)
    def test_other_tokenizers_run_by_expressions(self, tokenizer: Tokenizer) -> None:
        assert loops_for(tokenizer, 1 << 40) is None

    def test_without_numba_expressions_are_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compiled, "_installed", lambda: False)
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        assert loops_for(Tokenizer(), 1 << 40) is None
        assert count_matrix([frame_of(["ab"])], Tokenizer(), "text")[1].to_list() == ["ab"]

    @staticmethod
    def refused(**environment: str) -> str:
        """What is told where the loops can't be used."""
        program = "\n".join([
            "from textnb import Tokenizer", "from textnb.text.compiled import loops_for",
            "assert loops_for(Tokenizer(), 1 << 40) is None",
            "assert loops_for(Tokenizer(), 1 << 40) is None"])
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": str(Path.cwd()), **environment})
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr.count("Numba can't be used, so texts are read more slowly: ") == 1
        return ran.stderr

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("error", ["ImportError", "RuntimeError", "OSError", "AttributeError"])
    def test_where_numba_is_there_and_fails_expressions_are_run(
        self, error: str, tmp_path: Path
    ) -> None:
        (tmp_path / "numba.py").write_text(f"raise {error}('it needs another NumPy')")
        told = self.refused(PYTHONPATH=f"{tmp_path}:{Path.cwd()}")
        assert ": it needs another NumPy. If its files are damaged, delete" in told

    def test_where_numba_is_switched_off_expressions_are_run(self) -> None:
        assert ": NUMBA_DISABLE_JIT is set. " in self.refused(NUMBA_DISABLE_JIT="1")

    @pytest.mark.slow
    def test_where_what_was_compiled_is_damaged_expressions_are_run(self, tmp_path: Path) -> None:
        kept = {"NUMBA_CACHE_DIR": str(tmp_path)}
        program = ("from textnb.text import kernel_rows; import numpy as np; "
                   "kernel_rows.without_first(np.zeros(1, np.int32), np.ones(1, np.int64), 1)")
        subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, **kept})
        for path in tmp_path.rglob("kernel_rows.without_first*.nbi"):
            path.write_bytes(path.read_bytes()[:20])
        told = self.refused(**kept)
        assert "pickle data was truncated" in told
        assert "NUMBA_CACHE_DIR names another folder" in told

    @pytest.mark.slow
    def test_nothing_is_compiled_or_loaded_after_the_proof(self) -> None:
        program = """
import polars as pl
from textnb import BernoulliNB, NBLogisticRegression, TextClassifier, Tokenizer
from textnb.text import kernel, kernel_rows
from textnb.text.compiled import loops_for
def known():
    return {name: len(loop.signatures) for module in (kernel, kernel_rows)
            for name, loop in vars(module).items() if hasattr(loop, "signatures")}
frame = pl.DataFrame({"text": ["a b cc dd", "cc ee ff"] * 50, "label": ["x", "y"] * 50})
for tokenizer in (Tokenizer(), Tokenizer(stop_words=("ee",)), Tokenizer(ngram_range=(1, 2)),
                  Tokenizer(analyzer="char", ngram_range=(1, 2)),
                  Tokenizer(analyzer="char_wb", ngram_range=(2, 2))):
    loops_for(tokenizer, 1 << 30)
    proved = known()
    for model in (None, BernoulliNB(), NBLogisticRegression()):
        fitted = TextClassifier(model, tokenizer=tokenizer, min_df=2).fit(frame)
        fitted.predict(frame)
        fitted.predict(["cc dd"])
    assert known() == proved, (tokenizer, known(), proved)
"""
        subprocess.run([sys.executable, "-c", program], check=True,
                       env={**os.environ, "TEXTNB_KERNEL": "on"})

    def test_the_setting_is_one_of_three(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEXTNB_KERNEL", "true")
        with pytest.raises(ParameterError, match="TEXTNB_KERNEL: unknown value 'true'; choose"):
            TextClassifier().fit(["ab", "cd"], ["x", "y"])

    def test_a_table_that_failed_is_not_used_again(self) -> None:
        found = loops_for(Tokenizer(), WORTH_LOADING)
        assert found is not None
        tables = compiled.Tables(found, Tokenizer())
        with pytest.raises(MemoryError), tables.one():
            raise MemoryError
        with tables.one() as (number, _):
            assert number == 1
        with tables.one() as (number, _):
            assert number == 1

    def test_an_interrupt_within_a_loop_is_one(self) -> None:
        def stopped() -> None:
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

        def stopped_deep_within() -> None:
            cause: BaseException = KeyboardInterrupt()
            for _ in range(9):
                within = SystemError("returned a result with an exception set")
                within.__context__, cause = cause, within
            raise SystemError("returned a result with an exception set") from cause

        def failed() -> None:
            raise SystemError("something else") from ValueError("it")

        for loop in (stopped, stopped_deep_within, failed):
            loop.py_func = None  # type: ignore[attr-defined]
        loops = compiled._interruptible(SimpleNamespace(
            stopped=stopped, stopped_deep_within=stopped_deep_within, failed=failed))
        for loop in (loops.stopped, loops.stopped_deep_within):
            with pytest.raises(KeyboardInterrupt):
                loop()
        with pytest.raises(SystemError, match="something else"):
            loops.failed()

    def test_numba_is_imported_for_much_text_alone(self) -> None:
        program = """
import sys
import polars as pl
from textnb import TextClassifier
few = pl.DataFrame({"text": ["good film", "bad film"] * 50, "label": ["pos", "neg"] * 50})
small = TextClassifier().fit(few)
small.predict(few)
assert "numba" not in sys.modules
large = TextClassifier().fit(pl.concat([few.with_columns(pl.col("text") + " again" * 6000)] * 10))
assert "numba" in sys.modules
assert large.vocabulary_ == ["again", "bad", "film", "good"], large.vocabulary_
"""
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr

    def test_many_small_batches_are_worth_it_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TEXTNB_KERNEL", raising=False)
        vocabulary = Vocabulary(Tokenizer(), pl.Series(["ab"]))
        for _ in range(900):
            assert vocabulary.counts(frame_of(["ab ab"]), "text").toarray().tolist() == [[2]]
        assert vocabulary._table is not None


class TestClassifier:
    FRAME = frame_of(["good film été", "bad film", "so good", None, "İ bad bad"],
                     label=["pos", "neg", "pos", "pos", "neg"])

    @pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB()])
    def test_models_and_answers_are_the_same_bits(self, estimator: Any) -> None:
        def run() -> tuple[Any, ...]:
            model = TextClassifier(estimator, tokenizer=Tokenizer(ngram_range=(1, 2)))
            model.fit(self.FRAME).partial_fit(self.FRAME).forget(self.FRAME)
            return (model.predict(self.FRAME, scores=True, explain=3),
                    model.linear_form().weights, model.vocabulary_)

        one, other = both(run)
        assert_frame_equal(one[0], other[0], check_exact=True)
        assert np.array_equal(one[1], other[1])
        assert one[2] == other[2]

    @pytest.mark.parametrize("texts", [
        ["good film"], ["GOOD", "", "BAD film film"], ["été good"], ["İ"], ["\x00 bad"], []])
    def test_a_few_texts_are_answered_as_in_a_frame(
        self, texts: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        for tokenizer in SERVED.values():
            model = TextClassifier(BernoulliNB(), tokenizer=tokenizer).fit(self.FRAME)
            answered = model.predict(frame_of([*texts]), scores=True)
            scores = model.predict_joint_log_proba(texts)
            assert np.array_equal(scores, answered["scores"].struct.unnest().to_numpy())
            assert model.predict(texts).tolist() == answered["predicted"].to_list()

    def test_a_lone_surrogate_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        model = TextClassifier().fit(self.FRAME)
        model.predict(self.FRAME)
        with pytest.raises(DataError, match="surrogate"):
            model.predict(["good \ud800"])

    def test_it_is_pickled_without_its_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEXTNB_KERNEL", "on")
        model = TextClassifier().fit(self.FRAME)
        answers = model.predict(self.FRAME)
        assert_frame_equal(pickle.loads(pickle.dumps(model)).predict(self.FRAME), answers)
