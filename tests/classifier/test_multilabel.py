"""Lists of labels: each label against its rest, from one pass of counts."""

import inspect

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import MultiLabelBinarizer

import textnb
from tests.classifier.models import MODELS, assert_same_model
from tests.classifier.topics import NEWS, TEST, TOPICS, against_rest, one_label_each
from textnb import BernoulliNB, ComplementNB, MultinomialNB, NBLinear, SchemaError, TextClassifier
from textnb.bayes.decision import Decision, choose_labels
from textnb.evaluation.evaluate import evaluate_roc
from textnb.files.require import Unsupported
from textnb.learning.fitted import Fitted
from textnb.storage.terms_reader import TermsReader

TRUTH = MultiLabelBinarizer(classes=TOPICS).fit_transform(NEWS["label"].to_list())
WEIGHTS = np.random.default_rng(0).random(NEWS.height) * 3.0
# Precise optima, which do not depend on where the solver starts.
EXACT = {"held_out": 0, "tol": 1e-9, "max_iter": 10_000}
by_weights = pytest.mark.parametrize(
    "weights", [None, WEIGHTS], ids=["rows count 1", "rows have weights"])


def text_with_several_labels(model):
    return next(text for text, predicted in zip(
        TEST["text"], model.predict(TEST["text"]), strict=True) if len(predicted) > 1)


# Each label against its rest


@pytest.mark.parametrize("name", MODELS)
def test_each_label_has_the_weights_of_a_two_class_model_against_the_rest(name):
    whole = clone(MODELS[name]).fit(NEWS)
    assert whole.classes_.tolist() == TOPICS
    scores = whole.decision_function(TEST)
    for k, topic in enumerate(TOPICS):
        alone = clone(MODELS[name]).fit(against_rest(NEWS, topic))
        own, learned = alone.fitted_.counts, whole.fitted_.counts.against_rest(k)
        assert alone.vocabulary_ == whole.vocabulary_
        assert np.array_equal(own.feature_count, learned.feature_count)
        assert np.array_equal(own.class_count, learned.class_count)
        weights, intercept = alone.linear_form().binary(True)
        assert np.array_equal(whole.linear_form().binary(topic)[0], weights)
        assert whole.linear_form().binary(topic)[1] == intercept
        np.testing.assert_allclose(
            scores[:, k], alone.decision_function(TEST), rtol=1e-10, atol=1e-10)


@pytest.mark.sweep(18, 36)
@by_weights
@pytest.mark.parametrize("class_weight", [None, "balanced", {"corn": 3.0, "wheat": 0.5}], ids=str)
@pytest.mark.parametrize("estimator", [
    MultinomialNB(l=0.1), BernoulliNB(l=0.1), ComplementNB(l=0.1), NBLinear(**EXACT),
    NBLinear(loss="log", **EXACT), NBLinear(power=0.0, **EXACT)], ids=repr)
def test_with_weights_each_label_has_the_scores_of_a_two_class_model(
    estimator, class_weight, weights
):
    estimator = clone(estimator).set_params(class_weight=class_weight)
    scores = TextClassifier(estimator).fit(
        NEWS, sample_weight=weights).decision_function(TEST)
    for k, topic in enumerate(TOPICS):
        if isinstance(class_weight, dict):
            estimator.set_params(class_weight={True: class_weight.get(topic, 1.0)})
        # By default, one label per document has parts of words.
        alone = TextClassifier(estimator, sharing=0.0 if isinstance(estimator, NBLinear) else None)
        alone.fit(against_rest(NEWS, topic), sample_weight=weights)
        np.testing.assert_allclose(
            scores[:, k], alone.decision_function(TEST),
            rtol=0, atol=1e-6 if isinstance(estimator, NBLinear) else 1e-12)


def test_an_integer_weight_equals_repeated_documents(tmp_path):
    times = np.arange(NEWS.height) % 3
    repeated = pl.concat([NEWS.filter(pl.Series(times >= n)) for n in (1, 2)])
    model = TextClassifier(MultinomialNB(l=0.1)).fit(NEWS, sample_weight=times.astype(float))
    whole = TextClassifier(MultinomialNB(l=0.1)).fit(repeated)
    known = [model.vocabulary_.index(term) for term in whole.vocabulary_]
    counts, expected = model.statistics_, whole.statistics_
    assert counts.rows == expected.rows
    assert counts.class_count.tolist() == expected.class_count.tolist()
    assert counts.feature_count[:, known].tolist() == expected.feature_count.tolist()
    assert counts.total_counts[known].tolist() == expected.total_counts.tolist()
    model.save(tmp_path / "a")
    again = textnb.load(tmp_path / "a")
    assert again.statistics_.equals(counts)
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_models_with_weights_are_added():
    halves = [TextClassifier(MultinomialNB(l=0.1)).fit(NEWS[part], sample_weight=WEIGHTS[part])
              for part in (slice(0, 75), slice(75, None))]
    whole = TextClassifier(MultinomialNB(l=0.1)).fit(NEWS, sample_weight=WEIGHTS)
    np.testing.assert_allclose((halves[0] + halves[1]).decision_function(TEST),
                               whole.decision_function(TEST), rtol=0, atol=1e-11)


def test_describe_model_has_weighted_priors():
    model = TextClassifier(MultinomialNB(class_weight={"corn": 3.0})).fit(NEWS)
    priors = {one["label"]: one["prior"] for one in textnb.describe_model(model)["classes"]}
    share = TRUTH[:, 0].mean()
    assert priors["corn"] == pytest.approx(3.0 * share / (3.0 * share + 1.0 - share))
    assert priors["wheat"] == pytest.approx(TRUTH[:, 4].mean())


def test_scores_that_are_no_log_odds_are_called_margins():
    linear = TextClassifier(NBLinear()).fit(NEWS)
    for model, what in ((linear, "margins"), (TextClassifier().fit(NEWS), "log-odds")):
        card = textnb.describe_model(model)
        assert card["scores"] == f"{what} of each label against the rest"
    assert repr(linear.decision_).startswith("Decision(thresholds 'corn': ")
    assert ">threshold<" in linear.decision_._repr_html_()


# Answers


def test_answers_are_lists(listed):
    answers = listed.predict(TEST.lazy(), probability=True, scores=True, top=2)
    assert isinstance(answers, pl.LazyFrame)
    rows = answers.collect()
    of_label = pl.List(pl.Struct({"label": pl.String, "probability": pl.Float64}))
    assert rows.schema["predicted"] == pl.List(pl.String)
    assert rows.schema["probability"] == rows.schema["top"] == of_label
    scores, chances = listed.decision_function(TEST), listed.predict_proba(TEST)
    np.testing.assert_array_equal(rows["scores"].struct.unnest().to_numpy(), scores)
    np.testing.assert_allclose(chances, 1 / (1 + np.exp(-scores)), rtol=1e-12)
    assert rows["predicted"].to_list() == [
        [topic for topic, score in zip(TOPICS, row, strict=True) if score > 0] for row in scores]
    assert rows["predicted"].list.len().n_unique() > 2
    for row, chance, probability, top in zip(
            rows["predicted"], chances, rows["probability"], rows["top"], strict=True):
        assert [entry["label"] for entry in probability] == row.to_list()
        assert [entry["probability"] for entry in probability] == [
            chance[TOPICS.index(label)] for label in row]
        assert [entry["probability"] for entry in top] == sorted(chance, reverse=True)[:2]
    assert listed.predict(TEST["text"]) == rows["predicted"].to_list()
    assert isinstance(listed.fitted_, Fitted)
    assert listed.fitted_.is_multilabel
    assert repr(listed.fitted_).endswith("5 labels)")
    assert repr(listed.statistics_).endswith("5 labels)")
    empty = listed.predict(TEST[:0], probability=True, top=1)
    assert empty.height == 0
    assert empty.schema["predicted"] == pl.List(pl.String)


@pytest.mark.parametrize("estimator", [
    MultinomialNB(), BernoulliNB(), ComplementNB(norm=True), NBLinear()],
    ids=lambda estimator: type(estimator).__name__)
def test_contributions_of_terms_add_up_to_the_score_of_each_label(estimator):
    model = TextClassifier(estimator, min_df=2).fit(NEWS)
    scores = model.predict_joint_log_proba(TEST)
    rows = model.predict(TEST, explain=3)
    lazy = model.predict(TEST.lazy(), explain=3).collect()
    assert rows.schema == lazy.schema
    for k, (labels, explained) in enumerate(
            zip(rows["predicted"].to_list(), rows["explanation"].to_list(), strict=True)):
        assert [entry["label"] for entry in explained] == labels
        for entry in explained:
            score = scores[k, TOPICS.index(entry["label"])]
            assert entry["score"] == score
            assert len(entry["explanation"]) <= 4
            assert entry["intercept"] + sum(
                part["contribution"] for part in entry["explanation"]) == pytest.approx(score)
    for label in TOPICS:
        text = TEST["text"][0]
        weights, intercept = model.linear_form().binary(label)
        table = model.explain(text, k=1000, labels=[label])
        assert table["label"].unique().to_list() == [label]
        assert table["contribution"].sum() == pytest.approx(table["score"][0])
        assert table["contribution"][0] == intercept
        if isinstance(estimator, MultinomialNB):
            terms = table.filter(part="term")
            assert terms["contribution"].to_list() == pytest.approx([
                n * weights[model.vocabulary_.index(term)]
                for term, n in terms.select("term", "count").iter_rows()])


def test_labels_to_explain():
    model = TextClassifier().fit(NEWS)
    text = text_with_several_labels(model)
    table = model.explain(text)
    assert table["label"].unique(maintain_order=True).to_list() == model.predict([text])[0]
    assert table["predicted"].all()
    # If no label is predicted, the one closest to its threshold is explained.
    model.set_decision(Decision(dict(zip(TOPICS, [9.0, 9, 9, 1e3, 9], strict=True))))
    nearest = int((model.decision_function(["word9"])[0] - [9, 9, 9, 1e3, 9]).argmax())
    table = model.explain("word9")
    assert table["label"].unique().to_list() == [TOPICS[nearest]]
    assert not table["predicted"].any()
    assert table["threshold"].unique().to_list() == [9.0]
    assert model.explain("word9", labels=["wheat", "corn", "wheat"])["label"].unique(
        maintain_order=True).to_list() == ["wheat", "corn"]


@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB(), NBLinear()], ids=repr)
def test_a_text_is_coloured_for_each_of_its_labels(estimator):
    model = TextClassifier(estimator, tokenizer=textnb.Tokenizer()).fit(NEWS)
    text = text_with_several_labels(model)
    shown = model.highlight(text + " <b>unseen</b>", 2)
    assert shown.predicted == model.predict([text])[0]
    assert [*shown.pieces] == shown.predicted
    assert shown.table.equals(model.explain(text + " <b>unseen</b>", 2))
    assert (shown.terms, shown.known) == (len(text.split()) + 1, len(text.split()))
    for label, pieces in shown.pieces.items():
        alone = model.explain(text, 99, [label])
        added = sum(value for _, value in pieces["text"] if value is not None)
        assert added + alone["contribution"][0] == pytest.approx(alone["score"][0])
    page = shown._repr_html_()
    assert "<b>unseen" not in page
    assert page.count("</details>") == len(shown.predicted)
    assert [*model.highlight(text, labels=["wheat", "corn"]).pieces] == ["wheat", "corn"]
    nothing = model.highlight("unseen nothing")
    assert nothing.note.endswith("the answer rests on the labels' intercepts alone")
    assert len(nothing.pieces) == max(1, len(nothing.predicted))
    assert repr(nothing) == f"LabelExplanation({nothing.predicted!r}; 0 of 2 terms known)"
    assert str(nothing) == f"{nothing!r}\n{nothing.table}"


def test_highlight_says_that_at_least_forces_a_label_below_its_threshold():
    model = TextClassifier().fit(NEWS)
    forced = model.set_decision(Decision(dict.fromkeys(TOPICS, 50.0), at_least=1))
    page = forced.highlight("word9")._repr_html_()
    assert "by the number of labels; the score is not above 50.000" in page


def test_a_table_of_pandas():
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    whole = TextClassifier().fit(NEWS)
    assert_same_model(TextClassifier().fit(NEWS.to_pandas()), whole)
    answers = whole.predict(TEST.to_pandas())
    assert [list(labels) for labels in answers["predicted"]] == whole.predict(TEST["text"])


def test_a_label_of_all_documents_or_of_none():
    frame = pl.DataFrame({"text": ["aa bb", "bb cc"], "label": [["all", "one"], ["all"]]})
    model = TextClassifier().partial_fit(frame, classes=["all", "none", "one"])
    chances = model.predict_proba(["aa", "zz"])
    assert chances[:, 0].tolist() == [1.0, 1.0]
    assert chances[:, 1].tolist() == [0.0, 0.0]
    assert model.predict(["zz"]) == [["all"]]


# Thresholds


def test_thresholds_of_the_linear_model_are_chosen_on_rows_held_out():
    plain = TextClassifier(NBLinear(held_out=0), min_df=2).fit(NEWS)
    chosen = TextClassifier(NBLinear(), min_df=2).fit(NEWS)
    raw = chosen.predict_joint_log_proba(TEST)
    assert np.array_equal(plain.predict_joint_log_proba(TEST), raw)
    assert (plain.decision_, plain.calibration_) == (None, None)
    assert chosen.decision_.evidence == {"by": "f1", "documents": 150, "scored": "3 folds"}
    # The sigmoids of labels too: on the same documents, and better than margins as log-odds.
    assert (chosen.calibration_.documents, len(chosen.calibration_.sigmoids)) == (150, len(TOPICS))
    has = np.array([[topic in own for topic in TOPICS] for own in TEST["label"]])
    losses = [log_loss(has.ravel(), model.predict_proba(TEST).ravel())
              for model in (chosen, plain)]
    assert losses[0] < losses[1]
    # Fewer than 60 documents are too few to choose thresholds.
    few = TextClassifier(NBLinear()).fit(NEWS[:59])
    assert (few.decision_, few.calibration_) == (None, None)
    # Equal weights change nothing; other weights change the thresholds.
    same, other = (TextClassifier(NBLinear(), min_df=2).fit(NEWS, sample_weight=weight).decision_
                   for weight in (np.ones(NEWS.height), WEIGHTS))
    assert chosen.decision_ == same != other
    assert textnb.evaluate(chosen, TEST).macro_f1 > textnb.evaluate(plain, TEST).macro_f1


def test_predict_applies_thresholds_at_least_and_at_most(tmp_path):
    model = TextClassifier().fit(NEWS)
    scores, thresholds = model.decision_function(TEST), np.array([1.0, -1.0, 0.0, 9.0, -2.0])
    for ranks in ({}, {"at_least": 1}, {"at_most": 2}, {"at_least": 2, "at_most": 2}):
        decision = Decision(dict(zip(TOPICS, thresholds.tolist(), strict=True)), **ranks)
        model.set_decision(decision).save(tmp_path / "news.textnb")
        expected = []
        for above in scores - thresholds:
            best = np.argsort(-above, kind="stable")
            number = max(ranks.get("at_least", 0),
                         min(ranks.get("at_most", len(TOPICS)), int((above > 0).sum())))
            expected.append([TOPICS[k] for k in sorted(best[:number])])
        assert model.predict(TEST)["predicted"].to_list() == expected
        read = textnb.load(tmp_path / "news.textnb")
        assert read.decision_ == decision
        assert read.predict(TEST["text"]) == expected


def test_thresholds_that_no_score_passes_and_that_all_pass():
    scores = np.array([[5.0, -np.inf, 1.0]])
    inf = Decision({"a": np.inf, "b": -np.inf, "c": -np.inf}, at_least=3)
    assert choose_labels(scores, ["a", "b", "c"], inf).tolist() == [[False, False, True]]


# Learning


def test_labels_of_few_rows_or_of_all_in_the_linear_model():
    lists = [[*labels, "all", *(["rare"] if row == 7 else [])]
             for row, labels in enumerate(NEWS["label"].to_list())]
    model = TextClassifier(NBLinear()).fit(NEWS["text"], lists)
    predicted = model.predict(TEST["text"])
    assert all("all" in labels for labels in predicted)
    assert sum("rare" in labels for labels in predicted) <= 1
    only = TextClassifier(NBLinear(held_out=0)).fit(["aa", "bb"], [["all"], ["all"]])
    assert only.predict(["cc"]) == [["all"]]


@pytest.mark.parametrize("kernel", ["", "off"], ids=["kernel", "expressions"])
@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB()], ids=repr)
def test_batches_in_which_no_document_has_a_label(estimator, kernel, monkeypatch):
    monkeypatch.setenv("TEXTNB_KERNEL", kernel)
    unlabelled = pl.DataFrame({"text": ["corn new"], "label": [[]]}, schema=NEWS.schema)
    whole = TextClassifier(estimator).fit(pl.concat([NEWS, unlabelled]))
    for batch in (unlabelled, pl.DataFrame({"text": ["corn new"], "label": [[]]})):
        model = TextClassifier(estimator).fit(NEWS).partial_fit(batch)
        assert_same_model(model, whole)
        assert_same_model(model.forget(batch), TextClassifier(estimator).fit(NEWS))
    with pytest.raises(textnb.DataError, match="no document has a label"):
        TextClassifier(estimator).fit(unlabelled)


@pytest.mark.parametrize("first", [NEWS, NEWS[:-20]], ids=["the same rows", "fewer rows"])
def test_a_warm_start_with_lists_reaches_the_same_optimum(first):
    estimator = NBLinear(tol=1e-9, max_iter=1000, held_out=0)
    cold = TextClassifier(estimator).fit(NEWS).linear_form().weights
    warm = TextClassifier(estimator).fit(first).fit(NEWS, warm_start=True).linear_form().weights
    np.testing.assert_allclose(warm, cold, rtol=0, atol=1e-6 * np.abs(cold).max())


# Functions that evaluate models of lists, and functions for one label only


EVALUATING = {
    "evaluate": textnb.evaluate, "mistakes": textnb.mistakes, "held_out": textnb.held_out,
    "score": lambda model, rows: model.score(rows),
    "drift": lambda model, rows: textnb.drift(model, rows, rows),
    "evaluate_roc": lambda model, rows: evaluate_roc(model, rows, "corn"),
}


@pytest.mark.parametrize("name", EVALUATING)
def test_rows_of_the_other_kind_of_labels_are_refused(name, listed):
    one = one_label_each(TEST)
    with pytest.raises(SchemaError, match=r"predicts lists of labels, .*one label per document"):
        EVALUATING[name](listed, one)
    with pytest.raises(SchemaError, match="must have one label"):
        EVALUATING[name](TextClassifier().fit(one), TEST)


def test_the_mail_filter_refuses_a_model_of_lists(tmp_path, listed):
    listed.save(tmp_path / "news.textnb")
    with pytest.raises(textnb.ParameterError, match="mail filter is for one label"):
        textnb.MailFilter.load(tmp_path / "news.textnb", spam="corn")
    with pytest.raises(Unsupported):
        TermsReader(tmp_path / "news.textnb")


def test_each_public_function_of_a_fitted_model_is_tested_with_lists():
    of_scores_or_files = {"verify_export", "load"}
    # Those that read no label are tried in tests of their own, as is the audit, which learns.
    supported = {*EVALUATING, "audit", "rows_to_label", "describe_model", "export_model",
                 "calibrate", "cross_validate", "leave_one_out", "smoothing_path",
                 "validate_online", "write_report"}
    with_model = {name for name in textnb.__all__ if inspect.isfunction(getattr(textnb, name))
                  and {"model", "models", "classifier", "first"} & {*inspect.signature(
                  getattr(textnb, name)).parameters}}
    assert with_model - of_scores_or_files - supported == set()


def test_a_prediction_is_right_only_if_the_whole_list_is(listed):
    predicted = listed.predict(TEST["text"])
    right = np.array([{*own} == {*other} for own, other in
                      zip(predicted, TEST["label"].to_list(), strict=True)])
    assert 0 < right.sum() < len(right)
    assert listed.score(TEST) == right.mean() == textnb.evaluate(listed, TEST).subset_accuracy
    # The order of a list does not matter.
    reverse = TEST.with_columns(pl.col("label").list.reverse())
    assert listed.score(reverse) == right.mean()
    wrong = textnb.mistakes(listed, reverse)
    assert wrong["text"].to_list() == TEST.filter(pl.Series(~right))["text"].to_list()
    # A label that the model does not know can't be predicted.
    other = TEST.with_columns(label=pl.lit(["other"]))
    assert textnb.mistakes(listed, other).height == TEST.height


def test_the_roc_curve_of_a_label_has_the_documents_with_it_as_positives():
    model = TextClassifier(NBLinear()).fit(NEWS)
    scores = model.decision_function(TEST)
    for k, label in enumerate(TOPICS):
        has = TEST["label"].list.contains(label).to_numpy()
        assert evaluate_roc(model, TEST, label).auc == pytest.approx(
            roc_auc_score(has, scores[:, k]), abs=1e-12)


def test_drift_of_lists(listed):
    same = textnb.drift(listed, TEST, TEST)
    assert same.verdict == "nothing drifted"
    shares = {measure.name: measure.recent for measure in same.measures}
    assert shares["errors"]["right"] == pytest.approx(listed.score(TEST))
    none = np.mean([not labels for labels in listed.predict(TEST["text"])])
    assert shares["answers"].get("(none)", 0.0) == pytest.approx(none)
    assert [one.name for one in textnb.drift(listed, TEST.drop("label"), TEST).measures] == [
        "answers", "unknown words", "scores"]
    other = TEST.with_columns(label=pl.lit(["other"]))
    changed = textnb.drift(listed, other, TEST)
    assert changed.drifted == ["labels"]
    assert {one.name: one.recent for one in changed.measures}["errors"] == {
        "right": 0.0, "wrong": 1.0}


def test_duplicates_with_the_same_labels_in_another_order_do_not_conflict():
    rows = pl.DataFrame({"text": ["corn up", "corn up", "oil up", "oil up"],
                         "label": [["corn", "wheat"], ["wheat", "corn"], ["oil"], []]})
    duplicates = textnb.find_duplicates(rows, label="label", near=None)
    assert duplicates.pairs["conflict"].to_list() == [False, True]


def test_a_single_label_that_rows_have_or_lack_is_evaluated():
    rows = pl.DataFrame({"text": ["aa", "aa bb", "cc", "cc"], "label": [["a"], ["a"], [], []]})
    tested = pl.DataFrame({"text": ["aa", "cc", "aa"], "label": [["a"], ["a"], []]})
    result = textnb.evaluate(TextClassifier().fit(rows), tested)
    assert result.labels.row(0)[:4] == ("a", 2, 2, 0.5)
    assert (result.micro_f1, result.macro_f1, result.subset_accuracy) == (0.5, 0.5, 1 / 3)
    assert result.hamming_loss == pytest.approx(2 / 3)
