"""train --period, update --at, forget --before."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Run
from textnb import load

ROWS = pl.DataFrame({
    "text": ["free money", "see you", "cheap offer", "lunch at noon", "free lunch", "meeting"],
    "label": ["spam", "ham"] * 3,
    "day": ["2025-01-03", "2025-01-30", "2025-02-01", "2025-02-02T10:00:00", "2025-03-01",
            "2025-03-31"]})


@pytest.fixture
def model(run: Run, folder: Path) -> Path:
    ROWS.write_csv(folder / "rows.csv")
    ran = run("train", "rows.csv", "--period", "month", "--time", "day", "-o", "m.textnb").checked()
    assert "3 periods, from 2025-01-01 to 2025-03-01" in ran.err
    return folder / "m.textnb"


def test_to_forget_periods_is_a_training_without_them(run: Run, model: Path, folder: Path) -> None:
    ran = run("forget", model, "--before", "2025-02").checked()
    assert "2 periods, from 2025-02-01" in ran.err
    run("train", "rows.csv", "--period", "month", "--time", "day", "--where", "day >= '2025-02'",
        "-o", "late.textnb").checked()
    assert model.read_bytes() == (folder / "late.textnb").read_bytes()
    ran = run("forget", model, "--before", "2026").checked(1)
    assert "no model would be left" in ran.err
    assert "name the rows to forget" in run("forget", model).checked(2).err
    assert "a day must have the form" in run("forget", model, "--before", "May").checked(2).err


def test_update_inherits_the_periods(run: Run, model: Path, folder: Path) -> None:
    before = model.read_bytes()
    ROWS[4:].write_csv(folder / "more.csv")
    run("update", model, "more.csv").checked()
    assert [*load(model).periods_["documents"]] == [2, 2, 4]
    run("forget", model, "more.csv").checked()
    assert model.read_bytes() == before
    run("update", model, "more.csv", "--at", "today").checked()
    today = datetime.datetime.now(datetime.UTC).date()
    assert load(model).periods_["start"].to_list()[-1] == today.replace(day=1)
    run("forget", model, "more.csv", "--at", str(today)).checked()
    assert model.read_bytes() == before
    described = json.loads(run("describe", model, "--format", "json").checked().out)
    assert described["ageing"]["period"] == "month"


def test_a_message_is_filed_by_its_date(run: Run, folder: Path) -> None:
    for name, label, date in (("a", "spam", "3 Jan"), ("b", "ham", "4 Jan"), ("c", "spam", "5 Feb"),
                              ("d", "ham", "6 Mar")):
        place = folder / "mail" / label / f"{name}.eml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"Subject: {label} {name}{name}\nDate: {date} 2025 10:00:00 +0000\n\nbody")
    run("train", "mail", "--input-format", "mail", "--period", "month", "--time", "date",
        "--keep-periods", "2", "-o", "m.textnb").checked()
    model = load(folder / "m.textnb")
    assert model.periods_["documents"].to_list() == [1, 1]
    new = folder / "e.eml"
    new.write_text("Subject: more\nDate: 7 Mar 2025 10:00:00 +0000\n\nbody")
    run("update", "m.textnb", new, "--as", "ham").checked()
    assert load(folder / "m.textnb").periods_["documents"].to_list() == [1, 2]
    new.write_text("Subject: more\n\nbody")
    ran = run("update", "m.textnb", new, "--as", "ham").checked(1)
    assert "'date' is null in row 0" in ran.err
    run("update", "m.textnb", new, "--as", "spam", "--at", "2025-04-01").checked()
    assert load(folder / "m.textnb").periods_["documents"].to_list() == [2, 1]


def test_what_is_refused(run: Run, model: Path, folder: Path) -> None:
    ran = run("train", "rows.csv", "--period", "month", "-o", "x.textnb").checked(2)
    assert "time must be a column" in ran.err or "--time" in ran.err
    ran = run("train", "rows.csv", "--half-life", "90d", "-o", "x.textnb").checked(2)
    assert "--half-life is for a model that counts by periods of time: give --period" in ran.err
    ran = run("train", "rows.csv", "--model", "nblinear", "--period", "month", "--time", "day",
              "-o", "x.textnb").checked(2)
    assert "NBLinear learns from documents" in ran.err
    run("train", "rows.csv", "-o", "plain.textnb").checked()
    ran = run("update", "plain.textnb", "rows.csv", "--at", "today").checked(2)
    assert "--at is for a model that counts by periods" in ran.err
    ran = run("forget", "plain.textnb", "--before", "2025").checked(2)
    assert "train one with textnb train --time date --period month" in ran.err
    assert "in order of time" in run("validate", model, "rows.csv", "--folds", "2").checked(2).err


def test_a_ledger_does_not_know_periods(run: Run, model: Path, folder: Path) -> None:
    ran = run("update", model, "rows.csv", "--ledger").checked(2)
    assert "does not know the periods of time" in ran.err
    run("train", "rows.csv", "-o", "plain.textnb").checked()
    run("update", "plain.textnb", "rows.csv", "--ledger").checked()
    assert "--before is for" in run("forget", "plain.textnb", "--before", "2025").checked(2).err
