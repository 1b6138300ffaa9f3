"""Small samples of eight kinds of rows, made of syllables with fixed seeds.

Only `random.Random.random` is used, whose numbers are the same in every release of Python.
"""

import random
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from quopri import encodestring
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

# Texts that are hard to split: nothing, cases, accents, signs, digits, scripts without spaces.
ODD = [
    "", "   ", "ΣΊΣΥΦΟΣ ΟΔΌΣ. İSTANBUL ŞİRKETİ IŞIK", "c++ $5 10% u.s. hello!? 😀😀 ✌🏽",
    "Café naïve cafe\u0301 ﬁne Straße STRASSE ½ ²", "a_b 1,000.50 x1 don't e-mail",
    "東京タワーと富士山 ไทยแลนด์ 한국어 中", "বাংলা ক্ষ ড় \u200dক",
    "line\nbreak\ttab\u00a0nbsp\x00nul", "ß",
]


@dataclass(frozen=True)
class Sample:
    """Rows to learn and rows to answer, and how a classifier is told to read them."""

    train: pl.DataFrame
    test: pl.DataFrame
    text: str | list[str] = "text"
    label: str = "label"
    tokenizer: tuple[tuple[str, Any], ...] = ()

    @property
    def learned(self) -> pl.DataFrame:
        return self.train.drop("weight")

    @property
    def of_lists(self) -> bool:
        return self.train.schema[self.label] == pl.List(pl.String)


class Chance:
    """Random choices."""

    def __init__(self, seed: int):
        self._next = random.Random(seed).random

    def below(self, n: int) -> int:
        return int(self._next() * n)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]

    def skewed(self, values: Sequence[Any]) -> Any:
        """One of the values, the first ones far more often, as words are."""
        return values[int(len(values) * self._next() ** 3)]

    def share(self, probability: float) -> bool:
        return self._next() < probability

    def normal(self) -> float:
        """About normal, by sums alone, which have the same bits everywhere."""
        return sum(self._next() for _ in range(12)) - 6.0


def latin(seed: int, n: int) -> list[str]:
    return _words(seed, n, lambda chance: chance.pick("bcdfghklmnprstvz") + chance.pick("aeiou"), 3)


def bengali(seed: int, n: int) -> list[str]:
    consonants = [chr(c) for c in range(0x0995, 0x09A8)]
    signs = ["", "\u09be", "\u09bf", "\u09c0", "\u09c1", "\u09c7", "\u09cb", "\u0982"]
    joined = ["", "", "", "\u09cd\u09b0", "\u09cd\u09af"]
    return _words(seed, n, lambda chance: (
        chance.pick(consonants) + chance.pick(joined) + chance.pick(signs)), 3)


def han(seed: int, n: int) -> list[str]:
    characters = [chr(0x4E00 + 37 * i) for i in range(120)]
    return _words(seed, n, lambda chance: chance.pick(characters), 2)


def _words(seed: int, n: int, syllable: Callable[[Chance], str], longest: int) -> list[str]:
    chance, words = Chance(seed), dict[str, None]()
    while len(words) < n:
        words["".join(syllable(chance) for _ in range(1 + chance.below(longest)))] = None
    return list(words)


def _topic(words: Sequence[str], k: int, classes: int) -> list[str]:
    """The words in the order of a class: its own first, so that it has more of these."""
    own = list(words[k::classes])
    return own + [word for word in words if word not in set(own)]


def _text(
    chance: Chance, topics: Sequence[Sequence[str]], common: Sequence[str], length: int,
    between: str = " ",
) -> str:
    words = [chance.skewed(chance.pick(topics) if chance.share(0.55) else common)
             for _ in range(length)]
    return between.join(words)


def _documents(
    seed: int, words: list[str], labels: Sequence[Any], rows: int, length: tuple[int, int],
    between: str = " ", change: Callable[[Chance, str], str] = lambda chance, text: text,
) -> list[tuple[str, Any]]:
    chance = Chance(seed)
    topics = [_topic(words, k, len(labels)) for k in range(len(labels))]
    documents = []
    for _ in range(rows):
        # Skewed: classes have different sizes.
        k = int(len(labels) * chance.below(1000) ** 1.5 / 1000 ** 1.5)
        size = length[0] + chance.below(length[1] - length[0] + 1)
        text = _text(chance, [topics[k]], words, size, between)
        documents.append((change(chance, text), labels[k]))
    return documents


def _sample(
    rows: list[Any], test: int, schema: Any = ("text", "label"), odd: bool = True, **columns: Any
) -> Sample:
    """The last rows are to answer, before texts that are hard to split; the others have weights."""
    frame = pl.DataFrame(rows, schema, orient="row")
    train, last = frame[:-test], frame[-test:]
    if odd:
        more = pl.DataFrame({"text": ODD, "label": [last["label"][0]] * len(ODD)},
                            schema=last.schema)
        last = last.vstack(more)
    weights = [[0.5, 1.0, 2.0, 0.25, 3.0][i % 5] for i in range(train.height)]
    return Sample(train.with_columns(weight=pl.Series(weights)), last, **columns)


def _shout(chance: Chance, text: str) -> str:
    if chance.share(0.25):
        text = text.upper()
    if chance.share(0.3):
        text += chance.pick(["!!!", " 5% off", " call 0800 123", " :)", " £100", " 😀"])
    return text.capitalize() if chance.share(0.5) else text


@cache
def sms() -> Sample:
    rows = _documents(1, latin(11, 150), ["ham", "spam"], 76, (3, 14), change=_shout)
    return _sample(rows, 16)


@cache
def news() -> Sample:
    labels = ["business", "politics", "science", "sport", "weather"]
    rows = _documents(2, latin(12, 260), labels, 66, (20, 60))
    return _sample(rows, 12)


@cache
def chinese() -> Sample:
    rows = _documents(3, han(13, 90), [0, 1], 56, (4, 16), between="")
    rows = [(text[:9] + "，" + text[9:] + "。", label) for text, label in rows]
    return _sample(rows, 12)


@cache
def bengali_news() -> Sample:
    labels = ["খেলা", "রাজনীতি", "বিনোদন"]
    rows = _documents(4, bengali(14, 160), labels, 56, (6, 24))
    return _sample(rows, 12, {"text": pl.String, "label": pl.Enum(labels)})


@cache
def topics() -> Sample:
    """Lists of labels, some of them empty."""
    chance, words, labels = Chance(5), latin(15, 200), ["acq", "corn", "crude", "earn", "wheat"]
    by_label = [_topic(words, k, len(labels)) for k in range(len(labels))]
    rows = []
    for _ in range(84):
        mine = [k for k in range(len(labels)) if chance.share([0.15, 0.3, 0.25, 0.5, 0.2][k])]
        text = _text(chance, [by_label[k] for k in mine] or [words], words, 8 + chance.below(20))
        rows.append((text, [labels[k] for k in mine]))
    return _sample(rows, 14, {"text": pl.String, "label": pl.List(pl.String)})


@cache
def tokens() -> Sample:
    """Lists of tokens in place of texts, with labels that are booleans."""
    chance, words = Chance(6), [*latin(16, 110), "New York", "", "Ünïcode"]
    rows = _documents(6, words, [False, True], 60, (4, 16), between="\t")
    lists = [(text.split("\t"), label) for text, label in rows]
    odd = [([], True), ([""], False), ([chance.pick(words).upper()] * 3, True)]
    return _sample([*lists, *odd], 12 + len(odd),
                   {"text": pl.List(pl.String), "label": pl.Boolean}, odd=False,
                   tokenizer=(("token_columns", ("text",)),))


@cache
def big() -> Sample:
    """More terms than a mebibyte holds."""
    chance, words = Chance(7), latin(17, 2500)
    rows = [(" ".join(chance.skewed(words) + (f"x{chance.below(40000)}" if chance.share(0.7)
                                              else "") for _ in range(120)),
             chance.pick(["a", "b", "c"])) for _ in range(260)]
    return _sample(rows, 10, odd=False)


@cache
def many() -> Sample:
    """So many classes and terms that weights are stored for terms that a class has."""
    chance, words = Chance(19), latin(19, 300)
    rows = [(" ".join([f"t{24 * i + j}" for j in range(24)]
                      + [words[(i % 600) // 2], chance.skewed(words)]), f"class {i % 600:03}")
            for i in range(1210)]
    return _sample(rows, 10, odd=False)


@cache
def fields() -> Sample:
    """Two text columns, with nulls."""
    subjects = _documents(8, latin(18, 60), ["ham", "spam"], 60, (1, 4))
    bodies = dict(enumerate(_documents(9, latin(11, 120), ["ham", "spam"], 60, (3, 12))))
    rows = [(subject, None if i % 11 == 3 else bodies[i][0], bodies[i][1])
            for i, (subject, _) in enumerate(subjects)]
    return _sample(rows, 12, ("subject", "body", "label"), odd=False, text=["subject", "body"],
                   tokenizer=(("field_prefix", ("subject",)),))


@cache
def table() -> Sample:
    """Dense features of three classes, with one column of counts and one of categories."""
    chance, rows = Chance(10), []
    for _ in range(110):
        k = int(3 * chance.below(1000) ** 1.3 / 1000 ** 1.3)
        base = [chance.normal() for _ in range(4)]
        x = [base[0] + 1.5 * k, base[1] * (1 + 0.5 * k) + 0.4 * base[0],
             base[2] - k + 0.3 * base[1], 10 * base[3] + 100 + 6 * k]
        rows.append((*x, chance.below(4 + 3 * k), (chance.below(3) + k) % 3, "pqr"[k]))
    return _sample(rows, 14, ("a", "b", "c", "d", "n", "cat", "label"), odd=False)


@cache
def counts() -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
    """Counts of 40 rows and 25 features, labels, weights of the rows, and 9 rows to answer."""
    chance = Chance(20)
    labels = [chance.pick("xyz") for _ in range(49)]
    rows = np.array([[chance.below(5) if chance.share(0.15 + 0.3 * (t % 3 == "xyz".index(k))) else 0
                      for t in range(25)] for k in labels], dtype=np.int64)
    weights = np.array([chance.pick([0.5, 1.0, 2.0]) for _ in range(40)])
    return rows[:40], np.array(labels[:40]), weights, rows[40:]


def write_mail(folder: Path) -> None:
    """Messages in folders ``train/ham``, ``train/spam`` and ``test``, in several encodings."""
    bodies = _documents(21, latin(11, 140), ["ham", "spam"], 56, (6, 30))
    subjects = _documents(22, latin(18, 60), ["ham", "spam"], 56, (1, 5))
    for i, ((body, label), (subject, _)) in enumerate(zip(bodies, subjects, strict=True)):
        place = folder / ("test" if i >= 44 else f"train/{label}")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i:03}.eml").write_bytes(_message(i, subject, body))


def _message(i: int, subject: str, body: str) -> bytes:
    head = (f"From: Person {i % 7} <person{i % 7}@example{i % 3}.org>\r\nTo: me@example.org\r\n"
            f"Subject: {'=?utf-8?q?=C3=A9t=C3=A9?= ' if i % 4 == 1 else ''}{subject}\r\n"
            f"Date: Tue, 0{1 + i % 9} Jul 2025 10:{i:02}:00 +0200\r\n"
            f"Message-ID: <{i}@example.org>\r\nMIME-Version: 1.0\r\n")
    return head.encode("ascii") + [_plain, _latin1, _html, _mixed, _broken][i % 5](body)


def _plain(body: str) -> bytes:
    return f"Content-Type: text/plain; charset=us-ascii\r\n\r\n{body}\r\n".encode("ascii")


def _latin1(body: str) -> bytes:
    text = encodestring(f"Schöne Grüße, {body}".encode("latin-1"))
    return (b"Content-Type: text/plain; charset=iso-8859-1\r\n"
            b"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + text)


def _html(body: str) -> bytes:
    page = (f"<html><body><p>{body}</p><a href='http://offers.example.com/{len(body)}'>click</a>"
            "<img src=\"cid:1\"><script>hidden()</script>&eacute;t&eacute; 大家好</body></html>")
    return (b"Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
            + b64encode(page.encode("utf-8")) + b"\r\n")


def _mixed(body: str) -> bytes:
    return ("Content-Type: multipart/mixed; boundary=\"b\"\r\n\r\n--b\r\n"
            f"Content-Type: text/plain\r\n\r\n{body}\r\n--b\r\nContent-Type: application/pdf\r\n"
            "Content-Disposition: attachment; filename=\"bill.pdf\"\r\n\r\n%PDF\r\n--b--\r\n"
            ).encode("ascii")


def _broken(body: str) -> bytes:
    return (b"Content-Type: text/plain; charset=no-such\r\n"
            b"Content-Transfer-Encoding: base64\r\n\r\n" + body.encode("ascii") + b"\xff\xfe\r\n")
