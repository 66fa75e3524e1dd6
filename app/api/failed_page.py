"""What is answered in place of a page that failed: it names the part that does not answer, as the API does."""

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader

from app.api.errors import error_body, part_away
from app.common.logs import request_id_var

_AGAIN_SECONDS = "5"


def page_failed(request: HttpRequest) -> HttpResponse:
    """Django's handler500: 503 while a part is away, else 500 with the id that the log has the cause under.

    Programs and scripts get it in the API's shape: who somebody is is asked before any view can answer for itself.
    """
    exc = sys.exc_info()[1]
    if exc is not None and "text/html" not in request.headers.get("Accept", ""):
        return _as_json(exc)
    # Without the request: what the frame reads of the person would ask the database once more.
    part = part_away(exc) if exc else None
    words = loader.get_template("500.html").render({"part": part, "request_id": request_id_var.get()})
    if part:
        return HttpResponse(words, status=503, headers={"Retry-After": _AGAIN_SECONDS})
    return HttpResponse(words, status=500)


def _as_json(exc: BaseException) -> HttpResponse:
    status, body, headers = error_body(exc, request_id_var.get())
    return JsonResponse(body, status=status, headers=headers)
