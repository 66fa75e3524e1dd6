"""A buffering nginx in front of several web processes, as many an installation has one."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

_CONFIG = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_processes 1;
worker_shutdown_timeout {patience}s;
{user}
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_max_body_size 200m;
  upstream tessera {{
    {servers}
  }}
  proxy_pass_request_headers on;
  proxy_http_version 1.1;
  proxy_set_header Host $http_host;
  proxy_set_header Connection "";
  proxy_set_header X-Forwarded-For $remote_addr;
  proxy_set_header X-Forwarded-Proto $scheme;
  proxy_connect_timeout 5s;
  proxy_read_timeout 3600s;
  proxy_buffering on;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://tessera; }}
  }}
  server {{
    # Holds back what it likes, whatever the answer asks for, as a proxy does that nobody configured.
    listen 127.0.0.1:{stubborn};
    location / {{
      proxy_pass http://tessera;
      proxy_ignore_headers X-Accel-Buffering;
      proxy_buffers 8 4k;
    }}
  }}
}}
"""


def found() -> str | None:
    """Where nginx is; Debian puts it where only root's PATH looks."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def required() -> str:
    """Where nginx is. Skips the test when it is nowhere."""
    program = found()
    if program is None:
        pytest.skip("nginx is not installed (Debian: apt-get install nginx-light)")
    return program


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Nginx:
    """A running nginx. `url` hands streams on as our answers ask for; `stubborn_url` buffers all the same."""

    def __init__(self, folder: Path, upstreams: Sequence[str]) -> None:
        self._folder = folder
        self._port, self._stubborn = _free_port(), _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.stubborn_url = f"http://127.0.0.1:{self._stubborn}"
        self._write(upstreams)
        self._process = subprocess.Popen([required(), "-c", str(self._path), "-p", str(folder)])

    @property
    def _path(self) -> Path:
        return self._folder / "nginx.conf"

    def _write(self, upstreams: Sequence[str]) -> None:
        servers = "\n    ".join(
            f"server {url.partition('://')[2].rstrip('/')} max_fails=1 fail_timeout=1s;" for url in upstreams
        )
        self._path.write_text(
            _CONFIG.format(
                folder=self._folder, port=self._port, stubborn=self._stubborn, servers=servers, patience=600,
                # Its workers write to the folder; only root may say who they are.
                user=f"user {getpass.getuser()};" if os.geteuid() == 0 else "",
            )
        )  # fmt: skip

    def wait(self) -> None:
        """Until it listens."""
        deadline = time.monotonic() + 30
        while not _listens(self._stubborn):
            assert self._process.poll() is None, self.complaints()
            assert time.monotonic() < deadline, "nginx does not listen"
            time.sleep(0.05)

    def replace(self, upstreams: Sequence[str]) -> None:
        """Send new requests to these web processes; running ones stay where they are. No connection is refused."""
        before = set(self._workers())
        self._write(upstreams)
        self._process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 240
        while not set(self._workers()) - before:
            assert time.monotonic() < deadline, self.complaints()
            time.sleep(0.05)

    def cut(self) -> None:
        """Break every connection that goes through it; a new worker takes the next ones."""
        for worker in self._workers():
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(worker).kill()

    def _workers(self) -> list[int]:
        return [child.pid for child in psutil.Process(self._process.pid).children()]

    def complaints(self) -> str:
        """The end of its log."""
        log = self._folder / "error.log"
        return log.read_text()[-3000:] if log.exists() else ""

    def end(self) -> None:
        """Take it down; what runs through it is cut."""
        self._process.terminate()
        self._process.wait(30)


@contextlib.contextmanager
def nginx(upstreams: Sequence[str]) -> Iterator[Nginx]:
    """An nginx in the foreground before these web processes (`http://host:port`), for the length of the block."""
    required()
    with tempfile.TemporaryDirectory(prefix="tessera-nginx-") as folder:
        running = Nginx(Path(folder), upstreams)
        try:
            running.wait()
            yield running
        finally:
            running.end()
