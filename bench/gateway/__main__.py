"""How much of a request is ours: `/v1` and the chat path in front of a stand-in server, ledger on.

    python -m bench.gateway [--requests 2000] [--streams 1000] [--tools DIR]

Starts PostgreSQL and Valkey with the embedded stack, a load tool's stand-in for the inference server
(`upstream.py`) and one web process pinned to core 0; everything else runs on core 1. Prints one JSON line a
measurement: requests/s, first-token time beside the bare server's, and CPU-milliseconds a request of the web
process and of PostgreSQL. The tools are read from `TESSERA_SHARED`/bench.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.stack import (
    UPSTREAM_PORT,
    WEB_PORT,
    cpu,
    manage,
    place,
    prepare,
    services,
    tools_of_the_load,
    upstream,
    web,
)


def main() -> None:
    options = arguments()
    with place() as (data, processes):
        env = services(data)
        processes.append(upstream(options.tools, gap_ms=0))
        key, conversation = prepare(env)
        processes.append(web(env))
        for gap in (0, 2):
            processes[0].kill()
            processes[0] = upstream(options.tools, gap_ms=gap)
            measure(options, env, key, conversation, processes[1], gap)
        print(json.dumps(settings_of(env)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--tools", type=Path, default=tools_of_the_load())
    return parser.parse_args()


def measure(
    options: argparse.Namespace,
    env: dict[str, str],
    key: str,
    conversation: str,
    web: subprocess.Popen[bytes],
    gap: int,
) -> None:
    """All paths at one pace of the stand-in server, the bare server beside them."""
    head = ["--header", f"Authorization: Bearer {key}"]
    v1 = f"http://127.0.0.1:{WEB_PORT}/v1/chat/completions"
    turns = f"http://127.0.0.1:{WEB_PORT}/api/v1/conversations/{conversation}/turns/"
    bare = f"http://127.0.0.1:{UPSTREAM_PORT}/v1/chat/completions"
    body = Path(env["TESSERA_DATA"]) / "turn.json"
    body.write_text(
        json.dumps({"text": "How many words are in this question?", "parent": None, "collections": []})
    )
    whole, streamed = str(options.requests), str(options.streams)
    written = json.loads((Path(env["TESSERA_DATA"]) / "env.json").read_text())
    port = urlsplit(written["DATABASE_URL"]).port or 0
    load(options, v1, "-c", "8", "-n", "200", *head)  # warm
    for name, url, n, words in (
        ("bare server", bare, whole, []),
        ("/v1", v1, whole, head),
        ("bare server streamed", bare, streamed, ["--stream"]),
        ("/v1 streamed", v1, streamed, ["--stream", *head]),
        ("chat streamed", turns, streamed, ["--stream", "--body", str(body), *head]),
    ):
        before = cpu(web.pid, port)
        found = load(options, url, "-c", str(options.connections), "-n", n, *words)
        spent = {part: seconds - before[part] for part, seconds in cpu(web.pid, port).items()}
        per = {part: round(s * 1e3 / max(1, found["ok"]), 2) for part, s in spent.items()}
        one = load(options, url, "-c", "1", "-n", "200", *words)
        print(
            json.dumps(
                {
                    "path": name,
                    "gap_ms": gap,
                    "per_s": found["rps"],
                    "ok": found["ok"],
                    "errors": found["errors"],
                    "cpu_ms": {} if name.startswith("bare") else per,
                    "one_at_a_time": {"ttft_ms": one["ttft_ms"], "total_ms": one["total_ms"]},
                }
            ),
            flush=True,
        )


def load(options: argparse.Namespace, url: str, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(options.tools / "load.py"), url, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def settings_of(env: dict[str, str]) -> dict[str, Any]:
    """What the figures rest on: fsync settings and the cost of one."""
    shown = manage(env, "shell", "-v", "0", "-c", _SETTINGS).strip().splitlines()[-1]
    found: dict[str, Any] = json.loads(shown)
    with tempfile.NamedTemporaryFile(dir=env["TESSERA_DATA"]) as file:
        start = time.perf_counter()
        for _ in range(50):
            file.write(b"x" * 512)
            file.flush()
            os.fdatasync(file.fileno())
        found["fdatasync_ms"] = round((time.perf_counter() - start) / 50 * 1e3, 2)
    return found


_SETTINGS = """
import json
from django.db import connection
with connection.cursor() as c:
    c.execute("SELECT name, setting FROM pg_settings WHERE name IN ('fsync','synchronous_commit','wal_sync_method')")
    print(json.dumps(dict(c.fetchall())))
"""


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
