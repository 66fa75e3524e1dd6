"""Blocks and reading order of pages whose text stands at places."""

import pytest

from retrieval.parsing.bands import LINE_JOIN, Segment
from retrieval.parsing.blocks import Page, PageBuilder
from retrieval.parsing.layout import layout, title_key


def page(*placed: tuple[float, float, str], titles: dict[str, int] | None = None, size: float = 10) -> Page:
    """Segments at (left, top); each letter is half as wide as high."""
    segments = [
        Segment(text, x, y, x + len(text) * size / 2, y + size, (x / 1000, y / 1000, 0.5, 0.5))
        for x, y, text in placed
    ]
    return layout(segments, PageBuilder(), titles=titles)


def blocks(read: Page) -> list[tuple[str, str]]:
    return [(block.kind, read.text[block.start : block.end]) for block in read.blocks]


LEFT = [
    "The first column tells one story",
    "that goes on for several lines in",
    "it and ends right here below it.",
]
RIGHT = [
    "The second one tells another tale",
    "of the same kind at the same time",
    "and it has an end of its own too.",
]


def test_columns_are_read_one_after_the_other_whatever_order_they_are_drawn_in() -> None:
    rows = [(x, 100 + 12 * i, text) for i in range(3) for x, text in ((50, LEFT[i]), (300, RIGHT[i]))]
    found = page((100, 60, "A title over both of the columns"), *rows, (50, 200, "A note below both of them"))
    order = [found.text.index(text) for text in ["A title", *LEFT, *RIGHT, "A note"]]
    assert order == sorted(order)
    assert all(kind == "paragraph" for kind, _ in blocks(found))


def test_rows_with_common_gaps_are_a_table() -> None:
    cells = [("City", "Grade", "Rate"), ("Bonn", "A", "480"), ("Köln", "", "350")]
    rows = [
        (50 + 150 * j, 100 + 12 * i, text)
        for i, row in enumerate(cells)
        for j, text in enumerate(row)
        if text
    ]
    found = page((50, 80, "Allowances by city"), *rows, (50, 140, "Rates are in euros and hold for a day."))
    assert blocks(found) == [
        ("paragraph", "Allowances by city"),
        ("table", "City | Grade | Rate\nBonn | A | 480\nKöln |  | 350"),
        ("paragraph", "Rates are in euros and hold for a day."),
    ]


def test_a_wide_blank_in_two_justified_lines_is_no_table() -> None:
    found = page(
        (50, 100, "several words"),
        (130, 100, "then more"),
        (50, 112, "another words"),
        (130, 112, "and more"),
    )
    assert [kind for kind, _ in blocks(found)] == ["paragraph"]


def test_a_parted_word_is_joined_and_its_lines_keep_their_places() -> None:
    found = page((50, 100, f"consec{LINE_JOIN}"), (50, 112, "tetur elit"), (50, 124, "sed"))
    assert found.text == "consectetur elit\nsed"
    assert [found.text[line.start : line.end] for line in found.lines] == ["consec", "tetur elit", "sed"]
    assert found.boxes(0, 3) == (found.lines[0].box,)
    assert len(found.boxes(3, 9)) == 2


def test_bookmarks_and_size_make_headings() -> None:
    found = page((50, 60, "2.1 Fees"), (50, 100, "They are due in May."), titles={title_key("Fees"): 2})
    assert blocks(found)[0] == ("heading", "2.1 Fees")
    small = Segment("Body text of a page.", 50, 130, 150, 140, (0, 0, 1, 1))
    big = Segment("Big", 50, 60, 100, 80, (0, 0, 1, 1))
    assert blocks(layout([big, small, small], PageBuilder()))[0] == ("heading", "Big")


@pytest.mark.parametrize(
    ("first", "second"), [("1. one", "2. two"), ("• one", "• two"), ("a) one", "b) two")]
)
def test_items_are_a_list(first: str, second: str) -> None:
    assert blocks(page((50, 100, first), (50, 112, second))) == [("list", f"{first}\n{second}")]


def test_a_row_of_a_right_to_left_script_begins_at_the_right() -> None:
    cells = [("اسم", "مدينة"), ("سعاد", "بغداد"), ("ليلى", "دمشق")]
    rows = [(400 - 200 * j, 100 + 12 * i, text) for i, row in enumerate(cells) for j, text in enumerate(row)]
    assert blocks(page(*rows)) == [("table", "اسم | مدينة\nسعاد | بغداد\nليلى | دمشق")]


def test_numbered_clauses_are_no_table_of_numbers_and_texts() -> None:
    read = page(
        *((0, 0, "1"), (60, 0, "Definitions")),
        *((0, 20, "1.1"), (60, 20, "The Supplier is a company.")),
        *((0, 40, "(a)"), (60, 40, "It sells pumps.")),
        (0, 60, "A line without a number."),
        titles={title_key("1 Definitions"): 1},
    )
    assert read.text.split("\n\n") == [
        "1 Definitions", "1.1 The Supplier is a company.", "(a) It sells pumps.", "A line without a number.",
    ]  # fmt: skip
    assert read.blocks[1].heading == ("1 Definitions",)


def test_a_small_mark_stands_on_the_line_of_its_words() -> None:
    mark = Segment("•", 0, 1, 4, 8, (0, 0, 0, 0))
    words = Segment("pumps and valves", 20, 0, 100, 10, (0, 0, 0, 0))
    assert blocks(layout([mark, words], PageBuilder())) == [("list", "• pumps and valves")]
