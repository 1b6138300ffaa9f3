"""What was measured, as a table: on a terminal, and in Markdown."""

from __future__ import annotations

from typing import Any

HEAD = ("corpus", "task", "side", "time", "faster", "peak memory, MiB", "beside imports", "found")


def caption(about: dict[str, Any], results: list[dict[str, Any]]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return (f"{about['cores']} cores ({about['machine']}), Python {about['python']}, {versions}. "
            f"{runs_of(about, results)}; each run in a process of its own, the sides in turn. "
            "\"Faster\" is the median of scikit-learn's CountVectorizer and MultinomialNB divided "
            "by the side's. Peak memory is that of the whole process, with a command that it "
            "waits for; beside it, the same less what it holds after its imports and a first use.")


def runs_of(about: dict[str, Any], results: list[dict[str, Any]]) -> str:
    usual = max((line["runs"] for line in results if "runs" in line), default=about["runs"])
    other = {line["corpus"]: line["runs"] for line in results if line.get("runs", usual) != usual}
    text = f"Medians of {usual} runs" if usual > 1 else "One run"
    return text + "".join(f", {corpus}: {runs} run{'s' if runs > 1 else ''}"
                          for corpus, runs in other.items())


def show(about: dict[str, Any], results: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(caption=Text(caption(about, results), style="dim"), caption_justify="left")
    for name in HEAD:
        table.add_column(name, justify="right" if name in HEAD[3:7] else "left")
    before: tuple[str, str] | None = None
    for line in results:
        place = line["corpus"], line["task"]
        if before is not None and place != before:
            table.add_section()
        # Text, as brackets are markup in a plain string.
        table.add_row(*(Text(cell) for cell in cells(line, place == before)))
        before = place
    Console().print(table)


def markdown(results: list[dict[str, Any]]) -> str:
    rows, before = [HEAD], None
    for line in results:
        place = line["corpus"], line["task"]
        rows.append(cells(line, place == before))
        before = place
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEAD))]
    right = [3 <= k < 7 for k in range(len(HEAD))]
    rule = "|" + "|".join("-" * (width + 1) + (":" if end else "-")
                          for width, end in zip(widths, right, strict=True)) + "|"
    written = ["| " + " | ".join(cell.rjust(width) if end else cell.ljust(width)
                                 for cell, width, end in zip(row, widths, right, strict=True))
               + " |" for row in rows]
    return "\n".join([written[0], rule, *written[1:]])


def cells(line: dict[str, Any], same_place: bool) -> tuple[str, ...]:
    place = ("", "") if same_place else (line["corpus"], line["task"])
    if "failed" in line:
        return (*place, line["side"], "", "", "", "", f"FAILED: {line['failed']}")
    faster = times(line["times_faster"]) if "times_faster" in line else ""
    return (*place, line["side"], duration(line["seconds"]), faster, f"{line['peak_mib']:,.0f}",
            f"{round(line['beside_imports_mib']):,}" if "beside_imports_mib" in line else "",
            ("DIFFERS: " if line["differs"] else "") + found(line["check"])
            + (" (too little text for compiled loops)" if line["too_little_text"] else ""))


def duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    if seconds < 0.1:
        return f"{1e3 * seconds:.1f} ms"
    return f"{seconds:.2f} s"


def times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 1 else f"{ratio:.1f}x" if ratio < 10 else f"{ratio:,.0f}x"


def found(check: dict[str, Any]) -> str:
    parts = []
    if "entries" in check:
        parts.append(f"{check['entries']:,} entries")
    if "terms" in check:
        parts.append(f"{check['terms']:,} terms")
    if "accuracy" in check:
        parts.append(f"accuracy {check['accuracy']:.4f}")
    if "label" in check:
        parts.append(f"says {check['label']}")
    return ", ".join(parts)
