"""A spam filter for one message at a time, which is ready soon after the process has started.

    message (bytes) -> columns -> tokens -> the model's weights for them -> log-odds -> verdict

The scores are those of `TextClassifier.predict`, to the bit. They come only from the model file,
and neither scikit-learn nor SciPy is imported.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.bayes.calibration import Calibration
from textnb.bayes.decision import log_odds
from textnb.bayes.forms import Floats, LinearForm
from textnb.errors import ModelFileError, ParameterError, quantity
from textnb.files.archive import MAX_BYTES
from textnb.filter.verdict import MIN_LEARNED, Cutoffs, Judging, Verdict, deciding_terms, judging_of
from textnb.learning.fitted import Fitted
from textnb.mail.columns import message_columns
from textnb.mail.message import MAX_MESSAGE, MESSAGE_TOO_LARGE, MailMessage
from textnb.storage.textmodel import is_table_model, read_model, unpack_text
from textnb.text.tokens import Tokenizer


@dataclass(frozen=True, eq=False)
class MailFilter:
    """A spam filter: a trained model of mail, applied to one message at a time.

    Attributes
    ----------
    form : LinearForm
    terms : polars.Series
        Sorted, one per weight.
    tokenizer : Tokenizer
    columns : list of str
        Columns of a mail table (see `scan_mail`), or names of headers.
    judging : Judging
        The class of spam, the number of learned messages per class, thresholds, and why the
        calibration or the decision no longer holds.
    calibration : Calibration or None

    Examples
    --------
    >>> import tempfile, textnb
    >>> rows = pl.DataFrame({"body": ["cheap pills", "see you at noon"] * 10,
    ...                      "label": ["spam", "ham"] * 10})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     textnb.TextClassifier(text="body").fit(rows).save(f"{folder}/mail.textnb")
    ...     mail_filter = MailFilter.load(f"{folder}/mail.textnb")
    >>> mail_filter.judge(b"Subject: hello\\n\\nPills, cheap!").status
    'spam'
    """

    form: LinearForm
    terms: pl.Series
    tokenizer: Tokenizer
    columns: list[str]
    judging: Judging
    calibration: Calibration | None = None

    def __repr__(self) -> str:
        return f"MailFilter({quantity(len(self.terms), 'term')}, {self.judging})"

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        spam: Any = None,
        min_learned: int = MIN_LEARNED,
        cutoffs: Cutoffs | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> Self:
        """Load the filter of a model file.

        Parameters
        ----------
        path : path
        spam : label, optional
            The class that is filtered out; by default the class whose threshold was chosen for the
            model (its decision), or "spam" without one. If the threshold is of another class, and
            the model has a class "spam" too, the class must be named.
        min_learned : int
            If fewer messages of spam, or of all other classes, were learned, every verdict is
            "unsure".
        cutoffs : (float, float), optional
            Log-odds of spam, base e, in place of the model's decision: a message is ham up to the
            first, spam from the second on, and "unsure" between them.
        max_bytes : int
            A file is refused if its contents would take more memory.

        Raises
        ------
        ModelFileError, SourceError
            As `textnb.load`, and if it is a model of feature tables.
        ParameterError
            If the model has no such class, or it is not clear which of its classes is spam.
        """
        name = os.fspath(path)
        document, arrays = read_model(path, max_bytes)
        if is_table_model(document):
            raise ModelFileError(f"{name} is a model of feature tables, and a filter needs one of "
                                 "texts: name another file, or train one of mail (textnb train)")
        return cls.of_model(name, unpack_text(name, document, arrays, max_bytes), spam=spam,
                            min_learned=min_learned, cutoffs=cutoffs)

    @classmethod
    def of_model(cls, name: str, fitted: Fitted, **settings: Any) -> Self:
        """The filter of a loaded model. ``name`` is for errors; ``settings`` are as of `load`."""
        counts = fitted.counts
        if counts.is_multilabel:
            raise ParameterError.multilabel("a mail filter")
        judging = judging_of(
            name, dict(zip(counts.classes.tolist(), counts.class_count.tolist(), strict=True)),
            fitted.calibration, fitted.decision,
            are_log_probabilities=fitted.model.scores_are_log_probabilities,
            since_fit=0 if fitted.since_fit is None else fitted.since_fit.documents, **settings)
        return cls(fitted.form, fitted.terms, fitted.settings.tokenizer, fitted.columns, judging,
                   fitted.calibration)

    @property
    def lists(self) -> list[str]:
        """The columns that hold lists of tokens."""
        return self.tokenizer.columns_of_tokens(self.columns)

    def judge(self, message: bytes) -> Verdict:
        """The verdict on one message; it may hold any bytes.

        Parameters
        ----------
        message : bytes
            As received: headers, an empty line, the body.
        """
        row, parsed = self._row(message)
        scores, length = self._scores(row)
        errors = tuple(parsed.errors)
        if len(message) > MAX_MESSAGE:
            errors += (MESSAGE_TOO_LARGE,)
        if self.calibration is not None:
            scores = self.calibration.apply(scores, np.array([length]))
        return self.judging.verdict(log_odds(scores)[0].tolist(), length, errors)

    def deciding_terms(self, message: bytes, k: int) -> list[tuple[str, float]]:
        """The terms that decide the verdict on a message.

        Parameters
        ----------
        message : bytes
        k : int
            The number of terms.

        Returns
        -------
        list of (term, points)
            The points are what a term adds to the log-odds of spam against the most probable other
            class, base e. The largest absolute value comes first.
        """
        row, _ = self._row(message)
        indices, values = self.form.features.map_row(*self._counts(row))
        terms = self.terms.gather(indices).to_list()
        # The temperature, by which calibration divides scores.
        divisor = 1.0 if self.calibration is None else float(
            self.calibration.temperatures(np.array([values.sum()]))[0])
        weighted_terms = zip(terms, self.form.weights[indices].tolist(), strict=True)
        return deciding_terms([*zip(values.tolist(), weighted_terms, strict=True)],
                              self.form.intercept.tolist(), self.judging.spam_index, divisor, k)

    def _scores(self, row: pl.DataFrame) -> tuple[Floats, float]:
        """Joint log-probabilities (1, n_classes), and the sum of the mapped counts of terms."""
        indices, counts = self._counts(row)
        length = self.form.features.map_row(indices, counts)[1].sum()
        return self.form.scores_of_one(indices, counts)[None, :], float(length)

    def _row(self, message: bytes) -> tuple[pl.DataFrame, MailMessage]:
        """The message as a table of one row with the model's columns, and its parsed form."""
        lists = self.lists
        values, parsed = message_columns(message, self.columns, lists)
        return pl.DataFrame(
            {name: [values[name]] for name in self.columns},
            schema={name: pl.List(pl.String) if name in lists else pl.String()
                    for name in self.columns}), parsed

    def _counts(self, row: pl.DataFrame) -> tuple[NDArray[np.int64], Floats]:
        """The indices in ``terms`` of the terms of a message, ascending, and their counts."""
        tokens = row.select(self.tokenizer.expr(self.columns).explode().alias("term")).to_series()
        counts = tokens.drop_nulls().value_counts().sort("term")
        indices = self.terms.search_sorted(counts["term"]).to_numpy().astype(np.int64)
        # A term after all of the model's terms would have the index after the last.
        is_inside = indices < len(self.terms)
        is_known = np.zeros(len(indices), dtype=np.bool_)
        is_known[is_inside] = (self.terms.gather(indices[is_inside])
                               == counts["term"].filter(pl.Series(is_inside))).to_numpy()
        return indices[is_known], counts["count"].to_numpy()[is_known].astype(np.float64)

