"""The main job as a person sees it: sign in, upload, ask, watch the answer, check its sources and its price."""

import os
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.browser import LONG, Opener, Person, pdf_of, squeezed
from tests.e2e.live import Live
from tests.stack import REPOSITORY

pytestmark = [pytest.mark.e2e, pytest.mark.live]

SHARED = Path(os.environ.get("TESSERA_SHARED", REPOSITORY.parent / "shared"))
DIARY = SHARED / "data" / "docs" / "open" / "Seige_of_Vicksburg_Sample_OCR.pdf"
DIARY_QUESTION = "What is a cannister shot made of?"
YEARS = range(1880, 1905)
NOTES = [
    [
        f"In {year} the boat house lent {year - 1850} rowing boats to its members and to their guests."
        for year in YEARS
    ],
    [f"In {year} the lamp of the lighthouse burned {year - 1700} litres of colza oil." for year in YEARS],
    [
        f"In {year} the bakery in the harbour baked {year - 1300} loaves of rye bread in its oven."
        for year in YEARS
    ],
]
NOTES_QUESTION = "Which oil did the lamp of the lighthouse burn?"


@pytest.fixture
def upload(live: Live) -> Iterator[list[str]]:
    """Ids of collections that a test makes; they are gone afterwards."""
    made: list[str] = []
    yield made
    for collection in made:
        live.http.delete(f"/api/v1/collections/{collection}/")


def booked(live: Live, turn_id: str) -> Decimal:
    """What the ledger has for a turn: the answer and the embedding of its question."""
    query = """
        SELECT sum(e.price) FROM billing_ledgerentry e
        JOIN billing_reservation r ON r.id = e.reservation_id WHERE r.turn_id = %s
    """
    found: Decimal = live.sql(query, turn_id)[0][0]
    return found


def collection_with(person: Person, name: str, file: Path) -> str:
    """Make a collection, put a file into it and wait until it can be searched; returns the collection's id."""
    page = person.page
    page.get_by_role("link", name="Documents").click()
    page.get_by_role("button", name="New collection").click()
    page.get_by_label("Name of the collection").fill(name)
    with page.expect_request(re.compile(r"/collections/[^/]+/events/")):
        page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_text("There is nothing in this collection yet.")).to_be_visible()
    page.locator("#files").set_input_files(file)
    row = page.locator("li.document", has_text=file.name)
    expect(row).to_have_attribute("data-status", "ready")
    expect(row.get_by_text("· added")).to_be_visible()
    return parse_qs(urlsplit(page.url).query)["collection"][0]


def check_source(person: Person, fact: str) -> None:
    """Open the best source from the answer, read its passage and its page, and find it marked in the document."""
    page = person.page
    person.answer.get_by_role("button", name="Source 1:").first.click()
    source = page.locator("#source-1")
    expect(source).to_be_focused()
    expect(source.locator(".passage")).to_contain_text(fact)
    expect(page.locator("#sources mark").first).to_be_visible()
    expect_drawn(source.locator(".page-picture"))
    link = source.get_by_role("link", name="Open page")
    number = link.inner_text().removeprefix("Open page ")
    expect(source).to_contain_text(re.compile(rf"Pages? {number}\b"))
    with person.context.expect_page() as opened:
        link.click()
    document = opened.value
    expect(document.locator("mark").first).to_be_in_viewport()
    expect(document.locator(f"#page-{number} mark")).to_be_visible()
    expect(document.locator(f"#page-{number} .page-marks rect").first).to_be_in_viewport()
    expect_drawn(document.locator(f"#page-{number} .page-picture"))
    # A passage may go on over a page's end, so there may be several marks.
    marked = "".join(document.locator("mark").all_inner_texts())
    assert squeezed(marked) == squeezed(source.locator(".passage").inner_text())
    document.close()


def expect_drawn(picture: Locator) -> None:
    """The page's picture has arrived, and lines of the passage are marked on it."""
    picture.scroll_into_view_if_needed()
    expect(picture.locator(".page-marks rect").first).to_be_visible()
    arrived = "(image) => image.decode().then(() => image.naturalWidth)"
    assert picture.locator("img").evaluate(arrived) == 1200


def check_price(person: Person) -> None:
    """The line under the answer has the ledger's money to the last digit."""
    shown = person.answer.locator(".quiet summary [title$=EUR]").get_attribute("title") or ""
    assert Decimal(shown.removesuffix(" EUR")) == booked(person.live, str(person.turn()["id"])) > 0


def ask_about(seat: Opener, upload: list[str], file: Path, question: str, fact: str) -> None:
    """The whole way of a document from the disk to a marked passage and a booked price."""
    person = seat()
    person.open("/documents/")
    collection = collection_with(person, f"Collection of {file.stem}", file)
    upload.append(collection)
    person.begin(collections=(collection,))
    person.ask(question)
    answer = person.answered()
    *growing, whole = person.lengths()
    assert any(0 < length < whole for length in growing)
    expect(answer.get_by_role("region", name="From the documents")).to_be_visible()
    check_price(person)
    check_source(person, fact)


def test_a_wrong_password_is_said_and_the_address_kept(seat: Opener) -> None:
    person = seat()
    person.page.goto("/documents/")
    person.sign_in("not the password")
    alert = person.page.get_by_role("alert")
    expect(alert).to_contain_text("This e-mail and password do not belong together")
    expect(person.page.get_by_label("E-mail")).to_have_value(person.live.run["admin_email"])
    expect(person.page.get_by_label("Password")).to_have_value("")
    person.sign_in()
    expect(person.page.get_by_role("heading", name="Documents", level=1)).to_be_visible()


@pytest.mark.skipif(not DIARY.exists(), reason="The shared documents are absent: set TESSERA_SHARED.")
def test_a_scanned_diary_is_uploaded_asked_about_and_opened_at_its_passage(
    seat: Opener, upload: list[str]
) -> None:
    ask_about(seat, upload, DIARY, DIARY_QUESTION, "Cannister shot is a tin cylinder")


def test_a_small_pdf_is_uploaded_asked_about_and_opened_at_its_passage(
    seat: Opener, upload: list[str], tmp_path: Path
) -> None:
    notes = tmp_path / "notes.pdf"
    notes.write_bytes(pdf_of(NOTES))
    ask_about(seat, upload, notes, NOTES_QUESTION, "litres of colza oil")


def test_a_reload_in_the_middle_shows_the_whole_text_once(seat: Opener) -> None:
    person = seat()
    person.begin()
    person.ask_at_length()
    person.page.reload()
    expect(person.text).not_to_have_text("")
    person.answered()
    turn = person.turn()
    assert turn["state"] in {"completed", "done"}
    assert person.text.text_content() == person.rendered(turn["answer"])
    assert person.page.locator(".answer").count() == 1


@pytest.mark.parametrize("by", ["button", "key"])
def test_stop_keeps_the_text(seat: Opener, by: str) -> None:
    person = seat()
    person.begin()
    person.ask_at_length()
    if by == "key":
        person.page.keyboard.press("Escape")
    else:
        person.page.get_by_role("button", name="Stop").click()
    answer = person.answered()
    expect(answer).to_contain_text("You stopped this answer. What was written is kept and was charged.")
    turn = person.turn()
    assert turn["state"] == "stopped"
    assert person.text.text_content() == person.rendered(turn["answer"]) != ""
    person.page.reload()
    expect(person.text).to_have_text(person.rendered(turn["answer"]))


def test_everything_is_within_reach_of_the_keyboard(seat: Opener) -> None:
    person = seat()
    person.begin()
    keys = person.page.keyboard
    person.page.locator("body").click(position={"x": 700, "y": 300})
    keys.press("/")
    expect(person.composer).to_be_focused()
    keys.press("Escape")
    person.page.evaluate("document.activeElement.blur()")
    for _ in range(120):
        keys.press("Tab")
        if person.composer.evaluate("(box) => box === document.activeElement"):
            break
    expect(person.composer).to_be_focused()
    keys.type(LONG)
    keys.press("Shift+Enter")
    keys.type("With many ships.")
    expect(person.page.locator("#meter-line .price")).to_be_visible()
    keys.press("Enter")
    expect(person.composer).to_have_value("")
    keys.press("Escape")
    expect(person.answered()).to_contain_text("stopped")
    assert person.turn()["state"] == "stopped"
    expect(person.page.locator(".question-text")).to_have_text(f"{LONG}\nWith many ships.")
    keys.press("ArrowUp")
    expect(person.composer).to_have_value(f"{LONG}\nWith many ships.")
