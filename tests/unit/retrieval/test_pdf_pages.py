"""What stands on the pages of PDFs beside running text: stamps, fields, tables, files; from files built here."""

import ctypes
import io
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium
import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    StreamObject,
    TextStringObject,
)
from pypdfium2 import raw

from retrieval.parsing.blocks import Reading
from retrieval.parsing.formats import parse
from retrieval.parsing.source import Source

Placed = tuple[float, float, str]


def pdf(*placed: Placed, turned: tuple[Placed, ...] = (), size: float = 10) -> bytes:
    """One page of words at (left, baseline from below), and words that run upward."""
    document = pdfium.PdfDocument.new()
    page = document.new_page(600, 800)
    font = raw.FPDFText_LoadStandardFont(document, b"Helvetica")
    for items, matrix in ((turned, (0, 1, -1, 0)), (placed, (1, 0, 0, 1))):
        for x, y, text in items:
            item = raw.FPDFPageObj_CreateTextObj(document, font, size)
            letters = (text + "\0").encode("utf-16-le")
            raw.FPDFText_SetText(
                item,
                ctypes.cast(ctypes.create_string_buffer(letters), ctypes.POINTER(ctypes.c_ushort)),
            )
            raw.FPDFPageObj_Transform(item, *matrix, x, y)
            raw.FPDFPage_InsertObject(page, item)
    page.gen_content()
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def read(tmp_path: Path, data: bytes) -> Reading:
    path = tmp_path / "file"
    path.write_bytes(data)
    return parse(Source(path, "a.pdf"))


def changed(data: bytes, change: Any) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    change(writer)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def blocks(reading: Reading) -> list[str]:
    return reading.text.split("\n\n")


LINES = tuple((60.0, 700.0 - 14 * i, f"Line number {i} of the running text on this page") for i in range(12))


def test_a_stamp_along_the_margin_is_read_by_itself_after_the_page(tmp_path: Path) -> None:
    reading = read(tmp_path, pdf(*LINES, turned=((40, 500, "arXiv:2305.03393v1 [cs.CV] 5 May 2023"),)))
    assert blocks(reading) == ["\n".join(text for *_, text in LINES), "arXiv:2305.03393v1 [cs.CV] 5 May 2023"]
    page = reading.pages[0]
    assert page.lines[-1].box[0] < 0.1  # It is marked where it stands.
    assert page.text[page.lines[-1].start : page.lines[-1].end].startswith("arXiv")


def test_a_page_written_upward_keeps_its_straight_header_apart(tmp_path: Path) -> None:
    rows = tuple(
        (100.0 + 14 * i, 100.0 + 100 * j, f"{word}{i}")
        for i in range(8)
        for j, word in enumerate(("year", "born"))
    )
    reading = read(tmp_path, pdf((60, 780, "Chapter 4"), turned=rows))
    assert blocks(reading) == ["\n".join(f"year{i} | born{i}" for i in range(8)), "Chapter 4"]


ARABIC = """/CIDInit /ProcSet findresource begin begincmap
1 begincodespacerange <00> <FF> endcodespacerange
1 beginbfrange <41> <4A> <0644> endbfrange
1 beginbfrange <61> <7A> <0061> endbfrange
endcmap end"""
"""Capital letters up to J are Arabic ones."""


def test_letters_inside_arabic_words_do_not_turn_the_page(tmp_path: Path) -> None:
    def arabic(writer: Any) -> None:
        stream = StreamObject()
        stream.set_data(ARABIC.encode())
        for font in writer.pages[0]["/Resources"]["/Font"].values():
            font.get_object()[NameObject("/ToUnicode")] = writer._add_object(stream)

    lines = ((60.0, 700.0, "ABCD EFGHI JABCpython EFGH"), (60.0, 686.0, "CDEF GHIJpython ABCD"))
    first, second = read(tmp_path, changed(pdf(*lines), arabic)).text.split("\n")
    assert (len(first), len(second)) == tuple(len(line) for *_, line in lines)


WRAPPED = (
    *((60.0, 700.0, "Code"), (120.0, 700.0, "Description"), (300.0, 700.0, "Price")),
    *((120.0, 677.0, "A pump of cast iron that"), (60.0, 671.0, "P-1"), (300.0, 671.0, "12.50")),
    *((120.0, 665.0, "is quiet at night"),),
    *((120.0, 642.0, "A valve of brass with a"), (60.0, 636.0, "V-2"), (300.0, 636.0, "7.25")),
    *((120.0, 630.0, "red wheel on top"),),
)


def test_a_cell_of_several_lines_is_one_cell_wherever_its_row_is_written(tmp_path: Path) -> None:
    rows = [
        "Code | Description | Price",
        "P-1 | A pump of cast iron that is quiet at night | 12.50",
        "V-2 | A valve of brass with a red wheel on top | 7.25",
    ]
    assert blocks(read(tmp_path, pdf(*WRAPPED))) == ["\n".join(rows)]


def test_the_head_of_an_invoice_is_not_part_of_its_table(tmp_path: Path) -> None:
    head = [
        ("Bill to:", "Invoice no: 42"),
        ("Muster GmbH", "Date: 12 March"),
        ("10115 Berlin", "Due: 11 April"),
    ]
    items = [("Pos", "Text", "Qty", "Price"), ("1", "Consulting", "10", "120"), ("2", "Travel", "1", "85")]
    placed = [
        (x, 700.0 - 14 * i, t) for i, row in enumerate(head) for x, t in zip((60, 360), row, strict=True)
    ]
    placed += [
        (x, 630.0 - 16 * i, t)
        for i, row in enumerate(items)
        for x, t in zip((60, 90, 300, 380), row, strict=True)
    ]
    assert blocks(read(tmp_path, pdf(*placed))) == [
        "\n".join(" | ".join(row) for row in head),
        "\n".join(" | ".join(row) for row in items),
    ]


def test_a_running_header_over_two_columns_is_no_line_of_them(tmp_path: Path) -> None:
    left = [(60.0, 700.0 - 12 * i, f"left column line {i} goes on and on here") for i in range(8)]
    right = [(320.0, 700.0 - 12 * i, f"right column line {i} goes on and on too") for i in range(8)]
    reading = read(tmp_path, pdf((60, 760, "Journal of Tests"), (440, 760, "Vol. 12"), *left, *right))
    assert blocks(reading) == [
        "Journal of Tests Vol. 12",
        "\n".join(text for *_, text in left),
        "\n".join(text for *_, text in right),
    ]


def _field(kind: str, rect: tuple[int, ...], **more: Any) -> DictionaryObject:
    entries = {f"/{key}": value for key, value in more.items()}
    named = {"/Type": "/Annot", "/Subtype": "/Widget", "/FT": f"/{kind}"} if kind else {"/Subtype": "/Widget"}
    field = DictionaryObject({NameObject(key): NameObject(value) for key, value in named.items()})
    field[NameObject("/Rect")] = ArrayObject(map(FloatObject, rect))
    field.update({NameObject(key): value for key, value in entries.items()})
    return field


def form(writer: Any) -> None:
    """A name whose value stands with the field's parent, a town of its own, and a box that is ticked."""
    name = writer._add_object(
        DictionaryObject(
            {
                NameObject("/FT"): NameObject("/Tx"),
                NameObject("/T"): TextStringObject("name"),
                NameObject("/V"): TextStringObject("Erika Mustermann"),
            }
        )
    )
    shown = writer._add_object(_field("", (120, 690, 320, 712), Parent=name))
    name.get_object()[NameObject("/Kids")] = ArrayObject([shown])
    town = writer._add_object(
        _field("Tx", (120, 660, 320, 682), T=TextStringObject("town"), V=TextStringObject("Köln"))
    )
    tick = _field("Btn", (120, 632, 132, 644), T=TextStringObject("agree"))
    tick.update({NameObject(key): NameObject("/Yes") for key in ("/V", "/AS")})
    looks = DictionaryObject({NameObject("/Yes"): DictionaryObject(), NameObject("/Off"): DictionaryObject()})
    tick[NameObject("/AP")] = DictionaryObject({NameObject("/N"): looks})
    ticked = writer._add_object(tick)
    writer.pages[0][NameObject("/Annots")] = ArrayObject([shown, town, ticked])
    fields = DictionaryObject({NameObject("/Fields"): ArrayObject([name, town, ticked])})
    fields[NameObject("/NeedAppearances")] = BooleanObject(value=True)
    writer.root_object[NameObject("/AcroForm")] = fields


def test_fields_of_a_form_stand_beside_their_labels(tmp_path: Path) -> None:
    labels = pdf((60, 697, "Name:"), (60, 667, "Town:"), (60, 634, "Agreed:"))
    assert blocks(read(tmp_path, changed(labels, form))) == [
        "Name: | Erika Mustermann\nTown: | Köln\nAgreed: | ☒"
    ]


def test_files_in_a_pdf_are_read_after_its_last_page(tmp_path: Path) -> None:
    def attach(writer: PdfWriter) -> None:
        writer.add_attachment("prices.csv", b"item,price\npump,12\n")
        writer.add_attachment("factur-x.xml", b"<Invoice/>")
        writer.add_attachment("zero.bin", bytes(range(256)) * 20)

    reading = read(tmp_path, changed(pdf(*LINES), attach))
    assert [page.number for page in reading.pages] == [1]
    assert reading.text.endswith("on this page\n\nprices.csv\n\nitem | price\npump | 12\n\nzero.bin")
    assert reading.pages[0].blocks[2].heading == ("prices.csv",)
    assert reading.metadata["attachments"] == ["factur-x.xml", "prices.csv", "zero.bin"]
    assert reading.warnings[0] == "Attachment not read: “factur-x.xml”."
    assert reading.warnings[1].startswith("Attachment not read: “zero.bin”")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("co\u00adop", "coop"),
        ("non\u2011stop", "non-stop"),
        ("\uf0b7 item", "• item"),
        ("a\u200bb\ufeff", "ab"),
    ],
    ids=["soft", "fixed", "symbol", "nothing"],
)
def test_marks_nobody_sees_part_no_words(tmp_path: Path, written: str, shown: str) -> None:
    path = tmp_path / "file"
    path.write_text(written)
    assert parse(Source(path, "a.txt")).text == shown
