"""Rows from elsewhere on the command line: S3, tables of a lake, a database's query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from textnb.frames.cloud import hide_secrets

if TYPE_CHECKING:
    from tests.cli.conftest import Run
    from tests.conftest import S3



def storage(s3: S3) -> list[str]:
    return [part for name, value in s3.options.items()
            for part in ("--read", f"storage_options.{name}={value}")]


def test_a_model_and_its_answers_from_s3(s3: S3, run: Run, mail: Path, folder: Path) -> None:
    there = "s3://bucket/cli/mail.parquet"
    pl.scan_parquet(mail).sink_parquet(there, storage_options=s3.options)
    run("train", mail, "-o", "here.textnb", "-q").checked()
    run("train", there, "-o", "there.textnb", "-q", *storage(s3)).checked()
    assert (folder / "here.textnb").read_bytes() == (folder / "there.textnb").read_bytes()
    run("predict", "here.textnb", mail, "-o", "here.csv", "--probability", "-q").checked()
    run("predict", "here.textnb", there, "-o", "there.csv", "--probability", "-q",
        *storage(s3)).checked()
    assert (folder / "here.csv").read_bytes() == (folder / "there.csv").read_bytes()
    whole = run("test", "here.textnb", there, "--format", "json", "-q", *storage(s3)).checked()
    assert json.loads(whole.out)["documents"] == 6
    for verb, rest in (("update", ["-o", "more.textnb"]), ("forget", ["-o", "less.textnb"]),
                       ("calibrate", ["-o", "sure.textnb"]), ("validate", ["--folds", "2"]),
                       ("diff", [])):
        first = ["here.textnb"] * (2 if verb == "diff" else 1)
        where = ["--where", "split = 'train'"] if verb == "forget" else []
        run(verb, *first, there, *rest, *where, *storage(s3)).checked()
    # Of two inputs, the one that is there.
    found = run("duplicates", mail, there, "--exact", "--format", "json", *storage(s3)).checked()
    assert json.loads(found.out)["exact"] == 6


def test_s3_that_fails(s3: S3, run: Run, folder: Path) -> None:
    failed = run("train", "s3://bucket/cli/none.parquet", "-o", "m.textnb", *storage(s3)).checked(1)
    assert failed.err == ("error: can't read s3://bucket/cli/none.parquet: there is no such object "
                          "in the bucket\n")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("arguments", "told"), [
    (["mail.parquet", "--read", "storage_options.aws_region=x"],
     "--read storage_options is for a URL"),
    (["s3://b/k.csv", "--read", "TOPSECRET"], "must be KEY=VALUE"),
    (["s3://b/k.csv", "--read", "storage_options.aws_token=TOPSECRET", "--read",
      "storage_options.aws_token=TOPSECRET"], "aws_token is given twice"),
    (["mail.parquet", "--read", "query=SELECT 1"], "--read query is for a database"),
    (["postgresql://me:TOPSECRET@h/d"], "is a database: say which rows with --read query"),
    (["postgresql://me:TOPSECRET@h/d", "--read", "query="], "query must be a SELECT"),
    (["postgresql://me:TOPSECRET@h/d", "--read", "query=SELECT 1", "--read", "format=csv"],
     "are for files"),
    (["postgresql://me:TOPSECRET@h/d", "--read", "query=SELECT 1", "--read",
    "storage_options.a=TOPSECRET"],
     "are for files")])
def test_options_that_do_not_go_together(
    run: Run, mail: Path, folder: Path, arguments: list[str], told: str
) -> None:
    failed = run("train", *arguments, "-o", "m.textnb").checked(2)
    assert told in failed.err
    assert "TOPSECRET" not in failed.err
    assert not (folder / "m.textnb").exists()


def test_options_for_what_is_not_named(run: Run, mail: Path, trained: Path) -> None:
    for arguments in (["diff", trained, trained, "--read", "query=SELECT 1"],
                      ["verify", "w", "--read", "query=SELECT 1"]):
        assert "name" in run(*arguments).checked(2).err
    for arguments in (["test", trained, mail], ["duplicates", mail, mail]):
        failed = run(*arguments, "--read", "storage_options.aws_region=x").checked(2)
        assert "--read storage_options is for URLs" in failed.err
    failed = run("predict", trained, mail, "-o", "s3://bucket/out.csv").checked(2)
    assert "Write a file, and copy it" in failed.err


def test_a_lake(run: Run, mail: Path, folder: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs pip install 'textnb[delta]'")
    deltalake.write_deltalake(folder / "lake", pl.read_parquet(mail))
    deltalake.DeltaTable(folder / "lake").delete("split = 'test'")
    run("train", mail, "--where", "split = 'train'", "-o", "file.textnb", "-q").checked()
    for given in ([], ["--read", "format=delta"]):
        run("train", "lake", "-o", "lake.textnb", "-q", *given).checked()
        assert (folder / "lake.textnb").read_bytes() == (folder / "file.textnb").read_bytes()
    failed = run("train", "lake", "--read", "format=iceberg", "-o", "m.textnb").checked(1)
    assert "no Iceberg table" in failed.err or "textnb[iceberg]" in failed.err


def test_a_database(
    postgres: str, run: Run, mail: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("adbc_driver_postgresql", reason="needs pip install 'textnb[database]'")
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    # What libpq's URL does not say, it takes from the environment.
    for name, value in conninfo_to_dict(postgres).items():
        monkeypatch.setenv(f"PG{ {'dbname': 'DATABASE'}.get(name, name.upper()) }", str(value))
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS cli_mail; "
                           "CREATE TABLE cli_mail (text text, label text, split text, id int)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO cli_mail VALUES (%s, %s, %s, %s)",
                               pl.read_parquet(mail).rows())
    given = ["postgresql://", "--read", "query=SELECT * FROM cli_mail ORDER BY array_position("
             "ARRAY[3, 1, 4, 15, 9, 2], id)"]
    run("train", mail, "--where", "split = 'train'", "-o", "file.textnb", "-q").checked()
    run("train", *given, "--where", "split = 'train'", "-o", "base.textnb", "-q").checked()
    assert (folder / "file.textnb").read_bytes() == (folder / "base.textnb").read_bytes()
    run("predict", "file.textnb", mail, "-o", "file.csv", "-q").checked()
    run("predict", "file.textnb", *given, "-o", "base.csv", "-q").checked()
    assert (folder / "file.csv").read_bytes() == (folder / "base.csv").read_bytes()
    for verb in ("test", "update", "validate"):
        run(verb, "base.textnb", *given, *(["--folds", "2"] if verb == "validate" else [])
            ).checked()
    failed = run("test", "file.textnb", "postgresql://", "--read",
                 "query=SELECT nope FROM cli_mail")
    assert "the query 'SELECT nope FROM cli_mail' at postgresql://" in failed.checked(1).err
    failed = run("train", "postgresql://", "--read", "query=SELECT text FROM cli_mail",
                 "-o", "m.textnb")
    assert "no column 'label'" in failed.checked(1).err
    failed = run("train", "postgresql://", "--read", "query=SELECT * FROM cli_mail WHERE false",
                 "-o", "m.textnb")
    assert "no rows" in failed.checked(1).err


def test_a_job(s3: S3, run: Run, mail: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pl.scan_parquet(mail).sink_parquet("s3://bucket/job.parquet", storage_options=s3.options)
    monkeypatch.setenv("THE_KEY", "TOPSECRET")
    options = "\n".join(f'{name} = "{value}"' for name, value in {
        **s3.options, "aws_access_key_id": "READER",
        "aws_secret_access_key": "${THE_KEY}"}.items())
    job = folder / "job.toml"
    job.write_text(f"""
output = "made"
[input]
train = "s3://bucket/job.parquet"
train_where = "split = 'train'"
test_where = "split = 'test'"
[input.storage_options]
{options}
""", "utf-8")
    run("run", job, "--check").checked()
    run("run", job).checked()
    record = (folder / "made" / "run.json").read_text("utf-8")
    assert "TOPSECRET" not in record
    assert "READER" not in record
    assert json.loads(record)["job"]["input"]["storage_options"]["aws_region"] == "***"
    run("train", mail, "--where", "split = 'train'", "-o", "file.textnb", "-q").checked()
    assert (folder / "file.textnb").read_bytes() == (folder / "made/model.textnb").read_bytes()


@pytest.mark.parametrize(("options", "train", "told"), [
    ('["TOPSECRET"]', "s3://b/k.csv", "a table of strings and numbers"),
    ('{ a = ["TOPSECRET"] }', "s3://b/k.csv", "a table of strings and numbers"),
    ('{ aws_token = "TOPSECRET" }', "mail.parquet", "storage_options: is for URLs"),
    ('{ aws_token = "${NO_SUCH_NAME}" }', "s3://b/k.csv", "NO_SUCH_NAME is not set")])
def test_a_job_that_is_refused(
    run: Run, mail: Path, folder: Path, options: str, train: str, told: str
) -> None:
    (folder / "job.toml").write_text(
        f'output = "made"\n[input]\ntrain = "{train}"\nstorage_options = {options}\n', "utf-8")
    failed = run("run", "job.toml", "--check").checked(2)
    assert told in failed.err
    assert "TOPSECRET" not in failed.err


def test_a_report_does_not_tell_the_password() -> None:
    from textnb.cli.test import _name_of

    assert _name_of("postgresql://me:TOPSECRET@h") == hide_secrets("postgresql://me:TOPSECRET@h")[13:]
    assert _name_of("https://h/f.csv?X-Signature=TOPSECRET") == "f.csv"
