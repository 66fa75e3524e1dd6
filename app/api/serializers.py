"""Shapes that several routes share."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeVar

from django.conf import settings
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from app.api.error_codes import CODES
from app.common.money import Money, money

S = TypeVar("S", bound=serializers.Serializer[Any])


class MoneySerializer(serializers.Serializer[Any]):
    """An exact amount; never a float."""

    amount = serializers.CharField(help_text="Decimal digits, at least eight decimals: 0.00123400")
    currency = serializers.CharField(help_text="ISO 4217")


@extend_schema_field(MoneySerializer(allow_null=True))
class MoneyField(serializers.Field[Any, Any, Money | None, Any]):
    """A Decimal in the installation's currency; null is unknown, which is not 0."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(read_only=True, allow_null=True, **kwargs)

    def to_representation(self, value: Decimal) -> Money | None:
        return money(value, settings.CURRENCY)


class ErrorBodySerializer(serializers.Serializer[Any]):
    code = serializers.ChoiceField(
        choices=list(CODES), help_text="A closed list; see the description of the API."
    )
    message = serializers.CharField(help_text="What happened, what it means, what to do.")
    detail = serializers.DictField(
        help_text="Data by code: scope, limit, remaining, resets_at, part, fields, …"
    )
    request_id = serializers.CharField(allow_null=True)
    retryable = serializers.BooleanField(help_text="Whether the same request may succeed later.")


class ErrorSerializer(serializers.Serializer[Any]):
    """Every refusal, whatever its status."""

    error = ErrorBodySerializer()


class TeamRefSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()


def given(serializer: type[S], data: Any) -> dict[str, Any]:
    """The validated values of a body or query. Errors: DRF's ValidationError, answered as 422 by field."""
    reader = serializer(data=data)
    reader.is_valid(raise_exception=True)
    values: dict[str, Any] = reader.validated_data
    return values


def body(serializer: type[S], request: Request) -> dict[str, Any]:
    """The validated values of a request's body."""
    return given(serializer, request.data)


def refusals(*statuses: int) -> Mapping[int, OpenApiResponse]:
    """Documentation of the errors of a route; 401 is always among them."""
    return {
        status: OpenApiResponse(ErrorSerializer, description=_WORDS[status])
        for status in sorted({401, *statuses})
    }


_WORDS = {
    400: "The body cannot be parsed.",
    401: "No valid key or session.",
    402: "A budget has no room.",
    403: "The role or the key's scopes do not allow this.",
    404: "Unknown, or not readable by this caller.",
    409: "The present state does not allow this.",
    413: "Over the size limit.",
    415: "Wrong type of body.",
    422: "A field is wrong.",
    429: "Too many requests.",
    503: "A part does not answer, everything is busy, or this process is going down.",
}


class ChunkingSerializer(serializers.Serializer[Any]):
    """Tokens of the embedder."""

    size = serializers.IntegerField(required=False, min_value=50, max_value=450)
    overlap = serializers.IntegerField(required=False, min_value=0, max_value=200)
    small = serializers.IntegerField(
        required=False, min_value=0, max_value=450, help_text="Below it a chunk goes on over a heading."
    )

    class Meta:
        ref_name = "Chunking"
