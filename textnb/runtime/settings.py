"""Each setting is declared once: a field of a dataclass with name, type, default, range and help.

Constructors, the command line, the keys of jobs, the checks of a file and the reference pages are
made from these fields. This module imports the standard library alone, so that
``textnb train --help`` starts at once.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from textnb.errors import ParameterError

T = TypeVar("T")
# The types of settings, by their meaning: `Setting`s are declared with them, and `textnb.cli.words`
# reads their values from the command line. A Place is a path or URL, Kinds are kinds of tokens,
# and a Segmenter is a user's function that splits a text into tokens, or its name.
CountOrShare = int | float
Size = int | str
Pair = tuple[int, int]
Columns = str | list[str]
Words = tuple[str, ...]
Prefixes = bool | tuple[str, ...]
LowerCase = bool | str
Kinds = tuple[str, ...]
Place = str
Names = tuple[str, ...]
ClassPatterns = tuple[str, ...]
Label = str | int | bool
Costs = tuple[float, float]
Grid = tuple[float, ...] | str
Storage = Mapping[str, Any]
if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    # Python also allows arrays here. NumPy is not imported at run time only for their type.
    NumberOrAuto = float | str | ArrayLike
    Numbers = float | ArrayLike
    Priors = ArrayLike
    Segmenter = Callable[[str], Iterable[str]] | str
else:
    NumberOrAuto = float | str
    Numbers = float | list[float]
    Priors = list[float]
    Segmenter = str
Weights = Mapping[Any, float] | str


def is_number(value: object) -> bool:
    """Whether a setting is a real number that a float can hold, but not a bool."""
    if not isinstance(value, Real) or is_truth(value):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_whole(value: object) -> bool:
    """Whether a setting is an integer, of Python or NumPy, but not a bool."""
    return isinstance(value, Integral) and not is_truth(value)


def is_truth(value: object) -> bool:
    """Whether a setting is a bool, of Python or NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


@dataclass(eq=False, repr=False)
class Range:
    """The values that a setting may have.

    Attributes
    ----------
    says : str
        The values in words, as in "must be ...".
    holds : callable
        Whether a value is one of them.
    """

    says: str
    holds: Callable[[Any], bool]


TRUTH = Range("True or False", is_truth)
ABOVE_0 = Range("a finite number above 0", lambda v: is_number(v) and math.isfinite(v) and v > 0)
AT_LEAST_0 = Range("a finite number >= 0",
                   lambda v: is_number(v) and math.isfinite(v) and v >= 0)
WHOLE_ABOVE_0 = Range("an integer above 0 and below 2**31",
                      lambda v: is_whole(v) and 1 <= v < 2**31)
AT_LEAST_2 = Range("an int >= 2", lambda v: is_whole(v) and v >= 2)

SEED = Range("an int >= 0 and below 2**32", lambda v: is_whole(v) and 0 <= v < 2**32)
SHARE = Range("a number above 0 and below 1", lambda v: isinstance(v, (int, float))
              and not is_truth(v) and 0 < v < 1)
# With costs of 1e-100 to 1e100, their ratio and their products with numbers of rows are finite.
COSTS = Range("two numbers above 0 (1e-100 to 1e100), of a false positive and of a false negative",
              lambda v: isinstance(v, (tuple, list)) and len(v) == 2
              and all(ABOVE_0.holds(cost) and 1e-100 <= cost <= 1e100 for cost in v))
CLASSES = Range(
    "CLASS=PATTERN,..., such as 'ham=easy-ham-*,hard-ham-*'",
    lambda v: isinstance(v, (tuple, list)) and len(v) > 0 and all(
        isinstance(each, str) and re.fullmatch("[^=]+=[^,]+(,[^,]+)*", each) for each in v))
COUNT = Range("an integer above 0", lambda v: is_whole(v) and v >= 1)
STRINGS = Range("a list of strings", lambda v: isinstance(v, (list, tuple)) and all(
    isinstance(each, str) for each in v))


def _or_array(allowed: Range) -> Range:
    """Allow arrays too, with a number for each term; they are not checked here."""
    says = f"{allowed.says} (multinomial, bernoulli and complement alone choose it by 'auto')"
    return Range(says, lambda v: hasattr(v, "shape") or isinstance(v, (list, tuple))
                 or allowed.holds(v))


SMOOTHING_NUMBER = _or_array(AT_LEAST_0)
SMOOTHING_ABOVE_0 = _or_array(ABOVE_0)
SMOOTHING = Range("a finite number >= 0, or 'auto'",
                  lambda v: (isinstance(v, str) and v == "auto") or SMOOTHING_NUMBER.holds(v))


def between(low: float, high: float) -> Range:
    """The numbers from one number to another."""
    return Range(f"in [{low:g}, {high:g}]", lambda v: is_number(v) and low <= v <= high)


@dataclass(eq=False, repr=False)
class Setting:
    """What is declared about a setting, apart from its name, type and default.

    Attributes
    ----------
    help : str
        One line.
    choices : tuple of str
        The allowed values, if they are few.
    range : Range or None
        The allowed values, if they do not depend on other settings.
    names : tuple of str
        The names on the command line, if they are not made from the field's name.
    metavar : str or None
        The placeholder of the value in the help text.
    is_common : bool
        Whether ``--help`` shows it. If not, only ``--help-all`` does.
    is_argument : bool
        Whether the command line takes it by its position, and not by its name.
    is_option : bool
        Whether the command line has it. If not, only Python and jobs have it.
    minimum : int or None
        The minimum of a number.
    python_name : str
        Its name in Python and in its errors, if the command line has another one.
    key_of : str
        The option that takes it as KEY=VALUE, such as ``read`` for ``--read``.
    packages : tuple of str
        The values of a path setting that name a package instead of a path.
    """

    help: str
    choices: tuple[str, ...] = ()
    range: Range | None = None
    names: tuple[str, ...] = ()
    metavar: str | None = None
    is_common: bool = True
    is_argument: bool = False
    is_option: bool = True
    minimum: int | None = None
    python_name: str = ""
    key_of: str = ""
    packages: tuple[str, ...] = ()


def setting(
    default: Any = MISSING, help: str = "", *, kw_only: Any = MISSING, **details: Any
) -> Any:
    """A field of a dataclass that declares a setting.

    Parameters
    ----------
    default : object
        Without a default the setting is required.
    help : str
        One line, for ``--help`` and the reference pages.
    kw_only : bool
        As in `dataclasses.field`.
    **details
        Attributes of `Setting`: ``choices``, the strings that are allowed; ``range``, such as
        ``between(0, 1)``; ``names``, such as ``("--idf/--no-idf",)``, if the command line has
        others than the field's; ``metavar``; ``is_common=False`` for ``--help-all`` only;
        ``is_option=False`` for Python and jobs only.

    Raises
    ------
    ParameterError
        If `Setting` has no such attribute.

    Examples
    --------
    >>> from textnb.models import between, setting
    >>> share = setting(0.5, "Share of the corpus.", range=between(0, 1))
    >>> share.metadata["setting"].range.says
    'in [0, 1]'
    """
    known = [each.name for each in fields(Setting)]
    for name in details:
        if name not in known:
            raise ParameterError.unknown_setting("setting", name, known)
    return field(default=default, kw_only=kw_only, metadata={"setting": Setting(help, **details)})


_NO_DETAILS = Setting("")


def setting_fields(group: type) -> Iterator[tuple[Field[Any], Setting]]:
    """The settings of a dataclass, in order; a field without `setting` has an empty `Setting`."""
    for each in fields(group):
        yield each, each.metadata.get("setting", _NO_DETAILS)


def type_of(field: Field[Any]) -> str:
    """The type of a setting, as its annotation is written: ``"float | None"``.

    Annotations are strings in modules with ``from __future__ import annotations``, and types in
    others.
    """
    kind: Any = field.type
    return kind.__name__ if isinstance(kind, type) else str(kind)


# The range of each type of setting in Python; a setting may have another range besides.
_PYTHON_RANGES: Mapping[str, Range] = {
    "bool": TRUTH, "int": Range("an integer", lambda v: is_whole(v) and abs(v) < 2**63),
    "float": Range("a finite number", lambda v: is_number(v) and math.isfinite(v)),
    "str": Range("a string", lambda v: isinstance(v, str)),
    "CountOrShare": Range("a count (int >= 1) or a share of documents (float in [0, 1])",
                          lambda v: v >= 1 if is_whole(v) else is_number(v) and 0.0 <= v <= 1.0),
    "Words": STRINGS, "Kinds": STRINGS,
    "Prefixes": Range("True, False or a list of strings",
                      lambda v: isinstance(v, bool) or STRINGS.holds(v)),
}
# The ranges in JSON and TOML. Settings of types that are not here are checked where they are used.
_FILE_RANGES: Mapping[str, Range] = {
    **_PYTHON_RANGES,
    "Segmenter": _PYTHON_RANGES["str"],
    "Size": Range("a number of bytes from 2**20", lambda v: is_whole(v) and 2**20 <= v < 2**63),
    "Columns": Range("a name or several", lambda v: isinstance(v, str) or STRINGS.holds(v)),
    "Names": Range("names", lambda v: STRINGS.holds(v) and len(v) > 0),
    "Place": Range("a path or URL", lambda v: isinstance(v, str)),
    "Label": Range("a label", lambda v: isinstance(v, (str, int))),
    "Costs": Range("two numbers", lambda v: _are_numbers(v) and len(v) == 2),
    "Grid": Range("different numbers >= 0, such as 1,0.1,0.01, or auto", lambda v: v == "auto" or (
        _are_numbers(v) and 0 < len(v) == len(set(map(str, v))) and min(v) >= 0)),
    "LowerCase": Range("true, false or a string", lambda v: isinstance(v, (bool, str))),
    "Priors": Range("numbers >= 0, not all 0", lambda v: _are_numbers(v) and any(v)
                    and min(v) >= 0),
}


def _are_numbers(values: object) -> bool:
    return isinstance(values, list) and all(map(_PYTHON_RANGES["float"].holds, values))


def check_settings(owner: Any) -> None:
    """Raise ParameterError if a setting, taken alone, has a value out of its range.

    Parameters
    ----------
    owner : object
        An instance of a dataclass whose fields are settings.
    """
    kind = type(owner)
    check_values(kind, {each.name: getattr(owner, each.name) for each in fields(kind)})


def check_values(group: type, values: Mapping[str, Any]) -> None:
    """As `check_settings`, for the values of some settings of a dataclass."""
    _check(group, values, _PYTHON_RANGES)


def check_json(group: type, values: Mapping[str, Any]) -> None:
    """Raise ParameterError if a value from a file is of another type, or out of its range.

    Parameters
    ----------
    group : type
        A dataclass whose fields are settings.
    values : mapping of str to value
        The values by the names of fields, of which some may be missing.
    """
    _check(group, values, _FILE_RANGES)


def _check(group: type, values: Mapping[str, Any], type_ranges: Mapping[str, Range]) -> None:
    """Check values by name against the choices and ranges of their settings and types."""
    for each, details in setting_fields(group):
        value, kind = values.get(each.name), type_of(each)
        is_optional = kind.endswith(" | None")
        if each.name not in values or (value is None and (is_optional or each.default is None)):
            continue
        if details.choices and not (isinstance(value, str) and value in details.choices):
            raise ParameterError.unknown_choice(each.name, value, details.choices)
        for allowed in (details.range, type_ranges.get(kind.removesuffix(" | None"))):
            if allowed is not None and not allowed.holds(value):
                # Files have no None.
                none = "None or " if is_optional and type_ranges is _PYTHON_RANGES else ""
                raise ParameterError.out_of_range(each.name, none + allowed.says, value)


def check_smoothing_name(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise ParameterError for ``alpha`` if the parameter is called ``l``."""
    known = set(known)
    if "alpha" not in names or "alpha" in known:
        return
    if "l" in known:
        raise ParameterError(f"{kind} has no parameter alpha: the smoothing parameter is l here, "
                             f"as in {kind}(l=0.5)")
    if "estimator" in known:
        raise ParameterError(f"{kind} has no parameter alpha: the smoothing parameter is the "
                             f"estimator's l, as in {kind}(MultinomialNB(l=0.5))")


def check_parameter_names(kind: type[T]) -> type[T]:
    """A class decorator: the constructor's error for an unknown parameter suggests the right name.

    It suggests ``l`` for ``alpha``, and the most similar name for others. If the class has a method
    `_advice_on`, and that knows where the parameter belongs, the error says so instead.
    """
    name = "__init__"
    # mypy refuses an assignment to kind.__init__.
    setattr(kind, name, _check_names_first(vars(kind)[name]))
    return kind


def _check_names_first(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, after a check of the names of its arguments."""
    # `inspect.signature` is slow, and a filter makes several models at its start.
    code = inspect.unwrap(init).__code__
    known = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    takes_any_name = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = [name for name in known if name != "self"]

    @functools.wraps(init)
    def checked_init(self: Any, *values: Any, **parameters: Any) -> None:
        kind = type(self).__name__
        check_smoothing_name(kind, parameters, known)
        for name in () if takes_any_name else parameters:
            if name not in known:
                advice = self._advice_on(name) if hasattr(self, "_advice_on") else ""
                raise ParameterError.unknown_setting(kind, name, names, advice)
        init(self, *values, **parameters)

    return checked_init
