"""Archives that may be hostile: counted and measured before and while they are unpacked."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from xml.etree import ElementTree as ET

from retrieval.errors import ReadError
from retrieval.parsing.source import Source

DAMAGED = (zlib.error, zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError, struct.error)
"""What the library raises for a member that is damaged inside."""
_PIECE = 1 << 16
_RATIO_FROM = 20_000_000
ENCRYPTED = 0x1


def archive_members(archive: zipfile.ZipFile, source: Source) -> set[str]:
    """Names of all members. Errors: ReadError for too many, or for one that points outside the archive."""
    infos = archive.infolist()
    if len(infos) > source.limits.members:
        raise _bomb(source, f"{len(infos):,} parts")
    for info in infos:
        path = PurePosixPath(info.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise ReadError(
                f"“{source.name}” holds a part named “{info.filename[:80]}” that points outside of it; "
                "such a file is not opened.",
                reason="bomb",
            )
    return {info.filename for info in infos}


def archive_checked(source: Source, *, whole: bool = True) -> io.BytesIO:
    """A copy of the archive that is known to unpack within the limits. Errors: ReadError, zipfile.BadZipFile.

    Every member is unpacked once and counted, because the sizes in an archive's directory can lie. `whole`: a damaged
    member damages all of it.
    """
    data = source.data()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive_members(archive, source)
        total = 0
        for info in archive.infolist():
            if info.flag_bits & ENCRYPTED:
                continue
            try:
                for size in _sizes(archive, info):
                    total += size
                    source.budget.unpacked -= size
                    if source.budget.unpacked < 0:
                        raise _bomb(source, f"more than {source.limits.unpacked // 1_000_000:,} MB")
                    if total > _RATIO_FROM and total > source.limits.ratio * len(data):
                        raise _bomb(source, f"more than {source.limits.ratio} times its size")
            except DAMAGED as exc:
                if whole:
                    raise zipfile.BadZipFile(str(exc)) from exc
        source.budget.members -= len(archive.infolist())
        if source.budget.members < 0:
            raise _bomb(source, f"more than {source.limits.members:,} parts")
    return io.BytesIO(data)


def _sizes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[int]:
    with archive.open(info) as member:
        while piece := member.read(_PIECE):
            yield len(piece)


def package(source: Source) -> zipfile.ZipFile:
    """An Office document, OpenDocument file or e-book as an archive within the limits and without XML entities.

    Errors: ReadError, zipfile.BadZipFile.
    """
    archive = zipfile.ZipFile(archive_checked(source))
    for info in archive.infolist():
        if info.filename.endswith((".xml", ".rels", ".opf")):
            refuse_entities(archive.read(info), source)
    return archive


def refuse_entities(data: bytes, source: Source) -> None:
    """No document declares XML entities; one that does is made to blow up or to read other files."""
    # UTF-16 hides the declaration from a search for its ASCII bytes.
    if b"<!ENTITY" in data.replace(b"\x00", b""):
        raise ReadError(
            f"“{source.name}” declares XML entities, which no document needs and which can read other files or "
            "exhaust a server; it was not opened.",
            reason="bomb",
        )


def xml_root(archive: zipfile.ZipFile, name: str) -> ET.Element:
    """The root of one part of a package. Errors: KeyError when there is none, ET.ParseError."""
    return ET.fromstring(archive.read(name))  # noqa: S314 - `package` refused entities


def damaged(source: Source, what: str) -> ReadError:
    """`what`: "a Word document"."""
    return ReadError(
        f"“{source.name}” is {what} that is damaged inside. Open it in the program that made it and save it again."
    )


def protected(source: Source, *, wrong: bool = False) -> ReadError:
    """The file needs a password, or another than the one given."""
    if wrong:
        return ReadError(
            f"The password for “{source.name}” is wrong, so nothing in it can be read. Try again with the right one, "
            "or save a copy without a password and upload that.",
            reason="encrypted",
        )
    return ReadError(
        f"“{source.name}” is encrypted and needs a password, so nothing in it can be read. "
        "Give the password, or save a copy without one and upload that.",
        reason="encrypted",
    )


def _bomb(source: Source, what: str) -> ReadError:
    return ReadError(
        f"“{source.name}” unpacks to {what}, as a file made to exhaust a server would. It was not opened.",
        reason="bomb",
    )
