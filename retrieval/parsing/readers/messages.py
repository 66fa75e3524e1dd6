"""What every kind of message is laid out as: its head, its text, then each attachment as it can be read."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PageBuilder, Reading
from retrieval.parsing.readers.html import html_blocks
from retrieval.parsing.readers.text import text_blocks
from retrieval.parsing.source import Source

_PARAGRAPH = re.compile(r"\n\s*\n")
_ADDRESS = re.compile(r"<?(?:https?://|mailto:|cid:)\S+")
_NO_LETTERS = re.compile(r"[\W_]+")
_SHOWN = ("From", "To", "Cc", "Date", "Subject")


@dataclass
class Message:
    """A message taken apart."""

    head: dict[str, str] = field(default_factory=dict)
    bodies: list[tuple[str, str]] = field(default_factory=list)
    """`html` or `plain`, and the text."""
    attachments: list[tuple[str, bytes]] = field(default_factory=list)
    inner: list["Message"] = field(default_factory=list)
    """Messages forwarded inside this one."""
    pictures: list[str] = field(default_factory=list)
    """Names of pictures that are shown inside the text: decoration, not read."""
    warnings: list[str] = field(default_factory=list)

    def attachments_unread(self, name: str) -> None:
        """Note one in a form of Outlook's own."""
        self.pictures.append(name)
        self.warnings.append(
            f"Attachment not read: “{name}” holds a message in a form that only Outlook reads. Ask for it as HTML or "
            "plain text, or save it in Outlook as .msg and upload that."
        )


def message_reading(message: Message, source: Source, *, name: str, mime: str) -> Reading:
    """A message as one page; an attachment that cannot be read is named and takes nothing else with it."""
    builder = PageBuilder()
    warnings: list[str] = []
    names: list[str] = []
    _add(message, source, builder, 1, (warnings, names))
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” is a message without any text.", reason="empty")
    metadata: dict[str, object] = {key.lower(): value for key, value in message.head.items() if value}
    if subject := message.head.get("Subject"):
        metadata["title"] = subject
    if names:
        metadata["attachments"] = names
    return Reading(name, mime, (page,), paged=False, metadata=metadata, warnings=tuple(warnings))


def _add(
    message: Message, source: Source, builder: PageBuilder, level: int, found: tuple[list[str], list[str]]
) -> None:
    warnings, names = found
    head = [f"{key}: {message.head[key]}" for key in _SHOWN if message.head.get(key)]
    if subject := message.head.get("Subject"):
        builder.add("heading", subject, level=level)
    builder.add("paragraph", "\n".join(head))
    for kind, text in message.bodies:
        if kind == "html":
            html_blocks(text, builder)
        else:
            text_blocks(text, builder)
    warnings.extend(message.warnings)
    names.extend(message.pictures)
    for name, data in message.attachments:
        names.append(name)
        attach(source, builder, name, data, (level + 1, warnings))
    for inner in message.inner:
        _add(inner, source, builder, level + 1, found)


def attach(source: Source, builder: PageBuilder, name: str, data: bytes, at: tuple[int, list[str]]) -> None:
    """Add what an attached file holds under its name; `at`: heading level, and where warnings go."""
    level, warnings = at
    try:
        reading = source.inside(data, name)
    except ReadError as error:
        if source.budget.unpacked < 0:
            raise
        # What could be done about it is for whoever sent it: the reason is enough.
        warnings.append(f"Attachment not read: {error.message.split('. ')[0].rstrip('.')}.")
        builder.add("heading", name, level=level)
        return
    warnings.extend(f"{name}: {warning}" for warning in reading.warnings)
    builder.add("heading", name, level=level)
    for page in reading.pages:
        builder.insert(page, level=level)


def unique_bodies(bodies: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Of two forms of one text (plain and HTML) the HTML, and those paragraphs that only the plain one has."""
    kept: list[tuple[str, str]] = []
    for kind, text in bodies:
        if text.strip():
            kept.append((kind, text))
    if len(kept) != 2 or {kind for kind, _ in kept} != {"plain", "html"}:
        return kept
    plain, html = sorted(kept, key=lambda item: item[0] == "html")
    rendered = PageBuilder()
    html_blocks(html[1], rendered)
    shown = _letters(rendered.page().text)
    if not shown:
        return [plain]
    own = [
        part for part in _PARAGRAPH.split(plain[1]) if len(part.split()) > 2 and _letters(part) not in shown
    ]
    return [html, ("plain", "\n\n".join(own))] if own else [html]


def _letters(text: str) -> str:
    """What two forms of one text share: no addresses, blanks, marks and case."""
    return _NO_LETTERS.sub("", _ADDRESS.sub("", text)).casefold()
