"""The report: its figures are right, its page is sound, and nothing in it runs or loads.

The fixture ``page`` checks of every page here that it is inert and accessible.
"""

import datetime
import re
import sys

import numpy as np
import polars as pl
import pytest

import textnb
from tests.classifier.topics import NEWS, TEST, TOPICS
from tests.cli.conftest import files_in
from tests.evaluation import report_page
from tests.evaluation.report_page import FILMS, joined, parsed, rows_of, text_of, tiles_of
from textnb import Calibration, Decision, MultinomialNB, NBLinear, ParameterError, TextClassifier
from textnb.errors import DataError, SourceError
from textnb.report import cards, charts, data
from textnb.runtime.display import number

for extra in ("altair", "vl_convert", "jinja2"):
    pytest.importorskip(extra, reason="needs textnb[report]")

HOSTILE = ["</text><script>alert(1)</script>", '"><img src=x onerror=alert(1)>',
           "\u202egnp.exe\x00", "{{ 7 * 7 }}{% raw %}", "", "line\nbreak"]
CLASSES = "Each class against the rest, those of most documents first"
LABELS = "Each label against the rest, those of most documents first"
RELIABILITY = "Answers by their probability"


# The page


@pytest.mark.parametrize(("estimator", "terms", "sum_of_terms"), [
    (MultinomialNB(), "divided by their standard error", "log-odds"),
    (textnb.BernoulliNB(), "divided by their standard error", "log-odds"),
    (textnb.ComplementNB(), "divided by their standard error", "margin"),
    (textnb.NBLogisticRegression(), "the model’s weight for the class", "log-odds"),
    (textnb.NBLogisticRegression(loss="hinge"), "the model’s weight for the class", "margin"),
], ids=str)
def test_terms_are_shown_by_what_ranks_them_and_what_they_add_to(
    page, estimator, terms, sum_of_terms
):
    model = TextClassifier(estimator).fit(FILMS)
    rows = pl.DataFrame({"text": ["good", "zebra", "zebra"], "label": ["neg", "pos", "neg"]})
    tree = page(model, pl.concat([FILMS, rows]), train=FILMS, title="Films")
    assert text_of(tree, "h1") == ["Films"]
    assert terms in tree.css_first("#terms").text()
    mistakes = [article.text() for article in tree.css("#mistakes article")]
    known, unknown = (next(text for text in mistakes if title in text)
                      for title in ("Row 6", "zebra"))
    assert f"What each term added to the {sum_of_terms} of the answer" in known
    assert "No term of this text is known" not in known
    assert "No term of this text is known: the answer rests on " in unknown


def test_hostile_labels_and_texts_stay_text(page):
    frame = pl.DataFrame({
        "text": ["<script>document.title='owned'</script> aa", "bb <img src=x onerror=alert(1)>",
                 "cc </blockquote></table>", "dd", "ee", "ff &amp; \u2066"] * 2,
        "label": HOSTILE * 2})
    model = TextClassifier(tokenizer=textnb.Tokenizer(pattern=r"\S+")).fit(frame)
    tree = page(model, frame.with_columns(pl.col("label").reverse()), title=HOSTILE[0])
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


def test_a_chart_passes_on_nothing_but_shapes_and_text():
    begin = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" viewBox="0 0 9 9">'
    cleaned = charts.clean(
        f'{begin}<g id="a" onclick="x()" class="b"><path d="M0,0" href="http://x" fill="#000"/>'
        "<text>&lt;b&gt;</text></g></svg>")
    assert "<path d=\"M0,0\" fill=\"#000\" /><text>&lt;b&gt;</text>" in cleaned
    for gone in ("onclick", "href", "id=", "class="):
        assert gone not in cleaned
    for bad in ("script", "image", "foreignObject", "style", "use"):
        with pytest.raises(ValueError, match=f"no element '{bad}'"):
            charts.clean(f"{begin}<{bad}/></svg>")


def test_the_same_rows_give_the_same_bytes_but_for_a_date(tmp_path):
    model, path = TextClassifier().fit(FILMS), tmp_path / "report.html"
    textnb.write_report(model, FILMS, path)
    undated = path.read_bytes()
    textnb.write_report(model, FILMS.lazy(), path, date=datetime.date(2020, 2, 29))
    line = '<p class="date">Tested on <time datetime="2020-02-29">2020-02-29</time></p>'
    assert line in path.read_text("utf-8")
    assert path.read_text("utf-8").replace(line, "").encode() == undated


@pytest.mark.parametrize("labels", [["spam", "ham", "other"], [3, 1, 2], [True, False, True]])
def test_it_returns_what_evaluate_does_and_names_no_path(tmp_path, labels):
    rows = pl.DataFrame({"text": ["win cash", "see you", "win you", "cash", ""],
                         "label": [labels[k] for k in (0, 1, 0, 1, 2)]})
    rows.write_csv(tmp_path / "rows.csv")
    model = TextClassifier().fit(rows.head(2))
    model.set_decision(Decision({labels[1]: 0.0, labels[0]: 0.5}, labels[0]))
    result = textnb.evaluate(model, rows).to_dict()
    path = tmp_path / "report.html"
    assert textnb.write_report(model, tmp_path / "rows.csv", path).to_dict() == result
    assert set(result["decision"]) > {"answered", "unsure", "false_positives", "missed"}
    assert str(tmp_path) not in path.read_text("utf-8")


def test_a_page_is_whole_or_not_there(tmp_path, monkeypatch):
    model, path = TextClassifier().fit(FILMS), tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(DataError, match="null in row 0"):
        textnb.write_report(model, FILMS.with_columns(label=pl.lit(None, dtype=pl.String)), path)
    assert (path.read_text(), files_in(tmp_path)) == ("before", ["report.html"])
    monkeypatch.setattr(charts, "clean", lambda svg: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        textnb.write_report(model, FILMS, path)
    assert (path.read_text(), files_in(tmp_path)) == ("before", ["report.html"])


@pytest.mark.parametrize("names", [
    "altair", "vl_convert", "jinja2", "altair, jinja2, vl_convert"])
def test_missing_libraries_are_named_before_anything_is_read(tmp_path, monkeypatch, names):
    for name in names.split(", "):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ParameterError, match=rf"needs {names}: pip install 'textnb\[report\]'"):
        textnb.write_report(TextClassifier().fit(FILMS), "nothing.parquet", tmp_path / "r.html")
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(("settings", "error", "message"), [
    ({"path": "no/such/folder/r.html"}, SourceError, "there is no folder"),
    ({"date": "2020-01-01"}, ParameterError, "date must be a datetime.date; got '2020-01-01'"),
    ({"positive": "spam"}, ParameterError, "unknown value 'spam'; choose one of neg, pos"),
    ({"frame": FILMS.clear()}, DataError, "the test set has no rows"),
    ({"frame": FILMS.with_columns(label=pl.lit("x"))}, DataError, "knows none of the labels"),
    ({"train": FILMS.clear()}, DataError, "the training set has no rows"),
])
def test_what_can_not_be_reported_on_is_refused(tmp_path, settings, error, message):
    arguments = {"frame": FILMS, "path": tmp_path / "r.html", **settings}
    with pytest.raises(error, match=message):
        textnb.write_report(TextClassifier().fit(FILMS), **arguments)
    assert files_in(tmp_path) == []


# Its figures


def test_the_figures_of_a_small_test_by_hand(page):
    test = pl.DataFrame({"text": ["good"] * 3 + ["bad"] * 4 + ["good"],
                         "label": ["pos"] * 3 + ["neg"] * 3 + ["pos", "neg"]})
    tree = page(TextClassifier(MultinomialNB(l=1.0)).fit(report_page.GOOD_OR_BAD), test)
    # P(pos | good) = P(neg | bad) = (2/3) / (2/3 + 1/3) = 2/3, right in 6 of 8.
    loss = -(6 * np.log(2 / 3) + 2 * np.log(1 / 3)) / 8
    brier = (6 * (2 / 9) + 2 * (8 / 9)) / 8
    assert tiles_of(tree).items() >= {
        "Accuracy": "75.0 %", "Largest class alone": "50.0 %", "Macro F1": "0.750",
        "Log loss": f"{loss:.3f}", "Brier score": f"{brier:.3f}",
        "Calibration error": f"{0.75 - 2 / 3:.3f}"}.items()
    assert rows_of(tree, "Documents by label (rows) and answer (columns)") == [
        ["neg", "3", "1"], ["pos", "1", "3"]]
    # A rectangle for each of the four numbers.
    assert len(tree.css("#confusion svg path")) >= 4
    # Of 16 pairs of a positive and a negative, 9 in order and 6 tied.
    assert rows_of(tree, CLASSES)[1] == [
        "pos", "4", "1", "4", "75.0 %", "75.0 %", "0.750", "0.7500", "0.6875"]
    rates = dict(rows_of(tree, "pos against the rest where decisions are made"))
    assert [rates[name] for name in ("log-odds at least", "sensitivity", "false positive rate",
                                     "precision")] == ["0.00", "75.0 %", "25.0 %", "75.0 %"]
    assert rows_of(tree, RELIABILITY) == [
        ["not calibrated", "60.0 % to 66.7 %", "66.7 %", "75.0 %", "8"]]


def test_a_decision_by_hand(page):
    tree = page(report_page.DECIDED, report_page.TO_DECIDE)
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


def test_a_calibrated_model_shows_both(page):
    model = TextClassifier().fit(FILMS)
    before = tiles_of(page(model, FILMS))["Log loss"]
    tree = page(model.set_calibration(Calibration(0.5, 0.0, 9, "by hand")), FILMS)
    note = [note for note in text_of(tree, ".tiles dd") if "P(label)" in note]
    assert note[0].endswith(f"{before} before calibration")
    assert {row[0] for row in rows_of(tree, RELIABILITY)} == {"calibrated", "not calibrated"}
    assert any("temperature 0.5" in row[1] for row in rows_of(tree, "What was tested"))


def test_scores_that_are_no_probabilities_are_not_judged(page):
    model = TextClassifier(textnb.ComplementNB()).fit(FILMS)
    tree = page(model, FILMS)
    assert "Log loss" not in tiles_of(tree)
    assert "no probabilities to judge" in joined(tree, "#probabilities p")
    tree = page(model.set_calibration(Calibration(2.0)), FILMS)
    assert "Log loss" in tiles_of(tree)
    assert {row[0] for row in rows_of(tree, RELIABILITY)} == {"calibrated"}


def test_null_tokens_are_left_out(page):
    rows = pl.DataFrame({"text": [["good", None], ["bad"]] * 5, "label": ["pos", "neg"] * 5})
    model = TextClassifier().fit(rows)
    assert model.explain(["good", None]).equals(model.explain(["good"]))
    tree = page(model, rows.with_columns(label=pl.lit("neg")))
    assert text_of(tree, "#mistakes h3")[0] == "Row 0: pos instead of neg"
    assert "None" not in joined(tree, "#mistakes")


def test_the_worst_mistakes_come_first(page):
    test = pl.DataFrame({"text": ["good", "bad good bad bad", "good " * 9 + "x" * 700, "bad"],
                         "label": ["neg", "pos", "neg", "neg"]})
    tree = page(TextClassifier().fit(report_page.GOOD_OR_BAD), test)
    assert text_of(tree, "#mistakes h3") == [
        "Row 2: pos instead of neg", "Row 1: neg instead of pos", "Row 0: pos instead of neg"]
    assert text_of(tree, "#mistakes .sure")[1:] == [
        "80.0 % sure, log-odds 1.4", "66.7 % sure, log-odds 0.7"]
    assert text_of(tree, "#mistakes .cut") == ["… 145 more characters"]
    first, second, _ = tree.css("#mistakes .bars")
    cells = [[cell.text(strip=True) for cell in row.css("th, td")] for row in second.css(
        "tbody tr")]
    # log 2 for each of three "bad", less log 2 for "good".
    assert cells == [["bad", "3", "2.08"], ["good", "1", "−0.69"]]
    assert len(first.css("tbody tr")) == 1
    assert text_of(tree, "#mistakes details .note")[1] == "The prior and absent terms add 0.00."


def test_what_many_terms_add_is_a_sentence_and_no_bar(page):
    # log(2/61) - log(1/32) for each.
    words = [f"w{n}" for n in range(30)]
    train = pl.DataFrame({"text": [" ".join(words), "bad"], "label": ["pos", "neg"]})
    tree = page(TextClassifier().fit(train), train.with_columns(label=pl.lit("neg")))
    assert len(tree.css("#mistakes .bars tbody tr")) == 6
    assert text_of(tree, "#mistakes details .note") == [
        "24 other terms add 1.15, the prior and absent terms 0.00."]


def test_a_mistake_is_explained_against_its_label(page):
    train = pl.DataFrame({"text": ["aa aa", "bb", "cc"], "label": ["x", "y", "z"]})
    test = pl.DataFrame({"text": ["aa aa bb", "cc aa"], "label": ["z", "z"]})
    model = TextClassifier().fit(train)
    assert model.explain("aa aa bb")["runner_up"][0] == "y"
    tree = page(model, test)
    assert text_of(tree, "#mistakes h3") == ["Row 0: x instead of z"]
    assert "The terms that decided it, against z" in joined(tree, "#mistakes details")
    bars = [[cell.text(strip=True) for cell in row.css("th, td")]
            for row in tree.css("#mistakes .bars tbody tr")]
    # P(aa | x) = 3/5, P(bb | x) = 1/5, and both are 1/4 of z.
    assert bars == [["aa", "2", number(2 * np.log(12 / 5), 2)],
                    ["bb", "1", number(np.log(4 / 5), 2)]]


def test_thresholds_on_margins_are_no_log_odds(page):
    model = TextClassifier(textnb.ComplementNB()).fit(report_page.GOOD_OR_BAD)
    model.set_decision(Decision({"neg": 0.5, "pos": 0.5}, positive="pos"))
    tree = page(model, report_page.TO_DECIDE)
    table = "By label, with the model's thresholds"
    assert [row[1:3] for row in rows_of(tree, table)] == [["0.50", "–"]] * 2
    assert "log-odds" not in joined(tree, "#decision table") + joined(tree, "#curves table")


def test_a_linear_model_has_an_intercept(page):
    train = pl.DataFrame({"text": ["good", "good film", "bad", "bad plot"] * 5,
                          "label": ["pos", "pos", "neg", "neg"] * 5})
    tree = page(TextClassifier(NBLinear()).fit(train), pl.DataFrame(
        {"text": ["good", "bad"], "label": ["neg", "neg"]}))
    assert re.match("The intercept adds [^a-z]*\\.$", text_of(tree, "#mistakes details .note")[0])


# Shapes of data


def test_one_class_has_no_curve_and_no_probability(page):
    with pytest.warns(UserWarning, match="only one class"):
        model = TextClassifier().fit(["aa", "bb"], ["x", "x"])
    tree = page(model, pl.DataFrame({"text": ["aa"], "label": ["x"]}))
    assert "one class" in joined(tree, "#curves p")
    assert "one class" in joined(tree, "#probabilities p")


def test_many_classes_are_shown_in_tables(page):
    names = [f"class {k}" for k in range(40)]
    frame = pl.DataFrame({"text": [f"word{k} word{k % 3}" for k in range(40)], "label": names})
    tree = page(TextClassifier().fit(frame), frame.with_columns(pl.Series(
        "label", names[1:] + names[:1])))
    assert "can’t be read" in joined(tree, "#confusion p")
    assert len(rows_of(tree, "Most frequent confusions: documents that miss one class and get "
                       "another")) == 12
    assert len(rows_of(tree, CLASSES)) == 40
    assert "Of 40 classes, the 8 with the lowest average precision" in joined(
        tree, "#curves figcaption")


def test_a_model_of_feature_tables_has_no_terms(page):
    table = pl.DataFrame({"x1": [1.0, 2.0, 1.5, 6.0, 7.0, 6.5],
                          "x2": [1.0, 1.5, 2.5, 4.0, 6.0, 3.0], "label": list("aaabbb")})
    model = textnb.TableClassifier(textnb.GaussianNB()).fit(table)
    tree = page(model, table.with_columns(label=pl.Series(list("aaabba"))))
    assert tiles_of(tree)["Accuracy"] == "83.3 %"
    assert "have no terms" in joined(tree, "#terms p")
    assert text_of(tree, "blockquote bdi") == ["x1 = 6.5, x2 = 3.0"]
    with pytest.raises(ParameterError, match="train is for models of texts"):
        page(model, table, train=table)


def test_several_text_columns_are_shown_by_name(page):
    rows = pl.DataFrame({"subject": ["Free!", None], "body": ["offer", "meeting"],
                         "label": ["spam", "ham"]})
    model = TextClassifier(text=["subject", "body"]).fit(rows)
    tree = page(model, rows.with_columns(pl.col("label").reverse()))
    assert text_of(tree, ".column") == ["subject", "body"] * 2
    assert sorted(text_of(tree, "blockquote bdi")) == ["(no text)", "Free!", "meeting", "offer"]


def test_the_report_of_a_large_test_is_small(page, tmp_path):
    rng = np.random.default_rng(5)
    words = np.array([f"word{n}" for n in range(2000)])
    labels = rng.integers(0, 2, 60_000)
    drawn = words[np.minimum(rng.geometric(np.where(labels, 0.004, 0.006)[:, None],
                                           (60_000, 4)), 2000) - 1]
    frame = pl.DataFrame({"text": [" ".join(row) for row in drawn], "label": labels})
    page(TextClassifier().fit(frame[:1000]), frame)
    assert (tmp_path / "report.html").stat().st_size < 200_000


# Lists of labels


@pytest.fixture(scope="module", params=[MultinomialNB(), textnb.NBLinear()], ids=str)
def topics(request):
    return TextClassifier(request.param).fit(NEWS)


def test_the_measures_and_mistakes_of_lists_are_shown(page, topics):
    tree, result = page(topics, TEST, title="news"), textnb.evaluate(topics, TEST)
    tiles = tiles_of(tree)
    assert tiles["Micro F1"] == number(result.micro_f1)
    assert tiles["P@1"] == number(result.ranking["precision"][0])
    ordered = result.labels.sort("documents", descending=True, maintain_order=True)
    assert [(row[0], row[1], row[6]) for row in rows_of(tree, LABELS)] == [
        (label, str(n), number(f1)) for label, n, f1 in ordered.select(
            "label", "documents", "f1").iter_rows()]
    pairs = rows_of(tree, "Most frequent confusions: documents that miss one label and get "
                    "another")
    assert [tuple(row[:3]) for row in pairs] == [
        (a, b, str(n)) for a, b, n in result.confused.drop_nulls().rows()]
    # Each label has a chart, and is linked from the tables.
    assert len(tree.css("#terms article svg")) == len(TOPICS)
    anchors = {node.attributes["id"] for node in tree.css("#terms article")}
    assert {node.attributes["href"] for node in tree.css("#classes a")} == {
        f"#{anchor}" for anchor in anchors}
    # The mistakes furthest from the threshold come first.
    decision = topics.decision_ or Decision(dict.fromkeys(TOPICS, 0.0))
    far = abs(topics.predict_joint_log_proba(TEST) - [decision.thresholds[name] for name in TOPICS])
    wrong, missed = [], []
    for row, (own, given) in enumerate(zip(
            TEST["label"], topics.predict(TEST)["predicted"], strict=True)):
        wrong += [(-far[row, TOPICS.index(label)], row, label) for label in {*given} - {*own}]
        missed += [(-far[row, TOPICS.index(label)], row, label) for label in {*own} - {*given}]
    cards = []
    for kind, mistakes in (("predicted wrongly", wrong), ("missed", missed)):
        # A document has one card, whatever the number of its labels.
        labels = {}
        for _, row, label in sorted(mistakes):
            labels.setdefault(row, []).append(label)
        cards += [f"Row {row}: {', '.join(own)} {kind}"
                  for row, own in [*labels.items()][:data.MAX_MISTAKES]]
    assert text_of(tree, ".mistakes h3") == cards
    assert any("," in card for card in cards)


def test_hostile_labels_of_lists_stay_text(page):
    labels = [name for name in HOSTILE if name]
    frame = pl.DataFrame({"text": [f"{label} aa" for label in labels] * 2,
                          "label": [[label] for label in labels] * 2})
    tree = page(TextClassifier().fit(frame), frame.with_columns(
        label=pl.concat_list("label", pl.col("label").list.first() + "?")))
    assert "does not know 5 labels" in joined(tree, ".findings li")


def test_where_no_label_is_wrong_or_missed_it_is_said(page):
    frame = pl.DataFrame({"text": ["aa", "bb"] * 5, "label": [["a"], ["b"]] * 5})
    tree = page(TextClassifier(MultinomialNB(l=0.1)).fit(frame), frame)
    assert "No wrong label is predicted." in text_of(tree, "#mistakes p")
    assert "No document misses a label" in text_of(tree, "#confusion p")[0]


def test_curves_thresholds_and_probabilities_of_lists_are_shown(page):
    model = TextClassifier().fit(NEWS)
    tree, held = page(model, TEST), textnb.held_out(model, TEST)
    areas = {row[0]: row[7] for row in rows_of(tree, LABELS)}
    assert areas == {topic: number(held.roc(topic).auc, 4) for topic in TOPICS}
    tiles = tiles_of(tree)
    assert tiles["Calibration error"] == number(
        textnb.reliability(held).expected_calibration_error)
    assert tiles["Log loss"] == number(held.log_loss)
    assert sum(int(row[-1]) for row in rows_of(tree, RELIABILITY)) == len(held)
    assert "decision" not in {node.attributes["id"] for node in tree.css("section")}
    model.set_decision(Decision(dict.fromkeys(TOPICS, 1.0)))
    model.set_calibration(Calibration(link="labels", sigmoids=((0.5, 0.1),) * len(TOPICS)))
    tree, by_decision = page(model, TEST), held.measure(model.decision_)
    assert (f"micro F1 is {number(by_decision['micro_f1'])} and macro F1 "
            f"{number(by_decision['macro_f1'])}; with 0 for each label they are "
            f"{number(held.measure()['micro_f1'])}") in text_of(tree, "#decision p")[0]
    assert {row[0] for row in rows_of(tree, RELIABILITY)} == {"calibrated", "not calibrated"}
    calibrated = textnb.reliability(held.calibrated(model.calibration_))
    assert tiles_of(tree)["Brier score"] == number(calibrated.brier)


def test_many_labels_have_letters_and_those_of_most_documents_are_shown(page, monkeypatch):
    names = [f"{'abc'[n % 3]}{n}" for n in range(40)]
    frame = pl.DataFrame({"text": [f"word{n}" for n in range(40)] * 2,
                          "label": [sorted({name, names[0]}) for name in names] * 2})
    model = TextClassifier().fit(frame)
    tree = page(model, frame)
    assert text_of(tree, ".letters a") == ["A", "B", "C"]
    assert len(rows_of(tree, "All labels, the lowest F1 first")) == 40
    for module in (data, cards):
        monkeypatch.setattr(module, "MAX_LABELS", 5)
    model.set_calibration(Calibration(link="labels", sigmoids=((0.5, 0.1),) * 40))
    tree = page(model, frame)
    assert [row[:2] for row in rows_of(tree, LABELS)][:2] == [["a0", "80"], ["a12", "2"]]
    assert "35 more labels left out here" in joined(tree, "#classes p")


# The command


def test_the_command_writes_a_page_beside_its_figures(run, mail, trained, folder, monkeypatch):
    plain = run("test", trained, mail, "-q").checked()
    with_page = run("test", trained, mail, "--report", "r.html", "--train", mail, "--train-where",
                    "split = 'train'", "-q").checked()
    assert (with_page.out, with_page.err) == (plain.out, "")
    tree = parsed(folder / "r.html")
    assert text_of(tree, "h1") == ["mail.textnb on mail.parquet"]
    assert "4 test documents repeat a training row word for word (66.7 %)" in joined(
        tree, ".findings")
    assert tree.css_first("time") is not None
    run("test", trained, mail, "--report", "r.html", "--positive", "ham", "-q").checked()
    assert "“ham” against the rest" in joined(parsed(folder / "r.html"), "#curves figcaption")
    monkeypatch.setitem(sys.modules, "altair", None)
    assert "pip install 'textnb[report]'" in run(
        "test", trained, mail, "--report", "r.html").checked(2).err


@pytest.mark.parametrize(("options", "code", "message"), [
    (["--report", "no/r.html"], 1, "there is no folder"),
    (["--report", "mail.parquet"], 2, "also what is read"),
    (["--report", "r.html", "--train", "no.parquet"], 1, "no such file or folder: 'no.parquet'"),
    (["--report", "r.html", "--positive", "x"], 2, "positive: unknown value 'x'"),
])
def test_the_command_refuses_before_it_scores(run, mail, trained, folder, options, code, message):
    before = mail.read_bytes()
    ran = run("test", trained, mail, *options).checked(code)
    assert message in ran.err
    assert (ran.out, files_in(folder)) == ("", ["mail.parquet"])
    assert mail.read_bytes() == before


def test_the_command_writes_a_page_of_lists(run, folder):
    TextClassifier().fit(NEWS).save("topics.textnb")
    TEST.write_ndjson("tested.ndjson")
    ran = run("test", "topics.textnb", "tested.ndjson", "--report", "report.html",
              "--train", "tested.ndjson", "--train-where", "true").checked()
    assert "micro F1" in ran.out
    assert "topics.textnb on tested.ndjson" in (folder / "report.html").read_text("utf-8")
    assert "repeat a training row" in (folder / "report.html").read_text("utf-8")
    run("test", "topics.textnb", "tested.ndjson", "--report", "one.html", "--positive",
        "corn").checked()
    assert "corn against the rest where decisions are made" in (
        folder / "one.html").read_text("utf-8")
