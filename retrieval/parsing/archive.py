"""Archives that may be hostile: counted and measured before and while they are unpacked."""

import io
import zipfile
from pathlib import PurePosixPath

from retrieval.errors import ReadError
from retrieval.parsing.source import Source

_PIECE = 1 << 16
_RATIO_FROM = 20_000_000


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


def archive_checked(source: Source) -> io.BytesIO:
    """A copy of the archive that is known to unpack within the limits. Errors: ReadError, zipfile.BadZipFile.

    Every member is unpacked once and counted, because the sizes in an archive's directory can lie.
    """
    data = source.data()
    total = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive_members(archive, source)
        for info in archive.infolist():
            with archive.open(info) as member:
                while piece := member.read(_PIECE):
                    total += len(piece)
                    if total > source.limits.unpacked:
                        raise _bomb(source, f"more than {source.limits.unpacked // 1_000_000:,} MB")
                    if total > _RATIO_FROM and total > source.limits.ratio * len(data):
                        raise _bomb(source, f"more than {source.limits.ratio} times its size")
    return io.BytesIO(data)


def _bomb(source: Source, what: str) -> ReadError:
    return ReadError(
        f"“{source.name}” unpacks to {what}, as a file made to exhaust a server would. It was not opened.",
        reason="bomb",
    )
