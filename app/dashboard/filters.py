"""The filters of the spend page, as they stand in its address and as they read in a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import get_args
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from app.billing.types import GroupBy

DEFAULT_DAYS = 30
LONGEST_DAYS = 366 * 5
GROUPS: tuple[GroupBy, ...] = get_args(GroupBy)
GROUP_NAMES: Mapping[str, str] = {
    "day": "day",
    "team": "team",
    "person": "person",
    "key": "API key",
    "model": "model",
    "deployment": "deployment",
    "kind": "kind of call",
}


@dataclass(frozen=True, slots=True)
class SpendFilter:
    """What the page shows: whole days of the installation's zone, both ends included."""

    first: date
    last: date
    group_by: GroupBy = "day"
    team_id: UUID | None = None

    @property
    def days(self) -> int:
        """How many days, at least 1."""
        return (self.last - self.first).days + 1

    def bounds(self, zone: str) -> tuple[datetime, datetime]:
        """The first instant, and the first instant after the end."""
        return day_start(self.first, zone), day_start(self.last + timedelta(days=1), zone)

    def query(self) -> str:
        """The filter as the query part of an address."""
        values = {"from": self.first.isoformat(), "to": self.last.isoformat(), "group_by": self.group_by}
        if self.team_id:
            values["team"] = str(self.team_id)
        return urlencode(values)

    def sentence(self, team_name: str | None, today: date) -> str:
        """The filter in words: `Team Research, last 30 days, by model`."""
        who = f"Team {team_name}" if team_name else "Everyone"
        return f"{who}, {period(self, today)}, by {GROUP_NAMES[self.group_by]}"


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
        (words, replace(chosen, first=first, last=today).query(), words == current) for words, first in spans
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
    group_by: GroupBy = "day"
    if wanted := params.get("group_by"):
        known = [name for name in GROUPS if name == wanted]
        group_by = known[0] if known else group_by
        if not known:
            problems.append(f"“{wanted[:40]}” is no way to group; this is by day.")
    return SpendFilter(first, last, group_by, _team(params.get("team"), problems)), problems


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


def _team(text: str | None, problems: list[str]) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        problems.append("The team in the address is unknown; all teams are shown.")
        return None
