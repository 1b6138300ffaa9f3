"""The default of mail: features, model, threshold; and what learning more does to its model."""

import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import finished, start
from tests.frames.writing import write_files
from tests.quick import judge
from textnb import MailFilter, NBLinear, mail_classifier, scan_mail, validate_online
from textnb.learning.settings import MAIL_OPTIONS, MAIL_RECIPE
from textnb.mail.tokens import mail_tokens
from textnb.scoring import texts
from textnb.scoring.columns import Answers
from textnb.storage.textmodel import load_fitted
from textnb.storage.version2 import read

HAM = ["agenda", "lunch", "minutes", "noon", "report", "schedule", "table", "meeting"]
SPAM = ["cash", "cheap", "claim", "free", "money", "offer", "pills", "prize", "winner"]


def message(rng, label, n):
    own, other = (SPAM, HAM) if label == "spam" else (HAM, SPAM)
    words = rng.choices(own, k=8) + rng.choices(other, k=rng.randrange(4)) + [f"w{n}"]
    return f"From: {label}{n % 9}@example.org\nSubject: {words[0]}\n\n{' '.join(words)}\n".encode()


def write_box(folder):
    """80 messages of either class."""
    rng = random.Random(0)
    return write_files(folder / "box", {f"{label}/{n}.eml": message(rng, label, n)
                                        for label in ("ham", "spam") for n in range(80)})


@pytest.fixture
def box(folder):
    write_box(folder)
    return Path("box")


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """The file of a model of the mail."""
    folder = tmp_path_factory.mktemp("recipe")
    finished(start("train", write_box(folder), "-q", "-o", folder / "m.textnb")).checked()
    return (folder / "m.textnb").read_bytes()


@pytest.fixture
def model(learned, box):
    Path("m.textnb").write_bytes(learned)
    return Path("m.textnb")


@pytest.fixture
def new(folder):
    raw = message(random.Random(7), "spam", 1000)
    (folder / "new.eml").write_bytes(raw)
    return raw


def settings_of(path):
    fitted = load_fitted(path)
    return {**fitted.model.get_params(deep=False), **fitted.settings.parameters,
            "model": fitted.model.kind}


# The recipe


@pytest.mark.sweep(1)
@pytest.mark.parametrize("arguments", [[], ["--read", "format=mail"], ["--label", "label"]])
def test_mail_is_learned_by_its_recipe(run, box, arguments):
    ran = run("train", box, "-o", "m.textnb", *arguments).checked()
    assert MAIL_RECIPE.items() <= settings_of("m.textnb").items()
    assert MAIL_OPTIONS in ran.err
    assert MAIL_OPTIONS in " ".join(run("describe", "m.textnb").checked().out.split())
    run("train", box, "-o", "same.textnb", *MAIL_OPTIONS.split(), *arguments,
        "--false-positives", "0.001").checked()
    assert Path("same.textnb").read_bytes() == Path("m.textnb").read_bytes()


@pytest.mark.parametrize(("target", "note", "reads"), [
    ("python", "note: the model reads lists of tokens (tokens), so python reads tokens, not texts: "
               "textnb mail --tokens writes those of mail\n", "tokens"),
    ("polars", "", "lists of tokens")])
def test_an_export_says_what_makes_tokens(run, model, target, note, reads):
    ran = run("export", model, "--to", target, "-o", "out").checked()
    assert ran.err.startswith(f"{note}{target}, scores {reads}: ")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("arguments", [
    ["--text", "text"], ["--model", "multinomial"], ["--ngrams", "1,1"], ["--min-df", "1"],
    ["--l", "1"], ["--binary"]])
def test_who_asks_for_something_gets_it(run, box, arguments):
    ran = run("train", box, "-o", "m.textnb", *arguments).checked()
    settings = settings_of("m.textnb")
    assert (settings["model"], settings["text"]) == ("multinomial", "text")
    assert load_fitted("m.textnb").decision is None
    # Who names a model needs no hint.
    is_told = "so that mail is not learned by --text tokens" in ran.err
    assert is_told == ("--model" not in arguments)
    assert "recipe" not in run("describe", "m.textnb").checked().out


def test_other_rows_are_learned_as_ever(run, folder):
    rows = pl.DataFrame({"text": ["noon lunch", "cash prize"] * 9, "label": ["x", "y"] * 9})
    rows.write_parquet("r.parquet")
    run("train", "r.parquet", "-o", "m.textnb").checked()
    assert settings_of("m.textnb")["model"] == "multinomial"


def test_a_job_of_mail(run, box, folder):
    job = 'output = "{}"\n[input]\ntrain = "box"\nformat = "mail"\n[model]\n{}\n'
    for name, model in (("default", ""), ("asked", 'text = ["subject", "body"]')):
        (folder / f"{name}.toml").write_text(job.format(name, model))
        run("run", f"{name}.toml", "-q").checked()
    assert MAIL_RECIPE.items() <= settings_of("default/model.textnb").items()
    assert load_fitted("default/model.textnb").decision is not None
    asked = settings_of("asked/model.textnb")
    assert (asked["model"], asked["text"]) == ("multinomial", ["subject", "body"])


def test_python_has_the_recipe(model, box):
    rows = scan_mail(box, tokens=True).collect()
    mine = mail_classifier().fit(rows)
    assert isinstance(mine.estimator, NBLinear)
    assert np.array_equal(mine.fitted_.form.weights, load_fitted(model).form.weights)
    shuffled = rows.sample(fraction=1.0, shuffle=True, seed=0)
    assert validate_online(mail_classifier(), shuffled, block=40).roca < 5.0


# The threshold


def test_a_threshold_is_chosen(run, box):
    ran = run("train", box, "-o", "m.textnb").checked()
    decision = load_fitted("m.textnb").decision
    assert decision.positive == "spam"
    assert decision.thresholds["spam"] >= 0.0
    assert decision.thresholds["ham"] >= 0.0
    # 80 messages of ham show 3.7 % at most, and the command says so.
    bound, evidence = 1.0 - 0.05 ** (1 / 80), decision.evidence
    assert evidence["false_positive_rate_bound"] == pytest.approx(bound)
    assert (evidence["max_false_positive_rate"], evidence["scored"]) == (0.001, "5 folds")
    assert (evidence["false_positives"], evidence["documents"]) == (0, 160)
    assert f"at most {100 * bound:.4g} %" in ran.err
    assert "(0.1 % was asked)" in ran.err
    assert "was asked" in " ".join(run("describe", "m.textnb").checked().out.split())


def test_the_threshold_is_an_option(run, box):
    run("train", box, "-o", "m.textnb", "--false-positives", "0").checked()
    assert load_fitted("m.textnb").decision is None
    run("train", box, "-o", "m.textnb", "--false-positives", "0.2", "--spam-class", "ham").checked()
    decision = load_fitted("m.textnb").decision
    assert decision.positive == "ham"
    assert decision.evidence["false_positive_rate_bound"] <= 0.2
    for arguments, message in (
            ("--false-positives 2", "--false-positives must be"),
            ("--spam-class x", "--spam-class"),
            ("--model multinomial --false-positives 0.1", "is for --model nblinear"),
            ("--model multinomial --spam-class x", "go with --false-positives"),
            ("--set confidence=1", "confidence must be")):
        ran = run("train", box, "-o", "n.textnb", *arguments.split()).checked(2)
        assert message in ran.err
    assert not Path("n.textnb").exists()


@pytest.mark.parametrize(("place", "advice"), [
    # Without a class spam, and with few messages.
    ("work", "--spam-class"), ("few", "no threshold was chosen")])
def test_without_a_threshold_there_is_a_note(run, box, place, advice):
    if place == "work":
        Path("box/spam").rename("box/work")
    else:
        for path in [*box.glob("*/*.eml")]:
            if path.name != "1.eml":
                path.unlink()
    ran = run("train", box, "-o", "m.textnb").checked()
    assert "no threshold was chosen" in ran.err
    assert advice in ran.err
    assert load_fitted("m.textnb").decision is None


# Learning more


def test_an_update_counts_and_leaves_the_weights(run, model, new):
    before = load_fitted(model)
    assert judge(str(model), new).since_fit == MailFilter.load(model).judge(new).since_fit == 0
    ran = run("update", model, "new.eml", "--as", "spam").checked()
    after = load_fitted(model)
    assert "1 document was learned or forgotten since" in ran.err
    assert "textnb train" in ran.err
    assert np.array_equal(before.form.weights, after.form.weights)
    assert before.terms.equals(after.terms)
    assert after.calibration == before.calibration
    assert after.decision == before.decision
    more = after.counts.feature_count - before.counts.feature_count
    counted = set(after.terms.filter(pl.Series(more[1] == 1)).to_list())
    assert counted == set(before.terms.to_list()) & set(mail_tokens(new))
    assert counted
    assert not more[0].any()
    assert (after.counts.class_count - before.counts.class_count).tolist() == [0, 1]
    # Every answer says what it does not know.
    assert judge(str(model), new).since_fit == MailFilter.load(model).judge(new).since_fit == 1
    ran = run("filter", model, "--format", "json", input=new)
    assert (json.loads(ran.out)["since_fit"], ran.err) == (1, "")
    described = " ".join(run("describe", model).checked().out.split())
    assert "weights are those of its last fit" in described
    assert json.loads(run("describe", model, "--format", "json").out)["since_fit"] == {
        "learned": 1, "forgotten": 0}
    run("train", "box", "-q", "--warm-start", model, "-o", model).checked()
    assert load_fitted(model).since_fit is None


def test_forgetting_undoes_the_counts(run, model, new):
    before = load_fitted(model).counts
    run("update", model, "new.eml", "--as", "spam").checked()
    ran = run("forget", model, "new.eml", "--as", "spam").checked()
    assert "2 documents were learned or forgotten since" in ran.err
    after = load_fitted(model)
    assert after.counts.equals(before)
    assert after.since_fit.to_dict() == {"learned": 1, "forgotten": 1}
    run("train", "box", "-q", "-o", "again.textnb").checked()
    arrays, expected = (read(path, 1 << 30)[1] for path in (model, "again.textnb"))
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        assert array.dtype == expected[name].dtype
        assert np.array_equal(array, expected[name])


@pytest.mark.parametrize(("arguments", "code", "message"), [
    ("update m.textnb box/ham --as work --new-class work", 1, "work"),
    ("forget m.textnb box/ham --as ham", 1, "every document of a class"),
    ("update idf.textnb box/ham --as ham", 2, "learns from all documents at once"),
    ("update m.textnb box --within 1", 2, "--within goes with --on-error"),
    ("update m.textnb box --within -1 --on-error", 2, "must be log-odds above 0")])
def test_what_the_weights_can_not_follow_is_refused(run, model, learned, arguments, code, message):
    if "idf" in arguments:
        run("train", "box", "-q", "--text", "tokens", "--model", "nblinear", "-o",
            "idf.textnb").checked()
    assert message in run(*arguments.split()).checked(code).err
    assert model.read_bytes() == learned


def test_only_what_is_judged_by_little_is_learned(run, model, box):
    fitted, rows = load_fitted(model), scan_mail(box, tokens=True).collect()
    answers = texts.predict(fitted, rows, Answers(probability=True))
    p = answers["probability"].to_numpy()
    least = np.array([fitted.decision.thresholds[one] for one in answers["label"]])
    sign = np.where(answers["predicted"] == answers["label"], 1, -1)
    surplus = sign * np.log(p / (1 - p)) - least
    margin = float(np.median(surplus))
    assert np.isfinite(margin)
    wrong = answers["decision"].ne_missing(answers["label"]).to_numpy()
    expected = int(((surplus < margin) | wrong).sum())
    assert expected > wrong.sum()
    ran = run("update", model, box, "--on-error", "--within", str(margin)).checked()
    assert load_fitted(model).since_fit.learned == expected, ran.err


# A sample of rows is kept: a correction changes verdicts


@pytest.fixture
def sampled(run, box):
    run("train", box, "-q", "--keep-sample", "100", "-o", "m.textnb").checked()
    return Path("m.textnb")


def log_odds(run, model, raw):
    return float(json.loads(run("filter", model, "--format", "json", input=raw).out)["log_odds"])


def test_a_correction_changes_the_verdict(run, sampled, new):
    described = json.loads(run("describe", sampled, "--format", "json").checked().out)
    assert described["sample"] == {"rows": 100, "most": 100}
    before, terms = log_odds(run, sampled, new), load_fitted(sampled).terms
    ran = run("update", sampled, "new.eml", "--as", "ham").checked()
    assert "the model's calibration is stale" in ran.err
    assert "since, and do not change" not in ran.err
    assert log_odds(run, sampled, new) < before - 1
    after = load_fitted(sampled)
    assert after.since_fit is None
    assert "w1000" in after.terms
    run("forget", sampled, "new.eml", "--as", "ham").checked()
    assert load_fitted(sampled).terms.equals(terms)
    # Near enough for the tolerance of the solver.
    assert abs(log_odds(run, sampled, new) - before) < 0.25 * abs(before)
    assert sampled.stat().st_mode & 0o777 == 0o600


def test_a_ledger_and_a_new_threshold(run, sampled, new):
    run("update", sampled, "new.eml", "--as", "ham", "--ledger").checked()
    weights = load_fitted(sampled).form.weights
    run("update", sampled, "new.eml", "--as", "spam").checked()
    fitted = load_fitted(sampled)
    assert not np.array_equal(weights, fitted.form.weights)
    assert fitted.sample is not None
    assert fitted.decision is not None
    assert fitted.decision.stale
