"""However a turn ends, its hold ends, its usage is booked and its reader is told. A scripted server answers."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import DataError, OperationalError

from app.billing import services as billing
from app.billing.models import LedgerEntry, Reservation, ReservationLine, UsageAttempt
from app.billing.services import bootstrap_defaults, price_set, reservation_hold
from app.billing.types import Hold, Payer, Rate
from app.chat import checks, heartbeat, sweep, turn_rows
from app.chat import turn as turn_module
from app.chat.event_store import events_key
from app.chat.events import TurnEvent
from app.chat.models import Conversation, Turn
from app.chat.runs import Runs
from app.chat.types import Ask
from app.common.clock import now
from app.common.models import uuid7
from app.common.redis_door import sync_redis
from tests.integration.chat.upstream import USAGE, answered, said

# A statement that fails would take a surrounding transaction with it.
pytestmark = pytest.mark.django_db(transaction=True)
Gather = Callable[..., Ask]
QUEUED, WAITING, GENERATING = (("status", {"phase": phase}) for phase in ("queued", "waiting", "generating"))


def broken(error: Exception) -> Callable[..., None]:
    """A function that raises."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def test_a_nul_in_the_question_is_refused_before_anything_is_held(gather: Gather) -> None:
    taken = answered(gather("Say\x00 hello"), said("x"))
    assert taken.run.failure is not None
    assert (taken.run.failure.code, taken.run.failure.status) == ("invalid", 422)
    assert not Reservation.objects.exists()


def test_a_nul_in_the_answer_costs_neither_text_nor_booking(gather: Gather) -> None:
    taken = answered(gather("Say"), said("a\x00b"))
    turn = Turn.objects.get(id=taken.ask.turn_id)
    assert (turn.state, turn.answer) == ("done", "ab"), turn.error
    assert taken.names[-2:] == ["usage", "done"]
    assert "".join(d["text"] for d in taken.named("delta")) == "ab"


@pytest.mark.parametrize(
    "odd",
    [
        {"id": "c\x00d"},
        {"model": "m\x00"},
        {"usage": USAGE | {"note": ["\x00"], "\x00": 1}},
        {"usage": USAGE | {"x": float("nan")}},
        {"usage": USAGE | {"x": "\ud800"}},
        {"usage": USAGE | {"completion_tokens": 10**30}},
        {"usage": USAGE | {"prompt_tokens": -5}},
        {"usage": USAGE | {"prompt_tokens": 2**63}},
        {"usage": USAGE | {"completion_tokens": 2**63 - 1}},
        {"usage": USAGE | {"prompt_tokens": "5", "completion_tokens": 1.5}},
        {"usage": [1]},
        {"usage": USAGE | {"prompt_tokens_details": {"cached_tokens": 2**63}}},
        {"usage": USAGE | {"completion_tokens_details": {"reasoning_tokens": 10**9}}},
        {"id": 7},
        {"model": ["m"]},
        {"model": "m" * 5000},
    ],
    ids=lambda odd: str(odd)[:60],
)
def test_odd_words_of_a_server_never_cost_the_booking(gather: Gather, odd: dict[str, Any]) -> None:
    taken = answered(gather("Say"), said("ab", **odd))
    assert taken.names[-2:] == ["usage", "done"]
    assert Reservation.objects.get().state == "settled"
    assert UsageAttempt.objects.filter(kind="chat").count() == 1
    assert Turn.objects.get(id=taken.ask.turn_id).state == "done"


def test_a_mistake_of_ours_after_the_answer_still_books_and_tells(
    gather: Gather, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "check_output", broken(KeyError("ours")))
    taken = answered(gather("Say"), said("ab"))
    assert Reservation.objects.get().state == "settled"
    assert LedgerEntry.objects.count() == 1
    assert taken.names[-2:] == ["usage", "error"]
    assert taken.run.failure is not None
    assert (taken.run.failure.code, taken.run.failure.status) == ("internal", 500)
    turn = Turn.objects.get(id=taken.ask.turn_id)
    assert (turn.state, turn.answer) == ("failed", "ab")


def test_a_turn_whose_task_is_cancelled_gives_its_hold_back(gather: Gather) -> None:
    ask = gather("Say")

    async def cancelled(*_: Any, **__: Any) -> None:
        raise asyncio.CancelledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn_module.Turn, "_infer", cancelled)
        taken = answered(ask, said("x"))
    assert Reservation.objects.get().state == "released"
    assert Turn.objects.get(id=ask.turn_id).state == "interrupted"
    assert taken.names[-1] == "done"


def test_a_deadlock_while_settling_is_tried_again(gather: Gather, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = billing.reservation_settle, []

    def flaky(**wishes: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise OperationalError("deadlock detected")
        return real(**wishes)

    monkeypatch.setattr(billing, "reservation_settle", flaky)
    taken = answered(gather("Say"), said("ab"))
    assert Reservation.objects.get().state == "settled"
    assert taken.names[-2:] == ["usage", "done"]


def test_a_turn_that_cannot_be_stored_gives_its_hold_back(
    gather: Gather, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        turn_rows, "_turn_insert", broken(OperationalError("could not extend file: No space left"))
    )
    taken = answered(gather("Say"), said("x"))
    assert not Reservation.objects.filter(state="held").exists()
    assert taken.run.failure is not None
    assert (taken.run.failure.code, taken.run.failure.status) == ("database_unavailable", 503)


def test_a_turn_whose_connection_breaks_as_it_is_stored_keeps_its_hold_for_the_second_try(
    gather: Gather, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = turn_rows._turn_insert, []

    def flaky(*values: Any) -> None:
        tries.append(Reservation.objects.get().state)
        if len(tries) == 1:
            raise OperationalError("the connection was closed")
        real(*values)

    monkeypatch.setattr(turn_rows, "_turn_insert", flaky)
    taken = answered(gather("Say"), said("ab"))
    assert tries == ["held", "held"]
    assert (Reservation.objects.get().state, taken.run.failure) == ("settled", None)
    assert Turn.objects.get().answer == "ab"


def test_a_row_that_cannot_be_closed_still_ends_the_stream(
    gather: Gather, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_rows, "_turn_close", broken(DataError("refused")))
    taken = answered(gather("Say"), said("ab"))
    assert Reservation.objects.get().state == "settled"
    assert taken.names[-2:] == ["usage", "done"]


@pytest.mark.parametrize("error", [OperationalError("No space left on device"), DataError("refused")])
def test_a_failed_pulse_is_not_the_last(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[int] = []
    again = asyncio.Event()

    async def once(_: Runs) -> None:
        beats.append(1)
        if len(beats) == 1:
            raise error
        again.set()

    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0)
    monkeypatch.setattr(heartbeat, "beat_once", once)

    async def story() -> None:
        task = asyncio.ensure_future(heartbeat.beat(Runs()))
        waiting = asyncio.ensure_future(again.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert not task.done()
        task.cancel()

    asyncio.run(story())


def orphan(conversation: Conversation, **fields: object) -> Turn:
    """A running turn whose process died a minute ago."""
    old = now() - timedelta(minutes=1)
    values = {"question": "q", "model": "m", "started_at": old, "heartbeat_at": old, **fields}
    return Turn.objects.create(conversation=conversation, team_id=conversation.team_id, **values)


def tell(turn: Turn, *events: tuple[str, dict[str, str]]) -> None:
    """Put into Valkey what readers of this turn were told before its process died."""
    for number, (name, data) in enumerate(events, 1):
        frame = TurnEvent(number, name, data).frame
        sync_redis().xadd(events_key(turn.id), {"f": frame, "n": name}, id=f"{number}-0")


def test_a_turn_that_cannot_be_swept_keeps_no_other_from_it(conversation: Conversation) -> None:
    bad, good = orphan(conversation), orphan(conversation)
    tell(bad, ("delta", {"text": "\x00"}))
    assert sweep.turns_sweep() == [good.id]
    good.refresh_from_db()
    assert good.state == "interrupted"


def test_a_turn_without_its_reservation_is_swept_too(conversation: Conversation) -> None:
    turn = orphan(conversation, reservation_id=uuid7())
    assert sweep.turns_sweep() == [turn.id]


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [("private", "internal", "private"), ("public", "internal", "internal"), ("public", "public", "public")],
)
def test_a_conversation_never_loses_a_level_that_another_turn_gave_it(
    gather: Gather, conversation: Conversation, before: str, asked: str, after: str
) -> None:
    ask = gather("Say")
    Conversation.objects.filter(id=conversation.id).update(level=before)
    answered(replace(ask, level=asked), said("x"))
    conversation.refresh_from_db()
    assert conversation.level == after


@pytest.mark.parametrize("keep", [True, False])
def test_a_hold_outlives_a_dead_process_by_a_minute_at_most(gather: Gather, keep: bool) -> None:
    ask = replace(gather("Say"), keep=keep, conversation_id=gather("Say").conversation_id if keep else None)
    soon = now() + timedelta(seconds=65)
    answered(ask, said("ab"))
    row = Reservation.objects.get()
    assert row.expires_at < soon
    Reservation.objects.filter(id=row.id).update(state="held", ended_at=None)
    heartbeat._pulse([], {row.id: (5, 1)})
    row.refresh_from_db()
    assert row.expires_at < now() + timedelta(seconds=65)


def test_a_process_that_died_after_booking_leaves_the_booked_figures(gather: Gather) -> None:
    taken = answered(gather("Say"), said("ab"))
    old = now() - timedelta(minutes=1)
    Turn.objects.filter(id=taken.ask.turn_id).update(
        state="running", heartbeat_at=old, usage=None, answer="ab"
    )
    sweep.turns_sweep()
    usage = Turn.objects.get(id=taken.ask.turn_id).usage
    booked = taken.named("usage")[0]
    assert usage is not None
    for name in ("input_tokens", "output_tokens", "estimated", "price"):
        assert usage[name] == booked[name]
    assert LedgerEntry.objects.count() == 1


@pytest.mark.parametrize(
    ("told", "seen", "booked"),
    [
        ([QUEUED], None, ("released", [])),
        ([QUEUED, WAITING], None, ("released", [(False, 70, 0, [])])),
        ([WAITING, GENERATING, ("delta", {"text": "ab"})], None, ("settled", [(True, 70, 1, [])])),
        # Where another event came last, the call may be on its way.
        ([QUEUED, ("notice", {"code": "left_out"})], 55, ("expired", [(False, 55, 0, [])])),
        # Valkey lost what was told, or the process died as it sent:
        # what the pulse wrote down counts, and without a pulse it may have been sent
        ([], 55, ("expired", [(False, 55, 0, [])])),
        ([], None, ("expired", [(False, 90, 0, ["perhaps_sent"])])),
    ],
)  # fmt: skip
def test_a_call_whose_process_died_is_on_record_however_far_it_had_come(
    conversation: Conversation,
    told: list[tuple[str, dict[str, str]]],
    seen: int | None,
    booked: tuple[str, list[tuple[bool, int, int, list[str]]]],
) -> None:
    bootstrap_defaults()
    price_set(
        price_key="m",
        rates=[Rate(component=c, price=Decimal(1)) for c in ("input", "output")],
        approved_by="t",
    )
    payer = Payer(team_id=conversation.team_id)
    hold = Hold(
        reservation_id=uuid7(), payer=payer, kind="chat", price_key="m", input_tokens=90, output_tokens=9
    )
    reservation_hold(hold=hold)
    if seen:
        heartbeat._pulse([], {hold.reservation_id: (seen, 0)})
    turn = orphan(
        conversation,
        reservation_id=hold.reservation_id,
        estimate={"input_tokens": {"total": {"expected": 70}}},
    )
    tell(turn, *told)
    assert sweep.turns_sweep() == [turn.id]
    row = Reservation.objects.get()
    attempts = [(a.billed, a.input_tokens, a.output_tokens, a.flags) for a in UsageAttempt.objects.all()]
    assert (row.state, attempts) == booked
    assert not ReservationLine.objects.filter(state=0).exists()
