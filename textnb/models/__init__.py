"""The models, a class each, and what a model of your own is made with."""

from textnb.models.base import register_model
from textnb.models.counts import CountModel
from textnb.models.learned_rows import RowModel
from textnb.runtime.settings import setting

__all__ = ["CountModel", "RowModel", "register_model", "setting"]
