"""A machine's requests to the sync routes, made by hand, and batches of toy logs."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec
from starlette.testclient import TestClient

from support.toy_store import ToyStore
from turnlog.store import zstd
from turnlog.store.feed import taking
from turnlog.store.feed.reading import read_batch
from turnlog.store.feed.values import FeedBatch, FeedPosition

SAID = b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"%b"}\n'


def said(message: str, text: str) -> bytes:
    return SAID % (message.encode(), message.encode(), text.encode())


class Machine:
    """A machine's requests."""

    def __init__(self, client: TestClient, token: str, store: str = "s1") -> None:
        self._client = client
        self.store = store
        self.headers = {"Authorization": f"Bearer {token}"}

    def push(self, batch: FeedBatch | bytes, **headers: str) -> httpx2.Response:
        data = zstd.compress(taking.encode(batch)) if isinstance(batch, FeedBatch) else batch
        every = {**self.headers, "Content-Encoding": "zstd", **headers}
        return self._client.post(f"/hub/v1/batches?store={self.store}", content=data, headers=every)

    def get(self, path: str) -> httpx2.Response:
        return self._client.get(f"/hub/v1{path}", headers=self.headers)

    def post(self, path: str, value: Any) -> httpx2.Response:
        return self._client.post(f"/hub/v1{path}", json=value, headers=self.headers)

    def put(self, path: str, data: bytes) -> httpx2.Response:
        return self._client.put(f"/hub/v1{path}", content=data, headers=self.headers)


def whole(toy: ToyStore, after: FeedPosition = FeedPosition()) -> FeedBatch:  # noqa: B008 - an immutable value
    batch = read_batch(toy.connection, after)
    assert batch is not None
    return batch


def spoil(batch: FeedBatch, **changes: Any) -> FeedBatch:
    return msgspec.structs.replace(batch, **changes)
