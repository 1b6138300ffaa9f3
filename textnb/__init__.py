"""Dataframe-native text classification: lazy Polars in, exact naive Bayes, linear weights out.

Names are imported when they are first used, so that ``import textnb`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import textnb.runtime.forks  # noqa: F401 - it must see each fork, and takes no library

if TYPE_CHECKING:
    from textnb.bayes.calibration import Calibration
    from textnb.bayes.counts import Counts
    from textnb.bayes.decision import Decision
    from textnb.bayes.forms import LinearForm, QuadraticForm
    from textnb.bayes.moments import MomentStatistics
    from textnb.classifiers.load import load
    from textnb.classifiers.mail import mail_classifier
    from textnb.classifiers.table import TableClassifier
    from textnb.classifiers.text import TextClassifier
    from textnb.classifiers.tuning import tune
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
    from textnb.evaluation.calibration import Reliability, calibrate, fit_calibration, reliability
    from textnb.evaluation.comparison import compare_models
    from textnb.evaluation.decisions import choose_class_thresholds, choose_threshold
    from textnb.evaluation.drift import Drift, DriftMeasure, drift
    from textnb.evaluation.duplicates import find_duplicates
    from textnb.evaluation.evaluate import evaluate, evaluate_roc, mistakes
    from textnb.evaluation.folds import cross_validate
    from textnb.evaluation.held_out import HeldOut
    from textnb.evaluation.labelled import held_out
    from textnb.evaluation.leave_one_out import leave_one_out
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
    from textnb.models.bernoulli import BernoulliNB
    from textnb.models.categorical import CategoricalNB
    from textnb.models.complement import ComplementNB
    from textnb.models.discriminants import LinearDiscriminantAnalysis, NearestCentroid
    from textnb.models.gaussian import GaussianNB
    from textnb.models.histogram import HistogramDensity
    from textnb.models.log_count_ratio import LogCountRatio
    from textnb.models.multinomial import MultinomialNB
    from textnb.models.nblinear import NBLinear
    from textnb.models.nblr import NBLogisticRegression
    from textnb.models.plugin import PlugInBayes
    from textnb.models.quadratic import (
        QuadraticDiscriminantAnalysis,
        RegularizedDiscriminantAnalysis,
    )
    from textnb.models.tfidf_complement import TfidfComplementNB
    from textnb.report.page import write_report
    from textnb.selection.search import Tuned
    from textnb.text.tokens import Tokenizer

_HOME = {
    "BernoulliNB": "models.bernoulli",
    "Calibration": "bayes.calibration",
    "CategoricalNB": "models.categorical",
    "ComplementNB": "models.complement",
    "Counts": "bayes.counts",
    "DataError": "errors",
    "Decision": "bayes.decision",
    "Drift": "evaluation.drift",
    "DriftMeasure": "evaluation.drift",
    "EngineError": "errors",
    "ExportError": "errors",
    "ForkError": "errors",
    "GaussianNB": "models.gaussian",
    "HeldOut": "evaluation.held_out",
    "HistogramDensity": "models.histogram",
    "ImpossibleRowError": "errors",
    "LearnedRowsWarning": "errors",
    "LinearDiscriminantAnalysis": "models.discriminants",
    "LinearForm": "bayes.forms",
    "LogCountRatio": "models.log_count_ratio",
    "MailFilter": "filter.mailfilter",
    "ModelFileError": "errors",
    "MomentStatistics": "bayes.moments",
    "MultinomialNB": "models.multinomial",
    "NBLinear": "models.nblinear",
    "NBLogisticRegression": "models.nblr",
    "NearestCentroid": "models.discriminants",
    "OnlineResult": "evaluation.online",
    "ParameterError": "errors",
    "PlugInBayes": "models.plugin",
    "QuadraticDiscriminantAnalysis": "models.quadratic",
    "QuadraticForm": "bayes.forms",
    "RegularizedDiscriminantAnalysis": "models.quadratic",
    "Reliability": "evaluation.calibration",
    "SchemaError": "errors",
    "SmoothingPath": "evaluation.smoothing",
    "SourceError": "errors",
    "TableClassifier": "classifiers.table",
    "TextClassifier": "classifiers.text",
    "TextnbError": "errors",
    "TextnbWarning": "errors",
    "TfidfComplementNB": "models.tfidf_complement",
    "Tokenizer": "text.tokens",
    "Tuned": "selection.search",
    "UnknownTermsWarning": "errors",
    "VocabularyError": "errors",
    "calibrate": "evaluation.calibration",
    "choose_class_thresholds": "evaluation.decisions",
    "choose_threshold": "evaluation.decisions",
    "compare_models": "evaluation.comparison",
    "cross_validate": "evaluation.folds",
    "describe_model": "export.describe",
    "drift": "evaluation.drift",
    "evaluate": "evaluation.evaluate",
    "evaluate_roc": "evaluation.evaluate",
    "export_model": "export.write",
    "find_duplicates": "evaluation.duplicates",
    "fit_calibration": "evaluation.calibration",
    "held_out": "evaluation.labelled",
    "leave_one_out": "evaluation.leave_one_out",
    "list_labels": "frames.label_lists",
    "load": "classifiers.load",
    "mail_classifier": "classifiers.mail",
    "mail_errors": "frames.mail",
    "mail_tokens": "mail.tokens",
    "mistakes": "evaluation.evaluate",
    "parse_message": "mail.message",
    "reliability": "evaluation.calibration",
    "roc": "evaluation.roc",
    "scan": "frames.scan",
    "scan_database": "frames.database",
    "scan_mail": "frames.mail",
    "smoothing_path": "evaluation.smoothing",
    "tune": "classifiers.tuning",
    "validate_online": "evaluation.online",
    "verify_export": "export.verify",
    "write_report": "report.page",
}

__all__ = [
    "BernoulliNB",
    "Calibration",
    "CategoricalNB",
    "ComplementNB",
    "Counts",
    "DataError",
    "Decision",
    "Drift",
    "DriftMeasure",
    "EngineError",
    "ExportError",
    "ForkError",
    "GaussianNB",
    "HeldOut",
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
    "calibrate",
    "choose_class_thresholds",
    "choose_threshold",
    "compare_models",
    "cross_validate",
    "describe_model",
    "drift",
    "evaluate",
    "evaluate_roc",
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
    "parse_message",
    "reliability",
    "roc",
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
        from textnb.runtime.gone import NAMES, gone

        raise AttributeError(gone(f"textnb.{name}", NAMES[name]) if name in NAMES else
                             f"module 'textnb' has no attribute {name!r}")
    value = getattr(import_module(f"textnb.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
