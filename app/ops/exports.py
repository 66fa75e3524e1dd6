"""A person's own export: asked for over REST, made by a worker, fetched as one ZIP file, gone after a week."""

import logging
import shutil
import tempfile
import zipfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from app.accounts.models import User
from app.common.clock import now
from app.common.errors import Conflict, NotFound
from app.ops.models import Export
from app.ops.person_export import collections_told, person_export, readable_of
from retrieval.models import Receipt
from retrieval.stores import Gone, scratch, store

log = logging.getLogger(__name__)

KEPT = timedelta(days=7)
_OPEN = (Export.State.QUEUED, Export.State.RUNNING)
_ABANDONED = timedelta(hours=2)
"""An export that takes longer has lost its worker."""


def export_key(export_id: UUID) -> str:
    """What the file of an export is called in the store that web and worker share."""
    return f"exports/{export_id}.zip"


def export_begin(*, user: User) -> Export:
    """A new export, to be enqueued once this is committed; one that is on its way already is given again."""
    User.objects.select_for_update().get(pk=user.pk)
    running = Export.objects.filter(user=user, state__in=_OPEN, created_at__gt=now() - _ABANDONED).first()
    return running or Export.objects.create(user=user, expires_at=now() + KEPT)


def export_make(*, export_id: UUID) -> None:
    """Write the file. Nothing happens when it was begun before, or the person was erased meanwhile."""
    if not Export.objects.filter(pk=export_id, state=Export.State.QUEUED).update(state=Export.State.RUNNING):
        return
    row = Export.objects.select_related("user").get(pk=export_id)
    work = Path(tempfile.mkdtemp(dir=scratch()))
    try:
        told = collections_told(row.user)
        counts = person_export(user=row.user, folder=work / "export", told=told)
        _pack(work / "export", work / "export.zip")
        size = (work / "export.zip").stat().st_size
        store().keep(export_key(export_id), work / "export.zip")
        ended = {"state": Export.State.READY, "size": size, "counts": counts, "collections": list(told)}
    except Exception:
        # Whatever it was, the person reads that it failed and may ask again; the log has the cause.
        log.exception("An export failed.", extra={"data": {"export": str(export_id)}})
        ended = {"state": Export.State.FAILED}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if not Export.objects.filter(pk=export_id).update(ended_at=now(), **ended):
        # The person was erased while it was made.
        export_remove(export_id)


def export_remove(export_id: UUID) -> None:
    """Remove the file, if there is one."""
    store().remove(export_key(export_id))


def _pack(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                packed.write(path, path.relative_to(folder))
    target.chmod(0o600)


def export_get(*, user_id: UUID, export_id: UUID) -> Export:
    """One of the person's own exports. Errors: NotFound, also when its time is over."""
    rows = Export.objects.select_related("user").filter(pk=export_id, user_id=user_id, expires_at__gt=now())
    row = rows.first()
    if row is None or _overtaken(row):
        raise NotFound(
            "There is no such export. They are kept for a week, or until something in them is erased or may not be "
            "read any more; ask for a new one."
        )
    return row


def _overtaken(row: Export) -> bool:
    """Whether it holds text that was erased since it was begun, or that its person may not read now."""
    if not row.collections:
        return False
    erased = Receipt.objects.filter(
        kind=Receipt.Kind.ERASED, collection_id__in=row.collections, created_at__gte=row.created_at
    )
    return erased.exists() or len(readable_of(row.user, row.collections)) < len(row.collections)


def export_open(*, user_id: UUID, export_id: UUID) -> BinaryIO:
    """The file of an export for reading. Errors: NotFound; Conflict while it is not there yet or when it failed."""
    row = export_get(user_id=user_id, export_id=export_id)
    if row.state == Export.State.READY:
        # What came from a bucket has no name any more when this returns, and is there until it is closed.
        with suppress(Gone), store().local(export_key(export_id)) as path:
            return path.open("rb")
    wait = 5 if row.state in _OPEN else None
    raise Conflict(f"This export is {row.state}; there is no file to fetch.", retry_after=wait)


def exports_sweep() -> int:
    """Remove exports whose time is over, that hold what was erased, and what a dead worker left. Returns how many."""
    rows = Export.objects.select_related("user")
    over = [row.pk for row in rows if row.expires_at <= now() or _overtaken(row)]
    for export_id in over:
        export_remove(export_id)
    Export.objects.filter(pk__in=over).delete()
    Export.objects.filter(state__in=_OPEN, created_at__lte=now() - _ABANDONED).update(
        state=Export.State.FAILED, ended_at=now()
    )
    return len(over)
