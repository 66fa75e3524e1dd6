"""What the spend page reads. Sums come from billing's roll-ups, names from their owners."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from app.billing.selectors import limits_remaining
from app.billing.spending import spending
from app.billing.types import LimitState, Payer
from app.billing.types.spending import Dimension, Group, SpendScope, SpendSum, spend_total
from app.catalog.models import Deployment
from app.dashboard.chart import LONGEST_BY_DAY, MOST_SERIES, OTHER, Amount, Series
from app.dashboard.filters import TIMES, SpendFilter, day_start
from app.dashboard.forecast import WEEKS, Forecast, forecast
from app.dashboard.naming import GROUPS, NAMED, Name, grouped, names_of, person_level, personal_hidden
from app.dashboard.reach import Reach


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of the table: a group by its name."""

    name: Name
    sums: SpendSum
    group: Group = None
    links: bool = True
    """False where the row is several groups together and nothing can be narrowed to it."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The four figures on top of the page."""

    today: Decimal
    month: SpendSum
    forecast: Forecast | None
    budget: LimitState | None
    """The money limit with the least left; None when there is none."""


_FEW = frozenset({"model", "deployment", "kind"})
"""What an installation has so few of that all are read step by step at once."""
_CHARTED = ("price", "estimated_price")
_FIGURES = (*_CHARTED, "unpriced")


def total_of(rows: Sequence[TableRow]) -> SpendSum:
    """The exact sum of some rows."""
    return spend_total([row.sums for row in rows])


def figures(*, reach: Reach, chosen: SpendFilter, today: date, zone: str) -> Figures:
    """Today, month to date, to the end of the month, and what is left; narrowed to a team as the page is."""
    first = today.replace(day=1)
    scope = SpendScope(
        from_=day_start(min(first, today - timedelta(weeks=WEEKS + 5)), zone),
        to=day_start(today + timedelta(days=1), zone),
        team_ids=reach.team_ids,
        team_id=chosen.team,
    )
    days = {row.groups[0]: row for row in spending(by=("day",), zone=zone, scope=scope, sums=_FIGURES)}
    by_day = {day: row.price for day, row in days.items() if isinstance(day, date)}
    # From the first day of all on, so that weeks before there was anything are no weeks of nothing.
    month = spend_total([row for day, row in days.items() if isinstance(day, date) and day >= first])
    limits = limits_remaining(Payer(team_id=reach.payer_team(chosen)))
    money = [limit for limit in limits if limit.unit == "money" and limit.limit > 0]
    return Figures(
        today=by_day.get(today, Decimal(0)),
        month=month,
        forecast=forecast(by_day, today=today),
        budget=min(money, key=lambda limit: limit.remaining / limit.limit, default=None),
    )


def table(chosen: SpendFilter, *, reach: Reach, zone: str) -> list[TableRow]:
    """The groups with their names: times newest first, everything else dearest first."""
    scope = chosen.scope(zone, reach.team_ids)
    by = chosen.group_by
    if by == "person" and person_level() == GROUPS:
        rows = [
            (_id(r.groups[0]), _id(r.groups[1]), r)
            for r in spending(by=("team", "person"), zone=zone, scope=scope)
        ]
        return sorted(
            (TableRow(Name(n), s, links=False) for n, s in grouped(rows)), key=lambda row: -row.sums.price
        )
    sums = _told_apart(spending(by=(by,), zone=zone, scope=scope), by, place=0)
    names = names_of(by, [row.groups[0] for row in sums])
    lines = [TableRow(names[row.groups[0]], row, row.groups[0]) for row in sums]
    if by in TIMES:
        return lines[::-1]
    return sorted(lines, key=lambda line: (-line.sums.price, line.name.text))


def _told_apart(rows: list[SpendSum], by: Dimension, *, place: int) -> list[SpendSum]:
    """Where people are shown in groups alone, all personal teams are one group."""
    if by != "team" or person_level() != GROUPS:
        return rows
    hidden = personal_hidden([one for row in rows if (one := _id(row.groups[place]))])
    sums: dict[tuple[Group, ...], SpendSum] = {}
    for row in rows:
        group = "Personal teams" if row.groups[place] in hidden else row.groups[place]
        groups = (*row.groups[:place], group, *row.groups[place + 1 :])
        sums[groups] = replace(sums.get(groups, SpendSum()) + row, groups=groups)
    return list(sums.values())


def _id(group: Group) -> UUID | None:
    return group if isinstance(group, UUID) else None


def step_of(chosen: SpendFilter) -> Dimension:
    """The width of a bar: as asked for, else days, beyond three months months."""
    if chosen.group_by in TIMES and chosen.group_by != "year":
        fits = {"hour": 14, "day": LONGEST_BY_DAY, "week": 7 * 53, "month": 366 * 5}[chosen.group_by]
        if chosen.days <= fits:
            return chosen.group_by
    return "hour" if chosen.days == 1 else "day" if chosen.days <= LONGEST_BY_DAY else "month"


def series(chosen: SpendFilter, *, reach: Reach, zone: str, rows: Sequence[TableRow]) -> list[Series]:
    """Spend over time by what is grouped by, models where that is time; beyond the sixth colour summed as `other`.

    `rows` are those of the table, which tell the dearest, so that no other is read step by step.
    """
    by: Dimension = "model" if chosen.group_by in TIMES else chosen.group_by
    scope, step = chosen.scope(zone, reach.team_ids), step_of(chosen)
    if by == "person" and person_level() == GROUPS:
        by = "team"
    # A group that several owners make up is none that could be asked for.
    at_once = by in _FEW or (by == "team" and person_level() == GROUPS)
    read = partial(spending, by=(step, by), zone=zone, scope=scope, sums=_CHARTED)
    steps = _told_apart(read(), by, place=1) if at_once else []
    totals = _prices(steps, place=1) if at_once else {row.group: row.sums.price for row in rows}
    dearest = [g for g in sorted(totals, key=lambda g: (-totals[g], str(g))) if totals[g]]
    shown = dearest if len(dearest) <= MOST_SERIES else dearest[: MOST_SERIES - 1]
    if not at_once:
        steps = read(among=shown)
    slots: dict[Group, dict[date, Amount]] = {group: {} for group in shown}
    for row in steps:
        slot, group = row.groups
        if row.price and group in slots:
            slots[group][_date(slot)] = Amount(row.price, row.estimated_price)
    names, colours = names_of(by, shown), _colours(by, shown)
    lines = [Series(names[g].text, colours[g], slots[g]) for g in shown]
    if len(dearest) > len(shown):
        whole = steps if at_once else spending(by=(step,), zone=zone, scope=scope, sums=_CHARTED)
        lines.append(Series(OTHER, MOST_SERIES - 1, _rest(whole, lines)))
    return lines


def _prices(rows: Sequence[SpendSum], *, place: int) -> dict[Group, Decimal]:
    """The price of each group at that place."""
    found: dict[Group, Decimal] = {}
    for row in rows:
        found[row.groups[place]] = found.get(row.groups[place], Decimal(0)) + row.price
    return found


def _rest(whole: Sequence[SpendSum], lines: Sequence[Series]) -> dict[date, Amount]:
    """What the lines leave of the whole."""
    every: dict[date, Amount] = {}
    for row in whole:
        slot = _date(row.groups[0])
        every[slot] = every.get(slot, Amount()) + Amount(row.price, row.estimated_price)
    left: dict[date, Amount] = {}
    for slot, amount in every.items():
        told = sum((line.by_day.get(slot, Amount()) for line in lines), Amount())
        if price := amount.price - told.price:
            left[slot] = Amount(price, amount.estimated - told.estimated)
    return left


def _date(group: Group) -> date:
    assert isinstance(group, date)
    return group


def _colours(by: Dimension, shown: Sequence[Group]) -> dict[Group, int]:
    """A model's own colour, that of no dearer model of this view; others in order."""
    own = model_colours() if by == "model" else {}
    taken: dict[Group, int] = {}
    for group in shown:
        wanted = own.get(str(group), len(taken))
        free = [
            c % MOST_SERIES
            for c in range(wanted, wanted + MOST_SERIES)
            if c % MOST_SERIES not in taken.values()
        ]
        if len(shown) < MOST_SERIES or group in shown[: MOST_SERIES - 1]:
            free = [c for c in free if c != MOST_SERIES - 1] or free
        taken[group] = free[0]
    return taken


def model_colours() -> dict[str, int]:
    """Each model's colour, by age of its name, so that it keeps it everywhere."""
    order: dict[str, int] = {}
    for name in Deployment.objects.order_by("id").values_list("public_name", flat=True):
        order.setdefault(name, len(order) % (MOST_SERIES - 1))
    return order


def narrowed(chosen: SpendFilter, row: TableRow) -> SpendFilter | None:
    """The filter that holds one row alone; None where an address cannot say it (no owner, several collections)."""
    by, group = chosen.group_by, row.group
    if not row.links or group is None or group == "":
        return None
    if by in TIMES:
        return _narrowed_time(chosen, by, group)
    if person_level() != NAMED and (by == "person" or (isinstance(group, UUID) and personal_hidden([group]))):
        return None
    if by == "team" and not isinstance(group, UUID):
        return None
    if by == "collection":
        # All that draws on it is another sum than what draws on it alone.
        return None
    inside: dict[str, Any] = {by: group}
    return replace(chosen, **inside)


def _narrowed_time(chosen: SpendFilter, by: Dimension, group: Group) -> SpendFilter | None:
    if by == "hour" or not isinstance(group, date):
        return None
    last = {
        "day": group,
        "week": group + timedelta(days=6),
        "month": (group.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1),
        "year": group.replace(month=12, day=31),
    }[by]
    return replace(chosen, first=max(group, chosen.first), last=min(last, chosen.last))
