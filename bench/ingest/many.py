"""How near ingestion of many files comes to the embedder's own throughput: reading, cutting and committing counted in.

    python -m bench.ingest.many [--files 40] [--chunks 6000] [--rate 0 --rate 1000 --rate 2000] [--tools DIR]

Starts PostgreSQL and Valkey with the embedded stack and the ingestion workers as the product has them, puts all files
in line and waits for the last one. At rate 0 with a load tool's stand-in for the embedder (`upstream.py`), which takes
its CPU time from the same cores; at others with one that stands for an embedder on hardware of its own
(`bench.ingest.paced`). Prints a JSON line each: texts/s of the bare server and of ingestion from the first file in line
to the last one ready, their ratio, CPU-milliseconds a text of workers, PostgreSQL and stand-in, and the share of all
cores' time that these took together: near 1 the machine is what bounds it, not the pipeline.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from app.embedded.product import worker_program
from bench.ingest.__main__ import bare_rate, text
from bench.stack import (
    REPOSITORY,
    UPSTREAM_PORT,
    cpu,
    manage,
    place,
    prepare,
    services,
    tools_of_the_load,
    upstream,
    wait_for,
)

WORKERS = {"ingest": ("ingest", "ingest.small", "default"), "ingest-small": ("ingest.small", "default")}
"""With a queue that is not of ingestion: else they would yield to whatever else runs on the machine (`app.celery`)."""
_IN_LINE = """
import json, sys, time
from pathlib import Path
from app.accounts.selectors import caller_by_user, principal_of
from app.ops.told import person_named
from retrieval.collections import collection_create
from retrieval.lanes import lane
from retrieval.models import Document, Status
from retrieval.services import document_create
from retrieval.tasks import document_ingest
caller = caller_by_user(person_named(None, to="upload"))
files = sorted(Path({folder!r}).iterdir())
made = collection_create(name={name!r}, team_id=caller.default_team_id, created_by=principal_of(caller))
rows = [
    document_create(collection=made, name=f.name, content=f.read_bytes(), created_by=principal_of(caller))[0]
    for f in files
]
began = time.time()
for row in rows:
    document_ingest.apply_async((str(row.pk),), queue=lane(row.size))
mine = Document.objects.filter(collection=made)
while mine.exclude(status__in=("ready", "failed", "cancelled")).exists():
    time.sleep(0.2)
found = list(mine.values_list("status", "error_message", "chunk_count", "ready_at"))
print(json.dumps({{
    "failed": [said for status, said, *_ in found if status != "ready"],
    "chunks": sum(chunks for _, _, chunks, _ in found),
    "seconds": max((at for *_, at in found if at), default=made.created_at).timestamp() - began,
}}))
"""


def main() -> None:
    """Measure with each embedder and print."""
    options = arguments()
    with place() as (data, processes):
        env = services(data, core=None)
        server = embedder(options, options.rate[0])
        processes.append(server)
        prepare(env)
        workers = [worker(env, name, queues) for name, queues in WORKERS.items()]
        try:
            for number, rate in enumerate(options.rate):
                if number:
                    server.kill()
                    server.wait()
                    server = embedder(options, rate)
                    processes.append(server)
                put(env, files(data / f"warm{number}", 6, 60, first=10_000_000 * (number + 1)))
                folder = files(
                    data / f"files{number}", options.files, options.chunks, first=1_000_000 * number
                )
                print(json.dumps(measure(env, folder, server, workers)), flush=True)
        finally:
            for process in workers:
                # A worker's own processes end with it only when it is asked to.
                process.terminate()
                process.wait()


def measure(
    env: dict[str, str],
    folder: Path,
    server: subprocess.Popen[bytes],
    workers: list[subprocess.Popen[bytes]],
) -> dict[str, float]:
    """The figures of one embedder."""
    written = json.loads((Path(env["TESSERA_DATA"]) / "env.json").read_text())
    port = urlsplit(written["DATABASE_URL"]).port or 0
    before, worked = cpu(server.pid, port), workers_cpu(workers)
    found = put(env, folder)
    spent = {part: seconds - before[part] for part, seconds in cpu(server.pid, port).items()}
    spent["workers"] = workers_cpu(workers) - worked
    chunks, seconds = found["chunks"], found["seconds"]
    bare = bare_rate(chunks)
    return {
        "files": len(list(folder.iterdir())),
        "chunks": chunks,
        "bare_texts_per_s": round(bare),
        "ready_texts_per_s": round(chunks / seconds),
        "ratio": round(chunks / seconds / bare, 2),
        "worker_cpu_ms": round(spent["workers"] / chunks * 1e3, 2),
        "postgres_cpu_ms": round(spent["postgres"] / chunks * 1e3, 2),
        "server_cpu_ms": round(spent["web"] / chunks * 1e3, 2),
        "share_of_cores": round(sum(spent.values()) / seconds / (os.cpu_count() or 1), 2),
        "load": round(os.getloadavg()[0], 1),
    }


def put(env: dict[str, str], folder: Path) -> dict[str, float]:
    """Put a folder's files in line and wait until the last one is ready."""
    script = _IN_LINE.format(folder=str(folder), name=folder.name)
    found: dict[str, float] = json.loads(
        manage(env, "shell", "-v", "0", "-c", script).strip().splitlines()[-1]
    )
    if found["failed"]:
        sys.exit(f"Files were not embedded: {found['failed']}")
    return found


def files(folder: Path, count: int, chunks: int, *, first: int) -> Path:
    """So many files with so many chunks together."""
    folder.mkdir()
    each = chunks // count
    for number in range(count):
        text(folder, each, name=f"{number}.txt", first=first + number * each)
    return folder


def worker(env: dict[str, str], name: str, queues: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """One of the product's workers."""
    return subprocess.Popen(worker_program(name, queues).argv, cwd=REPOSITORY, env=env)


def workers_cpu(workers: list[subprocess.Popen[bytes]]) -> float:
    """CPU seconds so far of the workers with all below them, reading processes included."""
    trees = [psutil.Process(process.pid) for process in workers]
    every = [one for tree in trees for one in (tree, *tree.children(recursive=True))]
    return sum(sum(one.cpu_times()[:4]) for one in every)


def embedder(options: argparse.Namespace, rate: float) -> subprocess.Popen[bytes]:
    """The stand-in at this rate; at none the one that computes."""
    if not rate:
        return upstream(options.tools, gap_ms=0)
    words = ["-m", "bench.ingest.paced", "--port", str(UPSTREAM_PORT), "--rate", str(rate)]
    process = subprocess.Popen([sys.executable, *words], cwd=REPOSITORY)
    wait_for(process, f"http://127.0.0.1:{UPSTREAM_PORT}/health")
    return process


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--chunks", type=int, default=6000)
    parser.add_argument(
        "--rate", type=float, action="append", help="texts/s, again for more; 0: `upstream.py`"
    )
    parser.add_argument("--tools", type=Path, default=tools_of_the_load())
    options = parser.parse_args()
    options.rate = options.rate or [0.0, 1000.0, 2000.0]
    return options


if __name__ == "__main__":
    main()
