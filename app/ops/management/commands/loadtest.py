"""`manage.py loadtest DEPLOYMENT`: calls as long as the recorded ones, more and more of them at once, up to the knee.

The knee is where more calls at once bring no more tokens a second and only make the first token come later. It is shown
beside what the server itself counted. What it may cost is said first; the installation pays.
"""

import json
from collections.abc import Sequence
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import CommandError, CommandParser

from app.catalog.services import deployment_knee_set
from app.catalog.telemetry import Page
from app.common.told import ToldCommand
from app.gate.clients import lone_client
from app.ops.load_curve import Knee, Level, knee_of
from app.ops.load_testing import (
    ENOUGH,
    Plan,
    deployment_named,
    levels_run,
    page_of_deployment,
    plan_made,
    price_most,
)
from app.ops.told import agreed

LEVELS = "1,2,4,8,16,32,64"
_HEAD = (
    "at once", "calls", "failed", "tokens/s", "calls/s", "TTFT p50", "TTFT p95", "ITL p50", "server tokens/s",
    "server counts",
)  # fmt: skip


class Command(ToldCommand):
    """Find the knee of a deployment."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("deployment", metavar="DEPLOYMENT", help="id, public name, or name@server")
        parser.add_argument("--levels", default=LEVELS, help=f"calls at once, with commas; default {LEVELS}")
        parser.add_argument(
            "--rounds", type=int, default=3, help="calls of each place at each level; default 3"
        )
        parser.add_argument("--calls", type=int, default=12, help="calls of a level at least; default 12")
        parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
        parser.add_argument("--yes", action="store_true", help="spend what it costs without asking")

    def act(self, **options: Any) -> None:
        target = deployment_named(options["deployment"])
        for name in ("rounds", "calls"):
            if options[name] < 1:
                raise CommandError(f"--{name} must be 1 or more.")
        plan = plan_made(
            target,
            levels=_levels(options["levels"]),
            rounds=options["rounds"],
            least=options["calls"],
        )
        calls, price = price_most(plan)
        self._introduce(plan)
        agreed(
            self, f"At most {calls} calls to {target.name}", expected=price, most=price, yes=options["yes"]
        )
        found = async_to_sync(_run)(self, plan, page_of_deployment(target.deployment_id))
        knee = knee_of(found)
        if knee is not None:
            deployment_knee_set(deployment_id=target.deployment_id, tokens_per_s=knee.all_tokens_per_s)
        if options["json"]:
            self.stdout.write(json.dumps(_shown(plan, found, knee)))
            return
        for line in table(found):
            self.stdout.write(line)
        self.stdout.write(verdict(found, knee))

    def _introduce(self, plan: Plan) -> None:
        if plan.source == "ledger":
            self.stderr.write(f"Lengths of the last {len(plan.lengths)} calls on record.")
        else:
            self.stderr.write(
                f"Fewer than {ENOUGH} calls of this deployment are on record: built-in lengths are used, and its real "
                "use may have another knee."
            )
        if plan.cut:
            self.stderr.write(
                f"{plan.cut} of {len(plan.lengths)} lengths were cut to fit its window and output cap."
            )

    def told(self, level: Level) -> None:
        """Say how a level went, as it ends."""
        self.stderr.write(
            f"{level.concurrency} at once: {level.tokens_per_s} tokens/s in {level.seconds:.0f} s"
            + (f", {level.failed} failed" if level.failed else "")
        )


async def _run(command: Command, plan: Plan, page: Page) -> list[Level]:
    async with lone_client():
        return await levels_run(plan, page, told=command.told)


def _levels(text: str) -> list[int]:
    try:
        levels = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        levels = []
    if not levels or min(levels) < 1:
        raise CommandError(
            "--levels wants whole numbers of 1 or more with commas between them, like 1,2,4,8."
        )
    return levels


def _shown(plan: Plan, levels: Sequence[Level], knee: Knee | None) -> dict[str, Any]:
    return {
        "deployment": str(plan.target.deployment_id),
        "name": plan.target.name,
        "lengths": {"source": plan.source, "calls": len(plan.lengths), "cut": plan.cut},
        "levels": [level.shown() for level in levels],
        "knee": None if knee is None else {name: getattr(knee, name) for name in Knee.__slots__},
        "verdict": verdict(levels, knee),
    }


def verdict(levels: Sequence[Level], knee: Knee | None) -> str:
    """What was found, in a sentence or two."""
    last = levels[-1]
    if knee is not None:
        return (
            f"Knee: {knee.concurrency} at once, {knee.tokens_per_s} output tokens/s, {knee.all_tokens_per_s} with "
            f"input, first token after {_ms(knee.ttft_p50_ms)}. Beyond it more calls at once only wait."
        )
    if last.failed * 2 > last.calls:
        return (
            f"No knee: at {last.concurrency} at once most calls failed. See the server's log, or begin lower."
        )
    best = max(levels, key=lambda one: one.tokens_per_s)
    if best is not last:
        return (
            f"No knee up to {last.concurrency} at once: throughput stopped growing at {best.concurrency}, but first "
            "tokens come no later. Go on with higher --levels."
        )
    return f"No knee up to {last.concurrency} at once: throughput still grew. Go on with higher --levels."


def table(levels: Sequence[Level]) -> list[str]:
    """The levels as lines of text."""
    rows = [_HEAD, *(_row(level) for level in levels)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]


def _row(level: Level) -> tuple[str, ...]:
    ttft, itl, server = level.ttft_ms, level.itl_ms, level.server
    return (
        str(level.concurrency),
        str(level.calls),
        str(level.failed),
        f"{level.tokens_per_s:.1f}",
        f"{level.calls_per_s:.2f}",
        _ms(ttft["p50"] if ttft else None),
        _ms(ttft["p95"] if ttft else None),
        _ms(itl["p50"] if itl else None),
        "–" if server is None else f"{server['tokens_per_s']:.1f}",
        _counts(level),
    )


def _counts(level: Level) -> str:
    """Whether the server counted what the ledger booked; other callers' tokens are in its figure too."""
    if level.server is None:
        return "–"
    more = [
        int(level.server.get(name, own) - own)
        for name, own in (("input_tokens", level.input_tokens), ("output_tokens", level.output_tokens))
    ]
    return "equal" if not any(more) else f"{more[0]:+} in, {more[1]:+} out"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f} ms"
