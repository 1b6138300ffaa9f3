"""What the processes of a server share: settings, counters, and a log."""

from __future__ import annotations

import json
import mmap
import re
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

from textnb.runtime.stderr import tell
from textnb.runtime.values import Value

COUNTED = ("connections", "spam", "ham", "unsure", "told", "refused", "failed")
_SLOT = struct.Struct(f"<d{len(COUNTED)}q")
_ID = re.compile(rb"^message-id[ \t]*:[ \t\r\n]*([^\r\n]{1,250})", re.IGNORECASE | re.MULTILINE)
# A line of at most these bytes is written to a pipe as a whole, also beside other processes.
_LONGEST = 4000


class Settings(Value):
    """The settings of a server.

    Attributes
    ----------
    model : str
        A model file.
    users : mapping of str to str
        Model files of users; all others are judged by ``model``.
    judging : mapping
        ``spam``, ``least_learned`` and ``cutoffs``, as of `MailFilter.load`.
    workers : int
        Processes that judge.
    max_bytes : int
        A longer message gets no verdict.
    timeout : float
        Seconds after which judging one message fails.
    client_timeout : float
        Seconds in which a client must have sent its request, and taken the answer.
    connections : int
        The most connections of one worker at the same time; others wait.
    grace : float
        Seconds in which requests are answered after the server was asked to stop.
    tellers : sequence of int
        The numbers of the system's users whose clients may tell what a message is. If there is any,
        the server learns.
    ham : str or None
        The class that is learned as ham, where the model has several that are not spam.
    learn_seconds : float
        Seconds between two times at which the models learn what was told.
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
        return json.dumps(vars(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """The settings that `as_text` wrote."""
        return cls(**json.loads(text))


class Counters:
    """The slots of some workers in one shared file.

    Parameters
    ----------
    descriptor : int
        A file of `counters_size` bytes.
    workers : int
    own : int
        The slot that this process writes; no other process writes it.
    """

    def __init__(self, descriptor: int, workers: int, own: int = 0) -> None:
        self._memory = mmap.mmap(descriptor, counters_size(workers))
        self._workers, self._own = workers, own

    def begin(self) -> None:
        """This worker judges from now on."""
        struct.pack_into("<d", self._memory, self._own * _SLOT.size, time.monotonic())

    def end(self) -> None:
        """This worker waits."""
        self.free(self._own)

    def free(self, worker: int) -> None:
        """Note that a worker does not judge, as its process has ended."""
        struct.pack_into("<d", self._memory, worker * _SLOT.size, 0.0)

    def add(self, name: str) -> None:
        at = self._own * _SLOT.size + 8 * (1 + COUNTED.index(name))
        number, = struct.unpack_from("<q", self._memory, at)
        struct.pack_into("<q", self._memory, at, number + 1)

    def busy_seconds(self, worker: int) -> float:
        """How long a worker has been judging one message; 0 if it waits."""
        since, = struct.unpack_from("<d", self._memory, worker * _SLOT.size)
        return time.monotonic() - since if since else 0.0

    def totals(self) -> dict[str, int]:
        """The sums over all workers."""
        slots = [_SLOT.unpack_from(self._memory, worker * _SLOT.size)[1:]
                 for worker in range(self._workers)]
        return {name: sum(values) for name, values in zip(COUNTED, zip(*slots, strict=True),
                                                          strict=True)}


def counters_size(workers: int) -> int:
    """Bytes of the file that counters of some workers share."""
    return workers * _SLOT.size


def log(event: str, **facts: Any) -> None:
    """Write one event as a line of JSON, without a mail's text; a failure changes nothing."""
    now = time.time()
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    line = json.dumps({"time": when, "event": event, **facts})
    tell(line[:_LONGEST])


def message_id(message: bytes) -> str | None:
    """The first Message-ID in the headers of a message, as mail systems log it."""
    headers = message[:1 << 16].partition(b"\n\n")[0].partition(b"\r\n\r\n")[0]
    match = _ID.search(headers)
    return None if match is None else re.sub("[^!-~]+", "_", match[1].decode("latin-1").strip())
