"""Formats, read in this process; the confined reading is tested beside it."""

import io
import zipfile
from pathlib import Path

import pytest

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Reading
from retrieval.parsing.formats import parse
from retrieval.parsing.limits import Limits
from retrieval.parsing.source import Source

BODY = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{}</w:body></w:document>'
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a" Target='
    '"word/document.xml" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/>'
    "</Relationships>"
)


def read(tmp_path: Path, data: bytes | str, name: str, limits: Limits | None = None) -> Reading:
    path = tmp_path / "file"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return parse(Source(path, name, limits=limits or Limits()))


def zipped(**parts: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def docx(body: str = "<w:p><w:r><w:t>Hello</w:t></w:r></w:p>", **more: str) -> bytes:
    return zipped(
        **{"[Content_Types].xml": TYPES, "_rels/.rels": RELS, "word/document.xml": BODY.format(body)}, **more
    )


def shape(reading: Reading) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(b.kind, page.text[b.start : b.end], b.heading) for page in reading.pages for b in page.blocks]


def test_html_keeps_what_a_reader_sees(tmp_path: Path) -> None:
    html = """<!DOCTYPE html><title>My page</title><nav>menu</nav><script>var x = 1</script>
    <h1>Fees</h1><p>A <b>bold</b> word.<br>Next line</p><h2>2024</h2>
    <ul><li>one<ul><li>nested</li></ul></li><li>two</li></ul><div style="display:none">secret</div>
    <table><tr><th>City</th><th>Grade</th><th>Rate</th></tr>
    <tr><td rowspan=2>Bonn</td><td>A</td><td>480</td></tr><tr><td>B</td><td>350</td></tr></table>
    <pre>a = 1
  b = 2</pre>"""
    reading = read(tmp_path, html, "x.html")
    assert reading.metadata["title"] == "My page"
    assert shape(reading) == [
        ("heading", "Fees", ("Fees",)),
        ("paragraph", "A bold word.\nNext line", ("Fees",)),
        ("heading", "2024", ("Fees", "2024")),
        ("list", "- one\n  - nested\n- two", ("Fees", "2024")),
        ("table", "City | Grade | Rate\nBonn | A | 480\nBonn | B | 350", ("Fees", "2024")),
        ("code", "a = 1\n  b = 2", ("Fees", "2024")),
    ]


def test_tables_inside_tables(tmp_path: Path) -> None:
    inner = "<table><tr><th>Town<th>Rate<tr><td>Ulm<td>007</table>"
    placed = read(tmp_path, f"<html><table><tr><td>{inner}<td>beside</table>", "x.html")
    assert [(kind, text) for kind, text, _ in shape(placed)] == [
        ("table", "Town | Rate\nUlm | 007"),
        ("paragraph", "beside"),
    ]
    rows = "<tr><th>Stage<th>What is done there<tr><td><h3>One</h3><td>{}<tr><td>Two<td>is closed and counted".format(
        "<table><tr><td>a<td>b</table>"
    )
    data = read(tmp_path, f"<html><table>{rows}</table>", "x.html")
    assert data.text == "Stage | What is done there\nOne | a b\nTwo | is closed and counted"


def test_a_piece_of_a_web_page_is_html_by_its_name(tmp_path: Path) -> None:
    reading = read(tmp_path, '<p title="t">A <img alt="sketch of the valve" src="a.png"> here</p>', "x.html")
    assert (reading.format, reading.text) == ("html", "A sketch of the valve here")


def test_html_with_nul_bytes_is_read_to_its_end(tmp_path: Path) -> None:
    reading = read(tmp_path, b"<html><p>be\x00fore</p><p>after</p></html>", "x.html")
    assert reading.text == "before\n\nafter"


def test_titles_are_cleaned_like_text(tmp_path: Path) -> None:
    reading = read(tmp_path, "---\ntitle: a\x00b\x07c\n---\nText \x02here.", "x.md")
    assert (reading.metadata["title"], reading.text) == ("abc", "Text here.")


def test_deep_nesting_is_flattened(tmp_path: Path) -> None:
    reading = read(tmp_path, "<html>" + "<div>" * 5000 + "deep" + "</div>" * 5000, "x.html")
    assert "deep" in reading.text


def test_markdown_blocks(tmp_path: Path) -> None:
    text = "---\ntitle: Guide\n---\n# Start\n\nA *word* and [a link](http://x).\n\n1. one\n   - inner\n2. two\n\n"
    text += "| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```\n\n## Next\n\nEnd."
    reading = read(tmp_path, text, "guide.md")
    assert reading.metadata["title"] == "Guide"
    assert shape(reading) == [
        ("heading", "Start", ("Start",)),
        ("paragraph", "A word and a link.", ("Start",)),
        ("list", "1. one\n  - inner\n2. two", ("Start",)),
        ("table", "a | b\n1 | 2", ("Start",)),
        ("code", "x = 1", ("Start",)),
        ("heading", "Next", ("Start", "Next")),
        ("paragraph", "End.", ("Start", "Next")),
    ]


def test_word_keeps_header_body_and_footer(tmp_path: Path) -> None:
    def part(tag: str, text: str) -> str:
        return (
            BODY.replace("document", tag)
            .replace("<w:body>", "")
            .replace("</w:body>", "")
            .format(f"<w:p><w:r><w:t>{text}</w:t><w:tab/><w:t>1</w:t></w:r></w:p>")
        )

    data = docx(**{"word/header1.xml": part("hdr", "Top"), "word/footer1.xml": part("ftr", "Page")})
    assert read(tmp_path, data, "a.docx").text == "Top 1\n\nHello\n\nPage 1"


@pytest.mark.parametrize(
    ("data", "name", "found"),
    [
        (b"<!doctype html><p>Hi</p>", "notes.txt", "html"),
        (b"just words", "page.html", "text"),
        (docx(), "report.pdf", "docx"),
        (b"# Title", "a.md", "markdown"),
        (b"# Title", "a.txt", "text"),
        (b"a,b\n1,2\n", "a.csv", "csv"),
        (b"a,b\n1,2\n", "a.txt", "text"),
        (b"From: a@x\nTo: b@x\nSubject: s\n\nBody", "a.txt", "eml"),
        (b"{\\rtf1 x}", "a.txt", "rtf"),
        (b'{"a": 1}', "a.json", "json"),
        (zipped(**{"a.txt": "x"}), "a.docx", "zip"),
    ],
)
def test_content_decides_not_the_name(tmp_path: Path, data: bytes, name: str, found: str) -> None:
    assert read(tmp_path, data, name).format == found


@pytest.mark.parametrize(
    ("data", "name", "reason", "says"),
    [
        (b"", "a.txt", "empty", "empty"),
        (b"  \n ", "a.txt", "empty", "no text"),
        (b"\xef\xbb\xbf", "a.csv", "empty", "only a byte order mark"),
        (b"\xff\xfe", "a.txt", "empty", "only a byte order mark"),
        (b"%PDF-1.7\n", "a.pdf", "damaged", "damaged"),
        (b"PK\x03\x04 broken", "a.docx", "damaged", "damaged"),
        (zipped(**{"xl/workbook.xml": "<a/>"}), "a.docx", "damaged", "Excel"),
        (zipped(**{"a.bin": "\x01\x02" * 90}), "a.zip", "unsupported", "a.bin"),
        (zipped(**{"../../etc/passwd": "x"}), "a.zip", "bomb", "outside"),
        (docx(**{"word/settings.xml": '<!DOCTYPE x [<!ENTITY a "b">]><a/>'}), "a.docx", "bomb", "entities"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a.doc", "damaged", "old Office"),
        (b"\x00\x01\x02" * 300, "a.pdf", "unsupported", "control characters"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    tmp_path: Path, data: bytes, name: str, reason: str, says: str
) -> None:
    with pytest.raises(ReadError, match=says) as caught:
        read(tmp_path, data, name)
    assert caught.value.reason == reason
    assert name in caught.value.message


@pytest.mark.parametrize(
    "limits",
    [Limits(unpacked=1_000_000), Limits(ratio=20), Limits(members=2)],
    ids=["size", "ratio", "members"],
)
def test_bombs_are_refused_while_unpacking(tmp_path: Path, limits: Limits) -> None:
    data = docx(**{"word/media/blank.bin": "0" * 30_000_000})
    with pytest.raises(ReadError, match="exhaust") as caught:
        read(tmp_path, data, "bomb.docx", limits)
    assert caught.value.reason == "bomb"


def test_too_many_characters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError) as caught:
        read(tmp_path, "word " * 1000, "a.txt", Limits(characters=1000))
    assert caught.value.reason == "too_large"
