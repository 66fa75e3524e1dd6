"""The first five steps of an installation: what is done of each, and connecting a model server."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction

from app.accounts.models import Team, User
from app.billing.prices import price_set
from app.billing.selectors import limits_remaining, price_current
from app.billing.types import LimitState, Payer, Price, Rate
from app.catalog.models import Backend, Deployment
from app.catalog.probing import Found, address_clean, server_ask
from app.catalog.services import CONNECTED_PRIORITY, backend_connect, model_put
from app.common.crypto import decrypt, encrypt
from app.common.errors import InvalidInput
from app.common.handbook import HANDBOOK
from retrieval.models import Collection, Document

MANY = 200
"""Models that are listed; a provider may name hundreds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStep:
    """A connected chat model."""

    row: Deployment
    price: Price | None

    @property
    def rates(self) -> dict[str, Decimal]:
        """Input and output per million tokens, as far as set."""
        rates = self.price.rates if self.price else ()
        return {rate.component: rate.price for rate in rates if not rate.min_prompt_tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """How far it is."""

    models: Sequence[ModelStep]
    limits: Sequence[LimitState]
    team: Team | None
    """Whom people are invited into: the reader's first team with others in mind, else their own."""
    people: int
    documents: int

    @property
    def priced(self) -> bool:
        """Whether every connected model has a price."""
        return bool(self.models) and all(model.price is not None for model in self.models)

    @property
    def done(self) -> int:
        """Of five."""
        return sum(map(bool, (self.models, self.priced, self.limits, self.people > 1, self.documents)))


def steps(user: User) -> Steps:
    """Of the installation, as this member of staff sees it."""
    chat = Deployment.objects.filter(
        purpose=Deployment.Purpose.CHAT, is_demonstration=False, enabled=True, backend__enabled=True
    )
    return Steps(
        models=[
            ModelStep(row=row, price=price_current(row.price_key))
            for row in chat.select_related("backend").order_by("-priority", "public_name")
        ],
        limits=[limit for limit in limits_remaining(Payer(team_id=None)) if limit.unit == "money"],
        team=Team.objects.filter(memberships__user=user).order_by("is_personal", "name").first(),
        people=User.objects.filter(is_active=True).count(),
        documents=_documents(),
    )


def _documents() -> int:
    """Documents that somebody put in."""
    handbooks = Collection.objects.filter(name=HANDBOOK).values("id")
    return Document.objects.exclude(collection_id__in=handbooks).count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a server answered; its key travels sealed, so that nobody types it twice and no page shows it."""

    url: str
    sealed: str
    found: Found

    @property
    def models(self) -> Sequence[Any]:
        """What may be chosen, those for chat."""
        return self.found.chat_models[:MANY]


def look(url: str, key: str) -> Looked:
    """Ask the server; costs no tokens. Errors: InvalidInput with what is wrong and what to do."""
    address = address_clean(url)
    found = server_ask(address, key)
    if not found.reachable:
        raise InvalidInput(f"{address}: {found.problem}", detail={"field": "url"})
    if found.key_refused:
        raise InvalidInput(f"{address} refused the key, or wants one.", detail={"field": "key"})
    return Looked(url=address, sealed=encrypt(key) if key else "", found=found)


def connect(
    *, url: str, sealed: str, names: Sequence[str], leaves: bool | None
) -> tuple[Backend, list[Deployment]]:
    """Add the server with the named models. Errors: InvalidInput when none is named, or what `look` raises."""
    if not names:
        raise InvalidInput("Choose at least one model.", detail={"field": "models"})
    key = decrypt(sealed) if sealed else ""
    looked = look(url, key)
    with transaction.atomic():
        backend = backend_connect(
            backend=Backend.objects.filter(base_url=looked.url).first(),
            base_url=looked.url,
            kind=looked.found.kind,
            api_key=key,
            leaves_premises=leaves,
        )
        rows = [
            model_put(backend=backend, model=looked.found.model(name), priority=CONNECTED_PRIORITY)[0]
            for name in names
        ]
    return backend, rows


def price(*, row: Deployment, given: Decimal, made: Decimal, by: User) -> None:
    """Set what users pay per million input and output tokens, from now on. Errors: InvalidInput, PriceConflict."""
    price_set(
        price_key=row.price_key,
        rates=(Rate(component="input", price=given), Rate(component="output", price=made)),
        approved_by=str(by.account_id),
        source="setup",
        currency=settings.CURRENCY,
    )
