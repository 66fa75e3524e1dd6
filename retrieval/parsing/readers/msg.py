"""Outlook messages: an old Office container with one stream for each property."""

import re
import struct
from collections.abc import Sequence

import olefile

from retrieval.parsing.archive import damaged
from retrieval.parsing.blocks import Reading
from retrieval.parsing.clues import SURE, Clues, Format
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.messages import Message, message_reading
from retrieval.parsing.readers.rtf import rtf_text
from retrieval.parsing.source import Source

_MIME = "application/vnd.ms-outlook"
_HEAD = {"From": "0C1A", "To": "0E04", "Cc": "0E03", "Subject": "0037"}
_PLAIN, _HTML, _RTF = "1000", "1013", "1009"
_FILE_NAMES = ("3707", "3704", "3001")
_DATE = re.compile(r"^Date:\s*(.+)$", re.MULTILINE)
# What compressed RTF may refer back to before it said anything (MS-OXRTFCP 2.1.3.1.4).
_DICTIONARY = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor "
    b"MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par "
    b"\\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_DEEPEST = 10


def read_msg(source: Source) -> Reading:
    """A message as one page. Errors: ReadError when it is damaged or holds no text."""
    try:
        with olefile.OleFileIO(source.path) as ole:
            message = _Storage(ole, ()).message()
    except (OSError, ValueError, IndexError, struct.error) as exc:
        raise damaged(source, "an Outlook message") from exc
    return message_reading(message, source, name="msg", mime=_MIME)


class _Storage:
    """One message, which may be attached to another."""

    def __init__(self, ole: olefile.OleFileIO, path: Sequence[str]) -> None:
        self._ole = ole
        self._path = list(path)

    def message(self) -> Message:
        if len(self._path) > _DEEPEST:
            raise ValueError("messages in messages without end")
        message = Message(head={key: self._text(tag) for key, tag in _HEAD.items()})
        if date := _DATE.search(self._text("007D")):
            message.head["Date"] = date[1].strip()
        message.bodies.extend(self._bodies())
        names = {entry[len(self._path)] for entry in self._ole.listdir() if len(entry) > len(self._path) + 1}
        for name in sorted(item for item in names if item.startswith("__attach_version1.0_")):
            self._attachment(name, message)
        return message

    def _bodies(self) -> list[tuple[str, str]]:
        if html := self._bytes(_HTML, "0102") or self._text(_HTML).encode():
            return [("html", decode(html, declared=True).text)]
        if plain := self._text(_PLAIN):
            return [("plain", plain)]
        if packed := self._bytes(_RTF, "0102"):
            return [("plain", rtf_text(unpacked(packed).decode("latin-1")).replace("|\n", "\n"))]
        return []

    def _attachment(self, name: str, message: Message) -> None:
        inner = _Storage(self._ole, [*self._path, name])
        if self._ole.exists([*self._path, name, "__substg1.0_3701000D"]):
            message.inner.append(_Storage(self._ole, [*self._path, name, "__substg1.0_3701000D"]).message())
            return
        title = next((text for tag in _FILE_NAMES if (text := inner._text(tag))), "unnamed")
        if inner._text("3712") or inner._text("3713"):
            message.pictures.append(title)
        elif data := inner._bytes("3701", "0102"):
            message.attachments.append((title, data))

    def _text(self, tag: str) -> str:
        if data := self._bytes(tag, "001F"):
            return data.decode("utf-16-le", errors="replace").rstrip("\x00")
        return decode(self._bytes(tag, "001E")).text.rstrip("\x00")

    def _bytes(self, tag: str, kind: str) -> bytes:
        path = [*self._path, f"__substg1.0_{tag}{kind}"]
        if not self._ole.exists(path):
            return b""
        data: bytes = self._ole.openstream(path).read()
        return data


def unpacked(data: bytes) -> bytes:
    """RTF out of Outlook's own compression (MS-OXRTFCP). Errors: ValueError when it is neither form."""
    size, raw_size, kind = struct.unpack_from("<III", data)
    if kind == 0x414C454D:
        return data[16 : 16 + raw_size]
    if kind != 0x75465A4C:
        raise ValueError("neither compressed nor plain RTF")
    window = bytearray(_DICTIONARY.ljust(4096, b"\x00"))
    write, at, out = len(_DICTIONARY), 16, bytearray()
    while at < min(len(data), size + 4):
        flags, at = data[at], at + 1
        for bit in range(8):
            if flags >> bit & 1:
                token = int.from_bytes(data[at : at + 2], "big")
                at += 2
                offset, length = token >> 4, (token & 15) + 2
                if offset == write % 4096:
                    return bytes(out)
                for i in range(length):
                    out.append(window[(offset + i) % 4096])
                    window[write % 4096] = out[-1]
                    write += 1
            elif at < len(data):
                window[write % 4096] = data[at]
                out.append(data[at])
                write, at = write + 1, at + 1
    return bytes(out)


def _claims(clues: Clues) -> int:
    return SURE if any(name.startswith("__properties_version1.0") for name in clues.streams) else 0


FORMATS = (Format("msg", _MIME, "", _claims, read_msg),)
