"""The public names, each a line: its module, and its name.

Type checkers and editors read them here, and so does `textnb.__getattr__`, which imports a name
when it is first used.
"""

from textnb.bayes.calibration import Calibration as Calibration
from textnb.bayes.counts import Counts as Counts
from textnb.bayes.decision import Decision as Decision
from textnb.bayes.forms import LinearForm as LinearForm
from textnb.bayes.forms import QuadraticForm as QuadraticForm
from textnb.classifiers.load import load as load
from textnb.classifiers.mail import mail_classifier as mail_classifier
from textnb.classifiers.table import TableClassifier as TableClassifier
from textnb.classifiers.text import TextClassifier as TextClassifier
from textnb.classifiers.tuning import tune as tune
from textnb.errors import DataError as DataError
from textnb.errors import ExportError as ExportError
from textnb.errors import LearnedRowsWarning as LearnedRowsWarning
from textnb.errors import ModelFileError as ModelFileError
from textnb.errors import ParameterError as ParameterError
from textnb.errors import SchemaError as SchemaError
from textnb.errors import SourceError as SourceError
from textnb.errors import TextnbError as TextnbError
from textnb.errors import TextnbWarning as TextnbWarning
from textnb.errors import UnknownTermsWarning as UnknownTermsWarning
from textnb.evaluation.audit import audit as audit
from textnb.evaluation.calibration import calibrate as calibrate
from textnb.evaluation.calibration import fit_calibration as fit_calibration
from textnb.evaluation.calibration import reliability as reliability
from textnb.evaluation.decisions import choose_class_thresholds as choose_class_thresholds
from textnb.evaluation.comparison import compare_models as compare_models
from textnb.evaluation.decisions import choose_threshold as choose_threshold
from textnb.evaluation.drift import drift as drift
from textnb.evaluation.duplicates import find_duplicates as find_duplicates
from textnb.evaluation.evaluate import evaluate as evaluate
from textnb.evaluation.mistakes import mistakes as mistakes
from textnb.evaluation.folds import cross_validate as cross_validate
from textnb.evaluation.held_out import HeldOut as HeldOut
from textnb.evaluation.labelled import held_out as held_out
from textnb.evaluation.leave_one_out import leave_one_out as leave_one_out
from textnb.evaluation.online import validate_online as validate_online
from textnb.evaluation.roc import roc as roc
from textnb.evaluation.smoothing import smoothing_path as smoothing_path
from textnb.export.describe import describe_model as describe_model
from textnb.export.verify import verify_export as verify_export
from textnb.export.write import export_model as export_model
from textnb.filter.mailfilter import MailFilter as MailFilter
from textnb.frames.database import scan_database as scan_database
from textnb.frames.mail import scan_mail as scan_mail
from textnb.frames.scan import scan as scan
from textnb.models.bernoulli import BernoulliNB as BernoulliNB
from textnb.models.categorical import CategoricalNB as CategoricalNB
from textnb.models.complement import ComplementNB as ComplementNB
from textnb.models.discriminants import LinearDiscriminantAnalysis as LinearDiscriminantAnalysis
from textnb.models.discriminants import NearestCentroid as NearestCentroid
from textnb.models.gaussian import GaussianNB as GaussianNB
from textnb.models.log_count_ratio import LogCountRatio as LogCountRatio
from textnb.models.multinomial import MultinomialNB as MultinomialNB
from textnb.models.nblinear import NBLinear as NBLinear
from textnb.models.nblr import NBLogisticRegression as NBLogisticRegression
from textnb.models.plugin import PlugInBayes as PlugInBayes
from textnb.models.quadratic import QuadraticDiscriminantAnalysis as QuadraticDiscriminantAnalysis
from textnb.models.quadratic import RegularizedDiscriminantAnalysis as RegularizedDiscriminantAnalysis
from textnb.models.tfidf_complement import TfidfComplementNB as TfidfComplementNB
from textnb.report.page import write_report as write_report
from textnb.text.tokens import Tokenizer as Tokenizer
from textnb.runtime import __version__ as __version__
