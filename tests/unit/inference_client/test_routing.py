"""Which deployment answers, and why the others do not."""

from decimal import Decimal
from typing import Any

import pytest

from inference_client.routing import Candidate, Decision, Need, Rule, Rules, route

NEED = Need(model="chat", input_tokens=1000, output_tokens=500)


def candidate(name: str, **options: Any) -> Candidate:
    defaults: dict[str, Any] = {
        "model": "chat",
        "input_price": Decimal(1),
        "output_price": Decimal(2),
        "health": "up",
    }
    return Candidate(name=name, **(defaults | options))


def names(decision: Decision) -> list[str]:
    return [chosen.name for chosen in decision.chosen]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"enabled": False}, "switched off"),
        ({"clearance": "public"}, "cleared for public only, the turn is internal"),
        ({"context_window": 1499}, "needs 1500 tokens, its window holds 1499"),
        ({"max_output_tokens": 499}, "writes at most 499 tokens"),
        ({"input_price": None}, "has no price"),
        ({"output_price": None}, "has no price"),
        ({"health": "down"}, "is down"),
        ({"breaker_open": True}, "failed several times"),
    ],
)
def test_who_cannot_or_may_not_serve_is_named_with_a_reason(options: dict[str, Any], words: str) -> None:
    decision = route(NEED, [candidate("a", **options), candidate("b")])
    assert names(decision) == ["b"]
    assert words in decision.refused["a"]


def test_capabilities_must_be_there() -> None:
    need = Need(model="chat", input_tokens=1, output_tokens=1, capabilities=frozenset({"tools", "images"}))
    decision = route(need, [candidate("a", capabilities=frozenset({"tools"}))])
    assert decision.refused == {"a": "cannot do images"}
    assert decision.chosen == ()


@pytest.mark.parametrize(
    ("level", "clearance", "served"),
    [
        ("public", "public", True),
        ("internal", "public", False),
        ("internal", "internal", True),
        ("private", "internal", False),
        ("private", "private", True),
    ],
)
def test_clearance_binds(level: Any, clearance: Any, served: bool) -> None:
    need = Need(model="chat", input_tokens=1, output_tokens=1, level=level)
    assert bool(route(need, [candidate("a", clearance=clearance)]).chosen) is served


def test_what_is_unknown_is_not_held_against_a_server() -> None:
    assert names(route(NEED, [candidate("a", context_window=None, health="unknown")])) == ["a"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"priority": 1, "outstanding": 9, "slots": 9}, {}),
        ({"health": "up"}, {"health": "unknown"}),
        ({"outstanding": 1, "slots": 4}, {"outstanding": 1, "slots": 2}),
        ({"outstanding": 1, "slots": 2}, {"outstanding": 1, "slots": 2, "input_price": Decimal(3)}),
        ({}, {}),
    ],
)
def test_the_order_within_a_model(first: dict[str, Any], second: dict[str, Any]) -> None:
    one, other = candidate("a", **first), candidate("b", **second)
    assert names(route(NEED, [one, other])) == names(route(NEED, [other, one])) == ["a", "b"]


CHEAP = candidate(
    "cheap", model="small", input_price=Decimal("0.1"), output_price=Decimal("0.1"), size=Decimal(1)
)
EQUAL = candidate("equal", model="peer", size=Decimal(7))
DEAR = candidate("dear", model="large", input_price=Decimal(9), output_price=Decimal(9), size=Decimal(70))
OWN = candidate("own", size=Decimal(7))


def _rules(**options: Any) -> Rules:
    return Rules(by_name={"chat": Rule(models=("chat", "peer", "large", "small"), **options)})


def test_a_fallback_never_goes_to_a_dearer_model_by_itself() -> None:
    decision = route(NEED, [DEAR, CHEAP, EQUAL, OWN], _rules())
    assert names(decision) == ["own", "equal", "cheap"]
    assert decision.refused == {"dear": "is dearer than own"}
    assert decision.notices == ()


@pytest.mark.parametrize("trouble", [{"health": "down"}, {"breaker_open": True}])
def test_not_even_when_the_first_choice_does_not_answer(trouble: dict[str, Any]) -> None:
    own = candidate("own", size=Decimal(7), **trouble)
    decision = route(NEED, [DEAR, own], _rules())
    assert decision.chosen == ()
    assert decision.refused["dear"] == "is dearer than own"
    assert names(route(NEED, [DEAR, own], _rules(allow_dearer=True))) == ["dear"]


def test_unless_its_rule_says_so() -> None:
    assert names(route(NEED, [DEAR, CHEAP, EQUAL, OWN], _rules(allow_dearer=True))) == [
        "own",
        "equal",
        "dear",
        "cheap",
    ]


def test_when_the_wanted_model_cannot_answer_that_is_said() -> None:
    down = candidate("own", health="down")
    decision = route(NEED, [down, EQUAL], _rules())
    assert names(decision) == ["equal"]
    assert decision.notices == ("chat cannot answer now; peer answers in its place.",)


def test_the_smallest_that_can_do_it() -> None:
    rules = _rules(smallest=True, allow_dearer=True)
    narrow = candidate("narrow", model="small", context_window=100, size=Decimal(1))
    unsized = candidate("unsized", model="peer", size=None)
    assert names(route(NEED, [DEAR, OWN, narrow, unsized], rules)) == ["own", "dear", "unsized"]


def test_unpriced_deployments_serve_only_by_rule() -> None:
    free = candidate("free", input_price=None)
    decision = route(NEED, [free, EQUAL], _rules(allow_unpriced=True))
    assert names(decision) == ["free"]
    assert decision.refused == {"equal": "is dearer than free"}


def test_aliases_and_retired_models() -> None:
    rules = Rules(
        by_name={"auto": Rule(models=("chat", "small"))},
        successors={"old": "older", "older": "chat", "x": "y", "y": "x"},
    )
    assert names(route(Need(model="auto", input_tokens=1, output_tokens=1), [OWN, CHEAP], rules)) == [
        "own",
        "cheap",
    ]
    decision = route(Need(model="old", input_tokens=1, output_tokens=1), [OWN], rules)
    assert names(decision) == ["own"]
    assert decision.notices == (
        "old is retired; older answers in its place.",
        "older is retired; chat answers in its place.",
    )
    assert route(Need(model="x", input_tokens=1, output_tokens=1), [OWN], rules).chosen == ()


def test_a_decision_explains_itself() -> None:
    down = candidate("own2", health="down")
    free = candidate("free", model="peer", input_price=None)
    lines = route(NEED, [OWN, down, free], _rules(allow_unpriced=True, allow_dearer=True)).explain()
    assert lines == [
        "chat: 1000 + 500 tokens, level internal",
        "1. own (chat): up, 0 of 1 slots, at most 0.002",
        "2. free (peer): up, 0 of 1 slots, no price",
        "–  own2: is down",
    ]
