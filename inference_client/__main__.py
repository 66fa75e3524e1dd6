"""The client from the command line.

python -m inference_client replay NAME.meta.json…    what the parsers make of recorded answers, a line of JSON each
python -m inference_client replay --check NAME.meta.json…    the same beside what each recording says it holds
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
from inference_client.replay_facts import facts

_SHOWN = 60


def main(arguments: list[str] | None = None) -> int:
    """Run one command. The exit code is 1 where a file could not be read, or a server not, or not with this key."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "probe":
            return _probe(options.url, options.key_file)
        return _check(options.files) if options.check else _replay(options.files)
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


def _check(files: list[Path]) -> int:
    """One line for each fact, columns by tabs: verdict, recording, fact, expected, got. Exit code 1 if any differs."""
    known = differing = unreadable = 0
    for path in files:
        try:
            recording = recording_read(path)
        except UnreadableRecording as exc:
            unreadable += _said(str(exc))
            continue
        for name, expected, got in facts(recording, replayed(recording)):
            known += 1
            differing += expected != got
            verdict = "same" if expected == got else "DIFFERS"
            print(verdict, path.name, name, _short(expected), _short(got), sep="\t", flush=True)
    print(f"{len(files)} recordings, {known} facts, {differing} differ, {unreadable} recordings unreadable")
    return 1 if differing or unreadable else 0


def _short(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
    replay.add_argument("--check", action="store_true", help="compare with what each recording says it holds")
    replay.add_argument("files", nargs="+", type=Path, metavar="NAME.meta.json")
    check = commands.add_parser("probe", help="tell what a server is and can do")
    check.add_argument("url")
    check.add_argument("--key-file", type=Path, help="file that holds the server's key")
    return parser


if __name__ == "__main__":
    sys.exit(main())
