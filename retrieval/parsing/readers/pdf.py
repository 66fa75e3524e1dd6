"""PDF: PDFium for text and places, recognition for pages that are pictures, pypdf when PDFium cannot open the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

import pypdf
import pypdf.errors
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw

from retrieval.errors import ReadError
from retrieval.parsing import ocr, pdf_extras
from retrieval.parsing.archive import protected
from retrieval.parsing.blocks import Page, PageBuilder, Reading, page_ranges
from retrieval.parsing.clues import SURE, Format
from retrieval.parsing.layout import layout
from retrieval.parsing.pdf_words import PageText, page_text
from retrieval.parsing.pictures import aspect_of, no_page, scale_for, webp
from retrieval.parsing.readers.messages import attach
from retrieval.parsing.readers.text import text_blocks
from retrieval.parsing.source import Source

_MIME = "application/pdf"
_FEW = 40
"""Characters: a page with fewer and a large picture is a scan with a stamp or a number on it."""
_LARGE = 0.3
"""Of the page's area."""
_PYPDF_ERRORS = (
    pypdf.errors.PyPdfError, pypdf.errors.DeprecationError, ValueError, KeyError, TypeError, AttributeError, IndexError,
    RecursionError, OSError, NotImplementedError, AssertionError,
)  # fmt: skip
_PRIVATE = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff]")
_FOR_MACHINES = frozenset({".xml", ".joboptions", ".p7s", ".js"})
"""Attachments that say once more what the pages say, as an electronic invoice does, or nothing to people."""
State = Literal["scan", "garbled", "hidden", "behind", "broken", "unread", "poison"]


@dataclass
class _Found:
    """What was noticed on the way, by page number."""

    pages: list[Page] = field(default_factory=list)
    notes: dict[State, list[int]] = field(default_factory=dict)

    def note(self, state: State, number: int) -> None:
        self.notes.setdefault(state, []).append(number)


def read_pdf(source: Source) -> Reading:
    """A PDF by pages. Errors: ReadError (encrypted, scanned, garbled, damaged, empty, too_large)."""
    try:
        return _with_pdfium(source)
    except pdfium.PdfiumError as exc:
        if getattr(exc, "err_code", None) == pdfium_raw.FPDF_ERR_PASSWORD and _asks_password(source):
            raise protected(source, wrong=bool(source.password)) from exc
        return _with_pypdf(source)


def _with_pdfium(source: Source) -> Reading:
    with pdfium.PdfDocument(source.path, password=source.password) as document:
        document.init_forms()
        if len(document) > source.limits.pages:
            raise _too_many(source, len(document))
        metadata, outline = pdf_extras.about(document)
        found = _Found()
        builder = PageBuilder()
        for number in range(1, len(document) + 1):
            builder = PageBuilder(number, above=builder.path)
            source.at(number)
            if number in source.skip:
                found.note("poison", number)
                found.pages.append(Page(number, "", ()))
                continue
            try:
                found.pages.append(_Page(source, document, found, builder).read(outline.get(number, {})))
            except pdfium.PdfiumError:
                # One bad page does not take the others with it.
                found.note("broken", number)
                found.pages.append(Page(number, "", ()))
        if len(found.notes.get("broken", ())) == len(found.pages):
            raise pdfium.PdfiumError("no page could be loaded")
        notes = list(_attachments(source, document, found, builder, metadata))
    if not any(page.text for page in found.pages):
        raise _nothing_found(source, found)
    warnings = (*_warnings(found), *notes)
    return Reading("pdf", _MIME, tuple(found.pages), paged=True, metadata=metadata, warnings=warnings)


def _attachments(
    source: Source,
    document: pdfium.PdfDocument,
    found: _Found,
    builder: PageBuilder,
    metadata: dict[str, object],
) -> Iterator[str]:
    """Add what attached files hold after the last page, which `builder` grew; yields warnings."""
    place = len(found.pages) + 1
    names: list[str] = []
    for name, data in pdf_extras.attached(document):
        names.append(name)
        source.at(place)
        warnings: list[str] = []
        if place in source.skip or PurePath(name).suffix.lower() in _FOR_MACHINES:
            warnings.append(f"Attachment not read: “{name}”.")
        else:
            attach(source, builder, name, data, (1, warnings))
        yield from warnings
    if names:
        metadata["attachments"] = names
        grown = builder.page()
        found.pages[-1] = replace(found.pages[-1], text=grown.text, blocks=grown.blocks)


class _Page:
    """Decides for one page whether its text is read or recognised."""

    def __init__(
        self, source: Source, document: pdfium.PdfDocument, found: _Found, builder: PageBuilder
    ) -> None:
        self._source = source
        self._document = document
        self._found = found
        self._builder = builder
        self._number = builder.number

    def read(self, titles: dict[str, int]) -> Page:
        page = self._document[self._number - 1]
        try:
            typed = list(pdf_extras.typed_in(page))
            text = page_text(page, typed)
            extra = [item.text for item in typed if item.rect is None]
            # The password is forgotten after reading, so an encrypted page cannot be drawn later.
            aspect = None if self._source.password else aspect_of(*page.get_size())
            if text.characters >= _FEW and not (bad := _garbled(text)):
                self._mark_hidden(page, text)
                return self._laid_out(text, titles, extra, aspect)
            bad = _garbled(text)
            if (read := self._recognised(page, text, bad=bad)) is not None:
                return layout(
                    read.segments,
                    self._builder,
                    titles=titles,
                    extra=extra,
                    ocr=True,
                    confidence=read.confidence,
                    aspect=aspect,
                )
            bad = bad and not any(char.isalpha() for segment in text.segments for char in segment.text)
            if bad:
                self._found.note("garbled", self._number)
            self._mark_hidden(page, text)
            shown = PageText((), (), hidden=False, unmapped=0.0) if bad else text
            return self._laid_out(shown, titles, extra, aspect)
        finally:
            page.close()

    def _laid_out(
        self, text: PageText, titles: dict[str, int], extra: list[str], aspect: float | None
    ) -> Page:
        return layout(
            text.segments, self._builder, titles=titles, asides=text.asides, extra=extra, aspect=aspect
        )

    def _mark_hidden(self, page: pdfium.PdfPage, text: PageText) -> None:
        if text.hidden:
            state: State = "behind" if _pictured(page) >= _LARGE else "hidden"
            self._found.note(state, self._number)

    def _recognised(self, page: pdfium.PdfPage, text: PageText, *, bad: bool) -> ocr.Recognised | None:
        """The text of a page that is a picture, when that is more than its own text says."""
        share = _pictured(page)
        drawn = share >= _LARGE or (not text.characters and (share > 0 or _is_drawn(page)))
        if not (bad or drawn):
            return None
        done = sum(item.ocr for item in self._found.pages)
        if not ocr.available() or done >= self._source.limits.ocr_pages:
            self._found.note("unread" if ocr.available() else "scan", self._number)
            return None
        self._source.progress(self._number, len(self._document))
        width, height = page.get_size()
        scale = min(150 / 72, ocr.LONGEST_SIDE / max(width, height, 1.0))
        read = ocr.recognise(page.render(scale=scale).to_pil())
        # A glyph without a letter may be an ornament; what was read from the picture must be as much.
        least = 0.5 * text.characters if bad else text.characters
        return read if read.characters > least else None


def _pictured(page: pdfium.PdfPage) -> float:
    """Share of the page that its largest picture covers. Dear on crowded pages: ask only where it matters."""
    width, height = page.get_size()
    # Bounds are in the page's own orientation; an area has none.
    areas = (max(0.0, right - left) * max(0.0, top - bottom) for left, bottom, right, top in _pictures(page))
    return max(areas, default=0.0) / (width * height or 1.0)


def _pictures(page: pdfium.PdfPage) -> Iterator[tuple[float, float, float, float]]:
    for item in page.get_objects(filter=[pdfium_raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        try:
            yield item.get_bounds()
        except pdfium.PdfiumError:
            continue


def _is_drawn(page: pdfium.PdfPage) -> bool:
    """Whether lines and areas make up the page: letters may have been turned into outlines."""
    return int(pdfium_raw.FPDFPage_CountObjects(page)) >= 20


def _garbled(text: PageText) -> bool:
    """Whether glyphs have no letters behind them: what the page shows and what a machine reads differ."""
    visible = "".join(" ".join(segment.text for segment in text.segments).split())
    if not visible:
        return False
    # A glyph without a map may still be named for its letter: only together with odd text is it noise.
    if text.unmapped > 0.3 and sum(char.isalpha() for char in visible) < 0.7 * len(visible):
        return True
    if not visible.isascii() and len(_PRIVATE.findall(visible)) > 0.3 * len(visible):
        return True
    return not any(char.isalpha() for char in visible) and sum(
        char.isdigit() for char in visible
    ) < 0.5 * len(visible)


def _asks_password(source: Source) -> bool:
    """Whether the file is truly encrypted: a damaged one can look so to PDFium."""
    try:
        reader = pypdf.PdfReader(source.path, strict=False)
        reader.decrypt("")
        return bool(reader.is_encrypted)
    except pypdf.errors.FileNotDecryptedError:
        return True
    except _PYPDF_ERRORS:
        return False


def _with_pypdf(source: Source) -> Reading:
    pages: list[Page] = []
    broken: list[int] = []
    try:
        reader = pypdf.PdfReader(source.path, strict=False, password=source.password)
        total = len(reader.pages)
    except (pypdf.errors.WrongPasswordError, pypdf.errors.FileNotDecryptedError) as exc:
        raise protected(source, wrong=bool(source.password)) from exc
    except _PYPDF_ERRORS as exc:
        raise _damaged(source) from exc
    if total > source.limits.pages:
        raise _too_many(source, total)
    for number in range(1, total + 1):
        builder = PageBuilder(number)
        try:
            text_blocks(reader.pages[number - 1].extract_text() or "", builder)
        except _PYPDF_ERRORS:
            broken.append(number)
        pages.append(builder.page())
    if not any(page.text for page in pages):
        raise _damaged(source)
    warnings = ["The file is damaged; it was read by a second, simpler reader and may be incomplete."]
    if broken:
        warnings.append(f"Damaged and left out: {page_ranges(broken)}.")
    return Reading("pdf", _MIME, tuple(pages), paged=True, warnings=tuple(warnings))


_SENTENCES: dict[State, str] = {
    "broken": "Damaged and left out: {}.",
    "poison": "The reader stopped twice at {}, which is left out; the rest was read.",
    "scan": "Only pictures, no text, on {}: text recognition (OCR) is not installed here.",
    "unread": "Only pictures on {}, left out: more of them than one file may have recognised (OCR).",
    "garbled": "No letter mapping on {}: its text is noise to a machine and was left out.",
    "hidden": "Text that the page does not show was read on {}.",
    "behind": "Scanned: the text of {} is what another program recognised (OCR); it may hold wrong words.",
}


def _warnings(found: _Found) -> Iterator[str]:
    for state, sentence in _SENTENCES.items():
        if numbers := found.notes.get(state):
            yield sentence.format(page_ranges(numbers))


def _nothing_found(source: Source, found: _Found) -> ReadError:
    if found.notes.get("garbled"):
        return ReadError(
            f"The text in “{source.name}” has no letter mapping: the page looks right, but what a "
            "machine reads is noise. Export the document again with embedded Unicode fonts, or print it to a new PDF.",
            reason="garbled",
        )
    if found.notes.get("scan"):
        return ReadError(
            f"“{source.name}” is scanned: there are only pictures in it, and no question could find anything. "
            "Text recognition (OCR) is not installed here; run it elsewhere and upload the result.",
            reason="scanned",
        )
    return ReadError(
        f"“{source.name}” opens, but no text was found in it, neither written nor in pictures.",
        reason="empty",
    )


def _damaged(source: Source) -> ReadError:
    return ReadError(
        f"“{source.name}” is damaged: two PDF readers found no page in it that they could read. Open it in a viewer "
        "and save it again, or export it anew."
    )


def _too_many(source: Source, pages: int) -> ReadError:
    return ReadError(
        f"“{source.name}” has {pages:,} pages; the limit is {source.limits.pages:,}. Split it and upload the parts.",
        reason="too_large",
    )


def picture_pdf(source: Source, number: int) -> bytes:
    """One page as people see it, with what was typed onto it. Errors: ReadError."""
    try:
        with pdfium.PdfDocument(source.path, password=source.password) as document:
            if not 1 <= number <= len(document):
                raise no_page(source, number)
            document.init_forms()
            page = document[number - 1]
            return webp(page.render(scale=scale_for(*page.get_size())).to_pil())
    except pdfium.PdfiumError as exc:
        if getattr(exc, "err_code", None) == pdfium_raw.FPDF_ERR_PASSWORD:
            raise protected(source, wrong=bool(source.password)) from exc
        raise ReadError(
            f"Page {number} of “{source.name}” is damaged and cannot be drawn; its text is all there is."
        ) from exc


FORMATS = (
    Format("pdf", _MIME, "PDF", lambda c: SURE if b"%PDF-" in c.head[:1024] else 0, read_pdf, picture_pdf),
)
