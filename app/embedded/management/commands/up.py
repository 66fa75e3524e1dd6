"""`manage.py up`: start Tessera on this machine."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from app.embedded.chat_model import demonstration
from app.embedded.choice import Choice, choose, keys_mention, model_choose
from app.embedded.detach import detach, detached_from
from app.embedded.discovery import addresses, servers_find
from app.embedded.errors import EmbeddedError, Interrupted
from app.embedded.outside import outside_check
from app.embedded.paths import Layout, layout_open
from app.embedded.ports import ports_remembered
from app.embedded.start import Options, default_threads, up
from app.settings import env


class Command(BaseCommand):
    """Starts the embedded stack and stays in the foreground until it is told to stop."""

    help = "Start everything on this machine: database, queue, models, workers and the web server."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What a person may choose."""
        parser.add_argument("--data", type=Path, default=settings.DATA_DIR, help="data directory")
        parser.add_argument("--port", type=int, help="port of the web page (default: 8000 or a free one)")
        parser.add_argument("--detach", action="store_true", help="return once it is ready")
        parser.add_argument("--model", help="a GGUF file, the name of a pinned model, or `demonstration`")
        parser.add_argument("--services-only", action="store_true", help="only database, queue and models")
        parser.add_argument(
            "--threads", type=int, default=default_threads(), help="threads of the chat server"
        )
        parser.add_argument("--reports-to-parent", action="store_true", help="used by --detach")

    def handle(self, **options: Any) -> None:
        """Start, or hand over to a process of its own."""
        cache = env.PROCESS.get("TESSERA_CACHE")
        layout = layout_open(options["data"], Path(cache) if cache else None)
        if options["detach"]:
            code = detach(sys.argv, say=self._say)
            if code:
                raise SystemExit(code)
            return
        try:
            announce = self._announce(layout.log("up"), options["reports_to_parent"])
            up(self._options(layout, options), say=self._say, announce=announce)
        except Interrupted as exc:
            raise SystemExit(130) from exc
        except EmbeddedError as exc:
            raise CommandError(str(exc)) from exc

    def _options(self, layout: Layout, options: dict[str, Any]) -> Options:
        external = outside_check(settings.EXTERNAL, self._say)
        left_out = set(settings.EXTERNAL) - set(external)
        choice = self._choice(layout, options, external)
        return Options(
            layout=layout,
            model=choice.model,
            environment={
                name: value
                for name, value in {**env.PROCESS, **choice.outside}.items()
                if name not in left_out
            },
            external={**external, **choice.outside},
            public_url=env.PROCESS.get("PUBLIC_URL"),
            port=options["port"],
            threads=options["threads"],
            services_only=options["services_only"],
            drain_seconds=settings.DRAIN_SECONDS,
            queues=_queues(),
        )

    def _choice(self, layout: Layout, options: dict[str, Any], external: Mapping[str, str]) -> Choice:
        """Which chat model; asked only where a person can answer."""
        if options["model"]:
            return model_choose(layout, options["model"])
        if options["services_only"] or "INFERENCE_URL" in external:
            return Choice(model=demonstration(layout.cache))
        keys_mention(env.PROCESS, self._say)
        places = addresses(env.PROCESS, ports_remembered(layout).values())
        at_terminal = sys.stdin.isatty() and not options["reports_to_parent"]
        return choose(
            layout, find=lambda: servers_find(places), ask=input if at_terminal else None, say=self._say
        )

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _announce(self, log: Path, reports: bool) -> Callable[[str], None]:
        def announce(line: str) -> None:
            self._say(line)
            if reports:
                detached_from(log)

        return announce


def _queues() -> dict[str, tuple[str, ...]]:
    """Queues by worker: sweeping never waits for a file, and a small file never for a long one.

    The worker of long files helps with the small ones while it has nothing else to do.
    """
    return {
        "worker": (settings.CELERY_TASK_DEFAULT_QUEUE,),
        "ingest": (settings.INGEST_QUEUE, settings.INGEST_QUEUE_SMALL),
        "ingest-small": (settings.INGEST_QUEUE_SMALL,),
    }
