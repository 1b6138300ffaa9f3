"""The digest of a kernel module's source: the build writes it into the extension.

Standard library alone, as the build runs this file by its path.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

MODULES = ("spans", "terms", "rows")
_FOLDER = Path(__file__).parent


def digest(module: str) -> str:
    """SHA-256 of what Cython compiles of a module."""
    hashed = sha256()
    for suffix in (".py", ".pxd"):
        # Line ends are those of the platform where the file was checked out.
        hashed.update((_FOLDER / f"{module}{suffix}").read_bytes().replace(b"\r\n", b"\n"))
    return hashed.hexdigest()
