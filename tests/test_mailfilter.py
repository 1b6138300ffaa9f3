"""One message at a time, with the model's own scores."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from textnb import (
    BernoulliNB,
    Calibration,
    ComplementNB,
    Decision,
    MailFilter,
    ModelFileError,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    SourceError,
    TableClassifier,
    TextClassifier,
    Tokenizer,
    load,
)
from textnb.scoring.texts import score_batch

ROWS = pl.DataFrame({
    "subject": ["cheap pills", "lunch", "you won", "minutes", None, "re: lunch"] * 4,
    "body": ["buy cheap pills now", "see you at noon", "a prize, a prize", "of the meeting",
             "pills pills pills", "noon it is"] * 4,
    "label": ["spam", "ham", "spam", "ham", "spam", "ham"] * 4,
})
MESSAGES = [b"Subject: cheap lunch\n\nsee the pills at noon", b"Subject: x\n\nnothing known here",
            b"", b"Subject: you won\n\nyou won a prize a prize a prize", b"\xff\xfe\0junk",
            b"To: a\n\npills"]


def columns_of(message: bytes) -> dict[str, str]:
    head, _, body = message.decode("latin-1").partition("\n\n")
    subject = head.removeprefix("Subject: ") if head.startswith("Subject: ") else ""
    return {"subject": subject, "body": body}


@pytest.mark.parametrize("estimator", [
    MultinomialNB(), MultinomialNB(l=0.0), MultinomialNB(l=0.01, fit_prior=False), BernoulliNB(),
    BernoulliNB(l=0.0), BernoulliNB(binarize=1.0), ComplementNB(), ComplementNB(norm=True),
    NBLogisticRegression(), NBLogisticRegression(binarize=False)], ids=repr)
@pytest.mark.parametrize("settings", [
    {}, {"min_df": 5}, {"max_features": 6}, {"binary": True},
    {"vocabulary": ["pills", "noon", "zebra"]},
    {"tokenizer": Tokenizer(ngram_range=(1, 2), field_prefix=["subject"])}], ids=str)
def test_scores_are_the_classifiers_to_the_bit(
    estimator: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    model = TextClassifier(estimator, text=["subject", "body"], **settings).fit(ROWS)
    model.save(tmp_path / "m.textnb")
    mail_filter = MailFilter.load(tmp_path / "m.textnb", least_learned=0)
    for message in MESSAGES[:2] + MESSAGES[3:4]:
        row = pl.DataFrame([columns_of(message)])
        expected, lengths = score_batch(model.fitted_, row)
        found, length = mail_filter._scores(row)
        assert found.tobytes() == expected.tobytes()
        assert length == lengths[0]


def test_real_messages(corpus: Callable[[str], pl.LazyFrame], tmp_path: Path) -> None:
    rows = corpus("sms_spam").collect()
    model = TextClassifier(MultinomialNB(l=0.1)).fit(rows.head(4000))
    model.set_calibration(Calibration(3.0, 0.4))
    model.set_decision(Decision({"ham": 1.0, "spam": 2.0}, "spam"))
    model.save(tmp_path / "sms.textnb")
    mail_filter = MailFilter.load(tmp_path / "sms.textnb")
    test = rows.tail(60).with_columns(pl.col("text").str.replace_all(r"[^ -~]", " "))
    answered = model.predict(test)["decision"].fill_null("unsure").to_list()
    chance = model.predict_proba(test)[:, 1]
    for text, expected, p in zip(test["text"], answered, chance, strict=True):
        verdict = mail_filter.judge(b"Subject:\n\n" + text.encode())
        if verdict.reason:
            continue
        assert (verdict.status, verdict.calibrated) == (expected, True)
        assert verdict.probability == pytest.approx(p, rel=1e-9)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    TextClassifier(text=["subject", "body"]).fit(ROWS).save(tmp_path / "mail.textnb")
    return tmp_path / "mail.textnb"


def test_verdicts(saved: Path) -> None:
    mail_filter = MailFilter.load(saved)
    told = [mail_filter.judge(message) for message in MESSAGES]
    assert [verdict.status for verdict in told] == [
        "ham", "unsure", "unsure", "spam", "unsure", "spam"]
    assert told[1].reason == "no word of the message was learned"
    assert "empty message" in told[2].errors
    assert told[3].probability > 0.99


def test_too_little_learned(tmp_path: Path) -> None:
    TextClassifier(text="body").fit(ROWS.head(5)).save(tmp_path / "m.textnb")
    verdict = MailFilter.load(tmp_path / "m.textnb").judge(b"Subject: a\n\npills")
    assert (verdict.status, verdict.reason) == (
        "unsure", "too little was learned to judge: 3 spam and 2 others, and 10 of each are needed")
    assert MailFilter.load(tmp_path / "m.textnb", least_learned=2).judge(
        b"\n\npills").status == "spam"


def test_thresholds(saved: Path) -> None:
    plain = MailFilter.load(saved)
    odds = plain.judge(MESSAGES[0]).log_odds
    for low, high, expected in ((odds - 1, odds, "spam"), (odds - 1, odds + 1, "unsure"),
                                (odds, odds + 1, "ham")):
        model, path = load(saved), saved.with_name("decided.textnb")
        model.set_decision(Decision({"spam": high, "ham": -low}, "spam")).save(path)
        for judge in (MailFilter.load(saved, cutoffs=(low, high)), MailFilter.load(path)):
            assert judge.judge(MESSAGES[0]).status == expected


def test_the_class_that_is_spam(tmp_path: Path) -> None:
    rows = ROWS.with_columns(pl.col("label").replace({"spam": "junk"}))
    model = TextClassifier(text="body").fit(rows)
    model.save(tmp_path / "m.textnb")
    with pytest.raises(ParameterError, match="no class 'spam'; its classes are 'ham', 'junk'"):
        MailFilter.load(tmp_path / "m.textnb")
    assert MailFilter.load(tmp_path / "m.textnb", spam="junk").judge(b"\n\npills").status == "spam"
    model.set_decision(Decision({"ham": 0.0, "junk": 0.0}, "junk")).save(tmp_path / "m.textnb")
    assert MailFilter.load(tmp_path / "m.textnb").judging.spam == "junk"


def test_several_kinds_of_ham(tmp_path: Path) -> None:
    rows = ROWS.with_columns(label=pl.when(pl.col("body").str.contains("noon"))
                             .then(pl.lit("lunch")).otherwise("label"))
    TextClassifier(text="body").fit(rows).save(tmp_path / "m.textnb")
    mail_filter = MailFilter.load(tmp_path / "m.textnb", least_learned=1)
    assert mail_filter.judge(b"\n\nthe meeting at noon").status == "ham"
    assert mail_filter.judge(b"\n\ncheap pills").status == "spam"


def test_headers_are_columns(tmp_path: Path) -> None:
    rows = pl.DataFrame({"x-mailer": ["bulk sender", "mutt"] * 12, "label": ["spam", "ham"] * 12})
    TextClassifier(text="x-mailer").fit(rows).save(tmp_path / "m.textnb")
    mail_filter = MailFilter.load(tmp_path / "m.textnb")
    assert mail_filter.judge(b"X-Mailer: Bulk =?utf-8?q?sender?=\n\nhi").status == "spam"
    assert mail_filter.judge(b"X-Mailer: mutt\n\nbulk").status == "ham"


def test_what_is_no_filter(tmp_path: Path) -> None:
    table = TableClassifier().fit(pl.DataFrame({"x": [0.0, 1.0, 3.0, 4.0],
                                                "label": ["spam", "spam", "ham", "ham"]}))
    table.save(tmp_path / "t.textnb")
    with pytest.raises(ModelFileError, match=r"t\.textnb is a model of feature tables.*train one"):
        MailFilter.load(tmp_path / "t.textnb")
    (tmp_path / "broken").write_bytes(b"PK\3\4broken")
    with pytest.raises(ModelFileError, match="is not a sound textnb model"):
        MailFilter.load(tmp_path / "broken")
    with pytest.raises(SourceError, match="no such model file"):
        MailFilter.load(tmp_path / "none")


def test_it_starts_without_the_learning_libraries(saved: Path) -> None:
    code = ("import sys; from textnb.filter.mailfilter import MailFilter\n"
            f"MailFilter.load({str(saved)!r}).judge(b'Subject: x\\n\\npills')\n"
            "print(sorted({m.split('.')[0] for m in sys.modules} & {'scipy', 'sklearn', 'click', "
            "'pydantic', 'selectolax'}))")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def test_probability_of_extreme_odds(saved: Path) -> None:
    verdict = MailFilter.load(saved).judge(b"\n\n" + b"pills " * 5000)
    assert np.isfinite(verdict.log_odds)
    assert verdict.probability == 1.0


@pytest.mark.parametrize(("estimator", "calibrated", "measure"), [
    (MultinomialNB(), False, "log-odds"), (BernoulliNB(), False, "log-odds"),
    (ComplementNB(), False, "margin"), (ComplementNB(), True, "log-odds"),
    (NBLogisticRegression(), False, "log-odds"),
    (NBLogisticRegression(loss="hinge"), False, "margin")])
def test_a_verdict_says_what_its_number_is(
    tmp_path: Path, estimator: Any, calibrated: bool, measure: str
) -> None:
    rows = pl.DataFrame({"body": ["cheap pills", "see you"] * 10, "label": ["spam", "ham"] * 10})
    model = TextClassifier(estimator, text="body").fit(rows)
    if calibrated:
        model.set_calibration(Calibration(2.0))
    model.save(tmp_path / "m.textnb")
    assert MailFilter.load(tmp_path / "m.textnb").judge(b"\n\ncheap").measure == measure
    if not calibrated:
        assert model.estimator_.difference_name == measure
