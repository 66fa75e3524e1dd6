"""A request id for every answer of the CRUD tier; the stream handler gives its own."""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.log import log_response

from app.common.logs import request_id_var, trace_var
from app.common.meters import request_counted, route_class
from app.common.models import uuid7
from inference_client.tracing import Trace


def request_id(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Bind a fresh id to the log context and send it as `X-Request-Id`."""

    def middleware(request: HttpRequest) -> HttpResponse:
        identity, began = uuid7(), time.perf_counter()
        bound = request_id_var.set(str(identity))
        headers = {name: request.headers.get(name, "") for name in ("traceparent", "tracestate")}
        traced = trace_var.set(Trace.read(headers, otherwise=identity.hex))
        try:
            response = get_response(request)
            if response.status_code >= 400:
                # Django would write this line after the id is gone; it writes none for what was logged already.
                log_response(
                    "%s: %s", response.reason_phrase, request.path, response=response, request=request
                )
        finally:
            trace_var.reset(traced)
            request_id_var.reset(bound)
        response["X-Request-Id"] = str(identity)
        seconds = time.perf_counter() - began
        request_counted(route_class(request.path), response.status_code, seconds)
        # Pages too, so that a browser's own tools show how much of a wait was ours.
        response["Server-Timing"] = f"total;dur={seconds * 1e3:.1f}"
        return response

    return middleware
