"""Parts of terms against a slow, obvious list of them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textnb.bayes.subwords import subword_matrix

TERMS = st.lists(st.text("abé 語\U0001f600<>", max_size=8), unique=True, max_size=12).map(sorted)


def parts_by_hand(term, shortest, longest):
    marked = f"<{term}>"
    return set() if " " in term else {
        marked[start:start + length] for length in range(shortest, longest + 1)
        for start in range(len(marked) - length + 1)}


@pytest.mark.parametrize("lengths", [(2, 2), (4, 4), (3, 5)])
@given(terms=TERMS)
def test_each_part_of_two_words_has_a_column(lengths, terms):
    parts = [parts_by_hand(term, *lengths) for term in terms]
    holders = Counter(part for own in parts for part in own)
    shared = [part for part, count in holders.items() if count > 1]
    expected = sorted([part in own for own in parts] for part in shared)
    matrix = subword_matrix(terms, *lengths)
    assert matrix.shape == (len(terms), len(shared))
    assert sorted((matrix.toarray().T > 0).tolist()) == expected
    assert (matrix.data == (lengths[1] - lengths[0] + 1) ** -0.5).all()
