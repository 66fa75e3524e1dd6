"""Rate limits: requests and tokens a minute, answers at once. Counted in Valkey, one script for each step.

When Valkey is away, calls go through: a rate limit protects from haste, not from spending, and money is held in
PostgreSQL all the same. After a failure it is left alone for a few seconds, so that nobody waits for it twice.
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from uuid import UUID

from app.billing.naming import covers_of
from app.billing.rate_limits import rate_rules
from app.billing.types import Payer, RateRule
from app.common.cache import remembered
from app.common.db import read_db, run_db
from app.common.errors import RateLimited
from app.common.formatting import count
from app.gate.rate_visits import Answer, visits
from app.gate.types import CallPlan

LEASE_SECONDS = 60
"""A stream counts this long after its process was last heard of."""
REST_SECONDS = 5.0

Mode: TypeAlias = Literal["admit", "peek", "finish", "renew"]
_rules_of = remembered(3.0)(rate_rules)
_open: dict[UUID, "Ticket"] = {}
"""Of this process: their leases are renewed by the pulse."""
_rests_until = 0.0


@dataclass(frozen=True, slots=True)
class Stand:
    """What is left of one rule; None: no limit."""

    rule: RateRule
    requests: int | None
    tokens: int | None


@dataclass(slots=True)
class Ticket:
    """A call that was counted. Ends once, by `finish` or `give_back`."""

    id: UUID
    rules: tuple[RateRule, ...]
    tokens: int
    """Charged beforehand."""
    lease: str
    """Empty: holds no place."""
    stands: tuple[Stand, ...] = ()
    ended: bool = field(default=False)

    def finish(self, used: int) -> Awaitable[object]:
        """Put the tokens that were really used in place of those that were charged, and free the place.

        That is under way when this returns; to await it is to wait until Valkey has done so.
        """
        return self._end(requests=0, tokens=self.tokens - used)

    def give_back(self) -> Awaitable[object]:
        """As if the call had never been: it was refused by something else."""
        return self._end(requests=1, tokens=self.tokens)

    def _end(self, *, requests: int, tokens: int) -> Awaitable[object]:
        if self.ended:
            return _nothing()
        self.ended = True
        _open.pop(self.id, None)
        return _asked("finish", self.rules, lease=self.lease, requests=requests, tokens=tokens)


async def admit(plan: CallPlan) -> Ticket | None:
    """Count a call before it is reserved. None: nothing limits it, or Valkey is away.

    Errors: RateLimited with the rule that has no room and the wait; nothing is counted then.
    """
    rules = await _rules(plan.payer)
    if not rules:
        return None
    tokens = plan.input_tokens + plan.output_tokens
    lease = str(plan.reservation_id) if plan.kind == "chat" else ""
    answer = await _asked("admit", rules, lease=lease, requests=1, tokens=tokens)
    if answer is None:
        return None
    failed, kind, wait, *_ = answer
    stands = _stands(rules, answer)
    if failed:
        raise await _refusal(rules[failed - 1], kind, wait, stands)
    ticket = _open[plan.reservation_id] = Ticket(plan.reservation_id, rules, tokens, lease, stands)
    return ticket


async def peek(payer: Payer) -> tuple[Stand, ...]:
    """How the payer's limits stand, without counting anything. Empty when nothing is limited or known."""
    rules = await _rules(payer)
    answer = await _asked("peek", rules) if rules else None
    return () if answer is None else _stands(rules, answer)


async def renew() -> None:
    """Say that this process's streams still run. Called by the pulse."""
    for ticket in [t for t in _open.values() if t.lease and any(r.streams is not None for r in t.rules)]:
        await _asked("renew", ticket.rules, lease=ticket.lease)


def headers(stands: Sequence[Stand]) -> dict[str, str]:
    """`x-ratelimit-*` of the rule with the least left, for requests and for tokens."""
    shown: dict[str, str] = {}
    for unit in ("requests", "tokens"):
        found = [(getattr(s, unit), getattr(s.rule, unit)) for s in stands if getattr(s, unit) is not None]
        if found:
            left, most = min(found, key=lambda pair: pair[0] / (pair[1] or 1))
            full_s = (most - left) * 60 / most if most else 60
            shown |= {
                f"x-ratelimit-limit-{unit}": str(most),
                f"x-ratelimit-remaining-{unit}": str(max(0, left)),
                f"x-ratelimit-reset-{unit}": f"{full_s:.3f}s",
            }
    return shown


async def _rules(payer: Payer) -> tuple[RateRule, ...]:
    return await read_db(_rules_of, payer)


def _asked(
    mode: Mode, rules: Sequence[RateRule], *, lease: str = "", requests: int = 0, tokens: int = 0
) -> asyncio.Future[Answer]:
    """The script's answer to come; None when Valkey does not give one."""
    if time.monotonic() < _rests_until:
        return _nothing()
    keys = [f"tessera:rate:{kind}:{rule.subject}" for rule in rules for kind in ("req", "tok", "str")]
    limits = [-1 if x is None else x for r in rules for x in (r.requests, r.tokens, r.streams)]
    answer = visits().ask(keys, [mode, lease, round(LEASE_SECONDS * 1000), requests, tokens, *limits])
    answer.add_done_callback(_heard)
    return answer


def _nothing() -> asyncio.Future[Answer]:
    nothing: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    nothing.set_result(None)
    return nothing


def _heard(answer: asyncio.Future[Answer]) -> None:
    global _rests_until  # noqa: PLW0603 - one process, one Valkey
    if not answer.cancelled() and answer.result() is None:
        _rests_until = time.monotonic() + REST_SECONDS


def _stands(rules: Sequence[RateRule], answer: Sequence[int]) -> tuple[Stand, ...]:
    left = answer[3:]
    return tuple(
        Stand(
            rule,
            None if rule.requests is None else left[2 * n],
            None if rule.tokens is None else left[2 * n + 1],
        )
        for n, rule in enumerate(rules)
    )


_KINDS: Mapping[int, tuple[str, str]] = {
    1: ("requests", "requests a minute"),
    2: ("tokens", "tokens a minute"),
    3: ("streams", "answers at once"),
}
_SCOPES = {"k": "key", "o": "key", "p": "person", "t": "team", "i": "installation"}


def forget() -> None:
    """Read the limits anew, and ask Valkey again, at the next call."""
    global _rests_until  # noqa: PLW0603 - one process, one Valkey
    _rests_until = 0.0
    _rules_of.forget()


class TooFast(RateLimited):
    """A rate limit has no room now."""

    stands: tuple[Stand, ...] = ()


async def _refusal(rule: RateRule, kind: int, wait_ms: int, stands: tuple[Stand, ...]) -> TooFast:
    unit, words = _KINDS[kind]
    covers = await run_db(covers_of, rule.subject)
    limit, wait_s = getattr(rule, unit), max(0.001, wait_ms / 1000)
    when = "Wait until one has ended" if unit == "streams" else f"Try again in {max(1, round(wait_s))} s"
    stand = next(s for s in stands if s.rule is rule)
    error = TooFast(
        f"The rate limit {covers.phrase} is {count(limit)} {words}, and there is no room for this call now. "
        f"{when}; nothing was sent or charged. {covers.raised_by.rstrip(',')} can ask for a higher one.",
        detail={
            "scope": _SCOPES[rule.subject[0]],
            "unit": unit if unit == "streams" else f"{unit}_per_minute",
            "limit": str(limit),
            "remaining": str(max(0, getattr(stand, unit, None) or 0)),
            "resets_at": None,
        },
        retry_after=wait_s,
    )
    error.stands = stands
    return error
