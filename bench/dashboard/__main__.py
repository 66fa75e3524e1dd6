"""Every view of spend over a large ledger: milliseconds of the whole request, in one process without a network.

    python -m bench.dashboard [--rows 1000000] [--runs 20] [--data DIRECTORY]

Starts a PostgreSQL of its own, loads a year of calls in bulk (50 teams, 1,000 people, 5 chat models and an embedder),
folds them into the roll-ups, holds those against the entries, and prints a table: wall time of a view, CPU time of this
process in it, its statements by EXPLAIN (ANALYZE), the rows they read. With `--data` the year stays for another run.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.stack import manage


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--data", type=Path, help="where the year is, or shall be kept")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")
        import django  # noqa: PLC0415 - only a child of this program is a Django process

        django.setup()
        from bench.dashboard.views import measure  # noqa: PLC0415

        measure(rows=options.rows, runs=options.runs)
        return
    data = options.data or Path(tempfile.mkdtemp(prefix="tessera-bench-"))
    data.mkdir(mode=0o755, parents=True, exist_ok=True)
    data.chmod(0o755)
    env = {**os.environ, "TESSERA_DATA": str(data)}
    began = time.monotonic()
    try:
        manage(env, "up", "--services-only", "--data", str(data), "--detach")
        written = json.loads((data / "env.json").read_text())
        owner = {**env, "DATABASE_URL": written["DATABASE_OWNER_URL"]}
        manage(owner, "migrate")
        manage(env, "first_run", "--json")
        manage(env, "collectstatic", "--noinput")
        words = [sys.executable, "-m", "bench.dashboard", "--measure", "--rows", str(options.rows)]
        os.spawnve(os.P_WAIT, sys.executable, [*words, "--runs", str(options.runs)], owner)
        print(json.dumps({"took_s": round(time.monotonic() - began)}))
    finally:
        manage(env, "down", "--data", str(data), check=False)


if __name__ == "__main__":
    main()
