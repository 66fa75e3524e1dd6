"""The reading process: one file, bounded memory and time, a Reading or a ReadError as JSON on standard output.

Run as `python -m retrieval.parsing.worker`, the request as JSON on standard input. A file that crashes or
exhausts a parser takes this process with it and nothing else.
"""

import ctypes
import json
import resource
import signal
import sys
from pathlib import Path

from retrieval.errors import ReadError
from retrieval.parsing.formats import parse
from retrieval.parsing.limits import Limits
from retrieval.parsing.source import Source
from retrieval.parsing.wire import error_dump, reading_dump

_PR_SET_PDEATHSIG = 1


def main() -> int:
    request = json.load(sys.stdin)
    limits = Limits(**request["limits"])
    _confine(limits)
    source = Source(Path(request["path"]), request["name"], request["password"], limits)
    try:
        answer = reading_dump(parse(source))
    except ReadError as error:
        answer = error_dump(error)
    except MemoryError:
        answer = error_dump(_too_hungry(source))
    except RecursionError:
        answer = error_dump(
            ReadError(f"“{source.name}” is nested too deeply to be read. Save it anew in a simpler form.")
        )
    sys.stdout.write(answer)
    return 0


def _confine(limits: Limits) -> None:
    # Dies with its parent: a killed ingestion worker leaves no reader behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 5))


def _too_hungry(source: Source) -> ReadError:
    return ReadError(
        f"Reading “{source.name}” needs more than {source.limits.memory / 1e9:.1f} GB of memory. Split it into parts.",
        reason="too_large",
    )


if __name__ == "__main__":
    sys.exit(main())
