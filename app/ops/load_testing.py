"""One deployment under rising load: calls of recorded lengths through the gate, and the server's own figures beside.

The calls are of kind `loadtest`, and the installation pays. Their words are drawn by chance: no cache knows them.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import cycle, islice
from typing import Any
from uuid import UUID

from app.billing.attempts import lengths_recent
from app.billing.estimating import call_price
from app.billing.types import CallKind, Payer
from app.catalog.models import Deployment
from app.catalog.selectors import Target, targets
from app.catalog.telemetry import Page, load_read, page_of
from app.catalog.tokenizers import tokenizer
from app.common.errors import AppError, NotFound
from app.common.models import uuid7
from app.gate.admission import Admission
from app.gate.counting import prompt_sent
from app.gate.services import reserve
from app.gate.types import CallPlan
from app.ops.load_curve import BUILT_IN, Call, Level, fitted, knee_of, level_of
from inference_client.errors import InferenceError
from inference_client.types import ChatRequest, Message

KIND: CallKind = "loadtest"
ENOUGH = 50
"""Calls on record from which on their lengths are replayed."""
RECORDED = 500
_PATIENCE = 20
"""Looks at a server's counters, a tenth of a second apart, until they have what was just answered."""
_TEMPLATE = 24
"""Tokens of a chat template around one message, more or less."""
_WRITES_ON: Mapping[str, Mapping[str, Any]] = {
    kind: {"ignore_eos": True} for kind in ("llamacpp", "vllm", "sglang")
}
"""Servers that can be told to write as many tokens as were recorded; others may end sooner."""
_WORDS: tuple[str, ...] = tuple(
    "time year people way day man thing woman life child world school state family student group country problem "  # noqa: SIM905 - words are read best as words
    "part place case week company system program question work number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father "
    "hour game line end member law car city name team minute idea body back parent face others level door".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be done to which deployment."""

    target: Target
    lengths: tuple[tuple[int, int], ...]
    """(input, output) tokens, replayed in turn."""
    source: str
    """ledger or built_in."""
    cut: int
    """So many of them had to be made shorter to fit the deployment."""
    levels: tuple[int, ...]
    rounds: int
    """Calls of each place at each level."""
    least: int
    """Calls of a level at least."""

    def calls_at(self, concurrency: int) -> int:
        """How many calls a level makes."""
        return max(concurrency * self.rounds, self.least)


def deployment_named(name: str) -> Target:
    """An enabled chat deployment by id, public name, or `name@backend`. Errors: NotFound with what there is."""
    known = targets(Deployment.Purpose.CHAT.value)
    found = [
        one
        for one in known
        if name in {str(one.deployment_id), one.public_name, f"{one.public_name}@{one.backend_name}"}
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{one.public_name}@{one.backend_name}" for one in found or known) or "none yet"
    what = f"`{name}` runs in several places" if found else f"There is no deployment `{name}`"
    raise NotFound(f"{what}. Name one of: {names}.", code="model_not_found")


def plan_made(target: Target, *, levels: Sequence[int], rounds: int, least: int) -> Plan:
    """Take the lengths from the ledger, or the built-in ones while there are fewer than `ENOUGH` on record."""
    recorded = lengths_recent(target.deployment_id, RECORDED)
    given = recorded if len(recorded) >= ENOUGH else BUILT_IN
    # In an order that does not hang on when they came, so that a level is like the next one.
    drawn = random.Random(len(given)).sample(given, len(given))  # noqa: S311 - no secret
    lengths, cut = fitted(drawn, window=target.context_window, most_output=target.max_output_tokens)
    return Plan(
        target=target,
        lengths=tuple(lengths),
        source="ledger" if given is recorded else "built_in",
        cut=cut,
        levels=tuple(sorted(set(levels))),
        rounds=rounds,
        least=least,
    )


def price_most(plan: Plan) -> tuple[int, Decimal | None]:
    """(calls, price) of all levels together: the most it can come to, since the test ends at the knee."""
    calls, price = 0, Decimal(0)
    for concurrency in plan.levels:
        for given, output in islice(cycle(plan.lengths), plan.calls_at(concurrency)):
            one = call_price(plan.target.price_key, team_id=None, input_tokens=given, output_tokens=output)
            calls += 1
            if one is None:
                return sum(map(plan.calls_at, plan.levels)), None
            price += one
    return calls, price


async def levels_run(plan: Plan, page: Page, *, told: Callable[[Level], None]) -> list[Level]:
    """Raise the load level by level until the knee is passed, most calls of a level fail, or levels run out."""
    found: list[Level] = []
    for concurrency in plan.levels:
        before = await load_read(page)
        level = level_of(concurrency, await _calls(plan, concurrency))
        level = replace(level, server=await _server(page, before, level))
        found.append(level)
        told(level)
        if knee_of(found) is not None or level.failed * 2 > level.calls:
            break
    return found


async def _server(page: Page, before: dict[str, float] | str, level: Level) -> dict[str, float] | None:
    """What the server counted since, once it has counted everything; None where it does not tell."""
    if isinstance(before, str) or "output_tokens_total" not in before:
        return None
    grown: dict[str, float] = {}
    for _ in range(_PATIENCE):
        after = await load_read(page)
        if isinstance(after, str):
            return None
        grown = {
            name.removesuffix("_total"): after[name] - before[name]
            for name in ("input_tokens_total", "output_tokens_total")
            if name in after and name in before
        }
        if grown.get("output_tokens", 0) >= level.output_tokens:
            break
        await asyncio.sleep(0.1)
    rate = grown.get("output_tokens", 0.0) / level.seconds if level.seconds else 0.0
    return {**grown, "tokens_per_s": round(rate, 2)}


async def _calls(plan: Plan, concurrency: int) -> list[Call]:
    """A level: `concurrency` places, each making one call after the other until none is left."""
    # Our own line is as long as the level, so what waits, waits at the server.
    target = replace(plan.target, slots=concurrency)
    waiting = iter(list(islice(cycle(plan.lengths), plan.calls_at(concurrency))))
    opened, made, zero = list[Admission](), list[asyncio.Task[Call]](), time.perf_counter()

    async def ready() -> tuple[Admission, Message] | None:
        """The next call, held, so that no place stands empty while a hold is opened."""
        if (lengths := next(waiting, None)) is None:
            return None
        admission, message = await _opened(target, *lengths)
        opened.append(admission)
        return admission, message

    async def place(group: asyncio.TaskGroup) -> None:
        current = await ready()
        while current is not None:
            following = group.create_task(ready())
            timed = await _timed(*current)
            made.append(group.create_task(_booked(current[0], *timed, zero)))
            current = await following

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(place(group))
    except ExceptionGroup as refusals:
        # What one place is refused, all are.
        raise refusals.exceptions[0] from refusals
    finally:
        for admission in opened:
            await admission.end()
    return [task.result() for task in made]


async def _opened(target: Target, given: int, output: int) -> tuple[Admission, Message]:
    """Hold one call. Errors: of billing, which would let no later call through either."""
    message = Message("user", _prompt(target, given))
    request = ChatRequest(model=target.upstream_model, messages=(message,), max_output_tokens=output)
    plan = CallPlan(
        reservation_id=uuid7(),
        payer=Payer(team_id=None),
        kind=KIND,
        targets=(target,),
        input_tokens=prompt_sent(target, request).expected * 2 + 2 * _TEMPLATE,
        output_tokens=output,
        min_output_tokens=output,
    )
    return await reserve(plan), message


async def _timed(admission: Admission, message: Message) -> tuple[float, float, str]:
    """Make the call: (begun, ended, why it failed)."""
    begun, problem = time.perf_counter(), ""
    extra = _WRITES_ON.get(admission.target.kind, {})
    try:
        async with aclosing(admission.infer((message,), extra=extra)) as batches:
            async for _ in batches:
                pass
    except (AppError, InferenceError) as exc:
        problem = exc.message
    return begun, time.perf_counter(), problem


async def _booked(admission: Admission, begun: float, ended: float, problem: str, zero: float) -> Call:
    settled = await admission.end()
    first = admission.timings[-1].first_token_s if admission.timings else None
    return Call(
        begun=begun - zero,
        first_token=None if first is None else begun - zero + first,
        ended=ended - zero,
        input_tokens=settled.input_tokens,
        output_tokens=settled.output_tokens,
        estimated=settled.estimated,
        problem=problem,
    )


def _prompt(target: Target, tokens: int) -> str:
    """Words that come to about so many tokens with the chat template; never the same ones twice."""
    wanted = max(1, tokens - _TEMPLATE)
    text = " ".join(random.choices(_WORDS, k=wanted))  # noqa: S311 - no secret
    counted = tokenizer(target.tokenizer).count(text)
    return " ".join(text.split()[: max(1, wanted * wanted // max(1, counted))])


def page_of_deployment(deployment_id: UUID) -> Page:
    """Where the server of a deployment shows its figures."""
    return page_of(Deployment.objects.select_related("backend").get(id=deployment_id).backend)
