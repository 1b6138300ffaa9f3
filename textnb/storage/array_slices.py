"""Slices of an array of a model file, read block by block and without NumPy."""

from __future__ import annotations

from typing import Any

from textnb.files.blocks import BLOCK, Blocks


class ArraySlices:
    """Reads slices of one array. It keeps the blocks that it has read last."""

    def __init__(
        self, blocks: Blocks, name: str, start: int, count: int, size: int, code: str
    ) -> None:
        self.name, self.count, self.code = name, count, code
        self._blocks, self._start, self._size = blocks, start, size
        self._at, self._view = 0, memoryview(b"")

    def slice(self, first: int, last: int) -> memoryview[Any]:
        """The values from one place to another."""
        if not 0 <= first <= last <= self.count:
            raise self._blocks.damaged(f"{self.name} has no place {last}")
        start, end = self._start + first * self._size, self._start + last * self._size
        if not self._at <= start <= end <= self._at + len(self._view):
            at = start - start % BLOCK
            self._view = self._blocks.read(at, min(-(-end // BLOCK) * BLOCK, self._blocks.length))
            self._at = at
        values: memoryview[Any] = self._view[start - self._at:end - self._at].cast(
            self.code)  # type: ignore[call-overload]  # the code is a variable
        return values
