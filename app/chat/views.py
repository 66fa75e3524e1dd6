"""The pages of the chat. They carry no data of their own: the page asks the API, which checks each right."""

from typing import Any, cast

from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView

from app.accounts.models import User
from app.accounts.selectors import caller_by_user
from app.chat.sharing import share_open
from app.common.errors import NotAllowed, NotFound
from retrieval.accepted import SUFFIXES, WORDS


@method_decorator(never_cache, name="dispatch")
class PageView(LoginRequiredMixin, TemplateView):
    """A page for signed-in people; `page` is handed to its script through json_script."""

    section = ""

    def page(self) -> dict[str, str | None]:
        """What the script needs to begin: plain ids, never content."""
        return {}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The template's `section` (which link of the rail is current) and `page`."""
        return super().get_context_data(**kwargs) | {"section": self.section, "page": self.page()}


class ChatView(PageView):
    """The chat: a new conversation, or the one in the address."""

    template_name = "chat/chat.html"
    section = "chat"

    def page(self) -> dict[str, str | None]:
        """The conversation to open, as an opaque id, and what may be attached."""
        conversation_id = self.kwargs.get("conversation_id")
        return {"conversation": str(conversation_id) if conversation_id else None, "accept": SUFFIXES}


class DocumentsView(PageView):
    """Collections and their documents."""

    template_name = "chat/documents.html"
    section = "documents"

    def page(self) -> dict[str, str | None]:
        """What may be uploaded, for the file dialog and for people."""
        return {"accept": SUFFIXES, "formats": WORDS}


class AssistantsView(PageView):
    """Saved assistants: made, changed, removed."""

    template_name = "chat/assistants.html"
    section = "assistants"


class DocumentView(PageView):
    """What the machine read of one document, by page."""

    template_name = "chat/document.html"
    section = "documents"

    def page(self) -> dict[str, str | None]:
        """The document to show."""
        return {"document": str(self.kwargs["document_id"])}


class SharedView(PageView):
    """A conversation that somebody shared; every link that does not open for this reader is the same 404."""

    template_name = "chat/shared.html"
    section = "shared"

    def page(self) -> dict[str, str | None]:
        """The link to read, once it is sure that it opens."""
        share_id = self.kwargs["share_id"]
        try:
            share_open(caller_by_user(cast(User, self.request.user)), share_id)
        except (NotFound, NotAllowed) as exc:
            raise Http404(exc.message) from exc
        return {"share": str(share_id)}


class SharesView(PageView):
    """The links that this person made."""

    template_name = "chat/shares.html"
    section = "shares"


class KeysView(PageView):
    """API keys of this person, and of the teams this person administers."""

    template_name = "chat/keys.html"
    section = "keys"
