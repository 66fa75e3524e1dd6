"""One test's stage: a client and a scripted server in one event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from inference_client.chat_call import ChatCall
from inference_client.client import Client
from inference_client.errors import InferenceError
from inference_client.servers import Server, Timeouts
from inference_client.testing.fault_server import FaultServer, Script
from inference_client.types import CallRecord, ChatRequest, Event, Message

T = TypeVar("T")
QUICK = Timeouts(connect=10, first_token=20, idle=20, total=40, grace=0.3, drain=20)
REQUEST = ChatRequest(model="m", messages=(Message("user", "Hello"),), max_output_tokens=32)


@dataclass
class Scene:
    """What a test gets to work with."""

    client: Client
    upstream: FaultServer
    server: Server
    calls: list[ChatCall] = field(default_factory=list)

    def call(self, **options: Any) -> ChatCall:
        """A call to the scripted server."""
        call = self.client.chat(self.server, REQUEST, **options)
        self.calls.append(call)
        return call

    async def read(self, **options: Any) -> "Outcome":
        """Read one call to its end, whatever that is."""
        call = self.call(**options)
        events: list[Event] = []
        error: InferenceError | None = None
        try:
            async with call:
                async for event in call:
                    events.append(event)  # noqa: PERF401 - what came before an error counts
        except InferenceError as exc:
            error = exc
        return Outcome(events, call.record, error)


@dataclass
class Outcome:
    """A call that has ended."""

    events: list[Event]
    record: CallRecord
    error: InferenceError | None

    @property
    def text(self) -> str:
        """All text of the answer."""
        return "".join(getattr(event, "text", "") for event in self.events)


def run_scene(
    scene: Callable[[Scene], Coroutine[Any, Any, T]],
    *scripts: Script,
    kind: str = "openai-compatible",
    timeouts: Timeouts = QUICK,
    abort_stops_billing: bool = True,
    options: dict[str, Any] | None = None,
) -> T:
    """What `scene` returns; fails if it leaves a task running."""

    async def run() -> T:
        async with FaultServer(*scripts) as upstream:
            client = Client()
            server = Server(
                kind=kind,
                base_url=upstream.url,
                api_key="secret",
                timeouts=timeouts,
                abort_stops_billing=abort_stops_billing,
                options={"template": "plain"} if options is None else options,
            )
            try:
                return await asyncio.wait_for(scene(Scene(client, upstream, server)), 60)
            finally:
                await client.aclose()

    return asyncio.run(run())


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until `condition()`; raises TimeoutError when it stays false."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition belongs to the server under test
            await asyncio.sleep(0.002)
