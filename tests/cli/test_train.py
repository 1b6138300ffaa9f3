"""textnb train: documents in, a model file out. Its options are in test_options.py."""

import re
from pathlib import Path

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, assert_same_file, files_in, json_of
from tests.frames.writing import write_files
from tests.messages import spam_messages
from textnb import MultinomialNB, NBLinear, NBLogisticRegression, TextClassifier
from textnb.cli.main import VERBS, command_of
from textnb.learning.memory_limit import memory_size
from textnb.workflow.job import read_job

# The command prints this warning as a note. If warnings were errors, there would be no note.
ONE_CLASS = pytest.mark.filterwarnings("always:only one class:UserWarning")


def test_a_model_is_written_and_the_notes_go_to_stderr(run, mail):
    ran = run("train", mail, "-o", "mail.textnb").checked()
    learned, written, checked, accuracy = ran.err.splitlines()
    assert ran.out == ""
    assert checked.startswith("checked 6 documents in ")
    left_out = textnb.leave_one_out(textnb.load("mail.textnb"), MAIL)
    assert accuracy == (f"leave-one-out accuracy {left_out.accuracy:.4f} (one more pass; "
                        "--no-check leaves it out)")
    ran = run("train", mail, "-o", "mail.textnb", "--no-check").checked()
    assert ran.err.splitlines()[1:] == [written]
    assert learned.startswith("learned from 6 documents in ")
    assert written == "2 classes, 12 terms -> mail.textnb"
    assert files_in(mail.parent) == ["mail.parquet", "mail.textnb"]
    for option in ("-q", "--quiet"):
        ran = run("train", mail, "-o", "mail.textnb", option).checked()
        assert (ran.out, ran.err) == ("", "")
    assert_same_file("mail.textnb", TextClassifier().fit(MAIL))


@pytest.mark.parametrize(("labels", "words", "lines"), [
    (["spam", "ham"], (), ["0.5", "usually more accurate"]),
    # A model that is nearly always right, that was asked for, or that has learned few rows.
    (["spam", "spam"], ("--l", "0.01"), ["1.0"]),
    (["spam", "ham"], ("--model", "bernoulli"), ["0.5"]),
    # What can't be left out in one pass and bounded memory is not checked.
    (["spam", "ham"], ("--max-features", "2"), ["usually"]),
    (["spam", "ham"], ("--model", "nblinear", "--set", "held_out=0"), [])], ids=str)
def test_a_better_model_is_named_where_the_rows_suggest_one(run, folder, labels, words, lines):
    kinds = [labels[row // 2 % 2] if row % 2 else "ham" for row in range(1000)]
    pl.DataFrame({"text": ["aa bb" if row % 2 else "cc dd" for row in range(1000)],
                  "label": kinds, "row": range(1000)}).write_parquet("rows.parquet")
    ran = run("train", "rows.parquet", "-o", "m.textnb", *words).checked()
    assert ran.err.count("leave-one-out accuracy") == sum(line[0].isdigit() for line in lines)
    advice = [line for line in ran.err.splitlines() if "usually more accurate" in line]
    assert len(advice) == sum(line.startswith("us") for line in lines)
    assert max(map(len, advice), default=0) < 80
    ran = run("train", "rows.parquet", "-o", "m.textnb", "--where", "row < 998", *words).checked()
    assert "usually more accurate" not in ran.err


@pytest.mark.parametrize(("words", "why"), [
    (("--model", "nblinear"), "NBLinear learns from all documents at once"),
    (("--model", "complement-tfidf"), "TfidfComplementNB learns"),
    (("--weight", "n"), "sample weights"),
    (("--max-features", "2"), "--max-features ranks terms again"),
    (("--where", "label = 'ham'"), "there is one class")], ids=str)
@ONE_CLASS
def test_a_check_that_was_asked_for_and_is_impossible_says_why(words, why, run, mail):
    MAIL.with_columns(n=pl.lit(2.0)).write_parquet("weighted.parquet")
    command = ("train", "weighted.parquet", "-o", "m.textnb", *words)
    note = "note: not checked by leave-one-out: "
    said, = [line for line in run(*command, "--check").checked().err.splitlines() if note in line]
    assert why in said
    assert note not in run(*command).checked().err


def test_lists_of_labels_are_left_out_on_request(run, folder):
    rows = pl.DataFrame({"text": ["aa", "aa bb", "bb", "bb aa"] * 3,
                         "label": [["a"], ["a", "b"], ["b"], []] * 3})
    rows.write_parquet("lists.parquet")
    command = ("train", "lists.parquet", "-o", "m.textnb")
    assert "leave-one-out" not in run(*command).checked().err
    accuracy = textnb.leave_one_out(textnb.load("m.textnb"), rows).accuracy
    assert f"leave-one-out subset accuracy {accuracy:.4f}" in run(*command, "--check").checked().err


def test_options_of_read_are_used(run, folder):
    Path("rows").write_text("text;label\ngood, film;a\nbad;b\n")
    run("train", "rows", "--read", "format=csv", "--read", "separator=;", "-o", "m.textnb"
        ).checked()
    assert textnb.load("m.textnb").vocabulary_ == ["bad", "film", "good"]
    ran = run("predict", "m.textnb", "-", "--read", "separator=|", input="text|x\ngood|1\n")
    assert '"predicted":"a"' in ran.checked().out
    write_files(Path("mail"), {"ham/1.txt": "déjeuner ami".encode("latin-1"),
                               "spam/1.txt": "gratuité".encode("latin-1")})
    run("train", "mail", "-o", "m.textnb", "--read", "encoding=latin-1").checked()
    assert textnb.load("m.textnb").vocabulary_ == ["ami", "déjeuner", "gratuité"]


# Training reports what it chose


def test_a_chosen_smoothing_parameter_is_reported_and_stored(run, mail):
    model = TextClassifier(MultinomialNB(l="auto")).fit(MAIL)
    chosen = model.estimator_.l_
    ran = run("train", mail, "-o", "auto.textnb", "--l", "auto", "--no-check").checked()
    assert ran.err.splitlines()[-1] == (
        f"2 classes, 12 terms, l = {chosen:g} (chosen by leave-one-out) -> auto.textnb")
    assert_same_file("auto.textnb", model)
    # Two passes over the rows work with standard input too.
    run("train", "-", "-o", "stdin.textnb", "--l", "auto", input=MAIL.write_ndjson()).checked()
    assert Path("stdin.textnb").read_bytes() == Path("auto.textnb").read_bytes()
    card = run("describe", "auto.textnb", "--format", "json").checked().out
    assert f'"chosen": {{"l": {chosen}}}' in card
    run("update", "auto.textnb", mail, "-o", "more.textnb").checked()
    assert textnb.load("more.textnb").estimator_.l_ == chosen
    ran = run("train", mail, "--where", "label = 'ham'", "-o", "ham.textnb", "--l", "auto")
    assert "there is one class: give l as a number" in ran.checked(1).err


def test_steps_of_a_solver_and_a_temperature_are_reported(run, folder):
    rows = spam_messages(300)
    rows.write_parquet("rows.parquet")
    run("train", "rows.parquet", "-o", "r.textnb", "--model", "nblr", "--set", "tol=1").checked()
    model = TextClassifier(NBLogisticRegression(tol=1.0)).fit(rows)
    ran = run("train", "rows.parquet", "-o", "r.textnb", "--model", "nblr", "--set", "tol=1")
    assert f", passes: {model.estimator_.n_iter_} -> r.textnb" in ran.checked().err
    ran = run("train", "rows.parquet", "-o", "l.textnb", "--model", "nblinear").checked()
    model = TextClassifier(NBLinear()).fit(rows)
    n_iter = model.estimator_.n_iter_
    assert f"passes and Newton steps: {n_iter}, calibrated: temperature " in ran.err
    assert re.search(r"\(rows held out by fit, \d+ documents\) -> l.textnb$", ran.err)
    run("train", "rows.parquet", "-o", "warm.textnb", "--model", "nblinear", "--warm-start",
        "l.textnb").checked()
    assert_same_file("warm.textnb", model.fit(rows, warm_start=True))


def test_the_chosen_alpha_and_gamma_of_rda_are_reported(run, folder):
    rows = [(x + k * 3, (x * 7) % 5, "ab"[k]) for k in range(2) for x in range(10)]
    pl.DataFrame(rows, schema=["x", "y", "label"], orient="row").write_parquet("t.parquet")
    ran = run("train", "t.parquet", "--model", "rda", "--set", "alpha=0,0.5", "--set",
              "gamma=0.5,1", "-o", "t.textnb").checked()
    assert re.search(r"^chosen: alpha 0(\.5)?, gamma (0\.5|1), cross-validated accuracy 0\.\d{4}$",
                     ran.err, flags=re.M)
    assert ran.err.splitlines()[-1] == "2 classes, 2 features (x, y) -> t.textnb"


def test_terms_that_the_memory_limit_drops_are_reported(run, folder):
    words = pl.format("often seen own{} its{}", "i", "i").alias("text")
    rows = pl.DataFrame({"i": range(6000), "label": ["a", "b"] * 3000})
    rows.select(words, "label").write_parquet("wide.parquet")
    ran = run("train", "wide.parquet", "-o", "m.textnb", "--memory-limit", "1M").checked()
    pruned = textnb.load("m.textnb").pruned_
    assert f"terms ({pruned.describe()}) -> m.textnb\n" in ran.err
    card = json_of(run, "describe", "m.textnb")
    assert (card["pruned"], card["limits"]["memory_limit"]) == (pruned.to_dict(), 1 << 20)
    ran = run("update", "m.textnb", "wide.parquet").checked()
    assert f"terms ({textnb.load('m.textnb').pruned_.describe()}) -> m.textnb" in ran.err
    Path("job.toml").write_text(
        'output = "out"\n[input]\ntrain = "wide.parquet"\n[model]\nmemory_limit = "1M"\n')
    assert "left out for the memory limit: " in run("run", "job.toml").checked().err


@pytest.mark.parametrize(("size", "expected"), [
    ("1048576", 1 << 20), ("2m", 2 << 20), ("1.5MiB", 3 << 19), ("3GB", 3 << 30),
    ("2048 k", 2 << 20), ("1e9", None), ("9" * 400 + "G", None), ("9" * 12 + "G", None)])
def test_sizes(size, expected):
    if expected is None:
        with pytest.raises(textnb.ParameterError, match="bytes, such as 500M"):
            memory_size(size)
    else:
        assert memory_size(size) == expected


@pytest.mark.parametrize(("words", "weights", "class_weight"), [
    (["--weight", "w"], "w", None), (["--set", "class_weight.1=3"], None, {1: 3.0}),
    (["--set", 'class_weight."1"=3'], None, {1: 3.0})])
def test_weights_reach_the_model(run, mail, words, weights, class_weight):
    rows = pl.read_parquet(mail).with_row_index("n").select(
        "text", label=pl.col("n") % 2, w=pl.col("n") % 3 + 0.5)
    rows.write_parquet("rows.parquet")
    run("train", "rows.parquet", "-o", "m.textnb", *words).checked()
    model = TextClassifier(MultinomialNB(class_weight=class_weight)).fit(
        rows, sample_weight=weights)
    form = textnb.load("m.textnb").linear_form()
    assert (form.weights == model.linear_form().weights).all()
    if weights:
        assert "sample weights" in run("forget", "m.textnb", "rows.parquet").checked(2).err


@ONE_CLASS
@pytest.mark.parametrize("label", ["ham", "[bold]", "a\nb", "\x1b[31mred", "", "日本", "\0"])
def test_one_class_is_noted(run, folder, label):
    MAIL.with_columns(label=pl.lit(label)).write_parquet("mail.parquet")
    note = f"note: only one class, {label!r}: every document will be given it"
    ran = run("train", "mail.parquet", "-o", "m.textnb").checked()
    assert note in ran.err.splitlines()
    assert ran.out == ""
    ran = run("test", "m.textnb", "mail.parquet").checked()
    assert "accuracy 1.0000 (6 of 6)" in ran.out
    assert note in ran.err


# Feature tables


@pytest.fixture
def cells(folder):
    Path("t.csv").write_text("id,zip,x1,x2,flag,price,label\n12345678901234567890123,00501,1.0,2,"
                             "true,1.10,01\n2,00502,2,NA,false,3,01\n3,00503,7,4,true,3,02\n"
                             "4,00504, 9 ,1,true,3,02\n")


def test_feature_columns_are_chosen_in_their_order(run, cells):
    rows = pl.read_csv("t.csv").with_columns(x1=pl.lit(2.0))
    rows.write_parquet("t.parquet")
    run("train", "t.csv", "--model", "gaussian", "--features", "price,x1", "-o", "m.textnb"
        ).checked()
    model = textnb.load("m.textnb")
    assert model.features_ == ["price", "x1"]
    ran = run("predict", "m.textnb", "t.parquet", "-o", "out.parquet", "--probability", "--scores")
    assert ran.checked().out == ""
    assert pl.read_parquet("out.parquet").equals(model.predict(rows, probability=True, scores=True))


def test_columns_that_are_not_features_are_unchanged_in_csv(run, cells):
    run("train", "t.csv", "--model", "centroid", "--features", "x1", "-o", "t.textnb").checked()
    run("predict", "t.textnb", "t.csv", "-o", "out.csv").checked()
    assert Path("out.csv").read_text() == (
        "id,zip,x1,x2,flag,price,label,predicted\n"
        "12345678901234567890123,00501,1.0,2,true,1.10,01,01\n2,00502,2.0,NA,false,3,01,01\n"
        "3,00503,7.0,4,true,3,02,02\n4,00504,9.0,1,true,3,02,02\n")
    assert "accuracy 1.0000" in run("test", "t.textnb", "t.csv").checked().out


def test_columns_without_numbers_are_reported(run, cells):
    Path("u.csv").write_text("x1,x2,flag,label\n1,2,true,a\n2,NA,false,a\n3,4,true,b\n5,1,true,b\n")
    ran = run("train", "u.csv", "--model", "gaussian", "-o", "t.textnb").checked()
    assert "left out, because they do not hold numbers: x2; see --features" in ran.err
    assert "2 features (x1, flag)" in ran.err
    ran = run("train", "u.csv", "--model", "gaussian", "--features", "x1,x2", "-o", "u.textnb")
    assert "'x2' is null in row 1 (counted from 0)" in ran.checked(1).err
    assert "a value that is not a number is null" in ran.err
    assert files_in(Path()) == ["t.csv", "t.textnb", "u.csv"]


# The verbs that read rows and write a file -> their arguments between the verb and the rows.
WORDS_BEFORE_INPUT = {
    "train": [], "tune": [], "mail": ["--output-format", "csv"], "predict": ["m.textnb"],
    "mistakes": ["m.textnb"], "next": ["m.textnb"], "validate": ["m.textnb"],
    "update": ["m.textnb"], "forget": ["m.textnb"], "calibrate": ["m.textnb"],
    "threshold": ["m.textnb", "--class", "spam", "--costs", "10,1"], "audit": [],
    "relabel": ["--from", "m.textnb"]}


@pytest.mark.parametrize("verb", WORDS_BEFORE_INPUT)
def test_an_output_does_not_replace_what_is_read(verb, run, mail, trained):
    Path("m.textnb").write_bytes(trained.read_bytes())
    before, link = mail.read_bytes(), mail.with_name("link.parquet")
    link.symlink_to(mail)
    for output in (mail, link):
        ran = run(verb, *WORDS_BEFORE_INPUT[verb], mail, "-o", output).checked(2)
        assert "is also what is read" in ran.err
        assert mail.read_bytes() == before


def test_an_output_does_not_replace_a_file_of_a_folder_or_glob(run, folder):
    rows = pl.DataFrame({"text": ["aa", "bb"], "label": ["x", "y"]})
    for path in ("rows/1.csv", "rows/sub/2.csv", "mail/ham/1.eml", "mail/spam/1.eml",
                 "mixed/1.eml", "mixed/sub/2.eml"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        rows.write_csv(path)
    before = Path("rows/1.csv").read_bytes()
    for source, output in (("rows", "rows/1.csv"), ("rows/*", "rows/1.csv"),
                           ("**/*.csv", "rows/sub/2.csv"), ("mail", "mail/ham/1.eml"),
                           ("mixed", "mixed/sub/2.eml")):
        assert "is also what is read" in run("train", source, "-o", output).checked(2).err
    assert Path("rows/1.csv").read_bytes() == before
    # Folders beside files, and hidden files, are not read.
    for output in ("rows/sub/2.csv", "rows/.model"):
        Path(output).touch()
        run("train", "rows", "-o", output).checked()


def test_an_input_is_not_named_twice_by_its_folder_or_a_glob(run, folder, trained):
    for path in ("mail/a.eml", "mail/b.eml"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_bytes(b"Subject: offer\n\nfree")
    Path("link.eml").symlink_to("mail/a.eml")
    for first, second in (("mail", "mail/a.eml"), ("mail/b.eml", "*/*.eml"), ("mail", "link.eml")):
        ran = run("update", trained, first, second, "--as", "spam").checked(2)
        assert "is named twice, and its rows would count twice" in ran.err


def test_every_verb_with_an_output_is_tried():
    with_output = {verb for verb in VERBS if any(
        "--output" in option.opts for option in command_of(verb).params)}
    # merge and export read only models, and an export never replaces a model file.
    assert with_output == {*WORDS_BEFORE_INPUT, "merge", "export"}


def test_words_of_rows_without_labels_get_weights_by_their_parts(run, folder):
    rows = pl.DataFrame({"text": ["a deposit", "my deposit", "a card", "my card"],
                         "label": ["money", "money", "card", "card"]})
    new = ["depositors", "cardboard", "other"]
    rows.write_csv("rows.csv")
    pl.DataFrame({"text": new}).write_parquet("new.parquet")
    model = TextClassifier(NBLinear()).fit(rows, unlabelled=new)
    ran = run("train", "rows.csv", "--model", "nblinear", "--unlabelled", "new.parquet", "-o",
              "m.textnb").checked()
    assert "10 terms, 2 that no labelled row holds" in ran.err
    assert_same_file("m.textnb", model)
    (folder / "job.toml").write_text(
        'output = "out"\n[input]\ntrain = "rows.csv"\n[model]\nkind = "nblinear"\n'
        'unlabelled = "new.parquet"\n', "utf-8")
    run("run", "job.toml").checked()
    assert "depositors" in textnb.load("out/model.textnb").vocabulary_
    refused = run("train", "rows.csv", "--model", "nblinear", "--unlabelled", "new.parquet", "-o",
                  "new.parquet").checked(2)
    assert "is also what is read" in refused.err
    refused = run("run", "job.toml", "--check", "--set", "model.unlabelled=nowhere.csv").checked(2)
    assert "nowhere.csv" in refused.err


def test_vectors_are_those_that_python_takes(run, folder):
    rows = pl.DataFrame({"text": ["hockey puck", "hockey today", "the bank", "a bank loan"],
                         "label": ["sport", "sport", "money", "money"]})
    rows.write_csv("rows.csv")
    pl.DataFrame({"term": ["hockey", "skate", "bank", "credit"],
                  "vector": [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.2, 1.0]]}
                 ).write_parquet("v.parquet")
    run("train", "rows.csv", "--model", "nblinear", "--vectors", "v.parquet", "--lexicon", "3",
        "--set", "vector_weight=0.5", "-o", "m.textnb").checked()
    assert_same_file("m.textnb", TextClassifier(
        NBLinear(), vectors="v.parquet", vector_weight=0.5, lexicon=3).fit(rows))
    # A path is relative to the job's file; the name of a package is no path.
    (folder / "jobs").mkdir()
    (folder / "jobs" / "job.toml").write_text(
        'output = "out"\n[input]\ntrain = "../rows.csv"\n[model]\nkind = "nblinear"\n'
        'vectors = "../v.parquet"\n', "utf-8")
    run("run", "jobs/job.toml").checked()
    assert "skate" in textnb.load("jobs/out/model.textnb").vocabulary_
    job = read_job("jobs/job.toml", ["model.vectors=wordllama"])
    assert job.model.limits.vectors == "wordllama"
