"""From an `Ask` to what is counted and held: the pre-count and the plan of the call."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson

from app.billing.types import Payer
from app.catalog.models import IMAGES
from app.catalog.selectors import Target
from app.chat import checks, precount
from app.chat.attachments import attached
from app.chat.precount import Accuracy, ContextTooLong, Estimate, accuracy_within
from app.chat.prompting import history_of, last_user, outgoing, system_of, words_of
from app.chat.types import Ask
from app.common.models import uuid7
from app.gate.counting import messages_pictures, meter_of, prompt_asked, prompt_remembered, text_facts
from app.gate.types import CallPlan
from inference_client.adapters.kinds import kind_of
from inference_client.counting import Counted
from inference_client.images import picture_tokens, rule_of
from inference_client.learned import MESSAGE_OVERHEAD, joined
from inference_client.meter import Meter
from inference_client.types import Message
from retrieval.types import Prompt, PromptMessage

HOLD_SECONDS = 60
"""A turn's hold outlives its process by no more than this: the pulse renews it every few seconds."""
_LONG = 20_000
"""Characters whose counting would hold up everybody else's stream for some milliseconds."""
_TOOLS_PCT = 3.0
"""Of tools and schemas: no server publishes how it writes them into the prompt."""
_LOOSE_PCT = 20.0
"""Of pictures, where the rule by which they are counted is not the maker's own."""
_SAMPLE = 4
"""How many of the newest texts are looked at for their scripts."""


async def counted(ask: Ask) -> tuple[Ask, Estimate]:
    """The pre-count for a page: with the server's own figure, where it has one and gives it in time."""
    return await _told(ask, prompt_asked)


async def counted_at_once(ask: Ask) -> tuple[Ask, Estimate]:
    """The pre-count for a turn, which waits for nobody: with what the server said of this very prompt before."""

    if ask.messages is not None:
        # Nobody asks beforehand what a `/v1` call would take.
        return await fitted_aside(ask)

    async def remembered(*prompt: Any) -> Counted | None:
        return prompt_remembered(*prompt)

    return await _told(ask, remembered)


async def _told(ask: Ask, tell: Callable[..., Awaitable[Counted | None]]) -> tuple[Ask, Estimate]:
    ask, estimate = await fitted_aside(ask)
    found = await tell(ask.targets[0], spoken(ask, estimate), ask.options.as_request())
    if found is None:
        return ask, estimate
    told = estimate.told(found.input_tokens, error_pct=found.error_pct)
    if told.fits(ask.targets[0].context_window):
        return ask, told
    # It takes more than was thought: plan once more with what was learnt of this very prompt.
    return await fitted_aside(ask, scale=found.input_tokens / max(1, estimate.known))


async def fitted_aside(ask: Ask, *, scale: float = 1.0) -> tuple[Ask, Estimate]:
    """`fitted`, from the event loop: long texts are counted in a thread."""
    size = len(ask.question) + sum(len(pair.question) + len(pair.answer) for pair in ask.history)
    size += sum(len(words_of(message)) for message in ask.messages or ())
    size += sum(len(piece.text) for file in ask.attachments for piece in file.pieces)
    pictures = ask.with_pictures or any(
        not isinstance(message.content, str) for message in ask.messages or ()
    )
    if size <= _LONG and not pictures:
        return fitted(ask, scale=scale)
    return await asyncio.to_thread(lambda: fitted(ask, scale=scale))


def fitted(ask: Ask, *, scale: float = 1.0) -> tuple[Ask, Estimate]:
    """The pre-count, and the ask with only those deployments whose windows hold what was counted.

    `scale` is the factor by which our count of this very prompt is known to be off. When the first choice's window is
    too small, the route is decided again with the count. Errors: ContextTooLong.
    """
    ask = placed(ask, scale=scale)
    try:
        estimate = estimate_of(ask, scale=scale)
    except ContextTooLong as exc:
        needed = exc.detail["input_tokens"]
        route = ask.route.refitted(input_tokens=needed) if ask.route else None
        if route is None or not route.targets or not _larger(route.targets[0], ask.targets[0]):
            raise
        return fitted(replace(ask, route=route, targets=route.targets), scale=scale)
    first, *others = ask.targets
    whole = estimate.held_input + estimate.max_output_tokens
    return replace(ask, targets=(first, *(t for t in others if _holds(t, whole)))), estimate


def placed(ask: Ask, *, scale: float = 1.0) -> Ask:
    """The ask with its files placed for its first-choice deployment: whole, searched, or as pictures."""
    if not ask.attachments:
        return ask
    target = ask.targets[0]
    rule = rule_of(kind_of(target.kind))
    found = attached(
        ask.attachments,
        window=target.context_window,
        count=_counter(target, meter_of(target), scale),
        picture_tokens=lambda part: picture_tokens(part, rule),
    )
    own = ask.attachments_id
    others = tuple(c for c in ask.collections if c != own)
    collections = (*others, own) if found.searched and own is not None else others
    targets = tuple(t for t in ask.targets if IMAGES in t.capabilities) if ask.with_pictures else ask.targets
    return replace(ask, attached=found, collections=collections, targets=targets)


def _counter(target: Target, meter: Meter, scale: float) -> precount.Count:
    of_message = meter.weighs.of_message

    def count(text: str) -> int:
        # The steps after this add the usual marks themselves.
        return max(0, round(scale * of_message(text_facts(target.tokenizer, text))) - MESSAGE_OVERHEAD)

    return count


def _larger(one: Target, other: Target) -> bool:
    return other.context_window is not None and _holds(one, other.context_window + 1)


def _holds(target: Target, tokens: int) -> bool:
    return target.context_window is None or target.context_window >= tokens


def estimate_of(ask: Ask, *, scale: float = 1.0) -> Estimate:
    """The pre-count of this turn over its first-choice deployment. Errors: ContextTooLong, InvalidInput."""
    checks.check_length(ask.question)
    target = ask.targets[0]
    meter = meter_of(target)
    count = _counter(target, meter, scale)
    pictures = messages_pictures(target, ask.messages or ())
    return precount.estimate(
        count=count,
        tokenizer=target.tokenizer,
        accuracy=_accuracy(ask, meter, has_pictures=bool(pictures) or ask.with_pictures),
        window=target.context_window,
        output_cap=target.max_output_tokens,
        output_wanted=ask.max_output_tokens,
        system=system_of(ask),
        given=_given(ask, count),
        attachments=pictures + ask.attached.tokens,
        reply=meter.reply,
        history=ask.history,
        question=ask.question,
        searches=bool(ask.collections),
        retrieved_p50=ask.retrieved_p50,
    )


def spoken(ask: Ask, estimate: Estimate) -> tuple[Message, ...]:
    """The messages of this turn as far as they are known before the search."""
    system = system_of(ask)
    head = (PromptMessage("system", system),) if system else ()
    history = history_of(ask, kept=estimate.history_kept)
    last = PromptMessage("user", ask.question)
    return outgoing(ask, Prompt((*head, *history, last), (), 0, ()))


def _accuracy(ask: Ask, meter: Meter, *, has_pictures: bool) -> Accuracy:
    """The band of the newest texts, and of what goes along with them."""
    texts = [text for pair in ask.history[-_SAMPLE:] for text in (pair.question, pair.answer)]
    texts += [words_of(message) for message in (ask.messages or ())[-_SAMPLE:]]
    facts = text_facts(meter.counter.name, ask.question)
    if texts:
        facts = joined([facts, *(text_facts(meter.counter.name, text) for text in texts)])
    pct = meter.error_pct(facts)
    if ask.options.tools or ask.options.response_format:
        pct = max(pct, _TOOLS_PCT)
    if has_pictures and not rule_of(kind_of(ask.targets[0].kind)).exact:
        pct = max(pct, _LOOSE_PCT)
    return accuracy_within(pct)


def _given(ask: Ask, count: precount.Count) -> int:
    """Tokens of what a `/v1` caller sends besides the question: it goes along as it came, never trimmed."""
    if ask.messages is None:
        return 0
    place = last_user(ask.messages)
    others = (words_of(message) for index, message in enumerate(ask.messages) if index != place)
    forms = (ask.options.tools, ask.options.response_format)
    schemas = (orjson.dumps(form).decode() for form in forms if form)
    return sum(precount.message_tokens(count, text) for text in (*others, *schemas))


def plan_of(ask: Ask, estimate: Estimate) -> CallPlan:
    """What to hold: everything the turn may take, over the dearest of its deployments."""
    return CallPlan(
        reservation_id=uuid7(),
        payer=payer_of(ask),
        kind=ask.kind,
        targets=ask.targets,
        input_tokens=estimate.held_input,
        output_tokens=estimate.max_output_tokens,
        embedding=ask.embedding if _embeds(ask) else None,
        query_tokens=_query_tokens(ask, estimate) if _embeds(ask) else 0,
        ttl_seconds=HOLD_SECONDS,
        rated=ask.kind == "chat",
        turn_id=ask.turn_id,
        thread_id=ask.conversation_id,
        collections=ask.collections,
        request_id=ask.request_id,
        level=ask.level,
    )


def _embeds(ask: Ask) -> bool:
    """Whether something is searched, or sentences are quoted."""
    return bool(ask.collections) or (bool(ask.attached.passages) and ask.targets[0].is_demonstration)


def _query_tokens(ask: Ask, estimate: Estimate) -> int:
    """The query goes to the embedder once, and with quotes so do the sentences of the passages."""
    sentences = 2 * (estimate.retrieved_max + estimate.attachments) if ask.targets[0].is_demonstration else 0
    return 2 * estimate.draft + sentences + 16


def payer_of(ask: Ask) -> Payer:
    """One payer, a team; the person and the key are whose allowances must have room too."""
    if ask.on_the_house:
        return Payer(team_id=None)
    return Payer(
        team_id=ask.team_id,
        account_id=ask.caller.account_id,
        user_id=ask.caller.user_id,
        key_id=ask.caller.key_id,
    )
