"""The cells of the record: a kind of rows, a model, a setting; and what is asked of each.

Only names that are fixed are used: the classifiers, the estimators and their fitted attributes, and
the functions of the public package.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
import textnb
from textnb import TableClassifier, TextClassifier, Tokenizer

from . import samples
from .samples import Sample

# A logarithm's last bit differs between processors, and with it that of a sum of logarithms.
EXACT = 1e-12
# How far the answers of models that are solved for, or factorised, may be from the record, and why.
TOLERANCES = {
    "nblinear": (1e-9, "a solver that stops at a tolerance enlarges the last bits of its input"),
    "nblr": (1e-9, "a solver that stops at a tolerance enlarges the last bits of its input"),
    "calibrated": (1e-7, "a temperature is the root of a slope, which is found to 1e-8 or so"),
    "lda": (1e-9, "a covariance is factorised: LAPACK's bits differ between processors"),
    "qda": (1e-9, "covariances are factorised: LAPACK's bits differ between processors"),
    "rda": (1e-9, "covariances are factorised: LAPACK's bits differ between processors"),
    "plugin": (1e-10, "a kernel density sums exponentials in the order of its tree"),
}

Answers = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One case of the record.

    Attributes
    ----------
    kind, model, setting : str
    fit : callable
        Makes the model.
    answer : callable
        What a fitted model answers, by names.
    slow : bool
        Whether it is left out of the quick tests.
    stored : bool
        Whether a model file of it is kept.
    """

    kind: str
    model: str
    setting: str
    fit: Callable[[], Any]
    answer: Callable[[Any], Answers]
    slow: bool = False
    stored: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.model}-{self.setting}"

    @property
    def tolerance(self) -> float:
        """The loosest of the tolerances of its model and its setting."""
        return max([EXACT, *(TOLERANCES[part][0] for part in (self.model, self.setting)
                             if part in TOLERANCES)])

    def compute(self, model: Any = None) -> Answers:
        """All answers, of a model that was read from a file, if one is given.

        If the settings are refused, the answer is the name of the error: nothing may fail open.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                answers = self.answer(self.fit() if model is None else model)
            except (textnb.TextnbError, AttributeError) as error:
                return {"refused": _public_name(error)}
        names = {warning.category.__name__ for warning in caught}
        return answers | ({"warnings": sorted(names)} if names and model is None else {})


# ----------------------------------------------------------------------------------- texts

COUNTING = ("multinomial", "bernoulli", "complement")
MODELS: dict[str, Callable[..., Any]] = {
    "multinomial": textnb.MultinomialNB, "bernoulli": textnb.BernoulliNB,
    "complement": textnb.ComplementNB, "tfidf": textnb.TfidfComplementNB,
    "nblinear": textnb.NBLinear, "nblr": textnb.NBLogisticRegression,
}
KINDS: dict[str, Callable[[], Sample]] = {
    "sms": samples.sms, "news": samples.news, "chinese": samples.chinese,
    "bengali": samples.bengali_news, "topics": samples.topics, "tokens": samples.tokens,
    "fields": samples.fields, "big": samples.big,
}


def classifier(sample: Sample, model: str, tokens: Mapping[str, Any], limits: Mapping[str, Any],
               parameters: Mapping[str, Any]) -> TextClassifier:
    return TextClassifier(MODELS[model](**parameters), text=sample.text, label=sample.label,
                          tokenizer=Tokenizer(**dict(sample.tokenizer), **tokens), **limits)


def text_answers(sample: Sample, *, learned: bool = True) -> Callable[[Any], Answers]:
    """What a classifier of texts says of rows, and of what it learned."""
    def ask(model: TextClassifier) -> Answers:
        form, rows = model.linear_form(), sample.test
        assert form.terms is None or list(form.terms) == model.vocabulary_
        answers = {
            "classes": model.classes_, "terms": model.vocabulary_,
            "weights": np.asarray(form.weights), "intercept": form.intercept,
            "counts": model.transform(rows),
            **_each({
                "joint": lambda: model.predict_joint_log_proba(rows),
                "predictions": lambda: model.predict(
                    rows, probability=True, scores=True, explain=3).drop(rows.columns),
                "best": lambda: model.predict(rows, top=2).drop(rows.columns),
                "top": lambda: model.top(6), "explain": lambda: model.explain(_first(sample), 5),
                "probabilities": lambda: model.predict_proba(rows),
                "margins": lambda: model.decision_function(rows),
                "score": lambda: model.score(rows),
            }),
            **_estimator_of(model),
        }
        if learned:
            answers |= _each({"leave one out": lambda: textnb.leave_one_out(
                model, sample.train).scores})
        return answers

    return ask


def _first(sample: Sample) -> Any:
    row = sample.test.row(0, named=True)
    return row[sample.text] if isinstance(sample.text, str) else {
        name: row[name] or "" for name in sample.text}


def _each(asked: Mapping[str, Callable[[], Any]]) -> Answers:
    """Each answer, or the name of the error that refuses it."""
    answers = {}
    for name, ask in asked.items():
        try:
            answers[name] = ask()
        except (textnb.TextnbError, AttributeError) as error:
            answers[name] = f"refused: {_public_name(error)}"
    return answers


def _public_name(error: BaseException) -> str:
    """The name of the first class of an error that is public or built in."""
    return next(kind.__name__ for kind in type(error).__mro__
                if kind.__module__ == "builtins" or hasattr(textnb, kind.__name__))


def _estimator_of(model: TextClassifier) -> Answers:
    """Of lists of labels there is no estimator."""
    try:
        return estimator_answers(model.estimator_)
    except (textnb.TextnbError, AttributeError):
        return {}


def estimator_answers(estimator: Any) -> Answers:
    """The fitted attributes of an estimator that has them."""
    names = ("class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_", "l_",
             "feature_all_", "class_weight_", "coef_", "intercept_", "theta_", "var_", "epsilon_",
             "priors_", "means_", "covariance_", "xbar_", "explained_variance_ratio_", "alpha_",
             "gamma_", "cv_accuracy_", "centroids_", "chosen_", "n_categories_", "category_count_",
             "ratio_", "feature_names_in_")
    return {name: getattr(estimator, name) for name in names
            if not isinstance(getattr(estimator, name, None), type(None))}


Fit = Callable[[TextClassifier, Sample], TextClassifier]


def _at_once(model: TextClassifier, sample: Sample) -> TextClassifier:
    return model.fit(sample.train.drop("weight"))


def _weighted(model: TextClassifier, sample: Sample) -> TextClassifier:
    return model.fit(sample.train, sample_weight="weight")


def _in_parts(model: TextClassifier, sample: Sample) -> TextClassifier:
    rows, classes = sample.train.drop("weight"), None
    if sample.train.schema[sample.label] != pl.List(pl.String):
        classes = sample.train[sample.label].unique().sort().to_list()
    else:
        classes = rows[sample.label].explode().drop_nulls().unique().sort().to_list()
    model.partial_fit(rows[:13], classes=classes)
    return model.partial_fit(rows[13:14]).partial_fit(rows[14:])


def _merged(model: TextClassifier, sample: Sample) -> TextClassifier:
    rows = sample.train.drop("weight")
    other = TextClassifier(**model.get_params(deep=False)).fit(rows[20:])
    return model.fit(rows[:20]) + other


def _forgotten(model: TextClassifier, sample: Sample) -> TextClassifier:
    rows = sample.train.drop("weight")
    return model.fit(rows).forget(rows[5:17])


def _with_sample(model: TextClassifier, sample: Sample) -> TextClassifier:
    rows = sample.train.drop("weight")
    return model.fit(rows[:40], keep_sample=15).partial_fit(rows[40:]).forget(rows[3:6])


def _calibrated(model: TextClassifier, sample: Sample) -> TextClassifier:
    """With a temperature, and thresholds from scores of documents that were held out."""
    rows = sample.train.drop("weight")
    model.fit(rows)
    model.set_calibration(textnb.calibrate(model, rows))
    if sample.train.schema[sample.label] == pl.List(pl.String):
        return model
    held = textnb.cross_validate(model, rows, folds=4)
    return model.set_decision(textnb.choose_threshold(
        held, model.classes_.tolist()[-1], costs=(3.0, 1.0), calibration=model.calibration_))


# By name: how to fit, settings of the tokenizer, limits, and parameters of the model.
PLAIN: tuple[Fit, dict[str, Any], dict[str, Any], dict[str, Any]] = (_at_once, {}, {}, {})
SETTINGS: dict[str, tuple[Fit, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "plain": PLAIN,
    "binary": (_at_once, {}, {"binary": True}, {}),
    "pairs": (_at_once, {"ngram_range": (1, 2)}, {"min_df": 2}, {}),
    "class_weight": (_at_once, {}, {}, {"class_weight": "balanced"}),
    "sample_weight": (_weighted, {}, {}, {}),
    "calibrated": (_calibrated, {}, {}, {}),
    "selected": (_at_once, {}, {"min_df": 2, "max_df": 0.6, "max_features": 40}, {}),
    "few": (_at_once, {}, {"min_df": 3, "max_df": 20}, {}),
    "smoothing": (_at_once, {}, {}, {"l": 0.05}),
}
COUNTED = {
    "auto": (_at_once, {}, {}, {"l": "auto"}),
    "zero": (_at_once, {}, {}, {"l": 0.0}),
    "uniform": (_at_once, {}, {}, {"fit_prior": False}),
    "parts": (_in_parts, {}, {"min_df": 2}, {}),
    "merged": (_merged, {}, {"min_df": 2}, {}),
    "forgotten": (_forgotten, {}, {"min_df": 2}, {}),
    "loo_limits": (_at_once, {}, {"min_df": 2, "max_df": 0.7}, {}),
}
OWN: dict[str, dict[str, Any]] = {
    "complement": {"norm": (_at_once, {}, {}, {"norm": True})},
    "tfidf": {"norm": (_at_once, {}, {}, {"norm": True}),
              "counts": (_at_once, {}, {}, {"tf": "count", "idf": False, "unit_length": False})},
    "nblinear": {
        "log": (_at_once, {}, {}, {"loss": "log", "held_out": 0.0}),
        "sharp": (_at_once, {}, {}, {"tol": 1e-4, "C": 3.0, "held_out": 0.0}),
        "presence": (_at_once, {}, {}, {"tf": "presence", "idf": False, "power": 1.0, "C": 10.0}),
        "sampled": (_with_sample, {}, {}, {"idf": False}),
    },
    "nblr": {
        "hinge": (_at_once, {}, {}, {"loss": "hinge"}),
        "stopping": (_at_once, {}, {}, {"early_stopping": True, "max_iter": 20}),
        "beta": (_at_once, {}, {}, {"beta": 0.25, "C": 0.5, "binarize": False}),
    },
}
TOKENS: dict[str, dict[str, Any]] = {
    "char": {"analyzer": "char", "ngram_range": (2, 3)},
    "char_wb": {"analyzer": "char_wb", "ngram_range": (1, 3)},
    "turkish": {"lowercase": "tr"},
    "cased": {"lowercase": False, "pattern": r"\w+"},
    "accents": {"strip_accents": "unicode", "normalize": "NFKC"},
    "ascii": {"strip_accents": "ascii", "normalize": "NFD"},
    "marks": {"strip_accents": "marks"},
    "kept": {"keep": ("emoji", "symbols", "abbreviations", "punctuation")},
    "stops": {"stop_words": ("hello", "don't", "naïve"), "ngram_range": (1, 3)},
    "whole": {"unspaced": "whole"},
}
# Which model files are kept.
STORED = {
    *(("sms", model, "plain") for model in MODELS), ("sms", "multinomial", "calibrated"),
    ("sms", "bernoulli", "binary"), ("sms", "multinomial", "sample_weight"),
    ("sms", "multinomial", "auto"), ("sms", "complement", "norm"), ("sms", "nblinear", "sampled"),
    ("sms", "nblinear", "log"), ("sms", "multinomial", "kept"), ("sms", "multinomial", "char_wb"),
    ("news", "multinomial", "selected"), ("news", "nblinear", "calibrated"),
    ("chinese", "multinomial", "plain"), ("bengali", "bernoulli", "plain"),
    ("topics", "multinomial", "plain"), ("topics", "nblinear", "plain"),
    ("topics", "bernoulli", "calibrated"), ("tokens", "complement", "plain"),
    ("fields", "multinomial", "plain"), ("mail", "nblinear", "plain"),
}
# All settings of the first kind are quick; of the others only the plain one.
FIRST = "sms"
# Kinds that have all settings, models that learn lists of labels, and settings of other kinds.
WHOLE = (FIRST, "news", "topics")
OF_LISTS = (*COUNTING, "nblinear")
COMMON = ("plain", "binary", "pairs", "sample_weight", "calibrated", "selected", "auto", "parts",
          "merged", "forgotten", "sampled")


def _settings_of(kind: str, model: str) -> Iterator[tuple[str, Any]]:
    settings = SETTINGS | (COUNTED if model in COUNTING else {}) | OWN.get(model, {})
    some = settings if kind in WHOLE else COMMON
    if kind == "topics" and model not in OF_LISTS:
        some = ("plain",)
    return ((name, parts) for name, parts in settings.items() if name in some)


def _text_cell(kind: str, model: str, setting: str, parts: Any, *, slow: bool) -> Cell:
    fit, tokens, limits, parameters = parts
    key = (kind, model, setting)

    def make() -> Any:
        sample = KINDS[kind]()
        return fit(classifier(sample, model, tokens, limits, parameters), sample)

    return Cell(*key, make, lambda found: text_answers(KINDS[kind]())(found), slow=slow,
                stored=key in STORED)


def text_cells() -> Iterator[Cell]:
    for kind in ("sms", "news", "chinese", "bengali", "topics", "tokens", "fields"):
        for model in MODELS:
            for setting, parts in _settings_of(kind, model):
                slow = kind != FIRST and setting != "plain" and (
                    kind, model, setting) not in STORED
                yield _text_cell(kind, model, setting, parts, slow=slow)
    for kind in ("sms", "chinese", "bengali"):
        for setting, tokens in TOKENS.items():
            yield _text_cell(kind, "multinomial", setting, (_at_once, tokens, {}, {}),
                             slow=kind != FIRST)
    yield _text_cell("sms", "multinomial", "sklearn", (_sklearn_tokens, {}, {}, {}), slow=False)
    for model in COUNTING:
        yield _limited(model)
    for kind in ("sms", "news", "topics"):
        for model in MODELS:
            yield _folds(kind, model)


def _sklearn_tokens(model: TextClassifier, sample: Sample) -> TextClassifier:
    return model.set_params(tokenizer=Tokenizer.sklearn()).fit(sample.train.drop("weight"))


def _limited(model: str) -> Cell:
    """A model that leaves the rarest terms out, as they need more than the memory limit."""
    def make() -> Any:
        sample = samples.big()
        return classifier(sample, model, {}, {"memory_limit": "1M"}, {}).fit(
            sample.train.drop("weight"))

    return Cell("big", model, "memory_limit", make,
                lambda found: text_answers(samples.big(), learned=False)(found),
                slow=model != "multinomial")


def _folds(kind: str, model: str) -> Cell:
    """Scores of cross-validation, whose models are never seen."""
    def ask(found: TextClassifier) -> Answers:
        held = textnb.cross_validate(found, KINDS[kind]().train.drop("weight"), folds=3, seed=1)
        return {"scores": held.scores}

    return Cell(kind, model, "folds", lambda: classifier(KINDS[kind](), model, {}, {"min_df": 2}, {}),
                ask, slow=kind != FIRST)


# ------------------------------------------------------------------------------------ mail

@cache
def mail() -> Sample:
    """Messages as a table, and their tokens."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        samples.write_mail(folder)
        train = textnb.scan_mail(folder / "train", tokens=True).collect()
        test = textnb.scan_mail(folder / "test", tokens=True).collect()
    cut = pl.col("path").str.slice(-7)
    return Sample(train.with_columns(cut, weight=pl.Series([1.0] * train.height)),
                  test.with_columns(cut, label=pl.lit("ham")), text="tokens",
                  tokenizer=(("token_columns", ("tokens",)),))


def _mail_cell(model: str, parameters: Mapping[str, Any], columns: list[str] | None) -> Cell:
    def sample() -> Sample:
        rows = mail()
        return rows if columns is None else Sample(
            rows.train, rows.test, columns, tokenizer=(("field_prefix", ("subject",)),))

    key = ("mail", model, "plain" if columns is None else "columns")
    return Cell(*key, lambda: _at_once(classifier(sample(), model, {}, {}, parameters), sample()),
                lambda found: text_answers(sample())(found), stored=key in STORED)


def mail_cells() -> Iterator[Cell]:
    yield Cell("mail", "scan", "rows", lambda: None, lambda _: {
        name: mail().train[name] for name in mail().train.columns if name != "weight"})
    recipe = {"C": 10.0, "idf": False, "power": 1.0, "tf": "presence"}
    for model in MODELS:
        yield _mail_cell(model, recipe if model == "nblinear" else {}, None)
    for model in ("multinomial", "nblinear"):
        yield _mail_cell(model, {}, ["subject", "body"])
    yield Cell("mail", "filter", "verdicts", _make_filter, _judge)


def _make_filter() -> Any:
    with tempfile.TemporaryDirectory() as name:
        rows = mail()
        model = classifier(rows, "nblinear", {}, {}, {"idf": False, "tf": "presence"})
        _at_once(model, rows).save(Path(name) / "mail.textnb")
        return textnb.MailFilter.load(Path(name) / "mail.textnb")


def _judge(mail_filter: Any) -> Answers:
    with tempfile.TemporaryDirectory() as name:
        samples.write_mail(Path(name))
        files = sorted((Path(name) / "test").glob("*.eml"))
        verdicts = [mail_filter.judge(file.read_bytes()) for file in files]
    return {"status": [verdict.status for verdict in verdicts],
            "log-odds": [float(verdict.log_odds) for verdict in verdicts]}


# ---------------------------------------------------------------------------------- tables

def _densities() -> dict[str, dict[str, Callable[[], Any]]]:
    from sklearn.neighbors import KernelDensity

    kernel, bins = KernelDensity(bandwidth=0.8), textnb.HistogramDensity(bins=6)
    plugin = textnb.PlugInBayes
    return {"plugin": {
        "plain": lambda: plugin(kernel), "naive": lambda: plugin(kernel, naive=True),
        "search": lambda: plugin(kernel, naive=True, search={"bandwidth": [0.2, 0.5, 1.0]}, cv=3),
        "histogram": lambda: plugin(bins),
        "histogram_naive": lambda: plugin(bins, naive=True, priors=[0.2, 0.3, 0.5]),
    }}


def table_models() -> dict[str, dict[str, Callable[[], Any]]]:
    """Estimators of dense features, by setting."""
    lda, qda = textnb.LinearDiscriminantAnalysis, textnb.QuadraticDiscriminantAnalysis
    rda, gaussian = textnb.RegularizedDiscriminantAnalysis, textnb.GaussianNB
    return {
        "gaussian": {
            "plain": gaussian, "shared": lambda: gaussian(shared_variance=True),
            "priors": lambda: gaussian(priors=[0.5, 0.3, 0.2], var_smoothing=1e-3),
            "class_weight": lambda: gaussian(class_weight={"p": 2.0, "r": 0.5}),
            "balanced": lambda: gaussian(class_weight="balanced", shared_variance=True)},
        "lda": {
            "plain": lda, "diagonal": lambda: lda(covariance="diagonal"),
            "spherical": lambda: lda(covariance="spherical"), "shrunk": lambda: lda(shrinkage=0.3),
            "auto": lambda: lda(shrinkage="auto"),
            "priors": lambda: lda(priors=[0.5, 0.3, 0.2], divisor="n-K")},
        "qda": {
            "plain": qda, "divisor": lambda: qda(divisor="n-1", reg_param=0.1),
            "shrunk": lambda: qda(shrinkage=0.2), "auto": lambda: qda(shrinkage="auto"),
            "priors": lambda: qda(priors=[0.5, 0.3, 0.2])},
        "rda": {
            "plain": rda, "grid": lambda: rda(alpha=[0.0, 0.5, 1.0], gamma=[0.1, 0.9], cv=3),
            "linear": lambda: rda(alpha=0.0, gamma=1.0)},
        "centroid": {
            "plain": textnb.NearestCentroid,
            "priors": lambda: textnb.NearestCentroid(priors=[0.5, 0.3, 0.2])},
        **_densities(),
    }


FEATURES = ["a", "b", "c", "d"]
DISCRETE: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "multinomial": (textnb.MultinomialNB, ["n", "cat"]),
    "bernoulli": (textnb.BernoulliNB, ["n", "cat"]),
    "complement": (textnb.ComplementNB, ["n", "cat"]),
    "categorical": (textnb.CategoricalNB, ["cat"]),
    "nblinear": (textnb.NBLinear, ["n", "cat"]),
}


def table_answers(model: TableClassifier) -> Answers:
    rows = samples.table().test
    joint = model.predict_joint_log_proba(rows)
    answers = {
        "classes": model.classes_, "features": model.features_, "names": model.feature_names_,
        "joint": joint, "probabilities": model.predict_proba(rows),
        "margins": model.decision_function(rows),
        "predictions": model.predict(rows, probability=True, scores=True).drop(rows.columns),
        "score": model.score(rows), **estimator_answers(model.estimator_)}
    if hasattr(model.estimator_, "transform"):
        # An axis has no direction: its sign is LAPACK's.
        values = rows.select(model.features_).to_numpy()
        answers["axes"] = np.abs(model.estimator_.transform(values))
    return answers | _form(model)


def _form(model: Any) -> Answers:
    def ask() -> list[Any]:
        form = model.linear_form()
        return [np.asarray(form.weights), form.intercept, list(form.terms or ())]

    return _each({"form": ask})


def _learn_table(model: TableClassifier) -> TableClassifier:
    return model.fit(samples.table().train.drop("weight"))


def _learn_table_in_parts(model: TableClassifier) -> TableClassifier:
    rows = samples.table().train.drop("weight")
    return model.partial_fit(rows[:48]).partial_fit(rows[48:49]).partial_fit(rows[49:])


def table_cells() -> Iterator[Cell]:
    for model, settings in table_models().items():
        for setting, make in settings.items():
            yield Cell("table", model, setting, lambda make=make: _learn_table(
                TableClassifier(make(), features=FEATURES)), table_answers,
                slow=setting == "search", stored=setting != "search")
    for model in ("gaussian", "lda", "qda", "rda", "centroid"):
        make = table_models()[model]["plain"]
        yield Cell("table", model, "parts", lambda make=make: _learn_table_in_parts(
            TableClassifier(make(), features=FEATURES)), table_answers)
    for model, (kind, columns) in DISCRETE.items():
        yield Cell("table", model, "plain", lambda kind=kind, columns=columns: _learn_table(
            TableClassifier(kind(), features=columns)), table_answers)


# -------------------------------------------------------------------------------- matrices

def matrix_answers(estimator: Any) -> Answers:
    """What an estimator says of rows, sparse and dense."""
    rows = samples.counts()[3]
    if not hasattr(estimator, "predict"):
        return {"rows": estimator.transform(rows), **estimator_answers(estimator),
                "names": list(estimator.get_feature_names_out())}
    return {"classes": estimator.classes_, "dense": estimator.predict_joint_log_proba(rows),
            "predicted": estimator.predict(rows), **_each({
                "sparse": lambda: estimator.predict_joint_log_proba(sp.csr_array(rows))
                if estimator.__sklearn_tags__().input_tags.sparse else None,
                "probabilities": lambda: estimator.predict_proba(rows),
                "margins": lambda: estimator.decision_function(rows)}),
            **_form(estimator), **estimator_answers(estimator)}


def _fit_matrix(estimator: Any, way: str) -> Any:
    rows, labels, weights, _ = samples.counts()
    match way:
        case "dense":
            return estimator.fit(rows, labels)
        case "weights":
            return estimator.fit(sp.csr_array(rows), labels, sample_weight=weights)
        case "parts":
            estimator.partial_fit(rows[:11], labels[:11], classes=["x", "y", "z"])
            return estimator.partial_fit(sp.csr_array(rows[11:]), labels[11:])
        case "two":
            two = labels != "z"
            return estimator.fit(sp.csr_array(rows)[np.flatnonzero(two)], labels[two])
    return estimator.fit(sp.csr_array(rows), labels)


MATRIX: dict[str, Callable[[], Any]] = {
    "multinomial": textnb.MultinomialNB, "bernoulli": textnb.BernoulliNB,
    "complement": textnb.ComplementNB, "tfidf": textnb.TfidfComplementNB,
    "nblinear": textnb.NBLinear, "nblr": textnb.NBLogisticRegression,
    "categorical": lambda: textnb.CategoricalNB(min_categories=6),
    "ratio": textnb.LogCountRatio, "gaussian": lambda: textnb.GaussianNB(var_smoothing=1e-2),
    "lda": lambda: textnb.LinearDiscriminantAnalysis(shrinkage=0.2),
}
_MATRIX_OWN: dict[str, tuple[str, Callable[[], Any]]] = {
    "array": ("multinomial", lambda: textnb.MultinomialNB(l=np.arange(1, 26) / 10)),
    "prior": ("bernoulli", lambda: textnb.BernoulliNB(class_prior=[0.5, 0.2, 0.3], binarize=1.0)),
    "weighted": ("multinomial", lambda: textnb.MultinomialNB(class_weight={"x": 2.0, "z": 0.3})),
    "auto": ("multinomial", lambda: textnb.MultinomialNB(l="auto")),
    "automatic": ("bernoulli", lambda: textnb.BernoulliNB(l="auto")),
    "choice": ("complement", lambda: textnb.ComplementNB(l="auto")),
    "norm": ("complement", lambda: textnb.ComplementNB(norm=True, l=0.3)),
}


def matrix_cells() -> Iterator[Cell]:
    for model, make in MATRIX.items():
        ways = ["sparse", "dense", "two", "weights", "parts"]
        if model in ("gaussian", "lda"):
            ways = ["dense"]
        elif model in ("tfidf", "nblinear", "nblr", "ratio"):
            ways = ["sparse", "dense", "two"] + (["weights"] if model != "ratio" else [])
        for way in ways:
            yield Cell("matrix", model, way, lambda make=make, way=way: _fit_matrix(make(), way),
                       matrix_answers)
    for setting, (model, make) in _MATRIX_OWN.items():
        yield Cell("matrix", model, setting, lambda make=make: _fit_matrix(make(), "sparse"),
                   matrix_answers)


@cache
def all_cells() -> tuple[Cell, ...]:
    """Every cell of the record; names are unique."""
    cells = (*text_cells(), *mail_cells(), *table_cells(), *matrix_cells())
    assert len({cell.name for cell in cells}) == len(cells)
    return cells
