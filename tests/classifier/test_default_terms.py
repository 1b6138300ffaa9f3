"""What a model reads of texts if no tokenizer is given."""

import numpy as np
import polars as pl
import pytest

from textnb import MultinomialNB, NBLinear, TextClassifier, Tokenizer
from textnb.errors import ParameterError
from textnb.export.describe import describe_model

LINEAR = {"tokenizer": Tokenizer(pattern=r"[\p{L}\p{M}\p{N}_]+", keep=["punctuation"],
                                 ngram_range=(1, 2)), "subwords": (4, 4)}
ROWS = pl.DataFrame({
    "text": ["a deposit is missing!", "deposits arrive", "when is a deposit refused?",
             "where cards are sent", "a card was stolen", "cards expire!"],
    "label": ["money", "money", "money", "card", "card", "card"]})


def same(one, other):
    assert one.vocabulary_ == other.vocabulary_
    np.testing.assert_array_equal(one.linear_form().weights, other.linear_form().weights)


def test_a_linear_model_reads_short_words_pairs_and_parts():
    model = TextClassifier(NBLinear()).fit(ROWS)
    same(model, TextClassifier(NBLinear(), **LINEAR).fit(ROWS))
    assert {"a", "!", "deposits arrive", "missing !"} < set(model.vocabulary_)
    plain = TextClassifier(NBLinear(), tokenizer=LINEAR["tokenizer"]).fit(ROWS)
    assert not np.array_equal(plain.linear_form().weights, model.linear_form().weights)
    # Each setting can be another one; a tokenizer that is given has no parts of words.
    same(plain, TextClassifier(NBLinear(), sharing=0).fit(ROWS))
    same(TextClassifier(NBLinear(), subwords=(3, 5)).fit(ROWS),
         TextClassifier(NBLinear(), **{**LINEAR, "subwords": (3, 5)}).fit(ROWS))
    assert TextClassifier(NBLinear(), tokenizer=Tokenizer()).fit(ROWS).vocabulary_ == (
        TextClassifier(MultinomialNB()).fit(ROWS).vocabulary_) == (
        TextClassifier(MultinomialNB(), tokenizer=Tokenizer()).fit(ROWS).vocabulary_)


def test_lists_of_tokens_are_counted_as_they_are():
    lists = ROWS.with_columns(pl.col("text").str.split(" "))
    same(TextClassifier(NBLinear()).fit(lists),
         TextClassifier(NBLinear(), tokenizer=Tokenizer()).fit(lists))
    same(TextClassifier(NBLinear(), subwords=(4, 4)).fit(lists),
         TextClassifier(NBLinear(), tokenizer=Tokenizer(), subwords=(4, 4)).fit(lists))
    with pytest.raises(ParameterError, match="sharing is the weight of subwords"):
        TextClassifier(NBLinear(), sharing=1.0).fit(lists)


def test_models_that_learn_more_and_ratios_of_terms_go_without_parts():
    model = NBLinear(idf=False)
    tokens = LINEAR["tokenizer"]
    for more in ({}, {"keep_sample": 4}):
        same(TextClassifier(model).fit(ROWS, **more),
             TextClassifier(model, tokenizer=tokens).fit(ROWS))
    with pytest.raises(ParameterError, match="keep_sample and subwords exclude each other"):
        TextClassifier(model, subwords=(4, 4)).fit(ROWS, keep_sample=4)
    with pytest.raises(ParameterError, match="sharing is the weight of subwords"):
        TextClassifier(model, sharing=1.0).fit(ROWS, keep_sample=4)
    n_terms = len(TextClassifier(model).fit(ROWS).vocabulary_)
    of_terms = NBLinear(l=np.full(n_terms, 0.3))
    same(TextClassifier(of_terms).fit(ROWS), TextClassifier(NBLinear(), sharing=0).fit(ROWS))


def test_lists_of_labels_go_without_parts_by_default():
    rows = ROWS.with_columns(pl.concat_list("label"))
    model = NBLinear(held_out=0)
    same(TextClassifier(model).fit(rows),
         TextClassifier(model, tokenizer=LINEAR["tokenizer"]).fit(rows))
    same(TextClassifier(model, subwords=(4, 4)).fit(rows),
         TextClassifier(model, **LINEAR).fit(rows))
    with pytest.raises(ParameterError, match="sharing is the weight of subwords"):
        TextClassifier(model, sharing=1.0).fit(rows)


def test_files_and_descriptions_name_what_was_read(reloaded, tmp_path):
    model = TextClassifier(NBLinear()).fit(ROWS)
    read = reloaded(model)
    same(model, read)
    assert (read.tokenizer, read.subwords) == (None, None)
    pairs = TextClassifier(NBLinear(), **{**LINEAR, "subwords": None}).fit(ROWS)
    assert reloaded(pairs).tokenizer == LINEAR["tokenizer"]
    for one in (model, read):
        card = describe_model(one)
        # Rows are so short that parts weigh the most.
        assert (card["subwords"], card["sharing"]) == ((4, 4), 1.6)
        assert card["tokenizer"]["keep"] == ["punctuation"]
    assert describe_model(TextClassifier(NBLinear(), sharing=0.25).fit(ROWS))["sharing"] == 0.25
    words = TextClassifier(NBLinear(), tokenizer=Tokenizer()).fit(ROWS)
    assert "sharing" not in describe_model(words)
    model.set_params(subwords=(3, 5))
    with pytest.raises(ParameterError, match=r"subwords from \(4, 4\) to \(3, 5\)"):
        model.save(tmp_path / "m.textnb")
    model.set_params(subwords=None, tokenizer=LINEAR["tokenizer"])
    with pytest.raises(ParameterError, match=r"subwords from \(4, 4\) to None"):
        model.save(tmp_path / "m.textnb")


def test_one_setting_of_the_tokenizer_leaves_the_others_as_they_are():
    model = TextClassifier(NBLinear()).set_params(tokenizer__ngram_range=(1, 3))
    assert (model.tokenizer, model.subwords) == (
        LINEAR["tokenizer"].with_params(ngram_range=(1, 3)), (4, 4))
    model = TextClassifier(NBLinear()).set_params(tokenizer__analyzer="char")
    assert (model.tokenizer.analyzer, model.subwords) == ("char", None)
    model = TextClassifier().set_params(tokenizer__lowercase=False)
    assert (model.tokenizer, model.subwords) == (Tokenizer(lowercase=False), None)
