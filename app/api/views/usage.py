"""What was spent, from the ledger."""

from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.utils.dateparse import parse_date, parse_datetime
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.api.authentication import caller_of
from app.api.serializers import MoneyField, given, refusals
from app.api.usage import GROUPS, UsageQuestion, usage_of


class SumsSerializer(serializers.Serializer[Any]):
    price = MoneyField(help_text="What users are charged.")
    cost = MoneyField(help_text="What it cost us; staff only.")
    entries = serializers.IntegerField()
    requests = serializers.IntegerField(help_text="Chat turns.")
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    estimated_price = MoneyField(help_text="The part of the price that rests on estimates.")
    price_missing = serializers.IntegerField(help_text="Entries without a known price: they are in no sum.")

    class Meta:
        ref_name = "UsageSums"


class UsageView(APIView):
    """Ledger sums by group: my own, a team's (`team`, for its admins), or all (`all`, for staff)."""

    class Query(serializers.Serializer[Any]):
        group_by = serializers.ChoiceField(choices=GROUPS, default="day")
        tz = serializers.CharField(max_length=64, default="UTC")
        team = serializers.UUIDField(required=False)
        all = serializers.BooleanField(default=False)

        def validate_tz(self, value: str) -> str:
            if value not in available_timezones():
                raise serializers.ValidationError("Not an IANA time zone such as Europe/Berlin.")
            return value

    class Output(serializers.Serializer[Any]):
        class Item(SumsSerializer):
            group = serializers.CharField(allow_null=True)
            name = serializers.CharField(
                allow_null=True, help_text="For people; the group itself where it has none."
            )

            class Meta:
                ref_name = "UsageItem"

        group_by = serializers.ChoiceField(choices=GROUPS)
        tz = serializers.CharField()
        items = Item(many=True)
        total = SumsSerializer()
        next = serializers.CharField(allow_null=True)

        class Meta:
            ref_name = "Usage"

    @extend_schema(
        operation_id="usage",
        parameters=[
            OpenApiParameter("from", str, description="A day of `tz` or an instant; from here on."),
            OpenApiParameter("to", str, description="A day of `tz` (inclusive) or an instant (exclusive)."),
            OpenApiParameter("tz", str, description="IANA zone that days are counted in; default UTC."),
            OpenApiParameter("group_by", str, enum=GROUPS),
            OpenApiParameter("team", str, description="The whole of this team."),
            OpenApiParameter("all", bool, description="The whole installation."),
        ],
        responses={200: Output, **refusals(403, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("usage")
        query = given(self.Query, request.query_params.dict())
        question = UsageQuestion(
            group_by=query["group_by"],
            from_=_instant(request, "from", query["tz"]),
            to=_instant(request, "to", query["tz"]),
            tz=query["tz"],
            team_id=query.get("team"),
            everything=query["all"],
        )
        return Response(self.Output(usage_of(caller, question)).data)


def _instant(request: Request, name: str, zone: str) -> datetime | None:
    """A query parameter as an instant: a day begins at its midnight in `zone`, and as `to` it is included whole."""
    text = request.query_params.get(name)
    if not text:
        return None
    try:
        day = parse_date(text)
        moment = None if day else parse_datetime(text.replace(" ", "+"))
    except ValueError:
        day = moment = None
    if day is not None:
        return _midnight(date.fromordinal(day.toordinal() + (name == "to")), zone)
    if moment is None:
        raise serializers.ValidationError(
            {name: ["A day such as 2026-11-30, or an instant such as 2026-11-30T12:00:00Z."]}
        )
    return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))


def _midnight(day: date, zone: str) -> datetime:
    return datetime.combine(day, time.min, ZoneInfo(zone)).astimezone(UTC)
