"""A function of the user that splits texts: in Python alone, and by its name in files."""

import polars as pl
import pytest

import textnb
from tests.text.plain_tokens import segment
from textnb import ParameterError, SchemaError, TextClassifier, Tokenizer

ROWS = pl.DataFrame({"text": ["New_York film", "dull film", None, "", "New_York  X"],
                     "label": ["pos", "neg", "pos", "neg", "pos"]})
LISTS = ROWS.with_columns(pl.col("text").str.split(" "))
TOKENIZER = Tokenizer(segmenter=segment, ngram_range=(1, 2), stop_words=("x",))
NAME = "tests.text.plain_tokens.segment"


@pytest.fixture(scope="module")
def model():
    return TextClassifier(tokenizer=TOKENIZER).fit(ROWS)


def test_it_is_as_if_the_lists_were_given(model):
    given = TextClassifier(tokenizer=TOKENIZER.with_params(segmenter=None)).fit(LISTS)
    assert model.vocabulary_ == given.vocabulary_ == [
        "dull", "dull film", "film", "new_york", "new_york film"]
    assert (model.predict_proba(ROWS) == given.predict_proba(LISTS)).all()
    assert model.explain("dull")["term"].to_list() == [None, "dull"]
    assert TOKENIZER.tokens("A x B") == ["a", "b", "a b"]
    parts = TextClassifier(tokenizer=TOKENIZER).partial_fit(ROWS[:2]).partial_fit(ROWS[2:])
    assert (parts.predict_proba(ROWS) == model.predict_proba(ROWS)).all()


def test_a_file_has_its_name_alone(model, tmp_path):
    path = tmp_path / "model.textnb"
    model.save(path)
    lists = textnb.load(path)
    assert lists.tokenizer == TOKENIZER.with_params(segmenter=NAME)
    assert (lists.predict_proba(LISTS) == model.predict_proba(ROWS)).all()
    with pytest.raises(SchemaError, match=r"load\(path, segmenter="):
        lists.predict(ROWS)
    texts = textnb.load(path, segmenter=segment)
    assert (texts.predict_proba(ROWS) == model.predict_proba(ROWS)).all()
    texts.partial_fit(ROWS).save(path)
    assert textnb.load(path).tokenizer.segmenter == NAME
    with pytest.raises(ParameterError, match=f"trained with segmenter='{NAME}'; got builtins.len"):
        textnb.load(path, segmenter=len)


def test_a_name_is_never_imported(model, tmp_path):
    own = TextClassifier(tokenizer=Tokenizer(segmenter="no.such.module")).fit(LISTS)
    own.save(tmp_path / "model.textnb")
    assert textnb.load(tmp_path / "model.textnb").tokenizer.segmenter == "no.such.module"
    TextClassifier().fit(ROWS).save(tmp_path / "model.textnb")
    with pytest.raises(ParameterError, match="trained with segmenter=None"):
        textnb.load(tmp_path / "model.textnb", segmenter=segment)


@pytest.mark.parametrize("settings", [{"pattern": "[a-z]+"}, {"keep": ("emoji",)}])
def test_settings_of_texts(settings):
    with pytest.raises(ParameterError, match="split by a segmenter"):
        TextClassifier(tokenizer=Tokenizer(segmenter=segment, **settings)).fit(ROWS)


def test_what_it_must_make():
    with pytest.raises(ParameterError, match="must make strings of a text; got"):
        Tokenizer(segmenter=lambda text: [1]).tokens("a")
    with pytest.raises(ParameterError, match="must make strings of a text; got 5"):
        Tokenizer(segmenter=lambda text: 5).tokens("a")


def test_its_tokens_stand_in_the_text(model):
    pieces = model.highlight("A dull, New_York film").pieces["text"]
    assert [piece for piece, value in pieces if value is not None] == [
        "A", "dull,", "New_York", "film"]
