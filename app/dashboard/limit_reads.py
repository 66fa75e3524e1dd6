"""What the page of limits shows: one's own, a team's by person, the installation's, and requests for more."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils.dateformat import format as date_format
from django.utils.translation import gettext as _

from app.accounts.models import Team
from app.accounts.selectors import MANAGING_ROLES, Caller, members_of, teams_of
from app.billing.asking import may_decide, requests_of
from app.billing.budget_rights import BudgetRow, budgets_of, may_drop, may_set
from app.billing.naming import Covers, covers_of, whom
from app.billing.raising import Asked
from app.billing.selectors import limits_remaining
from app.billing.types import STORED, LimitState, Payer
from app.billing.wording import amount_words, limit_words
from app.common.formatting import share

MOST_MEMBERS = 200
_SOMEBODY = Covers("in this team", "")


@dataclass(frozen=True, slots=True)
class Bar:
    """One limit as a line with a bar; widths are whole per cents of the limit."""

    what: str
    limit: str
    remaining: str
    spent: str
    held: str
    used_share: str
    spent_width: int
    held_width: int
    state: str
    """``, `near` from 80 % on, `full`."""
    resets_at: str
    """In the limit's own zone; empty: never."""
    hard: bool
    counted: bool
    """False for what is stored, whose sum the page of documents knows."""
    window_id: UUID | None
    raised_by: str


@dataclass(frozen=True, slots=True)
class Asking:
    """One request for more."""

    id: UUID
    covers: str
    what: str
    amount: str | None
    amount_plain: str
    note: str
    state: str
    granted: str | None
    answer: str
    created_at: datetime
    ends_at: str
    lasts: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One limit that somebody manages."""

    id: UUID
    covers: str
    what: str
    limit: str
    limit_plain: str
    granted: str | None
    hard: bool
    may_set: bool
    may_drop: bool


@dataclass(frozen=True, slots=True)
class Panel:
    """A team as its owner, admin or staff sees it."""

    team: Team
    pool: Sequence[Bar]
    people: Sequence[tuple[str, Sequence[Bar]]]
    settings: Sequence[Setting]
    members: Sequence[tuple[UUID, str]]
    owns: bool


def my_limits(caller: Caller) -> list[tuple[Team, list[Bar]]]:
    """What is on the caller's way, by paying team."""
    found = []
    for team in teams_of(caller):
        payer = Payer(team_id=team.id, account_id=caller.account_id)
        found.append((team, [bar(limit) for limit in limits_remaining(payer)]))
    return found


def managed_teams(caller: Caller) -> list[Team]:
    """Teams whose limits the caller sees by person: those managed, shared ones first; for staff all."""
    if caller.is_staff:
        return list(Team.objects.order_by("is_personal", "name", "id")[:1000])
    roles = dict(caller.roles)
    mine = [team for team in teams_of(caller) if roles[team.id] in MANAGING_ROLES]
    return sorted(mine, key=lambda team: (team.is_personal, team.name))


def panel(caller: Caller, team: Team) -> Panel:
    """The team's pool, allowances by person, and the limits that may be set."""
    members = members_of(team.id)[:MOST_MEMBERS]
    people = []
    for member in members:
        payer = Payer(team_id=team.id, account_id=member.user.account_id)
        own = [bar(limit, _SOMEBODY) for limit in limits_remaining(payer) if limit.scope == "allowance"]
        people.append((str(member.user), own))
    pool = [limit for limit in limits_remaining(Payer(team_id=team.id)) if limit.scope in {"team", "prepaid"}]
    return Panel(
        team=team,
        pool=[bar(limit) for limit in pool],
        people=people,
        settings=[setting(caller, row) for row in budgets_of(caller, team_id=team.id)],
        members=[(member.user.account_id, str(member.user)) for member in members],
        owns=may_set(caller, f"t:{team.id}"),
    )


def installation_limits() -> list[Bar]:
    """The limits over everybody."""
    return [bar(limit) for limit in limits_remaining(Payer(team_id=None))]


def askings(caller: Caller) -> tuple[list[Asking], list[Asking]]:
    """(the caller's own requests, those that wait for the caller), newest first."""
    rows = requests_of(caller)
    own = [row for row in rows if row.account_id is not None and row.account_id == caller.account_id]
    waiting = [row for row in rows if row.state == "open" and may_decide(caller, row)]
    return [asking(row) for row in own[:20]], [asking(row) for row in waiting]


def bar(limit: LimitState, covers: Covers | None = None) -> Bar:
    """A limit for the page; `covers` where it is not the reader's."""
    currency = settings.CURRENCY
    covers = covers or covers_of(limit.subject)

    def width(part: Decimal) -> int:
        whole = limit.limit
        return 100 if whole <= 0 else int(min(Decimal(100), max(Decimal(0), part / whole * 100)))

    used = limit.spent + limit.held
    full = limit.remaining <= 0
    near = not full and used * 5 >= limit.limit * 4
    return Bar(
        what=_upper(limit_words(limit, covers)),
        limit=amount_words(limit.limit, limit.unit, currency),
        remaining=amount_words(limit.remaining, limit.unit, currency),
        spent=amount_words(limit.spent, limit.unit, currency),
        held=amount_words(limit.held, limit.unit, currency) if limit.held else "",
        used_share="100 %" if full else share(used, limit.limit),
        spent_width=width(limit.spent),
        held_width=min(width(limit.held), 100 - width(limit.spent)),
        state="full" if full else "near" if near else "",
        resets_at="" if limit.resets_at is None else _moment(limit.resets_at, limit.zone),
        hard=limit.hard,
        counted=limit.unit not in STORED,
        window_id=limit.window_id,
        raised_by=covers.raised_by.rstrip(","),
    )


def asking(row: Asked) -> Asking:
    """A request for the page."""
    window, currency = row.window, settings.CURRENCY
    lasts = window.budget.period == "lifetime"
    return Asking(
        id=row.id,
        covers=whom(window.subject),
        what=f"{window.budget.period} limit of {window.unit}",
        amount=None if row.amount is None else amount_words(row.amount, window.unit, currency),
        amount_plain="" if row.amount is None else f"{row.amount.normalize():f}",
        note=row.note,
        state=row.state,
        granted=None if row.granted is None else amount_words(row.granted, window.unit, currency),
        answer=row.answer,
        created_at=row.created_at,
        ends_at="" if lasts else _moment(window.ends_at, window.budget.zone),
        lasts=lasts,
    )


def setting(caller: Caller, row: BudgetRow) -> Setting:
    """A limit for whoever manages it."""
    currency = settings.CURRENCY
    model = f" on {row.price_key}" if row.price_key else ""
    period = "for good" if row.period == "lifetime" else f"a {row.period}"
    return Setting(
        id=row.id,
        covers=whom(row.subject),
        what=f"{row.unit} {period}{model}",
        limit=amount_words(row.limit, row.unit, currency),
        limit_plain=f"{row.limit.normalize():f}",
        granted=None if row.ceiling is None else amount_words(row.ceiling, row.unit, currency),
        hard=row.hard,
        may_set=may_set(caller, row.subject),
        may_drop=may_drop(caller, row),
    )


def _upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _moment(at: datetime, zone: str) -> str:
    local = at.astimezone(ZoneInfo(zone))
    return f"{date_format(local, _('j F Y'))}, {local:%H:%M} {zone}"
