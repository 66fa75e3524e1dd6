"""How long each turn took, stage by stage: gathered in the process, written in one statement a second.

Nothing of this is content, and nothing of it is money: what a killed process had not written yet is lost.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import Error, connection

from app.billing.types import Settled
from app.chat.models import TurnTiming
from app.chat.stages import STAGES, stages_split
from app.common.clock import now
from app.common.db import run_db
from app.common.errors import PartFailed

if TYPE_CHECKING:
    from app.chat.turn import Turn

log = logging.getLogger(__name__)

KEPT = timedelta(days=30)
WRITE_SECONDS = 1.0
_waiting: deque[dict[str, Any]] = deque(maxlen=20_000)
"""Bounded: when the database is away for long, only the newest are kept."""

_INSERT = """
INSERT INTO chat_turntiming (id, ended_at, team_id, request_id, model, deployment_id, state, error, calls, served_by,
  input_tokens, output_tokens, ttft_ms, total_ms, itl_ms, tokens_per_second, stages)
SELECT id, ended_at, team_id, request_id, model, deployment_id, state, error, calls, served_by,
  input_tokens, output_tokens, ttft_ms, total_ms, itl_ms, tokens_per_second, stages
FROM jsonb_to_recordset(%s) AS row(id uuid, ended_at timestamptz, team_id uuid, request_id text, model text,
  deployment_id uuid, state text, error text, calls int, served_by text, input_tokens bigint, output_tokens bigint,
  ttft_ms float8, total_ms float8, itl_ms float8, tokens_per_second float8, stages jsonb)
ON CONFLICT (id) DO NOTHING
"""


def figures_of(turn: "Turn", settled: Settled | None) -> dict[str, float | None]:
    """The turn's stages in milliseconds, split as far as the gate and the servers tell; None is unknown."""
    admission = turn.admission
    calls = admission.timings if admission else ()
    embeds = [a.total_ms or 0 for a in admission.attempts if a.kind == "embedding"] if admission else []
    # The first embedding is the question's; later ones are of the sentences that a demonstration model quotes.
    embed_s = embeds[0] / 1e3 if embeds else 0.0
    return turn.clock.figures(
        output_tokens=settled.output_tokens if settled else None,
        split=lambda stages: stages_split(stages, embed_s=embed_s, calls=calls),
    )


def note(turn: "Turn", settled: Settled | None, figures: Mapping[str, float | None]) -> None:
    """Keep a turn's figures until the next write."""
    assert turn.admission is not None
    calls, attempts = turn.admission.timings, turn.admission.attempts
    error = turn.ending.error
    _waiting.append(
        {
            "id": str(turn.ask.turn_id),
            "ended_at": now().isoformat(),
            "team_id": str(turn.ask.team_id),
            "request_id": turn.ask.request_id,
            # The name asked for: a fallback is then one that another name served.
            "model": turn.ask.model,
            "served_by": turn.admission.target.public_name,
            "deployment_id": str(turn.admission.target.deployment_id),
            "state": turn.ending.state,
            "error": error.code if error else "",
            "calls": len(calls),
            "input_tokens": settled.input_tokens if settled else 0,
            "output_tokens": settled.output_tokens if settled else 0,
            "ttft_ms": figures["ttft_ms"],
            "total_ms": figures["total_ms"],
            "itl_ms": next((a.itl_ms for a in reversed(attempts) if a.itl_ms is not None), None),
            "tokens_per_second": figures["tokens_per_second"],
            "stages": {name: ms for name in STAGES if (ms := figures.get(f"{name}_ms"))},
        }
    )


def timings_write() -> int:
    """Write what is waiting; returns how many rows. What cannot be written now waits for the next time."""
    rows = [_waiting.popleft() for _ in range(len(_waiting))]
    if not rows:
        return 0
    try:
        with connection.cursor() as cursor:
            cursor.execute(_INSERT, [json.dumps(rows)])
    except Error:
        _waiting.extendleft(reversed(rows))
        raise
    return len(rows)


async def write_for_ever() -> None:
    """Write once a second until cancelled, and once more then."""
    try:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await _write_waiting()
    finally:
        await _write_waiting()


async def _write_waiting() -> None:
    if not _waiting:
        return
    try:
        await run_db(timings_write)
    except PartFailed:
        log.debug("The database does not answer: the times of %d turns wait.", len(_waiting))
    except Error:
        log.exception("The times of turns could not be written; they wait for the next try.")


def timings_prune(before: datetime | None = None) -> int:
    """Forget the oldest; returns how many."""
    gone, _ = TurnTiming.objects.filter(ended_at__lt=before or now() - KEPT).delete()
    return gone


def waterfall(figures: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """(stage, beginning, length) in milliseconds, one after the other, in the order of a turn."""
    rows, at = [], 0.0
    for name in STAGES:
        if length := figures.get(name):
            rows.append((name, at, length))
            at += length
    return rows


def timing_of(turn_id: UUID) -> TurnTiming | None:
    """A turn's row, or None."""
    return TurnTiming.objects.filter(id=turn_id).first()
