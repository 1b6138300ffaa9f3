"""Mail filters that listen on a socket: messages a second, seconds of a message, memory.

Half of SpamAssassin's corpus is learned, in order of time. The other half is sent again and again
by eight clients, each a process that sends its next message once the last is answered, as `spamc`
does, but without starting a program. The same clients ask SpamAssassin's `spamd`, which judges by
its local rules.

    CHECK   a verdict
    TELL    one client tells classes of messages, which textnb learns within a minute
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

CLIENTS = 8
# A tenth as many are sent before, and not counted.
MESSAGES, FEWER, TOLD = 100_000, 10_000, 500
# spamd takes some fifty times as long.
TO_SPAMD = 500
TERMS = 1_000_000


def served(quick: bool = False) -> dict[str, Any]:
    """A row for each server, model and request; `quick` sends a hundredth."""
    from benchmarks.data import Missing
    from benchmarks.filters import ARCHIVES, cleaned, messages

    archive = Path(os.environ.get("TEXTNB_CORPORA", "/nonexistent")) / ARCHIVES["SpamAssassin"]
    if not archive.is_file():
        raise Missing(f"served needs {archive.name} in the folder TEXTNB_CORPORA")
    with tempfile.TemporaryDirectory(prefix="served-") as name:
        place = Path(name)
        for number, (label, raw) in enumerate(messages(archive)):
            path = place / "mail" / label / f"{number:05d}.eml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(cleaned(raw))
        return {"rows": list(measure(place, 100 if quick else 1))}


def measure(place: Path, part: int) -> Iterator[dict[str, Any]]:
    from benchmarks.filters import table

    mail, judged = table(place / "mail", "tokens"), table(place / "mail", "path")
    half = mail.height // 2
    paths = judged["path"].to_list()[half:]
    user = pwd.getpwuid(os.getuid()).pw_name
    for model, terms, number in (("default for mail", 0, MESSAGES),
                                 ("of a million terms", TERMS // part, FEWER)):
        file = place / f"{terms}.textnb"
        learn(mail[:half], terms, file)
        command = [sys.executable, "-m", "textnb", "serve", str(file), "--allow-tell", user]
        with Server([*command, "--listen", str(place / f"s{terms}")], place / f"s{terms}") as one:
            yield one.row("CHECK", "textnb", model, paths, number // part)
            yield one.row("TELL", "textnb", model, paths, TOLD // part)
    if program := shutil.which("spamd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        command = [program, "--local", "--max-children=2", "--min-children=2", "--nouser-config"]
        with Server([*command, f"--socketpath={place / 'sa'}"], place / "sa") as one:
            yield one.row("CHECK", "spamd", "local rules", paths, TO_SPAMD // part)


def learn(rows: Any, terms: int, file: Path) -> None:
    """The default of mail; with terms that no message has, for a model of so many."""
    import polars as pl

    import textnb

    if terms:
        # Each in two messages, as many in each as in a long message.
        names = [f"none{n}" for n in range(terms)] * 2
        more = pl.DataFrame({"tokens": [names[n:n + 1000] for n in range(0, len(names), 1000)]})
        rows = pl.concat([rows, more.with_columns(
            label=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("ham"))
            .otherwise(pl.lit("spam")))], how="diagonal")
    textnb.mail_classifier().fit(rows).save(file)


class Server:
    """A server in a process of its own, stopped at the end."""

    def __init__(self, command: Sequence[str], path: Path):
        self.path = str(path)
        self.log = Path(f"{path}.log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def __enter__(self) -> Server:
        for _ in range(600):
            try:
                if ask(self.path, "PING", b"")[1].startswith(b"SPAMD/"):
                    return self
            except OSError:
                time.sleep(0.1)
        self.__exit__()
        raise RuntimeError(f"no answer: {self.log.read_text()[-1000:]}")

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def row(
        self, request: str, server: str, model: str, paths: list[str], number: int
    ) -> dict[str, Any]:
        from benchmarks.process import descendants, status

        clients = 1 if request == "TELL" else CLIENTS
        number = max(number, 10 * clients)

        def run(number: int) -> list[float]:
            shares = [(self.path, request, paths[k::clients], number // clients)
                      for k in range(clients)]
            return [second for share in pool.map(send, shares) for second in share]

        def memory() -> float:
            return max(status(one, "VmRSS") for one in descendants(self.process.pid))

        with ProcessPoolExecutor(clients, mp_context=get_context("spawn")) as pool:
            run(number // 10)
            before, started = memory(), time.perf_counter()
            seconds = sorted(run(number))
            elapsed = time.perf_counter() - started
        return {"server": server, "model": model, "request": request, "clients": clients,
                "messages": len(seconds), "per_second": round(len(seconds) / elapsed, 1),
                "median": seconds[len(seconds) // 2],
                "p99": seconds[len(seconds) * 99 // 100], "longest": seconds[-1],
                "worker_mib": [round(before, 1), round(memory(), 1)]}


def send(share: tuple[str, str, list[str], int]) -> list[float]:
    """Seconds of each request; a verdict that is none is an error."""
    path, request, files, number = share
    contents = [(Path(file).read_bytes(), Path(file).parent.name) for file in files]
    found = []
    for n in range(number):
        message, label = contents[n % len(contents)]
        headers = f"Message-class: {label}\r\nSet: local\r\n" if request == "TELL" else ""
        elapsed, answer = ask(path, request, message, headers)
        if not answer.startswith(b"SPAMD/1.") or b" 0 EX_OK" not in answer[:30]:
            raise RuntimeError(f"{request} was answered {answer[:200]!r}")
        found.append(elapsed)
    return found


def ask(path: str, request: str, message: bytes, headers: str = "") -> tuple[float, bytes]:
    """Seconds, and the answer."""
    started = time.perf_counter()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(120)
        client.connect(path)
        client.sendall(f"{request} SPAMC/1.5\r\nContent-length: {len(message)}\r\n{headers}\r\n"
                       .encode() + message)
        blocks = []
        while block := client.recv(1 << 16):
            blocks.append(block)
    return time.perf_counter() - started, b"".join(blocks)
