"""How near ingestion comes to the embedder's own throughput, and what memory its process takes.

    python -m bench.ingest [--chunks 6000] [--tools DIR]

Starts PostgreSQL and Valkey with the embedded stack and a load tool's stand-in for the embedding server
(`upstream.py`), embeds one long text by the product's own pipeline, ledger on, and asks the same batches of the
bare server. Prints one JSON line: texts/s of both, their ratio, the stages' seconds, and the peak memory.
"""

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.gateway.__main__ import REPOSITORY, UPSTREAM_PORT, manage, prepare, services, upstream

BATCH_TEXTS, IN_FLIGHT = 32, 2
"""As in `retrieval.drafts`, which needs Django."""

_FACTS = """
import json
from retrieval.models import Document
row = Document.objects.get(name="long.txt")
print(json.dumps({"chunks": row.chunk_count, "status": row.status, "error": row.error_message,
    "read_s": (row.stage_at - row.queued_at).total_seconds(),
    "embed_s": (row.ready_at - row.stage_at).total_seconds() if row.ready_at else None}))
"""


def main() -> None:
    """Measure once and print."""
    options = arguments()
    data = Path(tempfile.mkdtemp(prefix="tessera-bench-"))
    data.chmod(0o755)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        env = services(data)
        processes.append(upstream(options, gap_ms=0))
        prepare(env)
        peak = ingest(env, text(data, options.chunks))
        facts = json.loads(manage(env, "shell", "-v", "0", "-c", _FACTS).strip().splitlines()[-1])
        if facts["status"] != "ready":
            sys.exit(f"The text was not embedded: {facts['error']}")
        bare = bare_rate(facts["chunks"])
        rate = facts["chunks"] / facts["embed_s"]
        figures = {
            "chunks": facts["chunks"],
            "texts_per_s": round(rate),
            "bare_texts_per_s": round(bare),
            "ratio": round(rate / bare, 2),
            "read_and_chunk_s": round(facts["read_s"], 1),
            "embed_and_commit_s": round(facts["embed_s"], 1),
            "peak_rss_mb": round(peak / 1e6),
            "load": round(os.getloadavg()[0], 1),
        }
        print(json.dumps(figures), flush=True)
    finally:
        for process in processes:
            process.kill()
        manage({**os.environ, "TESSERA_DATA": str(data)}, "down", "--data", str(data), check=False)
        shutil.rmtree(data, ignore_errors=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=6000)
    shared = Path(os.environ.get("TESSERA_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--tools", type=Path, default=shared / "bench")
    return parser.parse_args()


def text(folder: Path, chunks: int) -> Path:
    """A file that gives about so many chunks, no two alike."""
    path = folder / "long.txt"
    with path.open("w") as out:
        for number in range(chunks):
            out.write(f"Paragraph {number}. " + f"Valve {number} of the plant opens at noon. " * 22 + "\n\n")
    return path


def ingest(env: dict[str, str], path: Path) -> int:
    """Read, cut, embed and commit the file in a process of its own; its peak memory in bytes."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", "ingest", str(path), "--collection", "Bench"],
        cwd=REPOSITORY,
        env=env,
        stdout=subprocess.DEVNULL,
    )
    watched, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        peak = max(peak, watched.memory_info().rss)
        time.sleep(0.1)
    return peak


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
