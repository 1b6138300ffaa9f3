"""A verdict from the terms of one message alone: that of `MailFilter`, or a refusal by name."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.quick import judge
from tests.storage.members import arrays_of, built, members_of, signed, with_array, with_value
from tests.storage.test_version2 import mutated
from tests.tiers import examples
from textnb import (
    BernoulliNB,
    Calibration,
    ComplementNB,
    Decision,
    MailFilter,
    ModelFileError,
    MultinomialNB,
    NBLinear,
    NBLogisticRegression,
    ParameterError,
    SourceError,
    TableClassifier,
    TextClassifier,
    TextnbError,
    Tokenizer,
    load,
)
from textnb.cli.quick import options_of
from textnb.files.require import Unsupported
from textnb.filter.quick import QuickFilter
from textnb.filter.verdict import Verdict
from textnb.scoring.texts import score_batch
from textnb.storage.add_document import ModelToExtend
from textnb.storage.terms_reader import TermsReader

MUTATIONS = examples(210)
SAMPLES = Path(__file__).parents[2] / "pipelines" / "samples" / "mail"
ROWS = pl.DataFrame({
    "subject": ["cheap pills", "lunch", "you won", "minutes", None, "re: lunch"] * 4,
    "body": ["buy cheap pills now", "see you at noon", "a prize, a prize", "of the meeting हिन्दी",
             "pills pills pills", "noon it is"] * 4,
    "label": ["spam", "ham", "spam", "ham", "spam", "ham"] * 4,
})
MESSAGES = [b"Subject: cheap lunch\n\nsee the pills at noon", b"Subject: x\n\nnothing known here",
            b"", b"Subject: you won\n\nyou won a prize a prize a prize", b"\xff\xfe\0junk",
            b"To: a\n\npills", "Subject: हिन्दी\n\nMEETING É".encode(),
            b"Content-Type: text/html\n\n<p>cheap <b>pi</b>lls</p><a href=x>noon</a>"]


def both(
    path: Path, message: bytes, **settings: Any
) -> tuple[Verdict | str, Verdict]:
    """The quick verdict, or why there is none; and the other one."""
    whole = MailFilter.load(path, **settings).judge(message)
    try:
        return judge(str(path), message, **settings), whole
    except Unsupported as error:
        return str(error), whole


def check_same(quick: Verdict | str, whole: Verdict) -> None:
    assert isinstance(quick, Verdict), quick
    assert quick.log_odds == pytest.approx(whole.log_odds, rel=1e-10, abs=1e-10)
    assert (quick.status, quick.calibrated, quick.reason, quick.errors, quick.measure) == (
        whole.status, whole.calibrated, whole.reason, whole.errors, whole.measure)


def check_same_terms(path: Path, message: bytes) -> None:
    """The terms that decide are the same, and add up to the log-odds where there are two classes.
    """
    whole = MailFilter.load(path)
    terms = whole.deciding_terms(message, 1000)
    with QuickFilter(str(path)) as quick:
        found = quick.deciding_terms(message, 1000)
        least = quick.deciding_terms(message, 1)
    assert dict(found) == pytest.approx(dict(terms), rel=1e-9, abs=1e-12)
    assert [abs(points) for _, points in found] == sorted(
        (abs(points) for _, points in found), reverse=True)
    assert least == found[:1]
    if len(whole.judging.learned) == 2 and terms:
        prior = whole.form.intercept
        divisor = 1.0 if whole.calibration is None else whole.calibration.temperatures(
            np.array([whole._scores(whole._row(message)[0])[1]]))[0]
        ham, spam = (list(whole.judging.learned).index(label) for label in ("ham", "spam"))
        assert sum(points for _, points in terms) + (prior[spam] - prior[ham]) / divisor == (
            pytest.approx(whole.judge(message).log_odds, rel=1e-9, abs=1e-9))


def scores_of(path: Path, terms: dict[str, int]) -> Any:
    """Scores from the reader's weights, added in the order of the terms."""
    with TermsReader(path) as reader:
        total = np.zeros(len(reader.labels))
        for term, weights in reader.weights(terms).items():
            count = float(terms[term])
            if reader.above is not None:
                count = float(count > reader.above)
            total += count * np.array(weights)
        return total + np.array(reader.intercept)


def check_refused(path: Path) -> None:
    """No reader takes a file, and none writes it again."""
    for read in (load, MailFilter.load):
        with pytest.raises(ModelFileError, match=r"m\.textnb"):
            read(path)
    with pytest.raises((Unsupported, ModelFileError)):
        judge(str(path), MESSAGES[0])
    before = path.read_bytes()
    with pytest.raises((Unsupported, ModelFileError)):
        ModelToExtend(path).add({"body": "pills"}, "spam", path)
    assert path.read_bytes() == before


ESTIMATORS = [
    MultinomialNB(), MultinomialNB(l=0.01, fit_prior=False), MultinomialNB(class_prior=[0.9, 0.1]),
    MultinomialNB(l="auto"), BernoulliNB(), BernoulliNB(l=0.3, binarize=1.0), ComplementNB(),
    ComplementNB(l=0.2, norm=True), NBLogisticRegression(), NBLogisticRegression(binarize=False),
    NBLogisticRegression(loss="hinge")]
# Their maps divide by the length of a text, so that scores are no sums of counts times weights.
LINEAR = [
    NBLinear(tf="presence", idf=False, power=1.0, C=10.0), NBLinear(idf=False),
    NBLinear(tf="count", idf=False, unit_length=False), NBLinear(loss="log", idf=False, held_out=0)]
SETTINGS: list[dict[str, Any]] = [
    {}, {"min_df": 5}, {"max_features": 6}, {"binary": True}, {"memory_limit": 1 << 30},
    {"tokenizer": Tokenizer(ngram_range=(1, 2), field_prefix=["subject"])},
    {"tokenizer": Tokenizer.sklearn(stop_words=["the"], strip_accents="unicode")},
    {"tokenizer": Tokenizer(analyzer="char_wb", ngram_range=(2, 4), normalize="NFKC")}]


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *LINEAR], ids=repr)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_verdict_is_the_filters(
    estimator: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    if "memory_limit" in settings and (
            isinstance(estimator, (NBLogisticRegression, NBLinear)) or estimator.l == "auto"):
        pytest.skip("it needs all documents")
    path = tmp_path / "m.textnb"
    model = TextClassifier(estimator, text=["subject", "body"], **settings).fit(ROWS)
    model.save(path)
    for message in MESSAGES:
        quick, whole = both(path, message)
        if quick == "log-odds at a threshold":
            assert abs(whole.log_odds) < 1e-9
            continue
        check_same(quick, whole)
        check_same_terms(path, message)


def test_inverse_document_frequencies_are_left_to_the_filter(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    TextClassifier(NBLinear(), text=["subject", "body"]).fit(ROWS).save(path)
    quick, whole = both(path, MESSAGES[3])
    assert (quick, whole.status) == ("inverse document frequencies", "spam")


@pytest.mark.filterwarnings("ignore::textnb.errors.UnknownTermsWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_scores_are_those_of_predict(estimator: Any, tmp_path: Path) -> None:
    rng = random.Random(3)
    words = [f"w{n}" for n in range(3000)]
    texts = [" ".join(rng.choices(words, k=rng.randrange(1, 60))) for _ in range(200)]
    if estimator.get_params().get("class_prior") is None:
        labels = [rng.choice(["x", "y", "z"]) for _ in texts]
    else:
        labels = [rng.choice(["x", "y"]) for _ in texts]
    model = TextClassifier(estimator, min_df=2).fit(texts, labels)
    model.save(tmp_path / "m.textnb")
    for text in [*texts[:40], "unheard of", "w7 " * 500]:
        expected = score_batch(model.fitted_, pl.DataFrame({"text": [text]}))[0][0]
        found = scores_of(tmp_path / "m.textnb", {
            word: text.split().count(word) for word in set(text.split())})
        assert (np.abs(found - expected) <= 1e-12 * np.abs(expected) + 1e-15).all()


def test_calibration_decision_and_cutoffs(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    model = TextClassifier(text="body").fit(ROWS)
    for calibration in (None, Calibration(2.0), Calibration(3.0, 0.4)):
        for decision in (None, Decision({"ham": 0.3, "spam": 2.0}, "spam"),
                         Decision({"ham": float("-inf"), "spam": float("inf")}, "spam")):
            model.set_calibration(calibration).set_decision(decision).save(path)
            for message in MESSAGES:
                for settings in ({}, {"cutoffs": (-1.0, 1.0)}, {"least_learned": 100},
                                 {"spam": "ham"}, {"cutoffs": (0.0, 50.0)}):
                    quick, whole = both(path, message, **settings)
                    if "ham" in settings.values() and isinstance(quick, str):
                        continue
                    check_same(quick, whole)
            for message in MESSAGES:
                check_same_terms(path, message)


def test_several_kinds_of_ham(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    rows = ROWS.with_columns(label=pl.when(pl.col("body").str.contains("noon"))
                             .then(pl.lit("lunch")).otherwise("label"))
    model = TextClassifier(text="body").fit(rows)
    for decision in (None, Decision({"ham": 0.0, "spam": 0.5, "lunch": -1.0}, "spam")):
        model.set_decision(decision).save(path)
        for message in MESSAGES:
            check_same(*both(path, message, least_learned=1))
            check_same_terms(path, message)


@pytest.mark.parametrize("remembered", [0, 1, 3, 7, 1_000])
def test_weights_that_are_remembered_change_no_verdict(remembered: int, tmp_path: Path) -> None:
    path = saved(tmp_path / "m.textnb", NBLogisticRegression())
    with QuickFilter(str(path), least_learned=0, remembered=remembered) as mail_filter:
        for message in [*MESSAGES, *reversed(MESSAGES), *MESSAGES]:
            assert mail_filter.judge(message) == judge(str(path), message, least_learned=0)
            assert len(mail_filter._remembered) <= remembered


def test_a_term_that_is_not_kept_has_no_weight(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    TextClassifier(min_df=2).fit(["aa bb", "bb cc", "cc dd ee"], ["x", "y", "y"]).save(path)
    with TermsReader(path) as reader:
        assert list(reader.weights(["aa", "bb", "cc", "dd", "zz", "", "a"])) == ["bb", "cc"]


def test_little_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.textnb"
    words = [f"{n * 7919 % 1000003:06}" for n in range(300_000)]
    TextClassifier(text="body").fit(pl.DataFrame({
        "body": [" ".join(words[:150_000]), " ".join(words[150_000:])] * 10,
        "label": ["spam", "ham"] * 10})).save(path)
    read, pread = [], os.pread

    def recorded(descriptor: int, length: int, at: int) -> bytes:
        read.append(length)
        return pread(descriptor, length, at)

    monkeypatch.setattr(os, "pread", recorded)
    verdict = judge(str(path), b"Subject: x\n\n" + " ".join(words[:3]).encode())
    assert verdict.status == "spam"
    assert sum(read) < 1 << 20 < path.stat().st_size // 4


# What is refused, by name


def saved(path: Path, estimator: Any = None, **settings: Any) -> Path:
    TextClassifier(estimator, text="body", **settings).fit(ROWS).save(path)
    return path


@pytest.mark.parametrize(("estimator", "settings", "name"), [
    (MultinomialNB(l=0.0), {}, "sums that are not stored"),
    (BernoulliNB(l=0.0), {}, "sums that are not stored"),
    (MultinomialNB(class_weight="balanced"), {}, "class_weight"),
    (MultinomialNB(), {"vocabulary": ["pills", "noon"]}, "vocabulary"),
    (MultinomialNB(), {"tokenizer": Tokenizer(pattern="[a-z]+ ?[a-z]+")}, "the tokenizer: pattern"),
    (MultinomialNB(class_prior=[1.0, 0.0]), {}, "a prior of 0")], ids=str)
def test_models_that_are_not_known_are_refused_by_name(
    estimator: Any, settings: dict[str, Any], name: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "m.textnb", estimator, **settings)
    with pytest.raises(Unsupported, match=name):
        judge(str(path), MESSAGES[0])
    assert MailFilter.load(path).judge(MESSAGES[0]).status


@pytest.mark.parametrize(("where", "value", "name"), [
    (("estimator", "parameters", "sublinear"), True, r"MultinomialNB 'sublinear'.*Upgrade"),
    (("settings", "idf"), True, r"the setting 'idf'.*Upgrade"),
    (("features",), {}, "'features' among the model.json"),
    (("classes", "rows"), 7, "documents per class are not counts"),
    (("estimator", "name"), "TfidfComplementNB", "estimator 'TfidfComplementNB'"),
    (("layers",), 2, "other layers"),
    (("settings", "tokenizer", "newer"), ["urls"], "tokenizer's setting 'newer'.*Upgrade"),
    (("settings", "tokenizer", "lowercase"), "de", "the tokenizer: lowercase must be .*'de'"),
    (("settings", "tokenizer", "ngram_range"), [1, 10**9], "ngram_range")], ids=str)
def test_what_nobody_told_it_of_is_refused_by_name(
    where: tuple[str, ...], value: Any, name: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "m.textnb")
    path.write_bytes(with_value(path.read_bytes(), where, value))
    with pytest.raises((Unsupported, ModelFileError), match=name):
        judge(str(path), MESSAGES[0])


COUNTED, LEARNED = MultinomialNB(), NBLogisticRegression()


@pytest.mark.parametrize(("estimator", "where", "value"), [
    (COUNTED, ("settings", "binary"), [False]), (COUNTED, ("settings", "binary"), -0.0),
    (COUNTED, ("settings", "label"), ["label"]), (COUNTED, ("settings", "max_df"), 1001.0),
    (COUNTED, ("settings", "min_df"), ""), (COUNTED, ("settings", "text"), 1.5),
    (COUNTED, ("settings", "min_df"), 2), (COUNTED, ("layers",), True),
    (COUNTED, ("estimator", "parameters", "fit_prior"), []),
    (COUNTED, ("pruned",), {"terms": 1}), (COUNTED, ("calibration",), ...),
    (COUNTED, ("decision", "positive"), "none of them"), (COUNTED, ("calibration",), {}),
    (COUNTED, ("calibration", "documents"), -1), (COUNTED, ("settings", "max_features"), 1),
    (LINEAR[0], ("calibration", "temperature"), "x"),
    (LINEAR[0], ("calibration", "documents"), None),
    (LINEAR[0], ("estimator", "parameters", "l"), [1.0]),
    (LINEAR[0], ("decision", "thresholds"), []),
    (LEARNED, ("estimator", "parameters", "C"), -1),
    (LEARNED, ("estimator", "parameters", "l"), 0), (LEARNED, ("settings", "text"), 1.5),
    (LEARNED, ("estimator", "parameters", "max_iter"), 10**20),
    (NBLinear(), ("estimator", "parameters", "tf"), {"a": 1}),
    (NBLinear(), ("estimator", "parameters", "power"), -1e308)], ids=str)
def test_what_load_refuses_no_filter_takes_and_no_update(
    estimator: Any, where: tuple[str, ...], value: Any, tmp_path: Path
) -> None:
    path = tmp_path / "m.textnb"
    odds = {"ham": 0.0, "spam": 1.0}
    TextClassifier(estimator, text="body").fit(ROWS).set_calibration(Calibration(2.0)).set_decision(
        Decision(odds, "spam", {"calibrated": True})).save(path)
    if not isinstance(estimator, NBLinear):
        assert judge(str(path), MESSAGES[0]) == MailFilter.load(path).judge(MESSAGES[0])
    path.write_bytes(with_value(path.read_bytes(), where, value))
    check_refused(path)


def test_counts_of_a_term_that_are_not_sorted_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    rows = ROWS.with_columns(body=pl.col("body") + pl.lit(" hello"))
    TextClassifier(text="body").fit(rows).save(path)
    content = path.read_bytes()
    arrays = arrays_of(content)
    ends, classes = arrays["counts/ends"][0], arrays["counts/classes"].copy()
    values = arrays["counts/values"].copy()
    term = int(np.flatnonzero(np.diff(ends, prepend=0) == 2)[0])
    pair = slice(ends[term] - 2, ends[term])
    classes[pair], values[pair] = classes[pair][::-1].copy(), values[pair][::-1].copy()
    path.write_bytes(with_array(with_array(content, "counts/classes", classes),
                                "counts/values", values))
    text, terms_ends = arrays["terms/bytes"].tobytes(), arrays["terms/ends"]
    word = text[terms_ends[term - 1] if term else 0:terms_ends[term]]
    with pytest.raises(ModelFileError, match="not sorted"):
        MailFilter.load(path)
    with pytest.raises(ModelFileError, match="not sorted"):
        judge(str(path), b"Subject: a\n\n" + word)


@pytest.mark.parametrize("cutoffs", [None, (0.0, 1.0)])
def test_a_decision_for_ham_does_not_make_ham_the_spam(
    cutoffs: tuple[float, float] | None, tmp_path: Path
) -> None:
    path = tmp_path / "m.textnb"
    model = TextClassifier(text="body").fit(ROWS)
    spam = b"Subject: a\n\npills pills"
    for label in ("ham", "spam"):
        model.set_decision(Decision({"ham": 0.0, "spam": 0.0}, label)).save(path)
        if label == "ham":
            with pytest.raises(ParameterError, match=r"for the class 'ham'.*spam='spam'"):
                MailFilter.load(path, cutoffs=cutoffs)
            with pytest.raises(ParameterError, match=r"for the class 'ham'.*spam='spam'"):
                judge(str(path), spam, cutoffs=cutoffs)
        else:
            assert MailFilter.load(path, cutoffs=cutoffs).judge(spam).status == "spam"
        check_same(*both(path, spam, spam="spam", cutoffs=cutoffs))
        assert judge(str(path), spam, spam="spam", cutoffs=cutoffs).status == "spam"
    # Without a class "spam", the decision's class is the one that is filtered out.
    others = ROWS.with_columns(pl.col("label").replace({"spam": "junk"}))
    TextClassifier(text="body").fit(others).set_decision(
        Decision({"ham": 0.0, "junk": 0.0}, "junk")).save(path)
    check_same(*both(path, spam, cutoffs=cutoffs))


def test_what_is_stale_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    decision = Decision({"ham": 0.0, "spam": 0.0}, "spam")
    model = TextClassifier(text="body").fit(ROWS).set_decision(decision)

    def stale() -> dict[str, str]:
        model.save(path)
        whole = MailFilter.load(path)
        with QuickFilter(str(path)) as quick:
            assert quick.judging == whole.judging
        return {**whole.judging.stale}

    assert stale() == {}
    model.set_calibration(Calibration(2.0))
    assert stale().keys() == {"decision"}
    model.partial_fit(ROWS)
    assert stale().keys() == {"calibration", "decision"}
    model.set_decision(None)
    assert stale().keys() == {"calibration"}


def test_messages_that_are_not_known_are_refused_by_name(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.textnb")
    unassigned = "Subject: x\nContent-Type: text/plain; charset=utf-8\n\npills \U0001ccf0".encode()
    for message, name in ((unassigned, "a character that Python may read differently"),
                          (b"\n\n" + b"pills " * 200_000, "a long message")):
        with pytest.raises(Unsupported, match=name):
            judge(str(path), message)
    odds = judge(str(path), MESSAGES[0]).log_odds
    for cutoffs in ((odds, odds), (odds - 1, odds * (1 + 1e-13)), (odds * (1 - 1e-13), odds + 1)):
        with pytest.raises(Unsupported, match="log-odds at a threshold"):
            judge(str(path), MESSAGES[0], cutoffs=cutoffs)
    with pytest.raises(ParameterError, match="no class 'junk'; its classes are 'ham', 'spam'"):
        judge(str(path), MESSAGES[0], spam="junk")


# Files that are damaged or hostile


def test_what_is_no_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"PK\3\4broken textnb-model 2 sha256:" + b"0" * 64)
    for name, kind in (("broken", ModelFileError), ("none", SourceError), (".", SourceError)):
        with pytest.raises(kind):
            judge(str(tmp_path / name), MESSAGES[0])
    TableClassifier().fit(pl.DataFrame({"x": [0.0, 1.0], "label": ["spam", "ham"]})).save(
        tmp_path / "table")
    with pytest.raises(Unsupported, match="feature_names"):
        judge(str(tmp_path / "table"), MESSAGES[0])


def test_every_block_that_is_read_is_checked(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.textnb")
    content = path.read_bytes()
    for at in range(0, len(content), 37):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1:])
        with pytest.raises((ModelFileError, SourceError, Unsupported)):
            judge(str(path), MESSAGES[0])


@pytest.mark.parametrize(("name", "array"), [
    ("terms/ends", np.array([5, 4, 9], "<i4")), ("index/ends", np.array([3, 9], "<i4")),
    ("index/bytes", np.array([0, 0], "|u1")), ("counts/ends", np.zeros((1, 12), "<i4")),
    ("counts/classes", np.full(13, 9, "|u1")), ("counts/values", np.full(13, -1, "<i4")),
    ("counts/values", np.full(13, 0, "<i4")), ("totals/counts", np.array([1], "<i8")),
    ("totals/counts", np.array([-5, -100], "<i8")), ("totals/counts", None), ("terms/bytes", None),
    ("terms/kept", np.full(9, 255, "|u1"))], ids=str)
def test_arrays_that_lie_are_refused(name: str, array: Any, tmp_path: Path) -> None:
    path = saved(tmp_path / "m.textnb")
    path.write_bytes(with_array(path.read_bytes(), name, array))
    with pytest.raises((ModelFileError, Unsupported)):
        judge(str(path), MESSAGES[0])


@pytest.mark.parametrize(("estimator", "name", "change"), [
    (MultinomialNB(), "totals/counts", np.zeros_like),
    (ComplementNB(norm=True), "totals/norms", np.negative),
    (BernoulliNB(), "totals/absent", np.negative)], ids=["multinomial", "complement", "bernoulli"])
def test_sums_that_can_not_be_are_refused(
    estimator: Any, name: str, change: Any, tmp_path: Path
) -> None:
    path = tmp_path / "m.textnb"
    TextClassifier(estimator, text="body").fit(ROWS).save(path)
    content = path.read_bytes()
    path.write_bytes(with_array(content, name, change(arrays_of(content)[name])))
    check_refused(path)


@pytest.mark.parametrize("value", [1, 0.01])
def test_limits_that_exclude_each_other_are_refused(value: float, tmp_path: Path) -> None:
    path = saved(tmp_path / "m.textnb", min_df=5)
    path.write_bytes(with_value(path.read_bytes(), ("settings", "max_df"), value))
    check_refused(path)


FILES = {
    "multinomial": lambda: TextClassifier(text="body", min_df=2).fit(ROWS).set_decision(
        Decision({"ham": 0.3, "spam": 2.0}, "spam")).set_calibration(None),
    "bernoulli": lambda: TextClassifier(BernoulliNB(), text=["subject", "body"]).fit(ROWS),
    "complement": lambda: TextClassifier(ComplementNB(norm=True), text="body").fit(ROWS),
    "linear": lambda: TextClassifier(NBLogisticRegression(), text="body").fit(ROWS)}


@pytest.mark.parametrize("name", FILES)
def test_a_mutated_file_gives_an_answer_or_a_refusal(name: str, tmp_path: Path) -> None:
    """And where the whole file is sound, its verdict."""
    rng, path = random.Random(name), tmp_path / "m.textnb"
    FILES[name]().save(path)
    content = path.read_bytes()
    members = members_of(content)
    answered = 0
    for number in range(max(2, MUTATIONS // len(FILES))):
        if number % 3:
            member = rng.choice(list(members))
            path.write_bytes(built({**members, member: mutated(members[member], rng)}))
        else:
            path.write_bytes(signed(mutated(content, rng)))
        quick = answer_or_refusal(lambda: judge(str(path), MESSAGES[0]))
        whole = answer_or_refusal(lambda: MailFilter.load(path).judge(MESSAGES[0]))
        if isinstance(quick, Verdict):
            answered += 1
            if isinstance(whole, Verdict):
                check_same(quick, whole)
    assert answered < max(2, MUTATIONS // len(FILES))


def answer_or_refusal(read: Any) -> Any:
    try:
        return read()
    except (TextnbError, Unsupported) as error:
        return str(error)


# As a command


def verdicts(path: Path, message: bytes, *arguments: str, quick: bool) -> tuple[int, bytes, bytes]:
    code = ("import sys\nfrom textnb.cli import entry\nverdict = entry._verdict\n"
            "def judge(arguments, stream):\n"
            "    code = verdict(arguments, stream)\n"
            "    heavy = {'numpy', 'polars', 'click', 'sklearn', 'pydantic'} & set(sys.modules)\n"
            "    assert not heavy, heavy\n"
            "    return code\n"
            "entry._verdict = judge\n" if quick else
            "import sys, textnb.cli.quick as quick\nfrom textnb.cli import entry\n"
            "quick.answer = lambda arguments, stream: None\n")
    ran = subprocess.run(
        [sys.executable, "-c", code + "entry.main()", "filter", str(path), *arguments],
        input=message, capture_output=True, timeout=60)
    return ran.returncode, ran.stdout, ran.stderr


def sample_messages() -> Iterator[bytes]:
    for folder in ("spam", "ham"):
        content = (SAMPLES / folder / "inbox.mbox").read_bytes()
        yield from (b"From " + part for part in content.split(b"\nFrom ")[1:12])


@pytest.mark.sweep(4)
@pytest.mark.parametrize("message", [MESSAGES[0], MESSAGES[1], MESSAGES[7]])
@pytest.mark.parametrize("arguments", [
    [], ["-p"], ["-e", "--format", "json"], ["-ep", "--timeout", "30"],
    ["--spam-cutoff", "0.99", "--ham-cutoff=0.2", "--min-learned", "1"]], ids=str)
def test_the_command_answers_as_the_long_way_does(
    arguments: list[str], message: bytes, tmp_path: Path
) -> None:
    path = saved(tmp_path / "m.textnb")
    quick = verdicts(path, message, *arguments, quick=True)
    whole = verdicts(path, message, *arguments, quick=False)
    if "json" in arguments:
        first, second = json.loads(quick[1]), json.loads(whole[1])
        for name in ("log_odds", "probability"):
            assert first.pop(name) == pytest.approx(second.pop(name), rel=1e-9)
        assert first == second
        assert (quick[0], quick[2]) == (whole[0], whole[2])
    else:
        assert quick == whole


def test_samples_of_mail(tmp_path: Path) -> None:
    path = tmp_path / "m.textnb"
    from textnb import scan_mail

    rows = scan_mail(SAMPLES / "*" / "inbox.mbox").with_columns(
        label=pl.col("path").str.extract(r"(spam|ham)/inbox"))
    TextClassifier(text=["subject", "body"]).fit(rows.collect()).save(path)
    for message in sample_messages():
        check_same(*both(path, message))


@pytest.mark.parametrize(("arguments", "known"), [
    (["filter", "m"], True), (["filter", "m", "-p"], True), (["filter", "-ep", "m"], True),
    (["filter", "m", "--passthrough", "--exit-zero"], True),
    (["filter", "m", "--spam-cutoff=.5"], True), (["filter", "m", "--min-learned", "0"], True),
    (["filter"], False), (["filter", "m", "n"], False), (["-p", "filter", "m"], False),
    (["filter", "m", "--maildir", "M"], False), (["filter", "m", "--dry-run"], False),
    (["filter", "m", "--help"], False), (["filter", "m", "--timeout"], False),
    (["filter", "m", "--timeout", "nan"], False), (["filter", "m", "--timeout", "-1"], False),
    (["filter", "m", "--min-learned=x"], False), (["filter", "m", "--format", "xml"], False),
    (["filter", "m", "--", "x"], False), (["filter", "m", "--spam", "x"], False),
    (["filter", "m", "-pq"], False), (["filter", "m", "--passthrough=1"], False),
    (["filter", "m", "--spam-class"], False), (["filter", "m", ""], False), (["mail"], False),
    ([], False)], ids=str)
def test_options_that_are_understood(arguments: list[str], known: bool) -> None:
    assert (options_of(arguments) is not None) == known
