"""A job's file: every key is checked, and every error names its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from textnb import ParameterError, SourceError
from textnb.workflow.job import Job, read_job

SOUND = """
output = "out"
[input]
train = "rows.csv"
"""


def job(folder: Path, text: str = SOUND, *settings: str) -> Job:
    path = folder / "job.toml"
    path.write_text(text, "utf-8")
    return read_job(path, settings)


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    read = job(tmp_path)
    assert (read.model.kind, read.model.text_columns, read.model.columns.label) == (
        "multinomial", ["text"], "label")
    assert (read.input.hold_out, read.validation, read.decision) == (0.2, None, None)


def test_paths_are_beside_the_jobs_file(tmp_path: Path) -> None:
    read = job(tmp_path, SOUND + 'test = "/data/test.csv"\n[predictions]\ninput = "new/*.csv"')
    assert read.output == str(tmp_path / "out")
    assert read.input.train == str(tmp_path / "rows.csv")
    assert read.input.test == "/data/test.csv"
    assert read.predictions is not None
    assert read.predictions.input == str(tmp_path / "new/*.csv")
    assert job(tmp_path, SOUND, "input.train=s3://bucket/rows.parquet").input.train == (
        "s3://bucket/rows.parquet")
    assert job(tmp_path, SOUND, "input.train=-").input.train == "-"


def test_paths_are_filled_in_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL", "/home/me/mail")
    monkeypatch.delenv("NOT_SET", raising=False)
    assert job(tmp_path, SOUND, "input.train=${MAIL}/spam").input.train == "/home/me/mail/spam"
    assert job(tmp_path, SOUND, "input.train=${NOT_SET:-other}").input.train == str(
        tmp_path / "other")
    with pytest.raises(ParameterError, match=r"input\.train: the environment variable NOT_SET is "
                                             r"not set; set it, or write \$\{NOT_SET:-default\}"):
        job(tmp_path, SOUND, "input.train=${NOT_SET}/x")
    # Only paths are filled in: a condition may hold such a text.
    assert job(tmp_path, SOUND, "input.train_where=a = '${MAIL}'").input.train_where == (
        "a = '${MAIL}'")


@pytest.mark.parametrize(("setting", "found"), [
    ("model.l=0.1", lambda job: job.model.parameters["l"] == 0.1),
    ("model.l=auto", lambda job: job.model.parameters["l"] == "auto"),
    ('model.text=["a", "b"]', lambda job: job.model.text_columns == ["a", "b"]),
    ("model.text=body", lambda job: job.model.text_columns == ["body"]),
    ("model.tokenizer.ngram_range=[1, 2]", lambda job: job.model.tokenizer == {
        "ngram_range": (1, 2)}),
    ("validation.folds=3", lambda job: job.validation.folds == 3),
    ("calibration={}", lambda job: job.calibration.length_aware is True),
    ("exports.0.to=json", lambda job: job.exports[0].to == "json"),
    ("output = elsewhere", lambda job: job.output.endswith("elsewhere")),
])
def test_keys_are_set_from_outside(tmp_path: Path, setting: str, found: Any) -> None:
    more = ("exports.0.file=x.json",) if setting.startswith("exports") else ()
    assert found(job(tmp_path, SOUND, setting, *more))


@pytest.mark.parametrize(("setting", "message"), [
    ("model.kind=multinomal", "model.kind: unknown value 'multinomal' - did you mean"),
    ("model.alpha=1.0", r"model\.alpha: belongs to kind=rda; .* whose smoothing parameter is l"),
    ("model.l=-1", "model.l: must be"),
    ("model.lamda=1", r"model\.lamda: no such key; the keys there are "),
    ("model.ngrams=2", r"model\.ngrams: .* did you mean 'ngram_range' of \[model\.tokenizer\]\?"),
    ("model.ngram_range=2", r"no such key there; it is one of \[model\.tokenizer\]$"),
    ("model.half_life=2", r"model\.half_life: it is gone: models keep no periods"),
    ("decision.class=spam", r"decision\.class: no such key - did you mean 'positive'\?"),
    ("validation.l=1", r"validation\.l: no such key there; it is one of \[model\]$"),
    ("input.label=topic", r"input\.label: no such key there; it is one of \[model\]$"),
    ("report={}", r"report: no such key there; it is one of \[test\]$"),
    ("model.tokenizer.analyzer=words",
     r"model\.tokenizer\.analyzer: unknown value 'words' - did you mean 'word'"),
    ("model.features=['x']", r"model\.features: belongs to kind=gaussian, lda"),
    ("model.tokenizer.patern=x",
     r"model\.tokenizer\.patern: no such key - did you mean 'pattern'\?"),
    ("model.tokenizer.ngram_range=[2, 1]", "model.tokenizer.ngram_range: must be .*; got"),
    ("model.min_df=often", r"model\.min_df: must be a count .* or a share .*; got 'often'"),
    ("input.trian=x", r"input\.trian: no such key - did you mean 'train'\?; the keys there are"),
    ("inptu.train=x", r"inptu: no such key - did you mean 'input'\?"),
    *((f"decision.{name}=2", rf"decision\.{name}: must be a number above 0 and below 1; got 2")
      for name in ("max_false_positive_rate", "max_false_negative_rate", "confidence")),
    ("decision.costs=[-1, 0]", r"decision\.costs: must be two numbers above 0, .*got \[-1, 0\]"),
    ("predictions={file='a.csv', top=2}", r"predictions: a\.csv can't hold the lists of top: "),
    ("predictions={file='a.TSV', top=2}", r"predictions: a\.TSV can't hold the lists of top: "),
    ("validation.folds=1", r"validation\.folds: must be an int >= 2; got 1"),
    ("validation.folds=three", r"validation\.folds: must be an int >= 2; got 'three'"),
    ("validation={leave_one_out=true, folds=3}",
     r"validation\.folds: does not go with leave_one_out"),
    ("validation={leave_one_out=true, folds=5}",
     r"validation\.folds: does not go with leave_one_out"),
    ("model.keep_sample=100", r"model\.keep_sample: is for models whose weights are learned"),
    ("model={kind='nblinear', keep_sample=9}", r"model\.keep_sample: is for NBLinear without idf"),
    ("validation={groups='a', time='b'}", "validation.groups: does not go with time"),
    ("validation.method=loo", r"validation\.method: it is gone: leave_one_out = true"),
    ("input.hold_out=1.5", r"input\.hold_out: must be above 0 and below 1; got 1\.5"),
    ("decision.positive=spam", "decision: give one of max_false_positive_rate, costs"),
    ("decision.costs=[1.0]", r"decision\.costs: must be two numbers"),
    ("decision.max_false_positive_rate=0.1", "needs positive: the class whose errors are counted"),
    ("test.report=a/b.html", r"test\.report: a name in the output folder"),
    ("test.report=model.textnb", r"test\.report: a name in the output folder"),
    ("predictions.file=x.txt", r"predictions\.file: an ending of \.parquet, "),
    ("predictions.file=../x.csv", r"predictions\.file: a name in the output folder"),
    ("exports.0.to=json", r"exports\.0\.file: it is missing"),
    ("exports=[{to='sqlite', file='x'}]", r"exports\.0\.to: unknown value 'sqlite'"),
    ("exports.3.to=json", "--set exports.3.to: there are 0 entries"),
    ("output.x=1", "--set output.x: there is no table that could hold 'x'"),
    ("input.train=1", r"input\.train: must be a path or URL"),
    ("output={}", "output: must be a path or URL"),
    ("model.kind=[1]", r"model\.kind: unknown value \[1\]"),
    ("predictions.explain=-1", r"predictions\.explain: must be 0 or more; got -1"),
    ("validation.smoothing=[]", r"validation\.smoothing: must be different numbers >= 0"),
    ("validation.feedback=7.0", r"validation\.feedback: must be a share above 0"),
    ("decision.min_probability=1.5", r"decision\.min_probability: must be a number above 0"),
    ("model.keep_sample=-3", r"model\.keep_sample: must be an int from 2"),
    ("model.l=0.1\n[x]\ny=2", r"model.l: must be a finite number >= 0"),
    ("exports.\u00b2=1", "--set must be key=value"),
    ("model.l=" + "[" * 3000, "--set model.l: "),
    ("model.l=" + "9" * 5000, "--set model.l: "),
    ("test.report=a\0.html", "test.report: a name in the output folder"),
    ("output=a\0", "output: a path without the character NUL"),
    ("model.min_df=inf", "model.min_df: must be"),
    ("model.text=[]", "model.text: must be a column"),
    ("model.label=text", "model: the label column 'text' is also one"),
    ("model.label=predicted", "'predicted' is the name of an answer"),
    ("model={class_weight={x=2.0}}", None),
    ("calibration={}", None),
    ("nonsense", "--set must be key=value"),
    ("=1", "--set must be key=value"),
    ("model..l=1", "--set must be key=value"),
])
def test_an_error_names_its_key(tmp_path: Path, setting: str, message: str | None) -> None:
    if message is None:
        # Sound by itself; the two together are not.
        with pytest.raises(ParameterError, match="calibration: it leaves rows out"):
            job(tmp_path, SOUND, "model.class_weight={x=2.0}", "calibration={}")
        assert job(tmp_path, SOUND, setting)
        return
    with pytest.raises(ParameterError, match=message):
        job(tmp_path, SOUND, setting)


def test_every_error_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as told:
        job(tmp_path, 'title = "x"\n[input]\n[validation]\nfolds = 0')
    for part in ("job.toml: ", "output: it is missing", "input.train: it is missing",
                 "line 1: title: no such key", "line 4: validation.folds: must be"):
        assert part in str(told.value)


@pytest.mark.parametrize("section", ["validation", "calibration", "terms"])
def test_what_texts_alone_have(tmp_path: Path, section: str) -> None:
    with pytest.raises(ParameterError, match=rf"{section}: it is for models of texts; model.kind "
                                             "is 'lda'"):
        job(tmp_path, SOUND, "model.kind=lda", f"{section}={{}}")


def test_two_outputs_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"two outputs have the name 'a\.csv'"):
        job(tmp_path, SOUND, "terms.file=a.csv", "predictions.file=a.csv")


@pytest.mark.parametrize("content", [b"output = ", b"\xff\xfe", b"[a]\n[a]"])
def test_what_is_no_toml(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "job.toml").write_bytes(content)
    with pytest.raises(SourceError, match=r"can't read .*job\.toml: it is no TOML"):
        read_job(tmp_path / "job.toml")
    with pytest.raises(SourceError, match="No such file"):
        read_job(tmp_path / "none.toml")
    with pytest.raises(SourceError, match="Is a directory"):
        read_job(tmp_path)


EXPORT = SOUND + "[[exports]]\nfile = "


def test_an_exports_file_tells_its_target_or_the_job_does(tmp_path: Path) -> None:
    assert job(tmp_path, EXPORT + '"w.onnx"').exports[0].to is None
    with pytest.raises(ParameterError, match="may be for several systems"):
        job(tmp_path, EXPORT + '"w.sql"')
    with pytest.raises(ParameterError, match="does not tell for which system"):
        job(tmp_path, EXPORT + '"w"')


def test_a_fault_has_the_line_of_its_own_key(tmp_path: Path) -> None:
    text = SOUND + '[model]\nl = 1.0\nmindf = 2\nfeatures = ["x"]\n[validation]\nfolds = 3\n'
    with pytest.raises(ParameterError) as told:
        job(tmp_path, text, "validation.folds=1", "model.tokenizer.pattern=3")
    assert "line 7: model.mindf: no such key - did you mean 'min_df'?" in str(told.value)
    assert "line 8: model.features: belongs to kind=gaussian" in str(told.value)
    # What was set from outside is on no line.
    assert "job.toml: validation.folds: must be" in str(told.value)
    assert "  model.tokenizer.pattern: must be" in str(told.value)


def test_a_database_in_a_file_is_beside_the_jobs_file(tmp_path: Path) -> None:
    for place, expected in (
            ("sqlite:///news.db", f"sqlite:///{tmp_path}/news.db"),
            ("sqlite+pysqlite:///news.db", f"sqlite+pysqlite:///{tmp_path}/news.db"),
            ("sqlite:////data/news.db", "sqlite:////data/news.db"),
            ("postgresql:///news", "postgresql:///news")):
        assert job(tmp_path, SOUND, f"input.train={place}").input.train == expected


@pytest.mark.parametrize("text", [
    'output = "out"\ninput = "postgresql://u:SECRET@host/news"',
    'output = "out"\n[[input]]\ntrain = "s3://b/x"\nstorage_options = { aws_key = "SECRET" }',
    'output = "out"\n[input]\ntrain = ["postgresql://u:SECRET@host/news"]',
    'output = "postgresql://u:SECRET@host/news"\n[input]\ntrain = "rows.csv"',
    'output = "out"\nmodel = "SECRET"\n[input]\ntrain = "rows.csv"',
    'output = "out"\nexports = "SECRET"\n[input]\ntrain = "rows.csv"',
    'output = "out"\n[input]\ntrain = "rows.csv"\nstorage_options = "SECRET"'])
def test_a_secret_is_in_no_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ParameterError) as told:
        job(tmp_path, text)
    assert "SECRET" not in str(told.value)


def test_a_secret_in_place_of_a_file_is_in_no_error() -> None:
    with pytest.raises(SourceError) as told:
        read_job("postgresql://u:SECRET@host/news")
    assert "SECRET" not in str(told.value)
