"""What all tests share: real corpora, and servers of our own for as long as the tests run."""

import gc
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import polars as pl
import pytest

import textnb
from tests import tiers

# The server stops when standard input ends, so even if the tests are killed. To compile a sum of
# hundreds of columns takes it a minute, and to interpret it on a few rows no time.
_SERVER = """
"$1/initdb" -D "$2/data" -U textnb -A trust -E UTF8 --locale=C --no-sync >"$2/log" 2>&1 &&
"$1/pg_ctl" -D "$2/data" -l "$2/log" -w \\
    -o "-k $2 -c listen_addresses='' -c fsync=off -c jit=off" \\
    start >>"$2/log" 2>&1 || { cat "$2/log"; exit; }
echo ready
cat >/dev/null
"$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null
rm -rf "$2/data" "$2/log"
"""

# Files whose tests share a server, which takes long to start: they go to one process.
_TOGETHER = {"tests/frames/test_cloud.py": "s3", "tests/cli/test_sources.py": "s3",
             "tests/engines/test_spark.py": "spark", "tests/engines/test_refusals.py": "spark"}
# Files of few and long tests that share little: each goes alone, after those of all other files, so
# that in the end no process has much to do while others have nothing.
_APART = {"tests/cli/test_streams.py", "tests/docs/test_pages.py", "tests/export/test_c.py",
          "tests/storage/test_atomic.py", "tests/test_memory.py", "tests/test_pipelines.py"}

# What a skipped test says that lacks a package of an extra.
_LACKS_EXTRA = re.compile(r"could not import|textnb\[")

_LEFT_OUT = pytest.StashKey[Mapping[tiers.Tier, int]]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file to one process, which makes once what they share; most tests first."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::")[0]
            return nodeid if file in _APART else _TOGETHER.get(file, file)

    return Together(config, log)


class Watch(threading.Thread):
    """Ends the process when a test takes too long, as pytest-timeout does.

    A thread for each test, which is how pytest-timeout does it, takes longer than many tests.
    """

    def __init__(self):
        super().__init__(name="watch of tests", daemon=True)
        self._watched: tuple[float, pytest.Item, Any] | None = None
        self.start()

    def set(self, item, settings):
        self._watched = monotonic() + settings.timeout, item, settings
        item.cancel_timeout = self.clear

    def clear(self):
        self._watched = None

    def run(self):
        from pytest_timeout import timeout_timer

        while True:
            sleep(1)
            if (watched := self._watched) and monotonic() > watched[0]:
                timeout_timer(*watched[1:])


_watch = cache(Watch)


@pytest.hookimpl(optionalhook=True)
def pytest_timeout_set_timer(item, settings):
    """Watch all tests by one thread."""
    if settings.method != "thread" or not settings.timeout:
        return None
    _watch().set(item, settings)
    return True


def pytest_addoption(parser):
    tiers.add_options(parser)


def pytest_configure(config):
    tiers.configure(config)
    if config.getoption("numprocesses", None):
        _leave_cores_to_other_processes()
    if threading.current_thread() is threading.main_thread():
        _let_programs_hear_signals()


def _leave_cores_to_other_processes():
    """Let the processes of a parallel run multiply matrices by one thread each.

    The threads of several processes wait for each other busily, which takes more time than the
    tests. This comes before xdist starts the processes, which inherit it.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _let_programs_hear_signals():
    """Ignore by a handler what this process was started to ignore, by nohup or in the background.

    A program that a test starts inherits what is ignored, and would not hear the test's signals. A
    handler is not inherited.
    """
    for name in ("SIGHUP", "SIGINT", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_collection_finish():
    """Spare each later collection of garbage the half a million objects of the tests themselves."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep the tests of the tier that was chosen, among those that -k and -m select."""
    config.stash[_LEFT_OUT] = tiers.select(config, items)


def pytest_sessionfinish(session):
    """A worker of xdist tells the main process what it left out; that fails if an extra is missing
    where all are required."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = [] if reporter is None else reporter.stats.get("skipped", [])
    if os.environ.get("TEXTNB_REQUIRE_EXTRAS") == "1" and any(
            _LACKS_EXTRA.search(str(report.longrepr)) for report in skipped):
        reporter.write_line("\na test is skipped for an extra, and TEXTNB_REQUIRE_EXTRAS=1")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        left_out = session.config.stash.get(_LEFT_OUT, {})
        output["left_out"] = {int(tier): number for tier, number in left_out.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Every worker collects the same tests: what one of them says is enough."""
    left_out = getattr(node, "workeroutput", {}).get("left_out", {})
    node.config.stash[_LEFT_OUT] = {tiers.Tier(tier): number for tier, number in left_out.items()}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter, config):
    """The last line but that of the results."""
    yield
    line = tiers.summary(config.stash.get(_LEFT_OUT, {}))
    if line:
        terminalreporter.write_line(line)


@pytest.fixture
def reloaded(tmp_path):
    """A model as its file gives it again."""

    def reload(model):
        model.save(tmp_path / "reloaded.textnb")
        return textnb.load(tmp_path / "reloaded.textnb")

    return reload


@pytest.fixture(scope="session")
def corpus():
    """A real corpus by name; the test is skipped where it is not at hand."""

    def read(name):
        folder = os.environ.get("TEXTNB_CORPORA")
        if not folder:
            pytest.skip("TEXTNB_CORPORA names no folder of corpora")
        path = Path(folder) / f"{name}.parquet"
        if not path.is_file():
            pytest.skip(f"TEXTNB_CORPORA holds no {name}.parquet")
        return pl.scan_parquet(path)

    return read


@pytest.fixture(scope="session")
def postgres():
    """The connection string, also in TEXTNB_POSTGRES; skipped where PostgreSQL is absent."""
    if find_spec("psycopg") is None:
        pytest.skip("needs psycopg: pip install 'textnb[postgres]'")
    given = os.environ.get("TEXTNB_POSTGRES")
    if given:
        yield given
        return
    programs = _programs()
    if programs is None:
        pytest.skip("needs initdb and pg_ctl: apt-get install postgresql")
    with (tempfile.TemporaryDirectory(prefix="textnb-") as name,
          pytest.MonkeyPatch.context() as patch):
        folder = Path(name)
        command = [*_somebody_else(folder), "sh", "-c", _SERVER, "sh", str(programs), name]
        # A session of its own, for an interrupt from the keyboard must not end the shell first.
        with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True, start_new_session=True) as shell:
            assert shell.stdout is not None
            said = shell.stdout.readline()
            if said != "ready\n":
                pytest.fail(said + shell.stdout.read())
            # A socket in our own folder alone: no port to race for, and no other user's way in.
            server = f"host={folder} user=textnb dbname=postgres"
            patch.setenv("TEXTNB_POSTGRES", server)
            yield server


def _programs():
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    # Debian keeps them beside the path, a folder per version.
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders
                 if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


def _somebody_else(folder):
    """How to run a program as somebody else than root, whom the server refuses."""
    if os.geteuid() != 0:
        return []
    runuser = shutil.which("runuser", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if runuser is None:
        pytest.skip("PostgreSQL refuses to run as root, and there is no runuser")
    user = "postgres" if "postgres" in {user.pw_name for user in pwd.getpwall()} else "nobody"
    shutil.chown(folder, user)
    return [runuser, "-u", user, "--"]


@dataclass(frozen=True)
class S3:
    """A store on this machine that speaks S3's language, with one bucket, ``bucket``."""

    url: str

    @property
    def options(self):
        """Storage options; the credentials are in the environment."""
        return {"aws_endpoint_url": self.url, "aws_region": "us-east-1", "aws_allow_http": "true"}

    def request(self, method, path, body=None):
        """What the server answers."""
        asked = urllib.request.Request(self.url + path, data=body, method=method,
                                       headers={"Content-Type": "text/plain"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            content: bytes = answer.read()
        return content


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """Skipped where it is not installed, apart from what is tested: the versions differ."""
    own = Path(__file__).parents[1] / ".venv/s3/bin/moto_server"
    program = os.environ.get("TEXTNB_MOTO_SERVER") or (str(own) if own.exists() else None)
    if program is None:
        pytest.skip("needs the moto_server that TEXTNB_MOTO_SERVER names, or an environment in "
                    ".venv/s3 with what is in .ci/s3-server.txt")
    log = tmp_path_factory.mktemp("s3") / "log"
    with (log.open("wb") as told, pytest.MonkeyPatch.context() as patch,
          subprocess.Popen([program, "-H", "127.0.0.1", "-p", "0"], stdin=subprocess.DEVNULL,
                           stdout=told, stderr=told) as server):
        try:
            yield _with_bucket(server, log, patch)
        finally:
            server.terminate()


def _with_bucket(server, log, patch):
    deadline = time.monotonic() + 60
    while not (found := re.search(r"http://127\.0\.0\.1:[1-9]\d*", log.read_text("utf-8"))):
        if server.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"moto_server did not start: {log.read_text('utf-8')}")
        time.sleep(0.05)
    # Never those of whoever runs the tests.
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    patch.setenv("AWS_ACCESS_KEY_ID", "READER")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "TOPSECRET")
    store = S3(found[0])
    store.request("PUT", "/bucket")
    return store
