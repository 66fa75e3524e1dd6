"""A ledger entry as a webhook receives it. The same entry always gives the same bytes."""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

from app.billing.models import LedgerEntry, LedgerLine
from app.common.money import money


def messages_of(entry_ids: Iterable[UUID]) -> dict[UUID, bytes]:
    """The message of each entry; see docs/handbook/webhooks.md for its form."""
    ids = list(entry_ids)
    lines: dict[UUID, list[dict[str, Any]]] = {}
    for line in LedgerLine.objects.filter(entry_id__in=ids).order_by("entry_id", "side", "component"):
        lines.setdefault(line.entry_id, []).append(_line(line))
    return {
        entry.id: json.dumps(
            {"type": "ledger.entry", "id": str(entry.id), "data": _data(entry, lines.get(entry.id, []))},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()
        for entry in LedgerEntry.objects.filter(id__in=ids)
    }


def _data(entry: LedgerEntry, lines: list[dict[str, Any]]) -> dict[str, Any]:
    plain = ("kind", "call_kind", "model", "price_key", "cost_centre", "input_tokens", "output_tokens")
    flags = ("price_missing", "estimated", "overshoot", "late")
    ids = ("reservation_id", "supersedes_id", "team_id", "account_id", "key_id", "deployment_id")
    return {
        "effective_at": _instant(entry.effective_at),
        "recorded_at": _instant(entry.recorded_at),
        **{name: getattr(entry, name) for name in plain},
        "price": money(entry.price, entry.currency),
        "cost": money(entry.cost, entry.currency),
        "credit": money(entry.credit, entry.currency),
        **{name: getattr(entry, name) for name in flags},
        **{name.removesuffix("_id"): str(v) if (v := getattr(entry, name)) else None for name in ids},
        "lines": lines,
    }


def _line(line: LedgerLine) -> dict[str, Any]:
    return {
        "side": line.side,
        "component": line.component,
        "quantity": line.quantity,
        "unit_price": _digits(line.unit_price),
        "per_units": line.per_units,
        "amount": _digits(line.amount),
    }


def _digits(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:f}"


def _instant(value: Any) -> str:
    return str(value.isoformat()).replace("+00:00", "Z")
