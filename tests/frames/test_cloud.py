"""Rows in S3: read, refused, and written, against a server on this machine."""

import time

import polars as pl
import pytest

from tests.frames.test_lake import iceberg_table
from textnb import ParameterError, SourceError, TextClassifier, scan
from textnb.frames import cloud, sinks

FRAME = pl.DataFrame({
    "text": ["free money", "lunch, at \"noon\"", "free\noffer", None, "", "see you"] * 50,
    "label": ["spam", "ham", "spam", "ham", "ham", "ham"] * 50})


@pytest.mark.parametrize(("path", "shown"), [
    ("/data/a:b@c?d", "/data/a:b@c?d"),
    ("s3://bucket/key", "s3://bucket/key"),
    ("s3://bucket/a@b.csv", "s3://bucket/a@b.csv"),
    ("https://host/file.csv?X-Amz-Signature=abc", "https://host/file.csv"),
    ("postgresql://host:5432/db", "postgresql://host:5432/db"),
    ("postgresql://me@host/db?password=PW", "postgresql://me@host/db"),
    ("postgresql://me:PW@host/db", "postgresql://me:***@host/db"),
    ("postgresql://me:P@W/?#x@host/db", "postgresql://me:***@host/db")])
def test_a_url_is_shown_without_secrets(path, shown):
    assert cloud.hide_secrets(path) == shown


@pytest.mark.parametrize(("message", "shown"), [
    ("at postgresql://me:P%40SS@host/db?sslpassword=KEY: bad",
     "at postgresql://me:***@host/db: bad"),
    ("password P@SS or P%40SS or KEY", "password *** or *** or ***"), ("no secret", "no secret")])
def test_an_error_is_shown_without_secrets(message, shown):
    assert cloud.remove_secrets(message, "postgresql://me:P%40SS@host/db?sslpassword=KEY") == shown


@pytest.mark.parametrize(("path", "expected"), [
    ("postgresql://h/d", True), ("postgres://h/d", True), ("POSTGRESQL://h/d", True),
    ("sqlite:///f.db", True), ("other+driver://h", True), ("s3://b/k", False),
    ("postgresql", False), ("/postgresql:/x", False), ("https://h/sqlite", False)])
def test_what_is_a_database(path, expected):
    assert cloud.is_database(path) == expected


@pytest.mark.parametrize(("path", "options", "checked"), [
    ("s3://b/k", {"aws_region": "x", "MAX_RETRIES": "5", "retry_base_multiplier": "1.5"},
     {"aws_region": "x", "max_retries": 5, "retry_base_multiplier": 1.5}),
    ("s3://b/k", None, {"max_retries": 3}),
    ("gs://b/k", {"google_service_account": "f"}, {"google_service_account": "f"}),
    ("data.csv", None, None), ("https://h/f.csv", {}, None)])
def test_storage_options_have_few_retries_and_numbers(path, options, checked):
    assert cloud.check_storage_options(path, options) == checked


@pytest.mark.parametrize(("call", "message"), [
    (lambda: cloud.check_storage_options("s3://b/k", {"max_retries": "TOPSECRET"}),
     "max_retries must be a number"),
    (lambda: scan("data.csv", storage_options={"aws_region": "TOPSECRET"}), "is for a URL"),
    (lambda: scan("file:///data.csv", storage_options={"aws_region": "x"}), "is for a URL"),
    (lambda: TextClassifier().fit("postgresql://me:TOPSECRET@h/d"),
     r"me:\*\*\*@h/d is a database.*scan\(url, query="),
    (lambda: sinks.write(FRAME.lazy(), "s3://bucket/o.csv", None), "Write a file, and copy it"),
    (lambda: sinks.write(FRAME.lazy(), "https://host/o.csv?X-Signature=TOPSECRET", None),
     "Write a file, and copy it")])
def test_a_wrong_call_is_refused_without_secrets(call, message):
    with pytest.raises(ParameterError, match=message) as caught:
        call()
    assert "TOPSECRET" not in str(caught.value)


@pytest.fixture(scope="module")
def stored(s3):
    """The frame, in every format."""
    lazy, options = FRAME.lazy(), {"storage_options": s3.options}
    lazy.sink_parquet("s3://bucket/mail.parquet", **options)
    lazy.sink_ipc("s3://bucket/mail.arrow", **options)
    lazy.sink_csv("s3://bucket/mail.csv", **options)
    lazy.sink_ndjson("s3://bucket/mail.ndjson", **options)
    for part in range(3):
        lazy.slice(100 * part, 100).sink_parquet(f"s3://bucket/parts/{part}.parquet", **options)
    return s3


@pytest.mark.parametrize("name", ["mail.parquet", "mail.arrow", "mail.csv", "mail.ndjson",
                                  "parts/*.parquet", "parts/"])
def test_rows_of_every_format(stored, name):
    format = "parquet" if name.endswith("/") else None
    frame = scan(f"s3://bucket/{name}", text="text", label="label", format=format,
                 storage_options=stored.options)
    assert frame.collect().equals(FRAME)
    assert frame.select("label").head(2).collect()["label"].to_list() == ["spam", "ham"]
    assert frame.filter(pl.col("text") == "free money").collect().height == 50


def refused(path, message, options, **settings):
    with pytest.raises(SourceError, match=message) as caught:
        scan(path, text="text", storage_options=options, **settings).collect()
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "TOPSECRET" not in str(caught.value)


@pytest.mark.parametrize(("path", "message", "format"), [
    ("s3://bucket/none.parquet", "there is no such object in the bucket", None),
    ("s3://bucket/none.csv", "there is no such object, or no such bucket", None),
    ("s3://bucket/none*.parquet", "it matches no object", None),
    ("s3://nobucket/mail.parquet", "there is no bucket 'nobucket'", None),
    ("s3://bucket/mail", "can't tell the format", None),
    ("s3://bucket/mail.csv", "can't read", "parquet")])
def test_what_is_not_there(stored, path, message, format):
    refused(path, message, stored.options, format=format)


def test_a_refused_credential(stored):
    stored.request("POST", "/moto-api/reset-auth", b"0")
    try:
        refused("s3://bucket/mail.parquet", "access was refused.*403", stored.options)
        options = {**stored.options, "aws_access_key_id": "X",
                   "aws_secret_access_key": "TOPSECRET"}
        refused("s3://bucket/mail.csv", "access was refused.*403", options)
    finally:
        stored.request("POST", "/moto-api/reset-auth", b"inf")


def test_a_server_that_is_not_there(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "READER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "TOPSECRET")
    options = {"aws_endpoint_url": "http://127.0.0.1:1", "aws_region": "x",
               "aws_allow_http": "true"}
    began = time.monotonic()
    refused("s3://bucket/mail.parquet", r"http://127\.0\.0\.1:1 does not answer.*refused", options)
    assert time.monotonic() - began < 15
    refused("s3://bucket/mail.csv", "does not answer", {**options, "max_retries": "0"})


def test_a_delta_table_there(s3):
    deltalake = pytest.importorskip("deltalake", reason="needs pip install 'textnb[delta]'")
    path = "s3://bucket/delta"
    deltalake.write_deltalake(path, FRAME, storage_options=s3.options)
    deltalake.DeltaTable(path, storage_options=s3.options).delete("label = 'spam'")
    frame = scan(path, format="delta", label="label", storage_options=s3.options)
    assert frame.collect()["label"].value_counts().rows() == [("ham", 200)]
    refused("s3://bucket/none", "no Delta table", s3.options, format="delta")
    refused("s3://nobucket/none", "no bucket 'nobucket'", s3.options, format="delta")


def test_an_iceberg_table_there(s3, tmp_path):
    with iceberg_table(tmp_path, [FRAME], warehouse="s3://bucket/lake", **{
            "s3.endpoint": s3.url, "s3.region": "us-east-1", "s3.access-key-id": "READER",
            "s3.secret-access-key": "TOPSECRET"}) as table:
        pass
    frame = scan(table.metadata_location, label="label", storage_options=s3.options)
    assert frame.collect()["label"].value_counts().rows() == [("ham", 200)]
    refused(table.location(), r"name that \.metadata\.json", s3.options, format="iceberg")
    refused("s3://nobucket/t.metadata.json", "does not exist", s3.options)
