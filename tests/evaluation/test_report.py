"""The report: its figures are right, its page is sound, and nothing in it runs or loads."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from selectolax.lexbor import LexborHTMLParser

import textnb
from tests.cli.conftest import MAIL, Run, files_in, folder, mail, run, trained
from tests.evaluation.test_report_data import FILMS
from textnb import (
    BernoulliNB,
    Calibration,
    ComplementNB,
    DataError,
    Decision,
    GaussianNB,
    MultinomialNB,
    NBLogisticRegression,
    ParameterError,
    SourceError,
    TableClassifier,
    TextClassifier,
    Tokenizer,
    evaluate,
    write_report,
)
from textnb.report import charts as report_charts
from textnb.report import data as report_data

pytest.importorskip("altair", reason="needs textnb[report]")
pytest.importorskip("vl_convert", reason="needs textnb[report]")
pytest.importorskip("jinja2", reason="needs textnb[report]")
# Fixtures of the command line.
__all__ = ["folder", "mail", "run", "trained"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
HOSTILE = ["</text><script>alert(1)</script>", '"><img src=x onerror=alert(1)>',
           "\u202egnp.exe\x00", "{{ 7 * 7 }}{% raw %}", "", "line\nbreak"]


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., LexborHTMLParser]:
    """The report of a model on a frame, parsed as a browser does."""

    def make(model: Any, frame: Any, **settings: Any) -> LexborHTMLParser:
        path = tmp_path / "report.html"
        write_report(model, frame, path, **settings)
        return LexborHTMLParser(path.read_text("utf-8"))

    return make


def text_of(tree: LexborHTMLParser, selector: str) -> list[str]:
    return [" ".join(node.text().split()) for node in tree.css(selector)]


def rows_of(tree: LexborHTMLParser, caption: str) -> list[list[str]]:
    """The body of the table of that caption."""
    tables = [table for table in tree.css("table")
              if " ".join(table.css_first("caption").text().split()) == caption]
    assert len(tables) == 1
    return [[" ".join(cell.text().split()) for cell in row.css("th, td")]
            for row in tables[0].css("tbody tr")]


def tiles_of(tree: LexborHTMLParser) -> dict[str, str]:
    return dict(zip(text_of(tree, ".tiles dt"), text_of(tree, ".tiles .figure"), strict=True))


def check_inert(tree: LexborHTMLParser) -> None:
    """Nothing on the page runs, loads, or leads away from it."""
    elements = {node.tag for node in tree.root.traverse()}
    assert elements & {"script", "img", "iframe", "object", "embed", "link", "base", "form",
                       "image", "use", "foreignobject", "animate", "set", "audio", "video"} == set()
    for node in tree.root.traverse():
        for name, value in node.attributes.items():
            assert not name.startswith("on"), (node.tag, name)
            assert name not in ("src", "srcset", "xlink:href", "action", "formaction")
            assert name != "href" or (value or "").startswith("#")
            assert "url(" not in (value or "")
    assert "url(" not in "".join(node.text() for node in tree.css("style"))
    assert "@import" not in "".join(node.text() for node in tree.css("style"))
    policy = tree.css_first("meta[http-equiv]")
    assert policy.attributes["http-equiv"] == "Content-Security-Policy"
    assert policy.attributes["content"] == POLICY


def check_accessible(tree: LexborHTMLParser) -> None:
    """What a screen reader needs."""
    assert tree.css_first("html").attributes["lang"] == "en"
    assert tree.css_first("title").text().strip()
    assert [len(tree.css(name)) for name in ("main", "header", "footer", "nav", "h1")] == [1] * 5
    levels = [int(node.tag[1]) for node in tree.css("h1, h2, h3, h4")]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [node.attributes["id"] for node in tree.css("[id]")]
    assert len(ids) == len(set(ids))
    for node in tree.css("[href]"):
        assert (node.attributes["href"] or "")[1:] in ids
    for node in tree.css("section"):
        assert node.attributes["aria-labelledby"] in ids
    for figure in tree.css("figure"):
        drawn = figure.css_first("[role=img]")
        assert drawn.attributes["aria-label"]
        assert drawn.css_first("svg").attributes["viewbox" if "viewbox" in drawn.css_first(
            "svg").attributes else "viewBox"]
        assert figure.css_first("figcaption").text().strip()
        assert figure.css("details table tbody tr")
    for table in tree.css("table"):
        assert table.css_first("caption").text().strip()
        assert all(cell.attributes.get("scope") in ("row", "col") for cell in table.css("th"))
        assert all(row.css_matches("th[scope=row]") for row in table.css("tbody tr"))


# The page


@pytest.mark.parametrize("model", [
    TextClassifier(), TextClassifier(BernoulliNB()), TextClassifier(ComplementNB()),
    TextClassifier(NBLogisticRegression()), TextClassifier(NBLogisticRegression(loss="hinge"))],
    ids=lambda model: str(model.estimator))
def test_a_page_is_inert_and_accessible(
    page: Callable[..., LexborHTMLParser], model: TextClassifier
) -> None:
    tree = page(model.fit(FILMS), FILMS, train=FILMS, title="Films")
    check_inert(tree)
    check_accessible(tree)
    assert text_of(tree, "h1") == ["Films"]


def test_hostile_labels_and_texts_stay_text(page: Callable[..., LexborHTMLParser]) -> None:
    frame = pl.DataFrame({
        "text": ["<script>document.title='owned'</script> aa", "bb <img src=x onerror=alert(1)>",
                 "cc </blockquote></table>", "dd", "ee", "ff &amp; \u2066"] * 2,
        "label": HOSTILE * 2})
    model = TextClassifier(tokenizer=Tokenizer(pattern=r"\S+")).fit(frame)
    tree = page(model, frame.with_columns(pl.col("label").reverse()), title=HOSTILE[0])
    check_inert(tree)
    check_accessible(tree)
    assert text_of(tree, "h1") == [HOSTILE[0]]
    assert "<script>document.title='owned'</script> aa" in text_of(tree, "blockquote bdi")
    assert "ff &amp; ⟨U+2066⟩" in text_of(tree, "blockquote bdi")
    # In the charts too, whole or shortened.
    drawn = text_of(tree, "svg text")
    for start in ("</text><script>", '"><img src=x', "{{ 7 * 7 }}{%", "⟨U+202E⟩gnp", "(empty)",
                  "line break"):
        assert any(text.startswith(start) for text in drawn), start
    assert "49" not in drawn
    assert "\u202e" not in tree.html
    assert "\x00" not in tree.html


def test_a_chart_passes_on_nothing_but_shapes_and_text() -> None:
    begin = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" viewBox="0 0 9 9">'
    cleaned = report_charts.clean(
        f'{begin}<g id="a" onclick="x()" class="b"><path d="M0,0" href="http://x" fill="#000"/>'
        "<text>&lt;b&gt;</text></g></svg>")
    assert "<path d=\"M0,0\" fill=\"#000\" /><text>&lt;b&gt;</text>" in cleaned
    for gone in ("onclick", "href", "id=", "class="):
        assert gone not in cleaned
    for bad in ("script", "image", "foreignObject", "style", "use"):
        with pytest.raises(ValueError, match=f"no element '{bad}'"):
            report_charts.clean(f"{begin}<{bad}/></svg>")


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    model = TextClassifier().fit(FILMS)
    pages = []
    for frame in (FILMS, FILMS.lazy()):
        write_report(model, frame, tmp_path / "report.html")
        pages.append((tmp_path / "report.html").read_bytes())
    assert pages[0] == pages[1]
    write_report(model, FILMS, tmp_path / "dated.html", date=datetime.date(2020, 2, 29))
    dated = (tmp_path / "dated.html").read_text("utf-8")
    line = '<p class="date">Tested on <time datetime="2020-02-29">2020-02-29</time></p>'
    assert dated.replace(line, "").encode() == pages[0]
    assert line in dated


def test_no_path_is_told(tmp_path: Path) -> None:
    FILMS.write_parquet(tmp_path / "films.parquet")
    write_report(TextClassifier().fit(FILMS), tmp_path / "films.parquet", tmp_path / "r.html")
    assert str(tmp_path) not in (tmp_path / "r.html").read_text("utf-8")


def test_a_page_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, path = TextClassifier().fit(FILMS), tmp_path / "report.html"
    unlabelled = FILMS.with_columns(label=pl.lit(None, dtype=pl.String))
    path.write_text("before")
    with pytest.raises(DataError, match="null in row 0"):
        write_report(model, unlabelled, path)
    assert (path.read_text(), files_in(tmp_path)) == ("before", ["report.html"])
    monkeypatch.setattr(report_charts, "draw", lambda chart, data: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(model, FILMS, path)
    assert (path.read_text(), files_in(tmp_path)) == ("before", ["report.html"])


@pytest.mark.parametrize("name", ["altair", "vl_convert", "jinja2"])
def test_a_missing_library_is_named_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ParameterError, match=rf"{name}: pip install 'textnb\[report\]'"):
        write_report(TextClassifier().fit(FILMS), tmp_path / "nothing.parquet", tmp_path / "r.html")
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(("settings", "error", "match"), [
    ({"path": "no/such/folder/r.html"}, SourceError, "there is no folder"),
    ({"positive": "spam"}, ParameterError, "unknown value 'spam'; choose one of neg, pos"),
    ({"frame": FILMS.clear()}, DataError, "the test set has no rows"),
    ({"frame": FILMS.with_columns(label=pl.lit("x"))}, DataError, "knows none of the labels"),
    ({"train": FILMS.clear()}, DataError, "the training set has no rows"),
])
def test_what_can_not_be_reported_on(
    tmp_path: Path, settings: dict[str, Any], error: type[Exception], match: str
) -> None:
    given = {"frame": FILMS, "path": tmp_path / "r.html", **settings}
    with pytest.raises(error, match=match):
        write_report(TextClassifier().fit(FILMS), **given)
    assert files_in(tmp_path) == []


# Its figures


def test_the_figures_of_a_small_test_by_hand(page: Callable[..., LexborHTMLParser]) -> None:
    # Uniform priors, one term per document: "good" is pos, "bad" neg, "so" neither.
    train = pl.DataFrame({"text": ["good", "bad"], "label": ["pos", "neg"]})
    model = TextClassifier(MultinomialNB(l=1.0)).fit(train)
    test = pl.DataFrame({"text": ["good"] * 3 + ["bad"] * 4 + ["good"],
                         "label": ["pos"] * 3 + ["neg"] * 3 + ["pos", "neg"]})
    tree = page(model, test)
    # P(pos | good) = P(neg | bad) = (2/3) / (2/3 + 1/3) = 2/3, right in 6 of 8.
    expected = {"Accuracy": "75.0 %", "Largest class alone": "50.0 %", "Macro F1": "0.750"}
    tiles = tiles_of(tree)
    assert {name: tiles[name] for name in expected} == expected
    loss = -(6 * np.log(2 / 3) + 2 * np.log(1 / 3)) / 8
    brier = (6 * (2 / 9) + 2 * (8 / 9)) / 8
    assert tiles["Log loss"] == f"{loss:.3f}"
    assert tiles["Brier score"] == f"{brier:.3f}"
    assert tiles["Calibration error"] == f"{0.75 - 2 / 3:.3f}"
    assert rows_of(tree, "Documents by label (rows) and answer (columns)") == [
        ["neg", "3", "1"], ["pos", "1", "3"]]
    # Of 16 pairs of a positive and a negative, 9 in order and 6 tied.
    assert rows_of(tree, "Each class against the rest, those of most documents first")[1] == [
        "pos", "4", "1", "4", "75.0 %", "75.0 %", "0.750", "0.7500", "0.6875"]
    rates = dict(rows_of(tree, "pos against the rest where decisions are made"))
    assert [rates[name] for name in ("log-odds at least", "sensitivity", "false positive rate",
                                     "precision")] == ["0.00", "75.0 %", "25.0 %", "75.0 %"]
    assert rows_of(tree, "Answers by their probability") == [
        ["not calibrated", "60.0 % to 66.7 %", "66.7 %", "75.0 %", "8"]]


@pytest.mark.parametrize("labels", [["b", "a"], [3, 1], [True, False]])
def test_the_evaluation_is_that_of_evaluate(tmp_path: Path, labels: list[Any]) -> None:
    train = FILMS.with_columns(pl.col("label").replace_strict(["pos", "neg"], labels))
    model = TextClassifier().fit(train)
    train.write_csv(tmp_path / "films.csv")
    for frame in (train, train.lazy(), tmp_path / "films.csv"):
        found = report_data.score_rows(model, frame)
        assert found.evaluation.to_dict() == evaluate(model, frame).to_dict()
    written = write_report(model, tmp_path / "films.csv", tmp_path / "report.html")
    assert written.to_dict() == evaluate(model, train).to_dict()


def test_a_decision_by_hand(page: Callable[..., LexborHTMLParser]) -> None:
    train = pl.DataFrame({"text": ["good", "bad"], "label": ["pos", "neg"]})
    model = TextClassifier().fit(train)
    # Log-odds of pos are n log 2 for n times "good": 3 of them reach log 8.
    model.set_decision(Decision({"neg": 0.0, "pos": float(np.log(7.9))}, positive="pos"))
    test = pl.DataFrame({"text": ["good good good", "good good good", "good", "good good", "bad"],
                         "label": ["pos", "neg", "pos", "neg", "neg"]})
    tree = page(model, test)
    assert rows_of(tree, "By label, with the model's thresholds") == [
        ["neg", "0.00", "50.0 %", "1", "1", "1", "0"],
        ["pos", "2.07", "88.8 %", "1", "0", "1", "1"]]
    rates = {name: rest for name, *rest in rows_of(
        tree, "pos against the rest where decisions are made")}
    assert [rates[f"{name}s"][1] for name in ("true positive", "false positive", "false negative",
                                              "true negative")] == ["1", "1", "1", "2"]
    assert [rates[name] for name in ("log-odds at least", "sensitivity", "false positive rate",
                                     "precision")] == [
        ["0.00", "2.07"], ["100 %", "50.0 %"], ["66.7 %", "33.3 %"], ["50.0 %", "50.0 %"]]
    tiles = tiles_of(tree)
    assert (tiles["Decided"], tiles["Right when decided"]) == ("60.0 %", "66.7 %")
    assert "decision" in text_of(tree, "svg text")


def test_a_calibrated_model_shows_both(page: Callable[..., LexborHTMLParser]) -> None:
    model = TextClassifier().fit(FILMS)
    before = tiles_of(page(model, FILMS))["Log loss"]
    tree = page(model.set_calibration(Calibration(0.5, 0.0, 9, "by hand")), FILMS)
    note = [note for note in text_of(tree, ".tiles dd") if "P(label)" in note]
    assert note[0].endswith(f"{before} before calibration")
    assert {row[0] for row in rows_of(tree, "Answers by their probability")} == {
        "calibrated", "not calibrated"}
    assert any("temperature 0.5" in row[1] for row in rows_of(tree, "What was tested"))


def test_scores_that_are_no_probabilities_are_not_judged(
    page: Callable[..., LexborHTMLParser]
) -> None:
    model = TextClassifier(ComplementNB()).fit(FILMS)
    tree = page(model, FILMS)
    assert "Log loss" not in tiles_of(tree)
    assert "no probabilities to judge" in " ".join(text_of(tree, "#probabilities p"))
    tree = page(model.set_calibration(Calibration(2.0)), FILMS)
    assert "Log loss" in tiles_of(tree)
    assert {row[0] for row in rows_of(tree, "Answers by their probability")} == {"calibrated"}


def test_the_worst_mistakes_come_first(page: Callable[..., LexborHTMLParser]) -> None:
    model = TextClassifier().fit(pl.DataFrame({"text": ["good", "bad"], "label": ["pos", "neg"]}))
    test = pl.DataFrame({"text": ["good", "bad good bad bad", "good " * 9 + "x" * 700, "bad"],
                         "label": ["neg", "pos", "neg", "neg"]})
    tree = page(model, test)
    assert text_of(tree, "#mistakes h3") == [
        "Row 2: pos instead of neg", "Row 1: neg instead of pos", "Row 0: pos instead of neg"]
    assert text_of(tree, "#mistakes .sure")[1:] == [
        "80.0 % sure, log-odds 1.4", "66.7 % sure, log-odds 0.7"]
    assert text_of(tree, "#mistakes .cut") == ["… 145 more characters"]
    first, second, _ = tree.css("#mistakes .bars")
    cells = [[cell.text(strip=True) for cell in row.css("th, td")] for row in second.css(
        "tbody tr")]
    # log 2 for each of three "bad", less log 2 for "good".
    assert cells == [["bad", "3", "2.08"], ["good", "1", "−0.69"],
                     ["(prior, absent terms)", "", "0.00"]]
    assert len(first.css("tbody tr")) == 2


# Shapes of data


def test_one_class(page: Callable[..., LexborHTMLParser]) -> None:
    with pytest.warns(UserWarning, match="only one class"):
        model = TextClassifier().fit(["aa", "bb"], ["x", "x"])
    tree = page(model, pl.DataFrame({"text": ["aa"], "label": ["x"]}))
    check_accessible(tree)
    assert "one class" in " ".join(text_of(tree, "#curves p"))
    assert "one class" in " ".join(text_of(tree, "#probabilities p"))


def test_many_classes_are_told_in_tables(page: Callable[..., LexborHTMLParser]) -> None:
    names = [f"class {k}" for k in range(40)]
    frame = pl.DataFrame({"text": [f"word{k} word{k % 3}" for k in range(40)], "label": names})
    tree = page(TextClassifier().fit(frame), frame.with_columns(pl.Series(
        "label", names[1:] + names[:1])))
    check_accessible(tree)
    assert "can’t be read" in " ".join(text_of(tree, "#confusion p"))
    assert len(rows_of(tree, "Most frequent confusions: documents that miss one class and get "
                       "another")) == 12
    assert len(rows_of(tree, "Each class against the rest, those of most documents first")) == 40
    assert "Of 40 classes, the 8 with the lowest average precision" in " ".join(
        text_of(tree, "#curves figcaption"))


def test_a_model_of_feature_tables(page: Callable[..., LexborHTMLParser]) -> None:
    table = pl.DataFrame({"x1": [1.0, 2.0, 1.5, 6.0, 7.0, 6.5],
                          "x2": [1.0, 1.5, 2.5, 4.0, 6.0, 3.0], "label": list("aaabbb")})
    model = TableClassifier(GaussianNB()).fit(table)
    tree = page(model, table.with_columns(label=pl.Series(list("aaabba"))))
    check_inert(tree)
    check_accessible(tree)
    assert tiles_of(tree)["Accuracy"] == "83.3 %"
    assert "have no terms" in " ".join(text_of(tree, "#terms p"))
    assert text_of(tree, "blockquote bdi") == ["x1 = 6.5, x2 = 3.0"]
    with pytest.raises(ParameterError, match="train is for models of texts"):
        page(model, table, train=table)


def test_several_text_columns(page: Callable[..., LexborHTMLParser]) -> None:
    rows = pl.DataFrame({"subject": ["Free!", None], "body": ["offer", "meeting"],
                         "label": ["spam", "ham"]})
    model = TextClassifier(text=["subject", "body"]).fit(rows)
    tree = page(model, rows.with_columns(pl.col("label").reverse()))
    assert text_of(tree, ".column") == ["subject", "body"] * 2
    assert sorted(text_of(tree, "blockquote bdi")) == ["(no text)", "Free!", "meeting", "offer"]


# The command


def test_the_command_writes_a_page_beside_its_figures(
    run: Run, mail: Path, trained: Path, folder: Path
) -> None:
    plain = run("test", trained, mail, "-q").checked()
    told = run("test", trained, mail, "--report", "r.html", "--train", mail, "--train-where",
               "split = 'train'", "-q").checked()
    assert (told.out, told.err) == (plain.out, "")
    tree = LexborHTMLParser((folder / "r.html").read_text("utf-8"))
    assert text_of(tree, "h1") == ["mail.textnb on mail.parquet"]
    assert "4 test documents repeat a training row word for word (66.7 %)" in " ".join(
        text_of(tree, ".findings"))
    assert tree.css_first("time") is not None
    rates = run("test", trained, mail, "--report", "r.html", "--positive", "ham", "-q").checked()
    assert rates.out == run("test", trained, mail, "--positive", "ham", "-q").checked().out
    tree = LexborHTMLParser((folder / "r.html").read_text("utf-8"))
    assert "“ham” against the rest" in " ".join(text_of(tree, "#curves figcaption"))


@pytest.mark.parametrize(("options", "code", "message"), [
    (["--train", "mail.parquet"], 2, "--train goes with --report"),
    (["--report", "r.html", "--train-where", "x = 1"], 2, "--train-where goes with --train"),
    (["--report", "no/r.html"], 1, "there is no folder"),
    (["--report", "mail.parquet"], 2, "also what is read"),
    (["--report", "r.html", "--train", "mail.parquet"], 2, "is also what is tested"),
    (["--report", "r.html", "--train", "no.parquet"], 1, "no such file or folder: 'no.parquet'"),
    (["--report", "r.html", "--positive", "x"], 2, "positive: unknown value 'x'"),
])
def test_the_command_refuses_before_it_scores(
    run: Run, mail: Path, trained: Path, folder: Path, options: list[str], code: int, message: str
) -> None:
    before = mail.read_bytes()
    ran = run("test", trained, mail, *options).checked(code)
    assert message in ran.err
    assert (ran.out, files_in(folder)) == ("", ["mail.parquet"])
    assert mail.read_bytes() == before


def test_the_command_names_the_extra(
    run: Run, mail: Path, trained: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    ran = run("test", trained, mail, "--report", "r.html").checked(2)
    assert "pip install 'textnb[report]'" in ran.err
    run("test", trained, mail, "-q").checked()
    assert MAIL.height == 6


# Sizes, and real corpora


def test_the_report_of_a_large_test_is_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    words = np.array([f"word{n}" for n in range(2000)])
    labels = rng.integers(0, 2, 60_000)
    drawn = words[np.minimum(rng.geometric(np.where(labels, 0.004, 0.006)[:, None],
                                           (60_000, 4)), 2000) - 1]
    frame = pl.DataFrame({"text": [" ".join(row) for row in drawn], "label": labels})
    model = TextClassifier().fit(frame[:1000])
    found = write_report(model, frame, tmp_path / "report.html")
    assert found.documents == 60_000
    assert (tmp_path / "report.html").stat().st_size < 200_000
    tree = LexborHTMLParser((tmp_path / "report.html").read_text("utf-8"))
    check_inert(tree)
    check_accessible(tree)


def test_a_spam_filter(
    corpus: Callable[[str], pl.LazyFrame], page: Callable[..., LexborHTMLParser]
) -> None:
    rows = corpus("sms_spam").collect()
    model = TextClassifier().fit(rows[:2500])
    tree = page(model, rows[2500:], train=rows[:2500])
    check_inert(tree)
    check_accessible(tree)
    assert tiles_of(tree)["Accuracy"] == f"{model.score(rows[2500:]) * 100:.1f} %"
    assert "repeat a training row word for word" in " ".join(text_of(tree, ".findings"))


def test_twenty_classes(
    corpus: Callable[[str], pl.LazyFrame], page: Callable[..., LexborHTMLParser]
) -> None:
    rows = corpus("20newsgroups")
    model = TextClassifier(MultinomialNB(l=0.1)).fit(
        rows.filter(pl.col("split") == "train").head(3000))
    test = rows.filter(pl.col("split") == "test").head(2000)
    tree = page(model, test)
    check_inert(tree)
    check_accessible(tree)
    assert tiles_of(tree)["Accuracy"] == f"{model.score(test) * 100:.1f} %"
    assert len(tree.css("#confusion svg path")) > 20


def test_what_it_returns_is_what_evaluate_tells(tmp_path: Path) -> None:
    rows = pl.DataFrame({"text": ["win cash", "see you", "win you", "cash", ""],
                         "label": ["spam", "ham", "spam", "ham", "other"]})
    model = textnb.TextClassifier().fit(rows.head(2))
    model.set_decision(textnb.Decision({"ham": 0.0, "spam": 0.5}, "spam"))
    told = textnb.evaluate(model, rows).to_dict()
    assert textnb.write_report(model, rows, tmp_path / "r.html").to_dict() == told
    assert set(told["decision"]) > {"answered", "unsure", "false_positives", "missed"}


@pytest.mark.parametrize(("estimator", "word"), [
    (MultinomialNB(), "log-odds"), (ComplementNB(), "margin")])
def test_a_mistake_says_what_its_terms_add_to(
    page: Callable[..., LexborHTMLParser], estimator: MultinomialNB, word: str
) -> None:
    model = TextClassifier(estimator).fit(["good film", "bad film"], ["pos", "neg"])
    rows = pl.DataFrame({"text": ["good", "zebra"], "label": ["neg", "pos"]})
    tree = page(model, rows)
    known, unknown = tree.css("#mistakes article")
    assert f"What each term added to the {word} of the answer" in known.text()
    assert "No term of this text is known" not in known.text()
    assert "No term of this text is known: the answer rests on " in unknown.text()


@pytest.mark.parametrize(("estimator", "words"), [
    (MultinomialNB(), "divided by their standard error"),
    (NBLogisticRegression(), "the model’s weight for the class")])
def test_terms_say_what_ranks_them(
    page: Callable[..., LexborHTMLParser], estimator: MultinomialNB, words: str
) -> None:
    tree = page(TextClassifier(estimator).fit(FILMS), FILMS)
    assert words in tree.css_first("#terms").text()
