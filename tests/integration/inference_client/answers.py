"""The answer that the scripted server gives."""

from typing import Any

from inference_client.adapters.kinds import ADAPTERS
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import Script
from inference_client.types import CallRecord
from tests.integration.inference_client.scenes import Outcome, Scene

WORDS = ("One", " two", " three", " four", " five")


def kind(name: str) -> str:
    """A kind of server that speaks the wire format `name`."""
    return ADAPTERS[name].kinds[0].name


def script(**options: Any) -> Script:
    answer = Answer(words=WORDS, input_tokens=40, cache_read=8, usage=options.pop("usage", "right"))
    return Script(answer=answer, **options)


async def read(scene: Scene) -> Outcome:
    """Read one call to its end."""
    return await scene.read()


async def leave_after(scene: Scene, count: int) -> CallRecord:
    """Read `count` events of one call and leave."""
    async with scene.call() as call:
        for _ in range(count):
            await anext(call)
    return call.record
