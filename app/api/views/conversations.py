"""Conversations and their messages. Turns are streamed by `app.api.stream`."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.accounts.models import Level
from app.accounts.selectors import principal_of
from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import PARAMETERS, limit_of, listed, rows_by_time, rows_of
from app.api.serializers import TeamRefSerializer, body, given, refusals
from app.api.views.messages import MessageOutput
from app.chat.finding import Match, conversations_found, matches_of
from app.chat.messages import messages_of
from app.chat.selectors import conversation_get, conversations_of, turns_in
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
    assistant = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="Brings its prompt, and what is not said besides. Null: none.",
    )
    level = serializers.ChoiceField(choices=Level.values, required=False, help_text="Never lowered.")


class ConversationOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.SerializerMethodField()
    team = TeamRefSerializer(help_text="Pays for its turns.")
    model = serializers.CharField()
    assistant = serializers.UUIDField(source="assistant_id", allow_null=True)
    collections = serializers.ListField(child=serializers.UUIDField())
    level = serializers.ChoiceField(choices=Level.values)
    pinned = serializers.BooleanField()
    archived = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(help_text="When it was begun, or last asked in.")

    class Meta:
        ref_name = "Conversation"

    def get_title(self, row: Any) -> str:
        """The title, else the beginning of the first question, else the name of the first file."""
        shown = (getattr(row, name, None) for name in ("first_question", "first_file"))
        return row.title or " ".join(next(filter(None, shown), "").split())


class PieceOutput(serializers.Serializer[Any]):
    text = serializers.CharField()
    hit = serializers.BooleanField()

    class Meta:
        ref_name = "SnippetPiece"


class MatchOutput(serializers.Serializer[Any]):
    where = serializers.ChoiceField(choices=["title", "question", "answer"])
    turn_id = serializers.UUIDField(allow_null=True)
    snippet = PieceOutput(many=True, help_text="The words around the first hit, in order.")

    class Meta:
        ref_name = "ConversationMatch"


class ListedOutput(ConversationOutput):
    match = MatchOutput(allow_null=True, help_text="Where `q` was found; null without `q`.")

    class Meta:
        ref_name = "ConversationListed"


class ConversationsView(APIView):
    """My conversations."""

    class Query(serializers.Serializer[Any]):
        archived = serializers.BooleanField(required=False, allow_null=True, default=None)
        pinned = serializers.BooleanField(required=False, allow_null=True, default=None)
        team = serializers.UUIDField(required=False)
        q = serializers.CharField(max_length=500, required=False, allow_blank=True)
        sort = serializers.ChoiceField(choices=["created", "updated"], default="created")

    class Input(ConversationInput):
        team = serializers.UUIDField(required=False, help_text="Who pays; default: my default team.")

        class Meta:
            ref_name = "ConversationCreate"

    @extend_schema(
        operation_id="conversations_list",
        parameters=[
            *PARAMETERS,
            OpenApiParameter("archived", bool, description="Only these, or only the others."),
            OpenApiParameter("pinned", bool, description="Only these, or only the others."),
            OpenApiParameter("team", UUID, description="Only those that this team pays for."),
            OpenApiParameter(
                "q", str, description="Words of the title, or of one question with its answer; beginnings do."
            ),
            OpenApiParameter("sort", str, enum=["created", "updated"], description="Newest first by this."),
        ],
        responses={200: listed(ListedOutput, "Conversation"), **refusals(403, 422)},
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        query = given(self.Query, request.query_params.dict())
        rows = conversations_of(caller).filter(**_conditions(query))
        text = query.get("q", "").strip()
        if text:
            rows = conversations_found(caller, rows, text)
        by = rows_by_time if query["sort"] == "updated" else rows_of
        found, following = by(request, rows, limit_of(request))
        matches = matches_of(caller, found, text) if text else {}
        for row in found:
            row.match = _match(matches.get(row.id))  # type: ignore[attr-defined]
        return Response({"items": ListedOutput(found, many=True).data, "next": following})

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


def _conditions(query: Mapping[str, Any]) -> dict[str, Any]:
    names = {"archived": "archived", "pinned": "pinned", "team": "team_id"}
    return {field: query[name] for name, field in names.items() if query.get(name) is not None}


def _match(match: Match | None) -> dict[str, Any] | None:
    if match is None:
        return None
    pieces = [{"text": text, "hit": hit} for text, hit in match.snippet]
    return {"where": match.where, "turn_id": match.turn_id, "snippet": pieces}


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
        row = conversation_get(caller, conversation_id)
        conversation_delete(conversation=row, done_by=principal_of(caller))
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
