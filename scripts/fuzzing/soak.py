"""Run `textnb serve` under load for long; its model is replaced, and its processes are killed.

Eight clients send mail that this script makes, and compare each answer with that of a worker in
their own process, which has opened the model file that was there between request and answer. One of
them also tells classes, which the server learns: the model is replaced every minute, or sooner in a
short run. First all workers are replaced (SIGHUP); then a worker is killed now and then, but never
the oldest one, whose memory may grow, and so is the learner. At the end the model must have the
bytes of one that is fitted to all messages at once: the first ones, and each that was told.

    OUTPUT.csv, OUTPUT.svg    answers, milliseconds, memory and open files of each interval

Memory and files are those of the server and all its processes, medians of what is seen each second.
The exit code is 1 if an answer is wrong or lost, or what was told is not learned once. A request
that is cut when its worker is killed is sent again, as mail systems do, and is not lost.
"""

from __future__ import annotations

import argparse
import functools
import glob
import json
import math
import multiprocessing
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from email.message import EmailMessage
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
from benchmarks.__main__ import machine
from benchmarks.pages import drawing, svg_of
from benchmarks.process import descendants, status
from benchmarks.served import CLIENTS, ask, listening

from fuzzing import harness, pages
from textnb import TextClassifier
from textnb.filter import learner
from textnb.filter.ledger import SUFFIX
from textnb.filter.protocol import VERDICT_COMMANDS, Request, answer_to_tell
from textnb.filter.service import Counters, Settings, counters_size
from textnb.filter.worker import Worker
from textnb.mail.columns import message_columns

# A run shorter than twelve minutes has as many reloads as one of twelve.
LEARN_SECONDS, KILL_SECONDS, MESSAGES = 60.0, 10.0, 100
_SHORTEST = 20.0
# A learner takes some seconds; in each of them it is killed by this chance.
_KILL_LEARNER = 0.25
# Of the first client's requests, one in so many is TELL, and one in four of these is about a
# message that was told before.
_TELLS, _AGAIN = 20, 4
# A killed process may take a connection for so long.
_DYING = 0.5
# The letters of scripts, and a character set that has them beside UTF-8.
_SCRIPTS = [(range(97, 123), "latin-1"), (range(0x430, 0x450), "koi8-r"),
            (range(0x915, 0x93A), "utf-8"), (range(0x627, 0x64B), "utf-8"),
            (range(0x4E00, 0x4F00), "utf-8")]

# Of answers: their number, and milliseconds.
_KIND, _TOOK = pl.col("kind"), pl.col("took").filter(kind="answer") * 1e3
FIGURES = {
    "messages": _KIND.eq("answer").sum(), "p50_ms": _TOOK.quantile(0.5).round(2),
    "p99_ms": _TOOK.quantile(0.99).round(2),
    **{name: _KIND.eq(name).sum() for name in ("wrong", "lost", "cut")}}


def make_messages() -> list[tuple[bytes, str]]:
    """Mail of many sizes, languages and structures, each with its class."""
    random, made = Random(1), []
    words = [["".join(random.choices([*map(chr, letters)], k=random.randint(2, 9)))
              for _ in range(1000)] for letters, _ in _SCRIPTS]
    for number in range(MESSAGES):
        script, label = random.randrange(len(_SCRIPTS)), random.choice(["spam", "ham"])
        # Half of the words are of both classes.
        known = words[script][:750] if label == "spam" else words[script][250:]
        text = " ".join(random.choices(known, k=int(10 ** random.uniform(1, 2.8))))
        message = EmailMessage()
        message["Subject"], message["Message-ID"] = text[:40], f"<{number}@example.org>"
        message.set_content(text, charset=random.choice([_SCRIPTS[script][1], "utf-8"]))
        if number % 3 == 0:
            message.add_alternative(f"<p>{text}</p><a href='http://x.org'>x</a>", subtype="html")
        if number % 10 == 0:
            message.add_attachment(random.randbytes(20_000), "application", "pdf", filename="a.pdf")
        made.append((message.as_bytes(), label))
    return made


def message_told(messages: list[tuple[bytes, str]], number: int) -> bytes:
    """One of the messages, with a Message-ID of its own."""
    new = b"Message-ID: <%d-" % number
    return messages[number % MESSAGES][0].replace(b"Message-ID: <", new, 1)


def fit(messages: Iterable[tuple[bytes, str]], model: str) -> None:
    """Save a model that is fitted to messages with their classes."""
    texts, labels = zip(*((message_columns(message, ["text"], [])[0]["text"], label)
                          for message, label in messages), strict=True)
    TextClassifier().fit(pl.DataFrame({"text": texts, "label": labels})).save(model)


def version_now(model: str) -> int:
    """The time of the model file that is there now, which keeps a name with this time."""
    at = os.stat(model).st_mtime_ns
    if not os.path.exists(version_path(model, at)):
        own = f"{model}.{os.getpid()}"
        os.link(model, own)
        # It may be a newer one.
        at = os.stat(own).st_mtime_ns
        with suppress(FileExistsError):
            os.link(own, version_path(model, at))
        os.unlink(own)
    return at


def version_path(model: str, at: int | str) -> str:
    return f"{model}.{at}.version"


def versions(model: str) -> list[int]:
    """The times of all model files so far."""
    return sorted(int(path.split(".")[-2]) for path in glob.glob(version_path(model, "*")))


@functools.lru_cache(4)
def worker_of(model: str) -> Any:
    """A worker of the server in this process; its answers take a request without a connection."""
    shared = os.memfd_create("counters")
    os.truncate(shared, counters_size(1))
    return Worker(Settings(model=model, workers=1, timeout=0.0), Counters(shared, 1))


def client(number: int, model: str, path: str, rate: float, killed: Any, ended: Any) -> None:
    """Send requests until the end; write the time, seconds and kind of each."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    random, messages, folder = Random(number), make_messages(), Path(model).parent
    told: dict[int, str] = {}

    @functools.lru_cache(4 * MESSAGES * len(VERDICT_COMMANDS))
    def expected(version: int, command: str, place: int) -> bytes:
        answer: bytes = worker_of(version_path(model, version))._reply(
            Request(command, (1, 5)), messages[place][0], None)
        return answer

    with (folder / f"{number}.answers").open("w", buffering=1) as file:
        def send(command: str, message: bytes, headers: str = "") -> tuple[bytes, int, bool]:
            """The answer, the model before it, and whether a request was cut before."""
            was_cut = False
            while True:
                before, start, answer = version_now(model), time.monotonic(), b""
                with suppress(OSError):
                    _, answer = ask(path, command, message, headers)
                kind = ("answer" if answer else
                        "cut" if killed.value > start - _DYING
                        and time.monotonic() - start < KILL_SECONDS else "lost")
                file.write(f"{start},{time.monotonic() - start},{kind}\n")
                if answer:
                    return answer, before, was_cut
                was_cut = True

        began, sent = time.monotonic(), 0
        while not ended.is_set():
            sent += 1
            if rate:
                time.sleep(max(0.0, began + sent * CLIENTS / rate - time.monotonic()))
            if number == 0 and sent % _TELLS == 0:
                command, n, label = "TELL", sent // _TELLS, random.choice(["spam", "ham"])
                n = random.randrange(n) if n % _AGAIN == 0 else n
                answer, _, was_cut = send(command, message_told(messages, n),
                                          f"Message-class: {label}\r\nSet: local\r\n")
                right = [answer_to_tell(label, told.get(n) != label),
                         *([answer_to_tell(label, False)] if was_cut else [])]
                told[n] = label
            else:
                command, place = random.choice(VERDICT_COMMANDS), random.randrange(MESSAGES)
                answer, before, _ = send(command, messages[place][0])
                # A worker looks for a new file at each request.
                after = version_now(model)
                right = [expected(version, command, place) for version in (
                    [before] if before == after else versions(model))
                    if before <= version <= after]
            if answer not in right:
                file.write(f"{time.monotonic()},0,wrong\n")
                (folder / "wrong.txt").write_text(
                    f"an answer is wrong: {command}: {answer!r}, expected {right!r}")
    if number == 0:
        (folder / "told.json").write_text(json.dumps(told))


def soak(folder: Path, seconds: float, rate: float) -> tuple[dict[str, Any], pl.DataFrame]:
    """Run it, and give the figures of the whole run and of its intervals."""
    model, path, mail = str(folder / "soak.textnb"), folder / "soak.socket", make_messages()[::2]
    fit(mail, model)
    first = Path(model).read_bytes()
    context, learn_seconds = multiprocessing.get_context("spawn"), min(LEARN_SECONDS, seconds / 12)
    killed, ended, looks = context.Value("d", 0.0), context.Event(), list[list[float]]()
    with listening([
            sys.executable, "-m", "textnb", "serve", model, "--listen", str(path), "--allow-tell",
            str(os.getuid()), "--learn-seconds", str(learn_seconds), "--workers", "2"],
            path) as server:
        clients = [context.Process(target=client, args=(
            number, model, str(path), rate, killed, ended), daemon=True)
            for number in range(CLIENTS)]

        def has_failed() -> bool:
            return any(one.exitcode for one in clients)

        # The clients end with this process, so an interruption is its own.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for one in clients:
            one.start()
        signal.signal(signal.SIGINT, handler)
        # It takes the clients seconds to start.
        while not has_failed() and sum(
                file.stat().st_size > 0 for file in folder.glob("*.answers")) < CLIENTS:
            time.sleep(0.1)
        random, began, due = Random(1), time.monotonic(), KILL_SECONDS
        kills = {"hangups": 0, "workers_killed": 0, "learners_killed": 0}
        while (now := time.monotonic() - began) < seconds and not has_failed():
            tree = [server, *descendants(server)]
            looks.append([now + began, sum(status(one, "VmRSS") for one in tree), sum(
                status(one, "Pss", "smaps_rollup") for one in tree), sum(map(open_files, tree))])
            learners = [*filter(is_learner, tree[1:])]
            if learners and random.random() < _KILL_LEARNER:
                os.kill(learners[0], signal.SIGKILL)
                kills["learners_killed"] += 1
            workers = sorted({*tree[1:]} - {*learners})
            if now > due:
                due += KILL_SECONDS
                if not kills["hangups"]:
                    os.kill(server, signal.SIGHUP)
                    kills["hangups"] += 1
                elif workers[1:]:
                    killed.value = time.monotonic()
                    os.kill(random.choice(workers[1:]), signal.SIGKILL)
                    kills["workers_killed"] += 1
            time.sleep(1.0)
        ended.set()
        for one in clients:
            one.join()
        while pending(model) and time.monotonic() < began + seconds + 6 * LEARN_SECONDS:
            time.sleep(0.5)
    assert not has_failed(), "a client failed"
    rows = intervals(folder, looks, min(60.0, max(5.0, seconds / 20)))
    # After ten minutes, or half of a short run, the memory is to stay as it is.
    later = rows.filter(pl.col("minute") > min(10.0, seconds / 120))["pss_mib"]
    row = {"seconds": round(seconds), **answers(folder).select(**FIGURES).collect().row(
        0, named=True), **kills, "models": len(versions(model)),
        "pss_mib": [later[0], later[-1]], "files": rows["files"].max(),
        "learned_once": Path(model).read_bytes() != first and learned_once(model, mail)}
    return row, rows


def is_learner(process: int) -> bool:
    with suppress(OSError):
        return learner.__name__.encode() in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def open_files(process: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{process}/fd"))
    return 0


def answers(folder: Path) -> pl.LazyFrame:
    """When each request was sent, how many seconds it took, and what came of it."""
    return pl.scan_csv(folder / "*.answers", has_header=False, new_columns=["at", "took", "kind"])


def intervals(folder: Path, looks: list[list[float]], seconds: float) -> pl.DataFrame:
    """The figures of each interval, from the answers of all clients and looks at the server."""
    minute = ((pl.col("at") - looks[0][0]) // seconds * seconds / 60).round(2).alias("minute")
    answered = answers(folder).group_by(minute).agg(**FIGURES).collect()
    seen = pl.DataFrame(looks, ["at", "rss_mib", "pss_mib", "files"], orient="row").group_by(
        minute).agg(pl.col("rss_mib", "pss_mib", "files").median().round(1))
    return answered.join(seen, "minute").sort("minute")


def pending(model: str) -> int:
    with closing(sqlite3.connect(model + SUFFIX)) as database:
        return int(database.execute("SELECT count(*) FROM pending").fetchone()[0])


def learned_once(model: str, mail: list[tuple[bytes, str]]) -> bool:
    """Whether a model equals one that is fitted at once to mail and all that was told."""
    messages = make_messages()
    told = json.loads((Path(model).parent / "told.json").read_text())
    fit([*mail, *((message_told(messages, int(number)), label) for number, label in told.items())],
        f"{model}.fitted")
    with closing(sqlite3.connect(model + SUFFIX)) as database:
        labels = [json.loads(label) for label, in database.execute("SELECT class FROM learned")]
    return (sorted(labels) == sorted(told.values())
            and Path(model).read_bytes() == Path(f"{model}.fitted").read_bytes())


def picture(rows: pl.DataFrame) -> str:
    """Memory and the time of answers, against minutes."""
    alt, _ = drawing()
    panels = [alt.Chart(alt.Data(values=rows.unpivot(names, index="minute").to_dicts())).mark_line()
              .encode(x=alt.X("minute:Q", title="minutes"), y=alt.Y("value:Q", title=title),
                      color=alt.Color("variable:N", title=None))
              .properties(width=400, height=150)
              for title, names in (("MiB", ["rss_mib", "pss_mib"]), ("ms", ["p50_ms", "p99_ms"]))]
    return svg_of(alt.vconcat(*panels).resolve_scale(color="independent"), machine(),
                  "Memory of textnb serve, and how long an answer takes", f"{CLIENTS} clients")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=harness.seconds, default=120.0,
                        help="how long to run, 20 or more (120), after a start of up to a minute")
    parser.add_argument("--rate", type=float, default=0.0,
                        help="messages a second; by default, 0, as many as the clients can send")
    parser.add_argument("--output", default="soak", help="beginning of the files' names (soak)")
    parser.add_argument("--record", action="store_true",
                        help="add the figures to docs/tried/soak.json and the page What was tried")
    arguments = parser.parse_args()
    if arguments.seconds < _SHORTEST:
        parser.error(f"--seconds must be {_SHORTEST:.0f} or more")
    if arguments.record:
        pages.check("soak")
    if not 0.0 <= arguments.rate < math.inf:
        parser.error("--rate must be 0 or more")
    if not Path(arguments.output).parent.is_dir():
        parser.error(f"there is no folder for --output {arguments.output}")
    with tempfile.TemporaryDirectory(prefix="textnb-soak-") as name:
        row, rows = soak(Path(name), arguments.seconds, arguments.rate)
        print(*pages.soak_lines([row]), sep="\n")
        print(*(path.read_text() for path in Path(name).glob("wrong.txt")), sep="\n", end="")
    rows.write_csv(f"{arguments.output}.csv")
    drawn = picture(rows)
    Path(f"{arguments.output}.svg").write_text(drawn, "utf-8")
    if arguments.record:
        (pages.FOLDER / "soak.svg").write_text(drawn, "utf-8")
        pages.add("soak", {**row, "rate": arguments.rate, "cpu": machine()["cpu"]})
    has_failed = bool(row["wrong"] or row["lost"] or not row["learned_once"])
    print(f"{'FAILED' if has_failed else 'passed'}; {arguments.output}.csv and "
          f"{arguments.output}.svg have each interval")
    sys.exit(has_failed)


if __name__ == "__main__":
    with harness.stoppable():
        main()
