"""Saved assistants: a prompt, a model, collections and a level under one name."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.models import Level
from app.accounts.selectors import Caller
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import listed, whole
from app.api.serializers import TeamRefSerializer, body, refusals
from app.chat.assistants import (
    MOST_PROMPT_CHARS,
    PREFIX,
    assistant_create,
    assistant_delete,
    assistant_get,
    assistant_may_change,
    assistant_update,
    assistants_of,
)
from app.chat.models import Assistant


class AssistantOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    slug = serializers.CharField()
    model_name = serializers.CharField(help_text="What `/v1` knows it as.")
    description = serializers.CharField()
    prompt = serializers.CharField()
    model = serializers.CharField()
    collections = serializers.ListField(child=serializers.UUIDField())
    level = serializers.ChoiceField(choices=Level.values)
    team = TeamRefSerializer(help_text="Its owner.")
    shared_with = TeamRefSerializer(many=True, help_text="Teams that may use it besides.")
    may_change = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Assistant"


class AssistantFields(serializers.Serializer[Any]):
    slug = serializers.SlugField(max_length=60, required=False, help_text="Default: from the name.")
    description = serializers.CharField(max_length=200, allow_blank=True, required=False)
    prompt = serializers.CharField(
        max_length=MOST_PROMPT_CHARS, allow_blank=True, trim_whitespace=False, required=False
    )
    collections = serializers.ListField(child=serializers.UUIDField(), max_length=100, required=False)
    level = serializers.ChoiceField(choices=Level.values, required=False)
    shared_with = serializers.ListField(
        child=serializers.UUIDField(), max_length=100, required=False, help_text="Teams of mine."
    )


def _shown(caller: Caller, rows: list[Assistant]) -> list[dict[str, Any]]:
    names = (
        "id", "name", "slug", "description", "prompt", "model", "collections", "level", "team", "created_at",
        "updated_at",
    )  # fmt: skip
    return [
        {name: getattr(row, name) for name in names}
        | {
            "model_name": f"{PREFIX}{row.slug}",
            "shared_with": row.shared_with.all(),
            "may_change": assistant_may_change(caller, row),
        }
        for row in rows
    ]


def _one(caller: Caller, row: Assistant) -> dict[str, Any]:
    return dict(AssistantOutput(_shown(caller, [row])[0]).data)


class AssistantsView(APIView):
    """Assistants that I may use."""

    class Input(AssistantFields):
        name = serializers.CharField(max_length=80)
        model = serializers.CharField(max_length=100)
        team = serializers.UUIDField(required=False, help_text="Its owner; default: my default team.")

        class Meta:
            ref_name = "AssistantCreate"

    @extend_schema(
        operation_id="assistants_list",
        responses={200: listed(AssistantOutput, "Assistant"), **refusals(403)},
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return whole(AssistantOutput(_shown(caller, list(assistants_of(caller))), many=True).data)

    @extend_schema(
        operation_id="assistants_create",
        request=Input,
        parameters=[PARAMETER],
        responses={201: AssistantOutput, **refusals(400, 403, 404, 409, 422)},
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("chat")
        row = assistant_create(caller=caller, **body(self.Input, request))
        return Response(_one(caller, row), status=201, headers={"Location": f"/api/v1/assistants/{row.id}/"})


class AssistantView(APIView):
    """One assistant."""

    class Input(AssistantFields):
        name = serializers.CharField(max_length=80, required=False)
        model = serializers.CharField(max_length=100, required=False)

        class Meta:
            ref_name = "AssistantPatch"

    @extend_schema(operation_id="assistants_get", responses={200: AssistantOutput, **refusals(403, 404)})
    def get(self, request: Request, assistant_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return Response(_one(caller, assistant_get(caller, assistant_id)))

    @extend_schema(
        operation_id="assistants_update",
        request=Input,
        responses={200: AssistantOutput, **refusals(400, 403, 404, 409, 422)},
    )
    def patch(self, request: Request, assistant_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("chat")
        row = assistant_get(caller, assistant_id)
        return Response(
            _one(caller, assistant_update(caller=caller, assistant=row, changes=body(self.Input, request)))
        )

    @extend_schema(operation_id="assistants_delete", responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, assistant_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("chat")
        assistant_delete(caller=caller, assistant=assistant_get(caller, assistant_id))
        return Response(status=204)
