"""The verb that learns a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textnb.cli.console import note, progress
from textnb.cli.inputs import (
    InputOptions,
    Quiet,
    check_apart,
    reading,
    rows,
    unit_of,
    watched,
)
from textnb.cli.options import Given, every_model, option, verb
from textnb.learning.settings import (
    TABLE_MODELS,
    TEXT_MODELS,
    ColumnSettings,
    LimitSettings,
    TokenSettings,
    setting,
)

if TYPE_CHECKING:
    from textnb.estimators.table import TableClassifier
    from textnb.estimators.text import TextClassifier


@dataclass(frozen=True, kw_only=True)
class Features:
    """Input."""

    features: str | None = option(
        "Feature columns, such as x1,x2.  [default: all numeric ones]", metavar="X,X")
    weight: str | None = option("Column of weights of the documents.", is_common=False)


@dataclass(frozen=True, kw_only=True)
class TrainInput(ColumnSettings, Features, InputOptions):
    """Input."""


@dataclass(frozen=True, kw_only=True)
class TokenOptions(TokenSettings):
    """Tokens."""

    sklearn_tokens: bool = setting(
        False, "The tokens of scikit-learn's CountVectorizer.", is_common=False)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Model."""

    model: str = option(f"Of texts: {', '.join(TEXT_MODELS)}. Of feature tables: "
                        f"{', '.join(TABLE_MODELS)}.", default="multinomial", metavar="KIND")


_Every: Any = every_model(Kind)


class ModelOptions(_Every):
    """Model."""


@dataclass(frozen=True, kw_only=True)
class TrainOutput(Quiet):
    """Output."""

    output: str = setting(
        help="Model file to write.", names=("--output", "-o"), metavar="FILE")


@verb
def train(
    given: Given, source: TrainInput, tokens: TokenOptions, kind: ModelOptions,
    limits: LimitSettings, done: TrainOutput,
) -> None:
    """Learn a classifier from labelled rows and write its model file."""
    import numpy as np

    from textnb.cli import settings
    from textnb.estimators.text import TextClassifier
    from textnb.files.replace import check_target
    from textnb.jobs.models import TABLES
    from textnb.learning.memory_limit import memory_size

    model, output, input, label = kind.model, done.output, source.input, source.label
    check_target(output)
    check_apart(input, output)
    settings.check_options(model, given)
    classifier: TextClassifier | TableClassifier
    text: Any = None if model in TABLES else source.text or "text"
    if model in TABLES:
        from textnb.estimators.table import TableClassifier

        names = None if source.features is None else source.features.split(",")
        classifier = TableClassifier(
            settings.table_estimator(model, given), features=names, label=label)
        frame = rows(input, source, None, label, names)
    else:
        classifier = TextClassifier(
            settings.text_estimator(model, given), text=text, label=label,
            tokenizer=settings.tokenizer(tokens, given), min_df=limits.min_df,
            max_df=limits.max_df, max_features=limits.max_features, binary=limits.binary,
            memory_limit=memory_size(limits.memory_limit, "--memory-limit"))
        frame = rows(input, source, text, label)
    seen, tell = watched(frame, text)
    with (reading(input),
          progress("training", "learned from", done.quiet, unit_of(classifier)) as advance):
        if isinstance(classifier, TextClassifier):
            classifier.fit(seen, sample_weight=source.weight, progress=advance)
        else:
            classifier.fit(seen, progress=advance)
    classifier.save(output)
    if done.quiet:
        return
    tell(input)
    if isinstance(classifier, TextClassifier):
        learned = f"{len(classifier.vocabulary_):,} terms"
        if kind.l == "auto":
            learned += f", l = {classifier.estimator_.l_:g} (chosen by leave-one-out)"
        if hasattr(classifier.estimator_, "n_iter_"):
            learned += f", {_passes(classifier.estimator_)}"
        if classifier.pruned_ is not None:
            note(classifier.pruned_.told())
    else:
        learned = (f"{len(classifier.feature_names_):,} features "
                   f"({_some(classifier.features_)})")
        left_out = [name for name in frame.collect_schema().names()
                    if name not in classifier.features_ and name != label]
        if source.features is None and left_out:
            note(f"left out, as they hold other than numbers: {_some(left_out)}; see --features")
        chosen = classifier.estimator_.learned_settings().get("chosen")
        if model == "rda" and chosen:
            accuracy = classifier.estimator_.cv_accuracy_
            note(f"chosen: alpha {chosen[0]:g}, gamma {chosen[1]:g}"
                 + ("" if accuracy is None else
                    f", cross-validated accuracy {float(np.nanmax(accuracy)):.4f}"))
    note(f"{len(classifier.classes_)} classes, {learned} -> {output}")


def _passes(estimator: Any) -> str:
    if not estimator.early_stopping:
        return f"passes: {estimator.n_iter_}"
    accuracy = max(estimator.validation_scores_.values())
    return f"passes: {estimator.n_iter_} (accuracy on held-out rows {accuracy:.4f})"


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
