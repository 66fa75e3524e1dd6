"""The owners of a demonstration year: models with prices, teams, people, keys, collections and budgets."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from random import Random
from uuid import UUID

from app.accounts.models import Role, Team, User
from app.accounts.services import key_create, membership_set, team_create, user_create
from app.billing.budgets import budget_set
from app.billing.seeding import price_since
from app.billing.types import HOUR, PROVISIONED, Rate
from app.catalog.models import Backend, Deployment
from app.catalog.services import backend_put, deployment_put
from retrieval.collections import collection_create

TEAMS = 50
_FIRST = """
Ada Bo Chiara Deniz Elif Femi Greta Hugo Ines Jonas Kaia Luca Mira Nils Oyin Pia Quentin Rosa Sami Tove Umar Vera
Wim Xenia Yara Zeno
""".split()  # noqa: SIM905
_LAST = """
Adler Baptiste Castellanos Dvorak Eriksen Fontaine Grzybowski Haddad Ivanova Jensen Kowalczyk Lindqvist Moreau
Nakamura Okafor Petrov Quispe Rossi Schneider Tanaka Ueda Varga Weber Yilmaz Zimmermann
""".split()  # noqa: SIM905
_UNITS = """
Research Law Support Sales Finance Purchasing Quality Logistics Marketing Editing Engineering Platform Security
People Facilities Training Claims Compliance Audit Product Design Data Translation Archive Laboratory
""".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class DemoModel:
    """A model of the demonstration: invented, and never called."""

    name: str
    price: tuple[str, str, str]
    """Input, cached input, output, per million tokens."""
    cost: tuple[str, str, str] | None
    """None: paid by the hour."""
    share: float
    """Of conversations."""
    reasons: bool = False
    bias: float = 0.0
    """How much more its server counts than our tokenizer."""
    ttft_ms: float = 500.0
    tokens_per_s: float = 60.0


MODELS = (
    DemoModel(
        "atlas-large", ("3.00", "0.30", "15.00"), ("2.50", "0.25", "12.50"), 0.24, bias=0.004, ttft_ms=720
    ),
    DemoModel(
        "atlas-small", ("0.36", "0.04", "1.44"), ("0.30", "0.03", "1.20"), 0.40, bias=0.011, ttft_ms=310
    ),
    DemoModel(
        "lynx-reasoning", ("1.40", "0.35", "5.60"), ("1.20", "0.30", "4.80"), 0.10, reasons=True, ttft_ms=2100
    ),
    DemoModel("finch-8b", ("0.12", "0.12", "0.40"), None, 0.22, bias=0.0, ttft_ms=190, tokens_per_s=85),
    DemoModel("heron-70b", ("0.80", "0.20", "2.40"), ("0.70", "0.18", "2.10"), 0.04, bias=0.032, ttft_ms=640),
)
EMBEDDER = DemoModel("nest-embed", ("0.02", "0.02", "0"), ("0.015", "0.015", "0"), 0.0, ttft_ms=25)
PER_HOUR = Decimal("0.35")


@dataclass(slots=True)
class DemoTeam:
    """One team with what it works with."""

    row: Team
    people: list[tuple[User, float]]
    """Each with how active, 1 being usual."""
    collections: list[UUID]
    key_id: UUID | None
    taste: list[float]
    """How it prefers the models, in the order of MODELS."""


@dataclass(slots=True)
class DemoHouse:
    """Everybody, and the deployments by model name."""

    teams: list[DemoTeam]
    deployments: dict[str, Deployment] = field(default_factory=dict)


def house_make(*, people: int, since: datetime, random: Random) -> DemoHouse:
    """Make all of it through the services, but prices, which are older than their services allow."""
    house = DemoHouse(_teams(people, random))
    for model in (*MODELS, EMBEDDER):
        house.deployments[model.name] = _deployment(model, since)
    _budgets(house, random)
    return house


def _deployment(model: DemoModel, since: datetime) -> Deployment:
    """On a server that is switched off, so that no question of a visitor ever goes there."""
    own = model.cost is None
    backend = backend_put(
        name="Demonstration: own GPU" if own else "Demonstration: provider",
        kind="openai",
        base_url=f"http://127.0.0.1:9/{'own' if own else 'provider'}",
        leaves_premises=not own,
        region="" if own else "eu",
    )
    Backend.objects.filter(id=backend.id).update(enabled=False)
    purpose = Deployment.Purpose.EMBEDDING if model is EMBEDDER else Deployment.Purpose.CHAT
    row, _ = deployment_put(
        backend=backend,
        upstream_model=model.name,
        purpose=purpose.value,
        public_name=model.name,
        price_key=f"demo/{model.name}",
        context_window=128_000,
    )
    price_since(price_key=row.price_key, rates=_rates(model.price, model is EMBEDDER), since=since)
    if model.cost is not None:
        price_since(
            price_key=row.price_key, rates=_rates(model.cost, model is EMBEDDER), since=since, side="cost"
        )
    else:
        hour = Rate(component=HOUR, price=PER_HOUR, per_units=1)
        price_since(price_key=f"{PROVISIONED}{row.id}", rates=[hour], since=since, side="cost")
    return row


def _rates(price: tuple[str, str, str], embeds: bool) -> list[Rate]:
    names = ("input",) if embeds else ("input", "cache_read", "output")
    return [Rate(component=n, price=Decimal(p)) for n, p in zip(names, price, strict=False)]


def _teams(people: int, random: Random) -> list[DemoTeam]:
    names = [f"{unit} {place}".strip() for place in ("", "North") for unit in _UNITS][:TEAMS]
    weights = [1 / (rank + 2) ** 0.7 for rank in range(TEAMS)]
    sizes = [max(1, round(people * weight / sum(weights))) for weight in weights]
    teams: list[DemoTeam] = []
    number = 0
    for name, size in zip(names, sizes, strict=True):
        members: list[tuple[User, float]] = []
        for _ in range(size):
            number += 1
            full = f"{random.choice(_FIRST)} {random.choice(_LAST)}"
            user = user_create(email=f"demo{number}@example.org", password=None, name=full)
            members.append((user, random.lognormvariate(-0.3, 0.8)))
        team = team_create(name=name, owner=members[0][0])
        for place, (user, _) in enumerate(members):
            membership_set(
                team=team,
                user=user,
                role=Role.OWNER if place == 0 else Role.ADMIN if place == 1 else Role.MEMBER,
            )
            user.default_team = team
            user.save(update_fields=["default_team"])
        teams.append(_equipped(DemoTeam(team, members, [], None, []), random))
    return teams


def _equipped(team: DemoTeam, random: Random) -> DemoTeam:
    shelf = random.sample(
        ["Handbook", "Contracts", "Minutes", "Guidelines", "Manuals"], k=random.choice([1, 1, 2])
    )
    for name in shelf:
        made = collection_create(
            name=f"{team.row.name}: {name}", team_id=team.row.id, created_by=f"user:{team.people[0][0].id}"
        )
        team.collections.append(made.id)
    if random.random() < 0.3:
        key, _ = key_create(name="Nightly batch", team_id=team.row.id, user_id=None, scopes=("chat", "embed"))
        team.key_id = key.id
    team.taste = [model.share * random.lognormvariate(0, 0.6) for model in MODELS]
    return team


def _budgets(house: DemoHouse, random: Random) -> None:
    """Room for everyone and, here and there, not quite."""
    heads = sum(len(team.people) for team in house.teams)
    budget_set(
        scope="installation",
        unit="money",
        limit=heads * Decimal("0.12"),
        period="month",
        name="Everything together",
    )
    for team in house.teams:
        tight = random.choice([Decimal("0.06"), Decimal("0.12"), Decimal("0.25")])
        limit = max(Decimal("0.25"), tight * len(team.people))
        budget_set(scope="team", unit="money", limit=limit, period="month", team_id=team.row.id)
    budget_set(scope="allowance", unit="money", limit=2, period="month", name="What each member may spend")
