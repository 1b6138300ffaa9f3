"""The settings of a model of texts: validation fits them again, to parts of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from textnb.bayes.statistics import is_auto
from textnb.errors import ParameterError
from textnb.frames.scan import scan
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import fit
from textnb.learning.text_settings import TextSettings, columns_of
from textnb.models.base import Model
from textnb.models.protocol import unfitted

if TYPE_CHECKING:
    from textnb.classifiers.text import TextClassifier


@dataclass(frozen=True, eq=False)
class Recipe:
    """The settings of a model, and how other rows are learned with them.

    Attributes
    ----------
    columns : list of str
        The text columns.
    label : str
        The label column.
    tokens : list of str
        The text columns that hold lists of tokens.
    summed : TextSettings or None
        The settings, where sums of counts determine the model.
    fit : callable
        Gives the model of the rows of a DataFrame.
    """

    columns: list[str]
    label: str
    tokens: list[str]
    summed: TextSettings | None
    fit: Callable[[pl.DataFrame], Fitted]

    @classmethod
    def of(
        cls, model: TextClassifier | Fitted, user: str, with_scores_left_out: bool = False
    ) -> Recipe:
        """The present settings of a classifier, or those that a model was fitted with.

        Parameters
        ----------
        model : TextClassifier or Fitted
        user : str
            The function that fits them, for errors.
        with_scores_left_out : bool
            Whether each fit also scores all its documents by models of others.

        Raises
        ------
        ParameterError
            If the model is none of texts, or its fit makes no such scores.
        """
        if isinstance(model, Fitted):
            return cls._of_settings(model.settings, with_scores_left_out)
        if not hasattr(type(model), "text_settings"):
            raise ParameterError(
                f"{user} is for a TextClassifier; got {type(model).__name__}. For feature "
                "tables use sklearn.model_selection.cross_val_score(model, table, labels)")
        if not isinstance(model.estimator, str):
            return cls._of_settings(model.text_settings(), with_scores_left_out)
        if with_scores_left_out:
            raise _no_scores_left_out("a model that is searched for")
        columns = columns_of(model.text, model.label)
        return cls(columns, model.label, model.tokenizer.columns_of_tokens(columns), None,
                   _search_again(model))

    @classmethod
    def _of_settings(cls, settings: TextSettings, with_scores: bool) -> Recipe:
        if with_scores and not settings.model.scores_left_out:
            raise _no_scores_left_out(settings.model.name or type(settings.model).__name__)
        summed = settings if _follows_from_sums(settings.model) else None
        return cls(settings.columns, settings.label, settings.token_columns, summed,
                   partial(fit, settings, left_out=with_scores))

    def scan(self, frame: Any) -> pl.LazyFrame:
        """The rows, with their columns checked."""
        return scan(frame, text=self.columns, label=self.label, tokens=self.tokens)


def _search_again(model: Any) -> Callable[[pl.DataFrame], Fitted]:
    # The module of the classifier has loaded scikit-learn already.
    return lambda rows: unfitted(model).fit(rows).fitted_


def _no_scores_left_out(model: str) -> ParameterError:
    return ParameterError(
        f"max_false_positive_rate is for models whose fit scores documents by models of others, as "
        f"NBLinear's does; got {model}. Leave it out, and choose a threshold from the result's "
        "scores with choose_threshold")


def _follows_from_sums(model: Model) -> bool:
    """Whether sums of counts determine the model; a parameter that is chosen needs the rows."""
    return model.from_counts and not is_auto(model.l)
