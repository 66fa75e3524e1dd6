"""What files of real people hold and few samples do: lists from five on, mailboxes, bare formulas, old tables."""

import binascii
import json
import struct
from pathlib import Path

import pytest

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Reading
from retrieval.parsing.doc_marks import Mark, Marks
from retrieval.parsing.formats import parse
from retrieval.parsing.source import Source
from tests.unit.retrieval.test_readers import ODF, packed, row, xlsx


def read(tmp_path: Path, data: bytes | str, name: str) -> Reading:
    path = tmp_path / "file"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return parse(Source(path, name))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<ol start="5"><li>five</li><li value="9">nine</li></ol>', "5. five\n9. nine"),
        ('<ol type="a"><li>x</li><li>y</li></ol>', "a. x\nb. y"),
        ('<ol type="I"><li>x</li><li>y</li><li>z</li><li>w</li></ol>', "I. x\nII. y\nIII. z\nIV. w"),
        ("<p>10<sup>6</sup> cells, in 2020<sup>3</sup></p>", "10^6 cells, in 2020^3"),
        ("<table><tr><td>10<sup>-6</sup></td><td>m<sup>2</sup></td></tr></table>", "10^-6 | m2"),
        ("<ul><li>10<sup>6</sup></li></ul>", "- 10^6"),
    ],
)
def test_html_numbers_its_lists_and_exponents(tmp_path: Path, html: str, text: str) -> None:
    assert read(tmp_path, f"<html><body>{html}</body></html>", "a.html").text == text


def test_markdown_keeps_its_front_matter(tmp_path: Path) -> None:
    reading = read(tmp_path, "---\ntitle: T\nauthor: Jane\n---\nBody ~~struck~~\n", "a.md")
    assert reading.text == "author: Jane\n\nBody struck"


def test_rst_reads_on_under_directives_of_other_programs(tmp_path: Path) -> None:
    text = ":Author: Jane\n\n.. versionadded:: 2.0\n   The *limit* argument.\n\n"
    text += ".. tabs::\n   :sync: x\n\n   .. note:: Inner\n"
    assert read(tmp_path, text, "a.rst").text == "Author: Jane\n\n2.0\n\nThe limit argument.\n\nInner"


def test_a_quote_that_nobody_closes_swallows_no_rows(tmp_path: Path) -> None:
    text = 'id,name\n1,"a, b"\n2,"open\n3,z\n'
    assert read(tmp_path, text, "a.csv").text == "id | name\n1 | a, b\n2 | open\n3 | z"


def test_a_notebook_with_what_came_out_of_it(tmp_path: Path) -> None:
    outputs = [
        {"output_type": "stream", "text": ["done\n"]},
        {"data": {"text/html": "<table><tr><td>a</td><td>b</td></tr></table>", "text/plain": "a b"}},
        {"data": {"image/png": "iVBORw0KGgo="}},
        {"output_type": "error", "ename": "KeyError", "evalue": "'x'"},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Study\n", "Some *text*"]},
        {"cell_type": "code", "source": "print(1)", "outputs": outputs},
    ]
    reading = read(tmp_path, json.dumps({"nbformat": 4, "cells": cells}), "a.ipynb")
    assert reading.format == "ipynb"
    assert [(block.kind, block.heading) for block in reading.pages[0].blocks][1] == ("paragraph", ("Study",))
    assert reading.text == "Study\n\nSome text\n\nprint(1)\n\ndone\n\na | b\n\nKeyError: 'x'"


MESSAGE = (
    "From u{0}@x.org Mon Jan  1 00:00:0{0} 2024\nFrom: u{0}@x.org\nTo: l@x.org\nSubject: No {0}\nMIME-Version: 1.0\n"
    "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nGr=C3=BC=C3=9Fe {0}\n"
    ">From here on\n\n"
)


def test_a_mailbox_is_read_to_its_last_message(tmp_path: Path) -> None:
    reading = read(tmp_path, "".join(MESSAGE.format(i) for i in (1, 2, 3)), "a.mbox")
    assert [(page.number, page.text.split("\n\n")[0]) for page in reading.pages] == [
        (1, "No 1"), (2, "No 2"), (3, "No 3"),
    ]  # fmt: skip
    assert reading.pages[2].text.endswith("Grüße 3\nFrom here on")


HEAD = "From: a@x.org\nTo: b@x.org\nSubject: S\nMIME-Version: 1.0\n"


QUOTED = "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n"
UUENCODED = (
    f"\nSee:\n\nbegin 644 a.csv\n{binascii.b2a_uu(b'x,y').decode()}{binascii.b2a_uu(b'z,w').decode()}`\nend\n"
)
SAVED = """Content-Type: multipart/related; boundary=b

--b
Content-Type: text/html

<p>Page</p>
--b
Content-Type: text/css

p {color: red}
--b--
"""
CALENDAR = """Content-Type: text/calendar

BEGIN:VCALENDAR
SUMMARY:Budget mee
 ting
LOCATION:Room 5\\, Bonn
END:VCALENDAR
"""


@pytest.mark.parametrize(
    ("rest", "end"),
    [
        (f"{QUOTED}Gr=C3=BC=C3=9Fe", "S\n\nGrüße"),
        (f"{QUOTED}Gr=FC=DFe", "S\n\nGrüße"),
        (UUENCODED, "See:\n\na.csv\n\nx | yz | w"),
        (SAVED, "S\n\nPage"),
        (CALENDAR, "SUMMARY:Budget meeting\nLOCATION:Room 5, Bonn\nEND:VCALENDAR"),
    ],
    ids=["lie", "truth", "uuencoded", "style sheet", "calendar"],
)
def test_messages_of_all_kinds(tmp_path: Path, rest: str, end: str) -> None:
    assert read(tmp_path, HEAD + rest, "a.eml").text.endswith(end)


def page_of_marks(bounds: list[int], formatting: list[bytes], step: int) -> bytes:
    """512 bytes as Word keeps them: bounds, where the formatting of each stretch is, and that from the end on."""
    page, at, places = bytearray(512), 511, b""
    for data in formatting:
        at = (at - len(data) - 1) & ~1
        page[at : at + len(data)] = data
        places += bytes([at // 2]).ljust(step, b"\0")
    head = struct.pack(f"<{len(bounds)}I", *bounds) + places
    page[: len(head)] = head
    page[511] = len(formatting)
    return bytes(page)


def test_old_word_tells_tables_headings_and_deleted_words_apart() -> None:
    heading, cell, end = (
        b"\x00\x01\x02\x00",
        b"\x03\x00\x00\x16\x24\x01",
        b"\x05\x00\x00\x16\x24\x01\x17\x24\x01\x00",
    )
    paragraphs = page_of_marks([1536, 1546, 1556, 1566], [heading, cell, end], 13)
    characters = page_of_marks([1536, 1540, 1546, 1566], [b"", b"\x03\x00\x08\x01", b""], 1)
    main = bytearray(1536)
    main[0x102:0x10A], main[0xFA:0x102] = struct.pack("<II", 0, 12), struct.pack("<II", 12, 12)
    main[512:1024], main[1024:1536] = paragraphs, characters
    marks = Marks(bytes(main), struct.pack("<6I", 1536, 1566, 1, 1536, 1566, 2))
    assert [marks.paragraph(place) for place in (1536, 1550, 1560, 1600)] == [
        Mark(heading=2), Mark(table=True), Mark(table=True, row_end=True), Mark(),
    ]  # fmt: skip
    assert marks.kept("0123456789", 1536, 1) == "0123"
    assert marks.kept("01234567", 1536, 2) == "01567"


def test_formulas_that_nobody_has_worked_out_are_shown(tmp_path: Path) -> None:
    bare = '<c r="B1"><f>SUM(A1:A9)</f><v></v></c>'
    link = '<c r="A2"><f>HYPERLINK("http://x.org","the site")</f></c>'
    data = xlsx(row(1, '<c r="A1"><v>4</v></c>', bare) + row(2, link, '<c r="B2"><f>1+1</f><v>2</v></c>'))
    assert read(tmp_path, data, "a.xlsx").text == "Rates\n\n4 | =SUM(A1:A9)\nthe site | 2"


def test_open_document_without_an_archive_with_a_title(tmp_path: Path) -> None:
    kind = "application/vnd.oasis.opendocument.text"
    styles = '<style:style style:name="P1" style:parent-style-name="Title"/>'
    data = (
        f'<?xml version="1.0"?><office:document {ODF} xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
        f'office:mimetype="{kind}"><office:automatic-styles>{styles}</office:automatic-styles><office:body>'
        '<office:text><text:p text:style-name="P1">Handbook</text:p><text:p>Words</text:p></office:text>'
        "</office:body></office:document>"
    )
    reading = read(tmp_path, data, "a.fodt")
    assert (reading.format, reading.text) == ("odt", "Handbook\n\nWords")
    assert reading.pages[0].blocks[1].heading == ("Handbook",)


def test_rich_text_with_headings_wrapped_cells_and_deleted_words(tmp_path: Path) -> None:
    code = (
        r"{\rtf1\ansi{\stylesheet{\s0 Normal;}{\s1\b\fs28\snext0 heading 1;}{\s7 Title;}}"
        r"\pard\plain\s7 Handbook\par\pard\plain\s1 Scope\par\pard\plain Kept {\deleted gone }words\par"
        r"\trowd\cellx1000\cellx2000\pard\intbl one\par\pard\intbl more\cell\pard\intbl two\cell\row\pard After\par}"
    )
    reading = read(tmp_path, code, "a.rtf")
    assert [(block.kind, block.heading) for block in reading.pages[0].blocks[:3]] == [
        ("heading", ("Handbook",)), ("heading", ("Scope",)), ("paragraph", ("Scope",)),
    ]  # fmt: skip
    assert reading.text.replace("  ", " ") == "Handbook\n\nScope\n\nKept words\n\none more | two\n\nAfter"


def damaged_member(parts: dict[str, str | bytes], name: str) -> bytes:
    """An archive in which the packed bytes of one member are noise."""
    data = bytearray(packed(parts))
    at = data.index(name.encode()) + len(name)
    data[at : at + 20] = b"\xff" * 20
    return bytes(data)


LONG = "All of these words are packed so well that they take less room than before, before, before."


def test_one_damaged_file_takes_no_others_of_its_archive_with_it(tmp_path: Path) -> None:
    reading = read(tmp_path, damaged_member({"a.txt": LONG, "b.txt": "Sound."}, "a.txt"), "a.zip")
    assert reading.text == "b.txt\n\nSound."
    assert reading.warnings == ("“a.txt” is damaged in the archive and was left out. Pack it again.",)


@pytest.mark.parametrize("name", ["a.docx", "a.odt", "a.epub", "a.xlsx"])
def test_a_package_that_is_damaged_inside_is_refused_with_its_reason(tmp_path: Path, name: str) -> None:
    main = {"a.docx": "word/document.xml", "a.xlsx": "xl/workbook.xml", "a.epub": "META-INF/container.xml"}
    kind = {"mimetype": "application/vnd.oasis.opendocument.text"} if name == "a.odt" else {}
    part = main.get(name, "content.xml")
    with pytest.raises(ReadError, match="damaged inside") as caught:
        read(tmp_path, damaged_member({**kind, part: LONG}, part), name)
    assert caught.value.reason == "damaged"
