"""One document that is learned without Polars gives the file that all of the package gives."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import PROGRAM
from tests.storage.members import arrays_of, with_array, with_value
from textnb import (
    BernoulliNB,
    Calibration,
    ComplementNB,
    ModelFileError,
    MultinomialNB,
    NBLinear,
    TextClassifier,
    Tokenizer,
)
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
MESSAGES = [
    ("", ""), ("free free zz", "aa"), ("longer_than_seven longer_than_sevenx", "longer_than_seve"),
    ("नमस्ते दुनिया", "日本語テキスト"), ("\x00a1 \x01b2", "zzzz été ete"), ("lunch at", "now x_1")]
MODELS: dict[str, Any] = {
    "multinomial": TextClassifier(MultinomialNB(), text=["subject", "body"]),
    "fields": TextClassifier(MultinomialNB(l=0.5, fit_prior=False), text=["subject", "body"],
                             tokenizer=Tokenizer(field_prefix=True)),
    "auto": TextClassifier(MultinomialNB(l="auto"), text=["subject", "body"]),
    "binary": TextClassifier(MultinomialNB(), text=["subject", "body"], binary=True),
    "bernoulli": TextClassifier(BernoulliNB(), text="body"),
    "complement": TextClassifier(ComplementNB(norm=True), text=["body", "subject"]),
    "pairs": TextClassifier(ComplementNB(), text=["subject", "body"],
                            tokenizer=Tokenizer(ngram_range=(1, 3), stop_words=("the",))),
    "characters": TextClassifier(BernoulliNB(), text="subject",
                                 tokenizer=Tokenizer(analyzer="char_wb", ngram_range=(2, 3))),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_bytes_of_a_file(name: str, tmp_path: Path) -> None:
    model = MODELS[name].fit(ROWS)
    if name == "complement":
        model.set_calibration(Calibration(2.0, 0.0, 10, "held-out rows"))
    slow, quick = tmp_path / "slow.textnb", tmp_path / "quick.textnb"
    model.save(slow)
    shutil.copy(slow, quick)
    draw = random.Random(name)
    for subject, body in MESSAGES:
        label = draw.choice(["spam", "ham", "other"])
        row = pl.DataFrame({"subject": [subject], "body": [body], "label": [label]})
        fitted = load_fitted(slow)
        expected = learn_more(fitted, fitted.settings, row)
        save_fitted(expected, slow)
        found = ModelToExtend(quick)
        texts = {"subject": subject, "body": body}
        updated = found.add({column: texts[column] for column in found.columns}, label, quick)
        assert quick.read_bytes() == slow.read_bytes()
        assert (updated.n_classes, updated.n_terms) == (3, len(expected.terms))
        assert updated.calibration == expected.calibration


@pytest.mark.parametrize("tf", ["sublinear", "count", "presence"])
def test_documents_are_counted_beside_weights(tf: str, tmp_path: Path) -> None:
    """Its counts are documents, whatever its features are."""
    rows = ROWS.filter(pl.col("label") != "other")
    slow, quick = tmp_path / "slow.textnb", tmp_path / "quick.textnb"
    TextClassifier(NBLinear(idf=False, tf=tf), text="body").fit(rows).save(slow)
    shutil.copy(slow, quick)
    for body in ("now now now lunch", "free new words"):
        fitted = load_fitted(slow)
        save_fitted(learn_more(fitted, fitted.settings, pl.DataFrame(
            {"body": [body], "label": ["ham"]})), slow)
        updated = ModelToExtend(quick).add({"body": body}, "ham", quick)
        assert quick.read_bytes() == slow.read_bytes()
    assert updated.since_fit is not None
    assert updated.since_fit.learned == 2


def test_other_labels_and_a_decision(tmp_path: Path) -> None:
    rows = ROWS.with_columns(label=pl.Series([0, 1, -5, 1, 0, 1]))
    model = TextClassifier(text="body").fit(rows)
    model.set_decision(Decision({0: 0.0, 1: 1.0, -5: 2.0}, 1, {}))
    path, other = tmp_path / "a.textnb", tmp_path / "b.textnb"
    model.save(path)
    updated = ModelToExtend(path).add({"body": "more words here"}, -5, other)
    assert updated.decision is not None
    assert updated.decision.stale
    fitted = load_fitted(path)
    save_fitted(learn_more(fitted, fitted.settings, pl.DataFrame(
        {"body": ["more words here"], "label": [-5]})), path)
    assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("model", [
    TextClassifier(text="body", min_df=1.0 / 6), TextClassifier(text="body", max_features=3),
    TextClassifier(text="body", vocabulary=["free", "noon"]),
    TextClassifier(MultinomialNB(class_weight="balanced"), text="body"),
    TextClassifier(MultinomialNB(l=0.0), text="body"),
    TextClassifier(BernoulliNB(binarize=1.0), text="body"),
    TextClassifier(text="body", memory_limit="1G"),
    TextClassifier(text="body", tokenizer=Tokenizer(pattern=r"[^,]+"))])
def test_what_is_left_to_others(model: Any, tmp_path: Path) -> None:
    model.fit(ROWS).save(tmp_path / "m.textnb")
    with pytest.raises(Unsupported):
        ModelToExtend(tmp_path / "m.textnb").add({"body": "a"}, "ham", tmp_path / "m.textnb")


def test_other_files_and_texts_are_left_to_others(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    with pytest.warns(UserWarning, match="only one class"):
        TextClassifier(text="body").fit(ROWS.filter(pl.col("label") == "ham")).save(path)
    with pytest.raises(Unsupported, match="a single class"):
        ModelToExtend(path)
    TextClassifier(text="body").fit(ROWS, sample_weight=[1.0, 2.0, 1.0, 1.0, 1.0, 0.5]).save(path)
    with pytest.raises(Unsupported):
        ModelToExtend(path)
    TextClassifier(text="body").fit(ROWS).save(path)
    before = path.read_bytes()
    # A character that is in no version of Unicode yet.
    for text in ("\U000e0fff", "x" * (1 << 20) + "y"):
        with pytest.raises(Unsupported):
            ModelToExtend(path).add({"body": text}, "ham", path)
    path.write_bytes(with_value(before, ("settings", "news"), 1))
    with pytest.raises(ModelFileError, match="the setting 'news'"):
        ModelToExtend(path)


def test_changed_arrays_under_right_checksums(tmp_path: Path) -> None:
    path, target = tmp_path / "m.textnb", tmp_path / "new.textnb"
    MODELS["bernoulli"].fit(ROWS).save(path)
    sound, draw = path.read_bytes(), random.Random(1)
    arrays = arrays_of(sound)
    names = list(arrays)
    refused = 0
    for _ in range(150):
        name = draw.choice(names)
        changed = arrays[name].copy()
        changed.reshape(-1)[draw.randrange(changed.size)] = draw.choice(
            [0, 1, 2, 3, 127, *([] if changed.dtype == np.uint8 else [-1, 2**31 - 1])])
        path.write_bytes(with_array(sound, name, changed))
        if (changed == arrays[name]).all():
            continue
        try:
            ModelToExtend(path).add({"body": "free words"}, "ham", target)
        except ModelFileError:
            refused += 1
            with pytest.raises(ModelFileError):
                load_fitted(path)
            continue
        load_fitted(path)
        assert load_fitted(target).counts.class_count.sum() == 7
    assert refused > 75


@pytest.mark.parametrize("content", [b"", b"PK" * 400, b"x" * 4096])
def test_no_model_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.textnb").write_bytes(content)
    with pytest.raises((ModelFileError, Unsupported)):
        ModelToExtend(tmp_path / "m.textnb")


@given(st.lists(st.binary(max_size=20) | st.sampled_from(
    [b"x" * n + end for n in (6, 7, 8, 14, 300) for end in (b"", b"\0", b"a")]), max_size=12),
    st.booleans())
def test_ascending(strings: list[bytes], ordered: bool) -> None:
    strings = sorted(set(strings)) if ordered else strings
    ends = np.cumsum([len(one) for one in strings], dtype=np.int64)
    found = is_ascending(np.frombuffer(b"".join(strings), np.uint8), ends)
    assert found == all(a < b for a, b in pairwise(strings))


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        TextClassifier(text=["subject", "body"]).fit(ROWS).save(tmp_path / "m.textnb")
        for name, text in (("a.eml", "Subject: Free lunch\n\nnew words\n"),
                           ("box.mbox", "From a@b Mon Mar  2 10:00:00 2026\nSubject: one\n\nx1\n\n"
                                       "From a@b Mon Mar  2 10:00:00 2026\nSubject: two\n\nx2\n")):
            (tmp_path / name).write_text(text)
        return tmp_path

    def run(self, folder: Path, *arguments: str, given: str = "") -> tuple[str, bool]:
        """What the command says, and whether it has loaded Polars."""
        code = f"import sys\nsys.argv[1:] = {list(arguments)!r}\n" + (
            "import atexit\natexit.register(lambda: print('polars' in sys.modules))\n") + PROGRAM[2]
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, input=(folder / given)
                              .read_text() if given else "", capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stderr, "True" in done.stdout

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize(("arguments", "given"), [
        (["a.eml"], ""), (["-", "--read", "format=mail"], "a.eml")])
    def test_one_message_needs_no_polars(
        self, arguments: list[str], given: str, folder: Path
    ) -> None:
        options = [*arguments, "--as", "spam", "-o"]
        said, polars = self.run(folder, "update", "m.textnb", *options, "new.textnb", given=given)
        assert not polars
        assert "learned from 1 document in" in said
        assert said.endswith("3 classes, 13 terms -> new.textnb\n")
        _, polars = self.run(folder, "update", "m.textnb", *options, "other.textnb",
                             "--where", "true", given=given)
        assert polars
        assert (folder / "new.textnb").read_bytes() == (folder / "other.textnb").read_bytes()

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("options", [
        ["box.mbox"], ["a.eml", "--new-class", "x"], ["a.eml", "--on-error"]])
    def test_all_else_goes_the_other_way(self, options: list[str], folder: Path) -> None:
        assert self.run(folder, "update", "m.textnb", *options, "--as", "ham")[1]

    @pytest.mark.sweep(1)
    def test_the_text_of_a_message_is_subject_and_body(self, folder: Path) -> None:
        TextClassifier().fit(ROWS.select("label", text="body")).save(folder / "m.textnb")
        for name, more in (("quick.textnb", ()), ("slow.textnb", ("--where", "true"))):
            said, polars = self.run(
                folder, "update", "m.textnb", "a.eml", "--as", "spam", "-o", name, *more)
            assert polars == bool(more), said
        assert (folder / "quick.textnb").read_bytes() == (folder / "slow.textnb").read_bytes()

    def test_a_mailbox_on_standard_input_is_read_again(self, folder: Path) -> None:
        said, polars = self.run(folder, "update", "m.textnb", "-", "--read", "format=mail", "--as",
                                "ham", given="box.mbox")
        assert polars
        assert "learned from 2 documents" in said
