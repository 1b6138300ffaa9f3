"""A filter of mail that keeps a sample of rows: a correction changes verdicts."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_mail_recipe import box, message, new
from textnb.filter.learner import learn
from textnb.filter.ledger import Ledger
from textnb.storage.textmodel import load_fitted

__all__ = ["box", "new"]


@pytest.fixture
def model(run, box):
    run("train", box, "-q", "--keep-sample", "100", "-o", "m.textnb").checked()
    return Path("m.textnb")


def log_odds(run, model, raw):
    return float(json.loads(run("filter", model, "--format", "json", input=raw).out)["log_odds"])


def test_a_correction_changes_the_verdict(run, model, new):
    described = json.loads(run("describe", model, "--format", "json").checked().out)
    assert described["sample"] == {"rows": 100, "most": 100}
    before, terms = log_odds(run, model, new), load_fitted(model).terms
    ran = run("update", model, "new.eml", "--as", "ham").checked()
    assert "the model's calibration is stale" in ran.err
    assert "since, and do not change" not in ran.err
    assert log_odds(run, model, new) < before - 1
    after = load_fitted(model)
    assert after.since_fit is None
    assert "w1000" in after.terms
    run("forget", model, "new.eml", "--as", "ham").checked()
    assert load_fitted(model).terms.equals(terms)
    # Near enough for the tolerance of the solver.
    assert abs(log_odds(run, model, new) - before) < 0.25 * abs(before)
    assert model.stat().st_mode & 0o777 == 0o600


def test_what_was_told_to_a_server_is_judged_so(run, model):
    raw = message(random.Random(9), "ham", 2000)
    before = log_odds(run, model, raw)
    with Ledger(model) as ledger:
        ledger.add(b"1", "spam", raw)
    assert learn(str(model)) == 1
    later = log_odds(run, model, raw)
    assert later > before + 1
    with Ledger(model) as ledger:
        ledger.add(b"1", "ham", raw)
    assert learn(str(model)) == 1
    assert log_odds(run, model, raw) < later - 1
    assert model.stat().st_mode & 0o777 == 0o600


def test_a_ledger_and_a_new_threshold(run, model, new):
    run("update", model, "new.eml", "--as", "ham", "--ledger").checked()
    weights = load_fitted(model).form.weights
    run("update", model, "new.eml", "--as", "spam").checked()
    fitted = load_fitted(model)
    assert not np.array_equal(weights, fitted.form.weights)
    assert fitted.sample is not None
    assert fitted.decision is not None
    assert fitted.decision.stale
