"""Words with similar vectors share weights; so do words that no labelled row holds."""

import gzip
import json
import sys
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest
from sklearn.svm import LinearSVC

import textnb
from tests.classifier.test_default_terms import same
from textnb import NBLinear, TextClassifier, Tokenizer, export_model, verify_export
from textnb.errors import ParameterError, SchemaError, SourceError
from textnb.export.describe import describe_model
from textnb.learning.vectors import read_vectors

# Sports, and money; "the" tells nothing.
VECTORS = pl.DataFrame({
    "term": ["the", "hockey", "Goalie", "puck", "skate", "bank", "loan", "credit"],
    "vector": [[1.0, 1.0, 1.0], [3.0, 0.0, 0.1], [2.0, 0.1, 0.0], [1.0, 0.0, 0.0],
               [5.0, 0.2, 0.1], [0.0, 2.0, 0.1], [0.1, 1.0, 0.0], [0.0, 4.0, 0.2]]})
ROWS = pl.DataFrame({"text": ["the hockey puck", "hockey today", "the bank today", "a bank loan"],
                     "label": ["sport", "sport", "money", "money"]})


def fitted(vectors=VECTORS, rows=ROWS, fit=(), **settings):
    return TextClassifier(NBLinear(), vectors=vectors, **settings).fit(rows, **dict(fit))


def text_file(path, opened=open, header=""):
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(header + "".join(
            f"{term} {' '.join(map(str, vector))}\n" for term, vector in VECTORS.iter_rows()))
    return path


def test_words_that_no_row_holds_have_the_class_of_similar_words():
    model = fitted()
    assert {"goalie", "skate", "credit"} < {*model.vocabulary_}
    assert model.predict(["goalie", "skate", "a credit"]).tolist() == ["sport", "sport", "money"]
    # Counts know nothing of them.
    counts = model.fitted_.counts
    assert counts.total_counts[model.vocabulary_.index("goalie")] == 0
    fixed = fitted(vocabulary=["bank", "hockey", "skate"])
    assert fixed.vocabulary_ == ["bank", "hockey", "skate"]
    assert fixed.predict(["skate"]).tolist() == ["sport"]
    without = fitted(lexicon=0)
    assert without.vocabulary_ == TextClassifier(NBLinear()).fit(ROWS).vocabulary_
    assert "skate" not in fitted(lexicon=4).vocabulary_ + fitted(fit={
        "unlabelled": ["credit goalie", None]}).vocabulary_
    assert {"credit", "goalie"} < {*fitted(fit={"unlabelled": ["credit goalie"]}).vocabulary_}


def test_weights_are_those_of_liblinear_on_terms_and_vectors():
    rows = pl.DataFrame({"text": ["hockey puck", "puck bank puck", "bank loan", "loan loan skate",
                                  "hockey loan bank"], "label": [*"aabba"]})
    model = TextClassifier(
        NBLinear(power=0.0, tol=1e-9, held_out=0), tokenizer=Tokenizer(), vectors=VECTORS,
        vector_weight=0.7, lexicon=0).fit(rows)
    terms = model.vocabulary_
    unit = np.array([dict(VECTORS.iter_rows())[term] for term in terms])
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    factors = 0.7 * (unit - unit.mean(axis=0))
    counts = np.array([[text.split().count(term) for term in terms] for text in rows["text"]])
    values = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0.0)
    values *= np.log(6 / (1 + (counts > 0).sum(axis=0))) + 1
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    oracle = LinearSVC(dual=False, tol=1e-10).fit(
        np.hstack([values, values @ factors]), rows["label"] == "b")
    n = len(terms)
    expected = oracle.coef_[0, :n] + factors @ oracle.coef_[0, n:]
    form = model.linear_form()
    np.testing.assert_allclose(form.weights[:, 1] - form.weights[:, 0], expected, atol=1e-5)
    # Folded weights score as the wide rows.
    np.testing.assert_allclose(values @ expected, np.hstack([values, values @ factors])
                               @ oracle.coef_[0], atol=1e-12)


def test_all_kinds_of_sources_give_the_same_model(tmp_path):
    model = fitted()
    VECTORS.write_parquet(tmp_path / "v.parquet")
    for source in (VECTORS.lazy(), VECTORS.with_columns(pl.col("vector").list.to_array(3)),
                   tmp_path / "v.parquet", str(tmp_path / "v.parquet"),
                   text_file(tmp_path / "glove.txt"),
                   text_file(tmp_path / "word2vec.vec", header="8 3\n"),
                   text_file(tmp_path / "marked.vec", header="\ufeff8 3\n"),
                   text_file(tmp_path / "v.txt.gz", gzip.open)):
        same(model, fitted(source))


def test_first_words_are_counted_without_the_line_of_numbers(tmp_path):
    for header in ("", "8 3\n"):
        path = text_file(tmp_path / "v.vec", header=header)
        assert [read_vectors(path, pl.Series(["bank"]), n_first=n).words.to_list()
                for n in (0, 1)] == [["bank"], ["the", "bank"]]


def test_parts_of_words_sum_to_words(tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="needs textnb[vectors]")
    numpy_files = pytest.importorskip("safetensors.numpy", reason="needs textnb[vectors]")
    pieces = ["hoc", "##key", "bank", "##er", "x", "##x"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(
        {piece: place for place, piece in enumerate(pieces)}, unk_token="x"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    table = np.arange(12, dtype=np.float16).reshape(6, 2)
    numpy_files.save_file({"embeddings": table}, tmp_path / "model.safetensors")
    # A word with the part for what is unknown has no vector.
    found = read_vectors(tmp_path, pl.Series(["hockey", "banker", "xxxx", "zebra"]), n_first=9)
    assert dict(zip(found.words, found.values.tolist(), strict=True)) == {
        "hockey": [2.0, 4.0], "banker": [10.0, 12.0], "hoc": [0.0, 1.0], "bank": [4.0, 5.0],
        "x": [8.0, 9.0]}
    assert read_vectors(tmp_path / "model.safetensors", pl.Series(["bank"])).values.tolist() == [
        [4.0, 5.0]]
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(SourceError, match=r"model\.safetensors"):
        read_vectors(tmp_path, pl.Series(["bank"]))
    numpy_files.save_file({"a": table, "b": table}, tmp_path / "model.safetensors")
    with pytest.raises(SourceError, match="must hold one matrix"):
        read_vectors(tmp_path, pl.Series(["bank"]))
    numpy_files.save_file({"a": table[:2]}, tmp_path / "model.safetensors")
    with pytest.raises(SourceError, match="not of one model"):
        read_vectors(tmp_path, pl.Series(["bank"]))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": 3}))
    with pytest.raises(SourceError, match=r"tokenizer\.json"):
        read_vectors(tmp_path, pl.Series(["bank"]))


@pytest.mark.skipif(find_spec("wordllama") is None, reason="needs textnb[vectors]")
def test_wordllama_is_read_without_importing_it():
    model = fitted("wordllama", rows=pl.DataFrame({
        "text": ["our football team won", "the hockey match", "a bank loan", "the stock market"],
        "label": ["sport", "sport", "money", "money"]}))
    assert model.predict(["a basketball player", "repay the debt"]).tolist() == ["sport", "money"]
    assert "wordllama" not in sys.modules


def test_files_and_exports_hold_the_weights(reloaded, tmp_path):
    model = fitted()
    loaded = reloaded(model)
    same(model, loaded)
    card = describe_model(loaded)
    assert (card["vectors"], card["vector_weight"]) == ("a table in memory", 1.6)
    with pytest.raises(ParameterError, match="came from a table, which its file does not hold"):
        loaded.fit(ROWS)
    same(loaded.set_params(vectors=VECTORS, vector_weight=None).fit(ROWS), model)
    VECTORS.write_parquet(tmp_path / "v.parquet")
    same(model, reloaded(fitted(tmp_path / "v.parquet")).fit(ROWS))
    assert verify_export(export_model(model, tmp_path / "out", "python").path,
                         ["goalie", "the skate"]).passed


def test_weights_are_chosen_by_rows_where_these_are_enough():
    def weight(rows, **settings):
        return fitted(rows=rows, **settings).fitted_.settings.parameters["vector_weight"]

    assert weight(ROWS) == 1.6
    assert weight(ROWS, vector_weight=0.5) == 0.5
    assert weight(pl.concat([ROWS] * 40)) == 1.6
    # Here words alone are always right, and each is in many rows.
    assert weight(pl.concat([ROWS] * 150)) == 0.0
    assert weight(pl.concat([ROWS] * 1_300)) == 0.0
    model = fitted(rows=pl.concat([ROWS] * 150))
    assert model.vocabulary_ == TextClassifier(NBLinear()).fit(ROWS).vocabulary_
    lists = ROWS.with_columns(pl.concat_list("label"))
    assert weight(pl.concat([lists] * 150)) > 0


def test_a_language_without_vectors_is_said():
    rows = ROWS.with_columns(text=pl.Series(["собака", "собака", "кот", "кот"]))
    with pytest.warns(UserWarning, match="no word of the labelled texts has a vector"):
        model = fitted(rows=rows)
    same(model, TextClassifier(NBLinear()).fit(rows))
    assert describe_model(model)["vector_weight"] == 0.0


def test_names_of_columns_and_lists_of_tokens_are_read():
    named = ROWS.select("label", title="text", body=pl.lit("bank"))
    model = fitted(rows=named, text=["title", "body"], tokenizer=Tokenizer(field_prefix=True))
    assert {"title:goalie", "body:goalie", "title:hockey"} < {*model.vocabulary_}
    lists = ROWS.with_columns(pl.col("text").str.split(" "))
    model = fitted(rows=lists)
    assert model.predict([["Goalie"], ["credit"]]).tolist() == ["sport", "money"]


def bad(**columns):
    return VECTORS.with_columns(**columns)


@pytest.mark.parametrize(("settings", "error", "message"), [
    ({"vectors": 3}, ParameterError, "vectors must be a table"),
    ({"vectors": {"term": ["a"]}}, ParameterError, "vectors must be a table"),
    ({"vectors": VECTORS, "estimator": textnb.MultinomialNB()}, ParameterError,
     "vectors is for NBLinear, .*; MultinomialNB"),
    ({"vectors": VECTORS, "estimator": "auto"}, ParameterError, "leave vectors at the default"),
    ({"vectors": VECTORS, "tokenizer": Tokenizer(analyzer="char")}, ParameterError,
     "vectors is for words: leave analyzer"),
    ({"vectors": VECTORS, "estimator": NBLinear(l=[0.3] * 7)}, ParameterError, "one number for l"),
    ({"vectors": VECTORS, "vector_weight": 3.0}, ParameterError, "vector_weight must be"),
    ({"vectors": VECTORS, "lexicon": 20_001}, ParameterError, "lexicon must be"),
    ({"vector_weight": 1.0}, ParameterError, "vector_weight is that of vectors"),
    ({"vectors": VECTORS.rename({"term": "word"})}, SchemaError, '"term" .* has \'word\''),
    ({"vectors": bad(vector=pl.lit("a"))}, SchemaError, "lists of numbers"),
    ({"vectors": bad(vector=pl.Series([[1.0]] + [[1.0, 2.0]] * 7))}, SourceError,
     "the vector of 'hockey' has 2 numbers, and that of 'the' 1"),
    ({"vectors": bad(vector=pl.Series([[1.0, float("nan")]] * 8))}, SourceError, "NaN"),
    ({"vectors": bad(vector=pl.Series([[1.0, None]] * 8))}, SourceError, "NaN"),
    ({"vectors": "nowhere.vec"}, SourceError, "no such file"),
    ({"vectors": "nowhere.safetensors"}, (SourceError, ParameterError), "nowhere|textnb.vectors"),
    ({"vectors": "nowhere.parquet"}, SourceError, "no such file"),
])
def test_errors(settings, error, message):
    with pytest.raises(error, match=message):
        TextClassifier(**{"estimator": NBLinear(), **settings}).fit(ROWS)


def test_words_with_a_space_are_skipped(tmp_path):
    (tmp_path / "v.txt").write_text("the 1 2\nat x@y 3 4\n. . . 5 6\nat 7 8\n")
    found = read_vectors(tmp_path / "v.txt", pl.Series(["at"]), n_first=9)
    assert (found.words.to_list(), found.values.tolist()) == (["the", "at"], [[1, 2], [7, 8]])


@pytest.mark.parametrize(("text", "message"), [
    ("the 1 2\nhockey 1 2 3\n", "line 2 has 3 numbers, and others have 2"),
    ("the 1 2\nhockey 1 x\n", "line 2 is not a word and its numbers"),
    ("the 1 2\nhockey 1 nan\n", "the vector of 'hockey' holds NaN"),
    ("the 1 2\nhockey 1 1e39\n", "the vector of 'hockey' holds NaN or infinity"),
    ("\u00b2 2\nthe 1 2\n", "line 2 has 2 numbers, and others have 1"),
    ("3 2\nthe 1 2\nhockey 1 2\n", "its first line says 3 words, and it has 2: the file was cut"),
    ("the\n", "line 1 is not a word and its numbers"), ("the 1\n\udcff", "utf-8")])
def test_errors_of_text_files(tmp_path, text, message):
    (tmp_path / "v.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SourceError, match=message):
        fitted(tmp_path / "v.txt")
