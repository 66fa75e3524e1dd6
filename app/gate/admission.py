"""An open reservation and the calls to models made under it: in line for a server, sent, tried elsewhere, booked."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from app.billing import services as billing
from app.billing.types import Attempt, Held, Settled, Settlement
from app.catalog.selectors import Target
from app.common.aio import finished
from app.common.db import run_db
from app.common.errors import PartFailed
from app.gate import health
from app.gate.attempts import INPUT_SHORT, chat_attempt, embedding_attempt, embedding_cut, embedding_failed
from app.gate.clients import client, server_of, trace_towards
from app.gate.counting import prompt_sent
from app.gate.health import ServerResting, resting
from app.gate.limiter import InLine, slot
from app.gate.measuring import call_measured
from app.gate.rates import Ticket
from app.gate.retrying import delay, log_failure, log_short, worth_another
from app.gate.settling import Booking, settler
from app.gate.types import CallPlan
from inference_client.errors import InferenceError
from inference_client.fair_queue import Lane
from inference_client.types import (
    ChatRequest,
    Embeddings,
    EmbedRequest,
    Event,
    Message,
    ReasoningDelta,
    TextDelta,
    Timing,
    ToolCallDelta,
)

NARROWED_FROM = 200
"""Tokens: below this a hold that is too large is in nobody's way, and giving some back costs a commit."""


class Admission:
    """An open reservation and the calls made under it. Ends once, by `end`, whatever happened."""

    def __init__(self, plan: CallPlan, held: Held, ticket: Ticket | None = None) -> None:
        self.plan = plan
        self.held = held
        self.attempts: list[Attempt] = []
        self.timings: list[Timing] = []
        """Of the chat calls among them, in their order."""
        self.target: Target = plan.targets[0]
        """The deployment that serves, or will be tried first."""
        self.output_tokens = held.output_tokens
        """The output cap as granted: always sent upstream."""
        self.finish_reason = ""
        self.ticket = ticket
        """How rate limits counted it."""
        self.notices: list[Mapping[str, Any]] = []
        """What the reader should know of a call that was done without."""
        self.in_line: InLine | None = None
        """Who is told when a call waits in our line, and when no more."""
        self._settled: Settled | None = None
        self._waited_s = 0.0
        self._queued_s = 0.0

    async def infer(self, messages: Sequence[Message], **options: Any) -> AsyncGenerator[list[Event], None]:
        """The answer, in batches of events as they came. While nothing has come, the next deployment is tried after a
        failure, and in the end what certainly cost nothing is sent again.

        Errors: InferenceError of the last deployment tried; ServerResting when all are left alone; Busy when the line
        is too long.
        """
        targets, sendings = self.plan.targets, 1
        while True:
            again: dict[Target, float] = {}
            failure: InferenceError | None = None
            for target in targets:
                self.target = target
                began = False
                try:
                    async with (
                        admitted(target, self),
                        aclosing(self._call(target, messages, options)) as batches,
                    ):
                        async for batch in batches:
                            began = True
                            yield batch
                    return
                except ServerResting:
                    continue
                except InferenceError as exc:
                    if began or not worth_another(exc):
                        raise
                    failure = exc
                    if (wait := delay(exc, sendings)) is not None:
                        again[target] = wait
                    log_failure(target, exc)
            if not again:
                raise failure or resting(targets)
            await asyncio.sleep(min(again.values()))
            targets, sendings = tuple(again), sendings + 1

    async def _call(
        self, target: Target, messages: Sequence[Message], options: dict[str, Any]
    ) -> AsyncGenerator[list[Event], None]:
        """One upstream call; exactly one attempt is noted, also when the reader leaves or is cancelled."""
        request = ChatRequest(
            model=target.upstream_model,
            messages=tuple(messages),
            max_output_tokens=min(self.output_tokens, target.max_output_tokens),
            **options,
        )
        received: list[str] = []
        sent, queued_s = prompt_sent(target, request), self._queued_s
        self._queued_s = 0.0
        call = client().chat(server_of(target), request, precount=None if sent.pictures else sent.expected)
        trace_towards(target)
        try:
            async with call:
                # What one read of the socket brought: a fast server's tokens cost no step of the loop each.
                while batch := await call.batch():
                    received += map(_payload, batch)
                    yield batch
        except InferenceError as exc:
            health.failed(target, exc)
            raise
        finally:
            record = call.record
            if record.outcome == "completed" or (record.outcome == "stopped" and received):
                health.succeeded(target)
            self.timings.append(record.timing)
            self.finish_reason = record.finish_reason or ""
            number, text = len(self.attempts) + 1, "".join(received)
            attempt = chat_attempt(record, target, sent, text, number, queued_s=queued_s)
            if INPUT_SHORT in attempt.flags:
                log_short(target, attempt)
            self.attempts.append(attempt)
            call_measured(target, attempt)

    async def embed(self, texts: Sequence[str], *, role: str) -> Embeddings:
        """Embed a query under this reservation. Errors: PartFailed naming the embedder."""
        target = self.plan.embedding
        if target is None:
            raise PartFailed(
                "embedder", "No embedding server is set up; an administrator can add one.", retry_after=None
            )
        return await embed_with(target, texts, role=role, admission=self)

    async def narrow(self, input_tokens: int) -> None:
        """Hold no more than the prompt as it was built can take, where that gives back enough to matter to others."""
        spare = self.plan.input_tokens - input_tokens
        if spare < max(NARROWED_FROM, self.plan.input_tokens // 4):
            return
        keys = tuple(dict.fromkeys(target.price_key for target in self.plan.targets))
        await run_db(
            billing.reservation_lower,
            reservation_id=self.held.reservation_id,
            price_keys=keys,
            input_tokens=input_tokens,
        )

    def waited(self, seconds: float) -> None:
        """Add to the time in line."""
        self._waited_s += seconds
        self._queued_s += seconds

    def waited_take(self) -> float:
        """Seconds in line since this was last asked."""
        seconds, self._waited_s = self._waited_s, 0.0
        return seconds

    async def end(self, then: Callable[[Settled], None] | None = None) -> Settled:
        """Settle what was used, or release when nothing was. Idempotent; survives cancellation of the caller.

        `then` writes down what came of the call, in the same visit to the database; it must be safe to repeat.
        """
        # Under way while it is booked, and whether or not it can be: a place that nobody frees is renewed for ever.
        freed = None if self.ticket is None else self.ticket.finish(self._used())
        if self._settled is None:
            await finished(self._book(then))
        if freed is not None:
            await freed
        assert self._settled is not None
        return self._settled

    def _used(self) -> int:
        """Tokens as rate limits count them."""
        own = [a for a in self.attempts if a.billed and a.kind in {None, self.plan.kind}]
        return sum(a.buckets.input_total + a.buckets.output_total for a in own)

    async def _book(self, then: Callable[[Settled], None] | None) -> None:
        settlement = Settlement(self.held.reservation_id, attempts=tuple(self.attempts), hold=self.plan.hold)
        self._settled = await settler().settle(Booking(settlement, then))


@asynccontextmanager
async def admitted(
    target: Target, admission: Admission, *, lane: Lane = "interactive"
) -> AsyncIterator[None]:
    """A slot of a server that is not left alone. Errors: `resting`'s at once; Busy after a long wait in line."""
    # Nobody waits in line for a server that is not asked anyway; and while one waited, it may have failed.
    if health.health_of(target).state == "open":
        raise resting([target])
    payer, told = admission.plan.payer, admission.in_line
    async with slot(target, lane=lane, payer=payer, waited=admission.waited, in_line=told):
        if not health.admits(target):
            raise resting([target])
        try:
            yield
        finally:
            health.undecided(target)


async def embed_with(
    target: Target, texts: Sequence[str], *, role: str, admission: Admission, lane: Lane = "interactive"
) -> Embeddings:
    """One embedding call; its attempt is noted however it ends. Errors: PartFailed naming the embedder; Busy."""
    request = EmbedRequest(model=target.upstream_model, inputs=tuple(texts), input_type=role)
    attempts = admission.attempts
    async with admitted(target, admission, lane=lane):
        number = len(attempts) + 1
        attempt: Attempt | None = None
        try:
            trace_towards(target)
            answer = await client().embed(server_of(target), request)
            attempt = embedding_attempt(answer, target, texts, number)
            health.succeeded(target)
            return answer
        except InferenceError as exc:
            health.failed(target, exc)
            attempt = embedding_failed(target, exc, texts, number)
            raise PartFailed(
                "embedder",
                f"{exc.message.replace('inference server', 'embedding server')} Until then documents can be neither "
                "searched nor added.",
                code="embedder_unavailable",
                # Of a wrong key, or an answer that makes no sense, nobody knows when to come again.
                retry_after=(exc.retry_after or 5.0) if exc.retryable else None,
            ) from exc
        finally:
            # Counted only when it is needed: for a batch that takes a while.
            attempt = attempt or embedding_cut(target, texts, number)
            attempts.append(attempt)
            call_measured(target, attempt)


def _payload(event: Event) -> str:
    match event:
        case TextDelta(text=text) | ReasoningDelta(text=text):
            return text
        case ToolCallDelta(arguments=arguments):
            return arguments
