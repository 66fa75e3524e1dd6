"""The page in place of one that failed: it names the part that does not answer, as the API does."""

import sys

from django.http import HttpRequest, HttpResponse
from django.template import loader

from app.api.errors import part_away
from app.common.logs import request_id_var

_AGAIN_SECONDS = "5"


def page_failed(request: HttpRequest) -> HttpResponse:
    """Django's handler500: 503 while a part is away, else 500 with the id that the log has the cause under."""
    # Without the request: what the frame reads of the person would ask the database once more.
    exc = sys.exc_info()[1]
    part = part_away(exc) if exc else None
    words = loader.get_template("500.html").render({"part": part, "request_id": request_id_var.get()})
    if part:
        return HttpResponse(words, status=503, headers={"Retry-After": _AGAIN_SECONDS})
    return HttpResponse(words, status=500)
