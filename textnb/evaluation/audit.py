"""What is wrong with labelled rows, before a model of them is trusted.

    rows -> texts, classes, duplicates, leaks -> findings
         -> probabilities by models without the row -> suspected labels, confusable classes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from textnb.bayes.labels import Labels
from textnb.errors import DataError, ParameterError, quantity
from textnb.evaluation.duplicates import WORD_TOKENIZER, find_duplicates_in
from textnb.evaluation.label_errors import (
    LeftOutRows,
    inseparable_classes,
    leave_rows_out,
    reasons,
    suspect_labels,
)
from textnb.evaluation.leaks import find_leaks
from textnb.evaluation.scripts import rows_in_another_script
from textnb.frames.batches import Progress
from textnb.frames.failures import naming_source
from textnb.frames.scan import scan
from textnb.frames.token_columns import as_text, lists_of_tokens
from textnb.learning.documents import labels_of
from textnb.learning.text_settings import TextSettings
from textnb.models.base import Model
from textnb.models.known import text_models
from textnb.models.nblinear import NBLinear
from textnb.runtime import notebook
from textnb.scoring.columns import lists_of_mask
from textnb.text.tokens import Tokenizer

# The kinds of findings, the most serious first.
KINDS = ("leak", "in test", "contradiction", "label", "missing label", "superfluous label",
         "duplicate", "no text", "script", "confusable classes", "few rows")
# A class is learned badly from fewer rows than the first number. Labels of a class with fewer rows
# than the second number are not judged, because one fold may hold all of them.
_MIN_ROWS_TO_LEARN, _MIN_ROWS_TO_JUDGE = 10, 5
# The model that judges labels. As some of them are wrong, it has more regularisation than a model
# for predictions. Words alone take a third of the time of words and pairs; this tolerance of the
# solver saves a sixth of the time.
_JUDGE = NBLinear(C=0.1, tol=0.03)
# A scan of mail, or of a folder per class, adds this column: its folders may be the classes.
_PATH_COLUMN = "path"


@dataclass(frozen=True, eq=False)
class Audit:
    """What is wrong with labelled rows.

    Attributes
    ----------
    rows : int
    method : str
        How labels were judged, such as "5 parts (NBLinear)": the rows of each part by a model of
        the other parts. Empty if they could not be.
    findings : DataFrame
        One row for each finding: ``row`` (the number of the row from 0; null for a finding about a
        class or a column), ``finding`` (its kind, see `textnb.audit`), ``suggested`` (the label, or
        list of labels, that the row should have; null if that is not known), ``confidence`` and
        ``evidence``. Findings are in the order of kinds, and the most probable of a kind come
        first; suspected labels are in the order of their margins.
    margins : Series of Float64 (n_rows,)
        The probability that the label of a row is wrong minus the probability that it is right, by
        a model without the row; for lists, of the label that is most likely wrong. Null for a row
        that was not judged. The higher, the more suspicious.
    """

    rows: int
    method: str
    findings: pl.DataFrame
    margins: pl.Series

    def __repr__(self) -> str:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in self.counts.items() if n)
        return f"Audit({quantity(self.rows, 'row')}: {counts or 'no findings'})"

    def __str__(self) -> str:
        return f"{self!r}\n{self.findings.head(notebook.MAX_ROWS)}"

    def _repr_html_(self) -> str:
        return notebook.box(
            "Audit", notebook.table(["finding", "number"], [
                (kind, n) for kind, n in self.counts.items() if n]),
            notebook.frame_table(
                self.findings, f"Findings in {quantity(self.rows, 'row')}, numbered from 0"))

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of each kind."""
        return {kind: int((self.findings["finding"] == kind).sum()) for kind in KINDS}

    def check(self, fail_on: Sequence[str]) -> None:
        """Raise DataError if there is a finding of one of these kinds."""
        check_kinds(fail_on)
        counts = {kind: n for kind, n in self.counts.items() if n and kind in fail_on}
        if counts:
            first = self.findings.filter(pl.col("finding").is_in([*counts])).row(0, named=True)
            prefix = "" if first["row"] is None else f"row {first['row']}: "
            # `naming_settings` writes the parameter {fail_on} as Python or the command line does.
            raise DataError.naming_settings(
                "the audit finds {found}, and {fail_on} asks for none; the first is: {first}",
                found=", ".join(f"{n:,} {kind!r}" for kind, n in counts.items()),
                first=f"{prefix}{first['evidence']}")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready counts and findings."""
        return {"rows": self.rows, "method": self.method, "counts": self.counts,
                "findings": self.findings.to_dicts()}


def check_kinds(fail_on: Sequence[str]) -> None:
    """Raise ParameterError if one of these is not a kind of findings."""
    for kind in fail_on:
        if kind not in KINDS:
            raise ParameterError.unknown_choice("fail_on", kind, KINDS)


def audit(
    frame: Any, *, test: Any = None, text: str | Sequence[str] = "text", label: str = "label",
    model: Model | str | None = None, tokenizer: Tokenizer | None = None, near: float | None = 0.8,
    progress: Progress | None = None,
) -> Audit:
    """Find what is wrong with labelled rows: labels, leaks, duplicates, texts and classes.

    Each finding has a kind:

    - "leak": a column, a line of a header, the first or last words, or a term that almost
      determines a class. In texts, its presence and the class have a correlation (phi) of at least
      0.8, or 0.98 for a term at any place. A column that is neither text nor label leaks if, in
      rows sorted by it, neighbours share their label almost always: at least 0.95, where 0 is as
      often as by chance and 1 is always. The class, and all other classes together, need 20 rows
      each. A column ``path`` is left out, as labels may come from folders.
    - "in test": the text, or nearly the same, is in the test rows too.
    - "contradiction": the text, or nearly the same, is in an earlier row that has another label.
    - "label": the label is probably wrong: see `textnb.evaluation.label_errors`. For lists of
      labels, the kinds are "missing label" and "superfluous label".
    - "duplicate": the text, or nearly the same, is in an earlier row.
    - "no text": there is neither a letter nor a digit.
    - "script": most letters of the text are in a script that fewer than 5 % of the rows use.
    - "confusable classes": the model can hardly separate two classes: the area under the ROC curve
      of one against the other is below 0.75.
    - "few rows": a class has fewer than 10 rows.

    Parameters
    ----------
    frame : DataFrame, LazyFrame or path
        It is read into memory.
    test : DataFrame, LazyFrame or path, optional
        Test rows, which should share no text with those of ``frame``.
    text : str or sequence of str
        Text column, or columns.
    label : str
        The label column: of one label, or of lists.
    model : model of texts or its kind, optional
        The model that judges labels; by default ``NBLinear(C=0.1, tol=0.03)`` on words. A model of
        counts leaves out one row at a time; others are fitted again for each fold, and `NBLinear`
        starts from the weights of all rows.
    tokenizer : Tokenizer, optional
        The tokenizer of ``model``.
    near : float or None
        As in `find_duplicates`; None for only exact duplicates, which is quicker.
    progress : callable, optional
        Called with the number of rows of each batch that was counted.

    Returns
    -------
    Audit

    Raises
    ------
    DataError
        If there are no rows, or a label is null.

    Examples
    --------
    >>> rows = pl.DataFrame({"text": ["good film", "bad film", "Good film!"] * 2 + ["..."],
    ...                      "label": ["pos", "neg", "neg", "pos", "neg", "neg", "pos"]})
    >>> audit(rows)
    Audit(7 rows: 3 contradiction, 1 duplicate, 1 no text, 2 few rows)
    """
    return audit_numbered(frame, number_column=None, test=test, text=text, label=label,
                          model=model, tokenizer=tokenizer, near=near, progress=progress)


def audit_numbered(
    frame: Any, number_column: str | None, *, test: Any, text: str | Sequence[str], label: str,
    model: Model | str | None = None, tokenizer: Tokenizer | None = None, near: float | None = 0.8,
    progress: Progress | None = None,
) -> Audit:
    """As `audit`, for some rows of a file: ``number_column`` is the column of their row numbers."""
    settings = _settings(model, text, label, tokenizer)
    with naming_source(frame):
        # tokens=None: each text column may hold strings or lists of tokens.
        lazy = scan(frame, text=settings.columns, label=label, tokens=None)
        token_columns = lists_of_tokens(lazy, settings.columns)
        rows = lazy.collect()
    numbers = pl.Series(range(rows.height), dtype=pl.Int64)
    if number_column is not None:
        numbers, rows = rows[number_column].cast(pl.Int64), rows.drop(number_column)
    if token_columns and not settings.token_columns:
        settings = settings.with_token_columns(token_columns)
    if not rows.height:
        raise DataError.no_rows("the input", "there is nothing to audit")
    texts = rows.select(pl.concat_str(
        [as_text(rows.schema, name) for name in settings.columns], separator="\n",
        ignore_nulls=True)).to_series().fill_null("")
    auditor = _Auditor(settings, rows, texts, labels_of(rows[label]), numbers)
    return auditor.run(test, near, progress)


def _settings(
    model: Model | str | None, text: str | Sequence[str], label: str, tokenizer: Tokenizer | None
) -> TextSettings:
    if model is None:
        model, tokenizer = _JUDGE, Tokenizer() if tokenizer is None else tokenizer
    if isinstance(model, str):
        if model not in text_models():
            raise ParameterError.unknown_choice("model", model, [*text_models()])
        model = text_models()[model]()
    if not isinstance(model, Model):
        raise ParameterError.out_of_range("model", "a model of texts, or its kind", model)
    return TextSettings.of(model, text=text, label=label, tokenizer=tokenizer)


class _Auditor:
    """The rows, and the findings so far.

    ``texts`` are the text columns of each row in one string, and ``numbers`` the numbers of the
    rows that findings name.
    """

    def __init__(
        self, settings: TextSettings, rows: pl.DataFrame, texts: pl.Series, labels: Labels,
        numbers: pl.Series,
    ) -> None:
        self.settings, self.rows, self.texts, self.labels = settings, rows, texts, labels
        self.numbers = numbers
        # Whether rows have lists of labels.
        self.of_lists = labels.is_multilabel
        self.names = pl.Series(labels.classes.tolist())
        dtype = self.names.dtype
        self.schema: dict[str, Any] = {"row": pl.Int64, "finding": pl.String,
                       "suggested": pl.List(dtype) if self.of_lists else dtype,
                       "confidence": pl.Float64, "evidence": pl.String}
        self.findings: list[pl.DataFrame] = []

    def add(
        self, kind: str, evidence: Sequence[str], rows: ArrayLike | None = None,
        suggested: pl.Series | None = None, confidence: ArrayLike | None = None,
    ) -> None:
        """Add findings of one kind: one for each piece of evidence."""
        n = len(evidence)
        self.findings.append(pl.DataFrame({
            "row": [None] * n if rows is None else self.numbers.gather(np.asarray(
                rows, dtype=np.int64)), "finding": [kind] * n,
            "suggested": [None] * n if suggested is None else suggested,
            "confidence": [None] * n if confidence is None else confidence,
            "evidence": evidence}, schema=self.schema))

    def run(self, test: Any, near: float | None, progress: Progress | None) -> Audit:
        has_text = self._check_texts()
        self._check_duplicates(test, near)
        sizes = self.labels.sizes
        self.add("few rows", [f"{self.names[k]!r} has {quantity(int(sizes[k]), 'row')}"
                              for k in np.flatnonzero(sizes < _MIN_ROWS_TO_LEARN).tolist()])
        is_judged = has_text if self.of_lists else (
            has_text & (sizes[self.labels.codes] >= _MIN_ROWS_TO_JUDGE))
        judged_rows, method = np.flatnonzero(is_judged), ""
        margins = np.full(self.rows.height, np.nan)
        labels = self.labels.of_rows(is_judged).without_unused()
        is_enough = (len(judged_rows) >= _MIN_ROWS_TO_JUDGE and len(labels.classes) > 0
                     if self.of_lists else len(labels.classes) > 1)
        if is_enough:
            left_out = leave_rows_out(self.settings, self.rows[judged_rows], progress)
            method = f"{left_out.held_out.method} ({self.settings.model.name})"
            margins[judged_rows] = self._check_labels(left_out, judged_rows)
            other_columns = self.rows.drop(*self.settings.columns, self.settings.label,
                                           _PATH_COLUMN, strict=False)
            leak_findings = [*find_leaks(other_columns[judged_rows], self.texts[judged_rows],
                                         labels, left_out.counts, left_out.fitted.terms)]
            self.add("leak", [description for _, description in leak_findings],
                     confidence=[correlation for correlation, _ in leak_findings])
        findings = pl.concat(self.findings).sort(
            pl.col("finding").cast(pl.Enum(KINDS)), maintain_order=True)
        return Audit(self.rows.height, method, findings,
                     pl.Series("margin", margins).fill_nan(None))

    def _check_texts(self) -> NDArray[np.bool_]:
        """Add rows without a text or in another script, and return which rows have a text."""
        has_text = self.texts.str.contains(r"[\p{L}\p{N}]").to_numpy()
        empty = np.flatnonzero(~has_text)
        self.add("no text", ["neither a letter nor a digit"] * len(empty), empty)
        in_other_script = rows_in_another_script(self.texts)
        self.add("script", [f"{share:.0%} of the letters are {script}" for script, share in
                            in_other_script.select("script", "share").iter_rows()],
                 in_other_script["row"], confidence=in_other_script["share"])
        return has_text

    def _check_duplicates(self, test: Any, near: float | None) -> None:
        find = partial(
            find_duplicates_in, text=self.settings.columns, label=self.settings.label, near=near,
            tokenizer=WORD_TOKENIZER.with_params(token_columns=tuple(self.settings.token_columns)))
        # In each pair, "row" repeats the row "of", an earlier one.
        pairs = find({"the input": self.rows}).pairs.sort("similarity", descending=True)
        pairs = pairs.with_columns(self.numbers.gather(pairs["of"]).alias("of"))
        kinds = [("contradiction", pairs.filter("conflict"), "row {} ({})"),
                 ("duplicate", pairs.filter(~pl.col("conflict")), "row {} ({})")]
        if test is not None:
            # Here "of" is a row of the first table, the test rows.
            tables = {"the test set": test, "the input": self.rows}
            pairs = find(tables).pairs.sort("similarity", descending=True)
            kinds.append(("in test", pairs, "row {} of the test rows ({})"))
        for kind, pairs, template in kinds:
            self.add(kind, [*_describe(pairs, template)], pairs["row"],
                     confidence=pairs["similarity"])

    def _check_labels(self, left_out: LeftOutRows, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Add suspected labels and confusable classes, and return the margins of ``rows``."""
        probabilities, actual = left_out.probabilities, left_out.held_out.actual
        suspects, names = suspect_labels(probabilities, actual), left_out.fitted.labels
        labels = self.rows[self.settings.label][rows]
        labels = labels.cast(pl.List(pl.String)).list.join(", ") if self.of_lists else (
            labels.cast(pl.String))
        row_names = self.numbers.gather(pl.Series(rows)).cast(pl.String) + " (" + labels + ")"
        evidence = [*reasons(left_out, suspects, row_names)]
        suspect_rows = rows[suspects.rows]
        if not self.of_lists:
            self.add("label", evidence, suspect_rows, names.gather(pl.Series(suspects.labels)),
                     suspects.confidence)
            for a, b, area in inseparable_classes(probabilities, actual):
                # Confidence is 1 for an area of 1/2, which chance alone gives.
                self.add("confusable classes", [
                    f"{names[a]!r} and {names[b]!r}: the area under the ROC of one against the "
                    f"other is {area:.2f}"], confidence=[2 * (1 - area)])
            return suspects.margins
        corrected = actual.copy()
        corrected[suspects.rows, suspects.labels] = suspects.missing
        corrected_lists = lists_of_mask(corrected, names)
        for kind, is_of_kind in (("missing label", suspects.missing),
                                 ("superfluous label", ~suspects.missing)):
            of_kind = np.flatnonzero(is_of_kind)
            self.add(kind, [f"{names[int(suspects.labels[i])]!r}; {evidence[i]}" for i in of_kind],
                     suspect_rows[of_kind],
                     corrected_lists.gather(pl.Series(suspects.rows[of_kind])),
                     suspects.confidence[of_kind])
        return suspects.margins


def _describe(pairs: pl.DataFrame, template: str) -> Iterator[str]:
    """For each pair, in words, how much text its rows share; ``template`` names the row "of"."""
    for number, label, similarity, exact in pairs.select(
            "of", "label_of", "similarity", "exact").iter_rows():
        yield (f"{'the words' if exact else f'{similarity:.0%} of the runs of words'} of "
               f"{template.format(number, label)}")
