"""What is special to exported code of Python, JavaScript and Polars.

`test_targets.py` and `test_every_plan.py` compare its answers with the model's.
"""

import ast
import json
import shutil
import subprocess
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

import textnb
from tests.export import tables
from tests.export.run import agree
from tests.export.tables import HOSTILE, LABELS, NOT_PORTABLE, PLANS, TEXTS, frame_of, trained
from textnb import ExportError, TableClassifier, TextClassifier, Tokenizer, export_model
from textnb.export.bundle import bundle_of
from textnb.export.golden import target_rows
from textnb.export.targets.base import TargetRows
from textnb.export.targets.embedded import fill_template
from textnb.export.targets.known import TARGETS
from textnb.export.targets.polars_code import source_of
from textnb.export.targets.program import run_program

NODE = shutil.which("node")
with_node = pytest.mark.skipif(NODE is None, reason="needs Node: https://nodejs.org")
each = pytest.mark.parametrize("to", [
    "python", pytest.param("javascript", marks=with_node), "polars"])


def written(to, bundle, folder):
    path = folder / f"model{TARGETS[to].suffix}"
    TARGETS[to].write(bundle, path)
    return path


def module(path):
    # Not by an import: a file that is written twice in a second would be read from the cache.
    loaded = ModuleType("exported")
    exec(compile(path.read_text("utf-8"), str(path), "exec"), vars(loaded))
    return loaded


def of_script(function, path, values):
    """What a function of an ES module answers to each value."""
    program = path.with_name("driver.mjs")
    program.write_text(
        'import { readFileSync, writeFileSync } from "node:fs";\n'
        f'import * as module from "./{path.name}";\n'
        'const values = JSON.parse(readFileSync(0, "utf8"));\n'
        f"process.stdout.write(JSON.stringify(values.map((value) => {function}(value))));\n")
    return list(json.loads(run_program([str(NODE), str(program)], json.dumps(values).encode())))


# The source


def test_a_template_is_filled(tmp_path):
    bundle = bundle_of(TextClassifier().fit(["good", "bad"], ["x", "y"]), "terms")
    path = tmp_path / "own.txt"
    path.write_text("a @DATA@\n--[text]\nb\n//[terms]\nc\n#[features]\nd\n--[terms one]\ne\n")
    assert fill_template(str(path), bundle, DATA="@1@") == "a @1@\nc\ne\n"
    with pytest.raises(ValueError, match=r"own\.txt has @DATA@: give fill_template a text of that"):
        fill_template(str(path), bundle)


@each
def test_source_is_inert_and_needs_nothing(to, tmp_path):
    names = HOSTILE + tables.WITH_NUL
    frame = pl.DataFrame({"text": names, "label": names})
    model = TextClassifier(tokenizer=Tokenizer(pattern="(?s).+", lowercase=False)).fit(frame)
    source = written(to, bundle_of(model, "terms"), tmp_path).read_text("ascii")
    assert "</script" not in source
    if to == "javascript":
        assert "\nimport" not in source
        return
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                for name in node.names}
    own = {"argparse", "json", "sys", "re", "math", "array", "base64", "itertools", "zlib"}
    assert imported <= own | ({"polars"} & {to})
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


@each
def test_integers_beyond_javascript_are_refused_by_it_alone(to, tmp_path):
    model = trained([2**53, 1])
    if to == "javascript":
        with pytest.raises(ExportError, match="label 9007199254740992 is beyond") as raised:
            export_model(model, tmp_path / "out", to)
        # Advice about the tokenizer follows from the error, not from its words.
        assert "tokenizer" not in str(raised.value)
    else:
        assert 2**53 in (agree(to, bundle_of(model), frame_of(TEXTS), tmp_path).labels or ())


# Functions


@pytest.mark.parametrize("reads", ["text", "terms"])
@pytest.mark.parametrize("labels", LABELS)
def test_functions_of_texts_and_tokens(labels, reads, tmp_path):
    bundle = bundle_of(trained(LABELS[labels], tokenizer=PLANS["pairs"]), reads)
    rows = target_rows(bundle, frame_of(TEXTS))
    scores = bundle.scores(rows.values)
    chosen = bundle.decide(scores)
    python = module(written("python", bundle, tmp_path))
    polars = module(written("polars", bundle, tmp_path))
    if reads == "text":
        score, predict, table = python.scores, python.predict, polars.score
        given = rows.documents.to_series()
        assert [python.tokens(text) for text in given] == rows.tokens.to_list()
    else:
        score, predict, table = python.scores_terms, python.predict_terms, polars.score_terms
        given = rows.tokens.alias("tokens")
    values = given.to_list()
    assert (np.array([score(value) for value in values]) == scores).all()
    assert [predict(value) for value in values] == chosen
    answers = table(given.to_frame())
    np.testing.assert_allclose(answers["scores"].struct.unnest().to_numpy(), scores, rtol=1e-9)
    assert answers["predicted"].to_list() == chosen


@each
def test_rows_of_features_are_lists_or_have_names(to, tmp_path):
    names = [*HOSTILE[:5], "a b", "'\"\\"]
    frame = tables.table_of(names)
    model = TableClassifier(textnb.LinearDiscriminantAnalysis(), label="y").fit(frame)
    path = written(to, bundle_of(model), tmp_path)
    row = list(frame.drop("y").row(0))
    named = dict(zip(names, row, strict=True))
    if to == "javascript":
        listed, by_name = of_script("module.scores", path, [row, named])
        assert listed == by_name
        assert of_script("module.predict", path, [row])[0] in ("x", "y", "z")
    elif to == "python":
        exported = module(path)
        assert exported.scores(row) == exported.scores(named)
        assert exported.predict(row) in ("x", "y", "z")
        for wrong in (row[1:], [float("nan"), *row[1:]]):
            with pytest.raises(ValueError, match=r"features are expected|not a finite number"):
                exported.scores(wrong)
    else:
        holes = frame.with_columns(pl.lit(None, pl.Float64).alias(names[0])).head(2)
        assert module(path).score(holes)["predicted"].to_list() == [None, None]


@with_node
@pytest.mark.parametrize(("lines", "arguments", "answers", "message"), [
    ('"good"\n\n"bad"\n5\n"x"', [], 2, "line 4 can't be scored: a text is expected"),
    ('"good"\n"bad"\n{', [], 2, "line 3 can't be scored"),
    ("", ["--answers", "all"], 0, "")])
def test_a_line_that_can_not_be_scored_loses_no_earlier_answer(lines, arguments, answers, message,
                                                               tmp_path):
    model = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])
    export_model(model, tmp_path / "m.mjs", "javascript")
    done = subprocess.run([str(NODE), str(tmp_path / "m.mjs"), *arguments], input=lines, text=True,
                          capture_output=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (1, answers)
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1


# Polars


@pytest.mark.parametrize("columns", [["text"], ["text", "other"]])
@pytest.mark.parametrize("tokenizer", [*PLANS.values(), *NOT_PORTABLE])
@pytest.mark.parametrize("prefix", [False, True])
def test_generated_expressions_are_those_of_the_tokenizer(tokenizer, columns, prefix):
    chosen = Tokenizer(**{**tokenizer.to_dict(), "field_prefix": ["text"] if prefix else False})
    source = source_of(chosen.plan(), columns)
    assert source.isascii()
    names: dict[str, Any] = {"pl": pl}
    exec(source, names)
    expected, found = chosen.expr(columns), names["tokens"](*columns)
    assert found.meta.eq(expected)
    frame = frame_of(TEXTS).with_columns(other=pl.col("text").reverse())
    assert frame.select(a=found).equals(frame.select(a=expected))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("tokenizer", NOT_PORTABLE)
def test_polars_takes_any_tokenizer_and_several_columns(tokenizer, tmp_path):
    frame = frame_of(["ab-bc film", "ax-by film", *TEXTS], [0, 1, 2]).with_columns(
        other=pl.col("text").reverse())
    chosen = Tokenizer(**{**tokenizer.to_dict(), "field_prefix": ["other"]})
    model = TextClassifier(text=["text", "other"], tokenizer=chosen).fit(frame)
    agree("polars", bundle_of(model, "text"), frame, tmp_path)


def test_polars_takes_features_of_any_other_name(tmp_path):
    """Without a decision, no answer has that name; an empty name is a name, too."""
    frame = tables.table_of(["decision", "b"]).rename({"b": ""})
    model = textnb.TableClassifier(textnb.LinearDiscriminantAnalysis(), label="y").fit(frame)
    agree("polars", bundle_of(model), TargetRows(frame.drop("y").to_numpy()), tmp_path)


def test_polars_stays_lazy(tmp_path):
    exported = module(written("polars", bundle_of(trained(["x", "y", "z"])), tmp_path))
    answers = exported.score(frame := frame_of(TEXTS).with_row_index("id"))
    assert answers.drop("scores", "predicted", "probabilities").equals(frame)
    lazy = exported.score(frame.lazy())
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(answers)
    assert lazy.collect(engine="streaming").sort("id").equals(answers)
    assert lazy.filter(predicted="y").collect().equals(answers.filter(predicted="y"))
    other = exported.score(frame.rename({"text": "body"}), "body")
    assert other["scores"].equals(answers["scores"])
    assert exported.score(frame.clear()).schema == answers.schema
    with pytest.raises(ValueError, match="has a column 'scores' already"):
        exported.score(answers)


def test_another_major_version_of_polars_is_refused(tmp_path):
    path = written("polars", bundle_of(trained(["x", "y"])), tmp_path)
    path.write_text(path.read_text().replace(f'"{pl.__version__}"', '"1.40.0"'))
    with pytest.raises(ImportError, match="needs the same major"):
        module(path)
