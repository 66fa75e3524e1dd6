"""An embedder's answer, checked and made ready to store: unit vectors of half precision."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from retrieval.errors import EmbeddingMismatch, EmbeddingUnavailable
from retrieval.types import Embedded

Matrix = npt.NDArray[np.float32]


def unit_vectors(answer: Embedded, *, texts: int, dimension: int) -> Matrix:
    """Shape (texts, dimension), each row of length 1, so that the inner product is the cosine.

    Errors: EmbeddingUnavailable when vectors are missing, of another dimension, or not numbers: a server that
    drops an item of a batch would otherwise shift every later vector to a wrong text.
    """
    if len(answer.vectors) != texts:
        raise EmbeddingUnavailable(
            f"The embedding server gave {len(answer.vectors)} vectors for {texts} texts, so none of them was used."
        )
    lengths = {len(vector) for vector in answer.vectors}
    if lengths - {dimension}:
        raise EmbeddingMismatch(
            f"The embedding server gives vectors of {sorted(lengths)} numbers where {dimension} are stored. Set "
            "EMBEDDING_MODEL and EMBEDDING_DIMENSION to what it serves, and embed the documents again."
        )
    matrix = np.asarray(answer.vectors, dtype=np.float32).reshape(texts, dimension)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise EmbeddingUnavailable("The embedding server gave a vector that is zero or not a number.")
    units: Matrix = matrix / norms
    return units


def vector_text(vector: Sequence[float] | npt.NDArray[np.float32]) -> str:
    """pgvector's text form; five digits are more than half precision keeps."""
    return "[" + ",".join(f"{value:.5g}" for value in vector) + "]"
