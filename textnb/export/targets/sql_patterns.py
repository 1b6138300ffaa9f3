"""SQL for engines with regular expressions.

No engine's own table of Unicode is used: patterns and tables list every character of words. Scripts
without spaces, such as Chinese, are split into pairs of characters or into single ones; the code
calls both pairs. A `Fold` says what each character of a text becomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textnb.export.characters import (
    SIGMA,
    Lowercase,
    Ranges,
    final_sigma,
    members,
    ranges_of,
    regex_class,
)
from textnb.export.portable import Words
from textnb.export.targets.sql import Sql
from textnb.export.targets.sql_texts import Fold, keys_of, parts_of, replace_strings
from textnb.text.characters import (
    EMOJI,
    LETTER,
    LETTER_OR_NUMBER,
    kinds_pattern,
    token_replacements,
)


class PatternSql(Sql):
    r"""A dialect that finds and replaces the matches of patterns.

    Attributes
    ----------
    code : str
        The pattern of a code point within a class of characters, as a template.
    end : str
        The pattern of the end of a text.
    holds : str
        The template of the condition that a string holds another.
    matches, replace_all : str
        The template of the condition that a string holds a match of a pattern; the template of the
        string in which all matches are replaced, where ``\1`` is the first group.
    concat_parts : str
        The aggregate of the column ``part`` as one string, ordered by run, class, place and number.
    """

    code: ClassVar[str] = r"\x{{{:x}}}"
    end: ClassVar[str] = r"\z"
    holds: ClassVar[str]
    matches: ClassVar[str]
    replace_all: ClassVar[str] = "regexp_replace({}, {}, {}, 'g')"
    concat_parts: ClassVar[str] = (
        "string_agg(part, '' ORDER BY run ASC, class ASC, place ASC, number ASC)")

    def pattern(self, pattern: str) -> str:
        """Write a pattern, or a replacement, as a literal."""
        return f"'{pattern}'"

    def one_of(self, ranges: Ranges) -> str:
        """Write the pattern of one character."""
        return f"[{regex_class(ranges, self.code)}]"

    def final_sigmas(self, lower: Lowercase, text: str) -> str:
        sigma = self.replace_all.format(text, self.pattern(final_sigma(lower, self.code, self.end)),
                                        self.pattern(r"\1ς\2"))
        return f"CASE WHEN {self.holds.format(text, SIGMA)} THEN {sigma} ELSE {text} END"

    def fold(self, fold: Fold, keys: str, source: str) -> str:
        is_wide = f"NOT ({self.is_ascii.format('text')})"
        is_changed = is_wide if fold.ascii_only else self.matches.format(
            "text", self.pattern(self.one_of(fold.changing_characters)))
        changed = f"(SELECT {keys}, text FROM t WHERE {is_changed}) h"
        return (f"WITH t AS (SELECT {keys}, text FROM {source})\n"
                f"SELECT {keys}, {fold.otherwise} AS text FROM t WHERE NOT ({is_changed})\n"
                f"UNION ALL SELECT {keys}, {self.concat_parts} AS text\n"
                f"FROM ({parts_of(self, fold, keys, self.characters(keys, changed))}) f "
                f"GROUP BY {keys}")

    def separate_pairs(self, words: Words, text: str, condition: str = "") -> str:
        """Write an expression that separates tokens of scripts without spaces from other words.

        ``condition`` is a cheap test that every text with such tokens passes, followed by AND; ""
        for none.
        """
        unspaced = self.one_of(words.unspaced)
        pairs = text
        for pattern, replacement in token_replacements(unspaced, words.sizes, group=r"\1"):
            pairs = self.replace_all.format(pairs, self.pattern(pattern), self.pattern(replacement))
        has_pairs = self.matches.format(text, self.pattern(unspaced))
        return f"CASE WHEN {condition}{has_pairs} THEN\n{pairs} ELSE {text} END"

    def kinds_or_word(self, words: Words) -> str:
        """Write the pattern of tokens of other kinds, of words, and of separated pairs."""
        pattern = kinds_pattern(words.kinds)
        # Lists of characters replace the classes of Unicode that only Polars' patterns know.
        for name in (LETTER_OR_NUMBER, LETTER, EMOJI):
            pattern = pattern.replace(name, self.one_of(members(name)))
        pairs = f"|{self.one_of(words.unspaced)}+" if words.unspaced else ""
        return f"{pattern}|{self.one_of(words.members)}{{{words.min_length},}}{pairs}"

    def is_word(self, words: Words, word: str) -> str:
        """Write the condition that a run of characters is a word."""
        is_long_enough = f"{self.char_length.format(word)} >= {words.min_length}"
        if not words.unspaced:
            return is_long_enough
        has_pair = self.matches.format(word, self.pattern(self.one_of(words.unspaced)))
        return f"({is_long_enough} OR {has_pair})"


class Re2Sql(PatternSql):
    """A dialect with arrays, and with patterns of RE2, that finds words in texts in lower case.

    Attributes
    ----------
    translate : str
        The function that replaces characters of one string by those at the same places of another.
    find_matches : str
        The template of the array of all matches of a pattern in a string.
    unnest_matches : str
        The template of two columns: the elements of an array ``all_matches``, in a row each, and
        their places.
    """

    translate: ClassVar[str] = "translate"
    find_matches: ClassVar[str]
    unnest_matches: ClassVar[str]

    def find_all(self, keys: str, source: str, pattern: str, names: tuple[str, str],
                 text: str = "text") -> str:
        """Write a query of the matches of a pattern: keys, match and place, with these names."""
        matches = self.find_matches.format(text, self.pattern(pattern))
        return (f"SELECT {keys}, {self.unnest_matches.format(*names)}\n"
                f"FROM (SELECT {keys}, {matches} AS all_matches FROM {source}) s")

    def characters(self, keys: str, source: str) -> str:
        return self.find_all(keys, source, "(?s).", ("character", "place"))

    def split(self, words: Words, source: str) -> Iterator[str]:
        keys, text, is_word = keys_of(words), "text", self.is_word(words, "word")
        if words.unspaced:
            text = self.separate_pairs(words, text)
        pattern = f"{self.one_of(words.members)}+"
        if words.kinds:
            pattern, is_word = self.kinds_or_word(words), "word <> ''"
        if words.stop_words:
            is_word += " AND word NOT IN (SELECT word FROM textnb_stop_words)"
        replaced = replace_strings(words, self.text_or_empty(words))
        source = (f"(SELECT {keys}, {self.lower_text(words)} AS text FROM (\n"
                  f"SELECT {keys}, {replaced} AS text FROM {source}) r) l")
        rows = self.find_all(keys, source, pattern, ("word", "position"), text)
        yield (f"CREATE VIEW textnb_words AS SELECT {keys}, position, word FROM (\n"
               f"{rows}) w\nWHERE {is_word};")

    def lower_text(self, words: Words) -> str:
        """Write the column ``text`` in lower case."""
        if words.lower is None:
            return "text"
        mapping, text = words.lower_mapping, self.final_sigmas(words.lower, "text")
        single_characters = {c: lower for c, lower in mapping.items() if len(lower) == 1}
        for character, lower in mapping.items():
            if character not in single_characters:
                text = f"replace({text}, {self.literal(character)}, {self.literal(lower)})"
        upper = self.pattern(self.one_of(ranges_of(c for c in mapping if not c.isascii())))
        is_ascii = self.is_ascii.format("text")
        # `translate` builds its table for each row, so it is called only for rows that need it.
        return (f"CASE WHEN {is_ascii} THEN lower(text)\n"
                f"WHEN {self.matches.format('text', upper)} THEN {self.translate}({text},\n"
                f"{self.literal(''.join(single_characters))},\n"
                f"{self.literal(''.join(single_characters.values()))})\n"
                f"ELSE {self.ascii_lower} END")
