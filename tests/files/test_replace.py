"""Folders take their place whole, or not at all; what a killed process left is put right."""

import atexit
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from textnb import SourceError
from textnb.files.cleanup import cleanup
from textnb.files.replace import check_target, remove_folder, replace_file, replace_folder


def tree(folder):
    return {str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    return tmp_path / "out"


def test_a_folder_takes_the_place_of_another(out):
    with replace_folder(out) as work:
        (work / "new").write_text("new")
        assert tree(out) == {"old": "old"}
        # Hidden, and beside it: a rename does not cross devices.
        assert (work.parent, work.name[0]) == (out.parent, ".")
    assert tree(out.parent) == {"out/new": "new"}
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_folder_has_the_permissions_that_a_new_one_has(tmp_path):
    mask = os.umask(0o027)
    try:
        with replace_folder(tmp_path / "out"):
            pass
    finally:
        os.umask(mask)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o750


def test_one_process_at_a_time_replaces_a_folder(out):
    with replace_folder(out) as one:
        (one / "one").write_text("1")
        with (pytest.raises(SourceError, match="another run is at work on"),
              replace_folder(out)):
            pass
    assert tree(out.parent) == {"out/one": "1"}


def test_a_folder_that_may_not_be_replaced_stays(out):
    def refuse(folder):
        assert tree(folder) == {"old": "old"}
        raise SourceError("no")

    with pytest.raises(SourceError, match="no"), replace_folder(out, refuse):
        pass
    assert tree(out.parent) == {"out/old": "old"}


@pytest.mark.skipif(sys.platform != "linux", reason="two names are exchanged on Linux")
def test_a_folder_is_there_at_every_moment(out, monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError("a rename of two")

    monkeypatch.setattr(os, "rename", fail)
    with replace_folder(out) as work:
        (work / "new").write_text("new")
    assert tree(out.parent) == {"out/new": "new"}


def test_what_can_not_be_synced_is_named(tmp_path, monkeypatch):
    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with (pytest.raises(SourceError, match="new' is written, but a loss of power could still"),
          replace_file(tmp_path / "new") as file):
        file.write(b"new")
    assert (tmp_path / "new").read_bytes() == b"new"


def test_a_file_that_can_not_be_closed_hides_no_error(tmp_path):
    def fail():
        with replace_file(tmp_path / "new") as file:
            os.close(file.fileno())
            raise SourceError("the first")

    with pytest.raises(SourceError, match="the first"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_an_error_before_a_file_is_written_names_it(tmp_path, monkeypatch):
    def fail(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "is_dir", fail)
    with pytest.raises(SourceError, match=r"^can't write '.*new': Input/output error$"):
        check_target(tmp_path / "new")


def test_a_loop_of_links_is_no_target(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(SourceError, match="loop': Too many levels of symbolic links"):
        check_target(tmp_path / "loop")


@pytest.mark.skipif(sys.platform != "linux", reason="it is in /proc")
def test_a_file_to_which_a_stream_is_appended_is_not_replaced(tmp_path):
    with open(tmp_path / "log", "a") as log, pytest.raises(SourceError, match="a device or a pipe"):
        check_target(f"/dev/fd/{log.fileno()}")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows syncs no folder")
def test_a_folder_that_can_not_be_listed_is_not_taken_for_synced(out, monkeypatch):
    def replace():
        with replace_folder(out) as work:
            (work / "new").write_text("new")
            monkeypatch.setattr(os, "scandir", fail)

    def fail(path):
        monkeypatch.undo()
        raise PermissionError(13, "Permission denied")

    with pytest.raises(SourceError, match="Permission denied"):
        replace()
    assert tree(out.parent) == {"out/old": "old"}


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_changes_no_folder(error, out):
    def fail():
        with replace_folder(out) as work:
            (work / "new").write_text("new")
            raise error

    expected = SourceError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        fail()
    if expected is SourceError:
        assert str(caught.value) == f"can't write {str(out)!r}: No space left on device"
    assert tree(out.parent) == {"out/old": "old"}
    assert [path.name for path in out.parent.iterdir()] == ["out"]


KILLED = """
import os, sys
from textnb.files import replace
from textnb.files.replace import replace_folder
step = os.rename
def rename(source, target):
    step(source, target)
    os._exit(9)
with replace_folder(sys.argv[1]) as work:
    (work / "new").write_text("new")
    {end}
"""


@pytest.mark.parametrize(("end", "left"), [
    ("os._exit(9)", {".out.textnb-run/new": "new", "out/old": "old"}),
    # Where the system can't exchange two names.
    ("os.rename, replace._exchange = rename, lambda *_: False",
     {".out.textnb-old/old": "old", ".out.textnb-run/new": "new"})])
def test_what_a_killed_process_left_is_put_right(end, left, out):
    done = subprocess.run([sys.executable, "-c", KILLED.format(end=end), str(out)], check=False)
    (out.parent / ".out.textnb-lock").unlink()
    assert (done.returncode, tree(out.parent)) == (9, left)
    with replace_folder(out) as work:
        assert (tree(out), tree(work)) == ({"old": "old"}, {})
    assert tree(out.parent) == {}
    assert [path.name for path in out.parent.iterdir()] == ["out"]


ENDED = """
import sys, threading, time
from textnb.files.replace import replace_file, replace_folder
def write():
    with {replacing}(sys.argv[1]):
        started.set()
        time.sleep(60)
started = threading.Event()
threading.Thread(target=write, daemon=True).start()
started.wait()
"""


@pytest.mark.parametrize("replacing", ["replace_file", "replace_folder"])
def test_a_process_that_ends_meanwhile_leaves_nothing(replacing, tmp_path):
    code = ENDED.format(replacing=replacing)
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "new")], check=True, timeout=30)
    assert list(tmp_path.iterdir()) == []


def test_a_private_file_replaces_a_link_and_is_its_owners_alone(tmp_path):
    for name in ("public", "private"):
        (tmp_path / f"of {name}").write_text("mine")
        (tmp_path / name).symlink_to(f"of {name}")
        with replace_file(tmp_path / name, private=name == "private") as file:
            file.write(b"new")
    assert tree(tmp_path) == {
        "of private": "mine", "of public": "new", "private": "new", "public": "new"}
    assert (tmp_path / "public").is_symlink()
    assert not (tmp_path / "private").is_symlink()
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root gives files away")
def test_a_file_keeps_its_owner_and_group(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    path.chmod(0o640)
    os.chown(path, 12345, 23456)
    with replace_file(path) as file:
        file.write(b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12345, 23456, 0o640)
    assert path.read_bytes() == b"new"


def test_an_owner_that_can_not_be_kept_stops_nothing(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "m"
    path.write_bytes(b"old")
    monkeypatch.setattr("textnb.files.replace.os.chown", refuse)
    with replace_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


def test_a_removal_that_fails_hides_no_error_and_is_not_tried_at_the_end(monkeypatch):
    def fail():
        raise OSError("a broken disk")

    registered, forgotten = [], []
    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(atexit, "unregister", forgotten.append)
    with pytest.raises(SourceError, match="the first"), cleanup(fail):
        raise SourceError("the first")
    assert len(registered) == 1
    assert forgotten == registered


@pytest.mark.parametrize("name", ["open", "close"])
def test_a_folder_is_removed_though_a_step_of_it_fails_once(name, out, monkeypatch):
    genuine, failures = getattr(os, name), [OSError(5, "Input/output error")]

    def fail_once(*arguments, **options):
        result = genuine(*arguments, **options)
        if failures:
            raise failures.pop()
        return result

    monkeypatch.setattr(os, name, fail_once)
    remove_folder(out)
    assert not out.exists()
    assert not failures
