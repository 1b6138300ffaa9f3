"""Errors of the library name settings, which the command line writes as its own options."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter

import pytest

import textnb
from tests.cli.conftest import Run
from textnb.cli import options
from textnb.cli.main import VERBS, command_of
from textnb.runtime.settings import declared

ROOT = Path(textnb.__file__).parent
# What an error may name though no option of the command line gives it: settings of Python and of
# jobs, parts of a model's mathematics, and values that are no settings.
PYTHON_ALONE = {
    "TEXTNB_KERNEL", "X", "a folder of a Maildir", "a setting of texts",
    "above", "binarize", "bins", "calibration", "chosen", "class", "classes", "cv", "decision",
    "density", "estimator", "fourth", "kind", "link", "method", "min_categories", "n_components",
    "name", "prune", "raw", "search", "shingle", "sigmoids", "stale",
    "step of a feature map", "steps", "target", "text column", "tokenizer", "weights",
    "y"}


def named_in_errors() -> dict[str, str]:
    """Each setting that an error of the library names, and a module where it does."""
    found: dict[str, str] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            first = call.args[0]
            if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
                continue
            names = []
            if name in ("out_of_range", "unknown_choice", "Mention"):
                names = [first.value]
            elif name == "naming":
                given = {keyword.arg for keyword in call.keywords}
                fields = [field.partition("=")[0] for _, field, _, _
                          in Formatter().parse(first.value) if field]
                names = [field for field in fields if field not in given]
            found.update(dict.fromkeys(names, str(path.relative_to(ROOT))))
    return found


def test_every_setting_of_an_error_is_an_option_or_pythons_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups: list[type] = []
    known: set[str] = set()
    for verb in VERBS:
        command = command_of(verb)
        assert isinstance(command, options.Command)
        groups += command.groups
    for group in groups:
        known |= {name for field, facts in declared(group) for name in (facts.python, field.name)}
    named = {name: where for name, where in named_in_errors().items() if name[:2] != "--"}
    assert {name: where for name, where in named.items()
            if name not in known | PYTHON_ALONE} == {}
    assert named.keys() >= PYTHON_ALONE
    assert len(named) > 80


def test_options_with_another_name_than_pythons(run: Run, folder: Path) -> None:
    Path("rows.csv").write_text("text,w,label\nfree money,0,spam\nnoon,0,ham\n")
    (folder / "mail").mkdir()
    (folder / "mail" / "1.eml").write_bytes(b"Subject: x\n\nnoon")
    train = ("train", "rows.csv", "-o", "m.textnb")
    run(*train).checked()
    cases = {
        (*train, "--weight", "weigth"): "no column 'weigth' (the weight column); the columns are "
            "'text', 'w', 'label'. Rename it, or say which with --weight of textnb train",
        (*train, "--weight", "text"): "--weight text is also a text or label column",
        (*train, "--weight", "w"): "--weight is zero for every document",
        (*train, "--weight", "w", "--l", "auto"): "or no --weight",
        ("validate", "m.textnb", "rows.csv", "--smoothing", "1,-1"): "--smoothing must be",
        ("mail", "mail", "--header", "a b"): "--header must be names of headers",
        ("train", "mail", "--text", "a b", "-o", "n.textnb"): "--text must be names of headers"}
    for arguments, message in cases.items():
        ran = run(*arguments)
        assert ran.code != 0
        assert message in ran.err
        for name in ("sample_weight", "grid", "headers must"):
            assert name not in ran.err
