"""E-mail messages: every part decoded as it says, attachments read as the files they are."""

import email.message
import email.policy
import re
from email.errors import MessageError
from email.header import decode_header, make_header

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Reading
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
_DEEPEST = 20
_TNEF = b"\x78\x9f\x3e\x22"
"""Outlook's own form of a whole message, which other programs show as winmail.dat."""


def read_eml(source: Source) -> Reading:
    """A message as one page. Errors: ReadError when it holds no text."""
    parsed = email.message_from_bytes(source.data(), policy=email.policy.compat32)
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
    text = part.get_content_maintype() == "text"
    if part.get_content_disposition() == "attachment" or (name and not text):
        if kind.startswith("image/") and part.get_content_disposition() != "attachment":
            message.pictures.append(name)
        else:
            message.attachments.append((name or "unnamed", data))
    elif text and kind != "text/calendar":
        form = "html" if kind == "text/html" else "plain"
        message.bodies.append((form, _text(data, part)))
    elif data.strip() and not kind.startswith("image/"):
        message.attachments.append((name or kind.replace("/", "."), data))


def _text(data: bytes, part: email.message.Message) -> str:
    charset = part.get_content_charset()
    if charset and charset not in {"us-ascii", "ascii"}:
        try:
            return data.decode(charset)
        except (LookupError, UnicodeDecodeError):
            pass
    # Unknown, wrong or none at all: the bytes themselves say more.
    return decode(data, declared=True).text


def _filename(part: email.message.Message) -> str:
    name = part.get_filename()
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
