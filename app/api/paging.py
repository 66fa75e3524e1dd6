"""Lists: `{"items": […], "next": "opaque" | null}`, newest first, at most 200 a page."""

import base64
import binascii
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from app.common.errors import InvalidInput

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 200

Row = TypeVar("Row", bound=Model)

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
        raise InvalidInput(
            "`cursor` is not one that this list gave out.", detail={"field": "cursor"}
        ) from exc


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


def page(request: Request, rows: QuerySet[Row], render: Callable[[Sequence[Row]], Any]) -> Response:
    """A page of `rows`, rendered together so that what belongs to them is read in one query."""
    found, following = rows_of(request, rows, limit_of(request))
    return Response({"items": render(found), "next": following})


def whole(items: Any) -> Response:
    """A list that is short by nature, in the form of a page."""
    return Response({"items": list(items), "next": None})
