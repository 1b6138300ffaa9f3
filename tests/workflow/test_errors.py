"""What is wrong in a job: it is named by its key, as early as it can be seen, and changes nothing.

A job's file is read, then its sources are checked, then it runs. Options that a step shares with
its verb are in the table of tests/cli/test_errors.py.
"""

import re
import sys
from contextlib import nullcontext

import polars as pl
import pytest
from click.testing import CliRunner

from tests.workflow.conftest import JOB, check, contents, read, run
from textnb import DataError, ExportError, ParameterError, SchemaError, SourceError, TextClassifier
from textnb.cli.main import app
from textnb.errors import EngineError, VocabularyError
from textnb.workflow.job import read_job
from textnb.workflow.split import naming_key_in

# Keys that are set, and what is said when the file is read.
IN_THE_FILE = [
    ("model.kind=multinomal", "model.kind: unknown value 'multinomal' - did you mean"),
    ("model.kind=[1]", "model.kind: unknown value [1]"),
    ("model.alpha=1.0", "model.alpha: belongs to kind=rda; "),
    ("model.alpha=1.0", "whose smoothing parameter is l"), ("model.l=-1", "model.l: must be"),
    ("model.l=[1]", "model.l: must be one number here; only Python"),
    ("model.weight=text", "model.weight: 'text' is also a text or label column"),
    ("terms.file=t.xyz", "terms.file: an ending of .parquet, "),
    *((f"{key}=", f"{key}: must be a path or URL; it is empty") for key in (
        "input.train", "input.test", "predictions.input", "output", "model.warm_start")),
    ("output=-", "output: must be a folder, not standard output: write ./- for a folder named -"),
    ("model.lamda=1", "model.lamda: no such key; the keys there are "),
    ("model.ngrams=2", "did you mean 'ngram_range' of [model.tokenizer]?"),
    ("model.ngram_range=2", "no such key there; it belongs in [model.tokenizer]"),
    ("validation.l=1", "validation.l: no such key there; it belongs in [model]"),
    ("input.label=topic", "input.label: no such key there; it belongs in [model]"),
    ("report={}", "report: no such key there; it belongs in [test]"),
    ("decision.class=spam", "decision.class: no such key - did you mean 'positive'?"),
    ("input.trian=x", "input.trian: no such key - did you mean 'train'?; the keys there are"),
    ("inptu.train=x", "inptu: no such key - did you mean 'input'?"),
    ("model.tokenizer.patern=x", "model.tokenizer.patern: no such key - did you mean 'pattern'?"),
    ("model.tokenizer.analyzer=words", "analyzer: unknown value 'words' - did you mean 'word'"),
    ("model.features=['x']", "model.features: belongs to kind=gaussian, lda"),
    ("model.min_df=often", "model.min_df: must be a count"),
    ("model.memory_limit=x", "model.memory_limit: must be bytes, "),
    ("model.text=[]", "model.text: must be one or more columns"),
    ("model.label=text", "model: the label column 'text' is also a text"),
    ("model.label=predicted", "'predicted' is the name of an answer"),
    ("predictions={safe_csv=true}", "predictions.safe_csv: is for .csv and .tsv files"),
    ("terms={file='a.parquet', safe_csv=true}", "terms.safe_csv: is for .csv and .tsv files"),
    ("decision.costs=[1]", "decision.costs: must be two numbers above 0 "),
    ("validation.seed=4294967296", "validation.seed: must be an int >= 0 and below 2**32; got "),
    ("validation={time='day', seed=3}", "validation.seed: does not go with time"),
    ("decision={costs=[1, 1], positive='spam', method='odd'}",
     "decision.method: unknown value 'odd'; choose one of empirical, theoretical"),
    *((f"{key}='('", f"{key}: the condition '(': unable to parse") for key in (
        "input.train_where", "input.test_where", "predictions.where")),
    ("decision.positive=spam", "decision: give one of max_false_positive_rate, costs"),
    ("decision.max_false_positive_rate=0.1", "needs positive: the class whose errors are counted"),
    ("validation={leave_one_out=true, folds=5}", "folds: does not go with leave_one_out"),
    ("validation.smoothing=[]", "validation.smoothing: must be different numbers >= 0"),
    ("input.hold_out=1.5", "input.hold_out: must be above 0 and below 1; got 1.5"),
    ("input.train=1", "input.train: must be a path or URL"),
    ("input={train='a.csv', label_columns=['x'], label_separator='|'}",
     "input.label_columns: does not go with label_separator"),
    ("output={}", "output: must be a path or URL"),
    ("output=a\0", "output: a path without the character NUL"),
    ("output.x=1", "--set output.x: there is no table that could hold 'x'"),
    ("test.report=a/b.html", "test.report: a name in the output folder"),
    ("test.report=model.textnb", "test.report: a name in the output folder"),
    ("predictions.explain=-1", "predictions.explain: must be 0 or more; got -1"),
    ("predictions.file=../x.csv", "predictions.file: a name in the output folder"),
    ("predictions.file=terms.csv", "two outputs have the name 'terms.csv'"),
    ("predictions={file='a.TSV', top=2}", "predictions.top: gives lists, which TSV can't hold: "),
    ("exports.0=[]", "exports.0: it must be a table, and it is a list"),
    ("exports.0.to=json", "exports.0.file: it is missing"),
    ("exports=[{to='postgres', file='x'}]", "exports.0.to: unknown value 'postgres' - did you"),
    ("exports=[{file='w.sql'}]", "may be for several systems"),
    ("exports=[{file='w'}]", "does not tell for which system"),
    ("exports.3.to=json", "--set exports.3.to: there are 0 entries"),
    ("exports.\u00b2=1", "--set must be key=value"), ("nonsense", "--set must be key=value"),
    ("=1", "--set must be key=value"), ("model..l=1", "--set must be key=value"),
    ("model.l=0.1\n[x]\ny=2", "model.l: must be a finite number >= 0"),
    ("model.l=" + "[" * 3000, "--set model.l: "), ("model.l=" + "9" * 5000, "--set model.l: "),
    ("calibration={}", "calibration: it leaves rows out by subtraction, which model.max_features"),
    ("model.weight=n", "calibration: models that lack some rows of the training set would not"),
    *((f"{section}={{}}", f"{section}: it is for models of texts; model.kind is 'lda'")
      for section in ("validation", "calibration", "terms")),
    ("input={train='a', label_separator='|'}", "label_separator: it is for models of texts"),
    ("input={train='a', label_columns=['a']}", "label_columns: it is for models of texts"),
]


@pytest.mark.parametrize(("setting", "said"), IN_THE_FILE, ids=[
    f"{setting:.30}" for setting, _ in IN_THE_FILE])
def test_a_fault_of_the_file_names_its_key_once(setting, said, tmp_path):
    text = JOB
    if "model.kind is 'lda'" in said or "for models of texts" in said:
        text = JOB.replace("l = 0.1", "kind = 'lda'").replace("[terms]", "")
    elif setting == "model.weight=n":
        text = JOB + "\n[calibration]\n"
    elif setting == "calibration={}":
        text = JOB.replace("l = 0.1", "max_features = 20")
    with pytest.raises(ParameterError, match=re.escape(said)) as error:
        read(tmp_path, setting, text=text)
    assert str(error.value).count(said) == 1


def test_every_fault_is_told_at_once_with_its_line(tmp_path):
    with pytest.raises(ParameterError) as error:
        read(tmp_path, "model.tokenizer.pattern=3", "exports=[{file='a/b'}]", text=(
            'title = "x"\n[input]\n[validation]\nfolds = 0\n[model]\nmindf = 2\nfeatures = ["x"]\n'
            '"a.b" = 1\n[[exports]]\nfile = "w.json"'))
    for part in ("job.toml: ", "output: it is missing", "input.train: it is missing",
                 "line 1: title: no such key", "line 4: validation.folds: must be",
                 "line 6: model.mindf: no such key - did you mean 'min_df'?",
                 "line 7: model.features: belongs to kind=gaussian",
                 "line 8: model.a.b: no such key",
                 # What was set from outside is on no line.
                 "\n  model.tokenizer.pattern: must be", "\n  exports.0.file: a name in"):
        assert part in str(error.value)


@pytest.mark.parametrize("content", [b"output = ", b"\xff\xfe", b"[a]\n[a]"])
def test_what_is_no_toml(tmp_path, content):
    (tmp_path / "job.toml").write_bytes(content)
    for path, error, said in (
            ("job.toml", ParameterError, r"job\.toml: it is not TOML: "),
            ("none.toml", SourceError, "No such file"), ("", SourceError, "Is a directory")):
        with pytest.raises(error, match=said):
            read_job(tmp_path / path)


@pytest.mark.parametrize(("content", "code"), [
    ('output = "out', 2), ('output = "out"\ntitle = 1', 2),
    ('output = "out"\n[input]\ntrain = "none.csv"', 1), (None, 1)])
def test_the_exit_code_tells_faults_of_the_file_from_those_of_data(tmp_path, content, code):
    if content is not None:
        (tmp_path / "job.toml").write_text(content)
    assert CliRunner().invoke(app, ["run", str(tmp_path / "job.toml")]).exit_code == code


@pytest.mark.parametrize("text", [
    'output = "out"\ninput = "postgresql://u:SECRET@host/news"',
    'output = "out"\n[[input]]\ntrain = "s3://b/x"\nstorage_options = { aws_key = "SECRET" }',
    'output = "out"\n[input]\ntrain = ["postgresql://u:SECRET@host/news"]',
    'output = "postgresql://u:SECRET@host/news"\n[input]\ntrain = "rows.csv"',
    'output = "out"\nmodel = "SECRET"\n[input]\ntrain = "rows.csv"',
    'output = "out"\nexports = "SECRET"\n[input]\ntrain = "rows.csv"',
    'output = "out"\n[input]\ntrain = "rows.csv"\nstorage_options = "SECRET"'])
def test_a_secret_is_in_no_error(tmp_path, text):
    with pytest.raises(ParameterError) as error:
        read(tmp_path, text=text)
    assert "SECRET" not in str(error.value)
    with pytest.raises(SourceError) as unread:
        read_job("postgresql://u:SECRET@host/news")
    assert "SECRET" not in str(unread.value)


# Keys that are set, and what is said when sources and exports are checked.
OF_SOURCES = [
    (["input.train=none.csv"], SourceError, r"^input\.train: no such file or folder: '.*none"),
    (["input.test=none.csv"], SourceError, r"^input\.test: no such file"),
    (["predictions.input=none.csv"], SourceError, r"^predictions\.input: no such file"),
    (["model.text=body"], SchemaError, r"^input\.train: no column 'body' .* model\.text$"),
    (["model.label=kind"], SchemaError, r"^input\.train: no column 'kind'.* model\.label$"),
    (["validation.groups=author"], SchemaError, r"^validation\.groups: no column 'author'"),
    (["validation.time=day"], SchemaError, r"^validation\.time: no column 'day'"),
    (["model.weight=w"], SchemaError, r"^model\.weight: no column 'w' .* the columns are "),
    (["model.kind=nblinear", "model.warm_start=other.textnb"], ParameterError,
     "weights of NBLinear; got those of"),
    (["model.warm_start=other.textnb"], ParameterError, "a warm start is for models with a solver"),
    (["input.test=semicolons.csv"], SchemaError,
     r"^input\.test: no column 'text' \(the text column\): the only.*\. Say so with "
     r'input\.separator = ";"$'),
    (["input.test=mail.what"], SourceError,
     r"^input\.test: can't tell the format .* Say which it is, such as input\.format = 'csv'$"),
    (["predictions.input=mail.what"], SourceError, r"such as predictions\.format = 'csv'$"),
    (["input.train=parts", "input.on_unreadable=skip"], ParameterError,
     r"^input\.on_unreadable: is not for a folder of partitions"),
    (["exports=[{file='w', to='parquet', reads='text'}]"], ExportError, r"^exports\.0: "),
    (["predictions.columns=['decision,nope']"], ParameterError,
     r"^predictions\.columns: unknown value 'decision'; choose one of .*, predicted, probability$"),
    (["predictions.columns=['text']"], ParameterError, r"^predictions\.columns: names no answer"),
    (["predictions.input=strange.parquet", "predictions.columns=['day,predicted']"],
     ParameterError, r"^predictions\.columns: unknown value 'day'"),
    (["predictions.input=answered.parquet"], SchemaError, "a column 'probability' already"),
]


# The same for what only the rows can tell.
OF_ROWS = [
    (["input.train_where=nothing = 1"], ParameterError, "input.train_where 'nothing = 1'"),
    (["input.test_where=label = 'x'"], DataError,
     "no rows to test on: input.test_where = \"label = 'x'\" leaves none of them"),
    (["input.train_where=label = 'x'", "input.test_where=label = 'ham'"], DataError,
     "no rows to learn"),
    (["input.train=null.parquet"], DataError, r"^input\.train: the label column 'label' is null in "
     r'3 rows; .* drop them with input\.train_where = "label IS NOT NULL"$'),
    (["input.test=null.parquet"], DataError, r"^input\.test: .* them with input\.test_where = "),
    (["input.train=lists.parquet"], DataError, r"^input\.train: lists of the label column 'label' "
     "hold a null in 2 rows; write lists without nulls"),
    (["input.test=lists.parquet"], SchemaError, r"^input\.test: .* lists of labels, and that of "
     r"input\.train holds one label"),
    (["input.train=whole.parquet", "input.test=rows.parquet"], SchemaError,
     r"^input\.test: .* holds one label per document, .* that input\.label_separator splits$"),
    (["input.hold_out=0.0001", "input.train_where=label <> 'x'"], DataError,
     "no rows to test on: input.hold_out = 0.0001 leaves none of them"),
    (["input.hold_out=0.9999"], DataError, "no rows to learn from: input.hold_out = 0.9999"),
    (["input.train_where=label = 'x'"], DataError, "input.train_where = \"label = 'x'\" leaves"),
    (["exports=[{file='w.json', positive='a'}]", "input.train=four.csv"], ParameterError,
     r"^exports\.0\.positive: one w and b is of two classes, and these are 4; leave it out"),
    (["test.positive=junk"], ParameterError, "test.positive: unknown value 'junk'"),
    (["decision.positive=junk", "decision.costs=[1.0, 1.0]"], ParameterError,
     "decision.positive: unknown value 'junk'"),
    (["exports.0.to=liblinear", "exports.0.file=x"], ExportError, "say which class"),
    (["model.min_df=50000"], ParameterError,
     r"^model\.max_df: .* fewer than model\.min_df = 50000"),
    (["model.min_df=300"], VocabularyError, r"lower model\.min_df or raise model\.max_df$"),
    (["model.tokenizer.pattern=§+"], VocabularyError,
     r"use model\.tokenizer\.pattern = '\[\\p\{L\}"),
    (["input.classes=['a=x*']"], DataError, r"^no pattern of input\.classes matches"),
    (["input.test=strange.parquet"], DataError, r"are with input\.classes = '\w+=PATTERN,\.\.\.'$"),
]


@pytest.mark.sweep(9)
@pytest.mark.parametrize(("settings", "error", "said"), [*OF_SOURCES, *OF_ROWS], ids=str)
def test_a_failure_leaves_the_output_as_it_was(settings, error, said, folder):
    TextClassifier().fit(["aa", "bb"], ["x", "y"]).save("other.textnb")
    (folder / "semicolons.csv").write_text("text;label\na word;x\n")
    (folder / "mail.what").write_text("text,label\na word,x\n")
    (folder / "parts/x=1").mkdir(parents=True)
    pl.DataFrame({"text": ["a word"], "label": ["x"]}).write_parquet("parts/x=1/rows.parquet")
    (folder / "four.csv").write_text("text,label\n" + "\n".join(
        f"word {n},{label}" for n in range(9) for label in "abcd"))
    rows = pl.DataFrame({"text": [f"a word{n}" for n in range(60)], "label": ["x", "y"] * 30})
    rows.with_columns(pl.concat_list("label")).write_parquet("whole.parquet")
    rows.with_columns(label=pl.when(pl.int_range(60) > 2).then("label")).write_parquet(
        "null.parquet")
    rows.with_columns(label=pl.concat_list(
        pl.when(pl.int_range(60) > 1).then("label"))).write_parquet("lists.parquet")
    rows.with_columns(label=pl.lit("strange")).write_parquet("strange.parquet")
    rows.with_columns(probability=0.5).write_parquet("answered.parquet")
    if (settings, error, said) in OF_SOURCES:
        # It is seen before anything is learned.
        with pytest.raises(error, match=said) as info:
            check(folder, *settings)
        assert "--" not in info.value.command_line
    for is_first in (True, False):
        before = contents(folder)
        with pytest.raises(error, match=said):
            run(folder, *settings)
        assert contents(folder) == {**before, "job.toml": (folder / "job.toml").read_bytes()}
        if is_first:
            run(folder)


@pytest.mark.parametrize(("columns", "settings"), [
    (["text", "probability"], []), (["calibrated", "top"], ["calibration={}", "predictions.top=2"]),
    (["decision", "scores"], ["decision={positive='spam', costs=[1.0, 1.0]}",
                              "predictions.scores=true"]),
    (["runner_up", "explanation", "known_terms"],
     ["predictions.explain=2", "predictions.known_terms=true"])])
def test_answers_that_the_job_gives_pass_the_check(columns, settings, folder):
    settings = [*settings, f"predictions.columns={columns}"]
    check(folder, *settings)
    run(folder, *settings)
    assert pl.read_parquet_schema("out/predictions.parquet").keys() == {*columns}


def test_an_error_of_a_disk_names_the_copy_of_the_rows(folder, monkeypatch):
    def fail(*arguments):
        raise OSError(5, "Input/output error (os error 5)")

    monkeypatch.setattr("textnb.workflow.run.train", fail)
    with pytest.raises(SourceError, match=r"^can't read .*/\.out\.textnb-run/\.rows: Input"):
        run(folder)
    assert not (folder / "out").exists()


@pytest.mark.parametrize("call", [check, run])
def test_a_report_without_its_libraries_is_told_first(call, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(EngineError, match=r"^test\.report: a report needs altair.*: pip install"):
        call(folder, "test.report=r.html")


def test_a_setting_has_the_name_of_its_key():
    with pytest.raises(ParameterError, match=r"^model\.weight: is odd$"), naming_key_in("model"):
        raise ParameterError.naming_settings("{sample_weight} is odd")


@pytest.mark.parametrize("setting", [
    "model.kind=complement", "exports.0.positive=spam", "model.binary=true",
    "model.class_weight={spam=2.0}", "model.tokenizer.sklearn=true", "model.min_df=2"])
def test_an_export_that_works_passes_the_check(setting, folder):
    check(folder, "exports=[{file='model.sql', to='sql-sqlite'}]", setting)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(("kind", "message"), [("lda", None), ("qda", r"^exports\.0: ")])
def test_exports_of_feature_tables_are_checked_too(kind, message, folder):
    pl.DataFrame({"x": [1.0, 2.0], "label": ["a", "b"]}).write_parquet("rows.parquet")
    text = JOB.replace("l = 0.1", f"kind = '{kind}'").replace("[terms]", "")
    with nullcontext() if message is None else pytest.raises(ExportError, match=message):
        check(folder, "exports=[{file='model.sql', to='sql-sqlite'}]", text=text)
