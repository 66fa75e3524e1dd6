"""What happens in a demonstration year: who asks when, how long, with what. Random by seed alone, so it repeats.

Lengths are log-normal as measured on real chats; conversations carry their history, so they grow dearer turn by turn;
weeks have working days, days have hours, months grow. Some calls fail and are repeated, some are stopped and estimated,
a few use more than was held.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from math import exp
from random import Random
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from app.billing.seeding import PastCall
from app.billing.types import Attempt, Buckets, Hold, Payer
from app.ops.demo_rows import EMBEDDER, MODELS, DemoHouse, DemoModel, DemoTeam

WEEK = (1.0, 1.08, 1.1, 1.05, 0.85, 0.12, 0.09)
HOURS = (1, 0, 0, 0, 0, 1, 3, 12, 40, 70, 80, 72, 40, 60, 78, 70, 55, 30, 14, 9, 7, 5, 4, 2)
A_DAY = 0.08
"""Conversations of a usual person on a usual working day of the first month."""
GROWTH = 0.05
"""A month."""
SYSTEM = 220


@dataclass(slots=True)
class DemoTurn:
    """A turn as the chat's own tables would have it, figures alone."""

    turn_id: UUID
    began: datetime
    parts: dict[str, int]
    call: PastCall


@dataclass(slots=True)
class DemoThread:
    """A conversation with its turns."""

    thread_id: UUID
    team: DemoTeam
    user_id: UUID
    model: DemoModel
    turns: list[DemoTurn] = field(default_factory=list)


@dataclass(slots=True)
class Year:
    """Makes days of calls. Ids come from the seed too."""

    house: DemoHouse
    zone: str
    random: Random

    def uuid(self, at: datetime) -> UUID:
        """A UUIDv7 of that time."""
        millis = int(at.timestamp() * 1000)
        return UUID(
            int=millis << 80
            | 7 << 76
            | self.random.getrandbits(12) << 64
            | 2 << 62
            | self.random.getrandbits(62)
        )

    def day(self, day: date, months: float, until: datetime) -> tuple[list[PastCall], list[DemoThread]]:
        """Every call that ended before `until`, by time; and the conversations that began."""
        level = (
            WEEK[day.weekday()] * (1 + GROWTH) ** months * _season(day) * self.random.lognormvariate(0, 0.1)
        )
        calls: list[PastCall] = []
        threads: list[DemoThread] = []
        for team in self.house.teams:
            for user, activity in team.people:
                for _ in range(_poisson(A_DAY * activity * level, self.random)):
                    thread, made = self._conversation(team, user.id, user.account_id, self._moment(day))
                    threads.append(thread)
                    calls += made
            calls += self._batch(team, day) if team.key_id else []
            calls += self._reading(team, day, level)
        done = [call for call in calls if call.ended_at < until]
        return sorted(done, key=lambda call: call.ended_at), threads

    def _moment(self, day: date) -> datetime:
        hour = self.random.choices(range(24), HOURS)[0]
        second = self.random.randrange(3600)
        return datetime.combine(day, time(hour), tzinfo=ZoneInfo(self.zone)) + timedelta(seconds=second)

    def _conversation(
        self, team: DemoTeam, user_id: UUID, account_id: UUID, at: datetime
    ) -> tuple[DemoThread, list[PastCall]]:
        random = self.random
        model = random.choices(MODELS, team.taste)[0]
        thread = DemoThread(self.uuid(at), team, user_id, model)
        searched: tuple[UUID, ...] = (random.choice(team.collections),) if random.random() < 0.7 else ()
        if searched and len(team.collections) > 1 and random.random() < 0.3:
            searched = tuple(sorted(team.collections))
        turns = random.randrange(12, 45) if random.random() < 0.03 else 1 + _geometric(0.45, random)
        payer = Payer(team_id=team.row.id, account_id=account_id)
        calls: list[PastCall] = []
        history = 0
        for number in range(turns):
            parts = {
                "system": SYSTEM,
                "history": history,
                "attachments": 0,
                "retrieved": _length(1500, 0.5, random) if searched else 0,
                "draft": _length(38, 0.9, random),
            }
            call, output = self._turn(thread, payer, searched, parts, at, first=number == 0)
            calls.append(call)
            thread.turns.append(DemoTurn(_some(call.hold.turn_id), at, parts, call))
            history += parts["draft"] + output
            at = call.ended_at + timedelta(seconds=20 + random.expovariate(1 / 90))
        calls.append(self._title(payer, thread, calls[0].ended_at))
        return thread, calls

    def _turn(
        self,
        thread: DemoThread,
        payer: Payer,
        searched: tuple[UUID, ...],
        parts: dict[str, int],
        at: datetime,
        *,
        first: bool,
    ) -> tuple[PastCall, int]:
        random, model = self.random, thread.model
        whole = sum(parts.values())
        output = min(_length(240, 0.8, random), 3500)
        reasoning = min(_length(600, 0.9, random), 6000) if model.reasons else 0
        cap = 8192 if model.reasons else 4096
        if random.random() < 0.0006:
            output = cap + 300
        cached = (
            round((parts["system"] + parts["history"]) * 0.9) if not first and model.cost is not None else 0
        )
        attempts: list[Attempt] = []
        if searched:
            attempts.append(self._embedding(parts["draft"] + 8, len(attempts) + 1))
        if random.random() < 0.015:
            attempts.append(self._failure(model, len(attempts) + 1))
        told = round(whole * (1 + model.bias + random.gauss(0, 0.004)))
        buckets = Buckets.from_totals(
            input_tokens=told, output_tokens=output + reasoning, cache_read=cached, reasoning=reasoning
        )
        attempts.append(self._answer(model, len(attempts) + 1, buckets, whole))
        hold = Hold(
            reservation_id=self.uuid(at),
            payer=payer,
            kind="chat",
            price_key=f"demo/{model.name}",
            extra=((f"demo/{EMBEDDER.name}", parts["draft"] + 8),) if searched else (),
            deployment_id=self.house.deployments[model.name].id,
            input_tokens=round(told * 1.02) + 16,
            output_tokens=cap,
            effective_at=at,
            turn_id=self.uuid(at),
            thread_id=thread.thread_id,
            collections=searched,
        )
        return PastCall(
            hold, tuple(attempts), at + timedelta(milliseconds=attempts[-1].total_ms or 0)
        ), output

    def _answer(self, model: DemoModel, number: int, buckets: Buckets, local: int) -> Attempt:
        random = self.random
        ttft = model.ttft_ms * random.lognormvariate(0, 0.4) + buckets.input * 0.04
        itl = 1000 / (model.tokens_per_s * random.lognormvariate(0, 0.15))
        stopped = random.random() < 0.025
        estimate: dict[str, Any] = (
            {"outcome": "stopped", "source": "local", "estimated": True, "estimate_reason": "client_gone"}
            if stopped
            else {}
        )
        return Attempt(
            number=number,
            buckets=buckets,
            deployment_id=self.house.deployments[model.name].id,
            price_key=f"demo/{model.name}",
            requested_model=model.name,
            served_model=model.name,
            local_input_tokens=local,
            tokenizer="o200k_base",
            finish_reason="" if stopped else "stop",
            ttft_ms=round(ttft),
            itl_ms=round(itl, 2),
            total_ms=round(ttft + itl * buckets.output_total),
            queue_ms=round(random.expovariate(1 / 12)),
            **estimate,
        )

    def _failure(self, model: DemoModel, number: int) -> Attempt:
        return Attempt(
            number=number,
            outcome="failed",
            billed=False,
            source="none",
            error="ServerUnavailable",
            deployment_id=self.house.deployments[model.name].id,
            price_key=f"demo/{model.name}",
            requested_model=model.name,
            total_ms=round(self.random.expovariate(1 / 900)),
        )

    def _embedding(self, tokens: int, number: int) -> Attempt:
        return Attempt(
            number=number,
            kind="embedding",
            buckets=Buckets(input=tokens),
            deployment_id=self.house.deployments[EMBEDDER.name].id,
            price_key=f"demo/{EMBEDDER.name}",
            requested_model=EMBEDDER.name,
            served_model=EMBEDDER.name,
            total_ms=round(EMBEDDER.ttft_ms * self.random.lognormvariate(0, 0.3)),
        )

    def _title(self, payer: Payer, thread: DemoThread, at: datetime) -> PastCall:
        return self._plain(
            payer, "title", MODELS[1], Buckets(input=420, output=9), at, thread_id=thread.thread_id
        )

    def _batch(self, team: DemoTeam, day: date) -> Iterator[PastCall]:
        """A team's own program at night, without a person."""
        at = datetime.combine(day, time(2), tzinfo=ZoneInfo(self.zone))
        payer = Payer(team_id=team.row.id, key_id=team.key_id)
        for _ in range(self.random.randrange(1, 5)):
            at += timedelta(seconds=self.random.expovariate(1 / 30))
            buckets = Buckets(input=_length(2600, 0.4, self.random), output=_length(160, 0.5, self.random))
            yield self._plain(payer, "chat", MODELS[3], buckets, at)

    def _reading(self, team: DemoTeam, day: date, level: float) -> Iterator[PastCall]:
        """Documents that were added, embedded in batches."""
        for _ in range(_poisson(0.08 * level, self.random)):
            collection = self.random.choice(team.collections)
            at = self._moment(day)
            for _ in range(1 + _geometric(0.4, self.random)):
                buckets = Buckets(input=_length(9000, 0.4, self.random))
                yield self._plain(
                    Payer(team_id=team.row.id), "embedding", EMBEDDER, buckets, at, collections=(collection,)
                )
                at += timedelta(seconds=2)

    def _plain(
        self, payer: Payer, kind: Any, model: DemoModel, buckets: Buckets, at: datetime, **belongs: Any
    ) -> PastCall:
        answer = self._answer(model, 1, buckets, buckets.input_total)
        hold = Hold(
            reservation_id=self.uuid(at),
            payer=payer,
            kind=kind,
            price_key=f"demo/{model.name}",
            deployment_id=self.house.deployments[model.name].id,
            input_tokens=buckets.input_total,
            output_tokens=buckets.output_total + 64 if buckets.output_total else 0,
            effective_at=at,
            **belongs,
        )
        return PastCall(hold, (answer,), at + timedelta(milliseconds=answer.total_ms or 0))


def _season(day: date) -> float:
    if (day.month, day.day) >= (12, 23) or (day.month, day.day) <= (1, 2):
        return 0.2
    return 0.75 if day.month in {7, 8} else 1.0


def _length(median: float, sigma: float, random: Random) -> int:
    return max(4, round(median * random.lognormvariate(0, sigma)))


def _geometric(stop: float, random: Random) -> int:
    count = 0
    while random.random() > stop:
        count += 1
    return count


def _poisson(mean: float, random: Random) -> int:
    count, product, limit = 0, random.random(), exp(-mean)
    while product > limit:
        count, product = count + 1, product * random.random()
    return count


def _some(identity: UUID | None) -> UUID:
    assert identity is not None
    return identity
