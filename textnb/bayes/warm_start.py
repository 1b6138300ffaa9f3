"""A linear model from whose weights the solver of another one begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textnb.bayes.forms import Floats, LinearForm


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Weights of one class against the rest, of nearly the same rows.

    It decides how soon the solver ends, and not where the optimum is.

    Attributes
    ----------
    form : LinearForm
    place : int64 (n_terms,)
        The row of the form's weights for each term to be learned; -1 for one that is new.
    """

    form: LinearForm
    place: NDArray[np.int64]

    def of(self, label: Any, columns: NDArray[np.int64]) -> tuple[Floats, float] | None:
        """Weights of some columns and the intercept; None for a class that is new.

        Parameters
        ----------
        label : object
            The class that is told from all others.
        columns : int64 (n_columns,)
        """
        names = self.form.classes.tolist()
        if label not in names:
            return None
        k, sign = names.index(label), 1.0
        if len(names) == 2:
            # The first of two classes scores 0.
            k, sign = 1, 1.0 if k == 1 else -1.0
        place = self.place[columns]
        weights = np.where(place >= 0, sign * self.form.weights[place, k], 0.0)
        return weights, sign * float(self.form.intercept[k])
