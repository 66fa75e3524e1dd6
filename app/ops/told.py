"""Commands that tell a person what is wrong instead of showing a traceback."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from app.common.errors import AppError
from retrieval.errors import RetrievalError


class ToldCommand(BaseCommand):
    """Subclasses write `act`; refusals and an absent database become one sentence and exit code 1."""

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.act(**options)
        except (AppError, RetrievalError) as exc:
            raise CommandError(exc.message) from exc
        except OperationalError as exc:
            raise CommandError(
                "The database does not answer. Start everything with `make run`, then try again."
            ) from exc

    def act(self, **options: Any) -> None:
        """What the command does."""
        raise NotImplementedError
