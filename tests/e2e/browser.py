"""A person at a browser in front of the running product."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect, sync_playwright

from tests.e2e.live import PATIENCE_SECONDS, Live
from tools.find_browser import NotFound, from_environment, installed

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = PATIENCE_SECONDS * 1000
WIDE = (1280, 800)
PHONE = (390, 844)
LONG = "Write a very long story about a lighthouse keeper and the sea, with many chapters."
# Refused scripts and styles are told to the page only; the console hears of them under different words by version.
WATCH = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`Content security policy: ${event.violatedDirective} ${event.blockedURI}`));
"""
# Every length that the newest answer ever had on the page, also those between two looks of a test.
WATCH_LENGTHS = """
window.lengths = [];
new MutationObserver(() => {
  const all = document.querySelectorAll(".answer .prose");
  const length = all.length ? all[all.length - 1].textContent.length : 0;
  if (length !== window.lengths.at(-1)) window.lengths.push(length);
}).observe(document.getElementById("thread"), { subtree: true, childList: true, characterData: true });
"""
# The stored text through the page's own renderer, to be compared with what is on the page.
RENDERED = """
async (text) => {
  const found = performance.getEntriesByType("resource").map((entry) => entry.name);
  const { render } = await import(found.find((name) => /common\\/js\\/markdown[.\\w]*\\.js$/.test(name)));
  const box = document.createElement("div");
  box.append(render(text));
  return box.textContent;
}
"""


@contextmanager
def browser_opened() -> Iterator[Browser]:
    """A Chromium of this machine. Close it before other tests run: while it lives, this thread has an event loop."""
    for way in (from_environment, installed):
        try:
            path = way()
            break
        except NotFound:
            continue
    else:
        pytest.skip("There is no Chromium here; `make test` installs one where it can.")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def context_opened(browser: Browser, live: Live, *, size: tuple[int, int] = WIDE) -> BrowserContext:
    """A browser with no memory; a narrow one is a touch screen."""
    width, height = size
    touch = width < 600
    context = browser.new_context(
        base_url=live.run["url"],
        viewport={"width": width, "height": height},
        has_touch=touch,
        is_mobile=touch,
    )
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(WATCH)
    return context


class Person:
    """One page, and what a person does on it. `problems` is everything the console complained of."""

    def __init__(self, context: BrowserContext, live: Live) -> None:
        self.live = live
        self.context = context
        self.problems: list[str] = []
        context.on("page", self.watch)
        self.page: Page = context.new_page()

    def watch(self, page: Page) -> None:
        """Listen to the console of a page that opens."""
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))
        page.on(
            "console",
            lambda said: self.problems.append(f"{page.url}: {said.text}") if said.type == "error" else None,
        )

    def problems_but(self, *expected: str) -> list[str]:
        """What the console complained of, without what a refusal that was provoked leaves there."""
        return [words for words in self.problems if not any(re.search(part, words) for part in expected)]

    def sign_in(self, password: str = "") -> None:
        """Fill the form that is on the page."""
        self.page.get_by_label("E-mail").fill(self.live.run["admin_email"])
        self.page.get_by_label("Password").fill(password or self.live.run["admin_password"])
        self.page.get_by_role("button", name="Sign in", exact=True).click()

    def open(self, path: str) -> None:
        """Go to a page, signing in when it asks for that."""
        self.page.goto(path)
        if "/accounts/login/" in self.page.url:
            self.sign_in()
            self.page.wait_for_url(urljoin(self.live.run["url"], path))

    # The chat

    @property
    def composer(self) -> Locator:
        return self.page.get_by_label("Your question")

    @property
    def answer(self) -> Locator:
        """The newest answer."""
        return self.page.get_by_role("article", name="Answer").last

    @property
    def text(self) -> Locator:
        """The words of the newest answer."""
        return self.answer.locator(".prose")

    def begin(self, *, collections: tuple[str, ...] = (), team: str = "") -> None:
        """A new conversation that searches these collections, by id."""
        self.open("/")
        choice = {"collections": list(collections), **({"team": team} if team else {})}
        self.page.evaluate(
            "(choice) => Object.entries(choice).forEach(([k, v]) => localStorage.setItem(k, JSON.stringify(v)))",
            choice,
        )
        self.page.reload()
        expect(self.page.locator("#model")).not_to_have_value("")
        self.page.evaluate(WATCH_LENGTHS)

    def ask(self, text: str) -> None:
        """Type a question and send it."""
        self.composer.fill(text)
        self.page.keyboard.press("Enter")

    def answered(self) -> Locator:
        """Wait until the newest answer has ended and is booked."""
        expect(self.answer).not_to_have_attribute("aria-busy", "")
        expect(self.page.get_by_role("button", name="Stop")).to_be_hidden()
        expect(self.answer.locator(".quiet summary")).to_be_visible()
        return self.answer

    def writes(self, least: int = 40) -> None:
        """Wait until some words of an unfinished answer are there."""
        self.page.wait_for_function(
            "(least) => [...document.querySelectorAll('.answer[aria-busy] .prose')].at(-1)?.textContent.length > least",
            arg=least,
        )

    def lengths(self) -> list[int]:
        """How long the newest answer was on the page, change by change, since the conversation was begun."""
        found: list[int] = self.page.evaluate("window.lengths")
        return found

    def ask_at_length(self, text: str = LONG) -> None:
        """Ask for an answer of which enough is still to come when a test acts in its middle."""

        def longer(route: Route) -> None:
            route.continue_(post_data=json.dumps({**route.request.post_data_json, "max_output_tokens": 900}))

        self.page.route("**/turns/", longer)
        self.ask(text)
        self.writes()

    def turn(self) -> dict[str, Any]:
        """The newest turn of the conversation on the page, as the database has it."""
        conversation = self.page.url.rstrip("/").rpartition("/")[2]
        rows = self.live.sql(
            "SELECT id FROM chat_turn WHERE conversation_id = %s ORDER BY created_at DESC LIMIT 1",
            conversation,
        )
        return {"id": rows[0][0], **self.live.turn_row(str(rows[0][0]))}

    def rendered(self, markdown: str) -> str:
        """The letters that the page shows for a text."""
        found: str = self.page.evaluate(RENDERED, markdown)
        return found

    def overflow(self) -> int:
        """Pixels by which the page is wider than the screen."""
        found: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return found


def on_localhost(live: Live, path: str) -> str:
    """Browsers keep passkeys for names only, and the address of this machine has one."""
    return str(live.run["url"]).replace("127.0.0.1", "localhost").rstrip("/") + path


def authenticator(person: Person) -> None:
    """A device with a fingerprint reader that always says yes."""
    session = person.context.new_cdp_session(person.page)
    session.send("WebAuthn.enable")
    session.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )


def pdf_of(pages: list[list[str]]) -> bytes:
    """A PDF with a text layer: pages of lines in Helvetica, by hand, since nothing else is needed."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        shown = " ".join(f"({line}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 16 TL 60 760 Td {shown} ET"
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * number} 0 R {font} >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    made = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return made + f"{tail}startxref\n{len(made)}\n%%EOF\n".encode()


def squeezed(text: str) -> str:
    """Text without its white space, for comparing what was laid out differently."""
    return re.sub(r"\s+", "", text)


Opener = Callable[..., Person]


@contextmanager
def people(browser: Browser, live: Live) -> Iterator[Opener]:
    """Gives a function that seats a person at a fresh browser; every console must have been quiet at the end."""
    seated: list[tuple[Person, tuple[str, ...]]] = []

    def seat(*, size: tuple[int, int] = WIDE, expected: tuple[str, ...] = ()) -> Person:
        person = Person(context_opened(browser, live, size=size), live)
        seated.append((person, expected))
        return person

    yield seat
    for person, _ in seated:
        person.context.close()
    problems = [words for person, expected in seated for words in person.problems_but(*expected)]
    assert not problems, "\n".join(problems)
