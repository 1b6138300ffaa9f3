"""Small generated samples, so that everything runs without a download.

The same arguments give the same rows, and a longer sample begins with the shorter one. Classes
take turns (three of ham, one of spam), so that small samples too have rows of each. Classes share
words, so that no model is perfect.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from textnb.errors import ParameterError, SourceError
from textnb.files.replace import check_named, check_target, replace_file, report_write_errors

# Templates of messages: a word in braces stands for one of its `_FILLERS`.
_HAM = (
    "{greeting} {name}, are we still on for {meal} {day}?",
    "Running late, the {vehicle} is stuck. See you at {hour}",
    "{name} said \"{remark}\" and I couldn't stop laughing",
    "Can you pick up {item} and {item} on the way home?",
    "Sorry, can't talk now, I'm in a {event}. Call you {day}",
    "Thanks for the {item}, the kids loved it! {greeting} to {name}",
    "Did you win the {game}? Text me when the {event} is over",
    "Your {item} is still on my desk, {name}. Free {day}?",
)
_SPAM = (
    "CONGRATULATIONS {name}! You have WON a {prize}. Call {phone} to claim NOW",
    "Free {prize} this {day}! Txt {keyword} to {code}. T&Cs apply, 18+ only",
    "URGENT: your {account} is suspended, verify at {link} before {hour}",
    "{greeting}, last chance: £{amount} cash, \"guaranteed\". Reply {keyword}, stop? Txt STOP",
    "Hot offer; cheap {item}, 50% off, order today at {link}",
    "You are selected for a {prize} worth £{amount}! Claim code {code}",
)
_SPAM_DOMAINS = ("offers.example", "x.example")
_FILLERS: Mapping[str, Sequence[str]] = {
    "greeting": ("Hi", "Hey", "Hello", "Good morning", "Namaste", "Hej"),
    "name": ("Asha", "Ben", "Carla", "Dmitri", "Elif", "Femi", "Zoë"),
    "meal": ("lunch", "dinner", "a coffee", "breakfast"),
    "day": ("today", "tomorrow", "Monday", "Friday", "weekend"),
    "vehicle": ("bus", "tram", "train", "car"),
    "hour": ("noon", "6 pm", "half past eight", "midnight"),
    "remark": ("no way, José", "it's only Tuesday", "who ordered the soup?"),
    "item": ("milk", "phone charger", "book", "cheese", "printer paper", "blue scarf"),
    "event": ("meeting", "lecture", "concert", "match"),
    "game": ("match", "quiz", "raffle", "chess game"),
    "prize": ("holiday", "new phone", "cash prize", "shopping voucher"),
    "phone": ("0900 555 0101", "0900 555 0147", "0900 555 0199"),
    "keyword": ("WIN", "YES", "PRIZE", "CLAIM"),
    "code": ("55501", "55502", "55503"),
    "account": ("bank account", "mailbox", "parcel delivery"),
    "link": ("http://prize.example", "http://verify.example/login", "www.offers.example"),
    "amount": ("100", "500", "2000"),
}

_TOPIC_WORDS: Mapping[str, Sequence[str]] = {
    "Business": (
        "profit", "shares", "market", "merger", "oil", "bank", "quarter", "investors", "sales",
        "earnings", "prices", "economy", "deal", "revenue", "exporters",
    ),
    "Sci/Tech": (
        "software", "researchers", "satellite", "browser", "chip", "virus", "gene", "telescope",
        "network", "robot", "orbit", "laptop", "algorithm", "fossil", "battery",
    ),
    "Sports": (
        "season", "coach", "goal", "tournament", "striker", "medal", "innings", "championship",
        "penalty", "league", "quarterback", "sprint", "stadium", "referee", "transfer",
    ),
    "World": (
        "minister", "election", "troops", "treaty", "parliament", "refugees", "ceasefire",
        "embassy", "president", "border", "protest", "talks", "sanctions", "rebels", "summit",
    ),
}
_SHARED_WORDS = (
    "new", "after", "report", "first", "over", "team", "record", "win", "loss", "leader", "city",
    "week", "plan", "country", "group", "world", "company", "attack", "test", "power",
)


def mail(n: int, seed: int = 0) -> dict[str, list[bytes]]:
    """Generate mail messages with headers, MIME and HTML; every fourth is spam.

    Parameters
    ----------
    n
        Number of messages.
    seed
        Another seed gives other messages.

    Returns
    -------
    dict
        Messages (RFC 5322) of `ham` and of `spam`.

    Examples
    --------
    >>> messages = mail(4)
    >>> len(messages["ham"]), len(messages["spam"])
    (3, 1)
    """
    rng = random.Random(f"mail {seed}")
    start = datetime(2025, 1, 6, 8, tzinfo=UTC)
    messages: dict[str, list[bytes]] = {"ham": [], "spam": []}
    for number, label in enumerate(_labels(rng, ("ham", "ham", "ham", "spam"), n)):
        text = rng.choice(_SPAM if label == "spam" else _HAM).format_map(_Choices(rng))
        message = EmailMessage(policy=SMTP.clone(linesep="\n"))
        words = text.split()
        domain = "friends.example" if label == "ham" else rng.choice(_SPAM_DOMAINS)
        message["From"] = f"{rng.choice(_FILLERS['name'])} <{rng.randrange(1000)}@{domain}>"
        message["To"] = "you@home.example"
        message["Subject"] = " ".join(words[:5])
        message["Date"] = start + timedelta(minutes=41 * number)
        message["Message-ID"] = f"<{number}.{seed}@{domain}>"
        if label == "spam" and rng.random() < 0.5:
            paragraphs = "".join(f"<p>{escape(word)}</p>" for word in words)
            message.set_content(f"<html><body>{paragraphs}</body></html>", subtype="html")
        else:
            message.set_content(text)
        messages[label].append(message.as_bytes())
    return messages


def mailbox(messages: Sequence[bytes]) -> bytes:
    """Write messages as one mbox file; lines that begin with ``From `` are escaped.

    Examples
    --------
    >>> mailbox([b"Subject: a\\n\\nFrom here\\n"])
    b'From - Mon Jan  6 08:00:00 2025\\nSubject: a\\n\\n>From here\\n\\n'
    """
    escaped = (re.sub(rb"(?m)^(>*From )", rb">\1", message) for message in messages)
    return b"".join(b"From - Mon Jan  6 08:00:00 2025\n" + message + b"\n" for message in escaped)


def news(n: int, seed: int = 0) -> pl.DataFrame:
    """Generate titles and descriptions of news in four topics, as in AG News.

    Parameters
    ----------
    n
        Number of rows.
    seed
        Another seed gives other news.

    Returns
    -------
    DataFrame
        Columns `label` (Business, Sci/Tech, Sports, World), `text` (title and description),
        `title` and `description`.

    Examples
    --------
    >>> news(4).columns, sorted(news(4)["label"])
    (['label', 'text', 'title', 'description'], ['Business', 'Sci/Tech', 'Sports', 'World'])
    """
    rng = random.Random(f"news {seed}")
    rows = []
    for label in _labels(rng, tuple(_TOPIC_WORDS), n):
        title = " ".join(_words(rng, label, count=5)).capitalize()
        description = " ".join(_words(rng, label, rng.randrange(8, 20))).capitalize() + "."
        rows.append((label, f"{title} {description}", title, description))
    schema = dict.fromkeys(("label", "text", "title", "description"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def topics(n: int, seed: int = 0) -> pl.DataFrame:
    """Generate titles and descriptions of news that have any number of the four topics.

    Parameters
    ----------
    n
        Number of rows.
    seed
        Another seed gives other news.

    Returns
    -------
    DataFrame
        Columns `topics` (List(String), empty for news of none of the topics), `title` and
        `description`.

    Examples
    --------
    >>> topics(4)["topics"].list.len().to_list()
    [1, 2, 3, 1]
    """
    rng = random.Random(f"topics {seed}")
    rows = []
    for n_topics in _labels(rng, ("0", "1", "1", "1", "1", "2", "2", "3"), n):
        labels = sorted(rng.sample(sorted(_TOPIC_WORDS), int(n_topics)))
        lengths = 6, rng.randrange(15, 40)
        title, description = (" ".join(
            _words(rng, rng.choice(labels) if labels else None, count=1)[0] for _ in range(length)
        ).capitalize() for length in lengths)
        rows.append((labels, title, f"{description}."))
    schema: dict[str, Any] = {
        "topics": pl.List(pl.String), "title": pl.String, "description": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def feature_table(n: int, seed: int = 0) -> pl.DataFrame:
    """Generate a table of numbers: three overlapping Gaussian classes in four dimensions.

    The classes differ in their means and in their spread, and x1 and x2 are correlated, so
    shared-covariance and per-class models come to different answers.

    Parameters
    ----------
    n
        Number of rows.
    seed
        Another seed gives other numbers.

    Returns
    -------
    DataFrame
        Columns `x1` to `x4` (Float64) and `label` (a, b, c).

    Examples
    --------
    >>> feature_table(3).schema.names()
    ['x1', 'x2', 'x3', 'x4', 'label']
    """
    rng = random.Random(f"feature_table {seed}")
    means = {"a": (0.0, 0.0, 0.0, 1.0), "b": (2.0, 1.0, 0.0, -1.0), "c": (0.0, 2.0, 3.0, 0.0)}
    spread = {"a": 1.0, "b": 0.6, "c": 1.5}
    rows = []
    for label in _labels(rng, tuple(means), n):
        noise = [rng.gauss(0.0, spread[label]) for _ in range(4)]
        noise[1] += 0.5 * noise[0]
        rows.append((*(mean + each for mean, each in zip(means[label], noise, strict=True)), label))
    schema = {**dict.fromkeys(("x1", "x2", "x3", "x4"), pl.Float64), "label": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def mailboxes(folder: str, n: int, seed: int = 0) -> dict[str, bytes]:
    """Generate mail as an mbox file for each class; return the contents by paths.

    Examples
    --------
    >>> list(mailboxes("mail", 4))
    ['mail/ham/inbox.mbox', 'mail/spam/inbox.mbox']
    """
    return {f"{folder}/{label}/inbox.mbox": mailbox(messages)
            for label, messages in mail(n, seed).items()}


def write_samples(folder: str | os.PathLike[str]) -> list[str]:
    """Write the small files that the pages of the documentation work with.

    Parameters
    ----------
    folder
        The folder, which is made if there is none. Other files in it stay as they are.

    Returns
    -------
    list of str
        The files, by their paths below the folder. ``SAMPLES.md`` says what each is, and its
        licence.

    Raises
    ------
    SourceError
        If one of the files exists with other bytes, or can't be written; then no file is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_samples(folder)[:3])
    ['SAMPLES.md', 'news.parquet', 'today.csv']
    """
    check_named(folder)
    root, files = Path(folder), _sample_files()
    with report_write_errors(root):
        for name, content in files.items():
            path = root / name
            if os.path.lexists(path):
                check_target(path)
                # A link may lead nowhere.
                if not path.exists() or path.read_bytes() != content:
                    raise SourceError.unwritable(
                        path, "it is there and differs; give another folder, or remove it")
        for name in (*files, *_EMPTY_FOLDERS):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
        for name in _EMPTY_FOLDERS:
            (root / name).mkdir(exist_ok=True)
    with ExitStack() as removals:
        for name, content in files.items():
            if not (root / name).exists():
                with replace_file(root / name) as file:
                    file.write(content)
                removals.callback((root / name).unlink)
        # All files are written: do not remove them.
        removals.pop_all()
    return [*files]


# A Maildir always has these folders.
_EMPTY_FOLDERS = ("Maildir/cur", "Maildir/tmp")
_ABOUT = """\
# Sample files

Generated by `textnb samples`, the same bytes each time: no person wrote these texts or messages.

| file | holds |
|---|---|
| `news.parquet` | 1,200 articles, each with its topic in `label`; `split` is train or test |
| `today.csv` | 20 articles without a topic |
| `articles.parquet` | 800 articles of any number of topics, in the lists of `topics` |
| `lists.csv` | the first 300 of these, topics joined by `;` |
| `mail/`, `new-mail/` | 600 and 80 messages, an mbox for each of ham and spam |
| `message.eml` | a spam message |
| `Maildir/` | a mailbox with three new messages |
| `table.parquet` | 300 rows of numbers, `x1` to `x4`, in three classes: `label` |

Copyright (c) 2026, The textnb developers. SPDX-License-Identifier: BSD-3-Clause: the licence of
textnb itself.
"""


def _sample_files() -> dict[str, bytes]:
    start = datetime(2026, 1, 1).date()
    rows = news(1200).with_row_index("id").with_columns(
        split=pl.when(pl.col("id") < 900).then(pl.lit("train")).otherwise(pl.lit("test")),
        author=pl.format("author {}", pl.col("id") // 10),
        date=pl.lit(start) + pl.duration(days=pl.col("id") // 10))
    articles, messages = topics(800), mail(12, seed=2)
    unread = (messages["ham"][0], messages["spam"][1], messages["ham"][1])
    return {
        "SAMPLES.md": _ABOUT.encode(),
        "news.parquet": _parquet(rows),
        "today.csv": _csv(news(20, seed=1).select("title", "description", "text")),
        "articles.parquet": _parquet(articles),
        "lists.csv": _csv(articles.head(300).with_columns(pl.col("topics").list.join(";"))),
        **mailboxes("mail", 600), **mailboxes("new-mail", 80, seed=1),
        "message.eml": messages["spam"][0],
        **{f"Maildir/new/{number}.textnb.example": message
           for number, message in enumerate(unread)},
        "table.parquet": _parquet(feature_table(300))}


def _parquet(frame: pl.DataFrame) -> bytes:
    frame.write_parquet(file := BytesIO())
    return file.getvalue()


def _csv(frame: pl.DataFrame) -> bytes:
    return frame.write_csv().encode()


def _labels(rng: random.Random, cycle: Sequence[str], n: int) -> Iterator[str]:
    """Yield n labels: those of the cycle, in a new random order each time."""
    if n < 0:
        raise ParameterError.out_of_range("n", "at least 0", n)
    pending: list[str] = []
    for _ in range(n):
        if not pending:
            pending = rng.sample(cycle, len(cycle))
        yield pending.pop()


class _Choices(dict[str, str]):
    """The fillers of a template: each look-up chooses one at random."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def __missing__(self, key: str) -> str:
        return self._rng.choice(_FILLERS[key])


def _words(rng: random.Random, label: str | None, count: int) -> list[str]:
    """Draw words: of ten, about three of the topic, five shared ones, and two of any topic.

    Without a topic, shared words take the place of its words.
    """
    all_words = [word for words in _TOPIC_WORDS.values() for word in words]
    topic_words = _SHARED_WORDS if label is None else _TOPIC_WORDS[label]
    word_lists = rng.choices((topic_words, _SHARED_WORDS, all_words), (3, 5, 2), k=count)
    return [rng.choice(words) for words in word_lists]
