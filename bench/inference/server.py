"""The scripted server, in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def scripted(**options: Any) -> Iterator[str]:
    """Its URL, for as long as the block lasts; `options` are those of its command line."""
    command = [sys.executable, "-m", "inference_client.testing.fault_server", "--port", "0"]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.wait()
