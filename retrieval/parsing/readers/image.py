"""Pictures: their text is recognised; each frame of a TIFF or GIF is a page."""

import warnings

import PIL
from PIL import Image, ImageOps

from retrieval.errors import ReadError
from retrieval.parsing import ocr
from retrieval.parsing.blocks import Page, PageBuilder, Reading, page_ranges
from retrieval.parsing.clues import SURE, Clues, Format
from retrieval.parsing.layout import layout
from retrieval.parsing.pictures import aspect_of, no_page, webp
from retrieval.parsing.source import Source

_SIGNATURES = (
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*", b"BM",
)  # fmt: skip
_BROKEN = (OSError, ValueError, SyntaxError, EOFError, PIL.UnidentifiedImageError)
_FRAMES = {"TIFF"}


def read_image(source: Source) -> Reading:
    """A picture's text, a page for each page of a TIFF. Errors: ReadError for bombs, damage, no text, no OCR."""
    if not ocr.available():
        raise ReadError(
            f"“{source.name}” is a picture. Its text could be recognised (OCR), but that is not installed here: "
            "run it elsewhere and upload the result.",
            reason="scanned",
        )
    mime = "image/*"
    pages: list[Page] = []
    broken: list[int] = []
    # The size is checked here before anything is unpacked, with a sentence of our own.
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(source.path) as image:
            mime = Image.MIME.get(image.format or "", mime)
            total = getattr(image, "n_frames", 1) if image.format in _FRAMES else 1
            for number in range(1, min(total, source.limits.ocr_pages) + 1):
                source.progress(number, total)
                pages.append(_frame(image, number, source))
                if not pages[-1].blocks:
                    broken.append(number)
    except _BROKEN as exc:
        if not pages:
            raise ReadError(
                f"“{source.name}” is a picture that is damaged inside. Open it in a viewer and save it again."
            ) from exc
    if not any(page.text for page in pages):
        raise ReadError(f"“{source.name}” is a picture in which no text was found.", reason="empty")
    notes = (f"No text was found on {page_ranges(broken)}.",) if broken else ()
    return Reading("image", mime, tuple(pages), paged=len(pages) > 1, warnings=notes)


def _frame(image: Image.Image, number: int, source: Source) -> Page:
    upright = _upright(image, number, source)
    read = ocr.recognise(upright)
    aspect = aspect_of(*upright.size)
    return layout(read.segments, PageBuilder(number), ocr=True, confidence=read.confidence, aspect=aspect)


def _upright(image: Image.Image, number: int, source: Source) -> Image.Image:
    """One frame as people see it, on white."""
    if number > 1:
        image.seek(number - 1)
    if image.width * image.height > source.limits.pixels:
        raise ReadError(
            f"“{source.name}” is {image.width:,} by {image.height:,} pixels, more than "
            f"{source.limits.pixels // 1_000_000} million, as a file made to exhaust a server would be. "
            "Make it smaller.",
            reason="bomb",
        )
    # For a JPEG this unpacks a smaller picture at once.
    image.draft("RGB", (2 * ocr.LONGEST_SIDE, 2 * ocr.LONGEST_SIDE))
    upright = ImageOps.exif_transpose(image)
    if upright.mode in {"RGBA", "LA", "P", "PA"}:
        # What shows through is white to a reader.
        upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright.convert("RGBA"))
    return upright.convert("RGB")


def picture_image(source: Source, number: int) -> bytes:
    """The picture itself, or one frame of a TIFF. Errors: ReadError."""
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(source.path) as image:
            total = getattr(image, "n_frames", 1) if image.format in _FRAMES else 1
            if not 1 <= number <= total:
                raise no_page(source, number)
            return webp(_upright(image, number, source))
    except _BROKEN as exc:
        raise ReadError(f"“{source.name}” is a picture that is damaged inside and cannot be shown.") from exc


def _claims(clues: Clues) -> int:
    webp = clues.head[:4] == b"RIFF" and clues.head[8:12] == b"WEBP"
    return SURE if webp or clues.head.startswith(_SIGNATURES) else 0


FORMATS = (
    Format(
        "image",
        "image/*",
        "pictures with text (PNG, JPEG, TIFF, WebP, GIF, BMP)",
        _claims,
        read_image,
        picture_image,
    ),
)
