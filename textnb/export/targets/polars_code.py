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
from textnb.export.targets.base import EVERY, TargetAnswers, TargetRows
from textnb.export.targets.embedded import data, source
from textnb.export.targets.program import output
from textnb.files.parquet import ENGINE_ERRORS, decode
from textnb.text.expressions import stop_tokens, unspaced_class
from textnb.text.marks import COMBINING
from textnb.text.plan import (
    WHITE,
    Characters,
    CharactersInWords,
    Escape,
    FieldPrefix,
    Lowercase,
    Matches,
    NGrams,
    Normalize,
    Plan,
    Runs,
    SingleSpaces,
    StopWords,
    StripAccents,
    WordsAndPairs,
)
from textnb.text.plan import Step as PlanStep
from textnb.text.unspaced import pairs_by_replacing

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
            TOKENS="" if bundle.tokenizer is None else source_of(
                bundle.tokenizer.plan(), bundle.columns))
        path.write_text(text, "ascii", newline="\n")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        with tempfile.TemporaryDirectory(prefix="textnb-") as folder:
            given, answered = Path(folder, "rows.parquet"), Path(folder, "answers.parquet")
            how = _frame(bundle, rows, given)
            # -B, so that importing the file leaves nothing beside it.
            output([sys.executable, "-IB", "-c", _RUN, str(path), how, str(given), str(answered)])
            try:
                answers = decode(answered.read_bytes())
                scores = answers["scores"].struct.unnest().to_numpy()
                return TargetAnswers(np.asarray(scores, np.float64), answers["predicted"].to_list())
            except (OSError, TypeError, ValueError, *ENGINE_ERRORS) as error:
                raise ExportError(f"the engine's answers can't be read: {error}") from None


def _frame(bundle: Bundle, rows: TargetRows, path: Path) -> str:
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


def source_of(plan: Plan, columns: Sequence[str]) -> str:
    """Source code of a function ``tokens(*columns)``: what `Tokenizer.expr` makes, written out.

    Raises
    ------
    ExportError
        If the plan has a step that is not written here; it is named.

    Examples
    --------
    >>> print(source_of(Plan((Lowercase(), Matches("[^ ]+"))), ["text"]))
    def _split(column, prefix):
        text = pl.col(column).cast(pl.String).fill_null("")
        text = text.str.to_lowercase()
        words = text.str.extract_all('[^ ]+')
        return words
    <BLANKLINE>
    <BLANKLINE>
    def tokens(*columns):
        \"""The tokens of texts: List(String).\"""
        lists = [_split(*pair) for pair in zip(columns, [''])]
        return lists[0] if len(lists) == 1 else pl.concat_list(lists)
    """
    prefixes = plan.prefixes(columns)
    body = ['text = pl.col(column).cast(pl.String).fill_null("")', *_steps(plan, any(prefixes))]
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


def _cleaned(step: PlanStep, name: str) -> str | None:
    """A line that cleans a text of this name; None for a step that does not clean."""
    match step:
        case Normalize(form="NFC" | "NFD" | "NFKC" | "NFKD"):
            return f"{name} = {name}.str.normalize({_literal(step.form)})"
        case Lowercase():
            return f"{name} = {name}.str.to_lowercase()"
        case StripAccents(kind="ascii"):
            return _stripped(name, r"[^\x00-\x7F]+")
        case StripAccents(kind="unicode"):
            return _stripped(name, COMBINING)
        case SingleSpaces():
            white = _literal(rf"[{WHITE}]{{2,}}")
            return f'{name} = {name}.str.replace_all({white}, " ")'
    return None


def _steps(plan: Plan, prefixed: bool) -> list[str]:
    lines, tokens = [], "words"
    for step in plan.steps:
        cleaned = _cleaned(step, "text")
        if cleaned is not None:
            lines.append(cleaned)
            continue
        match step:
            case Matches(pattern=pattern) | Runs(pattern=pattern):
                lines.append(f"words = text.str.extract_all({_literal(pattern)})")
            case WordsAndPairs(members=members, least=least):
                lines = _words_and_pairs(lines, plan, members, least)
            case Characters(least=least, most=most):
                tokens = "grams"
                lines += _characters(least, most)
            case CharactersInWords(least=least, most=most):
                tokens = "grams"
                lines += _characters_in_words(least, most)
            case StopWords():
                lines += _without(stop_tokens(plan))
            case Escape(characters=characters):
                lines.append(_escaped(tokens, characters))
            case FieldPrefix():
                lines += _prefixed(tokens, prefixed)
            case NGrams(least=least, most=most):
                lines += _ngrams(least, most)
                tokens = "lists[0] if len(lists) == 1 else pl.concat_list(lists)"
            case _:
                raise ExportError.for_tokenizer(
                    f"{step.setting}: it can't be written as Polars code")
    return [*lines, f"return {tokens}"]


def _stripped(name: str, dropped: str) -> str:
    return f'{name} = {name}.str.normalize("NFKD").str.replace_all({_literal(dropped)}, "")'


def _words_and_pairs(lines: list[str], plan: Plan, members: str, least: int) -> list[str]:
    """The lines that clean a text, and those that find its words and pairs."""
    alone = unspaced_class(members)
    replacements = [f"    ({_literal(found)}, {_literal(becomes)}),"
                    for found, becomes in pairs_by_replacing(alone)]
    pattern = f"[{members}]{{{least},}}|{alone}+"
    searched = "given" if all(isinstance(step, Lowercase) for step in plan.cleaning) else "text"
    return [
        "given = text",
        *lines,
        "# Pairs of characters of scripts without spaces, put apart from each other.",
        f"pairs = pl.when({searched}.str.contains({_literal(alone)})).then(given)",
        *(line for step in plan.cleaning if (line := _cleaned(step, "pairs"))),
        "for found, becomes in (",
        *replacements,
        "):",
        "    pairs = pairs.str.replace_all(found, becomes)",
        f"words = pl.coalesce(pairs, text).str.extract_all({_literal(pattern)})",
    ]


def _without(stops: frozenset[str]) -> list[str]:
    return [f"stops = pl.Series({_literal(sorted(stops))}, dtype=pl.String).implode()",
            "words = words.list.eval(pl.element().filter(~pl.element().is_in(stops)))"]


def _ngrams(least: int, most: int) -> list[str]:
    return [
        "lists = []",
        f"for n in range({least}, {most + 1}):",
        "    joined = pl.element()",
        "    for ahead in range(1, n):",
        '        joined = joined + pl.lit(" ") + pl.element().shift(-ahead)',
        "    lists.append(words if n == 1 else words.list.eval(joined).list.drop_nulls())",
    ]


def _characters(least: int, most: int) -> list[str]:
    return [
        "# Matches do not overlap: n-grams of n characters need a pass for each offset below n.",
        'lists = [text.str.slice(offset).str.extract_all("(?s:.{%d})" % n)',
        f"         for n in range({least}, {most + 1}) for offset in range(n)]",
        "grams = lists[0] if len(lists) == 1 else pl.concat_list(lists)",
    ]


def _characters_in_words(least: int, most: int) -> list[str]:
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


def _escaped(name: str, characters: str) -> str:
    """Escapes where a token itself could hold what joins tokens or follows a prefix."""
    found, escaped = _literal(rf"([\\{characters}])"), _literal(r"\${1}")
    return f"{name} = {name}.list.eval(pl.element().str.replace_all({found}, {escaped}))"


def _prefixed(name: str, prefixed: bool) -> list[str]:
    if not prefixed:
        return []
    return ["if prefix:",
            f"    {name} = {name}.list.eval(pl.lit(prefix) + pl.element())"]
