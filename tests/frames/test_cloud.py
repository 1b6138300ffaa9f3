"""Rows in S3: read, refused, and written, against a server on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from textnb import ParameterError, SourceError, TextClassifier, scan
from textnb.frames import sinks
from textnb.frames.cloud import (
    check_storage_options,
    hide_secrets,
    is_database,
    remove_secrets,
)

if TYPE_CHECKING:
    from tests.conftest import S3

FRAME = pl.DataFrame({
    "text": ["free money", "lunch, at \"noon\"", "free\noffer", None, "", "see you"] * 50,
    "label": ["spam", "ham", "spam", "ham", "ham", "ham"] * 50})


@pytest.mark.parametrize(("path", "told"), [
    ("/data/a:b@c?d", "/data/a:b@c?d"),
    ("s3://bucket/key", "s3://bucket/key"),
    ("s3://bucket/a@b.csv", "s3://bucket/a@b.csv"),
    ("https://host/file.csv?X-Amz-Signature=abc", "https://host/file.csv"),
    ("postgresql://host:5432/db", "postgresql://host:5432/db"),
    ("postgresql://me@host/db?password=PW", "postgresql://me@host/db"),
    ("postgresql://me:PW@host/db", "postgresql://me:***@host/db"),
    ("postgresql://me:P@W/?#x@host/db", "postgresql://me:***@host/db")])
def test_a_url_is_told_without_secrets(path: str, told: str) -> None:
    assert hide_secrets(path) == told


@pytest.mark.parametrize(("message", "told"), [
    ("at postgresql://me:P%40SS@host/db?sslpassword=KEY: bad",
     "at postgresql://me:***@host/db: bad"),
    ("password P@SS or P%40SS or KEY", "password *** or *** or ***"), ("no secret", "no secret")])
def test_an_error_is_told_without_secrets(message: str, told: str) -> None:
    assert remove_secrets(message, "postgresql://me:P%40SS@host/db?sslpassword=KEY") == told


def test_what_is_a_database() -> None:
    assert [is_database(path) for path in (
        "postgresql://h/d", "postgres://h/d", "POSTGRESQL://h/d", "sqlite:///f.db",
        "other+driver://h", "s3://b/k", "postgresql", "/postgresql:/x", "https://h/sqlite")] == [
            True, True, True, True, True, False, False, False, False]


def test_storage_options_are_checked() -> None:
    given = {"aws_region": "x", "MAX_RETRIES": "5", "retry_base_multiplier": "1.5"}
    assert check_storage_options("s3://b/k", given) == {
        "aws_region": "x", "max_retries": 5, "retry_base_multiplier": 1.5}
    assert check_storage_options("s3://b/k", None) == {"max_retries": 3}
    options = {"google_service_account": "f"}
    assert check_storage_options("gs://b/k", options) == options
    assert check_storage_options("data.csv", None) is None
    assert check_storage_options("https://h/f.csv", {}) is None
    with pytest.raises(ParameterError, match="max_retries must be a number") as caught:
        check_storage_options("s3://b/k", {"max_retries": "TOPSECRET"})
    assert "TOPSECRET" not in str(caught.value)
    for path in ("data.csv", "file:///data.csv"):
        with pytest.raises(ParameterError, match="is for a URL"):
            scan(path, storage_options={"aws_region": "x"})


def test_a_database_is_no_file() -> None:
    with pytest.raises(ParameterError, match=r"me:\*\*\*@h/d is a database.*scan\(url, query="):
        TextClassifier().fit("postgresql://me:PW@h/d")


@pytest.fixture(scope="module")
def stored(s3: S3) -> S3:
    """The frame, in every format."""
    lazy, options = FRAME.lazy(), s3.options
    lazy.sink_parquet("s3://bucket/mail.parquet", storage_options=options)
    lazy.sink_ipc("s3://bucket/mail.arrow", storage_options=options)
    lazy.sink_csv("s3://bucket/mail.csv", storage_options=options)
    lazy.sink_ndjson("s3://bucket/mail.ndjson", storage_options=options)
    for part in range(3):
        FRAME.slice(100 * part, 100).lazy().sink_parquet(
            f"s3://bucket/parts/{part}.parquet", storage_options=options)
    return s3


@pytest.mark.parametrize("name", ["mail.parquet", "mail.arrow", "mail.csv", "mail.ndjson",
                                  "parts/*.parquet", "parts/"])
def test_rows_of_every_format(stored: S3, name: str) -> None:
    format = "parquet" if name.endswith("/") else None
    frame = scan(f"s3://bucket/{name}", text="text", label="label", format=format,
                 storage_options=stored.options)
    assert frame.collect().equals(FRAME)
    assert frame.select("label").head(2).collect()["label"].to_list() == ["spam", "ham"]
    assert frame.filter(pl.col("text") == "free money").collect().height == 50


def test_a_model_from_there_is_the_local_one(stored: S3, tmp_path: Path) -> None:
    for name in ("mail.parquet", "mail.csv", "mail.ndjson", "parts/*.parquet"):
        frame = scan(f"s3://bucket/{name}", storage_options=stored.options)
        TextClassifier().fit(frame).save(tmp_path / "there.textnb")
        TextClassifier().fit(FRAME).save(tmp_path / "here.textnb")
        assert (tmp_path / "there.textnb").read_bytes() == (tmp_path / "here.textnb").read_bytes()


def refused(path: str, told: str, options: dict[str, Any], **settings: Any) -> None:
    with pytest.raises(SourceError, match=told) as caught:
        scan(path, text="text", storage_options=options, **settings).collect()
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "TOPSECRET" not in str(caught.value)


def test_what_is_not_there(stored: S3) -> None:
    refused("s3://bucket/none.parquet", "there is no such object in the bucket", stored.options)
    refused("s3://bucket/none.csv", "there is no such object, or no such bucket", stored.options)
    refused("s3://bucket/none*.parquet", "it matches no object", stored.options)
    refused("s3://nobucket/mail.parquet", "there is no bucket 'nobucket'", stored.options)
    refused("s3://bucket/mail", "can't tell the format", stored.options)
    refused("s3://bucket/mail.csv", "can't read", stored.options, format="parquet")


def test_a_refused_credential(stored: S3) -> None:
    stored.request("POST", "/moto-api/reset-auth", b"0")
    try:
        refused("s3://bucket/mail.parquet", "access was refused.*403", stored.options)
        options = {**stored.options, "aws_access_key_id": "X",
                   "aws_secret_access_key": "TOPSECRET"}
        refused("s3://bucket/mail.csv", "access was refused.*403", options)
    finally:
        stored.request("POST", "/moto-api/reset-auth", b"inf")


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "READER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "TOPSECRET")
    options = {"aws_endpoint_url": "http://127.0.0.1:1", "aws_region": "x",
               "aws_allow_http": "true"}
    began = time.monotonic()
    refused("s3://bucket/mail.parquet", r"http://127\.0\.0\.1:1 does not answer.*refused", options)
    assert time.monotonic() - began < 15
    refused("s3://bucket/mail.csv", "does not answer", {**options, "max_retries": "0"})


@pytest.mark.parametrize("path", ["s3://bucket/o.csv", "https://host/o.csv?X-Signature=PW"])
def test_nothing_is_written_there(path: str) -> None:
    with pytest.raises(ParameterError, match="Write a file, and copy it") as caught:
        sinks.write(FRAME.lazy(), path, None)
    assert "PW" not in str(caught.value)


def test_a_delta_table_there(s3: S3) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs pip install 'textnb[delta]'")
    path = "s3://bucket/delta"
    deltalake.write_deltalake(path, FRAME, storage_options=s3.options)
    deltalake.DeltaTable(path, storage_options=s3.options).delete("label = 'spam'")
    frame = scan(path, format="delta", label="label", storage_options=s3.options)
    assert frame.collect()["label"].value_counts().rows() == [("ham", 200)]
    refused("s3://bucket/none", "no Delta table", s3.options, format="delta")
    refused("s3://nobucket/none", "no bucket 'nobucket'", s3.options, format="delta")


def test_an_iceberg_table_there(s3: S3, tmp_path: Path) -> None:
    for library, extra in (("pyiceberg", "iceberg"), ("polars_iceberg", "iceberg"),
                           ("sqlalchemy", "database")):
        pytest.importorskip(library, reason=f"needs pip install 'textnb[{extra}]'")
    import pyarrow
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse="s3://bucket/lake",
                         **{"s3.endpoint": s3.url, "s3.region": "us-east-1",
                            "s3.access-key-id": "READER", "s3.secret-access-key": "TOPSECRET"})
    catalog.create_namespace("mail")
    fields = pyarrow.schema([("text", pyarrow.string()), ("label", pyarrow.string())])
    table = catalog.create_table("mail.rows", schema=fields)
    table.append(FRAME.to_arrow().cast(fields))
    table.delete("label = 'spam'")
    catalog.close()
    frame = scan(table.metadata_location, label="label", storage_options=s3.options)
    assert frame.collect()["label"].value_counts().rows() == [("ham", 200)]
    refused(table.location(), r"name that \.metadata\.json", s3.options, format="iceberg")
    refused("s3://nobucket/t.metadata.json", "does not exist", s3.options)
