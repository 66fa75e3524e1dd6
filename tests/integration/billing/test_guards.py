"""The ledger cannot be changed: not by SQL, not by the application's role, not by emptying a table."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import psycopg
import pytest
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.utils import IntegrityError

from app.billing.credit import credit_grant
from app.billing.models import LedgerEntry, PriceVersion, Reservation, UsageAttempt
from app.billing.services import reservation_hold, reservation_settle
from app.billing.wire import attempt_payload, hold_payload
from tests.integration.billing.conftest import MakeHold, used

pytestmark = pytest.mark.django_db

UNDELETABLE = [
    "billing_reservation", "billing_priceversion", "billing_usageattempt", "billing_budget", "billing_statement",
    "billing_statementline", "billing_statemententry",
]  # fmt: skip
FACTS = ["billing_ledgerentry", "billing_ledgerline", "billing_pricecomponent", "billing_creditmovement"]
KEPT = [*FACTS, "billing_priceversion", "billing_usageattempt"]


def execute(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def booked(roomy: UUID, hold: MakeHold) -> UUID:
    """One settled call of a team with prepaid credit."""
    item = hold()
    assert item.payer.team_id
    credit_grant(team_id=item.payer.team_id, amount=Decimal(1), source="", granted_by="tests")
    reservation_hold(hold=item)
    reservation_settle(reservation_id=item.reservation_id, attempts=[used(raw_usage={"prompt_tokens": 1000})])
    return item.reservation_id


@pytest.mark.parametrize("table", FACTS)
def test_no_update(table: str, booked: UUID) -> None:
    with pytest.raises(DatabaseError, match="never changed or removed"):
        execute(f"UPDATE {table} SET id = id")


@pytest.mark.parametrize("table", KEPT)
def test_no_delete(table: str, booked: UUID) -> None:
    with pytest.raises(DatabaseError, match="never changed or removed"):
        execute(f"DELETE FROM {table}")


@pytest.mark.parametrize("table", KEPT)
def test_no_truncate(table: str, booked: UUID) -> None:
    with pytest.raises(DatabaseError, match="never changed or removed"):
        execute(
            f"SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL tessera.truncate = 'refuse'; TRUNCATE {table} CASCADE"
        )


def test_an_attempt_may_only_forget_the_servers_block(booked: UUID) -> None:
    with pytest.raises(DatabaseError, match="only its raw usage may be forgotten"):
        execute("UPDATE billing_usageattempt SET output_tokens = 0")
    with pytest.raises(DatabaseError, match="only its raw usage may be forgotten"):
        execute("UPDATE billing_usageattempt SET raw_usage = '{}'")
    execute("UPDATE billing_usageattempt SET raw_usage = NULL")
    assert UsageAttempt.objects.get().output_tokens == 500


@pytest.mark.parametrize(
    "change",
    [
        "price_key = 'x'",
        "effective_to = '2020-01-01'",
        "effective_from = now()",
        "effective_to = NULL, currency = 'USD'",
    ],
)
def test_a_price_version_may_only_be_closed(change: str, priced: None) -> None:
    with pytest.raises(DatabaseError, match="never changed, only closed"):
        execute(f"UPDATE billing_priceversion SET {change}")


def test_a_closed_price_version_stays_closed(priced: None) -> None:
    execute("UPDATE billing_priceversion SET effective_to = clock_timestamp() + interval '1 day'")
    with pytest.raises(DatabaseError, match="never changed, only closed"):
        execute("UPDATE billing_priceversion SET effective_to = clock_timestamp() + interval '2 days'")


def test_price_versions_never_overlap(priced: None) -> None:
    present = PriceVersion.objects.get()
    values: dict[str, Any] = {
        name: getattr(present, name)
        for name in ("price_key", "side", "mode", "currency", "source", "approved_by")
    }
    with pytest.raises(IntegrityError, match="billing_price_no_overlap"), transaction.atomic():
        PriceVersion.objects.create(effective_from="2020-01-01T00:00:00Z", **values)
    PriceVersion.objects.create(
        effective_from="2020-01-01T00:00:00Z", effective_to=present.effective_from, **values
    )


@pytest.mark.parametrize("price", ["-0.000000001", "NaN", "1000000000"])
def test_the_database_refuses_impossible_prices(price: str, priced: None) -> None:
    version = PriceVersion.objects.get().id
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO billing_pricecomponent (version_id, component, min_prompt_tokens, per_units, price)"
            " VALUES (%s, 'extra', 0, 1000000, %s::numeric)",
            [version, price],
        )


@pytest.fixture
def as_app(transactional_db: None) -> Iterator[psycopg.Cursor[Any]]:
    """The application's own role, connected to this test's database; its statements commit one by one."""
    url = urlsplit(settings.DATABASE_URL)
    if url.username == connection.settings_dict["USER"]:
        pytest.skip("The application and the owner are one role here.")
    with psycopg.connect(
        host=url.hostname,
        port=url.port,
        user=url.username,
        password=unquote(url.password or ""),
        dbname=connection.settings_dict["NAME"],
        autocommit=True,
    ) as link:
        yield link.cursor()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_applications_role_may_not_change_a_fact(statement: str, as_app: psycopg.Cursor[Any]) -> None:
    for table in FACTS:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_app.execute(statement.format(table))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("table", UNDELETABLE)
def test_the_applications_role_may_not_delete(table: str, as_app: psycopg.Cursor[Any]) -> None:
    for statement in ("DELETE FROM {}", "TRUNCATE {} CASCADE", "DROP TABLE {}"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_app.execute(statement.format(table))


@pytest.mark.django_db(transaction=True)
def test_the_applications_role_can_do_its_work(
    as_app: psycopg.Cursor[Any], roomy: UUID, hold: MakeHold
) -> None:
    def call(function: str, payload: dict[str, Any]) -> dict[str, Any]:
        as_app.execute(f"SELECT {function}(%s::jsonb)", [json.dumps(payload, default=str)])
        return as_app.fetchone()[0]

    item, large = hold(), hold(input_tokens=2_000_000_000)
    for each, answer in ((item, "reservation_id"), (large, "refused")):
        assert answer in call("billing_reserve", hold_payload(each, currency="EUR", allow_unlimited=False))
    assert not Reservation.objects.filter(id=large.reservation_id).exists()
    payload = {"reservation_id": item.reservation_id, "attempts": [attempt_payload(used())]}
    assert call("billing_settle", payload)["state"] == "settled"
    as_app.execute("SELECT billing_sweep(10)")
    assert LedgerEntry.objects.get().price == Decimal("0.002")
