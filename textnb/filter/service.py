"""The settings, counters and log that the processes of the mail filter server share."""

from __future__ import annotations

import json
import mmap
import re
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

from textnb.errors import SourceError
from textnb.runtime.stderr import write_to_stderr
from textnb.runtime.values import Value

# The names of the counters: "told" counts TELL requests, "refused" the errors of clients, and
# "failed" the errors of the server.
COUNTERS = ("connections", "spam", "ham", "unsure", "told", "refused", "failed")
# The slot of a worker: the time at which it began to judge (0 if it is idle), and its counters.
_SLOT = struct.Struct(f"<d{len(COUNTERS)}q")
_ID = re.compile(rb"^message-id[ \t]*:[ \t]*(?:\r?\n[ \t]+)?([^\s][^\r\n]{0,249})",
                 re.IGNORECASE | re.MULTILINE)
# Linux writes up to 4096 bytes to a pipe at once, so lines of several processes do not mix.
_MAX_LINE = 4000


class Settings(Value):
    """The settings of a server.

    Attributes
    ----------
    model : str
        A model file.
    users : mapping of str to str
        The model file of each user who has one; mail of all others is classified by ``model``.
    judging : mapping
        Arguments of `MailFilter.load`: ``spam``, ``min_learned`` and ``cutoffs``.
    workers : int
        Processes that classify messages.
    max_bytes : int
        Longer messages get no verdict.
    timeout : float
        Seconds that classifying one message may take.
    client_timeout : float
        Seconds that a client has to send its request, and to read the answer.
    connections : int
        The maximum number of open connections per worker; others wait.
    grace : float
        Seconds in which requests are still answered after the server is told to stop.
    tellers : sequence of int
        User ids (UIDs) whose clients may report a message as spam or ham (the TELL command). If
        there are any, the server learns from these reports.
    ham : str or None
        The class of messages that are reported as ham, if several classes are not spam.
    learn_seconds : float
        Seconds between updates of the models from the reports.
    """

    model: str
    users: Mapping[str, str] = {}
    judging: Mapping[str, Any] = {}
    workers: int = 2
    max_bytes: int = 16 << 20
    timeout: float = 30.0
    client_timeout: float = 60.0
    connections: int = 32
    grace: float = 10.0
    tellers: Sequence[int] = ()
    ham: str | None = None
    learn_seconds: float = 60.0

    @property
    def models(self) -> list[str]:
        """All model files, each once."""
        return list(dict.fromkeys([self.model, *self.users.values()]))

    def as_text(self) -> str:
        """The settings as JSON, to pass them to a process."""
        return json.dumps(vars(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """The settings that `as_text` wrote."""
        return cls(**json.loads(text))


class Counters:
    """Counters of all workers in a shared file, in a slot for each worker.

    Parameters
    ----------
    descriptor : int
        A file of `counters_size` bytes.
    workers : int
    slot : int
        The slot of this worker. Only the server writes to slots of others, after they have ended.
    """

    def __init__(self, descriptor: int, workers: int, slot: int = 0) -> None:
        try:
            self._memory = mmap.mmap(descriptor, counters_size(workers))
        except OSError as error:
            raise SourceError(f"the temporary file of the counters can't be mapped into memory: "
                              f"{error.strerror or error}") from error
        self._workers, self._slot = workers, slot

    def begin(self) -> None:
        """Note that this worker starts to classify a message."""
        struct.pack_into("<d", self._memory, self._slot * _SLOT.size, time.monotonic())

    def end(self) -> None:
        """Note that this worker is idle."""
        self.free(self._slot)

    def free(self, worker: int) -> None:
        """Note that a worker is idle."""
        struct.pack_into("<d", self._memory, worker * _SLOT.size, 0.0)

    def add(self, name: str) -> None:
        """Count an event of this worker."""
        # In a slot, the time and each of the counters have 8 bytes.
        offset = self._slot * _SLOT.size + 8 * (1 + COUNTERS.index(name))
        number, = struct.unpack_from("<q", self._memory, offset)
        struct.pack_into("<q", self._memory, offset, number + 1)

    def busy_seconds(self, worker: int) -> float:
        """How long a worker has been busy with its message; 0 if it is idle."""
        start, = struct.unpack_from("<d", self._memory, worker * _SLOT.size)
        return time.monotonic() - start if start else 0.0

    def totals(self) -> dict[str, int]:
        """The sums over all workers."""
        counts = [_SLOT.unpack_from(self._memory, worker * _SLOT.size)[1:]
                  for worker in range(self._workers)]
        return {name: sum(values) for name, values in zip(COUNTERS, zip(*counts, strict=True),
                                                          strict=True)}


def counters_size(workers: int) -> int:
    """Size in bytes of the file for the counters of this number of workers."""
    return workers * _SLOT.size


def log(event: str, **details: Any) -> None:
    """Write an event as a line of JSON, without any text of a message; ignore a failed write."""
    now = time.time()
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    line = json.dumps({"time": when, "event": event, **details})
    write_to_stderr(line[:_MAX_LINE])


def message_id(message: bytes) -> str | None:
    """The first Message-ID in the headers of a message, as mail systems log it."""
    match = _ID.search(re.split(rb"(?m)^\r?\n", message[:1 << 16], maxsplit=1)[0])
    return None if match is None else re.sub("[^!-~]+", "_", match[1].decode("latin-1").strip())
