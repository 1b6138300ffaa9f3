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
from textnb.bayes import sharing
from textnb.errors import DataError, ParameterError
from textnb.export.describe import describe_model

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
    assert describe_model(load(tmp_path / "m.textnb"))["unlabelled_words"] == 3
    explained = model.predict(pl.DataFrame({"text": ["depository"]}), explain=3)
    assert explained["explanation"][0][0]["term"] == "depository"
    bundle = export_model(model, tmp_path / "out", "python").path
    assert verify_export(bundle, [*filter(None, NEW)]).passed


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


@pytest.mark.parametrize(("model", "message"), [
    (TextClassifier(MultinomialNB()), "unlabelled is for NBLinear, .*; MultinomialNB shares none"),
    (TextClassifier(NBLinear(), tokenizer=Tokenizer()), "unlabelled needs subwords"),
    (TextClassifier(NBLinear(), sharing=0), "unlabelled needs a sharing above 0"),
    (TextClassifier(NBLinear(), vocabulary=["card"]), "unlabelled and vocabulary exclude"),
    (TextClassifier("auto"), "unlabelled is for NBLinear"),
])
def test_models_without_parts_refuse_them(model, message):
    with pytest.raises(ParameterError, match=message):
        model.fit(ROWS, unlabelled=NEW)


def test_samples_lists_and_other_columns_are_refused(monkeypatch):
    with pytest.raises(ParameterError, match="unlabelled needs subwords"):
        TextClassifier(NBLinear(idf=False)).fit(ROWS, unlabelled=NEW, keep_sample=4)
    lists = ROWS.with_columns(pl.col("text").str.split(" "))
    with pytest.raises(ParameterError, match="unlabelled needs subwords"):
        TextClassifier(NBLinear()).fit(lists, unlabelled=lists)
    with pytest.raises(ParameterError, match="unlabelled needs subwords"):
        TextClassifier(NBLinear()).fit(
            ROWS.with_columns(pl.concat_list("label")), unlabelled=NEW)
    long = pl.DataFrame({"text": [" ".join(f"{row}word{n}" for n in range(101)) for row in "ab"],
                         "label": ["a", "b"]})
    monkeypatch.setattr(sharing, "_MAX_ROWS", 1)
    with pytest.raises(ParameterError, match="weigh nothing by default"):
        TextClassifier(NBLinear()).fit(long, unlabelled=["aword1000"])
    assert "aword1000" in TextClassifier(NBLinear(), sharing=0.5).fit(
        long, unlabelled=["aword1000"]).vocabulary_
    for texts, message in ((pl.DataFrame({"body": ["a"]}), "no column 'text'"), (3, "X must be"),
                           (pl.DataFrame({"text": [["a"]]}), "lists of tokens"),
                           (pl.Series([1]), "Int64"), ("nowhere.csv", "list")):
        with pytest.raises(ParameterError, match=f"the unlabelled texts: .*{message}"):
            TextClassifier(NBLinear()).fit(ROWS, unlabelled=texts)
    for texts in ([], ["", None], pl.DataFrame({"text": []}, schema={"text": pl.String})):
        with pytest.raises(DataError, match="the unlabelled texts have no word"):
            TextClassifier(NBLinear()).fit(ROWS, unlabelled=texts)
