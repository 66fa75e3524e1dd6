"""Blocks guessed from the lines of a PDF page."""

from retrieval.parsing.pdf_layout import pdf_pages

PAGE = """2 Fees and charges
The fee is due on the first day of every month and is
paid by the person who asked.
A new paragraph begins after a sentence that ended short
of the margin, as people set it in print.
• one item that goes on
over the line
• another item.
Text after the list goes on in a paragraph of its own."""


def test_paragraphs_lists_and_bookmarked_headings() -> None:
    (page,) = pdf_pages([(1, PAGE)], {1: [(2, "Fees and Charges")]})
    found = [(b.kind, page.text[b.start : b.end].split("\n")[0], b.heading) for b in page.blocks]
    path = ("2 Fees and charges",)
    assert found == [
        ("heading", "2 Fees and charges", path),
        ("paragraph", "The fee is due on the first day of every month and is", path),
        ("paragraph", "A new paragraph begins after a sentence that ended short", path),
        ("list", "• one item that goes on", path),
        ("paragraph", "Text after the list goes on in a paragraph of its own.", path),
    ]


def test_headings_hold_on_the_pages_after() -> None:
    pages = pdf_pages([(1, "Intro\nText."), (2, ""), (3, "More text.")], {1: [(1, "Intro")]})
    assert pages[2].blocks[0].heading == ("Intro",)
    assert (pages[1].text, pages[1].blocks) == ("", ())
