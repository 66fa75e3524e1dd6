"""Which module reads which format: one file a format, all behind one interface."""

from collections.abc import Mapping
from dataclasses import replace

from retrieval.errors import ReadError
from retrieval.parsing import sniff
from retrieval.parsing.blocks import Reading, clean
from retrieval.parsing.docx import read_docx
from retrieval.parsing.html import read_html
from retrieval.parsing.markdown import read_markdown
from retrieval.parsing.pdf import read_pdf
from retrieval.parsing.source import Parser, Source
from retrieval.parsing.text import read_text

PARSERS: Mapping[str, Parser] = {
    "pdf": read_pdf,
    "docx": read_docx,
    "html": read_html,
    "markdown": read_markdown,
    "text": read_text,
}


def parse(source: Source) -> Reading:
    """Read a file in this very process, as what its content is. Errors: ReadError."""
    size = source.path.stat().st_size
    if size > source.limits.bytes:
        raise ReadError(
            f"“{source.name}” has {size / 1e6:.0f} MB; files up to "
            f"{source.limits.bytes / 1e6:.0f} MB are read. Split it.",
            reason="too_large",
        )
    reading = PARSERS[sniff.sniff(source).name](source)
    if sum(len(page.text) for page in reading.pages) > source.limits.characters:
        raise ReadError(
            f"“{source.name}” holds more than "
            f"{source.limits.characters / 1e6:.0f} million characters of text. Split it.",
            reason="too_large",
        )
    return replace(reading, metadata={key: _cleaned(value) for key, value in reading.metadata.items()})


def _cleaned(value: object) -> object:
    """Titles, authors and bookmarks come from the file as raw as its text."""
    if isinstance(value, str):
        return clean(value)
    return [_cleaned(item) for item in value] if isinstance(value, list) else value
