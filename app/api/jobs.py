"""Webhooks of jobs: who hears that a document, an answer or an export has ended.

What is to be told is laid out by triggers (`sql/jobs.sql`); `app.common.delivering` sends it.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet

from app.accounts.selectors import MANAGING_ROLES, Caller, team_of
from app.api.models import JobDelivery, JobEvent, JobWebhook
from app.audit.services import Verb, audit
from app.common import delivering
from app.common.clock import now
from app.common.errors import Conflict, InvalidInput, NotAllowed, NotFound
from app.common.models import uuid7
from app.common.outbound import address_check
from app.common.signing import secret_new

MOST = 20
"""Webhooks of one person, or of one team."""
GIVEN_UP_KEPT = timedelta(days=7)
TEST = "webhook.test"


def _bodies(event_ids: Iterable[UUID]) -> dict[UUID, bytes]:
    """The message of each event; see docs/webhooks.md for its form."""
    rows = JobDelivery.objects.filter(event_id__in=list(event_ids))
    return {row.event_id: _body(row) for row in rows}


def _body(row: JobDelivery) -> bytes:
    created = row.created_at.isoformat().replace("+00:00", "Z")
    message = {"type": row.type, "id": str(row.event_id), "created_at": created, "data": row.data}
    return json.dumps(message, sort_keys=True, separators=(",", ":")).encode()


EVENTS = delivering.Outbox(
    JobWebhook.objects, JobDelivery.objects, "api_jobdelivery", "event_id", "last_event_id", _bodies
)


def job_webhooks_of(caller: Caller) -> QuerySet[JobWebhook]:
    """The caller's own and those of teams they administer, with what waits and what was given up; the newest event that
    one has tried and not taken is its `untaken`, a list of one or none."""
    teams = [team for team, role in caller.roles if role in MANAGING_ROLES or caller.user_id is None]
    mine = Q(team__in=teams) | Q(user=caller.user_id, user__isnull=False)
    counts = {
        name: Count("deliveries", filter=Q(deliveries__state=state), distinct=True)
        for name, state in (("waiting", "pending"), ("given_up", "dead"))
    }
    # One query for all of them, however many there are.
    newest = JobDelivery.objects.filter(attempts__gt=0).exclude(last_error="")
    newest = newest.order_by("webhook_id", "-id").distinct("webhook_id")
    untaken = Prefetch("deliveries", queryset=newest, to_attr="untaken")
    return JobWebhook.objects.filter(mine).annotate(**counts).prefetch_related(untaken).order_by("-id")


def job_webhook_get(caller: Caller, webhook_id: UUID) -> JobWebhook:
    """Errors: NotFound for one that is not the caller's to see."""
    found = job_webhooks_of(caller).filter(id=webhook_id).first()
    if found is None:
        raise NotFound("There is no such webhook.")
    return found


@transaction.atomic
def job_webhook_create(
    *,
    caller: Caller,
    name: str,
    url: str,
    events: Sequence[str] | None = None,
    kind: str = "personal",
    team: UUID | None = None,
) -> tuple[JobWebhook, str]:
    """Tell `url` of jobs that end from now on. Returns its secret, which is shown once.

    Errors: NotFound, NotAllowed, InvalidInput, OutboundRefused, Conflict where there are too many.
    """
    caller.require_scope("read")
    caller.require_scope("write")
    owner = _owner(caller, kind, team)
    if JobWebhook.objects.filter(**owner).count() >= MOST:
        raise Conflict(f"There are {MOST} webhooks already, which is the most. Remove one first.")
    secret = secret_new()
    row = JobWebhook(
        name=name, url=address_check(url), events=_known(events or JobEvent.values), open=True, **owner
    )
    row.set_secret(secret)
    row.save()
    audit(Verb.WEBHOOK_MADE, team_id=row.team_id, object_kind="webhook", object_id=row.id)
    return job_webhook_get(caller, row.id), secret


def _owner(caller: Caller, kind: str, team: UUID | None) -> dict[str, UUID | None]:
    if kind == "personal":
        if caller.user_id is None:
            raise NotAllowed("A key of a team acts for no person: make a webhook of the kind “team” with it.")
        if team is not None:
            raise InvalidInput(
                "A personal webhook hears of your own jobs in every team, so it names none.",
                detail={"field": "team"},
            )
        return {"user_id": caller.user_id}
    found = team_of(caller, team)
    if caller.user_id is not None:
        caller.require_manager(found.id)
    return {"team_id": found.id}


def _known(events: Sequence[str]) -> list[str]:
    """Each once, in our order."""
    return [event for event in JobEvent.values if event in events]


@transaction.atomic
def job_webhook_change(*, caller: Caller, webhook: JobWebhook, **changes: Any) -> JobWebhook:
    """Another name, address, choice of events; `active` stops it and begins anew. Errors: OutboundRefused.

    What was given up while it was away is sent again when it is made active.
    """
    caller.require_scope("write")
    if "url" in changes:
        changes["url"] = address_check(changes["url"])
    if "events" in changes:
        changes["events"] = _known(changes["events"])
    if (active := changes.pop("active", None)) is not None:
        changes |= {"open": active, "paused_until": None, "failures": 0}
    JobWebhook.objects.filter(id=webhook.id).update(**changes)
    if active:
        delivering.deliveries_again(JobDelivery.objects.filter(webhook=webhook))
    return job_webhook_get(caller, webhook.id)


@transaction.atomic
def job_webhook_end(*, caller: Caller, webhook: JobWebhook) -> None:
    """It is told nothing any more, and what it has not taken is forgotten."""
    caller.require_scope("write")
    audit(Verb.WEBHOOK_ENDED, team_id=webhook.team_id, object_kind="webhook", object_id=webhook.id)
    webhook.delete()


def job_webhook_test(*, caller: Caller, webhook: JobWebhook) -> UUID:
    """Lay out an event that tells of nothing, to see whether it arrives. Returns its id. Errors: Conflict."""
    caller.require_scope("write")
    if not webhook.open:
        raise Conflict("This webhook is stopped. Make it active first; then a test can be sent.")
    moment = now()
    row = JobDelivery.objects.create(
        webhook=webhook, event_id=uuid7(), type=TEST, data={"webhook": str(webhook.id)},
        state="pending", created_at=moment, next_at=moment,
    )  # fmt: skip
    # The present pause must not outlast the wish of somebody who has just mended the other side.
    JobWebhook.objects.filter(id=webhook.id).update(paused_until=None)
    return row.event_id


def jobs_tell(*, batches: int = 20) -> int:
    """Send what is due; nothing leaves for somebody who is suspended. Returns how many events were taken."""
    standing = JobWebhook.objects.filter(Q(user=None) | Q(user__is_active=True))
    return delivering.deliveries_send(EVENTS, standing, batches=batches)


def job_hosts() -> list[str]:
    """The hosts that hear of jobs, by name."""
    urls = JobWebhook.objects.filter(open=True).values_list("url", flat=True)
    return sorted({urlsplit(url).hostname or "" for url in urls})


def jobs_prune() -> int:
    """Forget what was given up a week ago, and what is left of webhooks that are gone. Returns how many."""
    gone = ~Exists(JobWebhook.objects.filter(id=OuterRef("webhook_id")))
    old = Q(state="dead", created_at__lt=now() - GIVEN_UP_KEPT)
    return JobDelivery.objects.filter(old | Q(gone)).delete()[0]
