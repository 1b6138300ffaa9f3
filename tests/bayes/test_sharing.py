"""Weights that words share by their parts: LinearSVC on terms and parts is the oracle."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import textnb
from tests.bayes.samples import liblinear
from tests.classifier.models import NEWS, SPAM
from textnb import NBLinear, TextClassifier, Tokenizer
from textnb.bayes.features import row_blocks
from textnb.bayes.sharing import MAX_SUBWORD_WEIGHT, Sharing, default_subword_weight

# Words with common parts, and a pair of words, which has none.
WORDS = ["sent", "sender", "sends", "resend", "card", "cards", "carded", "discard", "bill",
         "billing", "refund", "refunded", "transfer", "transfers"]


def questions(rows=200, classes=("bill", "card", "send"), seed=0):
    draw = np.random.default_rng(seed)
    labels = [classes[row % len(classes)] for row in range(rows)]
    return pl.DataFrame({"label": labels, "text": [" ".join(draw.choice(
        [word for word in WORDS if word[:2] == label[:2]] * 2 + WORDS, 6)) for label in labels]})


def of_words(model, **settings):
    return TextClassifier(model, tokenizer=Tokenizer(), **settings)


def by_hand(rows, terms, lengths, weight):
    """Rows of tf-idf and of parts, with one Python step for each word and part."""
    terms, shortest, longest = list(terms), *lengths
    counts = CountVectorizer(vocabulary=terms, token_pattern=r"\w\w+", ngram_range=(1, 2))
    counts = counts.fit_transform(rows["text"])
    tf_idf = TfidfTransformer(sublinear_tf=True).fit(counts)
    values, idf = tf_idf.transform(counts).toarray(), tf_idf.idf_
    parts = [{f"<{term}>"[start:start + length] for length in range(shortest, longest + 1)
              for start in range(len(term) + 3 - length)} if " " not in term else set()
             for term in terms]
    names = sorted(part for part in set().union(*parts) if sum(part in own for own in parts) > 1)
    has = np.array([[part in own for part in names] for own in parts], dtype=np.float64)
    holders = ((counts.toarray() > 0) @ has > 0).sum(axis=0)
    of_parts = np.log((1 + len(values)) / (1 + holders)) + 1
    factors = weight / (longest - shortest + 1) ** 0.5 * has / idf[:, None] * of_parts
    return values, factors


@pytest.mark.parametrize("lengths", [(4, 4), (3, 5)])
@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_weights_are_those_of_liblinear_on_terms_and_parts(lengths, weight):
    rows = questions()
    model = TextClassifier(
        NBLinear(power=0.0, tol=1e-9, held_out=0), tokenizer=Tokenizer(ngram_range=(1, 2)),
        subwords=lengths, sharing=weight).fit(rows)
    values, factors = by_hand(rows, model.vocabulary_, lengths, weight)
    wide = np.hstack([values, values @ factors])
    form = model.linear_form()
    for k, label in enumerate(model.classes_):
        expected = liblinear("hinge", wide, rows["label"] == label)
        w, u = np.split(expected.coef_[0], [len(model.vocabulary_)])
        np.testing.assert_allclose(form.weights[:, k], w + factors @ u, atol=1e-6)
        np.testing.assert_allclose(form.intercept[k], expected.intercept_[0], atol=1e-6)


def test_a_folded_weight_scores_as_terms_and_parts():
    draw = np.random.default_rng(0)
    counts = sp.csr_array(draw.poisson(0.3, (50, 40)))
    counts.eliminate_zeros()
    parts = sp.csr_array((draw.random((40, 25)) < 0.2) * 1.0)
    features = NBLinear().fit(counts, np.arange(50) % 2).feature_map_
    extra = Sharing(parts, 1.5).extra_columns(counts, features)
    mapped, weights = features.sparse(counts), draw.normal(size=(65, 3))
    wide = extra.widen(next(block for _, block in row_blocks(mapped))).to_csr()
    assert np.array_equal(extra.rows_with_column, ((counts @ parts).toarray() > 0).sum(axis=0))
    np.testing.assert_allclose(wide @ weights, mapped @ extra.fold(weights), atol=1e-12)


@pytest.mark.parametrize("settings", [{"sharing": 0.0}, {"analyzer": "unspaced"}])
def test_without_parts_nothing_changes(settings):
    if "analyzer" in settings:
        # Each character and pair has one part alone: itself.
        rows = pl.DataFrame({"text": ["\u65e5\u672c\u8a9e", "\u4e2d\u6587\u5b57"] * 9,
                             "label": ["ja", "zh"] * 9})
        settings = {}
    else:
        rows = questions()
    shared = of_words(NBLinear(), subwords=(4, 4), **settings).fit(rows)
    plain = of_words(NBLinear()).fit(rows)
    np.testing.assert_allclose(shared.linear_form().weights, plain.linear_form().weights, rtol=1e-9)


def test_a_word_has_the_same_parts_in_each_column():
    # Apart from the column's name, "aa" and "bb" have no part in common.
    rows = pl.DataFrame({"title": ["aa", "bb"] * 9, "text": ["aa", "cc"] * 9,
                         "label": ["a", "b"] * 9})

    def weights(length):
        return TextClassifier(
            NBLinear(), text=["title", "text"], tokenizer=Tokenizer(field_prefix=True),
            subwords=(length, length), sharing=2.0).fit(rows).linear_form().weights

    plain = TextClassifier(NBLinear(), text=["title", "text"],
                           tokenizer=Tokenizer(field_prefix=True)).fit(rows).linear_form().weights
    # The longest part of "<aa>" has 4 characters; those of "<title:aa>" would have 5.
    np.testing.assert_allclose(weights(5), plain, rtol=1e-9)
    assert not np.allclose(weights(4), plain)


def test_fewer_words_have_a_larger_weight():
    terms = [*map(str, range(200)), "a pair"]

    def weight(*words):
        holders = np.sum([np.arange(201) < n for n in words], axis=0)
        return default_subword_weight(terms, holders, len(words))

    assert weight(1) == weight(0, 0) == weight(6, 6) == MAX_SUBWORD_WEIGHT
    assert weight(16, 9) == 5.5 / 12.5**0.5
    # A pair is no word.
    assert (weight(100), weight(201, 0)) == (0.55, 0.55)
    # Many words and few rows.
    assert weight(121) == 0.5
    assert default_subword_weight(["a"], np.array([101 * 10_001]), 10_001) == 0.0


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_it_keeps_what_a_linear_model_promises(loss, reloaded, tmp_path):
    rows = questions(300)
    model = of_words(NBLinear(loss=loss), subwords=(3, 4)).fit(rows)
    lazy = of_words(NBLinear(loss=loss), subwords=(3, 4)).fit(rows.lazy())
    assert np.array_equal(lazy.linear_form().weights, model.linear_form().weights)
    again = reloaded(model)
    assert (again.subwords, again.sharing) == ((3, 4), None)
    assert np.array_equal(again.decision_function(rows), model.decision_function(rows))
    textnb.export_model(model, tmp_path / "m", "python")
    textnb.verify_export(tmp_path / "m")
    cold = of_words(NBLinear(loss=loss, tol=1e-9), subwords=(3, 4)).fit(rows)
    warm = of_words(NBLinear(loss=loss, tol=1e-9), subwords=(3, 4)).fit(rows[:200]).fit(
        rows, warm_start=True)
    np.testing.assert_allclose(
        warm.linear_form().weights, cold.linear_form().weights, atol=1e-6)


def test_a_weight_of_2_is_two_rows():
    rows = questions(60)
    twice = [1 + row % 2 for row in range(rows.height)]
    repeated = rows[[row for row, times in enumerate(twice) for _ in range(times)]]
    models = [of_words(NBLinear(tol=1e-9, held_out=0), subwords=(3, 4)) for _ in range(2)]
    models[0].fit(rows, sample_weight=np.array(twice, dtype=np.float64))
    models[1].fit(repeated)
    np.testing.assert_allclose(*(model.linear_form().weights for model in models), atol=1e-6)


def test_lists_of_labels_share_too():
    rows = questions(300).with_columns(label=pl.concat_list("label", pl.lit("all")))
    model = of_words(NBLinear(), subwords=(3, 5)).fit(rows)
    plain = of_words(NBLinear()).fit(rows)
    assert not np.allclose(model.linear_form().weights, plain.linear_form().weights)
    assert textnb.evaluate(model, rows).micro_f1 > 0.9 * textnb.evaluate(plain, rows).micro_f1


@pytest.mark.parametrize("train", [SPAM, NEWS], ids=["two classes", "four classes"])
def test_the_temperature_is_that_of_parts_of_the_others(train):
    shared, plain = (of_words(NBLinear(), subwords=parts).fit(train).calibration_
                     for parts in ((2, 3), None))
    assert shared.documents == plain.documents
    assert shared.temperature != plain.temperature
