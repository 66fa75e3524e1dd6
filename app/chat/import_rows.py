"""Writes imported conversations as somebody's own. Ids follow from the export's, so importing again adds nothing."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from app.accounts.models import User
from app.chat.importing import ImportedConversation, ImportedTurn
from app.chat.models import Conversation, RetentionRule, Turn, TurnState
from app.chat.retention import rule_of
from app.chat.titling import title_cut
from app.common.clock import now
from app.common.errors import InvalidInput
from app.common.models import uuid7_of

_APART = timedelta(milliseconds=1)


def conversations_import(*, user: User, conversations: Sequence[ImportedConversation]) -> int:
    """Add those that are not there yet, with their dates and models; returns how many. Nothing is priced.

    Errors: InvalidInput for somebody without a team, or whose team stores no conversations.
    """
    team = user.default_team_id
    if team is None:
        raise InvalidInput("This person has no team to which conversations could belong.")
    if rule_of(team).conversations == RetentionRule.Keep.NOT_STORED:
        raise InvalidInput(
            "The team that would pay for these conversations stores none: they would be gone in an hour. Change its "
            "retention, or the person's default team, and import again."
        )
    return sum(_imported(user, team, one) for one in conversations)


@transaction.atomic
def _imported(user: User, team: UUID, made: ImportedConversation) -> bool:
    identity = uuid7_of(made.created_at, f"{user.pk} {made.key}")
    if Conversation.objects.filter(pk=identity).exists():
        return False
    row = Conversation.objects.create(
        id=identity,
        team_id=team,
        owner=user,
        title=title_cut(made.title),
        created_at=made.created_at,
        imported_at=now(),
    )
    ids: list[UUID] = []
    times: list[datetime] = []
    for turn in made.turns:
        # Turns are read in the order of their ids, and a child is never older than its parent.
        after = times[turn.parent] + _APART if turn.parent is not None else turn.asked_at
        times.append(max(turn.asked_at, after))
        ids.append(uuid7_of(times[-1], f"{user.pk} {made.key} {turn.key} {len(ids)}"))
    rows = [
        _row(row, turn, ids[number], times[number], ids[turn.parent] if turn.parent is not None else None)
        for number, turn in enumerate(made.turns)
    ]
    Turn.objects.bulk_create(rows)
    Conversation.objects.filter(pk=identity).update(updated_at=made.updated_at)
    return True


def _row(
    row: Conversation, turn: ImportedTurn, identity: UUID, moment: datetime, parent: UUID | None
) -> Turn:
    ended = turn.answered_at or moment
    return Turn(
        id=identity,
        created_at=moment,
        conversation=row,
        team_id=row.team_id,
        parent_id=parent,
        asked_by_id=row.owner_id,
        question=turn.question,
        answer=turn.answer,
        state=TurnState.DONE if turn.answer else TurnState.INTERRUPTED,
        finish_reason="stop" if turn.answer else "interrupted",
        model=turn.model[:100],
        started_at=moment,
        ended_at=max(ended, moment),
        heartbeat_at=moment,
    )
