"""Writes to servers and their models."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db import transaction

from app.accounts.models import Level
from app.audit.services import Verb, audit
from app.catalog.models import Backend, Deployment, ModelRoute, TokenFit
from app.catalog.probing import on_premises
from app.common.clock import now
from app.common.errors import InvalidInput
from inference_client.adapters.kinds import Kind, kind_of
from inference_client.learned import Learned
from inference_client.servers import ModelFacts

OUTPUT_TOKENS = 1024
"""What an answer may take unless somebody says otherwise."""
CONNECTED_PRIORITY = 5
"""Of a model that somebody connected: before the demonstration model, after the server named by INFERENCE_URL."""


@transaction.atomic
def backend_put(
    *, name: str, kind: str, base_url: str, api_key: str = "", leaves_premises: bool = False, region: str = ""
) -> Backend:
    """Add a server, or bring the one of that name up to date (its URL and key change with every embedded start)."""
    before = Backend.objects.filter(name=name).first()
    row = Backend.objects.filter(name=name).first() or Backend(name=name)
    row.kind, row.base_url, row.leaves_premises, row.region = (
        kind,
        base_url.rstrip("/"),
        leaves_premises,
        region,
    )
    row.set_api_key(api_key)
    backend_save(row, before=before)
    return row


def backend_save(row: Backend, *, before: Backend | None) -> None:
    """Write a server's row; what it was and became goes into the audit log, its key never does."""
    was, becomes = _backend_words(before) if before else "", _backend_words(row)
    with transaction.atomic():
        row.save()
        if was != becomes:
            verb = Verb.SERVER_CHANGED if before else Verb.SERVER_ADDED
            audit(verb, object_kind="server", object_id=row.id, before=was, after=becomes)


def _backend_words(row: Backend) -> str:
    where = "leaves the premises" if row.leaves_premises else "on the premises"
    return f"{row.name} ({row.kind}) {row.base_url}, {where}, {'on' if row.enabled else 'off'}"


@transaction.atomic
def backend_connect(  # noqa: PLR0913 - one keyword for each column
    *,
    backend: Backend | None,
    base_url: str,
    kind: str,
    name: str = "",
    api_key: str | None = None,
    region: str | None = None,
    leaves_premises: bool | None = None,
    options: Mapping[str, Any] | None = None,
) -> Backend:
    """Bring a server up to date, or add it (called `name`, else by its host and port). None leaves what is there.

    Unless it is said, a server that was not there or has moved leaves the premises when its address or its kind says
    so; one that begins to leave is cleared for no more than internal from then on.
    """
    before = Backend.objects.filter(pk=backend.pk).first() if backend else None
    row = backend or Backend(name=name_free((name or urlsplit(base_url).netloc)[:90]))
    left = row.leaves_premises
    if leaves_premises is None and row.base_url != base_url:
        leaves_premises = kind_leaves(kind) or not on_premises(base_url)
    row.kind, row.base_url = kind, base_url
    row.leaves_premises = left if leaves_premises is None else leaves_premises
    row.region = row.region if region is None else region
    row.options = {**row.options, **(options or {})}
    if api_key is not None:
        row.set_api_key(api_key)
    backend_save(row, before=before)
    if row.leaves_premises and not left:
        clearance_lower(backend=row)
    return row


def kind_leaves(kind: str) -> bool:
    """Whether a kind is some company's own service; a kind nobody knows is not."""
    known = _kind(kind)
    return known is not None and known.leaves_premises


def clearance_most(backend: Backend) -> str:
    """What a model of this server may see unless somebody says otherwise."""
    return Level.INTERNAL.value if backend.leaves_premises else Level.PRIVATE.value


def clearance_lower(*, backend: Backend) -> int:
    """Let the models of a server that leaves the premises see internal content at most. Returns how many were."""
    return backend.deployments.filter(clearance=Level.PRIVATE).update(clearance=Level.INTERNAL)


@transaction.atomic
def backends_switch(*, to: Backend, prefixes: Sequence[str]) -> None:
    """Offer `to`, and no other server whose name begins like this: those are not there now. Models keep their state."""
    others = Backend.objects.exclude(pk=to.pk).filter(enabled=True)
    for prefix in prefixes:
        others.filter(name__startswith=prefix).update(enabled=False)
    Backend.objects.filter(pk=to.pk).update(enabled=True)
    to.enabled = True


@transaction.atomic
def deployment_switch(*, deployment: Deployment, on: bool) -> None:
    """Offer a model or no longer: calls that run go on to their end, new ones go elsewhere."""
    deployment.enabled = on
    deployment.save(update_fields=["enabled"])
    after = f"{deployment.public_name} {'on' if on else 'off'}"
    audit(Verb.SERVER_CHANGED, object_kind="model", object_id=deployment.id, after=after)


def deployment_knee_set(*, deployment_id: UUID, tokens_per_s: float) -> None:
    """Keep what a load test found."""
    Deployment.objects.filter(id=deployment_id).update(knee_tokens_per_s=tokens_per_s, knee_at=now())


def deployment_put(
    *, backend: Backend, upstream_model: str, purpose: str, **fields: Any
) -> tuple[Deployment, bool]:
    """Add a model of a server; an existing one keeps what an administrator changed. Returns (row, created)."""
    if fields.get("is_demonstration") or purpose != Deployment.Purpose.CHAT:
        fields.setdefault("capabilities", [])
    return Deployment.objects.get_or_create(
        backend=backend, upstream_model=upstream_model, purpose=purpose, defaults=fields
    )


@transaction.atomic
def model_put(
    *, backend: Backend, model: ModelFacts, clearance: str | None = None, **fields: Any
) -> tuple[Deployment, bool]:
    """Add a chat model as a server describes it. Returns (row, created).

    An existing one keeps what an administrator changed, except that its window never exceeds the server's and that
    a `clearance` which is given counts.
    """
    kind = _kind(backend.kind)
    values = {
        "public_name": model.name[:100],
        "price_key": f"chat/{model.name}"[:200],
        "context_window": model.context_window,
        "max_output_tokens": min(OUTPUT_TOKENS, model.max_output_tokens or OUTPUT_TOKENS),
        "clearance": clearance or clearance_most(backend),
        "abort_stops_billing": kind is None or kind.abort_stops_billing,
    }
    row, created = deployment_put(
        backend=backend, upstream_model=model.name, purpose=Deployment.Purpose.CHAT.value, **(values | fields)
    )
    if not created:
        known = model.context_window
        if known and (row.context_window is None or row.context_window > known):
            row.context_window = known
        row.clearance = clearance or row.clearance
        row.save(update_fields=["context_window", "clearance"])
    return row, created


def _kind(name: str) -> Kind | None:
    try:
        return kind_of(name)
    except LookupError:
        return None


def name_free(wanted: str) -> str:
    """`wanted`, or with a number after it where a server is called so already."""
    taken = set(Backend.objects.filter(name__startswith=wanted).values_list("name", flat=True))
    names = (wanted, *(f"{wanted} ({number})" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def route_put(*, name: str, models: Sequence[str] = (), successor: str = "", **rules: bool) -> ModelRoute:
    """Say how a name is served: by `models` in their order, or, a retired one, by its `successor`.

    Errors: InvalidInput naming the field.
    """
    if problem := route_problem(name, models, successor):
        field, words = problem
        raise InvalidInput(words, detail={"field": field})
    row, _ = ModelRoute.objects.update_or_create(
        name=name, defaults={"model_names": list(models), "successor": successor, **rules}
    )
    return row


def route_problem(name: str, models: Sequence[str], successor: str) -> tuple[str, str] | None:
    """(field, what is wrong with it); None when a route makes sense."""
    if bool(models) == bool(successor):
        return "model_names", "A route needs either models to try, or the successor of a retired model."
    if successor == name:
        return "successor", "A model cannot be its own successor."
    known = set(Deployment.objects.filter(purpose="chat").values_list("public_name", flat=True))
    if unknown := [model for model in models if model not in known]:
        return (
            "model_names",
            f"There is no model {', '.join(unknown)}; a route names models, not other routes.",
        )
    routes = set(ModelRoute.objects.values_list("name", flat=True))
    if successor and successor not in known | routes:
        return "successor", f"There is no model or route {successor}."
    return None


def token_fit_get(deployment: Deployment) -> TokenFit:
    """What is known of how a deployment counts; a row that is not saved where nothing is."""
    return TokenFit.objects.filter(deployment=deployment).first() or TokenFit(deployment=deployment)


def token_fit_put(
    *,
    deployment: Deployment,
    learned: Learned,
    last_call_at: datetime | None,
    short: tuple[datetime, int, int] | None = None,
) -> TokenFit:
    """Store what calls taught; `short` is (when, tokens sent, tokens read) of the last prompt that was cut."""
    row = token_fit_get(deployment)
    row.tokenizer, row.learned, row.last_call_at = deployment.tokenizer, learned.as_json(), last_call_at
    if short is not None:
        row.short_at, row.short_sent, row.short_read = short
    row.save()
    return row
