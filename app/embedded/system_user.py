"""Where PostgreSQL lives and as whom: it refuses to run as root."""

import hashlib
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from app.embedded.errors import EmbeddedError

USER = "tessera-postgres"
HOME = Path("/var/lib/tessera")


@dataclass(frozen=True, slots=True)
class Place:
    """The cluster's folder, the binaries, and the user who may use both."""

    cluster: Path
    binaries: Path
    user: str | None
    """None: the current user."""

    def give(self, path: Path) -> None:
        """Make the database's user the owner of `path`."""
        if self.user:
            account = pwd.getpwnam(self.user)
            os.chown(path, account.pw_uid, account.pw_gid)

    def run(self, argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        """A command as that user, in a folder it may enter, with a plain environment."""
        return _run_as(self.user, argv)


def _run_as(user: str | None, argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
    if user is None:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
        )
    group = pwd.getpwnam(user).pw_gid
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        user=user,
        group=group,
        extra_groups=[],
    )


def _user_ensure() -> None:
    if any(account.pw_name == USER for account in pwd.getpwall()):
        return
    command = ("useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", USER)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        reason = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError:
        reason = "useradd is not installed"
    # Of two first starts at once, the other one made it.
    if reason and "already exists" not in reason:
        raise EmbeddedError(
            f"PostgreSQL does not run as root, and its system user {USER} could not be made ({reason}). "
            "Start as an ordinary user, or make that user yourself."
        )


def _can_run(binary: Path) -> bool:
    try:
        return _run_as(USER, (str(binary), "--version")).returncode == 0
    except PermissionError:
        return False


def _can_enter(folder: Path) -> bool:
    return _run_as(USER, ("/bin/sh", "-c", 'cd "$1"', "sh", str(folder))).returncode == 0


def place_find(data: Path, packaged: Path) -> Place:
    """Where the cluster of this data directory is or will be.

    As root: under the data directory when the system user can reach it and the packaged binaries; otherwise
    both lie under /var/lib/tessera/<hash of the data directory>.
    """
    inside = data / "postgres"
    if os.geteuid() != 0:
        return Place(cluster=inside, binaries=packaged, user=None)
    _user_ensure()
    home = HOME / hashlib.sha256(str(data).encode()).hexdigest()[:16]
    binaries = packaged if _can_run(packaged / "postgres") else _copied(packaged)
    if _can_enter(data):
        outside = (home / "postgres" / "PG_VERSION").exists() and not (inside / "PG_VERSION").exists()
    elif (inside / "PG_VERSION").exists():
        raise EmbeddedError(
            f"The database is in {inside}, but its user {USER} can no longer reach {data}: "
            "let others pass through the directories above it (chmod o+x), or start as the user who made it."
        )
    else:
        outside = True
    if outside:
        home.mkdir(parents=True, exist_ok=True, mode=0o711)
        # For whoever finds this folder after the data directory is gone, and wonders whether it may go too.
        (home / "belongs-to").write_text(f"{data}\n")
        return Place(cluster=home / "postgres", binaries=binaries, user=USER)
    return Place(cluster=inside, binaries=binaries, user=USER)


def _copied(packaged: Path) -> Path:
    """A copy of the packaged installation that the system user can reach, one per version of the package."""
    source = packaged.parent
    stamp = f"{(packaged / 'postgres').stat().st_size}-{int((packaged / 'postgres').stat().st_mtime)}"
    target = HOME / f"postgresql-{stamp}"
    if not target.exists():
        HOME.mkdir(parents=True, exist_ok=True, mode=0o755)
        part = HOME / f".{target.name}.{os.getpid()}"
        shutil.copytree(source, part, symlinks=True)
        part.rename(target)
    return target / packaged.name
