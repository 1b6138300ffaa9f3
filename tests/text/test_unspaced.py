"""Pairs of characters of scripts without spaces: which characters, which tokens, which files."""

import pickle

import polars as pl
import pytest

import textnb
from tests.text import plain_tokens as oracle
from textnb import TextClassifier, Tokenizer
from textnb.export.archive import read
from textnb.filter.mailfilter import MailFilter
from textnb.filter.quick import judge
from textnb.text.characters import UNSPACED
from textnb.text.matrix import count_matrix
from textnb.text.plain import plain_tokens
from textnb.text.plan import Runs, WordsAndPairs

REVIEWS = pl.DataFrame({
    "text": [
        "房间很干净，服务很好", "早餐不好，房间很脏", "服务热情，位置很好",
        "房间太小，服务很差"] * 5,
    "label": ["spam", "ham", "spam", "ham"] * 5})


class TestCharacters:
    def test_they_are_those_of_the_scripts(self):
        """Of characters of words, by names that Unicode gives them: two ways to one set."""
        known = pl.Series([c for c in oracle.CHARACTERS if c not in oracle.foreign()])
        members = known.filter(known.str.contains(r"[\p{L}\p{M}\p{N}_]"))
        found = members.filter(members.str.contains(f"[{UNSPACED}]")).to_list()
        assert found == [c for c in members if oracle.is_unspaced(c)]

    def test_the_engine_finds_each_of_its_scripts_among_them(self):
        scripts = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
        characters = pl.Series(oracle.CHARACTERS)
        of_script = characters.filter(characters.str.contains(scripts)
                                      & characters.str.contains(r"[\p{L}\p{M}\p{N}]"))
        assert of_script.str.contains(f"^[{UNSPACED}]$").all()

    def test_lower_case_neither_makes_nor_changes_them(self):
        characters = pl.Series(oracle.CHARACTERS)
        changed = characters.str.to_lowercase() != characters
        either = characters + characters.str.to_lowercase()
        assert not (changed & either.str.contains(f"[{UNSPACED}]")).any()


class TestTokens:
    @pytest.mark.parametrize(("text", "tokens"), [
        ("房间很好", ["房间", "间很", "很好"]), ("好", ["好"]), ("好 a 很", ["好", "很"]),
        ("USB线A4纸", ["usb", "线", "a4", "纸"]), ("x好_", ["好"]),
        ("コーヒー", ["コー", "ーヒ", "ヒー"]), ("ﾊﾟｿ", ["ﾊﾟ", "ﾟｿ"]), ("人々", ["人々"]),
        ("ไทย", ["ไท", "ทย"]), ("한국어 텍스트", ["한국어", "텍스트"]),
        ("好:很|好\x01很", ["好", "很", "好", "很"]), ("𠀀一", ["𠀀一"])])
    def test_of_a_text(self, text, tokens):
        assert Tokenizer().tokens(text) == tokens
        assert plain_tokens(Tokenizer().plan(), {"text": text}) == tokens

    def test_shorter_words_are_dropped_and_pairs_are_not(self):
        tokenizer = Tokenizer(r"[\p{L}]{4,}", ngram_range=(1, 2))
        tokens = ["good", "房间", "好", "good 房间", "房间 好"]
        assert tokenizer.tokens("good bad房间, 好") == tokens

    @pytest.mark.parametrize(("pattern", "kind"), [
        (r"\w+", WordsAndPairs), (r"[\p{L}']{3,}", WordsAndPairs), (r"[\d]+", WordsAndPairs),
        ("[a-z']+", Runs)])
    def test_runs_that_may_hold_them(self, pattern, kind):
        assert type(Tokenizer(pattern).plan().after_cleaning[0]) is kind
        assert type(Tokenizer(pattern, unspaced="whole").plan().after_cleaning[0]) is Runs

    def test_other_patterns_find_words_by_themselves(self):
        assert Tokenizer("[^ ]+").tokens("房间很 好") == ["房间很", "好"]

    def test_there_is_room_for_words_that_nothing_parts(self):
        """Nothing need stand between a word of two letters and one of these characters."""
        texts = ["ab好" * 30_000, "a好" * 30_000, "好" * 60_000, "ab好" * 3]
        counts, terms = count_matrix([pl.DataFrame({"text": texts})], Tokenizer(), "text")
        assert terms.to_list() == ["ab", "好", "好好"]
        assert counts.toarray().tolist() == [
            [30_000, 30_000, 0], [0, 30_000, 0], [0, 0, 59_999], [3, 3, 0]]


class TestFilesFromBefore:
    """A file without the setting was learned with whole phrases, and keeps them."""

    @pytest.fixture
    def older(self, tmp_path, monkeypatch):
        model = TextClassifier(tokenizer=Tokenizer(unspaced="whole")).fit(REVIEWS)
        written = Tokenizer.to_dict

        def without(tokenizer):
            settings = written(tokenizer)
            del settings["unspaced"]
            return settings

        with monkeypatch.context() as patched:
            patched.setattr(Tokenizer, "to_dict", without)
            model.save(tmp_path / "model.textnb")
            textnb.export_model(model, tmp_path / "bundle", "python")
        return tmp_path

    def test_a_model(self, older):
        model = textnb.load(older / "model.textnb")
        assert model.tokenizer == Tokenizer(unspaced="whole")
        model.partial_fit(REVIEWS)
        assert "房间很干净" in model.vocabulary_
        assert MailFilter.load(older / "model.textnb").tokenizer == model.tokenizer

    def test_a_verdict_without_polars(self, older):
        message = "Subject: x\n\n房间很干净，服务很好\n".encode()
        path = str(older / "model.textnb")
        quick = judge(path, message, least_learned=1)
        own = MailFilter.load(path, least_learned=1).judge(message)
        assert quick.log_odds == pytest.approx(own.log_odds)

    def test_a_bundle(self, older):
        bundle, _ = read(older / "bundle", "a test")
        assert bundle.tokenizer == Tokenizer(unspaced="whole")
        assert textnb.verify_export(older / "bundle").passed

    def test_accents_were_combining_marks_alone(self):
        """Tatweel falls under "unicode" since, but not in what was learned before."""
        settings = {**Tokenizer(strip_accents="unicode").to_dict()}
        assert Tokenizer.from_file(settings).tokens("كِتـاب") == ["كتاب"]
        del settings["unspaced"]
        older = Tokenizer.from_file(settings)
        assert older.strip_accents == "marks"
        assert older.tokens("كِتـاب") == ["كتـاب"]
        assert Tokenizer.sklearn(strip_accents="unicode").strip_accents == "marks"

    def test_a_pickle(self):
        tokenizer = Tokenizer(lowercase=False)
        del tokenizer.__dict__["unspaced"]
        assert pickle.loads(pickle.dumps(tokenizer)) == Tokenizer(
            lowercase=False, unspaced="whole")
        assert pickle.loads(pickle.dumps(Tokenizer())) == Tokenizer()
