"""Every engine finds the tokens of the plain oracle, or refuses what it does not know by name."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections import Counter

import numpy as np
import polars as pl
import pytest

import textnb
from tests.text import plain_tokens as oracle
from textnb import ExportError, ModelFileError, ParameterError, TextClassifier, Tokenizer
from textnb.export.bundle import bundle_of
from textnb.export.golden import rows_of
from textnb.export.portable import portable
from textnb.export.targets.base import EngineMissing
from textnb.export.targets.known import TARGETS
from textnb.export.targets.onnx_graph import split_of
from textnb.export.targets.polars_code import source_of
from textnb.filter.mailfilter import MailFilter
from textnb.text.compiled import reason_for_expressions, usable_kernel
from textnb.text.compiled_plan import compiled_plan
from textnb.text.counting import CountSpec
from textnb.text.counts import count_by_label
from textnb.text.expressions import separators, split_expr
from textnb.text.matrix import count_matrix
from textnb.text.plain import clean, plain_tokens
from textnb.text.plan import (
    Characters,
    Cleaning,
    Lowercase,
    Matches,
    NGrams,
    Normalize,
    Plan,
    Runs,
    Splitting,
    Step,
    StopWords,
    StripAccents,
    WordsAndPairs,
    plan_of,
)
from textnb.text.spans import pieces_of

FIELDS = [field.name for field in dataclasses.fields(Tokenizer)]
# Of each setting, values that are not the default, and what else must be set to see what they do.
VALUES = {
    "pattern": [{"pattern": r"[\p{L}\p{M}']{3,}"}, {"pattern": "[a-z]+"}, {"pattern": "[^,]+"},
                {"pattern": r"[\p{L}]+-?[\p{L}]+"}],
    "lowercase": [{"lowercase": False}, {"lowercase": "tr"}, {"lowercase": "az"},
                  {"lowercase": "tr", "ngram_range": (1, 2), "stop_words": ("I\u015eIK",)}],
    "ngram_range": [{"ngram_range": (1, 2)}, {"ngram_range": (2, 3)},
                    {"ngram_range": (1, 2), "pattern": "[^,]+"}],
    "analyzer": [{"analyzer": "char"}, {"analyzer": "char_wb"},
                 {"analyzer": "char", "ngram_range": (1, 3)},
                 {"analyzer": "char_wb", "ngram_range": (4, 9)}],
    "normalize": [{"normalize": form} for form in ("NFC", "NFD", "NFKC", "NFKD")],
    "strip_accents": [{"strip_accents": "unicode"}, {"strip_accents": "ascii"},
                      {"strip_accents": "marks"}],
    "stop_words": [{"stop_words": ("The", "cat's")},
                   {"stop_words": ("The", "cat's"), "ngram_range": (2, 2)}],
    "field_prefix": [{"field_prefix": True}, {"field_prefix": ("text",)},
                     {"field_prefix": True, "pattern": "[^,]+"},
                     {"field_prefix": True, "analyzer": "char_wb"}],
    "keep": [{"keep": ("emoji", "symbols", "abbreviations", "punctuation")},
             {"keep": ("symbols",), "unspaced": "whole", "ngram_range": (1, 2)}],
    "token_columns": [{"token_columns": True}, {"token_columns": ("text",), "ngram_range": (1, 2)},
                      {"token_columns": True, "ngram_range": (2, 3), "lowercase": "tr",
                       "strip_accents": "unicode", "field_prefix": True},
                      {"token_columns": True, "stop_words": ("The", "cat's"), "normalize": "NFKC"},
                      {"token_columns": True, "strip_accents": "ascii", "lowercase": False}],
    "segmenter": [{"segmenter": oracle.segment}, {
        "segmenter": oracle.segment, "ngram_range": (1, 2), "stop_words": ("The",),
        "field_prefix": True, "lowercase": False}],
    "unspaced": [{"unspaced": "whole"}, {"unspaced": "whole", "ngram_range": (1, 2)}],
}
CASES = [pytest.param(name, changed, id=f"{name}-{number}")
         for name, values in VALUES.items() for number, changed in enumerate(values)]
TEXTS = [
    "", " ", "The the cat's CAT, caf\u00e9 cafe\u0301 ", "new  york,\t\tNew York , a:b\\c e-mail",
    "\ufb01ne \u039f\u0394\u039f\u03a3 \u0130stanbul \u01c4 \u00c5 12 \u00bd",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \uac01 x", "cat's the, the cat",
    "USB\u7ebf \u623f\u95f4\u5f88\u597d\uff0c\u597d x\u5f88, "
    "\u30c6\u30ad\u30b9\u30c8\u3067\u3059 \u0e44\u0e17\u0e22ab \U00020000\u4e00",
    "C++ c# \u7ebfc++, U.S. $5.50 \u20ac3 10%! \u2764\ufe0f\U0001f600x?\U0001f600 au.s. 1a++ a_b#",
    "I\u015eIK I\u0307I I\u0327\u0307 \u0130I \u0644\u0640\u0640\u064e\u0639"]
ROWS = pl.DataFrame({"text": TEXTS})
LISTS = [[*re.split("(?<=[,. ])", text), None] for text in TEXTS]
LIST_ROWS = pl.DataFrame({"text": LISTS}, schema={"text": pl.List(pl.String)})
SPLIT = Tokenizer(pattern="[^ ]+", lowercase=False)

Refusal = (ParameterError, ExportError)


def rows(tokenizer, bundle=None):
    if bundle is not None and tokenizer.segmenter:
        return ROWS.select(pl.col("text").str.split(" "))
    return LIST_ROWS if tokenizer.token_columns else ROWS


def texts(tokenizer):
    return LISTS if tokenizer.token_columns else TEXTS


def by_expressions(tokenizer):
    return rows(tokenizer).select(t=tokenizer.expr("text"))["t"].to_list()


def by_separators(tokenizer):
    plan = tokenizer.plan()
    found = separators(plan)
    split = rows(tokenizer).select(t=split_expr(plan, "text"))["t"].to_list()
    return [pl.Series(row, dtype=pl.String).filter(
        found.are_words(pl.Series(row, dtype=pl.String))).to_list() for row in split]


def by_plain_python(tokenizer):
    found = [plain_tokens(tokenizer.plan(), {"text": text}) for text in texts(tokenizer)]
    return [row for row in found if row is not None]


def by_compiled_kernel(tokenizer):
    if compiled_plan(tokenizer.plan()) is None:
        assert reason_for_expressions(tokenizer)
        raise ParameterError(f"{reason_for_expressions(tokenizer)}: {tokenizer!r}")
    counts, terms = count_matrix([rows(tokenizer)], tokenizer, "text")
    return [np.repeat(terms.to_numpy(), row).tolist() for row in counts.toarray()]


def by_polars_code(tokenizer):
    names = {"pl": pl}
    exec(source_of(tokenizer.plan(), ["text"]), names)
    return rows(tokenizer).select(t=names["tokens"]("text"))["t"].to_list()


ENGINES = {
    "expressions": by_expressions, "separators": by_separators, "plain Python": by_plain_python,
    "compiled kernel": by_compiled_kernel, "Polars code": by_polars_code,
}


def expected(tokenizer):
    plain = not (tokenizer.token_columns or tokenizer.segmenter) and isinstance(
        tokenizer.plan().after_cleaning[0], Runs | WordsAndPairs)
    return [Counter(oracle.terms({"text": text}, tokenizer.to_dict(), plain=plain))
            for text in texts(tokenizer)]


def check_tokens(found, tokenizer):
    assert list(map(Counter, found)) == expected(tokenizer)


def _bundle(tokenizer):
    """A bundle for texts whose weights tell all terms of `TEXTS` apart."""
    labelled = rows(tokenizer).with_columns(label=pl.Series(["a", "b"] * 5)[:len(TEXTS)])
    bundle = bundle_of(TextClassifier(tokenizer=tokenizer).fit(labelled))
    weights = np.random.default_rng(3).normal(size=bundle.form.weights.shape)
    return dataclasses.replace(
        bundle, reads="text", form=dataclasses.replace(bundle.form, weights=weights))


def attempt(run):
    """What is found, and "" ; or None, and the refusal."""
    try:
        return run(), ""
    except Refusal as refusal:
        return None, str(refusal)


def names_one(refusal, settings):
    return any(name.replace("_", " ") in refusal.replace("_", " ") for name in settings)


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.delenv("TEXTNB_KERNEL", raising=False)


class TestEveryFieldAndEngine:
    """What refuses a value names the setting; what runs it finds the oracle's tokens."""

    def test_every_field_has_values(self):
        assert sorted(VALUES) == sorted(FIELDS)

    @pytest.mark.parametrize(("name", "changed"), CASES)
    def test_the_values_matter(self, name, changed):
        if name == "token_columns":
            pytest.skip("the texts are lists with it, and strings without it")
        default = {**changed, name: getattr(Tokenizer(), name)}
        assert expected(Tokenizer(**changed)) != expected(Tokenizer(**default))

    @pytest.mark.parametrize(("name", "changed"), CASES)
    @pytest.mark.parametrize("engine", ENGINES)
    def test_the_oracles_tokens_or_a_refusal(self, engine, name, changed):
        tokenizer = Tokenizer(**changed)
        found, refusal = attempt(lambda: ENGINES[engine](tokenizer))
        if found is None:
            assert engine not in ("expressions", "Polars code") or name == "segmenter"
            assert engine != "expressions"
            assert names_one(refusal, changed) or engine == "separators"
        else:
            check_tokens(found, tokenizer)

    @pytest.mark.sweep(8, 160)
    @pytest.mark.parametrize(("name", "changed"), CASES)
    @pytest.mark.parametrize("base", [
        pytest.param(Tokenizer(), id="default"), pytest.param(SPLIT, id="split")])
    @pytest.mark.parametrize("target", [
        name for name, target in TARGETS.items() if "text" in target.reads])
    def test_a_target_that_splits_texts(self, target, base, name, changed, tmp_path):
        tokenizer, refusal = attempt(lambda: dataclasses.replace(base, **changed))
        if tokenizer is not None:
            refusal = attempt(lambda: tokenizer.expr("text"))[1]
        if refusal:
            # Settings that exclude each other: the tokenizer itself refuses them by name.
            assert names_one(refusal, [*changed, "pattern"])
            return
        engine = TARGETS[target]
        bundle, file = _bundle(tokenizer), tmp_path / f"model{TARGETS[target].suffix}"
        _, refusal = attempt(lambda: engine.write(bundle, file))
        if "is not installed" in refusal:
            pytest.skip(refusal)
        if refusal:
            assert names_one(refusal, FIELDS)
            return
        try:
            answered = engine.run(bundle, file, rows_of(bundle, rows(tokenizer, bundle)))
        except EngineMissing as missing:
            pytest.skip(str(missing))
        columns = {term: place for place, term in enumerate(bundle.terms)}
        scores = [bundle.intercept + sum(
            (bundle.weights[columns[term]] * times for term, times in row.items()),
            np.zeros(len(bundle.intercept))) for row in expected(tokenizer)]
        np.testing.assert_allclose(answered.scores, scores, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("engine", ENGINES)
    def test_each_engine_runs_the_default(self, engine):
        if engine == "compiled kernel" and usable_kernel() is None:
            pytest.skip(reason_for_expressions(Tokenizer()))
        check_tokens(ENGINES[engine](Tokenizer()), Tokenizer())

    @pytest.mark.parametrize("prefix", [True, ("b",)])
    def test_prefixes_of_several_columns(self, prefix):
        tokenizer = Tokenizer(field_prefix=prefix, ngram_range=(1, 2))
        columns, names = {"a": "new york", "b": "the cat"}, {"pl": pl}
        wanted = oracle.terms(columns, tokenizer.to_dict(), plain=True)
        assert plain_tokens(tokenizer.plan(), columns) == wanted
        exec(source_of(tokenizer.plan(), ["a", "b"]), names)
        frame = pl.DataFrame({name: [text] for name, text in columns.items()})
        assert frame.select(t=names["tokens"]("a", "b")).item().to_list() == wanted


@dataclasses.dataclass(frozen=True)
class ToyLength(Step):
    """A step that no engine knows."""

    most: int


@dataclasses.dataclass(frozen=True)
class Reversed(Cleaning):
    """A cleaning step that no engine knows."""


@dataclasses.dataclass(frozen=True)
class Letters(Splitting):
    """A splitting step that no engine knows."""


@dataclasses.dataclass(frozen=True, repr=False)
class Short(Tokenizer):
    """A tokenizer with an option of its own, which its plan says."""

    toy_length: int = 4

    def plan(self):
        return Plan((*super().plan().steps, ToyLength(self.toy_length)))


@dataclasses.dataclass(frozen=True, repr=False)
class ShortByCode(Short):
    """The same, by an expression of its own: only its code says what it does."""

    def plan(self):
        return Tokenizer.plan(self)

    def expr(self, text):
        return super().expr(text).list.eval(
            pl.element().filter(pl.element().str.len_chars() <= self.toy_length))


class OfFour(Tokenizer):
    """A subclass of the same fields with an expression of its own."""

    def expr(self, text):
        return super().expr(text).list.eval(pl.element().filter(pl.element().str.len_chars() < 5))


@dataclasses.dataclass(frozen=True, repr=False)
class Silent(Tokenizer):
    """An option that nobody does anything about."""

    toy_length: int = 4


FRAME = pl.DataFrame({"text": ["extraordinary film", "bad film", "dull plot", "fine plot"] * 5,
                      "label": ["pos", "neg", "neg", "pos"] * 5})
SHORT = ["bad", "dull", "film", "fine", "plot"]
RUNS = Runs(r"\w+", r"\w", 1)
UNKNOWN = {
    "last": (Plan((Lowercase(), RUNS, ToyLength(4))), r"ToyLength\(most=4\)"),
    "before stop words": (Plan((RUNS, ToyLength(4), StopWords(("a",)))), r"ToyLength\(most=4\)"),
    "cleaning": (Plan((Reversed(), RUNS)), r"Reversed\(\)"),
    "splitting": (Plan((Lowercase(), Letters())), r"Letters\(\)"),
    "a value": (Plan((StripAccents("greek"), RUNS)), "strip_accents='greek'"),
    "a form": (Plan((Normalize("NFX"), RUNS)), "normalize='NFX'"),
}


def _split_at_spaces(plan):
    """The plan with all that ONNX can't do but the unknown step replaced by what it can."""
    steps = [Matches("[^ ]+") if step == RUNS else step for step in plan.steps]
    return Plan(tuple(step for step in steps if step != Lowercase()))


class ByPlan(Tokenizer):
    """A tokenizer whose plan is handed to it."""

    def plan(self):
        return UNKNOWN[self.stop_words[0]][0]


class TestUnknownSteps:
    """Steps and options that were added outside the package."""

    @pytest.mark.parametrize("case", UNKNOWN)
    def test_every_engine_refuses_them_by_name(self, case):
        plan, said = UNKNOWN[case]
        tokenizer = ByPlan(stop_words=(case,))
        assert tokenizer.plan() == plan
        for run in (lambda: tokenizer.expr("text"), lambda: tokenizer.tokens("a"),
                    lambda: plain_tokens(plan, {"text": "a"}),
                    lambda: plain_tokens(plan, {"text": "\u0378"}),
                    lambda: portable(plan, ("text",)), lambda: source_of(plan, ["text"]),
                    lambda: split_of(_split_at_spaces(plan), ["text"]),
                    lambda: pieces_of(tokenizer, ["text"], {"text": "a"}, {"a": 1.0}),
                    lambda: TextClassifier(tokenizer=tokenizer).fit(FRAME),
                    lambda: count_by_label([FRAME], CountSpec(tokenizer, "text", "label")),
                    lambda: count_matrix([FRAME], tokenizer, "text"),
                    lambda: textnb.find_duplicates(FRAME, tokenizer=tokenizer)):
            with pytest.raises(Refusal, match=said):
                run()

    @pytest.mark.parametrize("case", UNKNOWN)
    def test_fast_paths_leave_them_to_the_expressions(self, case):
        plan, _ = UNKNOWN[case]
        known_after_cleaning = case in ("cleaning", "a value", "a form")
        assert (compiled_plan(plan) is None) != known_after_cleaning
        assert (separators(plan) is None) != known_after_cleaning
        if known_after_cleaning:
            assert clean(plan, "a") is None
            with pytest.raises(ParameterError, match=UNKNOWN[case][1]):
                split_expr(plan, "text")
        else:
            assert reason_for_expressions(ByPlan(stop_words=(case,)))

    def test_an_option_whose_plan_says_it(self):
        with pytest.raises(ParameterError, match=r"ToyLength\(most=4\)"):
            TextClassifier(tokenizer=Short()).fit(FRAME)

    def test_an_option_that_nobody_does_anything_about(self):
        with pytest.raises(ParameterError, match="no step of a plan does toy_length=4"):
            TextClassifier(tokenizer=Silent()).fit(FRAME)
        assert not hasattr(Tokenizer(), "toy_length")

    @pytest.mark.parametrize("tokenizer", [OfFour(), ShortByCode()], ids=["no field", "a field"])
    def test_a_subclass_is_run_by_its_own_code_alone(self, tokenizer, tmp_path):
        name = type(tokenizer).__name__
        plan, said = tokenizer.plan(), rf"{name}, a class of its own"
        assert separators(plan) is None
        assert reason_for_expressions(tokenizer)
        for run in (lambda: portable(plan, ("text",)), lambda: source_of(plan, ["text"]),
                    lambda: plain_tokens(plan, {"text": "a"})):
            with pytest.raises(Refusal, match=said):
                run()
        _check_counts(tokenizer)
        model = TextClassifier(tokenizer=tokenizer).fit(FRAME)
        with pytest.raises(ParameterError, match=f"file needs a Tokenizer itself; got {name}"):
            model.save(tmp_path / "model.textnb")
        with pytest.raises(ParameterError, match=r"models differ in (the )?tokenizer"):
            model + TextClassifier().fit(FRAME)
        for target in TARGETS:
            with pytest.raises(ExportError, match=f"export needs a Tokenizer itself; got {name}"):
                textnb.export_model(model, tmp_path / "bundle", target)
        assert list(tmp_path.iterdir()) == []

    def test_a_file_with_an_unknown_option_is_refused(self, tmp_path, monkeypatch):
        written = Tokenizer.to_dict
        with monkeypatch.context() as patched:
            patched.setattr(Tokenizer, "to_dict", lambda self: {**written(self), "toy_length": 4})
            TextClassifier().fit(FRAME).save(tmp_path / "model.textnb")
        for load in (textnb.load, MailFilter.load):
            with pytest.raises(ModelFileError, match="toy_length"):
                load(tmp_path / "model.textnb")


class TestPlan:
    @pytest.mark.parametrize("name", ["lowercase", "analyzer", "normalize", "strip_accents"])
    def test_a_value_that_is_added_has_no_step(self, name):
        """Where a setting has few values, each is named: `lowercase="tr"` would be another."""
        added = Tokenizer()
        object.__setattr__(added, name, "added")
        with pytest.raises(ParameterError, match=f"no step of a plan does {name}='added'"):
            added.expr("text")

    def test_true_is_not_one(self):
        with pytest.raises(ParameterError, match="no step of a plan does lowercase=1"):
            plan_of({**Tokenizer().to_dict(), "lowercase": 1})

    @pytest.mark.parametrize("name", FIELDS)
    def test_settings_that_lack(self, name):
        settings = Tokenizer().to_dict()
        del settings[name]
        with pytest.raises(ParameterError, match=f"setting '{name}' is missing"):
            plan_of(settings)

    @pytest.mark.parametrize("steps", [
        (), (Lowercase(),), (RUNS, Lowercase()), (RUNS, Matches("a")),
        (RUNS, NGrams(1, 2), StopWords(("a",))), (RUNS, NGrams(1, 2), NGrams(1, 2))])
    def test_steps_in_another_order(self, steps):
        with pytest.raises(ParameterError, match="in this order"):
            Plan(steps)

    def test_a_step_is_a_value(self):
        assert NGrams(1, 2) == NGrams(min_n=1, max_n=2) != NGrams(1, 3)
        assert NGrams(1, 2) != Characters(1, 2)
        assert len({NGrams(1, 2), NGrams(1, 2), Characters(1, 2)}) == 2
        assert pickle.loads(pickle.dumps(Tokenizer().plan())) == Tokenizer().plan()
        with pytest.raises(AttributeError, match="NGrams is immutable"):
            NGrams(1, 2).min_n = 2
        for values, named in (((1,), {}), ((1, 2, 3), {}), ((1, 2), {"max_n": 2}),
                              ((1,), {"n": 2})):
            with pytest.raises(TypeError, match=r"NGrams has the fields \('min_n', 'max_n'\)"):
                NGrams(*values, **named)

    def test_equal_settings_have_one_plan(self):
        assert Tokenizer(ngram_range=(1, 2)).plan() is Tokenizer(ngram_range=(1, 2)).plan()
        assert Tokenizer().plan() == plan_of(Tokenizer().to_dict())

    def test_every_step_names_its_setting(self):
        for changed in (changed for values in VALUES.values() for changed in values):
            for step in Tokenizer(**changed).plan().steps:
                assert step.setting.split("=")[0] in FIELDS or "escaped" in step.setting


def _check_counts(tokenizer):
    """Batches, a fit, a limited fit, leave-one-out and a vocabulary: all by `expr`."""
    counted = count_by_label([FRAME[:10], FRAME[10:]], CountSpec(tokenizer, "text", "label"))
    assert counted.terms.to_list() == SHORT
    model = TextClassifier(tokenizer=tokenizer).fit(FRAME)
    assert list(model.vocabulary_) == SHORT
    limited = TextClassifier(tokenizer=tokenizer, memory_limit=1 << 20).fit(FRAME)
    assert list(limited.vocabulary_) == SHORT
    unknown = model.transform(["extraordinary " * 3 + "film"])
    assert unknown.sum() == 1
    by_weights = TextClassifier(textnb.NBLogisticRegression(), tokenizer=tokenizer).fit(FRAME)
    assert list(by_weights.vocabulary_) == SHORT
    assert textnb.leave_one_out(model, FRAME).scores.shape == (20, 2)
