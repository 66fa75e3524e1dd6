"""What `ledger_verify` asks of the roll-ups: the finest and the threads against entries, the others against a finer.

Entries that are pending are in none of them yet, and a grain that is being built is looked at as far as it is.
"""

from app.billing.types.spending import GRAINS, MONEY_SUMS, SUMS

_OWNERS = (
    "team_id",
    "account_id",
    "key_id",
    "deployment_id",
    "model",
    "call_kind",
    "collections",
    "thread_id",
)
_ADDED = ", ".join(f"sum({name})::{'numeric' if name in MONEY_SUMS else 'bigint'} AS {name}" for name in SUMS)
_KEPT_SUMS = ", ".join(f"{name}::{'numeric' if name in MONEY_SUMS else 'bigint'}" for name in SUMS)
_MEASURED = ", ".join(SUMS)
_MERGED = (
    "(SELECT f.* FROM billing_spendfact f WHERE NOT EXISTS ("
    "SELECT 1 FROM billing_rolluppending p WHERE p.entry_id = f.id)) x"
)
_THREAD = {"team_id", "account_id", "thread_id"}
_KEPT = {
    **{grain: kept for grains in GRAINS.values() for grain, kept in grains.items()},
    "thread": _THREAD,
    "threadlife": _THREAD,
}
_PARTS = {
    "house15min": "quarter",
    "day": "quarter",
    "month": "day",
    "teamday": "day",
    "teammonth": "month",
    "plainday": "teamday",
    "plainmonth": "teammonth",
    "usermonth": "month",
    "payerday": "day",
    "payermonth": "month",
    "houseday": "teamday",
    "housemonth": "teammonth",
    "threadlife": "thread",
}
"""What each is the sum of. The others are sums of entries, so if none differs, all are."""


def _owner(grain: str, name: str) -> str:
    if name in _KEPT[grain]:
        return name
    empty = {"model": "''", "call_kind": "''", "collections": "NULL::uuid[]"}.get(name, "NULL::uuid")
    return f"{empty} AS {name}"


def _check(grain: str) -> str:
    part = _PARTS.get(grain)
    rows = f"(SELECT * FROM billing_rollup WHERE grain = '{part}') x" if part else _MERGED  # noqa: S608 - constants
    owners = ", ".join(_OWNERS)
    name = f"hash_record_extended(ROW(at, {owners}), 0)"
    zone = "(SELECT zone FROM billing_rollupzone)"
    where = "WHERE thread_id IS NOT NULL" if grain == "thread" else ""
    built = f"at < coalesce((SELECT done_to FROM billing_rollupbuild WHERE grain = '{grain}'), 'infinity')"  # noqa: S608
    # Joined by a hash of all that tells two sums apart: NULLs are equal in it, and were two alike, both would be shown.
    return f"""
        WITH t AS (
          SELECT {name} AS name, at, team_id, ROW({_MEASURED}) AS sums FROM (
            SELECT billing_rollup_at('{grain}', at, {zone}) AS at, {", ".join(_owner(grain, n) for n in _OWNERS)},
              {_ADDED}
            FROM {rows} {where}
            GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
          ) added WHERE {built}
        ), s AS (
          SELECT {name} AS name, at, team_id, ROW({_KEPT_SUMS}) AS sums
          FROM billing_rollup WHERE grain = '{grain}' AND {built}
        )
        SELECT concat('roll-up {grain} ', coalesce(s.at, t.at), ' of team ', coalesce(s.team_id, t.team_id)),
          s.sums::text, t.sums::text
        FROM s FULL JOIN t ON t.name = s.name WHERE s.sums IS DISTINCT FROM t.sums"""  # noqa: S608 - constants


ROLLUP_CHECKS = {f"roll-up by {grain} = sum of its entries": _check(grain) for grain in _KEPT}
ROLLUP_CHECKS["hours of own servers = time of their calls"] = """
    SELECT concat('hour ', at, ' of deployment ', deployment_id), seconds, rebuilt
    FROM billing_busyhour CROSS JOIN LATERAL (SELECT round(billing_busy_seconds(deployment_id, at), 3) AS rebuilt) x
    WHERE seconds <> rebuilt"""
