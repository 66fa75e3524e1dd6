"""Which deployment answers, which would be next, and why the others do not. Pure: values in, a decision out.

A request names a model or an alias; several deployments may serve it. Those that cannot or may not serve are
left out with a reason. The rest is ordered: the wanted model first, then the models a rule falls back to;
within a model by priority, load and price. A fallback never costs more than the first choice would have,
unless its rule says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["public", "internal", "private"]
Health: TypeAlias = Literal["up", "unknown", "down"]
LEVELS: Mapping[Level, int] = {"public": 0, "internal": 1, "private": 2}
PER = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One deployment as it stands now."""

    name: str
    """Unique; what a decision names."""
    model: str
    """The public model name it serves."""
    clearance: Level = "private"
    """The highest privacy level it may see."""
    context_window: int | None = None
    """Tokens of input and output together; None is unknown, and then only the server can say no."""
    max_output_tokens: int | None = None
    input_price: Decimal | None = None
    """Per million tokens, like `output_price`; None is unknown, which is not free."""
    output_price: Decimal | None = None
    capabilities: frozenset[str] = frozenset()
    """E.g. tools, images, json_schema, reasoning."""
    size: Decimal | None = None
    """How large the model is, in billions of parameters, for rules that want the smallest that will do."""
    health: Health = "unknown"
    breaker_open: bool = False
    outstanding: int = 0
    slots: int = 1
    priority: int = 0
    enabled: bool = True

    @property
    def load(self) -> float:
        """Calls under way for each slot."""
        return self.outstanding / max(1, self.slots)

    def cost(self, need: "Need") -> Decimal | None:
        """The most `need` can cost here, or None where a price is missing."""
        if self.input_price is None or self.output_price is None:
            return None
        return (self.input_price * need.input_tokens + self.output_price * need.output_tokens) / PER


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What is asked for."""

    model: str
    """A public model name or an alias."""
    input_tokens: int
    output_tokens: int
    level: Level = "internal"
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one name is served: the models to try, in this order."""

    models: tuple[str, ...]
    allow_dearer: bool = False
    """A later model may cost more than the first choice."""
    smallest: bool = False
    """Of all these models take the smallest that can do it, instead of their order."""
    allow_unpriced: bool = False
    """A deployment without a price may serve; whoever sets this pays for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All names that are not simply a model's own."""

    by_name: Mapping[str, Rule] = field(default_factory=dict)
    """Aliases such as `auto` or `fast`, and models with fallbacks."""
    successors: Mapping[str, str] = field(default_factory=dict)
    """Retired model to the one that answers in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome, fit to be stored with the turn and to be shown."""

    need: Need
    wanted: str
    """The name that was asked for, or what answers for it since it retired."""
    chosen: tuple[Candidate, ...]
    """First choice and fallbacks, in the order to try; empty when nobody can serve."""
    refused: Mapping[str, str]
    """Deployment name to the reason it is left out."""
    notices: tuple[str, ...] = ()
    """What the caller should be told: a retired model, a fallback by rule."""

    def explain(self) -> list[str]:
        """One line per deployment, best first."""
        need = f"{self.need.input_tokens} + {self.need.output_tokens} tokens, level {self.need.level}"
        lines = [f"{self.need.model}: {need}", *self.notices]
        for number, candidate in enumerate(self.chosen, 1):
            cost = candidate.cost(self.need)
            price = "no price" if cost is None else f"at most {cost:f}"
            load = f"{candidate.outstanding} of {candidate.slots} slots"
            lines.append(
                f"{number}. {candidate.name} ({candidate.model}): {candidate.health}, {load}, {price}"
            )
        lines += [f"–  {name}: {reason}" for name, reason in self.refused.items()]
        return lines


def rule_of(model: str, rules: Rules) -> tuple[str, Rule]:
    """(the name that answers for `model` now, how it is served)."""
    wanted = _successor(model, rules, [])
    return wanted, rules.by_name.get(wanted, Rule(models=(wanted,)))


def route(need: Need, candidates: Sequence[Candidate], rules: Rules = Rules()) -> Decision:
    """Decide. The same values always give the same decision."""
    notices: list[str] = []
    wanted = _successor(need.model, rules, notices)
    _, rule = rule_of(wanted, rules)
    fit: list[Candidate] = []
    refused: dict[str, str] = {}
    for candidate in candidates:
        if candidate.model not in rule.models:
            continue
        reason = _reason_against(candidate, need, rule)
        if reason is None:
            fit.append(candidate)
        else:
            refused[candidate.name] = reason
    fit.sort(key=lambda candidate: _order(candidate, need, rule))
    kept = fit if rule.allow_dearer else _not_dearer(fit, need, refused)
    kept = _answering(kept, refused)
    if kept and wanted in rule.models and kept[0].model != wanted:
        notices.append(f"{wanted} cannot answer now; {kept[0].model} answers in its place.")
    return Decision(need=need, wanted=wanted, chosen=tuple(kept), refused=refused, notices=tuple(notices))


def _successor(model: str, rules: Rules, notices: list[str]) -> str:
    """The model that answers now for a retired one; a circle of successors ends where it began."""
    seen = {model}
    while (following := rules.successors.get(model)) is not None and following not in seen:
        notices.append(f"{model} is retired; {following} answers in its place.")
        seen.add(following)
        model = following
    return model


def _reason_against(candidate: Candidate, need: Need, rule: Rule) -> str | None:
    """Why `candidate` cannot or may not serve `need`, however well its server is."""
    missing = need.capabilities - candidate.capabilities
    window, cap = candidate.context_window, candidate.max_output_tokens
    total = need.input_tokens + need.output_tokens
    checks: Iterable[tuple[bool, str]] = (
        (not candidate.enabled, "switched off"),
        (
            LEVELS[need.level] > LEVELS[candidate.clearance],
            f"cleared for {candidate.clearance} only, the turn is {need.level}",
        ),
        (bool(missing), f"cannot do {', '.join(sorted(missing))}"),
        (window is not None and total > window, f"needs {total} tokens, its window holds {window}"),
        (
            cap is not None and need.output_tokens > cap,
            f"writes at most {cap} tokens, {need.output_tokens} are wanted",
        ),
        (candidate.cost(need) is None and not rule.allow_unpriced, "has no price"),
    )
    return next((reason for applies, reason in checks if applies), None)


def _answering(fit: Sequence[Candidate], refused: dict[str, str]) -> list[Candidate]:
    """`fit` without those whose server does not answer now."""
    kept: list[Candidate] = []
    for candidate in fit:
        if candidate.health == "down":
            refused[candidate.name] = "is down"
        elif candidate.breaker_open:
            refused[candidate.name] = "failed several times just now"
        else:
            kept.append(candidate)
    return kept


def _order(candidate: Candidate, need: Need, rule: Rule) -> tuple[object, ...]:
    """What is compared, first things first. Names decide last, so that equal deployments keep one order."""
    cost = candidate.cost(need)
    size = candidate.size if rule.smallest and candidate.size is not None else Decimal("Infinity")
    rank = 0 if rule.smallest else rule.models.index(candidate.model)
    return (
        size,
        rank,
        -candidate.priority,
        candidate.health != "up",
        candidate.load,
        Decimal("Infinity") if cost is None else cost,
        candidate.name,
    )


def _not_dearer(fit: Sequence[Candidate], need: Need, refused: dict[str, str]) -> list[Candidate]:
    """`fit` without other models that cost more than the first choice, whether that one answers now or not."""
    if not fit:
        return []
    first = fit[0]
    limit = first.cost(need)
    kept: list[Candidate] = []
    for candidate in fit:
        cost = candidate.cost(need)
        dearer = limit is None or cost is None or cost > limit
        if candidate.model != first.model and dearer:
            refused[candidate.name] = f"is dearer than {first.name}"
        else:
            kept.append(candidate)
    return kept
