"""How a budget burns down: what is left by day, as points of a line. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

HEIGHT = 1000
DAY = 100


@dataclass(frozen=True, slots=True)
class Burn:
    """Units of the plot: a day is 100 wide, the limit 1000 high; what is beyond the limit lies on the ground."""

    width: int
    left: str
    """Points of the line of what is left, from the first day to the end of today."""
    area: str
    """The same, closed to the ground."""
    days: tuple[tuple[str, date, Decimal, Decimal], ...]
    """Label or nothing, day, spent on it, left after it."""
    limit: Decimal
    remaining: Decimal
    today_x: int


def burn(by_day: Mapping[date, Decimal], *, first: date, last: date, today: date, limit: Decimal) -> Burn:
    """From sums by day; days after today have no point."""
    whole = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    left = limit
    points = [f"0,{0}"]
    days: list[tuple[str, date, Decimal, Decimal]] = []
    every = max(1, -(-len(whole) // 7))
    for index, day in enumerate(whole):
        if day <= today:
            left -= by_day.get(day, Decimal(0))
            height = max(Decimal(0), left) / limit * HEIGHT if limit else Decimal(0)
            points.append(f"{(index + 1) * DAY},{HEIGHT - height:.2f}")
        label = f"{day:%-d %b}" if index % every == 0 else ""
        days.append((label, day, by_day.get(day, Decimal(0)), left))
    end = (len(points) - 1) * DAY
    area = f"0,{HEIGHT} {' '.join(points)} {end},{HEIGHT}"
    return Burn(len(whole) * DAY, " ".join(points), area, tuple(days), limit, left, end)
