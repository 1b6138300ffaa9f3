"""Writes files of every format of rows, by the ending of their name."""

import gzip
from collections.abc import Callable

import polars as pl


def _lines(frame):
    return "".join(f"{text}\n" for text in frame["text"]).encode()


_TEXT: dict[str, Callable[[pl.DataFrame], bytes]] = {
    "csv": lambda frame: frame.write_csv().encode(),
    "tsv": lambda frame: frame.write_csv(separator="\t").encode(),
    "ndjson": lambda frame: frame.write_ndjson().encode(),
    "txt": _lines,
}
# An ending for each format.
FORMATS = ("parquet", "ipc", *_TEXT)
# The endings of tables: lines of text have no other column.
TABLES = tuple(ending for ending in FORMATS if ending != "txt")
# Other endings of the formats.
_SAME = {"pq": "parquet", "arrow": "ipc", "feather": "ipc", "tab": "tsv", "jsonl": "ndjson",
         "CSV": "csv"}
ENDINGS = (*FORMATS, *_SAME, "csv.gz", "tsv.gz", "ndjson.gz", "txt.gz")


def write_rows(frame, path):
    """Write a frame, and make the folders that its file is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ending, _, packed = path.name.partition(".")[2].partition(".")
    ending = _SAME.get(ending, ending)
    if ending in _TEXT:
        content = _TEXT[ending](frame)
        path.write_bytes(gzip.compress(content) if packed else content)
    else:
        (frame.write_parquet if ending == "parquet" else frame.write_ipc)(path)
    return path


def write_files(folder, files):
    """Write contents by name, and make the folders that the names have."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder
