"""Rows at a URL: checks storage options, hides secrets, and explains failures in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from textnb.errors import ParameterError, first_line

# Databases that SQLAlchemy knows by name; a URL of any other names its driver: `name+driver`.
_DATABASES = frozenset({"postgresql", "postgres", "sqlite", "mysql", "mariadb", "oracle", "mssql",
                        "duckdb", "snowflake", "redshift", "cockroachdb"})
_S3_SCHEME = re.compile("s3a?://", re.I)
_SECRET_NAME = re.compile("pass|sign|token|secret|key|credential", re.I)
# The AWS tools retry as often. Polars' default of eight takes 15 seconds if there is no server.
_MAX_RETRIES = 3
# The options that must be numbers: Polars' own. All others are strings.
_NUMERIC_OPTION = re.compile(r"max_retries|file_cache_ttl|(retry|rate)_\w+")


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
    user, at, location = rest.rpartition("@")
    location = re.split(r"[?#]", location, maxsplit=1)[0]
    if ":" in user:
        user = f"{user.partition(':')[0]}:***"
    return f"{scheme}://{user}{at}{location}"


def remove_secrets(message: str, path: str) -> str:
    """Remove a URL's password and query from the message of another library's error.

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
    # A library that splits the URL at another @ shows the end of the password as the host.
    secrets = {password, *re.split(r"[@/?#]", password)}
    secrets |= {part.partition("=")[2] for part in re.split(r"[?&]", rest)[1:]
                if _SECRET_NAME.search(part.partition("=")[0])}
    spellings = {text for secret in secrets for text in (secret, unquote(secret)) if text}
    # Replace the longest first, as a shorter one may be part of it.
    for text in sorted(spellings, key=len, reverse=True):
        message = message.replace(text, "***")
    return message


def check_storage_options(path: str, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Check storage options for Polars; for S3, set fewer retries than Polars would use.

    Raises
    ------
    ParameterError
        If the path is not a URL, or a value must be a number and is not. The error repeats no
        value, as it may be a secret.
    """
    if options and (not is_url(path) or path.startswith("file://")):
        raise ParameterError.naming_settings(
            "{storage_options} is for a URL such as s3://bucket/key, and {path!r} is a path on "
            "this machine", path=path)
    checked: dict[str, Any] = {"max_retries": _MAX_RETRIES} if _S3_SCHEME.match(path) else {}
    for key, value in (options or {}).items():
        if _NUMERIC_OPTION.fullmatch(lower := key.lower()):
            try:
                key, value = lower, (float if lower == "retry_base_multiplier" else int)(value)
            except (TypeError, ValueError):
                raise ParameterError(f"storage option {key} must be a number") from None
        elif not isinstance(value, str):
            # Polars takes only strings, but TOML also has Booleans and numbers.
            value = str(value).lower()
        checked[key] = value
    return checked or None


def explain_failure(path: str, error: BaseException) -> str:
    """Say why a URL can't be read or written, in one line without secrets."""
    message = remove_secrets(str(error), path)
    code_match = re.search(r"<Code>([A-Za-z0-9]+)</Code>", message)
    # An arrow and a line break may come before the number.
    status_match = re.search(r"status code:?\s*(?:\S*↳\S*\s*)?(\d{3})", message)
    code, status = (match[1] if match else None for match in (code_match, status_match))
    # The address at which machines of AWS get credentials: it is asked last.
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
    # This is how Polars reports a glob without a match.
    if "expanded paths were empty" in message:
        return "it matches no object"
    if "Caused by:" in message:
        server = re.search(r"https?://[^\s/]+", message)
        cause = re.sub(r"^\d+:\s*", "", message.strip().splitlines()[-1].strip())
        return f"the server {server[0] if server else 'there'} does not answer: {cause}"
    return first_line(Exception(message))
