"""Every page that somebody can open: nothing shuts people out, comes from elsewhere, or is refused by the policy."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import PHONE, WIDE, Opener, authenticator, on_localhost
from tests.e2e.inspector import Inspector
from tests.e2e.live import Live, until
from tests.stack import command

pytestmark = [pytest.mark.e2e, pytest.mark.live]
PASSWORD = "correct horse battery"
SETUP = f"""
import json
from datetime import timedelta
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from app.accounts.models import Role
from app.accounts.selectors import ALL_SCOPES
from app.accounts.services import key_create, membership_set, team_create, user_create
from app.billing.models import Statement
from app.common.clock import now
from app.common.models import uuid7

owner = user_create(email=f"owner-{{uuid7()}}@example.org", password="{PASSWORD}", name="Olga Owner")
member = user_create(email=f"member-{{uuid7()}}@example.org", password="{PASSWORD}", name="Max Member")
team = team_create(name="Access", owner=owner)
membership_set(team=team, user=member, role=Role.MEMBER)
german = user_create(email=f"german-{{uuid7()}}@example.org", password="{PASSWORD}", name="Greta")
german.language = "de"
membership_set(team=team, user=german, role=Role.ADMIN)
keyholder = user_create(email=f"keyholder-{{uuid7()}}@example.org", password="{PASSWORD}", name="Kai Keyholder")
for user in (owner, member, german):
    user.default_team = team
    user.save()
careful = user_create(email=f"careful-{{uuid7()}}@example.org", password="{PASSWORD}", name="Carla Careful")
TOTP.activate(careful, generate_totp_secret())
codes = RecoveryCodes.activate(careful).get_unused_codes()
first = now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
statement = Statement.objects.create(
    team_id=team.id, team_name=team.name, month=first.date(), zone="UTC", starts_at=first, currency="EUR", places=2,
    ends_at=(first + timedelta(days=32)).replace(day=1),
).pk
_, key = key_create(name="access", team_id=team.id, user_id=owner.id, scopes=list(ALL_SCOPES))
print(json.dumps(dict(owner=owner.email, member=member.email, team=str(team.id), key=key,
    careful=careful.email, codes=codes, statement=str(statement), german=german.email, keyholder=keyholder.email)))
"""
MAIN = ("/", "/c/{conversation}/", "/documents/", "/documents/{document}/", "/dashboard/")
ANYBODY = (
    "/accounts/login/", "/accounts/password/reset/", "/accounts/password/reset/done/", "/accounts/signup/",
    "/accounts/break-glass/", "/api/v1/docs/", "/nowhere/",
)  # fmt: skip
CAREFUL = (
    "/accounts/", "/accounts/2fa/recovery-codes/", "/accounts/2fa/recovery-codes/generate/",
    "/accounts/2fa/totp/deactivate/", "/accounts/2fa/webauthn/add/", "/accounts/2fa/reauthenticate/",
    "/accounts/reauthenticate/",
)  # fmt: skip
"""Of somebody with an app and recovery codes; the step between password and page is looked at besides."""
MEMBER = (
    "/", "/documents/", "/documents/?collection={collection}",
    "/assistants/", "/keys/", "/shares/", "/s/{share}/", "/usage/", "/accounts/", "/accounts/email/",
    "/accounts/password/change/", "/accounts/2fa/totp/activate/", "/accounts/2fa/webauthn/add/",
    "/dashboard/limits/", "/api/v1/docs/", "/accounts/teams/{team}/leave/",
)  # fmt: skip
OWNER = (
    "/c/{conversation}/", "/documents/?collection={collection}", "/documents/{document}/", "/keys/", "/accounts/",
    "/accounts/teams/{team}/members/", "/accounts/teams/{team}/leave/",
    "/dashboard/statements/{statement}/", "/dashboard/", "/dashboard/limits/", "/dashboard/statements/",
    "/dashboard/entries/", "/dashboard/dearest/",
)  # fmt: skip
GERMAN = (
    "/", "/c/{conversation}/", "/documents/?collection={collection}", "/documents/{document}/", "/assistants/",
    "/keys/", "/shares/", "/s/{share}/", "/usage/", "/accounts/", "/accounts/email/", "/accounts/password/change/",
    "/accounts/2fa/totp/activate/", "/accounts/2fa/webauthn/add/", "/accounts/teams/{team}/members/",
    "/accounts/teams/{team}/leave/",
)  # fmt: skip
"""Of a team's admin who reads German."""
ADMIN = (
    "/", "/documents/", "/documents/{handbook}/", "/accounts/", "/usage/", "/dashboard/", "/dashboard/?group_by=person",
    "/dashboard/setup/", "/dashboard/speed/", "/dashboard/speed/turns/{turn}/",
    "/dashboard/servers/", "/dashboard/entries/", "/dashboard/dearest/", "/dashboard/own-servers/",
    "/dashboard/accuracy/", "/dashboard/budgets/", "/dashboard/limits/",
    "/dashboard/statements/", "/dashboard/data-flow/", "/admin/",
)  # fmt: skip


ROUTES = {
    "anybody": ANYBODY, "careful": CAREFUL, "member": MEMBER, "owner": OWNER, "german": GERMAN, "admin": ADMIN,
}  # fmt: skip


@dataclass
class Place:
    """Who there is, and what they have."""

    ids: dict[str, str]
    emails: dict[str, str] = field(default_factory=dict)
    codes: list[str] = field(default_factory=list)
    """Recovery codes; each is good for one sign-in."""

    def paths(self, routes: tuple[str, ...]) -> list[str]:
        return [route.format(**self.ids) for route in routes]


@pytest.fixture(scope="module")
def place(live: Live) -> Place:
    done = command("shell", "-v", "0", "-c", SETUP, env={"TESSERA_DATA": str(live.data)})
    assert done.returncode == 0, done.stdout
    told = json.loads(done.stdout.strip().splitlines()[-1])
    headers = {"Authorization": f"Bearer {told['key']}"}

    def post(path: str, body: Any = None, **wishes: Any) -> Any:
        answer = live.http.post(f"/api/v1/{path}", headers=headers, json=body, **wishes)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def items(path: str) -> list[dict[str, Any]]:
        answer = live.http.get(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["items"]
        return found

    handbook = next(item["id"] for item in items("collections/") if item["name"] == "Tessera handbook")
    page = items(f"collections/{handbook}/documents/")[0]["id"]
    collection = post("collections/", {"name": "Notes"})["id"]
    file = {"file": ("note.txt", b"The lamp burned 77 litres of colza oil in 1777.")}
    document = post(f"collections/{collection}/documents/", files=file)["id"]
    path = f"/api/v1/documents/{document}/"
    until(
        lambda: live.http.get(path, headers=headers).json()["status"] == "ready" or None, "the note is read"
    )
    conversation = post("conversations/", {"title": "What it says", "collections": [collection]})["id"]
    asked = {"text": "Which oil did the lamp burn?", "stream": False, "max_output_tokens": 40}
    turn = post(f"conversations/{conversation}/turns/", asked)["id"]
    share = post(f"conversations/{conversation}/shares/", {})["id"]
    ids = {
        "team": told["team"], "handbook": page, "conversation": conversation, "turn": turn, "share": share,
        "collection": collection, "document": document,
        "statement": told["statement"],
    }  # fmt: skip
    names = ("owner", "member", "careful", "german", "keyholder")
    return Place(ids, {name: told[name] for name in names}, told["codes"])


def test_the_main_pages_shut_nobody_out(seat: Opener, place: Place, live: Live) -> None:
    inspector = Inspector(seat())
    inspector.enter(place.emails["owner"], PASSWORD)
    for path in place.paths(MAIN):
        inspector.look(path)
    assert inspector.verdict() == ""


@pytest.mark.prove
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("who", list(ROUTES))
def test_no_page_shuts_anybody_out(
    seat: Opener, place: Place, live: Live, who: str, size: tuple[int, int]
) -> None:
    inspector = Inspector(seat(size=size, expected=("status of 404",)))
    if who == "admin":
        inspector.enter(live.run["admin_email"], live.run["admin_password"])
    elif who != "anybody":
        inspector.enter(place.emails[who], PASSWORD, place.codes.pop() if who == "careful" else "")
    for path in place.paths(ROUTES[who]):
        inspector.look(path)
        if who == "german":
            inspector.english(path)
    if who == "admin":
        key = json.loads((live.data / "env.json").read_text())["INFERENCE_API_KEY"]
        inspector.look_at_a_server(live.run["inference_url"], key)
    if who in {"owner", "german"}:
        inspector.look_at_a_collection(
            *place.paths(("/documents/?collection={collection}",)), english=who == "owner"
        )
    assert inspector.verdict() == ""


@pytest.mark.prove
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_no_page_of_a_passkey_shuts_anybody_out(
    seat: Opener, place: Place, live: Live, size: tuple[int, int]
) -> None:
    person = seat(size=size)
    page = person.page
    inspector = Inspector(person)
    authenticator(person)
    inspector.enter(place.emails["keyholder"], PASSWORD, at=on_localhost(live, "/accounts/login/"))
    page.goto(on_localhost(live, "/accounts/2fa/webauthn/add/"))
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Go on").click()
    page.get_by_label("What to call it").fill("Key of the house")
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("list", name="Unused codes")).to_be_visible()
    inspector.look(on_localhost(live, "/accounts/"))
    row = page.get_by_role("listitem").filter(has_text="Key of the house").first
    links = [row.get_by_role("link", name=name).get_attribute("href") for name in ("Rename", "Remove")]
    for path in (*links, "/accounts/2fa/webauthn/reauthenticate/"):
        inspector.look(on_localhost(live, str(path)))
    page.goto(on_localhost(live, str(links[1])))
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", name="Key of the house")).to_have_count(0)
    assert inspector.verdict() == ""
