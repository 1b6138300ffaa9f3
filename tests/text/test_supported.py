"""Every engine names every setting of the tokenizer; one that it does not name, it does not run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textnb
from textnb import ExportError, ModelFileError, ParameterError, TextClassifier, Tokenizer
from textnb.export import portable
from textnb.export.targets import onnx_graph, polars_code
from textnb.export.targets.known import TARGETS
from textnb.filter.mailfilter import MailFilter
from textnb.text import compiled, supported, tokens
from textnb.text.counts import count_by_label
from textnb.text.supported import Supported, any_of
from textnb.text.tokens import unsupported

FIELDS = [field.name for field in dataclasses.fields(Tokenizer)]
TABLES: dict[str, Supported] = {
    "expressions": supported.ANYTHING,
    "separators": tokens._SEPARATED,
    "loops over words": compiled._WORDS,
    "loops over characters": compiled._CHARACTERS,
    "runs of characters": portable._PORTABLE,
    "Polars code": polars_code._WRITTEN,
    "ONNX": onnx_graph._SPLIT,
}
FRAME = pl.DataFrame({"text": ["extraordinary film", "bad film", "dull plot", "fine plot"] * 5,
                      "label": ["pos", "neg", "neg", "pos"] * 5})
SHORT = ["bad", "dull", "film", "fine", "plot"]
# What any engine runs, and what each needs to run it.
CHARACTERS = Tokenizer(analyzer="char_wb")
SPLIT = Tokenizer(pattern="[^ ]+", lowercase=False)


class OfFour(Tokenizer):
    """A subclass of the same fields: only its code says what it does."""

    def expr(self, text: Any) -> pl.Expr:
        return super().expr(text).list.eval(pl.element().filter(pl.element().str.len_chars() < 5))


@pytest.fixture
def max_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting of the tokenizer that `expr` runs, and no engine was told of."""
    probe: Any = dataclasses.field(default=4)
    probe.name, probe._field_type = "max_length", dataclasses.fields(Tokenizer)[0]._field_type
    monkeypatch.setitem(Tokenizer.__dataclass_fields__, "max_length", probe)
    monkeypatch.setattr(Tokenizer, "max_length", 4, raising=False)
    whole = Tokenizer._column_tokens

    def short(self: Tokenizer, text: pl.Expr, prefix: str) -> pl.Expr:
        return whole(self, text, prefix).list.eval(
            pl.element().filter(pl.element().str.len_chars() <= self.max_length))

    monkeypatch.setattr(Tokenizer, "_column_tokens", short)
    monkeypatch.setenv("TEXTNB_KERNEL", "on")


@pytest.mark.parametrize("engine", TABLES)
def test_an_engine_names_every_setting(engine: str) -> None:
    assert list(TABLES[engine]) == FIELDS


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("engine", TABLES)
def test_a_setting_that_is_not_named_is_not_run(engine: str, name: str) -> None:
    table = dict(TABLES[engine])
    runs = next(each for each in (Tokenizer(), CHARACTERS, SPLIT) if not unsupported(each, table))
    del table[name]
    assert unsupported(runs, table) == f"{name}={getattr(runs, name)!r}"


@pytest.mark.parametrize("name", ["lowercase", "analyzer", "normalize", "strip_accents"])
@pytest.mark.parametrize("engine", TABLES)
def test_a_choice_that_is_added_is_not_run(engine: str, name: str) -> None:
    """Where a setting has few values, each is named: `lowercase="tr"` would be another."""
    table = TABLES[engine]
    runs = next(each for each in (Tokenizer(), CHARACTERS, SPLIT) if not unsupported(each, table))
    added = dataclasses.replace(runs)
    object.__setattr__(added, name, "added")
    assert unsupported(added, table) == f"{name}='added'"


@pytest.mark.parametrize("engine", TABLES)
def test_no_engine_runs_a_subclass(engine: str) -> None:
    assert unsupported(OfFour(), TABLES[engine]) == "OfFour, a class of its own"


def test_true_is_not_one() -> None:
    assert any_of(True)(True)
    assert not any_of(True)(1)
    assert not any_of(1)(1.0)


def test_tokens_of_a_subclass_are_counted_by_its_own_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TEXTNB_KERNEL", "on")
    tokenizer = OfFour()
    assert tokenizer.separators() is None
    assert not compiled.possible(tokenizer)
    _check_counts(tokenizer)
    model = TextClassifier(tokenizer=tokenizer).fit(FRAME)
    with pytest.raises(ParameterError, match=r"a model file needs a Tokenizer itself; got OfFour"):
        model.save(tmp_path / "model.textnb")
    with pytest.raises(ParameterError, match=r"models differ in the tokenizer's class"):
        model + TextClassifier().fit(FRAME)
    for target in TARGETS:
        with pytest.raises(ExportError, match=r"an export needs a Tokenizer itself; got OfFour"):
            textnb.export_model(model, tmp_path / "bundle", target)
    assert list(tmp_path.iterdir()) == []


def test_tokens_of_a_setting_that_no_engine_knows_are_counted_by_expressions(
    max_length: None, tmp_path: Path
) -> None:
    tokenizer = Tokenizer()
    assert tokenizer.tokens("extraordinary film") == ["film"]
    assert tokenizer.separators() is None
    assert not compiled.possible(tokenizer)
    assert not compiled.possible(CHARACTERS)
    _check_counts(tokenizer)
    model = TextClassifier(tokenizer=tokenizer).fit(FRAME)
    # Refused, or as the model has it: a file holds all settings by name.
    model.save(tmp_path / "model.textnb")
    for load in (textnb.load, MailFilter.load):
        with pytest.raises(ModelFileError, match="max_length"):
            load(tmp_path / "model.textnb")


@pytest.mark.parametrize("target", [name for name, target in TARGETS.items()
                                    if "text" in target.reads])
@pytest.mark.parametrize("tokenizer", [Tokenizer(), SPLIT], ids=["words", "split"])
def test_no_target_splits_texts_by_a_setting_that_it_does_not_know(
    target: str, tokenizer: Tokenizer, max_length: None, tmp_path: Path
) -> None:
    model = TextClassifier(tokenizer=tokenizer).fit(FRAME)
    with pytest.raises(ExportError, match=r"max_length=4|pattern|ONNX can only split"):
        textnb.export_model(model, tmp_path / "bundle", target, reads="text")
    assert list(tmp_path.iterdir()) == []


def _check_counts(tokenizer: Tokenizer) -> None:
    """Batches, a fit, a limited fit, leave-one-out and a vocabulary: all by `expr`."""
    counted = count_by_label([FRAME[:10], FRAME[10:]], tokenizer, "text", "label")
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
