"""Where a hub keeps large contents beside its database: a folder, or a bucket of an S3-compatible store."""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from turnlog.errors import NotFoundError, StoreError

_T = TypeVar("_T")

_Use: TypeAlias = Literal["read", "write", "delete"]

_CHECKED_BYTES: Final = 64 << 10
"""Bytes of a check: a full disk may have room for fewer."""

_log = logging.getLogger(__name__)


NO_BLOBS: Final = "the hub's store of large contents (blobs) cannot be used just now: the hub's log has the reason"
"""What others are told of it."""


class BlobStoreError(StoreError):
    """The blobs cannot be used now. The message says why, for the hub's log: it may name folders and addresses."""


class BlobStore(Protocol):
    """Bytes by team and SHA-256. Any number of threads may use it."""

    def put(self, team: int, sha256: str, data: bytes) -> None:
        """Keep bytes; nothing if they are there. Raises BlobStoreError if they cannot be kept now."""
        ...

    def get(self, team: int, sha256: str) -> bytes:
        """Bytes. Raises NotFoundError if they are not there, BlobStoreError if they cannot be had now."""
        ...

    def delete(self, team: int, sha256: str) -> None:
        """Delete bytes; nothing if they are not there. Raises BlobStoreError if they cannot be deleted now."""
        ...


class WatchedBlobs:
    """Blobs that notice whether they can be used."""

    def __init__(self, blobs: BlobStore) -> None:
        """Use nothing yet."""
        self._blobs = blobs
        self._failed: set[_Use] = set()
        """What failed when somebody tried it last: that old contents are read says nothing of room for new ones."""

    @property
    def is_usable(self) -> bool:
        """Whether they could be read and written when somebody tried last."""
        return not self._failed

    def put(self, team: int, sha256: str, data: bytes) -> None:
        """As `BlobStore.put`."""
        self._noticed("write", lambda: self._blobs.put(team, sha256, data))

    def get(self, team: int, sha256: str) -> bytes:
        """As `BlobStore.get`."""
        return self._noticed("read", lambda: self._blobs.get(team, sha256))

    def delete(self, team: int, sha256: str) -> None:
        """As `BlobStore.delete`."""
        self._noticed("delete", lambda: self._blobs.delete(team, sha256))

    def check(self) -> None:
        """Write, read and delete some bytes of no team, so that a failure is noticed before somebody needs them."""
        # Another name each time, or bytes that are there already would not be written; in one folder.
        name = "0" * 32 + secrets.token_hex(16)
        with suppress(NotFoundError, BlobStoreError):
            self.put(0, name, bytes(_CHECKED_BYTES))
            self.get(0, name)
            self.delete(0, name)

    def _noticed(self, kind: _Use, use: Callable[[], _T]) -> _T:
        try:
            found = use()
        except BlobStoreError as error:
            self._failed.add(kind)
            _log.warning("%s", error)
            raise
        except NotFoundError:
            self._failed.discard(kind)
            raise
        self._failed.discard(kind)
        return found


def open_blobs(place: str) -> BlobStore:
    """The blobs at a path, or at `s3://bucket/prefix`.

    The credentials and the endpoint of S3 come from the usual variables (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    `AWS_REGION`, `AWS_ENDPOINT_URL`). Raises BlobStoreError if a folder cannot be made.
    """
    if place.startswith("s3://"):
        from turnlog.hub.blobs.s3 import S3Blobs

        return S3Blobs(place)
    return FolderBlobs(Path(place))


class FolderBlobs:
    """Blobs in files of a folder that only this user reads."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if it is not there."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise BlobStoreError(f"cannot make the folder of blobs {folder}: {error.strerror}") from error
        self._folder = folder

    def put(self, team: int, sha256: str, data: bytes) -> None:
        """Keep bytes: they are on the disk when this returns."""
        path = self._path(team, sha256)
        if path.exists():
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{sha256}-", delete=False) as file:
                try:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                    Path(file.name).replace(path)
                except BaseException:
                    with suppress(FileNotFoundError):
                        Path(file.name).unlink()
                    raise
            _drop_unfinished(path)
        except OSError as error:
            if path.exists():  # somebody else was first
                return
            raise BlobStoreError(f"cannot write a blob to {self._folder}: {error.strerror}") from error

    def get(self, team: int, sha256: str) -> bytes:
        """The bytes of a file."""
        try:
            return self._path(team, sha256).read_bytes()
        except FileNotFoundError as error:
            raise NotFoundError(f"there is no blob {sha256}") from error
        except OSError as error:
            raise BlobStoreError(f"cannot read a blob of {self._folder}: {error.strerror}") from error

    def delete(self, team: int, sha256: str) -> None:
        """Delete a file."""
        try:
            path = self._path(team, sha256)
            path.unlink(missing_ok=True)
            _drop_unfinished(path)
        except OSError as error:
            raise BlobStoreError(f"cannot delete a blob of {self._folder}: {error.strerror}") from error

    def _path(self, team: int, sha256: str) -> Path:
        return self._folder / str(team) / sha256[:2] / sha256


def _drop_unfinished(path: Path) -> None:
    """Delete what killed processes have left of a file. Nobody writes it just now, or its bytes are there."""
    for each in path.parent.glob(f".{path.name}-*"):
        each.unlink(missing_ok=True)
