"""The step that writes a model for another system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textnb.export.write import Exported, export_model
from textnb.workflow.models import AnyModel, class_named, classes_of
from textnb.workflow.options import ExportOptions


def export(
    model: AnyModel, path: str | Path, options: ExportOptions,
    progress: Callable[[str], None] | None = None,
) -> Exported:
    """Write a model for another system."""
    positive = class_named(options.positive, classes_of(model), "positive")
    settings: dict[str, Any] = {name: getattr(options, name) for name in (
        "reads", "answers", "top", "precision")}
    return export_model(model, path, options.to, positive=positive, progress=progress, **settings)
