"""What clients tell a server is learned once, whatever ends meanwhile."""

import getpass
import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import polars as pl
import pytest

from tests.cli.conftest import run
from tests.filter.models import LINEAR, ROWS, SWAPPED, counts, fitted, ledger_of, saved
from tests.filter.server import HAM, SPAM, wait_until
from textnb import SourceError
from textnb.errors import EngineError
from textnb.filter import learner
from textnb.filter import ledger as ledgers
from textnb.filter import server as servers
from textnb.filter import worker as workers
from textnb.filter.ledger import Ledger, message_key
from textnb.filter.models import ServedModel
from textnb.filter.protocol import Refused, Request
from textnb.filter.service import Counters, Settings, counters_size
from textnb.filter.worker import Worker
from textnb.mail.message import parse_message
from textnb.mail.tokens import mail_tokens
from textnb.storage import version2

__all__ = ["run"]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")
NEW = b"Message-ID: <1@a>\n\nbrand new watches\n"
KNOWN = b"\n\nnew1 words\n"


def key(message):
    return message_key(None, {"body": message.decode()})


def tell(server, told, message):
    return server.ask("TELL", message, f"Message-class: {told}", "Set: local")


@pytest.fixture
def server(serve):
    """A server that learns; what changes the model first is asked for before it."""
    return serve("--workers", 2, "--learn-seconds", "0.1", "--allow-tell", getpass.getuser())


# The server


@pytest.fixture(params=["body", "tokens"])
def column(request, model):
    """What the model learns of a message."""
    if request.param == "tokens":
        saved(model, text="tokens", rows=pl.DataFrame({
            "tokens": [mail_tokens(SPAM), mail_tokens(HAM)] * 10, "label": ["spam", "ham"] * 10}))
    return request.param


@pytest.mark.sweep(1)
def test_what_is_told_is_learned_as_update_learns_it(column, server, model, tmp_path, run):
    expected, message = tmp_path / "expected.textnb", tmp_path / "new.eml"
    shutil.copy(model, expected)
    message.write_bytes(NEW)
    if column == "body":
        assert b"TEXTNB_UNSURE" in server.ask("SYMBOLS", NEW)
    assert b"TEXTNB_SPAM" in server.ask("SYMBOLS", SPAM)
    assert b"TEXTNB_HAM" in server.ask("SYMBOLS", HAM)
    assert b"DidSet: local" in tell(server, "spam", NEW)
    # Once is enough, also while it is pending.
    assert b"DidSet" not in tell(server, "spam", NEW)
    server.wait_for("learned")
    assert b"TEXTNB_SPAM" in server.ask("SYMBOLS", NEW)
    assert b"DidSet" not in tell(server, "spam", NEW)
    run("update", expected, message, "--as", "spam").checked()
    assert model.read_bytes() == expected.read_bytes()


def test_what_is_told_must_be_clear(server):
    for headers in (["Set: local"], ["Set: local", "Message-class: eggs"], ["Message-class: spam"],
                    ["Set: remote", "Message-class: spam"],
                    ["Set: local", "Remove: local", "Message-class: spam"]):
        assert b"76 EX_PROTOCOL" in server.ask("TELL", NEW, *headers)
    assert b"65 EX_DATAERR" in server.ask("TELL", b"", "Set: local", "Message-class: spam")


@pytest.mark.slow
def test_a_ledger_that_is_removed_without_its_log_begins_anew(server, model):
    assert b"DidSet" in tell(server, "spam", NEW)
    server.wait_for("learned")
    # A worker still has it open.
    Path(f"{model}.ledger").unlink()
    saved(model)
    for message in (NEW, KNOWN):
        assert b"DidSet" in tell(server, "spam", message)
    wait_until(lambda: counts(model) == {"ham": 12, "spam": 14}, server.events)
    assert not [event for event in server.events if event["event"] == "not learned"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("spamc") is None, reason="spamc is not installed")
def test_spamc_tells(server):
    for told, answer in (("spam", b"successfully"), ("spam", b"already"),
                         ("forget", b"successfully")):
        assert answer in server.spamc(NEW, "-L", told)[1]


@pytest.mark.slow
def test_only_named_users_tell(serve, tmp_path):
    server = serve("--workers", 1, "--allow-tell", os.getuid() + 1)
    assert b"77 EX_NOPERM" in tell(server, "spam", NEW)
    assert not (tmp_path / "m.textnb.ledger").exists()


# The ledger


def filled(model):
    """The model, with five messages that were told and are not learned yet."""
    with Ledger(model) as ledger:
        for number in range(5):
            message = b"\n\nnew%d words\n" % number
            assert ledger.add(key(message), "spam" if number % 2 else "ham", message)
    return model


@pytest.mark.sweep(10)
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("place", "name"), [
    (learner, "save_fitted"), (ledgers, "keep_owner"), (os, "replace"),
    (ledgers, "sync_rename"), (Ledger, "settle")])
def test_learning_is_done_once_wherever_it_ends(model, tmp_path, monkeypatch, place, name, before):
    expected = filled(saved(tmp_path / "expected.textnb"))
    learner.learn(str(expected))
    call = getattr(place, name)

    def ended(*arguments):
        if not before:
            call(*arguments)
        raise KeyboardInterrupt

    filled(model)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, ended)
        with pytest.raises(KeyboardInterrupt):
            learner.learn(str(model))
    learner.learn(str(model))
    assert model.read_bytes() == expected.read_bytes()
    assert ledger_of(model) == (5, [])
    assert {path.name.removeprefix("m.textnb") for path in tmp_path.glob("m.*")} <= {
        "", ".ledger", ".lock"}


@pytest.mark.parametrize("learn", ["learner", "new.eml", "new.mbox"])
def test_a_model_that_is_trained_meanwhile_is_kept(model, tmp_path, monkeypatch, run, learn):
    trained, genuine = saved(tmp_path / "trained.textnb", rows=SWAPPED), version2.write

    def write(path, *arguments, **more):
        genuine(path, *arguments, **more)
        shutil.copy(trained, tmp_path / "new")
        os.replace(tmp_path / "new", model)

    monkeypatch.chdir(tmp_path)
    Path("new.eml").write_bytes(NEW)
    Path("new.mbox").write_bytes(b"From a@b Mon Nov  2 10:00:00 2026\n" + NEW)

    def ends_with(code):
        if learn == "learner":
            with pytest.raises(SystemExit, match=str(code)):
                learner.main(["learn", str(model)])
            return "replaced by another process"
        return run("update", model, learn, "--as", "spam", "--ledger").checked(code).err

    n_told = 5 if learn == "learner" else 0
    if n_told:
        filled(model)
    with monkeypatch.context() as patch:
        patch.setattr(version2, "write", write)
        assert "replaced by another process" in ends_with(1)
    assert model.read_bytes() == trained.read_bytes()
    assert (ledger_of(model)[0], len(ledger_of(model)[1])) == (0, n_told)
    assert not Path("m.textnb.ledger.next").exists()
    ends_with(0)
    assert ledger_of(model) == (n_told or 1, [])
    assert sum(counts(model).values()) == 24 + (n_told or 1)


@pytest.mark.parametrize(("mode", "sample", "expected"), [
    (0o600, None, 0o600), (0o644, None, 0o644), (0o640, 10, 0o600)])
def test_a_new_model_is_as_private_as_the_old_one(model, monkeypatch, mode, sample, expected):
    fitted(LINEAR[1]).fit(ROWS, keep_sample=sample).save(model)
    model.chmod(mode)
    modes, genuine = [], learner.save_fitted

    def save(fitted, path):
        genuine(fitted, path)
        modes.append(stat.S_IMODE(os.stat(path).st_mode))

    monkeypatch.setattr(learner, "save_fitted", save)
    assert learner.learn(str(filled(model))) == 5
    assert [*modes, stat.S_IMODE(model.stat().st_mode)] == [expected, expected]


# Each message has 13 bytes.
@pytest.mark.parametrize(("name", "limit", "batches"), [
    ("_BATCH_SIZE", 2, 3), ("_BATCH_BYTES", 14, 3), ("_BATCH_BYTES", 13, 6)])
def test_each_batch_locks_the_file_that_it_changes(model, monkeypatch, name, limit, batches):
    filled(model)
    monkeypatch.setattr(learner, name, limit)
    locked, genuine = [], learner.lock_path
    monkeypatch.setattr(learner, "lock_path",
                        lambda path: (locked.append(model.read_bytes()), genuine(path))[1])
    assert learner.learn(str(model)) == 5
    assert len(set(locked)) == len(locked) == batches
    assert ledger_of(model) == (5, [])


def test_a_new_model_that_vanishes_is_learned_again(model, tmp_path, monkeypatch):
    expected = filled(saved(tmp_path / "expected.textnb"))
    learner.learn(str(expected))
    filled(model)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda source, target: (os.unlink(source), fail("gone")))
        with pytest.raises(SourceError, match="gone"):
            learner.learn(str(model))
    learner.learn(str(model))
    assert model.read_bytes() == expected.read_bytes()
    assert ledger_of(model) == (5, [])


def test_a_disk_that_does_not_tell_of_the_new_model_settles_nothing(model, monkeypatch):
    with Ledger(filled(model)) as ledger:
        Path(ledger.next_model).write_bytes(b"a model that was not moved")
        ledger._note_changes(5, {})
        with monkeypatch.context() as patch:
            patch.setattr(ledgers.os, "lstat", lambda path: fail("no answer"))
            with pytest.raises(SourceError, match="no answer"):
                ledger.finish()
        ledger.finish()
        assert len(ledger.pending(9)) == 5


def fail(reason):
    raise OSError(5, reason)


@pytest.mark.parametrize(("code", "starts"), [(0, 1), (1, 2), (-9, 2)])
def test_a_learner_that_fails_is_followed_by_another(model, monkeypatch, code, starts):
    server = servers.Server(Settings(model=str(model), tellers=[0], learn_seconds=0.0), [])
    process = mock.Mock(returncode=code)
    started = mock.Mock(return_value=process)
    monkeypatch.setattr(servers.subprocess, "Popen", started)
    server._learn()
    process.poll.return_value = None
    server._learn()
    assert started.call_count == 1
    process.poll.return_value = code
    server._learn()
    server._shared.close()
    assert started.call_count == starts


@pytest.mark.parametrize("error", [SourceError("no"), EngineError("no")])
def test_a_failure_that_no_message_causes_gives_up_none(model, monkeypatch, error):
    with monkeypatch.context() as patch:
        patch.setattr(learner, "change", mock.Mock(side_effect=error))
        with pytest.raises(SystemExit, match="1"):
            learner.main(["learn", str(filled(model))])
    assert len(ledger_of(model)[1]) == 5
    with pytest.raises(SystemExit, match="0"):
        learner.main(["learn", str(model)])
    assert ledger_of(model) == (5, [])


def test_counters_that_can_not_be_mapped_are_named():
    with (open(os.devnull, "rb") as device,
          pytest.raises(SourceError, match="file of the counters can't be mapped")):
        Counters(device.fileno(), 1)


def test_what_is_learned_is_not_followed_by_an_error(model, monkeypatch):
    with Ledger(filled(model)) as ledger:
        pending = ledger.pending(9)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "pending", mock.Mock(side_effect=[pending, SourceError("no")]))
        assert learner.learn(str(model)) == 5
    assert ledger_of(model) == (5, [])


def test_a_move_that_was_not_made_is_written_over_in_the_log(model):
    # A commit whose sync failed says so, and can still be in the log when that is read again.
    with Ledger(model) as ledger, Ledger(model) as other:
        Path(ledger.next_model).write_bytes(b"a model that was not moved")
        seen = other._database.execute("PRAGMA data_version").fetchone()
        ledger.finish()
        assert other._database.execute("PRAGMA data_version").fetchone() != seen
        assert not os.path.exists(ledger.next_model)


def test_a_failed_commit_keeps_nobody_from_the_ledger(model):
    with Ledger(model) as ledger, Ledger(model) as other:
        genuine = ledger._database

        def execute(statement, *values):
            if statement == "COMMIT":
                raise sqlite3.OperationalError("disk I/O error")
            return genuine.execute(statement, *values)

        ledger._database = mock.Mock(wraps=genuine, in_transaction=True, execute=execute)
        with pytest.raises(SourceError, match="disk I/O error"):
            ledger.add(key(NEW), "spam", NEW)
        assert other.add(key(NEW), "spam", NEW)
        ledger._database = genuine
        assert ledger.add(key(KNOWN), "spam", KNOWN)


@pytest.fixture
def told(model, request):
    """The answer of a worker without a server, which is told what messages are.

    Its parameter is the limit of the time, in seconds. The user joe has a link to the model.
    """
    timeout, link = getattr(request, "param", 0.0), model.with_name("joe")
    link.symlink_to(model)
    with tempfile.TemporaryFile() as shared:
        os.truncate(shared.fileno(), counters_size(1))
        worker = Worker(Settings(model=str(model), users={"joe": str(link)}, tellers=[os.getuid()],
                                 timeout=timeout), Counters(shared.fileno(), 1))

    def told(name, message, user=None):
        request = Request("TELL", (1, 5), user=user,
                          headers={"set": "local", "message-class": name})
        return worker._reply(request, message, client)

    client, peer = socket.socketpair()
    with client, peer:
        yield told


def test_a_worker_opens_the_ledger_again_after_a_failure(told, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "add", mock.Mock(side_effect=SourceError("no")))
        with pytest.raises(Refused, match="no"):
            told("spam", NEW)
    assert b"DidSet" in told("spam", NEW)


@pytest.mark.parametrize("told", [0.1], indirect=True)
@pytest.mark.parametrize(("reads", "code"), [
    (lambda *_: time.sleep(3), "EX_TIMEOUT"), (mock.Mock(side_effect=ZeroDivisionError("no")),
                                               "EX_SOFTWARE")], ids=["slow", "wrong"])
def test_a_message_that_is_told_is_limited_as_one_that_is_judged(told, monkeypatch, reads, code):
    monkeypatch.setattr("textnb.filter.models.message_columns", reads)
    before = signal.signal(signal.SIGALRM, workers._raise_too_late)
    try:
        with pytest.raises(Refused) as refused:
            told("spam", NEW)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert refused.value.code == code


def test_what_is_told_is_for_the_model_that_is_there_now(told, model):
    # Another class of ham, and other columns.
    renamed = ROWS.with_columns(pl.col("label").replace({"ham": "good"}))
    saved(model, rows=renamed, text=["subject", "body"])
    assert b"DidSet" in told("ham", NEW)
    assert learner.learn(str(model)) == 1
    assert b"DidSet" not in told("ham", NEW)
    assert counts(model) == {"good": 13, "spam": 12}


def test_the_status_is_that_of_the_model_that_is_there_now(model):
    served = ServedModel(str(saved(model, LINEAR[1])), {}, mock.Mock())
    learner.learn(str(filled(model)))
    assert served.since_fit == 5


def test_what_is_told_is_learned_after_the_ledger_is_removed(told, model):
    for _ in range(2):
        assert b"DidSet" in told("spam", NEW)
        assert learner.learn(str(model)) == 1
        for path in model.parent.glob("*.ledger*"):
            path.unlink()


def test_a_link_to_a_model_leads_to_the_ledger_of_another(model, told):
    other = saved(model.rename(model.with_name("other.textnb")))
    saved(model.with_name("first.textnb"))
    for name in ("first.textnb", "other.textnb"):
        model.with_name("link").symlink_to(name)
        model.with_name("link").rename(model)
        assert b"DidSet" in told("spam", NEW)
        assert learner.learn(str(model)) == 1
    assert counts(other) == {"ham": 12, "spam": 13}


@pytest.mark.slow
def test_two_names_of_a_model_have_one_ledger(model, told):
    for n, message in enumerate((NEW, KNOWN), start=1):
        for user, body in ((None, message), ("joe", message + b"more")):
            assert b"DidSet" in told("spam", body, user)
        # Locks are those of processes.
        subprocess.run([sys.executable, "-m", learner.__name__, "learn", model], check=True)
        assert counts(model)["spam"] == 12 + 2 * n


def test_a_model_that_took_too_long_to_load_is_loaded_for_the_next_message(model, monkeypatch):
    served = ServedModel(str(model), {"min_learned": 0}, mock.Mock())
    learner.learn(str(filled(model)))
    with monkeypatch.context() as patch:
        patch.setattr("textnb.filter.models.QuickFilter", mock.Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            served.judge(NEW)
    assert served.judge(NEW)[0] == ServedModel(
        str(model), {"min_learned": 0}, mock.Mock()).judge(NEW)[0]


@pytest.mark.parametrize(("words", "moved"), [
    # The class of the last word; None forgets.
    (["ham", None, "ham"], 1), ([None, "spam"], 0), (["ham", "spam"], 0)])
def test_the_last_word_counts(model, words, moved):
    learner.learn(str(filled(model)))
    before, learned = model.read_bytes(), counts(model)
    with Ledger(model) as ledger:
        for word in words:
            assert ledger.add(key(KNOWN), word, KNOWN)
    assert learner.learn(str(model)) == len(words)
    assert counts(model) == {"ham": learned["ham"] + moved, "spam": learned["spam"] - moved}
    assert (model.read_bytes() == before) == (not moved)


def test_what_can_not_be_forgotten_is_given_up(model):
    learner.learn(str(filled(model)))
    # Another model takes the place of the one that has learned the messages.
    saved(model)
    with Ledger(model) as ledger:
        ledger.add(key(KNOWN), None, KNOWN)
        ledger.add(key(NEW), "spam", NEW)
    assert learner.learn(str(model)) == 1
    assert counts(model) == {"ham": 12, "spam": 13}
    assert ledger_of(model)[1] == []


@pytest.mark.slow
def test_many_that_can_not_be_forgotten_are_read_a_few_times(model, monkeypatch):
    with Ledger(model) as ledger:
        for n in range(60):
            ledger.add(bytes([n]), "spam", KNOWN)
    learner.learn(str(model))
    saved(model)
    with Ledger(model) as ledger:
        for n in range(60):
            ledger.add(bytes([n]), None, KNOWN)
    read = mock.Mock(side_effect=learner.message_columns)
    monkeypatch.setattr(learner, "message_columns", read)
    assert learner.learn(str(model)) < 60
    assert ledger_of(model)[1] == []
    assert read.call_count < 6 * 60


def test_the_ledger_is_bounded(model, monkeypatch):
    monkeypatch.setattr("textnb.filter.ledger.MAX_LEARNED", 3)
    learner.learn(str(filled(model)))
    assert ledger_of(model)[0] == 3


def test_no_text_stays_in_the_ledger(model):
    with Ledger(model) as ledger:
        ledger.add(key(NEW), "spam", NEW)
    path = model.with_name("m.textnb.ledger")
    assert b"watches" in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # Nor in its log, while a worker has it open.
    with Ledger(model) as ledger:
        ledger.add(key(KNOWN), "spam", KNOWN + b"watches")
        learner.learn(str(model))
        assert all(b"watches" not in file.read_bytes() for file in model.parent.glob("*.ledger*"))
    assert ledger_of(model) == (2, [])


def test_headers_that_are_added_change_no_key():
    def keyed(message):
        parsed = parse_message(message)
        return message_key(parsed.message_id, {"body": parsed.column("body")})

    assert keyed(NEW) == keyed(b"X-Spam-Flag: YES\n" + NEW)
    assert keyed(NEW) != keyed(NEW.replace(b"1@a", b"2@a"))
    assert keyed(NEW) != keyed(NEW + b"more")


def other_database(path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE other (a)")
    database.close()


@pytest.mark.parametrize(("make", "message"), [
    (lambda path: path.write_bytes(b"junk" * 100), r"m\.textnb\.ledger can't be used"),
    (other_database, r"^\S+ledger is no ledger"),
    (lambda path: path.symlink_to("elsewhere"), "ledger")], ids=["junk", "database", "link"])
def test_what_is_no_ledger_is_refused(model, tmp_path, make, message):
    make(tmp_path / "m.textnb.ledger")
    with pytest.raises(SourceError, match=message):
        Ledger(model)
    assert not (tmp_path / "elsewhere").exists()
