from django.urls import path

from app.chat.views import AssistantsView, ChatView, DocumentsView, DocumentView

app_name = "chat"
urlpatterns = [
    path("", ChatView.as_view(), name="home"),
    path("c/<uuid:conversation_id>/", ChatView.as_view(), name="conversation"),
    path("assistants/", AssistantsView.as_view(), name="assistants"),
    path("documents/", DocumentsView.as_view(), name="documents"),
    path("documents/<uuid:document_id>/", DocumentView.as_view(), name="document"),
]
