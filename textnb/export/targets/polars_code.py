"""A linear model as Polars expressions, for users of Polars without textnb.

The file holds source code, because serialised expressions change between versions of Polars, and it
is not safe to use pickle or eval on files from others. The source of the tokenizer comes from
`textnb.text.expressions`, which runs here with an object in place of Polars that records each call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import polars as pl

from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import Program, TargetAnswers, TargetRows
from textnb.export.targets.embedded import embed_json, fill_template
from textnb.export.targets.program import run_in_child
from textnb.files.parquet import ENGINE_ERRORS
from textnb.frames.names import is_pattern
from textnb.text import expressions
from textnb.text.plan import OwnCode, Plan, Segments

# Runs in a new process. Its arguments are a folder, the model's file, and the function to call.
_PROGRAM = """
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
        if bundle.reads != "terms":
            _check_names(bundle)
        if any(isinstance(label, int) and not -2**63 <= label < 2**64 for label in bundle.labels):
            raise ExportError("a label is beyond 64 bits")
        text = fill_template(
            "polars.txt", bundle, POLARS=pl.__version__,
            DATA=embed_json(bundle, by_output=True, columns=columns),
            TOKENS="" if bundle.tokenizer is None else source_of(
                bundle.tokenizer.plan(), bundle.columns))
        path.write_text(text, "ascii", newline="\n")

    def usage(self, bundle: Bundle) -> str:
        columns = "tokens" if bundle.reads == "terms" else "the columns of the input"
        return (f"    python model.py rows.parquet answers.parquet\n\n"
                f"`rows.parquet` has {columns}; `answers.parquet` has these rows, and the columns "
                "`scores`, `predicted` and `probabilities`. In Python it gives Polars expressions; "
                "the first lines of `model.py` say which.")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        if bundle.reads == "features":
            table = pl.DataFrame(rows.features)
            # Set here, because the constructor takes an empty name for none.
            table.columns = list(bundle.columns)
        else:
            table = (rows.documents if bundle.reads == "text"
                     else rows.tokens.alias("tokens").to_frame())
        function = "score_terms" if bundle.reads == "terms" else "score"
        try:
            [answers] = run_in_child(_PROGRAM, [str(path), function], {"rows": table})
            return TargetAnswers.of(
                bundle, answers["scores"].struct.unnest().to_numpy(),
                answers["predicted"].to_list(),
                answers["probabilities"].struct.unnest().to_numpy(),
                answers["decision"].to_list() if bundle.gives_decisions else None)
        except (TypeError, ValueError, *ENGINE_ERRORS) as error:
            raise ExportError(f"the engine's answers can't be read: {error}") from None


def _check_names(bundle: Bundle) -> None:
    """Raise ExportError if the program can't have columns of these names beside its answers."""
    kind = "feature" if bundle.reads == "features" else "text column"
    answers = ["scores", "predicted", "probabilities"]
    if bundle.gives_decisions:
        answers.append("decision")
    for name in bundle.columns:
        if is_pattern(name):
            raise ExportError.naming_settings(
                "{kind} {name!r} is a pattern of columns to Polars, not a name; rename it "
                "and train again, or use {to='python'}", kind=kind, name=name)
        if name in answers:
            raise ExportError.naming_settings(
                "{kind} {name!r} has the name of a column that the answers have; rename it "
                "and train again, or use {to='python'}", kind=kind, name=name)


def source_of(plan: Plan, columns: Sequence[str]) -> str:
    """Write the source of a function ``tokens(*columns)`` that returns the tokenizer's expression.

    It returns the same as `Tokenizer.expr`.

    Raises
    ------
    ExportError
        If a step of the plan runs Python code; the message names the step.

    Examples
    --------
    >>> from textnb.text.plan import Matches, NGrams
    >>> plan = Plan((Matches("[a-z]+"), NGrams(1, 2)))
    >>> print(source_of(plan, ["text"]))  # doctest: +ELLIPSIS
    def tokens(*columns):
        \"""The tokens of texts: List(String).\"""
        part0 = pl.col(columns[0]).cast(pl.String).fill_null('').str.extract_all('[a-z]+')
        return pl.concat_list([part0, part0.list.eval(((pl.element() + pl.lit(' ')) + ...
    """
    # These steps call functions of the user.
    for step in plan.steps:
        if isinstance(step, OwnCode | Segments):
            raise ExportError.for_tokenizer(
                f"{step.setting}: it can't be written as Polars code")
    names = [_ColumnName(name) for name in columns]
    for number, name in enumerate(names):
        name.code = f"columns[{number}]"
    lines = _recording_expressions().tokens_expr(plan, names)._lines()
    return "\n    ".join(["def tokens(*columns):",
                          '"""The tokens of texts: List(String)."""', *lines])


class _ColumnName(str):
    """A column's name, which is recorded as an item of the argument, such as ``columns[0]``."""

    code: str

    def __repr__(self) -> str:
        return self.code


def _operator(sign: str) -> Callable[[Any, object], Any]:
    def record(left: _Recorder, right: object) -> _Recorder:
        return _Recorder("(", left, f" {sign} ", _argument_source(right), ")")

    return record


class _Recorder:
    """Stands for a Polars object, and records the source code that makes it.

    Its attributes, calls and operators give new recorders. The parts of a recorder are strings and
    other recorders; its code is that of its parts, in this order.
    """

    def __init__(self, *parts: str | _Recorder) -> None:
        self._parts = parts

    def __getattr__(self, name: str) -> _Recorder:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Recorder(self, f".{name}")

    def __call__(self, *values: Any, **keywords: Any) -> _Recorder:
        parts: list[str | _Recorder] = []
        for name, value in [*(("", value) for value in values), *keywords.items()]:
            parts += [", " if parts else "", f"{name}=" if name else "", _argument_source(value)]
        return _Recorder(self, "(", *parts, ")")

    def __bool__(self) -> bool:
        raise TypeError("a recorded value has no truth value: it is known only when the code runs")

    def __invert__(self) -> _Recorder:
        return _Recorder("~", self)

    # == is not recorded, because `_lines` finds recorders in dicts by it: `textnb.text.expressions`
    # calls `eq` instead.
    __add__, __sub__, __and__, __or__, __ne__, __lt__, __le__, __gt__, __ge__ = (
        _operator(sign) for sign in ("+", "-", "&", "|", "!=", "<", "<=", ">", ">="))

    def _lines(self) -> list[str]:
        """Write the body of a function that returns the value; repeated parts become variables."""
        uses: Counter[_Recorder] = Counter()
        names: dict[_Recorder, str] = {}
        lines = []

        def count(value: _Recorder) -> None:
            uses[value] += 1
            for part in value._parts if uses[value] == 1 else ():
                if isinstance(part, _Recorder):
                    count(part)

        def write(value: _Recorder) -> str:
            if value in names:
                return names[value]
            code = "".join(part if isinstance(part, str) else write(part) for part in value._parts)
            # A variable for code of one part, such as `pl`, would be no shorter.
            if uses[value] == 1 or len(value._parts) == 1:
                return code
            names[value] = f"part{len(names)}"
            lines.append(f"{names[value]} = {code}")
            return names[value]

        count(self)
        answer = write(self)
        return [*lines, f"return {answer}"]


def _argument_source(value: Any) -> str | _Recorder:
    """The source of an argument, in ASCII: a recorder, or the literal of a value."""
    if isinstance(value, list):
        parts = [part for item in value for part in (", ", _argument_source(item))]
        return _Recorder("[", *parts[1:], "]")
    return value if isinstance(value, _Recorder) else ascii(value)


@lru_cache(maxsize=1)
def _recording_expressions() -> Any:
    """A second copy of `textnb.text.expressions`, with a recorder in place of Polars."""
    spec: Any = find_spec(expressions.__name__)
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.pl = _Recorder("pl")
    # The results of these two functions become literals in the code, so they run with the real
    # Polars.
    module._stop_tokens = expressions._stop_tokens
    module.stop_tokens_of_lists = expressions.stop_tokens_of_lists
    return module
