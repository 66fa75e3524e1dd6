"""Vectors kept on disk by the hash of what was embedded, so that an exam that is repeated embeds nothing twice."""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from retrieval.models import EmbeddingSpace
from retrieval.ports import embed
from retrieval.types import Role
from retrieval.vectors import Matrix, unit_vectors

_BATCH = 32


class VectorCache:
    """Vectors of one space, of length 1. `folder` None keeps none."""

    def __init__(self, space: EmbeddingSpace, folder: Path | None, payer: object) -> None:
        self._space, self._payer = space, payer
        name = f"{space.model}-{space.dimension}.sqlite".replace("/", "_")
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        # An event loop may run in a thread of its own; one thread at a time uses the file.
        self._file = sqlite3.connect(
            ":memory:" if folder is None else folder / name, timeout=60, check_same_thread=False
        )
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS vector (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
        )
        self.embedded = 0
        """Texts that had to be embedded."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    async def vectors(self, texts: Sequence[str], *, role: Role) -> Matrix:
        """Shape (texts, dimension). Errors: the embedder's; what came until then is kept."""
        prefix = self._space.query_prefix if role == "query" else self._space.passage_prefix
        keys = [hashlib.sha256((prefix + text).encode()).digest() for text in texts]
        # Neighbours in length waste no padding.
        missing = dict(
            sorted(self._missing(dict(zip(keys, texts, strict=True))).items(), key=lambda i: len(i[1]))
        )
        todo = list(missing.items())
        for start in range(0, len(todo), _BATCH):
            part = todo[start : start + _BATCH]
            answer = await embed([text for _, text in part], space=self._space, role=role, payer=self._payer)
            matrix = unit_vectors(answer, texts=len(part), dimension=self._space.dimension)
            with self._file:
                self._file.executemany(
                    "INSERT OR IGNORE INTO vector VALUES (?, ?)",
                    [(key, vector.tobytes()) for (key, _), vector in zip(part, matrix, strict=True)],
                )
            self.embedded += len(part)
        found = [self._one(key) for key in keys]
        matrix = np.frombuffer(b"".join(found), dtype=np.float32).reshape(len(texts), self._space.dimension)
        units: Matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        return units

    def _missing(self, texts: dict[bytes, str]) -> dict[bytes, str]:
        return {key: text for key, text in texts.items() if not self._one(key)}

    def _one(self, key: bytes) -> bytes:
        row = self._file.execute("SELECT value FROM vector WHERE key = ?", (key,)).fetchone()
        return bytes(row[0]) if row else b""
