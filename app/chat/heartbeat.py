"""The pulse of this process's turns: while it beats, nobody else ends them.

Every few seconds one statement renews all running turns, stores their text so far and reads back stop requests;
another renews their reservations. When a process dies the pulse stops, and `turns_sweep` ends what it left.
"""

import asyncio
import json
import logging
from uuid import UUID

from django.db import Error, connection

from app.billing import services as billing
from app.chat.planning import HOLD_SECONDS
from app.chat.runs import Runs
from app.common.db import run_db
from app.common.errors import PartFailed
from app.gate import rates

log = logging.getLogger(__name__)

BEAT_SECONDS = 5.0

_PULSE = """
UPDATE chat_turn SET heartbeat_at = now(), answer = v.answer, reasoning = v.reasoning
  FROM jsonb_to_recordset(%s) AS v(id uuid, answer text, reasoning text)
 WHERE chat_turn.id = v.id AND chat_turn.state = 'running'
RETURNING chat_turn.id, chat_turn.stop_requested
"""


def _pulse(rows: list[dict[str, str]], seen: dict[UUID, tuple[int | None, int | None]]) -> list[UUID]:
    """Renew turns and reservations; returns the turns that somebody asked to stop."""
    stop: list[UUID] = []
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_PULSE, [json.dumps(rows)])
            stop = [turn_id for turn_id, wanted in cursor.fetchall() if wanted]
    billing.reservations_heartbeat(seen=seen, ttl_seconds=HOLD_SECONDS)
    return stop


async def beat_once(runs: Runs) -> None:
    """One pulse for all turns that run now."""
    running = runs.running()
    rows = [
        {"id": str(r.log.turn_id), "answer": r.log.text, "reasoning": r.log.reasoning}
        for r in running
        if r.kept
    ]
    seen = {r.reservation_id: r.seen() for r in running if r.reservation_id is not None}
    if not seen:
        return
    for turn_id in await run_db(_pulse, rows, seen):
        await runs.stop(turn_id)


async def beat(runs: Runs) -> None:
    """Beat until cancelled. A database that is away is waited for, and no failed beat is the last one."""
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        try:
            await beat_once(runs)
            await rates.renew()
        except PartFailed:
            log.warning("The database does not answer: running turns could not be renewed.")
        except Error:
            # Without a pulse the sweeper would take every later turn of this process for dead.
            log.exception("A pulse failed; the next one is tried.")
