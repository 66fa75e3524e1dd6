"""limit-requests/: asking for more after a refusal, and deciding about it."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import listed, whole
from app.api.serializers import body, refusals
from app.billing.asking import may_decide, more_ask, more_decide, requests_of
from app.billing.naming import whom


class _Amount(serializers.DecimalField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            max_digits=20, decimal_places=8, min_value=0, required=False, allow_null=True, **kwargs
        )


class LimitRequestOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    limit_id = serializers.UUIDField(source="window_id")
    scope = serializers.CharField(source="window.budget.scope")
    covers = serializers.SerializerMethodField()
    unit = serializers.CharField(source="window.unit")
    amount = serializers.SerializerMethodField()
    note = serializers.CharField()
    state = serializers.CharField(help_text="open, granted or declined.")
    granted = serializers.SerializerMethodField()
    ends_at = serializers.DateTimeField(source="window.ends_at", help_text="When a raise ends by itself.")
    created_at = serializers.DateTimeField()
    answer = serializers.CharField(help_text="A word of who decided.")
    mine_to_decide = serializers.SerializerMethodField()

    class Meta:
        ref_name = "LimitRequest"

    def get_covers(self, row: Any) -> str:
        """Whose limit it is."""
        return whom(row.window.subject)

    def get_amount(self, row: Any) -> str | None:
        """How much more; null leaves it to who decides."""
        return None if row.amount is None else f"{row.amount.normalize():f}"

    def get_granted(self, row: Any) -> str | None:
        """How much more it got."""
        return None if row.granted is None else f"{row.granted.normalize():f}"

    def get_mine_to_decide(self, row: Any) -> bool:
        """Whether the caller may grant or decline it."""
        return may_decide(self.context["caller"], row)


def _shown(request: Request, row: Any, *, many: bool = False) -> Any:
    return LimitRequestOutput(row, many=many, context={"caller": caller_of(request)}).data


class LimitRequestsView(APIView):
    """More of a limit, asked for."""

    class Input(serializers.Serializer[Any]):
        limit_id = serializers.UUIDField(help_text="As a refusal's `detail.limit_id` names it.")
        team = serializers.UUIDField(required=False, help_text="Who paid; default: my default team.")
        amount = _Amount(help_text="How much more; left out, who decides says it.")
        note = serializers.CharField(max_length=500, required=False, allow_blank=True)

        class Meta:
            ref_name = "LimitRequestCreate"

    @extend_schema(
        operation_id="limit_requests_list",
        responses={200: listed(LimitRequestOutput, "LimitRequest"), **refusals(403)},
        description="Mine, and those that are mine to decide.",
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("usage")
        return whole(_shown(request, requests_of(caller), many=True))

    @extend_schema(
        operation_id="limit_requests_create",
        request=Input,
        parameters=[PARAMETER],
        responses={201: LimitRequestOutput, **refusals(400, 403, 404, 422)},
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        row = more_ask(caller=caller, **body(self.Input, request))
        return Response(_shown(request, row), status=201)


class LimitRequestDecisionView(APIView):
    """Grant until the period ends, or decline."""

    class Input(serializers.Serializer[Any]):
        grant = serializers.BooleanField()
        amount = _Amount(help_text="How much more; left out: as asked.")
        answer = serializers.CharField(
            max_length=500, required=False, allow_blank=True, help_text="A word to whoever asked."
        )

        class Meta:
            ref_name = "LimitRequestDecision"

    @extend_schema(
        operation_id="limit_requests_decide",
        request=Input,
        parameters=[PARAMETER],
        responses={200: LimitRequestOutput, **refusals(400, 403, 404, 409, 422)},
    )
    @idempotent()
    def post(self, request: Request, request_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        row = more_decide(caller=caller, request_id=request_id, **body(self.Input, request))
        return Response(_shown(request, row))
