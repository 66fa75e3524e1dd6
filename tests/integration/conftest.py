"""A bucket for whoever stores files: a server that speaks S3 over HTTP, once a module."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import boto3
import pytest
from pytest_django import Settings

_READY = "Running on http://127.0.0.1:"


@pytest.fixture(scope="module")
def bucket_server() -> Iterator[str]:
    """Its address."""
    command = [sys.executable, "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if _READY in line)
            yield f"http://127.0.0.1:{line.partition(_READY)[2].split()[0]}"
        finally:
            process.kill()


@pytest.fixture
def bucket(bucket_server: str, settings: Settings, originals_dir: Path) -> str:
    """The settings of an installation whose originals lie in an empty bucket of its own; its name."""
    settings.ORIGINALS_S3_KEY_ID, settings.ORIGINALS_S3_SECRET = "an id", "a secret"
    name = f"originals-{uuid4()}"
    keys = {"aws_access_key_id": "an id", "aws_secret_access_key": "a secret"}
    client = boto3.client("s3", endpoint_url=bucket_server, region_name="us-east-1", **keys)
    client.create_bucket(Bucket=name)
    settings.ORIGINALS_BUCKET = name
    settings.ORIGINALS_S3_ENDPOINT = bucket_server
    settings.ORIGINALS_S3_REGION = "us-east-1"
    return name
