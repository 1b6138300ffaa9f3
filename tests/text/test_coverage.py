"""Texts without a known term: a warning of fit, predict and test, with the likely cause."""

import logging
import re
import warnings

import numpy as np
import polars as pl
import pytest

import textnb
from textnb import NBLinear, TextClassifier, Tokenizer, UnknownTermsWarning, evaluate, write_report
from textnb.errors import EmptyTextWarning

CAUSE = r'written without spaces .* Tokenizer\(unspaced="both"\), the default'
OTHERS = "Likely causes: another language"
TWO_FIFTHS = r"20 of 50 texts \(40%\) hold no term that the model knows"
WHOLE = Tokenizer(unspaced="whole")
WORDS = TextClassifier(tokenizer=WHOLE).fit(["aa bb"] * 20, ["x", "y"] * 10)
UNKNOWN = pl.DataFrame({"text": ["zz"] * 20 + ["aa"] * 30, "label": ["x", "y"] * 25})


def phrases(rows, seed):
    """Phrases of Chinese characters: no two alike, and no spaces."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0x4E00, 0x4E00 + 300, (rows, 9))
    texts = ["".join(map(chr, row)) for row in drawn]
    return pl.DataFrame({"text": texts, "label": ["x", "y"] * (rows // 2)})


@pytest.mark.parametrize(("call", "message"), [
    (lambda: TextClassifier(tokenizer=WHOLE).fit(phrases(100, 1)), CAUSE),
    (lambda: TextClassifier().fit([f"a{i} b{i}" for i in range(100)], ["x", "y"] * 50), OTHERS),
    # A model of pairs of characters that meets another script: spaces are not the cause.
    (lambda: TextClassifier().fit(phrases(10_000, 1)).predict(["\u0e01\u0e02"] * 20), OTHERS),
    (lambda: WORDS.predict(phrases(20, 2)), CAUSE), (lambda: WORDS.predict(UNKNOWN), TWO_FIFTHS),
    (lambda: WORDS.predict(UNKNOWN["text"].to_list()), TWO_FIFTHS),
    (lambda: evaluate(WORDS, UNKNOWN), TWO_FIFTHS)])
def test_texts_without_a_known_term_are_warned_of(call, message):
    with pytest.warns(UnknownTermsWarning, match=message):
        call()


@pytest.mark.parametrize("call", [
    lambda: TextClassifier().fit(phrases(18, 1)), lambda: WORDS.predict(["zz"] * 19),
    lambda: WORDS.predict(["", " ", None] * 30 + ["aa"])],
    ids=["few documents", "few texts", "empty texts"])
def test_few_or_empty_texts_tell_nothing(call):
    call()


BLANK = pl.DataFrame({"text": ["aa", None, " \n", ""], "title": [None, "aa", "", None],
                      "label": ["x", "y", "x", "y"]})
TWO = TextClassifier(text=["text", "title"])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: TWO.fit(BLANK), "2 of 4 rows hold no text .* count only in the shares of the classes"),
    (lambda: TWO.fit(BLANK.lazy()), "2 of 4 rows"),
    (lambda: TextClassifier(textnb.MultinomialNB(l="auto")).fit(BLANK), "3 of 4 rows"),
    (lambda: TextClassifier(NBLinear(held_out=0)).fit(BLANK), "3 of 4 rows"),
    (lambda: TextClassifier(memory_limit="50M").fit(BLANK), "3 of 4 rows"),
    (lambda: TextClassifier().fit(["aa", None], ["x", "y"]), "1 of 2 rows holds no text"),
    (lambda: TextClassifier().fit([["aa"], []], ["x", "y"]), "1 of 2 rows"),
    (lambda: TextClassifier().partial_fit(BLANK), "3 of 4 rows"),
    (lambda: WORDS.predict(BLANK), "3 of 4 rows hold no text .* answered by the classes' priors"),
    (lambda: WORDS.predict(["aa", ""]), "1 of 2 rows holds no text")])
def test_rows_without_text_are_warned_of_once(call, message):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EmptyTextWarning)
        call()
    assert len(caught) == 1
    assert re.match(message, str(caught[0].message))


def test_a_report_warns_too(tmp_path):
    pytest.importorskip("altair")
    with pytest.warns(UnknownTermsWarning):
        write_report(WORDS, UNKNOWN, tmp_path / "report.html")


def test_a_lazy_frame_logs_it_once_it_is_collected(caplog):
    lazy = WORDS.predict(UNKNOWN.lazy())
    assert caplog.records == []
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "textnb"):
            lazy.collect()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "20 of 50 texts (40%)" in caplog.text
        caplog.clear()


@pytest.mark.parametrize("name", [
    "sms_spam", "bbc_news", "r8", "20newsgroups", "imdb", "indicnews_bengali"])
def test_words_of_real_corpora_give_no_alarm(corpus, name):
    rows = corpus(name).collect().sample(1500, shuffle=True, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TextClassifier().fit(rows[:1000]).predict(rows[1000:])


def test_chinese_reviews(corpus):
    rows = corpus("zh_hotel").collect().sample(fraction=1.0, shuffle=True, seed=1)
    with pytest.warns(UnknownTermsWarning, match=CAUSE):
        TextClassifier(tokenizer=WHOLE).fit(rows[:5000])
    assert TextClassifier(textnb.NBLinear()).fit(rows[:5000]).score(rows[5000:]) > 0.885
