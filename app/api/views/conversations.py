"""Conversations and their messages. Turns are streamed by `app.api.stream`."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.models import Level
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import PARAMETERS, limit_of, listed, page, rows_of
from app.api.serializers import TeamRefSerializer, body, given, refusals
from app.api.views.messages import MessageOutput
from app.chat.selectors import conversation_get, conversations_of, messages_of, turns_in
from app.chat.services import conversation_create, conversation_delete, conversation_update


class ConversationInput(serializers.Serializer[Any]):
    title = serializers.CharField(max_length=200, allow_blank=True, required=False)
    model = serializers.CharField(max_length=100, allow_blank=True, required=False)
    collections = serializers.ListField(
        child=serializers.UUIDField(),
        max_length=100,
        required=False,
        help_text="Searched unless a turn names others.",
    )
    level = serializers.ChoiceField(choices=Level.values, required=False, help_text="Never lowered.")


class ConversationOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.SerializerMethodField()
    team = TeamRefSerializer(help_text="Pays for its turns.")
    model = serializers.CharField()
    collections = serializers.ListField(child=serializers.UUIDField())
    level = serializers.ChoiceField(choices=Level.values)
    pinned = serializers.BooleanField()
    archived = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Conversation"

    def get_title(self, row: Any) -> str:
        """The title, else the beginning of the first question."""
        return row.title or " ".join((getattr(row, "first_question", None) or "").split())


class ConversationsView(APIView):
    """My conversations."""

    class Query(serializers.Serializer[Any]):
        archived = serializers.BooleanField(required=False, allow_null=True, default=None)

    class Input(ConversationInput):
        team = serializers.UUIDField(required=False, help_text="Who pays; default: my default team.")

        class Meta:
            ref_name = "ConversationCreate"

    @extend_schema(
        operation_id="conversations_list",
        parameters=[
            *PARAMETERS,
            OpenApiParameter("archived", bool, description="Only these, or only the others."),
        ],
        responses={200: listed(ConversationOutput, "Conversation"), **refusals(403, 422)},
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        archived = given(self.Query, request.query_params.dict())["archived"]
        rows = conversations_of(caller)
        rows = rows if archived is None else rows.filter(archived=archived)
        return page(request, rows, lambda found: ConversationOutput(found, many=True).data)

    @extend_schema(
        operation_id="conversations_create",
        request=Input,
        parameters=[PARAMETER],
        responses={201: ConversationOutput, **refusals(400, 403, 404, 422)},
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("chat")
        row = conversation_create(caller=caller, **body(self.Input, request))
        location = {"Location": f"/api/v1/conversations/{row.id}/"}
        return Response(ConversationOutput(row).data, status=201, headers=location)


class ConversationView(APIView):
    """One conversation of mine."""

    class Input(ConversationInput):
        pinned = serializers.BooleanField(required=False)
        archived = serializers.BooleanField(required=False)

        class Meta:
            ref_name = "ConversationPatch"

    @extend_schema(
        operation_id="conversations_get", responses={200: ConversationOutput, **refusals(403, 404)}
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return Response(ConversationOutput(conversation_get(caller, conversation_id)).data)

    @extend_schema(
        operation_id="conversations_update",
        request=Input,
        responses={200: ConversationOutput, **refusals(400, 403, 404, 422)},
    )
    def patch(self, request: Request, conversation_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("chat")
        row = conversation_get(caller, conversation_id)
        changes = body(self.Input, request)
        return Response(
            ConversationOutput(conversation_update(caller=caller, conversation=row, changes=changes)).data
        )

    @extend_schema(operation_id="conversations_delete", responses={204: None, **refusals(403, 404, 409)})
    def delete(self, request: Request, conversation_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("chat")
        conversation_delete(conversation=conversation_get(caller, conversation_id))
        return Response(status=204)


class MessagesView(APIView):
    """Two messages for each turn, newest first. A page holds whole turns, so `limit` counts messages by pairs."""

    @extend_schema(
        operation_id="messages_list",
        parameters=PARAMETERS,
        responses={200: listed(MessageOutput, "Message"), **refusals(403, 404, 422)},
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        conversation = conversation_get(caller, conversation_id)
        turns, following = rows_of(request, turns_in(conversation), max(1, limit_of(request) // 2))
        return Response(
            {"items": MessageOutput(messages_of(caller, turns), many=True).data, "next": following}
        )
