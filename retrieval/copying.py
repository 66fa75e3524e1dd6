"""Rows in the binary form of PostgreSQL's COPY: numbers go as they are, instead of as digits that are read again."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db import connection

_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_NULL = struct.pack(">i", -1)
_TAIL = struct.pack(">h", -1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

Half = npt.NDArray[np.float16]
Field = UUID | datetime | bytes | str | Half | None
"""Bytes go as they are: a `bytea`, or a number that one of the functions here has packed."""
_INT4 = 23
"""PostgreSQL's own number of the type."""


def integer(value: int) -> bytes:
    """An `integer`."""
    return struct.pack(">i", value)


def long(value: int) -> bytes:
    """A `bigint`."""
    return struct.pack(">q", value)


def integers(values: Sequence[int]) -> bytes:
    """An `integer[]`."""
    if not values:
        return struct.pack(">iii", 0, 0, _INT4)
    # Each behind its size, four bytes.
    each = np.full((len(values), 2), 4, dtype=">i4")
    each[:, 1] = values
    return struct.pack(">iiiii", 1, 0, _INT4, len(values), 1) + each.tobytes()


def sparse(values: Mapping[int, float], dimension: int) -> bytes:
    """A `sparsevec` of what stands at these places, counted from 1 and in ascending order."""
    places = np.fromiter((place - 1 for place in values), dtype=">i4", count=len(values))
    weights = np.fromiter(values.values(), dtype=">f4", count=len(values))
    return struct.pack(">iii", dimension, len(values), 0) + places.tobytes() + weights.tobytes()


def halves(matrix: npt.NDArray[np.float32]) -> Half:
    """The same numbers, as pgvector's halfvec keeps them. Shape unchanged."""
    return matrix.astype(">f2")


def rows_copy(table: str, columns: tuple[str, ...], rows: Iterable[tuple[Field, ...]]) -> None:
    """Append rows to a table. Errors: Django's, so also IntegrityError for a row that is there already."""
    data = b"".join((_HEAD, *(_row(row) for row in rows), _TAIL))
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.write(data)


def _row(fields: tuple[Field, ...]) -> bytes:
    parts = [struct.pack(">h", len(fields))]
    for field in fields:
        if field is None:
            parts.append(_NULL)
            continue
        value = _bytes(field)
        parts += (struct.pack(">i", len(value)), value)
    return b"".join(parts)


def _bytes(field: UUID | datetime | bytes | str | Half) -> bytes:
    match field:
        case str():
            return field.encode()
        case UUID():
            return field.bytes
        case datetime():
            since = field - _EPOCH
            return struct.pack(">q", (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds)
        case bytes():
            return field
        case _:
            return struct.pack(">hh", len(field), 0) + field.tobytes()
