"""webhooks/: addresses that hear when jobs end."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.jobs import (
    job_webhook_change,
    job_webhook_create,
    job_webhook_end,
    job_webhook_get,
    job_webhook_test,
    job_webhooks_of,
)
from app.api.models import JobEvent
from app.api.paging import listed, whole
from app.api.serializers import body, refusals

EVENTS_HELP = "What it hears of; default: everything."


class WebhookProblem(serializers.Serializer[Any]):
    """Why an event was not taken."""

    event = serializers.CharField(source="type")
    status = serializers.IntegerField(
        source="last_status", allow_null=True, help_text="HTTP status; null without an answer."
    )
    message = serializers.CharField(source="last_error")
    next_at = serializers.DateTimeField(help_text="When it is tried again.")


class WebhookOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    url = serializers.CharField()
    kind = serializers.SerializerMethodField()
    team_id = serializers.UUIDField(allow_null=True, help_text="Whose jobs it hears of; null: your own.")
    events = serializers.ListField(child=serializers.ChoiceField(choices=JobEvent.values))
    active = serializers.BooleanField(source="open")
    waiting = serializers.IntegerField(help_text="Events that it has not taken yet.")
    given_up = serializers.IntegerField(help_text="Events that it did not take in 20 hours; kept for a week.")
    delivered = serializers.IntegerField()
    last_delivered_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Webhook"

    def get_kind(self, row: Any) -> str:
        """personal: hears of your own jobs; team: of the team's documents and of what its own keys ask."""
        return "personal" if row.user_id else "team"

    @extend_schema_field(WebhookProblem(allow_null=True))
    def get_problem(self, row: Any) -> Mapping[str, Any] | None:
        """Of the newest event that it has not taken."""
        return next((WebhookProblem(one).data for one in row.untaken), None)


class WebhooksView(APIView):
    """Mine, and those of teams I administer."""

    class Input(serializers.Serializer[Any]):
        name = serializers.CharField(max_length=100)
        url = serializers.CharField(max_length=500, help_text="https, and not in a private network.")
        events = serializers.ListField(
            child=serializers.ChoiceField(choices=JobEvent.values), allow_empty=False, required=False,
            help_text=EVENTS_HELP,
        )  # fmt: skip
        kind = serializers.ChoiceField(choices=["personal", "team"], default="personal")
        team = serializers.UUIDField(
            required=False, help_text="Of a team's webhook; default: my default team."
        )

        class Meta:
            ref_name = "WebhookCreate"

    class Output(WebhookOutput):
        secret = serializers.CharField(
            help_text="What its messages are signed with: shown now and never again."
        )

        class Meta:
            ref_name = "WebhookIssued"

    @extend_schema(
        operation_id="webhooks_list", responses={200: listed(WebhookOutput, "Webhook"), **refusals(403)}
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return whole(WebhookOutput(job_webhooks_of(caller), many=True).data)

    @extend_schema(
        operation_id="webhooks_create", request=Input, parameters=[PARAMETER],
        responses={201: Output, **refusals(400, 403, 404, 409, 422)},
    )  # fmt: skip
    @idempotent(sealed=True)
    def post(self, request: Request) -> Response:
        row, secret = job_webhook_create(caller=caller_of(request), **body(self.Input, request))
        headers = {"Location": f"/api/v1/webhooks/{row.id}/"}
        return Response(WebhookOutput(row).data | {"secret": secret}, status=201, headers=headers)


class WebhookView(APIView):
    """One webhook."""

    class Input(serializers.Serializer[Any]):
        name = serializers.CharField(max_length=100, required=False)
        url = serializers.CharField(max_length=500, required=False)
        events = serializers.ListField(
            child=serializers.ChoiceField(choices=JobEvent.values), allow_empty=False, required=False
        )
        active = serializers.BooleanField(
            required=False,
            help_text="false stops it; true begins anew and sends again what was given up.",
        )

        class Meta:
            ref_name = "WebhookPatch"

    @extend_schema(operation_id="webhooks_get", responses={200: WebhookOutput, **refusals(403, 404)})
    def get(self, request: Request, webhook_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return Response(WebhookOutput(job_webhook_get(caller, webhook_id)).data)

    @extend_schema(
        operation_id="webhooks_update", request=Input,
        responses={200: WebhookOutput, **refusals(400, 403, 404, 422)},
    )  # fmt: skip
    def patch(self, request: Request, webhook_id: UUID) -> Response:
        caller = caller_of(request)
        row = job_webhook_get(caller, webhook_id)
        changed = job_webhook_change(caller=caller, webhook=row, **body(self.Input, request))
        return Response(WebhookOutput(changed).data)

    @extend_schema(operation_id="webhooks_delete", responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        caller = caller_of(request)
        job_webhook_end(caller=caller, webhook=job_webhook_get(caller, webhook_id))
        return Response(status=204)


class WebhookTestView(APIView):
    """Whether a message arrives."""

    class Output(serializers.Serializer[Any]):
        event_id = serializers.UUIDField(help_text="Stands in the header `webhook-id`.")

        class Meta:
            ref_name = "WebhookTest"

    @extend_schema(
        operation_id="webhooks_test", request=None, parameters=[PARAMETER],
        responses={202: Output, **refusals(403, 404, 409)},
    )  # fmt: skip
    @idempotent()
    def post(self, request: Request, webhook_id: UUID) -> Response:
        caller = caller_of(request)
        event_id = job_webhook_test(caller=caller, webhook=job_webhook_get(caller, webhook_id))
        return Response({"event_id": event_id}, status=202)
