"""What commands note on standard error beside their results."""

import re
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL


@pytest.mark.parametrize("settings", [
    (), ("--l", "auto"), ("--model", "nblinear"), ("--memory-limit", "50M")])
def test_rows_without_a_text_are_counted_once_in_training(run, folder, settings):
    rows = pl.concat([MAIL.select("text", "label"), pl.DataFrame({
        "text": [None, "", " \n"], "label": ["spam", "ham", "ham"]})])
    rows.write_parquet("rows.parquet")
    train = ("train", "rows.parquet", *settings, "-o", "m.textnb")
    note = f"note: 3 of {rows.height} rows hold no text (null, empty or white space alone)"
    assert run(*train).checked().err.count(note) == 1
    assert "no text" not in run(*train, "-q").checked().err
    # The page says how they are left out.
    page = (Path(__file__).parents[2] / "docs/how-to/texts_in_python.md").read_text("utf-8")
    where = re.search('`--where "([^"]+)"`', page)[1]
    assert "no text" not in run(*train, "--where", where).checked().err


def test_rows_without_a_text_are_counted_where_they_are_answered(run, folder, trained):
    rows = pl.DataFrame({"text": ["free", None, ""], "label": ["spam", "ham", "ham"]})
    rows.write_parquet("rows.parquet")
    for verb in ("predict", "test"):
        assert ("note: 2 of 3 rows hold no text (null, empty or white space alone): answered by "
                "the classes' priors alone\n") in run(verb, trained, "rows.parquet").checked().err
        ran = run(verb, trained, "rows.parquet", "--where", "text = 'free'").checked()
        assert "no text" not in ran.err
    assert textnb.evaluate(textnb.load(trained), rows).textless == 2


@pytest.mark.filterwarnings("always")
def test_words_without_spaces_between_them_are_warned_of(run, folder):
    # Each text is a phrase of Chinese characters that no other text holds.
    texts = ["".join(chr(0x4E00 + (row * 31 + n * (row + 1)) % 300) for n in range(9))
             for row in range(100)]
    pl.DataFrame({"text": texts, "label": ["x", "y"] * 50}).write_parquet("rows.parquet")
    train = ("train", "rows.parquet", "-o", "m.textnb", "-q")
    ran = run(*train, "--set", "unspaced=whole").checked()
    assert ran.err.startswith("warning: 100% of the tokens are of terms that occur once")
    assert "--set unspaced=both" in ran.err
    assert run(*train, "--analyzer", "char", "--ngrams", "1,2").checked().err == ""


def test_a_condition_that_leaves_rows_is_not_blamed(run, folder, trained):
    MAIL.head(2).write_csv("mail.csv")
    ran = run("test", trained, "mail.csv", "--where", "label IS NOT NULL").checked()
    assert "leaves no rows" not in ran.err
