"""The running product for tests from outside."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.e2e.browser import Opener, browser_opened, people
from tests.e2e.live import Live


@pytest.fixture(scope="session")
def live(live_stack: dict[str, Any], live_data: Path) -> Iterator[Live]:
    """The installation that `live_stack` started."""
    found = Live(live_stack, live_data)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _spare_processes_end(request: pytest.FixtureRequest) -> Iterator[None]:
    """What one test started is not there for the next."""
    yield
    if "live" in request.fixturenames:
        request.getfixturevalue("live").spares_end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for a file: while it lives, this thread has an event loop, which tests without a browser must not meet."""
    with browser_opened() as found:
        yield found


@pytest.fixture
def seat(browser: Browser, live: Live) -> Iterator[Opener]:
    """Opens a browser for a person; what its console complained of fails the test at the end."""
    with people(browser, live) as found:
        yield found
