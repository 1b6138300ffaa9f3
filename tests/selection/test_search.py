"""The search for settings: its trials against cross-validation, its order, and what it promises."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import Run, run
from textnb import (
    BernoulliNB,
    ComplementNB,
    DataError,
    MultinomialNB,
    NBLinear,
    ParameterError,
    SchemaError,
    TextClassifier,
    Tokenizer,
    cross_validate,
    load,
    tune,
)
from textnb.selection.candidates import Candidate, first_candidates, is_spaceless, neighbours
from textnb.selection.metric import Metric
from textnb.selection.search import _schedule, search
from textnb.selection.splits import split
from textnb.selection.trials import Trials

__all__ = ["run"]

PAIRS = Tokenizer(ngram_range=(1, 2))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Words of two topics, some of them shared, and labels that are not always right."""
    random = np.random.default_rng(5)
    topics = random.integers(2, size=300)
    words = [f"{'ab'[topic if random.random() < 0.7 else 1 - topic]}{n}"
             for topic in topics for n in random.integers(30, size=8)]
    texts = [" ".join(words[8 * row:8 * row + 8]) for row in range(300)]
    return pl.DataFrame({"text": texts, "label": [["x", "y"][topic] for topic in topics],
                         "author": [f"author {row % 40}" for row in range(300)],
                         "day": list(range(300))})


@pytest.mark.parametrize("estimator", [
    MultinomialNB(l=0.1), ComplementNB(l=0.1), BernoulliNB(l=0.03), NBLinear(held_out=0.0)])
@pytest.mark.parametrize("time", [None, "day"])
def test_a_trial_is_a_cross_validation(
    rows: pl.DataFrame, estimator: Any, time: str | None
) -> None:
    model = TextClassifier(estimator, tokenizer=PAIRS, min_df=2)
    held = cross_validate(model, rows, folds=3, time=time)
    made = split(rows.lazy(), "label", folds=3, time=time)
    place = Trials(rows, ["text"], "label", made, Metric("accuracy"), 0)
    judged = place.judge(Candidate(PAIRS, 2, estimator), len(place.rungs) - 1)
    temperature = 1.0 if judged.calibration is None else judged.calibration.temperature
    assert judged.value == held.accuracy
    assert np.array_equal(judged.scores, held.scores / temperature)


def test_the_same_bits_again(rows: pl.DataFrame, tmp_path: Path) -> None:
    first, second = tune(rows, trials=12, seed=3), tune(rows.lazy(), trials=12, seed=3)
    assert first.tuned_.trials.drop("seconds").equals(second.tuned_.trials.drop("seconds"))
    assert vars(first.tuned_.estimate) == vars(second.tuned_.estimate)
    for name, model in (("first", first), ("second", second)):
        model.save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_the_code_makes_the_model(rows: pl.DataFrame) -> None:
    for metric in ("accuracy", "log-loss"):
        model = tune(rows, trials=14, metric=metric)
        names: dict[str, Any] = {"rows": rows}
        exec(model.tuned_.code, names)
        made = names["model"]
        assert np.array_equal(made.predict_proba(rows["text"].to_list()),
                              model.predict_proba(rows["text"].to_list()))
        assert made.calibration_ == model.calibration_


def test_every_candidate_has_code_that_makes_it() -> None:
    import textnb

    found = first_candidates(True)
    found += [beside for each in found for beside in neighbours(each, 2)]
    for candidate in found:
        made = eval(candidate.code(["text"], "label"), vars(textnb) | {
            name: getattr(textnb, name) for name in textnb.__all__})
        assert Candidate(made.tokenizer, made.min_df, made.estimator).key == (
            candidate.key)


def test_no_trial_sees_the_rows_of_the_estimate(rows: pl.DataFrame) -> None:
    """Texts tell an author, and each author has one label: only new authors tell what it is worth.
    """
    known = rows.with_columns(
        text=pl.format("signed{}", pl.col("author").str.replace("author ", "")),
        label=(pl.col("author").str.slice(7).cast(pl.Int64) % 2 == 0).cast(pl.String))
    assert tune(known, trials=3).tuned_.estimate.value == 1.0
    assert tune(known, trials=3, groups="author").tuned_.estimate.value < 0.8


def test_trials_and_estimate_share_the_rows(rows: pl.DataFrame) -> None:
    found = tune(rows, trials=3, time="day").tuned_
    assert found.estimate.documents + max(found.trials["documents"]) == rows.height
    assert found.estimate.low <= found.estimate.value <= found.estimate.high


def test_the_order_of_trials_knows_no_budget(rows: pl.DataFrame) -> None:
    short, long = (search(rows, trials=n).trials.drop("seconds") for n in (5, 16))
    assert short.equals(long.head(5))
    timed = search(rows, seconds=1e-6).trials
    assert timed.drop("seconds").equals(long.head(timed.height))


def test_a_lead_that_chance_can_make_keeps_the_defaults(run: Run, rows: pl.DataFrame) -> None:
    random = np.random.default_rng(0)
    noise = rows.with_columns(label=pl.Series(random.choice(["x", "y"], rows.height)))
    found = search(noise, trials=16)
    values = found.trials["value"].to_list()
    assert found.lead is not None
    assert found.lead.settings == found.trials.filter("best")["settings"][-1] != "nblinear"
    assert found.lead.value == pytest.approx(max(values) - values[0])
    assert found.lead.low <= 0 < found.lead.value < found.lead.high
    assert found.settings.describe() == "nblinear"
    assert found.estimate is found.default
    noise.write_parquet("noise.parquet")
    shown = run("tune", "noise.parquet", "--trials", 16, "-o", "m.textnb").checked().out
    assert f"best of 16 trials: {found.lead.settings}\n" in shown
    assert "which chance can do: the defaults are kept" in shown
    assert "model = TextClassifier(NBLinear()).fit(rows)" in shown


def test_a_sure_lead_takes_the_place_of_the_defaults() -> None:
    """Only the order of words tells the labels apart."""
    random = np.random.default_rng(0)
    labels = random.choice(["x", "y"], 400)
    texts = [" ".join(f"{'up down' if label == 'x' else 'down up'} w{n}"
                      for n in random.integers(40, size=3)) for label in labels]
    found = search(pl.DataFrame({"text": texts, "label": labels}), trials=4)
    assert found.lead is not None
    assert found.lead.low > 0
    assert found.settings.tokenizer == PAIRS
    assert found.to_dict()["lead"]["settings"] == found.settings.describe()


def test_settings_are_dropped_on_few_rows_and_judged_on_all() -> None:
    first = first_candidates(False)
    order = _schedule(first, [100, 300, 900], 1, 0)
    candidate, rung = next(order)
    seen = []
    for _ in range(40):
        seen.append((candidate, rung))
        candidate, rung = order.send(candidate.model.l)
    assert [rung for each, rung in seen if each is first[0]] == [0, 1, 2]
    rivals = len(first) - 1
    assert [rung for _, rung in seen[3:]].count(0) == rivals
    # A third goes on, and a third of those.
    assert [rung for _, rung in seen[3 + rivals:]][:7] == [1] * 5 + [2] * 2
    keys = [(each.key, rung) for each, rung in seen]
    assert len(keys) == len(set(keys))


def test_pairs_of_words_are_judged_on_all_rows() -> None:
    first = first_candidates(False)
    order = _schedule(first, [100, 300, 900], 1, 0)
    candidate, rung = next(order)
    judged_on_all = []
    for _ in range(3 + 13 + 5 + 3):
        if rung == 2 and candidate is not first[0]:
            judged_on_all.append(candidate)
        # Pairs are worst on few rows, and the later ones of them are the better ones.
        candidate, rung = order.send(first.index(candidate) / 100 - candidate.has_word_ngrams)
    assert len(judged_on_all) == 3
    assert [each for each in judged_on_all if each.has_word_ngrams] == [first[-1]]


def test_settings_that_can_not_be_learned_have_no_value() -> None:
    """All words are one character long: the default pattern has no term."""
    rows = pl.DataFrame({"text": ["a b", "b a", "c d", "d c"] * 10,
                         "label": ["x", "x", "y", "y"] * 10})
    found = search(rows, trials=14)
    assert found.trials.row(0, named=True)["value"] is None
    assert "pattern" in found.settings.changes()["tokenizer"]
    assert found.estimate.value == 1.0
    assert np.isnan(found.default.value)


def test_nothing_can_be_learned() -> None:
    rows = pl.DataFrame({"text": ["-", "+"] * 20, "label": ["x", "y"] * 20})
    with pytest.raises(ParameterError, match=r"no settings could be learned .* empty vocabulary"):
        search(rows, trials=2)
    # The first part in time, from which the first fold's model learns, has one class.
    rows = pl.DataFrame({"text": ["aa bb", "cc dd"] * 30, "label": ["x"] * 30 + ["y", "x"] * 15,
                         "day": range(60)})
    with (pytest.warns(UserWarning, match="no document of it"),
          pytest.raises(ParameterError, match=r"no settings could be learned .* got one class")):
        search(rows, trials=2, time="day")


def test_texts_may_be_categories(rows: pl.DataFrame) -> None:
    found = search(rows.with_columns(pl.col("text").cast(pl.Categorical)), trials=2)
    assert found.trials.drop("seconds").equals(search(rows, trials=2).trials.drop("seconds"))


def test_too_few_rows_to_set_a_part_of_them_apart(rows: pl.DataFrame) -> None:
    with pytest.raises(ParameterError, match="needs 5 rows of the largest class, or more"):
        search(rows.head(6), folds=2)
    with pytest.raises(ParameterError, match="needs 5 groups of 'label', of about equal sizes"):
        search(rows, groups="label")
    with pytest.raises(ParameterError, match="needs 6 different times in 'day'"):
        search(rows.with_columns(pl.col("day") % 3), time="day")
    last = pl.DataFrame({"text": "aa", "label": ["x"] * 50 + ["y"] * 2, "day": range(52)})
    with (pytest.warns(UserWarning, match="no document of it"),
          pytest.raises(DataError, match=r"all others are labelled 'x': .* or leave out time")):
        search(last, time="day")


@pytest.mark.parametrize(("settings", "error", "message"), [
    ({"metric": "f1"}, ParameterError, "metric: unknown value 'f1'"),
    ({"metric": "accuracy=1"}, ParameterError, "takes no number"),
    ({"metric": "recall@fpr"}, ParameterError, "needs a rate in"),
    ({"metric": "recall@fpr=2", "positive": "x"}, ParameterError, "needs a rate in"),
    ({"metric": "recall@fpr=0.1"}, ParameterError, "name it with positive"),
    ({"metric": "recall@fpr=0.1", "positive": "z"}, ParameterError, "positive: unknown value 'z'"),
    ({"positive": "x"}, ParameterError, "metrics of one class"),
    ({"trials": 0}, ParameterError, "trials must be"),
    ({"seconds": 0}, ParameterError, "seconds must be"),
    ({"folds": 1}, ParameterError, "folds must be"),
    ({"groups": "nope"}, SchemaError, "no column 'nope'"),
    ({"text": "nope"}, SchemaError, "no column 'nope'"),
    ({"text": "words"}, SchemaError, "'words' holds lists of tokens, and a search chooses"),
    ({"time": "day", "seed": 1}, ParameterError, "has no effect with time")])
def test_what_is_refused(
    rows: pl.DataFrame, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tune(rows.with_columns(words=pl.col("text").str.split(" ")), **{"trials": 1, **settings})


def test_null_labels_are_refused(rows: pl.DataFrame) -> None:
    with pytest.raises(DataError, match="null"):
        tune(rows.with_columns(label=pl.when(pl.col("day") > 3).then("label")), trials=1)


def test_metrics_are_those_of_scikit_learn(rows: pl.DataFrame) -> None:
    from sklearn.metrics import accuracy_score, f1_score, log_loss

    held = cross_validate(TextClassifier(), rows, folds=3)
    scores, codes, classes = held.scores, held.actual, held.classes.tolist()
    probability = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    predicted = scores.argmax(axis=1)
    assert Metric.of("accuracy").value(scores, codes, classes) == accuracy_score(codes, predicted)
    assert Metric.of("macro-f1").value(scores, codes, classes) == f1_score(
        codes, predicted, average="macro")
    assert Metric.of("log-loss").value(scores, codes, classes) == pytest.approx(
        log_loss(codes, probability), rel=1e-12)
    recall = Metric.of("recall@fpr=0.1", "y").value(scores, codes, classes)
    precision = Metric.of(f"precision@recall={recall}", "y").value(scores, codes, classes)
    # By hand: every threshold.
    odds, positive = scores[:, 1] - scores[:, 0], codes == 1
    rates = [((odds >= at)[positive].mean(), (odds >= at)[~positive].mean(),
              positive[odds >= at].mean()) for at in odds]
    assert recall == max(true for true, false, _ in rates if false <= 0.1)
    assert precision == max(right for true, _, right in rates if true >= recall)


def test_scripts_without_spaces_are_seen() -> None:
    assert is_spaceless(pl.Series(["房间很大", "room 305"]))
    assert not is_spaceless(pl.Series(["The sign says 大", "an English text"]))
    assert not is_spaceless(pl.Series(["", None, "12"]))


def test_a_classifier_chooses_its_settings(rows: pl.DataFrame, tmp_path: Path) -> None:
    seen: list[int] = []
    model = TextClassifier("auto").fit(rows, progress=seen.append)
    # It ends before where no neighbour is left.
    assert 15 < len(seen) == model.tuned_.trials.height <= 40
    assert type(model.estimator_).__name__ in repr(model.tuned_.fitted)
    model.save(tmp_path / "auto.textnb")
    texts = rows["text"].to_list()
    assert load(tmp_path / "auto.textnb").predict(texts).tolist() == model.predict(texts).tolist()
    with pytest.raises(ParameterError, match="changed since: min_df from 1 to 2"):
        model.set_params(min_df=2).save(tmp_path / "auto.textnb")


def test_what_a_classifier_that_chooses_refuses(rows: pl.DataFrame) -> None:
    with pytest.raises(ParameterError, match="leave min_df at the default"):
        TextClassifier("auto", min_df=2).fit(rows)
    with pytest.raises(ParameterError, match="does not support sample_weight"):
        TextClassifier("auto").fit(rows, sample_weight="day")
    with pytest.raises(ParameterError, match="chosen by fit, from all documents"):
        TextClassifier("auto").partial_fit(rows)
    with pytest.raises(ParameterError, match="or 'auto'; got 'automatic'"):
        TextClassifier("automatic").fit(rows)  # type: ignore[arg-type]  # what a typo gives
    with pytest.raises(ParameterError, match="estimator='auto' has no parameters"):
        TextClassifier("auto").set_params(estimator__C=3.0)


def test_what_was_found_goes_with_its_model(
    rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textnb.selection.search.TRIALS", 2)
    model = TextClassifier("auto").fit(rows)
    assert model.tuned_.trials.height == 2
    model.set_params(estimator=NBLinear()).fit(rows)
    assert not hasattr(model, "tuned_")


def test_labels_beside_the_texts(rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textnb.selection.search.TRIALS", 2)
    model = TextClassifier("auto").fit(rows.select("text"), rows["label"].to_numpy())
    assert isinstance(model.predict(rows.select("text")), np.ndarray)


def test_the_command(run: Run, rows: pl.DataFrame, tmp_path: Path) -> None:
    rows.write_parquet("rows.parquet")
    ran = run("tune", "rows.parquet", "--trials", 12, "--table", "trials.parquet", "-o",
              "best.textnb").checked()
    assert ran.err.count("\n") == 12
    command = ran.out.splitlines()[-1]
    assert run("tune", "rows.parquet", "--trials", 12, "--format", "json", "-q", "-o",
               "again.textnb").checked().err == ""
    assert Path("best.textnb").read_bytes() == Path("again.textnb").read_bytes()
    table = pl.read_parquet("trials.parquet")
    assert table.height == 12
    assert table["best"].any()
    # The command that is shown trains the same weights; a temperature is textnb calibrate's.
    run(*shlex.split(command.replace("best.textnb", "made.textnb"))[1:]).checked()
    best, made = load("best.textnb"), load("made.textnb")
    assert np.array_equal(best.linear_form().weights, made.linear_form().weights)


def test_the_command_reads_as_the_search_did(run: Run, rows: pl.DataFrame) -> None:
    rows.rename({"label": "the label"}).write_csv("rows.csv", separator=";")
    ran = run("tune", "rows.csv", "--read", "separator=;", "--label", "the label",
              "--where", "author <> 'author 3'", "--read", "on_unreadable=skip", "--trials", 1,
              "-q",
              "-o", "m.textnb").checked()
    command = ran.out.splitlines()[-1].replace("m.textnb", "made.textnb")
    run(*shlex.split(command)[1:]).checked()
    assert Path("made.textnb").read_bytes() == Path("m.textnb").read_bytes()


def test_a_command_that_is_timed_says_how_it_is_repeated(run: Run, rows: pl.DataFrame) -> None:
    rows.write_parquet("rows.parquet")
    ran = run("tune", "rows.parquet", "--seconds", 0.001, "-o", "m.textnb").checked()
    assert "--trials 1 repeats this search" in ran.out


def test_what_the_command_refuses(run: Run, rows: pl.DataFrame) -> None:
    rows.write_parquet("rows.parquet")
    assert "is also what is read" in run(
        "tune", "rows.parquet", "-o", "rows.parquet").checked(2).err
    assert "must be different files; got m.textnb and m.textnb" in run(
        "tune", "rows.parquet", "-o", "m.textnb", "--table", "m.textnb").checked(2).err
    assert "name it with --positive" in run(
        "tune", "rows.parquet", "--metric", "recall@fpr=0.1", "-o", "m.textnb").checked(2).err
    assert "'author', 'day'" in run(
        "tune", "rows.parquet", "--groups", "nope", "-o", "m.textnb").checked(1).err
    assert not Path("m.textnb").exists()
