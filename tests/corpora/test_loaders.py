"""Each loader on a tiny imitation of the published form, written here by hand."""

from __future__ import annotations

import bz2
import gzip
import io
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import polars as pl
import pytest

import corpora
from corpora import ag_news, indicnews_bengali, mnist, newsgroups, spamassassin
from corpora.card import Card
from textnb.errors import SourceError

BBC_TOPICS = ("business", "entertainment", "politics", "sport", "tech")


def write(root: Path, files: Mapping[str, bytes | str]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def rows(name: str, path: Path) -> list[tuple[object, ...]]:
    return corpora.load(name, path=path).collect().rows()


def refusal(name: str, path: Path) -> str:
    """The message with which a corpus is refused, at loading or at collecting."""
    with pytest.raises(SourceError) as caught:
        corpora.load(name, path=path).collect()
    return str(caught.value)


def same_schema_as_stored(card: Card, published: pl.LazyFrame) -> None:
    try:
        stored = corpora.load(card.name)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    assert published.collect_schema() == stored.collect_schema()


class TestSmsSpam:
    def test_quotes_tabs_and_odd_line_ends_stay_in_the_text(self, tmp_path: Path) -> None:
        messages = [
            ("ham", 'She said "wait'),
            ("spam", '"Win" now'),
            ("ham", "a\tb"),
            ("ham", "next line\x85here\x0cand\u2028there"),
            ("ham", ""),
            ("ham", " spaces kept "),
            ("spam", "£100 – ‘free’"),
        ]
        content = "".join(f"{label}\t{text}\n" for label, text in messages)
        write(tmp_path, {"SMSSpamCollection": content})
        assert rows("sms_spam", tmp_path / "SMSSpamCollection") == messages

    def test_windows_line_ends_and_a_missing_last_one(self, tmp_path: Path) -> None:
        write(tmp_path, {"sms": "ham\tone\r\nspam\ttwo"})
        assert rows("sms_spam", tmp_path / "sms") == [("ham", "one"), ("spam", "two")]

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"ham\tok\nno tab here\n", "line 2: expected label<TAB>text, got 'no tab here'"),
            (b"ham\tok\n\nham\tok\n", "line 2: expected label<TAB>text, got ''"),
            (b"ham\tok\neggs\tno\n", "line 2: unknown label 'eggs'; expected one of ham, spam"),
            (b"ham\tok\nham\tcaf\xe9\n", "line 2: byte 0xe9 is not utf-8"),
            (b"", "it is empty"),
        ],
    )
    def test_a_bad_line_is_named(self, tmp_path: Path, content: bytes, expected: str) -> None:
        file = write(tmp_path, {"sms": content}) / "sms"
        assert refusal("sms_spam", file) == f"can't read {file}: {expected}"

    def test_schema(self, tmp_path: Path) -> None:
        file = write(tmp_path, {"sms": "ham\tok\n"}) / "sms"
        same_schema_as_stored(corpora.CARDS["sms_spam"], corpora.load("sms_spam", path=file))


class TestNewsgroups:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return write(
            tmp_path,
            {
                f"20news-bydate-{split}/{group}/{number}": f"From: {split} {group}\n".encode()
                + b"caf\xe9\r\n\x00\x85"
                for split in ("train", "test")
                for group in newsgroups.CARD.classes
                for number in (53068, 7)
            },
        )

    def test_bytes_are_latin_1_and_rows_go_by_path(self, root: Path) -> None:
        frame = corpora.load("newsgroups", path=root).collect()
        assert frame.height == 2 * 20 * 2
        assert frame.row(0) == (
            "alt.atheism", "From: test alt.atheism\ncafé\r\n\x00\x85", "test", "53068",
        )
        assert frame.equals(frame.sort("split", "label", "id"))

    def test_a_missing_group_is_named(self, root: Path) -> None:
        group = root / "20news-bydate-test" / "sci.med"
        for file in group.iterdir():
            file.unlink()
        group.rmdir()
        message = refusal("newsgroups", root)
        assert "20news-bydate-test" in message
        assert "no class folder sci.med;" in message

    def test_a_foreign_folder_is_named(self, root: Path) -> None:
        write(root, {"20news-bydate-train/sci.bio/1": "x"})
        assert "unknown class folder sci.bio;" in refusal("newsgroups", root)

    def test_a_missing_split_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="20news-bydate-test"):
            corpora.load("newsgroups", path=tmp_path)

    def test_schema(self, root: Path) -> None:
        same_schema_as_stored(newsgroups.CARD, corpora.load("newsgroups", path=root))


class TestAgNews:
    def test_records(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            {
                "train.csv": '"3","He said ""sell""","Oil, gas\\and\n more"\n"4","Chips",""\n',
                "test.csv": "1,Talks,resume\r\n2,Goal,NA\r\n",
            },
        )
        assert rows("ag_news", tmp_path) == [
            (
                "Business", 'He said "sell" Oil, gas\\and\n more', "train", 'He said "sell"',
                "Oil, gas\\and\n more",
            ),
            ("Sci/Tech", "Chips ", "train", "Chips", ""),
            ("World", "Talks resume", "test", "Talks", "resume"),
            ("Sports", "Goal NA", "test", "Goal", "NA"),
        ]

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ('"1","a","b"\n"5","a","b"\n', "line 2: expected a class index from 1 to 4, got '5'"),
            ('"Class Index","Title","Description"\n', "line 1: expected a class index from 1 to 4, "
             "got 'Class Index'"),
            ('"1","a\nb","c"\n"2","d"\n', "line 3: expected 3 fields, got 2"),
            ('"1","a","b"\n\n"1","a","b"\n', "line 2: expected 3 fields, got 0"),
            ('"1","a","b"\n"1","a "quoted" word","b"\n', "line 2: ',' expected after '\"'"),
            ('"1","a","b"\n"1","a","never closed\n', "line 2: unexpected end of data"),
            ("", "it is empty"),
        ],
    )
    def test_a_bad_record_is_named(self, tmp_path: Path, content: str, expected: str) -> None:
        write(tmp_path, {"train.csv": '"1","a","b"\n', "test.csv": content})
        assert refusal("ag_news", tmp_path) == f"can't read {tmp_path / 'test.csv'}: {expected}"

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        write(tmp_path, {"train.csv": '"1","a","b"\n'})
        with pytest.raises(FileNotFoundError, match=r"test\.csv"):
            corpora.load("ag_news", path=tmp_path)

    def test_schema(self, tmp_path: Path) -> None:
        write(tmp_path, {"train.csv": "1,a,b\n", "test.csv": "1,a,b\n"})
        same_schema_as_stored(ag_news.CARD, corpora.load("ag_news", path=tmp_path))


class TestImdb:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return write(
            tmp_path,
            {
                "README": "not a review",
                "train/urls_pos.txt": "http://reviews.example/1",
                "train/labeledBow.feat": "9 0:9",
                "train/unsup/0_0.txt": "nobody knows",
                "train/pos/0_9.txt": "Très bon<br />\x85",
                "train/neg/3_4.txt": "Bad",
                "test/pos/10_10.txt": "Great",
                "test/pos/2_7.txt": "Good",
                "test/neg/0_1.txt": "Awful",
            },
        )

    def test_reviews_without_a_label_are_left_out(self, root: Path) -> None:
        assert rows("imdb", root) == [
            ("neg", "Awful", "test", 0, 1),
            ("pos", "Great", "test", 10, 10),
            ("pos", "Good", "test", 2, 7),
            ("neg", "Bad", "train", 3, 4),
            ("pos", "Très bon<br />\x85", "train", 0, 9),
        ]

    def test_a_byte_that_is_not_utf_8_is_reported_with_its_file(self, root: Path) -> None:
        write(root, {"test/neg/1_2.txt": b"caf\xe9"})
        assert "1_2.txt: byte 0xe9" in refusal("imdb", root)

    @pytest.mark.parametrize("name", ["12.txt", "1_11.txt", "a_3.txt", "1_3.txt.bak"])
    def test_a_file_name_without_a_rating_is_named(self, root: Path, name: str) -> None:
        write(root, {f"train/pos/{name}": "?"})
        assert f"{name}: expected a name such as 123_8.txt" in refusal("imdb", root)

    def test_schema(self, root: Path) -> None:
        same_schema_as_stored(corpora.CARDS["imdb"], corpora.load("imdb", path=root))


class TestBbcNews:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return write(
            tmp_path,
            {
                "README.TXT": "not an article",
                **{f"{topic}/001.txt": f"{topic}\n\nA £".encode("latin-1") for topic in BBC_TOPICS},
            },
        )

    def test_articles(self, root: Path) -> None:
        assert rows("bbc_news", root) == [(topic, f"{topic}\n\nA £", "001") for topic in BBC_TOPICS]

    def test_a_folder_too_high_is_refused(self, root: Path, tmp_path: Path) -> None:
        write(tmp_path / "above", {f"bbc/{topic}/001.txt": "x" for topic in BBC_TOPICS})
        assert "no class folder business" in refusal("bbc_news", tmp_path / "above")

    def test_schema(self, root: Path) -> None:
        same_schema_as_stored(corpora.CARDS["bbc_news"], corpora.load("bbc_news", path=root))


class TestR8:
    def test_lines(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            {
                "r8-train-stemmed.txt": "earn\tcompani net\n",
                "r8-test-stemmed.txt": "money-fx\tdollar\n",
            },
        )
        assert rows("r8", tmp_path) == [
            ("earn", "compani net", "train"),
            ("money-fx", "dollar", "test"),
        ]

    def test_the_least_processed_variant_is_read(self, tmp_path: Path) -> None:
        for variant in ("all-terms", "no-short", "stemmed"):
            for split in ("train", "test"):
                write(tmp_path, {f"r8-{split}-{variant}.txt": f"acq\t{variant}\n"})
        assert rows("r8", tmp_path) == [("acq", "all-terms", "train"), ("acq", "all-terms", "test")]

    def test_an_ambiguous_folder_is_refused(self, tmp_path: Path) -> None:
        for variant in ("no-stop", "stemmed"):
            write(tmp_path, {f"r8-train-{variant}.txt": "acq\tx\n"})
        message = refusal("r8", tmp_path)
        assert "r8-train-no-stop.txt, r8-train-stemmed.txt; keep one" in message

    def test_a_label_of_r52_is_refused(self, tmp_path: Path) -> None:
        write(tmp_path, {"r8-train-all-terms.txt": "acq\tx\ncocoa\tx\n"})
        message = refusal("r8", tmp_path)
        assert "r8-train-all-terms.txt: line 2: unknown label 'cocoa'" in message

    def test_a_missing_split_is_named(self, tmp_path: Path) -> None:
        write(tmp_path, {"r8-train-all-terms.txt": "acq\tx\n"})
        with pytest.raises(FileNotFoundError, match="r8-test-"):
            corpora.load("r8", path=tmp_path)

    def test_schema(self, tmp_path: Path) -> None:
        write(tmp_path, {f"r8-{split}-all-terms.txt": "acq\tx\n" for split in ("train", "test")})
        same_schema_as_stored(corpora.CARDS["r8"], corpora.load("r8", path=tmp_path))


class TestIndicnewsBengali:
    FILES: Mapping[str, str] = {
        "Bengal_SHC_Train.csv": '\ufefflabels,text\nsports,"ক্রিকেট, আজ\r\nকাল"\n',
        "Bengal_SHC_Valid.csv": "labels,text\nstate,\ufeffহো\u200cক\u00a0\n",
        "Bengal_SHC_Test.csv": 'labels,text\nkolkata,"""মেট্রো"""\n',
    }

    def test_marks_joiners_and_line_breaks_are_kept(self, tmp_path: Path) -> None:
        assert rows("indicnews_bengali", write(tmp_path, self.FILES)) == [
            ("kolkata", '"মেট্রো"', "test"),
            ("sports", "ক্রিকেট, আজ\r\nকাল", "train"),
            ("state", "\ufeffহো\u200cক\u00a0", "valid"),
        ]

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("text,labels\nx,sports\n", "line 1: expected the header labels,text, got 'text,"),
            ("labels,text\nsports,x\nsport,x\n", "line 3: unknown label 'sport'"),
            ("labels,text\nsports,x,y\n", "line 2: expected 2 fields, got 3"),
            ("", "it is empty"),
        ],
    )
    def test_a_bad_record_is_named(self, tmp_path: Path, content: str, expected: str) -> None:
        write(tmp_path, {**self.FILES, "Bengal_SHC_Train.csv": content})
        assert f"Bengal_SHC_Train.csv: {expected}" in refusal("indicnews_bengali", tmp_path)

    def test_schema(self, tmp_path: Path) -> None:
        path = write(tmp_path, self.FILES)
        same_schema_as_stored(indicnews_bengali.CARD, corpora.load("indicnews_bengali", path=path))


def archive(
    file: Path, entries: Mapping[str, bytes], mode: Literal["w:", "w:gz", "w:bz2"] = "w:gz"
) -> Path:
    with tarfile.open(file, mode=mode) as tar:
        for name, content in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file


def archive_of_one(file: Path, member: tarfile.TarInfo) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        tar.addfile(member)
    return file


class TestSpamassassin:
    def test_the_bytes_are_exact_and_the_text_is_latin_1(self, tmp_path: Path) -> None:
        malformed = b"From: x\r\nSubject: =?bad?=\n\xff\x00caf\xe9\r"
        file = archive(
            tmp_path / "mail.tar.gz",
            {"easy-ham-1/1.eml": malformed, "hard_ham/2.abc": b"ham", "./spam_2/3": b"", },
        )
        assert rows("spamassassin", file) == [
            ("ham", malformed.decode("latin-1"), "easy-ham-1", "1.eml", malformed),
            ("ham", "ham", "hard_ham", "2.abc", b"ham"),
            ("spam", "", "spam_2", "3", b""),
        ]

    def test_a_folder_of_published_archives(self, tmp_path: Path) -> None:
        archive(tmp_path / "20030228_spam.tar.bz2", {"spam/1": b"buy", "spam/cmds": b"mv"}, "w:bz2")
        archive(tmp_path / "20030228_easy_ham.tar.bz2", {"easy_ham/1": b"hi"}, "w:bz2")
        assert [row[:3] for row in rows("spamassassin", tmp_path)] == [
            ("ham", "hi", "easy_ham"),
            ("spam", "buy", "spam"),
        ]

    def test_nothing_is_written_to_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inside = tmp_path / "inside"
        inside.mkdir()
        file = archive(
            inside / "mail.tar.gz",
            {"../../spam/escaped": b"a", "/spam/absolute": b"b", "spam/1": b"c"},
        )
        monkeypatch.chdir(inside)
        assert [row[2:4] for row in rows("spamassassin", file)] == [
            ("spam", "escaped"), ("spam", "absolute"), ("spam", "1"),
        ]
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["inside", "mail.tar.gz"]

    @pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
    def test_links_and_devices_are_refused(self, tmp_path: Path, kind: bytes) -> None:
        member = tarfile.TarInfo("spam/1")
        member.type, member.linkname = kind, "/etc/hostname"
        message = refusal("spamassassin", archive_of_one(tmp_path / "mail.tar.gz", member))
        assert "mail.tar.gz: entry 'spam/1' is a link or a device" in message

    def test_an_entry_of_absurd_size_is_refused_unread(self, tmp_path: Path) -> None:
        member = tarfile.TarInfo("spam/1")
        member.size = spamassassin.MAX_MESSAGE_BYTES + 1
        # The header alone, as a forger would write it.
        file = tmp_path / "mail.tar.gz"
        file.write_bytes(gzip.compress(member.tobuf()))
        assert "entry 'spam/1' declares 16,777,217 bytes" in refusal("spamassassin", file)

    @pytest.mark.parametrize("name", ["1", "inbox/1", "spammers/1", "ham/1", "spam/deep/1"])
    def test_an_unknown_folder_is_named(self, tmp_path: Path, name: str) -> None:
        message = refusal("spamassassin", archive(tmp_path / "mail.tar.gz", {name: b"x"}))
        assert f"entry {name!r}: folder " in message
        assert "neither ham nor spam" in message

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
    def test_a_truncated_archive_is_named(self, tmp_path: Path, pack: object) -> None:
        assert callable(pack)
        plain = archive(tmp_path / "mail.tar", {"spam/1": bytes(range(256)) * 400}, "w:")
        data = pack(plain.read_bytes())
        file = tmp_path / "cut.tar.x"
        file.write_bytes(data[: len(data) // 2])
        assert str(file) in refusal("spamassassin", file)

    def test_a_file_that_is_no_archive_is_named(self, tmp_path: Path) -> None:
        file = write(tmp_path, {"mail.tar.gz": "From: me\n"}) / "mail.tar.gz"
        assert str(file) in refusal("spamassassin", file)

    def test_schema(self, tmp_path: Path) -> None:
        file = archive(tmp_path / "mail.tar.gz", {"spam/1": b"x"})
        same_schema_as_stored(spamassassin.CARD, corpora.load("spamassassin", path=file))


def idx(magic: int, shape: tuple[int, ...], cells: bytes) -> bytes:
    return struct.pack(f">{1 + len(shape)}I", magic, *shape) + cells


def images(count: int) -> bytes:
    return idx(0x803, (count, 28, 28), b"".join(bytes([row + 1]) * 784 for row in range(count)))


class TestMnist:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return write(
            tmp_path,
            {
                "train-images-idx3-ubyte.gz": gzip.compress(images(2)),
                "train-labels-idx1-ubyte.gz": gzip.compress(idx(0x801, (2,), b"\x07\x00")),
                "t10k-images.idx3-ubyte": images(1),
                "t10k-labels.idx1-ubyte": idx(0x801, (1,), b"\x09"),
            },
        )

    def test_digits(self, root: Path) -> None:
        frame = corpora.load("mnist", path=root).collect()
        assert frame.drop("pixels").rows() == [(7, "train", 0), (0, "train", 1), (9, "test", 2)]
        assert frame["pixels"].to_list() == [[1] * 784, [2] * 784, [1] * 784]

    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            ("t10k-labels.idx1-ubyte", b"\0\0", "2 bytes: no IDX header"),
            ("t10k-labels.idx1-ubyte", images(1), "expected the IDX magic number 0x801, got 0x803"),
            ("t10k-labels.idx1-ubyte", idx(0x801, (1,), b"\n"), "row 0: expected a digit, got 10"),
            ("t10k-labels.idx1-ubyte", idx(0x801, (2,), b"\1\2"), "2 labels for 1 images"),
            ("t10k-labels.idx1-ubyte", idx(0x801, (2,), b"\1"), "promises 2 bytes, 1 follow"),
            ("t10k-images.idx3-ubyte", idx(0x803, (1, 2, 2), b"1234"), "images of 28 x 28"),
            ("train-labels-idx1-ubyte.gz", b"\1\2\3\4", "Not a gzipped file"),
            ("train-labels-idx1-ubyte.gz", gzip.compress(b"12345678", mtime=0)[:-9], ""),
        ],
    )
    def test_a_bad_file_is_named(
        self, root: Path, name: str, content: bytes, expected: str
    ) -> None:
        write(root, {name: content})
        message = refusal("mnist", root)
        assert name in message
        assert expected in message

    def test_a_missing_file_is_named(self, root: Path) -> None:
        (root / "t10k-labels.idx1-ubyte").unlink()
        with pytest.raises(FileNotFoundError, match="t10k-labels-idx1-ubyte"):
            corpora.load("mnist", path=root)

    def test_schema(self, root: Path) -> None:
        same_schema_as_stored(mnist.CARD, corpora.load("mnist", path=root))
