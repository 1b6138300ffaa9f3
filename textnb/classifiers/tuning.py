"""A classifier of texts with the settings that do best on its rows."""

from __future__ import annotations

from typing import Any

from textnb.classifiers.text import TextClassifier
from textnb.frames.kinds import convert_table
from textnb.learning.text_settings import columns_of
from textnb.runtime.progress import watched
from textnb.selection.search import FOLDS, Advance, search


def tune(
    frame: Any, *, text: Any = "text", label: str = "label", metric: str | None = None,
    positive: Any = None, trials: int | None = None, seconds: float | None = None,
    folds: int = FOLDS, groups: str | None = None, time: str | None = None, seed: int = 0,
    progress: Advance | bool | None = None,
) -> TextClassifier:
    """Search for the tokenizer, limits, model and parameters that classify these rows best.

    A fifth of the rows is set apart (whole groups, or the last in time). Settings are compared by
    cross-validation on the others: `NBLinear` with its defaults, then with pairs of words, on all
    of them; four at a time on a third of the rows, and the best of them on all [1]_; then the
    neighbours of the best. The best settings are evaluated once, on the rows that were set
    apart [2]_, and the model is learned from all rows.

    Parameters
    ----------
    frame : table or path
        With the text and label columns. Its rows are collected.
    text : str or sequence of str
    label : str
    metric : str, optional
        "accuracy" (the default), "macro-f1", "log-loss", "precision@recall=R" (of the thresholds by
        which the recall is R or more, the highest precision), or "recall@fpr=R" (the highest recall
        with at most a share R of false positives). Of lists of labels "micro-f1" (the default),
        "macro-f1", "example-f1" or "subset-accuracy".
    positive : label, optional
        The positive class of the last two.
    trials : int, optional
        Trials to run; 40 if neither this nor ``seconds`` is given. The first is of the defaults,
        and from the second on each search compares other settings with them on all rows. It ends
        earlier if no neighbour is left.
    seconds : float, optional
        Begin no trial after this time, but that of the best of a race, on all rows. The models
        that are learned at the end take more time. A search with as many ``trials`` as were run
        gives the same result.
    folds : int
        Of each trial, 2 or more.
    groups, time : str, optional
        As in `cross_validate`.
    seed : int
        Divides and orders; must be 0 with ``time``.
    progress : callable or bool, optional
        Called with each row of the table of trials; or True for a line in a terminal or a notebook
        with the best so far, the share that is done and the time that is left.

    Returns
    -------
    TextClassifier
        Fitted on all rows. ``tuned_`` has the trials, the estimate, and the code that makes this
        model without a search. It has the same bits for the same rows, seed and number of trials.
        With lists of labels, it has the thresholds with the best F1 of each label ("macro-f1"), or
        of all pairs of a document and a label (other metrics), on five folds of all rows. In a
        trial, each fold is evaluated with the thresholds of the other folds, and the rows that were
        set apart with those of all folds.

    Raises
    ------
    ParameterError
        If a setting is out of range, or the rows are too few for the folds.
    DataError
        If there are no rows, one class alone, or a label, group or time is null.

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
    names = columns_of(text, label)
    others = [name for name in (groups, time) if name is not None]
    with watched(progress, "tuning") as advance:
        result = search(
            convert_table(frame, [*names, label, *others]), text=text, label=label, metric=metric,
            positive=positive, trials=trials, seconds=seconds, folds=folds, groups=groups,
            time=time, seed=seed, progress=None if progress is True else advance)
    model = TextClassifier.of(result.fitted)
    model.tuned_ = result
    return model
