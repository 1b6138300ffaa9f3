"""The settings of a server, as its workers get them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from textnb.runtime.values import Value


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
        Of one worker at the same time; others wait.
    grace : float
        Seconds in which requests are answered after the server was asked to stop.
    tellers : sequence of int
        The numbers of the system's users whose clients may tell what a message is. If there is any,
        the server learns.
    ham : str or None
        The class that is learned as ham, where the model has several that are not spam.
    learn_seconds : float
        Between two times at which the models learn what was told.
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


def from_text(text: str) -> Settings:
    """The settings that `Settings.as_text` wrote."""
    return Settings(**json.loads(text))
