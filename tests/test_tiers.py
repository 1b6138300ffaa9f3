"""Which tests a run selects, and what it says of those that it leaves out."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest
from hypothesis import given, settings, strategies as st
from tests.tiers import examples

tried = []

@pytest.fixture
def postgres(): ...

def test_plain(): ...
def test_server(postgres): ...
@pytest.mark.slow
def test_slow(): ...
@pytest.mark.release
def test_release(): ...
@pytest.mark.parametrize("a", range(5))
@pytest.mark.parametrize("b", ["x", "y", None])
def test_product(a, b): ...
@pytest.mark.parametrize(("a", "b"), [(1, "x"), (1, "y"), (2, "x"), (2, "y")])
def test_pairs(a, b): ...
@pytest.mark.sweep(3)
@pytest.mark.parametrize("a", range(10))
def test_sweep(a): ...
@pytest.mark.sweep(2, 9)
@pytest.mark.parametrize("a", range(4))
@pytest.mark.parametrize("b", ["x", "y", "z"])
@pytest.mark.parametrize("c", [True, False])
def test_wide(a, b, c): ...
@pytest.mark.sweep(1, 3)
@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", ["x", "y"])
def test_wide_server(a, b, postgres): ...

@settings(max_examples=examples(10), database=None)
@given(st.integers())
def test_property(i): tried.append(i)
def test_number_of_examples(): print("tried", len(tried))
"""
CONFTEST = """
from tests.conftest import (
    pytest_addoption, pytest_collection_modifyitems, pytest_configure, pytest_sessionfinish,
    pytest_terminal_summary, pytest_testnodedown)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (tmp_path / "test_them.py").write_text(TESTS)
    return tmp_path


def ran(folder, *arguments):
    """What pytest writes."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-s", "-p", "no:cacheprovider", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=100,
        env={"PYTHONPATH": str(Path(__file__).parents[1])})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cases(output, name):
    return re.findall(rf"::test_{name}(?:\[(.*?)\])? .*PASSED", output)


QUICK = {"plain": 1, "server": 0, "slow": 0, "release": 0, "product": 5, "pairs": 4, "sweep": 3,
         "wide": 2, "wide_server": 0}
ALL = {"plain": 1, "server": 1, "slow": 1, "release": 0, "product": 15, "pairs": 4, "sweep": 10,
       "wide": 9, "wide_server": 3}


def test_the_quick_tests_are_the_default(folder):
    output = ran(folder)
    assert {name: len(cases(output, name)) for name in QUICK} == QUICK
    product = [case.split("-") for case in cases(output, "product")]
    assert [{values[i] for values in product} for i in (0, 1)] == [
        {"x", "y", "None"}, set("01234")]
    assert cases(output, "sweep") == ["0", "3", "6"]
    assert "tried 2\n" in output
    assert "\nnot selected: 29 of --all and 19 of --release\n" in output


def test_at_most_two_cases_of_each_test(folder):
    output = ran(folder, "--cases", "2")
    assert {name: len(cases(output, name)) for name in QUICK} == {
        name: min(number, 2) for name, number in QUICK.items()}
    assert cases(output, "sweep") == ["0", "3"]


@pytest.mark.slow
def test_all(folder):
    output = ran(folder, "--all")
    assert {name: len(cases(output, name)) for name in ALL} == ALL
    wide = [case.split("-") for case in cases(output, "wide")]
    assert [len({values[i] for values in wide}) for i in range(3)] == [2, 3, 4]
    assert len({(values[i], values[j]) for values in wide for i, j in ((0, 1), (0, 2), (1, 2))}
               ) >= 20, "nearly all 26 pairs"
    assert "tried 10\n" in output
    assert "\nnot selected: 19 of --release\n" in output


@pytest.mark.slow
def test_a_release_leaves_nothing_out(folder):
    output = ran(folder, "--release")
    assert len(cases(output, "release")) == len(cases(output, "slow")) == 1
    assert "tried 1000\n" in output
    assert "not selected" not in output


@pytest.mark.slow
def test_a_test_that_is_named_runs_and_processes_select_the_same(folder):
    output = ran(folder, "test_them.py::test_slow", "test_them.py::test_product")
    assert len(cases(output, "slow")) == 1
    assert len(cases(output, "product")) == 15
    assert "not selected" not in output
    assert "not selected: 29 of --all and 19 of --release\n" in ran(folder, "-n", "2")


@pytest.mark.slow
def test_a_missing_extra_fails_a_run_that_requires_all(folder):
    (folder / "test_them.py").write_text(
        "import pytest\ndef test_plot(): pytest.importorskip('no_such_module')\n")
    assert "SKIPPED" in ran(folder)
    required = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"], cwd=folder, check=False,
        capture_output=True, timeout=100,
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "TEXTNB_REQUIRE_EXTRAS": "1"})
    assert required.returncode == 1
