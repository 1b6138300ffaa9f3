"""Tables of other libraries as Polars frames, and predictions in the kind of table that went in.

    pandas, PyArrow, DuckDB, dict of columns, list of dicts  ->  polars.DataFrame  ->  the same kind

A table is recognised by the module of its class, so nothing is imported that the caller has not
imported. A kind that is not known here is not a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from operator import itemgetter
from typing import Any, Protocol, assert_never

import numpy as np
import polars as pl
from numpy.typing import NDArray

from textnb.errors import DataError, ParameterError, SchemaError, first_line
from textnb.runtime.forks import check_polars_threads
from textnb.runtime.unicode import check_unicode

# The types of Python that may hold a document's tokens or labels.
LIST_TYPES = (list, tuple, set, frozenset)
INSTALL_PYARROW = "install it: pip install pyarrow"
# The kinds of dtypes (`numpy.dtype.kind`) that pandas stores as NumPy arrays of numbers or times.
_NUMPY_KINDS = "biufMm"
# NumPy's types of times that Polars knows.
_TIMES = ["<M8[D]", *(f"<{kind}8[{unit}]" for kind in "Mm" for unit in ("ms", "us", "ns"))]


class ArrowStream(Protocol):
    """A table with the Arrow PyCapsule interface, such as a pandas DataFrame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Table = (pl.DataFrame | pl.LazyFrame | ArrowStream | Mapping[str, Any]
         | Sequence[Mapping[str, Any]])


class Kind(Enum):
    """The kinds of tables."""

    POLARS = auto()
    LAZY = auto()
    PANDAS = auto()
    ARROW_TABLE = auto()
    ARROW_BATCH = auto()
    ARROW_READER = auto()
    DUCKDB = auto()
    COLUMNS = auto()
    ROWS = auto()
    ARROW_STREAM = auto()


_ARROW = (Kind.ARROW_TABLE, Kind.ARROW_BATCH, Kind.ARROW_READER)
# Tables of other libraries whose rows and columns can be selected without conversion.
_SELECTABLE = (Kind.PANDAS, Kind.ARROW_TABLE, Kind.ARROW_BATCH)
# The kind of a table by its class: the library and the name.
_CLASSES = {("pandas", "DataFrame"): Kind.PANDAS, ("pyarrow", "Table"): Kind.ARROW_TABLE,
            ("pyarrow", "RecordBatch"): Kind.ARROW_BATCH,
            ("pyarrow", "RecordBatchReader"): Kind.ARROW_READER,
            ("duckdb", "DuckDBPyRelation"): Kind.DUCKDB}


def kind_of(X: Any) -> Kind | None:
    """The kind of a table; None for anything that is not a table.

    A list of dicts is a table of rows; a dict is a table of columns. A frame of any other library
    is taken if it has ``columns`` and the Arrow PyCapsule interface.

    Examples
    --------
    >>> kind_of(pl.DataFrame()), kind_of({"text": ["one"]}), kind_of(["one"])
    (<Kind.POLARS: 1>, <Kind.COLUMNS: 8>, None)
    """
    if isinstance(X, pl.DataFrame):
        return Kind.POLARS
    if isinstance(X, pl.LazyFrame):
        return Kind.LAZY
    if isinstance(X, Mapping):
        return Kind.COLUMNS
    if isinstance(X, (list, tuple)):
        return Kind.ROWS if X and isinstance(X[0], Mapping) else None
    for name in _class_names(X):
        if name in _CLASSES:
            return _CLASSES[name]
    return Kind.ARROW_STREAM if hasattr(X, "__arrow_c_stream__") and hasattr(X, "columns") else None


def _class_names(X: Any) -> list[tuple[str, str]]:
    """The library and name of each class of an object, without an import of the library."""
    return [(kind.__module__.split(".")[0].lstrip("_"), kind.__name__)
            for kind in type(X).__mro__]


def names_of(X: Any) -> list[str]:
    """The names of the columns of a table of another library."""
    return X.schema.names if kind_of(X) in _ARROW else list(map(str, X.columns))


def in_memory(X: Any) -> bool:
    """Whether X is a table whose rows are in memory: not a LazyFrame, and not a path."""
    return kind_of(X) not in (None, Kind.LAZY)


def as_polars(X: Any) -> pl.DataFrame | pl.LazyFrame:
    """Convert a table to a Polars frame, with missing values as nulls.

    Parameters
    ----------
    X : table
        A table of a kind that `kind_of` knows.

    Raises
    ------
    SchemaError
        If two columns have the same name, or columns have several levels.
    DataError
        If columns differ in length, or rows can't be read.
    ParameterError
        If X is not a table, or its library needs PyArrow, which is not installed.
    """
    check_polars_threads()
    kind = kind_of(X)
    match kind:
        case Kind.POLARS | Kind.LAZY:
            frame: pl.DataFrame | pl.LazyFrame = X
            return frame
        case Kind.PANDAS:
            return pl.DataFrame({name: series_of(X.iloc[:, number]).alias(name)
                                 for number, name in enumerate(_check_names(X))})
        case Kind.COLUMNS:
            return _from_columns(X)
        case Kind.ROWS:
            return _from_rows(X)
        case Kind.ARROW_TABLE | Kind.ARROW_BATCH | Kind.ARROW_READER | (
                Kind.ARROW_STREAM | Kind.DUCKDB):
            _check_names(X)
            return _from_stream(X)
        case None:
            if hasattr(X, "__arrow_c_stream__"):
                return _from_stream(X)
            raise ParameterError(
                "a source is a path, a Polars DataFrame or LazyFrame, a pandas DataFrame, a "
                "PyArrow Table, a DuckDB relation, a dict of columns or a list of dicts; got "
                f"{type(X).__name__}")
        case _:
            assert_never(kind)


def select_columns(X: Any, columns: Sequence[str]) -> Any:
    """Select columns of another library's table, so that no others are converted to Polars.

    If a column is missing, return the whole table, so that an error can name all its columns.
    """
    kind = kind_of(X)
    if kind not in _SELECTABLE:
        return X
    names = names_of(X)
    if any(names.count(column) != 1 for column in columns):
        return X
    return (X.iloc[:, [names.index(column) for column in columns]] if kind is Kind.PANDAS
            else X.select(list(columns)))


def convert_table(X: Any, columns: Sequence[str]) -> Any:
    """Convert a table of another library to a Polars frame, so that it is read only once.

    Polars frames and paths are returned as they are.
    """
    if kind_of(X) in (None, Kind.POLARS, Kind.LAZY):
        return X
    return as_polars(select_columns(X, columns))


def series_of(values: Any) -> Any:
    """A pandas Series or a PyArrow array as a Polars Series; other values as they are.

    Missing values (None, NaN, NaT, pandas.NA) are nulls. Values of several types are a Series of
    type Object.
    """
    names = _class_names(values)
    if ("pyarrow", "Array") in names or ("pyarrow", "ChunkedArray") in names:
        return pl.Series(values)
    return _series_of_pandas(values) if ("pandas", "Series") in names else values


def _series_of_pandas(column: Any) -> pl.Series:
    if type(column.dtype).__name__ == "SparseDtype":
        column = column.sparse.to_dense()
    name, dtype = str(column.name), column.dtype
    kind = type(dtype).__name__
    if isinstance(dtype, np.dtype) and dtype.kind in _NUMPY_KINDS:
        return pl.Series(name, _with_known_unit(column.to_numpy()), nan_to_null=True)
    # A type such as pandas' Int64 or boolean holds values, and a mask of the missing ones.
    if ("pandas", "BaseMaskedDtype") in _class_names(dtype):
        has_value = pl.Series(~column.isna().to_numpy())
        values = pl.Series(name, column.to_numpy(dtype=dtype.numpy_dtype, na_value=0))
        return values if has_value.all() else pl.select(pl.when(has_value).then(values)).to_series()
    if not (isinstance(dtype, np.dtype) or kind == "CategoricalDtype" or (
            kind == "StringDtype" and dtype.storage == "python")):
        return _series_by_arrow(column, name)
    # Objects, categories and strings of Python: pandas needs no PyArrow for them.
    objects = column.to_numpy(dtype=object, copy=True)
    objects[column.isna().to_numpy()] = None
    # pandas reads lists from Parquet as arrays, and Polars needs lists.
    items = [item.tolist() if isinstance(item, np.ndarray) else item for item in objects.tolist()]
    try:
        values = pl.Series(name, items)
    except (TypeError, UnicodeError, OverflowError, pl.exceptions.PolarsError):
        check_unicode(items, repr(name))
        return pl.Series(name, items, dtype=pl.Object)
    is_categorical = kind == "CategoricalDtype" and values.dtype == pl.String
    return values.cast(pl.Categorical) if is_categorical else values


def _with_known_unit(values: NDArray[Any]) -> NDArray[Any]:
    """Times in a unit that Polars knows: others, such as seconds, become milliseconds."""
    if values.dtype.kind in "mM" and values.dtype.str not in _TIMES:
        return values.astype(f"{values.dtype.kind}8[ms]")
    return values


def _series_by_arrow(column: Any, name: str) -> pl.Series:
    try:
        return pl.Series(name, pl.from_pandas(column, nan_to_null=True))
    except ImportError as error:
        raise ParameterError(f"a pandas column of type {column.dtype} ({name!r}) needs PyArrow; "
                             f"{INSTALL_PYARROW}") from error
    except (TypeError, ValueError, NotImplementedError, pl.exceptions.PolarsError):
        # PyArrow can't hold the column: its own errors are of these types.
        return pl.Series(name, column.astype(object).tolist(), dtype=pl.Object)


def _check_names(table: Any) -> list[str]:
    levels = getattr(getattr(table, "columns", None), "nlevels", 1)
    if levels > 1:
        raise SchemaError(f"the frame's columns have {levels} levels, and one is expected; flatten "
                          "them: frame.columns = ['_'.join(map(str, name)) for name in "
                          "frame.columns]")
    return check_distinct(names_of(table))


def check_distinct(
    names: list[str], what: str = "the table", advice: str = "rename or drop one"
) -> list[str]:
    """Return names of columns; SchemaError with ``advice`` if two of ``what`` are the same."""
    name, count = max(Counter(names).items(), key=itemgetter(1), default=("", 0))
    if count > 1:
        raise SchemaError(f"{what} has two columns called {name!r}: {advice}")
    return names


def _from_stream(stream: Any) -> pl.DataFrame:
    try:
        return pl.DataFrame(stream)
    except ImportError as error:
        raise ParameterError(f"a {type(stream).__name__} is read by {error.name}, which is not "
                             f"installed; {INSTALL_PYARROW}") from error


def _from_columns(columns: Mapping[Any, Any]) -> pl.DataFrame:
    series: dict[str, pl.Series] = {}
    for key, values in columns.items():
        name = str(key)
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise DataError(f"column {name!r} of the dict must be a sequence of values, one per "
                            f"row; got {values!r:.60}. For one row, pass {{{name!r}: [value]}}")
        column = series_of(values)
        series[name] = (column.alias(name) if isinstance(column, pl.Series)
                        else _series_of_one_type(name, column))
    check_distinct(list(map(str, columns)))
    lengths = {name: len(values) for name, values in series.items()}
    if len(set(lengths.values())) > 1:
        raise DataError("the columns of the dict must have one length; they have " + ", ".join(
            f"{length} ({name!r})" for name, length in lengths.items()))
    return pl.DataFrame(series)


def _series_of_one_type(name: str, values: Any) -> pl.Series:
    try:
        return pl.Series(name, _with_known_unit(values) if isinstance(values, np.ndarray)
                         else list(values))
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        check_unicode(values, repr(name))
        raise DataError(f"column {name!r} must hold values of one type: {first_line(error)}"
                        ) from error


def _from_rows(rows: Sequence[Any]) -> pl.DataFrame:
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"row {number} (counted from 0) is of type {type(row).__name__}, and "
                            "row 0 is a dict: all rows must be dicts, or all texts")
    # Convert by columns, so that an error can name the column of a value.
    names = dict.fromkeys(key for row in rows for key in row)
    return _from_columns({name: [row.get(name) for row in rows] for name in names})


def to_kind_of(X: Any, predicted: pl.LazyFrame, columns: Sequence[str]) -> Any:
    """Convert predictions to the kind of table that the user passed.

    Parameters
    ----------
    X : table or path
        What the user passed.
    predicted : LazyFrame
        The rows of ``select_columns(X, columns)`` in order, with predictions as further columns.
    columns : sequence of str
        The columns that the model reads.

    Returns
    -------
    table
        Of the same kind as ``X``; but a LazyFrame for a path, a pyarrow.Table for a DuckDB
        relation, and a polars.DataFrame for a dict, a list of dicts and tables of unknown
        libraries. A pandas DataFrame, pyarrow Table or RecordBatch has all columns of ``X``,
        unchanged, and the predictions.

    Raises
    ------
    SchemaError
        If the table has a column with the name of a prediction's.
    """
    kind = kind_of(X)
    match kind:
        case Kind.LAZY | None:
            return predicted
        case Kind.POLARS | Kind.COLUMNS | Kind.ROWS | Kind.ARROW_STREAM:
            return predicted.collect()
        case Kind.DUCKDB:
            return _to_arrow(predicted.collect())
        case Kind.ARROW_READER:
            return _to_arrow(predicted.collect()).to_reader()
        case Kind.PANDAS | Kind.ARROW_TABLE | Kind.ARROW_BATCH:
            new = [name for name in predicted.collect_schema().names() if name not in columns]
            SchemaError.check_new(new, names_of(X))
            answers = predicted.select(new).collect()
            if kind is Kind.PANDAS:
                return X.assign(**{name: _pandas_values(answers[name]) for name in new})
            table = _to_arrow(answers)
            for name in new:
                column = table.column(name)
                X = X.append_column(
                    name, column if kind is Kind.ARROW_TABLE else column.combine_chunks())
            return X
        case _:
            assert_never(kind)


def rows_to_kind_of(X: Any, rows: pl.LazyFrame, row_column: str, columns: Sequence[str]) -> Any:
    """Convert some rows of a table, in any order and with new columns, to the kind of the table.

    Parameters
    ----------
    X : table or path
    rows : LazyFrame
        Rows of ``select_columns(X, columns)`` with further columns.
    row_column : str
        The column with the number of each row in ``X``.
    columns : sequence of str
        As for `to_kind_of`.

    Returns
    -------
    See `to_kind_of`.
    """
    kind = kind_of(X)
    if kind in _SELECTABLE:
        new_columns = rows.drop(columns).collect()
        numbers, rows = new_columns[row_column].to_numpy(), new_columns.lazy()
        X = X.iloc[numbers] if kind is Kind.PANDAS else _take(X, numbers)
    return to_kind_of(X, rows, columns)


def _take(X: Any, numbers: NDArray[Any]) -> Any:
    """Select rows of a PyArrow table; by Polars, if PyArrow can't select those of a type.

    Which types these are depends on its release: views of strings, as Polars has them, for example.
    """
    try:
        return X.take(numbers)
    except NotImplementedError:
        return _to_arrow(_from_stream(X)[numbers])


def _pandas_values(values: pl.Series) -> Any:
    """Values for a new pandas column, in the order of the rows, independent of the index.

    Integers and Booleans with nulls become objects: pandas would turn them into floats.
    """
    if values.is_empty() and not values.dtype.is_numeric() and values.dtype != pl.Boolean:
        # pandas would make an empty list a column of floats.
        return np.empty(0, dtype=object)
    is_integer_or_bool = values.dtype.is_integer() or values.dtype == pl.Boolean
    if values.dtype.is_float() or (is_integer_or_bool and not values.null_count()):
        return values.to_numpy(writable=True)
    return np.array(values.to_list(), dtype=object) if is_integer_or_bool else values.to_list()


def _to_arrow(frame: pl.DataFrame) -> Any:
    try:
        return frame.to_arrow()
    except ImportError as error:
        raise ParameterError("the answer is a PyArrow Table, and PyArrow is not installed; "
                             f"{INSTALL_PYARROW}") from error
