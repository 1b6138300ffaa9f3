"""The unlabelled rows whose labels would teach a model most.

A pool holds the rows whose answers are most in doubt, some of each class. Rows are chosen from the
pool one by one [1]_, equally many of each class. A row is chosen if the sum over its terms of

    n(term) / (1 + seen(term))^2

divided by the square root of its number of terms is the largest. Here n(term) is the number of rows
of the pool that hold the term, and seen(term) how often the model has learned it, plus the number
of rows chosen so far that hold it. Long rows have more terms, hence the root. So each row is chosen
for terms that other rows hold too, and no two rows teach the same. On AG News and 20 Newsgroups,
more labels were needed without the square (for short texts), with half the pool (for 20 classes),
and if the pool held all rows of a small table.

References
----------
.. [1] K. Wei, R. Iyer, J. Bilmes (2015). Submodularity in data subset selection and active
   learning. ICML: sections 4 and 5 (from the most uncertain rows, choose rows that cover the
   features).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.decision import choose_labels, label_thresholds, log_odds
from textnb.bayes.forms import Floats
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import DataError, ParameterError, SchemaError
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import naming_source
from textnb.frames.kinds import rows_to_kind_of, select_columns
from textnb.frames.names import exactly
from textnb.frames.scan import scan
from textnb.frames.sources import lazy_frame_from
from textnb.frames.token_columns import as_text
from textnb.learning.fitted import Fitted, fitted_text_model
from textnb.runtime.settings import COUNT
from textnb.runtime.threads import map_in_threads
from textnb.scoring.columns import best_class, best_columns, lists_of_mask
from textnb.scoring.scorer import calibrate_scores, rows_at_a_time
from textnb.scoring.texts import warn_stale
from textnb.text.matrix import count_matrix

# The columns of a hash of the row's text, and of the code of the class in doubt. No column of a
# user has these names.
_KEY, _CODE = "__textnb_key", "__textnb_code"
# For n rows to choose from N rows, the pool has at most max(_POOL_SIZE, _SIZE_PER_ROW * n) rows,
# and at most max(_POOL_SHARE * N, _MIN_PER_ROW * n).
_POOL_SIZE, _SIZE_PER_ROW = 4000, 80
_POOL_SHARE, _MIN_PER_ROW = 0.4, 20
# If nearly all rows of a pool are like others, the next one is so many times as large.
_GROWTHS = (1, 4, 16)
# Rows are near-duplicates from this cosine similarity of their idf vectors on.
_MIN_SIMILARITY = 0.8
# The maximum number of terms of a reason.
_MAX_NAMED = 3


def rows_to_label(
    model: Any, frame: Any, n: int = 50, *, labelled: Any = None, progress: Progress | None = None
) -> Any:
    """Choose the rows whose labels would teach a model most, of rows without labels.

    Label them, train on all labelled rows, and choose again: fewer labels are then needed than if
    rows are chosen at random.

    Parameters
    ----------
    model : TextClassifier
        Fitted, with two classes or more.
    frame : table or path
        With the model's text columns. A label column is not read.
    n : int
        The number of rows. Fewer are chosen if all others are near-duplicates of chosen rows; of
        very many rows, all of the 64,000 (or 1,280 ``n``) that are most in doubt.
    labelled : table or path, optional
        Labelled rows: no row with the same tokens as one of them is chosen. Rows whose label is
        null don't count, so it may be the same table. Without the model's label column, all count.
    progress : callable, optional
        Called with the number of rows of each batch that was scored.

    Returns
    -------
    table of the kind that came (see `TextClassifier.predict`)
        The columns of the chosen rows, the first to label first, and

        - ``row``: the number of the row, counted from 0;
        - ``answer``: the model's answer, null for "unsure"; a list for models of lists of labels;
        - ``runner_up``: the second-best class; for lists, or if the model has a decision, the label
          whose score is nearest to its threshold;
        - ``margin``: the log-probability (base e) of the answer minus that of the runner-up (a
          difference of scores, for models without probabilities); for lists, or if the model has a
          decision, how far the score of the runner-up is from its threshold;
        - ``reason``: why the row was chosen, in words.

    Raises
    ------
    ParameterError
        If the model has a single class.
    DataError
        If there are no rows.
    SchemaError
        If the frame has a column with one of the names of new columns.

    Examples
    --------
    >>> from textnb import TextClassifier
    >>> model = TextClassifier().fit(["good film", "bad film"], ["pos", "neg"])
    >>> rows = pl.DataFrame({"text": ["good film", "a film about whales", "whales in a film"]})
    >>> rows_to_label(model, rows, 1).select("row", "answer", "runner_up").rows()
    [(1, 'neg', 'pos')]
    """
    fitted = fitted_text_model(model)
    warn_stale(fitted, probabilities=True, decisions=True)
    return choose_rows(fitted, frame, n, labelled, progress)


def choose_rows(
    fitted: Fitted, frame: Any, n: int, labelled: Any = None, progress: Progress | None = None,
) -> Any:
    """As `rows_to_label`, without its warnings."""
    if not COUNT.holds(n):
        raise ParameterError.out_of_range("n", COUNT.says, n)
    if len(fitted.classes) < 2 and not fitted.is_multilabel:
        raise ParameterError("the model has a single class, so no answer is in doubt: train it on "
                             "rows of two classes or more")
    columns = fitted.columns
    rows = scan(select_columns(frame, columns), text=columns, tokens=fitted.token_columns)
    input_columns = rows.collect_schema()
    new_columns = {
        "row": pl.Int64(), "answer": fitted.label_type, "runner_up": fitted.labels.dtype,
        "margin": pl.Float64(), "reason": pl.String()}
    SchemaError.check_new({**new_columns, _KEY: pl.UInt64(), _CODE: pl.Int64()}, input_columns)
    # No table has 2^31 rows. The limit keeps the size of the pool within an integer of Polars.
    n = min(n, 2**31)
    excluded = _keys_of(fitted, labelled)

    def read(
        names: list[str], predicate: pl.Expr | None, limit: int | None
    ) -> Iterator[pl.DataFrame]:
        # Polars applies the predicate afterwards.
        for growth in _GROWTHS:
            with naming_source(frame):
                pool, is_cut = _pool(fitted, rows, n, growth, excluded, progress)
            chosen = _choose(fitted, pool, n, excluded)
            if chosen.height == n or not is_cut:
                break
        chosen = chosen.select(exactly(names))
        yield chosen if limit is None else chosen.head(limit)

    schema = pl.Schema({**input_columns, **new_columns})
    return rows_to_kind_of(frame, lazy_frame_from(read, schema), "row", columns)


def _hash_text(fitted: Fitted, schema: pl.Schema) -> pl.Expr:
    """A hash of a row's text, which takes less time than a hash of its tokens."""
    texts = [as_text(schema, name).fill_null("") for name in fitted.columns]
    return pl.concat_str(texts, separator="\0").hash().alias(_KEY)


def _hash_tokens(fitted: Fitted) -> pl.Expr:
    tokens = fitted.settings.tokenizer.expr(fitted.columns)
    return tokens.list.join("\0").hash().alias("tokens")


def _keys_of(fitted: Fitted, labelled: Any) -> pl.DataFrame:
    """The hashes of the texts and of the tokens of labelled rows."""
    keys = [pl.DataFrame(schema={_KEY: pl.UInt64, "tokens": pl.UInt64})]
    if labelled is not None:
        with naming_source(labelled):
            rows = scan(labelled, text=fitted.columns, tokens=fitted.token_columns)
            if fitted.label in rows.collect_schema():
                rows = rows.filter(pl.col(fitted.label).is_not_null())
            keys.extend(batch.select(_hash_text(fitted, batch.schema), _hash_tokens(fitted))
                        for batch in batches(rows.select(fitted.columns), fitted.columns))
    return pl.concat(keys)


def _pool(
    fitted: Fitted, rows: pl.LazyFrame, n: int, growth: int, excluded: pl.DataFrame,
    progress: Progress | None,
) -> tuple[pl.DataFrame, bool]:
    """The rows that are most in doubt, the most first: some of each class, filled up with others.

    Rows with a text of ``excluded``, see `_keys_of`, are left out. The second value is whether
    there may be others. ``growth`` is a multiple of the usual size.
    """
    columns, max_pool = fitted.columns, growth * max(_POOL_SIZE, _SIZE_PER_ROW * n)

    def judge(batch: pl.DataFrame) -> pl.DataFrame:
        doubts = batch.hstack(_doubts(fitted, batch)).with_columns(_hash_text(fitted, batch.schema))
        if progress is not None:
            progress(batch.height)
        # Rows without a token are most in doubt, and teach nothing.
        return doubts.filter(
            ~pl.col(_KEY).is_in(excluded[_KEY].implode())
            & (fitted.settings.tokenizer.expr(columns).list.len() > 0))

    def best(parts: list[pl.DataFrame], size: int) -> pl.DataFrame:
        # The result does not depend on how rows are divided into parts. First comes an equal share
        # of rows for each class.
        distinct = pl.concat(parts).sort("margin", "row").unique(
            _KEY, keep="first", maintain_order=True)
        is_beyond_share = pl.int_range(pl.len()).over(_CODE) >= size // len(fitted.classes)
        return distinct.sort(is_beyond_share, maintain_order=True).head(size)

    numbered = rows.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    parts, n_rows = list[pl.DataFrame](), 0
    for doubts in map_in_threads(judge, batches(numbered, columns)):
        parts.append(doubts)
        n_rows += doubts.height
        if sum(part.height for part in parts) > 2 * max_pool:
            parts = [best(parts, max_pool)]
    if not parts:
        raise DataError.no_rows("the input", "there is nothing to choose from")
    size = min(max_pool, growth * max(int(_POOL_SHARE * n_rows), _MIN_PER_ROW * n))
    pool = best([best(parts, max_pool)], size).sort("margin", "row")
    return pool, pool.height == size


def _doubts(fitted: Fitted, batch: pl.DataFrame) -> pl.DataFrame:
    """The answer to each row, the runner-up, the margin, and the code of the class in doubt."""
    counts = fitted.vocabulary.rows(batch, fitted.columns)
    step = rows_at_a_time(len(fitted.classes))
    judge = _doubts_of_lists if fitted.is_multilabel else _doubts_of_classes
    return pl.concat([judge(fitted, counts[start:start + step])
                      for start in range(0, max(1, batch.height), step)])


def _doubts_of_classes(fitted: Fitted, rows: SparseRows) -> pl.DataFrame:
    scores, all_rows = fitted.form.scores(rows), np.arange(rows.shape[0])
    posterior = calibrate_scores(fitted, rows, scores)
    best, second = best_columns(scores, 2).T
    with np.errstate(invalid="ignore"):
        margin = posterior[all_rows, best] - posterior[all_rows, second]
    answer = np.where(np.isneginf(scores).all(axis=1), -1, best)
    if fitted.decision is not None:
        classes, odds = fitted.classes.tolist(), log_odds(posterior)
        answer = np.where(answer < 0, -1, fitted.decision.decide(odds, classes))
        nearest, distance = _nearest_threshold(odds, label_thresholds(classes, fitted.decision))
        # If all thresholds are infinite, there is no nearest one: the second-best class remains.
        second = np.where(np.isinf(distance), second, nearest)
        margin = np.where(np.isinf(distance), margin, distance)
    return _doubt_columns(fitted, fitted.labels.gather(pl.Series(answer).replace(-1, None)), best,
                          second, margin)


def _doubts_of_lists(fitted: Fitted, rows: SparseRows) -> pl.DataFrame:
    scores, labels = fitted.form.scores(rows), fitted.labels.to_list()
    nearest, distance = _nearest_threshold(scores, label_thresholds(labels, fitted.decision))
    answer = lists_of_mask(choose_labels(scores, labels, fitted.decision), fitted.labels)
    return _doubt_columns(fitted, answer, nearest, nearest, distance)


def _nearest_threshold(scores: Floats, thresholds: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The label whose score is nearest to its threshold, and how near it is."""
    with np.errstate(invalid="ignore"):
        distance = np.nan_to_num(np.abs(scores - thresholds), nan=np.inf, posinf=np.inf)
    nearest = best_class(-distance)
    return nearest, distance[np.arange(len(distance)), nearest]


def _doubt_columns(
    fitted: Fitted, answer: pl.Series, code: NDArray[np.int64], second: NDArray[np.int64],
    margin: Floats,
) -> pl.DataFrame:
    # The margin is NaN if a row is impossible under every class: it counts as most in doubt.
    return pl.DataFrame({
        _CODE: code, "answer": answer, "runner_up": fitted.labels.gather(pl.Series(second)),
        "margin": np.nan_to_num(margin, nan=0.0, posinf=np.inf)})


def _choose(fitted: Fitted, pool: pl.DataFrame, n: int, excluded: pl.DataFrame) -> pl.DataFrame:
    """The rows of the pool to label, in the order in which they are chosen, each with a reason."""
    if not pool.height:
        return pool.with_columns(reason=pl.lit(None, pl.String))
    presence, terms = count_matrix([pool], fitted.settings.tokenizer, fitted.columns)
    presence.data[:] = 1
    rows_by_term = presence.tocsc()
    frequency = np.diff(rows_by_term.indptr)
    # A term of only one row says nothing about other rows.
    term_weights = np.where(frequency > 1, frequency, 0).astype(np.float64)
    squared_idf = np.square(np.log((1 + pool.height) / (1 + frequency)) + 1)
    roots_of_lengths = np.sqrt(np.diff(presence.indptr))
    # The lengths of rows as idf vectors, and how often each term was learned or chosen.
    norms, seen = np.sqrt(presence @ squared_idf), _seen(fitted, terms)
    # The sum of each row at the top of this module, before it is divided.
    gains = presence @ (term_weights * _novelty(seen))
    is_usable = ~pool.select(_hash_tokens(fitted).is_in(
        excluded["tokens"].implode()))["tokens"].to_numpy()
    codes, n_of_class = pool[_CODE].to_numpy(), np.zeros(len(fitted.classes))
    per_class = np.ceil(n / len(np.unique(codes)))
    rows, reasons = list[int](), list[str]()
    # After each choice, the gains of rows that share a term with it fall, and its near-duplicates
    # are excluded.
    while len(rows) < n and is_usable.any():
        # Rows of classes with fewer choices than their share come first. Of rows with equal gains,
        # the first is most in doubt.
        is_due = is_usable & (n_of_class[codes] < per_class)
        row = int(np.where(is_due if is_due.any() else is_usable, gains / roots_of_lengths,
                           -1).argmax())
        row_terms = presence.indices[presence.indptr[row]:presence.indptr[row + 1]]
        term_gains = term_weights[row_terms] * _novelty(seen[row_terms])
        named_terms = row_terms[np.argsort(-term_gains, kind="stable")[:_MAX_NAMED]]
        rows.append(row)
        reasons.append(f"{_describe_doubt(fitted, pool, row)}; little seen: "
                       f"{', '.join(terms.gather(named_terms).to_list())}")
        n_of_class[codes[row]] += 1
        seen[row_terms] += 1
        rows_with_terms = rows_by_term[:, row_terms]
        new_term_gains = term_weights[row_terms] * _novelty(seen[row_terms])
        gains += rows_with_terms @ (new_term_gains - term_gains)
        is_usable &= rows_with_terms @ squared_idf[row_terms] < _MIN_SIMILARITY * norms * norms[row]
        is_usable[row] = False
    return pool[rows].with_columns(reason=pl.Series(reasons, dtype=pl.String))


def _seen(fitted: Fitted, terms: pl.Series) -> Floats:
    """How often the model has seen each term."""
    known = pl.DataFrame({"term": fitted.terms, "seen": fitted.counts.total_occurrences})
    seen: Floats = pl.DataFrame({"term": terms}).join(
        known, on="term", how="left", maintain_order="left")["seen"].fill_null(0).cast(
            pl.Float64).to_numpy(writable=True)
    return seen


def _novelty(seen: Floats) -> Floats:
    """What a term adds to the gain from a row that holds it: the less, the more it was seen."""
    return 1 / np.square(1 + seen)


def _describe_doubt(fitted: Fitted, pool: pl.DataFrame, row: int) -> str:
    """Why the answer to a row is in doubt, in words."""
    answer, other, margin = (pool[name][row] for name in ("answer", "runner_up", "margin"))
    if fitted.is_multilabel or fitted.decision is not None:
        return f"{other} is {margin:.3g} from its threshold"
    return f"{answer} or {other}, {margin:.3g} apart"
