"""Fixtures of the command line, and the page of a report."""

import pytest

from tests.cli.conftest import folder, mail, run, trained
from tests.evaluation.report_page import check_accessible, check_inert, parsed
from textnb import write_report

__all__ = ["folder", "mail", "run", "trained"]


@pytest.fixture
def page(tmp_path):
    """The report of a model on a frame, parsed as a browser does, and sound in any case."""

    def make(model, frame, **settings):
        path = tmp_path / "report.html"
        write_report(model, frame, path, **settings)
        tree = parsed(path)
        check_inert(tree)
        check_accessible(tree)
        return tree

    return make
