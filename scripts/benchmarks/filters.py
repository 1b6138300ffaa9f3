"""Mail filters on raw mail: the same messages for all, without headers of filters and lists.

Both corpora are judged by five stratified folds, and in order of time: the first sixth is learned,
then five blocks are judged and learned in turn. The functions are those of `textnb validate`, with
`--folds 5` and with `--online`; the measures of all filters come from the same functions.

    1-ROCA %        (1 - area under the ROC) x 100, as TREC counts (Cormack and Lynam 2005)
    sm % at .1      spam that is missed where 0.1 % of the ham is called spam
    hm %, sm %      ham and spam that are misjudged at the default cutoff: log-odds 0 here, 0.99 for
                    bogofilter

The CPU seconds are those of reading, learning and judging, in all processes. textnb reads each
message once; bogofilter reads it again for each part.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import textnb
from benchmarks.data import Missing
from textnb.evaluation.online import OnlineResult, measured
from textnb.selection.splits import split

ARCHIVES = {"SpamAssassin": "spamassassin_raw_eml.tar.gz", "CSDMC 2010": "csdmc2010_raw_eml.tar.gz"}
CLASSES = np.array(["ham", "spam"])
BLOCKS = 6
# bogofilter calls spam from here on.
CUTOFF = 0.99
# Headers that other filters and lists have left, up to the next header.
_LEFT_OUT = re.compile(
    rb"^(?:X-[^:\n]*(?:Spam|Virus|Barracuda|Filter|Scan|List|Mailman|BeenThere)[^:\n]*|List-[^:\n]*|"
    rb"Mailing-List|Precedence)[ \t]*:[^\n]*\n(?:[ \t][^\n]*\n)*", re.IGNORECASE | re.MULTILINE)
_MARK = re.compile(rb"^(Subject:[ \t]*)\[SPAM\][ \t]*", re.IGNORECASE | re.MULTILINE)
Part = tuple[NDArray[np.int64], NDArray[np.int64]]


def models() -> dict[str, textnb.TextClassifier]:
    """textnb's filters by their names."""
    return {
        "textnb, default for mail": textnb.mail_classifier(),
        "textnb, body, MultinomialNB": textnb.TextClassifier(text="body")}


def filters(quick: bool = False) -> dict[str, Any]:
    """A row for each corpus, split and filter; `quick` takes every tenth message."""
    folder = Path(os.environ.get("TEXTNB_CORPORA", "/nonexistent"))
    found = {name: folder / file for name, file in ARCHIVES.items() if (folder / file).is_file()}
    if not found:
        raise Missing(f"filters need {' or '.join(ARCHIVES.values())} in the folder TEXTNB_CORPORA")
    rows: list[dict[str, Any]] = []
    for corpus, archive in found.items():
        with tempfile.TemporaryDirectory() as place:
            rows += on_corpus(corpus, archive, Path(place), quick)
    return {"rows": rows, "absent": [name for name in ARCHIVES if name not in found]}


def on_corpus(corpus: str, archive: Path, place: Path, quick: bool) -> Iterator[dict[str, Any]]:
    for number, (label, raw) in enumerate(messages(archive)):
        if not quick or number % 10 == 0:
            path = place / label / f"{number:05d}.eml"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(cleaned(raw))
    mail = table(place, "path")
    block = -(-mail.height // BLOCKS)
    folds = split(mail.lazy(), "label", folds=5).folds
    by_folds = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(5)]
    in_order = [(np.arange(start), np.arange(start, min(start + block, mail.height)))
                for start in range(block, mail.height, block)]
    sides: dict[tuple[str, str], Callable[[], OnlineResult]] = {}
    for name, model in models().items():
        sides["5 folds", name] = lambda model=model: measured(
            textnb.cross_validate(model, table(place, model.text), folds=5), "spam")
        sides["in time order", name] = lambda model=model: textnb.validate_online(
            model, table(place, model.text), "spam", block=block)
    if shutil.which("bogofilter"):
        sides["5 folds", "bogofilter"] = lambda: bogofilter(mail, by_folds)
        sides["in time order", "bogofilter"] = lambda: bogofilter(mail, in_order)
    for (how, side), run in sorted(sides.items(), key=lambda one: one[0][0]):
        before = cpu_seconds()
        result = run()
        row = {"corpus": corpus, "split": how, "filter": side, "messages": len(result.held),
               "1-ROCA %": round(result.roca, 4),
               "interval": [round(bound, 4) for bound in result.roca_interval],
               "sm % at .1": round(result.missed_at_share, 2),
               "sm interval": [round(bound, 2) for bound in result.missed_interval],
               "hm %": round(result.false_positives, 3), "sm %": round(result.false_negatives, 2),
               "cpu_seconds": round(cpu_seconds() - before, 1)}
        print(row, file=sys.stderr, flush=True)
        yield row


def table(place: Path, column: str) -> pl.DataFrame:
    """A column of all messages, in order of time; one without a date is taken for the oldest."""
    mail = textnb.scan_mail(str(place), tokens=column == "tokens").select(
        column, "label", "date", key="path").collect()
    return mail.sort(pl.col("date").fill_null(mail["date"].min()), "key")


def messages(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Classes and messages, from folders whose names say the class."""
    with tarfile.open(archive, "r|gz") as members:
        for member in members:
            found = re.search(r"(ham|spam)[^/]*/[^/]+$", member.name)
            content = members.extractfile(member) if found and member.isfile() else None
            if found and content is not None:
                yield found[1], content.read()


def cleaned(raw: bytes) -> bytes:
    """A message without what filters and lists have written."""
    head, separator, body = raw.replace(b"\r\n", b"\n").partition(b"\n\n")
    return _MARK.sub(rb"\1", _LEFT_OUT.sub(b"", head + b"\n")) + separator[1:] + body


def bogofilter(mail: pl.DataFrame, parts: list[Part]) -> OnlineResult:
    """bogofilter with its defaults learns the first rows of each part, and judges the others."""
    paths, spam = mail["path"].to_list(), (mail["label"] == "spam").to_numpy()
    scores = np.zeros(mail.height)
    rows_of = {path: row for row, path in enumerate(paths)}

    def run(database: str, rows: NDArray[np.int64], *options: str) -> str:
        # 0, 1 and 2 are verdicts there, not failures.
        ran = subprocess.run(["bogofilter", "-d", database, "-b", *options], text=True,
                             input="\n".join(paths[row] for row in rows), capture_output=True,
                             check=False)
        if ran.returncode > 2:
            raise RuntimeError(f"bogofilter failed: {ran.stderr}")
        return ran.stdout

    for learned, judged in parts:
        with tempfile.TemporaryDirectory() as database:
            run(database, learned[spam[learned]], "-s")
            run(database, learned[~spam[learned]], "-n")
            for line in run(database, judged, "-TT", "-v").splitlines():
                path, score = line.rsplit(maxsplit=1)
                scores[rows_of[path]] = float(score)
    rows = np.concatenate([judged for _, judged in parts])
    both = np.stack([np.zeros(len(rows)), scores[rows] - CUTOFF], axis=1)
    return measured(textnb.HeldOut(
        CLASSES, both, spam[rows].astype(np.int64), np.ones(len(rows)), "bogofilter"), "spam")


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(which)
            for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
