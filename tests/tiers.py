"""Which tests run: the quick ones, ``--all`` of them, or the long sweeps of ``--release`` too.

A test is quick unless something says otherwise:

- it uses a fixture of ``SERVERS``, or has the mark ``slow``: it needs ``--all``;
- it has the mark ``release``: it needs ``--release``;
- it is a case of a product of parameters: a few cases are quick, so that each value of each
  parameter occurs in one of them, and ``--all`` runs the whole product;
- it is a case of a test with the mark ``sweep(20)``: every n-th case is quick, twenty in all;
- it is a case of a test with the mark ``sweep(20, 90)``: twenty cases are quick, ``--all`` runs
  ninety. They are chosen so that first each value of each parameter, then many pairs of values
  occur. ``--release`` runs the whole product.

``--cases 3`` runs three cases of each of these tests at most.

A property test tries a fifth of its examples (``examples``) among the quick ones, and a hundred
times as many before a release. The quick ones are always the same, and in CI those of ``--all``
too, so that whether a change lands is not left to chance. A test whose id is an argument
(``file.py::name``) always runs.
"""

import os
from collections import Counter
from enum import IntEnum
from itertools import combinations
from typing import Any

import pytest
from hypothesis import settings

MARKS = (
    "slow: runs with --all, not among the quick tests",
    "release: runs with --release, before a release",
    "sweep(quick, all): numbers of the cases that are quick and that run with --all; others need "
    "--release. Without a second number, --all runs all cases",
)
# Fixtures that start a server, an engine or a browser, or read a real corpus.
SERVERS = frozenset({"corpus", "postgres", "s3", "spark", "browser"})
# How many examples Hypothesis tries by default, per tier.
PROFILES = {"quick": 20, "all": 100, "release": 10_000}

# Seconds for one test before a release; pyproject.toml has the limit of the other tiers.
RELEASE_TIMEOUT = 4 * 3600


class Tier(IntEnum):
    """A set of tests. Each tier includes the tiers before it."""

    QUICK = 0
    ALL = 1
    RELEASE = 2


def add_options(parser):
    """The options of the tiers."""
    group = parser.getgroup("tiers", "which tests run (the quick ones by default)")
    group.addoption("--all", action="store_true", dest="tier_all",
                    help="the slow tests too: corpora, engines, servers, whole sweeps")
    group.addoption("--release", action="store_true", dest="tier_release",
                    help="the tests of --all and, for hours, those of a release")
    group.addoption("--cases", type=int, default=None, metavar="N",
                    help="run at most N cases of each test")


def tier_of(config):
    """The tier that the options of a run name."""
    if config.getoption("tier_release"):
        return Tier.RELEASE
    return Tier.ALL if config.getoption("tier_all") else Tier.QUICK


def configure(config):
    """Declare the marks, and how many examples property tests try in this run."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    for name, number in PROFILES.items():
        is_fixed = name == "quick" or (name == "all" and "CI" in os.environ)
        settings.register_profile(name, max_examples=number, derandomize=is_fixed)
    settings.load_profile(tier_of(config).name.lower())
    if tier_of(config) is Tier.RELEASE:
        config.option.timeout = RELEASE_TIMEOUT


def examples(number):
    """How many examples to try in this run of a test that tries ``number`` with ``--all``."""
    return max(1, number * settings.default.max_examples // PROFILES["all"])


def select(config, items):
    """Deselect the tests of later tiers than that of the run; say how many of each there were."""
    tiers, wanted = _tiers(items), tier_of(config)
    named = tuple(name for name in config.args if "::" in name)
    to_run, deselected = [], []
    for item in items:
        always = bool(named) and item.nodeid.startswith(named)
        (to_run if always or tiers[item] <= wanted else deselected).append(item)
    if (number := config.getoption("cases")) is not None:
        to_run = [case for cases in _cases_of_tests(to_run) for case in _spread(cases, number)]
        chosen = set(to_run)
        deselected = [item for item in items if item not in chosen]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = to_run
    return Counter(tiers[item] for item in deselected)


def summary(deselected):
    """The line at the end of a run; empty if all tests were selected."""
    counts = [f"{deselected[tier]} of --{tier.name.lower()}"
              for tier in (Tier.ALL, Tier.RELEASE) if deselected.get(tier)]
    return f"not selected: {' and '.join(counts)}" if counts else ""


def _cases_of_tests(items):
    cases: dict[tuple[pytest.Item | Any, str], list[pytest.Item]] = {}
    for item in items:
        cases.setdefault((item.parent, getattr(item, "originalname", item.name)), []).append(item)
    return cases.values()


def _tiers(items):
    tiers: dict[pytest.Item, Tier] = {}
    for item in items:
        if item.get_closest_marker("release"):
            tiers[item] = Tier.RELEASE
        else:
            tiers[item] = Tier.ALL if _is_slow(item) else Tier.QUICK
    sweeps = [item for item in items
              if hasattr(item, "callspec") and tiers[item] is not Tier.RELEASE]
    for cases in _cases_of_tests(sweeps):
        tiers.update(_tiers_of_cases(cases, tiers))
    return tiers


def _is_slow(item):
    return bool(item.get_closest_marker("slow")
                or SERVERS & set(getattr(item, "fixturenames", ())))


def _tiers_of_cases(cases, tiers):
    mark = cases[0].get_closest_marker("sweep")
    fast = [case for case in cases if tiers[case] is Tier.QUICK]
    many = cases
    if mark is None:
        few = _each_value_once(fast)
    elif len(mark.args) == 1:
        few = _spread(fast, *mark.args)
    else:
        few = _pairs_of_values(fast, [], mark.args[0])
        many = _pairs_of_values(cases, few, mark.args[1])
    return {**dict.fromkeys(cases, Tier.RELEASE), **dict.fromkeys(many, Tier.ALL),
            **dict.fromkeys(few, Tier.QUICK)}


def _spread(cases, number):
    return [cases[i * len(cases) // number] for i in range(min(number, len(cases)))]


def _each_value_once(cases):
    """A few cases in which each value of each parameter occurs."""
    values = {case: _values(case) for case in cases}
    missing = set[tuple[object, ...]]().union(*values.values())
    if all(len(own) == 1 for own in values.values()):
        return list(cases)
    few = []
    while missing:
        # The first of the best, so that every process of a run chooses the same.
        best = max(cases, key=lambda case: len(values[case] & missing))
        few.append(best)
        missing -= values[best]
    return few


def _pairs_of_values(cases, first, number):
    """Add cases to ``first``, so that each value, then as many pairs as possible, occur."""
    values = {case: _values(case) for case in cases}
    pairs = {case: set(combinations(sorted(own), 2)) for case, own in values.items()}
    selection = list(first)
    others = [case for case in cases if case not in set(selection)]
    union = set[Any]().union(*(values[case] | pairs[case] for case in selection))
    while others and len(selection) < number:
        best = max(others, key=lambda case: (len(values[case] - union), len(pairs[case] - union)))
        others.remove(best)
        selection.append(best)
        union |= values[best] | pairs[best]
    return selection


def _values(case):
    """The values of a case, one entry per ``parametrize`` mark or fixture with parameters."""
    params = case.callspec.params
    groups = [_names(mark.args[0]) for mark in case.iter_markers("parametrize")]
    groups += [(name,) for name in set(params).difference(*groups)]
    # By id, as values may lack ==; all cases of a product have the same objects.
    return {(names, *(id(params[name]) for name in names)) for names in groups}


def _names(argnames):
    if isinstance(argnames, str):
        return tuple(name.strip() for name in argnames.split(",") if name.strip())
    return tuple(argnames)
