"""Dataframe-native text classification: lazy Polars in, exact naive Bayes, linear weights out.

Names are imported when they are first used, so that ``import textnb`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import textnb.runtime.forks  # noqa: F401 - it must see each fork, and takes no library

if TYPE_CHECKING:
    from textnb.bayes.calibration import Calibration
    from textnb.bayes.decision import Decision
    from textnb.bayes.forms import LinearForm, QuadraticForm
    from textnb.bayes.moments import MomentStatistics
    from textnb.bayes.statistics import CountStatistics
    from textnb.errors import (
        DataError,
        EngineError,
        ExportError,
        ForkError,
        ImpossibleRowError,
        LearnedRowsWarning,
        ModelFileError,
        ParameterError,
        SchemaError,
        SourceError,
        TextnbError,
        TextnbWarning,
        UnknownTermsWarning,
        VocabularyError,
    )
    from textnb.estimators.discriminants import LinearDiscriminantAnalysis, NearestCentroid
    from textnb.estimators.gaussian import GaussianNB
    from textnb.estimators.linear import NBLinear
    from textnb.estimators.load import load
    from textnb.estimators.mail import mail_classifier
    from textnb.estimators.naive_bayes import (
        BernoulliNB,
        CategoricalNB,
        ComplementNB,
        MultinomialNB,
    )
    from textnb.estimators.plugin import HistogramDensity, PlugInBayes
    from textnb.estimators.quadratic import (
        QuadraticDiscriminantAnalysis,
        RegularizedDiscriminantAnalysis,
    )
    from textnb.estimators.ratio import LogCountRatio, NBLogisticRegression
    from textnb.estimators.table import TableClassifier
    from textnb.estimators.text import TextClassifier
    from textnb.estimators.tfidf import TfidfComplementNB
    from textnb.estimators.tuning import tune
    from textnb.evaluation.against_rest import operating_points, roca
    from textnb.evaluation.calibration import Reliability, calibrate, fit_calibration, reliability
    from textnb.evaluation.class_thresholds import choose_class_thresholds
    from textnb.evaluation.comparison import compare_models
    from textnb.evaluation.decisions import choose_threshold
    from textnb.evaluation.drift import Drift, DriftMeasure, drift
    from textnb.evaluation.duplicates import find_duplicates
    from textnb.evaluation.folds import accuracy_by_fold, cross_validate, evaluation_of
    from textnb.evaluation.held_out import HeldOut, held_out
    from textnb.evaluation.held_out_labels import HeldOutLabels
    from textnb.evaluation.leave_one_out import leave_one_out
    from textnb.evaluation.metrics import evaluate, evaluate_roc
    from textnb.evaluation.mistakes import mistakes
    from textnb.evaluation.online import OnlineResult, validate_online
    from textnb.evaluation.roc import roc
    from textnb.evaluation.smoothing import SmoothingPath, smoothing_path
    from textnb.export.describe import describe_model
    from textnb.export.verify import verify_export
    from textnb.export.write import export_model
    from textnb.filter.mailfilter import MailFilter
    from textnb.frames.database import scan_database
    from textnb.frames.label_lists import list_labels
    from textnb.frames.mail import mail_errors, scan_mail
    from textnb.frames.scan import scan
    from textnb.mail.message import parse_message
    from textnb.mail.tokens import mail_tokens
    from textnb.report.page import write_report
    from textnb.selection.search import Tuned
    from textnb.text.tokens import Tokenizer

_HOME = {
    "BernoulliNB": "estimators.naive_bayes",
    "Calibration": "bayes.calibration",
    "CategoricalNB": "estimators.naive_bayes",
    "ComplementNB": "estimators.naive_bayes",
    "CountStatistics": "bayes.statistics",
    "DataError": "errors",
    "Decision": "bayes.decision",
    "Drift": "evaluation.drift",
    "DriftMeasure": "evaluation.drift",
    "EngineError": "errors",
    "ExportError": "errors",
    "ForkError": "errors",
    "GaussianNB": "estimators.gaussian",
    "HeldOut": "evaluation.held_out",
    "HeldOutLabels": "evaluation.held_out_labels",
    "HistogramDensity": "estimators.plugin",
    "ImpossibleRowError": "errors",
    "LearnedRowsWarning": "errors",
    "LinearDiscriminantAnalysis": "estimators.discriminants",
    "LinearForm": "bayes.forms",
    "LogCountRatio": "estimators.ratio",
    "MailFilter": "filter.mailfilter",
    "ModelFileError": "errors",
    "MomentStatistics": "bayes.moments",
    "MultinomialNB": "estimators.naive_bayes",
    "NBLinear": "estimators.linear",
    "NBLogisticRegression": "estimators.ratio",
    "NearestCentroid": "estimators.discriminants",
    "OnlineResult": "evaluation.online",
    "ParameterError": "errors",
    "PlugInBayes": "estimators.plugin",
    "QuadraticDiscriminantAnalysis": "estimators.quadratic",
    "QuadraticForm": "bayes.forms",
    "RegularizedDiscriminantAnalysis": "estimators.quadratic",
    "Reliability": "evaluation.calibration",
    "SchemaError": "errors",
    "SmoothingPath": "evaluation.smoothing",
    "SourceError": "errors",
    "TableClassifier": "estimators.table",
    "TextClassifier": "estimators.text",
    "TextnbError": "errors",
    "TextnbWarning": "errors",
    "TfidfComplementNB": "estimators.tfidf",
    "Tokenizer": "text.tokens",
    "Tuned": "selection.search",
    "UnknownTermsWarning": "errors",
    "VocabularyError": "errors",
    "accuracy_by_fold": "evaluation.folds",
    "calibrate": "evaluation.calibration",
    "choose_class_thresholds": "evaluation.class_thresholds",
    "choose_threshold": "evaluation.decisions",
    "compare_models": "evaluation.comparison",
    "cross_validate": "evaluation.folds",
    "describe_model": "export.describe",
    "drift": "evaluation.drift",
    "evaluate": "evaluation.metrics",
    "evaluate_roc": "evaluation.metrics",
    "evaluation_of": "evaluation.folds",
    "export_model": "export.write",
    "find_duplicates": "evaluation.duplicates",
    "fit_calibration": "evaluation.calibration",
    "held_out": "evaluation.held_out",
    "leave_one_out": "evaluation.leave_one_out",
    "list_labels": "frames.label_lists",
    "load": "estimators.load",
    "mail_classifier": "estimators.mail",
    "mail_errors": "frames.mail",
    "mail_tokens": "mail.tokens",
    "mistakes": "evaluation.mistakes",
    "operating_points": "evaluation.against_rest",
    "parse_message": "mail.message",
    "reliability": "evaluation.calibration",
    "roc": "evaluation.roc",
    "roca": "evaluation.against_rest",
    "scan": "frames.scan",
    "scan_database": "frames.database",
    "scan_mail": "frames.mail",
    "smoothing_path": "evaluation.smoothing",
    "tune": "estimators.tuning",
    "validate_online": "evaluation.online",
    "verify_export": "export.verify",
    "write_report": "report.page",
}

__all__ = [
    "BernoulliNB",
    "Calibration",
    "CategoricalNB",
    "ComplementNB",
    "CountStatistics",
    "DataError",
    "Decision",
    "Drift",
    "DriftMeasure",
    "EngineError",
    "ExportError",
    "ForkError",
    "GaussianNB",
    "HeldOut",
    "HeldOutLabels",
    "HistogramDensity",
    "ImpossibleRowError",
    "LearnedRowsWarning",
    "LinearDiscriminantAnalysis",
    "LinearForm",
    "LogCountRatio",
    "MailFilter",
    "ModelFileError",
    "MomentStatistics",
    "MultinomialNB",
    "NBLinear",
    "NBLogisticRegression",
    "NearestCentroid",
    "OnlineResult",
    "ParameterError",
    "PlugInBayes",
    "QuadraticDiscriminantAnalysis",
    "QuadraticForm",
    "RegularizedDiscriminantAnalysis",
    "Reliability",
    "SchemaError",
    "SmoothingPath",
    "SourceError",
    "TableClassifier",
    "TextClassifier",
    "TextnbError",
    "TextnbWarning",
    "TfidfComplementNB",
    "Tokenizer",
    "Tuned",
    "UnknownTermsWarning",
    "VocabularyError",
    "accuracy_by_fold",
    "calibrate",
    "choose_class_thresholds",
    "choose_threshold",
    "compare_models",
    "cross_validate",
    "describe_model",
    "drift",
    "evaluate",
    "evaluate_roc",
    "evaluation_of",
    "export_model",
    "find_duplicates",
    "fit_calibration",
    "held_out",
    "leave_one_out",
    "list_labels",
    "load",
    "mail_classifier",
    "mail_errors",
    "mail_tokens",
    "mistakes",
    "operating_points",
    "parse_message",
    "reliability",
    "roc",
    "roca",
    "scan",
    "scan_database",
    "scan_mail",
    "smoothing_path",
    "tune",
    "validate_online",
    "verify_export",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'textnb' has no attribute {name!r}")
    value = getattr(import_module(f"textnb.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
