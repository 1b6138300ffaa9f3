"""Every setting of a model, declared once: name, type, default, and what it means.

The command line, the keys of jobs and the reference pages are made from these dataclasses. The
tokenizer, the classifier and the estimators have the same names and defaults, which a test holds.
This module imports the standard library alone, so that ``textnb train --help`` starts at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

# Types of settings, by what a person writes. `textnb.cli.words` reads each from the command line.
NumberOrAuto = float | str
Numbers = float | list[float]
NumbersOrAuto = float | list[float] | str
CountOrShare = int | float
Size = int | str
Weights = dict[str, float] | str
Pair = tuple[int, int]
Columns = str | list[str]
Words = tuple[str, ...]
Prefixes = bool | tuple[str, ...]
LowerCase = bool | str
Kinds = tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """What a person needs to know about a setting, apart from its name, type and default.

    Attributes
    ----------
    help : str
        One line.
    choices : tuple of str
        The values that are allowed, where they are few.
    names : tuple of str
        On the command line, where they are not made from the field's name.
    flags : tuple of (str, str, str)
        Options that give the setting one value more each: their names, these values, and help.
    metavar : str or None
        What stands for a value in the help text.
    is_common : bool
        Whether ``--help`` shows it. If not, only ``--help-all`` does.
    is_argument : bool
        Whether it is given by its place on the command line, and not by its name.
    is_option : bool
        Whether the command line has it. If not, it is for Python and jobs.
    least : int or None
        The least number that is allowed.
    python : str
        Its name in Python and in its errors, where the command line has another one.
    """

    help: str
    choices: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    flags: tuple[tuple[str, str, str], ...] = ()
    metavar: str | None = None
    is_common: bool = True
    is_argument: bool = False
    is_option: bool = True
    least: int | None = None
    python: str = ""


def setting(default: Any = MISSING, help: str = "", **facts: Any) -> Any:
    """A field of a dataclass that declares a setting; without a default it is required."""
    return field(default=default, metadata={"setting": Setting(help, **facts)})


def declared(group: type) -> Iterator[tuple[Field[Any], Setting]]:
    """The settings of a dataclass, in order."""
    for each in fields(group):
        yield each, each.metadata["setting"]


@dataclass(frozen=True, kw_only=True)
class ColumnSettings:
    """Columns."""

    label: str = setting("label", "Label column.")
    text: Columns | None = setting(
        None, "Text column; repeat it for several.  [default: text; of mail, see --model]")


@dataclass(frozen=True, kw_only=True)
class TokenSettings:
    """Tokens."""

    ngram_range: Pair = setting((1, 1), "Shortest and longest n-gram, such as 1,2.",
                                names=("--ngrams",))
    analyzer: str = setting("word", "What tokens are.", choices=("word", "char", "char_wb"))
    pattern: str = setting(
        r"[\p{L}\p{M}\p{N}_]{2,}", "Regular expression of a token (Rust syntax).", is_common=False)
    lowercase: LowerCase = setting(
        True, "Lower-case the text first.", names=("--lowercase/--no-lowercase",),
        flags=(("--lowercase-tr", "tr", "As Turkish does: I becomes \u0131."),
               ("--lowercase-az", "az", "As Azerbaijani does: I becomes \u0131.")), is_common=False)
    normalize: str | None = setting(None, "Unicode normalisation, before all else.",
                                    choices=("NFC", "NFD", "NFKC", "NFKD"), is_common=False)
    strip_accents: str | None = setting(None, "Remove accents, or all that is not ASCII.",
                                        choices=("unicode", "ascii", "marks"),
                                        is_common=False)
    stop_words: Words = setting((), "UTF-8 file of stop words, one per line.", metavar="FILE")
    field_prefix: Prefixes = setting(False, "Write each column's name before its tokens.",
                                     is_common=False)
    unspaced: str = setting(
        "pairs", "Scripts without spaces between words: pairs of characters, or whole phrases.",
        choices=("pairs", "whole"), is_common=False)
    keep: Kinds = setting(
        (), "Tokens other than words, such as emoji,symbols: of emoji, symbols (c++ $5 10%), "
            "abbreviations (u.s.), punctuation (! ?).", metavar="KINDS", is_common=False)
    token_columns: Prefixes = setting(
        False, "Text columns that are lists of tokens, and not texts. By default, those that are "
               "lists where the model is trained.", is_option=False)
    segmenter: str | None = setting(
        None, "The name of a function that has split the texts, whose tokens are given as lists; "
              "in Python, the function.", is_option=False)


@dataclass(frozen=True, kw_only=True)
class LimitSettings:
    """Limits."""

    min_df: CountOrShare = setting(
        1, "Keep terms in at least N documents (2), or in such a share of them (0.01).")
    max_df: CountOrShare = setting(
        1.0, "Keep terms in at most N documents, or in such a share of them.", is_common=False)
    max_features: int | None = setting(None, "Keep the N most frequent terms.")
    binary: bool = setting(False, "Count a term once per document.")
    memory_limit: Size | None = setting(
        None, "Bytes for the terms and their counts, such as 500M or 2G, 1M or more: the rarest "
              "terms are left out until the rest fits.", metavar="SIZE")


@dataclass(frozen=True, kw_only=True)
class _Smoothed:
    l: NumberOrAuto = setting(
        1.0, "Smoothing parameter: a number, or (but for complement-tfidf, nblr and "
             "nblinear) auto, chosen by leave-one-out.",
        names=("--l",))


@dataclass(frozen=True, kw_only=True)
class _Weighted:
    class_weight: Weights | None = setting(
        None, "balanced, or label=weight, repeated: what rows of a class count for.")


@dataclass(frozen=True, kw_only=True)
class _Counted(_Weighted, _Smoothed):
    fit_prior: bool = setting(True, "Priors from the classes' shares, or equal.",
                              names=("--fit-prior/--uniform-prior",), is_common=False)
    class_prior: list[float] | None = setting(None, "Priors of the classes, in their order.",
                                              is_option=False)


@dataclass(frozen=True, kw_only=True)
class _Priors:
    priors: list[float] | None = setting(None, "Priors of the classes, in their order.",
                                         is_option=False)


@dataclass(frozen=True, kw_only=True)
class _Shrunk:
    shrinkage: NumbersOrAuto | None = setting(None, "Number in [0, 1] or auto.", is_common=False)


@dataclass(frozen=True, kw_only=True)
class _Singular:
    allow_singular: bool = setting(
        False, "Use the pseudo-inverse of a singular covariance.", is_common=False)


@dataclass(frozen=True, kw_only=True)
class MultinomialSettings(_Counted):
    """Settings of ``multinomial``."""


@dataclass(frozen=True, kw_only=True)
class BernoulliSettings(_Counted):
    """Settings of ``bernoulli``."""

    binarize: float | None = setting(0.0, "A feature is present above this value.",
                                     is_option=False)


@dataclass(frozen=True, kw_only=True)
class ComplementSettings(_Counted):
    """Settings of ``complement``."""

    norm: bool = setting(False, "Normalise the weights.", is_common=False)


@dataclass(frozen=True, kw_only=True)
class _Tfidf:
    tf: str = setting("sublinear", "What a count c becomes: 1 + log(c), c, or 1.",
                      choices=("sublinear", "count", "presence"), is_common=False)
    idf: bool = setting(True, "Multiply by inverse document frequencies.",
                        names=("--idf/--no-idf",), is_common=False)
    unit_length: bool = setting(True, "Divide each document by its length.", is_option=False)


@dataclass(frozen=True, kw_only=True)
class TfidfComplementSettings(_Tfidf, _Weighted, _Smoothed):
    """Settings of ``complement-tfidf``."""

    norm: bool = setting(False, "Normalise the weights.", is_common=False)


@dataclass(frozen=True, kw_only=True)
class RatioSettings(_Weighted, _Smoothed):
    """Settings of ``nblr``."""

    C: float = setting(1.0, "Inverse strength of regularisation.", names=("--C",),
                       is_common=False)
    beta: float = setting(1.0, "Interpolation of the weights.", is_common=False)
    loss: str = setting("log", "Logistic regression, or a linear SVM.", choices=("log", "hinge"),
                        is_common=False)
    binarize: bool = setting(True, "Count a term once per document.", is_option=False)
    tol: float | None = setting(
        None, "End at this tolerance, if --max-iter is not reached before.", is_common=False)
    max_iter: int = setting(5, "Most passes over the rows.", is_common=False)
    early_stopping: bool = setting(
        False, "As many passes, --max-iter at most, as do best on a tenth of the rows, held out "
               "for that.", is_common=False)
    validation_fraction: float = setting(0.1, "Share of the rows that early stopping holds out.",
                                         is_option=False)
    random_state: int | None = setting(0, "Shuffles the rows.", is_option=False)


@dataclass(frozen=True, kw_only=True)
class SupportVectorSettings(_Tfidf, _Weighted, _Smoothed):
    """Settings of ``nblinear``."""

    l: NumberOrAuto = setting(0.3, "Smoothing of the ratios.", names=("--l",))
    C: float = setting(1.0, "Inverse strength of regularisation.", names=("--C",),
                       is_common=False)
    loss: str = setting("hinge", "A linear SVM, or logistic regression.",
                        choices=("hinge", "log"), is_common=False)
    power: float = setting(0.5, "Of each term's log-count ratio, by which its feature is "
                                "multiplied; 0 for plain tf-idf.", is_common=False)
    tol: float = setting(1e-2, "End at this tolerance.", is_common=False)
    max_iter: int = setting(100, "Most Newton steps.", is_common=False)
    held_out: float = setting(
        0.2, "Share of the documents on which the temperature of probabilities is chosen; 0 for "
             "none, in half the time.", is_common=False)


@dataclass(frozen=True, kw_only=True)
class GaussianSettings(_Weighted, _Priors):
    """Settings of ``gaussian``."""

    var_smoothing: float = setting(1e-9, "Share of the largest variance added to all.",
                                   is_common=False)
    shared_variance: bool = setting(False, "One variance per feature for all classes.",
                                    is_common=False)


@dataclass(frozen=True, kw_only=True)
class LinearSettings(_Singular, _Shrunk, _Priors):
    """Settings of ``lda``."""

    covariance: str = setting("full", "Shape of the covariance.",
                              choices=("full", "diagonal", "spherical"), is_option=False)
    divisor: str = setting("n", "What the covariance is divided by.", choices=("n", "n-K"),
                           is_option=False)
    n_components: int | None = setting(None, "Most components of transformed rows.",
                                       is_option=False)


@dataclass(frozen=True, kw_only=True)
class QuadraticSettings(_Singular, _Shrunk, _Priors):
    """Settings of ``qda``."""

    divisor: str = setting("n", "What each covariance is divided by.", choices=("n", "n-1"),
                           is_option=False)
    reg_param: float = setting(0.0, "Share of the identity in each covariance.", is_option=False)


@dataclass(frozen=True, kw_only=True)
class RegularizedSettings(_Singular, _Priors):
    """Settings of ``rda``."""

    alpha: Numbers = setting(
        0.5, "Share of each class's own covariance; several, such as 0.1,0.5, are chosen among by "
             "cross-validation.", is_common=False)
    gamma: Numbers = setting(
        0.5, "Share of the covariance's shape against a sphere; several as for alpha.",
        is_common=False)
    cv: int = setting(5, "Folds by which alpha and gamma are chosen.", is_option=False)


@dataclass(frozen=True, kw_only=True)
class CentroidSettings(_Priors):
    """Settings of ``centroid``."""


# The kinds of models that this package registers, and the settings of each.
TEXT_MODELS: Mapping[str, type] = {
    "multinomial": MultinomialSettings, "bernoulli": BernoulliSettings,
    "complement": ComplementSettings, "complement-tfidf": TfidfComplementSettings,
    "nblr": RatioSettings, "nblinear": SupportVectorSettings}
TABLE_MODELS: Mapping[str, type] = {
    "gaussian": GaussianSettings, "lda": LinearSettings, "qda": QuadraticSettings,
    "rda": RegularizedSettings, "centroid": CentroidSettings}
MODELS: Mapping[str, type] = {**TEXT_MODELS, **TABLE_MODELS}


# What mail is learned by where no setting says otherwise: the model that errs least on its tokens.
MAIL_RECIPE: Mapping[str, Any] = {
    "text": "tokens", "model": "nblinear", "tf": "presence", "idf": False, "power": 1.0, "C": 10.0}
# The share of ham that a filter of mail may take for spam, where nobody asks for another one.
FALSE_POSITIVES = 0.001
# The same as options of the command line.
MAIL_OPTIONS = " ".join(f"--no-{name}" if value is False else
                        f"--{name} {value if isinstance(value, str) else format(value, 'g')}"
                        for name, value in MAIL_RECIPE.items())


def mail_recipe(named: Iterable[str]) -> dict[str, Any]:
    """The settings by which mail is learned; empty where one of a model's settings is named.

    Parameters
    ----------
    named : iterable of str
        Names of settings of jobs or of the command line.

    Examples
    --------
    >>> mail_recipe(["label"])["model"], mail_recipe(["label", "min_df"])
    ('nblinear', {})
    """
    groups = (ColumnSettings, TokenSettings, LimitSettings, *MODELS.values())
    own = {field.name for group in groups for field, _ in declared(group)} - {"label"}
    own |= {"model", "kind", "tokenizer", "sklearn_tokens", "features"}
    return {} if own & set(named) else dict(MAIL_RECIPE)


def is_mail_recipe(settings: Mapping[str, Any]) -> bool:
    """Whether settings, with the kind as ``model``, are those by which mail is learned."""
    return all(settings.get(name) == value for name, value in MAIL_RECIPE.items())


def foreign_settings(kind: str) -> set[str]:
    """Names of settings, of jobs or of the command line, that models of the other rows have."""
    of_text = {field.name for group in (TokenSettings, LimitSettings)
               for field, _ in declared(group)}
    of_text |= {"text", "tokenizer", "sklearn_tokens", "weight"}
    return of_text if kind in TABLE_MODELS else {"features"}
