"""The step that trains a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from textnb.errors import Mention, ParameterError, TextnbError
from textnb.frames.batches import Progress
from textnb.frames.failures import naming_source
from textnb.frames.scan import is_mail
from textnb.frames.token_columns import ListOfTokens
from textnb.learning.fitted import check_one_label
from textnb.learning.fitting import check_start, fit
from textnb.learning.memory_limit import memory_size
from textnb.learning.refitting import check_keep_sample
from textnb.learning.settings import ColumnSettings, LimitSettings, foreign_settings, mail_recipe
from textnb.learning.text_settings import TextSettings
from textnb.learning.unlabelled import check_unlabelled, check_vectors, scan_unlabelled
from textnb.models.known import SYNONYMS, all_models, import_model, table_models, text_models
from textnb.runtime.settings import setting_fields
from textnb.storage.textmodel import load_fitted
from textnb.text.tokens import Tokenizer
from textnb.workflow.models import AnyModel, class_named
from textnb.workflow.options import LearnOptions, TokenOptions, TrainOptions, incompatible


@dataclass(frozen=True, eq=False)
class Trained:
    """A model that was trained.

    Attributes
    ----------
    model : Fitted or TableClassifier
    threshold_error : TextnbError or None
        The reason why the default threshold for mail could not be chosen; None if it was chosen,
        or the model is not for mail.
    """

    model: AnyModel
    threshold_error: TextnbError | None = None


def use_mail_defaults(
    options: TrainOptions, set_names: Collection[str], source: str, format: str | None
) -> TrainOptions:
    """The default options for mail if the rows are mail, unless the user has set a model's option.

    ``set_names`` has the names of the options that the user has set.
    """
    # Settings by name: the text column, the kind of model, and the model's parameters.
    recipe = mail_recipe(set_names)
    if not recipe or not is_mail(source, format):
        return options
    columns = ColumnSettings(label=options.columns.label, text=recipe.pop("text"))
    return replace(options, kind=recipe.pop("model"), parameters=recipe, columns=columns,
                   is_for_mail=True)


def make_train_options(kind: str, settings: Mapping[str, Any]) -> TrainOptions:
    """Make the options of a training from its settings by name.

    Parameters
    ----------
    kind : str
    settings : mapping
        Settings of columns, limits, learning and the model. Settings of the tokenizer are among
        them, or in a mapping with the key ``tokenizer``. Other keys are ignored.

    Raises
    ------
    ParameterError
        If the kind is not known, or has no such setting.
    """
    model = model_class(kind)
    for name in settings:
        check_belongs(kind, name)

    def settings_of(group: type) -> dict[str, Any]:
        return {field.name: settings[field.name] for field, _ in setting_fields(group)
                if field.name in settings}

    return TrainOptions(
        kind=kind, parameters=settings_of(model),
        tokenizer={**settings_of(TokenOptions), **settings.get("tokenizer", {})},
        columns=ColumnSettings(**settings_of(ColumnSettings)),
        limits=LimitSettings(**settings_of(LimitSettings)),
        learning=LearnOptions(**settings_of(LearnOptions)))


def model_class(kind: Any) -> type[Any]:
    """The class of a kind of models; ParameterError if there is no such kind."""
    if isinstance(kind, str):
        # Another package may define this kind.
        import_model(kind)
    if not isinstance(kind, str) or kind not in all_models():
        raise ParameterError.unknown_choice("kind", kind, all_models(), SYNONYMS)
    return all_models()[kind]


def check_belongs(kind: str, name: str) -> None:
    """Raise ParameterError for a setting that only models of other kinds have."""
    models = all_models()
    owners = [other for other, group in models.items()
              if name in {each.name for each, _ in setting_fields(group)}]
    # A setting of all models of texts, or of all models of feature tables.
    if name in foreign_settings(kind):
        owners = [*(text_models() if kind in table_models() else table_models())]
    if owners and kind not in owners:
        has_l = "l" in {each.name for each, _ in setting_fields(models[kind])}
        raise ParameterError.naming_settings(
            "{one} belongs to {others}; got {own}"
            + (", whose smoothing parameter is {l}" if name == "alpha" and has_l else ""),
            one=Mention(name), others=Mention("kind", ", ".join(owners)),
            own=Mention("kind", kind))


def model_of(kind: str, parameters: Mapping[str, Any]) -> Any:
    """Make a model of a kind, and check its settings before rows are read.

    Raises
    ------
    ParameterError
        If the kind or a setting is not known, or a setting is out of its range.
    """
    model = model_class(kind)(**parameters)
    # The numbers of features and classes are not known yet.
    model.check(n_features=1, n_classes=2)
    return model


def tokenizer_of(settings: Mapping[str, Any]) -> Tokenizer:
    """Make the tokenizer from its settings."""
    parameters = dict(settings)
    if not parameters.pop("sklearn", False):
        return Tokenizer(**parameters)
    if "pattern" in parameters:
        raise incompatible("sklearn", "pattern")
    return Tokenizer.sklearn(**parameters)


def check_training(options: TrainOptions) -> None:
    """Raise ParameterError for impossible options, before rows are read."""
    model, columns = model_of(options.kind, options.parameters), options.columns
    names = options.text_columns if model.of_terms else list(options.learning.features or ())
    if model.of_terms and (not names or len(set(names)) < len(names)):
        raise ParameterError.naming_settings("{text} must be one or more columns, without repeats")
    if columns.label in names:
        raise ParameterError(f"the label column {columns.label!r} is also a text or feature column")
    settings = text_settings(options) if model.of_terms else None
    if columns.label in ("predicted", "decision"):
        raise ParameterError.naming_settings("{label} is the name of an answer: rename the column",
                                             label=Mention("label", repr(columns.label)))
    _check_learning(options, settings)


def _check_learning(options: TrainOptions, settings: TextSettings | None) -> None:
    """Check options of the threshold, options of nblinear, and the column of weights."""
    learning = options.learning
    if settings is None:
        for name in ("warm_start", "keep_sample", "unlabelled"):
            if getattr(learning, name) is not None:
                raise ParameterError.naming_settings("{one} is for {model}", one=Mention(name),
                                                     model=Mention("model", "nblinear"))
    else:
        if learning.weight in (*settings.columns, settings.label):
            raise ParameterError.naming_settings("{weight} is also a text or label column",
                                                 weight=Mention("weight", repr(learning.weight)))
        if learning.keep_sample is not None:
            check_keep_sample(settings, learning.keep_sample, learning.weight is not None)
        check_vectors(settings, learning.unlabelled)
        if learning.unlabelled is not None:
            check_unlabelled(settings)
            # Which columns hold lists of tokens is known only from the labelled rows.
            with naming_source(learning.unlabelled), suppress(ListOfTokens):
                scan_unlabelled(settings, learning.unlabelled)
    rate = options.false_positives
    if learning.false_positives is None and not options.is_for_mail and (
            learning.spam_class is not None or learning.confidence != type(learning).confidence):
        raise ParameterError.naming_settings(
            "{spam_class} and {confidence} go with {false_positives}")
    kinds = [kind for kind, model in text_models().items() if model.scores_left_out]
    if rate and options.kind not in kinds:
        raise ParameterError.naming_settings(
            "{false_positives} is for {model}, which cross-validates its scores during the fit; "
            "for other models, use textnb threshold",
            model=Mention("model", ", ".join(kinds)))
    if not 0 < learning.confidence < 1:
        raise ParameterError.out_of_range("confidence", "above 0 and below 1", learning.confidence)
    if not 0 <= rate < 1:
        raise ParameterError.out_of_range("false_positives", "a share from 0 to 1", rate)


def train(options: TrainOptions, frame: pl.LazyFrame, progress: Progress | None = None) -> Trained:
    """Learn a model from labelled rows, and choose its threshold if the options ask for one."""
    check_training(options)
    if not options.is_for_texts:
        from textnb.classifiers.table import TableClassifier

        features = options.learning.features
        return Trained(TableClassifier(
            model_of(options.kind, options.parameters),
            features=None if features is None else list(features), label=options.columns.label,
        ).fit(frame, progress=progress))
    settings, learning = text_settings(options), options.learning
    start = None
    if learning.warm_start is not None:
        start = load_fitted(learning.warm_start)
        check_start(settings, start)
    # Scores of left-out rows are kept only if a threshold is chosen from them.
    fitted = fit(settings, frame, sample_weight=learning.weight, start=start,
                 left_out=options.false_positives > 0, keep_sample=learning.keep_sample,
                 unlabelled=learning.unlabelled, progress=progress)
    return with_threshold(fitted, options) if options.false_positives else Trained(fitted)


def text_settings(options: TrainOptions) -> TextSettings:
    """The settings of a model of texts."""
    limits, names = options.limits, options.text_columns
    return TextSettings.of(
        model_of(options.kind, options.parameters), text=names[0] if len(names) == 1 else names,
        label=options.columns.label,
        tokenizer=tokenizer_of(options.tokenizer) if options.tokenizer else None,
        **{**vars(limits), "memory_limit": memory_size(limits.memory_limit)})


def with_threshold(fitted: Any, options: TrainOptions) -> Trained:
    """The model with the threshold of a mail filter, or with the reason why it has none.

    If the user has asked for a threshold, the reason is raised as an error.
    """
    # Imported here, because most models get no threshold.
    from textnb.evaluation.decisions import with_spam_threshold
    from textnb.filter.verdict import SPAM

    learning = options.learning
    try:
        check_one_label(fitted, what="a threshold for one class", setting="false_positives")
        if len(fitted.classes) > 2:
            raise ParameterError.naming_settings(
                "the threshold of a filter is for two classes; got {n}. Make them two with "
                "{classes}, whose patterns match these names", n=len(fitted.classes),
                classes=Mention("classes", f"'{learning.spam_class or SPAM}=PATTERN,...'"))
        spam = class_named(learning.spam_class or SPAM, fitted.classes, setting="spam_class")
        return Trained(with_spam_threshold(fitted, spam, options.false_positives,
                                           confidence=learning.confidence))
    except TextnbError as error:
        if learning.false_positives is not None or learning.spam_class is not None:
            raise
        return Trained(fitted, error)
