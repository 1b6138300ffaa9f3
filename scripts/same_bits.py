"""The worker of ``scripts/same-bits``: what a checkout answers, bit by bit.

    python scripts/same_bits.py CHECKOUT FOLDER [--without-members] [--quick] [NAME ...]

The package is that of PYTHONPATH; the cells are those beside this file. Writes FOLDER/items.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tomllib
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Items = Iterator[tuple[str, Any]]
# Real corpora, with the condition of the rows that are learned, and the text and label columns.
CORPORA = {"sms_spam": ("text", "label"), "bbc_news": ("text", "label"),
           "zh_hotel": ("text", "label"), "20newsgroups": ("text", "label"),
           "reuters_modapte90": ("text", "labels")}
ROWS, ANSWERED = 6000, 400


def bits(value: Any) -> tuple[Any, bytes]:
    """A nest of answers as what is exact in it, and the bits of its floats."""
    from golden.record import flatten

    exact, numbers = flatten(value)
    return exact, np.array(numbers, dtype=np.float64).tobytes()


def first_difference(before: Any, now: Any) -> str:
    """Where two answers differ first, in words; empty if they are the same."""
    if isinstance(before, bytes) or isinstance(now, bytes):
        if before == now:
            return ""
        at = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b),
                  min(len(before), len(now)))
        return f"byte {at:,} of {len(before):,} and {len(now):,}"
    if before[0] != now[0]:
        return _exact_difference(before[0], now[0], "")
    old, new = np.frombuffer(before[1]), np.frombuffer(now[1])
    if len(old) != len(new):
        return f"{len(old):,} numbers, and {len(new):,}"
    other = np.flatnonzero(old.view(np.int64) != new.view(np.int64))
    if not len(other):
        return ""
    at = other[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        worst = np.nanmax(np.abs(new[other] - old[other]) / np.abs(old[other]))
    return (f"{len(other):,} of {len(old):,} numbers, by at most {worst:.2g} of themselves; number "
            f"{at:,} was {old[at]!r}, is {new[at]!r}")


def _exact_difference(before: Any, now: Any, where: str) -> str:
    """Follow a nest down to the first part that differs."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (a, b) in enumerate(zip(before, now, strict=True)):
            if a != b:
                return _exact_difference(a, b, f"{where}[{i}]")
    if isinstance(before, dict) and isinstance(now, dict) and before.keys() == now.keys():
        for key in before:
            if before[key] != now[key]:
                return _exact_difference(before[key], now[key], f"{where}[{key!r}]")
    return f"{where or 'it'} was {str(before)[:150]}, is {str(now)[:150]}"


def cell_items(folder: Path, wanted: Callable[[str], bool], *, members: bool, quick: bool) -> Items:
    """Answers of the cells of tests/golden, and of their model files."""
    from golden.cells import all_cells

    for cell in all_cells():
        if not wanted(cell.name) or (quick and cell.slow):
            continue
        for name, value in cell.compute().items():
            yield f"{cell.name}: {name}", bits(value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from _file_items(cell, folder / f"{cell.name}.textnb", members=members)


def _file_items(cell: Any, path: Path, *, members: bool) -> Items:
    import textnb

    try:
        model = cell.fit()
        model.save(path)
    # Not every cell has a model that can be saved.
    except (textnb.TextnbError, AttributeError):
        return
    if members:
        yield from file_members(cell.name, path)
    for name, value in cell.compute(textnb.load(path)).items():
        yield f"{cell.name}, loaded: {name}", bits(value)


def file_members(name: str, path: Path) -> Items:
    """The bytes of the members of a model file."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            yield f"{name}, file: {member}", archive.read(member)


def corpus_items(folder: Path, wanted: Callable[[str], bool], *, members: bool) -> Items:
    """Models of real corpora."""
    from golden.texts import COUNTING, MODELS

    corpora = os.environ.get("TEXTNB_CORPORA")
    for corpus, columns in CORPORA.items():
        path = Path(corpora or "") / f"{corpus}.parquet"
        if corpora and path.is_file():
            for model in (*COUNTING, "nblinear"):
                name = f"corpus-{corpus}-{model}"
                if wanted(name):
                    yield from _corpus_items(folder, name, path, columns, MODELS[model](),
                                             members=members)


def _corpus_items(
    folder: Path, name: str, path: Path, columns: tuple[str, str], estimator: Any, *, members: bool
) -> Items:
    import polars as pl

    import textnb

    text, label = columns
    rows = pl.read_parquet(path).head(ROWS + ANSWERED).select(text, label)
    learned, asked = rows[:-ANSWERED], rows[-ANSWERED:]
    model = textnb.TextClassifier(estimator, text=text, label=label, min_df=2).fit(learned)
    form = model.linear_form()
    answers = {
        "classes": model.classes_, "terms": model.vocabulary_,
        "weights": np.asarray(form.weights), "intercept": form.intercept,
        "scores": model.predict_joint_log_proba(asked),
        "predictions": model.predict(asked, probability=True, explain=5).drop(text, label),
        "top": model.top(20)}
    with contextlib.suppress(textnb.TextnbError):
        answers["leave one out"] = textnb.leave_one_out(model, learned).scores
    for part, value in answers.items():
        yield f"{name}: {part}", bits(value)
    model.save(folder / f"{name}.textnb")
    if members:
        yield from file_members(name, folder / f"{name}.textnb")
    loaded = textnb.load(folder / f"{name}.textnb")
    yield f"{name}, loaded: scores", bits(loaded.predict_joint_log_proba(asked))


COMMANDS = [
    "train sms.csv -o sms.textnb", "train news.ndjson --model nblinear -o news.textnb",
    "train mail/train -o mail.textnb",
    "train table.csv --model lda --features a,b,c -o lda.textnb",
    "train sms.csv --model bernoulli --l auto --ngrams 1,2 --min-df 2 -o pairs.textnb",
    "predict sms.textnb test.csv --probability --top-k 2 --explain 3 --output-format ndjson",
    "predict sms.textnb test.csv --scores --output-format ndjson",
    "predict news.textnb news.ndjson --probability --output-format csv",
    "predict mail.textnb mail/test --probability --output-format ndjson",
    "predict lda.textnb table.csv --probability --output-format csv",
    "test sms.textnb sms.csv", "top sms.textnb", "describe sms.textnb",
    "validate sms.textnb sms.csv --folds 3", "update pairs.textnb test.csv -o more.textnb",
    "forget more.textnb test.csv -o less.textnb", "merge sms.textnb sms.textnb -o twice.textnb",
    "calibrate sms.textnb sms.csv -o calibrated.textnb", "diff sms.textnb twice.textnb",
    "filter mail.textnb < mail/test/044.eml", "duplicates sms.csv test.csv",
    "export sms.textnb --to json -o sms.json", "verify sms.json",
]


def command_items(checkout: Path, folder: Path) -> Items:
    """What commands print, their exit codes, and the models that they write, as loaded."""
    from golden import samples

    import textnb

    _write_inputs(folder)
    module, function = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))[
        "project"]["scripts"]["textnb"].split(":")
    program = [sys.executable, "-W", "ignore", "-c",
               f"from {module} import {function}; {function}()"]
    for line in COMMANDS:
        command, _, source = line.partition(" < ")
        message = (folder / source).read_bytes() if source else b""
        done = subprocess.run([*program, *command.split()], cwd=folder, input=message,
                              capture_output=True, check=False)
        yield f"command {line}: output", done.stdout
        yield f"command {line}: exit code", bits(done.returncode)
    for name in ("sms", "pairs", "more", "less", "twice", "calibrated"):
        if (folder / f"{name}.textnb").exists():
            model = textnb.load(folder / f"{name}.textnb")
            yield f"command model {name}: scores", bits(
                model.predict_joint_log_proba(samples.sms().test))


def _write_inputs(folder: Path) -> None:
    from golden import samples

    sms = samples.sms()
    sms.train.drop("weight").write_csv(folder / "sms.csv")
    sms.test.write_csv(folder / "test.csv")
    samples.news().train.drop("weight").write_ndjson(folder / "news.ndjson")
    samples.table().train.drop("weight").write_csv(folder / "table.csv")
    samples.write_mail(folder / "mail")


def main() -> None:
    checkout, folder = Path(sys.argv[1]), Path(sys.argv[2])
    flags = {argument for argument in sys.argv[3:] if argument.startswith("--")}
    prefixes = tuple(argument for argument in sys.argv[3:] if not argument.startswith("--"))
    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
    import textnb

    if not Path(textnb.__file__).is_relative_to(checkout):
        sys.exit(f"the package is {textnb.__file__}, and not of {checkout}")
    warnings.simplefilter("ignore")

    def wanted(name: str) -> bool:
        return not prefixes or name.startswith(prefixes)

    members, quick = "--without-members" not in flags, "--quick" in flags
    items = dict(cell_items(folder, wanted, members=members, quick=quick))
    if wanted("command"):
        items |= command_items(checkout, folder)
    if not quick:
        items |= corpus_items(folder, wanted, members=members)
    (folder / "items").write_bytes(pickle.dumps(items))


if __name__ == "__main__":
    main()
