"""The running product for tests from outside."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.live import Live


@pytest.fixture(scope="session")
def live(live_stack: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The installation that `live_stack` started."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    found = Live(live_stack, Path(folder / "live"))
    yield found
    found.close()
