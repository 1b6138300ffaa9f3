"""Tables and pictures of the figures in docs/benchmarks/measured.json.

A page says where a table stands, and the rest of the page is written by hand:

    <!-- figures: whole -->
    (replaced)
    <!-- end of figures -->

`scripts/bench pages` writes all of them again. A test holds that they are those of the JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.process import Row
from benchmarks.sides import DEFAULT, PARTS, SHORT, SVMS, TUNED, WHOLE

DOCS = Path(__file__).parents[2] / "docs"
RECORD = DOCS / "benchmarks" / "measured.json"
BLOCK = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
OWN = "textnb"
Show = Callable[[Row], str]


def write(figures: Mapping[str, Any]) -> None:
    """The record, and all that is made of it."""
    RECORD.write_text(as_text(figures), "utf-8")
    for path, text in {**written(figures), **pictures(figures)}.items():
        path.write_text(text, "utf-8")


def written(figures: Mapping[str, Any]) -> dict[Path, str]:
    """What each page should be."""
    found = {}
    for path in sorted(DOCS.rglob("*.md")):
        page = path.read_text("utf-8")
        if BLOCK.search(page):
            found[path] = BLOCK.sub(lambda m: f"{m[1]}{block(m[2], figures)}\n{m[3]}", page)
    return found


def as_text(figures: Mapping[str, Any]) -> str:
    """JSON with a line for each row, so that a change of one figure is a change of one line."""
    sections = []
    for section, found in figures.items():
        rows = ",\n   ".join(json.dumps(row, ensure_ascii=False) for row in found["rows"])
        sections.append(f' "{section}": {{\n  "about": {json.dumps(found["about"])},\n'
                        f'  "rows": [\n   {rows}\n  ]\n }}')
    return "{\n" + ",\n".join(sections) + "\n}\n"


def block(name: str, figures: Mapping[str, Any]) -> str:
    """A table by its name."""
    machine = name.removeprefix("machine_of_")
    section = machine if machine != name else BLOCKS[name][0]
    if section not in figures:
        return f"*Not yet measured: `scripts/bench {section} --record`.*"
    return about(figures[section]["about"]) if machine != name else (
        BLOCKS[name][1](figures[section]["rows"]))


def section_text(section: str, figures: Row) -> str:
    return "\n\n".join([about(figures["about"]), *(
        make(figures["rows"]) for name, (of, make) in BLOCKS.items()
        if of == section and not name.endswith("_of_corpora"))])


def about(machine: Row) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    said = [f"{machine['date']}: {machine['cores']} cores of {machine['cpu']}, "
            f"{machine['memory_gib']} GiB; Python {machine['python']}, {machine['textnb']}; "
            f"{versions}."]
    if machine.get("load", 0) > 0.5 * machine["cores"]:
        said.append(f"Other work ran beside it (load {machine['load']} at the start): times are "
                    "too high, ratios of sides that ran in turn are sounder.")
    if machine.get("absent"):
        said.append(f"Not installed, so absent: {', '.join(machine['absent'])}.")
    return " ".join(said)


# How a cell is written.

def digits(value: float) -> str:
    """Three digits, or all before the point; a whole number as it is.

    >>> digits(1234.5), digits(0.02456), digits(8)
    ('1,234', '0.0246', '8')
    """
    places = 0 if isinstance(value, int) or not value else 2 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, places)}f}"


def shown(how: str | Show, row: Row) -> str:
    """A cell: a template of the row, or the name of a figure, with a unit and a format.

    >>> row = {"task": "fit", "seconds": 0.0123, "check": {"accuracy": 0.91}}
    >>> [shown(how, row) for how in ("`{task}`", "seconds/1e-3", "accuracy:.4f", "bytes")]
    ['`fit`', '12.3', '0.9100', '']
    """
    if callable(how):
        return how(row)
    if "{" in how:
        return how.format_map(row)
    place, _, form = how.partition(":")
    name, _, unit = place.partition("/")
    value = row.get(name, row.get("check", {}).get(name))
    if value is None:
        return ""
    value = value / float(unit) if unit else value
    return format(value, form) if form else digits(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """Markdown; columns after the first ones are numbers, at the right."""
    rule = ["---" if column < left else "---:" for column in range(len(head))]
    filled = [[*row, *[""] * (len(head) - len(row))] for row in rows]
    if not filled:
        return "*Not measured.*"
    return "\n".join(f"| {' | '.join(map(str.rstrip, row))} |" for row in [head, rule, *filled])


@dataclass(frozen=True)
class Table:
    """A table with a line for each row.

    Attributes
    ----------
    left : dict
        Heads of columns, and how they name a row; what is as in the line above stands once.
    right : dict
        Those of figures. What failed says so instead.
    tasks : tuple of str
        Those of the rows; all if there are none.
    each : str
        A table for each value of this.
    """

    left: Mapping[str, str | Show]
    right: Mapping[str, str | Show]
    tasks: Sequence[str] = ()
    each: str = ""

    def __call__(self, rows: Sequence[Row]) -> str:
        rows = of_tasks(rows, self.tasks) if self.tasks else rows
        if not self.each:
            return self.lines(rows)
        return "\n\n".join(
            f"**{value}**\n\n" + self.lines([row for row in rows if row[self.each] == value])
            for value in dict.fromkeys(row[self.each] for row in rows)) or "*Not measured.*"

    def lines(self, rows: Sequence[Row]) -> str:
        lines, before = [], [""] * len(self.left)
        for row in rows:
            names = [shown(how, row) for how in self.left.values()]
            values = ([f"FAILED: {row['failed']}"] if "failed" in row
                      else [shown(how, row) for how in self.right.values()])
            if row.get("differs"):
                values[-1] = f"DIFFERS {values[-1]}"
            lines.append([*("" if names[:n + 1] == before[:n + 1] and n < len(names) - 1 else name
                            for n, name in enumerate(names)), *values])
            before = names
        return table([*self.left, *self.right], lines, len(self.left))


@dataclass(frozen=True)
class Pivot:
    """A table of one figure: a line for each `row`, a column for each `column`."""

    row: str
    column: str
    how: str | Show
    name: str | Show
    where: Callable[[Row], bool] = lambda row: True
    mean: str = ""

    def __call__(self, rows: Sequence[Row]) -> str:
        rows = [row for row in rows if self.where(row)]
        columns = list(dict.fromkeys(row[self.column] for row in rows))
        lines = []
        for value in dict.fromkeys(row[self.row] for row in rows):
            here = {row[self.column]: row for row in rows if row[self.row] == value}
            line = [shown(self.name, next(iter(here.values()))), *(
                shown(self.how, here[one]) if one in here else "" for one in columns)]
            if self.mean and len(here) == len(columns):
                line.append(shown(self.how, {self.mean: sum(
                    row[self.mean] for row in here.values()) / len(here)}))
            lines.append(line)
        return table([self.row.replace("side", "model, tokens"), *columns,
                      *(["mean"] if self.mean else [])], lines, left=1)


def of_tasks(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    return [row for row in rows if row["task"] in names]


# What is computed from figures.

def verdict(rows: Sequence[Row]) -> str:
    """What a reader wants to know first: how many times as fast whole processes are."""
    own = [row for row in of_tasks(rows, WHOLE) if row["side"] == OWN and "times_faster" in row]
    if not own:
        return "*Not measured.*"
    worst, best = (at(own, key=lambda row: row["times_faster"]) for at in (min, max))
    return (f"From start to exit, textnb is **{digits(worst['times_faster'])} to "
            f"{digits(best['times_faster'])} times as fast** as scikit-learn's `CountVectorizer` "
            f"and `MultinomialNB`, with the same answers: least at `{worst['task']}` on "
            f"{worst['corpus']}, most at `{best['task']}` on {best['corpus']}.")


def losses(rows: Sequence[Row]) -> str:
    """Where each peer is faster, smaller or more accurate than textnb, and by how much."""
    better: dict[str, tuple[int, Callable[[Row, Row], float]]] = {
        "times faster": (1, lambda own, peer: own["seconds"] / peer["seconds"]),
        # A process may end before its memory is looked at.
        "times smaller": (1, lambda own, peer: (
            own.get("peak_mib", 0) / (peer.get("peak_mib") or math.inf))),
        "more accurate, points": (0, lambda own, peer: 100 * (
            peer["check"].get("accuracy", 0) - own["check"].get("accuracy", 1)))}
    rows = [row for row in rows if "seconds" in row]
    own = {(row["corpus"], row["task"]): row for row in rows if row["side"] == OWN}
    cases: dict[str, list[list[str]]] = {}
    for row in rows:
        place = row["corpus"], row["task"]
        if place in own and not row["side"].startswith(OWN):
            of_side = cases.setdefault(row["side"], [[] for _ in better])
            for cell, (limit, gain) in zip(of_side, better.values(), strict=True):
                if (by := gain(own[place], row)) > limit:
                    cell.append(f"{place[0]} {place[1] and f'`{place[1]}` '}{digits(by)}")
    lines = [(side, *map("; ".join, cells)) for side, cells in cases.items() if any(cells)]
    return table(("peer", *better), lines, left=4) if lines else "Nowhere."


def losses_of_answers(rows: Sequence[Row]) -> str:
    """Those of the most accurate model, at its default settings."""
    return losses([{**row, "task": "", "check": row, "seconds": row["cpu_seconds"],
                    "side": OWN if row["side"] == DEFAULT else row["side"]}
                   for row in rows if "accuracy" in row])


def exponents(rows: Sequence[Row]) -> str:
    """The powers with which costs grow: the slope between the logarithms of the last figures."""
    found = []
    for place in dict.fromkeys((row["grows"], row["side"]) for row in rows):
        last = [row for row in rows if (row["grows"], row["side"]) == place
                and "failed" not in row][-2:]
        if len(last) == 2:
            powers = {cost: math.log(last[1][cost] / last[0][cost], last[1]["number"] / last[0][
                "number"]) for cost in COSTS}
            found.append({**last[1], "from": last[0]["number"], **powers})
    return Table({"what grows": "{grows}", "task": SIDE}, {
        "between": "{from:,} and {number:,}", **{
            f"power of {name}": f"{cost}:.2f" for cost, name in COSTS.items()}})(found)


def of_corpora(name: str, form: str) -> Pivot:
    return Pivot("side", "corpus", f"{name}:{form}", lambda row: row["side"].removeprefix(
        f"{OWN}, "), lambda row: row.get(name) is not None and row["side"] != TUNED, mean=name)


def tuned(rows: Sequence[Row]) -> str:
    """The search for settings beside the default, on the test rows."""
    defaults = {row["corpus"]: row for row in rows if row["side"] == DEFAULT}
    found = [{**row, "default": defaults[row["corpus"]]["accuracy"]} for row in rows
             if row["side"] == TUNED and "accuracy" in defaults.get(row["corpus"], {})]
    return Table({
        "corpus": CORPUS,
        # A bar would end the cell.
        "settings that were found": lambda row: f"`{row['settings']}`".replace("|", r"\|")}, {
        "accuracy of the defaults": "default:.4f", "tuned": ACCURACY,
        "documents": lambda row: "{:+.0f} of {:,}".format(
            row["test_rows"] * (row["accuracy"] - row["default"]), row["test_rows"]),
        "CPU, s": "cpu_seconds"})([row for row in found if "failed" not in row])


def beside_svm(rows: Sequence[Row]) -> str:
    """The default of NBLinear beside the most accurate linear SVM of scikit-learn."""
    best = {}
    for row in sorted((row for row in rows if row["side"] in SVMS and "accuracy" in row),
                      key=lambda row: row["accuracy"]):
        best[row["corpus"]] = row
    found = [{**row, "svm": best[row["corpus"]]} for row in rows
             if row["side"] == DEFAULT and "accuracy" in row and row["corpus"] in best]
    if not found:
        return "*Not measured.*"
    mean: Row = {"corpus": "mean", "svm": {}}
    for name in ("accuracy", "macro_f1"):
        mean[name] = sum(row[name] for row in found) / len(found)
        mean["svm"][name] = sum(row["svm"][name] for row in found) / len(found)
    return Table({"corpus": CORPUS}, {
        "accuracy": "accuracy:.4f", "LinearSVC": "{svm[accuracy]:.4f}",
        "macro-F1": "macro_f1:.4f", "LinearSVC ": "{svm[macro_f1]:.4f}",
        "rows gained": "gained", "lost": "lost",
        "McNemar's p": lambda row: shown("p:.2g", row) if row.get("p", 1) > 0.001 else "< 0.001",
        "calibration error": "calibration_error:.3f"})([*found, mean])


def answer(row: Row) -> str:
    """How many rows an engine answers otherwise."""
    if row["rows"] is None:
        return "FAILED" if row["differs"] else "no"
    wrong = max(row["wrong_scores"], row["wrong_labels"])
    tokens = " (tokens)" if row["reads"] == "terms" else ""
    return f"{'DIFFERS ' if wrong else ''}{wrong:,} of {row['rows']:,}{tokens}"


def export_speed(rows: Sequence[Row]) -> str:
    """Sizes and speed of the model with the most terms."""
    ran = [row for row in rows if row["rows"] is not None]
    if not ran:
        return "*Not measured.*"
    largest = max(ran, key=lambda row: row["terms"])
    return (f"{largest['model']}, {largest['corpus']}: {largest['terms']:,} terms, "
            f"{largest['outputs']} outputs, a model file of "
            f"{digits(largest['model_bytes'] / 1e6)} MB.\n\n" + Table(
                {"target": "`{target}`", "reads": "{reads}"}, {
                    "file, MB": "bytes/1e6",
                    "of the model's": lambda row: digits(row["bytes"] / row["model_bytes"]),
                    "load, s": "load_seconds", "rows a second": "rows_per_second",
                    "largest difference": "largest_difference:.1e"})(
                        [row for row in ran if row["model"] == largest["model"]]))


# The tables.

COSTS = {"cpu_seconds": "CPU, s", "peak_mib": "memory, MiB"}
CORPUS, TASK, SIDE = "{corpus}", "`{task}`", "{side}"
SECONDS, ACCURACY = "seconds", "accuracy:.4f"
FASTER = {"times faster": "times_faster"}
MEMORY = {"memory, MiB": "peak_mib", "share, %": "memory_share/0.01"}
SIZES = {"rows learned": "train_rows", "MB": "train_bytes/1e6",
         "rows answered": "test_rows", "MB ": "test_bytes/1e6"}
FIT = {"time, s": SECONDS, **FASTER, "accuracy": ACCURACY}
BLOCKS: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "verdict": ("speed", verdict),
    "ratios": ("speed", Pivot("task", "corpus", "times_faster", TASK, lambda row: (
        row.get("side") == OWN and "times_faster" in row))),
    "corpora": ("speed", Table(
        {"corpus": CORPUS}, {**SIZES, "classes": "classes"}, ("corpus",))),
    "starts": ("speed", Table({"process": "`{side}`"}, {
        "time, s": SECONDS, "memory, MiB": "peak_mib"}, ("start",))),
    "whole": ("speed", Table({"task": TASK, "side": SIDE}, {
        "time, s": SECONDS, "CPU, s": "cpu_seconds", **FASTER, **MEMORY,
        "accuracy": ACCURACY, "its command alone, s": "command_seconds"}, WHOLE, "corpus")),
    "parts": ("speed", Table({"task": TASK, "side": SIDE}, {
        "time, s": SECONDS, "MB/s": lambda row: digits(row["bytes"] / 1e6 / row["seconds"]),
        **FASTER, **MEMORY, "entries": "entries", "terms": "terms", "accuracy": ACCURACY},
        PARTS, "corpus")),
    "short": ("speed", Table({"task": TASK, "side": SIDE}, {
        "time, ms": "seconds/1e-3",
        "a second": lambda row: f"{row.get('per_second', 1 / row['seconds']):,.0f}", **FASTER,
        "memory, MiB": "peak_mib", "private, MiB": "private_mib"}, SHORT, "corpus")),
    "losses": ("speed", losses), "losses_of_answers": ("accuracy", losses_of_answers),
    "exponents": ("scale", exponents),
    "scale": ("scale", Table({"number": "{number:,}", "task": SIDE}, {
        "time, s": SECONDS, "CPU, s": "cpu_seconds", "memory, MiB": "peak_mib"}, each="grows")),
    "accuracy": ("accuracy", Table({"texts": "{train_rows:,} / {test_rows:,}", "side": SIDE}, {
        "accuracy": ACCURACY, "macro-F1": "macro_f1:.4f", "log loss": "log_loss:.4f",
        "CPU, s": "cpu_seconds", "memory, MiB": "peak_mib"}, each="corpus")),
    "accuracy_of_corpora": ("accuracy", of_corpora("accuracy", ".4f")),
    "macro_f1_of_corpora": ("accuracy", of_corpora("macro_f1", ".4f")),
    "log_loss_of_corpora": ("accuracy", of_corpora("log_loss", ".3f")),
    "cpu_seconds_of_corpora": ("accuracy", of_corpora("cpu_seconds", ".1f")),
    "tuned": ("accuracy", tuned),
    "beside_svm": ("accuracy", beside_svm),
    "recipe": ("recipe", Table({"model": "`{side}`"}, {
        "20 Newsgroups": "accuracy:.3f", "published": "published_accuracy:.3f",
        "Reuters, micro": "micro:.3f", "published ": "published_micro:.3f",
        "Reuters, macro": "macro:.3f", "published  ": "published_macro:.3f"})),
    "spark": ("spark", Table({"corpus": CORPUS, "task": TASK, "side": SIDE}, FIT)),
    "tables": ("tables", Table({"model": CORPUS, "task": TASK, "side": SIDE}, FIT)),
    "filters": ("filters", Table({
        "split": "{split}", "filter": "{filter}"}, {
        "1-ROCA %": "1-ROCA %:.4f", "95 %": "{interval[0]:.4f} to {interval[1]:.4f}",
        "spam missed at .1 % of ham, %": "sm % at .1:.2f",
        "95 % ": "{sm interval[0]:.2f} to {sm interval[1]:.2f}",
        "at its cutoff: ham, %": "hm %:.3f", "spam missed, %": "sm %:.2f",
        "CPU, s": "cpu_seconds"}, each="corpus")),
    "served": ("served", Table({
        "server": "{server}", "model": "{model}", "request": "`{request}`"}, {
        "clients": "clients", "requests": "messages", "a second": "per_second",
        "median, ms": "median/1e-3", "p99, ms": "p99/1e-3", "longest, ms": "longest/1e-3",
        "memory of the largest process, MiB": "{worker_mib[0]:.0f} to {worker_mib[1]:.0f}"})),
    "exports": ("exports", Pivot("target", "model", answer, "`{target}`")),
    "export_speed": ("exports", export_speed)}


# Pictures: readable on light and on dark pages.

INK = "#7a7e84"
# Of peers, of other models of textnb, and of textnb.
BARS = ("#9a9a9a", "#7fa9d6", "#2f7ed8")
PICTURES = {
    "speed.svg": ("Seconds from start to exit", {
        "train": "Learn {train_rows:,} texts and save the model",
        "predict": "Load the model, answer {test_rows:,} texts, write Parquet",
        "job": "Both in one job"}),
    "parts.svg": ("Seconds from memory", {
        "fit": "Texts and labels to a fitted model", "predict from memory": "Texts to labels",
        "csr": "Texts to a sparse matrix of words",
        "csr 1,2": "Texts to a sparse matrix of words and pairs"})}


def pictures(figures: Mapping[str, Any]) -> dict[Path, str]:
    found = {name: picture(figures["speed"], *parts) for name, parts in PICTURES.items()
             if "speed" in figures}
    if "scale" in figures:
        found["growth.svg"] = growth(figures["scale"])
    return {RECORD.with_name(name): svg for name, svg in found.items()}


def drawing() -> tuple[Any, Any]:
    """The libraries that draw."""
    try:
        return import_module("altair"), import_module("vl_convert")
    except ImportError as error:
        raise SystemExit(f"scripts/bench: the pictures need {error.name}: "
                         "pip install 'textnb[report]'") from error


def picture(found: Row, title: str, tasks: Mapping[str, str]) -> str:
    """A bar for each side; longer is slower."""
    alt, _ = drawing()
    corpora = {row["corpus"]: row for row in of_tasks(found["rows"], ["corpus"])}
    corpus = corpora.get("imdb") or [*corpora.values()][-1]
    panels = []
    for task, name in tasks.items():
        rows = [row for row in of_tasks(found["rows"], [task])
                if row["corpus"] == corpus["corpus"] and "seconds" in row]
        values = [{"side": row["side"], "seconds": row["seconds"],
                   "said": f"{digits(row['seconds'])} s ({shown(ACCURACY, row)})".replace("()", ""),
                   "color": BARS[row["side"].startswith(OWN) + (row["side"] == OWN)]}
                  for row in rows]
        bars = alt.Chart(alt.Data(values=values)).encode(
            y=alt.Y("side:N", sort=None, title=None), x=alt.X("seconds:Q", axis=None))
        panels.append(alt.layer(
            bars.mark_bar().encode(color=alt.Color("color:N", scale=None)),
            bars.mark_text(align="left", dx=4).encode(text="said:N"),
            title=alt.Title(name.format_map(corpus), fontSize=12, anchor="start", frame="group"),
            width=300, height=alt.Step(20)))
    runs = max(row.get("runs", 1) for row in found["rows"])
    return svg_of(alt.vconcat(*panels, spacing=16), found["about"],
                  f"{title} on {corpus['corpus']}, less is better",
                  f"medians of {runs} runs, in turn. Accuracy in parentheses.")


def growth(found: Row) -> str:
    """Costs against what grows; a straight line is a power of it."""
    alt, _ = drawing()
    values = [{"x": row["number"], "y": row[cost], "cost": name, "grows": row["grows"],
               "task": row["side"]} for cost, name in COSTS.items()
              for row in found["rows"] if "failed" not in row]
    chart = alt.Chart(alt.Data(values=values), width=190, height=150).mark_line(point=True).encode(
        *(axis(f"{name}:Q", title=None, scale=alt.Scale(
            type="log", nice=False, padding=6), axis=alt.Axis(format="~s", tickCount=4))
          for axis, name in ((alt.X, "x"), (alt.Y, "y"))),
        color=alt.Color("task:N", title=None, sort=None, legend=alt.Legend(orient="bottom"),
                        scale=alt.Scale(range=[*BARS[::-2], "#d9822b"]))).facet(
        **{place: alt.Facet(f"{name}:N", sort=None, title=None, header=alt.Header(
            labelColor=INK)) for place, name in (("row", "cost"), ("column", "grows"))}
    ).resolve_scale(x="independent", y="independent")
    return svg_of(chart, found["about"], "CPU seconds and memory of textnb",
                  "one of three grows, the others stay. Both axes are logarithmic.")


def svg_of(chart: Any, machine: Row, title: str, more: str) -> str:
    """A chart in the colours of all, below its title and the machine."""
    alt, vl_convert = drawing()
    # Room for texts, which a reader's fonts may make wider.
    room = {"left": 40, "right": 90, "top": 5, "bottom": 5}
    styled = chart.properties(title=alt.Title(title, anchor="start", offset=12, subtitle=(
        f"{machine['cores']} cores of {machine['cpu']}, {machine['date']}; {more}"))).configure(
        background="transparent", font="sans-serif", padding=room).configure_view(
        stroke=None).configure_title(color=INK, subtitleColor=INK).configure_text(
            color=INK).configure_legend(labelColor=INK).configure_axis(
                labelColor=INK, titleColor=INK, gridOpacity=.3, labelLimit=0, domain=False,
                ticks=False)
    svg: str = vl_convert.vegalite_to_svg(styled.to_dict())
    return svg
