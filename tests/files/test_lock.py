"""Locks: one process at a time, nothing left beside what is locked, no failure passed over."""

import errno
import os
import subprocess
import sys

import filelock
import pytest

from textnb import SourceError
from textnb.files.lock import lock_file, lock_path
from textnb.files.replace import replace_file

HOLD = """
import sys
from pathlib import Path
from textnb.files.lock import lock_file, lock_path
with {lock}(Path(sys.argv[1])) as held:
    print(held, flush=True)
    sys.stdin.read()
"""


def holder(lock, path):
    """Another process that holds a lock until its standard input ends."""
    process = subprocess.Popen([sys.executable, "-c", HOLD.format(lock=lock), str(path)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_lock_leaves_nothing_beside_what_is_locked(kind, tmp_path):
    path = tmp_path / "locked"
    path.mkdir() if kind == "folder" else path.write_text("a model")
    path.chmod(0o555 if kind == "folder" else 0o444)
    with lock_path(path):
        assert os.listdir(tmp_path) == ["locked"]
    assert os.listdir(tmp_path) == ["locked"]


def test_a_lock_ends_with_the_process_that_holds_it(tmp_path):
    path = tmp_path / "model"
    path.write_text("a model")
    process = holder("lock_path", path)
    descriptor = os.open(path, os.O_RDONLY)
    assert not filelock.lock_descriptor(descriptor, blocking=False)
    os.close(descriptor)
    process.kill()
    process.communicate()
    with lock_path(path):
        pass


@pytest.mark.parametrize("name", ["model", "link"])
def test_what_others_wrote_while_it_was_locked_stays(name, tmp_path):
    path = tmp_path / "model"
    path.write_text("read")
    (tmp_path / "link").symlink_to(path)
    with lock_path(tmp_path / name):
        (tmp_path / "new").write_text("trained without a lock")
        os.replace(tmp_path / "new", path)
        with (pytest.raises(SourceError, match="was replaced by another process, and is left"),
                replace_file(tmp_path / name) as file):
            file.write(b"updated")
    assert path.read_text() == "trained without a lock"
    with lock_path(path):
        for content in (b"updated", b"twice"):
            with replace_file(path) as file:
                file.write(content)
        path.unlink()
        with replace_file(path) as file:
            file.write(b"removed meanwhile")
    assert path.read_text() == "removed meanwhile"
    assert sorted(os.listdir(tmp_path)) == ["link", "model"]


def test_a_lock_on_a_file_of_its_own_is_held_once_and_removed(tmp_path):
    path = tmp_path / ".out.lock"
    process = holder("lock_file", path)
    with lock_file(path) as is_held:
        assert not is_held
    # What did not get the lock leaves its file to the process that holds it.
    assert path.exists()
    process.communicate("")
    assert not path.exists()
    # What a killed process left is locked again.
    process = holder("lock_file", path)
    process.kill()
    process.communicate()
    assert path.exists()
    with lock_file(path) as is_held:
        assert is_held
    assert not path.exists()


def test_a_lock_file_that_was_removed_meanwhile_is_made_again(tmp_path, monkeypatch):
    path, calls, genuine = tmp_path / ".out.lock", [], filelock.lock_descriptor

    def lock(descriptor, **options):
        calls.append(descriptor)
        if len(calls) == 1:
            # Its holder ends between opening and locking.
            path.unlink()
        return genuine(descriptor, **options)

    monkeypatch.setattr(filelock, "lock_descriptor", lock)
    with lock_file(path) as is_held:
        assert (is_held, len(calls), path.exists()) == (True, 2, True)


def test_a_file_system_without_locks_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_text("a model")

    def no_locks(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock, "lock_descriptor", no_locks)
    with pytest.raises(SourceError, match=r"can't lock .*model': No locks available; use a file"), (
            lock_path(path)):
        raise AssertionError("it went on without a lock")
    with pytest.raises(SourceError, match="No locks available"), lock_file(tmp_path / "lock"):
        raise AssertionError("it went on without a lock")


def test_an_error_under_a_lock_is_raised_as_it_is(tmp_path):
    with pytest.raises(OSError, match="of the block"), lock_path(tmp_path):
        raise OSError("of the block")
