"""Which deployments there are, as frozen values that a turn can carry."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from app.accounts.models import Level
from app.catalog.models import Deployment, ModelRoute, TokenFit
from app.common.errors import NotFound
from inference_client.learned import UNLEARNED, Learned, learned_read
from inference_client.routing import Rule, Rules

_RANK = {level.value: rank for rank, level in enumerate(Level)}


@dataclass(frozen=True, slots=True)
class Target:
    """A deployment with its server, as a call needs it."""

    deployment_id: UUID
    public_name: str
    upstream_model: str
    price_key: str
    context_window: int | None
    max_output_tokens: int
    clearance: str
    tokenizer: str
    abort_stops_billing: bool
    slots: int
    is_demonstration: bool
    kind: str
    base_url: str
    api_key: str
    leaves_premises: bool
    backend_name: str
    region: str
    purpose: str = "chat"
    priority: int = 0
    capabilities: frozenset[str] = frozenset()
    parameters_b: Decimal | None = None
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What the server's kind wants to know beside its address and key."""
    learned: Learned = field(default=UNLEARNED, compare=False)
    """How this server counts beside our tokenizer."""

    @property
    def name(self) -> str:
        """What people call it: the model and where it runs."""
        return f"{self.public_name} on {self.backend_name}"

    def cleared_for(self, level: str) -> bool:
        """Whether this deployment may see content of that privacy level."""
        return _RANK[self.clearance] >= _RANK[level]


def highest_level(*levels: str) -> str:
    """The strictest of some privacy levels; `public` when none is given."""
    return max(levels, key=_RANK.__getitem__, default=Level.PUBLIC.value)


def targets(purpose: str) -> list[Target]:
    """Enabled deployments of a purpose, the preferred first."""
    rows = (
        Deployment.objects.filter(purpose=purpose, enabled=True, backend__enabled=True)
        .select_related("backend", "token_fit")
        .order_by("-priority", "id")
    )
    return [_target(row) for row in rows]


def targets_named(name: str, purpose: str = Deployment.Purpose.CHAT.value) -> list[Target]:
    """Deployments that serve a public model name. Errors: NotFound naming the models there are."""
    found = targets(purpose)
    chosen = [t for t in found if t.public_name == name]
    if not chosen:
        names = ", ".join(dict.fromkeys(t.public_name for t in found)) or "none yet"
        raise NotFound(f"There is no model `{name}`. Models here: {names}.", code="model_not_found")
    return chosen


def rules() -> Rules:
    """All names that are not simply a model's own."""
    by_name: dict[str, Rule] = {}
    successors: dict[str, str] = {}
    for row in ModelRoute.objects.order_by("name"):
        if row.successor:
            successors[row.name] = row.successor
        else:
            by_name[row.name] = Rule(
                models=tuple(row.model_names),
                allow_dearer=row.allow_dearer,
                smallest=row.smallest,
                allow_unpriced=row.allow_unpriced,
            )
    return Rules(by_name=by_name, successors=successors)


def _target(row: Deployment) -> Target:
    return Target(
        deployment_id=row.id,
        public_name=row.public_name,
        upstream_model=row.upstream_model,
        price_key=row.price_key,
        context_window=row.context_window,
        max_output_tokens=row.max_output_tokens,
        clearance=row.clearance,
        tokenizer=row.tokenizer,
        abort_stops_billing=row.abort_stops_billing,
        slots=row.slots,
        is_demonstration=row.is_demonstration,
        kind=row.backend.kind,
        base_url=row.backend.base_url,
        api_key=row.backend.api_key,
        leaves_premises=row.backend.leaves_premises,
        backend_name=row.backend.name,
        region=row.backend.region,
        purpose=row.purpose,
        priority=row.priority,
        capabilities=frozenset(row.capabilities),
        parameters_b=row.parameters_b,
        options=row.backend.options,
        learned=_learned(row),
    )


def _learned(row: Deployment) -> Learned:
    fit: TokenFit | None = getattr(row, "token_fit", None)
    return learned_read(fit.learned) if fit is not None and fit.tokenizer == row.tokenizer else UNLEARNED
