"""A form as Polars expressions, for users of Polars without textnb.

The file holds source code: the serialised form of expressions changes between versions of Polars,
and pickle and eval are not safe for files from others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import Program, TargetAnswers, TargetRows
from textnb.export.targets.embedded import embed_json, fill_template
from textnb.export.targets.program import run_in_child
from textnb.files.parquet import ENGINE_ERRORS
from textnb.text import plan as plans
from textnb.text.characters import ACCENTS, COMBINING, TURKIC, pairs_by_replacing
from textnb.text.expressions import (
    kept_or_word,
    stop_tokens,
    stop_tokens_of_lists,
    unspaced_class,
)

_RUN = """
import importlib.util, sys
import polars as pl
folder, path, function = sys.argv[1:]
spec = importlib.util.spec_from_file_location("model", path)
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)
rows = pl.scan_parquet(folder + "/rows.parquet")
answers = getattr(model, function)(rows).select(model._ANSWERS)
answers.collect().write_parquet(folder + "/answers0.parquet")
"""


class PolarsCode(Program):
    """One Python file that needs only Polars: expressions from texts to scores."""

    name = "polars"
    suffix = ".py"
    needs = "Polars: pip install polars"

    def write(self, bundle: Bundle, path: Path) -> None:
        columns = ["tokens"] if bundle.reads == "terms" else list(bundle.columns)
        if bundle.reads == "features":
            for name in columns:
                if name == "*" or (name.startswith("^") and name.endswith("$")):
                    raise ExportError(f"feature {name!r} is a pattern of columns to Polars, not a "
                                      "name; rename it and train again, or use --to python")
                if name in ("scores", "predicted", "probabilities", "decision"):
                    raise ExportError(f"feature {name!r} has the name of a column that the answers "
                                      "have; rename it and train again, or use --to python")
        if any(isinstance(label, int) and not -2**63 <= label < 2**64 for label in bundle.labels):
            raise ExportError("a label is beyond 64 bits")
        text = fill_template(
            "polars.txt", bundle, POLARS=pl.__version__,
            DATA=embed_json(bundle, by_output=True, columns=columns),
            TOKENS="" if bundle.tokenizer is None else source_of(
                bundle.tokenizer.plan(), bundle.columns))
        path.write_text(text, "ascii", newline="\n")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        if bundle.reads == "features":
            table = pl.DataFrame(rows.features, schema=list(bundle.columns))
        else:
            table = (rows.documents if bundle.reads == "text"
                     else rows.tokens.alias("tokens").to_frame())
        function = "score_terms" if bundle.reads == "terms" else "score"
        try:
            [answers] = run_in_child(_RUN, [str(path), function], {"rows": table})
            return TargetAnswers.of(
                bundle, answers["scores"].struct.unnest().to_numpy(),
                answers["predicted"].to_list(),
                answers["probabilities"].struct.unnest().to_numpy(),
                answers["decision"].to_list() if bundle.gives_decisions else None)
        except (TypeError, ValueError, *ENGINE_ERRORS) as error:
            raise ExportError(f"the engine's answers can't be read: {error}") from None


def source_of(plan: plans.Plan, columns: Sequence[str]) -> str:
    """Write a function ``tokens(*columns)`` that builds the expression of `Tokenizer.expr`.

    Raises
    ------
    ExportError
        If the plan has a step that this module does not know; the message names it.

    Examples
    --------
    >>> lower = plans.Plan((plans.Lowercase(), plans.Matches("[^ ]+")))
    >>> print(source_of(lower, ["text"]))
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
    prefixes, lists = plan.prefixes(columns), plan.hold_tokens(columns)
    body = ['text = pl.col(column).cast(pl.String).fill_null("")',
            *_lines_of(plan.steps, plan, any(prefixes))]
    read = f"[_split(*pair) for pair in zip(columns, {_literal(prefixes)})]"
    of_tokens: list[str] = []
    if any(lists):
        of_tokens = ["def _clean(column, prefix):",
                     *(f"    {line}" for line in _steps_of_tokens(plan, any(prefixes))), "", ""]
        read = (f"[(_clean if is_list else _split)(column, prefix) for column, prefix, is_list "
                f"in zip(columns, {_literal(prefixes)}, {_literal(lists)})]")
    return "\n".join([
        "def _split(column, prefix):",
        *(f"    {line}" for line in body),
        "",
        "",
        *of_tokens,
        "def tokens(*columns):",
        '    """The tokens of texts: List(String)."""',
        f"    lists = {read}",
        "    return lists[0] if len(lists) == 1 else pl.concat_list(lists)",
    ])


def _literal(value: Any) -> str:
    """Write a value as ASCII source code."""
    return ascii(value)


def _clean(step: plans.Step, name: str) -> str | None:
    """Write the line of a step that cleans the variable ``name``; None for other steps."""
    match step:
        case plans.Normalize(form="NFC" | "NFD" | "NFKC" | "NFKD"):
            return f"{name} = {name}.str.normalize({_literal(step.form)})"
        case plans.Lowercase():
            return f"{name} = {name}.str.to_lowercase()"
        case plans.TurkicLowercase(language="tr" | "az"):
            replacing = "".join(
                f".str.replace_all({_literal(found)}, {_literal(becomes)}, literal=True)"
                for found, becomes in TURKIC)
            return f"{name} = {name}{replacing}.str.to_lowercase()"
        case plans.StripAccents(kind="ascii"):
            return _strip(name, r"[^\x00-\x7F]+")
        case plans.StripAccents(kind="unicode"):
            return _strip(name, ACCENTS)
        case plans.StripAccents(kind="marks"):
            return _strip(name, COMBINING)
        case plans.SingleSpaces():
            white = _literal(rf"[{plans.WHITE}]{{2,}}")
            return f'{name} = {name}.str.replace_all({white}, " ")'
    return None


def _lines_of(steps: Sequence[plans.Step], plan: plans.Plan, prefixed: bool) -> list[str]:
    """Write the lines of some steps of a plan."""
    lines: list[str] = []
    tokens = "words"
    for step in steps:
        line = _clean(step, "text")
        if line is not None:
            lines.append(line)
            continue
        match step:
            case plans.Matches(pattern=pattern) | plans.Runs(pattern=pattern):
                lines.append(f"words = text.str.extract_all({_literal(pattern)})")
            case plans.WordsAndPairs(members=members, least=least):
                pattern = f"[{members}]{{{least},}}|{unspaced_class(members)}+"
                lines = _words_and_pairs(lines, plan, members, pattern)
            case plans.WordsAndKept(members=members, least=least, pairs=True, kinds=kinds):
                pattern = kept_or_word(members, least, True, kinds)
                lines = _words_and_pairs(lines, plan, members, pattern)
            case plans.WordsAndKept(members=members, least=least, pairs=False, kinds=kinds):
                pattern = kept_or_word(members, least, False, kinds)
                lines.append(f"words = text.str.extract_all({_literal(pattern)})")
            case plans.Characters(least=least, most=most):
                tokens = "grams"
                lines += _characters(least, most)
            case plans.CharactersInWords(least=least, most=most):
                tokens = "grams"
                lines += _characters_in_words(least, most)
            case plans.TokenColumns():
                # `_steps_of_tokens` writes what reads such columns.
                pass
            case plans.StopWords():
                lines += _drop_stop_words(stop_tokens(plan))
            case plans.Escape(characters=characters):
                lines.append(_escape(tokens, characters))
            case plans.FieldPrefix():
                lines += _add_prefix(tokens, prefixed)
            case plans.NGrams(least=least, most=most):
                lines += _ngrams(least, most)
                tokens = "lists[0] if len(lists) == 1 else pl.concat_list(lists)"
            case _:
                raise ExportError.for_tokenizer(
                    f"{step.setting}: it can't be written as Polars code")
    return [*lines, f"return {tokens}"]


def _steps_of_tokens(plan: plans.Plan, prefixed: bool) -> list[str]:
    """Write the lines for a column of tokens; `_lines_of` has refused steps that are not known."""
    rest = tuple(step for step in plan.after_cleaning
                 if not isinstance(step, plans.Splitting | plans.TokenColumns | plans.StopWords))
    stops = stop_tokens_of_lists(plan)
    return [
        "text = pl.element().cast(pl.String)",
        *(line for step in plan.cleaning if (line := _clean(step, "text"))),
        'kept = pl.col(column).list.eval(text.filter(text != ""))',
        "none = pl.lit([], dtype=pl.List(pl.String))",
        "words = pl.when(pl.col(column).is_not_null()).then(kept).otherwise(none)",
        *(_drop_stop_words(stops) if stops else []),
        *_lines_of(rest, plan, prefixed),
    ]


def _strip(name: str, dropped: str) -> str:
    return f'{name} = {name}.str.normalize("NFKD").str.replace_all({_literal(dropped)}, "")'


def _words_and_pairs(lines: list[str], plan: plans.Plan, members: str, words: str) -> list[str]:
    """Write the lines that clean a text, and those that find its words and pairs."""
    unspaced = unspaced_class(members)
    replacements = [f"    ({_literal(pattern)}, {_literal(replacement)}),"
                    for pattern, replacement in pairs_by_replacing(unspaced)]
    only_lower = all(isinstance(step, plans.Lowercase | plans.TurkicLowercase)
                     for step in plan.cleaning)
    searched = "original" if only_lower else "text"
    return [
        "original = text",
        *lines,
        "# Pairs of characters of scripts without spaces, separated from each other.",
        f"pairs = pl.when({searched}.str.contains({_literal(unspaced)})).then(original)",
        *(line for step in plan.cleaning if (line := _clean(step, "pairs"))),
        "for pattern, replacement in (",
        *replacements,
        "):",
        "    pairs = pairs.str.replace_all(pattern, replacement)",
        f"words = pl.coalesce(pairs, text).str.extract_all({_literal(words)})",
    ]


def _drop_stop_words(stops: frozenset[str]) -> list[str]:
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
        f"padded = text.str.extract_all({_literal(f'[^{plans.WHITE}]+')}).list.eval(",
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


def _escape(name: str, characters: str) -> str:
    """Write the step that escapes characters which join tokens or end a prefix."""
    pattern, escape = _literal(rf"([\\{characters}])"), _literal(r"\${1}")
    return f"{name} = {name}.list.eval(pl.element().str.replace_all({pattern}, {escape}))"


def _add_prefix(name: str, prefixed: bool) -> list[str]:
    if not prefixed:
        return []
    return ["if prefix:",
            f"    {name} = {name}.list.eval(pl.lit(prefix) + pl.element())"]
