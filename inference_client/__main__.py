"""The client from the command line.

python -m inference_client replay NAME.meta.json…    what the parsers make of recorded answers
python -m inference_client probe URL                 what a server is and can do, without costing tokens
"""

import argparse
import asyncio
import sys
from dataclasses import asdict
from pathlib import Path

import orjson

from inference_client.probe import probe
from inference_client.replay import recording_read, replayed


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 1 where a file or server could not be read."""
    options = _parser().parse_args(arguments)
    if options.command == "replay":
        return _replay(options.files)
    key = options.key_file.read_text().strip() if options.key_file else None
    return _probe(options.url, key)


def _replay(files: list[Path]) -> int:
    code = 0
    for path in files:
        try:
            line = replayed(recording_read(path))
        except (OSError, ValueError, KeyError) as exc:
            line = {"file": path.name, "error": {"class": "UnreadableRecording", "message": str(exc)}}
            code = 1
        _print(line)
    return code


def _probe(url: str, key: str | None) -> int:
    facts = asyncio.run(probe(url, key))
    _print(asdict(facts))
    return 0 if facts.reachable else 1


def _print(value: object) -> None:
    print(orjson.dumps(value).decode(), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m inference_client", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    replay = commands.add_parser("replay", help="replay recorded answers, one line of JSON each")
    replay.add_argument("files", nargs="+", type=Path, metavar="NAME.meta.json")
    check = commands.add_parser("probe", help="tell what a server is and can do")
    check.add_argument("url")
    check.add_argument("--key-file", type=Path, help="file that holds the server's key")
    return parser


if __name__ == "__main__":
    sys.exit(main())
