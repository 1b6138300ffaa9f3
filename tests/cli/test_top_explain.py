"""textnb top and textnb explain: what a model has learned, and what decides one text."""

import polars as pl
import pytest

import textnb
from tests.cli.conftest import MAIL, ODD_LABELS, cells, json_of
from textnb import ComplementNB, MultinomialNB, NBLogisticRegression, TextClassifier, Tokenizer


@pytest.fixture
def odd(folder):
    """A model whose labels and terms hold markup and control characters."""
    texts = [f"[red]w{n}[/red] \x1b[1mx{n}" for n in range(len(ODD_LABELS))]
    TextClassifier(tokenizer=Tokenizer(pattern=r"\S+")).fit(texts, list(ODD_LABELS)).save(
        "odd.textnb")
    return folder / "odd.textnb"


def test_top_shows_a_table_per_class(run, trained):
    ran = run("top", trained, "-k", "3").checked()
    assert ran.err.startswith("ranked by z: ")
    assert [line.strip() for line in ran.out.splitlines() if line[:1].isalpha()] == ["ham", "spam"]
    expected = textnb.load(trained).top(3)
    assert [row for row in cells(ran.out) if row != ["term", "count", "weight", "z"]] == [
        [term, str(count), f"{weight:.3f}", f"{z:.3f}"]
        for term, count, weight, z in expected.select("term", "count", "weight", "z").iter_rows()]


def test_top_says_that_weights_rank(run, folder):
    TextClassifier(NBLogisticRegression()).fit(MAIL).save("m.textnb")
    ran = run("top", "m.textnb", "-k", "1").checked()
    assert ran.err.startswith("ranked by weight: ")
    assert cells(ran.out)[0] == ["term", "count", "weight"]


def test_top_is_json(run, trained):
    model = textnb.load(trained)
    assert json_of(run, "top", trained, "-k", "2") == model.top(2).to_dicts()
    for option in ("--class", "-c"):
        assert json_of(run, "top", trained, option, "spam") == model.top(20, "spam").to_dicts()


def test_infinite_numbers_say_what_they_mean(run, folder):
    TextClassifier(MultinomialNB(l=0)).fit(MAIL).save("m.textnb")
    TextClassifier(MultinomialNB(l=1)).fit(MAIL).save("smooth.textnb")
    for call in (("top", "m.textnb"), ("explain", "m.textnb", MAIL["text"][0])):
        ran = run(*call).checked()
        assert "inf" in ran.out
        assert "note: inf and -inf are of terms that a class has never had" in ran.err
        # JSON has no infinite numbers.
        assert json_of(run, *call)
        assert "inf and -inf" not in run(call[0], "smooth.textnb", *call[2:]).checked().err


def test_labels_and_terms_are_shown_inert(run, odd):
    ran = run("top", odd).checked()
    assert set(ODD_LABELS.values()) <= {line.strip() for line in ran.out.splitlines()}
    assert {"[red]w0[/red]", r"\x1b[1mx0"} <= {row[0] for row in cells(ran.out)}
    shown_in_all = ran.out + ran.err
    for n, shown in enumerate(ODD_LABELS.values()):
        ran = run("explain", odd, f"[red]w{n}[/red] \x1b[1mx{n}").checked()
        assert ran.out.splitlines()[-1].startswith(f"{shown}, against ")
        assert {f"[red]w{n}[/red]", rf"\x1b[1mx{n}"} <= {row[1] for row in cells(ran.out)}
        shown_in_all += ran.out + ran.err
    assert all(c.isprintable() or c == "\n" for c in shown_in_all)


@pytest.mark.parametrize("columns", ["40", "90", "300", None])
def test_a_table_is_as_wide_as_columns_says(run, folder, monkeypatch, columns):
    TextClassifier(tokenizer=Tokenizer(pattern=r"\S+")).fit(["x" * 500, "y"], ["a", "b"]).save(
        "wide.textnb")
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    for verb in (["top", "wide.textnb"], ["explain", "wide.textnb", "x" * 500]):
        lines = run(*verb).checked().out.splitlines()
        assert max(map(len, lines)) == int(columns or 200)


def test_explain_shows_what_decides(run, trained):
    ran = run("explain", trained, "free free lunch and zebra").checked()
    rows = cells(ran.out)
    assert rows[:2] == [["part", "term", "count", "contribution"], ["intercept", "-", "-", "0.000"]]
    assert [row[:3] for row in rows[2:]] == [["term", "free", "2"], ["term", "lunch", "1"]]
    form = textnb.load(trained).linear_form()
    w, b = form.binary("spam")
    score = b + 2 * w[form.terms.index("free")] + w[form.terms.index("lunch")]
    assert ran.out.splitlines()[-1] == f"spam, against ham by {score:.3f} (log-odds)"
    assert ran.err == ""


def test_explain_is_json_that_adds_up(run, trained):
    answer = json_of(run, "explain", trained, "free lunch now at two", "-k", "2")
    assert set(answer) == {"predicted", "runner_up", "score", "measure", "terms", "known", "parts"}
    assert (answer["measure"], answer["terms"], answer["known"]) == ("log-odds", 5, 4)
    assert {answer["predicted"], answer["runner_up"]} == {"ham", "spam"}
    assert answer["score"] == pytest.approx(
        sum(part["contribution"] for part in answer["parts"]), abs=1e-12)
    assert [part["part"] for part in answer["parts"]] == [
        "intercept", "term", "term", "other terms"]


@pytest.mark.parametrize("text", ["free lunch", "", "\n", "zebra", "naïve 日本 free"])
def test_explain_reads_standard_input(run, trained, text):
    piped = run("explain", trained, "-", input=text).checked()
    assert piped.out == run("explain", trained, text).checked().out
    ran = run("explain", trained, "-", input=b"d\xe9jeuner").checked(1)
    assert "standard input: it is not UTF-8" in ran.err


@pytest.mark.filterwarnings("always:only one class:UserWarning")
def test_explain_of_one_class_has_no_runner_up(run, folder):
    with pytest.warns(UserWarning, match="only one class"):
        TextClassifier().fit(["aa"], ["a"]).save("m.textnb")
    ran = run("explain", "m.textnb", "aa").checked()
    assert ran.out.splitlines()[-1] == "a"
    assert "note: only one class, 'a'" in ran.err
    answer = json_of(run, "explain", "m.textnb", "aa")
    assert (answer["predicted"], answer["runner_up"]) == ("a", None)


@pytest.mark.parametrize(("estimator", "measure", "rests_on"), [
    (MultinomialNB(), "log-odds", "the classes' priors alone"),
    (textnb.BernoulliNB(), "log-odds", "the classes' priors and the terms that are absent"),
    (ComplementNB(), "margin", "nothing: all classes score the same"),
    (NBLogisticRegression(), "log-odds", "the classes' intercepts alone"),
    (NBLogisticRegression(loss="hinge"), "margin", "the classes' intercepts alone")])
def test_a_text_without_a_known_term_is_said_to_be_so(run, folder, estimator, measure, rests_on):
    TextClassifier(estimator).fit(MAIL).save("m.textnb")
    for text, terms in (("", 0), ("zebra quagga", 2), ("!", 0)):
        ran = run("explain", "m.textnb", text).checked()
        assert ran.out.endswith(f" ({measure})\n")
        assert ran.err.startswith(f"note: no term of the text is known ({terms} in it): the answer "
                                  f"rests on {rests_on}")
    ran = run("explain", "m.textnb", "free zebra").checked()
    assert ran.out.endswith(f" ({measure})\n")
    assert ran.err == ""


def test_the_text_is_of_the_first_column_or_of_another(run, folder):
    rows = pl.DataFrame({"subject": ["win", "hi"], "body": ["money", "lunch"],
                         "label": ["spam", "ham"]})
    TextClassifier(text=["subject", "body"], tokenizer=Tokenizer(field_prefix=True)).fit(
        rows).save("m.textnb")
    for words, term in (
            (["win"], "subject:win"), (["money"], None), (["money", "--column", "body"],
                                                         "body:money")):
        answer = json_of(run, "explain", "m.textnb", *words)
        assert {part["term"] for part in answer["parts"]} == {None, *([term] if term else [])}


def test_tokens_are_typed_as_json_and_shown_as_text(run, folder):
    lists = MAIL.with_columns(tokens=pl.col("text").str.split(" "))
    lists.write_parquet("rows.parquet")
    run("train", "rows.parquet", "--text", "tokens", "-o", "m.textnb").checked()
    assert textnb.load("m.textnb").tokenizer.token_columns == ("tokens",)
    assert json_of(run, "test", "m.textnb", "rows.parquet")["accuracy"] == 1
    ran = run("duplicates", "rows.parquet", "rows.parquet", "--text", "tokens", "--show", 2)
    assert "free money now" in ran.checked().out
    assert json_of(run, "explain", "m.textnb", '["free", "lunch"]')["terms"] == 2
    assert "type one as JSON" in run("explain", "m.textnb", "free lunch").checked(2).err
    MAIL.rename({"text": "tokens"}).write_parquet("texts.parquet")
    assert "'tokens' must be List(String), lists of tokens; it is String" in run(
        "predict", "m.textnb", "texts.parquet").checked(1).err
