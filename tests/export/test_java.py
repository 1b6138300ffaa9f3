"""The Java export, compiled for Java 11 without a warning: the model's own bits."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.docs.test_pages import ROOT, blocks
from tests.export.test_c import ALL_KINDS, CHANGED, KEPT, hostile
from tests.export.test_code import KEEPING, TEXTS, TOKENIZERS, compare, texts, trained
from textnb import (
    LinearDiscriminantAnalysis,
    TableClassifier,
    TextClassifier,
    Tokenizer,
)
from textnb.export.bundle import Bundle, bundle_of
from textnb.export.golden import rows_of
from textnb.export.targets.base import EngineMissing, TargetAnswers, TargetRows
from textnb.export.targets.java import Java, compile_class

with_java = pytest.mark.skipif(
    shutil.which("javac") is None, reason="needs a JDK: install openjdk-17-jdk-headless")


def answers(bundle: Bundle, rows: TargetRows, folder: Path) -> TargetAnswers:
    file = folder / "Model.java"
    Java().write(bundle, file)
    return compare(bundle, rows, Java().run(bundle, file, rows))


@with_java
@pytest.mark.parametrize("tokenizer", [
    TOKENIZERS[0], *KEEPING[:1], ALL_KINDS, Tokenizer(lowercase="tr", ngram_range=(1, 3)), CHANGED,
    Tokenizer(analyzer="char_wb", ngram_range=(2, 4), strip_accents="marks")])
def test_scores_are_the_models_bits(tokenizer: Tokenizer, tmp_path: Path) -> None:
    bundle = bundle_of(trained(["x", "y"], tokenizer=tokenizer, binary=tokenizer == Tokenizer()))
    given = [text.decode("utf-8", "replace") for text in hostile(400)]
    rows = rows_of(bundle, texts([*TEXTS, *KEPT, *given]))
    found = answers(bundle, rows, tmp_path)
    assert rows.counts is not None
    assert (found.scores == bundle.scores(rows.counts)).all()


@with_java
@pytest.mark.parametrize("labels", [[True, False], ['"', "é\\\n"]])
def test_labels_keep_their_types(labels: list[Any], tmp_path: Path) -> None:
    bundle = bundle_of(trained(labels))
    answers(bundle, rows_of(bundle, texts(TEXTS)), tmp_path)


@with_java
def test_lone_surrogates_are_replacement_characters(tmp_path: Path) -> None:
    # A term has U+FFFD in it, where a text was no UTF-8.
    frame = pl.DataFrame({"text": ["a\ufffdb good", "good day"], "label": ["x", "y"]})
    model = TextClassifier(tokenizer=Tokenizer(pattern="[^ ]+")).fit(frame)
    Java().write(bundle_of(model, "terms"), tmp_path / "Model.java")
    compile_class(tmp_path / "Model.java", tmp_path)
    lines = ['["a\\ud800b", "day"]', '["a\ufffdb", "day"]', '["\\ude00\\ud83d"]', "[]"]
    done = subprocess.run(["java", "-cp", tmp_path, "Model", tmp_path / "Model.bin"],
                          input="\n".join(lines).encode(), capture_output=True, check=True)
    found = [json.loads(line)["scores"] for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    assert found[::2] == found[1::2]
    assert found[0] != found[2]


@with_java
def test_a_damaged_model_and_a_wrong_line_are_refused(tmp_path: Path) -> None:
    Java().write(bundle_of(trained(["x", "y"])), tmp_path / "Model.java")
    compile_class(tmp_path / "Model.java", tmp_path)
    data = (tmp_path / "Model.bin").read_bytes()
    (tmp_path / "short.bin").write_bytes(data[:-8])
    (tmp_path / "other.bin").write_bytes(data[:-8] + bytes([data[-8] ^ 1]) + data[-7:])
    cases = [("other.bin", "null", "checksum differs"), ("short.bin", "null", "is not whole"),
             ("Model.bin", "\n{}", "line 2 can't be"),
             ("Model.bin", "[1 2]", "in JSON"), ("Model.bin", '"a', "in JSON"),
             ("Model.bin", '{"text": 1}', "can't be scored")]
    for name, line, error in cases:
        done = subprocess.run(["java", "-cp", tmp_path, "Model", tmp_path / name],
                              input=line, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert error in done.stderr


@with_java
def test_wrong_arguments_are_told_without_a_trace(tmp_path: Path) -> None:
    Java().write(bundle_of(trained(["x", "y"])), tmp_path / "Model.java")
    compile_class(tmp_path / "Model.java", tmp_path)
    model = str(tmp_path / "Model.bin")
    for arguments, status, said in (
            (["none.bin"], 1, "none.bin"), ([model, "--top", "x"], 2, "--top is a number"),
            ([model, "--answers", "decision"], 2, "does not answer with decision"),
            (["--help"], 2, "usage: java Model")):
        done = subprocess.run(["java", "-cp", tmp_path, "Model", *arguments], cwd=tmp_path,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stderr) == (status, True)
        assert "\tat " not in done.stderr


@with_java
def test_the_page_compiles(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "exports.md").read_text("utf-8")
    (source,) = [block.text for block in blocks(page) if block.file == "Score.java"]
    Java().write(bundle_of(trained(["x", "y"])), tmp_path / "Model.java")
    (tmp_path / "Score.java").write_text(source, "utf-8")
    run = subprocess.run(["javac", "Score.java", "Model.java"], cwd=tmp_path, check=False)
    assert run.returncode == 0
    done = subprocess.run(["java", "-cp", ".", "Score"], cwd=tmp_path, capture_output=True,
                          text=True, check=True)
    assert done.stdout.endswith(" of [x, y]\n")


@with_java
def test_features_are_the_models_bits(tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(size=(60, 7)) + 1e6
    frame = pl.DataFrame(x, schema=[f"f{n}" for n in range(7)]).with_columns(
        label=pl.Series(["a", "b", "c"] * 20))
    bundle = bundle_of(TableClassifier(LinearDiscriminantAnalysis()).fit(frame), "features")
    answers(bundle, TargetRows(features=x), tmp_path)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineMissing, match="install a JDK"):
        compile_class(tmp_path / "Model.java", tmp_path)
