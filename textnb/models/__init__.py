"""The models, a class each, and what a model of your own is made with."""

from textnb.models.base import register_model, unregister_model
from textnb.models.counts import CountModel
from textnb.models.dense import MomentModel
from textnb.models.learned_rows import RowModel
from textnb.runtime.settings import between, setting

__all__ = ["CountModel", "MomentModel", "RowModel", "between", "register_model", "setting",
           "unregister_model"]
