"""How a window travels: stored zstd frames as they are, gzip or plain JSON, and 304 for what a client has."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from support.server_history import FORK, MAIN
from turnlog.model.codec import decode_message
from turnlog.server import create_app
from turnlog.server.context import takes
from turnlog.store import open_store

WINDOW = f"/api/sessions/{MAIN}/window"


def raw(client: TestClient, path: str, **headers: str) -> tuple[dict[str, str], bytes]:
    """Headers and the body as it travelled."""
    with client.stream("GET", path, headers=headers) as response:
        return dict(response.headers), b"".join(response.iter_raw())


def unpack(body: bytes) -> bytes:
    """All frames of a zstd body, one behind the other, as RFC 8878 has it."""
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(body), read_across_frames=True).read()


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("zstd", {"zstd"}),
        ("gzip, deflate, br, zstd", {"zstd", "gzip"}),
        ("GZIP;q=0.5 , ZSTD ; q=1.0", {"zstd", "gzip"}),
        ("zstd;q=0, gzip", {"gzip"}),
        ("zstd;q=0.000", set[str]()),
        ("*", {"zstd", "gzip"}),
        ("*;q=0", set[str]()),
        ("*, zstd;q=0", {"gzip"}),
        ("identity", set[str]()),
        ("zstandard, xgzip", set[str]()),
        ("", set[str]()),
        (",;q=,zstd;q=nonsense", {"zstd"}),
    ],
)
def test_accept_encoding_is_read_as_the_standard_says(header: str, taken: set[str]) -> None:
    headers = Headers({"accept-encoding": header})
    assert {coding for coding in ("zstd", "gzip", "br") if takes(headers, coding)} - {"br"} == taken


def test_a_missing_accept_encoding_takes_nothing() -> None:
    assert not takes(Headers({}), "zstd")


def test_zstd_clients_get_the_stored_frames_as_they_are(library: Path, client: TestClient) -> None:
    headers, body = raw(client, WINDOW, **{"Accept-Encoding": "zstd"})
    assert headers["content-encoding"] == "zstd"
    assert headers["vary"] == "Accept-Encoding"
    with open_store(library) as store:
        window = store.window(MAIN)
    assert window.frames
    assert all(frame in body for frame in window.frames)
    assert json.loads(unpack(body)) == json.loads(window.to_json())


def test_every_coding_says_the_same(client: TestClient) -> None:
    plain_headers, plain = raw(client, WINDOW, **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain_headers
    _, frames = raw(client, WINDOW, **{"Accept-Encoding": "zstd"})
    gzip_headers, packed = raw(client, WINDOW, **{"Accept-Encoding": "gzip"})
    assert gzip_headers["content-encoding"] == "gzip"
    assert plain == unpack(frames) == gzip.decompress(packed)
    assert len(packed) < len(plain)


def test_small_answers_are_not_packed(client: TestClient) -> None:
    headers, body = raw(client, "/api/agents", **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in headers
    assert json.loads(body)["items"]


def test_a_window_holds_whole_messages_of_the_model(client: TestClient) -> None:
    """R-S40: structured messages, not prompt and result alone."""
    items = client.get(WINDOW).json()["items"]
    messages = [decode_message(json.dumps(item).encode()) for item in items]
    assert [message.id for message in messages] == ["m1", "m2", "m3", "m4", "m5/odd"]
    assert [part.type for part in messages[1].parts] == ["reasoning", "text", "tool-call", "tool-call", "tool-call"]


# -- 304


def test_what_did_not_change_is_not_sent_again(client: TestClient) -> None:
    first = client.get(WINDOW)
    etag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    for known in (etag, f'"other", {etag}', "*"):
        again = client.get(WINDOW, headers={"If-None-Match": known})
        assert again.status_code == 304
        assert again.content == b""
        assert again.headers["etag"] == etag
    assert client.get(WINDOW, headers={"If-None-Match": '"other"'}).status_code == 200


def test_every_change_of_the_store_gives_a_new_etag(own_store: Path, open_client: Callable[..., TestClient]) -> None:
    client = open_client(own_store)
    before = client.get(WINDOW).headers["etag"]
    assert client.patch(f"/api/sessions/{FORK}", json={"starred": True}).status_code == 200
    after = client.get(WINDOW, headers={"If-None-Match": before})
    assert after.status_code == 200
    assert after.headers["etag"] != before


def test_another_run_gives_another_etag(library: Path, open_client: Callable[..., TestClient]) -> None:
    """A different store on the same port may have the same change sequence."""
    tags = {open_client(library).get(WINDOW).headers["etag"] for _ in range(3)}
    assert len(tags) == 3


def test_many_windows_at_once_are_all_right(library: Path) -> None:
    """Frames are packed and unpacked in several threads."""
    from concurrent.futures import ThreadPoolExecutor

    app = create_app(library)
    store = app.state.context.store
    expected = store.window(MAIN).to_json()

    def ask(number: int) -> bool:
        window = store.window(MAIN)
        return (unpack(window.to_zstd()) if number % 2 else window.to_json()) == expected

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(400)))
    store.close()
