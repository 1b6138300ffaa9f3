"""Tables and pictures of the figures in docs/benchmarks/measured.json.

A page says where a table stands, and the rest of the page is written by hand:

    <!-- figures: whole -->
    (replaced)
    <!-- end of figures -->

`python -m benchmarks pages` writes all of them again. A test holds that they are those of the JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.accuracy import DEFAULT, TUNED
from benchmarks.sides import PARTS, SHORT, WHOLE

DOCS = Path(__file__).parents[2] / "docs"
RECORD = DOCS / "benchmarks" / "measured.json"
BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
TITLES = {"speed": "Speed", "scale": "Growing files", "instructions": "Instructions",
          "accuracy": "Accuracy",
          "recipe": "Naive Bayes on tf-idf", "tables": "Feature tables", "filters": "Mail filters",
          "served": "Mail filters that listen", "exports": "Exports", "spark": "Spark"}
OWN = "textnb"
# What a section has a list of.
LISTS = ("rows", "corpora")
NAME, BAR, LINE, TOP = 190, 300, 20, 62

Row = dict[str, Any]
Rows = Sequence[Row]


def write(figures: dict[str, Any]) -> None:
    """The record, and all that is made of it."""
    RECORD.write_text(as_text(figures), "utf-8")
    for path, text in written(figures).items():
        path.write_text(text, "utf-8")


def written(figures: dict[str, Any]) -> dict[Path, str]:
    """What each page and picture should be."""
    found = {}
    for path in sorted(DOCS.rglob("*.md")):
        page = path.read_text("utf-8")
        if BLOCK.search(page):
            found[path] = BLOCK.sub(lambda m: f"{m[1]}{block(m[2], figures)}\n{m[3]}", page)
    if "speed" in figures:
        for name, draw in PICTURES.items():
            found[DOCS / "benchmarks" / name] = draw(figures["speed"])
    return found


def recorded() -> dict[str, Any]:
    return json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}


def as_text(figures: dict[str, Any]) -> str:
    """JSON with a line for each row, so that a change of one figure is a change of one line."""
    def value(name: str, what: Any) -> str:
        lines = [json.dumps(row, ensure_ascii=False) for row in what] if name in LISTS else []
        text = "[\n   " + ",\n   ".join(lines) + "\n  ]" if lines else json.dumps(what)
        return f'  "{name}": {text}'

    sections = [f' "{section}": {{\n' + ",\n".join(map(value, found, found.values())) + "\n }"
                for section, found in figures.items()]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def block(name: str, figures: dict[str, Any]) -> str:
    """A table by its name."""
    section, make = BLOCKS[name]
    if section not in figures:
        return f"*Not yet measured: `scripts/bench {section} --record`.*"
    return make(figures[section])


def section_text(section: str, figures: dict[str, Any]) -> str:
    return "\n\n".join(text for name, (of, make) in BLOCKS.items()
                       if of == section and not name.endswith("_of_corpora")
                       and (text := make(figures)))


def about(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    busy = (f" Other work ran beside it (load {machine['load']} at the start): times are too high, "
            "ratios of sides that ran in turn are sounder."
            if machine.get("load", 0) > 0.5 * machine["cores"] else "")
    return (f"{machine['date']}: {machine['cores']} cores of {machine['cpu']}, "
            f"{machine['memory_gib']} GiB; Python {machine['python']}, {machine['textnb']}; "
            f"{versions}.{busy}")


# Tables of speed.

def corpora(found: Row) -> str:
    return table(("corpus", "learned", "", "answered", "", "classes"),
                 ((one["corpus"], f"{one['train_rows']:,} rows", megabytes(one["train_bytes"]),
                   f"{one['test_rows']:,} rows", megabytes(one["test_bytes"]), f"{one['classes']}")
                  for one in found["corpora"]), left=1) + (
                      f"\n\nNot installed, so absent: {', '.join(found['absent'])}."
                      if found.get("absent") else "")


def starts(found: Row) -> str:
    return table(("process", "time", "memory, MiB"),
                 ((f"`{row['side']}`", seconds(row["seconds"]), memory(row))
                  for row in of_tasks(found, ("start",))), left=1)


def whole(found: Row) -> str:
    head = ("corpus", "task", "side", "time", "CPU", "faster", "memory, MiB", "share", "accuracy",
            "its command alone")
    return tasks(head, of_tasks(found, WHOLE), lambda row: (
        seconds(row["seconds"]), seconds(row.get("cpu_seconds")), faster(row), memory(row),
        share(row), accuracy_of(row), seconds(row.get("command_seconds"))))


def beyond(found: Row) -> str:
    """How long textnb takes beyond the start of the libraries that it needs."""
    start = next((row["seconds"] for row in of_tasks(found, ("start",))
                  if row["side"] == "import polars, numpy"), None)
    own = [row for row in of_tasks(found, WHOLE[:3]) if row["side"] == OWN and "seconds" in row]
    return table(("corpus", "task", "time"),
                 ((row["corpus"], f"`{row['task']}`", seconds(row["seconds"] - start))
                  for row in own if start is not None), left=2)


def parts(found: Row) -> str:
    sizes = {one["corpus"]: one for one in found["corpora"]}

    def speed_of(row: Row) -> str:
        part = "test_bytes" if row["task"].startswith("predict") else "train_bytes"
        return f"{sizes[row['corpus']][part] / 1e6 / row['seconds']:,.1f}"

    def counted(row: Row) -> str:
        check = row["check"]
        return ", ".join(f"{check[name]:,} {name}" for name in ("entries", "terms")
                         if name in check) or accuracy_of(row)

    head = ("corpus", "task", "side", "time", "MB/s", "faster", "memory, MiB", "share", "found")
    return tasks(head, of_tasks(found, PARTS), lambda row: (
                     seconds(row["seconds"]), speed_of(row), faster(row), memory(row),
                     share(row), counted(row)))


def short(found: Row) -> str:
    return tasks(("corpus", "task", "side", "time", "a second", "faster", "memory, MiB", "private"),
                 of_tasks(found, SHORT), lambda row: (
                     seconds(row["seconds"]), f"{row.get('per_second', 1 / row['seconds']):,.0f}",
                     faster(row), memory(row),
                     f"{row['private_mib']:,.0f}" if "private_mib" in row else ""))


def losses(found: Row) -> str:
    """Where a peer is faster, smaller or more accurate than textnb: every case."""
    better: dict[str, Callable[[Row, Row], bool]] = {
        "faster": lambda own, peer: peer["seconds"] < own["seconds"],
        "smaller": lambda own, peer: peer.get("peak_mib", 1e9) < own.get("peak_mib", 0),
        "more accurate": lambda own, peer: (peer["check"].get("accuracy", 0)
                                            > own["check"].get("accuracy", 1))}
    lines = []
    for corpus, task in dict.fromkeys((row["corpus"], row["task"]) for row in found["rows"]):
        here = {row["side"]: row for row in of_tasks(found, (task,))
                if row["corpus"] == corpus and "seconds" in row}
        own = here.get(OWN, {"seconds": 0.0, "check": {}})
        lost = [", ".join(side for side, peer in here.items()
                          if not side.startswith(OWN) and is_better(own, peer))
                for is_better in better.values()]
        if any(lost):
            lines.append((corpus, f"`{task}`", *lost))
    return table(("corpus", "task", *better), lines, left=5) if lines else "Nowhere."


# Tables of the other sections.

def scale(found: Row) -> str:
    by = {(row["corpus"], row["task"]): row for row in found["rows"]}
    cells = []
    for one in found["corpora"]:
        train, predict = (by[one["corpus"], task] for task in ("train", "predict"))
        cells.append((one["corpus"], megabytes(one["train_bytes"]), seconds(train["seconds"]),
                      memory(train), megabytes(one["test_bytes"]), seconds(predict["seconds"]),
                      memory(predict)))
    return table(("text", "learned", "`train`", "memory, MiB", "answered", "`predict` to Parquet",
                  "memory, MiB"), cells, left=1)


def instructions(found: Row) -> str:
    return f"Counted by {found['counter']}.\n\n" + tasks(
        ("corpus", "task", "side", "instructions", "a byte of text"), found["rows"],
        lambda row: (f"{row['instructions']:,}", f"{row['per_byte']:.1f}"))


def accuracy(found: Row) -> str:
    return tasks(("corpus", "texts", "side", "accuracy", "macro-F1", "log loss", "CPU",
                  "memory, MiB"),
                 found["rows"], lambda row: (
                     f"{row['accuracy']:.4f}", f"{row['macro_f1']:.4f}",
                     "" if row["log_loss"] is None else f"{row['log_loss']:.4f}",
                     seconds(row["cpu_seconds"]), memory(row)), code=False)


def of_corpora(name: str, form: str = "{:.4f}") -> Callable[[Row], str]:
    """A table of one figure: a row for each side, a column for each corpus, and the mean of the
    sides that are measured on all of them."""
    def make(found: Row) -> str:
        rows = [row for row in found["rows"] if row.get(name) is not None
                and row["side"] != TUNED]
        names = list(dict.fromkeys(row["corpus"] for row in rows))
        values = {(row["side"], row["corpus"]): row[name] for row in rows}
        lines = []
        for side in dict.fromkeys(row["side"] for row in rows):
            own = [values.get((side, corpus)) for corpus in names]
            known = [value for value in own if value is not None]
            mean = [sum(known) / len(known)] if len(known) == len(names) else [None]
            lines.append((side.removeprefix(f"{OWN}, "), *(
                "" if value is None else form.format(value) for value in own + mean)))
        return table(("model, tokens", *names, "mean"), lines, left=1)

    return make


def tuned(found: Row) -> str:
    """The search for settings beside the default, on the test rows."""
    by = {(row["corpus"], row["side"]): row for row in found["rows"]}
    lines = []
    for corpus in dict.fromkeys(row["corpus"] for row in found["rows"]):
        row, default = by.get((corpus, TUNED)), by.get((corpus, DEFAULT))
        if row and default and "failed" not in row:
            answered = int(row["task"].split(" / ")[1].replace(",", ""))
            # A bar would end the cell.
            settings = row["settings"].replace("|", r"\|")
            lines.append((corpus, f"`{settings}`", f"{default['accuracy']:.4f}",
                          f"{row['accuracy']:.4f}",
                          f"{answered * (row['accuracy'] - default['accuracy']):+.0f} of "
                          f"{answered:,}", seconds(row["cpu_seconds"])))
    return table(("corpus", "settings that were found", "accuracy of the defaults", "tuned",
                  "documents", "CPU"), lines, left=2)


def recipe(found: Row) -> str:
    def published(row: Row) -> tuple[str, ...]:
        return tuple(f"{value:.3f}" for value in row["published"] or ()) or ("", "", "")

    return table(("model", "20 Newsgroups", "published", "Reuters, micro", "published",
                  "Reuters, macro", "published"),
                 ((f"`{row['side']}`", *(cell for pair in zip(
                     (f"{row[what]:.3f}" for what in ("accuracy", "micro", "macro")),
                     published(row), strict=True) for cell in pair))
                  for row in found["rows"]), left=1)


def tables(found: Row) -> str:
    def pair(row: Row, what: str) -> tuple[str, str, str]:
        theirs, ours = row.get(f"sklearn_{what}"), row[f"textnb_{what}"]
        return (seconds(theirs), seconds(ours),
                f"{theirs / ours:.2f}x" if theirs else "")

    return table(("model", "scikit-learn fit", "textnb fit", "faster", "scikit-learn predict",
                  "textnb predict", "faster", "accuracy"),
                 ((row["model"], *pair(row, "fit"), *pair(row, "predict"), f"{row['accuracy']:.4f}")
                  for row in found["rows"]), left=1)


def spark(found: Row) -> str:
    return tasks(("corpus", "task", "side", "time", "faster", "accuracy"), found["rows"],
                 lambda row: (seconds(row["seconds"]), faster(row), accuracy_of(row)))


def filters(found: Row) -> str:
    def bounds(row: Row, name: str, digits: int) -> str:
        return " to ".join(f"{bound:.{digits}f}" for bound in row[name])

    return table(
        ("corpus", "split", "filter", "1-ROCA %", "95 %", "spam missed at .1 % of ham", "95 %",
         "at its cutoff: ham", "spam missed", "CPU"),
        ((row["corpus"], row["split"], row["filter"], f"{row['1-ROCA %']:.4f}",
          bounds(row, "interval", 4), f"{row['sm % at .1']:.2f} %", bounds(row, "sm interval", 2),
          f"{row['hm %']:.3f} %", f"{row['sm %']:.2f} %", seconds(row["cpu_seconds"]))
         for row in found["rows"]), left=3)


def served(found: Row) -> str:
    return table(
        ("server", "model", "request", "clients", "requests", "a second", "median", "p99",
         "longest", "memory of the largest process"),
        ((row["server"], row["model"], f"`{row['request']}`", str(row["clients"]),
          f"{row['messages']:,}", f"{row['per_second']:,.0f}",
          *(seconds(row[name]) for name in ("median", "p99", "longest")),
          "{:.0f} to {:.0f} MiB".format(*row["worker_mib"])) for row in found["rows"]), left=3)


def exports(found: Row) -> str:
    """The number of rows with another answer: a row for each target, a column for each model."""
    models = list(dict.fromkeys(row["model"] for row in found["rows"]))
    by = {(row["target"], row["model"]): row for row in found["rows"]}

    def cell(row: Row | None) -> str:
        if row is None:
            return ""
        if row["rows"] is None:
            return "FAILED" if row["differs"] else "no"
        wrong = max(row["wrong_scores"], row["wrong_labels"])
        tokens = " (tokens)" if row["reads"] == "terms" else ""
        return f"{'DIFFERS ' if wrong else ''}{wrong:,} of {row['rows']:,}{tokens}"

    return table(("target", *models),
                 ((f"`{target}`", *(cell(by.get((target, model))) for model in models))
                  for target in dict.fromkeys(row["target"] for row in found["rows"])), left=1)


def export_speed(found: Row) -> str:
    """Sizes and speed of the model with the most terms."""
    ran = [row for row in found["rows"] if row["rows"] is not None]
    if not ran:
        return "*Not measured.*"
    largest = max(ran, key=lambda row: row["terms"])
    rows = [row for row in ran if row["model"] == largest["model"]]
    size = megabytes(largest["model_bytes"])
    return (f"{largest['model']}, {largest['corpus']}: {largest['terms']:,} terms, "
            f"{largest['outputs']} outputs, a model file of {size}.\n\n"
            + table(("target", "reads", "file", "of the model's", "load", "rows a second",
                     "largest difference"),
                    ((f"`{row['target']}`", row["reads"], megabytes(row["bytes"]),
                      f"{row['bytes'] / row['model_bytes']:.1f}x", seconds(row["load_seconds"]),
                      "" if row["rows_per_second"] is None else f"{row['rows_per_second']:,.0f}",
                      f"{row['largest_difference']:.1e}") for row in rows), left=2))


BLOCKS: dict[str, tuple[str, Callable[[Row], str]]] = {
    **{f"machine_of_{section}": (section, lambda found: about(found["about"]))
       for section in TITLES},
    "corpora": ("speed", corpora), "starts": ("speed", starts), "whole": ("speed", whole),
    "beyond": ("speed", beyond), "parts": ("speed", parts), "short": ("speed", short),
    "losses": ("speed", losses), "scale": ("scale", scale),
    "instructions": ("instructions", instructions), "accuracy": ("accuracy", accuracy),
    **{f"{figure}_of_corpora": ("accuracy", of_corpora(figure, form)) for figure, form in (
        ("accuracy", "{:.4f}"), ("macro_f1", "{:.4f}"), ("log_loss", "{:.3f}"),
        ("cpu_seconds", "{:.1f}"))},
    "tuned": ("accuracy", tuned), "recipe": ("recipe", recipe),
    "spark": ("spark", spark), "tables": ("tables", tables), "filters": ("filters", filters),
    "served": ("served", served), "exports": ("exports", exports),
    "export_speed": ("exports", export_speed)}


# How a cell is written.

def of_tasks(found: Row, names: Sequence[str]) -> list[Row]:
    return [row for row in found["rows"] if row["task"] in names]


def tasks(
    head: Sequence[str], rows: Rows, cells: Callable[[Row], tuple[str, ...]], code: bool = True
) -> str:
    """A table that names a corpus and a task once; what failed says so."""
    lines, before = [], None
    for row in rows:
        place = (row["corpus"], f"`{row['task']}`" if code else row["task"])
        values = ("FAILED: " + row["failed"],) if "failed" in row else cells(row)
        if row.get("differs"):
            values = (*values[:-1], f"DIFFERS {values[-1]}")
        lines.append((*(("", "") if place == before else place), row["side"], *values))
        before = place
    return table(head, lines, left=3)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """Markdown; columns after the first ones are numbers, at the right."""
    rule = ["---" if column < left else "---:" for column in range(len(head))]
    filled = [[*row, *[""] * (len(head) - len(row))] for row in rows]
    if not filled:
        return "*Not measured.*"
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *filled])


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) < 1e-3:
        return f"{1e6 * value:.0f} µs"
    return f"{1e3 * value:.1f} ms" if abs(value) < 0.1 else f"{value:.2f} s"


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB" if size < 1e7 else f"{size / 1e6:,.0f} MB"


def memory(row: Row) -> str:
    return f"{row['peak_mib']:,.0f}" if "peak_mib" in row else ""


def share(row: Row) -> str:
    """Of the memory that the base takes."""
    return f"{row['memory_share']:.0%}".replace("%", " %") if "memory_share" in row else ""


def faster(row: Row) -> str:
    ratio = row.get("times_faster")
    if ratio is None:
        return ""
    return f"{ratio:.2f}x" if ratio < 1 else f"{ratio:.1f}x" if ratio < 10 else f"{ratio:,.0f}x"


def accuracy_of(row: Row) -> str:
    return f"{row['check']['accuracy']:.4f}" if "accuracy" in row["check"] else ""


# Pictures.

def whole_picture(found: Row) -> str:
    corpus = _corpus_of_pictures(found)
    learned, answered = (f"{corpus[name]:,} texts" for name in ("train_rows", "test_rows"))
    return picture(found, f"Seconds from start to exit on {corpus['corpus']}, less is better",
                   "With accuracy in parentheses.", corpus["corpus"], (
                       ("train", f"Learn {learned} and save the model"),
                       ("predict", f"Load the model, answer {answered}, write Parquet"),
                       ("job", "Both in one job")))


def parts_picture(found: Row) -> str:
    corpus = _corpus_of_pictures(found)["corpus"]
    return picture(found, f"Seconds from memory on {corpus}, less is better", "", corpus, (
        ("fit", "Texts and labels to a fitted model"),
        ("predict from memory", "Texts to labels"),
        ("csr", "Texts to a sparse matrix of words"),
        ("csr 1,2", "Texts to a sparse matrix of words and pairs")))


PICTURES = {"speed.svg": whole_picture, "parts.svg": parts_picture}


def _corpus_of_pictures(found: Row) -> Row:
    return next((one for one in found["corpora"] if one["corpus"] == "imdb"), found["corpora"][-1])


def picture(
    found: Row, title: str, note: str, corpus: str, panels: Sequence[tuple[str, str]]
) -> str:
    """A bar for each side; longer is slower."""
    y, shapes = TOP, []
    for task, name in panels:
        rows = [row for row in of_tasks(found, (task,))
                if row["corpus"] == corpus and "seconds" in row]
        if not rows:
            continue
        longest = max(row["seconds"] for row in rows)
        shapes.append(f'<text x="10" y="{y}" font-weight="bold">{escape(name)}</text>')
        for row in rows:
            y += LINE
            width = round(BAR * row["seconds"] / longest, 1)
            colour = ("#a8a8a8" if not row["side"].startswith(OWN)
                      else "#1f4e9c" if row["side"] == OWN else "#7aa6dc")
            more = f"({accuracy_of(row)})" if accuracy_of(row) else ""
            shapes.append(
                f'<text x="{NAME}" y="{y}" text-anchor="end">{escape(row["side"])}</text>'
                f'<rect x="{NAME + 8}" y="{y - 11}" width="{width}" height="13" fill="{colour}"/>'
                f'<text x="{NAME + 14 + width}" y="{y}">{seconds(row["seconds"])}'
                f'<tspan fill="#666" dx="5">{more}</tspan></text>')
        y += 2 * LINE
    about = found["about"]
    runs = max((row["runs"] for row in found["rows"] if "runs" in row), default=1)
    said = (f"{about['cores']} cores of {about['cpu']}, {about['date']}; "
            + (f"medians of {runs} runs" if runs > 1 else "one run") + f", in turn. {note}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {y - LINE}" role="img" '
            'font-family="sans-serif" font-size="12">\n'
            f"<title>{escape(title)}</title>\n"
            f'<rect width="640" height="{y - LINE}" fill="#ffffff"/>\n'
            f'<text x="10" y="22" font-size="15" font-weight="bold">{escape(title)}</text>\n'
            f'<text x="10" y="39" fill="#666">{escape(said.strip())}</text>\n'
            + "\n".join(shapes) + "\n</svg>\n")

