"""The filters of the spend pages, as they stand in the address and as they read in a sentence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from app.billing.types.spending import Dimension, SpendScope

DEFAULT_DAYS = 30
LONGEST_DAYS = 366 * 5
LONGEST_BY_HOUR = 14
GROUP_NAMES: Mapping[Dimension, str] = {
    "day": "day",
    "hour": "hour",
    "week": "week",
    "month": "month",
    "year": "year",
    "team": "team",
    "person": "person",
    "key": "API key",
    "model": "model",
    "deployment": "deployment",
    "collection": "collection",
    "kind": "kind of call",
}
TIMES: tuple[Dimension, ...] = ("hour", "day", "week", "month", "year")
FLAGS: Mapping[str, str] = {
    "estimated": "estimated",
    "unpriced": "without a known price",
    "overshoot": "beyond what was held",
    "late": "booked late",
    "disputed": "with figures that do not agree",
}


@dataclass(frozen=True, slots=True)
class SpendFilter:
    """What a page shows: whole days of the installation's zone, both ends included. `None` and `""` are all."""

    first: date
    last: date
    group_by: Dimension = "day"
    team: UUID | None = None
    person: UUID | None = None
    key: UUID | None = None
    deployment: UUID | None = None
    collection: UUID | None = None
    thread: UUID | None = None
    model: str = ""
    kind: str = ""
    flag: str = ""

    @property
    def days(self) -> int:
        """How many days, at least 1."""
        return (self.last - self.first).days + 1

    def bounds(self, zone: str) -> tuple[datetime, datetime]:
        """The first instant, and the first instant after the end."""
        return day_start(self.first, zone), day_start(self.last + timedelta(days=1), zone)

    def scope(self, zone: str, team_ids: tuple[UUID, ...] | None) -> SpendScope:
        """As billing takes it; `team_ids` are those the reader may see."""
        from_, to = self.bounds(zone)
        known: dict[str, Any] = {"flag": self.flag if self.flag in FLAGS else ""}
        return SpendScope(
            from_=from_,
            to=to,
            team_ids=team_ids,
            team_id=self.team,
            account_id=self.person,
            key_id=self.key,
            deployment_id=self.deployment,
            collection_id=self.collection,
            thread_id=self.thread,
            model=self.model or None,
            kind=self.kind or None,
            **known,
        )

    def query(self, **changes: Any) -> str:
        """The filter, with changes, as the query part of an address."""
        chosen = replace(self, **changes) if changes else self
        values = {
            "from": chosen.first.isoformat(),
            "to": chosen.last.isoformat(),
            "group_by": chosen.group_by,
        }
        return urlencode(
            values | {name: str(value) for name in NARROWING if (value := getattr(chosen, name))}
        )

    def sentence(self, names: Mapping[str, str], today: date) -> str:
        """The filter in words: `Team Research, model atlas, last 30 days, by model`."""
        narrowed = [words(names[name]) for name, words in _WORDS.items() if getattr(self, name)]
        if not self.team:
            narrowed.insert(0, names.get("everyone", "Everyone"))
        return ", ".join((*narrowed, period(self, today), f"by {GROUP_NAMES[self.group_by]}"))


NARROWING = tuple(f.name for f in fields(SpendFilter) if f.name not in {"first", "last", "group_by"})
_WORDS: Mapping[str, Callable[[str], str]] = {
    "team": lambda name: f"Team {name}",
    "person": lambda name: name,
    "key": lambda name: f"key {name}",
    "model": lambda name: f"model {name}",
    "deployment": lambda name: name,
    "collection": lambda name: f"collection {name}",
    "thread": lambda name: f"conversation {name}",
    "kind": lambda name: f"{name} calls",
    "flag": lambda name: name,
}


def day_start(day: date, zone: str) -> datetime:
    """Midnight of that day in that zone."""
    return datetime.combine(day, time.min, tzinfo=ZoneInfo(zone))


def period(chosen: SpendFilter, today: date) -> str:
    """The span in words."""
    if chosen.first == chosen.last:
        return "today" if chosen.last == today else f"{chosen.last:%-d %B %Y}"
    if (
        chosen.last == today
        and chosen.first.day == 1
        and chosen.first.month == today.month
        and chosen.days < 32
    ):
        return "this month"
    if chosen.last == today:
        return f"last {chosen.days} days"
    return f"{chosen.first:%-d %B %Y} to {chosen.last:%-d %B %Y}"


def presets(chosen: SpendFilter, today: date) -> list[tuple[str, str, bool]]:
    """(words, query, is the present one) for the spans people ask for most."""
    spans = [
        ("Today", today),
        ("7 days", today - timedelta(days=6)),
        ("30 days", today - timedelta(days=DEFAULT_DAYS - 1)),
        ("This month", today.replace(day=1)),
        ("12 months", today - timedelta(days=364)),
    ]
    # Two spans may begin on the same day; only the first of them is marked.
    current = next((words for words, first in spans if (chosen.first, chosen.last) == (first, today)), None)
    return [
        (
            words,
            chosen.query(first=first, last=today, group_by=_fitting(chosen.group_by, first, today)),
            words == current,
        )
        for words, first in spans
    ]


def parse(params: Mapping[str, str], today: date) -> tuple[SpendFilter, list[str]]:
    """The filter of an address, and a sentence for each part that could not be read and was left at its default."""
    problems: list[str] = []
    last = _day(params.get("to"), today, "end", problems)
    first = _day(params.get("from"), last - timedelta(days=DEFAULT_DAYS - 1), "start", problems)
    if first > last:
        problems.append("The start lay after the end, so the two were exchanged.")
        first, last = last, first
    if (last - first).days >= LONGEST_DAYS:
        problems.append("Five years are shown at most.")
        first = last - timedelta(days=LONGEST_DAYS - 1)
    group_by: Dimension = "day"
    if wanted := params.get("group_by"):
        known = [name for name in GROUP_NAMES if name == wanted]
        group_by = known[0] if known else group_by
        if not known:
            problems.append(f"“{wanted[:40]}” is no way to group; this is by day.")
    if _fitting(group_by, first, last) != group_by:
        problems.append(f"Hours are shown over {LONGEST_BY_HOUR} days at most; this is by day.")
        group_by = "day"
    narrowing: dict[str, Any] = {name: _id(params.get(name), name, problems) for name in _IDS}
    narrowing |= {name: (params.get(name) or "")[:200] for name in ("model", "kind")}
    flag = params.get("flag") or ""
    if flag and flag not in FLAGS:
        problems.append(f"“{flag[:40]}” marks no entries; all are shown.")
        flag = ""
    return SpendFilter(first, last, group_by, **narrowing, flag=flag), problems


_IDS = ("team", "person", "key", "deployment", "collection", "thread")


def _fitting(group_by: Dimension, first: date, last: date) -> Dimension:
    return "day" if group_by == "hour" and (last - first).days >= LONGEST_BY_HOUR else group_by


def _day(text: str | None, default: date, which: str, problems: list[str]) -> date:
    if not text:
        return default
    try:
        day = date.fromisoformat(text)
    except ValueError:
        problems.append(f"The {which} “{text[:40]}” is no date; {default:%-d %B %Y} was taken.")
        return default
    if not 2000 <= day.year <= 2200:
        problems.append(f"The {which} {day} is out of reach; {default:%-d %B %Y} was taken.")
        return default
    return day


def _id(text: str | None, name: str, problems: list[str]) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        problems.append(f"The {name} in the address is unknown, so nothing is narrowed by it.")
        return None
