"""The libraries and programs that are compared, called sides, and their tasks; see sides.toml.

A side is a vectorizer and a model of scikit-learn, a TextClassifier (both as expressions), or a
program. Tasks of a whole process (`train`, `predict`, `job`: read Parquet, fit, predict, write
Parquet; `answers`: the same with probabilities) call `measure`, or are the commands of the side.
Tasks from memory measure only the seconds of the function that does the work.
"""

from __future__ import annotations

import os
import pickle
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.process import Row, calling, status

WHOLE = ("train", "predict", "job", "job 1,2")
PARTS = ("csr", "csr 1,2", "fit", "predict from memory")
SHORT = ("message", "filter", "filter 1,2", "update")
TASKS = (*WHOLE, *PARTS, *SHORT)
BASE = "scikit-learn"
MESSAGES, WARM_MESSAGES = 2000, 100
# Trials of `textnb.tune`.
TRIALS = 40
# CountVectorizer's tokens.
PATTERN = r"[\p{L}\p{N}_]{2,}"


def make(expression: str, words: int = 1) -> Any:
    """Evaluate an expression of scikit-learn or textnb.

    >>> make("sklearn.svm.LinearSVC(C=2)")
    LinearSVC(C=2)
    """
    package = expression.partition(".")[0]
    return eval(expression.replace("WORDS", str(words)), {package: import_module(package)})


def fill(template: str, **values: object) -> list[str]:
    """The words of a command; a value with spaces is one word, a list one word per item."""
    return shlex.split(template.format_map({
        name: shlex.join(map(str, value)) if isinstance(value, list) else shlex.quote(str(value))
        for name, value in values.items()}))


class Texts:
    """A vectorizer and a model of scikit-learn, on lists of texts."""

    def __init__(self, expression: str, words: int, folder: Path):
        self.words, self.folder = words, folder
        self.model: Any = make(expression, words) if expression else None

    def rows(self, frame: Any) -> Any:
        """The arguments of `fit`, of which `predict` uses the first; tasks from memory don't
        measure this."""
        return frame["text"].to_list(), frame["label"].to_list()

    def count(self, rows: Any) -> Row:
        counts = self.model[0].fit_transform(rows[0])
        return {"entries": int(counts.nnz), "terms": int(counts.shape[1])}

    def fit(self, rows: Any) -> None:
        self.model.fit(*rows)

    def predict(self, rows: Any) -> Any:
        return self.model.predict(rows[0])

    def predict_both(self, rows: Any) -> tuple[Any, Any]:
        """Labels (rows,), and probabilities (rows, classes) or None."""
        if not hasattr(self.model, "predict_proba"):
            return self.predict(rows), None
        probabilities = self.model.predict_proba(rows[0])
        return self.model.classes_[probabilities.argmax(1)], probabilities

    def classify(self, message: str) -> Any:
        return self.model.predict([message])[0]

    def save(self) -> None:
        (self.folder / "model.pickle").write_bytes(pickle.dumps(self.model))

    def load(self) -> None:
        self.model = pickle.loads((self.folder / "model.pickle").read_bytes())

    def fit_file(self, train: str) -> None:
        self.fit(self.rows(pl.read_parquet(train)))

    def predict_file(self, test: str) -> None:
        frame = pl.read_parquet(test)
        frame.with_columns(predicted=pl.Series(self.predict(self.rows(frame)))).write_parquet(
            self.folder / "answers.parquet")

    def job(self, train: str, test: str) -> None:
        self.fit_file(train)
        self.predict_file(test)


class OwnTokens(Texts):
    """scikit-learn on textnb's words and pairs of words."""

    def rows(self, frame: Any) -> Any:
        tokens = make("textnb.Tokenizer(ngram_range=(1, 2))").expr("text")
        return frame.select(tokens).to_series().to_list(), frame["label"].to_list()


class Textnb(Texts):
    """A TextClassifier, on frames."""

    def rows(self, frame: Any) -> Any:
        return (frame,)

    def count(self, rows: Any) -> Row:
        from textnb.frames.batches import batches
        from textnb.text.matrix import count_matrix

        counts, terms = count_matrix(batches(rows[0], ["text"]), self.model.tokenizer, "text")
        return {"entries": int(counts.nnz), "terms": len(terms)}

    def predict(self, rows: Any) -> Any:
        return self.model.predict(*rows)["predicted"].to_numpy()

    def job(self, train: str, test: str) -> None:
        self.model.fit(pl.scan_parquet(train))
        self.model.predict(pl.scan_parquet(test)).sink_parquet(self.folder / "answers.parquet")


class Search(Textnb):
    """The search for settings."""

    def fit(self, rows: Any) -> None:
        self.model = make("textnb.tune")(*rows, trials=TRIALS)


class Program(Texts):
    """A program that reads files of its own format, which Polars writes.

    Writing them is a part of its time, because users who have a table need it too;
    `command_seconds` is the time of the commands only. Training rows are shuffled, as online
    learners need it. The labels are -1 and 1, or with more classes 1, 2 and so on. It outputs a
    label, or with two classes a number, above `cut` for the second. `model` is the sorted labels.
    """

    command_seconds = 0.0
    # Formats of the lines of the two files, and templates of the two commands.
    train_line, test_line, train_command, test_command = "", "", "", ""
    cut = 0.0

    def rows(self, frame: Any) -> Any:
        return frame

    def line(self) -> Any:
        """An expression for the text of a line: its tokens, which contain no line ends."""
        return pl.col("text").str.to_lowercase().str.extract_all(PATTERN).list.join(" ")

    def write(self, rows: Any, form: str, *columns: str) -> Path:
        rows.select(pl.format(form, *columns, self.line())).write_csv(
            self.folder / "lines", include_header=False, quote_style="never")
        return self.folder / "lines"

    def run(self, template: str, lines: Path) -> str:
        """Run a command with the lines as stdin, and return its stdout."""
        command = fill(template, lines=lines, folder=self.folder, words=self.words,
                       cores=len(os.sched_getaffinity(0)), vw=VW,
                       classes=["--oaa", len(self.model)] if len(self.model) > 2 else [],
                       pairs=["--ngram", 2] if self.words == 2 else [])
        started = time.perf_counter()
        with lines.open() as source:
            ran = subprocess.run(command, stdin=source, check=False, capture_output=True, text=True)
        self.command_seconds += time.perf_counter() - started
        if ran.returncode:
            raise RuntimeError(f"{command[0]} ended with {ran.returncode}: {ran.stderr}")
        return ran.stdout

    def fit(self, rows: Any) -> None:
        self.model = rows["label"].unique().sort().to_list()
        numbers = [-1, 1] if len(self.model) == 2 else range(1, len(self.model) + 1)
        number = pl.col("label").replace_strict(pl.Series(self.model), pl.Series(numbers))
        self.run(self.train_command, self.write(
            rows.sample(fraction=1, shuffle=True, seed=0).with_columns(number=number),
            self.train_line, "number"))

    def label(self, answer: str) -> Any:
        # fastText writes an empty line for a line without words.
        value = float(answer.removeprefix("__label__") or -1)
        return self.model[value > self.cut if len(self.model) == 2 else max(0, int(value) - 1)]

    def predict(self, rows: Any) -> list[Any]:
        answers = self.run(self.test_command, self.write(rows, self.test_line)).splitlines()
        if len(answers) != rows.height:
            raise RuntimeError(f"{len(answers):,} answers to {rows.height:,} texts")
        return [self.label(answer) for answer in answers]


class FastText(Program):
    """Five epochs, ten dimensions, all cores. Of the rates .1, .5 and 1, .5 is best on IMDB."""

    train_line, test_line = "__label__{} {}", "{}"
    train_command = ("fasttext supervised -input {lines} -output {folder}/model -epoch 5 -dim 10 "
                     "-lr 0.5 -wordNgrams {words} -thread {cores} -verbose 0")
    test_command = "fasttext predict {folder}/model.bin {lines}"

    def classify(self, message: str) -> Any:
        """Send the text through a pipe to a process that has the model in memory."""
        if not hasattr(self, "pipe"):
            self.pipe: Any = subprocess.Popen(
                fill("fasttext predict {folder}/model.bin -", folder=self.folder), text=True,
                bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pipe.stdin.write((" ".join(re.findall(r"\w\w+", message.lower())) or "none") + "\n")
        return self.label(self.pipe.stdout.readline().strip())


class VowpalWabbit(Program):
    """One pass, logistic loss, one class against the rest if there are more than two."""

    train_line, test_line = "{} | {}", "| {}"
    train_command = ("{vw} -d {lines} -f {folder}/model.vw -b 22 --loss_function logistic "
                     "{classes} {pairs} --quiet")
    test_command = "{vw} -d {lines} -t -i {folder}/model.vw -p /dev/stdout --quiet"


# Without the command, the library of its Python package, which starts as fast.
VW = ["vw"] if shutil.which("vw") else [sys.executable, "-c", (
    "import pylibvw, sys; vw = pylibvw.vw(sys.argv[1:]); vw.run_parser(); vw.finish()")]


class Bogofilter(Program):
    """The defaults of the program; the last class is spam, and is predicted above 0.5."""

    # An mbox file of messages without headers.
    test_line, cut = "From a@b Thu Jan  1 00:00:00 2026\n\n{}\n", 0.5
    test_command = "bogofilter -d {folder} -M -TT -e"

    def line(self) -> Any:
        return pl.col("text").str.replace_all("(?m)^(>*From )", ">$1")

    def fit(self, rows: Any) -> None:
        self.model = rows["label"].unique().sort().to_list()
        for label, option in zip(self.model, ("-n", "-s"), strict=True):
            self.run("bogofilter -d {folder} -M " + option,
                     self.write(rows.filter(pl.col("label") == label), self.test_line))


@dataclass(frozen=True)
class Side:
    """An entry of sides.toml, which says what its keys mean."""

    kind: type[Texts]
    tasks: tuple[str, ...]
    model: str = ""
    vectorizer: str = ""
    tokenizer: str = "textnb.Tokenizer"
    options: str | None = None
    commands: Mapping[str, str] = field(default_factory=dict)
    needs: Sequence[str] = ()
    how: str = ""
    same_counts: bool = False
    two_classes: bool = False
    random: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    only: Sequence[str] = ()

    @property
    def present(self) -> bool:
        return not self.needs or any(shutil.which(one) or find_spec(one) for one in self.needs)

    def program(self, task: str, folder: Path) -> Any:
        expression = self.model and (
            f"sklearn.pipeline.make_pipeline(sklearn.feature_extraction.text.{self.vectorizer}, "
            f"sklearn.{self.model})" if self.vectorizer else
            f"textnb.TextClassifier(textnb.{self.model}, "
            + (self.tokenizer and f"tokenizer={self.tokenizer}(ngram_range=(1, WORDS))") + ")")
        return self.kind(expression, 2 if task.endswith(" 1,2") else 1, folder)

    def command(self, task: str) -> str | None:
        """The command of a task; None if a method of `kind` does it."""
        if self.options is None:
            return self.commands.get(task)
        train = ("{textnb} train {train} -o {folder}/model.textnb --set sklearn=true "
                 f"--ngrams 1,{{words}} --quiet {self.options}")
        predict = ("{textnb} predict {folder}/model.textnb {test} -o {folder}/answers.parquet "
                   "--quiet")
        return {"train": train, "predict": predict, "job": f'sh -c "{train} && {predict}"',
                "filter": "{textnb} filter {folder}/model.textnb --spam-class {label}",
                "update": "{textnb} update {folder}/model.textnb {folder}/../message.eml "
                          "--as {label} -o {folder}/updated.textnb --quiet"}.get(task)


def read_sides() -> dict[str, Side]:
    groups = {"whole": WHOLE, "parts": PARTS, "short": SHORT}
    rows = tomllib.loads(Path(__file__).with_name("sides.toml").read_text("utf-8"))
    return {name: Side(**{
        **row, "kind": globals()[row["kind"]],
        "tasks": tuple(one for task in row["tasks"] for one in groups.get(task, (task,)))})
        for name, row in rows.items()}


SIDES = read_sides()
SVMS = [name for name, side in SIDES.items()
        if side.model == "svm.LinearSVC()" and side.tasks == ("answers 1,2",)]
DEFAULT, TUNED = "textnb, NBLinear, defaults", f"textnb, tune, {TRIALS} trials"


def command_of(
    name: str, task: str, train: str, test: str, folder: Path, few: str = "", label: str = ""
) -> list[str]:
    """The command line of one measured process."""
    own = SIDES[name].command(task.removesuffix(" 1,2"))
    if own is None:
        return calling(measure, name, task, train, test, str(folder), few)
    return fill(own, textnb=Path(sys.executable).with_name("textnb"), train=train, test=test,
                folder=folder, label=label, words=2 if task.endswith(" 1,2") else 1)


def measure(
    name: str, task: str, train: str, test: str, folder: str, few: str = ""
) -> Row:
    """One task of one side, in a process of its own."""
    side = SIDES[name].program(task, Path(folder))
    match task.removesuffix(" 1,2"):
        case "train":
            side.fit_file(train)
            side.save()
        case "predict":
            side.load()
            side.predict_file(test)
        case "job":
            side.job(train, test)
        case "answers":
            return answers(side, train, test)
        case _:
            first = SIDES[name].program(task, Path(folder))
            return from_memory(side, first, task, train, test, few)
    return {"command_seconds": side.command_seconds} if isinstance(side, Program) else {}


def answers(side: Texts, train: str, test: str) -> Row:
    """Write labels and probabilities to a file, and return the settings of a search."""
    import numpy as np
    side.fit_file(train)
    predicted, probabilities = side.predict_both(side.rows(pl.read_parquet(test)))
    np.savez(side.folder / "answers.npz", predicted=np.asarray(predicted, str),
             **({} if probabilities is None else {"probabilities": probabilities}))
    return ({"settings": side.model.tuned_.settings.describe()} if isinstance(side, Search)
            else {})


def from_memory(
    side: Texts, first: Texts, task: str, train: str, test: str, few: str
) -> Row:
    """Seconds and peak memory of one task; imports and caches are warmed up on the table FEW."""
    predicts = task in ("message", "predict from memory")
    work = side.predict if predicts else side.fit if task == "fit" else side.count
    if few and not isinstance(side, Program):
        rows = first.rows(pl.read_parquet(few))
        if task.startswith("csr"):
            first.count(rows)
        first.fit(rows)
        first.predict(rows)
    rows = side.rows(pl.read_parquet(train))
    if predicts:
        side.fit(rows)
        frame = pl.read_parquet(test)
        rows = side.rows(frame)
    if task == "message":
        return messages(side, frame["text"].head(MESSAGES + WARM_MESSAGES).to_list())
    # Reset the peak of the resident memory.
    Path("/proc/self/clear_refs").write_text("5")
    started = time.perf_counter()
    result = work(rows)
    seconds, peak = time.perf_counter() - started, status("self", "VmHWM")
    return {"seconds": seconds, "peak_mib": peak, "check": {
        "accuracy": share_right(pl.Series(result), frame["label"])} if predicts else result or {}}


def share_right(predicted: Any, truth: Any) -> float:
    return float(round((predicted == truth).to_numpy().mean(), 6))


def messages(side: Texts, texts: list[str]) -> Row:
    """Classify one text at a time; the median of the seconds."""
    seconds = []
    for text in texts:
        started = time.perf_counter()
        side.classify(text)
        seconds.append(time.perf_counter() - started)
    warm = seconds[WARM_MESSAGES if len(seconds) > WARM_MESSAGES else 0:]
    return {"seconds": statistics.median(warm), "per_second": len(warm) / sum(warm)}
