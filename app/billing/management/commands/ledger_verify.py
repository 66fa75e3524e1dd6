"""`manage.py ledger_verify`: rebuild every balance from its rows, and hold the rows against the servers' counters."""

import json
import sys
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings

from app.billing.models import Delivery
from app.billing.reconciling import Reconciled, Tokens, servers_reconcile
from app.billing.rollups import rollups_rebuild
from app.billing.verification import Verification, ledger_verify, windows_rebuild
from app.common.clock import now
from app.common.told import ToldCommand


class Command(ToldCommand):
    help = (
        "Replay the ledger and compare every balance to the digit; then hold it against the servers' own counters. "
        "Exit code 1 when the ledger differs or cannot be read, 2 when only a server knows of other traffic."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--rebuild", action="store_true", help="set windows and roll-ups to what their rows add up to"
        )
        parser.add_argument("--json", action="store_true", help="one object, for programs")
        parser.add_argument(
            "--hours",
            type=float,
            default=48.0,
            help="how far back servers are asked; samples are kept two days",
        )

    def act(self, **options: Any) -> None:
        """Rebuild when asked to, then compare."""
        rebuilt = windows_rebuild() if options["rebuild"] else None
        if options["rebuild"]:
            rollups_rebuild()
        result = ledger_verify()
        servers = servers_reconcile(since=now() - timedelta(hours=options["hours"]), until=now())
        if options["json"]:
            self.stdout.write(json.dumps(_object(result, servers, rebuilt), indent=2))
        else:
            self._tell(result, servers, rebuilt)
        if result.differences:
            sys.exit(1)
        if any(server.verdict != "agrees" for server in servers):
            sys.exit(2)

    def _tell(self, result: Verification, servers: list[Reconciled], rebuilt: int | None) -> None:
        if rebuilt is not None:
            self.stdout.write(
                f"{rebuilt} windows were set to the sum of their rows; the roll-ups were made anew."
            )
        for item in result.differences:
            self.stdout.write(f"{item.check}: {item.row} has {item.stored}, its rows give {item.rebuilt}")
        self.stdout.write(
            f"{result.entries} entries, {result.price:f} {settings.CURRENCY}: "
            + (
                f"{len(result.differences)} differences."
                if result.differences
                else "every balance agrees to the digit."
            )
        )
        for server in servers:
            self.stdout.write(server.sentence())
            for moment in server.moments:
                self.stdout.write(
                    f"  not ours: {moment.tokens.input} input and {moment.tokens.output} output tokens between "
                    f"{moment.from_:%Y-%m-%d %H:%M:%S} and {moment.to:%H:%M:%S} UTC"
                )
        if dead := Delivery.objects.filter(state="dead").count():
            self.stdout.write(f"{dead} entries were not taken by a webhook; see Deliveries under /admin/.")


def _object(result: Verification, servers: list[Reconciled], rebuilt: int | None) -> dict[str, Any]:
    return {
        "entries": result.entries,
        "price": {"amount": f"{result.price:f}", "currency": settings.CURRENCY},
        "rebuilt_windows": rebuilt,
        "differences": [
            {"check": d.check, "row": d.row, "stored": d.stored, "rebuilt": d.rebuilt}
            for d in result.differences
        ],
        "servers": [
            {
                "backend": server.backend,
                "from": server.from_.isoformat(),
                "to": server.to.isoformat(),
                "verdict": server.verdict,
                "theirs": _tokens(server.theirs),
                "ours": _tokens(server.ours),
                "allowed": _tokens(server.allowed),
                "not_ours": [
                    {"from": m.from_.isoformat(), "to": m.to.isoformat(), **_tokens(m.tokens)}
                    for m in server.moments
                ],
            }
            for server in servers
        ],
        "outbox": {state: Delivery.objects.filter(state=state).count() for state in ("pending", "dead")},
    }


def _tokens(tokens: Tokens) -> dict[str, int]:
    return {"input_tokens": tokens.input, "output_tokens": tokens.output}
