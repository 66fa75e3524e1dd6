"""Commands that tell a person what is wrong instead of showing a traceback."""

from typing import Any

from django.conf import settings
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
                f"The database does not answer. These are the settings of {settings.DATA_DIR}: start it with "
                "`make run`, or name the data directory that runs with TESSERA_DATA=…, then try again."
            ) from exc

    def act(self, **options: Any) -> None:
        """What the command does."""
        raise NotImplementedError
