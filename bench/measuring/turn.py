"""Everything that a turn's measuring runs, without the turn."""

import time
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from app.billing.types import Attempt, Buckets
from app.chat.clock import StageClock
from app.chat.timings import figures_of, note
from app.common import meters
from app.common.clock import now
from app.gate.measuring import call_measured
from inference_client.types import Timing

STAGES = ("precount", "check", "reserve", "retrieve", "stitch", "redact", "infer", "check_output", "settle")
PIECES = 64
ATTEMPTS = (
    Attempt(number=1, kind="embedding", buckets=Buckets(input=20), total_ms=25),
    Attempt(
        number=2,
        buckets=Buckets(input=900, cache_read=200, output=PIECES),
        ttft_ms=300,
        total_ms=2000,
        itl_ms=12.5,
        queue_ms=3,
    ),
)
TARGET: Any = SimpleNamespace(public_name="model", deployment_id=uuid4())
TIMING = Timing(started_at=now(), connected_s=0.0, first_token_s=0.3, total_s=2.0, dialled_s=0.0)
ADMISSION = SimpleNamespace(timings=(TIMING,), attempts=ATTEMPTS, target=TARGET)
ASK = SimpleNamespace(turn_id=uuid4(), team_id=uuid4(), request_id=str(uuid4()), model="model")
ENDING = SimpleNamespace(state="done", error=None)


def clock() -> StageClock:
    """A turn's stages, with a look at every piece of the answer."""
    found = StageClock(time.perf_counter())
    for name in STAGES:
        with found.stage(name, queued=float if name == "infer" else None):
            for _ in range(PIECES if name == "infer" else 0):
                if found.first_token_at is None:
                    found.first_token()
    return found


def turn() -> None:
    """The clock, its figures, the row that waits to be written, and the counters."""
    measured: Any = SimpleNamespace(clock=clock(), admission=ADMISSION, ask=ASK, ending=ENDING)
    note(measured, None, figures_of(measured, None))
    for attempt in ATTEMPTS:
        call_measured(TARGET, attempt)
    meters.request_counted("v1", 200, 1.0)
