"""Stopping reaches the server while it decodes. Counted in the server's own pieces, not by a clock."""

import asyncio

import pytest

from inference_client.adapters.kinds import ADAPTERS
from inference_client.adapters.scripted import Answer
from inference_client.testing.fault_server import Script
from tests.integration.inference_client.scenes import Scene, run_scene, until

GAP_S = 0.05
PIECES_IN_A_SECOND = round(1 / GAP_S)
LONG = Script(answer=Answer(words=(" word",) * 2000), gap_s=GAP_S)


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize("how", ["left", "cancelled"])
def test_a_decoding_server_sees_the_stop_within_a_second_of_pieces(name: str, how: str) -> None:
    """The server would write for 100 s; after the stop it may not get more than one second's pieces out."""

    async def scene(scene: Scene) -> tuple[int, int]:
        def written() -> int:
            return scene.upstream.seen[0].sent

        if how == "left":
            async with scene.call() as call:
                await anext(call)
                await anext(call)
                at_stop = written()
        else:
            task = asyncio.create_task(scene.read())
            await until(lambda: bool(scene.calls and scene.calls[0].usage and _sent(scene) > 200))
            at_stop = written()
            task.cancel()
            await asyncio.wait([task])
        await until(lambda: scene.upstream.seen[0].left_at is not None, 20)
        assert [call.record.outcome for call in scene.calls] == ["stopped"]
        return at_stop, written()

    at_stop, at_end = run_scene(scene, LONG, kind=ADAPTERS[name].kinds[0].name)
    largest = max(map(len, ADAPTERS[name].scripted(Answer(words=(" word",) * 3))))
    assert at_end - at_stop <= PIECES_IN_A_SECOND * largest


def _sent(scene: Scene) -> int:
    return scene.upstream.seen[0].sent if scene.upstream.seen else 0
