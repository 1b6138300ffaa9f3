"""MNIST: handwritten digits, 784 pixels; the corpus without text."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from corpora.card import Card, published_folder, scan_stored
from textnb.errors import SourceError

SIDE = 28
PIXELS = SIDE * SIDE

CARD = Card(
    name="mnist",
    title="The MNIST database of handwritten digits",
    source="http://yann.lecun.com/exdb/mnist/",
    citation=(
        "LeCun, Bottou, Bengio, Haffner: Gradient-Based Learning Applied to Document Recognition. "
        "Proceedings of the IEEE, 1998"
    ),
    licence="MIT",
    stored="mnist.parquet",
    class_rows={
        0: 6_903,
        1: 7_877,
        2: 6_990,
        3: 7_141,
        4: 6_824,
        5: 6_313,
        6: 6_876,
        7: 7_293,
        8: 6_825,
        9: 6_958,
    },
    splits={"train": 60_000, "test": 10_000},
    figures={
        "MultinomialNB l=1, pixels as counts, official split": 0.8365,
        "BernoulliNB l=1, pixels > 127, official split": 0.8427,
        "ComplementNB l=1, pixels as counts, official split": 0.7285,
        "GaussianNB, official split": 0.5558,
        "LinearDiscriminantAnalysis, official split": 0.8730,
        "QuadraticDiscriminantAnalysis, shrinkage .1, official split": 0.9308,
    },
    notes=(
        "`pixels` is an Array(UInt8, 784), row by row from the top left; `label` is an integer. "
        "Many pixels are zero in every image, so unregularised covariances are singular."
    ),
)

_IMAGES, _LABELS = 0x803, 0x801


def load(path: str | Path | None = None) -> pl.LazyFrame:
    """Load the digits; `path` holds the four IDX files, gzipped or not.

    They are `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same with `t10k`; the
    spelling `train-images.idx3-ubyte` is understood too.
    """
    if path is None:
        return scan_stored(CARD).select("label", "split", "index", "pixels")
    root = published_folder(CARD, path, "train-images-idx3-ubyte and its three companions in it")
    train = _read(root, "train", "train", start=0)
    return pl.concat([train, _read(root, "t10k", "test", start=train.height)]).lazy()


def _read(root: Path, prefix: str, split: str, start: int) -> pl.DataFrame:
    images_file = _find(root, f"{prefix}-images", "idx3-ubyte")
    labels_file = _find(root, f"{prefix}-labels", "idx1-ubyte")
    images, labels = _array(images_file, _IMAGES, 3), _array(labels_file, _LABELS, 1)
    if images.shape[1:] != (SIDE, SIDE):
        raise SourceError.unreadable(
            str(images_file), f"expected images of {SIDE} x {SIDE}, got {images.shape[1:]}"
        )
    if len(images) != len(labels):
        raise SourceError.unreadable(
            str(labels_file), f"{len(labels)} labels for {len(images)} images"
        )
    if (labels > 9).any():
        row = int(np.argmax(labels > 9))
        raise SourceError.unreadable(
            str(labels_file), f"row {row}: expected a digit, got {labels[row]}"
        )
    return pl.DataFrame(
        {
            "label": pl.Series(labels, dtype=pl.UInt8),
            "split": pl.repeat(split, len(labels), dtype=pl.String, eager=True),
            "index": pl.int_range(start, start + len(labels), dtype=pl.Int32, eager=True),
            "pixels": pl.Series(
                images.reshape(len(images), PIXELS), dtype=pl.Array(pl.UInt8, PIXELS)
            ),
        }
    )


def _find(root: Path, stem: str, kind: str) -> Path:
    for name in (f"{stem}-{kind}", f"{stem}.{kind}"):
        for file in (root / name, root / f"{name}.gz"):
            if file.is_file():
                return file
    raise FileNotFoundError(f"corpus 'mnist': no file {stem}-{kind} or {stem}-{kind}.gz in {root}")


def _array(file: Path, magic: int, dimensions: int) -> npt.NDArray[np.uint8]:
    """Read an IDX file: a big-endian magic number, the shape, then one byte per cell."""
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SourceError.unreadable(str(file), error) from error
    header = 4 * (1 + dimensions)
    if len(data) < header:
        raise SourceError.unreadable(str(file), f"{len(data)} bytes: no IDX header")
    found, *shape = struct.unpack_from(f">{1 + dimensions}I", data)
    if found != magic:
        raise SourceError.unreadable(
            str(file), f"expected the IDX magic number 0x{magic:x}, got 0x{found:x}"
        )
    cells = int(np.prod(shape, dtype=object))
    if len(data) - header != cells:
        raise SourceError.unreadable(
            str(file), f"the header promises {cells:,} bytes, {len(data) - header:,} follow"
        )
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(shape)
