"""Run `textnb serve` under load for long; its model is replaced, and its processes are killed.

Eight clients send mail that this script makes, and compare each answer with that of a worker in
their own process, which reads the same model file. One of them also tells classes, which the server
learns: the model is replaced every minute, or sooner in a short run. First all workers are replaced
(SIGHUP); then a worker or the learner is killed now and then, but never the oldest worker, whose
memory may grow. At the end the model must equal one that learns each message that was told once.

    OUTPUT.csv, OUTPUT.svg    answers, milliseconds, memory and open files of each interval

Memory and files are those of the server and all its processes, medians of what is seen each second.
The exit code is 1 if an answer is wrong or lost, or what was told is not learned once. A request
that is cut when its worker is killed is sent again, as mail systems do, and is not lost.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import closing, suppress
from email.message import EmailMessage
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import polars as pl
from benchmarks.__main__ import machine
from benchmarks.pages import drawing, svg_of
from benchmarks.process import descendants, status
from benchmarks.served import CLIENTS, ask, listening

from fuzzing import harness, pages
from textnb import TextClassifier
from textnb.filter import learner
from textnb.filter.ledger import SUFFIX, Ledger, message_key
from textnb.filter.protocol import VERDICT_COMMANDS, Request, answer_to_tell
from textnb.filter.service import Counters, Settings, counters_size
from textnb.filter.worker import Worker
from textnb.mail.columns import message_columns

# A run shorter than twelve minutes has as many reloads as one of twelve.
LEARN_SECONDS, KILL_SECONDS, MESSAGES = 60.0, 10.0, 100
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


def worker_of(model: str | Path) -> Any:
    """A worker of the server in this process; its answers take a request without a connection."""
    shared = os.memfd_create("counters")
    os.truncate(shared, counters_size(1))
    return Worker(Settings(model=str(model), workers=1, timeout=0.0), Counters(shared, 1))


def client(number: int, model: str, path: str, rate: float, killed: Any, ended: Any) -> None:
    """Send requests until the end; write the time, seconds and kind of each."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    worker, random, messages, folder = (
        worker_of(model), Random(number), make_messages(), Path(model).parent)
    known: dict[Any, bytes] = {}
    told: dict[int, str] = {}

    def said_by(worker: Any, command: str, place: int) -> bytes:
        answer: bytes = worker._reply(Request(command, (1, 5)), messages[place][0], None)
        return answer

    def expected(command: str, place: int) -> bytes:
        """What the model says that is there now."""
        while (key := (os.stat(model).st_mtime_ns, command, place)) not in known:
            if known and next(iter(known))[0] != key[0]:
                known.clear()
            answer = said_by(worker, command, place)
            if os.stat(model).st_mtime_ns == key[0]:
                known[key] = answer
        return known[key]

    with (folder / f"{number}.answers").open("w", buffering=1) as file:
        def send(command: str, message: bytes, headers: str = "") -> tuple[bytes, bool]:
            """The answer, and whether a request was cut before."""
            was_cut = False
            while True:
                start, answer = time.monotonic(), b""
                with suppress(OSError):
                    _, answer = ask(path, command, message, headers)
                kind = ("answer" if answer else
                        "cut" if killed.value > start - _DYING
                        and time.monotonic() - start < KILL_SECONDS else "lost")
                file.write(f"{start},{time.monotonic() - start},{kind}\n")
                if answer:
                    return answer, was_cut
                was_cut = True

        began, sent = time.monotonic(), 0
        while not ended.is_set():
            sent += 1
            if rate:
                time.sleep(max(0.0, began + sent * CLIENTS / rate - time.monotonic()))
            if number == 0 and sent % _TELLS == 0:
                command, n, label = "TELL", sent // _TELLS, random.choice(["spam", "ham"])
                n = random.randrange(n) if n % _AGAIN == 0 else n
                answer, was_cut = send(command, message_told(messages, n),
                                       f"Message-class: {label}\r\nSet: local\r\n")
                is_right = answer == answer_to_tell(label, told.get(n) != label) or (
                    was_cut and answer == answer_to_tell(label, False))
                told[n] = label
            else:
                command, place = random.choice(VERDICT_COMMANDS), random.randrange(MESSAGES)
                before = expected(command, place)
                answer, _ = send(command, messages[place][0])
                # Around a reload, the model may be replaced twice.
                is_right = answer in (before, expected(command, place)) or any(
                    answer == said_by(worker_of(version), command, place)
                    for version in sorted(folder.glob("*.version"))[-4:])
            if not is_right:
                file.write(f"{time.monotonic()},0,wrong\n")
                (folder / "wrong.txt").write_text(f"{command}: {answer!r}, expected {before!r}")
    if number == 0:
        (folder / "told.json").write_text(json.dumps(told))


def soak(folder: Path, seconds: float, rate: float) -> tuple[dict[str, Any], pl.DataFrame]:
    """Run it, and give the figures of the whole run and of its intervals."""
    model, path, mail = str(folder / "soak.textnb"), folder / "soak.socket", make_messages()[::2]
    TextClassifier().fit(pl.DataFrame({
        "text": [message_columns(message, ["text"], [])[0]["text"] for message, _ in mail],
        "label": [label for _, label in mail]})).save(model)
    base = shutil.copy(model, f"{model}.base")
    context, learn_seconds = multiprocessing.get_context("spawn"), min(LEARN_SECONDS, seconds / 12)
    killed, ended, looks = context.Value("d", 0.0), context.Event(), list[list[float]]()
    with listening([
            sys.executable, "-m", "textnb", "serve", model, "--listen", str(path), "--allow-tell",
            str(os.getuid()), "--learn-seconds", str(learn_seconds), "--workers", "2"],
            path) as server:
        clients = [context.Process(target=client, args=(
            number, model, str(path), rate, killed, ended)) for number in range(CLIENTS)]
        for one in clients:
            one.start()
        keeper = Thread(target=keep_versions, args=(model, ended))
        keeper.start()
        # It takes the clients seconds to start.
        while not all(one.exitcode for one in clients) and sum(
                file.stat().st_size > 0 for file in folder.glob("*.answers")) < CLIENTS:
            time.sleep(0.1)
        random, began, kills = Random(1), time.monotonic(), 0
        while (now := time.monotonic() - began) < seconds:
            tree = [server, *descendants(server)]
            looks.append([now + began, sum(status(one, "VmRSS") for one in tree), sum(
                status(one, "Pss", "smaps_rollup") for one in tree), sum(map(open_files, tree))])
            if now > KILL_SECONDS * (kills + 1):
                kills, others = kills + 1, sorted(tree[1:])[1:]
                if kills == 1:
                    os.kill(server, signal.SIGHUP)
                elif others:
                    killed.value = time.monotonic()
                    os.kill(random.choice(others), signal.SIGKILL)
            time.sleep(1.0)
        ended.set()
        keeper.join()
        for one in clients:
            one.join()
        while pending(model) and time.monotonic() < began + seconds + 6 * LEARN_SECONDS:
            time.sleep(0.5)
    assert not any(one.exitcode for one in clients), "a client failed"
    rows = intervals(folder, looks, min(60.0, max(5.0, seconds / 20)))
    # After ten minutes, or half of a short run, the memory is to stay as it is.
    later = rows.filter(pl.col("minute") > min(10.0, seconds / 120))["pss_mib"]
    row = {"seconds": round(seconds), **answers(folder).select(**FIGURES).collect().row(
        0, named=True), "kills": kills, "pss_mib": [later[0], later[-1]],
        "files": rows["files"].max(), "learned_once": learned_once(model, base, folder)}
    return row, rows


def keep_versions(model: str, ended: Any) -> None:
    """Give each model that takes the place of another a name of its own."""
    while not ended.is_set():
        with suppress(OSError):
            os.link(model, f"{model}.{os.stat(model).st_mtime_ns}.version")
        time.sleep(0.005)


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


def learned_once(model: str, base: str, folder: Path) -> bool:
    """Whether a model equals one that learns all that was told at once, as their ledgers do."""
    messages, learned = make_messages(), []
    with Ledger(base) as ledger:
        for number, label in json.loads((folder / "told.json").read_text()).items():
            message = message_told(messages, int(number))
            texts, parsed = message_columns(message, ["text"], [])
            ledger.add(message_key(parsed.message_id, texts), label, message)
    learner.learn(base)
    for path in (model, base):
        with closing(sqlite3.connect(path + SUFFIX)) as database:
            learned.append(sorted(database.execute("SELECT id, class FROM learned")))
    return learned[0] == learned[1] and Path(model).read_bytes() == Path(base).read_bytes()


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
    parser.add_argument("--seconds", type=harness.positive_seconds, default=120.0,
                        help="how long to run (120)")
    parser.add_argument("--rate", type=float, default=0.0,
                        help="messages a second; by default as many as the clients can send")
    parser.add_argument("--output", default="soak", help="beginning of the files' names (soak)")
    parser.add_argument("--record", action="store_true",
                        help="add the figures to docs/tried/soak.json and the page What was tried")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="textnb-soak-") as name:
        row, rows = soak(Path(name), arguments.seconds, arguments.rate)
        print(*(path.read_text() for path in Path(name).glob("wrong.txt")), sep="\n")
    print(*pages.soak_lines([row]), sep="\n")
    rows.write_csv(f"{arguments.output}.csv")
    drawn = picture(rows)
    Path(f"{arguments.output}.svg").write_text(drawn, "utf-8")
    if arguments.record:
        (pages.FOLDER / "soak.svg").write_text(drawn, "utf-8")
        pages.add("soak", {**row, "rate": arguments.rate, "cpu": machine()["cpu"]})
    sys.exit(bool(row["wrong"] or row["lost"] or not row["learned_once"]))


if __name__ == "__main__":
    main()
