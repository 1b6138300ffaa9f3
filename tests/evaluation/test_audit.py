"""What an audit finds of what was planted, and that it finds nothing of it in clean rows."""

import json

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import DataError, MultinomialNB, ParameterError, audit
from textnb.evaluation import label_errors
from textnb.evaluation.audit import KINDS
from textnb.workflow.options import FINDINGS
from textnb.workflow.samples import news

NEWS = news(600).select("text", "label")
NAMES = sorted(NEWS["label"].unique())


def flipped(share=0.1, seed=0):
    """The rows with the labels of a share of them moved on to the next class; and which."""
    chosen = np.random.default_rng(seed).random(NEWS.height) < share
    following = dict(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
    return NEWS.with_columns(
        label=pl.when(pl.Series(chosen)).then(pl.col("label").replace(following))
        .otherwise("label")), np.flatnonzero(chosen)


def of_kind(found, kind):
    return found.findings.filter(pl.col("finding") == kind)


@pytest.mark.parametrize("model", [None, "multinomial", textnb.ComplementNB(norm=True)], ids=repr)
def test_wrong_labels_are_ranked_first_with_the_right_ones(model):
    rows, wrong = flipped()
    found = audit(rows, model=model, near=1.0)
    suspects = of_kind(found, "label")
    hits = suspects.filter(pl.col("row").is_in(wrong.tolist()))
    assert hits.height >= max(0.9 * suspects.height, 0.6 * len(wrong))
    right = NEWS["label"].gather(hits["row"]) == hits["suggested"]
    assert right.mean() == 1.0
    assert suspects["evidence"].str.contains("because of '.*nearest rows: \\d+ \\(").all()
    # The margins rank all rows, as the findings are ranked.
    order = found.margins.arg_sort(descending=True)
    assert found.margins.gather(suspects["row"]).is_sorted(descending=True)
    assert len({*order.head(len(wrong))} & {*wrong.tolist()}) >= 0.9 * len(wrong)


def test_confident_learning_by_hand():
    chances = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6]])
    actual = np.array([0, 0, 1, 1, 0, 1])
    # Rows 0 and 4 are as sure of the first class as the upper quartile of its own rows (0.7), and
    # so is row 3, whose label is the second; rows 2 and 5 are of the second (0.6). Half a row, the
    # mean of both cells beside the diagonal, is added to these, and one row to those on it.
    shares = label_errors.label_shares(chances, actual)
    assert shares.tolist() == [[3 / 4.5, 0.5 / 3.5], [1.5 / 4.5, 3 / 3.5]]
    suspects = label_errors.suspect_labels(chances, actual)
    assert (suspects.rows.tolist(), suspects.labels.tolist()) == ([3], [0])
    other, own = 0.8 * 1.5 / 4.5, 0.2 * 3 / 3.5
    assert suspects.confidence.tolist() == pytest.approx([other / (other + own)])
    assert suspects.margins[3] == pytest.approx((other - own) / (other + own))
    assert (np.delete(suspects.margins, 3) < 0).all()


def test_of_lists_a_missing_and_a_superfluous_label():
    # Of two articles each, or of one.
    pairs = zip(news(800).iter_rows(named=True), news(800, seed=1).iter_rows(named=True),
                strict=True)
    rows = [(f"{one['text']} {other['text']}", {one["label"], other["label"]}) if number % 2 else (
        one["text"], {one["label"]}) for number, (one, other) in enumerate(pairs)]
    lists, lacking, wrong = [sorted(labels) for _, labels in rows], {}, {}
    for row, labels in enumerate(lists):
        if len(labels) == 2 and row % 7 == 0:
            lacking[row], lists[row] = labels[0], labels[1:]
        elif len(labels) == 1 and row % 10 == 0:
            wrong[row] = next(name for name in NAMES if name not in labels)
            lists[row] = [*labels, wrong[row]]
    found = audit(pl.DataFrame({"text": [text for text, _ in rows], "label": lists}), near=1.0)
    for kind, planted in (("missing label", lacking), ("superfluous label", wrong)):
        suspects = of_kind(found, kind)
        hits = [one for one in suspects.to_dicts() if one["row"] in planted and (
            one["evidence"].startswith(f"{planted[one['row']]!r}; because of "))]
        assert len(hits) >= max(0.35 * len(planted), 0.7 * suspects.height)
        assert np.mean([{*one["suggested"]} == rows[one["row"]][1] for one in hits]) > 0.8
    assert of_kind(found, "label").height == 0
    assert found.margins.null_count() == 0


PLANTED = {
    "header": (lambda label: f"X-Topic: {label}\n\n", "", None, "the line 'x-topic: "),
    "trailing": ("", lambda label: f" ({label.upper()})", None, "the last words '("),
    "id": ("", "", "id", "the column 'id' tells 'Business', "),
    "name": ("", "", "name", "the column 'name' tells 'Business', ")}


@pytest.mark.parametrize("place", PLANTED)
def test_a_leak_is_found_for_each_class_that_it_tells(place):
    before, after, column, words = PLANTED[place]
    rows = NEWS.with_columns(pl.struct("text", "label").map_elements(lambda row: (
        (before(row["label"]) if before else "") + row["text"]
        + (after(row["label"]) if after else "")), pl.String).alias("text"))
    assert of_kind(audit(NEWS, near=1.0), "leak").height == 0
    if column == "id":
        # Numbers that were given to one class after another; the rows are in another order.
        rows = rows.sort("label", maintain_order=True).with_row_index("id").sample(
            fraction=1.0, shuffle=True, seed=1)
    if column == "name":
        rows = rows.with_columns(name=pl.col("label").str.slice(0, 2))
    leaks = of_kind(audit(rows, near=1.0), "leak")
    assert leaks.height == (1 if column else len(NAMES))
    assert all(evidence.startswith(words) for evidence in leaks["evidence"])
    assert leaks["row"].null_count() == leaks.height


def test_columns_and_words_that_do_not_tell_the_class_are_no_leaks():
    # Sorted by class, all rows have one value, and their number.
    rows = NEWS.sort("label", maintain_order=True).with_columns(
        pl.lit("A header: the same").alias("same"), pl.concat_str(pl.lit("From: us\n"), "text")
        .alias("text"), odd=pl.int_range(pl.len()) % 7, path=pl.col("label"))
    assert of_kind(audit(rows, near=1.0), "leak").height == 0


def test_a_column_of_objects_is_no_leak():
    rows = NEWS.with_columns(pl.Series("odd", [{n} for n in range(NEWS.height)], dtype=pl.Object))
    found, without = audit(rows, near=1.0), audit(NEWS, near=1.0)
    assert found.findings.equals(without.findings)


def test_texts_that_repeat_or_contradict_also_across_a_split():
    long = "one two three four five six seven eight nine ten eleven twelve"
    rows = pl.concat([NEWS, pl.DataFrame({
        "text": [NEWS["text"][3], long, f"{long} thirteen", "...", None, "слово и дело"],
        "label": [next(name for name in NAMES if name != NEWS["label"][3]), *["World"] * 5]})])
    test = pl.DataFrame({"text": [NEWS["text"][7].upper(), "new"], "label": ["Sports", "Sports"]})
    found = audit(rows, test=test)
    assert of_kind(found, "contradiction").select("row", "evidence").rows() == [
        (600, f"the words of row 3 ({NEWS['label'][3]})")]
    assert of_kind(found, "duplicate").select("row", "evidence").rows()[-1:] == [
        (602, "91% of the runs of words of row 601 (World)")]
    assert of_kind(found, "in test").select("row", "evidence").rows() == [
        (7, "the words of row 0 of the test rows (Sports)")]
    assert of_kind(found, "no text")["row"].to_list() == [603, 604]
    assert of_kind(found, "script").select("row", "confidence", "evidence").rows() == [
        (605, 1.0, "100% of the letters are Cyrillic")]
    assert found.margins[603:605].null_count() == 2


def test_classes_that_are_one_and_classes_with_too_few_rows():
    half = pl.when((pl.col("label") == "World") & (pl.int_range(pl.len()) % 2 == 0)).then(
        pl.lit("Politics")).otherwise("label")
    rare = pl.DataFrame({"text": ["a rare word"] * 3, "label": ["Rare"] * 3})
    found = audit(pl.concat([NEWS.with_columns(label=half), rare]), near=1.0)
    confusable = of_kind(found, "confusable classes")
    area = float(confusable["evidence"].str.strip_prefix(
        "'Politics' and 'World': the area under the ROC of one against the other is ").item())
    assert confusable["confidence"].item() == pytest.approx(2 * (1 - area), abs=0.011)
    assert of_kind(found, "few rows")["evidence"].to_list() == ["'Rare' has 3 rows"]
    # Labels of the class are not judged.
    assert found.margins[600:].null_count() == 3


def test_inseparable_classes_need_confusions():
    chances = np.array([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1]] * 20 + [[0.0, 0.0, 1.0]] * 10)
    actual = np.repeat([0, 1, 2], [20, 20, 10])
    found = label_errors.inseparable_classes(chances, actual)
    assert [(a, b, area) for a, b, area in found] == [(0, 1, 0.5)]


def test_the_nearest_rows_share_rare_terms():
    import scipy.sparse as sp

    counts = sp.csr_array(np.array([[1, 0, 2], [1, 0, 1], [0, 3, 0], [0, 1, 1], [0, 0, 0]]))
    near = [rows.tolist() for rows in label_errors.nearest_rows(counts, np.array([0, 2, 4]))]
    assert near == [[1, 3], [3], []]


def test_the_same_findings_again_as_values_of_json():
    rows, _ = flipped()
    found = audit(rows)
    assert found.to_dict() == audit(rows.lazy()).to_dict()
    assert json.loads(json.dumps(found.to_dict()))["counts"] == found.counts
    assert KINDS == FINDINGS == (*found.counts,)
    assert f"{found.counts['label']} label" in repr(found)


def test_a_finding_that_shall_not_be_is_an_error():
    rows, _ = flipped()
    found = audit(rows)
    found.check(["script", "leak"])
    with pytest.raises(DataError, match=r"the audit finds \d+ 'label', .* the first is: row \d+: "):
        found.check(["leak", "label"])
    with pytest.raises(ParameterError, match="unknown value 'labels'"):
        found.check(["labels"])


def test_tokens_and_small_or_odd_rows():
    tokens = NEWS.with_columns(pl.col("text").str.to_lowercase().str.extract_all(r"\w{2,}"))
    texts, lists = audit(NEWS, near=1.0), audit(tokens, near=1.0)
    assert lists.counts == texts.counts
    np.testing.assert_allclose(lists.margins, texts.margins)
    one = audit(NEWS.filter(pl.col("label") == "World"))
    assert (one.method, one.margins.null_count()) == ("", one.rows)
    few = audit(NEWS.head(40), model=MultinomialNB())
    assert few.method == "leave-one-out (MultinomialNB)"
    assert audit(NEWS.head(40)).method == "5 folds (NBLinear)"
    empty = pl.DataFrame({"text": ["red apple"] * 2, "label": [[], []]},
                         schema_overrides={"label": pl.List(pl.String)})
    assert audit(empty).counts["duplicate"] == 1


@pytest.mark.parametrize("n", [1, 4, 5])
def test_too_few_rows_of_lists_are_not_judged(n):
    rows = pl.DataFrame({"text": ["one two", "three", "four", "five six", "seven"],
                         "label": [["a"], ["b"], ["a"], ["a", "b"], ["b"]]})
    found = audit(rows.head(n))
    assert of_kind(found, "few rows").height == (1 if n == 1 else 2)
    assert bool(found.method) == (n == 5)
