"""What a command line says when it cannot do what was asked."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.utils import OperationalError
from pytest_django import Settings

from app.common.told import command_run


@pytest.fixture
def database_away(transactional_db: None) -> Iterator[None]:
    """Nothing listens where the database should be."""
    port = connection.settings_dict["PORT"]
    connection.close()
    connection.settings_dict["PORT"] = "1"
    yield
    connection.settings_dict["PORT"] = port


@pytest.mark.usefixtures("database_away")
@pytest.mark.parametrize(
    "command", [["changepassword", "admin@tessera.local"], ["words_backfill"], ["ledger_verify"]]
)
def test_a_database_that_is_away_is_one_sentence(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_run(["manage.py", *command])
    said = f"{ended.value.code} {capsys.readouterr().err}"
    assert "The database does not answer" in said
    assert "TESSERA_DATA" in said


@pytest.mark.usefixtures("database_away")
def test_a_traceback_is_shown_to_whoever_asks_for_it() -> None:
    with pytest.raises(OperationalError):
        command_run(["manage.py", "words_backfill", "--traceback"])


@pytest.mark.django_db(transaction=True)
def test_a_missing_setting_is_one_sentence(settings: Settings) -> None:
    settings.FIELD_KEYS = []
    command = ["manage.py", "webhook_add", "https://hooks.example/"]
    with pytest.raises(SystemExit, match="FIELD_KEYS is not set"):
        command_run(command)
    with pytest.raises(ImproperlyConfigured):
        command_run([*command, "--traceback"])


def test_a_reader_who_leaves_ends_a_command_quietly() -> None:
    # As `| head -0`: the pipe has no reader before the first line is written.
    command = [sys.executable, "manage.py", "read", "README.md"]
    with subprocess.Popen(
        command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
