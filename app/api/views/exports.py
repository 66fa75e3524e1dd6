"""A conversation as a file."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from app.api.authentication import caller_of
from app.api.serializers import given, refusals
from app.api.views.conversations import ConversationOutput
from app.api.views.messages import MessageOutput
from app.chat.exporting import export_markdown
from app.chat.messages import messages_of
from app.chat.selectors import conversation_get, turn_get, turns_in
from app.chat.sharing import branch_ids
from app.common.clock import now

TYPES = {"markdown": ("md", "text/markdown; charset=utf-8"), "json": ("json", "application/json")}


class _FormatIsOurs(DefaultContentNegotiation):
    """`format` names the kind of file here, not one of the framework's renderers."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class ExportView(APIView):
    """Everything of a conversation that its owner may read now."""

    content_negotiation_class = _FormatIsOurs

    class Query(serializers.Serializer[Any]):
        format = serializers.ChoiceField(choices=list(TYPES), default="markdown")
        turn = serializers.UUIDField(required=False)

    class Output(serializers.Serializer[Any]):
        version = serializers.IntegerField(help_text="Of this form of file: 1.")
        exported_at = serializers.DateTimeField()
        conversation = ConversationOutput()
        messages = MessageOutput(many=True, help_text="Oldest first; `parent_id` makes the tree.")

        class Meta:
            ref_name = "ConversationExport"

    @extend_schema(
        operation_id="conversations_export",
        parameters=[
            OpenApiParameter("format", str, enum=list(TYPES), description="Default: markdown."),
            OpenApiParameter("turn", UUID, description="Only the branch that ends here; without it all."),
        ],
        responses={
            (200, "application/json"): Output,
            (200, "text/markdown"): str,
            **refusals(403, 404, 422),
        },
    )
    def get(self, request: Request, conversation_id: UUID) -> HttpResponse:
        caller = caller_of(request)
        caller.require_scope("read")
        query = given(self.Query, request.query_params.dict())
        row = conversation_get(caller, conversation_id)
        turns = turns_in(row).order_by("id")
        if turn_id := query.get("turn"):
            turn_get(caller, turn_id)
            turns = turns.filter(id__in=branch_ids(row, turn_id))
        # `messages_of` is made for lists that are newest first: the answer stands before its question.
        messages = messages_of(caller, reversed(turns))[::-1]
        at = now()
        if query["format"] == "markdown":
            content: str | bytes = export_markdown(row, messages, at)
        else:
            made = {"version": 1, "exported_at": at, "conversation": row, "messages": messages}
            content = JSONRenderer().render(self.Output(made).data)
        suffix, kind = TYPES[query["format"]]
        name = f"{slugify(row.title)[:60] or 'conversation'}.{suffix}"
        disposition = content_disposition_header(as_attachment=True, filename=name) or "attachment"
        return HttpResponse(content, content_type=kind, headers={"Content-Disposition": disposition})
