"""A form as Polars expressions, for those who have Polars but not textnb.

The file holds expressions as source code: Polars' own serialised form of expressions is not stable
from one version to the next, and neither pickle nor eval is a thing to hand to others.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from textnb.bayes.features import Step
from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import EVERY, Answered, Rows
from textnb.export.targets.embedded import data, source
from textnb.export.targets.program import output
from textnb.files.parquet import ENGINE_ERRORS, decode
from textnb.text.marks import COMBINING
from textnb.text.supported import ANYTHING, Supported, any_of
from textnb.text.tokens import WHITE, Tokenizer, unsupported

_RUN = """
import importlib.util, sys
import polars as pl
path, how, given, answered = sys.argv[1:]
spec = importlib.util.spec_from_file_location("model", path)
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)
answers = getattr(model, how)(pl.scan_parquet(given)).select("scores", "predicted")
answers.collect().write_parquet(answered)
"""


# What `source_of` writes.
_WRITTEN: Supported = {
    "pattern": ANYTHING["pattern"],
    "lowercase": any_of(True, False),
    "ngram_range": ANYTHING["ngram_range"],
    "analyzer": any_of("word", "char", "char_wb"),
    "normalize": any_of(None, "NFC", "NFD", "NFKC", "NFKD"),
    "strip_accents": any_of(None, "unicode", "ascii"),
    "stop_words": ANYTHING["stop_words"],
    "field_prefix": ANYTHING["field_prefix"],
}


class PolarsCode:
    """One Python file that needs Polars alone: expressions from texts to scores."""

    name: ClassVar[str] = "polars"
    suffix: ClassVar[str] = ".py"
    reads: ClassVar[tuple[str, ...]] = ("text", "terms", "features")
    tolerance: ClassVar[float] = 1e-9
    steps: ClassVar[tuple[type[Step], ...]] = EVERY
    needs: ClassVar[str] = "Polars: pip install polars"

    def write(self, bundle: Bundle, path: Path) -> None:
        columns = ["tokens"] if bundle.reads == "terms" else list(bundle.columns)
        if bundle.reads == "features":
            for name in columns:
                if name == "*" or (name.startswith("^") and name.endswith("$")):
                    raise ExportError(f"feature {name!r} is a pattern of columns to Polars, not a "
                                      "name; rename it and train again, or use --to python")
                if name in ("scores", "predicted"):
                    raise ExportError(f"feature {name!r} has the name of a column that the answers "
                                      "have; rename it and train again, or use --to python")
        if any(isinstance(label, int) and not -2**63 <= label < 2**64 for label in bundle.labels):
            raise ExportError("a label is beyond 64 bits")
        text = source(
            "polars.txt", bundle, POLARS=pl.__version__,
            DATA=data(bundle, by_output=True, columns=columns),
            TOKENS="" if bundle.tokenizer is None else source_of(bundle.tokenizer, bundle.columns))
        path.write_text(text, "ascii", newline="\n")

    def run(self, bundle: Bundle, path: Path, rows: Rows) -> Answered:
        with tempfile.TemporaryDirectory(prefix="textnb-") as folder:
            given, answered = Path(folder, "rows.parquet"), Path(folder, "answers.parquet")
            how = _frame(bundle, rows, given)
            # -B, so that importing the file leaves nothing beside it.
            output([sys.executable, "-IB", "-c", _RUN, str(path), how, str(given), str(answered)])
            try:
                answers = decode(answered.read_bytes())
                scores = answers["scores"].struct.unnest().to_numpy()
                return Answered(np.asarray(scores, np.float64), answers["predicted"].to_list())
            except (OSError, TypeError, ValueError, *ENGINE_ERRORS) as error:
                raise ExportError(f"the engine's answers can't be read: {error}") from None


def _frame(bundle: Bundle, rows: Rows, path: Path) -> str:
    """Write the rows as a frame; the function that scores it."""
    if rows.features is not None:
        pl.DataFrame(rows.features, schema=list(bundle.columns)).write_parquet(path)
        return "score"
    if bundle.reads == "text":
        documents = rows.documents
        if documents is None:
            assert rows.texts is not None
            documents = rows.texts.alias(bundle.columns[0]).to_frame()
        documents.write_parquet(path)
        return "score"
    assert rows.tokens is not None
    rows.tokens.alias("tokens").to_frame().write_parquet(path)
    return "score_terms"


def source_of(tokenizer: Tokenizer, columns: Sequence[str]) -> str:
    """Source code of a function ``tokens(*columns)``: what `Tokenizer.expr` makes, written out.

    Examples
    --------
    >>> print(source_of(Tokenizer(), ["text"]))
    def _split(column, prefix):
        text = pl.col(column).cast(pl.String).fill_null("")
        text = text.str.to_lowercase()
        words = text.str.extract_all('[\\\\p{L}\\\\p{M}\\\\p{N}_]{2,}')
        return words
    <BLANKLINE>
    <BLANKLINE>
    def tokens(*columns):
        \"""The tokens of texts: List(String).\"""
        lists = [_split(*pair) for pair in zip(columns, [''])]
        return lists[0] if len(lists) == 1 else pl.concat_list(lists)
    """
    unknown = unsupported(tokenizer, _WRITTEN)
    if unknown:
        raise ExportError(f"{unknown}: it can't be written as Polars code")
    tokenizer.expr(columns)  # it raises where a prefix can't be written
    prefixes = [f"{name}:" if tokenizer.field_prefix is True
                or (tokenizer.field_prefix and name in tokenizer.field_prefix) else ""
                for name in columns]
    body = ['text = pl.col(column).cast(pl.String).fill_null("")', *_cleaned(tokenizer)]
    if tokenizer.analyzer == "word":
        body += _words(tokenizer, any(prefixes))
    else:
        body += (_char if tokenizer.analyzer == "char" else _char_wb)(*tokenizer.ngram_range)
        body += [*_escaped("grams", tokenizer), *_prefixed("grams", any(prefixes)), "return grams"]
    return "\n".join([
        "def _split(column, prefix):",
        *(f"    {line}" for line in body),
        "",
        "",
        "def tokens(*columns):",
        '    """The tokens of texts: List(String)."""',
        f"    lists = [_split(*pair) for pair in zip(columns, {_literal(prefixes)})]",
        "    return lists[0] if len(lists) == 1 else pl.concat_list(lists)",
    ])


def _literal(value: Any) -> str:
    """A value as ASCII source code."""
    return ascii(value)


def _cleaned(tokenizer: Tokenizer) -> list[str]:
    lines = []
    if tokenizer.normalize is not None:
        lines.append(f"text = text.str.normalize({_literal(tokenizer.normalize)})")
    if tokenizer.lowercase:
        lines.append("text = text.str.to_lowercase()")
    if tokenizer.strip_accents is not None:
        dropped = r"[^\x00-\x7F]+" if tokenizer.strip_accents == "ascii" else COMBINING
        lines.append(f'text = text.str.normalize("NFKD").str.replace_all({_literal(dropped)}, "")')
    return lines


def _words(tokenizer: Tokenizer, prefixed: bool) -> list[str]:
    lines = [f"words = text.str.extract_all({_literal(tokenizer.pattern)})"]
    if tokenizer.stop_words:
        stops = _literal(sorted(tokenizer.stop_tokens()))
        lines += [f"stops = pl.Series({stops}, dtype=pl.String).implode()",
                  "words = words.list.eval(pl.element().filter(~pl.element().is_in(stops)))"]
    lines += [*_escaped("words", tokenizer), *_prefixed("words", prefixed)]
    least, most = tokenizer.ngram_range
    if most == 1:
        return [*lines, "return words"]
    return [
        *lines,
        "lists = []",
        f"for n in range({least}, {most + 1}):",
        "    joined = pl.element()",
        "    for ahead in range(1, n):",
        '        joined = joined + pl.lit(" ") + pl.element().shift(-ahead)',
        "    lists.append(words if n == 1 else words.list.eval(joined).list.drop_nulls())",
        "return lists[0] if len(lists) == 1 else pl.concat_list(lists)",
    ]


def _char(least: int, most: int) -> list[str]:
    white = _literal(rf"[{WHITE}]{{2,}}")
    return [
        f'text = text.str.replace_all({white}, " ")',
        "# Matches do not overlap: n-grams of n characters need a pass for each offset below n.",
        'lists = [text.str.slice(offset).str.extract_all("(?s:.{%d})" % n)',
        f"         for n in range({least}, {most + 1}) for offset in range(n)]",
        "grams = lists[0] if len(lists) == 1 else pl.concat_list(lists)",
    ]


def _char_wb(least: int, most: int) -> list[str]:
    lines = [
        "# One padded word to a line; a word has no white space, so no line feed.",
        f"padded = text.str.extract_all({_literal(f'[^{WHITE}]+')}).list.eval(",
        '    pl.lit(" ") + pl.element() + pl.lit(" "))',
        r'lines = padded.list.join("\n")',
        "lists = []",
        f"for n in range({least}, {most + 1}):",
        "    for offset in range(n):",
        r'        cut = r"(?m)^[^\n]{0,%d}" % offset',
        '        rest = lines.str.replace_all(cut, "") if offset else lines',
        r'        lists.append(rest.str.extract_all(r"[^\n]{%d}" % n))',
    ]
    if least > 1:
        lines.append(rf'lists.append(lines.str.extract_all(r"(?m)^[^\n]{{1,{least - 1}}}$"))')
    return [*lines, "grams = lists[0] if len(lists) == 1 else pl.concat_list(lists)"]


def _escaped(name: str, tokenizer: Tokenizer) -> list[str]:
    """Escapes where a token itself could hold what joins tokens or follows a prefix."""
    word = tokenizer.analyzer == "word"
    if word and tokenizer.run() is not None:
        return []
    marks = (" " if word and tokenizer.ngram_range[1] > 1 else "") + (
        ":" if tokenizer.field_prefix else "")
    if not marks:
        return []
    found, escaped = _literal(rf"([\\{marks}])"), _literal(r"\${1}")
    return [f"{name} = {name}.list.eval(pl.element().str.replace_all({found}, {escaped}))"]


def _prefixed(name: str, prefixed: bool) -> list[str]:
    if not prefixed:
        return []
    return ["if prefix:",
            f"    {name} = {name}.list.eval(pl.lit(prefix) + pl.element())"]
