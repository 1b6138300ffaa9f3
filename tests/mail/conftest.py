"""A folder to write mail into, and its rows."""

from pathlib import Path

import pytest

from textnb.frames.mail import scan_mail

FROM = b"From a@b.org Sat Jan  3 01:05:34 1996\n"


def message(subject, body='Body.'):
    return f"Subject: {subject}\nX-Mailer: none\n\n{body}\n".encode()


MAILBOX = b"".join(FROM + message(subject) + b"\n" for subject in ("one", "two", "three"))


def rows(source, *columns, **settings):
    return scan_mail(source, **settings).select(columns).collect().rows()


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files into an empty folder, which is the current one; their contents by their names.

    A folder is a name that ends with a slash.
    """
    monkeypatch.chdir(tmp_path)

    def write(files):
        for name, content in files.items():
            path = Path(name)
            (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
            if not name.endswith("/"):
                path.write_bytes(content)

    return write
