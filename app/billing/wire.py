"""Values to and from the JSON that `billing_reserve` and `billing_settle` speak. Money is text, so no float appears."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from app.billing.types import (
    OUTPUT_FLOOR,
    WITNESS_TOLERANCE,
    Attempt,
    Entry,
    Held,
    Hold,
    LimitState,
    Settled,
    Settlement,
)
from app.common.db import prepared

Json = dict[str, Any]


def call(function: str, payload: Mapping[str, Any]) -> Json:
    """Run one SQL function as one statement; outside a transaction that is one commit."""
    answer = call_maybe(function, payload)
    assert answer is not None
    return answer


def call_maybe(function: str, payload: Mapping[str, Any]) -> Json | None:
    """The same for a function that may answer null."""
    with prepared() as cursor:
        cursor.execute(f"SELECT {function}(%s::jsonb)::text", [written(payload)])
        answer = cursor.fetchone()[0]
    return None if answer is None else json.loads(answer, parse_float=Decimal)


def call_each(function: str, payloads: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Run one SQL function over several payloads, in order, as one statement."""
    with prepared() as cursor:
        cursor.execute(
            f"SELECT {function}(value)::text FROM jsonb_array_elements(%s::jsonb)",  # noqa: S608 - names are ours
            [written(payloads)],
        )
        return [json.loads(answer, parse_float=Decimal) for (answer,) in cursor.fetchall()]


def written(value: object) -> str:
    """As JSON. A server's own usage block may hold numbers that orjson has no room for."""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        return json.dumps(value, default=str)


def hold_payload(hold: Hold, *, currency: str, allow_unlimited: bool) -> Json:
    """What `billing_reserve` takes."""
    floor = OUTPUT_FLOOR if hold.min_output_tokens is None else hold.min_output_tokens
    return {
        "reservation_id": hold.reservation_id,
        "team_id": hold.payer.team_id,
        "account_id": hold.payer.account_id,
        "key_id": hold.payer.key_id,
        "kind": hold.kind,
        "price_key": hold.price_key,
        "fallback_price_keys": hold.fallback_price_keys,
        "extra": [{"price_key": key, "input_tokens": count} for key, count in hold.extra],
        "mode": hold.mode,
        "input_tokens": hold.input_tokens,
        "max_output_tokens": hold.output_tokens,
        "min_output_tokens": min(floor, hold.output_tokens),
        "currency": currency,
        "allow_unlimited": allow_unlimited,
        "effective_at": _iso(hold.effective_at),
        "expires_at": _iso(hold.expires_at),
        "ttl_seconds": hold.ttl_seconds,
        "dedupe_key": hold.dedupe_key,
        "fingerprint": hold.fingerprint,
        "deployment_id": hold.deployment_id,
        "turn_id": hold.turn_id,
        "thread_id": hold.thread_id,
        "collections": hold.collections,
        "request_id": hold.request_id,
    }


def hold_again_payload(hold: Hold, *, currency: str) -> Json:
    """What re-creates a forgotten hold: it counts when it was first asked for, which its id tells."""
    payload = hold_payload(hold, currency=currency, allow_unlimited=True)
    if hold.effective_at is None and hold.reservation_id.version == 7:
        millis = hold.reservation_id.int >> 80
        payload["effective_at"] = datetime.fromtimestamp(millis / 1000, tz=UTC).isoformat()
    return payload


def settlement_payload(settlement: Settlement, *, currency: str) -> Json:
    """What `billing_settle` takes."""
    payload: Json = {
        "reservation_id": settlement.reservation_id,
        "attempts": [attempt_payload(attempt) for attempt in settlement.attempts],
        "state": settlement.state,
    }
    if settlement.by_sweeper:
        payload["by"] = "sweeper"
        for attempt in payload["attempts"]:
            # Numbers from 1 are those of the calls themselves, should they be told after all.
            attempt["number"] = 0
    if settlement.hold is not None:
        payload["hold"] = hold_again_payload(settlement.hold, currency=currency)
    return payload


def attempt_payload(attempt: Attempt) -> Json:
    """One attempt as `billing_settle` takes it."""
    return {
        "number": attempt.number,
        "kind": attempt.kind,
        "outcome": attempt.outcome,
        "quantities": {**attempt.buckets.quantities(), **{k: v for k, v in attempt.units.items() if v}},
        "billed": attempt.billed,
        "source": attempt.source,
        "estimated": attempt.estimated,
        "estimate_reason": attempt.estimate_reason[:40],
        "price_key": attempt.price_key,
        "deployment_id": attempt.deployment_id,
        "requested_model": attempt.requested_model[:200],
        "served_model": attempt.served_model[:200],
        "upstream_id": attempt.upstream_id[:200],
        "finish_reason": attempt.finish_reason[:40],
        "finish_raw": attempt.finish_raw[:200],
        "error": attempt.error[:200],
        "raw_usage": attempt.raw_usage,
        "reported_cost": attempt.reported_cost,
        "reported_currency": attempt.reported_currency,
        "tolerance": WITNESS_TOLERANCE,
        "local_input_tokens": attempt.local_input_tokens,
        "local_output_tokens": attempt.local_output_tokens,
        "tokenizer": attempt.tokenizer[:60],
        "ttft_ms": attempt.ttft_ms,
        "total_ms": attempt.total_ms,
        "queue_ms": attempt.queue_ms,
        "itl_ms": attempt.itl_ms,
        "prompt_facts": attempt.prompt_facts,
        "flags": attempt.flags,
    }


def held_from(answer: Json) -> Held:
    return Held(
        reservation_id=UUID(answer["reservation_id"]),
        state=answer["state"],
        output_tokens=answer["output_tokens"],
        shrunk=answer["shrunk"],
        price=_money(answer["price"]),
        currency=answer["currency"],
        effective_at=datetime.fromisoformat(answer["effective_at"]),
        expires_at=datetime.fromisoformat(answer["expires_at"]),
        replayed=answer["replayed"],
        soft=tuple(limit_from(item) for item in answer["soft"]),
        tight=tuple(limit_from(item) for item in answer["tight"]),
    )


def settled_from(answer: Json) -> Settled:
    return Settled(
        reservation_id=UUID(answer["reservation_id"]),
        state=answer["state"],
        price=_money(answer["price"]),
        cost=_money(answer["cost"]),
        currency=answer["currency"],
        entries=tuple(
            Entry(
                id=UUID(entry["id"]),
                attempt=entry["attempt"],
                kind=entry["kind"],
                price=_money(entry["price"]),
                cost=_money(entry["cost"]),
            )
            for entry in answer["entries"]
        ),
        **{name: answer[name] for name in _SETTLED_PLAIN},
    )


_SETTLED_PLAIN = (
    "input_tokens",
    "output_tokens",
    "estimated",
    "price_missing",
    "overshoot",
    "late",
    "recreated",
    "replayed",
)


def refused_from(answer: Json) -> list[LimitState]:
    """The limits that refused, each with what the call would have taken of it."""
    return [
        replace(
            limit,
            needed=_money(answer["needs"].get(limit.unit)),
            least=_money(answer["least"].get(limit.unit)),
        )
        for limit in map(limit_from, answer["refused"])
    ]


def limit_from(answer: Mapping[str, Any]) -> LimitState:
    """A window as a limit, from an answer or from a row of `billing_limits`."""
    limit, spent, held = (Decimal(answer[name]) for name in ("limit", "spent", "held"))
    resets_at = answer["resets_at"]
    return LimitState(
        scope=answer["scope"],
        name=answer["name"],
        unit=answer["unit"],
        limit=_short(limit),
        remaining=_short(max(Decimal(0), limit - spent - held)),
        spent=_short(spent),
        held=_short(held),
        resets_at=datetime.fromisoformat(resets_at) if isinstance(resets_at, str) else resets_at,
        hard=answer["hard"],
        period=answer["period"],
        price_key=answer["price_key"] or None,
        budget_id=UUID(str(answer["budget_id"])),
        window_id=UUID(str(answer["window_id"])) if answer["window_id"] else None,
        subject=answer["subject"],
        zone=answer["zone"],
    )


def _money(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _short(amount: Decimal) -> Decimal:
    """Without the zeros that the column's scale adds; the value is the same."""
    return amount.quantize(Decimal(1)) if amount == amount.to_integral_value() else amount.normalize()


def _iso(instant: datetime | None) -> str | None:
    if instant is not None and instant.tzinfo is None:
        raise ValueError("Instants carry a zone.")
    return None if instant is None else instant.isoformat()
