"""What the chat's own tables hold of a demonstration year: conversations, turns, and where their time went. No content.

Rows are written in bulk; lengths, times and tokens are those of the calls that were booked.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

from app.chat.models import Conversation, Turn, TurnState, TurnTiming
from app.chat.stages import TO_FIRST_TOKEN
from app.ops.demo_year import DemoThread, DemoTurn

SUBJECTS = (
    "Travel rules",
    "A contract's term",
    "Minutes of May",
    "The new pump",
    "Warranty",
    "Onboarding",
    "Safety",
)
TIMED_DAYS = timedelta(days=30)
"""The product keeps times that long."""
OUR_STAGES = {
    "auth": 1.2,
    "precount": 2.4,
    "check": 1.1,
    "reserve": 4.0,
    "stitch": 2.2,
    "connect": 0.6,
    "settle": 5.5,
    "other": 0.9,
}
"""Medians in milliseconds, as this product's own stages take."""
SEARCH_MS = 18.0


def threads_write(threads: Sequence[DemoThread], until: datetime) -> None:
    """Conversations with those of their turns that began before `until`, and the times of recent ones."""
    Conversation.objects.bulk_create(
        Conversation(
            id=thread.thread_id,
            created_at=thread.turns[0].began,
            team=thread.team.row,
            owner_id=thread.user_id,
            title=SUBJECTS[thread.thread_id.int % len(SUBJECTS)],
            model=thread.model.name,
        )
        for thread in threads
    )
    begun = [(thread, turn) for thread in threads for turn in thread.turns if turn.began < until]
    Turn.objects.bulk_create(_turn(thread, turn) for thread, turn in begun)
    TurnTiming.objects.bulk_create(
        _timing(thread, turn) for thread, turn in begun if until - TIMED_DAYS < turn.call.ended_at < until
    )


def _turn(thread: DemoThread, turn: DemoTurn) -> Turn:
    return Turn(
        id=turn.turn_id,
        created_at=turn.began,
        conversation_id=thread.thread_id,
        team=thread.team.row,
        asked_by_id=thread.user_id,
        question="(a question of the demonstration)",
        answer="(an answer of the demonstration)",
        state=TurnState.DONE,
        finish_reason="stop",
        model=thread.model.name,
        reservation_id=turn.call.hold.reservation_id,
        estimate={"input_tokens": turn.parts},
        started_at=turn.began,
        ended_at=turn.began,
        heartbeat_at=turn.began,
    )


def _timing(thread: DemoThread, turn: DemoTurn) -> TurnTiming:
    """Stages that add up to the whole: the servers' from the booked attempts, ours around their medians."""
    # Seeded by the turn, so that the calls of the year do not depend on what is written of them here.
    random = Random(turn.turn_id.int)  # noqa: S311 - repeatable, not secret
    *before, answer = turn.call.attempts
    stages = {name: median * random.lognormvariate(0, 0.3) for name, median in OUR_STAGES.items()}
    if embeds := [attempt.total_ms or 0 for attempt in before if attempt.kind == "embedding"]:
        stages |= {"embed": float(sum(embeds)), "search": SEARCH_MS * random.lognormvariate(0, 0.4)}
    if failed := [attempt.total_ms or 0 for attempt in before if attempt.kind != "embedding"]:
        stages["retry"] = float(sum(failed))
    queue, first, whole = float(answer.queue_ms or 0), answer.ttft_ms or 0, answer.total_ms or 0
    stages |= {"server_queue": min(queue, first), "prefill": max(0.0, first - queue)}
    stages["decode"] = float(max(0, whole - first))
    stages = {name: round(ms, 2) for name, ms in stages.items()}
    written = answer.buckets.output_total
    assert answer.deployment_id is not None
    return TurnTiming(
        id=turn.turn_id,
        ended_at=turn.call.ended_at,
        team_id=thread.team.row.id,
        request_id=str(turn.turn_id),
        model=thread.model.name,
        served_by=thread.model.name,
        deployment_id=answer.deployment_id,
        state="stopped" if answer.outcome == "stopped" else "done",
        error="",
        calls=1 + len(failed),
        input_tokens=answer.buckets.input_total,
        output_tokens=written,
        ttft_ms=sum(ms for name, ms in stages.items() if name in TO_FIRST_TOKEN),
        total_ms=sum(stages.values()),
        itl_ms=answer.itl_ms,
        tokens_per_second=written / stages["decode"] * 1000 if stages["decode"] else None,
        stages=stages,
    )
