"""The cells of the record: a kind of rows, a model, a setting; and what is asked of each.

Only names that are fixed are used: the classifiers, the estimators and their fitted attributes, and
the functions of the public package.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from textnb import errors

# A logarithm's last bit differs between processors, and with it that of a sum of logarithms.
EXACT = 1e-12
# How far the answers of some models may be from the record. A solver that stops at a tolerance
# enlarges the last bits of its input; covariances are factorised, and LAPACK's bits differ between
# processors; a temperature is the root of a slope, which is found to about 1e-8.
TOLERANCES = {
    "nblinear": 1e-11, "nblr": 1e-11, "lda": 1e-11, "qda": 1e-11, "rda": 1e-11, "calibrated": 1e-7}
# The answers that a temperature enters.
PROBABILITIES = {"predictions", "best", "probabilities", "margins"}

Answers = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One case of the record.

    Attributes
    ----------
    kind, model, setting : str
    fit : callable
        Makes the model.
    answer : callable
        What a fitted model answers, by names.
    slow : bool
        Whether it is left out of the quick tests.
    stored : bool
        Whether a model file of it is kept.
    """

    kind: str
    model: str
    setting: str
    fit: Callable[[], Any]
    answer: Callable[[Any], Answers]
    slow: bool = False
    stored: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.model}-{self.setting}"

    def tolerance(self, answer: str) -> float:
        """How far an answer may be from the record, absolute and relative."""
        part = (self.setting if self.setting == "calibrated" and answer in PROBABILITIES
                else self.model)
        return TOLERANCES.get(part, EXACT)

    def compute(self, model: Any = None) -> Answers:
        """All answers, of a model that was read from a file, if one is given.

        If the settings are refused, the answer is the name of the error: nothing may fail open.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                answers = self.answer(self.fit() if model is None else model)
            except (errors.TextnbError, AttributeError) as error:
                return {"refused": public_name(error)}
        names = {warning.category.__name__ for warning in caught}
        return answers | ({"warnings": sorted(names)} if names and model is None else {})


def each(asked: Mapping[str, Callable[[], Any]]) -> Answers:
    """Each answer, or the name of the error that refuses it."""
    answers = {}
    for name, ask in asked.items():
        try:
            answers[name] = ask()
        except (errors.TextnbError, AttributeError) as error:
            answers[name] = f"refused: {public_name(error)}"
    return answers


def public_name(error: BaseException) -> str:
    """The name of the first class of an error that is textnb's or built in."""
    return next(kind.__name__ for kind in type(error).__mro__
                if kind.__module__ == "builtins" or hasattr(errors, kind.__name__))


def estimator_answers(estimator: Any) -> Answers:
    """The fitted attributes of an estimator that has them."""
    names = ("class_count_", "feature_count_", "class_log_prior_", "feature_log_prob_", "l_",
             "feature_all_", "class_weight_", "coef_", "intercept_", "theta_", "var_", "epsilon_",
             "priors_", "means_", "covariance_", "xbar_", "explained_variance_ratio_", "alpha_",
             "gamma_", "cv_accuracy_", "centroids_", "chosen_", "n_categories_", "category_count_",
             "ratio_", "feature_names_in_")
    return {name: getattr(estimator, name) for name in names
            if not isinstance(getattr(estimator, name, None), type(None))}
