"""Cells of texts, of lists of tokens and of mail."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import textnb
from textnb import TextClassifier, Tokenizer

from . import samples
from .cell import Answers, Cell, each, estimator_answers
from .samples import Sample

MODELS: dict[str, type[Any]] = {
    "multinomial": textnb.MultinomialNB, "bernoulli": textnb.BernoulliNB,
    "complement": textnb.ComplementNB, "tfidf": textnb.TfidfComplementNB,
    "nblinear": textnb.NBLinear, "nblr": textnb.NBLogisticRegression,
}
COUNTING = [name for name, kind in MODELS.items() if kind.from_counts]
KINDS: dict[str, Callable[[], Sample]] = {
    "sms": samples.sms, "news": samples.news, "chinese": samples.chinese,
    "bengali": samples.bengali_news, "topics": samples.topics, "tokens": samples.tokens,
    "fields": samples.fields, "big": samples.big, "many": samples.many,
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
            **each({
                "joint": lambda: model.predict_joint_log_proba(rows),
                "predictions": lambda: model.predict(
                    rows, probability=True, scores=True, explain=3).drop(rows.columns),
                "best": lambda: model.predict(rows, top=2).drop(rows.columns),
                "top": lambda: model.top(6), "explain": lambda: model.explain(_first(sample), 5),
                "probabilities": lambda: model.predict_proba(rows),
                "margins": lambda: model.decision_function(rows),
                "score": lambda: model.score(rows),
            }),
            # Of lists of labels there is no estimator.
            **({} if sample.of_lists else estimator_answers(model.estimator_)),
        }
        if learned:
            answers |= each({"leave one out": lambda: textnb.leave_one_out(
                model, sample.train).scores})
        return answers

    return ask


def _first(sample: Sample) -> Any:
    row = sample.test.row(0, named=True)
    return row[sample.text] if isinstance(sample.text, str) else {
        name: row[name] or "" for name in sample.text}


Fit = Callable[[TextClassifier, Sample], TextClassifier]


def _at_once(model: TextClassifier, sample: Sample) -> TextClassifier:
    return model.fit(sample.learned)


def _weighted(model: TextClassifier, sample: Sample) -> TextClassifier:
    return model.fit(sample.train, sample_weight="weight")


def _in_parts(model: TextClassifier, sample: Sample) -> TextClassifier:
    rows, labels = sample.learned, sample.train[sample.label]
    if sample.of_lists:
        labels = labels.explode().drop_nulls()
    model.partial_fit(rows[:13], classes=labels.unique().sort().to_list())
    return model.partial_fit(rows[13:14]).partial_fit(rows[14:])


def _merged(model: TextClassifier, sample: Sample) -> TextClassifier:
    other = TextClassifier(**model.get_params(deep=False)).fit(sample.learned[20:])
    return model.fit(sample.learned[:20]) + other


def _forgotten(model: TextClassifier, sample: Sample) -> TextClassifier:
    return model.fit(sample.learned).forget(sample.learned[5:17])


def _with_sample(model: TextClassifier, sample: Sample) -> TextClassifier:
    rows = sample.learned
    return model.fit(rows[:40], keep_sample=15).partial_fit(rows[40:]).forget(rows[3:6])


def _calibrated(model: TextClassifier, sample: Sample) -> TextClassifier:
    """With a temperature, and thresholds from scores of documents that were held out."""
    rows = sample.learned
    model.fit(rows)
    model.set_calibration(textnb.calibrate(model, rows))
    if sample.of_lists:
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
    "unspaced_pairs": {"unspaced": "pairs"},
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
# Kinds that have all settings, and settings of other kinds.
WHOLE = (FIRST, "news", "topics")
COMMON = ("plain", "binary", "pairs", "sample_weight", "calibrated", "selected", "auto", "parts",
          "merged", "forgotten", "sampled")


def _settings_of(kind: str, model: str) -> Iterator[tuple[str, Any]]:
    settings = SETTINGS | (COUNTED if model in COUNTING else {}) | OWN.get(model, {})
    some = settings if kind in WHOLE else COMMON
    if kind == "topics" and not MODELS[model].learns_labels:
        some = ("plain",)
    return ((name, parts) for name, parts in settings.items() if name in some)


def _text_cell(
    kind: str, model: str, setting: str, parts: Any, *, slow: bool,
    answer: Callable[[Any], Answers] | None = None,
) -> Cell:
    fit, tokens, limits, parameters = parts
    key = (kind, model, setting)

    def make() -> Any:
        sample = KINDS[kind]()
        return fit(classifier(sample, model, tokens, limits, parameters), sample)

    return Cell(*key, make, answer or (lambda fitted: text_answers(KINDS[kind]())(fitted)),
                slow=slow, stored=key in STORED)


def text_cells() -> Iterator[Cell]:
    for kind in ("sms", "news", "chinese", "bengali", "topics", "tokens", "fields"):
        for model in MODELS:
            for setting, parts in _settings_of(kind, model):
                slow = kind != FIRST and setting != "plain" and (kind, model, setting) not in STORED
                yield _text_cell(kind, model, setting, parts, slow=slow)
    for kind in ("sms", "chinese", "bengali"):
        for setting, tokens in TOKENS.items():
            yield _text_cell(kind, "multinomial", setting, (_at_once, tokens, {}, {}),
                             slow=kind != FIRST)
    yield _text_cell("sms", "multinomial", "sklearn", (_sklearn_tokens, {}, {}, {}), slow=False)
    for model in COUNTING:
        yield _limited(model)
        yield _of_many(model)
    for kind in ("sms", "news", "topics"):
        for model in MODELS:
            yield _folds(kind, model)


def _sklearn_tokens(model: TextClassifier, sample: Sample) -> TextClassifier:
    return model.set_params(tokenizer=Tokenizer.sklearn()).fit(sample.learned)


def _limited(model: str) -> Cell:
    """A model that leaves the rarest terms out, as they need more than the memory limit."""
    def make() -> Any:
        return _at_once(classifier(samples.big(), model, {}, {"memory_limit": "1M"}, {}),
                        samples.big())

    return Cell("big", model, "memory_limit", make,
                lambda fitted: text_answers(samples.big(), learned=False)(fitted),
                slow=model != "multinomial")


def _of_many(model: str) -> Cell:
    """A model whose weights are so many that only some are stored: they are not made dense here."""
    def ask(fitted: TextClassifier) -> Answers:
        rows = samples.many().test
        return {"classes": fitted.classes_, "terms": fitted.vocabulary_,
                "joint": fitted.predict_joint_log_proba(rows),
                "best": fitted.predict(rows, explain=4, top=3).drop(rows.columns),
                "top": fitted.top(3, "class 007"),
                "leave one out": textnb.leave_one_out(fitted, samples.many().train).scores[:20]}

    return _text_cell("many", model, "plain", PLAIN, slow=model != "complement", answer=ask)


def _folds(kind: str, model: str) -> Cell:
    """Scores of cross-validation, whose models are never seen."""
    def ask(fitted: TextClassifier) -> Answers:
        held = textnb.cross_validate(fitted, KINDS[kind]().learned, folds=3, seed=1)
        return {"scores": held.scores}

    return Cell(kind, model, "folds", lambda: classifier(
        KINDS[kind](), model, {}, {"min_df": 2}, {}), ask, slow=kind != FIRST)


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
                lambda fitted: text_answers(sample())(fitted), stored=key in STORED)


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
