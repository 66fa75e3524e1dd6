"""What a month will come to, from what the same weekdays brought before. Pure.

The days that are left are laid over the eight weeks before, week by week, and each week gives a possible end of the
month. Their median is the forecast, the lowest and highest its range, so weekends, growth and noise are in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

WEEKS = 8
FEWEST = 2
"""Weeks of history without which nothing is forecast."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """To the end of the month, what is spent already included."""

    expected: Decimal
    low: Decimal
    high: Decimal
    weeks: int
    """How many weeks it rests on."""


def forecast(by_day: Mapping[date, Decimal], *, today: date) -> Forecast | None:
    """From sums by day (missing: 0), thirteen weeks back where there are any; None: too little is known."""
    end = (today.replace(day=28) + timedelta(days=4)).replace(day=1)
    spent = sum(
        (v for day, v in by_day.items() if day.replace(day=1) == today.replace(day=1) and day <= today),
        Decimal(0),
    )
    # Today is not over: what is left of it is what such a day brought, less what it has brought.
    left = [today + timedelta(days=n) for n in range((end - today).days)]
    back = -(-len(left) // 7)
    begun = min(by_day, default=today)
    weeks = [k for k in range(WEEKS) if left[0] - timedelta(weeks=back + k) >= begun]
    if len(weeks) < FEWEST:
        return None
    so_far = by_day.get(today, Decimal(0))

    def rest(shift: int) -> Decimal:
        first, *others = (by_day.get(day - timedelta(weeks=shift), Decimal(0)) for day in left)
        return max(Decimal(0), first - so_far) + sum(others, Decimal(0))

    ends = sorted(spent + rest(back + k) for k in weeks)
    middle = (ends[(len(ends) - 1) // 2] + ends[len(ends) // 2]) / 2
    return Forecast(middle, ends[0], ends[-1], len(ends))
