"""A scripted model server for turns: it says what no real one can be made to say at will."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from asgiref.sync import async_to_sync

from app.chat.runs import Runs
from app.chat.turn import take_turn
from app.chat.types import Ask
from app.common.redis_door import redis_close
from app.gate.clients import client_close
from inference_client.testing.fault_server import FaultServer, Script
from tests.integration.chat.conftest import Taken

USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def said(text: str, usage: Mapping[str, Any] = USAGE, **more: Any) -> Script:
    """An answer of one piece; `more` goes into every chunk."""
    head = {"id": "c", "model": "m", **more}
    chunks = (
        {**head, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**head, "choices": [], "usage": usage},
    )
    frames = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return Script(body=(*frames, b"data: [DONE]\n\n"))


def answered(ask: Ask, *scripts: Script) -> Taken:
    """Run a turn to its end against the scripted server; what its task raised is left aside."""

    async def story() -> Taken:
        async with FaultServer(*scripts) as server:
            target = replace(
                ask.targets[0], kind="openai", base_url=f"{server.url}/v1", is_demonstration=False
            )
            asked = replace(ask, targets=(target,))
            run = Runs().start(ask.turn_id, lambda run: take_turn(asked, run), replayable=False)
            taken = Taken(asked, run)
            async for batch in run.log.follow():
                taken.events += batch
            assert run.task is not None
            await asyncio.gather(run.task, return_exceptions=True)
            await client_close()
            await redis_close()
            return taken

    return async_to_sync(story)()
