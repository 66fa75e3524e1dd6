"""Rate limits in a real Valkey: exact under haste, corrected afterwards, healed after a crash, open when it is away."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
import redis
from asgiref.sync import async_to_sync
from pytest_django import Settings

from app.billing.models import RateLimit
from app.billing.rate_limits import rate_limit_set, rate_rules
from app.billing.types import Payer, RateRule
from app.common.errors import InvalidInput
from app.common.models import uuid7
from app.common.redis_door import redis_close
from app.gate import rate_visits, rates
from app.gate.rates import Stand, Ticket, TooFast
from app.gate.types import CallPlan

pytestmark = pytest.mark.django_db
T = TypeVar("T")


@pytest.fixture(autouse=True)
def _fresh(broker: redis.Redis, settings: Settings) -> Iterator[None]:
    settings.RATE_KEY_REQUESTS = settings.RATE_KEY_TOKENS = 0
    rates.forget()
    yield
    rates.forget()


@pytest.fixture
def payer() -> Payer:
    return Payer(team_id=uuid7(), account_id=uuid7(), key_id=uuid7())


def plan(payer: Payer, tokens: int = 10, kind: Any = "chat") -> CallPlan:
    return CallPlan(reservation_id=uuid7(), payer=payer, kind=kind, targets=(), input_tokens=tokens)


def limit(payer: Payer, scope: Any = "key", **most: int | None) -> None:
    ids: dict[str, Any] = {
        "key": {"key_id": payer.key_id},
        "person": {"account_id": payer.account_id},
        "team": {"team_id": payer.team_id},
    }
    values = {"requests": None, "tokens": None, "streams": None} | most
    rate_limit_set(scope=scope, **ids.get(scope, {}), **values)
    rates.forget()


def run(story: Callable[[], Awaitable[T]]) -> T:
    async def whole() -> T:
        try:
            return await story()
        finally:
            await redis_close()

    return async_to_sync(whole)()


async def tried(payer: Payer, **changes: Any) -> Ticket | TooFast | None:
    try:
        return await rates.admit(plan(payer, **changes))
    except TooFast as exc:
        return exc


@pytest.mark.parametrize("scope", ["key", "person", "team", "installation"])
@pytest.mark.parametrize(
    ("most", "unit"),
    [
        ({"requests": 7}, "requests_per_minute"),
        ({"tokens": 70}, "tokens_per_minute"),
        ({"streams": 7}, "streams"),
    ],
)
def test_of_many_at_once_exactly_what_fits_is_admitted(
    scope: str, most: dict[str, int], unit: str, payer: Payer
) -> None:
    limit(payer, scope, **most)

    async def story() -> list[Ticket | TooFast | None]:
        return await asyncio.gather(*(tried(payer) for _ in range(40)))

    found = run(story)
    assert sum(isinstance(x, Ticket) for x in found) == 7
    refused = next(x for x in found if isinstance(x, TooFast))
    assert (refused.detail["scope"], refused.detail["unit"]) == (scope, unit)
    assert refused.retry_after is not None
    assert refused.retry_after > 0
    assert "nothing was sent or charged" in refused.message


def test_what_is_asked_at_once_shares_visits_also_after_valkey_lost_the_script(
    payer: Payer, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(payer, requests=30)
    real, visits = rate_visits._asked, []

    async def counted(questions: Any) -> Any:
        visits.append(len(questions))
        return await real(questions)

    monkeypatch.setattr(rate_visits, "_asked", counted)

    async def story() -> list[Ticket | TooFast | None]:
        await rates.peek(payer)
        visits.clear()
        return await asyncio.gather(*(tried(payer) for _ in range(40)))

    assert sum(isinstance(x, Ticket) for x in run(story)) == 30
    assert visits == [40]

    async def emptied() -> list[Ticket | TooFast | None]:
        await rates.peek(payer)
        visits.clear()
        broker.script_flush()
        return await asyncio.gather(*(tried(payer) for _ in range(40)))

    assert sum(isinstance(x, Ticket) for x in run(emptied)) == 0
    assert visits == [40, 40]


def test_a_refused_call_is_counted_under_none_of_its_rules(payer: Payer) -> None:
    # Small limits refill slowly: a machine that is busy must not show as a difference.
    limit(payer, "team", requests=10, tokens=12)
    limit(payer, "key", requests=10, streams=1)

    async def story() -> tuple[Stand, ...]:
        assert isinstance(await tried(payer), Ticket)
        assert isinstance(await tried(payer), TooFast)
        return await rates.peek(payer)

    assert [(s.requests, s.tokens) for s in run(story)] == [(9, None), (9, 2)]


def test_tokens_are_corrected_when_the_call_has_ended(payer: Payer) -> None:
    limit(payer, tokens=1000, streams=1)

    async def left() -> int | None:
        return (await rates.peek(payer))[0].tokens

    async def story() -> list[int | None]:
        seen = []
        for used in (100, 1500):
            ticket = await rates.admit(plan(payer, tokens=400))
            assert ticket is not None
            seen.append(await left())
            await ticket.finish(used)
            # A second end changes nothing.
            await ticket.finish(0)
            seen.append(await left())
        back = await rates.admit(plan(Payer(team_id=uuid7())))
        assert back is None
        return seen

    # Steady refilling adds a few while this runs.
    figures = run(story)
    assert [round((x or 0) / 100) for x in figures] == [6, 9, 5, -6]


def test_what_something_else_refused_is_given_back_whole(payer: Payer) -> None:
    limit(payer, requests=5, tokens=1000, streams=1)

    async def story() -> tuple[Stand, ...]:
        for _ in range(20):
            ticket = await rates.admit(plan(payer))
            assert ticket is not None
            await ticket.give_back()
        return await rates.peek(payer)

    (stand,) = run(story)
    assert (stand.requests, stand.tokens) == (5, 1000)


def test_places_of_a_process_that_died_come_back_and_those_of_a_live_one_stay(
    payer: Payer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(payer, streams=2)
    monkeypatch.setattr(rates, "LEASE_SECONDS", 0.3)

    async def story() -> list[bool]:
        dead, alive = await rates.admit(plan(payer)), await rates.admit(plan(payer))
        assert dead is not None
        assert alive is not None
        rates._open.pop(dead.id)
        found = [isinstance(await tried(payer), Ticket)]
        for _ in range(8):
            await asyncio.sleep(0.05)
            await rates.renew()
        found.append(isinstance(await tried(payer), Ticket))
        found.append(isinstance(await tried(payer), Ticket))
        return found

    assert run(story) == [False, True, False]


def test_a_call_larger_than_a_minute_goes_when_nothing_else_did(payer: Payer) -> None:
    limit(payer, tokens=100)

    async def story() -> list[bool]:
        return [isinstance(await tried(payer, tokens=n), Ticket) for n in (5000, 1)]

    assert run(story) == [True, False]


@pytest.mark.parametrize("most", [{"requests": 0}, {"tokens": 0}, {"streams": 0}])
def test_a_limit_of_zero_admits_nothing(most: dict[str, int], payer: Payer) -> None:
    limit(payer, **most)

    async def story() -> Any:
        return await tried(payer)

    assert isinstance(run(story), TooFast)


def test_an_embedding_call_takes_no_place(payer: Payer) -> None:
    limit(payer, streams=1)

    async def story() -> list[bool]:
        return [
            isinstance(await tried(payer, kind=kind), Ticket)
            for kind in ("embedding", "embedding", "chat", "chat")
        ]

    assert run(story) == [True, True, True, False]


def test_without_valkey_calls_go_through_and_nobody_waits_twice(
    payer: Payer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(payer, requests=1)
    asked = []

    def away() -> Any:
        asked.append(1)
        raise redis.exceptions.ConnectionError

    async def story() -> tuple[list[Any], tuple[Stand, ...]]:
        with monkeypatch.context() as patch:
            patch.setattr(rate_visits, "async_redis", away)
            open_ = [await tried(payer) for _ in range(5)]
            return open_, await rates.peek(payer)

    assert run(story) == ([None] * 5, ())
    assert len(asked) == 1

    async def back() -> list[bool]:
        rates.forget()
        return [isinstance(await tried(payer), Ticket) for _ in range(2)]

    assert run(back) == [True, False]


def test_more_keys_are_not_more_room(payer: Payer, settings: Settings) -> None:
    settings.RATE_KEY_REQUESTS = 2
    others = [replace(payer, key_id=uuid7()) for _ in range(2)]
    limit(others[1], requests=1)

    async def story() -> list[Ticket | TooFast | None]:
        return [await tried(each) for each in (payer, others[0], payer, others[1])]

    found = run(story)
    assert [isinstance(each, Ticket) for each in found] == [True, True, False, True]
    assert isinstance(found[2], TooFast)
    assert "of your keys together" in found[2].message


def test_an_own_rule_replaces_the_default_of_its_scope_alone(payer: Payer, settings: Settings) -> None:
    rate_limit_set(scope="person", requests=10, tokens=None, streams=None)
    rate_limit_set(scope="team", requests=50, tokens=None, streams=None)
    rate_limit_set(scope="team", team_id=payer.team_id, requests=70, tokens=9, streams=None, set_by="user:x")
    settings.RATE_KEY_REQUESTS = 600
    assert rate_rules(payer) == (
        RateRule(f"op:{payer.account_id}", 600, None, None),
        RateRule(f"p:{payer.account_id}", 10, None, None),
        RateRule(f"t:{payer.team_id}", 70, 9, None),
    )
    rate_limit_set(scope="key", requests=1, tokens=None, streams=None)
    assert rate_rules(payer)[0].requests == 1
    rate_limit_set(scope="key", key_id=payer.key_id, requests=None, tokens=None, streams=None)
    assert [r.subject[0] for r in rate_rules(payer)] == ["p", "t"]
    assert rate_rules(Payer(team_id=payer.team_id, key_id=uuid7()))[0] == RateRule(
        f"ot:{payer.team_id}", 1, None, None
    )
    assert str(RateLimit.objects.get(subject="p:*")) == "p:*: 10 requests, None tokens a minute, None at once"


@pytest.mark.parametrize("wrong", [{"scope": "allowance"}, {"scope": "installation", "team_id": uuid7()}])
def test_a_rule_covers_what_can_be_counted(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        rate_limit_set(requests=1, tokens=None, streams=None, **wrong)


def test_headers_tell_of_the_rule_with_the_least_left() -> None:
    stands = [
        Stand(RateRule("k:1", 60, None, None), 30, None),
        Stand(RateRule("t:1", 100, 1000, None), 10, -250),
        Stand(RateRule("i", None, 0, None), None, 0),
    ]
    assert rates.headers(stands) == {
        "x-ratelimit-limit-requests": "100",
        "x-ratelimit-remaining-requests": "10",
        "x-ratelimit-reset-requests": "54.000s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "75.000s",
    }
    assert rates.headers([]) == {}
