"""ZIP archives: each file inside is read by its own reader and becomes a page with its name above it."""

import zipfile

from retrieval.errors import ReadError
from retrieval.parsing.archive import DAMAGED, ENCRYPTED, archive_checked, damaged, protected
from retrieval.parsing.blocks import Page, PageBuilder, Reading
from retrieval.parsing.clues import FALLBACK, Clues, Format
from retrieval.parsing.decoding import decode
from retrieval.parsing.source import Source

_MIME = "application/zip"
_NOISE = ("__MACOSX/", ".DS_Store", "Thumbs.db", "desktop.ini")
_UTF8_NAME = 0x800


def read_zip(source: Source) -> Reading:
    """A page for each file that could be read; those that could not are named with their reason.

    Errors: ReadError when none could, and for archives that are damaged, hostile or locked.
    """
    try:
        with zipfile.ZipFile(archive_checked(source, whole=False)) as archive:
            return _read(archive, source)
    except DAMAGED as exc:
        raise damaged(source, "a ZIP archive") from exc


def _read(archive: zipfile.ZipFile, source: Source) -> Reading:
    pages: list[Page] = []
    warnings: list[str] = []
    files: list[object] = []
    for info in archive.infolist():
        name = _name(info)
        if info.is_dir() or any(noise in name for noise in _NOISE):
            continue
        try:
            reading = source.inside(_content(archive, info, source), name)
        except ReadError as error:
            if source.budget.unpacked < 0:
                # What is left may not be unpacked either.
                raise
            warnings.append(error.message)
            continue
        files.append(name)
        warnings.extend(f"{name}: {warning}" for warning in reading.warnings)
        pages.append(_page(len(pages) + 1, name, reading))
    if not pages:
        raise ReadError(
            f"Nothing in “{source.name}” could be read. {' '.join(warnings)[:1000] or 'The archive is empty.'}",
            reason="unsupported" if warnings else "empty",
        )
    return Reading(
        "zip", _MIME, tuple(pages), paged=False, metadata={"files": files}, warnings=tuple(warnings)
    )


def _page(number: int, name: str, reading: Reading) -> Page:
    builder = PageBuilder(number)
    builder.add("heading", name)
    for page in reading.pages:
        builder.insert(page, level=1)
    sure = [page.confidence for page in reading.pages if page.confidence is not None]
    return builder.page(ocr=any(page.ocr for page in reading.pages), confidence=min(sure, default=None))


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, source: Source) -> bytes:
    password = source.password.encode() if source.password else None
    try:
        return archive.read(info, pwd=password)
    except (*DAMAGED, RuntimeError) as exc:
        if info.flag_bits & ENCRYPTED:
            raise protected(source, wrong=password is not None) from exc
        raise ReadError(
            f"“{_name(info)}” is damaged in the archive and was left out. Pack it again."
        ) from exc


def _name(info: zipfile.ZipInfo) -> str:
    """Names without the UTF-8 mark are in the encoding of whoever packed them."""
    if info.flag_bits & _UTF8_NAME:
        return info.filename
    try:
        return decode(info.filename.encode("cp437")).text
    except UnicodeEncodeError:
        return info.filename


def _claims(clues: Clues) -> int:
    return FALLBACK if clues.members or clues.head.startswith(b"PK\x05\x06") else 0


FORMATS = (Format("zip", _MIME, "ZIP archives of these", _claims, read_zip),)
