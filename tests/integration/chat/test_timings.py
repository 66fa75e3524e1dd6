"""Every turn leaves one row of times, written apart from the turn."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app.chat import timings
from app.chat.models import TurnTiming
from app.common.clock import now
from inference_client.testing.fault_server import Script
from tests.integration.chat.upstream import answered, said

pytestmark = pytest.mark.django_db
REFUSED = Script(status=400, body=(b'{"error": {"message": "no"}}',), content_type="application/json")


@pytest.fixture(autouse=True)
def _nothing_waits() -> None:
    timings._waiting.clear()


def test_a_turn_is_written_once_with_parts_that_add_up(gather: Callable[..., Any]) -> None:
    taken = answered(gather("Say"), said("ab", timings={"prompt_ms": 0.001}))
    assert (timings.timings_write(), timings.timings_write()) == (1, 0)
    row = TurnTiming.objects.get(id=taken.ask.turn_id)
    assert (row.state, row.calls, row.request_id) == ("done", 1, "test")
    assert (row.input_tokens, row.output_tokens) == (5, 2)
    assert {"precount", "reserve", "decode", "settle", "server_queue"} <= set(row.stages)
    assert sum(row.stages.values()) == pytest.approx(row.total_ms, abs=0.2)
    laid_out = timings.waterfall(row.stages)
    assert [at for _, at, _ in laid_out[1:]] == pytest.approx(
        [at + length for _, at, length in laid_out[:-1]]
    )


def test_a_turn_that_failed_is_there_with_its_error_and_no_words(gather: Callable[..., Any]) -> None:
    taken = answered(gather("A secret question"), REFUSED)
    timings.timings_write()
    row = TurnTiming.objects.get(id=taken.ask.turn_id)
    assert (row.state, row.error, row.ttft_ms) == ("failed", "invalid", None)
    assert "secret" not in str(TurnTiming.objects.values().get())


def test_old_rows_go(gather: Callable[..., Any]) -> None:
    answered(gather("Say"), said("ab"))
    timings.timings_write()
    assert timings.timings_prune() == 0
    assert timings.timings_prune(now() + timedelta(seconds=1)) == 1
