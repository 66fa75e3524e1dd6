"""Fifty questions over real documents: each source opens its document's page with the very passage marked."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Person, browser_opened, people, squeezed
from tests.e2e.live import Live, Stream, until
from tests.e2e.test_browser import SHARED
from tests.stack import REPOSITORY, command

OPEN = SHARED / "data" / "docs" / "open"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.live,
    pytest.mark.prove,
    pytest.mark.skipif(not OPEN.exists(), reason="The shared documents are absent: set TESSERA_SHARED."),
]
QUESTIONS = 50
NEIGHBOURS = 8
"""Words of the document around a fact that make its question."""
NAMES = (
    "pdflatex-4-pages.pdf crazyones.pdf 2305.03393v1-pg9.pdf code_and_formula.pdf movie-theater-booking-2024.pdf "
    "linn.pdf testOCR.pdf MEDRPT-2024-PAT-3847_medical_report_scan.pdf Seige_of_Vicksburg_Sample_OCR.pdf "
    "multilang.pdf test.docx word_sample.docx footnotes.docx powerpoint_sample.pptx test.xlsx test.xls "
    "odf_table_with_title_01.ods text_document_01.odt odf_presentation_01.odp test_blog.html wiki_duck.html duck.md "
    "README-w-include.rst mime-different-plain-html.eml norwich-city.txt msg_simple.msg typewriter.png "
    "legacy_sample.doc legacy_sample.ppt testRTFJapanese.rtf fake-html-cp1252.html"
)
ENDED = {"ready", "failed", "cancelled"}


@dataclass(frozen=True)
class Question:
    text: str
    document: str
    fact: str
    page: int | None
    """As the manifest has it; None where the format has no pages."""


MODEL = "scripted"
_DEPLOYMENT = """
from decimal import Decimal
from app.billing.services import price_set
from app.billing.types import Rate
from app.catalog.models import Deployment
from app.catalog.services import backend_put, deployment_put

backend = backend_put(name={model!r}, kind="openai-compatible", base_url={url!r})
deployment_put(backend=backend, upstream_model={model!r}, purpose=Deployment.Purpose.CHAT.value, public_name={model!r},
               price_key={model!r}, context_window=8000, slots=8, clearance="private")
rates = [Rate(component=part, price=Decimal("0.1")) for part in ("input", "output")]
price_set(price_key={model!r}, rates=rates, approved_by="tests")
"""
AT_ONCE = 2


@pytest.fixture(scope="module")
def model(live: Live) -> Iterator[str]:
    """A scripted model, since the case is about passages: its words are not looked at, the search is the real one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [
        sys.executable,
        "-m",
        "inference_client.testing.fault_server",
        "--port",
        str(port),
        "--words",
        "3",
    ]
    process = subprocess.Popen(line, cwd=REPOSITORY)
    try:
        until(lambda: _listens(port), "the scripted server listens")
        made = _DEPLOYMENT.format(url=f"http://127.0.0.1:{port}/v1", model=MODEL)
        told = command("shell", "-v", "0", "-c", made, env={"TESSERA_DATA": str(live.data)})
        assert told.returncode == 0, told.stdout
        until(lambda: MODEL in str(live.http.get("/api/v1/models/").json()), "the scripted model is known")
        yield MODEL
    finally:
        process.kill()
        process.wait()
        live.sql("UPDATE catalog_backend SET enabled = false WHERE base_url LIKE %s", f"%:{port}/v1")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class Shelf:
    """A collection of real documents that were read here."""

    collection: str
    names: dict[str, str]
    """Document id → file."""
    pages: dict[str, dict[int, str]]
    """File → page → what the machine read on it."""


@pytest.fixture(scope="module")
def shelf(live: Live) -> Iterator[Shelf]:
    made = live.http.post("/api/v1/collections/", json={"name": "Fifty questions"}).json()["id"]
    names = {}
    for name in NAMES.split():
        file = {"file": (name, (OPEN / name).read_bytes())}
        answer = live.http.post(f"/api/v1/collections/{made}/documents/", files=file)
        assert answer.status_code == 202, answer.text
        names[str(answer.json()["id"])] = name
    for identity, name in names.items():
        until(lambda at=identity: _status(live, at) in ENDED, f"{name} is read", patience=240)
        assert _status(live, identity) == "ready", name
    yield Shelf(made, names, {name: _pages(live, identity) for identity, name in names.items()})
    live.http.delete(f"/api/v1/collections/{made}/")


def _status(live: Live, identity: str) -> str:
    return str(live.http.get(f"/api/v1/documents/{identity}/").json()["status"])


def _pages(live: Live, identity: str) -> dict[int, str]:
    items = live.http.get(f"/api/v1/documents/{identity}/text/?limit=200").json()["items"]
    return {item["number"]: item["text"] for item in items}


def questions(shelf: Shelf) -> list[Question]:
    """Words before and with each fact first, then words with and after it, until there are enough."""
    facts: dict[str, list[dict[str, Any]]] = json.loads((OPEN / "facts.json").read_text())
    before, after = [], []
    for name, pages in shelf.pages.items():
        text = "\n".join(pages.values())
        for fact in facts[name]:
            words = fact.get("text", "").split()
            if fact["type"] != "contains" or not words:
                continue
            found = re.search(r"\s*".join(map(re.escape, words)), text)
            if not found:
                continue
            near = text[: found.start()].split()[-NEIGHBOURS:], text[found.end() :].split()[:NEIGHBOURS]
            made = " ".join([*near[0], *words])[:300], " ".join([*words, *near[1]])[:300]
            before.append(Question(f"What is said here: {made[0]}?", name, fact["text"], fact.get("page")))
            after.append(Question(f"How does it go on: {made[1]}?", name, fact["text"], fact.get("page")))
    return [*before, *after][:QUESTIONS]


def _asked(live: Live, shelf: Shelf, question: Question) -> tuple[str, list[dict[str, Any]]]:
    """(conversation, sources with their text)."""
    conversation = live.conversation()
    wishes = {"collections": [shelf.collection], "model": MODEL, "max_output_tokens": 4}
    with live.ask(conversation, question.text, **wishes) as events:
        stream = Stream(list(events))
    turn = live.sql("SELECT id FROM chat_turn WHERE conversation_id = %s", conversation)[0][0]
    sources = live.http.get(f"/api/v1/turns/{turn}/sources/").json()["items"]
    assert sources, (question.text, stream.names)
    return conversation, sources


def _right(shelf: Shelf, question: Question, source: dict[str, Any]) -> bool:
    there = shelf.names[source["document_id"]] == question.document
    return there and squeezed(question.fact) in squeezed(source["text"])


def _pages_fit(shelf: Shelf, question: Question, source: dict[str, Any]) -> bool:
    """The pages that a source names hold its fact, which may begin on one and end on the next."""
    told = range(source["page"], (source["page_end"] or source["page"]) + 1)
    pages = shelf.pages[question.document]
    return squeezed(question.fact) in squeezed("".join(pages.get(number, "") for number in told))


def _opened(person: Person, conversation: str, source: dict[str, Any]) -> None:
    """Click the source and find its passage marked, on its page, in its document."""
    page = person.page
    page.goto(f"/c/{conversation}/")
    person.answer.locator("button.foot-link", has_text="source").click()
    shown = page.locator(f"#source-{source['n']}")
    with person.context.expect_page() as opening:
        shown.get_by_role("link", name=re.compile("^Open ")).click()
    document = opening.value
    mark = document.locator("mark").first
    expect(mark).to_be_in_viewport()
    assert f"/documents/{source['document_id']}/" in document.url
    if source["page"]:
        assert f"page={source['page']}" in document.url
        expect(document.locator(f"#page-{source['page']} mark")).to_be_visible()
    marked = squeezed("".join(document.locator("mark").all_text_contents()))
    assert marked, source["title"]
    assert marked == squeezed(source["text"])
    document.close()


@pytest.mark.usefixtures("model")
def test_fifty_questions_each_open_their_source_at_the_marked_passage(live: Live, shelf: Shelf) -> None:
    asked = questions(shelf)
    assert len(asked) == QUESTIONS
    # Asked beside each other, before the browser's event loop is there.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda question: _asked(live, shelf, question), asked))
    right, formats = 0, set()
    with browser_opened() as browser, people(browser, live) as seat:
        person = seat()
        person.open("/")
        for question, (conversation, sources) in zip(asked, answers, strict=True):
            best = next((item for item in sources if _right(shelf, question, item)), None)
            right += best is not None
            source = best or sources[0]
            if best and question.page and source["page"]:
                assert _pages_fit(shelf, question, source), (question, source["page"], source["page_end"])
            formats.add(Path(shelf.names[source["document_id"]]).suffix)
            _opened(person, conversation, source)
    opened = ", ".join(sorted(formats))
    sys.stdout.write(f"{QUESTIONS} questions, {right} with the fact among their passages; opened: {opened}\n")
    assert right >= QUESTIONS * 0.9
    assert len(formats) >= 8
