"""Lists: `{"items": […], "next": "opaque" | null}`, newest first, at most 200 a page."""

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Protocol, TypeVar, cast
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from app.common.errors import InvalidInput

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 200

Row = TypeVar("Row", bound=Model)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FOREIGN_CURSOR = ("`cursor` is not one that this list gave out.",)


class Timed(Protocol):
    """A row that knows when it was last used."""

    pk: UUID
    updated_at: datetime


PARAMETERS = [
    OpenApiParameter("limit", int, description=f"1 to {LARGEST_LIMIT}, else {DEFAULT_LIMIT}."),
    OpenApiParameter("cursor", str, description="`next` of the page before."),
]


@cache
def listed(item: type[serializers.Serializer[Any]], name: str) -> serializers.Serializer[Any]:
    """The serializer of a page of `item`, for the schema."""
    fields = {
        "items": item(many=True),
        "next": serializers.CharField(
            allow_null=True, help_text="Send it as `cursor`; null on the last page."
        ),
    }
    return inline_serializer(name=f"{name}List", fields=fields)


def limit_of(request: Request) -> int:
    """How many items are asked for. Errors: InvalidInput."""
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= LARGEST_LIMIT:
        raise InvalidInput(f"`limit` is a whole number from 1 to {LARGEST_LIMIT}.", detail={"field": "limit"})
    return int(text)


def cursor_of(request: Request) -> UUID | None:
    """The id after which the page begins. Errors: InvalidInput."""
    text = request.query_params.get("cursor")
    if not text:
        return None
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError) as exc:
        raise InvalidInput(*_FOREIGN_CURSOR, detail={"field": "cursor"}) from exc


def cursor_after(identity: UUID) -> str:
    """The opaque text that continues after this id."""
    return base64.urlsafe_b64encode(identity.bytes).decode().rstrip("=")


def rows_of(request: Request, rows: QuerySet[Row], limit: int) -> tuple[list[Row], str | None]:
    """One page of rows by descending UUIDv7, which is newest first, and the cursor of the next."""
    after = cursor_of(request)
    # Keyset, not offset: rows that arrive meanwhile move nothing.
    part = rows.order_by("-pk") if after is None else rows.order_by("-pk").filter(pk__lt=after)
    found = list(part[: limit + 1])
    return found[:limit], cursor_after(found[limit - 1].pk) if len(found) > limit else None


def cursor_by_time(row: Timed) -> str:
    """The opaque text that continues after this row in a list by `updated_at`."""
    micros = round(row.updated_at.timestamp() * 1_000_000)
    return base64.urlsafe_b64encode(micros.to_bytes(8) + row.pk.bytes).decode().rstrip("=")


def rows_by_time(request: Request, rows: QuerySet[Row], limit: int) -> tuple[list[Row], str | None]:
    """One page of rows by descending `updated_at`, and the cursor of the next. Errors: InvalidInput."""
    ordered = rows.order_by("-updated_at", "-pk")
    if text := request.query_params.get("cursor"):
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            last = UUID(bytes=raw[8:])
            at = _EPOCH + timedelta(microseconds=int.from_bytes(raw[:8]))
        except (binascii.Error, ValueError, OverflowError) as exc:
            raise InvalidInput(*_FOREIGN_CURSOR, detail={"field": "cursor"}) from exc
        # The first condition alone lets the index find the place; the second settles rows of one moment.
        ordered = ordered.filter(updated_at__lte=at).filter(Q(updated_at__lt=at) | Q(pk__lt=last))
    found = list(ordered[: limit + 1])
    following = cursor_by_time(cast(Timed, found[limit - 1])) if len(found) > limit else None
    return found[:limit], following


def page(request: Request, rows: QuerySet[Row], render: Callable[[Sequence[Row]], Any]) -> Response:
    """A page of `rows`, rendered together so that what belongs to them is read in one query."""
    found, following = rows_of(request, rows, limit_of(request))
    return Response({"items": render(found), "next": following})


def whole(items: Any) -> Response:
    """A list that is short by nature, in the form of a page."""
    return Response({"items": list(items), "next": None})
