"""The cards by name, and the one way to load a corpus by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import polars as pl

from corpora import (
    ag_news,
    bbc_news,
    imdb,
    indicnews_bengali,
    mnist,
    newsgroups,
    r8,
    sms_spam,
    spamassassin,
)
from corpora.card import Card, stored_file
from textnb.errors import ParameterError

Loader = Callable[[str | Path | None], pl.LazyFrame]

_ALL: tuple[tuple[Card, Loader], ...] = (
    (sms_spam.CARD, sms_spam.load),
    (newsgroups.CARD, newsgroups.load),
    (ag_news.CARD, ag_news.load),
    (imdb.CARD, imdb.load),
    (bbc_news.CARD, bbc_news.load),
    (r8.CARD, r8.load),
    (indicnews_bengali.CARD, indicnews_bengali.load),
    (spamassassin.CARD, spamassassin.load),
    (mnist.CARD, mnist.load),
)

CARDS: Mapping[str, Card] = MappingProxyType({card.name: card for card, _ in _ALL})
_LOADERS = {card.name: loader for card, loader in _ALL}


def load(name: str, path: str | Path | None = None) -> pl.LazyFrame:
    """Load a corpus.

    Parameters
    ----------
    name
        A key of `CARDS`.
    path
        Where the corpus is, in the form in which it is published. By default the stored copy in
        the folder of the environment variable TEXTNB_CORPORA is read.

    Returns
    -------
    LazyFrame
        Columns `label`, `text` (MNIST has `pixels` instead), `split` where an official split
        exists, and what else identifies a row. Both forms have the same schema.

    Raises
    ------
    FileNotFoundError
        If the variable is not set or the files are not there.
    textnb.errors.SourceError
        If a file is not what it should be; the message names the file and the line.
    """
    return _LOADERS[_known(name)](path)


def available(name: str) -> bool:
    """Return whether the stored copy of a corpus is there to be loaded."""
    try:
        stored_file(CARDS[_known(name)])
    except FileNotFoundError:
        return False
    return True


def _known(name: str) -> str:
    if name not in CARDS:
        raise ParameterError.unknown_choice("name", name, CARDS)
    return name
