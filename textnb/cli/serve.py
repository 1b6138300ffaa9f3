"""The verb serve: verdicts over a socket, in the protocol of SpamAssassin's spamd."""

from __future__ import annotations

import os
from dataclasses import dataclass

from textnb.cli import signals
from textnb.cli.filter import VerdictOptions
from textnb.cli.inputs import ModelFile
from textnb.cli.options import option, verb
from textnb.cli.verdicts import MAX_TIMEOUT_SECONDS
from textnb.errors import ParameterError

_SOCKET_NAME = "textnb.sock"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Verdicts(VerdictOptions):
    """Verdict."""

    user: list[str] | None = option(
        "Judge the mail of a user by a model file of its own; repeat it for several. The mail of "
        "all other users is judged by MODEL.", metavar="NAME=FILE")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Service:
    """Service."""

    listen: list[str] | None = option(
        "Path of a Unix socket, or HOST:PORT of a loopback address; repeat it for several.  "
        f"[default: {_SOCKET_NAME} in $RUNTIME_DIRECTORY or $XDG_RUNTIME_DIR]", metavar="ADDRESS")
    workers: int | None = option("Processes that judge.  [default: one per processor]", minimum=1)
    timeout: float = option("Seconds after which judging one message fails.", default=30.0)
    client_timeout: float = option(
        "Seconds in which a client must have sent its message.", default=60.0)
    max_bytes: str = option(
        "Longest message that is judged, in bytes or with a unit: 500K, 16M.", default="16M",
        metavar="N")
    connections: int = option(
        "Connections of one worker at the same time; further ones wait.", default=32, minimum=1,
        is_common=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Learning:
    """Learning."""

    allow_tell: list[str] | None = option(
        "Learn what clients of this user of the system tell (spamc -L), on Unix sockets; repeat "
        "it for several. Without it, nobody may.", metavar="USER")
    ham_class: str | None = option(
        "Class that is learned as ham.  [default: the one that is not spam]", metavar="CLASS")
    learn_seconds: float = option(
        "Seconds between two times at which the model learns what was told.", default=60.0)


@verb
def serve(file: ModelFile, options: Verdicts, learning: Learning, service: Service) -> None:
    """Judge messages over a socket, in the protocol of SpamAssassin's spamd.

    spamc, Exim, spamass-milter and mail readers that speak to spamd work unchanged. The server
    logs a line of JSON per verdict on standard error. A replaced model file is used from the next
    message on. SIGTERM ends the server once its last requests are answered.
    """
    from textnb.filter.server import Server, listen
    from textnb.filter.service import Settings
    from textnb.runtime.sizes import byte_size

    for name, value in (("--timeout", service.timeout),
                        ("--client-timeout", service.client_timeout),
                        ("--learn-seconds", learning.learn_seconds)):
        if not 0.0 < value <= MAX_TIMEOUT_SECONDS:
            raise ParameterError.out_of_range(
                name, f"seconds, more than 0 and up to {MAX_TIMEOUT_SECONDS:,.0f}", value)
    # "Tellers" may send spamd's command TELL, which asks to learn a message.
    settings = Settings(
        model=os.path.abspath(file.model), users=_models_of_users(options.user or []),
        judging=options.settings(),
        workers=service.workers or os.cpu_count() or 1,
        max_bytes=byte_size("--max-bytes", service.max_bytes),
        timeout=service.timeout, client_timeout=service.client_timeout,
        connections=service.connections, tellers=_user_ids(learning.allow_tell or []),
        ham=learning.ham_class, learn_seconds=learning.learn_seconds)
    listeners = [listen(address) for address in service.listen or [_default_socket()]]
    # The server handles signals itself.
    signals.release()
    Server(settings, listeners).run()


def _models_of_users(values: list[str]) -> dict[str, str]:
    """The model file of each user, by the user's name, from values NAME=FILE."""
    models: dict[str, str] = {}
    for value in values:
        name, _, path = value.partition("=")
        if not name or not path or name in models:
            raise ParameterError.out_of_range("--user", "NAME=FILE, once for each name", value)
        models[name] = os.path.abspath(path)
    return models


def _user_ids(names: list[str]) -> list[int]:
    """The ids of users of this system, by their names or as digits."""
    import pwd

    ids = []
    for name in names:
        try:
            ids.append(int(name) if name.isdecimal() else pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise ParameterError.out_of_range(
                "--allow-tell", "the name or number of a user of this system", name) from None
    return ids


def _default_socket() -> str:
    folder = os.environ.get("RUNTIME_DIRECTORY") or os.environ.get("XDG_RUNTIME_DIR")
    if not folder:
        raise ParameterError("say where to listen: --listen PATH of a Unix socket, such as "
                             "/run/textnb/textnb.sock, or --listen 127.0.0.1:783")
    return os.path.join(folder.split(":")[0], _SOCKET_NAME)
