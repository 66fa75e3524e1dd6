"""Turns what a finished call knows into its one CallRecord. No IO."""

from dataclasses import dataclass
from datetime import datetime

from inference_client.adapters.base import Parser
from inference_client.errors import InferenceError, Refused
from inference_client.types import CallRecord, Outcome, Timing, Usage


@dataclass(slots=True, kw_only=True)
class Progress:
    """What is measured while a call runs; seconds count from `started_at`."""

    started_at: datetime
    connected_s: float | None = None
    dialled_s: float | None = None
    first_token_s: float | None = None
    total_s: float | None = None
    output_chars: int = 0
    attempts: int = 0
    sent: bool = False
    """A connection was there, so the server may have seen the request."""


def record_of(
    outcome: Outcome, parser: Parser, usage: Usage, progress: Progress, error: InferenceError | None
) -> CallRecord:
    """The record of a call that has ended."""
    never_sent = not progress.sent or (error is not None and error.never_sent)
    # A refusal costs nothing, so there is nothing to estimate.
    refused = isinstance(error, Refused) and usage.state == "absent" and not progress.output_chars
    reason = None if never_sent or refused else estimate_reason(parser, usage, progress.output_chars)
    return CallRecord(
        outcome=outcome,
        finish_reason=parser.finish_reason,
        finish_raw=parser.finish_raw,
        usage=usage,
        estimated=reason is not None,
        estimate_reason=reason,
        served_model=parser.served_model,
        upstream_id=parser.upstream_id,
        timing=Timing(
            started_at=progress.started_at,
            connected_s=progress.connected_s,
            first_token_s=progress.first_token_s,
            total_s=progress.total_s,
            dialled_s=progress.dialled_s,
            prefill_s=parser.prefill_s,
            load_s=parser.load_s,
        ),
        output_chars=progress.output_chars,
        error=error.info if error is not None else None,
        attempts=progress.attempts,
        never_sent=never_sent,
    )


def estimate_reason(parser: Parser, usage: Usage, output_chars: int) -> str | None:
    """Why the server's numbers cannot be billed as they stand, or None when they can."""
    if usage.state == "absent":
        return "no_usage"
    if usage.input_tokens is None:
        return "no_input_tokens"
    if usage.output_tokens is None:
        return "no_output_tokens"
    if not parser.complete and not parser.usage_is_running:
        return "usage_before_the_end"
    if usage.state == "zero" and output_chars:
        return "zero_for_an_answer"
    return None
