"""A server in a process of its own, for tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl

from tests.cli.conftest import PROGRAM
from textnb import MultinomialNB, TextClassifier

HERE = str(Path(__file__).parents[2])
SPAM = b"Subject: cheap\n\ncheap pills, a prize\n"
HAM = b"Subject: minutes\n\nsee you at noon for the minutes\n"


def saved(path: Path, swapped: bool = False, estimator: Any = None) -> Path:
    labels = ["ham", "ham", "spam", "spam"] if swapped else ["spam", "spam", "ham", "ham"]
    TextClassifier(estimator or MultinomialNB(), text="body").fit(pl.DataFrame({
        "body": ["cheap pills", "a prize for you", "see you at noon", "the minutes"] * 5,
        "label": labels * 5})).save(path)
    return path


class Server:
    """A server in a process of its own, and what it has logged."""

    def __init__(self, folder: Path, model: Path, *arguments: object) -> None:
        self.path = str(folder / "s")
        self.process = subprocess.Popen(
            [*PROGRAM, "serve", str(model), "--listen", self.path, *map(str, arguments)],
            stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": HERE}, cwd=folder)
        self.events: list[dict[str, Any]] = []
        self.other = ""
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.wait_for("serving")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                self.events.append(json.loads(line))
            except ValueError:
                self.other += line.decode()

    def wait_for(self, event: str, number: int = 1) -> dict[str, Any]:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = [one for one in [*self.events] if one["event"] == event]
            if len(found) >= number:
                return found[number - 1]
            if self.process.poll() is not None and not self._reading.is_alive():
                break
            time.sleep(0.01)
        raise AssertionError(f"no {event!r}: {self.events} {self.other}")

    def send(self, request: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(self.path)
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            return received(client)

    def ask(self, command: str, message: bytes, *headers: str) -> bytes:
        head = "".join(f"{header}\r\n" for header in (f"Content-length: {len(message)}", *headers))
        return self.send(f"{command} SPAMC/1.5\r\n{head}\r\n".encode() + message)

    def workers(self) -> list[int]:
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True,
                                  text=True, check=False)
        return sorted(map(int, children.stdout.split()))

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(30)
        self._reading.join(30)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


def received(client: socket.socket) -> bytes:
    blocks = []
    while block := client.recv(1 << 16):
        blocks.append(block)
    return b"".join(blocks)
