"""The script of rate limits in Valkey, asked in groups: what comes while one visit is under way shares the next.

Each call is counted before and after, so under load most of what a visit costs would be the visit itself. Alone a
question goes at once.
"""

import asyncio
import logging
from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import TypeAlias

from redis.exceptions import NoScriptError, RedisError

from app.common.aio import PerLoop
from app.common.redis_door import Unavailable, async_redis

log = logging.getLogger(__name__)

GROUP = 100
PATIENCE_SECONDS = 1.0
_SCRIPT = (Path(__file__).parent / "rates.lua").read_text()
_SHA = sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()

Words: TypeAlias = tuple[str | int, ...]
Answer: TypeAlias = list[int] | None
"""The script's own; None: Valkey does not give one."""


class Visits:
    """Questions of one event loop to the script."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Words, asyncio.Future[Answer]]] = []
        self._under_way: asyncio.Task[None] | None = None

    def ask(self, keys: Sequence[str], words: Sequence[str | int]) -> asyncio.Future[Answer]:
        """Run the script, each call in one step of its own, whether or not somebody waits for what it says.

        Never raises for what Valkey does.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append(((len(keys), *keys, *words), answer))
        if self._under_way is None or self._under_way.done():
            self._under_way = loop.create_task(self._visit())
        return answer

    async def _visit(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
            answers = await _answers([words for words, _ in group])
            for (_, future), answer in zip(group, answers, strict=True):
                # Who was cancelled meanwhile waits no longer.
                if not future.done():
                    future.set_result(answer)


visits = PerLoop(Visits)
"""Those of this event loop."""


async def _answers(questions: Sequence[Words]) -> list[Answer]:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            answers = await _asked(questions)
            if any(isinstance(answer, NoScriptError) for answer in answers):
                # A Valkey that was started or emptied since. What it has answered already it must not do twice.
                await async_redis().script_load(_SCRIPT)
                again = [n for n, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
                for n, answer in zip(again, await _asked([questions[n] for n in again]), strict=True):
                    answers[n] = answer
    except (*Unavailable, RedisError, TimeoutError) as exc:
        answers = [exc] * len(questions)
    if failure := next((answer for answer in answers if isinstance(answer, Exception)), None):
        log.warning("Valkey does not answer (%s): rate limits are not checked for a few seconds.", failure)
    return [None if isinstance(answer, Exception) else answer for answer in answers]


async def _asked(questions: Sequence[Words]) -> list[list[int] | Exception]:
    pipe = async_redis().pipeline(transaction=False)
    for words in questions:
        pipe.execute_command("EVALSHA", _SHA, *words)
    return await pipe.execute(raise_on_error=False)
