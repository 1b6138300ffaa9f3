"""A model that is saved and loaded is the same model, to the bit."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import (
    BernoulliNB,
    ComplementNB,
    MultinomialNB,
    SchemaError,
    SourceError,
    TextClassifier,
    Tokenizer,
)
from textnb.bayes.forms import RequiredTermsForm

TEXTS = ["free money now money", "cheap free offer", "hello friend lunch", "meeting at lunch",
         "", "naïve हिन्दी 東京 free", "free free free"]
SPAM = ["spam", "spam", "ham", "ham", "ham", "ham", "spam"]
ODD = ["", "[bold]", "a\0b", "two\nlines", "\x1b[31m", "日本", "\U0001f600"]


def fitted(model: TextClassifier, labels: Any = SPAM) -> TextClassifier:
    return model.fit(pl.DataFrame({"text": TEXTS, "label": labels}))


def there_and_back(model: TextClassifier, folder: Path) -> TextClassifier:
    path = folder / "model.textnb"
    model.save(path)
    return textnb.load(path)


def same_bits(first: Any, second: Any) -> bool:
    first, second = np.atleast_1d(first), np.atleast_1d(second)
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if first.dtype == object:
        return [(type(x), x) for x in first.tolist()] == [(type(x), x) for x in second.tolist()]
    return first.tobytes() == second.tobytes()


def settings_of(model: TextClassifier) -> dict[str, Any]:
    """The settings in a form that compares: arrays, tuples and lists of the same values agree."""

    def plain(value: Any) -> Any:
        if isinstance(value, (np.ndarray, pl.Series, list, tuple)):
            return [plain(item) for item in value]
        return value.item() if isinstance(value, np.generic) else value

    outer = model.get_params(deep=False)
    inner = outer.pop("estimator") or MultinomialNB()
    return {**{name: plain(value) for name, value in outer.items()}, "estimator": type(inner),
            **{f"estimator__{name}": plain(value) for name, value in inner.get_params().items()}}


def assert_same(first: TextClassifier, second: TextClassifier) -> None:
    assert settings_of(first) == settings_of(second)
    assert first.vocabulary_ == second.vocabulary_
    assert same_bits(first.classes_, second.classes_)
    for name in ("class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_"):
        assert same_bits(getattr(first.estimator_, name), getattr(second.estimator_, name)), name
    mine, theirs = first.linear_form(), second.linear_form()
    assert mine.terms == theirs.terms
    assert mine.features == theirs.features
    assert same_bits(mine.weights, theirs.weights)
    assert same_bits(mine.intercept, theirs.intercept)
    assert type(mine) is type(theirs)
    if isinstance(mine, RequiredTermsForm):
        assert isinstance(theirs, RequiredTermsForm)
        assert same_bits(mine.required.toarray(), theirs.required.toarray())
    left, right = first.statistics_, second.statistics_
    assert left.terms.to_list() == right.terms.to_list()
    assert same_bits(left.feature_count, right.feature_count)
    assert same_bits(left.class_count, right.class_count)
    for name in ("document_frequency", "occurrences"):
        assert same_bits(getattr(left, name), getattr(right, name)), name
    columns = [first.text] if isinstance(first.text, str) else first.text
    frame = pl.DataFrame(dict.fromkeys(columns, TEXTS))
    answers = [model.predict(frame, probability=True, explain=3) for model in (first, second)]
    assert answers[0].equals(answers[1])
    assert answers[0].schema == answers[1].schema
    assert same_bits(first.predict_joint_log_proba(frame), second.predict_joint_log_proba(frame))


ESTIMATORS = [MultinomialNB(), MultinomialNB(l=0), MultinomialNB(l=0.1, fit_prior=False),
              MultinomialNB(class_prior=[0.3, 0.7]), BernoulliNB(), BernoulliNB(l=0),
              BernoulliNB(l=0.3, binarize=1.0), BernoulliNB(class_prior=np.array([0.25, 0.75])),
              ComplementNB(), ComplementNB(l=1 / 3, norm=True), ComplementNB(fit_prior=False)]
TOKENIZERS = [Tokenizer(), Tokenizer(ngram_range=(1, 3)), Tokenizer(ngram_range=(2, 2)),
              Tokenizer(analyzer="char", ngram_range=(1, 3)),
              Tokenizer(analyzer="char_wb", ngram_range=(2, 4)),
              Tokenizer(pattern=r"[^,]+", ngram_range=(1, 2)),
              Tokenizer.sklearn(strip_accents="unicode", normalize="NFKC"),
              Tokenizer(stop_words=("free", "at"), lowercase=False),
              Tokenizer(pattern=r"\S+", strip_accents="ascii")]
LIMITS: list[dict[str, Any]] = [
    {"min_df": 2}, {"min_df": 0.2, "max_df": 0.9}, {"max_df": 3}, {"max_features": 3},
    {"binary": True}, {"binary": True, "min_df": 2},
    {"vocabulary": ["zebra", "free", "lunch"]}, {"vocabulary": ("हिन्दी",)},
    {"vocabulary": np.array(["free", "lunch"])}]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_every_model_comes_back(estimator: Any, tmp_path: Path) -> None:
    model = fitted(TextClassifier(estimator))
    assert_same(there_and_back(model, tmp_path), model)


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=repr)
def test_every_tokenizer_comes_back(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = fitted(TextClassifier(tokenizer=tokenizer))
    again = there_and_back(model, tmp_path)
    assert again.tokenizer == tokenizer
    assert_same(again, model)


@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB(), ComplementNB()], ids=repr)
@pytest.mark.parametrize("limits", LIMITS, ids=repr)
def test_limits_and_vocabularies_come_back(
    estimator: Any, limits: dict[str, Any], tmp_path: Path
) -> None:
    model = fitted(TextClassifier(estimator, **limits))
    again = there_and_back(model, tmp_path)
    assert_same(again, model)
    # The same kind of number: 1 is a count of documents and 1.0 a share.
    assert [type(getattr(again, name)) for name in ("min_df", "max_df")] == [
        type(getattr(model, name)) for name in ("min_df", "max_df")]


@pytest.mark.parametrize("labels", [
    SPAM, ["yes"] * 6 + ["no"], ODD, [1, 2, 1, 2, 3, 3, 1], [-(2**63), 2**63 - 1, 0, 0, 1, 2, 3],
    [True, False, True, True, False, False, True],
    ["été", "Été", "e\u0301te\u0301", "z", "z", "z", "z"],
], ids=repr)
def test_every_type_of_label_comes_back(labels: list[Any], tmp_path: Path) -> None:
    model = fitted(TextClassifier(), labels)
    again = there_and_back(model, tmp_path)
    assert_same(again, model)
    assert again.classes_.tolist() == sorted(set(labels))


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.Int32, pl.UInt32, pl.Categorical,
                                   pl.Enum(["1", "2", "3"])], ids=str)
def test_labels_of_other_types_mean_the_same(dtype: Any, tmp_path: Path) -> None:
    column = pl.Series("label", [1, 2, 1, 2, 3, 3, 1])
    if not dtype.is_integer():
        column = column.cast(pl.String)
    frame = pl.DataFrame({"text": TEXTS}).with_columns(column.cast(dtype))
    model = TextClassifier().fit(frame)
    again = there_and_back(model, tmp_path)
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.predict(frame).equals(model.predict(frame))
    assert again.score(frame) == model.score(frame) == 6 / 7


def test_no_label_is_learned_that_would_not_come_back(tmp_path: Path) -> None:
    labels = pl.Series([5, 2**63 + 1], dtype=pl.UInt64)
    with pytest.raises(SchemaError, match="an integer type up to Int64; it is UInt64"):
        TextClassifier().fit(pl.DataFrame({"text": ["aa", "bb"], "label": labels}))


@pytest.mark.parametrize("kind", [MultinomialNB, BernoulliNB, ComplementNB])
def test_smoothing_per_term_comes_back(kind: Any, tmp_path: Path) -> None:
    vocabulary = ["free", "lunch", "money"]
    model = fitted(TextClassifier(kind(l=np.array([0.1, 1 / 3, 2.5])), vocabulary=vocabulary))
    again = there_and_back(model, tmp_path)
    assert_same(again, model)
    assert again.get_params()["estimator__l"] == [0.1, 1 / 3, 2.5]


@pytest.mark.parametrize("value", [np.float64(0.1), np.float32(0.1), np.int64(2), 5e-324, 1e300, 3])
def test_numbers_come_back_whatever_their_type(value: Any, tmp_path: Path) -> None:
    model = fitted(TextClassifier(MultinomialNB(l=value), min_df=np.int64(1)))
    again = there_and_back(model, tmp_path)
    assert again.get_params()["estimator__l"] == value
    assert_same(again, model)


def test_several_text_columns_come_back(tmp_path: Path) -> None:
    frame = pl.DataFrame({"subject": TEXTS, "body": TEXTS[::-1], "kind": SPAM})
    model = TextClassifier(text=["subject", "body"], label="kind",
                           tokenizer=Tokenizer(field_prefix=["subject"])).fit(frame)
    assert_same(there_and_back(model, tmp_path), model)


def test_a_class_without_documents_comes_back(tmp_path: Path) -> None:
    model = TextClassifier().partial_fit(TEXTS, SPAM, classes=["ham", "news", "spam"])
    assert_same(there_and_back(model, tmp_path), model)


def test_a_model_without_any_count_comes_back(tmp_path: Path) -> None:
    # No term occurs more than nine times in a document.
    model = fitted(TextClassifier(BernoulliNB(binarize=9.0)))
    assert model.estimator_.feature_count_.sum() == 0
    assert_same(there_and_back(model, tmp_path), model)


def test_one_class_comes_back(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="only one class, 'ham'"):
        model = fitted(TextClassifier(), ["ham"] * 7)
    model.save(tmp_path / "one.textnb")
    with pytest.warns(UserWarning, match="only one class, 'ham'"):
        again = textnb.load(tmp_path / "one.textnb")
    assert_same(again, model)


@pytest.mark.parametrize("limits", [{}, {"min_df": 2}, {"max_features": 3}], ids=repr)
@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB()], ids=repr)
def test_a_loaded_model_learns_on(
    estimator: Any, limits: dict[str, Any], tmp_path: Path
) -> None:
    frame = pl.DataFrame({"text": TEXTS, "label": SPAM})
    whole = TextClassifier(estimator, **limits).fit(frame)
    half = there_and_back(TextClassifier(estimator, **limits).fit(frame[:4]), tmp_path)
    assert_same(half.partial_fit(frame[4:]), whole)
    back = there_and_back(whole, tmp_path).forget(frame[4:])
    assert_same(back, TextClassifier(estimator, **limits).fit(frame[:4]))
    assert_same(there_and_back(back, tmp_path) + TextClassifier(estimator, **limits).fit(frame[4:]),
                whole)


# The file


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = set()
    frame = pl.DataFrame({"text": TEXTS * 50, "label": SPAM * 50})
    for number, rows in enumerate((frame, frame.reverse(), frame.sample(fraction=1, shuffle=True,
                                                                        seed=1))):
        for _ in range(2):
            path = tmp_path / f"{number}.textnb"
            TextClassifier(min_df=2, tokenizer=Tokenizer(ngram_range=(1, 2))).fit(rows).save(path)
            contents.add(path.read_bytes())
        textnb.load(path).save(path)
        contents.add(path.read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("name", ["model", "a b.textnb", "naïve 日本.textnb", "-", "[x]*.textnb"])
@pytest.mark.parametrize("kind", [str, Path])
def test_any_name_will_do(
    name: str, kind: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = fitted(TextClassifier())
    model.save(kind(name))
    assert os.listdir() == [name]
    assert textnb.load(kind(name)).vocabulary_ == model.vocabulary_


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    path = tmp_path / "model.textnb"
    mask = os.umask(0o027)
    try:
        fitted(TextClassifier()).save(path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_permissions_of_a_replaced_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "model.textnb"
    path.touch()
    path.chmod(0o604)
    fitted(TextClassifier()).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "model.textnb", tmp_path / "link.textnb"
    link.symlink_to(target)
    fitted(TextClassifier()).save(link)
    assert link.is_symlink()
    assert textnb.load(target).classes_.tolist() == ["ham", "spam"]
    fitted(TextClassifier(), ODD).save(link)
    assert link.is_symlink()
    assert len(textnb.load(link).classes_) == len(ODD)
    assert os.listdir(tmp_path / "real") == ["model.textnb"]


@pytest.mark.parametrize("place", ["missing/model.textnb", "."])
def test_a_place_that_can_not_be_written_is_named(place: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="can't write "):
        fitted(TextClassifier()).save(tmp_path / place)
    assert os.listdir(tmp_path) == []


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        TextClassifier().save(tmp_path / "model.textnb")
    assert os.listdir(tmp_path) == []


def test_threads_may_save_to_one_place(tmp_path: Path) -> None:
    path = tmp_path / "model.textnb"
    models = [fitted(TextClassifier()), fitted(TextClassifier(), ODD)]
    known = [model.classes_.tolist() for model in models]
    threads = [threading.Thread(target=lambda model=model: [model.save(path) for _ in range(10)])
               for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert textnb.load(path).classes_.tolist() in known
    assert os.listdir(tmp_path) == ["model.textnb"]
