"""Where things lie under one data directory."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one installation. Everything secret in it has mode 0600."""

    data: Path
    cache: Path
    """Model weights. May be shared between data directories: everything in it can be fetched again."""

    @property
    def lock(self) -> Path:
        """Held by flock while a supervisor lives; contains its process id."""
        return self.data / "up.lock"

    @property
    def secrets(self) -> Path:
        """Generated once; without it the cluster and every encrypted field are lost."""
        return self.data / "secrets.json"

    @property
    def env(self) -> Path:
        """Settings by name, for every other command."""
        return self.data / "env.json"

    @property
    def run(self) -> Path:
        """What a script needs to reach the running stack."""
        return self.data / "run.json"

    @property
    def choice(self) -> Path:
        """The model or chat server chosen at an earlier start."""
        return self.data / "choice.json"

    @property
    def ports(self) -> Path:
        """Ports of the last start, taken again when they are free."""
        return self.data / "ports.json"

    @property
    def children(self) -> Path:
        """Process ids of the running children, to find those that outlive a killed supervisor."""
        return self.data / "children.json"

    def log(self, name: str) -> Path:
        """The output of one part."""
        return self.data / "logs" / f"{name}.log"


def layout_open(data: Path, cache: Path | None = None) -> Layout:
    """The layout under `data`, its directories made.

    As root the database's own user can pass through the directory (0711); otherwise it is private (0700).
    """
    data = data.expanduser().resolve()
    mode = 0o711 if os.geteuid() == 0 else 0o700
    data.mkdir(parents=True, exist_ok=True, mode=mode)
    (data / "logs").mkdir(exist_ok=True, mode=0o700)
    return Layout(data=data, cache=(cache or data / "models").expanduser().resolve())


def write_private(path: Path, text: str) -> None:
    """Replace `path` at once with `text`, readable by its owner alone."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
