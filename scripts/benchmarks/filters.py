"""Mail filters on raw mail: the same messages for all, without headers of filters and lists.

Both corpora are judged by five stratified folds, and in order of time: the first sixth is learned,
then five blocks are judged and learned in turn. The measures of all filters come from the same
functions.

    1-ROCA %        (1 - area under the ROC) x 100, as TREC counts (Cormack and Lynam 2005)
    sm % at .1      spam that is missed where 0.1 % of the ham is called spam
    hm %, sm %      ham and spam that are misjudged at a cutoff: the threshold that textnb's default
                    chooses as it learns, log-odds 0 for its naive Bayes, 0.99 for bogofilter, 0.5
                    for the probability of SpamAssassin's Bayes

The CPU seconds are those of reading, learning and judging, in all processes. textnb reads each
message once; the others read it again for each part.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import textnb
from benchmarks.data import Missing
from textnb.evaluation.decisions import threshold_by_fit
from textnb.evaluation.online import OnlineResult, measured
from textnb.learning.fitted import Fitted
from textnb.learning.fitting import fit
from textnb.learning.settings import FALSE_POSITIVES
from textnb.scoring.texts import score_batch
from textnb.selection.splits import split

ARCHIVES = {"SpamAssassin": "spamassassin_raw_eml.tar.gz", "CSDMC 2010": "csdmc2010_raw_eml.tar.gz"}
CLASSES = np.array(["ham", "spam"])
BLOCKS = 6
# SpamAssassin's Bayes without its other rules: what `sa-learn` has learned judges each message.
BAYES = """\
loadplugin Mail::SpamAssassin::Plugin::Bayes
use_bayes 1
bayes_auto_expire 0
bayes_learn_to_journal 0
"""
BAYES_SCORES = r"""
use Mail::SpamAssassin;
use Mail::SpamAssassin::PerMsgStatus;
my ($settings, $database) = @ARGV;
my $sa = Mail::SpamAssassin->new({
    rules_filename => $settings, site_rules_filename => $settings, local_tests_only => 1,
    userprefs_filename => "$settings/bayes.cf", userstate_dir => $settings, dont_copy_prefs => 1,
    post_config_text => "bayes_path $database\n"});
$sa->init(1);
my ($bayes) = grep { ref eq 'Mail::SpamAssassin::Plugin::Bayes' } @{$sa->{plugins}{plugins}};
while (my $path = <STDIN>) {
    chomp $path;
    open my $file, '<:raw', $path or die "$path: $!";
    my $mail = $sa->parse([<$file>], 0);
    my $status = Mail::SpamAssassin::PerMsgStatus->new($sa, $mail);
    $status->extract_message_metadata;
    # Without a word that it knows, it gives no score.
    printf "%s %.17g\n", $path, $bayes->scan($status, $mail) // 0.5;
    $status->finish;
    $mail->finish;
}
"""
# Headers that other filters and lists have left, up to the next header.
_LEFT_OUT = re.compile(
    rb"^(?:X-[^:\n]*(?:Spam|Virus|Barracuda|Filter|Scan|List|Mailman|BeenThere)[^:\n]*|List-[^:\n]*|"
    rb"Mailing-List|Precedence)[ \t]*:[^\n]*\n(?:[ \t][^\n]*\n)*", re.IGNORECASE | re.MULTILINE)
_MARK = re.compile(rb"^(Subject:[ \t]*)\[SPAM\][ \t]*", re.IGNORECASE | re.MULTILINE)
Threshold = Callable[[Fitted], NDArray[np.float64]]
Part = tuple[NDArray[np.int64], NDArray[np.int64]]
# A folder of its own, and the paths of spam, of ham and of messages to judge, one per line.
Judge = Callable[[Path, str, str, str], list[str]]


def models() -> dict[str, tuple[textnb.TextClassifier, Threshold]]:
    """textnb's filters by their names, and the thresholds of each."""
    return {
        "textnb, default for mail": (
            textnb.mail_classifier(),
            lambda fitted: threshold_by_fit(fitted, "spam", FALSE_POSITIVES)),
        "textnb, subject and body, MultinomialNB": (
            textnb.TextClassifier(text=["subject", "body"]),
            lambda fitted: np.zeros(len(fitted.classes)))}


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
    for name, (model, threshold) in models().items():
        for how, parts in (("5 folds", by_folds), ("in time order", in_order)):
            sides[how, name] = lambda model=model, threshold=threshold, parts=parts: own(
                model, table(place, model.text), parts, threshold, parts is in_order)
    for name, (program, judge, cutoff) in PEERS.items():
        if shutil.which(program):
            for how, parts in (("5 folds", by_folds), ("in time order", in_order)):
                sides[how, name] = lambda judge=judge, cutoff=cutoff, parts=parts: by_parts(
                    mail, parts, judge, cutoff)
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


def table(place: Path, columns: str | list[str]) -> pl.DataFrame:
    """Columns of all messages, in order of time; one without a date is taken for the oldest."""
    mail = textnb.scan_mail(str(place), tokens=columns == "tokens").select(
        *([columns] if isinstance(columns, str) else columns), "label", "date",
        key="path").collect()
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


def own(
    model: textnb.TextClassifier, mail: pl.DataFrame, parts: list[Part], threshold: Threshold,
    grows: bool,
) -> OnlineResult:
    """textnb learns the first rows of each part, and judges the others.

    Errors are those at the thresholds. Models that grow from part to part are ranked by the scores
    above them, as `textnb.validate_online` does; those of folds, which learn equally many rows, by
    the scores.
    """
    settings, scores, above = model.text_settings(), [], []
    for learned, judged in parts:
        fitted = fit(settings, mail[learned], left_out=True)
        scores.append(score_batch(fitted, mail[judged].select(settings.columns))[0])
        above.append(scores[-1] - threshold(fitted))
    rows = np.concatenate([judged for _, judged in parts])
    actual = (mail["label"] == "spam").to_numpy()[rows].astype(np.int64)
    ranked, decided = (
        measured(textnb.HeldOut(CLASSES, np.concatenate(found), actual, np.ones(len(rows)),
                                "parts"), "spam") for found in (above if grows else scores, above))
    return replace(ranked, false_positives=decided.false_positives,
                   false_negatives=decided.false_negatives)


def by_parts(mail: pl.DataFrame, parts: list[Part], judge: Judge, cutoff: float) -> OnlineResult:
    """A filter with its defaults learns the first rows of each part, and judges the others."""
    paths, spam = mail["path"].to_list(), (mail["label"] == "spam").to_numpy()
    scores = np.zeros(mail.height)
    rows_of = {path: row for row, path in enumerate(paths)}
    for learned, judged in parts:
        with tempfile.TemporaryDirectory() as folder:
            for line in judge(Path(folder), *(
                    "".join(f"{paths[row]}\n" for row in rows)
                    for rows in (learned[spam[learned]], learned[~spam[learned]], judged))):
                path, score = line.rsplit(maxsplit=1)
                scores[rows_of[path]] = float(score)
    rows = np.concatenate([judged for _, judged in parts])
    both = np.stack([np.zeros(len(rows)), scores[rows] - cutoff], axis=1)
    return measured(textnb.HeldOut(
        CLASSES, both, spam[rows].astype(np.int64), np.ones(len(rows)), "parts"), "spam")


def bogofilter(folder: Path, spam: str, ham: str, judged: str) -> list[str]:
    """Paths and scores of messages, by what was learned of others; all are lists of paths."""
    program = ["bogofilter", "-d", str(folder), "-b"]
    run([*program, "-s"], spam)
    run([*program, "-n"], ham)
    return run([*program, "-TT", "-v"], judged).splitlines()


def spamassassin(folder: Path, spam: str, ham: str, judged: str) -> list[str]:
    """As `bogofilter`."""
    settings, database = folder / "settings", folder / "bayes"
    settings.mkdir()
    (settings / "bayes.cf").write_text(BAYES)
    for option, paths in (("--spam", spam), ("--ham", ham)):
        (folder / "paths").write_text(paths)
        run(["sa-learn", "--local", "-C", str(settings), "--siteconfigpath", str(settings),
             "-p", str(settings / "bayes.cf"), "--dbpath", str(database), option,
             "-f", str(folder / "paths")], "", HOME=str(folder))
    return run(["perl", "-e", BAYES_SCORES, str(settings), str(database)], judged,
               HOME=str(folder)).splitlines()


def run(command: list[str], given: str, **environment: str) -> str:
    # 0, 1 and 2 are verdicts of bogofilter, not failures.
    ran = subprocess.run(command, text=True, input=given, capture_output=True, check=False,
                         env={**os.environ, **environment})
    if ran.returncode > (2 if command[0] == "bogofilter" else 0):
        raise RuntimeError(f"{command[0]} failed: {ran.stderr[-1000:]}")
    return ran.stdout


# The program that each needs, how it judges, and the score from which a message is spam.
PEERS: dict[str, tuple[str, Judge, float]] = {
    "bogofilter": ("bogofilter", bogofilter, 0.99),
    "SpamAssassin's Bayes": ("sa-learn", spamassassin, 0.5)}


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(which)
            for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
