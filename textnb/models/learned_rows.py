"""Models whose weights are learned from all rows at once, not from counts per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from textnb.errors import ParameterError
from textnb.models.base import Model
from textnb.runtime.settings import setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from textnb.bayes.counts import Counts
    from textnb.bayes.features import FeatureMap
    from textnb.bayes.forms import Floats, LinearForm
    from textnb.bayes.labels import Labels
    from textnb.bayes.learned import Learned


@dataclass(eq=False, repr=False, kw_only=True)
class RowModel(Model):
    """A model whose weights are learned from rows: its file holds both weights and counts."""

    required: ClassVar[tuple[str, ...]] = ("_learn",)
    from_counts: ClassVar[bool] = False
    # The reason why counts alone are not enough, for the error of `derive`.
    learns_from: ClassVar[str] = "learns from rows"

    def derive(self, statistics: Counts, *, binary: bool = False) -> LinearForm:
        raise ParameterError(f"{self.name} {self.learns_from}: counts alone don't give its weights")

    def learn_rows(
        self, rows: Any, labels: Labels, sample_weight: Floats | None = None, *,
        binary: bool = False, **options: Any,
    ) -> Learned:
        # The number of classes is not known yet, and no check depends on it.
        self.check(rows.shape[1], n_classes=2)
        return self._learn(rows, labels, sample_weight, binary, **options)

    def _learn(
        self, rows: Any, labels: Labels, sample_weight: Floats | None, binary: bool,
    ) -> Learned:
        """What `learn_rows` does after it has checked the settings, with the same options."""
        raise self._undefined("how it learns from rows")

    def form_of_weights(
        self, statistics: Counts, weights: Floats, intercept: Floats, *, binary: bool = False,
    ) -> LinearForm:
        import numpy as np

        from textnb.bayes.forms import LinearForm

        return LinearForm(statistics.classes, np.ascontiguousarray(weights), intercept,
                          features=self.feature_map(statistics, binary), link=statistics.link)

    def feature_map(self, statistics: Counts, binary: bool) -> FeatureMap:
        """The steps that turn counts into the features that have weights.

        Parameters
        ----------
        statistics : Counts
            What the model has counted.
        binary : bool
            Whether a term counts once per document, even if the model itself counts occurrences.
        """
        from textnb.bayes.features import presence_map

        return presence_map(self.presence_above(binary))

    def fit_rows(self, X: Any, y: NDArray[Any], sample_weight: Floats | None = None) -> Self:
        import scipy.sparse as sp

        from textnb.bayes.labels import Labels

        X = self._checked(X)
        # `without_choices` replaces parameters, and `learn_rows` would not check the original ones.
        self.check(X.shape[1], n_classes=2)
        return self.set_learned(self.without_choices().learn_rows(
            sp.csr_array(X), Labels.of_classes(y), sample_weight))

    @property
    def n_iter_(self) -> int:
        """The number of passes of the solver; if it runs once per class, the maximum."""
        if self._learned.n_iter is None:
            raise AttributeError(f"{self.name} has no solver")
        return self._learned.n_iter


@dataclass(eq=False, repr=False, kw_only=True)
class TfidfModel(RowModel):
    """A model that learns from tf-idf features of the rows."""

    tf: str = setting("sublinear", "What a count c becomes: 1 + log(c), c, or 1.",
                      choices=("sublinear", "count", "presence"), is_common=False)
    idf: bool = setting(True, "Multiply by inverse document frequencies.",
                        is_common=False)
    unit_length: bool = setting(True, "Divide each document by its Euclidean length.",
                                is_option=False)

    def check(self, n_features: int, n_classes: int) -> None:
        from textnb.bayes.statistics import as_smoothing_above_0

        super().check(n_features, n_classes)
        # Raises an error for a wrong value.
        as_smoothing_above_0(self.l, n_features)

    @property
    def above(self) -> float | None:
        return 0.0 if self.tf == "presence" else None

    def feature_map(self, statistics: Counts, binary: bool) -> FeatureMap:
        """As `RowModel.feature_map`; ``statistics`` has the numbers of documents with each term.

        Examples
        --------
        >>> import numpy as np
        >>> from textnb.bayes.counts import Counts
        >>> from textnb.models.nblinear import NBLinear
        >>> documents = Counts.from_table(np.array(["a"]), np.array([4]), np.array([[1, 3]]))
        >>> model = NBLinear(tf="count", idf=False)
        >>> [step.name for step in model.feature_map(documents, False).steps]
        ['length']
        """
        from textnb.bayes.features import FeatureMap, Idf, Length, Presence, Step, Sublinear

        steps: list[Step] = []
        if binary or self.tf == "presence":
            steps.append(Presence())
        elif self.tf == "sublinear":
            steps.append(Sublinear())
        if self.idf:
            steps.append(Idf.smooth(statistics.total_counts, statistics.n_rows))
        if self.unit_length:
            steps.append(Length())
        return FeatureMap(tuple(steps))

    @property
    def feature_map_(self) -> FeatureMap:
        """The feature map of the fitted model, with its inverse document frequencies."""
        return self.linear_form().features
