"""The one file that tells the whole story of a turn.

    request → authenticate → pre-count → check input → reserve → retrieve → stitch → redact → infer (stream)
            → check output → settle → append → response

The doors (`app.api.stream`, `manage.py ask`) authenticate and gather an `Ask`; from there chat, REST and `/v1` go
the same way. Each step hands the next a small frozen value. No database transaction is open while a model streams.
Whatever happens, the reservation ends once, and the reader gets exactly one end event.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import groupby
from typing import Any, Literal

from app.accounts.standing import standing_of
from app.billing.types import Settled
from app.chat import checks, prompting, showing
from app.chat.attaching import beginnings
from app.chat.attachments import BEGINNING_PIECES
from app.chat.clock import StageClock
from app.chat.planning import counted_at_once, plan_of
from app.chat.precount import Estimate
from app.chat.runs import ACCESS_ENDED, Run, Stopped, runs
from app.chat.timings import figures_of, note
from app.chat.titling import title_begin
from app.chat.turn_rows import persist, turn_close, turn_open
from app.chat.types import Ask, Ending
from app.common.aio import finished
from app.common.db import run_db
from app.common.errors import AppError
from app.common.logs import arrived_var, request_id_var
from app.gate.admission import Admission
from app.gate.health import ServerResting
from app.gate.rates import Stand
from app.gate.routing import fallback_notice
from app.gate.services import reserve
from app.gate.types import CallPlan
from inference_client.errors import InferenceError
from inference_client.types import Event, Message, ReasoningDelta, TextDelta, ToolCallDelta
from retrieval.errors import RetrievalError
from retrieval.quotes import quote_sentences
from retrieval.search import search
from retrieval.selectors import documents_unread
from retrieval.stitching import stitch
from retrieval.types import Passage, Prompt, Quote, Viewer

_KINDS: Mapping[type[Event], Literal["text", "reasoning"]] = {TextDelta: "text", ReasoningDelta: "reasoning"}
SEARCH_LIMIT = 12
QUOTE_LIMIT = 3


async def take_turn(ask: Ask, run: Run) -> None:
    """Run one turn to its end, which is an event of `run.log`. Raised is only what is a mistake of ours."""
    request_id_var.set(ask.request_id)
    turn = Turn(ask, run)
    try:
        with runs().watch.over(standing_of(ask.caller, ask.team_id), lambda: run.signal.stop(ACCESS_ENDED)):
            async with run.signal:
                await turn.answer()
    except Stopped as exc:
        turn.ending = (
            Ending.failed(showing.NOT_ANY_MORE) if exc.reason == ACCESS_ENDED else Ending.cut(exc.reason)
        )
    except (AppError, InferenceError, RetrievalError) as exc:
        turn.ending = Ending.failed(showing.failure(exc))
        await turn.speak_without_model(exc)
    except asyncio.CancelledError:
        turn.ending = Ending.cut("interrupted")
        raise
    finally:
        # Also after a mistake of ours: what a model has answered is booked, and the reader is told an end.
        await turn.close()
    if turn.admission is not None and turn.ending.error is None:
        title_begin(ask)


class Turn:
    """One turn under way: what each step left for the next."""

    def __init__(self, ask: Ask, run: Run) -> None:
        self.ask = ask
        self.run = run
        self.log = run.log
        self.clock = StageClock(arrived_var.get())
        run.figures = partial(self.clock.figures, output_tokens=None)
        self.estimate: Estimate | None = None
        self.admission: Admission | None = None
        self.passages: tuple[Passage, ...] = ()
        self.quotes: tuple[Quote, ...] = ()
        self.matches: list[dict[str, Any]] | None = None
        self.ending = Ending.failed(showing.MISTAKE)

    async def answer(self) -> None:
        """Everything up to the model's last word."""
        with self.clock.stage("precount"):
            self.ask, estimate = await counted_at_once(self.ask)
            self.estimate = estimate
        with self.clock.stage("check"):
            checks.check_input(self.ask.question)
        with self.clock.stage("reserve"):
            admission = await finished(self._reserve(plan_of(self.ask, estimate), estimate))
        self.log.emit("turn", showing.turn(self.ask, estimate, admission, replayable=self.run.replayable))
        with self.clock.stage("retrieve", queued=admission.waited_take):
            found = await self._retrieve(admission)
        with self.clock.stage("stitch"):
            prompt = self._stitch(estimate, found)
            await admission.narrow(estimate.held_for(prompt.input_tokens))
        if self.ask.targets[0].is_demonstration:
            with self.clock.stage("quote", queued=admission.waited_take):
                await self._quote(admission)
        with self.clock.stage("redact"):
            messages = prompting.outgoing(self.ask, prompt)
            sent, _ = checks.redact(
                messages, leaves_premises=any(t.leaves_premises for t in admission.plan.targets)
            )
        with self.clock.stage("infer", queued=admission.waited_take):
            await self._infer(admission, sent)
        with self.clock.stage("check_output"):
            checks.check_output(self.log.text)
        self.ending = Ending.done(admission.finish_reason)

    async def _reserve(self, plan: CallPlan, estimate: Estimate) -> Admission:
        """Hold the dearest this turn may cost; a turn with a conversation gets its row in the same breath."""
        self.run.reservation_id = plan.reservation_id
        opening = partial(turn_open, self.ask, estimate, plan) if self.ask.keep else None
        self.admission = await reserve(plan, opening=opening, counted=self._rates_note)
        self.run.kept = self.ask.keep
        return self.admission

    def _rates_note(self, stands: Sequence[Stand]) -> None:
        self.run.rates = stands

    async def _retrieve(self, admission: Admission) -> list[Passage]:
        """Passages this person may read, best first. The query's embedding is booked under this turn."""
        if not self.ask.collections:
            return []
        self.log.emit("status", {"phase": "retrieving"})
        searched = self.ask.attached.searched
        found = await search(
            query=self.ask.search_text,
            viewer=Viewer(self.ask.caller.principals),
            collection_ids=self.ask.collections,
            limit=SEARCH_LIMIT * 2 if searched else SEARCH_LIMIT,
            payer=admission,
        )
        shelves = [c for c in self.ask.collections if c != self.ask.attachments_id]
        if on_their_way := await run_db(documents_unread, shelves):
            self.log.emit("notice", showing.unread(on_their_way))
        for notice in admission.notices:
            self.log.emit("notice", notice)
        if not searched:
            return found
        # Of its own files this branch has only those it brought along, and those that go whole are there already.
        own = self.ask.attachments_id
        found = [p for p in found if p.collection_id != own or p.document_id in searched][:SEARCH_LIMIT]
        silent = searched - {p.document_id for p in found}
        return [*found, *await run_db(beginnings, tuple(silent), BEGINNING_PIECES)] if silent else found

    def _stitch(self, estimate: Estimate, found: list[Passage]) -> Prompt:
        """The prompt within the budget that was counted and held; what did not fit is said."""
        whole = self.ask.attached.passages
        prompt = stitch(
            system=prompting.system_of(self.ask),
            history=prompting.history_of(self.ask, kept=estimate.history_kept),
            question=self.ask.question,
            passages=found,
            count=estimate.count,
            budget=estimate.budget,
            searched=bool(self.ask.collections) and not whole,
            first=len(whole) + 1,
        )
        self.passages = (*whole, *prompt.passages)
        if self.ask.collections or whole:
            self.log.emit("sources", {"items": showing.sources(self.passages, whole=len(whole))})
        if self.ask.collections:
            for notice in showing.retrieval_notices(self.ask, prompt):
                self.log.emit("notice", notice)
        return prompt

    async def _quote(self, admission: Admission) -> None:
        """Let the documents speak for themselves: their best sentences, word for word, found by the embedder."""
        if not self.passages:
            return
        self.quotes = tuple(
            await quote_sentences(
                question=self.ask.question, passages=self.passages, limit=QUOTE_LIMIT, payer=admission
            )
        )
        if self.quotes:
            self.log.emit("quotes", {"items": showing.quotes(self.quotes, self.passages)})

    async def _infer(self, admission: Admission, messages: tuple[Message, ...]) -> None:
        """Stream the answer into the log."""
        self._phase(queued=False)
        admission.in_line = lambda queued: self._phase(queued=queued)
        try:
            await self._read(admission, messages)
        finally:
            # Both would hold each other until the collector comes, which in a web process is seldom.
            admission.in_line = None

    async def _read(self, admission: Admission, messages: tuple[Message, ...]) -> None:
        async with aclosing(admission.infer(messages, **self.ask.options.as_request())) as batches:
            async for batch in batches:
                if self.clock.first_token_at is None:
                    self.clock.first_token()
                    if admission.target.public_name != self.ask.model:
                        self.log.emit("notice", fallback_notice(self.ask.model, admission.target.public_name))
                    self.log.emit("status", {"phase": "generating"})
                # What came in one read goes out as one piece, so it is joined before anything is done with it.
                for kind, events in groupby(batch, type):
                    self._heard(kind, events)

    def _heard(self, kind: type[Event], events: Iterable[Any]) -> None:
        if kind is ToolCallDelta:
            for event in events:
                self.log.emit("delta", {"tool": showing.tool_piece(event)})
        else:
            self.log.delta(_KINDS[kind], "".join([event.text for event in events]))

    def _phase(self, *, queued: bool) -> None:
        """Say what is waited for: our line, or the model."""
        # From here on the pulse writes down that a call was sent, which is owed should this process die.
        self.run.input_tokens = None if queued or self.estimate is None else self.estimate.total_expected
        self.log.emit("status", {"phase": "queued" if queued else "waiting"})

    async def speak_without_model(self, exc: Exception) -> None:
        """When no model answers, a question still gets its passages, marked as such."""
        if (
            isinstance(exc, InferenceError | ServerResting)
            and self.passages
            and self.admission
            and not self.log.text
        ):
            if not self.quotes:
                try:
                    await self._quote(self.admission)
                except (AppError, RetrievalError):
                    # The sources were shown already; quoting them is an extra that may fail too.
                    self.quotes = ()
            self.log.emit("notice", showing.NO_MODEL)

    async def close(self) -> None:
        """Settle, append, and tell the reader how it ended. A database that is away for a while is waited for."""
        self.log.flush()
        self.run.failure = self.ending.error
        await self._match()
        if self.admission is not None:
            for notice in showing.short_notices(self.admission):
                self.log.emit("notice", notice)
            with self.clock.stage("settle"):
                settled = await persist(partial(self.admission.end, self._store), self.log)
                if settled is None:
                    # The text was shown, so it is kept also when its price could not be booked now.
                    await persist(partial(run_db, self._store, None), self.log)
            if self.admission.attempts:
                self.log.emit("usage", showing.usage(settled, self.admission))
            figures = figures_of(self, settled)
            self.run.figures = partial(dict, figures)
            note(self, settled, figures)
        self.log.emit(*showing.end(self.ending))

    async def _match(self) -> None:
        """Say which passages have the words of what the model left unmarked."""
        if self.log.text and self.passages:
            self.matches = await asyncio.to_thread(showing.matched, self.log.text, self.passages)
            if self.matches:
                self.log.emit("matches", {"items": self.matches})

    def _store(self, settled: Settled | None) -> None:
        """Append the answer to its conversation. Runs in a database thread, right after the settlement."""
        if self.ask.keep and self.admission is not None:
            shown = showing.usage(settled, self.admission)
            turn_close(showing.closed_turn(self, shown, figures_of(self, settled)))
