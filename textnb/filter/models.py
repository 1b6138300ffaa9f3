"""A model file that is in use while others replace it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from textnb.errors import ParameterError, SourceError, TextnbError, first_line
from textnb.files.require import Unsupported
from textnb.filter.quick import QuickFilter
from textnb.filter.verdict import Verdict
from textnb.mail.columns import message_columns

if TYPE_CHECKING:
    from textnb.filter.mailfilter import MailFilter

T = TypeVar("T")
# The maximum number of terms whose weights stay in memory: some 20 MB for two classes.
MAX_REMEMBERED = 100_000


class ServedModel:
    """Judges by a model file, and by its successor once the file is replaced.

    A successor that can't be read changes nothing: the model that was read before judges on.

    Parameters
    ----------
    path : str
    settings : mapping
        ``spam``, ``min_learned`` and ``cutoffs``, as of `MailFilter.load`.
    note : callable
        Called with the name of an event and its facts.

    Attributes
    ----------
    path : str

    Raises
    ------
    TextnbError
        If the file can't be read at first, or is not a model of mail.
    """

    def __init__(self, path: str, settings: Mapping[str, Any], note: Callable[..., object]) -> None:
        self.path, self._settings, self._note = path, settings, note
        self._quick: QuickFilter | None = None
        self._whole: MailFilter | None = None
        self._identity = self._file_identity()
        if self._identity is None:
            raise SourceError(f"no such model file: {path!r}")
        self._load()

    def judge(self, message: bytes) -> tuple[Verdict, float]:
        """The verdict, and the log-odds from which the model says spam."""
        identity = self._file_identity()
        if identity is not None and identity != self._identity:
            self._identity = identity
            try:
                self._load()
                self._note("reloaded", model=self.path)
            except (TextnbError, OSError, MemoryError) as error:
                self._note("not reloaded", model=self.path, reason=first_line(error))
        return self._use(lambda judge: (judge.judge(message), judge.judging.min_odds))

    @property
    def since_fit(self) -> int:
        """Documents that were learned or forgotten since the weights in use were fitted."""
        return self._model.judging.since_fit

    def deciding_terms(self, message: bytes, k: int) -> list[tuple[str, float]]:
        """The terms that decide the verdict, and what each adds to the log-odds of spam."""
        return self._use(lambda judge: judge.deciding_terms(message, k))

    def judged_texts(self, message: bytes) -> tuple[str | None, dict[str, str | list[str] | None]]:
        """The Message-ID of a message, and the texts that the model judges and learns."""
        model = self._model
        texts, parsed = message_columns(message, model.columns, model.lists)
        return parsed.message_id, texts

    def label_of(self, name: str, ham: str | None) -> Any:
        """The class of ``spam`` or ``ham``, the words of the protocol; None if it is not clear.

        Parameters
        ----------
        name : {"spam", "ham"}
        ham : str or None
            The class of ham, where there are several that are not spam.

        Raises
        ------
        ParameterError
            If the model has no such class of ham.
        """
        judging = self._model.judging
        if name == "spam":
            return judging.spam
        others = [label for label in judging.learned if label != judging.spam]
        if ham is None:
            return others[0] if len(others) == 1 else None
        for label in others:
            if str(label) == ham:
                return label
        raise ParameterError(
            f"--ham-class: {self.path} has no class {ham!r} that is not spam; its classes are "
            f"{', '.join(map(repr, judging.learned))}, and {judging.spam!r} is spam")

    def _use(self, use: Callable[[QuickFilter | MailFilter], T]) -> T:
        """Call a function with the quick filter, or with the full one if that is not enough."""
        if self._quick is not None:
            try:
                return use(self._quick)
            except Unsupported:
                # A score at a threshold, for example: the full model decides.
                pass
        return use(self._whole_model())

    @property
    def _model(self) -> QuickFilter | MailFilter:
        return self._whole_model() if self._quick is None else self._quick

    def _whole_model(self) -> MailFilter:
        if self._whole is None:
            self._whole = self._load_whole()
        return self._whole

    def _load(self) -> None:
        """Open the file. What was open is given up only then."""
        quick, whole = None, None
        try:
            quick = QuickFilter(self.path, max_remembered=MAX_REMEMBERED, **self._settings)
        except Unsupported:
            whole = self._load_whole()
        if self._quick is not None:
            self._quick.close()
        self._quick, self._whole = quick, whole

    def _load_whole(self) -> MailFilter:
        # Imported here: it takes Polars, which most models don't need.
        from textnb.filter.mailfilter import MailFilter

        return MailFilter.load(self.path, **self._settings)

    def _file_identity(self) -> tuple[int, ...] | None:
        """Numbers that change when the file is replaced; None if there is no file."""
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
