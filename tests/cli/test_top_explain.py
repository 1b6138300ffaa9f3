"""textnb top and textnb explain: what a model has learned, and what decides one text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, Run
from tests.cli.test_scoring import LABELS, cells, strict
from textnb import (
    BernoulliNB,
    ComplementNB,
    MultinomialNB,
    NBLogisticRegression,
    TextClassifier,
    Tokenizer,
)


@pytest.fixture
def odd(folder: Path) -> Path:
    """A model whose labels and terms hold markup and control characters."""
    tokenizer = textnb.Tokenizer(pattern=r"\S+")
    table = pl.DataFrame({"text": [f"[red]w{n}[/red] \x1b[1mx{n}" for n in range(len(LABELS))],
                          "label": LABELS})
    TextClassifier(tokenizer=tokenizer).fit(table).save("odd.textnb")
    return folder / "odd.textnb"


# top


def test_top_shows_a_table_per_class(run: Run, trained: Path) -> None:
    ran = run("top", trained, "-k", "3").checked()
    assert ran.err.startswith("ranked by z: ")
    assert [line.strip() for line in ran.out.splitlines() if line[:1].isalpha()] == ["ham", "spam"]
    expected = textnb.load(trained).top(3)
    assert [row for row in cells(ran.out) if row != ["term", "count", "weight", "z"]] == [
        [term, str(count), f"{weight:.3f}", f"{z:.3f}"]
        for term, count, weight, z in expected.select("term", "count", "weight", "z").iter_rows()]


def test_top_says_that_weights_rank(run: Run, folder: Path) -> None:
    TextClassifier(NBLogisticRegression()).fit(MAIL).save("m.textnb")
    ran = run("top", "m.textnb", "-k", "1").checked()
    assert ran.err.startswith("ranked by weight: ")
    assert cells(ran.out)[0] == ["term", "count", "weight"]


def test_top_is_json(run: Run, trained: Path) -> None:
    ran = run("top", trained, "-k", "2", "--format", "json").checked()
    assert strict(ran.out) == textnb.load(trained).top(2).to_dicts()
    assert ran.err == ""


@pytest.mark.parametrize("option", ["--class", "-c"])
def test_top_of_one_class(run: Run, trained: Path, option: str) -> None:
    ran = run("top", trained, option, "spam", "--format", "json").checked()
    assert strict(ran.out) == textnb.load(trained).top(20, "spam").to_dicts()
    assert {row["class"] for row in strict(ran.out)} == {"spam"}


@pytest.mark.parametrize(("labels", "typed", "expected"), [
    ([1, 2], "2", 2), ([-1, 1], "-1", -1), ([True, False], "True", True),
    (["1", "2"], "2", "2"), (["", "x"], "", "")])
def test_a_class_is_found_by_its_name(
    run: Run, folder: Path, labels: list[Any], typed: str, expected: object
) -> None:
    TextClassifier().fit(["aa", "bb"], labels).save("m.textnb")
    ran = run("top", "m.textnb", f"--class={typed}", "--format", "json").checked()
    assert {row["class"] for row in strict(ran.out)} == {expected}


def test_top_refuses_bad_usage(run: Run, trained: Path) -> None:
    ran = run("top", trained, "--class", "spma").checked(2)
    assert "class: unknown value 'spma' - did you mean 'spam'?; choose one of ham, spam" in ran.err
    assert "k must be an int >= 1; got 0" in run("top", trained, "-k", "0").checked(2).err
    assert "--format: unknown value" in run("top", trained, "--format", "csv").checked(2).err
    assert "no such model file" in run("top", "absent.textnb").checked(1).err


def test_top_is_strict_json_without_smoothing(run: Run, folder: Path) -> None:
    TextClassifier(MultinomialNB(l=0)).fit(["aa cc", "bb cc"], ["a", "b"]).save("m.textnb")
    rows = strict(run("top", "m.textnb", "--format", "json").checked().out)
    assert {row["term"] for row in rows} == {"aa", "bb", "cc"}


def test_infinite_numbers_say_what_they_mean(run: Run, folder: Path) -> None:
    TextClassifier(MultinomialNB(l=0)).fit(MAIL).save("m.textnb")
    TextClassifier(MultinomialNB(l=1)).fit(MAIL).save("smooth.textnb")
    for call in (("top", "m.textnb"), ("explain", "m.textnb", MAIL["text"][0])):
        ran = run(*call).checked()
        assert "inf" in ran.out
        assert "note: inf and -inf are of terms that a class has never had" in ran.err
        strict(run(*call, "--format", "json").checked().out)
        assert "inf and -inf" not in run(call[0], "smooth.textnb", *call[2:]).checked().err


def test_top_shows_labels_and_terms_inert(run: Run, odd: Path) -> None:
    ran = run("top", odd).checked()
    assert all(c.isprintable() or c == "\n" for c in ran.out + ran.err)
    titles = [line.strip() for line in ran.out.splitlines()]
    for shown in ("[bold]red[/bold]", "[/]", r"\x1b[31mred", r"two\nlines", r"bell\x07",
                  r"\x9b31m", r"\u202e", "日本"):
        assert shown in titles
    terms = [row[0] for row in cells(ran.out)]
    assert "[red]w0[/red]" in terms
    assert r"\x1b[1mx0" in terms


@pytest.mark.parametrize("columns", ["40", "90", "300", None])
def test_a_table_is_as_wide_as_columns_says(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    TextClassifier(tokenizer=Tokenizer(pattern=r"\S+")).fit(["x" * 500, "y"], ["a", "b"]).save(
        "wide.textnb")
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    for verb in (["top", "wide.textnb"], ["explain", "wide.textnb", "x" * 500]):
        lines = run(*verb).checked().out.splitlines()
        assert max(map(len, lines)) == int(columns or 200)


# explain


def test_explain_shows_what_decides(run: Run, trained: Path) -> None:
    ran = run("explain", trained, "free free lunch and zebra").checked()
    rows = cells(ran.out)
    assert rows[:2] == [["part", "term", "count", "contribution"], ["intercept", "-", "-", "0.000"]]
    assert [row[:3] for row in rows[2:]] == [["term", "free", "2"], ["term", "lunch", "1"]]
    told = ran.out.splitlines()[-1]
    form = textnb.load(trained).linear_form()
    w, b = form.binary("spam")
    score = b + 2 * w[form.terms.index("free")] + w[form.terms.index("lunch")]
    assert told == f"spam, against ham by {score:.3f} (log-odds)"
    assert ran.err == ""


def test_explain_is_json_that_adds_up(run: Run, trained: Path) -> None:
    ran = run("explain", trained, "free lunch now at two", "-k", "2", "--format", "json").checked()
    told = strict(ran.out)
    assert set(told) == {
        "predicted", "runner_up", "score", "measure", "terms", "known", "parts"}
    assert (told["measure"], told["terms"], told["known"]) == ("log-odds", 5, 4)
    assert {told["predicted"], told["runner_up"]} == {"ham", "spam"}
    assert told["score"] == pytest.approx(sum(part["contribution"] for part in told["parts"]),
                                          abs=1e-12)
    assert [part["part"] for part in told["parts"]] == ["intercept", "term", "term", "other terms"]


@pytest.mark.parametrize("text", ["free lunch", "", "\n", "zebra", "naïve 日本 free"])
def test_explain_reads_stdin(run: Run, trained: Path, text: str) -> None:
    piped = run("explain", trained, "-", input=text).checked()
    assert piped.out == run("explain", trained, text).checked().out


def test_explain_takes_the_first_text_column(run: Run, folder: Path) -> None:
    TextClassifier(text=["subject", "body"], tokenizer=textnb.Tokenizer(field_prefix=True)).fit(
        pl.DataFrame({"subject": ["aa", "bb"], "body": ["bb", "aa"], "label": ["a", "b"]})
    ).save("m.textnb")
    told = strict(run("explain", "m.textnb", "aa", "--format", "json").checked().out)
    assert [part["term"] for part in told["parts"]] == [None, "subject:aa"]
    assert told["predicted"] == "a"


@pytest.mark.filterwarnings("always:only one class:UserWarning")
def test_explain_of_one_class_has_no_runner_up(run: Run, folder: Path) -> None:
    with pytest.warns(UserWarning, match="only one class"):
        TextClassifier().fit(["aa"], ["a"]).save("m.textnb")
    assert run("explain", "m.textnb", "aa").checked().out.splitlines()[-1] == "a"
    ran = run("explain", "m.textnb", "aa", "--format", "json").checked()
    told = strict(ran.out)
    assert (told["predicted"], told["runner_up"]) == ("a", None)
    assert "note: only one class, 'a'" in ran.err


def test_explain_of_complement(run: Run, folder: Path) -> None:
    TextClassifier(ComplementNB()).fit(MAIL).save("m.textnb")
    told = strict(run("explain", "m.textnb", "free lunch", "--format", "json").checked().out)
    assert told["parts"][0] == {"part": "intercept", "term": None, "count": None,
                                "contribution": 0.0}


@pytest.mark.parametrize(("estimator", "measure", "rests_on"), [
    (MultinomialNB(), "log-odds", "the classes' priors alone"),
    (BernoulliNB(), "log-odds", "the classes' priors and the terms that are absent"),
    (ComplementNB(), "margin", "nothing: all classes score the same"),
    (NBLogisticRegression(), "log-odds", "the classes' intercepts alone"),
    (NBLogisticRegression(loss="hinge"), "margin", "the classes' intercepts alone")])
@pytest.mark.parametrize(("text", "terms"), [("", 0), ("zebra quagga", 2), ("!", 0)])
def test_a_text_without_a_known_term_is_said_to_be_so(
    run: Run, folder: Path, estimator: Any, measure: str, rests_on: str, text: str, terms: int
) -> None:
    TextClassifier(estimator).fit(MAIL).save("m.textnb")
    ran = run("explain", "m.textnb", text).checked()
    assert ran.out.endswith(f" ({measure})\n")
    assert ran.err.startswith(f"note: no term of the text is known ({terms} in it): the answer "
                              f"rests on {rests_on}")
    known = run("explain", "m.textnb", "free zebra").checked()
    assert known.out.endswith(f" ({measure})\n")
    assert known.err == ""


def test_an_impossible_text_is_bad_data(run: Run, folder: Path) -> None:
    TextClassifier(MultinomialNB(l=0)).fit(["aa", "bb"], ["a", "b"]).save("m.textnb")
    ran = run("explain", "m.textnb", "aa bb").checked(1)
    assert "impossible under every class" in ran.err
    assert ran.out == ""


def test_explain_is_strict_json_without_smoothing(run: Run, folder: Path) -> None:
    TextClassifier(MultinomialNB(l=0)).fit(["aa cc", "bb cc"], ["a", "b"]).save("m.textnb")
    told = strict(run("explain", "m.textnb", "aa", "--format", "json").checked().out)
    assert told["predicted"] == "a"


@pytest.mark.parametrize("label", range(len(LABELS)))
def test_explain_shows_labels_and_terms_inert(run: Run, odd: Path, label: int) -> None:
    ran = run("explain", odd, f"[red]w{label}[/red] \x1b[1mx{label}").checked()
    assert all(c.isprintable() or c == "\n" for c in ran.out + ran.err)
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in LABELS[label])
    assert ran.out.splitlines()[-1].startswith(f"{shown}, against ")
    assert f"[red]w{label}[/red]" in [row[1] for row in cells(ran.out)]
    assert rf"\x1b[1mx{label}" in [row[1] for row in cells(ran.out)]


def test_explain_refuses_bad_usage(run: Run, trained: Path) -> None:
    for k in ("0", "-1"):
        ran = run("explain", trained, "free", "-k", k).checked(2)
        assert f"got {k}" in ran.err
        assert ran.out == ""
    assert "--format: unknown value" in run(
        "explain", trained, "free", "--format", "xml").checked(2).err
    assert "no such model file" in run("explain", "absent.textnb", "free").checked(1).err
    ran = run("explain", trained).checked(2)
    assert "Usage" in ran.err


def test_text_that_is_not_utf8_is_bad_data(run: Run, trained: Path) -> None:
    ran = run("explain", trained, "-", input=b"d\xe9jeuner").checked(1)
    assert "standard input" in ran.err


def test_the_text_is_of_one_of_several_columns(run: Run, folder: Path) -> None:
    rows = pl.DataFrame({"subject": ["win", "hi"], "body": ["money", "lunch"],
                         "label": ["spam", "ham"]})
    TextClassifier(text=["subject", "body"], tokenizer=Tokenizer(field_prefix=True)).fit(
        rows).save("m.textnb")
    first = run("explain", "m.textnb", "money").checked().out
    assert "money" not in first
    named = run("explain", "m.textnb", "money", "--column", "body").checked().out
    assert "body:money" in named
    assert "unknown value 'title'" in run(
        "explain", "m.textnb", "x", "--column", "title").checked(2).err
