"""Who is calling, what they may use, and what is left of their limits."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.models import Role
from app.accounts.selectors import ALL_SCOPES, team_of, teams_of, user_of
from app.api.authentication import caller_of
from app.api.paging import listed, whole
from app.api.serializers import MoneyField, TeamRefSerializer, given, refusals
from app.billing.selectors import limits_remaining
from app.billing.types import LimitState, Payer
from app.billing.uploads import stored_limits
from app.chat.asking import models_for
from app.chat.model_cards import model_cards


class MeView(APIView):
    """Who I am."""

    class Output(serializers.Serializer[Any]):
        class Membership(TeamRefSerializer):
            role = serializers.ChoiceField(choices=Role.values)
            is_personal = serializers.BooleanField()

        id = serializers.UUIDField(allow_null=True, help_text="Null for a key of a team.")
        email = serializers.EmailField(allow_null=True)
        name = serializers.CharField(allow_null=True)
        is_staff = serializers.BooleanField()
        scopes = serializers.ListField(child=serializers.ChoiceField(choices=[*ALL_SCOPES, "staff"]))
        key_id = serializers.UUIDField(allow_null=True)
        currency = serializers.CharField(help_text="Of all prices and budgets here.")
        default_team = TeamRefSerializer(help_text="Pays unless a conversation names another team.")
        teams = Membership(many=True)

        class Meta:
            ref_name = "Me"

    @extend_schema(operation_id="me", responses={200: Output, **refusals()})
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        user, roles = user_of(caller), dict(caller.roles)
        teams = teams_of(caller)
        answer = {
            "id": caller.user_id,
            "email": user.email if user else None,
            "name": str(user) if user else None,
            "is_staff": caller.is_staff,
            "scopes": sorted(caller.scopes),
            "key_id": caller.key_id,
            "currency": settings.CURRENCY,
            "default_team": next(team for team in teams if team.id == caller.default_team_id),
            "teams": [
                {"id": team.id, "name": team.name, "is_personal": team.is_personal, "role": roles[team.id]}
                for team in teams
            ],
        }
        return Response(self.Output(answer).data)


class ModelsView(APIView):
    """Models I may use, the preferred first."""

    class Output(serializers.Serializer[Any]):
        class Price(serializers.Serializer[Any]):
            component = serializers.CharField(help_text="input, output, cache_read, …")
            price = MoneyField()
            per_units = serializers.IntegerField()
            min_prompt_tokens = serializers.IntegerField(help_text="Prompt size from which this rate holds.")

            class Meta:
                ref_name = "ModelRate"

        id = serializers.CharField(help_text="Send it as `model`.")
        name = serializers.CharField()
        context_window = serializers.IntegerField(
            allow_null=True, help_text="Tokens of input and output together."
        )
        max_output_tokens = serializers.IntegerField()
        price = Price(many=True, allow_null=True, help_text="Null: not known, which is not free.")
        ttft_ms = serializers.FloatField(allow_null=True, help_text="Median of the last turns here.")
        tokens_per_second = serializers.FloatField(
            allow_null=True, help_text="Median of the last turns here."
        )
        region = serializers.CharField(allow_null=True)
        clearance = serializers.CharField(help_text="The highest privacy level it may see.")
        leaves_premises = serializers.BooleanField()
        is_demonstration = serializers.BooleanField()
        tokenizer = serializers.CharField()
        status = serializers.CharField(
            allow_null=True, help_text="up or failing, by its last turn within ten minutes; null: no turn."
        )

        class Meta:
            ref_name = "Model"

    @extend_schema(operation_id="models_list", responses={200: listed(Output, "Model"), **refusals()})
    def get(self, request: Request) -> Response:
        return whole(self.Output(model_cards(models_for(caller_of(request))), many=True).data)


class LimitsView(APIView):
    """Every limit on my way, as it stands now."""

    class Query(serializers.Serializer[Any]):
        team = serializers.UUIDField(required=False)

    class Output(serializers.Serializer[Any]):
        scope = serializers.ChoiceField(choices=["installation", "team", "allowance", "person", "key"])
        name = serializers.CharField()
        unit = serializers.ChoiceField(choices=["money", "tokens", "requests", "bytes", "pages"])
        period = serializers.ChoiceField(choices=["day", "week", "month", "lifetime"])
        limit = serializers.CharField(help_text="Exact decimal; money in the installation's currency.")
        spent = serializers.CharField()
        held = serializers.CharField(help_text="Reserved by calls that run now.")
        remaining = serializers.CharField()
        resets_at = serializers.DateTimeField(allow_null=True)
        hard = serializers.BooleanField(help_text="Whether a call that does not fit is refused.")
        model = serializers.CharField(
            allow_null=True, source="price_key", help_text="Set when it counts one model."
        )

        class Meta:
            ref_name = "Limit"

    @extend_schema(
        operation_id="limits_list",
        parameters=[OpenApiParameter("team", str, description="Another paying team of mine.")],
        responses={200: listed(Output, "Limit"), **refusals(404, 422)},
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        team = team_of(caller, given(self.Query, request.query_params).get("team"))
        payer = Payer(
            team_id=team.id, account_id=caller.account_id, user_id=caller.user_id, key_id=caller.key_id
        )
        limits = [*limits_remaining(payer), *stored_limits(caller, team.id, payer)]
        return whole([self.Output(_shown(limit)).data for limit in limits])


def _shown(limit: LimitState) -> dict[str, Any]:
    """A limit with its amounts as decimal text."""
    amounts = {name: f"{getattr(limit, name):f}" for name in ("limit", "spent", "held", "remaining")}
    rest = {
        n: getattr(limit, n) for n in ("scope", "name", "unit", "period", "resets_at", "hard", "price_key")
    }
    return amounts | rest
