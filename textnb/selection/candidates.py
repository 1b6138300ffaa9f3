"""The settings that a search tries: first a fixed list, then settings similar to the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import polars as pl

from textnb.learning.parameters import SHORT_WORDS, default_term_settings
from textnb.learning.settings import MAIL_RECIPE
from textnb.learning.text_settings import TextSettings
from textnb.models.base import Model
from textnb.models.bernoulli import BernoulliNB
from textnb.models.complement import ComplementNB
from textnb.models.multinomial import MultinomialNB
from textnb.models.nblinear import NBLinear
from textnb.text.characters import UNSPACED
from textnb.text.tokens import Tokenizer

# The values that are tried. Of `NBLinear`: C, power and l (the smoothing of its log-count ratios);
# of models of counts: l; of all models: settings of terms. The values before and after a value are
# its neighbours.
_C = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_POWER = (0.0, 0.25, 0.5, 0.75, 1.0)
_RATIO_L = (0.03, 0.1, 0.3, 1.0)
_COUNT_L = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_MIN_DF = (1, 2, 3, 5)
_WORD_NGRAMS = ((1, 1), (1, 2), (1, 3))
_SUBWORDS = (None, (4, 4), (3, 5))
_CHARACTER_NGRAMS = ((1, 2), (1, 3), (2, 4), (2, 5))


@dataclass(frozen=True, eq=False)
class Candidate:
    """Settings that a search compares with others.

    Attributes
    ----------
    tokenizer : Tokenizer
    min_df : int
    model : Model
    subwords : (int, int) or None
        As in `TextClassifier`; None if the model can't share weights, or terms are not words.
    of_lists : bool
        Whether documents have lists of labels.
    """

    tokenizer: Tokenizer
    min_df: int
    model: Model
    subwords: tuple[int, int] | None = None
    of_lists: bool = False

    def __post_init__(self) -> None:
        if not (self.model.learns_shared and self.tokenizer.analyzer == "word"
                and not self.tokenizer.token_columns):
            # The class is frozen.
            object.__setattr__(self, "subwords", None)

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable value that is equal for equal settings."""
        return (self.tokenizer, self.min_df, self.subwords, self.model.kind,
                tuple(sorted(self.model.get_params(deep=False).items())))

    def settings(self, text: list[str], label: str) -> TextSettings:
        """The settings of a classifier with these text columns and label."""
        return TextSettings.of(
            self.model, text=text[0] if len(text) == 1 else text, label=label,
            tokenizer=self.tokenizer, min_df=self.min_df, subwords=self.subwords)

    def changes(self) -> dict[str, dict[str, Any]]:
        """The settings that differ from the defaults, as "tokenizer", "limits" and "model".

        ``token_columns`` is left out, because a fit sees in the rows which columns hold tokens.
        """
        tokenizer = _changed_fields(
            self.tokenizer, Tokenizer(token_columns=self.tokenizer.token_columns))
        limits: dict[str, Any] = {"min_df": self.min_df} if self.min_df > 1 else {}
        term_settings = {"tokenizer": self.tokenizer, "subwords": self.subwords}
        if term_settings == default_term_settings(self.model, self.of_lists):
            tokenizer = {}
        else:
            if self.subwords is not None:
                limits["subwords"] = self.subwords
            if self.model.learns_shared and not (tokenizer or self.tokenizer.token_columns):
                # Name a setting: without a tokenizer, the model would use its own default.
                tokenizer = {"ngram_range": self.tokenizer.ngram_range}
        return {"tokenizer": tokenizer, "limits": limits,
                "model": _changed_fields(self.model, type(self.model)())}

    def describe(self) -> str:
        """The settings in one line, for progress messages and tables."""
        changes = self.changes()
        parts = [f"{name}={value}" for group in ("tokenizer", "limits", "model")
                 for name, value in changes[group].items()]
        return " ".join([self.model.kind, *parts])

    def code(self, text: list[str], label: str) -> str:
        """Python that makes a classifier with these settings."""
        changes = self.changes()
        arguments = [f"{self.model.name}({_as_arguments(changes['model'])})"]
        if text != ["text"]:
            arguments.append(f"text={text if len(text) > 1 else text[0]!r}")
        if label != "label":
            arguments.append(f"label={label!r}")
        tokenizer = changes["tokenizer"]
        if self.tokenizer.token_columns:
            tokenizer = {**tokenizer, "token_columns": self.tokenizer.token_columns}
        if tokenizer:
            arguments.append(f"tokenizer=Tokenizer({_as_arguments(tokenizer)})")
        if changes["limits"]:
            arguments.append(_as_arguments(changes["limits"]))
        return f"TextClassifier({', '.join(arguments)})"


def first_candidates(with_spaceless: bool) -> list[Candidate]:
    """Settings that do well on many kinds of texts: first the defaults.

    Parameters
    ----------
    with_spaceless : bool
        Whether to add settings for scripts that are written without spaces, such as Chinese.
    """
    # The arguments of a candidate are its tokenizer, min_df, model and, if it has some, subwords.
    words, pairs = Tokenizer(), Tokenizer(ngram_range=(1, 2))
    linear = NBLinear()
    term_settings = default_term_settings(linear)
    default = Candidate(term_settings["tokenizer"], 1, linear, term_settings["subwords"])
    candidates = [
        default, Candidate(words, 1, linear), Candidate(pairs, 1, linear),
        replace(default, subwords=None),
        Candidate(SHORT_WORDS.with_params(ngram_range=(1, 3)), 2, linear),
        Candidate(Tokenizer(analyzer="char_wb", ngram_range=(2, 5)), 2, linear),
        *(replace(default, model=model) for model in (
            replace(linear, power=1.0), replace(linear, power=0.0), replace(linear, C=10.0))),
        Candidate(pairs, 1, MultinomialNB(l=0.1)), Candidate(words, 1, MultinomialNB(l=0.1)),
        Candidate(words, 1, ComplementNB(l=0.1)), Candidate(pairs, 1, ComplementNB(l=0.1)),
        Candidate(pairs, 1, BernoulliNB(l=0.03))]
    if with_spaceless:
        # After the first three, so that they are tried early.
        candidates[3:3] = [
            Candidate(Tokenizer(analyzer="char", ngram_range=(1, 2)), 1, linear),
            Candidate(Tokenizer(analyzer="char", ngram_range=(1, 3)), 2, linear)]
    return candidates


def mail_candidates() -> list[Candidate]:
    """Settings that do well on tokens of mail: first the default of mail."""
    # The recipe has the text column, the model, which is `NBLinear`, and the model's parameters.
    settings = dict(MAIL_RECIPE)
    tokens = Tokenizer(token_columns=(settings.pop("text"),))
    del settings["model"]
    linear = NBLinear(**settings)
    return [
        Candidate(tokens, 1, linear), Candidate(tokens, 2, linear),
        *(Candidate(tokens, 1, model) for model in (
            replace(linear, C=3.0), replace(linear, C=30.0), replace(linear, power=0.5),
            replace(linear, idf=True), replace(linear, tf="sublinear"), NBLinear(),
            MultinomialNB(l=0.1), ComplementNB(l=0.1), BernoulliNB(l=0.03)))]


def adapt_to_lists(candidate: Candidate) -> Candidate:
    """The settings, changed for documents with lists of labels."""
    model, adapted = candidate.model, replace(candidate, of_lists=True)
    if not isinstance(model, NBLinear):
        return adapted
    # The default tokenizer has no subwords for lists of labels.
    if not candidate.changes()["tokenizer"]:
        adapted = replace(adapted, subwords=None)
    # The search chooses the labels' thresholds, not `fit` on held-out documents.
    return replace(adapted, model=replace(model, held_out=0.0))


def neighbours(best: Candidate, n_columns: int) -> list[Candidate]:
    """Settings that differ from the best in one step.

    Parameters
    ----------
    best : Candidate
    n_columns : int
        Number of text columns.
    """
    return [
        *(replace(best, model=model) for model in _neighbour_models(best.model)),
        *_with_adjacent(best, "min_df", _MIN_DF),
        # A candidate that can't have subwords stays the same.
        *(other for subwords in _SUBWORDS
          if (other := replace(best, subwords=subwords)).subwords != best.subwords),
        *(replace(best, tokenizer=tokenizer)
          for tokenizer in _neighbour_tokenizers(best.tokenizer, n_columns))]


def is_spaceless(texts: pl.Series) -> bool:
    """Whether at least a fifth of the letters are of scripts that are written without spaces."""
    sample = texts.head(1_000)
    n_letters = int(sample.str.count_matches(r"\p{L}").sum() or 0)
    n_spaceless = int(sample.str.count_matches(f"[{UNSPACED}]").sum() or 0)
    return n_spaceless > 0 and 5 * n_spaceless >= n_letters


def _neighbour_models(model: Model) -> Iterator[Model]:
    match model:
        case NBLinear():
            yield from _with_adjacent(model, "C", _C)
            yield from _with_adjacent(model, "power", _POWER)
            if model.power:
                yield from _with_adjacent(model, "l", _RATIO_L)
            yield from (replace(model, tf=tf) for tf in ("sublinear", "presence") if tf != model.tf)
            yield replace(model, loss="log" if model.loss == "hinge" else "hinge")
            yield replace(model, idf=not model.idf)
            yield MultinomialNB(l=0.1)
        case MultinomialNB():
            yield from _with_adjacent(model, "l", _COUNT_L)
            yield ComplementNB(l=model.l)
            yield NBLinear()
        case ComplementNB():
            yield from _with_adjacent(model, "l", _COUNT_L)
            yield replace(model, norm=not model.norm)
            yield MultinomialNB(l=model.l)
            yield NBLinear()
        case BernoulliNB():
            yield from _with_adjacent(model, "l", _COUNT_L)
            yield NBLinear()
        case _:
            yield NBLinear()


def _neighbour_tokenizers(tokenizer: Tokenizer, n_columns: int) -> Iterator[Tokenizer]:
    # Lists of tokens are not split, so there is nothing to choose.
    if tokenizer.token_columns:
        return
    has_words = tokenizer.analyzer == "word"
    yield from _with_adjacent(
        tokenizer, "ngram_range", _WORD_NGRAMS if has_words else _CHARACTER_NGRAMS)
    yield replace(tokenizer, lowercase=not tokenizer.lowercase)
    if has_words:
        # Add or remove words of one letter, "!" and "?", by which `SHORT_WORDS` differs.
        other = Tokenizer() if tokenizer.pattern == SHORT_WORDS.pattern else SHORT_WORDS
        yield replace(tokenizer, pattern=other.pattern, keep=other.keep)
    if n_columns > 1:
        yield replace(tokenizer, field_prefix=not tokenizer.field_prefix)


def _with_adjacent(settings: Any, name: str, values: tuple[Any, ...]) -> list[Any]:
    """Copies of a dataclass in which a field has the next or the previous one of ``values``.

    If the field's value is not in ``values``, a copy with the middle one.
    """
    value = getattr(settings, name)
    indices = [len(values) // 2]
    if value in values:
        indices = [values.index(value) + 1, values.index(value) - 1]
    return [replace(settings, **{name: values[i]}) for i in indices if 0 <= i < len(values)]


def _changed_fields(settings: Any, defaults: Any) -> dict[str, Any]:
    return {each.name: getattr(settings, each.name) for each in fields(settings)
            if getattr(settings, each.name) != getattr(defaults, each.name)}


def _as_arguments(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())
