"""Charts of results in Python: the report's, with the figures of the result."""

import sys

import polars as pl
import pytest

import textnb
from tests.evaluation.report_page import FILMS
from textnb import MultinomialNB, ParameterError, TextClassifier
from textnb.report import sections
from textnb.report.charts import draw

TEST = pl.DataFrame({"text": ["good"] * 3 + ["bad"] * 4, "label": ["pos"] * 4 + ["neg"] * 3})
MODEL = TextClassifier(MultinomialNB(l=1.0)).fit(FILMS)
PLOTS = {
    "confusion": lambda: textnb.evaluate(MODEL, TEST).plot(),
    "roc": lambda: textnb.held_out(MODEL, TEST).roc("pos").plot(),
    "reliability": lambda: textnb.reliability(textnb.held_out(MODEL, TEST)).plot(),
    "terms": lambda: MODEL.plot_terms(3),
}
each = pytest.mark.parametrize("name", PLOTS)


@each
def test_without_altair_the_error_says_how_to_install_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ParameterError, match=r"altair: pip install 'textnb\[report\]'"):
        PLOTS[name]()


@each
def test_a_plot_is_a_chart_that_a_notebook_shows(name):
    pytest.importorskip("altair", reason="needs textnb[report]")
    specification = PLOTS[name]().to_dict()
    assert specification["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    pytest.importorskip("vl_convert", reason="needs textnb[report]")
    assert "<path" in draw(PLOTS[name]())


def test_plots_have_the_figures_of_their_results():
    pytest.importorskip("altair", reason="needs textnb[report]")
    data = {name: plot().to_dict()["datasets"] for name, plot in PLOTS.items()}
    assert [(cell["actual"], cell["answer"], cell["count"]) for cell in
            data["confusion"]["cells"]] == [("neg", "neg", "3"), ("pos", "neg", "1"),
                                            ("pos", "pos", "3")]
    assert [(point["x"], point["y"]) for point in data["roc"]["points"]] == [
        (0, 0), (0, 0.75), (1, 1)]
    assert sum(row["documents"] for row in data["reliability"]["bins"]) == 7
    top = MODEL.top(3).rows_by_key("class", named=True)
    for i, label in enumerate(("neg", "pos")):
        assert [(row["term"], row["value"]) for row in data["terms"][f"terms {i}"]] == [
            (row["term"], row[row["measure"]]) for row in top[label]]


def test_the_confusion_of_the_report_is_that_of_plot():
    pytest.importorskip("vl_convert", reason="needs textnb[report]")
    result = textnb.evaluate(MODEL, TEST)
    assert sections._confusion_figure(result).svg == draw(result.plot())


def test_a_term_of_infinite_weight_has_a_name_and_no_bar():
    pytest.importorskip("altair", reason="needs textnb[report]")
    model = TextClassifier(textnb.NBLinear()).fit(FILMS)
    table = model.top(2).with_columns(weight=pl.lit(float("inf")))
    from textnb.runtime.charts import terms_chart

    rows = terms_chart(table).to_dict()["datasets"]["terms 0"]
    assert [row["value"] for row in rows] == [None] * 2
