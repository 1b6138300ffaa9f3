"""A fitted model is one state: parameters set later, and writers, do not reach into it."""

import copy
import pickle
import threading
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KernelDensity

import textnb
from textnb import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LinearForm,
    LogCountRatio,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    NearestCentroid,
    ParameterError,
    PlugInBayes,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    TableClassifier,
    TextClassifier,
    TfidfComplementNB,
    Tokenizer,
    cross_validate,
    export_model,
    leave_one_out,
)
from textnb.bayes.counts import Counts
from textnb.bayes.forms import RequiredTermsForm
from textnb.bayes.moments import MomentStatistics
from textnb.models.histogram import HistogramDensity
from textnb.scoring.texts import score_batch

TEXTS = ["cheap pills now", "cheap cheap offer now", "see you at noon", "noon at the office",
         "the Free-offer ends now", "lunch at noon ?"]
ROWS = pl.DataFrame({"text": TEXTS, "title": TEXTS[::-1],
                     "label": ["spam", "spam", "ham", "ham", "spam", "ham"]})
COUNTS = np.array([[2, 1, 0, 0], [1, 0, 1, 0], [0, 3, 0, 1], [0, 1, 1, 2], [1, 1, 1, 0],
                   [3, 0, 0, 1], [0, 0, 2, 2]])
POINTS = np.array([[0.0, 1.0, 3.0], [1.0, 0.2, 2.0], [0.5, 2.0, 2.2], [0.1, 0.3, 4.1],
                   [4.0, 5.0, 0.0], [5.0, 4.2, 1.0], [4.4, 6.0, 0.3], [6.2, 4.1, 0.4]])
KINDS = ["a", "a", "b", "b", "a", "a", "b"]
SIDES = ["a"] * 4 + ["b"] * 4
# Enough to hold some out.
MANY = np.vstack([COUNTS + np.array([k, 0, 0, k % 2]) for k in range(4)])
SPREAD = np.vstack([POINTS + np.array([0.1 * k, -0.07 * k * k, 0.0]) for k in range(2)])


# Parameters that are set after fit


TEXT_CHANGES = [
    ({"min_df": 2}, "min_df from 1 to 2"),
    ({"min_df": 1.0}, "min_df from 1 to 1.0"),
    ({"max_df": 0.5}, "max_df from 1.0 to 0.5"),
    ({"max_features": 3}, "max_features from None to 3"),
    ({"vocabulary": ["cheap", "noon"]}, r"vocabulary from None to \['cheap', 'noon'\]"),
    ({"binary": True}, "binary from False to True"),
    ({"text": "title"}, "text from 'text' to 'title'"),
    ({"label": "title"}, "label from 'label' to 'title'"),
    ({"memory_limit": 1 << 20}, "memory_limit from None"),
    ({"tokenizer": Tokenizer(ngram_range=(1, 2))},
     r"tokenizer__ngram_range from \(1, 1\) to \(1, 2\)"),
    ({"tokenizer__lowercase": False}, "tokenizer__lowercase from True to False"),
    ({"estimator": BernoulliNB()}, r"estimator from MultinomialNB\(\) to BernoulliNB\(\)"),
    ({"estimator__l": 0.25}, "estimator__l from 1.0 to 0.25"),
    ({"estimator__class_weight": "balanced"}, "estimator__class_weight from None to 'balanced'"),
]
MIXING = {
    "saving": lambda model, folder: model.save(folder / "m.textnb"),
    "learning more": lambda model, folder: model.partial_fit(ROWS),
    "forgetting": lambda model, folder: model.forget(ROWS.head(1)),
    "adding": lambda model, folder: model + TextClassifier(MultinomialNB()).fit(ROWS),
    "counting": lambda model, folder: model.count(ROWS),
    "leaving documents out": lambda model, folder: leave_one_out(model, ROWS),
    "exporting": lambda model, folder: export_model(model, folder / "w.json", to="json"),
}


@pytest.mark.parametrize(("change", "named"), TEXT_CHANGES, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("what", MIXING)
def test_what_would_mix_settings_is_refused_by_name(what, change, named, tmp_path):
    model = TextClassifier(MultinomialNB()).fit(ROWS)
    before = model.predict(ROWS, probability=True, explain=2)
    terms = model.top(3)
    model.set_params(**change)
    with pytest.raises(ParameterError, match=f"^{what} goes with .*{named}.*Call fit again"):
        MIXING[what](model, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert model.predict(ROWS, probability=True, explain=2).equals(before)
    assert model.top(3).equals(terms)


@pytest.mark.parametrize("what", MIXING)
def test_what_was_set_back_is_no_change(what, tmp_path):
    model = TextClassifier(MultinomialNB()).fit(ROWS)
    model.set_params(min_df=2, tokenizer__lowercase=False, estimator=BernoulliNB())
    model.set_params(min_df=1, tokenizer=Tokenizer(), estimator=None)
    MIXING[what](model, tmp_path)


def test_the_fitted_estimator_can_not_be_set_behind_the_model(tmp_path):
    model = TextClassifier(MultinomialNB()).fit(ROWS)
    model.estimator_.set_params(l=9.0)
    with pytest.raises(ParameterError, match=r"estimator_\.l from 1\.0 to 9\.0"):
        model.save(tmp_path / "m.textnb")
    table = TableClassifier(GaussianNB(), features=["x"]).fit(_table())
    table.estimator_.set_params(var_smoothing=0.5)
    with pytest.raises(ParameterError, match=r"estimator_\.var_smoothing"):
        table.save(tmp_path / "t.textnb")


def test_a_list_that_its_owner_changes_is_a_change(tmp_path):
    words = ["cheap", "noon"]
    model = TextClassifier(vocabulary=words).fit(ROWS)
    words.append("offer")
    with pytest.raises(ParameterError, match="vocabulary from"):
        model.save(tmp_path / "m.textnb")
    smoothing = np.ones(2)
    words.pop()
    model = TextClassifier(MultinomialNB(l=smoothing), vocabulary=words).fit(ROWS)
    smoothing[0] = 7.0
    with pytest.raises(ParameterError, match="estimator__l from"):
        model.save(tmp_path / "m.textnb")


def test_folds_are_of_the_parameters_as_they_are():
    model = TextClassifier().fit(ROWS).set_params(estimator=MultinomialNB(l=0.1))
    fresh = TextClassifier(MultinomialNB(l=0.1))
    assert np.array_equal(cross_validate(model, ROWS, folds=2).scores,
                          cross_validate(fresh, ROWS, folds=2).scores)


def _table():
    return pl.DataFrame({"x": POINTS[:, 0], "y": POINTS[:, 1], "label": SIDES})


@pytest.mark.parametrize(("change", "named"), [
    ({"features": ["x", "y"]}, r"features from \['x'\] to"), ({"features": None}, "features from"),
    ({"label": "y"}, "label from"), ({"estimator__var_smoothing": 0.1}, "var_smoothing from 1e-09"),
    ({"estimator": NearestCentroid()}, "estimator from GaussianNB"),
])
def test_a_table_classifier_refuses_them_too(change, named, tmp_path):
    model = TableClassifier(GaussianNB(shared_variance=True), features=["x"]).fit(_table())
    before = model.predict(_table(), scores=True)
    model.set_params(**change)
    acts = [
        lambda: model.save(tmp_path / "m.textnb"), lambda: model.partial_fit(_table()),
        lambda: export_model(model, tmp_path / "w.json", to="json")]
    for act in acts:
        with pytest.raises(ParameterError, match=named):
            act()
    assert model.predict(_table(), scores=True).equals(before)
    assert model.score(_table()) == 1.0


# fit uses the new settings, and nothing else does


ESTIMATORS = [
    (MultinomialNB(), COUNTS, KINDS, {
        "l": 0.1, "fit_prior": False, "class_prior": [0.2, 0.8], "class_weight": {"b": 3.0}}),
    (BernoulliNB(), COUNTS, KINDS, {
        "l": 0.1, "binarize": 1.0, "fit_prior": False, "class_prior": [0.2, 0.8],
        "class_weight": "balanced"}),
    (ComplementNB(), COUNTS, KINDS, {
        "l": 0.1, "norm": True, "fit_prior": False, "class_prior": [0.2, 0.8],
        "class_weight": {"b": 3.0}}),
    (CategoricalNB(), COUNTS, KINDS, {
        "l": 0.1, "fit_prior": False, "class_prior": [0.2, 0.8], "min_categories": 9,
        "class_weight": {"b": 3.0}}),
    (NBLogisticRegression(), MANY, KINDS * 4, {
        "l": 0.1, "C": 0.1, "beta": 0.25, "loss": "hinge", "binarize": False, "tol": 100.0,
        "max_iter": 50, "random_state": 7,
        "class_weight": "balanced"}),
    (NBLinear(), MANY, KINDS * 4, {
        "l": 0.1, "C": 0.1, "loss": "log", "power": 1.0, "tf": "presence", "idf": False,
        "unit_length": False, "tol": 1e-6, "max_iter": 50, "held_out": 0.0,
        "class_weight": "balanced"}),
    (TfidfComplementNB(), MANY, KINDS * 4, {
        "l": 0.1, "norm": True, "tf": "presence", "idf": False, "unit_length": False,
        "class_weight": "balanced"}),
    (GaussianNB(), POINTS, SIDES, {
        "priors": [0.1, 0.9], "var_smoothing": 0.1, "shared_variance": True,
        "class_weight": {"b": 3.0}}),
    (LinearDiscriminantAnalysis(), POINTS, SIDES, {
        "covariance": "diagonal", "shrinkage": 0.5, "priors": [0.1, 0.9], "divisor": "n-K",
        "allow_singular": True, "n_components": 1}),
    (QuadraticDiscriminantAnalysis(), POINTS, SIDES, {
        "priors": [0.1, 0.9], "divisor": "n-1", "shrinkage": 0.5, "reg_param": 0.1,
        "allow_singular": True}),
    (RegularizedDiscriminantAnalysis(), SPREAD, SIDES * 2, {
        "alpha": [0.1, 0.9], "gamma": 0.1, "cv": 2, "priors": [0.1, 0.9], "allow_singular": True}),
    (NearestCentroid(), POINTS, SIDES, {"priors": [0.1, 0.9]}),
    (PlugInBayes(KernelDensity()), SPREAD, SIDES * 2, {
        "density": HistogramDensity(bins=2), "naive": True, "search": {"bandwidth": [0.5, 2.0]},
        "cv": 2, "priors": [0.1, 0.9]}),
    (HistogramDensity(), POINTS, SIDES, {"bins": 3, "l": 0.1}),
    (LogCountRatio(), COUNTS, KINDS, {"l": 0.1, "binarize": False}),
]
EVERY = [(estimator, X, y, name, other) for estimator, X, y, others in ESTIMATORS
         for name, other in others.items()]


def answered(model, X):
    """Whatever the model answers of rows, and its linear form."""
    names = ("predict", "predict_joint_log_proba", "predict_proba", "decision_function",
             "transform", "score_samples")
    answers = [getattr(model, name)(X) for name in names if hasattr(model, name)]
    answers = [each.toarray() if hasattr(each, "toarray") else each for each in answers]
    try:
        form = model.linear_form()
    except (AttributeError, ParameterError):
        return answers
    return [*answers, form.weights, form.intercept, model.coef_, model.intercept_]


@pytest.mark.parametrize(
    ("estimator", "X", "y", "name", "other"), EVERY,
    ids=[f"{type(estimator).__name__}-{name}" for estimator, _, _, name, _ in EVERY])
def test_fit_uses_new_parameters_and_nothing_else_does(estimator, X, y, name, other):
    model = clone(estimator).fit(X, y)
    before = answered(model, X)
    model.set_params(**{name: other})
    for mine, theirs in zip(answered(model, X), before, strict=True):
        assert np.array_equal(mine, theirs)
    fresh = clone(estimator).set_params(**{name: other})
    for mine, theirs in zip(answered(model.fit(X, y), X), answered(fresh.fit(X, y), X),
                            strict=True):
        assert np.array_equal(mine, theirs)


def test_every_parameter_of_every_estimator_is_tried():
    named = [getattr(textnb, name) for name in textnb.__all__]
    public = {value for value in [*named, HistogramDensity]
              if isinstance(value, type)
              and hasattr(value, "get_params") and hasattr(value, "fit")}
    assert public - {TextClassifier, TableClassifier} == {type(e[0]) for e in ESTIMATORS}
    for estimator, _, _, others in ESTIMATORS:
        assert set(others) == set(estimator.get_params(deep=False))


# A share of 1.0 leaves no term that could be fitted again.
@pytest.mark.parametrize("change", [change for change, _ in TEXT_CHANGES
                                    if change != {"min_df": 1.0}], ids=str)
def test_a_text_classifier_too(change):
    if "label" in change:
        change = {"label": "kind"}
    rows = ROWS.with_columns(kind=pl.lit("x") + ROWS["label"])
    model = TextClassifier(MultinomialNB()).fit(rows)
    before = model.predict(rows, scores=True)
    form = model.linear_form()
    model.set_params(**change)
    assert model.predict(rows, scores=True).equals(before)
    assert model.score(rows) == 1.0
    assert np.array_equal(model.transform(rows).toarray(),
                          TextClassifier().fit(rows).transform(rows).toarray())
    assert np.array_equal(model.linear_form().weights, form.weights)
    fresh = TextClassifier(MultinomialNB()).set_params(**change).fit(rows)
    assert model.fit(rows).predict(rows, scores=True).equals(fresh.predict(rows, scores=True))
    assert clone(model).get_params().keys() == model.get_params().keys()


def test_more_is_learned_with_the_new_smoothing_as_in_scikit_learn():
    model = MultinomialNB().fit(COUNTS, KINDS).set_params(l=0.1).partial_fit(COUNTS, KINDS)
    whole = MultinomialNB(l=0.1).fit(np.vstack([COUNTS, COUNTS]), KINDS * 2)
    assert np.array_equal(model.feature_log_prob_, whole.feature_log_prob_)


def test_more_is_not_learned_by_another_threshold():
    model = BernoulliNB().fit(COUNTS, KINDS).set_params(binarize=1.0)
    with pytest.raises(ParameterError, match=r"binarize was 0\.0"):
        model.partial_fit(COUNTS, KINDS)


def test_a_number_is_not_taken_for_a_choice_of_l():
    model = MultinomialNB(l=0.1).fit(COUNTS, KINDS).set_params(l="auto")
    with pytest.raises(ParameterError, match="l='auto' is chosen by fit"):
        model.partial_fit(COUNTS, KINDS)


# Threads


def wrong_answers(change, ask, known):
    """What threads are answered that no state answers, while the model is changed."""
    wrong, over = [], threading.Event()

    def asking():
        while not over.is_set():
            for question, answers in zip(ask, known, strict=True):
                try:
                    answer = str(question())
                except Exception as error:
                    wrong.append(repr(error))
                    continue
                if answer not in answers:
                    wrong.append(answer[:200])

    threads = [threading.Thread(target=asking) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        change()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return wrong


def test_each_answer_of_a_thread_is_of_one_state():
    parts = [ROWS] + [
        pl.DataFrame({"text": [f"word{k}x{i} cheap noon" for i in range(60)],
                      "label": [f"class{k}"] * 60}) for k in range(8)]
    states, model = [], TextClassifier()
    for part in parts:
        announced = None if part is ROWS else part["label"].unique().to_list()
        states.append(copy.deepcopy(model.partial_fit(part, classes=announced)))
    texts = ["cheap noon word3x5 word7x1", "the office", "word1x1 word2x2 offer"]
    frame = pl.DataFrame({"text": texts})
    ask = [
        lambda m: m.predict_proba(texts).tobytes(),
        lambda m: m.decision_function(frame).tobytes(),
        lambda m: m.predict(frame, probability=True, explain=2, top=2).write_json(),
        lambda m: m.predict(texts).tolist(),
        lambda m: m.explain(texts[0], 3).write_json(),
        lambda m: (m.linear_form().terms, m.linear_form().weights.shape[1] > 0)[0],
        lambda m: m.transform(texts).shape,
        lambda m: m.top(2).write_json(),
        lambda m: score_batch(m.fitted_, frame)[0].tobytes()]
    known = [{str(question(state)) for state in states} for question in ask]
    model = TextClassifier().fit(ROWS)

    def change():
        for _ in range(3):
            model.fit(ROWS)
            for part in parts[1:]:
                model.partial_fit(part, classes=part["label"].unique().to_list())

    questions = [lambda question=question: question(model) for question in ask]
    assert wrong_answers(change, questions, known) == []


def test_a_table_classifier_answers_from_one_state():
    one = _table()
    two = one.with_columns(label=pl.lit("z") + one["label"], x=one["x"] + 9.0)
    more = two["label"].unique().to_list()
    states = [TableClassifier().fit(one), TableClassifier().fit(one).partial_fit(two, classes=more)]
    known = {state.predict(one, scores=True).write_json() for state in states}
    model = TableClassifier().fit(one)

    def change():
        for _ in range(30):
            model.fit(one)
            model.partial_fit(two, classes=more)

    ask = [lambda: model.predict(one, scores=True).write_json()]
    assert wrong_answers(change, ask, [known]) == []


# Arrays


def arrays_of(value, path):
    """The arrays that can be reached from a fitted model by public names."""
    if isinstance(value, np.ndarray):
        return {path: value}
    if isinstance(value, (list, tuple)):
        return {name: found for i, item in enumerate(value)
                for name, found in arrays_of(item, f"{path}[{i}]").items()}
    if isinstance(value, (LinearForm, Counts, MomentStatistics)):
        return {name: found for key, item in vars(value).items()
                for name, found in arrays_of(item, f"{path}.{key}").items()}
    return {}


@pytest.mark.parametrize("how", ["fitted", "unpickled", "copied"])
@pytest.mark.parametrize(("estimator", "X", "y", "others"), ESTIMATORS,
                         ids=[type(e[0]).__name__ for e in ESTIMATORS])
def test_fitted_arrays_are_read_only(estimator, X, y, others, how):
    model = clone(estimator).fit(X, y)
    if how != "fitted":
        model = pickle.loads(pickle.dumps(model)) if how == "unpickled" else copy.deepcopy(model)
    found = {}
    for name in [*vars(model), *(name for kind in type(model).__mro__ for name in vars(kind))]:
        if name.endswith("_") and not name.endswith("__") and name not in ("coef_", "intercept_"):
            found |= arrays_of(getattr(model, name, None), name)
    if hasattr(model, "_form"):
        found |= arrays_of(model._form, "form")
    assert found
    assert [name for name, array in found.items() if array.flags.writeable] == []
    with pytest.raises(ValueError, match="read-only"):
        next(iter(found.values()))[:] = 0


@pytest.mark.parametrize("estimator", [None, BernoulliNB(l=0.0), NBLogisticRegression()], ids=str)
def test_a_text_model_can_not_be_written_into(estimator):
    model = TextClassifier(estimator).fit(ROWS)
    for again in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        before = again.predict(TEXTS).tolist()
        form = again.linear_form()
        arrays = [form.weights, form.intercept, form.classes, again.classes_]
        if isinstance(form, RequiredTermsForm):
            arrays += [form.required.data, form.required.indices]
        if estimator is None:
            counts = again.statistics_
            arrays += [counts.class_count, counts.values, counts.codes,
                       again.estimator_.feature_log_prob_, again.estimator_.class_log_prior_]
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[:1] = array[1:2]
        assert again.predict(TEXTS).tolist() == before


def test_an_owner_may_go_on_writing_into_arrays_that_made_a_form():
    weights, intercept = np.zeros((2, 2)), np.zeros(2)
    form = LinearForm(np.array(["a", "b"]), weights, intercept)
    weights[0, 0] = 1.0
    assert not form.weights.flags.writeable


# Nested parameters


def test_a_tokenizers_settings_are_parameters():
    model = TextClassifier()
    assert model.get_params()["tokenizer__ngram_range"] == (1, 1)
    assert "tokenizer__ngram_range" not in model.get_params(deep=False)
    model.set_params(tokenizer__ngram_range=(1, 2), tokenizer__lowercase=False, min_df=2)
    assert model.tokenizer == Tokenizer(ngram_range=(1, 2), lowercase=False)
    assert model.min_df == 2
    assert TextClassifier().tokenizer == Tokenizer()
    assert clone(model).get_params()["tokenizer"] == model.tokenizer
    model.set_params(tokenizer=Tokenizer(lowercase=False), tokenizer__ngram_range=(2, 2))
    assert model.tokenizer == Tokenizer(lowercase=False, ngram_range=(2, 2))
    assert "ngram_range=(2, 2)" in repr(model)
    assert "TextClassifier" in model._repr_html_()


def test_an_unknown_setting_of_a_tokenizer_is_answered_by_the_nearest():
    model = TextClassifier()
    with pytest.raises(ParameterError, match="ngramrange' - did you mean 'ngram_range'"):
        model.set_params(tokenizer__ngramrange=(1, 2), min_df=3)
    with pytest.raises(ParameterError, match="ngram_range must be"):
        model.set_params(tokenizer__ngram_range=(2, 1), min_df=3)
    with pytest.raises(ValueError, match="Invalid parameter 'tokeniser'"):
        model.set_params(tokeniser__ngram_range=(1, 2))
    assert (model.tokenizer, model.min_df) == (Tokenizer(), 1)


def test_a_grid_over_a_tokenizer_is_searched():
    labels = ROWS["label"].to_list()
    search = GridSearchCV(
        TextClassifier(MultinomialNB()), {
            "tokenizer__ngram_range": [(1, 1), (1, 2)], "tokenizer__lowercase": [True, False],
            "estimator__l": [0.1, 1.0]}, cv=3).fit(TEXTS, labels)
    assert len(search.cv_results_["params"]) == 8
    for found, settings in zip(search.cv_results_["mean_test_score"],
                               search.cv_results_["params"], strict=True):
        alone = clone(TextClassifier(MultinomialNB())).set_params(**settings)
        assert found == cross_val_score(alone, TEXTS, labels, cv=3).mean()


def test_a_stale_calibration_or_decision_warns_where_it_is_used():
    frame = pl.DataFrame({"text": ["good film", "good", "bad film", "bad"] * 5,
                          "label": ["pos", "pos", "neg", "neg"] * 5})
    model = textnb.TextClassifier().fit(frame)
    model.set_calibration(textnb.Calibration(2.0, 0.0, 20, "by hand"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame, probability=True)
        model.partial_fit(frame)
        # No answer of these is made with the calibration.
        model.predict(frame)
        model.predict(["good"])
    stale = "the model's calibration is stale: the model has learned or forgotten documents since"
    for answer in (lambda: model.predict(frame, probability=True),
                   lambda: model.predict(frame.lazy(), top=1),
                   lambda: model.predict_proba(["good"]),
                   lambda: model.decision_function(["good"])):
        with pytest.warns(textnb.TextnbWarning, match=stale) as caught:
            answer()
        assert len(caught) == 1
    model.set_calibration(None).set_decision(
        textnb.Decision({"pos": 0.0, "neg": 0.0}).as_stale("the rows have changed"))
    with pytest.warns(textnb.TextnbWarning, match="decision is stale: the rows have changed"):
        model.predict(frame)


@pytest.fixture(scope="module")
def fitted_objects():
    """Each kind of estimator and of result, of both kinds of labels, by name."""
    texts = ["good x", "bad y", "good z", "bad w", "so good", "so bad"] * 10
    one = pl.DataFrame({"text": texts, "label": ["g", "b"] * 30})
    lists = one.with_columns(label=pl.Series([["g"], ["b"], ["g", "n"], ["b"], ["g"], []] * 10))
    rows = np.random.default_rng(0).normal(size=(60, 3))
    table = pl.DataFrame(rows, schema=["u", "v", "w"]).with_columns(one["label"])
    found = {}
    for model in (MultinomialNB(), BernoulliNB(), ComplementNB(), NBLinear()):
        for name, frame in (("one", one), ("lists", lists)):
            found[f"{model}, {name}"] = TextClassifier(model).fit(frame)
    for model in (GaussianNB(), LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis(),
                  NearestCentroid(), PlugInBayes()):
        found[f"{model}"] = model.fit(rows, one["label"].to_list())
        found[f"{model}, table"] = TableClassifier(clone(model)).fit(table)
    for model in (MultinomialNB(), NBLinear(), CategoricalNB(), LogCountRatio()):
        found[f"{model}, matrix"] = model.fit((rows > 0).astype(int), one["label"].to_list())
    for name, frame in (("one", one), ("lists", lists)):
        model = found[f"{MultinomialNB()}, {name}"]
        found |= {f"{kind}, {name}": value for kind, value in {
            "form": model.linear_form(), "counts": model.statistics_, "fitted": model.fitted_,
            "explanation": model.highlight("good x"),
            "evaluation": textnb.evaluate(model, frame),
            "leave-one-out": textnb.leave_one_out(model, frame),
            "comparison": textnb.compare_models(model, model),
            "duplicates": textnb.find_duplicates(frame, frame)}.items()}
    return found


def test_looking_at_an_object_never_fails(fitted_objects):
    """Notebooks and `inspect` ask for all attributes; one that is not there is an AttributeError.
    """
    for name, value in fitted_objects.items():
        assert repr(value), name
        for attribute in dir(value):
            hasattr(value, attribute)
        if hasattr(value, "_repr_html_"):
            assert value._repr_html_(), name
    assert not hasattr(fitted_objects["MultinomialNB(), lists"], "estimator_")
