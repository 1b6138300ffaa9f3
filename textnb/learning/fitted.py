"""The fitted state of a text classifier: an immutable object, which further learning replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.counts import Counts
from textnb.bayes.decision import Decision
from textnb.bayes.forms import LinearForm
from textnb.bayes.learned import Learned, SinceFit
from textnb.bayes.pruned import Pruned
from textnb.errors import ParameterError, quantity
from textnb.frames.indicator import Indicator
from textnb.frames.kinds import select_columns
from textnb.frames.scan import check_kind_of_labels, scan
from textnb.learning.row_sample import RowSample
from textnb.learning.text_settings import TextSettings
from textnb.models.base import Model
from textnb.runtime.caller import warn_caller
from textnb.text.matrix import Vocabulary
from textnb.text.plan import name_of_segmenter

# Why a decision is stale, and what a warning says of a calibration or a decision that is dropped.
RECALIBRATED = "the model's calibration has changed since"
OTHER_CLASSES = "the classes have changed: the {}, whose {} were for others, is dropped"


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learned from labelled texts, and the settings that it was fitted with.

    A model that learns more, or gets another calibration or decision, is another `Fitted`.

    Attributes
    ----------
    settings : TextSettings
    vocabulary : Vocabulary
        The tokenizer, and the terms that have weights.
    learned : Learned
        Counts of those terms, and the form.
    statistics : Counts or None
        Counts of all terms that were seen; None for a model that learns from all rows at once.
    calibration : Calibration or None
        Converts scores to probabilities, for predictions and for the decision.
    decision : Decision or None
        Thresholds by which documents are answered.
    since_fit : SinceFit or None
        Documents that are counted but not in the weights; None if weights derive from counts.
    has_separate_labels : bool
        Whether the labels were passed as ``y`` beside a table, and not as its column. A model file
        does not keep this.
    indicator : Indicator or None
        The columns of ``y``, if that was a matrix of 0 and 1. A model file does not keep this.
    sample : RowSample or None
        Learned rows, from which the weights are refitted when the model learns more or forgets.
    labels : polars.Series
        The classes, in the type that predictions have.
    """

    settings: TextSettings
    vocabulary: Vocabulary
    learned: Learned
    statistics: Counts | None = None
    calibration: Calibration | None = None
    decision: Decision | None = None
    since_fit: SinceFit | None = None
    has_separate_labels: bool = False
    indicator: Indicator | None = None
    sample: RowSample | None = None
    labels: pl.Series = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", pl.Series("label", self.form.classes.tolist()))

    def __repr__(self) -> str:
        return f"Fitted({self.summary})"

    @property
    def summary(self) -> str:
        """The model, and the numbers of its documents, terms, and classes or labels."""
        return (f"{self.model.name}, {quantity(int(self.counts.n_rows), 'document')}, "
                f"{quantity(len(self.terms), 'term')}, "
                f"{quantity(len(self.classes), 'label' if self.is_multilabel else 'class')}")

    @property
    def model(self) -> Model:
        return self.settings.model

    @property
    def is_multilabel(self) -> bool:
        """Whether documents have lists of labels, and not one class each."""
        return self.counts.is_multilabel

    @property
    def pruned(self) -> Pruned | None:
        """What a limit of memory left out."""
        return None if self.statistics is None else self.statistics.pruned

    @property
    def chosen_l(self) -> float | None:
        """The value that ``l="auto"`` stands for; None if l is a number."""
        return self.learned.chosen_l

    @property
    def form(self) -> LinearForm:
        return self.learned.form

    @property
    def counts(self) -> Counts:
        """Counts of the terms that have weights."""
        return self.learned.counts

    @property
    def classes(self) -> NDArray[Any]:
        return self.form.classes

    @property
    def terms(self) -> pl.Series:
        """The terms that have weights, sorted."""
        return self.vocabulary.terms

    @property
    def columns(self) -> list[str]:
        """The text columns."""
        return list(self.settings.columns)

    @property
    def token_columns(self) -> list[str]:
        """The text columns that hold lists of tokens."""
        return self.settings.token_columns

    @property
    def label(self) -> str:
        """The label column."""
        return self.settings.label

    @property
    def model_with_chosen_l(self) -> Model:
        """The model, with the ``l`` that was chosen in place of "auto"."""
        return self.model.with_smoothing(self.chosen_l)

    def scan(self, frame: Any, others: Sequence[str] = ()) -> pl.LazyFrame:
        """Scan labelled rows: the text columns, and a label column of the model's kind.

        Of a table of another library, only these columns and ``others`` are converted.

        Raises
        ------
        SchemaError
            If a column is missing or of another type, such as lists of labels for a model of one
            label per document.
        """
        rows = scan(select_columns(frame, [*self.columns, self.label, *others]),
                    text=self.columns, label=self.label, tokens=self.token_columns)
        return check_kind_of_labels(rows, self.label, of_lists=self.is_multilabel)

    @property
    def label_type(self) -> pl.DataType:
        """The type of the label column: of the classes, or of lists of labels."""
        return pl.List(self.labels.dtype) if self.is_multilabel else self.labels.dtype

    def linear_form(self) -> LinearForm:
        """The form, with the terms of its weights."""
        return self.form.named(tuple(self.terms.to_list()))

    def with_segmenter(self, segmenter: Callable[[str], Iterable[str]]) -> Fitted:
        """Return a copy that splits texts by the function whose name the model has.

        Raises
        ------
        ParameterError
            If the model has the name of another function, or none.
        """
        tokenizer = self.settings.tokenizer
        name = name_of_segmenter(segmenter)
        if tokenizer.segmenter is None or name != name_of_segmenter(tokenizer.segmenter):
            raise ParameterError(f"the model was trained with segmenter={tokenizer.segmenter!r}; "
                                 f"got {name}: give the function of that name")
        tokenizer = tokenizer.with_params(segmenter=segmenter)
        return replace(self, settings=self.settings.with_parameters(tokenizer=tokenizer),
                       vocabulary=Vocabulary(tokenizer, self.terms))

    def with_calibration(self, calibration: Calibration | None) -> Fitted:
        """Return a copy with this calibration: see `TextClassifier.set_calibration`."""
        if calibration is not None:
            if not isinstance(calibration, Calibration):
                raise ParameterError.out_of_range(
                    "calibration", "a Calibration, or None", calibration)
            calibration.check_classes(len(self.classes), self.is_multilabel)
        decision = self.decision
        # The thresholds of labels apply to scores before calibration.
        if decision is not None and calibration != self.calibration and not self.is_multilabel:
            decision = decision.as_stale(RECALIBRATED)
        return replace(self, calibration=calibration, decision=decision)

    def with_decision(self, decision: Decision | None) -> Fitted:
        """Return a copy with this decision: see `TextClassifier.set_decision`."""
        if decision is not None:
            if not isinstance(decision, Decision):
                raise ParameterError.out_of_range("decision", "a Decision, or None", decision)
            decision.check_scores(
                self.classes.tolist(), self.is_multilabel, self.calibration is not None)
        return replace(self, decision=decision)


def keep_choices(source: Fitted, fitted: Fitted, since: str) -> Fitted:
    """A model with the calibration and the decision of another one, marked stale.

    The calibration and the decision are a model's choices: they are made after the fit, and say how
    scores become answers.

    Parameters
    ----------
    source : Fitted
        The model whose choices are kept.
    fitted : Fitted
    since : str
        Why the choices may no longer hold.

    Warns
    -----
    TextnbWarning
        If the calibration or the decision is dropped, as it was for other classes.
    """
    calibration = None if source.calibration is None else source.calibration.as_stale(since)
    decision = None if source.decision is None else source.decision.as_stale(since)
    # A calibration by one temperature has no sigmoids, and is for any classes.
    if calibration is not None and len(calibration.sigmoids) not in (0, len(fitted.classes)):
        warn_caller(OTHER_CLASSES.format("calibration", "sigmoids"))
        calibration = None
    if decision is not None and set(decision.thresholds) != set(fitted.classes.tolist()):
        warn_caller(OTHER_CLASSES.format("decision", "thresholds"))
        decision = None
    return replace(fitted, calibration=calibration, decision=decision)


def fitted_text_model_or_none(model: Any) -> Fitted | None:
    """The fitted state of a model of texts, or of a classifier; None for a model of feature tables.

    Parameters
    ----------
    model : classifier or Fitted

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> fitted_text_model_or_none(TextClassifier().fit(["good", "bad"], ["pos", "neg"]))
    Fitted(MultinomialNB, 2 documents, 2 terms, 2 classes)
    """
    # Ask the class, as the property of a classifier that is not fitted raises an error.
    state = model if isinstance(model, Fitted) else (
        model.fitted_ if hasattr(type(model), "fitted_") else None)
    return state if isinstance(state, Fitted) else None


def check_one_label(fitted: Fitted, what: str, setting: str | None = None) -> None:
    """Raise ParameterError if documents have lists of labels.

    Parameters
    ----------
    fitted : Fitted
    what : str
        A key of `textnb.errors.ONE_LABEL`.
    setting : str, optional
        The setting that asks for it, if there is one.
    """
    if fitted.is_multilabel:
        raise ParameterError.multilabel(what, setting)


def fitted_text_model(model: Any, action: str | None = None) -> Fitted:
    """The fitted state of a model of texts, or of a classifier.

    Parameters
    ----------
    model : TextClassifier or Fitted
    action : str, optional
        What is about to be done, as the subject of the error's sentence, such as "saving". A
        classifier whose parameters were changed since the fit is then refused.

    Raises
    ------
    ParameterError
        If it is not a model of texts, or parameters were changed since the fit.
    """
    fitted = fitted_text_model_or_none(model)
    if fitted is None:
        raise ParameterError.out_of_range("model", "a TextClassifier", type(model).__name__)
    if action is not None and fitted is not model:
        model.check_unchanged(action)
    return fitted
