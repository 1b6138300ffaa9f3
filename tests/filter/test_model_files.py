"""Model files that a filter does not know, that lie or are damaged are refused by name."""

import numpy as np
import polars as pl
import pytest

import textnb
from tests.filter.models import LINEAR, MESSAGES, ROWS, fitted, saved
from tests.quick import judge
from tests.storage.members import arrays_of, with_array, with_value
from textnb import Calibration, Decision, MailFilter, NBLinear, NBLogisticRegression, load
from textnb.errors import ModelFileError, SourceError
from textnb.files.require import Unsupported
from textnb.storage.add_document import ModelToExtend

COUNTED, LEARNED = textnb.MultinomialNB(), NBLogisticRegression()


def check_refused(path):
    """No reader takes a file, and none writes it again."""
    for read in (load, MailFilter.load):
        with pytest.raises(ModelFileError, match=r"m\.textnb"):
            read(path)
    with pytest.raises((Unsupported, ModelFileError)):
        judge(str(path), MESSAGES[0])
    before = path.read_bytes()
    with pytest.raises((Unsupported, ModelFileError)):
        ModelToExtend(path).add({"body": "pills"}, "spam", path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("where", "value", "reason"), [
    (("estimator", "parameters", "sublinear"), True, r"MultinomialNB 'sublinear'.*Upgrade"),
    (("settings", "idf"), True, r"the setting 'idf'.*Upgrade"),
    (("features",), {}, "'features' among the model.json"),
    (("classes", "rows"), 7, "documents per class are not counts"),
    (("estimator", "name"), "TfidfComplementNB", "estimator 'TfidfComplementNB'"),
    (("layers",), 2, "other layers"),
    (("settings", "tokenizer", "newer"), ["urls"], "tokenizer's setting 'newer'.*Upgrade"),
    (("settings", "tokenizer", "lowercase"), "de", "the tokenizer: lowercase must be .*'de'"),
    (("settings", "tokenizer", "ngram_range"), [1, 10**9], "ngram_range")], ids=str)
def test_what_the_quick_filter_does_not_know_is_refused_by_name(where, value, reason, model):
    model.write_bytes(with_value(model.read_bytes(), where, value))
    with pytest.raises((Unsupported, ModelFileError), match=reason):
        judge(str(model), MESSAGES[0])


@pytest.mark.parametrize(("estimator", "where", "value"), [
    (COUNTED, ("settings", "binary"), [False]), (COUNTED, ("settings", "binary"), -0.0),
    (COUNTED, ("settings", "label"), ["label"]), (COUNTED, ("settings", "max_df"), 1001.0),
    (COUNTED, ("settings", "min_df"), ""), (COUNTED, ("settings", "text"), 1.5),
    (COUNTED, ("settings", "min_df"), 2), (COUNTED, ("layers",), True),
    (COUNTED, ("estimator", "parameters", "fit_prior"), []),
    (COUNTED, ("pruned",), {"terms": 1}), (COUNTED, ("calibration",), ...),
    (COUNTED, ("decision", "positive"), "none of them"), (COUNTED, ("calibration",), {}),
    (COUNTED, ("calibration", "documents"), -1), (COUNTED, ("settings", "max_features"), 1),
    (LINEAR[0], ("calibration", "temperature"), "x"),
    (LINEAR[0], ("calibration", "documents"), None),
    (LINEAR[0], ("estimator", "parameters", "l"), [1.0]),
    (LINEAR[0], ("decision", "thresholds"), []),
    (LEARNED, ("estimator", "parameters", "C"), -1),
    (LEARNED, ("estimator", "parameters", "l"), 0), (LEARNED, ("settings", "text"), 1.5),
    (LEARNED, ("estimator", "parameters", "max_iter"), 10**20),
    (NBLinear(), ("estimator", "parameters", "tf"), {"a": 1}),
    (NBLinear(), ("estimator", "parameters", "power"), -1e308),
    *((LINEAR[0], ("since_fit",), since) for since in (
        {"learned": -1, "forgotten": 2}, {"learned": 1}, {"learned": 0, "forgotten": 0}))],
    ids=str)
def test_what_load_refuses_no_filter_takes_and_no_update(estimator, where, value, tmp_path):
    path = tmp_path / "m.textnb"
    fitted(estimator).set_calibration(Calibration(2.0)).set_decision(
        Decision({"ham": 0.0, "spam": 1.0}, "spam", {"calibrated": True})).save(path)
    if not isinstance(estimator, NBLinear):
        assert judge(str(path), MESSAGES[0]) == MailFilter.load(path).judge(MESSAGES[0])
    path.write_bytes(with_value(path.read_bytes(), where, value))
    check_refused(path)


@pytest.mark.parametrize("value", [1, 0.01])
def test_limits_that_exclude_each_other_are_refused(value, tmp_path):
    path = saved(tmp_path / "m.textnb", min_df=5)
    path.write_bytes(with_value(path.read_bytes(), ("settings", "max_df"), value))
    check_refused(path)


@pytest.mark.parametrize(("estimator", "name", "change"), [
    (textnb.MultinomialNB(), "totals/counts", np.zeros_like),
    (textnb.ComplementNB(norm=True), "totals/norms", np.negative),
    (textnb.BernoulliNB(), "totals/absent", np.negative)],
    ids=["multinomial", "complement", "bernoulli"])
def test_sums_that_can_not_be_are_refused(estimator, name, change, tmp_path):
    path = saved(tmp_path / "m.textnb", estimator)
    content = path.read_bytes()
    path.write_bytes(with_array(content, name, change(arrays_of(content)[name])))
    check_refused(path)


@pytest.mark.parametrize(("name", "array"), [
    ("terms/ends", np.array([5, 4, 9], "<i4")), ("index/ends", np.array([3, 9], "<i4")),
    ("index/bytes", np.array([0, 0], "|u1")), ("counts/ends", np.zeros((1, 12), "<i4")),
    ("counts/classes", np.full(13, 9, "|u1")), ("counts/values", np.full(13, -1, "<i4")),
    ("counts/values", np.full(13, 0, "<i4")), ("totals/counts", np.array([1], "<i8")),
    ("totals/counts", np.array([-5, -100], "<i8")), ("totals/counts", None), ("terms/bytes", None),
    ("terms/kept", np.full(9, 255, "|u1"))], ids=str)
def test_arrays_that_lie_are_refused(name, array, model):
    model.write_bytes(with_array(model.read_bytes(), name, array))
    with pytest.raises((ModelFileError, Unsupported)):
        judge(str(model), MESSAGES[0])


def test_counts_of_a_term_that_are_not_sorted_are_refused(tmp_path):
    # Both classes have "hello", so that its counts can be in the wrong order.
    rows = ROWS.with_columns(body=pl.col("body") + pl.lit(" hello"))
    path = saved(tmp_path / "m.textnb", rows=rows)
    content = path.read_bytes()
    arrays = arrays_of(content)
    end = arrays["counts/ends"][0][sorted(load(path).vocabulary_).index("hello")]
    for name in ("counts/classes", "counts/values"):
        array = arrays[name].copy()
        array[end - 2:end] = array[end - 2:end][::-1].copy()
        content = with_array(content, name, array)
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not sorted"):
        MailFilter.load(path)
    with pytest.raises(ModelFileError, match="not sorted"):
        judge(str(path), b"Subject: a\n\nhello")


def test_what_is_no_model_of_texts_is_refused(tmp_path):
    (tmp_path / "broken").write_bytes(b"PK\3\4broken textnb-model 2 sha256:" + b"0" * 64)
    textnb.TableClassifier().fit(pl.DataFrame({"x": [0.0, 1.0], "label": ["spam", "ham"]})).save(
        tmp_path / "table")
    for name, error, message, of_quick in (
            ("broken", ModelFileError, "is not a sound textnb model", "broken"),
            ("none", SourceError, "no such model file", "none"),
            (".", SourceError, "Is a directory", "can't read"),
            ("table", ModelFileError, "table is a model of feature tables.*train one",
             "feature_names")):
        with pytest.raises(error, match=message):
            MailFilter.load(tmp_path / name)
        with pytest.raises(Unsupported if name == "table" else error, match=of_quick):
            judge(str(tmp_path / name), MESSAGES[0])


def test_every_block_that_is_read_is_checked(model):
    content = model.read_bytes()
    for at in range(0, len(content), 37):
        model.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1:])
        with pytest.raises((ModelFileError, SourceError, Unsupported)):
            judge(str(model), MESSAGES[0])
