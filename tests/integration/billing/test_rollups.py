"""Roll-ups: equal to the ledger at every moment, in every zone, whoever folds when."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from random import Random
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from app.billing import spending_reads, tasks
from app.billing.late import entry_adjust
from app.billing.models import Grain, LedgerEntry, Rollup, RollupBuild, RollupPending
from app.billing.rollups import rollups_build, rollups_fold, rollups_rebuild
from app.billing.services import reservation_hold, reservation_settle
from app.billing.spending import one_moment, spending
from app.billing.types import Attempt, Buckets, Payer
from app.billing.types.spending import Dimension, SpendScope, SpendSum
from app.billing.verification import ledger_verify
from app.common.models import uuid7
from tests.integration.billing.conftest import MakeHold

pytestmark = pytest.mark.django_db
D = Decimal
START = datetime(2031, 3, 1, tzinfo=UTC)
ALL = SpendScope(from_=datetime(2031, 1, 1, tzinfo=UTC), to=datetime(2032, 1, 1, tzinfo=UTC))


def book(
    hold: MakeHold, at: datetime, *, payer: Payer, deployment: UUID | None = None, **buckets: int
) -> UUID:
    """One turn with its query embedding, at a time."""
    item = hold(
        payer=payer,
        effective_at=at,
        deployment_id=deployment,
        thread_id=payer.account_id,
        collections=tuple(sorted((UUID(int=1), UUID(int=2)))) if deployment else (),
    )
    reservation_hold(hold=item)
    used = Buckets(**(buckets or {"input": 700, "cache_read": 200, "output": 90, "reasoning": 10}))
    calls = [
        Attempt(number=1, kind="embedding", buckets=Buckets(input=12)),
        Attempt(number=2, buckets=used, estimated=bool(at.minute % 2), estimate_reason="no_usage"),
    ]
    reservation_settle(reservation_id=item.reservation_id, attempts=calls)
    return item.reservation_id


@pytest.fixture
def year(roomy: UUID, hold: MakeHold) -> list[Payer]:
    """Calls at odd minutes over nine weeks, of three people in two teams, one of them twice."""
    random = Random(7)
    team = uuid7()
    payers = [
        Payer(team_id=team, account_id=uuid7(), key_id=uuid7()),
        Payer(team_id=team, account_id=uuid7()),
        Payer(team_id=uuid7(), account_id=uuid7()),
    ]
    servers = [None, uuid7()]
    for _ in range(60):
        at = START + timedelta(minutes=random.randrange(63 * 24 * 60))
        book(hold, at, payer=random.choice(payers), deployment=random.choice(servers))
    return payers


_PLAIN = {
    "hour": "date_trunc('hour', e.effective_at, %(zone)s)",
    "day": "(e.effective_at AT TIME ZONE %(zone)s)::date",
    "week": "date_trunc('week', e.effective_at AT TIME ZONE %(zone)s)::date",
    "month": "date_trunc('month', e.effective_at AT TIME ZONE %(zone)s)::date",
    "year": "date_trunc('year', e.effective_at AT TIME ZONE %(zone)s)::date",
    "team": "e.team_id",
    "person": "e.account_id",
    "key": "e.key_id",
    "model": "e.model",
    "deployment": "e.deployment_id",
    "collection": "e.collections",
    "kind": "e.call_kind",
    "thread": "e.thread_id",
}


def plainly(
    by: Sequence[Dimension], zone: str, scope: SpendScope
) -> dict[tuple[object, ...], tuple[object, ...]]:
    """The same sums by SQL over the entries themselves."""
    groups = ", ".join(_PLAIN[name] for name in by) or "1"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT {groups}, count(*), sum(price), coalesce(sum(cost), 0), sum(input_tokens), sum(output_tokens),
              coalesce(sum(price) FILTER (WHERE estimated), 0), count(*) FILTER (WHERE cost IS NULL),
              count(DISTINCT reservation_id) FILTER (WHERE call_kind = 'chat'),
              coalesce(sum((SELECT sum(quantity) FROM billing_ledgerline l WHERE l.entry_id = e.id
                AND component = 'cache_read' AND side = 'price')), 0),
              coalesce(sum((SELECT sum(quantity) FROM billing_ledgerline l WHERE l.entry_id = e.id
                AND component = 'reasoning' AND side = 'price')), 0)
            FROM billing_ledgerentry e
            WHERE effective_at >= %(from)s AND effective_at < %(to)s
              AND (%(team)s::uuid IS NULL OR team_id = %(team)s)
              AND (%(account)s::uuid IS NULL OR account_id = %(account)s)
            GROUP BY {", ".join(str(n + 1) for n in range(max(1, len(by))))}""",
            {
                "zone": zone,
                "from": scope.from_,
                "to": scope.to,
                "team": scope.team_id,
                "account": scope.account_id,
            },
        )
        count = max(1, len(by))
        return {
            tuple(tuple(g) if isinstance(g, list) else g for g in row[:count]) if by else (): row[count:]
            for row in cursor.fetchall()
        }


def seen(sums: Sequence[SpendSum]) -> dict[tuple[object, ...], tuple[object, ...]]:
    return {
        s.groups: (
            s.entries,
            s.price,
            s.cost,
            s.input_tokens,
            s.output_tokens,
            s.estimated_price,
            s.uncosted,
            s.requests,
            s.cached_tokens,
            s.reasoning_tokens,
        )
        for s in sums
    }


VIEWS: list[tuple[Dimension, ...]] = [
    (),
    ("hour",),
    ("day", "model"),
    ("week",),
    ("month", "team"),
    ("year",),
    ("team",),
    ("person",),
    ("key", "kind"),
    ("deployment",),
    ("collection",),
    ("kind",),
    ("day", "team"),
    ("month", "person"),
    ("day", "key"),
    ("person", "model"),
    ("hour", "model"),
    ("month", "person", "kind"),
    ("day", "team", "model"),
    ("day", "person"),
]
GRAINS = [grain.value for grain in Grain]


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns"]
)
def test_every_view_is_the_sum_of_the_entries(zone: str, year: list[Payer], settings: Settings) -> None:
    settings.INSTALLATION_ZONE = zone
    here = ZoneInfo(zone)
    spans = [
        ALL,
        # Part of two months and a whole one between, in days of the zone; the clocks change in the midst.
        SpendScope(from_=datetime(2031, 3, 9, tzinfo=here), to=datetime(2031, 5, 2, tzinfo=here)),
        SpendScope(from_=datetime(2031, 3, 1, tzinfo=here), to=datetime(2031, 4, 1, tzinfo=here)),
        SpendScope(
            from_=datetime(2031, 3, 9, tzinfo=here),
            to=datetime(2031, 5, 2, tzinfo=here),
            team_id=year[0].team_id,
            account_id=year[0].account_id,
        ),
        SpendScope(from_=ALL.from_, to=ALL.to, team_id=year[0].team_id),
    ]
    for folded in (False, True):
        if folded:
            assert rollups_fold(batch=50) == LedgerEntry.objects.count()
            assert not RollupPending.objects.exists()
        for scope in spans:
            for by in VIEWS:
                assert seen(spending(by=by, zone=zone, scope=scope)) == (
                    plainly(by, zone, scope) or ({(): (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)} if not by else {})
                ), (by, scope, folded)
    assert ledger_verify().differences == ()


def test_another_zone_than_the_installations_is_exact_too(year: list[Payer], settings: Settings) -> None:
    settings.INSTALLATION_ZONE = "Europe/Berlin"
    rollups_fold()
    assert seen(spending(by=("day",), zone="Asia/Kathmandu", scope=ALL)) == plainly(
        ("day",), "Asia/Kathmandu", ALL
    )
    settings.INSTALLATION_ZONE = "Asia/Tokyo"
    assert seen(spending(by=("day",), zone="Asia/Tokyo", scope=ALL)) == plainly(("day",), "Asia/Tokyo", ALL)
    assert rollups_fold() == LedgerEntry.objects.count()
    assert Rollup.objects.filter(grain="day", at__hour=15).exists()
    assert seen(spending(by=("day",), zone="Asia/Tokyo", scope=ALL)) == plainly(("day",), "Asia/Tokyo", ALL)
    assert ledger_verify().differences == ()


def test_a_quarter_of_an_hour_is_a_part_of_every_zones_days() -> None:
    instants = [datetime(year, month, 1, tzinfo=UTC) for year in range(2000, 2040) for month in (1, 4, 7, 10)]
    odd = {
        zone
        for zone in available_timezones()
        for at in instants
        if (at.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()) % timedelta(minutes=15)
    }
    assert odd == set()


def test_threads_and_collections(year: list[Payer]) -> None:
    rollups_fold()
    both = (UUID(int=1), UUID(int=2))
    assert {s.groups[0] for s in spending(by=("collection",), zone="UTC", scope=ALL)} == {None, both}
    (one,) = spending(zone="UTC", scope=SpendScope(from_=ALL.from_, to=ALL.to, collection_id=UUID(int=2)))
    drawn = LedgerEntry.objects.filter(collections__contains=[UUID(int=2)])
    assert (one.entries, one.price) == (drawn.count(), sum(e.price or D(0) for e in drawn))
    assert seen(spending(by=("thread",), zone="UTC", scope=ALL)) == plainly(("thread",), "UTC", ALL)


@pytest.mark.parametrize("by", ["model", "team", "person", "key", "collection", "deployment", "kind"])
def test_some_groups_alone(by: Dimension, year: list[Payer]) -> None:
    rollups_fold()
    for (group,) in {row.groups for row in spending(by=(by,), zone="UTC", scope=ALL)}:
        alone = spending(by=("month", by), zone="UTC", scope=ALL, among=[group])
        every = spending(by=("month", by), zone="UTC", scope=ALL)
        assert alone == [row for row in every if row.groups[1] == group]
        assert alone


def test_a_year_reads_few_rows(year: list[Payer], settings: Settings) -> None:
    """Months without what nobody asked for, so the sums of a view do not grow with the calls below them."""
    settings.INSTALLATION_ZONE = "UTC"
    rollups_fold()
    for by, grain in (
        ("model", "housemonth"),
        ("team", "plainmonth"),
        ("collection", "teammonth"),
        ("person", "payermonth"),
        ("day", "houseday"),
        ("hour", "house15min"),
    ):
        Rollup.objects.exclude(grain=grain).update(entries=0)
        assert (
            sum(row.entries for row in spending(by=(by,), zone="UTC", scope=ALL))
            == LedgerEntry.objects.count()
        )
        rollups_rebuild()
    Rollup.objects.exclude(grain="usermonth").update(entries=0)
    people = spending(by=("person", "model"), zone="UTC", scope=replace(ALL, kind="chat"))
    assert sum(row.entries for row in people) == LedgerEntry.objects.filter(call_kind="chat").count()


NEW = {"house15min": "quarter", "plainday": "teamday", "plainmonth": "teammonth", "usermonth": "month"}


def test_a_grain_that_came_later_is_built_in_steps_and_not_read_before(
    year: list[Payer], hold: MakeHold, settings: Settings
) -> None:
    """As after an update: the grains are empty, entries are folded meanwhile, and every view is exact throughout."""
    zone = settings.INSTALLATION_ZONE = "Europe/Berlin"
    scope = SpendScope(
        from_=datetime(2031, 1, 1, tzinfo=ZoneInfo(zone)), to=datetime(2032, 1, 1, tzinfo=ZoneInfo(zone))
    )
    rollups_fold()
    before = {grain: rows_of(grain) for grain in NEW}
    Rollup.objects.filter(grain__in=NEW).delete()
    RollupBuild.objects.bulk_create(RollupBuild(grain=grain, part=part) for grain, part in NEW.items())

    def exact() -> None:
        for by in VIEWS:
            assert seen(spending(by=by, zone=zone, scope=scope)) == plainly(by, zone, scope)
        assert ledger_verify().differences == ()

    exact()
    added = 0
    while rollups_build(steps=1):
        # Into a month that is made, one that is not, and one that nobody has seen.
        for month in (3, 5, 7):
            added += 2
            book(hold, datetime(2031, month, 20, 10, added % 60, tzinfo=UTC), payer=year[added % 3])
        rollups_fold()
        exact()
    assert added > 2 * len(NEW)
    assert not RollupBuild.objects.exists()
    assert {grain: rows_of(grain) for grain in NEW} != before
    Rollup.objects.exclude(grain="usermonth").update(entries=0)
    assert sum(row.entries for row in spending(by=("person", "model"), zone=zone, scope=scope)) > 0


def test_making_all_anew_makes_what_was_being_built_too(year: list[Payer]) -> None:
    rollups_fold()
    Rollup.objects.filter(grain="usermonth").delete()
    RollupBuild.objects.create(grain="usermonth", part="month")
    rollups_rebuild()
    assert (rollups_build(), rows_of("usermonth") > 0) == (0, True)
    assert ledger_verify().differences == ()


def rows_of(grain: str) -> int:
    return Rollup.objects.filter(grain=grain).count()


def test_what_is_not_asked_for_is_not_added_up(year: list[Payer]) -> None:
    rollups_fold()
    (every,) = spending(zone="UTC", scope=ALL)
    assert spending(zone="UTC", scope=ALL, sums=("price",)) == [SpendSum(price=every.price)]


def test_the_dearest_threads_are_found_whatever_was_dear_before(
    roomy: UUID, hold: MakeHold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that were dear in another month are looked at first and are no answer."""
    monkeypatch.setattr(spending_reads, "_LOOKED_AT", (2, 4, None))
    team, random = uuid7(), Random(3)
    payers = [Payer(team_id=team, account_id=uuid7()) for _ in range(12)]
    for number, payer in enumerate(payers):
        book(hold, START + timedelta(days=40), payer=payer, input=(12 - number) * 1000)
        book(hold, START + timedelta(days=random.randrange(20)), payer=payer, input=(number + 1) * 100)
    march = SpendScope(from_=START, to=datetime(2031, 4, 1, tzinfo=UTC), team_ids=(team,))
    for folded in (False, True):
        if folded:
            rollups_fold()
            book(hold, START, payer=payers[0], input=800)
        found = spending_reads.threads_dearest(march, limit=3)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT thread_id, sum(price), count(DISTINCT reservation_id) FROM billing_ledgerentry "
                "WHERE team_id = %s AND effective_at >= %s AND effective_at < %s GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
                [team, march.from_, march.to],
            )
            assert [(t.thread_id, t.price, t.turns) for t in found] == cursor.fetchall()
    assert spending_reads.threads_dearest(SpendScope(from_=START, to=march.to, team_ids=())) == []
    assert len(spending_reads.threads_dearest(march, limit=100)) == 12


def test_late_truth_and_what_takes_it_back_are_added(year: list[Payer]) -> None:
    rollups_fold()
    entry = LedgerEntry.objects.filter(call_kind="chat").earliest("effective_at")
    entry_adjust(
        entry_id=entry.id,
        buckets=Buckets(input=500, cache_read=400, output=90, reasoning=30),
        reason="The provider's own record.",
        actor="tests",
        dedupe_key="generation-1",
    )
    for _ in range(2):
        assert seen(spending(by=("day",), zone="UTC", scope=ALL)) == plainly(("day",), "UTC", ALL)
        assert ledger_verify().differences == ()
        rollups_fold()
    assert Rollup.objects.filter(grain="day", at__date=entry.effective_at.date(), call_kind="chat").exists()


@pytest.mark.parametrize("grain", GRAINS)
def test_a_planted_difference_is_found_in_each(grain: str, year: list[Payer]) -> None:
    rollups_fold()
    row = Rollup.objects.filter(grain=grain).earliest("id")
    Rollup.objects.filter(id=row.id, grain=grain).update(cached_tokens=row.cached_tokens + 1)
    assert f"roll-up by {grain} = sum of its entries" in {d.check for d in ledger_verify().differences}


def test_a_difference_is_rebuilt(year: list[Payer]) -> None:
    rollups_fold()
    Rollup.objects.update(price=1)
    assert ledger_verify().differences
    assert rollups_rebuild() == LedgerEntry.objects.count()
    assert ledger_verify().differences == ()
    # One that was lost, and one that was counted twice.
    Rollup.objects.filter(grain="month").delete()
    RollupPending.objects.create(entry_id=LedgerEntry.objects.earliest("id").id)
    assert {d.check for d in ledger_verify().differences} >= {"roll-up by month = sum of its entries"}
    out = StringIO()
    call_command("ledger_verify", "--rebuild", stdout=out)
    assert "the roll-ups were made anew" in out.getvalue()
    assert seen(spending(by=("month",), zone="UTC", scope=ALL)) == plainly(("month",), "UTC", ALL)


def test_nobody_is_shown_what_is_not_theirs(year: list[Payer]) -> None:
    rollups_fold()
    other = year[2].team_id
    assert other is not None
    nothing = SpendScope(from_=ALL.from_, to=ALL.to, team_ids=())
    assert spending(zone="UTC", scope=nothing)[0].entries == 0
    assert spending(by=("team",), zone="UTC", scope=nothing) == []
    mine = SpendScope(from_=ALL.from_, to=ALL.to, team_ids=(other,), team_id=year[0].team_id)
    assert spending(by=("team",), zone="UTC", scope=mine) == []


def test_the_task_folds(year: list[Payer]) -> None:
    assert tasks.rollups_fold() == LedgerEntry.objects.count()
    assert tasks.rollups_fold() == 0
    with one_moment():
        assert spending(zone="UTC", scope=ALL)[0].price == sum(
            e.price or D(0) for e in LedgerEntry.objects.all()
        )
