"""Feature maps: what their steps say, one row and many, explanations, and steps nobody knows."""

import copy
import pickle
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import textnb
from textnb import BernoulliNB, LinearForm, ParameterError, TextClassifier
from textnb.bayes import features
from textnb.bayes.features import IDENTITY, FeatureMap, Idf, Presence, Step, Sublinear, presence_map
from textnb.filter.mailfilter import MailFilter
from textnb.filter.verdict import Judging
from textnb.scoring.columns import Answers
from textnb.scoring.scorer import score_frame

RNG = np.random.default_rng(5)
COUNTS = sp.csr_array(np.vstack([RNG.poisson(0.6, (40, 12)), np.zeros((1, 12), dtype=np.int64)]))
FREQUENCY = np.asarray((COUNTS > 0).sum(axis=0))
IDF = Idf.smooth(FREQUENCY, COUNTS.shape[0])
TERMS = pl.Series([f"t{i:02}" for i in range(12)])
# All maps of counts that there are.
MAPS = {
    "+".join(step.name for step in steps) or "identity": FeatureMap(steps)
    for first in ((), (Presence(),), (Presence(1.0),), (Sublinear(),))
    for second in ((), (IDF,)) for third in ((), (features.Length(),))
    for steps in [(*first, *second, *third)]
    if first != (Presence(1.0),) or not (second or third)}


@dataclass(frozen=True, eq=False)
class Squared(Step):
    """A step from outside the package."""

    name = "squared"
    place = 2


UNKNOWN = FeatureMap((Squared(),))


def form_of(features, classes=3):
    rng = np.random.default_rng(7)
    return LinearForm(np.array(["ham", "spam", "other"][:classes]), rng.normal(size=(12, classes)),
                      rng.normal(size=classes), tuple(TERMS), features)


def by_hand(features, counts):
    """What the steps say, on dense rows: an oracle."""
    rows = np.array(counts, dtype=np.float64)
    for step in features.steps:
        match step.name:
            case "presence":
                rows = (rows > getattr(step, "above")).astype(float)  # noqa: B009  # of a Step
            case "sublinear":
                rows = np.array([[1 + np.log(x) if x else 0.0 for x in row] for row in rows])
            case "idf":
                rows = rows * np.log((1 + COUNTS.shape[0]) / (1 + FREQUENCY)) + rows
            case "length":
                rows = np.array([row / (np.sqrt((row**2).sum()) or 1.0) for row in rows])
    return rows


@pytest.mark.parametrize("name", MAPS)
def test_rows_are_what_the_steps_say(name):
    form = form_of(MAPS[name])
    rows = form.used(COUNTS)
    expected = by_hand(form.features, COUNTS.toarray())
    np.testing.assert_allclose(rows.toarray(), expected, rtol=1e-12, atol=0)
    assert rows.data.all()
    np.testing.assert_allclose(form.scores(COUNTS), expected @ form.weights + form.intercept,
                               rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(form.scores(COUNTS.toarray()), form.scores(COUNTS), rtol=0)


@pytest.mark.parametrize("name", MAPS)
@given(row=st.lists(st.integers(0, 50), min_size=12, max_size=12))
def test_one_row_has_the_bits_of_a_matrix(name, row):
    form = form_of(MAPS[name])
    columns = np.flatnonzero(row)
    one = form.scores_of_one(columns, np.array(row, dtype=np.float64)[columns])
    assert one.tobytes() == form.scores(sp.csr_array(np.array([row, [1] * 12])))[0].tobytes()


def fitted_with(form):
    """A model of texts with this form."""
    fitted = TextClassifier(vocabulary=TERMS.to_list()).fit(["t01"] * 3, ["a", "b", "c"]).fitted_
    return replace(fitted, learned=replace(fitted.learned, form=form))


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("classes", [2, 3])
def test_contributions_sum_to_the_score(name, classes):
    form = form_of(MAPS[name], classes)
    texts = [" ".join(np.repeat(TERMS.to_numpy(), row)) for row in COUNTS.toarray()]
    frame = pl.DataFrame({"text": [*texts, "unknown words"]})
    answers = score_frame(
        fitted_with(form), frame.lazy(), Answers(explain=4, scores=True)).collect()
    total = answers["intercept"] + answers["explanation"].list.eval(
        pl.element().struct.field("contribution").sum()).list.first().fill_null(0.0)
    np.testing.assert_allclose(total, answers["score"], rtol=1e-12, atol=1e-12)
    best = np.sort(answers["scores"].struct.unnest().to_numpy(), axis=1)
    np.testing.assert_allclose(answers["score"], best[:, -1] - best[:, -2], rtol=1e-9, atol=1e-12)
    # The counts beside them are those of the text.
    first = answers["explanation"][0].struct.unnest().drop_nulls("term")
    assert dict(first.select("term", "count").iter_rows()).items() <= dict(
        zip(TERMS, COUNTS.toarray()[0].tolist(), strict=True)).items()


@pytest.mark.parametrize("name", MAPS)
def test_a_filter_scores_as_the_form_does(name):
    form = form_of(MAPS[name], 2)
    for row in COUNTS.toarray()[:5]:
        text = " ".join(np.repeat(TERMS.to_numpy(), row))
        scores = form.scores(sp.csr_array(row[None, :]))[0]
        verdict = filter_of(form).judge(f"Subject: x\n\n{text}".encode())
        assert verdict.log_odds == pytest.approx(scores[1] - scores[0], rel=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_a_description_gives_the_map_again(name):
    features = MAPS[name]
    assert FeatureMap.from_dict(features.to_dict()) == features
    assert copy.deepcopy(features) == features == pickle.loads(pickle.dumps(features))
    assert hash(features) == hash(copy.copy(features))
    columns = np.array([1, 3])
    np.testing.assert_allclose(
        features.select(columns).sparse(sp.csr_array(np.array([[2, 5]]))).toarray(),
        features.sparse(sp.csr_array(([2, 5], ([0, 0], columns)), shape=(1, 12))).toarray()[
            :, columns])


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.float32])
def test_small_numbers_are_as_exact_as_large_ones(name, kind):
    form, rows = form_of(MAPS[name]), COUNTS.astype(kind)
    for small, wide in ((rows, COUNTS), (rows.toarray(), COUNTS.toarray())):
        np.testing.assert_array_equal(form.scores(small), form.scores(wide))


def test_presence_reads_as_before():
    model = TextClassifier(BernoulliNB()).fit(["aa bb", "bb"], ["x", "y"])
    assert model.linear_form().presence_above == 0.0
    assert model.linear_form().features == FeatureMap((Presence(0.0),))
    assert TextClassifier().fit(["aa bb", "bb"], ["x", "y"]).linear_form().features == IDENTITY


def filter_of(form):
    judging = Judging({"ham": 20, "spam": 20, "other": 3}, "spam")
    return MailFilter(form, TERMS, textnb.Tokenizer(), ["body"], judging)


def earlier_pickle():
    state = {name: value for name, value in vars(form_of(presence_map(0.0))).items()
             if name != "features"}
    LinearForm.__new__(LinearForm).__setstate__({**state, "presence_above": 0.0})


DESCRIBED = [
    ([], "with a list \"steps\""), ({"steps": 3}, "with a list \"steps\""),
    ({"steps": [], "more": 1}, "with a list \"steps\""),
    ({"steps": [{"step": "squared"}]}, "unknown value 'squared'"),
    ({"steps": [{"step": "presence", "above": -1}]}, "above must be"),
    ({"steps": [{"step": "presence", "above": "x"}]}, "above must be"),
    ({"steps": [{"step": "idf", "weights": [1.0, -1.0]}]}, "weights must be"),
    ({"steps": [{"step": "length"}, {"step": "sublinear"}]}, "sublinear after length"),
    ({"steps": [{"step": "presence"}, {"step": "sublinear"}]}, "sublinear after presence"),
    ({"steps": [{"step": "center", "values": [1.0]}, {"step": "length"}]}, "length after center")]
# All that knows each step refuses one from outside.
EXECUTORS = [
    lambda form: form.scores(COUNTS), lambda form: form.log_posterior(COUNTS),
    lambda form: form.scores_of_one(np.array([1]), np.array([2.0])),
    lambda form: form.features.select(np.array([1])),
    lambda form: form.features.dense(COUNTS.toarray()), lambda form: form.features.to_dict(),
    lambda form: filter_of(form).judge(b"Subject: x\n\nt01")]
REFUSED = [
    *((lambda described=described: FeatureMap.from_dict(described), ParameterError, message)
      for described, message in DESCRIBED),
    *((lambda executor=executor: executor(form_of(UNKNOWN)), ParameterError, "step squared is not")
      for executor in EXECUTORS),
    (lambda: score_frame(fitted_with(form_of(UNKNOWN)), pl.LazyFrame({"text": ["t01 t02"]}),
                         Answers(explain=1)).collect(),
     (ParameterError, pl.exceptions.ComputeError), "step squared is not"),
    *((lambda step=step: form_of(FeatureMap((step,))), ParameterError,
       f"{step.name} has 3 numbers, and the form 12")
      for step in (Idf(np.ones(3)), features.Center(np.ones(3)))),
    (lambda: LinearForm(np.array([1]), np.ones((2, 1)), np.ones(1), None, 0.0), ParameterError,
     "features must be a FeatureMap"),
    (lambda: type("Rare", (Idf,), {}), TypeError, "would be executed as that step"),
    (lambda: form_of(FeatureMap((Sublinear(),))).scores(-COUNTS), ParameterError, "counts below 0"),
    (lambda: np.copyto(IDF.weights, 1.0), ValueError, "read-only"),
    (earlier_pickle, ParameterError, "pickled by an earlier version")]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_is_no_map_of_the_form_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("features", [UNKNOWN, presence_map(None), *MAPS.values()], ids=repr)
def test_a_model_file_gives_the_same_map_or_is_not_written(features, tmp_path):
    model = TextClassifier(textnb.NBLogisticRegression()).fit(["aa bb", "bb"], ["x", "y"])
    steps = tuple(Idf(np.ones(2)) if isinstance(step, Idf) else step for step in features.steps)
    fitted, path = model.fitted_, tmp_path / "model.textnb"
    form = replace(fitted.form, features=FeatureMap(steps))
    model._fitted = replace(fitted, learned=replace(fitted.learned, form=form))
    if features == presence_map(0.0):
        model.save(path)
        return
    with pytest.raises(ParameterError, match="does not hold the steps of this feature map"):
        model.save(path)
    assert not path.exists()
