"""budgets/: limits that are mine to set, within what staff granted."""

from typing import Any, get_args
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import team_get
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import listed, whole
from app.api.serializers import body, given, refusals
from app.billing.budget_rights import (
    Wish,
    budget_drop,
    budget_get,
    budget_wish,
    budgets_of,
    may_drop,
    may_set,
)
from app.billing.naming import ids_of, whom
from app.billing.types import Period, Unit

SCOPES = ("installation", "team", "allowance", "person", "key")


class BudgetOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    scope = serializers.ChoiceField(choices=SCOPES)
    covers = serializers.SerializerMethodField()
    team = serializers.SerializerMethodField()
    person = serializers.SerializerMethodField()
    key = serializers.SerializerMethodField()
    name = serializers.CharField()
    unit = serializers.ChoiceField(choices=get_args(Unit))
    limit = serializers.SerializerMethodField()
    period = serializers.ChoiceField(choices=get_args(Period))
    zone = serializers.CharField(help_text="Periods begin at its midnight.")
    model = serializers.SerializerMethodField()
    hard = serializers.BooleanField(help_text="Whether a call that does not fit is refused.")
    granted = serializers.SerializerMethodField()
    mine_to_set = serializers.SerializerMethodField()
    mine_to_remove = serializers.SerializerMethodField()

    class Meta:
        ref_name = "BudgetInForce"

    def get_covers(self, row: Any) -> str:
        """Whose limit it is, in words."""
        return whom(row.subject)

    def get_team(self, row: Any) -> str | None:
        """Null: every team, or none."""
        return self._id(row, "team_id")

    def get_person(self, row: Any) -> str | None:
        """An account, as `usage/?group_by=person` names it; null: everybody, or nobody."""
        return self._id(row, "account_id")

    def get_key(self, row: Any) -> str | None:
        return self._id(row, "key_id")

    def get_limit(self, row: Any) -> str:
        """Exact decimal; money in the installation's currency."""
        return f"{row.limit.normalize():f}"

    def get_model(self, row: Any) -> str | None:
        """Set when it counts one model."""
        return row.price_key or None

    def get_granted(self, row: Any) -> str | None:
        """The most that whoever is no staff may set; null: nothing was said."""
        return None if row.ceiling is None else f"{row.ceiling.normalize():f}"

    def get_mine_to_set(self, row: Any) -> bool:
        return may_set(self.context["caller"], row.subject)

    def get_mine_to_remove(self, row: Any) -> bool:
        return may_drop(self.context["caller"], row)

    def _id(self, row: Any, name: str) -> str | None:
        found = ids_of(row.subject).get(name)
        return None if found is None else str(found)


def _shown(request: Request, row: Any, *, many: bool = False) -> Any:
    return BudgetOutput(row, many=many, context={"caller": caller_of(request)}).data


class BudgetsView(APIView):
    """Limits that are mine to set, and the defaults they stand on."""

    class Query(serializers.Serializer[Any]):
        team = serializers.UUIDField(required=False)

    class Input(serializers.Serializer[Any]):
        scope = serializers.ChoiceField(choices=SCOPES)
        unit = serializers.ChoiceField(choices=get_args(Unit))
        limit = serializers.DecimalField(
            max_digits=28, decimal_places=15, min_value=0, help_text="0 is nothing."
        )
        period = serializers.ChoiceField(
            choices=get_args(Period), help_text="`lifetime` for bytes and pages."
        )
        team = serializers.UUIDField(
            required=False,
            source="team_id",
            help_text="For team and allowance; left out, by staff: the default.",
        )
        person = serializers.UUIDField(
            required=False, source="account_id", help_text="For allowance and person; left out: the default."
        )
        key = serializers.UUIDField(required=False, source="key_id", help_text="For key.")
        model = serializers.CharField(
            required=False, source="price_key", max_length=200, help_text="Count this model alone."
        )
        name = serializers.CharField(required=False, allow_blank=True, max_length=200)
        hard = serializers.BooleanField(required=False, default=True)

        class Meta:
            ref_name = "BudgetSet"

    @extend_schema(
        operation_id="budgets_list",
        parameters=[OpenApiParameter("team", str, description="Of this team alone.")],
        responses={200: listed(BudgetOutput, "BudgetInForce"), **refusals(403, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("usage")
        team = given(self.Query, request.query_params).get("team")
        if team is not None and not caller.is_staff:
            caller.require_manager(team)
        return whole(_shown(request, budgets_of(caller, team_id=team), many=True))

    @extend_schema(
        operation_id="budgets_set",
        request=Input,
        parameters=[PARAMETER],
        responses={201: BudgetOutput, **refusals(400, 403, 404, 422)},
        description="The same subject, unit, model and period again changes the limit that is there, at once.",
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        wish = Wish(**body(self.Input, request))
        if caller.is_staff and wish.team_id is not None:
            team_get(wish.team_id)
        row = budget_wish(caller=caller, wish=wish)
        return Response(_shown(request, row), status=201, headers={"Location": f"/api/v1/budgets/{row.id}/"})


class BudgetView(APIView):
    """One limit."""

    @extend_schema(operation_id="budgets_get", responses={200: BudgetOutput, **refusals(403, 404)})
    def get(self, request: Request, budget_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("usage")
        return Response(_shown(request, budget_get(caller=caller, budget_id=budget_id)))

    @extend_schema(operation_id="budgets_remove", responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, budget_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        budget_drop(caller=caller, budget_id=budget_id)
        return Response(status=204)
