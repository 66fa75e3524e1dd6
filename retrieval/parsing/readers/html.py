"""HTML: everything a reader sees, with headings, lists and tables as blocks."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PageBuilder, Reading, table_text
from retrieval.parsing.clues import LIKELY, SURE, Clues, Format
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.text import notes
from retrieval.parsing.source import Source


def _names(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_UNSEEN = _names(
    "script style noscript template head nav svg canvas iframe object embed audio video button select input",
    "textarea datalist dialog",
)
_INLINE = _names(
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark math mi mn mo mrow msub msup nobr q",
    "rb rt ruby s samp small span strong sub sup time tt u var wbr",
)
_START = re.compile(
    r"\s*(<!--.*?-->\s*|<\?xml[^>]*\?>\s*)*<(!doctype\s+html|html\b|head\b|body\b)", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"</?(p|div|span|table|tr|td|ul|li|h[1-6]|br|title|meta|script|a)\b[^>]*>", re.IGNORECASE)
_XHTML = re.compile(r"\s*<\?xml|[^>]*>?\s*<html[^>]*xmlns=[\"']http://www\.w3\.org/1999/xhtml", re.IGNORECASE)
_EMPTY = re.compile(
    r"<(title|script|style|textarea|iframe|noscript|noframes|template)\b([^<>]*)/>", re.IGNORECASE
)
"""Elements that hold raw text and are closed where they open, as only XML allows: HTML reads on to the file's end."""
_HEADING = re.compile(r"^h[1-6]$")
_SPACE = re.compile(r"[ \t\r\n\f\u00a0]+")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_EXPONENT = re.compile(r"[+\-−]?\d+$")
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_MAX_DEPTH = 200
"""Deeper nesting is flattened into its text; no page made by people goes so deep."""
_MAX_SPAN = 1000
_LONGEST_CELL = 300
"""Characters; a cell with headings or tables in it that says more is a part of the page, not of a table."""


def read_html(source: Source) -> Reading:
    """A web page as one page. Errors: ReadError when nothing in it can be seen."""
    decoded = decode(source.data(), declared=True)
    builder = PageBuilder()
    title = html_blocks(decoded.text, builder)
    page = builder.page()
    if not page.text:
        raise ReadError(
            f"“{source.name}” is a web page without visible text; it may build its content by script. "
            "Print it to PDF in a browser and upload that.",
            reason="empty",
        )
    metadata = {"encoding": decoded.encoding, **({"title": title} if title else {})}
    return Reading("html", "text/html", (page,), paged=False, metadata=metadata, warnings=notes(decoded))


def html_blocks(html: str, builder: PageBuilder) -> str:
    """Add the blocks of an HTML document to `builder`; returns its title, empty if none."""
    # A NUL ends the text early in the parser; browsers ignore it.
    html = html.replace("\x00", "")
    tree = LexborHTMLParser(_EMPTY.sub(r"<\1\2></\1>", html) if _XHTML.match(html) else html)
    title = tree.css_first("head > title")
    root = tree.body or tree.root
    if root is not None:
        _Walk(builder).children(root)
    return " ".join(title.text().split()) if title is not None else ""


class _Walk:
    """One pass over the tree in document order; text of inline elements gathers until a block ends."""

    def __init__(self, builder: PageBuilder) -> None:
        self._builder = builder
        self._inline: list[str] = []
        self._depth = 0

    def children(self, node: LexborNode) -> None:
        child = node.child
        while child is not None:
            self._visit(child)
            child = child.next
        if self._depth == 0:
            self._flush()

    def _visit(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag == "-text":
            self._inline.append(_raised(node, _SPACE.sub(" ", node.text_content or ""), self._inline))
        elif tag.startswith("-") or tag in _UNSEEN or _hidden(node):
            return
        elif tag == "br":
            self._inline.append("\n")
        elif tag == "img":
            self._inline.append(f" {node.attributes.get('alt') or ''} ")
        elif self._depth >= _MAX_DEPTH:
            self._inline.append(" " + _flat(node) + " ")
        else:
            self._depth += 1
            self._element(node, tag)
            self._depth -= 1

    def _element(self, node: LexborNode, tag: str) -> None:
        if tag in _INLINE:
            self.children(node)
            return
        self._flush()
        if _HEADING.match(tag):
            self._builder.add("heading", _flat(node), level=int(tag[1]))
        elif tag == "pre":
            self._builder.add("code", node.text(deep=True))
        elif tag in {"ul", "ol"} and node.css_first("table, h1, h2, h3, h4, pre") is None:
            self._builder.add("list", "\n".join(_list_lines(node, 0)))
        elif tag == "table" and _is_data(node):
            self._builder.add("table", table_text(_grid(node)))
        else:
            self.children(node)
            self._flush()

    def _flush(self) -> None:
        text = "".join(self._inline)
        self._inline.clear()
        self._builder.add("paragraph", "\n".join(" ".join(line.split()) for line in text.split("\n")))


def _hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    return (
        "hidden" in attributes
        or attributes.get("role") == "navigation"
        or bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))
    )


def _raised(node: LexborNode, text: str, before: list[str]) -> str:
    """A number above a number is its exponent or a note: 10^6 and 2020^3 are not 106 and 20203."""
    parent = node.parent
    exponent = parent is not None and parent.tag == "sup" and _EXPONENT.match(text)
    return f"^{text}" if exponent and before and before[-1][-1:].isdigit() else text


def _flat(node: LexborNode, before: str = "") -> str:
    """Visible text of a node on one line, where `before` stands in front of it."""
    parts = [before]
    for item in node.traverse(include_text=True):
        if item.tag == "-text":
            parent = item.parent
            if parent is None or parent.tag not in _UNSEEN:
                parts.append(_raised(item, item.text_content or "", parts))
        elif item.tag in {"br", "p", "div", "li", "td", "th", "tr"}:
            parts.append(" ")
    return " ".join("".join(parts[1:]).split())


def _list_lines(node: LexborNode, depth: int) -> list[str]:
    """Items as lines with their marks, nested lists indented."""
    lines: list[str] = []
    number = _number(node, "start", 1) - 1
    item = node.child
    while item is not None:
        if item.tag == "li":
            number = _number(item, "value", number + 1)
            mark = _mark(node.attributes.get("type") or "1", number) if node.tag == "ol" else "-"
            own, nested = _item(item, depth)
            if own:
                lines.append(f"{'  ' * depth}{mark} {own}")
            lines.extend(nested)
        elif item.tag in {"ul", "ol"} and depth < 50:
            lines.extend(_list_lines(item, depth + 1))
        item = item.next
    return lines


def _number(node: LexborNode, name: str, usual: int) -> int:
    value = (node.attributes.get(name) or "").strip()
    return int(value) if value.isdecimal() and len(value) < 7 else usual


def _mark(kind: str, number: int) -> str:
    """What stands before an item: 3., c. or iii."""
    if kind in {"a", "A"} and 0 < number <= 26:
        return f"{chr(ord(kind) + number - 1)}."
    if kind in {"i", "I"} and 0 < number < 40:
        roman = "x" * (number // 10) + ("", *_ROMAN)[number % 10]
        return f"{roman if kind == 'i' else roman.upper()}."
    return f"{number}."


def _item(item: LexborNode, depth: int) -> tuple[str, list[str]]:
    own: list[str] = []
    nested: list[str] = []
    part = item.child
    while part is not None:
        if part.tag in {"ul", "ol"} and depth < 50:
            nested.extend(_list_lines(part, depth + 1))
        elif part.tag == "-text":
            own.append(part.text_content or "")
        elif part.tag not in _UNSEEN and not (part.tag or "").startswith("-") and not _hidden(part):
            text = _flat(part, own[-1] if own else "")
            own.append(text if part.tag in _INLINE else f" {text} ")
        part = part.next
    return " ".join("".join(own).split()), nested


def _is_data(table: LexborNode) -> bool:
    """A table of data, not one that only places other blocks on the screen."""
    rows = [_cells(row) for row in _rows(table)]
    if not any(len(row) > 1 for row in rows):
        return False
    if not any(_holds_blocks(cell) for row in rows for cell in row):
        return True
    # Small blocks in the cells of a grid are data all the same: a heading in a form, a table of two in a cell.
    texts = [len(_flat(cell)) for row in rows for cell in row]
    inner = sum(len(_flat(part)) for row in rows for cell in row for part in cell.css("table"))
    grid = sum(len(row) > 1 for row in rows) > 1
    return grid and max(texts) <= _LONGEST_CELL and 2 * inner < sum(texts)


def _holds_blocks(cell: LexborNode) -> bool:
    return any(item.tag in {"table", "h1", "h2", "h3", "pre"} for item in cell.traverse())


def _rows(table: LexborNode) -> list[LexborNode]:
    """Its own rows, not those of tables inside its cells."""
    found: list[LexborNode] = []
    for child in _elements(table):
        if child.tag == "tr":
            found.append(child)
        elif child.tag in {"thead", "tbody", "tfoot"}:
            found.extend(row for row in _elements(child) if row.tag == "tr")
    return found


def _cells(row: LexborNode) -> list[LexborNode]:
    return [cell for cell in _elements(row) if cell.tag in {"td", "th"}]


def _grid(table: LexborNode) -> list[list[str]]:
    """Rows of cells, merged cells repeated in every place they cover."""
    rows: list[list[str]] = []
    carried: dict[int, tuple[int, str]] = {}
    caption = table.css_first("caption")
    if caption is not None and (text := _flat(caption)):
        rows.append([text])
    for tr in _rows(table):
        row: list[str] = []
        for cell in _cells(tr):
            _carry(row, carried)
            text = _flat(cell)
            for _ in range(_span(cell, "colspan")):
                if (down := _span(cell, "rowspan")) > 1:
                    carried[len(row)] = (down - 1, text)
                row.append(text)
        _carry(row, carried)
        rows.append(row)
    return rows


def _carry(row: list[str], carried: dict[int, tuple[int, str]]) -> None:
    """Fill in the cells that reach down from rows above into the next places."""
    while (held := carried.get(len(row))) is not None:
        left, text = held
        if left > 1:
            carried[len(row)] = (left - 1, text)
        else:
            del carried[len(row)]
        row.append(text)


def _elements(node: LexborNode) -> list[LexborNode]:
    found: list[LexborNode] = []
    child = node.child
    while child is not None:
        if not (child.tag or "-").startswith("-"):
            found.append(child)
        child = child.next
    return found


def _span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "1").strip()
    return max(1, min(int(value), _MAX_SPAN)) if value.isdecimal() else 1


def _claims(clues: Clues) -> int:
    if _START.match(clues.text):
        return SURE
    named = clues.suffix in {".html", ".htm", ".xhtml"}
    return LIKELY if named and _TAG.search(clues.text) else 0


FORMATS = (Format("html", "text/html", "HTML", _claims, read_html),)
