"""From timed calls to the knee of a server: where throughput stops growing while the first token comes later. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

GROWS = 1.10
"""Throughput that is less than this times the best before has stopped growing."""
LATER = 1.20
"""A first token that takes this times as long as at the knee comes later."""
BUILT_IN: tuple[tuple[int, int], ...] = (
    (40, 60), (2200, 120), (180, 160), (900, 240), (120, 30), (3200, 320), (60, 220), (1500, 90), (420, 140),
    (2600, 200), (250, 80), (1100, 400),
)  # fmt: skip
"""(input, output) tokens where too few calls are on record: short chats and questions with passages, in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call; seconds since its level began."""

    begun: float
    first_token: float | None
    """None: it failed before anything came."""
    ended: float
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    problem: str = ""

    @property
    def ttft_ms(self) -> float | None:
        return None if self.first_token is None else (self.first_token - self.begun) * 1e3

    @property
    def itl_ms(self) -> float | None:
        if self.first_token is None or self.output_tokens < 2:
            return None
        return (self.ended - self.first_token) / (self.output_tokens - 1) * 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What so many calls beside each other came to."""

    concurrency: int
    calls: int
    failed: int
    estimated: int
    seconds: float
    input_tokens: int
    output_tokens: int
    tokens_per_s: float
    """Output tokens, while all places were taken."""
    all_tokens_per_s: float
    """With the input, which counts when it has been read: what a price by own cost is proposed from."""
    calls_per_s: float
    ttft_ms: Mapping[str, float] | None
    """p50 and p95."""
    itl_ms: Mapping[str, float] | None
    server: Mapping[str, float] | None = None
    """What the server itself counted meanwhile: input_tokens, output_tokens, tokens_per_s; None: it does not tell."""

    def shown(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """Up to here more calls at once brought more tokens a second."""

    concurrency: int
    tokens_per_s: float
    all_tokens_per_s: float
    ttft_p50_ms: float | None


def level_of(concurrency: int, calls: Sequence[Call]) -> Level:
    """Sum the calls of one level up."""
    done = [call for call in calls if not call.problem]
    end = max((call.ended for call in calls), default=0.0)
    full = _full_until(concurrency, calls)
    written = sum(_written_by(call, full) for call in done)
    read = sum(
        call.input_tokens for call in done if call.first_token is not None and call.first_token <= full
    )
    return Level(
        concurrency=concurrency,
        calls=len(calls),
        failed=len(calls) - len(done),
        estimated=sum(call.estimated for call in done),
        seconds=round(end, 3),
        input_tokens=sum(call.input_tokens for call in done),
        output_tokens=sum(call.output_tokens for call in done),
        tokens_per_s=round(written / full, 2) if full else 0.0,
        all_tokens_per_s=round((written + read) / full, 2) if full else 0.0,
        calls_per_s=round(len(done) / end, 3) if end else 0.0,
        ttft_ms=spread([call.ttft_ms for call in done]),
        itl_ms=spread([call.itl_ms for call in done]),
    )


def _full_until(concurrency: int, calls: Sequence[Call]) -> float:
    """The moment from which fewer than `concurrency` calls ran, because no more were waiting.

    When the last `concurrency` calls are under way, the first of them to end leaves its place empty.
    """
    last = sorted(calls, key=lambda call: call.begun)[-concurrency:]
    return min((call.ended for call in last), default=0.0)


def _written_by(call: Call, moment: float) -> float:
    """Output tokens up to a moment, as if they had come evenly."""
    if call.first_token is None or moment <= call.first_token:
        return 0.0
    if moment >= call.ended:
        return float(call.output_tokens)
    return call.output_tokens * (moment - call.first_token) / (call.ended - call.first_token)


def knee_of(levels: Sequence[Level]) -> Knee | None:
    """The knee, once a level beyond it shows it: no more throughput, a later first token. None: not reached."""
    best: Level | None = None
    for level in sorted(levels, key=lambda one: one.concurrency):
        if best is not None and level.tokens_per_s < best.tokens_per_s * GROWS:
            if _later(best, level):
                return _knee(best)
            continue
        best = level
    return None


def _knee(level: Level) -> Knee:
    return Knee(
        concurrency=level.concurrency,
        tokens_per_s=level.tokens_per_s,
        all_tokens_per_s=level.all_tokens_per_s,
        ttft_p50_ms=None if level.ttft_ms is None else level.ttft_ms["p50"],
    )


def _later(before: Level, after: Level) -> bool:
    # A level that fails has no first tokens to wait for, and is beyond the knee all the same.
    if after.ttft_ms is None or before.ttft_ms is None:
        return True
    return after.ttft_ms["p50"] >= before.ttft_ms["p50"] * LATER


def spread(values: Sequence[float | None]) -> dict[str, float] | None:
    """Median and 95th percentile of what is known, by nearest rank; None where nothing is."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return {f"p{share}": round(known[-(-len(known) * share // 100) - 1], 1) for share in (50, 95)}


def fitted(
    lengths: Sequence[tuple[int, int]], *, window: int | None, most_output: int
) -> tuple[list[tuple[int, int]], int]:
    """(lengths that the deployment takes, how many had to be cut): the output first, then the input."""
    found, cut = [], 0
    for given, wanted in lengths:
        output = max(1, min(wanted, most_output, (window or wanted * 2) // 2))
        # A tenth stays free: two tokenizers seldom agree.
        taken = max(1, given if window is None else min(given, int((window - output) * 0.9)))
        cut += (taken, output) != (given, wanted)
        found.append((taken, output))
    return found, cut
