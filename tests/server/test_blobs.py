"""Bytes out of logs: pictures are shown, nothing else ever is."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from support.server_history import DRAWING, LONG_TEXT, MAIN, PAGE, PICTURE, sha256
from turnlog.server.routes.blobs import picture_type


def test_a_picture_is_shown(client: TestClient) -> None:
    response = client.get(f"/api/blobs/{sha256(PICTURE)}")
    assert response.content == PICTURE
    assert response.headers["content-type"] == "image/png"
    assert "content-disposition" not in response.headers


@pytest.mark.parametrize("data", [PAGE, DRAWING, LONG_TEXT.encode()])
def test_everything_else_is_a_download(client: TestClient, data: bytes) -> None:
    response = client.get(f"/api/blobs/{sha256(data)}")
    assert response.content == data
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"].startswith("attachment; filename=")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert not response.headers["content-disposition"].rstrip('"').endswith((".html", ".svg"))


@pytest.mark.parametrize("data", [PAGE, DRAWING, LONG_TEXT.encode(), PICTURE])
def test_as_text_is_text_and_nothing_more(client: TestClient, data: bytes) -> None:
    response = client.get(f"/api/blobs/{sha256(data)}", params={"as": "text"})
    assert response.content == data
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("data", [PAGE, PICTURE])
def test_bytes_may_run_nothing(client: TestClient, data: bytes) -> None:
    policy = client.get(f"/api/blobs/{sha256(data)}").headers["content-security-policy"]
    assert "sandbox" in policy
    assert "script-src" not in policy
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0JFIF", "image/jpeg"),
        (b"GIF87a...", "image/gif"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF\x00\n\xff\x01WEBPVP8 ", "image/webp"),
        (b"RIFF....WAVEfmt ", None),
        (b"\x89PNG....", None),
        (b" \x89PNG\r\n\x1a\n", None),
        (b"GIF", None),
        (b"%PDF-1.7", None),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_pictures_are_known_by_their_first_bytes(data: bytes, media_type: str | None) -> None:
    assert picture_type(data) == media_type


def test_a_blob_is_sent_once(client: TestClient) -> None:
    address = f"/api/blobs/{sha256(PICTURE)}"
    etag = client.get(address).headers["etag"]
    assert etag == f'"{sha256(PICTURE)}"'
    assert client.get(address, headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.parametrize(
    "name",
    [
        "0" * 64,
        sha256(PICTURE).upper(),
        sha256(PICTURE)[:-1],
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "x" * 64,
        "%00",
        "' OR 1=1 --",
    ],
)
def test_what_is_no_blob_is_404(client: TestClient, name: str) -> None:
    response = client.get(f"/api/blobs/{name}")
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "not_found"


def test_a_known_etag_opens_nothing_that_is_not_there(client: TestClient) -> None:
    missing = "0" * 64
    assert client.get(f"/api/blobs/{missing}", headers={"If-None-Match": f'"{missing}"'}).status_code == 404


def test_another_form_of_bytes_is_422(client: TestClient) -> None:
    response = client.get(f"/api/blobs/{sha256(PICTURE)}", params={"as": "html"})
    assert response.status_code == 422
    assert response.json()["error"]["detail"][0]["field"] == "as"


# -- outputs in files of their own


def test_a_spilled_output_comes_whole(client: TestClient) -> None:
    address = f"/api/sessions/{MAIN}/spills/c1.txt"
    assert client.get(address).content == b"the whole output"
    assert client.get(address).headers["content-disposition"] == 'attachment; filename="output.txt"'
    assert client.get(address, params={"as": "text"}).headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("name", ["../main.jsonl", "/etc/passwd", "../../../../etc/passwd", "c1.txt\x00", "nope"])
def test_names_of_outputs_lead_nowhere_else(client: TestClient, name: str) -> None:
    response = client.get(f"/api/sessions/{MAIN}/spills/{quote(name, safe='')}")
    assert response.status_code == 404
