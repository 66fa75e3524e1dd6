"""Rows in the binary form of PostgreSQL's COPY: numbers go as they are, instead of as digits that are read again."""

import struct
from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db import connection

_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TAIL = struct.pack(">h", -1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

Half = npt.NDArray[np.float16]
Field = UUID | datetime | bytes | Half


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
        value = _bytes(field)
        parts += (struct.pack(">i", len(value)), value)
    return b"".join(parts)


def _bytes(field: Field) -> bytes:
    match field:
        case UUID():
            return field.bytes
        case datetime():
            since = field - _EPOCH
            return struct.pack(">q", (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds)
        case bytes():
            return field
        case _:
            return struct.pack(">hh", len(field), 0) + field.tobytes()
