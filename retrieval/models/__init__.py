"""Rows of the retrieval tier. References upward (teams, people) are plain uuids and principals."""

from retrieval.models.collections import LEVELS, Collection, Grant, Level, Receipt
from retrieval.models.documents import WORKING, Chunk, Document, DocumentText, Status
from retrieval.models.vectors import ChunkVector, EmbeddingDraft, EmbeddingSpace
from retrieval.models.words import TERMS, ChunkWords, WordCount, WordDelta

__all__ = [
    "LEVELS",
    "TERMS",
    "WORKING",
    "Chunk",
    "ChunkVector",
    "ChunkWords",
    "Collection",
    "Document",
    "DocumentText",
    "EmbeddingDraft",
    "EmbeddingSpace",
    "Grant",
    "Level",
    "Receipt",
    "Status",
    "WordCount",
    "WordDelta",
]
