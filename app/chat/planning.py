"""From an `Ask` to what is counted and held: the pre-count and the plan of the call."""

import asyncio
from dataclasses import replace
from hashlib import blake2b

import orjson

from app.billing.types import Payer
from app.catalog.selectors import Target
from app.chat import checks, precount
from app.chat.precount import Accuracy, ContextTooLong, Estimate
from app.chat.prompting import last_user, system_of, words_of
from app.chat.types import Ask
from app.common.models import uuid7
from app.gate.types import CallPlan
from inference_client.tokens import counter

EXACT = Accuracy("exact", 0)
ESTIMATED = Accuracy("estimated", 15)
"""tiktoken against tokenizers of other families on English prose; drift per model is stored with each call."""


HOLD_SECONDS = 60
"""A turn's hold outlives its process by no more than this: the pulse renews it every few seconds."""
_SHORT = 400
"""Characters that are counted faster than looked up."""
_LONG = 20_000
"""Characters whose counting would hold up everybody else's stream for some milliseconds."""
_MOST_KNOWN = 8192

_known: dict[tuple[str, bytes], int] = {}


def _counted(tokenizer: str, text: str) -> int:
    """History is counted once, not again at every turn. Remembered by hash: nobody's words stay in memory for it."""
    if len(text) <= _SHORT:
        return counter(tokenizer).count(text)
    key = (tokenizer, blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    found = _known.get(key)
    if found is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        found = _known[key] = counter(tokenizer).count(text)
    return found


def accuracy_of(target: Target) -> Accuracy:
    """Exact where the tokenizer is the model's own."""
    return EXACT if counter(target.tokenizer).exact_for(target.upstream_model) else ESTIMATED


async def fitted_aside(ask: Ask) -> tuple[Ask, Estimate]:
    """`fitted` for the event loop: long texts are counted in a thread."""
    size = len(ask.question) + sum(len(pair.question) + len(pair.answer) for pair in ask.history)
    size += sum(len(words_of(message)) for message in ask.messages or ())
    return fitted(ask) if size <= _LONG else await asyncio.to_thread(fitted, ask)


def fitted(ask: Ask) -> tuple[Ask, Estimate]:
    """The pre-count, and the ask with those deployments only whose windows hold what was counted.

    When the first choice's window is too small, the route is asked again with the count. Errors: ContextTooLong.
    """
    try:
        estimate = estimate_of(ask)
    except ContextTooLong as exc:
        needed = exc.detail["input_tokens"]
        route = ask.route.refitted(input_tokens=needed) if ask.route else None
        if route is None or not route.targets or not _larger(route.targets[0], ask.targets[0]):
            raise
        return fitted(replace(ask, route=route, targets=route.targets))
    first, *others = ask.targets
    whole = estimate.held_input + estimate.max_output_tokens
    return replace(ask, targets=(first, *(t for t in others if _holds(t, whole)))), estimate


def _larger(one: Target, other: Target) -> bool:
    return other.context_window is not None and _holds(one, other.context_window + 1)


def _holds(target: Target, tokens: int) -> bool:
    return target.context_window is None or target.context_window >= tokens


def estimate_of(ask: Ask) -> Estimate:
    """The pre-count of this turn over its first-choice deployment. Errors: ContextTooLong, InvalidInput."""
    checks.check_length(ask.question)
    target = ask.targets[0]

    def count(text: str) -> int:
        return _counted(target.tokenizer, text)

    return precount.estimate(
        count=count,
        tokenizer=target.tokenizer,
        accuracy=accuracy_of(target),
        window=target.context_window,
        output_cap=target.max_output_tokens,
        output_wanted=ask.max_output_tokens,
        system=system_of(ask),
        given=_given(ask, count),
        history=ask.history,
        question=ask.question,
        searches=bool(ask.collections),
        retrieved_p50=ask.retrieved_p50,
    )


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
        kind="chat",
        targets=ask.targets,
        input_tokens=estimate.held_input,
        output_tokens=estimate.max_output_tokens,
        embedding=ask.embedding,
        query_tokens=_query_tokens(ask, estimate) if ask.embedding else 0,
        ttl_seconds=HOLD_SECONDS,
        rated=True,
        turn_id=ask.turn_id,
        request_id=ask.request_id,
    )


def _query_tokens(ask: Ask, estimate: Estimate) -> int:
    """The query goes to the embedder once, and with quotes so do the sentences of the passages."""
    sentences = 2 * estimate.retrieved_max if ask.targets[0].is_demonstration else 0
    return 2 * estimate.draft + sentences + 16


def payer_of(ask: Ask) -> Payer:
    """One payer, a team; the person and the key are whose allowances must have room too."""
    return Payer(
        team_id=ask.team_id,
        account_id=ask.caller.account_id,
        user_id=ask.caller.user_id,
        key_id=ask.caller.key_id,
    )
