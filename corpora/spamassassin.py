"""SpamAssassin public corpus: byte-exact e-mail, many messages malformed.

The archive is only ever read as a stream, and no name in it becomes a path on disk.
"""

from __future__ import annotations

import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import polars as pl

from corpora.card import Card, stored_file
from textnb.errors import SourceError

CARD = Card(
    name="spamassassin",
    title="SpamAssassin public mail corpus",
    source="https://spamassassin.apache.org/old/publiccorpus/ (20030228_*, 20050311_*)",
    citation="The Apache SpamAssassin Project: public corpus, 2002-2005",
    licence="CC0 for the collection; the copyright of a message stays with its sender",
    stored="spamassassin_raw_eml.tar.gz",
    class_rows={"ham": 4_150, "spam": 1_896},
    figures={
        "MultinomialNB l=1, default tokens, raw with headers, 5 shuffled stratified folds": 0.9620,
        "MultinomialNB l=1, default tokens, raw with headers, 5 folds in order": 0.9281,
    },
    notes=(
        "Five folders: easy-ham-1 (2,500), easy-ham-2 (1,400), hard-ham-1 (250), spam-1 (500), "
        "spam-2 (1,396). The bytes are in `raw`; `text` is their latin-1 reading, which loses "
        "nothing and decodes nothing. Mail of one list or day lies together, so shuffled folds "
        "flatter. Don't send these messages through a live mail system."
    ),
)

# The largest message has about 300 kB. A sparse or forged entry may declare terabytes.
MAX_MESSAGE_BYTES = 16 * 2**20

_HAM = re.compile(r"(easy|hard)[_-]ham([_-]\d+)?")
_SPAM = re.compile(r"spam([_-]\d+)?")

_SCHEMA = {
    "label": pl.String,
    "text": pl.String,
    "folder": pl.String,
    "name": pl.String,
    "raw": pl.Binary,
}


def load(path: str | Path | None = None) -> pl.LazyFrame:
    """Load the messages from a tar archive, or from all tar archives of a folder.

    Both the folder names of the published archives (`easy_ham`, `spam_2`, ...) and those of the
    stored copy (`easy-ham-1`, `spam-2`, ...) are understood. The list of shell commands (`cmds`)
    that the published archives contain is no message and is left out.
    """
    archives = [stored_file(CARD)] if path is None else _archives(Path(path))
    rows = [row for archive in archives for row in _messages(archive)]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row").lazy()


def _archives(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(path.glob("*.tar.*")) + sorted(path.glob("*.tgz"))
    if not found:
        raise FileNotFoundError(
            f"corpus 'spamassassin': no tar archive at {path}; expected a file such as "
            "20030228_easy_ham.tar.bz2, or a folder of them"
        )
    return found


def _messages(archive: Path) -> Iterator[tuple[str, str, str, str, bytes]]:
    try:
        # "r|*" forbids seeking: every entry is read once, in order, straight from the stream.
        with tarfile.open(archive, "r|*") as tar:
            for member in tar:
                entry = PurePosixPath(member.name)
                if member.isdir() or entry.name == "cmds":
                    continue
                label = _label(archive, member)
                raw = _read(tar, member)
                yield label, raw.decode("latin-1"), entry.parent.name, entry.name, raw
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise SourceError.unreadable(str(archive), error) from error


def _label(archive: Path, member: tarfile.TarInfo) -> str:
    if not member.isreg():
        raise SourceError.unreadable(
            str(archive), f"entry {member.name!r} is a link or a device; expected regular files"
        )
    if member.size > MAX_MESSAGE_BYTES:
        raise SourceError.unreadable(
            str(archive), f"entry {member.name!r} declares {member.size:,} bytes; a message has "
            f"at most {MAX_MESSAGE_BYTES:,}"
        )
    folder = PurePosixPath(member.name).parent.name
    if _HAM.fullmatch(folder):
        return "ham"
    if _SPAM.fullmatch(folder):
        return "spam"
    raise SourceError.unreadable(
        str(archive), f"entry {member.name!r}: folder {folder!r} is neither ham nor spam; expected "
        "easy_ham, easy_ham_2, hard_ham, spam or spam_2"
    )


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    # isreg() was checked: extractfile() gives None for other kinds only.
    assert stream is not None
    return stream.read()
