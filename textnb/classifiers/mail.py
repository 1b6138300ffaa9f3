"""The default classifier of mail."""

from __future__ import annotations

from typing import Any

from textnb.classifiers.text import TextClassifier
from textnb.learning.settings import MAIL_RECIPE
from textnb.models.nblinear import NBLinear
from textnb.text.tokens import Tokenizer


def mail_classifier(**parameters: Any) -> TextClassifier:
    """The classifier that ``textnb train`` makes of mail by default: `NBLinear` on tokens of mail.

    Parameters
    ----------
    parameters : dict
        Parameters of `TextClassifier` that replace these defaults.

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
