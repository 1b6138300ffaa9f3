"""A PostgreSQL server of our own, for as long as the tests run."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# The server stops when standard input ends, so even if the tests are killed.
_SERVER = """
"$1/initdb" -D "$2/data" -U textnb -A trust -E UTF8 --locale=C --no-sync >"$2/log" 2>&1 &&
"$1/pg_ctl" -D "$2/data" -l "$2/log" -w \\
    -o "-k $2 -c listen_addresses='' -c fsync=off" start >>"$2/log" 2>&1 || { cat "$2/log"; exit; }
echo ready
cat >/dev/null
"$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null
rm -rf "$2/data" "$2/log"
"""


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
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


def _programs() -> Path | None:
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    # Debian keeps them beside the path, a folder per version.
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders
                 if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


def _somebody_else(folder: Path) -> list[str]:
    """How to run a program as somebody else than root, whom the server refuses."""
    if os.geteuid() != 0:
        return []
    runuser = shutil.which("runuser", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if runuser is None:
        pytest.skip("PostgreSQL refuses to run as root, and there is no runuser")
    user = "postgres" if "postgres" in {user.pw_name for user in pwd.getpwall()} else "nobody"
    shutil.chown(folder, user)
    return [runuser, "-u", user, "--"]
