"""Write app/billing/price_seed/prices.json anew from the package `genai-prices`, at developer time only.

Run it with a Python that has the package (`pip install genai-prices` in an environment of its own):
`python tools/price_snapshot.py`. Tessera reads the file and never the package. Prices that hold at certain hours
of the day, and units that Tessera does not count, are left out and counted.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

PACKAGE = "genai-prices"
TARGET = Path(__file__).resolve().parents[1] / "app" / "billing" / "price_seed"

MILLION, THOUSAND = 1_000_000, 1_000
COMPONENTS = {
    "input_mtok": ("input", MILLION),
    "output_mtok": ("output", MILLION),
    "cache_read_mtok": ("cache_read", MILLION),
    "cache_write_mtok": ("cache_write", MILLION),
    "cache_write_1h_mtok": ("cache_write_long", MILLION),
    "output_reasoning_mtok": ("reasoning", MILLION),
    "input_audio_mtok": ("input_audio", MILLION),
    "output_audio_mtok": ("output_audio", MILLION),
    "input_image_mtok": ("input_image", MILLION),
    "requests_kcount": ("request", THOUSAND),
    "web_searches_kcount": ("web_search", THOUSAND),
    "storage_searches_kcount": ("file_search", THOUSAND),
}
"""Their names and Tessera's, with the units a price is for."""

MAKERS = {
    "anthropic", "cohere", "deepseek", "google", "meta", "minimax", "mistral", "moonshotai", "openai", "perplexity",
    "voyageai", "x-ai", "zai",
}  # fmt: skip
"""Who makes models comes before who resells them: of a name that several have, the first one's price is the seed."""

Rates = list[list[Any]]


def rates_of(prices: Any, left_out: Counter[str]) -> Rates:
    """`[component, price, per units, from prompt tokens]` each; a tier beyond n tokens begins at n + 1."""
    rates: Rates = []
    for name, value in vars(prices).items():
        if value is None:
            continue
        if name not in COMPONENTS:
            left_out[name] += 1
            continue
        component, per = COMPONENTS[name]
        steps = [(0, value)]
        if hasattr(value, "tiers"):
            steps = [(0, value.base), *((tier.start + 1, tier.price) for tier in value.tiers)]
        rates += [[component, _digits(price), per, start] for start, price in steps]
    return sorted(rates)


def _digits(price: Decimal) -> str:
    """Some of the package's prices went through a float once; nine decimals are what a price may have."""
    return f"{round(price, 9).normalize():f}"


def holds(constraint: Any, today: Any, left_out: Counter[str]) -> bool:
    """Whether a price counts today, at any hour."""
    if constraint is None:
        return True
    if hasattr(constraint, "start_time"):
        left_out["by the hour"] += 1
        return False
    return bool(constraint.start_date <= today)


def match_of(clause: Any) -> dict[str, Any]:
    """A clause as `{equals: …}`, `{or: […]}` and so on."""
    ((name, value),) = vars(clause).items()
    return {name.rstrip("_"): [match_of(each) for each in value] if isinstance(value, list) else value}


def models_of(provider: Any, today: Any, left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    """The models of one provider that have a price."""
    for model in provider.models:
        prices = model.prices if isinstance(model.prices, list) else None
        held = [each.prices for each in prices or () if holds(each.constraint, today, left_out)]
        modes = {
            "standard": rates_of(held[-1] if prices else model.prices, left_out) if held or not prices else []
        }
        for variant in model.price_variants or ():
            if variant.when == {"processing": "batch"} and holds(variant.constraint, today, left_out):
                # A variant says only what differs.
                own = rates_of(variant.prices, left_out)
                kept = [rate for rate in modes["standard"] if rate[0] not in {name for name, *_ in own}]
                modes["batch"] = sorted(kept + own)
        modes = {mode: rates for mode, rates in modes.items() if rates}
        if "standard" in modes:
            yield {"id": model.id, "match": match_of(model.match), "modes": modes}


def main() -> None:
    # By name, because it is not a package of Tessera's.
    providers = sorted(import_module("genai_prices.data").providers, key=lambda p: (p.id not in MAKERS, p.id))
    package, today, left_out = distribution(PACKAGE), datetime.now(UTC).date(), Counter[str]()
    head = {
        "source": f"{PACKAGE} {package.version}",
        "read_on": f"{today}",
        "currency": "USD",
        "licence": "MIT",
    }
    lines = [json.dumps(head)[:-1] + ', "providers": [']
    for provider in providers:
        models = [json.dumps(m, separators=(",", ":")) for m in models_of(provider, today, left_out)]
        about = {"id": provider.id, "name": provider.name, "address": provider.api_pattern}
        lines.append(json.dumps(about)[:-1] + ', "models": [\n' + ",\n".join(models) + "\n]},")
    lines[-1] = lines[-1].rstrip(",") + "\n]}"
    (TARGET / "prices.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    licence = next(f for f in package.files or () if f.name == "LICENSE")
    (TARGET / "LICENSE").write_text(f"{PACKAGE} {package.version}\n\n{licence.read_text()}", encoding="utf-8")
    print(f"{len(providers)} providers written; left out: {dict(left_out)}")


if __name__ == "__main__":
    main()
