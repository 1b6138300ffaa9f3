"""Other files than models, and documents that no model has: refused, in bounded time and memory."""

import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from itertools import permutations, product

import numpy as np
import pytest

import textnb
from tests.storage import members
from tests.storage.conftest import scores
from tests.storage.members import with_document, with_value
from textnb import SourceError

# Other files than models. `tests/files/test_blocks.py` has lost and changed bytes.


def zip_of_text():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "hello")
    return buffer.getvalue()


@pytest.mark.parametrize("content", [
    b"", b"P", b"PK\x03\x04", b"free money\n" * 50, bytes(1000), b"sha256:" + b"0" * 64,
    b"PAR1" + bytes(100) + b"PAR1", pytest.param(gzip.compress(b"x" * 100), id="gzip"),
    pytest.param(zip_of_text(), id="zip"), pickle.dumps({"model": [1, 2, 3]}),
    b"PK\x03\x04textnb-model 2 sha256:" + b"0" * 64], ids=lambda content: repr(content)[:24])
def test_another_kind_of_file_is_refused(content, assert_refused):
    assert_refused(content)


class Trap:
    """Pickled, it makes a folder when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_is_not_run(files, assert_refused, tmp_path):
    trap, sound = tmp_path / "sprung", files["bernoulli"]
    payload, own = pickle.dumps(Trap(trap)), members.members_of(sound)
    for content in (payload, b"PK\x03\x04" + payload + sound[-86:],
                    members.built({**own, "model.pkl": payload}),
                    *(members.built({**own, name: payload}) for name in own)):
        assert_refused(content)
    assert not trap.exists()
    pickle.loads(payload)
    assert trap.exists()


@pytest.mark.parametrize(("name", "message"), [
    ("", r"can't read .*: Is a directory"), ("file/m.textnb", r"can't read .*: Not a directory"),
    ("absent.textnb", r"no such model file: '.*absent\.textnb'")])
def test_a_path_without_a_file_is_a_source_error(name, message, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match=message):
        textnb.load(tmp_path / name)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system in memory")
def test_a_folder_in_memory_whose_size_is_small_is_one_too():
    with (tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
          pytest.raises(SourceError, match="Is a directory")):
        textnb.load(folder)


# Values of the document

NEWER = r"was written by a newer textnb: it has {}, which this one does not know\. Upgrade with"
HUGE = 10**400
# Per file and place, values out of their range: the error names what they are values of.
OUT_OF_RANGE = {
    ("bernoulli", "estimator/parameters/"): {
        "l": [-1, "1", None, True, {"a": 1}, HUGE], "binarize": [-1, "x", [0], HUGE],
        "class_prior": ["half", [0, 0], [-1, 2], 0.5, ["a", "b"], {"ham": 1}, [HUGE, 1]]},
    ("weights", "estimator/parameters/"): {
        "C": [0, -1, "x", None, [1.0]], "beta": [2, -1, "x"], "loss": ["squared", None],
        "l": [-1, "x"]},
    ("lda", "estimator/parameters/"): {
        "covariance": ["round"], "shrinkage": [2, -1, "some", [0.1]],
        "priors": ["abc", [-1, 1, 1]], "divisor": ["m", 0], "n_components": ["x"],
        "allow_singular": ["yes"]},
    ("bernoulli", "settings/"): {
        "text": [5, [1], [["a"]], {"a": 1}, ["a", None]], "label": [["label"], 1],
        "min_df": ["2", -2, 1.5, True, [2]], "max_df": [0, -0.5],
        "max_features": [0, -5, 2.0, "3", False], "binary": ["yes", 1, None]},
    ("bernoulli", "settings/tokenizer/"): {
        "pattern": [None, 5], "analyzer": ["words", None, ["word"], {}],
        "ngram_range": [[1, 10**9], [1, 33], [0, 1], [2, 1], [1], [1, 2, 3], "12", [1.0, 2.0],
                        [True, True], None, {"1": 2}],
        "normalize": ["nfc", ["NFC"]], "strip_accents": [True], "lowercase": ["no", None, 1],
        "stop_words": ["the", [1], [["a"]], 5], "field_prefix": [5, "text", [1], None],
        "keep": [["smileys"], "emoji", None]},
}
# A file, a place in its document, words of the error, and the values that give it.
DAMAGED = [
    *((file, place + name, f"{name}( must be |: unknown value )", values)
      for (file, place), values_of in OUT_OF_RANGE.items() for name, values in values_of.items()),
    ("bernoulli", "version", "is not of version 2",
     [0, -1, 1, 1.0, "1", None, True, [1], {"major": 1}]),
    ("bernoulli", "version", "has format version 3; this textnb reads up to 2. Upgrade with", [3]),
    ("bernoulli", "format", "is not of format 'textnb-model'",
     ["textnb", "", None, 1, ["textnb-model"]]),
    ("bernoulli", "layers", "other layers than one", [0, 2, True, 1.0, None, "1"]),
    ("bernoulli", "layers", "no 'layers'", [...]),
    ("weights", "requires", NEWER.format("the feature 'ages', the feature 'buckets'"),
     [["buckets", "ages"]]),
    ("weights", "requires", "requires is not a list of names", [None, "x", [1], {}]),
    ("weights", "requires", "no 'requires'", [...]),
    # Names that the format does not know
    ("bernoulli", "estimator/name", "its estimator is not described", [None, 1, ["a"], {}]),
    *(("bernoulli", "kind", NEWER.format(f"the kind of classifier '{kind}'"), [kind])
      for kind in ("MailClassifier", "", "builtins.eval")),
    ("bernoulli", "kind", "its kind is not a name", [None, 3, ["TextClassifier"]]),
    ("bernoulli", "kind", "its settings are not those of tables", ["TableClassifier"]),
    *(("bernoulli", path, NEWER.format(f"the .*'{path.split('/')[-1]}'"), [1]) for path in (
        "settings/estimator", "settings/fit", "settings/__class__", "settings/tokenizer/analyse",
        "settings/tokenizer/__init__", "estimator/newer", "classes/weights",
        "estimator/parameters/alpha", "estimator/parameters/self",
        "estimator/parameters/feature_count_")),
    ("bernoulli", "settings/newer", NEWER.format("the setting 'newer'"), [{"bins": 3}]),
    ("bernoulli", "settings/tokenizer/newer", NEWER.format("the tokenizer's setting 'newer'"),
     [[]]),
    ("bernoulli", "estimator/parameters/newer",
     NEWER.format("the parameter of BernoulliNB 'newer'"), [{"bins": 3}]),
    *(("bernoulli", name, NEWER.format(f"the value of the {name} 'bins'"), [{"bins": 3}])
      for name in ("calibration", "decision")),
    # An earlier state of 0.2 wrote them.
    ("bernoulli", "settings/period",
     r"counts by periods of time, .* Train the model again, without them$", ["month"]),
    # No error shows control characters.
    ("weights", "estimator/parameters/\x1b[2J", "newer textnb", [1]),
    ("weights", "settings/a\nb", "newer textnb", [1]),
    ("weights", "arrays/\r", "it has no member", [{"type": "<i4", "shape": [1]}]),
    # Half a character
    ("bernoulli", "settings/label", "surrogates not allowed", ["\ud800"]),
    ("bernoulli", "classes/labels", "surrogates not allowed",
     [["ham", "\ud800"], ["\ud800", "\udfff"]]),
    # Parameters and settings that do not go with the rest
    ("bernoulli", "estimator/parameters/l", "totals/counts', which is not one of its model",
     [[], [1.0], [[1.0]], [1] * 1000]),
    ("bernoulli", "estimator/parameters/class_prior", "there is not one prior per class",
     [[1.0], [0.5, 0.25, 0.25]]),
    ("bernoulli", "estimator/parameters/binarize", "binarize=None", [None]),
    ("lda", "estimator/parameters/priors", "Number of priors|sum of the priors",
     [[1.0], [0.5, 0.5, 0.5]]),
    *(("lda", f"estimator/parameters/{name}", NEWER.format(f"the parameter of .*'{name}'"), [1])
      for name in ("unknown", "store_covariance")),
    ("histogram", "estimator/parameters/density", "is not a sound", [None, "KernelDensity"]),
    ("histogram", "estimator/parameters/density", "no 'name'", [{}]),
    ("histogram", "estimator/parameters/density", "no 'parameters'",
     [{"name": "KernelDensity"}, {"name": "HistogramDensity"}]),
    ("histogram", "estimator/parameters/density", "has the values name and parameters",
     [{"name": "HistogramDensity", "parameters": {}, "other": 1}]),
    *(("histogram", "estimator/parameters/density", words, [{"name": name, "parameters": values}])
      for name, values, words in [
        ("KernelDensity", {"atol": 10**400}, "a number is too large"),
        ("os.system", {}, "density 'os.system' is unknown"),
        ("Pipeline", {"steps": []}, "density 'Pipeline' is unknown"),
        ("HistogramDensity", {"bins": 10**12}, "bins must be"),
        ("HistogramDensity", {"bins": -1}, "bins must be"),
        ("HistogramDensity", {"bins": "many"}, "bins: unknown value 'many'"),
        ("HistogramDensity", {"bins": 4, "l": -1}, "l must be a finite number"),
        ("HistogramDensity", {"x": 1}, "has no setting 'x'"),
        ("KernelDensity", {"bandwidth": -1}, "can't be estimated: The 'bandwidth'"),
        ("KernelDensity", {"kernel": "x"}, "can't be estimated: The 'kernel'"),
        ("KernelDensity", {"metric": "x"}, "can't be estimated: The 'metric'"),
        ("GaussianMixture", {"n_components": 10**9}, "n_components"),
        ("GaussianMixture", {"covariance_type": "x"}, "covariance_type"),
        ("GaussianMixture", {"init_params": "x"}, "init_params")]),
    ("bernoulli", "settings/text", "not names of different columns", [[], ["a", "a"]]),
    ("bernoulli", "settings/text", "its label column is a text column", [["text", "label"]]),
    ("bernoulli", "settings/min_df", "none is within min_df=4", [4]),
    ("bernoulli", "settings/max_df", "max_df=1 of 5 documents is fewer", [1]),
    *(("bernoulli", f"settings/{name}", "too large", [HUGE]) for name in ("min_df", "max_df")),
    ("bernoulli", "settings/vocabulary", "its vocabulary is not a list of terms",
     ["free", [1], [None], {"free": 0}]),
    ("bernoulli", "settings/vocabulary", "totals/counts', which is not one of its model",
     [[], ["a", "a"]]),
    ("bernoulli", "settings/tokenizer/pattern", "capturing group|matches the empty|not a valid reg",
     ["(", "(a)", "", "a*", "(?<=a)b", "(?:x{1000}){1000}"]),
    *(("bernoulli", f"settings/tokenizer/{name}", f"{name} names columns that it does not read",
       [["subject"]]) for name in ("field_prefix", "token_columns")),
    # Classes
    *(("bernoulli", "classes", words, [
        {"type": kind, "labels": labels, "documents": [2, 3]} for labels, kind in classes])
      for words, classes in {
        "labels are not sorted": [(["spam", "ham"], "string"), (["ham", "ham"], "string")],
        "documents per class are not counts": [
            (["ham"], "string"), (["a", "b", "c"], "string")],
        "its labels are not of their type": [
            ([], "string"), (["ham", 1], "string"), (["ham", None], "string"), ([1, 2], "string"),
            (["1", "2"], "integer"), ([1.0, 2.0], "integer"), ([True, 2], "integer"),
            ([False, True], "integer"), ([0, 1], "boolean"), ([False, None], "boolean"),
            ("hs", "string"), ({"ham": 1, "spam": 2}, "string"), ([["ham"], ["spam"]], "string"),
            (None, "string"), (5, "string")],
        "is not a sound": [(["ham", "spam"], kind) for kind in ("float", None, ["string"])],
        "a label is beyond 64 bits": [
            ([-(2**63) - 1, 0], "integer"), ([0, 2**64], "integer"), ([0, HUGE], "integer")],
      }.items()),
    ("bernoulli", "classes/documents", "documents per class are not counts", [
        [2], [2, 3, 4], [], [-1, 3], [2.0, 3.0], ["2", "3"], [True, 3], [None, 3], [2**53 - 3, 3],
        [2**63, 3], [HUGE, 3], [2**62 - 1, 2**62 - 1, 2**62 - 1], "23", {"ham": 2}, None, 5]),
    ("bernoulli", "classes/documents", "max_df=1.0 of 0 documents is fewer", [[0, 0]]),
    ("bernoulli", "classes/documents", "a class without documents has counts", [[0, 5]]),
    ("multinomial", "classes/total", "one label each and lists", [5]),
    ("lists", "classes/total", "one label each and lists", [..., -1, 5.0, True, None, 2**53]),
    ("lists", "classes/total", "a label has more than all documents", [1]),
    # Weights, and a sample of rows
    ("weights", "intercept", "intercepts are not one finite number per class",
     [None, [], [0.0], [0.0, 0.0, 0.0], [None, 0.0], 1.0, [[0.0], [0.0]], ["a", "b"], {},
      [HUGE, 0.0], [True, 0.5], ["1", "2"], [1, 2]]),
    ("weights", "intercept", "no 'intercept'", [...]),
    ("sample", "sample", "its sample of rows is not described", [
        9, {}, {"most": 1}, {"most": 2**31}, {"most": 9.0}, {"most": True},
        {"most": 9, "more": 1}]),
    ("sample", "sample", "optional/sample/ends', which is not one of its model", [...]),
    ("sample", "sample", "its sample has more rows than it holds", [{"most": 8}]),
    ("multinomial", "sample", "it has a sample of rows", [{"most": 9}]),
    ("sample", "estimator/parameters/idf", "it has a sample of rows", [True]),
    ("sample", "settings/subwords", "it has a sample of rows", [[4, 4]]),
    ("weights", "settings/subwords", "its model shares no weights among words", [[4, 4]]),
    ("few weights", "settings/subwords", r"subwords must be \(min_n, max_n\)", [
        4, "44", [4], [4.0, 4], [True, True], [4, 3], [4, 10**30]]),
    ("few weights", "settings/sharing", "sharing is the weight of subwords", [0.5]),
    ("few weights", "settings/vector_weight", "vector_weight is that of vectors", [0.5]),
    ("weights", "settings/vectors", "its model shares no weights among words", ["v.txt"]),
    ("few weights", "settings/lexicon", "lexicon must be", [-1, 1.5, "a"]),
    # What only some models have
    ("multinomial", "l", "l is not a number >= 0", [-1.0, 1e101, "x", 1, True, "auto", "Infinity"]),
    ("multinomial", "l", "l was chosen and is not \"auto\"", [1.0]),
    ("multinomial", "estimator/parameters/l", "l was chosen and is not \"auto\"", ["auto"]),
    ("multinomial", "pruned", "not counted by integers above 0",
     [{"terms": 1, "occurrences": 0, "at_most": 1}, {"terms": 1, "at_most": 1}, 5]),
    ("multinomial", "since_fit", "come from counts alone", [{"learned": 1, "forgotten": 0}]),
    ("sample", "since_fit", "documents since the fit are not counts", [
        {}, 5, {"learned": 1}, {"learned": 0, "forgotten": 0}, {"learned": -1, "forgotten": 1},
        {"learned": 2**53, "forgotten": 0}, {"learned": 1.0, "forgotten": 0}]),
    # Shapes are seen before memory is taken.
    ("multinomial", "arrays/terms~ends/shape", "is not of its size",
     [[2**61], [2**40, 2**40], [0]]),
    ("multinomial", "arrays/terms~ends/shape", "has no known type and shape",
     [[-1], [10**30], [1.0], [True], ["1"], [], [1, 1, 1], None, 5]),
]


def place_of(path):
    """A path in a document: "/" goes down, and "~" is a "/" in a name."""
    return tuple(name.replace("~", "/") for name in path.split("/"))


@pytest.mark.parametrize(("name", "path", "words", "value"), [
    pytest.param(name, path, words, value, id=ascii(f"{path}-{value}")[1:60])
    for name, path, words, values in DAMAGED for value in values])
def test_a_value_that_no_model_has_is_refused(name, path, words, value, files, assert_refused):
    assert_refused(with_value(files[name], place_of(path), value), words)


def test_one_term_may_have_been_pruned(files, load_or_none):
    pruned = {"terms": 1, "occurrences": 1, "at_most": 1}
    assert load_or_none(with_value(files["multinomial"], ("pruned",), pruned)) is not None


@pytest.mark.parametrize("name", ["GaussianNB", "CategoricalNB", "multinomialnb", "", "os.system",
                                  "__class__", "DiscreteNB", "TextClassifier"])
def test_a_model_that_is_not_imported_is_named(name, files, assert_refused):
    content = files["bernoulli"]
    for sums in ("totals/counts", "totals/absent"):
        content = members.with_array(content, sums, None)
    assert_refused(with_value(content, ("estimator", "name"), name),
            f"has the model {name!r}, which .* import the module .* upgrade with")


def test_what_is_kept_goes_with_the_analyzer(files, assert_refused):
    content = with_value(files["bernoulli"], ("settings", "tokenizer", "keep"), ["emoji"])
    assert_refused(with_value(content, ("settings", "tokenizer", "analyzer"), "char"), "tokenizer")


VALUES = (..., None, [], {}, 7, -1, 0.5, "x", True, HUGE, [None], [[1]], ["x"], {"x": 1})
OF_ALL = {"textnb": VALUES, "requires": ([],), "settings/label": ("x",)}
OF_TEXTS = {**OF_ALL, "settings/text": ("x", ["x"]), "settings/max_df": (7,),
            "settings/max_features": (None, 7), "settings/binary": (True,),
            "settings/tokenizer": ({},), "settings/vocabulary": (None,)}
OF_TABLES = {**OF_ALL, "estimator/parameters": ({},)}
# Per file, the values that its document may have: the same, or others that go with all else.
ACCEPTED = {
    "multinomial": {**OF_TEXTS, "estimator/parameters": ({},)}, "bernoulli": OF_TEXTS,
    "lda": {**OF_TABLES, "estimator/learned": ({},)},
    # Nothing is learned beside its rows, however that is written.
    "rows": {**OF_TABLES, "estimator/learned": VALUES[1:]},
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ACCEPTED)
def test_each_value_in_turn_is_refused_or_gives_a_model_that_works(
    name, files, load_or_none
):
    document, accepted = members.document_of(files[name]), {}
    paths = [(key,) for key in document]
    paths += [(key, inner) for key in document if isinstance(document[key], dict)
              for inner in document[key]]
    paths += [("arrays", array, key) for array in document["arrays"] for key in ("type", "shape")]
    for path, value in product(paths, VALUES):
        model = load_or_none(with_value(files[name], path, value))
        if model is not None:
            assert scores(model)
            accepted.setdefault("/".join(path), []).append(value)
    assert accepted == {path: list(values) for path, values in ACCEPTED[name].items()}


def test_a_file_of_one_kind_is_not_read_as_another(files, load_or_none, assert_refused):
    names = ("weights", "lda", "histogram", "bernoulli")
    for name, other in permutations(names, 2):
        own, donor = members.document_of(files[name]), members.document_of(files[other])
        for key in ("kind", "estimator", "settings"):
            if own[key] != donor[key]:
                # Settings may fit another model of the same kind: then it must be one that works.
                model = load_or_none(with_value(files[name], (key,), donor[key]))
                assert model is None or np.isfinite(model.linear_form().weights).all()
        mixed = {**donor, "arrays": own["arrays"]}
        assert_refused(with_document(files[name], json.dumps(mixed)))


# JSON


@pytest.mark.parametrize("key", ['"l": ', '"max_df": ', '"version": '])
@pytest.mark.parametrize("number", [
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000, "1" + "0" * 400, "1e-999999",
    "-0"], ids=lambda number: number[:24])
def test_a_number_that_is_none_or_beyond_the_machine_is_refused(
    key, number, files, assert_refused
):
    document = members.members_of(files["bernoulli"])["model.json"].decode()
    before, after = document.split(key, 1)
    rest = after.lstrip("0123456789.")
    assert rest != after
    assert_refused(with_document(files["bernoulli"], before + key + number + rest), "")


@pytest.mark.parametrize("document", [
    "", " ", "null", "[]", '"textnb-model"', "{", "{}", '{"format": "textnb-model"',
    "{'format': 1}", '{"format": "textnb-model", "version": 2} {}', "\ufeff{}", "\0",
    b"\xff\xfe{\0}\0", b'{"format": "\xff"}', "[" * 100_000, '{"a":' * 100_000,
    "[" * 50_000 + "]" * 50_000, '{"a":' * 50_000 + "1" + "}" * 50_000,
], ids=lambda document: repr(document)[:24])
def test_what_is_not_the_document_is_refused(document, files, assert_refused):
    assert_refused(with_document(files["bernoulli"], document))


@pytest.mark.parametrize("path", ["settings/vocabulary", "classes/labels", "arrays/terms~ends",
                                  "estimator/parameters/l", "settings/tokenizer/stop_words"])
def test_deep_nesting_in_a_value_is_refused(path, files, assert_refused):
    deep = []
    for _ in range(400):
        deep = [deep]
    assert_refused(with_value(files["bernoulli"], place_of(path), deep))


# Memory and time


def test_many_classes_of_few_terms_are_not_spread_out(files, assert_refused):
    content = with_value(files["multinomial"], ("classes",), {
        "type": "string", "labels": [f"{n:06}" for n in range(200_000)],
        "documents": [1] * 200_000})
    content = members.with_array(content, "totals/counts", np.zeros(200_000, "<i8"))
    assert_refused(content, "", max_bytes=1 << 22)


def test_the_limit_is_what_is_asked_for(files, assert_refused):
    assert_refused(files["multinomial"], r"load it with max_bytes=\d+", max_bytes=1000)


HANGS = """
import sys, textnb
for path in sys.argv[1:]:
    try:
        model = textnb.load(path)
    except textnb.ModelFileError:
        print("refused", flush=True)
    else:
        print(*model.predict(["a" * 30000 + "!" * 30000]), flush=True)
"""


def test_no_pattern_takes_for_ever(files, tmp_path):
    patterns = {"(?:a+)+b": "ham", "(?:(?:a|a)+)+$": "ham", "(?:" * 20_000: "refused",
                r"\p{L}{1000}{1000}": "refused", "(?:a|b?){1000000}": "refused",
                "[" * 200_000: "refused"}
    paths = [tmp_path / f"{number}.textnb" for number in range(len(patterns))]
    for path, pattern in zip(paths, patterns, strict=True):
        path.write_bytes(with_value(
            files["bernoulli"], ("settings", "tokenizer", "pattern"), pattern))
    # A hang in a regular expression holds the interpreter: only another process can be ended.
    done = subprocess.Popen([sys.executable, "-c", HANGS, *map(str, paths)], text=True,
                            stdout=subprocess.PIPE)
    try:
        lines, _ = done.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        done.kill()
        lines, _ = done.communicate()
    assert lines.split() == list(patterns.values())
