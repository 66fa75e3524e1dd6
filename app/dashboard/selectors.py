"""What the dashboard reads. Amounts come from billing's own sums over the ledger; names come from their owners."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from app.accounts.models import ApiKey, Team, User
from app.billing.selectors import limits_remaining, spend
from app.billing.types import LimitState, Payer, SpendRow
from app.catalog.models import Deployment
from app.dashboard.chart import MOST_SERIES, OTHER, Amount, Series
from app.dashboard.filters import SpendFilter, day_start


@dataclass(frozen=True, slots=True)
class Sums:
    """Several groups added up."""

    price: Decimal
    estimated_price: Decimal
    entries: int
    requests: int
    input_tokens: int
    output_tokens: int
    price_missing: int


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of the table: a group by its name."""

    name: str
    known: bool
    """False when the group's owner is gone or was never named."""
    sums: SpendRow


@dataclass(frozen=True, slots=True)
class Figures:
    """The four figures on top of the page."""

    today: Decimal
    month: Decimal
    estimated: Decimal
    """Of the month's price, what rests on estimates."""
    month_missing: int
    """Calls of this month without a known price, which are in no sum."""
    budget: LimitState | None
    """The money limit with the least left; None when there is none."""


def add_up(rows: Sequence[SpendRow]) -> Sums:
    """The exact sum of some groups."""
    return Sums(
        price=sum((r.price for r in rows), Decimal(0)),
        estimated_price=sum((r.estimated_price for r in rows), Decimal(0)),
        entries=sum(r.entries for r in rows),
        requests=sum(r.requests for r in rows),
        input_tokens=sum(r.input_tokens for r in rows),
        output_tokens=sum(r.output_tokens for r in rows),
        price_missing=sum(r.price_missing for r in rows),
    )


def teams() -> list[tuple[UUID, str]]:
    """Every team by name, for the filter."""
    return list(Team.objects.order_by("name", "id").values_list("id", "name"))


def figures(*, team_id: UUID | None, today: date, zone: str) -> Figures:
    """Today, month to date, how sure, and what is left; for one team or for all."""
    first = day_start(today.replace(day=1), zone)
    rows = spend(
        group_by="day", from_=first, to=day_start(today + timedelta(days=1), zone), tz=zone, team_id=team_id
    )
    month = add_up(rows)
    limits = limits_remaining(Payer(team_id=team_id))
    money = [limit for limit in limits if limit.unit == "money" and limit.limit > 0]
    return Figures(
        today=add_up([row for row in rows if row.group == today]).price,
        month=month.price,
        estimated=month.estimated_price,
        month_missing=month.price_missing,
        budget=min(money, key=lambda limit: limit.remaining / limit.limit, default=None),
    )


def table(chosen: SpendFilter, *, zone: str) -> list[TableRow]:
    """The groups with their names: days newest first, everything else dearest first."""
    from_, to = chosen.bounds(zone)
    rows = spend(group_by=chosen.group_by, from_=from_, to=to, tz=zone, team_id=chosen.team_id)
    names = _names(chosen.group_by, [row.group for row in rows])
    lines = [TableRow(*names[row.group], row) for row in rows]
    if chosen.group_by == "day":
        return sorted(lines, key=lambda line: str(line.sums.group), reverse=True)
    return sorted(lines, key=lambda line: (-line.sums.price, line.name))


def series(chosen: SpendFilter, *, zone: str) -> list[Series]:
    """Spend by day and model, dearest first; what is beyond the sixth colour is summed as `other`."""
    from_, to = chosen.bounds(zone)

    def days(deployment_id: UUID | None = None) -> list[SpendRow]:
        return spend(
            group_by="day", from_=from_, to=to, tz=zone, team_id=chosen.team_id, deployment_id=deployment_id
        )

    groups = spend(group_by="deployment", from_=from_, to=to, tz=zone, team_id=chosen.team_id)
    colours = model_colours()
    by_name: dict[str, list[UUID]] = {}
    for row in sorted(groups, key=lambda row: row.price, reverse=True):
        if isinstance(row.group, UUID) and row.group in colours and row.price:
            by_name.setdefault(colours[row.group][0], []).append(row.group)
    shown = list(by_name.items())[: MOST_SERIES - 1]
    rest = _amounts(days())
    lines: list[Series] = []
    taken: set[int] = set()
    for name, ids in shown:
        amounts = _amounts([row for deployment_id in ids for row in days(deployment_id)])
        rest = {
            day: Amount(a.price - _of(amounts, day).price, a.estimated - _of(amounts, day).estimated)
            for day, a in rest.items()
        }
        lines.append(Series(name, _free_colour(colours[ids[0]][1], taken), amounts))
    remaining = {day: amount for day, amount in rest.items() if amount.price}
    if remaining:
        lines.append(Series(OTHER, MOST_SERIES - 1, remaining))
    return lines


def model_colours() -> dict[UUID, tuple[str, int]]:
    """Each deployment's public name and colour: by age of the name, so that a model keeps its colour everywhere."""
    order: dict[str, int] = {}
    found: dict[UUID, tuple[str, int]] = {}
    for deployment_id, name in Deployment.objects.order_by("id").values_list("id", "public_name"):
        found[deployment_id] = (name, order.setdefault(name, len(order) % (MOST_SERIES - 1)))
    return found


def _free_colour(wanted: int, taken: set[int]) -> int:
    """The model's own colour, or the next free one when a dearer model of this view has it."""
    colour = next(
        c % (MOST_SERIES - 1)
        for c in range(wanted, wanted + MOST_SERIES)
        if c % (MOST_SERIES - 1) not in taken
    )
    taken.add(colour)
    return colour


def _of(amounts: dict[date, Amount], day: date) -> Amount:
    return amounts.get(day, Amount())


def _amounts(rows: Sequence[SpendRow]) -> dict[date, Amount]:
    sums: dict[date, Amount] = {}
    for row in rows:
        if isinstance(row.group, date) and not isinstance(row.group, datetime):
            sums[row.group] = _of(sums, row.group) + Amount(row.price, row.estimated_price)
    return sums


def _names(
    group_by: str, groups: Sequence[date | UUID | str | None]
) -> dict[date | UUID | str | None, tuple[str, bool]]:
    """The name of each group, and whether it is known."""
    ids = [group for group in groups if isinstance(group, UUID)]
    known: dict[UUID, str] = {}
    if group_by == "team":
        known = dict(Team.objects.filter(id__in=ids).values_list("id", "name"))
    elif group_by == "person":
        people = User.objects.filter(account_id__in=ids).values_list("account_id", "name", "email")
        known = {account: name or email for account, name, email in people}
    elif group_by == "key":
        known = {key.id: f"{key.name} ({key.prefix}…)" for key in ApiKey.objects.filter(id__in=ids)}
    elif group_by == "deployment":
        known = {d.id: str(d) for d in Deployment.objects.filter(id__in=ids).select_related("backend")}
    return {group: _name(group_by, group, known) for group in groups}


_NOBODY = {
    "team": "The installation itself",
    "person": "No person (ingestion, team keys, probes)",
    "key": "In the browser",
    "deployment": "No deployment",
    "model": "No model",
    "kind": "No kind",
}
_GONE = {"team": "A team that was deleted", "person": "A person who left", "key": "A key that was deleted"}


def _name(group_by: str, group: date | UUID | str | None, known: dict[UUID, str]) -> tuple[str, bool]:
    if isinstance(group, date):
        return f"{group:%a %-d %b %Y}", True
    if isinstance(group, UUID):
        return (
            (known[group], True) if group in known else (_GONE.get(group_by, "One that was deleted"), False)
        )
    return (group, True) if group else (_NOBODY[group_by], False)
