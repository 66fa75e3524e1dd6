"""Which deployments may answer a chat call, in which order, and why: the catalog's rules over prices, health and load.

The policy itself is `inference_client.routing`, pure. Here its values are gathered (what comes from the database is at
most a second old) and its refusals become sentences. Where a rule would leave nobody and another step says better what
is wrong (the pre-count a window, billing a price, the gate a server that is left alone), that step gets its say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple, cast
from uuid import UUID

from app.billing.pricing import dearest
from app.billing.selectors import price_billed
from app.catalog.models import IMAGES, JSON_SCHEMA, TOOLS, Deployment
from app.catalog.selectors import Target, rules, targets
from app.common.cache import remembered
from app.common.errors import InvalidInput, NotAllowed, NotFound
from app.gate.health import health_of
from app.gate.limiter import outstanding
from inference_client.routing import PER, Candidate, Decision, Level, Need, Rule, Rules, route, rule_of

SMALLEST_OUTPUT_TOKENS = 64
"""An answer may shrink to this before a window counts as too small; the pre-count does the shrinking."""
_FIELDS = {TOOLS: "tools", IMAGES: "messages", JSON_SCHEMA: "response_format"}
"""Where a request says that it needs something."""

_cached_targets = remembered(1.0)(targets)
_cached_rules = remembered(1.0)(rules)


@remembered(1.0)
def _per_million(price_key: str, team_id: UUID | None) -> tuple[Decimal | None, Decimal | None]:
    """(input, output), each the dearest that a token may cost; None: not known."""
    price = price_billed(price_key, team_id=team_id)
    tiers = dearest(price.rates, price.tier_mode) if price else ()
    return _most([tier.input_rate for tier in tiers]), _most([tier.output_rate for tier in tiers])


def _most(rates: Sequence[Decimal | None]) -> Decimal | None:
    known = [rate for rate in rates if rate is not None]
    return max(known) * PER if known and len(known) == len(rates) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a call needs, as far as it is known before the count."""

    model: str
    """A public model name or an alias."""
    level: str
    team_id: UUID | None = None
    """The payer, who may have prices of its own."""
    input_tokens: int = 0
    """What cannot be left out, roughly and rather too few; the count corrects it with `Routed.refitted`."""
    output_tokens: int = 512
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """A decision and what it was made from."""

    wish: Wish
    targets: tuple[Target, ...]
    """First choice and fallbacks."""
    notices: tuple[Mapping[str, Any], ...]
    """What the caller should know: `model_successor`, `fallback`."""
    decision: Decision
    leniencies: tuple[str, ...]
    """Rules that were set aside because nobody kept them."""
    found: Mapping[str, tuple[Candidate, Target]]
    rules: Rules

    @property
    def name(self) -> str:
        """The name that was asked for, or what answers for it since it retired."""
        return self.decision.wanted

    def refitted(self, *, input_tokens: int) -> "Routed":
        """The same decision for a prompt that turned out to have `input_tokens`."""
        return _decided(replace(self.wish, input_tokens=input_tokens), self.found, self.rules)

    def as_json(self) -> dict[str, Any]:
        """As it is stored with the turn."""
        return {
            "asked": self.wish.model,
            "chosen": [candidate.name for candidate in self.decision.chosen],
            "explanation": self.explain(),
        }

    def explain(self) -> list[str]:
        """A line for each deployment, best first."""
        return [*self.decision.explain(), *self.leniencies]


def decide(wish: Wish) -> Routed:
    """Choose. Errors: NotFound (`model_not_found`), NotAllowed (`not_cleared`), InvalidInput naming what is missing."""
    known = _cached_targets(Deployment.Purpose.CHAT.value)
    every_rule = _cached_rules()
    _, rule = rule_of(wish.model, every_rule)
    serving = [target for target in known if target.public_name in rule.models]
    if not serving:
        names = ", ".join(names_of(known, every_rule)) or "none yet"
        raise NotFound(f"There is no model `{wish.model}`. Models here: {names}.", code="model_not_found")
    found: dict[str, tuple[Candidate, Target]] = {}
    for target in serving:
        name = target.name if target.name not in found else f"{target.name} ({target.upstream_model})"
        found[name] = _candidate(name, target, wish.team_id), target
    routed = _decided(wish, found, every_rule)
    if not routed.targets:
        raise _refusal(wish, serving, known)
    return routed


def names_of(known: Sequence[Target], every_rule: Rules) -> list[str]:
    """Names to choose from: models that have not retired, then aliases that some model answers to."""
    models = dict.fromkeys(t.public_name for t in known if t.public_name not in every_rule.successors)
    aliases = [
        name
        for name, rule in every_rule.by_name.items()
        if name not in models
        and name not in every_rule.successors
        and not models.keys().isdisjoint(rule.models)
    ]
    return [*models, *aliases]


def choices() -> list[Target]:
    """One target for each of `names_of`; an alias stands under its own name as the first of its models."""
    known, every_rule = _cached_targets(Deployment.Purpose.CHAT.value), _cached_rules()
    first: dict[str, Target] = {}
    for target in known:
        first.setdefault(target.public_name, target)
    return [
        first.get(name)
        or replace(next(first[m] for m in every_rule.by_name[name].models if m in first), public_name=name)
        for name in names_of(known, every_rule)
    ]


def memories_forget() -> None:
    """Read everything anew at the next decision."""
    for memory in (_cached_targets, _cached_rules, _per_million):
        memory.forget()


def _candidate(name: str, target: Target, team_id: UUID | None) -> Candidate:
    input_price, output_price = _per_million(target.price_key, team_id)
    state = health_of(target).state
    return Candidate(
        name=name,
        model=target.public_name,
        clearance=cast("Level", target.clearance),
        context_window=target.context_window,
        input_price=input_price,
        output_price=output_price,
        capabilities=target.capabilities,
        size=target.parameters_b,
        # A server whose pause is over counts as well: by going last it would never be tried again.
        health="unknown" if state == "open" else "up",
        breaker_open=state == "open",
        outstanding=outstanding(target.deployment_id),
        slots=target.slots,
        priority=target.priority,
    )


class _Tried(NamedTuple):
    """What a decision is made from, to be made more lenient."""

    need: Need
    candidates: list[Candidate]
    rule: Rule


def _any_answer(tried: _Tried) -> _Tried:
    output = min(SMALLEST_OUTPUT_TOKENS, tried.need.output_tokens)
    return tried._replace(need=replace(tried.need, output_tokens=output))


def _any_price(tried: _Tried) -> _Tried:
    return tried._replace(rule=replace(tried.rule, allow_unpriced=True))


def _any_state(tried: _Tried) -> _Tried:
    return tried._replace(candidates=[replace(c, breaker_open=False) for c in tried.candidates])


def _any_window(tried: _Tried) -> _Tried:
    return tried._replace(candidates=[replace(c, context_window=None) for c in tried.candidates])


_LENIENCIES: tuple[tuple[str, str, Callable[[_Tried], _Tried]], ...] = (
    ("window", "No window holds a whole answer, so a short one will do.", _any_answer),
    ("no price", "No price is known, so billing decides.", _any_price),
    ("just now", "All servers failed just now, so the gate waits for them.", _any_state),
    ("window", "No window seems large enough, so the count decides.", _any_window),
)
"""(part of the reason that must have been given, what is said, how the rule is set aside), in this order."""


def _decided(wish: Wish, found: Mapping[str, tuple[Candidate, Target]], every_rule: Rules) -> Routed:
    wanted, rule = rule_of(wish.model, every_rule)
    need = Need(
        model=wish.model,
        input_tokens=wish.input_tokens,
        output_tokens=wish.output_tokens,
        level=cast("Level", wish.level),
        capabilities=wish.capabilities,
    )
    tried = _Tried(need, [candidate for candidate, _ in found.values()], rule)
    decision = route(need, tried.candidates, every_rule)
    said: list[str] = []
    for reason, words, lenient in _LENIENCIES:
        if decision.chosen:
            break
        if any(reason in given for given in decision.refused.values()):
            tried = lenient(tried)
            changed = replace(every_rule, by_name={wanted: tried.rule})
            decision = route(tried.need, tried.candidates, changed)
            said.append(words)
    return Routed(
        wish=wish,
        targets=tuple(found[candidate.name][1] for candidate in decision.chosen),
        notices=tuple(_notices(wish, rule, decision)),
        decision=decision,
        leniencies=tuple(said),
        found=found,
        rules=every_rule,
    )


def _notices(wish: Wish, rule: Rule, decision: Decision) -> list[Mapping[str, Any]]:
    notices: list[Mapping[str, Any]] = []
    if decision.wanted != wish.model:
        message = f"`{wish.model}` is retired; `{decision.wanted}` answers in its place."
        notices.append({"code": "model_successor", "message": message, "model": decision.wanted})
    if decision.chosen and decision.wanted in rule.models:
        first = decision.chosen[0].model
        if first != decision.wanted:
            notices.append(fallback_notice(decision.wanted, first))
    return notices


def fallback_notice(wanted: str, model: str) -> Mapping[str, Any]:
    """What a reader is told when another model answers than the one that was chosen."""
    message = f"`{wanted}` cannot answer now; `{model}` answers in its place."
    return {"code": "fallback", "message": message, "model": model}


def _refusal(wish: Wish, serving: Sequence[Target], known: Sequence[Target]) -> Exception:
    """Why nobody may serve, in a sentence."""
    cleared = [target for target in serving if target.cleared_for(wish.level)]
    if not cleared:
        return NotAllowed(
            f"`{wish.model}` is not cleared for {wish.level} content. Choose another model or leave the {wish.level} "
            "collection out.",
            detail={"level": wish.level, "model": wish.model},
            code="not_cleared",
        )
    missing = min((sorted(wish.capabilities - target.capabilities) for target in cleared), key=len)
    able = dict.fromkeys(
        t.public_name for t in known if t.cleared_for(wish.level) and wish.capabilities <= t.capabilities
    )
    instead = f"Models that can: {', '.join(able)}." if able else "No model here can."
    return InvalidInput(
        f"`{wish.model}` cannot do {', '.join(missing)}. {instead}",
        detail={
            "field": _FIELDS.get(missing[0], "model") if missing else "model",
            "missing": missing,
            "models": list(able),
        },
    )
