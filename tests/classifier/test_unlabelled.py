"""Words of texts without labels get weights by their parts, and nothing else changes."""

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier.test_default_terms import ROWS, same
from textnb import MultinomialNB, NBLinear, TextClassifier, Tokenizer, cross_validate
from textnb.errors import DataError, ParameterError
from textnb.export.describe import describe_model
from textnb.learning import vectors

NEW = ["two depositors", "a depository of cardboard", "depositors xylophone", None, ""]


def test_new_words_have_the_weights_that_a_vocabulary_with_them_has():
    before = TextClassifier(NBLinear()).fit(ROWS)
    model = TextClassifier(NBLinear()).fit(ROWS, unlabelled=NEW)
    new = sorted({*model.vocabulary_} - {*before.vocabulary_})
    # Those with a part that a learned word has.
    assert new == ["cardboard", "depositors", "depository"]
    same(model, TextClassifier(NBLinear(), vocabulary=model.vocabulary_).fit(ROWS))
    assert model.predict(["depository", "cardboard"]).tolist() == ["money", "card"]
    # Without them, the share of the classes decides.
    assert len(set(before.predict(["depository", "cardboard"]))) == 1
    place = [model.vocabulary_.index(word) for word in new]
    counts = model.fitted_.counts
    assert counts.total_counts[place].tolist() == [0, 0, 0]
    assert counts.n_rows == 6


@pytest.mark.parametrize("kind", [
    pl.Series, lambda texts: pl.DataFrame({"text": texts}), lambda texts: pl.LazyFrame(
        {"text": texts, "id": range(5)}), lambda texts: {"text": texts}])
def test_texts_may_be_any_that_predict_reads(kind):
    same(TextClassifier(NBLinear()).fit(ROWS, unlabelled=kind(NEW)),
         TextClassifier(NBLinear()).fit(ROWS, unlabelled=NEW))


def test_files_explanations_and_exports_have_the_new_words(reloaded, tmp_path):
    model = TextClassifier(NBLinear()).fit(ROWS, unlabelled=NEW)
    same(model, reloaded(model))
    assert describe_model(reloaded(model))["unlabelled_words"] == 3
    explained = model.predict(pl.DataFrame({"text": ["depository"]}), explain=3)
    assert explained["explanation"][0][0]["term"] == "depository"
    bundle = textnb.export_model(model, tmp_path / "out", "python").path
    assert textnb.verify_export(bundle, [*filter(None, NEW)]).passed


def test_the_most_frequent_ones_are_taken():
    model = TextClassifier(NBLinear(), lexicon=1).fit(ROWS, unlabelled=NEW)
    assert "depositors" in model.vocabulary_
    assert "depository" not in model.vocabulary_


def test_limits_hold_for_new_words(tmp_path):
    def new(**limits):
        model = TextClassifier(NBLinear(), **limits)
        before = {*model.fit(ROWS).vocabulary_}
        return sorted({*model.fit(ROWS, unlabelled=NEW).vocabulary_} - before)

    assert new(min_df=2) == new(min_df=0.3) == ["depositors"]
    assert new(max_df=1) == ["cardboard", "depository"]
    assert new(max_features=10) == []
    n_terms = len(TextClassifier(NBLinear()).fit(ROWS).vocabulary_)
    assert new(max_features=n_terms + 1) == ["depositors"]


def test_names_of_columns_are_no_parts():
    rows = ROWS.select("label", title="text", text=pl.lit("x"))
    model = TextClassifier(
        NBLinear(), text=["title", "text"], tokenizer=Tokenizer(field_prefix=True),
        subwords=(4, 4))
    new = pl.DataFrame({"title": ["depositors titles"], "text": ["text"]})
    learned = model.fit(rows, unlabelled=new).vocabulary_
    assert "title:depositors" in learned
    assert not {"title:titles", "text:text"} & {*learned}


def fit(rows=ROWS, unlabelled=NEW, **settings):
    return TextClassifier(**{"estimator": NBLinear(), **settings}).fit(rows, unlabelled=unlabelled)


LISTS_OF_TOKENS = ROWS.with_columns(pl.col("text").str.split(" "))


@pytest.mark.parametrize(("call", "error", "message"), [
    *((lambda settings=settings: fit(**settings), ParameterError, message)
      for settings, message in (
        ({"estimator": MultinomialNB()}, "is for NBLinear, .*; MultinomialNB shares none"),
        ({"estimator": "auto"}, "unlabelled is for NBLinear"),
        ({"estimator": NBLinear(l=[0.3] * 20)}, "one number for l"),
        ({"tokenizer": Tokenizer()}, "fewer than 20"), ({"sharing": 0}, "fewer than 20"),
        ({"sharing": 0, "vector_weight": 0}, "unlabelled needs vector_weight"),
        ({"vectors": "unlabelled", "unlabelled": None}, "give unlabelled"),
        ({"vocabulary": ["card"]}, "unlabelled and vocabulary exclude"))),
    (lambda: TextClassifier(NBLinear(idf=False)).fit(ROWS, unlabelled=NEW, keep_sample=4),
     ParameterError, "keep_sample and unlabelled exclude each other"),
    (lambda: fit(LISTS_OF_TOKENS, LISTS_OF_TOKENS), ParameterError, "fewer than 20"),
    (lambda: fit(ROWS.with_columns(pl.concat_list("label"))), ParameterError, "fewer than 20"),
    *((lambda texts=texts: fit(unlabelled=texts), ParameterError,
       f"the unlabelled texts: .*{message}") for texts, message in (
        (pl.DataFrame({"body": ["a"]}), "no column 'text'"), (3, "X must be"),
        (pl.DataFrame({"text": [["a"]]}), "lists of tokens"), (pl.Series([1]), "Int64"),
        ("nowhere.csv", "list"))),
    *((lambda texts=texts: fit(unlabelled=texts), DataError, "the unlabelled texts have no word")
      for texts in ([], ["", None], pl.DataFrame({"text": []}, schema={"text": pl.String})))])
def test_texts_that_nothing_can_be_learned_from_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def texts(rows=300, seed=0):
    """Texts of two topics, with words that few of them have."""
    draw = np.random.default_rng(seed)
    topics = [[f"sport{n}" for n in range(40)], [f"money{n}" for n in range(40)]]
    return [" ".join(draw.choice(topics[row % 2], 8)) + " and the" for row in range(rows)]


FEW = pl.DataFrame({"text": ["sport1 sport2 the", "sport3", "money1 and", "money2 money3"],
                    "label": ["sport", "sport", "money", "money"]})


def test_words_in_similar_texts_share_weights():
    pool = texts()
    model = TextClassifier(NBLinear(), subwords=None).fit(FEW, unlabelled=pool)
    # No labelled row holds a word of these.
    asked = ["sport30 sport20", "money30", "sport11", "money12 money22"]
    assert model.predict(asked).tolist() == ["sport", "money", "sport", "money"]
    assert "sport30" in model.vocabulary_
    parameters = model.fitted_.settings.parameters
    assert (parameters["vectors"], parameters["vector_weight"]) == ("unlabelled", 1.5)
    same(model, TextClassifier(NBLinear(), vectors="unlabelled").fit(FEW, unlabelled=pool))
    # The same bits in any order, and if texts repeat.
    shuffled = np.random.default_rng(1).permutation(pool + pool[:50]).tolist()
    same(model, TextClassifier(NBLinear()).fit(FEW, unlabelled=[*shuffled, None, ""]))
    assert TextClassifier(NBLinear(), vector_weight=0).fit(
        FEW, unlabelled=pool).fitted_.settings.parameters["vectors"] is None
    # Vectors that are given are taken in their place.
    own = pl.DataFrame({"term": ["sport1", "money1"], "vector": [[1.0], [-1.0]]})
    other = TextClassifier(NBLinear(), vectors=own).fit(FEW, unlabelled=pool)
    assert other.fitted_.settings.parameters["vectors"] is own


def test_a_model_of_similar_texts_is_saved_and_fitted_again(reloaded):
    pool = texts()
    model = TextClassifier(NBLinear()).fit(FEW, unlabelled=pool)
    loaded = reloaded(model)
    same(model, loaded)
    card = describe_model(loaded)
    assert (card["vectors"], card["vector_weight"]) == ("unlabelled", 1.5)
    # Folds, and a fit without the texts, learn from labelled rows alone.
    without = TextClassifier(NBLinear()).fit(FEW)
    same(without, reloaded(model).fit(FEW))
    rows = pl.concat([FEW] * 3)
    np.testing.assert_array_equal(
        cross_validate(loaded, rows, folds=3).scores,
        cross_validate(TextClassifier(NBLinear()), rows, folds=3).scores)
    same(model, loaded.fit(FEW, unlabelled=pool))
    half = TextClassifier(NBLinear(), vector_weight=0.5).fit(FEW, unlabelled=pool)
    assert describe_model(reloaded(half))["vector_weight"] == 0.5
    with pytest.raises(ParameterError, match="too few to learn vectors from"):
        TextClassifier(NBLinear(), vector_weight=0.5).fit(FEW, unlabelled=pool[:9])


@pytest.mark.parametrize("change", [
    lambda rows: rows.with_columns(pl.col("text").str.split(" ")),
    lambda rows: rows.with_columns(pl.concat_list("label")) if "label" in rows.columns else rows,
    lambda rows: rows.with_columns(pl.lit("x").alias("title"))])
def test_lists_and_columns_share_weights_too(change):
    rows, pool = change(FEW), change(pl.DataFrame({"text": texts()}))
    text = [name for name in ("title", "text") if name in rows.columns]
    model = TextClassifier(NBLinear(), text=text).fit(rows, unlabelled=pool)
    asked = change(pl.DataFrame({"text": ["sport30 sport20"]}))
    assert "sport" in str(model.predict(asked)["predicted"].to_list())


def test_of_many_texts_the_same_are_taken(monkeypatch):
    pool = texts()
    monkeypatch.setattr(vectors, "_MAX_TEXTS", 100)
    model = TextClassifier(NBLinear()).fit(FEW, unlabelled=pool)
    same(model, TextClassifier(NBLinear()).fit(FEW, unlabelled=pool[::-1]))
    monkeypatch.undo()
    assert not np.array_equal(model.linear_form().weights, TextClassifier(NBLinear()).fit(
        FEW, unlabelled=pool).linear_form().weights)
