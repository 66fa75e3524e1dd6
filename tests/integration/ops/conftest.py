"""Settings as an operator's environment would make them."""

from collections.abc import Callable

import pytest
from pytest_django import Settings

from app.ops.servers import servers_prepare

Start = Callable[..., list[str]]


@pytest.fixture
def start(settings: Settings, db: None) -> Start:
    """Starts with these variables set: the chat server is then somebody else's. Gives what was told."""

    def run(url: str = "", **more: str) -> list[str]:
        named = {"INFERENCE_URL": url, **{f"INFERENCE_{name.upper()}": value for name, value in more.items()}}
        settings.EXTERNAL = {name: value for name, value in named.items() if value}
        settings.INFERENCE_URL = url
        settings.INFERENCE_MODEL = more.get("model", "")
        settings.INFERENCE_API_KEY = more.get("api_key", "")
        settings.INFERENCE_CONTEXT_WINDOW = int(more.get("context_window", "0"))
        # What stays behind from the packaged server does not count for another one.
        settings.INFERENCE_IS_DEMONSTRATION = True
        return servers_prepare()

    return run


@pytest.fixture
def packaged(settings: Settings, db: None) -> Callable[[], list[str]]:
    """Starts with the packaged chat server, here that of the test services."""
    before = {
        name: getattr(settings, name)
        for name in ("INFERENCE_URL", "INFERENCE_MODEL", "INFERENCE_API_KEY", "INFERENCE_CONTEXT_WINDOW")
    }

    def run(model: str = "") -> list[str]:
        settings.EXTERNAL = {}
        for name, value in before.items():
            setattr(settings, name, value)
        settings.INFERENCE_IS_DEMONSTRATION = not model
        settings.INFERENCE_MODEL = model or before["INFERENCE_MODEL"]
        return servers_prepare()

    return run
