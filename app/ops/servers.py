"""The servers named by the settings, as rows: brought up to date at every start, whatever was there before."""

from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import Max, QuerySet

from app.billing.prices import price_set
from app.billing.selectors import price_current
from app.billing.types import Rate
from app.catalog.models import Backend, Deployment
from app.catalog.probing import Found, address_clean, server_ask
from app.catalog.services import (
    OUTPUT_TOKENS,
    backend_connect,
    backend_put,
    backends_switch,
    clearance_most,
    deployment_put,
    model_put,
)
from app.common.errors import InvalidInput
from inference_client.adapters.kinds import GENERIC
from inference_client.servers import ModelFacts

EMBEDDED_CHAT, OUTSIDE_CHAT = "Embedded chat server", "Chat server at "
EMBEDDED_EMBEDDER, OUTSIDE_EMBEDDER = "Embedded embedding server", "Embedding server at "
"""How servers from the settings are called. Of each pair one is there at a time; servers added by people have other
names."""

MANY = 50
"""More models than this have to be named: a list of a provider's whole catalogue helps nobody."""
_FIRST, _REST = 10, 9
"""Priorities of an outside server's models; the embedded one has 0."""

_LOCAL_PRICE = (
    Rate(component="input", price=Decimal("0.10")),
    Rate(component="output", price=Decimal("0.40")),
)
"""Per million tokens, in the installation's currency: low, but visible, so that every meter shows something real."""
_EMBEDDING_PRICE = (Rate(component="input", price=Decimal("0.01")),)


def servers_prepare() -> list[str]:
    """Make the servers and models that the settings name, and offer no others of them. Safe to repeat.

    An outside server is asked what it serves; one that does not answer hinders nothing. Returns what a person should
    know, a sentence each.
    """
    notes: list[str] = []
    if settings.INFERENCE_URL and _is_outside("INFERENCE_URL", outside_at(settings.INFERENCE_URL)):
        notes += _outside_chat()
    elif settings.INFERENCE_URL:
        _embedded_chat()
    if settings.EMBEDDING_URL:
        notes += _embedder()
    return notes


def outside_at(url: str) -> QuerySet[Backend]:
    """Servers of this address that answer chats and are not ours; one of ours may have had the same port once."""
    rows = Backend.objects.filter(base_url=url.rstrip("/"))
    for prefix in (EMBEDDED_CHAT, EMBEDDED_EMBEDDER, OUTSIDE_EMBEDDER):
        rows = rows.exclude(name__startswith=prefix)
    return rows.order_by("id")


def _is_outside(variable: str, rows: QuerySet[Backend]) -> bool:
    """Whether the server is somebody else's: the environment names it, or did when `up` started.

    In the second case this process reads the address from what `up` wrote, and a row is there.
    """
    return variable in settings.EXTERNAL or rows.filter(enabled=True).exists()


@transaction.atomic
def _embedded_chat() -> None:
    model, is_demonstration = settings.INFERENCE_MODEL, settings.INFERENCE_IS_DEMONSTRATION
    backend = backend_put(
        # A row for each model, because the server has one at a time and the others are then not there.
        name=EMBEDDED_CHAT if is_demonstration else f"{EMBEDDED_CHAT} with {model}"[:100],
        kind=settings.INFERENCE_KIND,
        base_url=settings.INFERENCE_URL,
        api_key=settings.INFERENCE_API_KEY,
    )
    row, _ = deployment_put(
        backend=backend,
        upstream_model=model,
        purpose=Deployment.Purpose.CHAT.value,
        public_name=model,
        price_key=f"chat/{model}",
        context_window=settings.INFERENCE_CONTEXT_WINDOW or None,
        # The demonstration model loses its thread soon; a short answer is the better one.
        max_output_tokens=200 if is_demonstration else OUTPUT_TOKENS,
        slots=settings.INFERENCE_SLOTS,
        is_demonstration=is_demonstration,
    )
    _price(backend, [row], _LOCAL_PRICE)
    backends_switch(to=backend, prefixes=(EMBEDDED_CHAT, OUTSIDE_CHAT))


def _outside_chat() -> list[str]:
    try:
        url = address_clean(settings.INFERENCE_URL)
        present = outside_at(url).first()
        key = settings.INFERENCE_API_KEY or (present.api_key if present else "")
        found = server_ask(url, key, kind=settings.EXTERNAL.get("INFERENCE_KIND", ""))
    except InvalidInput as exc:
        return [f"INFERENCE_URL and INFERENCE_KIND name no server that can be used. {exc.message}"]
    models, notes = _models(url, found)
    with transaction.atomic():
        backend = backend_connect(
            backend=present,
            name=f"{OUTSIDE_CHAT}{urlsplit(url).netloc}",
            base_url=url,
            kind=_kind(present, found),
            api_key=key,
        )
        made = [_deployment(backend, model, first=model == models[0]) for model in models]
        rows = [row for row, _ in made]
        backends_switch(to=backend, prefixes=(EMBEDDED_CHAT, OUTSIDE_CHAT))
        if made and made[0][1]:
            _prefer(rows[0], Deployment.objects.filter(backend__enabled=True))
        elif rows and settings.INFERENCE_MODEL:
            _prefer(rows[0], Deployment.objects.filter(backend=backend))
        _price(backend, rows, _LOCAL_PRICE)
    return notes + _unpriced(rows)


def _kind(present: Backend | None, found: Found) -> str:
    """What the environment says, else what the look showed. What was learnt before stays when there was no look."""
    named = "INFERENCE_KIND" in settings.EXTERNAL
    looked = found.reachable and "INFERENCE_URL" in settings.EXTERNAL
    return found.kind if present is None or named or looked else present.kind


def _models(url: str, found: Found) -> tuple[list[ModelFacts], list[str]]:
    """The models to offer, the preferred first, and what is to be said about them."""
    named, notes = settings.INFERENCE_MODEL, []
    if not found.reachable or found.key_refused:
        notes.append(f"The chat server {url} cannot be used yet: {found.problem}")
        if not named:
            notes.append(
                "Its models are not known: start it and run `manage.py first_run`, or set INFERENCE_MODEL."
            )
    elif named and found.models and not found.lists(named):
        listed = ", ".join(m.name for m in found.models[:10])
        notes.append(f"{url} does not list INFERENCE_MODEL {named}. It has: {listed}.")
    elif not named and not found.chat_models:
        notes.append(
            f"{url} names no chat model. {found.problem or ''} Set INFERENCE_MODEL.".replace("  ", " ")
        )
    elif not named and len(found.chat_models) > MANY:
        notes.append(f"{url} has {len(found.chat_models)} models. Choose one with INFERENCE_MODEL.")
        return [], notes
    return ([found.model(named)] if named else list(found.chat_models)), notes


def _deployment(backend: Backend, model: ModelFacts, *, first: bool) -> tuple[Deployment, bool]:
    row, created = model_put(
        backend=backend, model=model, slots=settings.INFERENCE_SLOTS, priority=_FIRST if first else _REST
    )
    if settings.INFERENCE_CONTEXT_WINDOW:
        row.context_window = settings.INFERENCE_CONTEXT_WINDOW
        row.save(update_fields=["context_window"])
    return row, created


def _prefer(row: Deployment, among: QuerySet[Deployment]) -> None:
    """Put a model before others: a new one before all, one that is named before those of its server."""
    others = among.filter(purpose=row.purpose).exclude(pk=row.pk)
    highest = others.aggregate(highest=Max("priority"))["highest"]
    if highest is not None and highest >= row.priority:
        row.priority = highest + 1
        row.save(update_fields=["priority"])


def _embedder() -> list[str]:
    try:
        url = address_clean(settings.EMBEDDING_URL)
    except InvalidInput as exc:
        return [f"EMBEDDING_URL names no server that can be used. {exc.message}"]
    outside = Backend.objects.filter(base_url=url, name__startswith=OUTSIDE_EMBEDDER)
    if _is_outside("EMBEDDING_URL", outside):
        present, name = outside.first(), f"{OUTSIDE_EMBEDDER}{urlsplit(url).netloc}"
    else:
        present, name = Backend.objects.filter(name=EMBEDDED_EMBEDDER).first(), EMBEDDED_EMBEDDER
    with transaction.atomic():
        backend = backend_connect(
            backend=present,
            name=name,
            base_url=url,
            kind=GENERIC.name,
            api_key=settings.EMBEDDING_API_KEY or None,
        )
        row, _ = deployment_put(
            backend=backend,
            upstream_model=settings.EMBEDDING_MODEL,
            purpose=Deployment.Purpose.EMBEDDING.value,
            public_name=settings.EMBEDDING_MODEL,
            price_key=f"embedding/{settings.EMBEDDING_MODEL}",
            clearance=clearance_most(backend),
        )
        backends_switch(to=backend, prefixes=(EMBEDDED_EMBEDDER, OUTSIDE_EMBEDDER))
        _price(backend, [row], _EMBEDDING_PRICE)
    return _unpriced([row])


def _price(backend: Backend, rows: Sequence[Deployment], rates: tuple[Rate, ...]) -> None:
    """A price to begin with, only where the machine is one's own: what a provider asks is not ours to guess."""
    for row in rows:
        if not backend.leaves_premises and price_current(row.price_key) is None:
            price_set(price_key=row.price_key, rates=rates, approved_by="first run", source="first run")


def _unpriced(rows: Sequence[Deployment]) -> list[str]:
    names = ", ".join(row.public_name for row in rows if price_current(row.price_key) is None)
    how = "Nobody with a money budget can use it before you set one under /admin/."
    return [f"No price is known for {names}. {how}"] if names else []
