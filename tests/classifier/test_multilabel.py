"""Lists of labels: each label against its rest, from one pass of counts."""

import random

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB as SklearnBernoulli
from sklearn.naive_bayes import ComplementNB as SklearnComplement
from sklearn.naive_bayes import MultinomialNB as SklearnMultinomial
from sklearn.preprocessing import MultiLabelBinarizer

import textnb
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    MailFilter,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    ParameterError,
    SchemaError,
    TextClassifier,
    TextnbError,
    TfidfComplementNB,
    Tokenizer,
)
from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import Decision, choose_labels
from textnb.evaluation.evaluate import evaluate_roc
from textnb.files.require import Unsupported
from textnb.learning.fitted import Fitted
from textnb.storage.terms_reader import TermsReader

TOPICS = ["corn", "grain", "money", "trade", "wheat"]


def news(rows=150, seed=0):
    """Documents of words that topics use to different degrees, with any number of topics."""
    draw = random.Random(seed)
    texts = []
    topics = []
    for _ in range(rows):
        own = sorted(draw.sample(TOPICS, draw.choice([0, 1, 1, 1, 2, 3])))
        start = [TOPICS.index(topic) for topic in own] or [len(TOPICS)]
        texts.append(" ".join(f"word{int(draw.gammavariate(2 + draw.choice(start), 4))}"
                              for _ in range(draw.randrange(20))))
        topics.append(draw.sample(own, len(own)))
    texts[3:6] = [None, "", "unheard words"]
    return pl.DataFrame({"text": texts, "label": topics},
                        schema={"text": pl.String, "label": pl.List(pl.String)})


NEWS = news()
TESTED = news(60, seed=1)
MODELS = {
    "multinomial": TextClassifier(MultinomialNB(l=0.5)),
    "multinomial, uniform priors": TextClassifier(MultinomialNB(fit_prior=False)),
    "multinomial, balanced": TextClassifier(MultinomialNB(class_weight="balanced")),
    "multinomial, binary": TextClassifier(MultinomialNB(), binary=True),
    "bernoulli": TextClassifier(BernoulliNB(l=0.5)),
    "bernoulli above 1": TextClassifier(BernoulliNB(binarize=1.0)),
    "bernoulli, binary": TextClassifier(BernoulliNB(), binary=True, min_df=2),
    "complement": TextClassifier(ComplementNB()),
    "complement, normalised": TextClassifier(ComplementNB(norm=True)),
    "limits": TextClassifier(min_df=3, max_df=0.9, max_features=25),
    # Its tokens are counted by expressions, and not by the kernel.
    "accents": TextClassifier(BernoulliNB(), tokenizer=Tokenizer(strip_accents="unicode"),
                              min_df=2),
    "characters": TextClassifier(tokenizer=Tokenizer(analyzer="char_wb", ngram_range=(2, 3))),
}


def against_rest(frame, label):
    return frame.with_columns(label=pl.col("label").list.contains(label))


def same(one, other):
    return (one.statistics_.equals(other.statistics_)
            and one.statistics_.terms.equals(other.statistics_.terms)
            and one.vocabulary_ == other.vocabulary_
            and np.array_equal(one.linear_form().weights, other.linear_form().weights)
            and np.array_equal(one.linear_form().intercept, other.linear_form().intercept))


@pytest.fixture(scope="module")
def model():
    return TextClassifier().fit(NEWS)


@pytest.mark.parametrize("name", MODELS)
def test_each_label_is_the_two_class_model_of_it_and_its_rest(name):
    model = MODELS[name]
    whole = clone(model).fit(NEWS)
    assert whole.classes_.tolist() == TOPICS
    scores = whole.decision_function(TESTED)
    for k, topic in enumerate(TOPICS):
        alone = clone(model).fit(against_rest(NEWS, topic))
        own, learned = alone.fitted_.counts, whole.fitted_.counts.against_rest(k)
        assert alone.vocabulary_ == whole.vocabulary_
        assert np.array_equal(own.feature_count, learned.feature_count)
        assert np.array_equal(own.class_count, learned.class_count)
        weights, intercept = alone.linear_form().binary(True)
        assert np.array_equal(whole.linear_form().binary(topic)[0], weights)
        assert whole.linear_form().binary(topic)[1] == intercept
        np.testing.assert_allclose(
            scores[:, k], alone.decision_function(TESTED), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("ours", "theirs"), [
    (MultinomialNB(), SklearnMultinomial()), (BernoulliNB(), SklearnBernoulli()),
    (ComplementNB(), SklearnComplement())], ids=["multinomial", "bernoulli", "complement"])
def test_one_against_the_rest_as_scikit_learn_has_it(ours, theirs):
    texts = [text or "" for text in NEWS["text"]]
    tested = [text or "" for text in TESTED["text"]]
    whole = TextClassifier(ours, tokenizer=Tokenizer.sklearn()).fit(NEWS)
    binarizer, counter = MultiLabelBinarizer(), CountVectorizer()
    indicator = binarizer.fit_transform(NEWS["label"].to_list())
    oracle = OneVsRestClassifier(theirs).fit(counter.fit_transform(texts), indicator)
    assert binarizer.classes_.tolist() == whole.classes_.tolist()
    np.testing.assert_allclose(
        whole.predict_proba(TESTED), oracle.predict_proba(counter.transform(tested)), rtol=1e-10)
    expected = binarizer.inverse_transform(oracle.predict(counter.transform(tested)))
    assert [tuple(labels) for labels in whole.predict(tested)] == expected


def test_what_can_t_read_a_file_of_labels_says_so(tmp_path):
    path = tmp_path / "news.textnb"
    TextClassifier().fit(NEWS).save(path)
    with pytest.raises(ParameterError, match="mail filter is for one label"):
        MailFilter.load(path, spam="corn")
    with pytest.raises(Unsupported):
        TermsReader(path)


def test_answers_are_lists(model):
    answers = model.predict(TESTED.lazy(), probability=True, scores=True, top=2)
    assert isinstance(answers, pl.LazyFrame)
    rows = answers.collect()
    of_label = pl.List(pl.Struct({"label": pl.String, "probability": pl.Float64}))
    assert rows.schema["predicted"] == pl.List(pl.String)
    assert rows.schema["probability"] == rows.schema["top"] == of_label
    scores, chances = model.decision_function(TESTED), model.predict_proba(TESTED)
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
    assert model.predict(TESTED["text"]) == rows["predicted"].to_list()
    empty = model.predict(TESTED[:0], probability=True, top=1)
    assert empty.height == 0
    assert empty.schema["predicted"] == pl.List(pl.String)


@pytest.mark.parametrize("estimator", [
    MultinomialNB(), BernoulliNB(), ComplementNB(norm=True), NBLinear()],
    ids=lambda estimator: type(estimator).__name__)
def test_contributions_of_terms_add_up_to_the_score_of_each_label(estimator):
    model = TextClassifier(estimator, min_df=2).fit(NEWS)
    scores = model.decision_function(TESTED)
    rows = model.predict(TESTED, explain=3)
    lazy = model.predict(TESTED.lazy(), explain=3).collect()
    assert rows.schema == lazy.schema
    for k, (said, explained) in enumerate(
            zip(rows["predicted"].to_list(), rows["explanation"].to_list(), strict=True)):
        assert [entry["label"] for entry in explained] == said
        for entry in explained:
            score = scores[k, TOPICS.index(entry["label"])]
            assert entry["score"] == score
            assert len(entry["explanation"]) <= 4
            assert entry["intercept"] + sum(
                part["contribution"] for part in entry["explanation"]) == pytest.approx(score)
    for label in TOPICS:
        text = TESTED["text"][0]
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
    text = next(text for text, said in zip(TESTED["text"], model.predict(TESTED)["predicted"],
                                           strict=True) if len(said) > 1)
    table = model.explain(text)
    assert table["label"].unique(maintain_order=True).to_list() == model.predict([text])[0]
    assert table["predicted"].all()
    # Where no label is predicted, the one that is nearest to its threshold.
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
    model = TextClassifier(estimator).fit(NEWS)
    text = next(text for text, predicted in zip(
        TESTED["text"], model.predict(TESTED["text"]), strict=True) if len(predicted) > 1)
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


def test_a_label_by_number_is_said_to_be_below_its_threshold():
    model = TextClassifier().fit(NEWS)
    forced = model.set_decision(Decision(dict.fromkeys(TOPICS, 50.0), at_least=1))
    page = forced.highlight("word9")._repr_html_()
    assert "by the number of labels; the score is not above 50.000" in page


@pytest.mark.parametrize("labels", [
    pl.Series([[3, 1], [], [1], [2]], dtype=pl.List(pl.Int32)),
    pl.Series([["b", "a"], [], ["a"], ["c"]], dtype=pl.List(pl.Categorical)),
    pl.Series([["b", "a"], [], ["a"], ["c"]], dtype=pl.List(pl.Enum(["c", "b", "a"]))),
    pl.Series([[True, False], [], [True], [False]]),
], ids=["integers", "categories", "enum", "booleans"])
def test_labels_may_be_of_each_type_and_are_sorted(labels):
    texts = ["aa bb", "cc", "aa dd", "ee"]
    model = TextClassifier().fit(pl.DataFrame({"text": texts, "label": labels}))
    lists = labels.to_list()
    assert model.classes_.tolist() == MultiLabelBinarizer().fit(lists).classes_.tolist()
    assert model.classes_.tolist() == TextClassifier().fit(texts, lists).classes_.tolist()
    assert model.fitted_.counts.rows == 4


def test_a_table_of_pandas_and_lists_beside_texts():
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    whole = TextClassifier().fit(NEWS)
    assert same(TextClassifier().fit(NEWS.to_pandas()), whole)
    assert same(TextClassifier().fit(NEWS["text"], NEWS["label"]), whole)
    assert same(TextClassifier().fit(NEWS["text"].to_list(), NEWS["label"].to_list()), whole)
    answers = whole.predict(TESTED.to_pandas())
    assert [list(labels) for labels in answers["predicted"]] == whole.predict(TESTED["text"])


def test_a_label_of_all_documents_or_of_none():
    frame = pl.DataFrame({"text": ["aa bb", "bb cc"], "label": [["all", "one"], ["all"]]})
    model = TextClassifier().partial_fit(frame, classes=["all", "none", "one"])
    chances = model.predict_proba(["aa", "zz"])
    assert chances[:, 0].tolist() == [1.0, 1.0]
    assert chances[:, 1].tolist() == [0.0, 0.0]
    assert model.predict(["zz"]) == [["all"]]


def test_a_label_unseen_before_is_announced():
    model = TextClassifier().fit(NEWS)
    more = pl.DataFrame({"text": ["zinc"], "label": [["zinc", "corn"]]})
    with pytest.raises(DataError, match="zinc"):
        model.partial_fit(more)
    model.partial_fit(more, classes=["zinc"])
    assert same(model, TextClassifier().fit(pl.concat([NEWS, more])))
    without = pl.DataFrame({"text": ["rain"], "label": [[]]}, schema=NEWS.schema)
    untyped = pl.DataFrame({"text": ["rain"], "label": [[]]})
    assert same(TextClassifier().fit(NEWS).partial_fit(without),
                TextClassifier().fit(NEWS).partial_fit(untyped))


def fit_lists(lists, estimator=None):
    texts = [f"aa word{n % 3}" for n in range(len(lists))]
    return TextClassifier(estimator).fit(pl.DataFrame({"text": texts, "label": lists}))


LISTED, SINGLE = TextClassifier().fit(NEWS), TextClassifier().fit(["aa", "bb"], ["a", "b"])
ONE = pl.DataFrame({"text": ["aa"], "label": ["corn"]})
NULL, BOTH = "row 1 .* is null or holds a null.*An empty list", "one label per document or lists of"
BAD = {
    **{f"{case}, {type(estimator).__name__}": (
        lambda lists=lists, estimator=estimator: fit_lists(lists, estimator), DataError, message)
       for estimator in (MultinomialNB(), BernoulliNB(), NBLinear()) for case, lists, message in (
           ("a null list", [["a"], None, ["b"]], NULL),
           ("a null in a list", [["a"], ["b"], ["b", None]],
            r"row 2 .* is null or .*list.drop_nulls\(\)"),
           ("a label twice", [["a"], ["b", "a", "b"], []], "row 1 .* holds a label twice"),
           ("no label at all", pl.Series([[], [], []], dtype=NEWS["label"].dtype),
            "no document has a label"))},
    "far down": (lambda: fit_lists([["a"], ["b"]] * 4500 + [["a", "a"]] + [["b"]] * 999),
                 DataError, "row 9000 "),
    "fractions": (lambda: fit_lists([[0.5]]), SchemaError,
                  r"List\(Float64\).*cast\(pl.List\(pl.String\)\)"),
    **{f"mixed with {mixed[0]}": (
        lambda mixed=mixed: TextClassifier().fit(["aa", "bb"], mixed), ParameterError,
        "lists of labels and labels") for mixed in ([["a"], "b"], ["b", ["a"]])},
    "a fraction": (lambda: TextClassifier().fit(["aa", "bb"], [["a"], [0.5]]), ParameterError,
                   "float"),
    "single into lists": (lambda: LISTED.partial_fit(ONE), DataError, BOTH),
    "lists into single": (lambda: SINGLE.partial_fit(NEWS), DataError, BOTH),
    "single out of lists": (lambda: LISTED.forget(ONE), DataError, BOTH),
    "lists out of single": (lambda: SINGLE.forget(NEWS), DataError, BOTH),
    "lists and single": (lambda: LISTED + SINGLE, DataError, BOTH),
    "single and lists": (lambda: SINGLE + LISTED, DataError, BOTH),
    **{repr(estimator): (lambda estimator=estimator: TextClassifier(estimator).fit(NEWS),
                         TextnbError, message) for estimator, message in (
        (MultinomialNB(l=0.0), "l must be above 0"),
        (MultinomialNB(class_prior=[0.2] * 5), "class_prior"),
        (NBLogisticRegression(), "is for one label per document"),
        (TfidfComplementNB(), "one label"))},
    "four thresholds": (lambda: LISTED.set_decision(Decision(dict.fromkeys(TOPICS[1:], 0.0))),
                        ParameterError, "the decision has 4 thresholds"),
    "of one class": (lambda: LISTED.set_decision(Decision(dict.fromkeys(TOPICS, 0.0), "corn")),
                     ParameterError, "a decision for one class"),
    "ranks of classes": (lambda: SINGLE.set_decision(Decision({"a": 0.0, "b": 0.0}, at_least=1)),
                         ParameterError, "at_least and at_most are for lists"),
    **{str(ranks): (lambda ranks=ranks: Decision({"a": 0.0}, **ranks), ParameterError,
                    r"at_least|at_most") for ranks in (
        {"at_least": -1}, {"at_most": 0}, {"at_least": 2, "at_most": 1}, {"at_least": 1.0})},
    "what to explain": (lambda: LISTED.explain("word9", labels=["tin"]), ParameterError,
                        "unknown value 'tin'"),
    "labels to explain": (lambda: SINGLE.explain("aa", labels=["a"]), ParameterError,
                          "labels is for"),
    "labels to highlight": (lambda: SINGLE.highlight("aa", labels=["a"]), ParameterError,
                            "labels is for"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_lists_can_not_be_or_do_is_refused(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


def test_sets_of_labels_are_lists():
    assert TextClassifier().fit(["aa", "bb"], [{"a"}, {"b"}]).predict(["aa"]) == [["a"]]


def test_what_was_not_learned_is_not_forgotten():
    frame = pl.DataFrame({"text": ["aa", "bb"], "label": [["a"], ["a", "b"]]})
    model = TextClassifier().fit(frame)
    # The counts of "a" would be those of two documents, and one document would be left.
    with pytest.raises(DataError, match="were not learned with these labels"):
        model.forget(pl.DataFrame({"text": ["aa"], "label": [[]]}, schema=NEWS.schema))
    assert model.fitted_.counts.rows == 2


def test_thresholds_of_the_linear_model_are_chosen_on_rows_held_out():
    plain = TextClassifier(NBLinear(held_out=0), min_df=2).fit(NEWS)
    chosen = TextClassifier(NBLinear(), min_df=2).fit(NEWS)
    assert np.array_equal(plain.decision_function(TESTED), chosen.decision_function(TESTED))
    assert plain.decision_ is None
    assert chosen.decision_.evidence == {"by": "f1", "documents": 150, "scored": "3 folds"}
    # Those of 60 documents or more are chosen: fewer would say nothing.
    assert TextClassifier(NBLinear()).fit(NEWS[:59]).decision_ is None
    assert textnb.evaluate(chosen, TESTED).macro_f1 > textnb.evaluate(plain, TESTED).macro_f1


def test_labels_above_their_thresholds_at_least_and_at_most_so_many(tmp_path):
    model = TextClassifier().fit(NEWS)
    scores, thresholds = model.decision_function(TESTED), np.array([1.0, -1.0, 0.0, 9.0, -2.0])
    every = [
        {}, {"at_least": 1}, {"at_most": 2}, {"at_least": 2, "at_most": 2}]
    for ranks in every:
        decision = Decision(dict(zip(TOPICS, thresholds.tolist(), strict=True)), **ranks)
        model.set_decision(decision).save(tmp_path / "news.textnb")
        expected = []
        for above in scores - thresholds:
            best = np.argsort(-above, kind="stable")
            number = max(ranks.get("at_least", 0),
                         min(ranks.get("at_most", len(TOPICS)), int((above > 0).sum())))
            expected.append([TOPICS[k] for k in sorted(best[:number])])
        assert model.predict(TESTED)["predicted"].to_list() == expected
        read = textnb.load(tmp_path / "news.textnb")
        assert read.decision_ == decision
        assert read.predict(TESTED["text"]) == expected


def test_thresholds_that_no_score_passes_and_that_all_pass():
    scores = np.array([[5.0, -np.inf, 1.0]])
    inf = Decision({"a": np.inf, "b": -np.inf, "c": -np.inf}, at_least=3)
    assert choose_labels(scores, ["a", "b", "c"], inf).tolist() == [[False, False, True]]


def test_a_decision_of_labels_is_stale_after_an_update():
    model = TextClassifier().fit(NEWS).set_decision(Decision(dict.fromkeys(TOPICS, 0.5)))
    model.partial_fit(NEWS)
    with pytest.warns(textnb.TextnbWarning, match="decision is stale"):
        model.predict(["word1"])
    with pytest.warns(textnb.TextnbWarning, match="decision is stale"):
        model.predict(TESTED)


def test_a_file_holds_the_linear_model(tmp_path):
    model = TextClassifier(NBLinear(), min_df=2).fit(NEWS)
    model.save(tmp_path / "news.textnb")
    read = textnb.load(tmp_path / "news.textnb")
    assert read.fitted_.counts.equals(model.fitted_.counts)
    assert np.array_equal(read.decision_function(TESTED), model.decision_function(TESTED))
    assert read.predict(TESTED).equals(model.predict(TESTED))
    read.save(tmp_path / "again.textnb")
    assert (tmp_path / "again.textnb").read_bytes() == (tmp_path / "news.textnb").read_bytes()


def test_labels_of_few_rows_or_of_all_in_the_linear_model():
    lists = [[*labels, "all", *(["rare"] if row == 7 else [])]
             for row, labels in enumerate(NEWS["label"].to_list())]
    model = TextClassifier(NBLinear()).fit(NEWS["text"], lists)
    said = model.predict(TESTED["text"])
    assert all("all" in labels for labels in said)
    assert sum("rare" in labels for labels in said) <= 1
    only = TextClassifier(NBLinear(held_out=0)).fit(["aa", "bb"], [["all"], ["all"]])
    assert only.predict(["cc"]) == [["all"]]


@pytest.mark.parametrize("kernel", ["", "off"], ids=["kernel", "expressions"])
@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB()], ids=repr)
def test_batches_in_which_no_document_has_a_label(estimator, kernel, monkeypatch):
    monkeypatch.setenv("TEXTNB_KERNEL", kernel)
    unlabelled = pl.DataFrame({"text": ["corn new"], "label": pl.Series([[]], dtype=LISTS)})
    whole = TextClassifier(estimator).fit(pl.concat([NEWS, unlabelled]))
    model = TextClassifier(estimator).fit(NEWS).partial_fit(unlabelled)
    assert same(model, whole)
    assert same(model.forget(unlabelled), TextClassifier(estimator).fit(NEWS))
    with pytest.raises(DataError, match="no document has a label"):
        TextClassifier(estimator).fit(unlabelled)


def test_lists_start_from_the_weights_of_an_earlier_fit():
    def at_the_optimum():
        return TextClassifier(NBLinear(tol=1e-9, max_iter=1000, held_out=0))

    cold = at_the_optimum().fit(NEWS)
    warm = at_the_optimum().fit(NEWS).fit(NEWS, warm_start=True)
    weights = cold.linear_form().weights
    np.testing.assert_allclose(
        warm.linear_form().weights, weights, rtol=0, atol=1e-6 * np.abs(weights).max())
    more = at_the_optimum().fit(NEWS[:-20]).fit(NEWS, warm_start=True)
    np.testing.assert_allclose(
        more.linear_form().weights, weights, rtol=0, atol=1e-6 * np.abs(weights).max())


LISTS = pl.List(pl.String)
CALIBRATION = Calibration(2.0, 0.0, 10, "rows given as held out")
# What takes a fitted model and does not know lists of labels yet, by name. Each refuses.
REFUSING = {
    "smoothing_path(test=)": lambda model, rows, path: textnb.smoothing_path(model, test=rows),
    "validate_online(positive=)": lambda model, rows, path: textnb.validate_online(
        model, rows, "corn"),
    "write_report(positive=)": lambda model, rows, path: textnb.write_report(
        model, rows, path / "report.html", positive="corn"),
    "estimator_": lambda model, rows, path: model.estimator_,
    "set_calibration": lambda model, rows, path: model.set_calibration(CALIBRATION),
    "pairwise": lambda model, rows, path: model.linear_form().pairwise("corn", "wheat"),
}


# What knows them, and refuses rows of the other kind.
JUDGING = {
    "evaluate": textnb.evaluate, "mistakes": textnb.mistakes,
    "score": lambda model, rows: model.score(rows), "held_out": textnb.held_out,
    "drift": lambda model, rows: textnb.drift(model, rows, rows),
    "evaluate_roc": lambda model, rows: evaluate_roc(model, rows, "corn"),
}


@pytest.mark.parametrize("name", JUDGING)
def test_rows_of_one_label_are_refused(name):
    one = TESTED.with_columns(label=pl.col("label").list.first().fill_null("corn"))
    with pytest.raises(SchemaError, match=r"predicts lists of labels, .*one label per document"):
        JUDGING[name](TextClassifier().fit(NEWS), one)
    with pytest.raises(SchemaError, match="must have one label"):
        JUDGING[name](TextClassifier().fit(one), TESTED)


def test_lists_are_judged_as_wholes(model):
    predicted = model.predict(TESTED["text"])
    right = np.array([{*own} == {*other} for own, other in
                      zip(predicted, TESTED["label"].to_list(), strict=True)])
    assert 0 < right.sum() < len(right)
    assert model.score(TESTED) == right.mean() == textnb.evaluate(model, TESTED).subset_accuracy
    # The order of a list, and a label twice in it, say nothing.
    turned = TESTED.with_columns(pl.col("label").list.reverse())
    assert model.score(turned) == right.mean()
    wrong = textnb.mistakes(model, turned)
    assert wrong["text"].to_list() == TESTED.filter(pl.Series(~right))["text"].to_list()
    # A label that the model does not know can't be predicted.
    other = TESTED.with_columns(label=pl.lit(["other"]))
    assert textnb.mistakes(model, other).height == TESTED.height


def test_the_curve_of_a_label_is_that_of_the_documents_with_it():
    model = TextClassifier(NBLinear()).fit(NEWS)
    scores = model.decision_function(TESTED)
    for k, label in enumerate(TOPICS):
        has = TESTED["label"].list.contains(label).to_numpy()
        assert evaluate_roc(model, TESTED, label).auc == pytest.approx(
            roc_auc_score(has, scores[:, k]), abs=1e-12)


def test_drift_of_lists_stands_for_their_most_probable_labels(model):
    same = textnb.drift(model, TESTED, TESTED)
    assert same.verdict == "nothing drifted"
    shares = {measure.name: measure.recent for measure in same.measures}
    assert shares["errors"]["right"] == pytest.approx(model.score(TESTED))
    none = np.mean([not said for said in model.predict(TESTED["text"])])
    assert shares["answers"].get("(none)", 0.0) == pytest.approx(none)
    assert [one.name for one in textnb.drift(model, TESTED.drop("label"), TESTED).measures] == [
        "answers", "unknown words", "scores"]
    other = TESTED.with_columns(label=pl.lit(["other"]))
    found = textnb.drift(model, other, TESTED)
    assert found.drifted == ["labels"]
    assert {one.name: one.recent for one in found.measures}["errors"] == {
        "right": 0.0, "wrong": 1.0}


def test_duplicates_compare_lists_as_wholes():
    rows = pl.DataFrame({"text": ["corn up", "corn up", "oil up", "oil up"],
                         "label": [["corn", "wheat"], ["wheat", "corn"], ["oil"], []]})
    found = textnb.find_duplicates(rows, label="label", near=None)
    assert found.pairs["conflict"].to_list() == [False, True]


# These fit the model's settings anew, and may do so with one label per document.
FITTING = ("validate_online(positive=)",)


@pytest.mark.parametrize(("name", "rows"), [
    *((name, "of lists") for name in REFUSING),
    *((name, "of one label") for name in REFUSING if name not in FITTING)])
def test_what_does_not_know_labels_refuses(name, rows, tmp_path, model):
    if name.startswith("write_report"):
        pytest.importorskip("altair")
    one = TESTED.with_columns(label=pl.col("label").list.first().fill_null("corn"))
    with pytest.raises(TextnbError, match="label"):
        REFUSING[name](model, TESTED if rows == "of lists" else one, tmp_path)
    assert not any(tmp_path.iterdir())


def test_each_public_function_of_a_fitted_model_is_walked():
    import inspect

    of_scores_or_files = {"verify_export", "load"}
    knowing = {*JUDGING, "describe_model", "export_model", "calibrate", "cross_validate",
               "leave_one_out", "smoothing_path", "validate_online", "write_report"}
    walked = {name for name in textnb.__all__ if inspect.isfunction(getattr(textnb, name))
              and {"model", "models", "classifier", "first"} & {*inspect.signature(
                  getattr(textnb, name)).parameters}}
    assert walked - of_scores_or_files - knowing <= {*REFUSING}


def test_learned_lists_are_seen_in_what_is_shown(model):
    assert isinstance(model.fitted_, Fitted)
    assert model.fitted_.is_multilabel
    assert repr(model.fitted_).endswith("5 labels)")
    assert repr(model.statistics_).endswith("5 labels)")


def test_one_label_that_rows_have_or_lack_is_measured():
    rows = pl.DataFrame({"text": ["aa", "aa bb", "cc", "cc"], "label": [["a"], ["a"], [], []]})
    tested = pl.DataFrame({"text": ["aa", "cc", "aa"], "label": [["a"], ["a"], []]})
    found = textnb.evaluate(TextClassifier().fit(rows), tested)
    assert found.labels.row(0)[:4] == ("a", 2, 2, 0.5)
    assert (found.micro_f1, found.macro_f1, found.subset_accuracy) == (0.5, 0.5, 1 / 3)
    assert found.hamming_loss == pytest.approx(2 / 3)
