"""The comparison of mail filters removes headers that other filters and lists have added."""

import io
import tarfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks import filters
from benchmarks.filters import clean, measure, messages


@pytest.mark.parametrize(("raw", "clean_message"), [
    (b"X-Spam-Status: Yes,\n\tscore=9\nSubject: [SPAM] a\nList-Id: x\n\nX-Spam: b\n\nList-Id: c",
     b"Subject: a\n\nX-Spam: b\n\nList-Id: c"),
    (b"X-Barracuda-Score: 1\r\nTo: a\r\n\r\nb\r\n", b"To: a\n\nb\n"),
    (b"Precedence: list\nX-BeenThere: y\nX-Mailer: z\n", b"X-Mailer: z\n"),
    (b"Subject: a\nX-Spam-Flag: YES", b"Subject: a\n"),
    (b"", b"")])
def test_headers_of_filters_and_lists_are_removed(raw, clean_message):
    assert clean(raw).rstrip(b"\n") == clean_message.rstrip(b"\n")


def test_the_names_of_folders_are_the_classes(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for name in ("./spam/1.eml", "easy-ham-1/2", "ham/3.eml", "cmds"):
            entry = tarfile.TarInfo(name)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(name[-1:].encode()))
    assert [label for label, _ in messages(tmp_path / "a.tar.gz")] == ["spam", "ham", "ham"]


def test_another_filter_scores_only_messages_that_it_has_not_learned():
    mail = pl.DataFrame({"path": ["a b/1", "a b/2", "3", "4", "5", "6"],
                         "label": ["spam", "ham", "ham", "spam", "ham", "spam"]})
    scores = {"3": "0.2", "4": "0.9", "5": "0.6", "6": "0.99", "a b/1": "0", "a b/2": "0"}
    calls = []

    def score(folder, spam, ham, test):
        assert folder.is_dir()
        assert not list(folder.iterdir())
        calls.append((spam, ham, test))
        return "\n".join(f"{path} {scores[path]}" for path in reversed(test.splitlines()))

    parts = [(np.arange(2), np.arange(2, 4)), (np.arange(4), np.arange(4, 6))]
    result, errors = measure(mail, filters.other_judge(score, 0.5, Path(), mail), parts, True)
    assert calls == [("a b/1\n", "a b/2\n", "3\n4\n"),
                     ("a b/1\n4\n", "a b/2\n3\n", "5\n6\n")]
    assert result.held.scores[:, 1].tolist() == pytest.approx([-0.3, 0.4, 0.1, 0.49])
    assert (result.roca, errors.false_positives, errors.false_negatives) == (0.0, 50.0, 0.0)
