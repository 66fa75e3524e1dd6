"""Chunks: exact offsets, bounded sizes, context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.chunking import ChunkCut, Settings, chunk, estimate_tokens
from retrieval.errors import Invalid
from retrieval.parsing.blocks import PAGE_BREAK, Page, PageBuilder
from retrieval.previews import chunking_settings

KINDS = st.sampled_from(["heading", "paragraph", "table", "list", "code"])
WORDS = st.text(st.sampled_from("ab c.?!\n|é漢語。 \t"), max_size=200)
PAGES = st.lists(st.lists(st.tuples(KINDS, WORDS, st.integers(1, 6)), max_size=6), min_size=1, max_size=4)
SMALL = Settings(size=20, overlap=5, small=6)


def pages_of(blocks: list[list[tuple[str, str, int]]]) -> list[Page]:
    pages: list[Page] = []
    above: tuple[tuple[int, str], ...] = ()
    for number, page in enumerate(blocks, start=1):
        builder = PageBuilder(number, above=above)
        for kind, text, level in page:
            builder.add(kind, text, level=level)  # type: ignore[arg-type]
        above = builder.path
        pages.append(builder.page())
    return pages


def words(text: str) -> int:
    return len(text.split())


@given(PAGES)
def test_offsets_are_exact_and_nothing_is_lost(blocks: list[list[tuple[str, str, int]]]) -> None:
    pages = pages_of(blocks)
    text = PAGE_BREAK.join(page.text for page in pages)
    cuts = chunk(pages, settings=SMALL)
    assert [cut.index for cut in cuts] == list(range(len(cuts)))
    covered = set()
    for cut in cuts:
        assert text[cut.start : cut.end] == cut.text
        assert cut.text.strip()
        covered |= set(range(cut.start, cut.end))
    assert all(text[i].isspace() for i in range(len(text)) if i not in covered)


@given(PAGES)
def test_no_chunk_is_over_the_size(blocks: list[list[tuple[str, str, int]]]) -> None:
    # An atom that cannot be cut any more (40 characters without a blank) is the only thing that may be larger.
    for cut in chunk(pages_of(blocks), settings=SMALL):
        assert cut.tokens <= max(SMALL.size, estimate_tokens("漢" * 40))


def test_the_page_is_where_the_chunk_begins() -> None:
    pages = pages_of(
        [[("paragraph", "one two three four.", 1)], [], [("paragraph", "five six seven eight.", 1)]]
    )
    cuts = chunk(pages, count=words, settings=Settings(size=4, overlap=0, small=0))
    assert [(cut.page, cut.text) for cut in cuts] == [
        (1, "one two three four."),
        (3, "five six seven eight."),
    ]


def test_running_text_overlaps_by_whole_sentences() -> None:
    text = "Aa bb cc. Dd ee ff. Gg hh ii. Jj kk ll."
    cuts = chunk(
        pages_of([[("paragraph", text, 1)]]), count=words, settings=Settings(size=6, overlap=3, small=0)
    )
    assert [cut.text for cut in cuts] == ["Aa bb cc. Dd ee ff.", "Dd ee ff. Gg hh ii.", "Gg hh ii. Jj kk ll."]


def test_every_piece_of_a_table_keeps_its_header() -> None:
    rows = "\n".join(f"row {n} | {n * 10} | left" for n in range(1, 30))
    table = f"Name | Amount | State\n{rows}"
    cuts = chunk(
        pages_of([[("heading", "Rates", 1), ("table", table, 1)]]),
        count=words,
        settings=Settings(size=30, overlap=5, small=0),
    )
    assert len(cuts) > 3
    assert cuts[0].heading == ""
    assert all(cut.heading == "Rates\nName | Amount | State" for cut in cuts[1:])
    # Rows are never repeated or cut.
    assert "\n".join(cut.text for cut in cuts).endswith(table.split("\n", 1)[1])


@pytest.mark.parametrize(
    ("small", "expected"),
    [(0, ["A\n\none two", "B\n\nthree four"]), (50, ["A\n\none two\n\nB\n\nthree four"])],
)
def test_a_heading_begins_a_chunk_unless_the_one_before_is_small(small: int, expected: list[str]) -> None:
    blocks = [
        [
            ("heading", "A", 2),
            ("paragraph", "one two", 1),
            ("heading", "B", 2),
            ("paragraph", "three four", 1),
        ]
    ]
    cuts = chunk(pages_of(blocks), count=words, settings=Settings(size=60, overlap=0, small=small))
    assert [cut.text for cut in cuts] == expected


def test_context_is_the_path_above_and_is_embedded() -> None:
    blocks = [[("heading", "Guide", 1), ("heading", "Fees", 2), ("paragraph", "First one. Second one.", 1)]]
    cuts = chunk(pages_of(blocks), count=words, settings=Settings(size=4, overlap=0, small=0))
    last: ChunkCut = cuts[-1]
    assert last.heading == "Guide › Fees"
    assert last.embedded_text == f"Guide › Fees\n{last.text}"


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The quick brown fox", 4, 6),
        ("漢字かな交じり文", 6, 8),
        ("1234567890", 5, 10),
        ("a_b-c", 5, 5),
    ],
)
def test_estimate_is_near_a_subword_tokenizer(text: str, least: int, most: int) -> None:
    assert least <= estimate_tokens(text) <= most


def test_each_piece_of_a_table_has_its_caption_and_header() -> None:
    rows = "\n".join(f"row {i} | {i:05}" for i in range(40))
    pages = pages_of(
        [
            [
                ("heading", "Costs", 1),
                ("paragraph", "Table 1: Costs in euros", 1),
                ("table", f"Name | Sum\n{rows}", 1),
            ]
        ]
    )
    cuts = chunk(pages, count=words, settings=Settings(size=30, overlap=0, small=5))
    tables = [cut for cut in cuts if "row 39" in cut.text]
    assert tables[0].heading == "Costs\nTable 1: Costs in euros\nName | Sum"
    assert "00039" in tables[0].text


@pytest.mark.parametrize(
    "values",
    [
        {"size": 10},
        {"sizes": 300},
        {"overlap": 200},
        {"size": 60, "small": 100},
    ],
)
def test_settings_out_of_bounds_are_refused_with_their_name(values: dict[str, int]) -> None:
    with pytest.raises(Invalid):
        chunking_settings(values)


def test_own_settings_stand_over_the_defaults() -> None:
    assert chunking_settings({"size": 400}) == Settings(size=400)
