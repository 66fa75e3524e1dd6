"""How long what people wrote is kept: by the rule of their team, else by that of the installation, else for good.

The ledger is not touched: what was spent stays, under an opaque account.
"""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from app.audit.services import Verb, audit
from app.billing.retention import raw_usage_forget
from app.chat.models import Conversation, RetentionRule, Turn, TurnState
from app.chat.services import conversation_delete
from app.common.clock import now
from app.common.errors import Conflict

log = logging.getLogger(__name__)

IDLE = timedelta(hours=1)
"""A conversation that is not to be stored goes when nobody has asked in it for so long."""
ABANDONED = timedelta(days=7)
"""How long files wait for the first question to them."""
RAW_USAGE_DAYS = 30
BATCH = 500


def rule_save(rule: RetentionRule, *, before: RetentionRule | None) -> None:
    """Write a rule; what it was and became goes into the audit log."""
    with transaction.atomic():
        rule.save()
        _note(rule, before=str(before) if before else "", after=str(rule))


def rule_remove(rule: RetentionRule) -> None:
    """From now on the installation's rule counts again."""
    with transaction.atomic():
        was, identity = str(rule), rule.pk
        rule.delete()
        rule.pk = identity
        _note(rule, before=was, after="")


def _note(rule: RetentionRule, *, before: str, after: str) -> None:
    if before != after:
        audit(
            Verb.RETENTION_CHANGED,
            team_id=rule.team_id,
            object_kind="retention",
            object_id=rule.pk,
            before=before,
            after=after,
        )


def rule_of(team_id: UUID) -> RetentionRule:
    """What counts for a team: its own rule, else the installation's, else everything is kept."""
    rules = {rule.team_id: rule for rule in RetentionRule.objects.filter(Q(team=team_id) | Q(team=None))}
    return rules.get(team_id) or rules.get(None) or RetentionRule()


def retention_run(*, moment: datetime | None = None, limit: int = BATCH) -> dict[str, int]:
    """Remove what is past its time, at most `limit` conversations; returns how many of what went."""
    at = moment or now()
    rules = {rule.team_id: rule for rule in RetentionRule.objects.all()}
    gone = {"conversations": 0, "turns": 0, "raw_usage": 0}
    for team_id, rule in rules.items():
        if (before := _cutoff(rule, at)) is not None:
            others = [team for team in rules if team is not None] if team_id is None else []
            gone["conversations"] += _conversations_remove(
                team_id, others, before, limit - gone["conversations"]
            )
            gone["turns"] += _lone_turns_remove(team_id, others, before)
    gone["conversations"] += _abandoned_remove(at - ABANDONED, limit - gone["conversations"])
    days = rules[None].raw_usage_days if None in rules else RAW_USAGE_DAYS
    gone["raw_usage"] = raw_usage_forget(before=at - timedelta(days=days))
    return gone


def _cutoff(rule: RetentionRule, at: datetime) -> datetime | None:
    match rule.conversations:
        case RetentionRule.Keep.DAYS:
            return at - timedelta(days=rule.days or 0)
        case RetentionRule.Keep.NOT_STORED:
            return at - IDLE
    return None


def _conversations_remove(team_id: UUID | None, others: list[UUID], before: datetime, limit: int) -> int:
    """Of one team, or of all but `others`. One that is being answered waits for the next run."""
    due = Conversation.objects.filter(updated_at__lt=before).exclude(turns__state=TurnState.RUNNING)
    due = due.filter(Q(imported_at=None) | Q(imported_at__lt=before))
    due = due.filter(team=team_id) if team_id is not None else due.exclude(team__in=others)
    return _remove(due, limit)


def _abandoned_remove(before: datetime, limit: int) -> int:
    """A file was attached and nothing was ever asked: nobody misses a conversation without a word or a name."""
    asked = Turn.objects.filter(conversation=OuterRef("pk"))
    empty = Conversation.objects.filter(~Exists(asked), title="", pinned=False, attachments_id__isnull=False)
    return _remove(empty.filter(updated_at__lt=before), limit)


def _remove(due: QuerySet[Conversation], limit: int) -> int:
    removed = 0
    for conversation in due.order_by("updated_at")[: max(0, limit)]:
        try:
            conversation_delete(conversation=conversation, done_by="retention")
            removed += 1
        except Conflict:
            log.info("A conversation past its time is being answered; it goes with the next run.")
    return removed


def _lone_turns_remove(team_id: UUID | None, others: list[UUID], before: datetime) -> int:
    """Calls of `/v1` over documents, which belong to no conversation."""
    due = Turn.objects.filter(conversation=None, started_at__lt=before).exclude(state=TurnState.RUNNING)
    due = due.filter(team=team_id) if team_id is not None else due.exclude(team__in=others)
    return due.delete()[1].get("chat.Turn", 0)
