"""A bucket that speaks S3, at Amazon or elsewhere. Needs `requirements/s3.txt`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from retrieval.errors import StoreAway
from retrieval.stores import Gone, scratch_file

_CONFIG = Config(
    connect_timeout=5,
    read_timeout=60,
    retries={"mode": "standard", "total_max_attempts": 4},
    # Servers other than Amazon's know no newer checksums; the key is the hash of the bytes in any case.
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
)
_ABSENT = {"404", "NoSuchKey", "NotFound"}


class BucketStore:
    """Objects of one bucket; what is read lies in a local file only as long as it is needed."""

    def __init__(self, bucket: str, *, endpoint: str, region: str, key_id: str, secret: str) -> None:
        """What is left empty is looked for where boto3 looks: its own variables and files, the host's role."""
        self._bucket = bucket
        self._client = boto3.client(
            "s3",
            endpoint_url=endpoint or None,
            region_name=region or None,
            aws_access_key_id=key_id or None,
            aws_secret_access_key=secret or None,
            config=_CONFIG,
        )

    def keep(self, key: str, path: Path) -> None:
        """Large files go in parts; an object appears whole or not at all."""
        with self._answering():
            self._client.upload_file(str(path), self._bucket, key)

    @contextmanager
    def local(self, key: str) -> Iterator[Path]:
        with scratch_file() as path:
            with self._answering():
                self._client.download_file(self._bucket, key, str(path))
            yield path

    def size(self, key: str) -> int | None:
        try:
            with self._answering():
                return int(self._client.head_object(Bucket=self._bucket, Key=key)["ContentLength"])
        except Gone:
            return None

    def remove(self, key: str) -> bool:
        there = self.size(key) is not None
        if there:
            with self._answering():
                self._client.delete_object(Bucket=self._bucket, Key=key)
        return there

    def keys(self, prefix: str = "", *, older_than: float = 0) -> Iterator[str]:
        before = datetime.now(UTC) - timedelta(seconds=older_than)
        with self._answering():
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            for page in pages:
                for item in page.get("Contents", ()):
                    if item["LastModified"] <= before:
                        yield item["Key"]

    def where(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError, boto3.exceptions.Boto3Error) as exc:
            code = _code(exc)
            if code in _ABSENT:
                raise Gone(self._bucket) from exc
            raise StoreAway(self._bucket, code) from exc


def _code(exc: BaseException) -> str:
    """What the server called it, or what went wrong on the way; an upload wraps the one or the other."""
    if isinstance(exc, ClientError):
        return str(exc.response.get("Error", {}).get("Code", "")) or "refused"
    wraps = isinstance(exc, boto3.exceptions.S3UploadFailedError) and exc.__context__
    return _code(wraps) if wraps else type(exc).__name__
