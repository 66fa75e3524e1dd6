"""The order of work, with a model that only counts: no weights, no clock."""

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from app.embedded.e5_tokenizer import Encoded
from app.embedded.embed_batcher import CUT_TOKENS, MAX_WAITING, Batcher, Overfull, cuts


def text(length: int, mark: int = 0) -> Encoded:
    return Encoded(ids=(mark,) * length, truncated=False)


class Gate:
    """A model that waits for permission before each cut and writes down what it was given."""

    def __init__(self) -> None:
        self.permits = threading.Semaphore(0)
        self.seen: list[list[int]] = []

    def __call__(self, batch: Sequence[Encoded]) -> npt.NDArray[np.float32]:
        self.permits.acquire()
        self.seen.append([item.ids[0] for item in batch])
        return np.array([[item.ids[0], len(item.ids)] for item in batch], np.float32)


@pytest.mark.parametrize(
    ("lengths", "budget", "sizes"),
    [
        ([], 100, []),
        ([100], 100, [1]),
        ([600], 100, [1]),
        ([50, 50, 50], 100, [2, 1]),
        ([10, 90, 10, 90], 100, [2, 1, 1]),
        ([1] * 10, 4, [4, 4, 2]),
    ],
)
def test_cuts_hold_their_budget(lengths: list[int], budget: int, sizes: list[int]) -> None:
    items = [text(length) for length in lengths]
    groups = list(cuts(items, budget))
    assert [len(group) for group in groups] == sizes
    assert sorted(index for group in groups for index in group) == list(range(len(items)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[i] for i in group) <= budget


def test_vectors_come_back_in_the_order_asked() -> None:
    async def scenario() -> npt.NDArray[np.float32]:
        gate = Gate()
        gate.permits.release(100)
        batcher = Batcher(gate)
        batcher.start()
        found = await batcher.embed(
            [text(length, mark=length) for length in (300, 5, 400, 7, 2)], lane="passage"
        )
        await batcher.stop()
        return found

    assert asyncio.run(scenario())[:, 0].tolist() == [300, 5, 400, 7, 2]


def test_a_query_waits_for_one_cut_at_most_and_requests_take_turns() -> None:
    async def scenario() -> list[list[int]]:
        gate = Gate()
        batcher = Batcher(gate)
        batcher.start()
        size = CUT_TOKENS
        first = asyncio.ensure_future(batcher.embed([text(size, 1)] * 3, lane="passage"))
        second = asyncio.ensure_future(batcher.embed([text(size, 2)] * 2, lane="passage"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        # The first cut of the first request is with the model now.
        query = asyncio.ensure_future(batcher.embed([text(3, 9)], lane="query"))
        await asyncio.sleep(0)
        gate.permits.release(100)
        await asyncio.gather(first, second, query)
        await batcher.stop()
        return gate.seen

    assert asyncio.run(scenario()) == [[1], [9], [2], [1], [2], [1]]


def test_what_nobody_waits_for_is_not_computed() -> None:
    async def scenario() -> list[list[int]]:
        gate = Gate()
        batcher = Batcher(gate)
        batcher.start()
        left = asyncio.ensure_future(batcher.embed([text(CUT_TOKENS, 1)] * 50, lane="passage"))
        stays = asyncio.ensure_future(batcher.embed([text(4, 2)], lane="passage"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        gate.permits.release(100)
        await stays
        # The place in the queue is free again.
        await batcher.embed([text(1, 3)] * MAX_WAITING, lane="passage")
        await batcher.stop()
        return gate.seen

    seen = asyncio.run(scenario())
    assert seen[:2] == [[1], [2]]
    assert all(marks[0] == 3 for marks in seen[2:])


def test_too_much_waiting_is_refused_at_once() -> None:
    async def scenario() -> None:
        batcher = Batcher(Gate())
        await batcher.embed([text(1)] * (MAX_WAITING + 1), lane="passage")

    with pytest.raises(Overfull):
        asyncio.run(scenario())


def test_an_error_reaches_its_caller_only() -> None:
    def run(batch: Sequence[Encoded]) -> npt.NDArray[np.float32]:
        if batch[0].ids[0] == 1:
            raise RuntimeError("bad batch")
        return np.zeros((len(batch), 2), np.float32)

    async def scenario() -> tuple[object, object]:
        batcher = Batcher(run)
        batcher.start()
        results = await asyncio.gather(
            batcher.embed([text(2, 1)], lane="query"),
            batcher.embed([text(2, 2)], lane="query"),
            return_exceptions=True,
        )
        await batcher.stop()
        return results[0], results[1]

    bad, good = asyncio.run(scenario())
    assert isinstance(bad, RuntimeError)
    assert isinstance(good, np.ndarray)
