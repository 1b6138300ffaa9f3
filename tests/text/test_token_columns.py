"""Lists of tokens, and texts that a function of the user splits: all else is as for texts."""

import re
from functools import partial

import polars as pl
import pytest

import textnb
from tests.text.plain_tokens import segment
from textnb import ExportError, NBLinear, ParameterError, SchemaError, TextClassifier, Tokenizer

LISTS = pl.DataFrame({
    "tokens": [["New York", "film"], ["dull", None, ""], None, ["New York"], ["dull", "FILM"]],
    "text": ["a fine film", "dull", "fine", None, "dull plot"],
    "label": ["pos", "neg", "pos", "pos", "neg"]})
OWN = Tokenizer(token_columns=True)
PAIRS = Tokenizer(ngram_range=(1, 2))


def split_by(text, by=None):
    return text.split()


@pytest.fixture(scope="module")
def model():
    return TextClassifier(text="tokens").fit(LISTS)


@pytest.fixture(scope="module")
def both():
    """A model of a column of texts and one of tokens."""
    return TextClassifier(text=["text", "tokens"]).fit(LISTS)


class TestLearning:
    def test_fit_sees_which_columns_are_lists(self, model, both):
        assert model.vocabulary_ == ["dull", "film", "new york"]
        assert model.fitted_.settings.tokenizer == Tokenizer(token_columns=["tokens"])
        assert model.tokenizer is None
        assert both.vocabulary_ == ["dull", "film", "fine", "new york", "plot"]
        assert both.predict(LISTS.lazy()).collect()["predicted"].to_list() == (
            LISTS["label"].to_list())

    @pytest.mark.parametrize("estimator", [None, NBLinear()])
    def test_lists_equal_texts_of_the_same_words(self, estimator):
        given = LISTS.with_columns(text=pl.col("text").str.split(" "))
        texts = TextClassifier(
            estimator, tokenizer=PAIRS.with_params(pattern="[^ ]+")).fit(LISTS)
        lists = TextClassifier(estimator, tokenizer=PAIRS).fit(given)
        assert lists.vocabulary_ == texts.vocabulary_
        assert (lists.predict_proba(given) == texts.predict_proba(LISTS)).all()
        assert lists.transform(given).toarray().tolist() == (
            texts.transform(LISTS).toarray().tolist())

    def test_a_sequence_of_lists(self):
        model = TextClassifier().fit([["good", "film"], ["dull"], None], ["pos", "neg", "pos"])
        assert model.predict([["good"], ["dull"]]).tolist() == ["pos", "neg"]
        assert model.explain(["good"])["term"].to_list() == [None, "good"]
        with pytest.raises(textnb.DataError, match=r"text 1 .* must be a list of tokens.*'dull'"):
            model.predict([["good"], "dull"])

    def test_learning_more_and_forgetting(self, model):
        parts = TextClassifier(text="tokens").partial_fit(LISTS[:2]).partial_fit(LISTS[2:])
        assert (parts.predict_proba(LISTS) == model.predict_proba(LISTS)).all()
        rest = TextClassifier(text="tokens").fit(LISTS).forget(LISTS[3:])
        assert rest.vocabulary_ == (rest + parts).vocabulary_ == ["dull", "film", "new york"]

    def test_words_are_escaped_where_n_grams_join_them(self):
        tokenizer = PAIRS.with_params(token_columns=True)
        assert tokenizer.tokens(["a b", "c"]) == ["a\\ b", "c", "a\\ b c"]
        assert tokenizer.split_terms("a\\ b c") == ["a b", "c"]
        prefixed = OWN.with_params(field_prefix=True)
        assert prefixed.tokens(["a b", "text:c"]) == ["text:a b", "text:text\\:c"]

    def test_validation_and_duplicates(self):
        rows = pl.concat([LISTS] * 4)
        own = TextClassifier(text="tokens", tokenizer=OWN)
        assert textnb.cross_validate(own, rows, folds=2).accuracy == 1.0
        assert textnb.leave_one_out(own.fit(rows), rows).accuracy == 1.0
        assert textnb.evaluate(own, rows).accuracy == 1.0
        found = textnb.find_duplicates(rows, text="tokens", tokenizer=OWN, near=None)
        assert found.exact == 12

    def test_contributions_add_up(self, model):
        shown = model.highlight(["New York", "film", "unknown"])
        assert [piece for piece, _ in shown.pieces["tokens"]] == [
            "New York", " ", "film", " ", "unknown"]
        row = model.predict(LISTS, explain=5).row(0, named=True)
        assert row["score"] == pytest.approx(
            row["intercept"] + sum(entry["contribution"] for entry in row["explanation"]))


class TestFiles:
    def test_a_file_keeps_it(self, both, reloaded):
        loaded = reloaded(both)
        assert loaded.tokenizer == Tokenizer(token_columns=["tokens"])
        assert (loaded.predict_proba(LISTS) == both.predict_proba(LISTS)).all()
        reloaded(loaded.partial_fit(LISTS))

    @pytest.mark.sweep(2)
    @pytest.mark.parametrize("columns", ["tokens", ["text", "tokens"]])
    @pytest.mark.parametrize(("target", "reads", "changed"), [
        *((target, "terms", {}) for target in ("json", "python", "npz", "polars")),
        ("polars", "text", {"stop_words": ["New York"], "field_prefix": True})])
    def test_exports(self, target, reads, changed, columns, tmp_path):
        tokenizer = PAIRS.with_params(**changed)
        model = TextClassifier(text=columns, tokenizer=tokenizer).fit(LISTS)
        made = textnb.export_model(model, tmp_path / "bundle", target, reads=reads)
        assert textnb.verify_export(made.path).passed
        assert textnb.verify_export(made.path, LISTS).passed

    @pytest.mark.parametrize(("target", "columns", "message"), [
        ("polars", "tokens", "Lists of tokens (`List(String)`), of 1 column: `tokens`. A missing "
                             "one counts as an empty one. `textnb mail --tokens` writes those"),
        ("polars", ["text", "tokens"], "Texts, and lists of tokens (`List(String)`) in `tokens`, "),
        ("python", "tokens", "how the model makes them from lists of tokens (`tokens`)"),
        ("csv", "text", "how the model makes them from texts (`text`)")])
    def test_a_bundle_says_what_columns_hold(self, target, columns, message, tmp_path):
        model = TextClassifier(text=columns).fit(LISTS)
        path = textnb.export_model(model, tmp_path / "bundle", target).path
        assert message in (path / "README.md").read_text()


class TestSegmenter:
    """A function of the user that splits texts: in Python alone, and by its name in files."""

    ROWS = pl.DataFrame({"text": ["New_York film", "dull film", None, "", "New_York  X"],
                         "label": ["pos", "neg", "pos", "neg", "pos"]})
    AS_LISTS = ROWS.with_columns(pl.col("text").str.split(" "))
    TOKENIZER = Tokenizer(segmenter=segment, ngram_range=(1, 2), stop_words=("x",))
    NAME = "tests.text.plain_tokens.segment"

    @pytest.fixture
    def model(self):
        return TextClassifier(tokenizer=self.TOKENIZER).fit(self.ROWS)

    def test_it_is_as_if_the_lists_were_given(self, model):
        given = TextClassifier(
            tokenizer=self.TOKENIZER.with_params(segmenter=None)).fit(self.AS_LISTS)
        assert model.vocabulary_ == given.vocabulary_ == [
            "dull", "dull film", "film", "new_york", "new_york film"]
        assert (model.predict_proba(self.ROWS) == given.predict_proba(self.AS_LISTS)).all()
        assert model.explain("dull")["term"].to_list() == [None, "dull"]
        assert self.TOKENIZER.tokens("A x B") == ["a", "b", "a b"]
        parts = TextClassifier(tokenizer=self.TOKENIZER).partial_fit(
            self.ROWS[:2]).partial_fit(self.ROWS[2:])
        assert (parts.predict_proba(self.ROWS) == model.predict_proba(self.ROWS)).all()

    def test_a_file_has_its_name_alone(self, model, tmp_path):
        path = tmp_path / "model.textnb"
        model.save(path)
        lists = textnb.load(path)
        assert lists.tokenizer == self.TOKENIZER.with_params(segmenter=self.NAME)
        assert (lists.predict_proba(self.AS_LISTS) == model.predict_proba(self.ROWS)).all()
        with pytest.raises(SchemaError, match=r"load\(path, segmenter="):
            lists.predict(self.ROWS)
        texts = textnb.load(path, segmenter=segment)
        assert (texts.predict_proba(self.ROWS) == model.predict_proba(self.ROWS)).all()
        texts.partial_fit(self.ROWS).save(path)
        assert textnb.load(path).tokenizer.segmenter == self.NAME
        with pytest.raises(ParameterError,
                           match=f"trained with segmenter='{self.NAME}'; got builtins.len"):
            textnb.load(path, segmenter=len)

    @pytest.mark.parametrize(("learned", "name", "others"), [
        (str.split, "builtins.str.split", [str.splitlines, re.compile(" ").split]),
        (re.compile(" ").split, "re.Pattern.split", [str.split]),
        (partial(re.split, " ", maxsplit=1), "re.split(' ', maxsplit=1)",
         [partial(re.split, "_", maxsplit=1), partial(re.split, " ", maxsplit=2), re.split]),
        (partial(split_by, by=object()), f"{__name__}.split_by(by=...)", [split_by])])
    def test_what_is_no_function_of_python_has_a_name_of_its_own(
        self, learned, name, others, tmp_path
    ):
        path = tmp_path / "model.textnb"
        model = TextClassifier(tokenizer=Tokenizer(segmenter=learned)).fit(self.ROWS)
        model.save(path)
        assert textnb.load(path).tokenizer.segmenter == name
        if isinstance(learned, partial):
            # As in another process.
            learned = partial(learned.func, *learned.args, **{
                name: value if isinstance(value, int) else object()
                for name, value in learned.keywords.items()})
        loaded = textnb.load(path, segmenter=learned)
        assert (loaded.predict_proba(self.ROWS) == model.predict_proba(self.ROWS)).all()
        for other in others:
            with pytest.raises(ParameterError, match="give the function of that name"):
                textnb.load(path, segmenter=other)

    def test_a_bundle_names_it(self, model, tmp_path):
        path = textnb.export_model(model, tmp_path / "bundle", "python").path
        assert (f"The function `{self.NAME}` makes these lists from texts."
                in (path / "README.md").read_text())

    def test_a_name_is_never_imported(self, tmp_path):
        path = tmp_path / "model.textnb"
        TextClassifier(tokenizer=Tokenizer(segmenter="no.such.module")).fit(
            self.AS_LISTS).save(path)
        assert textnb.load(path).tokenizer.segmenter == "no.such.module"
        TextClassifier().fit(self.ROWS).save(path)
        with pytest.raises(ParameterError, match="trained with segmenter=None"):
            textnb.load(path, segmenter=segment)

    def test_its_tokens_stand_in_the_text(self, model):
        pieces = model.highlight("A dull, New_York film").pieces["text"]
        assert [piece for piece, value in pieces if value is not None] == [
            "A", "dull,", "New_York", "film"]


@pytest.mark.parametrize(("settings", "rows"), [
    ({"text": "tokens"}, LISTS),
    ({"tokenizer": TestSegmenter.TOKENIZER}, TestSegmenter.ROWS)], ids=["tokens", "segments"])
@pytest.mark.parametrize("target", ["python", "javascript", "c", "sql-duckdb", "onnx"])
def test_exports_for_texts_refuse_them_by_name(target, settings, rows, tmp_path):
    model = TextClassifier(**settings).fit(rows)
    with pytest.raises(ExportError, match=r"token_columns=|is given the tokens|segmenter="):
        textnb.export_model(model, tmp_path / "bundle", target, reads="text")


RENAMED = LISTS.select(tokens="text", text="tokens")


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda lists, texts: lists.predict(RENAMED), SchemaError,
     r"'tokens' must be List\(String\).*it is String"),
    (lambda lists, texts: texts.predict(RENAMED), SchemaError,
     r"'text' must be String; it is List.*token_columns"),
    (lambda lists, texts: texts.partial_fit(RENAMED.with_columns(label=pl.lit("pos"))), SchemaError,
     "must be String"),
    (lambda lists, texts: lists.predict(pl.DataFrame({"tokens": [[1]]})), SchemaError,
     r"must be List\(String\)"),
    (lambda lists, texts: lists.explain("New York"), ParameterError,
     "a list of tokens for the column 'tokens'"),
    (lambda lists, texts: texts.explain(["New York"]), ParameterError, "one text"),
    (lambda lists, texts: TextClassifier(tokenizer=Tokenizer(token_columns=["b"])).fit(LISTS),
     ParameterError, "token_columns names 'b', which is not among"),
    (lambda lists, texts: textnb.cross_validate(TextClassifier(text="tokens"), LISTS), SchemaError,
     r"Tokenizer\(token_columns=\['tokens'\]\)")])
def test_what_is_refused(call, error, message, model):
    with pytest.raises(error, match=message):
        call(model, TextClassifier().fit(LISTS))


@pytest.mark.parametrize("settings", [
    {"pattern": "[a-z]+"}, {"unspaced": "whole"}, {"keep": ("symbols",)}])
def test_settings_of_texts_without_a_text(settings):
    with pytest.raises(ParameterError, match=f"{next(iter(settings))}=.* is for texts"):
        TextClassifier(text="tokens", tokenizer=Tokenizer(**settings)).fit(LISTS)
    TextClassifier(text=["text", "tokens"], tokenizer=Tokenizer(**settings)).fit(LISTS)
    if "unspaced" not in settings:
        with pytest.raises(ParameterError, match="split by a segmenter"):
            TextClassifier(tokenizer=Tokenizer(segmenter=segment, **settings)).fit(LISTS)
