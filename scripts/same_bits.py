"""The worker of ``scripts/same-bits``: what a checkout answers, bit by bit.

    python scripts/same_bits.py CHECKOUT FOLDER [--without-members] [--quick] [NAME ...]

The package is that of PYTHONPATH; the cells are those beside this file. Writes FOLDER/items.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tomllib
import warnings
import zipfile
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

Items = Iterator[tuple[str, Any]]
# Real corpora, and their columns of labels.
CORPORA = {"sms_spam": "label", "bbc_news": "label", "zh_hotel": "label", "20newsgroups": "label",
           "reuters_modapte90": "labels"}
ROWS, ANSWERED = 6000, 400


def bits(value: Any) -> tuple[Any, bytes]:
    """A nest of answers as what is exact in it, and the bits of its floats."""
    from golden.record import flatten

    exact, numbers = flatten(value)
    return exact, np.array(numbers, dtype=np.float64).tobytes()


def first_difference(before: Any, now: Any) -> str:
    """Where two answers differ first, in words; empty if they are the same."""
    if before == now:
        return ""
    if isinstance(before, bytes) or isinstance(now, bytes):
        return f"{len(before):,} bytes, now {len(now):,}"
    for old, new in zip_longest(leaves(before[0]), leaves(now[0]), fillvalue=("", "nothing")):
        if old != new:
            place = " / ".join(dict.fromkeys(filter(None, (old[0], new[0])))) or "it"
            return f"{place} was {str(old[1])[:150]}, is {str(new[1])[:150]}"
    old, new = np.frombuffer(before[1]), np.frombuffer(now[1])
    other = np.flatnonzero(old.view(np.int64) != new.view(np.int64))
    if not len(other):
        return "an empty part is of another kind"
    at = other[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        worst = np.nanmax(np.abs(new[other] - old[other]) / np.abs(old[other]))
    return (f"{len(other):,} of {len(old):,} numbers, by at most {worst:.2g} of themselves; number "
            f"{at:,} was {old[at]!r}, is {new[at]!r}")


def leaves(value: Any, where: str = "") -> Items:
    """The parts of a nest, each with its place."""
    if isinstance(value, (list, dict)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, f"{where}[{key!r}]")
    else:
        yield where, value


def corpus_cells() -> Iterator[Any]:
    """Models of real corpora, as cells."""
    import polars as pl
    from golden.cell import Cell
    from golden.samples import Sample
    from golden.texts import COUNTING, MODELS, text_answers

    import textnb

    for corpus, label in CORPORA.items():
        path = Path(os.environ.get("TEXTNB_CORPORA", "/nonexistent")) / f"{corpus}.parquet"
        for model in (*COUNTING, "nblinear") if path.is_file() else ():
            rows = pl.read_parquet(path).head(ROWS + ANSWERED).select("text", label)
            sample = Sample(rows[:-ANSWERED], rows[-ANSWERED:], label=label)

            def fit(model: str = model, sample: Sample = sample) -> Any:
                return textnb.TextClassifier(
                    MODELS[model](), label=sample.label, min_df=2).fit(sample.train)

            yield Cell("corpus", corpus, model, fit, text_answers(sample), slow=True)


def cell_items(folder: Path, wanted: Callable[[str], bool], *, members: bool, quick: bool) -> Items:
    """Answers of the cells of tests/golden and of corpora, and of their model files."""
    from golden.cells import all_cells

    import textnb

    for cell in (*all_cells(), *corpus_cells()):
        if not wanted(cell.name) or (quick and cell.slow):
            continue
        for name, value in cell.compute().items():
            yield f"{cell.name}: {name}", bits(value)
        path = folder / f"{cell.name}.textnb"
        try:
            cell.fit().save(path)
        # Not every cell has a model that can be saved.
        except (textnb.TextnbError, AttributeError):
            continue
        if members:
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    yield f"{cell.name}, file: {member}", archive.read(member)
        for name, value in cell.compute(textnb.load(path)).items():
            yield f"{cell.name}, loaded: {name}", bits(value)


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

    sms = samples.sms()
    sms.train.drop("weight").write_csv(folder / "sms.csv")
    sms.test.write_csv(folder / "test.csv")
    samples.news().train.drop("weight").write_ndjson(folder / "news.ndjson")
    samples.table().train.drop("weight").write_csv(folder / "table.csv")
    samples.write_mail(folder / "mail")
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
                model.predict_joint_log_proba(sms.test))


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
    (folder / "items").write_bytes(pickle.dumps(items))


if __name__ == "__main__":
    main()
