"""Which reader takes which file. Readers are found by looking: one file in `readers/` that declares a FORMAT."""

import importlib
import pkgutil
from dataclasses import replace
from functools import cache

import puremagic

from retrieval.errors import ReadError
from retrieval.parsing import readers
from retrieval.parsing.archive import protected
from retrieval.parsing.blocks import LOW_CONFIDENCE, Page, Reading, clean, page_ranges
from retrieval.parsing.clues import Clues, Format
from retrieval.parsing.decoding import only_bom
from retrieval.parsing.source import Budget, Source

_LOCKED_OFFICE = "EncryptedPackage"


@cache
def formats() -> tuple[Format, ...]:
    """All declared formats, by name."""
    found: list[Format] = []
    for module in pkgutil.iter_modules(readers.__path__):
        declared = getattr(importlib.import_module(f"{readers.__name__}.{module.name}"), "FORMATS", ())
        found.extend(declared)
    return tuple(sorted(found, key=lambda item: item.name))


def parse(source: Source) -> Reading:
    """Read a file in this very process, as what its content is. Errors: ReadError."""
    size = source.path.stat().st_size
    if size > source.limits.bytes:
        raise ReadError(
            f"“{source.name}” has {size / 1e6:,.0f} MB; files up to "
            f"{source.limits.bytes / 1e6:,.0f} MB are read. Split it.",
            reason="too_large",
        )
    if source.depth == 0:
        source = replace(source, parse=parse, budget=Budget(source.limits))
    reading = sniff(source).read(source)
    if sum(len(page.text) for page in reading.pages) > source.limits.characters:
        raise ReadError(
            f"“{source.name}” holds more than "
            f"{source.limits.characters / 1e6:,.0f} million characters of text. Split it.",
            reason="too_large",
        )
    metadata = {key: _cleaned(value) for key, value in reading.metadata.items()}
    return replace(reading, metadata=metadata, warnings=(*reading.warnings, *_recognised(reading.pages)))


def picture(source: Source, number: int) -> bytes:
    """WebP of one page, drawn in this very process. Errors: ReadError, also where there is no such page."""
    drawer = sniff(source).picture
    if drawer is None:
        raise ReadError(
            f"“{source.name}” is of a format without pages to be shown; its text is all there is.",
            reason="unpictured",
        )
    return drawer(source, number)


def sniff(source: Source) -> Format:
    """The format that claims the content. Errors: ReadError for what is empty, locked or nobody's."""
    clues = Clues(source)
    if not clues.head:
        raise ReadError(f"“{source.name}” is empty, so there is nothing to read.", reason="empty")
    if only_bom(clues.head):
        raise ReadError(
            f"“{source.name}” is a text file without text: it holds only a byte order mark, which programs write "
            "first. Whatever made it did not finish; make it again and upload that.",
            reason="empty",
        )
    best = max(formats(), key=lambda item: item.claims(clues))
    if best.claims(clues):
        return best
    if _LOCKED_OFFICE in clues.streams:
        raise protected(source)
    raise _unsupported(source, clues)


def _recognised(pages: tuple[Page, ...]) -> tuple[str, ...]:
    """What a reader of the text should know about pages whose text was recognised from pictures."""
    scanned = [page.number for page in pages if page.ocr]
    if not scanned:
        return ()
    sure = min(page.confidence or 0.0 for page in pages if page.ocr)
    doubtful = [page.number for page in pages if page.ocr and (page.confidence or 0.0) < LOW_CONFIDENCE]
    where = page_ranges(scanned)
    sure_of = (
        f"Scanned: the text of {where} was recognised from pictures (OCR), confidence at least {int(sure * 100)}%. "
        "Check it against the original."
    )
    notes = [sure_of]
    if doubtful:
        notes.append(f"Low confidence on {page_ranges(doubtful)}: expect wrong words there.")
    return tuple(notes)


def _cleaned(value: object) -> object:
    """Titles, authors and bookmarks come from the file as raw as its text."""
    if isinstance(value, str):
        return clean(value)
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


def _unsupported(source: Source, clues: Clues) -> ReadError:
    labels = ", ".join(sorted((item.label for item in formats() if item.label), key=str.casefold))
    return ReadError(
        f"“{source.name}” is {_kind(clues)}, which no reader takes. Tessera reads {labels}; "
        "save or export it as one of these and upload that.",
        reason="unsupported",
    )


def _kind(clues: Clues) -> str:
    if clues.streams:
        return "an old Office file of another kind than Word, Excel, PowerPoint and Outlook"
    try:
        guess = puremagic.from_string(clues.source.data()[:65_536]).lstrip(".").upper()
    except puremagic.PureError:
        guess = ""
    if not guess:
        return "a file of control characters and bytes that is no text and no document"
    return f"{'an' if guess[0] in 'AEFHILMNORSX' else 'a'} {guess} file"
