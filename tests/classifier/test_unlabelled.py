"""Words of texts without labels get weights by their parts, and nothing else changes."""

import polars as pl
import pytest

from tests.classifier.test_default_terms import ROWS, same
from textnb import (
    MultinomialNB,
    NBLinear,
    TextClassifier,
    Tokenizer,
    export_model,
    load,
    verify_export,
)
from textnb.errors import ParameterError, SchemaError
from textnb.learning import unlabelled

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
    assert counts.all_counts[place].tolist() == [0, 0, 0]
    assert counts.n_rows == 6


@pytest.mark.parametrize("kind", [
    pl.Series, lambda texts: pl.DataFrame({"text": texts}), lambda texts: pl.LazyFrame(
        {"text": texts, "id": range(5)}), lambda texts: {"text": texts}])
def test_texts_may_be_any_that_predict_reads(kind):
    same(TextClassifier(NBLinear()).fit(ROWS, unlabelled=kind(NEW)),
         TextClassifier(NBLinear()).fit(ROWS, unlabelled=NEW))


def test_files_explanations_and_exports_have_the_new_words(tmp_path):
    model = TextClassifier(NBLinear()).fit(ROWS, unlabelled=NEW)
    model.save(tmp_path / "m.textnb")
    same(model, load(tmp_path / "m.textnb"))
    explained = model.predict(pl.DataFrame({"text": ["depository"]}), explain=3)
    assert explained["explanation"][0][0]["term"] == "depository"
    bundle = export_model(model, tmp_path / "out", "python").path
    assert verify_export(bundle, [*filter(None, NEW)]).passed


def test_the_most_frequent_ones_are_taken(monkeypatch):
    monkeypatch.setattr(unlabelled, "MAX_WORDS", 1)
    model = TextClassifier(NBLinear()).fit(ROWS, unlabelled=NEW)
    assert "depositors" in model.vocabulary_
    assert "depository" not in model.vocabulary_


def test_names_of_columns_are_no_parts():
    rows = ROWS.select("label", title="text", text=pl.lit("x"))
    model = TextClassifier(
        NBLinear(), text=["title", "text"], tokenizer=Tokenizer(field_prefix=True),
        subwords=(4, 4))
    new = pl.DataFrame({"title": ["depositors titles"], "text": ["text"]})
    learned = model.fit(rows, unlabelled=new).vocabulary_
    assert "title:depositors" in learned
    assert not {"title:titles", "text:text"} & {*learned}


@pytest.mark.parametrize(("model", "message"), [
    (TextClassifier(MultinomialNB()), "unlabelled texts give weights to words by their parts"),
    (TextClassifier(NBLinear(), tokenizer=Tokenizer()), "set subwords"),
    (TextClassifier(NBLinear(), sharing=0), "set subwords"),
    (TextClassifier(NBLinear(), vocabulary=["card"]), "unlabelled and vocabulary exclude"),
    (TextClassifier("auto"), "unlabelled is for NBLinear"),
])
def test_models_without_parts_refuse_them(model, message):
    with pytest.raises(ParameterError, match=message):
        model.fit(ROWS, unlabelled=NEW)


def test_samples_lists_and_other_columns_are_refused():
    with pytest.raises(ParameterError, match="set subwords"):
        TextClassifier(NBLinear(idf=False)).fit(ROWS, unlabelled=NEW, keep_sample=4)
    lists = ROWS.with_columns(pl.col("text").str.split(" "))
    with pytest.raises(ParameterError, match="set subwords"):
        TextClassifier(NBLinear()).fit(lists, unlabelled=lists)
    long = pl.DataFrame({"text": [" ".join(f"{row}word{n}" for n in range(101)) for row in "ab"],
                         "label": ["a", "b"]})
    with pytest.raises(ParameterError, match="weigh nothing by default"):
        TextClassifier(NBLinear()).fit(long, unlabelled=["aword1000"])
    assert "aword1000" in TextClassifier(NBLinear(), sharing=0.5).fit(
        long, unlabelled=["aword1000"]).vocabulary_
    with pytest.raises(SchemaError, match="body"):
        TextClassifier(NBLinear()).fit(ROWS, unlabelled=pl.DataFrame({"body": ["a"]}))
