"""How much of one file is read before it is refused."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    bytes: int = 200_000_000
    pages: int = 10_000
    characters: int = 40_000_000
    """Of all extracted text together."""
    members: int = 20_000
    """Files in an archive (a DOCX is one)."""
    unpacked: int = 500_000_000
    """Bytes all members may come to, counted while unpacking: an archive's own figures can lie."""
    ratio: int = 250
    """Unpacked to packed, looked at from 20 MB on."""
    memory: int = 1_500_000_000
    """Address space of the reading process, bytes."""
    cpu_seconds: int = 180
    wall_seconds: int = 240


DEFAULT = Limits()
