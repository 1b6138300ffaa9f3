"""A text file that can't be read is named with the line that is at fault, and what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import textnb
from textnb.errors import ParameterError, SchemaError, SourceError


@pytest.mark.parametrize(("name", "content", "told"), [
    ("a.csv", "text,label\na,b\nbad, film,c\n", "line 3 has 3 fields, and the header has 2: put a"),
    ("a.csv", 'text,label\n"x\ny",b\nbad, film,c\n', "line 4 has 3 fields"),
    ("a.tsv", "text\tlabel\na\tb\tc\n", "line 2 has 3 fields"),
    ("a.csv", 'text,label\na,b\n"open,c\nd,e\n', 'line 3 opens a quote (") that nothing closes'),
    ("a.ndjson", '{"text":"a","label":"b"}\n{"text":"a",\n', "line 2 is no JSON ("),
    ("a.ndjson", '{"text":"a","label":"b"}\n{"text":"c \\ud800","label":"b"}\n',
     "line 2 has a lone surrogate"),
    ("a.ndjson", '{"text":"a","label":"\\uDC00"}\n', "line 1 has a lone surrogate")])
@pytest.mark.parametrize("packed", [False, True])
def test_the_line_at_fault_is_named(
    tmp_path: Path, name: str, content: str, told: str, packed: bool
) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    with pytest.raises(SourceError) as caught:
        textnb.TextClassifier().fit(path)
    assert str(caught.value).startswith(f"can't read {path}: {told}")


def test_whole_characters_in_escapes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text('{"text":"\\ud83d\\ude00 \\\\ud800","label":"a"}\n', "utf-8")
    assert textnb.scan(path, text="text").collect()["text"].to_list() == ["\U0001f600 \\ud800"]


@pytest.mark.parametrize("text", [
    "\\ud800", "\\\\\\ud800", "\\ud800\\\\\\udc00", "\\ud83d\\ude00\\uDE00", "\\udc00\\ud800",
    "\\n\\uD8aF n"])
def test_half_a_character_is_found_among_whole_ones(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.ndjson"
    sound = r'{"text":"\ud83d\ude00 \\ud800 \\\uD83D\uDE00"}' + "\n"
    path.write_text(sound * 5 + f'{{"text":"{text}"}}\n{sound}', "utf-8")
    with pytest.raises(SourceError, match="line 6 has a lone surrogate"):
        textnb.scan(path, text="text")
    path.write_text(sound, "utf-8")
    assert textnb.scan(path, text="text").collect()["text"].to_list() == [
        "\U0001f600 \\ud800 \\\U0001f600"]


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_another_separator_is_seen_and_can_be_said(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"text{mark}label\ngood, film{mark}b\n", "utf-8")
    with pytest.raises(SchemaError, match="the fields seem to be separated by") as caught:
        textnb.scan(path, text="text")
    assert ("--read format=tsv" if mark == "\t" else f"--read separator='{mark}'"
            ) in caught.value.command_line
    frame = textnb.scan(path, text="text", label="label", separator=mark).collect()
    assert frame.rows() == [("good, film", "b")]


@pytest.mark.parametrize("separator", ["", ";;", "\u00a7", '"', 5])
def test_no_separator(tmp_path: Path, separator: object) -> None:
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(ParameterError, match="separator must be one ASCII character"):
        textnb.scan(tmp_path / "a.csv", separator=separator)


def test_a_separator_is_for_csv(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"text":"a"}\n')
    with pytest.raises(ParameterError, match="separator is for CSV; the rows are ndjson"):
        textnb.scan(tmp_path / "a.ndjson", separator=";")
    with pytest.raises(ParameterError, match="separator is for a file of CSV"):
        textnb.scan({"text": ["a"]}, separator=";")
