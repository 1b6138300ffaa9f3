"""The contract of a model on counts: everything that the rest of the package needs from one.

A model is one class. Its parameters are fields with a type, default, range and help. Its methods
are scikit-learn's `fit` and `predict`, and the mathematics that turns counts into a form, which
gives the scores. What it has learned is one value, ``_learned``. The rest of the package never asks
for a model's type or name. What a model does not define is refused with an error that names it.

A user's own model is such a class, decorated with `register_model`. Classifiers, files, the command
line, leave-one-out, exports and reports then accept it.

This module imports neither NumPy nor scikit-learn at its top, because ``textnb train --help``,
which reads the fields, and a filter, which reads a model file, start without them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

from textnb.errors import ParameterError
from textnb.models.fields import check_fields
from textnb.models.prediction import ClassWeighted, FormClassifier, LinearMixin
from textnb.models.protocol import MissingAttributeError, read_only_property
from textnb.runtime.settings import SMOOTHING, NumberOrAuto, check_parameter_names, setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textnb.bayes.counts import Counts
    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.keyness import TermZ
    from textnb.bayes.labels import Labels
    from textnb.bayes.learned import Learned
    from textnb.bayes.leave_one_out import ColumnLimits, LeaveOneOut

M = TypeVar("M", bound="type[FormClassifier]")


@dataclass(eq=False, repr=False, kw_only=True)
class Model(LinearMixin, ClassWeighted):
    """A model on counts.

    Attributes
    ----------
    from_counts : bool
        Whether counts alone give the form, so that models can be added, and a file needs no
        weights.
    """

    # Its columns are terms, and classifiers of texts can use it.
    of_terms: ClassVar[bool] = True
    from_counts: ClassVar[bool] = True
    # How margins of more than two classes become probabilities, as in `Calibration`.
    link: ClassVar[str] = "softmax"
    # Whether its solver can start from weights that were learned before.
    starts_warm: ClassVar[bool] = False
    # Whether `learn_rows` takes ``sharing``, by which similar terms share weights.
    learns_shared: ClassVar[bool] = False
    # Whether `learn_rows` can also give out-of-fold scores of its rows.
    scores_left_out: ClassVar[bool] = False
    # What `Learned.n_iter` counts, in words.
    iterations: ClassVar[str] = "passes"
    # Whether it can learn lists of labels, each label against its absence: see
    # `textnb.bayes.label_form`.
    learns_labels: ClassVar[bool] = False
    # In words: what decides the answer if no term of a text is known.
    without_terms: ClassVar[str] = ""

    # The format of sparse matrices to which scikit-learn's checks convert rows.
    _accept_sparse = "csr"
    # Attributes and methods that a subclass must define.
    required: ClassVar[tuple[str, ...]] = (
        "kind", "scores_are_log_probabilities", "without_terms", "term_z")

    l: NumberOrAuto = setting(
        1.0, "Smoothing parameter: a number, or (for models that learn by counting) auto, chosen "
             "by leave-one-out.",
        names=("--l",), range=SMOOTHING)

    # What scores mean.

    @property
    def term_z(self) -> TermZ | None:
        """A function of counts that gives terms z-scores, which rank them; None if weights do."""
        raise MissingAttributeError(f"{self.name} does not say how its terms are ranked")

    @property
    def can_count_without_refit(self) -> bool:
        """Whether weights are learned from rows, and no answer depends on counts, so that counts
        can change while the weights stay as an earlier fit left them."""
        return False

    # Whether presence counts, or the number of occurrences.

    @property
    def above(self) -> float | None:
        """A feature of a matrix counts once above this value; None if its values are added."""
        return None

    def presence_above(self, binary: bool) -> float | None:
        """The count above which a term of a text counts once; None if each occurrence counts.

        Parameters
        ----------
        binary : bool
            Whether a term counts once per document, whatever the model.

        Raises
        ------
        ParameterError
            If the model, with its parameters, can't count terms of texts.
        """
        return 0.0 if binary else self.above

    # From counts, or rows, to a form.

    def derive(self, statistics: Counts, *, binary: bool = False) -> LinearForm:
        """The form that the counts give.

        Parameters
        ----------
        statistics : Counts
        binary : bool
            Whether a term counts once per document.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or counts alone don't give the form.
        """
        raise self._undefined("how counts become weights")

    def learn_counts(
        self, statistics: Counts, *, l: float | None = None, binary: bool = False
    ) -> Learned:
        """Learn from counts of terms.

        Parameters
        ----------
        statistics : Counts
        l : float, optional
            The value that was chosen, if the parameter ``l`` is "auto".
        binary : bool
            Whether a term counts once per document.

        Raises
        ------
        ParameterError
            If ``l`` is "auto" and nothing was chosen, or counts alone don't give the form.
        """
        raise self._undefined("how counts become weights")

    def learn_rows(
        self, rows: Any, labels: Labels, sample_weight: Floats | None = None, *,
        binary: bool = False, **options: Any,
    ) -> Learned:
        """Learn from a document-term matrix, for models that need all rows at once.

        Parameters
        ----------
        rows : csr_array (n_rows, n_terms)
            Counts.
        labels : Labels
        sample_weight : float64 (n_rows,), optional
        binary : bool
            Whether a term counts once per document.
        **options
            If the model `starts_warm`, ``start``, a `WarmStart`, with the ``statistics`` of all
            rows if ``rows`` are only a sample of them. If it `scores_left_out`, ``left_out``. If it
            `learns_shared`, ``sharing``, a `Sharing`.
        """
        raise self._undefined("how it learns from rows")

    def restore(
        self, statistics: Counts, weights: Floats, intercept: Floats, *, binary: bool = False,
    ) -> Learned:
        """What was learned, from the weights in a file. Parameters as in `form_of_weights`."""
        from textnb.bayes.class_weight import class_weights
        from textnb.bayes.learned import Learned

        self.check(statistics.n_features, len(statistics.classes))
        # Raises an error for weights that are not of these classes.
        class_weights(self.class_weight, statistics.classes, statistics.class_count)
        return Learned(statistics, self.form_of_weights(
            statistics, weights, intercept, binary=binary))

    def form_of_weights(
        self, statistics: Counts, weights: Floats, intercept: Floats, *, binary: bool = False,
    ) -> LinearForm:
        """The form that has the weights that were learned from rows.

        Parameters
        ----------
        statistics : Counts
            Counts of the terms that have weights.
        weights : float64 (n_terms, n_classes)
        intercept : float64 (n_classes,)
        binary : bool
            Whether a term counts once per document.
        """
        raise self._undefined("which form weights from a file have")

    def class_log_prior(self, statistics: Counts) -> Floats | None:
        """log π of each class: float64 (n_classes,); None for a model that has no priors."""
        return None

    def without_choices(self) -> Self:
        """The same model, without settings that hold rows out to choose something."""
        return self

    # Leaving rows out.

    @property
    def obstacle_to_leaving_out(self) -> str | None:
        """What prevents leaving rows out by subtraction: a parameter's name, or "kind" for the
        model itself; None if nothing does."""
        return "kind"

    def leave_out(
        self, statistics: Counts, within: ColumnLimits | None = None,
        presence_above: float | None = None,
    ) -> LeaveOneOut:
        """A scorer of the rows that were counted: each is scored by the model without that row.

        Parameters
        ----------
        statistics : Counts
            The counts of all rows.
        within : ColumnLimits, optional
            The limits by which a term may stop being a column if a row is left out.
        presence_above : float, optional
            The count above which a term counts once; by default each occurrence counts.

        Raises
        ------
        ParameterError
            If subtracting a row's counts can't give these scores.
        """
        raise self._undefined("how rows are left out by subtraction: use k folds, by "
                              "cross_validate, and fit_calibration of its result")

    def _undefined(self, detail: str) -> ParameterError:
        return ParameterError(f"{self.name} does not say {detail}")

    # What was learned, as scikit-learn's attributes.

    def set_learned(self, learned: Learned) -> Self:
        """Take what this model, with these parameters, has learned."""
        copy = type(self)(**self.get_params(deep=False))
        self._fitted_model = copy.with_smoothing(learned.chosen_l)
        self._learned = learned
        self.n_features_in_ = self._n_features_of(learned.counts)
        return self

    def _n_features_of(self, statistics: Counts) -> int:
        """The number of columns of X, and of values if ``l`` is an array."""
        return statistics.n_features

    def with_smoothing(self, l: float | None) -> Self:
        """The model with ``l`` in place of "auto"; the same model if ``l`` is None."""
        return self if l is None else replace(self, l=l)

    @property
    def _form(self) -> Any:
        return self._learned.form

    @property
    def statistics_(self) -> Counts:
        return self._learned.counts

    @property
    def classes_(self) -> NDArray[Any]:  # type: ignore[override]  # other models assign it
        return self._learned.counts.classes

    @read_only_property
    def feature_count_(self) -> NDArray[Any]:
        """int64 (n_classes, n_features): counts, or numbers of rows that hold the feature; float64
        under sample weights."""
        return self._learned.counts.feature_count

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # scikit-learn's checks then ask for no accuracy on their numbers, which are not counts.
        tags.classifier_tags.poor_score = True
        return tags

    def score_rows(self, X: Any) -> Floats:
        # The parameters of the fit, not the current ones, say which values are allowed.
        return super().score_rows(self._fitted_model._checked(X))

    def _checked(self, X: Any) -> Any:
        """The rows; ValueError for a count below 0."""
        from sklearn.utils.validation import check_non_negative

        check_non_negative(X, self.name)
        return X


# The registered models by name: `textnb.models.known` lists them.
REGISTERED: dict[str, type[FormClassifier]] = {}


@dataclass_transform(eq_default=False, kw_only_default=True)
def register_model(model: M) -> M:
    """A class decorator: the class is a model that the whole package knows.

    It makes a dataclass of the class, so that its annotated fields are its parameters. Classifiers,
    files, the command line (``--model KIND``), folds, leave-one-out, exports and reports then
    accept it. They import it by themselves if a package has an entry point for it in the group
    ``textnb.models``, with the name of its kind. What the class does not define is refused by name.
    A subclass of a registered model is not registered, as it may change the mathematics.

    Raises
    ------
    ParameterError
        If another model has the name or kind, the class lacks an attribute that every model must
        have, or a field can't be a setting.

    Examples
    --------
    >>> from textnb import LinearForm
    >>> from textnb.models import CountModel
    >>> @register_model
    ... class Uniform(CountModel):
    ...     kind = "uniform"
    ...     scores_are_log_probabilities = True
    ...     without_terms = "the classes' priors alone"
    ...     term_z = None
    ...     def weigh(self, counts, l, log_prior):
    ...         weights = 0.0 * counts.feature_count.T
    ...         return LinearForm(counts.classes, weights, log_prior)
    >>> Uniform().fit([[1], [1], [0]], ["a", "a", "b"]).predict([[3]]).tolist()
    ['a']
    >>> unregister_model(Uniform)
    """
    if model.kind and not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", model.kind):
        raise ParameterError(f"the model {model.name} has the kind {model.kind!r}, and a kind is "
                             "lower-case letters and digits, with single hyphens between words, "
                             "as complement-tfidf is: it is typed after --model")
    for other in REGISTERED.values():
        if _is_same(other, model):
            continue
        if other.name == model.name or (model.kind and other.kind == model.kind):
            raise ParameterError(f"the model {model.name} has the kind {model.kind!r}, and "
                                 f"{other.name} has the same name or kind: give it others")
        if issubclass(model, other):
            # What holds for the other class, such as how it leaves rows out, may not hold here.
            raise ParameterError(f"the model {model.name} must derive from CountModel, RowModel "
                                 "or MomentModel, and inherit no other model's mathematics; "
                                 f"it is a {other.name}")
    for base in model.__mro__[1:]:
        if getattr(base, "of_terms", False) and not model.of_terms:
            continue  # Only models of terms must define these.
        for name in vars(base).get("required", ()):
            if getattr(model, name) is getattr(base, name):
                raise ParameterError(f"the model {model.name} does not say its {name}")
    if "__dataclass_fields__" not in vars(model):
        check_parameter_names(dataclass(eq=False, repr=False, kw_only=True)(model))
    if model.kind:
        check_fields(model, (other for other in REGISTERED.values() if not _is_same(other, model)))
    REGISTERED[model.name] = model
    return model


def _is_same(other: type, model: type) -> bool:
    """Whether both are one class, which a notebook may define repeatedly."""
    return (other.__module__, other.__qualname__) == (model.__module__, model.__qualname__)


def unregister_model(model: type[FormClassifier]) -> None:
    """Undo `register_model`."""
    REGISTERED.pop(model.name, None)


def check_registered(model: Any, purpose: str) -> None:
    """Raise ParameterError for a model whose class is not registered, even if a base class is.

    Such a class may override what the purpose relies on.

    Parameters
    ----------
    model : Model
    purpose : str
        What needs it, as the subject of the error's sentence, such as "a model file".
    """
    if REGISTERED.get(type(model).__name__) is not type(model):
        raise ParameterError(
            f"{purpose} is known for the models of this package and those that are registered; "
            f"{type(model).__name__} is a class of its own, and what it changes is not known here: "
            "decorate it with @register_model of textnb.models")
