"""Text columns that are lists of tokens: no splitting, and all else as for texts."""

import polars as pl
import pytest

import textnb
from textnb import (
    DataError,
    ExportError,
    NBLinear,
    ParameterError,
    SchemaError,
    TextClassifier,
    Tokenizer,
)
from textnb.text.plain import plain_tokens

LISTS = pl.DataFrame({
    "tokens": [["New York", "film"], ["dull", None, ""], None, ["New York"], ["dull", "FILM"]],
    "text": ["a fine film", "dull", "fine", None, "dull plot"],
    "label": ["pos", "neg", "pos", "pos", "neg"]})
OWN = Tokenizer(token_columns=True)


class TestLearning:
    def test_fit_sees_which_columns_are_lists(self):
        model = TextClassifier(text="tokens").fit(LISTS)
        assert model.vocabulary_ == ["dull", "film", "new york"]
        assert model.fitted_.settings.tokenizer == Tokenizer(token_columns=["tokens"])
        assert model.tokenizer == Tokenizer()

    def test_texts_beside_lists(self):
        model = TextClassifier(text=["text", "tokens"]).fit(LISTS)
        assert model.vocabulary_ == ["dull", "film", "fine", "new york", "plot"]
        assert model.predict(LISTS.lazy()).collect()["predicted"].to_list() == (
            LISTS["label"].to_list())

    @pytest.mark.parametrize("estimator", [None, NBLinear()])
    def test_lists_equal_texts_of_the_same_words(self, estimator):
        split = Tokenizer(pattern="[^ ]+", ngram_range=(1, 2))
        given = LISTS.with_columns(text=pl.col("text").str.split(" "))
        texts = TextClassifier(estimator, tokenizer=split).fit(LISTS)
        lists = TextClassifier(estimator, tokenizer=Tokenizer(ngram_range=(1, 2))).fit(given)
        assert lists.vocabulary_ == texts.vocabulary_
        assert (lists.predict_proba(given) == texts.predict_proba(LISTS)).all()
        assert lists.transform(given).toarray().tolist() == (
            texts.transform(LISTS).toarray().tolist())

    def test_a_sequence_of_lists(self):
        model = TextClassifier().fit([["good", "film"], ["dull"], None], ["pos", "neg", "pos"])
        assert model.predict([["good"], ["dull"]]).tolist() == ["pos", "neg"]
        assert model.explain(["good"])["term"].to_list() == [None, "good"]
        with pytest.raises(DataError, match=r"text 1 .* must be a list of tokens.*'dull'"):
            model.predict([["good"], "dull"])

    def test_learning_more_and_forgetting(self):
        whole = TextClassifier(text="tokens").fit(LISTS)
        parts = TextClassifier(text="tokens").partial_fit(LISTS[:2]).partial_fit(LISTS[2:])
        assert (parts.predict_proba(LISTS) == whole.predict_proba(LISTS)).all()
        rest = whole.forget(LISTS[3:])
        assert rest.vocabulary_ == ["dull", "film", "new york"]
        assert (whole + parts).vocabulary_ == ["dull", "film", "new york"]

    def test_words_are_escaped_where_n_grams_join_them(self):
        tokenizer = Tokenizer(token_columns=True, ngram_range=(1, 2))
        assert tokenizer.tokens(["a b", "c"]) == ["a\\ b", "c", "a\\ b c"]
        assert tokenizer.split_terms("a\\ b c") == ["a b", "c"]
        one = tokenizer.with_params(ngram_range=(1, 1), field_prefix=True)
        assert one.tokens(["a b", "text:c"]) == ["text:a b", "text:text\\:c"]

    def test_validation_and_duplicates(self):
        rows = pl.concat([LISTS] * 4)
        own = TextClassifier(text="tokens", tokenizer=OWN)
        assert textnb.cross_validate(own, rows, folds=2).accuracy == 1.0
        assert textnb.leave_one_out(own.fit(rows), rows).accuracy == 1.0
        assert textnb.evaluate(own, rows).accuracy == 1.0
        found = textnb.find_duplicates(rows, text="tokens", tokenizer=OWN, near=None)
        assert found.exact == 12


class TestFiles:
    def test_a_file_keeps_it(self, tmp_path):
        model = TextClassifier(text=["text", "tokens"]).fit(LISTS)
        model.save(tmp_path / "model.textnb")
        loaded = textnb.load(tmp_path / "model.textnb")
        assert loaded.tokenizer == Tokenizer(token_columns=["tokens"])
        assert (loaded.predict_proba(LISTS) == model.predict_proba(LISTS)).all()
        loaded.partial_fit(LISTS).save(tmp_path / "model.textnb")

    @pytest.mark.parametrize("target", ["json", "python", "npz", "polars"])
    @pytest.mark.parametrize("columns", ["tokens", ["tokens", "text"]])
    def test_exports_for_tokens(self, target, columns, tmp_path):
        model = TextClassifier(text=columns, tokenizer=Tokenizer(ngram_range=(1, 2))).fit(LISTS)
        made = textnb.export_model(model, tmp_path / "bundle", target, reads="terms")
        verified = textnb.verify_export(made.path)
        assert verified.passed
        assert textnb.verify_export(made.path, LISTS).passed

    def test_polars_reads_the_lists(self, tmp_path):
        tokenizer = Tokenizer(ngram_range=(1, 2), stop_words=["New York"], field_prefix=True)
        model = TextClassifier(text=["text", "tokens"], tokenizer=tokenizer).fit(LISTS)
        made = textnb.export_model(model, tmp_path / "bundle", "polars", reads="text")
        assert textnb.verify_export(made.path).passed
        assert textnb.verify_export(made.path, LISTS).passed

    @pytest.mark.parametrize("target", ["python", "javascript", "sql-duckdb", "onnx"])
    def test_exports_for_texts_refuse_it_by_name(self, target, tmp_path):
        model = TextClassifier(text="tokens").fit(LISTS)
        with pytest.raises(ExportError, match=r"token_columns=|is given the tokens"):
            textnb.export_model(model, tmp_path / "bundle", target, reads="text")


class TestExplanations:
    def test_contributions_add_up(self):
        model = TextClassifier(text="tokens").fit(LISTS)
        shown = model.highlight(["New York", "film", "unknown"])
        assert [piece for piece, _ in shown.pieces["tokens"]] == [
            "New York", " ", "film", " ", "unknown"]
        row = model.predict(LISTS, explain=5).row(0, named=True)
        assert row["score"] == pytest.approx(
            row["intercept"] + sum(entry["contribution"] for entry in row["explanation"]))


class TestRefusals:
    def test_a_model_reads_what_it_has_learned(self):
        lists = TextClassifier(text="tokens").fit(LISTS)
        texts = TextClassifier().fit(LISTS)
        renamed = LISTS.select(tokens="text", text="tokens")
        with pytest.raises(SchemaError, match=r"'tokens' must be List\(String\).*it is String"):
            lists.predict(renamed)
        with pytest.raises(SchemaError, match=r"'text' must be String; it is List.*token_columns"):
            texts.predict(renamed)
        with pytest.raises(SchemaError, match="must be String"):
            texts.partial_fit(renamed.with_columns(label=pl.lit("pos")))
        with pytest.raises(SchemaError, match=r"must be List\(String\)"):
            lists.predict(pl.DataFrame({"tokens": [[1]]}))
        with pytest.raises(ParameterError, match="a list of tokens for the column 'tokens'"):
            lists.explain("New York")
        with pytest.raises(ParameterError, match="one text"):
            texts.explain(["New York"])

    @pytest.mark.parametrize("settings", [
        {"pattern": "[a-z]+"}, {"unspaced": "whole"}, {"keep": ("symbols",)}])
    def test_settings_of_texts_without_a_text(self, settings):
        tokenizer = Tokenizer(**settings)
        name = next(iter(settings))
        with pytest.raises(ParameterError, match=f"{name}=.* is for texts"):
            TextClassifier(text="tokens", tokenizer=tokenizer).fit(LISTS)
        TextClassifier(text=["text", "tokens"], tokenizer=tokenizer).fit(LISTS)

    def test_other_settings(self):
        with pytest.raises(ParameterError, match=r"token_columns is for words.*'char'"):
            Tokenizer(token_columns=True, analyzer="char")
        with pytest.raises(ParameterError, match="token_columns names 'b', which is not among"):
            TextClassifier(tokenizer=Tokenizer(token_columns=["b"])).fit(LISTS)
        with pytest.raises(SchemaError, match=r"Tokenizer\(token_columns=\['tokens'\]\)"):
            textnb.cross_validate(TextClassifier(text="tokens"), LISTS)

    def test_plain_python(self):
        plan = Tokenizer(token_columns=["b"], stop_words=["x y"]).plan()
        assert plain_tokens(plan, {"a": "Aa, x", "b": ["X y", "Z", None]}) == ["aa", "z"]
        for row in ({"a": ["a"], "b": ["b"]}, {"a": "a", "b": "b"}):
            with pytest.raises(ParameterError, match="must hold a"):
                plain_tokens(plan, row)
