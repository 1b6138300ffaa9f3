"""What is special to ONNX and LIBLINEAR files; `test_targets.py` compares their answers."""

import json
import shutil
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.export.run import agree, plain, rows_of_tokens
from tests.export.tables import SPACED, frame_of
from tests.tiers import examples
from textnb import ExportError, TextClassifier, Tokenizer
from textnb.export.bundle import bundle_of
from textnb.export.targets import onnx_graph
from textnb.export.targets.liblinear import Liblinear
from textnb.export.targets.onnx_graph import Onnx

with_onnx = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("onnx", "onnxruntime")),
    reason="needs onnx and onnxruntime: pip install 'textnb[onnx]'")

# ONNX


@with_onnx
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[
    HealthCheck.function_scoped_fixture])
@given(
    pattern=st.sampled_from([r"[^ ]+", r"[^,]+", r"[^\t]+", r"[^\|]+", r"[^-]+", "[^\0]+",
                             r"[^\\]+", "[^😀]+"]),
    ngrams=st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3), (1, 4)]),
    stops=st.sampled_from([(), ("a",), ("b c", "\\")]), binary=st.booleans(),
    texts=st.lists(st.text(st.sampled_from("aabbc   ,,\t|\\-\0é😀"), max_size=24), min_size=2,
                   max_size=8),
    others=st.lists(st.one_of(st.none(), st.text(max_size=12)), max_size=4))
def test_any_text_that_one_character_separates(pattern, ngrams, stops, binary, texts, others,
                                               tmp_path):
    tokenizer = Tokenizer(pattern=pattern, lowercase=False, ngram_range=ngrams, stop_words=stops)
    model = TextClassifier(tokenizer=tokenizer, binary=binary)
    # One text of many words, so that there is always a term.
    many = "xy".join(" ,\t|-\0\\😀" * 3)
    model.fit(frame_of([*texts, many], ["x", "y", "z"]))
    agree("onnx", bundle_of(model, "text"), frame_of([*others, *texts, many]), tmp_path)


@with_onnx
def test_terms_that_no_text_holds_count_for_none(tmp_path):
    """A given vocabulary may hold what the tokenizer never makes: it must meet no n-gram."""
    vocabulary = ["a b", r"a\ b", "a  b", "a", r"a\b", r"a\\b", "the", " ", "\\", r"\\ a"]
    for ngrams in ((1, 1), (1, 2)):
        tokenizer = replace(SPACED, ngram_range=ngrams, stop_words=("the",))
        model = TextClassifier(tokenizer=tokenizer, vocabulary=vocabulary).fit(
            ["a b", "a", r"a\b the", "\\ a"], ["x", "y", "z", "x"])
        asked = frame_of([*vocabulary, "a the b", "the", r"\ a a\b  b"])
        agree("onnx", bundle_of(model, "text"), asked, tmp_path)


@with_onnx
def test_onnx_is_sound_and_says_how_to_use_it(tmp_path):
    onnx: Any = import_module("onnx")
    labels = ["a\0", "\0", ""]
    three = plain(["t"], [[1, 0, 0], [-2, 0, 1]], labels)
    rows = rows_of_tokens(three, [[], ["t"]])
    assert agree("onnx", three, rows, tmp_path).labels == ["a\0", ""]
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
def test_a_long_document_does_not_widen_the_others(tmp_path):
    """As a table, 20,000 rows as wide as the longest would take 100 GB."""
    bundle = plain(["t"], [[0, 1, 2], [1, 2, -4]], ["a", "b", "c"], reads="text")
    texts = pl.DataFrame({"text": ["t t"] * 20_000 + ["t " * 150_000]})
    found = agree("onnx", bundle, texts, tmp_path)
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
def test_what_onnx_cannot_split(tokenizer, columns, reason, tmp_path):
    bundle = replace(plain(["t"], np.ones((2, 3)), ["a", "b", "c"], reads="text"),
                     tokenizer=tokenizer, columns=columns)
    with pytest.raises(ExportError, match=rf"^{reason}.*--input terms.*\[\^ \]\+"):
        Onnx().write(bundle, tmp_path / "model.onnx")
    assert not Onnx().splits(tokenizer, columns)
    assert Onnx().splits(SPACED, ("text",))


def test_the_separator_is_in_no_term():
    used = tuple(map(chr, range(0x20)))
    assert onnx_graph.unused_character(()) == "\x1f"
    assert onnx_graph.unused_character((*used[::2], "\x1f")) == "\x1d"
    assert onnx_graph.unused_character(used) == "\ue000"
    private = tuple(map(chr, [*range(0xE000, 0xF900), *range(0xF0000, 0x110000)]))
    with pytest.raises(ExportError, match="none is left to separate"):
        onnx_graph.unused_character((*used, "".join(private)))


def test_too_large_a_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_graph, "MAX_DATA_BYTES", 100)
    bundle = plain(["t" * 60], np.ones((2, 3)), ["a", "b", "c"])
    with pytest.raises(ExportError, match=r"less than 2 GiB; keep fewer terms"):
        Onnx().write(bundle, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


# LIBLINEAR's file


def test_liblinear_files_are_these(tmp_path):
    bundle = plain(["s", "t"], [[0.1, 0, -1], [1, 2, 3], [1e-300, -4, 5]], ["a", "b", "c"])
    Liblinear().write(bundle, tmp_path / "three.model")
    assert (tmp_path / "three.model").read_text() == (
        "solver_type L2R_LR\nnr_class 3\nlabel 0 1 2\nnr_feature 2\nbias 1\nw\n"
        "1 2 3 \n1e-300 -4 5 \n0.10000000000000001 0 -1 \n")
    two = plain(["s"], [[1, 2], [3, 5]], [True, False], positive=False)
    Liblinear().write(two, tmp_path / "two.model")
    assert (tmp_path / "two.model").read_text() == (
        "solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 1\nbias 1\nw\n2 \n1 \n")


@pytest.mark.skipif(shutil.which("liblinear-predict") is None, reason="needs liblinear-predict")
def test_liblinear_failures_are_reported(tmp_path):
    bundle = plain(["s"], np.ones((2, 3)), ["a", "b", "c"])
    (tmp_path / "bad.model").write_text("solver_type none\nw\n1\n")
    with pytest.raises(ExportError, match=r"the engine failed: .*unknown solver"):
        Liblinear().run(bundle, tmp_path / "bad.model", rows_of_tokens(bundle, [["s"]]))
