"""Many streams held open at once by one process: its memory for each, and whether one is lost."""

import asyncio
import gc
import json
import resource
import time

import psutil

from bench.inference.server import scripted
from inference_client.client import Client
from inference_client.errors import InferenceError
from inference_client.servers import Server, Timeouts
from inference_client.types import ChatRequest, Message

WORDS, GAP_MS = 60, 250
REQUEST = ChatRequest(model="m", messages=(Message("user", "Hello"),), max_output_tokens=WORDS)
PATIENT = Timeouts(connect=60, first_token=120, idle=120, total=600)


def measure(count: int) -> None:
    """One line."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(4096, count * 2 + 200)), hard))
    with scripted(words=WORDS, gap_ms=GAP_MS) as url:
        print(json.dumps({"streams": asyncio.run(_held(url, count))}), flush=True)


async def _held(url: str, count: int) -> dict[str, float]:
    client, server = Client(), Server(kind="openai-compatible", base_url=url, timeouts=PATIENT)
    process, open_now, everyone = psutil.Process(), 0, asyncio.Event()
    lost = 0

    async def stream() -> int:
        nonlocal open_now, lost
        first = True
        call = client.chat(server, REQUEST)
        try:
            async with call:
                async for _ in call:
                    if first:
                        first = False
                        open_now += 1
                        if open_now == count:
                            everyone.set()
        except InferenceError:
            lost += 1
        return call.record.usage.output_tokens or 0

    try:
        async with client.chat(server, REQUEST) as warm:
            await anext(warm)
        gc.collect()
        before, cpu, started = process.memory_info().rss, process.cpu_times(), time.perf_counter()
        tasks = [asyncio.create_task(stream()) for _ in range(count)]
        watch = asyncio.create_task(everyone.wait())
        await asyncio.wait([watch, asyncio.create_task(_all(tasks))], return_when=asyncio.FIRST_COMPLETED)
        held = process.memory_info().rss
        opened_s = time.perf_counter() - started
        tokens = sum(await asyncio.gather(*tasks))
        used = process.cpu_times()
        watch.cancel()
    finally:
        await client.aclose()
    return {
        "streams": count,
        "open_at_once": open_now,
        "lost": lost,
        "tokens_missing": count * WORDS - tokens,
        "kib_a_stream": round((held - before) / count / 1024, 1),
        "all_open_after_s": round(opened_s, 2),
        "cpu_us_a_token": round((used.user + used.system - cpu.user - cpu.system) / max(1, tokens) * 1e6, 1),
    }


async def _all(tasks: list[asyncio.Task[int]]) -> None:
    await asyncio.wait(tasks)
