"""Reads of the roll-ups: exact sums over any span and owners, at whatever size the ledger has.

Each span is cut into the coarsest pieces that answer it, months between days, and entries that are pending are added in
the same statement: what is shown is the ledger at one moment.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection, transaction

from app.billing.types.spending import GRAINS, MONEY_SUMS, SUMS, Dimension, Group, SpendScope, SpendSum, Step

_OWNERS = {
    "team": "team_id",
    "person": "account_id",
    "key": "key_id",
    "model": "model",
    "deployment": "deployment_id",
    "collection": "collections",
    "kind": "call_kind",
    "thread": "thread_id",
}
_NARROWING = {
    "team_ids": ("team_id", "team_id = ANY (%(team_ids)s)"),
    "team_id": ("team_id", "team_id = %(team_id)s"),
    "account_id": ("account_id", "account_id = %(account_id)s"),
    "key_id": ("key_id", "key_id = %(key_id)s"),
    "deployment_id": ("deployment_id", "deployment_id = %(deployment_id)s"),
    "model": ("model", "model = %(model)s"),
    "kind": ("call_kind", "call_kind = %(kind)s"),
    "collection_id": ("collections", "collections @> ARRAY[%(collection_id)s]::uuid[]"),
    "thread_id": ("thread_id", "thread_id = %(thread_id)s"),
}
"""Of a scope's fields: the column that it needs, and the condition."""
_ADDED = {name: f"sum({name})" + ("" if name in MONEY_SUMS else "::bigint") for name in SUMS}


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the span at one grain."""

    grain: str
    from_: datetime
    to: datetime


@contextmanager
def one_moment() -> Iterator[None]:
    """All reads inside see the ledger at one moment, so that sums on one page agree while calls are booked."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def spending(
    *,
    by: Sequence[Dimension] = (),
    zone: str,
    scope: SpendScope,
    among: Sequence[Group] | None = None,
    sums: Sequence[str] = SUMS,
) -> list[SpendSum]:
    """Sums by the given dimensions, in the order of the groups; days, weeks and so on are those of `zone`.

    Without a dimension: exactly one sum. `hour` gives instants, longer times give the local day they begin on;
    `collection` gives all that a call drew on, so that no call is counted twice. `among`: these groups of the last
    dimension alone, which is an owner. `sums`: which are added up; the others are left at 0.
    """
    groups = [f"{_group(name)} AS g{number}" for number, name in enumerate(by)]
    params = _values(scope)
    where = "".join(f" AND {_NARROWING[name][1]}" for name in params)
    if among is not None:
        condition, groups_wanted = _among(by[-1], among)
        where += f" AND {condition}"
        params |= groups_wanted
    params |= {"zone": zone, "from": scope.from_, "to": scope.to}
    columns = ", ".join((*groups, *sums))
    parts: list[str] = []
    for number, piece in enumerate(_pieces(by, zone, scope)):
        params |= {f"from{number}": piece.from_, f"to{number}": piece.to}
        parts.append(
            f"SELECT {columns} FROM billing_rollup WHERE grain = '{piece.grain}' "  # noqa: S608 - names are ours
            f"AND at >= %(from{number})s AND at < %(to{number})s {where}"
        )
    parts.append(
        f"SELECT {columns} FROM billing_spendfact f JOIN billing_rolluppending p ON p.entry_id = f.id "  # noqa: S608
        f"WHERE at >= %(from)s AND at < %(to)s {where}"
    )
    names = [f"g{number}" for number in range(len(by))]
    shown = ", ".join((*names, *(_ADDED[name] for name in sums)))
    query = f"SELECT {shown} FROM ({' UNION ALL '.join(parts)}) parts"  # noqa: S608 - names are ours
    if names:
        query += f" GROUP BY {', '.join(names)} ORDER BY {', '.join(names)}"
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        return [_sum(row, len(by), sums) for row in cursor.fetchall()]


def _sum(row: Sequence[Any], count: int, names: Sequence[str]) -> SpendSum:
    groups: tuple[Group, ...] = tuple(tuple(g) if isinstance(g, list) else g for g in row[:count])
    if row[count] is None:
        return SpendSum(groups=groups)
    return SpendSum(groups=groups, **dict(zip(names, row[count:], strict=True)))


def _among(name: Dimension, groups: Sequence[Group]) -> tuple[str, dict[str, Any]]:
    """The condition for these groups, as an index may answer it, and what it compares with."""
    column = _OWNERS[name]
    if name in {"model", "kind"}:
        return f"{column} = ANY (%(among)s)", {"among": [group or "" for group in groups]}
    conditions = [f"{column} IS NULL"] if None in groups else []
    known = [group for group in groups if group is not None]
    params: dict[str, Any] = {"among": known}
    if name == "collection":
        # Sets of any length are no array of arrays.
        params = {f"among{n}": list(group) for n, group in enumerate(known) if isinstance(group, tuple)}
        conditions += [f"{column} = %({one})s::uuid[]" for one in params] or ["false"]
    else:
        conditions.append(f"{column} = ANY (%(among)s::uuid[])")
    return f"({' OR '.join(conditions)})", params


def _group(name: Dimension) -> str:
    if name in _OWNERS:
        return _OWNERS[name]
    if name == "hour":
        return "date_trunc('hour', at, %(zone)s)"
    return f"date_trunc('{name}', at AT TIME ZONE %(zone)s)::date"


def _values(scope: SpendScope) -> dict[str, Any]:
    """What the scope narrows by."""
    given = {name: getattr(scope, name) for name in _NARROWING}
    return {n: list(v) if isinstance(v, tuple) else v for n, v in given.items() if v is not None}


def _pieces(by: Sequence[Dimension], zone: str, scope: SpendScope) -> list[_Piece]:
    if "thread" in by or scope.thread_id is not None:
        return [_Piece("thread", scope.from_, scope.to)]
    kept, building = _kept()
    needed = {_OWNERS[name] for name in by if name in _OWNERS}
    needed |= {_NARROWING[name][0] for name in _values(scope)}

    def piece(step: Step, from_: datetime, to: datetime) -> _Piece:
        """By the smallest sums that tell apart all that is asked for."""
        found = (g for g, owners in GRAINS[step].items() if needed <= owners and g not in building)
        return _Piece(next(found), from_, to)

    local = [instant.astimezone(ZoneInfo(zone)) for instant in (scope.from_, scope.to)]
    if kept != zone or "hour" in by or any(_is_within_a_day(instant) for instant in local):
        return [piece("quarter", scope.from_, scope.to)]
    first, last = _month_from(local[0]), local[1].replace(day=1)
    if "day" in by or "week" in by or first >= last:
        return [piece("day", scope.from_, scope.to)]
    pieces = [
        piece("day", scope.from_, first),
        piece("month", first, last),
        piece("day", last, scope.to),
    ]
    return [piece for piece in pieces if piece.from_ < piece.to]


def _kept() -> tuple[str | None, set[str]]:
    """The zone of the days and months that are kept, and the grains that are not whole yet."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT zone FROM billing_rollupzone), ARRAY(SELECT grain FROM billing_rollupbuild)"
        )
        zone, building = cursor.fetchone()
    return zone, set(building)


def _is_within_a_day(local: datetime) -> bool:
    return bool(local.hour or local.minute or local.second or local.microsecond)


def _month_from(local: datetime) -> datetime:
    """The first midnight from then on that begins a month."""
    if local.day == 1:
        return local
    return local.replace(year=local.year + local.month // 12, month=local.month % 12 + 1, day=1)
