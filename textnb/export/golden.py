"""Golden rows: documents that stress a tokenizer, and the answers that every target must give.

The documents are fixed texts of this module, and texts made of the vocabulary's terms, which every
export holds anyway: none is a training text. If the two best scores differ by rounding only, the
order of a sum decides the label, and no label is expected (null).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import polars as pl

from textnb.bayes.decision import UNSURE, log_odds
from textnb.bayes.forms import Floats, log_posterior, log_sigmoid
from textnb.export.bundle import Bundle
from textnb.export.targets.base import TargetRows
from textnb.text.matrix import CountMatrix

SEED = 13
# How far rounding may move a score. If that can change an answer, null is stored in its place.
TOLERANCE = 1e-9
# The number of documents that are made of the vocabulary's terms.
_N_TERM_DOCUMENTS = 40

_FIXED_TEXTS: tuple[str | None, ...] = (
    None,
    "",
    " ",
    "\t\r\n",
    "zqxjkv wvzqkj",
    "The quick brown fox, and THE LAZY DOG; the the the THE",
    "naïve café Ångström ÅNGSTRÖM Straße STRASSE ﬁne ﬀ",
    "cafe\u0301 A\u030angstro\u0308m n\u0303 \u0301\u0301",
    "İstanbul IĞDIR ısparta İ I\u0307 i\u0307",
    "ΟΔΟΣ ΟΔΟΣ. ΣΑΣ Σ ΣΣ ΑΣ'Α Α\u0301Σ ὈΔΥΣΣΕΎΣ ς σ ΑΣ\u00adΑ",
    "हिन्दी में लिखा हुआ पाठ",
    "বাংলা সংবাদ শিরোনাম",
    "ภาษาไทย తెలుగు தமிழ்",
    "中文文本 日本語のテキスト 한국어 텍스트",
    "עברית العربية فارسی",
    "USB线A 房间很好，好 x好_ ﾊﾟｿｺﾝー ไทยก่ab မြန်မာ ខ្មែរ \x01中\x02国\x03 𠀀一x々 中:国|中",
    "emoji 😀 👩‍👩‍👧 👍🏽 ❤️ x😀y",
    "0 1 12 123 ١٢٣ ²³ ½ Ⅷ ①",
    "tab\tnew\nline\rreturn\x0bvertical\x0cform\u0085next\u2028line\u2029paragraph",
    "\x1cfile\x1dgroup\x1erecord\x1funit\u00a0space\u3000wide\ufeffmark",
    "'single' \"double\" `back` \\slash\\ \\n %s %d {x} ${y} $1 <b> &amp; </script>",
    "a,b;c|d:e --comment /* x */ '; DROP TABLE documents; -- \"\"\"",
    "snake_case __init__ x_y kebab-case e-mail@example.org http://example.org/a?b=c&d=e",
    "don't l'été O’Brien rock'n'roll",
    "a b c d e f g I O 1 2 é",
    "𝐁𝐨𝐥𝐝 𝔣𝔯𝔞𝔨 ＦＵＬＬ ｗｉｄｔｈ 𐐀𐐁 Ꙁ Ა ᏸ",
    "\u200bzero\u200cwidth\u200djoiners\u2060here",
    "nul\x00inside \x01\x02\x7f control",
    "\ue000private \U000f0000use \U0010ffff \u0378unassigned",
    "word " * 300 + "x" * 5000,
)
# Documents for tokenizers that keep more than words.
_SYMBOL_TEXTS = (
    "C++ C# F# c++11 A_C++ ÉC++ 𐐀# Ⅷ# ½# 1c#線c++線 c+ +c ++ # c+++ c##",
    "U.S. U.S.A u.s. É.Ü. a.b c. x.y.z. 線.好. 1.2. au.s. A..B. U.S.C++",
    "$5 $5.50 €3,000.00 £1. ¥ $ $x $1,2,3. 10% 1.5% 1,000.5% 5 % 1.% 1..5% 1.5.5%% x5% $5% 5%5%",
    "wow! what?! !!! ?x! x!y 線!好? ❤ ❤\ufe0f 😀😀x ☕ ✓ 👩\u200d👧 🇪🇺 ① 🅰 中😀国 x😀y",
    "1." * 300 + " " + "a" * 300 + " " + "a1" * 150 + "++ " + "!?" * 100 + "線" * 300 + "$" * 100,
)


def documents(bundle: Bundle) -> pl.DataFrame:
    """Make the golden documents, in columns with the names of the model's text columns.

    In a column of tokens, each text is split at single spaces.
    """
    symbols = _SYMBOL_TEXTS if bundle.splitter.keep else ()
    texts = [*_FIXED_TEXTS, *symbols, *_documents_of_terms(bundle)]
    # With several columns, each is shifted by one row, so that every field holds every text.
    frame = pl.DataFrame(
        {name: texts[shift:] + texts[:shift] for shift, name in enumerate(bundle.columns)},
        schema=dict.fromkeys(bundle.columns, pl.String))
    return frame.with_columns(pl.col(name).str.split(" ") for name in bundle.token_columns)


def vectors(bundle: Bundle) -> Floats:
    """Make golden rows of features: zeros, ones, the center, rows near it, large and small ones."""
    n = len(bundle.terms)
    rng = np.random.default_rng(SEED)
    center = bundle.form.features.center
    center = np.zeros(n) if center is None else center
    rows = [np.zeros(n), np.ones(n), -np.ones(n), center, *(center + rng.normal(size=(24, n))),
            *rng.normal(scale=1e3, size=(8, n)), *(1e-6 * rng.normal(size=(4, n)))]
    return np.array(rows)


def target_rows(bundle: Bundle, frame: pl.DataFrame) -> TargetRows:
    """Prepare documents as counts, texts and tokens; a target reads one of the three."""
    documents = frame.select(bundle.columns)
    return TargetRows(bundle.counts(documents), documents, bundle.tokens(documents))


def table(bundle: Bundle) -> pl.DataFrame:
    """Make ``golden.parquet``: documents (or features), tokens, scores, and labels as strings.

    Lists of labels are in the column ``labels``. The last columns are the probabilities and, for
    one class per document, the decision.
    """
    if bundle.reads == "features":
        rows = TargetRows(vectors(bundle))
        inputs = pl.DataFrame({"features": rows.features.tolist()},
                              schema={"features": pl.List(pl.Float64)})
    else:
        frame = documents(bundle)
        rows = target_rows(bundle, frame)
        inputs = frame.rename({name: "text" if len(bundle.columns) == 1 else f"text:{name}"
                               for name in bundle.columns}
                              ).with_columns(rows.tokens.alias("tokens"))
    scores = bundle.scores(rows.values)
    return inputs.with_columns(
        pl.Series("scores", scores.tolist(), dtype=pl.List(pl.Float64)),
        *answer_columns(bundle, scores, rows.values),
    ).with_row_index("id").with_columns(pl.col("id").cast(pl.Int64))


def answer_columns(bundle: Bundle, scores: Floats, rows: CountMatrix | Floats) -> list[pl.Series]:
    """The label or labels, the probabilities, and the decision if the bundle has one.

    Labels are strings. An answer is null if rounding decides it.
    """
    labels = bundle.expected_labels(scores, rows, TOLERANCE)
    columns = [
        _strings("labels", labels) if bundle.is_multilabel else pl.Series(
            "label", [None if label is None else str(label) for label in labels], dtype=pl.String),
        pl.Series("probability", probabilities(bundle, scores, rows).tolist(),
                  dtype=pl.List(pl.Float64))]
    if bundle.decision is not None and not bundle.is_multilabel:
        columns.append(_strings("decision", decisions(bundle, scores, rows, TOLERANCE)))
    return columns


def _strings(name: str, lists: list[list[Any] | None]) -> pl.Series:
    """Lists of labels as lists of strings."""
    return pl.Series(name, [None if labels is None else [*map(str, labels)] for labels in lists],
                     dtype=pl.List(pl.String))


def posterior_scores(bundle: Bundle, scores: Floats, rows: CountMatrix | Floats) -> Floats:
    """Scores whose softmax (for lists, sigmoid) is the probability: (n_rows, n_classes)."""
    if bundle.positive is not None:
        # The only score is that of the positive class; the other class gets 0.
        k = bundle.labels.index(bundle.positive)
        scores = scores * (np.arange(2) == k)
    if bundle.calibration is None:
        return scores
    # A row's length, for the calibration, is the sum of the values that weights multiply.
    return bundle.calibration.apply(
        scores, np.asarray(bundle.form.used(rows).sum(axis=1), dtype=np.float64))


def probabilities(bundle: Bundle, scores: Floats, rows: CountMatrix | Floats) -> Floats:
    """Probabilities of classes, or of each label: float64 (n_rows, n_classes)."""
    posterior = posterior_scores(bundle, scores, rows)
    logs = log_sigmoid(posterior) if bundle.is_multilabel else log_posterior(posterior)
    result: Floats = np.exp(logs)
    return result


def decisions(
    bundle: Bundle, scores: Floats, rows: CountMatrix | Floats, tolerance: float
) -> list[list[Any] | None]:
    """The class that the decision chooses for each row, in a list; an empty list for "unsure".

    None if rounding decides: within the tolerance, log-odds equal their threshold, or the two best
    of the classes that reach their thresholds are equal.
    """
    assert bundle.decision is not None
    posterior = posterior_scores(bundle, scores, rows)
    class_log_odds = log_odds(posterior)
    chosen = bundle.decision.decide(class_log_odds, bundle.labels)
    # A difference of two log-odds has four scores, each with an error of the tolerance.
    margin = 4 * tolerance * np.maximum(1.0, np.abs(posterior).max(axis=1, keepdims=True))
    min_log_odds = np.array(bundle.min_log_odds)
    # inf - inf is NaN, which is not near.
    with np.errstate(invalid="ignore"):
        is_near = (np.abs(class_log_odds - min_log_odds) <= margin).any(axis=1)
    # A class whose threshold is infinite is never chosen.
    is_accepted = (class_log_odds >= min_log_odds) & (min_log_odds < np.inf)
    accepted = np.where(is_accepted, class_log_odds, -np.inf)
    if accepted.shape[1] > 1:
        ordered = np.sort(accepted, axis=1)
        with np.errstate(invalid="ignore"):
            is_near |= ordered[:, -1] - ordered[:, -2] <= margin[:, 0]
    return [None if near else [] if code == UNSURE else [bundle.labels[code]]
            for code, near in zip(chosen.tolist(), is_near.tolist(), strict=True)]


def _documents_of_terms(bundle: Bundle) -> list[str]:
    """Make documents of terms that a hash chooses, so that they are the same on every machine.

    Their lengths, case, repetitions and separators differ.
    """
    terms = bundle.terms
    texts = []
    for number in range(_N_TERM_DOCUMENTS):
        # 24 numbers of 8 bytes: each chooses a term.
        digest = hashlib.shake_256(f"{SEED} {number}".encode()).digest(8 * 24)
        choices = [int.from_bytes(digest[i:i + 8], "big") for i in range(0, len(digest), 8)]
        words = [terms[choice % len(terms)] for choice in choices[:2 + number % 22]]
        if number % 3 == 1:
            words = [word.upper() if choice % 2 else word.title()
                     for word, choice in zip(words, choices, strict=False)]
        if number % 4 == 2:
            words += words[:3] * 2
        texts.append((" ", ", ", "\n", " - ")[number % 4].join(words))
    return texts
