"""Mail filters on raw mail: the same messages for all, without headers of filters and lists.

Both corpora are split into five stratified folds, and by time: filters learn the first sixth, then
score and learn five blocks, one after the other. The measures of all filters come from the same
functions.

    1-ROCA %        (1 - area under the ROC) x 100, as TREC counts (Cormack and Lynam 2005)
    sm % at .1      spam that is missed if 0.1 % of the ham is classified as spam
    hm %, sm %      ham and spam that are wrong at a cutoff: the threshold that textnb's default
                    chooses as it learns, log-odds 0 for its naive Bayes, 0.99 for bogofilter, 0.5
                    for the probability of SpamAssassin's Bayes

The CPU seconds are those of reading, learning and scoring, in all processes. textnb reads each
message once; the others read it again for each part.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import textnb
from benchmarks.data import stored
from benchmarks.process import Row, cpu_seconds, is_here, note
from benchmarks.speed import Steps
from textnb.evaluation.decisions import scores_at_threshold
from textnb.evaluation.online import measure_online
from textnb.learning.fitting import fit
from textnb.learning.settings import FALSE_POSITIVES
from textnb.scoring.texts import score_batch
from textnb.selection.splits import split

ARCHIVES = {"SpamAssassin": "spamassassin_raw_eml.tar.gz", "CSDMC 2010": "csdmc2010_raw_eml.tar.gz"}
BLOCKS = 6
# A configuration of SpamAssassin that uses only its Bayes, and a program that scores by it.
BAYES = Path(__file__).with_name("spamassassin")
# Headers that other filters and lists have added, up to the next header.
_HEADERS = re.compile(
    rb"^(?:X-[^:\n]*(?:Spam|Virus|Barracuda|Filter|Scan|List|Mailman|BeenThere)[^:\n]*|List-[^:\n]*|"
    rb"Mailing-List|Precedence)[ \t]*:[^\n]*\n(?:[ \t][^\n]*\n)*", re.IGNORECASE | re.MULTILINE)
_SUBJECT_MARK = re.compile(rb"^(Subject:[ \t]*)\[SPAM\][ \t]*", re.IGNORECASE | re.MULTILINE)
# From training and test rows to the scores of the test rows, and the scores minus the cutoff.
Judge = Callable[[Any, Any], tuple[Any, Any]]


def filters(arguments: Any) -> Steps:
    """A step for each corpus, split and filter; `--quick` takes every tenth message."""
    for corpus, archive in ARCHIVES.items():
        root = unpack(stored(archive), arguments.folder, 10 if arguments.quick else 1)
        mail = table(root, "path")
        block, folds = -(-mail.height // BLOCKS), split(mail.lazy(), "label", folds=5).folds
        rows = np.arange(mail.height)
        splits = {"5 folds": [(rows[folds != k], rows[folds == k]) for k in range(5)],
                  "in time order": [(rows[:start], rows[start:start + block])
                                    for start in range(block, mail.height, block)]}
        for how, parts in splits.items():
            for name, (needs, judge) in FILTERS.items():
                at = {"corpus": corpus, "split": how, "filter": name}
                if is_here(arguments, name, not needs or shutil.which(needs.split()[0]),
                           f"apt-get install {needs.split()[-1]}" if needs else ""):
                    yield at, partial(row_of, at, judge, root, mail, parts)


def row_of(
    at: Row, start: Callable[..., Judge], root: Path, mail: pl.DataFrame, parts: list[Any]
) -> list[Row]:
    before = time.process_time() + cpu_seconds()
    result, errors = measure(mail, start(root, mail), parts, at["split"] != "5 folds")
    row = {**at, "messages": len(result.held),
           "1-ROCA %": round(result.roca, 4),
           "interval": [round(bound, 4) for bound in result.roca_interval],
           "sm % at .1": round(result.missed_at_share, 2),
           "sm interval": [round(bound, 2) for bound in result.missed_interval],
           "hm %": round(errors.false_positives, 3), "sm %": round(errors.false_negatives, 2),
           "cpu_seconds": round(time.process_time() + cpu_seconds() - before, 1)}
    note(str(row))
    return [row]


def measure(mail: pl.DataFrame, judge: Judge, parts: list[Any], grows: bool) -> tuple[Any, Any]:
    """Measures of the ranks, and of the errors at the cutoffs.

    Messages are ranked by their scores. If models grow from part to part, their scores are not
    comparable, so their thresholds are subtracted, as in `textnb.validate_online`.
    """
    scores, above = zip(*(judge(*part) for part in parts), strict=True)
    actual = (mail["label"] == "spam").to_numpy().astype(np.int64)
    actual = actual[np.concatenate([rows for _, rows in parts])]
    ranked, decided = (measure_online(textnb.HeldOut(
        np.array(["ham", "spam"]), np.concatenate(values), actual, np.ones(len(actual)), "parts"),
        "spam") for values in (above if grows else scores, above))
    return ranked, decided


def unpack(archive: Path, folder: Path, every: int = 1) -> Path:
    """Write messages, without headers of filters and lists, to a folder for each class."""
    root = folder / archive.name.partition("_")[0]
    for number, (label, raw) in enumerate(messages(archive)):
        if number % every == 0:
            path = root / label / f"{number:05d}.eml"
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(clean(raw))
    return root


def messages(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Classes and messages; the names of the folders say the class."""
    with tarfile.open(archive, "r|gz") as members:
        for member in members:
            match = re.search(r"(ham|spam)[^/]*/[^/]+$", member.name)
            content = members.extractfile(member) if match and member.isfile() else None
            if match and content is not None:
                yield match[1], content.read()


def clean(raw: bytes) -> bytes:
    head, separator, body = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
    return _SUBJECT_MARK.sub(rb"\1", _HEADERS.sub(b"", head + b"\n")) + separator[1:] + body


def table(root: Path, columns: str | list[str]) -> pl.DataFrame:
    """Columns of all messages, sorted by time; messages without a date come first."""
    mail = textnb.scan_mail(str(root), tokens=columns == "tokens").select(
        *([columns] if isinstance(columns, str) else columns), "label", "date",
        key="path").collect()
    return mail.sort(pl.col("date").fill_null(mail["date"].min()), "key")


def own_judge(model: textnb.TextClassifier, threshold: Callable[[Any], Any], root: Path) -> Judge:
    settings, mail = model.text_settings(), table(root, model.text)

    def judge(train: Any, test: Any) -> tuple[Any, Any]:
        fitted = fit(settings, mail[train], left_out=True)
        scores = score_batch(fitted, mail[test].select(settings.columns))[0]
        return scores, scores - threshold(fitted)

    return judge


def other_judge(score: Callable[..., str], cutoff: float, root: Path, mail: pl.DataFrame) -> Judge:
    """A program that filters mail, with its defaults."""
    paths, spam = mail["path"].to_numpy(), (mail["label"] == "spam").to_numpy()

    def judge(train: Any, test: Any) -> tuple[Any, Any]:
        with tempfile.TemporaryDirectory() as folder:
            lines = score(Path(folder), *("".join(f"{path}\n" for path in paths[rows]) for rows in (
                train[spam[train]], train[~spam[train]], test))).splitlines()
        scores = dict(line.rsplit(maxsplit=1) for line in lines)
        log_odds = np.array([[0, float(scores[path]) - cutoff] for path in paths[test]])
        return log_odds, log_odds

    return judge


def bogofilter(folder: Path, spam: str, ham: str, test: str) -> str:
    """Learn from lists of paths, `spam` and `ham`; return the paths and scores of `test`."""
    program = ["bogofilter", "-d", str(folder), "-b"]
    run([*program, "-s"], spam)
    run([*program, "-n"], ham)
    return run([*program, "-TT", "-v"], test)


def spamassassin(folder: Path, spam: str, ham: str, test: str) -> str:
    """As `bogofilter`."""
    database, rules = str(folder / "bayes"), str(BAYES)
    for option, paths in (("--spam", spam), ("--ham", ham)):
        (folder / "paths").write_text(paths)
        run(["sa-learn", "--local", "-C", rules, "--siteconfigpath", rules, "-p",
             f"{rules}/bayes.cf", "--dbpath", database, option, "-f", str(folder / "paths")], "",
            HOME=str(folder))
    return run(["perl", f"{rules}/bayes.pl", rules, database], test, HOME=str(folder))


def run(command: list[str], stdin: str, **environment: str) -> str:
    # 0, 1 and 2 are verdicts of bogofilter, not failures.
    ran = subprocess.run(command, text=True, input=stdin, capture_output=True, check=False,
                         env={**os.environ, **environment})
    if ran.returncode > (2 if command[0] == "bogofilter" else 0):
        raise RuntimeError(f"{command[0]} failed: {ran.stderr[-1000:]}")
    return ran.stdout


# The program and the package that each filter needs, and a function from a folder to its `Judge`.
FILTERS: dict[str, tuple[str, Callable[..., Judge]]] = {
    "textnb, default for mail": ("", lambda place, _: own_judge(
        textnb.mail_classifier(),
        lambda fitted: scores_at_threshold(fitted, "spam", FALSE_POSITIVES), place)),
    "textnb, subject and body, MultinomialNB": ("", lambda place, _: own_judge(
        textnb.TextClassifier(text=["subject", "body"]), lambda _: 0.0, place)),
    "bogofilter": ("bogofilter", partial(other_judge, bogofilter, 0.99)),
    "SpamAssassin's Bayes": ("sa-learn spamassassin", partial(other_judge, spamassassin, 0.5))}
