"""What a notebook shows: tables and coloured words, in which no data is markup."""

import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import MultinomialNB, ParameterError, TextClassifier, Tokenizer
from textnb.errors import ImpossibleRowError
from textnb.evaluation.evaluate import evaluate_roc
from textnb.mail.message import parse_message
from textnb.runtime import notebook

HOSTILE = "</td><script>alert(1)</script>\"'&<b>"


class Checked(HTMLParser):
    """Tags of a page, which must close in order."""

    def __init__(self, page):
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.titles: list[str] = []
        self.words = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]
        assert {name for name, _ in attrs} <= {"style", "title", "scope", "dir"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def luminance(colour):
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_colour_can_be_read():
    ink = luminance((17, 17, 17)) + 0.05
    page = notebook.words([("a", 3.0), ("b", -3.0), ("c", 0.1)], "x") + notebook.matrix(
        ["a"], [[1]], ["a"], "")
    colours = re.findall(r"rgb\((\d+),(\d+),(\d+)\)", page)
    assert len(colours) == 4
    for colour in colours:
        assert (luminance(tuple(map(int, colour))) + 0.05) / ink > 7


@pytest.mark.parametrize("tokenizer", [
    Tokenizer(), Tokenizer(pattern=r"\S+", ngram_range=(1, 2)),
    Tokenizer(analyzer="char_wb", ngram_range=(2, 3))], ids=repr)
@pytest.mark.parametrize("estimator", [
    MultinomialNB(), textnb.BernoulliNB(), textnb.ComplementNB(),
    textnb.NBLogisticRegression()], ids=repr)
def test_an_explanation_is_the_text(tokenizer, estimator):
    model = TextClassifier(estimator, tokenizer=tokenizer).fit(
        [f"good {HOSTILE} film", "bad film"], [HOSTILE, "neg"])
    text = f"Good film {HOSTILE} unseen"
    explanation = model.highlight(text)
    page = Checked(explanation._repr_html_())
    assert "script" not in page.seen
    assert text in page.words
    assert explanation.table.equals(model.explain(text))
    added = sum(value for _, value in explanation.pieces["text"] if value is not None)
    assert added + explanation.table["contribution"][0] == pytest.approx(explanation.score)
    assert repr(explanation).count("\n") == 0


@pytest.fixture(scope="module")
def model():
    return TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])


def test_a_word_has_its_number_as_text(model):
    explanation = model.highlight("good unseen bad bad")
    titles = Checked(explanation._repr_html_()).titles
    # 2/5 against 1/5.
    number = f"{np.log(2):.3f}"
    assert titles == [f"good: -{number} (log-odds)", "unseen: adds nothing",
                      f"bad: +{number} (log-odds)", f"bad: +{number} (log-odds)"]
    assert repr(explanation) == (
        f"Explanation('neg', against 'pos' by {number} (log-odds); 3 of 4 terms known)")


def test_several_columns_are_named():
    model = TextClassifier(text=["subject", "body"], tokenizer=Tokenizer(field_prefix=True)).fit(
        pl.DataFrame({"subject": ["aa", "bb"], "body": ["cc", "zz"], "label": ["x", "y"]}))
    words = Checked(model.highlight({"subject": "aa", "body": "zz"})._repr_html_()).words
    assert words.index("subject:") < words.index("aa") < words.index("body:") < words.index("zz")


def test_a_text_of_unknown_words_says_so(model):
    explanation = model.highlight("zebra quagga")
    assert (explanation.terms, explanation.known) == (2, 0)
    assert "no term of the text is known (2 in it)" in Checked(explanation._repr_html_()).words
    assert model.highlight("zebra film").note == ""


def test_a_table_counts_what_it_leaves_out():
    page = Checked(notebook.table(["class", "n"], [[HOSTILE, 1], ["b", None]], HOSTILE, 5))
    assert page.words.count(HOSTILE) == 2
    assert "… and 3 more" in page.words
    many = notebook.matrix(range(30), [[1] * 30] * 30, range(30), "")
    assert "… and 6 more classes" in Checked(many).words


def test_bad_arguments_are_refused(model):
    with pytest.raises(ParameterError, match="k must be an int >= 1"):
        model.highlight("good", k=0)
    with pytest.raises(ParameterError, match="unknown value 'body'"):
        model.highlight({"body": "good"})


# Objects


ROWS = pl.DataFrame({
    "text": ["good film", "bad film", "good plot", "bad plot", "good", "bad"] * 5,
    "label": [f"<i>{label}" for label in ["pos", "neg"] * 15]})
POSITIVE = "<i>pos"


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """An object of every public kind that holds arrays or frames."""
    folder = tmp_path_factory.mktemp("objects")
    model = TextClassifier().fit(ROWS)
    held = textnb.leave_one_out(model, ROWS)
    dense = textnb.QuadraticDiscriminantAnalysis().fit(
        np.random.default_rng(0).normal(size=(20, 2)), [0, 1] * 10)
    model.save(folder / "m.textnb")
    return {
        "Audit": textnb.audit(ROWS),
        "Duplicates": textnb.find_duplicates(ROWS, label="label"),
        "HeldOut": held, "Evaluation": textnb.evaluate(model, ROWS),
        "Decision": textnb.choose_threshold(held, POSITIVE, max_false_positive_rate=0.5),
        "Reliability": textnb.reliability(held), "Roc": evaluate_roc(model, ROWS, POSITIVE),
        "SmoothingPath": textnb.smoothing_path(model, ROWS, [0.1, 1.0]),
        "Comparison": textnb.compare_models(model, TextClassifier().fit(ROWS.head(3)), ROWS),
        "LinearForm": model.linear_form(), "QuadraticForm": dense._form,
        "Counts": model.statistics_, "MomentStatistics": dense.statistics_,
        "MailFilter": textnb.MailFilter.load(folder / "m.textnb", spam=POSITIVE),
        "Verified": textnb.verify_export(textnb.export_model(model, folder / "w", "csv").path),
        "MailMessage": parse_message(b"Subject: hello\nFrom: a@b\n\n" + b"body\n" * 999),
        "Explanation": model.highlight("good film"), "Calibration": textnb.calibrate(model, ROWS),
    }


def test_every_object_is_one_readable_line(objects):
    for name, value in objects.items():
        line = repr(value)
        assert line.startswith(f"{name}(")
        assert line.endswith(")")
        assert len(line) < 200, line
        for word in ("\n", "array", "shape:"):
            assert word not in line
    # Printed, those that hold a table show it below.
    for name in ("Explanation", "Duplicates"):
        assert str(objects[name]).startswith(f"{objects[name]!r}\nshape: ")


def test_a_notebook_shows_tables(objects):
    shown = {name: Checked(value._repr_html_()) for name, value in objects.items()
             if hasattr(value, "_repr_html_")}
    assert set(shown) == {"Audit", "Duplicates", "HeldOut", "Evaluation", "Decision", "Reliability",
                          "SmoothingPath", "Comparison", "Explanation"}
    for name, page in shown.items():
        assert "table" in page.seen, name
        assert "i" not in page.seen, name
    for name in ("HeldOut", "Evaluation"):
        assert f"{POSITIVE} as {POSITIVE}: 15 of 15" in shown[name].titles
        assert f"{POSITIVE} as <i>neg: 0 of 15" in shown[name].titles


def test_infinite_weights_unknown_labels_and_impossible_rows_are_shown():
    model = TextClassifier(MultinomialNB(l=0)).fit(["aa cc", "bb cc"], ["a", "b"])
    assert "aa: +inf (log-odds)" in Checked(model.highlight("aa cc")._repr_html_()).titles
    with pytest.raises(ImpossibleRowError):
        model.highlight("aa bb")
    rows = pl.DataFrame({"text": ["aa", "aa bb", "bb"], "label": ["a", "b", "other"]})
    held = textnb.held_out(model, rows)
    for value in (held, textnb.evaluate(model, rows)):
        page = Checked(value._repr_html_())
        assert "(impossible)" in page.words
        assert "b as (impossible): 1 of 1" in page.titles
    assert "(unknown label)" in Checked(held._repr_html_()).words
    empty = held.take(np.zeros(0, dtype=np.int64))
    assert repr(empty) == (
        "HeldOut(0 documents, 2 classes, rows given as held out (can't be verified))")
    assert "table" in Checked(empty._repr_html_()).seen
