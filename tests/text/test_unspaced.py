"""Scripts without spaces: which characters are theirs, and files from before they were split."""

import pickle

import polars as pl
import pytest

import textnb
from tests.quick import judge
from tests.text import plain_tokens as oracle
from textnb import TextClassifier, Tokenizer
from textnb.export.archive import read
from textnb.filter.mailfilter import MailFilter
from textnb.text.characters import UNSPACED, UNSPACED_RANGES

REVIEWS = pl.DataFrame({
    "text": [
        "房间很干净，服务很好", "早餐不好，房间很脏", "服务热情，位置很好",
        "房间太小，服务很差"] * 5,
    "label": ["spam", "ham", "spam", "ham"] * 5})
WHOLE = Tokenizer(unspaced="whole")


class TestCharacters:
    CHARACTERS = pl.Series(oracle.CHARACTERS)

    def test_they_have_three_bytes_or_more(self):
        # The compiled loops have room for no more tokens than such characters make.
        assert min(len(chr(first).encode()) for first, _ in UNSPACED_RANGES) >= 3

    def test_they_are_those_of_the_scripts(self):
        """Of characters of words, by names that Unicode gives them: two ways to one set."""
        known = self.CHARACTERS.filter(~self.CHARACTERS.is_in([*oracle.foreign()]))
        members = known.filter(known.str.contains(r"[\p{L}\p{M}\p{N}_]"))
        found = members.filter(members.str.contains(f"[{UNSPACED}]")).to_list()
        assert found == [c for c in members if oracle.is_unspaced(c)]

    def test_the_engine_finds_each_of_its_scripts_among_them(self):
        scripts = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
        of_script = self.CHARACTERS.filter(
            self.CHARACTERS.str.contains(scripts)
            & self.CHARACTERS.str.contains(r"[\p{L}\p{M}\p{N}]"))
        assert of_script.str.contains(f"^[{UNSPACED}]$").all()

    def test_lower_case_neither_makes_nor_changes_them(self):
        lower = self.CHARACTERS.str.to_lowercase()
        either = (self.CHARACTERS + lower).str.contains(f"[{UNSPACED}]")
        assert not ((lower != self.CHARACTERS) & either).any()


class TestFilesFromBefore:
    """A file without the setting was learned with whole phrases, and keeps them."""

    @pytest.fixture
    def older(self, tmp_path, monkeypatch):
        model = TextClassifier(tokenizer=WHOLE).fit(REVIEWS)
        written = Tokenizer.to_dict
        with monkeypatch.context() as patched:
            patched.setattr(Tokenizer, "to_dict", lambda tokenizer: {
                name: value for name, value in written(tokenizer).items() if name != "unspaced"})
            model.save(tmp_path / "model.textnb")
            textnb.export_model(model, tmp_path / "bundle", "python")
        return tmp_path

    def test_a_model(self, older):
        model = textnb.load(older / "model.textnb")
        assert model.tokenizer == WHOLE
        model.partial_fit(REVIEWS)
        assert "房间很干净" in model.vocabulary_

    def test_a_verdict_with_and_without_polars(self, older):
        message = "Subject: x\n\n房间很干净，服务很好\n".encode()
        path = str(older / "model.textnb")
        mail_filter = MailFilter.load(path, min_learned=1)
        assert mail_filter.tokenizer == WHOLE
        quick = judge(path, message, min_learned=1)
        assert quick.log_odds == pytest.approx(mail_filter.judge(message).log_odds)

    def test_a_model_of_pairs(self, reloaded):
        """Pairs were the default: also of lists of tokens, for which the setting means nothing."""
        model = TextClassifier(tokenizer=Tokenizer(unspaced="pairs")).fit(REVIEWS)
        read = reloaded(model)
        assert read.tokenizer.unspaced == "pairs"
        assert {"房间", "很好"} <= set(read.vocabulary_)
        assert "房" not in read.vocabulary_
        lists = TextClassifier(tokenizer=Tokenizer(unspaced="pairs", token_columns=True)).fit(
            [["房间"], ["很"]], ["x", "y"])
        assert reloaded(lists).predict([["很"]]).tolist() == ["y"]

    def test_a_bundle(self, older):
        bundle, _ = read(older / "bundle", "a test")
        assert bundle.tokenizer == WHOLE
        assert textnb.verify_export(older / "bundle").passed

    def test_accents_were_combining_marks_alone(self):
        """Tatweel falls under "unicode" since, but not in what was learned before."""
        settings = Tokenizer(strip_accents="unicode").to_dict()
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
