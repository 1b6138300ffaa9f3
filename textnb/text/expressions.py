"""Polars expressions for a plan. They implement every step of a plan.

    String -> [cleaning] -> String -> [splitting] -> List(String) -> [other steps] -> List(String)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl

from textnb.errors import ParameterError
from textnb.runtime.forks import check_fork
from textnb.text.characters import (
    ACCENTS,
    COMBINING,
    TURKIC,
    UNSPACED,
    kinds_pattern,
    tokens_by_replacing,
)
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
    OwnCode,
    Plan,
    Runs,
    Segments,
    SingleSpaces,
    Step,
    StopWords,
    StripAccents,
    TokenColumns,
    TurkicLowercase,
    WordsAndKinds,
    WordsAndPairs,
    steps_of_stop_words,
)


def tokens_expr(plan: Plan, text: str | Sequence[str]) -> pl.Expr:
    """Tokens of one or several text columns: String, or lists of tokens -> List(String).

    Null counts as empty. The tokens of several columns follow each other.

    Raises
    ------
    ParameterError
        If the plan has a step that expressions do not know, or a prefix can't be written.
    """
    return _joined(_tokens_of_columns(plan, text))


def words_exprs(plan: Plan, text: str | Sequence[str]) -> list[pl.Expr]:
    """`tokens_expr` of each text column, before the n-grams that the plan ends with."""
    return _tokens_of_columns(Plan(plan.steps[:-1]), text)


def _tokens_of_columns(plan: Plan, text: str | Sequence[str]) -> list[pl.Expr]:
    check_fork()
    columns = _columns(text)
    segments = plan.find(Segments)
    return [_run_on_tokens(plan, pl.col(name), prefix) if holds_tokens
            else _run_on_tokens(plan, _segmented(_text(name), segments), prefix) if segments
            else _run(plan.steps, _text(name), prefix)
            for name, prefix, holds_tokens in zip(
                columns, plan.prefixes(columns), plan.hold_tokens(columns), strict=True)]


def cleaned_exprs(plan: Plan, text: str | Sequence[str]) -> list[pl.Expr]:
    """Each text column after the cleaning steps, as input of the step that splits texts."""
    check_fork()
    return [_run(plan.cleaning, _text(name), "") for name in _columns(text)]


class Separators(NamedTuple):
    """How texts are split at characters that are in no word.

    Attributes
    ----------
    pattern : str
        Its matches are replaced by a space.
    min_length : int
        Shorter strings are not words, except those of ``unspaced``.
    unspaced : str
        The class of the characters whose strings are words of any length; empty for none.
    """

    pattern: str
    min_length: int
    unspaced: str = ""

    def are_words(self, strings: pl.Series) -> pl.Series:
        """Whether each of the strings between spaces is a word."""
        long_enough = strings.str.len_chars() >= self.min_length
        return long_enough | strings.str.contains(self.unspaced) if self.unspaced else long_enough


def separators(plan: Plan) -> Separators | None:
    r"""What separates the words of a plan whose tokens are runs; None for other plans.

    The words are also what is left after replacing every stretch of other characters by a space,
    splitting on spaces, and dropping short strings. That is faster, as it needs fewer matches.

    Examples
    --------
    >>> separators(Plan((Lowercase(), Runs(r"\w+", r"\w", 1))))
    Separators(pattern='[^\\w ]+', min_length=1, unspaced='')
    """
    match plan.after_cleaning:
        case (Runs(members=members, min_length=min_length),):
            return Separators(rf"[^{members} ]+", min_length)
        case (WordsAndPairs(members=members, min_length=min_length),):
            return Separators(rf"[^{members} ]+", min_length, unspaced_class(members))
        case _:
            return None


def split_expr(plan: Plan, text: str | Sequence[str]) -> pl.Expr:
    """`tokens_expr` with `separators`; the result also has short runs and empty strings.

    Raises
    ------
    ParameterError
        If the plan has no separators.
    """
    split = separators(plan)
    if split is None:
        raise ParameterError(f"{plan!r} does not end in runs of characters")
    step = plan.find(WordsAndPairs)
    texts = cleaned_exprs(plan, text) if step is None else [
        _with_pairs(plan.cleaning, _text(name), split.unspaced, step.sizes)
        for name in _columns(text)]
    return _joined([each.str.replace_all(split.pattern, " ").str.split(" ") for each in texts])


def stop_tokens(plan: Plan) -> frozenset[str]:
    """The tokens that the plan drops.

    Examples
    --------
    >>> stop_tokens(Plan((Lowercase(), Matches("[^ ]+"), StopWords(("The End",))))) == {
    ...     "the", "end"}
    True
    """
    step = plan.find(StopWords)
    return frozenset() if step is None else _stop_tokens(
        plan.steps[:plan.steps.index(step)], step.texts)


def stop_tokens_of_lists(plan: Plan) -> frozenset[str]:
    """The tokens that the plan drops from columns of tokens.

    Examples
    --------
    >>> plan = Plan((Lowercase(), Matches("[^ ]+"), TokenColumns(True), StopWords(("The End",))))
    >>> stop_tokens_of_lists(plan) == {"the end"}
    True
    """
    step = plan.find(StopWords)
    return frozenset() if step is None else frozenset(cleaned_strings(plan, step.texts))


def cleaned_strings(plan: Plan, strings: Sequence[str]) -> list[str]:
    """Each string after the cleaning steps.

    Examples
    --------
    >>> cleaned_strings(Plan((Lowercase(), Matches("[^ ]+"))), ["The End", ""])
    ['the end', '']
    """
    return _select(_run(plan.cleaning, _text("text"), ""), strings).to_list()


def words_of_terms(plan: Plan, terms: pl.Series) -> pl.Series:
    r"""The words of n-grams of a vocabulary, still escaped: List(String).

    Examples
    --------
    >>> plan = Plan((Matches("[^,]+"), Escape(" "), NGrams(1, 2)))
    >>> words_of_terms(plan, pl.Series([r"new\ york city"])).to_list()
    [['new\\ york', 'city']]
    """
    if plan.find(Escape) is None:
        return terms.str.split(" ")
    # A word is never empty, so a run of other characters and escaped pairs is one word.
    words, term = pl.col("term").str.extract_all(r"(?s)(?:[^\\ ]|\\.)+"), pl.col("term")
    # A term that can't come from a text is treated as one word.
    return terms.to_frame("term").select(
        pl.when(words.list.join(" ") == term, term != "").then(words)
        .otherwise(pl.concat_list(term))).to_series()


def _segmented(text: pl.Expr, step: Segments) -> pl.Expr:
    """The lists of tokens that a function of the user makes of texts."""
    def cut(text: str) -> list[str]:
        result: Any = step.function(text) if text else []
        tokens = list(result) if isinstance(result, Iterable) else [result]
        if not all(isinstance(token, str) for token in tokens):
            raise ParameterError(f"{step.setting} must make strings of a text; got {result!r:.60}")
        return tokens

    def cut_all(texts: pl.Series) -> pl.Series:
        return pl.Series(texts.name, list(map(cut, texts)), dtype=pl.List(pl.String))

    return text.map_batches(cut_all, return_dtype=pl.List(pl.String), is_elementwise=True)


def _run_on_tokens(plan: Plan, lists: pl.Expr, prefix: str) -> pl.Expr:
    """`_run` for lists of tokens: each is cleaned, and those that are null or empty are dropped."""
    # Cast the elements, not the column: a String column would become lists of one token.
    cleaned = lists.list.eval(_run(plan.cleaning, pl.element().cast(pl.String), ""))
    # In two steps: an expression that is twice in a filter is evaluated twice.
    tokens = cleaned.list.eval(pl.element().filter(pl.element() != ""))
    tokens = pl.when(lists.is_not_null()).then(tokens).otherwise(
        pl.lit([], dtype=pl.List(pl.String)))
    if plan.find(StopWords) is not None:
        tokens = _without(tokens, stop_tokens_of_lists(plan))
    return _run(plan.after_stop_words, tokens, prefix)


def _run(steps: tuple[Step, ...], value: pl.Expr, prefix: str) -> pl.Expr:
    """The result of steps for a text column, or for lists of tokens; ``value`` is what they get."""
    text = value
    for place, step in enumerate(steps):
        match step:
            case Normalize(form=("NFC" | "NFD" | "NFKC" | "NFKD") as form):
                value = value.str.normalize(form)
            case Lowercase():
                value = value.str.to_lowercase()
            case TurkicLowercase(language="tr" | "az"):
                for pattern, replacement in TURKIC:
                    value = value.str.replace_all(pattern, replacement, literal=True)
                value = value.str.to_lowercase()
            case StripAccents(kind="ascii"):
                value = value.str.normalize("NFKD").str.replace_all(r"[^\x00-\x7F]+", "")
            case StripAccents(kind="unicode"):
                value = value.str.normalize("NFKD").str.replace_all(ACCENTS, "")
            case StripAccents(kind="marks"):
                value = value.str.normalize("NFKD").str.replace_all(COMBINING, "")
            case SingleSpaces():
                value = value.str.replace_all(rf"[{WHITE}]{{2,}}", " ")
            case Matches(pattern=pattern) | Runs(pattern=pattern):
                value = value.str.extract_all(pattern)
            case WordsAndPairs(members=members, sizes=sizes):
                value = _with_pairs(steps[:place], text, unspaced_class(members), sizes)
                value = value.str.extract_all(_words_pattern(step))
            case WordsAndKinds(members=members, sizes=sizes, kinds=kinds):
                if sizes:
                    value = _with_pairs(steps[:place], text, unspaced_class(members), sizes)
                value = value.str.extract_all(f"{kinds_pattern(kinds)}|{_words_pattern(step)}")
            case Characters(min_n=min_n, max_n=max_n):
                value = _characters(value, min_n, max_n)
            case CharactersInWords(min_n=min_n, max_n=max_n):
                value = _characters_in_words(value, min_n, max_n)
            case TokenColumns():
                # `_run_on_tokens` reads columns of tokens.
                pass
            case StopWords(texts=texts):
                value = _without(value, _stop_tokens(steps[:place], texts))
            case Escape(characters=characters):
                value = value.list.eval(
                    pl.element().str.replace_all(rf"([\\{characters}])", r"\${1}"))
            case FieldPrefix():
                value = value.list.eval(pl.lit(prefix) + pl.element()) if prefix else value
            case NGrams(min_n=min_n, max_n=max_n):
                value = _ngrams(value, min_n, max_n)
            case OwnCode():
                # The method of the subclass calls this function, or does not use it.
                pass
            case _:
                raise ParameterError(f"{step.setting}: expressions do not know this step of the "
                                     "tokenizer's plan; teach it to textnb.text.expressions")
    return value


def unspaced_class(members: str) -> str:
    """The class of those members that are written without spaces between words."""
    return f"[{members}&&[{UNSPACED}]]"


def _words_pattern(step: WordsAndPairs | WordsAndKinds) -> str:
    """The pattern of words, for text in which spaces separate pairs."""
    words = f"[{step.members}]{{{step.min_length},}}"
    return f"{words}|{unspaced_class(step.members)}+" if step.sizes else words


def _with_pairs(
    cleaning: tuple[Step, ...], text: pl.Expr, unspaced: str, sizes: Sequence[int]
) -> pl.Expr:
    """Cleaned text in which each stretch of unspaced characters is replaced by its tokens.

    Texts without these characters are null in the further steps, which saves time.
    """
    cleaned = _run(cleaning, text, "")
    # Lower case does not change these characters; a search in the original text is faster.
    only_lowers = all(isinstance(step, Lowercase | TurkicLowercase) for step in cleaning)
    searched = text if only_lowers else cleaned
    pairs = _run(cleaning, pl.when(searched.str.contains(unspaced)).then(text), "")
    for pattern, replacement in tokens_by_replacing(unspaced, sizes):
        pairs = pairs.str.replace_all(pattern, replacement)
    return pl.coalesce(pairs, cleaned)


def _columns(text: str | Sequence[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def _text(column: str) -> pl.Expr:
    """A text column: categories as strings, and null as empty."""
    return pl.col(column).cast(pl.String).fill_null("")


@lru_cache(maxsize=64)
def _stop_tokens(steps_before: tuple[Step, ...], texts: tuple[str, ...]) -> frozenset[str]:
    """The tokens that stop words become by the steps before they are dropped."""
    tokens = _run(steps_of_stop_words(steps_before), _text("text"), "")
    return frozenset(_select(tokens.explode(), texts).drop_nulls())


def _select(expression: pl.Expr, strings: Sequence[str]) -> pl.Series:
    """The values of an expression over a column ``text`` of these strings."""
    check_fork()
    texts = pl.DataFrame({"text": list(strings)}, schema={"text": pl.String})
    return texts.select(expression.alias("text")).to_series()


def _joined(lists: list[pl.Expr]) -> pl.Expr:
    """One list of the elements of several."""
    return lists[0] if len(lists) == 1 else pl.concat_list(lists)


def _without(tokens: pl.Expr, stops: frozenset[str]) -> pl.Expr:
    dropped = pl.Series(sorted(stops), dtype=pl.String).implode()
    return tokens.list.eval(pl.element().filter(~pl.element().is_in(dropped)))


def _ngrams(tokens: pl.Expr, min_n: int, max_n: int) -> pl.Expr:
    lists = []
    for n in range(min_n, max_n + 1):
        joined = pl.element()
        for ahead in range(1, n):
            joined = joined + pl.lit(" ") + pl.element().shift(-ahead)
        lists.append(tokens if n == 1 else tokens.list.eval(joined).list.drop_nulls())
    return _joined(lists)


def _characters(text: pl.Expr, min_n: int, max_n: int) -> pl.Expr:
    # Matches do not overlap: the n-grams that start at offsets o, o + n, o + 2n ... need one pass
    # for each o below n.
    return _joined([text.str.slice(offset).str.extract_all(rf"(?s:.{{{n}}})")
                    for n in range(min_n, max_n + 1) for offset in range(n)])


def _characters_in_words(text: pl.Expr, min_n: int, max_n: int) -> pl.Expr:
    # One padded word to a line; a word has no white space, so no line feed.
    lines = text.str.extract_all(rf"[^{WHITE}]+").list.eval(
        pl.lit(" ") + pl.element() + pl.lit(" ")).list.join("\n")
    lists = []
    for n in range(min_n, max_n + 1):
        for offset in range(n):
            rest = lines.str.replace_all(rf"(?m)^[^\n]{{0,{offset}}}", "") if offset else lines
            lists.append(rest.str.extract_all(rf"[^\n]{{{n}}}"))
    # A padded word shorter than the shortest n-gram is one n-gram by itself.
    if min_n > 1:
        lists.append(lines.str.extract_all(rf"(?m)^[^\n]{{1,{min_n - 1}}}$"))
    return _joined(lists)
