"""Reads labelled images: IDX files, as MNIST and Fashion-MNIST are, and CIFAR-10's own."""

import gzip
import hashlib
import os
import struct
import zlib
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cli

CLASSES = 10
# MD5 of the labels of the test images: the only difference between drop-in relatives.
NAMES = {
    "073c3904dfbd3e141ff8aa01cfde6b15": "MNIST",
    "8dea97a4e78c1bd1b5a6e8efbb870b6e": "Fashion-MNIST",
}


class DataError(Exception):
    """The reason why a folder is not a data set, in one line."""


@dataclass(frozen=True)
class Split:
    """Images as bytes, (count, channels, height, width), and a label for each."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def mean_and_deviation(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the pixels of each channel, as fractions of white."""
        levels = np.arange(256) / 255
        means, deviations = [], []
        for channel in range(self.images.shape[1]):
            # Counting takes eight bytes for each pixel, so some images at a time.
            parts = np.array_split(self.images[:, channel], len(self) // 1000 + 1)
            counts = sum(np.bincount(part.ravel(), minlength=256) for part in parts)
            means.append(np.average(levels, weights=counts))
            spread = np.average((levels - means[-1]) ** 2, weights=counts)
            deviations.append(max(spread**0.5, 1 / 255))
        return np.array(means, np.float32), np.array(deviations, np.float32)


@dataclass(frozen=True)
class Dataset:
    name: str
    train: Split
    test: Split

    def __str__(self) -> str:
        return f"{self.name}: {len(self.train)} images to train on, {len(self.test)} to test on"


def grey(chosen: Path | None) -> Dataset:
    """Images of 28 by 28 pixels, of a folder or else of the user's cache."""
    folder = find(chosen)
    test = idx_split(folder, "t10k")
    name = NAMES.get(hashlib.md5(test.labels.astype(np.uint8)).hexdigest(), "custom IDX")
    if idx_file(folder, "train-images-idx3-ubyte"):
        return Dataset(name, idx_split(folder, "train"), test)
    first = len(test) * 9 // 10
    train = Split(test.images[:first], test.labels[:first])
    test = Split(test.images[first:], test.labels[first:])
    return Dataset(f"{name} t10k, split 9:1", train, test)


def colour(chosen: Path | None) -> Dataset:
    """Images of 32 by 32 pixels: CIFAR-10's, or grey ones with a border, in three channels."""
    folder = find(chosen)
    for place in (folder, folder / "cifar-10-batches-bin"):
        if (place / "data_batch_1.bin").is_file():
            train = cifar_split(sorted(place.glob("data_batch_?.bin")))
            return Dataset("CIFAR-10", train, cifar_split([place / "test_batch.bin"]))
    dataset = grey(folder)
    return Dataset(dataset.name, padded(dataset.train), padded(dataset.test))


def load(read: Callable[[Path | None], Dataset], args: Namespace) -> Dataset:
    """What a script trains on, which it prints. Wrong data ends the program like a wrong flag."""
    try:
        dataset = read(args.data)
    except DataError as error:
        cli.fail(error)
    print(f"{dataset}; batches of {args.batch_size}, {args.threads} threads")
    return dataset


def padded(split: Split) -> Split:
    images = np.pad(split.images, ((0, 0), (0, 0), (2, 2), (2, 2)))
    return Split(np.repeat(images, 3, axis=1), split.labels)


def find(chosen: Path | None) -> Path:
    if chosen:
        if not chosen.is_dir():
            raise DataError(f"{chosen} is not a folder")
        return chosen
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paceline"
    for name in ("mnist", "fashion-mnist"):
        if (cache / name).is_dir():
            return cache / name
    raise DataError("no images: name their folder by --data or PACELINE_DATA")


def idx_file(folder: Path, name: str) -> Path | None:
    places = (folder / name, folder / f"{name}.gz")
    return next((place for place in places if place.is_file()), None)


def idx_split(folder: Path, which: str) -> Split:
    images = idx(folder, f"{which}-images-idx3-ubyte")
    labels = idx(folder, f"{which}-labels-idx1-ubyte")
    if images.shape[1:] != (28, 28) or labels.shape != images.shape[:1]:
        shapes = f"images {images.shape} and labels {labels.shape}"
        raise DataError(f"{folder}: {shapes} of {which} are not labelled images of 28 by 28")
    return checked(images[:, np.newaxis], labels, folder)


def idx(folder: Path, name: str) -> np.ndarray:
    """An array of bytes: a magic number, its dimensions as big-endian numbers, its elements."""
    path = idx_file(folder, name)
    if path is None:
        raise DataError(f"{folder} has no {name}, compressed or not")
    data = contents(path)
    rank = data[3] if data[:3] == b"\0\0\x08" and len(data) > 3 else 0
    header = 4 + 4 * rank
    if rank == 0 or len(data) < header:
        raise DataError(f"{path} is not an IDX file of bytes")
    shape = struct.unpack(f">{rank}I", data[4:header])
    array = np.frombuffer(data, np.uint8, offset=header)
    if array.size != np.prod(shape, dtype=object):
        raise DataError(f"{path} holds {array.size} bytes, but its header says {shape}")
    return array.reshape(shape)


def cifar_split(paths: list[Path]) -> Split:
    """Records of a label and 32 by 32 pixels of red, then of green, then of blue."""
    parts = []
    for path in paths:
        data = np.frombuffer(contents(path), np.uint8)
        if data.size % 3073:
            raise DataError(f"{path} is not a binary file of CIFAR-10")
        parts.append(data.reshape(-1, 3073))
    records = np.concatenate(parts)
    return checked(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0], paths[0].parent)


def checked(images: np.ndarray, labels: np.ndarray, folder: Path) -> Split:
    if len(images) < CLASSES:
        raise DataError(f"{folder} holds {len(images)} images, expected at least {CLASSES}")
    if labels.max() >= CLASSES:
        raise DataError(f"{folder} has the label {labels.max()}, expected 0 to 9")
    return Split(images, labels.astype(np.int64))


def contents(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
