"""Two models side by side, and the rows that one misjudges."""

import numpy as np
import polars as pl
import pytest

from textnb import (
    BernoulliNB,
    Decision,
    MultinomialNB,
    NBLogisticRegression,
    TextClassifier,
    held_out,
)
from textnb import compare_models as compare
from textnb import mistakes as mistakes_of
from textnb.errors import SchemaError
from textnb.evaluation.mistakes import rows_to_learn

OLD = pl.DataFrame({"text": ["free money", "free offer", "hello lunch", "lunch meeting"],
                    "label": ["spam", "spam", "ham", "ham"]})
NEW = pl.DataFrame({"text": ["lunch offer", "sport results"], "label": ["spam", "sport"]})
TOPICS = pl.DataFrame({"text": ["corn wheat", "wheat", "bank rate", "film"],
                       "label": [["corn", "grain"], ["grain"], ["money"], []]})
MORE = pl.DataFrame({"text": ["wheat bank", "corn corn"], "label": [["money"], ["corn"]]})
# Lists of Booleans, and of their names.
BOOLEANS = [pl.Series([[True], [False], [True, False], []]),
            pl.Series([["True"], ["False"], ["True", "False"], []])]


@pytest.fixture
def old():
    return TextClassifier().fit(OLD)


@pytest.fixture
def new():
    return TextClassifier().fit(OLD).partial_fit(NEW, classes=["sport"])


def test_a_model_does_not_differ_from_itself(old):
    result = compare(old, old, OLD)
    assert result.terms.height == 0
    assert (result.terms_gained, result.terms_lost, result.documents) == (0, 0, 4)
    assert result.flipped.height == result.examples.height == 0
    assert result.classes["drift"].to_list() == [0.0, 0.0]


def test_what_has_moved_by_hand(old, new):
    result = compare(old, new, pl.LazyFrame({"text": ["sport", "lunch", "free", "offer"]}))
    assert result.classes.rows() == [
        ("ham", 2, 2, 0.5, pytest.approx(1 / 3), pytest.approx(-1 / 6)),
        ("spam", 2, 3, 0.5, 0.5, 0.0),
        ("sport", None, 1, None, pytest.approx(1 / 6), None)]
    assert (result.terms_gained, result.terms_lost) == (2, 0)
    # In the old one, "sport" is no term, and the first of the equal priors wins. In the new one,
    # spam has 3/6 x 1/14 = .0357 against 1/6 x 2/10 = .0333 of sport.
    assert result.flipped.rows() == [("ham", "spam", 1)]
    assert result.examples.rows() == [(0, "ham", "spam", "sport")]
    back = compare(new, old)
    assert (back.terms_gained, back.terms_lost, back.documents) == (0, 2, 0)


@pytest.mark.parametrize(("before", "after"), [(OLD, NEW), (TOPICS, MORE)])
def test_weights_are_those_of_top(before, after):
    a = TextClassifier(MultinomialNB(l=0.1)).fit(before)
    b = TextClassifier(MultinomialNB(l=0.1)).fit(pl.concat([before, after]))
    terms = compare(a, b, k=50).terms
    for side, model in (("weight_a", a), ("weight_b", b)):
        weights = {(row["class"], row["term"]): row["weight"] for row in model.top(50).to_dicts()}
        moved = {(row["class"], row["term"]): row[side] for row in terms.to_dicts()}
        both = set(weights) & set(moved)
        assert len(both) > 3
        assert all(moved[key] == weights[key] for key in both)
    gained = terms.filter(pl.col("term").is_in(["results", "sport"]))
    assert gained["weight_a"].is_null().all()
    assert (terms["moved"] > 0).all()
    for _, group in terms.group_by("class"):
        assert group["moved"].is_sorted(descending=True)


def test_other_kinds_of_models():
    presence = TextClassifier(BernoulliNB()).fit(OLD)
    result = compare(presence, TextClassifier(NBLogisticRegression()).fit(OLD), OLD)
    assert result.documents == 4
    assert result.classes["documents_b"].to_list() == [2, 2]
    zero = TextClassifier(BernoulliNB(l=0.0)).fit(OLD)
    assert not compare(zero, presence, OLD).terms["moved"].is_nan().any()
    assert compare(zero, zero).terms.height == 0


def test_lists_of_labels():
    rows = pl.concat([TOPICS, MORE])
    a, b = (TextClassifier(MultinomialNB(l=0.1)).fit(each) for each in (TOPICS, rows))
    result = compare(a, b, rows)
    assert result.classes.rows() == [
        ("corn", 1, 2, 0.25, pytest.approx(1 / 3), pytest.approx(1 / 12)),
        ("grain", 2, 2, 0.5, pytest.approx(1 / 3), pytest.approx(-1 / 6)),
        ("money", 1, 2, 0.25, pytest.approx(1 / 3), pytest.approx(1 / 12))]
    before, after = (model.predict(rows["text"].to_list()) for model in (a, b))
    flips = [(set(new) - set(old), set(old) - set(new))
             for old, new in zip(before, after, strict=True)]
    assert result.differing == sum(added | removed != set() for added, removed in flips) > 0
    assert {row["label"]: (row["added"], row["removed"]) for row in result.flipped.to_dicts()} == {
        label: tuple(sum(label in flip[side] for flip in flips) for side in (0, 1))
        for label in set().union(*(flip[0] | flip[1] for flip in flips))}
    assert result.examples["a"].to_list()[0] == before[result.examples["row"][0]]
    assert result.examples.schema["b"] == pl.List(pl.String)
    for same in (compare(a, a, TOPICS), compare(a, b)):
        assert same.flipped.columns == ["label", "added", "removed"]


def test_lists_of_booleans_are_compared_as_lists_of_names_are():
    flipped = []
    for lists in BOOLEANS:
        rows = TOPICS.with_columns(label=lists)
        a, b = (TextClassifier(MultinomialNB(l=0.1)).fit(each) for each in (
            rows, rows.with_columns(pl.col("label").reverse())))
        flipped.append(compare(a, b, rows).flipped)
    assert flipped[0].schema["label"] == pl.Boolean
    assert [(str(label), *counts) for label, *counts in flipped[0].rows()] == flipped[1].rows()
    assert flipped[0].height


def test_only_terms_of_the_class_are_compared():
    """The answer is that of a comparison of all terms of all classes."""
    draw = np.random.default_rng(5)
    words = [f"w{number}" for number in range(60)]
    a, b = (TextClassifier().fit(pl.DataFrame({
        "text": [" ".join(draw.choice(words[part:part + 50], 6)) for _ in range(80)],
        "label": [f"c{number % 5}" for number in range(80)]})) for part in (0, 10))
    terms = compare(a, b, k=7).terms
    rows = []
    for k, label in enumerate(a.classes_.tolist()):
        sides = []
        for model in (a, b):
            weights, counts = model.linear_form().weights, model.statistics_.feature_count[k]
            own = weights[:, k] - np.delete(weights, k, axis=1).mean(axis=1)
            sides.append({term: (weight, count / counts.sum()) for term, weight, count in zip(
                model.vocabulary_, own.tolist(), counts.tolist(), strict=True)})
        moved = []
        for term in set(sides[0]) | set(sides[1]):
            (left, part), (right, other) = (side.get(term, (0.0, 0.0)) for side in sides)
            moved.append((-abs(right - left) * max(part, other), term))
        rows += [(label, term, -value) for value, term in sorted(moved)[:7] if value]
    assert terms.select("class", "term").rows() == [row[:2] for row in rows]
    assert terms["moved"].to_list() == pytest.approx([row[2] for row in rows], rel=1e-12)


def test_decisions_are_what_is_compared(old):
    never = TextClassifier().fit(OLD).set_decision(Decision({"ham": -np.inf, "spam": np.inf}))
    assert compare(old, never, OLD).flipped.rows() == [("spam", "ham", 2)]
    old.set_decision(Decision({"ham": np.inf, "spam": -np.inf}))
    assert compare(old, never, OLD).flipped.rows() == [("spam", "ham", 4)]


# Mistakes


def test_mistakes_are_the_rows_of_other_predictions(corpus):
    rows = corpus("sms_spam").collect()
    model = TextClassifier().fit(rows.head(1000))
    mistakes = mistakes_of(model, rows.lazy()).collect()
    wrong = model.predict(rows).filter(pl.col("predicted") != pl.col("label"))
    assert mistakes.select("text", "label").equals(wrong.select("text", "label"))
    assert mistakes["answer"].to_list() == wrong["predicted"].to_list()
    assert 0 < mistakes.height < 1000


def test_an_unknown_label_and_an_unsure_answer_are_mistakes(old):
    assert mistakes_of(old, pl.DataFrame({"text": ["free"], "label": ["sport"]})).height == 1
    old.set_decision(Decision({"ham": 0.0, "spam": 50.0}))
    rows = pl.DataFrame({"text": ["free", "lunch"], "label": ["spam", "ham"]})
    assert mistakes_of(old, rows)["text"].to_list() == ["free"]


def test_a_mistake_says_the_answer_and_what_misled_by_hand(old):
    rows = pl.DataFrame({
        "id": [5, 6, 7, 8], "label": ["ham", "spam", "spam", "sport"],
        "text": ["free lunch free", "lunch hello", "offer", "free money zzz"]})
    # P(free | spam) = 3/10, P(free | ham) = 1/10; lunch the other way; money, offer, hello 2 to 1.
    expected = [(5, 0, "spam", 3 / 4, np.log(3), ["free"]),
                (6, 1, "ham", 6 / 7, np.log(6), ["lunch", "hello"]),
                (8, 3, "spam", 6 / 7, np.log(6), ["free", "money"])]
    wrong = mistakes_of(old, rows)
    assert wrong.columns == [*rows.columns, "row", "answer", "probability", "margin", "terms"]
    for row, values in zip(wrong.drop("text", "label").rows(), expected, strict=True):
        assert row[-1] == values[-1]
        assert row[:-1] == pytest.approx(values[:-1])
    assert mistakes_of(old, rows, terms=1)["terms"].to_list() == [["free"], ["lunch"], ["free"]]
    # Right by log 2.
    near = mistakes_of(old, rows, within=0.7)
    assert near["row"].to_list() == [0, 1, 2, 3]
    assert near.row(2)[-4:-1] == pytest.approx(("spam", 2 / 3, np.log(2)))
    # A decision's answer is as far above its threshold; "unsure" is below the nearest.
    old.set_decision(Decision({"ham": 1.0, "spam": 2.0}))
    decided = mistakes_of(old, rows).select("row", "answer", "probability", "margin").rows()
    assert decided[0] == pytest.approx((0, None, None, np.log(3) - 2))
    assert decided[1] == pytest.approx((1, "ham", 6 / 7, np.log(6) - 1))


def test_a_mistake_of_lists_names_missing_and_superfluous_labels():
    model = TextClassifier().fit(TOPICS)
    rows = pl.DataFrame({"text": ["wheat bank", "corn wheat", "zebra", "corn"], "x": range(4),
                         "label": [["money"], ["grain", "corn"], ["odd"], ["grain"]]})
    wrong = mistakes_of(model, rows)
    assert wrong.select("x", "row", "answer", "missing", "superfluous", "terms").rows() == [
        (0, 0, ["grain"], ["money"], ["grain"], ["wheat"]), (2, 2, [], ["odd"], [], [])]
    scores = model.decision_function(rows)
    # Both labels are wrong; "money" is further from its threshold, 0.
    assert wrong["worst_label"].to_list() == ["money", None]
    assert wrong["margin"].to_list() == [pytest.approx(-scores[0, 2]), None]
    # It is missing, because its probability is low.
    assert wrong["probability"].to_list() == [
        pytest.approx(model.predict_proba(["wheat bank"])[0, 2]), None]
    near = mistakes_of(model, rows, within=0.16)
    assert near["row"].to_list() == [0, 1, 2, 3]
    # The nearest label is "corn".
    assert near["worst_label"].to_list()[1::2] == ["corn", "corn"]
    assert near["margin"].to_list()[1::2] == pytest.approx(abs(scores[[1, 3], 0]).tolist())


def test_mistakes_of_lists_of_booleans_are_those_of_lists_of_names():
    wrong, labels = [], []
    for lists in BOOLEANS:
        rows = TOPICS.with_columns(label=lists)
        # The model does not know the label False.
        model = TextClassifier(MultinomialNB(l=0.1)).fit(rows[[0, 3]])
        wrong.append(mistakes_of(model, rows).select("row", "missing", "superfluous"))
        labels.append(held_out(model, rows).labels.to_list())
    assert labels == [lists.to_list() for lists in BOOLEANS]
    names = pl.col("missing", "superfluous").list.eval(
        pl.when(pl.element()).then(pl.lit("True")).otherwise(pl.lit("False")))
    assert wrong[0].with_columns(names).equals(wrong[1])
    assert ["False"] in wrong[1]["missing"].to_list()


def test_a_column_that_mistakes_would_replace_is_refused_but_learned():
    rows = pl.DataFrame({"text": ["lunch", "free"], "answer": ["spam", "spam"]})
    model = TextClassifier(label="answer").fit(["free", "lunch"], ["spam", "ham"])
    with pytest.raises(SchemaError, match="a column 'answer' already"):
        mistakes_of(model, rows)
    learned = rows_to_learn(model.fitted_, model.fitted_.scan(rows)).collect()
    assert learned.equals(rows.head(1))


def test_a_label_column_of_any_name():
    rows = pl.DataFrame({"text": ["aa", "bb"], "predicted": ["x", "y"]})
    model = TextClassifier(label="predicted").fit(rows)
    assert mistakes_of(model, rows).height == 0
    swapped = rows.with_columns(predicted=pl.col("predicted").reverse())
    assert mistakes_of(model, swapped).select(swapped.columns).equals(swapped)


def test_nothing_runs_before_mistakes_are_collected(old):
    rows = OLD.lazy().with_columns(pl.col("text").map_batches(
        lambda column: pytest.fail("it ran"), return_dtype=pl.String))
    assert isinstance(mistakes_of(old, rows), pl.LazyFrame)
