"""Plain text in any encoding, one paragraph a block."""

import re

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PageBuilder, Reading, clean
from retrieval.parsing.clues import FALLBACK, Format
from retrieval.parsing.decoding import Decoded, decode
from retrieval.parsing.source import Source

_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def read_text(source: Source) -> Reading:
    """A text file as one page. Errors: ReadError when it holds no character."""
    decoded = decode(source.data())
    builder = PageBuilder()
    text_blocks(decoded.text, builder)
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” holds no text, only blanks.", reason="empty")
    return Reading(
        "text",
        "text/plain",
        (page,),
        paged=False,
        metadata={"encoding": decoded.encoding},
        warnings=notes(decoded),
    )


def text_blocks(text: str, builder: PageBuilder) -> None:
    """Blank lines part paragraphs."""
    for paragraph in _BLANK_LINES.split(clean(text)):
        builder.add("paragraph", paragraph)


def notes(decoded: Decoded) -> tuple[str, ...]:
    """The warning that an encoding was guessed, if it was, in part or as a whole."""
    if not decoded.guessed:
        return ()
    if decoded.strays:
        strays = (
            f"The file is UTF-8, but {decoded.strays} bytes in it are not; they were read as Windows-1252. If letters "
            "look wrong, save it as UTF-8 and upload it again."
        )
        return (strays,)
    warning = (
        f"The encoding is not stated in the file; it was read as {decoded.encoding}. "
        "If letters look wrong, save it as UTF-8 and upload it again."
    )
    return (warning,)


FORMATS = (
    Format(
        "text",
        "text/plain",
        "plain text",
        lambda clues: FALLBACK if clues.text else 0,
        read_text,
    ),
)
