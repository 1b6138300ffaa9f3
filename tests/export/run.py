"""How a target is run: written, its engine asked, and its answers compared with the model's."""

from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from tests.export.tables import EXACT, SPACED
from textnb import ExportError, LinearForm, export_model, verify_export
from textnb.bayes.features import Sublinear, presence_map
from textnb.export import archive, golden
from textnb.export.bundle import Bundle
from textnb.export.targets.base import EngineMissing, TargetRows, WriterMissing
from textnb.export.targets.known import TARGETS
from textnb.export.write import give_answers, model_file_name
from textnb.files.archive import write_sums


@contextmanager
def skip_without_engine():
    """Skip the test where the package that writes a target, or its engine, is not installed."""
    try:
        yield
    except (EngineMissing, WriterMissing) as error:
        _skip(error)


def _skip(error):
    # A server that the tests have started must answer to the end.
    (pytest.fail if "does not answer" in str(error) else pytest.skip)(str(error))


def answered(to, bundle, rows, folder):
    """What the engine of a target answers."""
    target = TARGETS[to]
    path = folder / model_file_name(target)
    with skip_without_engine():
        if not target.suffix:
            archive.write_tables(bundle, folder, to, None, None)
        target.write(bundle, path)
        return target.run(bundle, path, rows)


def agree(to, bundle, rows, folder, tolerance=None):
    """Run a target with all answers that it can give, and compare them with the form's.

    Labels may differ where rounding decides, but are those of the engine's own scores.
    """
    target = TARGETS[to]
    tolerance = tolerance or target.tolerance
    bundle = give_answers(bundle, target)
    rows = rows if isinstance(rows, TargetRows) else golden.target_rows(bundle, rows)
    found = answered(to, bundle, rows, folder)
    scores = bundle.scores(rows.values)
    assert found.scores.dtype == np.float64
    assert found.scores.shape == scores.shape
    np.testing.assert_allclose(found.scores, scores, rtol=tolerance, atol=tolerance)
    if (to in EXACT and bundle.reads != "features" and bundle.positive is None
            and Sublinear not in map(type, bundle.form.features.steps)):
        assert (found.scores == scores).all(), f"{to} is in EXACT: it sums in the model's order"
    decided = bundle.decide(found.scores)
    labels = decided if found.labels is None else found.labels
    assert labels == decided
    expected = bundle.expected_labels(scores, rows.values, tolerance)
    for got, want in zip(labels, expected, strict=True):
        assert want is None or (got == want and type(got) is type(want))
    if "probability" in bundle.answers:
        assert found.probabilities is not None
        chances = golden.probabilities(bundle, scores, rows.values)
        np.testing.assert_allclose(found.probabilities, chances, rtol=0, atol=1e-9)
    return found


def plain(terms, weights, labels, above=None, positive=None, reads="terms"):
    """A bundle of given numbers, without training; the first row of weights are the intercepts."""
    classes = np.empty(len(labels), dtype=object)
    classes[:] = labels
    table = np.array(weights, dtype=np.float64)
    form = LinearForm(classes, table[1:], table[0], tuple(terms), presence_map(above))
    if reads == "features":
        return Bundle(form, reads, None, tuple(terms), positive)
    return Bundle(form, reads, SPACED, ("text",), positive)


def rows_of_tokens(bundle, tokens):
    series = pl.Series(tokens, dtype=pl.List(pl.String))
    return TargetRows(bundle.count_tokens(series), tokens=series)


def exported(model, path, to, **settings):
    """Where the export is."""
    with skip_without_engine():
        return export_model(model, path, to, **settings).path


def checked(path, rows=None):
    """What `verify_export` finds; the test is skipped where the engine is not there."""
    try:
        return verify_export(path, rows)
    except ExportError as error:
        if not isinstance(error.__context__, EngineMissing):
            raise
        _skip(error)


def read(path):
    with archive.open_bundle(path) as folder:
        return archive.read(folder, str(path))[0]


def run_bundle(path, to, rows):
    """What the engine answers to rows with the file of a bundle in a folder."""
    bundle = read(path)
    target = TARGETS[to]
    with skip_without_engine():
        return target.run(bundle, path / model_file_name(target), golden.target_rows(bundle, rows))


def resealed(folder):
    """The bundle under new checksums, after one of its files was changed."""
    write_sums(folder)
    return folder
