"""Rows of a sheet as blocks: what stands alone in its row is text, the rest are tables. Pure."""

from collections import Counter
from collections.abc import Sequence

from retrieval.parsing.blocks import PageBuilder, table_text

Row = Sequence[str]


def add_rows(builder: PageBuilder, rows: Sequence[Row]) -> None:
    """Add a sheet: tables end at an empty row that a new header or a title follows; columns empty all through are left
    out, and repeated names in a header are numbered.
    """
    for group in _groups(_trimmed(rows)):
        titles = 0
        # Single cells above a table are its title and remarks.
        while titles < len(group) and _filled(group[titles]) == 1:
            builder.add("paragraph", next(cell for cell in group[titles] if cell.strip()))
            titles += 1
        if table := group[titles:]:
            builder.add("table", table_text(_numbered(table)))


def _trimmed(rows: Sequence[Row]) -> list[list[str]]:
    width = max((len(row) for row in rows), default=0)
    used = [any(i < len(row) and row[i].strip() for row in rows) for i in range(width)]
    return [[cell for i, cell in enumerate(row) if used[i]] for row in rows]


def _groups(rows: Sequence[list[str]]) -> list[list[list[str]]]:
    groups: list[list[list[str]]] = []
    gap = True
    for row in rows:
        if not _filled(row):
            gap = True
            continue
        # Sheets are spaced for the eye: numbers after an empty row go on with the table above.
        if groups and (not gap or (_filled(groups[-1][-1]) > 1 and _is_data(row))):
            groups[-1].append(row)
        else:
            groups.append([row])
        gap = False
    return groups


def _filled(row: Row) -> int:
    return sum(bool(cell.strip()) for cell in row)


def _is_data(row: Row) -> bool:
    return _filled(row) > 1 and any(cell[:1].isdigit() or cell[:2].lstrip("-+")[:1].isdigit() for cell in row)


def _numbered(table: Sequence[Row]) -> Sequence[Row]:
    """A header whose names repeat gets numbers, so that a column can be named: Amount, Amount (2)."""
    header = table[0]
    names = Counter(cell for cell in header if cell.strip())
    if len(table) < 3 or _is_data(header) or not names or max(names.values()) == 1:
        return table
    # Neighbours of one name are a merged cell.
    seen: Counter[str] = Counter()
    unique: list[str] = []
    for i, cell in enumerate(header):
        if cell.strip() and not (i and header[i - 1] == cell):
            seen[cell] += 1
        unique.append(f"{cell} ({seen[cell]})" if seen[cell] > 1 else cell)
    return [unique, *table[1:]]
