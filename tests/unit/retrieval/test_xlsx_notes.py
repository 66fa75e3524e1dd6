"""What lies over the cells of a workbook: comments, threads, text boxes, and what of it is damaged."""

import io
import zipfile
from pathlib import Path

from tests.unit.retrieval.test_readers import R, S, cell, read, row, xlsx

DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
RELATED = {
    "comments": "../comments1.xml",
    "threadedComment": "/xl/threadedComments/threadedComment1.xml",
    "drawing": "../drawings/drawing1.xml",
}
NOTE = (
    f'<comments xmlns="{S}"><authors><author>Anna Berg</author><author>tc={{1}}</author></authors><commentList>'
    '<comment ref="B3" authorId="0"><text><r><t>Anna Berg:</t></r><r><t xml:space="preserve">\nMeters </t></r>'
    "<r><t>above sea.</t></r></text></comment>"
    '<comment ref="AA1" authorId="0"><text><t>Far right.</t></text></comment>'
    '<comment ref="B2" authorId="1"><text><t>[Threaded comment] Only newer programs show it.</t></text></comment>'
    "</commentList></comments>"
)
THREAD = (
    '<ThreadedComments xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments">'
    '<threadedComment ref="B2" personId="{p}" id="{1}"><text>Why so high?</text></threadedComment>'
    '<threadedComment ref="B2" personId="{q}" id="{2}" parentId="{1}"><text>Measured twice.</text></threadedComment>'
    "</ThreadedComments>"
)
PEOPLE = (
    '<personList xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments">'
    '<person displayName="Kim Lee" id="{p}"/></personList>'
)


def box(row: int, *lines: str) -> str:
    text = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return (
        f"<x:twoCellAnchor><x:from><x:col>1</x:col><x:row>{row}</x:row></x:from><x:grpSp><x:sp><x:txBody>{text}"
        "</x:txBody></x:sp></x:grpSp></x:twoCellAnchor>"
    )


def boxes(*anchors: str) -> str:
    return (
        f'<x:wsDr xmlns:x="{DRAWING}/spreadsheetDrawing" xmlns:a="{DRAWING}/main" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"{''.join(anchors)}</x:wsDr>"
    )


def workbook(**parts: str) -> bytes:
    """Two mountains, and over them the named parts: `comments`, `threadedComment`, `drawing`, `persons`."""
    rows = row(1, cell("A1", "Mountain"), cell("B1", "Height"))
    rows += row(2, cell("A2", "Brocken"), cell("B2", "1141")) + row(
        3, cell("A3", "Zugspitze"), cell("B3", "2962")
    )
    out = io.BytesIO(xlsx(rows))
    with zipfile.ZipFile(out, "a") as archive:
        related = "".join(
            f'<Relationship Id="r{n}" Type="{R}/{kind}" Target="{target}"/>'
            for n, (kind, target) in enumerate(RELATED.items())
            if kind in parts
        )
        archive.writestr("xl/worksheets/_rels/sheet1.xml.rels", f"<Relationships>{related}</Relationships>")
        for kind, text in parts.items():
            target = RELATED.get(kind, "../persons/person.xml")
            archive.writestr(f"xl/{target.removeprefix('../').removeprefix('/xl/')}", text)
    return out.getvalue()


TABLE = "Rates\n\nMountain | Height\nBrocken | 1141\nZugspitze | 2962"


def test_comments_name_their_cell_what_it_says_and_who_wrote_them(tmp_path: Path) -> None:
    reading = read(tmp_path, workbook(comments=NOTE), "a.xlsx")
    assert reading.text.split("\n\n")[2:] == [
        "Comment on AA1 by Anna Berg: Far right.",
        "Comment on B2 “1141”: [Threaded comment] Only newer programs show it.",
        "Comment on B3 “2962” by Anna Berg: Meters above sea.",
    ]
    assert reading.text.startswith(TABLE)


def test_a_thread_takes_the_place_of_its_copy_for_older_programs(tmp_path: Path) -> None:
    data = workbook(comments=NOTE, threadedComment=THREAD, persons=PEOPLE)
    assert read(tmp_path, data, "a.xlsx").text.split("\n\n")[3:] == [
        "Comment on B2 “1141” by Kim Lee: Why so high?",
        "Comment on B2 “1141”: Measured twice.",
        "Comment on B3 “2962” by Anna Berg: Meters above sea.",
    ]


def test_text_boxes_come_from_top_to_bottom_and_once(tmp_path: Path) -> None:
    # Office writes newer shapes a second time for programs that do not know them.
    upper = box(1, "Upper box", "second line")
    shape = upper[upper.index("<x:sp>") : upper.index("</x:grpSp>")]
    copies = f"<mc:Choice>{shape}</mc:Choice><mc:Fallback>{shape}</mc:Fallback>"
    twice = upper.replace(shape, f"<mc:AlternateContent>{copies}</mc:AlternateContent>")
    reading = read(tmp_path, workbook(drawing=boxes(box(9, "Lower box"), twice)), "a.xlsx")
    assert reading.text == f"{TABLE}\n\nUpper box\nsecond line\n\nLower box"


def test_a_damaged_comment_leaves_the_sheet_and_is_named(tmp_path: Path) -> None:
    reading = read(tmp_path, workbook(comments=NOTE[:300], drawing=boxes(box(1, "A box"))), "a.xlsx")
    assert reading.text == f"{TABLE}\n\nA box"
    assert reading.warnings == ("Comments or text boxes of “Rates” are damaged and were left out.",)
