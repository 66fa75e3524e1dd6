"""Models compared by their answers to the same questions: each asked as in the chat, through the gate, not stored.

The calls are of kind `evaluation`, and the installation pays. Whoever is named reads: no passage is used that this
person may not see.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from app.accounts.selectors import Caller
from app.billing.selectors import entries_of
from app.billing.types import CallKind, EntryRow
from app.chat.asking import ask_draft
from app.chat.planning import counted_at_once
from app.chat.quoting import verdict_of
from app.chat.runs import runs
from app.chat.turn import take_turn
from app.chat.types import Ask, Options
from app.common.db import run_db
from app.common.models import uuid7
from app.ops.answer_sets import Case, Judged, Sent, judge
from app.ops.load_curve import spread
from retrieval.citations import citations

KIND: CallKind = "evaluation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked of each model."""

    caller: Caller
    models: tuple[str, ...]
    cases: tuple[Case, ...]
    collections: tuple[UUID, ...]
    max_output_tokens: int | None = None
    at_once: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What comparing will take, before anything is sent. Prices are None where one is unknown."""

    calls: int
    input_tokens: int
    expected: Decimal | None
    most: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One model's answer to one question, with what the ledger says of it."""

    model: str
    case: Case
    text: str
    judged: Judged | None
    """None where there was no answer."""
    input_tokens: int
    output_tokens: int
    price: Decimal | None
    cost: Decimal | None
    estimated: bool
    ttft_ms: float | None
    total_ms: float | None
    problem: str = ""


def asks_of(wish: Wish) -> list[tuple[Case, Ask]]:
    """Every question for every model, model by model. Errors: NotFound naming models and collections there are."""
    return [(case, _ask(wish, model, case)) for model in wish.models for case in wish.cases]


def _ask(wish: Wish, model: str, case: Case) -> Ask:
    turn_id = uuid7()
    ask = ask_draft(
        caller=wish.caller,
        conversation_id=None,
        team_id=None,
        turn_id=turn_id,
        request_id=str(turn_id),
        text=case.question,
        model=model,
        collections=wish.collections,
    )
    # Another model that steps in would be judged under this one's name.
    own = tuple(target for target in ask.targets if target.public_name == model) or ask.targets[:1]
    return replace(
        ask,
        targets=own,
        route=None,
        keep=False,
        kind=KIND,
        on_the_house=True,
        max_output_tokens=wish.max_output_tokens,
        options=Options(temperature=0.0),
    )


async def quote(asks: Sequence[tuple[Case, Ask]]) -> Quote:
    """Count and price all of it. Nothing is sent."""
    tokens, expected, most = 0, list[Decimal | None](), list[Decimal | None]()
    for _, ask in asks:
        fitted, estimate = await counted_at_once(ask)
        verdict = await run_db(verdict_of, fitted, estimate)
        tokens += estimate.total_expected
        expected.append(_amount(verdict["price"]["expected"]))
        most.append(_amount(verdict["price"]["high"]))
    return Quote(calls=len(asks), input_tokens=tokens, expected=_sum(expected), most=_sum(most))


def _amount(money: dict[str, str] | None) -> Decimal | None:
    return None if money is None else Decimal(money["amount"])


def _sum(amounts: Sequence[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None


async def compare(
    asks: Sequence[tuple[Case, Ask]], *, at_once: int, told: Callable[[Answered], None]
) -> list[Answered]:
    """Ask them in their order, `at_once` beside each other; `told` hears of each as it ends."""
    room = asyncio.Semaphore(at_once)

    async def one(case: Case, ask: Ask) -> Answered:
        async with room:
            answered = await _answered(case, ask)
        told(answered)
        return answered

    async with asyncio.TaskGroup() as group:
        work = [group.create_task(one(case, ask)) for case, ask in asks]
    return [task.result() for task in work]


async def _answered(case: Case, ask: Ask) -> Answered:
    run = runs().start(ask.turn_id, lambda run: take_turn(ask, run), replayable=False)
    assert run.task is not None
    await run.task
    items: Sequence[dict[str, Any]] = next(
        (event.data["items"] for event in run.log.events if event.name == "sources"), []
    )
    sent = [Sent(item["title"], item["text"]) for item in items]
    booked: list[EntryRow] = await run_db(entries_of, run.reservation_id) if run.reservation_id else []
    answers = [row for row in booked if row.call_kind == KIND]
    figures = run.figures()
    failed = run.failure
    return Answered(
        model=ask.model,
        case=case,
        text=run.log.text,
        judged=None if failed else judge(case, run.log.text, sent, citations(run.log.text, len(sent)).cited),
        input_tokens=sum(row.input_tokens for row in answers),
        output_tokens=sum(row.output_tokens for row in answers),
        price=_sum([row.price for row in booked]),
        cost=_sum([row.cost for row in booked]),
        estimated=any(row.estimated for row in booked),
        ttft_ms=figures.get("ttft_ms"),
        total_ms=figures.get("total_ms"),
        problem="" if failed is None else failed.message,
    )


def figures_of(model: str, answers: Sequence[Answered]) -> dict[str, Any]:
    """One model's column; shares are None where nothing was asked of the kind."""
    mine = [one for one in answers if one.model == model]
    judged = [(one.case, one.judged) for one in mine if one.judged is not None]
    asked = [found for case, found in judged if not case.refuse]
    refusals = [found for case, found in judged if case.refuse]
    return {
        "model": model,
        "questions": len(mine),
        "failed": sum(bool(one.problem) for one in mine),
        "right": sum(found.right for _, found in judged),
        "facts": {
            "expected": sum(found.facts for found in asked),
            "retrieved": sum(found.retrieved for found in asked),
            "found": sum(found.found for found in asked),
            "cited": sum(found.cited for found in asked),
        },
        "refusals": {
            "expected": len(refusals),
            "right": sum(found.right for found in refusals),
            "wrong": sum(found.refused and not found.found for found in asked),
        },
        "tokens": {
            "input": sum(one.input_tokens for one in mine),
            "output": sum(one.output_tokens for one in mine),
        },
        "price": _sum([one.price for one in mine]),
        "cost": _sum([one.cost for one in mine]),
        "estimated": sum(one.estimated for one in mine),
        "ttft_ms": spread([one.ttft_ms for one in mine]),
        "total_ms": spread([one.total_ms for one in mine]),
    }


def answer_shown(one: Answered, *, words: bool) -> dict[str, Any]:
    """One answer for `--json`; its words only where they are asked for."""
    return {
        "model": one.model,
        "question": one.case.question,
        "refuse": one.case.refuse,
        **({} if one.judged is None else asdict(one.judged)),
        "ttft_ms": one.ttft_ms,
        "price": one.price,
        "problem": one.problem,
        **({"answer": one.text} if words else {}),
    }
