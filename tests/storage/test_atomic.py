"""A model file is whole or absent: whatever stops a save, the old file stays and nothing else."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import textnb
from tests.storage.conftest import FRAME
from textnb import SourceError, TextClassifier
from textnb.files.replace import replace_file

OLD = ["ham", "spam"]
NEW = ["eggs", "toast"]


@pytest.fixture
def path(tmp_path):
    """An old model alone in a folder."""
    folder = tmp_path / "models"
    folder.mkdir()
    TextClassifier().fit(FRAME).save(folder / "model.textnb")
    return folder / "model.textnb"


@pytest.fixture
def new_model():
    return TextClassifier().fit([" ".join(f"term{n}" for n in range(10)), "other"], NEW)


def assert_alone(path, labels):
    assert os.listdir(path.parent) == [path.name]
    assert textnb.load(path).classes_.tolist() == labels


# Failures in the process

FAILURES = [OSError(errno.ENOSPC, "No space left on device"), PermissionError(errno.EACCES, "no"),
            MemoryError(), RuntimeError("surprise"), KeyboardInterrupt(), SystemExit(3)]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("step", [
    "tempfile.mkstemp", "textnb.storage.version2.write_blocks", "os.fsync", "os.chmod",
    "os.replace"])
def test_a_failing_step_changes_nothing(step, failure, path, new_model, monkeypatch):
    def fail(*args, **kwargs):
        raise failure

    before, absent = path.read_bytes(), path.parent / "absent.textnb"
    expected = SourceError if isinstance(failure, OSError) else type(failure)
    for target in (path, absent) if step != "os.chmod" else (path,):
        with monkeypatch.context() as patch:
            patch.setattr(step, fail)
            with pytest.raises(expected) as caught:
                new_model.save(target)
        if isinstance(failure, OSError):
            assert str(caught.value).replace("'", "") == f"cant write {target}: {failure.strerror}"
    assert path.read_bytes() == before
    assert_alone(path, OLD)


def test_bytes_are_synced_before_the_rename_and_the_rename_after(path, new_model, monkeypatch):
    order = []

    def recorded(step):
        called = getattr(os, step)

        def record(*args):
            order.append(step)
            return called(*args)

        return record

    with monkeypatch.context() as patch:
        for step in ("fsync", "replace"):
            patch.setattr(f"textnb.files.replace.os.{step}", recorded(step))
        new_model.save(path)
    # The last one is of the folder.
    assert order == ["fsync", "replace", "fsync"]
    assert_alone(path, NEW)


def test_what_is_written_is_not_seen_before_it_is_whole(path):
    before = path.read_bytes()
    with replace_file(path) as file:
        file.write(b"half")
        file.flush()
        assert path.read_bytes() == before
        beside = [name for name in os.listdir(path.parent) if name != path.name]
        assert len(beside) == 1
        # Hidden, and of the same folder: a rename does not cross devices.
        assert beside[0].startswith(".")
    assert path.read_bytes() == b"half"
    assert os.listdir(path.parent) == [path.name]


def test_threads_may_save_to_one_place_and_readers_see_whole_files(path, new_model):
    models = [new_model, TextClassifier().fit(["aa", "bb"], ["left", "right"])]
    threads = [threading.Thread(target=lambda model=model: [model.save(path) for _ in range(20)])
               for model in models]
    for thread in threads:
        thread.start()
    seen = {tuple(textnb.load(path).classes_.tolist()) for _ in range(20)}
    for thread in threads:
        thread.join()
    assert seen <= {tuple(OLD), tuple(NEW), ("left", "right")}
    assert textnb.load(path).classes_.tolist() in (NEW, ["left", "right"])
    assert os.listdir(path.parent) == [path.name]


# Other processes

SAVE = """
import os, signal, sys
import polars as pl
import textnb.files.replace
import textnb.storage.version2
from textnb import SourceError, TextClassifier

path = sys.argv[1]
model = TextClassifier().fit(
    [" ".join(f"term{{n}}" for n in range(1000)), "other"], ["eggs", "toast"])
{prepare}
try:
    model.save(path)
except SourceError as error:
    print("error:", error)
except KeyboardInterrupt:
    print("interrupted")
else:
    print("saved")
"""
# The wait is cut short by the signal, however it comes to be an exception.
KILL = """
import time
step = {where}.{step}
def signalled(*args, **kwargs):
    os.kill(os.getpid(), signal.{name})
    time.sleep(10)
    return step(*args, **kwargs)
{where}.{step} = signalled
"""
PLACES = [("textnb.storage.version2", "write_blocks"), ("textnb.files.replace.os", "fsync"),
          ("textnb.files.replace.os", "chmod"), ("textnb.files.replace.os", "replace")]


def python(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True,
                          text=True, timeout=60)


def save_elsewhere(path, prepare):
    return python(SAVE.format(prepare=textwrap.dedent(prepare)), path)


def test_a_signal_changes_nothing(path):
    before = path.read_bytes()
    each = [f"""
{KILL.format(where=where, step=step, name="SIGINT")}
try:
    model.save(path)
except KeyboardInterrupt:
    print("{step}", os.listdir(os.path.dirname(path)), open(path, "rb").read().hex())
{where}.{step} = step
""" for where, step in PLACES]
    # A program that does not handle the last signal dies at once, and can't tidy up.
    where, step = PLACES[-1]
    terminated = "sys.stdout.flush()\n" + KILL.format(where=where, step=step, name="SIGTERM")
    done = save_elsewhere(path, "\n".join([*each, terminated]))
    lines = [f"{step} ['{path.name}'] {before.hex()}" for _, step in PLACES]
    assert (done.stdout.splitlines(), done.stderr) == (lines, "")
    assert done.returncode == -signal.SIGTERM
    assert path.read_bytes() == before
    assert textnb.load(path).classes_.tolist() == OLD


@pytest.mark.slow
def test_an_interrupt_once_the_file_is_whole_leaves_the_new_one(path):
    done = save_elsewhere(path, """
        step = os.replace
        def signalled(*args):
            step(*args)
            os.kill(os.getpid(), signal.SIGINT)
        textnb.files.replace.os.replace = signalled
    """)
    assert done.stdout == "interrupted\n"
    assert_alone(path, NEW)
