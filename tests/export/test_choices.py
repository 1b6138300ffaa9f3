"""Calibrations and decisions in bundles: there for a receiver, and checked when read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from textnb import (
    Calibration,
    Decision,
    ExportError,
    ModelFileError,
    TextClassifier,
    Tokenizer,
    describe_model,
    export_model,
    verify_export,
)
from textnb.export import archive
from textnb.export.bundle import Bundle
from textnb.files.archive import write_sums

MAIL = pl.DataFrame({"text": ["win cash now", "cash prize", "see you", "lunch with you"],
                     "label": ["spam", "spam", "ham", "ham"]})
CALIBRATION = Calibration(1.5, 0.25, 4, "leave-one-out")
DECISION = Decision({"ham": -2.5, "spam": 2.5}, "spam", {"documents": 59, "costs": [10.0, 1.0]})


def model() -> TextClassifier:
    fitted = TextClassifier().fit(MAIL)
    return fitted.set_calibration(CALIBRATION).set_decision(DECISION)


def form(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "form.json").read_text("utf-8"))
    return read


def reread(folder: Path, changed: dict[str, Any]) -> Bundle:
    """The bundle with another form.json, under new checksums."""
    (folder / "form.json").write_text(json.dumps(changed), "utf-8")
    write_sums(folder)
    with archive.open_bundle(folder) as whole:
        return archive.read(whole, str(folder))[0]


@pytest.mark.parametrize("to", ["json", "python", "csv"])
@pytest.mark.parametrize("positive", [None, "spam"])
def test_a_bundle_holds_what_was_chosen(to: str, positive: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export_model(model(), folder, to, positive=positive)
    assert form(folder)["calibration"] == {
        "temperature": 1.5, "length_exponent": 0.25, "documents": 4, "method": "leave-one-out"}
    assert form(folder)["decision"] == {
        "thresholds": [{"label": "ham", "log_odds": -2.5}, {"label": "spam", "log_odds": 2.5}],
        "positive": "spam", "evidence": {"documents": 59, "costs": [10.0, 1.0]}}
    bundle = reread(folder, form(folder))
    assert (bundle.calibration, bundle.decision) == (CALIBRATION, DECISION)
    assert verify_export(folder).passed


def test_always_and_never_are_words(tmp_path: Path) -> None:
    decision = Decision({"ham": float("-inf"), "spam": float("inf")})
    export_model(model().set_decision(decision), tmp_path / "out", "json")
    found = form(tmp_path / "out")
    assert [row["log_odds"] for row in found["decision"]["thresholds"]] == ["always", "never"]
    assert reread(tmp_path / "out", found).decision == decision


def test_a_bundle_without_them(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export_model(TextClassifier().fit(MAIL), folder, "json")
    found = form(folder)
    assert (found["calibration"], found["decision"]) == (None, None)
    # As bundles were before there were such keys.
    del found["calibration"], found["decision"]
    bundle = reread(folder, found)
    assert (bundle.calibration, bundle.decision) == (None, None)


@pytest.mark.parametrize(("name", "value"), [
    ("calibration", 3), ("calibration", {}), ("calibration", []),
    ("calibration", {**CALIBRATION.to_dict(), "temperature": 0}),
    ("calibration", {**CALIBRATION.to_dict(), "temperature": "1"}),
    ("decision", "spam"), ("decision", {}),
    ("decision", {**DECISION.to_dict(), "thresholds": [{"label": "spam", "log_odds": 1.0}]}),
    ("decision", {**DECISION.to_dict(), "thresholds": [{"label": "ham", "log_odds": "often"},
                                                       {"label": "spam", "log_odds": 1.0}]}),
    ("decision", {**DECISION.to_dict(), "thresholds": [{"label": ["ham"], "log_odds": 1.0}]}),
    ("decision", {**DECISION.to_dict(), "positive": "smap"})])
def test_what_is_read_is_checked(name: str, value: Any, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    export_model(model(), folder, "json")
    with pytest.raises(ModelFileError, match="is not a sound textnb bundle"):
        reread(folder, {**form(folder), name: value})


def test_the_card_tells_them() -> None:
    card = describe_model(model())
    assert card["calibration"] == CALIBRATION.to_dict()
    assert card["decision"] == DECISION.to_dict()
    plain = describe_model(TextClassifier().fit(MAIL))
    assert (plain["calibration"], plain["decision"]) == (None, None)


@pytest.mark.parametrize("pattern", [r"\w+-\w+", r"terms|\w+-\w+"])
def test_the_advice_for_tokens_follows_from_the_error_and_not_from_its_words(
    pattern: str, tmp_path: Path
) -> None:
    fitted = TextClassifier(tokenizer=Tokenizer(pattern=pattern)).fit(
        ["a-b terms", "c-d"], ["spam", "ham"])
    with pytest.raises(ExportError, match=r"not a run of one class.*--input terms"):
        export_model(fitted, tmp_path / "a", to="sql-sqlite")


def test_an_error_that_is_not_about_the_tokenizer_gives_no_advice_about_it(tmp_path: Path) -> None:
    fitted = TextClassifier().fit(["win cash", "see you"], [2**60, 1])
    with pytest.raises(ExportError, match="beyond 2") as raised:
        export_model(fitted, tmp_path / "a", to="javascript")
    assert "tokenizer" not in str(raised.value)
