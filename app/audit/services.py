"""The one function that writes to the audit log."""

from uuid import UUID

from app.audit.acting import actor_present
from app.audit.models import AuditEntry, Outcome, Verb
from app.common.logs import request_id_var

__all__ = ["Verb", "audit"]


def audit(  # noqa: PLR0913 - one keyword for each column
    verb: Verb,
    *,
    object_kind: str = "",
    object_id: object = "",
    team_id: UUID | None = None,
    before: object = "",
    after: object = "",
    reason: str = "",
    refused: bool = False,
    actor_account: UUID | None = None,
) -> None:
    """Write down an act, in the transaction of the act itself: there is neither without the other.

    The actor and the request's id are those of the present request unless an actor is given. `before` and `after` are
    settings, never text that somebody wrote. Longer ones are cut.
    """
    account, key = actor_present()
    AuditEntry.objects.create(
        verb=verb,
        outcome=Outcome.REFUSED if refused else Outcome.OK,
        actor_account=actor_account or account,
        actor_key=key,
        team_id=team_id,
        object_kind=object_kind[:40],
        object_id=str(object_id)[:100],
        before=str(before)[:200],
        after=str(after)[:200],
        reason=reason[:500],
        request_id=request_id_var.get()[:36],
    )
