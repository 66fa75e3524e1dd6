"""Refuse what must not stand in a tracked file: `python tools/check_tracked.py [FILE…]`.

A package index's host name (a lock is good for any mirror), a path of somebody's own machine, a key or a
private key, a merge conflict, a file over 1 MB. One line for each find; the exit code is 1 when there is any.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_BYTES = 1_000_000
TEXT_BYTES = 20_000_000

# Written in pieces, so that this file passes its own check.
_HOSTS = (
    ("pypi", "org"),
    ("pypi", "python", "org"),
    ("files", "pythonhosted", "org"),
    ("registry", "npmjs", "org"),
    ("npmjs", "com"),
    ("registry", "yarnpkg", "com"),
    ("deb", "debian", "org"),
    ("security", "debian", "org"),
    ("archive", "ubuntu", "com"),
    ("index", "crates", "io"),
    ("static", "crates", "io"),
    ("proxy", "golang", "org"),
)

RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "a package registry's host",
        re.compile("|".join(re.escape(".".join(parts)) for parts in _HOSTS), re.IGNORECASE),
    ),
    ("a path of one machine", re.compile(r"(?<![\w.~/-])/(?:work|root|home|Users)/[\w.-]+")),
    ("a path of one machine", re.compile(r"(?<![\w.~/-])/tmp/" + r"tessera")),
    ("a private key", re.compile("-----BEGIN " + r"(?:[A-Z]+ )*PRIVATE KEY-----")),
    ("a provider's key", re.compile(r"\b(?:sk-(?:ant-|proj-)[\w-]{20,}|AKIA[0-9A-Z]{16}|gh[pousr]_\w{30,})")),
    ("a merge conflict", re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)),
)


def tracked() -> list[Path]:
    """Every file in the index that is still in the work tree."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = (ROOT / name for name in done.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def finds(path: Path) -> list[str]:
    """What is wrong with one file, as `path:line: what`."""
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
    size = path.stat().st_size
    found = [f"{name}: {size:,} bytes; at most {MAX_BYTES:,}"] if size > MAX_BYTES else []
    data = path.read_bytes()[:TEXT_BYTES]
    if b"\0" in data[:8000]:
        return found
    text = data.decode("utf-8", errors="replace")
    for what, rule in RULES:
        for match in rule.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{name}:{line}: {what}")
    return found


def main(arguments: list[str]) -> int:
    """Check the named files, or all tracked ones."""
    paths = [Path(name).resolve() for name in arguments] or tracked()
    problems = [line for path in paths for line in finds(path)]
    print("\n".join(problems) or f"{len(paths)} files clean")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
