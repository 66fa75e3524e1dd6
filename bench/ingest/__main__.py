"""How near ingestion comes to the embedder's own throughput, and what memory its process takes.

    python -m bench.ingest [--chunks 6000] [--tools DIR]

Starts PostgreSQL and Valkey with the embedded stack and a load tool's stand-in for the embedding server
(`upstream.py`) on a core of its own, embeds one long text by the product's own pipeline, ledger on, and asks the same
batches of the bare server. Prints one JSON line: texts/s of both, the ratio of the embedding stage and of all from its
begin to the commit's end, the stages' seconds, CPU-milliseconds a text of each part, what entering the vectors into
the approximate index takes afterwards (a task of its own, while search compares them one by one), and the peak memory.
CPU time bears a machine with other work on it; the rest does not.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from bench.stack import REPOSITORY, UPSTREAM_PORT, cpu, manage, place, prepare, services, upstream

BATCH_TEXTS, IN_FLIGHT = 32, 3
"""As in `retrieval.drafts`, which needs Django."""

_FACTS = """
import json
from retrieval.models import Document
row = Document.objects.get(name="long.txt")
# The last progress is the commit's begin.
print(json.dumps({"chunks": row.chunk_count, "status": row.status, "error": row.error_message,
    "read_s": (row.stage_at - row.queued_at).total_seconds(),
    "embed_s": (row.progressed_at - row.stage_at).total_seconds(),
    "commit_s": (row.ready_at - row.progressed_at).total_seconds() if row.ready_at else None}))
"""


def main() -> None:
    """Measure once and print."""
    options = arguments()
    with place() as (data, processes):
        env = services(data, core=0)
        server = upstream(options.tools, gap_ms=0)
        processes.append(server)
        os.sched_setaffinity(server.pid, {1 % (os.cpu_count() or 1)})
        prepare(env)
        print(json.dumps(measure(env, data, options.chunks, server.pid)), flush=True)


def measure(env: dict[str, str], data: Path, chunks: int, server: int) -> dict[str, float]:
    """The figures of one run."""
    written = json.loads((data / "env.json").read_text())
    port = urlsplit(written["DATABASE_URL"]).port or 0
    # What a worker has done before its first long file: a short one loads everything. Once alone, for its time.
    for number in (1, 2):
        (data / f"warm{number}.txt").write_text(f"A few words, and {number} more.")
    _, loading_s = ingest(env, data / "warm1.txt")
    before = cpu(server, port)
    peak, worker_s = ingest(env, data / "warm2.txt", text(data, chunks))
    embedded = cpu(server, port)
    began = time.monotonic()
    manage(env, "shell", "-v", "0", "-c", "from retrieval.spaces import vectors_fold; vectors_fold()")
    index_s = time.monotonic() - began
    spent = {part: seconds - before[part] for part, seconds in embedded.items()}
    index_cpu_s = cpu(server, port)["postgres"] - embedded["postgres"]
    facts = json.loads(manage(env, "shell", "-v", "0", "-c", _FACTS).strip().splitlines()[-1])
    if facts["status"] != "ready":
        sys.exit(f"The text was not embedded: {facts['error']}")
    count, bare = facts["chunks"], bare_rate(facts["chunks"])
    embedding, whole = count / facts["embed_s"], count / (facts["embed_s"] + facts["commit_s"])
    return {
        "chunks": count,
        "bare_texts_per_s": round(bare),
        "embedding_texts_per_s": round(embedding),
        "embedding_ratio": round(embedding / bare, 2),
        "committed_texts_per_s": round(whole),
        "committed_ratio": round(whole / bare, 2),
        "read_and_chunk_s": round(facts["read_s"], 1),
        "embed_s": round(facts["embed_s"], 1),
        "commit_s": round(facts["commit_s"], 1),
        "index_s": round(index_s, 1),
        "worker_cpu_ms": round((worker_s - loading_s) / count * 1e3, 2),
        "postgres_cpu_ms": round(spent["postgres"] / count * 1e3, 2),
        "index_cpu_ms": round(index_cpu_s / count * 1e3, 2),
        "server_cpu_ms": round(spent["web"] / count * 1e3, 2),
        "peak_rss_mb": round(peak / 1e6),
        "load": round(os.getloadavg()[0], 1),
    }


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=6000)
    shared = Path(os.environ.get("TESSERA_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--tools", type=Path, default=shared / "bench")
    return parser.parse_args()


def text(folder: Path, chunks: int, *, name: str = "long.txt", first: int = 0) -> Path:
    """A file that gives about so many chunks, no two alike; nor those of a file whose numbers are others."""
    path = folder / name
    with path.open("w") as out:
        for number in range(first, first + chunks):
            out.write(f"Paragraph {number}. " + f"Valve {number} of the plant opens at noon. " * 22 + "\n\n")
    return path


def ingest(env: dict[str, str], *paths: Path) -> tuple[int, float]:
    """Read, cut, embed and commit files in a process of its own; its peak memory in bytes, its CPU seconds."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", "ingest", *map(str, paths), "--collection", "Bench"],
        cwd=REPOSITORY,
        env=env,
        stdout=subprocess.DEVNULL,
    )
    watched, peak, seconds = psutil.Process(process.pid), 0, 0.0
    while process.poll() is None:
        with suppress(psutil.NoSuchProcess):
            peak = max(peak, watched.memory_info().rss)
            seconds = max(seconds, sum(watched.cpu_times()[:2]))
        time.sleep(0.1)
    return peak, seconds


def bare_rate(texts: int) -> float:
    """Texts a second that the server gives to as many connections as the pipeline uses."""
    batches = iter(range(0, texts, BATCH_TEXTS))
    lock = threading.Lock()
    began = time.monotonic()
    threads = [threading.Thread(target=_ask, args=(batches, lock)) for _ in range(IN_FLIGHT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return texts / (time.monotonic() - began)


def _ask(batches: Iterator[int], lock: threading.Lock) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", UPSTREAM_PORT, timeout=60)
    while True:
        with lock:
            start = next(batches, None)
        if start is None:
            connection.close()
            return
        inputs = [
            f"Paragraph {start + n}. " + f"Valve {start + n} of the plant opens at noon. " * 22
            for n in range(BATCH_TEXTS)
        ]
        connection.request("POST", "/v1/embeddings", json.dumps({"model": "bench", "input": inputs}))
        connection.getresponse().read()


if __name__ == "__main__":
    main()
