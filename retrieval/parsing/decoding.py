"""Bytes to text, decided on the whole file: a guess from the first kilobytes gets late characters wrong."""

import codecs
import re
import unicodedata
from dataclasses import dataclass, replace

from retrieval.parsing.guessing import likeliest

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{2,40})|encoding=[\"']([\w.:-]{2,40})", re.IGNORECASE
)
_ESCAPED = ((b"\x1b$B", "iso2022_jp"), (b"\x1b$@", "iso2022_jp"), (b"\x1b$)C", "iso2022_kr"), (b"~{", "hz"))
_CONTROL = frozenset(range(9)) | frozenset(range(14, 27)) | frozenset(range(28, 32))


@dataclass(frozen=True, slots=True)
class Decoded:
    text: str
    encoding: str
    guessed: bool
    """Nothing in the file says so: another reading of the bytes is possible."""
    strays: int = 0
    """Bytes that are none of this encoding, as in a log that two programs wrote; read as Windows-1252."""


def decode(data: bytes, *, declared: bool = False) -> Decoded:
    """Text of `data`: by BOM, as strict UTF-8, as UTF-16 without BOM, by a declaration, else the likeliest guess.

    `declared`: look for an HTML or XML declaration of the encoding. Never fails: Latin-1 reads any bytes.
    """
    for attempt in (_by_bom, _utf32, _utf16, _escaped, _utf8, _utf16_without_latin):
        if (found := attempt(data)) is not None:
            return found
    if declared and (found := _declared(data)) is not None:
        return found
    return _nearly_utf8(data) or _guess(data)


def _by_bom(data: bytes) -> Decoded | None:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            text = data.decode(encoding, errors="replace")
            return Decoded(text, encoding.removesuffix("-sig"), guessed=False)
    return None


def _escaped(data: bytes) -> Decoded | None:
    """Seven-bit encodings that switch character sets by escape sequences."""
    for escape, encoding in _ESCAPED:
        if escape in data and data.isascii() and (found := _strict(data, encoding)) is not None:
            return found
    return None


def _utf8(data: bytes) -> Decoded | None:
    found = _strict(data, "utf-8")
    return replace(found, guessed=False) if found is not None else None


def _nearly_utf8(data: bytes) -> Decoded | None:
    """UTF-8 but for a few bytes: one that is broken does not make another encoding of a whole file."""
    text = data.decode("utf-8", errors=_STRAY)
    strays = sum(char >= _FIRST_STRAY for char in text)
    sound = len(text) - sum(char < "\x80" for char in text) - strays
    if sound < _LEAST_SOUND or strays * 2 > sound:
        return None
    return Decoded(text.translate(_STRAYS), "utf-8", guessed=True, strays=strays)


def _stray(error: UnicodeError) -> tuple[str, int]:
    """Each byte that is no UTF-8 in a place of its own, so that it can be counted."""
    assert isinstance(error, UnicodeDecodeError)
    found = error.object[error.start : error.end]
    return "".join(chr(ord(_FIRST_STRAY) + byte) for byte in found), error.end


_STRAY = "tessera.stray"
_FIRST_STRAY = "\U0010ff00"
"""Where bytes stand meanwhile: for private use, at the very end of Unicode."""
_STRAYS = {
    ord(_FIRST_STRAY) + byte: bytes([byte]).decode("cp1252", errors="replace") for byte in range(128, 256)
}
_LEAST_SOUND = 4
codecs.register_error(_STRAY, _stray)


def only_bom(data: bytes) -> bool:
    """Whether there is nothing but a byte order mark, as an export leaves that broke off at once."""
    return any(data == bom for bom, _ in _BOMS)


def looks_binary(data: bytes) -> bool:
    """Whether the bytes are no text in any encoding: control characters beyond what text has."""
    if any(data.startswith(bom) for bom, _ in _BOMS):
        return False
    if _utf32(data) or _utf16(data) or _utf16_without_latin(data):
        return False
    sample = data[:65_536]
    control = sum(sample.count(value) for value in _CONTROL)
    # A stray NUL is dropped later (web pages have them); a tenth of the bytes is another thing.
    return control > max(4, len(sample) // 50)


def _utf16(data: bytes) -> Decoded | None:
    """UTF-16 without BOM: NUL bytes, all on the same side (those of blanks, digits and Latin letters)."""
    sample = data[:65_536]
    if len(sample) < 4 or len(data) % 2:
        return None
    odd, even = sample[1::2].count(0), sample[::2].count(0)
    if odd + even < max(2, len(sample) // 100) or min(odd, even) > (odd + even) // 20:
        return None
    encoding = "utf-16-le" if odd > even else "utf-16-be"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    control = sum(ord(char) in _CONTROL for char in text[:10_000])
    return Decoded(text, encoding, guessed=True) if control <= len(text[:10_000]) // 50 else None


def _utf32(data: bytes) -> Decoded | None:
    """UTF-32 without BOM: of four bytes one is always zero and its neighbour nearly always."""
    if len(data) < 8 or len(data) % 4:
        return None
    for encoding, top, plane in (("utf-32-le", 3, 2), ("utf-32-be", 0, 1)):
        if not any(data[top::4]) and data[plane::4].count(0) > 0.9 * len(data) / 4:
            return _strict(data, encoding)
    return None


def _utf16_without_latin(data: bytes) -> Decoded | None:
    """UTF-16 without BOM in a script of its own, such as Chinese: only line ends and blanks have NUL bytes.

    Asked only where UTF-8 was ruled out: other text has no NUL bytes at all.
    """
    if len(data) % 2 or b"\x00" not in data or _utf8(data) is not None:
        return None
    # A stray NUL in a web page makes no UTF-16 of it: half of its pairs are Latin letters.
    sample = data[:20_000]
    if (
        sum(32 <= a < 127 and 32 <= b < 127 for a, b in zip(sample[::2], sample[1::2], strict=True))
        > len(sample) / 4
    ):
        return None
    found = [item for name in ("utf-16-le", "utf-16-be") if (item := _strict(data, name)) is not None]
    sound = [item for item in found if _share_of_text(item.text) > 0.98]
    # In the wrong order of bytes the characters come from all over Unicode.
    return min(sound, key=lambda item: len({ord(char) >> 8 for char in item.text}), default=None)


def _share_of_text(text: str) -> float:
    sample = text[:20_000]
    return sum(char in "\n\r\t" or unicodedata.category(char)[0] != "C" for char in sample) / len(sample)


def _strict(data: bytes, encoding: str) -> Decoded | None:
    try:
        return Decoded(data.decode(encoding), encoding, guessed=True)
    except UnicodeDecodeError:
        return None


def _declared(data: bytes) -> Decoded | None:
    match = _META_CHARSET.search(data[:8192])
    if match is None:
        return None
    name = (match[1] or match[2]).decode("ascii", errors="replace")
    try:
        # The web reads Latin-1 as its superset windows-1252, and so do the pages that say so.
        encoding = codecs.lookup(name).name
        encoding = "cp1252" if encoding in {"iso8859-1", "ascii"} else encoding
        return Decoded(data.decode(encoding), encoding, guessed=False)
    except (LookupError, UnicodeDecodeError):
        return None


def _guess(data: bytes) -> Decoded:
    for encoding in (likeliest(_telling(data)), "cp1252"):
        if encoding is not None:
            try:
                return Decoded(data.decode(encoding), encoding, guessed=True)
            except UnicodeDecodeError:
                continue
    return Decoded(data.decode("latin-1"), "latin-1", guessed=True)


def _telling(data: bytes) -> bytes:
    """The lines that can tell encodings apart, from the whole file but bounded: pure ASCII lines say nothing."""
    # UTF-8 was ruled out, so the non-ASCII lines carry the whole answer; a cut inside a character is avoided by lines.
    telling, size = [], 0
    for line in data.split(b"\n"):
        if not line.isascii():
            telling.append(line)
            size += len(line)
            if size > 30_000:
                break
    return b"\n".join(telling)
