"""The reading process: bounded memory and time, one file after another, nothing kept between them.

Run as `python -m retrieval.parsing.worker`. Each line of standard input is a request as JSON; its answer, a Reading,
the picture of a page or a ReadError, goes to the file the request names, and a line to standard output says that it is
whole. A file that crashes or exhausts a parser takes this process with it and nothing else.
"""

import ctypes
import json
import math
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrieval.errors import ReadError
from retrieval.parsing.formats import parse, picture
from retrieval.parsing.limits import Limits
from retrieval.parsing.source import Source
from retrieval.parsing.wire import error_dump, reading_dump

_PR_SET_PDEATHSIG = 1
_MODELS = 2_500_000_000
"""Address space of the text recognition, bytes; it fills about a third."""
_extra = [0]


def main() -> None:
    # Dies with its parent: a killed ingestion worker leaves no reader behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    for line in sys.stdin:
        request = json.loads(line)
        Path(request["answer"]).write_bytes(_answer(request))
        _say("done")


def _answer(request: Mapping[str, Any]) -> bytes:
    limits = Limits(**request["limits"])
    _confine(limits)

    def progress(done: int, total: int) -> None:
        # Recognising a page takes seconds: each has the time of a whole file, and the models need memory of their own.
        _confine(limits, memory=_MODELS)
        _say(f"page {done} {total}")

    def at(number: int) -> None:
        os.pwrite(place.fileno(), b"%08d" % number, 0)

    source = Source(
        Path(request["path"]),
        request["name"],
        request["password"],
        limits,
        progress=progress,
        at=at,
        skip=frozenset(request["skip"]),
    )
    try:
        with Path(request["place"]).open("r+b", buffering=0) as place:
            if request["picture"]:
                return picture(source, request["picture"])
            return reading_dump(parse(source))
    except ReadError as error:
        return error_dump(error)
    except MemoryError:
        return error_dump(_too_hungry(source))
    except RecursionError:
        sentence = f"“{source.name}” is nested too deeply to be read. Save it anew in a simpler form."
        return error_dump(ReadError(sentence))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _confine(limits: Limits, *, memory: int = 0) -> None:
    # Loaded models stay: what they take is added for all files after.
    _extra[0] = max(_extra[0], memory)
    most = limits.memory + _MODELS
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory + _extra[0], most))
    # The limit counts the whole life of the process: what starting and earlier files took is added, rounded up, so
    # that a file has at least its time.
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(usage.ru_utime + usage.ru_stime) + limits.cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def _too_hungry(source: Source) -> ReadError:
    return ReadError(
        f"Reading “{source.name}” needs more than {source.limits.memory / 1e9:.1f} GB of memory. Split it into parts.",
        reason="too_large",
    )


if __name__ == "__main__":
    main()
