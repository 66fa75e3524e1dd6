"""Tables as values: what a page shows and what its CSV holds are the same cells."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure or name."""

    text: str
    exact: str = ""
    """Every digit, for hovering and for the CSV; empty: as shown."""
    href: str = ""
    """Where it leads."""
    muted: bool = False
    name: bool = False
    """Not a figure: it stands at the left of its column."""
    words: bool = False
    """A sentence, which stands at the left too and may take several lines."""
    note: str = ""
    """A short remark below, such as entries without a price."""


@dataclass(frozen=True, slots=True)
class Table:
    """The first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    foot: tuple[Cell, ...] = ()

    @property
    def heads(self) -> tuple[tuple[str, bool], ...]:
        """Each column's heading, and whether it stands at the left."""
        first = self.rows[0] if self.rows else ()
        return tuple(
            (heading, place == 0 or any(cell.name or cell.words for cell in first[place : place + 1]))
            for place, heading in enumerate(self.columns)
        )

    def csv(self) -> str:
        """As spreadsheets read it: with a byte order mark, and nothing in a cell that they would run."""
        out = StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        writer.writerow(self.columns)
        for row in (*self.rows, *((self.foot,) if self.foot else ())):
            writer.writerow([_plain(cell) for cell in row])
        return "\ufeff" + out.getvalue()


def named(text: str, exact: str = "", *, known: bool = True) -> Cell:
    """A name, or what stands where none is known."""
    return Cell(text, exact, muted=not known, name=True)


def _plain(cell: Cell) -> str:
    text = cell.exact or cell.text
    if text[:1] in {"=", "+", "@", "\t", "\r"} or (text[:1] == "-" and not _is_number(text)):
        return f"'{text}"
    return text


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Cell]], foot: Sequence[Cell] = ()) -> Table:
    """Of lists."""
    return Table(tuple(columns), tuple(tuple(row) for row in rows), tuple(foot))


def folded(table: Table, notes: Mapping[str, str]) -> Table:
    """The table for a page, narrower than its CSV: each column named in `notes` becomes a remark below the one before.

    The value is a pattern around the text, such as `{} failed`; muted cells say nothing.
    """
    kept = [place for place, name in enumerate(table.columns) if name not in notes]
    return Table(
        tuple(table.columns[place] for place in kept),
        tuple(_folded(table.columns, row, notes) for row in table.rows),
        _folded(table.columns, table.foot, notes) if table.foot else (),
    )


def _folded(columns: Sequence[str], row: Sequence[Cell], notes: Mapping[str, str]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for name, cell in zip(columns, row, strict=True):
        if name not in notes:
            cells.append(cell)
        elif not cell.muted:
            words = ", ".join(
                part for part in (cells[-1].note, notes[name].format(cell.text), cell.note) if part
            )
            cells[-1] = replace(cells[-1], note=words)
    return tuple(cells)
