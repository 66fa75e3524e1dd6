"""Jupyter notebooks: cells in their order, text as Markdown, code as code, and what came out of it."""

import json
from collections.abc import Mapping
from typing import Any

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PageBuilder, Reading
from retrieval.parsing.clues import SURE, Clues, Format
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.html import html_blocks
from retrieval.parsing.readers.markdown import markdown_blocks
from retrieval.parsing.source import Source

_MIME = "application/x-ipynb+json"


def read_ipynb(source: Source) -> Reading:
    """A notebook as one page. Errors: ReadError when it is damaged or holds no text."""
    builder = PageBuilder()
    try:
        notebook = json.loads(decode(source.data()).text)
        # The third form of the format has one sheet around its cells.
        for part in (notebook, *notebook.get("worksheets", ())):
            for cell in part.get("cells", ()):
                _cell(cell, builder)
    except (ValueError, TypeError, AttributeError) as exc:
        raise ReadError(
            f"“{source.name}” is a notebook that is damaged inside. Open it in Jupyter and save it again."
        ) from exc
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” is a notebook without any text.", reason="empty")
    title = next((block.heading[-1] for block in page.blocks if block.kind == "heading"), "")
    return Reading("ipynb", _MIME, (page,), paged=False, metadata={"title": title} if title else {})


def _cell(cell: Mapping[str, Any], builder: PageBuilder) -> None:
    text = _joined(cell.get("source", cell.get("input", "")))
    if cell.get("cell_type") in {"markdown", "heading"}:
        markdown_blocks(text, builder)
        return
    builder.add("code" if cell.get("cell_type") == "code" else "paragraph", text)
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if "text/html" in data:
            html_blocks(_joined(data["text/html"]), builder)
        elif "text/markdown" in data:
            markdown_blocks(_joined(data["text/markdown"]), builder)
        elif "evalue" in output:
            builder.add("code", f"{output.get('ename', '')}: {output['evalue']}")
        else:
            builder.add("code", _joined(data.get("text/plain", output.get("text", ""))))


def _joined(text: str | list[str]) -> str:
    """Notebooks keep text as a list of lines with their ends."""
    return text if isinstance(text, str) else "".join(text)


def _claims(clues: Clues) -> int:
    return SURE if clues.suffix == ".ipynb" and clues.text.lstrip("\ufeff \n").startswith("{") else 0


FORMATS = (Format("ipynb", _MIME, "Jupyter (.ipynb)", _claims, read_ipynb),)
