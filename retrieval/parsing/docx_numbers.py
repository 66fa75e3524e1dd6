"""The numbers that Word counts itself, put before their headings and clauses: people cite 4.2, not its text. Pure."""

import zipfile
from collections import defaultdict
from dataclasses import dataclass, field

import lxml.etree

from retrieval.parsing.formulas import Element

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NUMBERING, _STYLES = "word/numbering.xml", "word/styles.xml"
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_PARSER = lxml.etree.XMLParser(resolve_entities=False, huge_tree=True)
_LEVELS = 9


@dataclass(slots=True)
class _Level:
    start: int = 1
    form: str = "decimal"
    text: str = ""
    """As in `%1.%2`."""


@dataclass(slots=True)
class _Style:
    """What a paragraph style says about numbers; `None` where it leaves that to the one it is based on."""

    base: str = ""
    heading: bool = False
    number: str | None = None
    level: int | None = None


@dataclass(slots=True)
class _List:
    levels: dict[int, _Level] = field(default_factory=dict)
    counts: list[int] = field(default_factory=lambda: [0] * _LEVELS)

    @property
    def parted(self) -> bool:
        """Whether its numbers have several parts, as those of clauses have."""
        return any(level.text.count("%") > 1 for level in self.levels.values())


class Numbers:
    """The lists of one document, counted on while its paragraphs pass."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._styles: dict[str, _Style] = {}
        self._lists: dict[str, _List] = {}
        names = archive.namelist()
        if _NUMBERING in names and _STYLES in names:
            self._read_styles(lxml.etree.fromstring(archive.read(_STYLES), _PARSER))
            self._read_lists(lxml.etree.fromstring(archive.read(_NUMBERING), _PARSER))

    def __bool__(self) -> bool:
        """Whether there may be a number that has to be written out."""
        parted = any(item.parted for item in self._lists.values())
        return parted or any(style.heading and style.number is not None for style in self._styles.values())

    def write(self, paragraph: Element) -> None:
        """Count a paragraph; the number of a heading, and one of several parts, becomes its first words."""
        number, level, heading = self._of(paragraph)
        found = self._lists.get(number)
        if found is None or level not in found.levels:
            return
        counts = found.counts
        counts[level] = counts[level] + 1 if counts[level] else found.levels[level].start
        counts[level + 1 :] = [0] * (_LEVELS - level - 1)
        label = found.levels[level].text
        if found.levels[level].form == "bullet" or not (heading or found.parted):
            return
        for at in range(level + 1):
            form = found.levels.get(at, _Level())
            label = label.replace(f"%{at + 1}", _written(counts[at] or form.start, form.form))
        run = lxml.etree.Element(f"{_W}r")
        lxml.etree.SubElement(run, f"{_W}t").text = f"{label} "
        properties = paragraph.find(f"{_W}pPr")
        paragraph.insert(0 if properties is None else 1, run)
        # It is no item of a list any more, whose numbers would be others.
        if properties is not None and (own := properties.find(f"{_W}numPr")) is not None:
            properties.remove(own)

    def _of(self, paragraph: Element) -> tuple[str, int, bool]:
        """The list, the level in it, and whether it is a heading."""
        name = _value(paragraph.find(f"{_W}pPr/{_W}pStyle"))
        number, level = _number(paragraph.find(f"{_W}pPr"))
        heading = False
        for _ in range(_LEVELS):
            style = self._styles.get(name)
            if style is None:
                break
            heading = heading or style.heading
            number = style.number if number is None else number
            level = style.level if level is None else level
            name = style.base
        return number or "", min(level or 0, _LEVELS - 1), heading

    def _read_styles(self, root: Element) -> None:
        for node in root.iter(f"{_W}style"):
            number, level = _number(node.find(f"{_W}pPr"))
            title = _value(node.find(f"{_W}name")).lower()
            base = _value(node.find(f"{_W}basedOn"))
            key = node.get(f"{_W}styleId", "")
            self._styles[key] = _Style(base, title.startswith("heading"), number, level)

    def _read_lists(self, root: Element) -> None:
        kinds: dict[str, _List] = defaultdict(_List)
        for node in root.iter(f"{_W}abstractNum"):
            for level in node.iter(f"{_W}lvl"):
                start = _value(level.find(f"{_W}start"))
                at = level.get(f"{_W}ilvl", "")
                if at.isdecimal() and int(at) < _LEVELS:
                    kinds[node.get(f"{_W}abstractNumId", "")].levels[int(at)] = _Level(
                        int(start) if start.isdecimal() and len(start) < 6 else 1,
                        _value(level.find(f"{_W}numFmt")) or "decimal",
                        _value(level.find(f"{_W}lvlText")),
                    )
        for node in root.iter(f"{_W}num"):
            kind = kinds[_value(node.find(f"{_W}abstractNumId"))]
            # Those of one kind count on together, unless one begins anew.
            anew = node.find(f"{_W}lvlOverride/{_W}startOverride") is not None
            self._lists[node.get(f"{_W}numId", "")] = _List(kind.levels) if anew else kind


def _number(properties: Element | None) -> tuple[str | None, int | None]:
    if properties is None or (own := properties.find(f"{_W}numPr")) is None:
        return None, None
    number, level = own.find(f"{_W}numId"), _value(own.find(f"{_W}ilvl"))
    return None if number is None else _value(number), int(level) if level.isdecimal() else None


def _value(node: Element | None) -> str:
    return "" if node is None else str(node.get(f"{_W}val", ""))


def _written(number: int, form: str) -> str:
    if form in {"lowerLetter", "upperLetter"} and number > 0:
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if form == "upperLetter" else letters
    if form in {"lowerRoman", "upperRoman"}:
        roman, rest = "", number
        for worth, sign in _ROMAN:
            roman += sign * (rest // worth)
            rest %= worth
        return roman.upper() if form == "upperRoman" else roman
    return f"{number:02}" if form == "decimalZero" else str(number)
