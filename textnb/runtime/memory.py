"""How much memory is free, and an error for tables that would not fit.

A model has classes times terms numbers: with thousands of classes a small file makes a large model.
So its size is checked before it is allocated: if the system kills the process, there is no error.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from textnb.errors import DataError, first_line

_LOG = logging.getLogger("textnb")
# Bytes: smaller tables are made without a check.
_MIN_BYTES = 64 << 20
# Bytes: tables of this size are logged.
_LOG_BYTES = 512 << 20
# A limit of this number of bytes or more means no limit: a control group of version 1 that has none
# says nearly 2**63.
_UNLIMITED = 1 << 60


def check_fits_in_memory(
    classes: int, terms: int, bytes_per_count: int, name: str, freed: int = 0,
    log_size: bool = False, stored: int | None = None,
) -> None:
    """Check that memory can hold tables of classes times terms.

    Parameters
    ----------
    classes, terms : int
    bytes_per_count : int
        The minimum number of bytes for each class and term.
    name : str
        What the tables are, for the message.
    freed : int
        Bytes to subtract: of tables that exist already, or that will be freed before.
    log_size : bool
        Whether to log the size of large tables.
    stored : int, optional
        The number of counts that sparse tables store, if not classes times terms.

    Raises
    ------
    DataError
        If the tables need more bytes than are free.
    """
    needed = (classes * terms if stored is None else stored) * bytes_per_count
    if not fits_in_memory(needed - freed):
        raise DataError.too_large(classes, terms, name, needed, free_memory() or 0)
    if log_size and needed >= _LOG_BYTES:
        _LOG.info("%s classes and %s terms: %s take %.1f GiB of memory", f"{classes:,}",
                  f"{terms:,}", name, needed / 2**30)


@contextmanager
def explaining_memory_errors(size: Callable[[], tuple[int, int]] | None = None) -> Iterator[None]:
    """A context in which a MemoryError becomes a `DataError` that says what needs the memory.

    Parameters
    ----------
    size : callable, optional
        Returns the number of classes and of terms.
    """
    try:
        yield
    except MemoryError as error:
        raise DataError.out_of_memory(
            first_line(error), None if size is None else size()) from error


def fits_in_memory(needed: int) -> bool:
    """Whether ``needed`` bytes are free; True if the system does not say."""
    if needed < _MIN_BYTES:
        return True
    free = free_memory()
    return free is None or needed <= free


def free_memory() -> int | None:
    """Bytes that this process can allocate without swapping; None if the system does not say.

    The smallest of three: what the system has free, what the control groups of the process (a
    container's limit) leave, and what its limit of address space (``ulimit -v``) leaves.
    """
    limits = (_free_in_system(), _free_in_control_groups(), _free_in_address_space())
    known_limits = [limit for limit in limits if limit is not None]
    return max(0, min(known_limits)) if known_limits else None


def _free_in_system() -> int | None:
    """The memory that the system has free, in bytes."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        # An upper bound: the memory of other processes is not known here.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _free_in_control_groups() -> int | None:
    """The smallest number of bytes that a control group leaves; None without a limit."""
    free = [limit - used for limit, used in _limits_of_control_groups() if limit < _UNLIMITED]
    return min(free, default=None)


def _limits_of_control_groups() -> Iterator[tuple[int, int]]:
    """Limit and use, in bytes, of each control group that this process is in."""
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        # A control group of version 2 names no controllers. "Inactive" pages are cached files.
        if controllers == "":
            root, files = Path("/sys/fs/cgroup"), ("memory.max", "memory.current")
            inactive = "inactive_file "
        elif "memory" in controllers.split(","):
            root = Path("/sys/fs/cgroup/memory")
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            inactive = "total_inactive_file "
        else:
            continue
        group = root / path.lstrip("/")
        # The limits of a group's parents hold for it, too. In a container, the group of the process
        # may be mounted as the root, not at this path.
        for folder in {root, group, *group.parents} if group.is_dir() else {root}:
            if folder != root and root not in folder.parents:
                continue
            try:
                limit, used = ((folder / file).read_text("ascii").strip() for file in files)
                cached = sum(int(row.split()[1]) for row in
                             (folder / "memory.stat").read_text("ascii").splitlines()
                             if row.startswith(inactive))
            except (OSError, ValueError, IndexError):
                continue
            if limit != "max":
                # The system frees cached pages of files on demand, so they count as free.
                yield int(limit), int(used) - cached


def _free_in_address_space() -> int | None:
    """What the limit of address space leaves of it, in bytes; None without a limit."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except (ImportError, OSError, ValueError, IndexError):
        return None
    return limit - pages * resource.getpagesize()
