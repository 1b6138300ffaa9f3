"""An error is one line that names the option, the file or the row, and has an exit code."""

import shlex
import shutil

import polars as pl
import pytest

from tests.cli.conftest import MAIL
from tests.frames.writing import write_files
from tests.workflow.conftest import contents
from textnb import NBLinear, TableClassifier, TextClassifier

NEW = pl.DataFrame({"text": ["free lunch offer", "see you at lunch"], "label": ["spam", "ham"]})
TABLE = pl.DataFrame({"x": [0.0, 1.0, 3.0, 4.0], "y": [1.0, 0.0, 1.0, 0.0], "name": list("abcd"),
                      "label": ["a", "a", "b", "b"]})
# Words of advice for Python, which must not be in errors of the command line.
PYTHON = ("pl.", "frame.with_columns", "predict(", "pass ", "frame.filter", "frame.drop", "=...",
          "partial_fit", "Tokenizer(", ", encoding=", "sample_weight", "grid", "headers must")


@pytest.fixture(scope="session")
def everything(tmp_path_factory):
    """A folder with the files of the commands below: valid and broken tables, and models."""
    folder = tmp_path_factory.mktemp("everything")
    MAIL.write_csv(folder / "mail.csv")
    MAIL.write_parquet(folder / "mail.parquet")
    TABLE.write_parquet(folder / "table.parquet")
    TABLE.select("label", x=pl.date(2026, 1, 31)).write_parquet(folder / "dates.parquet")
    pl.DataFrame({"text": ["aa bb", "cc"], "label": [["x", "y"], ["x"]]}).write_ndjson(
        folder / "lists.ndjson")
    texts = {
        "new.csv": NEW.write_csv(), "unlabelled.csv": NEW.drop("label").write_csv(),
        "columns.csv": NEW.rename({"text": "(the label column)"}).write_csv(),
        "sport.csv": "text,label\ncup final,sport\n", "null.csv": "text,label\nfree money,spam\na,",
        "body.csv": "body,label\nfree,ham\n", "short.csv": "text,label\na,spam\nb,ham\n",
        "empty.csv": "text,split,label,id\n", "nothing.csv": "", "words.txt": "at\n",
        "mail.what": "x",
        "weights.csv": "text,w,label\nfree money,0,spam\nnoon,0,ham\n",
        "old/ham/1.txt": "d\xe9jeuner",
        "old/spam/1.txt": "gratuit\xe9", "new/ham/1.txt": "hello", "latin.txt": "\xe0",
        "box/1.eml": "Subject: x\n\nnoon",
        "job.toml": 'output = "out"\n[input]\ntrain = "mail.csv"\n',
        **{f"{name}.toml": f'output = "out"\n[input]\ntrain = "{train}"\nstorage_options = {value}'
           for name, train, value in (
               ("list", "s3://b/k.csv", '["TOPSECRET"]'),
               ("nested", "s3://b/k.csv", '{ a = ["TOPSECRET"] }'),
               ("unset", "s3://b/k.csv", '{ a = "${NO_SUCH_NAME}" }'),
               ("place", "mail.csv", '{ a = "TOPSECRET" }'))},
    }
    write_files(folder, {name: content.encode("latin-1") for name, content in texts.items()})
    models = {
        "m": TextClassifier().fit(MAIL), "limited": TextClassifier(min_df=2).fit(MAIL),
        "linear": TextClassifier(NBLinear()).fit(pl.concat([MAIL] * 3)),
        "weighted": TextClassifier().fit(MAIL, sample_weight="id"),
        "numbers": TextClassifier().fit(["aa", "bb"], [0, 1]),
        "truths": TextClassifier().fit(["aa", "bb"], [False, True]),
        "lists": TextClassifier().fit(folder / "lists.ndjson"),
        "table": TableClassifier().fit(TABLE.drop("name"))}
    for name, model in models.items():
        model.save(folder / f"{name}.textnb")
    (folder / "old.csv").mkdir()
    (folder / "cut.textnb").write_bytes((folder / "m.textnb").read_bytes()[:-9])
    return folder


@pytest.fixture
def here(everything, folder):
    shutil.copytree(everything, folder, dirs_exist_ok=True)
    return folder


# The start of a command -> pairs of the words after it, and a part of the usage error (code 2).
BAD_USAGE = {
    "train mail.parquet -o n.textnb": [
        ("--model multinomal", "unknown value 'multinomal' - did you mean 'multinomial'?; choose"),
        ("--l many", "--l must be a number, or auto; got 'many'"),
        ("--l auto --model complement --set norm=true", "as a number, or --set norm=false"),
        ("--memory-limit 1M5", "bytes, such as 500M"), ("--memory-limit ''", "such as 500M"),
        ("--ngrams x", "--ngrams must be two numbers, such as 1,2; got 'x'"),
        ("--ngrams 2,1", "--ngrams must be (min_n, max_n) with 1 <= min_n <= max_n"),
        ("--set 'pattern=(a'", "--set pattern '(a' is not a valid regular expression"),
        ("--set 'pattern=(a)'", "--set pattern '(a)' has a capturing group"),
        ("--set pattern=a --set sklearn=true", "--set sklearn does not go with --set pattern"),
        ("--set l=1", "--set l: it is an option of its own, --l"),
        ("--set ngram_range=1", "--set ngram_range: it is an option of its own, --ngrams"),
        ("--set alpha=1", "got --model multinomial, whose smoothing parameter is --l"),
        ("--set class_weight.c=2 --set class_weight.c=3", "--set class_weight.c is given twice"),
        ("--set class_weight.c=3 --set class_weight=balanced", "class_weight is given twice"),
        ("--min-df few", "--min-df must be a count (2) or a share of documents (0.01); got 'few'"),
        ("--min-df 9 --set max_df=2", "--set max_df=2 of 6 documents is fewer than --min-df 9"),
        ("--stop-words words.txt --analyzer char", "it needs --analyzer word; got --analyzer char"),
        ("--features x", "--features belongs to --model gaussian, lda"),
        ("--model gaussian --text name", "--text belongs to --model multinomial"),
        ("--model gaussian --ngrams 1,2", "--ngrams belongs to --model multinomial"),
        ("--model gaussian --warm-start linear.textnb", "--warm-start is for --model nblinear"),
        ("--warm-start m.textnb", "learns more, and forgets, exactly: textnb update"),
        ("--class-prior 0.3", "that only Python and jobs (text"),
        ("--where 'colour = 1'", "the columns are text, label, split, id"),
        ("--where ''", "--where ''"), ("--where '(SELECT 1) OR s.n'", "--where '(SELECT 1)"),
        ("--where 'id + 1'", "--where 'id + 1'"),
        ("--read encoding=foo", "--read encoding is for a folder"),
        ("--read subfolders=true", "is not one. If it holds mail, say --read format=mail"),
        ("--read storage_options.a=x", "--read storage_options is for a URL"),
        ("--read query=x", "--read query is for a database"), ("extra", "extra argument"),
        ("--text", "'--text' requires an argument")],
    "train": [
        ("", "Missing argument 'INPUT'"), ("mail.csv", "Missing option '--output'"),
        ("box -o n.textnb --text 'a b'", "--text must be names of headers"),
        ("lists.ndjson --read label_separator=, -o n.textnb", "labels in a text"),
        ("new.csv --read 'label_separator=; ' -o n.textnb", "one character"),
        ("lists.ndjson -o n.textnb --read label_separator=, --read label_columns=a",
         "label_columns does not go with --read label_separator"),
        ("lists.ndjson -o n.textnb --model nblinear --set idf=false --false-positives 0.1",
         "error: --false-positives is for one label per")],
    "train s3://b/k.csv -o n.textnb --read storage_options.a=TOPSECRET --read": [
        ("TOPSECRET", "must be KEY=VALUE"), (".storage_options.b=TOPSECRET", "must be key=value"),
        ("storage_options.a=TOPSECRET", "--read storage_options.a is given twice")],
    "train postgresql://me:TOPSECRET@h/d -o n.textnb": [
        ("", "is a database: say which rows with --read query"),
        ("--read query=", "query must be a SELECT"),
        ("--read 'query=SELECT 1' --read format=csv", "are for files"),
        ("--read 'query=SELECT 1' --read storage_options.a=TOPSECRET", "are for files")],
    "predict m.textnb mail.parquet": [
        ("-o out", "can't tell the output format from 'out'; known endings: .parquet"),
        ("--output-format parquet", "parquet can't be streamed to standard output; choose ndjson"),
        ("-o s3://bucket/out.csv", "Write a file, and copy it"), ("--where x", "--where 'x'"),
        ("--safe-csv", "--safe-csv is for csv and tsv"),
        ("--safe-csv -o out.parquet", "--safe-csv is for csv and tsv"),
        ("-o out.csv --columns ID,predicted", "unknown value 'ID' - did you mean 'id'?"),
        ("-o out.csv --columns id", "--columns names no answer; the answers are predicted"),
        ("-o out.csv --columns predicted,probability", "unknown value 'probability'")],
    "mistakes m.textnb mail.parquet": [("--safe-csv", "--safe-csv is for csv and tsv")],
    "next m.textnb new.csv --labelled mail.csv": [
        ("-o mail.csv", "is also what is read"), ("-n 0", "error: -n must be an integer above 0")],
    # Before anything is read.
    "predict absent.textnb absent.csv -o out.doc": [("", "--output-format")],
    "predict table.textnb table.parquet --explain 2": [("", "of texts")],
    "test m.textnb mail.parquet": [
        ("--where 'nope = 1'", "--where 'nope = 1'"),
        ("--positive spm", "--positive: unknown value 'spm' - did you mean 'spam'?; choose one of"),
        ("--train mail.parquet", "--train goes with --report"),
        ("--report r.html --train-where x", "--train-where goes with --train"),
        ("--report r.html --train mail.parquet", "is also what is tested"),
        ("--read storage_options.a=x", "--read storage_options is for URLs")],
    "top": [("m.textnb --class spma", "--class: unknown value 'spma' - did you mean 'spam'?; ch"),
            ("m.textnb -k 0", "k must be an int >= 1; got 0"), ("table.textnb", "of texts")],
    "explain": [("m.textnb", "Missing argument 'TEXT'"), ("table.textnb free", "of texts"),
                ("m.textnb free --column title", "unknown value 'title'"),
                ("m.textnb free -c spam", "lists of labels"),
                ("lists.textnb a -c tin", "unknown value 'tin'")],
    "update": [
        ("m.textnb new.csv ./new.csv", "./new.csv is named twice, and its rows would count twice"),
        ("m.textnb new.csv --as spam", "the input has a column 'label': leave out --as"),
        ("numbers.textnb unlabelled.csv --as 1_0", "an integer of 64 bits"),
        ("numbers.textnb unlabelled.csv --as 99999999999999999999", "an integer of 64 bits"),
        ("truths.textnb unlabelled.csv --as perhaps", "got 'perhaps'"),
        ("m.textnb unlabelled.csv --as a\udcff", "must be valid Unicode; got 'a\\udcff'"),
        ("linear.textnb new.csv", "learns from all documents at once"),
        ("linear.textnb new.csv", "textnb train --warm-start MODEL"),
        ("table.textnb table.parquet --on-error", "--on-error is for models of texts")],
    "forget": [("table.textnb table.parquet", "for models of texts")],
    "merge": [("m.textnb -o n.textnb", "two models or more"),
              ("m.textnb ./m.textnb -o n.textnb", "./m.textnb is named twice"),
              ("m.textnb limited.textnb -o n.textnb", "limited.textnb: models differ in min_df"),
              ("numbers.textnb m.textnb -o n.textnb", "differ in the type of their labels")],
    "diff m.textnb m.textnb": [
        ("--where true", "name one"), ("--read query=x", "name one"),
        ("--read format=csv", "name one")],
    "calibrate": [("m.textnb mail.csv --dry-run -o n.textnb", "writes nothing: leave out --output"),
                  ("lists.textnb lists.ndjson --no-length", "--length is for one label"),
                  ("table.textnb table.parquet", "is a model of feature tables; this is for")],
    "threshold weighted.textnb mail.csv": [
        ("-c spam --costs 1,1 --scored folds", ": score other rows, as textnb calibrate")],
    "threshold": [
        ("m.textnb --costs 1,1 -c spam", "name an INPUT, or --clear"),
        ("m.textnb --clear --where x", "not with --where"),
        ("m.textnb mail.csv --clear", "not with INPUT"),
        ("m.textnb --at-least 2", "--at-least is for lists of labels"),
        ("table.textnb table.parquet --costs 1,1 -c a", "is a model of feature tables")],
    "threshold m.textnb mail.csv": [
        ("", "--costs, --min-precision, --min-probability and --by; got none"),
        ("--costs 1,1", "--costs needs --class"),
        ("-c spam --costs 1", "--costs must be two numbers, such as 10,1; got '1'"),
        ("-c spam --costs 1,1 --dry-run -o x", "leave out --output"),
        ("-c spam --min-precision 0.9", "--class does not go with --min-precision"),
        ("--by f1", "--by is for lists of labels")],
    "threshold lists.textnb": [
        ("lists.ndjson --costs 1,5 --class x", "--class is for one label"),
        ("--by f1", "name an INPUT"),
        ("lists.ndjson --at-least 1", "give one of")],
    "validate m.textnb mail.csv": [
        ("-o v.xyz", ".jsonl; name the file with one of them\n"),
        ("-o -", "--output is a file: standard output has the measures"),
        ("--groups id --time id", "--groups does not go with --time"),
        ("--folds 2 --positive spm", "--positive: unknown value 'spm' - did you mean 'spam'?"),
        ("--smoothing 1 --time id", "--time does not go with --smoothing"),
        ("--smoothing one", "--smoothing must be numbers"),
        ("--set block=10", "--set block belongs to --online"),
        *((f"-o a.csv {how}", "--output is for folds") for how in (
            "--online --time id", "--time id", "--smoothing auto")),
        ("--online --folds 3", "--folds does not go with --online"),
        ("--online --leave-one-out", "--online does not go with --leave-one-out")],
    "validate": [("table.textnb table.parquet", "is a model of feature tables"),
                 ("lists.textnb lists.ndjson --positive x", "--folds 5 is more than")],
    "duplicates mail.csv": [
        ("--near 0.5 --exact", "--near does not go with"),
        ("--test-where 'id > 2'", "--test-where is for TEST"),
        ("mail.csv --test-where 'x ='", "--test-where 'x ='"),
        ("mail.csv --read storage_options.a=x", "--read storage_options is for URLs")],
    "export m.textnb -o out": [
        ("--to postgresql", "did you mean 'sql-postgres'?; "),
        ("--to js", "did you mean 'javascript'?; "),
        ("--to sql", "did you mean 'sql-duckdb' or 'sql-postgres' or 'sql-sqlite'?; "),
        ("--to parquet --positive smap", "did you mean 'spam'"),
        ("", "does not tell for which system")],
    "export truths.textnb -o out": [("--to json --positive tru", "'tru' - did you mean 'True'")],
    "export m.textnb -o": [
        ("v.sql", "say which, --to sql-duckdb or sql-postgres or sql-sqlite"),
        ("v.py", "say which, --to python or polars"), ("v.zip", "does not tell for which system")],
    "verify w": [("--read query=x", "name them"), ("--where true", "name them"),
                 ("--read format=csv", "name them")],
    "mail box": [
        ("--header 'a b'", "--header must be names of headers"),
        ("--errors -o -", "can't both go to standard output"),
        ("--errors --output-format csv", "can't both go to standard output"),
        ("--format json", "--format is for --errors"),
        ("-o x.xyz", "can't tell the output format")],
    "run --check": [
        ("list.toml", "a table of strings and numbers"),
        ("nested.toml", "a table of strings and numbers"),
        ("unset.toml", "NO_SUCH_NAME is not set"), ("place.toml", "storage_options: is for URLs")],
    "": [("tran", "No such command 'tran' - did you mean 'train'?"),
         ("--colour", "No such option")],
}
# The same for errors in data (code 1).
BAD_DATA = {
    "export truths.textnb -o out": [("--to liblinear", "(--positive True); labels stay the same")],
    "train -o n.textnb": [
        ("weights.csv --weight w", "--weight is zero for every document"),
        ("absent", "no such file or folder: 'absent'\n"),
        ("mail.csv --text txt", "did you mean 'text'?"),
        ("mail.csv --text txt", "Rename the one that is meant, or say which with --text\n"),
        ("mail.csv --label binary=True", "no column 'binary=True'"),
        ("mail.csv --weight weigth", "or say which with --weight\n"),
        ("null.csv", "--where 'label IS NOT NULL'"), ("empty.csv", "has no rows"),
        ("short.csv", "shorten the list"),
        ("mail.csv --min-df 6", "12 terms were found and none is within --min-df 6"),
        ("mail.csv --min-df 6", "lower --min-df or raise"),
        ("mail.what", "Say which it is, such as --read format=csv\n"),
        ("old", "if the files are older, try --read encoding=latin-1"),
        ("-", "standard input: it is empty"),
        ("mail.csv --stop-words absent.txt", "can't read absent.txt"),
        ("mail.csv --stop-words latin.txt", "can't read latin.txt"),
        ("dates.parquet --model lda --features x", "it is Date. Write a number in its place")],
    "train mail.csv -o": [
        ("no/m.textnb", "can't write 'no/m.textnb': No such file or directory"),
        (".", "can't write '.': it is a folder"), ("-", "name a file"),
        ("''", "can't write '': the name is empty"),
        ("/dev/null", "it is a device or a pipe, and a rename would replace it"),
        ("m.textnb --label colour", "no column 'colour'")],
    "predict m.textnb": [
        ("none.csv", "no such file or folder: 'none.csv'\n"),
        ("body.csv", "no column 'text' (the text column)"),
        ("mail.csv -o no/out.csv", "can't write 'no/out.csv': No such file or"),
        ("mail.csv -o old.csv", "can't write 'old.csv': it is a folder")],
    "update m.textnb mail.csv": [("-o ''", "can't write '': the name is empty")],
    "predict": [("absent.textnb mail.csv", "no such model file: 'absent.textnb'"),
                ("cut.textnb mail.csv", "cut.textnb is not a sound textnb model")],
    "test m.textnb": [("unlabelled.csv", "Rename the one that is meant\n")],
    "tune -o n.textnb": [("mail.csv --label kind", "or say which with --label\n")],
    "mail nowhere": [("", "no such file or folder")],
    "mistakes m.textnb": [("unlabelled.csv", "Rename the one that is meant\n")],
    "test": [("numbers.textnb mail.csv", "label column 'label' holds 'spam', and the model's")],
    "validate m.textnb": [("new.csv --leave-one-out", "to score others, use textnb test, textnb")],
    "threshold m.textnb new.csv": [
        ("-c spam --costs 1,1 --scored leave-one-out", "use textnb test, textnb thre")],
    "update": [
        ("absent.textnb new.csv", "no such model file"),
        ("m.textnb new.csv none.csv", "no such file or folder: 'none.csv'"),
        ("m.textnb sport.csv", "known classes are 'ham', 'spam'; say --new-class NAME for each "),
        ("m.textnb unlabelled.csv", "where all rows are of one class, say --as CLASS"),
        ("m.textnb columns.csv", "no column 'text' (the text column)"),
        ("numbers.textnb mail.csv", "label column 'label' holds 'spam', and the model's labels"),
        ("numbers.textnb mail.csv --on-error", "write such integers, or leave out its rows")],
    "forget": [("m.textnb sport.csv", "can't forget: term 'cup' was never learned")],
    "duplicates mail.csv": [("nowhere.csv", "no such file or folder: 'nowhere.csv'"),
                            ("mail.csv --test-where 1=0", "--test-where '1=0' leaves no rows")],
    "export m.textnb --to json": [("-o no/out", "there is no folder"),
                                  ("-o out --input text", "json: it is given the tokens")],
    "export": [("absent.textnb -o w.json", "no such model file")],
    "verify": [("absent", "no such bundle"), ("m.textnb", "m.textnb")],
    "describe": [("absent.textnb", "no such model file"), ("mail.parquet", "is not a sound textn")],
}


def rows(table):
    return [pytest.param(f"{begin} {more}", message, id=f"{begin} {more}")
            for begin, cases in table.items() for more, message in cases]


def error_of(run, folder, code, command):
    """Run a command, check that it changes no file and prints only an error, and return that."""
    before = contents(folder)
    ran = run(*shlex.split(command)).checked(code)
    assert ran.out == ""
    assert contents(folder) == before
    assert [word for word in (*PYTHON, "TOPSECRET") if word in ran.err] == []
    assert ran.err.splitlines()[-1].startswith("error: ")
    return ran.err


@pytest.mark.parametrize(("command", "message"), rows(BAD_USAGE))
def test_bad_usage(command, message, run, here):
    assert message in error_of(run, here, 2, command)


@pytest.mark.parametrize(("command", "message"), rows(BAD_DATA))
def test_bad_data(command, message, run, here):
    assert message in error_of(run, here, 1, command)


@pytest.mark.parametrize("command", [
    "train mail.csv -o n.textnb", "test m.textnb mail.csv", "validate m.textnb mail.csv",
    "mistakes m.textnb mail.csv", "next m.textnb mail.csv", "update m.textnb mail.csv --on-error",
    "validate m.textnb mail.csv --leave-one-out", "calibrate m.textnb mail.csv",
    "threshold m.textnb mail.csv -c spam --max-false-positives 0.1", "update m.textnb mail.csv",
    "forget m.textnb mail.csv", "duplicates mail.csv"])
def test_a_condition_that_leaves_no_rows_is_named(command, run, here):
    where = """--where "label = 'none such'\""""
    assert error_of(run, here, 1, f"{command} {where}") == (
        f"error: {where} leaves no rows of mail.csv; its columns are text, label, split, id\n")
