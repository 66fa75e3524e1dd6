"""Turns a second against one team's budget row: hold and settle, by many writers at once.

    python -m bench.ledger [--writers 64] [--turns 4000] [--processes 4]

Starts a PostgreSQL of its own with fsync on; holds commit with synchronous_commit off, settlements durably. Prints one
JSON line for settlements one by one from several processes, and one for those of one process in groups, beside
what one fdatasync takes here.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.stack import REPOSITORY, manage


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--turns", type=int, default=4000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--part", choices=["alone", "grouped"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        work(options)
        return
    data = Path(tempfile.mkdtemp(prefix="tessera-bench-"))
    data.chmod(0o755)
    env = {**os.environ, "TESSERA_DATA": str(data)}
    try:
        manage(env, "up", "--services-only", "--data", str(data), "--detach")
        written = json.loads((data / "env.json").read_text())
        manage({**env, "DATABASE_URL": written["DATABASE_OWNER_URL"]}, "migrate")
        manage(env, "first_run", "--json")
        prepared = manage(env, "shell", "-v", "0", "-c", _PREPARE).split()
        for part, processes in (("alone", options.processes), ("grouped", 1)):
            print(json.dumps(measure(options, env | {"BENCH_PAYER": " ".join(prepared)}, part, processes)))
        print(json.dumps({"fdatasync_ms": round(fdatasync_ms(data), 2)}))
    finally:
        manage(env, "down", "--data", str(data), check=False)


_PREPARE = """
from decimal import Decimal
from app.accounts.models import User
from app.billing.services import budget_set, price_set
from app.billing.types import Rate
user = User.objects.first()
rates = [Rate(component=c, price=Decimal(1)) for c in ("input", "output")]
price_set(price_key="bench", rates=rates, approved_by="bench")
budget_set(scope="team", unit="money", limit=Decimal(10**6), period="month", team_id=user.default_team_id)
for scope in ("installation", "allowance"):
    budget_set(scope=scope, unit="money", limit=Decimal(10**6), period="month")
print(user.default_team_id, user.account_id)
"""


def measure(options: argparse.Namespace, env: dict[str, str], part: str, processes: int) -> dict[str, Any]:
    """Turns a second of all processes together."""
    words = ["-m", "bench.ledger", "--part", part]
    words += ["--writers", str(options.writers // processes), "--turns", str(options.turns // processes)]
    running = [
        subprocess.Popen([sys.executable, *words], cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    found = [json.loads(process.communicate()[0]) for process in running]
    took = max(row["ended"] for row in found) - min(row["began"] for row in found)
    turns = sum(row["turns"] for row in found)
    return {
        "settlements": part,
        "processes": processes,
        "writers": options.writers,
        "per_s": round(turns / took),
    }


def work(options: argparse.Namespace) -> None:
    """The part of one process. Django is set up here, so that the parent needs no database."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")
    import django  # noqa: PLC0415 - only a child of this program is a Django process

    django.setup()
    from bench.ledger import writers  # noqa: PLC0415

    team, account = os.environ["BENCH_PAYER"].split()
    one = writers.Turns(team, account)
    each = options.turns // options.writers
    if options.part == "alone":
        with ThreadPoolExecutor(options.writers) as pool:
            list(pool.map(lambda _: one.hold(), range(options.writers)))
            began = time.time()
            list(pool.map(lambda _: one.alone(each), range(options.writers)))
    else:
        began = time.time()
        asyncio.run(one.grouped(options.writers, each))
    print(json.dumps({"began": began, "ended": time.time(), "turns": each * options.writers}))


def fdatasync_ms(directory: Path) -> float:
    """Median of 200 writes of 8 KB to the disk that the database is on."""
    times = []
    with (directory / "probe").open("wb") as handle:
        for _ in range(200):
            handle.write(b"x" * 8192)
            handle.flush()
            start = time.perf_counter()
            os.fdatasync(handle.fileno())
            times.append(time.perf_counter() - start)
    return sorted(times)[100] * 1e3


if __name__ == "__main__":
    main()
