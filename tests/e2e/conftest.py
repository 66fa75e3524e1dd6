"""The running product for tests from outside."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
