"""Rows at a URL: checks storage options, hides secrets, and explains failures in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from textnb.errors import ParameterError, first_line

# Databases that SQLAlchemy knows by name; a URL of another one names a driver: `x+driver`.
_DATABASES = frozenset({"postgresql", "postgres", "sqlite", "mysql", "mariadb", "oracle", "mssql",
                        "duckdb", "snowflake", "redshift", "cockroachdb"})
_S3 = re.compile("s3a?://", re.I)
_SECRET = re.compile("pass|sign|token|secret|key|credential", re.I)
# As many as the AWS tools make. Polars' eight take 15 seconds if there is no server.
_RETRIES = 3
# Polars' own options, which are numbers; all others are strings.
_NUMBERS = re.compile(r"max_retries|file_cache_ttl|(retry|rate)_\w+")


def is_url(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def is_database(path: str) -> bool:
    """Whether a path is the URL of a database.

    Examples
    --------
    >>> is_database("postgresql://localhost/news"), is_database("s3://bucket/news.parquet")
    (True, False)
    """
    scheme = path.partition("://")[0]
    return is_url(path) and ("+" in scheme or scheme.lower() in _DATABASES)


def hide_secrets(path: str) -> str:
    """A path as it may be shown: a URL without its password and its query (after ``?``).

    Examples
    --------
    >>> hide_secrets("postgresql://reader:secret@host/news?sslmode=require")
    'postgresql://reader:***@host/news'
    """
    if not is_url(path):
        return path
    scheme, _, rest = path.partition("://")
    # The last @: a password that was not percent-encoded may hold others, and any character.
    user, at, rest = rest.rpartition("@")
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    if at:
        rest = f"{user.partition(':')[0]}:***@{rest}" if ":" in user else f"{user}@{rest}"
    return f"{scheme}://{rest}"


def remove_secrets(message: str, path: str) -> str:
    """The message of another library's error, without the URL's password and query.

    Examples
    --------
    >>> remove_secrets("no host 'let@db'", "postgresql://reader:in@let@db/news")
    "no host '***@db'"
    """
    if not is_url(path):
        return message
    message = message.replace(path, hide_secrets(path))
    rest = path.partition("://")[2]
    password = rest.rpartition("@")[0].partition(":")[2]
    # A reader that splits at another @ shows the rest of the password as the host.
    secrets = {password, *re.split(r"[@/?#]", password)}
    secrets |= {part.partition("=")[2] for part in re.split(r"[?&]", rest)[1:]
                if _SECRET.search(part.partition("=")[0])}
    forms = {form for secret in secrets for form in (secret, unquote(secret)) if form}
    # Replace the longest first, as a shorter one may be part of it.
    for form in sorted(forms, key=len, reverse=True):
        message = message.replace(form, "***")
    return message


def check_storage_options(path: str, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Check storage options for Polars; for S3, set fewer retries than Polars would use.

    Raises
    ------
    ParameterError
        If the path is no URL, or a value must be a number. The error repeats no value.
    """
    if options and (not is_url(path) or path.startswith("file://")):
        raise ParameterError.naming("{storage_options} is for a URL such as s3://bucket/key, and "
                                    "{path!r} is a path on this machine", path=path)
    checked: dict[str, Any] = {"max_retries": _RETRIES} if _S3.match(path) else {}
    for key, value in (options or {}).items():
        if _NUMBERS.fullmatch(lower := key.lower()):
            try:
                key, value = lower, (float if lower == "retry_base_multiplier" else int)(value)
            except (TypeError, ValueError):
                raise ParameterError(f"storage option {key} must be a number") from None
        elif not isinstance(value, str):
            # Polars takes only strings, but TOML also has booleans and numbers.
            value = str(value).lower()
        checked[key] = value
    return checked or None


def explain_failure(path: str, error: BaseException) -> str:
    """Say why a URL can't be read or written, in one line without secrets."""
    message = remove_secrets(str(error), path)
    in_xml = re.search(r"<Code>([A-Za-z0-9]+)</Code>", message)
    in_text = re.search(r"status code:?\s*(?:\S*↳\S*\s*)?(\d{3})", message)
    code, status = (match[1] if match else None for match in (in_xml, in_text))
    if "169.254.169.254" in message:
        return ("no credentials were found, neither in storage options nor where the AWS tools "
                "look for them (AWS_ACCESS_KEY_ID, ~/.aws)")
    if code == "NoSuchBucket":
        return f"there is no bucket {urlsplit(path).netloc!r}"
    if code == "NoSuchKey":
        return "there is no such object in the bucket"
    if status == "404":
        return "there is no such object, or no such bucket"
    if status in ("401", "403"):
        return (f"access was refused ({', '.join(filter(None, [status, code]))}): check the "
                "credentials, and what they allow")
    if "expanded paths were empty" in message:
        return "it matches no object"
    if "Caused by:" in message:
        server = re.search(r"https?://[^\s/]+", message)
        cause = re.sub(r"^\d+:\s*", "", message.strip().splitlines()[-1].strip())
        return f"the server {server[0] if server else 'there'} does not answer: {cause}"
    return first_line(Exception(message))
