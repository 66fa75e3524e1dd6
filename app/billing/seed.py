"""A list of providers' prices as a file: read, checked, and asked which model a name means. No database, no network."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from app.billing.checks import check_rates
from app.billing.pricing import complete
from app.billing.types import Rate
from app.common.errors import InvalidInput

SHIPPED = Path(__file__).parent / "price_seed" / "prices.json"
"""Written by tools/price_snapshot.py; its licence lies beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedModel:
    """One model of one provider."""

    provider: str
    id: str
    match: Mapping[str, Any]
    modes: Mapping[str, tuple[Rate, ...]]
    """Rates by mode (standard, batch), with those that follow another written out."""

    @property
    def kind(self) -> str:
        """What its price key begins with: a model without an output price embeds."""
        return "chat" if any(r.component == "output" for r in self.modes["standard"]) else "embedding"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedProvider:
    """One provider, and how its address is known."""

    id: str
    address: re.Pattern[str]
    models: tuple[SeedModel, ...]

    def model_of(self, name: str) -> SeedModel | None:
        """The model that a server's own name for it means: the exact one before a pattern."""
        lower = name.lower()
        exact = (model for model in self.models if model.id.lower() == lower)
        return next(exact, None) or next((m for m in self.models if means(m.match, lower)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A whole list. Prices are in `currency`."""

    source: str
    currency: str
    read_on: str
    providers: tuple[SeedProvider, ...]

    def provider_at(self, url: str) -> SeedProvider | None:
        """Whose address this is; None: nobody's in the list, such as one's own server."""
        return next((p for p in self.providers if p.address.match(url)), None)

    def models(self) -> Iterator[SeedModel]:
        """All of them; of one id the first is its maker's, or whoever stands first in the list."""
        for provider in self.providers:
            yield from provider.models


def means(match: Mapping[str, Any], name: str) -> bool:
    """Whether a clause holds of a name in small letters."""
    ((how, what),) = match.items()
    if how in {"or", "and"}:
        parts = (means(part, name) for part in what)
        return any(parts) if how == "or" else all(parts)
    if how == "regex":
        return re.search(what, name) is not None
    tests = {"equals": name == what, "starts_with": name.startswith(what), "ends_with": name.endswith(what)}
    return bool(tests.get(how, what in name))


def seed_read(path: Path = SHIPPED) -> Seed:
    """Errors: InvalidInput naming the file and what is wrong with it."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        return Seed(
            source=plain["source"],
            currency=plain["currency"],
            read_on=plain["read_on"],
            providers=tuple(_provider(each) for each in plain["providers"]),
        )
    except OSError as exc:
        raise InvalidInput(f"{path} cannot be read: {exc.strerror}. Nothing was imported.") from exc
    except (KeyError, TypeError, ValueError, InvalidOperation, re.error) as exc:
        what = f"{type(exc).__name__}: {exc}"
        raise InvalidInput(
            f"{path} is not a list of prices in the form of {SHIPPED.name} ({what}). Nothing was imported."
        ) from exc


def _provider(plain: Mapping[str, Any]) -> SeedProvider:
    return SeedProvider(
        id=plain["id"],
        address=re.compile(plain["address"]),
        models=tuple(_model(plain["id"], each) for each in plain["models"]),
    )


def _model(provider: str, plain: Mapping[str, Any]) -> SeedModel:
    for rates in plain["modes"].values():
        try:
            check_rates([_rate(*each) for each in rates])
        except InvalidInput as exc:
            raise ValueError(f"{provider}/{plain['id']}: {exc.message}") from exc
    return SeedModel(
        provider=provider,
        id=plain["id"],
        match=plain["match"],
        modes={mode: complete([_rate(*each) for each in rates]) for mode, rates in plain["modes"].items()},
    )


def _rate(component: str, price: str, per_units: int, min_prompt_tokens: int) -> Rate:
    return Rate(
        component=component, price=Decimal(price), per_units=per_units, min_prompt_tokens=min_prompt_tokens
    )
