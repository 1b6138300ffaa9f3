"""Models of mail, what they and a ledger hold, and a check that two filters judge alike."""

import polars as pl
import pytest

import textnb
from tests.bayes.samples import COUNT_MODELS
from tests.quick import judge
from textnb import BernoulliNB, ComplementNB, MultinomialNB, NBLinear, NBLogisticRegression
from textnb.files.require import Unsupported
from textnb.filter.ledger import Ledger
from textnb.filter.mailfilter import MailFilter

ROWS = pl.DataFrame({
    "subject": ["cheap pills", "lunch", "you won", "minutes", None, "re: lunch"] * 4,
    "body": ["buy cheap pills now", "see you at noon", "a prize, a prize", "of the meeting हिन्दी",
             "pills pills pills", "noon it is"] * 4,
    "label": ["spam", "ham", "spam", "ham", "spam", "ham"] * 4,
})
SWAPPED = ROWS.with_columns(pl.col("label").replace({"spam": "ham", "ham": "spam"}))
MESSAGES = [b"Subject: cheap lunch\n\nsee the pills at noon", b"Subject: x\n\nnothing known here",
            b"", b"Subject: you won\n\nyou won a prize a prize a prize", b"\xff\xfe\0junk",
            b"To: a\n\npills", "Subject: हिन्दी\n\nMEETING É".encode(),
            b"Content-Type: text/html\n\n<p>cheap <b>pi</b>lls</p><a href=x>noon</a>"]

ESTIMATORS = [
    *(kind() for kind in COUNT_MODELS if kind().sums), MultinomialNB(l=0.01, fit_prior=False),
    MultinomialNB(class_prior=[0.9, 0.1]), MultinomialNB(l="auto"),
    BernoulliNB(l=0.3, binarize=1.0), ComplementNB(l=0.2, norm=True), NBLogisticRegression(),
    NBLogisticRegression(binarize=False), NBLogisticRegression(loss="hinge")]
# Models whose scores are not just sums of counts times weights: most divide by the text's length.
LINEAR = [
    NBLinear(tf="presence", idf=False, power=1.0, C=10.0), NBLinear(idf=False),
    NBLinear(tf="count", idf=False, unit_length=False), NBLinear(loss="log", idf=False, held_out=0)]


def fitted(estimator=None, rows=ROWS, **settings):
    return textnb.TextClassifier(estimator, **{"text": "body", **settings}).fit(rows)


def saved(path, *arguments, **settings):
    """Fit a model, save it, and return the path."""
    fitted(*arguments, **settings).save(path)
    return path


def counts(path):
    """The documents that a model has learned, per class."""
    model = textnb.load(path)
    return dict(zip(model.classes_.tolist(), model.estimator_.class_count_.tolist(), strict=True))


def ledger_of(model):
    """How many messages were learned, and those that are to be."""
    with Ledger(model) as ledger:
        return len(ledger), ledger.pending(9)


def judged(path, message, **judging):
    """The verdict of `MailFilter`, after a check that the quick filter gives the same."""
    whole = MailFilter.load(path, **judging).judge(message)
    try:
        quick = judge(str(path), message, **judging)
    except Unsupported as refusal:
        # The quick filter refuses log-odds so close to the threshold that rounding could decide.
        if str(refusal) == "log-odds at a threshold" and abs(whole.log_odds) < 1e-9:
            return whole
        raise
    assert quick.log_odds == pytest.approx(whole.log_odds, rel=1e-10, abs=1e-10)
    assert (quick.status, quick.calibrated, quick.reason, quick.errors, quick.measure) == (
        whole.status, whole.calibrated, whole.reason, whole.errors, whole.measure)
    return whole
