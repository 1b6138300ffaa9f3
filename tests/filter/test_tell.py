"""What clients tell a server is learned once, whatever ends meanwhile."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.filter.server import HAM, HERE, SPAM, Server, saved
from textnb import NBLinear, SourceError, TextClassifier, load
from textnb.filter import learner
from textnb.filter import ledger as ledgers
from textnb.filter.ledger import Ledger, message_key
from textnb.mail.tokens import mail_tokens

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
NEW = b"Message-ID: <1@a>\n\nbrand new watches\n"


def key(message: bytes) -> bytes:
    return message_key(None, {"body": message.decode()})


def tell(server: Server, told: str | None, message: bytes) -> bytes:
    headers = ["Remove: local"] if told is None else [f"Message-class: {told}", "Set: local"]
    return server.ask("TELL", message, *headers)


def counts(path: Path) -> dict[str, int]:
    model = load(path)
    return dict(zip(model.classes_.tolist(), model.estimator_.class_count_.tolist(), strict=True))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, saved(tmp_path / "m.textnb"), "--workers", 2, "--learn-seconds",
                    "0.1", "--allow-tell", getpass.getuser())
    yield server
    assert server.stop() == 0
    assert not server.other, server.other


def test_what_is_told_is_learned_as_update_learns_it(tmp_path: Path, server: Server) -> None:
    expected = tmp_path / "expected.textnb"
    shutil.copy(tmp_path / "m.textnb", expected)
    assert b"TEXTNB_UNSURE" in server.ask("SYMBOLS", NEW)
    assert b"DidSet: local" in tell(server, "spam", NEW)
    # Once is enough, also while it is pending.
    assert b"DidSet" not in tell(server, "spam", NEW)
    server.wait_for("learned")
    assert b"TEXTNB_SPAM" in server.ask("SYMBOLS", NEW)
    assert b"DidSet" not in tell(server, "spam", NEW)
    message = tmp_path / "new.eml"
    message.write_bytes(NEW)
    subprocess.run([sys.executable, "-m", "textnb", "update", expected, message, "--as", "spam"],
                   check=True, capture_output=True, env={**os.environ, "PYTHONPATH": HERE})
    assert (tmp_path / "m.textnb").read_bytes() == expected.read_bytes()


def test_the_tokens_of_a_message_are_learned(tmp_path: Path) -> None:
    path, expected = tmp_path / "m.textnb", tmp_path / "expected.textnb"
    rows = pl.DataFrame({"tokens": [mail_tokens(SPAM), mail_tokens(HAM)] * 10,
                         "label": ["spam", "ham"] * 10})
    TextClassifier(text="tokens").fit(rows).save(path)
    shutil.copy(path, expected)
    server = Server(tmp_path, path, "--workers", 1, "--learn-seconds", "0.1", "--allow-tell",
                    getpass.getuser())
    assert b"TEXTNB_SPAM" in server.ask("SYMBOLS", SPAM)
    assert b"TEXTNB_HAM" in server.ask("SYMBOLS", HAM)
    assert b"DidSet: local" in tell(server, "spam", NEW)
    server.wait_for("learned")
    assert server.stop() == 0
    message = tmp_path / "new.eml"
    message.write_bytes(NEW)
    subprocess.run([sys.executable, "-m", "textnb", "update", expected, message, "--as", "spam"],
                   check=True, capture_output=True, env={**os.environ, "PYTHONPATH": HERE})
    assert path.read_bytes() == expected.read_bytes()


@pytest.mark.slow
def test_another_class_takes_the_place_of_the_first(tmp_path: Path, server: Server) -> None:
    before = (tmp_path / "m.textnb").read_bytes()
    assert b"DidSet" in tell(server, "spam", NEW)
    server.wait_for("learned")
    assert counts(tmp_path / "m.textnb") == {"ham": 10, "spam": 11}
    assert b"DidSet" in tell(server, "ham", NEW)
    server.wait_for("learned", 2)
    assert counts(tmp_path / "m.textnb") == {"ham": 11, "spam": 10}
    # Its class need not be known to forget it.
    assert b"DidRemove: local" in tell(server, None, NEW)
    server.wait_for("learned", 3)
    assert load(tmp_path / "m.textnb").estimator_.class_count_.tolist() == [10, 10]
    assert b"DidRemove" not in tell(server, None, NEW)
    assert b"DidRemove" not in tell(server, None, HAM)
    assert (tmp_path / "m.textnb").read_bytes() == before


@pytest.mark.slow
def test_no_text_stays_in_the_ledger(tmp_path: Path, server: Server) -> None:
    tell(server, "spam", NEW)
    server.wait_for("learned")
    path = tmp_path / "m.textnb.ledger"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    end = time.monotonic() + 20
    with Ledger(tmp_path / "m.textnb") as ledger:
        while ledger.pending(9):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert len(ledger) == 1
    database = sqlite3.connect(path)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    assert b"watches" not in path.read_bytes()


def test_what_is_told_must_be_clear(server: Server) -> None:
    for headers in (["Set: local"], ["Set: local", "Message-class: eggs"], ["Message-class: spam"],
                    ["Set: remote", "Message-class: spam"],
                    ["Set: local", "Remove: local", "Message-class: spam"]):
        assert b"76 EX_PROTOCOL" in server.ask("TELL", NEW, *headers)
    assert b"65 EX_DATAERR" in server.ask("TELL", b"", "Set: local", "Message-class: spam")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("spamc") is None, reason="spamc is not installed")
def test_spamc_tells(tmp_path: Path, server: Server) -> None:
    def spamc(told: str) -> bytes:
        return subprocess.run(["spamc", "-U", server.path, "-L", told], input=NEW,
                              capture_output=True, check=False).stdout

    assert b"successfully" in spamc("spam")
    assert b"already" in spamc("spam")
    assert b"successfully" in spamc("forget")


@pytest.mark.slow
def test_only_named_users_tell(tmp_path: Path) -> None:
    saved(tmp_path / "m.textnb")
    server = Server(tmp_path, tmp_path / "m.textnb", "--workers", 1, "--allow-tell",
                    os.getuid() + 1)
    assert b"77 EX_NOPERM" in tell(server, "spam", NEW)
    assert not (tmp_path / "m.textnb.ledger").exists()
    assert server.stop() == 0


@pytest.mark.slow
def test_a_model_that_can_not_learn_is_refused_at_once(tmp_path: Path) -> None:
    saved(tmp_path / "m.textnb", estimator=NBLinear())
    done = subprocess.run(
        [sys.executable, "-m", "textnb", "serve", tmp_path / "m.textnb", "--listen",
         tmp_path / "s", "--allow-tell", str(os.getuid())], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": HERE})
    assert (done.returncode, "NBLinear" in done.stderr) == (1, True), done.stderr


# The ledger


def filled(tmp_path: Path) -> Path:
    model = saved(tmp_path / "m.textnb")
    with Ledger(model) as ledger:
        for number in range(5):
            message = b"\n\nnew%d words\n" % number
            assert ledger.add(key(message), "spam" if number % 2 else "ham", message)
    return model


def test_learning_is_done_once_wherever_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    expected = filled(whole)
    learner.learn(str(expected))
    calls = {"save_fitted": learner.save_fitted, "_keep_rights": ledgers._keep_rights,
             "replace": os.replace, "_sync_folder": ledgers._sync_folder,
             "settle": Ledger.settle}
    for name in calls:
        for before in (True, False):
            folder = tmp_path / f"{name}{before}"
            folder.mkdir()
            model = filled(folder)
            place: Any = {"save_fitted": learner, "replace": os, "settle": Ledger}.get(
                name, ledgers)

            def ended(*arguments: Any, name: str = name, before: bool = before) -> None:
                if not before:
                    calls[name](*arguments)
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(place, name, ended)
                with pytest.raises(KeyboardInterrupt):
                    learner.learn(str(model))
            learner.learn(str(model))
            assert model.read_bytes() == expected.read_bytes(), (name, before)
            with Ledger(model) as ledger:
                assert (len(ledger), ledger.pending(9)) == (5, [])
            assert sorted(path.name for path in folder.iterdir())[:2] == [
                "m.textnb", "m.textnb.ledger"]


@pytest.mark.slow
def test_a_killed_learner_loses_nothing(tmp_path: Path) -> None:
    model = filled(tmp_path)
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-m", "textnb.filter.learner", "learn", model],
                                   env={**os.environ, "PYTHONPATH": HERE},
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
    learner.learn(str(model))
    assert sum(counts(model).values()) == 25


def test_the_last_word_counts(tmp_path: Path) -> None:
    model = filled(tmp_path)
    learner.learn(str(model))
    learned = counts(model)
    with Ledger(model) as ledger:
        message = b"\n\nnew1 words\n"
        assert ledger.add(key(message), "ham", message)
        assert ledger.add(key(message), None, message)
        assert ledger.add(key(message), "ham", message)
    before = model.read_bytes()
    assert learner.learn(str(model)) == 3
    assert counts(model) == {"ham": learned["ham"] + 1, "spam": learned["spam"] - 1}
    with Ledger(model) as ledger:
        assert ledger.add(key(message), None, message)
        assert ledger.add(key(message), "spam", message)
    assert learner.learn(str(model)) == 2
    assert model.read_bytes() == before
    with Ledger(model) as ledger:
        assert ledger.add(key(message), "ham", message)
        assert ledger.add(key(message), "spam", message)
    assert learner.learn(str(model)) == 2
    assert model.read_bytes() == before


def test_what_can_not_be_forgotten_is_given_up(tmp_path: Path) -> None:
    model = filled(tmp_path)
    learner.learn(str(model))
    # Another model takes the place of the one that has learned the messages.
    saved(model)
    with Ledger(model) as ledger:
        ledger.add(key(b"\n\nnew1 words\n"), None, b"\n\nnew1 words\n")
        ledger.add(key(NEW), "spam", NEW)
    assert learner.learn(str(model)) == 1
    assert counts(model) == {"ham": 10, "spam": 11}
    with Ledger(model) as ledger:
        assert ledger.pending(9) == []


def test_the_ledger_is_bounded(tmp_path: Path) -> None:
    model = filled(tmp_path)
    learner.learn(str(model), max_messages=3)
    with Ledger(model) as ledger:
        assert len(ledger) == 3


def test_headers_that_are_added_change_no_key() -> None:
    def keyed(message: bytes) -> bytes:
        from textnb.mail.message import parse_message

        parsed = parse_message(message)
        return message_key(parsed.message_id, {"body": parsed.column("body")})

    assert keyed(NEW) == keyed(b"X-Spam-Flag: YES\n" + NEW)
    assert keyed(NEW) != keyed(NEW.replace(b"1@a", b"2@a"))
    assert keyed(NEW) != keyed(NEW + b"more")


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    model = saved(tmp_path / "m.textnb")
    path = tmp_path / "m.textnb.ledger"
    path.write_bytes(b"junk" * 100)
    with pytest.raises(SourceError, match=r"m\.textnb\.ledger can't be used"):
        Ledger(model)
    path.unlink()
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE other (a)")
    database.close()
    with pytest.raises(SourceError, match=r"^\S+ledger is no ledger"):
        Ledger(model)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="ledger"):
        Ledger(model)
    assert not (tmp_path / "elsewhere").exists()
