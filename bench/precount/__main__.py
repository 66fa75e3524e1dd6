"""What the pre-count itself costs: beside bare tiktoken, and with a long history behind a question.

    python -m bench.precount [--tokens 100000] [--runs 5]

Prints one JSON line a measurement. Needs no database and no server; the texts are those of `TESSERA_SHARED`, or made.
"""

import argparse
import asyncio
import gc
import gzip
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import django

CORPUS = Path(os.environ.get("TESSERA_SHARED", "../shared")) / "data" / "ir" / "scifact" / "corpus.jsonl.gz"


def main() -> None:
    """Both measurements."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.precount",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tokens", type=int, default=100_000, help="of history")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    print(json.dumps({"settings": machine | {"tiktoken": version("tiktoken")}}), flush=True)
    for together in (1, 8):
        throughput(options.runs, together)
    asyncio.run(history(options.tokens, options.runs))


def texts() -> list[str]:
    """Abstracts, or as many made-up ones."""
    if CORPUS.exists():
        return [json.loads(row)["text"] for row in gzip.decompress(CORPUS.read_bytes()).splitlines()]
    chance = random.Random(1)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 11))) for _ in range(5000)
    ]
    return [" ".join(chance.choices(words, k=220)) + "." for _ in range(5000)]


def cpu_of(work: Callable[[], Any]) -> float:
    """Seconds of CPU, which other work on the machine changes little."""
    began = time.process_time()
    work()
    return time.process_time() - began


def told(name: str, spent: list[float], **more: Any) -> None:
    """One line: the median with the spread, in milliseconds."""
    figures = {"median_ms": statistics.median(spent), "least_ms": min(spent), "most_ms": max(spent)}
    print(
        json.dumps({"measured": name, **{k: round(v * 1e3, 2) for k, v in figures.items()}, **more}),
        flush=True,
    )


def throughput(runs: int, together: int) -> None:
    """Every text for the first time, beside the bare library on the same texts."""
    from app.chat.planning import estimate_of  # noqa: PLC0415 - Django must be set up
    from app.gate import counting  # noqa: PLC0415
    from inference_client.tokens import counter  # noqa: PLC0415

    whole = texts()[:1000]
    found = ["\n\n".join(whole[at : at + together]) for at in range(0, len(whole), together)]
    count = counter().count
    tokens = sum(map(count, found))
    bare, ours = [], []
    asks = [replace(asking(), question=text) for text in found]
    for _ in range(runs):
        # In turns, so that what else the machine does falls on both.
        bare.append(cpu_of(lambda: [count(text) for text in found]))
        counting.texts_forget()
        ours.append(cpu_of(lambda: [estimate_of(ask) for ask in asks]))
    told("tiktoken alone, CPU", bare, tokens_per_s=round(tokens / statistics.median(bare)))
    share = statistics.median(bare) / statistics.median(ours)
    told(
        "pre-count",
        ours,
        tokens_per_s=round(tokens / statistics.median(ours)),
        tokens_each=tokens // len(found),
        share_of_tiktoken=round(share, 3),
    )


async def history(tokens: int, runs: int) -> None:
    """A question behind a history: the first time in this process, again, and until the server has the request."""
    from app.chat.planning import counted_at_once, spoken  # noqa: PLC0415
    from app.chat.precount import Pair  # noqa: PLC0415
    from app.gate import counting  # noqa: PLC0415
    from app.gate.clients import client, client_close, server_of  # noqa: PLC0415
    from inference_client.testing.fault_server import FaultServer  # noqa: PLC0415
    from inference_client.tokens import counter  # noqa: PLC0415
    from inference_client.types import ChatRequest  # noqa: PLC0415

    found, pairs, size = iter(texts() * 10), [], 0
    while size < tokens:
        pair = Pair(next(found)[:300], next(found))
        size += counter().count(pair.question) + counter().count(pair.answer)
        pairs.append(pair)
    ask = replace(asking(), history=tuple(pairs), question="And what follows from all this?")
    counting.texts_forget()
    began = time.process_time()
    await counted_at_once(ask)
    first = [time.process_time() - began]
    again, sent = [], []
    async with FaultServer() as server:
        target = replace(ask.targets[0], base_url=f"{server.url}/v1")
        for number in range(runs):
            now = replace(ask, targets=(target,), question=f"And what follows, number {number}?")
            began, cpu = time.perf_counter(), time.process_time()
            now, estimate = await counted_at_once(now)
            again.append(time.process_time() - cpu)
            request = ChatRequest(
                model="m", messages=spoken(now, estimate), max_output_tokens=estimate.max_output_tokens
            )
            counting.prompt_sent(target, request)
            loop_at = asyncio.get_running_loop().time()
            async with client().chat(server_of(target), request) as call:
                async for _ in call:
                    break
            sent.append(time.perf_counter() - began - (asyncio.get_running_loop().time() - loop_at))
            sent[-1] += server.seen[-1].arrived_at - loop_at
        await client_close()
    told("history for the first time, CPU", first, tokens=size, messages=2 * len(pairs))
    told("history counted before, CPU", again, tokens=size)
    told("from Send until the server has it all, by the clock, without database", sent, tokens=size)


def asking() -> Any:
    """A question of nobody in particular, to a model with a large window."""
    from app.accounts.selectors import Caller  # noqa: PLC0415
    from app.catalog.selectors import Target  # noqa: PLC0415
    from app.chat.types import Ask  # noqa: PLC0415

    target = Target(
        deployment_id=uuid4(), public_name="m", upstream_model="m", price_key="m", context_window=1_000_000,
        max_output_tokens=1024, clearance="private", tokenizer="o200k_base", abort_stops_billing=True, slots=8,
        is_demonstration=False, kind="openai", base_url="http://127.0.0.1:1", api_key="", leaves_premises=False,
        backend_name="b", region="",
    )  # fmt: skip
    caller = Caller(
        user_id=None, account_id=None, key_id=None, default_team_id=uuid4(), roles=(), scopes=frozenset(),
        models_allowed=None, is_staff=False,
    )  # fmt: skip
    return Ask(
        turn_id=uuid4(), request_id="", caller=caller, team_id=caller.default_team_id, team_name="", targets=(target,),
        question="",
    )  # fmt: skip


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")
    django.setup()
    gc.freeze()
    sys.exit(main())
