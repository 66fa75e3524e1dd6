"""`manage.py backend_add URL`: connect a model server, after a look at what it is and serves."""

import sys
from decimal import Decimal, InvalidOperation
from getpass import getpass
from typing import Any
from urllib.parse import urlsplit

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from django.urls import reverse
from django.utils.http import urlencode

from app.accounts.models import Level
from app.billing.prices import price_set
from app.billing.selectors import price_current
from app.billing.types import Price, Rate
from app.catalog.models import Backend, Deployment
from app.catalog.probing import Found, address_clean, kind_named, options_read, server_ask
from app.catalog.selectors import targets
from app.catalog.services import CONNECTED_PRIORITY, backend_connect, model_put, name_free
from app.common.told import ToldCommand
from app.gate.trying import Tried, target_try
from app.ops.servers import MANY, OUTSIDE_CHAT, outside_at
from app.settings import env
from inference_client.adapters.kinds import GENERIC
from inference_client.servers import ModelFacts

TRIED = 3
"""Models that get a test call, when several are added at once."""


class Command(ToldCommand):
    """Asks the server, which costs no tokens, and adds it with its models; a repeat brings them up to date."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="up to and including /v1, such as http://host:8000/v1")
        parser.add_argument("--name", default="", help="what to call the server; default: its host and port")
        parser.add_argument(
            "--kind", default="", help="what it is, if the look at it does not tell: vllm, openai…"
        )
        key = parser.add_mutually_exclusive_group()
        key.add_argument("--key-env", metavar="NAME", help="the environment variable that holds its key")
        key.add_argument("--key", metavar="-", help="read its key from standard input")
        parser.add_argument(
            "--model", action="append", default=[], metavar="NAME", help="only this one; may be repeated"
        )
        parser.add_argument(
            "--option",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="what its kind asks for beside; repeat",
        )
        parser.add_argument(
            "--no-test",
            dest="test",
            action="store_false",
            help="make no tiny call, which the installation would pay",
        )
        parser.add_argument("--price-in", metavar="X", help="per million input tokens")
        parser.add_argument("--price-out", metavar="Y", help="per million output tokens")
        parser.add_argument("--region", help="where it stands, for people to see")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--leaves-premises", dest="leaves", action="store_true", default=None)
        where.add_argument("--on-premises", dest="leaves", action="store_false")
        parser.add_argument("--clearance", choices=Level.values, help="the highest level its models may see")

    def act(self, **options: Any) -> None:
        url, rates = address_clean(options["url"]), _rates(options["price_in"], options["price_out"])
        key = _key(options["key_env"], options["key"])
        known = _known(url, options["name"])
        # A key is sent only where it was given for: not to another address under an old name.
        kept = known.api_key if known is not None and known.base_url == url else ""
        own = options_read(kind_named(options["kind"] or GENERIC.name), options["option"])
        found = server_ask(url, kept if key is None else key, kind=options["kind"], options=own)
        if found.reachable:
            self._show(url, found)
        chosen = _chosen(found, options["model"], url)
        with transaction.atomic():
            backend = backend_connect(
                backend=known,
                name=options["name"],
                base_url=url,
                kind=kind_named(options["kind"] or found.kind),
                api_key=kept if key is None else key,
                region=options["region"],
                leaves_premises=options["leaves"],
                options=own,
            )
            rows = [
                model_put(
                    backend=backend, model=m, clearance=options["clearance"], priority=CONNECTED_PRIORITY
                )
                for m in chosen
            ]
            for row, _ in rows:
                _price(row, rates)
        self._told(backend, known is None, rows)
        if options["test"] and backend.enabled:
            self._try([row for row, _ in rows][:TRIED])

    def _try(self, rows: list[Deployment]) -> None:
        served = {target.deployment_id: target for target in targets(Deployment.Purpose.CHAT.value)}
        for row in rows:
            if (target := served.get(row.pk)) is not None:
                self.stdout.write(f"  {row.public_name}: {_tried_words(async_to_sync(target_try)(target))}")

    def _show(self, url: str, found: Found) -> None:
        health = {True: "healthy", False: "not healthy now", None: "health not known"}[found.healthy]
        version = f", version {found.version}" if found.version else ""
        self.stdout.write(f"{url}: {found.kind}, {health}{version}")
        for model in found.models:
            self.stdout.write(f"  {model.name}: {_window(model.context_window)}")

    def _told(self, backend: Backend, created: bool, rows: list[tuple[Deployment, bool]]) -> None:
        where = "leaves the premises" if backend.leaves_premises else "on the premises"
        self.stdout.write(f"{'Added' if created else 'Updated'} the server {backend.name} ({where}).")
        if not backend.enabled:
            self.stdout.write("It is switched off; an administrator can switch it on under /admin/.")
        for row, new in rows:
            self.stdout.write(
                f"{'Added' if new else 'Updated'} the model {row.public_name}: {_window(row.context_window)}, "
                f"cleared for {row.clearance}, {_price_words(price_current(row.price_key))}"
            )
            if price_current(row.price_key) is None:
                self.stdout.write(_price_how(row.price_key))
        served = {row.pk for row, _ in rows}
        for row in backend.deployments.filter(purpose=Deployment.Purpose.CHAT).exclude(pk__in=served):
            self.stdout.write(f"Left as it is: the model {row.public_name}, which was added before.")


def _tried_words(tried: Tried) -> str:
    if tried.problem:
        return f"the test call was not answered. {tried.problem}"
    usage = "tells its usage" if tried.tells_usage else "tells no usage, so bills will be estimates"
    first = "" if tried.ttft_ms is None else f", first token after {tried.ttft_ms} ms"
    speed = "" if tried.tokens_per_s is None else f", then {tried.tokens_per_s:g} tokens/s"
    cost = "" if tried.price is None else f"; the test cost {tried.price.normalize():f} {settings.CURRENCY}"
    return f"answers, {usage}{first}{speed}{cost}."


def _known(url: str, name: str) -> Backend | None:
    """The server to bring up to date: the one of that name, or without one that of the address."""
    if name:
        return Backend.objects.filter(name=name).first()
    known = outside_at(url).first()
    if known is not None and known.name.startswith(OUTSIDE_CHAT):
        # It came from INFERENCE_URL; now somebody wants it for good, so it no longer goes with that variable.
        known.name = name_free(urlsplit(url).netloc)
    return known


def _key(variable: str | None, given: str | None) -> str | None:
    """The key; None when none was named, and an earlier one stays."""
    if variable:
        value = env.PROCESS.get(variable, "").strip()
        if not value:
            raise CommandError(f"The environment variable {variable} is not set, so there is no key to use.")
        return value
    if given is None:
        return None
    if given != "-":
        raise CommandError(
            "A key on the command line can be read by others on this machine and stays in the shell's history; "
            "consider this one known and get another. Give it with --key-env NAME, or --key - to type or pipe it."
        )
    value = (getpass("Key of the server: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not value:
        raise CommandError("No key came on standard input.")
    return value


def _chosen(found: Found, names: list[str], url: str) -> list[ModelFacts]:
    """The models to add. Errors: CommandError when the server cannot be used as it is."""
    if not found.reachable:
        raise CommandError(f"Nothing was added. {url}: {found.problem}")
    if found.key_refused:
        raise CommandError(
            f"Nothing was added. {url} refused the key, or wants one: give it with --key-env NAME or --key -."
        )
    if names:
        if missing := [name for name in names if found.models and not found.lists(name)]:
            raise CommandError(
                f"Nothing was added. {url} does not list {', '.join(missing)}; the names it knows stand above."
            )
        return [found.model(name) for name in names]
    if not found.chat_models:
        why = f" {found.problem}" if found.problem else ""
        raise CommandError(f"Nothing was added. {url} names no chat model.{why} Name one with --model.")
    if len(found.chat_models) > MANY:
        raise CommandError(
            f"Nothing was added. {url} names {len(found.chat_models)} chat models; choose with --model, several "
            "times if you like."
        )
    return list(found.chat_models)


def _rates(price_in: str | None, price_out: str | None) -> tuple[Rate, ...]:
    """Both or none. Errors: CommandError."""
    if price_in is None and price_out is None:
        return ()
    if price_in is None or price_out is None:
        raise CommandError("Give both --price-in and --price-out: a price of only one of them is not known.")
    try:
        return (
            Rate(component="input", price=Decimal(price_in)),
            Rate(component="output", price=Decimal(price_out)),
        )
    except (InvalidOperation, ValueError) as exc:
        raise CommandError(
            "A price is a number of 0 or more with at most 9 decimals, such as 0.25, per million tokens."
        ) from exc


def _price(row: Deployment, rates: tuple[Rate, ...]) -> None:
    """Set what was given, unless it is in force already."""
    present = price_current(row.price_key)
    if rates and (present is None or not set(rates) <= set(present.rates)):
        price_set(price_key=row.price_key, rates=rates, approved_by="backend_add", source="backend_add")


def _price_words(price: Price | None) -> str:
    if price is None:
        return "price unknown"
    named = {rate.component: rate.price for rate in price.rates if not rate.min_prompt_tokens}
    parts = [f"{named[name].normalize():f} {name}" for name in ("input", "output") if name in named]
    return f"{' / '.join(parts)} {price.currency} per million tokens"


def _price_how(price_key: str) -> str:
    address = reverse("admin:billing_priceversion_add") + "?" + urlencode({"price_key": price_key})
    return (
        "  The price is missing, and nobody with a money budget can use the model before it has one. Repeat this "
        f"command with --price-in X --price-out Y, or set it at {settings.PUBLIC_URL}{address}"
    )


def _window(tokens: int | None) -> str:
    return f"window {tokens} tokens" if tokens else "window unknown"
