"""What stands beside the running text, or in a form that libraries pass over, is read too; files are built here."""

import email.message
import io
import zipfile
from pathlib import Path
from typing import Any

import pptx
import pptx.util
import pypdf
import pypdf.annotations
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from pptx.chart.data import XyChartData
from pptx.enum.chart import XL_CHART_TYPE

from tests.unit.retrieval.test_readers import packed, read

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
DGM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
ODF = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in (
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("draw", "drawing"),
        ("svg", "svg-compatible"),
        ("presentation", "presentation"),
    )
)
CHART = (
    f'<c:chartSpace xmlns:c="{C}" xmlns:a="{A}"><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Sales by month</a:t>'
    "</a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache>"
    '<c:pt idx="0"><c:v>Berlin</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache>'
    '<c:pt idx="0"><c:v>Jan</c:v></c:pt><c:pt idx="1"><c:v>Feb</c:v></c:pt></c:strCache></c:strRef></c:cat>'
    '<c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>42</c:v></c:pt><c:pt idx="1"><c:v>0.30000000000000004</c:v>'
    "</c:pt></c:numCache></c:numRef></c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>"
)
DIAGRAM = (
    f'<dgm:dataModel xmlns:dgm="{DGM}" xmlns:a="{A}"><dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>First </a:t></a:r><a:r>'
    "<a:t>step</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
)


def word(body: str, main: str = "document.xml", **parts: str) -> bytes:
    return packed(
        {
            "[Content_Types].xml": "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>",
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r1" Type="{REL}/officeDocument" '
            f'Target="word/{main}"/></Relationships>',
            f"word/{main}": f'<w:document xmlns:w="{W}" xmlns:m="{M}" xmlns:v="urn:schemas-microsoft-com:vml">'
            f"<w:body>{body}</w:body></w:document>",
            **{f"word/{name}": text for name, text in parts.items()},
        }
    )


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


FRACTION = "<m:f><m:num><m:r><m:t>b+1</m:t></m:r></m:num><m:den><m:r><m:t>c</m:t></m:r></m:den></m:f>"
POWER = "<m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (f'<w:fldSimple w:instr="TITLE">{run("From a field")}</w:fldSimple>', "From a field"),
        (
            f"<m:oMathPara><m:oMath>{FRACTION}<m:r><m:t>=</m:t></m:r>{POWER}</m:oMath></m:oMathPara>",
            "(b+1)/c=x^2",
        ),
        (f"<w:bdo>{run('turned')}</w:bdo><w:dir>{run(' twice')}</w:dir>", "turned twice"),
        (f"<w:ruby><w:rt>{run('kana')}</w:rt><w:rubyBase>{run('漢字')}</w:rubyBase></w:ruby>", "漢字 (kana)"),
        ('<w:r><w:pict><v:shape><v:textpath string="DRAFT"/></v:shape></w:pict></w:r>', "DRAFT"),
        (
            "<w:r><w:t>non</w:t><w:noBreakHyphen/><w:t>break</w:t><w:softHyphen/><w:t>ing</w:t></w:r>",
            "non-breaking",
        ),
    ],
    ids=["field", "formula", "direction", "ruby", "word-art", "hyphens"],
)
def test_word_passes_nothing_over(tmp_path: Path, inside: str, text: str) -> None:
    assert read(tmp_path, word(f"<w:p>{inside}</w:p>"), "a.docx").text == text


def numbered(style: str, level: int = 0, text: str = "") -> str:
    number = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="7"/></w:numPr>' if not style else ""
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{number}</w:pPr>{run(text)}</w:p>'


def test_word_counts_its_headings_and_clauses(tmp_path: Path) -> None:
    w = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    level = '<w:lvl w:ilvl="{}"><w:start w:val="1"/><w:numFmt w:val="{}"/><w:lvlText w:val="{}"/></w:lvl>'
    levels = level.format(0, "upperRoman", "%1.") + level.format(1, "decimal", "%1%2")
    levels += level.format(2, "lowerLetter", "(%3)")
    style = '<w:style w:type="paragraph" w:styleId="{}"><w:name w:val="{}"/>{}</w:style>'
    based = '<w:basedOn w:val="H"/>'
    number = '<w:pPr><w:numPr><w:numId w:val="7"/></w:numPr></w:pPr>'
    styles = style.format("H", "heading 1", number) + style.format("G", "own", based)
    parts = {
        "numbering.xml": f'<w:numbering {w}><w:abstractNum w:abstractNumId="3">{levels}</w:abstractNum>'
        '<w:num w:numId="7"><w:abstractNumId w:val="3"/></w:num></w:numbering>',
        "styles.xml": f"<w:styles {w}>{styles}</w:styles>",
    }
    body = numbered("H", text="Scope") + numbered("", 1, "All pumps.") + numbered("", 2, "Small ones.")
    body += numbered("", 2, "Large ones.") + numbered("G", text="Term") + numbered("", 1, "A year.")
    reading = read(tmp_path, word(body, **parts), "a.docx")
    assert reading.text.split("\n\n")[1:4] == ["I1 All pumps.", "(a) Small ones.", "(b) Large ones."]
    assert [line for line in reading.text.split("\n\n") if line[0] == "I"] == [
        "I. Scope", "I1 All pumps.", "II. Term", "II1 A year.",
    ]  # fmt: skip


def test_word_with_chart_diagram_inserted_page_and_a_numbered_main_part(tmp_path: Path) -> None:
    parts = {
        "charts/chart1.xml": CHART,
        "diagrams/data1.xml": DIAGRAM,
        "part.html": "<p>Put in as a page</p>",
    }
    reading = read(tmp_path, word(f"<w:p>{run('Words')}</w:p>", "document2.xml", **parts), "a.docx")
    assert reading.format == "docx"
    table = " | Berlin\nJan | 42\nFeb | 0.3"
    assert reading.text == f"Words\n\nSales by month\n\n{table}\n\nFirst step\n\nPut in as a page"


def odf(body: str, kind: str, **parts: str) -> bytes:
    mime = {"drawing": "graphics"}.get(kind, kind)
    content = (
        f"<office:document-content {ODF}><office:body><office:{kind}>{body}</office:{kind}></office:body>"
    )
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{mime}",
            "content.xml": f"{content}</office:document-content>",
            **parts,
        }
    )


def box(text: str) -> str:
    return f"<draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<text:p><draw:custom-shape><text:p>In a shape</text:p></draw:custom-shape></text:p>", "In a shape"),
        (f"<text:p><draw:g>{box('In a group')}</draw:g></text:p>", "In a group"),
        (
            f"<text:list><text:list-item><text:p>one {box('beside')}</text:p></text:list-item></text:list>",
            "- one\nbeside",
        ),
        (
            "<text:p><draw:frame><draw:image/><svg:desc>A red valve</svg:desc></draw:frame></text:p>",
            "A red valve",
        ),
    ],
    ids=["shape", "group", "list", "picture"],
)
def test_open_document_reads_shapes_wherever_they_stand(tmp_path: Path, body: str, text: str) -> None:
    assert read(tmp_path, odf(body, "text"), "a.odt").text == text


def cell(inside: str, more: str = "") -> str:
    return f"<table:table-cell {more}>{inside}</table:table-cell>"


def test_open_document_cells_with_boxes_tables_comments_and_bare_values(tmp_path: Path) -> None:
    inner = f"<table:table><table:table-row>{cell('<text:p>inner</text:p>')}</table:table-row></table:table>"
    note = "<office:annotation><text:p>Ask Joe</text:p></office:annotation>"
    bare = cell("", 'office:value-type="boolean" office:boolean-value="true"')
    rows = (
        f"<table:table-row>{cell('<text:p>a ' + box('boxed') + '</text:p>')}{cell(inner)}</table:table-row>"
        f"<table:table-row>{cell(f'<text:p>b</text:p>{note}')}{bare}</table:table-row>"
    )
    reading = read(tmp_path, odf(f'<table:table table:name="S">{rows}</table:table>', "spreadsheet"), "a.ods")
    assert reading.text == "S\n\na boxed | inner\nb | true\n\nComment on “b”: Ask Joe"


def test_slides_of_open_document_hold_charts_and_drawings_are_read(tmp_path: Path) -> None:
    linked = (
        '<draw:frame><draw:object xmlns:x="http://www.w3.org/1999/xlink" x:href="./Object 1"/></draw:frame>'
    )
    row = f"<table:table-row>{cell('<text:p>Q1</text:p>')}{cell('<text:p>77</text:p>')}</table:table-row>"
    chart = (
        f"<office:document-content {ODF}><office:body><office:chart><text:p>Turnover</text:p><table:table>{row}"
        "</table:table></office:chart></office:body></office:document-content>"
    )
    slide = f"<draw:page>{box('Plan')}{linked}</draw:page>"
    parts: dict[str, Any] = {"Object 1/content.xml": chart}
    assert read(tmp_path, odf(slide, "presentation", **parts), "a.odp").text == "Plan\n\nTurnover\n\nQ1 | 77"
    assert read(tmp_path, odf(f"<draw:page>{box('Sketch')}</draw:page>", "drawing"), "a.odg").text == "Sketch"


def deck() -> dict[str, bytes]:
    """A slide with a chart of points, a picture that is described, newer shapes, a diagram and a comment."""
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    data = XyChartData()
    data.add_series("Runs").add_data_point(1.5, 2.5)
    slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, 0, 0, pptx.util.Inches(2), pptx.util.Inches(2), data)
    out = io.BytesIO()
    presentation.save(out)
    with zipfile.ZipFile(out) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    p = "http://schemas.openxmlformats.org/presentationml/2006/main"
    named = "<p:nv{0}><p:cNvPr id='{1}' name='n' {2}/><p:cNv{0}/><p:nvPr/></p:nv{0}>"
    shape = (
        f"<p:sp>{named.format('SpPr', 90, '')}<p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>In a newer form</a:t></a:r>"
        "</a:p></p:txBody></p:sp>"
    )
    described = "descr='A red valve'"
    picture = f"<p:pic>{named.format('PicPr', 91, described)}<p:blipFill/><p:spPr/></p:pic>"
    frame = (
        f"<p:graphicFrame>{named.format('GraphicFramePr', 92, '')}<p:xfrm/><a:graphic><a:graphicData uri='{DGM}'>"
        f"<dgm:relIds xmlns:dgm='{DGM}' xmlns:r='{REL}' r:dm='rId77'/></a:graphicData></a:graphic></p:graphicFrame>"
    )
    choice = (
        "<mc:AlternateContent xmlns:mc='http://schemas.openxmlformats.org/markup-compatibility/2006'>"
        f"<mc:Choice Requires='x'>{shape}</mc:Choice><mc:Fallback>{shape}</mc:Fallback></mc:AlternateContent>"
    )
    relations = [
        ("rId77", "diagramData", "diagrams/data1.xml"),
        ("rId78", "comments", "comments/comment1.xml"),
    ]
    added = "".join(
        f"<Relationship Id='{i}' Type='{REL}/{kind}' Target='../{path}'/>" for i, kind, path in relations
    )
    types = "".join(
        f"<Override PartName='/ppt/{path}' ContentType='application/xml'/>" for *_, path in relations
    )
    for name, end, more in (
        ("ppt/slides/slide1.xml", "</p:spTree>", picture + frame + choice),
        ("ppt/slides/_rels/slide1.xml.rels", "</Relationships>", added),
        ("[Content_Types].xml", "</Types>", types),
    ):
        parts[name] = parts[name].replace(end.encode(), f"{more}{end}".encode())
    parts["ppt/diagrams/data1.xml"] = DIAGRAM.encode()
    parts["ppt/comments/comment1.xml"] = (
        f'<p:cmLst xmlns:p="{p}"><p:cm><p:text>Check this</p:text></p:cm></p:cmLst>'.encode()
    )
    return parts


@pytest.mark.parametrize("kind", ["presentation", "slideshow", "template"])
def test_slides_hold_what_the_library_passes_over(tmp_path: Path, kind: str) -> None:
    parts = deck()
    types = "[Content_Types].xml"
    parts[types] = parts[types].replace(b"presentation.main+xml", f"{kind}.main+xml".encode())
    reading = read(tmp_path, packed(dict(parts)), "a.ppsx")
    assert set(reading.text.split("\n\n")) == {
        " | Runs\n1.5 | 2.5", "A red valve", "First step", "In a newer form", "Comment: Check this",
    }  # fmt: skip


def test_excel_says_currencies_and_measures(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    formats = {
        '#,##0.00 "€"': "1234.5 €", "$#,##0.00": "$1234.5", "#,##0.00 [$CHF-807]": "1234.5 CHF", '0.0"kg"': "1234.5 kg",
        "#,##0.00": "1234.5", "0.00E+00": "1234.5", "#,##0_ ;[Red]-#,##0": "1234.5",
    }  # fmt: skip
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("S")
        for i, code in enumerate(formats):
            sheet.write(i, 0, f"n{i}")
            sheet.write_number(i, 1, 1234.5, book.add_format({"num_format": code}))
    table = "\n".join(f"n{i} | {shown}" for i, shown in enumerate(formats.values()))
    assert read(tmp_path, path.read_bytes(), "a.xlsx").text == f"S\n\n{table}"


def test_rich_text_with_header_footer_comment_and_box(tmp_path: Path) -> None:
    code = r"{\rtf1\ansi{\header On top\par}{\footerf Below\par}Body{\*\annotation Ask Joe}\par"
    code += r"{\shp{\*\shpinst{\sp{\sn wzName}{\sv Box 1}}{\shptxt In a box\par}}}}"
    assert read(tmp_path, code, "a.rtf").text.split() == [
        *("On", "top", "Below", "Body", "[Comment]", "Ask", "Joe", "In", "a", "box"),
    ]


def test_comments_on_a_pdf(tmp_path: Path) -> None:
    document = pypdf.PdfWriter()
    document.add_blank_page(200, 200)
    note = pypdf.annotations.Text(text="Is this right?", rect=(9, 9, 20, 20), title_bar="Ann")
    document.add_annotation(0, note)
    out = io.BytesIO()
    document.write(out)
    data = out.getvalue()
    assert read(tmp_path, data, "a.pdf").text == "Comment by Ann: Is this right?"


def test_xhtml_whose_title_is_closed_where_it_opens(tmp_path: Path) -> None:
    start = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="a.js"/></head>'
    assert (
        read(tmp_path, f"{start}<body><p>All the words</p></body></html>", "a.xhtml").text == "All the words"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ftwo", "one\ntwo"),
        ("\x1b[31mred\x1b[0m text", "red text"),
        ("a\u2028b", "a\nb"),
    ],
)
def test_breaks_and_colours_in_plain_text(tmp_path: Path, text: str, shown: str) -> None:
    assert read(tmp_path, text, "a.log").text == shown


def test_json_that_is_broken_is_read_as_text_and_said_so(tmp_path: Path) -> None:
    reading = read(tmp_path, '{"a": "good"}\n{"a": ', "a.jsonl")
    assert "good" in reading.text
    assert "Not well-formed JSON" in reading.warnings[0]


def test_outlooks_own_form_is_named_and_not_read_as_noise(tmp_path: Path) -> None:
    mail = email.message.EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "a@x.org", "b@x.org", "Report"
    mail.set_content("See below.")
    tnef = b"\x78\x9f\x3e\x22" + bytes(range(32, 120))
    mail.add_attachment(tnef, maintype="application", subtype="ms-tnef", filename="winmail.dat")
    reading = read(tmp_path, mail.as_bytes(), "a.eml")
    assert reading.text.endswith("See below.")
    assert "“winmail.dat”" in reading.warnings[0]


def test_csv_with_rare_delimiters(tmp_path: Path) -> None:
    assert read(tmp_path, "a^b\n1^2\n", "a.csv").text == "a | b\n1 | 2"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "Café naïve Größe résumé"),
        ("iso8859_15", "Prix 5 € œuvre"),
        ("mac_cyrillic", "Привет, мир! Это простой текст. Документ номер пять."),
    ],
)
def test_more_encodings(tmp_path: Path, encoding: str, text: str) -> None:
    assert read(tmp_path, text.encode(encoding), "a.txt").text == text


def test_formulas_are_of_bounded_depth(tmp_path: Path) -> None:
    deep = "<m:rad><m:e>" * 300 + "<m:r><m:t>y</m:t></m:r>" + "</m:e></m:rad>" * 300
    assert "y" in read(tmp_path, word(f"<w:p><m:oMath>{deep}</m:oMath></w:p>"), "a.docx").text
