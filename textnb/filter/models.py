"""A model file that judges messages while other processes may replace it."""

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
# The maximum number of terms whose weights stay in memory: about 20 MB for two classes.
MAX_REMEMBERED_TERMS = 100_000


class ServedModel:
    """Judges messages by a model file, and by the new file once it is replaced.

    If the new file can't be read, the previous model still judges.

    Parameters
    ----------
    path : str
    settings : mapping
        ``spam``, ``min_learned`` and ``cutoffs``, as of `MailFilter.load`.
    note : callable
        Called with the name of an event, and its details by name.

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
        self._full: MailFilter | None = None
        self._identity = self._file_identity()
        if self._identity is None:
            raise SourceError(f"no such model file: {path!r}")
        self._load()

    def judge(self, message: bytes) -> tuple[Verdict, float]:
        """The verdict, and the minimum log-odds with which the model says spam."""
        self._refresh()
        return self._use(lambda model: (model.judge(message), model.judging.min_odds))

    @property
    def since_fit(self) -> int:
        """Documents that were learned or forgotten since the weights in use were fitted."""
        self._refresh()
        return self._model.judging.since_fit

    def deciding_terms(self, message: bytes, k: int) -> list[tuple[str, float]]:
        """The terms that decide the verdict, and what each adds to the log-odds of spam."""
        return self._use(lambda model: model.deciding_terms(message, k))

    def judged_texts(self, message: bytes) -> tuple[str | None, dict[str, str | list[str] | None]]:
        """The Message-ID of a message, and the texts that the model judges and learns."""
        self._refresh()
        model = self._model
        texts, parsed = message_columns(message, model.columns, model.lists)
        return parsed.message_id, texts

    def label_of(self, name: str, ham: str | None) -> Any:
        """The class of ``spam`` or ``ham``, the words of the protocol; None if several are ham.

        Parameters
        ----------
        name : {"spam", "ham"}
        ham : str or None
            The class of ham, if several classes are not spam.

        Raises
        ------
        ParameterError
            If the model has no such class of ham.
        """
        self._refresh()
        judging = self._model.judging
        if name == "spam":
            return judging.spam
        # `learned` has the number of learned messages of each class.
        ham_labels = [label for label in judging.learned if label != judging.spam]
        if ham is None:
            return ham_labels[0] if len(ham_labels) == 1 else None
        for label in ham_labels:
            if str(label) == ham:
                return label
        raise ParameterError(
            f"--ham-class: {self.path} has no class {ham!r} that is not spam; its classes are "
            f"{', '.join(map(repr, judging.learned))}, and {judging.spam!r} is spam")

    def _refresh(self) -> None:
        """Load the file if it was replaced; if that fails, the previous model stays."""
        identity = self._file_identity()
        if identity is None or identity == self._identity:
            return
        self._identity = identity
        try:
            self._load()
            self._note("reloaded", model=self.path)
        except (TextnbError, OSError, MemoryError) as error:
            self._note("not reloaded", model=self.path, reason=first_line(error))
        except BaseException:
            # The time limit of a message: the next one loads the file.
            self._identity = None
            raise

    def _use(self, function: Callable[[QuickFilter | MailFilter], T]) -> T:
        """Call a function with the quick filter, or with the full one if that is not enough."""
        if self._quick is not None:
            try:
                return function(self._quick)
            except Unsupported:
                # A score at a threshold, for example: the full model decides.
                pass
        return function(self._full_model())

    @property
    def _model(self) -> QuickFilter | MailFilter:
        return self._full_model() if self._quick is None else self._quick

    def _full_model(self) -> MailFilter:
        if self._full is None:
            self._full = self._load_full_model()
        return self._full

    def _load(self) -> None:
        """Open the file, and only then close the previous one."""
        quick, full = None, None
        try:
            quick = QuickFilter(self.path, max_remembered=MAX_REMEMBERED_TERMS, **self._settings)
        except Unsupported:
            full = self._load_full_model()
        if self._quick is not None:
            self._quick.close()
        self._quick, self._full = quick, full

    def _load_full_model(self) -> MailFilter:
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
