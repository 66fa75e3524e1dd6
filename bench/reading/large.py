"""A PDF of any size: pages of text with a picture of noise each, written without holding it in memory."""

import os
import zlib
from pathlib import Path
from typing import IO

_SIDE = 700
"""Pixels of each picture; noise does not pack, so that the file is as large as it says."""


def large_pdf(path: Path, *, megabytes: int) -> None:
    """Write a PDF of about that size to `path`."""
    count = max(1, megabytes * 1_000_000 // (_SIDE * _SIDE * 3))
    places: dict[int, int] = {}
    with path.open("wb") as file:
        file.write(b"%PDF-1.4\n")
        kids = " ".join(f"{4 + 3 * i} 0 R" for i in range(count))
        _object(file, places, 1, b"<< /Type /Catalog /Pages 2 0 R >>")
        _object(file, places, 2, f"<< /Type /Pages /Count {count} /Kids [{kids}] >>".encode())
        _object(file, places, 3, b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
        for i in range(count):
            _page(file, places, 4 + 3 * i, i)
        start = file.tell()
        last = 4 + 3 * count
        file.write(f"xref\n0 {last}\n0000000000 65535 f \n".encode())
        file.writelines(f"{places[n]:010} 00000 n \n".encode() for n in range(1, last))
        file.write(f"trailer << /Size {last} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())


def _page(file: IO[bytes], places: dict[int, int], number: int, index: int) -> None:
    line = "0 -14 Td (Line {} of page {}: words that fill a page of a report.) Tj "
    text = "".join(line.format(i, index) for i in range(45))
    content = zlib.compress(f"q 200 0 0 200 380 20 cm /I Do Q BT /F 10 Tf 50 760 Td {text} ET".encode())
    noise = os.urandom(_SIDE * _SIDE * 3)
    resources = f"<< /Font << /F 3 0 R >> /XObject << /I {number + 2} 0 R >> >>"
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources {resources} /Contents {number + 1} 0 R >>"
    _object(file, places, number, page.encode())
    _stream(file, places, number + 1, b"/Filter /FlateDecode", content)
    kind = f"/Type /XObject /Subtype /Image /Width {_SIDE} /Height {_SIDE} /ColorSpace /DeviceRGB /BitsPerComponent 8"
    _stream(file, places, number + 2, kind.encode(), noise)


def _object(file: IO[bytes], places: dict[int, int], number: int, body: bytes) -> None:
    places[number] = file.tell()
    file.write(b"%d 0 obj\n%b\nendobj\n" % (number, body))


def _stream(file: IO[bytes], places: dict[int, int], number: int, head: bytes, data: bytes) -> None:
    _object(file, places, number, b"<< %b /Length %d >>\nstream\n%b\nendstream" % (head, len(data), data))
