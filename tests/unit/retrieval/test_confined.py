"""Reading in a process of its own: limits hold, crashes are told, the caller can stop it."""

import json
import os
import resource
import subprocess
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image, ImageDraw, ImageFont

from retrieval.errors import LeaseLost, ReadError
from retrieval.parsing import Limits, ocr, read, sandbox, worker

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


@pytest.mark.parametrize(("used", "until"), [(0.0, 5), (0.9, 6), (3.0, 8), (3.1, 9)])
def test_what_a_process_used_before_takes_nothing_from_a_file(
    monkeypatch: pytest.MonkeyPatch, used: float, until: int
) -> None:
    limits: dict[int, tuple[int, int]] = {}
    usage = SimpleNamespace(ru_utime=used, ru_stime=0.0)
    monkeypatch.setattr(resource, "getrusage", lambda who: usage)
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    worker._confine(Limits(cpu_seconds=5))
    assert limits[resource.RLIMIT_CPU][0] == until


def _pdf(*contents: bytes) -> bytes:
    """A PDF with a page for each content stream, which is stored deflated."""
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(contents)))
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: f"<</Type/Pages/Kids[{kids}]/Count {len(contents)}>>".encode(),
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }
    for n, content in enumerate(contents):
        page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {11 + 2 * n} 0 R"
        objects[10 + 2 * n] = f"{page}/Resources<</Font<</F 3 0 R>>>>>>".encode()
        packed = zlib.compress(content, 9)
        head = f"<</Filter/FlateDecode/Length {len(packed)}>>stream\n".encode()
        objects[11 + 2 * n] = head + packed + b"\nendstream"
    body, places = b"%PDF-1.4\n", {}
    for number, text in objects.items():
        places[number] = len(body)
        body += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    table = b"".join(b"%d 1\n%010d 00000 n \n" % (n, at) for n, at in places.items())
    return body + b"xref\n" + table + b"trailer<</Root 1 0 R/Size 99>>\nstartxref\n%d\n%%%%EOF" % len(body)


def test_a_page_that_kills_the_reader_twice_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field fault E02: a poison page takes its document with it, and nobody says which it was."""
    started: list[sandbox._Reader] = []
    make = sandbox._Reader

    def counted(limits: Limits) -> sandbox._Reader:
        started.append(make(limits))
        return started[-1]

    monkeypatch.setattr(sandbox, "_Reader", counted)
    text = b"BT /F 12 Tf 50 700 Td (This is page number %d of the report, with words enough.) Tj ET"
    poison = (text % 2) + b" " + b"0 0 m 9 9 l S " * 4_000_000
    # Each line is an object in memory: the parser ends itself for want of it, however fast or slow the machine is.
    reading = read(_pdf(text % 1, poison, text % 3), "r.pdf", limits=Limits(memory=500_000_000))
    assert ["number 1" in reading.text, "number 2" in reading.text, "number 3" in reading.text] == [
        True,
        False,
        True,
    ]
    assert [page.number for page in reading.pages] == [1, 2, 3]
    assert [w for w in reading.warnings if "stopped twice at page 2" in w]
    assert len(started) == 3


def test_the_caller_can_stop_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "PULSE_SECONDS", 0.05)

    def lost(page: int, pages: int) -> None:
        assert (page, pages) == (0, 0)
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
def test_a_password_opens_and_a_wrong_one_is_called_wrong() -> None:
    path = SHARED / "libreoffice-writer-password.pdf"
    assert "consetetur" in read(path, path.name, password="openpassword").text
    with pytest.raises(ReadError, match=r"password for .* is wrong") as caught:
        read(path, path.name, password="guess")
    assert caught.value.reason == "encrypted"


def test_text_in_a_picture_is_recognised_and_says_so(tmp_path: Path) -> None:
    if not ocr.available():
        pytest.skip("text recognition is not installed")
    image = Image.new("RGB", (420, 80), "white")
    ImageDraw.Draw(image).text((20, 20), "Invoice 2024 paid", fill="black", font=ImageFont.load_default(32))
    image.save(tmp_path / "scan.png")
    seen: list[tuple[int, int]] = []
    reading = read(
        tmp_path / "scan.png", "scan.png", heartbeat=lambda page, pages: seen.append((page, pages))
    )
    assert (1, 1) in seen
    assert "Invoice" in reading.text
    assert reading.pages[0].ocr
    assert reading.pages[0].confidence > 0.5
    assert reading.pages[0].lines
    assert "OCR" in reading.warnings[0]


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
