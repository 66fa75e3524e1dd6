"""Stacked bars: amounts in, rectangles out. Pure; the template draws what it is given.

The plot is 1000 units high and stretched to the page's width, so bars need no script and no second size for phones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

HEIGHT = 1000
SLOT = 100
BAR = 72
LONGEST_BY_DAY = 92
MOST_SERIES = 6
OTHER = "other"
TICKS = 4
MOST_LABELS = 7
MOST_HOURS = 48
"""Bars by the hour that are told apart by their time of day alone."""


@dataclass(frozen=True, slots=True)
class Amount:
    """What one series came to in one slot."""

    price: Decimal = Decimal(0)
    estimated: Decimal = Decimal(0)
    """The part of `price` that rests on estimates."""

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.price + other.price, self.estimated + other.estimated)


@dataclass(frozen=True, slots=True)
class Series:
    """One model over time."""

    name: str
    colour: int
    """0 to 5; 5 is kept for all the others together."""
    by_day: Mapping[date, Amount]

    @property
    def total(self) -> Amount:
        """The whole series."""
        return sum(self.by_day.values(), Amount())


@dataclass(frozen=True, slots=True)
class Segment:
    """A rectangle in plot units. `hatch_height` of it, at its top, is estimated."""

    colour: int
    x: int
    y: str
    height: str
    hatch_height: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One slot of the time axis."""

    label: str
    """Empty where a label would touch its neighbour."""
    first: date
    name: str
    """The slot in words."""
    slot_x: int
    segments: tuple[Segment, ...]
    parts: tuple[tuple[str, Amount], ...]
    total: Amount


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything the template needs."""

    bars: tuple[Bar, ...]
    series: tuple[Series, ...]
    top: Decimal
    """Value of the highest grid line; 0 is the lowest."""
    ticks: tuple[Decimal, ...]
    """Grid lines from the top down, 0 last."""
    width: int
    step: str
    """hour, day, week or month."""
    total: Amount

    @property
    def by_month(self) -> bool:
        return self.step == "month"

    @property
    def stacked(self) -> tuple[Series, ...]:
        """From the top of a bar down, as they are labelled beside it."""
        return self.series[::-1]


def chart(*, first: date, last: date, series: Sequence[Series], step: str = "", zone: str = "UTC") -> Chart:
    """A bar per day, or per month beyond three months, or per `step`: hour, day, week, month.

    Hours are instants, so a day has those that it has, and are named as clocks in `zone` show them.
    """
    step = step or ("month" if (last - first).days + 1 > LONGEST_BY_DAY else "day")
    slots = _slots(first, last, step, series)
    columns = [_columns(line, by_month=step == "month") for line in series]
    totals = [sum((column.get(slot, Amount()) for column in columns), Amount()) for slot in slots]
    top = nice_top(max((t.price for t in totals), default=Decimal(0)))
    here = [slot.astimezone(ZoneInfo(zone)) if isinstance(slot, datetime) else slot for slot in slots]
    labels = _labels(here, step)
    bars = tuple(
        Bar(
            label=labels.get(index, ""),
            first=slot,
            name=_named(here[index], step),
            slot_x=index * SLOT,
            segments=_segments(
                index, [(s.colour, c.get(slot, Amount())) for s, c in zip(series, columns, strict=True)], top
            ),
            parts=tuple((s.name, c[slot]) for s, c in zip(series, columns, strict=True) if slot in c),
            total=totals[index],
        )
        for index, slot in enumerate(slots)
    )
    ticks = tuple(top * n / TICKS for n in range(TICKS, -1, -1))
    return Chart(bars, tuple(series), top, ticks, len(slots) * SLOT, step, sum(totals, Amount()))


def nice_top(highest: Decimal) -> Decimal:
    """The smallest of 1, 2, 4, 6, 8 × 10ⁿ that holds the highest bar; 1 when there is none."""
    if highest <= 0:
        return Decimal(1)
    unit = Decimal(1).scaleb(highest.adjusted())
    return next(step * unit for step in (1, 2, 4, 6, 8, 10) if step * unit >= highest)


def _slots(first: date, last: date, step: str, series: Sequence[Series]) -> list[date]:
    if step == "hour":
        seen = [slot for line in series for slot in line.by_day if isinstance(slot, datetime)]
        if not seen:
            return [first]
        hours = int((max(seen) - min(seen)).total_seconds() // 3600)
        return [min(seen) + timedelta(hours=n) for n in range(hours + 1)]
    if step == "month":
        months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
        return [date(month // 12, month % 12 + 1, 1) for month in months]
    days = 7 if step == "week" else 1
    begin = first - timedelta(days=first.weekday()) if step == "week" else first
    return [begin + timedelta(days=n) for n in range(0, (last - begin).days + 1, days)]


def _columns(line: Series, *, by_month: bool) -> dict[date, Amount]:
    if not by_month:
        return dict(line.by_day)
    sums: dict[date, Amount] = {}
    for day, amount in line.by_day.items():
        month = day.replace(day=1)
        sums[month] = sums.get(month, Amount()) + amount
    return sums


def _labels(slots: Sequence[date], step: str) -> dict[int, str]:
    """What is written below which slots: so many as have room, and over more than two days of hours the days."""
    if step == "hour" and len(slots) > MOST_HOURS:
        days = [index for index, slot in enumerate(slots) if isinstance(slot, datetime) and slot.hour == 0]
        return {index: f"{slots[index]:%-d %b}" for index in days[:: -(-len(days) // MOST_LABELS)]}
    every = -(-len(slots) // MOST_LABELS)
    return {n: _label(slots[n], step, is_first=n == 0) for n in range(0, len(slots), every)}


def _label(slot: date, step: str, *, is_first: bool) -> str:
    if step == "hour":
        return f"{slot:%H:%M}"
    if step != "month":
        return f"{slot:%-d %b}"
    return f"{slot:%b %Y}" if is_first or slot.month == 1 else f"{slot:%b}"


def _named(slot: date, step: str) -> str:
    forms = {"hour": "%-d %B %Y, %H:%M", "month": "%B %Y", "week": "week from %-d %B %Y"}
    return slot.strftime(forms.get(step, "%-d %B %Y"))


def _segments(index: int, amounts: Sequence[tuple[int, Amount]], top: Decimal) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    base = Decimal(0)
    for colour, amount in amounts:
        if amount.price <= 0:
            continue
        height = amount.price / top * HEIGHT
        base += height
        hatch = min(height, amount.estimated / top * HEIGHT)
        x = index * SLOT + (SLOT - BAR) // 2
        segments.append(Segment(colour, x, _units(HEIGHT - base), _units(height), _units(hatch)))
    return tuple(segments)


def _units(value: Decimal) -> str:
    return f"{value:.2f}"
