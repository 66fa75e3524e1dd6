"""Formulas of Office documents on one line, as people type them: (b+1)/(c), x^2, √(y). Pure."""

from collections.abc import Callable
from typing import Any

Element = Any
"""lxml's have no name in public."""
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_DEEPEST = 100


def linear(node: Element, depth: int = 0) -> str:
    """The text of a formula or a part of it."""
    if depth > _DEEPEST:
        return "".join(node.itertext())
    name = str(node.tag).rpartition("}")[2]
    if name == "t":
        return node.text or ""
    if name.endswith("Pr"):
        return ""
    if (form := _FORMS.get(name)) is not None:
        return form(lambda part: _part(node, part, depth), node)
    return "".join(linear(child, depth + 1) for child in node if isinstance(child.tag, str))


def _part(node: Element, name: str, depth: int) -> str:
    found = node.find(_M + name)
    return linear(found, depth + 1) if found is not None else ""


def _sign(node: Element, path: str, usual: str) -> str:
    found = node.find("/".join(_M + step for step in path.split("/")))
    return (found.get(f"{_M}val") if found is not None else None) or usual


def _grouped(text: str) -> str:
    return text if len(text) < 2 or text.isalnum() else f"({text})"


_Form = Callable[[Callable[[str], str], Element], str]
_FORMS: dict[str, _Form] = {
    "f": lambda part, _: f"{_grouped(part('num'))}/{_grouped(part('den'))}",
    "sSup": lambda part, _: f"{part('e')}^{_grouped(part('sup'))}",
    "sSub": lambda part, _: f"{part('e')}_{_grouped(part('sub'))}",
    "sSubSup": lambda part, _: f"{part('e')}_{_grouped(part('sub'))}^{_grouped(part('sup'))}",
    "rad": lambda part, _: f"{part('deg')}√{_grouped(part('e')) or '()'}",
    "nary": lambda part, node: (
        f"{_sign(node, 'naryPr/chr', '∫')}"
        f"{'_' + _grouped(part('sub')) if part('sub') else ''}{'^' + _grouped(part('sup')) if part('sup') else ''} "
        f"{part('e')}"
    ),
    "d": lambda _, node: (
        _sign(node, "dPr/begChr", "(")
        + ", ".join(linear(child) for child in node.findall(f"{_M}e"))
        + _sign(node, "dPr/endChr", ")")
    ),
    "func": lambda part, _: f"{part('fName')} {part('e')}",
}
