"""textnb tune: the command that it prints makes the model again."""

import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import finished, start
from tests.cli.test_mail_recipe import write_box
from tests.selection.rows import LISTS, ROWS, THREE_IN_A_ROW
from textnb import load
from textnb.cli.tune import _command
from textnb.learning.parameters import SHORT_WORDS
from textnb.learning.settings import MAIL_OPTIONS
from textnb.selection.candidates import first_candidates


@pytest.fixture
def tune(run, folder):
    """Tune rows, which stand in a file, and give the commands that are printed."""
    ROWS.write_parquet("rows.parquet")
    return lambda source, *options: run("tune", source, *options)


@pytest.fixture
def repeated(run):
    """Run the commands that were printed, with another name for the model."""

    def repeat(out, name):
        commands = [line for line in out.splitlines() if line.startswith("textnb ")]
        for command in commands:
            run(*shlex.split(command.replace(name, "made.textnb"))[1:]).checked()
        return len(commands)

    return repeat


def test_the_command_makes_the_same_model_and_prints_how(tune, repeated):
    ran = tune("rows.parquet", "--trials", 12, "--table", "trials.parquet", "-o",
               "best.textnb").checked()
    *trials, written = ran.err.splitlines()
    assert (len(trials), written) == (12, "2 classes, 60 terms -> best.textnb")
    assert tune("rows.parquet", "--trials", 12, "--format", "json", "-q", "-o",
                "again.textnb").checked().err == ""
    assert Path("best.textnb").read_bytes() == Path("again.textnb").read_bytes()
    table = pl.read_parquet("trials.parquet")
    assert table.height == 12
    assert table["best"][0]
    # The best first, each with its number in the order of the search.
    assert table.select("documents", "value").equals(
        table.select("documents", "value").sort("documents", "value", descending=True))
    assert table["trial"].sort().to_list() == [*range(1, 13)]
    # The command that is shown trains the same weights; a temperature is textnb calibrate's.
    repeated(ran.out, "best.textnb")
    best, made = load("best.textnb"), load("made.textnb")
    assert np.array_equal(best.linear_form().weights, made.linear_form().weights)


def test_the_command_reads_as_the_search_did(tune, repeated):
    ROWS.rename({"label": "the label"}).write_csv("rows.csv", separator=";")
    ran = tune("rows.csv", "--read", "separator=;", "--label", "the label", "--where",
               "author <> 'author 3'", "--read", "on_unreadable=skip", "--trials", 1, "-q", "-o",
               "m.textnb").checked()
    assert repeated(ran.out, "m.textnb") == 1
    assert Path("made.textnb").read_bytes() == Path("m.textnb").read_bytes()


def test_the_printed_commands_make_the_model_of_lists_and_its_thresholds(tune, repeated):
    LISTS.with_columns(pl.col("label").list.join(",")).rename({"label": "topics"}).write_csv(
        "rows.csv")
    words = ["rows.csv", "--label", "topics", "--read", "label_separator=,", "--trials"]
    ran = tune(*words, 3, "--metric", "macro-f1", "-o", "tuned.textnb").checked()
    assert repeated(ran.out, "tuned.textnb") == 2
    tuned, made, texts = load("tuned.textnb"), load("made.textnb"), LISTS["text"].to_list()
    assert made.decision_.thresholds == tuned.decision_.thresholds
    # What the command says is what it does.
    assert "--scored folds" in ran.out
    assert made.predict(texts) == tuned.predict(texts)
    ran = tune(*words, 1, "--groups", "author", "-o", "grouped.textnb").checked()
    assert "textnb threshold" not in ran.out
    assert "groups='author'" in ran.out


def test_options_that_are_repeated_are_quoted_repeated(tune, repeated):
    ROWS.with_columns(pl.col("label").str.replace("^", "a"), title=pl.col("text"),
                      **{"the label": pl.col("label")}).write_csv("rows.csv")
    names = sorted(ROWS["label"].unique())
    ran = tune("rows.csv", "--text", "title", "--text", "text", "--classes", f"x=a{names[0]}*,none",
               "--classes", f"y=a{names[1]}", "--trials", 1, "-q", "-o", "m.textnb").checked()
    assert f"--classes 'x=a{names[0]}*,none' --classes y=a{names[1]} --text title" in ran.out
    assert repeated(ran.out, "m.textnb") == 1
    assert Path("made.textnb").read_bytes() == Path("m.textnb").read_bytes()


def test_options_of_several_values_are_quoted_as_they_are_typed():
    chosen = SimpleNamespace(settings=first_candidates(False)[0])
    command = _command(chosen, {
        "storage_options": {"aws_region": "eu-west-1", "a key": True},
        "label_columns": ("corn", "the grain")}, "s3://b/rows.parquet", "m", False)
    values = shlex.split(command)[3:-4]
    assert values == ["--read", "storage_options.aws_region=eu-west-1", "--read",
                      'storage_options."a key"=true', "--read",
                      "label_columns=['corn', 'the grain']"]


def test_mail_is_searched_from_the_default_of_training(run, folder, repeated):
    box = write_box(folder)
    ran = run("tune", box, "--trials", 1, "-o", "m.textnb").checked()
    assert "s: nblinear tf=presence idf=False C=10.0 power=1.0\n'spam' where " in ran.err
    assert all(word in ran.out for word in [*MAIL_OPTIONS.split(), "--false-positives 0.001"])
    assert "tokenizer=Tokenizer(token_columns=('tokens',))" in ran.out
    repeated(ran.out, "m.textnb")
    run("train", box, "-o", "trained.textnb", "--no-check").checked()
    model = Path("m.textnb").read_bytes()
    assert Path("made.textnb").read_bytes() == model == Path("trained.textnb").read_bytes()
    ran = run("tune", box, "--trials", 9, "-o", "m.textnb", "--table", "t.csv").checked()
    assert ("the default of mail" in ran.out, "nblinear with" in ran.out) == (True, False)
    assert pl.read_csv("t.csv")["settings"].str.contains("min_df=2").any()
    ran = run("tune", box, "--text", "subject", "--trials", 1, "-o", "m.textnb").checked()
    assert "note: --text is given, so that no trial is the default of mail" in ran.err
    assert "--text subject --model nblinear -o" in ran.out
    assert "For mail, the default is tokens" in " ".join(run("help", "tune").out.split())


def test_the_command_is_quoted_for_a_shell():
    chosen = SimpleNamespace(settings=first_candidates(False)[4])
    words = ["it's \"all\" $HOME.csv", "m.textnb", "split = 'train'", "the label"]
    command = _command(chosen, {"where": words[2], "label": words[3]}, *words[:2], False)
    shown = subprocess.run(["sh", "-c", command.replace("textnb", "printf '%s\\n'", 1)],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    assert shown == ["train", words[0], "--where", words[2], "--label", words[3], "--model",
                     "nblinear", "--set", f"pattern={SHORT_WORDS.pattern}", "--ngrams", "1,3",
                     "--set", "keep=['punctuation']", "--min-df", "2", "-o", words[1]]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_shows_one_live_line_and_each_new_best(tune, folder):
    ROWS.write_parquet("rows.parquet")
    import pty

    master, slave = pty.openpty()
    process = start("tune", "rows.parquet", "--trials", 5, "-o", "m.textnb", stderr=slave,
                    env={**os.environ, "COLUMNS": "50", "TERM": "xterm"})
    os.close(slave)
    shown = b""
    # Reading fails on Linux once nobody writes any more.
    with suppress(OSError):
        while part := os.read(master, 4096):
            shown += part
    os.close(master)
    assert finished(process).checked().out.startswith("best of 5 trials")
    *lines, _ = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "\n", shown.decode()).split("\n")
    assert max(map(len, lines)) <= 50
    values = [line.split(":")[1].split()[0] for line in lines if line.startswith("trial ")]
    assert values == sorted(set(values))
    assert "trial 1 of 5" in lines[[*map(bool, map(re.compile("trial").match, lines))].index(True)]
    assert any(re.match("[⠁-⣿] tuning", line) for line in lines)


def test_it_says_that_it_ended_early_and_by_how_much_the_best_leads(tune):
    rows = pl.DataFrame({"text": ["aa bb", "cc dd"] * 40, "label": ["x", "y"] * 40})
    rows.write_parquet("easy.parquet")
    shown = tune("easy.parquet", "--trials", 400, "-o", "m.textnb").checked().out
    assert "none was better than nblinear with its defaults\n" in shown
    assert "it ended before 400 trials, as every change of one setting of the best was" in shown
    THREE_IN_A_ROW.write_parquet("orders.parquet")
    shown = tune("orders.parquet", "--trials", 6, "-o", "m.textnb").checked().out
    assert "\ncross-validated, it is better than nblinear with its defaults by 0." in shown


def test_it_says_how_a_timed_search_is_repeated_and_why_the_defaults_stay(tune):
    timed = tune("rows.parquet", "--seconds", 0.001, "-o", "m.textnb").checked().out
    assert "--trials 1 repeats this search" in timed
    random = np.random.default_rng(0)
    ROWS.with_columns(label=pl.Series(random.choice(["x", "y"], ROWS.height))).write_parquet(
        "noise.parquet")
    shown = tune("noise.parquet", "--trials", 16, "-o", "m.textnb", "--table",
                 "trials.parquet").checked().out
    best = pl.read_parquet("trials.parquet")["settings"][0]
    assert f"best of 16 trials: {best}\n" in shown
    assert "which chance can do: the defaults are kept" in shown
    assert "model = TextClassifier(NBLinear()).fit(rows)" in shown


@pytest.mark.parametrize(("file", "read"), [
    ("trials.csv", pl.read_csv), ("trials.NDJSON", pl.read_ndjson), ("trials", pl.read_parquet)])
def test_the_table_is_in_the_format_of_its_ending(tune, file, read):
    tune("rows.parquet", "--trials", 2, "--table", file, "-o", "m.textnb", "-q").checked()
    assert sorted(read(file)["trial"].to_list()) == [1, 2]


@pytest.mark.parametrize(("options", "code", "message"), [
    (["-o", "rows.parquet"], 2, "--output rows.parquet is also what is read"),
    (["-o", "m.textnb", "--table", "rows.parquet"], 2, "--table rows.parquet is also what is read"),
    (["-o", "m.textnb", "--table", "m.textnb"], 2,
     "must be different files; got m.textnb and m.textnb"),
    (["-o", "m.textnb", "--metric", "recall@fpr=0.1"], 2, "name it with --positive"),
    (["-o", "m.textnb", "--groups", "nope"], 1, "'author', 'day'")])
def test_what_the_command_refuses(tune, options, code, message):
    assert message in tune("rows.parquet", *options).checked(code).err
    assert not Path("m.textnb").exists()
