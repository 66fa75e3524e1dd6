"""The words of the pages in other languages: `python tools/messages.py [compile]`.

Without an argument it lists what has no German yet, what is in a catalogue but nowhere else, and words of a page
that are not marked for translation; the exit code is 1 when there is any. `compile` writes django.mo from
django.po, so that no system package is needed. Pages take theirs from locale/de, scripts from
app/common/static/common/lang/de.json, and what the API says in English is told by scripts as de.server.json has it.
"""

import ast
import json
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[1]
PO = ROOT / "locale" / "de" / "LC_MESSAGES" / "django.po"
SERVER_WORDS = ROOT / "app" / "common" / "static" / "common" / "lang" / "de.server.json"
SCRIPT_WORDS = ROOT / "app" / "common" / "static" / "common" / "lang" / "de.json"
SCRIPTS = [
    path
    for folder in ("common", "chat", "accounts")
    for path in sorted((ROOT / "app" / folder / "static").rglob("*.js"))
    if "vendor" not in path.parts and path.name != "i18n.js"
]
# The pages of those who run the installation speak English, as the administration does.
ENGLISH = ("admin", "dashboard", "drf_spectacular", "ops")
TEMPLATES = [
    *(
        path
        for path in sorted((ROOT / "templates").rglob("*.html"))
        if path.relative_to(ROOT / "templates").parts[0] not in ENGLISH
    ),
    ROOT / "templates" / "dashboard" / "usage.html",
    ROOT / "templates" / "dashboard" / "limit_bar.html",
]
SOURCES = [
    ROOT / "app" / "dashboard" / "my_usage.py",
    ROOT / "app" / "chat" / "leaving_page.py",
    *(
        ROOT / "app" / "accounts" / name
        for name in (
            "adapter.py",
            "devices.py",
            "forms.py",
            "inviting.py",
            "members.py",
            "team_pages.py",
            "views.py",
        )
    ),
]

_CALL = re.compile(
    r"\b(?:n?gettext|_)\((u?(?:'(?:[^'\\]|\\.)*'|\"{3}(?:.|\n)*?\"{3}|\"(?:[^\"\\]|\\.)*\")"
    r"(?:,\s*u?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))?)"
)
_SCRIPT_TEXT = re.compile(r"\bt[x]?\(\"((?:[^\"\\]|\\.)*)\"")
_SCRIPT_NUMBER = re.compile(r"\btn\(\"((?:[^\"\\]|\\.)*)\", \"((?:[^\"\\]|\\.)*)\"")
_SCRIPT_CALL = re.compile(r"\bt[nx]?\(\"(?:[^\"\\]|\\.)*\"(?:, \"(?:[^\"\\]|\\.)*\")?")
_SCRIPT_COMMENT = re.compile(r"(?m)^\s*(?://|/?\*).*$")
_SCRIPT_WORDS = re.compile(r"([\"`])([A-Z“][^\"`<\n]*[\w”] [^\"`<\n]* \w[^\"`<\n]*)\1")
_NOT_WORDS = {"", "Tessera", "curl", "/api/v1/docs/", "English", "Deutsch"}
_NOT_SAID = {"What happens when a budget is used up?", "The stream went silent."}
"""A question to the English handbook, and what no page shows."""
READING = [
    *sorted((ROOT / "retrieval" / "parsing").rglob("*.py")),
    *(
        ROOT / "retrieval" / f"{name}.py"
        for name in ("accepted", "fetch", "fetching", "injection", "pictures", "pipeline")
    ),
]
"""What says how reading a document went: every sentence of it has its German."""

Key = tuple[str, ...]


def template_keys(source: str) -> Iterator[Key]:
    """What a template marks for translation: (text,) or (one, many)."""
    for found in _CALL.finditer(templatize(source)):
        yield tuple(str(text).replace("%%", "%") for text in ast.literal_eval(f"({found.group(1)},)"))


def source_keys(source: str) -> Iterator[Key]:
    """What Python marks with `_("…")` or `gettext_lazy("…")`."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"_", "gettext_lazy"}
        ):
            texts = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
            yield tuple(text for text in texts if isinstance(text, str))


def script_keys(source: str) -> set[str]:
    """What a script hands to t, tx and tn."""
    texts = _SCRIPT_TEXT.findall(source) + [text for pair in _SCRIPT_NUMBER.findall(source) for text in pair]
    return {json.loads(f'"{text}"') for text in texts}


class _Bare(HTMLParser):
    """Collects words that stand in a template as they are."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.quiet = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Attributes that people see or hear."""
        self.quiet += tag in {"code", "kbd", "pre", "svg", "script", "style"}
        if tag != "symbol":
            shown = {"aria-label", "title", "placeholder", "alt"}
            self.words += [value for name, value in attrs if name in shown and value]

    def handle_endtag(self, tag: str) -> None:
        """Code is in no language."""
        self.quiet -= tag in {"code", "kbd", "pre", "svg", "script", "style"}

    def handle_data(self, data: str) -> None:
        """Text between tags."""
        if not self.quiet:
            self.words.append(data)


def bare_words(source: str) -> list[str]:
    """Visible words of a template that no translation reaches."""
    for pattern in (
        r"(?s)\{%\s*blocktrans.*?endblocktrans(?:late)?\s*%\}",
        r"(?s)\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->|<!doctype[^>]*>",
    ):
        source = re.sub(pattern, "", source)
    reader = _Bare()
    reader.feed(source)
    found = (" ".join(words.split()).strip(" ·.,:;()“”…→") for words in reader.words)
    return [words for words in found if re.search(r"[A-Za-z]{2}", words) and words not in _NOT_WORDS]


def bare_script_words(source: str) -> list[str]:
    """Sentences of a script that it shows without asking for a translation."""
    source = _SCRIPT_CALL.sub("", _SCRIPT_COMMENT.sub("", source))
    return [words for _, words in _SCRIPT_WORDS.findall(source) if words not in _NOT_SAID]


def sentences_said(source: str) -> Iterator[str]:
    """Every sentence in Python code that no comment or log is made of; values in it are `7`."""
    tree = ast.parse(source)
    passed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    passed |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in passed:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(p.value) if isinstance(p, ast.Constant) else "7" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.replace("{}", "7")
        else:
            continue
        if re.match(r"[A-Z“7]\S*( \S+){2,}[.?!]$", text):
            yield text


def german_lacks(text: str, sentences: Iterable[str]) -> bool:
    """Whether a page could not tell this, as sentences.js does it: the longest runs that are known."""
    patterns = [re.sub(r"\\\{\w+\\\}", "(.+?)", re.escape(sentence)) for sentence in sentences]
    parts = re.split(r"(?<=[.?!]) (?=[A-Z“])", text)
    while parts:
        runs = range(len(parts), 0, -1)
        known = (n for n in runs if any(re.fullmatch(p, " ".join(parts[:n])) for p in patterns))
        if (length := next(known, 0)) == 0:
            return True
        del parts[:length]
    return False


def server_text() -> str:
    """All that Python says, with a mark where values are filled in."""
    framework = Path(str(find_spec("rest_framework.fields").origin))  # type: ignore[union-attr]
    files = [
        path for part in ("app", "retrieval", "inference_client") for path in (ROOT / part).rglob("*.py")
    ]
    said: list[str] = []
    for path in [*files, framework]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "\1" for p in node.values)
                said.append("".join(str(part) for part in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                said.append(node.value)
    return "\0".join(said)


def server_gone(sentences: Iterable[str], said: str) -> Iterator[str]:
    """Sentences of which a piece between two values is said nowhere any more."""
    for sentence in sentences:
        pieces = re.split(r"\{\w+\}|, ", sentence) if sentence.endswith((".", "?", "!")) else []
        if any(len(piece.split()) > 1 and piece.strip(" .()") not in said for piece in pieces):
            yield sentence


def po_read() -> dict[Key, tuple[str, ...]]:
    """The catalogue of the pages: what is marked → how it is said."""
    entries: dict[Key, tuple[str, ...]] = {}
    for block in PO.read_text(encoding="utf-8").split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            found = re.match(r'(?:(msgid|msgid_plural|msgstr(?:\[\d\])?) )?(".*")$', line)
            if found:
                name = found.group(1) or name
                fields[name] = fields.get(name, "") + ast.literal_eval(found.group(2))
        if "msgid" in fields:
            key = tuple(fields[part] for part in ("msgid", "msgid_plural") if part in fields)
            entries[key] = tuple(fields[part] for part in sorted(fields) if part.startswith("msgstr"))
    return entries


def mo_bytes(entries: dict[Key, tuple[str, ...]]) -> bytes:
    """The catalogue as gettext reads it."""
    pairs = sorted(
        ("\0".join(key).encode(), "\0".join(said).encode()) for key, said in entries.items() if any(said)
    )
    start = 7 * 4 + 16 * len(pairs)
    tables: list[bytes] = []
    texts = b""
    for side in (0, 1):
        for pair in pairs:
            tables.append(struct.pack("<2I", len(pair[side]), start + len(texts)))
            texts += pair[side] + b"\0"
    size = len(pairs)
    head = struct.pack("<7I", 0x950412DE, 0, size, 7 * 4, 7 * 4 + 8 * size, 0, start)
    return head + b"".join(tables) + texts


def wanted() -> tuple[set[Key], set[str]]:
    """What pages and scripts mark for translation."""
    pages = {key for path in TEMPLATES for key in template_keys(path.read_text(encoding="utf-8"))}
    pages |= {key for path in SOURCES for key in source_keys(path.read_text(encoding="utf-8"))}
    return pages, {key for path in SCRIPTS for key in script_keys(path.read_text(encoding="utf-8"))}


def passed_over() -> Iterator[str]:
    """What stands in a file in English and would be shown like that."""
    german = set(json.loads(SERVER_WORDS.read_text(encoding="utf-8"))) - {"{name}: {warning}"}
    searched: tuple[tuple[str, list[Path], Callable[[str], Iterable[str]]], ...] = (
        ("not marked for translation", TEMPLATES, bare_words),
        ("not handed to t", SCRIPTS, bare_script_words),
        (
            "no German in de.server.json",
            READING,
            lambda source: (text for text in sentences_said(source) if german_lacks(text, german)),
        ),
    )
    for what, paths, found in searched:
        for path in paths:
            for words in found(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(ROOT)}: {what}: {words!r}"


def problems() -> Iterator[str]:
    """One line for each thing that is not right."""
    pages, scripts = wanted()
    said = po_read()
    script_words = json.loads(SCRIPT_WORDS.read_text(encoding="utf-8"))
    for key in sorted(pages - {key for key, words in said.items() if all(words)}):
        yield f"no German in django.po: {key[0]!r}"
    for key in sorted(set(said) - pages - {("",)}):
        yield f"in django.po, but on no page: {key[0]!r}"
    for text in sorted(scripts - {text for text, words in script_words.items() if words}):
        yield f"no German in de.json: {text!r}"
    for text in sorted(set(script_words) - scripts):
        yield f"in de.json, but in no script: {text!r}"
    for text in server_gone(json.loads(SERVER_WORDS.read_text(encoding="utf-8")), server_text()):
        yield f"in de.server.json, but the server says it nowhere: {text!r}"
    yield from passed_over()
    if PO.with_suffix(".mo").read_bytes() != mo_bytes(said):
        yield "django.mo is not what django.po says: python tools/messages.py compile"


def main() -> int:
    """The command; its exit code."""
    if not settings.configured:
        settings.configure(USE_I18N=True)
    if sys.argv[1:] == ["compile"]:
        PO.with_suffix(".mo").write_bytes(mo_bytes(po_read()))
        return 0
    found = list(problems())
    print("\n".join(found) or "Every word of the pages is there in German.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
