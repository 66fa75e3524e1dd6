"""What the strict content security policy and the style of the pages need of templates, scripts and sheets."""

import re
from os.path import normpath
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STATIC = [ROOT / "app" / app / "static" for app in ("common", "chat", "dashboard")]
OWN = [path for folder in STATIC for path in sorted(folder.rglob("*")) if "vendor" not in path.parts]
SCRIPTS = [path for path in OWN if path.suffix == ".js"]
SHEETS = [path for path in OWN if path.suffix == ".css"]
TOKENS = (STATIC[0] / "common" / "css" / "tokens.css").read_text()


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_template_has_nothing_inline(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", text) == []
    assert re.findall(r"<style\b", text) == []
    assert re.findall(r"\sstyle\s*=", text) == []
    assert re.findall(r"\son[a-z]+\s*=", text) == []


@pytest.mark.parametrize("path", [*TEMPLATES, *SHEETS, *SCRIPTS], ids=name)
def test_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s\"'<]*", path.read_text())
    assert [a for a in addresses if not a.startswith("http://www.w3.org/")] == []


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_script_builds_no_markup_from_text(path: Path) -> None:
    risky = r"(?:(?:inner|outer|insertAdjacent)HTML|createContextualFragment)\b|document\.write|\beval\(|new Function"
    assert re.findall(risky, path.read_text()) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_script_is_short_and_imports_what_is_there(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 300
    for target in re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""", text):
        # Addresses are relative to where the file is served, where the folders of all apps are one.
        folder = next(f for f in STATIC if path.is_relative_to(f))
        served = normpath(path.parent.relative_to(folder) / target)
        assert any((f / served).is_file() for f in STATIC), target


def test_every_icon_is_in_the_sprite() -> None:
    sprite = (ROOT / "templates" / "common" / "icons.html").read_text()
    there = set(re.findall(r'id="i-([\w-]+)"', sprite))
    used = {icon for path in TEMPLATES for icon in re.findall(r'href="#i-([\w-]+)"', path.read_text())}
    for path in SCRIPTS:
        used |= set(re.findall(r'\b(?:icon|iconButton)\("([\w-]+)"', path.read_text()))
    assert used <= there
    assert len(used) > 10


def test_every_custom_property_is_defined() -> None:
    defined = set(re.findall(r"(--[\w-]+):", TOKENS))
    used = {variable for path in SHEETS for variable in re.findall(r"var\((--[\w-]+)", path.read_text())}
    assert used <= defined
    assert len(used) > 20


def test_colours_live_in_the_tokens_alone() -> None:
    for path in SHEETS:
        # Swagger UI, which the other one mends, has colours of its own and one theme.
        if path.name not in {"tokens.css", "api-docs.css"}:
            assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![\w-]*\")", path.read_text()) == [], name(path)


def _colours(theme: str) -> dict[str, str]:
    light, dark = TOKENS.split('[data-theme="dark"]')
    values = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", light))
    if theme == "dark":
        values |= dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", dark))
    return values


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


TEXT = [
    *[
        (ink, ground)
        for ink in ("--text", "--muted", "--accent", "--bad", "--warn")
        for ground in ("--bg", "--surface")
    ],
    ("--text", "--raised"),
    ("--muted", "--raised"),
    ("--text", "--mark"),
    ("--text", "--bad-soft"),
    ("--text", "--warn-soft"),
    ("--muted", "--bad-soft"),
    ("--muted", "--warn-soft"),
    ("--accent", "--warn-soft"),
    ("--accent-strong", "--accent-soft"),
    ("--accent-ink", "--accent"),
    ("--accent-ink", "--accent-strong"),
    ("--text", "--line"),
    *[(f"--code-{part}", "--surface") for part in ("keyword", "string", "number", "name")],
]
MARKS = [
    ("--line-strong", "--bg"),
    ("--line-strong", "--surface"),
    *[(f"--series-{n}", "--bg") for n in range(6)],
]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXT, 4.5), (MARKS, 3.0)], ids=["text", "marks"])
def test_contrast(theme: str, pairs: list[tuple[str, str]], least: float) -> None:
    colours = _colours(theme)
    weak = {
        pair: round(ratio, 2) for pair in pairs if (ratio := _contrast(*(colours[p] for p in pair))) < least
    }
    assert weak == {}


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_no_comment_above_the_imports_reads_like_one(path: Path) -> None:
    """What puts hashes into file names takes the word in a comment for the statement, and puts in two."""
    lines = path.read_text().splitlines()
    last = max((n for n, line in enumerate(lines) if line.startswith("import ")), default=0)
    comments = [line for line in lines[:last] if line.lstrip().startswith(("//", "/*", "*"))]
    assert [line for line in comments if re.search(r"\b(?:import|export)\b", line)] == []
