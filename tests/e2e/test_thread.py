"""A conversation in depth: files, assistants, ratings, formulas, and all of it by keyboard alone."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import PHONE, Opener
from tests.e2e.live import Live

pytestmark = [pytest.mark.e2e, pytest.mark.live]
FACT = "The boiler in Leiden is serviced by Mevrouw Okonkwo every second Thursday of March.\n"


def test_a_file_goes_along_is_a_source_and_leaves_with_its_conversation(seat: Opener, tmp_path: Path) -> None:
    person = seat()
    page = person.page
    person.begin()
    note = tmp_path / "boiler.txt"
    note.write_text(FACT)
    page.locator("#attach-files").set_input_files(str(note))
    chip = page.locator("#attachments .file")
    expect(chip).to_contain_text("goes whole")
    page.reload()
    expect(chip).to_contain_text("boiler.txt")
    person.ask("Who services the boiler?")
    person.answered()
    expect(page.locator("#attachments")).to_be_hidden()
    expect(page.locator(".question .files")).to_contain_text("boiler.txt")
    expect(person.answer.locator(".foot-link")).to_contain_text("1 source")
    turn = person.turn()
    rows = person.live.sql("SELECT text, whole FROM chat_sentpassage WHERE turn_id = %s", turn["id"])
    assert rows == [(FACT, True)] or rows[0][0].strip() == FACT.strip()
    # The next question has it without naming it, a file that cannot be read says why and goes nowhere.
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.4 nothing")
    page.locator("#attach-files").set_input_files(str(broken))
    expect(page.locator("#attachments .file.failed")).to_contain_text("damaged")
    person.composer.fill("And when?")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    page.get_by_role("button", name="Remove broken.pdf").click()
    page.keyboard.press("Control+End")
    page.get_by_role("button", name="Send").click()
    person.answered()
    expect(page.locator(".question .files")).to_have_count(1)
    expect(person.answer.locator(".foot-link")).to_contain_text("1 source")
    conversation = page.url.rstrip("/").rpartition("/")[2]
    assert person.live.http.delete(f"/api/v1/conversations/{conversation}/").status_code == 204
    left = person.live.sql("SELECT count(*) FROM retrieval_document WHERE name = 'boiler.txt'")
    assert left[0][0] == 0


def test_a_file_that_is_put_away_again_leaves_no_conversation(
    seat: Opener, live: Live, tmp_path: Path
) -> None:
    person = seat()
    page = person.page
    person.begin()
    note = tmp_path / "abandoned lighthouse.txt"
    note.write_text("The lighthouse is dark.")
    page.locator("#attach-files").set_input_files(str(note))
    expect(page.locator("#attachments .file")).to_contain_text("goes whole")
    conversation = page.url.rstrip("/").rpartition("/")[2]
    # While the file is there the draft is, under its name; without it there is nothing to come back to.
    page.goto("/")
    rail = page.locator("#conversations")
    expect(rail.get_by_role("link", name="abandoned lighthouse.txt")).to_be_visible()
    page.get_by_role("link", name="New conversation").click()
    page.locator("#attach-files").set_input_files(str(note))
    expect(page.locator("#attachments .file")).to_contain_text("goes whole")
    second = page.url.rstrip("/").rpartition("/")[2]
    page.get_by_role("button", name="Remove abandoned lighthouse.txt").click()
    with page.expect_response(lambda r: r.request.method == "DELETE" and second in r.url) as answered:
        page.get_by_role("link", name="New conversation").click()
    assert answered.value.status == 204 and second != conversation
    expect(rail).not_to_contain_text("Untitled conversation")


def test_a_whole_chat_by_keyboard_alone(seat: Opener) -> None:
    person = seat()
    page = person.page
    person.begin()
    page.locator("h1").first.click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(person.composer).to_be_focused()
    page.keyboard.type("Say hello in one short sentence.")
    page.keyboard.press("Enter")
    person.answered()
    # The smallest of models sometimes talks until its limit.
    expect(page.locator("#announcer")).to_contain_text(re.compile("Answer (complete|cut at its limit)"))
    page.keyboard.press("ArrowUp")
    expect(page.locator("#composer-editing")).to_be_visible()
    expect(person.composer).to_have_value("Say hello in one short sentence.")
    page.keyboard.press("End")
    page.keyboard.type(" Be brief.")
    page.keyboard.press("Enter")
    person.answered()
    expect(page.locator(".versions").first).to_contain_text("2 / 2")
    page.keyboard.type("Write a very long story about the sea.")
    page.keyboard.press("Enter")
    person.writes(5)
    # What was stopped is drawn once more when its row is closed; a person is slower than that.
    with page.expect_response(lambda response: "/messages/" in response.url):
        page.keyboard.press("Escape")
        expect(page.locator("#announcer")).to_contain_text("Answer stopped")
        person.answered()
    # From the box back to the answer: rate it, give a reason, open the line of figures.
    page.keyboard.press("/")
    expect(person.composer).to_be_focused()
    for _ in range(120):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement?.getAttribute('aria-label')") == "Bad answer":
            break
    expect(page.get_by_role("button", name="Bad answer").last).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="What was wrong")).to_be_visible()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement?.textContent") == "Hard to follow":
            break
    with page.expect_response("**/feedback/"):
        page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Hard to follow")).to_have_attribute("aria-pressed", "true")
    kept = person.live.sql(
        "SELECT feedback FROM chat_turn WHERE feedback IS NOT NULL AND conversation_id = %s",
        page.url.rstrip("/").rpartition("/")[2],
    )
    assert [(row["rating"], row["reason"]) for (row,) in kept] == [("bad", "unclear")]


def test_an_assistant_is_made_on_a_phone_asked_and_remembered(seat: Opener, live: Live) -> None:
    person = seat(size=PHONE)
    page = person.page
    person.open("/assistants/")
    page.get_by_role("button", name="New assistant").click()
    page.get_by_label("Name", exact=True).fill("Harbour Guide")
    page.get_by_label("What it is for").fill("Questions about the harbour")
    page.get_by_label("Instructions").fill("Answer as a harbour master would.")
    page.get_by_role("button", name="Save").click()
    card = page.locator(".assistant", has_text="Harbour Guide")
    expect(card).to_contain_text("assistant/harbour-guide")
    assert person.overflow() == 0
    card.get_by_role("link", name="Ask it").click()
    expect(page.get_by_role("heading", name="Harbour Guide")).to_be_visible()
    person.ask("Hello?")
    person.answered()
    page.reload()
    chosen = page.locator("#model option:checked")
    expect(chosen).to_have_text("Harbour Guide")
    model = live.http.get("/v1/models/assistant/harbour-guide")
    assert model.status_code == 200
    found = live.http.get("/api/v1/assistants/").json()["items"]
    assert live.http.delete(f"/api/v1/assistants/{found[0]['id']}/").status_code == 204
