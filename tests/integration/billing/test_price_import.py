"""`manage.py price_import`: what it shows, writes and refuses. Prices of the list below are made up."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from app.billing.errors import PriceConflict
from app.billing.importing import import_plan, import_write
from app.billing.models import ExchangeRate, PriceVersion
from app.billing.rates import exchange_rate_set
from app.billing.seed import means, seed_read
from app.billing.selectors import price_current
from app.billing.services import price_set
from app.catalog.services import backend_put, deployment_put
from app.common.clock import now
from tests.integration.billing.conftest import PRICE

pytestmark = pytest.mark.django_db
D = Decimal
M = 1_000_000


def model(name: str, *rates: list[Any], **more: Any) -> dict[str, Any]:
    return {"id": name, "match": {"starts_with": name}, "modes": {"standard": list(rates)}} | more


SMALL = model("small", ["input", "0.15", M, 0], ["output", "0.6", M, 0], ["cache_read", "0.075", M, 0])
LARGE = model(
    "large",
    ["input", "2.5", M, 0],
    ["input", "5", M, 200_001],
    ["output", "10", M, 0],
    ["web_search", "10", 1000, 0],
)
VECTORS = model("vectors", ["input", "0.02", M, 0])


def seed(*models: dict[str, Any], **more: Any) -> dict[str, Any]:
    maker = {"id": "maker", "address": r"https://api\.maker\.example", "models": list(models)}
    seller = {
        "id": "seller",
        "address": r"https://seller\.example",
        "models": [model("small", ["input", "9", M, 0], ["output", "9", M, 0])],
    }
    head = {"source": "genai-prices 1.0", "currency": "USD", "read_on": "2026-11-30"}
    return {**head, "providers": [maker, seller], **more}


@pytest.fixture
def lists(tmp_path: Path) -> Any:
    """Writes a list and runs the command on it; gives back what it said."""

    def run(content: object, *arguments: str) -> str:
        path, out = tmp_path / "list.json", StringIO()
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        call_command("price_import", "--file", str(path), *arguments, stdout=out)
        return out.getvalue()

    return run


def rates(key: str, **where: Any) -> dict[str, Decimal]:
    price = price_current(key, **where)
    return {r.component: r.price for r in price.rates if not r.min_prompt_tokens} if price else {}


def test_new_prices_are_written_once_on_both_sides(lists: Any) -> None:
    """Cost in dollars as listed; the user price at 0.9 and 20 % on top: 0.15 × 0.9 × 1.2 = 0.162."""
    said = lists(seed(SMALL, LARGE, VECTORS), "--yes", "--exchange-rate", "0.9", "--markup", "1.2")
    assert "new      cost of chat/small: cache_read 0.075, cache_write 0.15, input 0.15" in said
    assert "6 new, 0 changed, 0 gone, 0 kept, 0 same." in said
    assert "6 price versions were written." in said
    assert rates("chat/small", side="cost")["input"] == D("0.15")
    assert rates("chat/small")["input"] == D("0.162")
    assert rates("embedding/vectors")["input"] == D("0.0216")
    version = PriceVersion.objects.get(price_key="chat/large", side="cost")
    assert (version.currency, version.source, version.approved_by) == (
        "USD",
        "genai-prices 1.0",
        "price_import",
    )
    tiers = {(c.component, c.min_prompt_tokens, c.per_units): c.price for c in version.components.all()}
    assert (tiers["input", 200_001, M], tiers["web_search", 0, 1000]) == (5, 10)

    again = lists(seed(SMALL, LARGE, VECTORS), "--yes", "--exchange-rate", "0.9", "--markup", "1.2")
    assert "0 new, 0 changed, 0 gone, 0 kept, 6 same." in again
    assert "Nothing to write" in again
    assert (PriceVersion.objects.count(), ExchangeRate.objects.count()) == (6, 1)


def test_what_changed_and_what_is_gone_is_shown(lists: Any) -> None:
    lists(seed(SMALL, LARGE), "--yes", "--side", "cost")
    dearer = {**SMALL, "modes": {"standard": [["input", "0.2", M, 0], ["output", "0.6", M, 0]]}}
    said = lists(seed(dearer, source="genai-prices 1.1"), "--yes", "--side", "cost")
    assert (
        "changed  cost of chat/small: cache_read 0.075 → 0.2, cache_write 0.15 → 0.2, input 0.15 → 0.2, "
        "input_image 0.15 → 0.2 USD" in said
    )
    assert "gone     cost of chat/large: no longer listed; its price stays" in said
    assert rates("chat/small", side="cost")["input"] == D("0.2")
    assert rates("chat/large", side="cost")["input"] == D("2.5")
    old, new = PriceVersion.objects.filter(price_key="chat/small").order_by("effective_from")
    assert old.effective_to == new.effective_from


def test_without_an_exchange_rate_only_costs_are_read(lists: Any) -> None:
    said = lists(seed(SMALL), "--yes")
    assert "User prices were left out: there is no exchange rate from USD to EUR" in said
    assert rates("chat/small") == {}
    assert rates("chat/small", side="cost")


def test_one_side_alone_and_a_time_with_a_zone(lists: Any) -> None:
    """At midnight in Berlin it is still the day before in UTC."""
    begin = "2099-01-01T00:00:00+01:00"
    lists(seed(SMALL), "--yes", "--side", "price", "--exchange-rate", "2", "--from", begin)
    (version,) = PriceVersion.objects.all()
    assert (version.side, version.effective_from) == ("price", datetime(2098, 12, 31, 23, tzinfo=UTC))
    lists(seed(LARGE), "--yes", "--side", "cost", "--from", "2099-01-01T00:00")
    assert PriceVersion.objects.get(price_key="chat/large").effective_from == datetime(2099, 1, 1, tzinfo=UTC)


def test_a_list_in_the_installations_currency_needs_no_rate(lists: Any) -> None:
    lists(seed(SMALL, currency="EUR"), "--yes")
    assert rates("chat/small") == rates("chat/small", side="cost")


@pytest.mark.parametrize(
    ("pattern", "keys"),
    [
        ("small", {"chat/small"}),
        ("MAKER/*", {"chat/small", "chat/large", "embedding/vectors"}),
        ("embedding/*", {"embedding/vectors"}),
        ("l*", {"chat/large"}),
    ],
)
def test_models_are_chosen_by_pattern(pattern: str, keys: set[str], lists: Any) -> None:
    lists(seed(SMALL, LARGE, VECTORS), "--yes", "--side", "cost", "--model", pattern)
    assert set(PriceVersion.objects.values_list("price_key", flat=True)) == keys


def test_a_later_date_and_another_mode(lists: Any) -> None:
    both = {**SMALL, "modes": SMALL["modes"] | {"batch": [["input", "0.1", M, 0], ["output", "0.3", M, 0]]}}
    said = lists(seed(both), "--yes", "--side", "cost", "--from", "2099-01-01")
    assert "new      cost of chat/small (batch): cache_read 0.1" in said
    assert rates("chat/small", side="cost") == {}
    then = datetime(2099, 1, 1, tzinfo=UTC)
    assert rates("chat/small", side="cost", mode="batch", at=then)["input"] == D("0.1")
    said = lists(
        seed(LARGE, {**both, "modes": {"standard": VECTORS["modes"]["standard"]}}),
        "--dry-run",
        "--side",
        "cost",
    )
    assert "kept     cost of embedding/small" not in said
    kept = lists(
        seed({**SMALL, "modes": {"standard": [["input", "1", M, 0], ["output", "1", M, 0]]}}),
        "--yes",
        "--side",
        "cost",
    )
    assert "kept     cost of chat/small: a later price is set already" in kept


def test_a_price_that_a_person_set_stays(lists: Any) -> None:
    price_set(price_key="chat/small", rates=PRICE, side="cost", approved_by="t")
    said = lists(seed(SMALL), "--yes", "--side", "cost")
    assert "kept     cost of chat/small: it was set by staff" in said
    assert rates("chat/small", side="cost")["input"] == D(1)


def test_servers_are_known_by_their_address(lists: Any) -> None:
    """A name means what its server's owner sells; what only our own server sells has nobody else's price."""
    for name, url, upstream, key in (
        ("a", "https://seller.example/v1", "small-2026", "chat/resold"),
        ("b", "https://api.maker.example/v1", "Large", "chat/ours"),
        ("c", "http://10.0.0.1:8000/v1", "small", "chat/small"),
    ):
        backend = backend_put(name=name, kind="openai", base_url=url)
        deployment_put(
            backend=backend, upstream_model=upstream, purpose="chat", public_name=name, price_key=key
        )
    said = lists(seed(SMALL, LARGE), "--yes", "--side", "cost")
    assert rates("chat/resold", side="cost")["input"] == D(9)
    assert rates("chat/ours", side="cost")["input"] == D("2.5")
    assert "kept     cost of chat/small: a server of your own sells under this key" in said
    assert rates("chat/small", side="cost") == {}


def test_nothing_is_written_unasked(lists: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    with pytest.raises(CommandError, match="approve with --yes"):
        lists(seed(SMALL), "--side", "cost")
    assert "Nothing was written (--dry-run)" in lists(seed(SMALL), "--dry-run", "--exchange-rate", "2")
    assert not PriceVersion.objects.exists()
    assert not ExchangeRate.objects.exists()


@pytest.mark.parametrize(("typed", "written"), [("y\n", 1), ("n\n", 0), ("", 0)])
def test_a_person_is_asked(typed: str, written: int, lists: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(typed))
    said = lists(seed(SMALL), "--side", "cost")
    assert "Write 1 price versions? [y/N]" in said
    assert ("Nothing was written." in said) is not bool(written)
    assert PriceVersion.objects.count() == written


BROKEN = model("broken", ["input", "-1", M, 0])


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ("not json", (), "is not a list of prices"),
        ("[]", (), "is not a list of prices"),
        (seed(BROKEN), (), "must be a decimal of 0 or more"),
        (seed(model("odd", ["input", "dear", M, 0])), (), "InvalidOperation"),
        (
            seed(model("late", ["input", "1", M, 100])),
            (),
            "maker/late: input: a rate for prompts from 0 tokens",
        ),
        (seed(SMALL), ("--model", "nothing*"), r"no model like nothing\*"),
        (seed(SMALL), ("--markup", "dear"), "--markup takes a number"),
        (seed(SMALL), ("--markup", "0"), "above 0"),
        (seed(SMALL), ("--from", "soon"), "--from takes a date"),
        (seed(SMALL), ("--from", "2020-02-31"), "--from takes a date"),
        (seed(SMALL), ("--from", "2020-01-01"), "only be imported from now on"),
        (seed(SMALL), ("--exchange-rate", "1e-12"), "above 0"),
    ],
)
def test_bad_input_is_a_sentence(content: object, arguments: tuple[str, ...], words: str, lists: Any) -> None:
    with pytest.raises(CommandError, match=words):
        lists(content, "--yes", *arguments)
    assert not PriceVersion.objects.exists()


def test_a_list_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("price_import", "--file", str(tmp_path / "none.json"))


def test_a_price_set_after_the_differences_were_shown_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps(seed(SMALL)))
    plan = import_plan(seed_read(path), sides=("cost",))
    price_set(price_key="chat/small", rates=PRICE, side="cost", approved_by="t")
    with pytest.raises(PriceConflict, match="meanwhile"):
        import_write(plan, approved_by="t", effective_from=now() + timedelta(days=1))


@pytest.mark.parametrize(
    ("match", "name", "holds"),
    [
        ({"equals": "a"}, "a", True),
        ({"starts_with": "a"}, "ab", True),
        ({"ends_with": "a"}, "ab", False),
        ({"contains": "b"}, "abc", True),
        ({"regex": "^a.c$"}, "abc", True),
        ({"or": [{"equals": "x"}, {"equals": "a"}]}, "a", True),
        ({"and": [{"starts_with": "a"}, {"ends_with": "b"}]}, "ac", False),
    ],
)
def test_names_match_clauses(match: dict[str, Any], name: str, holds: bool) -> None:
    assert means(match, name) is holds


def test_the_shipped_list_is_whole_and_imports() -> None:
    """Every price of it can be written, and a second time nothing is left to do."""
    exchange_rate_set(currency="USD", rate=D("0.93"), entered_by="t")
    shipped = seed_read()
    assert shipped.source.startswith("genai-prices ")
    assert (Path(__file__).parents[3] / "app/billing/price_seed/LICENSE").read_text().count(
        "MIT License"
    ) == 1
    openai = shipped.provider_at("https://api.openai.com/v1")
    assert openai.model_of("gpt-4o-2024-11-20").id == "gpt-4o"
    assert shipped.provider_at("http://127.0.0.1:8000/v1") is None
    plan = import_plan(shipped, patterns=["openai/*", "anthropic/*", "google/*"])
    assert import_write(plan, approved_by="t") == len(plan.rows) > 300
    again = import_plan(shipped, patterns=["openai/*", "anthropic/*", "google/*"])
    assert {row.change for row in again.rows} == {"same"}
    claude = rates("chat/claude-3-7-sonnet-latest", side="cost")
    assert (claude["input"], claude["cache_write"], claude["cache_write_long"]) == (3, D("3.75"), 6)
    assert rates("chat/claude-3-7-sonnet-latest")["output"] == D("13.95")
