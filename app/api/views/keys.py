"""API keys: made once, shown once, kept as a hash."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.selectors import ALL_SCOPES, key_get, keys_of
from app.accounts.services import key_revoke
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.keys import key_change, key_issue
from app.api.paging import listed, whole
from app.api.serializers import body, refusals
from app.common.addresses import network_of

SCOPES = [*ALL_SCOPES, "staff"]


class BudgetSerializer(serializers.Serializer[Any]):
    """A hard limit on what the key may use in each period."""

    unit = serializers.ChoiceField(choices=["money", "tokens", "requests"])
    limit = serializers.DecimalField(max_digits=20, decimal_places=8, min_value=0)
    period = serializers.ChoiceField(choices=["day", "week", "month", "lifetime"])


class NetworkField(serializers.CharField):
    """An address or a network in CIDR form, kept in its one form."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            return str(network_of(text))
        except ValueError as exc:
            raise serializers.ValidationError(
                "Not an address or a network, such as 203.0.113.7 or 2001:db8::/32."
            ) from exc


class KeyInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=200)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=SCOPES), allow_empty=False, required=False
    )
    models = serializers.ListField(
        child=serializers.CharField(max_length=100), allow_null=True, required=False
    )
    expires_at = serializers.DateTimeField(allow_null=True, required=False)
    budget = BudgetSerializer(allow_null=True, required=False)
    networks = serializers.ListField(
        child=NetworkField(max_length=50), max_length=50, required=False,
        help_text="Addresses it may be used from, in CIDR form; empty for any.",
    )  # fmt: skip
    cost_centre = serializers.CharField(
        max_length=60, allow_blank=True, required=False,
        help_text="What finance books its use under, in place of the team's. Set by an admin of the team.",
    )  # fmt: skip


class KeyOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="The first characters, to tell keys apart.")
    kind = serializers.SerializerMethodField()
    team_id = serializers.UUIDField(help_text="Pays for what the key does.")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=SCOPES))
    models = serializers.ListField(child=serializers.CharField(), allow_null=True, source="models_allowed")
    networks = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    budget = serializers.DictField(allow_null=True)
    cost_centre = serializers.CharField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Key"

    def get_kind(self, row: Any) -> str:
        """personal: acts for a person; team: for the team alone."""
        return "personal" if row.user_id else "team"


class KeysView(APIView):
    """My keys, and those of teams I administer."""

    class Input(KeyInput):
        team = serializers.UUIDField(required=False, help_text="Who pays; default: my default team.")
        kind = serializers.ChoiceField(choices=["personal", "team"], default="personal")

        class Meta:
            ref_name = "KeyCreate"

    class Output(KeyOutput):
        key = serializers.CharField(help_text="The key itself: shown now and never again.")

        class Meta:
            ref_name = "KeyIssued"

    @extend_schema(operation_id="keys_list", responses={200: listed(KeyOutput, "Key"), **refusals(403)})
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return whole(KeyOutput(keys_of(caller), many=True).data)

    @extend_schema(
        operation_id="keys_create",
        request=Input,
        parameters=[PARAMETER],
        responses={201: Output, **refusals(400, 403, 404, 422)},
    )
    @idempotent(sealed=True)
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        row, plain = key_issue(caller=caller, **body(self.Input, request))
        return Response(
            KeyOutput(row).data | {"key": plain}, status=201, headers={"Location": f"/api/v1/keys/{row.id}/"}
        )


class KeyView(APIView):
    """One key."""

    class Input(KeyInput):
        name = serializers.CharField(max_length=200, required=False)

        class Meta:
            ref_name = "KeyPatch"

    @extend_schema(operation_id="keys_get", responses={200: KeyOutput, **refusals(403, 404)})
    def get(self, request: Request, key_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return Response(KeyOutput(key_get(caller, key_id)).data)

    @extend_schema(
        operation_id="keys_update", request=Input, responses={200: KeyOutput, **refusals(400, 403, 404, 422)}
    )
    def patch(self, request: Request, key_id: UUID) -> Response:
        caller = caller_of(request)
        key = key_get(caller, key_id)
        return Response(KeyOutput(key_change(caller=caller, key=key, **body(self.Input, request))).data)

    @extend_schema(operation_id="keys_revoke", responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, key_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        key_revoke(key=key_get(caller, key_id))
        return Response(status=204)
