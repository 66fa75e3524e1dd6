"""`manage.py route_test FILE`: which deployment would answer each prompt, and which is expected to. Sends nothing."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from app.accounts.models import Level
from app.catalog.models import CAPABILITIES
from app.common.errors import AppError
from app.gate.routing import Routed, Wish, decide
from inference_client.tokens import counter

_HELP = (
    'FILE has one JSON object a line: {"model", "prompt", "expected"} and, as wished, level, capabilities and '
    "max_output_tokens. "
    "`expected` is a deployment as printed here, a public model name, or null where nobody may answer. Exit code 1 "
    "when a line is answered by another. Loads and failures of the running processes are not known here."
)


class Command(BaseCommand):
    help = _HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="JSON lines, or - for standard input")
        parser.add_argument("--explain", action="store_true", help="say for each deployment why")

    def handle(self, *args: Any, **options: Any) -> None:
        failures = 0
        for number, line in enumerate(_lines(options["file"]), 1):
            if not line.strip():
                continue
            case = _case(line, number)
            chosen, models, reasons = _answer(_wish(case, number))
            expected = case["expected"]
            fits = expected in {chosen, *models}
            failures += not fits
            self.stdout.write(
                f"{'ok  ' if fits else 'FAIL'} {number}: {case['model']} → {chosen or 'nobody'}"
                + ("" if fits else f", expected {expected or 'nobody'}")
            )
            # A refusal is the reason itself, so it is said in any case.
            for reason in reasons if options["explain"] or (chosen is None and not fits) else ():
                self.stdout.write(f"       {reason}")
        if failures:
            sys.exit(1)


def _answer(wish: Wish) -> tuple[str | None, list[str], list[str]]:
    """(deployment or None, its other names, reasons)."""
    try:
        routed: Routed = decide(wish)
    except AppError as exc:
        return None, [], [exc.message]
    first = routed.decision.chosen[0]
    return first.name, [first.model], [*routed.explain(), *(str(n["message"]) for n in routed.notices)]


def _lines(name: str) -> list[str]:
    if name == "-":
        return sys.stdin.read().splitlines()
    try:
        return Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandError(f"{name} cannot be read: {exc}.") from exc


def _case(line: str, number: int) -> dict[str, Any]:
    """One line. Errors: CommandError naming it."""
    try:
        case = json.loads(line)
    except json.JSONDecodeError as exc:
        raise CommandError(f"Line {number} is not JSON: {exc}.") from exc
    if not isinstance(case, dict) or "expected" not in case:
        raise CommandError(f"Line {number} needs model, prompt and expected (null: nobody).")
    for name in ("model", "prompt"):
        if not isinstance(case.get(name), str):
            raise CommandError(f"Line {number}: `{name}` must be text.")
    return case


def _wish(case: dict[str, Any], number: int) -> Wish:
    level, needed = case.get("level", Level.INTERNAL.value), case.get("capabilities", [])
    output = case.get("max_output_tokens", Wish.__dataclass_fields__["output_tokens"].default)
    if level not in Level.values:
        raise CommandError(f"Line {number}: `level` is one of {', '.join(Level.values)}.")
    if not isinstance(needed, list) or not set(needed) <= set(CAPABILITIES):
        raise CommandError(f"Line {number}: `capabilities` is a list of {', '.join(CAPABILITIES)}.")
    if type(output) is not int or output < 1:
        raise CommandError(f"Line {number}: `max_output_tokens` is a whole number above 0.")
    return Wish(
        model=case["model"],
        level=level,
        input_tokens=counter("o200k_base").count(case["prompt"]),
        output_tokens=output,
        capabilities=frozenset(needed),
    )
