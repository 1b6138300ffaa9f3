"""The one check of a document knows every setting of this package, and all of its values."""

from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from textnb import TextClassifier, Tokenizer
from textnb.errors import ParameterError
from textnb.learning.parameters import DEFAULTS
from textnb.models.known import text_models
from textnb.runtime.settings import check_json
from textnb.storage import document as checks
from textnb.storage.textmodel import pack_text

MODELS = {model.name: model for model in text_models().values()}
TEXTS, LABELS = ["cheap pills", "see you"] * 2, ["spam", "ham"] * 2


def choices():
    """Each value that the type of a setting of the tokenizer names."""
    def named(hint):
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
def test_every_value_of_a_tokenizer_is_known(name, value):
    texts = [[text] for text in TEXTS] if (name, value) == ("token_columns", True) else TEXTS
    model = TextClassifier(tokenizer=Tokenizer(**{name: value})).fit(texts, LABELS)
    found = {"arrays": {}, "requires": [], **pack_text(model.fitted_)[0]}
    assert checks.check_text_document("m.textnb", found, MODELS.get).columns == ["text"]


def test_every_setting_is_known():
    assert {*DEFAULTS, "class_weight"} == checks._SETTINGS
    for model in MODELS.values():
        parameters = model().get_params(deep=False)
        assert parameters.pop("class_weight") is None
        check_json(model, parameters)


@pytest.mark.parametrize("model", MODELS.values())
def test_the_type_of_every_parameter_is_checked(model):
    if not model.__module__.startswith("textnb."):
        pytest.skip("it checks its own")
    for field in fields(model):
        if field.name != "class_weight":
            with pytest.raises(ParameterError, match=field.name):
                check_json(model, {field.name: {"a": [1]}})
