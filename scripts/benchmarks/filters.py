"""textnb and bogofilter on the same mail: SpamAssassin's 6,046 raw messages, headers and all.

Both learn every message of the training part and judge every message of the test part: in five
shuffled stratified folds, and in time order (six parts by date, each but the first judged by
what was learned from all before it). bogofilter runs with its defaults.

    1-ROCA %     (1 - area under the ROC) x 100, as TREC counts (Cormack and Lynam 2005)
    caught at 0  share of the spam above the highest ham; "hard": above the highest hard ham
    FP at N %    false positives where N % of the spam is caught

Scores of all parts are pooled. textnb's filters:

    multinomial  MultinomialNB(l=0.0001), terms and pairs of terms counted once per message, and
                 a length-aware temperature fitted by leave-one-out on the training part
    nblr         NBLogisticRegression, the same terms
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

import textnb
from benchmarks.data import Missing
from textnb.evaluation.roc import roc

Floats = NDArray[np.float64]
Parts = list[tuple[NDArray[np.int64], NDArray[np.int64]]]
ARCHIVE = "spamassassin_raw_eml.tar.gz"
COLUMNS = ["headers", "body"]


def filters(quick: bool = False) -> dict[str, Any]:
    """A row for each split and filter; `quick` takes every tenth message, and folds alone."""
    folder = os.environ.get("TEXTNB_CORPORA")
    if not folder or not (Path(folder) / ARCHIVE).is_file():
        raise Missing(f"filters need {ARCHIVE} in the folder TEXTNB_CORPORA")
    archive = Path(folder) / ARCHIVE
    mail = textnb.scan_mail(str(archive)).collect().with_columns(
        folder=pl.col("path").str.extract(r":(?:.*/)?([^/]+)/[^/]+$"))
    mail = mail.with_columns(label=pl.when(pl.col("folder").str.starts_with("spam"))
                             .then(pl.lit("spam")).otherwise(pl.lit("ham")))
    if quick:
        mail = mail.gather_every(10)
    spam = (mail["label"] == "spam").to_numpy()
    hard = mail["folder"].str.starts_with("hard").to_numpy()
    sides: dict[str, Callable[[Parts], tuple[Floats, str]]] = {
        "MultinomialNB": lambda parts: multinomial(mail, parts),
        "NBLogisticRegression": lambda parts: discriminative(mail, parts)}
    if shutil.which("bogofilter"):
        sides["bogofilter"] = lambda parts: bogofilter(archive, mail, parts)
    rows = []
    for name, parts in (("5 folds", folds(spam)), ("in time order", by_time(mail)))[:2 - quick]:
        judged = np.sort(np.concatenate([test for _, test in parts]))
        for side, scored in sides.items():
            started = time.perf_counter()
            scores, note = scored(parts)
            rows.append({"split": name, "filter": side, "messages": len(judged),
                         **measured(scores[judged], spam[judged], hard[judged]),
                         "seconds": round(time.perf_counter() - started, 1), "note": note})
            print(f"{name}, {side}: 1-ROCA % {rows[-1]['1-ROCA %']}", file=sys.stderr, flush=True)
    return {"rows": rows}


def folds(spam: NDArray[np.bool_]) -> Parts:
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    return list(splitter.split(spam, spam))


def by_time(mail: pl.DataFrame) -> Parts:
    """Six parts in the order of the dates; a message without one is taken for the oldest."""
    order = mail["date"].fill_null(mail["date"].min()).arg_sort().to_numpy().astype(np.int64)
    parts = np.array_split(order, 6)
    return [(np.concatenate(parts[:k]), parts[k]) for k in range(1, 6)]


def measured(scores: Floats, spam: NDArray[np.bool_], hard: NDArray[np.bool_]
             ) -> dict[str, float]:
    caught = np.sort(scores[spam])[::-1]
    result = {"1-ROCA %": round(100 * (1 - roc(spam, scores).auc), 4),
              "caught at 0": round(float((caught > scores[~spam].max()).mean()), 3),
              "caught at 0 hard": round(float((caught > scores[hard].max()).mean()), 3)}
    for share in (0.75, 0.83, 0.9, 0.95, 0.975, 0.99):
        least = caught[int(share * len(caught)) - 1]
        result[f"FP at {100 * share:g} %"] = int((scores[~spam] >= least).sum())
    return result


def tokenizer() -> textnb.Tokenizer:
    return textnb.Tokenizer(ngram_range=(1, 2), field_prefix=("headers",))


def multinomial(mail: pl.DataFrame, parts: Parts) -> tuple[Floats, str]:
    scores = np.zeros(mail.height)
    for train, test in parts:
        model = textnb.TextClassifier(textnb.MultinomialNB(l=0.0001), text=COLUMNS, binary=True,
                                      tokenizer=tokenizer()).fit(mail[train])
        held = textnb.held_out(model, mail[test])
        calibration = textnb.calibrate(model, mail[train])
        scores[test] = held.calibrated(calibration).log_odds("spam")
    return scores, ""


def discriminative(mail: pl.DataFrame, parts: Parts) -> tuple[Floats, str]:
    scores = np.zeros(mail.height)
    for train, test in parts:
        model = textnb.TextClassifier(textnb.NBLogisticRegression(), text=COLUMNS, min_df=2,
                                      tokenizer=tokenizer()).fit(mail[train])
        scores[test] = textnb.held_out(model, mail[test]).log_odds("spam")
    return scores, ""


def bogofilter(archive: Path, mail: pl.DataFrame, parts: Parts) -> tuple[Floats, str]:
    scores, spam = np.zeros(mail.height), (mail["label"] == "spam").to_numpy()
    with tempfile.TemporaryDirectory() as folder:
        for row, message in enumerate(messages(archive, mail)):
            (Path(folder) / f"{row:05d}").write_bytes(message)

        def run(database: str, rows: NDArray[np.int64], *options: str) -> str:
            names = "\n".join(f"{folder}/{row:05d}" for row in rows)
            # 0 and 1 are verdicts there, not failures.
            ran = subprocess.run(["bogofilter", "-d", database, "-b", *options], input=names,
                                 text=True, capture_output=True, check=False)
            if ran.returncode > 2:
                raise RuntimeError(f"bogofilter failed: {ran.stderr}")
            return ran.stdout

        for train, test in parts:
            with tempfile.TemporaryDirectory() as database:
                run(database, train[spam[train]], "-s")
                run(database, train[~spam[train]], "-n")
                for line in run(database, test, "-TT", "-v").splitlines():
                    name, score = line.split()
                    scores[int(Path(name).name)] = float(score)
    judged = np.concatenate([test for _, test in parts])
    called = scores[judged] >= 0.99
    return scores, (f"at its default cutoff: {int(called[spam[judged]].sum()):,} spam caught, "
                    f"{int(called[~spam[judged]].sum())} false positives")


def messages(archive: Path, mail: pl.DataFrame) -> Iterator[bytes]:
    from corpora.spamassassin import load

    raw = load(archive).select("folder", "name", "raw").collect()
    keys = mail["path"].str.extract(r":(?:.*/)?([^/]+/[^/]+)$")
    by_key = dict(zip((raw["folder"] + "/" + raw["name"]).to_list(), raw["raw"].to_list(),
                      strict=True))
    return (by_key[key] for key in keys)

