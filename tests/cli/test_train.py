"""textnb train: documents in, a model file out."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, Run, files_in
from textnb import (
    BernoulliNB,
    ComplementNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    NearestCentroid,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    TableClassifier,
    TextClassifier,
    Tokenizer,
)
from textnb.cli.main import VERBS, command_of
from textnb.cli.options import Command
from textnb.runtime.settings import declared

# The command notes this warning; where warnings are errors, it would have nothing to note.
ONE_CLASS = pytest.mark.filterwarnings("always:only one class:UserWarning")


def test_a_model_is_written_and_the_notes_go_to_stderr(run: Run, mail: Path) -> None:
    ran = run("train", mail, "-o", "mail.textnb").checked()
    assert ran.out == ""
    learned, written = ran.err.splitlines()
    assert learned.startswith("learned from 6 documents in ")
    assert written == "2 classes, 12 terms -> mail.textnb"
    assert files_in(mail.parent) == ["mail.parquet", "mail.textnb"]


def test_the_model_is_that_of_the_library(run: Run, mail: Path) -> None:
    run("train", mail, "-o", "shell.textnb").checked()
    TextClassifier(MultinomialNB()).fit(MAIL).save("python.textnb")
    assert Path("shell.textnb").read_bytes() == Path("python.textnb").read_bytes()


def test_quiet_is_quiet(run: Run, mail: Path) -> None:
    for option in ("-q", "--quiet"):
        ran = run("train", mail, "-o", "mail.textnb", option).checked()
        assert (ran.out, ran.err) == ("", "")


def test_the_passes_of_the_solver_are_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["good film", "bad film", "so good", "so bad"] * 10
    frame = pl.DataFrame({"text": texts, "label": ["pos", "neg"] * 20})
    frame.write_csv("films.csv")
    ran = run("train", "films.csv", "-o", "m.textnb", "--model", "nblr", "--set", "tol=1",
              "--set", "max_iter=40").checked()
    model = TextClassifier(NBLogisticRegression(tol=1.0, max_iter=40)).fit(frame)
    assert ran.err.splitlines()[-1] == (
        f"2 classes, 4 terms, passes: {model.estimator_.n_iter_} -> m.textnb")
    model.save("python.textnb")
    assert Path("m.textnb").read_bytes() == Path("python.textnb").read_bytes()


# Options


def spelt(value: object) -> str:
    """The options of a case as its name."""
    return "_".join(map(str, value)) if isinstance(value, list) else ""


def inner(name: str) -> Callable[[TextClassifier], Any]:
    return lambda model: getattr(model.estimator, name)


def token(name: str) -> Callable[[TextClassifier], Any]:
    return lambda model: getattr(model.tokenizer, name)


def outer(name: str) -> Callable[[TextClassifier], Any]:
    return lambda model: getattr(model, name)


def documents(model: TextClassifier) -> int:
    return int(model.estimator_.class_count_.sum())


def kind(model: TextClassifier) -> type:
    return type(model.estimator)


OPTIONS: list[tuple[list[str], Callable[[TextClassifier], Any], Any]] = [
    ([], kind, MultinomialNB),
    (["--model", "multinomial"], kind, MultinomialNB),
    (["--model", "bernoulli"], kind, BernoulliNB),
    (["--model", "complement"], kind, ComplementNB),
    (["--model", "nblr"], kind, NBLogisticRegression),
    (["--model", "nblr"], inner("C"), 1.0),
    (["--model", "nblr", "--set", "C=0.5"], inner("C"), 0.5),
    (["--model", "nblr", "--set", "beta=0.25"], inner("beta"), 0.25),
    (["--model", "nblr", "--l", "0.5"], inner("l"), 0.5),
    (["--model", "nblr"], inner("max_iter"), 1000),
    (["--model", "nblr", "--set", "max_iter=9"], inner("max_iter"), 9),
    (["--model", "nblr", "--set", "loss=hinge"], inner("loss"), "hinge"),
    (["--model", "nblr", "--set", "tol=0.5"], inner("tol"), 0.5),
    (["--model", "nblinear"], kind, NBLinear),
    (["--model", "nblinear"], inner("l"), 0.3),
    (["--model", "nblinear", "--set", "loss=log"], inner("loss"), "log"),
    (["--model", "nblinear", "--set", "power=1"], inner("power"), 1.0),
    (["--model", "nblinear", "--set", "tf=presence"], inner("tf"), "presence"),
    (["--model", "nblinear", "--set", "idf=false"], inner("idf"), False),
    (["--model", "nblinear", "--set", "idf=true"], inner("idf"), True),
    (["--model", "nblinear", "--set", "held_out=0.1"], inner("held_out"), 0.1),
    (["--model", "nblinear"], inner("max_iter"), 100),
    ([], inner("l"), 1.0),
    (["--l", "0.25"], inner("l"), 0.25),
    (["--l", "0"], inner("l"), 0.0),
    (["--l", "auto"], inner("l"), "auto"),
    (["--memory-limit", "3M"], lambda model: model.memory_limit, 3 << 20),
    ([], inner("fit_prior"), True),
    (["--set", "fit_prior=false"], inner("fit_prior"), False),
    (["--set", "fit_prior=true"], inner("fit_prior"), True),
    (["--model", "complement"], inner("norm"), False),
    (["--model", "complement", "--set", "norm=true"], inner("norm"), True),
    ([], outer("text"), "text"),
    (["--text", "subject"], outer("text"), "subject"),
    (["--text", "subject", "--text", "text"], outer("text"), ["subject", "text"]),
    ([], outer("label"), "label"),
    (["--label", "split"], outer("label"), "split"),
    ([], token("ngram_range"), (1, 1)),
    (["--ngrams", "1,2"], token("ngram_range"), (1, 2)),
    (["--ngrams", "2,2"], token("ngram_range"), (2, 2)),
    (["--analyzer", "char"], token("analyzer"), "char"),
    (["--analyzer", "char_wb", "--ngrams", "2,4"], token("analyzer"), "char_wb"),
    ([], token("pattern"), Tokenizer().pattern),
    (["--set", r"pattern=\S+"], token("pattern"), r"\S+"),
    (["--set", "sklearn=true"], token("pattern"), Tokenizer.sklearn().pattern),
    ([], token("lowercase"), True),
    (["--set", "lowercase=false"], token("lowercase"), False),
    (["--set", "lowercase=tr"], token("lowercase"), "tr"),
    (["--set", "lowercase=az"], token("lowercase"), "az"),
    (["--set", "normalize=NFKC"], token("normalize"), "NFKC"),
    (["--set", "strip_accents=ascii"], token("strip_accents"), "ascii"),
    (["--set", "strip_accents=unicode"], token("strip_accents"), "unicode"),
    (["--stop-words", "stop.txt"], token("stop_words"), ("at", "you", "日本")),
    (["--set", "field_prefix=true"], token("field_prefix"), True),
    (["--set", "keep=symbols,emoji"], token("keep"), ("emoji", "symbols")),
    ([], token("unspaced"), "pairs"),
    (["--set", "unspaced=whole"], token("unspaced"), "whole"),
    (["--set", "sklearn=true"], token("unspaced"), "whole"),
    ([], outer("min_df"), 1),
    (["--min-df", "2"], outer("min_df"), 2),
    (["--min-df", "0.3"], outer("min_df"), 0.3),
    ([], outer("max_df"), 1.0),
    (["--set", "max_df=3"], outer("max_df"), 3),
    (["--set", "max_df=0.9"], outer("max_df"), 0.9),
    (["--max-features", "4"], outer("max_features"), 4),
    (["--binary"], outer("binary"), True),
    ([], documents, 6),
    (["--where", "split = 'train'"], documents, 4),
    (["--where", "id > 3 AND label = 'ham' OR id = 9"], documents, 3),
    (["--where", "text LIKE '%lunch'", "--label", "split"], documents, 3),
]


@pytest.mark.sweep(24)
@pytest.mark.parametrize(("options", "setting", "expected"), OPTIONS,
                         ids=spelt)
def test_an_option_reaches_the_model(
    run: Run, folder: Path, options: list[str], setting: Callable[[TextClassifier], Any],
    expected: object,
) -> None:
    table = MAIL.with_columns(subject=pl.lit("about lunch"))
    table.write_parquet("mail.parquet")
    Path("stop.txt").write_text("at\n\n  you \n日本\n", "utf-8")
    run("train", "mail.parquet", "-o", "m.textnb", *options).checked()
    found = setting(textnb.load("m.textnb"))
    assert (found, type(found)) == (expected, type(expected))


# On a table of the features x and y.
TABLE_OPTIONS: list[tuple[list[str], str, Any]] = [
    (["gaussian"], "var_smoothing", 1e-9),
    (["gaussian", "--set", "var_smoothing=0.01"], "var_smoothing", 0.01),
    (["gaussian"], "shared_variance", False),
    (["gaussian", "--set", "shared_variance=true"], "shared_variance", True),
    (["lda"], "shrinkage", None),
    (["lda", "--set", "shrinkage=0.25"], "shrinkage", 0.25),
    (["lda", "--set", "shrinkage=auto"], "shrinkage", "auto"),
    (["lda", "--set", "allow_singular=true"], "allow_singular", True),
    (["qda", "--set", "shrinkage=0.5"], "shrinkage", 0.5),
    (["qda", "--set", "allow_singular=true"], "allow_singular", True),
    (["rda"], "alpha", 0.5),
    (["rda", "--set", "alpha=0.1"], "alpha", 0.1),
    (["rda", "--set", "alpha=0.1,0.9"], "alpha", [0.1, 0.9]),
    (["rda", "--set", "gamma=0.75"], "gamma", 0.75),
    (["rda", "--set", "gamma=0,1", "--set", "allow_singular=true"], "gamma", [0.0, 1.0]),
    (["centroid"], "priors", None),
]
TABLE_MODELS = {"gaussian": GaussianNB, "lda": LinearDiscriminantAnalysis,
                "qda": QuadraticDiscriminantAnalysis, "rda": RegularizedDiscriminantAnalysis,
                "centroid": NearestCentroid}


@pytest.fixture
def flowers(folder: Path) -> Path:
    """A table of features, two classes of twelve rows."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(24, 2)) + np.repeat([[0.0, 0.0], [4.0, 2.0]], 12, axis=0)
    path = folder / "flowers.parquet"
    pl.DataFrame(rows, schema=["x", "y"], orient="row").with_columns(
        label=pl.Series(["a"] * 12 + ["b"] * 12), name=pl.lit("text")).write_parquet(path)
    return path


@pytest.mark.parametrize(("options", "setting", "expected"), TABLE_OPTIONS,
                         ids=spelt)
def test_an_option_reaches_the_model_of_tables(
    run: Run, flowers: Path, options: list[str], setting: str, expected: object
) -> None:
    ran = run("train", flowers, "-o", "m.textnb", "--model", *options).checked()
    assert ran.err.splitlines()[-1] == "2 classes, 2 features (x, y) -> m.textnb"
    model = textnb.load("m.textnb")
    assert isinstance(model, TableClassifier)
    assert type(model.estimator_) is TABLE_MODELS[options[0]]
    assert getattr(model.estimator_, setting) == expected
    assert model.features_ == ["x", "y"]
    ran = run("test", "m.textnb", flowers, "--format", "json").checked()
    assert json.loads(ran.out)["accuracy"] > 0.8


@pytest.mark.parametrize("features", [["x"], ["y", "x"]])
def test_features_are_chosen(run: Run, flowers: Path, features: list[str]) -> None:
    run("train", flowers, "-o", "m.textnb", "--model", "lda", "--features",
        ",".join(features)).checked()
    assert textnb.load("m.textnb").features_ == features
    ran = run("predict", "m.textnb", flowers, "-o", "out.parquet", "--probability",
              "--scores").checked()
    assert ran.out == ""
    expected = textnb.load("m.textnb").predict(pl.read_parquet(flowers), probability=True,
                                               scores=True)
    assert pl.read_parquet("out.parquet").equals(expected)


def test_features_of_a_csv_file_are_numbers(run: Run, flowers: Path) -> None:
    pl.read_parquet(flowers).write_csv("flowers.csv")
    run("train", "flowers.csv", "-o", "csv.textnb", "--model", "gaussian").checked()
    run("train", flowers, "-o", "parquet.textnb", "--model", "gaussian").checked()
    assert Path("csv.textnb").read_bytes() == Path("parquet.textnb").read_bytes()


@pytest.mark.parametrize("options", [
    ["--model", "lda", "--l", "1"], ["--model", "gaussian", "--text", "name"],
    ["--model", "gaussian", "--ngrams", "1,2"], ["--model", "gaussian", "--set", "shrinkage=0.1"],
    ["--model", "lda", "--set", "alpha=0.1"], ["--model", "rda", "--set", "var_smoothing=1"],
    ["--model", "centroid", "--set", "allow_singular=true"],
    ["--model", "multinomial", "--features", "x"],
    ["--model", "multinomial", "--set", "C=1"], ["--model", "nblr", "--set", "fit_prior=false"],
    ["--model", "bernoulli", "--set", "beta=0.5"], ["--set", "gamma=0.5"],
    ["--model", "complement", "--set", "beta=0.5"], ["--set", "max_iter=9"]], ids="_".join)
def test_an_option_that_a_model_does_not_have_is_refused(
    run: Run, flowers: Path, options: list[str]
) -> None:
    option = " ".join(options[-2:]).split("=")[0] if "--set" in options else next(
        word for word in options[::-1] if word.startswith("--"))
    ran = run("train", flowers, "-o", "m.textnb", *options).checked(2)
    assert f"error: {option} belongs to --model " in ran.err
    assert not Path("m.textnb").exists()


@pytest.mark.parametrize(("options", "told"), [
    (["lda", "--set", "shrinkage=much"], "--set shrinkage"),
    (["lda", "--set", "shrinkage=2"], "shrinkage"),
    (["rda", "--set", "alpha=x"], "--set alpha"), (["rda", "--set", "alpha=1.5"], "alpha"),
    (["rda", "--set", "gamma=-1"], "gamma"),
    (["gaussian", "--set", "var_smoothing=-1"], "--set var_smoothing"),
    (["nblr", "--set", "C=0"], "C: must be"), (["nblr", "--set", "beta=2"], "beta: must be"),
    (["nblr", "--set", "max_iter=0"], "--set max_iter: must be"),
    (["nblr", "--set", "loss=square"], "loss"),
    (["nblinear", "--set", "power=-1"], "power: must be"), (["nblinear", "--set", "tf=log"], "tf"),
    (["nblinear", "--set", "held_out=0.9"], "--set held_out: must be"),
    ], ids=spelt)
def test_values_out_of_range_are_bad_usage(
    run: Run, flowers: Path, options: list[str], told: str
) -> None:
    ran = run("train", flowers, "-o", "m.textnb", "--model", *options).checked(2)
    assert told in ran.err
    assert not Path("m.textnb").exists()


@pytest.mark.parametrize(("column", "value", "told"), [
    ("y", None, "'y'"), ("y", float("nan"), "'y'"), ("y", float("inf"), "'y'"),
    ("label", None, "label column 'label' is null in row 23")])
def test_a_value_that_is_none_is_named_with_its_row(
    run: Run, flowers: Path, column: str, value: Any, told: str
) -> None:
    last = pl.int_range(pl.len()) == pl.len() - 1
    frame = pl.read_parquet(flowers)
    frame.with_columns(pl.when(last).then(pl.lit(value)).otherwise(column).alias(column)
                       ).write_parquet("bad.parquet")
    told_to = error_of(run, "train", "bad.parquet", "-o", "m.textnb", "--model", "gaussian")
    assert told in told_to
    assert "row 23" in told_to


def test_a_feature_that_is_missing_or_no_number_is_named(run: Run, flowers: Path) -> None:
    assert "'z'" in error_of(run, "train", flowers, "-o", "m.textnb", "--model", "lda",
                             "--features", "x,z")
    assert "'name'" in error_of(run, "train", flowers, "-o", "m.textnb", "--model", "lda",
                                "--features", "x,name")


@pytest.mark.parametrize("args", [
    ["top", "m.textnb"], ["explain", "m.textnb", "free"],
    ["predict", "m.textnb", "flowers.parquet", "--explain", "2"]], ids=lambda args: args[0])
def test_what_only_models_of_texts_do_is_refused(
    run: Run, flowers: Path, args: list[str]
) -> None:
    run("train", flowers, "-o", "m.textnb", "--model", "gaussian").checked()
    ran = run(*args).checked(2)
    assert "of texts" in ran.err
    assert ran.out == ""


def test_every_option_of_train_is_tested() -> None:
    tested = {option for options, *_ in [*OPTIONS, *TABLE_OPTIONS] for option in options
              if option.startswith("--")}
    # What says where rows come from, and where notes go, is tested below and above.
    tested |= {"--output", "-o", "--features", "--read", "--quiet", "-q",
               "--weight", "--help-all", "--warm-start",
               # In test_mail_recipe.py and test_keep_sample.py.
               "--false-positives", "--spam-class", "--keep-sample"}
    command = command_of("train")
    assert command is not None
    offered = {name for option in command.params if option.param_type_name == "option"
               for name in [*option.opts, *option.secondary_opts]}
    assert offered == tested
    named = {word.split("=")[0].split(".")[0] for options, *_ in [*OPTIONS, *TABLE_OPTIONS]
             for option, word in pairwise(options) if option == "--set"}
    # In test_class_weight.py, and test_mail_recipe.py.
    assert isinstance(command, Command)
    assert named | {"class_weight", "confidence"} == {
        field.name for group in command.groups for field, facts in declared(group)
        if facts.under == "set"}


def test_stop_words_leave(run: Run, mail: Path) -> None:
    Path("stop.txt").write_text("Lunch\nat\n")
    run("train", mail, "-o", "m.textnb", "--stop-words", "stop.txt").checked()
    assert not {"lunch", "at"} & set(textnb.load("m.textnb").vocabulary_)


def test_field_prefixes_tell_columns_apart(run: Run, folder: Path) -> None:
    pl.DataFrame({"subject": ["free", "free"], "body": ["free", "lunch"], "label": ["a", "b"]}
                 ).write_parquet("mail.parquet")
    run("train", "mail.parquet", "-o", "m.textnb", "--text", "subject", "--text", "body",
        "--set", "field_prefix=true").checked()
    assert textnb.load("m.textnb").vocabulary_ == ["body:free", "body:lunch", "subject:free"]


# Where rows come from


def written(table: pl.DataFrame, format: str) -> bytes:
    buffer = io.BytesIO()
    if format == "parquet":
        table.write_parquet(buffer)
    elif format == "ipc":
        table.write_ipc(buffer)
    elif format == "ndjson":
        table.write_ndjson(buffer)
    else:
        table.write_csv(buffer, separator="\t" if format == "tsv" else ",")
    return buffer.getvalue()


FORMATS = ["parquet", "ipc", "csv", "tsv", "ndjson"]


def expected_bytes(folder: Path) -> bytes:
    path = folder / "expected.textnb"
    TextClassifier(MultinomialNB()).fit(MAIL).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_the_same_model(run: Run, folder: Path, format: str) -> None:
    Path(f"mail.{format}").write_bytes(written(MAIL, format))
    run("train", f"mail.{format}", "-o", "m.textnb").checked()
    assert Path("m.textnb").read_bytes() == expected_bytes(folder)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_read_from_stdin(run: Run, folder: Path, format: str) -> None:
    run("train", "-", "-o", "m.textnb", input=written(MAIL, format)).checked()
    assert Path("m.textnb").read_bytes() == expected_bytes(folder)


@pytest.mark.parametrize("format", FORMATS)
def test_the_format_may_be_said(run: Run, folder: Path, format: str) -> None:
    Path("mail").write_bytes(written(MAIL, format))
    run("train", "mail", "-o", "m.textnb", "--read", f"format={format}").checked()
    assert Path("m.textnb").read_bytes() == expected_bytes(folder)


@pytest.mark.parametrize("format", ["csv", "tsv", "ndjson"])
def test_gzip_is_read(run: Run, folder: Path, format: str) -> None:
    packed = gzip.compress(written(MAIL, format))
    Path(f"mail.{format}.gz").write_bytes(packed)
    run("train", f"mail.{format}.gz", "-o", "m.textnb").checked()
    assert Path("m.textnb").read_bytes() == expected_bytes(folder)


@pytest.mark.parametrize("format", ["csv", "tsv", "ndjson"])
def test_gzip_is_read_from_stdin(run: Run, folder: Path, format: str) -> None:
    packed = gzip.compress(written(MAIL, format))
    run("train", "-", "-o", "m.textnb", "--read", f"format={format}", input=packed).checked()
    assert Path("m.textnb").read_bytes() == expected_bytes(folder)


def test_globs_and_folders_of_files_are_read(run: Run, folder: Path) -> None:
    Path("parts").mkdir()
    for number in range(3):
        MAIL[2 * number:2 * number + 2].write_parquet(f"parts/{number}.parquet")
    for source in ("parts/*.parquet", "parts"):
        run("train", source, "-o", "m.textnb").checked()
        assert Path("m.textnb").read_bytes() == expected_bytes(folder)


def test_a_folder_per_class_is_read_in_its_encoding(run: Run, folder: Path) -> None:
    for name, text in (("ham", "déjeuner ami"), ("spam", "gratuité")):
        Path("mail", name).mkdir(parents=True)
        Path("mail", name, "1.txt").write_bytes(text.encode("latin-1"))
    ran = run("train", "mail", "-o", "m.textnb").checked(1)
    assert "mail/ham/1.txt" in ran.err
    assert "byte 0xe9 at offset 1 is not utf-8" in ran.err
    run("train", "mail", "-o", "m.textnb", "--read", "encoding=latin-1").checked()
    assert textnb.load("m.textnb").vocabulary_ == ["ami", "déjeuner", "gratuité"]


# Bad usage


@pytest.mark.parametrize(("options", "told"), [
    (["--model", "svm"], r"--model: unknown value 'svm'; choose one of multinomial, b"),
    (["--model", "multinomal"], r"did you mean 'multinomial'\?"),
    (["--l", "-1"], r"\bl must be a finite number >= 0.*got -1"),
    (["--l", "nan"], r"\bl must be a finite number >= 0.*got nan"),
    (["--l", "inf"], r"\bl must be a finite number >= 0.*got inf"),
    (["--l", "many"], r"--l must be a number, or auto; got 'many'"),
    (["--l", "auto", "--model", "nblr"], r"--l must be .* \(multinomial, bernoulli and comp"),
    (["--l", "auto", "--model", "complement", "--set", "norm=true"], r"or --set norm=false"),
    (["--ngrams", "x"], r"--ngrams must be.*got 'x'"),
    (["--ngrams", "2"], r"--ngrams must be.*got '2'"),
    (["--ngrams", "1,2,3"], r"--ngrams must be.*got '1,2,3'"),
    (["--ngrams", ""], r"--ngrams must be.*got ''"),
    (["--ngrams", "2,1"], r"ngram.* must be.*1 <= min_n <= max_n.*got \(2, 1\)"),
    (["--ngrams", "0,1"], r"ngram.* must be.*1 <= min_n.*got \(0, 1\)"),
    (["--ngrams", "1,999999999"], r"ngram.* must be"),
    (["--analyzer", "words"], r"analyzer: unknown value 'words' - did you mean 'word'\?"),
    (["--set", "pattern=("], r"pattern '\('"),
    (["--set", "pattern=a*"], r"pattern 'a\*' matches the empty string"),
    (["--set", "pattern=(a)(b)"], r"pattern .* has a capturing group"),
    (["--set", "pattern=a", "--set", "sklearn=true"],
     r"--set sklearn does not go with --set pattern"),
    (["--set", "normalize=nfkc"], r"normalize: unknown value 'nfkc'"),
    (["--set", "strip_accents=all"], r"--set strip_accents: unknown value 'all'"),
    *((["--set", f"{name}=1"], rf"--set {name}: it is an option of its own, {option}")
      for name, option in (("l", "--l"), ("ngrams", "--ngrams"), ("ngram_range", "--ngrams"))),
    (["--min-df", "few"], r"--min-df must be a count \(2\) or a share.*got 'few'"),
    (["--min-df", "0"], r"--min-df must be a count \(int >= 1\).*got 0"),
    (["--min-df", "1.5"], r"--min-df must be .*got 1\.5"),
    (["--min-df", "nan"], r"--min-df must be .*got nan"),
    (["--set", "max_df=all"], r"--set max_df.* must be .*got 'all'"),
    (["--set", "max_df=-1"], r"--set max_df.* must be .*got -1"),
    (["--min-df", "5", "--set", "max_df=2"], r"--set max_df=2 .* is fewer than --min-df 5"),
    (["--max-features", "0"], r"--max-features must be .*got 0"),
    (["--max-features", "all"], r"Invalid value for '--max-features'"),
    (["--set", "norm=true"], "--set norm belongs to --model complement, complement-tfidf; got "
     "--model multinomial"),
    (["--stop-words", "stop.txt", "--analyzer", "char"], r"--stop-words .* needs --analyzer word"),
    (["--read", "format=xlsx"], r"format: unknown value 'xlsx'"),
    (["--where", "colour = 'red'"], r"--where .*colour.*the columns are text, label, split, id"),
    (["--where", "((("], r"--where '\(\(\('"),
    (["--where", ""], r"--where ''"),
    (["--set", "alpha=1"], r"--set alpha"),
    (["--model", "nblinear", "--l", "auto"], r"--l must be a finite number above 0 .*; got 'auto'"),
    (["--model", "complement-tfidf", "--l", "auto"], r"--l must be a finite number >= 0 \(mu"),
    (["--l", "-1"], r"--l must be a finite number >= 0, or 'auto'; got -1"),
    (["--model", "nblinear", "--set", "fit_prior=true"],
    r"--set fit_prior belongs to --model multinomial"),
    (["--set", "class_weight.spma=3"], r"--set class_weight names 'spma'"),
    (["--set", "pattern=("], r"--set pattern '\(' has a capturing group"),
    (["--read", "encoding=foo"], r"--read encoding is for a folder"),
    (["--class-prior", "0.3"], r"--class-prior is a setting that only Python and jobs"),
    (["--text"], r"'--text' requires an argument"),
    (["extra"], r"extra argument"),
])
def test_bad_usage_names_the_option(
    run: Run, mail: Path, options: list[str], told: str
) -> None:
    Path("stop.txt").write_text("at\n")
    ran = run("train", mail, "-o", "m.textnb", *options).checked(2)
    assert ran.out == ""
    assert_told(ran.err, told)
    assert not Path("m.textnb").exists()


def assert_told(err: str, told: str) -> None:
    assert re.search(told, err), err


@pytest.mark.parametrize("args", [
    ["train"], ["train", "mail.parquet"], ["train", "-o", "m.textnb"], ["tran"], ["--colour"]])
def test_missing_and_unknown_words_are_bad_usage(run: Run, mail: Path, args: list[str]) -> None:
    ran = run(*args).checked(2)
    assert ran.out == ""
    assert "Usage" in ran.err
    assert files_in(mail.parent) == ["mail.parquet"]


def test_an_unknown_encoding_is_bad_usage(run: Run, folder: Path) -> None:
    Path("mail/ham").mkdir(parents=True)
    Path("mail/ham/1.txt").write_text("hello")
    ran = run("train", "mail", "-o", "m.textnb", "--read", "encoding=klingon").checked(2)
    assert "encoding must be a codec of Python; got 'klingon'" in ran.err


# Bad data


def error_of(run: Run, *args: object, **settings: Any) -> str:
    ran = run(*args, **settings).checked(1)
    assert ran.out == ""
    line = ran.err.splitlines()[-1]
    assert line.startswith("error: ")
    assert not Path("m.textnb").exists()
    return line.removeprefix("error: ")


def test_a_missing_file_is_named(run: Run, folder: Path) -> None:
    for name in ("absent.parquet", "absent", "no/*.csv"):
        assert f"no such file or folder: '{name}'" in error_of(run, "train", name, "-o", "m.textnb")


def test_a_missing_column_is_named_with_its_neighbour(run: Run, mail: Path) -> None:
    told = error_of(run, "train", mail, "-o", "m.textnb", "--text", "txt")
    assert "no column 'txt' (the text column) - did you mean 'text'?" in told
    told = error_of(run, "train", mail, "-o", "m.textnb", "--label", "lable")
    assert "no column 'lable' (the label column) - did you mean 'label'?" in told


def test_columns_of_a_wrong_type_are_named(run: Run, mail: Path) -> None:
    assert "text column 'id' must be String; it is Int64" in error_of(
        run, "train", mail, "-o", "m.textnb", "--text", "id")
    MAIL.with_columns(label=pl.lit(0.5)).write_parquet("mail.parquet")
    assert "label column 'label' must be" in error_of(run, "train", mail, "-o", "m.textnb")


@pytest.mark.parametrize("format", FORMATS)
def test_a_null_label_is_named_with_its_row(run: Run, folder: Path, format: str) -> None:
    rows = MAIL.with_columns(label=pl.when(pl.col("id") != 15).then("label"))
    Path(f"mail.{format}").write_bytes(written(rows, format))
    told = error_of(run, "train", f"mail.{format}", "-o", "m.textnb")
    assert "label column 'label' is null in row 3 (counted from 0)" in told


def test_rows_that_are_not_utf8_are_named(run: Run, folder: Path) -> None:
    lines = ["text,label", "hello,ham", "déjeuner,ham"]
    Path("mail.csv").write_bytes("\n".join(lines).encode("latin-1"))
    told = error_of(run, "train", "mail.csv", "-o", "m.textnb")
    assert told.startswith("can't read mail.csv: line 3 is not UTF-8 (byte 0xe9 at column 2)")


@pytest.mark.parametrize("name", ["mail.parquet", "mail.ipc", "mail.ndjson", "mail.csv.gz"])
def test_a_damaged_file_is_named(run: Run, folder: Path, name: str) -> None:
    Path(name).write_bytes(b"\x1f\x8b{ this is not what the name says \x00\xff")
    assert name in error_of(run, "train", name, "-o", "m.textnb")


def test_the_damaged_file_of_many_is_named(run: Run, folder: Path) -> None:
    for number in range(3):
        MAIL.write_parquet(f"{number}.parquet")
    whole = Path("1.parquet").read_bytes()
    Path("1.parquet").write_bytes(whole[:40] + bytes(40) + whole[80:])
    assert "can't read 1.parquet: " in error_of(run, "train", "*.parquet", "-o", "m.textnb")


@pytest.mark.parametrize(("content", "told"), [
    ("", "mail.csv"), ("text,label\n", "has no rows"), ("text,label\n,ham\n", "finds no token"),
    ("text,label\na,ham\nb,spam\n", "finds no token in 2 documents")])
def test_nothing_to_learn_from_is_said(run: Run, folder: Path, content: str, told: str) -> None:
    Path("mail.csv").write_text(content)
    assert told in error_of(run, "train", "mail.csv", "-o", "m.textnb")


def test_limits_that_leave_no_term_are_said(run: Run, mail: Path) -> None:
    told = error_of(run, "train", mail, "-o", "m.textnb", "--min-df", "6")
    assert "12 terms were found and none is within --min-df 6" in told


def test_empty_stdin_is_said(run: Run, folder: Path) -> None:
    told = error_of(run, "train", "-", "-o", "m.textnb", input=b"")
    assert told == "can't read standard input: it is empty"


@pytest.mark.parametrize("where", ["id > 1000", "1 = 0"])
def test_a_condition_that_no_row_meets_is_said(run: Run, mail: Path, where: str) -> None:
    assert "leaves no rows" in error_of(run, "train", mail, "-o", "m.textnb", "--where", where)


@pytest.mark.parametrize("where", ["id", "id + 1", "label"])
def test_a_condition_that_is_none_is_bad_usage(run: Run, mail: Path, where: str) -> None:
    ran = run("train", mail, "-o", "m.textnb", "--where", where).checked(2)
    assert f"--where '{where}'" in ran.err


def test_stop_words_that_can_not_be_read_are_named(run: Run, mail: Path) -> None:
    assert "can't read absent.txt" in error_of(
        run, "train", mail, "-o", "m.textnb", "--stop-words", "absent.txt")
    Path("latin.txt").write_bytes("à".encode("latin-1"))
    assert "can't read latin.txt" in error_of(
        run, "train", mail, "-o", "m.textnb", "--stop-words", "latin.txt")


def test_an_output_that_can_not_be_written_is_named(run: Run, mail: Path) -> None:
    ran = run("train", mail, "-o", "absent/m.textnb").checked(1)
    assert re.search("error: can't write '?absent/m.textnb'?: .*(folder|directory)", ran.err)
    ran = run("train", mail, "-o", ".").checked(1)
    assert re.search(r"error: can't write '?\.'?: it is a folder", ran.err)
    assert files_in(mail.parent) == ["mail.parquet"]


def test_a_failure_keeps_the_old_model(run: Run, mail: Path) -> None:
    run("train", mail, "-o", "m.textnb").checked()
    before = Path("m.textnb").read_bytes()
    run("train", mail, "-o", "m.textnb", "--label", "colour").checked(1)
    run("train", mail, "-o", "m.textnb", "--min-df", "6").checked(1)
    assert Path("m.textnb").read_bytes() == before
    assert files_in(mail.parent) == ["m.textnb", "mail.parquet"]


@ONE_CLASS
def test_one_class_is_noted(run: Run, mail: Path) -> None:
    ran = run("train", mail, "-o", "m.textnb", "--where", "label = 'ham'").checked()
    assert "note: only one class, 'ham': every document will be given it" in ran.err.splitlines()
    assert ran.out == ""
    again = run("test", "m.textnb", mail, "--where", "label = 'ham'").checked()
    assert "accuracy 1.0000 (3 of 3)" in again.out
    assert "note: only one class, 'ham'" in again.err


@ONE_CLASS
@pytest.mark.parametrize("label", ["[bold]", "a\nb", "\x1b[31mred", "", "日本", "\0"])
def test_odd_labels_are_learned(run: Run, folder: Path, label: str) -> None:
    MAIL.with_columns(label=pl.lit(label)).write_parquet("mail.parquet")
    ran = run("train", "mail.parquet", "-o", "m.textnb").checked()
    assert f"note: only one class, {label!r}: every document will be given it" in ran.err
    with pytest.warns(UserWarning, match="only one class"):
        assert textnb.load("m.textnb").classes_.tolist() == [label]


def test_a_table_in_csv_keeps_what_is_no_feature(run: Run, folder: Path) -> None:
    Path("t.csv").write_text("id,zip,x1,price,label\n12345678901234567890123,00501,1.0,1.10,01\n"
                             "2,00502,2,3,01\n3,00503,7,3,02\n4,00504, 9 ,3,02\n")
    run("train", "t.csv", "--model", "centroid", "--features", "x1", "-o", "t.textnb").checked()
    run("predict", "t.textnb", "t.csv", "-o", "out.csv").checked()
    assert Path("out.csv").read_text() == (
        "id,zip,x1,price,label,predicted\n12345678901234567890123,00501,1.0,1.10,01,01\n"
        "2,00502,2.0,3,01,01\n3,00503,7.0,3,02,02\n4,00504,9.0,3,02,02\n")
    assert "accuracy 1.0000" in run("test", "t.textnb", "t.csv").checked().out


def test_a_cell_that_is_no_number_is_told(run: Run, folder: Path) -> None:
    Path("t.csv").write_text("x1,x2,flag,label\n1,2,true,a\n2,NA,false,a\n3,4,true,b\n5,1,true,b\n")
    ran = run("train", "t.csv", "--model", "gaussian", "-o", "t.textnb").checked()
    assert "left out, because they do not hold numbers: x2; see --features" in ran.err
    assert "2 features (x1, flag)" in ran.err
    ran = run("train", "t.csv", "--model", "gaussian", "--features", "x1,x2", "-o", "u.textnb")
    assert "'x2' is null in row 1 (counted from 0)" in ran.checked(1).err
    assert "what is no number is null" in ran.err
    assert files_in(folder) == ["t.csv", "t.textnb"]


# Of each verb with rows and an output, what stands between them.
READING: dict[str, list[str]] = {
    "train": [], "tune": [], "mail": ["--output-format", "csv"], "predict": ["m.textnb"],
    "update": ["m.textnb"], "forget": ["m.textnb"], "calibrate": ["m.textnb"],
    "threshold": ["m.textnb", "--class", "spam", "--costs", "10,1"]}


@pytest.mark.parametrize("verb", READING)
def test_an_output_does_not_replace_what_is_read(verb: str, run: Run, mail: Path) -> None:
    run("train", mail, "-o", "m.textnb").checked()
    before, link = mail.read_bytes(), mail.with_name("link.parquet")
    link.symlink_to(mail)
    for output in (mail, link):
        ran = run(verb, *READING[verb], mail, "-o", output).checked(2)
        assert "is also what is read" in ran.err
        assert mail.read_bytes() == before


def test_every_verb_with_an_output_is_tried() -> None:
    with_output = {verb for verb in VERBS if any(
        "--output" in option.opts for option in command_of(verb).params)}
    # These read models alone, and a bundle replaces no file.
    assert with_output == {*READING, "merge", "export"}


def test_a_chosen_pair_is_told(run: Run, folder: Path) -> None:
    rows = [(x + k * 3, (x * 7) % 5, "ab"[k]) for k in range(2) for x in range(10)]
    pl.DataFrame(rows, schema=["x", "y", "label"], orient="row").write_parquet("t.parquet")
    ran = run("train", "t.parquet", "--model", "rda", "--set", "alpha=0,0.5", "--set",
    "gamma=0.5,1",
              "-o", "t.textnb").checked()
    assert re.search(r"^chosen: alpha 0(\.5)?, gamma (0\.5|1), cross-validated accuracy 0\.\d{4}$",
                     ran.err, flags=re.M)


def test_a_count_agrees_with_its_noun(run: Run, folder: Path) -> None:
    Path("one.csv").write_text("text,label\nhello,a\nhello,b\n")
    ran = run("train", "one.csv", "-o", "m.textnb").checked()
    assert ran.err.splitlines()[-1] == "2 classes, 1 term -> m.textnb"


def test_a_model_is_not_written_to_standard_output(run: Run, mail: Path, folder: Path) -> None:
    ran = run("train", mail, "-o", "-").checked(1)
    assert "name a file" in ran.err
    assert not (folder / "-").exists()
    assert "use -" not in run("train", mail, "-o", "/dev/null").checked(1).err
