"""Two small corpora with a label per document, and a model for each way to compute weights."""

import random

import numpy as np
import polars as pl
import pytest
from polars.io.plugins import register_io_source
from sklearn.base import clone

import textnb
from textnb import BernoulliNB, ComplementNB, MultinomialNB, TextClassifier, Tokenizer

ODD = (None, "", "! ? x", "stranger words", "word1 " * 400)


def corpus_of(classes, rows=240, seed=0):
    """Documents of words that the classes use to different degrees, and some odd ones."""
    draw = random.Random(seed)
    texts = []
    labels = []
    for row in range(rows):
        kind = row % len(classes)
        numbers = [int(draw.gammavariate(2 + kind, 6)) for _ in range(draw.randrange(25))]
        texts.append(" ".join(f"word{number}" for number in numbers))
        labels.append(classes[kind])
    texts[5:5 + len(ODD)] = ODD
    return pl.DataFrame(
        {"id": range(rows), "text": texts, "label": labels, "extra": ["kept"] * rows})


SPAM = corpus_of(["ham", "spam"])
NEWS = corpus_of(["business", "politics", "sport", "tech"])
# Models that learn from counts: adding parts, or forgetting some, gives the same bits as one fit.
MODELS = {
    "multinomial": TextClassifier(MultinomialNB(l=0.5)),
    "uniform priors": TextClassifier(MultinomialNB(fit_prior=False)),
    "balanced": TextClassifier(MultinomialNB(class_weight="balanced")),
    "bernoulli": TextClassifier(BernoulliNB(l=0.5)),
    "bernoulli above 1": TextClassifier(BernoulliNB(binarize=1.0)),
    "bernoulli, balanced": TextClassifier(BernoulliNB(class_weight="balanced")),
    "complement": TextClassifier(ComplementNB()),
    "complement, normalised": TextClassifier(ComplementNB(norm=True)),
    "multinomial, binary": TextClassifier(MultinomialNB(), binary=True),
    "complement, binary": TextClassifier(ComplementNB(), binary=True),
    "bernoulli, binary": TextClassifier(BernoulliNB(), binary=True, min_df=2),
    "limits": TextClassifier(MultinomialNB(), min_df=3, max_df=0.9, max_features=25),
    "limits in shares": TextClassifier(BernoulliNB(), min_df=0.02, max_df=0.5, max_features=25),
    "n-grams": TextClassifier(
        MultinomialNB(), tokenizer=Tokenizer(ngram_range=(1, 2)), min_df=0.01),
    "characters": TextClassifier(
        MultinomialNB(), tokenizer=Tokenizer(analyzer="char_wb", ngram_range=(2, 3))),
    # Its tokens are counted by expressions, and not by the kernel.
    "accents": TextClassifier(
        BernoulliNB(), tokenizer=Tokenizer(strip_accents="unicode"), min_df=2),
    "given vocabulary": TextClassifier(
        ComplementNB(l=np.array([0.3, 1.2, 0.6])), vocabulary=["word3", "absent", "हिन्दी"]),
}
# Models that learn from all rows at once.
BY_ROWS = {
    "ratios": TextClassifier(textnb.NBLogisticRegression(), min_df=2),
    "linear": TextClassifier(textnb.NBLinear(held_out=0), min_df=2),
    "complement, tf-idf": TextClassifier(textnb.TfidfComplementNB(norm=True)),
}
every_model = pytest.mark.parametrize("name", [*MODELS, *BY_ROWS])
both_corpora = pytest.mark.parametrize("train", [SPAM, NEWS], ids=["two classes", "four classes"])


def fitted(name, train):
    return clone({**MODELS, **BY_ROWS}[name]).fit(train)


def assert_same_model(left, right):
    """Check that two models are equal, bit by bit."""
    assert left.vocabulary_ == right.vocabulary_
    assert left.classes_.tolist() == right.classes_.tolist()
    one, two = left.linear_form(), right.linear_form()
    assert np.array_equal(one.weights, two.weights)
    assert np.array_equal(one.intercept, two.intercept)
    assert left.statistics_.equals(right.statistics_)
    assert left.statistics_.terms.equals(right.statistics_.terms)
    assert left.statistics_.feature_count.dtype == right.statistics_.feature_count.dtype


def never_read(schema):
    def source(*_):
        raise AssertionError("the source was read")

    return register_io_source(source, schema=schema)
