"""Where the recorded answers are, and how one is compared with what it should give."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from inference_client.replay import Recording, recording_read
from inference_client.replay_facts import facts

WIRE = Path(os.environ.get("TESSERA_SHARED", "../shared")) / "data" / "wire" / "open"


@cache
def recordings() -> tuple[Recording, ...]:
    """All recordings that are there; none where the shared data is not."""
    return tuple(recording_read(path) for path in sorted(WIRE.glob("*.meta.json")))


def parametrised(*, streams_only: bool = False) -> list[Any]:
    """One test parameter per recording, or one skipped where there are none."""
    found = [
        pytest.param(recording, id=recording.file.removesuffix(".meta.json"))
        for recording in recordings()
        if not streams_only or recording.mode == "stream"
    ]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason="no recordings: set TESSERA_SHARED"))]


def differences(recording: Recording, got: dict[str, Any]) -> dict[str, Any]:
    """name → (expected, got) for every fact that differs."""
    return {name: (expected, value) for name, expected, value in facts(recording, got) if expected != value}
