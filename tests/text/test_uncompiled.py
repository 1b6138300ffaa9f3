"""The kernel's sources do uncompiled what they do compiled, and what expressions do."""

import importlib.util
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings

import textnb
from tests.native_sources import source, with_views
from tests.text import cases
from tests.text.cases import COMPILED, DOCUMENTS, TOKENIZERS, frame_of, two_columns
from tests.tiers import examples
from textnb import BernoulliNB, MultinomialNB, TextClassifier, Tokenizer
from textnb.runtime import native
from textnb.runtime.native import KERNEL, PACKAGES, Build, Kernel, load_compiled
from textnb.text import matrix, termtable

pytest.importorskip("cython", reason="the uncompiled kernel needs Cython")

EXPRESSIONS = Build(None, "expressions")


class Table:
    def __init__(self, own, secret):
        self._own = own(secret)

    def __len__(self):
        return len(self._own)

    def __getattr__(self, name):
        return with_views(getattr(self._own, name))


@cache
def uncompiled():
    spans, terms, rows = (source(f"text/native/{name}.py") for name in PACKAGES[KERNEL])

    def wrapped(module):
        return SimpleNamespace(**{name: with_views(value) for name, value in vars(module).items()
                                  if getattr(value, "__module__", "") == module.__name__})

    return Kernel(spans=wrapped(spans), rows=wrapped(rows),
                  terms=SimpleNamespace(Table=lambda secret: Table(terms.Table, secret)))


@pytest.fixture(scope="module", autouse=True)
def _unset():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TEXTNB_KERNEL", raising=False)
        # Many calls go on in the room for spans, and some words do not fit it.
        patch.setattr(termtable, "_SPANS_PER_PORTION", 8)
        # Rows of more columns are sorted.
        patch.setattr(matrix, "_MAX_UNSORTED_COLUMNS", 8)
        yield


def every_way(run):
    """The outcome uncompiled, by expressions, and compiled if it was."""
    found = []
    compiled = [load_compiled(KERNEL)] if load_compiled(KERNEL).kernel else []
    for used in (Build(uncompiled(), ""), EXPRESSIONS, *compiled):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "load_compiled", lambda package, used=used: used)
            found.append(cases.outcome(run))
    return found


@pytest.mark.sweep(5)
@pytest.mark.parametrize("name", COMPILED)
@settings(deadline=None, max_examples=examples(15),
          suppress_health_check=[HealthCheck.too_slow])
@given(texts=cases.ANY_TEXTS, unseen=cases.ANY_TEXTS)
@example(texts=DOCUMENTS, unseen=[*DOCUMENTS, "unseen words 🙂"])
def test_counts_of_any_text(name, texts, unseen):
    tokenizer = TOKENIZERS[name]
    cases.assert_same_counts(
        every_way, tokenizer, two_columns(tokenizer, texts), two_columns(tokenizer, unseen))


@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB()])
def test_models(estimator):
    frame = frame_of([f"word{number % 50} and {'x' * (number % 30)}" for number in range(120)],
                     label=["a", "b", "c"] * 40)

    def run():
        model = TextClassifier(estimator, tokenizer=Tokenizer(ngram_range=(1, 2)), min_df=2)
        model.fit(frame)
        return model.vocabulary_, model.linear_form().weights.tolist(), model.predict(
            ["word1 and", "word2 été", ""]).tolist()

    first, *others = every_way(run)
    assert all(other == first for other in others)


def test_an_uncompiled_source_is_not_the_kernel(monkeypatch):
    for name in PACKAGES[KERNEL]:
        assert source(f"text/native/{name}.py").SOURCE == ""
    monkeypatch.setattr(native, "find_spec", lambda name: importlib.util.spec_from_file_location(
        name, Path(textnb.__file__).parent / f"text/native/{name.split('.')[-1]}.py"))
    assert load_compiled.__wrapped__(KERNEL).kernel is None
