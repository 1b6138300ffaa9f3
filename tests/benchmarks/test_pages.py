"""Pages and pictures of the benchmarks show the figures of the record."""

import doctest
import json
import re
import sys

import pytest
from benchmarks import pages, sides


def row(side, seconds, **more):
    return {"corpus": "mail", "task": "job", "side": side, "runs": 3, "seconds": seconds,
            "peak_mib": 100.0, "check": {"accuracy": 0.9}, **more}


RECORD = json.loads(pages.RECORD.read_text("utf-8"))


def test_pages_show_the_record():
    text_of = pages.written(RECORD)
    assert "measured.md" in {path.name for path in text_of}
    stale = [path.name for path, text in text_of.items() if path.read_text("utf-8") != text]
    assert stale == [], "run: scripts/bench pages"


def test_pictures_show_the_record():
    """Only texts are compared: their positions depend on the fonts of the machine."""
    pytest.importorskip("vl_convert")
    svg_of = pages.pictures(RECORD)
    assert {path.name for path in svg_of} == {"speed.svg", "parts.svg", "growth.svg"}
    for path, svg in svg_of.items():
        here = path.read_text("utf-8")
        assert re.findall(r">([^<\n]+)</text>", here) == re.findall(r">([^<\n]+)</text>", svg), (
            "run: scripts/bench pages")
        assert "imdb, less is better" in here or path.name == "growth.svg"


def test_pictures_without_altair_say_how_it_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(SystemExit, match=r"altair: pip install 'textnb\[report\]'"):
        pages.pictures(RECORD)


@pytest.mark.parametrize("module", [pages, sides])
def test_examples_are_true(module):
    assert doctest.testmod(module).failed == 0


def test_writing_the_record_gives_the_same_file():
    assert pages.as_text(RECORD) == pages.RECORD.read_text("utf-8")
    nested = {"a": {"about": {"load": 1}, "rows": [{"x": 1, "check": {"y": [1.5]}}, {"x": 2}]}}
    assert json.loads(pages.as_text(nested)) == nested
    assert '\n   {"x": 1, "check": {"y": [1.5]}},\n   {"x": 2}\n' in pages.as_text(nested)


def test_a_page_has_no_unknown_table():
    for path in pages.DOCS.rglob("*.md"):
        named = re.findall(r"<!-- figures: (\w+) -->", path.read_text("utf-8"))
        assert {name for name in named if not name.startswith("machine_of_")} <= {
            *pages.BLOCKS}, path


@pytest.mark.parametrize(("peer", "cells"), [
    ({"seconds": 0.5}, ["mail `job` 2.00", "", ""]),
    ({"peak_mib": 50.0}, ["", "mail `job` 2.00", ""]),
    # It ended before its memory was looked at.
    ({"peak_mib": 0.0, "seconds": 0.8}, ["mail `job` 1.25", "", ""]),
    ({"check": {"accuracy": 0.95}}, ["", "", "mail `job` 5.00"])])
def test_losses_say_what_each_peer_does_better(peer, cells):
    rows = [row("textnb", 1.0), row("peer", 2.0) | peer, row("worse", 3.0)]
    lines = pages.losses(rows).splitlines()
    assert [cell.strip() for cell in lines[-1].split("|")[1:-1]] == ["peer", *cells]
    assert len(lines) == 3
    assert pages.losses(rows[::2]) == "Nowhere."


def test_losses_of_answers_are_those_of_the_default():
    rows = [{"corpus": "mail", "side": side, "accuracy": accuracy, "cpu_seconds": 1.0,
             "peak_mib": 1.0} for side, accuracy in ((sides.DEFAULT, 0.9), ("peer", 0.92))]
    assert pages.losses_of_answers(rows).splitlines()[-1] == "| peer |  |  | mail 2.00 |"


def test_powers_are_slopes_of_the_last_figures():
    rows = [{"grows": "rows", "number": number, "side": "train", "cpu_seconds": seconds,
             "peak_mib": 7.0} for number, seconds in ((1, 50.0), (10, 1.0), (1000, 1000.0))]
    rows.append({"grows": "rows", "number": 10**4, "side": "train", "failed": "no memory"})
    assert pages.exponents(rows).splitlines()[-1] == (
        "| rows | train | 10 and 1,000 | 1.50 | 0.00 |")
    assert pages.exponents(rows[:1]) == "*Not measured.*"


def test_tables_mark_failures_and_different_results():
    rows = [row("textnb", 1.0, differs=True), {"corpus": "mail", "task": "job", "side": "peer",
                                               "failed": "ended with 1"}]
    lines = pages.BLOCKS["whole"][1](rows).splitlines()
    assert lines[0] == "**mail**"
    assert "DIFFERS" in lines[4]
    assert "|  | peer | FAILED: ended with 1 |" in lines[5]


def test_exports_count_the_rows_that_differ():
    figures = {"model": "pairs", "corpus": "news", "terms": 1000, "outputs": 2,
               "model_bytes": 1_000_000, "target": "c", "reads": "terms", "rows": 2500,
               "wrong_scores": 0, "wrong_labels": 0, "largest_difference": 1.5e-12,
               "rows_per_second": None, "load_seconds": 0.25, "bytes": 2_500_000, "differs": False}
    rows = [figures, figures | {"target": "python", "reads": "text", "wrong_labels": 3},
            figures | {"target": "onnx", "rows": None}]
    lines = pages.BLOCKS["exports"][1](rows).splitlines()[2:]
    assert lines == ["| `c` | 0 of 2,500 (tokens) |", "| `python` | DIFFERS 3 of 2,500 |",
                     "| `onnx` | no |"]
    text = pages.export_speed(rows)
    assert "1,000 terms, 2 outputs, a model file of 1.00 MB" in text
    assert "| `c` | terms | 2.50 | 2.50 | 0.250 |  | 1.5e-12 |" in text
    assert pages.export_speed(rows[2:]) == "*Not measured.*"


def test_a_server_is_measured_by_requests():
    rows = [{"server": "textnb", "model": "m", "request": "CHECK", "clients": 8,
             "messages": 1000, "per_second": 412.3, "median": 0.012, "p99": 0.034,
             "longest": 0.12, "worker_mib": [30.2, 31.0]}]
    assert pages.BLOCKS["served"][1](rows).splitlines()[-1] == (
        "| textnb | m | `CHECK` | 8 | 1,000 | 412 | 12.0 | 34.0 | 120 | 30 to 31 |")
