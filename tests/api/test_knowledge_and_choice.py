"""Knowledge and choice: what staff read there is what the rows say; nobody else reads it, and no content is in it."""

import csv
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO

import pytest
from django.test import Client

from app.accounts.models import Team, User
from app.billing.late import provisioned_book
from app.billing.models import LedgerEntry, Reservation
from app.billing.rollups import rollups_fold
from app.billing.seeding import price_since
from app.billing.types import HOUR, Rate
from app.catalog.services import deployment_knee_set
from app.chat.models import Turn
from app.common.clock import now
from retrieval.models import Collection, Document
from tests.api.test_dashboard import model_make, spent
from tests.factories import (
    collection_make,
    conversation_make,
    document_make,
    document_ready_make,
    passage_make,
    turn_make,
    user_make,
)

pytestmark = pytest.mark.django_db
D = Decimal
PAGES = ("/dashboard/knowledge/", "/dashboard/choice/", "/dashboard/data-flow/")


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(user_make(is_staff=True))
    return client


def table(client: Client, page: str, name: str) -> list[dict[str, str]]:
    answer = client.get(f"/dashboard/{page}/?format=csv&table={name}")
    assert answer.status_code == 200
    assert answer["Content-Disposition"].startswith(f'attachment; filename="{page}-{name}-')
    return list(csv.DictReader(StringIO(answer.content.decode("utf-8-sig"))))


@pytest.mark.parametrize("path", PAGES)
def test_only_staff_may_look_and_all_of_them_is_in_the_navigation(client: Client, path: str) -> None:
    assert client.get(path).status_code == 302
    client.force_login(user_make())
    assert client.get(path).status_code == 403
    client.force_login(user_make(is_staff=True))
    page = client.get(path).text
    assert f'href="{path}" aria-current="page"' in page
    assert all(f'href="{other}"' in page for other in PAGES)


def test_an_empty_installation_says_so(staff: Client) -> None:
    Collection.objects.all().delete()
    page = staff.get("/dashboard/knowledge/").text
    for words in ("No document waits.", "None failed in this time.", "There is no collection yet."):
        assert words in page
    page = staff.get("/dashboard/choice/?table=none").text
    for words in ("No whole month with calls", "There is nothing to compare", "No cheaper model here"):
        assert words in page


@pytest.fixture
def asked(user: User, team: Team, originals_dir: object) -> Collection:
    """Four questions over a collection, one of them over another one too; each told apart by what came of it."""
    library = collection_make(team=team, user=user, name="Contracts")
    letters = collection_make(team=team, user=user, name="Letters")
    document_ready_make(collection=library, pages=("One.", "Two."))
    talk, model = conversation_make(user=user, team=team), model_make("large")

    def turn(collections: list[Collection], **fields: object) -> Turn:
        reservation = spent(user, team, model, input_tokens=100)
        Reservation.objects.filter(id=reservation).update(collections=[c.id for c in collections])
        return turn_make(conversation=talk, reservation_id=reservation, question="ecret?", **fields)

    passage_make(turn=turn([library], feedback={"rating": "good"}), collection=library)
    passage_make(turn=turn([library, letters]), collection=library, cited=False)
    turn(
        [library],
        notices=[{"code": "nothing_found", "message": "Nothing found."}],
        feedback={"rating": "bad", "reason": "wrong", "comment": "ecret"},
    )
    passage_make(turn=turn([library], started_at=now() - timedelta(days=31)), collection=library)
    turn([], feedback={"rating": "bad"})
    return library


def test_collections_tell_their_size_and_how_they_served(
    staff: Client, asked: Collection, user: User
) -> None:
    own = collection_make(team=Team.objects.get(id=asked.team_id), user=user, name="Attached")
    Collection.objects.filter(id=own.id).update(kind=Collection.Kind.CONVERSATION)
    document_make(collection=own, content=b"12345")
    rows = {row["Collection"]: row for row in table(staff, "knowledge", "collections")}
    row = rows["Contracts"]
    assert (row["Documents"], row["Failed"], row["Pages"]) == ("1", "0", "2")
    assert row["Size"] == str(Document.objects.get(collection=asked).size)
    assert [row[name] for name in ("Questions", "Nothing found", "Not cited", "Good", "Bad")] == [
        "3",
        "1",
        "1",
        "1",
        "1",
    ]
    assert (rows["Letters"]["Questions"], rows["Letters"]["Not cited"]) == ("1", "1")
    assert (rows["Attached to conversations"]["Documents"], rows["Attached to conversations"]["Size"]) == (
        "1",
        "5",
    )
    page = staff.get("/dashboard/knowledge/").text
    assert "<dd>3</dd>" in page
    assert "33 %" in page
    assert "ecret" not in page
    assert "ecret" not in staff.get("/dashboard/knowledge/?span=7d").text
    assert [(r["Why it was rated bad"], r["Answers"]) for r in table(staff, "knowledge", "feedback")] == [
        ("No reason given", "1"),
        ("It is wrong", "1"),
    ]


def test_what_waits_and_what_failed_is_told_without_a_files_name(
    staff: Client, user: User, team: Team, originals_dir: object
) -> None:
    library = collection_make(team=team, user=user)
    for number in range(3):
        row = document_make(collection=library, name=f"dismissal-{number}.pdf")
        if number:
            row.status, row.mime, row.error_step, row.error_code = (
                "failed",
                "application/pdf",
                "parsing",
                "unreadable",
            )
            row.error_message = f"{row.name} is damaged: page 3 cannot be read."
            row.save()
    (waits,) = table(staff, "knowledge", "queue")
    assert (waits["Step"], waits["Documents"]) == ("queued", "1")
    (failed,) = table(staff, "knowledge", "failures")
    assert (failed["Reason"], failed["While"], failed["Documents"]) == ("unreadable", "parsing", "2")
    assert failed["What it said last"] == "the file is damaged: page 3 cannot be read."
    assert "dismissal" not in staff.get("/dashboard/knowledge/").text


def test_growth_is_that_of_whole_months(staff: Client, user: User, team: Team) -> None:
    """Two calls in the month before the last, four in the last: twice as many, each as dear, none of this month."""
    model, today = model_make("large"), date.today()  # noqa: DTZ011 - days are counted back from noon
    last = today.replace(day=1) - timedelta(days=1)
    before = last.replace(day=1) - timedelta(days=1)
    for month, times in ((before, 2), (last, 4)):
        for _ in range(times):
            spent(user, team, model, input_tokens=100_000, days_ago=(today - month.replace(day=10)).days)
    spent(user, team, model, input_tokens=5)
    rollups_fold()
    (row,) = table(staff, "choice", "growth")
    sums = LedgerEntry.objects.filter(effective_at__month=last.month, effective_at__year=last.year)
    assert (row["Model"], row["Requests"]) == ("large", str(sums.count()))
    assert D(row["Cost of the month"]) == sum(e.price or D(0) for e in sums)
    text = staff.get("/dashboard/choice/").text
    assert "+100.0 %" in text
    assert "+0.0 %" in text


def test_an_own_server_breaks_even_where_its_hour_costs_what_the_tokens_would(
    staff: Client, user: User, team: Team
) -> None:
    own, managed = model_make("own"), model_make("managed")
    since = now() - timedelta(hours=50)
    price_since(
        price_key=f"provisioned/{own.id}",
        side="cost",
        since=since,
        rates=[Rate(component=HOUR, price=D("0.5"), per_units=1)],
    )
    price_since(
        price_key="managed",
        side="cost",
        since=since,
        rates=[Rate(component=part, price=D(2)) for part in ("input", "output")],
    )
    spent(user, team, own, input_tokens=1_000_000)
    spent(user, team, managed, input_tokens=10_000)
    provisioned_book()
    rollups_fold()
    deployment_knee_set(deployment_id=own.id, tokens_per_s=100.0)
    (row,) = table(staff, "choice", "own")
    hours = LedgerEntry.objects.filter(call_kind="provisioned").count()
    assert (D(row["An hour"]), row["Can do"]) == (D("0.5"), "100.00")
    # Half a euro buys 250,000 tokens at two a million; 100 a second are 360,000 in an hour.
    assert row["Breaks even at"] == f"{D(250) / D(360):.4f}"
    assert row["Used"] == f"{D(1_000_100) / (D(360_000) * hours):.4f}"
    assert row["Cheaper now"] == "by the token"
    assert "≥ " not in staff.get("/dashboard/choice/").text
    # A call of before its cost was known makes the other only seem cheap.
    spent(user, team, managed, input_tokens=10_000, days_ago=5)
    rollups_fold()
    shown = staff.get("/dashboard/choice/").text
    assert "≥ " in shown
    assert "≤ " in shown
    assert table(staff, "choice", "own")[0]["Cheaper now"] == "unknown"


def test_calls_that_a_cheaper_model_would_take_are_counted_by_their_length(
    staff: Client, user: User, team: Team
) -> None:
    large, small = model_make("large"), model_make("small")
    small.context_window, small.price_key = 4096, "tiny"
    small.save()
    cheap = [Rate(component=part, price=D("0.01")) for part in ("input", "output")]
    price_since(price_key="tiny", side="price", since=now() - timedelta(days=99), rates=cheap)
    for tokens in (1000, 2000, 90_000):
        spent(user, team, large, input_tokens=tokens)
    (row,) = table(staff, "choice", "smaller")
    assert (row["Calls"], row["Would fit"]) == ("3", "2")
    fitting = LedgerEntry.objects.filter(input_tokens__lt=4096 - 100)
    assert D(row["Billed for those"]) == sum(e.price or D(0) for e in fitting)
    assert D(row["There"]) == D("0.00001600") * 2
