"""Advice in errors: options on the command line, parameters in Python."""

import ast
import pickle
from pathlib import Path
from string import Formatter

import pytest

import textnb
from textnb import errors
from textnb.cli.main import VERBS, command_of
from textnb.runtime.settings import setting_fields


@pytest.mark.parametrize(("error", "python", "command"), [
    (errors.SourceError.not_found("x"), "pass a list", None),
    (errors.DataError.unseen_labels(["a"], ["b"]), "pass classes=['a']", "--new-class"),
    (errors.DataError.null_label("kind", 3), "frame.filter(", "--where 'kind IS NOT NULL'"),
    (errors.SchemaError.wrong_type("text", "text", "String", "Int64"), "frame.with_columns",
     "in the query"),
    (errors.ImpossibleRowError.rows([1], 1), "predict a frame", "textnb predict"),
    (errors.ModelFileError.too_large("m", 9, 8), "max_bytes=9", "textnb.load('m', max_bytes=9)")])
def test_python_and_the_command_line_get_different_advice(error, python, command):
    assert python in str(error)
    assert command is None or command in error.command_line
    assert command is None or command not in str(error)
    assert textnb.TextnbError("plain").command_line == "plain"


def test_an_error_writes_its_settings_as_the_caller_does():
    none = errors.VocabularyError.no_tokens("x", 2)
    assert "use Tokenizer(pattern=r'[" in str(none)
    assert "use <pattern=r'[" in none.message("<{}".format)
    error = errors.ParameterError.naming_settings(
        "{l='auto'} and {limit} of {n:,} documents: give {l} as a number, not {text!r}",
        limit=errors.Mention("min_df", "2"), n=1200, text="binary=True")
    assert str(error) == ("l='auto' and min_df=2 of 1,200 documents: give l as a number, not "
                          "'binary=True'")
    write = {"l": "--l", "min_df": "--min-df", "binary": "--binary"}
    message = error.message(lambda setting: f"{write[setting.name]} {setting.value}".rstrip())
    assert message == ("--l 'auto' and --min-df 2 of 1,200 documents: give --l as a number, not "
                    "'binary=True'")
    again = pickle.loads(pickle.dumps(error))
    assert again.message(lambda setting: setting.name.upper()).startswith("L and MIN_DF of")


def test_advice_on_an_option_of_another_verb_names_the_verb(run, trained, monkeypatch):
    def fails(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("textnb.storage.textmodel.fit_from_file", fails)
    ran = run("describe", trained).checked(1)
    assert f"memory ran out while {trained} was read" in ran.err
    assert "train it with fewer terms (--memory-limit of textnb train)" in ran.err


ROOT = Path(textnb.__file__).parent
# Names in errors that are no option of the command line: settings of Python and of jobs, parts of a
# model's mathematics, and values that are not settings.
PYTHON_ONLY = {
    "TEXTNB_KERNEL", "X", "a folder of a Maildir", "a setting of texts",
    "above", "binarize", "bins", "calibration", "chosen", "class", "classes", "cv", "date",
    "decision", "density", "estimator", "fourth", "kind", "link", "method", "min_categories", "n",
    "n_components", "name", "progress", "prune", "raw", "search", "shingle", "sigmoids", "stale",
    "step of a feature map", "steps", "target", "text column", "tokenizer", "vocabulary", "weights",
    "y"}


def named_in_errors():
    """Each setting that an error of the library names -> a module that raises the error."""
    places = {}
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
            elif name == "naming_settings":
                given = {keyword.arg for keyword in call.keywords}
                fields = [field.partition("=")[0] for _, field, _, _
                          in Formatter().parse(first.value) if field]
                names = [field for field in fields if field not in given]
            places.update(dict.fromkeys(names, str(path.relative_to(ROOT))))
    return places


def test_every_setting_in_an_error_is_an_option_or_listed_above():
    known = {name for verb in VERBS for group in command_of(verb).groups
             for field, facts in setting_fields(group) for name in (facts.python_name, field.name)}
    named = {name: where for name, where in named_in_errors().items() if name[:2] != "--"}
    assert {name: where for name, where in named.items() if name not in known | PYTHON_ONLY} == {}
    assert named.keys() >= PYTHON_ONLY
    assert len(named) > 80
