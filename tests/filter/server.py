"""A server in a process of its own, for tests."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from tests.cli.conftest import PROGRAM

HERE = str(Path(__file__).parents[2])
SPAM = b"Subject: cheap\n\ncheap pills, a prize\n"
HAM = b"Subject: minutes\n\nsee you at noon for the meeting\n"


def wait_until(done, what=''):
    """What a function gives back at last, within a minute."""
    end = time.monotonic() + 60
    while not (found := done()):
        assert time.monotonic() < end, what
        time.sleep(0.01)
    return found


class Server:
    """A server in a process of its own, and what it has logged."""

    def __init__(self, folder, model, *arguments):
        self.path = str(folder / "s")
        self.process = subprocess.Popen(
            [*PROGRAM, "serve", str(model), "--listen", self.path, *map(str, arguments)],
            stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": HERE}, cwd=folder)
        self.events: list[dict[str, Any]] = []
        self.other = ""
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.wait_for("serving")

    def _read(self):
        for line in self.process.stderr:
            try:
                self.events.append(json.loads(line))
            except ValueError:
                self.other += line.decode()

    def wait_for(self, event, number=1):
        """The logged event of this name, or its second, third ..."""
        def found():
            has_ended = self.process.poll() is not None and not self._reading.is_alive()
            events = [one for one in [*self.events] if one["event"] == event][number - 1:]
            assert events or not has_ended, f"no {event!r}: {self.events} {self.other}"
            return events

        return wait_until(found, f"no {event!r}: {self.events}")[0]

    def send(self, request):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(self.path)
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            return received(client)

    def ask(self, command, message, *headers):
        head = "".join(f"{header}\r\n" for header in (f"Content-length: {len(message)}", *headers))
        return self.send(f"{command} SPAMC/1.5\r\n{head}\r\n".encode() + message)

    def spamc(self, message, *arguments):
        done = subprocess.run(["spamc", "-U", self.path, *arguments], input=message,
                              capture_output=True, check=False)
        return done.returncode, done.stdout

    def workers(self):
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True,
                                  text=True, check=False)
        return sorted(map(int, children.stdout.split()))

    def stop(self):
        """End it, unless it has ended: in order, and without a line that is no event."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(30) == 0
        self._reading.join(30)
        self.process.stderr.close()
        assert not self.other, self.other


def received(client):
    blocks = []
    while block := client.recv(1 << 16):
        blocks.append(block)
    return b"".join(blocks)
