"""Markdown: headings, lists, tables and code as blocks, as CommonMark reads them."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PageBuilder, Reading, clean, table_text
from retrieval.parsing.clues import Format, by_text
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.html import html_blocks
from retrieval.parsing.readers.text import notes
from retrieval.parsing.source import Source

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n(?:---|\.\.\.)\n", re.DOTALL)
_TITLE = re.compile(r"^title:\s*[\"']?(.*?)[\"']?\s*$", re.MULTILINE)


def read_markdown(source: Source) -> Reading:
    """A Markdown file as one page; its title is the front matter's or the first heading. Errors: ReadError."""
    decoded = decode(source.data())
    text = clean(decoded.text)
    title = ""
    if front := _FRONT_MATTER.match(text):
        found = _TITLE.search(front[1])
        title = found[1] if found else ""
        text = text[front.end() :]
    builder = PageBuilder()
    # Author, date and tags are found by nothing else.
    builder.add("paragraph", _TITLE.sub("", front[1]) if front else "")
    first = markdown_blocks(text, builder)
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” holds no text.", reason="empty")
    metadata = {"encoding": decoded.encoding, "title": title or first}
    return Reading(
        "markdown", "text/markdown", (page,), paged=False, metadata=metadata, warnings=notes(decoded)
    )


def markdown_blocks(text: str, builder: PageBuilder) -> str:
    """Add the blocks of Markdown to `builder`; returns its first heading, empty if there is none."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return _Blocks(builder, tokens).add_all()


class _Blocks:
    """Walks the flat token list and adds a block for each top-level part."""

    def __init__(self, builder: PageBuilder, tokens: Sequence[Token]) -> None:
        self._builder = builder
        self._tokens = tokens
        self._at = 0

    def add_all(self) -> str:
        """Returns the text of the first heading, empty if there is none."""
        first = ""
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.type == "heading_open" and not first:
                first = plain(self._tokens[self._at + 1])
            self._add(token)
            self._at += 1
        return first

    def _add(self, token: Token) -> None:
        if token.type == "heading_open":
            self._builder.add("heading", plain(self._tokens[self._at + 1]), level=int(token.tag[1]))
            self._skip_to("heading_close", token.level)
        elif token.type in {"bullet_list_open", "ordered_list_open"}:
            inner = self._skip_to(token.type.replace("open", "close"), token.level)
            self._builder.add("list", "\n".join(_list_lines(token, inner)))
        elif token.type == "table_open":
            self._builder.add("table", table_text(_rows(self._skip_to("table_close", token.level))))
        elif token.type in {"fence", "code_block"}:
            self._builder.add("code", token.content)
        elif token.type == "html_block":
            html_blocks(token.content, self._builder)
        elif token.type == "inline":
            self._builder.add("paragraph", plain(token))

    def _skip_to(self, kind: str, level: int) -> Sequence[Token]:
        """The tokens up to the one that closes this part; the walk goes on after it."""
        start = self._at + 1
        while not (self._tokens[self._at].type == kind and self._tokens[self._at].level == level):
            self._at += 1
        return self._tokens[start : self._at]


def plain(token: Token) -> str:
    """Inline content as a reader sees it: no marks, link texts and image descriptions kept."""
    parts: list[str] = []
    for child in token.children or ():
        if child.type in {"text", "code_inline"} or child.type == "image":
            parts.append(child.content)
        elif child.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
    return "".join(parts)


def _list_lines(opening: Token, inner: Sequence[Token]) -> list[str]:
    lines: list[str] = []
    ordered = [opening.type.startswith("ordered")]
    mark = ""
    for token in inner:
        if token.type in {"bullet_list_open", "ordered_list_open"}:
            ordered.append(token.type.startswith("ordered"))
        elif token.type in {"bullet_list_close", "ordered_list_close"}:
            ordered.pop()
        elif token.type == "list_item_open":
            mark = f"{token.info}. " if ordered[-1] and token.info else "- "
        elif token.type in {"inline", "fence", "code_block"}:
            text = plain(token) if token.type == "inline" else token.content
            indent = "  " * (len(ordered) - 1)
            lines.extend(
                indent + (mark if i == 0 else "  ") + line for i, line in enumerate(text.split("\n"))
            )
            mark = "  "
    return lines


def _rows(inner: Sequence[Token]) -> list[list[str]]:
    rows: list[list[str]] = []
    for token in inner:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(plain(token))
    return rows


FORMATS = (
    Format("markdown", "text/markdown", "Markdown", by_text(".md", ".markdown", ".mkd"), read_markdown),
)
