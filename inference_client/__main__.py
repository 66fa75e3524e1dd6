"""The client from the command line.

python -m inference_client replay NAME.meta.json…    what the parsers make of recorded answers
python -m inference_client probe URL                 what a server is and can do, without costing tokens
"""

import argparse
import asyncio
import os
import sys
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from inference_client.probe import probe
from inference_client.replay import UnreadableRecording, recording_read, replayed


def main(arguments: list[str] | None = None) -> int:
    """Run one command. The exit code is 1 where a file could not be read, or a server not, or not with this key."""
    options = _parser().parse_args(arguments)
    try:
        return (
            _replay(options.files) if options.command == "replay" else _probe(options.url, options.key_file)
        )
    except BrokenPipeError:
        # Whoever read us has seen enough; Python would complain once more when it flushes at its end.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
        return 0
    except KeyboardInterrupt:
        return _said("Stopped.")


def _replay(files: list[Path]) -> int:
    code = 0
    for path in files:
        try:
            line = replayed(recording_read(path))
        except UnreadableRecording as exc:
            line = {"file": path.name, "error": {"class": type(exc).__name__, "message": str(exc)}}
            code = _said(str(exc))
        _print(line)
    return code


def _probe(url: str, key_file: Path | None) -> int:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        return _said(f"{url} is no address of a server; one looks like http://host:8000/v1.")
    try:
        key = key_file.read_text().strip() if key_file else None
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it holds no text"
        return _said(f"The key file {key_file} cannot be read: {why}.")
    facts = asyncio.run(probe(url, key))
    _print(asdict(facts))
    if facts.reachable and not facts.key_refused:
        return 0
    return _said(f"{url}: {facts.problem}")


def _said(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


def _print(value: object) -> None:
    print(orjson.dumps(value).decode(), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m inference_client",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    replay = commands.add_parser("replay", help="replay recorded answers, one line of JSON each")
    replay.add_argument("files", nargs="+", type=Path, metavar="NAME.meta.json")
    check = commands.add_parser("probe", help="tell what a server is and can do")
    check.add_argument("url")
    check.add_argument("--key-file", type=Path, help="file that holds the server's key")
    return parser


if __name__ == "__main__":
    sys.exit(main())
