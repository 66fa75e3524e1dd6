"""Tables as values: what a page shows and what its CSV holds are the same cells."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
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
    words: bool = False
    """A sentence, which may take several lines."""
    note: str = ""
    """A short remark below, such as entries without a price."""


@dataclass(frozen=True, slots=True)
class Table:
    """The first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    foot: tuple[Cell, ...] = ()

    def csv(self) -> str:
        """As spreadsheets read it: with a byte order mark, and nothing in a cell that they would run."""
        out = StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        writer.writerow(self.columns)
        for row in (*self.rows, *((self.foot,) if self.foot else ())):
            writer.writerow([_plain(cell) for cell in row])
        return "\ufeff" + out.getvalue()


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
