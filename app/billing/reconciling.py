"""Holds what servers have counted against what we wrote down: traffic that went around us, and rows that are lost.

Servers count since they were started; their samples lie in the catalog, a few seconds apart. Work at the edges of the
compared stretch is allowed for, and so is what we could only estimate. Rows at one address are one server: it counts
what it is asked by all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Q

from app.billing.models import Reservation, UsageAttempt
from app.catalog.models import Backend, Deployment, LoadSample

SLACK = timedelta(seconds=2)
"""A server may count a call this long after its answer has ended, or before we thought that it began."""
_LONGEST = timedelta(hours=1)
"""No call lasts longer; what ends after the last sample may have begun before it."""
MOMENTS = 20
Verdict = Literal["agrees", "bypassed", "lost"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Whole input and whole output."""

    input: int = 0
    output: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.input + other.input, self.output + other.output)

    def __sub__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.input - other.input, self.output - other.output)


@dataclass(frozen=True, slots=True)
class Moment:
    """A stretch in which a server worked although no call of ours ran there."""

    from_: datetime
    to: datetime
    tokens: Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """One server over one stretch of time."""

    backend: str
    """Its name; those of all rows where it has several."""
    from_: datetime
    to: datetime
    theirs: Tokens
    ours: Tokens
    allowed: Tokens
    """By how much the two may differ: calls at the edges, and estimates."""
    moments: tuple[Moment, ...]
    """The calls that bypassed us, as far as they ran while none of ours did; the first `MOMENTS`."""

    @property
    def verdict(self) -> Verdict:
        """bypassed: the server did more than we know of; lost: we wrote down more than it did."""
        beyond = self.theirs - self.ours
        if self.moments or beyond.input > self.allowed.input or beyond.output > self.allowed.output:
            return "bypassed"
        if -beyond.input > self.allowed.input or -beyond.output > self.allowed.output:
            return "lost"
        return "agrees"

    def sentence(self) -> str:
        """What it means, for a person."""
        span = f"{self.backend}, {self.from_:%Y-%m-%d %H:%M} to {self.to:%Y-%m-%d %H:%M} UTC"
        counts = (
            f"it counted {self.theirs.input} input and {self.theirs.output} output tokens, "
            f"our rows have {self.ours.input} and {self.ours.output}"
        )
        means = {
            "agrees": "they agree",
            "bypassed": "something reaches it without passing here, or a process was killed in mid-call",
            "lost": "rows are there for work that it does not know of",
        }
        return f"{span}: {counts}; {means[self.verdict]}."


@dataclass(frozen=True, slots=True)
class _Sample:
    at: datetime
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class _Call:
    began: datetime
    ended: datetime
    tokens: Tokens
    at_most: Tokens | None = None
    """What it may have been at most, where that is not certain."""


def servers_reconcile(*, since: datetime, until: datetime) -> list[Reconciled]:
    """Every server that shows its counters, between its first and its last sample in [since, until]."""
    found = []
    for rows in _servers().values():
        samples = _samples(rows, since, until)
        if len(samples) >= 2:
            found.append(_reconcile(rows, samples))
    return found


def _servers() -> dict[tuple[str, int | None, str], list[Backend]]:
    """Rows by the address that they share."""
    found: dict[tuple[str, int | None, str], list[Backend]] = {}
    for row in Backend.objects.order_by("name"):
        parts = urlsplit(row.base_url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        path = parts.path.rstrip("/").removesuffix("/v1")
        found.setdefault((parts.hostname or "", port, path), []).append(row)
    return found


def _samples(servers: Sequence[Backend], since: datetime, until: datetime) -> list[_Sample]:
    """In the order of time; of several rows at one moment the highest counts, since they were read one by one."""
    rows = LoadSample.objects.filter(
        backend__in=servers,
        taken_at__gte=since,
        taken_at__lte=until,
        figures__has_key="output_tokens_total",
    )
    found: dict[datetime, Tokens] = {}
    for at, figures in rows.order_by("taken_at").values_list("taken_at", "figures"):
        known = found.get(at, Tokens())
        found[at] = Tokens(
            max(known.input, int(figures.get("input_tokens_total", 0))),
            max(known.output, int(figures["output_tokens_total"])),
        )
    return [_Sample(at, tokens) for at, tokens in found.items()]


def _reconcile(servers: Sequence[Backend], samples: Sequence[_Sample]) -> Reconciled:
    first, last = samples[0].at, samples[-1].at
    deployments = list(Deployment.objects.filter(backend__in=servers).values_list("id", flat=True))
    calls = list(_calls(deployments, first, last))
    inside = [call for call in calls if first < call.ended <= last]
    edges = [c for c in calls if c.began - SLACK <= first or c.began <= last + SLACK < c.ended + 2 * SLACK]
    held = list(_running(deployments, last))
    unsure = [call.at_most or call.tokens for call in (*edges, *held)]
    unsure += [call.at_most for call in inside if call.at_most and call not in edges]
    growth = list(_growth(samples))
    return Reconciled(
        backend=", ".join(row.name for row in servers),
        from_=first,
        to=last,
        theirs=sum((grown.tokens for grown in growth), Tokens()),
        ours=sum((call.tokens for call in inside), Tokens()),
        allowed=sum(unsure, Tokens()),
        moments=tuple(_alone(growth, (*calls, *held)))[:MOMENTS],
    )


def _calls(deployments: Sequence[UUID], first: datetime, last: datetime) -> Iterator[_Call]:
    """Our calls that ended after `first` and began before `last`, in the order of their end."""
    rows = UsageAttempt.objects.filter(
        deployment_id__in=deployments, created_at__gt=first - SLACK, created_at__lte=last + _LONGEST
    )
    fields = ("created_at", "total_ms", "input_tokens", "output_tokens", "estimated", "outcome", "number")
    of_hold = ("created_at", "held_input_tokens", "held_output_tokens")
    found = rows.order_by("created_at").values_list(*fields, *(f"reservation__{name}" for name in of_hold))
    for ended, total_ms, given, generated, estimated, outcome, number, held_at, most_in, most_out in found:
        used = Tokens(given, generated)
        if number:
            began = ended - timedelta(milliseconds=total_ms or 0)
            # Of a call that was stopped, the server may have written some words more than it could tell.
            yield _Call(began, ended, used, used if estimated or outcome == "stopped" else None)
        else:
            # Written down by the sweeper: it ran at some time since its hold, if it was sent at all.
            yield _Call(held_at, ended, used, Tokens(max(given, most_in), max(generated, most_out)))


def _running(deployments: Sequence[UUID], last: datetime) -> Iterator[_Call]:
    """Calls that are not settled yet; what they may come to at most."""
    rows = Reservation.objects.filter(
        Q(deployment_id__in=deployments) | Q(deployment_id=None), state="held", created_at__lte=last
    )
    fields = ("created_at", "held_input_tokens", "held_output_tokens")
    for began, given, generated in rows.values_list(*fields):
        most = Tokens(given, generated)
        yield _Call(began, last, most, most)


def _growth(samples: Sequence[_Sample]) -> Iterator[Moment]:
    """What was counted from sample to sample. A counter that shrank began at 0 again."""
    for before, after in pairwise(samples):
        restarted = after.tokens.output < before.tokens.output or after.tokens.input < before.tokens.input
        grown = after.tokens if restarted else after.tokens - before.tokens
        if grown != Tokens():
            yield Moment(before.at, after.at, grown)


def _alone(growth: Sequence[Moment], calls: Sequence[_Call]) -> Iterator[Moment]:
    """Growth while no call of ours ran. Both are walked once, in the order of time."""
    spans = sorted((call.began - SLACK, call.ended + SLACK) for call in calls)
    position, reached = 0, None
    for moment in growth:
        while position < len(spans) and spans[position][0] <= moment.to:
            reached = max(reached or spans[position][1], spans[position][1])
            position += 1
        if reached is None or reached < moment.from_:
            yield moment
