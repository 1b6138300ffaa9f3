"""Weights as plain data: JSON, CSV, NumPy's NPZ, Parquet. The program that reads them counts terms.

Each format is verified by a reader of the standard library, NumPy or Polars.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from textnb.bayes.features import (
    Center,
    FeatureMap,
    Idf,
    Length,
    Presence,
    Sublinear,
    presence_map,
    unknown_step,
)
from textnb.bayes.forms import Floats
from textnb.errors import ExportError
from textnb.export.bundle import Bundle
from textnb.export.targets.base import (
    ALL_STEPS,
    LABEL_LISTS,
    RANKED_LABELS,
    Target,
    TargetAnswers,
    TargetRows,
)
from textnb.files.parquet import decode

# The maximum number of characters of an array of strings, which NumPy pads to the longest string.
# It stores a character in 4 bytes, so this is 64 MiB.
_MAX_PADDED_CHARACTERS = 1 << 24


class _Data(Target):
    """Weights in a file that other programs read: they count terms and add weights themselves."""

    reads = ("terms", "features")
    # Readers of the file apply thresholds, but no minimum or maximum number of labels.
    decides = LABEL_LISTS
    steps = ALL_STEPS
    # Clauses of a sentence for users: where weights and intercepts are in the file, and where the
    # steps of the feature map are.
    layout: ClassVar[tuple[str, str]]

    def usage(self, bundle: Bundle) -> str:
        row, term = (("row", "feature") if bundle.reads == "features" else ("document", "term"))
        output = "label" if bundle.is_multilabel else "class"
        for_each, of_output = ("", "") if bundle.positive is not None else (
            f" for each {output}", f" of the {output}")
        steps = [*describe_value_steps(bundle),
                 f"Multiply each by the weights of its {term}, and add them{for_each}.",
                 f"Add the intercept{of_output}."]
        where_weights_are, where_steps_are = self.layout
        return (f"`{f'model{self.suffix}' if self.suffix else 'weights.parquet'}` is data, for "
                f"{self.needs}: {where_weights_are}"
                + (f"; {where_steps_are}" if bundle.needs_feature_map else "")
                + f". The scores of a {row}:\n\n"
                + numbered_list(steps))


class Json(_Data):
    """One JSON document: classes, intercept, terms or features, and weights row by row."""

    name = "json"
    suffix = ".json"
    needs = "a JSON reader"
    layout = ("`weights` are in the order of `terms`; `intercept` has the intercepts",
              "`features` has the steps between counts and weights")

    def write(self, bundle: Bundle, path: Path) -> None:
        # For lists of labels, another name than ``classes``: a reader that chooses one class per
        # row must fail.
        labels = ({"labels": bundle.labels, "thresholds": bundle.thresholds.tolist()}
                  if bundle.is_multilabel else {"classes": bundle.labels})
        document = {
            **labels, "positive": bundle.positive, "above": bundle.presence_above,
            "intercept": bundle.intercept.tolist(), "terms": list(bundle.terms),
            "weights": bundle.weights.tolist(),
        }
        if bundle.needs_feature_map:
            document["features"] = bundle.form.features.to_dict()
        path.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), "utf-8")

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        document = json.loads(path.read_text("utf-8"))
        return score_rows(document["terms"], document["weights"], document["intercept"],
                          features_of(document), rows, bundle, document.get("thresholds"))


class Csv(_Data):
    """Comma-separated values (RFC 4180). The column ``kind`` says what a row holds.

    Kinds are ``class`` (one row per class, in order, but a positive class first), ``above`` (if
    counts above a number become 1), ``intercept``, and ``weight`` (one row per term). For lists of
    labels, there is ``label`` in place of ``class``, and ``threshold`` with a number per label. If
    the feature map has steps other than presence, ``features`` has its steps as JSON.
    """

    name = "csv"
    suffix = ".csv"
    needs = "a CSV reader"
    layout = ("a row of the kind `weight` has a name and its weights; that of the kind `intercept` "
              "has the intercepts",
              "that of the kind `features` has the steps between counts and weights, as JSON")

    def write(self, bundle: Bundle, path: Path) -> None:
        if any("\0" in term for term in bundle.terms):
            raise ExportError("a term holds the character NUL, which CSV readers refuse; use json")
        outputs = ["w"] if bundle.positive is not None else [*map(str, bundle.labels)]
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
            writer.writerow(["kind", "name", *outputs])
            labels = bundle.labels if bundle.positive is None else [
                bundle.positive, bundle.negative]
            kind = "label" if bundle.is_multilabel else "class"
            writer.writerows([kind, str(label)] for label in labels)
            if bundle.is_multilabel:
                writer.writerow(["threshold", "", *bundle.thresholds.tolist()])
            if bundle.presence_above is not None:
                writer.writerow(["above", bundle.presence_above])
            if (features := _features_json(bundle)) is not None:
                writer.writerow(["features", features])
            writer.writerow(["intercept", "", *bundle.intercept.tolist()])
            writer.writerows(["weight", term, *weights] for term, weights
                             in zip(bundle.terms, bundle.weights.tolist(), strict=True))

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        with path.open(encoding="utf-8", newline="") as file:
            # The largest limit that every system takes: Windows has longs of 32 bits.
            csv.field_size_limit(2**31 - 1)
            _, *lines = csv.reader(file)
        names = [name for kind, name, *_ in lines if kind == "weight"]
        weights = [values for kind, _, *values in lines if kind == "weight"]
        intercept = next(values for kind, _, *values in lines if kind == "intercept")
        thresholds = next(([*map(float, values)] for kind, _, *values in lines
                           if kind == "threshold"), None)
        document: dict[str, Any] = {"above": next(
            (float(value) for kind, value, *_ in lines if kind == "above"), None)}
        document |= {kind: json.loads(value) for kind, value, *_ in lines if kind == "features"}
        return score_rows(names, np.array(weights, dtype=np.float64),
                          list(map(float, intercept)), features_of(document), rows, bundle,
                          thresholds)


class Npz(_Data):
    """NumPy arrays: ``weights``, ``intercept``, ``above`` (NaN for none), ``positive``, and names.

    ``names`` (of terms or features) and ``labels`` (of classes) hold the UTF-8 bytes of all
    strings, and ``names_ends`` and ``labels_ends`` the end of each string, so that arrays need
    neither pickle nor padding. ``names_text`` and ``labels_text`` are the same as arrays of
    strings; they are left out if padding takes too much memory, or if a string ends with NUL, which
    NumPy would remove. All arrays are compressed. ``positive`` is the index of the positive class,
    or -1. For lists of labels, ``thresholds`` has a number per label. If the feature map has steps
    other than presence, ``features`` has its steps as the UTF-8 bytes of JSON.
    """

    name = "npz"
    suffix = ".npz"
    needs = "NumPy"
    layout = ("`weights` are in the order of `names` (UTF-8 bytes, each up to its place in "
              "`names_ends`); `intercept` has the intercepts",
              "`features` has the steps between counts and weights, as the bytes of JSON")

    def write(self, bundle: Bundle, path: Path) -> None:
        above = np.nan if bundle.presence_above is None else bundle.presence_above
        positive = -1 if bundle.positive is None else bundle.labels.index(bundle.positive)
        arrays: dict[str, Any] = {"weights": bundle.weights, "intercept": bundle.intercept,
                                  "above": np.array(above), "positive": np.array(positive)}
        if bundle.is_multilabel:
            arrays["thresholds"] = bundle.thresholds
        for name, strings in (("names", bundle.terms), ("labels", list(map(str, bundle.labels)))):
            encoded = [string.encode() for string in strings]
            arrays[name] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            arrays[f"{name}_ends"] = np.cumsum([*map(len, encoded)], dtype=np.int64)
            max_length = max(map(len, strings), default=0)
            if max_length * len(strings) <= _MAX_PADDED_CHARACTERS and not any(
                    string.endswith("\0") for string in strings):
                arrays[f"{name}_text"] = np.array(strings, dtype=f"<U{max(1, max_length)}")
        if (features := _features_json(bundle)) is not None:
            arrays["features"] = np.frombuffer(features.encode(), dtype=np.uint8)
        with path.open("wb") as file:
            np.savez_compressed(file, **arrays)

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        with np.load(path, allow_pickle=False) as arrays:
            content, ends = arrays["names"].tobytes(), arrays["names_ends"].tolist()
            names = [content[start:end].decode()
                     for start, end in zip([0, *ends], ends, strict=False)]
            above = float(arrays["above"])
            document: dict[str, Any] = {"above": None if np.isnan(above) else above}
            if "features" in arrays:
                document["features"] = json.loads(arrays["features"].tobytes())
            return score_rows(names, arrays["weights"], arrays["intercept"],
                              features_of(document), rows, bundle, arrays.get("thresholds"))


class Parquet(_Data):
    """The bundle's own ``weights.parquet`` and ``form.json``."""

    name = "parquet"
    suffix = ""
    # The bundle's own files have the whole decision, with limits on the number of labels.
    decides = RANKED_LABELS
    needs = "a Parquet reader"
    layout = ("`0`, `1` ... or `w` are the columns of weights; `intercept` in `form.json` has the "
              "intercepts",
              "`features` there has the steps between counts and weights")

    def write(self, bundle: Bundle, path: Path) -> None:
        """Write nothing: the bundle's own files are the export."""

    def run(self, bundle: Bundle, path: Path, rows: TargetRows) -> TargetAnswers:
        form = json.loads((path.parent / "form.json").read_text("utf-8"))
        table = decode((path.parent / "weights.parquet").read_bytes())
        names = table.to_series(0).to_list()
        # Beside the names there may be the words of n-grams; all other columns are weights.
        columns = [name for name in table.columns if name not in ("term", "feature", "words")]
        return score_rows(names, table.select(columns).to_numpy(), form["intercept"],
                          features_of(form), rows, bundle, None)


def describe_value_steps(bundle: Bundle) -> list[str]:
    """Describe what a reader must do to a row before weights multiply it: a line per step."""
    if bundle.reads == "features":
        lines, value, others = [], "number", "0 in place of the others"
    else:
        lines = ["Count each token of the document. Leave out those that are not among the terms."]
        value, others = "count", "leave out the others"
    for step in bundle.form.features.steps:
        match step:
            case Presence(above=above):
                lines.append(f"Put 1 in place of each {value} above {above:g}, and {others}.")
            case Sublinear():
                lines.append("Put 1 + ln(count) in place of each count.")
            case Idf():
                lines.append("Multiply each by the term's inverse document frequency: `weights` of "
                             "the step `idf` in `features`, a number per term, in their order.")
            case Length():
                lines.append("Divide each by the length of the document: the square root of the "
                             "sum of all their squares. Where it is 0, leave them as they are.")
            case Center():
                pass  # `Bundle.intercept` is for features that are not centered.
            case _:
                raise unknown_step(step, "a description", ALL_STEPS)
    return lines


def numbered_list(steps: Sequence[str]) -> str:
    """A numbered list in Markdown."""
    return "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))


def _features_json(bundle: Bundle) -> str | None:
    """The steps of the feature map as JSON; None if it has no step other than presence."""
    return json.dumps(bundle.form.features.to_dict(), allow_nan=False) if (
        bundle.needs_feature_map) else None


def features_of(document: Mapping[str, Any]) -> FeatureMap:
    """The feature map of a JSON document: its ``features``, or else presence by its ``above``."""
    if "features" in document:
        return FeatureMap.from_dict(document["features"])
    return presence_map(document["above"])


def score_rows(
    names: Sequence[str], weights: ArrayLike, intercept: ArrayLike, features: FeatureMap,
    rows: TargetRows, bundle: Bundle, thresholds: Sequence[float] | None,
) -> TargetAnswers:
    """Score rows one by one, as a reader of the file would do it.

    For lists of labels, ``thresholds`` choose the labels. If they are None, only scores are given.
    """
    term_index = {name: k for k, name in enumerate(names)}
    intercept = np.asarray(intercept, dtype=np.float64)
    weights = np.asarray(weights, dtype=np.float64).reshape(len(names), len(intercept))
    if bundle.reads == "features":
        named_rows = ([*zip(names, row, strict=True)] for row in rows.features.tolist())
    else:
        named_rows = ([*Counter(tokens).items()] for tokens in rows.tokens.to_list())
    scores_of_rows = []
    for row in named_rows:
        known_terms = [(term_index[name], value) for name, value in row if name in term_index]
        terms, values = features.map_row(
            np.array([term for term, _ in known_terms], dtype=np.int64),
            np.array([value for _, value in known_terms], dtype=np.float64))
        scores_of_rows.append(intercept + values @ weights[terms])
    scores: Floats = np.array(scores_of_rows, dtype=np.float64).reshape(-1, len(intercept))
    if thresholds is None:
        return TargetAnswers(scores)
    return TargetAnswers(scores, bundle.labels_of(scores > np.asarray(thresholds)))
