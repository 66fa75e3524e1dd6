"""Pictures: brought to what a model takes, and counted by its maker's published rule. No IO.

A server scales a large picture down before it looks at it, so sending it whole costs time and gains nothing; some
refuse it. Reading and scaling takes tens of milliseconds: call `request_fitted` in a thread.
"""

import io
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from PIL import Image, ImageOps

from inference_client.adapters.kind import Kind
from inference_client.errors import InvalidRequest, Unsupported
from inference_client.types import ChatRequest, ImagePart, Message, TextPart

MAX_PIXELS = 80_000_000
"""Larger ones are refused unread: a small file can unfold into gigabytes."""
_JPEG_QUALITY = 90
_TROUBLES = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    LookupError,
    TypeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)
"""What readers of damaged pictures raise."""
Size = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRule:
    """What a model takes, and what a picture costs in input tokens once it is fitted."""

    media_types: frozenset[str]
    fit: Callable[[Size], Size]
    """(width, height) to the size the server would scale it to."""
    tokens: Callable[[Size], int]
    max_bytes: int = 15 * 1024 * 1024
    exact: bool = True
    """Whether `tokens` is the maker's own rule."""


def _within(size: Size, edge: int) -> Size:
    return _scaled(size, edge / max(size))


def _scaled(size: Size, factor: float) -> Size:
    if factor >= 1:
        return size
    return max(1, math.floor(size[0] * factor)), max(1, math.floor(size[1] * factor))


def _openai_fit(size: Size) -> Size:
    size = _within(size, 2048)
    return _scaled(size, 768 / min(size))


def _openai_tokens(size: Size) -> int:
    return 85 + 170 * math.ceil(size[0] / 512) * math.ceil(size[1] / 512)


def _anthropic_fit(size: Size) -> Size:
    size = _within(size, 1568)
    # About 1,600 tokens are the most a picture may take.
    return _scaled(size, math.sqrt(1600 * 750 / (size[0] * size[1])))


def _anthropic_tokens(size: Size) -> int:
    return math.ceil(size[0] * size[1] / 750)


def _gemini_tokens(size: Size) -> int:
    if max(size) <= 384:
        return 258
    tile = min(768, max(256, math.floor(min(size) / 1.5)))
    return 258 * math.ceil(size[0] / tile) * math.ceil(size[1] / tile)


_COMMON = frozenset({"image/png", "image/jpeg", "image/webp"})
_WITH_GIF = _COMMON | {"image/gif"}
_BASE64_5_MB = 5 * 1024 * 1024 * 3 // 4

RULES: Mapping[str, PictureRule] = {
    "openai": PictureRule(media_types=_WITH_GIF, fit=_openai_fit, tokens=_openai_tokens),
    "anthropic": PictureRule(
        media_types=_WITH_GIF, fit=_anthropic_fit, tokens=_anthropic_tokens, max_bytes=_BASE64_5_MB
    ),
    "gemini": PictureRule(media_types=_COMMON, fit=lambda size: _within(size, 3072), tokens=_gemini_tokens),
    # Many makers behind one service: what all of them take, counted by the rule of the commonest.
    "bedrock": PictureRule(
        media_types=_WITH_GIF,
        fit=_anthropic_fit,
        tokens=_anthropic_tokens,
        max_bytes=_BASE64_5_MB,
        exact=False,
    ),
    "server": PictureRule(
        media_types=_COMMON, fit=lambda size: _within(size, 2048), tokens=_anthropic_tokens, exact=False
    ),
}


def rule_of(kind: Kind) -> PictureRule:
    """The rule of `kind`. Raises Unsupported where it takes no pictures."""
    if kind.images is None:
        raise Unsupported(
            f"{kind.title} takes no pictures. Leave them out, or choose another model.",
            code="unsupported_option",
        )
    return RULES[kind.images]


def picture_tokens(part: ImagePart, rule: PictureRule) -> int:
    """Input tokens of a picture, whether it is fitted already or not. Raises InvalidRequest."""
    with _opened(part) as picture:
        return rule.tokens(rule.fit(_upright_size(picture)))


def picture_fitted(part: ImagePart, rule: PictureRule) -> ImagePart:
    """`part` as the model takes it; the same one where nothing is to be done. Raises InvalidRequest.

    What is written anew is upright, one frame, and without the notes that cameras leave (place, time, owner).
    """
    with _opened(part) as picture:
        media_type = Image.MIME.get(picture.format or "", "")
        size = rule.fit(_upright_size(picture))
        fits = size == picture.size and media_type in rule.media_types and len(part.data) <= rule.max_bytes
        if fits and not getattr(picture, "is_animated", False) and not picture.getexif():
            # Damage is told by us, in words, rather than by a server that has waited for the upload.
            picture.load()
            return replace(part, media_type=media_type)
        picture.seek(0)
        upright = ImageOps.exif_transpose(picture)
        return _written(upright.resize(size) if size != upright.size else upright, rule)


def request_fitted(request: ChatRequest, kind: Kind) -> ChatRequest:
    """`request` with every picture fitted to `kind`. Raises Unsupported and InvalidRequest."""
    rule = rule_of(kind)
    return replace(request, messages=tuple(_message_fitted(message, rule) for message in request.messages))


def _message_fitted(message: Message, rule: PictureRule) -> Message:
    if isinstance(message.content, str):
        return message
    parts = (part if isinstance(part, TextPart) else picture_fitted(part, rule) for part in message.content)
    return replace(message, content=tuple(parts))


@contextmanager
def _opened(part: ImagePart) -> Iterator[Image.Image]:
    """The picture, for as long as it is read; whatever its format's reader trips over is told as one thing."""
    try:
        with Image.open(io.BytesIO(part.data)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise InvalidRequest(
                    f"A picture has {picture.width} × {picture.height} points; at most {MAX_PIXELS:,} are read. "
                    "Make it smaller.",
                    code="picture_too_large",
                )
            yield picture
    except _TROUBLES as exc:
        raise InvalidRequest(
            "A picture cannot be read. Send it as PNG, JPEG or WebP.", code="picture_unreadable"
        ) from exc


def _upright_size(picture: Image.Image) -> Size:
    """Cameras store a picture lying and note how to turn it; 5 to 8 swap the sides."""
    turned = picture.getexif().get(0x0112, 1) >= 5
    return (picture.height, picture.width) if turned else picture.size


def _written(picture: Image.Image, rule: PictureRule) -> ImagePart:
    see_through = picture.mode in {"LA", "PA", "RGBA"} or "transparency" in picture.info
    if see_through:
        data = _saved(picture.convert("RGBA"), "PNG")
        if len(data) <= rule.max_bytes:
            return ImagePart(data, "image/png")
    data = _saved(picture.convert("RGB"), "JPEG", quality=_JPEG_QUALITY)
    if len(data) > rule.max_bytes:
        raise InvalidRequest(
            f"A picture takes {len(data):,} bytes even when scaled down; at most {rule.max_bytes:,} are taken.",
            code="picture_too_large",
        )
    return ImagePart(data, "image/jpeg")


def _saved(picture: Image.Image, form: str, **options: int) -> bytes:
    out = io.BytesIO()
    # Only what is written here goes into the file, no notes of the original.
    picture.info = {}
    picture.save(out, form, **options)
    return out.getvalue()
