"""ONNX and LIBLINEAR files, run by onnxruntime and liblinear-predict: the form's own scores."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    ExportError,
    LinearDiscriminantAnalysis,
    LinearForm,
    MultinomialNB,
    NBLogisticRegression,
    TableClassifier,
    TextClassifier,
    Tokenizer,
)
from textnb.bayes.features import presence_map
from textnb.export import golden
from textnb.export.bundle import Bundle, Reads, bundle_of
from textnb.export.targets import onnx_graph
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.liblinear import Liblinear
from textnb.export.targets.onnx_graph import Onnx

Corpus = Callable[[str], pl.LazyFrame]
Kind = type[Onnx] | type[Liblinear]

with_onnx = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("onnx", "onnxruntime")),
    reason="needs onnx and onnxruntime: pip install 'textnb[onnx]'")
with_liblinear = pytest.mark.skipif(
    shutil.which("liblinear-predict") is None,
    reason="needs liblinear-predict: apt-get install liblinear-tools")
both = pytest.mark.parametrize("kind", [
    pytest.param(Onnx, marks=with_onnx), pytest.param(Liblinear, marks=with_liblinear)])

# What ONNX can split by itself, and hostile texts for it.
SPACED = Tokenizer(pattern=r"[^ ]+", lowercase=False)
TEXTS = ["good film  good plot", "a 'quoted' \"film\" good", "bad\nfilm bad", "bad, bad plot\x1f",
         "Élan vital \\ n \\", "élan\tvital film", "so-so \x00 film \x00", "😀 film \ue000 so-so"]
UNSEEN: list[str | None] = [
    None, "", " ", "   ", "unheard of", "good good good film", " film", "film ", "FILM GOOD",
    "\\ \\ \\\\", "\x00", "a\u00a0b film\u3000bad", "bad\nfilm bad plot\x1f \x1f", "film " * 500]
LABELS: dict[str, list[Any]] = {
    "strings": ["pos", "n'e\"g\n\\", "sö-so 😀"], "ints": [-3, 7, 0], "bools": [True, False]}
ESTIMATORS: dict[str, Any] = {
    "multinomial": MultinomialNB(), "bernoulli": BernoulliNB(), "complement": ComplementNB(),
    "logistic": NBLogisticRegression()}


def frame(labels: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({
        "text": TEXTS, "label": [labels[row * len(labels) // len(TEXTS)] for row in range(8)]})


def unseen() -> pl.DataFrame:
    return pl.DataFrame({"text": [*UNSEEN, *TEXTS]}, schema={"text": pl.String})


def answered(kind: Kind, bundle: Bundle, rows: TargetRows, path: Path) -> TargetAnswers:
    target = kind()
    file = path / f"model{target.suffix}"
    target.write(bundle, file)
    return target.run(bundle, file, rows)


def check(kind: Kind, bundle: Bundle, rows: TargetRows, path: Path) -> TargetAnswers:
    """Scores within the tolerance, and the same labels wherever no rounding decides."""
    found = answered(kind, bundle, rows, path)
    expected = bundle.scores(rows.values)
    assert found.scores.dtype == np.float64
    assert found.scores.shape == expected.shape
    np.testing.assert_allclose(found.scores, expected, rtol=kind.tolerance, atol=kind.tolerance)
    assert found.labels is not None
    assert found.labels == bundle.decide(found.scores)
    tied = bundle.find_ties(expected, rows.values, kind.tolerance)
    for got, want, either in zip(found.labels, bundle.decide(expected), tied, strict=True):
        assert either or (got == want and type(got) is type(want))
    return found


def plain(terms: list[str], weights: Any, labels: list[Any], above: float | None = None,
          positive: Any = None, reads: Reads = "terms") -> Bundle:
    """A bundle of given numbers, without training."""
    classes = np.empty(len(labels), dtype=object)
    classes[:] = labels
    table = np.array(weights, dtype=np.float64)
    form = LinearForm(classes, table[1:], table[0], tuple(terms), presence_map(above))
    return Bundle(form, reads, SPACED, ("text",), positive)


def given_tokens(bundle: Bundle, tokens: list[list[str]]) -> TargetRows:
    series = pl.Series(tokens, dtype=pl.List(pl.String))
    return TargetRows(bundle.count_tokens(series), tokens=series)


# Models


@both
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_tokens_are_scored(kind: Kind, name: str, labels: str, tmp_path: Path) -> None:
    model = TextClassifier(ESTIMATORS[name]).fit(frame(LABELS[labels]))
    positive = True if labels == "bools" else None
    bundle = bundle_of(model, reads="terms", positive=positive)
    check(kind, bundle, golden.rows_of(bundle, unseen()), tmp_path)


@with_onnx
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_texts_are_split_by_onnx(name: str, labels: str, tmp_path: Path) -> None:
    model = TextClassifier(ESTIMATORS[name], tokenizer=SPACED).fit(frame(LABELS[labels]))
    bundle = bundle_of(model, reads="text")
    check(Onnx, bundle, golden.rows_of(bundle, unseen()), tmp_path)


@both
@pytest.mark.parametrize("positive", ["pos", "neg"])
@pytest.mark.parametrize("settings", [
    {}, {"tokenizer": Tokenizer(ngram_range=(1, 2))}, {"binary": True},
    {"binary": True, "tokenizer": Tokenizer(analyzer="char_wb", ngram_range=(1, 3))}])
def test_one_of_two_classes_wins_above_zero(
    kind: Kind, positive: str, settings: Any, tmp_path: Path
) -> None:
    model = TextClassifier(**settings).fit(frame(["pos", "neg"]))
    bundle = bundle_of(model, reads="terms", positive=positive)
    found = check(kind, bundle, golden.rows_of(bundle, unseen()), tmp_path)
    assert found.scores.shape[1] == 1
    assert set(found.labels or ()) == {"pos", "neg"}


@both
def test_a_tie_goes_to_the_first_class_and_to_the_negative(kind: Kind, tmp_path: Path) -> None:
    three = plain(["t"], [[1, 1, 1], [0, 2, 2]], ["a", "b", "c"])
    assert check(kind, three, given_tokens(three, [[], ["t"]]), tmp_path).labels == ["a", "b"]
    for positive, negative in ("ab", "ba"):
        two = plain(["t"], [[1, 1], [0, 2]], ["a", "b"], positive=positive)
        rows = given_tokens(two, [[], ["t"]])
        assert check(kind, two, rows, tmp_path).labels == [negative, "b"]


@both
@pytest.mark.parametrize("above", [None, 0.0, 0.5, 1.0, 2.5])
def test_presence_is_a_count_above_the_threshold(
    kind: Kind, above: float | None, tmp_path: Path
) -> None:
    bundle = plain(["a", "b", "c"], [[0, 1, 2], [1, 2, -4], [8, 16, 3], [5, 64, -7]], [1, 2, 3],
                   above)
    rows = given_tokens(bundle, [["a"] * i + ["b"] * j + ["?"] * 4 for i in range(5)
                                 for j in range(3)])
    check(kind, bundle, rows, tmp_path)


@both
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("positive", [None, "b"])
def test_no_rows_and_one_row(kind: Kind, positive: Any, rows: int, tmp_path: Path) -> None:
    labels = ["a", "b"] if positive else ["a", "b", "c"]
    bundle = plain(["t"], np.arange(2 * len(labels)).reshape(2, -1), labels, positive=positive)
    found = check(kind, bundle, given_tokens(bundle, [[]] * rows), tmp_path)
    assert len(found.labels or ()) == rows


@both
@pytest.mark.parametrize("positive", [None, 1])
def test_features_far_from_zero(kind: Kind, positive: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    y = np.arange(90) % (3 if positive is None else 2)
    x = rng.normal(size=(90, 4)) + y[:, None] + 1e3
    table = pl.DataFrame(x, schema=["a", "b", "c", "d"]).with_columns(label=pl.Series(y))
    model = TableClassifier(LinearDiscriminantAnalysis()).fit(table)
    bundle = bundle_of(model, positive=positive)
    for features in (x, x[:0], x[:1], np.zeros((2, 4)), golden.vectors(bundle)):
        if kind is Onnx or positive is None:
            found = answered(kind, bundle, TargetRows(features), tmp_path)
            # LIBLINEAR can't subtract a center: a thousand times the features, fewer digits.
            bound = 1e-9 if kind is Onnx else 1e-7
            expected = bundle.scores(features)
            np.testing.assert_allclose(found.scores, expected, rtol=bound, atol=bound)
            assert found.labels == bundle.decide(expected)


@both
def test_features_by_presence(kind: Kind, tmp_path: Path) -> None:
    bundle = replace(plain(["a", "b"], [[0, 1, 2], [1, 2, -4], [8, 16, 3]], ["x", "y", "z"], 0.5),
                     reads="features", tokenizer=None)
    rows = TargetRows(np.array([[0, 0.5], [0.6, -1], [5e-324, 9.0]]))
    check(kind, bundle, rows, tmp_path)


# Any term, any label

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
hostile = st.one_of(words, st.sampled_from(
    ["\x1f", "\x1e\x1f", "\x00", "a\x00", " ", "\n", "\"'\\", "{}", "%s", "\ue000"]))
numbers = st.floats(-1e3, 1e3)


@st.composite
def bundles(draw: st.DrawFn, classes: int, positive: bool) -> tuple[Bundle, list[list[str]]]:
    terms = draw(st.lists(hostile, min_size=1, max_size=8, unique=True))
    names = st.one_of(st.just(""), hostile)
    if positive:
        # A form can't tell a label from the same one with NUL behind, as NumPy can't.
        names = names.filter(lambda name: not name.endswith("\0"))
    labels = draw(st.lists(names, min_size=classes, max_size=classes, unique=True))
    row = st.lists(numbers, min_size=classes, max_size=classes)
    weights = draw(st.lists(row, min_size=len(terms) + 1, max_size=len(terms) + 1))
    above = draw(st.sampled_from([None, 0.0, 1.0]))
    tokens = draw(st.lists(st.lists(st.one_of(st.sampled_from(terms), hostile), max_size=12),
                           max_size=6))
    return plain(terms, weights, labels, above, labels[1] if positive else None), tokens


@with_onnx
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), classes=st.integers(2, 4), positive=st.booleans())
def test_any_terms_and_labels_onnx(
    data: st.DataObject, classes: int, positive: bool, tmp_path_factory: Any
) -> None:
    bundle, tokens = data.draw(bundles(classes, positive and classes == 2))
    check(Onnx, bundle, given_tokens(bundle, tokens), tmp_path_factory.getbasetemp())


@with_liblinear
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data(), classes=st.integers(2, 4))
def test_any_terms_and_labels_liblinear(
    data: st.DataObject, classes: int, tmp_path_factory: Any
) -> None:
    bundle, tokens = data.draw(bundles(classes, classes == 2))
    check(Liblinear, bundle, given_tokens(bundle, tokens), tmp_path_factory.getbasetemp())


@with_onnx
@settings(max_examples=examples(40), deadline=None)
@given(
    pattern=st.sampled_from([r"[^ ]+", r"[^,]+", r"[^\t]+", r"[^\|]+", r"[^-]+", "[^\0]+",
                             r"[^\\]+", "[^😀]+"]),
    ngrams=st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3), (1, 4)]),
    stops=st.sampled_from([(), ("a",), ("b c", "\\")]), binary=st.booleans(),
    texts=st.lists(st.text(st.sampled_from("aabbc   ,,\t|\\-\0é😀"), max_size=24), min_size=2,
                   max_size=8),
    others=st.lists(st.one_of(st.none(), st.text(max_size=12)), max_size=4))
def test_any_text_that_one_character_separates(
    pattern: str, ngrams: tuple[int, int], stops: tuple[str, ...], binary: bool,
    texts: list[str], others: list[str | None], tmp_path_factory: Any,
) -> None:
    tokenizer = Tokenizer(pattern=pattern, lowercase=False, ngram_range=ngrams, stop_words=stops)
    model = TextClassifier(tokenizer=tokenizer, binary=binary)
    # One text of many words, so that there is always a term.
    many = "xy".join(" ,\t|-\0\\😀" * 3)
    labels = [f"label {row % 3}" for row in range(len(texts) + 1)]
    model.fit(pl.DataFrame({"text": [*texts, many], "label": labels}))
    bundle = bundle_of(model, reads="text")
    rows = pl.DataFrame({"text": [*others, *texts, many]}, schema={"text": pl.String})
    check(Onnx, bundle, golden.rows_of(bundle, rows), tmp_path_factory.getbasetemp())


@with_onnx
def test_terms_that_no_text_holds_count_for_none(tmp_path: Path) -> None:
    """A given vocabulary may hold what the tokenizer never makes: it must meet no n-gram."""
    vocabulary = ["a b", r"a\ b", "a  b", "a", r"a\b", r"a\\b", "the", " ", "\\", r"\\ a"]
    for ngrams in ((1, 1), (1, 2)):
        tokenizer = replace(SPACED, ngram_range=ngrams, stop_words=("the",))
        model = TextClassifier(tokenizer=tokenizer, vocabulary=vocabulary).fit(
            ["a b", "a", r"a\b the", "\\ a"], ["x", "y", "z", "x"])
        bundle = bundle_of(model, reads="text")
        rows = pl.DataFrame({"text": [*vocabulary, "a the b", "the", r"\ a a\b  b"]})
        check(Onnx, bundle, golden.rows_of(bundle, rows), tmp_path)


# What an ONNX file says, and what it refuses


@with_onnx
def test_onnx_is_sound_and_says_how_to_use_it(tmp_path: Path) -> None:
    onnx: Any = import_module("onnx")
    labels = ["a\0", "\0", ""]
    three = plain(["t"], [[1, 0, 0], [-2, 0, 1]], labels)
    rows = given_tokens(three, [[], ["t"]])
    assert check(Onnx, three, rows, tmp_path).labels == ["a\0", ""]
    bundle = plain(["a\x1f", "\x1e"], np.ones((3, 2)), ["x", "é\0é"], positive="x")
    Onnx().write(bundle, tmp_path / "model.onnx")
    model = onnx.load(str(tmp_path / "model.onnx"))
    onnx.checker.check_model(model, full_check=True)
    held = {entry.key: entry.value for entry in model.metadata_props}
    assert held["separator"] == "\x1d"
    assert json.loads(held["classes"]) == ["x", "é\0é"]
    assert Tokenizer.from_dict(json.loads(held["tokenizer"])) == SPACED
    assert (held["decision"], held["positive"]) == ("positive above 0", '"x"')
    assert repr("\x1d") in model.doc_string


@with_onnx
def test_a_long_document_does_not_widen_the_others(tmp_path: Path) -> None:
    """As a table, 20,000 rows as wide as the longest would take 100 GB."""
    bundle = plain(["t"], [[0, 1, 2], [1, 2, -4]], ["a", "b", "c"])
    bundle = replace(bundle, reads="text")
    texts = pl.DataFrame({"text": ["t t"] * 20_000 + ["t " * 150_000]})
    found = check(Onnx, bundle, golden.rows_of(bundle, texts), tmp_path)
    assert found.scores[-1].tolist() == [150_000, 300_001, -599_998]


@pytest.mark.parametrize(("tokenizer", "columns", "reason"), [
    (Tokenizer(), ("text",), r"pattern='\[\\\\p\{L\}"),
    (Tokenizer(pattern=r"[^ ]+"), ("text",), "lowercase=True"),
    (Tokenizer(pattern=r"[^ ,]+", lowercase=False), ("text",), "pattern="),
    (Tokenizer(pattern=r"[^ ]{2,}", lowercase=False), ("text",), "pattern="),
    (Tokenizer(pattern=r"[^\s]+", lowercase=False), ("text",), "pattern="),
    (Tokenizer(pattern=r"\S+", lowercase=False), ("text",), "pattern="),
    (replace(SPACED, analyzer="char"), ("text",), "analyzer='char'"),
    (replace(SPACED, normalize="NFC"), ("text",), "normalize='NFC'"),
    (replace(SPACED, strip_accents="unicode"), ("text",), "strip_accents="),
    (replace(SPACED, field_prefix=True), ("text",), "field_prefix=True"),
    (SPACED, ("subject", "body"), r"several text columns \(subject, body\)")])
def test_what_onnx_cannot_split(
    tokenizer: Tokenizer, columns: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    bundle = replace(plain(["t"], np.ones((2, 3)), ["a", "b", "c"]), reads="text",
                     tokenizer=tokenizer, columns=columns)
    with pytest.raises(ExportError, match=rf"^{reason}.*--input terms.*\[\^ \]\+"):
        Onnx().write(bundle, tmp_path / "model.onnx")
    assert not Onnx().splits(tokenizer, columns)
    assert Onnx().splits(SPACED, ("text",))


def test_the_separator_is_in_no_term() -> None:
    used = tuple(map(chr, range(0x20)))
    assert onnx_graph.unused_character(()) == "\x1f"
    assert onnx_graph.unused_character((*used[::2], "\x1f")) == "\x1d"
    assert onnx_graph.unused_character(used) == "\ue000"
    private = tuple(map(chr, [*range(0xE000, 0xF900), *range(0xF0000, 0x110000)]))
    with pytest.raises(ExportError, match="none is left to separate"):
        onnx_graph.unused_character((*used, "".join(private)))


def test_too_large_a_model_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_graph, "MAX_BYTES", 100)
    bundle = plain(["t" * 60], np.ones((2, 3)), ["a", "b", "c"])
    with pytest.raises(ExportError, match=r"less than 2 GiB; keep fewer terms"):
        Onnx().write(bundle, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setenv("PATH", "")
    bundle = plain(["t"], np.ones((2, 3)), ["a", "b", "c"])
    with pytest.raises(ExportError, match=r"pip install 'textnb\[onnx\]'"):
        Onnx().write(bundle, tmp_path / "model.onnx")
    with pytest.raises(EngineMissing, match=r"pip install 'textnb\[onnx\]'"):
        Onnx().run(bundle, tmp_path / "model.onnx", given_tokens(bundle, [[]]))
    with pytest.raises(EngineMissing, match="apt-get install liblinear-tools"):
        Liblinear().run(bundle, tmp_path / "model.model", given_tokens(bundle, [[]]))


# LIBLINEAR's file


def test_liblinear_files_are_these(tmp_path: Path) -> None:
    bundle = plain(["s", "t"], [[0.1, 0, -1], [1, 2, 3], [1e-300, -4, 5]], ["a", "b", "c"])
    Liblinear().write(bundle, tmp_path / "three.model")
    assert (tmp_path / "three.model").read_text() == (
        "solver_type L2R_LR\nnr_class 3\nlabel 0 1 2\nnr_feature 2\nbias 1\nw\n"
        "1 2 3 \n1e-300 -4 5 \n0.10000000000000001 0 -1 \n")
    two = plain(["s"], [[1, 2], [3, 5]], [True, False], positive=False)
    Liblinear().write(two, tmp_path / "two.model")
    assert (tmp_path / "two.model").read_text() == (
        "solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 1\nbias 1\nw\n2 \n1 \n")


def test_liblinear_needs_a_positive_class_of_two(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"one weight per term.*--positive 'b'"):
        Liblinear().write(plain(["s"], np.ones((2, 2)), ["a", "b"]), tmp_path / "model.model")


@with_liblinear
def test_liblinear_failures_are_reported(tmp_path: Path) -> None:
    bundle = plain(["s"], np.ones((2, 3)), ["a", "b", "c"])
    (tmp_path / "bad.model").write_text("solver_type none\nw\n1\n")
    with pytest.raises(ExportError, match=r"the engine failed: .*unknown solver"):
        Liblinear().run(bundle, tmp_path / "bad.model", given_tokens(bundle, [["s"]]))


# Real data


@pytest.fixture(scope="module")
def newsgroups(corpus: Corpus) -> tuple[Bundle, TargetRows]:
    """The model of the training split, and the rows of the test split."""
    news = corpus("20newsgroups")
    model = TextClassifier(MultinomialNB(), min_df=2).fit(news.filter(pl.col("split") == "train"))
    bundle = bundle_of(model, reads="terms")
    test = news.filter(pl.col("split") == "test").select("text").collect()
    assert test.height == 7532
    return bundle, golden.rows_of(bundle, test)


@both
def test_newsgroups_given_tokens(
    kind: Kind, newsgroups: tuple[Bundle, TargetRows], tmp_path: Path
) -> None:
    bundle, rows = newsgroups
    found = check(kind, bundle, rows, tmp_path)
    assert found.labels == bundle.decide(bundle.scores(rows.values))


@with_onnx
def test_newsgroups_split_by_onnx(corpus: Corpus, tmp_path: Path) -> None:
    news = corpus("20newsgroups")
    model = TextClassifier(BernoulliNB(), tokenizer=SPACED, min_df=2).fit(
        news.filter(pl.col("split") == "train"))
    bundle = bundle_of(model, reads="text")
    rows = golden.rows_of(
        bundle, news.filter(pl.col("split") == "test").select("text").collect())
    found = check(Onnx, bundle, rows, tmp_path)
    assert found.labels == bundle.decide(bundle.scores(rows.values))


@both
def test_messages_by_word_pairs(kind: Kind, corpus: Corpus, tmp_path: Path) -> None:
    messages = corpus("sms_spam").collect()
    tokenizer = replace(SPACED, ngram_range=(1, 2), stop_words=("to", "the"))
    model = TextClassifier(ComplementNB(), tokenizer=tokenizer).fit(messages)
    bundle = bundle_of(model, reads="text" if kind is Onnx else "terms",
                       positive=model.classes_.tolist()[1])
    rows = golden.rows_of(bundle, messages.select("text"))
    found = check(kind, bundle, rows, tmp_path)
    assert found.labels == bundle.decide(bundle.scores(rows.values))
