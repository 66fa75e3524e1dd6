"""How much of one file is read before it is refused."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    bytes: int = 200_000_000
    pages: int = 10_000
    characters: int = 40_000_000
    """Of all extracted text together."""
    members: int = 20_000
    """Files in an archive (a DOCX is one), counted over all layers."""
    unpacked: int = 500_000_000
    """Bytes all members may come to, counted while unpacking: an archive's own figures can lie."""
    ratio: int = 250
    """Unpacked to packed, looked at from 20 MB on."""
    depth: int = 3
    """Files in files in files."""
    pixels: int = 100_000_000
    """Of one picture; a small file can claim to hold a huge one."""
    ocr_pages: int = 1000
    """Pages of one file whose text is recognised from pictures."""
    memory: int = 1_500_000_000
    """Address space of the reading process, bytes; what recognising text needs comes on top."""
    cpu_seconds: int = 180
    """Since the last page whose text was recognised, or the start."""
    wall_seconds: int = 240


DEFAULT = Limits()
