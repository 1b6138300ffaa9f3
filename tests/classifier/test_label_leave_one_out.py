"""Leave-one-out with lists of labels: the scores equal those of a new fit; the choice of l."""

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier import topics
from tests.classifier.topics import TOPICS
from tests.evaluation.documents import COUNTED
from tests.oracles.label_leave_one_out import refitted_log_odds
from textnb import BernoulliNB, ComplementNB, DataError, MultinomialNB, TextClassifier
from textnb.bayes.choice import GRID

LABELS = sorted(["alone", *TOPICS, "usual"])
USUAL = LABELS.index("usual")


def with_rare_and_usual(frame):
    """One document has the label "alone" too, and all but the last have "usual"."""
    lists = frame["label"].to_list()
    lists = [[*lists[0], "alone"], *lists[1:]]
    return frame.with_columns(label=pl.Series([[*own, "usual"] for own in lists[:-1]] + lists[-1:]))


NEWS = with_rare_and_usual(topics.NEWS[:36])


@pytest.mark.sweep(2)
@pytest.mark.parametrize("model", [
    TextClassifier(MultinomialNB(l=0.3)),
    TextClassifier(MultinomialNB(l=0.3), min_df=2, max_df=0.6),
    TextClassifier(MultinomialNB(), binary=True),
    TextClassifier(BernoulliNB(l=0.5), min_df=2),
    TextClassifier(BernoulliNB(binarize=1.0)),
    TextClassifier(ComplementNB(l=0.5)),
    TextClassifier(MultinomialNB(fit_prior=False)),
    TextClassifier(MultinomialNB(l=0.5), vocabulary=["word1", "word2", "word3", "word4"]),
], ids=str)
def test_scores_are_those_of_fitting_again_without_the_document(model):
    left_out = textnb.leave_one_out(model.fit(NEWS), NEWS)
    assert left_out.classes.tolist() == LABELS
    assert left_out.actual.tolist() == [
        [label in own for label in left_out.classes] for own in NEWS["label"].to_list()]
    expected = refitted_log_odds(model, NEWS)
    np.testing.assert_allclose(left_out.scores, expected, rtol=1e-9, atol=1e-9)
    assert np.isneginf(left_out.scores[0, 0])
    # Without the last document, all documents have this label: the odds are infinite.
    assert np.isposinf(left_out.scores[-1, USUAL]) == (
        not isinstance(model.estimator, ComplementNB) and model.estimator.fit_prior)
    assert "leave-one-out" in repr(left_out)


@pytest.mark.parametrize("estimator", [kind for kind in COUNTED if kind.learns_labels])
def test_l_auto_chooses_one_l_for_all_labels_by_leave_one_out(estimator, reloaded):
    model = TextClassifier(estimator(l="auto")).fit(NEWS)
    chosen = model.fitted_.chosen_l
    assert chosen in GRID
    same = TextClassifier(estimator(l=chosen)).fit(NEWS)
    assert np.array_equal(model.fitted_.form.weights, same.fitted_.form.weights)
    assert reloaded(model).fitted_.chosen_l == chosen
    assert model.partial_fit(NEWS[:5]).fitted_.chosen_l == chosen
    # Each fold chooses its own.
    assert len(textnb.cross_validate(model, NEWS, folds=2)) == NEWS.height


def test_smoothing_path_has_the_l_that_fit_chooses():
    model = TextClassifier(MultinomialNB(l="auto")).fit(NEWS)
    path = textnb.smoothing_path(model, NEWS, GRID)
    assert path.best == model.fitted_.chosen_l
    assert path.table["l"].to_list() == list(GRID)
    with pytest.raises(textnb.ParameterError, match="of other documents"):
        textnb.smoothing_path(model, test=NEWS)


@pytest.mark.slow
def test_l_auto_minimizes_the_loss_summed_over_labels():
    news = with_rare_and_usual(topics.NEWS[:18])
    chosen = TextClassifier(MultinomialNB(l="auto")).fit(news).fitted_.chosen_l
    actual = np.array([[label in own for label in LABELS] for own in news["label"].to_list()])
    losses = {}
    for l in GRID:
        odds = refitted_log_odds(TextClassifier(MultinomialNB(l=l)), news)
        margins = np.where(actual, odds, -odds)
        # These two labels are impossible without their document, so these pairs have no loss.
        margins[0, 0], margins[-1, USUAL] = np.inf, np.inf
        sums = [np.logaddexp(0, -margins / t).sum(axis=1) for t in np.exp(np.arange(-3, 5, 0.01))]
        best = min(sums, key=lambda each: float(each.mean()))
        losses[l] = float(best.mean()), float(best.std() / np.sqrt(len(best)))
    loss, error = min(losses.values())
    max_loss = max(loss + error, np.log1p(1 / (news.height + 1)))
    assert chosen == max(l for l in GRID if losses[l][0] <= max_loss)


@pytest.mark.parametrize("rows", [
    NEWS[1:], pl.concat([NEWS[1:], NEWS[1:2]]),
    NEWS.with_columns(text=pl.lit("unheard")),
    NEWS.with_columns(text=pl.col("text").reverse()),
    NEWS.with_columns(label=pl.col("label").list.eval(pl.element() + "s")),
], ids=["fewer", "others", "terms", "texts", "labels"])
def test_other_documents_than_those_learned(rows):
    with pytest.raises(DataError, match="not the documents that the model has learned"):
        textnb.leave_one_out(TextClassifier().fit(NEWS), rows)


def test_labels_that_leave_one_out_can_not_choose_by():
    with pytest.raises(DataError, match="holds one label"):
        textnb.leave_one_out(TextClassifier().fit(NEWS), NEWS.with_columns(
            label=pl.col("label").list.first().fill_null("corn")))
    alone = pl.DataFrame({"text": ["aa", "bb"], "label": [["a"], ["b"]]})
    with pytest.raises(DataError, match="no label has two"):
        TextClassifier(MultinomialNB(l="auto")).fit(alone)
