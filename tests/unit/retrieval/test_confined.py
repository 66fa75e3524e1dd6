"""Reading in a process of its own: limits hold, crashes are told, the caller can stop it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from retrieval.errors import LeaseLost, ReadError
from retrieval.parsing import Limits, read, sandbox

SHARED = Path(os.environ.get("TESSERA_SHARED", "../shared")) / "data/docs/open"


def test_bytes_are_read_as_what_they_are() -> None:
    reading = read(b"<html><h1>T</h1><p>Body</p></html>", "x.txt")
    assert (reading.format, reading.text, reading.paged) == ("html", "T\n\nBody", False)
    assert reading.pages[0].blocks[1].heading == ("T",)


def test_errors_cross_the_border_with_their_reason() -> None:
    with pytest.raises(ReadError, match=r"“a\.pdf” is damaged") as caught:
        read(b"%PDF-1.4 nothing", "a.pdf")
    assert caught.value.reason == "damaged"


@pytest.mark.parametrize(
    ("limits", "reasons"),
    [
        (Limits(memory=300_000_000), {"too_large", "crashed"}),
        (Limits(cpu_seconds=1), {"timeout"}),
        (Limits(wall_seconds=0), {"timeout"}),
    ],
    ids=["memory", "cpu", "wall"],
)
def test_a_greedy_file_is_stopped(limits: Limits, reasons: set[str]) -> None:
    # A list nested and long enough to keep a parser busy for seconds.
    greedy = b"# x\n\n" + b"* a _b_ **c** [d](e)\n" * 150_000
    with pytest.raises(ReadError) as caught:
        read(greedy, "greedy.md", limits=limits)
    assert caught.value.reason in reasons


def test_the_caller_can_stop_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "PULSE_SECONDS", 0.05)

    def lost() -> None:
        raise LeaseLost

    with pytest.raises(LeaseLost):
        read(b"* a\n" * 400_000, "long.md", heartbeat=lost)


def test_a_process_that_did_well_reads_the_next_file_too() -> None:
    read(b"one", "a.txt")
    with pytest.raises(ReadError):
        read(b"", "b.txt")
    before = list(sandbox._idle)
    assert read(b"two", "c.txt").text == "two"
    assert sandbox._idle == before
    sandbox._idle[0].close()
    # One that ended on its own is replaced without a word.
    assert read(b"three", "d.txt").text == "three"


def test_no_secret_reaches_the_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, str] = {}
    real = subprocess.Popen

    def spy(*args: object, **kwargs: object) -> object:
        seen.update(kwargs["env"])  # type: ignore[call-overload]
        return real(*args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setenv("SECRET_KEY", "do-not-pass")
    monkeypatch.setattr(subprocess, "Popen", spy)
    monkeypatch.setattr(sandbox, "_idle", [])
    read(b"text", "a.txt")
    assert "do-not-pass" not in seen.values()
    allowed = {
        "PYTHONPATH",
        "PYTHONUTF8",
        "PYTHONDONTWRITEBYTECODE",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
    }
    assert set(seen) <= allowed


@pytest.mark.skipif(not SHARED.is_dir(), reason="shared documents are not here")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("libreoffice-writer-password.pdf", "encrypted"),
        ("r6-user-password.pdf", "encrypted"),
        ("invalid.pdf", "damaged"),
        ("poppler-395-0-fuzzed.pdf", "damaged"),
        ("PDFBOX-4352-0.pdf", "empty"),
    ],
)
def test_real_files_are_refused_with_their_reason(name: str, reason: str) -> None:
    with pytest.raises(ReadError) as caught:
        read(SHARED / name, name)
    assert caught.value.reason == reason


@pytest.mark.skipif(not SHARED.is_dir(), reason="shared documents are not here")
@pytest.mark.parametrize(
    "name",
    [
        "multicolumn.pdf",
        "helloworld-bad.pdf",
        "testPDF_rotated.pdf",
        "layout-parser-paper-with-empty-pages.pdf",
        "word_sample.docx",
        "test_blog.html",
        "duck.md",
        "shift_jis.txt",
        "fake-text-utf-16-le.txt",
        "powerpoint_sample.pptx",
        "legacy_sample.ppt",
        "legacy_sample.doc",
        "test.xls",
        "msg_10.txt",
        "test-outlook2003.msg",
        "odf_presentation_01.odp",
        "testRTFJapanese.rtf",
        "habibi-rotated.pdf",
    ],
)
def test_real_files_hold_their_facts(name: str) -> None:
    reading = read(SHARED / name, name)
    pages = {page.number: " ".join(page.text.split()) for page in reading.pages}
    checked = 0
    for fact in json.loads((SHARED / "facts.json").read_text())[name]:
        if fact["type"] == "contains":
            where = pages[fact["page"]] if fact.get("page") else " ".join(pages.values())
            assert " ".join(fact["text"].split()) in where
            checked += 1
        elif fact["type"] == "pages":
            assert len(reading.pages) == fact["count"]
            checked += 1
    assert checked
