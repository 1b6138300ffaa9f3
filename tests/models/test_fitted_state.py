"""A fitted model is one state: parameters set later, and writers, do not reach into it."""

import copy
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import textnb
from tests.models.every_model import COUNTS, EXAMPLES, KINDS, POINTS, SIDES
from textnb import MultinomialNB, ParameterError, TableClassifier, TextClassifier, Tokenizer
from textnb.bayes.moments import MomentStatistics
from textnb.scoring.texts import score_batch

TEXTS = ["cheap pills now", "cheap cheap offer now", "see you at noon", "noon at the office",
         "the Free-offer ends now", "lunch at noon ?"]
ROWS = pl.DataFrame({"text": TEXTS, "title": TEXTS[::-1],
                     "label": ["spam", "spam", "ham", "ham", "spam", "ham"]})
TABLE = pl.DataFrame({"x": POINTS[:, 0], "y": POINTS[:, 1], "label": SIDES})


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
    ({"estimator": textnb.BernoulliNB()}, r"estimator from MultinomialNB\(\) to BernoulliNB\(\)"),
    ({"estimator__l": 0.25}, "estimator__l from 1.0 to 0.25"),
    ({"estimator__class_weight": "balanced"}, "estimator__class_weight from None to 'balanced'"),
]
MIXING = {
    "saving": lambda model, folder: model.save(folder / "m.textnb"),
    "learning more": lambda model, folder: model.partial_fit(ROWS),
    "forgetting": lambda model, folder: model.forget(ROWS.head(1)),
    "adding": lambda model, folder: model + TextClassifier(MultinomialNB()).fit(ROWS),
    "counting": lambda model, folder: model.count(ROWS),
    "leaving documents out": lambda model, folder: textnb.leave_one_out(model, ROWS),
    "exporting": lambda model, folder: textnb.export_model(model, folder / "w.json", to="json"),
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
    model.set_params(min_df=2, tokenizer__lowercase=False, estimator=textnb.BernoulliNB())
    model.set_params(min_df=1, tokenizer=Tokenizer(), estimator=None)
    MIXING[what](model, tmp_path)


def test_what_is_set_behind_the_model_is_a_change(tmp_path):
    texts = TextClassifier(MultinomialNB()).fit(ROWS)
    texts.estimator_.set_params(l=9.0)
    table = TableClassifier(textnb.GaussianNB(), features=["x"]).fit(TABLE)
    table.estimator_.set_params(var_smoothing=0.5)
    words, smoothing = ["cheap", "noon"], np.ones(2)
    vocabulary = TextClassifier(vocabulary=words).fit(ROWS)
    each_l = TextClassifier(MultinomialNB(l=smoothing), vocabulary=tuple(words)).fit(ROWS)
    words.append("offer")
    smoothing[0] = 7.0
    for model, named in ((texts, r"estimator_\.l from 1\.0 to 9\.0"),
                         (table, r"estimator_\.var_smoothing"), (vocabulary, "vocabulary from"),
                         (each_l, "estimator__l from")):
        with pytest.raises(ParameterError, match=named):
            model.save(tmp_path / "model.textnb")


def test_folds_are_of_the_parameters_as_they_are():
    model = TextClassifier().fit(ROWS).set_params(estimator=MultinomialNB(l=0.1))
    fresh = TextClassifier(MultinomialNB(l=0.1))
    assert np.array_equal(textnb.cross_validate(model, ROWS, folds=2).scores,
                          textnb.cross_validate(fresh, ROWS, folds=2).scores)


@pytest.mark.parametrize(("change", "named"), [
    ({"features": ["x", "y"]}, r"features from \['x'\] to"), ({"features": None}, "features from"),
    ({"label": "y"}, "label from"), ({"estimator__var_smoothing": 0.1}, "var_smoothing from 1e-09"),
    ({"estimator": textnb.NearestCentroid()}, "estimator from GaussianNB"),
])
def test_a_table_classifier_refuses_them_too(change, named, tmp_path):
    model = TableClassifier(textnb.GaussianNB(shared_variance=True), features=["x"]).fit(TABLE)
    before = model.predict(TABLE, scores=True)
    model.set_params(**change)
    for act in (lambda: model.save(tmp_path / "m.textnb"), lambda: model.partial_fit(TABLE),
                lambda: textnb.export_model(model, tmp_path / "w.json", to="json")):
        with pytest.raises(ParameterError, match=named):
            act()
    assert model.predict(TABLE, scores=True).equals(before)
    assert model.score(TABLE) == 1.0


def test_a_class_of_one_row_has_its_share():
    model = textnb.GaussianNB(var_smoothing=0.1).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    assert model.priors_.tolist() == [2 / 3, 1 / 3]
    assert model.predict([[4.0]]).tolist() == ["b"]


# fit uses the new settings, and nothing else does


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


@pytest.mark.parametrize(("example", "name", "other"), [
    pytest.param(example, name, other, id=f"{kind}-{name}")
    for kind, example in EXAMPLES.items() for name, other in example.others.items()])
def test_fit_uses_new_parameters_and_nothing_else_does(example, name, other):
    model, X = example.fit(), example.X
    before = answered(model, X)
    model.set_params(**{name: other})
    for mine, theirs in zip(answered(model, X), before, strict=True):
        assert np.array_equal(mine, theirs)
    fresh = clone(example.estimator).set_params(**{name: other}).fit(X, example.y)
    for mine, theirs in zip(
            answered(model.fit(X, example.y), X), answered(fresh, X), strict=True):
        assert np.array_equal(mine, theirs)


def test_every_parameter_of_every_estimator_is_tried():
    public = {name for name in textnb.__all__ if isinstance(getattr(textnb, name), type)
              and hasattr(getattr(textnb, name), "get_params")}
    others = {"TextClassifier", "TableClassifier", "Tokenizer"}
    assert public - others == {*EXAMPLES} - {"HistogramDensity"}
    for example in EXAMPLES.values():
        assert set(example.others) == set(example.estimator.get_params(deep=False))


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


def test_more_is_learned_with_the_new_smoothing_as_in_scikit_learn():
    model = MultinomialNB().fit(COUNTS, KINDS).set_params(l=0.1).partial_fit(COUNTS, KINDS)
    whole = MultinomialNB(l=0.1).fit(np.vstack([COUNTS, COUNTS]), KINDS * 2)
    assert np.array_equal(model.feature_log_prob_, whole.feature_log_prob_)


@pytest.mark.parametrize(("model", "change", "message"), [
    (textnb.BernoulliNB(), {"binarize": 1.0}, r"binarize was 0\.0"),
    (MultinomialNB(l=0.1), {"l": "auto"}, "l='auto' is chosen by fit")])
def test_more_is_not_learned_by_what_only_fit_can_use(model, change, message):
    model = model.fit(COUNTS, KINDS).set_params(**change)
    with pytest.raises(ParameterError, match=message):
        model.partial_fit(COUNTS, KINDS)


# Threads


def wrong_answers(change, questions):
    """What threads are answered that no state answers, while the model is changed.

    A question comes with the answers of all states.
    """
    over = threading.Event()

    def ask():
        wrong = []
        while not over.is_set():
            answers = [(str(question()), right) for question, right in questions]
            wrong += [answer[:200] for answer, right in answers if answer not in right]
        return wrong

    with ThreadPoolExecutor(4) as pool:
        threads = [pool.submit(ask) for _ in range(4)]
        try:
            change()
        finally:
            over.set()
    return [answer for thread in threads for answer in thread.result()]


@pytest.mark.slow
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
    model = TextClassifier().fit(ROWS)

    def change():
        for _ in range(3):
            model.fit(ROWS)
            for part in parts[1:]:
                model.partial_fit(part, classes=part["label"].unique().to_list())

    questions = [(lambda question=question: question(model), {str(question(state))
                  for state in states}) for question in ask]
    assert wrong_answers(change, questions) == []


def test_a_table_classifier_answers_from_one_state():
    one, two = TABLE, TABLE.with_columns(label=pl.lit("z") + TABLE["label"], x=TABLE["x"] + 9.0)
    more = two["label"].unique().to_list()
    states = [TableClassifier().fit(one), TableClassifier().fit(one).partial_fit(two, classes=more)]
    known = {state.predict(one, scores=True).write_json() for state in states}
    model = TableClassifier().fit(one)

    def change():
        for _ in range(30):
            model.fit(one)
            model.partial_fit(two, classes=more)

    assert wrong_answers(change, [
        (lambda: model.predict(one, scores=True).write_json(), known)]) == []


# Arrays


def arrays_of(value, path):
    """The arrays that can be reached from a fitted model by public names."""
    if isinstance(value, np.ndarray):
        return {path: value}
    if isinstance(value, (list, tuple)):
        return {name: array for i, item in enumerate(value)
                for name, array in arrays_of(item, f"{path}[{i}]").items()}
    if isinstance(value, sp.csr_array):
        return {f"{path}.data": value.data, f"{path}.indices": value.indices}
    if isinstance(value, (textnb.LinearForm, textnb.Counts, MomentStatistics)):
        return {name: array for key, item in vars(value).items()
                for name, array in arrays_of(item, f"{path}.{key}").items()}
    return {}


def arrays_of_model(model):
    arrays = {}
    for name in [*vars(model), *(name for kind in type(model).__mro__ for name in vars(kind))]:
        if name.endswith("_") and not name.endswith("__") and name not in ("coef_", "intercept_"):
            arrays |= arrays_of(getattr(model, name, None), name)
    if isinstance(model, TextClassifier):
        return arrays | arrays_of(model.linear_form(), "form") | arrays_of_model(model.estimator_)
    return arrays | arrays_of(getattr(model, "_form", None), "form")


FITS = {**{name: example.fit for name, example in EXAMPLES.items()}, **{
    f"texts, {estimator}": lambda estimator=estimator: TextClassifier(estimator).fit(ROWS)
    for estimator in (None, textnb.BernoulliNB(l=0.0), textnb.NBLogisticRegression())}}


@pytest.mark.parametrize("how", [lambda model: model, copy.deepcopy,
                                 lambda model: pickle.loads(pickle.dumps(model))],
                         ids=["fitted", "copied", "unpickled"])
@pytest.mark.parametrize("name", FITS)
def test_fitted_arrays_are_read_only(name, how):
    arrays = arrays_of_model(how(FITS[name]()))
    assert arrays
    assert [name for name, array in arrays.items() if array.flags.writeable] == []
    with pytest.raises(ValueError, match="read-only"):
        next(iter(arrays.values()))[:] = 0


def test_an_owner_may_go_on_writing_into_arrays_that_made_a_form():
    weights, intercept = np.zeros((2, 2)), np.zeros(2)
    form = textnb.LinearForm(np.array(["a", "b"]), weights, intercept)
    weights[0, 0] = 1.0
    assert not form.weights.flags.writeable


# Nested parameters


def test_a_tokenizers_settings_are_parameters():
    model = TextClassifier(tokenizer=Tokenizer())
    assert model.get_params()["tokenizer__ngram_range"] == (1, 1)
    assert "tokenizer__ngram_range" not in model.get_params(deep=False)
    model.set_params(tokenizer__ngram_range=(1, 2), tokenizer__lowercase=False, min_df=2)
    assert model.tokenizer == Tokenizer(ngram_range=(1, 2), lowercase=False)
    assert model.min_df == 2
    assert TextClassifier().set_params(tokenizer__lowercase=False).tokenizer == Tokenizer(
        lowercase=False)
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
    assert (model.tokenizer, model.min_df) == (None, 1)


def test_a_grid_over_a_tokenizer_is_searched():
    labels = ROWS["label"].to_list()
    search = GridSearchCV(
        TextClassifier(MultinomialNB()), {
            "tokenizer__ngram_range": [(1, 1), (1, 2)], "tokenizer__lowercase": [True, False],
            "estimator__l": [0.1, 1.0]}, cv=3).fit(TEXTS, labels)
    assert len(search.cv_results_["params"]) == 8
    for score, settings in zip(search.cv_results_["mean_test_score"],
                               search.cv_results_["params"], strict=True):
        alone = clone(TextClassifier(MultinomialNB())).set_params(**settings)
        assert score == cross_val_score(alone, TEXTS, labels, cv=3).mean()


# What is stale, and what is looked at


def test_a_stale_calibration_or_decision_warns_where_it_is_used():
    model = TextClassifier().fit(ROWS)
    model.set_calibration(textnb.Calibration(2.0, 0.0, 20, "by hand"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(ROWS, probability=True)
        model.partial_fit(ROWS)
        # No answer of these is made with the calibration.
        model.predict(ROWS)
        model.predict(TEXTS)
    stale = "the model's calibration is stale: the model has learned or forgotten documents since"
    for answer in (lambda: model.predict(ROWS, probability=True),
                   lambda: model.predict(ROWS.lazy(), top=1),
                   lambda: model.predict_proba(TEXTS), lambda: model.decision_function(TEXTS)):
        with pytest.warns(textnb.TextnbWarning, match=stale) as caught:
            answer()
        assert len(caught) == 1
    model.set_calibration(None).set_decision(
        textnb.Decision({"ham": 0.0, "spam": 0.0}).as_stale("the rows have changed"))
    with pytest.warns(textnb.TextnbWarning, match="decision is stale: the rows have changed"):
        model.predict(ROWS)


@pytest.fixture(scope="module")
def fitted_objects():
    """Each kind of estimator and of result, of both kinds of labels, by name."""
    texts = pl.DataFrame({"text": ["good x", "bad y", "good z", "bad w", "so good", "so bad"] * 10,
                          "label": ["g", "b"] * 30})
    lists = texts.with_columns(label=pl.Series([["g"], ["b"], ["g", "n"], ["b"], ["g"], []] * 10))
    objects = {name: example.fit() for name, example in EXAMPLES.items()}
    for name in ("GaussianNB", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis",
                 "NearestCentroid", "PlugInBayes"):
        example = EXAMPLES[name]
        rows = pl.DataFrame(example.X).with_columns(label=pl.Series(example.y))
        objects[f"{name}, table"] = TableClassifier(clone(example.estimator)).fit(rows)
    for kind, frame in (("one", texts), ("lists", lists)):
        for estimator in (textnb.BernoulliNB(), textnb.ComplementNB(), textnb.NBLinear()):
            objects[f"{estimator}, {kind}"] = TextClassifier(estimator).fit(frame)
        model = TextClassifier(MultinomialNB()).fit(frame)
        objects |= {f"{name}, {kind}": value for name, value in {
            "model": model, "form": model.linear_form(), "counts": model.statistics_,
            "fitted": model.fitted_, "explanation": model.highlight("good x"),
            "evaluation": textnb.evaluate(model, frame),
            "leave-one-out": textnb.leave_one_out(model, frame),
            "comparison": textnb.compare_models(model, model),
            "duplicates": textnb.find_duplicates(frame, frame)}.items()}
    return objects


def test_looking_at_an_object_never_fails(fitted_objects):
    """Notebooks and `inspect` ask for all attributes; one that is not there is an AttributeError.
    """
    for name, value in fitted_objects.items():
        assert repr(value), name
        for attribute in dir(value):
            hasattr(value, attribute)
        if hasattr(value, "_repr_html_"):
            assert value._repr_html_(), name
    assert not hasattr(fitted_objects["model, lists"], "estimator_")
