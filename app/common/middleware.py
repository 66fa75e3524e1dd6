"""A request id for every answer of the CRUD tier; the stream handler gives its own."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.log import log_response

from app.common.logs import request_id_var
from app.common.models import uuid7


def request_id(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Bind a fresh id to the log context and send it as `X-Request-Id`."""

    def middleware(request: HttpRequest) -> HttpResponse:
        identity = str(uuid7())
        bound = request_id_var.set(identity)
        try:
            response = get_response(request)
            if response.status_code >= 400:
                # Django would write this line after the id is gone; it writes none for what was logged already.
                log_response(
                    "%s: %s", response.reason_phrase, request.path, response=response, request=request
                )
        finally:
            request_id_var.reset(bound)
        response["X-Request-Id"] = identity
        return response

    return middleware
