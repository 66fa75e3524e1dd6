"""Links to conversations: made and taken back by the owner, read by who is signed in."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from app.api.authentication import caller_of
from app.api.idempotency import PARAMETER, idempotent
from app.api.paging import PARAMETERS, limit_of, listed, rows_of, whole
from app.api.serializers import TeamRefSerializer, body, refusals
from app.api.views.messages import SourceOutput
from app.chat.models import Audience, TurnState
from app.chat.selectors import conversation_get
from app.chat.sharing import (
    share_change,
    share_create,
    share_get,
    share_open,
    share_revoke,
    share_url,
    shared_messages,
    shared_turns,
    shares_of,
)


class ShareInput(serializers.Serializer[Any]):
    audience = serializers.ChoiceField(
        choices=Audience.values, required=False, help_text="Everyone who is signed in, or the team alone."
    )
    expires_at = serializers.DateTimeField(allow_null=True, required=False)


class ShareOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    url = serializers.SerializerMethodField()
    conversation_id = serializers.UUIDField()
    title = serializers.CharField(source="conversation.title")
    turn_id = serializers.UUIDField(source="leaf_id", help_text="The last turn that it shows.")
    audience = serializers.ChoiceField(choices=Audience.values)
    team = TeamRefSerializer(source="conversation.team")
    expires_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Share"

    def get_url(self, row: Any) -> str:
        """The page that readers open."""
        return share_url(row)


class SharedOutput(serializers.Serializer[Any]):
    """A shared conversation as its reader sees it."""

    id = serializers.UUIDField()
    title = serializers.CharField(source="conversation.title")
    shared_by = serializers.SerializerMethodField()
    audience = serializers.ChoiceField(choices=Audience.values)
    expires_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "SharedConversation"

    def get_shared_by(self, row: Any) -> str:
        """The owner's name, or the team's for what a key of a team made."""
        return str(row.conversation.owner or row.conversation.team)


class QuoteOutput(serializers.Serializer[Any]):
    n = serializers.IntegerField()
    text = serializers.CharField()

    class Meta:
        ref_name = "SharedQuote"


class SharedMessageOutput(serializers.Serializer[Any]):
    id = serializers.CharField()
    turn_id = serializers.UUIDField()
    parent_id = serializers.CharField(allow_null=True)
    role = serializers.ChoiceField(choices=["user", "assistant"])
    text = serializers.CharField()
    state = serializers.ChoiceField(choices=TurnState.values)
    model = serializers.CharField(allow_null=True)
    sources = SourceOutput(many=True, help_text="Those that the reader may read now.")
    hidden_passages = serializers.IntegerField(help_text="Sent to the model, but not for this reader.")
    quotes = QuoteOutput(many=True)
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "SharedMessage"


class ConversationSharesView(APIView):
    """Links to one conversation of mine."""

    class Input(ShareInput):
        turn = serializers.UUIDField(required=False, help_text="The last to be shown; default: the newest.")

        class Meta:
            ref_name = "ShareCreate"

    @extend_schema(
        operation_id="conversation_shares_list",
        responses={200: listed(ShareOutput, "Share"), **refusals(403, 404)},
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        row = conversation_get(caller, conversation_id)
        rows = shares_of(caller).filter(conversation=row).order_by("-created_at")
        return whole(ShareOutput(rows, many=True).data)

    @extend_schema(
        operation_id="conversation_shares_create",
        request=Input,
        parameters=[PARAMETER],
        responses={201: ShareOutput, **refusals(400, 403, 404, 422)},
        description="Readers see the branch up to `turn`, what is asked later not. A passage is shown only to readers "
        "who may read its document at that moment.",
    )
    @idempotent()
    def post(self, request: Request, conversation_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        row = conversation_get(caller, conversation_id)
        share = share_create(conversation=row, **body(self.Input, request))
        return Response(
            ShareOutput(share).data, status=201, headers={"Location": f"/api/v1/shares/{share.id}/"}
        )


class SharesView(APIView):
    """My links, newest first."""

    @extend_schema(
        operation_id="shares_list",
        responses={200: listed(ShareOutput, "Share"), **refusals(403)},
    )
    def get(self, request: Request) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return whole(ShareOutput(shares_of(caller).order_by("-created_at")[:1000], many=True).data)


class ShareView(APIView):
    """One link: read by whom it is for, changed and taken back by its owner."""

    class Input(ShareInput):
        class Meta:
            ref_name = "SharePatch"

    @extend_schema(operation_id="shares_get", responses={200: SharedOutput, **refusals(403, 404)})
    def get(self, request: Request, share_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        return Response(SharedOutput(share_open(caller, share_id)).data)

    @extend_schema(
        operation_id="shares_update",
        request=Input,
        responses={200: ShareOutput, **refusals(400, 403, 404, 422)},
    )
    def patch(self, request: Request, share_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        share = share_change(share=share_get(caller, share_id), changes=body(self.Input, request))
        return Response(ShareOutput(share).data)

    @extend_schema(operation_id="shares_revoke", responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, share_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("write")
        share_revoke(share=share_get(caller, share_id))
        return Response(status=204)


class SharedMessagesView(APIView):
    """The messages of a shared conversation, newest first, in pages of whole turns."""

    @extend_schema(
        operation_id="shares_messages",
        parameters=PARAMETERS,
        responses={200: listed(SharedMessageOutput, "SharedMessage"), **refusals(403, 404, 422)},
    )
    def get(self, request: Request, share_id: UUID) -> Response:
        caller = caller_of(request)
        caller.require_scope("read")
        turns = shared_turns(share_open(caller, share_id))
        found, following = rows_of(request, turns, max(1, limit_of(request) // 2))
        items = SharedMessageOutput(shared_messages(caller, found), many=True).data
        return Response({"items": items, "next": following})
