"""What reading documents takes from those who chat: the chat's p95 with and without ten thousand pages under way.

    python -m bench.ingest.chat [--pages 10000] [--people 8] [--tools DIR]

Starts PostgreSQL and Valkey with the embedded stack, one web process alone on core 0, and on core 1 all else: the
stand-in for the chat server (`upstream.py`, first token after 20 ms, then one each 5 ms, 64 in all), another for the
embedder, the load, and ingestion. Ingestion yields to others (`nice`) as the product's own workers do, and so does the
embedder, which stands for one elsewhere. So many people ask one question after the other; first alone, then while PDFs
of 500 pages are read, cut, embedded and committed, until the last one is ready. The bare chat server is asked the same
in turns: what it loses meanwhile, the machine lost to the load, not the product. Prints one JSON line: p50 and p95 of
the first token and of the whole answer in ms, their ratios, and how many pages were read a second.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from bench.gateway.__main__ import load
from bench.stack import (
    REPOSITORY,
    UPSTREAM_PORT,
    WEB_PORT,
    manage,
    place,
    prepare,
    services,
    tools_of_the_load,
    upstream,
    web,
)

PAGES_A_FILE = 500
ROUND = 160
"""Answers of one round of the load; the last one ends after the ingestion."""
YIELDING = 10
EMBEDDER_PORT = UPSTREAM_PORT + 2

_READ = """
from django.db.models import Count, Sum
from retrieval.models import Document
import json
print(json.dumps(Document.objects.filter(status="ready").aggregate(pages=Sum("pages"), chunks=Sum("chunk_count"))))
"""


def main() -> None:
    """Measure once and print."""
    options = arguments()
    with place() as (data, processes):
        env = services(data)
        env["EMBEDDING_URL"] = f"http://127.0.0.1:{EMBEDDER_PORT}/v1"
        processes.append(upstream(options.tools, ttft_ms=20, gap_ms=5))
        processes.append(upstream(options.tools, gap_ms=0, port=EMBEDDER_PORT))
        os.setpriority(os.PRIO_PROCESS, processes[-1].pid, YIELDING)
        key, conversation = prepare(env)
        processes.append(web(env))
        print(json.dumps(measure(options, env, key, conversation, processes)), flush=True)


def measure(
    options: argparse.Namespace,
    env: dict[str, str],
    key: str,
    conversation: str,
    processes: list[subprocess.Popen[bytes]],
) -> dict[str, Any]:
    """The figures of one run."""
    folder = Path(env["TESSERA_DATA"]) / "pages"
    folder.mkdir()
    for number in range(max(1, options.pages // PAGES_A_FILE)):
        pdf(folder / f"{number}.pdf", number, min(PAGES_A_FILE, options.pages))
    body = folder.parent / "turn.json"
    body.write_text(json.dumps({"text": "How many words?", "parent": None, "collections": []}))
    url = f"http://127.0.0.1:{WEB_PORT}/api/v1/conversations/{conversation}/turns/"
    people = ["--stream", "-c", str(options.people)]
    chat = [url, *people, "--body", str(body), "--header", f"Authorization: Bearer {key}"]
    bare = [f"http://127.0.0.1:{UPSTREAM_PORT}/v1/chat/completions", *people]
    load(options, *chat, "-n", str(options.people * 4))  # warm
    alone = [asked(options, chat, bare) for _ in range(3)]
    began = time.monotonic()
    ingestion = reading(env, folder)
    processes.append(ingestion)
    meanwhile = []
    while ingestion.poll() is None:
        meanwhile.append(asked(options, chat, bare))
    seconds = time.monotonic() - began
    read = json.loads(manage(env, "shell", "-v", "0", "-c", _READ).strip().splitlines()[-1])
    before, during = middle(alone), middle(meanwhile)
    return {
        "pages": read["pages"],
        "chunks": read["chunks"],
        "pages_per_s": round((read["pages"] or 0) / seconds, 1),
        "people": options.people,
        "alone_ms": before,
        "while_reading_ms": during,
        "ratio_p95": {name: round(during[name]["p95"] / before[name]["p95"], 2) for name in during},
        "errors": [item["errors"] for pair in (*alone, *meanwhile) for item in pair if item["errors"]],
        "load": round(os.getloadavg()[0], 1),
    }


def reading(env: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    """Ingestion of a folder, under way; it yields to others."""
    words = ["nice", "-n", str(YIELDING), sys.executable, "manage.py", "ingest", str(folder)]
    words += ["--collection", "Bench"]
    return subprocess.Popen(words, cwd=REPOSITORY, env=env, stdout=subprocess.DEVNULL)


def asked(
    options: argparse.Namespace, chat: list[str], bare: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One round of the chat, and one of the bare server."""
    return load(options, *chat, "-n", str(ROUND)), load(options, *bare, "-n", str(ROUND))


def middle(rounds: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, dict[str, float]]:
    """The median over rounds of each figure."""
    return {
        f"{path} {what}": {
            q: sorted(pair[at][f"{what}_ms"][q] for pair in rounds)[len(rounds) // 2] for q in ("p50", "p95")
        }
        for at, path in enumerate(("chat", "bare"))
        for what in ("ttft", "total")
    }


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--tools", type=Path, default=tools_of_the_load())
    return parser.parse_args()


def pdf(path: Path, number: int, pages: int) -> None:
    """A PDF of pages of running text, no two alike."""
    parts = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    parts.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    bodies: list[bytes] = [part.encode() for part in parts]
    kids = []
    for page in range(pages):
        lines = "".join(
            f"0 -16 Td (Valve {number}-{page}-{line} of the plant opens at noon and closes at dusk.) Tj "
            for line in range(42)
        )
        content = zlib.compress(f"BT /F 10 Tf 60 770 Td {lines} ET".encode())
        kids.append(len(bodies) + 1)
        bodies.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (len(bodies) + 2)
        )
        bodies.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(content), content)
        )
    bodies[1] = f"<< /Type /Pages /Count {pages} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>".encode()
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for index, text in enumerate(bodies, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (index, text)
    start = len(out)
    out += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += f"trailer << /Size {len(bodies) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    path.write_bytes(out)


if __name__ == "__main__":
    main()
