"""Near-duplicates by comparing every pair of texts: sets of Python tuples, and nothing clever."""

import re

WORD = re.compile(r"\w\w+")


def words(text):
    """Runs of two word characters or more, in lower case."""
    return tuple(WORD.findall((text or "").lower()))


def shingles(tokens, width):
    """Runs of ``width`` tokens; all of them where there are fewer."""
    if len(tokens) < width:
        return {tokens}
    return {tokens[at:at + width] for at in range(len(tokens) - width + 1)}


def jaccard(one, other, width):
    a, b = shingles(words(one), width), shingles(words(other), width)
    return len(a & b) / len(a | b)


def similar(train, test, near, width):
    """For each row with a duplicate, all of them (those before it, in one table) and how similar.

    Exact ones have similarity 1; a text without words has none.
    """
    asked = train if test is None else test
    before = [words(text) for text in train]
    sets = [shingles(tokens, width) for tokens in before]
    found: dict[int, dict[int, float]] = {}
    for row, text in enumerate(asked):
        tokens = words(text)
        if not tokens:
            continue
        own = shingles(tokens, width)
        for other, (known, its) in enumerate(zip(before, sets, strict=True)):
            if test is None and other >= row:
                break
            if not known:
                continue
            similarity = 1.0 if known == tokens else len(own & its) / len(own | its)
            if similarity >= near:
                found.setdefault(row, {})[other] = similarity
    return found
