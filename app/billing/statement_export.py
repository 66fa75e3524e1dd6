"""A statement as CSV and as JSON. The same digits as on the page; money is decimals, never floats."""

import csv
from decimal import Decimal
from io import StringIO
from typing import Any

from app.billing.statement_sheet import Sheet, SheetLine
from app.billing.statement_sums import Sums

COLUMNS = (
    "statement", "state", "team", "month", "section", "of_month", "cost_centre", "model", "component", "price_version",
    "min_prompt_tokens", "quantity", "unit_price", "per_units", "exact", "amount", "estimated", "currency",
)  # fmt: skip
_RISKY = ("=", "+", "-", "@", "\t", "\r")


def statement_csv(sheet: Sheet) -> str:
    """One row per line, then a row `total`: the column `amount` of the lines but `credit` adds up to it."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    of = sheet.statement
    head = [of.number or "", of.state, _safe(of.team_name), f"{of.month:%Y-%m}"]
    for line in sheet.lines:
        writer.writerow([*head, *_row(line), of.currency])
    total = ["total", "", "", "", "", "", "", "", "", ""]
    writer.writerow(
        [*head, *total, _digits(sheet.exact), _digits(sheet.total), _digits(sheet.estimated), of.currency]
    )
    return out.getvalue()


def statement_json(sheet: Sheet) -> dict[str, Any]:
    """The whole statement; amounts in its currency."""
    return {**summary_json(sheet), "lines": [_object(line) for line in sheet.lines]}


def summary_json(sums: Sums) -> dict[str, Any]:
    """A statement without its lines."""
    of = sums.statement
    return {
        "id": str(of.id),
        "number": of.number,
        "state": of.state,
        "team": {"id": str(of.team_id) if of.team_id else None, "name": of.team_name},
        "month": f"{of.month:%Y-%m}",
        "zone": of.zone,
        "starts_at": _instant(of.starts_at),
        "ends_at": _instant(of.ends_at),
        "due_at": _instant(sums.due_at),
        "issued_at": _instant(of.issued_at),
        "currency": of.currency,
        "total": _digits(sums.total),
        "exact": _digits(sums.exact),
        "estimated": _digits(sums.estimated),
        "entries_without_price": sums.missing,
        "prepaid": None if sums.credit_opening is None else {
            "opening": _digits(sums.credit_opening),
            "moved": _digits(sums.credit_moved),
            "used": _digits(sums.credit_used),
            "closing": _digits(sums.credit_closing),
        },
        "due": _digits(sums.due),
    }  # fmt: skip


def _row(line: SheetLine) -> list[Any]:
    return [
        line.section,
        f"{line.month:%Y-%m}" if line.month else "",
        _safe(line.cost_centre),
        _safe(line.model),
        _safe(line.component),
        line.price_version or "",
        line.min_prompt_tokens or "",
        "" if line.quantity is None else line.quantity,
        _digits(line.unit_price) or "",
        line.per_units or "",
        _digits(line.exact) or "",
        _digits(line.amount) or "",
        _digits(line.estimated),
    ]


def _object(line: SheetLine) -> dict[str, Any]:
    return {
        "section": line.section,
        "of_month": f"{line.month:%Y-%m}" if line.month else None,
        "cost_centre": line.cost_centre,
        "model": line.model,
        "component": line.component,
        "price_version": str(line.price_version) if line.price_version else None,
        "min_prompt_tokens": line.min_prompt_tokens,
        "quantity": line.quantity,
        "unit_price": _digits(line.unit_price),
        "per_units": line.per_units,
        "exact": _digits(line.exact),
        "amount": _digits(line.amount),
        "estimated": _digits(line.estimated),
        "entries": line.entries,
    }


def _safe(text: str) -> str:
    """A name that a spreadsheet would run as a formula becomes text."""
    return f"'{text}" if text.startswith(_RISKY) else text


def _digits(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:f}"


def _instant(value: Any) -> str | None:
    return str(value.isoformat()).replace("+00:00", "Z") if value else None
