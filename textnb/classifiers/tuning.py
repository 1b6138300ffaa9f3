"""`tune`: a search for the settings that classify some rows best."""

from __future__ import annotations

from typing import Any

from textnb.classifiers.text import TextClassifier
from textnb.frames.kinds import convert_table
from textnb.learning.text_settings import text_columns_of
from textnb.runtime.progress import show_progress
from textnb.selection.search import FOLDS, Advance, search


def tune(
    frame: Any, *, text: Any = "text", label: str = "label", metric: str | None = None,
    positive: Any = None, trials: int | None = None, seconds: float | None = None,
    folds: int = FOLDS, groups: str | None = None, time: str | None = None, seed: int = 0,
    progress: Advance | bool | None = None,
) -> TextClassifier:
    """Search for the tokenizer, ``min_df``, model and parameters that classify these rows best.

    A fifth of the rows is held out: whole groups, or the last in time. Settings are compared by
    cross-validation on the other rows: first `NBLinear` with its defaults, and with single words;
    then races of four settings on a third of these rows, whose winner is tried on all of them [1]_;
    then settings that differ from the best in one step. The best settings are evaluated once, on
    the rows that were held out [2]_, and the model is learned from all rows.

    Parameters
    ----------
    frame : table or path
        It has the text and label columns, and is read into memory.
    text : str or sequence of str
    label : str
    metric : str, optional
        "accuracy" (the default), "macro-f1", "log-loss", "precision@recall=R" (the highest
        precision of a threshold with a recall of R or more), or "recall@fpr=R" (the highest recall
        of a threshold with a false positive rate of R or less). For lists of labels "micro-f1" (the
        default), "macro-f1", "example-f1" or "subset-accuracy".
    positive : label, optional
        The positive class for "precision@recall=R" and "recall@fpr=R".
    trials : int, optional
        The number of trials; 40 if neither this nor ``seconds`` is given. The first trial has the
        default settings, and the second already compares them with others on the same rows. The
        search ends earlier if no settings similar to the best are left.
    seconds : float, optional
        Start no trial after this time, except of the winner of a race. Learning the final models
        takes more time. A search with as many ``trials`` as were run gives the same result.
    folds : int
        Folds of each trial, 2 or more.
    groups, time : str, optional
        As in `cross_validate`.
    seed : int
        For the division into folds and the order of settings; must be 0 with ``time``.
    progress : callable or bool, optional
        Called with each row of the table of trials; or True for a line in a terminal or a notebook
        with the best score so far, the share of the search that is done, and the time left.

    Returns
    -------
    TextClassifier
        Fitted on all rows. ``tuned_`` has the trials, the estimate, and the code that makes this
        model without a search. It has the same bits for the same rows, seed and number of trials.
        With lists of labels, it has thresholds that maximize F1 on five folds of all rows: the F1
        of each label for "macro-f1", or that of all pairs of a document and a label for other
        metrics. In a trial, each fold is evaluated with thresholds chosen on the other folds, and
        the held-out rows with those chosen on all folds.

    Raises
    ------
    ParameterError
        If a setting is out of range, or the rows are too few for the folds.
    DataError
        If there are no rows or only one class, or a label, group or time is null.

    References
    ----------
    .. [1] K. Jamieson, A. Talwalkar (2016). Non-stochastic best arm identification and
       hyperparameter optimization. AISTATS, algorithm 1: successive halving.
    .. [2] G. C. Cawley, N. L. C. Talbot (2010). On over-fitting in model selection and subsequent
       selection bias in performance evaluation. JMLR 11, section 5.

    Examples
    --------
    >>> import polars as pl
    >>> rows = pl.DataFrame({"text": ["good film", "a good one", "bad film", "a bad one"] * 5,
    ...                      "label": ["pos", "pos", "neg", "neg"] * 5})
    >>> model = tune(rows, trials=2)
    >>> print(model.tuned_.code)
    from textnb import NBLinear, TextClassifier
    <BLANKLINE>
    model = TextClassifier(NBLinear()).fit(rows)
    """
    columns = [*text_columns_of(text, label), label,
               *(name for name in (groups, time) if name is not None)]
    with show_progress(progress, "tuning") as advance:
        # With True, `search` itself notes its trials on the line that is shown.
        result = search(
            convert_table(frame, columns), text=text, label=label, metric=metric,
            positive=positive, trials=trials, seconds=seconds, folds=folds, groups=groups,
            time=time, seed=seed, progress=None if progress is True else advance)
    model = TextClassifier.of(result.fitted)
    model.tuned_ = result
    return model
