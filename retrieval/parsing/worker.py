"""The reading process: bounded memory and time, one file after another, nothing kept between them.

Run as `python -m retrieval.parsing.worker`. Each line of standard input is a request as JSON; its answer, a Reading or
a ReadError, goes to the file the request names, and a line to standard output says that it is whole. A file that
crashes or exhausts a parser takes this process with it and nothing else.
"""

import ctypes
import json
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrieval.errors import ReadError
from retrieval.parsing.formats import parse
from retrieval.parsing.limits import Limits
from retrieval.parsing.source import Source
from retrieval.parsing.wire import error_dump, reading_dump

_PR_SET_PDEATHSIG = 1


def main() -> None:
    # Dies with its parent: a killed ingestion worker leaves no reader behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    for line in sys.stdin:
        request = json.loads(line)
        Path(request["answer"]).write_text(_answer(request), encoding="utf-8")
        sys.stdout.write("done\n")
        sys.stdout.flush()


def _answer(request: Mapping[str, Any]) -> str:
    limits = Limits(**request["limits"])
    _confine(limits)
    source = Source(Path(request["path"]), request["name"], request["password"], limits)
    try:
        return reading_dump(parse(source))
    except ReadError as error:
        return error_dump(error)
    except MemoryError:
        return error_dump(_too_hungry(source))
    except RecursionError:
        sentence = f"“{source.name}” is nested too deeply to be read. Save it anew in a simpler form."
        return error_dump(ReadError(sentence))


def _confine(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    # The limit counts the whole life of the process: what earlier files took is added.
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(usage.ru_utime + usage.ru_stime) + limits.cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def _too_hungry(source: Source) -> ReadError:
    return ReadError(
        f"Reading “{source.name}” needs more than {source.limits.memory / 1e9:.1f} GB of memory. Split it into parts.",
        reason="too_large",
    )


if __name__ == "__main__":
    main()
