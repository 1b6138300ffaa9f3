"""Small generated samples, so that everything runs without a download.

The same arguments give the same rows, and a longer sample begins with the shorter one. Every class
occurs in each run of as many rows as there are classes (ham counts thrice), so small samples do
for training too. Words are shared between classes: no model is perfect.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from textnb.errors import ParameterError

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


def spam_messages(n: int, seed: int = 0) -> pl.DataFrame:
    """Generate short messages, one spam in four.

    Parameters
    ----------
    n
        Number of rows.
    seed
        Another seed gives other messages.

    Returns
    -------
    DataFrame
        Columns `label` (ham, spam) and `text`, with quotes, commas and other characters that a
        careless CSV writer or tokenizer trips over.

    Examples
    --------
    >>> spam_messages(4)["label"].sort().to_list()
    ['ham', 'ham', 'ham', 'spam']
    """
    source = random.Random(f"spam_messages {seed}")
    rows = []
    for label in _labels(source, ("ham", "ham", "ham", "spam"), n):
        templates = (_SPAM, _HAM) if label == "spam" else (_HAM, _SPAM)
        # One in twenty-five reads like the other class.
        chosen = source.choices(templates, (24, 1))[0]
        rows.append((label, _filled(source, source.choice(chosen))))
    return pl.DataFrame(rows, schema={"label": pl.String, "text": pl.String}, orient="row")


def mail(n: int, seed: int = 0) -> dict[str, list[bytes]]:
    """Generate mail messages, one spam in four, as they come: with headers, MIME and HTML.

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
    source = random.Random(f"mail {seed}")
    start = datetime(2025, 1, 6, 8, tzinfo=UTC)
    messages: dict[str, list[bytes]] = {"ham": [], "spam": []}
    for number, label in enumerate(_labels(source, ("ham", "ham", "ham", "spam"), n)):
        text = _filled(source, source.choice(_SPAM if label == "spam" else _HAM))
        message = EmailMessage(policy=SMTP.clone(linesep="\n"))
        words = text.split()
        at = "friends.example" if label == "ham" else source.choice(("offers.example", "x.example"))
        message["From"] = f"{source.choice(_FILLERS['name'])} <{source.randrange(1000)}@{at}>"
        message["To"] = "you@home.example"
        message["Subject"] = " ".join(words[:5])
        message["Date"] = start + timedelta(minutes=41 * number)
        message["Message-ID"] = f"<{number}.{seed}@{at}>"
        if label == "spam" and source.random() < 0.5:
            shown = "".join(f"<p>{escape(word)}</p>" for word in words)
            message.set_content(f"<html><body>{shown}</body></html>", subtype="html")
        else:
            message.set_content(text)
        messages[label].append(message.as_bytes())
    return messages


def mailbox(messages: Sequence[bytes]) -> bytes:
    """Write messages as one mbox file, lines that begin with ``From `` escaped.

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
    source = random.Random(f"news {seed}")
    rows = []
    for label in _labels(source, tuple(_TOPIC_WORDS), n):
        title = " ".join(_words(source, label, 5)).capitalize()
        description = " ".join(_words(source, label, source.randrange(8, 20))).capitalize() + "."
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
    source = random.Random(f"topics {seed}")
    rows = []
    for number in _labels(source, ("0", "1", "1", "1", "1", "2", "2", "3"), n):
        own = sorted(source.sample(sorted(_TOPIC_WORDS), int(number)))
        title, description = ([word for _ in range(length) for word in _words(
            source, source.choice(own) if own else None, 1)]
            for length in (6, source.randrange(15, 40)))
        rows.append((own, " ".join(title).capitalize(), " ".join(description).capitalize() + "."))
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
    source = random.Random(f"feature_table {seed}")
    means = {"a": (0.0, 0.0, 0.0, 1.0), "b": (2.0, 1.0, 0.0, -1.0), "c": (0.0, 2.0, 3.0, 0.0)}
    spread = {"a": 1.0, "b": 0.6, "c": 1.5}
    rows = []
    for label in _labels(source, tuple(means), n):
        noise = [source.gauss(0.0, spread[label]) for _ in range(4)]
        noise[1] += 0.5 * noise[0]
        rows.append((*(mean + e for mean, e in zip(means[label], noise, strict=True)), label))
    schema = {**dict.fromkeys(("x1", "x2", "x3", "x4"), pl.Float64), "label": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def write_pipeline_samples(folder: Path) -> None:
    """Write the rows that the jobs in `pipelines` run on where they are given no others."""
    for label, messages in mail(600).items():
        (folder / "mail" / label).mkdir(parents=True, exist_ok=True)
        (folder / "mail" / label / "inbox.mbox").write_bytes(mailbox(messages))
    topics(1000).with_columns(pl.col("topics").list.join("; ")).write_csv(folder / "news.csv")
    feature_table(300).with_columns(pl.col(pl.Float64).round(4)).write_csv(folder / "table.csv")


def _labels(source: random.Random, cycle: Sequence[str], n: int) -> Iterator[str]:
    """Yield n labels: the cycle, shuffled anew each time round."""
    if n < 0:
        raise ParameterError.out_of_range("n", "at least 0", n)
    pending: list[str] = []
    for _ in range(n):
        if not pending:
            pending = source.sample(cycle, len(cycle))
        yield pending.pop()


def _filled(source: random.Random, template: str) -> str:
    return template.format_map(_Choices(source))


class _Choices(dict[str, str]):
    """A mapping that chooses a filler anew at each look-up."""

    def __init__(self, source: random.Random) -> None:
        super().__init__()
        self._source = source

    def __missing__(self, key: str) -> str:
        return self._source.choice(_FILLERS[key])


def _words(source: random.Random, label: str | None, count: int) -> list[str]:
    """Draw words: three in ten of the topic (of None, shared), five shared, two of any topic."""
    every = [word for words in _TOPIC_WORDS.values() for word in words]
    own = _SHARED_WORDS if label is None else _TOPIC_WORDS[label]
    urns = source.choices((own, _SHARED_WORDS, every), (3, 5, 2), k=count)
    return [source.choice(urn) for urn in urns]


def write_samples(folder: Path) -> None:
    """Write the files that the documentation works with.

    ``news.parquet`` (with ``split``, ``author`` and ``date``), ``today.csv``, ``mail/`` and
    ``new-mail/`` (an mbox for each class), ``message.eml`` (spam), a Maildir ``Maildir/`` with
    three new messages, and ``table.parquet``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows, start = news(1200), datetime(2026, 1, 1).date()
    rows.with_row_index("id").with_columns(
        split=pl.when(pl.col("id") < 900).then(pl.lit("train")).otherwise(pl.lit("test")),
        author=pl.format("author {}", pl.col("id") // 10),
        date=pl.lit(start) + pl.duration(days=pl.col("id") // 10),
    ).write_parquet(folder / "news.parquet")
    news(20, seed=1).select("title", "description", "text").write_csv(folder / "today.csv")
    for name, count, seed in (("mail", 600, 0), ("new-mail", 80, 1)):
        for label, messages in mail(count, seed).items():
            (folder / name / label).mkdir(parents=True, exist_ok=True)
            (folder / name / label / "inbox.mbox").write_bytes(mailbox(messages))
    fresh = mail(12, seed=2)
    (folder / "message.eml").write_bytes(fresh["spam"][0])
    for part in ("cur", "new", "tmp"):
        (folder / "Maildir" / part).mkdir(parents=True, exist_ok=True)
    for number, message in enumerate([fresh["ham"][0], fresh["spam"][1], fresh["ham"][1]]):
        (folder / "Maildir" / "new" / f"{number}.textnb.example").write_bytes(message)
    feature_table(300).write_parquet(folder / "table.parquet")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_samples(Path(sys.argv[1]))
    else:
        write_pipeline_samples(Path(__file__).parents[1] / "pipelines" / "samples")
