"""A collection in the hands of who looks after it: found in, shared, set, and taken away with a receipt."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Opener, Person
from tests.e2e.live import Live, until
from tests.stack import command

pytestmark = [pytest.mark.e2e, pytest.mark.live]

COLLEAGUES = """
from app.accounts.models import User
from app.accounts.services import membership_set, team_create, user_create

admin = User.objects.get(email={email!r})
team = team_create(name="Reading room", owner=admin)
ada = user_create(email="ada@library.test", password="a long enough word", name="Ada")
membership_set(team=team, user=ada, role="member")
"""


def choose(person: Person, name: str, entry: str) -> None:
    """Open the menu of a document or collection and choose from it."""
    person.page.get_by_role("button", name=f"More for {name}").click()
    person.page.get_by_role("menuitem", name=entry).click()


def shelf(live: Live) -> str:
    """The id of a new collection with two documents that can be searched."""
    made = str(live.http.post("/api/v1/collections/", json={"name": "Lighthouse papers"}).json()["id"])
    for name, text in (
        ("keeper.txt", "The keeper lights the lamp at dusk."),
        ("fog.txt", "Fog signals sound twice a minute."),
    ):
        found = live.http.post(
            f"/api/v1/collections/{made}/documents/", files={"file": (name, text.encode())}
        ).json()
        address = f"/api/v1/documents/{found['id']}/"
        until(lambda at=address: live.http.get(at).json()["status"] == "ready" or None, f"{name} is read")
    return made


def look_around(person: Person) -> None:
    """By name, by state, and in the text."""
    page, rows = person.page, person.page.locator("ul.documents > li")
    expect(rows).to_have_count(2)
    page.get_by_role("searchbox").fill("KEEP")
    expect(rows).to_have_count(1)
    page.get_by_label("Which documents").select_option("failed or stopped")
    expect(page.get_by_text("No document here fits")).to_be_visible()
    page.get_by_label("Which documents").select_option("all documents")
    page.get_by_role("searchbox").fill("How often does it sound in bad weather?")
    page.get_by_role("button", name="Search the text").click()
    best = page.locator(".found-passage").first
    expect(best).to_contain_text("Fog signals sound twice a minute.")
    assert "#p=0-" in (best.get_by_role("link").get_attribute("href") or "")
    page.get_by_label("How old").select_option("added in the last 7 days")
    expect(best).to_contain_text("Fog signals")
    page.get_by_role("button", name="Close the passages").click()
    page.get_by_role("searchbox").fill("")
    expect(rows).to_have_count(2)


def share(person: Person) -> None:
    """With a team and a person; who is in no team of ours is not known; the last one to manage stays."""
    page = person.page
    page.get_by_role("button", name="Share", exact=True).click()
    panel = page.get_by_role("dialog")
    panel.get_by_label("Share with").select_option("Reading room")
    panel.get_by_role("button", name="Share", exact=True).click()
    expect(panel.get_by_label("What Reading room may do")).to_have_value("read")
    panel.get_by_label("Share with").select_option("A person of my teams…")
    panel.get_by_label("E-mail of the person").fill("nobody@library.test")
    panel.get_by_role("button", name="Share", exact=True).click()
    expect(panel.get_by_role("alert")).to_contain_text("Nobody in your teams has the address")
    panel.get_by_label("Share with").select_option("A person of my teams…")
    panel.get_by_label("E-mail of the person").fill("ada@library.test")
    panel.get_by_label("What they may do").select_option("write")
    panel.get_by_role("button", name="Share", exact=True).click()
    expect(panel.get_by_label("What Ada may do")).to_have_value("write")
    panel.get_by_role("button", name="Take access away from Reading room").click()
    expect(panel.get_by_label("What Reading room may do")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Share", exact=True)).to_be_focused()


def settle(person: Person) -> None:
    """Chunk sizes are tried before they count; one that cannot be is said where it stands."""
    page = person.page
    choose(person, "Lighthouse papers", "Settings…")
    panel = page.get_by_role("dialog")
    panel.get_by_label("Name of the collection").fill("Lighthouse library")
    panel.get_by_label("What is in it").fill("All about lamps")
    panel.get_by_label("Overlap").fill("150")
    panel.get_by_role("button", name="Show the passages").click()
    expect(panel.get_by_text("It would be cut into 1 passage.")).to_be_visible()
    expect(panel.locator(".cuts")).to_contain_text("Fog signals sound twice a minute.")
    panel.get_by_label("Size").fill("200")
    panel.get_by_role("button", name="Save").click()
    expect(panel.get_by_role("alert")).to_contain_text("at most half the size")
    panel.get_by_label("Overlap").fill("50")
    panel.get_by_role("button", name="Save").click()
    expect(panel).to_have_count(0)
    expect(page.get_by_role("heading", name="Lighthouse library")).to_be_visible()
    expect(page.locator(".collection-head")).to_contain_text("All about lamps")


def test_a_collection_is_found_in_shared_set_and_taken_away(seat: Opener, live: Live, tmp_path: Path) -> None:
    done = command(
        "shell", "-c", COLLEAGUES.format(email=live.run["admin_email"]), env={"TESSERA_DATA": str(live.data)}
    )
    assert done.returncode == 0, done.stdout
    made = shelf(live)
    person = seat(expected=("status of 404", "status of 422"))
    page = person.page
    person.open(f"/documents/?collection={made}")
    look_around(person)
    share(person)
    settle(person)
    again = tmp_path / "other name.txt"
    again.write_text("The keeper lights the lamp at dusk.")
    page.locator("#files").set_input_files(again)
    expect(page.get_by_text("This very file is here already")).to_be_visible()
    rows = page.locator("ul.documents > li")
    expect(rows).to_have_count(2)
    choose(person, "fog.txt", "Delete…")
    page.keyboard.press("Escape")
    choose(person, "fog.txt", "Delete…")
    rows.filter(has_text="fog.txt").get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#receipts")).to_contain_text("“fog.txt” is deleted.")
    number = live.sql("SELECT number FROM retrieval_receipt WHERE collection_id = %s", made)[0][0]
    expect(page.locator("#receipts")).to_contain_text(f"Receipt {number} · gone: 1 document, 1 page, 1 chunk")
    choose(person, "Lighthouse library", "Delete…")
    page.get_by_role("button", name="Erase everywhere").click()
    expect(page.locator("#receipts")).to_contain_text("“Lighthouse library” is erased everywhere.Receipt")
    assert live.http.get(f"/api/v1/collections/{made}/").status_code == 404
