"""Parts that die while somebody asks: the page names the part, keeps the question, and goes on when it is back."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urljoin, urlsplit

import httpx
import psutil
import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Opener, Person
from tests.e2e.live import Live, until

pytestmark = [pytest.mark.e2e, pytest.mark.live(alone=True), pytest.mark.prove]

QUESTION = "What happens when a budget is used up?"
REFUSED = ("status of 50", "net::ERR_")


@pytest.fixture
def handbook(live: Live) -> str:
    found = live.http.get("/api/v1/collections/").json()["items"]
    return next(str(item["id"]) for item in found if item["name"] == "Tessera handbook")


def kill_listener(url: str) -> None:
    """Kill -9 whoever listens at an address, if anybody does."""
    port = urlsplit(url).port
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
            os.kill(connection.pid, signal.SIGKILL)


@contextmanager
def gone(url: str) -> Iterator[None]:
    """While this lasts nothing answers there: whatever the supervisor starts again is killed again."""
    over = threading.Event()

    def keep_killing() -> None:
        while not over.wait(0.05):
            kill_listener(url)

    kill_listener(url)
    killer = threading.Thread(target=keep_killing)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


def whole(live: Live) -> None:
    """Wait until every part is back."""
    until(live.ready, "the web server answers again")
    for name in ("inference_url", "embedding_url"):
        until(lambda url=live.run[name]: healthy(url), f"{name} answers again")


def healthy(url: str) -> bool:
    """Whether a model server has loaded its model."""
    try:
        return httpx.get(urljoin(url, "/health"), timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def ask_again(person: Person) -> None:
    """The same question once more, until the server that failed has had its pause and answers."""
    whole(person.live)

    def tried() -> bool:
        person.page.get_by_role("button", name="Try again").last.click()
        expect(person.page.get_by_role("button", name="Stop")).to_be_hidden()
        expect(person.page.locator(".answer[aria-busy]")).to_have_count(0)
        return person.page.get_by_role("button", name="Try again").filter(visible=True).count() == 0

    until(tried, "the question is answered")
    assert person.turn()["state"] in {"completed", "done"}
    expect(person.text).not_to_have_text("")


def test_the_chat_server_dies_in_the_middle_of_an_answer(seat: Opener, live: Live) -> None:
    person = seat(expected=REFUSED)
    person.begin()
    person.ask_at_length()
    kill_listener(live.run["inference_url"])
    failure = person.answer.get_by_role("alert")
    expect(failure).to_contain_text("The chat server failed.")
    turn = person.turn()
    assert turn["state"] == "failed"
    assert person.text.text_content() == person.rendered(turn["answer"]) != ""
    person.page.reload()
    expect(person.text).to_have_text(person.rendered(turn["answer"]))
    expect(person.answer.get_by_role("alert")).to_contain_text("The chat server failed.")
    ask_again(person)
    assert [row for row in live.held() if row[1] == turn["id"]] == []


def test_without_a_chat_server_the_documents_still_speak(seat: Opener, live: Live, handbook: str) -> None:
    person = seat(expected=REFUSED)
    person.begin(collections=(handbook,))
    with gone(live.run["inference_url"]):
        person.ask(QUESTION)
        expect(person.answer.get_by_role("alert")).to_contain_text("The chat server failed.")
        expect(person.answer.get_by_role("region", name="From the documents")).to_be_visible()
        expect(person.page.locator(".question-text")).to_have_text(QUESTION)
    ask_again(person)


def test_without_an_embedding_server_the_question_is_kept(seat: Opener, live: Live, handbook: str) -> None:
    person = seat(expected=REFUSED)
    person.begin(collections=(handbook,))
    with gone(live.run["embedding_url"]):
        person.ask(QUESTION)
        expect(person.answer.get_by_role("alert")).to_contain_text("The embedding server")
        expect(person.page.locator(".question-text")).to_have_text(QUESTION)
    ask_again(person)


def test_the_web_server_dies_in_the_middle_of_an_answer(seat: Opener, live: Live) -> None:
    person = seat(expected=REFUSED)
    person.begin()
    person.ask_at_length()
    kill_listener(live.run["url"])
    whole(live)
    expect(person.answer).not_to_have_attribute("aria-busy", "")
    expect(person.answer.get_by_role("button", name=re.compile("Continue|Try again"))).to_be_visible()
    until(lambda: person.turn()["state"] != "running", "the turn is ended for the process that died")
    turn = person.turn()
    person.page.reload()
    expect(person.text).to_have_text(person.rendered(turn["answer"]))
    expect(person.page.locator(".answer")).to_have_count(1)


def test_a_question_typed_while_the_web_server_is_away_is_kept(seat: Opener, live: Live) -> None:
    person = seat(expected=REFUSED)
    person.begin()
    with gone(live.run["url"]):
        person.ask(QUESTION)
        expect(person.page.locator("#composer-problem")).to_contain_text("web server does not answer")
        expect(person.page.locator("#connection")).to_be_visible()
        expect(person.composer).to_have_value(QUESTION)
    whole(live)
    expect(person.page.locator("#connection")).to_be_hidden()
    ask_again(person)
    expect(person.composer).to_have_value("")
