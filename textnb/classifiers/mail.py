"""The default classifier of mail."""

from __future__ import annotations

from typing import Any

from textnb.classifiers.text import TextClassifier
from textnb.learning.settings import MAIL_RECIPE
from textnb.models.nblinear import NBLinear
from textnb.text.tokens import Tokenizer


def mail_classifier(**parameters: Any) -> TextClassifier:
    """A classifier of mail as ``textnb train`` makes it by default: `NBLinear` on tokens.

    Parameters
    ----------
    parameters : dict
        Of `TextClassifier`, in place of the defaults here.

    Examples
    --------
    >>> model = mail_classifier(label="folder")
    >>> model.text, model.estimator
    ('tokens', NBLinear(C=10.0, idf=False, power=1.0, tf='presence'))
    """
    settings = {name: value for name, value in MAIL_RECIPE.items() if name not in ("text", "model")}
    text = MAIL_RECIPE["text"]
    return TextClassifier(**{
        "estimator": NBLinear(**settings), "text": text,
        "tokenizer": Tokenizer(token_columns=(text,)), **parameters})
