"""Pages as pictures: WebP of a size that a screen shows sharply and a phone loads at once."""

import io

from PIL import Image

from retrieval.errors import ReadError
from retrieval.parsing.source import Source

_WIDTH = 1200
"""Pixels: a page beside its text is shown some 600 wide, twice that on a fine screen."""
_LONGEST = 2400
_QUALITY = 80


def aspect_of(width: float, height: float) -> float:
    """Width by height, rounded; of a page without an extent, that of a square."""
    return round(width / height, 4) if width > 0 and height > 0 else 1.0


def scale_for(width: float, height: float) -> float:
    """The factor that brings a page to the size of a picture, however large or long it is."""
    return min(_WIDTH / max(width, 1.0), _LONGEST / max(height, 1.0))


def webp(image: Image.Image) -> bytes:
    """The picture encoded, made smaller where it is too large."""
    image.thumbnail((_WIDTH, _LONGEST))
    out = io.BytesIO()
    image.convert("RGB").save(out, "WEBP", quality=_QUALITY, method=3)
    return out.getvalue()


def no_page(source: Source, number: int) -> ReadError:
    return ReadError(f"“{source.name}” has no page {number}.", reason="unpictured")
