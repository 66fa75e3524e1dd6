"""The demonstration chat server: llama.cpp's own HTTP server in a process of its own.

    python -m app.embedded.chat_server < configuration.json

The configuration comes on standard input, so that its key is in no command line and no environment:
{"port", "key", "model" (path of a GGUF file), "name", "slots", "threads"}.
"""

import json
import signal
import sys
import threading
from typing import Any

import xllamacpp

CACHE_MIB = 512


def parameters(configuration: dict[str, Any]) -> xllamacpp.CommonParams:
    """llama.cpp's parameters: loopback, a key, metrics on; slots, page and changes of properties off."""
    slots = int(configuration["slots"])
    made = xllamacpp.CommonParams()
    made.model.path = str(configuration["model"])
    made.model_alias = {str(configuration["name"])}
    made.hostnames = ["127.0.0.1"]
    made.port = int(configuration["port"])
    made.api_keys = [str(configuration["key"])]
    made.endpoint_metrics = True
    made.endpoint_slots = made.endpoint_props = made.ui = False
    # Any web page may send requests to a loopback port; none may read the answers.
    made.cors_origins = made.cors_methods = ""
    made.cors_credentials = False
    made.offline = True
    made.n_parallel = slots
    made.n_ctx = slots * int(configuration["slot_tokens"])
    made.fit_params = False
    made.cache_ram_mib = CACHE_MIB
    made.cpuparams.n_threads = made.cpuparams_batch.n_threads = int(configuration["threads"])
    # Level 1 is errors; higher levels print prompts.
    made.verbosity = 1
    return made


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    server = xllamacpp.Server(parameters(json.load(sys.stdin)))
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    while not stopping.wait(1):
        pass


if __name__ == "__main__":
    main()
