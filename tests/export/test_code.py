"""Exported code, run by Python, Node and Polars: the model's own scores, labels and tokens."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from textnb import (
    BernoulliNB,
    ComplementNB,
    ExportError,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NBLogisticRegression,
    TableClassifier,
    TextClassifier,
    Tokenizer,
    export_model,
)
from textnb.export.bundle import Bundle, bundle_of
from textnb.export.golden import rows_of
from textnb.export.targets.base import EngineMissing, Target, TargetAnswers, TargetRows
from textnb.export.targets.javascript import JavaScript
from textnb.export.targets.polars_code import PolarsCode, source_of
from textnb.export.targets.python import Python

Corpus = Callable[[str], pl.LazyFrame]

NODE = shutil.which("node")
with_node = pytest.mark.skipif(NODE is None, reason="needs Node: https://nodejs.org")
script = pytest.param(JavaScript(), marks=with_node, id="javascript")
each = pytest.mark.parametrize("target", [
    pytest.param(Python(), id="python"), script, pytest.param(PolarsCode(), id="polars")])
each_splitter = pytest.mark.parametrize("target", [pytest.param(Python(), id="python"), script])

HOSTILE = [
    "__proto__", "constructor", "toString", "hasOwnProperty", "1", "01", "-0", "NaN", "null", "a'b",
    "'''", '"""', '"', "\\", "\\'''", "\\u0027", "${alert(1)}", "`", "</script><!--",
    "\u2028\u2029", "\0", "\n\r\t", "@DATA@", "@TOKENS@", "%s{}",
    "'''); import os; os.abort() #", "😀", "*", "^a$", "",
]
TEXTS: list[str | None] = [
    None, "", " ", "\t\n\r\x0b\x0c\x1c\x85\u2028\u2029\ufeff", "good GOOD gOOd film",
    "a b c 1 22 _ __", "İstanbul İ I\u0307 ıI Iİ", "ΟΔΟΣ", "Σ", "ΣΣ ΣΣΣ", "ΑΣ.Β", "ΑΣ.", "ΑΣ'",
    "'Σ ΑΣ", "Α\u0301Σ\u0301", "Α\u00adΣ\u00adΑ ΑΣ\u200b 1Σ 😀Σ Σ😀 𐐀Σ aΣ𐐀",
    "cafe\u0301 café CAFÉ \u0301\u0301", "हिन्दी में पाठ", "中文文本 日本語 한국어",
    "USB线A 房间很好，好 x好_ ﾊﾟｿｺﾝーﾞ か\u3099き ไทยก่ab မြန်မာ ខ្មែរ",
    "\x01中\x02国\x03 中国\x03:中|国| \x02 好",
    "中Σ Σ中 ΑΣ中 ΑΣ\u0e48Α 𠀀一x々𠀀 中\u200d国 ｱＡ亜 ー",
    "😀 👩‍👩‍👧 x😀y 𝐁𝐨𝐥𝐝 ＦＵＬＬ ｗｉｄｅ ǅ ŉ ß ẞ ﬁ", "0 12 ١٢٣ ½ ²³ Ⅷ",
    "'single' \"double\" \\back\\ `tick` ${x} </script>",
    "nul\0in \x01\x7f \ue000\U000f0000\U0010ffff", "don't l'été rock'n'roll", "good film " * 300,
    "x" * 100_000, "Xσ " + "ΑΣ" * 1000, " ".join(HOSTILE),
]
ESTIMATORS: dict[str, Any] = {
    "multinomial": MultinomialNB(), "bernoulli": BernoulliNB(), "complement": ComplementNB(),
    "logistic": NBLogisticRegression()}
LABELS: dict[str, list[Any]] = {
    "strings": ["'''\\", "n'e\"g\n${x}`</script>", "sö-so 😀\u2028"], "bools": [True, False],
    "integers": [-3, 2**53 - 1, 0]}
TOKENIZERS = [
    Tokenizer(), Tokenizer(ngram_range=(1, 2)), Tokenizer(ngram_range=(2, 3), lowercase=False),
    Tokenizer(stop_words=("GOOD", "don't", "Σ", "mit"), ngram_range=(1, 2)),
    Tokenizer(lowercase="tr", ngram_range=(1, 2)), Tokenizer(pattern=r"\w+"),
    Tokenizer(pattern="[a-zA-Z']{3,}"), Tokenizer.sklearn(),
]
KEEPING = [
    Tokenizer(keep=("emoji", "punctuation")),
    Tokenizer(keep=("symbols",), unspaced="whole", ngram_range=(1, 2)),
]
# N-grams of characters, which programs make, and SQL does not.
CHARACTERS = [
    Tokenizer(analyzer="char", ngram_range=(1, 3)), Tokenizer(analyzer="char_wb"),
    Tokenizer(analyzer="char_wb", ngram_range=(2, 4)),
]
NOT_PORTABLE = [
    Tokenizer(pattern=r"[^,'\"]+"), Tokenizer(pattern=r"[^,\n]+", ngram_range=(1, 3)),
    Tokenizer(pattern=r"\S+", stop_words=("GOOD", "\\back\\"), ngram_range=(2, 2)),
]


def trained(labels: list[Any], estimator: Any = None, **settings: Any) -> TextClassifier:
    """A model of the texts, some of which are in two classes."""
    chosen = TEXTS + TEXTS[::2]
    names = pl.Series("label", [labels[row % len(labels)] for row in range(len(chosen))])
    return TextClassifier(estimator, **settings).fit(texts(chosen).with_columns(names))


def texts(values: Sequence[str | None], name: str = "text") -> pl.DataFrame:
    return pl.DataFrame({name: values}, schema={name: pl.String})


def module(path: Path) -> ModuleType:
    # Not by an import: a file that is written twice in a second would be read from the cache.
    loaded = ModuleType("exported")
    exec(compile(path.read_text("utf-8"), str(path), "exec"), vars(loaded))
    return loaded


def check(target: Target, bundle: Bundle, rows: TargetRows, path: Path) -> TargetAnswers:
    """The model's scores within the tolerance, and its labels wherever no rounding decides."""
    file = path / f"model{target.suffix}"
    target.write(bundle, file)
    return compare(bundle, rows, target.run(bundle, file, rows), target.tolerance)


def compare(
    bundle: Bundle, rows: TargetRows, found: TargetAnswers, tolerance: float = 1e-9
) -> TargetAnswers:
    expected = bundle.scores(rows.values)
    np.testing.assert_allclose(found.scores, expected, rtol=tolerance, atol=tolerance)
    assert found.labels is not None
    tied = bundle.find_ties(expected, rows.values, tolerance)
    for got, want, either in zip(found.labels, bundle.decide(expected), tied, strict=True):
        assert either or (got == want and type(got) is type(want))
    return found


# Models


@each
@pytest.mark.parametrize(("name", "labels"), [
    *((name, "strings") for name in ESTIMATORS), ("multinomial", "bools"), ("bernoulli", "bools"),
    ("multinomial", "integers")])
def test_texts_are_scored(target: Target, name: str, labels: str, tmp_path: Path) -> None:
    positive = True if labels == "bools" else None
    bundle = bundle_of(trained(LABELS[labels], ESTIMATORS[name]), positive=positive)
    found = check(target, bundle, rows_of(bundle, texts(TEXTS)), tmp_path)
    assert found.scores.shape[1] == (1 if positive else 3)
    assert len({type(label) for label in found.labels or ()}) == 1
    assert len(set(found.labels or ())) > 1


@each_splitter
@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=range(len(TOKENIZERS)))
def test_texts_are_split(target: Target, tokenizer: Tokenizer, tmp_path: Path) -> None:
    bundle = bundle_of(trained(["x", "y"], tokenizer=tokenizer, binary=tokenizer == Tokenizer()))
    rows = rows_of(bundle, texts(TEXTS))
    found = check(target, bundle, rows, tmp_path)
    # The same sums in the same order: ties fall alike too.
    assert (found.scores == bundle.scores(rows.values)).all()


@each
@pytest.mark.parametrize("binary", [False, True])
def test_tokens_are_scored(target: Target, binary: bool, tmp_path: Path) -> None:
    model = trained(["x", "y", "z"], binary=binary, tokenizer=NOT_PORTABLE[2])
    bundle = bundle_of(model, reads="terms")
    check(target, bundle, rows_of(bundle, texts(TEXTS)), tmp_path)


@each
@pytest.mark.parametrize("classes", [2, 3])
def test_rows_of_features_are_scored(target: Target, classes: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = [*HOSTILE[:5], "a b", "'\"\\"]
    # Far from zero: digits are kept because the center is subtracted first.
    X = rng.normal(size=(60, 7)) + 1e6
    y = np.arange(60) % classes
    frame = pl.DataFrame(X + y[:, None], schema=names).with_columns(pl.Series("label", y))
    model = TableClassifier(LinearDiscriminantAnalysis()).fit(frame)
    bundle = bundle_of(model, positive=1 if classes == 2 else None)
    check(target, bundle, TargetRows(X), tmp_path)
    row = X[0].tolist()
    named = dict(zip(names, row, strict=True))
    path = tmp_path / f"model{target.suffix}"
    if target.name == "javascript":
        listed, by_name = of_script("module.scores", path, [row, named])
        assert listed == by_name
        assert of_script("module.predict", path, [row])[0] in (0, 1, 2)
    elif target.name == "python":
        exported = module(path)
        assert exported.scores(row) == exported.scores(named)
        assert exported.predict(row) in (0, 1, 2)
        for wrong in (row[1:], [float("nan"), *row[1:]]):
            with pytest.raises(ValueError, match=r"features are expected|not a finite number"):
                exported.scores(wrong)
    else:
        holes = frame.with_columns(pl.lit(None, pl.Float64).alias(names[0])).head(2)
        assert module(path).score(holes)["predicted"].to_list() == [None, None]


# Tokens


def every_character(size: int = 64) -> list[str]:
    """All of Unicode between letters, around sigmas, and apart."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    return ["".join(f"a{c}Σ{c}b {c} " for c in characters[at:at + size])
            for at in range(0, len(characters), size)]


@pytest.mark.slow
@each_splitter
def test_every_character_is_split_and_lowered(target: Target, tmp_path: Path) -> None:
    path, given = tmp_path / f"model{target.suffix}", every_character()
    target.write(bundle_of(trained(["x", "y"])), path)
    expected = texts(given).select(Tokenizer().expr("text").alias("t"))["t"].to_list()
    found = (list(map(module(path).tokens, given)) if target.name == "python"
             else of_script("module.tokens", path, given))
    assert all(a == b for a, b in zip(found, expected, strict=True))


def of_script(function: str, path: Path, values: list[Any]) -> list[Any]:
    """What a function of an ES module answers to each value."""
    program = path.with_name("driver.mjs")
    program.write_text(
        'import { readFileSync, writeFileSync } from "node:fs";\n'
        f'import * as module from "./{path.name}";\n'
        'const values = JSON.parse(readFileSync(0, "utf8"));\n'
        f"process.stdout.write(JSON.stringify(values.map((value) => {function}(value))));\n")
    assert NODE is not None
    done = subprocess.run([NODE, str(program)], input=json.dumps(values).encode(),
                          capture_output=True, check=True)
    return list(json.loads(done.stdout))


def generated(tokenizer: Tokenizer, columns: list[str]) -> pl.Expr:
    source = source_of(tokenizer.plan(), columns)
    assert source.isascii()
    names: dict[str, Any] = {"pl": pl}
    exec(source, names)
    expression: pl.Expr = names["tokens"](*columns)
    return expression


@pytest.mark.parametrize("columns", [["text"], ["text", "other"]])
@pytest.mark.parametrize("tokenizer", TOKENIZERS + KEEPING + CHARACTERS + NOT_PORTABLE)
@pytest.mark.parametrize("prefix", [False, True])
def test_generated_expressions_are_those_of_the_tokenizer(
    tokenizer: Tokenizer, columns: list[str], prefix: bool
) -> None:
    chosen = Tokenizer(**{**tokenizer.to_dict(), "field_prefix": ["text"] if prefix else False})
    frame = texts(TEXTS).with_columns(texts(TEXTS[::-1], "other"))
    expected, found = chosen.expr(columns), generated(chosen, columns)
    assert found.meta.eq(expected)
    assert frame.select(a=found).equals(frame.select(a=expected))


def test_polars_takes_any_tokenizer_and_several_columns(tmp_path: Path) -> None:
    frame = texts(TEXTS).with_columns(texts(TEXTS[::-1], "other"), label=pl.Series(
        [row % 3 for row in range(len(TEXTS))]))
    for number, tokenizer in enumerate(KEEPING + CHARACTERS + NOT_PORTABLE):
        chosen = Tokenizer(**{**tokenizer.to_dict(), "field_prefix": ["other"]})
        model = TextClassifier(text=["text", "other"], tokenizer=chosen).fit(frame)
        bundle, path = bundle_of(model), tmp_path / f"model{number}.py"
        PolarsCode().write(bundle, path)
        rows = rows_of(bundle, frame)
        answers = module(path).score(frame)
        scores = answers["scores"].struct.unnest().to_numpy()
        compare(bundle, rows, TargetAnswers(scores, answers["predicted"].to_list()))
    compare(bundle, rows, PolarsCode().run(bundle, path, rows))


# Arbitrary texts, terms and labels

words = st.one_of(st.sampled_from(HOSTILE), st.text(
    st.characters(exclude_categories=["Cs"]), max_size=8))
documents = st.lists(st.lists(words, max_size=6).map(" ".join), min_size=2, max_size=8)


@each
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[
    HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(train=documents, unseen=documents,
       names=st.lists(words, min_size=2, max_size=4, unique=True),
       lowercase=st.booleans(), above=st.booleans(), tokens=st.booleans())
def test_arbitrary_texts_and_labels(
    target: Target, train: list[str], unseen: list[str], names: list[str], lowercase: bool,
    above: bool, tokens: bool, tmp_path: Path,
) -> None:
    pattern = r"[^ ]+" if tokens else r"[\p{L}\p{M}\p{N}_']+"
    model = TextClassifier(tokenizer=Tokenizer(pattern=pattern, lowercase=lowercase), binary=above)
    # NumPy's arrays of strings, which hold the classes, drop trailing NULs.
    classes = [name.rstrip("\0") + str(number) for number, name in enumerate(names)]
    model.fit(texts(["one", *train]).with_columns(label=pl.Series(
        [classes[row % len(classes)] for row in range(1 + len(train))])))
    bundle = bundle_of(model, reads="terms" if tokens else "text")
    rows = rows_of(bundle, texts([*train, None, *unseen]))
    if target.name == "javascript":
        check(target, bundle, rows, tmp_path)
        return
    # In this process: thirty programs take long to start.
    path = tmp_path / "model.py"
    target.write(bundle, path)
    exported = module(path)
    given = rows.tokens if tokens else rows.documents.to_series()
    if target.name == "python":
        score = exported.scores_terms if tokens else exported.scores
        predict = exported.predict_terms if tokens else exported.predict
        found = TargetAnswers(np.array([score(one) for one in given.to_list()]),
                         [predict(one) for one in given.to_list()])
    else:
        run = exported.score_terms if tokens else exported.score
        answers = run(given.alias("tokens" if tokens else "text").to_frame())
        found = TargetAnswers(answers["scores"].struct.unnest().to_numpy(),
                         answers["predicted"].to_list())
    compare(bundle, rows, found)


# Source code


@each
def test_source_is_inert_and_needs_nothing(target: Target, tmp_path: Path) -> None:
    labels = [label.rstrip("\0") or "empty" for label in HOSTILE]
    frame = texts([*HOSTILE, "a b"]).with_columns(label=pl.Series([*labels, "two"]))
    model = TextClassifier(tokenizer=Tokenizer(pattern="(?s).+", lowercase=False)).fit(frame)
    bundle, path = bundle_of(model, reads="terms"), tmp_path / f"model{target.suffix}"
    assert {"__proto__", "\0", "${alert(1)}"} < set(bundle.terms)
    check(target, bundle, rows_of(bundle, texts([*HOSTILE])), tmp_path)
    source = path.read_text("ascii")
    assert "</script" not in source
    if target.name != "javascript":
        tree = ast.parse(source, feature_version=(3, 8))
        imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                    for name in node.names}
        own = {"argparse", "json", "sys", "re", "math", "array", "base64", "itertools", "zlib"}
        assert imported <= own | ({"polars"} & {target.name})
        assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))
    assert target.name != "javascript" or "\nimport" not in source


@each_splitter
def test_what_is_not_portable_is_refused(target: Target, tmp_path: Path) -> None:
    for tokenizer in NOT_PORTABLE:
        bundle = bundle_of(trained(["x", "y"], tokenizer=tokenizer), reads="text")
        with pytest.raises(ExportError):
            target.write(bundle, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_labels_beyond_javascript_are_refused(tmp_path: Path) -> None:
    bundle = bundle_of(trained([2**53, 1]))
    with pytest.raises(ExportError, match="label 9007199254740992 is beyond"):
        JavaScript().write(bundle, tmp_path / "model.mjs")
    rows = rows_of(bundle, texts(TEXTS))
    for target in (Python(), PolarsCode()):
        assert 2**53 in (check(target, bundle, rows, tmp_path).labels or ())


def test_a_missing_engine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bundle = bundle_of(trained(["x", "y"]))
    with pytest.raises(EngineMissing, match="Node"):
        JavaScript().run(bundle, tmp_path / "model.mjs", rows_of(bundle, texts(["a"])))


def test_polars_stays_lazy(tmp_path: Path) -> None:
    bundle, path = bundle_of(trained(["x", "y", "z"])), tmp_path / "model.py"
    PolarsCode().write(bundle, path)
    exported = module(path)
    answers = exported.score(frame := texts(TEXTS).with_row_index("id"))
    assert answers.drop("scores", "predicted", "probabilities").equals(frame)
    lazy = exported.score(frame.lazy())
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(answers)
    assert lazy.collect(engine="streaming").sort("id").equals(answers)
    kept = lazy.filter(predicted="y").collect()
    assert kept.equals(answers.filter(predicted="y"))
    other = exported.score(frame.rename({"text": "body"}), "body")
    assert other["scores"].equals(answers["scores"])
    assert exported.score(frame.clear()).schema == answers.schema
    with pytest.raises(ValueError, match="has a column 'scores' already"):
        exported.score(answers)


def test_another_major_version_of_polars_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    PolarsCode().write(bundle_of(trained(["x", "y"])), path)
    path.write_text(path.read_text().replace(f'"{pl.__version__}"', '"1.40.0"'))
    with pytest.raises(ImportError, match="needs the same major"):
        module(path)


@pytest.fixture(scope="module", params=["20newsgroups", "sms_spam"])
def real(request: pytest.FixtureRequest, corpus: Corpus) -> tuple[Bundle, TargetRows]:
    """A bundle trained on one part of a corpus, and rows of the other."""
    frame = corpus(request.param).collect()
    if request.param == "20newsgroups":
        bundle = bundle_of(TextClassifier(min_df=2).fit(frame.filter(split="train")))
        return bundle, rows_of(bundle, frame.filter(split="test").gather_every(2))
    test = pl.int_range(pl.len()) % 4 == 3
    model = TextClassifier(BernoulliNB(), tokenizer=Tokenizer(ngram_range=(1, 2)))
    bundle = bundle_of(model.fit(frame.filter(~test)), positive="spam")
    return bundle, rows_of(bundle, frame.filter(test))


@each
def test_real_texts(target: Target, real: tuple[Bundle, TargetRows], tmp_path: Path) -> None:
    bundle, rows = real
    found = check(target, bundle, rows, tmp_path)
    assert found.labels == bundle.decide(bundle.scores(rows.values))


@with_node
def test_a_line_that_can_not_be_scored_loses_no_earlier_answer(tmp_path: Path) -> None:
    model = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])
    export_model(model, tmp_path / "m.mjs", "javascript")
    for lines, said in (('"good"\n\n"bad"\n5\n"x"', "line 4 can't be scored: a text is expected"),
                        ('"good"\n"bad"\n{', "line 3 can't be scored")):
        done = subprocess.run([str(NODE), str(tmp_path / "m.mjs")], input=lines, text=True,
                              capture_output=True, check=False)
        assert (done.returncode, len(done.stdout.splitlines())) == (1, 2)
        assert done.stderr.startswith(said)
        assert len(done.stderr.splitlines()) == 1
    done = subprocess.run([str(NODE), str(tmp_path / "m.mjs"), "--answers", "all"], input="",
                          text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
