"""Breaker, retries and the order of a line."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_client import errors
from inference_client.breaker import Breaker, BreakerLimits
from inference_client.fair_queue import LANES, FairQueue, Lane
from inference_client.retry import Retry

LIMITS = BreakerLimits(failures=3, pause_s=10, longest_s=25, trial_s=60)


def _broken(times: int, now: float = 0.0) -> Breaker:
    breaker = Breaker(LIMITS)
    for _ in range(times):
        breaker.failed(errors.Unreachable(), now)
    return breaker


def test_some_failures_in_a_row_open_it() -> None:
    assert _broken(2).admits(0)
    assert _broken(3).state(0) == "open"
    assert not _broken(3).admits(9.9)


def test_a_success_between_begins_anew() -> None:
    breaker = _broken(2)
    breaker.succeeded()
    breaker.failed(errors.TimedOut("idle", 1), 0)
    assert breaker.state(0) == "closed"


@pytest.mark.parametrize(
    "error", [errors.Overloaded(), errors.Throttled(), errors.InvalidRequest(), errors.BadAuth()]
)
def test_a_server_that_answers_is_healthy(error: errors.InferenceError) -> None:
    breaker = _broken(2)
    breaker.failed(error, 0)
    breaker.failed(errors.ServerFault(), 0)
    assert breaker.state(0) == "closed"


def test_half_open_lets_one_through() -> None:
    breaker = _broken(3)
    assert breaker.state(10) == "half-open"
    assert breaker.admits(10)
    assert not breaker.admits(11)
    assert breaker.admits(71), "a trial that never reports is forgotten"
    breaker.succeeded()
    assert breaker.state(72) == "closed"


def test_each_failed_trial_doubles_the_pause_up_to_the_longest() -> None:
    breaker = _broken(3)
    for now, pause in ((10.0, 20.0), (30.0, 25.0), (55.0, 25.0)):
        assert breaker.admits(now)
        breaker.failed(errors.BrokenStream(), now)
        assert not breaker.admits(now + pause - 0.1)
        assert breaker.state(now + pause) == "half-open"


def test_late_failures_do_not_lengthen_the_pause() -> None:
    breaker = _broken(3)
    breaker.failed(errors.Unreachable(), 5)
    assert breaker.state(10) == "half-open"
    assert Breaker().state(0) == "closed"


def test_it_tells_how_long_its_pause_lasts() -> None:
    breaker = _broken(3)
    assert [breaker.wait_s(now) for now in (0, 4, 10, 11)] == [10, 6, 0, 0]
    assert _broken(2).wait_s(0) == 0


def test_a_trial_that_told_nothing_leaves_the_way_to_the_next() -> None:
    breaker = _broken(3)
    assert breaker.admits(10)
    assert not breaker.admits(11)
    breaker.undecided()
    assert breaker.state(11) == "half-open"
    assert breaker.admits(11)
    assert not breaker.admits(12)


RETRY = Retry(attempts=3, base_s=1, cap_s=10, chance=random.Random(1))


@pytest.mark.parametrize(
    ("error", "attempt", "least", "most"),
    [
        (errors.Unreachable(), 1, 0, 1),
        (errors.Unreachable(), 2, 0, 2),
        (errors.Throttled(retry_after=4), 1, 4, 5),
        (errors.Throttled(retry_after=9.9), 2, 9.9, 10),
    ],
)
def test_waits_are_spread_and_never_shorter_than_asked(
    error: errors.InferenceError, attempt: int, least: float, most: float
) -> None:
    delays = [RETRY.delay(error, attempt) for _ in range(200)]
    assert all(delay is not None and least <= delay <= most for delay in delays)
    assert len(set(delays)) > 1


@pytest.mark.parametrize(
    ("error", "attempt"),
    [
        (errors.Unreachable(), 3),
        (errors.Throttled(retry_after=11), 1),
        (errors.UpstreamMoneyExhausted(), 1),
        (errors.BrokenStream(), 1),
        (errors.TimedOut("idle", 1), 1),
        (errors.Unsupported(), 1),
    ],
)
def test_what_is_not_sent_again(error: errors.InferenceError, attempt: int) -> None:
    assert RETRY.delay(error, attempt) is None


def _queue(*rows: tuple[str, Lane, str, str]) -> FairQueue[str]:
    queue: FairQueue[str] = FairQueue()
    for item, lane, team, person in rows:
        queue.put(item, lane=lane, team=team, person=person)
    return queue


def _order(queue: FairQueue[Any], lane: Lane = "interactive") -> list[Any]:
    taken = []
    while (item := queue.take(lane)) is not None:
        taken.append(item)
    return taken


def test_teams_take_turns_then_people() -> None:
    queue = _queue(
        ("a1", "interactive", "A", "ann"),
        ("a2", "interactive", "A", "ann"),
        ("a3", "interactive", "A", "bob"),
        ("b1", "interactive", "B", "eve"),
    )
    assert _order(queue) == ["a1", "b1", "a3", "a2"]
    assert len(queue) == 0
    assert queue.take("interactive") is None


def test_lanes_are_apart() -> None:
    queue = _queue(("x", "background", "A", "ann"), ("y", "interactive", "A", "ann"))
    assert (_order(queue), _order(queue, "background")) == (["y"], ["x"])


def test_leaving_the_line() -> None:
    queue = _queue(("x", "interactive", "A", "ann"), ("y", "interactive", "A", "ann"))
    queue.remove("x")
    queue.remove("never there")
    assert _order(queue) == ["y"]


PLACES = st.tuples(st.sampled_from(LANES), st.sampled_from("ABC"), st.sampled_from("pqr"))


@settings(max_examples=200, deadline=None)
@given(st.lists(PLACES, max_size=20), PLACES)
def test_how_many_are_ahead_is_what_happens(
    places: list[tuple[Lane, str, str]], mine: tuple[Lane, str, str]
) -> None:
    """Exact up to one round: whose turn it is in this round depends on who was served last."""
    queue: FairQueue[int] = FairQueue()
    for number, (lane, team, person) in enumerate(places):
        queue.put(number, lane=lane, team=team, person=person)
    lane, team, person = mine
    said = queue.ahead(lane=lane, team=team, person=person)
    queue.put(-1, lane=lane, team=team, person=person)
    served = _order(queue)
    if lane == "background":
        served += _order(queue, "background")
    assert served.index(-1) <= said + 3
    assert said <= len(places)


@settings(max_examples=100, deadline=None)
@given(st.lists(PLACES, max_size=25), st.sets(st.integers(0, 24)))
def test_nobody_is_lost_or_served_twice(places: list[tuple[Lane, str, str]], leaving: set[int]) -> None:
    queue: FairQueue[int] = FairQueue()
    for number, (lane, team, person) in enumerate(places):
        queue.put(number, lane=lane, team=team, person=person)
    for number in leaving:
        queue.remove(number)
    stay = set(range(len(places))) - leaving
    assert len(queue) == len(stay)
    served = _order(queue) + _order(queue, "background")
    assert sorted(served) == sorted(stay)
