"""Charts and diagrams of Office documents, which are parts of their own beside the text. Pure."""

from xml.etree import ElementTree as ET

from retrieval.parsing.blocks import table_text

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_PARAGRAPH, _TEXT = f"{_A}p", f"{_A}t"
_POINTS = 1000
"""Of one series; more are a measurement, not a chart that somebody reads."""


def drawn_lines(data: bytes) -> list[str]:
    """The words of a diagram, a line for each paragraph. Errors: ET.ParseError."""
    root = ET.fromstring(data)  # noqa: S314 - `package` refused entities
    lines = ("".join(node.text or "" for node in p.iter(_TEXT)).strip() for p in root.iter(_PARAGRAPH))
    return [line for line in lines if line]


def chart_rows(data: bytes) -> tuple[list[str], str]:
    """The titles of a chart and its axes, and its numbers as a table. Errors: ET.ParseError."""
    root = ET.fromstring(data)  # noqa: S314
    titles = []
    for title in root.iter(f"{_C}title"):
        text = "".join(node.text or "" for node in title.iter(_TEXT)).strip()
        titles += [text] if text else []
    columns: list[tuple[str, dict[int, str]]] = []
    names: dict[int, str] = {}
    for series in root.iter(f"{_C}ser"):
        label = " ".join(_points(series.find(f"{_C}tx")).values())
        for tag in ("cat", "xVal"):
            for index, text in _points(series.find(_C + tag)).items():
                names.setdefault(index, text)
        numbers = (_points(series.find(_C + tag)) for tag in ("val", "yVal", "bubbleSize"))
        columns.extend((label, points) for points in numbers if points)
    places = sorted({index for _, points in columns for index in points} | set(names))
    rows = [["", *(label for label, _ in columns)]]
    rows += [[names.get(i, ""), *(points.get(i, "") for _, points in columns)] for i in places]
    return titles, table_text(rows) if columns else ""


def _points(node: ET.Element | None) -> dict[int, str]:
    """What a reference pointed at when the file was saved, by place; levels of one category joined."""
    found: dict[int, str] = {}
    if node is None:
        return found
    for point in list(node.iter(f"{_C}pt"))[:_POINTS]:
        value, index = point.find(f"{_C}v"), point.get("idx", "")
        if value is not None and value.text and index.isdecimal():
            at = int(index)
            text = _number(value.text.strip())
            found[at] = f"{found[at]} {text}" if at in found else text
    if not found and (direct := node.find(f"{_C}v")) is not None and direct.text:
        found[0] = direct.text
    return found


def _number(text: str) -> str:
    """Without the noise of floating point: 0.30000000000000004 is 0.3."""
    try:
        return f"{float(text):.12g}" if "." in text and len(text) > 15 else text
    except ValueError:
        return text
