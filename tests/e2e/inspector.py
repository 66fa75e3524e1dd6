"""Looks at the pages of the running product as a person does who cannot see well, has a phone, or reads German."""

import json
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Request, expect

from tests.e2e.browser import Person, on_localhost
from tools.messages import SCRIPT_WORDS, SERVER_WORDS, po_read

# Colours that are still on their way from one scheme to the other are neither's.
_DRESSED = """
(scheme) => {
  document.documentElement.dataset.theme = scheme;
  document.body.getBoundingClientRect();
  document.getAnimations().forEach((animation) => animation.finish());
}
"""
# What a person reads or hears read, but for what people and programs wrote: names, questions, answers, code.
_SHOWN = """
() => {
  const said = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement;
    if (parent.closest("script, style, code, pre, .prose, [lang=en], .question-text")) continue;
    if (!parent.checkVisibility()) continue;
    said.push(walk.currentNode.data);
  }
  for (const name of ["aria-label", "title", "placeholder"])
    for (const node of document.querySelectorAll(`[${name}]`)) said.push(node.getAttribute(name));
  return said;
}
"""
_REFUSED = {"/nowhere/"}
"""Pages that are a refusal."""
_GRAVE = {"serious", "critical"}


class Inspector:
    """Looks at pages as a person opens them."""

    def __init__(self, person: Person) -> None:
        self.person, self.page = person, person.page
        self.axe = Axe()
        self.found: dict[str, list[str]] = {}
        self.besides: list[str] = []
        """What came from elsewhere, and pages that do not fit."""
        self.page.on("request", self._requested)

    def _requested(self, request: Request) -> None:
        there, here = urlsplit(request.url), urlsplit(self.person.live.run["url"])
        ours = {here.netloc, urlsplit(on_localhost(self.person.live, "/")).netloc}
        if there.scheme not in {"data", "blob"} and there.netloc not in ours:
            self.besides.append(f"{self.page.url} asked {request.url}")

    def enter(self, email: str, password: str, code: str = "", at: str = "/accounts/login/") -> None:
        """Sign in; with a second step, that page is looked at on the way."""
        self.page.goto(at)
        self.page.get_by_label("E-mail").fill(email)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        if code:
            expect(self.page.get_by_role("heading", name="Second step")).to_be_visible()
            self.look(self.page.url)
            self.page.get_by_label("Code").fill(code)
            self.page.get_by_role("button", name="Sign in", exact=True).click()
        expect(self.page.locator("#composer-text")).to_be_visible()

    def look(self, path: str) -> None:
        """Open a page and look at it in both schemes."""
        answer = self.page.goto(path)
        if answer is None or (answer.status >= 400 and path not in _REFUSED):
            self.besides.append(f"{path} answers {answer and answer.status}")
        self.look_here(path)

    def look_at_a_server(self, address: str, key: str) -> None:
        """The step of the set-up between a server's address and its models."""
        self.page.goto("/dashboard/setup/")
        self.page.get_by_label("Address").fill(address)
        self.page.get_by_label("Key, if it wants one").fill(key)
        self.page.get_by_role("button", name="Look at it").click()
        expect(self.page.get_by_role("group", name="Its models")).to_be_visible()
        self.look_here("the set-up, at a server")

    def look_at_a_collection(self, path: str, *, english: bool) -> None:
        """What opens on the page of a collection: whom it is shared with, its settings, passages found in it."""
        page, panel = self.page, self.page.get_by_role("dialog")

        def here(what: str) -> None:
            self.look_here(f"{path} {what}")
            if not english:
                self.english(f"{path} {what}")
            page.keyboard.press("Escape")

        page.goto(path)
        page.locator(".collection-head .button").click()
        expect(panel.locator(".grant").first).to_be_visible()
        here("shared")
        page.locator(".collection-head .icon-button").click()
        page.get_by_role("menuitem").first.click()
        panel.locator("fieldset .button").click()
        expect(panel.locator(".cuts li").first).to_be_visible()
        here("settings")
        page.locator(".document .icon-button").last.click()
        page.get_by_role("menuitem").last.click()
        expect(page.locator(".document .failure.calm")).to_be_visible()
        page.locator("#find").fill("lamp")
        page.locator("#find").press("Enter")
        expect(page.locator(".found-passage").first).to_be_visible()
        here("searched")

    def look_here(self, path: str) -> None:
        """The page that is open."""
        self.page.wait_for_load_state("networkidle")
        if wider := self.person.overflow():
            self.besides.append(f"{path} is {wider} px wider than the screen")
        for scheme in ("light", "dark"):
            self.page.evaluate(_DRESSED, scheme)
            self._axe(f"{path} {scheme}")

    def english(self, path: str) -> None:
        """Note the words on the page that have a German which is not shown."""
        for words in {" ".join(text.split()) for text in self.page.evaluate(_SHOWN)} & _with_german():
            self.found.setdefault(f"English: {words!r}", []).append(path)

    def _axe(self, name: str) -> None:
        for violation in self.axe.run(self.page).response["violations"]:
            if violation["impact"] in _GRAVE:
                where = [f"{node['target']}: {_why(node)}" for node in violation["nodes"][:4]]
                self.found.setdefault(f"{violation['id']}: {' | '.join(where)}", []).append(name)

    def verdict(self) -> str:
        """Everything that is wrong, each once with the pages that have it."""
        rows = [f"{what}\n    on {', '.join(pages)}" for what, pages in self.found.items()]
        return "\n".join([*rows, *self.besides])


@cache
def _with_german() -> set[str]:
    """What the pages have in German under other words."""
    pairs = {key[0]: said[0] for key, said in po_read().items()}
    for path in (SCRIPT_WORDS, SERVER_WORDS):
        pairs |= json.loads(path.read_text(encoding="utf-8"))
    return {key for key, said in pairs.items() if key and key != said and "{" not in key and "%(" not in key}


def _why(node: dict[str, Any]) -> str:
    return "; ".join(check["message"] for kind in ("any", "all", "none") for check in node[kind])[:200]
