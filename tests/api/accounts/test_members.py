"""Who may give which role, invitations one by one and by CSV, and what their links open."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from app.accounts.inviting import invitation_link
from app.accounts.models import Invitation, Membership, Role, Team, User
from app.common.clock import now
from tests.factories import PASSWORD, team_make, user_make

pytestmark = pytest.mark.django_db
NEW = "a whole new passphrase"


@pytest.fixture
def boss() -> User:
    return user_make()


@pytest.fixture
def crew(boss: User) -> Team:
    return team_make(owner=boss, name="Crew")


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(team: Team, *parts: object) -> str:
    return "/".join([f"/accounts/teams/{team.id}/members", *map(str, parts), ""])


def send_csv(user: User, team: Team, text: str | bytes):
    content = text if isinstance(text, bytes) else text.encode()
    file = SimpleUploadedFile("people.csv", content)
    return signed_in(user).post(page_of(team, "import"), {"file": file}, follow=True)


def path_of(invitation: Invitation) -> str:
    return re.sub(r"^https?://[^/]+", "", invitation_link(invitation))


def invite(user: User, team: Team, email: str = "new@example.org", role: str = "member"):
    return signed_in(user).post(page_of(team), {"email": email, "name": "New", "role": role}, follow=True)


@pytest.mark.parametrize(
    ("role", "status"),
    [(Role.OWNER, 200), (Role.ADMIN, 200), (Role.MEMBER, 403), (Role.VIEWER, 403), (None, 404)],
)
def test_the_page_is_for_those_who_look_after_the_team(crew: Team, role: str | None, status: int) -> None:
    person = user_make(team=crew, role=role) if role else user_make()
    assert signed_in(person).get(page_of(crew)).status_code == status
    assert invite(person, crew).status_code == status
    assert Invitation.objects.count() == (1 if status == 200 else 0)


def test_nobody_comes_into_a_personal_team(boss: User) -> None:
    assert signed_in(boss).get(page_of(Team.objects.get(is_personal=True))).status_code == 404


@pytest.mark.parametrize("giver", [Role.OWNER, Role.ADMIN])
@pytest.mark.parametrize("before", list(Role))
@pytest.mark.parametrize("after", list(Role))
def test_admins_neither_give_nor_take_what_is_not_below_them(
    crew: Team, boss: User, giver: str, before: str, after: str
) -> None:
    by = boss if giver == Role.OWNER else user_make(team=crew, role=giver)
    person = user_make(team=crew, role=before)
    signed_in(by).post(page_of(crew, person.id), {"role": after})
    below = {Role.VIEWER, Role.MEMBER}
    allowed = giver == Role.OWNER or {before, after} <= below
    assert Membership.objects.get(team=crew, user=person).role == (after if allowed else before)
    signed_in(by).post(page_of(crew, person.id), {"remove": "yes"})
    gone = giver == Role.OWNER or (after if allowed else before) in below
    assert Membership.objects.filter(team=crew, user=person).exists() != gone
    answer = invite(by, crew, role=after)
    assert answer.status_code == (200 if giver == Role.OWNER or after in below else 400)


@pytest.mark.parametrize("change", [{"role": "member"}, {"remove": "yes"}])
def test_a_team_keeps_an_owner(crew: Team, boss: User, change: dict[str, str]) -> None:
    answer = signed_in(boss).post(page_of(crew, boss.id), change)
    assert (answer.status_code, "only owner" in answer.text) == (409, True)
    user_make(team=crew, role=Role.OWNER)
    assert signed_in(boss).post(page_of(crew, boss.id), change).status_code == 302


def test_whoever_left_reaches_and_pays_nothing_there(crew: Team, boss: User) -> None:
    person = user_make(team=crew)
    signed_in(boss).post(page_of(crew, person.id), {"remove": "yes"})
    person.refresh_from_db()
    assert person.default_team.is_personal
    assert [t["name"] for t in signed_in(person).get("/api/v1/me/").json()["teams"]] == [
        person.default_team.name
    ]


def test_without_mail_the_link_is_shown_and_opens_an_account_in_the_team(crew: Team, boss: User) -> None:
    shown = invite(boss, crew, "New@Example.org", "viewer")
    row = Invitation.objects.get()
    assert invitation_link(row) in shown.text
    assert mail.outbox == []
    guest = Client()
    page = guest.get(path_of(row))
    assert all(word in page.text for word in ("Crew invites you", "viewer", "new@example.org"))
    assert "too common" in guest.post(path_of(row), {"name": "N", "password": "password12"}).text
    assert guest.post(path_of(row), {"name": "New Person", "password": NEW})["Location"] == "/"
    person = User.objects.get(email="new@example.org")
    assert guest.get("/api/v1/me/").json()["id"] == str(person.id)
    assert (person.name, person.default_team) == ("New Person", crew)
    assert Membership.objects.get(team=crew, user=person).role == "viewer"
    again = Client().post("/accounts/login/", {"username": "new@example.org", "password": NEW})
    assert again["Location"] == "/"
    used = Client().get(path_of(row))
    assert (used.status_code, "used already" in used.text) == (409, True)


def test_with_mail_the_link_is_sent(crew: Team, boss: User, settings: Settings) -> None:
    settings.EMAIL_HOST = "localhost"
    invite(boss, crew)
    (message,) = mail.outbox
    assert message.to == ["new@example.org"]
    assert invitation_link(Invitation.objects.get()) in message.body


def test_somebody_with_an_account_signs_in_and_joins(crew: Team, boss: User) -> None:
    person = user_make()
    invite(boss, crew, person.email, "member")
    path = path_of(Invitation.objects.get())
    guest = Client()
    assert "Sign in to join" in guest.get(path).text
    assert guest.post(path, {"name": "Thief", "password": NEW}).status_code == 409
    back = guest.post("/accounts/login/", {"username": person.email, "password": PASSWORD, "next": path})
    assert back["Location"] == path
    assert "Join Crew" in guest.get(path).text
    guest.post(path)
    assert Membership.objects.get(team=crew, user=person).role == "member"


def test_an_invitation_is_for_its_address_only(crew: Team, boss: User) -> None:
    invite(boss, crew)
    other = signed_in(user_make())
    path = path_of(Invitation.objects.get())
    assert "The invitation is for new@example.org" in other.get(path).text
    assert other.post(path).status_code == 409
    assert Membership.objects.filter(team=crew).count() == 1


@pytest.mark.parametrize(
    ("end", "status", "word"),
    [
        (lambda row: Invitation.objects.update(expires_at=now() - timedelta(seconds=1)), 409, "ended on"),
        (lambda row: row.delete(), 404, "withdrawn"),
    ],
)
def test_an_invitation_that_ended_opens_nothing(crew: Team, boss: User, end, status: int, word: str) -> None:
    invite(boss, crew)
    row = Invitation.objects.get()
    path = path_of(row)
    end(row)
    for answer in (Client().get(path), Client().post(path, {"name": "N", "password": NEW})):
        assert (answer.status_code, word in answer.text) == (status, True)
    assert not User.objects.filter(email="new@example.org").exists()


def test_a_link_that_was_changed_opens_nothing(crew: Team, boss: User) -> None:
    invite(boss, crew)
    path = path_of(Invitation.objects.get())
    answer = Client().get(path[:-4] + "AAA/")
    assert (answer.status_code, "not whole" in answer.text) == (404, True)


def test_an_invitation_is_withdrawn_and_renewed(crew: Team, boss: User) -> None:
    invite(boss, crew)
    row = Invitation.objects.get()
    Invitation.objects.update(expires_at=now() - timedelta(days=1))
    invite(boss, crew, role="viewer")
    renewed = Invitation.objects.get()
    assert (renewed.id, renewed.role, renewed.expires_at > now()) == (row.id, "viewer", True)
    signed_in(boss).post(f"/accounts/teams/{crew.id}/invitations/{row.id}/end/")
    assert not Invitation.objects.exists()


def test_a_csv_invites_everybody_in_it(crew: Team, boss: User) -> None:
    other = team_make(owner=boss, name="Night shift")
    text = (
        '\ufeffEmail;Name;Team;Role\r\nA@x.example;Ada;;\r\n\r\nb@x.example;"Bob; Jr.";night shift;Viewer\r\n'
    )
    assert "Invited: 2" in send_csv(boss, crew, text).text
    rows = Invitation.objects.order_by("email")
    assert [(r.email, r.name, r.team, r.role) for r in rows] == [
        ("a@x.example", "Ada", crew, "member"),
        ("b@x.example", "Bob; Jr.", other, "viewer"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("email,role\na@x.example,member\nnonsense,member\nb@x.example,king\n", ["Row 3", "Row 4", "king"]),
        ("email,role\na@x.example,owner\n", ["Row 2", "Only an owner"]),
        ("email,team\na@x.example,Elsewhere\n", ["Row 2", "no team named"]),
        ("email\na@x.example\nA@x.example\n", ["a@x.example is there twice"]),
        ("name,role\nAda,member\n", ["first row"]),
        ("email,colour\na@x.example,red\n", ["colour"]),
        ("email\n", ["no rows"]),
        ("", ["empty"]),
        (b"email\n\xff\xfe\n", ["UTF-8"]),
        ("email\n" + "".join(f"p{n}@x.example\n" for n in range(2001)), ["2000"]),
        ("email,name\n" + "x" * 500_001, ["500 kB"]),
    ],
)
def test_a_wrong_csv_invites_nobody_and_names_the_rows(
    crew: Team, text: str | bytes, words: list[str]
) -> None:
    answer = send_csv(user_make(team=crew, role=Role.ADMIN), crew, text)
    assert answer.status_code == 400
    assert all(word in answer.text for word in words), re.findall(r'field-error">(.*?)<', answer.text)
    assert not Invitation.objects.exists()
