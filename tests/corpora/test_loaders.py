"""Each loader, on tiny files in the format of the published corpus."""

import bz2
import gzip
import io
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import corpora
from corpora import newsgroups, spamassassin
from tests.frames.writing import write_files
from textnb.errors import SourceError

Files = Mapping[str, bytes | str | None]
BBC_TOPICS = ("business", "entertainment", "politics", "sport", "tech")
MESSAGES = [("ham", 'She said "wait'), ("spam", '"Win" now'), ("ham", "a\tb"),
            ("ham", "next line\x85here\x0cand\u2028there"), ("ham", ""), ("ham", " with spaces "),
            ("spam", "£100 – ‘free’")]
MALFORMED = b"From: x\r\nSubject: =?bad?=\n\xff\x00caf\xe9\r"


def archive(entries, mode='w:gz'):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, content in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def header(size=0, kind=tarfile.REGTYPE):
    """An archive that has only the header of one entry, as an attacker could write it."""
    member = tarfile.TarInfo("spam/1")
    member.size, member.type, member.linkname = size, kind, "/etc/hostname"
    return gzip.compress(member.tobuf() + (b"" if size else bytes(1024)))


def idx(magic, shape, cells):
    return struct.pack(f">{1 + len(shape)}I", magic, *shape) + cells


def images(count):
    return idx(0x803, (count, 28, 28), b"".join(bytes([row + 1]) * 784 for row in range(count)))


PUBLISHED: dict[str, Files] = {
    "sms_spam": {"sms": "".join(f"{label}\t{text}\n" for label, text in MESSAGES)},
    "newsgroups": {
        f"20news-bydate-{split}/{group}/{number}": f"From: {split} {group}\n".encode()
        + b"caf\xe9\r\n\x00\x85"
        for split in ("train", "test") for group in newsgroups.CARD.classes
        for number in (53068, 7)},
    "ag_news": {
        "train.csv": '"3","He said ""sell""","Oil, gas\\and\n more"\n"4","Chips",""\n',
        "test.csv": "1,Talks,resume\r\n2,Goal,NA\r\n"},
    "imdb": {
        "README": "not a review", "train/urls_pos.txt": "http://reviews.example/1",
        "train/labeledBow.feat": "9 0:9", "train/unsup/0_0.txt": "nobody knows",
        "train/pos/0_9.txt": "Très bon<br />\x85", "train/neg/3_4.txt": "Bad",
        "test/pos/10_10.txt": "Great", "test/pos/2_7.txt": "Good", "test/neg/0_1.txt": "Awful"},
    "bbc_news": {"README.TXT": "not an article", **{
        f"{topic}/001.txt": f"{topic}\n\nA £".encode("latin-1") for topic in BBC_TOPICS}},
    "r8": {"r8-train-stemmed.txt": "earn\tcompani net\n",
           "r8-test-stemmed.txt": "money-fx\tdollar\n"},
    "indicnews_bengali": {
        "Bengal_SHC_Train.csv": '\ufefflabels,text\nsports,"ক্রিকেট, আজ\r\nকাল"\n',
        "Bengal_SHC_Valid.csv": "labels,text\nstate,\ufeffহো\u200cক\u00a0\n",
        "Bengal_SHC_Test.csv": 'labels,text\nkolkata,"""মেট্রো"""\n'},
    "spamassassin": {"mail.tar.gz": archive({
        "easy-ham-1/1.eml": MALFORMED, "hard_ham/2.abc": b"ham", "./spam_2/3": b""})},
    "mnist": {
        "train-images-idx3-ubyte.gz": gzip.compress(images(2)),
        "train-labels-idx1-ubyte.gz": gzip.compress(idx(0x801, (2,), b"\x07\x00")),
        "t10k-images.idx3-ubyte": images(1),
        "t10k-labels.idx1-ubyte": idx(0x801, (1,), b"\x09")},
}
# Corpora that are published as one file.
FILES = {"sms_spam": "sms", "spamassassin": "mail.tar.gz"}


def publish(root, name, changes=None):
    """Write the files of a corpus. ``changes`` replace files by prefix; None removes them."""
    changes = changes or {}
    files = {file: content for file, content in PUBLISHED[name].items()
             if not file.startswith(tuple(changes))}
    changed = {file: content for file, content in changes.items() if content is not None}
    return write_files(root, {**files, **changed}) / FILES.get(name, "")


def rows(name, path):
    return corpora.load(name, path=path).collect().rows()


@pytest.mark.parametrize(("name", "expected"), [
    # Quotes, tabs and odd line ends stay in the text.
    ("sms_spam", MESSAGES),
    ("ag_news", [
        ("Business", 'He said "sell" Oil, gas\\and\n more', "train", 'He said "sell"',
         "Oil, gas\\and\n more"),
        ("Sci/Tech", "Chips ", "train", "Chips", ""),
        ("World", "Talks resume", "test", "Talks", "resume"),
        ("Sports", "Goal NA", "test", "Goal", "NA")]),
    # Reviews without a label are left out.
    ("imdb", [
        ("neg", "Awful", "test", 0, 1), ("pos", "Great", "test", 10, 10),
        ("pos", "Good", "test", 2, 7), ("neg", "Bad", "train", 3, 4),
        ("pos", "Très bon<br />\x85", "train", 0, 9)]),
    ("bbc_news", [(topic, f"{topic}\n\nA £", "001") for topic in BBC_TOPICS]),
    ("r8", [("earn", "compani net", "train"), ("money-fx", "dollar", "test")]),
    # Marks, joiners and line breaks stay in the text.
    ("indicnews_bengali", [
        ("kolkata", '"মেট্রো"', "test"), ("sports", "ক্রিকেট, আজ\r\nকাল", "train"),
        ("state", "\ufeffহো\u200cক\u00a0", "valid")]),
    # The bytes are exact, and the text is Latin-1.
    ("spamassassin", [
        ("ham", MALFORMED.decode("latin-1"), "easy-ham-1", "1.eml", MALFORMED),
        ("ham", "ham", "hard_ham", "2.abc", b"ham"), ("spam", "", "spam_2", "3", b"")]),
    ("mnist", [(7, "train", 0, [1] * 784), (0, "train", 1, [2] * 784), (9, "test", 2, [1] * 784)]),
])
def test_rows_of_the_published_form(name, expected, tmp_path):
    assert rows(name, publish(tmp_path, name)) == expected


def test_newsgroups_are_latin_1_and_sorted_by_path(tmp_path):
    frame = corpora.load("newsgroups", path=publish(tmp_path, "newsgroups")).collect()
    assert frame.height == 2 * 20 * 2
    assert frame.row(0) == (
        "alt.atheism", "From: test alt.atheism\ncafé\r\n\x00\x85", "test", "53068")
    assert frame.equals(frame.sort("split", "label", "id"))


def test_sms_may_have_windows_line_ends_and_no_last_one(tmp_path):
    path = publish(tmp_path, "sms_spam", {"sms": "ham\tone\r\nspam\ttwo"})
    assert rows("sms_spam", path) == [("ham", "one"), ("spam", "two")]


def test_the_least_processed_variant_of_r8_is_read(tmp_path):
    path = publish(tmp_path, "r8", {
        f"r8-{split}-{variant}.txt": f"acq\t{variant}\n" for split in ("train", "test")
        for variant in ("all-terms", "no-short", "stemmed")})
    assert rows("r8", path) == [("acq", "all-terms", "train"), ("acq", "all-terms", "test")]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_schema_is_that_of_the_stored_copy(name, tmp_path):
    published = corpora.load(name, path=publish(tmp_path, name)).collect_schema()
    if not corpora.available(name):
        pytest.skip(f"there is no stored copy of {name}")
    assert published == corpora.load(name).collect_schema()


SMS, TEST, BENGALI = "can't read {root}/sms: ", "can't read {root}/test.csv: ", "Train.csv: "
LABELS, DIGITS = "t10k-labels.idx1-ubyte", "train-labels-idx1-ubyte.gz"
NO_SPLIT, NO_FOLDER = "20news-bydate-test", "neither ham nor spam"


@pytest.mark.parametrize(("name", "changes", "words"), [
    ("sms_spam", {"sms": b"ham\tok\nno tab here\n"},
     [SMS + "line 2: expected label<TAB>text, got 'no tab here'"]),
    ("sms_spam", {"sms": b"ham\tok\n\nham\tok\n"},
     [SMS + "line 2: expected label<TAB>text, got ''"]),
    ("sms_spam", {"sms": b"ham\tok\neggs\tno\n"},
     [SMS + "line 2: unknown label 'eggs'; expected one of ham, spam"]),
    ("sms_spam", {"sms": b"ham\tok\nham\tcaf\xe9\n"}, [SMS + "line 2: byte 0xe9 is not utf-8"]),
    ("sms_spam", {"sms": b""}, [SMS + "it is empty"]),
    ("newsgroups", {"20news-bydate-test/sci.med": None}, [NO_SPLIT, "no class folder sci.med;"]),
    ("newsgroups", {"20news-bydate-train/sci.bio/1": "x"}, ["unknown class folder sci.bio;"]),
    ("ag_news", {"test.csv": '"1","a","b"\n"5","a","b"\n'},
     [TEST + "line 2: expected a class index from 1 to 4, got '5'"]),
    ("ag_news", {"test.csv": '"Class Index","Title","Description"\n'},
     [TEST + "line 1: expected a class index from 1 to 4, got 'Class Index'"]),
    ("ag_news", {"test.csv": '"1","a\nb","c"\n"2","d"\n'},
     [TEST + "line 3: expected 3 fields, got 2"]),
    ("ag_news", {"test.csv": '"1","a","b"\n\n"1","a","b"\n'},
     [TEST + "line 2: expected 3 fields, got 0"]),
    ("ag_news", {"test.csv": '"1","a","b"\n"1","a "quoted" word","b"\n'},
     [TEST + "line 2: ',' expected after '\"'"]),
    ("ag_news", {"test.csv": '"1","a","b"\n"1","a","never closed\n'},
     [TEST + "line 2: unexpected end of data"]),
    ("ag_news", {"test.csv": ""}, [TEST + "it is empty"]),
    ("imdb", {"test/neg/1_2.txt": b"caf\xe9"}, ["1_2.txt: byte 0xe9"]),
    ("imdb", {"train/pos/12.txt": "?"}, ["12.txt: expected a name such as 123_8.txt"]),
    ("imdb", {"train/pos/1_11.txt": "?"}, ["1_11.txt: expected a name such as 123_8.txt"]),
    ("imdb", {"train/pos/a_3.txt": "?"}, ["a_3.txt: expected a name such as 123_8.txt"]),
    ("imdb", {"train/pos/1_3.txt.bak": "?"}, ["1_3.txt.bak: expected a name such as 123_8.txt"]),
    # The path is the parent of the right folder
    ("bbc_news", {**dict.fromkeys(BBC_TOPICS), "bbc/sport/001.txt": "x"},
     ["no class folder business"]),
    ("r8", {"r8-train-no-stop.txt": "acq\tx\n"},
     ["r8-train-no-stop.txt, r8-train-stemmed.txt; keep one"]),
    # A label of R52
    ("r8", {"r8-train-all-terms.txt": "acq\tx\ncocoa\tx\n"},
     ["r8-train-all-terms.txt: line 2: unknown label 'cocoa'"]),
    ("indicnews_bengali", {"Bengal_SHC_Train.csv": "text,labels\nx,sports\n"},
     [BENGALI + "line 1: expected the header labels,text, got 'text,"]),
    ("indicnews_bengali", {"Bengal_SHC_Train.csv": "labels,text\nsports,x\nsport,x\n"},
     [BENGALI + "line 3: unknown label 'sport'"]),
    ("indicnews_bengali", {"Bengal_SHC_Train.csv": "labels,text\nsports,x,y\n"},
     [BENGALI + "line 2: expected 2 fields, got 3"]),
    ("indicnews_bengali", {"Bengal_SHC_Train.csv": ""}, [BENGALI + "it is empty"]),
    ("spamassassin", {"mail.tar.gz": header(kind=tarfile.SYMTYPE)},
     ["mail.tar.gz: entry 'spam/1' is a link or a device"]),
    ("spamassassin", {"mail.tar.gz": header(kind=tarfile.LNKTYPE)}, ["is a link or a device"]),
    ("spamassassin", {"mail.tar.gz": header(kind=tarfile.FIFOTYPE)}, ["is a link or a device"]),
    # The header alone causes the error; the content is not read
    ("spamassassin", {"mail.tar.gz": header(spamassassin.MAX_MESSAGE_BYTES + 1)},
     ["entry 'spam/1' declares 16,777,217 bytes"]),
    *(("spamassassin", {"mail.tar.gz": archive({entry: b"x"})},
       [f"entry {entry!r}: folder ", NO_FOLDER])
      for entry in ("1", "inbox/1", "spammers/1", "ham/1", "spam/deep/1")),
    ("spamassassin", {"mail.tar.gz": "From: me\n"}, ["{root}/mail.tar.gz"]),
    ("mnist", {LABELS: b"\0\0"}, [LABELS, "2 bytes: no IDX header"]),
    ("mnist", {LABELS: images(1)}, [LABELS, "expected the IDX magic number 0x801, got 0x803"]),
    ("mnist", {LABELS: idx(0x801, (1,), b"\n")}, [LABELS, "row 0: expected a digit, got 10"]),
    ("mnist", {LABELS: idx(0x801, (2,), b"\1\2")}, [LABELS, "2 labels for 1 images"]),
    ("mnist", {LABELS: idx(0x801, (2,), b"\1")}, [LABELS, "promises 2 bytes, 1 follow"]),
    ("mnist", {"t10k-images.idx3-ubyte": idx(0x803, (1, 2, 2), b"1234")},
     ["t10k-images.idx3-ubyte", "images of 28 x 28"]),
    ("mnist", {DIGITS: b"\1\2\3\4"}, [DIGITS, "Not a gzipped file"]),
    ("mnist", {DIGITS: gzip.compress(b"12345678", mtime=0)[:-9]}, [DIGITS]),
])
def test_a_bad_file_is_named(name, changes, words, tmp_path):
    with pytest.raises(SourceError) as caught:
        corpora.load(name, path=publish(tmp_path, name, changes)).collect()
    for part in words:
        assert part.replace("{root}", str(tmp_path)) in str(caught.value)


@pytest.mark.parametrize(("name", "missing"), [
    ("newsgroups", "20news-bydate-test"), ("ag_news", "test.csv"), ("r8", "r8-test-"),
    ("mnist", "t10k-labels")])
def test_a_missing_file_is_named(name, missing, tmp_path):
    with pytest.raises(FileNotFoundError, match=missing):
        corpora.load(name, path=publish(tmp_path, name, {missing: None}))


class TestArchives:
    def test_a_folder_of_published_archives_is_read(self, tmp_path):
        write_files(tmp_path, {
            "20030228_spam.tar.bz2": archive({"spam/1": b"buy", "spam/cmds": b"mv"}, "w:bz2"),
            "20030228_easy_ham.tar.bz2": archive({"easy_ham/1": b"hi"}, "w:bz2")})
        assert [row[:3] for row in rows("spamassassin", tmp_path)] == [
            ("ham", "hi", "easy_ham"), ("spam", "buy", "spam")]

    def test_nothing_is_written_to_disk(self, tmp_path, monkeypatch):
        write_files(tmp_path, {"inside/mail.tar.gz": archive(
            {"../../spam/escaped": b"a", "/spam/absolute": b"b", "spam/1": b"c"})})
        monkeypatch.chdir(tmp_path / "inside")
        assert [row[2:4] for row in rows("spamassassin", Path("mail.tar.gz"))] == [
            ("spam", "escaped"), ("spam", "absolute"), ("spam", "1")]
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["inside", "mail.tar.gz"]

    @pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
    def test_a_truncated_archive_is_named(self, tmp_path, pack):
        data = pack(archive({"spam/1": bytes(range(256)) * 400}, "w:"))
        write_files(tmp_path, {"cut.tar.x": data[:len(data) // 2]})
        with pytest.raises(SourceError, match=f"{tmp_path}/cut.tar.x"):
            corpora.load("spamassassin", path=tmp_path / "cut.tar.x").collect()
