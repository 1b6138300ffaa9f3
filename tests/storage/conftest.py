"""Models whose files are read, and damaged."""

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import ModelFileError, NBLinear, PlugInBayes, TableClassifier, TextClassifier, Tokenizer
from textnb.models.histogram import HistogramDensity

FRAME = pl.DataFrame({
    "text": ["free money now", "cheap free offer", "hello friend lunch", "meeting at lunch",
             "free lunch offer"],
    "label": ["spam", "spam", "ham", "ham", "spam"],
})
NUMBERS = pl.DataFrame({"x": np.arange(12.0), "y": np.arange(12.0) ** 2 % 7,
                        "label": ["a", "b", "c"] * 4})


def many_classes(n_classes):
    """The more words of its class a text has, the farther it is from all others: its own words,
    which no other text has, then have no weight."""
    rng, rows = np.random.default_rng(0), []
    for k in range(n_classes):
        for n in range(40):
            words = [f"c{k}w{word}" for word in rng.integers(0, 5, rng.integers(1, 12))]
            rows.append({"label": f"c{k:03}", "text": " ".join(
                [*words, *(f"only{k}of{n}n{i}" for i in range(3))])})
    return pl.DataFrame(rows)


# One model for each kind of content that a file may have.
MODELS = {
    "multinomial": lambda: TextClassifier(min_df=2).fit(FRAME),
    "bernoulli": lambda: TextClassifier(
        textnb.BernoulliNB(l=0.5), tokenizer=Tokenizer(ngram_range=(1, 2)), min_df=2).fit(FRAME),
    "complement": lambda: TextClassifier(
        textnb.ComplementNB(norm=True), max_features=6, binary=True).fit(FRAME),
    "weights": lambda: TextClassifier(textnb.NBLogisticRegression()).fit(FRAME),
    "few weights": lambda: TextClassifier(NBLinear(), tokenizer=Tokenizer()).fit(many_classes(3)),
    "weighted": lambda: TextClassifier(textnb.MultinomialNB(class_weight="balanced")).fit(
        FRAME, sample_weight=np.arange(1.0, 6.0)),
    "sample": lambda: TextClassifier(NBLinear(idf=False)).fit(
        [*FRAME["text"], *FRAME["text"], "now now now", ""],
        [*FRAME["label"], *FRAME["label"], "spam", "ham"], keep_sample=9),
    "lists": lambda: TextClassifier().fit(FRAME.with_columns(
        label=pl.Series([["spam"], ["spam", "offer"], ["ham"], [], ["ham", "offer"]]))),
    "gaussian": lambda: TableClassifier(textnb.GaussianNB()).fit(NUMBERS),
    "lda": lambda: TableClassifier(textnb.LinearDiscriminantAnalysis()).fit(NUMBERS),
    "rows": lambda: TableClassifier(PlugInBayes()).fit(NUMBERS),
    "histogram": lambda: TableClassifier(PlugInBayes(HistogramDensity(bins=4))).fit(NUMBERS),
}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The file of each of the models."""
    path = tmp_path_factory.mktemp("models") / "model.textnb"

    def file_of(fit):
        fit().save(path)
        return path.read_bytes()

    return {name: file_of(fit) for name, fit in MODELS.items()}


@pytest.fixture
def load(tmp_path):
    """Load a model from bytes."""

    def from_bytes(content, **settings):
        path = tmp_path / "given.textnb"
        path.write_bytes(content)
        return textnb.load(path, **settings)

    return from_bytes


def scores(model):
    """What every score follows from, to the bit."""
    if isinstance(model, TableClassifier):
        return model.predict_joint_log_proba(NUMBERS).tobytes()
    form = model.linear_form()
    return b"".join([form.weights.tobytes(), form.intercept.tobytes(),
                     "\n".join(model.vocabulary_).encode()])


@pytest.fixture
def load_or_none(load):
    """The model of some bytes; None if they are refused, by an error of one readable line."""

    def attempt(content):
        try:
            return load(content)
        except (ModelFileError, textnb.SourceError) as error:
            refusal = str(error)
        assert refusal.isprintable()
        assert len(refusal) < 2000
        return None

    return attempt


@pytest.fixture
def assert_refused(load):
    """Bytes give a ModelFileError of one readable line, which names the file and says why."""

    def check(content, match="is not a sound textnb model", **settings):
        with pytest.raises(ModelFileError, match=rf"given\.textnb (?s:.)*{match}") as caught:
            load(content, **settings)
        assert len(str(caught.value)) < 2000
        assert str(caught.value).isprintable()

    return check
