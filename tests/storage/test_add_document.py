"""One document that is learned without Polars gives the file that all of the package gives."""

import random
import shutil
import subprocess
import sys
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import textnb
from tests.cli.conftest import PROGRAM
from tests.storage.members import with_value
from textnb import BernoulliNB, ModelFileError, MultinomialNB, TextClassifier, Tokenizer
from textnb.bayes.decision import Decision
from textnb.files.require import Unsupported
from textnb.learning.fitting import learn_more
from textnb.storage.add_document import ModelToExtend
from textnb.storage.textmodel import load_fitted, save_fitted
from textnb.text.utf8 import is_ascending

ROWS = pl.DataFrame({
    "subject": ["Free offer", "lunch", None, "été free", "नमस्ते", "the the the"],
    "body": ["now now now", "at noon", "free lunch", "a b", "x_1 longer_than_seven", ""],
    "label": ["spam", "ham", "ham", "spam", "other", "ham"]})
TWO = ROWS.filter(pl.col("label") != "other")
MESSAGES = [
    ("", ""), ("free free zz", "aa"), ("longer_than_seven longer_than_sevenx", "longer_than_seve"),
    ("नमस्ते दुनिया", "日本語テキスト"), ("\x00a1 \x01b2", "zzzz été ete"), ("lunch at", "now x_1")]
BOTH = {"text": ["subject", "body"]}
# Classifiers, and the rows that they have learned.
MODELS = [
    (TextClassifier(MultinomialNB(), **BOTH), ROWS),
    (TextClassifier(MultinomialNB(l=0.5, fit_prior=False), **BOTH,
                    tokenizer=Tokenizer(field_prefix=True)), ROWS),
    (TextClassifier(MultinomialNB(l="auto"), **BOTH), ROWS),
    (TextClassifier(MultinomialNB(), **BOTH, binary=True), ROWS),
    (TextClassifier(BernoulliNB(), text="body"), ROWS),
    (TextClassifier(textnb.ComplementNB(norm=True), text=["body", "subject"]), ROWS),
    (TextClassifier(textnb.ComplementNB(), **BOTH,
                    tokenizer=Tokenizer(ngram_range=(1, 3), stop_words=("the",))), ROWS),
    (TextClassifier(BernoulliNB(), text="subject",
                    tokenizer=Tokenizer(analyzer="char_wb", ngram_range=(2, 3))), ROWS),
    (TextClassifier(text="body"), ROWS.with_columns(label=pl.Series([0, 1, -5, 1, 0, 1]))),
    # Its counts are documents, whatever its features are.
    *((TextClassifier(textnb.NBLinear(idf=False, tf=tf), text="body"), TWO)
      for tf in ("sublinear", "count", "presence")),
]


def learn(path, texts, label):
    """What all of the package learns, written to the file."""
    fitted = load_fitted(path)
    more = learn_more(fitted, fitted.settings, pl.DataFrame(
        {name: [text] for name, text in texts.items()} | {"label": [label]}))
    save_fitted(more, path)
    return more


@pytest.mark.parametrize(("classifier", "rows"), MODELS)
def test_the_bytes_of_a_file(classifier, rows, tmp_path):
    model = classifier.fit(rows)
    labels = model.classes_.tolist()
    if isinstance(model.estimator_, textnb.ComplementNB):
        model.set_calibration(textnb.Calibration(2.0, 0.0, 10, "held-out rows"))
    if 0 in labels:
        model.set_decision(Decision({0: 0.0, 1: 1.0, -5: 2.0}, 1, {}))
    slow, quick = tmp_path / "slow.textnb", tmp_path / "quick.textnb"
    model.save(slow)
    shutil.copy(slow, quick)
    draw = random.Random(repr(classifier))
    for subject, body in MESSAGES:
        label = draw.choice(labels)
        expected = learn(slow, {"subject": subject, "body": body}, label)
        extended = ModelToExtend(quick)
        texts = {"subject": subject, "body": body}
        updated = extended.add({column: texts[column] for column in extended.columns}, label, quick)
        assert quick.read_bytes() == slow.read_bytes()
        assert (updated.n_classes, updated.n_terms) == (len(labels), len(expected.terms))
        assert updated.calibration == expected.calibration
        assert updated.decision == expected.decision
        assert updated.since_fit == expected.since_fit
    if 0 in labels:
        assert updated.decision.stale
    if isinstance(model.estimator_, textnb.NBLinear):
        assert updated.since_fit.learned == len(MESSAGES)


@pytest.mark.parametrize(("classifier", "text"), [
    *((classifier, "a") for classifier in (
        TextClassifier(text="body", min_df=1.0 / 6), TextClassifier(text="body", max_features=3),
        TextClassifier(text="body", vocabulary=["free", "noon"]),
        TextClassifier(MultinomialNB(class_weight="balanced"), text="body"),
        TextClassifier(MultinomialNB(l=0.0), text="body"),
        TextClassifier(BernoulliNB(binarize=1.0), text="body"),
        TextClassifier(text="body", memory_limit="1G"),
        TextClassifier(text="body", tokenizer=Tokenizer(pattern=r"[^,]+")))),
    # A character that is in no version of Unicode yet, and a text that is too long.
    (TextClassifier(text="body"), "\U000e0fff"),
    (TextClassifier(text="body"), "x" * (1 << 20) + "y")])
def test_models_and_texts_that_are_left_to_others(classifier, text, tmp_path):
    path = tmp_path / "m.textnb"
    classifier.fit(ROWS).save(path)
    before = path.read_bytes()
    with pytest.raises(Unsupported):
        ModelToExtend(path).add({"body": text}, "ham", path)
    assert path.read_bytes() == before


def test_files_that_are_left_to_others(tmp_path):
    path = tmp_path / "m.textnb"
    with pytest.warns(UserWarning, match="only one class"):
        TextClassifier(text="body").fit(ROWS.filter(pl.col("label") == "ham")).save(path)
    with pytest.raises(Unsupported, match="a single class"):
        ModelToExtend(path)
    TextClassifier(text="body").fit(ROWS, sample_weight=[1.0, 2.0, 1.0, 1.0, 1.0, 0.5]).save(path)
    with pytest.raises(Unsupported):
        ModelToExtend(path)
    TextClassifier(text="body").fit(ROWS).save(path)
    path.write_bytes(with_value(path.read_bytes(), ("settings", "news"), 1))
    with pytest.raises(ModelFileError, match="the setting 'news'"):
        ModelToExtend(path)
    for content in (b"", b"PK" * 400, b"x" * 4096):
        path.write_bytes(content)
        with pytest.raises((ModelFileError, Unsupported)):
            ModelToExtend(path)


@given(st.lists(st.binary(max_size=20) | st.sampled_from(
    [b"x" * n + end for n in (6, 7, 8, 14, 300) for end in (b"", b"\0", b"a")]), max_size=12),
    st.booleans())
def test_ascending(strings, ordered):
    strings = sorted(set(strings)) if ordered else strings
    ends = np.cumsum([len(one) for one in strings], dtype=np.int64)
    ascending = is_ascending(np.frombuffer(b"".join(strings), np.uint8), ends)
    assert ascending == all(a < b for a, b in pairwise(strings))


class TestCommand:
    """Whether ``textnb update`` needs Polars, in a process of its own."""

    @pytest.fixture
    def update(self, tmp_path):
        """Run the command; return what it says, and whether it has loaded Polars."""
        TextClassifier(**BOTH).fit(ROWS).save(tmp_path / "m.textnb")
        (tmp_path / "a.eml").write_text("Subject: Free lunch\n\nnew words\n")
        (tmp_path / "box.mbox").write_text("".join(
            f"From a@b Mon Mar  2 10:00:00 2026\nSubject: {name}\n\n{text}\n\n"
            for name, text in (("one", "x1"), ("two", "x2"))))

        def run(*arguments, given=None):
            code = (f"import atexit, sys\nsys.argv[1:] = {['update', 'm.textnb', *arguments]!r}\n"
                    f"atexit.register(lambda: print('polars' in sys.modules))\n{PROGRAM[2]}")
            done = subprocess.run(
                [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                input=(tmp_path / given).read_text() if given else "", timeout=120)
            assert done.returncode == 0, done.stderr
            return done.stderr, "True" in done.stdout

        return run

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize(("classifier", "rows", "arguments", "given"), [
        (TextClassifier(**BOTH), ROWS, ["a.eml"], None),
        (TextClassifier(**BOTH), ROWS, ["-", "--read", "format=mail"], "a.eml"),
        # The text of a message is subject and body.
        (TextClassifier(), ROWS.select("label", text="body"), ["a.eml"], None)])
    def test_one_message_needs_no_polars(
        self, classifier, rows, arguments, given, update, tmp_path
    ):
        classifier.fit(rows).save(tmp_path / "m.textnb")
        options = [*arguments, "--as", "spam", "-o"]
        messages, polars = update(*options, "new.textnb", given=given)
        assert not polars
        assert "learned from 1 document in" in messages
        assert "\n3 classes, " in messages
        assert messages.endswith(" terms -> new.textnb\n")
        _, polars = update(*options, "other.textnb", "--where", "true", given=given)
        assert polars
        assert (tmp_path / "new.textnb").read_bytes() == (tmp_path / "other.textnb").read_bytes()

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize(("arguments", "given", "learned"), [
        # A mailbox on standard input is read again.
        (["-", "--read", "format=mail"], "box.mbox", 2), (["box.mbox"], None, 2),
        (["a.eml", "--new-class", "x"], None, 1), (["a.eml", "--on-error"], None, 0)])
    def test_all_else_goes_the_other_way(self, arguments, given, learned, update):
        messages, polars = update(*arguments, "--as", "ham", given=given)
        assert polars
        assert f"learned from {learned} document" in messages
