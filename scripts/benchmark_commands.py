"""Peers that are commands: fastText, Vowpal Wabbit, bogofilter.

Each reads a file of its own format. To write that file is part of `fit` and of `predict`, as every
user of the command has to; training rows are shuffled, as the two online learners need. fastText
and Vowpal Wabbit split at blanks: they are given CountVectorizer's tokens, made by Polars.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from benchmark_sides import memory
from numpy.typing import NDArray

TOKENS = (pl.col("text").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}_]{2,}").list.join(" ")
          .fill_null(""))
# How often a command's memory is looked at, in seconds.
LOOK = 0.002


def whole(side: Any, train: pl.LazyFrame, test: pl.LazyFrame, written: Path) -> float:
    """From lazy frames to a file of answers, for a side that takes no lazy frame; the accuracy."""
    side.fit(side.rows(train.select("text", "label").collect()))
    predicted = side.predict(side.rows(test.select("text", "label").collect()))
    # Read again, so that texts are not held twice while they are predicted.
    frame = test.collect().with_columns(predicted=pl.Series(predicted))
    frame.write_parquet(written)
    return float((frame["predicted"] == frame["label"]).mean())


class Command:
    """A model in files of a temporary folder, and the memory of the commands that made it."""

    # Of the largest command, and together with what this process held meanwhile.
    command_mib = peak_mib = 0.0
    classes: pl.Series

    def __init__(self, words: int):
        self.words = words
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)

    def rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame

    def terms(self) -> dict[str, int]:
        return {}

    def job(self, train: pl.LazyFrame, test: pl.LazyFrame, written: Path) -> float:
        return whole(self, train, test, written)

    def run(self, *command: str | Path, read: Path | None = None) -> str:
        """What the command wrote to stdout."""
        held = memory("VmRSS")
        out, err = self.folder / "stdout", self.folder / "stderr"
        with (read or Path(os.devnull)).open() as into, out.open("w") as to, err.open("w") as told:
            process = subprocess.Popen(command, stdin=into, stdout=to, stderr=told)
            while process.poll() is None:
                self.command_mib = max(self.command_mib, memory("VmHWM", process.pid))
                time.sleep(LOOK)
        self.peak_mib = max(self.peak_mib, held + self.command_mib)
        if process.returncode:
            raise RuntimeError(f"{command[0]} ended with {process.returncode}: {err.read_text()}")
        return out.read_text()

    def numbered(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Training rows, shuffled, with the class as a number from 1."""
        self.classes = frame["label"].unique().sort()
        numbers = pl.int_range(1, len(self.classes) + 1, eager=True)
        return frame.sample(fraction=1, shuffle=True, seed=0).select(
            "text", number=pl.col("label").replace_strict(self.classes, numbers))

    def lines(self, name: str, frame: pl.DataFrame, line: pl.Expr) -> Path:
        path = self.folder / name
        # A text is one line: tokens hold no line ends.
        frame.select(line).write_csv(path, include_header=False, quote_style="never")
        return path

    def named(self, numbers: NDArray[np.int64], rows: int) -> NDArray[Any]:
        """Labels of the numbers that a command answered."""
        if len(numbers) != rows:
            raise RuntimeError(f"{type(self).__name__} answered {len(numbers):,} of {rows:,} texts")
        return self.classes.to_numpy()[numbers - 1]


class FastText(Command):
    """Five epochs, ten dimensions, all cores. Of the rates 0.1, 0.5 and 1, 0.5 is best on IMDB."""

    def fit(self, rows: pl.DataFrame) -> None:
        line = pl.format("__label__{} {}", "number", TOKENS)
        learned = self.lines("train.txt", self.numbered(rows), line)
        self.run("fasttext", "supervised", "-input", learned, "-output", self.folder / "model",
                 "-epoch", "5", "-dim", "10", "-lr", "0.5", "-wordNgrams", str(self.words),
                 "-thread", str(len(os.sched_getaffinity(0))), "-verbose", "0")

    def predict(self, rows: pl.DataFrame) -> NDArray[Any]:
        asked = self.lines("test.txt", rows, TOKENS)
        answered = self.run("fasttext", "predict", self.folder / "model.bin", asked)
        return self.named(np.array([int(line.removeprefix("__label__"))
                                    for line in answered.splitlines()]), rows.height)

    def answer(self, message: str) -> str:
        """Through a pipe to a process that holds the model."""
        if not hasattr(self, "_pipe"):
            self._pipe = subprocess.Popen(
                ["fasttext", "predict", self.folder / "model.bin", "-"], text=True, bufsize=1,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._pipe.stdin is not None
        assert self._pipe.stdout is not None
        self._pipe.stdin.write(words(message) + "\n")
        number = int(self._pipe.stdout.readline().removeprefix("__label__"))
        return str(self.classes[number - 1])


class VowpalWabbit(Command):
    """One pass, logistic loss, one class against all others where there are more than two."""

    def fit(self, rows: pl.DataFrame) -> None:
        numbered = self.numbered(rows)
        several = len(self.classes) > 2
        if not several:
            numbered = numbered.with_columns(number=2 * pl.col("number") - 3)
        learned = self.lines("train.vw", numbered, pl.format("{} | {}", "number", TOKENS))
        self.vw("-d", learned, "-f", self.folder / "model.vw", "-b", "22", "--loss_function",
                "logistic", *(["--oaa", str(len(self.classes))] if several else []),
                *(["--ngram", "2"] if self.words == 2 else []))

    def predict(self, rows: pl.DataFrame) -> NDArray[Any]:
        asked, answers = self.lines("test.vw", rows, pl.format("| {}", TOKENS)), self.folder / "out"
        self.vw("-d", asked, "-t", "-i", self.folder / "model.vw", "-p", answers)
        values = np.array([float(line) for line in answers.read_text().splitlines()])
        return self.named(self._number(values), rows.height)

    def answer(self, message: str) -> str:
        """In this process: by the Python module alone."""
        if not hasattr(self, "_loaded"):
            from vowpalwabbit import Workspace

            self._loaded = Workspace(f"-t --quiet -i {self.folder / 'model.vw'}")
        value = self._loaded.predict(f"| {words(message)}")
        return str(self.classes[int(self._number(np.array([value]))[0]) - 1])

    def _number(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return (values if len(self.classes) > 2 else 1 + (values > 0)).astype(np.int64)

    def vw(self, *arguments: str | Path) -> None:
        found = shutil.which("vw")
        self.run(*([found] if found else [sys.executable, "-m", "vowpalwabbit"]), *arguments,
                 "--quiet")


class Bogofilter(Command):
    """Its defaults; the second class is its spam, and is answered above 0.5."""

    def fit(self, rows: pl.DataFrame) -> None:
        self.classes = rows["label"].unique().sort()
        for label, option in zip(self.classes, ("-n", "-s"), strict=True):
            self.run("bogofilter", "-d", self.folder, "-M", option,
                     read=self.messages(rows.filter(pl.col("label") == label)))

    def predict(self, rows: pl.DataFrame) -> NDArray[Any]:
        answered = self.run("bogofilter", "-d", self.folder, "-M", "-TT", "-e",
                            read=self.messages(rows))
        scores = np.array([float(line) for line in answered.splitlines()])
        return self.named(1 + (scores > 0.5).astype(np.int64), rows.height)

    def messages(self, rows: pl.DataFrame) -> Path:
        """An mbox file of messages without headers."""
        path = self.folder / "mbox"
        quoted = pl.col("text").fill_null("").str.replace_all("(?m)^(>*From )", ">$1")
        rows.select(pl.format("From a@b Thu Jan  1 00:00:00 2026\n\n{}\n", quoted)).write_csv(
            path, include_header=False, quote_style="never")
        return path


def words(message: str) -> str:
    return " ".join(re.findall(r"\w\w+", message.lower()))
