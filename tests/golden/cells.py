"""All cells of the record."""

from functools import cache

from .cell import Cell
from .tables import matrix_cells, table_cells
from .texts import mail_cells, text_cells


@cache
def all_cells() -> tuple[Cell, ...]:
    """Every cell of the record; names are unique."""
    cells = (*text_cells(), *mail_cells(), *table_cells(), *matrix_cells())
    assert len({cell.name for cell in cells}) == len(cells)
    return cells
