"""`ledger_verify` finds every kind of difference, and what reached a server without us."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from app.accounts.models import Team, User
from app.billing.credit import credit_grant
from app.billing.models import Delivery, LedgerEntry, Reservation
from app.billing.outbox import webhook_add
from app.billing.reconciling import servers_reconcile
from app.billing.services import budget_set, reservation_hold, reservation_settle, reservations_sweep
from app.billing.statements import statements_draft, statements_issue_due
from app.billing.types import Payer
from app.billing.verification import ledger_verify
from app.catalog.models import Backend, Deployment, LoadSample
from app.chat.models import Conversation, Turn
from app.common.clock import now
from retrieval.models import Collection, Document
from tests.factories import (
    collection_make,
    conversation_make,
    document_ready_make,
    key_make,
    passage_make,
    team_make,
    turn_make,
    user_make,
)
from tests.integration.billing.conftest import PRICE, MakeHold, used
from tests.integration.billing.statements import at, book

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("roomy")]


def tampered(statement: str, *parameters: object) -> set[str]:
    """Which checks notice when somebody with the owner's rights does this, triggers off."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in (
            "ledgerentry",
            "ledgerline",
            "usageattempt",
            "statement",
            "statementline",
            "statemententry",
            "priceversion",
        ):
            cursor.execute(f"ALTER TABLE billing_{table} DISABLE TRIGGER USER")
        cursor.execute(statement, parameters)
        found = {item.check for item in ledger_verify().differences}
        transaction.set_rollback(True)
    return found


TAMPERING = [
    ("UPDATE billing_ledgerline SET amount = amount + 0.000000000000001", "line = quantity × unit price"),
    ("UPDATE billing_ledgerline SET quantity = quantity + 1", "line = quantity × unit price"),
    (
        "UPDATE billing_ledgerline SET unit_price = unit_price * 2, amount = amount * 2",
        "line = the price of its pinned version",
    ),
    ("UPDATE billing_ledgerentry SET price = price + 0.000000000000001", "entry = sum of its lines"),
    ("DELETE FROM billing_ledgerline WHERE component = 'output'", "entry = sum of its lines"),
    ("DELETE FROM billing_ledgerentry", "each call that used something is booked, and once"),
    ("DELETE FROM billing_ledgerentry", "nothing points at a missing row"),
    ("UPDATE billing_reservation SET state = 'held', expires_at = now() - interval '1 hour'", "holds end in time"),
    ("UPDATE billing_statement SET total = total + 0.01", "issued statement = sum of its entries and of its lines"),
    (
        "UPDATE billing_statementline SET amount = amount + 0.01",
        "issued statement = sum of its entries and of its lines",
    ),
    ("DELETE FROM billing_statemententry", "issued statement = sum of its entries and of its lines"),
    ("UPDATE billing_statement SET number = 2", "statements are numbered without gaps"),
    ("UPDATE billing_ledgerentry SET team_id = gen_random_uuid()", "entry = who its hold says pays, and when"),
    ("UPDATE billing_ledgerentry SET account_id = NULL", "entry = who its hold says pays, and when"),
    ("UPDATE billing_ledgerentry SET currency = 'USD'", "entry = who its hold says pays, and when"),
    (
        "UPDATE billing_ledgerentry SET effective_at = effective_at - interval '40 days'",
        "entry = who its hold says pays, and when",
    ),
    ("UPDATE billing_ledgerentry SET input_tokens = input_tokens + 1", "charge = what its attempt used"),
    ("UPDATE billing_usageattempt SET quantities = '{\"input\": 5}'", "charge = what its attempt used"),
    (
        "UPDATE billing_ledgerline SET component = 'cache_read' WHERE component = 'input'",
        "charge = what its attempt used",
    ),
    ("UPDATE billing_ledgerline SET unit_price = NULL, amount = NULL", "an amount is missing only where the price is"),
    ("UPDATE billing_ledgerentry SET price_missing = true", "an amount is missing only where the price is"),
    (
        "UPDATE billing_budgetwindow SET limit_snapshot = limit_snapshot + 1",
        "limit of a window = its budget's and what was added",
    ),
    ("UPDATE billing_reservationline SET spent = 0 WHERE unit = 'requests'", "a turn that was admitted counts once"),
    ("UPDATE billing_priceversion SET dearest = '[]'", "what a hold assumes = the dearest of its price"),
    ("UPDATE billing_delivery SET entry_id = gen_random_uuid()", "nobody is told of an entry that is not there"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "check"), TAMPERING)
def test_what_was_tampered_with_is_found(hold: MakeHold, statement: str, check: str) -> None:
    budget_set(scope="installation", unit="requests", limit=100, period="month")
    book(hold, at(1), given=4_000_000, generated=1000)
    statements_draft(at=at(3))
    statements_issue_due(at=at(3))
    webhook_add(name="books", url="https://hooks.example/", from_start=True)
    assert ledger_verify().differences == ()
    assert check in tampered(statement)


def test_a_call_booked_twice_is_found(hold: MakeHold) -> None:
    book(hold, at(1))
    columns = [f.column for f in LedgerEntry._meta.fields if f.column not in {"id", "dedupe_key"}]
    names = ", ".join(columns)
    found = tampered(
        f"INSERT INTO billing_ledgerentry (id, dedupe_key, {names})"
        f" SELECT gen_random_uuid(), 'again', {names} FROM billing_ledgerentry"
    )
    assert "each call that used something is booked, and once" in found


def test_the_ledger_outlives_chats_documents_and_people(hold: MakeHold, originals_dir: Path) -> None:
    """Everything else goes; its sums stay, and nothing in it names anybody."""
    user = user_make(email="gone@example.org")
    team = team_make(owner=user, name="Gone Team")
    Team.objects.filter(id=team.id).update(cost_centre="4711")
    key = key_make(user=user, team=team)
    collection = collection_make(team=team, user=user)
    document_ready_make(collection=collection)
    turn = turn_make(conversation=conversation_make(user=user, team=team))
    passage_make(turn=turn, collection=collection)
    credit_grant(team_id=team.id, amount=PRICE[0].price * 100, source="invoice", granted_by="tests")
    payer = Payer(team_id=team.id, account_id=user.account_id, key_id=key.row.id)
    for when in (at(1), at(1, 20), at(2)):
        book(hold, when, payer=payer, turn_id=turn.id)
    before = list(LedgerEntry.objects.order_by("id").values())
    result = ledger_verify()

    for model in (Turn, Conversation, Document, Collection):
        model.objects.all().delete()
    User.objects.filter(id=user.id).update(default_team=None)
    Team.objects.filter(id=team.id).delete()
    Team.objects.filter(memberships__user=user).delete()
    User.objects.filter(id=user.id).delete()
    assert not User.objects.exists() and not Team.objects.exists() and not Document.objects.exists()

    after = list(LedgerEntry.objects.order_by("id").values())
    assert after == before
    again = ledger_verify()
    assert (again.price, again.differences) == (result.price, ())
    text = json.dumps(after, default=str)
    for name in ("gone@example.org", "Gone Team", str(user.id), "Person"):
        assert name not in text
    statements_draft(at=at(3))
    assert len(statements_issue_due(at=at(3))) == 3
    assert ledger_verify().differences == ()


# ------------------------------------------------------------------------------------------------ the servers' counters


@pytest.fixture
def deployment() -> Deployment:
    backend = Backend.objects.create(name="gpu", kind="vllm", base_url="http://10.0.0.5:8000/v1")
    return Deployment.objects.create(backend=backend, public_name="m", upstream_model="m", price_key="m")


class Server:
    """Its samples, ten seconds apart, from half an hour ago on."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.start = now() - timedelta(minutes=30)
        self.count = 0

    def says(self, *counts: tuple[int, int] | None) -> None:
        for pair in counts:
            figures = {} if pair is None else {"input_tokens_total": pair[0], "output_tokens_total": pair[1]}
            LoadSample.objects.create(
                backend=self.deployment.backend,
                figures=figures,
                taken_at=self.start + timedelta(seconds=10 * self.count),
            )
            self.count += 1

    def called(self, hold: MakeHold, second: float, given: int, generated: int, **changes: Any) -> UUID:
        """A call of ours that ended at this second and took two."""
        item = hold(deployment_id=self.deployment.id)
        reservation_hold(hold=item)
        settled = reservation_settle(
            reservation_id=item.reservation_id, attempts=[used(given, generated, total_ms=2000, **changes)]
        )
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE billing_usageattempt DISABLE TRIGGER USER")
            cursor.execute(
                "UPDATE billing_usageattempt SET created_at = %s WHERE reservation_id = %s",
                [self.start + timedelta(seconds=second), item.reservation_id],
            )
            cursor.execute("ALTER TABLE billing_usageattempt ENABLE TRIGGER USER")
        return settled.reservation_id

    def verdict(self) -> Any:
        (found,) = servers_reconcile(since=self.start - timedelta(hours=1), until=now())
        return found


def test_counters_that_agree(hold: MakeHold, deployment: Deployment) -> None:
    server = Server(deployment)
    server.says((100, 50), (1100, 550), None, (1100, 550), (3100, 650))
    server.called(hold, 8, 1000, 500)
    server.called(hold, 35, 2000, 100)
    found = server.verdict()
    assert (found.verdict, found.theirs, found.ours) == ("agrees", found.ours, found.theirs)
    assert "they agree" in found.sentence() and found.moments == ()


def test_a_restart_of_the_server_is_no_difference(hold: MakeHold, deployment: Deployment) -> None:
    server = Server(deployment)
    server.says((9000, 5000), (10000, 5500), (0, 0), (2000, 100))
    server.called(hold, 8, 1000, 500)
    server.called(hold, 25, 2000, 100)
    assert server.verdict().verdict == "agrees"


def test_calls_that_bypassed_us_are_named_by_their_time(hold: MakeHold, deployment: Deployment) -> None:
    server = Server(deployment)
    server.says((0, 0), (1000, 500), (1000, 500), (1077, 533), (1077, 533))
    server.called(hold, 8, 1000, 500)
    found = server.verdict()
    assert found.verdict == "bypassed" and "without passing here" in found.sentence()
    (moment,) = found.moments
    assert (moment.tokens.input, moment.tokens.output) == (77, 33)
    assert moment.from_ == server.start + timedelta(seconds=20)


def test_traffic_beside_a_call_of_ours_is_known_by_its_sum(hold: MakeHold, deployment: Deployment) -> None:
    server = Server(deployment)
    server.says((0, 0), (0, 0), (1900, 900), (1900, 900))
    server.called(hold, 15, 1000, 500)
    found = server.verdict()
    assert (found.verdict, found.moments) == ("bypassed", ())


def test_rows_without_work_are_said_to_be_lost(hold: MakeHold, deployment: Deployment) -> None:
    server = Server(deployment)
    server.says((0, 0), (0, 0), (10, 5), (10, 5))
    server.called(hold, 15, 1000, 500)
    found = server.verdict()
    assert found.verdict == "lost" and "does not know of" in found.sentence()


@pytest.mark.parametrize("case", ["estimated", "stopped", "edge", "running"])
def test_what_cannot_be_known_yet_is_allowed_for(hold: MakeHold, deployment: Deployment, case: str) -> None:
    server = Server(deployment)
    server.says((0, 0), (0, 0), (1000, 480))
    if case == "running":
        reservation_hold(hold=hold(deployment_id=deployment.id))
        server.start = now() - timedelta(seconds=30)
        LoadSample.objects.all().delete()
        server.count = 0
        server.says((0, 0), (0, 0), (0, 0))
        LoadSample.objects.create(
            backend=deployment.backend,
            taken_at=now(),
            figures={"input_tokens_total": 900, "output_tokens_total": 3},
        )
    else:
        outcome = "stopped" if case == "stopped" else "completed"
        second = 19 if case == "edge" else 15
        server.called(hold, second, 1000, 500, estimated=case == "estimated", outcome=outcome)
    assert server.verdict().verdict == "agrees"


@pytest.mark.parametrize("theirs", [(0, 0), (900, 480)], ids=["never sent", "sent"])
def test_a_call_whose_process_died_is_no_traffic_of_others(
    hold: MakeHold, deployment: Deployment, theirs: tuple[int, int]
) -> None:
    """The sweeper writes it down a minute later, by what was held."""
    server = Server(deployment)
    server.says((0, 0), (0, 0), theirs, theirs, theirs, theirs, theirs, theirs, theirs, theirs)
    item = hold(deployment_id=deployment.id)
    reservation_hold(hold=item)
    Reservation.objects.filter(id=item.reservation_id).update(
        created_at=server.start + timedelta(seconds=12), expires_at=server.start + timedelta(seconds=72)
    )
    assert reservations_sweep() == [item.reservation_id]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE billing_usageattempt DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE billing_usageattempt SET created_at = %s", [server.start + timedelta(seconds=75)]
        )
        cursor.execute("ALTER TABLE billing_usageattempt ENABLE TRIGGER USER")
    found = server.verdict()
    assert (found.verdict, found.moments) == ("agrees", ())


def test_calls_of_ours_may_overlap(hold: MakeHold, deployment: Deployment) -> None:
    server = Server(deployment)
    server.says((0, 0), (0, 0), (2000, 1000), (2000, 1000))
    for second in (14, 15, 16):
        server.called(hold, second, 1000 if second != 15 else 0, 500 if second != 15 else 0)
    assert server.verdict().verdict == "agrees"


@pytest.mark.django_db(transaction=True)
def test_all_checks_look_at_one_moment(hold: MakeHold) -> None:
    """Outside a transaction it takes a snapshot of its own."""
    book(hold, at(1))
    assert ledger_verify().differences == ()


def test_rows_at_one_address_are_one_server(hold: MakeHold, deployment: Deployment) -> None:
    """A server that was entered twice counts the calls of both; each row's samples tell its whole work."""
    row = Backend.objects.create(name="gpu again", kind="vllm", base_url="http://10.0.0.5:8000")
    again = Deployment.objects.create(backend=row, public_name="n", upstream_model="m", price_key="m")
    server, other = Server(deployment), Server(again)
    other.start = server.start
    # Both are read side by side, so that the second may know of a token more.
    server.says((0, 0), (1000, 499), (3000, 600), (3000, 600))
    other.says((0, 0), (1000, 500), (3000, 600), (3000, 600))
    server.called(hold, 8, 1000, 500)
    other.called(hold, 18, 2000, 100)
    found = server.verdict()
    assert (found.verdict, found.theirs, found.ours) == ("agrees", found.ours, found.theirs)
    assert (found.backend, found.theirs.input, found.theirs.output) == ("gpu, gpu again", 3000, 600)


def test_a_server_that_shows_nothing_is_left_out(deployment: Deployment) -> None:
    Server(deployment).says(None, (1, 1))
    assert servers_reconcile(since=now() - timedelta(hours=1), until=now()) == []


def test_the_command_tells_people_and_programs(hold: MakeHold, deployment: Deployment) -> None:
    def told(*arguments: str) -> tuple[int, str]:
        out = StringIO()
        try:
            call_command("ledger_verify", *arguments, stdout=out)
        except SystemExit as exc:
            return int(str(exc.code)), out.getvalue()
        return 0, out.getvalue()

    book(hold, at(1))
    assert told() == (0, "1 entries, 0.002000000000000 EUR: every balance agrees to the digit.\n")
    server = Server(deployment)
    server.says((0, 0), (77, 33))
    webhook_add(name="books", url="https://hooks.example/", from_start=True)
    Delivery.objects.update(state="dead")
    code, text = told()
    assert code == 2
    assert "not ours: 77 input and 33 output tokens between" in text and "1 entries were not taken" in text
    assert "0 windows were set" in told("--rebuild")[1]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE billing_reservation SET price = 1")
    code, text = told()
    assert code == 1 and "1 differences." in text and "has 1.0" in text
    with connection.cursor() as cursor:
        cursor.execute("UPDATE billing_reservation SET price = 0.002")
    code, text = told("--json", "--rebuild")
    data = json.loads(text)
    assert (code, data["differences"], data["rebuilt_windows"]) == (2, [], 0)
    assert (
        data["servers"][0]["verdict"] == "bypassed"
        and data["servers"][0]["not_ours"][0]["output_tokens"] == 33
    )
    assert data["outbox"] == {"pending": 0, "dead": 1}


def test_without_a_database_there_is_one_sentence(repository: Path) -> None:
    env = os.environ | {
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "DJANGO_SETTINGS_MODULE": "app.settings.dev",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "ledger_verify"],
        cwd=repository,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "The database does not answer" in done.stderr and "Traceback" not in done.stderr
