"""Decides what the model computes next: queries before passages, in cuts so small that no query waits long.

One thread runs the model. Work is cut by padded tokens (rows × longest row), so that no cut takes much longer
than another; between two cuts a waiting query goes first, and passages of several requests take turns.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.embedded.e5_tokenizer import Encoded

# About 40 ms on one core; larger cuts compute no faster.
CUT_TOKENS = 256
MAX_WAITING = 16_384
Vectors = npt.NDArray[np.float32]
Run = Callable[[Sequence[Encoded]], Vectors]


class Overfull(Exception):
    """Too many texts are waiting already."""


def cuts(items: Sequence[Encoded], budget: int = CUT_TOKENS) -> Iterator[list[int]]:
    """Indices of `items` in groups of similar length: at most `budget` padded tokens, or a single item."""
    order = sorted(range(len(items)), key=lambda index: len(items[index].ids))
    group: list[int] = []
    for index in order:
        if group and (len(group) + 1) * len(items[index].ids) > budget:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


@dataclass(slots=True)
class _Job:
    """One request's texts and the vectors computed so far."""

    items: Sequence[Encoded]
    done: asyncio.Future[Vectors]
    rest: deque[list[int]] = field(default_factory=deque)
    rows: dict[int, Vectors] = field(default_factory=dict)


class Batcher:
    """Runs `run` for many callers. Use from one event loop; `start` once, `stop` at the end."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lanes: dict[str, deque[_Job]] = {"query": deque(), "passage": deque()}
        self._work = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._task: asyncio.Task[None] | None = None
        self._waiting = 0

    def start(self) -> None:
        """Begin to work; needs a running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._loop())

    async def stop(self) -> None:
        """Stop after the cut under way."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown()

    async def embed(self, items: Sequence[Encoded], *, lane: Literal["query", "passage"]) -> Vectors:
        """Vectors [len(items), dimension] in order. Cancelling drops what has not been computed.

        Raises:
            Overfull: more than 16,384 texts would be waiting.
        """
        if self._waiting + len(items) > MAX_WAITING:
            raise Overfull
        job = _Job(items=items, done=asyncio.get_running_loop().create_future())
        job.rest.extend(cuts(items))
        self._waiting += len(items)
        self._lanes[lane].append(job)
        self._work.set()
        try:
            return await job.done
        finally:
            self._waiting -= len(items)

    def _next(self) -> tuple[_Job, list[int]] | None:
        """The next cut; a job with more to do goes to the end of its lane."""
        for lane in self._lanes.values():
            while lane:
                job = lane.popleft()
                if job.done.done():
                    continue
                cut = job.rest.popleft()
                if job.rest:
                    lane.append(job)
                return job, cut
        return None

    async def _loop(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            found = self._next()
            if found is None:
                self._work.clear()
                await self._work.wait()
                continue
            job, cut = found
            try:
                rows = await loop.run_in_executor(
                    self._thread, self._run, [job.items[index] for index in cut]
                )
            except (RuntimeError, ValueError, MemoryError) as exc:
                if not job.done.done():
                    job.done.set_exception(exc)
                continue
            self._keep(job, cut, rows)

    @staticmethod
    def _keep(job: _Job, cut: list[int], rows: Vectors) -> None:
        job.rows.update(zip(cut, rows, strict=True))
        if len(job.rows) == len(job.items) and not job.done.done():
            job.done.set_result(np.stack([job.rows[index] for index in range(len(job.items))]))
