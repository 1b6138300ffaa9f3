"""The one check of a document knows every setting of this package, and all of its values."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from textnb import ModelFileError, TextClassifier, Tokenizer
from textnb.errors import ParameterError
from textnb.learning.parameters import DEFAULTS
from textnb.models.base import Model
from textnb.models.known import text_models
from textnb.runtime.settings import check_json
from textnb.storage import document as checks
from textnb.storage.document import TextDocument
from textnb.storage.textmodel import pack_text

MODELS = {model.name: model for model in text_models().values()}
TEXTS, LABELS = ["cheap pills", "see you"] * 2, ["spam", "ham"] * 2


def check_text_document(path: str, document: dict[str, Any]) -> TextDocument:
    return checks.check_text_document(path, {"arrays": {}, "requires": [], **document}, MODELS.get)


def document(**tokenizer: Any) -> dict[str, Any]:
    texts = [[text] for text in TEXTS] if tokenizer.get("token_columns") else TEXTS
    model = TextClassifier(tokenizer=Tokenizer(**tokenizer)).fit(texts, LABELS)
    return pack_text(model.fitted_)[0]


def choices() -> list[tuple[str, Any]]:
    """Each value that the type of a setting of the tokenizer names."""
    def named(hint: Any) -> list[Any]:
        if hint is bool:
            return [True, False]
        if hint is type(None):
            return [None]
        if get_origin(hint) is Literal:
            return list(get_args(hint))
        return [value for part in get_args(hint) for value in named(part)] if get_origin(
            hint) is not tuple else []

    hints = get_type_hints(Tokenizer)
    return [(field.name, value) for field in fields(Tokenizer)
            for value in named(hints[field.name])]


@pytest.mark.parametrize(("name", "value"), choices(), ids=str)
def test_every_value_of_a_tokenizer_is_known(name: str, value: Any) -> None:
    try:
        found = document(**{name: value})
    except ParameterError as error:
        pytest.skip(f"it needs other settings: {error}")
    check_text_document("m.textnb", found)


def test_every_setting_is_known() -> None:
    assert {*DEFAULTS, "class_weight"} == checks._SETTINGS
    for model in MODELS.values():
        parameters = model().get_params(deep=False)
        assert parameters.pop("class_weight") is None
        check_json(model, parameters)


@pytest.mark.parametrize("model", MODELS.values())
def test_the_type_of_every_parameter_is_checked(model: type[Model]) -> None:
    if not model.__module__.startswith("textnb."):
        pytest.skip("it checks its own")
    for field in fields(model):
        if field.name != "class_weight":
            with pytest.raises(ParameterError, match=field.name):
                check_json(model, {field.name: {"a": [1]}})


def test_a_setting_of_a_newer_release_asks_for_an_upgrade() -> None:
    found = document()
    found["settings"]["tokenizer"]["newer"] = []
    with pytest.raises(ModelFileError, match=r"a newer textnb: it has .* 'newer'.*Upgrade with"):
        check_text_document("m.textnb", found)


@pytest.mark.parametrize("changed", [{"keep": ["smileys"]}, {"keep": "emoji"}, {"keep": None},
                                     {"keep": ["emoji"], "analyzer": "char"}])
def test_kinds_that_no_tokenizer_keeps(changed: dict[str, Any]) -> None:
    found = document(keep=("emoji",))
    check_text_document("m.textnb", found)
    found["settings"]["tokenizer"] |= changed
    with pytest.raises(ValueError, match="tokenizer"):
        check_text_document("m.textnb", found)


@pytest.mark.parametrize(("path", "what"), [
    (("settings", "subword"), "the setting 'subword'"),
    (("estimator", "parameters", "newer"), "the parameter of MultinomialNB 'newer'"),
    (("calibration",), "the value of the calibration 'bins'"),
    (("decision",), "the value of the decision 'bins'")])
def test_what_only_a_newer_release_writes(path: tuple[str, ...], what: str) -> None:
    found = document()
    place = found
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = {"bins": 3}
    with pytest.raises(ModelFileError, match=(
            rf"^m\.textnb was written by a newer textnb: it has {what}, which this one does not "
            r"know\. Upgrade with: pip install")):
        check_text_document("m.textnb", found)
