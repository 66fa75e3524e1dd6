"""The pages' modules in a real browser, served from the source tree under the pages' own policy."""

import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, sync_playwright

from tools.find_browser import NotFound, from_environment, installed

ROOT = Path(__file__).resolve().parents[3]
STATIC = [ROOT / "app" / app / "static" for app in ("common", "chat", "dashboard")]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
POLICY = "; ".join(f"{k} {' '.join(v)}" for k, v in settings.CONTENT_SECURITY_POLICY["DIRECTIVES"].items())

Run = Callable[..., Any]


class Files(SimpleHTTPRequestHandler):
    """Static files of all apps under /static/, an empty page everywhere else."""

    extensions_map = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css"}

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.removeprefix("/static/")
        file = next((f / path for f in STATIC if (f / path).is_file()), None)
        body = file.read_bytes() if file else b"<!doctype html><title>empty</title><div id=root></div>"
        self.send_response(200)
        self.send_header(
            "Content-Type", self.extensions_map.get(Path(path).suffix, "text/html; charset=utf-8")
        )
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """A test prints nothing."""


@pytest.fixture(scope="session")
def static_url() -> Iterator[str]:
    """Where the files are served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A Chromium of this machine; `make test` looks for one further away."""
    for way in (from_environment, installed):
        try:
            path = way()
            break
        except NotFound:
            continue
    else:
        pytest.skip("There is no Chromium here; `make test` installs one where it can.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def shared_page(chromium: Browser, static_url: str) -> Page:
    """One page for all tests of pure modules; it keeps what went wrong in `window.problems`."""
    page = chromium.new_page()
    page.goto(static_url)
    page.evaluate(
        "window.problems = []; document.addEventListener('securitypolicyviolation',"
        " (e) => window.problems.push(`${e.violatedDirective} ${e.blockedURI}`))"
    )
    return page


def _calls(page: Page) -> Run:
    def call(module: str, function: str, *arguments: Any) -> Any:
        return page.evaluate(
            f"async (given) => ({function})(await import('/static/{module}.js'), ...given)", list(arguments)
        )

    return call


@pytest.fixture
def run(shared_page: Page) -> Run:
    """run("common/js/sse", "(m, a, b) => …", a, b): call a function with a module and arguments."""
    shared_page.evaluate("window.problems.length = 0")
    return _calls(shared_page)


@pytest.fixture(scope="module")
def german(chromium: Browser, static_url: str) -> Run:
    """As `run`, on a page in German."""
    page = chromium.new_page()
    page.goto(static_url)
    page.evaluate(
        """(words) => {
          const { documentElement: page } = document;
          page.lang = "de";
          Object.assign(page.dataset, { words: `${words}de.json`, sentences: `${words}de.server.json` });
        }""",
        "/static/common/lang/",
    )
    return _calls(page)
