"""Every error that textnb raises on purpose.

    TextnbError
    ├── DataError (ValueError)           the rows are not what a classifier can learn from or score
    │   ├── SourceError                  a file can't be read
    │   ├── SchemaError                  a column is missing or of another type
    │   ├── VocabularyError              no term is left to count
    │   └── ImpossibleRowError           with l = 0, no class can have produced a row
    ├── ParameterError (ValueError)      a setting is out of its range
    ├── ExportError (ValueError)         a target can't score as the model does
    ├── ModelFileError (ValueError)      a stored model is damaged, hostile or from the future
    └── EngineError (RuntimeError)       the system gives this process too little to work
        └── ForkError                    a forked process lacks the threads that it would wait for

    TextnbWarning (UserWarning)
    ├── EmptyTextWarning                 rows have no text to learn or to answer from
    ├── LearnedRowsWarning               rows that pass for held out were probably learned
    └── UnknownTermsWarning              many texts hold no term that the model knows

A message says what was expected, what came, and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Self

_LESS_MEMORY = (
    "Set {memory_limit}, or a lower one, which leaves out the rarest terms until the rest fits; or "
    "learn fewer classes; or see whether the label column is one: thousands of classes may be "
    "numbers of rows; or work where more memory is free")
_FEWER_TERMS = "Load it where there is more, or train it with fewer terms ({memory_limit})"
# The maximum numbers of choices, and of other names, that a message lists.
_MAX_CHOICES, _MAX_LISTED = 100, 20
# Features that need one label per document, and why or what to use instead. Only these may refuse
# lists of labels. The page *Several labels per document* has the same list.
ONE_LABEL = {
    "a mail filter": "it tells spam from the rest",
    "a threshold for one class": "each label has a threshold of its own",
    "a measure of classes that exclude each other":
        "thresholds of labels are chosen by choose_class_thresholds(held, by='f1')",
    "a class of validation in order":
        "the thresholds of each model decide; `evaluate().rates` and `roca` of the result measure "
        "a label",
    "one w and b": "they are the difference of two classes, and each label has its own",
    "a sample of rows for updates":
        "its weights are refitted for classes that exclude each other",
    "counting beside weights":
        "train again with all rows, from the weights of this model (`--warm-start`)",
    "a smoothing path of other documents": "leave out rows that the model learned",
    "a calibration without lengths": "each label has a sigmoid, in which lengths have no part",
    "estimator_": "linear_form() has the weights of all labels",
    "leaving rows out by subtraction": "leave_one_out(model, rows) does it with a TextClassifier",
}


class Mention:
    """A setting that a message names, alone (``min_df``) or with a value (``binary=True``).

    Name and value are texts, as Python writes them. ``str`` joins them as Python does; the command
    line and jobs write a setting in their own way.
    """

    def __init__(self, name: str, value: str = "") -> None:
        self.name, self.value = name, value

    def __str__(self) -> str:
        return f"{self.name}={self.value}" if self.value else self.name


class TextnbError(Exception):
    """Base of every error that textnb raises on purpose.

    Attributes
    ----------
    command_line : str
        The message with the command line's advice, where it differs from Python's.
    problem : str
        The message without advice, where the advice depends on the reader.
    """

    _problem: str | None = None
    _command_line: str | None = None
    _parts: tuple[str | Mention, ...] = ()

    def __str__(self) -> str:
        # Polars adds in which step of its query an error occurred, which means nothing to users.
        return super().__str__().split("\n\nThis error occurred in the following expression:")[0]

    @classmethod
    def naming_settings(cls, template: str, **values: Any) -> Self:
        """An error whose message names settings, which each reader writes in its own way.

        Parameters
        ----------
        template : str
            The message, as `str.format` takes it. A field that has no value here is a setting:
            ``"{min_df} must be 1 or more"``, ``"give {norm=False}"``.
        values : object
            Values of the other fields; a `Mention` is a setting whose value is not in the template.
        """
        from string import Formatter

        formatter, parts = Formatter(), list[str | Mention]()
        for text, field, specification, conversion in formatter.parse(template):
            parts.append(text)
            if field in values and not isinstance(values[field], Mention):
                value = formatter.convert_field(values[field], conversion)
                parts.append(formatter.format_field(value, specification or ""))
            elif field is not None:
                name, _, value = field.partition("=")
                parts.append(values.get(field, Mention(name, value)))
        error = cls("".join(map(str, parts)))
        error._parts = tuple(parts)
        return error

    def add_prefix(self, prefix: str) -> Self:
        """The same error, with a prefix before its message."""
        error = copy(self)
        error.args = (f"{prefix}{self}",)
        for name in ("_problem", "_command_line"):
            if (message := getattr(self, name)) is not None:
                setattr(error, name, f"{prefix}{message}")
        error._parts = (prefix, *self._parts) if self._parts else ()
        return error

    def message(self, write_setting: Callable[[Mention], str]) -> str:
        """The message for a job or the command line; ``write_setting`` writes its settings."""
        if self._command_line is not None or not self._parts:
            return self.command_line
        return "".join(
            write_setting(part) if isinstance(part, Mention) else part for part in self._parts)

    def for_reader(self, write_setting: Callable[[Mention], str]) -> Self:
        """The same error, with the `message` for a job or the command line."""
        error = copy(self)
        error.args, error._parts, error._command_line = (self.message(write_setting),), (), None
        return error

    @property
    def setting(self) -> str | None:
        """The setting with which the message begins; None if it begins otherwise."""
        first_part = next(iter(filter(None, self._parts)), None)
        return first_part.name if isinstance(first_part, Mention) else None

    @property
    def without_setting(self) -> str:
        """The message without the setting with which it begins."""
        return str(self).removeprefix(self.setting or "").lstrip(":= ")

    @property
    def command_line(self) -> str:
        return str(self) if self._command_line is None else self._command_line

    @property
    def problem(self) -> str:
        return str(self) if self._problem is None else self._problem

    @classmethod
    def with_advice(cls, problem: str, python: str, *command: str | Mention) -> Self:
        """An error whose advice depends on its reader: the author of a program, or a user.

        Parameters
        ----------
        problem : str
            What was expected, and what came.
        python : str
            Advice for Python; empty if it has none.
        *command : str or Mention
            Advice for the command line, in several parts if it names a setting that has other words
            in a job.
        """
        error = cls(problem + python)
        error._problem = problem.rstrip(" .;:")
        if any(isinstance(part, Mention) for part in command):
            error._parts = (problem, *command)
        else:
            error._command_line = "".join([problem, *map(str, command)])
        return error


class TextnbWarning(UserWarning):
    """Base of the warnings that textnb has classes for."""


class EmptyTextWarning(TextnbWarning):
    """Rows have no text to learn or to answer from."""


class LearnedRowsWarning(TextnbWarning):
    """Rows that pass for held out were probably learned."""


class UnknownTermsWarning(TextnbWarning):
    """Many texts hold no term that the model knows."""


class ParameterError(TextnbError, ValueError):
    """A setting is out of its range."""

    @classmethod
    def multilabel(cls, what: str, setting: str | None = None) -> Self:
        """An error for lists of labels where rows must have one each.

        Parameters
        ----------
        what : str
            A key of `ONE_LABEL`.
        setting : str, optional
            The setting that asks for it.
        """
        return cls.naming_settings(
            "{what} is for one label per document, not for lists of labels: {why}",
            what=what if setting is None else Mention(setting), why=ONE_LABEL[what])

    @classmethod
    def model_of_one_label(cls, model: str) -> Self:
        return cls(f"{model} is for one label per document, not for lists of labels")

    @classmethod
    def out_of_range(cls, name: str, expected: str, got: object) -> ParameterError:
        return cls.naming_settings(
            "{setting} must be {expected}; got {got!r}",
            setting=Mention(name), expected=expected, got=got)

    @classmethod
    def unknown_choice(
        cls, name: str, got: object, choices: Iterable[object],
        synonyms: Mapping[str, str] | None = None,
    ) -> ParameterError:
        """An error for a value that is none of the choices; see `suggestion` for ``synonyms``."""
        choices = list(choices)
        known = [str(choice) for choice in choices]
        more = f" and {len(known) - _MAX_CHOICES:,} more" if len(known) > _MAX_CHOICES else ""
        # What is written like a choice, or equals it, is of another type.
        alike = (choice for choice in choices if type(got) is not type(choice) and isinstance(
            got, (str, int, float)) and (got == choice or str(got).lower() == str(choice).lower()))
        hint = next((f" of type {type(got).__name__}, not {type(choice).__name__}"
                     for choice in alike), suggestion(str(got), known, synonyms))
        return cls.naming_settings(
            "{setting}: unknown value {got!r}{hint}; choose one of {known}", setting=Mention(name),
            got=got, hint=hint,
            known=", ".join(known[:_MAX_CHOICES]) + more)

    @classmethod
    def unknown_setting(
        cls, owner: str, name: str, known: Sequence[str], advice: str = ""
    ) -> ParameterError:
        """An error for a setting that its owner does not have; the advice says where it belongs."""
        hint = f": {advice}" if advice else suggestion(name, known)
        return cls(f"{owner} has no setting {name!r}{hint}; its settings are {', '.join(known)}")


class ExportError(TextnbError, ValueError):
    """A target can't score as the model does.

    Attributes
    ----------
    refuses_tokenizer : bool
        Whether the target can't run the model's tokenizer: other tokenizers, and tokens that the
        caller makes, can be exported.
    """

    refuses_tokenizer = False

    @classmethod
    def for_tokenizer(cls, reason: str) -> ExportError:
        """An error because the target can't run the model's tokenizer."""
        error = cls(reason)
        error.refuses_tokenizer = True
        return error


class DataError(TextnbError, ValueError):
    """The rows are not what a classifier can learn from or score."""

    @classmethod
    def no_rows(cls, source: str, consequence: str = "nothing can be learned from it") -> DataError:
        return cls(f"{source} has no rows: {consequence}")

    @classmethod
    def too_large(cls, classes: int, terms: int, what: str, needed: int, free: int) -> DataError:
        """Tables need more memory than is free; ``needed`` and ``free`` are bytes."""
        return cls.naming_settings(
            "{size}: {what} would take {needed:,.0f} MiB at least, and {free:,.0f} MiB of memory "
            f"are free. {_LESS_MEMORY}", what=what, needed=needed / 2**20, free=free / 2**20,
            size=f"{quantity(classes, 'class')} and {quantity(terms, 'term')}")

    @classmethod
    def out_of_memory(cls, what: str, size: tuple[int, int] | None = None) -> DataError:
        """Memory ran out; ``size`` is the numbers of classes and of terms, if they are known."""
        # A count and a weight of 8 bytes each.
        where = "" if size is None else (
            f" with {quantity(size[0], 'class')} and {quantity(size[1], 'term')}, whose counts and "
            f"weights take {16 * size[0] * size[1] / 2**20:,.0f} MiB")
        return cls.naming_settings(
            f"memory ran out{{where}} ({{what}}). {_LESS_MEMORY}", where=where, what=what)

    @classmethod
    def null_label(cls, column: str, row: int) -> DataError:
        return cls.with_advice(
            f"label column {column!r} is null in row {row} (counted from 0); label it, or drop "
            "such rows: ", f"frame.filter(pl.col({column!r}).is_not_null())",
            f"--where '{column} IS NOT NULL'")

    @classmethod
    def label_beyond_int64(cls, label: object) -> DataError:
        return cls(
            f"label {label} is beyond 64 bits: integer labels go from -2**63 to 2**63 - 1. Make "
            "the labels strings: [str(label) for label in labels], or "
            "frame.with_columns(pl.col('label').cast(pl.String))")

    @classmethod
    def unseen_labels(cls, labels: Sequence[object], known: Sequence[object]) -> DataError:
        return cls.with_advice(
            f"labels {listing(labels)} were not announced; known classes are "
            f"{listing(known) or 'none'}; ",
            f"pass classes={list(labels)!r} to partial_fit if they are new classes",
            "say --new-class NAME for each that is new")

    @classmethod
    def never_learned(cls, what: str) -> DataError:
        return cls(
            f"can't forget: {what}. Only documents that were learned, with the same label and "
            "text, can be forgotten; the model is unchanged")


class SourceError(DataError):
    """A file can't be read.

    Attributes
    ----------
    path : str or None
        What can't be read, as the message names it; None if that is not a single path.
    of_output : bool
        Whether it is a file that can't be written.
    """

    path: str | None = None
    of_output = False

    @classmethod
    def not_found(cls, path: str) -> SourceError:
        return cls.with_advice(
            f"no such file or folder: {path!r}",
            ". A string names a file; to classify texts, pass a list: predict(['some text'])", "")

    @classmethod
    def unreadable(cls, path: str, reason: object) -> SourceError:
        error = cls(f"can't read {path}: {reason}")
        error.path = path
        return error

    @classmethod
    def unwritable(cls, path: str | os.PathLike[str], reason: object) -> SourceError:
        error = cls(f"can't write {os.fspath(path)!r}: {reason}")
        error.of_output = True
        return error

    @classmethod
    def unknown_format(cls, path: str, known: Iterable[str]) -> SourceError:
        return cls.naming_settings(
            "can't tell the format of {path!r} from its name; known endings: {known}. Say which it "
            "is, such as {format='csv'}", path=path, known=", ".join(known))


class SchemaError(DataError):
    """A column is missing or of another type.

    Attributes
    ----------
    missing_role : str or None
        Role of the column that is missing, such as "label"; None for all other errors.
    """

    missing_role: str | None = None

    @classmethod
    def missing_column(cls, column: str, columns: Sequence[str], role: str) -> SchemaError:
        """The column of a role, such as "label", is missing; a parameter has the role's name."""
        word = role.removeprefix("sample_")
        error = cls.with_advice(
            f"no column {column!r} (the {word} column){suggestion(column, columns)}; the columns "
            f"are {listing(columns)}. ", f"Say which with {role}=...",
            "Rename the one that is meant")
        error.missing_role = role
        return error

    def message(self, write_setting: Callable[[Mention], str]) -> str:
        message = super().message(write_setting)
        if self.missing_role is None:
            return message
        # A command that takes the column's name from the model has no option for it.
        role = Mention(self.missing_role)
        option = write_setting(role)
        return message if option == str(role) else f"{message}, or say which with {option}"

    @classmethod
    def wrong_type(cls, column: str, role: str, expected: str, got: object) -> SchemaError:
        is_list = str(got).startswith(("List(", "Array("))
        target_type = "pl.List(pl.String)" if is_list else "pl.String"
        return cls.with_advice(
            f"{role} column {column!r} must be {expected}; it is {got}. ",
            f"Cast it: frame.with_columns(pl.col({column!r}).cast({target_type}))",
            "Write it as such in the file, or cast it in the query")

    @classmethod
    def mixed_types(cls, column: str, role: str) -> SchemaError:
        return cls(f"{role} column {column!r} holds objects of several Python types, not of one. "
                   f"Convert it first: frame[{column!r}].astype('string')")

    @classmethod
    def check_new(cls, answers: Iterable[str], columns: Collection[str]) -> None:
        """Raise SchemaError if the input has a column with the name of an answer."""
        if existing := [name for name in answers if name in columns]:
            raise cls.with_advice(
                f"the input has a column {existing[0]!r} already, and the prediction would replace "
                "it; rename or drop it first", f": frame.drop({existing[0]!r})", "")


class VocabularyError(DataError):
    """No term is left to count."""

    @classmethod
    def no_tokens(cls, pattern: str, documents: int) -> VocabularyError:
        one_letter = r"r'[\p{L}\p{M}\p{N}_]+'"
        shorten = "; if stop words removed everything, shorten the list"
        return cls.with_advice(
            f"empty vocabulary: pattern {pattern!r} finds no token in "
            f"{quantity(documents, 'document')}. "
            "The default pattern keeps words of two characters or more; for one-letter words use ",
            f"Tokenizer(pattern={one_letter}){shorten}", Mention("pattern", one_letter), shorten)

    @classmethod
    def all_pruned(
        cls, terms: int, min_df: float, max_df: float, documents: int
    ) -> VocabularyError:
        """All of ``terms`` terms are outside the limits of document frequency."""
        return cls.naming_settings(
            "empty vocabulary: {terms} found and none is within {low} and {high} of {documents}; "
            "lower {min_df} or raise {max_df}", terms=quantity(terms, "term", "was", "were"),
            low=Mention("min_df", repr(min_df)), high=Mention("max_df", repr(max_df)),
            documents=quantity(documents, "document"))


class ImpossibleRowError(DataError):
    """With l = 0, no class can have produced a row."""

    @classmethod
    def rows(cls, rows: Sequence[int], total: int) -> ImpossibleRowError:
        """The error that names the first ``rows`` of ``total`` impossible ones."""
        more = f" and {total - len(rows)} more" if total > len(rows) else ""
        return cls.with_advice(
            f"row {', '.join(map(str, rows))}{more}: impossible under every class, so no class "
            "can be given. With l = 0 a term that was never seen in a class rules the class out; ",
            "use l > 0, or predict a frame, where such rows are null",
            "train with --l above 0, or use textnb predict, where such rows have no prediction")


class ModelFileError(TextnbError, ValueError):
    """A stored model is damaged, hostile or from the future."""

    @classmethod
    def damaged(cls, path: str, what: str, kind: str = "model") -> ModelFileError:
        """The file is not what its ``kind``, such as "model", must be; ``what`` says why."""
        verb = "train" if kind == "model" else "export"
        # The reason may repeat contents of a hostile file.
        return cls(f"{path} is not a sound textnb {kind}: {printable(what)}. Restore it from "
                   f"a copy or {verb} it again")

    @classmethod
    def from_the_future(cls, path: str, version: object, supported: int) -> ModelFileError:
        return cls(f"{path} has format version {version}; this textnb reads up to {supported}. "
                   "Upgrade with: pip install --upgrade textnb")

    @classmethod
    def unknown_features(cls, path: str, names: Sequence[str]) -> ModelFileError:
        return cls(f"{path} was written by a newer textnb: it has {', '.join(names[:10])[:200]}, "
                   "which this one does not know. Upgrade with: pip install --upgrade textnb")

    @classmethod
    def unknown_model(cls, path: str, name: str) -> ModelFileError:
        return cls(f"{path} has the model {name!r}, which is not one of textnb's. If it is your "
                   "own, import the module that registers it first, or install the package that "
                   "offers it (an entry point of the group textnb.models). If a newer textnb wrote "
                   "the file, upgrade with: pip install --upgrade textnb")

    @classmethod
    def too_large(cls, path: str, needed: int, limit: int) -> ModelFileError:
        """A file needs more memory than its reader allows; the sizes are bytes."""
        return cls.with_advice(
            f"{path} declares contents of {needed:,} bytes in memory, more than the limit of "
            f"{limit:,}; if you trust it, load it with ", f"max_bytes={needed}",
            f"textnb.load({path!r}, max_bytes={needed}) in Python")

    @classmethod
    def no_room(cls, path: str, classes: int, terms: int, needed: int, free: int) -> ModelFileError:
        """The numbers of a file need more memory than is free; the sizes are bytes."""
        return cls.naming_settings(
            "{path}: counts and weights of {size} take {needed:,.0f} MiB, and {free:,.0f} MiB of "
            f"memory are free. {_FEWER_TERMS}", path=path, needed=needed / 2**20,
            free=free / 2**20, size=f"{quantity(classes, 'class')} and {quantity(terms, 'term')}")

    @classmethod
    def out_of_memory(cls, path: str, what: str) -> ModelFileError:
        return cls.naming_settings("memory ran out while {path} was read ({what}). " + _FEWER_TERMS,
                                   path=path, what=what)


class EngineError(TextnbError, RuntimeError):
    """The system gives this process too little to work."""

    @classmethod
    def no_resources(cls, reason: str) -> EngineError:
        return cls(f"the system gives too little to work: {reason}. Allow more threads and memory: "
                   "ulimit -u and ulimit -v show the limits, as does a container's configuration")

    @classmethod
    def no_polars(cls, reason: str, threads: str | None) -> EngineError:
        """Polars fails at everything; ``threads`` is what its environment variable says."""
        # Without its leading zeros, the number 0 is empty, hence not decimal.
        if threads is not None and not threads.lstrip("0").isdecimal():
            return cls(f"Polars can't work with POLARS_MAX_THREADS={threads!r} ({reason}). Unset "
                       "it, or make it a number of 1 or more")
        return cls.no_resources(f"Polars can't work ({reason})")


class ForkError(EngineError):
    """A forked process lacks the threads that it would wait for."""

    @classmethod
    def threads_lost(cls) -> ForkError:
        return cls(
            "this process was forked from one in which Polars had worked (through textnb or "
            "otherwise), and Polars' threads do not survive a fork: it would wait for ever. Start "
            "processes with multiprocessing.get_context('spawn') or 'forkserver', or fork before "
            "the first use")


def first_line(error: BaseException) -> str:
    """The first line of another library's error; the name of its type if it has no message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def printable(text: str) -> str:
    """The text without control characters, which must not reach a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quantity(number: float, noun: str, one: str = "", several: str = "") -> str:
    """A number with its noun, and a verb, in the singular or the plural.

    The noun is given in the singular; ``one`` and ``several`` are the forms of the verb.

    Examples
    --------
    >>> quantity(1, "document"), quantity(1200, "class"), quantity(2, "row", "is", "are")
    ('1 document', '1,200 classes', '2 rows are')
    """
    plural = noun + ("es" if noun.endswith("s") else "s")
    return " ".join(filter(None, (f"{number:,}", noun if number == 1 else plural,
                                  one if number == 1 else several)))


def suggestion(got: str, known: Sequence[str], synonyms: Mapping[str, str] | None = None) -> str:
    """A question with the known names that ``got`` most likely means; "" if no name is similar.

    Parameters
    ----------
    got : str
    known : sequence of str
    synonyms : mapping, optional
        From names that others use to the known name that they mean.

    Examples
    --------
    >>> suggestion("postgres", ["sql-duckdb", "sql-postgres"])
    " - did you mean 'sql-postgres'?"
    >>> suggestion("sql", ["json", "sql-duckdb", "sql-postgres"])
    " - did you mean 'sql-duckdb' or 'sql-postgres'?"
    """
    import difflib

    word = got.strip().lower()
    similar = [(synonyms or {}).get(word, "")]
    if similar == [""]:
        # A name of which this is a part is more likely than a name with similar letters.
        similar = [name for name in known if word in name.lower().split("-")]
    similar = similar or difflib.get_close_matches(got, known, n=1, cutoff=0.5)
    return f" - did you mean {' or '.join(map(repr, similar[:3]))}?" if similar else ""


def listing(items: Sequence[object], max_items: int = _MAX_LISTED) -> str:
    """The items, as Python writes them; of many, only the first, and how many more there are."""
    beginning = ", ".join(map(repr, items[:max_items]))
    more = len(items) - max_items
    return beginning + (f" and {more} more" if more > 0 else "")
