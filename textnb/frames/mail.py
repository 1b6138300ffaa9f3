"""Mail as a lazy table: one row per message, from files, Maildirs, archives or standard input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePath
from typing import Any

import polars as pl

from textnb.errors import ParameterError, SchemaError, SourceError
from textnb.frames.batches import groups
from textnb.frames.cloud import hide_secrets
from textnb.frames.paths import expand_glob
from textnb.frames.sources import OnSkip, ScanOptions, lazy_frame_from
from textnb.frames.stdin import spool_stdin
from textnb.mail.charset_guess import replace_surrogates
from textnb.mail.columns import TOKENS
from textnb.mail.mailboxes import (
    RawMessage,
    archive_label,
    class_folders,
    list_mail_files,
    read_messages,
)
from textnb.mail.mbox import UNREADABLE
from textnb.mail.message import check_headers, read_message
from textnb.mail.tokens import tokens_of_message
from textnb.runtime.forks import check_polars_threads

_SCHEMA = {
    "message_id": pl.String(), "date": pl.Datetime("us", "UTC"), "from": pl.String(),
    "to": pl.String(), "subject": pl.String(), "headers": pl.String(), "body": pl.String(),
    "links": pl.String(), "images": pl.String(), "attachments": pl.List(pl.String()),
    "flags": pl.String(), "path": pl.String(), "errors": pl.List(pl.String()),
}
COLUMNS = ("label", *_SCHEMA)
# Names of headers are collected from this number of messages.
_SAMPLE_MESSAGES = 1000
# Columns whose values are known before a message is parsed.
_UNPARSED = {"label", "path", "flags"}


def scan_mail(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    headers: Sequence[str] = (),
    label: bool | None = None,
    subfolders: bool = False,
    tokens: bool = False,
    on_error: str | OnSkip = "raise",
) -> pl.LazyFrame:
    """Lazy rows of mail messages, in the order of their sorted paths.

    Parameters
    ----------
    source : path, glob, or sequence of these
        A message file, an mbox file, a Maildir (its ``cur`` and ``new``), a folder of these
        and of folders of them, a tar archive of message files, or ``"-"`` for one message or mbox
        on standard input. Files and archives may be compressed by gzip, bzip2 or xz. If a folder
        holds only folders, each of them is a class. A link to a folder is followed as a class, and
        as a Maildir's ``cur`` or ``new``; elsewhere it is a file that can't be read. A file without
        an ending ``.eml`` or ``.mbox`` is an mbox if it begins with ``From`` and a space.
    headers : sequence of str
        Names of further headers, in any case; each becomes a String column.
    label : bool, optional
        Whether there is a column ``label``: the class folder, in an archive the first folder of a
        member's path. By default there is one if there are such folders.
    subfolders : bool
        Whether to read also the folders of each Maildir, such as ``.Spam`` and ``.Sent``. They are
        left out by default, as they hold mail of another kind.
    tokens : bool
        Whether there is a column ``tokens``, from which filters judge mail: see `mail_tokens`.
    on_error : {"raise", "skip"} or callable
        What to do about messages that can't be read: keep a row whose ``errors`` say why; or leave
        them out, and after the others warn which were left out and why (or call the callable with
        the list of `SourceError` and the number of messages).

    Returns
    -------
    polars.LazyFrame
        ``label``, as that parameter says; ``message_id``, ``from``, ``to``, ``subject`` (String,
        decoded, null if absent); ``date`` (Datetime in UTC); ``headers`` (String: all of them, one
        per line); ``body`` (String: see `parse_message`); ``links``, ``images`` (String: targets of
        the HTML parts' links and images, one per line); ``attachments`` (List of String); ``flags``
        (String, the letters of a Maildir's file name; null for other sources); ``path`` (String:
        the file, ``mbox#2``, ``archive:member``); ``errors`` (List of String: what was malformed,
        empty if nothing was); ``tokens`` (List of String) if requested; and a String column for
        each of ``headers``. If only ``label``, ``path`` and ``flags`` are selected, no message is
        parsed.

    Raises
    ------
    SourceError
        If there is no such file or folder, or it holds no message. A file that can't be read is a
        row whose ``errors`` say why.
    ParameterError
        If one of ``headers`` is the name of another column, or not a valid name of a header.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.eml").write_bytes(b"Subject: Hello\\nX-Mailer: none\\n\\nBody")
    >>> mail = scan_mail(folder, headers=["x-mailer"])
    >>> mail.select("subject", "body", "x-mailer").collect().row(0)
    ('Hello', 'Body', 'none')
    """
    check_polars_threads()
    extra_headers, on_skip = check_headers(headers), ScanOptions(on_error=on_error).on_skip
    columns_of_mail = {**_SCHEMA, **({TOKENS: pl.List(pl.String())} if tokens else {})}
    reserved = ["label", *columns_of_mail]
    if duplicates := [name for name in extra_headers if name in reserved]:
        raise ParameterError.out_of_range(
            "headers", f"other than the columns that are there anyway ({', '.join(reserved)})",
            duplicates[0])
    roots = _find_roots(source, subfolders)
    if label and not _have_labels(roots):
        raise SourceError.unreadable(
            str(source), "it has no folder per class, from which a label could come")
    has_label = _have_labels(roots) if label is None else label
    schema = pl.Schema({**({"label": pl.String()} if has_label else {}), **columns_of_mail,
                        **{name: pl.String() for name in extra_headers}})

    # The parameters are those of `textnb.frames.sources.Read`.
    def read(
        columns: list[str], predicate: pl.Expr | None, n_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        selection = pl.Schema({name: schema[name] for name in columns})
        mail = _skip_unreadable(_read_messages(roots, subfolders), on_skip)
        for group in groups(islice(mail, n_rows), size_of=lambda message: len(message.raw)):
            yield _frame_of_messages(group, selection, extra_headers, predicate)

    return lazy_frame_from(read, schema)


def scan_with_texts(source: str, options: ScanOptions) -> pl.LazyFrame:
    """Scan mail with the columns of ``options.text``.

    Among them, ``text`` is subject and body, ``tokens`` the tokens, and a name that is not a column
    of mail is a header.
    """
    headers = check_headers(
        [name for name in options.text if name not in (*COLUMNS, TOKENS, "text")], "text")
    frame = scan_mail(source, headers=headers, subfolders=options.subfolders,
                      tokens=TOKENS in options.text, on_error=options.on_error)
    if "text" not in options.text:
        return frame
    return frame.with_columns(
        text=pl.concat_str(pl.col("subject").fill_null(""), "body", separator="\n"))


def header_names(frame: pl.LazyFrame) -> list[str]:
    """The names of the headers in the first messages of a table of mail, in lower case."""
    name = pl.col("headers").str.split("\n").list.explode().str.extract(r"^([^\s:]+):")
    return (frame.head(_SAMPLE_MESSAGES).select(name.str.to_lowercase()).collect()
            .to_series().drop_nulls().unique().sort().to_list())


def mail_errors(frame: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """The kinds of malformations in a table of mail, the most frequent first.

    Parameters
    ----------
    frame : DataFrame or LazyFrame
        With the columns ``path`` and ``errors`` of `scan_mail`.

    Returns
    -------
    polars.DataFrame
        One row per kind of error: ``error`` (String: the part before a colon), ``messages`` (Int64:
        how many have it) and ``paths`` (List of String: the paths of these messages, in order).

    Raises
    ------
    SchemaError
        If a column is missing.

    Examples
    --------
    >>> mail = pl.DataFrame({"path": ["a", "b"], "errors": [["bad date: x"], []]},
    ...                     schema_overrides={"errors": pl.List(pl.String)})
    >>> mail_errors(mail).rows()
    [('bad date', 1, ['a'])]
    """
    table = frame.lazy()
    schema = table.collect_schema()
    for column in ("path", "errors"):
        if column not in schema:
            raise SchemaError.missing_column(column, schema.names(), column)
    kind = pl.col("errors").str.split(": ").list.first()
    return (table.select("path", "errors").filter(pl.col("errors").list.len() > 0).collect()
            .with_row_index("message").explode("errors").with_columns(error=kind)
            .unique(["message", "error"], maintain_order=True)
            .group_by("error", maintain_order=True)
            .agg(messages=pl.len().cast(pl.Int64), paths=pl.col("path"))
            .sort("messages", "error", descending=[True, False]))


def _find_roots(source: Any, subfolders: bool) -> dict[str, str]:
    """Existing paths of a source, each with the name that it has in the column ``path``.

    Standard input has the path of a copy, and the name "-".
    """
    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    roots: dict[str, str] = {}
    for path in [os.fspath(path) for path in sources]:
        if path == "-":
            roots[spool_stdin()[0]] = "-"
        elif "://" in path:
            raise SourceError.unreadable(
                hide_secrets(path), "mail is read from local files; download it first")
        elif os.path.exists(path):
            roots[path] = path
        else:
            matches = expand_glob(path)
            if not matches:
                raise SourceError.not_found(path)
            folders = {os.path.join(match, "") for match in matches if os.path.isdir(match)}
            # A folder is read with all that is in it, which may match too.
            roots.update((match, match) for match in matches
                         if not folders or folders.isdisjoint(_folders_above(match)))
    for path in roots:
        if os.path.isdir(path) and next(list_mail_files(path, subfolders=subfolders), None) is None:
            nested = not subfolders and next(list_mail_files(path, subfolders=True), None)
            raise SourceError.unreadable(path, "it holds no message" + (
                f", but a folder in it does ({nested.path}): name that, or ask for subfolders"
                if nested else ""))
    return roots


def _folders_above(path: str) -> list[str]:
    """The folders that hold a path, with a slash at their ends."""
    return [os.path.join(parent, "") for parent in PurePath(path).parents]


def _have_labels(roots: Iterable[str]) -> bool:
    """Whether all paths give labels: by a folder per class, or by the folders in an archive."""
    return all(class_folders(root) or archive_label(root) for root in roots)


def _read_messages(roots: Mapping[str, str], subfolders: bool) -> Iterator[RawMessage]:
    """Read the messages of `_find_roots`'s paths, in order, under the names of these paths."""
    for root, name in roots.items():
        for folder in class_folders(root) or [root]:
            label = None if folder == root else os.path.basename(folder)
            for file in list_mail_files(folder, label, subfolders):
                for message in read_messages(file):
                    yield message if root == name else replace(
                        message, path=name + message.path.removeprefix(root))


def _skip_unreadable(mail: Iterable[RawMessage], on_skip: OnSkip | None) -> Iterator[RawMessage]:
    """Leave out unreadable messages if ``on_skip`` is there to get their errors."""
    if on_skip is None:
        yield from mail
        return
    skipped, n_messages = list[SourceError](), 0
    for message in mail:
        n_messages += 1
        reason = next((error for error in message.errors if error.startswith(UNREADABLE)), None)
        if reason is None:
            yield message
        else:
            skipped.append(SourceError.unreadable(
                replace_surrogates(message.path), reason.removeprefix(UNREADABLE).lstrip(": ")))
    if skipped:
        on_skip(skipped, n_messages)


def _frame_of_messages(
    mail: list[RawMessage], schema: pl.Schema, headers: Sequence[str], predicate: pl.Expr | None
) -> pl.DataFrame:
    """Make a frame of messages, with the columns of ``schema``; ``headers`` are further columns.

    ``predicate``, the engine's filter, is applied here only if its columns need no parsing.
    """
    unparsed = pl.Schema({name: dtype for name, dtype in schema.items() if name in _UNPARSED})
    if predicate is not None and set(predicate.meta.root_names()) <= set(unparsed):
        # Only the messages that pass the filter are parsed.
        frame = pl.DataFrame(map(_unparsed_row, mail), schema=unparsed, orient="row")
        selected = frame.with_row_index("row").filter(predicate)["row"]
        mail = [mail[row] for row in selected]
    is_parsed = len(unparsed) < len(schema)
    # If a requested header has the name of the column, the column holds the header.
    with_tokens = TOKENS in schema and TOKENS not in headers
    rows = [_parsed_row(message, headers, with_tokens) if is_parsed else _unparsed_row(message)
            for message in mail]
    return pl.DataFrame({name: pl.Series([row[name] for row in rows], dtype=dtype)
                         for name, dtype in schema.items()}, schema=schema)


def _unparsed_row(raw: RawMessage) -> dict[str, Any]:
    # If the name of a file is not UTF-8, Python has surrogates in place of its bytes.
    return {"label": None if raw.label is None else replace_surrogates(raw.label),
            "flags": raw.flags, "path": replace_surrogates(raw.path)}


def _parsed_row(raw: RawMessage, headers: Sequence[str], tokens: bool) -> dict[str, Any]:
    """All columns of a message by name, with its tokens if ``tokens`` is true."""
    # ``structure``, which parts the message has, is only for the tokens.
    message, structure = read_message(raw.raw, headers)
    # An unreadable message is not reported as an empty one too.
    is_unreadable = not raw.raw and raw.errors
    return {**vars(message), **_unparsed_row(raw), "from": message.from_,
            "links": message.column("links"), "images": message.column("images"),
            "attachments": list(message.attachments),
            "errors": list(raw.errors) if is_unreadable else [*raw.errors, *message.errors],
            **message.requested,
            **({TOKENS: tokens_of_message(message, structure)} if tokens else {})}
