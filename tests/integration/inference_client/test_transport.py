"""What each fault of the network is called: a wrong name here makes somebody pay twice."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import httpx
import pytest

from inference_client.connector import Sending
from inference_client.errors import BrokenStream, InferenceError, MalformedAnswer, Unreachable
from inference_client.testing.fault_server import FaultServer, Script
from inference_client.transport import Reply, Sockets, Transport, read_all

OK = Script(body=(b"one", b"two"), content_type="text/plain")


def run(scene: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(scene(), 30))


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _strict(url: str, *, connect: float | None = None, read: float | None = None) -> bytes:
    sockets, limits = Sockets(), aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=read)
    try:
        response = await sockets.request("POST", url, headers={}, body=b"{}", limits=limits)
        reply = Reply(response)
        try:
            return await read_all(reply, 1000)
        finally:
            reply.close()
    finally:
        await sockets.aclose()


CUT = Script(body=(b"x" * 100,), cut_at=50, ending="drop")
FAULTS: list[tuple[str, Script | None, dict[str, float], type[Exception]]] = [
    ("refused", None, {}, httpx.ConnectError),
    ("read_and_dropped", Script(answers=False), {}, httpx.RemoteProtocolError),
    ("read_and_reset", Script(answers=False, ending="reset"), {}, httpx.ReadError),
    ("silent", Script(wait_s=30), {"read": 0.1}, httpx.ReadTimeout),
    ("cut_body", CUT, {}, BrokenStream),
    ("reset_body", Script(body=(b"x" * 100,), cut_at=50, ending="reset"), {}, BrokenStream),
    ("silent_body", Script(body=(b"x" * 100,), cut_at=50, ending="hang"), {"read": 0.1}, BrokenStream),
    ("long_header", Script(headers={"x": "y" * 100_000}), {}, httpx.RemoteProtocolError),
]


@pytest.mark.parametrize(("name", "script", "timeout", "expected"), FAULTS, ids=[row[0] for row in FAULTS])
def test_every_fault_has_httpx_own_name(
    name: str, script: Script | None, timeout: dict[str, float], expected: type[Exception]
) -> None:
    async def scene() -> bytes:
        if script is None:
            return await _strict(f"http://127.0.0.1:{_closed_port()}/v1", connect=2)
        async with FaultServer(script) as upstream:
            return await _strict(f"{upstream.url}/v1", **timeout)

    with pytest.raises((httpx.TransportError, BrokenStream)) as caught:
        run(scene)
    assert type(caught.value) is expected, name


@pytest.mark.parametrize(
    "url", ["http://nowhere\x00", "ftp://127.0.0.1/", "http://nowhere.invalid/", "https://127.0.0.1:{port}/"]
)
def test_what_never_leaves_the_machine_is_never_sent(url: str) -> None:
    async def scene() -> None:
        transport = Transport()
        async with FaultServer(OK) as upstream:
            port = upstream.url.rpartition(":")[2]
            try:
                await transport.send("POST", url.format(port=port), headers={}, connect_s=2)
            finally:
                await transport.aclose()

    with pytest.raises(Unreachable) as caught:
        run(scene)
    assert caught.value.never_sent


def test_a_connection_that_does_not_come_about_in_time() -> None:
    """A listener with a full queue lets connections hang."""

    async def scene() -> bytes:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            address = listener.getsockname()
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(address)
            try:
                return await _strict(f"http://127.0.0.1:{address[1]}/", connect=0.2)
            finally:
                for filler in fillers:
                    filler.close()

    with pytest.raises(httpx.ConnectTimeout):
        run(scene)


# ------------------------------------------------------------------------------------------ used connections


async def _two(upstream: FaultServer, *, pause_s: float = 0.0, keepalive_s: float = 2.0) -> list[Sending]:
    transport = Transport(keepalive_s=keepalive_s)
    sendings = [Sending(), Sending()]
    try:
        for sending in sendings:
            reply = await transport.send(
                "POST", f"{upstream.url}/x", headers={}, body=b"{}", connect_s=2, sending=sending
            )
            await read_all(reply, 1000)
            reply.close()
            await asyncio.sleep(pause_s)
    finally:
        await transport.aclose()
    return sendings


def test_a_connection_is_used_again() -> None:
    async def scene() -> tuple[list[Sending], list[bool]]:
        async with FaultServer(OK) as upstream:
            return await _two(upstream), [seen.first_on_connection for seen in upstream.seen]

    sendings, firsts = run(scene)
    assert [sending.reused for sending in sendings] == [False, True]
    assert firsts == [True, False]


def test_an_idle_connection_is_given_up_before_the_server_does() -> None:
    async def scene() -> list[bool]:
        async with FaultServer(OK) as upstream:
            await _two(upstream, pause_s=0.3, keepalive_s=0.1)
            return [seen.first_on_connection for seen in upstream.seen]

    assert run(scene) == [True, True]


@pytest.mark.parametrize("ending", ["drop", "reset"])
def test_a_used_connection_closed_without_a_byte_is_tried_once_more(ending: Any) -> None:
    async def scene() -> list[bool]:
        async with FaultServer(OK, Script(answers=False, ending=ending), OK) as upstream:
            await _two(upstream)
            return [seen.first_on_connection for seen in upstream.seen]

    assert run(scene) == [True, False, True]


def test_it_is_tried_only_once_more() -> None:
    async def scene() -> None:
        async with FaultServer(OK, Script(answers=False)) as upstream:
            try:
                await _two(upstream)
            finally:
                assert len(upstream.seen) == 3

    with pytest.raises(BrokenStream) as caught:
        run(scene)
    assert not caught.value.never_sent


def test_a_new_connection_closed_without_a_byte_is_not_tried_again() -> None:
    async def scene() -> None:
        async with FaultServer(Script(answers=False)) as upstream:
            try:
                await _two(upstream)
            finally:
                assert len(upstream.seen) == 1

    with pytest.raises(BrokenStream):
        run(scene)


# ------------------------------------------------------------------------------------------ reading


def test_closing_while_reading_ends_the_reading() -> None:
    async def scene() -> None:
        async with FaultServer(Script(body=(b"x",), ending="hang")) as upstream:
            transport = Transport()
            reply = await transport.send("GET", upstream.url, headers={}, connect_s=2)
            assert await reply.read() == b"x"
            asyncio.get_running_loop().call_later(0.05, reply.close)
            try:
                await reply.read()
            finally:
                await transport.aclose()

    with pytest.raises(BrokenStream):
        run(scene)


def test_what_arrived_before_the_break_is_read_first() -> None:
    async def scene() -> bytes:
        async with FaultServer(Script(body=(b"a" * 10, b"b" * 10), cut_at=15, ending="drop")) as upstream:
            transport = Transport()
            reply = await transport.send("GET", upstream.url, headers={}, connect_s=2)
            await asyncio.sleep(0.1)
            data = await reply.read()
            with pytest.raises(BrokenStream):
                await reply.read()
            await transport.aclose()
            return data

    assert run(scene) == b"a" * 10 + b"b" * 5


def test_a_large_request_arrives_whole() -> None:
    async def scene() -> int:
        async with FaultServer(OK) as upstream:
            transport = Transport()
            body = b"x" * 3_000_000
            await transport.fetch("POST", upstream.url, headers={}, body=body, connect_s=2, max_bytes=100)
            await transport.aclose()
            return len(upstream.seen[0].body)

    assert run(scene) == 3_000_000


def test_a_body_over_the_cap_is_refused() -> None:
    async def scene() -> None:
        async with FaultServer(OK) as upstream:
            transport = Transport()
            try:
                await transport.fetch("GET", upstream.url, headers={}, connect_s=2, max_bytes=5)
            finally:
                await transport.aclose()

    with pytest.raises(MalformedAnswer) as caught:
        run(scene)
    assert isinstance(caught.value, InferenceError)


def test_closing_an_unused_transport_is_no_error() -> None:
    run(lambda: Transport().aclose())
    run(lambda: Sockets().aclose())


def test_an_answer_larger_than_what_is_kept_in_memory_arrives_whole() -> None:
    async def scene() -> int:
        pieces = tuple(bytes([number % 251]) * 60_000 for number in range(60))
        async with FaultServer(Script(body=pieces, content_type="text/plain")) as upstream:
            transport = Transport()
            reply = await transport.send("POST", upstream.url, headers={}, body=b"{}", connect_s=2)
            # Until the connection has been paused: nothing is taken out, and more comes than is kept.
            await asyncio.sleep(0.2)
            body = await read_all(reply, 10_000_000)
            assert body == b"".join(pieces)
            reply.close()
            await transport.aclose()
            return len(body)

    assert run(scene) == 3_600_000
