"""What measuring a turn costs: the stage clock, its figures, the row of times and the counters for Prometheus.

    python -m bench.measuring [--turns 20000] [--runs 5]

Runs the code of a turn's measuring, and nothing else, and tells microseconds of CPU a turn; beside the CPU time of a
whole turn in `bench/gateway`, that is its share. The write of the rows, one statement a second, is not in it.
"""

import argparse
import json
import logging
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import django


def main() -> None:
    """One line per part."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.measuring",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")
    django.setup()
    logging.disable()
    from bench.measuring.turn import clock, turn  # noqa: PLC0415 - Django stands by then

    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    print(json.dumps({"settings": machine | {"pieces": 64}}), flush=True)
    for name, part in {"clock": clock, "all of it": turn}.items():
        each = [_cpu(part, options.turns) for _ in range(options.runs)]
        line = {
            "part": name,
            "us_a_turn": round(statistics.median(each), 1),
            "from": round(min(each), 1),
            "to": round(max(each), 1),
        }
        print(json.dumps(line), flush=True)


def _cpu(work: Callable[[], Any], turns: int) -> float:
    """Microseconds of CPU of one."""
    began = time.process_time()
    for _ in range(turns):
        work()
    return (time.process_time() - began) / turns * 1e6


if __name__ == "__main__":
    main()
