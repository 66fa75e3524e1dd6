"""E-mail messages: every part decoded as it says, attachments read as the files they are."""

import binascii
import email.message
import email.policy
import re
from dataclasses import replace
from email.errors import MessageError
from email.header import decode_header, make_header

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Page, Reading
from retrieval.parsing.clues import LIKELY, SURE, Clues, Format
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.messages import Message, message_reading, unique_bodies
from retrieval.parsing.source import Source

_MIME = "message/rfc822"
_KNOWN = re.compile(
    r"^(from|to|cc|subject|date|received|mime-version|return-path|message-id|content-type|reply-to|delivered-to|"
    r"x-[\w-]+|dkim-signature):",
    re.IGNORECASE,
)
_HEADER_LINE = re.compile(r"^[!-9;-~]+:|^[ \t]|^From ")
_ENVELOPE = re.compile(
    rb"(?:\A|(?<=\n\n)|(?<=\r\n\r\n))From \S{1,300} .{1,100}\d\d:\d\d.{0,100}\r?\n(?=[!-9;-~]+:)"
)
"""What a mailbox writes before each of its messages."""
_QUOTED = re.compile(rb"^>From ", re.MULTILINE)
_UUENCODED = re.compile(r"^begin [0-7]{3,4} (.+)\n((?:.+\n)*?)(?:[` ]?\n)?end$", re.MULTILINE)
_FOLD = re.compile(r"\r?\n[ \t]")
_CARDS = {"text/calendar", "text/vcard", "text/x-vcard", "text/directory"}
_FOR_MACHINES = {"text/css", "text/javascript", "text/x-amp-html"}
_ONE_BYTE = re.compile(r"(?:iso-?8859|windows-125|cp125|latin)", re.IGNORECASE)
_DEEPEST = 20
_TNEF = b"\x78\x9f\x3e\x22"
"""Outlook's own form of a whole message, which other programs show as winmail.dat."""


def read_eml(source: Source) -> Reading:
    """A message as one page, a mailbox as a page for each message. Errors: ReadError when there is no text."""
    data = source.data()
    starts = [match.start() for match in _ENVELOPE.finditer(data)] if data.startswith(b"From ") else []
    if len(starts) < 2:
        return _read(data, source)
    pages: list[Page] = []
    warnings: list[str] = []
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        try:
            reading = _read(_QUOTED.sub(b"From ", data[start:end].lstrip()), source)
        except ReadError as error:
            if source.budget.unpacked < 0:
                raise
            warnings.append(error.message)
            continue
        warnings.extend(reading.warnings)
        pages.append(replace(reading.pages[0], number=len(pages) + 1))
    if not pages:
        raise ReadError(f"“{source.name}” is a mailbox without any text.", reason="empty")
    return Reading("eml", "application/mbox", tuple(pages), paged=False, warnings=tuple(warnings))


def _read(data: bytes, source: Source) -> Reading:
    parsed = email.message_from_bytes(data, policy=email.policy.compat32)
    return message_reading(_message(parsed, source, 0), source, name="eml", mime=_MIME)


def _message(parsed: "email.message.Message[str, str]", source: Source, depth: int) -> Message:
    if depth > _DEEPEST:
        raise ReadError(
            f"“{source.name}” holds messages in messages, more than {_DEEPEST} deep; it was not read.",
            reason="bomb",
        )
    message = Message(head={key: _header(parsed, key) for key in ("From", "To", "Cc", "Date", "Subject")})
    _part(parsed, message, source, depth)
    return message


def _part(part: email.message.Message, message: Message, source: Source, depth: int) -> None:
    kind = part.get_content_type()
    if kind == "message/rfc822" or (kind.startswith("message/") and part.is_multipart()):
        # A delivery report's status fields are messages of headers only.
        inner = part.get_payload()
        for item in inner if isinstance(inner, list) else []:
            if isinstance(item, email.message.Message):
                message.inner.append(_message(item, source, depth + 1))
    elif part.is_multipart():
        children = [item for item in part.get_payload() if isinstance(item, email.message.Message)]
        if kind == "multipart/alternative":
            _alternative(children, message, source, depth)
        else:
            for item in children:
                _part(item, message, source, depth + 1)
    else:
        _leaf(part, message)


def _alternative(children: list[email.message.Message], message: Message, source: Source, depth: int) -> None:
    forms = Message()
    for item in children:
        _part(item, forms, source, depth + 1)
    message.bodies.extend(unique_bodies(forms.bodies))
    message.attachments.extend(forms.attachments)
    message.inner.extend(forms.inner)
    message.pictures.extend(forms.pictures)


def _leaf(part: email.message.Message, message: Message) -> None:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return
    name = _filename(part)
    if data.startswith(_TNEF):
        message.attachments_unread(name or "winmail.dat")
        return
    kind = part.get_content_type()
    if kind in _CARDS:
        # Their lines are parted anywhere, and what would end a value is written otherwise.
        data = _FOLD.sub("", _text(data, part)).replace("\\n", "\n").replace("\\,", ",").encode()
    text = part.get_content_maintype() == "text" and kind not in _FOR_MACHINES
    if part.get_content_disposition() == "attachment" or (name and not text):
        if kind.startswith("image/") and part.get_content_disposition() != "attachment":
            message.pictures.append(name)
        else:
            message.attachments.append((name or "unnamed", data))
    elif text and kind not in _CARDS:
        form = "html" if kind == "text/html" else "plain"
        body = _text(data, part)
        message.bodies.append((form, body if form == "html" else _without_files(body, message)))
    elif data.strip() and not kind.startswith("image/") and kind not in _FOR_MACHINES:
        message.attachments.append((name or kind.replace("/", "."), data))


def _without_files(body: str, message: Message) -> str:
    """Files that old programs write into the text become attachments. What is none stays as it is."""

    def attach(found: re.Match[str]) -> str:
        try:
            data = b"".join(map(binascii.a2b_uu, found[2].splitlines()))
        except ValueError:
            return found[0]
        message.attachments.append((found[1].strip(), data))
        return ""

    return _UUENCODED.sub(attach, body.replace("\r\n", "\n"))


def _text(data: bytes, part: email.message.Message) -> str:
    charset = part.get_content_charset()
    # UTF-8 under the name of an older encoding is common, and no text of that is UTF-8 by chance.
    lies = charset and _ONE_BYTE.match(charset) and decode(data).encoding == "utf-8"
    if charset and not lies and charset not in {"us-ascii", "ascii"}:
        try:
            return data.decode(charset)
        except (LookupError, ValueError):
            pass
    # Unknown, wrong or none at all: the bytes themselves say more.
    return decode(data, declared=True).text


def _filename(part: email.message.Message) -> str:
    try:
        name = part.get_filename()
    except ValueError:
        # The name of its encoding holds a NUL.
        return ""
    return _decoded(str(name)).replace("/", "_") if name else ""


def _header(parsed: email.message.Message, key: str) -> str:
    value = parsed.get(key)
    return " ".join(_decoded(str(value)).split()) if value is not None else ""


def _decoded(value: str) -> str:
    try:
        return str(make_header(decode_header(value)))
    except (LookupError, UnicodeError, ValueError, MessageError):
        raw = value.encode("utf-8", "surrogateescape")
        return decode(raw).text


def _claims(clues: Clues) -> int:
    known = 0
    for line in clues.text.lstrip("\ufeff\r\n").splitlines()[:80]:
        if not _HEADER_LINE.match(line):
            break
        known += bool(_KNOWN.match(line))
    if known >= 3:
        return SURE
    return LIKELY if known and clues.suffix in {".eml", ".mht", ".mhtml"} else 0


FORMATS = (Format("eml", _MIME, "e-mail (.eml, .msg)", _claims, read_eml),)
