"""MNIST: handwritten digits."""

from __future__ import annotations

import numpy as np

from experiments.datasets._files import DataFile, Source, read_files
from experiments.datasets._tables import Dataset, TrainTest

# Both carry the four files that yann.lecun.com used to offer.
_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist",
)


def _file(name: str, sha256: str, size: int) -> DataFile:
    return DataFile(
        f"mnist/{name}", sha256, size, tuple(Source(f"{mirror}/{name}.gz") for mirror in _MIRRORS)
    )


FILES = (
    _file(
        "train-images-idx3-ubyte",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        47_040_016,
    ),
    _file(
        "train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", 60_008
    ),
    _file(
        "t10k-images-idx3-ubyte",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        7_840_016,
    ),
    _file(
        "t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", 10_008
    ),
)
_PIXELS = tuple(f"pixel_{row}_{column}" for row in range(28) for column in range(28))


def load_mnist() -> TrainTest:
    """Load 60,000 digits for training and 10,000 for testing, in the publisher's order.

    X (n, 784) float32, grey levels divided by 255; y (n,) the digit. The paper validates on 5,000 of the
    training rows; the authors' script takes the first 5,000.
    """
    train_images, train_labels, test_images, test_labels = read_files(FILES)
    return TrainTest(_digits(train_images, train_labels), _digits(test_images, test_labels))


def _digits(images: bytes, labels: bytes) -> Dataset:
    """Read idx files: 16 bytes before the pixels and 8 before the labels hold the type and the shape."""
    X = np.frombuffer(images, dtype=np.uint8, offset=16).reshape(-1, 784).astype(np.float32)
    X /= np.float32(255)
    y = np.frombuffer(labels, dtype=np.uint8, offset=8).astype(np.int64)
    return Dataset(X, y, _PIXELS, {})
