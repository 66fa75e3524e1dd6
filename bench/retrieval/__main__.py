"""How fast search is, and how much of the right thing it finds, at a given size.

    python -m bench.retrieval [--chunks 20000] [--queries 60] [--data DIR]

Starts PostgreSQL with the embedded stack, makes an installation of so many chunks in it (1,000,000: see the README for
how long that takes) and searches it as someone who may read 1 % and as someone who may read half. With `--data` the
stack and its data stay for the next run. One JSON line a measurement; the embedding of the question is left out.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django
import psycopg

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    data = options.data or Path(tempfile.mkdtemp(prefix="tessera-bench-"))
    data.mkdir(parents=True, exist_ok=True)
    data.chmod(0o755)
    try:
        written = _started(data)
        django.setup()
        from bench.retrieval.generated import build  # noqa: PLC0415 - the settings are only known now

        with psycopg.connect(written["DATABASE_OWNER_URL"], autocommit=True) as owner:
            if not owner.execute("SELECT 1 FROM retrieval_chunk LIMIT 1").fetchone():
                build(written["DATABASE_OWNER_URL"], options.chunks, _say)
            _sizes(owner)
        print(json.dumps({"load": [round(value, 1) for value in os.getloadavg()]}), flush=True)
        _measure(options.queries)
    finally:
        if options.data is None:
            _manage("down", "--data", str(data))
            shutil.rmtree(data, ignore_errors=True)


def _say(text: str) -> None:
    print(text, flush=True)


def _started(data: Path) -> dict[str, str]:
    """Where the stack's parts are; it is started unless it runs, and its schema brought up to date."""
    try:
        written = json.loads((data / "env.json").read_text())
        psycopg.connect(written["DATABASE_OWNER_URL"], connect_timeout=2).close()
    except (FileNotFoundError, psycopg.OperationalError):
        _manage("up", "--services-only", "--detach", "--data", str(data))
        written = json.loads((data / "env.json").read_text())
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "app.settings.dev",
        "TESSERA_DATA": str(data),
        "DATABASE_URL": written["DATABASE_OWNER_URL"],
    }
    _manage("migrate")
    return dict(written)


def _manage(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"manage.py {words[0]} failed:\n{done.stdout}{done.stderr}")


def _sizes(owner: psycopg.Connection) -> None:
    rows = owner.execute(
        "SELECT relname, pg_relation_size(oid) / 1000000 FROM pg_class WHERE relname ~ '^(retrieval_chunk|words_|"
        "retrieval_vector_hnsw|retrieval_wordcount|vector_reach)' AND relkind IN ('r', 'i')"
        " AND pg_relation_size(oid) > 1000000 ORDER BY 2 DESC"
    ).fetchall()
    print(json.dumps({"megabytes": {name[:24]: int(size) for name, size in rows}}), flush=True)


def _measure(queries: int) -> None:
    from bench.retrieval import legs  # noqa: PLC0415 - the settings are only known now
    from bench.retrieval.generated import FEW, HALF  # noqa: PLC0415

    chance = random.Random(7)  # a benchmark repeats itself
    for name, principal in (("1 %", FEW), ("50 %", HALF)):
        room = legs.room(principal)
        asked = [(_words(chance), legs.near(chance, part)) for part in chance.sample(range(2000), queries)]
        for leg in (legs.vector, legs.keyword):
            took: list[float] = []
            bare: list[float] = []
            share: list[float] = []
            for text, vector in asked:
                found, exact, ms, bare_ms = leg(room, text, vector)
                took.append(ms)
                bare.append(bare_ms)
                share.append(len(set(found) & set(exact)) / max(1, len(exact)))
            _tell(name, leg.__name__, took, bare=bare, share=share)
        _tell(name, "hybrid", legs.hybrid(room, asked))


def _tell(reach: str, leg: str, took: Sequence[float], **more: Sequence[float]) -> None:
    line: dict[str, Any] = {"reach": reach, "leg": leg, "queries": len(took)}
    line |= {"p50_ms": round(statistics.median(took), 1), "p95_ms": round(_p95(took), 1)}
    if "bare" in more:
        line |= {
            "bare_p50_ms": round(statistics.median(more["bare"]), 1),
            "times_bare": round(statistics.median(took) / statistics.median(more["bare"]), 2),
            "of_exact_top_10": round(statistics.fmean(more["share"]), 4),
        }
    print(json.dumps(line), flush=True)


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def _words(chance: random.Random) -> str:
    """Six words, none of the fifty commonest, as a question's content words are."""
    letters = str.maketrans("0123456789", "bdfgklmnpr")
    low, high = 50, 50_000
    return " ".join(str(int(low * (high / low) ** chance.random())).translate(letters) for _ in range(6))


if __name__ == "__main__":
    main()
