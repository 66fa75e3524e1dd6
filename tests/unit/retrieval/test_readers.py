"""Office, mail and archive formats, from files built here."""

import email.message
import io
import zipfile
from pathlib import Path

import pptx
import pptx.util
import pytest

from retrieval.errors import ReadError
from retrieval.parsing.blocks import Reading
from retrieval.parsing.formats import formats, parse
from retrieval.parsing.limits import Limits
from retrieval.parsing.source import Source

S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)


def read(tmp_path: Path, data: bytes | str, name: str, **more: object) -> Reading:
    path = tmp_path / "file"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return parse(Source(path, name, **more))


def packed(parts: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def xlsx(rows: str, merges: str = "", styles: str = "") -> bytes:
    relation = '<Relationship Id="{}" Type="' + R + '/{}" Target="{}"/>'
    package = "http://schemas.openxmlformats.org/package/2006"
    return packed(
        {
            "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
            "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
            + relation.format("a", "officeDocument", "xl/workbook.xml")
            + "</Relationships>",
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
            + relation.format("r1", "worksheet", "worksheets/sheet1.xml")
            + relation.format("r2", "styles", "styles.xml")
            + "</Relationships>",
            "xl/workbook.xml": f'<workbook xmlns="{S}" xmlns:r="{R}"><sheets>'
            '<sheet name="Rates" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/styles.xml": f'<styleSheet xmlns="{S}"><numFmts><numFmt numFmtId="170" formatCode="00000"/></numFmts>'
            '<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/><xf numFmtId="10"/><xf numFmtId="14"/></cellXfs>'
            "</styleSheet>",
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{S}"><sheetData>{rows}</sheetData>{merges}</worksheet>',
        }
    )


def cell(place: str, value: str, style: int = 0) -> str:
    if value.replace(".", "").isdigit() or style:
        return f'<c r="{place}" s="{style}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


HEADER = ("City", "Grade", "Rate", "Code", "Share", "From")


def test_excel_fills_merged_cells_and_shows_what_formats_say(tmp_path: Path) -> None:
    header = [cell(f"{letter}3", text) for letter, text in zip("ABCDEF", HEADER, strict=True)]
    bonn = [
        cell("A4", "Bonn"),
        cell("B4", "A"),
        cell("C4", "480"),
        cell("D4", "123", 1),
        cell("E4", "0.025", 2),
    ]
    second = [cell("B5", "B"), cell("C5", "350.5"), cell("D5", "7", 1), cell("E5", "1", 2)]
    rows = row(1, cell("A1", "Travel allowance")) + row(3, *header) + row(4, *bonn, cell("F4", "45292", 3))
    rows += row(5, *second)
    reading = read(tmp_path, xlsx(rows, '<mergeCells><mergeCell ref="A4:A5"/></mergeCells>'), "a.xlsx")
    assert reading.text == (
        "Rates\n\nTravel allowance\n\nCity | Grade | Rate | Code | Share | From\n"
        "Bonn | A | 480 | 00123 | 2.5% | 2024-01-01\nBonn | B | 350.5 | 00007 | 100% |"
    )
    assert [block.kind for block in reading.pages[0].blocks] == ["heading", "paragraph", "table"]


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("id;name\n007;Bond\n012;Q\n", "id | name\n007 | Bond\n012 | Q"),
        ("id\tname\n007\tBond\n", "id | name\n007 | Bond"),
        ("sep=;\nid;a,b\n007;c,d\n", "id | a,b\n007 | c,d"),
        ('id,note\n1,"two\nlines, one cell"\n', "id | note\n1 | two lines, one cell"),
        ("n,n,m\n1,2,3\n4,5,6\n", "n | n | m\n1 | 2 | 3\n4 | 5 | 6"),
        ("n,m,n\n1,2,3\n4,5,6\n", "n | m | n (2)\n1 | 2 | 3\n4 | 5 | 6"),
    ],
)
def test_csv_keeps_cells_as_they_are_written(tmp_path: Path, text: str, table: str) -> None:
    assert read(tmp_path, text, "a.csv").text == table


def test_csv_whose_first_foreign_letter_comes_late(tmp_path: Path) -> None:
    data = b"name,city\n" + b"plain,ascii\n" * 1000 + "三木英子,大阪\n".encode("cp932")
    assert "三木英子 | 大阪" in read(tmp_path, data, "a.csv").text


def test_json_lists_are_tables_and_numbers_stay_as_written(tmp_path: Path) -> None:
    text = '{"title": "T", "total": 1.10, "items": [{"id": "007", "n": 1e3}, {"id": "008"}], "deep": {"a": [1, null]}}'
    reading = read(tmp_path, text, "a.json")
    assert "total: 1.10" in reading.text
    assert "id | n\n007 | 1e3\n008 |" in reading.text
    assert "deep.a[1]: 1" in reading.text
    assert reading.metadata["title"] == "T"


def test_rst_follows_nothing_and_keeps_structure(tmp_path: Path) -> None:
    text = "Guide\n=====\n\n.. include:: /etc/passwd\n.. raw:: html\n\n   <b>x</b>\n\n"
    text += "Part\n----\n\n* one\n* two\n\n::\n\n  code\n"
    reading = read(tmp_path, text, "a.rst")
    kinds = [(b.kind, reading.text[b.start : b.end], b.heading) for b in reading.pages[0].blocks]
    assert kinds == [
        ("heading", "Guide", ("Guide",)),
        ("heading", "Part", ("Guide", "Part")),
        ("list", "- one\n- two", ("Guide", "Part")),
        ("code", "code", ("Guide", "Part")),
    ]


def odt(body: str, kind: str = "text") -> bytes:
    mime = f"application/vnd.oasis.opendocument.{kind}"
    return packed(
        {
            "mimetype": mime,
            "META-INF/manifest.xml": '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
            "content.xml": f"<office:document-content {ODF}><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
        }
    )


def test_open_document_text(tmp_path: Path) -> None:
    body = (
        '<text:h text:outline-level="1">Fees</text:h><text:p>A<text:s text:c="2"/>b<text:note><text:note-body>'
        "<text:p>small print</text:p></text:note-body></text:note></text:p>"
        "<text:list><text:list-item><text:p>one</text:p></text:list-item></text:list>"
    )
    assert read(tmp_path, odt(body), "a.odt").text == "Fees\n\nA  b [small print]\n\n- one"


def test_open_document_without_a_manifest(tmp_path: Path) -> None:
    body = f"<office:document-content {ODF}><office:body><office:text><text:p>Fees</text:p></office:text></office:body>"
    data = packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"{body}</office:document-content>",
        }
    )
    assert read(tmp_path, data, "a.odt").text == "Fees"


def test_rich_text_in_the_code_pages_of_its_fonts_with_footnotes(tmp_path: Path) -> None:
    def written(text: str, encoding: str) -> str:
        return "".join(f"\\'{byte:02x}" for byte in text.encode(encoding))

    data = (
        r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset128 Mincho;}{\f2\fcharset204 T;}}"
        rf"\f1 {written('賃貸契約', 'cp932')}\par\f2 {written('Договор', 'cp1251')}\par\f0 term"
        r"{\super 1}{\footnote\pard Five years.}\par}"
    )
    assert read(tmp_path, data, "a.rtf").text == "賃貸契約\nДоговор\nterm1 Five years."


def test_open_document_sheet_fills_merged_cells(tmp_path: Path) -> None:
    body = (
        '<table:table table:name="S"><table:table-row><table:table-cell table:number-columns-spanned="2">'
        "<text:p>wide</text:p></table:table-cell><table:covered-table-cell/><table:table-cell><text:p>c</text:p>"
        '</table:table-cell></table:table-row><table:table-row><table:table-cell table:number-rows-spanned="2">'
        "<text:p>tall</text:p></table:table-cell><table:table-cell><text:p>007</text:p></table:table-cell>"
        "</table:table-row><table:table-row><table:covered-table-cell/><table:table-cell>"
        '<text:p>8</text:p></table:table-cell></table:table-row><table:table-row table:number-rows-repeated="1048000">'
        '<table:table-cell table:number-columns-repeated="16000"/></table:table-row></table:table>'
    )
    reading = read(tmp_path, odt(body, "spreadsheet"), "a.ods")
    assert reading.text == "S\n\nwide | wide | c\ntall | 007\ntall | 8"


def test_slides_with_tables_charts_and_notes(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Results"
    table = slide.shapes.add_table(2, 3, 0, 3_000_000, 900_000, 900_000).table
    for i, text in enumerate(["wide", "", "c", "1", "2", "3"]):
        table.cell(i // 3, i % 3).text = text
    table.cell(0, 0).merge(table.cell(0, 1))
    slide.notes_slide.notes_text_frame.text = "Say hello."
    deck.slides.add_slide(deck.slide_layouts[6])
    out = io.BytesIO()
    deck.save(out)
    reading = read(tmp_path, out.getvalue(), "a.pptx")
    assert [page.text for page in reading.pages] == [
        "Results\n\nwide | wide | c\n1 | 2 | 3\n\nNotes: Say hello.",
        "",
    ]
    assert reading.paged


def epub(*chapters: str) -> bytes:
    names = [f"c{i}.xhtml" for i in range(len(chapters))]
    items = "".join(f'<item id="{n}" href="{n}" media-type="application/xhtml+xml"/>' for n in sorted(names))
    spine = "".join(f'<itemref idref="{n}"/>' for n in reversed(names))
    opf = f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="O/b.opf"/></rootfiles></container>',
            "O/b.opf": opf,
            **{
                f"O/{n}": f"<html><body><h1>{text}</h1></body></html>"
                for n, text in zip(names, chapters, strict=True)
            },
        }
    )


def test_a_book_is_read_in_the_order_of_its_spine(tmp_path: Path) -> None:
    reading = read(tmp_path, epub("last", "middle", "first"), "a.epub")
    assert [page.text for page in reading.pages] == ["first", "middle", "last"]


def message() -> email.message.EmailMessage:
    mail = email.message.EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ä <a@x.org>", "b@x.org", "Grüße 你好"
    mail.set_content("Plain only: señor.\n", cte="quoted-printable", charset="iso-8859-1")
    mail.add_alternative("<p>Shown in HTML</p>", subtype="html", cte="base64")
    mail.add_attachment(b"id;n\n007;1\n", maintype="text", subtype="csv", filename="kürzel.csv")
    mail.add_attachment(b"\x00\x01" * 200, maintype="application", subtype="octet-stream", filename="odd.bin")
    inner = email.message.EmailMessage()
    inner["From"], inner["Subject"] = "c@x.org", "Inside"
    inner.set_content("Forwarded text")
    mail.add_attachment(inner)
    return mail


def test_a_message_with_everything(tmp_path: Path) -> None:
    reading = read(tmp_path, message().as_bytes(), "a.eml")
    for part in (
        "Grüße 你好",
        "Shown in HTML",
        "Plain only: señor.",
        "id | n\n007 | 1",
        "Inside",
        "Forwarded text",
    ):
        assert part in reading.text
    assert reading.metadata["attachments"] == ["kürzel.csv", "odd.bin"]
    assert next(w for w in reading.warnings if "odd.bin" in w).startswith("Attachment not read: “odd.bin”")


def test_an_archive_reads_what_it_can_and_names_the_rest(tmp_path: Path) -> None:
    inner = packed({"deep/b.md": "# Deep\n\ntext"})
    files: dict[str, str | bytes] = {
        "a.txt": "one",
        "bad.pdf": "%PDF-1.7",
        "in.zip": inner,
        "m.eml": message().as_bytes(),
    }
    data = packed({**files, "__MACOSX/x": "y"})
    reading = read(tmp_path, data, "a.zip")
    assert [page.text.split("\n")[0] for page in reading.pages] == ["a.txt", "in.zip", "m.eml"]
    assert reading.pages[1].blocks[-1].heading == ("in.zip", "deep/b.md", "Deep")
    assert any("bad.pdf" in warning for warning in reading.warnings)


def test_layers_without_end_are_refused(tmp_path: Path) -> None:
    data = b"text"
    for i in range(6):
        data = packed({f"{i}.zip" if i else "a.txt": data})
    with pytest.raises(ReadError, match="layers deep"):
        read(tmp_path, data, "a.zip")


def test_many_small_bombs_count_together(tmp_path: Path) -> None:
    small = packed({"zero": b"0" * 400_000})
    with pytest.raises(ReadError, match="exhaust"):
        read(
            tmp_path,
            packed({f"{i}.zip": small for i in range(9)}),
            "a.zip",
            limits=Limits(unpacked=2_000_000),
        )


def test_entities_are_refused_in_any_encoding(tmp_path: Path) -> None:
    evil = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
    data = packed({"mimetype": "application/epub+zip", "META-INF/container.xml": evil.encode("utf-16")})
    with pytest.raises(ReadError, match="XML entities") as caught:
        read(tmp_path, data, "a.epub")
    assert caught.value.reason == "bomb"


def test_a_picture_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01\x00\x00\x00\x01\x00\x00\x08\x02\x00\x00\x00"
    with pytest.raises(ReadError) as caught:
        read(tmp_path, header + bytes(200), "a.png")
    assert caught.value.reason in {"bomb", "damaged", "scanned"}


@pytest.mark.parametrize("name", [item.name for item in formats()])
def test_every_format_says_what_it_is(name: str) -> None:
    (found,) = [item for item in formats() if item.name == name]
    assert found.mime
    assert callable(found.read)
