"""Mail filters that listen on a socket: messages a second, seconds of a message, memory.

The older half of SpamAssassin's corpus is learned. Eight clients send the other half repeatedly;
each is a process that sends its next message after the answer to the last one, as `spamc` does, but
without starting a program. They also send it to SpamAssassin's `spamd`, which uses its local rules.

    CHECK   asks for a verdict
    TELL    one client sends the classes of messages, which textnb learns within a minute
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

import textnb
from benchmarks.data import stored
from benchmarks.filters import ARCHIVES, table, unpack
from benchmarks.process import Row, descendants, is_here, note, status
from benchmarks.speed import Steps

CLIENTS, TERMS = 8, 1_000_000
# The number of requests for each server and model; a tenth as many are sent first, to warm up.
# spamd takes about fifty times as long, so it gets fewer.
REQUESTS = {("textnb", "default for mail"): {"CHECK": 100_000, "TELL": 500},
            ("textnb", "of a million terms"): {"CHECK": 10_000, "TELL": 500},
            ("spamd", "local rules"): {"CHECK": 500}}


def served(arguments: Any) -> Steps:
    """A step for each server and model; `--quick` sends a hundredth of the requests."""
    root = unpack(stored(ARCHIVES["SpamAssassin"]), arguments.folder)
    spamd = shutil.which("spamd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    for (server, model), requests in REQUESTS.items():
        if is_here(arguments, server, server == "textnb" or spamd, "apt-get install spamassassin"):
            yield {"server": server, "model": model}, partial(
                measure, server, model, requests, root, spamd, 100 if arguments.quick else 1)


def measure(
    server: str, model: str, requests: dict[str, int], root: Path, spamd: str | None, part: int
) -> list[Row]:
    path, paths = root.parent / f"{model}.socket", table(root, "path")["path"]
    command = [str(spamd), "--local", "--max-children=2", "--min-children=2", "--nouser-config",
               f"--socketpath={path}"]
    if server == "textnb":
        file = root.parent / "served.textnb"
        learn(table(root, "tokens")[:len(paths) // 2],
              TERMS // part if "million" in model else 0, file)
        command = [sys.executable, "-m", "textnb", "serve", str(file), "--allow-tell",
                   pwd.getpwuid(os.getuid()).pw_name, "--listen", str(path)]
    with listening(command, path) as process:
        return [{"server": server, "model": model, **row_of(
            request, str(path), process, paths[len(paths) // 2:].to_list(), number // part)}
            for request, number in requests.items()]


def learn(rows: pl.DataFrame, terms: int, file: Path) -> None:
    """Save the default model for mail, with this number of additional terms that no message has."""
    # Each term is in two messages. A message has 1,000 terms, as many as a long one.
    names = [f"none{n}" for n in range(terms)] * 2
    more = pl.DataFrame({"tokens": [names[n:n + 1000] for n in range(0, len(names), 1000)]},
                        schema={"tokens": pl.List(pl.String)})
    label = pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("ham")).otherwise(pl.lit("spam"))
    textnb.mail_classifier().fit(
        pl.concat([rows, more.with_columns(label=label)], how="diagonal")).save(file)


@contextmanager
def listening(command: list[str], path: Path) -> Iterator[int]:
    """Start a server, wait until it answers, and give its process id."""
    log = Path(f"{path}.log")
    with log.open("wb") as output, subprocess.Popen(
            command, stdout=output, stderr=output) as process:
        try:
            for _ in range(600):
                try:
                    ask(str(path), "PING", b"")
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                raise RuntimeError(f"no answer: {log.read_text()[-1000:]}")
            yield process.pid
        finally:
            process.terminate()


def row_of(request: str, path: str, process: int, paths: list[str], number: int) -> Row:
    clients = 1 if request == "TELL" else CLIENTS
    number = max(number, 10 * clients)

    def run(number: int) -> list[float]:
        shares = [(path, request, paths[k::clients], number // clients) for k in range(clients)]
        return [second for share in pool.map(send, shares) for second in share]

    def memory() -> float:
        return round(max(status(one, "VmRSS") for one in descendants(process)), 1)

    with ProcessPoolExecutor(clients, mp_context=get_context("spawn")) as pool:
        run(number // 10)
        before, started = memory(), time.perf_counter()
        seconds = sorted(run(number))
        elapsed = time.perf_counter() - started
    row = {"request": request, "clients": clients, "messages": len(seconds),
           "per_second": round(len(seconds) / elapsed, 1), "median": seconds[len(seconds) // 2],
           "p99": seconds[len(seconds) * 99 // 100], "longest": seconds[-1],
           "worker_mib": [before, memory()]}
    note(str(row))
    return row


def send(share: tuple[str, str, list[str], int]) -> list[float]:
    """Send requests, and return the seconds of each; RuntimeError if an answer is an error."""
    path, request, files, number = share
    contents = [(Path(file).read_bytes(), Path(file).parent.name) for file in files]
    seconds = []
    for n in range(number):
        message, label = contents[n % len(contents)]
        headers = f"Message-class: {label}\r\nSet: local\r\n" if request == "TELL" else ""
        elapsed, answer = ask(path, request, message, headers)
        if not answer.startswith(b"SPAMD/1.") or b" 0 EX_OK" not in answer[:30]:
            raise RuntimeError(f"{request} was answered {answer[:200]!r}")
        seconds.append(elapsed)
    return seconds


def ask(path: str, request: str, message: bytes, headers: str = "") -> tuple[float, bytes]:
    """Send one request; returns its seconds, and the answer."""
    started = time.perf_counter()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(120)
        client.connect(path)
        client.sendall(f"{request} SPAMC/1.5\r\nContent-length: {len(message)}\r\n{headers}\r\n"
                       .encode() + message)
        with client.makefile("rb") as reader:
            answer = reader.read()
    return time.perf_counter() - started, answer
