"""The server: it listens, keeps its workers running, and stops them.

    server ──> worker 1     each takes connections from the same sockets (textnb.filter.worker)
           ──> worker 2
           ──> learner      now and then, if clients may correct verdicts (textnb.filter.learner)
             <── shared counters: a worker that judges for too long is killed, and replaced

The server itself reads no mail and no model, so no message can make it fail.
"""

from __future__ import annotations

import ipaddress
import math
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress

from textnb.errors import ParameterError, SourceError, TextnbError
from textnb.filter.service import Counters, Settings, counters_size, log
from textnb.filter.worker import BAD_SETTINGS, READY

# The number of connections that wait to be accepted; the owner and the group may connect.
_BACKLOG = 256
_SOCKET_MODE = 0o660
# The time between two looks at the workers.
_WATCH_SECONDS = 0.2
# If a worker hangs in a library, its own alarm may fail: this much later, the server kills it.
_KILL_DELAY_SECONDS = 2.0
# A worker that ends sooner after its start will probably end again: the server waits this long.
_MIN_LIFE_SECONDS = 1.0
# The maximum time that a worker takes to read its models.
_MAX_START_SECONDS = 120.0
# -P: processes import no modules from the folder in which the server is started.
_RUN_MODULE = (sys.executable, "-P", "-m")
_LEARNER = (*_RUN_MODULE, "textnb.filter.learner")


def listen(address: str) -> socket.socket:
    """Open a listening socket.

    Parameters
    ----------
    address : str
        The path of a Unix socket, or HOST:PORT of a loopback address.

    Raises
    ------
    ParameterError
        If the address is not local to this machine.
    SourceError
        If it is impossible to listen there, for example because another server does.
    """
    host, colon, port = address.rpartition(":")
    try:
        if "/" not in address and colon:
            return _listen_tcp(address, host.strip("[]"), port)
        return _listen_unix(address)
    except OSError as error:
        raise SourceError(f"can't listen at {address}: {error.strerror or error}") from None


def _listen_tcp(address: str, host: str, port: str) -> socket.socket:
    try:
        ip = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
        port_number = int(port)
    except ValueError:
        raise ParameterError.out_of_range(
            "--listen", "the path of a socket, or HOST:PORT such as 127.0.0.1:783", address
            ) from None
    if not ip.is_loopback or not 0 <= port_number < 1 << 16:
        raise ParameterError(
            f"--listen {address}: the protocol has no passwords, so TCP is for loopback addresses "
            "such as 127.0.0.1:783 alone")
    family = socket.AF_INET6 if ip.version == 6 else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((str(ip), port_number))
    listener.listen(_BACKLOG)
    return listener


def _listen_unix(path: str) -> socket.socket:
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise SourceError(f"can't listen at {path}: there is a file that is not a socket")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                # The server of this socket was killed.
                os.unlink(path)
            else:
                raise SourceError(f"can't listen at {path}: another server does")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The socket must have its mode from the start, before anybody can connect.
    old_mask = os.umask(0o777 & ~_SOCKET_MODE)
    try:
        listener.bind(path)
    except OSError as error:
        if "too long" in str(error):
            raise SourceError(f"can't listen at {path}: the path of a socket has up to about 100 "
                              "bytes") from None
        raise
    finally:
        os.umask(old_mask)
    listener.listen(_BACKLOG)
    return listener


class Server:
    """Listens, and keeps workers running.

    Parameters
    ----------
    settings : Settings
    listeners : sequence of socket
    """

    def __init__(self, settings: Settings, listeners: Sequence[socket.socket]) -> None:
        self._settings, self._listeners = settings, listeners
        # The files of Unix sockets. Another server may have replaced one when this server stops.
        self._files = {name: os.stat(name) for name in (
            listener.getsockname() for listener in listeners) if isinstance(name, str)}
        # Workers write their counters to this file, which is open as long as the server runs.
        self._shared = tempfile.TemporaryFile()  # noqa: SIM115
        self._shared.truncate(counters_size(settings.workers))
        self._counters = Counters(self._shared.fileno(), settings.workers)
        self._workers: list[tuple[subprocess.Popen[bytes], float]] = []
        # Workers that were replaced, and still answer their last requests.
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._signals: set[int] = set()
        self._learner: subprocess.Popen[bytes] | None = None
        # The number of corrections by clients (TELL) when the last learner started, and the time of
        # its start. -1 at first, because corrections may be pending from an earlier run.
        self._n_told, self._learner_start = -1, -math.inf

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; SIGHUP replaces the workers, one after the other.

        Raises
        ------
        TextnbError
            If the workers can't read a model, or do not start.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: self._signals.add(number))
        try:
            # Tellers are the users who may correct verdicts.
            if self._settings.tellers:
                _check_that_models_learn(self._settings.models)
            workers = [self._start(number) for number in range(self._settings.workers)]
            self._workers = [(worker, time.monotonic()) for worker in workers]
            for worker in workers:
                _wait_for(worker)
            log("serving", listen=[_address_of(listener) for listener in self._listeners],
                workers=len(workers), model=self._settings.model)
            while not self._signals & {signal.SIGTERM, signal.SIGINT}:
                self._watch()
                self._learn()
                time.sleep(_WATCH_SECONDS)
            log("stopping")
        finally:
            self._stop()

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        # The worker that had this number before may have been killed while it was busy.
        self._counters.free(number)
        descriptors = [listener.fileno() for listener in self._listeners]
        return subprocess.Popen(
            [*_RUN_MODULE, "textnb.filter.worker", self._settings.as_text(),
             str(self._shared.fileno()), str(number), *map(str, descriptors)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=True,
            pass_fds=[self._shared.fileno(), *descriptors], start_new_session=True)

    def _watch(self) -> None:
        """Replace the workers that have ended or hang, and all of them after SIGHUP."""
        limit = self._settings.timeout
        for number, (worker, start) in enumerate(self._workers):
            if limit and self._counters.busy_seconds(number) > limit + _KILL_DELAY_SECONDS:
                log("killed", worker=worker.pid, reason="it judges one message for too long")
                worker.kill()
                worker.wait()
            if worker.poll() is not None:
                log("ended", worker=worker.pid, code=worker.returncode)
                if time.monotonic() - start < _MIN_LIFE_SECONDS:
                    time.sleep(_MIN_LIFE_SECONDS)
                self._replace(number)
        if signal.SIGHUP in self._signals:
            self._signals.discard(signal.SIGHUP)
            log("reloading")
            for number, (worker, _) in enumerate(self._workers):
                if self._replace(number):
                    worker.terminate()
                    self._leaving.append(worker)
        self._leaving = [worker for worker in self._leaving if worker.poll() is None]

    def _learn(self) -> None:
        """Start a learner if clients have corrected messages since the last one."""
        if not self._settings.tellers:
            return
        if self._learner is not None:
            if self._learner.poll() is None:
                return
            if self._learner.returncode:
                # It has failed, perhaps because the disk is full, or was killed: start another one.
                self._n_told = -1
        n_told, now = self._counters.totals()["told"], time.monotonic()
        if n_told != self._n_told and now - self._learner_start >= self._settings.learn_seconds:
            self._n_told, self._learner_start = n_told, now
            self._learner = subprocess.Popen(
                [*_LEARNER, "learn", *self._settings.models], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, start_new_session=True)

    def _replace(self, number: int) -> bool:
        """Start a successor of a worker, and return whether it is ready.

        If it can't read its models, the old worker stays, with the start of this attempt: if the
        old one has ended, the next attempt waits a little.
        """
        worker, start = self._start(number), time.monotonic()
        try:
            _wait_for(worker)
        except TextnbError as error:
            log("not started", worker=worker.pid, reason=str(error))
            self._workers[number] = self._workers[number][0], start
            return False
        self._workers[number] = worker, start
        return True

    def _stop(self) -> None:
        """Let workers finish their requests, stop all processes, and close the sockets."""
        workers = [*self._leaving, *(worker for worker, _ in self._workers)]
        for worker in workers:
            assert worker.stdin is not None
            # This asks the worker to stop.
            worker.stdin.close()
        # A second longer than workers take themselves.
        end = time.monotonic() + self._settings.grace + 1.0
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(max(0.0, end - time.monotonic()))
            worker.kill()
            worker.wait()
        if self._learner is not None:
            # What it has not learned stays in the ledger, for the learner of the next run.
            self._learner.terminate()
            self._learner.wait()
        # Before the listeners are closed, as then the number of a file could be another one's.
        for path, file in self._files.items():
            with suppress(OSError):
                if os.path.samestat(os.stat(path), file):
                    os.unlink(path)
        for listener in self._listeners:
            listener.close()


def _check_that_models_learn(models: Sequence[str]) -> None:
    result = subprocess.run([*_LEARNER, "check", *models], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, check=False)
    if result.returncode:
        raise SourceError(result.stdout.decode("utf-8", "replace")
                          or f"{', '.join(models)} could not be read "
                          f"(code {result.returncode})")


def _wait_for(worker: subprocess.Popen[bytes]) -> None:
    """Wait until a worker has read its models."""
    assert worker.stdout is not None
    output, end = b"", time.monotonic() + _MAX_START_SECONDS
    while not output.endswith(READY):
        readable, _, _ = select.select([worker.stdout], [], [], max(0.0, end - time.monotonic()))
        if not readable:
            worker.kill()
        block = os.read(worker.stdout.fileno(), 1 << 12)
        if not block:
            code = worker.wait()
            error_type = ParameterError if code == BAD_SETTINGS else SourceError
            raise error_type(output.decode("utf-8", "replace").strip()
                             or f"a worker ended with code {code} before it was ready")
        output += block


def _address_of(listener: socket.socket) -> str:
    """The path of a socket, or its HOST:PORT."""
    name = listener.getsockname()
    return name if isinstance(name, str) else f"{name[0]}:{name[1]}"
