"""The default of mail: features, model, threshold; and what learning more does to its model."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import Run
from tests.quick import judge
from textnb import (
    MailFilter,
    NBLinear,
    TextClassifier,
    load,
    mail_classifier,
    scan_mail,
    validate_online,
)
from textnb.learning.settings import MAIL_OPTIONS, MAIL_RECIPE, mail_recipe
from textnb.mail.tokens import mail_tokens
from textnb.scoring import texts
from textnb.scoring.columns import Answers
from textnb.storage.textmodel import load_fitted
from textnb.storage.version2 import read, write

HAM = ["agenda", "lunch", "minutes", "noon", "report", "schedule", "table", "meeting"]
SPAM = ["cash", "cheap", "claim", "free", "money", "offer", "pills", "prize", "winner"]


def message(rng: random.Random, label: str, n: int) -> bytes:
    own, other = (SPAM, HAM) if label == "spam" else (HAM, SPAM)
    words = rng.choices(own, k=8) + rng.choices(other, k=rng.randrange(4)) + [f"w{n}"]
    return f"From: {label}{n % 9}@example.org\nSubject: {words[0]}\n\n{' '.join(words)}\n".encode()


@pytest.fixture
def box(folder: Path) -> Path:
    """80 messages of either class."""
    rng = random.Random(0)
    for label in ("ham", "spam"):
        (folder / "box" / label).mkdir(parents=True)
        for n in range(80):
            (folder / "box" / label / f"{n}.eml").write_bytes(message(rng, label, n))
    return Path("box")


@pytest.fixture
def model(run: Run, box: Path) -> Path:
    run("train", box, "-q", "-o", "m.textnb").checked()
    return Path("m.textnb")


@pytest.fixture
def new(folder: Path) -> bytes:
    raw = message(random.Random(7), "spam", 1000)
    (folder / "new.eml").write_bytes(raw)
    return raw


def settings_of(path: str) -> dict[str, Any]:
    fitted = load_fitted(path)
    return {**fitted.model.get_params(deep=False), **fitted.settings.parameters,
            "model": fitted.model.kind}


@pytest.mark.parametrize("arguments", [[], ["--read", "format=mail"], ["--label", "label"]])
def test_mail_is_learned_by_its_recipe(run: Run, box: Path, arguments: list[str]) -> None:
    ran = run("train", box, "-o", "m.textnb", *arguments).checked()
    assert MAIL_RECIPE.items() <= settings_of("m.textnb").items()
    assert MAIL_OPTIONS in ran.err
    described = run("describe", "m.textnb").checked().out
    assert MAIL_OPTIONS in " ".join(described.split())
    run("train", box, "-o", "same.textnb", *MAIL_OPTIONS.split(), *arguments,
        "--false-positives", "0.001").checked()
    assert Path("same.textnb").read_bytes() == Path("m.textnb").read_bytes()


@pytest.mark.parametrize("arguments", [
    ["--text", "text"], ["--model", "multinomial"], ["--ngrams", "1,1"], ["--min-df", "1"],
    ["--l", "1"], ["--binary"]])
def test_who_asks_for_something_gets_it(run: Run, box: Path, arguments: list[str]) -> None:
    ran = run("train", box, "-o", "m.textnb", *arguments).checked()
    settings = settings_of("m.textnb")
    assert (settings["model"], settings["text"]) == ("multinomial", "text")
    assert load_fitted("m.textnb").decision is None
    # Who names a model needs no hint.
    is_told = "so that mail is not learned by --text tokens" in ran.err
    assert is_told == ("--model" not in arguments)
    assert "recipe" not in run("describe", "m.textnb").checked().out


def test_other_rows_are_learned_as_ever(run: Run, folder: Path) -> None:
    rows = pl.DataFrame({"text": ["noon lunch", "cash prize"] * 9, "label": ["x", "y"] * 9})
    rows.write_parquet("r.parquet")
    run("train", "r.parquet", "-o", "m.textnb").checked()
    assert settings_of("m.textnb")["model"] == "multinomial"


def test_every_setting_of_a_model_takes_the_place_of_the_recipe() -> None:
    assert mail_recipe(["label", "input", "output", "weight", "quiet"]) == MAIL_RECIPE
    for name in ("text", "model", "kind", "tokenizer", "ngram_range", "max_features",
                 "class_weight", "C", "features", "sklearn", "memory_limit"):
        assert mail_recipe([name]) == {}


def test_a_job_of_mail(run: Run, box: Path, folder: Path) -> None:
    job = 'output = "{}"\n[input]\ntrain = "box"\nformat = "mail"\n[model]\n{}\n'
    for name, model in (("default", ""), ("asked", 'text = ["subject", "body"]')):
        (folder / f"{name}.toml").write_text(job.format(name, model))
        run("run", f"{name}.toml", "-q").checked()
    assert MAIL_RECIPE.items() <= settings_of("default/model.textnb").items()
    assert load_fitted("default/model.textnb").decision is not None
    asked = settings_of("asked/model.textnb")
    assert (asked["model"], asked["text"]) == ("multinomial", ["subject", "body"])


def test_python_has_the_recipe(box: Path, run: Run, model: Path) -> None:
    mine = mail_classifier().fit(scan_mail(box, tokens=True))
    assert isinstance(mine.estimator, NBLinear)
    fitted = load_fitted(model)
    assert np.array_equal(mine.fitted_.form.weights, fitted.form.weights)
    result = validate_online(mail_classifier(),
                             scan_mail(box, tokens=True).collect().sample(
                                 fraction=1.0, shuffle=True, seed=0), block=40)
    assert result.roca < 5.0


def test_a_threshold_is_chosen(run: Run, box: Path) -> None:
    ran = run("train", box, "-o", "m.textnb").checked()
    decision = load_fitted("m.textnb").decision
    assert decision is not None
    assert decision.positive == "spam"
    least, evidence = decision.thresholds["spam"], decision.evidence
    assert least >= 0.0
    assert decision.thresholds["ham"] >= 0.0
    # 80 messages of ham show 3.7 % at most, and the command says so.
    bound = 1.0 - 0.05 ** (1 / 80)
    assert evidence["false_positive_rate_bound"] == pytest.approx(bound)
    assert (evidence["max_false_positive_rate"], evidence["scored"]) == (0.001, "5 folds")
    assert evidence["false_positives"] == 0
    assert evidence["documents"] == 160
    assert f"at most {100 * bound:.4g} %" in ran.err
    assert "(0.1 % was asked)" in ran.err
    assert "was asked" in " ".join(run("describe", "m.textnb").checked().out.split())


def test_between_0_and_the_threshold_a_filter_is_unsure(
    run: Run, model: Path, new: bytes
) -> None:
    fitted = load_fitted(model)
    own = judge(str(model), new).log_odds
    assert own > 0.0
    for least, status in ((own / 2, "spam"), (own * 2, "unsure")):
        assert fitted.decision is not None
        decision = replace(fitted.decision, thresholds={"ham": 0.0, "spam": least})
        TextClassifier.of(fitted.with_decision(decision)).save("t.textnb")
        assert judge("t.textnb", new).status == status
        assert MailFilter.load("t.textnb").judge(new).status == status


def test_the_threshold_is_an_option(run: Run, box: Path) -> None:
    run("train", box, "-o", "m.textnb", "--false-positives", "0").checked()
    assert load_fitted("m.textnb").decision is None
    run("train", box, "-o", "m.textnb", "--false-positives", "0.2", "--spam-class", "ham").checked()
    decision = load_fitted("m.textnb").decision
    assert decision is not None
    assert decision.positive == "ham"
    assert decision.evidence["false_positive_rate_bound"] <= 0.2
    for arguments, message in (
            (["--false-positives", "2"], "--false-positives must be"),
            (["--spam-class", "x"], "--spam-class"),
            (["--model", "multinomial", "--false-positives", "0.1"], "is for --model nblinear"),
            (["--model", "multinomial", "--spam-class", "x"], "go with --false-positives"),
            (["--set", "confidence=1"], "confidence must be")):
        ran = run("train", box, "-o", "n.textnb", *arguments).checked(2)
        assert message in ran.err
    assert not Path("n.textnb").exists()


def test_without_a_class_spam_there_is_a_note(run: Run, box: Path) -> None:
    Path("box/spam").rename("box/work")
    ran = run("train", box, "-o", "m.textnb").checked()
    assert "no threshold was chosen" in ran.err
    assert "--spam-class" in ran.err
    assert load_fitted("m.textnb").decision is None


def test_with_few_messages_there_is_a_note(run: Run, folder: Path) -> None:
    for label in ("ham", "spam"):
        (folder / "few" / label).mkdir(parents=True)
        (folder / "few" / label / "1.eml").write_bytes(b"Subject: " + label.encode() + b"\n\nx")
    ran = run("train", "few", "-o", "m.textnb").checked()
    assert "no threshold was chosen" in ran.err
    assert load_fitted("m.textnb").decision is None


def test_an_update_counts_and_leaves_the_weights(run: Run, model: Path, new: bytes) -> None:
    before = load_fitted(model)
    ran = run("update", model, "new.eml", "--as", "spam").checked()
    after = load_fitted(model)
    assert "1 document was learned or forgotten since" in ran.err
    assert "textnb train" in ran.err
    assert np.array_equal(before.form.weights, after.form.weights)
    assert before.terms.equals(after.terms)
    assert after.calibration == before.calibration
    assert after.decision == before.decision
    more = after.counts.feature_count - before.counts.feature_count
    found = set(after.terms.filter(pl.Series(more[1] == 1)).to_list())
    known = set(before.terms.to_list())
    assert found == known & set(mail_tokens(new))
    assert found
    assert not more[0].any()
    assert (after.counts.class_count - before.counts.class_count).tolist() == [0, 1]


def test_forgetting_undoes_the_counts(run: Run, model: Path, new: bytes) -> None:
    before = load_fitted(model)
    run("update", model, "new.eml", "--as", "spam").checked()
    ran = run("forget", model, "new.eml", "--as", "spam").checked()
    after = load_fitted(model)
    assert after.counts.equals(before.counts)
    assert "2 documents were learned or forgotten since" in ran.err
    assert after.since_fit is not None
    assert after.since_fit.to_dict() == {
        "learned": 1, "forgotten": 1}
    run("train", "box", "-q", "-o", "again.textnb").checked()
    arrays = [read(path, 1 << 30)[1]
              for path in (model, "again.textnb")]
    assert arrays[0].keys() == arrays[1].keys()
    for name, array in arrays[0].items():
        assert array.dtype == arrays[1][name].dtype
        assert np.array_equal(array, arrays[1][name])


def test_one_message_and_a_folder_give_the_same_bytes(
    run: Run, model: Path, new: bytes, folder: Path
) -> None:
    (folder / "more").mkdir()
    (folder / "more/new.eml").write_bytes(new)
    for place in ("one.textnb", "all.textnb"):
        Path(place).write_bytes(model.read_bytes())
    for _ in range(2):
        run("update", "one.textnb", "new.eml", "--as", "spam").checked()
        run("update", "all.textnb", "more", "--as", "spam").checked()
        assert Path("one.textnb").read_bytes() == Path("all.textnb").read_bytes()


def test_every_answer_says_what_it_does_not_know(run: Run, model: Path, new: bytes) -> None:
    assert json.loads(run("filter", model, "--format", "json", input=new).out)["since_fit"] == 0
    run("update", model, "new.eml", "--as", "spam").checked()
    ran = run("filter", model, "--format", "json", input=new)
    assert json.loads(ran.out)["since_fit"] == 1
    assert "1 document was learned or forgotten since" in ran.err
    assert judge(str(model), new).since_fit == MailFilter.load(model).judge(new).since_fit == 1
    described = " ".join(run("describe", model).checked().out.split())
    assert "weights are those of its last fit" in described
    assert json.loads(run("describe", model, "--format", "json").out)["since_fit"] == {
        "learned": 1, "forgotten": 0}
    run("train", "box", "-q", "--warm-start", model, "-o", model).checked()
    assert load_fitted(model).since_fit is None


def test_what_the_weights_can_not_follow_is_refused(run: Run, model: Path, box: Path) -> None:
    ran = run("update", model, "box/ham", "--as", "work", "--new-class", "work").checked(1)
    assert "work" in ran.err
    ran = run("forget", model, "box/ham", "--as", "ham").checked(1)
    assert "every document of a class" in ran.err
    run("train", box, "-q", "--text", "tokens", "--model", "nblinear", "-o", "idf.textnb").checked()
    ran = run("update", "idf.textnb", "box/ham", "--as", "ham").checked(2)
    assert "learns from all documents at once" in ran.err
    assert load_fitted(model).since_fit is None


def test_only_what_is_judged_by_little_is_learned(run: Run, model: Path, box: Path) -> None:
    fitted, rows = load_fitted(model), scan_mail(box, tokens=True).collect()
    answers = texts.predict(fitted, rows, Answers(probability=True))
    p = answers["probability"].to_numpy()
    assert fitted.decision is not None
    least = np.array([fitted.decision.thresholds[one] for one in answers["label"]])
    sign = np.where(answers["predicted"] == answers["label"], 1, -1)
    surplus = sign * np.log(p / (1 - p)) - least
    margin = float(np.median(surplus))
    wrong = int((answers["decision"].ne_missing(answers["label"])).sum())
    expected = int(((surplus < margin) | answers["decision"].ne_missing(
        answers["label"]).to_numpy()).sum())
    assert expected > wrong
    ran = run("update", model, box, "--on-error", "--within", str(margin)).checked()
    since = load_fitted(model).since_fit
    assert since is not None
    assert since.learned == expected, ran.err
    for arguments, said in ((["--within", "1"], "--within goes with --on-error"),
                            (["--within", "-1", "--on-error"], "must be log-odds above 0")):
        assert said in run("update", model, box, *arguments).checked(2).err
    assert math.isfinite(margin)


def test_a_file_that_lies_is_refused(run: Run, model: Path, new: bytes) -> None:
    document, arrays = read(model, 1 << 30)
    for name in ("format", "version", "requires", "arrays"):
        del document[name]
    for since in ({"learned": -1, "forgotten": 2}, {"learned": 1}, {"learned": 0, "forgotten": 0}):
        write("lie.textnb", {**document, "since_fit": since}, arrays)
        assert run("describe", "lie.textnb").checked(1)
        assert run("filter", "lie.textnb", input=new).code == 3
    assert isinstance(load(model), TextClassifier)


def test_a_message_on_standard_input_is_explained(run: Run, model: Path, new: bytes) -> None:
    explained = json.loads(run("explain", model, "-", "--format", "json", input=new).checked().out)
    assert explained["filter"]["log_odds"] == pytest.approx(judge(str(model), new).log_odds)
