from django.urls import path

from app.chat.leaving_page import LeaveTeamView
from app.chat.views import (
    AssistantsView,
    ChatView,
    DocumentsView,
    DocumentView,
    KeysView,
    SharedView,
    SharesView,
)

app_name = "chat"
urlpatterns = [
    path("", ChatView.as_view(), name="home"),
    path("c/<uuid:conversation_id>/", ChatView.as_view(), name="conversation"),
    path("assistants/", AssistantsView.as_view(), name="assistants"),
    path("documents/", DocumentsView.as_view(), name="documents"),
    path("documents/<uuid:document_id>/", DocumentView.as_view(), name="document"),
    path("s/<uuid:share_id>/", SharedView.as_view(), name="shared"),
    path("shares/", SharesView.as_view(), name="shares"),
    path("keys/", KeysView.as_view(), name="keys"),
    path("accounts/teams/<uuid:team_id>/leave/", LeaveTeamView.as_view(), name="leave-team"),
]
