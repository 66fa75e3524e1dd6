"""Which cause is named for which change of figures."""

from typing import Any

import pytest

from app.dashboard.diagnosis import Evidence, Load, Queue, Spell, findings

USUAL = {
    "precount": 2.0,
    "reserve": 4.0,
    "embed": 10.0,
    "search": 20.0,
    "first_token": 200.0,
    "decode": 800.0,
    "settle": 4.0,
}
CALM = Load(running=1, waiting=0, kv_cache_share=0.3, preemptions=0, round_trip_s=0.004)


def spell(stages: dict[str, float] | None = None, load: Load = CALM, **figures: Any) -> Spell:
    known: dict[str, Any] = {
        "turns": 50,
        "input_tokens": 900.0,
        "output_tokens": 80.0,
        "itl_ms": 10.0,
    } | figures
    return Spell(stages=USUAL | (stages or {}), load=load, **known)


SLOWER = {"first_token": 900.0}
WRITES_SLOWER = {"decode": 4000.0}


@pytest.mark.parametrize(
    ("cause", "after", "more"),
    [
        ("slow_embedder", spell({"embed": 600.0}), {}),
        ("slow_search", spell({"search": 700.0}), {}),
        ("slow_disk", spell({"reserve": 150.0, "settle": 200.0}), {}),
        ("cold_start", spell({"load": 3000.0}), {}),
        ("cold_start", spell(SLOWER), {"silent_share": 0.9}),
        ("network", spell({"connect": 400.0}), {}),
        ("network", spell(SLOWER, Load(running=1, waiting=0, round_trip_s=0.5)), {}),
        ("saturated_server", spell(SLOWER, Load(running=8, waiting=5, kv_cache_share=0.6)), {}),
        ("saturated_server", spell({"server_queue": 900.0}, Load(running=8, waiting=5)), {}),
        ("kv_memory", spell(SLOWER, Load(running=8, waiting=5, kv_cache_share=0.99)), {}),
        ("kv_memory", spell(WRITES_SLOWER, Load(running=8, preemptions=12), itl_ms=50.0), {}),
        ("poor_batching", spell(WRITES_SLOWER, Load(running=5, waiting=0), itl_ms=50.0), {}),
        ("slow_server", spell(WRITES_SLOWER, itl_ms=50.0), {}),
        ("slow_server", spell(SLOWER), {}),
        ("long_prompts", spell(SLOWER, input_tokens=9000.0), {}),
        ("our_line", spell({"gate_wait": 900.0}), {}),
        ("saturated_server", spell({"gate_wait": 900.0}, Load(waiting=4)), {}),
        ("retries", spell({"retry": 900.0}), {}),
    ],
)
def test_the_cause_that_explains_most_comes_first(cause: str, after: Spell, more: dict[str, Any]) -> None:
    found = findings(Evidence(before=spell(), after=after, **more))
    assert found[0].cause == cause
    assert found[0].grew_ms > 100
    assert "ms more than before" in found[0].because


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (spell(), spell()),
        (spell(), spell({"embed": 25.0})),
        (spell({"embed": 900.0}), spell()),
        # Longer answers take longer, which is nobody's fault.
        (spell(), spell(WRITES_SLOWER, output_tokens=400.0)),
        (spell(turns=4), spell(SLOWER)),
        (spell(), spell(SLOWER, turns=4)),
    ],
    ids=["same", "noise", "faster", "longer answers", "no past", "too few"],
)
def test_nothing_is_named_without_reason(before: Spell, after: Spell) -> None:
    assert findings(Evidence(before=before, after=after)) == []


def test_a_queue_nobody_serves_is_named_before_all_else() -> None:
    queues = [Queue(name="default", waiting=3, served=True), Queue(name="ingest", waiting=2, served=False)]
    found = findings(Evidence(before=spell(), after=spell(SLOWER), queues=queues))
    assert [finding.cause for finding in found] == ["no_worker", "slow_server"]
    assert "2 tasks wait in `ingest`" in found[0].because
    assert (
        findings(Evidence(before=spell(), after=spell(), queues=[Queue(name="x", waiting=0, served=False)]))
        == []
    )


def test_two_causes_at_once_are_both_named_the_weightier_first() -> None:
    found = findings(Evidence(before=spell(), after=spell({"embed": 400.0, "search": 1200.0})))
    assert [finding.cause for finding in found] == ["slow_search", "slow_embedder"]
