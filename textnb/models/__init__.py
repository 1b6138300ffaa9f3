"""The models, a class each, and the base classes for a model of your own."""

from textnb.models.base import register_model, unregister_model
from textnb.models.counts import CountModel
from textnb.models.dense import MomentModel
from textnb.models.learned_rows import RowModel
from textnb.runtime.settings import between, setting

__all__ = ["CountModel", "MomentModel", "RowModel", "between", "register_model", "setting",
           "unregister_model"]
