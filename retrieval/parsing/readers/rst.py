"""reStructuredText by docutils, which neither follows includes nor runs raw parts here."""

import io
import re
import textwrap
from collections.abc import Iterator

import docutils.core
import docutils.nodes as n
import docutils.utils

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PageBuilder, Reading, table_text
from retrieval.parsing.clues import Format, by_text
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.text import notes
from retrieval.parsing.source import Source

_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "_disable_config": True,
    "smart_quotes": False,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "line_length_limit": 1_000_000,
}
_DIRECTIVE = re.compile(r"\.\.[ \t]+[\w:+.-]+::[ \t]*(.*)")
_OPTION = re.compile(r"\s+:[\w-]+:(?:\s|$)")
_DEEPEST = 20
_UNSEEN = (n.comment, n.system_message, n.substitution_definition, n.target, n.problematic, n.pending)


def read_rst(source: Source) -> Reading:
    """A reStructuredText file as one page. Errors: ReadError when nothing is left in it."""
    decoded = decode(source.data())
    try:
        tree = _tree(decoded.text)
    except docutils.utils.SystemMessage as exc:
        raise ReadError(
            f"“{source.name}” cannot be read as reStructuredText ({exc}). Rename it to .txt to read it as plain text."
        ) from exc
    builder = PageBuilder()
    _blocks(tree, builder, 0)
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” holds no text.", reason="empty")
    title = next((node.astext() for node in tree.findall(n.title)), "")
    metadata = {"encoding": decoded.encoding, **({"title": title} if title else {})}
    return Reading("rst", "text/x-rst", (page,), paged=False, metadata=metadata, warnings=notes(decoded))


def _tree(text: str) -> n.document:
    return docutils.core.publish_doctree(
        text, settings_overrides={**_SETTINGS, "warning_stream": io.StringIO()}
    )


def _unknown(message: n.system_message, builder: PageBuilder, depth: int) -> None:
    """What stands under a directive of another program, such as Sphinx, is read as if the directive were not there."""
    source = next((block.astext() for block in message.findall(n.literal_block)), "")
    found = _DIRECTIVE.match(source)
    # Those that are switched off here are known, and refused.
    if found and "Unknown directive type" in message.astext():
        builder.add("paragraph", found[1])
        lines = source[found.end() :].split("\n")
        inner = "\n".join(line for line in lines if not _OPTION.match(line))
        _blocks(_tree(textwrap.dedent(inner)), builder, depth)


def _blocks(node: n.Node, builder: PageBuilder, depth: int) -> None:
    for child in node.children:
        if isinstance(child, n.system_message) and depth < _DEEPEST:
            _unknown(child, builder, depth)
            continue
        if isinstance(child, _UNSEEN):
            continue
        if isinstance(child, n.section):
            _blocks(child, builder, depth + 1)
        elif isinstance(child, n.title):
            builder.add("heading", child.astext(), level=max(1, depth))
        elif isinstance(child, n.literal_block | n.doctest_block | n.math_block):
            builder.add("code", child.astext())
        elif isinstance(child, n.table):
            builder.add("table", table_text(list(_rows(child))))
        elif isinstance(
            child, n.bullet_list | n.enumerated_list | n.definition_list | n.field_list | n.option_list
        ):
            builder.add("list", "\n".join(_items(child, 0)))
        elif isinstance(child, n.TextElement | n.Text):
            builder.add("paragraph", child.astext())
        else:
            _blocks(child, builder, depth)


def _items(node: n.Element, depth: int) -> Iterator[str]:
    for number, item in enumerate(node.children, start=1):
        mark = f"{number}." if isinstance(node, n.enumerated_list) else "-"
        if isinstance(item, n.field):
            yield ": ".join(part.astext() for part in item.children)
            continue
        for part in item.children:
            if isinstance(part, n.bullet_list | n.enumerated_list | n.definition_list):
                yield from _items(part, depth + 1)
            elif not isinstance(part, _UNSEEN):
                yield f"{'  ' * depth}{mark} {part.astext()}"
                mark = " " * len(mark)


def _rows(table: n.table) -> Iterator[list[str]]:
    """Merged cells are repeated in every place they cover."""
    for title in table.findall(n.title):
        yield [title.astext()]
    carried: dict[int, tuple[int, str]] = {}
    for row in table.findall(n.row):
        cells: list[str] = []
        for entry in row.children:
            while len(cells) in carried:
                _carry(cells, carried)
            for _ in range(int(entry.get("morecols", 0)) + 1):
                if down := int(entry.get("morerows", 0)):
                    carried[len(cells)] = (down, entry.astext())
                cells.append(entry.astext())
        while len(cells) in carried:
            _carry(cells, carried)
        yield cells


def _carry(cells: list[str], carried: dict[int, tuple[int, str]]) -> None:
    left, text = carried.pop(len(cells))
    if left > 1:
        carried[len(cells)] = (left - 1, text)
    cells.append(text)


FORMATS = (Format("rst", "text/x-rst", "reStructuredText", by_text(".rst", ".rest"), read_rst),)
