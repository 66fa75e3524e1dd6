"""What stands around the conversation: the list, links, files, keys and one's own usage."""

import httpx
import pytest
from playwright.sync_api import expect

from app.common.models import uuid7
from tests.e2e.browser import PHONE, WIDE, Opener, Person
from tests.e2e.live import Live, until
from tests.integration.common.receiver import receiving

pytestmark = [pytest.mark.e2e, pytest.mark.live]


def choose(person: Person, title: str, entry: str) -> None:
    """Open the menu of a conversation in the list and choose from it."""
    row = person.page.locator(".conversation", has_text=title)
    row.hover()
    row.get_by_role("button", name=f"More for {title}").click()
    person.page.get_by_role("menuitem", name=entry, exact=True).click()


def test_a_conversation_is_found_named_kept_and_put_away(seat: Opener) -> None:
    person = seat()
    page = person.page
    person.begin()
    person.ask("Say one word about marmalade.")
    person.answered()
    rail = page.locator("#conversations")
    page.keyboard.press("Control+k")
    page.keyboard.type("marmal")
    found = rail.locator(".found .conversation")
    expect(found.first).to_contain_text("marmalade")
    expect(found.first.locator("mark").first).to_have_text("marmal")
    page.get_by_label("Search conversations").fill("nothing has these words")
    expect(rail).to_contain_text("Nothing found")
    page.keyboard.press("Escape")
    choose(person, "Say one word", "Rename")
    page.get_by_label("New title").fill("Preserves")
    page.keyboard.press("Enter")
    expect(page.locator("#chat-title")).to_have_text("Preserves")
    choose(person, "Preserves", "Pin")
    pinned = rail.get_by_role("list", name="Pinned")
    expect(pinned).to_contain_text("Preserves")
    # Focus goes along by keys alone, from anywhere on the page.
    page.locator("#chat-title").click()
    page.keyboard.press("j")
    expect(pinned.get_by_role("link", name="Preserves")).to_be_focused()
    choose(person, "Preserves", "Archive")
    expect(rail.locator(".conversation", has_text="Preserves")).to_have_count(0)
    rail.get_by_role("button", name="Archived").click()
    expect(rail.locator(".conversation", has_text="Preserves")).to_be_visible()
    choose(person, "Preserves", "Take out of the archive")
    rail.get_by_role("button", name="Back to all conversations").click()
    choose(person, "Preserves", "Delete")
    rail.get_by_role("button", name="Keep", exact=True).click()
    choose(person, "Preserves", "Delete")
    rail.get_by_role("button", name="Delete", exact=True).click()
    expect(rail.locator(".conversation", has_text="Preserves")).to_have_count(0)
    expect(page.locator("#chat-title")).to_have_text("New conversation")


def test_a_list_that_cannot_be_read_says_so_and_is_read_again(seat: Opener) -> None:
    person = seat(expected=("status of 503",))
    page = person.page
    refused = {"error": {"code": "busy", "message": "The database is away.", "detail": {}, "retryable": True}}
    person.open("/keys/")
    page.route("**/api/v1/conversations/?*", lambda route: route.fulfill(status=503, json=refused))
    page.goto("/")
    expect(page.locator("#conversations")).to_contain_text("The database is away.")
    page.unroute("**/api/v1/conversations/?*")
    # The list may have read itself anew meanwhile; a person's click would come to nothing then, too.
    page.evaluate("() => document.querySelector('#conversations button')?.click()")
    expect(page.locator("#conversations")).not_to_contain_text("The database is away.")


def test_a_conversation_is_shared_exported_and_taken_back(seat: Opener) -> None:
    person = seat(expected=("status of 404",))
    page = person.page
    person.begin()
    person.ask("Say one word about quinces.")
    person.answered()
    answer = person.text.inner_text()
    page.get_by_role("button", name="Share or export this conversation").click()
    for entry, kind in (("Export as Markdown", "text/markdown"), ("Export as JSON", "application/json")):
        address = page.get_by_role("menuitem", name=entry).get_attribute("href")
        assert address is not None
        file = page.request.get(address)
        assert file.headers["content-type"].startswith(kind)
        assert "Say one word about quinces." in file.text()
    page.get_by_role("menuitem", name="Share…").click()
    panel = page.get_by_role("dialog", name="Share this conversation")
    expect(panel).to_contain_text("No link yet.")
    panel.get_by_role("button", name="Make a link").click()
    link = panel.get_by_label("Link", exact=True)
    address = link.input_value()
    page.keyboard.press("Escape")
    page.goto(address)
    expect(page.locator("#shared-by")).to_contain_text("Shared by")
    expect(page.locator(".answer .prose")).to_contain_text(answer[:40].strip())
    assert person.overflow() == 0
    page.goto("/shares/")
    page.get_by_role("button", name="Take back").first.click()
    expect(page.locator("#said")).to_contain_text("taken back")
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_contain_text("There is nothing here for you")


# A tab that nobody sees, as the browser tells the page of it.
HIDDEN = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_documents_come_and_go_by_others_hands_also_while_the_tab_is_hidden(seat: Opener, live: Live) -> None:
    made = live.http.post("/api/v1/collections/", json={"name": "Shared shelf"}).json()["id"]

    def put(name: str) -> str:
        file = {"file": (name, f"What stands in {name} is told here.".encode())}
        identity = live.http.post(f"/api/v1/collections/{made}/documents/", files=file).json()["id"]
        address = f"/api/v1/documents/{identity}/"
        until(lambda: live.http.get(address).json()["status"] == "ready" or None, f"{name} is read")
        return address

    first, second = put("first.txt"), put("second.txt")
    person = seat()
    person.open(f"/documents/?collection={made}")
    rows = person.page.locator("ul.documents > li")
    expect(rows).to_have_count(2)
    assert live.http.delete(first).status_code == 204
    expect(rows).to_have_count(1)
    person.page.evaluate(HIDDEN, True)
    assert live.http.delete(second).status_code == 204
    put("third.txt")
    person.page.evaluate(HIDDEN, False)
    expect(rows).to_contain_text(["third.txt"])
    expect(rows).to_have_count(1)
    live.http.delete(f"/api/v1/collections/{made}/")


def grown(live: Live, conversation: str, turns: int, *, word: str, at: int) -> str:
    """Let a conversation go on by as many turns like its first; one of them asks with a word of its own."""
    names = [row[0] for row in live.sql("SELECT column_name FROM information_schema.columns "
                                        "WHERE table_name = 'chat_turn' ORDER BY ordinal_position")]  # fmt: skip
    (parent,) = live.sql("SELECT id FROM chat_turn WHERE conversation_id = %s", conversation)[0]
    found = ""
    for number in range(turns):
        identity = str(uuid7())
        question = f"Question {number} about {word if number == at else 'the harbour'}?"
        values = {"id": identity, "parent_id": parent, "question": question, "answer": "A long line. " * 60}
        columns = ", ".join("%s" if name in values else name for name in names)
        live.sql(
            f"INSERT INTO chat_turn ({', '.join(names)}) SELECT {columns} FROM chat_turn WHERE id = %s",
            *(values[name] for name in names if name in values),
            parent,
        )
        parent, found = identity, identity if number == at else found
    return found


@pytest.mark.parametrize(
    ("size", "word"), [(WIDE, "zwetschgenkuchen"), (PHONE, "pflaumenmus")], ids=["wide", "phone"]
)
def test_a_search_leads_to_the_turn_far_up_and_marks_it(
    seat: Opener, live: Live, size: tuple[int, int], word: str
) -> None:
    person = seat(size=size)
    page = person.page
    word += uuid7().hex[-8:]
    conversation = live.conversation()
    with live.ask(conversation, "Say one word.") as events:
        assert list(events)[-1][1] == "done"
    turn = grown(live, conversation, 70, word=word, at=4)
    person.open("/")
    if size == PHONE:
        page.get_by_role("button", name="Open the menu").tap()
    page.get_by_label("Search conversations").fill(word[:-2])
    page.locator("#conversations .found .conversation-link").click()
    marked = page.locator(".question.found-turn")
    expect(marked).to_contain_text(word)
    expect(marked).to_be_in_viewport()
    expect(marked).to_be_focused()
    expect(page.locator(".answer.found-turn")).to_have_count(1)
    assert page.url.endswith(f"/c/{conversation}/#turn={turn}") and person.overflow() == 0
    # Nobody is taken from there to the end, and the address leads there again.
    page.reload()
    expect(marked).to_be_in_viewport()
    expect(page.locator(".question").last).not_to_be_in_viewport()
    page.go_back()
    expect(page.locator(".question")).to_have_count(0)


def test_a_key_is_made_used_and_revoked_and_use_is_shown(seat: Opener, live: Live) -> None:
    person = seat(expected=("status of 422",))
    page = person.page
    person.open("/keys/")
    page.get_by_role("button", name="New key").click()
    form = page.get_by_role("form", name="New key")
    form.get_by_role("button", name="Make the key").click()
    expect(form.get_by_label("Name", exact=True)).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Name", exact=True).fill("a script of the browser test")
    form.get_by_label("Limit", exact=True).fill("2,50")
    form.get_by_role("button", name="Make the key").click()
    issued = page.get_by_role("region", name="Your new key")
    plain = issued.locator(".plain-key").inner_text()
    expect(issued).to_contain_text(f'api_key="{plain}"')
    expect(issued).to_contain_text("/v1/chat/completions")
    me = f"{live.run['url'].rstrip('/')}/api/v1/me/"
    headers = {"Authorization": f"Bearer {plain}"}
    assert httpx.get(me, headers=headers).status_code == 200
    page.reload()
    row = page.locator(".key", has_text="a script of the browser test")
    expect(row).to_contain_text("at most 2.5")
    expect(page.locator("#main")).not_to_contain_text(plain)
    row.get_by_role("button", name="Revoke").click()
    row.get_by_role("button", name="Revoke", exact=True).click()
    expect(row).to_have_count(0)
    page.goto("/usage/")
    expect(page.get_by_role("heading", name="What remains")).to_be_visible()
    page.get_by_role("link", name="kind of call").click()
    address = page.get_by_role("link", name="CSV").get_attribute("href")
    assert address is not None
    table = page.request.get(address).text()
    assert table.startswith("\ufeffkind,price,")
    phone = seat(size=PHONE)
    for path in ("/keys/", "/shares/", "/usage/"):
        phone.open(path)
        expect(phone.page.get_by_role("heading", level=1)).to_be_visible()
        assert phone.overflow() == 0, path


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_webhook_is_added_tried_and_hears_of_an_answer(
    seat: Opener, live: Live, size: tuple[int, int]
) -> None:
    person = seat(size=size, expected=("status of 422",))
    page = person.page
    person.open("/keys/")
    box = page.get_by_role("region", name="Webhooks")
    with receiving() as receiver:
        name = f"app at {receiver.port}"
        box.get_by_role("button", name="New webhook").click()
        form = page.get_by_role("form", name="New webhook")
        form.get_by_label("Name", exact=True).fill(name)
        form.get_by_label("Address", exact=True).fill("https://10.0.0.8/in")
        form.get_by_role("button", name="Add the webhook").click()
        expect(box.get_by_role("alert")).to_contain_text("a private network")
        form.get_by_label("Address", exact=True).fill(f"{receiver.url}/in")
        form.get_by_role("button", name="Add the webhook").click()
        expect(page.get_by_role("region", name="The secret of the new webhook")).to_contain_text("whsec_")
        row = box.locator(".key", has_text=name)
        expect(row).to_contain_text("no message taken yet")
        assert person.overflow() == 0
        row.get_by_role("button", name="Send a test").click()
        until(lambda: receiver.received, "a test message")
        with live.ask(live.conversation(), "Say one word.") as events:
            (turn,) = [data["turn_id"] for _, name, data in list(events) if name == "turn"]
        until(lambda: any(turn in got.body.decode() for got in receiver.received), "the answer's end")
        page.reload()
        expect(row).to_contain_text("last message taken")
        row.get_by_role("button", name=f"Remove {name}").click()
        row.get_by_role("button", name="Remove", exact=True).click()
        expect(row).to_have_count(0)
