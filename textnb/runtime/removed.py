"""Names that 0.1, or an earlier state of 0.2, had, with what to use in this release instead.

These tables make the errors for old spellings, and the page *From 0.1*. Entries are kept for one
release. Other unknown names are taken for typing mistakes.
"""

from __future__ import annotations

# Options that are keys of `--read` now, with what to type: first those of all verbs that read rows,
# then those of the verbs for labelled rows alone.
_READ_KEYS = {
    "--input-format": "format=csv", "--query": '"query=SELECT text, label FROM mails"',
    "--encoding": "encoding=latin-1", "--separator": "separator=';'",
    "--storage-option": "storage_options.aws_region=eu-west-1", "--subfolders": "subfolders=true",
    "--on-unreadable": "on_unreadable=skip"}
_LABEL_KEYS = {"--label-separator": "label_separator=','",
               "--label-columns": "label_columns=corn,grain"}
_LABELLED_VERBS = ("train", "test", "validate", "calibrate", "threshold", "update", "forget",
                   "tune", "drift")
# Options of `train` that are keys of `--set` now, with what to type.
_SET_KEYS = {
    "--class-weight": "class_weight.spam=3", "--fit-prior": "fit_prior=true",
    "--uniform-prior": "fit_prior=false", "--norm": "norm=true", "--tf": "tf=presence",
    "--idf": "idf=true", "--no-idf": "idf=false", "--C": "C=10", "--loss": "loss=log",
    "--power": "power=1", "--tol": "tol=0.001", "--max-iter": "max_iter=500",
    "--held-out": "held_out=0.1", "--beta": "beta=0.5", "--var-smoothing": "var_smoothing=1e-9",
    "--shared-variance": "shared_variance=true", "--allow-singular": "allow_singular=true",
    "--shrinkage": "shrinkage=auto", "--gamma": "gamma=0.5", "--max-df": "max_df=0.5",
    "--pattern": "'pattern=[a-z]+'", "--lowercase": "lowercase=true",
    "--no-lowercase": "lowercase=false", "--lowercase-tr": "lowercase=tr",
    "--lowercase-az": "lowercase=az", "--normalize": "normalize=NFKC",
    "--strip-accents": "strip_accents=unicode", "--field-prefix": "field_prefix=true",
    "--unspaced": "unspaced=whole", "--keep": "keep=emoji,symbols",
    "--sklearn-tokens": "sklearn=true", "--confidence": "confidence=0.99"}
# What to use instead of an option, by verb and option.
OPTIONS: dict[tuple[str, str], str] = {
    **{("train", option): "train on the rows of a window, --where \"date >= '2025-06-01'\""
       for option in ("--time", "--period", "--keep-periods", "--half-life", "--drop-before")},
    ("update", "--drop-before"): "models keep no periods; forget the rows, or train again",
    ("update", "--at"): "models count all rows alike",
    ("forget", "--at"): "models count all rows alike",
    ("forget", "--before"): "name the rows, or train on those that stay with --where",
    ("export", "--max-bytes"):
        "leave terms out with --top N, and round weights with --precision float32 or int8",
    ("export", "--check"):
        "score the rows by the export and by textnb predict, and compare their labels",
    **{("train", option): f"say --set {value}" for option, value in _SET_KEYS.items()},
    ("train", "--alpha"): "the smoothing parameter is --l; of --model rda, say --set alpha=0.5",
    **{(verb, option): f"say --read {value}" for option, value in _READ_KEYS.items()
       for verb in (*_LABELLED_VERBS, "predict", "duplicates", "diff", "verify")},
    **{(verb, option): f"say --read {value}" for option, value in _LABEL_KEYS.items()
       for verb in _LABELLED_VERBS},
    ("mail", "--subfolders"): "say --read subfolders=true",
    ("export", "--storage-option"): "the rows that it was for are gone as well",
    ("export", "--query"): "the rows that it was for are gone as well",
    ("train", "--early-stopping"): "--set tol=4 says where the solver ends",
    ("threshold", "--ledger"): "as INPUT name labelled rows, before update learns them",
    ("threshold", "--leave-one-out"): "say --scored leave-one-out",
    ("threshold", "--method"):
        "of jobs, [decision] method says it, and of Python choose_threshold(method=...)",
    ("validate", "--block"): "say --set block=50", ("validate", "--delay"): "say --set delay=10",
    ("validate", "--feedback"): "say --set feedback=0.5",
    ("tune", "--picture"): "--table FILE writes all trials, with columns to draw",
    ("verify", "--engine"): "export the model to each target, and verify each export",
}
# What to use instead of an export target, by its name.
TARGETS: dict[str, str] = {
    "clickhouse-dictionary": "sql-clickhouse gives the model's own scores in ClickHouse",
    "sql-spark": "textnb.engines.spark.predict scores on a cluster, and parquet has the weights",
    "java": "ONNX Runtime runs onnx from Java, and a JVM can call the functions of c",
}
# What to use instead of a key of a job. A key is written without the number of its entry, as
# `exports.top`.
KEYS: dict[str, str] = {
    "exports.max_bytes": "top keeps that many terms",
    "validation.method": "leave_one_out = true leaves each row out in turn; folds are the default",
}
# Parameters that old model files may have and that are ignored, by the model's name in the file.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "NBLogisticRegression": ("early_stopping", "validation_fraction"),
}
# What to use instead of a setting of a classifier, in Python and in [model] of jobs.
SETTINGS: dict[str, str] = dict.fromkeys(
    ("time", "period", "keep_periods", "half_life", "drop_before"),
    "models keep no periods: learn the rows of a window, such as date >= '2025-06-01'")
# Names that `textnb` no longer has in Python, with the modules that have them now.
_MOVED = {
    "Drift": "evaluation.drift", "DriftMeasure": "evaluation.drift",
    "OnlineResult": "evaluation.online", "SmoothingPath": "evaluation.smoothing",
    "Reliability": "evaluation.calibration", "Tuned": "selection.search",
    "evaluate_roc": "evaluation.evaluate", "MomentStatistics": "bayes.moments",
    "HistogramDensity": "models.histogram", "list_labels": "frames.label_lists",
    "mail_errors": "frames.mail", "mail_tokens": "mail.tokens", "parse_message": "mail.message",
    **dict.fromkeys(("EngineError", "ForkError", "ImpossibleRowError", "VocabularyError"),
                    "errors")}
# What to use instead of a name in Python.
NAMES: dict[str, str] = {
    **{name: f"import it from textnb.{module}" for name, module in _MOVED.items()},
    "CountStatistics": "textnb.Counts has the counts, in memory as in files",
    "HeldOutLabels": "textnb.HeldOut holds scores of both kinds of labels",
    "accuracy_by_fold": "held.accuracy_by_fold(), of the scores that cross_validate gives",
    "evaluation_of": "held.evaluate()",
    "operating_points": "held.operating_points(positive)",
    "roca": "held.roca(positive)",
}


def removal_message(name: str, advice: str) -> str:
    """The message for an option or a name that was removed.

    Examples
    --------
    >>> removal_message("--engine", "export to each target")
    '--engine is gone: export to each target'
    """
    return f"{name} is gone: {advice}"
