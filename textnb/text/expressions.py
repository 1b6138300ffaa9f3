"""Makes Polars expressions of a tokenizer's plan; they define what each step means.

    String -> [cleaning] -> String -> [splitting] -> List(String) -> [other steps] -> List(String)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl

from textnb.errors import ParameterError
from textnb.runtime.forks import check_polars_threads
from textnb.runtime.unicode import is_unicode
from textnb.text.characters import (
    ACCENTS,
    COMBINING,
    TURKIC,
    UNSPACED,
    kinds_pattern,
    token_replacements,
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
    """The tokens of one or several columns of strings, or of lists of tokens, as List(String).

    ``text`` has the names of the columns. Null counts as empty. The tokens of several columns
    follow each other.

    Raises
    ------
    ParameterError
        If the plan has a step that expressions do not know, or a column's name can't be a prefix.
    """
    return _concatenate(_tokens_of_columns(plan, text))


def words_exprs(plan: Plan, text: str | Sequence[str]) -> list[pl.Expr]:
    """`tokens_expr` of each text column, without the n-grams that are the plan's last step."""
    return _tokens_of_columns(Plan(plan.steps[:-1]), text)


def _tokens_of_columns(plan: Plan, text: str | Sequence[str]) -> list[pl.Expr]:
    check_polars_threads()
    columns = _column_names(text)
    segments = plan.find(Segments)
    return [_run_on_tokens(plan, pl.col(name), prefix) if holds_tokens
            else _run_on_tokens(plan, _apply_segments(_text(name), segments), prefix) if segments
            else _run(plan.steps, _text(name), prefix)
            for name, prefix, holds_tokens in zip(
                columns, plan.prefixes(columns), plan.hold_tokens(columns), strict=True)]


def cleaned_exprs(plan: Plan, text: str | Sequence[str]) -> list[pl.Expr]:
    """Each text column after the cleaning steps, as input for the step that splits texts."""
    check_polars_threads()
    return [_run(plan.cleaning, _text(name), "") for name in _column_names(text)]


class Separators(NamedTuple):
    """How texts are split at characters that are in no word.

    Attributes
    ----------
    pattern : str
        Its matches are replaced by a space.
    min_length : int
        Shorter strings are not words, unless they have characters of ``unspaced``.
    unspaced : str
        A class of characters; strings of them are words of any length. Empty for none.
    """

    pattern: str
    min_length: int
    unspaced: str = ""

    def are_words(self, strings: pl.Series) -> pl.Series:
        """Whether each of the strings between spaces is a word."""
        long_enough = strings.str.len_chars() >= self.min_length
        return long_enough | strings.str.contains(self.unspaced) if self.unspaced else long_enough


def separators_of(plan: Plan) -> Separators | None:
    r"""The separators of words, if splitting texts into runs ends the plan; None for other plans.

    Instead of finding words, one can replace each run of other characters by a space, split at
    spaces, and drop short strings. That is faster, as it needs fewer matches.

    Examples
    --------
    >>> separators_of(Plan((Lowercase(), Runs(r"\w+", r"\w", 1))))
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
    """`tokens_expr` by splitting: the lists also hold strings that are too short for a word.

    Raises
    ------
    ParameterError
        If the plan does not split at separators: see `separators_of`.
    """
    separators = separators_of(plan)
    if separators is None:
        raise ParameterError(f"{plan!r} does not end in runs of characters")
    step = plan.find(WordsAndPairs)
    texts = cleaned_exprs(plan, text) if step is None else [
        _with_pairs(plan.cleaning, _text(name), separators.unspaced, step.sizes)
        for name in _column_names(text)]
    return _concatenate([
        each.str.replace_all(separators.pattern, " ").str.split(" ") for each in texts])


def stop_tokens(plan: Plan) -> frozenset[str]:
    """The tokens that the plan drops: the tokens of the stop words.

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
    """The tokens that the plan drops from columns of tokens: the stop words as a whole, cleaned.

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
    return _evaluate(_run(plan.cleaning, _text("text"), ""), strings).to_list()


def words_of_terms(plan: Plan, terms: pl.Series) -> pl.Series:
    r"""The words of n-grams of words, still escaped, as List(String).

    Examples
    --------
    >>> plan = Plan((Matches("[^,]+"), Escape(" "), NGrams(1, 2)))
    >>> words_of_terms(plan, pl.Series([r"new\ york city"])).to_list()
    [['new\\ york', 'city']]
    """
    if plan.find(Escape) is None:
        return terms.str.split(" ")
    term = pl.col("term")
    # A word is a run of characters other than spaces and backslashes, and of escaped characters.
    words = term.str.extract_all(r"(?s)(?:[^\\ ]|\\.)+")
    # If such words with spaces between them are not the whole term, it is treated as one word.
    return terms.to_frame("term").select(
        pl.when(words.list.join(" ") == term, term != "").then(words)
        .otherwise(pl.concat_list(term))).to_series()


def _apply_segments(text: pl.Expr, step: Segments) -> pl.Expr:
    """The lists of tokens that the user's function makes of texts."""
    def split(text: str) -> list[str]:
        result: Any = step.function(text) if text else []
        tokens = list(result) if isinstance(result, Iterable) else [result]
        # The characters of a string are strings, too.
        if isinstance(result, str) or not all(isinstance(token, str) for token in tokens):
            raise ParameterError(f"{step.setting} must make strings of a text; got {result!r:.60}")
        if not is_unicode("".join(tokens)):
            raise ParameterError(f"{step.setting} must make strings of valid Unicode, without half "
                                 f"of a character; got {result!r:.60}")
        return tokens

    def split_all(texts: pl.Series) -> pl.Series:
        return pl.Series(texts.name, list(map(split, texts)), dtype=pl.List(pl.String))

    return text.map_batches(split_all, return_dtype=pl.List(pl.String), is_elementwise=True)


def _run_on_tokens(plan: Plan, lists: pl.Expr, prefix: str) -> pl.Expr:
    """`_run` for lists of tokens: each token is cleaned; null and empty tokens are dropped."""
    # Cast the elements, not the column: a String column would become lists of one token.
    cleaned = lists.list.eval(_run(plan.cleaning, pl.element().cast(pl.String), ""))
    # In a second step: in one, the cleaning would stand twice in the filter, and be done twice.
    tokens = cleaned.list.eval(pl.element().filter(pl.element() != ""))
    tokens = pl.when(lists.is_not_null()).then(tokens).otherwise(
        pl.lit([], dtype=pl.List(pl.String)))
    if plan.find(StopWords) is not None:
        tokens = _drop_tokens(tokens, stop_tokens_of_lists(plan))
    return _run(plan.after_stop_words, tokens, prefix)


def _run(steps: tuple[Step, ...], value: pl.Expr, prefix: str) -> pl.Expr:
    """The result of steps: ``value`` is a text column or lists of tokens, as the first step needs.

    ``prefix`` is the column's, "" for none.
    """
    # `_with_pairs` needs the text before it is cleaned.
    text = value
    for number, step in enumerate(steps):
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
                value = _with_pairs(steps[:number], text, unspaced_class(members), sizes)
                value = value.str.extract_all(_pattern_of_words(step))
            case WordsAndKinds(members=members, sizes=sizes, kinds=kinds):
                if sizes:
                    value = _with_pairs(steps[:number], text, unspaced_class(members), sizes)
                value = value.str.extract_all(f"{kinds_pattern(kinds)}|{_pattern_of_words(step)}")
            case Characters(min_n=min_n, max_n=max_n):
                value = _character_ngrams(value, min_n, max_n)
            case CharactersInWords(min_n=min_n, max_n=max_n):
                value = _character_ngrams_in_words(value, min_n, max_n)
            case TokenColumns():
                # `_run_on_tokens` reads columns of tokens.
                pass
            case StopWords(texts=texts):
                value = _drop_tokens(value, _stop_tokens(steps[:number], texts))
            case Escape(characters=characters):
                value = value.list.eval(
                    pl.element().str.replace_all(rf"([\\{characters}])", r"\${1}"))
            case FieldPrefix():
                value = value.list.eval(pl.lit(prefix) + pl.element()) if prefix else value
            case NGrams(min_n=min_n, max_n=max_n):
                value = _make_ngrams(value, min_n, max_n)
            case OwnCode():
                # The subclass's own method makes the tokens, from these expressions or without.
                pass
            case _:
                raise ParameterError(f"{step.setting}: expressions do not know this step of the "
                                     "tokenizer's plan; teach it to textnb.text.expressions")
    return value


def unspaced_class(members: str) -> str:
    """The members that are written without spaces between words, as a class of characters."""
    return f"[{members}&&[{UNSPACED}]]"


def _pattern_of_words(step: WordsAndPairs | WordsAndKinds) -> str:
    """The pattern of words in the texts that `_with_pairs` makes."""
    words = f"[{step.members}]{{{step.min_length},}}"
    return f"{words}|{unspaced_class(step.members)}+" if step.sizes else words


def _with_pairs(
    cleaning: tuple[Step, ...], text: pl.Expr, unspaced: str, sizes: Sequence[int]
) -> pl.Expr:
    """Cleaned text in which each run of unspaced characters is replaced by its tokens.

    ``unspaced`` is the class of these characters, and ``sizes`` are the numbers of characters of
    their tokens. Texts without such characters are null in between, which saves time.
    """
    cleaned = _run(cleaning, text, "")
    # Lower-casing does not change unspaced characters, and it is faster to search the original.
    only_lowers = all(isinstance(step, Lowercase | TurkicLowercase) for step in cleaning)
    searched = text if only_lowers else cleaned
    spaced = _run(cleaning, pl.when(searched.str.contains(unspaced)).then(text), "")
    for pattern, replacement in token_replacements(unspaced, sizes):
        spaced = spaced.str.replace_all(pattern, replacement)
    return pl.coalesce(spaced, cleaned)


def _column_names(text: str | Sequence[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def _text(column: str) -> pl.Expr:
    """A text column: categories as strings, null as an empty string."""
    return pl.col(column).cast(pl.String).fill_null("")


@lru_cache(maxsize=64)
def _stop_tokens(steps_before: tuple[Step, ...], texts: tuple[str, ...]) -> frozenset[str]:
    """The tokens that the steps before `StopWords` make of the stop words."""
    tokens = _run(steps_of_stop_words(steps_before), _text("text"), "")
    return frozenset(_evaluate(tokens.explode(), texts).drop_nulls())


def _evaluate(expression: pl.Expr, strings: Sequence[str]) -> pl.Series:
    """The values of an expression on a column ``text`` of these strings."""
    check_polars_threads()
    texts = pl.DataFrame({"text": list(strings)}, schema={"text": pl.String})
    return texts.select(expression.alias("text")).to_series()


def _concatenate(lists: list[pl.Expr]) -> pl.Expr:
    """In each row, one list of the elements of all lists."""
    return lists[0] if len(lists) == 1 else pl.concat_list(lists)


def _drop_tokens(tokens: pl.Expr, stops: frozenset[str]) -> pl.Expr:
    dropped = pl.Series(sorted(stops), dtype=pl.String).implode()
    return tokens.list.eval(pl.element().filter(~pl.element().is_in(dropped)))


def _make_ngrams(tokens: pl.Expr, min_n: int, max_n: int) -> pl.Expr:
    lists = []
    for n in range(min_n, max_n + 1):
        joined = pl.element()
        for offset in range(1, n):
            joined = joined + pl.lit(" ") + pl.element().shift(-offset)
        lists.append(tokens if n == 1 else tokens.list.eval(joined).list.drop_nulls())
    return _concatenate(lists)


def _character_ngrams(text: pl.Expr, min_n: int, max_n: int) -> pl.Expr:
    # Matches do not overlap, so that one pass finds the n-grams at offset, offset + n and so on.
    return _concatenate([text.str.slice(offset).str.extract_all(rf"(?s:.{{{n}}})")
                    for n in range(min_n, max_n + 1) for offset in range(n)])


def _character_ngrams_in_words(text: pl.Expr, min_n: int, max_n: int) -> pl.Expr:
    # One word with a space on both sides per line; a word has no white space, so no line feed.
    lines = text.str.extract_all(rf"[^{WHITE}]+").list.eval(
        pl.lit(" ") + pl.element() + pl.lit(" ")).list.join("\n")
    lists = []
    for n in range(min_n, max_n + 1):
        for offset in range(n):
            rest = lines.str.replace_all(rf"(?m)^[^\n]{{0,{offset}}}", "") if offset else lines
            lists.append(rest.str.extract_all(rf"[^\n]{{{n}}}"))
    # A padded word that is shorter than the shortest n-gram is an n-gram itself.
    if min_n > 1:
        lists.append(lines.str.extract_all(rf"(?m)^[^\n]{{1,{min_n - 1}}}$"))
    return _concatenate(lists)
