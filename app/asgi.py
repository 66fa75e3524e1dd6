"""The web process: stream routes to their own handler, everything else to Django."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "app.settings.dev")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope

from app.api.stream.handler import handle, route
from app.api.stream.lifespan import lifespan


async def application(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """The ASGI entry point."""
    if scope["type"] == "lifespan":
        await lifespan(receive, send)
    elif scope["type"] == "http" and (found := route(scope)) is not None:
        await handle(scope, receive, send, found)
    else:
        await django_application(scope, receive, send)  # type: ignore[arg-type]
