"""Routes of the REST tier. Those of `app.api.stream` (precount, turns, events, stop, /v1) never come here."""

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, path, re_path
from rest_framework.views import APIView

from app.api.views.account import LimitsView, MeView, ModelsView
from app.api.views.assistants import AssistantsView, AssistantView
from app.api.views.attachments import AttachmentsView
from app.api.views.budgets import BudgetsView, BudgetView
from app.api.views.collections import CollectionsView, CollectionView, GrantsView
from app.api.views.conversations import ConversationsView, ConversationView, MessagesView
from app.api.views.documents import (
    DocumentFileView,
    DocumentsView,
    DocumentTextView,
    DocumentView,
)
from app.api.views.erasing import CollectionEraseView, DocumentEraseView, ReceiptView
from app.api.views.exports import ExportView
from app.api.views.ingestion import DocumentCancelView, DocumentRereadView, DocumentRetryView
from app.api.views.keys import KeysView, KeyView
from app.api.views.limits import LimitRequestDecisionView, LimitRequestsView
from app.api.views.messages import FeedbackView, SourcesView, TurnView
from app.api.views.pages import PagePictureView, PageView
from app.api.views.previews import PreviewView
from app.api.views.search import SearchView
from app.api.views.shares import ConversationSharesView, SharedMessagesView, SharesView, ShareView
from app.api.views.statements import StatementCsvView, StatementsView, StatementView
from app.api.views.system import DocsView, NowhereView, SchemaView, healthz, metrics, readyz
from app.api.views.teams import MyTeamView
from app.api.views.usage import UsageView
from app.api.views.webhooks import WebhooksView, WebhookTestView, WebhookView

BASE = "api/v1/"


def both(route: str, view: type[APIView], name: str) -> list[URLPattern]:
    """A route with and without its last slash; the schema shows the first."""
    return [
        path(f"{BASE}{route}/", view.as_view(), name=name),
        path(f"{BASE}{route}", view.as_view(schema=None), name=f"{name}-bare"),
    ]


def plain(route: str, view: Callable[..., Any]) -> list[URLPattern]:
    """A route outside the API, in both slash forms."""
    return [path(route, view, name=route), path(f"{route}/", view, name=f"{route}-slash")]


urlpatterns = [
    *plain("healthz", healthz),
    *plain("readyz", readyz),
    *plain("metrics", metrics),
    *both("me", MeView, "me"),
    *both("me/teams/<uuid:team_id>", MyTeamView, "my-team"),
    *both("models", ModelsView, "models"),
    *both("limits", LimitsView, "limits"),
    *both("budgets", BudgetsView, "budgets"),
    *both("budgets/<uuid:budget_id>", BudgetView, "budget"),
    *both("limit-requests", LimitRequestsView, "limit-requests"),
    *both("limit-requests/<uuid:request_id>/decide", LimitRequestDecisionView, "limit-request-decide"),
    *both("collections", CollectionsView, "collections"),
    *both("collections/<uuid:collection_id>", CollectionView, "collection"),
    *both("collections/<uuid:collection_id>/documents", DocumentsView, "collection-documents"),
    *both("collections/<uuid:collection_id>/grants", GrantsView, "collection-grants"),
    *both("documents/<uuid:document_id>", DocumentView, "document"),
    *both("documents/<uuid:document_id>/text", DocumentTextView, "document-text"),
    *both("documents/<uuid:document_id>/pages/<int:number>", PageView, "document-page"),
    path(
        f"{BASE}documents/<uuid:document_id>/pages/<int:number>.webp",
        PagePictureView.as_view(),
        name="document-page-picture",
    ),
    *both("documents/<uuid:document_id>/file", DocumentFileView, "document-file"),
    *both("documents/<uuid:document_id>/retry", DocumentRetryView, "document-retry"),
    *both("documents/<uuid:document_id>/cancel", DocumentCancelView, "document-cancel"),
    *both("documents/<uuid:document_id>/preview", PreviewView, "document-preview"),
    *both("documents/<uuid:document_id>/reread", DocumentRereadView, "document-reread"),
    *both("documents/<uuid:document_id>/erase", DocumentEraseView, "document-erase"),
    *both("collections/<uuid:collection_id>/erase", CollectionEraseView, "collection-erase"),
    *both("receipts/<str:number>", ReceiptView, "receipt"),
    *both("assistants", AssistantsView, "assistants"),
    *both("assistants/<uuid:assistant_id>", AssistantView, "assistant"),
    *both("search", SearchView, "search"),
    *both("conversations", ConversationsView, "conversations"),
    *both("conversations/<uuid:conversation_id>", ConversationView, "conversation"),
    *both("conversations/<uuid:conversation_id>/messages", MessagesView, "conversation-messages"),
    *both("conversations/<uuid:conversation_id>/attachments", AttachmentsView, "conversation-attachments"),
    *both("conversations/<uuid:conversation_id>/export", ExportView, "conversation-export"),
    *both("conversations/<uuid:conversation_id>/shares", ConversationSharesView, "conversation-shares"),
    *both("shares", SharesView, "shares"),
    *both("shares/<uuid:share_id>", ShareView, "share"),
    *both("shares/<uuid:share_id>/messages", SharedMessagesView, "share-messages"),
    *both("turns/<uuid:turn_id>", TurnView, "turn"),
    *both("turns/<uuid:turn_id>/sources", SourcesView, "turn-sources"),
    *both("turns/<uuid:turn_id>/feedback", FeedbackView, "turn-feedback"),
    *both("usage", UsageView, "usage"),
    *both("statements", StatementsView, "statements"),
    *both("statements/<uuid:statement_id>", StatementView, "statement"),
    *both("statements/<uuid:statement_id>/csv", StatementCsvView, "statement-csv"),
    *both("keys", KeysView, "keys"),
    *both("keys/<uuid:key_id>", KeyView, "key"),
    *both("webhooks", WebhooksView, "webhooks"),
    *both("webhooks/<uuid:webhook_id>", WebhookView, "webhook"),
    *both("webhooks/<uuid:webhook_id>/test", WebhookTestView, "webhook-test"),
    *both("schema", SchemaView, "schema"),
    *both("docs", DocsView, "docs"),
    # Any path at all: a line break in it, too.
    re_path(r"^api(/[\s\S]*)?\Z", NowhereView.as_view()),
]
