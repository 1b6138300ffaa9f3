"""What is compared: a class for each library, with its settings, and the tasks it takes part in.

    python -m benchmarks.sides SIDE TASK TRAIN TEST FOLDER [FEW] [TIMES]

is one measured process. Its whole time counts for the tasks `train`, `predict` and `job` (read
Parquet, learn, answer, write Parquet); the tasks from memory take their own time, and print it as
JSON. textnb's `train`, `predict`, `filter` and `update` are its commands themselves; its `job` is
`textnb train` and then `textnb predict`, and `textnb, in Python` is a script of a TextClassifier.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WHOLE = ("train", "predict", "job", "job 1,2")
PARTS = ("csr", "csr 1,2", "fit", "predict from memory")
SHORT = ("message", "filter", "filter 1,2", "update")
# What must have run before: it leaves its model in the folder.
NEEDS = {"predict": "train", "filter": "train", "filter 1,2": "train 1,2", "update": "train"}
BASE = "scikit-learn"
MESSAGES, WARM_MESSAGES = 2000, 100
# CountVectorizer's tokens.
PATTERN = r"[\p{L}\p{N}_]{2,}"


class Counts:
    """scikit-learn: CountVectorizer and MultinomialNB."""

    def __init__(self, words: int, folder: Path):
        self.words, self.folder = words, folder
        self.vectorizer, self.model = self.make()

    def make(self) -> tuple[Any, Any]:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB

        return CountVectorizer(ngram_range=(1, self.words)), MultinomialNB()

    def rows(self, frame: Any) -> Any:
        """What `fit` and `predict` take; made before the clock of a task from memory starts."""
        return frame["text"].to_list(), frame["label"].to_list()

    def count(self, rows: Any) -> dict[str, int]:
        counts = self.vectorizer.fit_transform(rows[0])
        return {"entries": int(counts.nnz), "terms": int(counts.shape[1])}

    def fit(self, rows: Any) -> None:
        self.model.fit(self.vectorizer.fit_transform(rows[0]), rows[1])

    def predict(self, rows: Any) -> Any:
        return self.model.predict(self.vectorizer.transform(rows[0]))

    def answer(self, message: str) -> Any:
        return self.predict(([message],))[0]

    def save(self) -> None:
        (self.folder / "model.pickle").write_bytes(pickle.dumps((self.vectorizer, self.model)))

    def load(self) -> None:
        self.vectorizer, self.model = pickle.loads((self.folder / "model.pickle").read_bytes())

    def job(self, train: str, test: str) -> None:
        self.train(train)
        self.answers(test)

    def train(self, train: str) -> None:
        import polars as pl

        self.fit(self.rows(pl.read_parquet(train)))

    def answers(self, test: str) -> None:
        import polars as pl

        frame = pl.read_parquet(test)
        frame.with_columns(predicted=pl.Series(self.predict(self.rows(frame)))).write_parquet(
            self.folder / "answers.parquet")


class Hashed(Counts):
    """scikit-learn: HashingVectorizer with the settings that make counts of it."""

    def make(self) -> tuple[Any, Any]:
        from sklearn.feature_extraction.text import HashingVectorizer
        from sklearn.naive_bayes import MultinomialNB

        return HashingVectorizer(alternate_sign=False, norm=None,
                                 ngram_range=(1, self.words)), MultinomialNB()


class Vectors(Counts):
    """scikit-learn: TfidfVectorizer and LinearSVC."""

    def make(self) -> tuple[Any, Any]:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.svm import LinearSVC

        return TfidfVectorizer(ngram_range=(1, self.words), sublinear_tf=True), LinearSVC()


class Textnb(Counts):
    """TextClassifier with CountVectorizer's tokens."""

    options: tuple[str, ...] = ()

    def make(self) -> tuple[Any, Any]:
        import textnb

        tokenizer = textnb.Tokenizer.sklearn(ngram_range=(1, self.words))
        return tokenizer, textnb.TextClassifier(textnb.MultinomialNB(),
                                                tokenizer=tokenizer)

    def rows(self, frame: Any) -> Any:
        return frame

    def count(self, rows: Any) -> dict[str, int]:
        from textnb.frames.batches import batches
        from textnb.text.matrix import count_matrix

        counts, terms = count_matrix(batches(rows, ["text"]), self.vectorizer, "text")
        return {"entries": int(counts.nnz), "terms": len(terms)}

    def fit(self, rows: Any) -> None:
        self.model.fit(rows)

    def predict(self, rows: Any) -> Any:
        return self.model.predict(rows)["predicted"].to_numpy()

    def answer(self, message: str) -> Any:
        return self.model.predict([message])[0]

    def job(self, train: str, test: str) -> None:
        import polars as pl

        self.model.fit(pl.scan_parquet(train))
        self.model.predict(pl.scan_parquet(test)).sink_parquet(self.folder / "answers.parquet")

    @classmethod
    def command(cls, task: str, words: int, train: str, test: str, folder: Path) -> list[str]:
        """The command line of a task, if it is one of textnb's commands, or two of them."""
        if task == "job":
            both = [cls.command(one, words, train, test, folder) for one in ("train", "predict")]
            return ["sh", "-c", " && ".join(map(shlex.join, both))]
        model, answers = str(folder / "model.textnb"), str(folder / "answers.parquet")
        program = str(Path(sys.executable).with_name("textnb"))
        arguments = {
            "train": ["train", train, "-o", model, "--set", "sklearn=true", "--ngrams",
                      f"1,{words}", "--quiet", *cls.options],
            "predict": ["predict", model, test, "-o", answers, "--quiet"],
            "filter": ["filter", model, "--spam-class", "{label}"],
            "update": ["update", model, str(folder.parent / "message.eml"), "--as", "{label}", "-o",
                       str(folder / "updated.textnb"), "--quiet"]}.get(task)
        return [program, *arguments] if arguments else []


class Script(Textnb):
    """A script that imports textnb, and so scikit-learn."""

    command = None


class Ratio(Textnb):
    """NBLogisticRegression, with the same tokens."""

    options = ("--model", "nblr")


class Linear(Textnb):
    """NBLinear, with the same tokens."""

    options = ("--model", "nblinear")


class Command(Counts):
    """A peer that is a command: it reads files of its own format, which Polars writes.

    Writing them is a part of its time, as it is for everybody who has a table; `command_seconds`
    is that of the commands alone. Training rows are shuffled, as online learners need it.
    """

    command_seconds = 0.0

    def make(self) -> tuple[Any, Any]:
        return None, None

    def rows(self, frame: Any) -> Any:
        return frame

    def run(self, *command: str | Path, read: Path | None = None) -> str:
        """What the command writes to stdout."""
        started = time.perf_counter()
        with Path(read or os.devnull).open() as source:
            ran = subprocess.run([str(word) for word in command], stdin=source, check=False,
                                 capture_output=True, text=True)
        self.command_seconds += time.perf_counter() - started
        if ran.returncode:
            raise RuntimeError(f"{command[0]} ended with {ran.returncode}: {ran.stderr}")
        return ran.stdout

    def numbered(self, frame: Any) -> Any:
        """Training rows, shuffled, with the class as a number from 1."""
        import polars as pl

        self.labels = frame["label"].unique().sort().to_list()
        numbers = pl.Series(range(1, len(self.labels) + 1))
        return frame.sample(fraction=1, shuffle=True, seed=0).select(
            "text", number=pl.col("label").replace_strict(pl.Series(self.labels), numbers))

    def lines(self, name: str, frame: Any, form: str, *columns: str) -> Path:
        """A file with a line for each row; tokens hold no line ends."""
        import polars as pl

        words = pl.col("text").str.to_lowercase().str.extract_all(PATTERN).list.join(" ")
        line = pl.format(form, *columns, words)
        frame.select(line).write_csv(self.folder / name, include_header=False, quote_style="never")
        return self.folder / name

    def names(self, numbers: list[int], rows: Any) -> list[Any]:
        if len(numbers) != rows.height:
            raise RuntimeError(f"{len(numbers):,} answers to {rows.height:,} texts")
        return [self.labels[number - 1] for number in numbers]

    def save(self) -> None:
        (self.folder / "labels.json").write_text(json.dumps(self.labels))

    def load(self) -> None:
        self.labels = json.loads((self.folder / "labels.json").read_text())


class FastText(Command):
    """Five epochs, ten dimensions, all cores. Of the rates .1, .5 and 1, .5 is best on IMDB."""

    def fit(self, rows: Any) -> None:
        learned = self.lines("train.txt", self.numbered(rows), "__label__{} {}", "number")
        self.run("fasttext", "supervised", "-input", learned, "-output", self.folder / "model",
                 "-epoch", "5", "-dim", "10", "-lr", "0.5", "-wordNgrams", str(self.words),
                 "-thread", str(len(os.sched_getaffinity(0))), "-verbose", "0")

    def predict(self, rows: Any) -> list[Any]:
        asked = self.lines("test.txt", rows, "{}")
        answered = self.run("fasttext", "predict", self.folder / "model.bin", asked)
        numbers = [int(line.removeprefix("__label__") or 1) for line in answered.splitlines()]
        return self.names(numbers, rows)

    def answer(self, message: str) -> Any:
        """Through a pipe to a process that holds the model."""
        if not hasattr(self, "pipe"):
            self.pipe: Any = subprocess.Popen(
                ["fasttext", "predict", self.folder / "model.bin", "-"], text=True, bufsize=1,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # fastText answers nothing to a line without words.
        self.pipe.stdin.write((" ".join(re.findall(r"\w\w+", message.lower())) or "none") + "\n")
        return self.labels[int(self.pipe.stdout.readline().removeprefix("__label__")) - 1]


class VowpalWabbit(Command):
    """One pass, logistic loss, one class against the rest where there are more than two."""

    def fit(self, rows: Any) -> None:
        import polars as pl

        numbered, several = self.numbered(rows), len(self.labels) > 2
        if not several:
            numbered = numbered.with_columns(number=2 * pl.col("number") - 3)
        learned = self.lines("train.vw", numbered, "{} | {}", "number")
        self.vw("-d", learned, "-f", self.folder / "model.vw", "-b", "22", "--loss_function",
                "logistic", *(["--oaa", str(len(self.labels))] if several else []),
                *(["--ngram", "2"] if self.words == 2 else []))

    def predict(self, rows: Any) -> list[Any]:
        asked, answers = self.lines("test.vw", rows, "| {}"), self.folder / "answers.txt"
        self.vw("-d", asked, "-t", "-i", self.folder / "model.vw", "-p", answers)
        values = [float(line) for line in answers.read_text().splitlines()]
        several = len(self.labels) > 2
        return self.names([int(value) if several else 1 + (value > 0) for value in values], rows)

    def vw(self, *arguments: str | Path) -> None:
        """The command; without it, the library of its Python package, which starts as fast."""
        library = ("import pylibvw, sys; vw = pylibvw.vw(sys.argv[1:]); vw.run_parser(); "
                   "vw.finish()")
        program = [shutil.which("vw")] if shutil.which("vw") else [sys.executable, "-c", library]
        self.run(*program, *arguments, "--quiet")


class Bogofilter(Command):
    """Its defaults; the last class is its spam, and is answered above 0.5."""

    def fit(self, rows: Any) -> None:
        import polars as pl

        self.labels = rows["label"].unique().sort().to_list()
        for label, option in zip(self.labels, ("-n", "-s"), strict=True):
            self.run("bogofilter", "-d", self.folder, "-M", option,
                     read=self.messages(rows.filter(pl.col("label") == label)))

    def predict(self, rows: Any) -> list[Any]:
        answered = self.run("bogofilter", "-d", self.folder, "-M", "-TT", "-e",
                            read=self.messages(rows))
        return self.names([1 + (float(line) > 0.5) for line in answered.splitlines()], rows)

    def messages(self, rows: Any) -> Path:
        """An mbox file of messages without headers."""
        import polars as pl

        quoted = pl.col("text").str.replace_all("(?m)^(>*From )", ">$1")
        rows.select(pl.format("From a@b Thu Jan  1 00:00:00 2026\n\n{}\n", quoted)).write_csv(
            self.folder / "mbox", include_header=False, quote_style="never")
        return self.folder / "mbox"

    @classmethod
    def command(cls, task: str, words: int, train: str, test: str, folder: Path) -> list[str]:
        options = {"filter": [], "update": ["-s"]}.get(task)
        return [] if options is None else ["bogofilter", "-d", str(folder), *options]


@dataclass(frozen=True)
class Side:
    name: str
    kind: type[Counts]
    tasks: tuple[str, ...]
    needs: str = ""              # the program or module that it is
    how: str = ""                # to install it
    same_counts: bool = False    # as the base has them: all that is found must be equal
    two_classes: bool = False
    random: bool = False         # threads or chance decide the answers
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def present(self) -> bool:
        return not self.needs or bool(shutil.which(self.needs) or find_spec(self.needs))

    def command(self, task: str, train: str, test: str, folder: Path, *more: str) -> list[str]:
        """The command line of one measured process."""
        own = getattr(self.kind, "command", None)
        plain = task.removesuffix(" 1,2")
        return (own and own(plain, words_of(task), train, test, folder)) or [
            sys.executable, "-m", "benchmarks.sides", self.name, task, train, test, str(folder),
            *more]


SIDES = {side.name: side for side in (
    Side(BASE, Counts, (*WHOLE, *PARTS, "message"), same_counts=True),
    Side("scikit-learn, tf-idf, LinearSVC", Vectors, WHOLE),
    Side("scikit-learn, hashing", Hashed, ("fit", "predict from memory")),
    Side("textnb", Textnb, (*WHOLE, *PARTS, *SHORT), same_counts=True),
    Side("textnb, kernel off", Textnb, (*PARTS, "message"), same_counts=True,
         environment={"TEXTNB_KERNEL": "off"}),
    Side("textnb, in Python", Script, ("job", "job 1,2"), same_counts=True),
    Side("textnb, NBLogisticRegression", Ratio, ("job", "job 1,2"), random=True),
    Side("textnb, NBLinear", Linear, ("job", "job 1,2")),
    Side("fastText", FastText, (*WHOLE, "message"), "fasttext", "apt-get install fasttext",
         random=True),
    Side("Vowpal Wabbit", VowpalWabbit, WHOLE, "pylibvw" if not shutil.which("vw") else "vw",
         "pip install vowpalwabbit"),
    Side("bogofilter", Bogofilter, ("train", "predict", "job", "filter", "update"), "bogofilter",
         "apt-get install bogofilter", two_classes=True),
)}


def words_of(task: str) -> int:
    return 2 if task.endswith(" 1,2") else 1


def main(
    name: str, task: str, train: str, test: str, folder: str, few: str = "", times: str = "1",
) -> None:
    side = SIDES[name].kind(words_of(task), Path(folder))
    if task in PARTS or task == "message":
        print(json.dumps(from_memory(side, task, train, test, few, int(times))))
        return
    plain = task.removesuffix(" 1,2")
    if plain == "train":
        side.train(train)
        side.save()
    elif plain == "predict":
        side.load()
        side.answers(test)
    else:
        side.job(train, test)
    if isinstance(side, Command):
        print(json.dumps({"command_seconds": side.command_seconds}))


def from_memory(
    side: Counts, task: str, train: str, test: str, few: str, times: int
) -> dict[str, Any]:
    """Seconds of one task after a first use on FEW; the peak of memory during it."""
    import polars as pl

    from benchmarks.process import forget_peak, status

    if few and not isinstance(side, Command):
        first = type(side)(side.words, side.folder)
        rows = first.rows(pl.read_parquet(few))
        if task.startswith("csr"):
            first.count(rows)
        first.fit(rows)
        first.predict(rows)
    learned = side.rows(pl.read_parquet(train))
    if task in ("predict from memory", "message"):
        side.fit(learned)
        del learned
        frame = pl.read_parquet(test)
        rows = side.rows(frame)
    if task == "message":
        return messages(side, frame["text"].head(MESSAGES + WARM_MESSAGES).to_list())
    forget_peak()
    started = time.perf_counter()
    for _ in range(times):
        if task.startswith("csr"):
            check: dict[str, Any] = side.count(learned)
        elif task == "fit":
            side.fit(learned)
        else:
            predicted = side.predict(rows)
    seconds = time.perf_counter() - started
    peak = status("self", "VmHWM")
    if task == "fit":
        check = {}
    elif task == "predict from memory":
        check = {"accuracy": share_right(pl.Series(predicted), frame["label"])}
    return {"seconds": seconds, "peak_mib": peak, "check": check}


def share_right(predicted: Any, truth: Any) -> float:
    return float(round((predicted == truth).to_numpy().mean(), 6))


def messages(side: Counts, texts: list[str]) -> dict[str, Any]:
    """One text at a time: the median."""
    seconds = []
    for text in texts:
        started = time.perf_counter()
        side.answer(text)
        seconds.append(time.perf_counter() - started)
    kept = seconds[WARM_MESSAGES if len(seconds) > WARM_MESSAGES else 0:]
    return {"seconds": statistics.median(kept), "per_second": len(kept) / sum(kept)}


if __name__ == "__main__":
    main(*sys.argv[1:])
