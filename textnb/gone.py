"""What the last release had and this one has not, with what to use instead.

Entries are kept for one release. Other unknown names are taken for typing mistakes.
"""

from __future__ import annotations

# By verb and option, as they are typed.
OPTIONS: dict[tuple[str, str], str] = {
    ("tune", "--picture"): "--table FILE writes all trials, with columns to draw",
}
# By the name that `textnb export --to`, `export_model` and jobs took.
TARGETS: dict[str, str] = {
}
# By the key of a job, without the numbers of entries: `exports.top`.
KEYS: dict[str, str] = {
}


def gone(name: str, advice: str) -> str:
    """A message for what has gone.

    Examples
    --------
    >>> gone("--engine", "export to each target")
    '--engine is gone: export to each target'
    """
    return f"{name} is gone: {advice}"
