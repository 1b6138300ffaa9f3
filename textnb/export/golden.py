"""Golden rows: documents that stress a tokenizer, and the answers that every target must give.

The documents are written here or made of the terms of the vocabulary, which the weights hold too:
no training text is in them. Where the two best scores differ by rounding only, the order of a sum
decides the label, and no label is expected (null).
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
TOLERANCE = 1e-9
# The number of documents that are made of the vocabulary's terms.
_FROM_TERMS = 40

_WRITTEN: tuple[str | None, ...] = (
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

    For a column of tokens, these are what single spaces separate.
    """
    symbols = _SYMBOL_TEXTS if bundle.splitter.keep else ()
    texts = [*_WRITTEN, *symbols, *_documents_of_terms(bundle)]
    # With several columns, each is shifted by one row, so that every field holds every text.
    frame = pl.DataFrame(
        {name: texts[shift:] + texts[:shift] for shift, name in enumerate(bundle.columns)},
        schema=dict.fromkeys(bundle.columns, pl.String))
    return frame.with_columns(pl.col(name).str.split(" ") for name in bundle.token_columns)


def vectors(bundle: Bundle) -> Floats:
    """Make golden rows of features: zeros, ones, large and small numbers, and around the center."""
    p = len(bundle.terms)
    rng = np.random.default_rng(SEED)
    center = bundle.form.features.center
    center = np.zeros(p) if center is None else center
    rows = [np.zeros(p), np.ones(p), -np.ones(p), center, *(center + rng.normal(size=(24, p))),
            *rng.normal(scale=1e3, size=(8, p)), *(1e-6 * rng.normal(size=(4, p)))]
    return np.array(rows)


def rows_of(bundle: Bundle, frame: pl.DataFrame) -> TargetRows:
    """Prepare documents in every form that a target may read."""
    documents = frame.select(bundle.columns)
    return TargetRows(bundle.counts(documents), documents, bundle.tokens(documents))


def table(bundle: Bundle) -> pl.DataFrame:
    """Make ``golden.parquet``: documents (or features), tokens, scores, and labels as strings.

    Of lists of labels, the column is ``labels``. Probabilities follow, and the decision of one
    class.
    """
    if bundle.reads == "features":
        rows = TargetRows(vectors(bundle))
        inputs = pl.DataFrame({"features": rows.features.tolist()},
                              schema={"features": pl.List(pl.Float64)})
    else:
        frame = documents(bundle)
        rows = rows_of(bundle, frame)
        inputs = frame.rename({name: "text" if len(bundle.columns) == 1 else f"text:{name}"
                               for name in bundle.columns}
                              ).with_columns(rows.tokens.alias("tokens"))
    scores = bundle.scores(rows.values)
    return inputs.with_columns(
        pl.Series("scores", scores.tolist(), dtype=pl.List(pl.Float64)),
        *answer_columns(bundle, scores, rows.values),
    ).with_row_index("id").with_columns(pl.col("id").cast(pl.Int64))


def answer_columns(
    bundle: Bundle, scores: Floats, rows: CountMatrix | Floats
) -> list[pl.Series]:
    """The label or labels, the probabilities, and the decision of one class if there is one.

    Labels are strings; null if rounding decides.
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
        k = bundle.labels.index(bundle.positive)
        scores = scores * (np.arange(2) == k)
    if bundle.calibration is None:
        return scores
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
    """The class that the decision chooses, in a list, which is empty if it is unsure.

    None if rounding decides: log-odds are equal to their threshold within the tolerance, or two
    classes that reach theirs are equal.
    """
    assert bundle.decision is not None
    posterior = posterior_scores(bundle, scores, rows)
    odds = log_odds(posterior)
    chosen = bundle.decision.decide(odds, bundle.labels)
    margin = 4 * tolerance * np.maximum(1.0, np.abs(posterior).max(axis=1, keepdims=True))
    min_odds = np.array(bundle.min_odds)
    with np.errstate(invalid="ignore"):
        near = (np.abs(odds - min_odds) <= margin).any(axis=1)
    accepted = np.where((odds >= min_odds) & (min_odds < np.inf), odds, -np.inf)
    if accepted.shape[1] > 1:
        ordered = np.sort(accepted, axis=1)
        with np.errstate(invalid="ignore"):
            near |= ordered[:, -1] - ordered[:, -2] <= margin[:, 0]
    return [None if is_near else [] if code == UNSURE else [bundle.labels[code]]
            for code, is_near in zip(chosen.tolist(), near.tolist(), strict=True)]


def _documents_of_terms(bundle: Bundle) -> list[str]:
    """Make documents of terms that a hash chooses, so that they are the same on every machine."""
    terms = bundle.terms
    texts = []
    for number in range(_FROM_TERMS):
        digest = hashlib.shake_256(f"{SEED} {number}".encode()).digest(8 * 24)
        numbers = [int.from_bytes(digest[i:i + 8], "big") for i in range(0, len(digest), 8)]
        words = [terms[n % len(terms)] for n in numbers[:2 + number % 22]]
        if number % 3 == 1:
            words = [word.upper() if n % 2 else word.title()
                     for word, n in zip(words, numbers, strict=False)]
        if number % 4 == 2:
            words += words[:3] * 2
        texts.append((" ", ", ", "\n", " - ")[number % 4].join(words))
    return texts
