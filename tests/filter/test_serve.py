"""textnb serve: real clients, replaced models, killed workers, and requests that mean harm."""

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM
from tests.filter.models import SWAPPED, saved
from tests.filter.server import HAM, HERE, SPAM, Server, received, wait_until
from textnb import MailFilter, MultinomialNB, NBLinear
from textnb.filter import service
from textnb.filter.service import Settings
from textnb.filter.worker import Worker

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
BEGUN = b"CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    saved(folder / "other.textnb", rows=SWAPPED)
    server = Server(folder, saved(folder / "m.textnb"), "--workers", 2, "--max-bytes", "5K",
                    "--client-timeout", 2, "--user", f"eve={folder / 'other.textnb'}",
                    "--user", f"o'voilà={folder / 'other.textnb'}")
    yield server
    server.stop()
    assert not os.path.exists(server.path)


@pytest.fixture
def judge(served):
    return MailFilter.load(Path(served.path).with_name("m.textnb"))


# Requests


def test_verdicts_are_those_of_the_filter(served, judge):
    for message, is_spam in ((SPAM, b"True"), (HAM, b"False")):
        odds = judge.judge(message).log_odds
        assert served.ask("CHECK", message) == (
            b"SPAMD/1.1 0 EX_OK\r\nSpam: %s ; %.1f / 5.0\r\n\r\n" % (is_spam, 5 + odds))
    assert served.ask("SYMBOLS", b"Subject: x\n\nzzz\n").endswith(b"TEXTNB_UNSURE")


def test_a_report_says_what_decided(served, judge):
    lines = served.ask("REPORT", SPAM).decode().splitlines()
    first = lines.index(" pts rule name              description") + 2
    table = [line.split(maxsplit=2) for line in lines[first:]]
    terms = judge.deciding_terms(SPAM, 12)
    assert {term for term, _ in terms} == {"cheap", "pills", "prize"}
    assert table[:-1] == [[f"{points:.1f}", "TEXTNB_TERM", term] for term, points in terms]
    # All points add up to the score.
    score = float(lines[-len(table) - 4].split("(")[1].split()[0])
    assert abs(sum(float(points) for points, *_ in table) - score) < 0.25
    assert b"TEXTNB_TERM" not in served.ask("REPORT_IFSPAM", HAM)


@pytest.mark.parametrize(("message", "header", "answer"), [
    (zlib.compress(SPAM), "Compress: zlib", b"Spam: True"),
    (zlib.compress(bytes(1 << 22)), "Compress: zlib", b"longer than"),
    # Users have models of their own.
    (SPAM, "User: eve", b"Spam: False"), (SPAM, "User: adam", b"Spam: True"),
    (SPAM, "User: o'voilà", b"Spam: False"), (SPAM, "User: ../eve", b"Spam: True"),
    (SPAM, "User: a\tb", b"76 EX_PROTOCOL")])
def test_headers_of_a_request(served, message, header, answer):
    assert answer in served.ask("CHECK", message, header)


def test_requests_without_a_length(served):
    assert b"Spam: True" in served.send(b"CHECK SPAMC/1.2\r\n\r\n" + SPAM)
    assert served.send(b"PING SPAMC/1.2\r\n") == b"SPAMD/1.5 0 PONG\r\n"
    assert served.send(b"PING SPAMC/1.5\r\n\r\n") == b"SPAMD/1.5 0 PONG\r\n"
    assert served.send(b"SKIP SPAMC/1.5\r\n\r\n") == b""


def test_the_status_counts_verdicts(served):
    counts = []
    for _ in range(2):
        served.ask("CHECK", SPAM)
        status = served.send(b"STATUS SPAMC/1.5\r\n\r\n").partition(b"\r\n\r\n")[2]
        counts.append(json.loads(status)["spam"])
    assert counts[1] == counts[0] + 1


def test_the_log_has_no_text(served):
    served.ask("CHECK", b"Message-ID: <one@two>\n" + SPAM, "User: adam")
    line = wait_until(lambda: [one for one in [*served.events] if one.get("message_id")])[-1]
    assert (line["verdict"], line["message_id"], line["user"]) == ("spam", "<one@two>", "adam")
    # A client that forgets all empty lines sends a message as headers of the request.
    assert b"cheap pills" in served.send(b"CHECK SPAMC/1.5\r\n" + SPAM.replace(b"\n\n", b"\n"))
    wait_until(lambda: "header not in" in json.dumps([*served.events]))
    assert "pills" not in json.dumps(served.events)


@pytest.mark.parametrize(("request_", "answer"), [
    (b"", b"76 EX_PROTOCOL closed"), (b"GET / HTTP/1.0\r\n\r\n", b"76 EX_PROTOCOL no command"),
    (BEGUN % 9999999, b"65 EX_DATAERR the message is longer"),
    (b"CHECK SPAMC/1.5\r\n\r\n" + bytes(6000), b"65 EX_DATAERR the message is longer"),
    (BEGUN % 0, b"65 EX_DATAERR the message is empty"),
    (b"C" * 20_000, b"76 EX_PROTOCOL a line is too long"),
    (b"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local\r\nContent-length: 3\r\n\r\nabc",
     b"69 EX_UNAVAILABLE this server does not learn")])
def test_requests_that_are_refused(served, request_, answer):
    try:
        got = served.send(request_)
    except (BrokenPipeError, ConnectionResetError):
        # It need not read to its end what it refuses.
        got = answer
    assert answer in got[:80]
    assert b"Spam: True" in served.ask("CHECK", SPAM)


@pytest.mark.slow
def test_slow_clients_hinder_nobody(served):
    slow = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for client in slow:
        client.settimeout(30)
        client.connect(served.path)
        client.sendall(BEGUN % 100 + b"abc")
    assert b"Spam: True" in served.ask("CHECK", SPAM)
    assert b"79 EX_TIMEOUT" in received(slow[0])
    for client in slow:
        client.close()


def test_clients_that_are_gone_are_no_error(served):
    # What they leave behind would be in the log at the end of these tests.
    for _ in range(50):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(served.path)
            client.sendall(b"PROCESS" + (BEGUN % len(SPAM)).removeprefix(b"CHECK") + SPAM)
    assert b"Spam: True" in served.ask("CHECK", SPAM)


def test_only_the_owner_and_the_group_may_connect(served):
    assert stat.S_IMODE(os.stat(served.path).st_mode) == 0o660


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("spamc") is None, reason="spamc is not installed")
def test_spamc(served):
    spamc = served.spamc
    assert spamc(b"", "-K")[0] == 0
    for message, code in ((SPAM, 1), (HAM, 0)):
        got, text = spamc(message, "-c")
        assert (got, text.endswith(b"/5.0\n")) == (code, True)
        assert spamc(message)[1].endswith(message)
        assert spamc(message, "--headers")[1].endswith(message)
    assert spamc(SPAM, "-y")[1] == b"TEXTNB_SPAM"
    assert b"textnb: spam" in spamc(SPAM, "-R")[1]
    assert b"textnb" not in spamc(HAM, "-r")[1]
    # Without -x, a message that is too long comes back as it is.
    assert spamc(SPAM + bytes(6000)) == (0, SPAM + bytes(6000))
    assert spamc(SPAM, "-u", "eve", "-c")[0] == 0


# Models and workers


def test_a_replaced_model_judges_the_next_message(serve, model, tmp_path):
    server = serve("--workers", 1)
    assert b"Spam: True" in server.ask("CHECK", SPAM)
    saved(model, rows=SWAPPED)
    assert b"Spam: False" in server.ask("CHECK", SPAM)
    server.wait_for("reloaded")
    # A file that is no model changes nothing, however it comes; nor does one that is gone.
    (tmp_path / "n").write_bytes(b"junk")
    os.replace(tmp_path / "n", model)
    assert b"Spam: False" in server.ask("CHECK", SPAM)
    assert "reason" in server.wait_for("not reloaded")
    model.unlink()
    assert b"Spam: False" in server.ask("CHECK", SPAM)
    # One that only the whole model can judge by.
    saved(model, MultinomialNB(l=0.0))
    assert b"Spam: True" in server.ask("CHECK", SPAM)
    saved(model, rows=SWAPPED)
    assert b"Spam: False" in server.ask("CHECK", SPAM)


@pytest.mark.slow
def test_a_killed_worker_is_replaced(serve):
    server = serve("--workers", 2)
    before = server.workers()
    assert len(before) == 2
    for worker in before:
        os.kill(worker, signal.SIGKILL)
    # A client that connects meanwhile waits.
    assert b"Spam: True" in server.ask("CHECK", SPAM)
    server.wait_for("ended", 2)
    assert not set(server.workers()) & set(before)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("reloading")
    assert b"Spam: True" in server.ask("CHECK", SPAM)


@pytest.mark.slow
def test_a_model_that_can_not_be_read_ends_no_worker(serve, model, tmp_path):
    server = serve("--workers", 2)
    before = server.workers()
    (tmp_path / "new").write_bytes(b"no model")
    os.replace(tmp_path / "new", model)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("not started", 2)
    assert server.workers() == before
    assert b"Spam: True" in server.ask("CHECK", SPAM)


@pytest.mark.slow
def test_workers_end_with_the_server(serve):
    server = serve("--workers", 2)
    processes = [Path(f"/proc/{worker}/cmdline") for worker in server.workers()]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(server.path)
        # Another request comes through, so a worker waits for the first one.
        assert b"Spam: True" in server.ask("CHECK", SPAM)
        server.process.kill()
        server.process.wait()
        # The socket of a killed server is taken over, even before its workers end.
        time.sleep(0.5)
        assert b"Spam: True" in serve("--workers", 1).ask("CHECK", SPAM)
        assert any(one.exists() and one.read_bytes() for one in processes)
    wait_until(lambda: not any(one.exists() and one.read_bytes() for one in processes))


@pytest.mark.slow
def test_a_server_that_stops_leaves_the_socket_of_another_one(serve):
    first = serve("--workers", 1)
    os.unlink(first.path)
    second = serve("--workers", 1)
    first.stop()
    assert b"Spam: True" in second.ask("CHECK", SPAM)


@pytest.mark.slow
def test_requests_that_were_begun_are_answered_at_the_end(serve):
    server = serve("--workers", 1)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(server.path)
        client.sendall(BEGUN % len(SPAM))
        # Another request comes through, so the first one has been accepted.
        assert b"Spam: True" in server.ask("CHECK", SPAM)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("stopping")
        client.sendall(SPAM)
        assert b"Spam: True" in received(client)
    assert server.process.wait(30) == 0


@pytest.fixture
def worker(model, tmp_path):
    with open(tmp_path / "counters", "w+b") as file:
        file.truncate(service.counters_size(1))
        return Worker(Settings(model=str(model)), service.Counters(file.fileno(), 1))


def test_no_connection_is_lost_in_the_moment_of_a_stop(worker, tmp_path):
    async def connect_after(turns: int) -> None:
        """A client comes some turns of the loop after the worker is asked to stop."""
        stop, errors = asyncio.Event(), []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
            listener.bind(str(tmp_path / f"s{turns}"))
            listener.listen()
            listener.setblocking(False)
            serving = asyncio.ensure_future(worker.serve([listener.dup()], stop))
            await asyncio.sleep(0.01)
            stop.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            client.connect(listener.getsockname())
            client.sendall(b"PING SPAMC/1.5\r\n\r\n")
            await serving
            await asyncio.sleep(0.01)
            try:
                # The next worker takes it.
                listener.accept()[0].close()
            except BlockingIOError:
                client.settimeout(5)
                assert client.recv(100).startswith(b"SPAMD/1.5 0 PONG")
        assert not errors

    for turns in range(8):
        asyncio.run(connect_after(turns))


def test_an_answer_that_is_read_late_is_whole(worker):
    message, answer = SPAM + b"x\n" * 15_000, b""

    async def read_late() -> None:
        nonlocal answer
        own, client = socket.socketpair()
        own.setblocking(False)
        # So that some of the answer is left when the connection is closed.
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        with client:
            client.sendall(b"PROCESS SPAMC/1.5\r\n\r\n" + message)
            client.shutdown(socket.SHUT_WR)
            answering = asyncio.ensure_future(worker._answer(own))
            await asyncio.sleep(0.05)
            assert not answering.done()
            answer = await asyncio.to_thread(client.recv, 1 << 20, socket.MSG_WAITALL)
            await answering

    asyncio.run(read_late())
    assert answer.endswith(message.partition(b"\n")[2])


# What can't be served


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("arguments", "code", "error"), [
    ("none.textnb --listen x", 1, "no such model file"),
    ("m.textnb --listen 0.0.0.0:783", 2, "loopback"),
    ("m.textnb --listen [::]:783", 2, "loopback"),
    ("m.textnb --listen example.org:783", 2, "HOST:PORT"),
    ("m.textnb --listen m.textnb", 1, "a file that is not a socket"),
    ("m.textnb --listen no/such/folder/s", 1, "No such file"),
    ("m.textnb --listen " + "x" * 200, 1, "100 bytes"),
    ("m.textnb --listen x --user eve", 2, "NAME=FILE"),
    ("m.textnb --listen x --user eve=none.textnb", 1, "no such model file"),
    ("m.textnb --listen x --timeout 0", 2, "--timeout"),
    ("m.textnb --listen x --max-bytes many", 2, "--max-bytes"),
    ("m.textnb --listen x --spam-class junk", 2, "no class 'junk'"),
    ("m.textnb --listen x --ham-class junk", 2,
     "has no class 'junk' that is not spam; its classes are 'ham', 'spam', and 'spam' is spam"),
    ("m.textnb --listen x --ham-class spam", 2, "has no class 'spam' that is not"),
    ("linear.textnb --listen x --allow-tell 0", 1, "NBLinear"),
    ("junk.textnb --listen x", 1, "junk.textnb"), ("m.textnb", 2, "--listen")])
def test_what_can_not_be_served_is_said_at_once(model, tmp_path, arguments, code, error):
    saved(tmp_path / "linear.textnb", NBLinear())
    (tmp_path / "junk.textnb").write_bytes(b"junk")
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR")}
    done = subprocess.run(
        [*PROGRAM, "serve", *arguments.split()], capture_output=True, text=True, timeout=60,
        cwd=tmp_path, env={**environment, "PYTHONPATH": HERE})
    assert (done.returncode, error in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "x").exists()
