"""From what the client measured to what billing books: one attempt for each upstream call, however it ended."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from app.billing.types import Attempt, Buckets, CallKind, UsageSource
from app.billing.types.words import INPUT_COMPONENTS, OUTPUT_COMPONENTS
from app.catalog.selectors import Target
from app.catalog.tokenizers import tokenizer
from app.gate.counting import Sent
from inference_client.errors import InferenceError
from inference_client.types import CallRecord, Embeddings, Ranked, Usage
from inference_client.usage import buckets as disjoint

_NOT_OWED = Buckets()
_NO_INPUT = dict.fromkeys(INPUT_COMPONENTS, 0)
_NO_OUTPUT = dict.fromkeys(OUTPUT_COMPONENTS, 0)
_EARLY = frozenset({"usage_before_the_end", "output_implausible"})
"""Doubts about a number of output tokens that was told before there were as many."""
_DEEPEST = 20


INPUT_SHORT = "input_short"
"""Flag of a call whose server says that it read far fewer tokens than were sent."""
INPUT_LONG = "input_long"
"""Flag of a call whose server says that it read far more than was sent."""
_CHARS_A_TOKEN = 40
_CHARS_FREE = 200
"""No text has more characters than so many for each of its tokens and these: a lower number is not its count."""
_SHORT_TOKENS = 64
"""Prompts up to this say nothing: a template more or less is a large part of them."""


def chat_attempt(
    record: CallRecord, target: Target, sent: Sent, text: str, number: int, *, queued_s: float = 0.0
) -> Attempt:
    """The attempt of a chat call. `text` is everything received: answer, reasoning, tool arguments.

    A missing or implausible usage block is replaced by our own count, flagged with its reason. A call that a
    person stopped before the first token is cost, not price, and so is one that failed after its server told what it
    read; one that never reached the server is neither.
    """
    source, reason, buckets = _account(record, target, sent, text)
    silent_stop = record.outcome == "stopped" and not text
    failed = record.outcome == "failed" and not text
    return Attempt(
        number=number,
        outcome=record.outcome,
        buckets=buckets,
        billed=not (silent_stop or failed),
        source=source,
        estimated=bool(reason),
        estimate_reason=reason,
        price_key=target.price_key,
        deployment_id=target.deployment_id,
        requested_model=target.upstream_model,
        served_model=_storable(record.served_model or ""),
        upstream_id=_storable(record.upstream_id or ""),
        finish_reason=record.finish_reason or "",
        finish_raw=_storable(record.finish_raw or ""),
        error=record.error.name if record.error else "",
        tokenizer=target.tokenizer,
        raw_usage=_storable(record.usage.raw),
        reported_cost=_reported_cost(record.usage.raw),
        local_input_tokens=sent.expected,
        local_output_tokens=tokenizer(target.tokenizer).count(text) if reason and text else None,
        ttft_ms=_ms(record.timing.first_token_s),
        total_ms=_ms(record.timing.total_s),
        queue_ms=_ms(queued_s),
        itl_ms=_itl_ms(record, buckets.output_total),
        # A picture's tokens would be learned as if they were the text's.
        prompt_facts=None if sent.pictures else tuple(sent.facts),
        flags=tuple(_flags(record, sent)),
    )


def _flags(record: CallRecord, sent: Sent) -> Iterator[str]:
    if record.usage.ambiguous:
        yield "usage_ambiguous"
    told = record.usage.input_tokens
    if not told or sent.text <= _SHORT_TOKENS:
        return
    if told < sent.least:
        yield INPUT_SHORT
    elif told > sent.most:
        yield INPUT_LONG


def _itl_ms(record: CallRecord, output_tokens: int) -> float | None:
    first, total = record.timing.first_token_s, record.timing.total_s
    if first is None or total is None or output_tokens < 2:
        return None
    return round((total - first) / (output_tokens - 1) * 1e3, 3)


def _account(record: CallRecord, target: Target, sent: Sent, text: str) -> tuple[UsageSource, str, Buckets]:
    """(source, reason of an estimate or "", buckets). Of what the server told, all that is plausible is kept."""
    usage = record.usage
    doubt = _doubt(record, text)
    if usage.state == "reported" and not doubt:
        return "server_final" if record.outcome == "completed" else "server_running", "", _reported(usage)
    if record.never_sent or (record.outcome == "failed" and not text and usage.state != "reported"):
        return "none", "", _NOT_OWED
    buckets = _reported(usage)
    if not usage.input_tokens:
        buckets = replace(buckets, **(_NO_INPUT | {"input": sent.expected}))
    if not usage.output_tokens or doubt in _EARLY:
        written = max(buckets.output_total, tokenizer(target.tokenizer).count(text))
        thought = buckets.reasoning
        split = {"output": max(0, written - thought), "reasoning": thought}
        buckets = replace(buckets, **(_NO_OUTPUT | split))
    reason = {"stopped": "client_gone", "failed": "stream_broken"}.get(record.outcome)
    return "local", reason or ("zero_implausible" if usage.state == "zero" else doubt or "no_usage"), buckets


def _doubt(record: CallRecord, text: str) -> str:
    """Why the server's numbers cannot be what the call used, or "" when they can."""
    usage = record.usage
    if record.estimated:
        return record.estimate_reason or "no_usage"
    if usage.input_tokens == 0 and text:
        return "zero_implausible"
    if len(text) > _CHARS_A_TOKEN * (usage.output_tokens or 0) + _CHARS_FREE or (
        text and not usage.output_tokens
    ):
        return "output_implausible"
    return ""


def _reported(usage: Usage) -> Buckets:
    """Each bucket under the name it is priced by: a cache written for an hour is dearer than one for five minutes."""
    split = disjoint(usage)
    return Buckets(
        input=split.input_uncached,
        cache_read=split.cache_read,
        cache_write=split.cache_write_short,
        cache_write_mid=split.cache_write_mid,
        cache_write_long=split.cache_write_long,
        cache_write_xlong=split.cache_write_xlong,
        input_audio=split.input_audio,
        input_image=split.input_image,
        output=split.output_text,
        reasoning=split.reasoning,
        output_audio=split.output_audio,
        rejected_prediction=split.rejected_prediction,
    )


def _reported_cost(raw: Mapping[str, Any] | None) -> Decimal | None:
    """What a provider says the call cost, in dollars: OpenRouter's `usage.cost`. Anything else is no witness."""
    told = raw.get("cost") if raw else None
    if isinstance(told, bool) or not isinstance(told, int | float | str | Decimal):
        return None
    try:
        # By way of the digits a float is written with: those the provider sent.
        cost = Decimal(str(told))
    except InvalidOperation:
        return None
    return cost if cost.is_finite() and 0 <= cost < 10**9 else None


def embedding_attempt(
    answer: Embeddings | Ranked,
    target: Target,
    texts: Sequence[str],
    number: int,
    kind: CallKind = "embedding",
) -> Attempt:
    """The attempt of an embedding call, or another that only reads texts, that succeeded."""
    told = answer.usage.input_tokens
    reason = "no_usage" if told is None else ""
    if not told and (own := _counted(target, texts)):
        # A server that counts nothing may say 0.
        reason, told = reason or "zero_implausible", own
    return Attempt(
        number=number,
        kind=kind,
        buckets=Buckets(input=told or 0),
        source="local" if reason else "server_final",
        estimated=bool(reason),
        estimate_reason=reason,
        price_key=target.price_key,
        deployment_id=target.deployment_id,
        requested_model=target.upstream_model,
        served_model=_storable(answer.served_model or ""),
        tokenizer=target.tokenizer,
        raw_usage=_storable(answer.usage.raw),
        total_ms=_ms(answer.timing.total_s),
    )


def _counted(target: Target, texts: Sequence[str]) -> int:
    count = tokenizer(target.tokenizer).count
    return sum(count(text) for text in texts)


def embedding_cut(target: Target, texts: Sequence[str], number: int, kind: CallKind = "embedding") -> Attempt:
    """An embedding call that was cancelled while the server worked: our cost by our own count, nobody's price."""
    return Attempt(
        number=number,
        kind=kind,
        outcome="stopped",
        buckets=Buckets(input=_counted(target, texts)),
        billed=False,
        source="local",
        estimated=True,
        estimate_reason="client_gone",
        price_key=target.price_key,
        deployment_id=target.deployment_id,
        requested_model=target.upstream_model,
        tokenizer=target.tokenizer,
    )


def embedding_failed(
    target: Target, failure: InferenceError, texts: Sequence[str], number: int, kind: CallKind = "embedding"
) -> Attempt:
    """An embedding call that failed: nothing came, nothing is owed, the attempt stays on record.

    Where several requests were made for it, those that were answered are our cost, though their answers are lost.
    """
    used, reason = 0, ""
    if failure.answered:
        told = failure.used.input_tokens if failure.used else None
        used = told or _counted(target, texts) * failure.answered // len(texts)
        reason = "" if told else "no_usage"
    return Attempt(
        number=number,
        kind=kind,
        outcome="failed",
        billed=False,
        buckets=Buckets(input=used),
        source="none" if not used else "local" if reason else "server_final",
        estimated=bool(reason),
        estimate_reason=reason,
        price_key=target.price_key,
        deployment_id=target.deployment_id,
        requested_model=target.upstream_model,
        tokenizer=target.tokenizer,
        error=type(failure).__name__,
    )


def _storable(value: Any, depth: int = 0) -> Any:
    """A server's own block as PostgreSQL's JSON can hold it: an odd one must never cost the booking."""
    if depth > _DEEPEST:
        return None
    match value:
        case str():
            return value.replace("\x00", "")
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {_storable(k): _storable(v, depth + 1) for k, v in value.items()}
        case list() | tuple():
            return [_storable(item, depth + 1) for item in value]
    return value


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e3)
