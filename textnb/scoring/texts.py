"""The answers of a fitted model of texts: labels, scores, columns, terms, explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.classes import known_class
from textnb.bayes.decision import UNSURE, choose_labels, label_thresholds, log_odds
from textnb.bayes.forms import Floats, log_posterior, log_sigmoid, margins
from textnb.bayes.sparse_rows import SparseRows
from textnb.errors import (
    ImpossibleRowError,
    ParameterError,
    SchemaError,
    TextnbWarning,
)
from textnb.frames.batches import Progress, batches
from textnb.frames.failures import naming_source
from textnb.frames.indicator import check_indicator
from textnb.frames.kinds import in_memory, select_columns, to_kind_of
from textnb.frames.names import exactly
from textnb.frames.scan import Source, scan
from textnb.frames.texts import is_table, labels_as, table_of_texts
from textnb.frames.weights import ARRAY_COLUMN, named_columns, weight_column, with_weights
from textnb.learning.fitted import Fitted
from textnb.runtime.caller import warn_caller
from textnb.runtime.threads import map_in_threads
from textnb.runtime.unicode import check_unicode
from textnb.scoring.columns import (
    Answers,
    best_class,
    label_columns,
    share_right,
    share_right_of_table,
)
from textnb.scoring.explain import (
    Explanation,
    LabelExplanation,
    explanation_table,
    label_explanation,
    top_terms,
)
from textnb.scoring.scorer import (
    Watch,
    answer_counts,
    answer_schema,
    calibrate_scores,
    explain_best,
    explain_labels,
    lengths,
    rows_at_a_time,
    score_frame,
)
from textnb.text.coverage import TermCoverage
from textnb.text.matrix import CountMatrix, as_csr, stack_blocks
from textnb.text.spans import pieces_of

Texts = Sequence[str | None] | NDArray[Any] | pl.Series
Rows = Source | Texts
# A text or a list of tokens, or a mapping of columns to these.
Text = str | Sequence[str] | Mapping[str, str | Sequence[str] | None]
# Up to this number, texts are scored without building a frame, which is faster.
_MAX_FEW_TEXTS = 16


def row_of(fitted: Fitted, text: Text) -> pl.DataFrame:
    """Make a frame of one row with the text columns; a column of tokens has a list of them."""
    names, token_columns = fitted.columns, fitted.token_columns
    if text is None:
        raise _no_text(text)
    texts: dict[str, Any] = dict(text) if isinstance(text, Mapping) else {names[0]: text}
    for name in texts:
        if name not in names:
            raise ParameterError.unknown_choice("text column", name, names)
    for name in names:
        value = texts.setdefault(name, None)
        if value is None:
            texts[name] = [] if name in token_columns else ""
        elif name in token_columns and not (isinstance(value, (list, tuple)) and all(
                token is None or isinstance(token, str) for token in value)):
            raise ParameterError.out_of_range(
                "text", f"a list of tokens for the column {name!r}", value)
        elif name not in token_columns and not isinstance(value, str):
            raise _no_text(text)
    for name in names:
        check_unicode([texts[name]], "text")
    return pl.DataFrame({name: [texts[name]] for name in names}, schema={
        name: pl.List(pl.String) if name in token_columns else pl.String() for name in names})


def _no_text(text: Any) -> ParameterError:
    return ParameterError.out_of_range(
        "text", "one text, or a dict of texts by their columns", text)


def predict_lazily(
    fitted: Fitted, X: Any, answers: Answers | None = None,
    progress: Progress | None = None, watch: Watch | None = None,
    on_end: Callable[[], None] | None = None,
) -> pl.LazyFrame:
    """A table with predictions, always lazy, and without a warning about unknown terms.

    ``progress``, ``watch`` and ``on_end`` are described in `score_frame`.
    """
    columns = fitted.columns
    frame = scan(select_columns(X, columns), text=columns, tokens=fitted.token_columns)
    return score_frame(fitted, frame, answers or Answers(), progress, watch, on_end)


def coverage_of(fitted: Fitted) -> TermCoverage:
    """Create a counter of texts without a term that the model knows.

    Its warning says so if the tokenizer takes whole phrases of scripts without spaces for words.
    """
    return TermCoverage(
        fitted.columns, phrases_are_words=not fitted.settings.tokenizer.splits_unspaced,
        without_terms=fitted.model.without_terms)


def matrices(
    fitted: Fitted, X: Rows, watch: Watch | None = None
) -> Iterator[SparseRows]:
    """The counts of the known terms of documents, batch by batch; ``watch`` is called with each."""
    vocabulary, columns = fitted.vocabulary, fitted.columns
    few = _few_texts(fitted, X)
    if few is not None and (rows := vocabulary.rows_of_few(few)) is not None:
        # A list of few texts gets no warning about unknown terms, unless a text is blank.
        if watch is not None and not (isinstance(X, list) and all(map(str.strip, few))):
            watch(pl.DataFrame({columns[0]: few}), rows)
        yield rows
        return
    token_columns = fitted.token_columns
    frame = (scan(select_columns(X, columns), text=columns, tokens=token_columns) if is_table(X)
             else table_of_texts(X, columns, token_columns))

    def count(batch: pl.DataFrame) -> SparseRows:
        counts = vocabulary.rows(batch, columns)
        if watch is not None:
            watch(batch, counts)
        return counts

    with naming_source(X):
        yield from map_in_threads(count, batches(frame.select(columns), columns))


def _few_texts(fitted: Fitted, X: Rows) -> list[str] | None:
    """The texts of a list or a frame if they are few and strings; None for other texts.

    None also if the model has several text columns.
    """
    if len(fitted.columns) > 1:
        return None
    if isinstance(X, pl.DataFrame) and X.height <= _MAX_FEW_TEXTS:
        column = X.get_column(fitted.columns[0], default=None)
        has_strings = column is not None and column.dtype == pl.String and not column.has_nulls()
        return column.to_list() if has_strings else None
    return X if isinstance(X, list) and len(X) <= _MAX_FEW_TEXTS and all(
        type(text) is str for text in X) else None


def score_batch(fitted: Fitted, batch: pl.DataFrame) -> tuple[Floats, Floats]:
    """The scores and the lengths of the rows of a batch.

    Returns
    -------
    scores : float64 (n_rows, n_classes)
        Joint log-probabilities, base e, not calibrated.
    lengths : float64 (n_rows,)
        The sum of the values of a row's features, which calibration uses.
    """
    counts = fitted.vocabulary.rows(batch, fitted.columns)
    return fitted.form.scores(counts), lengths(fitted, counts)


def joint_scores(fitted: Fitted, X: Rows) -> Floats:
    """The scores of all documents, not calibrated."""
    return np.concatenate([
        np.empty((0, len(fitted.classes))),
        *(fitted.form.scores(rows) for rows in matrices(fitted, X))])


def warn_stale(fitted: Fitted, *, probabilities: bool, decisions: bool) -> None:
    """Warn if the answers use a calibration or a decision that no longer fits the model.

    Parameters
    ----------
    fitted : Fitted
    probabilities, decisions : bool
        Whether the answers have probabilities, or decisions.
    """
    for name, value, is_used, function, verb in (
            ("calibration", fitted.calibration, probabilities, "calibrate(model, rows)",
             "calibrate"),
            ("decision", fitted.decision, decisions, "choose_threshold", "threshold")):
        if is_used and value is not None and value.stale:
            warn_caller(f"the model's {name} is stale: {value.stale}. Choose it again: "
                        f"textnb.{function}, or textnb {verb} on the command line", TextnbWarning)


def _calibrated_scores(fitted: Fitted, X: Rows) -> Floats:
    """The scores of all documents, calibrated if the model is.

    If y was a matrix at the fit, there is a score for each of its columns, and -inf for a label
    that no row had.

    Raises
    ------
    ImpossibleRowError
        If no class can produce a document.
    """
    warn_stale(fitted, probabilities=True, decisions=False)
    scores = np.concatenate([
        np.empty((0, len(fitted.classes))),
        *(calibrate_scores(fitted, rows, fitted.form.scores(rows))
          for rows in matrices(fitted, X))])
    if fitted.indicator is not None:
        scores = fitted.indicator.widen(scores, fitted.classes, missing=-np.inf)
    if not fitted.is_multilabel:
        _check_possible(np.flatnonzero(np.isneginf(scores).all(axis=1)))
    return scores


def labels_of(fitted: Fitted, X: Rows) -> Any:
    """The answer for each document as an array; a list of lists for lists of labels.

    If y was a matrix at the fit, the answers are such a matrix. If the model has a decision, the
    answer is the decision, or None if it is unsure.
    """
    coverage = coverage_of(fitted)
    blocks = _score_blocks(fitted, X, coverage.add)
    labels: Any = []
    if fitted.indicator is not None:
        labels = _predict_matrix(fitted, (scores for _, scores in blocks))
    elif fitted.is_multilabel:
        for _, scores in blocks:
            labels += label_columns(
                scores, fitted.labels, Answers(), decision=fitted.decision)["predicted"].to_list()
    else:
        labels = _predict_classes(fitted, blocks)
    coverage.warn_of_all()
    return labels


def _predict_classes(
    fitted: Fitted, blocks: Iterable[tuple[SparseRows, Floats]]
) -> NDArray[Any]:
    """The most probable class of each row, or the decision if there is one."""
    n_rows, indices, impossible = 0, [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for rows, scores in blocks:
        indices.append(best_class(scores) if fitted.decision is None else fitted.decision.decide(
            log_odds(calibrate_scores(fitted, rows, scores)), fitted.labels.to_list()))
        impossible.append(n_rows + np.flatnonzero(np.isneginf(scores).all(axis=1)))
        n_rows += len(scores)
    _check_possible(np.concatenate(impossible))
    class_index = np.concatenate(indices)
    is_unsure = class_index == UNSURE
    if not is_unsure.any():
        return fitted.classes[class_index]
    answers = fitted.classes.astype(object)[class_index]
    answers[is_unsure] = None
    return answers


def _score_blocks(
    fitted: Fitted, X: Rows, watch: Watch
) -> Iterator[tuple[SparseRows, Floats]]:
    """Blocks of rows and their scores; the more classes, the fewer rows a block has."""
    n_rows = rows_at_a_time(len(fitted.classes))
    for rows in matrices(fitted, X, watch):
        for start in range(0, rows.shape[0], n_rows):
            block = rows[start:start + n_rows]
            yield block, fitted.form.scores(block)


def _predict_matrix(fitted: Fitted, blocks: Iterable[Floats]) -> Any:
    """Predict labels from blocks of scores, as a matrix like y at the fit: int64, dense or CSR."""
    assert fitted.indicator is not None
    labels = fitted.labels.to_list()
    has_label = np.concatenate([np.zeros((0, len(labels)), dtype=np.bool_), *(
        choose_labels(scores, labels, fitted.decision) for scores in blocks)])
    matrix = fitted.indicator.widen(has_label.astype(np.int64), fitted.classes, missing=0)
    return as_csr(matrix) if fitted.indicator.is_sparse else matrix


def decision_values(fitted: Fitted, X: Rows) -> Floats:
    """See `TextClassifier.decision_function`: log-odds of the second class, or of each label."""
    scores = _calibrated_scores(fitted, X)
    return scores if fitted.is_multilabel else margins(scores)


def log_probabilities(fitted: Fitted, X: Rows) -> Floats:
    """log P(class | text), or log P(label | text) of each label, independent of the others."""
    scores = _calibrated_scores(fitted, X)
    return log_sigmoid(scores) if fitted.is_multilabel else log_posterior(scores)


def _check_possible(impossible: NDArray[np.int64]) -> None:
    if len(impossible):
        raise ImpossibleRowError.rows(impossible[:5].tolist(), len(impossible))


def predict(
    fitted: Fitted, X: Rows, answers: Answers | None = None, progress: Progress | None = None
) -> Any:
    """The most probable class of each document: see `TextClassifier.predict`."""
    answers = answers or Answers()
    # As in scikit-learn, the result is only labels for texts that are not in a table, and for a
    # table if `fit` got ``y`` beside its table.
    gives_labels = not is_table(X) or (fitted.has_separate_labels and in_memory(X))
    if gives_labels and answers == Answers():
        warn_stale(fitted, probabilities=False, decisions=True)
        predicted = labels_of(fitted, X)
        if progress is not None:
            progress(len(predicted))
        return predicted
    if not is_table(X):
        X = table_of_texts(X, fitted.columns, fitted.token_columns)
    warn_stale(fitted, probabilities=bool(answers.probability or answers.top), decisions=True)
    coverage, eager = coverage_of(fitted), in_memory(X)
    if isinstance(X, pl.DataFrame) and 0 < X.height <= _MAX_FEW_TEXTS and progress is None:
        result = _predict_few(fitted, X, answers, coverage.add)
    else:
        frame = predict_lazily(
            fitted, X, answers, progress, watch=coverage.add,
            on_end=None if eager else coverage.log)
        result = to_kind_of(X, frame, fitted.columns)
    if eager:
        coverage.warn_of_all()
    return result


def _predict_few(
    fitted: Fitted, X: pl.DataFrame, answers: Answers, watch: Watch
) -> pl.DataFrame:
    """As `predict_lazily`, but without a lazy query, which would take longer than the answers."""
    # Raises an error if columns are missing or of another type.
    scan(X, text=fitted.columns, tokens=fitted.token_columns)
    names = [*answer_schema(fitted, answers)]
    SchemaError.check_new(names, X.columns)
    answer_table = pl.concat(
        answer_counts(fitted, counts, answers) for counts in matrices(fitted, X, watch))
    return X.hstack(answer_table.select(names))


def accuracy(
    fitted: Fitted, X: Rows, y: ArrayLike | None, sample_weight: str | ArrayLike | None
) -> float:
    """The share of documents whose label is the answer; with weights, their share of the weights.

    If ``y`` is None, labels are in the label column of the table ``X``.

    Raises
    ------
    DataError
        If there are no rows, or a label is null.
    """
    if y is not None:
        # If y is a matrix, as at the fit, labels are compared as lists.
        y, _ = check_indicator(fitted.indicator, y)
        predicted = labels_of(replace(fitted, indicator=None), X)
        return share_right(predicted, y, sample_weight, fitted.label, fitted.label_type)
    if not is_table(X):
        raise ParameterError("y is needed if X is a sequence of texts")
    label = fitted.label
    weight = weight_column(X, sample_weight, [*fitted.columns, label])
    rows = fitted.scan(X, named_columns(sample_weight))
    with naming_source(X):
        # No other column may have the name of an answer.
        weights = [] if weight is None else [exactly([weight]).alias(ARRAY_COLUMN)]
        rows = with_weights(rows, sample_weight, weight).lazy().select(
            exactly([*fitted.columns, label]), *weights)
        answers = score_frame(fitted, rows, Answers())
        answer = "decision" if "decision" in answer_schema(fitted, Answers()) else "predicted"
        return share_right_of_table(
            answers, answer, labels_as(label, rows, fitted.label_type), label,
            ARRAY_COLUMN if weights else None)


def term_counts(fitted: Fitted, X: Rows) -> CountMatrix:
    """Counts of the vocabulary's terms: csr_array of int64 (n_documents, n_terms)."""
    # int64 as in scikit-learn's CountVectorizer, because sums of int32 could overflow.
    counts = stack_blocks(list(matrices(fitted, X)), len(fitted.terms), np.int64)
    if fitted.settings.binary:
        counts.data[:] = 1
    return counts


def top(fitted: Fitted, k: int, label: Any = None) -> pl.DataFrame:
    """The terms that distinguish each class best: see `TextClassifier.top`."""
    return top_terms(fitted.model, fitted.counts, fitted.form.weights, fitted.terms,
                     fitted.labels, k, label)


def explanation(
    fitted: Fitted, text: Text, k: int, labels: Sequence[Any] | None
) -> pl.DataFrame:
    """Explain one text by its k strongest terms, with one row per entry: see
    `TextClassifier.explain`."""
    return _explain(fitted, row_of(fitted, text), k, labels)


def _explain(
    fitted: Fitted, frame: pl.DataFrame, k: int, labels: Sequence[Any] | None
) -> pl.DataFrame:
    if type(k) is not int or k < 1:
        raise ParameterError.out_of_range("k", "an int >= 1", k)
    if fitted.is_multilabel:
        return _explain_labels(fitted, frame, k, labels)
    if labels is not None:
        raise ParameterError("labels is for a model of lists of labels; this one explains its "
                             "class against the runner-up")
    answer = score_frame(fitted, frame.lazy(), Answers(explain=k)).collect().row(0, named=True)
    if answer["predicted"] is None:
        raise ImpossibleRowError.rows([0], total=1)
    return explanation_table(answer, fitted.labels.dtype)


def explanation_against(fitted: Fitted, text: Text, k: int, label: Any) -> pl.DataFrame:
    """As `explanation`, but against ``label`` instead of the runner-up; it is not the answer."""
    classes = fitted.classes.tolist()
    rows = fitted.vocabulary.rows(row_of(fitted, text), fitted.columns)
    scores = fitted.form.scores(rows)
    explained = pl.DataFrame(explain_best(
        fitted, rows, scores, possible=pl.Series([True]), n_terms=k, against=classes.index(label)))
    answer = {"predicted": classes[int(best_class(scores)[0])], **explained.row(0, named=True)}
    return explanation_table(answer, fitted.labels.dtype)


def _explain_labels(
    fitted: Fitted, frame: pl.DataFrame, k: int, labels: Sequence[Any] | None
) -> pl.DataFrame:
    classes = fitted.labels.to_list()
    rows = fitted.vocabulary.rows(frame, fitted.columns)
    scores, thresholds = fitted.form.scores(rows), label_thresholds(classes, fitted.decision)
    is_predicted = choose_labels(scores, classes, fitted.decision)[0]
    if labels is None:
        index = np.flatnonzero(is_predicted)
        if not len(index):
            # No label is predicted: explain the label whose score is closest to its threshold.
            index = np.array([np.argmax(scores[0] - thresholds)])
    else:
        names = dict.fromkeys(known_class(classes, label, "label") for label in labels)
        index = np.array([classes.index(name) for name in names], dtype=np.int64)
    explained = explain_labels(
        fitted, rows, scores, row=np.zeros_like(index), k=index, n_terms=k)
    return label_explanation(explained, is_predicted[index], thresholds[index])


def highlight(
    fitted: Fitted, text: Text, k: int, labels: Sequence[Any] | None = None
) -> Explanation | LabelExplanation:
    """Explain one text with its terms highlighted: see `TextClassifier.highlight`."""
    frame, tokenizer = row_of(fitted, text), fitted.settings.tokenizer
    table = _explain(fitted, frame, k, labels)
    is_multilabel, texts = fitted.is_multilabel, frame.row(0, named=True)
    n_tokens = int(frame.select(tokenizer.expr(fitted.columns).list.len()).item() or 0)
    label_column = "label" if is_multilabel else "predicted"
    labels = table[label_column].unique(maintain_order=True).to_list()
    # Highlighting needs all terms of the text, not only the k strongest.
    entries = _explain(fitted, frame, max(k, n_tokens), labels if is_multilabel else None)
    all_terms = entries.filter(pl.col("part") == "term")
    pieces, n_known = {}, 0
    for label in labels:
        terms = all_terms.filter(pl.col(label_column) == label)
        pieces[label], _ = pieces_of(tokenizer, fitted.columns, texts, dict(
            terms.select("term", "contribution").iter_rows()))
        n_known = max(n_known, int(terms["count"].sum()))
    basis = "the labels' intercepts alone" if is_multilabel else fitted.model.without_terms
    note = "" if n_known else (f"no term of the text is known ({n_tokens:,} in it): the answer "
                               f"rests on {basis}")
    attributes: dict[str, Any] = {"measure": fitted.model.difference_name, "table": table,
                                  "terms": n_tokens, "known": n_known, "note": note}
    if not is_multilabel:
        return Explanation(
            labels[0], table["runner_up"][0], score=float(sum(table["contribution"])),
            pieces=pieces[labels[0]], **attributes)
    predicted = score_frame(fitted, frame.lazy(), Answers()).collect()["predicted"]
    return LabelExplanation(predicted[0].to_list(), pieces=pieces, **attributes)
