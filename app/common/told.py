"""Commands that tell a person what is wrong instead of showing a traceback."""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from app.common.errors import AppError
from retrieval.errors import RetrievalError

_READER_LEFT = 141
"""What a shell calls the end by SIGPIPE."""


class ToldCommand(BaseCommand):
    """Subclasses write `act`; refusals and an absent database become one sentence and exit code 1."""

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.act(**options)
        except (AppError, RetrievalError) as exc:
            raise CommandError(exc.message) from exc
        except OperationalError as exc:
            if not _away(exc):
                raise
            raise CommandError(f"The database does not answer. {_where()}") from exc

    def act(self, **options: Any) -> None:
        """What the command does."""
        raise NotImplementedError


def command_run(argv: list[str]) -> None:
    """Django's command line, for every command, those of Django included; `--traceback` shows where it failed."""
    try:
        try:
            execute_from_command_line(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has left, as `| head` does. What is still buffered goes nowhere, or Python complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_READER_LEFT)
    except OperationalError as exc:
        if "--traceback" in argv or not _away(exc):
            raise
        sys.exit(f"CommandError: The database does not answer. {_where()}")
    except (AppError, RetrievalError, ImproperlyConfigured) as exc:
        if "--traceback" in argv:
            raise
        sys.exit(f"CommandError: {exc}")


def _away(exc: OperationalError) -> bool:
    """Whether nothing answered: what a database says about a statement carries a state."""
    return getattr(exc.__cause__, "sqlstate", None) is None


def _where() -> str:
    return (
        f"These are the settings of {settings.DATA_DIR}: start it with `make run`, or name the data directory that "
        "runs with TESSERA_DATA=…, then try again."
    )
