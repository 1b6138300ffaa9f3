"""The verb samples: example files, so that every page of the documentation can be followed."""

from __future__ import annotations

from dataclasses import dataclass

from textnb.cli.console import out
from textnb.cli.options import argument, verb
from textnb.errors import quantity


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SamplesFolder:
    """Output."""

    folder: str = argument("Folder to write them into. Files that are there and differ stay: an "
                           "error names one.")


@verb
def samples(output: SamplesFolder) -> None:
    """Write small example files: news, mail and numbers, with which the documentation works."""
    from textnb.workflow.samples import write_samples

    files = write_samples(output.folder)
    out(f"{quantity(len(files), 'file')} -> {output.folder}; {files[0]} says what they hold")
