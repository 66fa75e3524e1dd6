"""What reading costs: every shared document, born-digital pages a second, memory on a 150 MB PDF.

`python -m bench.reading [--short]`; --short leaves out the table of documents.
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.reading.large import large_pdf
from retrieval.parsing.formats import parse
from retrieval.parsing.source import Source
from tests.unit.retrieval.facts import FOLDER, check_all

RUNS = 3


def main() -> None:
    print(f"reading · {os.cpu_count()} cores · Python {platform.python_version()}")
    if FOLDER.is_dir():
        if "--short" not in sys.argv:
            documents()
        speed()
    memory()


def documents() -> None:
    found = expected = 0
    print("\n| file | format | s | pages | facts | said |\n|---|---|---|---|---|---|")
    for item in check_all():
        total = item.found + len(item.missing)
        found, expected = found + item.found, expected + total
        facts = f"{item.found}/{total}"
        print(
            f"| {item.name} | {item.format} | {item.seconds:.2f} | {item.pages} | {facts} | {item.said[:150]} |"
        )
    print(f"\n{found} of {expected} facts, {found / expected:.1%}")


def speed() -> None:
    """Pages of text, read in one process; the largest born-digital PDFs of the shared documents."""
    print("\n| born-digital PDF | pages | pages/s (median of runs) | pages a CPU-second |\n|---|---|---|---|")
    for name in ("GeoTopo-komprimiert.pdf", "testPDF_childAttachments.pdf", "testPDF_protected.pdf"):
        walls, cpus, pages = [], [], 0
        for _ in range(RUNS + 1):
            wall, cpu = time.perf_counter(), time.process_time()
            pages = len(parse(Source(FOLDER / name, name)).pages)
            walls.append(pages / (time.perf_counter() - wall))
            cpus.append(pages / (time.process_time() - cpu))
        wall, cpu = statistics.median(walls[1:]), statistics.median(cpus[1:])
        print(f"| {name} | {pages} | {wall:.0f} | {cpu:.0f} |")


_PEAK = """
import resource, sys
from pathlib import Path
from retrieval.parsing.formats import parse
from retrieval.parsing.source import Source
reading = parse(Source(Path(sys.argv[1]), "large.pdf"))
print(len(reading.pages), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)
"""


def memory() -> None:
    """Highest resident memory of a reading process on a PDF of 150 MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.pdf"
        large_pdf(path, megabytes=150)
        started = time.perf_counter()
        answer = subprocess.run(
            [sys.executable, "-c", _PEAK, str(path)], capture_output=True, text=True, check=True
        )
        pages, peak = answer.stdout.split()
        seconds = time.perf_counter() - started
        print(
            f"\n{path.stat().st_size / 1e6:.0f} MB PDF, {pages} pages: {peak} MB resident at most, {seconds:.1f} s"
        )


if __name__ == "__main__":
    main()
