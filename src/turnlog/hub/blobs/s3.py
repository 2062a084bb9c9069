"""Blobs in a bucket of an S3-compatible store."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from turnlog import paths
from turnlog.errors import NotFoundError
from turnlog.hub.blobs import BlobStoreError

_SECONDS: Final = "10s"
"""How long a request may take: whoever pushes tries again later."""


class S3Blobs:
    """Blobs as objects `<team>/<SHA-256>` below a prefix."""

    def __init__(self, place: str) -> None:
        """Connect to nothing yet. `place` is `s3://bucket/prefix`. Raises BlobStoreError."""
        self._place = place
        try:
            self._store = S3Store.from_url(
                place,
                client_options={"allow_http": True, "timeout": _SECONDS, "connect_timeout": "3s"},
                retry_config={"max_retries": 1},
            )
        except (BaseError, ValueError) as error:
            raise self._failed("open", error) from error

    def put(self, team: int, sha256: str, data: bytes) -> None:
        """Write an object, if it is not there."""
        try:
            with suppress(AlreadyExistsError):
                obstore.put(self._store, f"{team}/{sha256}", data, mode="create")
        except (BaseError, OSError) as error:
            raise self._failed("write", error) from error

    def get(self, team: int, sha256: str) -> bytes:
        """Read an object."""
        try:
            return bytes(obstore.get(self._store, f"{team}/{sha256}").bytes())
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no blob {sha256}") from error
        except (BaseError, OSError) as error:
            raise self._failed("read", error) from error

    def delete(self, team: int, sha256: str) -> None:
        """Delete an object."""
        try:
            with suppress(FileNotFoundError):
                obstore.delete(self._store, f"{team}/{sha256}")
        except (BaseError, OSError) as error:
            raise self._failed("delete", error) from error

    def _failed(self, what: str, error: Exception) -> BlobStoreError:
        reason = " ".join(str(error).partition("Debug source")[0].split())
        # A store may answer with the key that it does not know.
        for key in filter(None, map(paths.variables().get, _KEYS)):
            reason = reason.replace(key, "…")
        # Without one, the credentials of the machine are asked for, which few have: the reason says nothing of a key.
        hint = "" if paths.is_set("AWS_ACCESS_KEY_ID") else "; AWS_ACCESS_KEY_ID is not set"
        return BlobStoreError(f"cannot {what} a blob of {self._place}: {reason[:300]}{hint}")


_KEYS: Final = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_TOKEN", "AWS_ACCESS_KEY_ID")
