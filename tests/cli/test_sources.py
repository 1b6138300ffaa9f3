"""Remote rows on the command line: S3, and queries of a database."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import MAIL
from textnb.frames.cloud import hide_secrets

TRAIN_PART = ("--where", "split = 'train'")


@pytest.fixture
def check_source(run, mail):
    """Assert that a source gives the model and the answers of the file."""

    def check(*source):
        for name, rows in (("file", [mail]), ("other", source)):
            run("train", *rows, *TRAIN_PART, "-o", f"{name}.textnb", "-q").checked()
            run("predict", "file.textnb", *rows, "-o", f"{name}.csv", "-q").checked()
        for ending in ("textnb", "csv"):
            assert Path(f"other.{ending}").read_bytes() == Path(f"file.{ending}").read_bytes()

    return check


@pytest.fixture
def bucket(s3, mail):
    """The table in a bucket, with the options by which it is read."""
    url = "s3://bucket/cli/mail.parquet"
    pl.scan_parquet(mail).sink_parquet(url, storage_options=s3.options)
    return url, [word for name, value in s3.options.items()
                 for word in ("--read", f"storage_options.{name}={value}")]


def test_a_bucket(bucket, check_source, run, mail, folder):
    url, options = bucket
    check_source(url, *options)
    model = "file.textnb"
    for verb, words in (("test", []), ("validate", ["--folds", "2"]), ("update", []),
                        ("forget", TRAIN_PART), ("calibrate", ["--held-out", "--dry-run"])):
        run(verb, model, url, *words, *options).checked()
    run("diff", model, model, url, *options).checked()
    # --read applies to the URL, and not to the local file.
    ran = run("duplicates", mail, url, "--exact", "--format", "json", *options).checked()
    assert json.loads(ran.out)["exact"] == 6


def test_a_database(postgres, check_source, run, monkeypatch):
    pytest.importorskip("adbc_driver_postgresql", reason="needs pip install 'textnb[database]'")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    # libpq takes what the URL lacks from the environment.
    for name, value in conninfo_to_dict(postgres).items():
        monkeypatch.setenv(f"PG{ {'dbname': 'DATABASE'}.get(name, name.upper()) }", str(value))
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS cli_mail; "
                           "CREATE TABLE cli_mail (text text, label text, split text, id int)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO cli_mail VALUES (%s, %s, %s, %s)", MAIL.rows())
    query = ("query=SELECT * FROM cli_mail ORDER BY array_position(ARRAY[3, 1, 4, 15, 9, 2], id)")
    source = ("postgresql://", "--read", query)
    check_source(*source)
    for verb, words in (("test", []), ("validate", ["--folds", "2"]), ("update", [])):
        run(verb, "file.textnb", *source, *words).checked()


def test_a_job(s3, bucket, run, mail, folder, monkeypatch):
    url, _ = bucket
    monkeypatch.setenv("THE_KEY", "TOPSECRET")
    options = {**s3.options, "aws_access_key_id": "READER", "aws_secret_access_key": "${THE_KEY}"}
    Path("job.toml").write_text("\n".join([
        'output = "made"', "[input]", f'train = "{url}"', "train_where = \"split = 'train'\"",
        "test_where = \"split = 'test'\"", "[input.storage_options]",
        *(f'{name} = "{value}"' for name, value in options.items())]), "utf-8")
    run("run", "job.toml", "--check").checked()
    run("run", "job.toml").checked()
    record = Path("made/run.json").read_text("utf-8")
    assert "TOPSECRET" not in record
    assert "READER" not in record
    assert json.loads(record)["job"]["input"]["storage_options"]["aws_region"] == "***"
    run("train", mail, *TRAIN_PART, "-o", "file.textnb", "-q").checked()
    assert Path("file.textnb").read_bytes() == Path("made/model.textnb").read_bytes()


def test_a_report_does_not_contain_the_password():
    from textnb.cli.test import _heading

    url = "postgresql://me:TOPSECRET@h"
    name = hide_secrets(url).removeprefix("postgresql://")
    assert _heading("m", url)["title"] == f"m on {name}"
    assert _heading("m", "https://h/f.csv?X-Signature=TOPSECRET")["title"] == "m on f.csv"
