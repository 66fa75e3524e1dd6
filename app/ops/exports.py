"""A person's own export: asked for over REST, made by a worker, fetched as one ZIP file, gone after a week."""

import logging
import shutil
import tempfile
import zipfile
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings

from app.accounts.models import User
from app.common.clock import now
from app.common.errors import Conflict, NotFound
from app.ops.models import Export
from app.ops.person_export import person_export

log = logging.getLogger(__name__)

KEPT = timedelta(days=7)
_OPEN = (Export.State.QUEUED, Export.State.RUNNING)
_ABANDONED = timedelta(hours=2)
"""An export that takes longer has lost its worker."""


def export_file(export_id: UUID) -> Path:
    """Where the file of an export lies, beside the originals, which web and worker share."""
    return Path(settings.ORIGINALS_DIR) / "exports" / f"{export_id}.zip"


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
    target = export_file(export_id)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    work = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        counts = person_export(user=row.user, folder=work / "export")
        _pack(work / "export", work / "export.zip")
        (work / "export.zip").replace(target)
        ended = {"state": Export.State.READY, "size": target.stat().st_size, "counts": counts}
    except Exception:
        # Whatever it was, the person reads that it failed and may ask again; the log has the cause.
        log.exception("An export failed.", extra={"data": {"export": str(export_id)}})
        ended = {"state": Export.State.FAILED}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if not Export.objects.filter(pk=export_id).update(ended_at=now(), **ended):
        # The person was erased while it was made.
        target.unlink(missing_ok=True)


def _pack(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                packed.write(path, path.relative_to(folder))
    target.chmod(0o600)


def export_get(*, user_id: UUID, export_id: UUID) -> Export:
    """One of the person's own exports. Errors: NotFound, also when its time is over."""
    row = Export.objects.filter(pk=export_id, user_id=user_id, expires_at__gt=now()).first()
    if row is None:
        raise NotFound("There is no such export; they are kept for a week.")
    return row


def export_ready(*, user_id: UUID, export_id: UUID) -> Path:
    """The file of an export. Errors: NotFound; Conflict while it is not there yet or when it failed."""
    row = export_get(user_id=user_id, export_id=export_id)
    path = export_file(export_id)
    if row.state != Export.State.READY or not path.is_file():
        wait = 5 if row.state in _OPEN else None
        raise Conflict(f"This export is {row.state}; there is no file to fetch.", retry_after=wait)
    return path


def exports_sweep() -> int:
    """Remove exports whose time is over, and what a dead worker left. Returns how many."""
    over = list(Export.objects.filter(expires_at__lte=now()).values_list("pk", flat=True))
    for export_id in over:
        export_file(export_id).unlink(missing_ok=True)
    Export.objects.filter(pk__in=over).delete()
    Export.objects.filter(state__in=_OPEN, created_at__lte=now() - _ABANDONED).update(
        state=Export.State.FAILED, ended_at=now()
    )
    return len(over)
