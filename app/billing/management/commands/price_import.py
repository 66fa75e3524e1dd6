"""`manage.py price_import`: costs and user prices of providers' models, from the list that comes with Tessera."""

import sys
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime

from app.billing.importing import Plan, PlannedPrice, exchange_factor, import_plan, import_write
from app.billing.rates import exchange_rate_set
from app.billing.seed import SHIPPED, Seed, seed_read
from app.billing.showing import rates_difference, rates_words
from app.billing.types import Side
from app.common.errors import AppError

APPROVED_BY = "price_import"
MANY = 60
"""More new prices than this are counted, not listed."""
_SIDES: dict[str, tuple[Side, ...]] = {"cost": ("cost",), "price": ("price",), "both": ("cost", "price")}


class Command(BaseCommand):
    """Shows what is new, changed and gone, asks, and writes new versions. A repeat writes nothing."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--yes", action="store_true", help="approve without being asked")
        parser.add_argument("--dry-run", action="store_true", help="only show the differences")
        parser.add_argument(
            "--model", action="append", default=[], metavar="PATTERN",
            help="only these, such as gpt-4o, 'claude-*' or 'openai/*'; may be repeated",
        )  # fmt: skip
        parser.add_argument(
            "--side", choices=[*_SIDES], default="both", help="what the provider asks, what the payer owes"
        )
        parser.add_argument(
            "--markup", default="1", metavar="FACTOR", help="user price = cost × this; 1.2 adds 20 %%"
        )
        parser.add_argument(
            "--exchange-rate", metavar="X", help="enter it from now on: what one dollar is worth here"
        )
        parser.add_argument(
            "--from", dest="begin", metavar="TIME", help="date or time (UTC) of effect; default: now"
        )
        parser.add_argument("--file", type=Path, default=SHIPPED, help="another list in the same form")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._act(**options)
        except AppError as exc:
            raise CommandError(exc.message) from exc

    def _act(self, **options: Any) -> None:
        begin, markup = _instant(options["begin"]), _number(options["markup"], "--markup")
        seed = seed_read(options["file"])
        self.stdout.write(f"{seed.source}, read on {seed.read_on}, prices in {seed.currency}.")
        if options["exchange_rate"]:
            self._exchange(seed, options)
        plan = import_plan(
            seed, sides=_SIDES[options["side"]], patterns=options["model"], markup=markup, at=begin
        )
        if options["model"] and not plan.rows:
            raise CommandError(
                f"The list has no model like {', '.join(options['model'])}. Nothing was imported."
            )
        self._show(plan, seed)
        count = len(plan.of("new", "changed"))
        if not count:
            self.stdout.write("Nothing to write: every price of the list stands already, or is kept.")
        elif options["dry_run"]:
            self.stdout.write("Nothing was written (--dry-run).")
        elif options["yes"] or self._asked(count):
            written = import_write(plan, approved_by=APPROVED_BY, effective_from=begin)
            self.stdout.write(f"{written} price versions were written.")
        else:
            self.stdout.write("Nothing was written.")

    def _exchange(self, seed: Seed, options: dict[str, Any]) -> None:
        rate = _number(options["exchange_rate"], "--exchange-rate")
        if options["dry_run"] or exchange_factor(seed.currency) == rate:
            return
        exchange_rate_set(currency=seed.currency, rate=rate, entered_by=APPROVED_BY, source=APPROVED_BY)

    def _show(self, plan: Plan, seed: Seed) -> None:
        new = plan.of("new")
        for row in new if len(new) <= MANY else []:
            self.stdout.write(f"new      {_name(row)}: {rates_words(row.listed, row.currency)}")
        for row in plan.of("changed"):
            self.stdout.write(
                f"changed  {_name(row)}: {rates_difference(row.standing, row.listed, row.currency)}"
            )
        for row in plan.of("gone"):
            self.stdout.write(f"gone     {_name(row)}: no longer listed; its price stays until you end it")
        for row in plan.of("kept"):
            self.stdout.write(f"kept     {_name(row)}: {row.why}")
        counts = ((change, len(plan.of(change))) for change in ("new", "changed", "gone", "kept", "same"))
        self.stdout.write(", ".join(f"{count} {change}" for change, count in counts) + ".")
        if plan.unrated:
            self.stdout.write(
                f"User prices were left out: there is no exchange rate from {seed.currency} to {settings.CURRENCY}. "
                "Enter one under /admin/ or repeat with --exchange-rate X."
            )

    def _asked(self, count: int) -> bool:
        if not sys.stdin.isatty():
            raise CommandError("Nobody is there to ask: approve with --yes, or only look with --dry-run.")
        self.stdout.write(f"Write {count} price versions? [y/N] ", ending="")
        self.stdout.flush()
        return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _name(row: PlannedPrice) -> str:
    return f"{row.side} of {row.price_key}" + ("" if row.mode == "standard" else f" ({row.mode})")


def _number(text: str, option: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation as exc:
        raise CommandError(f"{option} takes a number such as 1.2, not “{text}”.") from exc
    if not number.is_finite() or not 0 < number < 1000:
        raise CommandError(f"{option} takes a number above 0 and below 1000, not “{text}”.")
    return number


def _instant(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise CommandError(f"--from takes a date such as 2027-01-01, or a time, not “{text}”.")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
