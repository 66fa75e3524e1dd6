"""`manage.py eval_answers SET --models a,b`: the same questions to several models, and what each answer is worth.

SET is a file with a question a line, see docs/evaluation.md. Side by side: facts found and cited, questions rightly
refused, tokens, price, cost, time to first token. What it will cost is said first; the installation pays.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from app.accounts.selectors import caller_by_user
from app.chat.heartbeat import beat
from app.chat.runs import runs
from app.chat.types import Ask
from app.common.redis_door import redis_close
from app.common.told import ToldCommand
from app.gate.clients import client_close
from app.ops.answer_sets import Case, cases_read
from app.ops.evaluating import Answered, Wish, answer_shown, asks_of, compare, figures_of, quote
from app.ops.told import agreed, person_named
from retrieval.selectors import collection_named, collections_readable
from retrieval.types import Viewer


class Command(ToldCommand):
    """Compare models by their answers."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("set", type=Path, metavar="SET")
        parser.add_argument("--models", required=True, help="public model names, with commas between them")
        parser.add_argument("--collection", action="append", default=[], metavar="NAME", help="search these")
        parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
        parser.add_argument("--max-output", type=int, metavar="TOKENS", help="longest answer")
        parser.add_argument("--at-once", type=int, default=1, metavar="N", help="calls beside each other")
        parser.add_argument("--as", dest="email", help="who reads; default: the first administrator")
        parser.add_argument("--answers", action="store_true", help="with --json: the answers themselves too")
        parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
        parser.add_argument("--yes", action="store_true", help="spend what it costs without asking")

    def act(self, **options: Any) -> None:
        wish = _wish(options)
        answers = async_to_sync(self._run)(wish, asks_of(wish), yes=options["yes"])
        models = list(dict.fromkeys(one.model for one in answers))
        columns = [figures_of(model, answers) for model in models]
        if options["json"]:
            each = [answer_shown(one, words=options["answers"]) for one in answers]
            shown = {"set": options["set"].name, "currency": settings.CURRENCY, "models": columns}
            self.stdout.write(json.dumps({**shown, "answers": each}, default=str, ensure_ascii=False))
            return
        for line in table(columns):
            self.stdout.write(line)

    async def _run(self, wish: Wish, asks: Sequence[tuple[Case, Ask]], *, yes: bool) -> list[Answered]:
        here = runs()
        # Without a pulse the sweeper would take this process for dead and end its calls.
        pulse = asyncio.ensure_future(beat(here))
        try:
            cost = await quote(asks)
            agreed(
                self,
                f"{cost.calls} questions with about {cost.input_tokens:,} input tokens and their passages",
                expected=cost.expected,
                most=cost.most,
                yes=yes,
            )
            return await compare(asks, at_once=wish.at_once, told=self._told)
        finally:
            pulse.cancel()
            await client_close()
            await redis_close()

    def _told(self, one: Answered) -> None:
        judged = one.judged
        if judged is None:
            said = f"no answer: {one.problem}"
        elif one.case.refuse:
            said = "rightly refused" if judged.right else "not refused"
        else:
            said = f"{judged.found} of {judged.facts} facts, {judged.cited} cited"
        self.stderr.write(f"{one.model}: {one.case.question[:70]}: {said}")


def _wish(options: Mapping[str, Any]) -> Wish:
    models = tuple(dict.fromkeys(name.strip() for name in options["models"].split(",") if name.strip()))
    if not models:
        raise CommandError("Name the models to compare: --models a,b.")
    for name in ("limit", "max_output", "at_once"):
        if options[name] is not None and options[name] < 1:
            raise CommandError(f"--{name.replace('_', '-')} must be 1 or more.")
    cases = cases_read(options["set"])
    caller = caller_by_user(person_named(options["email"], to="read"))
    viewer = Viewer(caller.principals)
    chosen = [collection_named(viewer, name) for name in options["collection"]] or list(
        collections_readable(viewer)
    )
    return Wish(
        caller=caller,
        models=models,
        cases=tuple(cases[: options["limit"]]),
        collections=tuple(collection.id for collection in chosen),
        max_output_tokens=options["max_output"],
        at_once=options["at_once"],
    )


def table(columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """The figures of all models as lines of text, a column each."""
    rows = [("", *(str(column["model"]) for column in columns))]
    rows += [(name, *(show(column) for column in columns)) for name, show in _ROWS]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        row[0].ljust(widths[0])
        + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]


def _of(part: int, whole: int) -> str:
    return f"{part}/{whole}" + (f" {part / whole:.0%}" if whole else "")


def _money(amount: Any) -> str:
    return "unknown" if amount is None else f"{amount:.6f} {settings.CURRENCY}"


def _times(spread: Mapping[str, float] | None) -> str:
    return "–" if spread is None else f"{spread['p50']:.0f} / {spread['p95']:.0f}"


_ROWS: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("questions answered right", lambda c: _of(c["right"], c["questions"])),
    ("facts found", lambda c: _of(c["facts"]["found"], c["facts"]["expected"])),
    ("  that the passages held", lambda c: _of(c["facts"]["retrieved"], c["facts"]["expected"])),
    ("facts cited", lambda c: _of(c["facts"]["cited"], c["facts"]["expected"])),
    ("rightly refused", lambda c: _of(c["refusals"]["right"], c["refusals"]["expected"])),
    ("wrongly refused", lambda c: str(c["refusals"]["wrong"])),
    ("no answer", lambda c: str(c["failed"])),
    ("input tokens", lambda c: f"{c['tokens']['input']:,}"),
    ("output tokens", lambda c: f"{c['tokens']['output']:,}"),
    ("price", lambda c: _money(c["price"])),
    ("cost", lambda c: _money(c["cost"])),
    ("calls with estimated usage", lambda c: str(c["estimated"])),
    ("TTFT p50 / p95 ms", lambda c: _times(c["ttft_ms"])),
    ("whole answer p50 / p95 ms", lambda c: _times(c["total_ms"])),
)
