"""JSON and JSON Lines: lists of like objects as tables, everything else as `path: value`."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from retrieval.errors import ReadError
from retrieval.parsing.blocks import PageBuilder, Reading, table_text
from retrieval.parsing.clues import LIKELY, Clues, Format
from retrieval.parsing.decoding import decode
from retrieval.parsing.readers.text import notes
from retrieval.parsing.source import Source

_TITLES = ("title", "name", "subject")


def read_json(source: Source) -> Reading:
    """A JSON file as one page, as plain text where it is not well-formed. Errors: ReadError when it is empty."""
    decoded = decode(source.data())
    builder = PageBuilder()
    value: Any = None
    broken: tuple[str, ...] = ()
    try:
        value = _parsed(decoded.text)
        _Lines(builder).add(value)
    except ValueError as exc:
        # Whatever is wrong with it, people can read it, and so it can be found.
        builder.add("code", decoded.text)
        broken = (f"Not well-formed JSON ({exc}): it was read as plain text.",)
    page = builder.page()
    if not page.text:
        raise ReadError(f"“{source.name}” holds no value that could be read.", reason="empty")
    title = next(
        (value[key] for key in _TITLES if isinstance(value, dict) and isinstance(value.get(key), str)), ""
    )
    metadata = {"encoding": decoded.encoding, **({"title": title} if title else {})}
    return Reading(
        "json",
        "application/json",
        (page,),
        paged=False,
        metadata=metadata,
        warnings=(*broken, *notes(decoded)),
    )


def _parsed(text: str) -> Any:
    # Numbers stay as they are written: 1.10 is not 1.1, and an account number has no exponent.
    numbers: dict[str, Any] = {"parse_float": str, "parse_int": str, "parse_constant": str}
    try:
        return json.loads(text, **numbers)
    except ValueError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise
        return [json.loads(line, **numbers) for line in lines]


class _Lines:
    """Values gather as lines until a table stands between them."""

    def __init__(self, builder: PageBuilder) -> None:
        self._builder = builder
        self._held: list[str] = []

    def add(self, value: Any) -> None:
        self._value("", value)
        self._flush()

    def _flush(self) -> None:
        self._builder.add("list", "\n".join(self._held))
        self._held.clear()

    def _value(self, path: str, value: Any) -> None:
        if isinstance(value, list) and len(value) > 1 and (rows := _table(value)) is not None:
            self._flush()
            if path:
                self._builder.add("paragraph", f"{path}:")
            self._builder.add("table", table_text(rows))
        elif isinstance(value, dict | list) and value:
            for key, inner in _inner(value):
                self._value(f"{path}.{key}" if path and not key.startswith("[") else path + key, inner)
        elif value not in ({}, []):
            self._held.append(f"{path}: {_scalar(value)}" if path else _scalar(value))


def _inner(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield from ((f"[{i}]", item) for i, item in enumerate(value, start=1))


def _table(items: Sequence[Any]) -> list[list[str]] | None:
    """Header and rows when all items are objects of scalars."""
    columns: dict[str, None] = {}
    for item in items:
        if not isinstance(item, dict) or any(isinstance(inner, dict | list) for inner in item.values()):
            return None
        columns.update(dict.fromkeys(item))
    if not columns:
        return None
    return [list(columns), *([_scalar(item.get(key)) for key in columns] for item in items)]


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _claims(clues: Clues) -> int:
    named = clues.suffix in {".json", ".jsonl", ".ndjson", ".geojson"}
    return LIKELY if named and clues.text.lstrip("\ufeff \t\r\n")[:1] in set('{["-0123456789tfn') else 0


FORMATS = (Format("json", "application/json", "JSON", _claims, read_json),)
