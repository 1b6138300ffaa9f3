"""Dataframe-native text classification: lazy Polars in, exact naive Bayes, linear weights out.

Names are imported when they are first used, so that ``import textnb`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textnb.bayes.discrete import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB
    from textnb.bayes.discriminants import LinearDiscriminantAnalysis, NearestCentroid
    from textnb.bayes.forms import LinearForm, QuadraticForm
    from textnb.bayes.gaussian import GaussianNB
    from textnb.bayes.moments import MomentStatistics
    from textnb.bayes.plugin import HistogramDensity, PlugInBayes
    from textnb.bayes.quadratic import (
        QuadraticDiscriminantAnalysis,
        RegularizedDiscriminantAnalysis,
    )
    from textnb.bayes.ratio import LogCountRatio, NBLogisticRegression
    from textnb.bayes.statistics import CountStatistics
    from textnb.classifier.load import load
    from textnb.classifier.table import TableClassifier
    from textnb.classifier.text import TextClassifier
    from textnb.errors import (
        DataError,
        ExportError,
        ImpossibleRowError,
        ModelFileError,
        ParameterError,
        SchemaError,
        SourceError,
        TextnbError,
        VocabularyError,
    )
    from textnb.evaluation.metrics import evaluate, evaluate_roc
    from textnb.evaluation.roc import roc
    from textnb.export.describe import describe_model
    from textnb.export.verify import verify_export
    from textnb.export.write import export_model
    from textnb.frames.scan import scan
    from textnb.text.tokens import Tokenizer

_HOME = {
    "BernoulliNB": "bayes.discrete",
    "CategoricalNB": "bayes.discrete",
    "ComplementNB": "bayes.discrete",
    "CountStatistics": "bayes.statistics",
    "DataError": "errors",
    "ExportError": "errors",
    "GaussianNB": "bayes.gaussian",
    "HistogramDensity": "bayes.plugin",
    "ImpossibleRowError": "errors",
    "LinearDiscriminantAnalysis": "bayes.discriminants",
    "LinearForm": "bayes.forms",
    "LogCountRatio": "bayes.ratio",
    "ModelFileError": "errors",
    "MomentStatistics": "bayes.moments",
    "MultinomialNB": "bayes.discrete",
    "NBLogisticRegression": "bayes.ratio",
    "NearestCentroid": "bayes.discriminants",
    "ParameterError": "errors",
    "PlugInBayes": "bayes.plugin",
    "QuadraticDiscriminantAnalysis": "bayes.quadratic",
    "QuadraticForm": "bayes.forms",
    "RegularizedDiscriminantAnalysis": "bayes.quadratic",
    "SchemaError": "errors",
    "SourceError": "errors",
    "TableClassifier": "classifier.table",
    "TextClassifier": "classifier.text",
    "TextnbError": "errors",
    "Tokenizer": "text.tokens",
    "VocabularyError": "errors",
    "describe_model": "export.describe",
    "evaluate": "evaluation.metrics",
    "evaluate_roc": "evaluation.metrics",
    "export_model": "export.write",
    "load": "classifier.load",
    "roc": "evaluation.roc",
    "scan": "frames.scan",
    "verify_export": "export.verify",
}

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "CountStatistics",
    "DataError",
    "ExportError",
    "GaussianNB",
    "HistogramDensity",
    "ImpossibleRowError",
    "LinearDiscriminantAnalysis",
    "LinearForm",
    "LogCountRatio",
    "ModelFileError",
    "MomentStatistics",
    "MultinomialNB",
    "NBLogisticRegression",
    "NearestCentroid",
    "ParameterError",
    "PlugInBayes",
    "QuadraticDiscriminantAnalysis",
    "QuadraticForm",
    "RegularizedDiscriminantAnalysis",
    "SchemaError",
    "SourceError",
    "TableClassifier",
    "TextClassifier",
    "TextnbError",
    "Tokenizer",
    "VocabularyError",
    "describe_model",
    "evaluate",
    "evaluate_roc",
    "export_model",
    "load",
    "roc",
    "scan",
    "verify_export",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'textnb' has no attribute {name!r}")
    value = getattr(import_module(f"textnb.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
