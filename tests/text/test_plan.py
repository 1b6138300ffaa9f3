"""Every executor finds the tokens of the plain oracle, or refuses what it does not know by name."""

import dataclasses
import pickle

import polars as pl
import pytest

import textnb
from tests.text import cases
from tests.text.cases import EVERY, EXECUTORS, TOKENIZERS, Refusal, by_the_oracle, columns_of
from textnb import ExportError, ModelFileError, ParameterError, TextClassifier, Tokenizer
from textnb.export.portable import words_of
from textnb.export.targets.known import TARGETS
from textnb.export.targets.onnx_graph import split_of
from textnb.export.targets.polars_code import source_of
from textnb.filter.mailfilter import MailFilter
from textnb.text import plan as steps
from textnb.text.compiled import reason_for_expressions, usable_kernel
from textnb.text.compiled_plan import compiled_plan
from textnb.text.counting import CountSpec
from textnb.text.counts import count_by_label
from textnb.text.expressions import separators_of, split_expr
from textnb.text.matrix import count_matrix
from textnb.text.plain import clean, plain_tokens
from textnb.text.spans import pieces_of

FIELDS = [field.name for field in dataclasses.fields(Tokenizer)]


def attempt(run):
    """What is found, and ""; or None, and the refusal."""
    try:
        return run(), ""
    except Refusal as refusal:
        return None, str(refusal)


def names_one(refusal, settings):
    return any(name.replace("_", " ") in refusal.replace("_", " ") for name in settings)


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.delenv("TEXTNB_KERNEL", raising=False)


class TestEveryFieldAndExecutor:
    """What refuses a value names the setting; what runs it finds the oracle's tokens."""

    def test_every_field_has_values(self):
        missing = {*FIELDS}.difference(*EVERY.values())
        assert not missing, f"add cases of {missing} to SETTINGS in tests/text/cases.py"

    @pytest.mark.parametrize("name", cases.WITH_ORACLE)
    def test_every_setting_matters(self, name):
        for field in set(EVERY[name]) - {"token_columns"}:
            changed = {**EVERY[name], field: getattr(Tokenizer(), field)}
            assert by_the_oracle(Tokenizer(**changed), columns_of(Tokenizer(**changed))) != (
                by_the_oracle(TOKENIZERS[name], columns_of(TOKENIZERS[name]))), field

    @pytest.mark.parametrize("name", EVERY)
    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_the_oracles_tokens_or_a_refusal(self, executor, name):
        tokenizer, columns = TOKENIZERS[name], columns_of(TOKENIZERS[name])
        found, refusal = attempt(lambda: EXECUTORS[executor](tokenizer, columns))
        if found is None:
            assert executor != "expressions"
            assert name != "default" or (executor == "compiled kernel" and not usable_kernel())
            assert executor != "Polars code" or "segmenter" in EVERY[name]
            assert executor != "compiled kernel" or not usable_kernel() or (
                name in cases.BY_EXPRESSIONS)
            assert names_one(refusal, EVERY[name]) or executor == "separators"
            return
        expected = (EXECUTORS["expressions"] if name in cases.NO_ORACLE else by_the_oracle)(
            tokenizer, columns)
        cases.assert_same_terms(found, expected, in_order=False)


@dataclasses.dataclass(frozen=True)
class ToyLength(steps.Step):
    """A step that no executor knows."""

    most: int


class Reversed(steps.Cleaning):
    """A cleaning step that no executor knows."""


class Letters(steps.Splitting):
    """A splitting step that no executor knows."""


@dataclasses.dataclass(frozen=True, repr=False)
class Silent(Tokenizer):
    """An option that nobody does anything about."""

    toy_length: int = 4


class Short(Silent):
    """A tokenizer with an option of its own, which its plan says."""

    def plan(self):
        return steps.Plan((*super().plan().steps, ToyLength(self.toy_length)))


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


FRAME = pl.DataFrame({"text": ["extraordinary film", "bad film", "dull plot", "fine plot"] * 5,
                      "label": ["pos", "neg", "neg", "pos"] * 5})
SHORT = ["bad", "dull", "film", "fine", "plot"]
RUNS = steps.Runs(r"\w+", r"\w", 1)
UNKNOWN = {
    "last": (steps.Plan((steps.Lowercase(), RUNS, ToyLength(4))), r"ToyLength\(most=4\)"),
    "before stop words": (steps.Plan((RUNS, ToyLength(4), steps.StopWords(("a",)))),
                          r"ToyLength\(most=4\)"),
    "cleaning": (steps.Plan((Reversed(), RUNS)), r"Reversed\(\)"),
    "splitting": (steps.Plan((steps.Lowercase(), Letters())), r"Letters\(\)"),
    "a value": (steps.Plan((steps.StripAccents("greek"), RUNS)), "strip_accents='greek'"),
    "a form": (steps.Plan((steps.Normalize("NFX"), RUNS)), "normalize='NFX'"),
}


def _split_at_spaces(plan):
    """The plan with all that ONNX can't do but the unknown step replaced by what it can."""
    changed = [steps.Matches("[^ ]+") if step == RUNS else step for step in plan.steps]
    return steps.Plan(tuple(step for step in changed if step != steps.Lowercase()))


class ByPlan(Tokenizer):
    """A tokenizer whose plan is handed to it."""

    def plan(self):
        return UNKNOWN[self.stop_words[0]][0]


class TestUnknownSteps:
    """Steps and options that were added outside the package."""

    @pytest.mark.parametrize("case", UNKNOWN)
    def test_every_executor_refuses_them_by_name(self, case):
        plan, words = UNKNOWN[case]
        tokenizer = ByPlan(stop_words=(case,))
        assert tokenizer.plan() == plan
        for run in (lambda: tokenizer.expr("text"), lambda: tokenizer.tokens("a"),
                    lambda: plain_tokens(plan, {"text": "a"}),
                    lambda: plain_tokens(plan, {"text": "\u0378"}),
                    lambda: words_of(plan, ("text",)), lambda: source_of(plan, ["text"]),
                    lambda: split_of(_split_at_spaces(plan), ["text"]),
                    lambda: pieces_of(tokenizer, ["text"], {"text": "a"}, {"a": 1.0}),
                    lambda: TextClassifier(tokenizer=tokenizer).fit(FRAME),
                    lambda: count_by_label([FRAME], CountSpec(tokenizer, "text", "label")),
                    lambda: count_matrix([FRAME], tokenizer, "text"),
                    lambda: textnb.find_duplicates(FRAME, tokenizer=tokenizer)):
            with pytest.raises(Refusal, match=words):
                run()

    @pytest.mark.parametrize("case", UNKNOWN)
    def test_fast_paths_leave_them_to_the_expressions(self, case):
        plan, words = UNKNOWN[case]
        known_after_cleaning = case in ("cleaning", "a value", "a form")
        assert (compiled_plan(plan) is None) != known_after_cleaning
        assert (separators_of(plan) is None) != known_after_cleaning
        if known_after_cleaning:
            assert clean(plan, "a") is None
            with pytest.raises(ParameterError, match=words):
                split_expr(plan, "text")
        else:
            assert reason_for_expressions(ByPlan(stop_words=(case,)))

    @pytest.mark.parametrize(("kind", "words"), [
        (Short, r"ToyLength\(most=4\)"), (Silent, "no step of a plan does toy_length=4")])
    def test_an_option_that_no_code_executes(self, kind, words):
        with pytest.raises(ParameterError, match=words):
            TextClassifier(tokenizer=kind()).fit(FRAME)

    @pytest.mark.parametrize("tokenizer", [OfFour(), ShortByCode()], ids=["no field", "a field"])
    def test_a_subclass_is_run_by_its_own_code_alone(self, tokenizer, tmp_path):
        name = type(tokenizer).__name__
        plan, words = tokenizer.plan(), rf"{name}, a class of its own"
        assert separators_of(plan) is None
        assert reason_for_expressions(tokenizer)
        for run in (lambda: words_of(plan, ("text",)), lambda: source_of(plan, ["text"]),
                    lambda: plain_tokens(plan, {"text": "a"})):
            with pytest.raises(Refusal, match=words):
                run()
        # Batches, a fit, a limited fit, a vocabulary, weights and leave-one-out: all by `expr`.
        counted = count_by_label([FRAME[:10], FRAME[10:]], CountSpec(tokenizer, "text", "label"))
        assert counted.terms.to_list() == SHORT
        model = TextClassifier(tokenizer=tokenizer).fit(FRAME)
        limited = TextClassifier(tokenizer=tokenizer, memory_limit=1 << 20).fit(FRAME)
        of_weights = TextClassifier(
            textnb.NBLogisticRegression(), tokenizer=tokenizer).fit(FRAME)
        for fitted in (model, limited, of_weights):
            assert list(fitted.vocabulary_) == SHORT
        assert model.transform(["extraordinary " * 3 + "film"]).sum() == 1
        assert textnb.leave_one_out(model, FRAME).scores.shape == (20, 2)
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

    @pytest.mark.parametrize(("name", "value"), [
        ("lowercase", 1), ("unspaced", "added"), ("segmenter", 5), ("added", None)])
    def test_other_values_and_settings_have_no_step(self, name, value):
        with pytest.raises(ParameterError, match=f"no step of a plan does {name}={value!r}"):
            steps.plan_of({**Tokenizer().to_dict(), name: value})

    @pytest.mark.parametrize("name", FIELDS)
    def test_settings_that_lack(self, name):
        settings = Tokenizer().to_dict()
        del settings[name]
        with pytest.raises(ParameterError, match=f"setting '{name}' is missing"):
            steps.plan_of(settings)

    @pytest.mark.parametrize(("pattern", "kind"), [
        *((pattern, steps.WordsAndPairs) for pattern in (r"\w+", r"[\p{L}']{3,}", r"[\d]+")),
        ("[a-z']+", steps.Runs)])
    def test_runs_that_may_hold_characters_of_scripts_without_spaces(self, pattern, kind):
        assert type(Tokenizer(pattern).plan().after_cleaning[0]) is kind
        assert type(Tokenizer(pattern, unspaced="whole").plan().after_cleaning[0]) is steps.Runs

    @pytest.mark.parametrize("listed", [
        (), (steps.Lowercase(),), (RUNS, steps.Lowercase()), (RUNS, steps.Matches("a")),
        (RUNS, steps.NGrams(1, 2), steps.StopWords(("a",))),
        (RUNS, steps.NGrams(1, 2), steps.NGrams(1, 2))])
    def test_steps_in_another_order(self, listed):
        with pytest.raises(ParameterError, match="in this order"):
            steps.Plan(listed)

    def test_a_step_is_a_value(self):
        assert steps.NGrams(1, 2) == steps.NGrams(min_n=1, max_n=2) != steps.NGrams(1, 3)
        assert steps.NGrams(1, 2) != steps.Characters(1, 2)
        assert len({steps.NGrams(1, 2), steps.NGrams(1, 2), steps.Characters(1, 2)}) == 2
        assert pickle.loads(pickle.dumps(Tokenizer().plan())) == Tokenizer().plan()
        with pytest.raises(AttributeError, match="NGrams is immutable"):
            steps.NGrams(1, 2).min_n = 2
        for values, named in (((1,), {}), ((1, 2, 3), {}), ((1, 2), {"max_n": 2}),
                              ((1,), {"n": 2})):
            with pytest.raises(TypeError, match=r"NGrams has the fields \('min_n', 'max_n'\)"):
                steps.NGrams(*values, **named)

    def test_equal_settings_have_one_plan(self):
        assert Tokenizer(ngram_range=(1, 2)).plan() is Tokenizer(ngram_range=(1, 2)).plan()
        assert Tokenizer().plan() == steps.plan_of(Tokenizer().to_dict())

    def test_every_step_names_its_setting(self):
        for tokenizer in TOKENIZERS.values():
            for step in tokenizer.plan().steps:
                assert step.setting.split("=")[0] in FIELDS or "escaped" in step.setting
