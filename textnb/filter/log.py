"""The log of a server: JSON, one line per event, on standard error. It never has a mail's text."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from textnb.runtime.stderr import tell

_ID = re.compile(rb"^message-id[ \t]*:[ \t\r\n]*([^\r\n]{1,250})", re.IGNORECASE | re.MULTILINE)
# A line of at most these bytes is written to a pipe as a whole, also beside other processes.
_LONGEST = 4000


def log(event: str, **facts: Any) -> None:
    """Write one event; a failure to write it changes nothing."""
    now = time.time()
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    line = json.dumps({"time": when, "event": event, **facts})
    tell(line[:_LONGEST])


def message_id(message: bytes) -> str | None:
    """The first Message-ID in the headers of a message, as mail systems log it."""
    headers = message[:1 << 16].partition(b"\n\n")[0].partition(b"\r\n\r\n")[0]
    found = _ID.search(headers)
    return None if found is None else re.sub("[^!-~]+", "_", found[1].decode("latin-1").strip())
