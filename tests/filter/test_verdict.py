"""The verdict on a message: that of the classifier, and the same from the message's terms alone."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import textnb
from tests.filter.models import ESTIMATORS, LINEAR, MESSAGES, ROWS, fitted, judged, saved
from tests.quick import judge
from textnb import Calibration, Decision, MailFilter, TextClassifier, Tokenizer, load
from textnb.errors import ParameterError
from textnb.files.require import Unsupported
from textnb.filter.quick import QuickFilter
from textnb.scoring.texts import score_batch
from textnb.storage.terms_reader import TermsReader

SAMPLES = Path(__file__).parents[2] / "pipelines" / "samples" / "mail"
PILLS = b"\n\ncheap pills"
SETTINGS = [
    {}, {"min_df": 5}, {"max_features": 6}, {"binary": True}, {"memory_limit": 1 << 30},
    {"tokenizer": Tokenizer(ngram_range=(1, 2), field_prefix=["subject"])},
    {"tokenizer": Tokenizer.sklearn(stop_words=["the"], strip_accents="unicode")},
    {"tokenizer": Tokenizer(analyzer="char_wb", ngram_range=(2, 4), normalize="NFKC")}]
# Models that the quick filter leaves to the whole one, and the reason that it gives.
REFUSED = [
    (textnb.MultinomialNB(l=0.0), {}, "sums that are not stored"),
    (textnb.BernoulliNB(l=0.0), {}, "sums that are not stored"),
    (textnb.MultinomialNB(class_weight="balanced"), {}, "class_weight"),
    (textnb.MultinomialNB(), {"vocabulary": ["pills", "noon"]}, "vocabulary"),
    (textnb.MultinomialNB(), {"tokenizer": Tokenizer(pattern="[a-z]+ ?[a-z]+")},
     "the tokenizer: pattern"),
    (textnb.MultinomialNB(class_prior=[1.0, 0.0]), {}, "a prior of 0"),
    (textnb.NBLinear(), {}, "inverse document frequencies")]


def check_bits(path, message):
    """The scores of `MailFilter` are the classifier's to the bit."""
    mail_filter = MailFilter.load(path)
    row = mail_filter._row(message)[0]
    expected, lengths = score_batch(load(path).fitted_, row)
    found, length = mail_filter._scores(row)
    assert found.tobytes() == expected.tobytes()
    assert length == pytest.approx(lengths[0], rel=1e-15)


def check_terms(path, message):
    """The terms that decide are the same, and add up to the log-odds if there are two classes."""
    whole = MailFilter.load(path)
    terms = whole.deciding_terms(message, 1000)
    with QuickFilter(str(path)) as quick:
        found = quick.deciding_terms(message, 1000)
        least = quick.deciding_terms(message, 1)
    assert dict(found) == pytest.approx(dict(terms), rel=1e-9, abs=1e-12)
    assert [abs(points) for _, points in found] == sorted(
        (abs(points) for _, points in found), reverse=True)
    assert least == found[:1]
    if len(whole.judging.learned) == 2 and terms:
        prior = whole.form.intercept
        divisor = 1.0 if whole.calibration is None else whole.calibration.temperatures(
            np.array([whole._scores(whole._row(message)[0])[1]]))[0]
        ham, spam = (list(whole.judging.learned).index(label) for label in ("ham", "spam"))
        assert sum(points for _, points in terms) + (prior[spam] - prior[ham]) / divisor == (
            pytest.approx(whole.judge(message).log_odds, rel=1e-9, abs=1e-9))


# The scores of every model


@pytest.mark.sweep(4, 70)
@pytest.mark.parametrize("estimator", [*ESTIMATORS, *LINEAR], ids=repr)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_both_filters_judge_as_the_classifier_scores(estimator, settings, tmp_path):
    of_all_documents = (textnb.NBLogisticRegression, textnb.NBLinear)
    if "memory_limit" in settings and (
            isinstance(estimator, of_all_documents) or estimator.l == "auto"):
        pytest.skip("it needs all documents")
    path = saved(tmp_path / "m.textnb", estimator, text=["subject", "body"], **settings)
    for message in MESSAGES:
        check_bits(path, message)
        judged(path, message)
        check_terms(path, message)


@pytest.mark.parametrize(("estimator", "settings", "reason"), REFUSED, ids=str)
def test_models_that_the_quick_filter_refuses_are_judged_by_the_other(
    estimator, settings, reason, tmp_path
):
    path = saved(tmp_path / "m.textnb", estimator, text=["subject", "body"], **settings)
    with pytest.raises(Unsupported, match=reason):
        judge(str(path), MESSAGES[0])
    for message in MESSAGES:
        check_bits(path, message)
        assert MailFilter.load(path).judge(message).status


@pytest.mark.sweep(4)
@pytest.mark.filterwarnings("ignore::textnb.errors.UnknownTermsWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_scores_from_single_terms_are_those_of_the_classifier(estimator, tmp_path):
    rng = random.Random(3)
    texts = [" ".join(f"w{rng.randrange(3000)}" for _ in range(rng.randrange(1, 60)))
             for _ in range(200)]
    # A class_prior has two.
    classes = "xyz" if estimator.get_params().get("class_prior") is None else "xy"
    model = TextClassifier(estimator, min_df=2).fit(texts, [rng.choice(classes) for _ in texts])
    model.save(tmp_path / "m.textnb")
    for text in [*texts[:40], "unheard of", "w7 " * 500]:
        words = text.split()
        expected = score_batch(model.fitted_, pl.DataFrame({"text": [text]}))[0][0]
        with TermsReader(tmp_path / "m.textnb") as reader:
            total = np.zeros(len(reader.labels))
            for term, weights in reader.weights(set(words)).items():
                count = words.count(term)
                above = reader.presence_above
                total += (count if above is None else count > above) * np.array(weights)
            found = total + np.array(reader.intercept)
        assert (np.abs(found - expected) <= 1e-12 * np.abs(expected) + 1e-15).all()


# Verdicts


def test_verdicts(tmp_path):
    path = saved(tmp_path / "m.textnb", text=["subject", "body"])
    verdicts = [judged(path, message) for message in MESSAGES[:6]]
    assert [verdict.status for verdict in verdicts] == [
        "ham", "unsure", "unsure", "spam", "unsure", "spam"]
    assert verdicts[1].reason == "no word of the message was learned"
    assert "empty message" in verdicts[2].errors
    assert verdicts[3].probability > 0.99
    extreme = judged(path, b"\n\n" + b"pills " * 5000)
    assert np.isfinite(extreme.log_odds)
    assert extreme.probability == 1.0


def test_too_little_learned_is_unsure(tmp_path):
    path = saved(tmp_path / "m.textnb", rows=ROWS.head(5))
    verdict = judged(path, PILLS)
    assert (verdict.status, verdict.reason) == (
        "unsure", "too little was learned to judge: 3 spam and 2 others, and 10 of each are needed")
    assert judged(path, PILLS, min_learned=2).status == "spam"


@pytest.mark.parametrize(("estimator", "calibrated", "measure"), [
    (textnb.MultinomialNB(), False, "log-odds"), (textnb.BernoulliNB(), False, "log-odds"),
    (textnb.ComplementNB(), False, "margin"), (textnb.ComplementNB(), True, "log-odds"),
    (textnb.NBLogisticRegression(), False, "log-odds"),
    (textnb.NBLogisticRegression(loss="hinge"), False, "margin")])
def test_a_verdict_says_what_its_number_is(estimator, calibrated, measure, tmp_path):
    model = fitted(estimator)
    if calibrated:
        model.set_calibration(Calibration(2.0))
    else:
        assert model.estimator_.difference_name == measure
    model.save(tmp_path / "m.textnb")
    assert judged(tmp_path / "m.textnb", PILLS).measure == measure


def test_thresholds_are_those_of_the_model_or_the_cutoffs(tmp_path):
    path, decided = saved(tmp_path / "m.textnb"), tmp_path / "decided.textnb"
    odds = judge(str(path), MESSAGES[0]).log_odds
    for low, high, expected in ((odds - 1, odds, "spam"), (odds - 1, odds + 1, "unsure"),
                                (odds, odds + 1, "ham")):
        load(path).set_decision(Decision({"spam": high, "ham": -low}, "spam")).save(decided)
        for mail_filter in (MailFilter.load(path, cutoffs=(low, high)), MailFilter.load(decided)):
            assert mail_filter.judge(MESSAGES[0]).status == expected
    for cutoffs in ((odds, odds), (odds - 1, odds * (1 + 1e-13)), (odds * (1 - 1e-13), odds + 1)):
        with pytest.raises(Unsupported, match="log-odds at a threshold"):
            judge(str(path), MESSAGES[0], cutoffs=cutoffs)


@pytest.mark.parametrize("calibration", [None, Calibration(2.0), Calibration(3.0, 0.4)])
@pytest.mark.parametrize("thresholds", [
    None, {"ham": 0.3, "spam": 2.0}, {"ham": float("-inf"), "spam": float("inf")}])
def test_both_filters_take_calibration_decision_and_cutoffs(calibration, thresholds, tmp_path):
    path, model = tmp_path / "m.textnb", fitted().set_calibration(calibration)
    if thresholds is not None:
        model.set_decision(Decision(thresholds, "spam"))
    model.save(path)
    for message in MESSAGES:
        check_terms(path, message)
        for judging in ({}, {"cutoffs": (-1.0, 1.0)}, {"min_learned": 100}, {"spam": "ham"},
                        {"cutoffs": (0.0, 50.0)}):
            judged(path, message, **judging)


def test_what_is_stale_is_named(tmp_path):
    path = tmp_path / "m.textnb"
    model = fitted().set_decision(Decision({"ham": 0.0, "spam": 0.0}, "spam"))

    def stale():
        model.save(path)
        whole = MailFilter.load(path)
        with QuickFilter(str(path)) as quick:
            assert quick.judging == whole.judging
        return {*whole.judging.stale}

    assert stale() == set()
    model.set_calibration(Calibration(2.0))
    assert stale() == {"decision"}
    model.partial_fit(ROWS)
    assert stale() == {"calibration", "decision"}
    model.set_decision(None)
    assert stale() == {"calibration"}


# Classes and columns


@pytest.mark.parametrize("cutoffs", [None, (0.0, 1.0)])
def test_a_decision_for_ham_does_not_make_ham_the_spam(cutoffs, tmp_path):
    path, model = tmp_path / "m.textnb", fitted()
    model.set_decision(Decision({"ham": 0.0, "spam": 0.0}, "ham")).save(path)
    for load_filter in (MailFilter.load, QuickFilter):
        with pytest.raises(ParameterError, match=r"for the class 'ham'.*spam='spam'"):
            load_filter(str(path), cutoffs=cutoffs)
    assert judged(path, PILLS, spam="spam", cutoffs=cutoffs).status == "spam"
    model.set_decision(Decision({"ham": 0.0, "spam": 0.0}, "spam")).save(path)
    assert judged(path, PILLS, cutoffs=cutoffs).status == "spam"


def test_the_class_that_is_spam_is_named_or_that_of_the_decision(tmp_path):
    path = tmp_path / "m.textnb"
    model = fitted(rows=ROWS.with_columns(pl.col("label").replace({"spam": "junk"})))
    model.save(path)
    for load_filter in (MailFilter.load, QuickFilter):
        with pytest.raises(ParameterError, match="no class 'spam'; its classes are 'ham', 'junk'"):
            load_filter(str(path))
    assert judged(path, PILLS, spam="junk").status == "spam"
    model.set_decision(Decision({"ham": 0.0, "junk": 0.0}, "junk")).save(path)
    assert MailFilter.load(path).judging.spam == "junk"
    for cutoffs in (None, (0.0, 1.0)):
        assert judged(path, PILLS, cutoffs=cutoffs).status == "spam"


def test_every_class_but_spam_is_ham(tmp_path):
    path = tmp_path / "m.textnb"
    model = fitted(rows=ROWS.with_columns(label=pl.when(pl.col("body").str.contains("noon"))
                                          .then(pl.lit("lunch")).otherwise("label")))
    for decision in (None, Decision({"ham": 0.0, "spam": 0.5, "lunch": -1.0}, "spam")):
        model.set_decision(decision).save(path)
        for message in MESSAGES:
            judged(path, message, min_learned=1)
            check_terms(path, message)
        for message, status in ((b"\n\nthe meeting at noon", "ham"), (PILLS, "spam")):
            assert judged(path, message, min_learned=1).status == status


def test_headers_are_columns(tmp_path):
    rows = pl.DataFrame({"x-mailer": ["bulk sender", "mutt"] * 12, "label": ["spam", "ham"] * 12})
    path = saved(tmp_path / "m.textnb", rows=rows, text="x-mailer")
    assert judged(path, b"X-Mailer: Bulk =?utf-8?q?sender?=\n\nhi").status == "spam"
    assert judged(path, b"X-Mailer: mutt\n\nbulk").status == "ham"


# What a filter reads


@pytest.mark.parametrize("remembered", [0, 1, 3, 7, 1_000])
def test_weights_that_are_remembered_change_no_verdict(remembered, tmp_path):
    path = saved(tmp_path / "m.textnb", textnb.NBLogisticRegression())
    with QuickFilter(str(path), min_learned=0, max_remembered=remembered) as mail_filter:
        for message in [*MESSAGES, *reversed(MESSAGES), *MESSAGES]:
            assert mail_filter.judge(message) == judge(str(path), message, min_learned=0)
            assert len(mail_filter._remembered) <= remembered


def test_of_a_large_model_little_is_read(tmp_path, monkeypatch):
    words = [f"{n * 7919 % 1000003:06}" for n in range(300_000)]
    path = saved(tmp_path / "m.textnb", rows=pl.DataFrame({
        "body": [" ".join(words[:150_000]), " ".join(words[150_000:])] * 10,
        "label": ["spam", "ham"] * 10}))
    lengths, pread = [], os.pread

    def recorded(descriptor, length, at):
        lengths.append(length)
        return pread(descriptor, length, at)

    monkeypatch.setattr(os, "pread", recorded)
    verdict = judge(str(path), b"Subject: x\n\n" + " ".join(words[:3]).encode())
    assert verdict.status == "spam"
    assert sum(lengths) < 1 << 20 < path.stat().st_size // 4


@pytest.mark.parametrize(("message", "reason"), [
    ("Subject: x\nContent-Type: text/plain; charset=utf-8\n\npills \U0001ccf0".encode(),
     "a character that Python may read differently"),
    (b"\n\n" + b"pills " * 200_000, "a long message")], ids=["unassigned", "long"])
def test_messages_that_the_quick_filter_refuses(message, reason, model):
    with pytest.raises(Unsupported, match=reason):
        judge(str(model), message)
    assert MailFilter.load(model).judge(message).status == "spam"


def test_the_whole_filter_starts_without_the_learning_libraries(tmp_path):
    code = ("import sys; from textnb.filter.mailfilter import MailFilter\n"
            f"MailFilter.load({str(saved(tmp_path / 'm.textnb'))!r}).judge(b'\\n\\npills')\n"
            "print(sorted({m.split('.')[0] for m in sys.modules} & {'scipy', 'sklearn', 'click', "
            "'pydantic', 'selectolax'}))")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")
