"""What the inference client itself costs: a chunk, a first token, a stream that is held.

    python -m bench.inference [parse] [ttft] [streams] [--streams 2000] [--runs 3]

Prints one JSON line a measurement. The server is a scripted one in a process of its own, so the figures are the
client's.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version

from bench.inference import parse, streams, ttft

PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "parse": lambda options: parse.measure(options.runs),
    "ttft": lambda options: ttft.measure(options.runs),
    "streams": lambda options: streams.measure(options.streams),
}


def main() -> None:
    """Run the parts that were named, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.inference",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all when none is named")
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    names = ("aiohttp", "httpx", "orjson", "uvloop")
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    print(json.dumps({"settings": machine | {name: version(name) for name in names}}), flush=True)
    for part in options.parts or PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    sys.exit(main())
