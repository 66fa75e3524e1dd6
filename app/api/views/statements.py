"""Statements: for owners of a team and for staff."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import Caller
from app.api.authentication import caller_of
from app.api.paging import PARAMETERS, cursor_after, cursor_of, limit_of, listed
from app.api.serializers import refusals
from app.billing.statement_export import statement_csv, statement_json, summary_json
from app.billing.statement_sheet import Sheet, statement_sheet
from app.billing.statement_sums import statement_get, statement_sums, statements_list

_DIGITS = "Decimal digits in `currency`; null is unknown, which is not 0."


class StatementTeamSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(allow_null=True, help_text="Null: the installation itself.")
    name = serializers.CharField()


class StatementLineSerializer(serializers.Serializer[Any]):
    section = serializers.ChoiceField(choices=["charge", "adjustment", "credit", "rounding"])
    of_month = serializers.CharField(allow_null=True, help_text="Of an adjustment: the month it is about.")
    cost_centre = serializers.CharField()
    model = serializers.CharField()
    component = serializers.CharField()
    price_version = serializers.UUIDField(allow_null=True)
    min_prompt_tokens = serializers.IntegerField(allow_null=True)
    quantity = serializers.IntegerField(allow_null=True)
    unit_price = serializers.CharField(allow_null=True)
    per_units = serializers.IntegerField(allow_null=True)
    exact = serializers.CharField(allow_null=True, help_text=_DIGITS)
    amount = serializers.CharField(allow_null=True, help_text="`exact`, rounded once, half to even.")
    estimated = serializers.CharField(help_text="The part of `exact` that rests on estimates.")
    entries = serializers.IntegerField()


class PrepaidSerializer(serializers.Serializer[Any]):
    opening = serializers.CharField()
    moved = serializers.CharField()
    used = serializers.CharField()
    closing = serializers.CharField()


class StatementSummarySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    number = serializers.IntegerField(allow_null=True, help_text="1, 2, 3… without gaps; null for a draft.")
    state = serializers.CharField(help_text="draft or issued")
    team = StatementTeamSerializer()
    month = serializers.CharField(help_text="YYYY-MM in `zone`")
    zone = serializers.CharField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(help_text="When a draft is issued.")
    issued_at = serializers.DateTimeField(allow_null=True)
    currency = serializers.CharField()
    total = serializers.CharField(
        help_text="`exact`, rounded once; the lines but those of credit add up to it."
    )
    exact = serializers.CharField(help_text="The sum of the ledger's entries, to the last digit.")
    estimated = serializers.CharField()
    entries_without_price = serializers.IntegerField(help_text="In no sum.")
    prepaid = PrepaidSerializer(allow_null=True)
    due = serializers.CharField(help_text="What prepaid credit has not paid.")


class StatementSerializer(StatementSummarySerializer):
    lines = StatementLineSerializer(many=True)

    class Meta:
        ref_name = "Statement"


def _teams(caller: Caller) -> list[UUID] | None:
    caller.require_scope("usage")
    return caller.money_teams


def _sheet(request: Request, statement_id: UUID) -> Sheet:
    return statement_sheet(statement_get(statement_id, team_ids=_teams(caller_of(request))))


class StatementsView(APIView):
    """Those of the teams I own; of all teams for staff."""

    @extend_schema(
        operation_id="statements_list",
        parameters=PARAMETERS,
        responses={200: listed(StatementSummarySerializer, "Statement"), **refusals(403, 422)},
    )
    def get(self, request: Request) -> Response:
        limit = limit_of(request)
        rows = statements_list(
            team_ids=_teams(caller_of(request)), before=cursor_of(request), limit=limit + 1
        )
        items = [summary_json(sums) for sums in statement_sums(rows[:limit])]
        return Response(
            {"items": items, "next": cursor_after(rows[limit - 1].id) if len(rows) > limit else None}
        )


class StatementView(APIView):
    """One statement with its lines; a draft as it would be issued now."""

    @extend_schema(operation_id="statements_get", responses={200: StatementSerializer, **refusals(403, 404)})
    def get(self, request: Request, statement_id: UUID) -> Response:
        return Response(statement_json(_sheet(request, statement_id)))


class StatementCsvView(APIView):
    """The same lines as CSV."""

    @extend_schema(
        operation_id="statements_csv",
        responses={(200, "text/csv"): OpenApiTypes.STR, **refusals(403, 404)},
    )
    def get(self, request: Request, statement_id: UUID) -> HttpResponse:
        return HttpResponse(
            statement_csv(_sheet(request, statement_id)), content_type="text/csv; charset=utf-8"
        )
