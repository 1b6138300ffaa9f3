"""Mail through a real Postfix and spamass-milter to a Maildir, judged by textnb serve."""

import os
import pwd
import shutil
import smtplib
import socket
import subprocess
from pathlib import Path

import pytest

from tests.filter.server import HAM, SPAM, wait_until

PROGRAMS = ("postfix", "spamass-milter", "spamc")
USER = "textnb-test"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="Postfix needs root"),
    pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)),
                       reason=f"needs the packages {', '.join(PROGRAMS)}")]



@pytest.fixture
def maildir(tmp_path):
    """The Maildir of a user that exists for the test alone."""
    subprocess.run(["useradd", "--create-home", "--home-dir", str(tmp_path / "home"), USER],
                   check=True)
    # Whoever delivers must be able to go there.
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    yield tmp_path / "home" / "Maildir"
    subprocess.run(["userdel", USER], check=True)


@pytest.fixture
def port(tmp_path):
    """The port of a Postfix whose milter is asked about every message."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
    folder = tmp_path / "postfix"
    for name in ("conf", "queue", "data"):
        (folder / name).mkdir(parents=True)
    os.chown(folder / "data", pwd.getpwnam("postfix").pw_uid, -1)
    settings = (Path(__file__).parent / "main.cf").read_text()
    (folder / "conf" / "main.cf").write_text(settings.format(folder=folder))
    services = Path("/usr/share/postfix/master.cf.dist").read_text().splitlines()
    (folder / "conf" / "master.cf").write_text("\n".join(
        f"127.0.0.1:{number} inet n - n - - smtpd" if line.startswith("smtp      inet") else
        line.replace(" y       -", " n       -") for line in services) + "\n")
    for name in ("postfix-files", "dynamicmaps.cf"):
        if (Path("/etc/postfix") / name).exists():
            shutil.copy(Path("/etc/postfix") / name, folder / "conf" / name)
    subprocess.run(["postfix", "-c", folder / "conf", "start"], check=True, capture_output=True)
    yield number
    subprocess.run(["postfix", "-c", folder / "conf", "stop"], check=True, capture_output=True)


def listens(path):
    """Whether a socket is answered; its file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def test_mail_is_delivered_with_its_verdict(serve, tmp_path, maildir, port):
    server = serve()
    os.chmod(server.path, 0o666)
    milter = tmp_path / "postfix" / "milter"
    process = subprocess.Popen(["spamass-milter", "-p", milter, "-u", "nobody", "--", "-U",
                                server.path, "-x"], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: listens(milter), "no milter")
        milter.chmod(0o666)
        with smtplib.SMTP("127.0.0.1", port) as client:
            for message in (SPAM, HAM, b"X-Spam-Flag: YES\nX-Spam-Status: Yes\n" + HAM):
                client.sendmail("a@example.net", [f"{USER}@example.org"], message)
        wait_until(lambda: maildir.is_dir() and len([*(maildir / "new").iterdir()]) == 3,
                   (tmp_path / "postfix" / "log").read_text())
    finally:
        process.kill()
        process.wait()
    server.stop()
    delivered = [path.read_bytes() for path in (maildir / "new").iterdir()]
    spam = [message for message in delivered if b"cheap pills" in message]
    ham = [message for message in delivered if b"noon" in message]
    assert b"X-Spam-Flag: YES" in spam[0]
    assert b"X-Spam-Status: Yes, score=" in spam[0]
    assert len(ham) == 2
    for message in ham:
        # What the sender forged is gone.
        assert b"X-Spam-Flag: YES" not in message
        assert b"X-Spam-Status: No, score=" in message
