"""The options of each step of work, on the command line and as keys of a job.

A class is a group of options; its docstring is its heading in ``--help``. A field is an option: its
name is the key in a job, and the name on the command line unless ``names`` has another. With
``key_of="read"`` the option is ``--read KEY=VALUE``. `setting` explains the other arguments.
Types such as Place are explained in `textnb.runtime.settings`. Neither Polars nor NumPy is imported
here, so that ``--help`` starts at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from textnb.errors import Mention, ParameterError
from textnb.learning.settings import FALSE_POSITIVES, ColumnSettings, LimitSettings
from textnb.models.known import table_models, text_models
from textnb.runtime.settings import (
    AT_LEAST_2,
    CLASSES,
    COSTS,
    COUNT,
    SEED,
    SHARE,
    STRINGS,
    ClassPatterns,
    Costs,
    Grid,
    Label,
    Names,
    Place,
    Range,
    Storage,
    is_number,
    is_whole,
    setting,
)
from textnb.text.token_settings import TokenSettings

# Formats that `textnb.frames` reads; a test compares them.
INPUT_FORMATS = ("parquet", "ipc", "csv", "tsv", "ndjson", "lines", "folder", "mail", "delta",
                 "iceberg")
_FEEDBACK_RANGE = Range("a share above 0 and up to 1", lambda v: is_number(v) and 0 < v <= 1)
_SAMPLE_RANGE = Range("an int from 2 to 2147483647", lambda v: is_whole(v) and 2 <= v < 2**31)
_NEAR_RANGE = Range("above 0 and at most 1", lambda v: is_number(v) and 0 < v <= 1)
# The kinds of findings of an audit; a test compares them.
FINDINGS = ("leak", "in test", "contradiction", "label", "missing label", "superfluous label",
            "duplicate", "no text", "script", "confusable classes", "few rows")
# The systems that `textnb.export` writes for; a test compares them.
TARGETS = ("json", "parquet", "csv", "npz", "liblinear", "onnx", "sql-duckdb", "sql-postgres",
           "sql-sqlite", "sql-clickhouse", "python", "javascript", "c", "polars")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MailOptions:
    """Mail."""

    subfolders: bool = setting(
        False, "Read the folders of a Maildir too, such as .Spam and .Sent, and not only the "
        "folder that is named.", key_of="read")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReadOptions(MailOptions):
    """Input."""

    format: str | None = setting(
        None, "Format of the input, if its name does not tell: "
        f"{', '.join(INPUT_FORMATS)}.", key_of="read")
    storage_options: Storage | None = setting(
        None, "Options of URLs, such as storage_options.aws_region=eu-west-1. Others see them in "
        "the list of processes: put secrets into AWS_SECRET_ACCESS_KEY and the like.",
        key_of="read")
    query: str | None = setting(
        None, "The rows of a database (postgresql://user@host/name). Put its password into "
        "PGPASSWORD or ~/.pgpass.", key_of="read")
    encoding: str = setting("utf-8", "Encoding of text files in a folder per class.", key_of="read")
    separator: str | None = setting(
        None, "Character between the fields of a CSV file, such as ';'.", key_of="read")
    on_unreadable: str = setting(
        "raise", "Of local files, and messages, that can't be read to their end: stop, or list "
        "them and leave them out", choices=("raise", "skip"), key_of="read", python_name="on_error")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelledOptions(ReadOptions):
    """Input."""

    label_separator: str | None = setting(
        None, "Character between the labels of a row, of which it then may have several, such as "
        "','; Parquet and NDJSON may hold lists.", key_of="read")
    label_columns: Names | None = setting(
        None, "In place of the label column: columns, such as corn,grain, each of which says "
        "whether a row has the label of its name (true or false, 1 or 0).",
        key_of="read")
    classes: ClassPatterns | None = setting(
        None, "Name classes by patterns of labels (folders, or values of the label column), such "
        "as 'ham=easy-ham-*,hard-ham-*'; repeat it for several. A label that matches none is "
        "refused.", metavar="CLASS=PATTERN,...", range=CLASSES)

    @property
    def patterns(self) -> dict[str, list[str]]:
        """The patterns of each class that `classes` names."""
        patterns: dict[str, list[str]] = {}
        for each in self.classes or ():
            name, _, words = each.partition("=")
            patterns.setdefault(name, []).extend(words.split(","))
        return patterns

    @property
    def has_label_lists(self) -> bool:
        """Whether an option says that rows have lists of labels."""
        return self.label_separator is not None or self.label_columns is not None

    def check(self) -> None:
        """Raise ParameterError for options that exclude each other."""
        if self.label_columns is not None and self.label_separator is not None:
            raise incompatible("label_columns", "label_separator")
        if self.classes is not None and not CLASSES.holds(self.classes):
            raise ParameterError.out_of_range("classes", CLASSES.says, ", ".join(self.classes))


@dataclass(frozen=True)
class TokenOptions(TokenSettings):
    """Tokens. Unless one is given, nblinear reads short words, ! and ?, and pairs too."""

    sklearn: bool = setting(False, "The tokens of scikit-learn's CountVectorizer.", key_of="set")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LearnOptions:
    """Learning."""

    features: Names | None = setting(
        None, "Feature columns, such as x1,x2.  [default: all numeric ones]", metavar="X,X")
    weight: str | None = setting(
        None, "Column of weights of the documents.", is_common=False, python_name="sample_weight")
    warm_start: Place | None = setting(
        None, "Model file (nblinear) from whose weights the solver begins: it ends sooner where "
        "rows are nearly those of that model.", is_common=False, metavar="MODEL")
    keep_sample: int | None = setting(
        None, "Keep the terms, not the text, of the N documents that the model is least sure of "
        "(nblinear without idf, as for mail): update and forget then refit the weights. Only the "
        "owner may read the file.", metavar="N", range=_SAMPLE_RANGE)
    unlabelled: Place | None = setting(
        None, "File of rows without labels, such as those to be classified: words in similar texts "
        "share weights, which helps where labels are few (nblinear). It is read by its ending.",
        metavar="ROWS")
    false_positives: float | None = setting(
        None, "Choose a threshold, such that at most this share of what is not spam is taken for "
        "spam, or as little as the rows can show (nblinear, two classes); 0 for none.  "
        f"[default: {FALSE_POSITIVES:g} for mail without --model and the like]", metavar="N")
    confidence: float = setting(0.95, "Confidence of the guarantee of --false-positives.",
                                key_of="set")
    spam_class: str | None = setting(None, "Class that is spam.  [default: spam]", metavar="CLASS")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainOptions:
    """Model.

    Attributes
    ----------
    kind : str
    parameters : dict
        Settings of the model, by name.
    tokenizer : dict
        Settings of the tokenizer, by name; ``sklearn`` for the tokens of `Tokenizer.sklearn`.
    columns, limits, learning
        The columns of texts and labels, the limits of terms, and options of training.
    is_for_mail : bool
        Whether these are the default options for mail.
    """

    kind: str = "multinomial"
    parameters: dict[str, Any] = field(default_factory=dict)
    tokenizer: dict[str, Any] = field(default_factory=dict)
    columns: ColumnSettings = field(default_factory=ColumnSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    learning: LearnOptions = field(default_factory=LearnOptions)
    is_for_mail: bool = False

    @property
    def is_for_texts(self) -> bool:
        """Whether the model is for texts, and not for feature tables."""
        return self.kind not in table_models()

    @property
    def text_columns(self) -> list[str]:
        """The columns of texts."""
        text = self.columns.text
        return [text] if isinstance(text, str) else list(text)

    @property
    def false_positives(self) -> float:
        """The share of false positives for which training chooses a threshold; 0: no threshold."""
        rate = self.learning.false_positives
        return (FALSE_POSITIVES if self.is_for_mail else 0.0) if rate is None else rate


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UpdateOptions:
    """Learning."""

    new_class: list[str] | None = setting(
        None, "A label that the model does not know yet; repeat it for several.", metavar="CLASS")
    on_error: bool = setting(
        False, "Learn only the rows that the model misjudges. Then its counts are not a sample of "
        "the rows: priors and probabilities lean towards the hard ones.")
    within: float | None = setting(
        None, "With --on-error: learn rows, too, that are judged rightly by less than this "
        "log-odds above the minimum for the answer.", metavar="MARGIN")

    def check(self, *, with_ledger: bool = False) -> None:
        """Raise ParameterError for options that would have no effect.

        A ledger is the file beside a model that says which messages it has learned.
        """
        if self.within is not None and not self.on_error:
            raise ParameterError.naming_settings("{within} goes with {on_error}")
        if self.within is not None and with_ledger:
            raise ParameterError.naming_settings(
                "{within} does not go with a ledger, by which only mistakes are chosen: leave it "
                "out")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FoldOptions:
    """Folds."""

    folds: int | None = setting(
        None, "Divide the rows into this many parts; a model of the others scores each.  "
        "[default: 5]", range=AT_LEAST_2)
    groups: str | None = setting(
        None, "Column whose equal values stay in one fold, such as an author.", metavar="COLUMN")
    time: str | None = setting(
        None, "Column of times: a model of the earlier parts scores each part.", metavar="COLUMN")
    seed: int = setting(0, "Seed of the shuffle before the rows are divided.", range=SEED)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OneClassOptions:
    """One class."""

    positive: Label | None = setting(
        None, "Also show the rates and the area under the ROC of this class against the rest.",
        metavar="CLASS")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ValidateOptions(FoldOptions, OneClassOptions):
    """Validation."""

    leave_one_out: bool = setting(
        False, "The rows are those that the model learned: each is left out in turn.")
    online: bool = setting(
        False, "Judge the rows in order, each block by a model of those before it, as a mail "
        "filter meets its messages: 1-ROCA, and errors of --positive.  [its default: spam]")
    block: int = setting(100, "Online: rows that one model judges.", minimum=1, key_of="set")
    delay: int = setting(0, "Online: how many rows come before a row is learned.", minimum=0,
                         key_of="set")
    feedback: float = setting(1.0, "Online: share of the rows that are ever learned.",
                              key_of="set", range=_FEEDBACK_RANGE)
    smoothing: Grid | None = setting(
        None, "Compare values of l, such as 1,0.1,0.01, or auto for 17 of them, by leaving out "
        "each row that the model learned in turn.", metavar="N,N,...", python_name="grid")

    def check(self) -> None:
        """Raise ParameterError for options that would have no effect."""
        changed = {each.name for each in fields(self) if getattr(self, each.name) != each.default}
        fold_options = ("folds", "groups", "time", "seed")
        for method, others in (
                ("smoothing", (*fold_options, "positive", "online", "leave_one_out")),
                ("leave_one_out", (*fold_options, "online")), ("online", ("folds", "groups"))):
            for name in others:
                if method in changed and name in changed:
                    raise incompatible(name, method)
        for name in ("block", "delay", "feedback"):
            if name in changed and not self.online:
                raise ParameterError.naming_settings("{one} belongs to {online}", one=Mention(name))
        if self.groups is not None and self.time is not None:
            raise incompatible("groups", "time")
        # With --online, the seed chooses the rows that are learned.
        if "seed" in changed and self.time is not None and not self.online:
            raise incompatible("seed", "time")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TuneOptions(FoldOptions):
    """Search."""

    metric: str | None = setting(
        None, "accuracy (the default), macro-f1, log-loss, precision@recall=R or recall@fpr=R; of "
        "lists of labels micro-f1 (the default), macro-f1, example-f1 or subset-accuracy.")
    positive: str | None = setting(None, "Class of the last two metrics.", metavar="CLASS")
    trials: int | None = setting(None, "Trials to run.  [default: 40, without --seconds]")
    seconds: float | None = setting(
        None, "Begin no trial after this time, except the last of a race (trials on ever more "
              "rows): its best settings on all rows. The final training comes on top.")
    folds: int | None = setting(None, "Folds of each trial.  [default: 3]")
    seed: int = setting(0, "Divides the rows, and orders the trials.", range=SEED)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CalibrateOptions:
    """Calibration."""

    length_aware: bool = setting(
        True, "Whether the temperature may grow with the length of a document.",
        names=("--length/--no-length",))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DecideOptions:
    """Decision."""

    # The fields have the names of `choose_threshold`'s parameters, so that its errors name options.
    positive: Label | None = setting(
        None, "Class whose errors are counted, such as spam.", names=("--class", "-c"),
        metavar="CLASS")
    max_false_positive_rate: float | None = setting(
        None, "At most this share of the other documents may be answered as --class: 0.001.",
        names=("--max-false-positives",), range=SHARE)
    max_false_negative_rate: float | None = setting(
        None, "And at most this share of --class may be answered as another; the answer between "
        "is \"unsure\".", names=("--max-false-negatives",), range=SHARE)
    costs: Costs | None = setting(
        None, "Instead: what a false positive and a false negative cost, such as 10,1; of lists "
        "of labels, a label that is wrong and one that is missed.", metavar="N,N", range=COSTS)
    method: str | None = setting(
        None, "With costs: empirical (lowest cost on these rows, the default) or theoretical (by "
        "the probabilities alone).", choices=("empirical", "theoretical"), is_option=False)
    min_precision: float | None = setting(
        None, "Instead: for every class, the minimum share of its answers that is right.",
        range=SHARE)
    min_probability: float | None = setting(
        None, "Instead: for every class, the minimum probability of an answer.", range=SHARE)
    by: str | None = setting(
        None, "Instead, of lists of labels: the best F1 of each label (f1), or of all pairs of a "
        "row and a label (micro-f1).", choices=("f1", "micro-f1"))
    at_least: int | None = setting(
        None, "Of lists of labels: each row gets this number of labels or more; without INPUT, "
        "the thresholds stay.", metavar="N", minimum=0)
    at_most: int | None = setting(
        None, "Of lists of labels: each row gets no more than this number.", metavar="N")
    confidence: float = setting(0.95, "Confidence of the guarantees.", range=SHARE)
    scored: str | None = setting(
        None, "INPUT is what MODEL learned: each row is left out in turn (of lists of labels, a "
        "fifth of the rows at a time), or the folds of a validation are scored",
        choices=("leave-one-out", "folds"))

    @property
    def label_limits(self) -> dict[str, int]:
        """The limits on the number of labels of each row, as far as they are set."""
        limits = {"at_least": self.at_least, "at_most": self.at_most}
        return {name: value for name, value in limits.items() if value is not None}

    @property
    def needs_rows(self) -> bool:
        """Whether the thresholds are chosen on scores of rows."""
        return self.min_probability is None

    def check(self) -> None:
        """Raise ParameterError unless one goal is set, and only options that belong to it."""
        limits = {"at_least", "at_most"}
        options_of_goals = {
            "max_false_positive_rate": {"positive", "max_false_negative_rate"},
            "costs": {"positive", "method", *limits}, "min_precision": limits,
            "min_probability": set[str](), "by": limits}
        set_options = {each.name for each in fields(self) if getattr(self, each.name) is not None}
        goals = sorted(options_of_goals.keys() & set_options)
        if len(goals) != 1:
            got = {f"got{k}": Mention(name) for k, name in enumerate(goals)}
            raise ParameterError.naming_settings(
                "give one of {max_false_positive_rate}, {costs}, {min_precision}, "
                "{min_probability} and {by}; got "
                + (" and ".join(f"{{{name}}}" for name in got) or "none"), **got)
        goal = goals[0]
        foreign = sorted(set_options - options_of_goals[goal] - {goal, "confidence", "scored"})
        if foreign:
            raise incompatible(foreign[0], goal)
        if goal == "max_false_positive_rate" and self.positive is None:
            raise ParameterError.naming_settings(
                "{goal} needs {positive}: the class whose errors are counted", goal=Mention(goal))

    def check_labels(self, *, is_multilabel: bool) -> None:
        """Raise ParameterError for options that are for the other kind of labels."""
        for_one_label = ("positive", "max_false_positive_rate", "max_false_negative_rate",
                         "min_probability")
        for_lists = ("by", "at_least", "at_most")
        for name in for_one_label if is_multilabel else for_lists:
            if getattr(self, name) is None:
                continue
            if is_multilabel:
                raise ParameterError.multilabel("a threshold for one class", name)
            raise ParameterError.naming_settings(
                "{one} is for lists of labels, and a row has one label here", one=Mention(name))
        if not is_multilabel and self.costs is not None and self.positive is None:
            raise ParameterError.naming_settings(
                "{costs} needs {positive}: the class whose errors are counted")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditOptions:
    """Audit."""

    model: str | None = setting(
        None, "Model of texts that judges labels with its defaults; one that counts, such as "
        "multinomial, leaves out one row at a time.  [default: nblinear on words, C = 0.1]",
        metavar="KIND")
    near: float = setting(
        0.8, "Minimum share of word trigrams that near-duplicates have in common; 1 is quickest.",
        range=_NEAR_RANGE)
    fail_on: list[str] | None = setting(
        None, f"Exit with code 1 on such a finding; repeat it for several. Of "
        f"{', '.join(FINDINGS)}.", metavar="FINDING", range=STRINGS)

    def check(self) -> None:
        """Raise ParameterError for an unknown model or finding."""
        if self.model is not None and self.model not in text_models():
            raise ParameterError.unknown_choice("model", self.model, [*text_models()])
        for kind in self.fail_on or ():
            if kind not in FINDINGS:
                raise ParameterError.unknown_choice("fail_on", kind, FINDINGS)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TestOptions(OneClassOptions):
    """Output."""

    report: str | None = setting(
        None, "HTML page to write: charts, terms, mistakes, and peculiarities of the rows.",
        metavar="FILE")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PredictOptions:
    """Answers."""

    probability: bool = setting(False, "Add the probability of the predicted class.",
                                names=("--probability/--no-probability",))
    scores: bool = setting(
        False, "Add the score of every class: of naive Bayes and feature tables log P(row, "
        "class), up to a constant per row; of complement, complement-tfidf, nblinear and nblr a "
        "margin.", names=("--scores/--no-scores",))
    explain: int = setting(0, "Add the N terms that decided most.", minimum=0)
    top: int = setting(0, "Add the N most probable classes with their probabilities.",
                       names=("--top-k",), minimum=0)
    known_terms: bool = setting(
        False, "Add the number of terms that the model knows: 0 where an answer rests on none.",
        names=("--known-terms/--no-known-terms",))
    columns: list[str] | None = setting(
        None, "Write these columns alone, of the input and of the answers, such as id,predicted: a "
        "file without its texts is written in a fraction of the time.", names=("--columns",),
        metavar="NAME,...", range=STRINGS)

    def check_format(self, format: str) -> None:
        """Raise ParameterError if a format can't hold the lists of an answer that is written."""
        # One value of the option may be several names: id,predicted.
        names = None if self.columns is None else ",".join(self.columns).split(",")
        for name, column in (("scores", "scores"), ("explain", "explanation"), ("top", "top")):
            if format in ("csv", "tsv") and getattr(self, name) and (
                    names is None or column in names):
                raise ParameterError.naming_settings(
                    "{one} gives lists, which {format} can't hold: write Parquet or NDJSON",
                    one=Mention(name), format=format.upper())


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MistakesOptions:
    """Rows."""

    within: float | None = setting(
        None, "Also write the rows that are judged rightly by less than this margin.",
        metavar="MARGIN")
    terms: int = setting(3, "Name at most N terms that misled the model.", minimum=0, metavar="N")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NextOptions:
    """Rows."""

    n: int = setting(50, "Rows to choose.", names=("-n",), range=COUNT)
    labelled: str | None = setting(
        None, "Labelled rows, whose texts are left out. It may be INPUT itself, if some rows have "
        "a label.", metavar="FILE")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TermsOptions:
    """Terms."""

    k: int = setting(20, "Terms per class.", names=("-k",), range=COUNT)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExportOptions:
    """Export."""

    to: str | None = setting(
        None, f"{', '.join(TARGETS[:-1])} or {TARGETS[-1]}.  [default: by the output's ending]",
        metavar="TARGET")
    positive: Label | None = setting(
        None, "With two classes: write one vector w and one b, so that w x + b is above 0 for "
        "this class.", metavar="CLASS")
    reads: str | None = setting(
        None, "Whether the target splits texts itself (the default, if it can) or gets their terms",
        choices=("text", "terms"), names=("--input",))
    answers: str | None = setting(
        None, "What the target must be able to answer with.  [default: all that it can]",
        choices=("scores", "probability", "decision"))
    top: int | None = setting(None, "Keep the N terms that can move a decision most.", range=COUNT)
    precision: str = setting("float64", "Precision of the weights",
                             choices=("float64", "float32", "int8"))


def incompatible(one: str, other: str) -> ParameterError:
    """The error for two options that can't be combined, because one then has no effect."""
    return ParameterError.naming_settings("{one} does not go with {other}", one=Mention(one),
                                          other=Mention(other))
