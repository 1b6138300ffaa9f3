"""The generated samples: the same every time, and every class in every short run."""

import errno
import os
from collections.abc import Callable

import polars as pl
import pytest
from sklearn.naive_bayes import GaussianNB

from tests.messages import spam_messages
from textnb.errors import ParameterError, SourceError
from textnb.workflow import samples

Generator = Callable[[int, int], pl.DataFrame]
NUMBERS = ["x1", "x2", "x3", "x4"]


@pytest.mark.parametrize(("generate", "size", "schema"), [
    (spam_messages, 4, dict.fromkeys(("label", "text"), pl.String)),
    (samples.news, 4, dict.fromkeys(("label", "text", "title", "description"), pl.String)),
    (samples.feature_table, 3, {**dict.fromkeys(NUMBERS, pl.Float64), "label": pl.String})])
def test_a_sample(generate, size, schema):
    assert generate(50, 7).equals(generate(50, 7))
    assert not generate(50, 7).equals(generate(50, 8))
    assert generate(60, 1).head(23).equals(generate(23, 1)), "a longer begins with the shorter"
    frame = generate(40 * size, 3)
    assert frame.schema == generate(0, 0).schema == schema
    assert generate(0, 0).is_empty()
    assert frame.null_count().sum_horizontal().item() == 0
    classes = set(frame["label"])
    for run in frame["label"].to_frame().iter_slices(size):
        assert set(run["label"]) == classes, "every class is in every run"
    with pytest.raises(ParameterError, match="n must be at least 0; got -1"):
        generate(-1, 0)


def test_these_rows_are_pinned():
    assert spam_messages(2).rows() == [
        ("ham", "Can you pick up blue scarf and printer paper on the way home?"),
        ("ham", 'Femi said "who ordered the soup?" and I couldn\'t stop laughing')]
    assert samples.news(1).select("label", "title").row(0) == (
        "Business", "Country record country sales week")
    *numbers, label = samples.feature_table(1).row(0)
    # Logarithms and cosines may differ in the last bit between C libraries.
    assert numbers == pytest.approx([2.9917842813, 3.1506320894, 3.4241400818, 0.4410847364])
    assert label == "c"


def test_messages_hold_what_careless_code_trips_over():
    texts = "".join(spam_messages(400, 0)["text"])
    assert all(character in texts for character in "\",'£ëé;")


def test_news_text_is_title_and_description():
    frame = samples.news(30, 2)
    joined = frame.select(pl.concat_str("title", "description", separator=" ")).to_series()
    assert frame["text"].to_list() == joined.to_list()


def test_the_classes_overlap_but_can_be_told_apart():
    train, test = samples.feature_table(600, 1), samples.feature_table(600, 2)
    model = GaussianNB().fit(train.select(NUMBERS).to_numpy(), train["label"].to_numpy())
    accuracy = model.score(test.select(NUMBERS).to_numpy(), test["label"].to_numpy())
    assert 0.85 < accuracy < 0.99


@pytest.mark.slow
def test_samples_are_written_beside_other_files(tmp_path):
    (tmp_path / "README.md").write_text("of the user")
    names = samples.write_samples(tmp_path)
    bytes_of = {name: (tmp_path / name).read_bytes() for name in names}
    assert "BSD-3-Clause" in bytes_of["SAMPLES.md"].decode()
    assert all(name.split("/")[0] in bytes_of["SAMPLES.md"].decode() for name in names[1:])
    assert samples.write_samples(tmp_path) == names, "the same files may be there"
    assert {name: (tmp_path / name).read_bytes() for name in names} == bytes_of
    assert pl.read_parquet(tmp_path / "articles.parquet").equals(samples.topics(800))


def test_samples_replace_no_file_of_the_user(tmp_path):
    (tmp_path / "message.eml").write_text("of the user")
    with pytest.raises(SourceError, match=r"message\.eml': it is there and differs"):
        samples.write_samples(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["message.eml"]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("make", [
    lambda path: path.symlink_to("absent"), os.mkfifo, lambda path: path.mkdir()],
    ids=["link", "pipe", "folder"])
def test_samples_are_all_written_or_none(make, tmp_path):
    make(tmp_path / "table.parquet")
    with pytest.raises(SourceError, match=r"table\.parquet"):
        samples.write_samples(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]


@pytest.mark.slow
def test_samples_on_a_full_disk_leave_no_file(tmp_path, monkeypatch):
    def full(path, target):
        if len(written := [each for each in tmp_path.rglob("*") if each.is_file()]) > 5:
            raise OSError(errno.ENOSPC, "no space", written)
        rename(path, target)

    rename = os.replace
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(SourceError, match="no space"):
        samples.write_samples(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
